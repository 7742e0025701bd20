"""The alternating loop of PML-MA: arrays in, :class:`Solution` out, without scikit-learn.

Letters as in :mod:`skpml.modal_alignment._updates`. Every array belongs to the namespace of the inputs (NumPy, PyTorch or
any other of the array API standard).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from typing import Any, Literal

from array_api_compat import array_namespace, device

from skpml.blocks import RowBlocks, as_blocks
from skpml.linalg import (
    Array,
    lower_gram,
    nuclear_norm,
    one_blas,
    shrink_singular_values,
    singular_value_threshold,
    sparse_operator,
    squared_row_norms,
    sum_singular_values,
    tall_product,
)
from skpml.modal_alignment import _updates as updates

Basis = Literal["orthogonal", "identity"]
Component = Literal["decomposition", "alignment", "prototypes"]
Steps = Literal["derived", "released"]
Callback = Callable[[int, dict[str, float]], Any]

COMPONENTS: tuple[Component, ...] = ("decomposition", "alignment", "prototypes")
# How many times the authors' program counts the candidates in the gradient of the decomposition.
_RELEASED_PULL = 2.0
# The columns of a history: the weighted terms, their sum, and how far the label basis has turned.
TERMS = ("global_alignment", "decomposition", "low_rank", "local_alignment", "prototypes", "classifier")
HISTORY = (*TERMS, "objective", "basis_drift")


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Weights of the terms of PML-MA's objective.

    Parameters
    ----------
    low_rank_weight, alignment_weight, prototype_weight, ridge_weight : float
        Weights λ, α, β and γ, as in :class:`PMLMA`.
    """

    low_rank_weight: float = 1.0
    alignment_weight: float = 1e-2
    prototype_weight: float = 1e-2
    ridge_weight: float = 1.0


# In the order of the paper's λ, α, β, γ.
WEIGHTS = tuple(field.name for field in fields(Weights))


@dataclass(frozen=True, kw_only=True)
class Solution:
    """Result of :func:`solve`.

    Prototypes are those of the final pseudo-labels. As in the paper, classifier and label basis were computed just before
    the last step in the pseudo-labels.

    Parameters
    ----------
    coef, scores : array of shape (d, c) and (n, c)
        Classifier P1 P2ᵀ, and the scores ``X @ coef`` of the training rows.
    feature_projection, label_projection : array of shape (d, m) and (c, m)
        P1 and P2.
    pseudo_labels, basis, prototypes : array of shape (n, c), (c, c) and (d, c)
        R (between 0 and the candidates, 1 where known to be true), Q and V.
    history : dict of str to list of float
        One value per iteration: each weighted loss term, ``"objective"`` (their sum) and ``"basis_drift"`` (‖Q − I‖).
    n_iter, converged : int and bool
        Number of iterations, and whether the stopping rule was met.
    """

    coef: Array
    scores: Array
    feature_projection: Array
    label_projection: Array
    pseudo_labels: Array
    basis: Array
    prototypes: Array
    history: dict[str, list[float]]
    n_iter: int
    converged: bool


class _Graph:
    """The graph as the algorithm sees it: degrees, ``w = 1 + αδ`` and the product with S."""

    def __init__(self, similarity: Any, alpha: float, like: Array) -> None:
        xp = array_namespace(like)
        self.alpha = alpha if similarity is not None else 0.0
        self.row_weights: Array | None = None
        self.largest_degree = 0.0
        if self.alpha > 0:
            self.apply = sparse_operator(similarity, like)
            ones = xp.ones((like.shape[0], 1), dtype=like.dtype, device=device(like))
            self.degrees = self.apply(ones)[:, 0]
            self.row_weights = 1 + self.alpha * self.degrees
            self.largest_degree = float(xp.max(self.degrees))

    def smooth(self, M: Array) -> Array:
        """``(I + αS) M``."""
        return M + self.alpha * self.apply(M) if self.alpha > 0 else M


def solve(
    X: Array | RowBlocks,
    Y: Array,
    similarity: Any = None,
    *,
    weights: Weights,
    known_true: Array | None = None,
    subspace_dim: int | None = None,
    prototypes: updates.Prototypes = "mean",
    basis: Basis = "identity",
    steps: Steps = "derived",
    without: Collection[Component] = (),
    max_iter: int = 50,
    tol: float = 1e-3,
    callback: Callback | None = None,
) -> Solution:
    """Minimize PML-MA's objective by alternating block updates.

    Parameters
    ----------
    X : array of shape (n, d) or RowBlocks
        Mapped features. Row blocks are visited twice in each iteration; nothing but thin arrays (n×c) is kept.
    Y : array of shape (n, c)
        Candidates as 0.0 and 1.0, in the dtype of X.
    similarity : scipy sparse matrix of shape (n, n) or None, default=None
        Symmetric neighbor similarity; None (or an alignment weight of 0) omits local alignment.
    weights : Weights
        Weights of the terms.
    known_true : array of shape (n, c) or None, default=None
        1.0 for candidates that are known to be true, else 0.0, in the dtype of X: these entries of R are 1 throughout.
        What is known to be false is not a candidate.
    subspace_dim : int or None, default=None
        Dimension m of the common space; None is ``min(d, c)``. With m = c the label projection cancels from every update
        and stays the identity.
    prototypes, basis, steps, without, max_iter, tol, callback : optional
        As in :class:`PMLMA`; ``steps`` does not change the graph. Without alignment the classifier is fitted once, to the
        final pseudo-labels.

    Returns
    -------
    Solution
        Classifier, pseudo-labels and course of the fit.
    """
    with one_blas(Y):
        fit = _Fit(
            as_blocks(X),
            Y,
            similarity,
            weights,
            known_true,
            subspace_dim,
            prototypes,
            basis,
            steps,
            frozenset(without),
        )
        return fit.run(max_iter, tol, callback)


def check_components(without: Collection[str]) -> None:
    """Raise if a term to omit is unknown."""
    if unknown := set(without) - set(COMPONENTS):
        raise ValueError(f"without has unknown parts {sorted(unknown)}; choose from {list(COMPONENTS)}.")


class _Fit:
    """State of one fit: thin arrays and small matrices. Rows are visited in blocks; every update is a pure function."""

    def __init__(
        self,
        X: RowBlocks,
        Y: Array,
        similarity: Any,
        weights: Weights,
        known_true: Array | None,
        subspace_dim: int | None,
        prototypes: updates.Prototypes,
        basis: Basis,
        steps: Steps,
        without: frozenset[Component],
    ) -> None:
        xp = self.xp = array_namespace(X.like, Y)
        d, c = X.shape[1], Y.shape[1]
        check_components(without)
        m = min(d, c) if subspace_dim is None else subspace_dim
        if not 1 <= m <= min(d, c):
            raise ValueError(f"subspace_dim must lie between 1 and min(d, c) = {min(d, c)}, got {m}.")
        self.X, self.Y, self.known_true, self.prototype_kind = X, Y, known_true, prototypes
        self.aligns = "alignment" not in without
        self.decomposes = "decomposition" not in without
        self.turns = self.decomposes and basis == "orthogonal"
        self.released = steps == "released"
        self.lam = weights.low_rank_weight if self.decomposes else 0.0
        self.beta = weights.prototype_weight if "prototypes" not in without else 0.0
        self.gamma = weights.ridge_weight
        self.graph = _Graph(similarity if self.aligns else None, weights.alignment_weight, Y)
        self.eye = xp.eye(c, dtype=Y.dtype, device=device(Y))

        # The left side of the classifier's equation never changes: it is factored once.
        self.solve_ridge = X.ridge_factor(weights=self.graph.row_weights, ridge=self.gamma)
        self.squared_norms: Array | None = None
        if self.beta:
            (self.squared_norms,), _ = X.visit(lambda block: ((squared_row_norms(block),), ()))

        self._set_pseudo_labels(Y)
        self.Q: Array | None = None
        self.P2: Array | None = None
        if m < c:
            self._start_projections(m)

    def _start_projections(self, m: int) -> None:
        """P2 spans the m label directions that the features predict best; P1 follows.

        The paper starts from random projections. This start is not random and turns with the labels: the leading
        eigenvectors of ``YᵀG (Xᵀdiag(w)X + γI)⁻¹ GᵀY``, the label energy that the classifier explains.
        """

        def sum_targets(X: Array, R: Array, SR: Array | None) -> tuple[tuple[()], tuple[Array]]:
            return (), (tall_product(X, self._smooth(R, SR), transpose=True),)

        _, (target,) = self.X.visit(sum_targets, self.R, self.SR)
        explained = target.T @ self.solve_ridge(target)
        _, vectors = self.xp.linalg.eigh((explained + explained.T) / 2)
        self.P2 = vectors[:, -m:]
        self._update_features_side(projection=True, prototypes=False)

    def _set_pseudo_labels(self, R: Array) -> None:
        """R, and with it SR, which the local loss and the next classifier both need."""
        self.R = R
        self.SR = self.graph.apply(R) if self.graph.alpha else None

    def _smooth(self, R: Array, SR: Array | None) -> Array:
        """``R + αSR``."""
        return R if SR is None else R + self.graph.alpha * SR

    def _project(self, R: Array) -> Array:
        return R if self.P2 is None else R @ self.P2

    def _back_project(self, M: Array) -> Array:
        return M if self.P2 is None else M @ self.P2.T

    def _update_features_side(self, *, projection: bool, prototypes: bool) -> None:
        """P1 ("p1"–"p111": ``(Xᵀdiag(w)X + γI) P1 = Gᵀ R P2``), V or both, and their products with X.

        X is by far the largest array: both right-hand sides share one pass over it, and both products another.
        """
        xp, means = self.xp, self.prototype_kind == "mean"

        def sum_targets(X: Array, R: Array, SR: Array | None) -> tuple[tuple[()], tuple[Array, ...]]:
            targets = [self._project(self._smooth(R, SR))] if projection else []
            if not prototypes:
                return (), (tall_product(X, targets[0], transpose=True),)
            targets.append(R if means else xp.sum(R, axis=1)[:, None] * R)
            sides = tall_product(X, xp.concat(targets, axis=1), transpose=True)
            return (), (sides, xp.sum(R, axis=0) if means else lower_gram(R))

        _, (sides, *size) = self.X.visit(sum_targets, self.R, self.SR)
        m = sides.shape[1] - (self.Y.shape[1] if prototypes else 0)
        columns = []
        if projection:
            self.P1 = self.solve_ridge(sides[:, :m])
            columns.append(self.P1)
        if prototypes:
            update = updates.mean_prototypes if means else updates.least_squares_prototypes
            self.V = update(sides[:, m:], size[0])
            columns.append(self.V)
        both = xp.concat(columns, axis=1)

        def multiply(X: Array) -> tuple[tuple[Array, ...], tuple[()]]:
            products = tall_product(X, both)
            return (products[:, :m], products[:, m:]), ()

        (found, self.XV), _ = self.X.visit(multiply)
        if projection:
            self.XP1 = found

    def _update_label_projection(self) -> None:
        def sum_products(R: Array, smoothed: Array, w: Array | None) -> tuple[tuple[()], tuple[Array, Array]]:
            weighted = R if w is None else R * w[:, None]
            return (), (R.T @ weighted, R.T @ smoothed)

        arrays = (self.R, self.graph.smooth(self.XP1), self.graph.row_weights)
        _, (RtwR, RtGP1) = self.X.visit(sum_products, *arrays, features=False)
        self.P2 = updates.update_label_projection(RtwR, self.P1, RtGP1, self.gamma)

    def _update_basis(self) -> None:
        _, (YtR,) = self.X.visit(lambda Y, R: ((), (Y.T @ R,)), self.Y, self.R, features=False)
        self.Q = updates.update_basis(YtR)
        if self.released:
            # The program takes U Vᵀ where the minimizer is V Uᵀ.
            self.Q = self.Q.T

    def _gradient(self, R: Array, Y: Array, XP1: Array, w: Array | None, XV: Array) -> Array:
        """Half the gradient in some rows of R; ``XP1`` is smoothed over the graph."""
        gradient = self.xp.zeros_like(R)
        if self.aligns:
            gradient = gradient + updates.alignment_gradient(R, self.P2, self._back_project(XP1), w)
        if self.decomposes:
            pull = _RELEASED_PULL if self.released else 1.0
            gradient = gradient + updates.decomposition_gradient(R, Y, self.Q, pull)
        if self.beta:
            row_sums = self.xp.sum(R, axis=1)
            gradient = gradient + self.beta * updates.prototype_gradient(R, self.V, XV, row_sums)
        return gradient

    def _find_lipschitz(self) -> float:
        curvature = self.xp.zeros_like(self.eye)
        if self.aligns:
            curvature = curvature + (self.eye if self.P2 is None else self.P2 @ self.P2.T)
        if self.decomposes:
            curvature = curvature + self.eye
        if self.beta:
            curvature = curvature + self.beta * (self.V.T @ self.V)
        find = updates.released_lipschitz if self.released else updates.lipschitz_constant
        return find(curvature, self.graph.alpha, self.graph.largest_degree)

    def _update_pseudo_labels(self) -> None:
        """One proximal gradient step: the step, singular values from the (c, c) Gram matrix, then the box."""
        lipschitz = self._find_lipschitz()
        if not lipschitz > 0:
            return
        tall = self.Y.shape[0] >= self.Y.shape[1]

        def step(*rows: Array) -> tuple[tuple[Array], tuple[Array, ...]]:
            Z = rows[0] - 2 * self._gradient(*rows) / lipschitz
            return (Z,), (Z.T @ Z,) if self.lam and tall else ()

        XP1 = self.graph.smooth(self.XP1) if self.aligns else None
        arrays = (self.R, self.Y, XP1, self.graph.row_weights, self.XV if self.beta else None)
        (Z,), gram = self.X.visit(step, *arrays, features=False)
        shrink = shrink_singular_values(gram[0], self.lam / lipschitz) if gram else None
        if self.lam and not tall:
            Z = singular_value_threshold(Z, self.lam / lipschitz)

        def finish(Z: Array, R: Array, Y: Array, known_true: Array | None) -> tuple[tuple[Array], tuple[()]]:
            stepped = Z if shrink is None else Z @ shrink
            if self.released:
                return (updates.released_pseudo_labels(R, stepped, Y, known_true),), ()
            return (updates.project_to_box(stepped, Y, known_true),), ()

        (R,), _ = self.X.visit(finish, Z, self.R, self.Y, self.known_true, features=False)
        self._set_pseudo_labels(R)

    def _iterate(self) -> None:
        if self.aligns and self.P2 is not None:
            self._update_label_projection()
        if self.aligns or self.beta:
            self._update_features_side(projection=self.aligns, prototypes=self.beta > 0)
        if self.turns:
            self._update_basis()
        self._update_pseudo_labels()

    def _losses(self) -> dict[str, float]:
        """Every weighted term at the current state, their sum, and the drift of Q."""
        losses = dict.fromkeys(HISTORY, 0.0)
        tall = self.Y.shape[0] >= self.Y.shape[1]

        def sum_losses(
            R: Array, SR: Array | None, Y: Array, XP1: Array, XV: Array, degrees: Array, norms: Array
        ) -> tuple[tuple[()], tuple[Any, ...]]:
            found = [0.0] * 4
            if self.aligns:
                labels = self._project(R)
                found[0] = updates.total((XP1 - labels) ** 2)
                if SR is not None:
                    found[1] = updates.local_alignment_loss(XP1, labels, self._project(SR), degrees)
            if self.decomposes:
                found[2] = updates.decomposition_loss(Y, R, self.Q)
            if self.beta:
                found[3] = updates.prototype_loss(R, self.V, XV, norms)
            return (), (*found, *((R.T @ R,) if self.lam and tall else ()))

        degrees = self.graph.degrees if self.SR is not None else None
        arrays = (self.R, self.SR, self.Y, self.XP1 if self.aligns else None, self.XV if self.beta else None)
        _, sums = self.X.visit(sum_losses, *arrays, degrees, self.squared_norms, features=False)
        losses["global_alignment"], losses["decomposition"] = sums[0], sums[2]
        losses["local_alignment"], losses["prototypes"] = self.graph.alpha * sums[1], self.beta * sums[3]
        if self.aligns:
            # P2 has orthonormal columns: ‖P1P2ᵀ‖² = ‖P1‖².
            losses["classifier"] = self.gamma * updates.total(self.P1**2)
        if self.lam:
            losses["low_rank"] = self.lam * (sum_singular_values(sums[4]) if tall else nuclear_norm(self.R))
        losses["objective"] = sum(losses[term] for term in TERMS)
        if self.Q is not None:
            losses["basis_drift"] = float(self.xp.linalg.matrix_norm(self.Q - self.eye))
        return losses

    def run(self, max_iter: int, tol: float, callback: Callback | None) -> Solution:
        """Iterate until the stopping rule is met."""
        history: dict[str, list[float]] = {name: [] for name in HISTORY}
        converged, previous, iteration = False, None, 0
        for iteration in range(1, max_iter + 1):
            self._iterate()
            losses = self._losses()
            for name, value in losses.items():
                history[name].append(value)
            current = losses["objective"]
            converged = tol > 0 and previous is not None and abs(current - previous) <= tol * abs(previous)
            stopped = bool(callback(iteration, losses)) if callback is not None else False
            if converged or stopped:
                break
            previous = current
        if self.released:
            self._set_pseudo_labels(updates.project_to_box(self.R, self.Y, self.known_true))
        # The classifier stays that of the last iteration, as in the paper; nothing but the prototypes depends on R now.
        self._update_features_side(projection=not self.aligns, prototypes=True)
        return Solution(
            coef=self._back_project(self.P1),
            scores=self._back_project(self.XP1),
            feature_projection=self.P1,
            label_projection=self.eye if self.P2 is None else self.P2,
            pseudo_labels=self.R,
            basis=self.eye if self.Q is None else self.Q,
            prototypes=self.V,
            history=history,
            n_iter=iteration,
            converged=converged,
        )
