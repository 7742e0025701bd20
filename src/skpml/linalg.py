"""Small dense linear algebra for the solvers, written against the array namespace of its inputs.

This is the only module that knows which array library is underneath. Everything runs on any namespace of the
array API standard; NumPy and PyTorch get their own Cholesky and sparse products, because the standard has neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from array_api_compat import array_namespace, is_numpy_namespace, is_torch_namespace

__all__ = [
    "array_namespace",
    "nuclear_norm",
    "polar_factor",
    "ridge_factor",
    "singular_value_threshold",
    "sparse_operator",
    "symmetric_sylvester",
    "weighted_gram",
]

# Whatever the namespace calls its array; no shared static type exists.
Array = Any


def _singular_values_and_vectors(Z: Array) -> tuple[Array, Array]:
    """Right singular pairs of a tall matrix from its Gram matrix: ZᵀZ = E diag(s²) Eᵀ."""
    xp = array_namespace(Z)
    squares, vectors = xp.linalg.eigh(Z.T @ Z)
    return xp.sqrt(xp.clip(squares, min=0.0)), vectors


def singular_value_threshold(Z: Array, tau: float) -> Array:
    """Proximal map of the nuclear norm: ``argmin_R ½‖R − Z‖² + τ‖R‖*``.

    With ``ZᵀZ = E diag(s²) Eᵀ`` the result is ``Z E diag(max(1 − τ/s, 0)) Eᵀ``: the cost is one Gram product and the
    eigendecomposition of its smaller side, never a singular value decomposition of Z.

    Parameters
    ----------
    Z : array of shape (n, c)
    tau : float
        Threshold, at least 0. Zero returns ``Z`` itself.
    """
    if tau == 0:
        return Z
    if Z.shape[0] < Z.shape[1]:
        return singular_value_threshold(Z.T, tau).T
    xp = array_namespace(Z)
    values, vectors = _singular_values_and_vectors(Z)
    kept = values > tau
    shrink = xp.where(kept, 1 - tau / xp.where(kept, values, xp.ones_like(values)), xp.zeros_like(values))
    return Z @ ((vectors * shrink[None, :]) @ vectors.T)


def nuclear_norm(R: Array) -> float:
    """Sum of the singular values of R, from the eigenvalues of its smaller Gram matrix."""
    xp = array_namespace(R)
    tall = R if R.shape[0] >= R.shape[1] else R.T
    return float(xp.sum(xp.sqrt(xp.clip(xp.linalg.eigvalsh(tall.T @ tall), min=0.0))))


def polar_factor(M: Array) -> Array:
    """Nearest matrix with orthonormal columns: ``U Vᵀ`` from the thin SVD ``M = U Σ Vᵀ`` (M tall or square)."""
    xp = array_namespace(M)
    left, _, right = xp.linalg.svd(M, full_matrices=False)
    return left @ right


def symmetric_sylvester(A: Array, B: Array, C: Array) -> Array:
    """Solve ``A P + P B = C`` for symmetric positive semi-definite A and B.

    Two eigendecompositions and one division: with ``A = U diag(a) Uᵀ`` and ``B = V diag(b) Vᵀ``,
    ``P = U [(Uᵀ C V) / (a_i + b_j)] Vᵀ``. Where ``a_i + b_j`` vanishes the entry is set to zero, which gives the
    least-norm solution of the least-squares problem.
    """
    xp = array_namespace(A, B, C)
    a, U = xp.linalg.eigh(A)
    b, V = xp.linalg.eigh(B)
    sums = a[:, None] + b[None, :]
    tiny = xp.finfo(sums.dtype).eps * max(A.shape[0], B.shape[0]) * float(xp.max(xp.abs(sums)))
    regular = sums > tiny
    inverse = xp.where(regular, 1 / xp.where(regular, sums, xp.ones_like(sums)), xp.zeros_like(sums))
    return U @ ((U.T @ C @ V) * inverse) @ V.T


def weighted_gram(X: Array, weights: Array | None = None) -> Array:
    """``Xᵀ diag(w) X`` for non-negative weights, in blocks of rows so that no weighted copy of X is made."""
    if weights is None:
        return X.T @ X
    xp = array_namespace(X, weights)
    roots = xp.sqrt(weights)
    n, d = X.shape
    rows = max(4096, 2 * d)
    gram = None
    for start in range(0, n, rows):
        block = X[start : start + rows, :] * roots[start : start + rows][:, None]
        part = block.T @ block
        gram = part if gram is None else gram + part
    return gram


def ridge_factor(A: Array) -> Callable[[Array], Array]:
    """Factor a symmetric positive semi-definite matrix once; the returned function solves ``A P = B``.

    Cholesky where it exists; otherwise (A singular to working precision) the eigendecomposition with small
    eigenvalues left out, which gives the least-norm solution.
    """
    xp = array_namespace(A)
    if is_numpy_namespace(xp):
        try:
            # A is symmetric, so its transpose is the same matrix in the memory order LAPACK wants.
            factor, lower = scipy.linalg.cho_factor(A.T, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return _spectral_solver(A)
        if _well_conditioned(np.diagonal(factor), xp):
            return lambda B: scipy.linalg.cho_solve((factor, lower), B, check_finite=False)
    elif is_torch_namespace(xp):
        import torch

        factor, info = torch.linalg.cholesky_ex(A)
        if int(info) == 0 and _well_conditioned(torch.diagonal(factor), xp):
            return lambda B: torch.cholesky_solve(B, factor)
    return _spectral_solver(A)


def _well_conditioned(diagonal: Array, xp: Any) -> bool:
    """Whether a Cholesky factor is far enough from singular: its squared diagonal bounds the condition below."""
    smallest, largest = float(xp.min(diagonal)), float(xp.max(diagonal))
    return smallest**2 > xp.finfo(diagonal.dtype).eps * diagonal.shape[0] * largest**2


def _spectral_solver(A: Array) -> Callable[[Array], Array]:
    xp = array_namespace(A)
    values, vectors = xp.linalg.eigh(A)
    tiny = xp.finfo(values.dtype).eps * A.shape[0] * max(float(xp.max(xp.abs(values))), 0.0)
    regular = values > tiny
    inverse = xp.where(regular, 1 / xp.where(regular, values, xp.ones_like(values)), xp.zeros_like(values))
    return lambda B: vectors @ (inverse[:, None] * (vectors.T @ B))


def sparse_operator(S: Any, like: Array) -> Callable[[Array], Array]:
    """The product ``M ↦ S M`` of a scipy sparse matrix with dense matrices of the namespace and device of ``like``."""
    xp = array_namespace(like)
    if is_numpy_namespace(xp):
        matrix = scipy.sparse.csr_array(S, dtype=like.dtype)
        return lambda M: matrix @ M
    if is_torch_namespace(xp):
        import torch

        csr = scipy.sparse.csr_array(S)
        tensor = torch.sparse_csr_tensor(
            torch.from_numpy(csr.indptr.astype(np.int64)),
            torch.from_numpy(csr.indices.astype(np.int64)),
            torch.from_numpy(np.array(csr.data)),
            size=csr.shape,
            dtype=like.dtype,
            device=like.device,
        )
        return lambda M: tensor @ M
    # No sparse arrays in the standard: a round trip through the host for the thin matrix M, correct everywhere.
    matrix = scipy.sparse.csr_array(S)
    return lambda M: xp.asarray(matrix @ np.asarray(M), dtype=M.dtype)
