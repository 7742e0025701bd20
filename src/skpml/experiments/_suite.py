"""A suite: an experiment described in TOML and validated by pydantic."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path, PurePath
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from skpml.datasets import READERS, reader_options, split_configuration
from skpml.experiments._metrics import DENOISING, RUN_METRICS
from skpml.registry import get_method, list_methods

PAPER_METRICS = ("hamming_loss", "ranking_loss", "one_error", "coverage", "average_precision")

# More folds than rows would have are listed before the data are seen.
_MOST_FOLDS = 10_000
_SHIPPED = "skpml.experiments.suites"
_CUSTOM_CLASS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")

# Location of a value in the file, such as ("methods", 0, "name").
KeyPath = tuple[str | int, ...]
Grid = dict[str, Annotated[list[Any], Field(min_length=1)]]


class SuiteError(ValueError):
    """Raised for an invalid suite.

    Parameters
    ----------
    problem : str
        What is wrong.
    source : str, default=""
        The file of the suite.
    key : str, default=""
        Key path of the wrong value, such as ``"methods[0].tuning.grid"``. Positions start at 0.
    """

    about_a_suite = True

    def __init__(self, problem: str, source: str = "", key: str = "") -> None:
        super().__init__(": ".join(filter(None, (source, key, problem))))
        self.problem, self.source, self.key = problem, source, key

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problem, self.source, self.key)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Tuning(_Part):
    """How the parameters of a method are chosen inside each training fold, with or without true labels."""

    selector: Literal["label-free", "oracle"] = "label-free"
    grid: Grid = Field(min_length=1)
    inner_folds: int = Field(default=3, ge=2, le=_MOST_FOLDS)
    search: Literal["grid", "halving"] = "grid"
    max_rows: int | None = Field(default=None, ge=20)


class MethodEntry(_Part):
    """A method of a suite; its label is its name by default.

    Parameters by data: those of a configuration override those of a data set, which override `parameters`. A sweep is one
    run for each value, one parameter at a time. A ceiling is trained on true labels.
    """

    name: str
    label: str = ""
    role: Literal["method", "floor", "ceiling"] = "method"
    parameters: dict[str, Any] = {}
    by_data: dict[str, dict[str, Any]] = {}
    tuning: Tuning | None = None
    sweep: Grid = {}
    history: bool = False

    @model_validator(mode="before")
    @classmethod
    def _use_name_as_label(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and "label" not in values and "name" in values:
            return {**values, "label": values["name"]}
        return values

    @property
    def tuned(self) -> Literal["fixed", "label-free", "oracle"]:
        """How its parameters are chosen; a ceiling is tuned on true labels."""
        if self.tuning is None:
            return "fixed"
        return "oracle" if self.role == "ceiling" else self.tuning.selector

    def parameters_on(self, configuration: str) -> dict[str, Any]:
        """Return the parameters for a configuration, before any sweep or tuning."""
        chosen = dict(self.parameters)
        for key in dict.fromkeys((dataset_of(configuration), configuration)):
            chosen |= self.by_data.get(key, {})
        return chosen


class Suite(_Part):
    """An experiment: configurations × seeds × folds × methods, and what to report.

    Parameters
    ----------
    name, title, description : str
        Texts of the report.
    kind : {"comparison", "ablation", "sensitivity", "convergence", "decomposition"}
        Which figures the report contains.
    configurations : list of str
        Names for :func:`skpml.datasets.load_dataset`, or paths of data files relative to the file of the suite.
    reading : mapping of path to options
        Options of :func:`skpml.datasets.read_dataset` for data files among the configurations.
    seeds : list of int
        Seeds of noise and folds.
    folds : int
        Number of shuffled folds, drawn after the noise.
    only_folds : list of int or None
        Run only these folds.
    metrics : list of str
        Metrics in tables; records contain all metrics. A decomposition also has precision, recall, F1 and AUC of removing
        false candidates from the training rows.
    control : str or None
        Label of the method that the others are compared with.
    methods : list of MethodEntry or dict
        Methods with their parameters, tuning and role.
    """

    name: str = Field(min_length=1)
    title: str = ""
    description: str = ""
    kind: Literal["comparison", "ablation", "sensitivity", "convergence", "decomposition"] = "comparison"
    configurations: list[str] = Field(min_length=1)
    reading: dict[str, dict[str, Any]] = {}
    seeds: list[Annotated[int, Field(ge=0, lt=2**31)]] = Field(default=[0], min_length=1)
    folds: int = Field(default=10, ge=2, le=_MOST_FOLDS)
    only_folds: list[int] | None = Field(default=None, min_length=1)
    metrics: list[str] = Field(default=[], min_length=1)
    control: str | None = None
    methods: list[MethodEntry] = Field(min_length=1)

    # Set by load_suite; no private attributes of pydantic, which add a public method.
    _folder: ClassVar[Path | None] = None
    _source: ClassVar[str] = ""

    @model_validator(mode="before")
    @classmethod
    def _use_default_metrics(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and "metrics" not in values:
            default = ("average_precision", "auc") if values.get("kind") == "decomposition" else PAPER_METRICS
            return {**values, "metrics": list(default)}
        return values

    @model_validator(mode="after")
    def _check_consistent(self) -> Self:
        for path, problem in _find_contradictions(self):
            raise SuiteError(problem, key=_format_key(path))
        return self

    @property
    def folder(self) -> Path | None:
        """Folder of the file: base of relative paths and of custom modules."""
        return self._folder

    def method(self, label: str) -> MethodEntry:
        """Return the method with a label.

        Parameters
        ----------
        label : str
            Label of the method.

        Returns
        -------
        MethodEntry
            Its settings.

        Raises
        ------
        ValueError
            If there is none.
        """
        entries = {entry.label: entry for entry in self.methods}
        if label not in entries:
            raise ValueError(
                f"the suite {self.name!r} has no method {label!r}; choose from {', '.join(entries)}"
            )
        return entries[label]

    def _error_at(self, path: KeyPath, problem: str) -> SuiteError:
        return SuiteError(problem, self._source or self.name, _format_key(path))


def shipped_suites() -> list[str]:
    """List the names of the included suites.

    Returns
    -------
    list of str
        Names for :func:`load_suite`.

    Examples
    --------
    >>> from skpml.experiments import shipped_suites
    >>> "paper" in shipped_suites()
    True
    """
    return sorted(entry.name[:-5] for entry in files(_SHIPPED).iterdir() if entry.name.endswith(".toml"))


def load_suite(name: str | Path) -> Suite:
    """Load an included suite by name, or a custom one by the path of its TOML file.

    Parameters
    ----------
    name : str or path-like
        Name or path.

    Returns
    -------
    Suite
        The experiment.

    Raises
    ------
    SuiteError
        If there is no such suite, or it is invalid; the message names the file and the key.

    Examples
    --------
    >>> from skpml.experiments import load_suite
    >>> len(load_suite("paper").configurations)
    26
    """
    if str(name) in shipped_suites():
        text = files(_SHIPPED).joinpath(f"{name}.toml").read_text(encoding="utf-8")
        return parse_suite(text, source=f"{name}.toml")
    path = Path(name)
    if path.suffix != ".toml":
        is_file = path.with_name(f"{path.name}.toml").is_file()
        near = [f"{name}.toml"] if is_file else get_close_matches(str(name), shipped_suites(), n=1)
        problem = f"there is no suite {str(name)!r}: {f'did you mean {near[0]!r}? ' if near else ''}Included suites are "
        advice = "; for a custom suite pass the path of a .toml file"
        raise SuiteError(f"{problem}{', '.join(shipped_suites())}{advice}")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SuiteError(f"there is no file {path}") from None
    except UnicodeDecodeError:
        raise SuiteError("the file is not UTF-8", str(path)) from None
    suite = parse_suite(text, source=str(path))
    object.__setattr__(suite, "_folder", path.resolve().parent)
    return suite


def parse_suite(text: str, *, source: str) -> Suite:
    """Parse TOML text; `source` is the name of the file in error messages."""
    try:
        suite = Suite.model_validate(tomllib.loads(text))
    except RecursionError:
        raise SuiteError("its values are nested too deeply", source) from None
    except tomllib.TOMLDecodeError as error:
        raise SuiteError(f"this is not TOML: {error}", source) from None
    except ValidationError as error:
        # A mistyped key is also missing under its right name: report the typo.
        first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        cause = first.get("ctx", {}).get("error")
        if isinstance(cause, SuiteError):
            raise SuiteError(cause.problem, source, cause.key) from None
        raise SuiteError(_describe_problem(first), source, _format_key(first["loc"])) from None
    object.__setattr__(suite, "_source", source)
    return suite


def _format_key(path: KeyPath) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


def _describe_problem(error: Any) -> str:
    if error["type"] == "extra_forbidden":
        parents = error["loc"][:-1]
        model = Tuning if "tuning" in parents else MethodEntry if "methods" in parents else Suite
        return f"unknown key{suggest(str(error['loc'][-1]), model.model_fields)}"
    if error["type"] == "missing":
        return "this key is missing"
    message = str(error["msg"])
    return f"{message[:1].lower()}{message[1:]}, got {error['input']!r}"


def dataset_of(configuration: str) -> str:
    """Return ``"emotions"`` for ``"emotions-3"`` and ``"emotions-3-label"``."""
    return split_configuration(configuration)[0]


def is_data_file(configuration: str) -> bool:
    """Whether a configuration is the path of a file and not a name."""
    return configuration.lower().endswith(tuple(READERS))


def suggest(word: str, choices: Iterable[str]) -> str:
    """Return a hint for a misspelled word: the closest choice, or all choices."""
    known = sorted(choices)
    return find_close(word, known) or f"; choose from {', '.join(known)}"


def find_close(word: str, choices: Iterable[str], end: str = "") -> str:
    """Ask whether the closest choice, with this end, was meant; empty if none is close."""
    near = get_close_matches(word, list(choices), n=1)
    return f"; did you mean {near[0] + end!r}?" if near else ""


def _find_contradictions(suite: Suite) -> Iterator[tuple[KeyPath, str]]:
    """Yield problems that the types of the single values do not show."""
    for key in ("configurations", "seeds", "metrics"):
        for position, value in enumerate(values := getattr(suite, key)):
            if value in values[:position]:
                yield (key, position), f"{value!r} is listed twice"
    known = (*RUN_METRICS, *(DENOISING if suite.kind == "decomposition" else ()))
    for position, metric in enumerate(suite.metrics):
        if metric not in known:
            yield ("metrics", position), f"there is no metric {metric!r}{suggest(metric, known)}"
    for fold in suite.only_folds or ():
        if not 0 <= fold < suite.folds:
            yield ("only_folds",), f"there is no fold {fold}; folds are numbered 0 to {suite.folds - 1}"
    for path, options in suite.reading.items():
        if path not in suite.configurations or not is_data_file(path):
            yield ("reading", path), "this is not a data file among the configurations"
            continue
        known_options = reader_options(PurePath(path).suffix.lower())
        for option in options:
            if option not in known_options:
                yield ("reading", path, option), f"unknown option{suggest(option, known_options)}"
    labels = [entry.label for entry in suite.methods]
    for position, entry in enumerate(suite.methods):
        if entry.label in labels[:position]:
            key = "label" if entry.label != entry.name else "name"
            yield ("methods", position, key), f"two methods have the label {entry.label!r}"
        yield from _find_method_contradictions(suite, entry, ("methods", position))
    if suite.control is not None and suite.control not in labels:
        yield ("control",), f"no method has the label {suite.control!r}{suggest(suite.control, labels)}"


def _find_method_contradictions(
    suite: Suite, entry: MethodEntry, place: KeyPath
) -> Iterator[tuple[KeyPath, str]]:
    custom, choices = _CUSTOM_CLASS.fullmatch(entry.name) is not None, list_methods()
    # "my_method.py:Mine" and "my_method.Mine" mean "my_method:Mine".
    misspelled = re.fullmatch(r"([A-Za-z_][\w.]*?)(?:\.py:|\.(?!py$))([A-Za-z_]\w*)", entry.name)
    if misspelled:
        hint = f"; did you mean '{misspelled[1]}:{misspelled[2]}'?"
        yield (*place, "name"), f"there is no method {entry.name!r}{hint}"
    elif not custom and entry.name not in choices:
        hint = '; a custom class is "package.module:Class"'
        yield (*place, "name"), f"there is no method {entry.name!r}{suggest(entry.name, choices)}{hint}"
    datasets = {dataset_of(name) for name in suite.configurations} | set(suite.configurations)
    for key in entry.by_data:
        if key not in datasets:
            yield (*place, "by_data", key), f"{key!r} is not a configuration{suggest(key, datasets)}"
    if not custom:
        yield from find_unknown_parameters(entry, place, get_method(entry.name)().get_params())


def find_unknown_parameters(
    entry: MethodEntry, place: KeyPath, known: Mapping[str, Any]
) -> Iterator[tuple[KeyPath, str]]:
    """Yield where a method of a suite sets a parameter that it does not have."""
    paths: list[KeyPath] = [("parameters", name) for name in entry.parameters]
    paths += [("by_data", key, name) for key, values in entry.by_data.items() for name in values]
    paths += [("sweep", name) for name in entry.sweep]
    paths += [("tuning", "grid", name) for name in (entry.tuning.grid if entry.tuning else ())]
    for path in paths:
        if path[-1] not in known:
            hint = suggest(str(path[-1]), known)
            yield (*place, *path), f"{entry.name} has no parameter {path[-1]!r}{hint}"
