"""MATLAB files as authors of the field write them: features, true and candidate labels as variables."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.io
import scipy.sparse as sp

from skpml._docstrings import fill_docstring
from skpml._validation import EmptyPolicy, check_sparse_structure
from skpml._writing import replacing
from skpml.datasets._partial_dataset import PartialDataset, as_label_matrix, build_dataset
from skpml.tables import Argument, TableError, check_unpacked_size, parsing

LabelLayout = Literal["rows_by_labels", "labels_by_rows"]

FEATURE_VARIABLES = ("data", "x", "features", "feature", "fea", "instances", "dataset")
TRUTH_VARIABLES = (
    "target", "targets", "labels", "label", "y", "y_true", "true_labels", "truth", "gt", "ground_truth",
)  # fmt: skip
CANDIDATE_VARIABLES = (
    "candidate_labels", "candidate_label", "candidates", "partial_labels", "partial_label", "partial_target",
    "plabels", "p_target", "pl", "y_candidate", "noisy_labels", "noisy_target",
)  # fmt: skip
_OURS = "skpml_variables"


@fill_docstring
def read_mat(
    path: str | Path,
    *,
    features: str | None = None,
    truth: str | None = None,
    candidates: str | None = None,
    label_layout: LabelLayout | None = None,
    on_empty: EmptyPolicy = "raise",
) -> PartialDataset:
    """Read a ``.mat`` file of version 4 to 7.

    Parameters
    ----------
    path : path-like
        File to read.
    features, truth, candidates : str, optional
        Names of the variables. By default they are found among the usual ones, whatever their case: ``data``,
        ``X``, ``features``, … for features; ``target``, ``labels``, ``Y``, … for true labels;
        ``candidate_labels``, ``partial_labels``, … for candidates.
    label_layout : {"rows_by_labels", "labels_by_rows"}, optional
        How label matrices lie. By default it is seen from the number of rows of the features.
    %(on_empty_and_dataset)s

    Notes
    -----
    Labels may be 0 and 1 or −1 and 1, dense or sparse. Features are rows × features.
    """
    path = Path(path)
    variables = _load(path)
    chosen = {
        role: _choose(path, variables, named, usual, role)
        for role, named, usual in (
            ("features", features, FEATURE_VARIABLES),
            ("truth", truth, TRUTH_VARIABLES),
            ("candidates", candidates, CANDIDATE_VARIABLES),
        )
    }
    if chosen["truth"] is None and chosen["candidates"] is None:
        either = (Argument("truth", ...), " or ", Argument("candidates", ...))
        held = f" (it has {_contents(variables)})"
        raise TableError("no label matrix found; name one by ", *either, held, path=path)
    X = None if chosen["features"] is None else _matrix(path, variables, chosen["features"])
    if _OURS in variables:
        label_layout = label_layout or "labels_by_rows"
    n_rows = None if X is None else X.shape[0]
    labels = {
        role: _labels(path, variables, chosen[role], n_rows, label_layout) for role in ("truth", "candidates")
    }
    names = {key: _texts(path, variables, key) for key in ("label_names", "feature_names")}
    texts = {key: _text(variables.get(key, "")) for key in ("name", "description")}
    return build_dataset(path, X=X, on_empty=on_empty, **labels, **names, **texts)


def _load(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        head = file.read(1024)
    if head.startswith(b"MATLAB 7.3") or b"\x89HDF\r\n\x1a\n" in head:
        problem = "MATLAB version 7.3 files are not read; save it again in MATLAB with save(file, ..., '-v7')"
        raise TableError(problem, path=path)
    with parsing(path, "MATLAB"):
        held = scipy.io.whosmat(path, appendmat=False)
        dense = (math.prod(shape) for _, shape, kind in held if kind not in ("sparse", "unknown"))
        check_unpacked_size(path, 8 * sum(dense))
        loaded = scipy.io.loadmat(path, appendmat=False)
    variables = {name: value for name, value in loaded.items() if not name.startswith("__")}
    if _OURS in variables and (missing := set(_text(variables[_OURS]).split()) - set(variables)):
        raise TableError(f"cut short: lacks the variable(s) {', '.join(sorted(missing))}", path=path)
    return variables


def _choose(
    path: Path, variables: dict[str, Any], named: str | None, usual: tuple[str, ...], role: str
) -> str | None:
    if named is not None:
        if named not in variables:
            raise TableError(f"has no variable {named!r} (it has {_contents(variables)})", path=path)
        return named
    found = [name for name in variables if name.lower() in usual]
    if len(found) > 1:
        problem = f"{' and '.join(found)} could all be the {role}; choose by "
        raise TableError(problem, Argument(role, found[0]), path=path, value=tuple(found))
    return found[0] if found else None


def _contents(variables: dict[str, Any]) -> str:
    shapes = (f"{name} {'×'.join(map(str, np.shape(value)))}" for name, value in variables.items())
    return ", ".join(shapes) or "nothing"


def _matrix(path: Path, variables: dict[str, Any], name: str) -> Any:
    value = variables[name]
    if not sp.issparse(value) and (value.ndim != 2 or value.dtype.kind not in "buif"):
        problem = f"variable {name!r} must be a matrix of numbers, got {value.dtype} {value.shape}"
        raise TableError(problem, path=path)
    try:
        check_sparse_structure(value, f"variable {name!r}")
    except ValueError as error:
        raise TableError(str(error), path=path) from error
    return value


def _labels(
    path: Path, variables: dict[str, Any], name: str | None, n_rows: int | None, layout: LabelLayout | None
) -> Any:
    if name is None:
        return None
    matrix = _matrix(path, variables, name)
    rows_first, rows_second = matrix.shape[0] == n_rows, matrix.shape[1] == n_rows
    if layout is None:
        if n_rows is None or (rows_first and rows_second):
            why = "there are no features" if n_rows is None else f"it is square ({n_rows}×{n_rows})"
            layouts = (Argument("label_layout", layout) for layout in ("rows_by_labels", "labels_by_rows"))
            problem = f"cannot tell rows from labels in {name!r} because {why}; pass "
            raise TableError(problem, next(layouts), " or ", next(layouts), path=path)
        if not (rows_first or rows_second):
            problem = f"{name!r} is {matrix.shape[0]}×{matrix.shape[1]}, but the features have {n_rows} rows"
            raise TableError(problem, path=path)
        layout = "rows_by_labels" if rows_first else "labels_by_rows"
    try:
        matrix = matrix if layout == "rows_by_labels" else matrix.T
        return as_label_matrix(matrix, f"variable {name!r}", minus_one_is_zero=True)
    except ValueError as exc:
        raise TableError(str(exc), path=path) from exc


def _texts(path: Path, variables: dict[str, Any], name: str) -> tuple[str, ...] | None:
    if name not in variables:
        return None
    with parsing(path, "MATLAB"):
        value = np.asarray(variables[name])
        padded = value.dtype.kind == "U"  # a char matrix: MATLAB pads its rows with blanks
        return tuple(str(cell).rstrip() if padded else _text(cell) for cell in value.ravel())


def _text(value: Any) -> str:
    return "".join(str(part) for part in np.ravel(value))


@fill_docstring
def write_mat(dataset: PartialDataset, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a compressed version 5 ``.mat`` file.

    Variables: ``data`` (rows × features, double, sparse stays sparse), ``target`` (labels × rows, where the
    truth is known), ``candidate_labels`` (labels × rows), ``label_names`` and ``feature_names`` (cells),
    ``name``, ``description``; and ``skpml_variables``, which lists them so that a file cut short is noticed.

    Parameters
    ----------
    %(dataset_and_path)s
    %(overwrite)s
    """
    path = Path(path)
    variables: dict[str, Any] = {}
    if dataset.X is not None:
        as_double = dataset.X.astype(np.float64)
        variables["data"] = sp.csc_matrix(as_double) if sp.issparse(as_double) else as_double
    if dataset.truth is not None:
        variables["target"] = dataset.truth.T.astype(np.float64)
    variables["candidate_labels"] = dataset.candidates.T.astype(np.float64)
    for key in ("label_names", "feature_names"):
        if (names := getattr(dataset, key)) is not None:
            variables[key] = np.empty((len(names), 1), dtype=object)
            variables[key][:, 0] = names
    variables |= {key: text for key in ("name", "description") if (text := getattr(dataset, key))}
    variables = {_OURS: " ".join(variables), **variables}
    with replacing(path, overwrite=overwrite) as (temporary,), temporary.open("wb") as file:
        # Any: stubs of scipy know only paths, but an open file is taken too and keeps the name as it is.
        savemat: Any = scipy.io.savemat
        savemat(file, variables, do_compression=True)
