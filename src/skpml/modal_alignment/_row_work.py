"""What PML-MA does with a block of rows, for :meth:`skpml._blocks.RowBlocks.visit`.

Letters as in :mod:`skpml.modal_alignment._updates`. Every function takes the features of some rows, if it needs them, and
the same rows of thin arrays, and returns new rows and sums over rows. Besides, it knows only small matrices, so that it
can be sent to wherever the rows are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from array_api_compat import array_namespace

from skpml.linalg import Array, lower_gram, squared_row_norms, tall_product
from skpml.modal_alignment import _updates as updates

# Rows of new thin arrays, and sums over rows.
Found = tuple[tuple[Array, ...], tuple[Any, ...]]

# How many times the authors' program counts the candidates in the gradient of the decomposition.
_RELEASED_PULL = 2.0


@dataclass
class RowWork:
    """The terms of a fit, their weights, and its small matrices: P1 (d×m), P2 (c×m), Q (c×c) and V (d×c).

    P2 and Q are None if they are the identity. ``tall`` says that there are at least as many rows as labels.
    """

    aligns: bool
    decomposes: bool
    released: bool
    mean_prototypes: bool
    tall: bool
    lam: float
    alpha: float
    beta: float
    P1: Array = None
    P2: Array | None = None
    Q: Array | None = None
    V: Array = None

    def project(self, R: Array) -> Array:
        """``R P2``."""
        return R if self.P2 is None else R @ self.P2

    def back_project(self, M: Array) -> Array:
        """``M P2ᵀ``."""
        return M if self.P2 is None else M @ self.P2.T

    def sum_targets(
        self, X: Array, R: Array, SR: Array | None, *, projection: bool, prototypes: bool
    ) -> Found:
        """Right-hand sides of P1 and V, side by side, and the size of R that V is divided by."""
        xp = array_namespace(X)
        smoothed = R if SR is None else R + self.alpha * SR
        targets = [self.project(smoothed)] if projection else []
        if not prototypes:
            return (), (tall_product(X, targets[0], transpose=True),)
        targets.append(R if self.mean_prototypes else xp.sum(R, axis=1)[:, None] * R)
        sides = tall_product(X, xp.concat(targets, axis=1), transpose=True)
        return (), (sides, xp.sum(R, axis=0) if self.mean_prototypes else lower_gram(R))

    def step(self, R: Array, Y: Array, XP1: Array, w: Array | None, XV: Array, *, lipschitz: float) -> Found:
        """A gradient step in R, and its Gram matrix; ``XP1`` is smoothed over the graph."""
        xp = array_namespace(R)
        gradient = xp.zeros_like(R)
        if self.aligns:
            gradient = gradient + updates.alignment_gradient(R, self.P2, self.back_project(XP1), w)
        if self.decomposes:
            pull = _RELEASED_PULL if self.released else 1.0
            gradient = gradient + updates.decomposition_gradient(R, Y, self.Q, pull)
        if self.beta:
            row_sums = xp.sum(R, axis=1)
            gradient = gradient + self.beta * updates.prototype_gradient(R, self.V, XV, row_sums)
        Z = R - 2 * gradient / lipschitz
        return (Z,), (Z.T @ Z,) if self.lam and self.tall else ()

    def finish_step(
        self, Z: Array, R: Array, Y: Array, known_true: Array | None, *, shrink: Array | None
    ) -> Found:
        """Shrink the singular values of the step, and keep it in the box."""
        stepped = Z if shrink is None else Z @ shrink
        if self.released:
            return (updates.released_pseudo_labels(R, stepped, Y, known_true),), ()
        return keep_in_box(stepped, Y, known_true)

    def sum_losses(
        self,
        R: Array,
        SR: Array | None,
        Y: Array,
        XP1: Array,
        XV: Array,
        degrees: Array | None,
        squared_norms: Array | None,
    ) -> Found:
        """Global and local alignment, decomposition and prototypes, without their weights; then ``RᵀR``."""
        found = [0.0] * 4
        if self.aligns:
            labels = self.project(R)
            found[0] = updates.total((XP1 - labels) ** 2)
            if SR is not None:
                found[1] = updates.local_alignment_loss(XP1, labels, self.project(SR), degrees)
        if self.decomposes:
            found[2] = updates.decomposition_loss(Y, R, self.Q)
        if self.beta:
            found[3] = updates.prototype_loss(R, self.V, XV, squared_norms)
        return (), (*found, *((R.T @ R,) if self.lam and self.tall else ()))


@dataclass(frozen=True, kw_only=True)
class Sums:
    """All that a fit needs of rows whose pseudo-labels stay as they are.

    Parameters
    ----------
    gram : array of shape (d, d)
        ``Xᵀdiag(w)X``, of which only the lower triangle counts; in double precision.
    targets : array of shape (d, c)
        ``Xᵀ(I + αS)R``.
    members : array of shape (d, c)
        Numerator of the prototypes, ``XᵀR`` or ``XᵀDR``.
    size : array of shape (c,) or (c, c)
        Their denominator, the sums of the columns of R or ``RᵀR``.
    label_gram, weighted_label_gram, overlap : array of shape (c, c)
        ``RᵀR``, ``Rᵀdiag(w)R`` and ``YᵀR``.
    """

    gram: Array
    targets: Array
    members: Array
    size: Array
    label_gram: Array
    weighted_label_gram: Array
    overlap: Array

    def map(self, convert: Callable[[Array], Array]) -> Sums:
        """Return these sums with every array converted."""
        return Sums(**{name: convert(value) for name, value in vars(self).items()})

    def __add__(self, other: Sums) -> Sums:
        return Sums(**{name: value + getattr(other, name) for name, value in vars(self).items()})


def sum_features(X: Array, R: Array, SR: Array | None, *, alpha: float, mean_prototypes: bool) -> Found:
    """``Xᵀ(I + αS)R``, and the numerator of the prototypes."""
    xp = array_namespace(X)
    smoothed = R if SR is None else R + alpha * SR
    members = R if mean_prototypes else xp.sum(R, axis=1)[:, None] * R
    sides = tall_product(X, xp.concat([smoothed, members], axis=1), transpose=True)
    return (), (sides[:, : R.shape[1]], sides[:, R.shape[1] :])


def sum_labels(R: Array, Y: Array, w: Array | None) -> Found:
    """The sums of the columns of R, ``RᵀR``, ``Rᵀdiag(w)R`` and ``YᵀR``."""
    weighted = R if w is None else R * w[:, None]
    return (), (array_namespace(R).sum(R, axis=0), R.T @ R, R.T @ weighted, Y.T @ R)


def measure_rows(X: Array) -> Found:
    """``‖x_i‖²``."""
    return (squared_row_norms(X),), ()


def multiply_rows(X: Array, *, matrix: Array, split: int) -> Found:
    """``X M`` for the first columns of M, and for the others."""
    products = tall_product(X, matrix)
    return (products[:, :split], products[:, split:]), ()


def add_neighbors(M: Array, SM: Array, *, alpha: float) -> Found:
    """``M + αSM``."""
    return (M + alpha * SM,), ()


def sum_product(A: Array, B: Array) -> Found:
    """``AᵀB``."""
    return (), (A.T @ B,)


def sum_label_products(R: Array, smoothed: Array, w: Array | None) -> Found:
    """``Rᵀdiag(w)R`` and ``RᵀG P1``."""
    weighted = R if w is None else R * w[:, None]
    return (), (R.T @ weighted, R.T @ smoothed)


def keep_in_box(R: Array, Y: Array, known_true: Array | None) -> Found:
    """The nearest R in the box."""
    return (updates.project_to_box(R, Y, known_true),), ()
