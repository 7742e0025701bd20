"""The eigenbasis of mapped features that are not in memory all at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from skpml._blocks import RowBlocks
from skpml.linalg import (
    Array,
    lower_gram,
    multiply_flat,
    spectrum_of_gram,
    tall_product,
)

# Curvatures are estimated from one row in so many.
_SAMPLED = 8


@dataclass(frozen=True, kw_only=True)
class BlockSpectrum:
    """What :class:`skpml.linalg.Spectrum` is, for row blocks X: ``Z = (X − mean) @ directions`` is never formed.

    A product with Z is one with X, after the small matrix was multiplied by the directions.
    """

    blocks: RowBlocks
    values: Array
    mean: Array
    directions: Array

    @property
    def n_rows(self) -> int:
        """n."""
        return self.blocks.shape[0]

    def multiply(self, W: Array) -> Array:
        """Compute ``Z W`` for W of shape (r, ...)."""
        coef, shift = self._on_features(W)
        shape = W.shape[1:]
        (found,), _ = self.blocks.visit(lambda X: ((_multiply(X, coef, shift, shape),), ()))
        return self.blocks.from_rows(found)

    def multiply_transposed(self, T: Array) -> Array:
        """Compute ``Zᵀ T`` for T of shape (n, ...)."""
        _, (product, total) = self.blocks.visit(lambda X, rows: ((), _sum_products(X, rows)), T)
        return self._from_features(product, total, T)

    def visit(self, W: Array, work: Callable[..., Any], *arrays: Array | None) -> tuple[Array, list[Any]]:
        """Compute ``Zᵀ T`` and sums in one pass, where ``T, sums = work(Z W, *arrays)`` for each block."""
        coef, shift = self._on_features(W)
        shape = W.shape[1:]

        def visit_block(X: Array, *rows: Array | None) -> tuple[tuple[()], tuple[Any, ...]]:
            T, sums = work(_multiply(X, coef, shift, shape), *rows)
            return (), (*_sum_products(X, T), *sums)

        _, (product, total, *sums) = self.blocks.visit(visit_block, *arrays)
        return self._from_features(product, total, W), sums

    def sum_squares(self, shares: Array) -> Array:
        """Compute ``Σ_k Z_ik² share_k`` (n, s) for shares (r, s)."""
        coef, shift = self._on_features(self._identity())

        def square(X: Array) -> tuple[tuple[Array], tuple[()]]:
            return (((tall_product(X, coef) - shift) ** 2 @ shares),), ()

        (found,), _ = self.blocks.visit(square)
        return self.blocks.from_rows(found)

    def to_rows(self, values: Array) -> Array:
        """Return an array (n, ...) where the rows are."""
        return self.blocks.to_rows(values)

    def sum_curvature(
        self, W: Array, work: Callable[..., Array], *arrays: Array | None
    ) -> tuple[Array, Array]:
        """Estimate :meth:`skpml.linalg.Spectrum.sum_curvature` from every eighth row: Z is more work than a step."""
        coef, shift = self._on_features(W)
        basis, center = self._on_features(self._identity())
        shape = W.shape[1:]

        def visit_block(
            X: Array, chosen: Array, *rows: Array | None
        ) -> tuple[tuple[()], tuple[Array, Array, int]]:
            xp = array_namespace(X)
            if not xp.any(chosen):
                return (), (xp.zeros_like(W), xp.zeros_like(W[0, ...]), 0)
            X, *some = (None if each is None else each[chosen, ...] for each in (X, *rows))
            D = work(_multiply(X, coef, shift, shape), *some)
            squares = (tall_product(X, basis) - center) ** 2
            return (), (multiply_flat(squares.T, D), xp.sum(D, axis=0), X.shape[0])

        # By number, so that the blocks do not decide.
        chosen = self.to_rows(np.arange(self.n_rows) % _SAMPLED == 0)
        _, (of_scores, of_intercept, count) = self.blocks.visit(visit_block, chosen, *arrays)
        weight = self.n_rows / count
        return of_scores * weight, of_intercept * weight

    def express(self, coef: Array, intercept: Array) -> tuple[Array, Array]:
        """Return W (r, ...) and b for which ``Z W + b`` is ``X coef + intercept``, but for directions that Z lacks."""
        xp = array_namespace(coef)
        squared_scale = float(xp.sum(self.directions[:, 0] ** 2))
        W = xp.astype(self.directions, coef.dtype).T @ coef / squared_scale
        return W, intercept + xp.astype(self.mean, coef.dtype) @ coef

    def _on_features(self, W: Array) -> tuple[Array, Array]:
        """Return coefficients of the features (d, k), and what the mean adds to the scores (k)."""
        xp = array_namespace(W)
        flat = xp.astype(xp.reshape(W, (W.shape[0], -1)), self.directions.dtype, copy=False)
        coef = self.directions @ flat
        return coef, self.mean @ coef

    def _from_features(self, product: Array, total: Array, like: Array) -> Array:
        """Return ``Zᵀ T`` from ``Xᵀ T`` (d, k) and the sums of the columns of T (k)."""
        xp = array_namespace(product)
        # Products of single precision are sums in double precision.
        found = xp.astype(self.directions, product.dtype).T @ (product - self.mean[:, None] * total)
        return xp.astype(xp.reshape(found, (-1, *like.shape[1:])), like.dtype, copy=False)

    def _identity(self) -> Array:
        xp = array_namespace(self.directions)
        return xp.eye(self.values.shape[0], dtype=self.directions.dtype, device=device(self.directions))


def spectrum_of_blocks(blocks: RowBlocks) -> BlockSpectrum:
    """Compute the eigenbasis of mapped features, in one pass over them; see :func:`skpml.linalg.spectrum_of`."""
    _, (gram, total) = blocks.visit(_sum_gram)
    xp = array_namespace(gram)
    n, mean = blocks.shape[0], total / blocks.shape[0]
    centered = xp.tril(gram) + xp.tril(gram, k=-1).T - n * mean[:, None] * mean[None, :]
    dtype = blocks.like.dtype
    # Sums within a block have the precision of the features.
    values, directions = spectrum_of_gram(centered, n, smallest=10 * float(xp.finfo(dtype).eps))
    small = {"values": values, "mean": mean, "directions": directions}
    return BlockSpectrum(blocks=blocks, **{name: xp.astype(each, dtype) for name, each in small.items()})


def _sum_gram(X: Array) -> tuple[tuple[()], tuple[Array, Array]]:
    xp = array_namespace(X)
    return (), (xp.astype(lower_gram(X), xp.float64), xp.sum(X, axis=0, dtype=xp.float64))


def _multiply(X: Array, coef: Array, shift: Array, shape: tuple[int, ...]) -> Array:
    xp = array_namespace(X)
    return xp.reshape(tall_product(X, coef) - shift, (X.shape[0], *shape))


def _sum_products(X: Array, T: Array) -> tuple[Array, Array]:
    xp = array_namespace(X)
    flat = xp.astype(xp.reshape(T, (T.shape[0], -1)), X.dtype, copy=False)
    product = xp.astype(tall_product(X, flat, transpose=True), xp.float64)
    return product, xp.sum(flat, axis=0, dtype=xp.float64)
