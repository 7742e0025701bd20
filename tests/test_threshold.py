import numpy as np
import pytest

from skpml.base import automatic_threshold, non_candidate_threshold


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.5, 0.8])
def test_cut_is_half_way_between_the_noise_and_one(rate):
    """Scores η + (1 − η)ρ with η near 0 or 1: the cut belongs at (1 + ρ)/2, the negative level at ρ."""
    rng = np.random.default_rng(0)
    truth = rng.random((2000, 6)) < 0.25
    candidates = truth | (rng.random(truth.shape) < rate)
    scores = np.where(truth, 1.0, rate) + 0.05 * rng.normal(size=truth.shape)
    cut, negative = automatic_threshold(scores, candidates)
    assert negative == pytest.approx(rate, abs=0.03)
    assert cut == pytest.approx((1 + rate) / 2, abs=0.03)


def test_cut_ignores_the_order_of_rows_and_labels():
    rng = np.random.default_rng(0)
    scores = rng.random((50, 4))
    candidates = (rng.random((50, 4)) < 0.5).astype(np.uint8)
    confidences = rng.random((50, 4)) * candidates
    rows, labels = rng.permutation(50), rng.permutation(4)
    shuffled = (matrix[np.ix_(rows, labels)] for matrix in (scores, candidates, confidences))
    assert automatic_threshold(*shuffled) == pytest.approx(
        automatic_threshold(scores, candidates, confidences)
    )


def test_shrunken_confidences_lower_the_cut():
    rng = np.random.default_rng(0)
    truth = rng.random((2000, 6)) < 0.3
    candidates = truth | (rng.random(truth.shape) < 0.3)
    confidences = 0.6 * candidates
    scores = np.where(truth, 0.6, 0.18) + 0.02 * rng.normal(size=truth.shape)
    cut, negative = automatic_threshold(scores, candidates, confidences)
    assert cut == pytest.approx((0.6 + 0.18) / 2, abs=0.02)
    assert negative == pytest.approx(0.18, abs=0.02)


def test_positive_level_is_that_of_the_quarter_with_the_highest_scores():
    """Eight candidates, two of them in the top quarter with confidences 0.9 and 0.7; the negatives sit at 0.1."""
    scores = np.array([[0.8, 0.7, 0.5, 0.4, 0.3, 0.3, 0.2, 0.2] + 24 * [0.1]])
    candidates = np.array([8 * [1] + 24 * [0]])
    confidences = np.array([[0.9, 0.7, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2] + 24 * [0.0]])
    cut, negative = automatic_threshold(scores, candidates, confidences)
    assert negative == pytest.approx(0.1)
    assert cut == pytest.approx((0.1 + 0.8) / 2)


def test_emptied_confidences_predict_nothing():
    scores = np.random.default_rng(0).normal(scale=0.01, size=(100, 3))
    cut, _ = automatic_threshold(scores, np.ones((100, 3)), np.zeros((100, 3)))
    assert cut > scores.max()


def test_non_candidate_threshold_by_hand():
    """Highest scores outside the candidates: 0.4 and 0.9; the third row has none and is left out."""
    scores = np.array([[0.8, 0.4, 0.1], [0.9, 0.2, 0.7], [5.0, 6.0, 7.0]])
    candidates = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 1]])
    assert non_candidate_threshold(scores, candidates)[0] == pytest.approx((0.4 + 0.9) / 2)


def test_non_candidate_threshold_without_any_non_candidate():
    scores = np.linspace(0, 1, 12).reshape(4, 3)
    everything = np.ones((4, 3), np.uint8)
    assert non_candidate_threshold(scores, everything) == automatic_threshold(scores, everything)
