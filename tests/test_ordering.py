import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skpml._ordering import feature_order, label_order, row_order


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    return rng.normal(size=(40, 7)), (rng.random((40, 5)) < 0.4).astype(float)


@pytest.mark.parametrize("seed", range(5))
def test_orders_move_along_with_what_they_order(table, seed):
    """The k-th in order is the same thing, wherever it stands."""
    X, Y = table
    rng = np.random.default_rng(seed)
    rows, features, labels = (rng.permutation(size) for size in (40, 7, 5))
    moved, moved_labels = X[np.ix_(rows, features)], Y[np.ix_(rows, labels)]
    assert_array_equal(rows[row_order(moved)], row_order(X))
    assert_array_equal(features[feature_order(moved)], feature_order(X))
    assert_array_equal(labels[label_order(moved, moved_labels)], label_order(X, Y))


@pytest.mark.parametrize("low", [0, -1])
@pytest.mark.parametrize("seed", range(5))
def test_tables_of_two_values(low, seed):
    """Rows with equally many words and words in equally many rows are told apart by which they are, as 0/1 and as ±1."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((240, 30)) < 0.4, 1.0, low)
    Y = (rng.random((240, 5)) < 0.4).astype(float)
    assert len(np.unique(X, axis=0)) == 240
    rows, features, labels = (rng.permutation(size) for size in (240, 30, 5))
    moved, moved_labels = X[np.ix_(rows, features)], Y[np.ix_(rows, labels)]
    assert_array_equal(rows[row_order(moved)], row_order(X))
    assert_array_equal(features[feature_order(moved)], feature_order(X))
    assert_array_equal(labels[label_order(moved, moved_labels)], label_order(X, Y))


def test_orders_are_permutations_in_single_precision_and_on_constants():
    assert sorted(row_order(np.zeros((4, 2), np.float32))) == [0, 1, 2, 3]
    assert sorted(label_order(np.ones((4, 2), np.float32), np.zeros((4, 3), np.float32))) == [0, 1, 2]
