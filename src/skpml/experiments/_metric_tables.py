"""A metric over configurations and methods, with marks of the best and columns of what was published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from skpml.experiments._results import Cell, Results, greater_is_better, metric_title
from skpml.published import published_results

PUBLISHED = "published, not measured here"

Mark = Literal["best", "second", ""]


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of results.

    Attributes
    ----------
    label : str
    role : {"method", "floor", "ceiling", "published"}
        Only methods are ranked and marked as best; the others are there to compare with.
    tuning : str
        ``"label-free"``, ``"oracle"`` or ``"fixed"``: how its parameters were chosen. Empty for published results.
    """

    label: str
    role: str
    tuning: str

    @property
    def name(self) -> str:
        """A heading that does not hide where the figures come from."""
        return f"{self.label} ({PUBLISHED})" if self.role == "published" else self.label


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A cell of a table of results.

    Attributes
    ----------
    mean, std : float
        Over folds and seeds, the sample standard deviation; NaN where there is none.
    n, expected : int
        Runs behind the mean, and runs the suite asks for; both 0 for published results.
    state : str
        ``"done"``, ``"incomplete"``, ``"failed"``, ``"missing"``, ``"absent"``, ``"undefined"`` (the metric has no value
        in some run), ``"published"`` or ``"not published"``.
    mark : {"best", "second", ""}
        Among the methods of its row, as printed: equal figures share a mark.
    """

    mean: float
    std: float
    n: int
    expected: int
    state: str
    mark: Mark = ""

    @property
    def shown(self) -> bool:
        """Whether there is a figure to print."""
        return bool(np.isfinite(self.mean))


@dataclass(frozen=True, kw_only=True)
class MetricTable:
    """A metric over configurations (rows) and methods (columns)."""

    metric: str
    title: str
    greater_is_better: bool
    columns: tuple[Column, ...]
    rows: dict[str, tuple[Entry, ...]]
    digits: int

    @property
    def direction(self) -> str:
        """An arrow to the better side."""
        return "↑" if self.greater_is_better else "↓"

    def column(self, label: str, role: str | None = None) -> list[Entry]:
        """The entries of a column."""
        places = [
            place
            for place, column in enumerate(self.columns)
            if column.label == label and (column.role == role if role else column.role != "published")
        ]
        return [row[places[0]] for row in self.rows.values()]


def metric_table(
    results: Results, metric: str, *, with_published: bool = False, digits: int = 3
) -> MetricTable:
    """Mean and sample standard deviation of a metric, for each method on each configuration.

    Parameters
    ----------
    results : Results
        As :func:`collect` gives them.
    metric : str
    with_published : bool, default=False
        Add what the paper prints as columns of their own, marked as not measured here.
    digits : int, default=3
        Decimals to print; marks go by the printed figures.
    """
    better, configurations = greater_is_better(metric), list(results.suite.configurations)
    columns = [
        Column(label=label, role=results.method(label).role, tuning=tuning_of(results, label))
        for label in results.labels()
    ]
    rows: dict[str, list[Entry]] = {
        name: [table_entry(results, column.label, name, metric) for column in columns]
        for name in configurations
    }
    for row in rows.values():
        places = [p for p, column in enumerate(columns) if column.role == "method" and row[p].state == "done"]
        for place, mark in zip(places, marks([row[p].mean for p in places], better, digits), strict=True):
            row[place] = replace(row[place], mark=mark)
    if with_published:
        printed = {
            (r.configuration, r.method): r
            for r in published_results()
            if r.metric == metric and r.configuration in rows
        }
        for method in dict.fromkeys(method for _, method in printed):
            columns.append(Column(label=method, role="published", tuning=""))
            for name, row in rows.items():
                result = printed.get((name, method))
                found = (
                    (result.mean, result.std, "published") if result else (np.nan, np.nan, "not published")
                )
                row.append(Entry(mean=found[0], std=found[1], n=0, expected=0, state=found[2]))
    return MetricTable(
        metric=metric,
        title=metric_title(metric),
        greater_is_better=better,
        columns=tuple(columns),
        rows={name: tuple(row) for name, row in rows.items()},
        digits=digits,
    )


def marks(values: Sequence[float], better_is_greater: bool, digits: int) -> list[Mark]:
    """Best and second of a row as printed: equal figures share their mark; one figure alone has none."""
    printed = [round(value, digits) for value in values]
    order = sorted(set(printed), reverse=better_is_greater)
    if len(printed) < 2:
        return [""] * len(printed)
    second = order[1] if len(order) > 1 else None
    return ["best" if v == order[0] else "second" if v == second else "" for v in printed]


def tuning_of(results: Results, label: str) -> str:
    """How the parameters of a method were chosen, in a word."""
    tuning = results.method(label).tuning
    return "fixed" if tuning is None else tuning.selector


def entry_of(cell: Cell, metric: str) -> Entry:
    """Mean and sample standard deviation of a cell."""
    values = cell.values(metric)
    state: str = cell.state
    if len(values) and not np.isfinite(values).all():
        state, values = "undefined", values[:0]
    return Entry(
        mean=float(values.mean()) if len(values) else float("nan"),
        std=float(values.std(ddof=1)) if len(values) > 1 else float("nan"),
        n=len(cell.records),
        expected=cell.expected,
        state=state,
    )


def table_entry(results: Results, label: str, configuration: str, metric: str) -> Entry:
    """The entry of a method on a configuration."""
    entry = entry_of(results.cells[label, configuration], metric)
    if entry.state == "missing" and configuration in results.absent:
        return replace(entry, state="absent")
    return entry


def is_whole(entry: Entry) -> bool:
    """Whether a result is there to be ranked: no run of it is missing."""
    return entry.state in ("done", "published")
