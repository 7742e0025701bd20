"""PML-PLR: pseudo-labels rebuilt from the codes of correlated rows.

Letters are the paper's, with rows for instances: Φ mapped features (n×h), Y candidates and F pseudo-labels (n×c), W
classifier (h×c), Q rotation (n×n), P label directions (m×c, orthonormal rows), H codes (n×m), E residuals (n×c), G
squared distances (n×n), L graph Laplacian (n×n), and C reconstruction (n×n, every row on the simplex: row i holds the
weights of the rows that rebuild row i). The paper has columns for instances, so its Φ, Y, F, H, E and C are the
transposes.

Q is never formed, and C and G only if they are small: see :func:`rotate_candidates`, :class:`Reconstruction`,
:func:`distance_loss`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import scipy.sparse
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.metrics import euclidean_distances
from sklearn.utils import Bunch, gen_batches

from skpml._docstrings import fill_docstring
from skpml._validation import is_number
from skpml.base import MethodFacts
from skpml.baselines._common import AnchorClassifier, Array, History, append, square
from skpml.linalg import polar_factor, ridge_factor

# Weight of ‖Y − HP − E‖²; a constant of the method.
PENALTY = 1000.0
# First iteration that may stop: the objective settles only after a few rounds.
FIRST_STOP = 6
# Cells of C that are formed at a time: enough for the matrix products.
_BLOCK_CELLS = 2**20
# Cells that are projected onto the simplex at a time: few enough for the cache of a core.
_CACHED_CELLS = 2**16
# C and G are stored up to this many cells each (256 MB).
_STORED_CELLS = 2**25

# Rows, columns and cells of a part of C; all cells of these rows in other columns are zero.
Block = tuple[slice, Any, Array]


@dataclass(frozen=True)
class Reconstruction:
    """C by blocks of rows: row i is ``max(A_i Hᵀ − θ_i, 0)`` with A and H of shape (n, m).

    Many rows are rebuilt from the same few, so a block is stored without the columns that it does not use. If C is too
    large to be stored, a block is formed whenever a product needs it.
    """

    loadings: Array
    codes: Array
    shift: Array
    stored: tuple[Block, ...] | None = None

    @classmethod
    def nearest(cls, loadings: Array, codes: Array, start: Array | None = None) -> Reconstruction:
        """Compute the matrix with rows on the simplex that is nearest to ``A Hᵀ``; ``start`` is a guess of θ."""
        n, shift = len(codes), np.empty(len(loadings))
        stored: list[Block] = []
        is_stored = len(loadings) * n <= _STORED_CELLS
        buffer = np.empty((min(max(1, _BLOCK_CELLS // n), len(loadings)), n))
        for rows in _row_blocks(len(loadings), n):
            block = np.matmul(loadings[rows], codes.T, out=buffer[: rows.stop - rows.start])
            shift[rows] = simplex_shift(block, None if start is None else start[rows], out=block)
            if is_stored:
                columns = np.flatnonzero((block > 0).any(axis=0))
                stored.append((rows, columns, np.take(block, columns, axis=1)))
        return cls(loadings, codes, shift, tuple(stored) if is_stored else None)

    def blocks(self) -> Iterator[Block]:
        if self.stored is not None:
            yield from self.stored
            return
        for rows in _row_blocks(len(self.loadings), len(self.codes)):
            block = self.loadings[rows] @ self.codes.T
            block -= self.shift[rows, None]
            yield rows, slice(None), np.maximum(block, 0, out=block)

    def forward(self, V: Array) -> Array:
        """Compute ``C V``."""
        return self.products(V, V[:, :0])[0]

    def backward(self, V: Array) -> Array:
        """Compute ``Cᵀ V``."""
        return self.products(V[:, :0], V)[1]

    def products(self, right: Array, left: Array) -> tuple[Array, Array]:
        """Compute ``C right`` and ``Cᵀ left`` in one pass over C."""
        forward, backward = np.empty_like(right), np.zeros_like(left)
        for rows, columns, block in self.blocks():
            if right.shape[1]:
                forward[rows] = _thin_product(block, right[columns])
            if left.shape[1]:
                backward[columns] += _thin_product(block.T, left[rows])
        return forward, backward

    def gram(self, V: Array) -> Array:
        """Compute ``CᵀC V``."""
        total = np.zeros_like(V)
        for _, columns, block in self.blocks():
            total[columns] += _thin_product(block.T, _thin_product(block, V[columns]))
        return total


def _thin_product(M: Array, V: Array) -> Array:
    """Compute ``M V`` as ``(Vᵀ Mᵀ)ᵀ``, which is up to twice as fast if V has few columns."""
    return (np.ascontiguousarray(V.T) @ M.T).T


def simplex_shift(Z: Array, start: Array | None = None, out: Array | None = None) -> Array:
    """Compute θ for each row z of Z, such that ``max(z − θ, 0)`` is the nearest point with sum 1.

    Newton's method for ``Σ max(z_j − θ, 0) = 1``, from ``start`` if there is a guess: it stops where the values above θ
    no longer change. For rows as long as those of C, a few passes are several times faster than
    :func:`skpml.linalg.project_to_simplex`. The nearest points are written to ``out``, which may be Z.
    """
    shift = np.empty(len(Z))
    # Twice as fast as comparing with a number.
    zeros = np.zeros(Z.shape[1])
    for part in gen_batches(len(Z), max(1, _CACHED_CELLS // Z.shape[1])):
        shift[part], rest = _newton_shift(Z[part], None if start is None else start[part], zeros)
        if out is not None:
            np.maximum(rest, zeros, out=out[part])
    return shift


def _newton_shift(Z: Array, start: Array | None, zeros: Array) -> tuple[Array, Array]:
    """Compute θ and ``z − θ`` for a few rows."""
    if start is None:
        shift = (Z.sum(axis=1) - 1) / Z.shape[1]
    else:
        # Where the solution must be.
        highest = Z.max(axis=1)
        shift = np.clip(start, highest - 1, highest - 1 / Z.shape[1])
    rest = np.empty_like(Z)
    count = None
    while True:
        np.subtract(Z, shift[:, None], out=rest)
        before, count = count, np.maximum((rest > 0).sum(axis=1, dtype=np.int32), 1)
        if before is not None and (count == before).all():
            return shift, rest
        shift = shift + (np.maximum(rest, zeros, out=rest).sum(axis=1) - 1) / count


def _row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    return gen_batches(n_rows, max(1, _BLOCK_CELLS // n_columns))


def solve(mapped: Array, X: Array, Y: Array, laplacian: Any, model: PMLPLR) -> Bunch:
    """Run PML-PLR's updates until the objective no longer falls.

    ``mapped`` is Φ, and X are scaled features for the distances G; weights and stop rule are those of the model.
    Stops from the sixth iteration on when the objective rises or falls relatively by less than ``tol``.
    """
    X, Y = X.astype(np.float64, copy=False), Y.astype(np.float64, copy=False)
    alpha, beta = model.alpha, model.beta
    solve_ridge = ridge_factor(mapped, ridge=float(model.lam))
    root, rank = gram_root(Y)
    distances = euclidean_distances(X, squared=True) if len(X) ** 2 <= _STORED_CELLS else None
    # C starts as the identity.
    F, E, C = Y, np.zeros_like(Y), None
    ridge_scores = mapped @ solve_ridge(mapped.T @ Y.astype(mapped.dtype))
    # Frequent label directions, and among these the ones that the features predict best.
    P = leading_directions(Y.T @ (Y + ridge_scores), min(ceil(model.ratio * Y.shape[1]), rank))
    H = CH = Y @ P.T
    correction = np.zeros_like(Y)
    history: History = {}
    converged = False
    for iteration in range(1, model.max_iter + 1):
        W = solve_ridge(_thin_product(mapped.T, F.astype(mapped.dtype, copy=False)))
        scores = _thin_product(mapped, W)
        rotated = rotate_candidates(F, root)
        P = update_directions(2 * Y.T @ CH + PENALTY * (Y - E).T @ H, P)
        H = update_codes(C, Y @ P.T, (Y - E) @ P.T, correction @ P.T)
        correction = (H - (Y - E) @ P.T) @ P
        C = update_reconstruction(X, Y, F, P, H, laplacian, beta, None if C is None else C.shift)
        E = np.maximum(Y - H @ P - alpha / PENALTY, 0)
        parts, CtF = C.products(np.hstack([laplacian @ F, H]), F)
        CLF, CH = np.split(parts, [F.shape[1]], axis=1)
        F = update_pseudo_labels(F, Y, scores + rotated, beta * (CLF + laplacian @ CtF))
        CLF = C.forward(laplacian @ F)
        losses = {
            "classifier": square(scores - F),
            "rotation": square(rotated - F),
            "reconstruction": square(Y - CH @ P),
            "distances": distance_loss(C, X, distances),
            "residuals": alpha * float(np.abs(Y - H @ P).sum()),
            "smoothness": beta * float(np.vdot(F, CLF)),
            "coefficients": model.lam * square(W),
        }
        append(history, **losses, objective=sum(losses.values()))
        if iteration >= FIRST_STOP:
            before, now = history["objective"][-2:]
            converged = before - now < model.tol * before
            if converged:
                break
    return Bunch(
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


def gram_root(Y: Array) -> tuple[Array, int]:
    """Compute ``(YᵀY)^½`` and the rank of Y."""
    values, vectors = np.linalg.eigh(Y.T @ Y)
    kept = values > np.finfo(values.dtype).eps * len(values) * values[-1]
    values, vectors = values[kept], vectors[:, kept]
    return (vectors * np.sqrt(values)) @ vectors.T, len(values)


def rotate_candidates(F: Array, root: Array) -> Array:
    """Compute ``QᵀY`` for the orthogonal Q (n×n) that brings it nearest to F, from ``root = (YᵀY)^½``.

    Q is the polar factor of ``YFᵀ``; its product with Y is the polar factor of ``F (YᵀY)^½`` times ``(YᵀY)^½``, which
    needs only thin matrices. If F has a lower rank than Y, Q may rotate the rest of Y anywhere; the rest is dropped, so
    that the result does not depend on the order of rows or labels.
    """
    left, values, right = np.linalg.svd(F @ root, full_matrices=False)
    kept = values > np.finfo(values.dtype).eps * max(F.shape) * values[0]
    return left[:, kept] @ (right[kept] @ root)


def leading_directions(M: Array, count: int) -> Array:
    """Return the eigenvectors of the ``count`` largest eigenvalues of a symmetric M, as rows."""
    return np.linalg.eigh(M)[1][:, ::-1][:, :count].T


def update_directions(B: Array, P: Array) -> Array:
    """P: the transposed polar factor of ``B = (2CᵀY + μ(Y − E))ᵀ H`` (c×m).

    If B is singular, the polar factor is not unique; adding the old P at the size of rounding errors selects the one
    nearest to it.
    """
    nudge = 8 * B.shape[0] * np.finfo(B.dtype).eps * float(np.linalg.norm(B))
    return polar_factor(B + nudge * P.T).T


def update_codes(C: Reconstruction | None, candidates: Array, target: Array, guess: Array) -> Array:
    """H: solve ``(2CᵀC + μI) H = 2Cᵀ candidates + μ target`` by conjugate gradients; no C is the identity.

    μ keeps the matrix well conditioned, and H near the target; ``guess`` is a guess of their difference.
    """
    if C is None:
        return (2 * candidates + PENALTY * target) / (2 + PENALTY)

    def apply(v: Array) -> Array:
        V = v.reshape(target.shape)
        return (2 * C.gram(V) + PENALTY * V).ravel()

    start = target + guess
    residual = 2 * C.backward(candidates - C.forward(start)) - PENALTY * guess
    operator = LinearOperator((target.size, target.size), matvec=apply, dtype=target.dtype)
    enough = 1e-10 * PENALTY * float(np.linalg.norm(start))
    return start + cg(operator, residual.ravel(), rtol=1e-10, atol=enough)[0].reshape(target.shape)


def update_reconstruction(
    X: Array,
    Y: Array,
    F: Array,
    P: Array,
    H: Array,
    laplacian: Any,
    beta: float,
    start: Array | None = None,
) -> Reconstruction:
    """C: the stationary point ``(2YPᵀHᵀ − 2βFFᵀL − G)(2HHᵀ)⁺``, each row projected onto the simplex.

    ``(HHᵀ)⁺ = H K² Hᵀ`` with ``K = (HᵀH)⁺`` (m×m), so the point is ``A Hᵀ`` with a thin A. ``start`` is a
    guess of the shift.
    """
    inner = H.T @ H
    inverse = np.linalg.pinv(inner, hermitian=True)
    R = 2 * (Y @ P.T) @ inner - 2 * beta * F @ (F.T @ (laplacian @ H)) - distance_product(X, H)
    return Reconstruction.nearest(0.5 * R @ (inverse @ inverse), H, start)


def distance_product(X: Array, H: Array) -> Array:
    """Compute ``G H`` for the squared distances ``G = g1ᵀ + 1gᵀ − 2XXᵀ`` between rows of X with squared lengths g."""
    sizes = np.einsum("ij,ij->i", X, X)
    return np.outer(sizes, H.sum(axis=0)) + sizes @ H - 2 * _thin_product(X, _thin_product(X.T, H))


def distance_loss(C: Reconstruction, X: Array, G: Array | None) -> float:
    """Compute ``Σ C∘G``; without G, from products of C and X, because rows of C sum to 1."""
    if G is not None:
        return float(
            sum(np.vdot(block, np.take(G[rows], columns, axis=1)) for rows, columns, block in C.blocks())
        )
    sizes = np.einsum("ij,ij->i", X, X)
    products = np.hstack([X, sizes[:, None]])
    total = sizes.sum()
    for rows, columns, block in C.blocks():
        CX = block @ products[columns]
        total += CX[:, -1].sum() - 2 * np.vdot(X[rows], CX[:, :-1])
    return float(total)


def update_pseudo_labels(F: Array, Y: Array, pull: Array, smoothness: Array) -> Array:
    """F: one multiplicative step towards ``pull = ΦW + QᵀY``, with ``smoothness = β(LCᵀF + CLF)``, kept below Y.

    The step is ``F∘pull / (2F + smoothness)``, with negative parts moved between numerator and denominator, so that F
    stays non-negative and has the same fixed points. Zero stays zero outside the candidates.
    """
    raised = np.maximum(pull, 0) - np.minimum(smoothness, 0)
    lowered = np.maximum(smoothness, 0) - np.minimum(pull, 0)
    return np.minimum(F * raised / (2 * F + lowered + np.finfo(F.dtype).eps), Y)


@fill_docstring
@dataclass(kw_only=True, repr=False, eq=False)
class PMLPLR(AnchorClassifier):
    """Partial multi-label learning by pseudo-label reconstruction (PML-PLR).

    Searches pseudo-labels F that a kernel classifier can predict, that a rotation of the candidates Y reaches, and that
    agree between similar rows: the candidates are compressed to codes H, and each row is rebuilt as a mixture C of the
    codes of rows near it. Minimizes by alternating updates, with rows for instances (the paper has columns),

        ‖ΦW − F‖² + ‖QᵀY − F‖² + ‖Y − CHP‖² + Σ_ij G_ij C_ij + α‖Y − HP‖₁ + 2β tr(FᵀCLF) + λ‖W‖²

    over F (0 ≤ F ≤ Y), W, Q (orthogonal), P (orthonormal rows), H and C (rows on the simplex), where Φ are similarities
    to anchor rows, G squared distances between rows and L the Laplacian of a neighbor graph.

    Objective, feature map, graph, order of updates, parameters and stop rule are those of the authors' published code.
    Three of its updates do not follow from its objective and are repaired here: two signs (in the H and in the C step),
    and the F step, which as published divides by numbers of either sign and keeps F neither above 0 nor below Y. See the
    notes.

    Parameters
    ----------
    alpha, beta, lam : float, default=0.1, 0.01, 1
        Weights α (sparse residual), β (smoothness over the graph) and λ (size of the classifier), each at least 0. The
        authors' code lists β = 0.01 or 0.1 and λ between 0.01 and 10 for each data set, all with α = 0.1; the defaults
        are the values that it lists most often for data sets with added noise. See the notes on β.
    ratio : float, default=0.8
        Number of label directions (length of the codes) as a share of the number of labels, above 0 and at most 1. At
        most the rank of Y are used.
    %(n_neighbors)s
    %(n_anchors)s
    %(threshold)s
    %(max_iter)s
    tol : float, default=1e-4
        Stop, from the sixth iteration on, when the objective rises or falls relatively by less.
    %(on_empty)s
    random_state : int, RandomState or None, default=None
        Draws the anchors if not all rows are anchors. Nothing else is random: P and H start from the leading label
        directions instead of random numbers.

    Attributes
    ----------
    confidences_ : ndarray of shape (n_rows, n_labels)
        F: confidence in each candidate, between 0 and 1, and 0 outside the candidates.
    coef_ : ndarray of shape (n_mapped_features, n_labels)
        W; scores are ``mapped @ coef_``.
    label_directions_ : ndarray of shape (m, n_labels)
        P.
    %(objective_history)s
    %(iterations)s
    %(scaler_and_map)s
    %(fitted)s

    Notes
    -----
    With n rows, h mapped features, c labels and k conjugate-gradient steps (about three), a fit takes O(nh² +
    h³) once and O(n²(d + kc)) per iteration, because every row may contribute to any other; the neighbor graph takes
    O(n²d) up to 10,000 rows, and beyond is searched in cells, which may miss a few neighbors. Up to 5,792 rows the n×n
    matrices G and C are stored (at most 256 MB each); beyond, memory is O(nh), and blocks of C are formed whenever a
    product needs them. Q is never formed. ``history_["objective"]`` counts the smoothness once, not twice as in
    the objective above, like the published stop rule.

    The objective is not convex, and not every update lowers it. It often rises after the second iteration, as in the
    authors' own runs, so the stop rule usually applies at the sixth: six iterations are part of the method, and more of
    them give a different model.

    The term ``2β tr(FᵀCLF)`` is not always a penalty: CL is neither symmetric nor positive semidefinite (if two
    neighbors rebuild each other, it is negative), so that it may reward pseudo-labels that differ between neighbors. A
    small β keeps it a minor term; at β = 0.1 and many candidates the ranking may become worse than that of ridge
    regression on the candidates.

    As published, the F step lets pseudo-labels leave [0, 1]. The smoothness term then has no lower bound, and if many
    rows are rebuilt from the same few, F grows without limit, as on the arts data. Here F is kept within its
    constraint, with the same fixed points inside it.

    Most of the ranking quality comes from the kernel map: compare with :class:`skpml.reference.CandidateRidge`.

    %(reference_and_data)s
    >>> from skpml.baselines import PMLPLR
    >>> model = PMLPLR(random_state=0).fit(X, candidates)
    >>> bool((model.confidences_ <= candidates).all())
    True
    """

    alpha: float = 0.1
    beta: float = 0.01
    lam: float = 1.0
    ratio: float = 0.8
    n_neighbors: int = 5
    n_anchors: int | None = None
    threshold: float | str = "auto"
    max_iter: int = 40
    tol: float = 1e-4
    on_empty: str = "warn"
    random_state: Any = None

    _facts = MethodFacts(
        name="pml-plr",
        title="PML-PLR",
        kind="baseline",
        summary="pseudo-labels rebuilt from correlated rows",
        confidences=True,
        nonlinear=True,
        random=True,
        source="release",
        year=2025,
        reference="Chen, Li, Han, Li, Gao, Chan, Fang. Pseudo-Label Reconstruction for Partial Multi-Label "
        "Learning. IJCAI 2025, 4896–4904.",
        comparison_threshold=0.5,
    )

    def _check_parameters(self) -> None:
        if not is_number(self.ratio) or not 0 < self.ratio <= 1:
            raise ValueError(f"ratio must be a number above 0 and at most 1, got {self.ratio!r}.")
        super()._check_parameters()

    def _fit(self, X: Any, Y: Array) -> Array:
        mapped, scaled, similarity = self._map(X)
        laplacian = scipy.sparse.csr_array(scipy.sparse.diags_array(similarity.sum(axis=1)) - similarity)
        solution = solve(mapped, scaled, Y, laplacian, self)
        self.coef_ = solution.coef
        self.confidences_ = solution.pseudo_labels.astype(X.dtype, copy=False)
        self.label_directions_ = solution.label_directions.astype(X.dtype, copy=False)
        self._record(solution.history, converged=solution.converged)
        return solution.scores
