"""Approximate search for near rows, in cells, whose cost does not grow with the square of the rows.

Cells are those of k-means: pivots are drawn from the rows and moved a few times to the mean of their cell in a sample.
Each row is compared with the rows of those cells whose pivots are nearest *to the row*. A cell is visited once, together
with all rows that ask for it, so that the work consists of matrix products. Rows may be in memory, in a file, on the
workers of dask, or on a device of PyTorch.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from array_api_compat import array_namespace, device, is_numpy_namespace
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from skpml._blocks import RowBlocks, bring_to_device, read_rows
from skpml._dask_rows import DaskBlocks
from skpml.linalg import Array, rows_at_once, squared_row_norms, to_device, to_numpy

# The number of cells is this many times the root of the number of rows.
_CELLS = 4
_SEARCHED = 32
_STEPS = 2
_SAMPLED_PER_CELL = 16
# Only duplicates make a cell this large; more of its rows would not be nearer.
_COMPARED_PER_CELL = 8192
# Reads of all rows on workers of dask from which on a search warns.
_MANY_READS = 100

Numbers = NDArray[np.int32]


def search_cells(
    X: Any, n_neighbors: int, *, more: int = 0, device: str | None = None
) -> tuple[Numbers, NDArray[np.float64]]:
    """Find near rows of each row: their numbers and squared distances.

    Parameters
    ----------
    X : array of shape (n, d), or LazyRows
        Dense rows, more than ``n_neighbors``.
    n_neighbors : int
        Number of other rows that are found for each row.
    more : int, default=0
        Number of further ones that are found if the searched cells have them.
    device : str or None, default=None
        Device of PyTorch; None searches with NumPy.

    Returns
    -------
    numbers, squared : ndarray of shape (n, n_neighbors + more)
        Other rows in no order; -1 and infinity for what was not found.
    """
    n = X.shape[0]
    rows = read_rows(bring_to_device(X, device), partial(to_device, name=device), X.shape[1])
    if isinstance(rows, DaskBlocks):
        _warn_of_reads(rows, n_neighbors + more)
    # No cell is empty, so that these have enough rows.
    pivots, cells = _assign_rows(rows, _find_pivots(rows), max(_SEARCHED, n_neighbors + 1))
    centers, count = _on_device_of(rows.like, pivots), min(n - 1, n_neighbors + more)
    numbers, squared = _start(n, count, rows.like)
    members = _group(cells[:, :1], len(pivots))
    compared = [rows_of_cell[: max(_COMPARED_PER_CELL, n_neighbors + 1)] for rows_of_cell in members]
    # After the own cell, most rows of the others are known to be farther.
    for own, asking in ((True, members), (False, _group(cells[:, 1:], len(pivots)))):
        visits = [
            (cell, some.start, asking[cell][some])
            for cell in range(len(pivots))
            for some in _cut(len(asking[cell]), 8 * len(compared[cell]) + _bytes_per_row(rows))
        ]
        pools = (np.concatenate([compared[cell], some]) for cell, _, some in visits)
        for (cell, start, some), pool in zip(visits, _read_pools(rows, pools), strict=True):
            split = len(compared[cell])
            # Around the pivot, squared distances lose the fewest digits.
            pool = pool - centers[cell, :]
            squares = _square_distances(pool[split:, :], pool[:split, :])
            if own:
                itself = np.arange(start, max(start, min(start + len(some), split)))
                squares[itself - start, itself] = np.inf
            _keep_nearest(numbers, squared, some, compared[cell], squares)
    # A row is infinitely far from itself.
    found = np.where(np.isfinite(to_numpy(squared)), to_numpy(numbers), -1)
    return found, _measure(rows, found)


def _find_pivots(rows: RowBlocks) -> NDArray[Any]:
    """Draw different rows, and move them to the means of their cells in a sample."""
    n, rng = rows.shape[0], np.random.RandomState(0)
    count = min(n, int(np.ceil(_CELLS * n**0.5)))
    pivots = np.unique(to_numpy(rows.take(_draw(rng, n, count))), axis=0)
    sample = rows.take(_draw(rng, n, min(n, _SAMPLED_PER_CELL * count)))
    points = to_numpy(sample)
    for _ in range(_STEPS):
        cell = to_numpy(_nearest_pivots(sample, pivots, 1))[:, 0]
        used, cell = np.unique(cell, return_inverse=True)
        one_hot = scipy.sparse.csr_array(
            (np.ones(len(cell), points.dtype), (cell, np.arange(len(cell)))), shape=(len(used), len(cell))
        )
        pivots = (one_hot @ points) / np.bincount(cell)[:, None].astype(points.dtype)
    return pivots


def _draw(rng: np.random.RandomState, n: int, count: int) -> NDArray[np.intp]:
    return np.sort(rng.choice(n, size=count, replace=False))


def _assign_rows(rows: RowBlocks, pivots: NDArray[Any], searched: int) -> tuple[NDArray[Any], Numbers]:
    """Return the pivots that have rows, and the cells near each row, its own first."""
    while True:
        count = min(searched, len(pivots))
        (nearest,), _ = rows.visit(partial(_assign, pivots=pivots, count=count))
        cells = to_numpy(rows.from_rows(nearest))
        used = np.bincount(cells[:, 0], minlength=len(pivots)) > 0
        if used.all():
            return pivots, cells.astype(np.int32, copy=False)
        pivots = pivots[used]


def _assign(rows: Array, *, pivots: NDArray[Any], count: int) -> tuple[tuple[Array], tuple[()]]:
    return (_nearest_pivots(rows, pivots, count),), ()


def _nearest_pivots(rows: Array, pivots: NDArray[Any], count: int) -> Array:
    """Find so many pivots near each row, the nearest first and the others in any order."""
    xp = array_namespace(rows)
    center = pivots.mean(axis=0)
    around = _on_device_of(rows, pivots - center)
    half_norms = squared_row_norms(around) / 2
    center = _on_device_of(rows, center)
    parts = []
    for some in gen_batches(rows.shape[0], rows_at_once(len(pivots) * pivots.dtype.itemsize)):
        away = half_norms - (rows[some, :] - center) @ around.T
        parts.append(xp.astype(_smallest(away, count, nearest_first=True), xp.int32))
    return parts[0] if len(parts) == 1 else xp.concat(parts)


def _group(cells: Numbers, count: int) -> list[NDArray[np.intp]]:
    """List the rows of each cell, if each row of the matrix names the cells of that row."""
    if not cells.shape[1]:
        return [np.empty(0, np.intp)] * count
    # NumPy sorts short integers by their digits, many times faster.
    keys = cells.astype(np.uint16) if count <= np.iinfo(np.uint16).max else cells
    order = np.argsort(keys, axis=None, kind="stable") // cells.shape[1]
    return np.split(order, np.cumsum(np.bincount(cells.ravel(), minlength=count))[:-1])


def _cut(n_rows: int, bytes_per_row: int) -> Iterator[slice]:
    """Yield slices of rows that may be worked on at the same time; none for no rows."""
    if n_rows:
        yield from gen_batches(n_rows, rows_at_once(bytes_per_row))


def _warn_of_reads(rows: DaskBlocks, count: int) -> None:
    # Each row is compared in its own cell, asks for others, and is measured with its neighbors.
    reads = (_SEARCHED + count + 2) * rows.shape[0] // rows_at_once(_bytes_per_row(rows))
    if reads > _MANY_READS:
        warnings.warn(
            f"The search for neighbors reads the rows on the workers about {reads:,} times. Pass a graph, set "
            "alignment_weight=0, or raise working_memory (sklearn.set_config).",
            UserWarning,
            stacklevel=2,
        )


def _read_pools(rows: RowBlocks, pools: Iterable[NDArray[np.intp]]) -> Iterator[Array]:
    """Yield the rows of each pool of row numbers; rows on workers are brought for many pools at a time."""
    if not isinstance(rows, DaskBlocks):
        yield from map(rows.take, pools)
        return
    most, waiting = rows_at_once(_bytes_per_row(rows)), iter(pools)
    while group := list(_take_until(waiting, most)):
        numbers = np.unique(np.concatenate(group))
        brought = rows.take(numbers)
        yield from (brought[np.searchsorted(numbers, pool)] for pool in group)


def _take_until(pools: Iterator[NDArray[np.intp]], most: int) -> Iterator[NDArray[np.intp]]:
    """Take pools until they have this many rows together."""
    count = 0
    for pool in pools:
        yield pool
        count += len(pool)
        if count >= most:
            return


def _start(n: int, count: int, like: Array) -> tuple[Array, Array]:
    """Return numbers and squared distances of no rows."""
    xp = array_namespace(like)
    numbers = xp.full((n, count), -1, dtype=xp.int32, device=device(like))
    return numbers, xp.full((n, count), xp.inf, dtype=like.dtype, device=device(like))


def _square_distances(A: Array, B: Array) -> Array:
    """Compute the squared distances between the rows of two matrices, to the rounding of products."""
    squares = A @ B.T
    squares *= -2
    squares += squared_row_norms(A)[:, None]
    squares += squared_row_norms(B)[None, :]
    return squares


def _keep_nearest(
    numbers: Array, squared: Array, asking: NDArray[np.intp], compared: NDArray[np.intp], squares: Array
) -> None:
    """Keep the nearest of the rows known so far and the compared ones, in place."""
    xp = array_namespace(squares)
    rows = _on_device_of(squares, asking)
    nearer = xp.min(squares, axis=1) < xp.max(squared[rows, :], axis=1)
    rows, squares = rows[nearer], squares[nearer, :]
    if not rows.shape[0]:
        return
    count = squared.shape[1]
    if squares.shape[1] > count:
        near = _smallest(squares, count)
        squares = xp.take_along_axis(squares, near, axis=1)
        index = xp.astype(_on_device_of(squares, compared), xp.int32)[near]
    else:
        index = xp.broadcast_to(xp.astype(_on_device_of(squares, compared), xp.int32), squares.shape)
    squares = xp.concat([squared[rows, :], squares], axis=1)
    index = xp.concat([numbers[rows, :], index], axis=1)
    near = _smallest(squares, count)
    squared[rows, :] = xp.take_along_axis(squares, near, axis=1)
    numbers[rows, :] = xp.take_along_axis(index, near, axis=1)


def _smallest(values: Array, count: int, *, nearest_first: bool = False) -> Array:
    """Return the places of the smallest values of each row, in any order."""
    if not is_numpy_namespace(array_namespace(values)):
        return values.topk(count, dim=1, largest=False).indices
    places = sorted({0, count - 1}) if nearest_first else count - 1
    return np.argpartition(values, places, axis=1)[:, :count]


def _measure(rows: RowBlocks, found: Numbers) -> NDArray[np.float64]:
    """Compute squared distances from differences, without the rounding of products."""
    n, count = found.shape
    squared = np.empty((n, count))
    batches = list(gen_batches(n, rows_at_once((count + 1) * _bytes_per_row(rows))))
    pools = (np.concatenate([np.arange(some.start, some.stop), found[some].ravel()]) for some in batches)
    for some, pool in zip(batches, _read_pools(rows, pools), strict=True):
        xp, size = array_namespace(pool), some.stop - some.start
        apart = xp.reshape(pool[size:, :], (size, count, pool.shape[1])) - pool[:size, None, :]
        squared[some] = to_numpy(_sum_squares(apart))
    squared[found < 0] = np.inf
    return squared


def _sum_squares(values: Array) -> Array:
    """Sum the squares along the last axis in double precision."""
    xp = array_namespace(values)
    if is_numpy_namespace(xp):
        return np.einsum("ijk,ijk->ij", values, values, dtype=np.float64)
    return xp.sum(values**2, axis=2, dtype=xp.float64)


def _bytes_per_row(rows: RowBlocks) -> int:
    return rows.shape[1] * int(rows.like.dtype.itemsize)


def _on_device_of(like: Array, values: NDArray[Any]) -> Array:
    """Convert a NumPy array to the namespace and device of another array."""
    return array_namespace(like).asarray(values, device=device(like))
