"""Terms of PML-MA's objective ("eqx"), and one pure function for each block update.

    J = ‖XP1 − RP2‖² + ‖Y − RQᵀ‖² + λ‖R‖* + α Σ_ij S_ij ‖P1ᵀx_i − P2ᵀr_j‖² + β‖DX − RVᵀ‖² + γ‖P1P2ᵀ‖²

Letters are the paper's: X features (n×d), Y candidates, R pseudo-labels and Q label basis (n×c, n×c, c×c), P1 and P2
projections into the common space (d×m, c×m), V prototypes (d×c), S neighbor similarity with row sums δ, ``D = diag(R·1)``
and ``w = 1 + αδ``. The weights are λ = ``low_rank_weight``, α = ``alignment_weight``, β = ``prototype_weight`` and
γ = ``ridge_weight``. The graph enters only through w and the map ``G M = M + αSM``, which is applied to thin matrices:
``Gᵀ = Xᵀ(I + αS)`` acts on n×c, so neither S X nor any n×n array is formed. Losses are returned without their weight.
"""

from __future__ import annotations

from typing import Literal

from array_api_compat import array_namespace, device

from skpml.linalg import (
    Array,
    factor_gram,
    polar_factor,
    singular_value_threshold,
    symmetric_sylvester,
)

Prototypes = Literal["mean", "least-squares"]


def total(values: Array) -> float:
    """Sum all values."""
    return float(array_namespace(values).sum(values))


def local_alignment_loss(
    projected_features: Array, projected_labels: Array, neighbor_labels: Array, degrees: Array
) -> float:
    """``Σ_ij S_ij ‖P1ᵀx_i − P2ᵀr_j‖²`` from ``XP1``, ``RP2``, ``S RP2`` and δ.

    Closed form: ``δ·rowsum((XP1)²) + δ·rowsum((RP2)²) − 2⟨XP1, S(RP2)⟩``.
    """
    squares = projected_features**2 + projected_labels**2
    return total(degrees[:, None] * squares) - 2 * total(projected_features * neighbor_labels)


def decomposition_loss(Y: Array, R: Array, Q: Array | None) -> float:
    """``‖Y − RQᵀ‖²``; ``Q=None`` is the identity."""
    return total((Y - (R if Q is None else R @ Q.T)) ** 2)


def prototype_loss(R: Array, V: Array, XV: Array, squared_norms: Array) -> float:
    """``‖DX − RVᵀ‖²`` from ``XV`` and the squared row norms of X.

    Expanded: ``Σ_i d_i²‖x_i‖² − 2⟨R, D XV⟩ + ⟨R VᵀV, R⟩``, so that no n×d array is formed.
    """
    row_sums = array_namespace(R, V).sum(R, axis=1)
    cross = total(R * XV * row_sums[:, None])
    return total(row_sums**2 * squared_norms) - 2 * cross + total((R @ (V.T @ V)) * R)


def update_label_projection(RtwR: Array, P1: Array, RtGP1: Array, gamma: float) -> Array:
    """P2 ("p2"–"p222"): solve ``Rᵀdiag(w)R P2 + P2 γP1ᵀP1 = RᵀG P1``, then take the polar factor.

    ``RtwR`` is ``Rᵀdiag(w)R``, and ``RtGP1`` is ``RᵀG P1`` with ``G P1 = XP1 + αS(XP1)``.
    """
    return polar_factor(symmetric_sylvester(RtwR, gamma * (P1.T @ P1), RtGP1))


def update_basis(YtR: Array) -> Array:
    """Q ("q3"): ``RᵀY = UΣVᵀ``, ``Q = V Uᵀ``, the orthogonal matrix that minimizes ``‖Y − RQᵀ‖²``, from ``YtR = YᵀR``.

    The minimizer is not unique if RᵀY is singular. A multiple of the identity at the size of rounding errors selects the
    one nearest to I, so that the result does not depend on the order of rows or labels.
    """
    xp, c = array_namespace(YtR), YtR.shape[0]
    eye = xp.eye(c, dtype=YtR.dtype, device=device(YtR))
    nudge = 8 * c * xp.finfo(YtR.dtype).eps * float(xp.linalg.matrix_norm(YtR))
    return polar_factor(YtR + nudge * eye)


def mean_prototypes(XtR: Array, mass: Array) -> Array:
    """V as weighted means ("eq:update_prototypes"): ``v_j = Σ_i r_ij x_i / Σ_i r_ij``, from ``XtR = XᵀR``.

    ``mass`` are the sums of the columns of R. A label whose column is all zero has the zero prototype.
    """
    xp = array_namespace(XtR)
    present = mass > 0
    means = XtR / xp.where(present, mass, xp.ones_like(mass))[None, :]
    return xp.where(present[None, :], means, xp.zeros_like(means))


def least_squares_prototypes(XtDR: Array, RtR: Array) -> Array:
    """V by least squares ("eq24"): ``V = XᵀDR (RᵀR)⁻¹``, the minimizer of ``‖DX − RVᵀ‖²``, from ``XᵀDR`` and ``RᵀR``.

    The pseudo-inverse if RᵀR is singular, as with a label whose column of R is all zero.
    """
    return factor_gram(RtR, 0.0)(XtDR.T).T


def alignment_gradient(R: Array, P2: Array | None, smoothed_scores: Array, w: Array | None) -> Array:
    """Half the gradient of both alignment terms in R: ``w∘(R P2P2ᵀ) − G P1P2ᵀ``.

    ``smoothed_scores`` is ``G P1P2ᵀ``, the classifier's scores smoothed over the graph.
    """
    projected = R if P2 is None else (R @ P2) @ P2.T
    return (projected if w is None else projected * w[:, None]) - smoothed_scores


def decomposition_gradient(R: Array, Y: Array, Q: Array | None, pull: float = 1.0) -> Array:
    """Half the gradient of ``‖Y − RQᵀ‖²`` in R for orthogonal Q: ``R − YQ``.

    ``pull`` multiplies ``YQ``; the authors' program doubles it.
    """
    target = Y if Q is None else Y @ Q
    return R - (target if pull == 1 else pull * target)


def prototype_gradient(R: Array, V: Array, XV: Array, row_sums: Array) -> Array:
    """Half the gradient of ``‖DX − RVᵀ‖²`` in R with D held fixed: ``R VᵀV − D X V``."""
    return R @ (V.T @ V) - row_sums[:, None] * XV


def lipschitz_constant(curvature: Array, alpha: float, largest_degree: float) -> float:
    """Lipschitz constant of the whole gradient in R: ``L = 2(‖P2P2ᵀ + I + βVᵀV‖₂ + α max δ)``.

    ``curvature`` is the symmetric matrix inside the norm.
    """
    xp = array_namespace(curvature)
    return 2 * (float(xp.max(xp.linalg.eigvalsh(curvature))) + alpha * largest_degree)


def project_to_box(R: Array, Y: Array, known_true: Array | None = None) -> Array:
    """The nearest matrix with ``0 ≤ R ≤ Y`` that is 1 where ``known_true`` is 1."""
    xp = array_namespace(R, Y)
    boxed = xp.minimum(xp.clip(R, min=0.0), Y)
    return boxed if known_true is None else xp.maximum(boxed, known_true)


def update_pseudo_labels(
    R: Array, gradient: Array, lipschitz: float, Y: Array, lam: float, known_true: Array | None = None
) -> Array:
    """R: one proximal gradient step, then the box.

    ``gradient`` is the whole gradient ``2[ w∘(R P2P2ᵀ) − G P1P2ᵀ + R − YQ + β(R VᵀV − D X V) ]``;
    ``Z = R − gradient/L``, singular value thresholding of Z at λ/L, and exact projection on ``0 ≤ R ≤ Y``; R is 1 where
    ``known_true`` is 1.
    """
    Z = singular_value_threshold(R - gradient / lipschitz, lam / lipschitz)
    return project_to_box(Z, Y, known_true)


def released_lipschitz(curvature: Array, alpha: float, largest_degree: float) -> float:
    """L in the authors' program: ``2‖P2P2ᵀ + QᵀQ + βVᵀV‖_F + α max δ``, with the Frobenius norm."""
    return 2 * float(array_namespace(curvature).linalg.matrix_norm(curvature)) + alpha * largest_degree


def released_pseudo_labels(R: Array, stepped: Array, Y: Array, known_true: Array | None = None) -> Array:
    """R in the authors' program: the multiplicative rule ("eq35") for R and its step R̂ after the thresholding.

    ``R ← R∘R̂/(R + ε) − max(R − Y, 0)∘Y/(R + ε)`` keeps zeros and replaces all other entries by R̂: the result may leave
    the box.
    """
    xp = array_namespace(R, Y)
    is_zero = R == 0
    divisor = xp.where(is_zero, xp.ones_like(R), R)
    excess = xp.clip(R - Y, min=0.0) * Y / divisor
    new = xp.where(is_zero, xp.zeros_like(R), stepped - excess)
    return new if known_true is None else xp.where(known_true > 0, known_true, new)
