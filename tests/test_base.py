"""What the base class makes of scores."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skpml.base import BasePMLClassifier


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
