"""The random order of all candidates: its prefixes are samples, and batches go along it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skpml.cleaning._batch import find_sample, propose_batch, random_order


def make_labels(sizes, n=40, seed=0):
    """Candidates of labels with these numbers of rows."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.permutation(n) < size for size in sizes], axis=1).astype(np.uint8)


class TestOrder:
    def test_every_candidate_has_one_place(self):
        Y = make_labels([5, 0, 40, 1])
        places = random_order(Y, 0)
        assert_array_equal(np.sort(places[Y > 0]), np.arange(1, 47))
        assert (places[Y == 0] == 0).all()
        assert_array_equal(random_order(np.zeros((3, 2)), 0), 0)

    def test_the_seed_and_the_candidates_decide(self):
        Y = make_labels([9, 20, 4])
        assert_array_equal(random_order(Y, 3), random_order(Y.astype(float) * 2, 3))
        assert (random_order(Y, 3) != random_order(Y, 4)).any()

    @pytest.mark.parametrize("sizes", [[10, 10, 10], [40, 3, 1, 17], [40] + [1] * 30])
    def test_prefixes_have_their_share_of_every_label(self, sizes):
        """Of any two labels, the drawn shares differ by less than one cell of each."""
        for seed in range(20):
            places = random_order(make_labels(sizes), seed)
            for k in range(1, sum(sizes) + 1):
                drawn = ((places > 0) & (places <= k)).sum(axis=0)
                assert max((drawn - 1) / sizes) < min((drawn + 1) / sizes)

    @pytest.mark.parametrize(("sizes", "bias"), [([6, 6, 6], 0.0), ([12, 5, 1], 1.0)])
    def test_all_cells_are_drawn_alike(self, sizes, bias):
        """Exactly if labels are equally frequent, and up to one place otherwise."""
        Y = make_labels(sizes, n=12)
        n_cells, n_draws = sum(sizes), 3000
        places = np.array([random_order(Y, seed)[Y > 0] for seed in range(n_draws)])
        for k in (1, 4, 9, 15):
            share = (places <= k).mean(axis=0)
            expected = k / n_cells
            # Four standard errors: the largest of 18 cells is looked at.
            error = 4 * np.sqrt(expected * (1 - expected) / n_draws)
            assert_allclose(share, expected, atol=error + bias / n_cells)


class TestSample:
    Y = make_labels([15, 6, 30])
    places = random_order(Y, 0)

    def verify(self, *places):
        return np.where(np.isin(self.places, places), 1, 0).astype(np.int8)

    def test_the_longest_verified_prefix(self):
        for upto in (0, 1, 20, 51):
            verified = self.verify(*range(1, upto + 1))
            assert_array_equal(find_sample(self.places, verified), (self.places > 0) & (self.places <= upto))
        verified = self.verify(1, 2, 3, 5, 6)
        assert_array_equal(np.sort(self.places[find_sample(self.places, verified)]), [1, 2, 3])
        assert not find_sample(self.places, self.verify(2, 3)).any()

    def test_verified_cells_outside_the_candidates_do_not_matter(self):
        verified = self.verify(1, 2)
        verified[self.Y == 0] = -1
        assert_array_equal(find_sample(self.places, verified), self.verify(1, 2) != 0)

    def test_it_ends_with_a_drawn_cell(self):
        verified = self.verify(1, 2, 3, 4, 5, 6)
        drawn = np.isin(self.places, [1, 2, 4])
        assert_array_equal(np.sort(self.places[find_sample(self.places, verified, drawn)]), [1, 2, 3, 4])
        assert not find_sample(self.places, verified, np.zeros_like(drawn)).any()

    def test_answers_do_not_matter(self):
        verified = self.verify(1, 2, 3)
        assert_array_equal(find_sample(self.places, -verified), find_sample(self.places, verified))


class TestBatch:
    Y = make_labels([15, 6, 30])
    places = random_order(Y, 0)
    usefulness = np.random.default_rng(0).random(Y.shape)

    @pytest.mark.parametrize("size", [0, 1, 10, 51, 1000])
    def test_the_next_of_the_order_and_the_most_useful(self, size):
        verified = np.where(np.isin(self.places, [1, 3, 40]), 1, 0)
        batch = propose_batch(self.places, verified, self.usefulness, size=size)
        cells = [(question.row, question.label) for question in batch]
        left = [cell for cell in zip(*np.nonzero(self.Y), strict=True) if not verified[cell]]
        assert len(set(cells)) == len(cells) == min(size, len(left))
        by_place = sorted(left, key=lambda cell: self.places[cell])
        n_drawn = min(round(0.7 * size), len(left))
        assert cells[:n_drawn] == by_place[:n_drawn]
        by_use = sorted(set(left) - set(cells[:n_drawn]), key=lambda cell: -self.usefulness[cell])
        assert cells[n_drawn:] == by_use[: size - n_drawn]
        drawn = [question.drawn for question in batch]
        assert drawn == [self.places[cell] for cell in cells[:n_drawn]] + [0] * (len(batch) - n_drawn)

    def test_batches_answered_one_after_the_other_are_a_sample(self):
        verified, drawn = np.zeros(self.Y.shape), np.zeros(self.Y.shape, dtype=bool)
        before = 0
        while (verified[self.Y > 0] == 0).any():
            for question in propose_batch(self.places, verified, self.usefulness, size=10):
                verified[question.row, question.label] = 1
                drawn[question.row, question.label] = question.drawn > 0
            sample = find_sample(self.places, verified, drawn)
            assert (sample >= drawn).all()
            assert before < sample.sum() == self.places[drawn].max()
            before = sample.sum()
