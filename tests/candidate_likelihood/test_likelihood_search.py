"""What settings are judged by, and how probabilities get their level."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit

from skpml import CandidateLikelihood
from skpml.candidate_likelihood._search import SettingJudge, neighbors
from skpml.likelihood import Setting, calibrate, fit_calibration, fit_settings, to_probability
from skpml.linalg import spectrum_of
from skpml.model_selection import Evidence

SETTING = Setting("logistic", False, 1.0, 0.1, 1.0)


def test_the_best_are_those_that_the_evidence_does_not_tell_from_the_first():
    settings = [Setting("logistic", False, 1.0, gamma, 1.0) for gamma in (1.0, 2.0, 3.0, 4.0)]
    evidence = Evidence(
        points=settings,
        precision=[0.5, 0.7, 0.6, 0.65],
        fold_precision=[[]] * 4,
        distance=[3.0, 0.0, 0.9, 1.1],
    )
    assert evidence.best(10, within=1) == [settings[1], settings[2]]
    assert evidence.best() == [settings[1]]
    assert evidence.best(3, within=np.inf) == [settings[1], settings[3], settings[2]]


def test_neighbours_move_one_thing_at_a_time_and_stay_in_bounds():
    found = neighbors(SETTING, gammas=True, noises=True, ratio=2.0, step=0.15)
    assert {(near.gamma, near.noise) for near in found} == {(0.2, 1.0), (0.05, 1.0), (0.1, 1.15), (0.1, 0.85)}
    assert neighbors(SETTING, gammas=False, noises=False, ratio=2.0, step=0.15) == []
    edge = Setting("logistic", False, 1.0, 0.1, 1.8)
    assert [near.noise for near in neighbors(edge, gammas=False, noises=True, ratio=2.0, step=0.15)] == [1.65]
    ridge = Setting("ridge", False, 1.0, 0.1, 1.0)
    assert len(neighbors(ridge, gammas=True, noises=True, ratio=2.0, step=0.15)) == 2


def test_rows_left_out_are_those_of_the_fold_and_only_the_best_are_kept():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    Y = (X @ rng.normal(size=(3, 4)) + rng.normal(size=(60, 4)) > 0).astype(float)
    folds = rng.permutation(60) % 3
    rates = np.full(4, 0.1)
    judge = SettingJudge({1.0: X}, Y, folds, keep=2, rates=rates)
    tried = [Setting("ridge", False, 1.0, gamma, 1.0) for gamma in (0.01, 1.0, 1e4)]
    judge.try_settings(tried)
    best = judge.evidence().best(2, within=np.inf)
    chances = judge.held_out(best[:1])
    assert np.corrcoef(chances.ravel(), Y.ravel())[0, 1] > 0.4
    # In the order of the rows: each by a fit to the other folds.
    for fold in range(3):
        train, held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        spectrum = spectrum_of(X[train])
        (fit,) = fit_settings(spectrum, Y[train], best[:1], rates)
        assert_allclose(chances[held], fit.probabilities(spectrum.project(X[held])), atol=1e-4)
    with pytest.raises(KeyError):
        judge.held_out([setting for setting in tried if setting not in best])


def test_rows_that_judge_nothing_are_scored_alike():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    Y = (X @ rng.normal(size=(3, 4)) + rng.normal(size=(80, 4)) > 0).astype(float)
    folds, rates = rng.permutation(80) % 4, np.full(4, 0.1)
    tried = [
        Setting(family, False, width, 0.1, 1.0) for family in ("ridge", "logistic") for width in (0.5, 1.0)
    ]
    found = []
    for n_judged in (None, 2):
        judge = SettingJudge({0.5: X / 2, 1.0: X**3}, Y, folds, keep=4, rates=rates, n_judged=n_judged)
        judge.try_settings(tried)
        found.append(judge)
    all_folds, some = found
    assert len(all_folds.evidence().fold_precision[0]) == 4
    assert len(some.evidence().fold_precision[0]) == 2
    assert_allclose(some.held_out(tried), all_folds.held_out(tried), rtol=1e-9)


def test_a_race_drops_what_is_far_behind_and_keeps_what_a_full_comparison_would_choose():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    Y = (2 * X @ rng.normal(size=(3, 5)) + rng.normal(size=(600, 5)) > 0).astype(float)
    folds, rates = rng.permutation(600) % 3, np.full(5, 0.1)
    # Noise instead of features is hopeless.
    mapped = {0.5: rng.normal(size=(600, 3)), 1.0: X}
    tried = [
        Setting(family, False, width, gamma, 1.0)
        for family in ("ridge", "logistic") for width in mapped for gamma in (0.01, 0.1, 1.0)
    ]  # fmt: skip
    plain, race = (SettingJudge(mapped, Y, folds, keep=4, rates=rates, race=on) for on in (False, True))
    for judge in (plain, race):
        judge.try_settings(tried)
    everything, evidence = plain.evidence(), race.evidence()
    assert evidence.points == everything.points == sorted(tried)
    count = {point: len(each) for point, each in zip(evidence.points, evidence.fold_precision, strict=True)}
    assert {count[point] for point in tried if point.width == 0.5} == {1}
    assert {count[point] for point in everything.best(4)} == {3}
    members = evidence.best(4)
    assert members == everything.best(4)
    for point, left, right in zip(evidence.points, evidence.precision, everything.precision, strict=True):
        assert left == pytest.approx(right, abs=1e-12 if count[point] == 3 else 0.05)
        assert (evidence.distance[evidence.points.index(point)] > 3) == (count[point] < 3)
    race.complete(members)
    assert_allclose(race.held_out(members), plain.held_out(members), rtol=1e-12)
    # Settings whose probabilities were dropped are fitted again.
    race.complete(tried[:2])
    for point in tried[:2]:
        single = SettingJudge(mapped, Y, folds, keep=1, rates=rates)
        single.try_settings([point])
        assert_allclose(race.held_out([point]), single.held_out([point]), rtol=1e-12)


def test_what_a_row_is_scored_by_does_not_depend_on_its_own_candidates():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    Y = (X @ rng.normal(size=(3, 4)) + rng.normal(size=(80, 4)) > 0).astype(float)
    folds, rates = rng.permutation(80) % 4, np.full(4, 0.1)
    tried = [Setting(family, False, 1.0, 0.1, 1.0) for family in ("ridge", "least-squares", "logistic")]
    for fold in (0, 3):
        changed = np.where(folds[:, None] == fold, 1 - Y, Y)
        scores = []
        for labels in (Y, changed):
            judge = SettingJudge({1.0: X}, labels, folds, keep=3, rates=rates, n_judged=2)
            judge.try_settings(tried)
            scores.append(judge.held_out(tried))
        assert_allclose(scores[0][folds == fold], scores[1][folds == fold], rtol=1e-12)
        assert np.abs(scores[0] - scores[1]).max() > 0.1


@pytest.mark.parametrize("fixed", [{}, {"family": "ridge"}, {"family": "logistic"}, {"gamma": 0.1},
                                   {"noise_rate": 0.2}, {"at_least_one": True}, {"kernel_width": 1.0}])  # fmt: skip
def test_a_quick_search_tries_fewer_settings_and_only_allowed_ones(fixed):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    Y = (X @ rng.normal(size=(3, 4)) + rng.normal(size=(60, 4)) > 0).astype(float)
    full, quick = (
        CandidateLikelihood(effort=effort, random_state=0, on_empty="ignore", **fixed).fit(X, Y)
        for effort in ("full", "quick")
    )
    tried = quick.selection_["tried"]
    assert len(tried) <= len(full.selection_["tried"])
    if not fixed:
        assert len(tried) < 0.5 * len(full.selection_["tried"])
    for name, column in (("family", "family"), ("gamma", "gamma"), ("kernel_width", "width")):
        if name in fixed:
            assert {setting[column] for setting in tried} == {fixed[name]}
    if "noise_rate" in fixed:
        assert {setting["noise"] for setting in tried} == {1.0}
    if "at_least_one" in fixed:
        assert {setting["one_true"] for setting in tried if setting["family"] != "ridge"} == {True}
    assert quick.converged_


class TestCalibration:
    @pytest.mark.parametrize(("slope", "shift"), [(1.0, 0.0), (0.5, 1.0), (2.0, -1.5)])
    def test_the_level_is_found_from_candidates_alone(self, slope, shift):
        rng = np.random.default_rng(0)
        eta, rho = expit(2 * rng.normal(size=(4000, 3)) - 1), np.array([0.2, 0.3, 0.4])
        Y = ((rng.random(eta.shape) < eta) | (rng.random(eta.shape) < rho)).astype(float)
        # What ranks well but lies at another level.
        p = expit((logit(eta) - shift) / slope)
        found = fit_calibration(p, rho, Y)
        assert_allclose(found, (slope, shift), atol=0.15 * max(1, abs(shift), slope))
        assert np.abs(calibrate(p, found) - eta).mean() < 0.02

    def test_no_ranking_changes_and_nothing_is_certain(self):
        p = np.array([0.0, 1e-9, 0.2, 0.5, 0.999, 1.0])
        found = calibrate(p, (3.0, -2.0))
        assert (np.diff(found) > 0).all()
        assert ((found > 0) & (found < 1)).all()

    def test_hardly_any_row_leaves_things_as_they_are(self):
        p = np.array([[0.4, 0.6]])
        assert_allclose(fit_calibration(p, np.array([0.1, 0.1]), np.array([[1.0, 0.0]])), (1, 0), atol=0.6)


def test_linear_scores_bend_at_the_ends_and_keep_their_order():
    scores = np.linspace(-0.2, 1.2, 1001)[:, None]
    found = to_probability(scores, family="least-squares", one_true=False, rates=np.zeros(1))
    assert (np.diff(found[:, 0]) > 0).all()
    assert ((found > 0) & (found < 1)).all()
    middle = (scores > 0.02) & (scores < 0.98)
    assert_allclose(found[middle], scores[middle])
    ridge = to_probability(scores, family="ridge", one_true=False, rates=np.full(1, 0.2))
    assert_allclose(ridge[(scores - 0.2) / 0.8 == 0.5], 0.5)
