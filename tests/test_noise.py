"""Candidate-label generators: what always holds, and what holds on average."""

import re
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import beta, chisquare, kstest

from skpml import noise
from skpml.noise import flip, instance_dependent, label_dependent, top_up

SEEDS = st.integers(0, 2**32 - 1)


def truths(min_rows=1):
    shapes = st.tuples(st.integers(min_rows, 10), st.integers(1, 6))
    return hnp.arrays(np.int64, shapes, elements=st.integers(0, 1))


def features_of(truth):
    return np.random.default_rng(len(truth)).normal(size=(len(truth), 3))


FILLING = {
    "top_up": top_up,
    "label_dependent": label_dependent,
    "instance_dependent": lambda truth, k, **kw: instance_dependent(features_of(truth), truth, k, **kw),
}
# Each generator with one number that says how much noise, so that what they promise alike is tested alike.
GENERATORS = {**FILLING, "flip": lambda truth, amount, **kw: flip(truth, min(1.0, amount / 4), **kw)}
every_generator = pytest.mark.parametrize("generator", GENERATORS.values(), ids=GENERATORS.keys())
every_filling = pytest.mark.parametrize("generator", FILLING.values(), ids=FILLING.keys())


@every_generator
@settings(max_examples=40)
@given(truth=truths(min_rows=2), amount=st.integers(1, 8), seed=SEEDS)
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
    if generator is GENERATORS["flip"]:
        assert (generator(truth, 0, random_state=0) == truth).all()
    else:
        assert generator(truth, 1, random_state=0).sum(axis=1).tolist() == [max(1, sum(row)) for row in truth]


@every_generator
def test_truth_must_be_zero_or_one(generator):
    truth = np.array([[0, 1], [2, 0], [1, 1]])
    with pytest.raises(ValueError, match="truth should hold only 0 and 1, but row 1, label 0 is 2"):
        generator(truth, 1)


@every_filling
@settings(max_examples=40)
@given(truth=truths(min_rows=2), k=st.integers(1, 9), seed=SEEDS)
def test_each_row_reaches_exactly_k(generator, truth, k, seed):
    n_candidates = generator(truth, k, random_state=seed).sum(axis=1)
    expected = [min(max(sum(row), k), len(row)) for row in truth.tolist()]
    assert n_candidates.tolist() == expected


def test_top_up_draws_stay():
    """Published results depend on them: the false labels with the smallest uniform numbers, in this order."""
    truth = (np.random.default_rng(0).random((60, 9)) < 0.2).astype(int)
    draws = np.random.RandomState(5).random_sample(truth.shape)
    for row, true, numbers in zip(top_up(truth, 4, random_state=5), truth, draws, strict=True):
        false = sorted(np.flatnonzero(true == 0), key=lambda label, numbers=numbers: numbers[label])
        added = false[: max(0, 4 - true.sum())]
        assert set(np.flatnonzero(row)) == {*np.flatnonzero(true), *added}


def test_top_up_is_uniform_over_the_negatives():
    truth = np.zeros((20_000, 6), dtype=int)
    truth[:, 2] = 1
    candidates = top_up(truth, 3, random_state=0)
    negatives = candidates[:, [0, 1, 3, 4, 5]]
    # Every pair of negatives, not only every negative, is equally likely.
    pairs = np.unique(negatives @ (1 << np.arange(5)), return_counts=True)[1]
    assert len(pairs) == 10
    assert chisquare(pairs).pvalue > 0.01


@every_filling
@pytest.mark.parametrize("k", [0, -1, 1.5, 2.0, True, "2", None])
def test_a_wrong_k_is_rejected(generator, k):
    with pytest.raises(ValueError, match="k must be a positive integer"):
        generator([[1, 0], [0, 1]], k)


@every_filling
def test_numpy_integers_are_taken(generator):
    assert generator([[1, 0, 0], [0, 1, 0]], np.int32(2)).sum() == 4


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


def added_shares(candidates, truth):
    """How often each label is a false candidate, in each row of the same true labels."""
    return (candidates - truth).mean(axis=0)


def successive_draws(weights, n_drawn):
    """Probability that each label is among the first `n_drawn`, drawn one by one in proportion to the weights."""
    included = np.zeros(len(weights))
    for order in permutations(range(len(weights)), n_drawn):
        probability, left = 1.0, weights.sum()
        for label in order:
            probability *= weights[label] / left
            left -= weights[label]
        included[list(order)] += probability
    return included


@pytest.mark.parametrize("n_drawn", [1, 2, 3])
def test_draws_are_in_proportion_without_replacement(n_drawn):
    weights = np.array([1.0, 2.0, 5.0, 9.0])
    labels = np.zeros((20_000, 5), dtype=bool)
    labels[:, 4] = True
    log_weights = np.broadcast_to([*np.log(weights), 50.0], labels.shape)
    drawn = noise._draw(labels, n_drawn + 1, log_weights, np.random.RandomState(0))
    assert drawn[:, :4].mean(axis=0) == pytest.approx(successive_draws(weights, n_drawn), abs=0.015)
    assert (drawn[:, 4] == 1).all()


@pytest.mark.parametrize("concentration", [0.15, 1.0, 4.0])
def test_companions_are_dirichlet(concentration):
    n = 200
    companions = np.exp(noise._draw_companions(n, concentration, np.random.RandomState(0)))
    others = companions[~np.eye(n, dtype=bool)].reshape(n, n - 1)
    assert others.sum(axis=1) == pytest.approx(1)
    # Mean and variance of the Dirichlet distribution with equal parameters.
    total = concentration * (n - 1)
    variance = (1 / (n - 1)) * (1 - 1 / (n - 1)) / (total + 1)
    assert others.mean() == pytest.approx(1 / (n - 1))
    assert others.var() == pytest.approx(variance, rel=0.1)
    # Each share follows a beta distribution, and the rows are independent.
    assert kstest(others[:, 0], beta(concentration, total - concentration).cdf).pvalue > 0.01


def test_label_dependent_follows_the_mean_of_the_companions():
    truth = np.zeros((30_000, 5), dtype=int)
    truth[:10_000, 0] = 1
    truth[10_000:20_000, 1] = 1
    truth[20_000:, :2] = 1
    p = np.exp(noise._draw_companions(5, 0.5, np.random.RandomState(3)))
    candidates = label_dependent(truth, 3, concentration=0.5, random_state=3)  # the same companions
    first = added_shares(candidates[:10_000], truth[:10_000])
    second = added_shares(candidates[10_000:20_000], truth[10_000:20_000])
    both = added_shares(candidates[20_000:], truth[20_000:])
    assert first[1:] == pytest.approx(successive_draws(p[0, 1:], 2), abs=0.02)
    assert second[[0, 2, 3, 4]] == pytest.approx(successive_draws(p[1, [0, 2, 3, 4]], 2), abs=0.02)
    mean = (p[0, 2:] + p[1, 2:]) / 2
    assert both[2:] == pytest.approx(mean / mean.sum(), abs=0.02)
    assert first[0] == second[1] == 0


def test_label_dependent_rows_without_labels_follow_the_frequencies():
    truth = np.zeros((20_000, 3), dtype=int)
    truth[:5999, 0] = 1
    truth[5999:7998, 1] = 1
    empty = label_dependent(truth, 1, random_state=0)[7998:]
    assert empty.mean(axis=0) == pytest.approx(np.array([6000, 2000, 1]) / 8001, abs=0.015)


def test_a_small_concentration_gives_each_label_one_companion():
    truth = np.eye(6, dtype=int).repeat(200, axis=0)
    added = (label_dependent(truth, 2, concentration=1e-3, random_state=0) - truth).reshape(6, 200, 6)
    assert (added.sum(axis=1).max(axis=1) == 200).all()


def test_a_large_concentration_is_nearly_uniform():
    truth = np.zeros((20_000, 6), dtype=int)
    truth[:, 2] = 1
    candidates = label_dependent(truth, 3, concentration=1e9, random_state=0)
    pairs = np.unique(candidates[:, [0, 1, 3, 4, 5]] @ (1 << np.arange(5)), return_counts=True)[1]
    assert len(pairs) == 10
    assert chisquare(pairs).pvalue > 0.01


@pytest.mark.parametrize("concentration", [1e-12, 1e-3, 1e200])
@pytest.mark.filterwarnings("error")
def test_companions_below_the_range_of_a_float_can_be_drawn(concentration):
    """Almost all Dirichlet weights of a tiny concentration are 0 as floats; k may need these labels."""
    truth = np.vstack([np.eye(8, dtype=int), np.ones(8, dtype=int), np.zeros(8, dtype=int)])
    for k in (2, 5, 8):
        candidates = label_dependent(truth, k, concentration=concentration, random_state=0)
        assert candidates.sum(axis=1).tolist() == [k] * 8 + [8, k]
    assert np.isfinite(noise._draw_companions(8, concentration, np.random.RandomState(0))).all()


def two_families(n_rows=4000, seed=0):
    """Labels 0-3 go together and labels 4-7 do; the features say which family a row is of."""
    rng = np.random.default_rng(seed)
    family = rng.integers(2, size=n_rows)
    inside = (np.arange(8) // 4) == family[:, np.newaxis]
    truth = (rng.random((n_rows, 8)) < np.where(inside, 0.4, 0.02)).astype(int)
    X = np.column_stack([family + rng.normal(size=n_rows), rng.normal(size=(n_rows, 4))])
    return X, truth, inside


@pytest.mark.parametrize(
    "container", [np.asarray, sp.csr_matrix, pd.DataFrame], ids=["dense", "sparse", "frame"]
)
def test_instance_dependent_prefers_plausible_labels(container):
    X, truth, inside = two_families()
    candidates = instance_dependent(container(X), truth, 3, random_state=0)
    negative = truth == 0
    # The features tell the family with an area of .76; the noise must have picked up a good part of it.
    assert candidates[negative & inside].mean() > 1.5 * candidates[negative & ~inside].mean()


def test_plausibility_is_standardized_ridge_regression():
    """Against the normal equations, on the rows that the seed draws."""
    X, truth, _ = two_families(400)
    scores = noise._score_plausibility(X, truth == 1, 0.1, np.random.RandomState(7))
    rows = np.random.RandomState(7).permutation(400)[:40]
    Z = (X - X[rows].mean(axis=0)) / X[rows].std(axis=0)
    centered = truth[rows] - truth[rows].mean(axis=0)
    expected = Z @ np.linalg.solve(Z[rows].T @ Z[rows] + 40 * np.eye(5), Z[rows].T @ centered)
    expected -= expected.mean(axis=0)
    assert scores == pytest.approx(expected / expected.std(axis=0))


def test_instance_dependent_weights_are_scores_plus_log_frequencies():
    truth = np.zeros((20_000, 4), dtype=int)
    truth[:3999, 1] = 1
    truth[:1999, 2] = 1
    truth[:7999, 3] = 1
    # Constant features leave only the frequencies; the first label is never true and still possible.
    candidates = instance_dependent(np.ones((20_000, 2)), truth, 1, random_state=0)
    expected = np.array([1, 4000, 2000, 8000]) / 14001
    assert candidates[7999:].mean(axis=0) == pytest.approx(expected, abs=0.015)


def test_instance_dependent_ignores_the_scale_of_features():
    X, truth, _ = two_families(600)
    expected = instance_dependent(X, truth, 3, random_state=0)
    for other in (8 * X, X * [1, 10, 100, 0.1, 0.01], X - 5):
        assert (instance_dependent(other, truth, 3, random_state=0) == expected).mean() > 0.999
    other = instance_dependent(sp.csr_matrix(8 * X), truth, 3, random_state=0)
    assert (instance_dependent(sp.csr_matrix(X), truth, 3, random_state=0) == other).mean() > 0.999
    assert (instance_dependent(X, truth, 3, share=1.0, random_state=0) != expected).any()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csr_matrix])
def test_instance_dependent_learns_from_two_rows_at_least(container):
    X = container(np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]]))
    candidates = instance_dependent(X, [[1, 0, 0], [0, 1, 0], [0, 0, 0]], 2, share=1e-9, random_state=0)
    assert candidates.sum(axis=1).tolist() == [2, 2, 2]
    scores = noise._score_plausibility(X, np.eye(3, dtype=bool), 1e-9, np.random.RandomState(0))
    assert scores.any(), "one row would teach nothing"


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix])
def test_instance_dependent_does_not_modify_features(container):
    X, truth, _ = two_families(50)
    given_X = container(X.copy())
    (given_X.data if sp.issparse(given_X) else given_X).setflags(write=False)
    instance_dependent(given_X, truth, 3, random_state=0)
    assert ((given_X.toarray() if sp.issparse(given_X) else given_X) == X).all()


@pytest.mark.parametrize("value", [-0.1, 0, np.nan, np.inf, "1", None, True])
def test_options_must_be_numbers_above_zero(value):
    truth = [[1, 0], [0, 1]]
    problem = "above 0" if value in (-0.1, 0) else "a finite number"
    with pytest.raises(ValueError, match=f"concentration must be {problem}, got"):
        label_dependent(truth, 1, concentration=value)
    with pytest.raises(ValueError, match=f"share must be {problem}, got"):
        instance_dependent([[1.0], [2.0]], truth, 1, share=value)


def test_other_errors_say_what_is_wrong():
    truth = [[1, 0], [0, 1]]
    with pytest.raises(ValueError, match=r"share must be at most 1, got 1\.5"):
        instance_dependent([[1.0], [2.0]], truth, 1, share=1.5)
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
