"""The likelihood of votes against slow implementations, limits, invariances and simulated annotators."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from skpml.candidate_likelihood import CandidateLikelihood, count_votes, fit_votes
from skpml.likelihood._noise import bend
from skpml.likelihood._vote_counts import check_votes
from skpml.likelihood._votes import _share_above, _VoteModel, couple_labels, fit_vote_model


def simulate(n=400, c=4, m=5, t=0.75, r=0.1, seed=0):
    """Features, truth and counts; the first c features carry the labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, c + 2))
    true = rng.random((n, c)) < expit(2.5 * X[:, :c] - 1)
    return X, true, rng.binomial(m, np.where(true, t, r))


def annotate(true, sensitivity, false_rate, seen, seed=0):
    """Votes (n, a, c) of annotators with rates (a), NaN where they saw nothing."""
    rng = np.random.default_rng(seed)
    rate = np.where(true[:, None, :], sensitivity[None, :, None], false_rate[None, :, None])
    return np.where(seen[:, :, None], rng.random(rate.shape) < rate, np.nan)


def slow_em(features, V, m, rounds=3000):
    """The model without spread and without priors of rates: closed forms, and a regression by a library."""
    c = V.shape[1]
    q, at = V / m, np.append(np.zeros(c), 1.0)
    for _ in range(rounds):
        t, r = (
            (q * V).sum(axis=0) / (q * m).sum(axis=0),
            ((1 - q) * V).sum(axis=0) / ((1 - q) * m).sum(axis=0),
        )

        def loss(curve, q=q):
            logits = curve[-1] * features + curve[:-1]
            pull = ((curve[:-1] - curve[:-1].mean()) ** 2).sum() + (curve[-1] - 1) ** 2
            return (np.logaddexp(0, logits) - q * logits).sum() + pull / 2

        at = minimize(loss, at, bounds=[(None, None)] * c + [(0.01, 10)]).x
        odds = (t / r) ** V * ((1 - t) / (1 - r)) ** (m - V) * np.exp(at[-1] * features + at[:-1])
        before, q = q, odds / (1 + odds)
        if np.abs(q - before).max() < 1e-7:
            break
    return q, t, r


@pytest.mark.parametrize("informative", [True, False])
def test_slow_algorithm(informative):
    """With features, and without: then it is the mixture of Dawid and Skene for each label."""
    X, _, V = simulate(n=60, c=2)
    scores = expit(X[:, :2] - 1) if informative else np.full((60, 2), 0.4)
    features = logit(bend(scores))
    q, t, r = slow_em(features, V, 5)
    fit = fit_vote_model(
        scores, check_votes(V, 5), truth="class", spread=0, strengths=(0, 0), max_iter=5000, tol=1e-8
    )
    assert_allclose(fit.confidences, q, atol=1e-3)
    assert_allclose(fit.sensitivity, t, atol=1e-3)
    assert_allclose(fit.false_rate, r, atol=1e-3)


def exact_coupling(p, theta):
    """Probabilities of labels by a sum over all sets, whose pairs have the factor e^theta, and the sum itself."""
    sets = np.array(list(product((0, 1), repeat=p.shape[1])))
    k = sets.sum(axis=1)
    weights = np.where(sets, p[:, None, :], 1 - p[:, None, :]).prod(axis=2) * np.exp(theta * k * (k - 1) / 2)
    return weights @ sets / weights.sum(axis=1, keepdims=True), weights.sum(axis=1)


def simulate_exclusive(n=800, seed=0):
    """Rows with one of four labels; the features know only that it is one of two."""
    rng = np.random.default_rng(seed)
    label = rng.integers(4, size=n)
    X = np.column_stack([label // 2 + rng.normal(scale=0.4, size=n), rng.normal(size=n)])
    true = np.eye(4, dtype=bool)[label]
    return X, true, rng.binomial(3, np.where(true, 0.75, 0.25))


@pytest.mark.parametrize("exclusive", [True, False])
def test_attraction_is_most_likely(exclusive):
    """Against sums over all sets of labels, for every attraction of a grid."""
    rng = np.random.default_rng(0)
    before, after = rng.uniform(0.1, 0.6, size=(2, 60, 4))
    after = after if exclusive else np.sqrt(after)
    _, found = couple_labels(before, after)
    grid = np.linspace(-5, 1.5, 651)
    gain = [
        np.log(exact_coupling(after, theta)[1] / exact_coupling(before, theta)[1]).sum() - theta**2 / 2
        for theta in grid
    ]
    assert abs(found - grid[np.argmax(gain)]) < 0.02


def test_two_coupled_labels():
    """With two labels, the odds are those of the sum over all sets, but for the factor that was expected."""
    rng = np.random.default_rng(0)
    before, after = rng.uniform(0.05, 0.95, size=(2, 50, 2))
    found, theta = couple_labels(before, after)
    exact = exact_coupling(after, theta)[0]
    expected = np.log(1 - before + before * np.exp(theta))[:, ::-1]
    assert_allclose(logit(found), logit(exact) - expected, atol=1e-10)


def test_independent_labels_stay_apart():
    """If votes for other labels say nothing, other votes for them change nothing."""
    X, true, V = simulate(n=1500, c=6)
    scores = expit(2.5 * X[:, :6] - 1) * 0.65 + 0.1
    changed = np.random.default_rng(1).binomial(5, np.where(true, 0.75, 0.1))
    changed[:, 0] = V[:, 0]
    one, other = (fit_vote_model(scores, check_votes(each, 5)) for each in (V, changed))
    assert max(abs(one.attraction), abs(other.attraction)) < 0.1
    assert np.abs(one.confidences[:, 0] - other.confidences[:, 0]).mean() < 0.005


def test_votes_for_other_labels_say_more():
    """Labels that exclude each other: wrong candidates are found better, and the level stays."""
    X, true, V = simulate_exclusive()
    found = fit_votes(X, V, 3)
    assert found.attraction < -0.5
    alone = np.column_stack([fit_votes(X, V[:, [j]], 3).confidences[:, 0] for j in range(4)])
    candidate = V > 0
    gain = [roc_auc_score(true[candidate], each[candidate]) for each in (found.confidences, alone)]
    assert gain[0] > gain[1] + 0.01
    assert abs(found.confidences.mean() - true.mean()) < 0.05


@pytest.mark.parametrize("lean", [0.0, 0.8])
def test_lean_is_recovered(lean):
    """The rate of true labels rises with the score, or it does not."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(3000, 3))
    true = rng.random(z.shape) < expit(z)
    V = rng.binomial(8, np.where(true, expit(0.8 + lean * z + 0.5 * rng.normal(size=z.shape)), 0.05))
    found = fit_vote_model(expit(z), check_votes(V, 8), spread=0.5, max_iter=1000)
    assert_allclose(found.lean, lean, atol=0.1)
    assert fit_vote_model(expit(z), check_votes(V, 8), spread=0.5, truth="class").lean == 0


def test_features_that_say_nothing():
    _, _, V = simulate(n=500)
    X = np.random.default_rng(1).normal(size=(500, 3))
    alone = fit_vote_model(np.full(V.shape, 0.3), check_votes(V, 5), truth="class", spread=0)
    found = fit_votes(X, V, 5, truth="class", spread=0)
    assert np.abs(found.confidences - alone.confidences).mean() < 0.01
    assert_allclose(found.sensitivity, alone.sensitivity, atol=0.02)


def test_likelihood_of_a_spread():
    """Sums over nodes against an integral over the shift, of the votes and of the majority."""
    votes = check_votes(np.array([[0], [1], [3]]), 3)
    model = _VoteModel(np.zeros((3, 1)), votes, 0.8, None)
    at = 0.3
    joint = np.exp(model._log_likelihoods(np.array([[at]])) + model._log_weights(0))[:, 0, :]
    share = _share_above(np.array([at]), model.nodes)[0]
    for place, v in enumerate(votes.counts[:, 0, 0]):

        def density(u, v=v):
            return expit(at + u) ** v * expit(-at - u) ** (3 - v) * norm.pdf(u / 0.8) / 0.8

        whole = quad(density, -6, 6)[0]
        assert_allclose(joint[place].sum(), whole, rtol=0.01)
        above = quad(density, -at, 6)[0] / whole
        assert_allclose(joint[place] @ share / joint[place].sum(), above, atol=0.01)


@pytest.mark.parametrize("truth", ["majority", "class"])
def test_perfect_annotators(truth):
    X, true, V = simulate(t=1.0, r=0.0)
    found = fit_votes(X, V, 5, truth=truth)
    assert_allclose(found.confidences, true, atol=0.01)
    assert (found.sensitivity > 0.97).all()
    assert (found.false_rate < 0.01).all()


def test_missing_labels_get_a_probability():
    """Annotators who often miss labels: rows without votes are not sure to lack them, and features say which."""
    X, true, V = simulate(n=1000, m=3, t=0.55, r=0.05)
    found = fit_votes(X, V, 3, truth="class")
    unseen = V == 0
    assert abs(found.confidences[unseen].mean() - true[unseen].mean()) < 0.03
    assert roc_auc_score(true[unseen], found.confidences[unseen]) > 0.75


def test_confidences_are_calibrated_if_cells_differ():
    """Cells of a class have different rates; true is what most annotators would say."""
    rng = np.random.default_rng(0)
    X, base, _ = simulate(n=2000)
    rate = expit(np.where(base, 0.6, -2.5) + 0.9 * rng.normal(size=base.shape))
    V = rng.binomial(4, rate)
    found = fit_votes(X, V, 4, n_anchors=200)
    candidate = V > 0
    p, true = found.confidences[candidate], (rate > 0.5)[candidate]
    bins = np.minimum((10 * p).astype(int), 9)
    gaps = [(bins == k).mean() * abs(p[bins == k].mean() - true[bins == k].mean()) for k in np.unique(bins)]
    assert sum(gaps) < 0.05
    assert roc_auc_score(true, p) > roc_auc_score(true, V[candidate])


@pytest.mark.slow
def test_annotators_are_recovered():
    X, true, _ = simulate(n=600)
    rng = np.random.default_rng(3)
    sensitivity, false_rate = rng.uniform(0.5, 0.95, 12), rng.uniform(0.02, 0.2, 12)
    seen = rng.permuted(np.tile(np.arange(12) < 4, (600, 1)), axis=1)
    votes = annotate(true, sensitivity, false_rate, seen)
    found = fit_votes(X, votes)
    measured = [[np.nanmean(votes[:, a][cells]) for a in range(12)] for cells in (true, ~true)]
    assert_allclose(found.annotator_sensitivity.mean(axis=1), measured[0], atol=0.1)
    assert_allclose(found.annotator_false_rate.mean(axis=1), measured[1], atol=0.05)
    counted = fit_votes(X, np.nansum(votes, axis=1), 4)
    assert roc_auc_score(true.ravel(), found.confidences.ravel()) > roc_auc_score(
        true.ravel(), counted.confidences.ravel()
    )


def test_other_labels_say_how_good_an_annotator_is():
    """A rate for a label that the annotator hardly met comes from the other labels."""
    X, true, _ = simulate(n=400, c=5)
    true[:, 4] = np.arange(400) < 4
    sensitivity = np.array([0.95, 0.95, 0.55, 0.55])
    votes = annotate(true, sensitivity, np.full(4, 0.05), np.ones((400, 4), bool))
    found = fit_votes(X, votes, spread=0.25).annotator_sensitivity[:, 4]
    assert found[:2].min() > found[2:].max() + 0.2


def test_identical_annotators_are_counts():
    """If votes do not change with the names of annotators, the names add nothing to rates of labels."""
    X, true, _ = simulate(n=40)
    votes = annotate(true, np.full(3, 0.8), np.full(3, 0.1), np.ones((40, 3), bool))
    votes = np.concatenate([votes[:, order] for order in permutations(range(3))])
    scores = np.tile(expit(X[:, :4] - 1), (6, 1))
    options = {"spread": 0.5, "strengths": (20.0, 1e9), "tol": 1e-8, "max_iter": 2000}
    known = fit_vote_model(scores, check_votes(votes), **options)
    counted = fit_vote_model(scores, check_votes(votes.sum(axis=1), 3), **options)
    assert_allclose(known.confidences, counted.confidences, atol=1e-4)
    assert_allclose(known.annotator_sensitivity, np.tile(counted.sensitivity, (3, 1)), atol=1e-4)


def test_order_does_not_matter():
    X, true, _ = simulate(n=150)
    rng = np.random.default_rng(0)
    seen = rng.permuted(np.tile(np.arange(6) < 3, (150, 1)), axis=1)
    votes = annotate(true, rng.uniform(0.6, 0.9, 6), rng.uniform(0.05, 0.2, 6), seen)
    rows, who, labels = rng.permutation(150), rng.permutation(6), rng.permutation(4)
    one = fit_votes(X, votes, spread=0.5)
    other = fit_votes(X[rows], votes[rows][:, who][:, :, labels], spread=0.5)
    assert_allclose(other.confidences, one.confidences[rows][:, labels], atol=1e-6)
    assert_allclose(other.annotator_sensitivity, one.annotator_sensitivity[who][:, labels], atol=1e-6)
    assert_array_equal(fit_votes(X, votes, spread=0.5).confidences, one.confidences)


def test_a_row_does_not_confirm_itself():
    X, _, V = simulate(n=600)
    row = int(np.argmin(V[:, 0]))
    changed = V.copy()
    changed[row] = 5
    one, other = fit_votes(X, V, 5, spread=0.5), fit_votes(X, changed, 5, spread=0.5)
    assert np.abs(one.probabilities[row] - other.probabilities[row]).max() < 0.01
    assert other.confidences[row, 0] > one.confidences[row, 0]


def test_sure_labels_stay_sure_among_others():
    before = np.array([[1.0, 0.0, 0.3], [0.2, 1.0, 0.6], [0.5, 0.5, 0.0]])
    after = np.array([[1.0, 0.0, 0.9], [0.1, 1.0, 0.7], [1.0, 0.2, 0.0]])
    found, _ = couple_labels(before, after)
    np.testing.assert_array_equal(found[(after == 0) | (after == 1)], after[(after == 0) | (after == 1)])
    assert ((found >= 0) & (found <= 1)).all()


def test_labels_do_not_swap_their_classes():
    """Even if a label is said of nearly every row, or of none."""
    X, _, V = simulate()
    V[:, 0], V[:, 1] = 5 - V[:, 0], 0
    found = fit_votes(X, V, 5)
    assert (found.sensitivity > found.false_rate).all()
    for values in (found.confidences, found.probabilities):
        assert ((values >= 0) & (values <= 1)).all()


@pytest.mark.parametrize("vote", [0, 5])
def test_votes_that_are_all_alike(vote):
    X, _, V = simulate(n=30)
    found = fit_votes(X, np.full_like(V, vote), 5)
    assert np.isfinite(found.confidences).all()
    assert np.abs(found.confidences - vote / 5).max() < 0.1


def test_rates_do_not_cross():
    """Posteriors that are upside down do not turn the classes around."""
    X, _, V = simulate()
    votes = check_votes(V, 5)
    model = _VoteModel(X[:, :4], votes, 0.0, None)
    before = [np.exp(model._log_weights(place)) for place in (0, 1)]
    rates = model._update_rates(votes.shares, before, model._start_rates())
    for _ in range(20):
        rates = model._update_rates(1 - votes.shares, before, rates)
    assert (rates[0].label > rates[1].label).all()


def test_annotators_by_row():
    """Rows with more annotators are surer."""
    X, true, _ = simulate(n=600)
    rng = np.random.default_rng(0)
    m = np.where(np.arange(600) < 300, 2, 10)
    V = rng.binomial(m[:, None], np.where(true, 0.7, 0.1))
    found = fit_votes(X, V, m)
    error = np.abs(found.confidences - true).mean(axis=1)
    assert error[m == 10].mean() < error[m == 2].mean() / 2


@pytest.mark.parametrize("m", [1, 2])
def test_fewer_than_three_annotators(m):
    X, true, V = simulate(m=m)
    with pytest.warns(UserWarning, match="three annotators"):
        found = fit_votes(X, V, m)
    assert np.isfinite(found.confidences).all()
    assert (found.sensitivity > 0.5).all()
    assert roc_auc_score(true[V > 0], found.confidences[V > 0]) > 0.75


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda V: V + 6, "row 0, label 0"),
        (lambda V: V - 6, "row 0, label 0"),
        (lambda V: V + 0.5, "row 0, label 0"),
        (lambda V: np.where(V >= 0, np.nan, V), "row 0, label 0 has nan"),
        (lambda V: V[0], "shape"),
        (lambda V: V[:0], "shape"),
        (lambda V: V[:-1], "X has 400 rows"),
        (lambda V: [["a"]], "numbers"),
    ],
)
def test_bad_counts(change, message):
    X, _, V = simulate()
    with pytest.raises(ValueError, match=message):
        fit_votes(X, change(V), 5)


@pytest.mark.parametrize(
    ("m", "message"),
    [
        (None, "n_annotators is needed"),
        (0, "at least 1"),
        (2.5, "whole numbers"),
        (np.nan, "whole numbers"),
        ([5, 5], "one for each of 400 rows"),
        ("five", "whole numbers"),
    ],
)
def test_bad_numbers_of_annotators(m, message):
    X, _, V = simulate()
    with pytest.raises(ValueError, match=message):
        fit_votes(X, V, m)


def test_bad_single_votes():
    votes = np.zeros((4, 3, 2))
    with pytest.raises(ValueError, match="must be None"):
        check_votes(votes, 3)
    unseen, partly, two = votes.copy(), votes.copy(), votes.copy()
    unseen[2], partly[1, 2, 0], two[3, 1, 1] = np.nan, np.nan, 2
    with pytest.raises(ValueError, match="No annotator saw row 2"):
        check_votes(unseen)
    with pytest.raises(ValueError, match="row 1, annotator 2 are NaN for label 0"):
        check_votes(partly)
    with pytest.raises(ValueError, match="row 3, annotator 1, label 1 has 2"):
        check_votes(two)


@pytest.mark.parametrize(
    "options", [{"truth": "votes"}, {"spread": -1}, {"spread": "wide"}, {"max_iter": 0}, {"tol": np.nan}]
)
def test_bad_options(options):
    X, _, V = simulate(n=20)
    with pytest.raises(ValueError, match=next(iter(options))):
        fit_votes(X, V, 5, **options)


def test_a_long_table():
    table = count_votes(
        ["b", "b", "a", "a", "b"],
        [1, 2, 1, 1, 1],
        ["dog", "cat", "", "cat", "dog"],
        row_names=["b", "a", "c"],
    )
    assert (table.annotator_names, table.label_names) == ([1, 2], ["cat", "dog"])
    expected = [[[0, 1], [1, 0]], [[1, 0], [np.nan] * 2], [[np.nan] * 2] * 2]
    assert_array_equal(table.votes, expected)


@pytest.mark.parametrize(
    ("columns", "names", "message"),
    [
        (([0], [0, 1], ["a"]), {}, "same length"),
        (([0], [None], ["a"]), {}, "annotators must not be empty, but line 0"),
        (([0], [0], ["a"]), {"label_names": ["b"]}, "not in label_names: 'a'"),
        (([0], [0], ["a"]), {"label_names": ["a", "a"]}, "twice"),
        (([0, "x"], [0, 0], ["a", "a"]), {}, "row_names"),
    ],
)
def test_bad_tables(columns, names, message):
    with pytest.raises(ValueError, match=message):
        count_votes(*columns, **names)


def test_estimator_learns_from_counts():
    X, _, V = simulate(n=500)
    new, new_true, _ = simulate(n=300, seed=1)
    model = CandidateLikelihood(random_state=0, on_empty="ignore").fit(X, V, n_annotators=5)
    found = fit_votes(X, V, 5)
    assert_allclose(model.confidences_, np.where(V > 0, found.confidences, 0), atol=1e-6)
    assert_allclose(model.sensitivity_, found.sensitivity, atol=1e-6)
    assert roc_auc_score(new_true.ravel(), model.predict_proba(new).ravel()) > 0.88
    assert abs(model.predict_proba(new).mean() - new_true.mean()) < 0.05
    assert model.converged_
    assert not hasattr(model, "_votes")


def test_estimator_learns_from_single_votes():
    X, true, _ = simulate(n=200)
    votes = annotate(true, np.array([0.9, 0.8, 0.6]), np.array([0.05, 0.1, 0.2]), np.ones((200, 3), bool))
    model = CandidateLikelihood(random_state=0, on_empty="ignore", gamma=0.1).fit(X.astype(np.float32), votes)
    assert model.confidences_.dtype == model.predict_proba(X.astype(np.float32)).dtype == np.float32
    assert_array_equal(model.confidences_ > 0, votes.sum(axis=1) > 0)
    assert model.selection_["members"][0]["gamma"] == 0.1


def test_estimator_keeps_names():
    pandas = pytest.importorskip("pandas")
    X, _, V = simulate(n=100)
    frame = pandas.DataFrame(V, columns=list("abcd"))
    model = CandidateLikelihood(random_state=0, on_empty="ignore").fit(X, frame, n_annotators=5)
    assert model.classes_.tolist() == list("abcd")
