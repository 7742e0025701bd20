"""The first stage of PML-ND: which candidates are credible, from the non-candidates and the neighbours.

X features (n×d), Y candidates, Ȳ = 1 − Y negative labels, Tr reconstruction weights (n×n, sparse), Pc propagated
confidences, T credible labels.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Damping = Literal["identity", "ones"]

_EPSILON = float(np.finfo(np.float64).eps)
_NEGATIVE_WEIGHT = 0.5
_SINGULAR = 1e-8
_PROPAGATIONS = 100
# Three quarters of an even share: the published cut of 0.25 at three candidates.
_SHARE, _FEW_CANDIDATES = 0.75, 3
_PROPAGATION_TOL = 0.01
# Confidences that differ by less are tied: the order of summation must not decide.
_TIE = 1e-9


def cosine_distances(A: Matrix, B: Matrix) -> Matrix:
    """``1 − aᵀb / (‖a‖‖b‖)`` between the columns of A and B, each shifted by ε so that empty columns stay finite."""
    A, B = A + _EPSILON, B + _EPSILON
    return 1 - (A / np.linalg.norm(A, axis=0)).T @ (B / np.linalg.norm(B, axis=0))


def innocence(X: Matrix, Y: Matrix, *, damping: Damping = "ones") -> Matrix:
    """K₁: how little each candidate looks like a negative label, sharing out 1 among the candidates of a row.

    With ``A = XᵀX + μI`` and ``B = μR̄`` (R̄ the cosine distances of the negative labels), V solves
    ``A V + V B = −XᵀȲ`` and ``K = X V`` is high for labels that are unlikely to be negative; K is brought to [0, 1]
    within each row, and 0 outside the candidates.

    ``damping="ones"`` has the matrix of ones in the place of I, as published. B has negative eigenvalues, a matrix of
    distances being zero on its diagonal, and small eigenvalues of XᵀX then meet them half way: the equation is close
    to singular on some data, and not the minimum of anything. With I, the negative part of B is left out as well, so
    that V minimises ``‖XV + Ȳ‖² + μ‖V‖² + tr(V B⁺ Vᵀ)``.
    """
    negative = 1 - Y
    B = _NEGATIVE_WEIGHT * cosine_distances(negative, negative)
    K = _negated_negative_scores(X, negative, B, damping)
    low, high = K.min(axis=1, keepdims=True), K.max(axis=1, keepdims=True)
    spread = np.where(high - low > _TIE * np.abs(K).max(), high - low, np.inf)
    K = (K - low) / spread * Y
    return K / (K.sum(axis=1, keepdims=True) + _EPSILON)


def _negated_negative_scores(X: Matrix, negative: Matrix, B: Matrix, damping: Damping) -> Matrix:
    identity = damping == "identity"
    gram = X.T @ X
    if identity:
        np.einsum("ii->i", gram)[...] += _NEGATIVE_WEIGHT
    else:
        gram += _NEGATIVE_WEIGHT
    a, U = scipy.linalg.eigh(gram)
    b, V = scipy.linalg.eigh(B)
    sums = a[:, None] + (np.maximum(b, 0) if identity else b)
    regular = np.abs(sums) > _SINGULAR
    inverse = np.where(regular, 1 / np.where(regular, sums, 1), 0)
    return np.asarray(-X @ (U @ ((U.T @ (X.T @ negative) @ V) * inverse) @ V.T))


def propagate(K: Matrix, Y: Matrix, weights: scipy.sparse.csr_array) -> tuple[Matrix, int]:
    """Pc: repeat ``Pc ← [(1 − Dm)∘(Tr Pc) + Dm∘Y]∘Y`` with rows divided by their sums.

    Dm is K₁; what the release has in Dm outside the candidates, 0.999, is multiplied by 0 and never seen.
    Stops where the spectral norm of the change falls below 0.01. A row whose candidates get nothing from K₁ nor from
    the neighbours shares out 1 evenly.
    """
    share = Y / np.maximum(Y.sum(axis=1, keepdims=True), 1)
    confidences = Y
    steps, change_size = 0, np.inf
    while change_size >= _PROPAGATION_TOL and steps < _PROPAGATIONS:
        mixed = ((1 - K) * (weights @ confidences) + K) * Y
        totals = mixed.sum(axis=1, keepdims=True)
        empty = totals <= _EPSILON
        updated = np.where(empty, share, mixed / np.where(empty, 1, totals))
        change = updated - confidences
        confidences = updated
        change_size = np.sqrt(max(scipy.linalg.eigvalsh(change.T @ change)[-1], 0))
        steps += 1
    return confidences, steps


def credible_labels(confidences: Matrix, Y: Matrix, *, cut: float | Literal["share"]) -> Matrix:
    """T: candidates more confident than ``cut``, and the most confident ones of each row, all of them where they tie.

    ``"share"`` is 0.25 for rows of up to three candidates, and three quarters of an even share, 0.75/m, for more.
    """
    if cut == "share":
        level: Any = _SHARE / np.maximum(Y.sum(axis=1, keepdims=True), _FEW_CANDIDATES)
    else:
        level = cut
    highest = confidences.max(axis=1, keepdims=True)
    kept = (confidences > level + _TIE) | (confidences >= highest - _TIE)
    return np.asarray(kept * Y)
