"""The data set class, its checks and its statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import InitVar, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from skpml._validation import (
    EmptyPolicy,
    check_finite,
    check_indicator,
    check_occupied,
    check_sparse_structure,
)
from skpml.tables import LabelMatrix, TableError, find_repeated, format_names, number_names


@dataclass(frozen=True, kw_only=True)
class DatasetStatistics:
    """Figures of one data set; those that need true labels are None where the truth is unknown.

    Parameters
    ----------
    n_rows, n_features, n_labels : int
        Size; `n_features` is None for a set of labels only.
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
    cardinality: float | None = None
    density: float | None = None
    diversity: int | None = None
    diversity_share: float | None = None
    noise_rate: float | None = None
    rows_without_true_label: int | None = None
    labels_without_true_row: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class PartialDataset:
    """Rows with candidate labels: every true label is a candidate, some candidates are false.

    If the true labels are known, a row without candidates has no label, and a label without candidates is a fact about
    the data. If they are not known, both contradict the meaning of candidates, and `on_empty` decides what to do.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_rows, n_features), or None
        Features; None for a set of labels only. float32 and float64 are kept, anything else becomes float64.
    candidates : array-like or sparse matrix of shape (n_rows, n_labels)
        1 where the label is a candidate of the row, else 0.
    truth : array-like or sparse matrix of shape (n_rows, n_labels), optional
        1 where the label is true of the row, else 0. Every true label must be a candidate.
    label_names : sequence of str, optional
        A distinct name for each label; ``label_0``, ``label_1``, … by default.
    feature_names : sequence of str, optional
        A name for each feature.
    name, description : str, optional
        For display.
    on_empty : {"raise", "warn", "ignore"}, default="raise"
        What to do about rows without candidates, and about labels that are not a candidate of any row, if the true
        labels are unknown.

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
    on_empty: InitVar[EmptyPolicy] = "raise"

    def __post_init__(self, on_empty: EmptyPolicy) -> None:
        candidates = as_label_matrix(self.candidates, "candidates")
        n_rows, n_labels = candidates.shape
        if n_rows == 0:
            raise ValueError("candidates has no rows: at least one row is needed")
        names = self._check_label_names(n_labels)
        X, feature_names = self._check_features(n_rows)
        truth = self._check_truth(candidates, names)
        if truth is None:
            check_occupied(candidates, names, on_empty=on_empty)
        values = X, candidates, truth, names, feature_names
        for field, value in zip(fields(self), values, strict=False):
            object.__setattr__(self, field.name, value)

    def _check_label_names(self, n_labels: int) -> tuple[str, ...]:
        if isinstance(self.label_names, tuple | list) and not self.label_names:
            return number_names("label", n_labels)
        names = as_names(self.label_names, n_labels, "label_names")
        if twice := find_repeated(names):
            raise ValueError(f"label_names must be distinct, found more than once: {format_names(twice)}")
        return names

    def _check_features(self, n_rows: int) -> tuple[Any, tuple[str, ...] | None]:
        if self.X is None:
            if self.feature_names is not None:
                raise ValueError("feature_names given without X")
            return None, None
        names = self.feature_names
        if names is not None and np.ndim(self.X) == 2:
            names = as_names(names, np.shape(self.X)[1], "feature_names")
        X = as_features(self.X, names)
        if X.shape[0] != n_rows:
            raise ValueError(f"X has {X.shape[0]} rows and candidates has {n_rows}: they must match")
        return X, names

    def _check_truth(self, candidates: LabelMatrix, names: tuple[str, ...]) -> LabelMatrix | None:
        if self.truth is None:
            return None
        truth = as_label_matrix(self.truth, "truth")
        if truth.shape != candidates.shape:
            raise ValueError(f"truth has shape {truth.shape} and candidates {candidates.shape}: not the same")
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
        """Compute the figures that describe the data set.

        Returns
        -------
        DatasetStatistics
            The figures.
        """
        n_rows, n_labels = self.candidates.shape
        n_candidates = int(self.candidates.sum(dtype=np.int64))
        known: dict[str, Any] = {}
        if self.truth is not None:
            n_true = int(self.truth.sum(dtype=np.int64))
            diversity = len(np.unique(np.packbits(self.truth, axis=1), axis=0))
            known = {
                "cardinality": n_true / n_rows,
                "density": n_true / n_rows / n_labels,
                "diversity": diversity,
                "diversity_share": diversity / n_rows,
                "noise_rate": (n_candidates - n_true) / n_candidates if n_candidates else 0.0,
                "rows_without_true_label": int((~self.truth.any(axis=1)).sum()),
                "labels_without_true_row": int((~self.truth.any(axis=0)).sum()),
            }
        return DatasetStatistics(
            n_rows=n_rows,
            n_features=None if self.X is None else int(self.X.shape[1]),
            n_labels=n_labels,
            sparse=sp.issparse(self.X),
            candidates_per_row=n_candidates / n_rows,
            rows_without_candidates=int((~self.candidates.any(axis=1)).sum()),
            **known,
        )

    def subset(self, rows: Any) -> PartialDataset:
        """Return the data set of some rows, in the order given.

        Parameters
        ----------
        rows : array-like of int or bool, or slice
            Rows to keep. Labels keep their columns even if none of these rows has them.

        Returns
        -------
        PartialDataset
            The rows.
        """
        index = rows if isinstance(rows, slice) else np.asarray(rows)
        if isinstance(index, np.ndarray):
            if index.ndim != 1:
                raise ValueError(f"rows must be one-dimensional, got {index.ndim} dimension(s)")
            if index.size == 0:
                index = index.astype(np.intp)
        X, truth = (None if part is None else part[index] for part in (self.X, self.truth))
        return replace(self, X=X, candidates=self.candidates[index], truth=truth, on_empty="ignore")

    def with_candidates(self, candidates: Any) -> PartialDataset:
        """Return the same rows with other candidate labels.

        Parameters
        ----------
        candidates : array-like or sparse matrix of shape (n_rows, n_labels)
            1 where the label is a candidate of the row; every true label must be one.

        Returns
        -------
        PartialDataset
            The data set with these candidates.
        """
        return replace(self, candidates=candidates, on_empty="raise")


def build_dataset(path: Path, **parts: Any) -> PartialDataset:
    """Make the data set of a file; a part that does not pass the checks is reported with the file's name."""
    if parts["candidates"] is None:
        parts["candidates"] = parts["truth"]
    parts["label_names"] = parts.get("label_names") or ()
    parts["name"] = parts.get("name") or path.stem
    try:
        return PartialDataset(**parts)
    except ValueError as exc:
        raise TableError(str(exc), path=path) from exc


def as_label_matrix(values: Any, what: str, *, minus_one_is_zero: bool = False) -> LabelMatrix:
    """Return a new read-only matrix of zeros and ones; MATLAB files of the field write -1 for 0."""
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
    if not sp.issparse(values):
        values = np.asarray(values)
    check_sparse_structure(values, "X")
    if values.ndim != 2:
        raise ValueError(f"X must be a matrix of rows × features, got {values.ndim} dimension(s)")
    dtype = values.dtype.newbyteorder("=") if values.dtype in (np.float32, np.float64) else np.float64
    try:
        matrix: Any = values.astype(dtype, copy=sp.issparse(values))
    except (TypeError, ValueError) as exc:
        raise ValueError(f"X must hold numbers, got values of type {values.dtype}") from exc
    if sp.issparse(matrix):
        matrix = sp.csr_array(matrix)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        index_type = np.int32 if max(matrix.nnz, *matrix.shape) <= np.iinfo(np.int32).max else np.int64
        matrix.indices = matrix.indices.astype(index_type, copy=False)
        matrix.indptr = matrix.indptr.astype(index_type, copy=False)
    check_finite(matrix, feature_names)
    return matrix


def as_names(names: Sequence[str], count: int, what: str) -> tuple[str, ...]:
    """Return names as a tuple of str, one for each column."""
    if isinstance(names, str):
        raise ValueError(f"{what} must be a sequence of names, got the single string {names!r}")
    result = tuple(str(name) for name in names)
    if len(result) != count:
        raise ValueError(f"{what} has {len(result)} names for {count} columns")
    return result
