"""Neighbour similarity: the sparse graph that local alignment smooths over."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_argmin
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_array

__all__ = ["check_similarity", "neighbour_similarity"]


Search = Literal["auto", "exact", "cells"]

# Above this many rows the exact search, whose cost grows with the square of the rows, gives way to the search in cells.
EXACT_SEARCH_ROWS = 10_000
_ROWS_PER_CELL = 256
_CELLS_SEARCHED = 16


def neighbour_similarity(X: Any, *, n_neighbors: int = 5, search: Search = "auto") -> scipy.sparse.csr_array:
    """Symmetric similarity of near neighbours, ``s_ij = exp(−‖x_i − x_j‖² / σ²)``.

    An entry is present where j is among the ``n_neighbors`` nearest rows of i, or i among those of j; there are no
    self loops. σ is the mean distance of a row to its last neighbour. Where σ = 0 (every row has enough exact
    duplicates) each present entry is 1.

    Parameters
    ----------
    X : array of shape (n, d)
        Dense features on comparable scales.
    n_neighbors : int, default=5
    search : {"auto", "exact", "cells"}, default="auto"
        "exact" compares all pairs of rows. "cells" assigns each row to the nearest of n/256 pivot rows and searches
        only the 16 cells around its own: a few neighbours may be missed, and the cost no longer grows with the
        square of the rows. "auto" is exact up to 10,000 rows.

    Returns
    -------
    csr_array of shape (n, n)
        In the dtype of X. Between tied neighbours (equal distances, as exact duplicates give) the choice is the
        search's own and may depend on the order of rows; so may the pivots of "cells".
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
    if search not in ("auto", "exact", "cells"):
        raise ValueError(f'search must be "auto", "exact" or "cells", got {search!r}.')
    exact = search == "exact" or (search == "auto" and n <= EXACT_SEARCH_ROWS)
    distances, neighbours = (_nearest if exact else _nearest_in_cells)(X, n_neighbors)
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
    # Trees win only in very few dimensions: measured at 10,000 rows, brute force is faster from about six on.
    algorithm = "brute" if X.shape[1] > 5 else "auto"
    distances, neighbours = NearestNeighbors(n_neighbors=n_neighbors, algorithm=algorithm).fit(X).kneighbors()
    return distances, neighbours


def _nearest_in_cells(X: NDArray[Any], n_neighbors: int) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Distances and indices of near other rows, searched for in the cells around each row's own."""
    n = X.shape[0]
    pivots = X[np.random.RandomState(0).choice(n, size=-(-n // _ROWS_PER_CELL), replace=False)]
    cell = pairwise_distances_argmin(X, pivots)
    members = np.split(
        np.argsort(cell, kind="stable"), np.cumsum(np.bincount(cell, minlength=len(pivots)))[:-1]
    )
    sizes = np.array([len(rows) for rows in members])
    distances = np.empty((n, n_neighbors), X.dtype)
    neighbours = np.empty((n, n_neighbors), np.intp)
    for own, rows in enumerate(members):
        if not len(rows):
            continue
        order = np.argsort(((pivots - pivots[own]) ** 2).sum(axis=1), kind="stable")
        enough = int(np.searchsorted(np.cumsum(sizes[order]), n_neighbors + 1)) + 1
        pool = np.concatenate([members[index] for index in order[: max(_CELLS_SEARCHED, enough)]])
        found = NearestNeighbors(n_neighbors=n_neighbors + 1, algorithm="brute").fit(X[pool])
        near, index = found.kneighbors(X[rows])
        # Leave each row itself out, or the last one found where duplicates pushed the row itself off the list.
        others = pool[index] != rows[:, None]
        others[others.all(axis=1), -1] = False
        distances[rows] = near[others].reshape(len(rows), n_neighbors)
        neighbours[rows] = pool[index][others].reshape(len(rows), n_neighbors)
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
        row, column = int(asymmetry.row[worst]), int(asymmetry.col[worst])
        raise ValueError(
            f"graph is not symmetric: entries ({row}, {column}) and ({column}, {row}) differ; "
            f"use graph.maximum(graph.T)."
        )
    return similarity
