"""Solve PML-MA at every point of a grid of weights, with shared work.

Letters as in :mod:`skpml.modal_alignment._updates`. With m = c, Q = I and prototypes that are means, one iteration sees
the features only through two symmetric maps of the pseudo-labels,

    G P1 = H R,  H = G (Xᵀdiag(w)X + γI)⁻¹ Gᵀ,  G = X + αSX        smoothed scores of the classifier
    X V = K R diag(1/mass),  K = XXᵀ                               rows against prototypes

and the objective too: both alignment terms and the classifier's size add up to ``Σ w R² − 2⟨R, HR°⟩ + ⟨R°, HR°⟩``,
where R° are the pseudo-labels that the classifier was fitted to. K depends on no weight, one eigendecomposition of
``Xᵀdiag(w)X`` for each α gives H for every γ, and λ and β affect only thin arrays. R is zero for non-candidates, so that
label j needs only the rows of H and K that have it as a candidate: one matrix product serves that label at all points of
equal α and γ.

Entries of R that are known to be 1 are kept there by the lower bound of the candidates' values.

Every point starts from the candidates and makes the same iterations as a single fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, product
from math import ceil
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.utils import Bunch

from skpml.linalg import one_blas, singular_value_threshold, sparse_operator, squared_row_norms
from skpml.modal_alignment._solver import Weights

Floats = NDArray[np.floating[Any]]

# Approximate memory limit for the maps of the points that iterate together, and for their label matrices.
_BYTES_TOGETHER = 2 << 30
# Bytes per cell of the label matrix that an iterating point keeps or needs temporarily.
_BYTES_PER_CELL = 40
# Steps of R are multiplied in single precision if the tolerance is larger than this.
_COARSE_TOLERANCE = 1e-5
# Fewer points than this are multiplied including zeros: selecting the rows of each label would cost more.
_MANY_POINTS = 4
# Expected iterations per point, for the choice between two ways to multiply.
_USUAL_ITERATIONS = 20


def solve_grid(
    X: Floats,
    Y: Floats,
    similarity: Any = None,
    *,
    low_rank_weight: Sequence[float],
    alignment_weight: Sequence[float],
    prototype_weight: Sequence[float],
    ridge_weight: Sequence[float],
    known_true: Floats | None = None,
    max_iter: int = 50,
    tol: float = 1e-3,
) -> Iterator[Bunch]:
    """Minimize PML-MA's objective at every combination of weights, and yield the points as they finish.

    Results are named as in :class:`~skpml.modal_alignment.Solution`, with the ``weights`` of the point.

    Equal to :func:`skpml.modal_alignment.solve` at each point, with the label basis kept at the identity, prototypes that
    are means and the full common space (m = c ≤ d), at a fraction of the cost. Every ridge weight must be above 0. With
    ``tol`` above 1e-5 the change of R from one iteration to the next is multiplied in single precision and accumulated in
    double precision, so that results agree to about five digits; below, to rounding errors of double precision.
    """
    if X.shape[1] < Y.shape[1]:
        raise ValueError(
            f"The shared grid needs d >= c, got d = {X.shape[1]} features and c = {Y.shape[1]} labels."
        )
    if min(ridge_weight, default=1.0) <= 0:
        raise ValueError(f"The shared grid needs ridge_weight above 0, got {min(ridge_weight):g}.")
    X, Y = np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64)
    with one_blas(X):
        shared = _Shared(X, Y, np.float32 if tol > _COARSE_TOLERANCE else np.float64, known_true)
        inner = list(product(low_rank_weight, prototype_weight))
        if any(prototype_weight):
            shared.multiply_by_gram(len(inner) * len(alignment_weight) * len(ridge_weight))
        ridges_together, points_together = shared.room(len(ridge_weight))
        groups = np.array_split(
            np.asarray(ridge_weight, dtype=np.float64), ceil(len(ridge_weight) / ridges_together)
        )
        for alpha in alignment_weight:
            side = _FeatureSide(shared, similarity, alpha)
            for ridges in groups:
                yield from _solve_ridges(side, ridges.tolist(), inner, points_together, max_iter, tol)


def _solve_ridges(
    side: _FeatureSide,
    ridges: list[float],
    inner: list[tuple[float, float]],
    points_together: int,
    max_iter: int,
    tol: float,
) -> Iterator[Bunch]:
    """Solve all points of one α and some γ. In a function, so that the maps are freed before the next ones are formed."""
    classifiers = [_Classifier(side, ridge, len(inner)) for ridge in ridges]
    points = [(classifier, *weights) for classifier in classifiers for weights in inner]
    for start in range(0, len(points), points_together):
        yield from _iterate(side.shared, points[start : start + points_together], max_iter, tol)


class _Shared:
    """What depends on no weight. Label matrices are c×n, so that rows of the products are contiguous."""

    def __init__(self, X: Floats, Y: Floats, step_dtype: Any, known_true: Floats | None = None) -> None:
        self.X, self.step_dtype = X, np.dtype(step_dtype)
        self.Yt = np.ascontiguousarray(Y.T)
        # The candidates, label by label: their places in the flat c×n matrix, and their rows.
        self.places = np.flatnonzero(self.Yt)
        self.rows = self.places % Y.shape[0]
        self.ends = np.cumsum(np.count_nonzero(self.Yt, axis=1))
        # The least values of R: 1 for candidates that are known to be true.
        self.least: Any = 0 if known_true is None else known_true.T.ravel()[self.places]
        self.squared_norms = squared_row_norms(X)
        self.gram_map: _SymmetricMap | None = None

    def multiply_by_gram(self, n_points: int) -> None:
        """Prepare products with K, and the product with the candidates, from which every point starts."""
        self.gram_map = _SymmetricMap(self.X, self, n_points)
        self.gram_of_candidates = (self.X @ (self.X.T @ self.Yt.T)).T.copy()

    def by_label(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """Split values of the candidates (last axis) by label."""
        return np.split(values, self.ends[:-1], axis=-1)

    def map_bytes(self) -> int:
        """Return the memory of the rows of a whole n×n map, gathered label by label."""
        return self.Yt.shape[1] * len(self.places) * self.step_dtype.itemsize

    def room(self, n_ridges: int) -> tuple[int, int]:
        """Return how many values of γ, and how many points, may iterate together."""
        ridges = max(1, min(n_ridges, _BYTES_TOGETHER // max(1, self.map_bytes()) - 1))
        return ridges, max(1, _BYTES_TOGETHER // (self.Yt.size * _BYTES_PER_CELL))


class _SymmetricMap:
    """Products of pseudo-labels with ``F Fᵀ`` for a factor F (n×r): by F twice or by the whole, whichever is cheaper."""

    def __init__(self, factor: Floats, shared: _Shared, n_points: int) -> None:
        (n, r), c = factor.shape, shared.Yt.shape[0]
        filled, products = len(shared.places), n_points * _USUAL_ITERATIONS
        whole_cost = n * n * r + products * n * filled
        thin_cost = products * r * (filled + n * c)
        self.is_whole = whole_cost < thin_cost and shared.map_bytes() <= _BYTES_TOGETHER // 2
        self.rows = shared.by_label(shared.rows)
        self.factor = np.ascontiguousarray(factor, dtype=shared.step_dtype)
        if self.is_whole:
            whole = self.factor @ self.factor.T
            # Several times faster than indexing.
            self.blocks = [whole.take(rows, axis=0) for rows in self.rows]
            del self.factor
        else:
            self.transposed = np.ascontiguousarray(self.factor.T)

    def multiply(self, steps: list[Floats], out: Floats) -> None:
        """``out[p, j] = F Fᵀ s`` for the step s of label j at point p, given on the rows that have the label."""
        if self.is_whole:
            for label, step in enumerate(steps):
                np.matmul(step, self.blocks[label], out=out[:, label])
        elif len(steps[0]) < _MANY_POINTS:
            spread = np.zeros_like(out)
            for label, step in enumerate(steps):
                spread[:, label, self.rows[label]] = step
            flat = out.reshape(-1, out.shape[2])
            np.matmul(spread.reshape(flat.shape) @ self.factor, self.transposed, out=flat)
        else:
            for label, step in enumerate(steps):
                picked = step @ self.factor.take(self.rows[label], axis=0)
                np.matmul(picked, self.transposed, out=out[:, label])


class _FeatureSide:
    """G and the eigenbasis of ``Xᵀdiag(w)X`` for one α."""

    def __init__(self, shared: _Shared, similarity: Any, alpha: float) -> None:
        X = shared.X
        self.shared, self.alpha = shared, alpha
        w, self.largest_degree, smoothed = np.ones(X.shape[0]), 0.0, X
        if similarity is not None and alpha > 0:
            apply = sparse_operator(similarity, X)
            degrees = apply(np.ones((X.shape[0], 1)))[:, 0]
            w, self.largest_degree = 1 + alpha * degrees, float(degrees.max())
            smoothed = X + alpha * apply(X)
        weighted = X * np.sqrt(w)[:, None]
        values, self.basis = scipy.linalg.eigh(
            weighted.T @ weighted, driver="evd", overwrite_a=True, check_finite=False
        )
        # Negative eigenvalues of a Gram matrix are rounding errors.
        self.values = np.clip(values, 0.0, None)
        self.rotated = smoothed @ self.basis
        self.row_weights = w[shared.rows]


class _Classifier:
    """H for one α and one γ, and the classifier of given pseudo-labels."""

    def __init__(self, side: _FeatureSide, gamma: float, n_points: int) -> None:
        self.side, self.gamma = side, gamma
        factor = side.rotated / np.sqrt(side.values + gamma)
        self.smoother = _SymmetricMap(factor, side.shared, n_points)
        self.smoothed_candidates = (factor @ (factor.T @ side.shared.Yt.T)).T.copy()

    def coef(self, pseudo_labels: list[Floats]) -> Floats:
        """P1 at many points: ``(Xᵀdiag(w)X + γI)⁻¹ Gᵀ R``, points×d×c; R by label, points×candidates."""
        side = self.side
        parts = [
            values @ side.rotated.take(rows, axis=0)
            for values, rows in zip(pseudo_labels, side.shared.by_label(side.shared.rows), strict=True)
        ]
        rotated = np.stack(parts, axis=1)
        rotated /= side.values + self.gamma
        return np.swapaxes(rotated @ side.basis.T, 1, 2)


def _iterate(
    shared: _Shared, weights: list[tuple[_Classifier, float, float]], max_iter: int, tol: float
) -> Iterator[Bunch]:
    """Iterate points of equal α together, each until its own stopping rule is met."""
    points = [_Point(shared, *chosen) for chosen in weights]
    active = points
    for iteration in range(max_iter):
        if iteration:
            _multiply_steps(shared, active)
        for point in active:
            point.step(tol)
        active = [point for point in active if not point.converged]
        if not active:
            break
    for classifier, group in groupby(points, key=lambda point: point.classifier):
        finished = list(group)
        coefs = classifier.coef(shared.by_label(np.stack([point.previous for point in finished])))
        for point, coef in zip(finished, coefs, strict=True):
            yield point.result(np.ascontiguousarray(coef))


def _multiply_steps(shared: _Shared, active: list[_Point]) -> None:
    """Add H and K times the last change of R to the products of each point."""
    for classifier, group in groupby(active, key=lambda point: point.classifier):
        points = list(group)
        for point, part in zip(points, _products(shared, classifier.smoother, points), strict=True):
            point.smoothed += part
    beside = [point for point in active if point.beta]
    if beside and shared.gram_map is not None:
        for point, part in zip(beside, _products(shared, shared.gram_map, beside), strict=True):
            point.gram_labels += part


def _products(shared: _Shared, symmetric_map: _SymmetricMap, points: list[_Point]) -> Floats:
    changes = np.stack([point.values - point.previous for point in points]).astype(shared.step_dtype)
    out = np.empty((len(points), *shared.Yt.shape), shared.step_dtype)
    symmetric_map.multiply([np.ascontiguousarray(part) for part in shared.by_label(changes)], out)
    return out


class _Point:
    """State of one point: R as the values of the candidates, label by label, and HR and KR as c×n matrices."""

    def __init__(self, shared: _Shared, classifier: _Classifier, lam: float, beta: float) -> None:
        self.shared, self.classifier, self.lam, self.beta = shared, classifier, lam, beta
        self.values = self.previous = np.ones(len(shared.places))
        self.smoothed = classifier.smoothed_candidates.copy()
        self.gram_labels = shared.gram_of_candidates.copy() if beta else np.empty(0)
        self.row_sums = shared.Yt.sum(axis=0)
        self.labels = shared.Yt
        self.objective: list[float] = []
        self.converged = False

    def step(self, tol: float) -> None:
        """Make a proximal gradient step in R, with the classifier and prototypes of the current R."""
        shared, side, old = self.shared, self.classifier.side, self.values
        curvature = 2 + side.alpha * side.largest_degree
        if self.beta:
            mass = self.labels.sum(axis=1)
            # A label without confidence has the zero prototype.
            shares = np.divide(1.0, mass, out=np.zeros_like(mass), where=mass > 0)
            between = (self.gram_labels @ self.labels.T) * np.outer(shares, shares)
            between = (between + between.T) / 2
            curvature += self.beta * float(np.linalg.eigvalsh(between)[-1])
        length = 1 / curvature
        Z = length * self.smoothed
        if self.beta:
            pull = self.gram_labels * (self.beta * length * self.row_sums)
            pull *= shares[:, None]
            Z += pull
            Z -= (self.beta * length * between) @ self.labels
        Z.ravel()[shared.places] += old + length * (1 - (1 + side.row_weights) * old)
        Z = singular_value_threshold(Z, self.lam * length / 2)
        self.previous, self.values = old, np.clip(Z.take(shared.places), shared.least, 1)
        self.labels = np.zeros_like(Z)
        self.labels.ravel()[shared.places] = self.values
        self.row_sums = np.bincount(shared.rows, self.values, len(self.row_sums))
        gram = self.labels @ self.labels.T

        new, scores = self.values, self.smoothed.take(shared.places)
        value = float(side.row_weights @ new**2 + scores @ (old - 2 * new)) + float(np.sum((1 - new) ** 2))
        if self.lam:
            value += self.lam * float(np.sqrt(np.clip(np.linalg.eigvalsh(gram), 0, None)).sum())
        if self.beta:
            cross = self.gram_labels.take(shared.places) * new * self.row_sums[shared.rows]
            crosses = np.add.reduceat(np.append(cross, 0.0), np.append(0, shared.ends[:-1]))
            value += self.beta * (
                float(self.row_sums**2 @ shared.squared_norms)
                - 2 * float(shares @ crosses)
                + float(np.vdot(between, gram))
            )
        if self.objective and tol > 0:
            self.converged = abs(value - self.objective[-1]) <= tol * abs(self.objective[-1])
        self.objective.append(value)

    def result(self, coef: Floats) -> Bunch:
        """The classifier belongs to the pseudo-labels before the last step, as in a single fit."""
        side = self.classifier.side
        return Bunch(
            weights=Weights(
                low_rank_weight=self.lam,
                alignment_weight=side.alpha,
                prototype_weight=self.beta,
                ridge_weight=self.classifier.gamma,
            ),
            coef=coef,
            pseudo_labels=self.labels.T.copy(),
            objective=self.objective,
            n_iter=len(self.objective),
            converged=self.converged,
        )
