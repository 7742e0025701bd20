"""What a reader needs to judge results: where they come from, what failed, what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from skpml.experiments._results import Cell, Record, Results

_LONGEST_MESSAGE = 300


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Runs of one method that failed with one message."""

    label: str
    places: tuple[str, ...]
    kind: str
    message: str
    traceback: str


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Facts about the runs behind a report.

    Attributes
    ----------
    n_expected, n_done, n_failed, n_other : int
        Runs the suite asks for (those on absent data left out), finished and failed ones, records of other suites.
    versions, settings : dict of str to list of str
        Every version of each package, every number of threads, every platform; more than one of a kind is worth a word.
    mixed_data : dict of configuration to int
        Configurations whose runs did not all see the same data, and how many kinds of data they saw.
    failures : list of Failure
    warnings : list of (label, message, number of runs)
    not_converged : dict of label to (runs, of how many)
    started : tuple of str
        First and last start of a run; empty without runs.
    """

    n_expected: int
    n_done: int
    n_failed: int
    n_other: int
    versions: dict[str, list[str]]
    settings: dict[str, list[str]]
    mixed_data: dict[str, int]
    failures: list[Failure]
    warnings: list[tuple[str, str, int]]
    not_converged: dict[str, tuple[int, int]]
    started: tuple[str, ...]

    @property
    def mixed(self) -> list[str]:
        """Packages of which the runs used more than one version."""
        return [name for name, versions in self.versions.items() if len(versions) > 1]


def gather_provenance(results: Results) -> Provenance:
    """The facts about all runs of a suite."""
    cells = results.all_cells()
    done = _distinct(record for _, _, cell in cells for record in cell.records)
    failed = _distinct(record for _, _, cell in cells for record in cell.failures)
    facts = [record.get("provenance") or {} for record in (*done, *failed)]
    versions = [fact.get("versions") or {} for fact in facts]
    packages = dict.fromkeys(package for each in versions for package in each)
    starts = [str(fact["started"]) for fact in facts if fact.get("started")]
    checksums: dict[str, set[tuple[int, str]]] = {}
    for record in done:
        checksum = (record.get("provenance") or {}).get("data_checksum")
        checksums.setdefault(record["run"]["configuration"], set()).add(
            (record["run"]["seed"], str(checksum))
        )
    return Provenance(
        n_expected=sum(cell.expected for _, name, cell in cells if name not in results.absent),
        n_done=sum(len(cell.records) for _, _, cell in cells),
        n_failed=sum(len(cell.failures) for _, _, cell in cells),
        n_other=results.n_other,
        versions={
            package: sorted({str(each[package]) for each in versions if package in each})
            for package in packages
        },
        settings={
            name: sorted({str(fact[name]) for fact in facts if fact.get(name) is not None})
            for name in ("threads", "platform")
        },
        mixed_data={
            configuration: len(seen)
            for configuration, seen in checksums.items()
            # Each seed draws its own noise, and so has data of its own.
            if len(seen) > len({seed for seed, _ in seen})
        },
        failures=_failures(cells),
        warnings=_warnings(cells),
        not_converged=_not_converged(cells),
        started=(min(starts), max(starts)) if starts else (),
    )


def chosen_values(records: Iterable[Record]) -> dict[str, list[tuple[Any, int]]]:
    """For each tuned parameter the values chosen, the most frequent first, and how often."""
    counts: dict[str, Counter[Any]] = {}
    for record in records:
        for name, value in (record.get("chosen") or {}).items():
            counts.setdefault(name, Counter())[str(value)] += 1
    return {
        name: sorted(counter.items(), key=lambda item: (-item[1], item[0]))
        for name, counter in counts.items()
    }


def _failures(cells: list[tuple[str, str, Cell]]) -> list[Failure]:
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for label, _, cell in cells:
        for record in cell.failures:
            error = record.get("error") or {}
            key = (label, str(error.get("type", "error")), str(error.get("message", "")))
            groups.setdefault(key, []).append(record)
    return [
        Failure(
            label=label,
            places=tuple(place_of(record["run"]) for record in records),
            kind=kind,
            message=shortened(message),
            traceback=str((records[0].get("error") or {}).get("traceback") or ""),
        )
        for (label, kind, message), records in groups.items()
    ]


def _warnings(cells: list[tuple[str, str, Cell]]) -> list[tuple[str, str, int]]:
    counts: Counter[tuple[str, str]] = Counter()
    for label, _, cell in cells:
        for record in cell.records:
            counts.update(
                (label, message) for message in dict.fromkeys(map(str, record.get("warnings") or ()))
            )
    return [(label, message, count) for (label, message), count in counts.items()]


def _not_converged(cells: list[tuple[str, str, Cell]]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for label, _, cell in cells:
        missed, known = found.get(label, (0, 0))
        told = [record["converged"] for record in cell.records if record.get("converged") is not None]
        found[label] = (missed + told.count(False), known + len(told))
    return {label: counts for label, counts in found.items() if counts[0]}


def place_of(run: Mapping[str, Any]) -> str:
    """Where a run was done, for people; folds are counted as in the files."""
    fold = "" if run.get("fold") is None else f", fold {run['fold']}"
    return f"{run['configuration']}, seed {run['seed']}{fold}"


def shortened(message: str) -> str:
    """The beginning of a long message on one line; the record of the run holds all of it."""
    text = " ".join(message.split())
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[: _LONGEST_MESSAGE - 1]}…"


def _distinct(records: Iterable[Record]) -> list[Record]:
    """Every run once: a sweep and a method, or two sweeps, can share one."""
    return list({record["key"]: record for record in records}.values())
