from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

from skpml.baselines._fbd_pml import (
    FBDPML,
    minimize_on_simplex,
    solve,
    update_memberships,
    update_predictive_labels,
    update_prototypes,
)
from skpml.datasets import load_dataset
from skpml.graph import neighbor_similarity
from skpml.metrics import average_precision

WEIGHTS = FBDPML(lam1=0.3, lam2=0.2, lam3=2.0, lam4=0.4, lam5=0.7)


def problem(n=40, d=6, c=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = (X @ rng.normal(size=(d, c)) + rng.normal(size=(n, c)) > 0).astype(float)
    Y[np.arange(n), rng.integers(0, c, n)] = 1
    return X, Y, neighbor_similarity(X, scale="first")


def objective(mapped, X, Y, A, W, M, F, P, mass, weights):
    """The objective of the docstring, term by term, with loops where a formula could hide a slip."""
    graph = sum(
        A[i, k] * ((F[i] - F[k]) ** 2).sum() / 2 for i in range(len(X)) for k in range(len(X)) if A[i, k]
    )
    clusters = sum(
        F[i, j] ** 2 * ((X[i] - M[j]) ** 2).sum() for i in range(len(X)) for j in range(F.shape[1])
    )
    return (
        ((mapped @ W - P) ** 2).sum()
        + weights.lam1 * (W**2).sum()
        + weights.lam2 * clusters
        + weights.lam3 * sum(((P[i] - mass[i] * F[i]) ** 2).sum() for i in range(len(X)))
        + weights.lam4 * graph
        + weights.lam5 * ((P - Y) ** 2).sum()
    )


def bisected(a, b, allowed):
    """The row step by halving an interval around η: slow and obvious."""
    f = np.zeros_like(a)
    for i in range(len(a)):
        js = np.flatnonzero(allowed[i])
        low, high = -b[i, js].max(), (a[i, js] - b[i, js]).max()
        for _ in range(100):
            eta = (low + high) / 2
            if np.maximum((b[i, js] + eta) / a[i, js], 0).sum() > 1:
                high = eta
            else:
                low = eta
        f[i, js] = np.maximum((b[i, js] + eta) / a[i, js], 0)
    return f


class TestRowStep:
    @settings(max_examples=25)
    @given(seed=st.integers(0, 10**6), spread=st.sampled_from([0.01, 1.0, 30.0]), c=st.integers(1, 7))
    def test_agrees_with_bisection(self, seed, spread, c):
        rng = np.random.default_rng(seed)
        a, b = rng.uniform(0.1, 3, (8, c)), spread * rng.normal(size=(8, c))
        allowed = (rng.random((8, c)) < 0.6).astype(float)
        allowed[np.arange(8), rng.integers(0, c, 8)] = 1
        assert_allclose(minimize_on_simplex(a, b, allowed), bisected(a, b, allowed), atol=1e-10)

    def test_agrees_with_a_general_optimiser(self):
        rng = np.random.default_rng(3)
        a, b = rng.uniform(0.5, 3, (1, 5)), 2 * rng.normal(size=(1, 5))
        general = minimize(
            lambda f: a[0] @ f**2 - 2 * b[0] @ f,
            np.full(5, 0.2),
            method="SLSQP",
            bounds=[(0, None)] * 5,
            constraints={"type": "eq", "fun": lambda f: f.sum() - 1},
            options={"ftol": 1e-14},
        )
        assert_allclose(minimize_on_simplex(a, b, np.ones((1, 5)))[0], general.x, atol=1e-6)

    def test_row_without_candidates_is_zero(self):
        f = minimize_on_simplex(np.ones((2, 3)), np.ones((2, 3)), np.array([[0.0, 0, 0], [0, 1, 1]]))
        assert_array_equal(f, [[0, 0, 0], [0, 0.5, 0.5]])


def test_prototypes_are_weighted_means():
    X, Y, _ = problem()
    F = Y / Y.sum(axis=1, keepdims=True)
    expected = [np.average(X, axis=0, weights=F[:, j] ** 2) for j in range(5)]
    assert_allclose(update_prototypes(X, F), expected, atol=1e-10)


@pytest.mark.parametrize("weights", [WEIGHTS, FBDPML(), FBDPML(lam4=5.0, lam3=0.1)])
def test_no_update_raises_the_objective(weights):
    """With the label mass fixed, each block update lowers the objective or leaves it."""
    X, Y, A = problem()
    rng = np.random.default_rng(1)
    mapped, dense, degrees = np.hstack([np.tanh(X), np.ones((40, 1))]), A.toarray(), A.sum(axis=1)
    W, M = rng.normal(size=(7, 5)), rng.normal(size=(5, 6))
    P, F = Y * rng.random(Y.shape), Y / Y.sum(axis=1, keepdims=True)
    for _ in range(4):
        mass = np.maximum(P.sum(axis=1, keepdims=True), 0.5)
        states = [(W, M, F, P)]
        W = np.linalg.solve(mapped.T @ mapped + weights.lam1 * np.eye(7), mapped.T @ P)
        states.append((W, M, F, P))
        M = update_prototypes(X, F)
        states.append((W, M, F, P))
        D = ((X[:, None] - M) ** 2).sum(axis=2)
        F = update_memberships(F, P, Y, D, mass, A, degrees, weights)
        states.append((W, M, F, P))
        P = update_predictive_labels(mapped @ W, F, Y, mass, weights)
        states.append((W, M, F, P))
        values = [objective(mapped, X, Y, dense, *state, mass[:, 0], weights) for state in states]
        assert np.diff(values).max() <= 1e-9 * values[0]
        assert values[-1] < values[0]


def test_predictive_labels_are_the_minimiser():
    """No small move inside the bounds lowers the terms that P is in."""
    _, Y, _ = problem()
    rng = np.random.default_rng(2)
    scores, F, mass = rng.normal(size=Y.shape), Y / Y.sum(axis=1, keepdims=True), Y.sum(axis=1, keepdims=True)
    P = update_predictive_labels(scores, F, Y, mass, WEIGHTS)

    def loss(P):
        return ((scores - P) ** 2).sum() + 2.0 * ((P - mass * F) ** 2).sum() + 0.7 * ((P - Y) ** 2).sum()

    for _ in range(50):
        assert loss(P) <= loss(np.clip(P + 0.05 * rng.normal(size=P.shape), 0, Y))


def test_memberships_are_stationary_where_nothing_moves_them():
    """λ2 = λ4 = 0: F shares out the predictive labels, F_i = P_i / s_i."""
    _, Y, A = problem()
    P = Y * np.random.default_rng(1).uniform(0.3, 1, Y.shape)
    mass = P.sum(axis=1, keepdims=True)
    weights = FBDPML(lam2=0, lam4=0)
    F = update_memberships(
        Y / Y.sum(axis=1, keepdims=True), P, Y, np.ones_like(Y), mass, A, A.sum(axis=1), weights
    )
    assert_allclose(F, P / mass, atol=1e-10)


def test_history_is_the_objective():
    X, Y, A = problem()
    one = solve(X, X, Y, A, replace(WEIGHTS, max_iter=1))
    W, M, F, P = one.coef, one.prototypes, one.memberships, one.predictive_labels
    expected = objective(X, X, Y, A.toarray(), W, M, F, P, Y.sum(axis=1), WEIGHTS)
    assert_allclose(one.history["objective"], [expected], rtol=1e-10)
    terms = [values[0] for name, values in one.history.items() if name != "objective"]
    assert_allclose(sum(terms), expected, rtol=1e-10)


def test_first_classifier_is_ridge_on_the_candidates():
    X, Y, A = problem()
    ridge = Ridge(alpha=0.3, fit_intercept=False).fit(X, Y)
    assert_allclose(solve(X, X, Y, A, replace(WEIGHTS, max_iter=1)).coef, ridge.coef_.T, atol=1e-10)


@settings(max_examples=20)
@given(
    seed=st.integers(0, 10**6),
    feature_focus=st.sampled_from([0.0, 0.01, 10.0]),
    label_focus=st.sampled_from([0.0, 0.1, 10.0]),
    manifold=st.sampled_from([0.0, 0.1, 10.0]),
)
def test_invariants(seed, feature_focus, label_focus, manifold):
    X, Y, A = problem(seed=seed)
    Y[0] = 0
    weights = FBDPML(lam2=feature_focus, lam3=label_focus, lam4=manifold)
    solution = solve(X, X, Y, A, weights)
    F, P = solution.memberships, solution.predictive_labels
    assert (F >= 0).all()
    assert (F[Y == 0] == 0).all()
    assert_allclose(F[1:].sum(axis=1), 1, atol=1e-10)
    assert_array_equal(F[0], 0)
    assert (P >= 0).all()
    assert (P <= Y).all()


def test_one_candidate_a_row_leaves_nothing_to_share():
    X, _, A = problem()
    Y = np.eye(5)[np.random.default_rng(0).integers(0, 5, 40)]
    for max_iter in (1, 2, 5):
        assert_array_equal(solve(X, X, Y, A, replace(WEIGHTS, max_iter=max_iter)).memberships, Y)


def test_large_fidelity_believes_every_candidate():
    X, Y, A = problem()
    believing = solve(X, X, Y, A, FBDPML(lam5=1e9)).predictive_labels
    assert_allclose(believing, Y, atol=1e-7)


def test_manifold_weight_makes_neighbours_alike():
    X, Y, A = problem()

    def roughness(manifold):
        F = solve(X, X, Y, A, FBDPML(lam2=1, lam3=1, lam4=manifold)).memberships
        return np.vdot(F, A.sum(axis=1)[:, None] * F - A @ F)

    values = [roughness(manifold) for manifold in (0, 0.1, 1, 10)]
    assert np.diff(values).max() < 0
    assert values[-1] < 0.9 * values[0]


def test_stops_at_the_tolerance_but_not_before_the_third_iteration():
    X, Y, A = problem()
    assert len(solve(X, X, Y, A, replace(WEIGHTS, tol=1e3)).history["objective"]) == 3
    tight = solve(X, X, Y, A, replace(WEIGHTS, tol=1e-6, max_iter=500))
    J = tight.history["objective"]
    assert tight.converged
    assert abs(J[-1] - J[-2]) <= 1e-6 * J[-2] < abs(J[-2] - J[-3])
    assert not solve(X, X, Y, A, replace(WEIGHTS, tol=0, max_iter=3)).converged


class TestEstimator:
    def test_default_number_of_anchors(self):
        X, Y, _ = problem()
        assert FBDPML(random_state=0).fit(X, Y).feature_map_.anchors_.shape == (30, 6)
        assert FBDPML(n_anchors=7, random_state=0).fit(X, Y).feature_map_.anchors_.shape == (7, 6)

    def test_drawn_anchors_do_not_depend_on_the_order_of_rows(self):
        X, Y, _ = problem()
        rows = np.random.default_rng(4).permutation(40)
        one = FBDPML(n_anchors=9, random_state=0).fit(X, Y)
        two = FBDPML(n_anchors=9, random_state=0).fit(X[rows], Y[rows])
        assert_allclose(two.decision_function(X), one.decision_function(X), atol=1e-9)
        assert_allclose(two.confidences_, one.confidences_[rows], atol=1e-9)

    def test_scores_of_training_rows(self, partial_problem):
        X, candidates, _ = partial_problem
        model = FBDPML(random_state=0)
        assert_allclose(
            model._fit(X, candidates.astype(float)), model.fit(X, candidates).decision_function(X), atol=1e-10
        )

    def test_weights_reach_the_solver(self, partial_problem):
        X, candidates, _ = partial_problem
        base = FBDPML(random_state=0).fit(X, candidates).decision_function(X)
        for name in ("lam1", "lam2", "lam3", "lam4", "lam5"):
            other = FBDPML(random_state=0, **{name: 20.0}).fit(X, candidates).decision_function(X)
            assert np.abs(other - base).max() > 1e-6, name

    def test_true_candidates_are_believed_more(self, partial_problem):
        X, candidates, truth = partial_problem
        confidences = FBDPML(random_state=0).fit(X, candidates).confidences_
        false = (candidates == 1) & (truth == 0)
        assert confidences[truth == 1].mean() > confidences[false].mean() + 0.03

    @pytest.mark.parametrize("name", ["lam1", "lam2", "lam3", "lam4", "lam5", "tol"])
    def test_bad_weight(self, partial_problem, name):
        X, candidates, _ = partial_problem
        with pytest.raises(ValueError, match=f"{name} must be a finite number of at least 0"):
            FBDPML(**{name: -1}).fit(X, candidates)


def test_emotions(data_folder):
    """Three of ten folds: ranking as the reconstruction was measured to have, and candidates weighed the right way."""
    data = load_dataset("emotions-3", random_state=0)
    precision, weighed, raw = [], [], []
    for fold, (train, test) in enumerate(KFold(10, shuffle=True, random_state=0).split(data.X)):
        if fold == 3:
            break
        model = FBDPML(random_state=fold).fit(data.X[train], data.candidates[train])
        precision.append(average_precision(data.truth[test], model.decision_function(data.X[test])))
        believed = model.confidences_
        weighed.append((believed * data.truth[train]).sum() / believed.sum())
        raw.append(data.truth[train].sum() / data.candidates[train].sum())
    assert 0.77 <= np.mean(precision) <= 0.84
    assert np.mean(weighed) > np.mean(raw) + 0.02
