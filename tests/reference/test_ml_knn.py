import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import KFold

from skpml.datasets import load_dataset
from skpml.metrics import average_precision
from skpml.reference import MLKNN
from skpml.reference import _ml_knn as ml_knn
from skpml.reference._ml_knn import count_frequencies, count_neighbors, interpolate


def published_scores(X, Y, queries, k, s):
    """ML-kNN as it is printed, one row and one label at a time; right where no distances tie."""

    def count(x, j, skip=None):
        order = [i for i in np.argsort(((X - x) ** 2).sum(axis=1)) if i != skip]
        return int(sum(Y[i, j] for i in order[:k]))

    n, c = Y.shape
    scores = np.empty((len(queries), c))
    for j in range(c):
        prior = (s + Y[:, j].sum()) / (2 * s + n)
        seen = {0: np.zeros(k + 1), 1: np.zeros(k + 1)}
        for i in range(n):
            seen[int(Y[i, j])][count(X[i], j, skip=i)] += 1
        for row, x in enumerate(queries):
            delta = count(x, j)
            yes, no = ((s + seen[b][delta]) / (s * (k + 1) + seen[b].sum()) for b in (1, 0))
            scores[row, j] = prior * yes / (prior * yes + (1 - prior) * no)
    return scores


@pytest.mark.parametrize(("k", "s"), [(10, 1.0), (1, 1.0), (4, 0.3)])
def test_is_the_printed_method(partial_problem, k, s):
    X, candidates, _ = partial_problem
    model = MLKNN(n_neighbors=k, smoothing=s).fit(X[:90], candidates[:90])
    scaled = model.scaler_.transform(X)
    assert_allclose(
        model.decision_function(X[90:]),
        published_scores(scaled[:90], candidates[:90], scaled[90:], k, s),
        atol=1e-12,
    )


def test_scores_are_probabilities_and_likelihoods_sum_to_one(partial_problem):
    X, candidates, _ = partial_problem
    model = MLKNN().fit(X, candidates)
    scores = model.decision_function(X)
    assert scores.min() > 0
    assert scores.max() < 1
    assert_allclose(model.likelihood_.sum(axis=1), 1)
    assert max(len(np.unique(column.round(12))) for column in scores.T) <= 11


def test_heavy_smoothing_forgets_everything(partial_problem):
    X, candidates, _ = partial_problem
    assert_allclose(MLKNN(smoothing=1e12).fit(X, candidates).decision_function(X), 0.5, atol=1e-6)


def test_all_other_rows_as_neighbours_count_all_others(partial_problem):
    X, candidates, _ = partial_problem
    n = len(X)
    counts = count_neighbors(X, X, candidates, n_neighbors=n - 1, leave_out_self=True)
    assert_allclose(counts, candidates.sum(axis=0) - candidates)


def test_more_neighbours_than_rows(partial_problem):
    X, candidates, _ = partial_problem
    many = MLKNN(n_neighbors=500).fit(X, candidates)
    all_others = MLKNN(n_neighbors=119).fit(X, candidates)
    assert many.n_neighbors_ == 119
    assert_array_equal(many.decision_function(X), all_others.decision_function(X))


def test_rows_that_tie_share_the_last_places():
    rows = np.array([[0.0], [1.0], [1.0], [-1.0], [5.0]])
    labels = np.array([[0, 1], [1, 0], [0, 0], [1, 0], [1, 1]])
    # Of the three rows at distance 1, two have the first label; two places are left for the three.
    counts = count_neighbors(np.zeros((1, 1)), rows, labels, n_neighbors=3)
    assert_allclose(counts, [[2 / 3 * 2, 1]])
    counts = count_neighbors(rows, rows, labels, n_neighbors=2, leave_out_self=True)
    assert_allclose(counts[0], [2 / 3 * 2, 0])
    # Its own copy is the nearest neighbour of a row, the row itself is not.
    assert_allclose(counts[1], [0, 1])


@settings(max_examples=30)
@given(seed=st.integers(0, 10**6), k=st.integers(1, 12))
def test_counts_do_not_depend_on_the_order_of_tied_rows(seed, k):
    rng = np.random.default_rng(seed)
    X, Y = rng.integers(0, 2, size=(40, 4)) / 3, rng.integers(0, 2, size=(40, 3))
    rows, features = rng.permutation(40), rng.permutation(4)
    one = count_neighbors(X, X, Y, n_neighbors=k, leave_out_self=True)
    two = count_neighbors(
        X[np.ix_(rows, features)], X[np.ix_(rows, features)], Y[rows], n_neighbors=k, leave_out_self=True
    )
    assert_allclose(two, one[rows], atol=1e-12)
    assert one.min() >= 0
    assert one.max() <= k
    everything = count_neighbors(X, X, np.ones((40, 1)), n_neighbors=k, leave_out_self=True)
    assert_allclose(everything, k)


def test_identical_rows_give_the_share_of_each_label():
    Y = np.array([[1, 0]] * 3 + [[0, 1]] * 5)
    counts = count_neighbors(np.ones((8, 2)), np.ones((8, 2)), Y, n_neighbors=4, leave_out_self=True)
    assert_allclose(counts, 4 * (Y.sum(axis=0) - Y) / 7)


def test_blocks_do_not_show(partial_problem, monkeypatch):
    X, candidates, _ = partial_problem
    whole = MLKNN().fit(X, candidates)
    monkeypatch.setattr(ml_knn, "_BLOCK", 0.005)
    parts = MLKNN().fit(X, candidates)
    assert_allclose(parts.likelihood_, whole.likelihood_, atol=1e-12)
    assert_allclose(parts.decision_function(X), whole.decision_function(X), atol=1e-12)


def test_broken_counts_are_interpolated():
    counts = np.array([[0.0], [2.0], [1.25], [3.0]])
    frequency = count_frequencies(counts, np.array([[True], [True], [True], [False]]), 3, smoothing=0.5)
    assert_allclose(frequency[:, 0], np.array([1.5, 1.25, 1.75, 0.5]) / 5)
    table = np.array([[[1.0], [2.0], [4.0], [8.0]]])
    assert_allclose(interpolate(table, counts), [[[1.0], [4.0], [2.5], [8.0]]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_breaks_no_ties(dtype):
    """Whole numbers have exact distances; moved and scaled, they tie only but for rounding."""
    rng = np.random.default_rng(0)
    whole, Y = rng.integers(-1, 2, size=(80, 4)).astype(float), rng.integers(0, 2, size=(80, 3))
    rounded = (whole * 0.1 + 0.2).astype(dtype)
    exact = count_neighbors(whole, whole, Y, n_neighbors=5, leave_out_self=True)
    assert len(np.unique(exact % 1)) > 2
    found = count_neighbors(rounded, rounded, Y, n_neighbors=5, leave_out_self=True)
    assert_allclose(found, exact, atol=1e-10)


def test_thresholds_that_need_scores_get_those_without_the_row_itself(partial_problem):
    X, candidates, _ = partial_problem
    model = MLKNN(n_neighbors=1, threshold="non-candidates").fit(X, candidates)
    alone = count_neighbors(model._rows, model._rows, candidates, n_neighbors=1, leave_out_self=True)
    highest = np.where(candidates > 0, -np.inf, model._posterior(alone)).max(axis=1)
    assert_allclose(model.threshold_, highest[highest > 0].mean())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors must be"),
        ({"n_neighbors": 2.5}, "n_neighbors must be"),
        ({"smoothing": -1}, "smoothing must be"),
        ({"smoothing": 0}, "smoothing must be above 0"),
    ],
)
def test_bad_parameters(partial_problem, parameters, message):
    X, candidates, _ = partial_problem
    with pytest.raises(ValueError, match=message):
        MLKNN(**parameters).fit(X, candidates)


def test_real_data(data_folder):
    """Below ridge on candidates (0.81), above what guessing by frequency gives (about 0.55)."""
    data = load_dataset("emotions-3", random_state=0)
    values = [
        average_precision(
            data.truth[test],
            MLKNN().fit(data.X[train], data.candidates[train]).decision_function(data.X[test]),
        )
        for train, test in KFold(10, shuffle=True, random_state=0).split(data.X)
    ]
    assert 0.76 < np.mean(values) < 0.80
