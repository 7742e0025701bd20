"""Checks on features and label matrices, shared by every door of the library: each error names the place."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

__all__ = [
    "EmptyPolicy",
    "check_device",
    "check_finite",
    "check_indicator",
    "check_labels",
    "check_occupied",
    "check_parameters",
]

EmptyPolicy = Literal["error", "warn", "ignore"]
BoolMatrix = NDArray[np.bool_]


def check_finite(
    X: Any, names: Sequence[str] | NDArray[Any] | None = None, *, where: str = "Input X"
) -> None:
    """Refuse NaN and infinity in dense or CSR features, naming the first place."""
    values = X.data if scipy.sparse.issparse(X) else X
    # One pass without a mask in the good case: a sum is finite only if all terms are, unless it overflows.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(np.sum(values, dtype=np.float64)):
            return
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    if scipy.sparse.issparse(X):
        place = int(np.flatnonzero(bad)[0])
        row, column = int(np.searchsorted(X.indptr, place, side="right")) - 1, int(X.indices[place])
        value = values[place]
    else:
        row, column = (int(index) for index in np.argwhere(bad)[0])
        value = values[row, column]
    kind = "NaN" if np.isnan(value) else "infinity"
    label = column if names is None else f"{column} ({str(names[column])!r})"
    raise ValueError(
        f"{where} contains {kind} in row {row}, column {label}. Fill in or leave out missing values first, "
        f"for example with sklearn.impute.SimpleImputer in a pipeline."
    )


def check_indicator(matrix: Any, name: str, *, minus_one_is_zero: bool = False) -> NDArray[np.uint8]:
    """A two-dimensional 0/1 matrix as dense ``uint8``; anything else is an error that names the first bad place.

    ``minus_one_is_zero`` reads −1 as 0, as MATLAB files of the field write it.
    """
    columns = getattr(matrix, "columns", None)
    values = matrix.toarray() if scipy.sparse.issparse(matrix) else np.asarray(matrix)
    if values.ndim != 2:
        raise ValueError(f"{name} should be a 2d matrix of 0 and 1, got shape {values.shape}.")
    if values.dtype.kind == "O":
        try:
            values = values.astype(float)
        except (TypeError, ValueError):
            values = _first_non_number(values, name, columns)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{name} should hold 0 and 1, but its values are of type {values.dtype}.")
    if minus_one_is_zero:
        values = np.where(values == -1, 0, values)
    bad = (values != 0) & (values != 1)
    if bad.any():
        row, column = (int(index) for index in np.argwhere(bad)[0])
        value = values[row, column]
        label = column if columns is None else repr(columns[column])
        allowed = "-1, 0 and 1" if minus_one_is_zero else "0 and 1"
        hint = f" (where -1 means absent, use {name} > 0)" if value == -1 else ""
        raise ValueError(f"{name} should hold only {allowed}, but row {row}, label {label} is {value}{hint}.")
    return values.astype(np.uint8)


def check_labels(labels: Any, name: str) -> BoolMatrix:
    """A 0/1 matrix with at least one cell (dense, scipy sparse or data frame) as booleans."""
    matrix = check_indicator(labels, name)
    if matrix.size == 0:
        raise ValueError(f"{name} is empty: its shape is {matrix.shape}")
    return matrix.astype(np.bool_)


def _first_non_number(values: NDArray[Any], name: str, columns: Any) -> NDArray[Any]:
    for (row, column), value in np.ndenumerate(values):
        try:
            float(value)
        except (TypeError, ValueError):
            label = column if columns is None else repr(columns[column])
            raise ValueError(
                f"{name} should hold only 0 and 1, but row {row}, label {label} is {value!r}."
            ) from None
    return values


def check_occupied(
    candidates: NDArray[np.uint8],
    classes: Sequence[Any] | NDArray[Any],
    *,
    on_empty: str | None = None,
    empty_rows: str = "error",
    empty_labels: str = "error",
) -> None:
    """Apply the policies for rows without candidates and labels that are no row's candidate.

    Estimators have one policy for both, ``on_empty`` ("warn", "raise", "ignore"); data sets have two ("error", "warn",
    "ignore").
    """
    policies = {"empty_rows": empty_rows, "empty_labels": empty_labels}
    if on_empty is not None:
        policies = dict.fromkeys(policies, on_empty)
    for parameter, policy in policies.items():
        if policy not in ("error", "raise", "warn", "ignore"):
            raise ValueError(f'{parameter} must be "error", "warn" or "ignore", got {policy!r}.')
    rows = np.flatnonzero(~candidates.any(axis=1))
    if rows.size:
        _report(
            policies["empty_rows"],
            f"{rows.size} of {candidates.shape[0]} rows have no candidate label (first: row {rows[0]}). "
            "Such a row is taken to have none of the labels; leave it out if it was never labelled.",
            "empty_rows" if on_empty is None else "on_empty",
        )
    if candidates.all():
        warnings.warn(
            "Every label is a candidate of every row, so the candidates tell nothing apart.",
            UserWarning,
            stacklevel=3,
        )
    labels = np.flatnonzero(~candidates.any(axis=0))
    if labels.size:
        names = ", ".join(str(classes[label]) for label in labels[:5]) + (", …" if labels.size > 5 else "")
        _report(
            policies["empty_labels"],
            f"{labels.size} of {candidates.shape[1]} labels are nobody's candidate ({names}). "
            "Nothing can be learned about such a label; leave it out.",
            "empty_labels" if on_empty is None else "on_empty",
        )


def _report(policy: str, message: str, parameter: str) -> None:
    if policy in ("error", "raise"):
        raise ValueError(f'{message} To continue anyway, set {parameter}="warn".')
    if policy == "warn":
        warnings.warn(message, UserWarning, stacklevel=4)


def check_parameters(
    estimator: Any,
    *,
    weights: Collection[str] = (),
    counts: Collection[str] = (),
    optional_counts: Collection[str] = (),
    choices: Mapping[str, Collection[str]] | None = None,
) -> None:
    """Refuse bad values among the parameters of an estimator, naming the parameter.

    Parameters
    ----------
    estimator : object
        The parameters are its attributes.
    weights : names of parameters
        Finite numbers of at least 0.
    counts, optional_counts : names of parameters
        Whole numbers of at least 1; an optional one may be None.
    choices : mapping of parameter name to allowed values
    """
    for name in weights:
        value = getattr(estimator, name)
        if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) < np.inf:
            raise ValueError(f"{name} must be a finite number of at least 0, got {value!r}.")
    for name in (*counts, *optional_counts):
        value = getattr(estimator, name)
        if value is None and name in optional_counts:
            continue
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            article = "None or a" if name in optional_counts else "a"
            raise ValueError(f"{name} must be {article} whole number of at least 1, got {value!r}.")
    for name, allowed in (choices or {}).items():
        value = getattr(estimator, name)
        if not isinstance(value, str) or value not in allowed:
            raise ValueError(f"{name} must be one of {tuple(allowed)}, got {value!r}.")


def check_device(name: Any) -> None:
    """Refuse a ``device`` that PyTorch does not have here, and any where there is no PyTorch."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            f"device={name!r} needs PyTorch: pip install scikit-pml[torch], or leave device at None"
        ) from error
    try:
        torch.empty(0, device=name)
    # A build without a device says so with an assertion.
    except (RuntimeError, TypeError, AssertionError) as error:
        raise ValueError(
            f'device must be None or a device that PyTorch has here, such as "cpu", got {name!r}.'
        ) from error
