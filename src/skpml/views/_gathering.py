"""Views at the door: what users give as views becomes one matrix, and columns that belong to a view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing, check_array

from skpml._validation import check_finite

Columns = dict[str, NDArray[np.intp]]
# The names of the features of each view; None where it has none.
FeatureNames = dict[str, list[str] | None]

_DTYPES = (np.float64, np.float32)


def is_views(X: Any) -> bool:
    """Whether X is a list or a dict of matrices; a nested list of numbers is one matrix."""
    # A sparse matrix by keys is a mapping too.
    if _is_matrix(X):
        return False
    return isinstance(X, Mapping) or (isinstance(X, list | tuple) and any(map(_is_matrix, X)))


def named_views(X: Any) -> dict[str, Any]:
    """Matrices by name; those of a list are "view 0", "view 1" and so on."""
    views = dict(X) if isinstance(X, Mapping) else {f"view {place}": view for place, view in enumerate(X)}
    if not views:
        raise ValueError("X is an empty dict; give at least one view.")
    for name, view in views.items():
        if not isinstance(name, str):
            raise TypeError(f"The names of views must be strings, got {name!r}.")
        if not _is_matrix(view):
            raise ValueError(
                f"{name!r} of X should be a matrix with rows and columns, as every view, "
                f"got {type(view).__name__}."
            )
    return views


def view_feature_names(views: Mapping[str, Any]) -> FeatureNames:
    """Column names of the views that are data frames."""
    return {
        name: [str(column) for column in view.columns] if hasattr(view, "columns") else None
        for name, view in views.items()
    }


def stack_views(views: Mapping[str, Any]) -> tuple[Any, Columns]:
    """All views side by side, dense unless all are sparse, and the columns of each."""
    matrices: dict[str, Any] = {}
    for name, view in views.items():
        try:
            matrix = check_array(view, accept_sparse="csr", dtype=_DTYPES, ensure_all_finite=False)
        except ValueError as error:
            raise ValueError(f"{name!r} of X: {error}") from error
        check_finite(matrix, getattr(view, "columns", None), where=f"{name!r} of X")
        matrices[name] = matrix
    first, rows = next((name, matrix.shape[0]) for name, matrix in matrices.items())
    for name, matrix in matrices.items():
        if matrix.shape[0] != rows:
            raise ValueError(
                f"Views must have the same rows, but {first!r} has {rows} and {name!r} {matrix.shape[0]}."
            )
    ends = np.cumsum([matrix.shape[1] for matrix in matrices.values()])
    columns = {
        name: np.arange(end - matrix.shape[1], end)
        for (name, matrix), end in zip(matrices.items(), ends.tolist(), strict=True)
    }
    parts = list(matrices.values())
    if all(scipy.sparse.issparse(part) for part in parts):
        return scipy.sparse.hstack(parts, format="csr"), columns
    return np.hstack([part.toarray() if scipy.sparse.issparse(part) else part for part in parts]), columns


def views_in_fitted_order(X: Any, columns: Columns, feature_names: FeatureNames) -> dict[str, Any]:
    """The views of X as the model knows them; a view that is missing, unknown or of another width is an error."""
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
            raise ValueError(
                f"{name!r} of X has {view.shape[1]} features, but the model was fitted on {len(columns[name])}."
            )
    for name, found in view_feature_names(views).items():
        expected = feature_names[name]
        if found is not None and expected is not None and found != expected:
            place = next(
                place for place, pair in enumerate(zip(found, expected, strict=True)) if len(set(pair)) > 1
            )
            raise ValueError(
                f"Column {place} of {name!r} of X is {found[place]!r}, but the model was fitted on {expected[place]!r}."
            )  # fmt: skip
    return {name: views[name] for name in columns}


def column_groups(
    views: Any, n_features: int, feature_names: Sequence[str] | NDArray[Any] | None = None
) -> Columns:
    """Columns of one matrix by view, given by position or by name; every column belongs to exactly one view."""
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
            raise ValueError(
                f"views: column {label} of X is in no view; put it into one, or leave it out of X."
            )
    return groups


def take_rows(X: Any, places: NDArray[np.intp]) -> Any:
    """Rows of a matrix, or of every view."""
    if not is_views(X):
        return _safe_indexing(X, places)
    if isinstance(X, Mapping):
        return {name: _safe_indexing(view, places) for name, view in X.items()}
    return [_safe_indexing(view, places) for view in X]


def _is_matrix(item: Any) -> bool:
    return len(getattr(item, "shape", ())) == 2


def _place(column: Any, view: str, position: Mapping[str, int], n_features: int) -> int:
    if isinstance(column, str):
        if column not in position:
            why = "no column of that name" if position else "no column names: give a data frame, or positions"
            raise ValueError(f"views: {view!r} names the column {column!r}, but X has {why}.")
        return position[column]
    if not isinstance(column, Integral) or isinstance(column, bool):
        raise TypeError(f"views: the columns of {view!r} must be positions or names, got {column!r}.")
    place = int(column)
    if not 0 <= place < n_features:
        raise ValueError(f"views: {view!r} has column {place}, but X has columns 0 to {n_features - 1}.")
    return place
