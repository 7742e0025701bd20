"""Small dense linear algebra for the solvers, written against the array namespace of its inputs.

This is the only module that knows which array library is underneath. Everything runs on any namespace of the
array API standard; NumPy and PyTorch get their own Cholesky and sparse products, because the standard has neither.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from array_api_compat import array_namespace, is_numpy_namespace, is_torch_namespace
from threadpoolctl import ThreadpoolController

__all__ = [
    "GramSpectrum",
    "nuclear_norm",
    "one_blas",
    "polar_factor",
    "project_to_simplex",
    "ridge_factor",
    "singular_value_threshold",
    "soft_threshold",
    "sparse_operator",
    "squared_row_norms",
    "symmetric_sylvester",
    "tall_product",
    "to_numpy",
]

# Whatever the namespace calls its array; no shared static type exists.
Array = Any

_ROWS_PER_BLOCK = 2048
# Directions with less than this share of the largest eigenvalue are rounding.
_SMALLEST_SHARE = 1e-10


@contextmanager
def one_blas(like: Array) -> Iterator[None]:
    """Keep two BLAS libraries from fighting over the cores while a solver runs on NumPy arrays.

    NumPy and SciPy from PyPI each bring a BLAS with threads of its own, and the threads of one go on spinning for a
    while after a call. Switching between the two in a loop costs a third of the time of a fit. The large products go
    through SciPy's (:func:`tall_product`, :func:`ridge_factor`); for the small ones left to NumPy's, one thread is
    enough. Nothing changes where both share a library, or on other array namespaces.
    """
    blas = _blas_of_numpy_alone() if is_numpy_namespace(array_namespace(like)) else None
    if blas is None:
        yield
        return
    # threadpoolctl keeps threads that limit the same library at the same time out of each other's way.
    with blas.limit(limits=1):
        yield


@cache
def _blas_of_numpy_alone() -> Any:
    """The controller of NumPy's own BLAS where another one is loaded beside it, else None."""
    loaded = ThreadpoolController().select(user_api="blas")
    home = Path(np.__file__).parent
    folders = (home.with_name("numpy.libs"), home / ".dylibs")
    own = [blas.filepath for blas in loaded.lib_controllers if Path(blas.filepath).parent in folders]
    return loaded.select(filepath=own) if len(own) == 1 and len(loaded.lib_controllers) > 1 else None


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


def soft_threshold(Z: Array, tau: float) -> Array:
    """Proximal map of the sum of absolute values: ``sign(z) max(|z| − τ, 0)`` for every entry."""
    xp = array_namespace(Z)
    return xp.sign(Z) * xp.clip(xp.abs(Z) - tau, min=0.0)


def project_to_simplex(Z: Array) -> Array:
    """Nearest point to each row of Z among non-negative rows that sum to 1, by sorting."""
    xp = array_namespace(Z)
    falling = xp.sort(Z, axis=1, descending=True)
    count = xp.arange(1, Z.shape[1] + 1, dtype=Z.dtype)
    excess = (xp.cumulative_sum(falling, axis=1) - 1) / count
    support = xp.sum(xp.astype(falling > excess, xp.int64), axis=1)
    shift = xp.take_along_axis(excess, (support - 1)[:, None], axis=1)
    return xp.clip(Z - shift, min=0.0)


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


def ridge_factor(X: Array, *, weights: Array | None = None, ridge: float = 0.0) -> Callable[[Array], Array]:
    """Form and factor ``Xᵀ diag(w) X + ridge·I`` once; the returned function solves for right-hand sides.

    Cholesky where it exists, else the eigendecomposition. Without a ridge, a matrix that is singular to working
    precision gets the least-norm solution; with one, no direction is left out, in single precision either.

    Parameters
    ----------
    X : array of shape (n, d)
    weights : array of shape (n,) or None
        Non-negative row weights; None is 1 for every row.
    ridge : float
        At least 0.
    """
    xp = array_namespace(X)
    if is_numpy_namespace(xp):
        gram = _numpy_gram(X, weights)
        np.einsum("ii->i", gram)[...] += ridge
        try:
            factor, lower = scipy.linalg.cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return _spectral_solver(_gram(X, weights), ridge)
        if ridge > 0 or _well_conditioned(np.diagonal(factor), xp):
            return lambda B: scipy.linalg.cho_solve((factor, lower), B, check_finite=False)
    elif is_torch_namespace(xp):
        import torch

        gram = _gram(X, weights)
        gram.diagonal().add_(ridge)
        factor, info = torch.linalg.cholesky_ex(gram)
        if int(info) == 0 and (ridge > 0 or _well_conditioned(torch.diagonal(factor), xp)):
            return lambda B: torch.cholesky_solve(B, factor)
    return _spectral_solver(_gram(X, weights), ridge)


class GramSpectrum:
    """``XᵀX`` decomposed once, for solvers whose ridge changes from step to step.

    Keeps the min(n, d) eigenpairs that can differ from zero. With more features than rows, the rest of the space is where
    X gives nothing, and a system there is division by the ridge.

    Parameters
    ----------
    X : array of shape (n, d)
    """

    def __init__(self, X: Array) -> None:
        xp = array_namespace(X)
        self._has_null_space = X.shape[0] < X.shape[1]
        if self._has_null_space:
            _, singular_values, right = xp.linalg.svd(X, full_matrices=False)
            self._squares, self._vectors = singular_values**2, right.T
        else:
            squares, self._vectors = xp.linalg.eigh(X.T @ X)
            self._squares = xp.clip(squares, min=0.0)

    def solve(self, M: Array, ridge: float) -> Array:
        """``(XᵀX + ridge·I)⁻¹ M`` for a positive ridge."""
        rotated = self._vectors.T @ M
        solved = self._vectors @ (rotated / (self._squares + ridge)[:, None])
        return solved + (M - self._vectors @ rotated) / ridge if self._has_null_space else solved

    def squared_norm(self, M: Array) -> float:
        """``‖XM‖²``, without touching the rows of X."""
        xp = array_namespace(M)
        return float(xp.sum(self._squares[:, None] * (self._vectors.T @ M) ** 2))


def tall_product(X: Array, M: Array, *, transpose: bool = False) -> Array:
    """``X M`` or ``Xᵀ M`` for a tall X and a thin M, by the BLAS of :func:`ridge_factor` (see :func:`one_blas`)."""
    if not is_numpy_namespace(array_namespace(X, M)):
        return (X.T if transpose else X) @ M
    gemm = scipy.linalg.get_blas_funcs("gemm", (X, M))
    by_columns = X.flags.f_contiguous
    operand = X if by_columns else np.ascontiguousarray(X).T
    return gemm(1.0, operand, np.asfortranarray(M), trans_a=int(transpose == by_columns))


def to_numpy(M: Array) -> Array:
    """The same numbers as a NumPy array, from whatever device."""
    return M.cpu().numpy() if is_torch_namespace(array_namespace(M)) else np.asarray(M)


def squared_row_norms(X: Array) -> Array:
    """``‖x_i‖²`` for every row, without an array of the size of X."""
    xp = array_namespace(X)
    # The standard's vecdot runs along rows; einsum is four times as fast where columns are contiguous.
    return np.einsum("ij,ij->i", X, X) if is_numpy_namespace(xp) else xp.vecdot(X, X)


def _row_blocks(X: Array, weights: Array | None) -> Iterator[Array]:
    """Rows of ``diag(w)^½ X`` in blocks, so that no weighted copy of the whole of X is made."""
    if weights is None:
        yield X
        return
    roots = array_namespace(X, weights).sqrt(weights)
    n = X.shape[0]
    for start in range(0, n, _ROWS_PER_BLOCK):
        stop = min(start + _ROWS_PER_BLOCK, n)
        yield X[start:stop, :] * roots[start:stop][:, None]


def _gram(X: Array, weights: Array | None) -> Array:
    """``Xᵀ diag(w) X``."""
    total = None
    for block in _row_blocks(X, weights):
        part = block.T @ block
        total = part if total is None else total + part
    return total


def _numpy_gram(X: Array, weights: Array | None) -> Array:
    """The lower triangle of ``Xᵀ diag(w) X``, by the BLAS that factors it (see :func:`one_blas`)."""
    syrk = scipy.linalg.get_blas_funcs("syrk", (X,))
    gram = None
    for block in _row_blocks(X, weights):
        by_columns = block.flags.f_contiguous
        operand, trans = (block, 1) if by_columns else (np.ascontiguousarray(block).T, 0)
        if gram is None:
            gram = syrk(1.0, operand, trans=trans, lower=1)
        else:
            gram = syrk(1.0, operand, trans=trans, lower=1, beta=1.0, c=gram, overwrite_c=1)
    return gram


def _well_conditioned(diagonal: Array, xp: Any) -> bool:
    """Whether a Cholesky factor is far enough from singular: its squared diagonal bounds the condition below."""
    smallest, largest = float(xp.min(diagonal)), float(xp.max(diagonal))
    return smallest**2 > xp.finfo(diagonal.dtype).eps * diagonal.shape[0] * largest**2


def _spectral_solver(A: Array, ridge: float) -> Callable[[Array], Array]:
    xp = array_namespace(A)
    values, vectors = xp.linalg.eigh(A)
    # A Gram matrix has no negative eigenvalues but for rounding; what the ridge lifts above zero is kept.
    tiny = 0.0 if ridge > 0 else xp.finfo(values.dtype).eps * A.shape[0] * float(xp.max(xp.abs(values)))
    values = xp.clip(values, min=0.0) + ridge
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

        csr = scipy.sparse.csr_array(S, copy=True)
        csr.sum_duplicates()
        coo = csr.tocoo()
        tensor = torch.sparse_coo_tensor(
            torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64)),
            torch.from_numpy(np.array(coo.data)),
            size=coo.shape,
            dtype=like.dtype,
            device=like.device,
            is_coalesced=True,
            check_invariants=True,
        )
        return lambda M: tensor @ M
    # No sparse arrays in the standard: a round trip through the host for the thin matrix M, correct everywhere.
    matrix = scipy.sparse.csr_array(S)
    return lambda M: xp.asarray(matrix @ np.asarray(M), dtype=M.dtype)


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """Centred features Z (n×r) with ``ZᵀZ = diag(e)``, scaled so that a row has length 1 in the mean square.

    The scale makes the weight γ of coefficients mean the same for any number of anchors and any kernel width.

    Attributes
    ----------
    rows : (n, r)
        Z.
    values : (r,)
        e, in descending order; they add up to n.
    mean : (d,)
        Of the features; subtracted first.
    directions : (d, r)
        ``Z = (X − mean) @ directions``.
    """

    rows: Array
    values: Array
    mean: Array
    directions: Array

    def astype(self, dtype: Any) -> Spectrum:
        """The same in another precision."""
        xp = array_namespace(self.rows)
        return Spectrum(**{name: xp.astype(value, dtype) for name, value in vars(self).items()})

    def project(self, X: Array) -> Array:
        """Other rows in the same basis."""
        return (X - self.mean) @ self.directions


def spectrum_of(X: Array) -> Spectrum:
    """The eigenbasis of mapped features (n×d)."""
    xp = array_namespace(X)
    mean = xp.mean(X, axis=0)
    centred = X - mean
    values, directions = xp.linalg.eigh(centred.T @ centred)
    values, directions = xp.flip(values, axis=0), xp.flip(directions, axis=1)
    kept = int(xp.sum(xp.astype(values > _SMALLEST_SHARE * values[0], xp.int64)))
    values = values[:kept]
    squared_scale = X.shape[0] / float(xp.sum(values)) if kept else 1.0
    directions = directions[:, :kept] * squared_scale**0.5
    return Spectrum(
        rows=centred @ directions, values=values * squared_scale, mean=mean, directions=directions
    )


def leverages(spectrum: Spectrum, gamma: Array) -> Array:
    """h: how much of its own score a row makes up, (n, s)."""
    share = 1 / (spectrum.values[:, None] + gamma)
    return spectrum.rows**2 @ share + 1 / spectrum.rows.shape[0]


def ridge_scores(
    spectrum: Spectrum, targets: Array, gamma: Array, h: Array | None = None
) -> tuple[Array, Array, Array]:
    """Ridge regression of targets (n, s, c) with a weight for each setting: W, b, and the scores of each row left out.

    ``h`` are the :func:`leverages`, where they are at hand.
    """
    xp = array_namespace(targets)
    b = xp.mean(targets, axis=0)
    n, shape = targets.shape[0], targets.shape[1:]
    W = (spectrum.rows.T @ (targets - b).reshape((n, -1))).reshape((-1, *shape))
    W = W / (spectrum.values[:, None, None] + gamma[None, :, None])
    scores = (spectrum.rows @ W.reshape((W.shape[0], -1))).reshape((n, *shape)) + b
    h = (leverages(spectrum, gamma) if h is None else h)[:, :, None]
    # A row that alone decides its score has nothing to be left out against.
    return W, b, (scores - h * targets) / xp.where(h < 1 - 1e-9, 1 - h, 1e-9)
