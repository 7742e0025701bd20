"""Rows that are visited block by block, so that mapped features need not be in memory all at once.

A solver needs features X (n×d) only in sums over rows, such as XᵀR, and in products row by row, such as XW. It states
what to do with a block of rows, and :meth:`RowBlocks.visit` does it for all blocks:

* :class:`StoredRows` are one array in memory (or on a GPU) and one block, as long as thin arrays fit too;
* :class:`ReadRows` are read, scaled and mapped again on each pass, from an array, a ``numpy.memmap``, a sparse matrix, or
  a tensor on a device.

Blocks are as large as scikit-learn's setting ``working_memory`` allows. Thin arrays (n×c), such as pseudo-labels, stay in
memory as a whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from array_api_compat import array_namespace, device, is_numpy_namespace
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from skpml.linalg import (
    Array,
    factor_gram,
    fits_in_memory,
    lower_gram,
    ridge_factor,
    rows_at_once,
    sparse_operator,
    tall_product,
    to_device,
    to_numpy,
    working_bytes,
)

# What is done with a block: its features (None if not wanted) and the same rows of thin arrays come in; new rows of thin
# arrays, and what is summed over blocks, go out.
Work = Callable[..., tuple[tuple[Array, ...], tuple[Any, ...]]]


class RowBlocks(ABC):
    """Features X (n×d) of rows that are visited block by block.

    Parameters
    ----------
    shape : tuple of int
        (n, d).
    like : array
        Any array of the namespace, dtype and device of the blocks.
    """

    def __init__(self, shape: tuple[int, int], like: Array) -> None:
        self.shape = shape
        self.like = like

    @abstractmethod
    def _slices(self, bytes_per_row: int, *, features: bool) -> Iterator[slice]:
        """Yield the rows of each block; thin arrays have so many bytes per row."""

    @abstractmethod
    def _read(self, rows: slice) -> Array:
        """Return the features of a block."""

    @abstractmethod
    def take(self, rows: NDArray[np.intp]) -> Array:
        """Return the features of some rows by number, in memory or on the device."""

    def gram(self, weights: Array | None = None) -> Array:
        """Compute ``Xᵀ diag(w) X`` in double precision; only its lower triangle counts."""
        _, (gram,) = self.visit(_sum_gram, weights)
        return gram

    def ridge_factor(self, *, weights: Array | None = None, ridge: float = 0.0) -> Callable[[Array], Array]:
        """Factor ``Xᵀ diag(w) X + ridge·I``, see :func:`skpml.linalg.ridge_factor`; sums are double."""
        return self.factor(self.gram(weights), ridge)

    def factor(self, gram: Array, ridge: float) -> Callable[[Array], Array]:
        """Factor a Gram matrix in double precision plus ``ridge·I``, to solve for right-hand sides of any."""
        xp = array_namespace(self.like)
        solve = factor_gram(gram, ridge)
        return lambda B: xp.astype(solve(xp.astype(B, xp.float64)), B.dtype)

    def graph_operator(self, similarity: Any) -> Callable[[Array], Array]:
        """Return ``M ↦ S M`` for a scipy sparse matrix S (n×n) and thin arrays M."""
        return sparse_operator(similarity, self.like)

    def to_rows(self, values: Any) -> Array:
        """Return an array with an entry for each row as a thin array; one of these blocks stays as it is.

        Numbers get the precision of the features.
        """
        if not isinstance(values, np.ndarray):
            return values
        xp, dtype = array_namespace(self.like), to_numpy(self.like).dtype
        kept = values if values.dtype == bool else values.astype(dtype, copy=False)
        return xp.asarray(kept, device=device(self.like))

    def from_rows(self, array: Array) -> Array:
        """Return a thin array as one array."""
        return array

    def visit(
        self, work: Work, *arrays: Array | None, features: bool = True
    ) -> tuple[list[Array], list[Any]]:
        """Do something with every block of rows.

        Parameters
        ----------
        work : callable
            Takes the features of a block, unless ``features`` is False, and the same rows of each array (None for None).
            Returns two tuples: rows of new thin arrays, and arrays or numbers to sum over blocks.
        *arrays : array of shape (n, ...) or None
            Thin arrays.
        features : bool, default=True
            Whether the work needs the features.

        Returns
        -------
        arrays, sums : list of arrays of shape (n, ...), and list
            The new thin arrays and the sums.
        """
        n = self.shape[0]
        width = sum(_bytes_per_row(each) for each in arrays if each is not None)
        made: list[Array] = []
        sums: list[Any] = []
        for rows in self._slices(width, features=features):
            given = [None if each is None else each[rows, ...] for each in arrays]
            found, part = work(*([self._read(rows)] if features else []), *given)
            if rows.stop - rows.start == n:
                return list(found), list(part)
            made = made or [_empty_rows(n, each) for each in found]
            for whole, piece in zip(made, found, strict=True):
                whole[rows, ...] = piece
            sums = [a + b for a, b in zip(sums, part, strict=True)] if sums else list(part)
        return made, sums


class StoredRows(RowBlocks):
    """Features that are one array.

    Parameters
    ----------
    X : array of shape (n, d)
        The features.
    """

    def __init__(self, X: Array) -> None:
        super().__init__(X.shape, X[:1, :])
        self._X = X

    def _slices(self, bytes_per_row: int, *, features: bool) -> Iterator[slice]:
        # Features that fit are used as a whole; copies of wide thin arrays might not fit.
        yield from gen_batches(self.shape[0], rows_at_once(bytes_per_row))

    def _read(self, rows: slice) -> Array:
        return self._X if rows.stop - rows.start == self.shape[0] else self._X[rows, :]

    def take(self, rows: NDArray[np.intp]) -> Array:
        """Return the features of some rows by number."""
        return self._X[rows, ...]

    def ridge_factor(self, *, weights: Array | None = None, ridge: float = 0.0) -> Callable[[Array], Array]:
        """Factor ``Xᵀ diag(w) X + ridge·I``, see :func:`skpml.linalg.ridge_factor`."""
        return ridge_factor(self._X, weights=weights, ridge=ridge)


class ReadRows(RowBlocks):
    """Features that are read and mapped again on each pass.

    Parameters
    ----------
    source : array, numpy.memmap or scipy sparse matrix of shape (n, any)
        Whatever gives rows for a slice.
    transform : callable
        Maps rows of the source to features (rows, n_columns).
    n_columns : int
        Number of features.
    """

    def __init__(self, source: Any, transform: Callable[[Any], Array], n_columns: int) -> None:
        first = transform(source[:1])
        super().__init__((source.shape[0], n_columns), first)
        self._source, self._transform = source, transform
        self._bytes = (source.shape[1] + n_columns) * first.dtype.itemsize

    def _slices(self, bytes_per_row: int, *, features: bool) -> Iterator[slice]:
        needed = bytes_per_row + (self._bytes if features else 0)
        yield from gen_batches(self.shape[0], rows_at_once(needed))

    def _read(self, rows: slice) -> Array:
        return self._transform(self._source[rows])

    def take(self, rows: NDArray[np.intp]) -> Array:
        """Return the features of some rows by number."""
        return self._transform(self._source[rows])


def read_rows(X: Any, transform: Callable[[Any], Array], n_columns: int) -> RowBlocks:
    """Return rows as blocks of features that are mapped again on each pass, wherever the rows are."""
    return X.blocks(transform, n_columns) if isinstance(X, LazyRows) else ReadRows(X, transform, n_columns)


def as_blocks(X: Any) -> RowBlocks:
    """Return row blocks as they are, and an array as one stored block."""
    return X if isinstance(X, RowBlocks) else StoredRows(X)


def store_if_it_fits(blocks: RowBlocks, device: str) -> RowBlocks:
    """Store mapped rows on a device of PyTorch if they take at most half of its free memory."""
    import torch

    bytes_needed = blocks.shape[0] * blocks.shape[1] * blocks.like.dtype.itemsize
    kind = torch.device(device)
    room = torch.cuda.mem_get_info(kind)[0] // 2 if kind.type == "cuda" else working_bytes()
    if bytes_needed > room:
        return blocks
    return StoredRows(blocks.visit(lambda rows: ((rows,), ()))[0][0])


class LazyRows:
    """Rows that are transformed when they are read, by a slice or by an array of row numbers.

    Parameters
    ----------
    source : array, numpy.memmap or scipy sparse matrix of shape (n, any)
        The rows.
    transform : callable
        Maps rows of the source to a dense array.
    """

    def __init__(self, source: Any, transform: Callable[[Any], NDArray[Any]]) -> None:
        self._source, self._transform = source, transform
        first = transform(source[:1])
        self.dtype = first.dtype
        self.shape: tuple[int, int] = (source.shape[0], first.shape[1])

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> NDArray[Any]:
        return self._transform(self._source[rows])

    def range_of_columns(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the smallest and the largest value of each column."""
        low, high = np.full(self.shape[1], np.inf, self.dtype), np.full(self.shape[1], -np.inf, self.dtype)
        for rows in gen_batches(self.shape[0], rows_at_once(self.shape[1] * self.dtype.itemsize)):
            block = self[rows]
            low, high = np.minimum(low, block.min(axis=0)), np.maximum(high, block.max(axis=0))
        return low, high

    def map(self, transform: Callable[[Any], NDArray[Any]]) -> LazyRows:
        """Return the same rows with one more transformation."""
        return LazyRows(self, transform)

    def blocks(self, transform: Callable[[Any], Array], n_columns: int) -> RowBlocks:
        """Return the rows as blocks of mapped features."""
        return ReadRows(self, transform, n_columns)


class DeviceRows(LazyRows):
    """Rows on a device of PyTorch: rows that are read come back as NumPy arrays, but blocks are tensors there.

    Parameters
    ----------
    rows : torch.Tensor of shape (n, d)
        The rows.
    """

    def __init__(self, rows: Array) -> None:
        self._rows = rows
        self.dtype = to_numpy(rows[:1]).dtype
        self.shape = (int(rows.shape[0]), int(rows.shape[1]))

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> NDArray[Any]:
        return to_numpy(self._rows[rows])

    def blocks(self, transform: Callable[[Any], Array], n_columns: int) -> RowBlocks:
        """Return the rows as blocks of features that are mapped on the device."""
        return ReadRows(self._rows, transform, n_columns)


def bring_to_device(X: Any, name: str | None) -> Any:
    """Return dense rows on a device of PyTorch, so that they are read once; as they are if there is no room or device."""
    if name is None or scipy.sparse.issparse(X) or isinstance(X, DeviceRows):
        return X
    found = store_if_it_fits(read_rows(X, partial(to_device, name=name), X.shape[1]), name)
    return DeviceRows(found._X) if isinstance(found, StoredRows) else X


def transform_rows(source: Any, transform: Callable[[Any], Any]) -> Any:
    """Transform all rows at once if they fit into scikit-learn's ``working_memory``, else when they are read.

    Rows that stay sparse are no larger than the source, and transformed at once.
    """
    if isinstance(source, LazyRows):
        return source.map(transform)
    first = transform(source[:1])
    shape = (source.shape[0], first.shape[1])
    if scipy.sparse.issparse(first) or fits_in_memory(shape, first.dtype):
        return transform(source)
    return LazyRows(source, transform)


def multiply_rows(source: Any, transform: Callable[[Any], Array], matrix: Array) -> NDArray[Any]:
    """Compute ``transform(rows) @ matrix`` in blocks of rows of a NumPy array or sparse matrix."""
    n, width = source.shape[0], (source.shape[1] + matrix.shape[0]) * matrix.dtype.itemsize
    blocks = gen_batches(n, rows_at_once(width))
    parts = [to_numpy(tall_product(transform(source[rows]), matrix)) for rows in blocks]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def compute_in_batches(work: Callable[..., Array], *arrays: Array) -> NDArray[Any]:
    """Apply a function to batches of rows of thin arrays, to bound the memory of its temporary arrays.

    Returns a NumPy array with the shape and the type of the first array.
    """
    first = arrays[0]
    found = np.empty(first.shape, to_numpy(first[:1]).dtype)
    # The temporary arrays are a dozen in double precision, of which rows_at_once allows for four.
    for rows in gen_batches(first.shape[0], rows_at_once(24 * first.shape[1])):
        found[rows] = to_numpy(work(*(each[rows] for each in arrays)))
    return found


def _sum_gram(block: Array, weights: Array | None) -> tuple[tuple[()], tuple[Array]]:
    xp = array_namespace(block)
    return (), (xp.astype(lower_gram(block, weights), xp.float64),)


def _bytes_per_row(array: Array) -> int:
    size = 1
    for length in array.shape[1:]:
        size *= int(length)
    return size * int(getattr(array.dtype, "itemsize", 8))


def _empty_rows(n_rows: int, like: Array) -> Array:
    """Return an array of so many rows of the kind of these, to be filled; laid out by rows, as NumPy slices need it."""
    xp = array_namespace(like)
    options: dict[str, Any] = {} if is_numpy_namespace(xp) else {"device": device(like)}
    return xp.empty((n_rows, *like.shape[1:]), dtype=like.dtype, **options)
