"""Candidate likelihood in batches: earlier rows enter through a quadratic form alone."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.base import clone

from batches import fit_in_batches, rows
from likelihood_data import blobs
from skpml import CandidateLikelihood
from skpml.candidate_likelihood import _estimator as estimator_module
from skpml.candidate_likelihood._batches import Member, Sums, learn_rows, sum_rows
from skpml.likelihood import Setting, given_one, log_likelihood, posterior

FIXED = {"gamma": 0.1, "kernel_width": 1.0, "n_anchors": 40, "random_state": 0, "tol": 1e-9}


def setting(family, *, one_true=False, gamma=0.3):
    return Setting(family, one_true, 1.0, gamma, 1.0)


def with_ones(X):
    return np.hstack([X, np.ones((len(X), 1))])


def problem(family, *, one_true=False, seed=0):
    """A member, X̃ and candidates of old and of new rows, and the sums over the old ones."""
    rng = np.random.default_rng(seed)
    X, Y = rows(n=90, d=3, c=3, seed=seed)
    Y[5] = 0
    X, Y = with_ones(X), Y.astype(float)
    theta, rates = 0.3 * rng.normal(size=(4, 3)), np.array([0.1, 0.2, 0.3])
    member = Member(setting=setting(family, one_true=one_true), map_place=0, rates=rates, theta=theta)
    sums = sum_rows([([X[:60]], Y[:60])], [member], None, 0.5 * Y[:60])
    return member, X[60:], Y[60:], sums


@pytest.mark.parametrize("family", ["auto", "logistic", "least-squares", "ridge"])
def test_one_batch_is_a_fit(family):
    X, Y = rows()
    model = CandidateLikelihood(family=family, random_state=0, n_anchors=40)
    whole, batch = clone(model).fit(X, Y), clone(model).partial_fit(X, Y)
    assert_array_equal(batch.predict_proba(X), whole.predict_proba(X))
    assert_array_equal(batch.confidences_, whole.confidences_)


@pytest.mark.parametrize("sizes", [(90, 60, 50), (90, 110), (60, 139, 1)])
@pytest.mark.parametrize("feature_map", ["rbf", "linear"])
def test_ridge_regression_in_batches_is_that_of_all_rows(sizes, feature_map):
    """The penalty is the size of the coefficients times the spread of the mapped features of the first batch."""
    X, Y = rows()
    model = CandidateLikelihood(family="ridge", noise_rate=0.2, feature_map=feature_map, **FIXED)
    fit_in_batches(model, X, Y, sizes)
    mapped = model.feature_maps_[0].transform(model.scaler_.transform(X))
    mapped = with_ones(mapped[:, :-1] if feature_map == "rbf" else mapped)
    first = mapped[: sizes[0], :-1]
    penalty = np.full(mapped.shape[1], 0.1 * first.var(axis=0).sum())
    penalty[-1] = 0
    theta = np.linalg.solve(mapped.T @ mapped + np.diag(penalty), mapped.T @ Y)
    assert_allclose(model.coef_[0], theta[:-1], atol=1e-6)
    assert_allclose(model.intercept_[0], theta[-1], atol=1e-6)


@pytest.mark.parametrize("one_true", [False, True])
def test_logistic_members_maximize_what_the_module_says(one_true):
    """An optimizer without slopes, on the plain coefficients."""
    member, X, Y, sums = problem("logistic", one_true=one_true)
    theta0, M, B = member.theta, sums.moments[0], sums.covariance
    kappa, weight = sums.curvatures[0] / 60, 0.3 * sums.scales[0]
    marked = Y.any(axis=1)[:, None] if one_true else None

    def objective(flat):
        change = flat.reshape(theta0.shape)
        value = -log_likelihood(X @ (theta0 + change), member.rates, Y, marked).sum()
        value += 0.5 * sum(kappa[k] * change[:, k] @ M @ change[:, k] for k in range(3))
        return value + 0.5 * weight * np.trace(change[:-1] @ np.linalg.inv(B) @ change[:-1].T)

    slow = minimize(objective, np.zeros(theta0.size), options={"gtol": 1e-8})
    (found,) = learn_rows([X], Y, [member], sums, max_iter=1000, tol=1e-10)
    assert found.converged
    assert -found.history[-1] <= slow.fun + 1e-9
    assert_allclose(found.theta, theta0 + slow.x.reshape(theta0.shape), atol=1e-4)


@pytest.mark.parametrize("one_true", [False, True])
def test_targets_of_least_squares_are_posteriors_under_the_regression_without_the_row(one_true):
    """The slow oracle leaves out each row in turn."""
    member, X, Y, sums = problem("least-squares", one_true=one_true)
    (found,) = learn_rows([X], Y, [member], sums, max_iter=1000, tol=1e-12)
    assert found.converged
    penalty = np.diag([0.3 * sums.scales[0]] * 3 + [0.0])
    A = sums.moments[0] + penalty
    b = A @ member.theta

    def targets_after(targets):
        result = np.empty_like(targets)
        for row in range(len(X)):
            rest = np.arange(len(X)) != row
            theta = np.linalg.solve(A + X[rest].T @ X[rest], b + X[rest].T @ targets[rest])
            eta = np.clip(X[row] @ theta, 3e-3, 1 - 3e-3)
            r = posterior(eta, member.rates, Y[row])
            result[row] = given_one(r[None], np.ones((1, 1), bool))[0] if one_true and Y[row].any() else r
        return result

    targets = 0.5 * Y
    for _ in range(100):
        targets = targets_after(targets)
    assert_allclose(targets_after(targets), targets, atol=1e-10)
    theta = np.linalg.solve(A + X.T @ X, b + X.T @ targets)
    assert_allclose(found.theta, theta, atol=1e-8)


@pytest.mark.parametrize("family", ["logistic", "least-squares", "ridge"])
def test_rows_that_say_what_is_known_change_nothing(family):
    """After infinitely many rows, a few more do not matter."""
    member, X, Y, sums = problem(family)
    many = 1e9
    heavy = Sums(
        n_rows=int(60 * many),
        moments=[many * sums.moments[0]],
        curvatures=[many * sums.curvatures[0]],
        scales=sums.scales,
        covariance=sums.covariance,
    )
    (found,) = learn_rows([X], Y, [member], heavy, max_iter=100, tol=1e-6)
    assert_allclose(found.theta, member.theta, atol=1e-6)


@pytest.mark.parametrize("family", ["logistic", "least-squares"])
def test_the_order_of_the_rows_of_a_batch_does_not_matter(family):
    member, X, Y, sums = problem(family)
    options = {"max_iter": 1000, "tol": 1e-10}
    (found,) = learn_rows([X], Y, [member], sums, **options)
    (turned,) = learn_rows([X[::-1]], Y[::-1], [member], sums, **options)
    assert_allclose(turned.theta, found.theta, atol=1e-7)


@pytest.mark.parametrize("family", ["logistic", "least-squares", "ridge"])
def test_batches_gain_most_of_what_all_rows_gain(family):
    X, truth, candidates, _ = blobs(n=3000)
    train, test = slice(0, 1500), slice(1500, None)
    model = CandidateLikelihood(family=family, at_least_one=False, on_empty="ignore", **FIXED)
    model.set_params(tol=1e-5, n_anchors=100)
    first = clone(model).fit(X[:300], candidates[:300])
    whole = first.refit(X[train], candidates[train])
    stream = fit_in_batches(clone(model), X[train], candidates[train], (300,) * 5)
    start, best, found = (
        np.mean((each.predict_proba(X[test]) - truth[test]) ** 2) for each in (first, whole, stream)
    )
    assert best < start
    assert start - found > 0.8 * (start - best)


def test_sums_do_not_depend_on_blocks_of_rows(monkeypatch):
    X, Y = rows()
    model = CandidateLikelihood(family="logistic", **FIXED)
    whole = fit_in_batches(clone(model), X, Y, (120, 80))
    monkeypatch.setattr(estimator_module, "_SCORED_ROWS", 37)
    blocks = fit_in_batches(clone(model), X, Y, (120, 80))
    assert_allclose(blocks.predict_proba(X), whole.predict_proba(X), atol=1e-7)
    for name in ("moments", "curvatures", "scales", "covariance"):
        for one, other in zip(blocks._sums[name], whole._sums[name], strict=True):
            assert_allclose(one, other, rtol=1e-7, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("options", [{"feature_map": "linear", "gamma": 0.1}, {"effort": "quick"}, {}])
def test_every_kind_of_model_continues(options):
    X, Y = rows()
    model = fit_in_batches(CandidateLikelihood(random_state=0, **options), X, Y, (150, 50))
    assert model.confidences_.shape == (50, 4)
    assert (model.confidences_[Y[150:] == 0] == 0).all()
    assert model.confidences_.max() <= 1
    single = fit_in_batches(
        CandidateLikelihood(random_state=0, **options), X.astype(np.float32), Y, (150, 50)
    )
    assert single.confidences_.dtype == np.float32
    assert_allclose(single.confidences_, model.confidences_, atol=0.02)
