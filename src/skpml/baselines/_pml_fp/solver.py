"""The alternating loop of PML-fp and PML-lc: arrays in, :class:`Solution` out. Knows nothing of scikit-learn.

Both minimise, over linear scorers f and confidences P (``0 ≤ P ≤ Y``, every row of candidates summing to 1 at least),

    Σ_k (‖w_k‖² + b_k²/100) + C1 Σ_i (1/γ_i) Σ_{k,l} max(0, P_ik − P_il) h(1 − f_k(x_i) + f_l(x_i))
        + Σ_ik L_ik P_ik − Σ_i P_i R P_iᵀ

with ``γ_i = |Ŷ_i| (c − |Ŷ_i|) + |Ŷ_i|²/2``, h the rounded hinge and b the biases of centred features; they differ in the
cost L and the reward R. All P that the solver meets are constant on a set of each row's candidates, and zero elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from skpml.baselines._pml_fp.confidence import update_confidences
from skpml.baselines._pml_fp.ranking import Matrix, fit_ranking, model_size, ranking_loss


@dataclass(frozen=True, kw_only=True)
class Solution:
    """What a fit leaves behind.

    Attributes
    ----------
    coef : (d, c)
    intercept : (c,)
        Scores are ``X @ coef + intercept``; on every row they sum to zero.
    scores : (n, c)
    confidences : (n, c)
        P.
    history : dict of lists
        One value an iteration: ``"confidence_step"``, the objective with the new confidences and the old model, and
        ``"objective"``, with both new.
    converged : bool
    """

    coef: Matrix
    intercept: Matrix
    scores: Matrix
    confidences: Matrix
    history: dict[str, list[float]]
    converged: bool


def candidate_prototypes(X: Matrix, Y: Matrix) -> Matrix:
    """q (c×d): the mean of the rows that have the label as a candidate; zero for a label that is nobody's."""
    counts = Y.sum(axis=0)
    return (Y.T @ X) / np.maximum(counts, 1)[:, None]


def prototype_distances(X: Matrix, prototypes: Matrix) -> Matrix:
    """``‖x_i − q_k‖`` (n×c)."""
    return cdist(X, prototypes)


def label_correlation(Y: Matrix) -> Matrix:
    """Sc (c×c): rows with both labels among the candidates, as a share of the rows with either; zero on the diagonal."""
    both = Y.T @ Y
    counts = np.diag(both)
    either = counts[:, None] + counts - both
    correlation = both / np.maximum(either, 1)
    np.fill_diagonal(correlation, 0)
    return correlation


def solve(
    X: Matrix,
    Y: Matrix,
    *,
    C1: float,
    linear_cost: Matrix,
    pair_reward: Matrix,
    max_iter: int = 20,
    tol: float = 1e-3,
) -> Solution:
    """Alternate exact model steps and confidence steps, from confidences that are equal on each row's candidates.

    Parameters
    ----------
    X : (n, d)
    Y : (n, c)
        Candidates as 0.0 and 1.0.
    C1 : float
    linear_cost : (n, c)
        L.
    pair_reward : (c, c)
        R, symmetric with an empty diagonal.
    max_iter, tol
        Stop where the confidences stay, or the objective changes by less than ``tol``, relative to its last value.
    """
    candidates = Y > 0
    sizes = Y.sum(axis=1)
    pair_count = sizes * (Y.shape[1] - sizes) + sizes**2 / 2
    pair_weights = np.where(sizes > 0, C1 / np.where(sizes > 0, pair_count, 1), 0)
    # Rows without candidates are to have no say, not even in the centre.
    mean = candidates.any(axis=1) @ X / max(int(np.count_nonzero(sizes)), 1)
    features, basis = _compact(X - mean)
    features = np.hstack([features, np.ones((len(X), 1))])

    def fit(P: Matrix, start: Matrix | None) -> Matrix:
        return fit_ranking(features, P > 0, pair_weights * P.max(axis=1), start)

    def objective(coef: Matrix, scores: Matrix, P: Matrix) -> float:
        ranking = ranking_loss(scores, P > 0, pair_weights * P.max(axis=1))
        beliefs = np.sum(linear_cost * P) - np.sum((P @ pair_reward) * P)
        return model_size(coef) + ranking + float(beliefs)

    P = Y / np.maximum(sizes, 1)[:, None]
    coef = fit(P, None)
    scores = features @ coef
    history: dict[str, list[float]] = {"confidence_step": [], "objective": []}
    previous, converged = objective(coef, scores, P), False
    for _ in range(max_iter):
        believed = update_confidences(
            scores, candidates, P, pair_weights=pair_weights, linear_cost=linear_cost, pair_reward=pair_reward
        )
        moved, P = not np.array_equal(believed, P), believed
        history["confidence_step"].append(objective(coef, scores, P))
        if moved:
            coef = fit(P, coef)
            scores = features @ coef
        current = objective(coef, scores, P)
        history["objective"].append(current)
        converged = abs(current - previous) <= tol * abs(previous)
        if converged:
            break
        previous = current
    weights = coef[:-1] if basis is None else basis @ coef[:-1]
    return Solution(
        coef=weights,
        intercept=coef[-1] - mean @ weights,
        scores=scores,
        confidences=P,
        history=history,
        converged=converged,
    )


def _compact(X: Matrix) -> tuple[Matrix, Matrix | None]:
    """X in an orthonormal basis (columns) of its rows' span where there are fewer rows than features; else X itself.

    The penalty does not see the turn, and directions that no row has get no weight.
    """
    if X.shape[1] <= X.shape[0]:
        return X, None
    basis, triangle = np.linalg.qr(X.T)
    return np.ascontiguousarray(triangle.T), basis
