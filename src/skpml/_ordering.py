"""Orders of rows, features and labels by content instead of position, and ranks of labels by score.

The former are for methods that draw at random or must break ties.

A random start drawn by position makes the result depend on the order of rows, features or labels. Drawn in the order of
content, it moves with them: the same data in another order give the same model. Each order below sorts by numbers that
no permutation changes, such as sums along a row, or sums of its values weighted by the sums of their columns. Rows that
agree in all of them, usually exact duplicates, keep their given order.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from array_api_compat import array_namespace, device, is_torch_array
from numpy.typing import NDArray

from skpml.linalg import Array, one_blas, squared_row_norms, to_numpy

Order = NDArray[np.intp]

_TINY = float(np.finfo(np.float64).tiny)
_DIGITS = 10
_SHIFT = 0.2345678 * 10.0**-_DIGITS
# Work arrays stay at a few tens of MB however many rows there are.
_CELLS_AT_ONCE = 1 << 20


def row_order(X: Any, labels: NDArray[Any] | None = None) -> Order:
    """Sort the indices of the rows of X in an order that does not depend on the order of rows or columns.

    X may be sparse: its columns then count as if their ranges were centered, as :class:`skpml.features.RangeScaler` does
    with dense features. ``labels`` are more columns of the same rows.
    """
    if scipy.sparse.issparse(X):
        return _sorted(_sparse_row_keys(X, labels))
    # Otherwise the threads of these thin products slow what is computed next.
    with one_blas():
        return _sorted(_row_keys(X, labels))


def feature_order(X: NDArray[Any]) -> Order:
    """Sort the indices of the columns of X in an order that does not depend on the order of rows or columns."""
    return _sorted(_row_keys(X.T))


def label_order(X: NDArray[Any], Y: NDArray[Any]) -> Order:
    """Sort the indices of the labels in an order that does not depend on the order of rows, features or labels."""
    Y = Y.astype(np.float64, copy=False)
    described = np.column_stack([np.ones(len(Y)), Y.mean(axis=1), _row_keys(X)])
    return _sorted(Y.T @ described / len(Y))


def _row_keys(X: Any, labels: NDArray[Any] | None = None) -> NDArray[np.float64]:
    """Compute numbers between −1 and 1 for each row that no permutation of rows or columns changes.

    Sums of powers alone are equal for texts with equally many words, so values are also weighted by the sums of their
    columns, and by those of the rows that share them. All are divided by sums of absolute values, which do not vanish
    if the data are centered. Rows are read in blocks, in double precision, on their workers if they are there.
    """
    rows = X.blocks(_keep, X.shape[1]) if hasattr(X, "blocks") else _ArrayBlocks(X)
    found, totals = rows.visit(_measure_rows, labels)
    sums, sizes, squares = (to_numpy(rows.from_rows(each)) for each in found)
    columns, column_sizes = map(to_numpy, totals)
    row_size, column_size = max(sizes.max(), _TINY), max(column_sizes.max(), _TINY)
    sums, columns = sums / row_size, columns / column_size
    _, (shared,) = rows.visit(_share_columns, labels, sums**2)
    shared = to_numpy(shared) / column_size
    by_column = np.column_stack([columns, columns**2, columns**3, shared, shared**2])
    (weighted,), _ = rows.visit(partial(_weight_columns, weights=by_column), labels)
    weighted = to_numpy(rows.from_rows(weighted))
    return np.column_stack([sums, squares / max(squares.max(), _TINY), weighted / row_size])


class _ArrayBlocks:
    """Rows of an array in blocks, as :class:`skpml._blocks.RowBlocks` has them."""

    def __init__(self, X: NDArray[Any]) -> None:
        self._X = X

    def visit(self, work: Any, *arrays: NDArray[Any] | None) -> tuple[list[Any], list[Any]]:
        step = max(1, _CELLS_AT_ONCE // max(1, self._X.shape[1]))
        parts = []
        for start in range(0, len(self._X), step):
            rows = slice(start, start + step)
            parts.append(work(self._X[rows], *(None if each is None else each[rows] for each in arrays)))
        made = [np.concatenate(columns) for columns in zip(*(found for found, _ in parts), strict=True)]
        return made, [sum(columns) for columns in zip(*(sums for _, sums in parts), strict=True)]

    def from_rows(self, array: NDArray[Any]) -> NDArray[Any]:
        return array


def _keep(rows: Any) -> Array:
    return rows if is_torch_array(rows) else np.asarray(rows)


def _double(block: Array, labels: NDArray[Any] | None) -> Array:
    xp = array_namespace(block)
    block = xp.astype(block, xp.float64, copy=False)
    return block if labels is None else xp.concat([block, _as_double_like(labels, block)], axis=1)


def _as_double_like(values: NDArray[Any], like: Array) -> Array:
    """Convert to double precision where another array is."""
    xp = array_namespace(like)
    return xp.asarray(values, dtype=xp.float64, device=device(like))


def _measure_rows(block: Array, labels: NDArray[Any] | None) -> Any:
    block = _double(block, labels)
    xp = array_namespace(block)
    sizes = xp.abs(block)
    found = xp.sum(block, axis=1), xp.sum(sizes, axis=1), squared_row_norms(block)
    return found, (xp.sum(block, axis=0), xp.sum(sizes, axis=0))


def _share_columns(block: Array, labels: NDArray[Any] | None, weights: NDArray[Any]) -> Any:
    return (), (_double(block, labels).T @ _as_double_like(weights, block),)


def _weight_columns(block: Array, labels: NDArray[Any] | None, *, weights: NDArray[Any]) -> Any:
    return (_double(block, labels) @ _as_double_like(weights, block),), ()


def _sparse_row_keys(X: Any, labels: NDArray[Any] | None) -> NDArray[np.float64]:
    """Compute the keys of ``[X + shift, labels]`` without forming it; the shift centers the ranges of X."""
    X = scipy.sparse.csr_array(X, dtype=np.float64)
    shift = -(X.min(axis=0).toarray().ravel() + X.max(axis=0).toarray().ravel()) / 2
    if labels is not None:
        X = scipy.sparse.csr_array(scipy.sparse.hstack([X, scipy.sparse.csr_array(labels)], format="csr"))
        shift = np.append(shift, np.zeros(labels.shape[1]))
    n, still = X.shape[0], np.abs(shift)
    # What the stored values add to the absolute values of the shift.
    added = X.copy()
    added.data = np.abs(X.data + shift[X.indices]) - still[X.indices]
    row_size = max(float((added.sum(axis=1) + still.sum()).max()), _TINY)
    column_size = max(float((added.sum(axis=0) + n * still).max()), _TINY)
    rows, columns = (X.sum(axis=1) + shift.sum()) / row_size, (X.sum(axis=0) + n * shift) / column_size
    shared = (X.T @ rows**2 + shift * (rows**2).sum()) / column_size
    by_column = np.column_stack([columns, columns**2, columns**3, shared, shared**2])
    squares = X.multiply(X).sum(axis=1) + 2 * (X @ shift) + shift @ shift
    weighted = (X @ by_column + shift @ by_column) / row_size
    return np.column_stack([rows, squares / max(float(squares.max()), _TINY), weighted])


def _sorted(keys: NDArray[np.float64]) -> Order:
    # The order of summation changes the last digits, so they are rounded off. The shift keeps simple fractions, which
    # simple tables have as keys, away from the points where rounding changes.
    return np.lexsort(np.round(keys + _SHIFT, _DIGITS).T[::-1])


def without_degenerate_rows(truth: Array, scores: Array) -> tuple[Array, Array]:
    """Drop the rows in which no label or every label is true."""
    xp = array_namespace(scores)
    is_true = xp.astype(truth, xp.bool)
    rows = xp.nonzero(xp.any(is_true, axis=1) & ~xp.all(is_true, axis=1))[0]
    return xp.take(truth, rows, axis=0), xp.take(scores, rows, axis=0)


def rank_labels(truth: Array, scores: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Yield truth, rank and number of true labels ranked at or above, for blocks of rows, labels in ascending order.

    Tied labels all take the worst rank of their group.
    """
    xp = array_namespace(scores)
    n_rows, n_labels = truth.shape
    step = max(1, _CELLS_AT_ONCE // n_labels)
    for start in range(0, n_rows, step):
        rows = slice(start, min(start + step, n_rows))
        block = scores[rows, :]
        order = xp.argsort(block, axis=1)
        ascending = xp.take_along_axis(block, order, axis=1)
        true = xp.take_along_axis(xp.astype(truth[rows, :], xp.int64), order, axis=1)
        # Numbers of groups of tied labels grow from row to row, so one search finds where each group starts.
        new_group = xp.astype(ascending[:, 1:] != ascending[:, :-1], xp.int64)
        group = xp.cumulative_sum(xp.concat([xp.ones_like(true[:, :1]), new_group], axis=1), axis=1)
        offset = n_labels * xp.arange(block.shape[0], dtype=xp.int64, device=device(block))[:, None]
        keys = xp.reshape(group + 2 * offset, (-1,))
        group_start = xp.reshape(xp.searchsorted(keys, keys), group.shape) - offset
        n_true_up_to = xp.cumulative_sum(true, axis=1)
        n_true_below = xp.take_along_axis(n_true_up_to - true, group_start, axis=1)
        yield true, n_labels - group_start, n_true_up_to[:, -1:] - n_true_below


def row_average_precision(truth: Array, scores: Array) -> Array:
    """Compute the average precision of every row that has some but not all labels, on any array API namespace."""
    xp = array_namespace(scores)
    truth, scores = without_degenerate_rows(truth, scores)
    parts = [xp.zeros((0,), dtype=xp.float64, device=device(scores))]
    for true, rank, above in rank_labels(truth, scores):
        hits = xp.astype(above, xp.float64) / xp.astype(rank, xp.float64) * xp.astype(true, xp.float64)
        parts.append(xp.sum(hits, axis=1) / xp.astype(xp.sum(true, axis=1), xp.float64))
    return xp.concat(parts)
