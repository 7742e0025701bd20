"""Confirmation of results of older code: some runs are done again, and equal results speak for the others.

Any change of code that a method uses makes its results older, also one that changes no number. To repeat a large suite
after each would take days.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skpml.experiments._runner import Progress, run_plan
from skpml.experiments._runs import Plan, Run
from skpml.experiments._store import RECORD_FORMAT, Store, task_of

# Rounding errors may change the order of nearly equal scores; what is printed does not change.
TOLERANCE = 1e-5

Record = dict[str, Any]
# A method of a suite, by its label, and the fingerprint of older code of it.
_Version = tuple[str, str | None]


@dataclass(frozen=True)
class Confirmation:
    """What was found about the results of a method.

    ``n_compared`` runs were done by older and by the present code, and ``largest_difference`` is that of any of their
    metrics. ``n_confirmed`` other results count as those of the present code; ``n_older`` still do not.
    """

    label: str
    n_compared: int
    largest_difference: float
    n_confirmed: int
    n_older: int


def confirm_results(
    plan: Plan,
    folder: str | Path,
    *,
    jobs: int = 1,
    dask: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> list[Confirmation]:
    """Do one run of each method and configuration again; if all are as before, the others of the method are confirmed.

    A confirmed record keeps its provenance, and says in ``confirmed`` which code made it, and how many runs of the
    method agreed by how much. A run that was done again says in ``compared`` how it differs from before.

    Parameters
    ----------
    plan : Plan
        The runs. Those without any result are left alone.
    folder : path-like
        Folder of the records.
    jobs, dask, on_progress : optional
        As in :func:`run_plan`.

    Returns
    -------
    list of Confirmation
        One for each method with results of older code.

    Raises
    ------
    SuiteError, WorkerDied
        As in :func:`run_plan`.
    """
    store = Store(Path(folder).expanduser().resolve())
    older = _find_older(plan, store)
    chosen: dict[tuple[Any, ...], Run] = {}
    for version, records in older.items():
        for run in sorted(records, key=lambda run: run.task):
            chosen.setdefault((version, run.configuration), run)
    runs = set(chosen.values())
    entries = [entry for entry in plan.entries if entry.run in runs]
    run_plan(
        Plan(plan.suite, entries, plan.absent, plan.data_home),
        folder,
        jobs=jobs,
        dask=dask,
        on_progress=on_progress,
    )
    for (version, _), run in chosen.items():
        _note_difference(store, run, older[version].pop(run))
    differences = _find_differences(plan, store)
    found = []
    for label in dict.fromkeys(label for label, _ in older):
        confirmed, remaining, compared = 0, 0, []
        for version in (version for version in older if version[0] == label):
            known = differences[version]
            compared += known
            if known and max(known) <= TOLERANCE:
                confirmed += sum(_confirm(store, run, old, known) for run, old in older[version].items())
            else:
                remaining += len(older[version])
        found.append(Confirmation(label, len(compared), max(compared, default=0.0), confirmed, remaining))
    return found


def _find_older(plan: Plan, store: Store) -> dict[_Version, dict[Run, Record]]:
    """Find runs that only older code has done, with the newest result of each."""
    keys: dict[str, list[str]] = defaultdict(list)
    for key in sorted(store.keys()):
        keys[task_of(key)].append(key)
    found: dict[_Version, dict[Run, Record]] = defaultdict(dict)
    for entry in plan.entries:
        run = entry.run
        if run.configuration in plan.absent or store.read(run.key) is not None:
            continue
        records = [record for record in store.records(keys[run.task]) if record["status"] == "done"]
        if records:
            newest = max(records, key=lambda record: str(record["provenance"].get("started", "")))
            found[entry.label, newest["run"].get("code")][run] = newest
    return found


def _note_difference(store: Store, run: Run, old: Record) -> None:
    """Write into the record of a run that was done again how it differs from before."""
    new = store.read(run.key)
    if new is None:
        return
    note = {
        "code": old["run"].get("code"),
        "difference": _compare(old["metrics"], new["metrics"]) if new["status"] == "done" else None,
    }
    store._write({**new, "compared": note})


def _compare(old: Mapping[str, float | None], new: Mapping[str, float | None]) -> float | None:
    """Return the largest difference of a metric that both have; None if one of them has no value or none is common."""
    common = [(old[name], new[name]) for name in old if name in new]
    if not common or any((a is None) != (b is None) for a, b in common):
        return None
    return max((abs(a - b) for a, b in common if a is not None and b is not None), default=0.0)


def _find_differences(plan: Plan, store: Store) -> dict[_Version, list[float]]:
    """Collect the differences that were noted, now or earlier: a difference is not forgotten when others agree."""
    found: dict[_Version, list[float]] = defaultdict(list)
    for entry in plan.entries:
        note = (store.read(entry.run.key) or {}).get("compared")
        if note is not None:
            difference = note["difference"]
            found[entry.label, note["code"]].append(math.inf if difference is None else difference)
    return found


def _confirm(store: Store, run: Run, old: Record, differences: list[float]) -> bool:
    """Write the record of older code as one of the present code; False if another process does the run."""
    note = {
        "code": old["run"].get("code"),
        "n_compared": len(differences),
        "largest_difference": max(differences),
    }
    with store._claim(run.key) as claimed:
        if not claimed or store.read(run.key) is not None:
            return False
        store._write(
            {
                **old,
                "format": RECORD_FORMAT,
                "key": run.key,
                "run": run.content,
                "confirmed": [*old.get("confirmed", ()), note],
            }
        )
    return True
