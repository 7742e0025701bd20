"""Choose parameters by cross-validation inside the training rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from math import ceil
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.model_selection import ParameterGrid

from skpml._validation import check_labels, encode_labels, is_count
from skpml.model_selection._judging import InnerFolds, Search, Selection, Selector, Split, judge_parameters

# A round of halving keeps one point in so many.
_KEEP_ONE_IN = 3
# Training rows of a round of halving, if the fold has so many.
_FEWEST_ROWS = 100


def candidate_precision(candidates: Any, scores: Any) -> float:
    """Compute the average precision of held-out scores against the candidates.

    A non-candidate is certainly false; a candidate may be true or false. That is enough to compare scores. Moving a true
    label above a false one raises the value if the false label is a non-candidate, and changes nothing if it is a
    candidate: if false candidates do not depend on the features, better scores have a higher expected value. False
    candidates lower the values and make them flatter and noisier, so compare values on the same rows only.

    The scores must come from rows that were not trained on: on training rows, a model that believes every candidate wins.

    Parameters
    ----------
    candidates : {array-like, sparse matrix, DataFrame} of shape (n, c)
        Candidates as 0 and 1. Rows without candidates or without non-candidates are ignored.
    scores : array-like of shape (n, c)
        Larger is more plausible. Tied labels take the worst rank of their group.

    Returns
    -------
    float
        Between 0 and 1; larger is better. NaN if no row has both candidates and non-candidates.

    See Also
    --------
    skpml.metrics.average_precision : The same measure against the true labels.

    Examples
    --------
    >>> from skpml.model_selection import candidate_precision
    >>> candidate_precision([[1, 1, 0, 0]], [[0.9, 0.2, 0.5, 0.1]])
    0.8333333333333333
    """
    from skpml.metrics import average_precision

    with warnings.catch_warnings(action="ignore", category=UndefinedMetricWarning):
        return average_precision(candidates, scores)


def select_parameters(
    estimator: Any,
    grid: Mapping[str, Sequence[Any]],
    X: Any,
    candidates: Any,
    *,
    selector: Selector = "label-free",
    truth: Any = None,
    n_folds: int = 3,
    search: Search = "grid",
    max_rows: int | None = None,
    random_state: int = 0,
) -> Selection:
    """Choose parameters by cross-validation inside the training rows.

    Every point of the grid is fitted to the candidates of inner training folds and judged on the held-out rows. Ties go
    to the point that comes first. The result does not depend on the order of the rows, except for exact duplicates, nor
    on a hidden random state: an estimator whose ``random_state`` is None gets that of the search. Inner fits ignore empty
    rows and labels, since a rare label may be missing from a fold, and show no warnings.

    Parameters
    ----------
    estimator : estimator
        An estimator of this library, any other that learns from a candidate matrix, or a pipeline that ends in one. It
        is not changed.
    grid : dict of str to list
        Values of each parameter.
    X : {array-like, sparse matrix, DataFrame} of shape (n, d), or views
        Training rows; never include rows that results are reported on.
    candidates : array-like of shape (n, c)
        0 and 1, or whatever ``fit`` takes.
    selector : {"label-free", "oracle"}, default="label-free"
        Judge by :func:`candidate_precision`, which needs no true label, or by average precision against ``truth``, which
        papers do and users cannot.
    truth : array-like of shape (n, c) or None, default=None
        True labels for "oracle". Not used otherwise.
    n_folds : int, default=3
        Number of inner folds.
    search : {"grid", "halving"}, default="grid"
        Try every point on every fold, or use successive halving: each round fits the points to few rows of one fold and
        drops two thirds of them; the last points are compared on all folds. Early rounds misjudge weights whose best
        value grows with the number of rows.
    max_rows : int or None, default=None
        Use so many rows at most, drawn at random, to bound the cost. None uses all.
    random_state : int, default=0
        Draws the folds, and the rows of ``max_rows``.

    Returns
    -------
    Selection
        The best point and the evidence for it.

    Notes
    -----
    A method may share work between points: :class:`~skpml.PMLMA` does so over its four weights.

    Examples
    --------
    >>> from skpml import PMLMA
    >>> from skpml.datasets import load_dataset
    >>> from skpml.model_selection import select_parameters
    >>> digits = load_dataset("digits", random_state=0)
    >>> grid = {"ridge_weight": [1.0, 1000.0]}
    >>> found = select_parameters(PMLMA(), grid, digits.X[:300], digits.candidates[:300])
    >>> found.parameters
    {'ridge_weight': 1.0}
    """
    points = _check_grid(estimator, grid)
    for name, value, choices in (("selector", selector, Selector), ("search", search, Search)):
        if value not in get_args(choices):
            raise ValueError(
                f"{name} must be one of {', '.join(map(repr, get_args(choices)))}, got {value!r}."
            )
    labels = encode_labels(candidates).candidates
    folds = InnerFolds(X, labels, n_folds=_check_folds(n_folds, labels.shape[0]), random_state=random_state)
    target = _check_target(selector, truth, labels).astype(np.float64)
    inner = _keep_rows(folds, max_rows, n_folds)
    table: list[dict[str, Any]] = [{} for _ in points]
    left, n_fits, full_fits = list(range(len(points))), 0, 0.0
    sizes = [len(train) for train, _ in inner]
    for number, parts in enumerate(_plan_rounds(len(points) if search == "halving" else 1, sizes)):
        splits = [(inner[fold][0][:n_rows], inner[fold][1]) for fold, n_rows in parts]
        judge = judge_parameters(
            estimator, points, folds.X, labels, splits, target=target, random_state=random_state
        )
        judge.try_points(left)
        evidence = judge.evidence()
        for place, mean, values in zip(left, evidence.precision, evidence.fold_precision, strict=True):
            table[place] = {
                "parameters": points[place],
                "mean_score": mean,
                "fold_scores": values,
                "n_rows": parts[-1][1],
            }
        n_fits += len(left) * len(parts)
        full_fits += len(left) * sum(n_rows / sizes[fold] for fold, n_rows in parts)
        left = sorted(evidence.best(ceil(len(points) / _KEEP_ONE_IN ** (number + 1))))
    best = evidence.best()[0]
    if table[best]["mean_score"] == -np.inf:
        raise ValueError("No point of the grid gives finite scores on the inner folds.")
    return Selection(
        parameters=points[best],
        score=table[best]["mean_score"],
        table=table,
        n_fits=n_fits,
        full_fits=full_fits,
        selector=selector,
        search=search,
    )


def _keep_rows(folds: InnerFolds, max_rows: int | None, n_folds: int) -> list[Split]:
    """Return the splits of the folds, with ``max_rows`` of all rows at most, as many of each fold."""
    if max_rows is None:
        return folds.splits
    if not is_count(max_rows, 2 * n_folds):
        raise ValueError(
            f"max_rows must be None or a whole number from {2 * n_folds} on, two for each fold, got {max_rows!r}."
        )
    drawn = np.zeros(len(folds.numbers), dtype=np.bool_)
    for fold in range(n_folds):
        members = folds.shuffled[folds.numbers[folds.shuffled] == fold]
        drawn[members[: max_rows // n_folds]] = True
    return [(train[drawn[train]], held_out[drawn[held_out]]) for train, held_out in folds.splits]


def _plan_rounds(n_points: int, sizes: list[int]) -> list[list[tuple[int, int]]]:
    """List the rounds of halving: the folds of each and their numbers of training rows.

    Rounds use one fold, with three times the rows of the round before; the last round uses all rows of all folds. The
    folds take turns, so that no single fold decides.
    """
    n_rounds = 0
    while ceil(n_points / _KEEP_ONE_IN**n_rounds) > _KEEP_ONE_IN:
        n_rounds += 1
    rounds = []
    for number in range(n_rounds):
        fold = number % len(sizes)
        fewer = sizes[fold] // _KEEP_ONE_IN ** (n_rounds - number)
        rounds.append([(fold, min(sizes[fold], max(_FEWEST_ROWS, fewer)))])
    return [*rounds, list(enumerate(sizes))]


def _check_target(selector: Selector, truth: Any, candidates: NDArray[Any]) -> NDArray[Any]:
    """Return the labels to judge by."""
    if selector == "oracle":
        if truth is None:
            raise ValueError('selector="oracle" needs truth, the true labels; "label-free" needs none.')
        target = check_labels(truth, "truth")
        if target.shape != candidates.shape:
            raise ValueError(f"truth has shape {target.shape}, but candidates have shape {candidates.shape}.")
        return target
    if np.isnan(candidate_precision(candidates, candidates)):
        raise ValueError(
            "No row has both a candidate and a non-candidate: without true labels there is nothing to choose by."
        )
    return candidates


def _check_grid(estimator: Any, grid: Any) -> list[dict[str, Any]]:
    """Return the points of a grid."""
    if not isinstance(grid, Mapping):
        raise TypeError(f"grid must be a dict of parameter names to lists of values, got {grid!r}.")
    if not grid:
        raise ValueError("grid is empty: name at least one parameter and its values.")
    known = estimator.get_params()
    for name, values in grid.items():
        if name not in known:
            close = get_close_matches(str(name), known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; it has {', '.join(sorted(known))}."
            raise ValueError(f"grid: {type(estimator).__name__} has no parameter {name!r}{hint}")
        if isinstance(values, str) or not isinstance(values, (Sequence, np.ndarray)):
            raise TypeError(f"grid: the values of {name!r} must be a list, got {values!r}.")
        if len(values) == 0:
            raise ValueError(f"grid: {name!r} has no values.")
    # Plain numbers, so that a selection can be written as JSON.
    plain = {
        name: values.tolist() if isinstance(values, np.ndarray) else values for name, values in grid.items()
    }
    return list(ParameterGrid(plain))


def _check_folds(n_folds: Any, n_rows: int) -> int:
    if not is_count(n_folds, 2) or n_folds > n_rows // 2:
        raise ValueError(f"n_folds must be a whole number from 2 to half the {n_rows} rows, got {n_folds!r}.")
    return int(n_folds)
