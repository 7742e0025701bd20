"""Features that stand in a file of their own: one row of numbers for each row of the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from skpml.datasets._errors import DatasetFormatError
from skpml.datasets._formats.files import parsing
from skpml.datasets._formats.npz import read_arrays
from skpml.datasets._validation import as_features, listed

EMBEDDING_SUFFIXES = (".npy", ".npz")
_USUAL_KEYS = ("embeddings", "X")


def read_embeddings_of(table: Path, path: str | Path, n_rows: int) -> Any:
    """Read the embeddings of a table of so many rows, as `read_embeddings`."""
    matrix = read_embeddings(path)
    if len(matrix) != n_rows:
        raise DatasetFormatError(
            path, f"has {len(matrix):,} rows, but {table.name} has {n_rows:,}: one row for each is needed"
        )
    return matrix


def read_embeddings(path: str | Path) -> Any:
    """Read the matrix of an ``.npy`` file, or of an ``.npz`` file that holds one (or one called embeddings or X).

    Raises
    ------
    DatasetFormatError
        If there is no such matrix, if it has no rows, or if it holds NaN or infinity.
    """
    path = Path(path)
    if path.suffix.lower() not in EMBEDDING_SUFFIXES:
        raise ValueError(f"{path}: embeddings are read from .npy and .npz files, not {path.suffix!r}")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    matrix = _only_matrix(path) if path.suffix.lower() == ".npz" else _array(path)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise DatasetFormatError(
            path, f"embeddings must be a matrix of rows × features, got the shape {matrix.shape}"
        )
    if not len(matrix):
        raise DatasetFormatError(path, "is a matrix without rows")
    try:
        return as_features(matrix)
    except ValueError as error:
        raise DatasetFormatError(path, str(error)) from error


def _array(path: Path) -> Any:
    if path.stat().st_size == 0:
        raise DatasetFormatError(path, "is empty, so it holds no embeddings; copy it again")
    with parsing(path, "npy"):
        return np.load(path, allow_pickle=False)


def _only_matrix(path: Path) -> Any:
    arrays = read_arrays(path)
    for key in _USUAL_KEYS:
        if key in arrays:
            return arrays[key]
    if len(arrays) != 1:
        raise DatasetFormatError(
            path,
            f"cannot tell which of its arrays holds the embeddings ({listed(sorted(arrays)) or 'there is none'}); "
            "call it 'embeddings'",
        )
    return next(iter(arrays.values()))
