"""One function per term of PML-MA's objective ("eqx"). Letters as in :mod:`skpml.modal_alignment._updates`.

    J = ‖XP1 − RP2‖² + ‖Y − RQᵀ‖² + λ‖R‖* + α Σ_ij S_ij ‖P1ᵀx_i − P2ᵀr_j‖² + β‖DX − RVᵀ‖² + γ‖P1P2ᵀ‖²

Each function returns its term without the weight.
"""

from __future__ import annotations

from array_api_compat import array_namespace

from skpml.linalg import Array, nuclear_norm

__all__ = [
    "classifier_size",
    "decomposition_loss",
    "global_alignment_loss",
    "local_alignment_loss",
    "nuclear_norm",
    "prototype_loss",
]


def _sum(values: Array) -> float:
    return float(array_namespace(values).sum(values))


def global_alignment_loss(projected_features: Array, projected_labels: Array) -> float:
    """``‖XP1 − RP2‖²`` from ``XP1`` and ``RP2``."""
    return _sum((projected_features - projected_labels) ** 2)


def local_alignment_loss(
    projected_features: Array, projected_labels: Array, neighbour_labels: Array, degrees: Array
) -> float:
    """``Σ_ij S_ij ‖P1ᵀx_i − P2ᵀr_j‖²`` from ``XP1``, ``RP2``, ``S RP2`` and δ.

    Closed form: ``δ·rowsum((XP1)²) + δ·rowsum((RP2)²) − 2⟨XP1, S(RP2)⟩``.
    """
    squares = projected_features**2 + projected_labels**2
    return _sum(degrees[:, None] * squares) - 2 * _sum(projected_features * neighbour_labels)


def decomposition_loss(Y: Array, R: Array, Q: Array | None) -> float:
    """``‖Y − RQᵀ‖²``; ``Q=None`` is the identity."""
    return _sum((Y - (R if Q is None else R @ Q.T)) ** 2)


def prototype_loss(R: Array, V: Array, XV: Array, squared_norms: Array) -> float:
    """``‖DX − RVᵀ‖²`` with ``D = diag(R·1)``, from ``XV`` and the squared row norms of X.

    Expanded: ``Σ_i d_i²‖x_i‖² − 2⟨R, D XV⟩ + ⟨R VᵀV, R⟩``, so that no n×d array is formed.
    """
    xp = array_namespace(R, V)
    row_sums = xp.sum(R, axis=1)
    cross = _sum(R * XV * row_sums[:, None])
    return _sum(row_sums**2 * squared_norms) - 2 * cross + _sum((R @ (V.T @ V)) * R)


def classifier_size(P1: Array) -> float:
    """``‖P1P2ᵀ‖²``, which is ``‖P1‖²`` since P2 has orthonormal columns."""
    return _sum(P1**2)
