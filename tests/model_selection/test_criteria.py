"""The criterion without true labels: better scores have better values, whatever the false candidates are."""

import numpy as np
import pytest

from skpml.metrics import average_precision
from skpml.model_selection import candidate_precision
from skpml.noise import top_up


def slow(candidates, scores):
    """The definition, candidate by candidate, without ties."""
    rows = []
    for labels, values in zip(candidates, scores, strict=True):
        ranked = labels[np.argsort(-values)]
        if 0 < labels.sum() < len(labels):
            ranks = np.flatnonzero(ranked) + 1
            rows.append(np.mean(np.arange(1, len(ranks) + 1) / ranks))
    return np.mean(rows)


def test_agrees_with_the_definition():
    rng = np.random.default_rng(0)
    candidates = (rng.random((50, 7)) < 0.4).astype(int)
    candidates[0], candidates[1] = 0, 1
    scores = rng.normal(size=(50, 7))
    assert candidate_precision(candidates, scores) == pytest.approx(slow(candidates, scores), abs=1e-12)


def test_limits():
    candidates = np.array([[1, 0, 1], [0, 1, 0]])
    assert candidate_precision(candidates, candidates) == 1
    assert candidate_precision(candidates, -candidates) < candidate_precision(candidates, np.eye(3)[:2]) < 1


def test_without_a_row_that_compares_it_is_nan_and_silent(recwarn):
    assert np.isnan(candidate_precision([[1, 1], [0, 0]], [[0, 1], [1, 0]]))
    assert not recwarn.list


def test_every_exchange_in_favour_of_a_true_label_helps_or_leaves_it():
    """Moving a true label above the false one over it gains if that is a non-candidate, and else changes nothing."""
    rng = np.random.default_rng(1)
    gained = 0
    for seed in range(100):
        truth = np.zeros((1, 8), int)
        truth[0, rng.permutation(8)[:2]] = 1
        candidates = top_up(truth, 4, random_state=seed)
        order = rng.permutation(8)
        for place in range(7):
            above, below = order[place], order[place + 1]
            if truth[0, above] or not truth[0, below]:
                continue
            better = order.copy()
            better[[place, place + 1]] = below, above
            before, after = (
                candidate_precision(candidates, -np.argsort(which)[None, :].astype(float))
                for which in (order, better)
            )
            assert (after > before) if not candidates[0, above] else (after == before)
            gained += after > before
    assert gained > 50


def test_with_random_false_candidates_better_scores_win():
    """Blurred more and more, scores lose by the truth and, in the same order, by candidates of which 3 in 5 are false."""
    rng = np.random.default_rng(2)
    truth = np.zeros((400, 8), int)
    truth[:, :2] = 1
    truth = rng.permuted(truth, axis=1)
    noise = rng.normal(size=truth.shape)
    candidates = top_up(truth, 5, random_state=0)
    blurred = [truth + blur * noise for blur in (0.1, 0.5, 1.0, 2.0, 5.0)]
    by_truth = [average_precision(truth, scores) for scores in blurred]
    by_candidates = [candidate_precision(candidates, scores) for scores in blurred]
    assert by_truth == sorted(by_truth, reverse=True)
    assert by_candidates == sorted(by_candidates, reverse=True)


def test_shapes_that_do_not_agree_are_refused():
    with pytest.raises(ValueError, match="shape"):
        candidate_precision([[1, 0]], [[1, 0], [0, 1]])
