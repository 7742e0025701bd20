"""Splitting a candidate matrix by itself, without features: low-rank orthogonal, and low-rank plus sparse.

The first is the decomposition inside PML-MA, the second the classical alternative it is compared with.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from array_api_compat import array_namespace, device
from sklearn.exceptions import ConvergenceWarning

from skpml.linalg import Array, nuclear_norm, singular_value_threshold, soft_threshold
from skpml.modal_alignment._objective import decomposition_loss
from skpml.modal_alignment._solver import Basis
from skpml.modal_alignment._updates import decomposition_gradient, update_basis, update_pseudo_labels

__all__ = ["OrthogonalDecomposition", "SparseDecomposition", "low_rank_orthogonal", "low_rank_sparse"]


@dataclass(frozen=True, kw_only=True)
class OrthogonalDecomposition:
    """``Y ≈ R Qᵀ``: pseudo-labels R, orthogonal basis Q, and the objective after every iteration."""

    pseudo_labels: Array
    basis: Array
    objective: list[float]
    n_iter: int
    converged: bool


@dataclass(frozen=True, kw_only=True)
class SparseDecomposition:
    """``Y = G + N``: a low-rank part and a sparse part."""

    low_rank: Array
    sparse: Array
    n_iter: int
    converged: bool


def low_rank_orthogonal(
    Y: Array, *, lam: float = 1.0, basis: Basis = "orthogonal", max_iter: int = 50, tol: float = 1e-3
) -> OrthogonalDecomposition:
    """Low-rank orthogonal decomposition: ``min ‖Y − RQᵀ‖² + λ‖R‖*`` over ``QᵀQ = I`` and ``0 ≤ R ≤ Y``.

    Alternates PML-MA's own updates of Q and R without any feature term. The step in R thresholds and then clips, which
    is not the joint proximal map of both: near the end the objective may move up by a part in a million.

    Parameters
    ----------
    Y : array of shape (n, c)
        Candidates as floating-point 0 and 1, of any array namespace.
    lam : float
        Weight λ of the nuclear norm, at least 0. Zero gives ``R = Y``.
    basis : {"orthogonal", "identity"}
        Learn Q, or keep it at I.
    max_iter, tol
        Stop where the objective changes by less than ``tol``, relative to its last value.
    """
    if lam < 0:
        raise ValueError(f"lam must be at least 0, got {lam}.")
    xp = array_namespace(Y)
    R, Q = Y, None
    objective: list[float] = []
    converged = False
    for _ in range(max_iter):
        if basis == "orthogonal":
            Q = update_basis(R, Y)
        R = update_pseudo_labels(R, 2 * decomposition_gradient(R, Y, Q), 2.0, Y, lam)
        objective.append(decomposition_loss(Y, R, Q) + lam * nuclear_norm(R))
        converged = len(objective) > 1 and abs(objective[-1] - objective[-2]) <= tol * abs(objective[-2])
        if converged:
            break
    _warn_unless(converged, "low_rank_orthogonal", max_iter)
    return OrthogonalDecomposition(
        pseudo_labels=R,
        basis=xp.eye(Y.shape[1], dtype=Y.dtype, device=device(Y)) if Q is None else Q,
        objective=objective,
        n_iter=len(objective),
        converged=converged,
    )


def low_rank_sparse(
    Y: Array, *, sparsity: float | None = None, max_iter: int = 5000, tol: float = 1e-7
) -> SparseDecomposition:
    """Robust principal component analysis: ``min ‖G‖* + σ‖N‖₁`` subject to ``G + N = Y``.

    Augmented Lagrangian with multiplier M and penalty μ, alternating the two proximal maps: singular value
    thresholding of ``Y − N + M/μ`` at 1/μ, soft thresholding of ``Y − G + M/μ`` at σ/μ, then
    ``M += μ(Y − G − N)``.

    Parameters
    ----------
    Y : array of shape (n, c)
        Floating point, of any array namespace.
    sparsity : float or None
        σ; None is ``1/√max(n, c)``, under which exact recovery is proved for enough rank and sparsity.
    max_iter, tol
        Stop where ``‖Y − G − N‖`` and the last change of N are at most ``tol ‖Y‖``.
    """
    xp = array_namespace(Y)
    weight = max(Y.shape) ** -0.5 if sparsity is None else sparsity
    if weight <= 0:
        raise ValueError(f"sparsity must be above 0, got {sparsity}.")
    size = float(xp.linalg.matrix_norm(Y))
    N, M = xp.zeros_like(Y), xp.zeros_like(Y)
    if size == 0:
        return SparseDecomposition(low_rank=N, sparse=N, n_iter=0, converged=True)
    # A fixed penalty keeps the method convergent; this size balances the two thresholds on 0/1 matrices.
    mu = Y.shape[0] * Y.shape[1] / (4 * float(xp.sum(xp.abs(Y))))
    G, converged, n_iter = N, False, 0
    while not converged and n_iter < max_iter:
        G = singular_value_threshold(Y - N + M / mu, 1 / mu)
        rest = Y - G + M / mu
        before, N = N, soft_threshold(rest, weight / mu)
        residual = Y - G - N
        M = M + mu * residual
        gap = max(float(xp.linalg.matrix_norm(residual)), float(xp.linalg.matrix_norm(N - before)))
        converged = gap <= tol * size
        n_iter += 1
    _warn_unless(converged, "low_rank_sparse", max_iter)
    return SparseDecomposition(low_rank=G, sparse=N, n_iter=n_iter, converged=converged)


def _warn_unless(converged: bool, name: str, max_iter: int) -> None:
    if not converged:
        warnings.warn(
            f"{name} did not converge within max_iter={max_iter} iterations; increase max_iter or tol.",
            ConvergenceWarning,
            stacklevel=3,
        )
