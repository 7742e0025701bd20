"""Rows of numbers that come in batches: in memory, or in a temporary file if they are too many."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from skpml.linalg import working_bytes
from skpml.tables._errors import TableError

_ROWS_AT_ONCE = 8192


class RowStore:
    """A matrix to which rows are added.

    More than scikit-learn's setting ``working_memory`` allows are kept in a file in the folder for temporary files, which
    is gone as soon as the matrix is.
    """

    def __init__(self) -> None:
        self.n_rows = 0
        self._blocks: list[NDArray[Any]] = []
        self._file: BinaryIO | None = None
        self._dtype, self._width = np.dtype(np.float64), 0

    def add(self, rows: NDArray[Any]) -> None:
        """Add rows, with as many columns as those before."""
        if not self.n_rows:
            self._dtype, self._width = rows.dtype, rows.shape[1]
        dtype = np.promote_types(self._dtype, rows.dtype)
        if self._file is not None and dtype != self._dtype:
            self._convert(dtype)
        self._dtype = dtype
        self.n_rows += len(rows)
        if self._file is None:
            self._blocks.append(rows)
            if self.n_rows * self._width * dtype.itemsize <= working_bytes():
                return
            self._file = _open_temporary()
            blocks, self._blocks = self._blocks, []
        else:
            blocks = [rows]
        for block in blocks:
            self._write(block)

    def finish(self) -> NDArray[Any]:
        """Return all rows; what is in a file is read when it is needed."""
        if self._file is None:
            return np.concatenate(self._blocks) if self._blocks else np.empty((0, 0))
        try:
            self._file.flush()
            shape = (self.n_rows, self._width)
            return np.memmap(self._file, dtype=self._dtype, mode="r", shape=shape)
        finally:
            self._file.close()

    def _write(self, rows: NDArray[Any]) -> None:
        assert self._file is not None
        try:
            self._file.write(np.ascontiguousarray(rows, dtype=self._dtype).data)
        except OSError as error:
            problem = f"the features do not fit into the folder for temporary files ({tempfile.gettempdir()}: {error})"
            advice = "; make room there, or name another folder by the environment variable TMPDIR"
            raise TableError(problem, advice) from error

    def _convert(self, dtype: np.dtype[Any]) -> None:
        """Write what is there anew in another precision."""
        before = self.finish()
        self._file, self._dtype = _open_temporary(), dtype
        for start in range(0, len(before), _ROWS_AT_ONCE):
            self._write(before[start : start + _ROWS_AT_ONCE])


def pick_columns(matrix: NDArray[Any], places: Sequence[int]) -> NDArray[Any]:
    """Return some columns; those of a matrix in a file are in a file too, unless they are few."""
    if not isinstance(matrix, np.memmap):
        return matrix[:, places]
    store = RowStore()
    for start in range(0, len(matrix), _ROWS_AT_ONCE):
        store.add(np.asarray(matrix[start : start + _ROWS_AT_ONCE])[:, places])
    return store.finish()


def _open_temporary() -> BinaryIO:
    # The array of the file outlives this object, and with it the file.
    return tempfile.TemporaryFile(prefix="skpml-")
