"""Iterations in the leading directions end where those in all directions do."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from skpml.likelihood import _leading as module
from skpml.likelihood._leading import cut_to_leading, solve_leading_least_squares, solve_leading_logistic
from skpml.likelihood._solvers import label_covariance, solve_least_squares, solve_logistic
from skpml.linalg import spectrum_of

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


@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("one", [False, True])
def test_logits_are_those_of_all_directions(one, tol):
    spectrum, Y = problem()
    settings = {
        "gamma": GAMMA,
        "rho": RHO,
        "one_true": Y.any(axis=1)[:, None, None] if one else None,
        "covariance": label_covariance(Y),
        "max_iter": 3000,
    }
    found = solve_leading_logistic(spectrum, Y, tol=tol, **settings)
    exact = solve_logistic(spectrum, Y, tol=1e-9, **settings)
    assert found.converged == [True, True]
    assert found.coef.dtype == found.intercept.dtype == np.float64
    assert_allclose(expit(scores(spectrum, found)), expit(scores(spectrum, exact)), atol=100 * tol)


def test_correlated_labels_and_slowly_falling_eigenvalues():
    """The penalty of a direction of labels is γ/B: far smaller than γ if labels are correlated."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 120)) / np.arange(1, 121) ** 0.5
    hidden = X @ rng.normal(size=(120, 2)) * 3
    truth = hidden @ rng.normal(size=(2, 12)) + rng.logistic(size=(600, 12)) > 1
    Y = np.maximum(truth, rng.random((600, 12)) < 0.2).astype(float)
    spectrum, covariance = spectrum_of(X), label_covariance(Y)
    assert np.linalg.eigvalsh(covariance)[-1] > 2
    settings = {"gamma": np.array([20.0]), "rho": np.full((1, 12), 0.2), "one_true": None, "max_iter": 5000}
    assert len(cut_to_leading(spectrum, 0.3 * settings["gamma"]).values) < 60
    found = solve_leading_logistic(spectrum, Y, covariance=covariance, tol=1e-6, **settings)
    exact = solve_logistic(spectrum, Y, covariance=covariance, tol=1e-9, **settings)
    assert_allclose(expit(scores(spectrum, found)), expit(scores(spectrum, exact)), atol=1e-4)


@pytest.mark.parametrize("one", [False, True])
def test_linear_scores_are_those_of_all_directions(one):
    spectrum, Y = problem()
    marked = Y.any(axis=1)[:, None, None] if one else None
    settings = {"gamma": GAMMA, "rho": RHO, "one_true": marked, "max_iter": 1000}
    found = solve_leading_least_squares(spectrum, Y, tol=1e-5, **settings)
    exact = solve_least_squares(spectrum, Y, tol=1e-8, **settings)
    assert found.converged == [True, True]
    assert_allclose(scores(spectrum, found), scores(spectrum, exact), atol=1e-3)
    assert_allclose(found.targets, exact.targets, atol=1e-3)


@pytest.mark.parametrize("family", [solve_leading_logistic, solve_leading_least_squares])
def test_few_steps_have_all_directions(family, monkeypatch):
    spectrum, Y = problem()
    name = {solve_leading_logistic: "solve_logistic", solve_leading_least_squares: "solve_least_squares"}[
        family
    ]
    plain, steps = getattr(module, name), []

    def count(basis, *arguments, **options):
        found = plain(basis, *arguments, **options)
        steps.append((len(basis.values), max(len(history) for history in found.history)))
        return found

    monkeypatch.setattr(module, name, count)
    monkeypatch.setattr(module, "_SHARE", 0.2)
    options = {"gamma": GAMMA, "rho": RHO, "one_true": None, "max_iter": 1000, "tol": 1e-5}
    if family is solve_leading_logistic:
        options["covariance"] = label_covariance(Y)
    family(spectrum, Y, **options)
    (few, first), (most, second) = steps
    assert (few, most) == (6, 46)
    assert second < first
