"""The one object all readers return: features, candidate labels and, where known, true labels."""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import Any

import numpy as np

from skpml._validation import EmptyPolicy, check_occupied
from skpml.datasets._statistics import DatasetStatistics, describe
from skpml.datasets._validation import (
    LabelMatrix,
    as_features,
    as_label_matrix,
    as_names,
    default_label_names,
    listed,
    repeated,
)


@dataclass(frozen=True, eq=False, repr=False)
class PartialDataset:
    """Rows with candidate labels: every true label of a row is a candidate, some candidates are false.

    Where the truth is known, a row without candidates says that the row has no label, and a label nobody has
    is a fact about the data: both pass. Where it is not known, they contradict what candidate labels are,
    and `empty_rows` and `empty_labels` say what to do about it.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_features), or None
        Features; None for a set of labels only. float32 and float64 are kept, anything else becomes float64.
    candidates : array-like or sparse matrix of shape (n_rows, n_labels)
        1 where the label is a candidate of the row, else 0.
    truth : array-like or sparse matrix of shape (n_rows, n_labels), optional
        1 where the label is true of the row, else 0. Every true label must be a candidate.
    label_names : sequence of str, optional
        One distinct name a label; ``label_0``, ``label_1``, … by default.
    feature_names : sequence of str, optional
        One name a feature.
    name, description : str, optional
        For people.
    empty_rows : {"error", "warn", "ignore"}, default="error"
        What to do about rows without candidates where the truth is unknown.
    empty_labels : {"error", "warn", "ignore"}, default="error"
        What to do about labels that are nobody's candidate where the truth is unknown.

    Attributes
    ----------
    X : ndarray, CSR array or None
        Features.
    candidates, truth : ndarray of uint8 of shape (n_rows, n_labels)
        Read-only zeros and ones; `truth` is None where it is unknown.

    Examples
    --------
    >>> from skpml.datasets import PartialDataset
    >>> photos = PartialDataset(
    ...     [[0.1], [0.9]], [[1, 1], [0, 1]], truth=[[1, 0], [0, 1]], label_names=["sea", "sky"]
    ... )
    >>> photos.statistics().noise_rate
    0.3333333333333333
    """

    X: Any
    candidates: LabelMatrix
    truth: LabelMatrix | None = None
    label_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] | None = None
    name: str = ""
    description: str = ""
    empty_rows: InitVar[EmptyPolicy] = "error"
    empty_labels: InitVar[EmptyPolicy] = "error"

    def __post_init__(self, empty_rows: EmptyPolicy, empty_labels: EmptyPolicy) -> None:
        candidates = as_label_matrix(self.candidates, "candidates")
        n_rows, n_labels = candidates.shape
        if n_rows == 0:
            raise ValueError("candidates has no rows: at least one row is needed")
        names = self._checked_label_names(n_labels)
        X, feature_names = self._checked_features(n_rows)
        truth = self._checked_truth(candidates, names)
        if truth is None:
            check_occupied(candidates, names, empty_rows=empty_rows, empty_labels=empty_labels)
        for field, value in {
            "X": X,
            "candidates": candidates,
            "truth": truth,
            "label_names": names,
            "feature_names": feature_names,
        }.items():
            object.__setattr__(self, field, value)

    def _checked_label_names(self, n_labels: int) -> tuple[str, ...]:
        if isinstance(self.label_names, tuple | list) and not self.label_names:
            return default_label_names(n_labels)
        names = as_names(self.label_names, n_labels, "label_names")
        if twice := repeated(names):
            raise ValueError(f"label_names must be distinct, found more than once: {listed(twice)}")
        return names

    def _checked_features(self, n_rows: int) -> tuple[Any, tuple[str, ...] | None]:
        if self.X is None:
            if self.feature_names is not None:
                raise ValueError("feature_names given without X")
            return None, None
        names = self.feature_names
        if names is not None and np.ndim(self.X) == 2:
            names = as_names(
                names, self.X.shape[1] if hasattr(self.X, "shape") else len(self.X[0]), "feature_names"
            )
        X = as_features(self.X, names)
        if X.shape[0] != n_rows:
            raise ValueError(f"X has {X.shape[0]} rows and candidates has {n_rows}: they must match")
        return X, names

    def _checked_truth(self, candidates: LabelMatrix, names: tuple[str, ...]) -> LabelMatrix | None:
        if self.truth is None:
            return None
        truth = as_label_matrix(self.truth, "truth")
        if truth.shape != candidates.shape:
            raise ValueError(
                f"truth has shape {truth.shape} and candidates {candidates.shape}: they must match"
            )
        missing = truth > candidates
        if missing.any():
            row, column = np.argwhere(missing)[0]
            count = int(missing.sum())
            raise ValueError(
                f"every true label must be a candidate: row {row} has label {column} ({names[column]!r}) "
                f"in truth but not in candidates ({count} such {'cell' if count == 1 else 'cells'} in all)"
            )
        return truth

    def __repr__(self) -> str:
        n_rows, n_labels = self.candidates.shape
        features = "no features" if self.X is None else f"{self.X.shape[1]} features"
        known = "known" if self.truth is not None else "unknown"
        return f"<PartialDataset {self.name!r}: {n_rows} rows, {features}, {n_labels} labels, truth {known}>"

    def statistics(self) -> DatasetStatistics:
        """Return the figures that describe the data set."""
        return describe(self.X, self.candidates, self.truth)

    def subset(self, rows: Any) -> PartialDataset:
        """Return the data set of some rows, in the order given.

        Parameters
        ----------
        rows : array-like of int, boolean mask or slice
            Rows to keep. Labels keep their columns even if none of these rows has them.
        """
        index = rows if isinstance(rows, slice) else np.asarray(rows)
        if isinstance(index, np.ndarray):
            if index.ndim != 1:
                raise ValueError(f"rows must be one-dimensional, got {index.ndim} dimension(s)")
            if index.size == 0:
                index = index.astype(np.intp)
        return PartialDataset(
            None if self.X is None else self.X[index],
            self.candidates[index],
            None if self.truth is None else self.truth[index],
            self.label_names,
            self.feature_names,
            self.name,
            self.description,
            empty_rows="ignore",
            empty_labels="ignore",
        )

    def with_candidates(self, candidates: Any) -> PartialDataset:
        """Return the same rows with other candidate labels, which must hold every true label."""
        return PartialDataset(
            self.X,
            candidates,
            self.truth,
            self.label_names,
            self.feature_names,
            self.name,
            self.description,
        )
