"""Ranking metrics against slow loops written from the definitions, and against scikit-learn."""

import warnings
from functools import partial

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import UndefinedMetricWarning

from skpml import _ordering
from skpml._ordering import row_average_precision
from skpml.metrics import (
    average_precision,
    coverage,
    macro_auc,
    one_error,
    precision_at_k,
    ranking_loss,
)

CONVENTIONAL = [ranking_loss, one_error, coverage, average_precision]
ALL = [*CONVENTIONAL, macro_auc, partial(precision_at_k, k=1)]


@st.composite
def truths_and_scores(draw, min_labels=1):
    """Few distinct scores, so that ties are common; few labels, so that degenerate rows are."""
    shape = draw(st.tuples(st.integers(1, 8), st.integers(min_labels, 5)))
    truth = draw(hnp.arrays(np.int64, shape, elements=st.integers(0, 1)))
    scores = draw(hnp.arrays(np.int64, shape, elements=st.integers(-2, 2)))
    dtype = draw(st.sampled_from([np.float64, np.float32, np.int64]))
    return truth, (scores / 4 if dtype != np.int64 else scores).astype(dtype)


def random_case(n_rows=200, n_labels=6, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.random((n_rows, n_labels)) < 0.3).astype(int), rng.normal(size=(n_rows, n_labels))


def is_degenerate(row):
    return row.sum() in (0, len(row))


def oracle_ranking_loss(truth, scores):
    losses = []
    for y, f in zip(truth, scores, strict=True):
        if is_degenerate(y):
            continue
        pairs = [(p, n) for p in np.flatnonzero(y == 1) for n in np.flatnonzero(y == 0)]
        losses.append(sum(f[p] <= f[n] for p, n in pairs) / len(pairs))
    return np.mean(losses) if losses else np.nan


def oracle_one_error(truth, scores):
    errors = []
    for y, f in zip(truth, scores, strict=True):
        if not is_degenerate(y):
            errors.append(not any(y[j] for j in range(len(y)) if f[j] == max(f)))
    return np.mean(errors) if errors else np.nan


def oracle_coverage(truth, scores):
    depths = []
    for y, f in zip(truth, scores, strict=True):
        depth = 0
        for j in np.flatnonzero(y):
            depth = max(depth, sum(f[other] >= f[j] for other in range(len(y))))
        depths.append(depth)
    return (np.mean(depths) - 1) / truth.shape[1]


def oracle_average_precision(truth, scores):
    values = []
    for y, f in zip(truth, scores, strict=True):
        if is_degenerate(y):
            continue
        shares = []
        for j in np.flatnonzero(y):
            at_or_above = [other for other in range(len(y)) if f[other] >= f[j]]
            shares.append(sum(y[other] for other in at_or_above) / len(at_or_above))
        values.append(np.mean(shares))
    return np.mean(values) if values else np.nan


def oracle_macro_auc(truth, scores):
    areas = []
    for y, f in zip(truth.T, scores.T, strict=True):
        if not is_degenerate(y):
            pairs = [(p, n) for p in f[y == 1] for n in f[y == 0]]
            areas.append(np.mean([1.0 if p > n else 0.5 if p == n else 0.0 for p, n in pairs]))
    return np.mean(areas) if areas else np.nan


ORACLES = [
    (ranking_loss, oracle_ranking_loss),
    (one_error, oracle_one_error),
    (coverage, oracle_coverage),
    (average_precision, oracle_average_precision),
    (macro_auc, oracle_macro_auc),
]


def quiet(metric, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return metric(*args, **kwargs)


@pytest.mark.parametrize(("metric", "oracle"), ORACLES, ids=lambda f: f.__name__)
@given(case=truths_and_scores())
def test_metric_equals_its_definition(metric, oracle, case):
    assert quiet(metric, *case) == pytest.approx(oracle(*case), nan_ok=True)


@pytest.mark.parametrize(
    ("metric", "theirs"),
    [
        (ranking_loss, sk.label_ranking_loss),
        (coverage, sk.coverage_error),
        (average_precision, sk.label_ranking_average_precision_score),
    ],
    ids=lambda f: f.__name__,
)
@given(case=truths_and_scores(min_labels=2))
@pytest.mark.slow
def test_sklearn_convention_equals_scikit_learn(metric, theirs, case):
    assert metric(*case, convention="sklearn") == pytest.approx(theirs(*case))


def test_sklearn_convention_of_one_error_keeps_degenerate_rows_by_definition():
    truth = np.array([[0, 0], [1, 1], [1, 0], [1, 0]])
    scores = np.array([[2, 1], [2, 1], [2, 1], [1, 2]])
    assert one_error(truth, scores, convention="sklearn") == 0.5  # the row without labels, and the last
    assert one_error(truth, scores, convention="pml") == 0.5  # the last of the two that are left
    assert one_error(truth[:3], scores[:3], convention="sklearn") == pytest.approx(1 / 3)
    assert one_error(truth[:3], scores[:3], convention="pml") == 0.0


def test_conventions_differ_by_the_degenerate_rows_only():
    truth, scores = random_case()
    n_degenerate = sum(is_degenerate(row) for row in truth)
    n_left = len(truth) - n_degenerate
    assert n_degenerate >= 10
    theirs = ranking_loss(truth, scores, convention="sklearn")
    assert ranking_loss(truth, scores) == pytest.approx(theirs * len(truth) / n_left)
    theirs = average_precision(truth, scores, convention="sklearn")
    assert average_precision(truth, scores) == pytest.approx((theirs * len(truth) - n_degenerate) / n_left)
    theirs = coverage(truth, scores, convention="sklearn")
    assert coverage(truth, scores) == pytest.approx((theirs - 1) / 6)


@given(truths_and_scores(), st.randoms(use_true_random=False))
@pytest.mark.slow
def test_order_of_rows_and_labels_does_not_matter(case, random):
    truth, scores = case
    rows = random.sample(range(truth.shape[0]), truth.shape[0])
    labels = random.sample(range(truth.shape[1]), truth.shape[1])
    for metric in ALL:
        shuffled = quiet(metric, truth[rows][:, labels], scores[rows][:, labels])
        assert shuffled == pytest.approx(quiet(metric, truth, scores), nan_ok=True)


@given(truths_and_scores())
@pytest.mark.slow
def test_only_the_order_of_scores_matters(case):
    truth, scores = case
    for metric in ALL:
        rescaled = quiet(metric, truth, np.exp(2 * scores.astype(float)) - 5)
        assert rescaled == pytest.approx(quiet(metric, truth, scores), nan_ok=True)


def test_perfect_and_reversed_rankings():
    truth, _ = random_case()
    noise = np.random.default_rng(1).random(truth.shape) / 2
    n_true = truth.sum(axis=1)
    perfect, reverse = truth + noise, -truth + noise
    assert ranking_loss(truth, perfect) == 0
    assert ranking_loss(truth, reverse) == 1
    assert one_error(truth, perfect) == 0
    assert one_error(truth, reverse) == 1
    assert coverage(truth, perfect) == pytest.approx((n_true.mean() - 1) / 6)
    assert coverage(truth, reverse) == pytest.approx((6 * (n_true > 0).mean() - 1) / 6)
    assert average_precision(truth, perfect) == 1
    proper = n_true[(n_true > 0) & (n_true < 6)]
    worst = [np.mean([(m + 1) / (6 - t + m + 1) for m in range(t)]) for t in proper]
    assert average_precision(truth, reverse) == pytest.approx(np.mean(worst))


def test_all_scores_tied():
    truth, _ = random_case()
    flat = np.zeros(truth.shape)
    n_true = truth.sum(axis=1)
    proper = n_true[(n_true > 0) & (n_true < 6)]
    assert ranking_loss(truth, flat) == 1
    assert one_error(truth, flat) == 0
    assert coverage(truth, flat) == pytest.approx((6 * (n_true > 0).mean() - 1) / 6)
    assert average_precision(truth, flat) == pytest.approx(proper.mean() / 6)
    assert macro_auc(truth, flat) == 0.5
    assert precision_at_k(truth, flat, 2) == pytest.approx(n_true.mean() / 6)


@pytest.mark.parametrize("metric", [ranking_loss, one_error, average_precision], ids=lambda f: f.__name__)
@pytest.mark.parametrize("truth", [[[0, 0], [1, 1]], [[1], [0]]])
def test_nothing_but_degenerate_rows_is_nan_with_a_warning(metric, truth):
    with pytest.warns(UndefinedMetricWarning, match="every row has no label or all labels"):
        assert np.isnan(metric(truth, np.zeros(np.shape(truth))))


def test_coverage_is_defined_when_all_rows_are_degenerate():
    assert coverage([[0, 0], [0, 0]], [[1, 2], [3, 4]]) == -0.5
    assert coverage([[0, 0], [1, 1]], [[1, 2], [3, 4]]) == 0.0
    assert coverage([[0, 0], [1, 1]], [[1, 2], [3, 4]], convention="sklearn") == 1.0


def test_macro_auc_leaves_out_labels_of_one_class():
    truth, scores = random_case()
    truth[:, 0], truth[:, 3] = 0, 1
    assert macro_auc(truth, scores) == pytest.approx(
        macro_auc(truth[:, [1, 2, 4, 5]], scores[:, [1, 2, 4, 5]])
    )
    with pytest.warns(UndefinedMetricWarning, match="macro AUC"):
        assert np.isnan(macro_auc(truth[:, [0, 3]], scores[:, [0, 3]]))


@given(truths_and_scores(), st.data())
@pytest.mark.slow
def test_precision_at_k_is_the_mean_over_random_tie_breaks(case, data):
    truth, scores = case
    k = data.draw(st.integers(1, truth.shape[1]))
    expected = []
    for y, f in zip(truth, scores, strict=True):
        boundary = sorted(f, reverse=True)[k - 1]
        places = k - sum(f > boundary)
        expected.append((sum(y[f > boundary]) + places * np.mean(y[f == boundary])) / k)
    assert precision_at_k(truth, scores, k) == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("k", [0, 4, 1.0, True, "1"])
def test_precision_at_k_rejects_a_wrong_k(k):
    with pytest.raises(ValueError, match="k must be an integer from 1 to the number of labels, 3"):
        precision_at_k([[1, 0, 1]], [[1, 2, 3]], k)


@pytest.mark.parametrize("metric", CONVENTIONAL, ids=lambda f: f.__name__)
def test_unknown_convention(metric):
    with pytest.raises(ValueError, match="convention must be one of 'pml', 'sklearn', got 'mulan'"):
        metric([[1, 0]], [[1, 2]], convention="mulan")


def test_blocks_of_rows_join_seamlessly(monkeypatch):
    truth, scores = random_case(n_rows=23)
    whole = [ranking_loss(truth, scores), average_precision(truth, scores)]
    monkeypatch.setattr(_ordering, "_CELLS_AT_ONCE", 30)
    assert [ranking_loss(truth, scores), average_precision(truth, scores)] == whole


def test_large_integer_scores_are_not_rounded_into_ties():
    assert ranking_loss([[1, 0]], np.array([[2**60 + 1, 2**60]])) == 0
    assert ranking_loss([[1, 0]], np.array([[2, 1]], dtype=np.uint8)) == 0


@pytest.mark.parametrize("namespace", ["torch", "array_api_strict"])
def test_average_precision_of_rows_is_the_same_on_every_namespace(namespace):
    xp = pytest.importorskip(namespace)
    truth, scores = random_case()
    scores = scores.round(1)
    per_row = row_average_precision(truth, scores)
    assert len(per_row) == (truth.any(axis=1) & ~truth.all(axis=1)).sum()
    assert per_row.mean() == average_precision(truth, scores)
    elsewhere = row_average_precision(xp.asarray(truth.astype(float)), xp.asarray(scores))
    np.testing.assert_allclose(np.asarray(elsewhere), per_row, rtol=1e-15)
