"""What every partial multi-label estimator must do, as checks that anybody can run on a method of their own.

They stand beside scikit-learn's own (:func:`sklearn.utils.estimator_checks.check_estimator`), which ask what any
classifier must do. In a test file::

    from skpml.utils.estimator_checks import parametrize_with_pml_checks

    @parametrize_with_pml_checks([MyMethod()])
    def test_pml_checks(estimator, check):
        check(estimator)

or, at a prompt, ``check_pml_estimator(MyMethod())``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import scipy.sparse

from skpml.metrics import average_precision
from skpml.reference import CandidateRidge
from skpml.utils._checking import (
    Problem,
    assert_close,
    assert_confidences,
    assert_refused,
    assert_sound,
    fitted,
    made_up_problem,
    prepared,
    table_of_words,
)

__all__ = [
    "PML_CHECKS",
    "check_clean_candidates",
    "check_confidences",
    "check_determinism",
    "check_feature_permutation",
    "check_forms_of_labels",
    "check_inputs_unchanged",
    "check_label_permutation",
    "check_label_without_candidates",
    "check_noisy_candidates",
    "check_one_label",
    "check_pml_estimator",
    "check_probability_is_monotone",
    "check_refit",
    "check_row_of_all_candidates",
    "check_row_permutation",
    "check_rows_without_candidates",
    "check_single_precision",
    "check_sparse_equals_dense",
    "parametrize_with_pml_checks",
]

Check = Callable[[Any], None]

# Average precision a method may lose against ridge where there is no noise to remove.
_CLEAN_LOSS = 0.05


def check_confidences(estimator: Any) -> None:
    """Confidences lie between 0 and 1, are 0 outside the candidates, and higher for true candidates than for false ones.

    A method that believes all candidates alike passes; one that believes none of a row does not.
    """
    problem = made_up_problem(n=240)
    model = fitted(estimator, problem.X, problem.candidates)
    assert_sound(model, problem.X_new, problem.candidates.shape[1])
    assert_confidences(model, problem.candidates)
    if not hasattr(model, "confidences_"):
        return
    believed = (model.confidences_ > 0).any(axis=1)
    assert believed.all(), f"of row {int(believed.argmin())} no candidate is believed at all"
    is_true = problem.truth == 1
    of_true = float(model.confidences_[is_true].mean())
    of_false = float(model.confidences_[(problem.candidates == 1) & ~is_true].mean())
    assert of_true >= of_false - 0.01, (
        f"true candidates are believed less ({of_true:.3f} on average) than false ones ({of_false:.3f})"
    )


def _assert_same_model(
    ours: Any, theirs: Any, problem: Problem, *, rows: Any, features: Any, labels: Any
) -> None:
    """``theirs`` saw the problem with its rows, features and labels in the given order."""
    expected = ours.decision_function(problem.X_new)[:, labels]
    found = theirs.decision_function(problem.X_new[:, features])
    assert_close(found, expected, "scores depend on the order")
    if hasattr(ours, "confidences_"):
        expected = ours.confidences_[rows][:, labels]
        assert_close(theirs.confidences_, expected, "confidences_ depend on the order")


def _check_permutation(estimator: Any, axis: str) -> None:
    # So few rows that maps which draw anchors take all; so many that they draw; and a table full of ties.
    for problem in (made_up_problem(), made_up_problem(n=240), table_of_words()):
        (n, d), c = problem.X.shape, problem.candidates.shape[1]
        order: dict[str, Any] = {"rows": np.arange(n), "features": np.arange(d), "labels": np.arange(c)}
        order[axis] = np.random.default_rng(0).permutation(len(order[axis]))
        ours = fitted(estimator, problem.X, problem.candidates)
        X = problem.X[np.ix_(order["rows"], order["features"])]
        candidates = problem.candidates[np.ix_(order["rows"], order["labels"])]
        _assert_same_model(ours, fitted(estimator, X, candidates), problem, **order)


def check_row_permutation(estimator: Any) -> None:
    """The order of the rows does not matter. A method that draws at random draws in the order of content: see
    :mod:`skpml._ordering`.
    """
    _check_permutation(estimator, "rows")


def check_feature_permutation(estimator: Any) -> None:
    """The order of the features does not matter."""
    _check_permutation(estimator, "features")


def check_label_permutation(estimator: Any) -> None:
    """Labels in another order give the same scores in that order."""
    _check_permutation(estimator, "labels")


def check_inputs_unchanged(estimator: Any) -> None:
    """No byte of the input is changed by fit or by predictions, and read-only arrays are accepted."""
    problem = made_up_problem()
    for convert in (np.ascontiguousarray, np.asfortranarray, scipy.sparse.csr_matrix):
        X: Any = convert(problem.X.copy())
        candidates = problem.candidates.copy()
        buffers = [X.data, X.indices, X.indptr] if scipy.sparse.issparse(X) else [X]
        before = [buffer.tobytes() for buffer in (*buffers, candidates)]
        for buffer in (*buffers, candidates):
            buffer.setflags(write=False)
        model = fitted(estimator, X, candidates)
        for use in (model.decision_function, model.predict_proba, model.predict):
            use(X)
        after = [buffer.tobytes() for buffer in (*buffers, candidates)]
        assert before == after, f"fit or a prediction changed its input ({convert.__name__})"


def check_determinism(estimator: Any) -> None:
    """Same data, same seed: the same bits. A model asked twice answers the same."""
    problem = made_up_problem()
    first, second = (fitted(estimator, problem.X, problem.candidates) for _ in range(2))
    scores = first.decision_function(problem.X_new)
    assert_close(second.decision_function(problem.X_new), scores, "two fits give different scores", 0)
    assert_close(
        first.decision_function(problem.X_new), scores, "asked twice, the model answers differently", 0
    )
    if hasattr(first, "confidences_"):
        assert_close(second.confidences_, first.confidences_, "two fits give different confidences_", 0)


def check_sparse_equals_dense(estimator: Any) -> None:
    """Sparse features give the same model as the same numbers in a dense array, and a model takes either."""
    problem = made_up_problem()
    keep = np.random.default_rng(1).random(problem.X.shape) < 0.6
    X = problem.X * keep
    dense = fitted(estimator, X, problem.candidates)
    expected = dense.decision_function(problem.X_new)
    for form in (scipy.sparse.csr_matrix, scipy.sparse.csc_matrix, scipy.sparse.csr_array):
        model = fitted(estimator, form(X), problem.candidates)
        complaint = f"{form.__name__} and a dense array give different scores"
        assert_close(model.decision_function(problem.X_new), expected, complaint)
        assert_close(dense.decision_function(form(problem.X_new)), expected, complaint)
    sparse_labels = fitted(estimator, X, scipy.sparse.csr_matrix(problem.candidates))
    complaint = "sparse candidates give other scores than dense ones"
    assert_close(sparse_labels.decision_function(problem.X_new), expected, complaint)


def check_forms_of_labels(estimator: Any) -> None:
    """A list of label sets gives the same model as the 0/1 matrix, under the labels' names."""
    problem = made_up_problem()
    names = np.array(["ant", "bee", "cat", "dog", "eel"])
    sets = [set(names[row == 1]) for row in problem.candidates]
    by_matrix = fitted(estimator, problem.X, problem.candidates).decision_function(problem.X_new)
    by_name = fitted(estimator, problem.X, sets)
    assert list(by_name.classes_) == list(names), "classes_ are not the labels' names in order"
    complaint = "label sets and the 0/1 matrix give different scores"
    assert_close(by_name.decision_function(problem.X_new), by_matrix, complaint)


def check_probability_is_monotone(estimator: Any) -> None:
    """For each label, a higher score is a higher probability, above ½ exactly where the label is predicted.

    Where a probability cannot be told from 0 or 1, no order can be kept; that must be rare.
    """
    problem = made_up_problem()
    model = fitted(estimator, problem.X, problem.candidates)
    scores, chances = model.decision_function(problem.X_new), model.predict_proba(problem.X_new)
    open_ended = (chances > 1e-9) & (chances < 1 - 1e-9)
    assert open_ended.mean() > 0.95, f"{1 - open_ended.mean():.0%} of the probabilities are 0 or 1"
    for label in range(scores.shape[1]):
        order = np.argsort(scores[:, label], kind="stable")
        rises = np.diff(scores[order, label]) > 1e-6 * np.ptp(scores)
        steps = np.diff(chances[order, label])
        assert (steps >= 0).all(), f"a higher score of label {label} has a lower probability"
        told_apart = rises & open_ended[order, label][1:]
        assert (steps[told_apart] > 0).all(), f"a higher score of label {label} has the same probability"
    decided = model.predict(problem.X_new) == 1
    assert (decided == (chances > 0.5)).all(), "predict and predict_proba above ½ disagree"


def check_row_of_all_candidates(estimator: Any) -> None:
    """A row whose labels are all candidates tells nothing and breaks nothing; nor do many such rows, nor only such."""
    problem = made_up_problem()
    for count in (1, 30, len(problem.X)):
        candidates = problem.candidates.copy()
        candidates[:count] = 1
        model = fitted(estimator, problem.X, candidates)
        assert_sound(model, problem.X_new, candidates.shape[1])
        assert_confidences(model, candidates)


def check_rows_without_candidates(estimator: Any) -> None:
    """A row without candidates is an error or is kept as a row that has no label, as ``on_empty`` says."""
    problem = made_up_problem()
    candidates = problem.candidates.copy()
    candidates[[3, 17]] = 0
    model = fitted(estimator, problem.X, candidates, on_empty="ignore")
    assert_sound(model, problem.X_new, candidates.shape[1])
    assert_confidences(model, candidates)
    assert_refused(estimator, problem.X, candidates, "row 3", on_empty="raise")


def check_label_without_candidates(estimator: Any) -> None:
    """A label that is nobody's candidate is an error that names it; where allowed, it is hardly ever predicted."""
    problem = made_up_problem()
    candidates = problem.candidates.copy()
    candidates[:, 2] = 0
    candidates[~candidates.any(axis=1), 0] = 1
    assert_refused(estimator, problem.X, candidates, "(2)", on_empty="raise")
    model = fitted(estimator, problem.X, candidates, on_empty="ignore")
    scores = assert_sound(model, problem.X_new, candidates.shape[1])
    assert_confidences(model, candidates)
    predicted = model.predict(problem.X_new)[:, 2].mean()
    assert predicted <= 0.05, f"a label that nobody has is predicted for {predicted:.0%} of the rows"
    top = (scores.argmax(axis=1) == 2).mean()
    assert top <= 0.05, f"a label that nobody has is the first choice for {top:.0%} of the rows"


def check_one_label(estimator: Any) -> None:
    """One label alone works, and is found better than by chance."""
    problem = made_up_problem()
    has_label = problem.truth[:, :1]
    model = fitted(estimator, problem.X, has_label, on_empty="ignore")
    scores = assert_sound(model, problem.X_new, 1)[:, 0]
    assert_confidences(model, has_label)
    true = problem.truth_new[:, 0] == 1
    ordered = (scores[true][:, None] > scores[~true]).mean() + (
        scores[true][:, None] == scores[~true]
    ).mean() / 2
    assert ordered > 0.7, f"only {ordered:.0%} of pairs of a row with the label and one without are in order"


def check_single_precision(estimator: Any) -> None:
    """Single precision in, single precision out, and nearly the scores of double precision."""
    problem = made_up_problem()
    single = fitted(estimator, problem.X.astype(np.float32), problem.candidates)
    scores = assert_sound(single, problem.X_new.astype(np.float32), problem.candidates.shape[1])
    assert scores.dtype == np.float32, f"float32 features give {scores.dtype} scores"
    expected = fitted(estimator, problem.X, problem.candidates).decision_function(problem.X_new)
    alike = float(np.corrcoef(scores.ravel(), expected.ravel())[0, 1])
    assert alike > 0.99, f"scores in single and double precision have a correlation of only {alike:.3f}"


def check_refit(estimator: Any) -> None:
    """Fitted again to other data, with other rows, features and labels, a model is as good as new."""
    first, second = made_up_problem(seed=1, n=80, d=12), made_up_problem()
    once = fitted(estimator, second.X, second.candidates)
    again = prepared(estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        again.fit(first.X, first.candidates[:, :4] | first.truth[:, :4] | np.eye(80, 4, dtype=np.uint8))
        again.fit(second.X, second.candidates)
    expected = once.decision_function(second.X_new)
    assert_close(again.decision_function(second.X_new), expected, "an earlier fit shows in the scores", 0)


def _mean_quality(estimator: Any, labels: str, apart: float) -> float:
    """Average precision on new rows after a fit to the given labels, mean of three problems."""
    values = []
    for seed in range(3):
        problem = made_up_problem(seed, n=240, apart=apart)
        model = fitted(estimator, problem.X, getattr(problem, labels))
        values.append(average_precision(problem.truth_new, model.decision_function(problem.X_new)))
    return float(np.mean(values))


def check_clean_candidates(estimator: Any) -> None:
    """Where no candidate is false, there is nothing to remove, and little may be lost against plain ridge.

    Average precision on new rows, mean of three problems that ridge solves: at most 0.05 below ridge on the same
    candidates, and at most 0.02 below what the method itself makes of noisy candidates.
    """
    clean, noisy = (_mean_quality(estimator, labels, 1.5) for labels in ("truth", "candidates"))
    ridge = _mean_quality(CandidateRidge(), "truth", 1.5)
    assert clean >= ridge - _CLEAN_LOSS, (
        f"average precision {clean:.3f} on clean labels, where ridge has {ridge:.3f}"
    )
    assert clean >= noisy - 0.02, (
        f"average precision {clean:.3f} on clean labels, but {noisy:.3f} on noisy ones"
    )


def check_noisy_candidates(estimator: Any) -> None:
    """From noisy candidates something is learnt: at least half of what plain ridge learns from them.

    Average precision on new rows, mean of three problems of some difficulty; a random order of the labels is nothing.
    """
    ours = _mean_quality(estimator, "candidates", 0.5)
    ridge = _mean_quality(CandidateRidge(), "candidates", 0.5)
    problem, rng = made_up_problem(0, n=240, apart=0.5), np.random.default_rng(0)
    nothing = average_precision(problem.truth_new, rng.normal(size=problem.truth_new.shape))
    assert ours >= (nothing + ridge) / 2, (
        f"average precision {ours:.3f} from noisy candidates; ridge has {ridge:.3f}, a random order {nothing:.3f}"
    )


PML_CHECKS: tuple[Check, ...] = (
    check_confidences,
    check_row_permutation,
    check_feature_permutation,
    check_label_permutation,
    check_inputs_unchanged,
    check_determinism,
    check_sparse_equals_dense,
    check_forms_of_labels,
    check_probability_is_monotone,
    check_row_of_all_candidates,
    check_rows_without_candidates,
    check_label_without_candidates,
    check_one_label,
    check_single_precision,
    check_refit,
    check_clean_candidates,
    check_noisy_candidates,
)


def check_pml_estimator(estimator: Any, *, expected_failures: Mapping[str, str] | None = None) -> list[str]:
    """Run every check on an estimator and raise if any fails, naming all that do.

    Parameters
    ----------
    estimator : instance of an estimator
        Not fitted; each check works on a copy.
    expected_failures : mapping of check name to reason, optional
        Checks that this estimator is known not to pass. No method of this library has any.

    Returns
    -------
    list of str
        Names of the checks that were passed.

    Raises
    ------
    AssertionError
        If a check fails, with a line for each.
    ValueError
        If `expected_failures` names a check that does not exist.
    """
    excused = _excused(expected_failures)
    passed, failed = [], []
    for check in PML_CHECKS:
        try:
            check(estimator)
        except Exception as error:  # a crash is a failed check too
            if check.__name__ not in excused:
                reason = (str(error).strip() or type(error).__name__).splitlines()[0]
                failed.append((f"{check.__name__}: {reason}", error))
        else:
            passed.append(check.__name__)
    if failed:
        lines = "\n".join(f"  {line}" for line, _ in failed)
        raise AssertionError(
            f"{type(estimator).__name__} fails {len(failed)} of {len(PML_CHECKS)} checks:\n{lines}"
        ) from failed[0][1]
    return passed


def parametrize_with_pml_checks(
    estimators: Iterable[Any], *, expected_failures: Mapping[str, str] | None = None
) -> Any:
    """Decorator for a pytest function of ``estimator`` and ``check``: one test a pair.

    Parameters
    ----------
    estimators : iterable of estimators
    expected_failures : mapping of check name to reason, optional
        Checks that are marked as expected to fail.
    """
    import pytest

    excused = _excused(expected_failures)
    return pytest.mark.parametrize(
        ("estimator", "check"),
        [
            pytest.param(
                estimator,
                check,
                id=f"{estimator!r}-{check.__name__}".replace("\n", ""),
                marks=pytest.mark.xfail(reason=excused[check.__name__]) if check.__name__ in excused else (),
            )
            for estimator in estimators
            for check in PML_CHECKS
        ],
    )


def _excused(expected_failures: Mapping[str, str] | None) -> dict[str, str]:
    """The expected failures, each of which must name a check."""
    names = [check.__name__ for check in PML_CHECKS]
    if unknown := sorted(set(expected_failures or {}) - set(names)):
        raise ValueError(f"there is no check {unknown[0]!r}; the checks are {', '.join(names)}.")
    return dict(expected_failures or {})
