"""From what users hold (matrix, data frame, list of label sets, one class a row) to a 0/1 candidate matrix."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from skpml._validation import check_indicator

__all__ = ["EncodedLabels", "encode_labels"]

Layout = Literal["indicator", "classes"]


@dataclass(frozen=True)
class EncodedLabels:
    """Candidates as an n×c matrix of 0 and 1.

    ``layout`` says what was given: ``"indicator"`` for several labels a row, ``"classes"`` for the degenerate case of
    one class a row (a one-dimensional y), whose only candidate is that class. ``named`` says whether the labels came with
    names, which then count, or in the order of the columns of a bare matrix.
    """

    candidates: NDArray[np.uint8]
    classes: NDArray[Any]
    layout: Layout
    named: bool


def encode_labels(y: Any) -> EncodedLabels:
    """Encode candidate labels.

    Parameters
    ----------
    y : one of
        * 0/1 array, sparse matrix or list of lists of shape (n, c): labels are named 0 … c−1;
        * data frame of 0 and 1: labels are named after its columns;
        * list, series or object array of label sets (sets, or lists and tuples of strings): labels are sorted;
        * one-dimensional array of classes: one class a row;
        * labels that are encoded already.
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
        names = np.asarray(y.columns)
        if len(set(names.tolist())) < len(names):
            twice = next(name for index, name in enumerate(names.tolist()) if name in names.tolist()[:index])
            raise ValueError(f"The columns of y must have different names, but {twice!r} stands twice.")
        return EncodedLabels(matrix, names, "indicator", named=True)
    sets = _as_label_sets(y)
    if sets is not None:
        return _encode_sets(sets)
    values = _as_array(y)
    if values.ndim == 2 and not (values.shape[1] == 1 and not _is_binary(values)):
        matrix = check_indicator(values, "y")
        return EncodedLabels(matrix, np.arange(matrix.shape[1]), "indicator", named=False)
    return _encode_classes(values)


def _as_array(y: Any) -> NDArray[Any]:
    try:
        values = np.asarray(y)
    except ValueError as error:
        raise ValueError(
            "y has rows of different lengths. For label sets use Python sets, or lists of strings; "
            "for a 0/1 matrix give every row the same number of columns."
        ) from error
    if values.ndim not in (1, 2):
        raise ValueError(
            f"y should be a 1d array of classes or an (n, c) matrix of candidates, got shape {values.shape}."
        )
    return values


def _as_label_sets(y: Any) -> list[Iterable[Any]] | None:
    """The rows of y where it holds label sets, else None."""
    if isinstance(y, np.ndarray) and y.dtype != object:
        return None
    if isinstance(y, np.ndarray) and y.ndim != 1:
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
            raise ValueError(
                f"Row {index} of y is {row!r}, but other rows are label sets; give every row a set of labels."
            )
    return rows


def _encode_sets(rows: list[Iterable[Any]]) -> EncodedLabels:
    labels = {label for row in rows for label in row}
    try:
        ordered = sorted(labels)
    except TypeError as error:
        raise ValueError(
            f"Labels of different types cannot be mixed: {sorted(map(repr, labels))[:5]}."
        ) from error
    position = {label: column for column, label in enumerate(ordered)}
    matrix = np.zeros((len(rows), len(ordered)), np.uint8)
    for index, row in enumerate(rows):
        matrix[index, [position[label] for label in row]] = 1
    names = np.array(ordered) if ordered else np.array([], dtype=str)
    return EncodedLabels(matrix, names, "indicator", named=True)


def _encode_classes(values: NDArray[Any]) -> EncodedLabels:
    values = column_or_1d(values, warn=True)
    if values.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            raise ValueError(f"Input y contains NaN or infinity in row {bad[0]}.")
    check_classification_targets(values)
    tagged = [str(value) for value in values.tolist() if isinstance(value, str) and ";" in value][:1]
    if tagged:
        warnings.warn(
            f"y has values such as {tagged[0]!r}, which are taken as one class each. If they are tags, split them: "
            "y = [set(tags.split(';')) for tags in y].",
            UserWarning,
            stacklevel=4,
        )
    classes, position = np.unique(values, return_inverse=True)
    matrix = np.zeros((values.size, classes.size), np.uint8)
    matrix[np.arange(values.size), position] = 1
    return EncodedLabels(matrix, classes, "classes", named=True)


def _is_binary(values: NDArray[Any]) -> bool:
    return bool(values.dtype.kind in "biuf" and np.isin(values, (0, 1)).all())
