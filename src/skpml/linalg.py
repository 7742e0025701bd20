"""Dense linear algebra for the solvers, written against the array namespace of its inputs.

Everything runs on any namespace of the array API standard; NumPy and PyTorch get their own Cholesky factorization and
sparse products, because the standard has neither. No other module depends on the array library in use.

:class:`Spectrum` holds features in the eigenbasis of their Gram matrix. There a ridge regression costs one division for
every weight γ, and so do the scores of each row by the regression fitted to all other rows,

    s_loo = (s − hY)/(1 − h)        h_i = Σ_k Z_ik²/(e_k + γ) + 1/n.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, reduce
from operator import add
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np
import scipy.linalg
import scipy.sparse
from array_api_compat import array_namespace, is_numpy_namespace, is_torch_array, is_torch_namespace
from sklearn import get_config
from sklearn.utils import gen_batches
from threadpoolctl import ThreadpoolController

__all__ = [
    "GramSpectrum",
    "nuclear_norm",
    "polar_factor",
    "project_to_simplex",
    "ridge_factor",
    "singular_value_threshold",
    "soft_threshold",
    "symmetric_sylvester",
]

# Namespaces share no static type.
Array = Any

_ROWS_PER_BLOCK = 2048
# Arrays of the size of a block of rows that exist at the same time while it is used.
_COPIES = 4
# Directions with a smaller share of the largest eigenvalue are rounding errors.
_SMALLEST_SHARE = 1e-10
# Rows that are squared at a time.
_SQUARED_ROWS = 1000


def working_bytes() -> int:
    """Return the memory that scikit-learn's setting ``working_memory`` allows for temporary arrays."""
    return int(get_config()["working_memory"] * 2**20)


def rows_at_once(bytes_per_row: int) -> int:
    """Return how many rows may be worked on at the same time, at least one."""
    return max(1, working_bytes() // max(1, _COPIES * bytes_per_row))


def fits_in_memory(shape: tuple[int, int], dtype: Any) -> bool:
    """Whether an array is at most as large as scikit-learn's ``working_memory``."""
    return shape[0] * shape[1] * np.dtype(dtype).itemsize <= working_bytes()


@contextmanager
def one_blas(like: Array | None = None) -> Iterator[None]:
    """Keep two BLAS libraries from competing for the cores while a solver runs on NumPy arrays.

    NumPy and SciPy from PyPI each bring a BLAS with its own threads, which keep spinning for a while after a call.
    Switching between the two in a loop costs a third of the time of a fit. Large products use SciPy's BLAS
    (:func:`tall_product`, :func:`ridge_factor`); for the small ones that NumPy's BLAS computes, one thread is enough.
    Nothing changes if both share a library, or on other array namespaces.
    """
    blas = None if like is not None and not is_numpy_namespace(array_namespace(like)) else _numpy_blas()
    if blas is None:
        yield
        return
    blas.enter()
    try:
        yield
    finally:
        blas.leave()


class _OneThread:
    """Keep a BLAS at one thread from the first to enter to the last to leave, whatever their order.

    Each limit of threadpoolctl restores what it found: of two that overlap, the second would find one thread.
    """

    def __init__(self, blas: Any) -> None:
        self._blas, self._lock, self._inside = blas, Lock(), 0

    def enter(self) -> None:
        with self._lock:
            if not self._inside:
                self._limit = self._blas.limit(limits=1)
            self._inside += 1

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limit.restore_original_limits()


@cache
def _numpy_blas() -> _OneThread | None:
    """Return NumPy's own BLAS if another BLAS is loaded too, else None."""
    loaded = ThreadpoolController().select(user_api="blas")
    home = Path(np.__file__).parent
    folders = (home.with_name("numpy.libs"), home / ".dylibs")
    own = [blas.filepath for blas in loaded.lib_controllers if Path(blas.filepath).parent in folders]
    return (
        _OneThread(loaded.select(filepath=own)) if len(own) == 1 and len(loaded.lib_controllers) > 1 else None
    )


def _inverse(values: Array, above: float) -> Array:
    """Compute 1/v for values above a bound, and 0 for the others."""
    xp = array_namespace(values)
    regular = values > above
    return xp.where(regular, 1 / xp.where(regular, values, xp.ones_like(values)), xp.zeros_like(values))


def singular_value_threshold(Z: Array, tau: float) -> Array:
    """Apply the proximal map of the nuclear norm, ``argmin_R ½‖R − Z‖² + τ‖R‖*``.

    With ``ZᵀZ = E diag(s²) Eᵀ`` the result is ``Z E diag(max(1 − τ/s, 0)) Eᵀ``: the cost is one Gram product and the
    eigendecomposition of the smaller Gram matrix, not a singular value decomposition of Z.

    Parameters
    ----------
    Z : array of shape (n, c)
        Matrix to shrink.
    tau : float
        Threshold, at least 0. Zero returns ``Z`` itself.

    Returns
    -------
    array of shape (n, c)
        The minimizer R.
    """
    if tau == 0:
        return Z
    if Z.shape[0] < Z.shape[1]:
        return shrink_singular_values(Z @ Z.T, tau) @ Z
    return Z @ shrink_singular_values(Z.T @ Z, tau)


def shrink_singular_values(gram: Array, tau: float) -> Array:
    """Return the matrix M for which ``Z M`` is :func:`singular_value_threshold` of Z, from ``ZᵀZ``."""
    xp = array_namespace(gram)
    squares, vectors = xp.linalg.eigh(gram)
    values = xp.sqrt(xp.clip(squares, min=0.0))
    kept = values > tau
    shrink = xp.where(kept, 1 - tau / xp.where(kept, values, xp.ones_like(values)), xp.zeros_like(values))
    return (vectors * shrink[None, :]) @ vectors.T


def soft_threshold(Z: Array, tau: float) -> Array:
    """Apply the proximal map of the sum of absolute values, ``sign(z) max(|z| − τ, 0)``.

    Parameters
    ----------
    Z : array
        Values to shrink.
    tau : float
        Threshold, at least 0.

    Returns
    -------
    array
        Shrunk values, in the shape of Z.
    """
    xp = array_namespace(Z)
    return xp.sign(Z) * xp.clip(xp.abs(Z) - tau, min=0.0)


def project_to_simplex(Z: Array) -> Array:
    """Project each row onto the simplex of non-negative rows that sum to 1, by sorting.

    Parameters
    ----------
    Z : array of shape (n, c)
        Rows to project.

    Returns
    -------
    array of shape (n, c)
        The nearest point of the simplex for each row.
    """
    xp = array_namespace(Z)
    falling = xp.sort(Z, axis=1, descending=True)
    count = xp.arange(1, Z.shape[1] + 1, dtype=Z.dtype)
    excess = (xp.cumulative_sum(falling, axis=1) - 1) / count
    support = xp.sum(xp.astype(falling > excess, xp.int64), axis=1)
    shift = xp.take_along_axis(excess, (support - 1)[:, None], axis=1)
    return xp.clip(Z - shift, min=0.0)


def nuclear_norm(R: Array) -> float:
    """Sum the singular values of a matrix, from the eigenvalues of its smaller Gram matrix.

    Parameters
    ----------
    R : array of shape (n, c)
        The matrix.

    Returns
    -------
    float
        The nuclear norm.
    """
    return sum_singular_values(R.T @ R if R.shape[0] >= R.shape[1] else R @ R.T)


def sum_singular_values(gram: Array) -> float:
    """Return the nuclear norm of R from ``RᵀR``."""
    xp = array_namespace(gram)
    return float(xp.sum(xp.sqrt(xp.clip(xp.linalg.eigvalsh(gram), min=0.0))))


def polar_factor(M: Array) -> Array:
    """Compute the nearest matrix with orthonormal columns.

    Parameters
    ----------
    M : array of shape (n, c)
        Matrix with at least as many rows as columns.

    Returns
    -------
    array of shape (n, c)
        ``U Vᵀ`` from the thin singular value decomposition ``M = U Σ Vᵀ``.
    """
    xp = array_namespace(M)
    left, _, right = xp.linalg.svd(M, full_matrices=False)
    return left @ right


def symmetric_sylvester(A: Array, B: Array, C: Array) -> Array:
    """Solve ``A P + P B = C`` for symmetric positive semi-definite A and B.

    Two eigendecompositions and one division: with ``A = U diag(a) Uᵀ`` and ``B = V diag(b) Vᵀ``,
    ``P = U [(Uᵀ C V) / (a_i + b_j)] Vᵀ``. If ``a_i + b_j`` vanishes, its quotient is set to zero, which gives the
    least-norm solution of the least-squares problem.

    Parameters
    ----------
    A, B : array of shape (n, n) and (c, c)
        Symmetric positive semi-definite matrices.
    C : array of shape (n, c)
        Right-hand side.

    Returns
    -------
    array of shape (n, c)
        The solution P.
    """
    xp = array_namespace(A, B, C)
    a, U = xp.linalg.eigh(A)
    b, V = xp.linalg.eigh(B)
    sums = a[:, None] + b[None, :]
    tiny = xp.finfo(sums.dtype).eps * max(A.shape[0], B.shape[0]) * float(xp.max(xp.abs(sums)))
    return U @ ((U.T @ C @ V) * _inverse(sums, tiny)) @ V.T


def ridge_factor(X: Array, *, weights: Array | None = None, ridge: float = 0.0) -> Callable[[Array], Array]:
    """Factor ``Xᵀ diag(w) X + ridge·I`` once, to solve for many right-hand sides.

    Uses Cholesky if possible, else the eigendecomposition. Without a ridge, a matrix that is singular to working
    precision gets the least-norm solution; with a ridge, no direction is dropped, not even in single precision.

    Parameters
    ----------
    X : array of shape (n, d)
        Features.
    weights : array of shape (n,) or None, default=None
        Non-negative row weights; None is 1 for every row.
    ridge : float, default=0.0
        At least 0.

    Returns
    -------
    callable
        Takes a right-hand side of shape (d, c) and returns the solution.
    """
    return factor_gram(lower_gram(X, weights), ridge)


def lower_gram(X: Array, weights: Array | None = None) -> Array:
    """Compute ``Xᵀ diag(w) X``, of which only the lower triangle counts, by the BLAS that factors it."""
    return _numpy_gram(X, weights) if is_numpy_namespace(array_namespace(X)) else _gram(X, weights)


def factor_gram(gram: Array, ridge: float) -> Callable[[Array], Array]:
    """Factor a Gram matrix plus ``ridge·I``, given by its lower triangle; see :func:`ridge_factor`."""
    xp = array_namespace(gram)
    if is_numpy_namespace(xp):
        lifted = gram.copy(order="K")
        np.einsum("ii->i", lifted)[...] += ridge
        try:
            factor, lower = scipy.linalg.cho_factor(lifted, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return _spectral_solver(gram, ridge)
        if ridge > 0 or _well_conditioned(np.diagonal(factor), xp):
            return lambda B: scipy.linalg.cho_solve((factor, lower), B, check_finite=False)
    elif is_torch_namespace(xp):
        import torch

        lifted = gram.clone()
        lifted.diagonal().add_(ridge)
        factor, info = torch.linalg.cholesky_ex(lifted)
        if int(info) == 0 and (ridge > 0 or _well_conditioned(torch.diagonal(factor), xp)):
            return lambda B: torch.cholesky_solve(B, factor)
    return _spectral_solver(gram, ridge)


class GramSpectrum:
    """Decompose ``XᵀX`` once, for solvers whose ridge changes from step to step.

    Keeps the min(n, d) eigenpairs that can differ from zero. With more features than rows, X vanishes on the rest of the
    space, where solving a system is division by the ridge.

    Parameters
    ----------
    X : array of shape (n, d)
        Features.
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
        """Solve ``(XᵀX + ridge·I) S = M``.

        Parameters
        ----------
        M : array of shape (d, c)
            Right-hand side.
        ridge : float
            Above 0.

        Returns
        -------
        array of shape (d, c)
            The solution S.
        """
        rotated = self._vectors.T @ M
        solved = self._vectors @ (rotated / (self._squares + ridge)[:, None])
        return solved + (M - self._vectors @ rotated) / ridge if self._has_null_space else solved

    def squared_norm(self, M: Array) -> float:
        """Compute ``‖XM‖²`` without the rows of X.

        Parameters
        ----------
        M : array of shape (d, c)
            The matrix.

        Returns
        -------
        float
            The squared Frobenius norm.
        """
        xp = array_namespace(M)
        return float(xp.sum(self._squares[:, None] * (self._vectors.T @ M) ** 2))


def tall_product(X: Array, M: Array, *, transpose: bool = False) -> Array:
    """Compute ``X M`` or ``Xᵀ M`` for tall X and thin M by the BLAS of :func:`ridge_factor` (see :func:`one_blas`).

    NumPy results are laid out by rows.
    """
    if not is_numpy_namespace(array_namespace(X, M)):
        return (X.T if transpose else X) @ M
    gemm = scipy.linalg.get_blas_funcs("gemm", (X, M))
    by_columns = X.flags.f_contiguous
    tall = X if by_columns else np.ascontiguousarray(X).T
    # The transposed product is faster: the threads share the long side of the result.
    thin, trans = (M, 1) if M.flags.f_contiguous else (np.ascontiguousarray(M).T, 0)
    return gemm(1.0, thin, tall, trans_a=trans, trans_b=int(transpose != by_columns)).T


def multiply_into(A: Array, B: Array, out: Array) -> None:
    """Write ``A Bᵀ`` into a NumPy array that is laid out by columns, by the BLAS of :func:`ridge_factor`."""
    gemm = scipy.linalg.get_blas_funcs("gemm", (A, B, out))
    product = gemm(1.0, A.T, B.T, trans_a=1, beta=0.0, c=out, overwrite_c=1)
    if not np.shares_memory(product, out):
        out[...] = product


def to_device(M: Any, name: str | None) -> Array:
    """Convert a NumPy array to PyTorch on a device; None leaves it as it is. Tensors are returned as they are."""
    if name is None or is_torch_array(M):
        return M
    import torch

    return torch.as_tensor(np.ascontiguousarray(M), device=name)


def to_numpy(M: Array) -> Array:
    """Convert an array of any namespace and device to NumPy."""
    return M.cpu().numpy() if is_torch_namespace(array_namespace(M)) else np.asarray(M)


def squared_row_norms(X: Array) -> Array:
    """Compute ``‖x_i‖²`` for every row of a dense or scipy sparse matrix, without a dense array of its size."""
    if scipy.sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    xp = array_namespace(X)
    # The standard's vecdot runs along rows; einsum is four times faster if columns are contiguous.
    return np.einsum("ij,ij->i", X, X) if is_numpy_namespace(xp) else xp.vecdot(X, X)


def _row_blocks(X: Array, weights: Array | None) -> Iterator[Array]:
    """Yield ``diag(w)^½ X`` in blocks of rows, to avoid a weighted copy of X."""
    if weights is None:
        yield X
        return
    roots = array_namespace(X, weights).sqrt(weights)
    for start in range(0, X.shape[0], _ROWS_PER_BLOCK):
        rows = slice(start, min(start + _ROWS_PER_BLOCK, X.shape[0]))
        yield X[rows, :] * roots[rows][:, None]


def _gram(X: Array, weights: Array | None) -> Array:
    """Compute ``Xᵀ diag(w) X``."""
    return reduce(add, (block.T @ block for block in _row_blocks(X, weights)))


def _numpy_gram(X: Array, weights: Array | None) -> Array:
    """Compute the lower triangle of ``Xᵀ diag(w) X`` by the BLAS that factors it (see :func:`one_blas`)."""
    syrk = scipy.linalg.get_blas_funcs("syrk", (X,))
    gram = None
    for block in _row_blocks(X, weights):
        operand, trans = (block, 1) if block.flags.f_contiguous else (np.ascontiguousarray(block).T, 0)
        before: dict[str, Any] = {} if gram is None else {"beta": 1.0, "c": gram, "overwrite_c": 1}
        gram = syrk(1.0, operand, trans=trans, lower=1, **before)
    return gram


def _well_conditioned(diagonal: Array, xp: Any) -> bool:
    """Whether a Cholesky factor is far from singular; its squared diagonal bounds the condition from below."""
    smallest, largest = float(xp.min(diagonal)), float(xp.max(diagonal))
    return smallest**2 > xp.finfo(diagonal.dtype).eps * diagonal.shape[0] * largest**2


def _spectral_solver(A: Array, ridge: float) -> Callable[[Array], Array]:
    xp = array_namespace(A)
    lower = xp.tril(A)
    values, vectors = xp.linalg.eigh(lower + xp.tril(A, k=-1).T)
    # Negative eigenvalues of a Gram matrix are rounding errors; the ridge lifts them above zero.
    tiny = 0.0 if ridge > 0 else xp.finfo(values.dtype).eps * A.shape[0] * float(xp.max(xp.abs(values)))
    inverse = _inverse(xp.clip(values, min=0.0) + ridge, tiny)
    return lambda B: vectors @ (inverse[:, None] * (vectors.T @ B))


def sparse_operator(S: Any, like: Array) -> Callable[[Array], Array]:
    """Return ``M ↦ S M`` for a scipy sparse S and dense M of the namespace and device of ``like``."""
    xp = array_namespace(like)
    if is_numpy_namespace(xp):
        matrix = scipy.sparse.csr_array(S, dtype=like.dtype)
        return lambda M: matrix @ M
    if is_torch_namespace(xp):
        import torch

        csr = scipy.sparse.csr_array(S, copy=True)
        csr.sum_duplicates()
        coo = csr.tocoo()
        index = torch.from_numpy(np.stack([coo.row, coo.col]).astype(np.int64))
        values = torch.from_numpy(np.array(coo.data))
        options: dict[str, Any] = {"is_coalesced": True, "check_invariants": True}
        with warnings.catch_warnings():
            # PyTorch warns of invariants that are not checked, although they are.
            warnings.filterwarnings("ignore", "Sparse invariant checks", UserWarning)
            tensor = torch.sparse_coo_tensor(
                index, values, size=coo.shape, dtype=like.dtype, device=like.device, **options
            )
        return lambda M: tensor @ M
    # The standard has no sparse arrays: copy the thin matrix M to the host and back.
    matrix = scipy.sparse.csr_array(S)
    return lambda M: xp.asarray(matrix @ np.asarray(M), dtype=M.dtype)


class Eigenbasis(Protocol):
    """What solvers need of features Z (n×r) with ``ZᵀZ = diag(e)``; :class:`Spectrum` has Z in memory."""

    @property
    def values(self) -> Array:
        """e."""

    @property
    def n_rows(self) -> int:
        """n."""

    def multiply(self, W: Array) -> Array:
        """Compute ``Z W`` for W of shape (r, ...)."""

    def multiply_transposed(self, T: Array) -> Array:
        """Compute ``Zᵀ T`` for T of shape (n, ...)."""

    def visit(self, W: Array, work: Callable[..., Any], *arrays: Array | None) -> tuple[Array, list[Any]]:
        """Compute ``Zᵀ T`` and sums, where ``T, sums = work(Z W, *arrays)``, for all rows or in blocks of them."""

    def sum_squares(self, shares: Array) -> Array:
        """Compute ``Σ_k Z_ik² share_k`` (n, s) for shares (r, s)."""

    def sum_curvature(
        self, W: Array, work: Callable[..., Array], *arrays: Array | None
    ) -> tuple[Array, Array]:
        """Compute ``Σ_i Z_ik² D_i`` (r, ...) and ``Σ_i D_i``, where ``D = work(Z W, *arrays)`` (n, ...)."""

    def to_rows(self, values: Array) -> Array:
        """Return an array (n, ...) as :meth:`visit` takes it best: where the rows are."""


@dataclass(frozen=True, kw_only=True)
class Spectrum:
    """Centered features Z (n×r) with ``ZᵀZ = diag(e)``, scaled so that rows have mean squared length 1.

    The scale gives the weight γ of coefficients the same meaning for any number of anchors and any kernel width.
    ``rows`` is ``Z = (X − mean) @ directions``; ``values`` is e, in descending order and with sum n.
    """

    rows: Array
    values: Array
    mean: Array
    directions: Array

    def astype(self, dtype: Any) -> Spectrum:
        """Convert to another precision."""
        xp = array_namespace(self.rows)
        return Spectrum(**{name: xp.astype(value, dtype) for name, value in vars(self).items()})

    def head(self, count: int) -> Spectrum:
        """Keep the directions of the largest eigenvalues."""
        xp = array_namespace(self.rows)
        # Products with a slice of a wide matrix are slower.
        rows = xp.asarray(self.rows[:, :count], copy=True)
        directions = self.directions[:, :count]
        return Spectrum(rows=rows, values=self.values[:count], mean=self.mean, directions=directions)

    def project(self, X: Array) -> Array:
        """Map other rows to the same basis."""
        return (X - self.mean) @ self.directions

    def multiply(self, W: Array) -> Array:
        """Compute ``Z W`` for W of shape (r, ...), as one matrix product."""
        return multiply_flat(self.rows, W)

    def multiply_transposed(self, T: Array) -> Array:
        """Compute ``Zᵀ T`` for T of shape (n, ...), as one matrix product."""
        return multiply_flat(self.rows.T, T)

    def visit(self, W: Array, work: Callable[..., Any], *arrays: Array | None) -> tuple[Array, list[Any]]:
        """Compute ``Zᵀ T`` and sums, where ``T, sums = work(Z W, *arrays)``."""
        T, sums = work(self.multiply(W), *arrays)
        return self.multiply_transposed(T), list(sums)

    def sum_squares(self, shares: Array) -> Array:
        """Compute ``Σ_k Z_ik² share_k`` (n, s) for shares (r, s)."""
        return self.rows**2 @ shares

    def sum_curvature(
        self, W: Array, work: Callable[..., Array], *arrays: Array | None
    ) -> tuple[Array, Array]:
        """Compute ``Σ_i Z_ik² D_i`` (r, ...) and ``Σ_i D_i``, where ``D = work(Z W, *arrays)`` (n, ...)."""
        xp, D = array_namespace(W), work(self.multiply(W), *arrays)
        total = xp.zeros_like(W)
        for rows in gen_batches(self.n_rows, _SQUARED_ROWS):
            total = total + multiply_flat((self.rows[rows, :] ** 2).T, D[rows, ...])
        return total, xp.sum(D, axis=0)

    def to_rows(self, values: Array) -> Array:
        """Return an array (n, ...) as it is."""
        return values

    @property
    def n_rows(self) -> int:
        """n."""
        return int(self.rows.shape[0])


def multiply_flat(Z: Array, M: Array) -> Array:
    """Compute ``Z @ M`` for M of shape (k, ...), as one matrix product."""
    return (Z @ M.reshape((M.shape[0], -1))).reshape((Z.shape[0], *M.shape[1:]))


def spectrum_of(X: Array) -> Spectrum:
    """Compute the eigenbasis of mapped features (n×d)."""
    xp = array_namespace(X)
    mean = xp.mean(X, axis=0)
    centered = X - mean
    values, directions = spectrum_of_gram(centered.T @ centered, X.shape[0])
    return Spectrum(rows=centered @ directions, values=values, mean=mean, directions=directions)


def spectrum_of_gram(gram: Array, n_rows: int, smallest: float = _SMALLEST_SHARE) -> tuple[Array, Array]:
    """Return values and directions of :class:`Spectrum` from the Gram matrix (d×d) of n centered rows.

    Directions with a smaller share of the largest eigenvalue than ``smallest`` are left out.
    """
    xp = array_namespace(gram)
    values, directions = xp.linalg.eigh(gram)
    values, directions = xp.flip(values, axis=0), xp.flip(directions, axis=1)
    kept = int(xp.sum(xp.astype(values > smallest * values[0], xp.int64)))
    values = values[:kept]
    squared_scale = n_rows / float(xp.sum(values)) if kept else 1.0
    return values * squared_scale, directions[:, :kept] * squared_scale**0.5


def leverages(spectrum: Eigenbasis, gamma: Array) -> Array:
    """Compute h (n, s): the weight of a row's own target in its score."""
    return spectrum.sum_squares(1 / (spectrum.values[:, None] + gamma)) + 1 / spectrum.n_rows


def ridge_coefficients(spectrum: Eigenbasis, targets: Array, gamma: Array) -> tuple[Array, Array]:
    """Fit ridge regressions of targets (n, s, c), one weight per setting: W and b."""
    b = array_namespace(targets).mean(targets, axis=0)
    W = spectrum.multiply_transposed(targets - b)
    return W / (spectrum.values[:, None, None] + gamma[None, :, None]), b


def ridge_scores(
    spectrum: Eigenbasis, targets: Array, gamma: Array, h: Array | None = None
) -> tuple[Array, Array, Array]:
    """Fit ridge regressions of targets (n, s, c), one weight per setting: W, b and the leave-one-out scores.

    ``h`` are the :func:`leverages`, if known.
    """
    xp = array_namespace(targets)
    W, b = ridge_coefficients(spectrum, targets, gamma)
    scores = spectrum.multiply(W) + b
    h = (leverages(spectrum, gamma) if h is None else h)[:, :, None]
    # Leave-one-out is undefined for a row that alone decides its score.
    return W, b, (scores - h * targets) / xp.where(h < 1 - 1e-9, 1 - h, 1e-9)
