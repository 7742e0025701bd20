"""Records of runs, sorted into the cells of a suite: which method, on which configuration, did what."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from skpml.experiments._protocol import MethodEntry, Suite
from skpml.experiments._runs import Plan
from skpml.metrics import METRICS

Record = Mapping[str, Any]
State = Literal["done", "incomplete", "failed", "missing"]

_DENOISING = {
    "precision": "Precision of removal",
    "recall": "Recall of removal",
    "f1": "F1 of removal",
    "auc": "Denoising AUC",
}


@dataclass(frozen=True, kw_only=True)
class Cell:
    """All runs of one method on one configuration.

    Attributes
    ----------
    records : tuple of dict
        The finished runs, by seed and fold.
    failures : tuple of dict
        The failed ones.
    expected : int
        How many the suite asks for.
    """

    records: tuple[Record, ...]
    failures: tuple[Record, ...]
    expected: int

    @property
    def state(self) -> State:
        """``done`` only if no run is missing: a mean over fewer folds is no result to rank."""
        if len(self.records) >= self.expected:
            return "done"
        if self.records:
            return "incomplete"
        return "failed" if self.failures else "missing"

    def values(self, metric: str) -> NDArray[np.float64]:
        """The metric in each finished run; NaN where it has no value."""
        return np.array([_number(record["metrics"].get(metric)) for record in self.records])

    def measured(self, field: str) -> NDArray[np.float64]:
        """A measurement of the run itself, such as ``fit_seconds``; NaN where there is none."""
        return np.array([_number(record.get(field)) for record in self.records])


@dataclass(frozen=True, kw_only=True)
class Results:
    """The records of a suite in its own order, whatever order they came in.

    Attributes
    ----------
    suite : Suite
    cells : dict of (label, configuration) to Cell
        For every method without a sweep.
    sweeps : dict of (label, parameter) to list of (value, dict of configuration to Cell)
        For every method with one.
    absent : dict of configuration to str
        Configurations whose data are not here, and why.
    n_records, n_other : int
        Records given, and those of them that belong to other suites.
    """

    suite: Suite
    cells: dict[tuple[str, str], Cell]
    sweeps: dict[tuple[str, str], list[tuple[Any, dict[str, Cell]]]]
    absent: dict[str, str]
    n_records: int
    n_other: int

    def method(self, label: str) -> MethodEntry:
        """The entry of the suite with this label."""
        for entry in self.suite.methods:
            if entry.label == label:
                return entry
        known = ", ".join(entry.label for entry in self.suite.methods)
        raise ValueError(f"the suite {self.suite.name!r} has no method {label!r}; it has {known}.")

    def labels(self, *roles: str) -> list[str]:
        """Labels of the methods without a sweep that have one of these roles, or any."""
        with_cells = {label for label, _ in self.cells}
        return [
            entry.label
            for entry in self.suite.methods
            if entry.label in with_cells and (not roles or entry.role in roles)
        ]

    def all_cells(self) -> list[tuple[str, str, Cell]]:
        """Label, configuration and cell of everything, sweeps too; in the order of the suite."""
        found = [(label, configuration, cell) for (label, configuration), cell in self.cells.items()]
        for (label, parameter), points in self.sweeps.items():
            for value, cells in points:
                for configuration, cell in cells.items():
                    found.append((f"{label}, {parameter} = {value}", configuration, cell))
        return found

    def records(self) -> list[Record]:
        """All records of the suite, finished and failed."""
        return [record for _, _, cell in self.all_cells() for record in (*cell.records, *cell.failures)]


def metric_title(metric: str) -> str:
    """How a metric is called in a heading."""
    return METRICS[metric].title if metric in METRICS else _DENOISING.get(metric, metric)


def greater_is_better(metric: str) -> bool:
    """Whether more of a metric is better; true of all scores of denoising."""
    if metric not in METRICS and metric not in _DENOISING:
        raise ValueError(f"unknown metric {metric!r}; there are {', '.join((*METRICS, *_DENOISING))}.")
    return METRICS[metric].greater_is_better if metric in METRICS else True


def collect(
    suite: Suite,
    records: Iterable[Record],
    *,
    absent: Mapping[str, str] | None = None,
    data: Mapping[str, Any] | None = None,
    code: Mapping[str, Any] | None = None,
) -> Results:
    """Sort records into the cells of a suite.

    Parameters
    ----------
    suite : Suite
    records : iterable of dict
        In any order; those of other suites are counted and left out.
    absent : mapping of configuration to reason, optional
        Configurations whose data are not at hand; those that have records all the same are not called absent.
    data : mapping of configuration to facts of its data file, optional
        As in :class:`~skpml.experiments.Run`: records of an earlier content of the same file are left out.
    code : mapping of method to facts of its module, optional
        The same for methods of one's own.

    Returns
    -------
    Results
        The same for the same records, in whatever order they come.
    """
    shelf: dict[str, dict[tuple[int, int], list[Record]]] = {}
    held = sorted(records, key=_preference)
    for record in held:
        run = record["run"]
        place = (run["seed"], run.get("fold") or 0)
        shelf.setdefault(_identity(run, suite.kind), {}).setdefault(place, []).append(record)
    folds = [0] if suite.kind == "decomposition" else suite.only_folds or range(suite.folds)
    places = [(seed, fold) for seed in sorted(suite.seeds) for fold in sorted(folds)]
    used: set[str] = set()

    def cell(entry: MethodEntry, configuration: str, changed: Mapping[str, Any]) -> Cell:
        wanted = {
            "method": entry.name,
            "configuration": configuration,
            "parameters": {**entry.parameters_on(configuration), **changed},
            "tuning": None if entry.tuning is None else entry.tuning.model_dump(),
            "trained_on": "truth" if entry.role == "ceiling" else "candidates",
            "folds": suite.folds,
        }
        at_place = shelf.get(_identity(wanted, suite.kind), {})
        mine = [record for place in places for record in at_place.get(place, [])]
        mine = _of_one_content(mine, "data", configuration, data or {})
        mine = _of_one_content(mine, "code", entry.name, code or {})
        # Runs with and without a history are two, with one result: the first stays.
        mine = list({(r["run"]["seed"], r["run"].get("fold")): r for r in reversed(mine)}.values())[::-1]
        used.update(record["key"] for record in mine)
        return Cell(
            records=tuple(record for record in mine if record["status"] == "done"),
            failures=tuple(record for record in mine if record["status"] != "done"),
            expected=len(places),
        )

    cells: dict[tuple[str, str], Cell] = {}
    sweeps: dict[tuple[str, str], list[tuple[Any, dict[str, Cell]]]] = {}
    for entry in suite.methods:
        for parameter, values in entry.sweep.items():
            sweeps[entry.label, parameter] = [
                (value, {c: cell(entry, c, {parameter: value}) for c in suite.configurations})
                for value in values
            ]
        if not entry.sweep:
            cells.update({(entry.label, c): cell(entry, c, {}) for c in suite.configurations})
    found = {record["run"]["configuration"] for record in held if record["key"] in used}
    return Results(
        suite=suite,
        cells=cells,
        sweeps=sweeps,
        absent={
            name: reason
            for name, reason in (absent or {}).items()
            if name in suite.configurations and name not in found
        },
        n_records=len(held),
        n_other=len(held) - len(used),
    )


def collect_plan(plan: Plan, records: Iterable[Record]) -> Results:
    """Sort records into the cells of a plan's suite; those of earlier data files and code are left out."""
    return collect(plan.suite, records, absent=plan.absent, data=plan.data, code=plan.code)


def _of_one_content(
    records: list[Record], field: Literal["data", "code"], name: str, now: Mapping[str, Any]
) -> list[Record]:
    """The records of a data file or module as it is now; two contents under one name are never mixed."""
    contents = {_canonical(record["run"].get(field)) for record in records}
    if name in now:
        wanted = _canonical(now[name])
        return [record for record in records if _canonical(record["run"].get(field)) == wanted]
    if len(contents) > 1:
        raise ValueError(
            f"there are results for {len(contents)} different contents of {name}, and the file is not here "
            "to tell which one is meant; put it back, or keep the results of different files in different folders."
        )
    return records


def _identity(run: Mapping[str, Any], kind: str) -> str:
    """What makes runs belong together: everything but seed and fold."""
    fields = ("method", "configuration", "parameters", "tuning", "trained_on", "folds")
    # A decomposition has no folds, no classifier, and nothing to train on.
    kept = fields[:3] if kind == "decomposition" else fields
    return _canonical([run.get(field) for field in kept])


def _canonical(value: Any) -> str:
    return json.dumps(_as_floats(value), sort_keys=True)


def _as_floats(value: Any) -> Any:
    """1 and 1.0 are the same parameter, though not the same JSON."""
    if isinstance(value, Mapping):
        return {key: _as_floats(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_as_floats(each) for each in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _preference(record: Record) -> tuple[bool, bool, str]:
    """Finished runs first, then those that tell of their iterations."""
    return record["status"] != "done", record.get("history") is None, record["key"]


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)
