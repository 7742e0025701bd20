"""Whether the parts of a suite fit each other, and the few words they are checked by."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from skpml.datasets import READERS
from skpml.metrics import METRICS
from skpml.registry import get_method, list_methods

if TYPE_CHECKING:
    from skpml.experiments._protocol import MethodEntry, Suite

DECOMPOSITIONS = ("low-rank-orthogonal", "low-rank-sparse")
DENOISING = ("precision", "recall", "f1", "auc")

_OWN_CLASS = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")

# Where in the file, and what is wrong there.
Problem = tuple[tuple[str | int, ...], str]


def dataset_of(configuration: str) -> str:
    """``"emotions"`` of ``"emotions-3"``."""
    return re.sub(r"-\d+$", "", configuration)


def is_data_file(configuration: str) -> bool:
    """Whether a configuration is the path of a file, not a name."""
    return configuration.lower().endswith(tuple(READERS))


def contradictions(suite: Suite) -> Iterator[Problem]:
    """Places and problems that the types of the single values do not show."""
    for key in ("configurations", "seeds", "metrics"):
        values = getattr(suite, key)
        for position, value in enumerate(values):
            if value in values[:position]:
                yield (key, position), f"{value!r} stands here twice"
    known = DENOISING if suite.kind == "decomposition" else tuple(METRICS)
    for position, metric in enumerate(suite.metrics):
        if metric not in known:
            yield ("metrics", position), f"there is no metric {metric!r}{_nearest(metric, known)}"
    for fold in suite.only_folds or ():
        if not 0 <= fold < suite.folds:
            yield ("only_folds",), f"there is no fold {fold}; they go from 0 to {suite.folds - 1}"
    for seed in suite.seeds:
        if not 0 <= seed < 2**31:
            yield ("seeds",), f"a seed must be between 0 and 2147483647, got {seed}"
    for path, options in suite.reading.items():
        if path not in suite.configurations or not is_data_file(path):
            yield ("reading", path), "this is no data file among the configurations"
            continue
        reader = READERS[PurePath(path).suffix.lower()]
        offered = [option for option in inspect.signature(reader).parameters if option != "path"]
        for option in options:
            if option not in offered:
                yield ("reading", path, option), f"unknown option{_nearest(option, offered)}"
    labels = [entry.label for entry in suite.methods]
    for position, entry in enumerate(suite.methods):
        place = ("methods", position)
        if entry.label in labels[:position]:
            key = "label" if "label" in entry.model_fields_set and entry.label != entry.name else "name"
            yield (*place, key), f"two methods have the label {entry.label!r}; give one of them another label"
        yield from _contradictions_of_method(suite, entry, place)
    if suite.control is not None and suite.control not in labels:
        yield ("control",), f"no method has the label {suite.control!r}{_nearest(suite.control, labels)}"


def _contradictions_of_method(
    suite: Suite, entry: MethodEntry, place: tuple[str | int, ...]
) -> Iterator[Problem]:
    decomposition = suite.kind == "decomposition"
    own = not decomposition and _OWN_CLASS.fullmatch(entry.name) is not None
    choices = DECOMPOSITIONS if decomposition else tuple(list_methods())
    if meant := None if decomposition else _misspelt_own_class(entry.name):
        yield (*place, "name"), f"there is no method {entry.name!r}; did you mean {meant!r}?"
    elif not own and entry.name not in choices:
        advice = "" if decomposition else '; one of your own is "package.module:Class"'
        yield (*place, "name"), f"there is no method {entry.name!r}{_nearest(entry.name, choices)}{advice}"
    datasets = {dataset_of(name) for name in suite.configurations} | set(suite.configurations)
    for key in entry.by_data:
        if key not in datasets:
            yield (
                (*place, "by_data", key),
                f"{key!r} is not among the configurations{_nearest(key, datasets)}",
            )
    grids = {"sweep": entry.sweep, "tuning": {} if entry.tuning is None else entry.tuning.grid}
    for key, grid in grids.items():
        for parameter, values in grid.items():
            if not values:
                yield (*place, key, parameter), "the list of values is empty"
    if decomposition:
        for key in ("tuning", "sweep"):
            if getattr(entry, key):
                yield (*place, key), "a decomposition takes none"
    elif not own:
        yield from unknown_parameters(entry, place, get_method(entry.name)().get_params())


def _misspelt_own_class(name: str) -> str | None:
    """``"my_method:Mine"`` for ``"my_method.py:Mine"`` and ``"my_method.Mine"``."""
    found = re.fullmatch(r"([A-Za-z_][\w.]*?)(?:\.py:|\.(?!py$))([A-Za-z_]\w*)", name)
    return f"{found[1]}:{found[2]}" if found else None


def unknown_parameters(
    entry: MethodEntry, place: tuple[str | int, ...], known: Mapping[str, Any]
) -> Iterator[Problem]:
    """Where a method of a suite is given a parameter that it does not have."""
    given: list[tuple[tuple[str | int, ...], str]] = [
        (("parameters", name), name) for name in entry.parameters
    ]
    for key, parameters in entry.by_data.items():
        given += [(("by_data", key, name), name) for name in parameters]
    given += [(("sweep", name), name) for name in entry.sweep]
    if entry.tuning is not None:
        given += [(("tuning", "grid", name), name) for name in entry.tuning.grid]
    for path, name in given:
        if name not in known:
            yield (*place, *path), f"{entry.name} has no parameter {name!r}{_nearest(name, known)}"


def _nearest(word: str, choices: Any) -> str:
    near = get_close_matches(word, list(choices), n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; choose from {', '.join(sorted(choices))}"
