"""What the base class makes of scores."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skpml import PMLMA, CandidateLikelihood
from skpml.base import BasePMLClassifier
from skpml.reference import CandidateRidge

if TYPE_CHECKING:
    from collections.abc import Callable


class Known(BasePMLClassifier):
    """Scores are the features themselves."""

    def __init__(self, *, threshold="auto", on_empty="warn"):
        self.threshold = threshold
        self.on_empty = on_empty

    def _fit(self, X, Y):
        return None

    def _scores(self, X):
        return X


class KnownProbabilities(Known):
    _scores_are_probabilities = True


def test_probabilities_of_one_class_per_row_are_only_normalized():
    """A softmax turned .577 and .408 into .782 and .202."""
    eta = np.array([[0.577, 0.408, 0.02], [0.1, 0.2, 0.05], [0.0, 0.0, 0.0]])
    model = KnownProbabilities().fit(eta, ["a", "b", "c"])
    expected = eta / eta.sum(axis=1, keepdims=True).clip(1e-12)
    expected[2] = 1 / 3
    assert_allclose(model.predict_proba(eta), expected)
    assert_array_equal(model.predict(eta), ["a", "b", "a"])


def test_probabilities_of_several_labels_are_returned_as_they_are():
    eta = np.array([[0.9, 0.2], [0.4, 0.6], [0.45, 0.55]])
    model = KnownProbabilities().fit(eta, [[1, 1], [0, 1], [1, 0]])
    assert_array_equal(model.predict_proba(eta), eta)
    assert model.threshold_ == 0.5
    assert_array_equal(model.predict(eta), eta > 0.5)


def test_other_scores_become_a_softmax():
    scores = np.array([[0.5, 0.25], [0.0, 1.0]])
    model = Known().fit(scores, ["a", "b"])
    powers = np.exp(8 * scores)
    assert_allclose(model.predict_proba(scores), powers / powers.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("value", ["error", None, True])
def test_on_empty_is_checked(value):
    with pytest.raises(ValueError, match="on_empty must be"):
        Known(on_empty=value).fit([[1.0], [2.0]], [[1], [0]])


@pytest.mark.parametrize("threshold", ["auto", "non-candidates", 0.4])
@pytest.mark.parametrize("feature_map", ["rbf", "linear"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_weight_is_a_number_of_copies(partial_problem, threshold, feature_map, sparse):
    X, candidates, _ = partial_problem
    weights = np.random.default_rng(0).integers(0, 4, size=len(X))
    X = csr_array(np.where(X > 0, X, 0)) if sparse else X
    model = CandidateRidge(threshold=threshold, feature_map=feature_map)
    one = clone(model).fit(X, candidates, sample_weight=weights)
    rows = np.repeat(np.arange(X.shape[0]), weights)
    two = clone(model).fit(X[rows], candidates[rows])
    assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-8)
    assert one.threshold_ == pytest.approx(two.threshold_, abs=1e-8)
    assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("weights", [[1.0, -1.0, 1.0], [np.nan, 1.0, 1.0], [1.0, 1.0], [0.0, 0.0, 0.0]])
def test_bad_weights_are_refused(weights):
    with pytest.raises(ValueError, match="weight"):
        CandidateRidge().fit(np.eye(3), np.eye(3), sample_weight=weights)


def test_transformers_that_return_frames_do_no_harm(partial_problem):
    X, candidates, _ = partial_problem
    plain = [method().fit(X, candidates).decision_function(X) for method in (CandidateRidge, PMLMA)]
    with config_context(transform_output="pandas"):
        frames = [method().fit(X, candidates).decision_function(X) for method in (CandidateRidge, PMLMA)]
    for one, two in zip(plain, frames, strict=True):
        assert_array_equal(one, two)


@dataclass(kw_only=True, repr=False, eq=False)
class Declared(BasePMLClassifier):
    """A method of another package, one of whose types is imported for the type checker alone."""

    weight: float = 1.0
    order: Literal[1, 2] = 1
    callback: Callable[..., Any] | None = None
    threshold: float | str = "auto"
    on_empty: str = "warn"

    def _fit(self, X, Y):
        return None

    def _scores(self, X):
        return X


def test_types_that_do_not_resolve_are_not_checked():
    X, Y = np.eye(3), [[1, 1, 0], [0, 1, 1], [1, 0, 1]]
    for order in (1, 2, np.int64(2)):
        Declared(order=order).fit(X, Y)
    for bad in ({"order": 3}, {"order": "1"}, {"order": np.ones(2)}, {"weight": -1.0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            Declared(**bad).fit(X, Y)


def test_rows_keep_their_numbers_where_others_have_no_weight():
    Y = np.array([[1, 0], [1, 1], [0, 1], [0, 0]])
    with pytest.raises(ValueError, match=r"1 of 3 rows .*row 3\)"):
        CandidateRidge(on_empty="raise").fit(np.eye(4), Y, sample_weight=[0, 1, 1, 1])


@pytest.mark.parametrize("model", [PMLMA(max_iter=1), CandidateLikelihood(max_iter=1)])
def test_the_warning_names_the_line_that_calls_fit(model):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 4)), rng.integers(0, 2, size=(40, 3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, Y)
    places = [warning.filename for warning in caught if warning.category is ConvergenceWarning]
    assert places
    assert set(places) == {__file__}
