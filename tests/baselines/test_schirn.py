import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from skpml.baselines._schirn import Schirn, raise_singular_values, solve
from skpml.reference import CandidateRidge

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
WEIGHTS = dict(alpha=0.4, beta=0.1, lam=2.0)
# Enough for the constraint to hold.
EXACT = dict(max_iter=3000, tol=1e-9)


def problem(n=60, d=7, c=5, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1, 1, size=(n, d)), np.ones(n)])
    C = (X @ rng.normal(size=(d + 1, c)) + 0.5 * rng.normal(size=(n, c)) > 0).astype(float)
    return X, C


def slow_solve(X, C, alpha, beta, lam, n_iter):
    """The published steps as they are written: an inverse and a singular value decomposition per iteration."""
    A, multiplier, mu = C, np.zeros_like(C), 1e-4
    for _ in range(n_iter):
        inverse = np.linalg.inv(mu * X.T @ X + 2 * lam * np.eye(X.shape[1]))
        W = inverse @ (mu * X.T @ A - X.T @ multiplier)
        N = np.where((C > 0) & (C - A - alpha / 2 > 0.5), 1.0, 0.0)
        free = (2 * C - 2 * N + multiplier + mu * X @ W) / (2 + mu)
        U, sigma, Vt = np.linalg.svd(free, full_matrices=False)
        A = (U * (sigma + 2 * beta / (2 + mu))) @ Vt
        multiplier = multiplier + mu * (X @ W - A)
        mu = min(1.1 * mu, 10)
    return W, N


def slow_objective(X, C, W, N, alpha, beta, lam):
    """The objective of the docstring with 2β in place of β."""
    misfit = np.linalg.norm(X @ W - (C - N)) ** 2 + alpha * N.sum()
    return misfit - 2 * beta * np.linalg.norm(X @ W, "nuc") + lam * np.linalg.norm(W) ** 2


@pytest.mark.parametrize("n", [60, 4], ids=["tall", "wide"])
@pytest.mark.parametrize("n_iter", [1, 60, 150])
def test_agrees_with_the_slow_reference(n, n_iter):
    X, C = problem(n=n, seed=3 if n == 4 else 0)
    # Along zero singular values the reference goes anywhere.
    assert np.linalg.matrix_rank(C) == min(C.shape)
    fast = solve(X, C, **WEIGHTS, max_iter=n_iter, tol=0)
    W, N = slow_solve(X, C, **WEIGHTS, n_iter=n_iter)
    assert_allclose(fast.coef, W, atol=1e-7)
    assert_array_equal(fast.noise, N)
    assert_allclose(fast.history["objective"][-1], slow_objective(X, C, W, N, **WEIGHTS), rtol=1e-7)
    assert N.any() == (n == 60 and n_iter == 150)


@pytest.mark.parametrize("shape", [(9, 4), (4, 9), (5, 5)])
def test_raised_singular_values_are_the_minimum(shape):
    rng = np.random.default_rng(0)
    B = rng.normal(size=shape)
    A = raise_singular_values(B, 0.7)
    U, sigma, Vt = np.linalg.svd(B, full_matrices=False)
    assert_allclose(A, (U * (sigma + 0.7)) @ Vt, atol=1e-10)

    def loss(A):
        return 0.5 * np.linalg.norm(A - B) ** 2 - 0.7 * np.linalg.norm(A, "nuc")

    for size in (1e-3, 1e-1, 3.0):
        for _ in range(20):
            assert loss(A + size * rng.normal(size=shape)) > loss(A)


def test_zero_singular_values_stay_zero():
    rng = np.random.default_rng(0)
    B = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 5))
    B[:, 3] = 0
    A = raise_singular_values(B, 0.5)
    assert np.linalg.matrix_rank(A, tol=1e-6) == 2
    assert_array_equal(A[:, 3], 0)
    assert_array_equal(raise_singular_values(np.zeros((4, 3)), 0.5), 0)


@pytest.mark.parametrize("n", [60, 6], ids=["tall", "wide"])
def test_meets_the_condition_of_the_optimum(n):
    """The objective has a slope where no singular value of XW is zero: ‖XW‖* has the polar factor of XW."""
    X, C = problem(n=n, c=4)
    found = solve(X, C, **WEIGHTS, **EXACT)
    assert found.converged
    U, _, Vt = np.linalg.svd(X @ found.coef, full_matrices=False)
    slope = X.T @ (X @ found.coef - (C - found.noise)) - 0.1 * X.T @ (U @ Vt) + 2.0 * found.coef
    assert_allclose(slope, 0, atol=1e-6)
    # N is the better of 0 and 1 in every cell.
    scores = X @ found.coef
    assert_array_equal(found.noise, (C > 0) & (scores < (1 - 0.4) / 2))


def test_without_rank_and_noise_it_is_ridge_regression():
    X, C = problem()
    found = solve(X, C, alpha=100.0, beta=0.0, lam=2.0, **EXACT)
    assert found.converged
    assert not found.noise.any()
    ridge = np.linalg.solve(X.T @ X + 2.0 * np.eye(X.shape[1]), X.T @ C)
    assert_allclose(found.coef, ridge, atol=1e-7)


def test_without_rank_it_is_ridge_regression_on_what_remains():
    X, C = problem()
    found = solve(X, C, alpha=0.4, beta=0.0, lam=2.0, **EXACT)
    assert found.noise.any()
    ridge = np.linalg.solve(X.T @ X + 2.0 * np.eye(X.shape[1]), X.T @ (C - found.noise))
    assert_allclose(found.coef, ridge, atol=1e-7)


def test_singular_values_grow_with_their_weight():
    X, C = problem()
    norms = [
        np.linalg.norm(solve(X, C, alpha=100.0, beta=beta, lam=2.0, **EXACT).scores, "nuc")
        for beta in (0.0, 0.1, 1.0)
    ]
    assert norms[0] < norms[1] < norms[2]


def test_more_is_removed_where_noise_is_cheap():
    X, C = problem()
    removed = [solve(X, C, alpha=alpha, beta=0.03, lam=2.0).noise.sum() for alpha in (0.1, 0.4, 2.0)]
    assert removed[0] > removed[1] > removed[2] == 0


def test_estimator_gives_the_solution(partial_problem):
    X, candidates, _ = partial_problem
    model = Schirn(threshold=0.5, alpha=0.1).fit(X, candidates)
    low, high = X.min(axis=0), X.max(axis=0)
    scaled = np.column_stack([2 * (X - low) / (high - low) - 1, np.ones(len(X))])
    found = solve(scaled, candidates.astype(float), alpha=0.1, beta=0.03, lam=10.0)
    assert_allclose(model.decision_function(X), scaled @ found.coef, atol=1e-9)
    assert_array_equal(model.predict(X), scaled @ found.coef > 0.5)
    assert_array_equal(model.noise_, found.noise > 0)
    assert_allclose(model.confidences_, np.clip(scaled @ found.coef, 0, 1) * candidates, atol=1e-9)


def test_golden_values(partial_problem):
    X, candidates, _ = partial_problem
    model = Schirn().fit(X, candidates)
    assert int(model.noise_.sum()) == 1
    assert model.history_["objective"][-1] == pytest.approx(153.77090717399255, rel=1e-7)
    assert model.threshold_ == pytest.approx(0.7724773730635306, rel=1e-6)
    scores = [0.7475781, 0.6648538, 0.5301163, 0.5157537, 0.5480479, 0.7977155]
    assert_allclose(model.decision_function(X)[0], scores, atol=1e-6)


def test_false_candidates_are_removed_more_often(partial_problem):
    X, candidates, truth = partial_problem
    model = Schirn(alpha=0.1).fit(X, candidates)
    is_false = (candidates == 1) & (truth == 0)
    assert model.noise_[is_false].mean() > model.noise_[truth == 1].mean() + 0.05
    assert not model.noise_[candidates == 0].any()


def test_order_does_not_matter(partial_problem):
    X, candidates, _ = partial_problem
    rng = np.random.default_rng(0)
    rows, features, labels = rng.permutation(120), rng.permutation(10), rng.permutation(6)
    given = Schirn(alpha=0.1).fit(X, candidates)
    moved = Schirn(alpha=0.1).fit(X[rows][:, features], candidates[rows][:, labels])
    assert_allclose(moved.decision_function(X[:, features]), given.decision_function(X)[:, labels], atol=1e-8)
    assert_array_equal(moved.noise_, given.noise_[rows][:, labels])


def test_label_that_nobody_has(partial_problem):
    X, candidates, _ = partial_problem
    candidates = candidates.copy()
    candidates[:, 2] = 0
    model = Schirn(on_empty="ignore").fit(X, candidates)
    assert_allclose(model.coef_[:, 2], 0, atol=1e-12)


def test_other_feature_maps(partial_problem):
    X, candidates, _ = partial_problem
    kernel = Schirn(feature_map="rbf", alpha=100.0, beta=0.0, lam=1.0, **EXACT).fit(X, candidates)
    ridge = CandidateRidge().fit(X, candidates)
    assert_allclose(kernel.decision_function(X), ridge.decision_function(X), atol=1e-6)


def test_says_where_it_did_not_converge(partial_problem):
    X, candidates, _ = partial_problem
    with pytest.warns(ConvergenceWarning, match="max_iter=5"):
        model = Schirn(max_iter=5).fit(X, candidates)
    assert (model.n_iter_, model.converged_) == (5, False)
    model = Schirn(max_iter=1000).fit(X, candidates)
    assert model.converged_
    assert model.history_["gap"][-1] <= 1e-3


@pytest.mark.parametrize("name", ["alpha", "beta", "lam", "tol", "max_iter"])
def test_bad_parameters(partial_problem, name):
    X, candidates, _ = partial_problem
    with pytest.raises(ValueError, match=f"{name} must be"):
        Schirn(**{name: -1}).fit(X, candidates)


def test_coefficients_must_have_a_weight(partial_problem):
    X, candidates, _ = partial_problem
    with pytest.raises(ValueError, match="lam must be above 0"):
        Schirn(lam=0.0).fit(X, candidates)
