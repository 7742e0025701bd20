"""Solvers of the likelihood for many anchors: iterate in the leading directions of the features, in single precision.

A direction whose eigenvalue e is far below γ hardly moves, however many steps are taken: of what the data ask for, the
penalty leaves about e/γ. Kernels of many anchors mostly have such directions. So the iterations have the other directions
only, the *leading* ones, and the rest follows from where they end, in the precision of the labels:

**Logistic**: the rest gets one plain step from zero. Its error is of second order in e/γ.

**Least squares**: all directions get the ridge regression onto the targets that the leading ones found.
"""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace
from sklearn.utils import Bunch

from skpml.likelihood._noise import likelihood_and_slope
from skpml.likelihood._solvers import rotate_penalty, solve_least_squares, solve_logistic
from skpml.linalg import Array, Spectrum, multiply_flat, ridge_scores

# Directions with an eigenvalue above this share of γ are leading. The step in the other directions makes up for most of
# what a large share loses; targets have no such step.
_LOGISTIC_SHARE, _LEAST_SQUARES_SHARE = 0.3, 0.1
# Single precision resolves the gradient per row to about a tenth of this value.
_LEAST_TOL = 1e-6


def solve_leading_logistic(
    spectrum: Spectrum,
    Y: Array,
    *,
    gamma: Array,
    rho: Array,
    one_true: Array | None,
    covariance: Array,
    max_iter: int,
    tol: float,
) -> Bunch:
    """Solve :func:`~skpml.likelihood._solvers.solve_logistic` in the leading directions, and complete the others."""
    if tol < _LEAST_TOL:
        return solve_logistic(
            spectrum,
            Y,
            gamma=gamma,
            rho=rho,
            one_true=one_true,
            covariance=covariance,
            max_iter=max_iter,
            tol=tol,
        )
    xp, lead = array_namespace(Y), cut_to_leading(spectrum, _LOGISTIC_SHARE * gamma)
    found = solve_logistic(
        lead,
        **_to_single(xp, Y=Y, gamma=gamma, rho=rho, covariance=covariance),
        one_true=one_true,
        max_iter=max_iter,
        tol=tol,
    )
    W, b = xp.astype(found.coef, Y.dtype), xp.astype(found.intercept, Y.dtype)
    count = W.shape[0]
    logits = multiply_flat(spectrum.rows[:, :count], W) + b
    slope = likelihood_and_slope(logits, rho, Y[:, None, :], one_true)[1]
    basis, shrink, curvature = rotate_penalty(covariance, gamma, one_true)
    weight = curvature * spectrum.values[count:, None, None] + shrink
    rest = (multiply_flat(spectrum.rows[:, count:].T, slope) @ basis / weight) @ basis.T
    return Bunch(coef=xp.concat([W, rest]), intercept=b, history=found.history, converged=found.converged)


def solve_leading_least_squares(
    spectrum: Spectrum,
    Y: Array,
    *,
    gamma: Array,
    rho: Array,
    max_iter: int,
    tol: float,
    one_true: Array | None = None,
) -> Bunch:
    """Solve :func:`~skpml.likelihood._solvers.solve_least_squares` in the leading directions; regress in all of them."""
    if tol < _LEAST_TOL:
        return solve_least_squares(
            spectrum, Y, gamma=gamma, rho=rho, one_true=one_true, max_iter=max_iter, tol=tol
        )
    xp, lead = array_namespace(Y), cut_to_leading(spectrum, _LEAST_SQUARES_SHARE * gamma)
    single = _to_single(xp, Y=Y, gamma=gamma, rho=rho)
    found = solve_least_squares(lead, **single, one_true=one_true, max_iter=max_iter, tol=tol)
    targets = xp.astype(found.targets, Y.dtype)
    W, b, _ = ridge_scores(spectrum, targets, gamma)
    return Bunch(coef=W, intercept=b, history=found.history, converged=found.converged, targets=targets)


def cut_to_leading(spectrum: Spectrum, bounds: Array) -> Spectrum:
    """Keep the directions whose eigenvalue exceeds the smallest bound, at least one, in single precision."""
    xp = array_namespace(spectrum.values)
    leading = spectrum.values > xp.min(bounds)
    count = max(1, int(xp.sum(xp.astype(leading, xp.int64))))
    return spectrum.head(count).astype(xp.float32)


def _to_single(xp: Any, **arrays: Array) -> dict[str, Array]:
    return {name: xp.astype(values, xp.float32) for name, values in arrays.items()}
