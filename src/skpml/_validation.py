"""Input checks: features, labels, views, parameters. Each error names the row, column, label or parameter.

Users hold labels as a 0/1 matrix, a data frame, a list of label sets or one class per row; :func:`encode_labels` makes a
0/1 candidate matrix of all of them. Views (a list or dict of matrices, or groups of columns) become one matrix and the
columns of each view.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.utils import _safe_indexing, check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets

EmptyPolicy = Literal["raise", "warn", "ignore"]
BoolMatrix = NDArray[np.bool_]
Layout = Literal["indicator", "classes"]
Columns = dict[str, NDArray[np.intp]]
# The names of the features of each view, or None.
FeatureNames = dict[str, list[str] | None]

_DTYPES = (np.float64, np.float32)


def is_number(value: Any, at_least: float = -np.inf) -> bool:
    """Return whether a value is a finite number, not a bool, and not below a bound."""
    real = isinstance(value, Real) and not isinstance(value, bool)
    return real and bool(np.isfinite(float(value))) and float(value) >= at_least


def is_count(value: Any, at_least: int = 1) -> bool:
    """Return whether a value is a whole number, not a bool, and not below a bound."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= at_least


def check_finite(X: Any, names: Any = None, *, where: str = "Input X", first_row: int = 0) -> None:
    """Raise for NaN and infinity in dense or CSR features, naming the first cell; rows count from ``first_row``."""
    values = X.data if scipy.sparse.issparse(X) else X
    # One pass without a mask in the good case: a sum is finite only if all terms are, unless it overflows.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(values, dtype=np.float64)):
            return
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    place = np.argwhere(bad)[0].tolist()
    kind = "NaN" if np.isnan(values[tuple(place)]) else "infinity"
    if scipy.sparse.issparse(X):
        place = [int(np.searchsorted(X.indptr, place[0], side="right")) - 1, int(X.indices[place[0]])]
    row, column = place
    label = column if names is None else f"{column} ({str(names[column])!r})"
    raise ValueError(
        f"{where} contains {kind} in row {first_row + row}, column {label}. Fill in or remove missing values first, "
        f"for example with sklearn.impute.SimpleImputer in a pipeline."
    )


def check_sparse_structure(matrix: Any, name: str) -> None:
    """Raise if indices of a sparse matrix point outside of it; any operation on it would crash or read foreign memory."""
    if not hasattr(matrix, "check_format"):
        return
    try:
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"{name} is not a valid sparse matrix, it may be damaged: {error}.") from error


def check_indicator(matrix: Any, name: str, *, minus_one_is_zero: bool = False) -> NDArray[np.uint8]:
    """Convert a two-dimensional 0/1 matrix to dense ``uint8``; an error names the first other value.

    ``minus_one_is_zero`` reads −1 as 0, as MATLAB files often have it.
    """
    columns = getattr(matrix, "columns", None)
    check_sparse_structure(matrix, name)
    given = values = matrix.toarray() if scipy.sparse.issparse(matrix) else np.asarray(matrix)
    if values.ndim != 2:
        raise ValueError(f"{name} should be a 2d matrix of 0 and 1, got shape {values.shape}.")
    if values.dtype.kind == "O":
        values = np.vectorize(_to_number, otypes=[float])(values)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{name} should hold 0 and 1, but its values are of type {values.dtype}.")
    if minus_one_is_zero:
        values = np.where(values == -1, 0, values)
    bad = (values != 0) & (values != 1)
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        value = repr(given[row, column]) if given.dtype.kind == "O" else given[row, column]
        label = column if columns is None else repr(columns[column])
        allowed = "-1, 0 and 1" if minus_one_is_zero else "0 and 1"
        hint = f" (where -1 means absent, use {name} > 0)" if values[row, column] == -1 else ""
        raise ValueError(f"{name} should hold only {allowed}, but row {row}, label {label} is {value}{hint}.")
    return values.astype(np.uint8)


def check_verified(verified: Any, shape: tuple[int, ...], names: Any = None) -> NDArray[np.int8] | None:
    """Convert verified cells (1 true, −1 false, 0 unknown; dense, scipy sparse or data frame) to dense ``int8``.

    ``shape`` is that of the candidates, and ``names`` are their labels, if these have names. None stays None. An error
    names the first cell with another value, the first cell that a sparse matrix holds twice with different values, and
    the first column of a data frame that has the names of the labels in another order.
    """
    if verified is None:
        return None
    columns = getattr(verified, "columns", None)
    sparse = scipy.sparse.issparse(verified)
    given = verified if sparse else np.asarray(verified)
    if given.shape != tuple(shape):
        raise ValueError(
            f"verified should have the shape of the candidates, {tuple(shape)}, but its shape is {given.shape}."
        )
    if columns is not None and names is not None and set(columns) == set(names):
        for place, (found, name) in enumerate(zip(list(columns), np.asarray(names).tolist(), strict=True)):
            if found != name:
                raise ValueError(
                    f"The columns of verified should be in the order of the labels, but column {place} is {found!r} "
                    f"and label {place} is {name!r}."
                )
    if given.dtype.kind == "b":
        raise ValueError(
            "verified should hold 1 (true), -1 (false) and 0 (unknown), but it is boolean, "
            "which cannot tell false from unknown."
        )
    if sparse:
        # Sums of repeated cells would hide a value that is not allowed, and a contradiction.
        cells = scipy.sparse.coo_array(given)
        given = np.zeros(shape, dtype=cells.dtype)
        given[cells.row, cells.col] = cells.data
    values = given
    if values.dtype.kind == "O":
        values = np.vectorize(_to_number, otypes=[float])(values)
    if values.dtype.kind not in "iuf":
        raise ValueError(f"verified should hold -1, 0 and 1, but its values are of type {values.dtype}.")
    bad = (values != 0) & (values != 1) & (values != -1)
    if bad.any():
        row, column = np.argwhere(bad)[0].tolist()
        value = repr(given[row, column]) if given.dtype.kind == "O" else given[row, column]
        label = column if columns is None else repr(columns[column])
        raise ValueError(
            f"verified should hold only 1 (true), -1 (false) and 0 (unknown), but row {row}, label {label} is {value}."
        )
    if sparse:
        different = np.flatnonzero(cells.data != given[cells.row, cells.col])
        if different.size:
            row, column = cells.row[different[0]], cells.col[different[0]]
            raise ValueError(
                f"verified holds row {row}, label {column} more than once, with different values; keep one."
            )
    return values.astype(np.int8)


def check_labels(labels: Any, name: str) -> BoolMatrix:
    """Convert a 0/1 matrix with at least one cell (dense, scipy sparse or data frame) to booleans."""
    matrix = check_indicator(labels, name)
    if matrix.size == 0:
        raise ValueError(f"{name} is empty: its shape is {matrix.shape}")
    return matrix.astype(np.bool_)


def _to_number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return np.nan


def check_occupied(
    candidates: NDArray[np.uint8],
    classes: Any,
    *,
    on_empty: str,
    row_numbers: NDArray[np.intp] | None = None,
    rows_only: bool = False,
) -> None:
    """Warn, raise or do nothing about rows without candidates and labels that are not a candidate of any row.

    ``row_numbers`` are the numbers by which the user knows the rows, if some rows were left out. ``rows_only`` says that
    these are not all rows, so that nothing follows from a label without candidates.
    """
    if on_empty not in ("raise", "warn", "ignore"):
        raise ValueError(f'on_empty must be "raise", "warn" or "ignore", got {on_empty!r}.')
    messages = []
    rows, labels = np.flatnonzero(~candidates.any(axis=1)), np.flatnonzero(~candidates.any(axis=0))
    if rows.size:
        first = rows[0] if row_numbers is None else row_numbers[rows[0]]
        messages.append(
            f"{rows.size} of {candidates.shape[0]} rows have no candidate label (first: row {first}). "
            "Such a row is taken to have none of the labels; leave it out if it was never labeled."
        )
    if labels.size and not rows_only:
        names = ", ".join(str(classes[label]) for label in labels[:5]) + (", …" if labels.size > 5 else "")
        messages.append(
            f"{labels.size} of {candidates.shape[1]} labels are not a candidate of any row ({names}). "
            "Nothing can be learned about such a label; leave it out."
        )
    if messages and on_empty == "raise":
        raise ValueError(f'{messages[0]} To continue anyway, set on_empty="warn".')
    if candidates.all() and not rows_only:
        warnings.warn(
            "Every label is a candidate of every row: nothing can be learned.", UserWarning, stacklevel=4
        )
    for message in messages if on_empty == "warn" else ():
        warnings.warn(message, UserWarning, stacklevel=4)


def check_parameters(
    estimator: Any,
    *,
    weights: Collection[str] = (),
    counts: Collection[str] = (),
    optional_counts: Collection[str] = (),
    choices: Mapping[str, Collection[Any]] | None = None,
) -> None:
    """Raise ValueError for a bad parameter of an estimator.

    Parameters
    ----------
    estimator : object
        The parameters are its attributes.
    weights : collection of str
        Names of parameters that are finite numbers of at least 0.
    counts : collection of str
        Names of parameters that are whole numbers of at least 1.
    optional_counts : collection of str
        Names of parameters that are None or whole numbers of at least 1.
    choices : dict of parameter name to allowed values
        Parameters that are one of several values.

    Raises
    ------
    ValueError
        With the name and the value of the parameter.
    """
    for name in weights:
        if not is_number(value := getattr(estimator, name), 0):
            raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}.")
    for name in (*counts, *optional_counts):
        value, optional = getattr(estimator, name), name in optional_counts
        if not is_count(value) and not (optional and value is None):
            article = "None or a" if optional else "a"
            raise ValueError(f"{name} must be {article} whole number of at least 1, got {value!r}.")
    for name, allowed in (choices or {}).items():
        value = getattr(estimator, name)
        # Only scalars are compared, because the comparison of an array is an array.
        if not any(value is choice or (np.isscalar(value) and value == choice) for choice in allowed):
            raise ValueError(f"{name} must be one of {tuple(allowed)}, got {value!r}.")


def check_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
    """Convert weights of rows to an array: finite numbers of at least 0, not all of them 0."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    # The words are those that scikit-learn's checks look for.
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weights.ndim}D array.")
    if len(weights) != n_rows:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}!")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise ValueError(
            f"sample_weight must be finite and at least 0, but row {bad[0]} has {weights[bad[0]]}."
        )
    if not weights.any():
        raise ValueError("sample_weight is zero for every row; there is nothing to learn from.")
    return weights


def check_device(name: Any) -> None:
    """Raise if PyTorch is not installed or does not have the device."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(f'device={name!r} needs PyTorch: pip install "scikit-pml[torch]"') from error
    try:
        torch.empty(0, device=name)
    # A build without a device says so with an assertion.
    except (RuntimeError, TypeError, AssertionError) as error:
        raise ValueError(
            f'device must be None or a device of PyTorch such as "cpu", got {name!r}.'
        ) from error


def is_dask(X: Any) -> bool:
    """Whether X is a dask array or data frame, without importing dask."""
    known = type(X).__module__.split(".")[0] in ("dask", "dask_expr")
    return known and (hasattr(X, "chunks") or hasattr(X, "to_dask_array"))


def has_device(name: str | None) -> bool:
    """Whether PyTorch has a device; None is NumPy, which is always there."""
    try:
        if name is not None:
            check_device(name)
    except (ImportError, ValueError):
        return False
    return True


@dataclass(frozen=True)
class EncodedLabels:
    """Candidates as an n×c matrix of 0 and 1.

    ``layout`` is "classes" if y was one-dimensional: one class per row, its only candidate. ``named`` is False if the
    labels are columns of a matrix without names.
    """

    candidates: NDArray[np.uint8]
    classes: NDArray[Any]
    layout: Layout
    named: bool


def encode_labels(y: Any) -> EncodedLabels:
    """Encode candidate labels as a 0/1 matrix.

    ``y`` is a 0/1 array, sparse matrix or list of lists (labels are named 0 … c−1), a data frame of 0 and 1 (labels are
    named after its columns), a list, series or object array of label sets (sets, or lists and tuples of strings; labels
    are sorted), a one-dimensional array of classes, or labels that are encoded already.
    """
    if isinstance(y, EncodedLabels):
        return y
    if y is None:
        raise ValueError("This classifier requires y to be passed, but the target y is None.")
    if scipy.sparse.issparse(y):
        # A stored value that is not 0 or 1 must be found before duplicates are summed into a dense array.
        matrix = check_indicator(scipy.sparse.csr_array(y), "y")
        return EncodedLabels(matrix, np.arange(matrix.shape[1]), "indicator", named=False)
    if hasattr(y, "columns"):
        matrix = check_indicator(y, "y")
        counts = Counter(y.columns)
        if len(counts) < matrix.shape[1]:
            twice = counts.most_common(1)[0][0]
            raise ValueError(f"The columns of y must have different names, but {twice!r} appears twice.")
        return EncodedLabels(matrix, np.asarray(y.columns), "indicator", named=True)
    sets = _as_label_sets(y)
    if sets is not None:
        return _encode_sets(sets)
    try:
        values = np.asarray(y)
    except ValueError as error:
        raise ValueError(
            "y has rows of different lengths. For label sets use Python sets, or lists of strings; "
            "for a 0/1 matrix give every row the same number of columns."
        ) from error
    if values.ndim not in (1, 2):
        raise ValueError(f"y should be a 1d array of classes or an (n, c) matrix, got shape {values.shape}.")
    numeric = values.dtype.kind in "biuf"
    if values.ndim == 2 and (values.shape[1] != 1 or (numeric and np.isin(values, (0, 1)).all())):
        matrix = check_indicator(values, "y")
        return EncodedLabels(matrix, np.arange(matrix.shape[1]), "indicator", named=False)
    return _encode_classes(values)


def _as_label_sets(y: Any) -> list[Iterable[Any]] | None:
    """Return the rows of y if it holds label sets, else None."""
    if isinstance(y, np.ndarray) and (y.dtype != object or y.ndim != 1):
        return None
    if not isinstance(y, list | tuple | np.ndarray) and not hasattr(y, "tolist"):
        return None
    rows = list(y)
    if any(isinstance(row, set | frozenset) for row in rows):
        kinds: tuple[type, ...] = (set, frozenset, list, tuple)
    elif any(isinstance(row, list | tuple) and any(isinstance(label, str) for label in row) for row in rows):
        kinds = (list, tuple)
    else:
        return None
    for index, row in enumerate(rows):
        if not isinstance(row, kinds):
            raise ValueError(f"Row {index} of y is {row!r}, not a set of labels as other rows are.")
    return rows


def _encode_sets(rows: list[Iterable[Any]]) -> EncodedLabels:
    labels = {label for row in rows for label in row}
    try:
        ordered = sorted(labels)
    except TypeError as error:
        some = sorted(map(repr, labels))[:5]
        raise ValueError(f"Labels of different types cannot be mixed: {some}.") from error
    binarizer = MultiLabelBinarizer(classes=ordered, sparse_output=True)
    matrix = binarizer.fit_transform(rows).astype(np.uint8).toarray()
    names = np.array(ordered) if ordered else np.array([], dtype=str)
    return EncodedLabels(matrix, names, "indicator", named=True)


def _encode_classes(values: NDArray[Any]) -> EncodedLabels:
    values = column_or_1d(values, warn=True)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        row = np.argmin(np.isfinite(values))
        raise ValueError(f"Input y contains NaN or infinity in row {row}.")
    check_classification_targets(values)
    tagged = next((value for value in values.tolist() if isinstance(value, str) and ";" in value), None)
    if tagged is not None:
        warnings.warn(
            f"y has values such as {tagged!r}, which are taken as one class each. If they are tags, split them: "
            "y = [set(tags.split(';')) for tags in y].",
            UserWarning,
            stacklevel=5,
        )
    classes, position = np.unique(values, return_inverse=True)
    matrix = (position[:, None] == np.arange(classes.size)).astype(np.uint8)
    return EncodedLabels(matrix, classes, "classes", named=True)


def is_views(X: Any) -> bool:
    """Return whether X is a list or a dict of matrices; a nested list of numbers is one matrix."""
    # A sparse matrix by keys is a mapping too.
    if _is_matrix(X):
        return False
    return isinstance(X, Mapping) or (isinstance(X, list | tuple) and any(map(_is_matrix, X)))


def named_views(X: Any) -> dict[str, Any]:
    """Return matrices by name; those of a list are "view 0", "view 1" and so on."""
    views = dict(X) if isinstance(X, Mapping) else {f"view {place}": view for place, view in enumerate(X)}
    if not views:
        raise ValueError("X is an empty dict; give at least one view.")
    for name, view in views.items():
        if not isinstance(name, str):
            raise TypeError(f"The names of views must be strings, got {name!r}.")
        if not _is_matrix(view):
            raise ValueError(f"{name!r} of X should be a matrix, as every view, got {type(view).__name__}.")
    return views


def view_feature_names(views: Mapping[str, Any]) -> FeatureNames:
    """Return the column names of the views that are data frames."""
    return {
        name: [str(column) for column in view.columns] if hasattr(view, "columns") else None
        for name, view in views.items()
    }


def stack_views(views: Mapping[str, Any]) -> tuple[Any, Columns]:
    """Put all views side by side, dense unless all are sparse; also return the columns of each."""
    parts: list[Any] = []
    columns: Columns = {}
    for name, view in views.items():
        try:
            part = check_array(view, accept_sparse="csr", dtype=_DTYPES, ensure_all_finite=False)
        except ValueError as error:
            raise ValueError(f"{name!r} of X: {error}") from error
        check_finite(part, getattr(view, "columns", None), where=f"{name!r} of X")
        start = sum(before.shape[1] for before in parts)
        columns[name] = np.arange(start, start + part.shape[1])
        parts.append(part)
        rows, first = parts[0].shape[0], next(iter(columns))
        if part.shape[0] != rows:
            raise ValueError(
                f"Views must have the same rows, but {first!r} has {rows} and {name!r} {part.shape[0]}."
            )
    if all(scipy.sparse.issparse(part) for part in parts):
        return scipy.sparse.hstack(parts, format="csr"), columns
    return np.hstack([part.toarray() if scipy.sparse.issparse(part) else part for part in parts]), columns


def views_in_fitted_order(X: Any, columns: Columns, feature_names: FeatureNames) -> dict[str, Any]:
    """Order the views of X as in the fit; raise if one is missing, unknown or of another width."""
    views = named_views(X)
    known = ", ".join(map(repr, columns))
    if not isinstance(X, Mapping) and set(columns) != {f"view {place}" for place in range(len(columns))}:
        raise ValueError(f"X is a list, but the model was fitted on views by name: give a dict with {known}.")
    for name in columns:
        if name not in views:
            raise ValueError(f"X lacks {name!r}; the model was fitted on {known}.")
    for name, view in views.items():
        if name not in columns:
            raise ValueError(f"X has {name!r}, but the model was fitted on {known}.")
        if view.shape[1] != len(columns[name]):
            width = len(columns[name])
            raise ValueError(
                f"{name!r} of X has {view.shape[1]} features, but the model was fitted on {width}."
            )
    for name, names in view_feature_names(views).items():
        for place, (found, fitted) in enumerate(zip(names or (), feature_names[name] or (), strict=False)):
            if found != fitted:
                raise ValueError(
                    f"Column {place} of {name!r} of X is {found!r}, but the model was fitted on {fitted!r}."
                )
    return {name: views[name] for name in columns}


def column_groups(views: Any, n_features: int, feature_names: Any = None) -> Columns:
    """Find the columns of each view, given by position or by name; every column belongs to exactly one view."""
    if views is None:
        return {"view 0": np.arange(n_features)}
    if not isinstance(views, Mapping) or not views:
        raise ValueError(f"views must be None or a dict of view names to lists of columns, got {views!r}.")
    position = {} if feature_names is None else {str(name): place for place, name in enumerate(feature_names)}
    owner: dict[int, str] = {}
    groups: Columns = {}
    for name, wanted in views.items():
        if not isinstance(name, str):
            raise TypeError(f"views: the names of views must be strings, got {name!r}.")
        if isinstance(wanted, str) or not hasattr(wanted, "__iter__") or not len(list(wanted)):
            raise ValueError(f"views: {name!r} must be a list of columns, got {wanted!r}.")
        places = [_place(column, name, position, n_features) for column in wanted]
        for place in places:
            if place in owner:
                raise ValueError(f"views: column {place} is in {owner[place]!r} and in {name!r}; keep one.")
            owner[place] = name
        groups[name] = np.array(places)
    for place in range(n_features):
        if place not in owner:
            label = place if feature_names is None else f"{place} ({str(feature_names[place])!r})"
            raise ValueError(f"views: column {label} of X is in no view; add it to one, or drop it from X.")
    return groups


def take_rows(X: Any, places: NDArray[np.intp]) -> Any:
    """Select rows of a matrix, or of every view."""
    if not is_views(X):
        return _safe_indexing(X, places)
    if isinstance(X, Mapping):
        return {name: _safe_indexing(view, places) for name, view in X.items()}
    return [_safe_indexing(view, places) for view in X]


def _is_matrix(item: Any) -> bool:
    return len(getattr(item, "shape", ())) == 2


def _place(column: Any, view: str, position: Mapping[str, int], n_features: int) -> int:
    if isinstance(column, str) and column in position:
        return position[column]
    if isinstance(column, str):
        why = "no column of that name" if position else "no column names: give a data frame, or positions"
        raise ValueError(f"views: {view!r} names the column {column!r}, but X has {why}.")
    if not isinstance(column, Integral) or isinstance(column, bool):
        raise TypeError(f"views: the columns of {view!r} must be positions or names, got {column!r}.")
    place = int(column)
    if not 0 <= place < n_features:
        raise ValueError(f"views: {view!r} has column {place}, but X has columns 0 to {n_features - 1}.")
    return place
