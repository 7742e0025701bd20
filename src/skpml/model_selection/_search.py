"""Two ways through a grid: every point on every fold, or successive halving."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skpml.model_selection._criteria import Criterion
from skpml.model_selection._held_out import InnerFolds, mean_of_folds

Point = dict[str, Any]

# Of the points that a round of halving has compared, one in so many goes on.
_KEEP_ONE_IN = 3
# Training rows of a round of halving, where there are as many.
_FEWEST_ROWS = 100


@dataclass(kw_only=True)
class Trial:
    """What is known of a point after its last round."""

    round: int = 0
    fold_scores: list[float] = field(default_factory=list)
    n_rows: int = 0

    @property
    def mean(self) -> float:
        """Mean over the folds that can tell; −∞ for a point that failed on one."""
        return mean_of_folds(self.fold_scores)


@dataclass(kw_only=True)
class Outcome:
    """Trials in the order of the points, and what they cost."""

    trials: list[Trial]
    n_fits: int = 0
    full_fits: float = 0.0


def full_search(
    estimator: Any,
    points: list[Point],
    folds: InnerFolds,
    target: NDArray[Any],
    criterion: Criterion,
    random_state: int,
) -> Outcome:
    """Every point on every fold."""
    from skpml.modal_alignment import PMLMA
    from skpml.modal_alignment._shared_grid import can_share, shared_scores

    model = _for_inner_folds(estimator, random_state)
    outcome = Outcome(trials=[Trial() for _ in points])
    shares = type(model) is PMLMA and can_share(model, points, n_labels=folds.candidates.shape[1])
    for number, (train, held_out) in enumerate(folds.splits):
        if shares:
            with _quiet():
                found = shared_scores(
                    model, points, folds.rows(train), folds.candidates[train], folds.rows(held_out)
                )
                values = {place: _judge(criterion, target[held_out], scores) for place, scores in found}
            outcome.n_fits += len(points)
            outcome.full_fits += len(points)
            for place, trial in enumerate(outcome.trials):
                trial.fold_scores.append(values[place])
                trial.n_rows = len(train)
            continue
        for point, trial in zip(points, outcome.trials, strict=True):
            _try(model, point, trial, outcome, folds, number, len(train), target, criterion)
    return outcome


def halving_search(
    estimator: Any,
    points: list[Point],
    folds: InnerFolds,
    target: NDArray[Any],
    criterion: Criterion,
    random_state: int,
) -> Outcome:
    """Rounds on one fold with three times the training rows each; of the points, the best third goes on.

    The last points are compared on all rows of all folds. The folds take turns, so that no one fold decides alone.
    """
    model = _for_inner_folds(estimator, random_state)
    outcome = Outcome(trials=[Trial() for _ in points])
    left, n_rounds = list(range(len(points))), 0
    while ceil(len(points) / _KEEP_ONE_IN**n_rounds) > _KEEP_ONE_IN:
        n_rounds += 1
    for number in range(n_rounds):
        fold = number % len(folds.splits)
        whole = len(folds.splits[fold][0])
        n_rows = min(whole, max(_FEWEST_ROWS, whole // _KEEP_ONE_IN ** (n_rounds - number)))
        for place in left:
            trial = outcome.trials[place] = Trial(round=number)
            _try(model, points[place], trial, outcome, folds, fold, n_rows, target, criterion)
        # Sorting is stable: among equals, those that come first in the grid go on.
        ranked = sorted(left, key=lambda place: -outcome.trials[place].mean)
        left = sorted(ranked[: ceil(len(points) / _KEEP_ONE_IN ** (number + 1))])
    for place in left:
        outcome.trials[place] = Trial(round=n_rounds)
    for fold, (train, _) in enumerate(folds.splits):
        for place in left:
            trial = outcome.trials[place]
            _try(model, points[place], trial, outcome, folds, fold, len(train), target, criterion)
    return outcome


def _try(
    model: Any,
    point: Point,
    trial: Trial,
    outcome: Outcome,
    folds: InnerFolds,
    fold: int,
    n_rows: int,
    target: NDArray[Any],
    criterion: Criterion,
) -> None:
    """Fit a point on the first rows of a training fold, judge it on the rows held out, and note the cost."""
    train, held_out = folds.splits[fold]
    part = train[:n_rows]
    with _quiet():
        try:
            fitted = clone(model).set_params(**point).fit(folds.rows(part), folds.candidates[part])
            scores = _scores(fitted, folds.rows(held_out))
        except Exception as error:
            error.add_note(f"While fitting {point} on {n_rows} rows of inner fold {fold}.")
            raise
        trial.fold_scores.append(_judge(criterion, target[held_out], scores))
    trial.n_rows = n_rows
    outcome.n_fits += 1
    outcome.full_fits += n_rows / len(train)


def _scores(fitted: Any, X: Any) -> NDArray[Any]:
    give = getattr(fitted, "decision_function", None) or fitted.predict_proba
    return np.asarray(give(X))


def _judge(criterion: Criterion, target: NDArray[Any], scores: NDArray[Any]) -> float:
    """The criterion; −∞ for scores that are not numbers."""
    return criterion(target, scores) if np.isfinite(scores).all() else -np.inf


def _quiet() -> Any:
    return warnings.catch_warnings(action="ignore")


def _for_inner_folds(estimator: Any, random_state: int) -> Any:
    """A copy whose draws repeat, and that does not mind what a part of the rows may lack."""
    model = clone(estimator)
    changes: Point = {}
    for path, value in model.get_params().items():
        name = path.rpartition("__")[2]
        if name in ("empty_rows", "empty_labels"):
            changes[path] = "ignore"
        elif name == "random_state" and value is None:
            changes[path] = random_state
        elif name == "graph" and value is not None:
            raise ValueError(
                f"{path} is a graph of all rows and does not fit inner folds: choose parameters with {path}=None."
            )
    return model.set_params(**changes)
