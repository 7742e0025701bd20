"""Inner folds, and what rows left out of a fit say of it."""

import numpy as np
import pytest
import scipy.sparse

from skpml.metrics import average_precision
from skpml.model_selection import _held_out as held_out
from skpml.model_selection._held_out import InnerFolds, mean_of_folds, precision, row_precision, shortfall


@pytest.mark.parametrize("at_a_time", [1, 10**6])
def test_precision_of_rows_is_that_of_the_metric(monkeypatch, at_a_time):
    monkeypatch.setattr(held_out, "_PAIRS_AT_A_TIME", at_a_time)
    rng = np.random.default_rng(0)
    scores, Y = rng.integers(0, 6, (40, 5)) / 5, (rng.random((40, 5)) < 0.5).astype(float)
    Y[0], Y[1] = 0, 1  # neither says anything
    rows = row_precision(scores, Y)
    told = (Y.sum(axis=1) > 0) & (Y.sum(axis=1) < 5)
    assert rows.shape == (told.sum(),)
    assert rows.mean() == pytest.approx(average_precision(Y.astype(int), scores, convention="pml"))
    assert row_precision(scores[:1], Y[:1]).shape == (0,)


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
    assert np.isnan(precision([[1, 1], [0, 0]], [[0.1, 0.2], [0.3, 0.4]]))


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
