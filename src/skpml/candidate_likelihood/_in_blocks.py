"""Fits of candidate likelihood to rows that are mapped again on each pass, because they do not fit in memory.

Each member is fitted to as many rows as fit in memory first. From there it takes a few steps with all rows, of which
every one is a pass over them. So the number of passes does not depend on how far the start is from the solution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray

from skpml._blocks import RowBlocks, compute_in_batches, read_rows, store_if_it_fits
from skpml.features import RBFAnchors, transformer_on
from skpml.likelihood import (
    BlockSpectrum,
    Fit,
    Setting,
    fit_settings,
    pilot_covariance,
    spectrum_of_blocks,
    to_probability,
)
from skpml.linalg import Array, rows_at_once, spectrum_of

# Settings that are averaged: a pass costs more with each.
MOST_MEMBERS = 3
# Of the steps with all rows.
_TOL, _MOST_STEPS = 1e-4, {"ridge": 1, "least-squares": 6, "logistic": 30}
# Rows that a member is fitted to first, even if their features need more than the working memory.
_FEWEST_ROWS = 1000


def map_in_blocks(
    scaled: Any, widths: Sequence[float], *, n_anchors: int | None, random_state: Any, device: str | None
) -> tuple[dict[float, RBFAnchors], dict[float, RowBlocks]]:
    """Return feature maps and mapped rows for each kernel width, without the constant; all share their anchors."""
    maps: dict[float, RBFAnchors] = {}
    mapped: dict[float, Any] = {}
    anchors = None
    for width in widths:
        one = RBFAnchors(n_anchors=n_anchors, anchors=anchors, width=width, random_state=random_state)
        maps[width] = one._fit_in_blocks(scaled, device)
        anchors = one.anchors_
        transform = transformer_on(one, scaled.dtype, device)
        mapped[width] = read_rows(scaled, partial(_map_without_constant, transform), anchors.shape[0])
    return maps, mapped


def _map_without_constant(transform: Callable[[Any], Array], rows: Any) -> Array:
    return transform(rows)[:, :-1]


def fit_members(
    blocks: RowBlocks,
    Y: Array,
    members: Sequence[Setting],
    rates: Array,
    *,
    random: np.random.RandomState,
    max_iter: int,
    tol: float,
    device: str | None,
) -> Iterator[tuple[Fit, BlockSpectrum]]:
    """Fit members of one kernel width to some rows in memory, then from there to all rows."""
    tol, xp = max(tol, _TOL), array_namespace(Y)
    if device is not None:
        blocks = store_if_it_fits(blocks, device)
    some = random.permutation(Y.shape[0])[: max(rows_at_once(8 * blocks.shape[1]), _FEWEST_ROWS)]
    labels, first = xp.astype(Y[some, :], xp.float64), spectrum_of(xp.astype(blocks.take(some), xp.float64))
    covariance = pilot_covariance(first, labels, rates, leading=True)
    spectrum, starts = spectrum_of_blocks(blocks), {}
    for fit in fit_settings(
        first, labels, members, rates, covariance, leading=True, max_iter=max_iter, tol=tol
    ):
        coef = first.directions @ fit.coef
        W, b = spectrum.express(coef, fit.intercept - first.mean @ coef)
        starts[fit.setting] = xp.astype(W, Y.dtype), xp.astype(b, Y.dtype)
    del first
    for family in dict.fromkeys(member.family for member in members):
        found = fit_settings(
            spectrum,
            Y,
            [member for member in members if member.family == family],
            xp.astype(rates, Y.dtype),
            xp.astype(covariance, Y.dtype),
            # Least squares keeps targets of all rows for each setting.
            batch=1 if family == "least-squares" else MOST_MEMBERS,
            max_iter=min(max_iter, _MOST_STEPS[family]),
            tol=tol,
            starts=starts,
        )
        yield from ((fit, spectrum) for fit in found)


def probabilities_of(fit: Fit, spectrum: BlockSpectrum) -> NDArray[Any]:
    """Return η of all rows by one member."""
    options: dict[str, Any] = {"family": fit.setting.family, "one_true": fit.setting.one_true}
    return compute_in_batches(
        lambda scores: to_probability(scores + fit.intercept, **options, rates=fit.rates),
        spectrum.multiply(fit.coef),
    )
