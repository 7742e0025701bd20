"""Candidate likelihood in batches: what earlier rows say about the coefficients is kept as a quadratic form.

X̃ = (X, 1) are mapped features, and θ (a+1×c) coefficients C with the intercepts below them; θ⁰ are those before. For the
rows of a new batch, *logistic* members minimize

    −log P(Y | X̃θ) + ½ Σ_l κ_l (θ_l − θ⁰_l)ᵀ M (θ_l − θ⁰_l) + λ/2 tr((C − C⁰) B⁻¹ (C − C⁰)ᵀ).

M is X̃ᵀX̃ of the earlier rows and κ_l their mean curvature in label l, so that the second term is the likelihood of these
rows around θ⁰, as if all had the same curvature. Its slope there is that of the penalty, which therefore is one of
C − C⁰. B is the label covariance, and λ is γ times the mean squared length of the rows, both of the first batch.

*Least squares* and *ridge regression* have squared distances to targets instead of the likelihood, so that M is exact:
a ridge regression in batches is that of all rows, and of least squares the targets of earlier rows stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.optimize import minimize

from skpml.likelihood import (
    Setting,
    adapt_length,
    clip_linear,
    curvature,
    given_one,
    label_covariance,
    likelihood_and_slope,
    posterior,
)

Floats = NDArray[np.float64]

# Relative to the mean of the diagonal of a matrix: what its rounding may hide.
_ROUNDING = 1e-10


@dataclass(frozen=True, kw_only=True)
class Member:
    """A member of the model: its setting, the place of its feature map, noise rates (c), θ, and the course of its fit."""

    setting: Setting
    map_place: int
    rates: Floats
    theta: Floats
    history: Sequence[float] = (0.0,)
    converged: bool = True

    def find_labeled(self, Y: Floats) -> NDArray[np.bool_] | None:
        """Find the rows (n×1) that have a true label; None if no row is assumed to."""
        return np.asarray(Y.any(axis=1))[:, None] if self.setting.one_true else None


@dataclass(frozen=True, kw_only=True)
class Sums:
    """Sums over the rows so far: M of each feature map, curvatures (c) of each member. Of the first batch: λ/γ and B."""

    n_rows: int
    moments: list[Floats]
    curvatures: list[Floats]
    scales: list[float] | None = None
    covariance: Floats | None = None

    def __add__(self, other: Sums) -> Sums:
        return replace(
            self,
            n_rows=self.n_rows + other.n_rows,
            moments=[one + more for one, more in zip(self.moments, other.moments, strict=True)],
            curvatures=[one + more for one, more in zip(self.curvatures, other.curvatures, strict=True)],
        )


def sum_rows(
    blocks: Iterable[tuple[Sequence[Floats], Floats]],
    members: Sequence[Member],
    before: Sums | None,
    confidences: NDArray[Any],
) -> Sums:
    """Add rows to the sums, at θ as it is now.

    Each block has X̃ for each feature map, and the candidates; the confidences are those of the rows of all blocks.
    """
    found = before
    for mapped, Y in blocks:
        new = Sums(
            n_rows=len(Y),
            moments=[X.T @ X for X in mapped],
            curvatures=[_sum_curvature(member, mapped[member.map_place], Y) for member in members],
        )
        found = new if found is None else found + new
    assert found is not None
    if before is None:
        scales = [_mean_squared_length(M) for M in found.moments]
        found = replace(found, scales=scales, covariance=np.asarray(label_covariance(confidences)))
    return found


def learn_rows(
    mapped: Sequence[Floats], Y: Floats, members: Sequence[Member], before: Sums, *, max_iter: int, tol: float
) -> list[Member]:
    """Return the members after more rows, of which X̃ for each feature map and the candidates are given."""
    assert before.scales is not None
    assert before.covariance is not None
    found = []
    for member, curvatures in zip(members, before.curvatures, strict=True):
        X, M = mapped[member.map_place], before.moments[member.map_place]
        weight = member.setting.gamma * before.scales[member.map_place]
        if member.setting.family == "logistic":
            kappa = curvatures / before.n_rows
            found.append(_maximize(member, X, Y, M, kappa, before.covariance, weight, max_iter, tol))
        else:
            found.append(_regress(member, X, Y, M, weight, max_iter, tol))
    return found


def _mean_squared_length(M: Floats) -> float:
    """Return the mean squared length of centered rows, from ``X̃ᵀX̃``."""
    n, total = M[-1, -1], M[-1, :-1]
    return float((np.trace(M) - n - total @ total / n) / n)


def _sum_curvature(member: Member, X: Floats, Y: Floats) -> Floats:
    if member.setting.family != "logistic":
        return np.full(Y.shape[1], float(len(Y)))
    return np.asarray(curvature(X @ member.theta, member.rates, Y, member.find_labeled(Y)).sum(axis=0))


def _maximize(
    member: Member,
    X: Floats,
    Y: Floats,
    M: Floats,
    kappa: Floats,
    covariance: Floats,
    weight: float,
    max_iter: int,
    tol: float,
) -> Member:
    """Maximize the likelihood of the new rows, with the quadratic form of the earlier ones."""
    start, labeled = member.theta, member.find_labeled(Y)
    inverse = np.linalg.inv(covariance)
    # Variables in which the curvature is about 1.
    middle = float(kappa.mean()) * (M + X.T @ X)
    middle[np.diag_indices(len(M) - 1)] += weight
    middle[np.diag_indices(len(M))] += _ROUNDING * np.trace(middle) / len(M)
    factor = scipy.linalg.cholesky(middle, lower=True)
    steepest: float = np.inf

    def unscale(flat: Floats) -> Floats:
        change = scipy.linalg.solve_triangular(factor, flat.reshape(start.shape), lower=True, trans="T")
        return np.asarray(change)

    def evaluate(flat: Floats) -> tuple[float, Floats]:
        nonlocal steepest
        change = unscale(flat)
        value, slope = likelihood_and_slope(X @ (start + change), member.rates, Y, labeled)
        gradient = (M @ change) * kappa
        size = (change * gradient).sum()
        gradient -= X.T @ slope
        penalty = weight * change[:-1] @ inverse
        gradient[:-1] += penalty
        size += (change[:-1] * penalty).sum()
        # What is left over adds up over the batches.
        steepest = float(np.abs(gradient).max()) / len(Y)
        scaled = scipy.linalg.solve_triangular(factor, gradient, lower=True)
        return float(0.5 * size - value.sum()), scaled.ravel()

    history: list[float] = []

    def follow(intermediate_result: scipy.optimize.OptimizeResult) -> None:
        history.append(-float(intermediate_result.fun))
        if steepest <= tol:
            raise StopIteration

    # Only the slope decides, and rounding where it cannot fall further.
    options = {"maxiter": max_iter, "gtol": 0.0, "ftol": 0.0}
    found = minimize(
        evaluate, np.zeros(start.size), jac=True, method="L-BFGS-B", callback=follow, options=options
    )
    return replace(
        member,
        theta=start + unscale(found.x),
        history=history or [-float(found.fun)],
        converged=len(history) < max_iter,
    )


def _regress(
    member: Member, X: Floats, Y: Floats, M: Floats, weight: float, max_iter: int, tol: float
) -> Member:
    """Add squared distances of the new rows to their targets, which are candidates or, of least squares, posteriors."""
    penalty = np.full((len(M), 1), weight)
    penalty[-1] = 0.0
    left = M + X.T @ X + np.diag(penalty[:, 0])
    left[np.diag_indices(len(M))] += _ROUNDING * np.trace(left) / len(M)
    factor = scipy.linalg.cho_factor(left, lower=True)
    before = M @ member.theta + penalty * member.theta
    if member.setting.family == "ridge":
        return replace(member, theta=scipy.linalg.cho_solve(factor, before + X.T @ Y))
    spread = scipy.linalg.cho_solve(factor, X.T)
    base = X @ scipy.linalg.cho_solve(factor, before)
    # The weight of its own target in the score of a row, which must not confirm itself.
    own = np.einsum("ij,ji->i", X, spread)[:, None]
    labeled = member.find_labeled(Y)

    def judge(scores: Floats) -> Floats:
        r = posterior(clip_linear(scores), member.rates, Y)
        return np.asarray(r if labeled is None else given_one(r, labeled))

    targets = judge(X @ member.theta)
    history: list[float] = []
    last, length = np.zeros_like(targets), 1.0
    while len(history) < max_iter:
        scores = base + X @ (spread @ targets)
        change = judge((scores - own * targets) / (1 - own)) - targets
        history.append(float(np.abs(change).max()))
        length = adapt_length(length, turned=bool((change * last).sum() < 0))
        targets, last = targets + length * change, change
        if history[-1] <= 10 * tol:
            break
    theta = scipy.linalg.cho_solve(factor, before + X.T @ targets)
    return replace(member, theta=theta, history=history, converged=history[-1] <= 10 * tol)
