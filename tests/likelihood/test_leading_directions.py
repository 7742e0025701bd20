"""Iterations in the leading directions end where those in all directions do."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from skpml.likelihood import _leading as module
from skpml.likelihood._leading import cut_to_leading, solve_leading_least_squares, solve_leading_logistic
from skpml.likelihood._solvers import label_covariance, solve_least_squares, solve_logistic
from skpml.linalg import ridge_scores, spectrum_of

GAMMA, RHO = np.array([0.5, 2.0]), np.full((2, 3), 0.25)


def problem(n=300, seed=0):
    """Six strong features, and forty whose share of the variance is small but not nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 46)) * np.repeat([1.0, 0.02], [6, 40])
    truth = X[:, :6] @ rng.normal(size=(6, 3)) + rng.logistic(size=(n, 3)) > 0.5
    Y = np.maximum(truth, rng.random((n, 3)) < 0.25).astype(float)
    return spectrum_of(X), Y


def scores(spectrum, found):
    return np.einsum("nr,rsc->nsc", spectrum.rows, found.coef) + found.intercept


def test_small_directions_are_cut_off_for_the_smallest_bound():
    spectrum, _ = problem()
    lead = cut_to_leading(spectrum, 0.1 * GAMMA)
    assert lead.rows.shape == (300, 6)
    assert lead.rows.dtype == np.float32
    assert 0 < spectrum.values[6] <= 0.1 * GAMMA.min() < spectrum.values[5]
    assert cut_to_leading(spectrum, np.array([1e9])).rows.shape == (300, 1)


@pytest.mark.parametrize("one", [False, True])
def test_logits_are_those_of_all_directions(one):
    spectrum, Y = problem()
    settings = {
        "gamma": GAMMA,
        "rho": RHO,
        "one_true": Y.any(axis=1)[:, None, None] if one else None,
        "covariance": label_covariance(Y),
        "max_iter": 1000,
        "tol": 1e-6,
    }
    found, exact = (solve(spectrum, Y, **settings) for solve in (solve_leading_logistic, solve_logistic))
    assert found.converged == [True, True]
    assert found.coef.dtype == found.intercept.dtype == np.float64
    known = scores(spectrum, exact)
    assert_allclose(expit(scores(spectrum, found)), expit(known), atol=1e-3)
    # The step in the other directions is needed for that, and nearly reaches the end there.
    assert_allclose(found.coef[6:], exact.coef[6:], atol=0.03 * np.abs(exact.coef[6:]).max())
    found.coef[6:] = 0
    assert np.abs(expit(scores(spectrum, found)) - expit(known)).max() > 3e-3


@pytest.mark.parametrize("one", [False, True])
def test_linear_scores_are_those_of_all_directions(one):
    spectrum, Y = problem()
    marked = Y.any(axis=1)[:, None, None] if one else None
    settings = {"gamma": GAMMA, "rho": RHO, "one_true": marked, "max_iter": 1000, "tol": 1e-5}
    found, exact = (
        solve(spectrum, Y, **settings) for solve in (solve_leading_least_squares, solve_least_squares)
    )
    assert found.converged == [True, True]
    assert_allclose(scores(spectrum, found), scores(spectrum, exact), atol=3e-3)
    # All directions have the regression on the targets.
    W, b, _ = ridge_scores(spectrum, found.targets, GAMMA)
    assert_allclose(found.coef, W, rtol=1e-12)
    assert_allclose(found.intercept, b, rtol=1e-12)


def test_a_tolerance_beyond_single_precision_is_met_in_all_directions():
    spectrum, Y = problem()
    settings = {"gamma": GAMMA, "rho": RHO, "one_true": None, "max_iter": 3000, "tol": 1e-9}
    covariance = label_covariance(Y)
    found = solve_leading_logistic(spectrum, Y, covariance=covariance, **settings)
    exact = solve_logistic(spectrum, Y, covariance=covariance, **settings)
    assert found.converged == [True, True]
    assert_allclose(found.coef, exact.coef, rtol=1e-12)
    assert settings["tol"] < module._LEAST_TOL
    found = solve_leading_least_squares(spectrum, Y, **settings)
    assert_allclose(found.coef, solve_least_squares(spectrum, Y, **settings).coef, rtol=1e-12)
