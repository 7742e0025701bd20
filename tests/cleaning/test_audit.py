"""The audit: rows are judged by models that have not seen them, numbers add up, and what is planted is found."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import mannwhitneyu, norm
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.utils import Bunch

import skpml.candidate_likelihood._estimator as estimator_module
from skpml import CandidateLikelihood
from skpml.base import BasePMLClassifier
from skpml.cleaning import audit, suggest_actions
from skpml.cleaning._audit import _make_model
from skpml.cleaning._batch import find_reasons
from skpml.cleaning._evidence import find_informative
from skpml.cleaning._judging import _count_at, count_wrong, cross_fit, judge
from skpml.datasets import load_digits_attributes
from skpml.likelihood import calibrate, fit_calibration
from skpml.noise import top_up

FAST = {"method": "ridge", "n_folds": 3}


class Remembers(BasePMLClassifier):
    """Gives 0.9 to the candidates of rows that it was fitted on, and 0.5 to all labels of other rows."""

    def __init__(self, *, threshold=0.5, on_empty="ignore"):
        self.threshold, self.on_empty = threshold, on_empty

    def _fit(self, X, Y):
        self.known_ = {row.tobytes(): labels for row, labels in zip(X, Y, strict=True)}

    def _scores(self, X):
        known = [self.known_.get(row.tobytes()) for row in X]
        return np.array([np.full(3, 0.5) if labels is None else 0.1 + 0.8 * labels for labels in known])

    def predict_proba(self, X):
        return self._checked_scores(X)


def made(n=400, c=6, rate=0.3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    truth = (2 * X @ rng.normal(size=(5, c)) + rng.normal(size=(n, c)) > 2).astype(int)
    truth[~truth.any(axis=1), 0] = 1
    return X, truth, np.maximum(truth, rng.random((n, c)) < rate).astype(np.uint8)


def test_no_row_is_judged_by_a_model_that_has_seen_it():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 2)), (rng.random((60, 3)) < 0.5).astype(np.uint8)
    _, scores, order = cross_fit(Remembers(), X, Y, n_folds=4)
    # A model that had seen the row would tell candidates from others.
    assert_array_equal(scores, 0.5)
    assert sorted(order) == list(range(60))


@pytest.mark.slow
def test_level_is_that_of_rows_left_out_and_order_that_of_both():
    X, _, Y = made()
    model = CandidateLikelihood(family="least-squares", gamma=0.1, at_least_one=False, kernel_width=1.0,
                                random_state=0, on_empty="ignore")  # fmt: skip
    whole, scores, order = cross_fit(model, X, Y, n_folds=3)
    found = judge(scores, Y, of_all=whole.confidences_, order=order)
    candidate = Y > 0
    assert (found.confidences[~candidate] == 0).all()
    assert_allclose(found.confidences[candidate].mean(), found.held_out[candidate].mean(), rtol=1e-3)
    logit = lambda p: np.log(p / (1 - p))  # noqa: E731
    whole = np.clip(whole.confidences_[candidate], 1e-6, 1 - 1e-6)
    both = logit(np.clip(found.held_out[candidate], 1e-6, 1 - 1e-6)) + logit(whole)
    order = np.argsort(both)
    assert (np.diff(found.confidences[candidate][order]) >= -1e-12).all()


class Counting(CandidateLikelihood):
    """Also notes the rows of each fit, and the number of settings that it tried."""

    fits: ClassVar[list[tuple[int, int]]] = []

    def _fit(self, X, Y):
        done = super()._fit(X, Y)
        self.fits.append((len(X), len(self.selection_["tried"])))
        return done


@pytest.mark.slow
def test_a_search_that_knows_all_rows_needs_no_further_fits(monkeypatch):
    X, _, Y = made(n=150, c=4)
    monkeypatch.setattr(Counting, "fits", [])
    model = Counting(effort="quick", random_state=0, on_empty="ignore", n_folds=3)
    _, scores, _ = cross_fit(model, X, Y, n_folds=3)
    assert len(model.fits) == 1
    assert model.fits[0][1] > 20
    assert scores.shape == Y.shape
    # A search of a part of the rows does not know the others: settings are kept in the folds.
    monkeypatch.setattr(estimator_module, "_SEARCH_ROWS", 100)
    monkeypatch.setattr(Counting, "fits", [])
    cross_fit(model, X, Y, n_folds=3)
    assert model.fits[0][0] == 150
    assert model.fits[1:] == [(100, 0)] * 3


def test_progress_goes_from_0_to_100_and_names_its_stages():
    X, _, Y = made(n=120)
    told = []
    audit(X, Y, progress=lambda *step: told.append(step))
    done = [step[0] for step in told]
    assert (done[0], done[-1]) == (0, 100)
    assert done == sorted(done)
    assert {step[1] for step in told} == {100}
    assert len({step[2] for step in told}) == len(told) > 6


@pytest.mark.parametrize("n_rows", [5, 8])
def test_few_rows_are_audited_and_nothing_is_known(n_rows):
    X, _, Y = made(n=n_rows, c=3)
    Y[:, 0] |= ~Y.any(axis=1)
    found = audit(X, Y)
    assert found.wrong.basis == "unknown"
    assert_array_equal(found.clean_labels(), Y)
    assert found.train_model(X).predict(X).shape == Y.shape


def test_a_first_look_orders_tags_and_drops_none():
    X, truth, Y = made(n=300)
    found = audit(X, Y, fast=True)
    wrong = (truth == 0)[Y > 0]
    assert roc_auc_score(wrong, -found.confidences[Y > 0]) > 0.8
    assert found.model.family == "ridge"
    assert found.wrong.basis == "unknown"
    assert found.evidence.fast
    assert not audit(X, Y).evidence.fast
    assert not (found.actions == "drop").any()
    # What a person checked at random counts as always.
    rows, labels = np.nonzero(Y)
    verified = np.zeros(Y.shape, dtype=np.int8)
    some = np.random.default_rng(0).permutation(len(rows))[:60]
    verified[rows[some], labels[some]] = np.where(truth[rows[some], labels[some]] > 0, 1, -1)
    assert audit(X, Y, fast=True, verified=verified, at_random=True).wrong.basis == "sample"
    with pytest.raises(ValueError, match="candidate-likelihood"):
        audit(X, Y, fast=True, method="pml-ma")


def test_the_family_of_the_model_can_be_chosen():
    X, _, Y = made(n=100)
    found = audit(X, Y, family="logistic")
    assert {setting["family"] for setting in found.model.selection_["tried"]} == {"logistic"}
    assert len({setting["family"] for setting in audit(X, Y).model.selection_["tried"]}) > 1
    # The audit is still quick, and the trained model is of the same kind.
    assert found.method.effort == "quick"
    assert found.train_model(X).family == "logistic"
    with pytest.raises(ValueError, match="fast"):
        audit(X, Y, family="logistic", fast=True)
    with pytest.raises(ValueError, match="family must be"):
        audit(X, Y, family="probit")
    with pytest.raises(ValueError, match="candidate-likelihood"):
        audit(X, Y, family="logistic", method="ridge")


def test_drops_promise_at_most_what_the_least_noise_allows():
    X, truth, Y = made(n=300)
    found = audit(X, Y)
    dropped = found.actions == "drop"
    assert dropped.any()
    wrong = np.mean(truth[dropped] == 0)
    assert 0.75 <= found.evidence.drops_wrong <= np.mean(1 - found.confidences[dropped])
    assert found.evidence.drops_wrong <= wrong + 0.05
    kept = audit(X, Y, drop_below=0.0)
    assert np.isnan(kept.evidence.drops_wrong)


def test_rows_in_another_order_are_judged_alike():
    X, _, Y = made(n=120)
    order = np.random.default_rng(1).permutation(120)
    one, other = audit(X, Y, **FAST), audit(X[order], Y[order], **FAST)
    assert_allclose(other.confidences, one.confidences[order], rtol=1e-6, atol=1e-9)


@pytest.mark.slow
def test_planted_tags_are_found_and_counted():
    X, truth, Y = made(n=800)
    found = audit(X, Y, n_folds=3)
    wrong = (Y > 0) & (truth == 0)
    assert roc_auc_score(wrong[Y > 0], -found.confidences[Y > 0]) > 0.85
    _, low, high = found.wrong.total
    assert low <= wrong.sum() <= high
    dropped = found.actions == "drop"
    assert wrong[dropped].mean() > 0.85
    assert dropped.sum() > 0.3 * wrong.sum()
    assert_array_equal(found.clean_labels(), (Y > 0) & ~dropped)
    listed = {(doubt.row, doubt.label): doubt for doubt in found.doubts}
    assert set(listed) == set(
        zip(*np.nonzero((found.actions == "drop") | (found.actions == "ask")), strict=True)
    )
    use = [min(doubt.confidence, 1 - doubt.confidence) for doubt in found.doubts]
    assert use == sorted(use, reverse=True)


@pytest.mark.slow
def test_confidences_mean_what_they_say():
    X, truth, Y = made(n=1500)
    found = audit(X, Y, n_folds=3)
    believed, right = found.confidences[Y > 0], truth[Y > 0]
    for low in np.arange(0, 1, 0.2):
        here = (believed >= low) & (believed < low + 0.2)
        assert abs(believed[here].mean() - right[here].mean()) < 0.12


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.6])
@pytest.mark.slow
def test_intervals_hold_the_number_of_wrong_tags(rate):
    inside = []
    for seed in range(2):
        X, truth, Y = made(n=400, rate=rate, seed=seed)
        found = audit(X, Y, n_folds=3)
        true = ((Y > 0) & (truth == 0)).sum(axis=0)
        inside += ((found.wrong.low <= true) & (true <= found.wrong.high)).tolist()
    assert np.mean(inside) >= 0.7


def judgement(confidences, probabilities, rate):
    """A noise rate that is known exactly."""
    rates = np.full(confidences.shape[1], rate)
    return Bunch(
        probabilities=probabilities, held_out=confidences, confidences=confidences, at_least_noise=confidences,
        noise_rate=rates, noise_range=(rates, rates),
    )  # fmt: skip


class TestCounting:
    def test_confidences_may_be_off_where_the_rate_is_right(self):
        """Sure of 1000 wrong tags and of the rate: the interval still allows for an eighth more or fewer."""
        Y = np.ones((2000, 1), dtype=np.uint8)
        sure = np.repeat([[0.0], [1.0]], 1000, axis=0)
        found = count_wrong(judgement(sure, np.clip(sure, 1e-9, 1 - 1e-9), 0.985), Y)
        assert found.estimate == pytest.approx(1000)
        assert found.low == pytest.approx(1000 - 1.645 * 80, abs=1)
        assert found.high == pytest.approx(1000 + 1.645 * 80, abs=1)

    def test_noise_rates_a_little_beyond_the_allowed_ones_count(self):
        """The range is one rate, but its odds may be off by 8 %, in standard deviations."""
        rng = np.random.default_rng(0)
        eta = 1 / (1 + np.exp(-rng.normal(-2, 3, size=(4000, 3))))
        Y = (rng.random(eta.shape) < eta + (1 - eta) * 0.3).astype(np.uint8)
        p = eta / (eta + (1 - eta) * 0.3) * Y
        found = count_wrong(judgement(p, eta, 0.3), Y)
        odds = 0.3 / 0.7 * np.exp(1.645 * 0.08)
        more = _count_at(eta, np.full(3, odds / (1 + odds)), Y) - _count_at(eta, np.full(3, 0.3), Y)
        assert (more > 20).all()
        share = 1.645 * 0.08 * found.estimate
        chance = 1.645**2 * (p * (1 - p) * Y).sum(axis=0)
        assert_allclose(found.high - found.estimate, np.sqrt(more**2 + share**2 + chance), rtol=1e-3)

    def test_sure_confidences_and_no_noise_leave_nothing_open(self):
        Y = np.array([[1, 1], [1, 0], [1, 1]])
        sure = np.array([[1.0, 0], [1, 0], [1, 0]])
        found = count_wrong(judgement(sure, np.clip(sure, 1e-9, 1 - 1e-9), 1e-9), Y)
        assert_array_equal(found.estimate, [0, 2])
        assert found.low[0] == 0
        assert found.high[1] == 2

    def test_wider_at_a_higher_level_and_never_beyond_the_candidates(self):
        X, _, Y = made(n=200)
        _, scores, order = cross_fit(_ridge(), X, Y, n_folds=3)
        base = judge(scores, Y, order=order)
        narrow, wide = count_wrong(base, Y, level=0.5), count_wrong(base, Y, level=0.99)
        assert (wide.low <= narrow.low).all()
        assert (wide.high >= narrow.high).all()
        assert (wide.high <= Y.sum(axis=0)).all()
        assert_allclose(narrow.estimate, wide.estimate)
        assert_allclose(wide.total[0], wide.estimate.sum())
        # Errors by chance cancel over labels.
        assert wide.total[2] - wide.total[0] <= (wide.high - wide.estimate).sum() + 1e-9


def _ridge():
    from skpml import get_method

    return get_method("ridge")(random_state=0, on_empty="ignore")


class TestActions:
    confidences = np.array([0.05, 0.5, 0.9, 0.35, 0.7])

    def test_two_thresholds(self):
        found = suggest_actions(self.confidences, drop_below=0.35, keep_above=0.7)
        assert found.tolist() == ["drop", "ask", "keep", "ask", "ask"]
        assert suggest_actions(self.confidences, drop_below=0.5, keep_above=0.5).tolist() == [
            "drop", "ask", "keep", "drop", "keep",
        ]  # fmt: skip

    def test_a_budget_goes_to_the_least_sure(self):
        assert suggest_actions(self.confidences, budget=2).tolist() == ["drop", "ask", "keep", "ask", "keep"]
        assert suggest_actions(self.confidences, budget=0).tolist() == [
            "drop",
            "keep",
            "keep",
            "drop",
            "keep",
        ]
        assert set(suggest_actions(self.confidences, budget=99)) == {"ask"}

    @pytest.mark.parametrize(
        "wrong", [{"drop_below": 0.8, "keep_above": 0.2}, {"drop_below": -1}, {"budget": -1}]
    )
    def test_nonsense_is_refused(self, wrong):
        with pytest.raises(ValueError, match="must"):
            suggest_actions(self.confidences, **wrong)


def test_reasons_count_the_nearest_other_rows():
    rng = np.random.default_rng(0)
    X, Y = rng.uniform(-1, 1, size=(40, 3)), (rng.random((40, 4)) < 0.4).astype(np.uint8)
    rows, labels = np.nonzero(Y)
    p = rng.random(Y.shape)
    believed = p * Y
    found = find_reasons(X, Y, rows, labels, probabilities=p, confidences=believed, n_neighbors=6)
    scaled = 2 * (X - X.min(axis=0)) / np.ptp(X, axis=0) - 1
    for reason, row, label in zip(found, rows, labels, strict=True):
        distance = np.linalg.norm(scaled - scaled[row], axis=1)
        distance[row] = np.inf
        near = np.argsort(distance)
        assert reason.carried == Y[near[:6], label].sum()
        assert reason.neighbors == 6
        assert reason.probability == p[row, label]
        assert reason.confidence == believed[row, label]
        others = near[:-1]
        assert reason.similar_with == tuple(others[Y[others, label] > 0][:3])
        assert reason.similar_without == tuple(near[:6][Y[near[:6], label] == 0][:3])


def test_a_label_of_one_row_has_no_similar_rows_and_of_two_has_one():
    X, Y = np.arange(12.0).reshape(6, 2), np.zeros((6, 2), dtype=np.uint8)
    Y[3, 0] = Y[1, 1] = Y[5, 1] = 1
    rows, labels = np.array([3, 1, 5]), np.array([0, 1, 1])
    found = find_reasons(X, Y, rows, labels, probabilities=Y / 2, confidences=Y / 2, n_neighbors=2)
    assert [reason.similar_with for reason in found] == [(), (5,), (1,)]
    without_features = find_reasons(None, Y, rows, labels, probabilities=Y / 2, confidences=Y / 2)
    assert [(reason.neighbors, reason.similar_with) for reason in without_features] == [(0, ())] * 3


@pytest.mark.slow
def test_digits_with_planted_tags():
    digits = load_digits_attributes(candidates=6, random_state=0)
    part = slice(0, 500)
    found = audit(
        digits.X[part], digits.candidates[part], label_names=digits.label_names, n_folds=3, budget=50
    )
    wrong = (digits.candidates[part] > 0) & (digits.truth[part] == 0)
    candidate = digits.candidates[part] > 0
    assert roc_auc_score(wrong[candidate], -found.confidences[candidate]) > 0.95
    assert sum(doubt.action == "ask" for doubt in found.doubts) == 50
    assert all(partner is None or partner in digits.label_names for partner in found.partners)
    assert found.label_names == tuple(digits.label_names)


def test_label_sets_and_names():
    X, _, Y = made(n=60, c=3)
    names = np.array(["sea", "lake", "sky"])
    sets = [set(names[row > 0].tolist()) for row in Y]
    found = audit(X, sets, **FAST)
    assert found.label_names == ("lake", "sea", "sky")
    with pytest.raises(ValueError, match="label_names has 2 names for 3 labels"):
        audit(X, Y, label_names=["a", "b"], **FAST)


def test_top_up_noise_and_another_method():
    X, truth, _ = made(n=300)
    Y = top_up(truth, 4, random_state=0)
    found = audit(X, Y, method="pml-ma", n_folds=3)
    candidate = np.asarray(Y) > 0
    assert roc_auc_score((candidate & (truth == 0))[candidate], -found.confidences[candidate]) > 0.75
    assert ((found.confidences[candidate] > 0) & (found.confidences[candidate] < 1)).all()


def test_thresholds_are_refused_before_any_work():
    X, _, Y = made(n=30)
    # What is no estimator would fail as soon as it was used.
    with pytest.raises(ValueError, match="drop_below must not be above keep_above"):
        audit(X, Y, method=object(), drop_below=0.9, keep_above=0.1)
    with pytest.raises(ValueError, match="budget must be an integer of at least 0"):
        audit(X, Y, method=object(), budget=-1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"Y": None}, "needs the candidate labels Y"),
        ({"budget": 2.5}, "budget must be an integer"),
        ({"n_neighbors": 0}, "n_neighbors must be an integer of at least 1"),
        ({"label_names": list("abcdea")}, "'a' appears twice"),
    ],
)
def test_arguments_are_refused_before_any_work(changes, message):
    X, _, Y = made(n=30)
    with pytest.raises(ValueError, match=message):
        audit(**{"X": X, "Y": Y, "method": object(), **changes})


def test_a_model_is_not_trained_without_features():
    found = audit(Y=made(n=30)[2], probabilities=np.full((30, 6), 0.5))
    with pytest.raises(ValueError, match="needs the features X"):
        found.train_model(None)


def test_output_of_transformers_may_be_set_to_data_frames():
    pytest.importorskip("pandas")
    X, _, Y = made(n=60)
    expected = audit(X, Y, **FAST)
    with config_context(transform_output="pandas"):
        found = audit(X, Y, **FAST)
        found.train_model(X)
    assert_array_equal(found.confidences, expected.confidences)
    assert found.doubts == expected.doubts


@pytest.mark.parametrize("name", ["candidate-likelihood", "candidate_likelihood"])
def test_models_of_large_tables_are_smaller(name):
    small, large = (_make_model(name, n_rows, 4, 0) for n_rows in (1_000, 30_000))
    assert (small.effort, small.n_folds, small.n_anchors) == ("quick", 4, None)
    assert large.n_members < small.n_members
    assert large.n_anchors == 1000


class Knows(Remembers):
    """Has a noise rate, as any method can."""

    def __init__(self, *, threshold=0.5, on_empty="ignore", noise_rate="auto"):
        super().__init__(threshold=threshold, on_empty=on_empty)
        self.noise_rate = noise_rate

    def _fit(self, X, Y):
        super()._fit(X, Y)
        self.noise_rate_ = np.full(3, 0.123)


def test_a_noise_rate_given_to_any_method_is_used():
    X, _, Y = made(n=60, c=3)
    assert_array_equal(audit(X, Y, method=Knows(noise_rate=0.123)).noise_rate, 0.123)
    assert (audit(X, Y, method=Knows()).noise_rate != 0.123).all()


class Counts(Remembers):
    """Also says how many rows it was fitted on."""

    sizes: ClassVar[list[int]] = []

    def _fit(self, X, Y):
        self.sizes.append(len(X))
        super()._fit(X, Y)


def test_models_of_many_rows_see_a_part_and_judge_all():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 2)), (rng.random((60, 3)) < 0.5).astype(np.uint8)
    Counts.sizes.clear()
    model, scores, _ = cross_fit(Counts(), X, Y, n_folds=4, max_rows=20)
    assert Counts.sizes == [20] * 5
    assert_array_equal(scores, 0.5)
    # The same rows are drawn where they stand elsewhere.
    order = rng.permutation(60)
    moved, _, _ = cross_fit(Counts(), X[order], Y[order], n_folds=4, max_rows=20)
    assert set(moved.known_) == set(model.known_)


def test_a_part_that_is_nearly_all_is_as_good_as_all():
    X, truth, Y = made(n=600)
    everything, part = (audit(X, Y, **FAST, max_rows=limit) for limit in (600, 380))
    wrong = (truth == 0)[Y > 0]
    aucs = [roc_auc_score(wrong, -found.confidences[Y > 0]) for found in (everything, part)]
    assert aucs[1] > aucs[0] - 0.02
    assert abs(part.wrong.total[0] / everything.wrong.total[0] - 1) < 0.1


def test_a_classifier_is_trained_on_the_cleaned_labels():
    X, _, Y = made()
    found = audit(X, Y, **FAST)
    assert (found.clean_labels() < Y).any()
    expected = clone(found.model).fit(X, found.clean_labels())
    assert_allclose(found.train_model(X).predict_proba(X), expected.predict_proba(X), atol=1e-12)
    Counts.sizes.clear()
    audit(X[:, :2], Y[:, :3], method=Counts(), n_folds=2).train_model(X[:, :2], max_rows=70)
    assert Counts.sizes[-1] == 70


def certain(n=300, c=3, rate=0.2):
    """Probabilities that nearly decide, the true labels, and candidates."""
    rng = np.random.default_rng(0)
    eta = 1 / (1 + np.exp(-rng.normal(-2, 3, size=(n, c))))
    truth = (rng.random(eta.shape) < eta).astype(np.uint8)
    return eta, truth, np.maximum(truth, rng.random(eta.shape) < rate).astype(np.uint8)


class TestProbabilities:
    """Out-of-fold probabilities of any model instead of features."""

    def test_those_of_its_own_folds_give_the_same_answer(self):
        X, _, Y = made(n=150)
        own = audit(X, Y, **FAST)
        _, scores, order = cross_fit(own.method, X, Y, n_folds=3)
        given = audit(X, Y, probabilities=scores)
        assert_allclose(given.probabilities, own.probabilities, rtol=1e-6)
        assert_allclose(given.noise_rate, own.noise_rate)
        held_out = judge(scores, Y, order=order).held_out
        assert_allclose(given.confidences, held_out, rtol=1e-6)
        assert given.model is None

    def test_features_are_not_needed(self):
        X, truth, Y = made(n=300)
        _, scores, _ = cross_fit(_ridge(), X, Y, n_folds=3)
        found = audit(None, Y, probabilities=scores)
        wrong = (truth == 0)[Y > 0]
        assert roc_auc_score(wrong, -found.confidences[Y > 0]) > 0.8
        assert {doubt.reason.neighbors for doubt in found.doubts} == {0}
        assert "similar rows" not in str(found.doubts[0].reason)
        # A level that is off does not change the answer.
        odds = (scores.clip(1e-6, 1 - 1e-6) / (1 - scores.clip(1e-6, 1 - 1e-6))) ** 0.7 / 3
        other = audit(None, Y, probabilities=odds / (1 + odds))
        assert_allclose(other.confidences, found.confidences, atol=0.02)

    @pytest.mark.parametrize(
        ("wrong", "facts"),
        [
            (np.full((60, 4), 0.5), ["(60, 3)", "(60, 4)"]),
            (np.full(60, 0.5), ["(60, 3)", "(60,)"]),
            (np.where(np.arange(180).reshape(60, 3) == 7, np.nan, 0.5), ["nan", "row 2", "label 1"]),
            (
                np.where(np.arange(180).reshape(60, 3) >= 178, 1.5, 0.5),
                ["1.5", "row 59", "label 1", "2 in all"],
            ),
            ([["much"] * 3] * 60, ["numbers"]),
        ],
    )
    def test_what_is_not_a_probability_is_refused(self, wrong, facts):
        _, _, Y = made(n=60, c=3)
        with pytest.raises(ValueError, match="probabilities") as error:
            audit(None, Y, probabilities=wrong)
        assert all(fact in str(error.value) for fact in facts)

    @pytest.mark.parametrize("constant", [0.0, 1e-9, 0.5, 1.0])
    @pytest.mark.parametrize("budget", [None, 5])
    def test_a_constant_never_drops_a_tag(self, constant, budget):
        rng = np.random.default_rng(0)
        # Labels of different frequency, which noise in proportion to it would explain.
        Y = (rng.random((200, 5)) < [0.05, 0.1, 0.3, 0.6, 0.9]).astype(np.uint8)
        found = audit(Y=Y, probabilities=np.full(Y.shape, constant), budget=budget)
        assert_array_equal(found.clean_labels(), Y)
        assert_array_equal(found.wrong.high, Y.sum(axis=0))

    def test_random_numbers_never_drop_a_tag(self):
        rng = np.random.default_rng(0)
        Y = (rng.random((200, 5)) < [0.05, 0.1, 0.3, 0.6, 0.9]).astype(np.uint8)
        found = audit(Y=Y, probabilities=rng.random(Y.shape))
        assert_array_equal(found.clean_labels(), Y)

    def test_order_beyond_chance_is_that_of_the_rank_sum_test(self):
        eta, _, Y = certain()
        eta[:, 2] = np.random.default_rng(5).random(len(eta))
        chances = [mannwhitneyu(*(p[y == has] for has in (1, 0)), alternative="greater", method="asymptotic",
                                use_continuity=False).pvalue for p, y in zip(eta.T, Y.T, strict=True)]  # fmt: skip
        assert_array_equal(find_informative(eta, Y), np.array(chances) < norm.sf(2))
        assert_array_equal(find_informative(eta, Y), [True, True, False])

    def test_a_label_with_a_constant_probability_loses_no_tag(self):
        eta, _, Y = certain()
        eta[:, 1] = 0
        found = audit(Y=Y, probabilities=eta)
        assert (found.actions == "drop").any()
        assert not (found.actions[:, 1] == "drop").any()

    def test_zeros_count_as_the_smallest_probability(self):
        eta, truth, Y = certain()
        zero = np.random.default_rng(1).random(eta.shape) < 0.05
        dropped = [
            (audit(Y=Y, probabilities=np.where(zero, low, eta)).actions == "drop")
            for low in (0.0, eta[~zero].min())
        ]
        assert dropped[1].any()
        assert not (dropped[0] & ~dropped[1] & (truth > 0)).any()

    @pytest.mark.parametrize("factor", [1e-3, 1e-6, 1e-9])
    def test_the_level_may_be_far_off(self, factor):
        eta, _, Y = certain()
        odds = factor * eta / (1 - eta)
        found, other = (audit(Y=Y, probabilities=p) for p in (eta, odds / (1 + odds)))
        # The pull of the calibration towards no change counts as much as one row of 300.
        assert_allclose(other.confidences, found.confidences, atol=0.03)

    def test_columns_are_matched_by_name(self):
        pandas = pytest.importorskip("pandas")
        eta, _, Y = certain()
        names = ["sea", "lake", "sky"]
        frame = pandas.DataFrame(eta, columns=names)
        sets = [{name for name, has in zip(names, row, strict=True) if has} for row in Y]
        expected = audit(Y=Y, probabilities=eta).confidences
        for given in (pandas.DataFrame(Y, columns=names), sets):
            found = audit(Y=given, probabilities=frame[["sky", "sea", "lake"]])
            order = [names.index(name) for name in found.label_names]
            assert_allclose(found.confidences, expected[:, order], atol=1e-6)
        found = audit(Y=Y, label_names=names, probabilities=frame[["sky", "sea", "lake"]])
        assert_array_equal(found.confidences, expected)
        with pytest.raises(ValueError, match=r"\['dog'\] are not labels, \['sky'\] are missing"):
            audit(Y=sets, probabilities=frame.rename(columns={"sky": "dog"}))

    def test_something_to_judge_by_is_needed(self):
        with pytest.raises(ValueError, match="features X or probabilities"):
            audit(None, made(n=60)[2])


def test_an_estimator_accepts_labels_that_cleaning_emptied_and_uses_the_seed():
    X, _, Y = made(n=120, c=3)
    method = CandidateLikelihood(family="ridge", gamma=0.1, kernel_width=1.0, on_empty="raise")
    found = audit(X, Y, method=method, n_folds=2, random_state=5)
    actions = found.actions.copy()
    actions[Y[:, 0] > 0, 0] = "drop"
    emptied = replace(found, actions=actions)
    assert not emptied.clean_labels()[:, 0].any()
    assert emptied.train_model(X).random_state == found.method.random_state == 5
    assert method.random_state is None


@pytest.mark.parametrize("rate", [0.3, 0.6])
def test_a_given_noise_rate_means_the_same_for_confidences_and_for_dropping(rate):
    X, _, Y = made(n=200, c=4)
    model = CandidateLikelihood(
        family="ridge", gamma=0.1, kernel_width=1.0, noise_rate=rate, random_state=0, on_empty="ignore"
    )
    whole, scores, order = cross_fit(model, X, Y, n_folds=2)
    found = judge(scores, Y, rates=whole.noise_rate_, order=order)
    assert_array_equal(found.at_least_noise, found.held_out)
    audited = audit(X, Y, method=model, n_folds=2)
    assert_array_equal(audited.noise_range, [audited.noise_rate] * 2)


def test_what_the_least_allowed_noise_explains_is_not_dropped():
    """Features that show little allow much noise and none at all: tags that no noise explains as well stay."""
    rng = np.random.default_rng(0)
    eta = 1 / (1 + np.exp(-rng.normal(-1, 1.2, size=(400, 4))))
    Y = (rng.random(eta.shape) < eta + (1 - eta) * 0.3).astype(np.uint8)
    found = judge(eta, Y)
    candidate = Y > 0
    low = found.noise_range[0]
    assert (low < 0.5 * found.noise_rate).all()
    # As far beyond the range as the interval of level 0.9 reaches.
    low = low / (low + (1 - low) * np.exp(norm.ppf(0.95) * 0.08))
    low = np.maximum(low, 1e-5)
    at_low = calibrate(eta, fit_calibration(eta, low, Y))
    assert_allclose(found.at_least_noise[candidate], (at_low / (at_low + (1 - at_low) * low))[candidate])
    protected = candidate & (found.at_least_noise > 0.5) & (found.held_out < 0.5)
    assert protected.sum() > 20
    audited = audit(None, Y, probabilities=eta, drop_below=0.5, keep_above=0.5)
    assert not (audited.actions[protected] == "drop").any()
