"""Candidate-label generators: what always holds, and what holds on average."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import chisquare
from sklearn.metrics import roc_auc_score

from skpml import noise
from skpml.noise import flip, instance_dependent, label_dependent, top_up

SEEDS = st.integers(0, 2**32 - 1)


def truths(min_rows=1):
    shapes = st.tuples(st.integers(min_rows, 10), st.integers(1, 6))
    return hnp.arrays(np.int64, shapes, elements=st.integers(0, 1))


def features_of(truth):
    return np.random.default_rng(len(truth)).normal(size=(len(truth), 3))


# Each generator with one number that says how much noise, so that what they promise alike is tested alike.
GENERATORS = {
    "top_up": lambda truth, amount, **kw: top_up(truth, 1 + int(amount), **kw),
    "flip": lambda truth, amount, **kw: flip(truth, min(1.0, amount / 4), **kw),
    "label_dependent": label_dependent,
    "instance_dependent": lambda truth, amount, **kw: instance_dependent(
        features_of(truth), truth, amount, **kw
    ),
}
every_generator = pytest.mark.parametrize("generator", GENERATORS.values(), ids=GENERATORS.keys())


@every_generator
@settings(max_examples=40, deadline=None)
@given(truth=truths(min_rows=2), amount=st.floats(0, 8), seed=SEEDS)
@pytest.mark.slow
def test_candidates_hold_the_truth_and_repeat_by_seed(generator, truth, amount, seed):
    before = truth.copy()
    truth.setflags(write=False)
    candidates = generator(truth, amount, random_state=seed)
    assert candidates.shape == truth.shape
    assert candidates.dtype == np.uint8
    assert np.isin(candidates, [0, 1]).all()
    assert (candidates >= truth).all()
    assert (truth == before).all()
    assert (generator(truth, amount, random_state=seed) == candidates).all()


@every_generator
def test_sources_of_randomness(generator):
    truth = (np.random.default_rng(0).random((50, 8)) < 0.2).astype(int)
    by_int = generator(truth, 2, random_state=7)
    assert (generator(truth, 2, random_state=np.random.RandomState(7)) == by_int).all()
    assert (generator(truth, 2, random_state=8) != by_int).any()
    assert (generator(truth, 2) >= truth).all()
    by_generator = [generator(truth, 2, random_state=np.random.default_rng(7)) for _ in range(2)]
    assert (by_generator[0] == by_generator[1]).all()
    stream = np.random.default_rng(7)
    assert (generator(truth, 2, random_state=stream) != generator(truth, 2, random_state=stream)).any()


@every_generator
@pytest.mark.parametrize(
    "container", [np.ndarray.tolist, sp.csr_array, pd.DataFrame, lambda a: a.astype(bool)]
)
def test_containers_do_not_matter(generator, container, monkeypatch):
    truth = (np.random.default_rng(0).random((20, 5)) < 0.3).astype(int)
    X = features_of(truth)
    monkeypatch.setitem(globals(), "features_of", lambda _: X)
    expected = generator(truth, 2, random_state=0)
    assert (generator(container(truth), 2, random_state=0) == expected).all()


@every_generator
@pytest.mark.parametrize("truth", [[[1], [0], [1]], [[1, 1], [1, 1]], [[0, 0], [0, 0]]])
def test_edges(generator, truth):
    """One label, no negatives, no positives: with noise enough for all, all become candidates."""
    assert (generator(truth, 9, random_state=0) == 1).all()
    if generator is not GENERATORS["top_up"]:
        assert (generator(truth, 0, random_state=0) == truth).all()


@every_generator
def test_truth_must_be_zero_or_one(generator):
    truth = np.array([[0, 1], [2, 0], [1, 1]])
    with pytest.raises(ValueError, match="truth should hold only 0 and 1, but row 1, label 0 is 2"):
        generator(truth, 1)


@given(truth=truths(), k=st.integers(1, 9), seed=SEEDS)
def test_top_up_reaches_exactly_k(truth, k, seed):
    n_candidates = top_up(truth, k, random_state=seed).sum(axis=1)
    expected = [min(max(sum(row), k), len(row)) for row in truth.tolist()]
    assert n_candidates.tolist() == expected


def test_top_up_is_uniform_over_the_negatives():
    truth = np.zeros((20_000, 6), dtype=int)
    truth[:, 2] = 1
    candidates = top_up(truth, 3, random_state=0)
    negatives = candidates[:, [0, 1, 3, 4, 5]]
    # Every pair of negatives, not only every negative, is equally likely.
    pairs = np.unique(negatives @ (1 << np.arange(5)), return_counts=True)[1]
    assert len(pairs) == 10
    assert chisquare(pairs).pvalue > 0.01


@pytest.mark.parametrize("k", [0, -1, 1.5, 2.0, True, "2", None])
def test_top_up_rejects_a_wrong_k(k):
    with pytest.raises(ValueError, match="k must be a positive integer"):
        top_up([[1, 0]], k)


def test_top_up_takes_numpy_integers():
    assert top_up([[1, 0, 0]], np.int32(2)).sum() == 2


def test_flip_keeps_each_labels_rate():
    rng = np.random.default_rng(0)
    truth = (rng.random((20_000, 4)) < 0.3).astype(int)
    rates = np.array([0.0, 0.1, 0.5, 1.0])
    flipped = np.ma.masked_array(flip(truth, rates, random_state=0), truth == 1).mean(axis=0)
    assert flipped[0] == 0
    assert flipped[3] == 1
    assert np.allclose(flipped, rates, atol=0.015)
    assert (flip(truth, 0.3, random_state=1) == flip(truth, [0.3] * 4, random_state=1)).all()


@pytest.mark.parametrize(
    ("rates", "message"),
    [
        (1.1, "rates must lie between 0 and 1; found 1.1"),
        ([0.1, -0.1], "rates must lie between 0 and 1; found -0.1 at label 1"),
        (np.nan, "rates must lie between 0 and 1; found nan"),
        ([0.1, 0.2, 0.3], "rates must be one number or one per label (2), got shape (3,)"),
        ([[0.1, 0.2]], "got shape (1, 2)"),
    ],
)
def test_flip_rejects_wrong_rates(rates, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        flip([[1, 0]], rates)


def two_families(n_rows=4000, seed=0):
    """Labels 0-3 go together and labels 4-7 do; the features say which family a row is of."""
    rng = np.random.default_rng(seed)
    family = rng.integers(2, size=n_rows)
    inside = (np.arange(8) // 4) == family[:, np.newaxis]
    truth = (rng.random((n_rows, 8)) < np.where(inside, 0.4, 0.02)).astype(int)
    X = np.column_stack([family + rng.normal(size=n_rows), rng.normal(size=(n_rows, 4))])
    return X, truth, inside


def assert_uniform(candidates, truth, inside, mean_added):
    """Each negative of a row is as likely as the others, in and out of the row's family."""
    negative = truth == 0
    n_negative = negative.sum(axis=1, keepdims=True)
    excess = candidates - np.minimum(1, mean_added / np.maximum(n_negative, 1))
    assert abs(excess[negative & inside].mean()) < 0.015
    assert abs(excess[negative & ~inside].mean()) < 0.015


@pytest.mark.parametrize("mean_added", [0.3, 1.0, 2.5])
def test_mean_added_is_met(mean_added):
    X, truth, _ = two_families()
    truth[:, 4:] = 0  # at least four negatives in every row, so that no row is short of them
    for candidates in (
        label_dependent(truth, mean_added, random_state=0),
        instance_dependent(X, truth, mean_added, random_state=0),
        instance_dependent(X, truth, mean_added, sharpness=30.0, random_state=0),
    ):
        assert (candidates - truth).sum(axis=1).mean() == pytest.approx(mean_added, abs=0.06)


@given(
    weights=hnp.arrays(np.float64, (4, 6), elements=st.floats(-2000, 2000)),
    eligible=hnp.arrays(np.bool_, (4, 6)),
    mean_added=st.floats(0, 7),
)
def test_inclusion_probabilities_sum_to_what_was_asked(weights, eligible, mean_added):
    probabilities = noise._inclusion_probabilities(weights, eligible, mean_added)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    assert (probabilities[~eligible] == 0).all()
    assert probabilities.sum(axis=1) == pytest.approx(np.minimum(eligible.sum(axis=1), mean_added), abs=1e-9)
    for row in range(4):
        kept = np.flatnonzero(eligible[row])
        order = kept[np.argsort(weights[row, kept])]
        assert (np.diff(probabilities[row, order]) >= -1e-12).all()


def test_inclusion_probabilities_are_proportional_until_one_is_certain():
    weights = np.log([[1.0, 2.0, 5.0, 9.0]])
    all_cells = np.ones((1, 4), dtype=bool)
    assert noise._inclusion_probabilities(weights, all_cells, 1.0) * 17 == pytest.approx(np.exp(weights))
    capped = noise._inclusion_probabilities(weights, all_cells, 3.0)
    # 9 and 5 are certain (5 would get 10/8); 1 and 2 share the one that is left.
    assert capped == pytest.approx(np.array([[1 / 3, 2 / 3, 1.0, 1.0]]))


def test_label_dependent_prefers_labels_that_go_together():
    _, truth, inside = two_families()
    candidates = label_dependent(truth, 1.5, random_state=0)
    negative = (truth == 0) & (truth.sum(axis=1, keepdims=True) > 0)
    added_inside = candidates[negative & inside].mean()
    added_outside = candidates[negative & ~inside].mean()
    assert added_inside > 2.5 * added_outside
    assert added_outside > 0


@pytest.mark.slow
def test_label_dependent_weights_by_hand():
    # Label 0 meets label 1 twice, label 2 once, label 3 never; the last row is the one to be filled.
    truth = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 0]])
    added = np.mean([label_dependent(truth, 1.0, random_state=s)[3, 1:] for s in range(4000)], axis=0)
    assert added == pytest.approx(np.array([3, 2, 1]) / 6, abs=0.03)


@pytest.mark.slow
def test_label_dependent_rows_without_labels_follow_the_frequencies():
    truth = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0]])
    added = np.mean([label_dependent(truth, 1.0, random_state=s)[3] for s in range(4000)], axis=0)
    assert added == pytest.approx(np.array([3, 2, 1]) / 6, abs=0.03)


def test_heavy_smoothing_makes_label_dependent_noise_uniform():
    _, truth, inside = two_families()
    assert_uniform(label_dependent(truth, 1.5, smoothing=1e9, random_state=0), truth, inside, 1.5)


@pytest.mark.parametrize(
    "container", [np.asarray, sp.csr_matrix, pd.DataFrame], ids=["dense", "sparse", "frame"]
)
def test_instance_dependent_prefers_plausible_labels(container):
    X, truth, inside = two_families()
    candidates = instance_dependent(container(X), truth, 1.5, random_state=0)
    negative = truth == 0
    # The features tell the family with an area of .76; the noise must have picked up a good part of it.
    assert candidates[negative & inside].mean() > 1.5 * candidates[negative & ~inside].mean()
    plausibility = noise._plausibility(X, truth == 1, 5, np.random.RandomState(1))
    assert roc_auc_score(candidates[negative], plausibility[negative]) > 0.7


def test_plausibility_is_not_memorised():
    """With random features, a row's own label must not show in its score."""
    rng = np.random.RandomState(0)
    X, truth = rng.normal(size=(300, 400)), rng.random((300, 5)) < 0.3
    plausibility = noise._plausibility(X, truth, 5, rng)
    assert roc_auc_score(truth.ravel(), plausibility.ravel()) < 0.55


def test_sharpness_runs_from_uniform_to_certain():
    X, truth, inside = two_families()
    negative = truth == 0
    assert_uniform(instance_dependent(X, truth, 1.5, sharpness=0.0, random_state=0), truth, inside, 1.5)
    sure = instance_dependent(X, truth, 2, sharpness=1e8, random_state=0)
    plausibility = noise._plausibility(X, truth == 1, 5, np.random.RandomState(0))  # the same folds
    best_two = np.argsort(np.where(negative, plausibility, -np.inf), axis=1)[:, -2:]
    enough = negative.sum(axis=1) >= 2
    assert np.take_along_axis(sure, best_two, axis=1)[enough].all()
    assert ((sure - truth).sum(axis=1) == np.minimum(2, negative.sum(axis=1))).all()


def test_instance_dependent_does_not_modify_features():
    X, truth, _ = two_families(50)
    X.setflags(write=False)
    instance_dependent(X, truth, 1, random_state=0)


@pytest.mark.parametrize("mean_added", [-0.1, np.nan, np.inf, "1", None, True])
def test_mean_added_must_be_a_number_from_zero_on(mean_added):
    truth = [[1, 0], [0, 1]]
    with pytest.raises(ValueError, match="mean_added must be"):
        label_dependent(truth, mean_added)
    with pytest.raises(ValueError, match="mean_added must be"):
        instance_dependent([[1.0], [2.0]], truth, mean_added)


def test_other_errors_say_what_is_wrong():
    truth = [[1, 0], [0, 1]]
    with pytest.raises(ValueError, match="smoothing must be above 0, got 0"):
        label_dependent(truth, 1, smoothing=0)
    with pytest.raises(ValueError, match="sharpness must be at least 0, got -1"):
        instance_dependent([[1.0], [2.0]], truth, 1, sharpness=-1)
    with pytest.raises(ValueError, match="n_folds must be an integer of at least 2, got 1"):
        instance_dependent([[1.0], [2.0]], truth, 1, n_folds=1)
    with pytest.raises(ValueError, match="X has 3 rows, but truth has 2; they must agree"):
        instance_dependent([[1.0], [2.0], [3.0]], truth, 1)
    with pytest.raises(ValueError, match="needs at least two rows"):
        instance_dependent([[1.0]], [[1, 0]], 1)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        instance_dependent([[1.0], [np.nan]], truth, 1)


def test_guide_snippets_run():
    guide = Path(__file__).parents[1] / "docs" / "guide" / "noise.md"
    snippets = re.findall(r"```python\n(.*?)```", guide.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert snippets
    exec("\n".join(snippets), {})
