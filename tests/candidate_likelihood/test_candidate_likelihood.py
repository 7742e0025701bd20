"""CandidateLikelihood: an estimator like all others, whose probabilities and choices mean something."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from likelihood_data import blobs
from skpml import CandidateLikelihood
from skpml.candidate_likelihood import _estimator as estimator_module
from skpml.features import RangeScaler, RBFAnchors
from skpml.likelihood import apply_level, estimate_noise, fit_level, held_out_ridge, posterior
from skpml.linalg import spectrum_of
from skpml.metrics import average_precision, hamming_loss

FIXED = {
    "family": "logistic",
    "gamma": 0.1,
    "noise_rate": 0.2,
    "at_least_one": False,
    "kernel_width": 1.0,
}


# With nothing set, it is among the registered methods that are all checked.
@parametrize_with_checks([CandidateLikelihood(**FIXED, random_state=0)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted():
    X, truth, candidates, chance = blobs()
    return (
        CandidateLikelihood(random_state=0, on_empty="ignore").fit(X, candidates),
        X,
        truth,
        candidates,
        chance,
    )


@pytest.mark.slow
def test_probabilities_come_close_to_the_true_ones(fitted):
    model, X, _, candidates, chance = fitted
    found = model.predict_proba(X)
    ridge = CandidateLikelihood(family="ridge", noise_rate=0.0, random_state=0, on_empty="ignore").fit(
        X, candidates
    )
    error = np.abs(found - chance).mean()
    assert error < 0.1
    assert error < 0.6 * np.abs(ridge.predict_proba(X) - chance).mean()
    assert_array_equal(model.predict(X), found > 0.5)


def test_noise_rate_comes_close_to_the_true_one(fitted):
    model = fitted[0]
    assert model.noise_rate_.shape == (5,)
    assert abs(model.noise_rate_.mean() - 0.3) < 0.1


def test_confidences_tell_true_candidates_from_false_ones(fitted):
    model, _, truth, candidates, _ = fitted
    told = candidates == 1
    assert (model.confidences_[~told] == 0).all()
    assert roc_auc_score(truth[told], model.confidences_[told]) > 0.8
    # Probabilities: among candidates with confidence about p, a share of about p is true.
    cuts = np.quantile(model.confidences_[told], [0, 0.25, 0.5, 0.75, 1])
    for low, high in pairwise(cuts):
        some = told & (model.confidences_ >= low) & (model.confidences_ <= high)
        assert abs(model.confidences_[some].mean() - truth[some].mean()) < 0.12


def test_selection_says_what_was_chosen_and_why(fitted):
    selection = fitted[0].selection_
    tried = selection["tried"]
    best = max(tried, key=lambda each: each["precision"])
    first = selection["members"][0]
    assert {name: best[name] for name in first} == first
    assert best["distance"] == 0
    assert {each["family"] for each in tried} == {"ridge", "least-squares", "logistic"}
    assert 1 <= len(selection["members"]) <= 10
    for member in selection["members"]:
        (evidence,) = [each for each in tried if {name: each[name] for name in member} == member]
        assert evidence["distance"] <= 1
        assert evidence["precision"] >= sorted(each["precision"] for each in tried)[-10]


def test_everything_can_be_fixed_and_is_obeyed():
    X, _, candidates, _ = blobs(n=120)
    model = CandidateLikelihood(**FIXED, random_state=0, on_empty="ignore").fit(X, candidates)
    assert model.selection_ == {
        "members": [{"family": "logistic", "one_true": False, "width": 1.0, "gamma": 0.1, "noise": 1.0}],
        "tried": [],
        "calibration": (1.0, 0.0),
        "level": (1.0, 0.0),
    }
    assert_allclose(model.noise_rate_, 0.2)
    assert (np.diff(model.history_["objective"])[-5:] > -1e-3).all()
    rates = np.linspace(0.1, 0.4, 5)
    several = CandidateLikelihood(
        **FIXED | {"noise_rate": rates, "family": "auto"}, random_state=0, on_empty="ignore"
    )
    several.fit(X, candidates)
    assert_allclose(several.noise_rate_, rates)
    assert {each["gamma"] for each in several.selection_["tried"]} == {0.1}


@pytest.mark.slow
def test_without_noise_nothing_is_lost_against_ridge():
    X, truth, _, _ = blobs(n=900, seed=2)
    train, test = np.arange(600), np.arange(600, 900)
    precision = [
        average_precision(truth[test], CandidateLikelihood(family=family, random_state=0, on_empty="ignore").fit(
            X[train], truth[train]).predict_proba(X[test]))
        for family in ("auto", "ridge")
    ]  # fmt: skip
    assert precision[0] >= precision[1] - 0.005


@pytest.mark.slow
def test_noise_is_seen_through():
    X, truth, candidates, _ = blobs(n=900, rate=0.6, seed=3)
    train, test = np.arange(600), np.arange(600, 900)
    loss = [
        hamming_loss(truth[test], CandidateLikelihood(family=family, noise_rate=rate, random_state=0).fit(
            X[train], candidates[train]).predict(X[test]))
        for family, rate in (("auto", "auto"), ("ridge", 0.0))
    ]  # fmt: skip
    assert loss[0] < 0.6 * loss[1]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"family": "forest"}, "family"),
        ({"gamma": 0}, 'gamma must be "auto" or a number above 0'),
        ({"gamma": "large"}, "gamma must be"),
        ({"kernel_width": -1.0}, "kernel_width must be"),
        ({"noise_rate": 1.0}, "noise_rate must be .* each of the 5 labels"),
        ({"noise_rate": [0.1, 0.2]}, "noise_rate must be"),
        ({"at_least_one": "maybe"}, "at_least_one must be"),
        ({"n_folds": 1}, "n_folds must be at least 2"),
        ({"n_members": 0}, "n_members"),
        ({"feature_map": "cubic"}, "feature_map must be"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    X, _, candidates, _ = blobs(n=40)
    with pytest.raises(ValueError, match=message):
        CandidateLikelihood(**parameters, on_empty="ignore").fit(X, candidates)


@pytest.mark.parametrize("feature_map", ["linear", StandardScaler()])
@pytest.mark.slow
def test_other_features(feature_map):
    X, _, candidates, chance = blobs()
    model = CandidateLikelihood(feature_map=feature_map, random_state=0, on_empty="ignore").fit(X, candidates)
    # The chances are logistic in the features themselves.
    assert np.abs(model.predict_proba(X) - chance).mean() < 0.07


@pytest.mark.slow
def test_large_data_are_searched_in_part(monkeypatch):
    X, _, candidates, chance = blobs(n=500)
    monkeypatch.setattr(estimator_module, "_SEARCH_ROWS", 200)
    monkeypatch.setattr(estimator_module, "_SEARCH_ANCHORS", 60)
    model = CandidateLikelihood(random_state=0, on_empty="ignore").fit(X, candidates)
    assert np.abs(model.predict_proba(X) - chance).mean() < 0.12


def test_a_device_that_is_not_there_is_told_at_the_door():
    pytest.importorskip("torch")
    X, _, candidates, _ = blobs(n=40)
    for name in ("cudaa", "meta:x", 3.5):
        with pytest.raises(ValueError, match="device must be None or a device of PyTorch"):
            CandidateLikelihood(device=name, on_empty="ignore").fit(X, candidates)


@pytest.mark.slow
def test_another_library_underneath_gives_the_same():
    pytest.importorskip("torch")
    X, _, candidates, _ = blobs(n=150)
    plain, other = (
        CandidateLikelihood(**FIXED, device=device, random_state=0, on_empty="ignore").fit(X, candidates)
        for device in (None, "cpu")
    )
    assert_allclose(other.predict_proba(X), plain.predict_proba(X), atol=1e-8)
    assert_allclose(other.confidences_, plain.confidences_, atol=1e-8)
    searched = CandidateLikelihood(device="cpu", random_state=0, on_empty="ignore").fit(X, candidates)
    assert type(searched.noise_rate_) is type(searched.coef_[0]) is np.ndarray


@pytest.mark.slow
def test_chosen_settings_are_fitted_again_without_a_search(fitted):
    model, X, _, candidates, _ = fitted
    again = model.refit(X, candidates)
    assert again is not model
    assert_allclose(again.predict_proba(X), model.predict_proba(X), rtol=1e-10)
    assert_allclose(again.confidences_, model.confidences_, rtol=1e-10)
    assert again.selection_["members"] == model.selection_["members"]
    assert again.selection_["tried"] == []
    half = again.refit(X[::2], candidates[::2])
    assert half.calibration_ == model.calibration_
    assert half.selection_["level"] == model.selection_["level"]
    assert average_precision(candidates, half.predict_proba(X)) > 0.7
    # Only a refit keeps the choice; a fit of the new model searches again.
    assert half.set_params(family="ridge").fit(X[::2], candidates[::2]).selection_["tried"]
    with pytest.raises(NotFittedError):
        CandidateLikelihood().refit(X, candidates)


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.985])
def test_members_use_the_given_noise_rate(rate):
    X, _, candidates, _ = blobs(n=60)
    model = CandidateLikelihood(**FIXED | {"noise_rate": rate}, on_empty="ignore").fit(X, candidates)
    assert_array_equal(model._member_rates, [model.noise_rate_])
    assert_allclose(model.noise_rate_, rate, atol=1e-5)
    assert_array_equal(model.noise_range_, [model.noise_rate_] * 2)


@pytest.mark.parametrize("family", ["logistic", "least-squares"])
def test_a_member_that_does_not_converge_is_reported(family):
    X, _, candidates, _ = blobs(n=120)
    settings = FIXED | {"family": family, "gamma": 1e-3, "on_empty": "ignore", "random_state": 0}
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        model = CandidateLikelihood(**settings, max_iter=3).fit(X, candidates)
    assert not model.converged_
    assert model.n_iter_ == 3
    assert CandidateLikelihood(**settings).fit(X, candidates).converged_


@pytest.mark.slow
def test_order_of_rows_does_not_decide_what_is_chosen_where_some_anchors_are_searched():
    """All rows are anchors, but the search uses every second one."""
    X, _, candidates, _ = blobs(n=850)
    order = np.random.default_rng(1).permutation(850)
    settings = {"family": "ridge", "random_state": 0, "on_empty": "ignore"}
    one = CandidateLikelihood(**settings).fit(X, candidates)
    other = CandidateLikelihood(**settings).fit(X[order], candidates[order])
    assert other.selection_["members"] == one.selection_["members"]
    assert_allclose(other.confidences_, one.confidences_[order], atol=1e-7)


def test_a_search_uses_a_part_of_rows_and_anchors(monkeypatch):
    X, _, candidates, _ = blobs(n=300)
    monkeypatch.setattr(estimator_module, "_SEARCH_ROWS", 200)
    monkeypatch.setattr(estimator_module, "_SEARCH_ANCHORS", 60)
    shapes = []

    class Spy(estimator_module.SettingJudge):
        def __init__(self, mapped, Y, folds, **settings):
            shapes.extend((*values.shape, len(Y), len(folds)) for values in mapped.values())
            super().__init__(mapped, Y, folds, **settings)

    monkeypatch.setattr(estimator_module, "SettingJudge", Spy)
    CandidateLikelihood(family="ridge", random_state=0, on_empty="ignore").fit(X, candidates)
    assert shapes == [(200, 60, 200, 200)] * 2


def test_too_few_rows_to_choose_by():
    X, _, candidates, _ = blobs(n=5)
    settings = {"on_empty": "ignore"}
    with pytest.raises(ValueError, match="X has 5 rows, too few to choose by n_folds=3"):
        CandidateLikelihood(**settings).fit(X, candidates)
    assert CandidateLikelihood(**FIXED, **settings).fit(X, candidates).predict_proba(X).shape == (5, 5)


@pytest.mark.parametrize(
    "wrong", [{"gamma": np.array([1.0, 2.0])}, {"at_least_one": np.array([True])}, {"gamma": "best"}]
)
def test_arrays_and_words_in_the_place_of_numbers_are_named(wrong, fitted):
    _, X, _, candidates, _ = fitted
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        CandidateLikelihood(**wrong, on_empty="ignore").fit(X, candidates)


@pytest.mark.slow
def test_training_rows_do_not_confirm_themselves():
    """With features that help to learn candidates by heart, a fit expects what it has seen; confidences must not."""
    surplus = []
    for seed in range(4):
        X, truth, candidates, _ = blobs(n=250, seed=seed)
        X = np.hstack([X, np.random.default_rng(seed).normal(size=(250, 12))])
        model = CandidateLikelihood(
            family="logistic", gamma=0.01, noise_rate=0.3, random_state=0, on_empty="ignore"
        ).fit(X, candidates)
        told = candidates > 0
        naive = posterior(model.predict_proba(X), model.noise_rate_, candidates)
        surplus.append([each[told].mean() - truth[told].mean() for each in (model.confidences_, naive)])
    confidences, naive = np.mean(surplus, axis=0)
    assert naive > 0.04
    assert abs(confidences) < 0.025


class TestLevel:
    def test_what_is_on_a_curve_is_found_there(self):
        p = np.linspace(0.01, 0.99, 50)
        t = np.log(p / (1 - p))
        assert_allclose(fit_level(p, 1 / (1 + np.exp(-(0.4 * t - 1)))), (0.4, -1.0), atol=1e-4)
        assert_allclose(fit_level(p, p), (1.0, 0.0), atol=1e-4)

    def test_sums_agree_and_order_stays(self):
        rng = np.random.default_rng(0)
        p, reference = rng.random(300), rng.random(300)
        bent = apply_level(p, fit_level(p, reference), np.ones(300, dtype=bool))
        assert_allclose(bent.sum(), reference.sum(), rtol=1e-4)
        assert (np.diff(bent[np.argsort(p)]) >= 0).all()

    def test_nothing_outside_the_candidates(self):
        candidate = np.array([True, False])
        assert_allclose(apply_level(np.array([0.5, 0.5]), (1.0, 0.0), candidate), [0.5, 0.0])
        assert fit_level(np.empty(0), np.empty(0)) == (1.0, 0.0)


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.4, 0.8])
def test_little_noise_is_found_as_well_as_much(rate):
    """Classes that features tell well: chances of clear negatives scatter around the rate, and it must not be lost."""
    digits = load_digits()
    truth = np.eye(10)[digits.target[:600]]
    candidates = np.maximum(truth, np.random.default_rng(0).random(truth.shape) < rate)
    features = RBFAnchors(random_state=0).fit_transform(RangeScaler().fit_transform(digits.data[:600]))[
        :, :-1
    ]
    scores, _ = held_out_ridge(spectrum_of(features.astype(np.float64)), candidates)
    found = estimate_noise(scores, candidates, of_candidates=True).usable()
    assert len(np.unique(found)) == 1
    assert abs(found[0] - rate) < 0.02 + 0.1 * rate


def test_scores_of_many_rows_are_computed_in_blocks(fitted, monkeypatch):
    model, X, *_ = fitted
    at_once = model.predict_proba(X)
    monkeypatch.setattr(estimator_module, "_SCORED_ROWS", 7)
    assert_allclose(model.predict_proba(X), at_once, rtol=1e-10, atol=1e-15)
