"""The first stage of P-LENFN: candidates weighted by what near and far rows say of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import euclidean_distances

Matrix = NDArray[np.float64]
Exclude = Literal["none", "self", "first"]

_SELF_SHARE = 0.7
_NEAR_SHARE = 0.2
_FAR_SHARE = 0.1
_RELATIVE_DISTANCE = 0.2
# Cells of a block of distances: 32 MB.
_BLOCK_CELLS = 4_000_000


def enhance_labels(X: Matrix, Y: Matrix, *, exclude: Exclude = "none") -> Matrix:
    """J: candidates weighted by how common they are among near rows, and how rare among far rows.

    ``J_i = Y_i ∘ (0.7 Y_i + 0.2 mean_near(Y_j) + 0.1 mean_far(1 − Y_j))``. With ``S_ij = exp(−‖x_i − x_j‖ / (2s²))``,
    s the mean distance to the nearest other row, rows are near (far) where S is within a fifth of its range over the
    row of the largest (smallest) value. Where there is none, the mean is 1.

    Parameters
    ----------
    X : (n, d)
        Features in [−1, 1].
    Y : (n, c) of 0 and 1
    exclude : {"none", "self", "first"}
        Who is neither near nor far: nobody, the row itself, or the first row of the data.
    """
    scale = 2 * np.mean(np.concatenate([nearest for _, _, nearest in _distance_blocks(X)])) ** 2
    J = np.empty_like(Y)
    for rows, distances, _ in _distance_blocks(X):
        S = np.exp(-distances / scale) if scale > 0 else (distances == 0).astype(float)
        low, high = S.min(axis=1, keepdims=True), S.max(axis=1, keepdims=True)
        width = _RELATIVE_DISTANCE * (high - low)
        near = (high - width) <= S
        far = (low + width) >= S
        if exclude == "first":
            near[:, 0] = far[:, 0] = False
        elif exclude == "self":
            local = np.arange(len(rows))
            near[local, rows] = far[local, rows] = False
        J[rows] = _SELF_SHARE * Y[rows] + _FAR_SHARE * _mean_over(far, 1 - Y)
        J[rows] += _NEAR_SHARE * _mean_over(near, Y)
    # The three shares may sum to 1 and a rounding error.
    return np.minimum(J, 1) * Y


def _distance_blocks(X: Matrix) -> Iterator[tuple[NDArray[np.intp], Matrix, Matrix]]:
    """Blocks of rows, their distances to all rows, and to the nearest other row."""
    n = len(X)
    norms = np.einsum("ij,ij->i", X, X)
    # What rounding leaves of the distance between duplicates, as squares are found by products.
    rounding = 1e-12 * max(float(norms.max()), 1.0)
    for start in range(0, n, max(1, _BLOCK_CELLS // n)):
        rows = np.arange(start, min(start + max(1, _BLOCK_CELLS // n), n))
        squared = euclidean_distances(
            X[rows], X, squared=True, X_norm_squared=norms[rows], Y_norm_squared=norms
        )
        squared[squared <= rounding] = 0
        local = np.arange(len(rows))
        squared[local, rows] = np.inf
        nearest = np.sqrt(squared.min(axis=1))
        squared[local, rows] = 0
        yield rows, np.sqrt(squared, out=squared), nearest


def _mean_over(chosen: NDArray[np.bool_], labels: Matrix) -> Matrix:
    count = chosen.sum(axis=1, keepdims=True)
    return np.where(count > 0, chosen.astype(np.float64) @ labels / np.maximum(count, 1), 1.0)
