"""What data show by themselves: the tests of features and of random noise hold their level and see what is planted."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import chisquare
from sklearn.utils import Bunch

from skpml.cleaning import _evidence
from skpml.cleaning._evidence import (
    _companionship,
    _shuffle,
    _variation,
    examine_noise,
    find_companions,
    find_informative,
    find_twins,
)


class TestInformative:
    def make_scores(self, n=300, c=5, seed=0):
        rng = np.random.default_rng(seed)
        Y = (rng.random((n, c)) < 0.3).astype(np.uint8)
        return Y + rng.normal(size=(n, c)), Y, rng

    def test_labels_that_scores_order(self):
        scores, Y, rng = self.make_scores()
        assert find_informative(scores, Y).all()
        scores[:, 2] = rng.normal(size=len(Y))
        assert_array_equal(find_informative(scores, Y), [True, True, False, True, True])

    def test_scores_of_other_rows_tell_nothing(self):
        scores, Y, rng = self.make_scores()
        found = [find_informative(scores[rng.permutation(len(Y))], Y).any() for _ in range(200)]
        # Three standard errors by chance: .0013 of the draws.
        assert np.sum(found) <= 2

    def test_one_good_label_among_many_bad_ones_is_not_enough(self):
        scores, Y, rng = self.make_scores(c=200)
        scores[:, 1:] = rng.normal(size=(len(Y), 199))
        scores[:, 0] -= 0.5 * Y[:, 0]
        assert find_informative(scores[:, :1], Y[:, :1]).all()
        assert not find_informative(scores, Y).any()

    def test_only_the_order_matters_and_constants_tell_nothing(self):
        scores, Y, _ = self.make_scores()
        assert_array_equal(find_informative(np.exp(3 * scores), Y), find_informative(scores, Y))
        assert not find_informative(-scores, Y).any()
        assert not find_informative(np.ones(Y.shape), Y).any()
        Y[:, 0], Y[:, 1] = 0, 1
        assert_array_equal(find_informative(scores, Y)[:2], [False, False])


def make_noise(kind, n=300, c=6, rate=0.2, seed=0):
    """Candidates and what a perfect model finds, for true labels that the features show nearly exactly."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n, c)) < 0.25
    if kind == "uniform":
        false = rng.random((n, c)) < rate
    elif kind == "confusion":
        # A true label brings the next one; all labels have the same rate on average.
        false = np.roll(truth, 1, axis=1) & (rng.random((n, c)) < 0.8)
    elif kind == "uneven":
        false = rng.random((n, c)) < rate * np.where(np.arange(c) % 2, 0.5, 1.5)
    elif kind == "filled":
        # As many random ones as are missing up to four.
        order = np.argsort(np.argsort(np.where(truth, -1, rng.random((n, c))), axis=1), axis=1)
        false = order < 4
    else:
        false = np.zeros((n, c), dtype=bool)
    Y = (truth | false).astype(np.uint8)
    found = Bunch(
        probabilities=np.where(truth, 1 - 1e-6, 1e-6),
        noise_rate=np.full(c, rate),
        confidences=(truth & (Y > 0)) * 1.0,
    )
    return found, Y


class TestNoise:
    @pytest.mark.parametrize("kind", ["uniform", "filled"])
    def test_random_noise_is_accepted(self, kind):
        found = examine_noise(*make_noise(kind), 0)
        assert found.random_noise
        # All wrong candidates are where the label is clearly lacking.
        assert_allclose(found.clear_share, 1)

    def test_noise_that_goes_along_with_labels_is_rejected(self):
        found = examine_noise(*make_noise("confusion"), 0)
        assert found.p_value == 1 / 100
        assert found.rate_variation < 0.04
        assert not found.random_noise

    def test_noise_with_rates_of_its_own_by_label_is_rejected(self):
        found = examine_noise(*make_noise("uneven", n=1500, c=20), 0)
        assert found.p_value > 0.01
        # Rates of half and one and a half: the squared relative variation is a quarter.
        assert_allclose(found.rate_variation, 0.25, rtol=0.15)
        assert not found.random_noise

    def test_without_visible_noise_nothing_is_said(self):
        found, Y = make_noise("none")
        found.confidences = 0.5 * Y
        found = examine_noise(found, Y, 0)
        assert (found.clear_share, found.p_value, found.rate_variation) == (0, 1, 0)
        assert not found.random_noise

    def test_wrong_candidates_must_be_seen_where_the_label_is_lacking(self):
        found, Y = make_noise("uniform")
        shares = []
        for lost in (0.0, 0.5, 0.8):
            some = Bunch(**found | {"confidences": found.confidences * (1 - lost)})
            shares.append(examine_noise(some, Y, 0))
        visible = np.sum((Y > 0) & (found.probabilities < 0.5))
        wrong = [np.sum(Y) - (1 - lost) * found.confidences.sum() for lost in (0.0, 0.5, 0.8)]
        assert_allclose([each.clear_share for each in shares], visible / np.array(wrong))
        assert [each.random_noise for each in shares] == [s >= 1 / 3 for s in visible / np.array(wrong)]

    def test_the_level_is_exact(self, monkeypatch):
        """With 19 shuffles, the statistic is the largest of 20 that are alike in one draw of 20."""
        monkeypatch.setattr(_evidence, "_N_SHUFFLES", 19)
        n_draws = 500
        chances = np.array(
            [examine_noise(*make_noise("uniform", n=40, seed=seed), seed).p_value for seed in range(n_draws)]
        )
        for level in (0.05, 0.2, 0.5):
            error = 3 * np.sqrt(level * (1 - level) / n_draws)
            assert_allclose((chances <= level + 1e-9).mean(), level, atol=error)

    def test_order_of_labels_does_not_change_the_statistics(self):
        found, Y = make_noise("confusion")
        lacking, mixed = found.probabilities < 0.5, [3, 0, 5, 1, 4, 2]
        for statistic in (_companionship, _variation):
            here = statistic(Y.astype(float), lacking)
            assert_allclose(statistic(Y[:, mixed].astype(float), lacking[:, mixed]), here)
            assert_allclose(statistic(Y[::-1].astype(float), lacking[::-1]), here)

    def test_variation_is_the_chi_squared_statistic(self):
        """If all rows lack all labels, the expected numbers are equal."""
        Y = (np.random.default_rng(0).random((50, 4)) < 0.3).astype(float)
        found = _variation(Y, np.ones(Y.shape, dtype=bool))
        assert_allclose(found, chisquare(Y.sum(axis=0)).statistic)

    def test_companionship_by_its_definition(self):
        found, Y = make_noise("uniform", n=30, c=4)
        lacking = found.probabilities < 0.5
        others = Y / np.maximum(Y.sum(axis=1, keepdims=True), 1)
        total = 0.0
        for j in range(4):
            rows = lacking[:, j]
            rate = Y[rows, j].mean()
            for k in set(range(4)) - {j}:
                centered = others[rows, k] - others[:, k].mean()
                products = (Y[rows, j] - rate) * centered
                total += products.sum() ** 2 / (products**2).sum()
        assert_allclose(_companionship(Y.astype(float), lacking), total)


class TestShuffle:
    rng = np.random.default_rng(0)
    present = (rng.random((80, 7)) < 0.4).astype(float)
    lacking = rng.random((80, 7)) < 0.5

    def test_rows_keep_their_number_and_other_cells_their_value(self):
        out = _shuffle(self.present, self.lacking, np.random.default_rng(1))
        assert_array_equal(out[~self.lacking], self.present[~self.lacking])
        assert_array_equal(out.sum(axis=1), self.present.sum(axis=1))
        assert (out != self.present).any()
        for nothing in (np.zeros_like(self.lacking), self.lacking & (self.lacking.cumsum(axis=1) == 1)):
            assert_array_equal(_shuffle(self.present, nothing, np.random.default_rng(1)), self.present)

    def test_all_orders_are_alike(self):
        n = 20_000
        present = np.tile([1.0, 2, 3, 4, 5], (n, 1))
        lacking = np.tile([True, False, True, True, False], (n, 1))
        out = _shuffle(present, lacking, np.random.default_rng(0))
        orders, count = np.unique(out[:, [0, 2, 3]], axis=0, return_counts=True)
        assert len(orders) == 6
        assert chisquare(count).pvalue > 0.001
        assert_array_equal(out[:, [1, 4]], present[:, [1, 4]])


class TestTwins:
    def test_groups(self):
        a = np.arange(100) < 50
        nearly = a.copy()
        nearly[[0, 60]] = [False, True]
        other = np.arange(100) % 2 == 0
        Y = np.stack([a, other, nearly, ~a, a, np.zeros(100), np.zeros(100)], axis=1).astype(np.uint8)
        # 49 of 51 rows with one of the two have both.
        assert find_twins(Y, "abcdefg") == [("a", "c", "e")]
        assert find_twins(Y[:, 1:4], "bcd") == []

    def test_a_label_is_in_one_group(self):
        """The second is like the first and the third, which are not like each other."""
        Y = (np.arange(100)[:, None] < [100, 97, 94]).astype(np.uint8)
        assert find_twins(Y[:, 1:], "bc") == [("b", "c")]
        assert find_twins(Y, "abc") == [("a", "b")]

    @pytest.mark.parametrize(("n_both", "same"), [(95, False), (96, True)])
    def test_more_than_95_of_100_rows(self, n_both, same):
        Y = np.ones((100, 2), dtype=np.uint8)
        Y[n_both:, 1] = 0
        assert bool(find_twins(Y, "ab")) == same
        assert bool(find_twins(np.vstack([Y, np.zeros((50, 2))]), "ab")) == same


class TestCompanions:
    def make_labels(self, n=500, seed=0):
        return (np.random.default_rng(seed).random((n, 4)) < 0.2).astype(np.uint8)

    def test_labels_that_have_nothing_to_do_with_each_other(self):
        for seed in range(20):
            Y = self.make_labels(seed=seed)
            assert find_companions(np.full(Y.shape, 0.2), Y, "abcd") == []

    def test_planted_companions_in_order(self):
        Y = self.make_labels(n=2000)
        Y[:100, [0, 2]] = 1
        Y[100:180, [1, 3]] = 1
        both = Y.T.astype(int) @ Y
        found = find_companions(np.full(Y.shape, 0.2), Y, "abcd")
        assert [(pair.label, pair.other) for pair in found] == [("a", "c"), ("b", "d")]
        assert [pair.observed for pair in found] == [both[0, 2], both[1, 3]]
        assert_allclose([pair.expected for pair in found], 2000 * 0.2**2)

    def test_a_small_surplus_is_not_reported_however_sure(self):
        Y = self.make_labels(n=20_000)
        Y[:300, [0, 2]] = 1
        both = int(np.sum(Y[:, 0] & Y[:, 2]))
        assert 800 + 6 * np.sqrt(800) < both < 1.5 * 800
        assert find_companions(np.full(Y.shape, 0.2), Y, "abcd") == []

    def test_what_features_explain_is_not_reported(self):
        Y = self.make_labels()
        Y[:80, [0, 2]] = 1
        expected = np.full(Y.shape, 0.2)
        expected[:80, [0, 2]] = 0.99
        assert find_companions(expected, Y, "abcd") == []
