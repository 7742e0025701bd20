"""Checks that every partial multi-label estimator must pass, also for methods of other packages.

They complement scikit-learn's own (:func:`sklearn.utils.estimator_checks.check_estimator`), which cover what any
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
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from skpml.metrics import average_precision
from skpml.noise import top_up
from skpml.reference import CandidateRidge

__all__ = ["PML_CHECKS", "check_pml_estimator", "parametrize_with_pml_checks"]

Check = Callable[[Any], None]

# What two orders of summation may differ by, after an iterative solver.
ROUNDING = 1e-6
# Average precision a method may lose against ridge where there is no noise to remove.
_CLEAN_LOSS = 0.05


@dataclass(frozen=True)
class Problem:
    """Training rows and as many new ones, around the sums of the centers of their one to three labels of five."""

    X: NDArray[np.float64]
    truth: NDArray[np.uint8]
    candidates: NDArray[np.uint8]
    X_new: NDArray[np.float64]
    truth_new: NDArray[np.uint8]


def make_problem(seed: int = 0, n: int = 60, d: int = 30, *, apart: float = 1.5) -> Problem:
    """Draw a problem without duplicates or ties; ``apart`` is the spread of the centers relative to the noise."""
    rng = np.random.default_rng(seed)
    n_new, c = n, 5
    truth = np.zeros((n + n_new, c), np.uint8)
    for row in range(n + n_new):
        truth[row, rng.choice(c, size=rng.integers(1, 4), replace=False)] = 1
    # Frequencies that differ keep labels from being exchangeable.
    truth[rng.random(truth.shape) < np.linspace(0, 0.4, c)] = 0
    truth[~truth.any(axis=1), 0] = 1
    X = truth @ rng.normal(scale=apart, size=(c, d)) + rng.normal(size=(n + n_new, d))
    candidates = top_up(truth[:n], 3, random_state=seed)
    return Problem(X[:n], truth[:n], np.asarray(candidates, np.uint8), X[n:], truth[n:])


def prepare(estimator: Any, **parameters: Any) -> Any:
    """Copy an estimator with a fixed seed and the given parameters, if it or an estimator inside has them."""
    model = clone(estimator)
    wanted = {"random_state": 0, **parameters}
    known = {name: name.split("__")[-1] for name in model.get_params()}
    return model.set_params(**{name: wanted[last] for name, last in known.items() if last in wanted})


def fit_quietly(estimator: Any, X: Any, y: Any, **parameters: Any) -> Any:
    model = prepare(estimator, **parameters)
    # Not converged, rows without candidates: not what is checked here.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return model.fit(X, y)


def assert_sound(model: Any, X: NDArray[Any], n_labels: int) -> NDArray[Any]:
    """Assert shapes and ranges of everything a fitted model returns; return the scores of X."""
    shape = (X.shape[0], n_labels)
    scores, chances, decisions = model.decision_function(X), model.predict_proba(X), model.predict(X)
    for name, values in (("decision_function", scores), ("predict_proba", chances), ("predict", decisions)):
        assert values.shape == shape, f"{name} has shape {values.shape}, expected {shape}"
        assert np.isfinite(values).all(), f"{name} holds NaN or infinity"
    assert chances.min() >= 0, "predict_proba is below 0 somewhere"
    assert chances.max() <= 1, "predict_proba is above 1 somewhere"
    assert np.isin(decisions, (0, 1)).all(), "predict returns something else than 0 and 1"
    return scores


def assert_confidences(model: Any, candidates: NDArray[Any]) -> None:
    if not hasattr(model, "confidences_"):
        return
    confidences = model.confidences_
    assert confidences.shape == candidates.shape, "confidences_ has another shape than the candidates"
    assert np.isfinite(confidences).all(), "confidences_ holds NaN or infinity"
    assert confidences.min() >= 0, "a confidence is below 0"
    assert confidences.max() <= 1, "a confidence is above 1"
    assert (confidences[candidates == 0] == 0).all(), (
        "a label outside the candidates has a confidence above 0"
    )


def assert_close(found: Any, expected: Any, message: str, tolerance: float = ROUNDING) -> None:
    """Assert equality up to the tolerance, relative to the largest value if that is above 1."""
    gap = float(np.abs(found - expected).max())
    allowed = tolerance * max(1.0, float(np.abs(expected).max()))
    assert gap <= allowed, f"{message}: they differ by up to {gap:.2g}"


def assert_refused(estimator: Any, X: Any, y: Any, place: str, **policy: str) -> None:
    """Assert that fit raises a ValueError that names the place."""
    try:
        fit_quietly(estimator, X, y, **policy)
    except ValueError as error:
        message = str(error)
    else:
        raise AssertionError(f"fit accepts under {policy} what it should refuse ({place})")
    assert place in message, f"the error does not name the place ({place}): {message}"


def check_confidences(estimator: Any) -> None:
    """Check that confidences are in [0, 1], 0 outside the candidates, and higher for true than for false candidates.

    Equal confidences pass; a row whose confidences are all 0 does not.
    """
    problem = make_problem(n=240)
    model = fit_quietly(estimator, problem.X, problem.candidates)
    assert_sound(model, problem.X_new, problem.candidates.shape[1])
    assert_confidences(model, problem.candidates)
    if not hasattr(model, "confidences_"):
        return
    believed = (model.confidences_ > 0).any(axis=1)
    assert believed.all(), f"all confidences of row {int(believed.argmin())} are 0"
    is_true = problem.truth == 1
    of_true = float(model.confidences_[is_true].mean())
    of_false = float(model.confidences_[(problem.candidates == 1) & ~is_true].mean())
    assert of_true >= of_false - 0.01, (
        f"confidences of true candidates are lower ({of_true:.3f} on average) than of false ones ({of_false:.3f})"
    )


def _check_permutation(estimator: Any, axis: str) -> None:
    # A 0/1 table, as of words: distances tie often, but no two rows are equal.
    wide = make_problem(n=240, d=60, apart=1.0)
    ties = replace(wide, X=(wide.X > 0.5).astype(np.float64), X_new=(wide.X_new > 0.5).astype(np.float64))
    # So few rows that maps which draw anchors take all; so many that they draw; and a table full of ties.
    for problem in (make_problem(), make_problem(n=240), ties):
        rows, features, labels = (np.arange(k) for k in (*problem.X.shape, problem.candidates.shape[1]))
        order = {"rows": rows, "features": features, "labels": labels}[axis]
        order[:] = np.random.default_rng(0).permutation(len(order))
        ours = fit_quietly(estimator, problem.X, problem.candidates)
        X, candidates = problem.X[np.ix_(rows, features)], problem.candidates[np.ix_(rows, labels)]
        theirs = fit_quietly(estimator, X, candidates)
        expected = ours.decision_function(problem.X_new)[:, labels]
        found = theirs.decision_function(problem.X_new[:, features])
        assert_close(found, expected, "scores depend on the order")
        if hasattr(ours, "confidences_"):
            expected = ours.confidences_[rows][:, labels]
            assert_close(theirs.confidences_, expected, "confidences_ depend on the order")


def check_row_permutation(estimator: Any) -> None:
    """Check that the order of the rows does not matter: random draws must follow their content."""
    _check_permutation(estimator, "rows")


def check_feature_permutation(estimator: Any) -> None:
    """Check that the order of the features does not matter."""
    _check_permutation(estimator, "features")


def check_label_permutation(estimator: Any) -> None:
    """Check that labels in another order get the same scores in that order."""
    _check_permutation(estimator, "labels")


def check_inputs_unchanged(estimator: Any) -> None:
    """Check that fit and predictions change no byte of their input, and accept read-only arrays."""
    problem = make_problem()
    for convert in (np.ascontiguousarray, np.asfortranarray, scipy.sparse.csr_matrix):
        X: Any = convert(problem.X.copy())
        candidates = problem.candidates.copy()
        buffers = [X.data, X.indices, X.indptr] if scipy.sparse.issparse(X) else [X]
        before = [buffer.tobytes() for buffer in (*buffers, candidates)]
        for buffer in (*buffers, candidates):
            buffer.setflags(write=False)
        model = fit_quietly(estimator, X, candidates)
        for use in (model.decision_function, model.predict_proba, model.predict):
            use(X)
        after = [buffer.tobytes() for buffer in (*buffers, candidates)]
        assert before == after, f"fit or a prediction changed its input ({convert.__name__})"


def check_determinism(estimator: Any) -> None:
    """Check that the same data and seed give the same bits, in two fits and in two predictions."""
    problem = make_problem()
    first, second = (fit_quietly(estimator, problem.X, problem.candidates) for _ in range(2))
    scores = first.decision_function(problem.X_new)
    assert_close(second.decision_function(problem.X_new), scores, "two fits give different scores", 0)
    assert_close(first.decision_function(problem.X_new), scores, "two predictions of one model differ", 0)
    if hasattr(first, "confidences_"):
        assert_close(second.confidences_, first.confidences_, "two fits give different confidences_", 0)


def check_sparse_equals_dense(estimator: Any) -> None:
    """Check that sparse features give the same model as dense ones, and that a model predicts both."""
    problem = make_problem()
    keep = np.random.default_rng(1).random(problem.X.shape) < 0.6
    X = problem.X * keep
    dense = fit_quietly(estimator, X, problem.candidates)
    expected = dense.decision_function(problem.X_new)
    for form in (scipy.sparse.csr_matrix, scipy.sparse.csc_matrix, scipy.sparse.csr_array):
        model = fit_quietly(estimator, form(X), problem.candidates)
        message = f"{form.__name__} and a dense array give different scores"
        assert_close(model.decision_function(problem.X_new), expected, message)
        assert_close(dense.decision_function(form(problem.X_new)), expected, message)
    sparse_labels = fit_quietly(estimator, X, scipy.sparse.csr_matrix(problem.candidates))
    message = "sparse candidates give other scores than dense ones"
    assert_close(sparse_labels.decision_function(problem.X_new), expected, message)


def check_forms_of_labels(estimator: Any) -> None:
    """Check that a list of label sets gives the same model as the 0/1 matrix, with the names of the labels."""
    problem = make_problem()
    names = np.array(["ant", "bee", "cat", "dog", "eel"])
    sets = [set(names[row == 1]) for row in problem.candidates]
    by_matrix = fit_quietly(estimator, problem.X, problem.candidates).decision_function(problem.X_new)
    by_name = fit_quietly(estimator, problem.X, sets)
    assert list(by_name.classes_) == list(names), "classes_ are not the labels' names in order"
    message = "label sets and the 0/1 matrix give different scores"
    assert_close(by_name.decision_function(problem.X_new), by_matrix, message)


def check_probability_is_monotone(estimator: Any) -> None:
    """Check that probabilities increase with the scores of a label, and are high exactly where it is predicted.

    High is above ``threshold_`` if the scores are probabilities themselves, else above ½. Probabilities that
    round to 0 or 1 have no order; they must be rare.
    """
    problem = make_problem()
    model = fit_quietly(estimator, problem.X, problem.candidates)
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
    limit = model.threshold_ if getattr(model, "_scores_are_probabilities", False) else 0.5
    assert (decided == (chances > limit)).all(), f"predict and predict_proba above {limit:g} disagree"


def check_row_of_all_candidates(estimator: Any) -> None:
    """Check that one, many or only rows whose labels are all candidates can be fitted."""
    problem = make_problem()
    for count in (1, 30, len(problem.X)):
        candidates = problem.candidates.copy()
        candidates[:count] = 1
        model = fit_quietly(estimator, problem.X, candidates)
        assert_sound(model, problem.X_new, candidates.shape[1])
        assert_confidences(model, candidates)


def check_rows_without_candidates(estimator: Any) -> None:
    """Check that ``on_empty`` decides whether a row without candidates is an error or a row without labels."""
    problem = make_problem()
    candidates = problem.candidates.copy()
    candidates[[3, 17]] = 0
    model = fit_quietly(estimator, problem.X, candidates, on_empty="ignore")
    assert_sound(model, problem.X_new, candidates.shape[1])
    assert_confidences(model, candidates)
    assert_refused(estimator, problem.X, candidates, "row 3", on_empty="raise")


def check_label_without_candidates(estimator: Any) -> None:
    """Check that ``on_empty`` decides about labels that are not a candidate of any row; they are rarely predicted."""
    problem = make_problem()
    candidates = problem.candidates.copy()
    candidates[:, 2] = 0
    candidates[~candidates.any(axis=1), 0] = 1
    assert_refused(estimator, problem.X, candidates, "(2)", on_empty="raise")
    model = fit_quietly(estimator, problem.X, candidates, on_empty="ignore")
    scores = assert_sound(model, problem.X_new, candidates.shape[1])
    assert_confidences(model, candidates)
    predicted = model.predict(problem.X_new)[:, 2].mean()
    assert predicted <= 0.05, f"a label that no row has is predicted for {predicted:.0%} of the rows"
    top = (scores.argmax(axis=1) == 2).mean()
    assert top <= 0.05, f"a label that no row has is the first choice for {top:.0%} of the rows"


def check_one_label(estimator: Any) -> None:
    """Check that a single label can be fitted, and is predicted better than by chance."""
    problem = make_problem()
    has_label = problem.truth[:, :1]
    model = fit_quietly(estimator, problem.X, has_label, on_empty="ignore")
    scores = assert_sound(model, problem.X_new, 1)[:, 0]
    assert_confidences(model, has_label)
    ordered = roc_auc_score(problem.truth_new[:, 0], scores)
    assert ordered > 0.7, f"only {ordered:.0%} of pairs of a row with the label and one without are in order"


def check_single_precision(estimator: Any) -> None:
    """Check that float32 features give float32 scores, close to those in double precision."""
    problem = make_problem()
    single = fit_quietly(estimator, problem.X.astype(np.float32), problem.candidates)
    scores = assert_sound(single, problem.X_new.astype(np.float32), problem.candidates.shape[1])
    assert scores.dtype == np.float32, f"float32 features give {scores.dtype} scores"
    expected = fit_quietly(estimator, problem.X, problem.candidates).decision_function(problem.X_new)
    alike = float(np.corrcoef(scores.ravel(), expected.ravel())[0, 1])
    assert alike > 0.99, f"scores in single and double precision have a correlation of only {alike:.3f}"


def check_refit(estimator: Any) -> None:
    """Check that an earlier fit to other rows, features and labels has no effect."""
    first, second = make_problem(seed=1, n=80, d=12), make_problem()
    once = fit_quietly(estimator, second.X, second.candidates)
    again = prepare(estimator)
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        again.fit(first.X, first.candidates[:, :4] | first.truth[:, :4] | np.eye(80, 4, dtype=np.uint8))
        again.fit(second.X, second.candidates)
    expected = once.decision_function(second.X_new)
    assert_close(again.decision_function(second.X_new), expected, "an earlier fit changes the scores", 0)


def _mean_quality(estimator: Any, labels: str, apart: float) -> float:
    """Compute the average precision on new rows after a fit to the given labels, as the mean of three problems."""
    values = []
    for seed in range(3):
        problem = make_problem(seed, n=240, apart=apart)
        model = fit_quietly(estimator, problem.X, getattr(problem, labels))
        values.append(average_precision(problem.truth_new, model.decision_function(problem.X_new)))
    return float(np.mean(values))


def check_clean_candidates(estimator: Any) -> None:
    """Check that little is lost against plain ridge if no candidate is false.

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
    """Check that at least half of what plain ridge learns from noisy candidates is learned.

    Average precision on new rows, mean of three problems of some difficulty; a random order of the labels counts as 0.
    """
    ours = _mean_quality(estimator, "candidates", 0.5)
    ridge = _mean_quality(CandidateRidge(), "candidates", 0.5)
    problem, rng = make_problem(0, n=240, apart=0.5), np.random.default_rng(0)
    nothing = average_precision(problem.truth_new, rng.normal(size=problem.truth_new.shape))
    assert ours >= (nothing + ridge) / 2, (
        f"average precision {ours:.3f} from noisy candidates; ridge has {ridge:.3f}, a random order {nothing:.3f}"
    )


# All of the above, in this order.
PML_CHECKS: tuple[Check, ...] = tuple(check for name, check in vars().items() if name.startswith("check_"))


def check_pml_estimator(estimator: Any, *, expected_failures: Mapping[str, str] | None = None) -> list[str]:
    """Run every check on an estimator and raise if any fails, naming all that do.

    Parameters
    ----------
    estimator : estimator
        Not fitted; each check works on a copy.
    expected_failures : dict of check name to reason or None, default=None
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
    """Decorate a pytest function of ``estimator`` and ``check``: one test per pair.

    Parameters
    ----------
    estimators : iterable of estimators
        Not fitted; each check works on a copy.
    expected_failures : dict of check name to reason or None, default=None
        Checks that are marked as expected to fail.

    Returns
    -------
    decorator
        Of ``pytest.mark.parametrize``.
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
    """Return the expected failures, each of which must name a check."""
    names = [check.__name__ for check in PML_CHECKS]
    if unknown := sorted(set(expected_failures or {}) - set(names)):
        raise ValueError(f"there is no check {unknown[0]!r}; the checks are {', '.join(names)}.")
    return dict(expected_failures or {})
