"""What scikit-learn asks of every classifier, and what we ask of every method, asked of all of ours with no exception."""

import pytest
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from skpml import PMLMA, get_method, list_methods
from skpml.modal_alignment import RecoveredRidge
from skpml.reference import CandidateRidge, Oracle
from skpml.utils.estimator_checks import parametrize_with_pml_checks

pytestmark = pytest.mark.slow

# What needs an extra is checked where that extra is.
REGISTERED = [get_method(name)() for name in list_methods(needs=None)]
# Settings that take another way through the code, and the wrapper that is no method of its own.
OTHERS = [
    PMLMA(feature_map="linear", prototypes="least-squares"),
    PMLMA(tune=True),
    RecoveredRidge(),
    get_method("pml-nd")(damping="identity", credible="share"),
    get_method("p-lenfn")(threshold="auto", exclude="self"),
    Oracle(CandidateRidge()),
]


@parametrize_with_checks(REGISTERED + OTHERS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@parametrize_with_pml_checks(REGISTERED + OTHERS)
def test_pml_checks(estimator, check):
    check(estimator)


def test_every_check_is_passed_without_a_skip():
    results = check_estimator(PMLMA(), on_skip=None)
    assert {result["status"] for result in results} == {"passed"}
    assert not any(result["expected_to_fail"] for result in results)
    assert len(results) >= 55


@pytest.mark.parametrize("estimator", REGISTERED + OTHERS, ids=repr)
def test_says_that_it_is_multi_label(estimator):
    assert estimator.__sklearn_tags__().classifier_tags.multi_label
