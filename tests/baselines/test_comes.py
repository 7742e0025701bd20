import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from skpml._sharing import shared_work
from skpml.baselines._comes import COMES, positive_loss, solve, solve_weighted
from skpml.linalg import ridge_factor
from skpml.reference import CandidateRidge


def problem(n=60, d=7, c=4, rate=0.3, seed=0):
    """Features, candidates at a constant rate, truth."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1, 1, size=(n, d)), np.ones(n)])
    truth = X @ rng.normal(size=(d + 1, c)) + 0.5 * rng.normal(size=(n, c)) > 0.7
    return X, (truth | (rng.random((n, c)) < rate)).astype(float), truth.astype(float)


def risk(scores, C, prior, *, absolute=True):
    """The risk of the docstring for one label, mean by mean."""
    on_others = scores[C == 0]
    positives = np.mean((1 - scores) ** 2) - (1 - prior) * np.mean((1 - on_others) ** 2)
    return (abs(positives) if absolute else positives) + (1 - prior) * np.mean(on_others**2)


def prior_of(C, rate):
    return (C.mean(axis=0) - rate) / (1 - rate)


def test_positive_loss_is_that_of_the_risk():
    X, C, _ = problem()
    scores, rate = X @ np.random.default_rng(1).normal(size=(8, 4)), np.array([0.1, 0.2, 0.3, 0.05])
    odds, prior = rate / (1 - rate), prior_of(C, rate)
    others = (1 + odds) * np.where(C > 0, 0, scores**2).sum(axis=0)
    found = (np.abs(positive_loss(scores, C, odds)) + others) / len(X)
    expected = [risk(scores[:, j], C[:, j], prior[j]) for j in range(4)]
    assert_allclose(found, expected, rtol=1e-10)


def test_risk_is_unbiased():
    """Over draws of the noise, its mean is the risk on true labels, with the prior of the population."""
    X, _, truth = problem(n=400)
    scores, truth = X @ np.random.default_rng(1).normal(size=8), truth[:, 0]
    rng, rate = np.random.default_rng(2), 0.3
    draws = []
    for _ in range(400):
        C = np.where(truth > 0, 1.0, rng.random(400) < rate)
        draws.append(risk(scores, C, truth.mean(), absolute=False))
    error = np.std(draws) / len(draws) ** 0.5
    assert abs(np.mean(draws) - np.mean((scores - truth) ** 2)) < 3 * error


def test_without_noise_it_is_ridge_regression_on_the_candidates(partial_problem):
    X, candidates, _ = partial_problem
    model = COMES(noise_rate=0.0, gamma=2.0).fit(X, candidates)
    ridge = CandidateRidge(gamma=2.0).fit(X, candidates)
    assert_allclose(model.decision_function(X), ridge.decision_function(X), atol=1e-9)
    assert_array_equal(model.positive_weight_, 1)
    assert_allclose(model.class_prior_, candidates.mean(axis=0))


def test_without_correction_it_is_ridge_regression_on_corrected_labels():
    X, C, _ = problem(n=300)
    rate = np.array([0.1, 0.2, 0.25, 0.05])
    found = solve(X, C, rate / (1 - rate), gamma=5.0)
    assert_array_equal(found.positive_weight, 1)
    ridge = np.linalg.solve(X.T @ X + 5.0 * np.eye(8), X.T @ ((C - rate) / (1 - rate)))
    assert_allclose(found.coef, ridge, atol=1e-9)


def test_one_rate_keeps_the_ranking_of_ridge(partial_problem):
    X, candidates, _ = partial_problem
    model = COMES(noise_rate=0.2, gamma=100.0).fit(X, candidates)
    assert_array_equal(model.positive_weight_, 1)
    ridge = CandidateRidge(gamma=100.0).fit(X, candidates)
    # The constant column is orthogonal to the centered similarities, so a constant is shrunk on its own.
    constant = 0.2 * 120 / (120 + 100.0)
    assert_allclose(model.decision_function(X), (ridge.decision_function(X) - constant) / 0.8, atol=1e-9)


def test_weighted_systems_agree_with_direct_solutions():
    X, C, _ = problem()
    odds, share = np.array([0.2, 0.5, 1.0, 3.0]), np.array([0.1, 0.4, 0.8, 1.0])
    factor = ridge_factor(X, ridge=0.7)
    found = solve_weighted(X, C, odds, share, 0.7, factor, np.zeros((8, 4)))
    for j in range(4):
        # sA + B + γ‖w‖², differentiated term by term.
        inside, outside = X[C[:, j] > 0], X[C[:, j] == 0]
        left = share[j] * inside.T @ inside + (1 + odds[j] - share[j] * odds[j]) * outside.T @ outside
        right = share[j] * inside.sum(axis=0) - share[j] * odds[j] * outside.sum(axis=0)
        assert_allclose(found[:, j], np.linalg.solve(left + 0.7 * np.eye(8), right), atol=1e-7)


def overfitting_problem():
    """As many features as rows, so that the estimated loss of the positives becomes negative."""
    rng = np.random.default_rng(0)
    _, C, _ = problem(n=12)
    rate = 0.8 * C.mean(axis=0)
    return rng.normal(size=(12, 9)), C, rate / (1 - rate)


def test_correction_makes_the_loss_of_the_positives_zero():
    X, C, odds = overfitting_problem()
    found = solve(X, C, odds, gamma=0.1)
    plain = np.linalg.solve(X.T @ X + 0.1 * np.eye(9), X.T @ np.where(C > 0, 1, -odds))
    assert (positive_loss(X @ plain, C, odds) < -0.1).all()
    assert_allclose(positive_loss(X @ found.coef, C, odds), 0, atol=1e-5)
    assert (found.positive_weight > 0).all()
    assert (found.positive_weight < 1).all()


def test_correction_finds_the_global_minimum():
    X, C, odds = overfitting_problem()
    found = solve(X, C, odds, gamma=0.1)
    rng = np.random.default_rng(3)
    for j in range(4):

        def objective(w, j=j):
            scores = (X @ w)[:, None]
            others = (1 + odds[j]) * np.where(C[:, [j]] > 0, 0, scores**2).sum()
            return abs(positive_loss(scores, C[:, [j]], odds[[j]])[0]) + others + 0.1 * w @ w

        best = objective(found.coef[:, j])
        starts = [found.coef[:, j], *rng.normal(size=(5, 9))]
        assert min(minimize(objective, w, method="Powell").fun for w in starts) > best - 1e-4 * abs(best)


def test_correction_in_the_estimator(partial_problem):
    X, candidates, _ = partial_problem
    model = COMES(gamma=0.01, noise_rate=0.4).fit(X, candidates)
    assert (model.positive_weight_ < 1).all()
    odds = np.full(6, 0.4 / 0.6)
    assert_allclose(positive_loss(model.decision_function(X), candidates, odds), 0, atol=1e-3)


@pytest.mark.parametrize("rate", [0.1, 0.3])
def test_estimates_a_constant_rate(rate):
    X, C, truth = problem(n=1500, d=3, rate=rate, seed=4)
    model = COMES(feature_map="linear", on_empty="ignore").fit(X[:, :3], C)
    assert_allclose(model.noise_rate_, rate, atol=0.1)
    assert_allclose(model.class_prior_, truth.mean(axis=0), atol=0.1)


def test_rates_are_estimated_once_for_all_weights(partial_problem):
    X, candidates, _ = partial_problem
    alone = COMES(gamma=0.1, random_state=0).fit(X, candidates).noise_rate_
    with shared_work() as work:
        for gamma in (1.0, 0.1, 10.0):
            model = COMES(gamma=gamma, random_state=0).fit(X, candidates)
            assert_array_equal(model.noise_rate_, alone)
    # The anchors and the rates.
    assert (work.computed, work.reused) == (2, 4)


def test_rates_may_be_given(partial_problem):
    X, candidates, _ = partial_problem
    rates = np.linspace(0.1, 0.4, 6)
    model = COMES(noise_rate=rates).fit(X, candidates)
    assert_array_equal(model.noise_rate_, rates)
    assert_allclose(model.class_prior_, prior_of(candidates, rates))
    # No more than all candidates can be false.
    model = COMES(noise_rate=0.9).fit(X, candidates)
    assert_allclose(model.noise_rate_, np.minimum(candidates.mean(axis=0), 0.9))
    assert (model.class_prior_ >= 0).all()


def test_golden_values(partial_problem):
    X, candidates, _ = partial_problem
    model = COMES().fit(X, candidates)
    rates = [0.62245933, 0.5945035, 0.62245933, 0.62245933, 0.48237697, 0.57886512]
    assert_allclose(model.noise_rate_, rates, atol=1e-6)
    weights = [0.4202618, 0.3630654, 0.6750041, 0.2119917, 0.1771059, 0.2420736]
    assert_allclose(model.positive_weight_, weights, atol=1e-5)
    scores = [0.2752166, 0.1418549, -0.2408697, 0.1537771, 0.1525173, 0.4250439]
    assert_allclose(model.decision_function(X)[0], scores, atol=1e-5)


def test_order_does_not_matter(partial_problem):
    X, candidates, _ = partial_problem
    rng = np.random.default_rng(0)
    rows, features, labels = rng.permutation(120), rng.permutation(10), rng.permutation(6)
    given = COMES().fit(X, candidates)
    moved = COMES().fit(X[rows][:, features], candidates[rows][:, labels])
    assert_allclose(moved.decision_function(X[:, features]), given.decision_function(X)[:, labels], atol=1e-7)
    assert_allclose(moved.noise_rate_, given.noise_rate_[labels], atol=1e-9)
    assert_allclose(moved.positive_weight_, given.positive_weight_[labels], atol=1e-6)


def test_label_that_nobody_has(partial_problem):
    X, candidates, _ = partial_problem
    candidates = candidates.copy()
    candidates[:, 2] = 0
    model = COMES(on_empty="ignore").fit(X, candidates)
    assert_array_equal(model.coef_[:, 2], 0)
    assert model.noise_rate_[2] == model.class_prior_[2] == 0


@pytest.mark.parametrize("rate", [-0.1, 1.0, "half", [0.1, 0.2], np.nan])
def test_bad_rates(partial_problem, rate):
    X, candidates, _ = partial_problem
    with pytest.raises(ValueError, match="noise_rate must be"):
        COMES(noise_rate=rate).fit(X, candidates)


def test_bad_weight(partial_problem):
    X, candidates, _ = partial_problem
    with pytest.raises(ValueError, match="gamma must be"):
        COMES(gamma=-1).fit(X, candidates)
