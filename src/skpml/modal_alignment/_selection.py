"""λ, α, β and γ of PML-MA, chosen without a true label.

The training rows are cut into three inner folds. A point of the grid is fitted on two of them and judged on the third: by
the average precision with which it ranks the candidates of rows that it has not seen. Candidates may be false, but a
non-candidate is certainly false, and that is enough to compare points
(:func:`skpml.model_selection.candidate_precision`). Points of a round share their work
(:func:`skpml.modal_alignment._grid.solve_grid`); with settings that function does not cover, each point is a fit.

The search goes from coarse to fine, each round around the best point so far: γ over six decades together with α, on which
the best γ depends; then λ with β; then γ and α in half decades.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable
from itertools import product
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from skpml._sharing import shared_work
from skpml.graph import check_similarity
from skpml.modal_alignment._shared_grid import WEIGHTS, can_share, shared_scores, single_scores
from skpml.model_selection._held_out import InnerFolds, mean_of_folds, row_precision, shortfall

if TYPE_CHECKING:
    from skpml.modal_alignment._estimator import PMLMA

Key = tuple[float, float, float, float]

N_FOLDS = 3
_START: Key = (1.0, 1e-2, 0.0, 1.0)
_LAMS, _ALPHAS, _BETAS = (0.1, 1.0, 10.0), (1e-2, 0.1, 1.0), (0.0, 1e-3, 1e-2, 0.1)
_GAMMAS = tuple(10.0**power for power in range(-3, 4))
_HALF_A_DECADE = 10**0.5


def choose_weights(model: PMLMA, X: Any, Y: NDArray[Any]) -> tuple[dict[str, float], dict[str, Any]]:
    """Weights and the evidence for them, by inner folds of validated training rows.

    Returns
    -------
    weights : dict
    selection : dict
        As in ``PMLMA.selection_``.
    """
    _check_rows(model, X.shape[0])
    if not _comparable(Y):
        warnings.warn(
            'weights="auto" has nothing to choose by: no row has both a candidate and a non-candidate. '
            "The given lam, alpha, beta and gamma are used.",
            UserWarning,
            stacklevel=5,
        )
        return {name: float(getattr(model, name)) for name in WEIGHTS}, {"tried": []}
    judge, best = Judge(model, X, Y), _START
    # Every round needs the graphs and maps of the same folds.
    with shared_work():
        for plan in (_gamma_with_alpha, _lam_with_beta, _finer):
            judge.try_points(_effective(point, model.without) for point in plan(best))
            best = judge.best()
    return dict(zip(WEIGHTS, best, strict=True)), {"tried": judge.table()}


def _check_rows(model: PMLMA, n_rows: int) -> None:
    """Refuse rows of which an inner training fold is too small for a fit."""
    inner = n_rows - ceil(n_rows / N_FOLDS)
    has_neighbours = model.graph is None and "alignment" not in model.without
    needed = model.n_neighbors + 1 if has_neighbours else 2
    if inner < needed:
        hint = " use a smaller n_neighbors, or" if has_neighbours else ""
        raise ValueError(
            f'weights="auto" fits on two thirds of the rows and needs at least {needed} there, got {inner} of {n_rows};'
            f"{hint} give lam, alpha, beta and gamma."
        )


def _comparable(Y: NDArray[Any]) -> bool:
    count = np.count_nonzero(Y, axis=1)
    return bool(((count > 0) & (count < Y.shape[1])).any())


def _gamma_with_alpha(best: Key) -> Iterable[Key]:
    lam, _, beta, _ = best
    return product([lam], _ALPHAS, [beta], _GAMMAS)


def _lam_with_beta(best: Key) -> Iterable[Key]:
    _, alpha, _, gamma = best
    return product(_LAMS, [alpha], _BETAS, [gamma])


def _finer(best: Key) -> Iterable[Key]:
    lam, alpha, beta, gamma = best
    near = (1.0, _HALF_A_DECADE, 1 / _HALF_A_DECADE)
    return product([lam], [alpha * step for step in near], [beta], [gamma * step for step in near])


def _effective(point: Key, without: Collection[str]) -> Key:
    """The point with weights of parts that are left out of the objective at their start: they change nothing."""
    lam, alpha, beta, gamma = point
    return (
        _START[0] if "decomposition" in without else lam,
        _START[1] if "alignment" in without else alpha,
        _START[2] if "prototypes" in without else beta,
        gamma,
    )


class Judge:
    """Fits points on inner folds and keeps what the rows left out say of them.

    Parameters
    ----------
    model : PMLMA
        Its settings; not changed.
    X : (n, d)
    Y : (n, c)
        Candidates as 0 and 1.
    """

    def __init__(self, model: PMLMA, X: Any, Y: NDArray[Any]) -> None:
        seed = _seed(model.random_state)
        self._model = clone(model).set_params(
            weights=None,
            graph=None,
            empty_rows="ignore",
            empty_labels="ignore",
            callback=None,
            random_state=seed,
        )
        self._graph = None if model.graph is None else check_similarity(model.graph, X.shape[0])
        self._folds = InnerFolds(X, Y, n_folds=N_FOLDS, random_state=seed)
        self._rows: dict[Key, list[NDArray[Any]]] = {}
        self._precision: dict[Key, list[float]] = {}

    def try_points(self, points: Iterable[Key]) -> None:
        """Judge points that have not been judged yet."""
        new = [point for point in dict.fromkeys(points) if point not in self._rows]
        if not new:
            return
        self._rows.update({point: [] for point in new})
        self._precision.update({point: [] for point in new})
        named = [dict(zip(WEIGHTS, point, strict=True)) for point in new]
        candidates = self._folds.candidates
        shares = can_share(self._model, named, n_labels=candidates.shape[1])
        scores_of = shared_scores if shares else single_scores
        for train, held_out in self._folds.splits:
            model = self._model
            if self._graph is not None:
                model = clone(model).set_params(graph=self._graph[train][:, train])
            rows, left_out = self._folds.rows(train), self._folds.rows(held_out)
            with warnings.catch_warnings(action="ignore"):
                for place, scores in scores_of(model, named, rows, candidates[train], left_out):
                    self._keep(new[place], scores, candidates[held_out])

    def _keep(self, point: Key, scores: NDArray[Any], candidates: NDArray[Any]) -> None:
        finite = bool(np.isfinite(scores).all())
        rows = row_precision(scores if finite else np.zeros_like(scores), candidates)
        told = float(rows.mean()) if len(rows) else np.nan
        self._rows[point].append(rows)
        self._precision[point].append(told if finite else -np.inf)

    def best(self) -> Key:
        """The point with the highest mean over folds; of equals, the first that was tried."""
        return max(self._precision, key=lambda point: mean_of_folds(self._precision[point]))

    def table(self) -> list[dict[str, Any]]:
        """What is known of each point, in the order in which they were tried."""
        best = np.concatenate(self._rows[self.best()])
        return [
            {
                **dict(zip(WEIGHTS, point, strict=True)),
                "precision": mean_of_folds(folds),
                "fold_precision": folds,
                "distance": shortfall(best, np.concatenate(self._rows[point])),
            }
            for point, folds in self._precision.items()
        ]


def _seed(random_state: Any) -> int:
    """A seed of its own for the folds; a whole number is one already."""
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
