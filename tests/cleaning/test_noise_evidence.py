"""The noise rate by likelihood: found where the features show it, left open where they do not."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit
from sklearn.utils import Bunch

from skpml.cleaning import audit
from skpml.likelihood import estimate_noise


def candidates(eta, rate, rng):
    return (rng.random(eta.shape) < eta + (1 - eta) * rate).astype(np.uint8)


def evidence(scores, Y):
    return estimate_noise(scores, Y, by_frequency=True)


def told(n=3000, c=6, seed=0):
    """Probabilities that go from nearly no to nearly yes."""
    rng = np.random.default_rng(seed)
    return expit(rng.normal(-2, 3, size=(n, c))), rng


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.3, 0.7])
@pytest.mark.slow
def test_the_rate_is_found_where_features_tell(rate):
    eta, rng = told()
    # A wrong level of the scores is no hindrance, as each rate is tried with the level that suits it.
    scores = eta**0.5 / (eta**0.5 + (1 - eta) ** 0.5)
    found = evidence(scores, candidates(eta, rate, rng))
    assert_allclose(found.rate.mean(), rate, rtol=0.15)
    assert (found.low <= rate * 1.02).all()
    assert (found.high >= rate * 0.98).all()
    assert (found.high / (1 - found.high) < 2.5 * found.low / (1 - found.low)).all()


@pytest.mark.slow
def test_without_noise_no_noise_is_allowed():
    eta, rng = told()
    assert evidence(eta, candidates(eta, 0.0, rng)).low.max() < 1e-5


@pytest.mark.slow
def test_features_that_tell_nothing_leave_everything_open():
    rng = np.random.default_rng(0)
    Y = (rng.random((2000, 5)) < 0.3).astype(np.uint8)
    found = evidence(np.clip(rng.normal(0.3, 0.01, size=Y.shape), 0.01, 0.99), Y)
    assert found.low.max() < 1e-5
    assert found.high.min() > 0.2


@pytest.mark.slow
def test_more_rows_allow_fewer_rates():
    ranges = []
    for n in (200, 20_000):
        eta, rng = told(n)
        found = evidence(eta, candidates(eta, 0.1, rng))
        ranges.append(np.log(found.high / found.low).mean())
    assert ranges[1] < 0.5 * ranges[0]


@pytest.mark.slow
def test_noise_of_frequent_labels_may_be_more_frequent():
    rng = np.random.default_rng(0)
    eta = expit(rng.normal([-5, -4, -3, -1, 0, 1], 3, size=(5000, 6)))
    rates = expit(logit(eta.mean(axis=0)) - 2)
    found = evidence(eta, candidates(eta, rates, rng))
    assert_allclose(found.rate, rates, rtol=0.25)
    alike = evidence(eta, candidates(eta, 0.1, rng))
    assert np.ptp(alike.rate) < 1e-12


@pytest.mark.slow
def test_no_rate_is_above_the_share_of_candidates_and_rare_labels_do_not_count():
    eta, rng = told()
    Y = candidates(eta, 0.2, rng)
    rare = np.zeros((len(Y), 10), dtype=np.uint8)
    rare[:2] = 1
    Y = np.column_stack([Y, rare])
    scores = np.column_stack([eta, np.full(rare.shape, 0.001)])
    found = evidence(scores, Y)
    assert_allclose(found.rate[:6].mean(), 0.2, rtol=0.1)
    assert (found.rate <= Y.mean(axis=0) + 1e-12).all()


def weak(signal, n=300, seed=0):
    rng = np.random.default_rng(seed)
    Y = (rng.random((n, 5)) < 0.3).astype(np.uint8)
    return signal * Y + rng.normal(size=(n, 5)), Y


def test_nothing_is_dropped_where_the_features_tell_nothing():
    found = audit(*weak(0.0), method="ridge")
    assert not (found.actions == "drop").any()
    assert found.wrong.total[1] < 1
    # With a budget the rest is decided, and kept.
    asked = audit(*weak(0.0), method="ridge", budget=7)
    assert_array_equal([np.sum(asked.actions == word) for word in ("drop", "ask")], [0, 7])


def test_a_tag_that_few_rows_have_is_not_dropped_without_a_person():
    X, Y = weak(3.0)
    rare = np.zeros((len(Y), 2), dtype=np.uint8)
    rare[:1, 0], rare[:9, 1] = 1, 1
    found = audit(X, np.column_stack([Y, rare]), method="ridge")
    assert not (found.actions[:, 5:] == "drop").any()
    assert_array_equal(found.wrong.low[5:], 0)
    assert_array_equal(found.wrong.high[5:], [1, 9])


@pytest.mark.slow
def test_copies_of_a_row_do_not_tell_its_tags():
    rng = np.random.default_rng(1)
    X, truth = weak(4.0, n=150)
    Y = np.maximum(truth, rng.random(truth.shape) < 0.15).astype(np.uint8)
    once, thrice = (audit(np.repeat(X, k, axis=0), np.repeat(Y, k, axis=0)) for k in (1, 3))
    wrong = int(np.sum(truth != Y))
    assert wrong > 50
    assert thrice.wrong.total[0] > 0.8 * 3 * wrong
    doubted = [np.sum((found.actions != "") & (found.confidences < 0.25)) for found in (once, thrice)]
    assert doubted[1] > 2.4 * doubted[0] > 0


@pytest.mark.parametrize(("budget", "instead"), [(None, "ask"), (0, "keep")])
def test_only_what_the_least_noise_cannot_explain_is_dropped(monkeypatch, budget, instead):
    """Three labels of twenty rows, all doubted; the second may be right, the third is rare."""
    Y = np.repeat([[1], [0]], 20, axis=0).repeat(3, axis=1).astype(np.uint8)
    Y[9:, 2] = 0
    low = np.full(3, 0.01)
    found = Bunch(
        probabilities=np.full(Y.shape, 0.01),
        expected=np.full(Y.shape, 0.208),
        held_out=0.1 * Y,
        confidences=0.1 * Y,
        noise_rate=np.full(3, 0.2),
        noise_range=(low, np.full(3, 0.3)),
        at_least_noise=np.array([0.4, 0.6, 0.4]) * Y,
    )
    # By its full name, since the package has a function of the same name.
    monkeypatch.setattr(import_module("skpml.cleaning._audit"), "judge", lambda *_, **__: found)
    random = Bunch(random_noise=True, p_value=1.0, clear_share=1.0, rate_variation=0.0)
    monkeypatch.setattr(import_module("skpml.cleaning._audit"), "examine_noise", lambda *_: random)
    audited = audit(None, Y, probabilities=0.2 + 0.5 * Y, budget=budget)
    assert set(audited.actions[:20, 0]) == {"drop"}
    assert set(audited.actions[:20, 1]) == {instead}
    assert set(audited.actions[:9, 2]) == {instead}
    assert (audited.wrong.low[2], audited.wrong.high[2]) == (0, 9)
