from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.model_selection import KFold

from skpml.baselines._particle import (
    PARTICLE,
    count_votes,
    credible_labels,
    propagate,
    signed_mean,
    train_pairs,
    vote_likelihoods,
)
from skpml.datasets import load_dataset
from skpml.graph import reconstruction_weights
from skpml.metrics import average_precision, hamming_loss, ranking_loss
from skpml.reference import CandidateRidge

VARIANTS = ("vls", "map")


def fit(X, Y, **parameters):
    return PARTICLE(on_empty="ignore", **parameters).fit(X, Y)


def test_confidences_solve_the_fixed_point_equation(partial_problem):
    X, Y, _ = partial_problem
    H = reconstruction_weights(X)
    result = propagate(H, Y, alpha=0.9, tol=1e-12)
    F = result.confidences
    mixed = Y * (0.9 * (H.toarray() @ F) + 0.1 * Y / Y.sum(axis=1, keepdims=True))
    assert_allclose(F, mixed / mixed.sum(axis=1, keepdims=True), atol=1e-10)
    assert_allclose(F.sum(axis=1), 1)
    assert not F[Y == 0].any()
    assert result.converged
    assert result.history["change"][-1] < 1e-12 <= result.history["change"][-2]


def test_propagation_follows_the_neighbour():
    """Two rows that lean on each other believe what they share; the third has nobody and stays at equal parts."""
    H = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0.0]])
    Y = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]])
    F = propagate(H, Y, alpha=0.95).confidences
    assert F[0, 0] > 0.9
    assert F[1, 0] > 0.9
    assert_allclose(F[2], [0, 0.5, 0.5])


def test_without_neighbours_every_candidate_is_credible(partial_problem):
    X, Y, _ = partial_problem
    F = propagate(reconstruction_weights(X), Y, alpha=0.0).confidences
    assert_allclose(F, Y / Y.sum(axis=1, keepdims=True))
    assert_array_equal(credible_labels(F, Y), Y > 0)


def test_credible_labels_are_candidates_near_the_highest_confidence():
    F = np.array([[0.5, 0.46, 0.04], [0.6, 0.4, 0], [0, 0, 0]])
    Y = np.array([[1, 1, 1], [1, 1, 0], [0, 0, 0]])
    assert_array_equal(credible_labels(F, Y), [[1, 1, 0], [1, 0, 0], [0, 0, 0]])
    assert_array_equal(credible_labels(F, Y, credibility=0.5), [[1, 1, 0], [1, 1, 0], [0, 0, 0]])


def test_elicitation_is_more_precise_than_the_candidates(partial_problem):
    X, Y, truth = partial_problem
    model = fit(X, Y)
    assert model.credible_.any(axis=1).all()
    assert not model.credible_[Y == 0].any()
    assert truth[model.credible_].mean() > truth[Y > 0].mean() + 0.15


def brute_force_pairs(X, credible, Y, C):
    """Every pair by L-BFGS on the objective as it is written; the virtual label spelt out."""
    c = Y.shape[1]
    design = np.hstack([X, np.ones((len(X), 1))])
    models = {}
    for j, k in [*combinations(range(c), 2), *((j, c) for j in range(c))]:
        first = credible[:, j] if k == c else credible[:, j] & (Y[:, k] == 0)
        second = Y[:, j] == 0 if k == c else credible[:, k] & (Y[:, j] == 0)
        if first.any() and second.any():
            rows = np.vstack([design[first], design[second]])
            y = np.r_[np.ones(first.sum()), -np.ones(second.sum())]

            def objective(w, rows=rows, y=y):
                slack = np.maximum(0, 1 - y * (rows @ w))
                return w @ w / 2 + C * slack @ slack, w - 2 * C * rows.T @ (y * slack)

            w = minimize(objective, np.zeros(rows.shape[1]), jac=True, tol=1e-12, options={"maxiter": 5000}).x
            models[j, k] = w, np.mean(np.sign(rows @ w) == y)
    return models


def test_models_and_votes_agree_with_brute_force(partial_problem):
    X, Y, _ = partial_problem
    X = X / 10
    credible = credible_labels(propagate(reconstruction_weights(X), Y).confidences, Y)
    models = train_pairs(X, credible, Y, C=0.7)
    oracle = brute_force_pairs(X, credible, Y, 0.7)
    assert {tuple(pair) for pair in models.pairs.tolist()} == set(oracle)
    score, virtual = np.zeros(Y.shape), np.zeros(len(X))
    for pair, coef, intercept, accuracy in zip(
        models.pairs.tolist(), models.coef, models.intercept, models.accuracy, strict=True
    ):
        w, share = oracle[tuple(pair)]
        assert_allclose(np.r_[coef, intercept], w, atol=1e-4)
        assert accuracy == share
        j, k = pair
        for_first = X @ w[:-1] + w[-1] > 0
        score[for_first, j] += share
        if k < Y.shape[1]:
            score[~for_first, k] += share
        else:
            virtual[~for_first] += share
    decisions = X @ models.coef.T + models.intercept
    votes = count_votes(decisions, models.pairs, models.accuracy, Y.shape[1])
    assert_allclose(votes[:, :-1], score)
    assert_allclose(votes[:, -1], virtual)


def test_undecided_votes_are_split():
    votes = count_votes(np.array([[1e-12, -2.0]]), np.array([[0, 1], [0, 2]]), np.array([1.0, 0.5]), 2)
    assert_allclose(votes, [[0.5, 0.5, 0.5]])


def test_signed_mean_counts_for_the_first_and_against_the_second():
    decisions, pairs = np.array([[1.0, -3.0, 0.5]]), np.array([[0, 1], [0, 3], [1, 3]])
    # Label 0: (1 − 3)/2 = −1; label 1: (−1 + ½)/2 = −¼; label 2 has no model.
    assert_allclose(signed_mean(decisions, pairs, 3), [[-1 / 2, -1 / 5, -1]])


def test_likelihoods_count_votes():
    votes = np.array([[0, 1, 2], [2, 1, 0], [2, 0, 1], [1, 2, 0]])
    members = np.array([[1, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], dtype=bool)
    expected = np.array([[2, 1, 3], [2, 1, 2], [1, 1, 1]])
    assert_allclose(vote_likelihoods(votes, members), expected / expected.sum(axis=1, keepdims=True))


def test_scores_of_splitting_are_votes_less_the_virtual_labels(partial_problem):
    X, Y, _ = partial_problem
    model = fit(X, Y, threshold="variant")
    decisions = model.scaler_.transform(X) @ model.coef_.T + model.intercept_
    votes = count_votes(decisions, model.pairs_, model.accuracy_, 6)
    scores = model.decision_function(X)
    assert_allclose(6 * scores, votes[:, :6] - votes[:, 6:], atol=6.1e-6)
    assert_array_equal(model.predict(X), votes[:, :6] > votes[:, 6:])
    assert model.threshold_ == 0
    # The decision values order what the votes leave tied.
    assert (np.diff(np.sort(scores, axis=1)) > 0).all()


def test_posterior_is_bayes_rule(partial_problem):
    X, Y, _ = partial_problem
    model = fit(X, Y, variant="map", threshold="variant")
    decisions = model.scaler_.transform(X) @ model.coef_.T + model.intercept_
    beaten = np.zeros(Y.shape, dtype=int)
    for (j, k), values in zip(model.pairs_, decisions.T, strict=True):
        if k < 6:
            beaten[:, j] += values > 0
            beaten[:, k] += values <= 0
    has, lacks = model.credible_, Y == 0
    scores = model.decision_function(X)
    for row, label in np.ndindex(12, 6):
        same = beaten[:, label] == beaten[row, label]
        prior = (1 + has[:, label].sum()) / (2 + has[:, label].sum() + lacks[:, label].sum())
        yes = prior * (1 + (same & has[:, label]).sum()) / (6 + has[:, label].sum())
        no = (1 - prior) * (1 + (same & lacks[:, label]).sum()) / (6 + lacks[:, label].sum())
        assert scores[row, label] == pytest.approx(yes / (yes + no), abs=2e-6)
    assert model.threshold_ == 0.5


def test_a_label_without_rivals_gets_its_prior():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 3)), np.ones((30, 2), dtype=int)
    Y[:10, 1] = 0
    model = fit(X, Y, variant="map", alpha=0.0)
    assert_allclose(model.decision_function(X)[:, 0], 31 / 32, atol=2e-6)
    assert_allclose(model.decision_function(X)[:, 1], 21 / 32, atol=2e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_one_class_a_row_is_pairwise_classification(variant):
    rng = np.random.default_rng(1)
    y = np.arange(150) % 3
    X = rng.normal(size=(150, 2)) + 4 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    assert PARTICLE(variant=variant).fit(X, y).score(X, y) > 0.95


@pytest.mark.parametrize("variant", VARIANTS)
def test_clean_candidates_do_not_hurt(variant):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 6))
    truth = (X @ rng.normal(size=(6, 4)) + 0.3 * rng.normal(size=(400, 4)) > 0.7).astype(int)
    model = fit(X[:300], truth[:300], variant=variant)
    ridge = CandidateRidge(on_empty="ignore").fit(X[:300], truth[:300])
    ours, theirs = (average_precision(truth[300:], m.decision_function(X[300:])) for m in (model, ridge))
    assert ours > theirs - 0.03


@pytest.mark.parametrize("variant", VARIANTS)
def test_order_does_not_matter(partial_problem, variant):
    X, Y, _ = partial_problem
    rng = np.random.default_rng(3)
    rows, features, labels = rng.permutation(len(X)), rng.permutation(X.shape[1]), rng.permutation(6)
    one = fit(X, Y, variant=variant)
    other = fit(X[rows][:, features], Y[rows][:, labels], variant=variant)
    assert_allclose(
        other.decision_function(X[:, features]), one.decision_function(X)[:, labels], rtol=0, atol=1e-9
    )
    assert_allclose(other.confidences_, one.confidences_[rows][:, labels], atol=1e-9)


@pytest.mark.parametrize("variant", VARIANTS)
def test_odd_candidates(partial_problem, variant):
    X, Y, _ = partial_problem
    Y = Y.copy()
    Y[0], Y[1], Y[:, 2] = 1, 0, 0
    model = fit(X, Y, variant=variant)
    scores = model.decision_function(X)
    assert np.isfinite(scores).all()
    assert (scores[:, 2] < scores.max(axis=1)).all()
    assert not model.predict(X)[:, 2].any()
    assert not model.confidences_[1].any()
    with pytest.warns(match="Every label is a candidate of every row"):
        assert np.isfinite(fit(X, np.ones_like(Y), variant=variant).decision_function(X)).all()
    single = fit(X, (X[:, :1] > np.median(X[:, 0])).astype(int), variant=variant)
    order = np.argsort(single.decision_function(X)[:, 0])
    assert X[order[-30:], 0].mean() > X[order[:30], 0].mean() + 1


def test_blocks_do_not_matter(partial_problem, monkeypatch):
    X, Y, _ = partial_problem
    model = fit(X, Y, variant="map")
    whole = model.decision_function(X)
    monkeypatch.setattr("skpml.baselines._particle._BLOCK_SIZE", 100)
    assert_allclose(fit(X, Y, variant="map").decision_function(X), whole, atol=1e-12)


@pytest.mark.parametrize("threshold", ["auto", "non-candidates", 0.1])
def test_other_thresholds(partial_problem, threshold):
    X, Y, _ = partial_problem
    model = fit(X, Y, threshold=threshold)
    assert_array_equal(model.predict(X), model.decision_function(X) > model.threshold_)


@pytest.mark.parametrize(
    "parameters", [{"alpha": 1.1}, {"credibility": 2}, {"C": 0}, {"variant": "vote"}, {"n_neighbors": 0}]
)
def test_bad_parameters(partial_problem, parameters):
    X, Y, _ = partial_problem
    with pytest.raises(ValueError, match=f"{next(iter(parameters))} must"):
        PARTICLE(**parameters).fit(X, Y)


@pytest.mark.parametrize(
    ("variant", "precision", "loss", "hamming"),
    [("vls", (0.77, 0.79), 0.195, 0.22), ("map", (0.755, 0.785), 0.21, 0.23)],
)
@pytest.mark.slow
def test_emotions(data_folder, variant, precision, loss, hamming):
    """All ten folds: a fit takes a twentieth of a second."""
    data = load_dataset("emotions-3", random_state=0)
    values = []
    for train, test in KFold(10, shuffle=True, random_state=0).split(data.X):
        model = fit(data.X[train], data.candidates[train], variant=variant)
        scores, truth = model.decision_function(data.X[test]), data.truth[test]
        values.append(
            (
                average_precision(truth, scores),
                ranking_loss(truth, scores),
                hamming_loss(truth, scores > model.threshold_),
            )
        )
    ours = np.mean(values, axis=0)
    assert precision[0] <= ours[0] <= precision[1]
    assert ours[1:] == pytest.approx([loss, hamming], abs=0.01)
