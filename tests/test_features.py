import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks

from skpml import CandidateLikelihood
from skpml._ordering import row_order
from skpml.features import (
    LinearMap,
    RangeScaler,
    RBFAnchors,
    default_n_anchors,
    resolve_feature_map,
)
from skpml.reference import CandidateRidge
from skpml.views import ViewScaler


@parametrize_with_checks(
    [
        RangeScaler(),
        RangeScaler(keep_sparse=True),
        ViewScaler(),
        LinearMap(),
        LinearMap(intercept=True),
        RBFAnchors(),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(50, 4)) * [1, 10, 0.1, 3] + [0, 5, 0, -2]


class TestRangeScaler:
    def test_is_min_max_to_plus_minus_one(self, X):
        assert_allclose(RangeScaler().fit_transform(X), MinMaxScaler((-1, 1)).fit_transform(X), atol=1e-12)

    def test_constant_feature_is_zero_even_when_it_moves_later(self, X):
        X[:, 2] = 7
        scaler = RangeScaler().fit(X)
        assert_array_equal(scaler.transform(X)[:, 2], 0)
        moved = X.copy()
        moved[:, 2] = 100
        assert_array_equal(scaler.transform(moved), scaler.transform(X))

    def test_test_rows_are_not_clipped(self, X):
        assert RangeScaler().fit(X).transform(10 * X).max() > 1

    @pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
    def test_sparse_equals_dense(self, X, layout):
        X[X < 0] = 0
        sparse = scipy.sparse.coo_array(X).asformat(layout)
        assert_allclose(RangeScaler().fit_transform(sparse), RangeScaler().fit_transform(X), atol=1e-12)

    @pytest.mark.parametrize(("dtype", "tiny"), [(np.float64, 1e-310), (np.float32, 1e-40)])
    def test_range_too_small_to_divide_by_is_constant(self, dtype, tiny):
        X = np.array([[0, 1], [tiny, 2], [0, 3]], dtype)
        scaled = RangeScaler().fit_transform(X)
        assert_array_equal(scaled[:, 0], 0)
        assert_array_equal(scaled[:, 1], [-1, 0, 1])

    def test_huge_range_does_not_overflow(self):
        X = np.array([[-1.7e308], [1.7e308], [0.0]])
        assert_allclose(RangeScaler().fit_transform(X).ravel(), [-1, 1, 0])


@pytest.mark.parametrize(
    ("rows", "anchors"),
    [
        (1, 1),
        (999, 999),
        (1000, 500),
        (4500, 2250),
        (4999, 2500),
        (5000, 1667),
        (8999, 3000),
        (9000, 2250),
        (9390, 2348),
        (12_000, 3000),
        (10**6, 3000),
    ],
)
def test_number_of_anchors(rows, anchors):
    assert default_n_anchors(rows) == anchors


class TestRBFAnchors:
    def brute_force(self, X, anchors, test):
        squared = [[((x - a) ** 2).sum() for a in anchors] for x in X]
        sigma2 = np.mean(squared)
        mean = np.exp(-np.array(squared) / (2 * sigma2)).mean(axis=0)
        kernel = np.array([[np.exp(-((x - a) ** 2).sum() / (2 * sigma2)) for a in anchors] for x in test])
        return np.hstack([kernel - mean, np.ones((len(test), 1))])

    def test_against_brute_force(self, X):
        map_ = RBFAnchors(n_anchors=20, random_state=0)
        mapped = map_.fit_transform(X)
        assert mapped.shape == (50, 21)
        assert_allclose(mapped, self.brute_force(X, map_.anchors_, X), atol=1e-12)
        test = np.random.default_rng(1).normal(size=(9, 4))
        assert_allclose(map_.transform(test), self.brute_force(X, map_.anchors_, test), atol=1e-12)

    def test_anchors_are_different_training_rows(self, X):
        anchors = RBFAnchors(n_anchors=20, random_state=0).fit(X).anchors_
        assert len({row.tobytes() for row in anchors} & {row.tobytes() for row in X}) == 20

    def test_columns_are_centred(self, X):
        mapped = RBFAnchors().fit_transform(X)
        assert_allclose(mapped[:, :-1].mean(axis=0), 0, atol=1e-15)
        assert_array_equal(mapped[:, -1], 1)

    def test_all_rows_as_anchors_is_not_random(self, X):
        assert_array_equal(
            RBFAnchors(random_state=0).fit_transform(X), RBFAnchors(random_state=1).fit_transform(X)
        )

    def test_given_anchors_are_used(self, X):
        assert_allclose(RBFAnchors(anchors=X[:7]).fit_transform(X), self.brute_force(X, X[:7], X), atol=1e-12)
        with pytest.raises(ValueError, match=r"anchors must have shape \(any, 4\), got \(7, 3\)"):
            RBFAnchors(anchors=X[:7, :3]).fit(X)

    def test_fit_then_transform_is_fit_transform(self, X):
        map_ = RBFAnchors(n_anchors=10, random_state=3)
        assert_allclose(map_.fit(X).transform(X), map_.fit_transform(X), atol=1e-15)

    def test_identical_rows_give_no_nan(self):
        assert np.isfinite(RBFAnchors().fit_transform(np.ones((5, 2)))).all()

    @pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-7), (np.float32, 0.3)])
    def test_far_from_the_origin(self, X, dtype, tolerance):
        near, far = (RBFAnchors().fit_transform((X + shift).astype(dtype)) for shift in (0, 1e6))
        assert np.isfinite(far).all()
        assert_allclose(far, near, atol=tolerance)

    def test_keeps_no_hold_of_the_training_rows(self, X):
        given = X.copy()
        map_ = RBFAnchors().fit(given)
        before = map_.transform(X)
        given[:] = 0
        assert_array_equal(map_.transform(X), before)

    def test_no_anchor(self, X):
        with pytest.raises(ValueError, match="n_anchors must be at least 1"):
            RBFAnchors(n_anchors=0).fit(X)


def test_linear_map_is_the_features(X):
    assert_array_equal(LinearMap().fit_transform(X), X)
    assert_array_equal(LinearMap(intercept=True).fit_transform(X), np.hstack([X, np.ones((50, 1))]))


def test_resolve(X):
    assert isinstance(resolve_feature_map("rbf", n_anchors=3, random_state=0), RBFAnchors)
    assert isinstance(resolve_feature_map("linear", n_anchors=None, random_state=0), LinearMap)
    given = PolynomialFeatures(2)
    resolved = resolve_feature_map(given, n_anchors=None, random_state=0)
    assert isinstance(resolved, PolynomialFeatures)
    assert resolved is not given
    for wrong in ("RBF", None, 3):
        with pytest.raises(ValueError, match=r'must be "rbf", "linear" or a scikit-learn transformer'):
            resolve_feature_map(wrong, n_anchors=None, random_state=0)


class TestDrawnAnchors:
    @staticmethod
    def drawn(X, n_anchors, seed=0):
        return RBFAnchors(n_anchors=n_anchors, random_state=seed).fit(X).anchors_

    def test_are_rows_without_replacement(self):
        X = np.random.default_rng(0).normal(size=(30, 4))
        anchors = self.drawn(X, 12)
        assert len({row.tobytes() for row in anchors} & {row.tobytes() for row in X}) == 12
        assert_array_equal(self.drawn(X, 12), anchors)
        assert not np.array_equal(self.drawn(X, 12, seed=1), anchors)

    def test_move_with_rows_and_features(self):
        rng = np.random.default_rng(0)
        X, rows, features = rng.normal(size=(30, 4)), rng.permutation(30), rng.permutation(4)
        moved = self.drawn(X[np.ix_(rows, features)], 12)
        assert_array_equal(moved, self.drawn(X, 12)[:, features])

    def test_all_rows_where_there_are_few(self):
        X = np.random.default_rng(0).normal(size=(5, 4))
        assert_array_equal(self.drawn(X, 5), X[row_order(X)])
        assert_array_equal(self.drawn(X, 50), X[row_order(X)])


class TestSparse:
    @staticmethod
    def rows(n=80, d=30, dtype=np.float64):
        rng = np.random.default_rng(0)
        X = scipy.sparse.random(n, d, density=0.1, format="csr", random_state=rng).astype(dtype).toarray()
        X[:, 3] = rng.normal(1e5, 1, n)  # without zeros, and far from them
        X[:, 4] *= -5
        X[:, 5] = 0
        return X

    def test_order_of_rows_is_that_of_scaled_dense_rows(self):
        X = self.rows()
        labels = (np.random.default_rng(1).random((80, 3)) < 0.5).astype(float)
        dense = RangeScaler().fit_transform(X)
        sparse = RangeScaler(keep_sparse=True).fit_transform(scipy.sparse.csr_array(X))
        assert_array_equal(row_order(sparse), row_order(dense))
        assert_array_equal(row_order(sparse, labels), row_order(np.column_stack([dense, labels])))
        assert_array_equal(row_order(dense, labels), row_order(np.column_stack([dense, labels])))

    def test_scaler_keeps_zeros_and_differences(self):
        X = self.rows()
        scaler = RangeScaler(keep_sparse=True).fit(scipy.sparse.csr_array(X))
        sparse, dense = scaler.transform(scipy.sparse.csr_array(X)), RangeScaler().fit_transform(X)
        assert scipy.sparse.issparse(sparse)
        assert sparse.nnz <= np.count_nonzero(X)
        assert_allclose(sparse.toarray() - sparse[[0]].toarray(), dense - dense[0], atol=1e-10)
        assert np.abs(sparse.toarray()).max() <= 2
        assert_allclose(scaler.transform(X), sparse.toarray(), atol=1e-10)
        moved = X[:4] + 0.5
        assert_allclose(
            scaler.transform(scipy.sparse.csr_array(moved)).toarray(), scaler.transform(moved), atol=1e-10
        )

    @pytest.mark.parametrize("n_anchors", [None, 17])
    def test_map_equals_that_of_dense_rows(self, n_anchors):
        X = self.rows()
        dense = RangeScaler().fit_transform(X)
        sparse = RangeScaler(keep_sparse=True).fit_transform(scipy.sparse.csr_array(X))
        one, two = (RBFAnchors(n_anchors=n_anchors, random_state=0) for _ in range(2))
        assert_allclose(one.fit_transform(sparse), two.fit_transform(dense), atol=1e-9)
        assert scipy.sparse.issparse(one.anchors_)
        assert_allclose(one.transform(sparse[:9].toarray()), two.transform(dense[:9]), atol=1e-9)
        assert_allclose(
            RBFAnchors(anchors=one.anchors_).fit_transform(sparse),
            RBFAnchors(anchors=two.anchors_).fit_transform(dense),
            atol=1e-9,
        )

    @pytest.mark.parametrize(
        "model",
        [
            CandidateRidge(n_anchors=30, random_state=0),
            CandidateLikelihood(
                family="ridge", gamma=0.1, noise_rate=0.2, kernel_width=1.0, n_anchors=30, random_state=0
            ),
        ],
    )
    def test_no_dense_matrix_of_the_features_is_made(self, model):
        n, d = 3000, 20_000
        X = scipy.sparse.random(n, d, density=0.001, format="csr", random_state=0)
        y = np.eye(3)[np.arange(n) % 3]
        tracemalloc.start()
        try:
            clone(model).fit(X, y).predict(X)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < n * d * 8 / 20


def test_names_of_columns(X):
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    assert RangeScaler().fit(frame).get_feature_names_out().tolist() == ["a", "b", "c", "d"]
    linear = LinearMap(intercept=True).fit(frame)
    assert linear.get_feature_names_out().tolist() == ["a", "b", "c", "d", "intercept"]
    mapped = RBFAnchors(n_anchors=2, random_state=0).set_output(transform="pandas").fit_transform(frame)
    assert mapped.columns.tolist() == ["rbfanchors0", "rbfanchors1", "rbfanchors2"]
    scaler = ViewScaler(columns={"x": np.array([0, 1]), "y": np.array([2, 3])}, weights={"x": 1, "y": 0})
    assert scaler.fit(frame).get_feature_names_out().tolist() == ["a", "b"]


def test_weights_of_rows_count_as_copies(X):
    weights = np.random.default_rng(0).integers(1, 4, size=len(X))
    copies = np.repeat(X, weights, axis=0)
    one, two = RBFAnchors(), RBFAnchors()
    one.fit_transform(X, sample_weight=weights.astype(float))
    two.fit(copies)
    assert one.bandwidth_ == pytest.approx(two.bandwidth_)
    first = [np.flatnonzero((two.anchors_ == row).all(axis=1))[0] for row in one.anchors_]
    assert_allclose(one.transform(X)[:, :-1], two.transform(X)[:, first], atol=1e-12)
