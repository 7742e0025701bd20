"""Validation that all metrics share: arrays come out, or an error that names the cell."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning

from skpml._validation import BoolMatrix, check_labels

# Scores keep their type: converting large integers or float32 could create or break ties.
NumberMatrix = NDArray[Any]


@dataclass(frozen=True)
class Validated:
    """A matrix that has passed its check; ``evaluate`` hands it to every metric."""

    values: NDArray[Any]


def check_scores(scores: Any, name: str, candidates: BoolMatrix | None = None) -> NumberMatrix:
    """Return a matrix of real numbers, finite in all cells or, if given, in the candidate cells."""
    array = np.asarray(scores.toarray() if hasattr(scores, "toarray") else scores)
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{name} must hold numbers; some of its values are not") from None
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers, not values of type {array.dtype}")
    if array.ndim != 2:
        raise ValueError(
            f"{name} must be a matrix with a row per example and a column per label, got shape {array.shape}"
        )
    wrong = ~np.isfinite(array)
    if candidates is not None:
        check_same_shape(candidates, array, name, "candidates")
        wrong &= candidates
    if wrong.any():
        row, column = (int(index) for index in np.argwhere(wrong)[0])
        found = array[row, column].item()
        raise ValueError(f"{name} must be finite; found {found!r} at row {row}, column {column}")
    return array


def check_same_shape(first: NumberMatrix, other: NumberMatrix, name: str, first_name: str = "truth") -> None:
    """Raise unless both matrices have the same rows and labels."""
    if first.shape != other.shape:
        raise ValueError(
            f"{first_name} has shape {first.shape}, but {name} has shape {other.shape}; they must agree"
        )


def check_same_columns(first: Any, other: Any, name: str, first_name: str = "truth") -> None:
    """Raise if two data frames name their columns differently: labels are matched by position."""
    if not (hasattr(first, "columns") and hasattr(other, "columns")):
        return
    for position, (left, right) in enumerate(zip(first.columns, other.columns, strict=False)):
        if left != right:
            raise ValueError(
                f"column {position} is {left!r} in {first_name} but {right!r} in {name}; they must agree"
            )


def _check_pair(truth: Any, other: Any, *, name: str, check: Any) -> tuple[BoolMatrix, NDArray[Any]]:
    """Validate the input of a metric."""
    if isinstance(truth, Validated):
        return truth.values, other.values
    check_same_columns(truth, other, name)
    labels, values = check_labels(truth, "truth"), check(other, name)
    check_same_shape(labels, values, name)
    return labels, values


check_truth_and_scores = partial(_check_pair, name="scores", check=check_scores)
check_truth_and_decisions = partial(_check_pair, name="decisions", check=check_labels)


def undefined(metric: str, why: str) -> float:
    """Warn that a metric has no value on these data, and return NaN."""
    warnings.warn(f"{metric} is undefined and set to NaN: {why}", UndefinedMetricWarning, stacklevel=3)
    return float("nan")
