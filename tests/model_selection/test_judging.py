"""Inner folds, and the judgement of points by held-out rows."""

import numpy as np
import pytest
import scipy.sparse

from skpml.model_selection import candidate_precision
from skpml.model_selection._judging import InnerFolds, Judge, mean_of_folds, shortfall


def test_shortfall_is_the_paired_difference_in_standard_errors():
    rng = np.random.default_rng(0)
    best, rows = rng.random(50), rng.random(50)
    gap = best - rows
    assert shortfall(best, rows) == pytest.approx(gap.mean() / (gap.std() / 50**0.5))
    assert shortfall(rows, best) == pytest.approx(-shortfall(best, rows))
    assert shortfall(best, best) == shortfall(best[:0], best[:0]) == 0


def test_folds_that_cannot_tell_do_not_count_and_failures_do():
    assert mean_of_folds([0.2, np.nan, 0.4]) == pytest.approx(0.3)
    assert mean_of_folds([np.nan]) == mean_of_folds([]) == mean_of_folds([0.9, -np.inf]) == -np.inf
    assert np.isnan(candidate_precision([[1, 1], [0, 0]], [[0.1, 0.2], [0.3, 0.4]]))


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_folds_follow_the_content_of_the_rows(kind):
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(50, 4)), rng.integers(0, 2, (50, 3))
    order = rng.permutation(50)
    here = InnerFolds(kind(X), Y, n_folds=3, random_state=7)
    there = InnerFolds(kind(X[order]), Y[order], n_folds=3, random_state=7)
    assert sorted(np.concatenate([left_out for _, left_out in here.splits])) == list(range(50))
    for (train, left_out), (moved_train, moved_left_out) in zip(here.splits, there.splits, strict=True):
        assert sorted([*train, *left_out]) == list(range(50))
        assert (order[moved_train] == train).all()
        assert (order[moved_left_out] == left_out).all()


LABELS = [np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]), np.array([[0.0, 1.0, 0.0]])]


def score_by_hand(points, fold):
    """Scores of a point are the labels, turned round from the point -1 on, and NaN at 9. In falling order."""
    for place in reversed(range(len(points))):
        sign = -1 if points[place] < 0 else 1
        yield place, sign * LABELS[fold] + (np.nan if points[place] == 9 and fold else 0.0)


@pytest.mark.parametrize("pooled", [False, True])
def test_evidence_of_points(pooled):
    judge = Judge(score_by_hand, LABELS, keep=2, pooled=pooled)
    judge.try_points([3, -1, 9])
    judge.try_points([2, 3])
    evidence = judge.evidence()
    assert evidence.points == [-1, 2, 3, 9]
    wrong = [1 / 3, 2 / 3, 1 / 3]
    mean = np.mean(wrong) if pooled else np.mean([np.mean(wrong[:2]), wrong[2]])
    assert evidence.precision == pytest.approx([mean, 1, 1, -np.inf])
    assert evidence.fold_precision[0] == pytest.approx([np.mean(wrong[:2]), wrong[2]])
    gap = 1 - np.array(wrong)
    assert evidence.distance[:3] == pytest.approx([gap.mean() / (gap.std() / 3**0.5), 0, 0])
    # The smaller of equals, and only what is near enough.
    assert evidence.best() == [2]
    assert evidence.best(4) == [2, 3, -1, 9]
    assert evidence.best(4, within=1) == [2, 3]
    for found, labels in zip(judge.mean_scores([2, 3]), LABELS, strict=True):
        assert (found == labels).all()
    with pytest.raises(KeyError):
        judge.mean_scores([-1])


def test_points_are_scored_once():
    asked = []

    def score(points, fold):
        asked.append((tuple(points), fold))
        return score_by_hand(points, fold)

    judge = Judge(score, LABELS)
    judge.try_points([1, 2, 1])
    judge.try_points([2, 1])
    assert asked == [((1, 2), 0), ((1, 2), 1)]


def test_where_no_row_can_be_ranked_there_is_no_evidence():
    everything = [np.ones((2, 3)), np.zeros((1, 3))]
    for pooled, precision in ((False, -np.inf), (True, 0.0)):
        judge = Judge(lambda points, fold: ((0, everything[fold]) for _ in points), everything, pooled=pooled)
        judge.try_points([1])
        evidence = judge.evidence()
        assert evidence.precision == [precision]
        assert np.isnan(evidence.fold_precision[0]).all()
        assert evidence.distance == [0]
