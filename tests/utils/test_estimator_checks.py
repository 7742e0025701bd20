"""Each check must fail on an estimator that is broken in just the way it looks for, and on no other account."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone

from skpml import PMLMA
from skpml.reference import CandidateRidge
from skpml.utils import estimator_checks
from skpml.utils.estimator_checks import PML_CHECKS, check_pml_estimator, parametrize_with_pml_checks

SOUND = CandidateRidge(feature_map="linear")


class Broken(CandidateRidge):
    """Ridge with one fault."""

    def __init__(self, *, fault="", on_empty="warn", random_state=None):
        super().__init__(feature_map="linear", on_empty=on_empty, random_state=random_state)
        self.fault = fault

    def fit(self, X, y):
        if self.fault == "remembers its first fit":
            fitted_before = hasattr(self, "coef_")
            super().fit(X, y)
            self.coef_ = self.coef_ * (2 if fitted_before else 1)
            return self
        if self.fault == "writes to its input" and not scipy.sparse.issparse(X):
            X.setflags(write=True)
            X[0, 0] += 1
        if self.fault == "accepts anything":
            return clone(self).set_params(on_empty="ignore", fault="").fit(X, y)
        return super().fit(X, y)

    def _fit(self, X, Y):
        if self.fault == "weights rows by position":
            Y = Y * np.linspace(0.5, 1, len(Y))[:, None].astype(Y.dtype)
        if self.fault == "crashes on a row of all candidates" and Y.all(axis=1).any():
            raise ZeroDivisionError
        if self.fault == "divides by the number of candidates":
            Y = Y / Y.sum(axis=1, keepdims=True)
        if self.fault == "ranks labels against each other" and Y.shape[1] == 1:
            Y = Y * 0
        if self.fault == "learns from the least likely candidate":
            unlikely = np.where(Y > 0, super()._fit(X, Y), np.inf)
            Y = Y * (unlikely == unlikely.min(axis=1, keepdims=True))
        if self.fault == "drops rows by position" and len(Y) > 100:
            X, Y = X[:100], Y[:100]
        if self.fault == "turns clean labels round" and Y.sum(axis=1).min() < 3:
            Y = 1 - Y
        scores = super()._fit(X, Y)
        if self.fault == "other scores for sparse features" and scipy.sparse.issparse(X):
            self.coef_ = self.coef_ + 1e-3
        if self.fault == "weights features by position":
            self.coef_ = self.coef_ * np.linspace(0.9, 1, len(self.coef_))[:, None].astype(X.dtype)
        if self.fault == "confidence outside the candidates":
            self.confidences_ = np.clip(scores, 0, 1)
        if self.fault == "believes what is unlikely":
            self.confidences_ = Y * (1 - np.clip(scores, 0, 1))
        if self.fault == "believes nothing":
            self.confidences_ = 0 * Y
        if self.fault == "draws without a seed":
            self.coef_ = self.coef_ + 1e-9 * np.random.default_rng().normal(size=self.coef_.shape)
        return scores

    def _scores(self, X):
        scores = super()._scores(X)
        if self.fault == "adds the label's position":
            return scores + 0.01 * np.arange(scores.shape[1])
        if self.fault == "shifts one label up":
            return scores + np.eye(1, scores.shape[1], 2)
        if self.fault == "doubles the precision":
            return scores.astype(np.float64)
        if self.fault == "nothing in single precision" and X.dtype == np.float32:
            return 1e-3 * scores[::-1]
        return scores

    def predict_proba(self, X):
        chances = super().predict_proba(X)
        return np.round(chances, 2) if self.fault == "rounded probabilities" else chances


@pytest.mark.parametrize(
    ("fault", "caught_by"),
    [
        ("confidence outside the candidates", "check_confidences"),
        ("believes what is unlikely", "check_confidences"),
        ("believes nothing", "check_confidences"),
        ("learns from the least likely candidate", "check_noisy_candidates"),
        ("drops rows by position", "check_row_permutation"),
        ("remembers its first fit", "check_refit"),
        ("nothing in single precision", "check_single_precision"),
        ("weights rows by position", "check_row_permutation"),
        ("weights features by position", "check_feature_permutation"),
        ("adds the label's position", "check_label_permutation"),
        ("writes to its input", "check_inputs_unchanged"),
        ("draws without a seed", "check_determinism"),
        ("other scores for sparse features", "check_sparse_equals_dense"),
        ("rounded probabilities", "check_probability_is_monotone"),
        ("crashes on a row of all candidates", "check_row_of_all_candidates"),
        ("divides by the number of candidates", "check_rows_without_candidates"),
        ("accepts anything", "check_rows_without_candidates"),
        ("accepts anything", "check_label_without_candidates"),
        ("shifts one label up", "check_label_without_candidates"),
        ("ranks labels against each other", "check_one_label"),
        ("doubles the precision", "check_single_precision"),
        ("turns clean labels round", "check_clean_candidates"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_broken_estimator_is_caught(fault, caught_by):
    check = getattr(estimator_checks, caught_by)
    check(Broken())
    with pytest.raises((AssertionError, ZeroDivisionError, ValueError)):
        check(Broken(fault=fault))


def test_names_of_labels_in_the_wrong_order_are_caught():
    class Renamed(Broken):
        def fit(self, X, y):
            super().fit(X, y)
            self.classes_ = self.classes_[::-1]
            return self

    with pytest.raises(AssertionError, match="names in order"):
        estimator_checks.check_forms_of_labels(Renamed())


@pytest.mark.parametrize("estimator", [SOUND, PMLMA()], ids=repr)
@pytest.mark.slow
def test_a_sound_estimator_passes_all(estimator):
    assert check_pml_estimator(estimator) == [check.__name__ for check in PML_CHECKS]


class LooksAtACorner(Broken):
    def _fit(self, X, Y):
        scores = super()._fit(X, Y)
        self.coef_ = self.coef_ * (1 + 1e-4 * abs(X[0, 0]))
        return scores


@pytest.mark.slow
def test_all_failures_are_named_at_once():
    expected = (
        "(?s)fails 2 of 17.*check_row_perm.*depend on the order.*check_feature_perm.*depend on the order"
    )
    with pytest.raises(AssertionError, match=expected):
        check_pml_estimator(LooksAtACorner())


@pytest.mark.slow
def test_expected_failures_are_excused_and_must_exist():
    passed = check_pml_estimator(
        Broken(fault="rounded probabilities"),
        expected_failures={
            "check_probability_is_monotone": "shown to people with two digits",
        },
    )
    assert len(passed) == len(PML_CHECKS) - 1
    with pytest.raises(ValueError, match="there is no check 'check_everything'"):
        check_pml_estimator(SOUND, expected_failures={"check_everything": "why not"})


def test_every_check_of_the_module_is_run():
    named = {name for name in vars(estimator_checks) if name.startswith("check_")} - {"check_pml_estimator"}
    assert named == {check.__name__ for check in PML_CHECKS}


@parametrize_with_pml_checks([SOUND])
def test_as_a_decorator(estimator, check):
    check(estimator)


class OtherThreshold(CandidateRidge):
    """Probabilities that are cut at another value than ½."""

    _scores_are_probabilities = True

    def _scores(self, X):
        return 1 / (1 + np.exp(-super()._scores(X)))


def test_probabilities_may_have_another_threshold():
    estimator_checks.check_probability_is_monotone(OtherThreshold(threshold=0.6))
