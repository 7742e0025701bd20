"""Labels that never come without another: which are found, and that their order is kept."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skpml import CandidateLikelihood
from skpml.likelihood import find_nested_labels, keep_nested_order


def taxonomy(n=400, seed=0):
    """place ⊃ water ⊃ sea, and a label of its own."""
    rng = np.random.default_rng(seed)
    place = rng.random(n) < 0.7
    water = place & (rng.random(n) < 0.8)
    sea = water & (rng.random(n) < 0.8)
    return np.column_stack([sea, rng.random(n) < 0.5, place, water]).astype(float)


def test_chains_are_found_outer_labels_first():
    assert find_nested_labels(taxonomy()) == [(3, 2), (0, 2), (0, 3)]


def test_one_exception_is_enough():
    Y = taxonomy()
    Y[np.flatnonzero(Y[:, 0])[0], 2] = 0
    assert find_nested_labels(Y) == [(0, 3)]


def test_equal_columns_and_empty_and_full_labels_are_not_nested():
    Y = taxonomy()[:, [0, 0, 1]]
    assert find_nested_labels(Y) == []
    assert find_nested_labels(np.column_stack([np.zeros(50), np.ones(50), Y[:50, 2]])) == []


def test_nesting_by_chance_is_left_out():
    """Three rows of a rare label that all have a common one: a coin that fell three times on one side."""
    rng = np.random.default_rng(0)
    Y = (rng.random((200, 2)) < 0.6).astype(float)
    Y[:, 0] = 0
    Y[np.flatnonzero(Y[:, 1])[:3], 0] = 1
    assert find_nested_labels(Y) == []
    Y[np.flatnonzero(Y[:, 1])[:70], 0] = 1
    assert find_nested_labels(Y) == [(0, 1)]


def test_labels_that_mostly_go_together_are_hardly_ever_nested():
    found = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        outer = rng.random(300) < 0.5
        inner = outer & (rng.random(300) < 0.4) | (rng.random(300) < 0.02)
        found += bool(find_nested_labels(np.column_stack([inner, outer]).astype(float)))
    assert found <= 8


def test_independent_labels_are_hardly_ever_nested():
    found = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        rates = rng.uniform(0.02, 0.9, 12)
        found += bool(find_nested_labels((rng.random((80, 12)) < rates).astype(float)))
    assert found <= 3


def test_order_is_kept_along_chains_and_nothing_else_is_touched():
    rng = np.random.default_rng(0)
    p = rng.random((1000, 4))
    pairs = find_nested_labels(taxonomy())
    ordered = keep_nested_order(p, pairs)
    assert (ordered[:, 0] < ordered[:, 3]).all()
    assert (ordered[:, 3] < ordered[:, 2]).all()
    assert_array_equal(ordered[:, [1, 2]], p[:, [1, 2]])
    right = (p[:, 0] < p[:, 3]) & (p[:, 3] < p[:, 2])
    assert right.any()
    assert_array_equal(ordered[right], p[right])
    assert keep_nested_order(p, []) is p


@pytest.mark.slow
def test_an_estimator_never_puts_a_label_above_one_that_it_implies():
    rng = np.random.default_rng(0)
    Y = taxonomy()
    X = Y @ rng.normal(size=(4, 5)) + 3 * rng.normal(size=(len(Y), 5))
    settings = {"random_state": 0, "on_empty": "ignore"}
    model = CandidateLikelihood(**settings).fit(X, Y)
    new = 3 * rng.normal(size=(300, 5))
    for chance in (model.predict_proba(new), model.predict_proba(new.astype(np.float32))):
        assert (chance[:, 0] < chance[:, 3]).all()
        assert (chance[:, 3] < chance[:, 2]).all()
    both = Y[:, 0] * Y[:, 3] > 0
    assert (model.confidences_[both, 0] <= model.confidences_[both, 3]).all()
    # With rates of their own, labels have no order.
    assert CandidateLikelihood(noise_rate=[0.1, 0.1, 0.3, 0.2], **settings).fit(X, Y).nested_labels_ == []
