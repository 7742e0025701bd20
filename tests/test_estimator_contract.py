"""What scikit-learn asks of every classifier, asked of all of ours, with no exception."""

import pytest
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from skpml import PMLMA
from skpml.reference import CandidateRidge

ESTIMATORS = [
    PMLMA(),
    PMLMA(basis="orthogonal", prototypes="least-squares", threshold=0.5),
    PMLMA(feature_map="linear"),
    CandidateRidge(),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_pmlma_passes_every_check_without_a_skip():
    results = check_estimator(PMLMA(), on_skip=None)
    assert {result["status"] for result in results} == {"passed"}
    assert not any(result["expected_to_fail"] for result in results)
    assert len(results) >= 55


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_says_that_it_is_multi_label(estimator):
    assert estimator.__sklearn_tags__().classifier_tags.multi_label
