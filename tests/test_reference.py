import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge
from sklearn.preprocessing import OneHotEncoder

from skpml import PMLMA
from skpml.metrics import average_precision
from skpml.reference import CandidateRidge


@pytest.mark.parametrize("gamma", [0.1, 3.0])
def test_is_ridge_regression_on_the_mapped_features(partial_problem, gamma):
    X, candidates, _ = partial_problem
    ours = CandidateRidge(gamma=gamma).fit(X, candidates)
    mapped = ours.feature_map_.transform(X)
    theirs = Ridge(alpha=gamma, fit_intercept=False).fit(mapped, candidates)
    assert_allclose(ours.coef_, theirs.coef_.T, atol=1e-8)
    assert_allclose(ours.decision_function(X), theirs.predict(mapped), atol=1e-8)


def test_is_the_first_step_of_pmlma(partial_problem):
    """PML-MA without neighbours and prototypes starts from this classifier: the floor is the method's own first step."""
    X, candidates, _ = partial_problem
    with pytest.warns(match="did not converge"):
        first = PMLMA(
            low_rank_weight=0, alignment_weight=0, prototype_weight=0, ridge_weight=0.5, max_iter=1
        ).fit(X, candidates)
    assert_allclose(first.coef_, CandidateRidge(gamma=0.5).fit(X, candidates).coef_, atol=1e-10)


def test_truth_is_the_ceiling(partial_problem):
    X, candidates, truth = partial_problem
    floor = CandidateRidge().fit(X[:90], candidates[:90]).decision_function(X[90:])
    ceiling = CandidateRidge().fit(X[:90], truth[:90]).decision_function(X[90:])
    assert average_precision(truth[90:], ceiling) > average_precision(truth[90:], floor)


def test_feature_map_with_sparse_output():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(60, 4)).astype(float)
    model = CandidateRidge(feature_map=OneHotEncoder(handle_unknown="ignore")).fit(
        X, np.eye(3)[rng.integers(0, 3, 60)]
    )
    assert model.predict(X).shape == (60, 3)


def test_has_no_confidences(partial_problem):
    X, candidates, _ = partial_problem
    assert not hasattr(CandidateRidge().fit(X, candidates), "confidences_")


@pytest.mark.parametrize("gamma", [-1, np.nan, "1"])
def test_bad_gamma(partial_problem, gamma):
    X, candidates, _ = partial_problem
    with pytest.raises(ValueError, match="gamma must be"):
        CandidateRidge(gamma=gamma).fit(X, candidates)
