"""One way to fit the likelihood, the fit of many ways at a time, and what is done before and after a fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

import numpy as np
from array_api_compat import array_namespace, device
from numpy.typing import NDArray
from sklearn.utils import Bunch, gen_batches

from skpml.likelihood._leading import (
    approximate_least_squares,
    solve_leading_least_squares,
    solve_leading_logistic,
)
from skpml.likelihood._noise import bend, given_one, scale_odds, sigmoid
from skpml.likelihood._solvers import label_covariance, solve_least_squares, solve_logistic, targets_of
from skpml.linalg import Array, Spectrum, ridge_coefficients, ridge_scores, rows_at_once

Family = Literal["ridge", "least-squares", "logistic"]

# Ridge weights among which the scores for noise rates and for votes are chosen.
RIDGE_WEIGHTS = (1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
# Of the quick fit that the label covariance is taken from.
_PILOT_WEIGHT, _PILOT_TOL = 0.1, 1e-4
# Probability that any two of all labels look nested although they are independent.
_NESTED_BY_CHANCE = 0.01
# With this many rows and no exception, exceptions are rarer than one in twenty (at 95 %).
_FEWEST_NESTED_ROWS = 60
# The inner label stays below the outer one by at least this factor, also in single precision.
_BELOW = 1 - 1e-6


@dataclass(frozen=True, order=True)
class Setting:
    """What has to be decided before a fit.

    Families: ridge regression on the candidates; linear probabilities (least squares); linear logits with a label
    covariance. ``one_true``: each row with candidates is assumed to have a true label. ``width`` is the kernel width
    relative to its default, ``noise`` the odds of the noise rate relative to those of the estimate, and ``gamma`` the
    weight of the size of the coefficients.
    """

    family: Family
    one_true: bool
    width: float
    gamma: float
    noise: float


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A fitted setting: coef (r, c) in the basis of the spectrum, intercept and noise rates (c), and its course."""

    setting: Setting
    coef: Array
    intercept: Array
    rates: Array
    history: list[float]
    converged: bool

    def probabilities(self, Z: Array) -> Array:
        """Return η of rows in the basis of the spectrum."""
        scores, one_true = Z @ self.coef + self.intercept, self.setting.one_true
        return to_probability(scores, family=self.setting.family, one_true=one_true, rates=self.rates)


def to_probability(scores: Array, *, family: Family, one_true: bool, rates: Array) -> Array:
    """Map what a family is linear in to η."""
    if family == "logistic":
        eta = sigmoid(scores)
        xp = array_namespace(scores)
        return given_one(eta, xp.ones((1, 1), dtype=xp.bool, device=device(scores))) if one_true else eta
    # Ridge regression predicts candidates.
    return bend((scores - rates) / (1 - rates) if family == "ridge" else scores)


def fit_settings(
    spectrum: Any,
    Y: Array,
    settings: Sequence[Setting],
    rates: Array,
    covariance: Array | None = None,
    *,
    batch: int = 8,
    max_iter: int = 1000,
    tol: float = 1e-5,
    pilot_rounds: int = 60,
    leading: bool = False,
    starts: Mapping[Setting, tuple[Array, Array]] | None = None,
) -> Iterator[Fit]:
    """Fit settings of one kernel width, those of a family together, at most ``batch`` at a time.

    ``spectrum`` is an eigenbasis; ``leading`` needs one whose rows are in memory, and iterates on its leading directions
    only: see :mod:`skpml.likelihood._leading`. Memory is ``batch`` times the scores, whatever the number of settings.
    ``rates`` (c) are the estimated noise rates, ``covariance`` is that of :func:`pilot_covariance`, if it is known; else
    it gets ``pilot_rounds``. ``starts`` are W (r, c) and b (c) to begin with, for all settings.
    """
    least_squares = solve_leading_least_squares if leading else solve_least_squares
    logistic = solve_leading_logistic if leading else solve_logistic
    xp = array_namespace(Y)
    where = {"dtype": Y.dtype, "device": device(Y)}
    occupied = xp.any(Y > 0, axis=1)[:, None, None]
    for (family, one_true), group in groupby(sorted(settings), key=lambda s: (s.family, s.one_true)):
        alike = list(group)
        for start in range(0, len(alike), batch):
            some = alike[start : start + batch]
            problem: dict[str, Any] = {
                "gamma": xp.asarray([setting.gamma for setting in some], **where),
                "rho": xp.stack([scale_odds(rates, setting.noise) for setting in some]),
                "one_true": occupied if one_true else None,
                "max_iter": max_iter,
                "tol": tol,
            }
            if starts is not None:
                W, b = zip(*(starts[setting] for setting in some), strict=True)
                problem["start"] = xp.stack(W, axis=1), xp.stack(b)
                if family == "least-squares":
                    known = {"rho": problem["rho"], "one_true": problem["one_true"]}
                    problem["start"] = targets_of(spectrum, Y, *problem["start"], **known)
            if family == "ridge":
                targets = xp.broadcast_to(Y[:, None, :], (Y.shape[0], len(some), Y.shape[1]))
                coef, intercept = ridge_coefficients(spectrum, targets, problem["gamma"])
                history, converged = [[0.0]] * len(some), [True] * len(some)
                found = Bunch(coef=coef, intercept=intercept, history=history, converged=converged)
            elif family == "least-squares":
                found = least_squares(spectrum, Y, **problem)
            else:
                if covariance is None:
                    covariance = pilot_covariance(spectrum, Y, rates, pilot_rounds, leading=leading)
                found = logistic(spectrum, Y, covariance=covariance, **problem)
            for place, setting in enumerate(some):
                yield Fit(
                    setting=setting,
                    coef=found.coef[:, place, :],
                    intercept=found.intercept[place, :],
                    rates=problem["rho"][place, :],
                    history=found.history[place],
                    converged=found.converged[place],
                )


def pilot_covariance(
    spectrum: Spectrum, Y: Array, rates: Array, rounds: int = 60, *, leading: bool = False
) -> Array:
    """Return the label covariance of a quick first fit of at most so many rounds."""
    xp = array_namespace(Y)
    weight = xp.asarray([_PILOT_WEIGHT], dtype=Y.dtype, device=device(Y))
    rho = scale_odds(rates, 1.0)[None, :]
    # A correlation needs no more than the leading directions.
    solve = approximate_least_squares if leading else solve_least_squares
    quick = solve(spectrum, Y, gamma=weight, rho=rho, max_iter=rounds, tol=_PILOT_TOL)
    return label_covariance(xp.astype(quick.targets[:, 0, :], Y.dtype))


def held_out_ridge(spectrum: Spectrum, Y: Array) -> tuple[Array, float]:
    """Score candidates (n×c) by the best ridge regression without the row; also return its mean squared error."""
    xp = array_namespace(Y)
    found = []
    for weight in RIDGE_WEIGHTS:
        gamma = xp.asarray([weight], dtype=Y.dtype, device=device(Y))
        scores = ridge_scores(spectrum, Y[:, None, :], gamma)[2][:, 0, :]
        found.append((scores, float(xp.mean((scores - Y) ** 2))))
    return min(found, key=lambda each: each[1])


def find_nested_labels(Y: NDArray[Any]) -> list[tuple[int, int]]:
    """Return pairs (a, b): label a is never a candidate without label b, and more rarely than it.

    Tags that imply each other (a taxonomy, a tool that adds parents) look like this. Then P(Y_a = 1) ≤ P(Y_b = 1) in
    every row, and with one noise rate for both that is an order of η. Estimates of two labels break it at random.

    Pairs that few rows make up by chance do not count: among independent labels, all n_a rows with a have b with
    probability ``rate_b ** n_a``; and labels that mostly go together show an exception among enough rows. Outer labels
    come first, so that a chain is put in order in one pass.
    """
    n, c = Y.shape
    together = np.zeros((c, c))
    for rows in gen_batches(n, rows_at_once(8 * c)):
        candidates = (Y[rows] > 0).astype(np.float64)
        together += candidates.T @ candidates
    count = np.diag(together)
    log_chance = np.outer(count, np.log(np.maximum(count, 1) / n))
    inside = (together == count[:, None]) & (count[:, None] < count[None, :])
    sure = log_chance < np.log(_NESTED_BY_CHANCE / max(1, c * (c - 1)))
    found = np.argwhere(inside & sure & (count[:, None] >= _FEWEST_NESTED_ROWS)).tolist()
    return sorted(((a, b) for a, b in found), key=lambda pair: (-count[pair[0]], pair))


def keep_nested_order(probabilities: NDArray[Any], pairs: list[tuple[int, int]]) -> NDArray[Any]:
    """Return probabilities (n×c) with every inner label below its outer one."""
    ordered = probabilities.copy() if pairs else probabilities
    for inner, outer in pairs:
        np.minimum(ordered[:, inner], ordered[:, outer] * _BELOW, out=ordered[:, inner])
    return ordered
