"""ML-kNN: how likely a label is, given how many neighbors have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_chunked

from skpml._docstrings import fill_docstring
from skpml.base import BasePMLClassifier, MethodFacts
from skpml.features import RangeScaler

Counts = NDArray[np.float64]

# Megabytes of distances at a time: small enough to stay near the processor.
_BLOCK = 32


@fill_docstring
@dataclass(kw_only=True, repr=False, eq=False)
class MLKNN(BasePMLClassifier):
    """Multi-label k nearest neighbors (ML-kNN), on candidates taken for true labels.

    Counts how many of the k nearest training rows have a label, and computes by Bayes' rule how likely a row with that
    count has the label itself:

        P(label | δ) = P(label) P(δ | label) / (P(label) P(δ | label) + P(no label) P(δ | no label))

    where the frequencies of counts δ = 0 … k are taken over the training rows, each with its own neighbors (without
    itself), and smoothed by adding s to every cell. It is a reference point: it does nothing about false candidates.

    Parameters
    ----------
    n_neighbors : int, default=10
        Number k of neighbors; all other rows if there are fewer.
    smoothing : float, default=1.0
        Weight s of the smoothing, above 0.
    %(threshold)s
        The paper uses 0.5.
    %(on_empty)s

    Attributes
    ----------
    prior_ : ndarray of shape (c,)
        Smoothed share of the rows that have the label.
    likelihood_ : ndarray of shape (2, k + 1, c)
        P(δ | no label) and P(δ | label).
    n_neighbors_ : int
        The k that was used.
    %(scaler)s
    %(fitted)s

    Notes
    -----
    Rows that tie for the last places share them: with two places left and three rows at the same distance, each counts
    for ⅔ of a neighbor. Frequencies and probabilities of fractional counts are interpolated. So the model does not depend
    on the order of the rows; without ties it is the published method. A label has at most k + 1 different scores (more if
    rows tie), so ties between rows and labels are common, and measures that count a tie as an error penalize it.

    The model holds the training rows and their labels. Fitting takes time O(n²(d + log k)), predicting m rows
    O(m n d), both in blocks of fixed memory.

    %(reference_and_data)s
    >>> from skpml.reference import MLKNN
    >>> model = MLKNN().fit(X, candidates)
    >>> model.likelihood_.shape
    (2, 11, 5)
    """

    n_neighbors: int = 10
    smoothing: float = 1.0
    threshold: float | str = "auto"
    on_empty: str = "warn"

    _facts = MethodFacts(
        name="ml-knn",
        title="ML-kNN on the candidates",
        kind="reference",
        summary="posterior from the number of neighbors that carry a label",
        nonlinear=True,
        source="paper",
        year=2007,
        reference="Zhang, Zhou. ML-KNN: A lazy learning approach to multi-label learning. Pattern "
        "Recognition 40(7):2038–2048, 2007.",
        comparison_threshold=0.5,
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.smoothing == 0:
            raise ValueError("smoothing must be above 0: a count that was never seen has no probability.")

    def _fit(self, X: Any, Y: NDArray[Any]) -> NDArray[Any]:
        self.scaler_ = RangeScaler().fit(X)
        self._rows: NDArray[Any] = self.scaler_.transform(X)
        self._labels: NDArray[Any] = Y
        self.n_neighbors_ = min(self.n_neighbors, X.shape[0] - 1)
        counts = count_neighbors(
            self._rows, self._rows, Y, n_neighbors=self.n_neighbors_, leave_out_self=True
        )
        self.prior_ = (self.smoothing + Y.sum(axis=0, dtype=np.float64)) / (2 * self.smoothing + len(Y))
        self.likelihood_ = np.stack(
            [
                count_frequencies(counts, has_label, self.n_neighbors_, smoothing=self.smoothing)
                for has_label in (Y == 0, Y > 0)
            ]
        )
        return self._posterior(counts).astype(X.dtype)

    def _scores(self, X: Any) -> NDArray[Any]:
        counts = count_neighbors(
            self.scaler_.transform(X), self._rows, self._labels, n_neighbors=self.n_neighbors_
        )
        return self._posterior(counts).astype(X.dtype)

    def _posterior(self, counts: Counts) -> Counts:
        without, with_label = interpolate(self.likelihood_, counts)
        with_label *= self.prior_
        without *= 1 - self.prior_
        return with_label / (with_label + without)


def count_neighbors(
    queries: NDArray[Any],
    rows: NDArray[Any],
    labels: NDArray[Any],
    *,
    n_neighbors: int,
    leave_out_self: bool = False,
) -> Counts:
    """Count how many of the nearest rows (n×d) of each query (m×d) have each label, from 0 to ``n_neighbors``.

    Rows that tie for the last places share them equally, so that the order of rows does not matter. With
    ``leave_out_self`` the queries are the rows themselves, and no row is its own neighbor.
    """
    digits = 1e-12 if rows.dtype == np.float64 else 1e-6
    rounding = digits * float(np.einsum("ij,ij->i", rows, rows, dtype=np.float64).max(initial=0))
    labels = labels.astype(np.float64, copy=False)

    def count(squared: NDArray[Any], start: int) -> Counts:
        if leave_out_self:
            own = np.arange(len(squared))
            squared[own, start + own] = np.inf
        last = np.partition(squared, n_neighbors - 1, axis=1)[:, n_neighbors - 1, None]
        near = scipy.sparse.csr_array(squared <= last + rounding, dtype=np.float64)
        row = np.repeat(np.arange(len(squared)), np.diff(near.indptr))
        nearer = squared[row, near.indices] < last[row, 0] - rounding
        n_nearer = np.bincount(row, nearer, minlength=len(squared))
        share = (n_neighbors - n_nearer) / (np.diff(near.indptr) - n_nearer)
        near.data = np.where(nearer, 1.0, share[row])
        return near @ labels

    blocks = pairwise_distances_chunked(
        queries.astype(np.float64, copy=False),
        rows.astype(np.float64, copy=False),
        reduce_func=count,
        metric="euclidean",
        squared=True,
        working_memory=_BLOCK,
    )
    return np.clip(np.concatenate(list(blocks)), 0, n_neighbors)


def count_frequencies(
    counts: Counts, chosen: NDArray[np.bool_], n_neighbors: int, *, smoothing: float
) -> Counts:
    """Compute the smoothed frequency of each count 0 … k among the chosen rows of each label, (k + 1)×c.

    Columns sum to 1. A fractional count is split between the two whole ones around it.
    """
    lower = np.minimum(np.floor(counts), n_neighbors - 1)
    upper_part = (counts - lower) * chosen
    lower_part = chosen - upper_part
    frequency = np.full((n_neighbors + 1, counts.shape[1]), float(smoothing))
    label = np.broadcast_to(np.arange(counts.shape[1]), counts.shape)
    np.add.at(frequency, (lower.astype(np.intp), label), lower_part)
    np.add.at(frequency, (lower.astype(np.intp) + 1, label), upper_part)
    return frequency / frequency.sum(axis=0)


def interpolate(table: NDArray[np.float64], counts: Counts) -> NDArray[np.float64]:
    """Interpolate ``table`` (any, k + 1, c) at the counts (n, c), linearly between whole counts: (any, n, c)."""
    lower = np.minimum(np.floor(counts), table.shape[1] - 2).astype(np.intp)
    label = np.arange(counts.shape[1])
    share = counts - lower
    return (1 - share) * table[:, lower, label] + share * table[:, lower + 1, label]
