"""Sparse graphs between near rows: similarities and reconstruction weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.optimize import nnls
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_array

from skpml._blocks import LazyRows
from skpml._cell_search import search_cells
from skpml._ordering import row_order
from skpml._sharing import once

__all__ = ["check_similarity", "neighbor_similarity", "reconstruction_weights"]


Search = Literal["auto", "exact", "cells"]
Scale = Literal["last", "first"]

# Above this many rows "auto" searches in cells, because the cost of the exact search grows with the square of the rows.
EXACT_SEARCH_ROWS = 10_000
# Of squared distances, relative to the largest squared length.
_ROUNDING = 1e-12
# Of a sum of squared differences, relative to it, in units of the precision of the rows.
_SUM_ROUNDING = 100
# Ties give a row at most this many pairs divided by the number of rows.
_TIED_PAIRS = 5_000_000


def neighbor_similarity(
    X: Any,
    *,
    n_neighbors: int = 5,
    search: Search = "auto",
    scale: Scale = "last",
    device: str | None = None,
) -> scipy.sparse.csr_array:
    """Compute the symmetric similarity of near neighbors, ``exp(−‖x_i − x_j‖² / σ²)``.

    The cell (i, j) is present if j is among the ``n_neighbors`` nearest rows of i, or i among those of j; there are no
    self loops. σ is the mean distance of a row to its last neighbor. If σ = 0 (every row has enough exact duplicates),
    each present cell is 1.

    Parameters
    ----------
    X : array of shape (n, d), or LazyRows
        Dense features on comparable scales.
    n_neighbors : int, default=5
        Number of neighbors of a row, fewer than the number of rows.
    search : {"auto", "exact", "cells"}, default="auto"
        "exact" compares all pairs of rows. "cells" divides the rows into 4√n cells by k-means and compares each row only
        with those of the 32 cells nearest to it: a few neighbors may be missed, but the cost no longer grows with the
        square of the rows. "auto" is exact up to 10,000 rows.
    scale : {"last", "first"}, default="last"
        "first" is the weight of the authors of PML-PLR: ``exp(−‖x_i − x_j‖² / (2 s²))``, where s is the mean *squared*
        distance of a row to its nearest other row (without rows that have duplicates), and the two directions of a
        pair are averaged, so that one-sided neighbors get half the weight.
    device : str or None, default=None
        Device of PyTorch for the search in cells, such as "cuda"; None searches with scikit-learn.

    Returns
    -------
    csr_array of shape (n, n)
        Similarities in the dtype of X. Rows that tie for the last place are all neighbors, so the graph does not
        depend on the order of rows (a row keeps at most 5,000,000 / n tied neighbors). The search in cells keeps the ties
        it finds, up to five times ``n_neighbors``, and its cells depend on the order.
    """
    if not isinstance(X, LazyRows):
        X = check_array(X, dtype=[np.float64, np.float32])
    n = X.shape[0]
    if n_neighbors < 1:
        raise ValueError(f"n_neighbors must be at least 1, got {n_neighbors}.")
    if n <= n_neighbors:
        needed = f"n_neighbors={n_neighbors} needs at least {n_neighbors + 1} rows"
        raise ValueError(f"{needed}, but X has n_samples = {n}; use a smaller n_neighbors.")
    for name, value, known in (("search", search, get_args(Search)), ("scale", scale, get_args(Scale))):
        if value not in known:
            raise ValueError(f"{name} must be one of {known}, got {value!r}.")
    if isinstance(X, LazyRows):
        # Rows that are too many to keep are also too many to share.
        return _neighbor_similarity(X, n_neighbors, search, scale, device)
    return once(_neighbor_similarity, X, n_neighbors, search, scale, device)


def _neighbor_similarity(
    X: Any, n_neighbors: int, search: Search, scale: Scale, device: str | None
) -> scipy.sparse.csr_array:
    n = X.shape[0]
    if search == "exact" or (search == "auto" and n <= EXACT_SEARCH_ROWS):
        rows = X[:]
        # Centering keeps the distances, and the products they are computed from lose fewer digits.
        pairs = _nearest(rows - rows.mean(axis=0), n_neighbors)
    else:
        pairs = _nearest_in_cells(X, n_neighbors, device)
    if scale == "last":
        width = float(np.sqrt(pairs.last).mean()) ** 2
    else:
        nearest = np.full(n, np.inf)
        np.minimum.at(nearest, pairs.row, pairs.squared)
        width = 2 * float(nearest[nearest > 0].mean()) ** 2 if nearest.any() else 0.0
    with np.errstate(under="ignore"):
        similarity = np.exp(-pairs.squared / width) if width > 0 else np.ones_like(pairs.squared)
    directed = scipy.sparse.csr_array(
        (similarity.astype(X.dtype, copy=False), (pairs.row, pairs.neighbor)), shape=(n, n)
    )
    both = directed.maximum(directed.T) if scale == "last" else (directed + directed.T) / 2
    return scipy.sparse.csr_array(both)


def reconstruction_weights(X: Any, *, n_neighbors: int = 10) -> scipy.sparse.csr_array:
    """Express each row as a non-negative combination of its neighbors.

    Minimizes ``‖x_i − Σ_j w_ij x_j‖²`` over ``w_ij ≥ 0``, where j runs over the nearest other rows of i. Rows that tie
    for the last place are taken in the order of their content. Each row of weights is then divided by its sum; it is
    zero if no neighbor helps to reconstruct the row.

    Parameters
    ----------
    X : array of shape (n, d)
        Dense features of at least two rows.
    n_neighbors : int, default=10
        Number of neighbors of a row; all other rows if there are fewer.

    Returns
    -------
    csr_array of shape (n, n)
        Weights in the dtype of X, with an empty diagonal.
    """
    X = check_array(X, dtype=[np.float64, np.float32], ensure_min_samples=2)
    return once(_reconstruction_weights, X, n_neighbors)


def _reconstruction_weights(X: NDArray[Any], n_neighbors: int) -> scipy.sparse.csr_array:
    n = X.shape[0]
    near = _nearest_by_content(X, min(n_neighbors, n - 1))
    weights = np.empty(near.shape)
    for row in range(n):
        weights[row] = nnls(X[near[row]].T, X[row])[0]
    totals = weights.sum(axis=1, keepdims=True)
    weights /= np.where(totals > 0, totals, 1)
    index = np.repeat(np.arange(n), near.shape[1])
    matrix = scipy.sparse.csr_array((weights.ravel().astype(X.dtype), (index, near.ravel())), shape=(n, n))
    matrix.eliminate_zeros()
    return matrix


def _nearest_by_content(X: NDArray[Any], n_neighbors: int) -> NDArray[np.intp]:
    """Find exactly ``n_neighbors`` near rows of each row; content decides ties and the order of the columns."""
    centered = X - X.mean(axis=0)
    pairs = _nearest(centered, n_neighbors)
    rank = np.empty(X.shape[0], np.intp)
    rank[row_order(X)] = np.arange(X.shape[0])
    tied = pairs.squared > pairs.last[pairs.row] - _rounding(centered)
    order = np.lexsort((rank[pairs.neighbor], tied, pairs.row))
    first = np.concatenate([[0], np.cumsum(np.bincount(pairs.row, minlength=X.shape[0]))[:-1]])
    return pairs.neighbor[order][first[:, None] + np.arange(n_neighbors)]


@dataclass(frozen=True)
class _Pairs:
    """Rows and their neighbors, the squared distance of each pair, and that of each row to its last neighbor."""

    row: NDArray[np.intp]
    neighbor: NDArray[np.intp]
    squared: NDArray[np.float64]
    last: NDArray[np.float64]


def _rounding(X: NDArray[Any]) -> float:
    """Bound the rounding error of a squared distance that is computed from products of rows."""
    return _ROUNDING * float(np.einsum("ij,ij->i", X, X, dtype=np.float64).max())


def _nearest(X: NDArray[Any], n_neighbors: int) -> _Pairs:
    """Find the nearest other rows of each row, with all that tie for the last place.

    If distances tie, as with counts and duplicates, a row may have more than ``n_neighbors`` neighbors: j is among the
    nearest of i if fewer than ``n_neighbors`` rows are strictly nearer. Keeping only some of the tied rows would make the
    graph depend on the order of rows. Ties are cut off only if all of them would make millions of pairs.
    """
    n = X.shape[0]
    # Trees are faster only in very few dimensions: at 10,000 rows, brute force wins from about six dimensions on.
    search = NearestNeighbors(algorithm="brute" if X.shape[1] > 5 else "auto").fit(X)
    limit = min(n - 1, max(20 * n_neighbors, _TIED_PAIRS // n))
    rounding = _rounding(X)
    # More than needed: the extra cost is small, and ties rarely continue past the last row found.
    pending, count = np.arange(n), min(6 * n_neighbors + 2, limit)
    parts, last = [], np.empty(n)
    while len(pending):
        squared, near = _others(search, X, pending, count)
        squared[squared <= rounding] = 0
        tied = squared[:, n_neighbors - 1] + rounding
        open_ended = (squared[:, -1] <= tied) & (count < limit)
        taken = (squared <= tied[:, None]) & ~open_ended[:, None]
        last[pending] = squared[:, n_neighbors - 1]
        parts.append((np.broadcast_to(pending[:, None], near.shape)[taken], near[taken], squared[taken]))
        pending, count = pending[open_ended], min(4 * count, limit)
    row, neighbor, squared = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _Pairs(row, neighbor, squared, last)


def _others(
    search: Any, X: NDArray[Any], rows: NDArray[np.intp], count: int
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Find the nearest ``count`` other rows of each row: squared distances and indices."""
    if len(rows) == X.shape[0]:
        distances, index = search.kneighbors(n_neighbors=count)
        return distances**2, index
    distances, index = search.kneighbors(X[rows], n_neighbors=count + 1)
    others = _without_self(index, rows)
    return distances[others].reshape(len(rows), count) ** 2, index[others].reshape(len(rows), count)


def _without_self(index: NDArray[np.intp], rows: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Mask each row itself, or the last one found if duplicates displaced the row from the list."""
    others = index != rows[:, None]
    others[others.all(axis=1), -1] = False
    return others


def _nearest_in_cells(X: Any, n_neighbors: int, device: str | None) -> _Pairs:
    """Find near rows of each row in cells, with those found that tie for the last place."""
    more = min(5 * n_neighbors, _TIED_PAIRS // X.shape[0])
    numbers, squared = search_cells(X, n_neighbors, more=more, device=device)
    last = np.partition(squared, n_neighbors - 1, axis=1)[:, n_neighbors - 1]
    taken = squared <= (1 + _SUM_ROUNDING * np.finfo(X.dtype).eps) * last[:, None]
    row, place = np.nonzero(taken)
    return _Pairs(row, numbers[row, place].astype(np.intp), squared[row, place], last)


def check_similarity(graph: Any, n_rows: int) -> scipy.sparse.csr_array:
    """Validate a precomputed similarity: sparse, n×n, finite, non-negative, symmetric.

    Parameters
    ----------
    graph : scipy sparse matrix
        Similarities between the rows.
    n_rows : int
        Number of rows of X.

    Returns
    -------
    csr_array of shape (n_rows, n_rows)
        The same similarities as floating-point numbers.
    """
    if not scipy.sparse.issparse(graph):
        raise TypeError(f"graph must be a scipy sparse matrix or None, got {type(graph).__name__}.")
    similarity = scipy.sparse.csr_array(graph, dtype=np.result_type(graph.dtype, np.float32))
    if similarity.shape != (n_rows, n_rows):
        shape = similarity.shape
        raise ValueError(f"graph has shape {shape}, but X has {n_rows} rows; it must be {(n_rows, n_rows)}.")
    if not np.isfinite(similarity.data).all():
        raise ValueError("graph contains NaN or infinity.")
    if (similarity.data < 0).any():
        raise ValueError("graph contains negative similarities; they must be at least 0.")
    asymmetry = scipy.sparse.coo_array(abs(similarity - similarity.T))
    if asymmetry.nnz and asymmetry.data.max() > 1e-6 * similarity.data.max():
        worst = int(asymmetry.data.argmax())
        i, j = int(asymmetry.row[worst]), int(asymmetry.col[worst])
        raise ValueError(
            f"graph is not symmetric: cells ({i}, {j}) and ({j}, {i}) differ; use graph.maximum(graph.T)."
        )
    return similarity
