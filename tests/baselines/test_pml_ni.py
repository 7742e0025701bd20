import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from skpml.baselines._pml_ni import PMLNI, solve
from skpml.datasets import load_dataset
from skpml.metrics import average_precision, ranking_loss
from skpml.reference import CandidateRidge

WEIGHTS = dict(lam=3.0, beta=2.0, gamma=0.7)


def problem(n=60, d=9, c=5, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1, 1, size=(n, d)), np.ones(n)])
    Y = (X @ rng.normal(size=(d + 1, c)) + 0.5 * rng.normal(size=(n, c)) > 0).astype(float)
    return X, Y


def slow_solve(X, Y, lam, beta, gamma, n_iter):
    """The algorithm as it is written: c×D matrices, an inverse and a full singular value decomposition a step."""
    Z, gram = Y.T @ X, X.T @ X
    W, S, A = np.zeros_like(Z), np.zeros_like(Z), np.zeros_like(Z)
    mu = 1e-4
    for _ in range(n_iter):
        H = (Z + mu * W + mu * S + A) @ np.linalg.inv(gram + (lam + mu) * np.eye(len(gram)))
        W_old = W
        U, sigma, Vt = np.linalg.svd(H - S - A / mu, full_matrices=False)
        W = (U * np.maximum(sigma - beta / mu, 0)) @ Vt
        T = H - W - A / mu
        S = np.sign(T) * np.maximum(np.abs(T) - gamma / mu, 0)
        if mu * np.linalg.norm(W - W_old) / np.linalg.norm(H) < 1e-5:
            mu = min(1.1 * mu, 1e10)
        A = A + mu * (W + S - H)
    return W.T, S.T, np.linalg.norm(H - W - S) / np.linalg.norm(H)


def slow_objective(X, Y, W, S, lam, beta, gamma):
    H = W + S
    misfit = 0.5 * np.linalg.norm(Y - X @ H) ** 2 + 0.5 * lam * np.linalg.norm(H) ** 2
    return misfit + beta * np.linalg.norm(W, "nuc") + gamma * np.abs(S).sum()


@pytest.mark.parametrize("n", [60, 6], ids=["tall", "wide"])
@pytest.mark.parametrize("n_iter", [60, 100, 140])
def test_agrees_with_the_slow_reference(n, n_iter):
    X, Y = problem(n=n)
    fast = solve(X, Y, **WEIGHTS, max_iter=n_iter, tol=0)
    W, S, gap = slow_solve(X, Y, **WEIGHTS, n_iter=n_iter)
    assert_allclose(fast.classifier, W, atol=1e-8)
    assert_allclose(fast.noise_identifier, S, atol=1e-8)
    assert_allclose(fast.history["gap"][-1], gap, rtol=1e-4)
    assert_allclose(fast.history["objective"][-1], slow_objective(X, Y, W, S, **WEIGHTS), rtol=1e-8)


@pytest.mark.parametrize("n", [60, 6], ids=["tall", "wide"])
@pytest.mark.parametrize(("beta", "gamma"), [(0.5, 0.5), (2.0, 0.7), (3.0, 0.3), (0.1, 5.0)])
def test_meets_the_conditions_of_the_optimum(n, beta, gamma):
    """Necessary and sufficient, for the problem is convex: the smooth part pulls within both subgradients."""
    X, Y = problem(n=n)
    found = solve(X, Y, lam=3.0, beta=beta, gamma=gamma)
    W, S = found.classifier, found.noise_identifier
    assert found.converged
    pull = X.T @ (Y - X @ (W + S)) - 3.0 * (W + S)
    assert np.linalg.norm(pull, 2) <= beta * (1 + 1e-4)
    assert np.abs(pull).max() <= gamma * (1 + 1e-4)
    assert_allclose(np.vdot(pull, W), beta * np.linalg.norm(W, "nuc"), rtol=1e-4, atol=1e-6)
    assert_allclose(np.vdot(pull, S), gamma * np.abs(S).sum(), rtol=1e-4, atol=1e-6)


def test_both_models_take_part_where_the_trace_norm_costs_more():
    found = solve(*problem(), **WEIGHTS)
    assert 0 < np.count_nonzero(found.noise_identifier) < found.noise_identifier.size
    assert 0 < np.linalg.matrix_rank(found.classifier, tol=1e-6) < 5


def test_without_norms_it_is_ridge_regression():
    X, Y = problem()
    found = solve(X, Y, lam=3.0, beta=0.0, gamma=0.0)
    ridge = np.linalg.solve(X.T @ X + 3.0 * np.eye(10), X.T @ Y)
    assert_allclose(found.classifier + found.noise_identifier, ridge, atol=1e-6)


@pytest.mark.parametrize(("beta", "gamma"), [(0.5, 0.5), (0.5, 1.0), (4.0, 4.0)])
def test_no_noise_is_identified_where_the_trace_norm_costs_no_more(beta, gamma):
    found = solve(*problem(), lam=10.0, beta=beta, gamma=gamma)
    assert found.converged
    assert np.abs(found.noise_identifier).max() == 0


def test_huge_weights_leave_nothing():
    X, Y = problem()
    found = solve(X, Y, lam=10.0, beta=1e4, gamma=1e4)
    assert found.converged
    assert not found.classifier.any()
    assert not found.noise_identifier.any()
    assert_allclose(found.history["objective"][-1], 0.5 * Y.sum())


@pytest.mark.parametrize("beta", [0.5, 2.0, 5.0])
def test_ends_where_the_constraint_holds(beta):
    X, Y = problem()
    found = solve(X, Y, lam=10.0, beta=beta, gamma=0.5)
    assert found.converged
    assert found.history["gap"][-1] < 1e-7


def test_no_better_pair_is_near():
    X, Y = problem()
    found = solve(X, Y, **WEIGHTS)
    best = found.history["objective"][-1]
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-1):
        for _ in range(20):
            W = found.classifier + size * rng.normal(size=found.classifier.shape)
            S = found.noise_identifier + size * rng.normal(size=found.classifier.shape) * rng.integers(0, 2)
            assert slow_objective(X, Y, W, S, **WEIGHTS) > best


def test_no_candidates_at_all():
    X, Y = problem()
    found = solve(X, np.zeros_like(Y), lam=10.0, beta=0.5, gamma=0.5)
    assert found.converged
    assert not found.classifier.any()


def test_predicts_by_the_classifier_alone(partial_problem):
    X, candidates, _ = partial_problem
    model = PMLNI(beta=5.0, threshold=0.5).fit(X, candidates)
    assert model.noise_coef_.any()
    low, high = X.min(axis=0), X.max(axis=0)
    scaled = np.column_stack([2 * (X - low) / (high - low) - 1, np.ones(len(X))])
    assert_allclose(model.decision_function(X), scaled @ model.coef_, atol=1e-10)
    assert_array_equal(model.predict(X), scaled @ model.coef_ > 0.5)
    solution = solve(scaled, candidates.astype(float), lam=10.0, beta=5.0, gamma=0.5)
    assert_allclose(model.coef_, solution.classifier, atol=1e-8)
    assert_allclose(model.noise_coef_, solution.noise_identifier, atol=1e-8)
    assert model.threshold_ == 0.5


def test_nearly_ridge_with_the_published_weights(partial_problem):
    """W less ridge is (XᵀX + λI)⁻¹ times a matrix of spectral norm at most β: no larger than β/λ."""
    X, candidates, _ = partial_problem
    model = PMLNI().fit(X, candidates)
    mapped = model.feature_map_.transform(X)
    ridge = np.linalg.solve(mapped.T @ mapped + 10 * np.eye(11), mapped.T @ candidates)
    assert 0 < np.linalg.norm(model.coef_ - ridge, 2) <= 0.5 / 10


def test_true_labels_do_not_hurt(partial_problem):
    X, _, truth = partial_problem
    ours = PMLNI().fit(X[:90], truth[:90]).decision_function(X[90:])
    ridge = CandidateRidge(feature_map="linear").fit(X[:90], truth[:90]).decision_function(X[90:])
    assert average_precision(truth[90:], ours) > average_precision(truth[90:], ridge) - 0.02


def test_order_does_not_matter(partial_problem):
    X, candidates, _ = partial_problem
    rng = np.random.default_rng(0)
    rows, features, labels = rng.permutation(120), rng.permutation(10), rng.permutation(6)
    given = PMLNI(beta=2.0).fit(X, candidates)
    moved = PMLNI(beta=2.0).fit(X[rows][:, features], candidates[rows][:, labels])
    assert_allclose(moved.decision_function(X[:, features]), given.decision_function(X)[:, labels], atol=1e-7)
    assert_allclose(moved.noise_coef_[:-1], given.noise_coef_[:-1][features][:, labels], atol=1e-6)


def test_rows_said_twice_are_rows_of_double_weight():
    """Doubling the data doubles the first term alone: as if the other weights were halved."""
    X, Y = problem()
    twice = solve(np.vstack([X, X]), np.vstack([Y, Y]), lam=6.0, beta=4.0, gamma=1.4)
    once = solve(X, Y, **WEIGHTS)
    assert_allclose(twice.history["objective"][-1], 2 * once.history["objective"][-1], rtol=1e-7)
    # Half of λ times the squared distance to the optimum is below the excess of the objective, about 1e-6 for both.
    assert_allclose(
        twice.classifier + twice.noise_identifier, once.classifier + once.noise_identifier, atol=1e-3
    )


def test_single_precision_is_solved_in_double(partial_problem):
    X, candidates, _ = partial_problem
    model = PMLNI().fit(X.astype(np.float32), candidates)
    assert model.converged_
    assert model.coef_.dtype == np.float32
    mapped = model.feature_map_.transform(X.astype(np.float32)).astype(float)
    double = solve(mapped, candidates.astype(float), lam=10.0, beta=0.5, gamma=0.5)
    assert_allclose(model.coef_, double.classifier.astype(np.float32), rtol=1e-6)
    assert_array_equal(model.history_["objective"], double.history["objective"])


def test_label_that_nobody_has(partial_problem):
    X, candidates, _ = partial_problem
    candidates = candidates.copy()
    candidates[:, 2] = 0
    model = PMLNI(on_empty="ignore").fit(X, candidates)
    assert_allclose(model.coef_[:, 2], 0, atol=1e-12)
    assert not model.predict(X)[:, 2].any()


@pytest.mark.parametrize("single", [0, 1], ids=["all candidates", "one label"])
def test_degenerate_candidates(partial_problem, single):
    X, candidates, _ = partial_problem
    Y = candidates[:, :1] if single else np.ones((120, 4), int)
    model = PMLNI(on_empty="ignore")
    if single:
        model.fit(X, Y)
    else:
        with pytest.warns(match="Every label is a candidate"):
            model.fit(X, Y)
    assert model.converged_
    assert np.isfinite(model.decision_function(X)).all()


def test_says_where_it_did_not_converge(partial_problem):
    X, candidates, _ = partial_problem
    with pytest.warns(ConvergenceWarning, match="max_iter=5"):
        model = PMLNI(max_iter=5).fit(X, candidates)
    assert model.n_iter_ == 5
    assert not model.converged_


@pytest.mark.parametrize("name", ["lam", "beta", "gamma", "tol", "max_iter"])
def test_bad_parameters(partial_problem, name):
    X, candidates, _ = partial_problem
    with pytest.raises(ValueError, match=f"{name} must be"):
        PMLNI(**{name: -1}).fit(X, candidates)


@pytest.mark.parametrize(("name", "published"), [("emotions-3", (0.777, 0.188)), ("yeast-7", (0.746, 0.184))])
@pytest.mark.slow
def test_reaches_the_published_ranking(data_folder, name, published):
    data = load_dataset(name, random_state=0)
    values = []
    for train, test in KFold(10, shuffle=True, random_state=0).split(data.X):
        model = PMLNI(on_empty="ignore").fit(data.X[train], data.candidates[train])
        scores, truth = model.decision_function(data.X[test]), data.truth[test]
        values.append((average_precision(truth, scores), ranking_loss(truth, scores)))
    precision, loss = np.mean(values, axis=0)
    assert precision == pytest.approx(published[0], abs=0.025)
    assert loss == pytest.approx(published[1], abs=0.025)
