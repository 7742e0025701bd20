"""The second stage of PML-ND: a classifier W for the credible labels T and one, Hn, for the noise labels N.

Minimises, over W and Hn (d×c),

    ‖XW − T‖² + ‖XHn − N‖² + λ‖Hn‖₁ + β‖W‖₂,₁ + (γ/2) Σ_k w_kᵀ diag(s_k) w_k + δ tr(R Wᵀ Hn)

with R the cosine distances of credible and noise labels and s_k the scatter of label k. Everything runs on the Gram
matrix ``XᵀX``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from skpml.baselines._pml_nd.disambiguation import cosine_distances
from skpml.linalg import ridge_factor, soft_threshold

Matrix = NDArray[np.float64]
Solver = Literal["exact", "multiplicative"]

_EPSILON = float(np.finfo(np.float64).eps)
# Relative to the mean diagonal of the Gram matrix: lets it be factored where features repeat and β is 0.
_JITTER = 1e-10
_CG_STEPS = 500
_CG_TOL = 1e-11


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Weights: row sparsity β of W, sparsity λ of Hn, scatter γ, incoherence δ of the two, ridge η of the start."""

    beta: float = 4.0
    lam: float = 0.25
    gamma: float = 2.0**-6
    delta: float = 2.0**-6
    eta: float = 10.0


@dataclass(frozen=True, kw_only=True)
class Solution:
    """W and Hn (d×c), the objective after every iteration, whether it settled, and whether it left the finite numbers."""

    coef: Matrix
    noise_coef: Matrix
    history: dict[str, list[float]]
    converged: bool
    ran_away: bool


def solve(
    X: Matrix,
    T: Matrix,
    N: Matrix,
    *,
    weights: Weights,
    solver: Solver = "exact",
    max_iter: int = 50,
    tol: float = 1e-3,
) -> Solution:
    """Alternate between W and Hn until the objective changes relatively by less than ``tol``.

    Parameters
    ----------
    X : (n, d)
        Features in [0, 1] with a constant column.
    T, N : (n, c) of 0 and 1
        Credible and noise labels.
    weights : Weights
    solver : {"exact", "multiplicative"}
        Each step in W the minimiser given Hn and the reweighted ‖·‖₂,₁, or the published multiplicative step. The
        latter presumes positive numbers throughout and may run away; it then ends with the last finite W.
    max_iter, tol
        At most so many iterations; the objective is first compared at the second.
    """
    # A run that leaves the finite numbers is noticed by its objective.
    with np.errstate(all="ignore"):
        return _alternate(X, T, N, weights, solver, max_iter, tol)


def _alternate(
    X: Matrix, T: Matrix, N: Matrix, weights: Weights, solver: Solver, max_iter: int, tol: float
) -> Solution:
    exact = solver == "exact"
    problem = _Problem(X, T, N, weights, exact)
    step = problem.exact_coef if exact else problem.multiplicative_coef
    ridge = ridge_factor(X, ridge=weights.eta)
    W = ridge(problem.XtT + _EPSILON)
    H = H_before = ridge(problem.XtN)
    b = b_before = 1.0
    objective: list[float] = []
    converged = ran_away = False
    while not converged and len(objective) < max_iter:
        W_next = step(W, H)
        Z = H + (b_before - 1) / b * (H - H_before)
        H_next = problem.noise_coef(Z, W_next)
        value = problem.objective(W_next, H_next)
        ran_away = not np.isfinite(value)
        if ran_away:
            break
        b_before, b = b, (1 + np.sqrt(4 * b**2 + 1)) / 2
        W, H, H_before = W_next, H_next, H
        converged = bool(objective) and abs(value - objective[-1]) <= tol * abs(objective[-1])
        objective.append(value)
    return Solution(
        coef=W, noise_coef=H, history={"objective": objective}, converged=converged, ran_away=ran_away
    )


def scatter(X: Matrix, T: Matrix) -> tuple[Matrix, Matrix]:
    """Spread within the rows with and without each label, and the distance of their means, feature by feature (d×c).

    The first is ``Σ_p(x − m_p)² + (|p|/|q|) Σ_q(x − m_q)²``, the second ``|p|(m_p − m_q)²``, where p are the rows
    with the label and q the others. A label of no row or of every row has neither.
    """
    with_label = T.sum(axis=0)
    without = len(T) - with_label
    mixed = (with_label > 0) & (without > 0)
    p, q = np.where(mixed, with_label, 1), np.where(mixed, without, 1)
    sums, squares = X.T @ T, (X**2).T @ T
    mean_p, mean_q = sums / p, (X.sum(axis=0)[:, None] - sums) / q
    within_p = squares - p * mean_p**2
    within_q = (X**2).sum(axis=0)[:, None] - squares - q * mean_q**2
    within = np.maximum(within_p, 0) + p / q * np.maximum(within_q, 0)
    return within * mixed, p * (mean_p - mean_q) ** 2 * mixed


def solve_columns(gram: Matrix, diagonals: Matrix, rhs: Matrix, start: Matrix) -> Matrix:
    """``(gram + diag(diagonals_k)) w_k = rhs_k`` for all k at once, from one factorisation.

    Conjugate gradients for all columns together, preconditioned by the Cholesky factor of the Gram matrix with the
    mean of the diagonals: where all diagonals agree that is the solution at once.
    """
    shared = gram.copy()
    np.einsum("ii->i", shared)[...] += diagonals.mean(axis=1)
    factor = scipy.linalg.cho_factor(shared, lower=True, overwrite_a=True, check_finite=False)
    W = start
    residual = rhs - gram @ W - diagonals * W
    sizes = np.linalg.norm(rhs, axis=0)
    # Columns that are next to nothing, as that of a label nobody has, need no digits of their own.
    goal = _CG_TOL * np.maximum(sizes, 1e-3 * sizes.max())
    direction, before = np.zeros_like(W), np.ones(W.shape[1])
    for _ in range(_CG_STEPS):
        active = np.linalg.norm(residual, axis=0) > goal
        if not active.any():
            break
        conditioned = scipy.linalg.cho_solve(factor, residual, check_finite=False)
        size = np.einsum("ij,ij->j", residual, conditioned)
        direction = conditioned + size / before * direction
        image = gram @ direction + diagonals * direction
        curvature = np.einsum("ij,ij->j", direction, image)
        active &= curvature > 0
        length = np.where(active, size / np.where(active, curvature, 1), 0)
        W = W + length * direction
        residual = residual - length * image
        before = np.where(size > 0, size, 1)
    return W


class _Problem:
    """What stays fixed during a fit, and the steps that use it."""

    def __init__(self, X: Matrix, T: Matrix, N: Matrix, weights: Weights, exact: bool) -> None:
        self.weights, self.exact = weights, exact
        self.gram = X.T @ X
        d = len(self.gram)
        self.jitter = _JITTER * max(float(np.trace(self.gram)) / d, _EPSILON)
        self.XtT, self.XtN = X.T @ T, X.T @ N
        self.label_mass = float((T**2).sum() + (N**2).sum())
        self.distances = cosine_distances(T, N)
        within, between = scatter(X, T)
        # As published the sums over rows lack the square, so that only the part with the minus sign is left.
        self.scatter = np.maximum(within - between, 0) if exact else -between
        largest = scipy.linalg.eigh(self.gram, eigvals_only=True, subset_by_index=[d - 1, d - 1])[0]
        self.lipschitz = 2 * max(float(largest), _EPSILON)

    def exact_coef(self, W: Matrix, H: Matrix) -> Matrix:
        """``w_k = (XᵀX + β diag(g) + (γ/2) diag(s_k⁺))⁻¹ (XᵀT_k − (δ/2)(Hn R)_k)``."""
        weights = self.weights
        diagonals = weights.gamma / 2 * self.scatter
        diagonals = diagonals + (weights.beta * self._row_weights(W) + self.jitter)[:, None]
        return solve_columns(self.gram, diagonals, self.XtT - weights.delta / 2 * H @ self.distances, W)

    def multiplicative_coef(self, W: Matrix, H: Matrix) -> Matrix:
        """``W ∘ (XᵀT) ⊘ (XᵀXW + β diag(g)W + δ Hn R + γ s∘W + ε)``, with the published scatter."""
        weights = self.weights
        pull = (
            self.gram @ W
            + weights.beta * self._row_weights(W)[:, None] * W
            + weights.delta * H @ self.distances
            + weights.gamma * self.scatter * W
            + _EPSILON
        )
        return np.asarray(W * self.XtT / pull)

    def noise_coef(self, Z: Matrix, W: Matrix) -> Matrix:
        """A proximal gradient step from Z. As published it has half the gradient of the data, and R for Rᵀ."""
        weights = self.weights
        pull = self.gram @ Z - self.XtN
        if self.exact:
            gradient = 2 * pull + weights.delta * W @ self.distances.T
        else:
            gradient = pull + weights.delta * W @ self.distances
        return np.asarray(soft_threshold(Z - gradient / self.lipschitz, weights.lam / self.lipschitz))

    def objective(self, W: Matrix, H: Matrix) -> float:
        weights = self.weights
        fit = np.vdot(W, self.gram @ W - 2 * self.XtT) + np.vdot(H, self.gram @ H - 2 * self.XtN)
        sizes = weights.lam * np.abs(H).sum() + weights.beta * np.linalg.norm(W, axis=1).sum()
        scatter = weights.gamma / 2 * np.vdot(self.scatter, W**2)
        incoherence = weights.delta * np.vdot(self.distances.T, W.T @ H)
        return float(fit + self.label_mass + sizes + scatter + incoherence)

    def _row_weights(self, W: Matrix) -> Matrix:
        return np.asarray(0.5 / np.sqrt((W**2).sum(axis=1) + _EPSILON))
