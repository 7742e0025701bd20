"""Figures that describe a partial multi-label data set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skpml.datasets._validation import LabelMatrix, is_sparse


@dataclass(frozen=True, kw_only=True)
class DatasetStatistics:
    """Figures of one data set; those that need true labels are None where the truth is unknown.

    Attributes
    ----------
    n_rows, n_labels : int
        Size of the label matrices.
    n_features : int or None
        Columns of X; None for a set of labels only.
    sparse : bool
        Whether X is stored sparse.
    candidates_per_row : float
        Mean number of candidate labels.
    rows_without_candidates : int
        Rows whose candidate set is empty.
    cardinality : float or None
        Mean number of true labels of a row.
    density : float or None
        Cardinality divided by the number of labels.
    diversity : int or None
        Number of distinct sets of true labels.
    diversity_share : float or None
        Diversity divided by the number of rows.
    noise_rate : float or None
        Share of the candidates that are false; 0 where there are no candidates at all.
    rows_without_true_label : int or None
        Rows whose set of true labels is empty.
    labels_without_true_row : int or None
        Labels that are true of no row.
    """

    n_rows: int
    n_features: int | None
    n_labels: int
    sparse: bool
    candidates_per_row: float
    rows_without_candidates: int
    cardinality: float | None
    density: float | None
    diversity: int | None
    diversity_share: float | None
    noise_rate: float | None
    rows_without_true_label: int | None
    labels_without_true_row: int | None


def describe(X: Any, candidates: LabelMatrix, truth: LabelMatrix | None) -> DatasetStatistics:
    """Compute the figures of a data set from its (validated) parts."""
    n_rows, n_labels = candidates.shape
    n_candidates = int(candidates.sum(dtype=np.int64))
    cardinality = density = diversity_share = noise_rate = None
    diversity = rows_without = labels_without = None
    if truth is not None:
        n_true = int(truth.sum(dtype=np.int64))
        cardinality = n_true / n_rows
        density = cardinality / n_labels
        diversity = len(np.unique(np.packbits(truth, axis=1), axis=0))
        diversity_share = diversity / n_rows
        noise_rate = (n_candidates - n_true) / n_candidates if n_candidates else 0.0
        rows_without = int((~truth.any(axis=1)).sum())
        labels_without = int((~truth.any(axis=0)).sum())
    return DatasetStatistics(
        n_rows=n_rows,
        n_features=None if X is None else int(X.shape[1]),
        n_labels=n_labels,
        sparse=is_sparse(X),
        candidates_per_row=n_candidates / n_rows,
        rows_without_candidates=int((~candidates.any(axis=1)).sum()),
        cardinality=cardinality,
        density=density,
        diversity=diversity,
        diversity_share=diversity_share,
        noise_rate=noise_rate,
        rows_without_true_label=rows_without,
        labels_without_true_row=labels_without,
    )
