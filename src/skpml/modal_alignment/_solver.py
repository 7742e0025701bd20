"""The alternating loop of PML-MA: arrays in, :class:`Solution` out, without scikit-learn.

Letters as in :mod:`skpml.modal_alignment._updates`. Every array belongs to the namespace of the inputs (NumPy, PyTorch or
any other of the array API standard).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Literal

import numpy as np
from array_api_compat import array_namespace, device

from skpml._blocks import RowBlocks, as_blocks
from skpml.linalg import (
    Array,
    nuclear_norm,
    one_blas,
    shrink_singular_values,
    singular_value_threshold,
    sum_singular_values,
)
from skpml.modal_alignment import _updates as updates
from skpml.modal_alignment._row_work import (
    RowWork,
    Sums,
    add_neighbors,
    keep_in_box,
    measure_rows,
    multiply_rows,
    sum_features,
    sum_label_products,
    sum_labels,
    sum_product,
)

Basis = Literal["orthogonal", "identity"]
Component = Literal["decomposition", "alignment", "prototypes"]
Steps = Literal["derived", "released"]
Callback = Callable[[int, dict[str, float]], Any]

COMPONENTS: tuple[Component, ...] = ("decomposition", "alignment", "prototypes")
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
    sums : Sums or None
        Of these rows, if they were asked for.
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
    sums: Sums | None


class _Graph:
    """The graph as the algorithm sees it: degrees, ``w = 1 + αδ`` and the product with S."""

    def __init__(self, X: RowBlocks, similarity: Any, alpha: float) -> None:
        self.X = X
        self.alpha = alpha if similarity is not None else 0.0
        self.row_weights: Array | None = None
        self.largest_degree = 0.0
        if self.alpha > 0:
            self.apply = X.graph_operator(similarity)
            degrees = np.asarray(similarity.sum(axis=1)).ravel()
            self.largest_degree = float(degrees.max())
            self.degrees = X.to_rows(degrees)
            self.row_weights = X.to_rows(1 + self.alpha * degrees)

    def smooth(self, M: Array) -> Array:
        """``(I + αS) M``."""
        if not self.alpha > 0:
            return M
        (smoothed,), _ = self.X.visit(
            partial(add_neighbors, alpha=self.alpha), M, self.apply(M), features=False
        )
        return smoothed


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
    keep_sums: bool = False,
    before: Sums | None = None,
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
    keep_sums : bool, default=False
        Whether to return the sums with which more rows can be learned.
    before : Sums or None, default=None
        Of rows that belong to the problem, and whose pseudo-labels stay as they are. They have no neighbors among the
        rows of X, and the history contains no term of theirs but the low rank of all pseudo-labels.

    Returns
    -------
    Solution
        Classifier, pseudo-labels and course of the fit.
    """
    blocks = as_blocks(X)
    with one_blas(blocks.like):
        fit = _Fit(
            blocks,
            Y,
            similarity,
            weights,
            known_true,
            subspace_dim,
            prototypes,
            basis,
            steps,
            frozenset(without),
            keep_sums,
            before,
        )
        return fit.run(max_iter, tol, callback)


def check_components(without: Collection[str]) -> None:
    """Raise if a term to omit is unknown."""
    if unknown := set(without) - set(COMPONENTS):
        raise ValueError(f"without has unknown parts {sorted(unknown)}; choose from {list(COMPONENTS)}.")


class _Fit:
    """State of one fit: thin arrays, small matrices, and what is done with blocks of rows (:class:`RowWork`)."""

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
        keep_sums: bool,
        before: Sums | None,
    ) -> None:
        xp = self.xp = array_namespace(X.like)
        d, c = X.shape[1], Y.shape[1]
        check_components(without)
        m = min(d, c) if subspace_dim is None else subspace_dim
        if not 1 <= m <= min(d, c):
            raise ValueError(f"subspace_dim must lie between 1 and min(d, c) = {min(d, c)}, got {m}.")
        self.X, self.Y = X, X.to_rows(Y)
        self.known_true = None if known_true is None else X.to_rows(known_true)
        aligns, decomposes = "alignment" not in without, "decomposition" not in without
        self.turns = decomposes and basis == "orthogonal"
        self.gamma = weights.ridge_weight
        self.graph = _Graph(X, similarity if aligns else None, weights.alignment_weight)
        self.eye = xp.eye(c, dtype=X.like.dtype, device=device(X.like))
        self.work = RowWork(
            aligns=aligns,
            decomposes=decomposes,
            released=steps == "released",
            mean_prototypes=prototypes == "mean",
            # With fewer rows than labels, the Gram matrix of the rows is the smaller one; there is one block then.
            tall=Y.shape[0] >= c or before is not None,
            lam=weights.low_rank_weight if decomposes else 0.0,
            alpha=self.graph.alpha,
            beta=weights.prototype_weight if "prototypes" not in without else 0.0,
        )

        self.before, self.keep_sums = before, keep_sums
        # The left side of the classifier's equation never changes: it is factored once.
        if keep_sums or before is not None:
            self.gram = X.gram(self.graph.row_weights)
            self.solve_ridge = X.factor(self._with_rows_before("gram", self.gram), self.gamma)
        else:
            self.solve_ridge = X.ridge_factor(weights=self.graph.row_weights, ridge=self.gamma)
        self.squared_norms: Array | None = None
        if self.work.beta:
            (self.squared_norms,), _ = X.visit(measure_rows)

        self._set_pseudo_labels(self.Y)
        if m < c:
            self._start_projections(m)

    def _with_rows_before(self, name: str, value: Array) -> Array:
        """A sum over these rows, and over those before."""
        return value if self.before is None else value + getattr(self.before, name)

    def _start_projections(self, m: int) -> None:
        """P2 spans the m label directions that the features predict best; P1 follows.

        The paper starts from random projections. This start is not random and turns with the labels: the leading
        eigenvectors of ``YᵀG (Xᵀdiag(w)X + γI)⁻¹ GᵀY``, the label energy that the classifier explains.
        """
        work = partial(self.work.sum_targets, projection=True, prototypes=False)
        _, (target,) = self.X.visit(work, self.R, self.SR)
        target = self._with_rows_before("targets", target)
        explained = target.T @ self.solve_ridge(target)
        _, vectors = self.xp.linalg.eigh((explained + explained.T) / 2)
        self.work.P2 = vectors[:, -m:]
        self._update_features_side(projection=True, prototypes=False)

    def _set_pseudo_labels(self, R: Array) -> None:
        """R, and with it SR, which the local loss and the next classifier both need."""
        self.R = R
        self.SR = self.graph.apply(R) if self.graph.alpha else None

    def _update_features_side(self, *, projection: bool, prototypes: bool) -> None:
        """P1 ("p1"–"p111": ``(Xᵀdiag(w)X + γI) P1 = Gᵀ R P2``), V or both, and their products with X.

        X is by far the largest array: both right-hand sides share one pass over it, and both products another.
        """
        targets = partial(self.work.sum_targets, projection=projection, prototypes=prototypes)
        _, (sides, *size) = self.X.visit(targets, self.R, self.SR)
        m = sides.shape[1] - (self.Y.shape[1] if prototypes else 0)
        if self.before is not None:
            columns = [self.work.project(self.before.targets)] if projection else []
            columns += [self.before.members] if prototypes else []
            sides = sides + self.xp.concat(columns, axis=1)
            size = [self._with_rows_before("size", each) for each in size]
        columns = []
        if projection:
            self.work.P1 = self.solve_ridge(sides[:, :m])
            columns.append(self.work.P1)
        if prototypes:
            means = self.work.mean_prototypes
            update = updates.mean_prototypes if means else updates.least_squares_prototypes
            self.work.V = update(sides[:, m:], size[0])
            columns.append(self.work.V)
        both = self.xp.concat(columns, axis=1)
        (found, self.XV), _ = self.X.visit(partial(multiply_rows, matrix=both, split=m))
        if projection:
            self.XP1 = found

    def _update_label_projection(self) -> None:
        arrays = (self.R, self.graph.smooth(self.XP1), self.graph.row_weights)
        _, (RtwR, RtGP1) = self.X.visit(sum_label_products, *arrays, features=False)
        RtwR = self._with_rows_before("weighted_label_gram", RtwR)
        if self.before is not None:
            RtGP1 = RtGP1 + self.before.targets.T @ self.work.P1
        self.work.P2 = updates.update_label_projection(RtwR, self.work.P1, RtGP1, self.gamma)

    def _update_basis(self) -> None:
        _, (YtR,) = self.X.visit(sum_product, self.Y, self.R, features=False)
        Q = updates.update_basis(self._with_rows_before("overlap", YtR))
        # The program takes U Vᵀ where the minimizer is V Uᵀ.
        self.work.Q = Q.T if self.work.released else Q

    def _find_lipschitz(self) -> float:
        work, curvature = self.work, self.xp.zeros_like(self.eye)
        if work.aligns:
            curvature = curvature + (self.eye if work.P2 is None else work.P2 @ work.P2.T)
        if work.decomposes:
            curvature = curvature + self.eye
        if work.beta:
            curvature = curvature + work.beta * (work.V.T @ work.V)
        find = updates.released_lipschitz if work.released else updates.lipschitz_constant
        return find(curvature, self.graph.alpha, self.graph.largest_degree)

    def _update_pseudo_labels(self) -> None:
        """One proximal gradient step: the step, singular values from the (c, c) Gram matrix, then the box."""
        work, lipschitz = self.work, self._find_lipschitz()
        if not lipschitz > 0:
            return
        XP1 = self.graph.smooth(self.XP1) if work.aligns else None
        arrays = (self.R, self.Y, XP1, self.graph.row_weights, self.XV if work.beta else None)
        (Z,), gram = self.X.visit(partial(work.step, lipschitz=lipschitz), *arrays, features=False)
        shrink = None
        if gram:
            RtR = self._with_rows_before("label_gram", gram[0])
            shrink = shrink_singular_values(RtR, work.lam / lipschitz)
        if work.lam and not work.tall:
            Z = self.X.to_rows(singular_value_threshold(self.X.from_rows(Z), work.lam / lipschitz))
        finish = partial(work.finish_step, shrink=shrink)
        (R,), _ = self.X.visit(finish, Z, self.R, self.Y, self.known_true, features=False)
        self._set_pseudo_labels(R)

    def _iterate(self) -> None:
        work = self.work
        if work.aligns and work.P2 is not None:
            self._update_label_projection()
        if work.aligns or work.beta:
            self._update_features_side(projection=work.aligns, prototypes=work.beta > 0)
        if self.turns:
            self._update_basis()
        self._update_pseudo_labels()

    def _losses(self) -> dict[str, float]:
        """Every weighted term at the current state, their sum, and the drift of Q."""
        work, losses = self.work, dict.fromkeys(HISTORY, 0.0)
        degrees = self.graph.degrees if self.SR is not None else None
        arrays = (self.R, self.SR, self.Y, self.XP1 if work.aligns else None, self.XV if work.beta else None)
        _, sums = self.X.visit(work.sum_losses, *arrays, degrees, self.squared_norms, features=False)
        losses["global_alignment"], losses["decomposition"] = sums[0], sums[2]
        losses["local_alignment"], losses["prototypes"] = work.alpha * sums[1], work.beta * sums[3]
        if work.aligns:
            # P2 has orthonormal columns: ‖P1P2ᵀ‖² = ‖P1‖².
            losses["classifier"] = self.gamma * updates.total(work.P1**2)
        if work.lam:
            if work.tall:
                size = sum_singular_values(self._with_rows_before("label_gram", sums[4]))
            else:
                size = nuclear_norm(self.X.from_rows(self.R))
            losses["low_rank"] = work.lam * size
        losses["objective"] = sum(losses[term] for term in TERMS)
        if work.Q is not None:
            losses["basis_drift"] = float(self.xp.linalg.matrix_norm(work.Q - self.eye))
        return losses

    def _sum_rows(self) -> Sums:
        """The sums of these rows, at the pseudo-labels as they are now."""
        work, means = self.work, self.work.mean_prototypes
        features = partial(sum_features, alpha=work.alpha, mean_prototypes=means)
        _, (targets, members) = self.X.visit(features, self.R, self.SR)
        labels, arrays = sum_labels, (self.R, self.Y, self.graph.row_weights)
        _, (mass, gram, weighted, overlap) = self.X.visit(labels, *arrays, features=False)
        return Sums(
            gram=self.gram,
            targets=targets,
            members=members,
            size=mass if means else gram,
            label_gram=gram,
            weighted_label_gram=weighted,
            overlap=overlap,
        )

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
        work, collect = self.work, self.X.from_rows
        if work.released:
            (R,), _ = self.X.visit(keep_in_box, self.R, self.Y, self.known_true, features=False)
            self._set_pseudo_labels(R)
        # The classifier stays that of the last iteration, as in the paper; nothing but the prototypes depends on R now.
        self._update_features_side(projection=not work.aligns, prototypes=True)
        return Solution(
            coef=work.back_project(work.P1),
            scores=work.back_project(collect(self.XP1)),
            feature_projection=work.P1,
            label_projection=self.eye if work.P2 is None else work.P2,
            pseudo_labels=collect(self.R),
            basis=self.eye if work.Q is None else work.Q,
            prototypes=work.V,
            history=history,
            n_iter=iteration,
            converged=converged,
            sums=self._sum_rows() if self.keep_sums else None,
        )
