"""From a suite to its runs: a run is one fit and one score, identified by a hash of its content."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from skpml.datasets import DIGITS, REGISTRY, load_dataset, present_files
from skpml.experiments._fingerprint import fingerprint, local_modules
from skpml.experiments._store import key_of, task_of
from skpml.experiments._suite import MethodEntry, Suite, SuiteError, dataset_of, is_data_file, suggest


@dataclass
class _Imported:
    """What a custom module of this process was imported from, and the fingerprints of runs that it is right for."""

    folder: Path | None
    digests: dict[str, str]
    codes: set[str] = field(default_factory=set)


_IMPORTED: dict[str, _Imported] = {}
_CHANGED = "has changed since its runs were planned; repeat the command to do them with the new code"


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One fit and one score. Independent of the suite: suites with a common run share its result.

    A decomposition also scores the confidences of training rows. data: digest and reading options of a data file; None
    for data that are loaded by name. code: fingerprint of the code that does the run.
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
    code: str | None = None

    @property
    def content(self) -> dict[str, Any]:
        """All fields, for JSON."""
        return asdict(self)

    @cached_property
    def key(self) -> str:
        """Identity of the run, by its content."""
        return key_of(self.content)

    @cached_property
    def task(self) -> str:
        """Identity of what is to be done, by any code."""
        return task_of(self.key)

    def compute_code(self, folder: Path | None) -> str:
        """Return the fingerprint of the present code; `folder` is that of the suite."""
        from_file, tuned = self.data is not None, self.tuning is not None
        return fingerprint(self.method, folder=folder, tuned=tuned, from_file=from_file)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@dataclass(frozen=True)
class PlannedRun:
    """A run, the label of its method, and the parameter that a sweep sets in it with its value."""

    label: str
    run: Run
    swept: tuple[str, Any] | None = None


@dataclass(frozen=True)
class Plan:
    """The runs of a suite.

    Parameters
    ----------
    suite : Suite
        The experiment.
    entries : list of PlannedRun
        All runs that can be identified, on absent data too.
    absent : dict of configuration to reason
        Configurations whose data are missing.
    data_home : Path or None
        Folder of the data sets.
    """

    suite: Suite
    entries: list[PlannedRun]
    absent: dict[str, str]
    data_home: Path | None = None

    @cached_property
    def runs(self) -> list[Run]:
        """Every run whose data are present, once, in the order of the suite."""
        runs = dict.fromkeys(entry.run for entry in self.entries)
        return [run for run in runs if run.configuration not in self.absent]

    def groups(self) -> list[list[Run]]:
        """Group runs that share work, those on small data first.

        Most of a comparison is available early then; what takes hours comes last.

        Returns
        -------
        list of list of Run
            The runs of each configuration, seed and fold.
        """
        found: dict[Any, list[Run]] = {}
        for run in self.runs:
            found.setdefault((run.configuration, run.seed, run.folds, run.fold), []).append(run)
        return sorted(found.values(), key=lambda runs: _size(runs[0].configuration))

    def only(self, *, configurations: Sequence[str] = (), methods: Sequence[str] = ()) -> Plan:
        """Return the part of the plan with some configurations and methods.

        Parameters
        ----------
        configurations, methods : sequence of str
            Configurations and labels; empty means all.

        Returns
        -------
        Plan
            The part.

        Raises
        ------
        SuiteError
            If the suite has no such configuration or label.
        """
        names, labels = self.suite.configurations, [entry.label for entry in self.suite.methods]
        for kind, wanted, known in (("configuration", configurations, names), ("method", methods, labels)):
            if unknown := [name for name in wanted if name not in known]:
                facts = f"has no {kind} {unknown[0]!r}; it has {', '.join(known)}"
                raise SuiteError(f"the suite {self.suite.name} {facts}")
        kept = [e for e in self.entries if e.run.configuration in (configurations or names)]
        kept = [entry for entry in kept if entry.label in (methods or labels)]
        absent = {name: self.absent[name] for name in configurations or names if name in self.absent}
        return Plan(self.suite, kept, absent, self.data_home)


def expand(suite: Suite, *, data_home: str | Path | None = None) -> Plan:
    """List all runs of a suite.

    Parameters
    ----------
    suite : Suite
        The experiment.
    data_home : path-like, optional
        Folder of the data sets, as in :func:`skpml.datasets.load_dataset`.

    Returns
    -------
    Plan
        The runs.

    Examples
    --------
    >>> from skpml.experiments import expand, load_suite
    >>> plan = expand(load_suite("quick"))
    >>> plan.absent
    {}
    """
    absent = {name: why for name in suite.configurations if (why := _find_absent(suite, name, data_home))}
    codes: dict[Any, str] = {}
    entries = [
        PlannedRun(method.label, _with_code(Run(data=data, **place, **variant), suite.folder, codes), swept)
        for name in suite.configurations
        # The runs on a data file are identified by its content.
        if not (name in absent and is_data_file(name))
        for data in [_file_facts(suite, name)]
        for place in _places(suite, name)
        for method in suite.methods
        for variant, swept in _variants(method, name)
    ]
    home = None if data_home is None else Path(data_home).expanduser().resolve()
    return Plan(suite, entries, absent, home)


def _with_code(run: Run, folder: Path | None, codes: dict[Any, str]) -> Run:
    """Add the fingerprint of the present code; `codes` keeps those of similar runs."""
    kind = (run.method, run.tuning is None, run.data is None)
    if kind not in codes:
        codes[kind] = run.compute_code(folder)
    return replace(run, code=codes[kind])


def _size(configuration: str) -> int:
    """Features × labels × rows of a registered data set; others count as small."""
    facts = REGISTRY.get(dataset_of(configuration))
    return 0 if facts is None else (facts.n_rows or 0) * (facts.n_features or 1) * (facts.n_labels or 1)


def data_file(configuration: str, folder: Path | None) -> Path:
    """Return the path of a data file, relative to the file of the suite."""
    return (folder or Path()) / Path(configuration).expanduser()


def _find_absent(suite: Suite, configuration: str, data_home: str | Path | None) -> str | None:
    """Return why a configuration cannot be run, or None; does not open the data."""
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
    if not is_data_file(configuration):
        return None
    with data_file(configuration, suite.folder).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"file_sha256": digest, "options": dict(suite.reading.get(configuration, {}))}


def _places(suite: Suite, configuration: str) -> list[dict[str, Any]]:
    common: dict[str, Any] = {"configuration": configuration, "folds": suite.folds}
    if suite.kind == "decomposition":
        common["kind"] = "decomposition"
    folds: Iterable[int] = suite.only_folds or range(suite.folds)
    return [{**common, "seed": seed, "fold": fold} for seed in suite.seeds for fold in folds]


def _variants(
    method: MethodEntry, configuration: str
) -> Iterator[tuple[dict[str, Any], tuple[str, Any] | None]]:
    parameters = method.parameters_on(configuration)
    common: dict[str, Any] = {
        "method": method.name,
        "tuning": None if method.tuning is None else method.tuning.model_dump(exclude_none=True),
        "trained_on": "truth" if method.role == "ceiling" else "candidates",
        "history": method.history,
    }
    if not method.sweep:
        yield {**common, "parameters": parameters}, None
    for name, values in method.sweep.items():
        for value in values:
            yield {**common, "parameters": {**parameters, name: value}}, (name, value)


def check_code(run: Run, folder: Path | None) -> None:
    """Raise SuiteError if this process would not do the run with the code that it was planned with."""
    module = run.method.partition(":")[0]
    loaded = _IMPORTED.get(module) if module in sys.modules else None
    if loaded is not None and loaded.folder == folder and run.code in loaded.codes:
        # What was imported stays the same when the file changes.
        return
    if run.code is not None and run.code != run.compute_code(folder):
        raise SuiteError(f"the code of {run.method} {_CHANGED}")


def custom_estimator(name: str, folder: Path | None, run: Run | None = None) -> Any:
    """Create an estimator with default parameters from ``"package.module:Class"``, which may be next to the suite.

    Raises SuiteError if the class cannot be imported, is not an estimator, or its code has changed since `run` was
    planned.
    """
    module_name, _, class_name = name.partition(":")
    module = _import_module(name, folder, run)
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        found_types = [value for value in vars(module).values() if isinstance(value, type)]
        classes = [each.__name__ for each in found_types if each.__module__ == module_name]
        hint = suggest(class_name, classes) if classes else "; it defines no class"
        problem = f"{module_name} has no class {class_name!r}{hint}"
        raise SuiteError(f"the method {name!r} cannot be imported: {problem}")
    try:
        model = found()
    except TypeError as error:
        advice = f"give each argument a default ({error})"
        raise SuiteError(f"{name} cannot be created without arguments: {advice}") from error
    if not hasattr(model, "get_params"):
        raise SuiteError(f"{name} is not an estimator: derive it from skpml.base.BasePMLClassifier")
    return model


def _import_module(name: str, folder: Path | None, run: Run | None) -> ModuleType:
    """Import the module of a custom method; a long-running process may hold an earlier version of it."""
    module = name.partition(":")[0]
    code = None if run is None else run.code
    loaded = _IMPORTED.get(module) if module in sys.modules else None
    if loaded is not None and loaded.folder == folder and code in loaded.codes:
        return sys.modules[module]
    if run is not None:
        check_code(run, folder)
    digests = local_modules(name, folder)
    if digests and (loaded is None or (loaded.folder, loaded.digests) != (folder, digests)):
        loaded = None
        for each in digests:
            sys.modules.pop(each, None)
        importlib.invalidate_caches()
    if folder is not None and sys.path[:1] != [str(folder)]:
        sys.path.insert(0, str(folder))
    try:
        found = importlib.import_module(module)
    except Exception as error:
        # A custom module can raise anything.
        searched = "" if folder is None else f" (also searched in {folder})"
        what = str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        raise SuiteError(f"the method {name!r} cannot be imported{searched}: {what}") from error
    loaded = loaded or _Imported(folder, digests)
    if code is not None:
        loaded.codes.add(code)
    _IMPORTED[module] = loaded
    return found
