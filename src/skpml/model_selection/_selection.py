"""Parameters chosen by cross-validation inside the training rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
from sklearn.model_selection import ParameterGrid

from skpml._labels import encode_labels
from skpml._validation import check_labels
from skpml.model_selection._criteria import CRITERIA, Selector, candidate_precision
from skpml.model_selection._held_out import InnerFolds
from skpml.model_selection._search import Trial, full_search, halving_search

Search = Literal["grid", "halving"]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What a search has found.

    Attributes
    ----------
    parameters : dict
        The best point of the grid, for ``estimator.set_params(**parameters)``.
    score : float
        Its mean over inner folds; larger is better. :func:`~skpml.model_selection.candidate_precision` for "label-free",
        average precision for "oracle".
    table : list of dict
        One for each point, in the order of the grid: ``"parameters"``, ``"mean_score"``, ``"fold_scores"``, and
        ``"n_rows"``, the training rows behind them. With ``search="halving"``, points that were dropped show the
        scores of their last round.
    n_fits : int
        Fits on inner folds, of any size.
    full_fits : float
        The same, each counted by its share of the rows of a whole inner training fold.
    selector : {"label-free", "oracle"}
        "oracle" has looked at true labels.
    search : {"grid", "halving"}
    """

    parameters: dict[str, Any]
    score: float
    table: list[dict[str, Any]]
    n_fits: int
    full_fits: float
    selector: Selector
    search: Search


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
    random_state: int = 0,
) -> Selection:
    """Choose parameters by cross-validation inside the training rows.

    Every point of the grid is fitted on the candidates of inner training folds and judged on the rows left out. Ties go
    to the point that comes first. Nothing depends on the order of the rows, but for exact duplicates, nor on a hidden
    random state: an estimator whose ``random_state`` is None runs with that of the search. Policies for empty rows and
    labels are not applied inside, where a rare label may be missing from a fold; warnings of inner fits are not shown.

    Parameters
    ----------
    estimator : estimator of this library, or a pipeline that ends in one
        Not changed.
    grid : dict of parameter name to list of values
    X : array, data frame or scipy sparse matrix of shape (n, d), or views where the estimator takes them
        Training rows; never show it rows that results are reported on.
    candidates : (n, c) matrix of 0 and 1, or whatever ``fit`` takes
    selector : {"label-free", "oracle"}, default="label-free"
        By :func:`candidate_precision`, which needs no true label, or by average precision against ``truth``, which is
        what papers do and no user can.
    truth : (n, c) matrix of 0 and 1 or None, default=None
        For the oracle; the label-free selector never touches it.
    n_folds : int, default=3
    search : {"grid", "halving"}, default="grid"
        Every point on every fold, or successive halving: rounds on one fold with few training rows drop two thirds of the
        points each, and what is left is compared on all folds. Weights whose best value grows with the number of rows
        are misjudged by early rounds.
    random_state : int, default=0
        Draws the folds.

    Returns
    -------
    Selection

    Notes
    -----
    A :class:`~skpml.PMLMA` whose grid holds only ``lam``, ``alpha``, ``beta`` and ``gamma`` is searched by
    :func:`~skpml.modal_alignment._grid.solve_grid`, which shares nearly all work between the points; with settings that
    function does not cover, points are fitted one by one.

    Examples
    --------
    >>> from skpml import PMLMA
    >>> from skpml.datasets import load_dataset
    >>> from skpml.model_selection import select_parameters
    >>> digits = load_dataset("digits", random_state=0)
    >>> found = select_parameters(PMLMA(), {"gamma": [1.0, 1000.0]}, digits.X[:300], digits.candidates[:300])
    >>> found.parameters
    {'gamma': 1.0}
    """
    points = _check_grid(estimator, grid)
    _check_choice("selector", selector, get_args(Selector))
    _check_choice("search", search, get_args(Search))
    labels = encode_labels(candidates).candidates
    folds = InnerFolds(X, labels, n_folds=_check_folds(n_folds, labels.shape[0]), random_state=random_state)
    if selector == "oracle":
        if truth is None:
            raise ValueError('selector="oracle" needs truth, the true labels; "label-free" needs none.')
        target = check_labels(truth, "truth")
        if target.shape != labels.shape:
            raise ValueError(f"truth has shape {target.shape}, but candidates have shape {labels.shape}.")
    else:
        target = labels.astype(np.bool_)
        if np.isnan(candidate_precision(target, target)):
            raise ValueError(
                "No row has both a candidate and a non-candidate: without true labels there is nothing to choose by."
            )
    run = full_search if search == "grid" else halving_search
    outcome = run(estimator, points, folds, target, CRITERIA[selector], random_state)
    best = _best(outcome.trials)
    return Selection(
        parameters=points[best],
        score=outcome.trials[best].mean,
        table=[
            {
                "parameters": parameters,
                "mean_score": trial.mean,
                "fold_scores": trial.fold_scores,
                "n_rows": trial.n_rows,
            }
            for parameters, trial in zip(points, outcome.trials, strict=True)
        ],
        n_fits=outcome.n_fits,
        full_fits=outcome.full_fits,
        selector=selector,
        search=search,
    )


def _best(trials: list[Trial]) -> int:
    """The first of the best points among those of the last round."""
    last = max(trial.round for trial in trials)
    finalists = [place for place, trial in enumerate(trials) if trial.round == last]
    best = max(finalists, key=lambda place: trials[place].mean)
    if trials[best].mean == -np.inf:
        raise ValueError("No point of the grid gives finite scores on the inner folds.")
    return best


def _check_grid(estimator: Any, grid: Any) -> list[dict[str, Any]]:
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


def _check_choice(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}.")


def _check_folds(n_folds: Any, n_rows: int) -> int:
    whole = isinstance(n_folds, Integral) and not isinstance(n_folds, bool)
    if not whole or not 2 <= int(n_folds) <= n_rows // 2:
        raise ValueError(f"n_folds must be a whole number from 2 to half the {n_rows} rows, got {n_folds!r}.")
    return int(n_folds)
