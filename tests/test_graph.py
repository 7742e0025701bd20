import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context

from skpml.graph import check_similarity, neighbor_similarity, reconstruction_weights


def test_a_line_of_points_by_hand():
    """Points 0, 1, 3 with one neighbour: 0↔1, and 3→1 because 1 is nearest to 3; σ = mean(1, 1, 2) = 4/3."""
    S = neighbor_similarity(np.array([[0.0], [1.0], [3.0]]), n_neighbors=1).toarray()
    near, far = np.exp(-((3 / 4) ** 2)), np.exp(-((2 * 3 / 4) ** 2))
    assert_allclose(S, [[0, near, 0], [near, 0, far], [0, far, 0]])


@pytest.mark.parametrize("d", [2, 12])
def test_symmetric_without_self_loops(d):
    X = np.random.default_rng(0).normal(size=(80, d))
    S = neighbor_similarity(X)
    assert_allclose(S.toarray(), S.toarray().T)
    assert_array_equal(S.diagonal(), 0)
    assert ((S != 0).sum(axis=1) >= 5).all()
    assert S.data.max() <= 1


def test_scale_and_shift_change_nothing():
    X = np.random.default_rng(0).normal(size=(80, 4))
    assert_allclose(neighbor_similarity(10 * X + 3).toarray(), neighbor_similarity(X).toarray(), atol=1e-10)
    assert_allclose(neighbor_similarity(X + 1e6).toarray(), neighbor_similarity(X).toarray(), atol=1e-8)


@pytest.mark.parametrize("d", [3, 30])
@pytest.mark.parametrize("search", ["exact", "cells"])
def test_duplicates_everywhere_give_similarity_one(d, search):
    X = np.repeat(np.random.default_rng(0).normal(size=(3, d)), 8, axis=0)
    S = neighbor_similarity(X, n_neighbors=3, search=search)
    assert_array_equal(S.data, 1)
    assert_array_equal(S.diagonal(), 0)


def test_rows_permute():
    X = np.random.default_rng(0).normal(size=(60, 3))
    order = np.random.default_rng(1).permutation(60)
    assert_allclose(
        neighbor_similarity(X[order]).toarray(),
        neighbor_similarity(X).toarray()[np.ix_(order, order)],
        atol=1e-12,
    )


@pytest.mark.parametrize("d", [2, 8])
def test_tied_rows_permute(d):
    """Whole numbers tie and repeat: all that tie for the last place are neighbours, so the order of rows is no matter."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(150, d)).astype(float)
    order = rng.permutation(150)
    S = neighbor_similarity(X).toarray()
    assert_allclose(neighbor_similarity(X[order]).toarray(), S[np.ix_(order, order)], atol=1e-12)
    assert (S > 0).sum(axis=1).max() > 5


def test_ties_by_hand():
    """Points 0, 1, 2, 3 with one neighbour: the inner ones have two nearest neighbours each."""
    S = neighbor_similarity(np.arange(4.0)[:, None], n_neighbors=1).toarray()
    one = np.exp(-1)
    assert_allclose(S, [[0, one, 0, 0], [one, 0, one, 0], [0, one, 0, one], [0, 0, one, 0]])


def test_single_precision_stays():
    X = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    assert neighbor_similarity(X).dtype == np.float32


class TestCells:
    def test_finds_nearly_all_neighbours(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(6000, 4)) @ rng.normal(size=(4, 12)) + 0.05 * rng.normal(size=(6000, 12))
        exact = neighbor_similarity(X, search="exact") != 0
        found = neighbor_similarity(X, search="cells") != 0
        assert exact.multiply(found).sum() > 0.97 * exact.sum()
        assert_array_equal(found.diagonal(), False)

    def test_finds_nearly_all_neighbours_in_many_dimensions(self):
        """Rows at the border of their cell have neighbours in cells that are far from the pivot of their own."""
        rng = np.random.default_rng(0)
        centers, spread = rng.normal(size=(60, 24)), rng.normal(size=(24, 96)) / 5
        hidden = centers[rng.integers(0, 60, 4000)] + 0.7 * rng.normal(size=(4000, 24))
        X = (hidden @ spread + 0.3 * rng.normal(size=(4000, 96))).astype(np.float32)
        exact = neighbor_similarity(X, search="exact") != 0
        found = neighbor_similarity(X, search="cells") != 0
        assert exact.multiply(found).sum() > 0.97 * exact.sum()

    @pytest.mark.parametrize("n_neighbors", [5, 50])
    def test_if_all_cells_are_searched_it_is_exact(self, n_neighbors):
        """As few rows as these are divided into at most 32 cells; of 50 neighbors, more cells are searched."""
        X = np.random.default_rng(0).normal(size=(64, 7))
        assert_allclose(
            neighbor_similarity(X, search="cells", n_neighbors=n_neighbors).toarray(),
            neighbor_similarity(X, search="exact", n_neighbors=n_neighbors).toarray(),
            atol=1e-10,
        )

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_tied_rows_are_all_neighbours(self, dtype):
        X = np.random.default_rng(0).integers(0, 3, size=(64, 4)).astype(dtype)
        exact = neighbor_similarity(X, search="exact").toarray()
        assert_allclose(neighbor_similarity(X, search="cells").toarray(), exact, rtol=1e-6)
        assert (exact > 0).sum(axis=1).max() > 5

    def test_all_in_one_cell_and_duplicates(self):
        """300 copies of one row share a cell; the others still find neighbours."""
        X = np.vstack([np.zeros((300, 2)), np.random.default_rng(0).normal(size=(100, 2)) + 9])
        S = neighbor_similarity(X, search="cells")
        assert_array_equal(S.diagonal(), 0)
        assert np.isfinite(S.data).all()
        exact = neighbor_similarity(X[300:], search="exact") != 0
        assert_array_equal((S[300:, 300:] != 0).toarray(), exact.toarray())
        assert_array_equal(S[:300, 300:].data, [])

    def test_more_duplicates_than_are_compared(self, monkeypatch):
        monkeypatch.setattr("skpml._cell_search._COMPARED_PER_CELL", 20)
        X = np.vstack([np.zeros((300, 3)), np.random.default_rng(0).normal(size=(100, 3))])
        S = neighbor_similarity(X, search="cells")
        assert ((S != 0).sum(axis=1) >= 5).all()
        assert_array_equal(S.diagonal(), 0)
        assert_array_equal(S[:300, :300].data, 1)

    def test_far_from_the_origin_duplicates_are_at_distance_zero(self):
        """Products of such rows in single precision have no digit of the distances left; differences have all."""
        rng = np.random.default_rng(0)
        near = rng.normal(size=(200, 6)).astype(np.float32)
        X = np.repeat(near, 2, axis=0) + np.float32(1000)
        S = neighbor_similarity(X, n_neighbors=1, search="cells").toarray()
        assert_array_equal(S, np.kron(np.eye(200), [[0, 1], [1, 0]]))

    def test_blocks_change_nothing(self):
        X = np.random.default_rng(0).normal(size=(700, 6))
        whole = neighbor_similarity(X, search="cells")
        with config_context(working_memory=0.1):
            assert_allclose(neighbor_similarity(X, search="cells").toarray(), whole.toarray(), atol=1e-10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_neighbors": 9}, "n_neighbors=9 needs at least 10 rows, but X has n_samples = 8"),
        ({"n_neighbors": 0}, "n_neighbors must be at least 1"),
        ({"search": "tree"}, "search must be"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        neighbor_similarity(np.random.default_rng(0).normal(size=(8, 2)), **options)


class TestPrecomputed:
    def test_accepts_every_sparse_format(self):
        S = neighbor_similarity(np.random.default_rng(0).normal(size=(20, 3)))
        for layout in ("csr", "csc", "coo", "lil", "dok"):
            assert_allclose(check_similarity(S.asformat(layout), 20).toarray(), S.toarray())

    @pytest.mark.parametrize(
        ("graph", "error", "message"),
        [
            (np.eye(3), TypeError, "must be a scipy sparse matrix"),
            (scipy.sparse.eye_array(4), ValueError, r"graph has shape \(4, 4\), but X has 3 rows"),
            (scipy.sparse.csr_array(np.diag([1, np.nan, 1])), ValueError, "NaN or infinity"),
            (scipy.sparse.csr_array(np.diag([1, -1.0, 1])), ValueError, "negative"),
            (
                scipy.sparse.csr_array([[0, 1.0, 0], [1, 0, 0], [0, 0.5, 0]]),
                ValueError,
                r"cells \((1, 2|2, 1)\) and \((1, 2|2, 1)\) differ",
            ),
        ],
    )
    def test_refuses(self, graph, error, message):
        with pytest.raises(error, match=message):
            check_similarity(graph, 3)


def test_scale_by_the_nearest_row_in_plain_loops():
    """Weights exp(−D/(2s²)) of the k nearest, s the mean smallest D, the two directions averaged."""
    X = np.random.default_rng(0).normal(size=(30, 4))
    D = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.fill_diagonal(D, np.inf)
    s = D.min(axis=1).mean()
    W = np.zeros_like(D)
    for i, row in enumerate(D):
        for j in np.argsort(row)[:5]:
            W[i, j] = np.exp(-row[j] / (2 * s**2))
    assert_allclose(neighbor_similarity(X, scale="first").toarray(), (W + W.T) / 2, atol=1e-12)


def test_scale_by_the_nearest_row_with_duplicates():
    X = np.random.default_rng(0).normal(size=(20, 3))
    twice = neighbor_similarity(np.repeat(X, 2, axis=0), scale="first")
    assert np.isfinite(twice.data).all()
    assert_allclose(twice.toarray()[0, 1], 1)
    same = neighbor_similarity(np.repeat(X[:2], 10, axis=0), n_neighbors=3, scale="first")
    assert_array_equal(same.data, 1)


def test_unknown_scale():
    with pytest.raises(ValueError, match="scale must be"):
        neighbor_similarity(np.eye(9), scale="mean")


def test_reconstruction_weights_solve_each_row():
    """No step along a neighbour, forward or (where its weight allows) back, brings the combination nearer to the row."""
    X = np.random.default_rng(0).normal(size=(40, 5))
    D = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.fill_diagonal(D, np.inf)
    W = reconstruction_weights(X, n_neighbors=4).toarray()
    assert_array_equal(np.diag(W), 0)
    for i in range(40):
        near = np.argsort(D[i])[:4]
        assert set(np.flatnonzero(W[i])) <= set(near)
        total = W[i].sum()
        assert total == pytest.approx(1) or total == 0
        if total == 0:
            assert (X[near] @ X[i] <= 1e-12).all()
            continue
        # Rows were divided by their sum: the best multiple of the direction is the solution of the problem.
        direction = W[i] @ X
        solution = W[i] * (direction @ X[i]) / (direction @ direction)
        slope = X[near] @ (solution @ X - X[i])
        assert (slope >= -1e-8).all()
        assert_allclose(slope[solution[near] > 0], 0, atol=1e-8)


def test_reconstruction_from_a_copy_and_from_all_rows():
    X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    W = reconstruction_weights(X, n_neighbors=10).toarray()
    assert_allclose(W[0], [0, 1, 0, 0], atol=1e-12)
    assert_allclose(W[2], [0, 0, 0, 1], atol=1e-12)


def test_reconstruction_weights_do_not_depend_on_the_order():
    """Rows of words tie at the same distance everywhere; content decides which of them are the neighbours."""
    rng = np.random.default_rng(0)
    X = (rng.random((150, 12)) < 0.4).astype(float)
    X = np.unique(X, axis=0)
    rows, features = rng.permutation(len(X)), rng.permutation(12)
    moved = reconstruction_weights(X[np.ix_(rows, features)], n_neighbors=5).toarray()
    assert_allclose(moved, reconstruction_weights(X, n_neighbors=5).toarray()[np.ix_(rows, rows)], atol=1e-8)
