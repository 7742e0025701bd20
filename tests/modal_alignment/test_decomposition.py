import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from skpml.modal_alignment import low_rank_orthogonal, low_rank_sparse


@pytest.fixture
def Y():
    return (np.random.default_rng(0).random((80, 6)) < 0.4).astype(float)


class TestLowRankOrthogonal:
    def test_zero_weight_keeps_the_candidates(self, Y):
        result = low_rank_orthogonal(Y, low_rank_weight=0)
        assert_allclose(result.pseudo_labels, Y, atol=1e-12)
        assert_allclose(result.basis, np.eye(6), atol=1e-12)

    def test_large_weight_empties(self, Y):
        assert_array_equal(low_rank_orthogonal(Y, low_rank_weight=1e4).pseudo_labels, 0)

    def test_box_and_orthogonality(self, Y):
        with pytest.warns(ConvergenceWarning, match="low_rank_orthogonal did not converge within max_iter=8"):
            result = low_rank_orthogonal(Y, low_rank_weight=4.0, tol=0, max_iter=8)
        assert (result.pseudo_labels >= 0).all()
        assert (result.pseudo_labels <= Y).all()
        assert_allclose(result.basis.T @ result.basis, np.eye(6), atol=1e-12)
        assert result.n_iter == 8
        assert not result.converged

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_first_step_from_the_identity_is_thresholding(self, Y):
        """L = 2 and R = Y: the step is the candidates thresholded at λ/2 and clipped."""
        U, s, Vt = np.linalg.svd(Y, full_matrices=False)
        expected = np.clip(U @ np.diag(np.maximum(s - 1.5, 0)) @ Vt, 0, Y)
        result = low_rank_orthogonal(Y, low_rank_weight=3.0, basis="identity", max_iter=1)
        assert_allclose(result.pseudo_labels, expected, atol=1e-12)
        assert_array_equal(result.basis, np.eye(6))

    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_objective_falls(self, Y):
        """Up to the step in R, which thresholds and then clips: not exact when both are active."""
        objective = low_rank_orthogonal(Y, low_rank_weight=4.0, tol=0).objective
        assert objective[-1] < objective[0]
        assert np.diff(objective).max() <= 1e-6 * objective[0]

    def test_permutations(self, Y):
        rng = np.random.default_rng(1)
        rows, labels = rng.permutation(80), rng.permutation(6)
        one, two = (
            low_rank_orthogonal(Y, low_rank_weight=4.0),
            low_rank_orthogonal(Y[np.ix_(rows, labels)], low_rank_weight=4.0),
        )
        assert_allclose(two.pseudo_labels, one.pseudo_labels[np.ix_(rows, labels)], atol=1e-10)

    def test_negative_weight(self, Y):
        with pytest.raises(ValueError, match="low_rank_weight must be at least 0"):
            low_rank_orthogonal(Y, low_rank_weight=-1)


class TestLowRankSparse:
    def test_recovers_a_planted_split(self):
        rng = np.random.default_rng(0)
        low_rank = rng.normal(size=(200, 3)) @ rng.normal(size=(3, 40))
        sparse = np.where(rng.random((200, 40)) < 0.05, 5 * rng.normal(size=(200, 40)), 0)
        result = low_rank_sparse(low_rank + sparse)
        assert result.converged
        assert_allclose(result.low_rank, low_rank, atol=1e-4)
        assert_allclose(result.sparse, sparse, atol=1e-4)

    def test_parts_add_up(self, Y):
        result = low_rank_sparse(Y, sparsity=0.3)
        assert np.linalg.norm(Y - result.low_rank - result.sparse) <= 1e-7 * np.linalg.norm(Y)

    def test_limits_of_the_weight(self, Y):
        assert_allclose(low_rank_sparse(Y, sparsity=100).sparse, 0, atol=1e-12)
        assert_allclose(low_rank_sparse(Y, sparsity=0.01, max_iter=5000).low_rank, 0, atol=1e-6)

    def test_is_optimal(self, Y):
        """No nearby split has a lower value."""
        result = low_rank_sparse(Y, sparsity=0.2)

        def value(G):
            return np.linalg.svd(G, compute_uv=False).sum() + 0.2 * np.abs(Y - G).sum()

        rng = np.random.default_rng(0)
        best = value(result.low_rank)
        for size in (1e-3, 1e-2, 1e-1):
            assert value(result.low_rank + size * rng.normal(size=Y.shape)) > best

    def test_says_when_it_stopped_too_early(self, Y):
        with pytest.warns(ConvergenceWarning, match="low_rank_sparse did not converge within max_iter=1"):
            assert not low_rank_sparse(Y, sparsity=0.1, max_iter=1).converged

    def test_zero_matrix(self):
        assert_array_equal(low_rank_sparse(np.zeros((4, 3))).low_rank, 0)

    def test_bad_weight(self, Y):
        with pytest.raises(ValueError, match="sparsity must be above 0"):
            low_rank_sparse(Y, sparsity=0)
