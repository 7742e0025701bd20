"""One way to fit the likelihood: which family, how smooth, how much noise; and the fit of many ways at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import NDArray

from skpml.likelihood._least_squares import solve_least_squares
from skpml.likelihood._logistic import label_covariance, solve_logistic
from skpml.likelihood._noise_model import given_one, sigmoid
from skpml.linalg import Array, Spectrum, ridge_scores

Family = Literal["ridge", "least-squares", "logistic"]

# Ridge weights among which the anchor of the noise rates chooses, and the bounds of the rates.
_ANCHOR_WEIGHTS = (1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_PILOT_WEIGHT = 0.1
# Where linear scores begin to bend, and the exponent at which they end.
_STRAIGHT, _DEEPEST = 1e-2, 25.0
_LEAST_RATE, _MOST_RATE = 1e-5, 0.985
# Labels with fewer candidates say nothing about a rate, and models have hardly seen them.
ENOUGH_CANDIDATES = 10


@dataclass(frozen=True, order=True)
class Setting:
    """What has to be decided before a fit.

    Attributes
    ----------
    family : {"ridge", "least-squares", "logistic"}
        Ridge regression on the candidates; linear probabilities; linear logits with a label covariance.
    one_true : bool
        Whether each row with candidates has a true label for sure.
    width : float
        Of the kernel, relative to its default.
    gamma : float
        Weight of the size of the coefficients.
    noise : float
        Odds of a false label to be a candidate, relative to those of the anchor (:func:`noise_anchor`).
    """

    family: Family
    one_true: bool
    width: float
    gamma: float
    noise: float


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A fitted setting.

    Attributes
    ----------
    coef : (r, c)
        In the basis of the spectrum.
    intercept, rates : (c,)
        rates are ρ.
    history : list of float
        The penalised log-likelihood, or the largest change of a target, in each step; one zero where there are none.
    converged : bool
    """

    setting: Setting
    coef: Array
    intercept: Array
    rates: Array
    history: list[float]
    converged: bool

    def probabilities(self, Z: Array) -> Array:
        """η of rows in the basis of the spectrum."""
        scores = Z @ self.coef + self.intercept
        return to_probability(
            scores, family=self.setting.family, one_true=self.setting.one_true, rates=self.rates
        )


def to_probability(scores: Array, *, family: Family, one_true: bool, rates: Array) -> Array:
    """η from what a family is linear in."""
    xp = array_namespace(scores)
    if family == "logistic":
        eta = sigmoid(scores)
        everywhere = xp.ones((1, 1), dtype=xp.bool, device=device(scores))
        return given_one(eta, everywhere) if one_true else eta
    if family == "ridge":
        # These are chances to be a candidate.
        scores = (scores - rates) / (1 - rates)
    # Linear, but for the ends: there it bends, and never reaches 0 or 1.
    low, high = _STRAIGHT, 1 - _STRAIGHT
    below = xp.exp(xp.clip(scores / low - 1, -_DEEPEST, 0.0))
    above = xp.exp(xp.clip((high - scores) / low, -_DEEPEST, 0.0))
    return xp.where(scores < low, low * below, xp.where(scores > high, 1 - low * above, scores))


def noise_anchor(spectrum: Spectrum, Y: Array) -> Array:
    """A rate of false candidates, the same for each label (c), from the rows that surely lack a label.

    By ridge regression without the row: see :func:`left_out_chances` and :func:`clear_negative_rate`.
    """
    return clear_negative_rate(left_out_chances(spectrum, Y), Y)


def left_out_chances(spectrum: Spectrum, Y: Array) -> Array:
    """Chance of each label to be a candidate (n×c), by the best ridge regression without the row."""
    xp = array_namespace(Y)
    best, chances = None, None
    for weight in _ANCHOR_WEIGHTS:
        gamma = xp.asarray([weight], dtype=Y.dtype, device=device(Y))
        left_out = ridge_scores(spectrum, Y[:, None, :], gamma)[2][:, 0, :]
        error = float(xp.mean((left_out - Y) ** 2))
        if best is None or error < best:
            best, chances = error, left_out
    return chances


def clear_negative_rate(chances: Array, Y: Array) -> Array:
    """ρ, the same for each label (c), from chances to be a candidate (n×c) of rows that had no part in finding them.

    A row without the label carries it as a false candidate at the rate ρ. So does the half of the rows that looks least
    like having it, as far as it has not: how often these rows are candidates is counted, since chances themselves
    scatter, and their low end with them. Labels that many rows have, or that the features hardly tell, come out too high:
    the lower quartile over the labels is taken. A rate for each label of its own lets noise in, and ranked worse. Labels
    with a handful of candidates have no rate to count, and are passed over where there are others.
    """
    xp = array_namespace(chances)
    middle = xp.sort(chances, axis=0)[(chances.shape[0] - 1) // 2, :]
    unlike = xp.astype(chances <= middle, Y.dtype)
    rates = xp.sum(unlike * Y, axis=0) / xp.sum(unlike, axis=0)
    counted = xp.sum(Y, axis=0) >= ENOUGH_CANDIDATES
    told = rates[counted] if bool(xp.any(counted)) else rates
    return xp.ones_like(rates) * xp.clip(_lower_quartile(told), _LEAST_RATE, _MOST_RATE)


def _lower_quartile(values: Array) -> Array:
    """Along the first axis, linear between neighbours."""
    xp = array_namespace(values)
    ranked = xp.sort(values, axis=0)
    below, share = divmod((values.shape[0] - 1) / 4, 1)
    above = min(int(below) + 1, values.shape[0] - 1)
    return (1 - share) * ranked[int(below), ...] + share * ranked[above, ...]


def fit_settings(
    spectrum: Spectrum,
    Y: Array,
    settings: Sequence[Setting],
    anchor: Array,
    covariance: Array | None = None,
    *,
    batch: int = 16,
    max_iter: int = 200,
    tol: float = 1e-5,
) -> Iterator[Fit]:
    """Fit settings of one kernel width, those of a family together, at most ``batch`` at a time.

    Memory for ``batch`` times the scores, whatever the number of settings. ``covariance`` is :func:`pilot_covariance`,
    where it is at hand.
    """
    xp = array_namespace(Y)
    where = {"dtype": Y.dtype, "device": device(Y)}
    occupied = xp.any(Y > 0, axis=1)[:, None, None]
    for (family, one_true), alike in groupby(sorted(settings), key=lambda s: (s.family, s.one_true)):
        waiting = list(alike)
        marked = occupied if one_true else None
        for start in range(0, len(waiting), batch):
            some = waiting[start : start + batch]
            gamma = xp.asarray([setting.gamma for setting in some], **where)
            rates = xp.stack([noise_rates(anchor, setting.noise) for setting in some])
            history: list[list[float]] = [[0.0]] * len(some)
            converged = [True] * len(some)
            if family == "ridge":
                targets = xp.broadcast_to(Y[:, None, :], (Y.shape[0], len(some), Y.shape[1]))
                coef, intercept, _ = ridge_scores(spectrum, targets, gamma)
            elif family == "least-squares":
                squares = solve_least_squares(spectrum, Y, gamma=gamma, rho=rates, one_true=marked)
                coef, intercept = squares.coef, squares.intercept
                history, converged = squares.history, squares.converged
            else:
                if covariance is None:
                    covariance = pilot_covariance(spectrum, Y, anchor)
                logistic = solve_logistic(
                    spectrum, Y, gamma=gamma, rho=rates, one_true=marked, covariance=covariance,
                    max_iter=max_iter, tol=tol,
                )  # fmt: skip
                coef, intercept = logistic.coef, logistic.intercept
                history, converged = logistic.history, logistic.converged
            for place, setting in enumerate(some):
                yield Fit(
                    setting=setting,
                    coef=coef[:, place, :],
                    intercept=intercept[place, :],
                    rates=rates[place, :],
                    history=history[place],
                    converged=converged[place],
                )


def is_auto(value: Any) -> bool:
    """Whether a parameter leaves its value to be chosen."""
    return isinstance(value, str) and value == "auto"


def check_at_least_one(given: Any) -> None:
    """Refuse what a parameter ``at_least_one`` cannot be."""
    if not (isinstance(given, bool | np.bool_) or is_auto(given)):
        raise ValueError(f'at_least_one must be True, False or "auto", got {given!r}.')


def known_rates(given: Any, n_labels: int) -> NDArray[np.float64] | None:
    """Noise rates that a parameter ``noise_rate`` gives, one a label; None where they are to be found."""
    if is_auto(given):
        return None
    try:
        rates = np.broadcast_to(np.asarray(given, dtype=np.float64), (n_labels,)).copy()
    except (TypeError, ValueError):
        rates = np.full(n_labels, np.nan)
    if not ((rates >= 0) & (rates < 1)).all():
        raise ValueError(
            f'noise_rate must be "auto", a number from 0 to below 1, or one for each of the {n_labels} labels, '
            f"got {given!r}."
        )
    return rates


def noise_rates(anchor: Array, noise: float) -> Array:
    """ρ: the anchor with ``noise`` times its odds, within bounds."""
    return array_namespace(anchor).clip(
        noise * anchor / (1 - anchor + noise * anchor), _LEAST_RATE, _MOST_RATE
    )


def pilot_covariance(spectrum: Spectrum, Y: Array, anchor: Array) -> Array:
    """The label covariance, from a first quick fit."""
    xp = array_namespace(Y)
    weight = xp.asarray([_PILOT_WEIGHT], dtype=Y.dtype, device=device(Y))
    quick = solve_least_squares(spectrum, Y, gamma=weight, rho=noise_rates(anchor, 1.0)[None, :])
    return label_covariance(quick.targets[:, 0, :])
