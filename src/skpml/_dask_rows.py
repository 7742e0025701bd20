"""Rows of a dask array: features and thin arrays stay on the workers, and only sums come back.

:class:`DaskRows` are what :class:`skpml._blocks.LazyRows` are in memory, and :class:`DaskBlocks` what
:class:`skpml._blocks.ReadRows` are. Everything is expressed by ``dask.delayed``, so that it runs on the threads of this
process or on the workers of ``dask.distributed``, whichever the caller has set up, and lost results are computed again.
A partition of the array is read again on each pass: persist the array to keep it in the memory of the workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn import config_context, get_config

from skpml._blocks import LazyRows, ReadRows, RowBlocks, StoredRows, Work

# Sums of this many partitions are added by one task. In a tree of pairs, which dask works through depth first, the fewest
# are in memory at once: about one for each level and two for each worker.
_ADDED_AT_ONCE = 2


def _dask() -> Any:
    import dask

    return dask


def as_dask_array(X: Any) -> Any:
    """Return a dask array, of an array or a data frame, whose partitions hold whole rows and know their lengths."""
    if hasattr(X, "to_dask_array"):
        X = X.to_dask_array(lengths=True)
    if X.ndim == 2 and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    if any(np.isnan(length) for length in X.chunks[0]):
        X = X.compute_chunk_sizes()
    return X


def drop_empty_partitions(X: Any) -> Any:
    """Return a dask array without partitions of no rows, which a filter may leave."""
    if all(X.chunks[0]) or not X.shape[0]:
        return X
    import dask.array

    concatenate: Any = dask.array.concatenate
    return concatenate([X.blocks[place] for place, length in enumerate(X.chunks[0]) if length])


class DaskRows(LazyRows):
    """Rows of a dask array, transformed on the workers when they are read.

    Parameters
    ----------
    array : dask.array.Array of shape (n, d)
        From :func:`as_dask_array`.
    transform : callable or None, default=None
        Maps rows to a dense array; None leaves them as they are.
    """

    def __init__(self, array: Any, transform: Callable[[Any], NDArray[Any]] | None = None) -> None:
        self.array, self._transform_rows = array, transform
        self.lengths = tuple(int(length) for length in array.chunks[0])
        first = np.zeros((1, array.shape[1]), array.dtype)
        first = first if transform is None else transform(first)
        self.dtype = first.dtype
        self.shape = (int(array.shape[0]), int(first.shape[1]))

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> NDArray[Any]:
        found = np.asarray(self.array[rows].compute()) if isinstance(rows, slice) else self._take(rows)
        return found if self._transform_rows is None else self._transform_rows(found)

    def _take(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        """Return rows by number; every partition is asked for its own ones alone."""
        ends = np.cumsum(self.lengths)
        owner = np.searchsorted(ends, rows, side="right")
        sources, take = self.array.to_delayed().ravel(), _dask().delayed(_take_rows, pure=False)
        places = [np.flatnonzero(owner == part) for part in range(len(sources))]
        asked = [
            take(source, rows[place] - (end - length))
            for source, place, end, length in zip(sources, places, ends, self.lengths, strict=True)
            if len(place)
        ]
        found = np.empty((len(rows), self.array.shape[1]), self.array.dtype)
        answers = iter(_dask().compute(*asked))
        for place in places:
            if len(place):
                found[place] = next(answers)
        return found

    def range_of_columns(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the smallest and the largest value of each column."""
        low, high = _dask().compute(self.array.min(axis=0), self.array.max(axis=0))
        return np.asarray(low), np.asarray(high)

    # The methods below read rows where they are, before any transformation.

    def slices_of_partitions(self) -> list[slice]:
        """Return the rows of each partition."""
        ends = np.cumsum(self.lengths).tolist()
        return [slice(end - length, end) for end, length in zip(ends, self.lengths, strict=True)]

    def map(self, transform: Callable[[Any], NDArray[Any]]) -> DaskRows:
        """Return the same rows with one more transformation."""
        if self._transform_rows is None:
            return DaskRows(self.array, transform)
        before = self._transform_rows
        return DaskRows(self.array, lambda rows: transform(before(rows)))

    def blocks(self, transform: Callable[[Any], NDArray[Any]], n_columns: int) -> DaskBlocks:
        """Return the rows as blocks of mapped features on the workers."""
        return DaskBlocks(self.map(transform), n_columns)


@dataclass(frozen=True)
class Parts:
    """A thin array (n, ...) on the workers: one delayed part for each partition of the rows."""

    parts: list[Any]
    shape: tuple[int, ...]
    dtype: Any


class DaskBlocks(RowBlocks):
    """Mapped features of the rows of a dask array; thin arrays are :class:`Parts`.

    Parameters
    ----------
    rows : DaskRows
        Rows, with the map as their transformation.
    n_columns : int
        Number of mapped features.
    """

    def __init__(self, rows: DaskRows, n_columns: int) -> None:
        super().__init__((rows.shape[0], n_columns), np.empty((1, 1), rows.dtype))
        self._rows, self._partitions = rows, rows.slices_of_partitions()
        self._sources = rows.array.to_delayed().ravel().tolist()
        # Sent once: a map may hold thousands of anchors.
        self._map = _dask().delayed(_Sent(rows._transform_rows), pure=False).persist()
        self._n_columns = n_columns

    def _slices(self, bytes_per_row: int, *, features: bool) -> Iterator[slice]:
        yield from self._partitions

    def _read(self, rows: slice) -> Any:
        raise TypeError("Rows on workers are visited there.")

    def take(self, rows: NDArray[np.intp]) -> NDArray[Any]:
        """Bring some rows by number, and map them here."""
        return self._rows[rows]

    def to_rows(self, values: Any) -> Parts:
        """Send the rows of an array to the workers."""
        if isinstance(values, Parts):
            return values
        values = np.asarray(values)
        if values.dtype.kind not in "bf":
            values = values.astype(self.like.dtype)
        parts = [_dask().delayed(values[rows], pure=False) for rows in self._partitions]
        return Parts(list(_dask().persist(*parts)), values.shape, values.dtype)

    def from_rows(self, array: Parts) -> NDArray[Any]:
        """Bring a thin array back."""
        return np.concatenate(_dask().compute(*array.parts))

    def graph_operator(self, similarity: Any) -> Callable[[Any], Parts]:
        """Return ``M ↦ S M``; a task has the rows of S of its partition, and gets the whole of M for a moment."""
        matrix = scipy.sparse.csr_array(similarity, dtype=self.like.dtype)
        pieces = _dask().persist(*(_dask().delayed(matrix[rows], pure=False) for rows in self._partitions))
        multiply = _dask().delayed(_multiply_neighbors, pure=False)

        def apply(M: Parts) -> Parts:
            parts = [multiply(piece, *M.parts) for piece in pieces]
            return Parts(list(_dask().persist(*parts)), M.shape, M.dtype)

        return apply

    def visit(self, work: Work, *arrays: Any, features: bool = True) -> tuple[list[Any], list[Any]]:
        """Do something with every partition of the rows, see :meth:`RowBlocks.visit`; the sums come back."""
        given = [None if each is None else self.to_rows(each).parts for each in arrays]
        run = _dask().delayed(_run, pure=False)
        rows, sums = [], []
        for place, source in enumerate(self._sources):
            own = [None if parts is None else parts[place] for parts in given]
            kept = source if features else None
            found = run(work, self._map, self._n_columns, get_config()["working_memory"], kept, *own)
            rows.append(found[0])
            sums.append(found[1])
        described = _dask().delayed(_describe)(rows[0])
        # Only the rows are kept: the sums of a partition, such as a Gram matrix, are freed when they have been added.
        *rows, described, added = _dask().persist(*rows, described, _add_up(sums))
        kinds, total = _dask().compute(described, added)
        made = [
            Parts([part[place] for part in rows], (self.shape[0], *shape[1:]), dtype)
            for place, (shape, dtype) in enumerate(kinds)
        ]
        return made, total


@dataclass(frozen=True)
class _Sent:
    """A function that is sent to the workers as data: dask would call a bare one."""

    function: Callable[[Any], Any] | None


def _run(
    work: Work, sent: _Sent, n_columns: int, working_memory: float, source: Any, *arrays: Any
) -> tuple[list[Any], list[Any]]:
    """Do the work of one partition, itself in blocks; the configuration of scikit-learn is that of the caller."""
    with config_context(working_memory=working_memory):
        if source is not None:
            rows, transform = np.asarray(source), sent.function
            blocks: RowBlocks = (
                StoredRows(rows) if transform is None else ReadRows(rows, transform, n_columns)
            )
            return blocks.visit(work, *arrays)
        n_rows = next(len(each) for each in arrays if each is not None)
        return StoredRows(np.empty((n_rows, 0))).visit(work, *arrays, features=False)


def _take_rows(source: Any, rows: NDArray[np.intp]) -> NDArray[Any]:
    return np.asarray(source)[rows]


def _describe(rows: list[Any]) -> list[tuple[tuple[int, ...], Any]]:
    return [(each.shape, each.dtype) for each in rows]


def _add_up(sums: list[Any]) -> Any:
    """Return the delayed sum of delayed lists, added as a tree."""
    combine = _dask().delayed(_add_lists, pure=False)
    while len(sums) > 1:
        sums = [
            combine(sums[start : start + _ADDED_AT_ONCE]) for start in range(0, len(sums), _ADDED_AT_ONCE)
        ]
    return sums[0]


def _add_lists(lists: list[list[Any]]) -> list[Any]:
    return [reduce(add, column) for column in zip(*lists, strict=True)]


def _multiply_neighbors(matrix: Any, *parts: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(matrix @ np.concatenate(parts))
