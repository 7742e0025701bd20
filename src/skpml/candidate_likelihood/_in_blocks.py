"""Fits of candidate likelihood to rows that are mapped again on each pass, because they do not fit in memory.

Each member is fitted to as many rows as fit in memory first. From there it takes a few steps with all rows, of which
every one is a pass over them. So the number of passes does not depend on how far the start is from the solution.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpml._blocks import RowBlocks, read_rows
from skpml.features import RBFAnchors
from skpml.likelihood import (
    BlockSpectrum,
    Fit,
    Setting,
    fit_settings,
    pilot_covariance,
    spectrum_of_blocks,
    to_probability,
)
from skpml.linalg import rows_at_once, spectrum_of

# Settings that are averaged: a pass costs more with each.
MOST_MEMBERS = 3
# Of the steps with all rows.
_TOL, _MOST_STEPS = 1e-4, {"ridge": 1, "least-squares": 6, "logistic": 30}


def map_in_blocks(
    scaled: Any, widths: Sequence[float], *, n_anchors: int | None, random_state: Any
) -> tuple[dict[float, RBFAnchors], dict[float, RowBlocks]]:
    """Return feature maps and mapped rows for each kernel width, without the constant; all share their anchors."""
    maps: dict[float, RBFAnchors] = {}
    mapped: dict[float, Any] = {}
    anchors = None
    for width in widths:
        one = RBFAnchors(n_anchors=n_anchors, anchors=anchors, width=width, random_state=random_state)
        maps[width] = one._fit_in_blocks(scaled)
        anchors = one.anchors_
        mapped[width] = read_rows(scaled, partial(_map_without_constant, one), anchors.shape[0])
    return maps, mapped


def _map_without_constant(feature_map: RBFAnchors, rows: Any) -> NDArray[Any]:
    return feature_map.transform(rows)[:, :-1]


def fit_members(
    blocks: RowBlocks,
    Y: NDArray[Any],
    members: Sequence[Setting],
    rates: NDArray[Any],
    *,
    random: np.random.RandomState,
    max_iter: int,
    tol: float,
) -> Iterator[tuple[Fit, BlockSpectrum]]:
    """Fit members of one kernel width to some rows in memory, then from there to all rows."""
    tol = max(tol, _TOL)
    some = random.permutation(len(Y))[: rows_at_once(8 * blocks.shape[1])]
    labels, first = Y[some].astype(np.float64), spectrum_of(blocks.take(some).astype(np.float64))
    covariance = pilot_covariance(first, labels, rates, leading=True)
    spectrum, starts = spectrum_of_blocks(blocks), {}
    for fit in fit_settings(
        first, labels, members, rates, covariance, leading=True, max_iter=max_iter, tol=tol
    ):
        coef = first.directions @ fit.coef
        W, b = spectrum.express(coef, fit.intercept - first.mean @ coef)
        starts[fit.setting] = W.astype(Y.dtype), b.astype(Y.dtype)
    del first
    for family in dict.fromkeys(member.family for member in members):
        found = fit_settings(
            spectrum,
            Y,
            [member for member in members if member.family == family],
            rates.astype(Y.dtype),
            covariance.astype(Y.dtype),
            # Least squares keeps targets of all rows for each setting.
            batch=1 if family == "least-squares" else MOST_MEMBERS,
            max_iter=min(max_iter, _MOST_STEPS[family]),
            tol=tol,
            starts=starts,
        )
        yield from ((fit, spectrum) for fit in found)


def probabilities_of(fit: Fit, spectrum: BlockSpectrum) -> NDArray[Any]:
    """Return η of all rows by one member."""
    setting, scores = fit.setting, spectrum.multiply(fit.coef) + fit.intercept
    return np.asarray(
        to_probability(scores, family=setting.family, one_true=setting.one_true, rates=fit.rates)
    )
