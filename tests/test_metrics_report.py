"""Denoising scores, the table of metrics, and the errors that all metrics share."""

import re
from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import UndefinedMetricWarning

from skpml.metrics import METRICS, denoising_scores, evaluate, hamming_loss, ranking_loss

TRUTH = np.array([[1, 0, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1]])
SCORES = np.array([[0.9, 0.2, 0.4], [0.7, 0.6, 0.1], [0.8, 0.1, 0.3], [0.2, 0.1, 0.6]])
DECISIONS = (SCORES > 0.5).astype(int)


@st.composite
def cleaning_cases(draw):
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 5)))
    truth = draw(hnp.arrays(np.bool_, shape))
    candidates = truth | draw(hnp.arrays(np.bool_, shape))
    confidences = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 4))) / 4
    return candidates, truth, confidences


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@given(cleaning_cases(), st.sampled_from([0.25, 0.5, 0.6]))
@pytest.mark.slow
def test_denoising_scores_equal_their_definitions(case, threshold):
    candidates, truth, confidences = case
    cells = [(i, j) for i, j in np.ndindex(truth.shape) if candidates[i, j]]
    wrong = {cell for cell in cells if not truth[cell]}
    removed = {cell for cell in cells if not confidences[cell] > threshold}
    right = set(cells) - wrong
    found = len(wrong & removed)
    pairs = [(confidences[w], confidences[r]) for w in wrong for r in right]
    expected = {
        "precision": found / len(removed) if removed else np.nan,
        "recall": found / len(wrong) if wrong else np.nan,
        "f1": 2 * found / (len(removed) + len(wrong)) if removed or wrong else np.nan,
        "auc": np.mean([1.0 if w < r else 0.5 if w == r else 0.0 for w, r in pairs]) if pairs else np.nan,
    }
    assert denoising_scores(*case, threshold=threshold) == pytest.approx(expected, nan_ok=True)

    mask = np.zeros(truth.shape, dtype=bool)
    for cell in removed:
        mask[cell] = True
    by_mask = denoising_scores(candidates, truth, removed=mask | ~candidates)
    assert by_mask == pytest.approx(expected | {"auc": np.nan}, nan_ok=True)
    both = denoising_scores(candidates, truth, confidences, removed=mask, threshold=-1)
    assert both == pytest.approx(expected, nan_ok=True)


def test_perfect_cleaning():
    candidates = np.ones_like(TRUTH)
    assert denoising_scores(candidates, TRUTH, TRUTH) == {"precision": 1, "recall": 1, "f1": 1, "auc": 1}
    worst = denoising_scores(candidates, TRUTH, 1 - TRUTH)
    assert worst == {"precision": 0, "recall": 0, "f1": 0, "auc": 0}


def test_confidences_outside_the_candidates_are_not_looked_at():
    candidates = np.array([[1, 1, 0]])
    scores = denoising_scores(candidates, [[1, 0, 0]], [[0.9, 0.1, np.nan]])
    assert scores == {"precision": 1, "recall": 1, "f1": 1, "auc": 1}
    with pytest.raises(ValueError, match=r"confidences must be finite; found nan at row 0, column 1"):
        denoising_scores(candidates, [[1, 0, 0]], [[0.9, np.nan, 0.5]])


def test_denoising_auc_of_clean_candidates_is_nan_with_a_warning():
    with pytest.warns(UndefinedMetricWarning, match="AUC of denoising"):
        scores = denoising_scores(TRUTH, TRUTH, SCORES)
    assert np.isnan(scores["auc"])
    assert np.isnan(scores["recall"])


def test_denoising_errors():
    with pytest.raises(ValueError, match="give confidences, removed or both"):
        denoising_scores(TRUTH, TRUTH)
    with pytest.raises(ValueError, match="row 1, column 0 is true but is not one"):
        denoising_scores([[1, 0], [0, 1]], [[1, 0], [1, 0]], removed=np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"candidates has shape \(4, 3\), but removed has shape \(1, 3\)"):
        denoising_scores(TRUTH, TRUTH, removed=np.zeros((1, 3)))
    with pytest.raises(
        ValueError, match=r"candidates has shape \(4, 3\), but confidences has shape \(1, 3\)"
    ):
        denoising_scores(TRUTH, TRUTH, np.zeros((1, 3)))


@pytest.mark.parametrize("convention", ["pml", "sklearn"])
def test_evaluate_gives_every_metric_by_name(convention):
    values = evaluate(TRUTH, SCORES, DECISIONS, convention=convention)
    assert list(values) == list(METRICS)
    for name, metric in METRICS.items():
        options = {"convention": convention} if metric.has_conventions else {}
        given = SCORES if metric.needs == "scores" else DECISIONS
        assert values[name] == metric.function(TRUTH, given, **options)
        assert type(values[name]) is float


def test_evaluate_without_decisions_leaves_their_metrics_out():
    values = evaluate(TRUTH, SCORES)
    assert list(values) == [name for name, metric in METRICS.items() if metric.needs == "scores"]


def test_evaluate_passes_the_convention_on():
    truth = np.vstack([TRUTH, np.zeros(3, dtype=int)])
    scores = np.vstack([SCORES, SCORES[:1]])
    ours, theirs = evaluate(truth, scores), evaluate(truth, scores, convention="sklearn")
    changed = {name for name in ours if ours[name] != theirs[name]}
    assert changed == {name for name, metric in METRICS.items() if metric.has_conventions}
    with pytest.raises(ValueError, match="convention must be one of"):
        evaluate(truth, scores, convention="other")


def test_metrics_are_described_and_fixed():
    truth = np.array([[1, 0, 0], [0, 1, 1], [1, 0, 1]])
    for metric in METRICS.values():
        best = metric.function(truth, truth)
        worst = metric.function(truth, 1 - truth)
        assert (best > worst) == metric.greater_is_better
        assert metric.title
    with pytest.raises(FrozenInstanceError):
        METRICS["coverage"].needs = "decisions"
    with pytest.raises(TypeError):
        METRICS["new"] = METRICS["coverage"]


@pytest.mark.parametrize(
    "container",
    [
        np.ndarray.tolist,
        sp.csr_matrix,
        sp.csc_array,
        pd.DataFrame,
        lambda a: pd.DataFrame(a).astype(object),
        lambda a: a.astype(bool),
        lambda a: a.astype(np.float32),
        np.asfortranarray,
    ],
)
def test_containers_do_not_matter(container):
    expected = evaluate(TRUTH, SCORES, DECISIONS)
    assert evaluate(container(TRUTH), SCORES, container(DECISIONS)) == expected


def test_scores_may_be_float32_or_a_frame():
    expected = evaluate(TRUTH, SCORES)
    assert evaluate(TRUTH, SCORES.astype(np.float32)) == expected
    assert evaluate(TRUTH, pd.DataFrame(SCORES)) == expected


def test_inputs_are_not_modified():
    truth, scores, decisions = TRUTH.copy(), SCORES.copy(), DECISIONS.copy()
    for array in (truth, scores, decisions):
        array.setflags(write=False)
    evaluate(truth, scores, decisions)
    denoising_scores(np.ones_like(truth), truth, scores)


def with_cell(array, value):
    changed = array.astype(float)
    changed[2, 1] = value
    return changed


@pytest.mark.parametrize(
    ("truth", "scores", "message"),
    [
        (with_cell(TRUTH, -1), SCORES, "truth should hold only 0 and 1, but row 2, label 1 is -1.0"),
        (with_cell(TRUTH, np.nan), SCORES, "truth should hold only 0 and 1, but row 2, label 1 is nan"),
        (TRUTH, with_cell(SCORES, np.nan), "scores must be finite; found nan at row 2, column 1"),
        (TRUTH, with_cell(SCORES, -np.inf), "scores must be finite; found -inf at row 2, column 1"),
        (TRUTH, SCORES[:3], "truth has shape (4, 3), but scores has shape (3, 3)"),
        (
            TRUTH,
            SCORES[:, 0],
            "scores must be a matrix with a row per example and a column per label, got shape (4,)",
        ),
        (TRUTH[:0], SCORES[:0], "truth is empty: its shape is (0, 3)"),
        (TRUTH, SCORES.astype(complex), "scores must hold real numbers, not values of type complex128"),
        (TRUTH.astype(str), SCORES, "truth should hold 0 and 1, but its values are of type <U"),
        ([["sea", 1]], [[1, 2]], "truth should hold 0 and 1"),
        (
            np.array([[1, {}]], dtype=object),
            [[1, 2]],
            "truth should hold only 0 and 1, but row 0, label 1 is {}",
        ),
        (TRUTH, np.full(TRUTH.shape, {}), "scores must hold numbers; some of its values are not"),
        (TRUTH[0], SCORES, "truth should be a 2d matrix of 0 and 1, got shape (3,)"),
    ],
)
def test_scores_errors_name_the_place(truth, scores, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        ranking_loss(truth, scores)


def test_decision_errors_name_the_place():
    with pytest.raises(ValueError, match=r"decisions should hold only 0 and 1, but row 0, label 0 is 0\.9"):
        hamming_loss(TRUTH, SCORES)
    with pytest.raises(ValueError, match="but decisions has shape"):
        hamming_loss(TRUTH, DECISIONS[:, :2])


def test_frames_with_labels_in_another_order_are_refused():
    truth = pd.DataFrame(TRUTH, columns=["sea", "lake", "hill"])
    decisions = pd.DataFrame(DECISIONS, columns=["sea", "hill", "lake"])
    with pytest.raises(ValueError, match="column 1 is 'lake' in truth but 'hill' in decisions"):
        hamming_loss(truth, decisions)
    with pytest.raises(ValueError, match="column 1 is 'lake' in truth but 'hill' in scores"):
        ranking_loss(truth, decisions)
    with pytest.raises(ValueError, match="column 1 is 'lake' in candidates but 'hill' in removed"):
        denoising_scores(truth, truth, removed=decisions)


def test_guide_snippets_run():
    guide = Path(__file__).parents[1] / "docs" / "guide" / "metrics.md"
    snippets = re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert snippets
    exec("\n".join(snippets), {})
