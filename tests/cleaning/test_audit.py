"""The audit: rows are judged by models that have not seen them, numbers add up, and what is planted is found."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from skpml.base import BasePMLClassifier
from skpml.cleaning import audit, suggest_actions
from skpml.cleaning._counting import count_wrong
from skpml.cleaning._cross_fitting import cross_fit
from skpml.cleaning._reasons import find_reasons
from skpml.datasets import load_digits_attributes
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
    found = cross_fit(Remembers(), X, Y, n_folds=4)
    # A model that had seen the row would tell candidates from others.
    assert np.ptp(found.probabilities) < 1e-12
    assert_array_equal(np.bincount(found.folds), [15] * 4)


def test_level_is_that_of_rows_left_out_and_order_that_of_both():
    X, _, Y = made()
    from skpml import CandidateLikelihood

    model = CandidateLikelihood(family="least-squares", gamma=0.1, at_least_one=False, kernel_width=1.0,
                                random_state=0, on_empty="ignore")  # fmt: skip
    found = cross_fit(model, X, Y, n_folds=3)
    candidate = Y > 0
    assert (found.confidences[~candidate] == 0).all()
    assert_allclose(found.confidences[candidate].mean(), found.left_out[candidate].mean(), rtol=1e-3)
    logit = lambda p: np.log(p / (1 - p))  # noqa: E731
    whole = np.clip(found.model.confidences_[candidate], 1e-6, 1 - 1e-6)
    both = logit(np.clip(found.left_out[candidate], 1e-6, 1 - 1e-6)) + logit(whole)
    order = np.argsort(both)
    assert (np.diff(found.confidences[candidate][order]) >= -1e-12).all()


def test_folds_keep_the_settings_that_all_rows_chose():
    X, _, Y = made(n=150, c=4)
    from skpml import CandidateLikelihood

    fits = []

    class Counting(CandidateLikelihood):
        def _fit(self, X, Y):
            done = super()._fit(X, Y)
            fits.append((len(X), len(self.selection_["tried"])))
            return done

    cross_fit(Counting(random_state=0, on_empty="ignore"), X, Y, n_folds=3)
    assert fits[0][0] == 150
    assert fits[0][1] > 20
    assert fits[1:] == [(100, 0)] * 3


def test_rows_in_another_order_are_judged_alike():
    X, _, Y = made(n=120)
    order = np.random.default_rng(1).permutation(120)
    one, other = audit(X, Y, **FAST), audit(X[order], Y[order], **FAST)
    assert_allclose(other.confidences, one.confidences[order], rtol=1e-6, atol=1e-9)


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
    assert_array_equal(found.cleaned(), (Y > 0) & ~dropped)
    listed = {(doubt.row, doubt.label): doubt for doubt in found.doubts}
    assert set(listed) == set(
        zip(*np.nonzero((found.actions == "drop") | (found.actions == "ask")), strict=True)
    )
    use = [min(doubt.confidence, 1 - doubt.confidence) for doubt in found.doubts]
    assert use == sorted(use, reverse=True)


def test_confidences_mean_what_they_say():
    X, truth, Y = made(n=1500)
    found = audit(X, Y, n_folds=3)
    believed, right = found.confidences[Y > 0], truth[Y > 0]
    for low in np.arange(0, 1, 0.2):
        here = (believed >= low) & (believed < low + 0.2)
        assert abs(believed[here].mean() - right[here].mean()) < 0.12


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.6])
def test_intervals_hold_the_number_of_wrong_tags(rate):
    inside = []
    for seed in range(2):
        X, truth, Y = made(n=400, rate=rate, seed=seed)
        found = audit(X, Y, n_folds=3)
        true = ((Y > 0) & (truth == 0)).sum(axis=0)
        inside += ((found.wrong.low <= true) & (true <= found.wrong.high)).tolist()
    assert np.mean(inside) >= 0.7


class TestCounting:
    def test_sure_confidences_and_no_noise_leave_nothing_open(self):
        Y = np.array([[1, 1], [1, 0], [1, 1]])
        sure = np.array([[1.0, 0], [1, 0], [1, 0]])
        none = np.full(2, 1e-9)
        found = count_wrong(sure, np.clip(sure, 1e-9, 1 - 1e-9), none, (none, none), Y)
        assert_array_equal(found.estimate, [0, 2])
        assert found.low[0] == 0
        assert found.high[1] == 2

    def test_wider_at_a_higher_level_and_never_beyond_the_candidates(self):
        X, _, Y = made(n=200)
        base = cross_fit(_ridge(), X, Y, n_folds=3)
        arguments = (base.confidences, base.probabilities, base.noise_rate, base.noise_range, Y)
        narrow, wide = count_wrong(*arguments, level=0.5), count_wrong(*arguments, level=0.99)
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
    found = find_reasons(
        X, Y, rows, labels, probabilities=p, confidences=believed, label_names=list("abcd"), n_neighbors=6
    )
    scaled = 2 * (X - X.min(axis=0)) / np.ptp(X, axis=0) - 1
    for reason, row, label in zip(found, rows, labels, strict=True):
        distance = np.linalg.norm(scaled - scaled[row], axis=1)
        distance[row] = np.inf
        assert reason.carried == Y[np.argsort(distance)[:6], label].sum()
        assert reason.neighbours == 6
        assert reason.probability == p[row, label]
        for name in reason.better:
            assert believed[row, "abcd".index(name)] > believed[row, label]
        assert f"{reason.carried} of 6 similar rows have it" in str(reason)


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
    with pytest.raises(ValueError, match="budget must be at least 0"):
        audit(X, Y, method=object(), budget=-1)


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
    found = cross_fit(Counts(), X, Y, n_folds=4, max_rows=20)
    assert Counts.sizes == [20] * 5
    assert np.ptp(found.probabilities) < 1e-12
    assert_array_equal(np.bincount(found.folds), [15] * 4)
    # The same rows are drawn where they stand elsewhere.
    order = rng.permutation(60)
    moved = cross_fit(Counts(), X[order], Y[order], n_folds=4, max_rows=20)
    assert set(moved.model.known_) == set(found.model.known_)


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
    assert (found.cleaned() < Y).any()
    expected = clone(found.model).fit(X, found.cleaned())
    assert_allclose(found.classifier(X).predict_proba(X), expected.predict_proba(X), atol=1e-12)
    Counts.sizes.clear()
    audit(X[:, :2], Y[:, :3], method=Counts(), n_folds=2).classifier(X[:, :2], max_rows=70)
    assert Counts.sizes[-1] == 70
