"""Decompose a candidate matrix without features: low-rank orthogonal, or low-rank plus sparse.

The first is the decomposition inside PML-MA, the second the classical alternative that it is compared with.
"""

from __future__ import annotations

import warnings

from array_api_compat import array_namespace, device
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch

from skpml.linalg import Array, nuclear_norm, singular_value_threshold, soft_threshold
from skpml.modal_alignment._solver import Basis
from skpml.modal_alignment._updates import (
    decomposition_gradient,
    decomposition_loss,
    update_basis,
    update_pseudo_labels,
)


def low_rank_orthogonal(
    Y: Array,
    *,
    low_rank_weight: float = 1.0,
    basis: Basis = "orthogonal",
    max_iter: int = 50,
    tol: float = 1e-3,
) -> Bunch:
    """Minimize ``‖Y − RQᵀ‖² + λ‖R‖*`` over ``QᵀQ = I`` and ``0 ≤ R ≤ Y``.

    Alternates PML-MA's updates of Q and R, without any feature term. The step in R thresholds and then clips, which is
    not the joint proximal map of both: near the end the objective may rise by a part in a million.

    Parameters
    ----------
    Y : array of shape (n, c)
        Candidates as floating-point 0 and 1, of any array namespace.
    low_rank_weight : float, default=1.0
        Weight λ of the nuclear norm, at least 0. Zero gives ``R = Y``.
    basis : {"orthogonal", "identity"}, default="orthogonal"
        Learn Q, or keep it at the identity.
    max_iter : int, default=50
        Maximum number of iterations.
    tol : float, default=1e-3
        Stop when the relative change of the objective is at most this.

    Returns
    -------
    Bunch
        With ``Y ≈ R Qᵀ``: ``pseudo_labels``, R; ``basis``, Q; ``objective``, a list of its values after each iteration;
        ``n_iter``; and ``converged``, whether the stopping rule was met.
    """
    lam = low_rank_weight
    if lam < 0:
        raise ValueError(f"low_rank_weight must be at least 0, got {lam}.")
    xp = array_namespace(Y)
    R, Q = Y, None
    objective: list[float] = []
    converged = False
    for _ in range(max_iter):
        if basis == "orthogonal":
            Q = update_basis(Y.T @ R)
        R = update_pseudo_labels(R, 2 * decomposition_gradient(R, Y, Q), 2.0, Y, lam)
        objective.append(decomposition_loss(Y, R, Q) + lam * nuclear_norm(R))
        converged = len(objective) > 1 and abs(objective[-1] - objective[-2]) <= tol * abs(objective[-2])
        if converged:
            break
    _warn_unless(converged, "low_rank_orthogonal", max_iter)
    return Bunch(
        pseudo_labels=R,
        basis=xp.eye(Y.shape[1], dtype=Y.dtype, device=device(Y)) if Q is None else Q,
        objective=objective,
        n_iter=len(objective),
        converged=converged,
    )


def low_rank_sparse(
    Y: Array, *, sparsity: float | None = None, max_iter: int = 5000, tol: float = 1e-7
) -> Bunch:
    """Minimize ``‖G‖* + σ‖N‖₁`` subject to ``G + N = Y`` (robust principal component analysis).

    Augmented Lagrangian with multiplier M and penalty μ, alternating the two proximal maps: singular value
    thresholding of ``Y − N + M/μ`` at 1/μ, soft thresholding of ``Y − G + M/μ`` at σ/μ, then
    ``M += μ(Y − G − N)``.

    Parameters
    ----------
    Y : array of shape (n, c)
        Floating point, of any array namespace.
    sparsity : float or None, default=None
        Weight σ; None is ``1/√max(n, c)``, for which exact recovery is proved if rank and noise are low enough.
    max_iter : int, default=5000
        Maximum number of iterations.
    tol : float, default=1e-7
        Stop when ``‖Y − G − N‖`` and the last change of N are at most ``tol ‖Y‖``.

    Returns
    -------
    Bunch
        With ``Y = G + N``: ``low_rank``, G; ``sparse``, N; ``n_iter``; and ``converged``, whether the stopping rule was
        met.
    """
    xp = array_namespace(Y)
    weight = max(Y.shape) ** -0.5 if sparsity is None else sparsity
    if weight <= 0:
        raise ValueError(f"sparsity must be above 0, got {sparsity}.")
    size = float(xp.linalg.matrix_norm(Y))
    N, M = xp.zeros_like(Y), xp.zeros_like(Y)
    if size == 0:
        return Bunch(low_rank=N, sparse=N, n_iter=0, converged=True)
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
    return Bunch(low_rank=G, sparse=N, n_iter=n_iter, converged=converged)


def _warn_unless(converged: bool, name: str, max_iter: int) -> None:
    if not converged:
        warnings.warn(
            f"{name} did not converge within max_iter={max_iter} iterations; increase max_iter or tol.",
            ConvergenceWarning,
            stacklevel=3,
        )
