import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from skpml.baselines._pml_lrs import PMLLRS, solve

WEIGHTS = dict(gamma=0.3, beta=0.4, eta=0.5)


def problem(n=50, d=7, c=5, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1, 1, size=(n, d)), np.ones(n)])
    Y = (X @ rng.normal(size=(d + 1, c)) + 0.5 * rng.normal(size=(n, c)) > 0).astype(float)
    return X, Y


def svt(M, tau):
    U, sigma, Vt = np.linalg.svd(M, full_matrices=False)
    return (U * np.maximum(sigma - tau, 0)) @ Vt


def slow_solve(X, Y, gamma, beta, eta, n_iter=1500, mu=0.3):
    """The same problem by alternating directions with a penalty that never changes and full decompositions."""
    U, V, W = Y, np.zeros_like(Y), np.zeros((X.shape[1], Y.shape[1]))
    L1, L2, L3 = np.zeros_like(Y), np.zeros_like(Y), np.zeros_like(W)
    inverse = np.linalg.inv(X.T @ X + mu * np.eye(X.shape[1]))
    for _ in range(n_iter):
        B = svt(W + L3 / mu, eta / mu)
        W = inverse @ (X.T @ U + mu * B - L3)
        A = svt(U + L2 / mu, gamma / mu)
        U = (X @ W + mu * A - L2 + mu * (Y - V) + L1) / (1 + 2 * mu)
        T = Y - U + L1 / mu
        V = np.sign(T) * np.maximum(np.abs(T) - beta / mu, 0)
        L1, L2, L3 = L1 + mu * (Y - U - V), L2 + mu * (U - A), L3 + mu * (W - B)
    return W, U, V


def slow_objective(X, Y, W, U, gamma, beta, eta):
    noise = beta * np.abs(Y - U).sum()
    norms = gamma * np.linalg.norm(U, "nuc") + eta * np.linalg.norm(W, "nuc")
    return 0.5 * np.linalg.norm(X @ W - U) ** 2 + noise + norms


@pytest.mark.parametrize("n", [50, 6], ids=["tall", "wide"])
def test_reaches_the_optimum_of_the_slow_reference(n):
    X, Y = problem(n=n)
    fast = solve(X, Y, **WEIGHTS)
    W, U, _ = slow_solve(X, Y, **WEIGHTS)
    assert fast.converged
    assert 0 < np.count_nonzero(np.abs(fast.noise) > 1e-6) < Y.size
    assert_allclose(fast.history["objective"][-1], slow_objective(X, Y, W, U, **WEIGHTS), rtol=1e-5)
    assert_allclose(X @ fast.coef, X @ W, atol=5e-3)
    assert_allclose(
        fast.history["objective"][-1], slow_objective(X, Y, fast.coef, fast.true_labels, **WEIGHTS)
    )


def test_raising_the_penalty_only_where_all_stands_still_pays():
    """A penalty that grows in every step freezes the variables above the optimum."""
    X, Y = problem(n=300, c=8)
    best = slow_objective(X, Y, *slow_solve(X, Y, **WEIGHTS)[:2], **WEIGHTS)
    assert solve(X, Y, **WEIGHTS).history["objective"][-1] == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize("weights", [WEIGHTS, dict(gamma=0.01, beta=0.1, eta=1.0)])
def test_ends_where_the_constraints_hold(weights):
    X, Y = problem()
    found = solve(X, Y, **weights)
    assert found.converged
    assert np.linalg.norm(Y - found.true_labels - found.noise) < 1e-6 * np.linalg.norm(Y)


def test_classifier_meets_the_condition_of_its_optimum():
    X, Y = problem()
    found = solve(X, Y, **WEIGHTS)
    pull = X.T @ (found.true_labels - X @ found.coef)
    assert np.linalg.norm(pull, 2) <= 0.5 * (1 + 1e-3)
    assert_allclose(np.vdot(pull, found.coef), 0.5 * np.linalg.norm(found.coef, "nuc"), rtol=1e-3)


def test_without_low_rank_labels_it_is_hubers_regression():
    """γ = 0: the noise is what of the residual exceeds β."""
    X, Y = problem()
    found = solve(X, Y, gamma=0.0, beta=0.2, eta=0.5)
    residual = Y - X @ found.coef
    expected = np.sign(residual) * np.maximum(np.abs(residual) - 0.2, 0)
    # W and U still move by up to 1e-4 ‖Y‖ where the loop stops.
    assert_allclose(found.noise, expected, atol=1e-4 * np.linalg.norm(Y))


def test_noise_too_dear_to_have():
    X, Y = problem()
    found = solve(X, Y, gamma=0.01, beta=1e4, eta=0.5)
    assert_array_equal(found.noise, 0)
    assert_allclose(found.true_labels, Y, atol=1e-5)


def test_classifier_too_dear_to_have():
    """W = 0 leaves ½‖U‖² + β‖Y − U‖₁ with its minimum at U = βY."""
    X, Y = problem()
    found = solve(X, Y, gamma=0.0, beta=0.3, eta=1e5, max_iter=5000)
    assert found.converged
    assert_allclose(found.coef, 0, atol=1e-5)
    assert_allclose(found.true_labels, 0.3 * Y, atol=1e-4 * np.linalg.norm(Y))


@pytest.mark.slow
def test_rank_of_the_classifier_falls_with_its_weight():
    X, Y = problem()
    ranks = [
        np.linalg.matrix_rank(solve(X, Y, gamma=0.01, beta=0.4, eta=eta).coef, tol=1e-4)
        for eta in (0.1, 2.0, 1e3)
    ]
    assert ranks[0] == 5
    assert ranks[0] > ranks[1] > ranks[2] == 0


def test_no_candidates_at_all():
    X, Y = problem()
    found = solve(X, np.zeros_like(Y), **WEIGHTS)
    assert found.converged
    assert not found.coef.any()


def test_estimator_gives_the_solution(partial_problem):
    X, candidates, _ = partial_problem
    model = PMLLRS(threshold=0.5).fit(X, candidates)
    low, high = X.min(axis=0), X.max(axis=0)
    scaled = np.column_stack([2 * (X - low) / (high - low) - 1, np.ones(len(X))])
    found = solve(scaled, candidates.astype(float), gamma=0.01, beta=0.1, eta=1.0)
    assert_allclose(model.decision_function(X), scaled @ found.coef, atol=1e-8)
    assert_allclose(model.confidences_, np.clip(found.true_labels, 0, 1) * candidates, atol=1e-8)
    assert model.threshold_ == 0.5


def test_false_candidates_are_believed_less(partial_problem):
    X, candidates, truth = partial_problem
    confidences = PMLLRS().fit(X, candidates).confidences_
    is_false = (candidates == 1) & (truth == 0)
    assert confidences[truth == 1].mean() > confidences[is_false].mean() + 0.02


def test_says_where_it_did_not_converge(partial_problem):
    X, candidates, _ = partial_problem
    with pytest.warns(ConvergenceWarning, match="max_iter=5"):
        PMLLRS(max_iter=5).fit(X, candidates)


@pytest.mark.parametrize("name", ["gamma", "beta", "eta", "tol", "max_iter"])
def test_bad_parameters(partial_problem, name):
    X, candidates, _ = partial_problem
    with pytest.raises(ValueError, match=f"{name} must be"):
        PMLLRS(**{name: -1}).fit(X, candidates)
