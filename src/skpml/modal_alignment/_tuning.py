"""Choose the four weights of PML-MA without true labels, and score many weights with shared work.

Training rows are cut into three inner folds. Weights are fitted to two of them and judged on the third, by the average
precision with which they rank the candidates of held-out rows (:func:`skpml.model_selection.candidate_precision`). Where
:func:`~skpml.modal_alignment._grid.solve_grid` applies, all points of a round share their work; else each is a fit.

The search goes from coarse to fine, each round around the best point so far: the ridge weight over six decades together
with the alignment weight, on which the best ridge weight depends; then the low-rank weight with the prototype weight;
then ridge and alignment weights in half decades.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import product
from math import ceil, prod
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from skpml._sharing import shared_work
from skpml.modal_alignment._grid import solve_grid
from skpml.modal_alignment._solver import WEIGHTS
from skpml.model_selection import InnerFolds, Parameters, PointScores, fit_points, judge_parameters

if TYPE_CHECKING:
    from skpml.modal_alignment._estimator import PMLMA

N_FOLDS = 3
_START = dict(zip(WEIGHTS, (1.0, 1e-2, 0.0, 1.0), strict=True))
_LAMS, _ALPHAS, _BETAS = (0.1, 1.0, 10.0), (1e-2, 0.1, 1.0), (0.0, 1e-3, 1e-2, 0.1)
_GAMMAS = tuple(10.0**power for power in range(-3, 4))
_STEPS = (1.0, 10**0.5, 1 / 10**0.5)
# The values that each round tries around the best point.
_ROUNDS: tuple[Callable[[dict[str, float]], dict[str, Sequence[float]]], ...] = (
    lambda best: {"alignment_weight": _ALPHAS, "ridge_weight": _GAMMAS},
    lambda best: {"low_rank_weight": _LAMS, "prototype_weight": _BETAS},
    lambda best: {
        name: [best[name] * step for step in _STEPS] for name in ("alignment_weight", "ridge_weight")
    },
)
# Weights without effect if a term is omitted.
_WEIGHT_OF_TERM = {
    "decomposition": "low_rank_weight",
    "alignment": "alignment_weight",
    "prototypes": "prototype_weight",
}


def choose_weights(
    model: PMLMA, X: Any, Y: NDArray[Any], verified: NDArray[np.int8] | None = None
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the weights that rank held-out candidates best, and what was tried, as in ``PMLMA.selection_``.

    Y agrees with ``verified``, so that held-out rows are judged by what is known of them.
    """
    _check_rows(model, X.shape[0])
    count = np.count_nonzero(Y, axis=1)
    if not ((count > 0) & (count < Y.shape[1])).any():
        warnings.warn(
            "tune=True has nothing to choose by: no row has both a candidate and a non-candidate. "
            "The given weights are used.",
            UserWarning,
            stacklevel=5,
        )
        return {name: float(getattr(model, name)) for name in WEIGHTS}, {"tried": []}
    seed = _draw_seed(model.random_state)
    # Rows that differ only in what was verified are not interchangeable.
    content = Y if verified is None else np.column_stack([Y, verified])
    folds = InnerFolds(X, content, n_folds=N_FOLDS, random_state=seed)
    points: list[dict[str, float]] = []
    inner = clone(model).set_params(tune=False, random_state=seed)
    judge = judge_parameters(
        inner,
        points,
        folds.X,
        Y,
        folds.splits,
        target=Y,
        random_state=seed,
        fit_arguments={} if verified is None else {"verified": verified},
    )
    best, fixed = _START, {_WEIGHT_OF_TERM[term]: _START[_WEIGHT_OF_TERM[term]] for term in model.without}
    # All rounds need the graphs and feature maps of the same folds.
    with shared_work():
        for plan in _ROUNDS:
            values = {name: [best[name]] for name in WEIGHTS} | plan(best)
            for combination in product(*values.values()):
                point = dict(zip(WEIGHTS, combination, strict=True)) | fixed
                points += [point] if point not in points else []
            judge.try_points(range(len(points)))
            best = points[judge.evidence().best()[0]]
    evidence = judge.evidence()
    tried = [
        {**point, "precision": precision, "fold_precision": folds, "distance": distance}
        for point, precision, folds, distance in zip(
            points, evidence.precision, evidence.fold_precision, evidence.distance, strict=True
        )
    ]
    return best, {"tried": tried}


def _check_rows(model: PMLMA, n_rows: int) -> None:
    """Raise if an inner training fold has too few rows for a fit."""
    inner = n_rows - ceil(n_rows / N_FOLDS)
    has_neighbors = model.graph is None and "alignment" not in model.without
    needed = model.n_neighbors + 1 if has_neighbors else 2
    if inner < needed:
        hint = " use a smaller n_neighbors, or" if has_neighbors else ""
        raise ValueError(
            f"tune=True fits two thirds of the rows and needs at least {needed} there, got {inner} of {n_rows};"
            f"{hint} set the weights and tune=False."
        )


def _draw_seed(random_state: Any) -> int:
    """Return a seed for the folds; an integer is one already."""
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def can_share(model: PMLMA, points: Sequence[Parameters], *, n_labels: int) -> bool:
    """Whether :func:`share_points` gives what single fits give, with less work."""
    from skpml.modal_alignment._estimator import PMLMA

    return (
        # A subclass may fit or score differently.
        type(model)._fit is PMLMA._fit
        and type(model)._scores is PMLMA._scores
        and all(set(point) <= set(WEIGHTS) for point in points)
        and not model.tune
        and model.basis == "identity"
        and model.steps == "derived"
        and model.prototypes == "mean"
        and model.subspace_dim in (None, n_labels)
        and isinstance(model.feature_map, str)
        and not model.without
        and model.callback is None
        # Single fits raise an error for other values. Without a ridge there is no eigenbasis to share.
        and all(_is_weight(value) for point in points for value in point.values())
        and all(_is_weight(getattr(model, name)) for name in WEIGHTS)
        and all(point.get("ridge_weight", model.ridge_weight) > 0 for point in points)
        # All combinations are solved: they must not be many more than what was asked for.
        and prod(map(len, _values(model, points).values())) <= 2 * len(points)
    )


def _is_weight(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 <= float(value) < np.inf


def _values(model: PMLMA, points: Sequence[Parameters]) -> dict[str, list[float]]:
    """List the distinct values of each weight."""
    return {
        name: list(dict.fromkeys(float(point.get(name, getattr(model, name))) for point in points))
        for name in WEIGHTS
    }


def share_points(
    model: PMLMA,
    points: Sequence[Parameters],
    X: Any,
    Y: NDArray[Any],
    held_out: Any,
    verified: NDArray[np.int8] | None = None,
) -> PointScores:
    """Score held-out rows at every point, with shared work where :func:`can_share` allows it.

    Y agrees with ``verified``.
    """
    known = {} if verified is None else {"verified": verified}
    if not can_share(model, points, n_labels=Y.shape[1]):
        yield from fit_points(model, points, X, Y, held_out, **known)
        return
    values = _values(model, points)
    # One iteration of one point fits the scaling and the feature map, and validates the input.
    first = clone(model).set_params(
        **{**points[0], "alignment_weight": max(values["alignment_weight"]), "max_iter": 1}
    )
    first.fit(X, Y, **known)
    scaled = first.scaler_.transform(first._validate_features(X, reset=False))
    mapped = first.feature_map_.transform(scaled).astype(np.float64, copy=False)
    if mapped.shape[1] < Y.shape[1]:
        # The common space has fewer dimensions than there are labels.
        yield from fit_points(model, points, X, Y, held_out, **known)
        return
    new = first.feature_map_.transform(
        first.scaler_.transform(first._validate_features(held_out, reset=False))
    )
    places: dict[tuple[float, ...], list[int]] = {}
    for place, point in enumerate(points):
        key = tuple(float(point.get(name, getattr(model, name))) for name in WEIGHTS)
        places.setdefault(key, []).append(place)
    similarity = first._similarity(scaled)
    labels, max_iter, tol = Y.astype(np.float64), model.max_iter, model.tol
    known_true = None if verified is None else (verified > 0).astype(np.float64)
    for found in solve_grid(
        mapped, labels, similarity, known_true=known_true, max_iter=max_iter, tol=tol, **values
    ):
        scores = new @ found.coef
        for place in places.get(tuple(getattr(found.weights, name) for name in WEIGHTS), ()):
            yield place, scores
