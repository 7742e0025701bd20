"""How far a suite is: which of its runs have a result, and of which code."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any, Literal

from skpml.experiments._runs import Plan, Run
from skpml.experiments._store import Store, task_of

State = Literal["done", "failed", "older", "missing"]


@dataclass(frozen=True)
class Status:
    """The state of each run of a plan.

    ``done`` and ``failed`` are results of the present code, ``older`` is one of older code. ``n_confirmed`` results were
    made by older code, and confirmed by other runs. Runs on absent data are listed only if their configuration has a
    result.
    """

    plan: Plan
    states: dict[Run, State]
    n_confirmed: int = 0

    @property
    def absent(self) -> dict[str, str]:
        """Configurations without data and results, and why."""
        found = {run.configuration for run in self.states}
        return {name: why for name, why in self.plan.absent.items() if name not in found}

    @property
    def counts(self) -> Counter[str]:
        """Number of runs in each state."""
        return Counter(self.states.values())

    @property
    def complete(self) -> bool:
        """Whether every run of the plan has a result of the present code that did not fail."""
        return bool(self.states) and not self.absent and set(self.states.values()) == {"done"}

    def by_method(self) -> dict[str, Counter[str]]:
        """Return the number of runs of each label in each state."""
        runs = {(entry.label, entry.run): None for entry in self.plan.entries if entry.run in self.states}
        counts: dict[str, Counter[str]] = {}
        for label, run in runs:
            counts.setdefault(label, Counter())[self.states[run]] += 1
        return counts

    def to_json(self) -> dict[str, Any]:
        """Return the facts for JSON."""
        names = ("done", "failed", "older", "missing")
        return {
            "suite": self.plan.suite.name,
            "complete": self.complete,
            "runs": len(self.states),
            **{name: self.counts[name] for name in names},
            "confirmed": self.n_confirmed,
            "methods": {
                label: {name: counts[name] for name in names} for label, counts in self.by_method().items()
            },
            "absent": self.absent,
        }


def find_status(plan: Plan, store: Store) -> Status:
    """Find the state of each run of a plan in a folder of results."""
    runs = dict.fromkeys(entry.run for entry in plan.entries)
    keys: dict[str, set[str]] = defaultdict(set)
    for key in sorted(store.keys()):
        keys[task_of(key)].add(key)
    tried = {run.configuration for run in runs if run.task in keys}
    states: dict[Run, State] = {}
    n_confirmed = 0
    for run in runs:
        if run.configuration in plan.absent and run.configuration not in tried:
            continue
        record = store.read(run.key)
        states[run] = "older" if keys.get(run.task, set()) - {run.key} else "missing"
        if record is not None:
            states[run] = "done" if record["status"] == "done" else "failed"
            n_confirmed += "confirmed" in record
    return Status(plan, states, n_confirmed)
