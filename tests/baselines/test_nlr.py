import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import PolynomialFeatures

from skpml.baselines._nlr import NLR, solve
from skpml.reference import CandidateRidge


def problem(n=60, d=7, c=5, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1, 1, size=(n, d)), np.ones(n)])
    C = (X @ rng.normal(size=(d + 1, c)) + 0.5 * rng.normal(size=(n, c)) > 0).astype(float)
    return X, C


def slow_solve(X, C, lam, beta, gamma, n_iter):
    """The released steps as they are written: one inverse, and Z before it is simplified."""
    n, c = C.shape
    d, ones = X.shape[1], np.ones((n, c))
    W1, W2, N = np.zeros((d, c)), np.zeros((d, c)), np.zeros((n, c))
    inverse = np.linalg.inv((1 + beta) * X.T @ X + gamma * np.eye(d))
    for _ in range(n_iter):
        W1 = inverse @ (X.T @ (C - N) + beta * X.T @ ones - beta * X.T @ X @ W2)
        W2 = inverse @ (X.T @ (1 - C + N) + beta * X.T @ ones - beta * X.T @ X @ W1)
        Z = N - (4 * N - 2 * C + 2 * (1 - C) + 2 * X @ W1 - 2 * X @ W2) / 4
        N = np.where((C > 0) & (lam / 4 < Z), 1.0, 0.0)
    return W1, W2, N


def slow_objective(X, C, W1, W2, N, lam, beta, gamma):
    """The objective of the docstring with λ − 2 in place of λ."""
    return (
        np.linalg.norm(X @ W1 - (C - N)) ** 2
        + np.linalg.norm(X @ W2 - (1 - C + N)) ** 2
        + beta * np.linalg.norm(X @ W1 + X @ W2 - 1) ** 2
        + gamma * (np.linalg.norm(W1) ** 2 + np.linalg.norm(W2) ** 2)
        + (lam - 2) * N.sum()
    )


@pytest.mark.parametrize("n", [60, 6], ids=["tall", "wide"])
@pytest.mark.parametrize(
    "weights", [dict(lam=2.0, beta=100.0, gamma=10.0), dict(lam=1.5, beta=2.0, gamma=0.3)]
)
def test_agrees_with_the_slow_reference(n, weights):
    X, C = problem(n=n)
    fast = solve(X, C, **weights, n_iter=100)
    W1, W2, N = slow_solve(X, C, **weights, n_iter=100)
    assert_allclose(fast.coef, W1, atol=1e-9)
    assert_allclose(fast.complement_coef, W2, atol=1e-9)
    assert_array_equal(fast.noise, N)
    assert 0 < N.sum() < C.sum() or n == 6
    assert_allclose(fast.history["objective"][-1], slow_objective(X, C, W1, W2, N, **weights), rtol=1e-9)


@pytest.mark.parametrize("lam", [0.0, 1.7, 2.0, 2.6])
@pytest.mark.parametrize("beta", [0.0, 1.0, 100.0])
def test_no_step_raises_the_objective(lam, beta):
    values = solve(*problem(), lam=lam, beta=beta, gamma=1.0).history["objective"]
    assert np.diff(values).max() <= 1e-9 * abs(values[0])
    assert values[-1] < values[0]


def test_noise_is_the_better_of_zero_and_one():
    X, C = problem()
    found = solve(X, C, lam=1.7, beta=1.0, gamma=1.0, n_iter=7)
    weights = dict(lam=1.7, beta=1.0, gamma=1.0)
    best = slow_objective(X, C, found.coef, found.complement_coef, found.noise, **weights)
    for i, j in zip(*np.nonzero(C), strict=True):
        other = found.noise.copy()
        other[i, j] = 1 - other[i, j]
        assert slow_objective(X, C, found.coef, found.complement_coef, other, **weights) >= best - 1e-9


@pytest.mark.parametrize("beta", [1.0, 5.0])
def test_at_rest_both_classifiers_are_ridge_regressions(beta):
    """W₁ − W₂ that of 2(C − N) − 1 with weight γ, W₁ + W₂ that of 1 with weight γ/(1 + 2β)."""
    X, C = problem()
    found = solve(X, C, lam=2.0, beta=beta, gamma=3.0, n_iter=5000)
    eye, rest = np.eye(X.shape[1]), C - found.noise
    assert found.noise.sum() > 0
    difference = np.linalg.solve(X.T @ X + 3.0 * eye, X.T @ (2 * rest - 1))
    assert_allclose(found.coef - found.complement_coef, difference, atol=1e-8)
    total = np.linalg.solve(X.T @ X + 3.0 / (1 + 2 * beta) * eye, X.T @ np.ones_like(C))
    assert_allclose(found.coef + found.complement_coef, total, atol=1e-8)


def test_without_removal_it_is_ridge_regression_on_the_candidates():
    """A large λ removes nothing, and without weight on coefficients the sum to one holds exactly."""
    X, C = problem()
    found = solve(X, C, lam=10.0, beta=1.0, gamma=0.0, n_iter=5000)
    assert not found.noise.any()
    assert_allclose(found.coef, np.linalg.lstsq(X, C)[0], atol=1e-8)
    # With a weight, the difference of the two is the ridge regression of the candidates.
    found = solve(X, C, lam=10.0, beta=1.0, gamma=3.0, n_iter=5000)
    ridge = np.linalg.solve(X.T @ X + 3.0 * np.eye(X.shape[1]), X.T @ (C - 0.5))
    assert_allclose((found.coef - found.complement_coef) / 2, ridge, atol=1e-8)


def test_a_turn_covers_a_fixed_share_of_the_way():
    """Along features that γ does not touch, what is left of the way shrinks by (β/(1 + β))² per iteration."""
    X, C = problem()
    rest = np.linalg.lstsq(X, 2 * C - 1)[0]
    left = []
    for n_iter in (20, 21):
        found = solve(X, C, lam=10.0, beta=10.0, gamma=0.0, n_iter=n_iter)
        left.append(np.linalg.norm(found.coef - found.complement_coef - rest))
    assert left[1] / left[0] == pytest.approx((10 / 11) ** 2, rel=1e-6)


def test_more_is_removed_where_noise_is_cheap():
    X, C = problem()
    removed = [solve(X, C, lam=lam).noise.sum() for lam in (0.5, 1.7, 2.0, 2.4, 4.5)]
    assert removed == sorted(removed, reverse=True)
    assert removed[0] > removed[2] > removed[-1] == 0


def test_estimator_gives_the_solution(partial_problem):
    X, candidates, _ = partial_problem
    model = NLR(threshold=0.5).fit(X, candidates)
    low, high = X.min(axis=0), X.max(axis=0)
    scaled = np.column_stack([2 * (X - low) / (high - low) - 1, np.ones(len(X))])
    found = solve(scaled, candidates.astype(float), lam=2.0)
    assert_allclose(model.decision_function(X), scaled @ found.coef, atol=1e-9)
    assert_array_equal(model.predict(X), scaled @ found.coef > 0.5)
    assert_array_equal(model.noise_, found.noise > 0)
    expected = np.clip(0.5 * (1 + scaled @ (found.coef - found.complement_coef)), 0, 1) * candidates
    assert_allclose(model.confidences_, expected, atol=1e-9)
    assert_array_equal(model.noise_, (candidates > 0) & (model.confidences_ < 0.5))


def test_golden_values(partial_problem):
    X, candidates, _ = partial_problem
    model = NLR().fit(X, candidates)
    assert int(model.noise_.sum()) == 18
    assert model.history_["objective"][-1] == pytest.approx(302.5848571606584, rel=1e-7)
    assert model.threshold_ == pytest.approx(0.807831799452829, rel=1e-6)
    scores = [0.8103901, 0.7238977, 0.6110098, 0.5970388, 0.604628, 0.8947995]
    assert_allclose(model.decision_function(X)[0], scores, atol=1e-6)


def test_false_candidates_are_removed_more_often(partial_problem):
    X, candidates, truth = partial_problem
    model = NLR(lam=1.7).fit(X, candidates)
    is_false = (candidates == 1) & (truth == 0)
    assert model.noise_[is_false].mean() > model.noise_[truth == 1].mean() + 0.1
    assert not model.noise_[candidates == 0].any()


def test_order_does_not_matter(partial_problem):
    X, candidates, _ = partial_problem
    rng = np.random.default_rng(0)
    rows, features, labels = rng.permutation(120), rng.permutation(10), rng.permutation(6)
    given = NLR().fit(X, candidates)
    moved = NLR().fit(X[rows][:, features], candidates[rows][:, labels])
    assert_allclose(moved.decision_function(X[:, features]), given.decision_function(X)[:, labels], atol=1e-9)
    assert_array_equal(moved.noise_, given.noise_[rows][:, labels])


def test_published_threshold(partial_problem):
    X, candidates, _ = partial_problem
    relative, plain = (NLR(threshold=rule).fit(X, candidates) for rule in ("relative", 0.5))
    scores = plain.decision_function(X)
    low, high = scores.min(axis=1, keepdims=True), scores.max(axis=1, keepdims=True)
    assert_array_equal(relative.predict(X), (scores - low) / (high - low) >= 0.9)


def test_other_feature_maps(partial_problem):
    X, candidates, _ = partial_problem
    kernel = NLR(feature_map="rbf", lam=10.0, beta=1.0, gamma=1.0, n_iter=3000).fit(X, candidates)
    assert kernel.coef_.shape == (121, 6)
    ridge = CandidateRidge().fit(X, candidates)
    # The constant is shared between the two classifiers; all else is the same regression.
    half = (kernel.coef_ - kernel.complement_coef_) / 2
    assert_allclose(half[:-1], ridge.coef_[:-1], atol=1e-6)
    custom = NLR(feature_map=PolynomialFeatures(2)).fit(X, candidates)
    assert custom.coef_.shape == (66, 6)


def test_runs_as_long_as_it_is_told(partial_problem):
    X, candidates, _ = partial_problem
    model = NLR(n_iter=80).fit(X, candidates)
    assert len(model.history_["objective"]) == model.n_iter_ == 80
    assert not model.converged_
    model = NLR(beta=1.0, n_iter=300).fit(X, candidates)
    assert model.converged_
    # Each removal leads to more: the number of iterations is an early stop.
    removed = [NLR(lam=1.7, n_iter=n_iter).fit(X, candidates).noise_.mean() for n_iter in (50, 100, 1000)]
    assert removed == sorted(removed)
    assert removed[2] > 2 * removed[1] > 0


@pytest.mark.parametrize("name", ["lam", "beta", "gamma", "n_iter"])
def test_bad_parameters(partial_problem, name):
    X, candidates, _ = partial_problem
    with pytest.raises(ValueError, match=f"{name} must be"):
        NLR(**{name: -1}).fit(X, candidates)
