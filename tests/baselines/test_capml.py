from itertools import permutations

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment, minimize
from sklearn.exceptions import ConvergenceWarning

from skpml.baselines import _capml
from skpml.baselines._capml import (
    CAPML,
    cluster_rows,
    match_clusters,
    reliability_of_candidates,
    solve,
    weighted_means,
)

WEIGHTS = dict(alpha=0.2, beta=0.5)


def problem(n=40, d=6, c=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, d))
    C = (X @ rng.normal(size=(d, c)) + 0.5 * rng.normal(size=(n, c)) > 0).astype(float)
    C[np.arange(n), rng.integers(0, c, n)] = 1
    return X, C


def regression_problem():
    X, C = problem()
    reliability = np.where(C > 0, np.random.default_rng(1).random(C.shape), 1)
    return np.column_stack([X, np.ones(len(X))]), C, reliability


def slow_clusters(X, C, temperature, n_steps):
    """Memberships and centers, row by row."""
    F = C / C.sum(axis=1, keepdims=True)
    for _ in range(n_steps):
        M = np.array([np.average(X, axis=0, weights=F[:, j]) for j in range(C.shape[1])])
        F = np.array([np.exp(-((x - M) ** 2).sum(axis=1) / temperature) for x in X])
        F /= F.sum(axis=1, keepdims=True)
    return F, np.array([np.average(X, axis=0, weights=F[:, j]) for j in range(C.shape[1])])


def slow_reliability(X, C, temperature):
    F, M = slow_clusters(X, C, temperature, 301)
    prototypes = np.array([X[C[:, j] > 0].mean(axis=0) for j in range(C.shape[1])])
    best = min(
        permutations(range(len(M))),
        key=lambda order: sum(((M[order[j]] - prototypes[j]) ** 2).sum() for j in range(len(M))),
    )
    F, found = F[:, best], np.ones_like(C)
    for i in range(len(X)):
        own = np.flatnonzero(C[i])
        values = F[i, own]
        found[i, own] = values / values.max() * (1 - (len(own) - 1) / C.shape[1])
    return found


def slow_objective(mapped, C, reliability, R, W, alpha, beta):
    lengths = sum(np.linalg.norm(row) for row in W)
    pull = np.linalg.norm(reliability * (R - C)) ** 2
    return pull + np.linalg.norm(R - mapped @ W) ** 2 + alpha * np.abs(R).sum() + beta * lengths


def test_clusters_agree_with_the_slow_reference(monkeypatch):
    monkeypatch.setattr(_capml, "_SETTLED", 0.0)
    X, C = problem()
    F, M = slow_clusters(X, C, 0.5, 300)
    found = cluster_rows(X, C, 0.5)
    assert_allclose(found, M, atol=1e-9)
    # The clusters have moved away from where they began, and differ.
    assert np.abs(found - weighted_means(X, C)).max() > 0.05
    assert np.abs(F - F.mean(axis=0)).max() > 0.2


def test_hot_clusters_melt_into_one():
    """Above twice the largest variance of any direction."""
    X, C = problem()
    melting = 2 * np.linalg.eigvalsh(np.cov(X.T, bias=True))[-1]
    spread = [np.ptp(cluster_rows(X, C, factor * melting), axis=0).max() for factor in (0.5, 1.2)]
    assert spread[0] > 0.3
    assert spread[1] < 0.01


def test_clusters_of_separate_labels_are_their_means():
    """Labels of their own, far apart: memberships are 0 and 1 from the start."""
    rng = np.random.default_rng(0)
    C = np.eye(3)[rng.integers(0, 3, 60)]
    X = 20 * C @ rng.normal(size=(3, 5)) + rng.normal(size=(60, 5))
    means = [X[C[:, j] > 0].mean(axis=0) for j in range(3)]
    assert_allclose(cluster_rows(X, C, 0.5), means, atol=1e-8)


def test_matching_is_the_best_of_all_permutations():
    rng = np.random.default_rng(0)
    for _ in range(20):
        M, prototypes = rng.normal(size=(2, 5, 3))
        order = match_clusters(M, prototypes)
        cost = min(((M[list(p)] - prototypes) ** 2).sum() for p in permutations(range(5)))
        assert ((M[order] - prototypes) ** 2).sum() == pytest.approx(cost)


def test_rotations_do_not_choose_the_permutation():
    """With its best orthogonal H, ‖MP − OH‖ is the same for every P, and turns from H = I on stop after the first."""
    rng = np.random.default_rng(0)
    M, prototypes = rng.normal(size=(2, 6, 4))

    def best_rotation(MP):
        U, _, Vt = np.linalg.svd(prototypes.T @ MP)
        return U @ Vt

    values = [
        np.linalg.norm(M[:, p] - prototypes @ best_rotation(M[:, p]))
        for p in map(list, permutations(range(4)))
    ]
    assert_allclose(values, values[0], rtol=1e-9)
    H = np.eye(4)
    for _ in range(5):
        _, order = linear_sum_assignment(-(prototypes @ H).T @ M)
        assert_array_equal(order, match_clusters(M.T, prototypes.T))
        H = best_rotation(M[:, order])


def test_reliability_agrees_with_the_slow_reference(monkeypatch):
    monkeypatch.setattr(_capml, "_SETTLED", 0.0)
    X, C = problem()
    found = reliability_of_candidates(X, C, 0.5)
    assert_allclose(found, slow_reliability(X, C, 0.5), atol=1e-7)
    assert_array_equal(found[C == 0], 1)
    assert found.min() >= 0
    assert found.max() <= 1


def test_reliability_falls_with_the_number_of_candidates():
    X, C = problem()
    C[0], C[1], C[2] = (1, 0, 0, 0), (1, 1, 1, 0), (1, 1, 1, 1)
    found = reliability_of_candidates(X, C, 0.5)
    assert_array_equal(found[0], 1)
    assert_allclose(found[1].max(where=C[1] > 0, initial=0), 0.5)
    assert_allclose(found[2].max(), 0.25)


def test_reliability_of_rows_far_from_all_their_clusters():
    """Memberships of a row that is nearer to another cluster than to those of its candidates round to 0, but differ."""
    X = np.array([[0.0], [0.0], [40.0], [40.0], [80.0], [80.0], [81.0]])
    C = np.array([[1.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1], [1, 1, 0]])
    found = reliability_of_candidates(X, C, 0.5)
    assert_allclose(found[-1], [0, 2 / 3, 1])


def test_candidates_of_molten_clusters_are_equally_reliable():
    X, C = problem()
    C[0] = (1, 1, 0, 0)
    assert_allclose(reliability_of_candidates(X, C, 1e6)[0], [0.75, 0.75, 1, 1], atol=1e-5)


def test_labels_and_rows_without_candidates():
    X, C = problem()
    C[:, 2], C[3] = 0, 0
    found = reliability_of_candidates(X, C, 0.5)
    assert_array_equal(found[:, 2], 1)
    assert_array_equal(found[3], 1)
    assert np.isfinite(found).all()
    assert_array_equal(reliability_of_candidates(X, np.zeros_like(C), 0.5), 1)


def test_no_step_raises_the_objective():
    for alpha, beta in ((0.0, 0.01), (0.2, 0.5), (1.0, 10.0)):
        values = solve(*regression_problem(), alpha=alpha, beta=beta, tol=0).history["objective"]
        assert np.diff(values).max() <= 1e-9 * values[0]


def test_regression_reaches_the_minimum():
    """The problem is convex: a general optimizer of R and W finds nothing better."""
    mapped, C, reliability = regression_problem()
    found = solve(mapped, C, reliability, **WEIGHTS, max_iter=3000, tol=1e-13)
    shape = found.coef.shape

    def objective(values):
        R, W = np.maximum(values[: C.size].reshape(C.shape), 0), values[C.size :].reshape(shape)
        return slow_objective(mapped, C, reliability, R, W, **WEIGHTS)

    value = slow_objective(mapped, C, reliability, found.labels, found.coef, **WEIGHTS)
    assert value == pytest.approx(found.history["objective"][-1], rel=1e-4)
    bounds = [(0, None)] * C.size + [(None, None)] * found.coef.size
    rng = np.random.default_rng(0)
    start = np.concatenate([C.ravel(), 0.1 * rng.normal(size=found.coef.size)])
    general = minimize(objective, start, bounds=bounds, method="L-BFGS-B", options=dict(maxfun=10**5))
    assert value <= general.fun * (1 + 1e-4)
    assert value == pytest.approx(general.fun, rel=0.01)


def test_weightless_regression_is_least_squares():
    """α = 0, β → 0 and full reliability: R is half way between C and its least-squares fit, here group means."""
    rng = np.random.default_rng(0)
    groups = np.eye(4)[rng.integers(0, 4, 50)]
    C = (rng.random((50, 3)) < 0.5).astype(float)
    found = solve(groups, C, np.ones_like(C), alpha=0.0, beta=1e-9, max_iter=2000, tol=1e-14)
    means = np.linalg.lstsq(groups, C)[0]
    assert_allclose(found.coef, means, atol=1e-4)
    assert_allclose(found.labels, (C + groups @ means) / 2, atol=1e-4)


def test_large_weights_leave_nothing():
    mapped, C, reliability = regression_problem()
    assert not solve(mapped, C, reliability, alpha=100.0, beta=1.0).labels.any()
    assert_allclose(solve(mapped, C, reliability, alpha=0.0, beta=1e5).coef, 0, atol=1e-4)


def test_rows_of_the_classifier_vanish():
    mapped, C, reliability = regression_problem()
    found = solve(mapped, C, reliability, alpha=0.1, beta=4.0, max_iter=2000, tol=1e-12)
    lengths = np.linalg.norm(found.coef, axis=1)
    assert (lengths < 1e-4).any()
    assert (lengths > 1e-2).any()


def test_estimator_gives_the_solution(partial_problem):
    X, candidates, _ = partial_problem
    model = CAPML(threshold=0.5).fit(X, candidates)
    low, high = X.min(axis=0), X.max(axis=0)
    scaled, C = 2 * (X - low) / (high - low) - 1, candidates.astype(float)
    assert_allclose(model.reliability_, reliability_of_candidates(scaled, C, 0.5), atol=1e-9)
    mapped = model.feature_map_.transform(X)
    found = solve(mapped, C, model.reliability_, alpha=0.01, beta=1.0)
    assert_allclose(model.decision_function(X), mapped @ found.coef, atol=1e-9)
    assert_allclose(model.confidences_, np.minimum(found.labels, 1) * candidates, atol=1e-9)


def test_golden_values(partial_problem):
    X, candidates, _ = partial_problem
    model = CAPML().fit(X, candidates)
    assert model.reliability_.sum() == pytest.approx(362.5541898569182, rel=1e-5)
    assert model.history_["objective"][-1] == pytest.approx(30.969742058849413, rel=1e-5)
    scores = [0.3399279, 0.4255935, 0.070388, 0.1800641, 0.1482739, 0.3396883]
    assert_allclose(model.decision_function(X)[0], scores, atol=1e-4)


def test_sparse_features_stay_sparse(partial_problem):
    X, candidates, _ = partial_problem
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.5, X, 0)
    dense = CAPML().fit(X, candidates)
    sparse = CAPML().fit(scipy.sparse.csr_array(X), candidates)
    assert scipy.sparse.issparse(sparse.feature_map_[-1].anchors_)
    assert_allclose(sparse.reliability_, dense.reliability_, atol=1e-7)
    assert_allclose(sparse.decision_function(X), dense.decision_function(X), atol=1e-7)


def test_order_does_not_matter(partial_problem):
    X, candidates, _ = partial_problem
    rng = np.random.default_rng(0)
    rows, features, labels = rng.permutation(120), rng.permutation(10), rng.permutation(6)
    given = CAPML().fit(X, candidates)
    moved = CAPML().fit(X[rows][:, features], candidates[rows][:, labels])
    assert_allclose(moved.decision_function(X[:, features]), given.decision_function(X)[:, labels], atol=1e-7)
    assert_allclose(moved.reliability_, given.reliability_[rows][:, labels], atol=1e-7)


def test_says_where_it_did_not_converge(partial_problem):
    X, candidates, _ = partial_problem
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        model = CAPML(max_iter=2).fit(X, candidates)
    assert (model.n_iter_, model.converged_) == (2, False)
    assert CAPML().fit(X, candidates).converged_


@pytest.mark.parametrize("name", ["alpha", "beta", "temperature", "tol", "max_iter"])
def test_bad_parameters(partial_problem, name):
    X, candidates, _ = partial_problem
    with pytest.raises(ValueError, match=f"{name} must be"):
        CAPML(**{name: -1}).fit(X, candidates)


@pytest.mark.parametrize("name", ["beta", "temperature"])
def test_parameters_above_zero(partial_problem, name):
    X, candidates, _ = partial_problem
    with pytest.raises(ValueError, match=f"{name} must be above 0"):
        CAPML(**{name: 0.0}).fit(X, candidates)
