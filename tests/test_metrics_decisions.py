"""Decision metrics against slow loops written from the definitions, and against scikit-learn."""

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from skpml.metrics import (
    example_accuracy,
    example_f1,
    hamming_loss,
    macro_f1,
    micro_f1,
    subset_accuracy,
)

ALL = [hamming_loss, subset_accuracy, micro_f1, macro_f1, example_f1, example_accuracy]


@st.composite
def truths_and_decisions(draw, min_labels=1):
    shape = draw(st.tuples(st.integers(1, 8), st.integers(min_labels, 5)))
    labels = hnp.arrays(np.int64, shape, elements=st.integers(0, 1))
    return draw(labels), draw(labels)


def f1(y, h, if_empty):
    hits = sum(a and b for a, b in zip(y, h, strict=True))
    total = sum(y) + sum(h)
    return 2 * hits / total if total else if_empty


def jaccard(y, h):
    either = sum(a or b for a, b in zip(y, h, strict=True))
    return sum(a and b for a, b in zip(y, h, strict=True)) / either if either else 1.0


@given(truths_and_decisions())
def test_metrics_equal_their_definitions(case):
    truth, decisions = case
    rows = list(zip(truth.tolist(), decisions.tolist(), strict=True))
    columns = list(zip(truth.T.tolist(), decisions.T.tolist(), strict=True))
    cells = list(zip(truth.ravel().tolist(), decisions.ravel().tolist(), strict=True))
    assert hamming_loss(*case) == pytest.approx(np.mean([a != b for a, b in cells]))
    assert subset_accuracy(*case) == pytest.approx(np.mean([y == h for y, h in rows]))
    assert micro_f1(*case) == pytest.approx(f1(*zip(*cells, strict=True), if_empty=0.0))
    assert macro_f1(*case) == pytest.approx(np.mean([f1(y, h, 0.0) for y, h in columns]))
    assert example_f1(*case) == pytest.approx(np.mean([f1(y, h, 1.0) for y, h in rows]))
    assert example_accuracy(*case) == pytest.approx(np.mean([jaccard(y, h) for y, h in rows]))


@given(truths_and_decisions(min_labels=2), st.sampled_from([0.0, 1.0]))
@pytest.mark.slow
def test_metrics_equal_scikit_learns_from_two_labels_on(case, zero_division):
    rule = {"zero_division": zero_division}
    assert hamming_loss(*case) == pytest.approx(sk.hamming_loss(*case))
    assert subset_accuracy(*case) == pytest.approx(sk.accuracy_score(*case))
    assert micro_f1(*case, **rule) == pytest.approx(sk.f1_score(*case, average="micro", **rule))
    assert macro_f1(*case, **rule) == pytest.approx(sk.f1_score(*case, average="macro", **rule))
    assert example_f1(*case, **rule) == pytest.approx(sk.f1_score(*case, average="samples", **rule))
    assert example_accuracy(*case, **rule) == pytest.approx(
        sk.jaccard_score(*case, average="samples", **rule)
    )


@given(truths_and_decisions(), st.randoms(use_true_random=False))
def test_order_of_rows_and_labels_does_not_matter(case, random):
    truth, decisions = case
    rows = random.sample(range(truth.shape[0]), truth.shape[0])
    labels = random.sample(range(truth.shape[1]), truth.shape[1])
    for metric in ALL:
        shuffled = metric(truth[rows][:, labels], decisions[rows][:, labels])
        assert shuffled == pytest.approx(metric(truth, decisions))


def test_right_and_wrong_everywhere():
    truth = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 0]])
    assert hamming_loss(truth, truth) == 0
    assert hamming_loss(truth, 1 - truth) == 1
    for metric in ALL[1:]:
        assert metric(truth, truth) == 1
        assert metric(truth, 1 - truth) == 0


def test_one_label_is_scored_as_a_label_not_as_two_classes():
    truth, decisions = np.array([[1], [0], [0], [0]]), np.array([[1], [1], [0], [0]])
    assert micro_f1(truth, decisions) == pytest.approx(2 / 3)
    assert example_f1(truth, decisions) == pytest.approx(3 / 4)


def test_zero_division_defaults():
    nothing = np.zeros((2, 3), dtype=int)
    assert micro_f1(nothing, nothing) == macro_f1(nothing, nothing) == 0.0
    assert example_f1(nothing, nothing) == example_accuracy(nothing, nothing) == 1.0
