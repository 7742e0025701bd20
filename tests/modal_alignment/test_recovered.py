"""Ridge regression on recovered labels."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skpml.modal_alignment import RecoveredRidge, low_rank_orthogonal, low_rank_sparse
from skpml.reference import CandidateRidge


# The objective is a rounding error, whose relative change is not small.
@pytest.mark.filterwarnings("ignore:low_rank_orthogonal did not converge")
def test_without_a_weight_it_is_ridge_on_the_candidates(partial_problem):
    X, candidates, _ = partial_problem
    model = RecoveredRidge(weight=0.0, gamma=0.5).fit(X, candidates)
    assert_allclose(model.recovered_, candidates, atol=1e-12)
    floor = CandidateRidge(gamma=0.5).fit(X, candidates)
    assert_allclose(model.decision_function(X), floor.decision_function(X), atol=1e-8)


def test_it_is_fitted_to_what_the_decomposition_recovers(partial_problem):
    X, candidates, _ = partial_problem
    Y = candidates.astype(float)
    found = {
        recovery: RecoveredRidge(recovery=recovery, weight=1.2).fit(X, candidates)
        for recovery in ("low-rank-orthogonal", "low-rank-sparse", "frequency")
    }
    orthogonal = low_rank_orthogonal(Y, low_rank_weight=1.2)
    assert_array_equal(found["low-rank-orthogonal"].recovered_, orthogonal.pseudo_labels)
    sparse = low_rank_sparse(Y, sparsity=1.2 / np.sqrt(len(Y)))
    assert_allclose(found["low-rank-sparse"].recovered_, sparse.low_rank, atol=1e-2)
    assert_allclose(found["frequency"].recovered_, Y * Y.mean(axis=0))
    for model in found.values():
        mapped = model.feature_map_.transform(X)
        # Normal equations of the ridge.
        residual = mapped.T @ (model.recovered_ - mapped @ model.coef_) - model.coef_
        assert np.abs(residual).max() < 1e-6
        assert_array_equal(model.confidences_, np.clip(model.recovered_, 0, Y))


def test_the_sparse_part_needs_a_weight(partial_problem):
    X, candidates, _ = partial_problem
    with pytest.raises(ValueError, match="weight must be above 0"):
        RecoveredRidge(recovery="low-rank-sparse", weight=0.0).fit(X, candidates)
