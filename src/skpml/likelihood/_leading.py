"""Solvers of the likelihood for many anchors: iterate in the leading directions of the features first.

A direction whose eigenvalue is far below γ hardly moves, however many steps are taken, and kernels of many anchors mostly
have such directions. So the first iterations have the other directions only, the *leading* ones, in single precision.
From where these end, iterations in all directions and in the precision of the labels go on to the tolerance. Most
steps are then cheap, and the solution is that of all directions.
"""

from __future__ import annotations

from typing import Any

from array_api_compat import array_namespace, device
from sklearn.utils import Bunch

from skpml.likelihood._solvers import solve_least_squares, solve_logistic
from skpml.linalg import Array, Spectrum

# Directions with an eigenvalue above this share of the smallest penalty are leading.
_SHARE = 0.05
# Single precision resolves the gradient per row to about a tenth of this value.
_LEAST_TOL = 1e-6


def solve_leading_logistic(
    spectrum: Spectrum, Y: Array, *, gamma: Array, rho: Array, covariance: Array, **options: Any
) -> Bunch:
    """Solve :func:`~skpml.likelihood._solvers.solve_logistic`, starting from the solution in the leading directions."""
    xp = array_namespace(Y)
    # The penalty is γ/B.
    largest = float(xp.max(xp.linalg.eigvalsh(covariance)))
    lead = cut_to_leading(spectrum, _SHARE * gamma / max(1.0, largest))
    single = _to_single(xp, Y=Y, gamma=gamma, rho=rho, covariance=covariance)
    first = solve_logistic(lead, **single, **_loosen(options))
    missing = (spectrum.values.shape[0] - lead.values.shape[0], *rho.shape)
    rest = xp.zeros(missing, dtype=Y.dtype, device=device(Y))
    start = xp.concat([xp.astype(first.coef, Y.dtype), rest]), xp.astype(first.intercept, Y.dtype)
    problem = {"gamma": gamma, "rho": rho, "covariance": covariance}
    return _join(first, solve_logistic(spectrum, Y, start=start, **problem, **options))


def solve_leading_least_squares(
    spectrum: Spectrum, Y: Array, *, gamma: Array, rho: Array, **options: Any
) -> Bunch:
    """Solve :func:`~skpml.likelihood._solvers.solve_least_squares`, starting from the leading directions."""
    first = approximate_least_squares(spectrum, Y, gamma=gamma, rho=rho, **options)
    start = array_namespace(Y).astype(first.targets, Y.dtype)
    return _join(first, solve_least_squares(spectrum, Y, gamma=gamma, rho=rho, start=start, **options))


def approximate_least_squares(
    spectrum: Spectrum, Y: Array, *, gamma: Array, rho: Array, **options: Any
) -> Bunch:
    """Solve :func:`~skpml.likelihood._solvers.solve_least_squares` in the leading directions only, as a start."""
    lead = cut_to_leading(spectrum, _SHARE * gamma)
    single = _to_single(array_namespace(Y), Y=Y, gamma=gamma, rho=rho)
    return solve_least_squares(lead, **single, **_loosen(options))


def cut_to_leading(spectrum: Spectrum, bounds: Array) -> Spectrum:
    """Keep the directions whose eigenvalue exceeds the smallest bound, at least one, in single precision."""
    xp = array_namespace(spectrum.values)
    leading = spectrum.values > xp.min(bounds)
    count = max(1, int(xp.sum(xp.astype(leading, xp.int64))))
    return spectrum.head(count).astype(xp.float32)


def _to_single(xp: Any, **arrays: Array) -> dict[str, Array]:
    return {name: xp.astype(values, xp.float32) for name, values in arrays.items()}


def _loosen(options: dict[str, Any]) -> dict[str, Any]:
    """Ask for no more than single precision can give."""
    return {**options, "tol": max(options["tol"], _LEAST_TOL)}


def _join(first: Bunch, second: Bunch) -> Bunch:
    """Return the second solution with the course of both."""
    second.history = [a + b for a, b in zip(first.history, second.history, strict=True)]
    return second
