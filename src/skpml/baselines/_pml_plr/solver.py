"""The alternating loop of PML-PLR: arrays in, :class:`Solution` out. Knows nothing of scikit-learn.

Letters are the paper's, with rows for instances: Φ mapped features (n×h), Y candidates and F pseudo-labels (n×c),
W classifier (h×c), Q rotation (n×n), P label directions (m×c, orthonormal rows), H codes (n×m), E residuals (n×c),
G squared distances (n×n), L graph Laplacian (n×n), and C reconstruction (n×n, every row on the simplex: row i says of
which rows row i is made up). The paper has columns for instances, so that its Φ, Y, F, H, E and C are the transposes.

Neither Q nor C is ever formed, and G only where it is small: see :func:`rotate_candidates`, :class:`Reconstruction`,
:func:`distance_loss`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg

from skpml.linalg import polar_factor, ridge_factor

Array = NDArray[Any]

# Weight of ‖Y − HP − E‖²; a constant of the method.
PENALTY = 1000.0
# The stop rule is silent before: the objective settles only after a few rounds.
FIRST_STOP = 6
# Entries of C that are formed at a time: few enough for the cache, enough for the matrix products.
_BLOCK_ENTRIES = 2**20
# Up to so many entries (256 MB) G is kept: to add up its product with C is then a tenth of the work.
_KEPT_ENTRIES = 2**25


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Weights of the objective: sparse residual α, smoothness β, classifier size λ."""

    alpha: float = 0.1
    beta: float = 0.1
    lam: float = 0.1


@dataclass(frozen=True, kw_only=True)
class Solution:
    """What a fit leaves behind.

    Attributes
    ----------
    coef : (h, c)
    scores : (n, c)
        Φ W, scores of the rows that were fitted.
    pseudo_labels : (n, c)
        F: between 0 and 1 on the candidates, and 0 elsewhere.
    label_directions : (m, c)
    codes : (n, m)
    residuals : (n, c)
    reconstruction : Reconstruction
    history : dict of lists
        One value an iteration: each weighted loss term and ``"objective"``, their sum.
    converged : bool
    """

    coef: Array
    scores: Array
    pseudo_labels: Array
    label_directions: Array
    codes: Array
    residuals: Array
    reconstruction: Reconstruction
    history: dict[str, list[float]]
    converged: bool


@dataclass(frozen=True)
class Reconstruction:
    """C without its n² entries: row i is ``max(A_i Hᵀ − θ_i, 0)`` with A and H of shape (n, m).

    A block of rows is formed whenever a product needs it, which costs no more than reading it from memory would.
    """

    loadings: Array
    codes: Array
    shift: Array

    @classmethod
    def nearest(cls, loadings: Array, codes: Array) -> Reconstruction:
        """The matrix with rows on the simplex nearest to ``A Hᵀ``."""
        shift = np.empty(len(loadings))
        for rows in _row_blocks(len(loadings), len(codes)):
            shift[rows] = simplex_shift(loadings[rows] @ codes.T)
        return cls(loadings, codes, shift)

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        for rows in _row_blocks(len(self.loadings), len(self.codes)):
            block = self.loadings[rows] @ self.codes.T
            block -= self.shift[rows, None]
            yield rows, np.maximum(block, 0, out=block)

    def products(self, right: Array, left: Array) -> tuple[Array, Array]:
        """``C right`` and ``Cᵀ left``, in one pass over C."""
        forward, backward = np.empty_like(right), np.zeros_like(left)
        for rows, block in self.blocks():
            forward[rows] = block @ right
            backward += block.T @ left[rows]
        return forward, backward

    def gram(self, V: Array) -> Array:
        """``CᵀC V``."""
        total = np.zeros_like(V)
        for _, block in self.blocks():
            total += block.T @ (block @ V)
        return total


def simplex_shift(Z: Array) -> Array:
    """θ for each row z of Z, such that ``max(z − θ, 0)`` is the nearest point with sum 1.

    Entries below ``θ = (Σ z_j − 1)/count`` of those left are dropped until none is; θ only rises. For rows as long as
    those of C a few passes are several times faster than the sorting of :func:`skpml.linalg.project_to_simplex`.
    """
    shift = (Z.sum(axis=1) - 1) / Z.shape[1]
    while True:
        above = shift[:, None] < Z
        raised = (np.einsum("ij,ij->i", Z, above) - 1) / np.maximum(above.sum(axis=1), 1)
        if (raised <= shift).all():
            return shift
        shift = np.maximum(raised, shift)


def _row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    size = max(1, _BLOCK_ENTRIES // n_columns)
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def solve(
    mapped: Array,
    X: Array,
    Y: Array,
    laplacian: Any,
    *,
    weights: Weights,
    n_codes: int,
    max_iter: int = 40,
    tol: float = 1e-4,
) -> Solution:
    """Run PML-PLR's updates until the objective no longer falls.

    Parameters
    ----------
    mapped : (n, h)
        Φ.
    X : (n, d)
        Scaled features that were not mapped, for the distances G.
    Y : (n, c)
        Candidates as 0 and 1.
    laplacian : scipy sparse (n, n)
    weights : Weights
    n_codes : int
        m; no more than the rank of Y are used.
    max_iter, tol
        Stop from the sixth iteration on where the objective falls by less than ``tol``, relative to its last value, or
        rises.
    """
    X, Y = X.astype(np.float64, copy=False), Y.astype(np.float64, copy=False)
    alpha, beta = weights.alpha, weights.beta
    solve_ridge = ridge_factor(mapped, ridge=float(weights.lam))
    root, rank = gram_root(Y)
    distances = squared_distances(X) if len(X) ** 2 <= _KEPT_ENTRIES else None
    F, E, CtY, gram = Y, np.zeros_like(Y), Y, _same
    ridge_scores = mapped @ solve_ridge(mapped.T @ Y.astype(mapped.dtype))
    # Frequent label directions, and among these those that the features predict best.
    P = leading_directions(Y.T @ (Y + ridge_scores), min(n_codes, rank))
    H = Y @ P.T
    history: dict[str, list[float]] = {}
    converged = False
    for iteration in range(1, max_iter + 1):
        W = solve_ridge(mapped.T @ F.astype(mapped.dtype, copy=False))
        scores = mapped @ W
        rotated = rotate_candidates(F, root)
        P = update_directions((2 * CtY + PENALTY * (Y - E)).T @ H, P)
        H = update_codes(gram, (2 * CtY + PENALTY * (Y - E)) @ P.T, start=(Y - E) @ P.T)
        C = update_reconstruction(X, Y, F, P, H, laplacian, beta)
        gram = C.gram
        E = np.maximum(Y - H @ P - alpha / PENALTY, 0)
        CLF, CtF = C.products(laplacian @ F, F)
        F = update_pseudo_labels(F, Y, scores + rotated, beta * (CLF + laplacian @ CtF))
        parts, CtY = C.products(np.hstack([laplacian @ F, H]), Y)
        CLF, CH = np.split(parts, [F.shape[1]], axis=1)
        losses = {
            "classifier": _square(scores - F),
            "rotation": _square(rotated - F),
            "reconstruction": _square(Y - CH @ P),
            "distances": distance_loss(C, X, distances),
            "residuals": alpha * float(np.abs(Y - H @ P).sum()),
            "smoothness": beta * float(np.vdot(F, CLF)),
            "coefficients": weights.lam * _square(W),
        }
        losses["objective"] = sum(losses.values())
        for name, value in losses.items():
            history.setdefault(name, []).append(value)
        if iteration >= FIRST_STOP:
            before, now = history["objective"][-2:]
            if before - now < tol * before:
                converged = True
                break
    return Solution(
        coef=W,
        scores=scores,
        pseudo_labels=F,
        label_directions=P,
        codes=H,
        residuals=E,
        reconstruction=C,
        history=history,
        converged=converged,
    )


def _same(V: Array) -> Array:
    """``CᵀC V`` for the start C = I."""
    return V


def _square(M: Array) -> float:
    return float(np.vdot(M, M))


def gram_root(Y: Array) -> tuple[Array, int]:
    """``(YᵀY)^½`` and the rank of Y."""
    values, vectors = np.linalg.eigh(Y.T @ Y)
    kept = values > np.finfo(values.dtype).eps * len(values) * values[-1]
    values, vectors = values[kept], vectors[:, kept]
    return (vectors * np.sqrt(values)) @ vectors.T, len(values)


def rotate_candidates(F: Array, root: Array) -> Array:
    """``QᵀY`` for the orthogonal Q (n×n) that brings it nearest to F, from ``root = (YᵀY)^½``.

    Q is the polar factor of ``YFᵀ``; its product with Y is the polar factor of ``F (YᵀY)^½`` times ``(YᵀY)^½``, which
    needs only thin matrices. Where F has a lower rank than Y, Q is free to turn the rest of Y anywhere; the rest is left
    out, so that the result does not depend on the order of rows or labels.
    """
    left, values, right = np.linalg.svd(F @ root, full_matrices=False)
    kept = values > np.finfo(values.dtype).eps * max(F.shape) * values[0]
    return left[:, kept] @ (right[kept] @ root)


def leading_directions(M: Array, count: int) -> Array:
    """Eigenvectors of the ``count`` largest eigenvalues of a symmetric M, as rows."""
    return np.linalg.eigh(M)[1][:, ::-1][:, :count].T


def update_directions(B: Array, P: Array) -> Array:
    """P: the transposed polar factor of ``B = (2CᵀY + μ(Y − E))ᵀ H`` (c×m).

    Where B is singular the polar factor is not unique; a multiple of the old P at the size of rounding errors picks the
    one nearest to it.
    """
    nudge = 8 * B.shape[0] * np.finfo(B.dtype).eps * float(np.linalg.norm(B))
    return polar_factor(B + nudge * P.T).T


def update_codes(gram: Callable[[Array], Array], target: Array, start: Array) -> Array:
    """H: solve ``(2CᵀC + μI) H = target`` by conjugate gradients; μ keeps the matrix well conditioned."""

    def apply(v: Array) -> Array:
        V = v.reshape(target.shape)
        return (2 * gram(V) + PENALTY * V).ravel()

    operator = LinearOperator((target.size, target.size), matvec=apply, dtype=target.dtype)
    return cg(operator, target.ravel(), x0=start.ravel(), rtol=1e-10)[0].reshape(target.shape)


def update_reconstruction(
    X: Array, Y: Array, F: Array, P: Array, H: Array, laplacian: Any, beta: float
) -> Reconstruction:
    """C: the stationary point ``(2YPᵀHᵀ − 2βFFᵀL − G)(2HHᵀ)⁺``, each row projected onto the simplex.

    ``(HHᵀ)⁺ = H K² Hᵀ`` with ``K = (HᵀH)⁺`` (m×m), so that the point is ``A Hᵀ`` with a thin A.
    """
    inner = H.T @ H
    inverse = np.linalg.pinv(inner, hermitian=True)
    R = 2 * (Y @ P.T) @ inner - 2 * beta * F @ (F.T @ (laplacian @ H)) - distance_product(X, H)
    return Reconstruction.nearest(0.5 * R @ (inverse @ inverse), H)


def distance_product(X: Array, H: Array) -> Array:
    """``G H`` for the squared distances ``G = g1ᵀ + 1gᵀ − 2XXᵀ`` between the rows of X, g their squared lengths."""
    sizes = np.einsum("ij,ij->i", X, X)
    return np.outer(sizes, H.sum(axis=0)) + sizes @ H - 2 * X @ (X.T @ H)


def squared_distances(X: Array) -> Array:
    """G."""
    sizes = np.einsum("ij,ij->i", X, X)
    G = X @ X.T
    G *= -2
    G += sizes
    G += sizes[:, None]
    return G


def distance_loss(C: Reconstruction, X: Array, G: Array | None) -> float:
    """``Σ C∘G``; without G from products of C and X: its rows sum to 1."""
    if G is not None:
        return float(sum(np.vdot(block, G[rows]) for rows, block in C.blocks()))
    sizes = np.einsum("ij,ij->i", X, X)
    products = np.hstack([X, sizes[:, None]])
    total = sizes.sum()
    for rows, block in C.blocks():
        CX = block @ products
        total += CX[:, -1].sum() - 2 * np.vdot(X[rows], CX[:, :-1])
    return float(total)


def update_pseudo_labels(F: Array, Y: Array, pull: Array, smoothness: Array) -> Array:
    """F: one multiplicative step towards ``pull = ΦW + QᵀY``, with ``smoothness = β(LCᵀF + CLF)``, kept below Y.

    The step is ``F∘pull / (2F + smoothness)``, with what is negative below the line moved above it and the other way
    round, so that F stays at or above 0 and its fixed points are the same. Zero stays zero off the candidates.
    """
    raised = np.maximum(pull, 0) - np.minimum(smoothness, 0)
    lowered = np.maximum(smoothness, 0) - np.minimum(pull, 0)
    return np.minimum(F * raised / (2 * F + lowered + np.finfo(F.dtype).eps), Y)
