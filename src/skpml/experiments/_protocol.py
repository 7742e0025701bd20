"""An experiment as data: what is compared with what, on which data, how often. Read from TOML, checked by pydantic."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from skpml.experiments._consistency import DENOISING, contradictions
from skpml.experiments._consistency import dataset_of as dataset_of
from skpml.experiments._toml_lines import line_of

PAPER_METRICS = ("hamming_loss", "ranking_loss", "one_error", "coverage", "average_precision")

_SHIPPED = "skpml.experiments.suites"


class SuiteError(ValueError):
    """A suite that says something impossible; the message names file, line and key."""

    about_a_suite = True


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Tuning(_Part):
    """How the parameters of a method are chosen, inside each training fold.

    Attributes
    ----------
    selector : {"label-free", "oracle"}
        Without any true label, or by the true labels of inner folds.
    grid : mapping of parameter to list of values
    inner_folds : int
    search : {"grid", "halving"}
    """

    selector: Literal["label-free", "oracle"] = "label-free"
    grid: dict[str, list[Any]] = Field(min_length=1)
    inner_folds: int = Field(default=3, ge=2)
    search: Literal["grid", "halving"] = "grid"


class MethodEntry(_Part):
    """A method of a suite.

    Attributes
    ----------
    name : str
        As in :func:`skpml.list_methods`, or ``"package.module:Class"`` for one of your own.
    label : str
        What tables call it; the name by default. No two methods share one.
    role : {"method", "floor", "ceiling"}
        A ceiling is trained on true labels.
    parameters : mapping
        Those that differ from the defaults.
    by_data : mapping of data set or configuration to parameters
        A configuration's beat a data set's, which beat `parameters`.
    tuning : Tuning or None
    sweep : mapping of parameter to list of values
        One run for each value, one parameter at a time.
    history : bool
        Keep what the method records of its iterations.
    """

    name: str
    label: str = ""
    role: Literal["method", "floor", "ceiling"] = "method"
    parameters: dict[str, Any] = {}
    by_data: dict[str, dict[str, Any]] = {}
    tuning: Tuning | None = None
    sweep: dict[str, list[Any]] = {}
    history: bool = False

    @model_validator(mode="before")
    @classmethod
    def _label_is_name(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and "label" not in given and "name" in given:
            return {**given, "label": given["name"]}
        return given

    def parameters_on(self, configuration: str) -> dict[str, Any]:
        """The parameters that hold on a configuration, before any sweep or tuning."""
        dataset = dataset_of(configuration)
        chosen = dict(self.parameters)
        for key in dict.fromkeys((dataset, configuration)):
            chosen |= self.by_data.get(key, {})
        return chosen


class Suite(_Part):
    """An experiment: configurations × seeds × folds × methods, and what is to be told of it.

    Attributes
    ----------
    name, title, description : str
    kind : {"comparison", "ablation", "sensitivity", "convergence", "decomposition"}
        What the report draws.
    configurations : list of str
        Names for :func:`skpml.datasets.load_dataset`, or paths of data files, relative to the suite's own file.
    reading : mapping of path to options
        Options of :func:`skpml.datasets.read_dataset` for the data files among the configurations.
    seeds : list of int
        Seeds of noise and folds.
    folds : int
        Shuffled folds over all rows, after the noise. A decomposition has none.
    only_folds : list of int or None
        Run these folds only.
    metrics : list of str
        What tables show; records hold all metrics.
    control : str or None
        Label of the method that the others are compared with.
    methods : list of MethodEntry
    """

    name: str = Field(min_length=1)
    title: str = ""
    description: str = ""
    kind: Literal["comparison", "ablation", "sensitivity", "convergence", "decomposition"] = "comparison"
    configurations: list[str] = Field(min_length=1)
    reading: dict[str, dict[str, Any]] = {}
    seeds: list[int] = Field(default=[0], min_length=1)
    folds: int = Field(default=10, ge=2)
    only_folds: list[int] | None = Field(default=None, min_length=1)
    metrics: list[str] = Field(default=[], min_length=1)
    control: str | None = None
    methods: list[MethodEntry] = Field(min_length=1)

    _folder: Path | None = PrivateAttr(default=None)
    # The file, for messages that name a line of it.
    _source: str = PrivateAttr(default="")
    _text: str = PrivateAttr(default="")

    @model_validator(mode="before")
    @classmethod
    def _usual_metrics(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and "metrics" not in given:
            usual = DENOISING if given.get("kind") == "decomposition" else PAPER_METRICS
            return {**given, "metrics": list(usual)}
        return given

    @model_validator(mode="after")
    def _hangs_together(self) -> Self:
        for path, problem in contradictions(self):
            raise _Contradiction(path, problem)
        return self

    @property
    def folder(self) -> Path | None:
        """Where the suite's own file lies: relative paths and modules of one's own are looked for there."""
        return self._folder

    def method(self, label: str) -> MethodEntry:
        """The method of a label."""
        return next(entry for entry in self.methods if entry.label == label)

    def error_at(self, path: tuple[str | int, ...], problem: str) -> SuiteError:
        """An error that names the file, line and key of what is wrong, as in ``("methods", 0, "name")``."""
        return _error_at(self._source or self.name, self._text, path, problem)


class _Contradiction(Exception):
    """Raised through pydantic, which would lose the place: it lets exceptions other than its own pass."""

    def __init__(self, path: tuple[str | int, ...], problem: str) -> None:
        super().__init__(problem)
        self.path, self.problem = path, problem


def shipped_suites() -> list[str]:
    """Names of the suites that come along.

    Examples
    --------
    >>> from skpml.experiments import shipped_suites
    >>> "paper" in shipped_suites()
    True
    """
    return sorted(
        entry.name.removesuffix(".toml")
        for entry in files(_SHIPPED).iterdir()
        if entry.name.endswith(".toml")
    )


def load_suite(name: str | Path) -> Suite:
    """A suite that comes along, by its name, or one's own, by the path of its TOML file.

    Raises
    ------
    SuiteError
        If there is none, or what it says is wrong; the message names file, line and key.

    Examples
    --------
    >>> from skpml.experiments import load_suite
    >>> len(load_suite("paper").configurations)
    30
    """
    if str(name) in shipped_suites():
        text = files(_SHIPPED).joinpath(f"{name}.toml").read_text(encoding="utf-8")
        return parse_suite(text, source=f"{name}.toml")
    path = Path(name)
    if path.suffix != ".toml":
        near = get_close_matches(str(name), shipped_suites(), n=1)
        if path.with_name(f"{path.name}.toml").is_file():
            near = [f"{name}.toml"]
        instead = f"did you mean {near[0]!r}? " if near else ""
        raise SuiteError(
            f"there is no suite {str(name)!r}: {instead}Those that come along are {', '.join(shipped_suites())}; "
            "for your own give the path of a .toml file"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SuiteError(f"there is no file {path}") from None
    except UnicodeDecodeError as error:
        line = 1 + path.read_bytes()[: error.start].count(b"\n")
        raise SuiteError(f"{path}, line {line}: the file is not UTF-8") from None
    suite = parse_suite(text, source=str(path))
    suite._folder = path.resolve().parent
    return suite


def parse_suite(text: str, *, source: str) -> Suite:
    """A suite from TOML text; `source` is what messages call the file."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"^(.*) \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
        problem, line = (found[1], found[2]) if found else (str(error), None)
        place = line or str(max(1, len(text.splitlines())))
        raise SuiteError(
            f"{source}, line {place}: this is not TOML: {problem[:1].lower()}{problem[1:]}"
        ) from None
    try:
        suite = Suite.model_validate(content)
    except ValidationError as error:
        # A mistyped key is also missing under its right name.
        first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
        location = tuple(step for step in first["loc"])
        value = first["input"] if isinstance(first["input"], str | int | float) else None
        missing = first["type"] == "missing"
        place = line_of(text, location[:-1] if missing else location, None if missing else value)
        raise SuiteError(f"{source}, line {place}: {_key(location)}: {_problem(first)}") from None
    except _Contradiction as error:
        raise _error_at(source, text, error.path, error.problem) from None
    suite._source, suite._text = source, text
    return suite


def _error_at(source: str, text: str, path: tuple[str | int, ...], problem: str) -> SuiteError:
    line = f", line {line_of(text, path, _value_at(tomllib.loads(text), path))}" if text else ""
    return SuiteError(f"{source}{line}: {_key(path)}: {problem}")


def _value_at(content: Any, path: tuple[str | int, ...]) -> Any:
    try:
        for step in path:
            content = content[step]
    except (KeyError, IndexError, TypeError):
        return None
    return content


def _key(path: tuple[str | int, ...]) -> str:
    words = "".join(f"[{step + 1}]" if isinstance(step, int) else f".{step}" for step in path)
    return words.lstrip(".")


def _problem(error: Any) -> str:
    if error["type"] == "extra_forbidden":
        inside = error["loc"][:-1]
        known = MethodEntry if inside and inside[0] == "methods" else Suite
        fields = Tuning.model_fields if "tuning" in inside else known.model_fields
        near = get_close_matches(str(error["loc"][-1]), fields, n=1)
        return (
            f"unknown key; did you mean {near[0]!r}?"
            if near
            else f"unknown key; known are {', '.join(fields)}"
        )
    if error["type"] == "missing":
        return "this key is missing"
    message = str(error["msg"])
    return f"{message[:1].lower()}{message[1:]}, got {error['input']!r}"
