from itertools import chain, combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime, linprog, minimize
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import KFold

from skpml._sharing import shared_work
from skpml.baselines import _common, _pml_fp
from skpml.baselines import _pml_fp_steps as steps
from skpml.baselines._pml_fp import PMLFP, PMLLC, candidate_prototypes, label_correlation, solve
from skpml.baselines._pml_fp_steps import (
    best_confidences,
    fit_ranking,
    model_size,
    nested_choice,
    ranking_loss,
    smooth_hinge,
    subset_choice,
    update_confidences,
)
from skpml.metrics import average_precision
from skpml.noise import top_up
from skpml.reference import CandidateRidge


def problem(n=40, d=5, c=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = (X @ rng.normal(size=(d, c)) + rng.normal(size=(n, c)) > 0.3).astype(float)
    Y[np.arange(n), rng.integers(0, c, n)] = 1
    return X, Y


def slow_hinge(m):
    return 0.0 if m <= 0 else m * m / 0.2 if m < 0.1 else m - 0.05


def slow_ranking_loss(scores, P, pair_weights):
    """The published sum over all pairs of labels, for any confidences."""
    total = 0.0
    for f, p, weight in zip(scores, P, pair_weights, strict=True):
        for k, j in np.ndindex(len(f), len(f)):
            total += weight * max(0.0, p[k] - p[j]) * slow_hinge(1 - f[k] + f[j])
    return total


def published_weights(Y):
    has, lacks = Y.sum(axis=1), (1 - Y).sum(axis=1)
    return 1 / (has * lacks + has**2 / 2)


def terms(method, X, Y, weight):
    """Linear cost and pair reward of the two methods, from their formulas."""
    c = Y.shape[1]
    if method == "fp":
        q = np.array([X[Y[:, k] > 0].mean(axis=0) for k in range(c)])
        return weight * np.linalg.norm(X[:, None] - q, axis=2), np.zeros((c, c))
    correlation = np.zeros((c, c))
    for k, j in combinations(range(c), 2):
        both, either = np.sum(Y[:, k] * Y[:, j]), np.sum(np.maximum(Y[:, k], Y[:, j]))
        correlation[k, j] = correlation[j, k] = both / either
    return np.zeros_like(Y), weight * correlation


def subsets(m):
    return [list(T) for T in chain.from_iterable(combinations(range(m), s) for s in range(1, m + 1))]


class TestModelStep:
    def test_hinge_is_rounded_off_between_its_two_lines(self):
        m = np.linspace(-1, 2, 301)
        value, slope = smooth_hinge(m)
        assert_allclose(value, [slow_hinge(each) for each in m], atol=1e-15)
        assert (value <= np.maximum(m, 0)).all()
        assert (value >= np.maximum(m, 0) - 0.05 - 1e-15).all()
        assert_allclose(slope[:-1], np.diff(value) / np.diff(m), atol=0.06)

    def test_loss_is_the_published_sum_over_pairs(self):
        _, Y = problem()
        scores = np.random.default_rng(1).normal(size=Y.shape)
        P = Y / Y.sum(axis=1, keepdims=True)
        weights = published_weights(Y)
        assert_allclose(
            ranking_loss(scores, Y > 0, weights * P.max(axis=1)),
            slow_ranking_loss(scores, P, weights),
            rtol=1e-12,
        )

    def test_gradient(self):
        _, Y = problem(n=6)
        weights = np.random.default_rng(2).uniform(size=6)
        scores = np.random.default_rng(1).normal(size=Y.shape)
        gradient = np.zeros_like(scores)
        steps._pair_loss(scores, steps._pair_blocks(Y > 0), weights, gradient)
        numeric = approx_fprime(
            scores.ravel(), lambda flat: ranking_loss(flat.reshape(scores.shape), Y > 0, weights)
        )
        assert_allclose(gradient.ravel(), numeric, atol=1e-5)

    def test_finds_the_minimum(self):
        """Against a general minimiser on the slow objective, from another start."""
        X, Y = problem(n=15, d=2, c=3)
        X1 = np.hstack([X, np.ones((15, 1))])
        weights = published_weights(Y)

        def slow(flat):
            coef = flat.reshape(3, 3)
            penalty = (coef[:2] ** 2).sum() + 0.01 * (coef[2] ** 2).sum()
            return penalty + slow_ranking_loss(X1 @ coef, Y, weights)

        start = np.random.default_rng(3).normal(size=9)
        slowly = minimize(slow, start, method="BFGS", options=dict(gtol=1e-7)).x.reshape(3, 3)
        quickly = fit_ranking(X1, Y > 0, weights)
        assert_allclose(quickly, slowly, atol=1e-5)
        assert model_size(quickly) + ranking_loss(X1 @ quickly, Y > 0, weights) <= slow(slowly.ravel()) + 1e-9
        assert np.abs(slowly).max() > 0.1

    def test_minimum_does_not_depend_on_the_start(self):
        X, Y = problem()
        X1 = np.hstack([X, np.ones((40, 1))])
        start = np.random.default_rng(3).normal(size=(6, 6))
        cold, warm = (fit_ranking(X1, Y > 0, published_weights(Y), each) for each in (None, start))
        assert_allclose(warm, cold, atol=1e-6)
        assert_allclose(cold.sum(axis=1), 0, atol=1e-6)

    def test_size_of_blocks_does_not_matter(self, monkeypatch):
        _, Y = problem()
        scores = np.random.default_rng(1).normal(size=Y.shape)
        whole = ranking_loss(scores, Y > 0, np.ones(40))
        monkeypatch.setattr(steps.equal_size_blocks, "__defaults__", (1,))
        assert len(steps._pair_blocks(Y > 0)) == 40
        assert_allclose(ranking_loss(scores, Y > 0, np.ones(40)), whole, rtol=1e-12)


def random_costs(rng, m, *, lowest=0.0):
    """Cost of believing each label against non-candidates, and of each pair, not below ``lowest``."""
    a, pairs = rng.uniform(lowest, 1, size=m), rng.uniform(0, 0.5, size=(m, m))
    np.fill_diagonal(pairs, 0)
    return a, pairs


def linear_program(a, pairs):
    """``min Σ a_k P_k + Σ_kl t_kl``, ``t_kl ≥ I_kl (P_k − P_l)``, ``t ≥ 0``, ``0 ≤ P ≤ 1``, ``Σ P ≥ 1``."""
    m = len(a)
    constraints, bounds = [np.concatenate([-np.ones(m), np.zeros(m * m)])], [-1.0]
    for k, j in np.ndindex(m, m):
        row = np.zeros(m + m * m)
        row[k] += pairs[k, j]
        row[j] -= pairs[k, j]
        row[m + k * m + j] = -1
        constraints.append(row)
        bounds.append(0.0)
    cost = np.concatenate([a, np.ones(m * m)])
    return linprog(cost, A_ub=np.array(constraints), b_ub=bounds, bounds=[(0, 1)] * m + [(0, None)] * m * m)


def as_sets(a, pairs):
    return (a + pairs.sum(axis=1))[None], (pairs + pairs.T)[None]


class TestConfidenceStep:
    @pytest.mark.parametrize("lowest", [0.0, -0.6])
    @pytest.mark.slow
    def test_solves_the_linear_program(self, lowest):
        """Confidences constant on a set are optimal among all, with costs of either sign."""
        rng = np.random.default_rng(0)
        several = 0
        for _ in range(150):
            m = rng.integers(1, 6)
            a, pairs = random_costs(rng, m, lowest=lowest)
            own, saved = as_sets(a, pairs)
            P, value = subset_choice(own, saved, np.zeros((1, m, m)))
            expected = linear_program(a, pairs).fun
            spent = a @ P[0] + np.sum(pairs * np.maximum(0, P[0][:, None] - P[0]))
            assert_allclose([value[0], spent], expected, atol=1e-9)
            assert P.sum() >= 1 - 1e-12
            several += np.count_nonzero(P) > 1
        assert several > 20

    @pytest.mark.parametrize("weight", [0.05, 0.5, 5.0])
    def test_is_the_best_set_with_rewards(self, weight):
        rng = np.random.default_rng(1)
        for _ in range(30):
            m = 5
            a, pairs = random_costs(rng, m)
            reward = weight * rng.uniform(size=(m, m))
            reward += reward.T
            np.fill_diagonal(reward, 0)

            def value(P, a=a, pairs=pairs, reward=reward):
                return a @ P + np.sum(pairs * np.maximum(0, P[:, None] - P)) - P @ reward @ P

            tried = []
            for T in subsets(m):
                P = np.zeros(m)
                P[T] = 1
                tried += [(value(P), P), (value(P / len(T)), P / len(T))]
            best = min(tried, key=lambda pair: pair[0])
            P, lowest = subset_choice(*as_sets(a, pairs), reward[None])
            assert_allclose(lowest, best[0], atol=1e-12)
            assert_allclose(P[0], best[1])

    @pytest.mark.parametrize("weight", [0, 0.05, 0.15])
    def test_costs_come_from_scores_distances_and_candidates(self, weight):
        """Every row of a whole step against all sets, by the published sums."""
        X, Y = problem(n=40)
        rng = np.random.default_rng(2)
        scores, linear = rng.normal(size=Y.shape), rng.uniform(0, 0.1, size=Y.shape)
        reward = terms("lc", X, Y, weight)[1]
        weights = published_weights(Y)
        P = update_confidences(scores, Y > 0, Y, pair_weights=weights, linear_cost=linear, pair_reward=reward)
        for i in range(40):

            def value(p, i=i):
                loss = slow_ranking_loss(scores[i : i + 1], p[None], weights[i : i + 1])
                return linear[i] @ p + loss - p @ reward @ p

            members = np.flatnonzero(Y[i])
            values = []
            for T in subsets(len(members)):
                p = np.zeros(6)
                p[members[T]] = 1
                values += [value(p), value(p / len(T))]
            assert_allclose(value(P[i]), min(values), atol=1e-12)
        assert (P[Y == 0] == 0).all()
        believed = (P > 0).sum(axis=1)
        assert len(np.unique(believed)) > 1
        if weight == 0.15:
            whole = (P == 1).any(axis=1) & (believed > 1)
            assert 0 < whole.sum() < (believed > 1).sum()

    def test_nested_sets_find_the_best_of_ranking_costs(self):
        """Where pairs cost what scores make them cost, nothing was lost by looking at nested sets alone."""
        rng = np.random.default_rng(3)
        m, c = 8, 14
        scores = rng.normal(size=(300, c)) * rng.choice([0.3, 1, 3], size=(300, 1))
        loss = np.maximum(0, 1 - scores[:, :m, None] + scores[:, None]) / 80
        loss[:, np.arange(m), np.arange(m)] = 0
        own = rng.uniform(0, 0.3, size=(300, m)) + loss.sum(axis=2)
        saved = loss[:, :, :m] + loss[:, :, :m].transpose(0, 2, 1)
        none = np.zeros_like(saved)
        nested, value = nested_choice(own, saved, none)
        subset, lowest = subset_choice(own, saved, none)
        assert_allclose(value, lowest, rtol=1e-12)
        assert_allclose(nested, subset)
        assert len(np.unique((nested > 0).sum(axis=1))) > 3

    def test_nested_sets_with_rewards_cost_what_they_say(self):
        rng = np.random.default_rng(4)
        a, pairs = random_costs(rng, 6)
        own, saved = as_sets(a, pairs)
        reward = rng.uniform(0, 0.2, size=(6, 6))
        reward += reward.T
        np.fill_diagonal(reward, 0)
        P, value = nested_choice(own, saved, reward[None])
        spent = a @ P[0] + np.sum(pairs * np.maximum(0, P[0][:, None] - P[0])) - P[0] @ reward @ P[0]
        assert_allclose(value, spent)
        order = np.argsort(own[0])
        assert (np.diff(P[0][order]) <= 0).all()

    def test_many_candidates_never_end_worse_than_they_were(self):
        """Two labels that save a lot together stand far apart in cost: no nested set has them alone."""
        m = 14
        own = np.linspace(1, 2, m)[None]
        saved = np.zeros((1, m, m))
        saved[0, 0, -1] = saved[0, -1, 0] = 2.5
        current = np.zeros((1, m))
        current[0, [0, -1]] = 0.5
        none = np.zeros_like(saved)
        assert nested_choice(own, saved, none)[1][0] > 0.25
        assert_array_equal(best_confidences(own, saved, none, current), current)
        assert not np.array_equal(best_confidences(own, saved, none, np.full((1, m), 1 / m)), current)

    def test_what_confidences_cost_now(self):
        rng = np.random.default_rng(6)
        a, pairs = random_costs(rng, 5)
        reward = rng.uniform(size=(5, 5))
        reward += reward.T
        np.fill_diagonal(reward, 0)
        for level in (1, 0.25):
            P = level * np.array([1.0, 0, 1, 1, 0])
            expected = a @ P + np.sum(pairs * np.maximum(0, P[:, None] - P)) - P @ reward @ P
            assert_allclose(steps._value(P[None], *as_sets(a, pairs), reward[None]), expected)

    def test_nested_sets_do_not_part_equal_labels(self):
        """The best set holds one of two equal labels; which one would be a matter of their order."""
        own = np.full((1, 14), 3.0)
        own[0, :3] = 0.9, 1, 1
        reward = np.zeros((1, 14, 14))
        reward[0, 0, 1:3] = reward[0, 1:3, 0] = 0.3
        P, _ = nested_choice(own, np.zeros_like(reward), reward)
        assert_allclose(P[0, :4], [1 / 3, 1 / 3, 1 / 3, 0])

    @pytest.mark.parametrize("m", [4, 14])
    def test_equal_labels_are_believed_equally(self, m):
        own = np.full((1, m), 3.0)
        own[0, [1, 2]] = 1.0
        own[0, 2] += 1e-14
        none = np.zeros((1, m, m))
        P = best_confidences(own, none, none, np.full((1, m), 1 / m))
        assert_array_equal(np.flatnonzero(P[0]), [1, 2])
        assert_array_equal(P[0, [1, 2]], 0.5)


def test_the_first_model_is_shared_by_all_weights_of_the_distances():
    X, Y = problem()
    alone = [PMLFP(C3=C3).fit(X, Y).coef_ for C3 in (1.0, 10.0)]
    with shared_work() as work:
        together = [PMLFP(C3=C3).fit(X, Y).coef_ for C3 in (1.0, 10.0)]
        assert (work.computed, work.reused) == (1, 1)
        PMLFP(C1=3.0).fit(X, Y)
        assert (work.computed, work.reused) == (2, 1)
    assert_array_equal(together, alone)


@pytest.mark.parametrize(
    ("method", "weight"), [("fp", 10), ("fp", 1), ("fp", 0.05), ("lc", 3), ("lc", 0.1), ("lc", 0.01)]
)
class TestLoop:
    def fit(self, method, weight, X, Y, **options):
        linear, reward = terms(method, X, Y, weight)
        return solve(X, Y, linear, reward, PMLFP(**options)), linear, reward

    def test_no_half_step_raises_the_objective(self, method, weight):
        X, Y = problem(n=80)
        solution, _, _ = self.fit(method, weight, X, Y, tol=0, max_iter=12)
        steps = [solution.history[name] for name in ("confidence_step", "objective")]
        course = np.array(steps).T.ravel()
        assert np.diff(course).max() <= 1e-7 * np.abs(course).max()

    def test_objective_is_the_published_one(self, method, weight):
        X, Y = problem()
        solution, linear, reward = self.fit(method, weight, X, Y)
        P = solution.confidences
        bias = solution.intercept + X.mean(axis=0) @ solution.coef
        expected = (
            np.sum(solution.coef**2)
            + 0.01 * np.sum(bias**2)
            + slow_ranking_loss(X @ solution.coef + solution.intercept, P, published_weights(Y))
            + np.sum(linear * P)
            - np.einsum("ik,kl,il->", P, reward, P)
        )
        assert_allclose(solution.history["objective"][-1], expected, rtol=1e-10)
        assert_allclose(solution.scores, X @ solution.coef + solution.intercept, atol=1e-10)

    def test_confidences_are_confidences(self, method, weight):
        X, Y = problem()
        P = self.fit(method, weight, X, Y)[0].confidences
        assert (P >= 0).all()
        assert (P <= Y).all()
        assert (P.sum(axis=1) >= 1 - 1e-12).all()
        if method == "fp":
            assert_allclose(P.sum(axis=1), 1)

    def test_turning_wide_features_changes_nothing(self, method, weight, monkeypatch):
        X, Y = problem(n=15, d=40)
        turned = self.fit(method, weight, X, Y)[0]
        monkeypatch.setattr(_pml_fp, "_compact", lambda X: (X, None))
        plain = self.fit(method, weight, X, Y)[0]
        assert_allclose(turned.coef, plain.coef, atol=1e-6)
        assert_allclose(turned.confidences, plain.confidences)

    @pytest.mark.parametrize("d", [20, 80])
    def test_products_without_common_values_change_nothing(self, method, weight, d, monkeypatch):
        """Features such as those of texts: few values differ from the smallest, which need not be 0."""
        X, Y = problem(n=60, d=d)
        X = np.where(np.abs(X) > 1.8, np.abs(X), 0) - 0.5
        X[0] = 2
        Y[3] = 0
        assert np.count_nonzero(X > -0.5) < 0.1 * X.size < np.count_nonzero(X[1:] == -0.5)
        sparse = self.fit(method, weight, X, Y)[0]
        monkeypatch.setattr(_common, "_SPARSE_SHARE", 0)
        dense = self.fit(method, weight, X, Y)[0]
        for name in ("coef", "intercept", "scores"):
            assert_allclose(sparse[name], dense[name], atol=1e-6)
        assert_allclose(sparse.confidences, dense.confidences)
        assert_allclose(sparse.history["objective"], dense.history["objective"], rtol=1e-9)

    def test_moving_all_rows_changes_nothing(self, method, weight):
        X, Y = problem()
        here, there = self.fit(method, weight, X, Y)[0], self.fit(method, weight, X + 7, Y)[0]
        assert_allclose(there.scores, here.scores, atol=1e-6)
        assert_allclose(there.confidences, here.confidences)

    @pytest.mark.slow
    def test_rows_without_candidates_have_no_say(self, method, weight):
        X, Y = problem()
        linear, reward = terms(method, X, Y, weight)
        alone = solve(X, Y, linear, reward, PMLFP())
        more = [
            np.vstack([each, np.full_like(each[:5], value)]) for each, value in ((X, 9), (Y, 0), (linear, 1))
        ]
        joined = solve(*more, reward, PMLFP())
        assert_allclose(joined.coef, alone.coef, atol=1e-6)
        assert_array_equal(joined.confidences[40:], 0)

    @pytest.mark.slow
    def test_permutations_permute_the_solution(self, method, weight):
        X, Y = problem(n=60, c=7)
        rng = np.random.default_rng(5)
        rows, features, labels = rng.permutation(60), rng.permutation(5), rng.permutation(7)
        one = self.fit(method, weight, X, Y)[0]
        two = self.fit(method, weight, X[np.ix_(rows, features)], Y[np.ix_(rows, labels)])[0]
        assert_allclose(two.coef, one.coef[np.ix_(features, labels)], atol=1e-6)
        assert_allclose(two.scores, one.scores[np.ix_(rows, labels)], atol=1e-6)
        assert_allclose(two.confidences, one.confidences[np.ix_(rows, labels)])


def test_terms_that_tell_candidates_apart():
    X, Y = problem()
    linear, _ = terms("fp", X, Y, 1.0)
    distances = np.linalg.norm(X[:, None] - candidate_prototypes(X, Y), axis=2)
    assert_allclose(distances, linear)
    assert_allclose(label_correlation(Y), terms("lc", X, Y, 1.0)[1])
    Y[:, 2] = 0
    assert_array_equal(candidate_prototypes(X, Y)[2], 0)
    assert_array_equal(label_correlation(Y)[2], 0)


def test_large_prototype_weight_believes_the_nearest_prototype(partial_problem):
    X, candidates, _ = partial_problem
    model = PMLFP(C3=1e6).fit(X, candidates)
    distances = np.linalg.norm(model.scaler_.transform(X)[:, None] - model.prototypes_, axis=2)
    nearest = np.where(candidates, distances, np.inf).argmin(axis=1)
    assert_array_equal(model.confidences_, np.eye(6)[nearest])


def test_large_correlation_weight_believes_everything(partial_problem):
    X, candidates, _ = partial_problem
    assert_array_equal(PMLLC(C2=100).fit(X, candidates).confidences_, candidates)


def test_no_correlation_and_no_prototypes_are_the_same_method(partial_problem):
    X, candidates, _ = partial_problem
    one, other = PMLFP(C3=0).fit(X, candidates), PMLLC(C2=0).fit(X, candidates)
    assert_array_equal(one.coef_, other.coef_)
    assert_array_equal(one.confidences_, other.confidences_)


def test_without_ranking_weight_there_is_no_model(partial_problem):
    X, candidates, _ = partial_problem
    assert_array_equal(PMLFP(C1=0).fit(X, candidates).coef_, 0)


def test_small_ranking_weight_gives_the_linearised_model():
    """C1 → 0: no margin is reached, so that ``2W = −Xᵀ∂f`` with all slopes 1, and the biases likewise."""
    X, Y = problem()
    C1, P = 1e-5, Y / Y.sum(axis=1, keepdims=True)
    model = PMLFP(C1=C1, max_iter=1, tol=np.inf)
    solution = solve(X, Y, np.zeros_like(Y), np.zeros((6, 6)), model)
    weights = C1 * published_weights(Y)
    P = solution.confidences
    gap = np.maximum(0, P[:, :, None] - P[:, None, :])
    pull = weights[:, None] * (gap.sum(axis=2) - gap.sum(axis=1))
    assert_allclose(solution.coef, (X - X.mean(axis=0)).T @ pull / 2, atol=1e-8)
    assert np.abs(solution.coef).max() > 1e-6


@pytest.mark.parametrize("method", [PMLFP, PMLLC])
class TestEstimator:
    def test_one_label_is_ranked_against_none(self, method, partial_problem):
        X, _, truth = partial_problem
        has = truth[:, :1]
        model = method(on_empty="ignore").fit(X, has)
        both = method().fit(X, np.hstack([has, 1 - has]))
        scores = both.decision_function(X)
        assert_allclose(model.decision_function(X), scores[:, :1] - scores[:, 1:], atol=1e-12)
        assert model.threshold_ == 0
        assert_array_equal(model.confidences_, has)
        assert (model.predict(X) == has).mean() > 0.75

    def test_every_label_a_candidate_of_every_row(self, method, partial_problem):
        X, candidates, _ = partial_problem
        with pytest.warns(match="Every label is a candidate"):
            model = method().fit(X, np.ones_like(candidates))
        assert_allclose(model.decision_function(X), 0, atol=1e-12)
        assert len(np.unique(model.confidences_)) == 1

    def test_label_without_candidates_is_ranked_last(self, method, partial_problem):
        X, candidates, _ = partial_problem
        candidates = np.hstack([candidates, np.zeros((120, 1), candidates.dtype)])
        model = method(on_empty="ignore").fit(X, candidates)
        assert (model.decision_function(X).argmin(axis=1) == 6).mean() > 0.9
        assert not model.predict(X)[:, 6].any()

    @pytest.mark.slow
    def test_keeps_up_with_ridge_on_the_candidates(self, method):
        """Both are linear. The mean of twelve problems: on a single one, 30 new rows tell little."""
        ours, floor, shares = [], [], []
        for seed in range(12):
            X, truth = make_multilabel_classification(
                120, n_features=10, n_classes=6, n_labels=2, allow_unlabeled=False, random_state=seed
            )
            candidates = top_up(truth, 4, random_state=seed)
            model = method().fit(X[:90], candidates[:90])
            ridge = CandidateRidge(feature_map="linear").fit(X[:90], candidates[:90])
            ours.append(average_precision(truth[90:], model.decision_function(X[90:])))
            floor.append(average_precision(truth[90:], ridge.decision_function(X[90:])))
            P = model.confidences_
            shares.append(((P * truth[:90]).sum() / P.sum(), truth[:90].sum() / candidates[:90].sum()))
            assert model.converged_
            assert len(model.history_["objective"]) == model.n_iter_
        assert np.mean(ours) >= np.mean(floor)
        believed, given = np.mean(shares, axis=0)
        assert believed >= given - 1e-12
        assert method is PMLLC or believed > given + 0.15

    @pytest.mark.parametrize("parameter", ["C1", "tol", "max_iter"])
    def test_bad_parameters(self, method, parameter, partial_problem):
        X, candidates, _ = partial_problem
        with pytest.raises(ValueError, match=f"{parameter} must be"):
            method(**{parameter: -1}).fit(X, candidates)


def test_own_weights_are_checked(partial_problem):
    X, candidates, _ = partial_problem
    with pytest.raises(ValueError, match="C3 must be"):
        PMLFP(C3=-1).fit(X, candidates)
    with pytest.raises(ValueError, match="C2 must be"):
        PMLLC(C2="3").fit(X, candidates)


def test_repeated_features_count_once(partial_problem, monkeypatch):
    """Distances stay the same; only the penalty is halved, as with twice the C1 and C3. A constant changes nothing."""
    X, candidates, _ = partial_problem
    one = PMLFP(C1=2, C3=4).fit(X, candidates)
    repeated = np.hstack([X, X, np.full((len(X), 1), 7.0)])
    monkeypatch.setattr(steps, "_BIAS_WEIGHT", steps._BIAS_WEIGHT / 2)
    two = PMLFP(C1=1, C3=2).fit(repeated, candidates)
    assert 0 < np.mean((one.confidences_ > 0).sum(axis=1) > 1) < 1
    assert_allclose(two.confidences_, one.confidences_, atol=1e-12)
    assert_allclose(two.decision_function(repeated), one.decision_function(X), atol=1e-5)


def test_linear_cost_is_the_root_mean_square_distance(partial_problem):
    X, candidates, _ = partial_problem
    model = PMLFP(C3=3).fit(X, candidates)
    scaled = model.scaler_.transform(X)
    cost, reward = model._confidence_terms(scaled, candidates.astype(float))
    differences = scaled[:, None] - model.prototypes_
    assert_allclose(cost, 3 * np.sqrt(np.mean(differences**2, axis=2)))
    assert not reward.any()


def test_equal_columns_of_candidates_are_believed_equally(partial_problem):
    X, candidates, _ = partial_problem
    doubled = np.hstack([candidates, candidates[:, :1]])
    for model in (PMLFP(), PMLFP(C3=0.1), PMLLC(), PMLLC(C2=0.05)):
        model.fit(X, doubled)
        assert_array_equal(model.confidences_[:, 0], model.confidences_[:, 6])
        assert_allclose(model.coef_[:, 0], model.coef_[:, 6], atol=1e-6)


@pytest.mark.slow
def test_what_is_believed_on_emotions(data_folder):
    """PML-fp believes one or two candidates a row, mostly true ones; PML-lc believes all. Three folds of ten."""
    from skpml.datasets import load_dataset

    data = load_dataset("emotions-3", random_state=0)
    folds = list(KFold(10, shuffle=True, random_state=0).split(data.X))[:3]
    precision = {PMLFP: [], PMLLC: []}
    for train, test in folds:
        for method, values in precision.items():
            model = method(on_empty="ignore").fit(data.X[train], data.candidates[train])
            values.append(average_precision(data.truth[test], model.decision_function(data.X[test])))
            P, truth = model.confidences_, data.truth[train]
            if method is PMLFP:
                assert 1.1 < (P > 0).sum(axis=1).mean() < 1.5
                assert (P * truth).sum() / P.sum() > 0.8
            else:
                assert_array_equal(P, data.candidates[train])
    assert np.mean(precision[PMLFP]) > 0.78
    assert np.mean(precision[PMLLC]) > 0.775
