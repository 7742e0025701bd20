"""From a suite to its runs: one run is one fit and one score, named by a hash of its content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from skpml.datasets import DIGITS, REGISTRY, load_dataset, present_files
from skpml.experiments._consistency import dataset_of, is_data_file
from skpml.experiments._own_code import code_facts
from skpml.experiments._protocol import MethodEntry, Suite, SuiteError

_KEY_DIGITS = 24


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """What one run does. Nothing of the suite it belongs to: suites that ask for the same run share its result.

    Attributes
    ----------
    configuration : str
    seed : int
        Of noise and folds.
    folds : int
        0 for a decomposition, which has no folds.
    fold : int or None
    method : str
    parameters : dict
    tuning : dict or None
    trained_on : {"candidates", "truth"}
    history : bool
    kind : {"classification", "decomposition"}
    data : dict or None
        Digest and reading options of a data file; None for data that are loaded by name.
    code : dict or None
        Digest of the module of a method of one's own; None for all others.
    """

    configuration: str
    seed: int = 0
    folds: int = 10
    fold: int | None = 0
    method: str
    parameters: dict[str, Any] = field(default_factory=dict)
    tuning: dict[str, Any] | None = None
    trained_on: Literal["candidates", "truth"] = "candidates"
    history: bool = False
    kind: Literal["classification", "decomposition"] = "classification"
    data: dict[str, Any] | None = None
    code: dict[str, Any] | None = None

    @property
    def content(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        content = asdict(self)
        if self.code is None:
            # Left out, not None: so the keys stay that runs had before there was such a field.
            del content["code"]
        return content

    @cached_property
    def key(self) -> str:
        """Name of the run: the first 24 hexadecimal digits of the SHA-256 of its content."""
        canonical = json.dumps(self.content, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(canonical.encode()).hexdigest()[:_KEY_DIGITS]

    @property
    def group(self) -> tuple[str, int, int, int | None]:
        """What runs have in common that can share work: data, noise and fold."""
        return self.configuration, self.seed, self.folds, self.fold

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        where = f"{self.configuration}, seed {self.seed}"
        where += "" if self.fold is None else f", fold {self.fold} of {self.folds}"
        shown = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{self.method}({shown}) on {where}"


@dataclass(frozen=True)
class PlannedRun:
    """A run in its place in a suite.

    Attributes
    ----------
    label : str
        Label of the method.
    run : Run
    swept : tuple of str and value, or None
        The parameter that the sweep sets in this run, and its value.
    """

    label: str
    run: Run
    swept: tuple[str, Any] | None = None


@dataclass(frozen=True)
class Plan:
    """The runs of a suite whose data are at hand, and the configurations whose data are not.

    Attributes
    ----------
    suite : Suite
    entries : list of PlannedRun
    absent : dict of configuration to reason
    data_home : Path or None
        Where data sets are loaded from.
    """

    suite: Suite
    entries: list[PlannedRun]
    absent: dict[str, str]
    data_home: Path | None = None

    @cached_property
    def runs(self) -> list[Run]:
        """Every run once, in the order of the suite."""
        return list(dict.fromkeys(entry.run for entry in self.entries))

    @property
    def data(self) -> dict[str, dict[str, Any] | None]:
        """Facts of the data of each configuration that is at hand, as in :class:`Run`."""
        return {run.configuration: run.data for run in self.runs}

    @property
    def code(self) -> dict[str, dict[str, Any]]:
        """Facts of the code of each method of one's own that is at hand, by its name, as in :class:`Run`."""
        return {run.method: run.code for run in self.runs if run.code is not None}

    def groups(self) -> list[list[Run]]:
        """The runs of each configuration, seed and fold, which share work; those on small data first.

        So most of a comparison is there early, and what takes hours comes last.
        """
        found: dict[Any, list[Run]] = {}
        for run in self.runs:
            found.setdefault(run.group, []).append(run)
        return sorted(found.values(), key=lambda runs: _size(runs[0].configuration))

    def only(self, *, configurations: Sequence[str] = (), methods: Sequence[str] = ()) -> Plan:
        """The part of the plan with these configurations and labels; none given means all.

        Raises
        ------
        SuiteError
            If the suite has no such configuration or label.
        """
        for what, asked, known in (
            ("configuration", configurations, self.suite.configurations),
            ("method", methods, [entry.label for entry in self.suite.methods]),
        ):
            for name in asked:
                if name not in known:
                    raise SuiteError(
                        f"the suite {self.suite.name} has no {what} {name!r}; it has {', '.join(known)}"
                    )
        entries = [
            entry
            for entry in self.entries
            if (not configurations or entry.run.configuration in configurations)
            and (not methods or entry.label in methods)
        ]
        absent = {
            name: reason
            for name, reason in self.absent.items()
            if not configurations or name in configurations
        }
        return Plan(self.suite, entries, absent, self.data_home)


def expand(suite: Suite, *, data_home: str | Path | None = None) -> Plan:
    """All runs of a suite, less those whose data are absent.

    Parameters
    ----------
    suite : Suite
    data_home : path-like, optional
        The data folder, as in :func:`skpml.datasets.load_dataset`.

    Examples
    --------
    >>> from skpml.experiments import expand, load_suite
    >>> plan = expand(load_suite("quick"))
    >>> plan.absent
    {}
    """
    absent: dict[str, str] = {}
    digests: dict[str, dict[str, Any] | None] = {}
    for configuration in suite.configurations:
        reason = _absent(suite, configuration, data_home)
        if reason is not None:
            absent[configuration] = reason
        else:
            digests[configuration] = _file_facts(suite, configuration)
    code = {method.name: code_facts(method.name, suite.folder) for method in suite.methods}
    entries = [
        PlannedRun(method.label, Run(data=data, code=code[method.name], **common, **of_method), swept)
        for configuration, data in digests.items()
        for common in _places(suite, configuration)
        for method in suite.methods
        for of_method, swept in _variants(method, configuration)
    ]
    home = None if data_home is None else Path(data_home).expanduser().resolve()
    return Plan(suite, entries, absent, home)


def _size(configuration: str) -> int:
    """Cells of features times labels, of data sets that are known without opening them; others count as small."""
    facts = REGISTRY.get(dataset_of(configuration))
    if facts is None or facts.n_rows is None:
        return 0
    return facts.n_rows * (facts.n_features or 1) * (facts.n_labels or 1)


def data_file(configuration: str, folder: Path | None) -> Path:
    """Where the data file of a configuration lies: relative to the suite's own file."""
    path = Path(configuration).expanduser()
    return path if folder is None else folder / path


def _absent(suite: Suite, configuration: str, data_home: str | Path | None) -> str | None:
    """Why a configuration cannot be run, or None; does not open the data."""
    if is_data_file(configuration):
        path = data_file(configuration, suite.folder)
        return None if path.is_file() else f"there is no file {path}"
    present = {DIGITS.name, *present_files(data_home)}
    if configuration in present or dataset_of(configuration) in present:
        return None
    try:
        load_dataset(configuration, data_home=data_home)
    except LookupError as error:
        return str(error.args[0] if error.args else error)
    return None


def _file_facts(suite: Suite, configuration: str) -> dict[str, Any] | None:
    """What tells one data file from another of the same name."""
    if not is_data_file(configuration):
        return None
    with data_file(configuration, suite.folder).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"file_sha256": digest, "options": dict(suite.reading.get(configuration, {}))}


def _places(suite: Suite, configuration: str) -> Iterator[dict[str, Any]]:
    for seed in suite.seeds:
        place: dict[str, Any] = {"configuration": configuration, "seed": seed}
        if suite.kind == "decomposition":
            yield {**place, "folds": 0, "fold": None, "kind": "decomposition"}
            continue
        for fold in range(suite.folds) if suite.only_folds is None else suite.only_folds:
            yield {**place, "folds": suite.folds, "fold": fold}


def _variants(
    method: MethodEntry, configuration: str
) -> Iterator[tuple[dict[str, Any], tuple[str, Any] | None]]:
    parameters = method.parameters_on(configuration)
    common: dict[str, Any] = {
        "method": method.name,
        "tuning": None if method.tuning is None else method.tuning.model_dump(),
        "trained_on": "truth" if method.role == "ceiling" else "candidates",
        "history": method.history,
    }
    if not method.sweep:
        yield {**common, "parameters": parameters}, None
    for name, values in method.sweep.items():
        for value in values:
            yield {**common, "parameters": {**parameters, name: value}}, (name, value)
