"""One pure function per block update of PML-MA.

Letters are the paper's: X features (n×d), Y candidates, R pseudo-labels and Q label basis (n×c, n×c, c×c), P1 and P2
projections into the common space (d×m, c×m), V prototypes (d×c), S neighbour similarity with row sums δ, and
``w = 1 + αδ``. The graph enters only through w and the map ``G M = M + αSM``, which is applied to thin matrices:
``Gᵀ = Xᵀ(I + αS)`` acts on n×c, so neither S X nor any n×n array is formed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from array_api_compat import array_namespace, device

from skpml.linalg import (
    Array,
    polar_factor,
    ridge_factor,
    singular_value_threshold,
    symmetric_sylvester,
)

Prototypes = Literal["mean", "least-squares"]


def update_label_projection(
    R: Array, P1: Array, smoothed_projection: Array, w: Array | None, gamma: float
) -> Array:
    """P2 ("p2"–"p222"): solve ``Rᵀdiag(w)R P2 + P2 γP1ᵀP1 = RᵀG P1``, then take the polar factor.

    ``smoothed_projection`` is ``G P1 = XP1 + αS(XP1)``.
    """
    weighted = R if w is None else R * w[:, None]
    return polar_factor(symmetric_sylvester(R.T @ weighted, gamma * (P1.T @ P1), R.T @ smoothed_projection))


def update_feature_projection(solve_ridge: Callable[[Array], Array], smoothed_labels: Array) -> Array:
    """P1 ("p1"–"p111"): ``(Xᵀdiag(w)X + γI) P1 = Gᵀ R P2``, the left side factored once for the whole fit.

    ``smoothed_labels`` is ``GᵀRP2 = Xᵀ(RP2 + αS RP2)``.
    """
    return solve_ridge(smoothed_labels)


def update_basis(R: Array, Y: Array) -> Array:
    """Q ("q3"): ``RᵀY = UΣVᵀ``, ``Q = V Uᵀ``, the orthogonal matrix that minimises ``‖Y − RQᵀ‖²``.

    Where RᵀY is singular the minimiser is not unique; a multiple of the identity at the size of rounding errors picks
    the one nearest to I, so that the result does not depend on the order of rows or labels.
    """
    xp = array_namespace(R, Y)
    M = Y.T @ R
    eye = xp.eye(M.shape[0], dtype=M.dtype, device=device(M))
    nudge = 8 * M.shape[0] * xp.finfo(M.dtype).eps * float(xp.linalg.matrix_norm(M))
    return polar_factor(M + nudge * eye)


def mean_prototypes(XtR: Array, R: Array) -> Array:
    """V as weighted means ("eq:update_prototypes"): ``v_j = Σ_i r_ij x_i / Σ_i r_ij``, from ``XtR = XᵀR``.

    A label whose column of R is all zero gets the zero prototype.
    """
    xp = array_namespace(XtR, R)
    mass = xp.sum(R, axis=0)
    present = mass > 0
    means = XtR / xp.where(present, mass, xp.ones_like(mass))[None, :]
    return xp.where(present[None, :], means, xp.zeros_like(means))


def least_squares_prototypes(XtDR: Array, R: Array) -> Array:
    """V by least squares ("eq24"): ``V = XᵀDR (RᵀR)⁻¹``, the minimiser of ``‖DX − RVᵀ‖²``, from ``XtDR = XᵀDR``.

    The pseudo-inverse where RᵀR is singular, as with a label whose column of R is all zero.
    """
    return ridge_factor(R)(XtDR.T).T


def alignment_gradient(R: Array, P2: Array | None, smoothed_scores: Array, w: Array | None) -> Array:
    """Half the gradient of both alignment terms in R: ``w∘(R P2P2ᵀ) − G P1P2ᵀ``.

    ``smoothed_scores`` is ``G P1P2ᵀ``, the classifier's scores smoothed over the graph.
    """
    projected = R if P2 is None else (R @ P2) @ P2.T
    return (projected if w is None else projected * w[:, None]) - smoothed_scores


def decomposition_gradient(R: Array, Y: Array, Q: Array | None) -> Array:
    """Half the gradient of ``‖Y − RQᵀ‖²`` in R for orthogonal Q: ``R − YQ``."""
    return R - (Y if Q is None else Y @ Q)


def prototype_gradient(R: Array, V: Array, XV: Array, row_sums: Array) -> Array:
    """Half the gradient of ``‖DX − RVᵀ‖²`` in R with D held fixed: ``R VᵀV − D X V``."""
    return R @ (V.T @ V) - row_sums[:, None] * XV


def lipschitz_constant(curvature: Array, alpha: float, largest_degree: float) -> float:
    """Lipschitz constant of the whole gradient in R: ``L = 2(‖P2P2ᵀ + I + βVᵀV‖₂ + α max δ)``.

    ``curvature`` is the symmetric matrix inside the norm.
    """
    xp = array_namespace(curvature)
    return 2 * (float(xp.max(xp.linalg.eigvalsh(curvature))) + alpha * largest_degree)


def update_pseudo_labels(R: Array, gradient: Array, lipschitz: float, Y: Array, lam: float) -> Array:
    """R: one proximal gradient step, then the box.

    ``gradient`` is the whole gradient ``2[ w∘(R P2P2ᵀ) − G P1P2ᵀ + R − YQ + β(R VᵀV − D X V) ]``;
    ``Z = R − gradient/L``, singular value thresholding of Z at λ/L, and exact projection on ``0 ≤ R ≤ Y``.
    """
    xp = array_namespace(R, Y)
    Z = singular_value_threshold(R - gradient / lipschitz, lam / lipschitz)
    return xp.minimum(xp.clip(Z, min=0.0), Y)
