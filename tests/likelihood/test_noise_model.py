"""Probabilities of the noise model against sums over all label sets."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from skpml.likelihood._noise import (
    curvature,
    given_one,
    likelihood_and_slope,
    log_likelihood,
    posterior,
    sigmoid,
    softplus,
)

C = 4
SETS = np.array(list(product([0, 1], repeat=C)))


def by_enumeration(eta, rho, Y, one_true):
    """P(Y) and P(true | Y) of one row, from every set of true labels: slow and obvious."""
    total, marginal, allowed = 0.0, np.zeros(C), 0.0
    for truth in SETS:
        chance = np.prod(np.where(truth == 1, eta, 1 - eta))
        if one_true and not truth.any():
            continue
        allowed += chance
        # A true label is a candidate for sure, a false one with probability ρ.
        seen = np.prod(np.where(truth == 1, Y, np.where(Y == 1, rho, 1 - rho)))
        total += chance * seen
        marginal += chance * seen * truth
    return total / allowed, marginal / total


@pytest.mark.parametrize("one_true", [False, True])
def test_probabilities_are_sums_over_all_sets_of_true_labels(one_true):
    rng = np.random.default_rng(0)
    logits, rho = 2 * rng.normal(size=(30, C)), rng.uniform(0.05, 0.9, C)
    Y = (rng.random((30, C)) < 0.6).astype(float)
    Y[:, 0] = 1
    rows = np.full((30, 1), one_true)
    eta = sigmoid(logits)
    r = given_one(posterior(eta, rho, Y), rows)
    found = log_likelihood(logits, rho, Y, rows if one_true else None)
    for i in range(30):
        chance, marginal = by_enumeration(eta[i], rho, Y[i], one_true)
        assert found[i] == pytest.approx(np.log(chance), abs=1e-12)
        assert_allclose(r[i], marginal, atol=1e-12)
    if one_true:
        assert_allclose(
            given_one(eta, rows)[0],
            [SETS[1:, j] @ _chances(eta[0])[1:] / _chances(eta[0])[1:].sum() for j in range(C)],
        )


def _chances(eta):
    return np.array([np.prod(np.where(truth == 1, eta, 1 - eta)) for truth in SETS])


def test_probabilities_of_all_candidate_sets_add_up_to_one():
    logits, rho = np.array([0.3, -2.0, 1.5, -0.4]), np.array([0.2, 0.7, 0.4, 0.1])
    assert np.exp(log_likelihood(logits, rho, SETS)).sum() == pytest.approx(1)
    # Given a true label, the empty set of candidates is impossible; the others make up everything.
    marked = np.ones((len(SETS), 1), dtype=bool)
    assert np.exp(log_likelihood(logits, rho, SETS, marked))[1:].sum() == pytest.approx(1)


def test_limits():
    eta, Y = np.array([[0.2, 0.6, 0.9]]), np.array([[1.0, 1.0, 0.0]])
    assert_allclose(posterior(eta, np.zeros(3), Y), [[1, 1, 0]])  # without noise every candidate is true
    assert_allclose(posterior(eta, np.ones(3), Y), eta * Y)  # all labels are candidates: nothing is learnt
    assert_allclose(posterior(np.zeros((1, 3)), np.zeros(3), Y), 0)
    tiny = np.full((1, 5), 1e-200)
    assert_allclose(given_one(tiny, np.array([[True]])), 0.2)  # one of five, all alike
    assert_allclose(given_one(np.array([[1.0, 0.3]]), np.array([[True]])), [[1.0, 0.3]])
    assert_allclose(given_one(np.zeros((1, 3)), np.array([[True]])), 0)
    assert_allclose(given_one(eta, np.array([[False]])), eta)


@given(st.floats(-700, 700))
def test_logistic_functions_at_any_size(t):
    t = np.array(t)
    with np.errstate(all="raise", under="ignore"):
        assert sigmoid(t) + sigmoid(-t) == pytest.approx(1)
        assert softplus(t) - softplus(-t) == pytest.approx(t, abs=1e-12)
        assert softplus(t) >= 0


def test_covariance_of_labels_stays_below_the_bounds_of_the_steps():
    rng = np.random.default_rng(0)
    largest = 0.0
    for _ in range(2000):
        eta = rng.beta(0.3, 0.6, size=C)
        chances = _chances(eta)
        for allowed, bound in ((chances, 0.25), (chances * SETS.any(axis=1), 0.5)):
            weights = allowed / allowed.sum()
            mean = weights @ SETS
            spread = (SETS - mean).T @ (weights[:, None] * (SETS - mean))
            top = np.linalg.eigvalsh(spread)[-1]
            assert top <= bound + 1e-12
        largest = max(largest, top)
    assert largest > 0.3, "a quarter would not do once a label is known to be true"


@pytest.mark.parametrize("one_true", [False, True])
def test_curvature_is_the_derivative_of_the_slope(one_true):
    rng = np.random.default_rng(0)
    logits, rho = rng.normal(size=(200, 5)), np.full(5, 0.3)
    Y = (rng.random((200, 5)) < 0.4).astype(float)
    marked = Y.any(axis=1)[:, None] if one_true else None
    found = curvature(logits, rho, Y, marked)
    eta = sigmoid(logits) if marked is None else given_one(sigmoid(logits), marked)
    least = 0.05 * eta * (1 - eta)
    steps = 1e-5 * np.eye(5)
    exact = (
        np.stack(
            [
                likelihood_and_slope(logits - step, rho, Y, marked)[1][:, label]
                - likelihood_and_slope(logits + step, rho, Y, marked)[1][:, label]
                for label, step in enumerate(steps)
            ],
            axis=1,
        )
        / 2e-5
    )
    assert_allclose(found, np.maximum(exact, least), atol=1e-8)
    # Without noise to explain them, candidates have no curvature; cells of both kinds are tested.
    assert (exact < least - 1e-3).any()
    assert (exact > least + 1e-3).any()
