"""Orders that do not depend on where things stand, for methods that draw at random.

A random start drawn by position makes the result depend on the order of rows, features or labels. Drawn in the order of
content, it moves along with them: the same data in another order give the same model. Each order below is by numbers that
no permutation changes; things that agree in all of them (duplicates, as a rule) keep their given order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["feature_order", "label_order", "row_order"]

Order = NDArray[np.intp]


def row_order(X: NDArray[Any]) -> Order:
    """Indices of the rows of X, in an order that permuting rows or columns does not change."""
    X = X.astype(np.float64, copy=False)
    return _sorted(np.column_stack([(X**power).sum(axis=1) for power in (1, 2, 3)]))


def feature_order(X: NDArray[Any]) -> Order:
    """Indices of the columns of X, in an order that permuting rows or columns does not change."""
    X = X.astype(np.float64, copy=False)
    sizes = np.einsum("ij,ij->i", X, X)
    return _sorted(np.column_stack([X.sum(axis=0), (X**2).sum(axis=0), sizes @ X, sizes**2 @ X]))


def label_order(X: NDArray[Any], Y: NDArray[Any]) -> Order:
    """Indices of the columns of Y, in an order that permuting rows of both, columns of X or labels does not change."""
    X, Y = X.astype(np.float64, copy=False), Y.astype(np.float64, copy=False)
    sizes, sums = np.einsum("ij,ij->i", X, X), X.sum(axis=1)
    return _sorted(np.column_stack([Y.sum(axis=0), Y.sum(axis=1) @ Y, sizes @ Y, sums @ Y]))


def _sorted(keys: NDArray[np.float64]) -> Order:
    # The order of summation moves the last digits; they must not decide.
    scale = np.abs(keys).max(axis=0)
    return np.lexsort(np.round(keys / np.where(scale > 0, scale, 1), 9).T[::-1])
