"""Records of runs as tables: one wide data frame per metric, and the facts behind it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skpml.experiments._metrics import ALL_METRICS, greater_is_better
from skpml.experiments._runs import Plan
from skpml.experiments._store import task_of
from skpml.experiments._suite import Suite, SuiteError, suggest
from skpml.tables import TableError

Record = Mapping[str, Any]

PUBLISHED = "published, not measured here"
_PUBLISHED_COLUMNS = ("metric", "configuration", "method", "mean", "std")

_LONGEST_MESSAGE = 300


class Summary(NamedTuple):
    """Statistics of the runs of one method on one configuration."""

    mean: float
    fold_std: float
    seed_std: float
    runs: int
    expected: int
    older: int
    state: str


@dataclass(frozen=True, kw_only=True)
class Cell:
    """All runs of one method on one configuration: finished, failed, and how many there should be.

    older: number of these runs that were done by older code.
    """

    records: tuple[Record, ...]
    failures: tuple[Record, ...]
    expected: int
    older: int = 0

    @property
    def state(self) -> str:
        """``done`` only if no run is missing: a mean over fewer folds is not ranked."""
        if self.records:
            return "done" if len(self.records) >= self.expected else "incomplete"
        return "failed" if self.failures else "missing"

    def summarize(self, metric: str, absent: bool = False) -> Summary:
        """Compute mean and standard deviations of a metric."""
        # NaN if the metric is undefined.
        values = np.array([record["metrics"].get(metric) for record in self.records], dtype=float)
        state = "absent" if absent and self.state == "missing" else self.state
        seeds = np.array([record["run"]["seed"] for record in self.records])
        if not np.isfinite(values).all():
            state, values, seeds = "undefined", values[:0], seeds[:0]
        groups = [values[seeds == seed] for seed in np.unique(seeds)]
        # Sums of squares around the mean of each seed, with the degrees of freedom that are left.
        freedom = len(values) - len(groups)
        within = sum(((group - group.mean()) ** 2).sum() for group in groups)
        return Summary(
            mean=float(values.mean()) if len(values) else float("nan"),
            fold_std=math.sqrt(within / freedom) if freedom > 0 else float("nan"),
            seed_std=float(np.std([g.mean() for g in groups], ddof=1)) if len(groups) > 1 else float("nan"),
            runs=len(self.records),
            expected=self.expected,
            older=self.older,
            state=state,
        )


STATISTICS = Summary._fields


@dataclass(frozen=True, kw_only=True)
class Results:
    """The records of a suite, in the order of the suite.

    Parameters
    ----------
    suite : Suite
        The experiment.
    cells : dict of (label, configuration) to Cell
        For every method without a sweep.
    sweeps : dict of (label, parameter) to dict of (value, configuration) to Cell
        For every method with a sweep; values are formatted as text.
    absent : dict of configuration to str
        Configurations without data and records, and why.
    n_records, n_other : int
        Number of records, and of those that do not belong to the suite.
    left_out : tuple of str
        Methods and configurations that :meth:`leave_out` removed.

    See Also
    --------
    collect : Makes this object from records.
    """

    suite: Suite
    cells: dict[tuple[str, str], Cell]
    sweeps: dict[tuple[str, str], dict[tuple[str, str], Cell]]
    absent: dict[str, str]
    n_records: int
    n_other: int
    left_out: tuple[str, ...] = ()

    def leave_out(self, names: Iterable[str]) -> Results:
        """Return the results without some methods and configurations.

        A method that is not finished then no longer excludes configurations from the ranks of the others.

        Parameters
        ----------
        names : iterable of str
            Labels of methods, and configurations.

        Returns
        -------
        Results
            The other methods on the other configurations.

        Raises
        ------
        SuiteError
            If the suite has no such method or configuration, or nothing is left.
        """
        names, suite = list(names), self.suite
        labels = [entry.label for entry in suite.methods]
        if unknown := [name for name in names if name not in (*labels, *suite.configurations)]:
            known = f"methods {', '.join(labels)}; configurations {', '.join(suite.configurations)}"
            raise SuiteError(
                f"the suite {suite.name} has no method or configuration {unknown[0]!r} to leave out; it has {known}"
            )
        methods = [entry for entry in suite.methods if entry.label not in names]
        configurations = [name for name in suite.configurations if name not in names]
        if not methods or not configurations:
            what = "configuration" if methods else "method"
            raise SuiteError(f"every {what} of the suite {suite.name} is left out")
        kept = {entry.label for entry in methods}
        control = suite.control if suite.control in kept else None
        update = {"methods": methods, "configurations": configurations, "control": control}
        return replace(
            self,
            suite=suite.model_copy(update=update),
            cells={p: cell for p, cell in self.cells.items() if p[0] in kept and p[1] in configurations},
            sweeps={
                swept: {place: cell for place, cell in cells.items() if place[1] in configurations}
                for swept, cells in self.sweeps.items()
                if swept[0] in kept
            },
            absent={name: why for name, why in self.absent.items() if name in configurations},
            left_out=(*self.left_out, *dict.fromkeys(names)),
        )

    def labels(self, *roles: str) -> list[str]:
        """List the methods without a sweep.

        Parameters
        ----------
        *roles : str
            Only methods with one of these roles; by default all.

        Returns
        -------
        list of str
            Labels.
        """
        entries = [entry for entry in self.suite.methods if not entry.sweep]
        return [entry.label for entry in entries if not roles or entry.role in roles]

    def role(self, label: str) -> str:
        """Return the role of a column of :meth:`table`.

        Parameters
        ----------
        label : str
            Label of the column.

        Returns
        -------
        {"method", "floor", "ceiling", "published"}
            Role of the method.
        """
        return "published" if label.endswith(f" ({PUBLISHED})") else self.suite.method(label).role

    def table(self, metric: str, *, published: pd.DataFrame | None = None) -> pd.DataFrame:
        """Summarize a metric in a wide table.

        Parameters
        ----------
        metric : str
            Name of the metric.
        published : DataFrame, optional
            Published results to add, as :func:`read_published` returns them.

        Returns
        -------
        DataFrame
            One row per configuration. Columns have two levels: the label of a method, and ``mean`` (over all runs),
            ``fold_std`` (sample standard deviation over folds within a seed), ``seed_std`` (of the means of the seeds;
            NaN with one seed), ``runs``, ``expected``, ``older`` (runs by older code) and ``state`` (``done``,
            ``incomplete``, ``failed``, ``missing``, ``absent``, ``undefined``, ``published`` or ``not published``).
        """
        greater_is_better(metric)
        names = self.suite.configurations
        table = _summarize(self.cells, names, self.labels(), metric, set(self.absent), transpose=True)
        if published is None:
            return table
        rows = published[(published["metric"] == metric) & published["configuration"].isin(names)]
        added: dict[Any, Any] = {}
        for method in dict.fromkeys(rows["method"]):
            found = rows[rows["method"] == method].set_index("configuration").reindex(names)
            states = np.where(found["mean"].notna(), "published", "not published")
            columns = (found["mean"], found["std"], float("nan"), 0, 0, 0, states)
            values = dict(zip(STATISTICS, columns, strict=True))
            added |= {(f"{method} ({PUBLISHED})", name): value for name, value in values.items()}
        return pd.concat([table, pd.DataFrame(added, index=table.index)], axis=1) if added else table

    def _sweep_table(self, label: str, parameter: str, metric: str) -> pd.DataFrame:
        """Summarize a metric as :meth:`table` does: one row per value of a parameter, configurations as columns."""
        cells = self.sweeps[label, parameter]
        values = list(dict.fromkeys(value for value, _ in cells))
        table = _summarize(cells, values, self.suite.configurations, metric, set(self.absent))
        return table.rename_axis(index=parameter)

    def _all_cells(self) -> Iterator[tuple[str, str, Cell]]:
        """Iterate over label, configuration and cell, sweeps included."""
        for (label, configuration), cell in self.cells.items():
            yield label, configuration, cell
        for (label, parameter), cells in self.sweeps.items():
            for (value, configuration), cell in cells.items():
                yield f"{label}, {parameter} = {value}", configuration, cell

    @property
    def older(self) -> dict[str, int]:
        """Number of runs of each method whose result is of older code; empty if there is none."""
        counts: Counter[str] = Counter()
        for label, _, cell in self._all_cells():
            counts[label] += cell.older
        return {label: count for label, count in counts.items() if count}

    def records(self) -> list[Record]:
        """List all records of the suite, finished and failed, each run once.

        Returns
        -------
        list of dict
            Records.
        """
        found = (record for _, _, cell in self._all_cells() for record in (*cell.records, *cell.failures))
        return list({record["key"]: record for record in found}.values())


def _summarize(
    cells: Mapping[tuple[str, str], Cell],
    rows: list[str],
    columns: list[str],
    metric: str,
    absent: set[str],
    transpose: bool = False,
) -> pd.DataFrame:
    """Summarize cells, which are keyed by (row, column), or by (column, row) if `transpose`."""
    content: dict[tuple[str, str], list[Any]] = {}
    for column in columns:
        keys = [(column, row) if transpose else (row, column) for row in rows]
        found = [cells[key].summarize(metric, key[1] in absent) for key in keys]
        content |= {(column, name): [each[place] for each in found] for place, name in enumerate(STATISTICS)}
    columns_index = pd.MultiIndex.from_product([columns, STATISTICS], names=["method", "statistic"])
    return pd.DataFrame(content, index=pd.Index(rows, name="configuration"), columns=columns_index)


def select(table: pd.DataFrame, statistic: str) -> pd.DataFrame:
    """Return one statistic of a wide table: rows × methods."""
    return pd.DataFrame(table.xs(statistic, axis=1, level=1) if table.shape[1] else None, index=table.index)


def read_published(path: str | Path) -> pd.DataFrame:
    """Read published results to show beside measured ones.

    Parameters
    ----------
    path : path-like
        A CSV file with the columns metric (such as ``average_precision``), configuration (as in the suite), method (any
        name), mean and std (may be empty). Other columns are ignored.

    Returns
    -------
    DataFrame
        The columns of the file.

    Raises
    ------
    TableError
        If a column is missing, a value is wrong or a result is listed twice; the message names line and column.
    """
    # Blank lines are kept, so that lines can be counted.
    table = pd.read_csv(path, dtype=str, keep_default_na=False, skip_blank_lines=False, encoding="utf-8-sig")
    if missing := [column for column in _PUBLISHED_COLUMNS if column not in table]:
        listed = ", ".join(_PUBLISHED_COLUMNS)
        raise TableError(f"there is no column {missing[0]!r}; published results need {listed}", path=path)
    table = table[(table != "").any(axis=1)]
    seen: dict[tuple[str, ...], int] = {}
    for index, row in zip(table.index, table.to_dict("records"), strict=True):
        for column, problem in _find_problems(row):
            raise TableError(problem, path=path, line=index + 2, column=column, value=row[column])
        first = seen.setdefault(tuple(row[name] for name in _PUBLISHED_COLUMNS[:3]), index + 2)
        if first != index + 2:
            raise TableError(f"this result is also in line {first}", path=path, line=index + 2)
    numbers = {name: pd.to_numeric(table[name]) for name in ("mean", "std")}
    return table.assign(**numbers).reset_index(drop=True)


def check_published(suite: Suite, published: pd.DataFrame | None) -> None:
    """Raise ValueError if published results are given, but none of them is about the suite."""
    if published is None:
        return
    own = published["metric"].isin(suite.metrics) & published["configuration"].isin(suite.configurations)
    if not own.any():
        names = f"metrics {', '.join(suite.metrics)}; configurations {', '.join(suite.configurations)}"
        raise ValueError(f"no published result is about the suite {suite.name}, which has {names}")


def _find_problems(row: Mapping[Any, str]) -> Iterator[tuple[str, str]]:
    """Yield columns of a row of published results with a wrong value, and what is wrong."""
    if row["metric"] not in ALL_METRICS:
        yield "metric", f"there is no metric {row['metric']!r}{suggest(row['metric'], ALL_METRICS)}"
    for name in ("configuration", "method"):
        if not row[name].strip():
            yield name, f"the {name} is missing"
    for name in ("mean", "std"):
        # Not every publication has a standard deviation.
        if not (name == "std" and row[name] == "") and not _is_finite(row[name]):
            yield name, f"{row[name]!r} is not a number"


def _is_finite(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def collect(plan: Plan, records: Iterable[Record]) -> Results:
    """Assign records to the methods and configurations of a plan.

    Parameters
    ----------
    plan : Plan
        The runs.
    records : iterable of dict
        In any order. A run without a record of the present code gets one of older code, if there is one; tables and
        reports say so. Records of other suites, and of earlier contents of data files, are only counted.

    Returns
    -------
    Results
        Records by method and configuration.
    """
    suite = plan.suite
    by_key = {record["key"]: record for record in records}
    # The latest of each task, whatever its code.
    by_task = {task_of(record["key"]): record for record in sorted(by_key.values(), key=_started)}
    found: dict[tuple[str, ...], list[Record]] = defaultdict(list)
    older: Counter[tuple[str, ...]] = Counter()
    used: dict[str, str] = {}
    for planned in plan.entries:
        run = planned.run
        if record := by_key.get(run.key) or by_task.get(run.task):
            parameter, value = planned.swept or ("", "")
            place = (planned.label, parameter, str(value), run.configuration)
            found[place].append(record)
            older[place] += record["key"] != run.key
            used[run.task] = run.configuration
    folds = len(suite.only_folds or range(suite.folds))

    def make_cell(*place: str) -> Cell:
        own = sorted(found[place], key=lambda record: (record["run"]["seed"], record["run"]["fold"] or 0))
        return Cell(
            records=tuple(record for record in own if record["status"] == "done"),
            failures=tuple(record for record in own if record["status"] != "done"),
            expected=len(suite.seeds) * folds,
            older=older[place],
        )

    return Results(
        suite=suite,
        cells={
            (entry.label, name): make_cell(entry.label, "", "", name)
            for entry in suite.methods
            if not entry.sweep
            for name in suite.configurations
        },
        sweeps={
            (entry.label, parameter): {
                (value, name): make_cell(entry.label, parameter, value, name)
                for value in map(str, values)
                for name in suite.configurations
            }
            for entry in suite.methods
            for parameter, values in entry.sweep.items()
        },
        absent={name: why for name, why in plan.absent.items() if name not in used.values()},
        n_records=len(by_key),
        n_other=sum(task_of(key) not in used for key in by_key),
    )


def _started(record: Record) -> str:
    return str((record.get("provenance") or {}).get("started", ""))


def gather_provenance(results: Results) -> dict[str, Any]:
    """Collect the facts about all runs of a suite that a report shows."""
    cells, records = list(results._all_cells()), results.records()
    done = [(label, record) for label, _, cell in cells for record in cell.records]
    failed = [(label, record) for label, _, cell in cells for record in cell.failures]
    facts = [record.get("provenance") or {} for record in records]
    packages = dict.fromkeys(package for fact in facts for package in fact.get("versions") or ())
    versions = {
        name: _distinct((fact.get("versions") or {}).get(name) for fact in facts) for name in packages
    }
    starts = _distinct(fact.get("started") or None for fact in facts)
    warnings: Counter[tuple[str, str]] = Counter()
    converged: dict[str, list[bool]] = defaultdict(list)
    for label, record in done:
        warnings.update((label, text) for text in dict.fromkeys(map(str, record.get("warnings") or ())))
        if record.get("converged") is not None:
            converged[label].append(record["converged"])
    return {
        "n_expected": sum(cell.expected for _, name, cell in cells if name not in results.absent),
        "n_done": len(done),
        "n_failed": len(failed),
        "n_other": results.n_other,
        "older": results.older,
        "commits": _count_commits(facts),
        "versions": versions,
        "settings": {name: _distinct(fact.get(name) for fact in facts) for name in ("threads", "platform")},
        "mixed_versions": [package for package, found in versions.items() if len(found) > 1],
        "mixed_data": find_mixed_data(records),
        "failures": group_failures(failed),
        "warnings": [(*about, count) for about, count in warnings.items()],
        "not_converged": {
            label: (found.count(False), len(found)) for label, found in converged.items() if False in found
        },
        "started": starts[:1] + starts[-1:],
    }


def _count_commits(facts: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Count runs by the commit of the library, the most common first."""
    counts: Counter[str] = Counter()
    for fact in facts:
        if commit := fact.get("commit"):
            counts[f"{commit['id'][:12]}{' with uncommitted changes' if commit['changed'] else ''}"] += 1
    return dict(counts.most_common())


def _distinct(values: Iterable[Any]) -> list[str]:
    return sorted({str(value) for value in values if value is not None})


def find_mixed_data(records: Iterable[Record]) -> list[str]:
    """List configurations whose results come from different data: a file was replaced between runs."""
    # Each seed draws its own noise, and so has its own data.
    seen: dict[tuple[str, int], set[str]] = defaultdict(set)
    for record in records:
        checksum = (record.get("provenance") or {}).get("data_checksum")
        if record["status"] == "done" and checksum is not None:
            seen[record["run"]["configuration"], record["run"]["seed"]].add(checksum)
    return sorted({name for (name, _), checksums in seen.items() if len(checksums) > 1})


def group_failures(failures: Iterable[tuple[str, Record]]) -> dict[tuple[str, str, str], list[Record]]:
    """Group failed runs by label, type of the error and message."""
    groups: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for label, record in failures:
        error = record.get("error") or {}
        message = " ".join(str(error.get("message", "")).split())
        if len(message) > _LONGEST_MESSAGE:
            message = f"{message[: _LONGEST_MESSAGE - 1]}…"
        groups[label, str(error.get("type", "error")), message].append(record)
    return groups


def place_of(run: Mapping[str, Any]) -> str:
    """Describe configuration, seed and fold of a run."""
    fold = "" if run.get("fold") is None else f", fold {run['fold']}"
    return f"{run['configuration']}, seed {run['seed']}{fold}"
