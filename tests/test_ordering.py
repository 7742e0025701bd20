import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skpml.ordering import feature_order, label_order, row_order


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


def test_features_of_a_0_1_table_that_differ_only_in_their_rows(table):
    """Words that occur equally often are told apart by where they occur."""
    X = (table[0] > 0).astype(float)
    X[:, 0], X[:, 1] = np.arange(40) < 20, np.arange(40) >= 20
    rows = np.random.default_rng(0).permutation(40)
    assert_array_equal(feature_order(X[rows]), feature_order(X))


def test_orders_are_permutations_in_single_precision_and_on_constants():
    assert sorted(row_order(np.zeros((4, 2), np.float32))) == [0, 1, 2, 3]
    assert sorted(label_order(np.ones((4, 2), np.float32), np.zeros((4, 3), np.float32))) == [0, 1, 2]
