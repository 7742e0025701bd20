from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

from skpml.baselines import _p_lenfn
from skpml.baselines._p_lenfn import (
    PLENFN,
    _Classifier,
    _descend,
    enhance_labels,
    label_laplacian,
    solve,
)
from skpml.datasets import load_dataset
from skpml.metrics import average_precision, ranking_loss

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

WEIGHTS = PLENFN(lam1=2.0, lam2=0.7, lam3=0.05, lam4=3.0)


def problem(n=50, d=4, c=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, d))
    Y = (X @ rng.normal(size=(d, c)) + 0.5 * rng.normal(size=(n, c)) > 0).astype(float)
    Y[np.arange(n), rng.integers(0, c, n)] = 1
    return X, Y


def guided(seed=0, **sizes):
    X, Y = problem(seed=seed, **sizes)
    rng = np.random.default_rng(seed + 1)
    X = np.hstack([X, np.ones((len(X), 1))])
    c = Y.shape[1]
    J = Y * rng.uniform(0.7, 1, size=Y.shape)
    return X, J, rng.normal(size=(c, c)), rng.normal(size=(X.shape[1], c))


class TestEnhancement:
    @pytest.mark.parametrize("exclude", ["none", "self", "first"])
    @pytest.mark.parametrize("size", [1, 10])
    def test_by_hand(self, exclude, size, monkeypatch):
        X, Y = problem()
        X = size * X
        monkeypatch.setattr(_p_lenfn, "_BLOCK_CELLS", 7 * 50)
        D = np.linalg.norm(X[:, None] - X[None], axis=2)
        s = np.mean([np.delete(D[i], i).min() for i in range(50)])
        S = np.exp(-D / (2 * s**2))
        expected = np.zeros_like(Y)
        sizes = []
        for i in range(50):
            left_out = {"none": None, "self": i, "first": 0}[exclude]
            others = [j for j in range(50) if j != left_out]
            width = 0.2 * (S[i].max() - S[i].min())
            near = [j for j in others if S[i, j] >= S[i].max() - width]
            far = [j for j in others if S[i, j] <= S[i].min() + width]
            near_mean = Y[near].mean(axis=0) if near else np.ones(5)
            far_mean = (1 - Y[far]).mean(axis=0) if far else np.ones(5)
            expected[i] = (0.7 * Y[i] + 0.2 * near_mean + 0.1 * far_mean) * Y[i]
            sizes.append((len(near), len(far)))
        if size == 10:
            assert max(near for near, _ in sizes) > 1
        assert_allclose(enhance_labels(X, Y, exclude=exclude), expected, atol=1e-12)

    @pytest.mark.parametrize("exclude", ["none", "self", "first"])
    def test_between_seven_tenths_and_one_on_candidates(self, exclude):
        X, Y = problem(d=2, seed=3)
        J = enhance_labels(X, Y, exclude=exclude)
        assert_array_equal(J[Y == 0], 0)
        assert J[Y == 1].min() >= 0.7
        assert J.max() <= 1

    def test_with_nobody_near_only_the_far_rows_tell(self):
        """Rows on the corners of a large simplex: each is near to itself only, and far from all others."""
        Y = problem(n=30)[1]
        J = enhance_labels(10 * np.eye(30), Y)
        rest = np.array([(1 - np.delete(Y, i, axis=0)).mean(axis=0) for i in range(30)])
        assert_allclose(J, Y * (0.9 + 0.1 * rest), atol=1e-12)

    def test_everybody_the_same(self):
        Y = problem(n=30)[1]
        J = enhance_labels(np.full((30, 3), 0.3), Y)
        mean = Y.mean(axis=0)
        assert_allclose(J, Y * (0.7 + 0.2 * mean + 0.1 * (1 - mean)), atol=1e-12)

    def test_pairs_of_duplicates(self):
        X, Y = problem(n=25)
        J = enhance_labels(np.vstack([X, X]), np.vstack([Y, Y]))
        assert np.isfinite(J).all()
        assert_allclose(J[:25], J[25:])


class TestSolver:
    def test_label_laplacian_by_hand(self):
        J = guided()[1]
        J[:, 2] = 0
        R = np.zeros((5, 5))
        for i in (0, 1, 3, 4):
            for j in range(5):
                R[i, j] = J[:, i] @ J[:, j] / (J[:, i] @ J[:, i])
        assert_allclose(label_laplacian(J), np.diag(R.sum(axis=1)) - R, atol=1e-12)

    @pytest.mark.parametrize(("n", "d"), [(50, 4), (12, 30)])
    def test_classifier_solves_the_sylvester_equation(self, n, d):
        X, J, _, _ = guided(n=n, d=d)
        L = label_laplacian(J)
        assert np.abs(L - L.T).max() > 0.1
        classifier = _Classifier(X, WEIGHTS, L)
        assert classifier.raised == 0
        expected = scipy.linalg.solve_sylvester(2 * X.T @ X, 2.0 * np.eye(5) + 0.35 * (L + L.T), X.T @ J)
        assert_allclose(classifier.solve(J), expected, atol=1e-8)

    def test_without_guidance_it_is_ridge_regression(self):
        X, J, U, V = guided()
        one = solve(X, J, 0 * U, V, PLENFN(lam1=2.0, lam2=0, max_iter=1))
        assert_allclose(one.coef, np.linalg.solve(2 * X.T @ X + 2.0 * np.eye(5), X.T @ J), atol=1e-10)

    def test_an_indefinite_laplacian_leaves_a_minimum(self):
        """λ₁ = 0: the label weights alone have a negative eigenvalue, and a repeated feature gives no curvature."""
        X, J, U, V = guided()
        X, V = np.hstack([X, X]), np.vstack([V, V])
        J[:, 1] = 0.7 * J[:, 0]
        weights = PLENFN(lam1=0.0, lam2=5.0)
        L = label_laplacian(J)
        assert np.linalg.eigvalsh(L + L.T).min() < -1e-3
        assert _Classifier(X, weights, L).raised > 0
        solution = solve(X, J, U, V, replace(weights, max_iter=20))
        assert np.isfinite(solution.coef).all()

    def test_step_follows_the_slope(self):
        """The direction is half the slope of the network's part of the objective, by differences."""
        X, J, U, V = guided()

        def part(V):
            return ((expit(X @ V) @ U - J) ** 2).sum() + 0.3 * (V**2).sum()

        moved, hidden, step = _descend(X, V, expit(X @ V), U, J, 0.3, 1e-5)
        assert step == 1e-5
        assert_allclose(hidden, expit(X @ moved))
        for i, j in [(0, 0), (2, 3), (4, 1)]:
            nudge = np.zeros_like(V)
            nudge[i, j] = 1e-5
            slope = (part(V + nudge) - part(V - nudge)) / 2e-5
            assert_allclose((V - moved)[i, j] / 1e-5, slope / 2, rtol=1e-5, atol=1e-5)

    def test_step_is_halved_where_it_would_overshoot(self):
        """Close to where a network with large outputs fits, the curvature is large and the full step too long."""
        X, _, U, V = guided()
        U = 30 * U
        goal = expit(X @ (V + 0.05)) @ U

        def part(V):
            return ((expit(X @ V) @ U - goal) ** 2).sum() + 0.3 * (V**2).sum()

        tiny, _, _ = _descend(X, V, expit(X @ V), U, goal, 0.3, 1e-9)
        direction = (V - tiny) / 1e-9
        assert part(V - 1e-3 * direction) > part(V)
        moved, hidden, step = _descend(X, V, expit(X @ V), U, goal, 0.3, 1e-3)
        assert 0 < step < 1e-3
        assert_allclose(moved, V - step * direction, atol=1e-4)
        assert_allclose(hidden, expit(X @ moved))
        assert part(moved) <= part(V) < part(V - 2 * step * direction)

    def test_iterations_by_hand(self):
        """The released iterations, with the fixed step: on small data it is never halved."""
        X, J, U, V = guided()
        L = label_laplacian(J)
        B = 2.0 * np.eye(5) + 0.35 * (L + L.T)
        solution = solve(X, J, U, V, replace(WEIGHTS, max_iter=25, tol=0))
        objective = []
        for _ in range(25):
            M = expit(X @ V)
            W = scipy.linalg.solve_sylvester(2 * X.T @ X, B, X.T @ (M @ U + J))
            U = np.linalg.solve(0.05 * np.eye(5) + M.T @ M, M.T @ X @ W)
            V = V - 0.001 * (X.T @ (M * (1 - M) * ((M @ U - X @ W) @ U.T)) + 3.0 * V)
            objective.append(
                ((X @ W - J) ** 2).sum()
                + ((X @ W - expit(X @ V) @ U) ** 2).sum()
                + 2.0 * (W**2).sum()
                + 0.7 * np.trace(W @ L @ W.T)
                + 0.05 * (U**2).sum()
                + 3.0 * (V**2).sum()
            )
        assert_allclose(solution.coef, W, atol=1e-8)
        assert_allclose(solution.output_coef, U, atol=1e-7)
        assert_allclose(solution.hidden_coef, V, atol=1e-8)
        assert_allclose(solution.history["objective"], objective, rtol=1e-9)

    @pytest.mark.parametrize("size", [1, 30, 1000])
    def test_objective_never_rises(self, size):
        X, J, U, V = guided(n=200)
        history = solve(size * X, J, size * U, V, replace(WEIGHTS, max_iter=60, tol=0)).history["objective"]
        assert np.isfinite(history).all()
        assert np.diff(history).max() <= 1e-9 * history[0]

    def test_stops_after_the_fifth_iteration_and_says_so(self):
        X, J, U, V = guided()
        loose = solve(X, J, U, V, replace(WEIGHTS, tol=1))
        tight = solve(X, J, U, V, replace(WEIGHTS, max_iter=3000))
        cut = solve(X, J, U, V, replace(WEIGHTS, max_iter=4))
        assert loose.converged
        assert len(loose.history["objective"]) == 6
        assert tight.converged
        last = tight.history["objective"][-3:]
        assert (last[0] - last[1]) / last[0] > 1e-3 >= (last[1] - last[2]) / last[1]
        assert not cut.converged


class TestEstimator:
    @pytest.mark.parametrize("exclude", ["none", "self"])
    def test_permutations_carry_through(self, partial_problem, exclude):
        X, Y, _ = partial_problem
        rng = np.random.default_rng(1)
        rows, features, labels = rng.permutation(120), rng.permutation(10), rng.permutation(6)
        one = PLENFN(exclude=exclude, random_state=3).fit(X, Y)
        two = PLENFN(exclude=exclude, random_state=3).fit(X[np.ix_(rows, features)], Y[np.ix_(rows, labels)])
        assert_allclose(two.decision_function(X[:, features]), one.decision_function(X)[:, labels], atol=1e-8)
        assert_allclose(two.confidences_, one.confidences_[np.ix_(rows, labels)], atol=1e-8)

    def test_the_seed_decides(self, partial_problem):
        X, Y, _ = partial_problem
        one, two, other = (PLENFN(random_state=seed).fit(X, Y).coef_ for seed in (0, 0, 1))
        assert_array_equal(one, two)
        assert np.abs(one - other).max() > 1e-6

    def test_relative_rule_is_the_published_one(self, partial_problem):
        X, Y, _ = partial_problem
        relative = PLENFN(random_state=0, threshold="relative").fit(X, Y)
        plain = PLENFN(random_state=0, threshold=0.5).fit(X, Y)
        scores = plain.decision_function(X)
        low, high = scores.min(axis=1, keepdims=True), scores.max(axis=1, keepdims=True)
        assert_array_equal(relative.predict(X), (scores - low) / (high - low) >= 0.9)
        assert relative.threshold_ == 0
        assert_array_equal(plain.predict(X), scores > 0.5)
        assert_array_equal(relative.decision_function(X).argsort(axis=1), scores.argsort(axis=1))
        assert_array_equal(relative.predict_proba(X) > 0.5, relative.predict(X) == 1)

    @pytest.mark.parametrize("rule", ["auto", "non-candidates"])
    def test_other_rules_leave_the_scores(self, partial_problem, rule):
        X, Y, _ = partial_problem
        model = PLENFN(random_state=0, threshold=rule).fit(X, Y)
        plain = PLENFN(random_state=0, threshold=0.5).fit(X, Y)
        assert_array_equal(model.decision_function(X), plain.decision_function(X))
        assert 0 < model.threshold_ < 1

    def test_a_single_label_has_nothing_to_be_compared_with(self, partial_problem):
        X, Y, _ = partial_problem
        options = dict(random_state=0, on_empty="ignore")
        relative = PLENFN(threshold="relative", **options).fit(X, Y[:, :1])
        automatic = PLENFN(threshold="auto", **options).fit(X, Y[:, :1])
        assert relative.threshold_ == automatic.threshold_
        assert_array_equal(relative.decision_function(X), automatic.decision_function(X))
        assert 0 < relative.predict(X).mean() < 1

    def test_unknown_rule(self, partial_problem):
        X, Y, _ = partial_problem
        with pytest.raises(ValueError, match='threshold must be "relative", "auto", "non-candidates" or'):
            PLENFN(threshold="half").fit(X, Y)

    def test_hidden_units(self, partial_problem):
        X, Y, _ = partial_problem
        model = PLENFN(n_hidden=3, random_state=0).fit(X, Y)
        assert model.hidden_coef_.shape == (11, 3)
        assert model.output_coef_.shape == (3, 6)

    def test_sparse_and_single_precision(self, partial_problem):
        X, Y, _ = partial_problem
        X = X * (np.abs(X) > 1)
        dense = PLENFN(random_state=0).fit(X, Y)
        sparse = PLENFN(random_state=0).fit(scipy.sparse.csr_array(X), Y)
        assert_allclose(
            sparse.decision_function(scipy.sparse.csr_array(X)), dense.decision_function(X), atol=1e-9
        )
        single = PLENFN(random_state=0).fit(X.astype(np.float32), Y)
        assert single.decision_function(X.astype(np.float32)).dtype == np.float32
        assert single.confidences_.dtype == np.float32

    @pytest.mark.parametrize("exclude", ["none", "self", "first"])
    @pytest.mark.parametrize(
        "case", ["all", "full row", "empty rows", "empty label", "duplicates", "two rows"]
    )
    @pytest.mark.filterwarnings("ignore:Every label")
    def test_odd_candidates(self, partial_problem, case, exclude):
        X, Y, _ = partial_problem
        Y = Y.copy()
        if case == "all":
            Y[:] = 1
        elif case == "full row":
            Y[0] = 1
        elif case == "empty rows":
            Y[:5] = 0
        elif case == "empty label":
            Y[:, 2] = 0
        elif case == "duplicates":
            X = np.repeat(X[:4], 30, axis=0)
        else:
            X, Y = X[:2], Y[:2]
        model = PLENFN(exclude=exclude, random_state=0, on_empty="ignore").fit(X, Y)
        scores = model.decision_function(X)
        assert np.isfinite(scores).all()
        assert_array_equal(model.confidences_[Y == 0], 0)
        assert (model.confidences_[Y == 1] >= 0.7).all()
        if case == "empty label":
            assert model.predict(X)[:, 2].sum() == 0
            assert (scores.argmax(axis=1) != 2).all()

    def test_noise_free_candidates_do_not_hurt(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 8))
        truth = (X @ rng.normal(size=(8, 6)) > 0.3).astype(int)
        truth[np.arange(300), rng.integers(0, 6, 300)] = 1
        ours = PLENFN(random_state=0).fit(X[:200], truth[:200]).decision_function(X[200:])
        ridge = Ridge().fit(X[:200], truth[:200]).predict(X[200:])
        assert average_precision(truth[200:], ours) > average_precision(truth[200:], ridge) - 0.02

    def test_warns_at_the_limit(self, partial_problem):
        X, Y, _ = partial_problem
        with pytest.warns(ConvergenceWarning, match="max_iter=3"):
            PLENFN(max_iter=3, random_state=0).fit(X, Y)

    @pytest.mark.parametrize(("parameter", "value"), [("lam1", -1), ("exclude", "last"), ("n_hidden", 0)])
    def test_bad_parameters(self, partial_problem, parameter, value):
        X, Y, _ = partial_problem
        with pytest.raises(ValueError, match=f"{parameter} must be"):
            PLENFN(**{parameter: value}).fit(X, Y)


@pytest.mark.slow
def test_emotions(data_folder):
    """Published: 0.781; the released code on these candidates: between 0.77 and 0.80, ranking loss 0.165 to 0.19."""
    data = load_dataset("emotions-3", random_state=0)
    values = []
    for fold, (train, test) in enumerate(KFold(10, shuffle=True, random_state=0).split(data.X)):
        model = PLENFN(random_state=fold).fit(data.X[train], data.candidates[train])
        scores = model.decision_function(data.X[test])
        values.append((average_precision(data.truth[test], scores), ranking_loss(data.truth[test], scores)))
    precision, loss = np.mean(values, axis=0)
    assert 0.77 <= precision <= 0.80
    assert 0.165 <= loss <= 0.19
