"""Checks on the parts of a data set: each says which row and column is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from skpml._validation import check_finite, check_indicator

LabelMatrix = NDArray[np.uint8]
_SHOWN = 5


def listed(items: Sequence[Any]) -> str:
    """Write the first few items and how many more there are."""
    text = ", ".join(str(item) for item in items[:_SHOWN])
    return text if len(items) <= _SHOWN else f"{text} and {len(items) - _SHOWN:,} more"


def is_sparse(values: Any) -> bool:
    """Whether values is a scipy sparse matrix or array."""
    return bool(sp.issparse(values))


def default_label_names(count: int) -> tuple[str, ...]:
    """Names for labels that came without: ``label_0``, ``label_1``, …"""
    return tuple(f"label_{column}" for column in range(count))


def default_feature_names(count: int) -> tuple[str, ...]:
    """Names for features that came without: ``feature_0``, ``feature_1``, …"""
    return tuple(f"feature_{column}" for column in range(count))


def as_label_matrix(values: Any, what: str, *, minus_one_is_zero: bool = False) -> LabelMatrix:
    """Return a fresh read-only uint8 matrix of zeros and ones.

    Parameters
    ----------
    values : array-like or sparse matrix of shape (n_rows, n_labels)
        Numbers or booleans.
    what : str
        How errors name the matrix.
    minus_one_is_zero : bool, default=False
        Read −1 as 0, as MATLAB files of the field write it.
    """
    matrix = check_indicator(values, what, minus_one_is_zero=minus_one_is_zero)
    if matrix.shape[1] == 0:
        raise ValueError(f"{what} has no columns: at least one label is needed")
    matrix.flags.writeable = False
    return matrix


def as_features(values: Any, feature_names: tuple[str, ...] | None = None) -> Any:
    """Return features as float ndarray or CSR array; refuse NaN and infinity with their place.

    float32 and float64 are kept as they are, everything else becomes float64. Sparse input of any kind
    becomes a canonical CSR array (sorted, no duplicates) with 32-bit indices where they suffice.
    """
    if is_sparse(values):
        return _as_csr(values, feature_names)
    matrix = np.asarray(values)
    if matrix.ndim != 2:
        raise ValueError(f"X must be a matrix of rows × features, got {matrix.ndim} dimension(s)")
    if matrix.dtype.kind not in "buif":
        try:
            matrix = matrix.astype(np.float64)
        except (TypeError, ValueError) as exc:
            raise ValueError(f"X must hold numbers, got values of type {matrix.dtype}") from exc
    matrix = _as_float(matrix)
    check_finite(matrix, feature_names)
    return matrix


def _as_csr(values: Any, feature_names: tuple[str, ...] | None) -> Any:
    given = values.tocsr()
    matrix: Any = sp.csr_array(given, copy=True)
    matrix.check_format(full_check=True)
    matrix.data = _as_float(matrix.data)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    index_type = np.int32 if max(matrix.nnz, *matrix.shape) <= np.iinfo(np.int32).max else np.int64
    matrix.indices = matrix.indices.astype(index_type, copy=False)
    matrix.indptr = matrix.indptr.astype(index_type, copy=False)
    check_finite(matrix, feature_names)
    return matrix


def _as_float(values: NDArray[Any]) -> NDArray[Any]:
    if values.dtype in (np.float32, np.float64):
        return values.astype(values.dtype.newbyteorder("="), copy=False)
    return values.astype(np.float64)


def as_names(names: Sequence[str], count: int, what: str) -> tuple[str, ...]:
    """Return names as a tuple of str, one a column."""
    if isinstance(names, str):
        raise ValueError(f"{what} must be a sequence of names, got the single string {names!r}")
    result = tuple(str(name) for name in names)
    if len(result) != count:
        raise ValueError(f"{what} has {len(result)} names for {count} columns")
    return result


def repeated(names: Sequence[str]) -> list[str]:
    """Return each name that occurs more than once, in order of first appearance."""
    seen: dict[str, int] = {}
    for name in names:
        seen[name] = seen.get(name, 0) + 1
    return [name for name, times in seen.items() if times > 1]
