"""Neighbour similarity: the sparse graph that local alignment smooths over."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_array

__all__ = ["check_similarity", "neighbour_similarity"]


def neighbour_similarity(X: ArrayLike, *, n_neighbors: int = 5) -> scipy.sparse.csr_array:
    """Symmetric similarity of near neighbours, ``s_ij = exp(−‖x_i − x_j‖² / σ²)``.

    An entry is present where j is among the ``n_neighbors`` nearest rows of i, or i among those of j; there are no
    self loops. σ is the mean distance of a row to its last neighbour. Where σ = 0 (every row has enough exact
    duplicates) each present entry is 1.

    Parameters
    ----------
    X : array of shape (n, d)
        Dense features on comparable scales.
    n_neighbors : int, default=5

    Returns
    -------
    csr_array of shape (n, n)
        In the dtype of X. Between tied neighbours (equal distances, as exact duplicates give) the choice is the
        search's own and may depend on the order of rows.
    """
    X = check_array(X, dtype=[np.float64, np.float32])
    n = X.shape[0]
    if n_neighbors < 1:
        raise ValueError(f"n_neighbors must be at least 1, got {n_neighbors}.")
    if n <= n_neighbors:
        raise ValueError(
            f"n_neighbors={n_neighbors} needs at least {n_neighbors + 1} rows, but X has n_samples = {n}; "
            f"use a smaller n_neighbors."
        )
    distances, neighbours = _nearest(X, n_neighbors)
    sigma = float(distances[:, -1].mean())
    with np.errstate(under="ignore"):
        similarity = np.exp(-((distances / sigma) ** 2)) if sigma > 0 else np.ones_like(distances)
    starts = np.arange(0, n * n_neighbors + 1, n_neighbors)
    directed = scipy.sparse.csr_array(
        (similarity.astype(X.dtype, copy=False).ravel(), neighbours.ravel(), starts), shape=(n, n)
    )
    return scipy.sparse.csr_array(directed.maximum(directed.T))


def _nearest(X: NDArray[Any], n_neighbors: int) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Distances and indices of the nearest other rows, exact."""
    distances, neighbours = NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors()
    return distances, neighbours


def check_similarity(graph: Any, n_rows: int) -> scipy.sparse.csr_array:
    """Validate a precomputed similarity: sparse, n×n, finite, non-negative, symmetric."""
    if not scipy.sparse.issparse(graph):
        raise TypeError(f"graph must be a scipy sparse matrix or None, got {type(graph).__name__}.")
    similarity = scipy.sparse.csr_array(graph, dtype=np.result_type(graph.dtype, np.float32))
    if similarity.shape != (n_rows, n_rows):
        raise ValueError(
            f"graph has shape {similarity.shape}, but X has {n_rows} rows; it must be {(n_rows, n_rows)}."
        )
    if not np.isfinite(similarity.data).all():
        raise ValueError("graph contains NaN or infinity.")
    if (similarity.data < 0).any():
        raise ValueError("graph contains negative similarities; they must be at least 0.")
    asymmetry = scipy.sparse.coo_array(abs(similarity - similarity.T))
    if asymmetry.nnz and asymmetry.data.max() > 1e-6 * similarity.data.max():
        worst = int(asymmetry.data.argmax())
        row, column = int(asymmetry.coords[0][worst]), int(asymmetry.coords[1][worst])
        raise ValueError(
            f"graph is not symmetric: entries ({row}, {column}) and ({column}, {row}) differ; "
            f"use graph.maximum(graph.T)."
        )
    return similarity
