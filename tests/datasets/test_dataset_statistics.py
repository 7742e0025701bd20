import numpy as np
import pytest
from dataset_helpers import example
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from skpml.datasets import PartialDataset


@st.composite
def labeled(draw):
    shape = draw(st.tuples(st.integers(1, 8), st.integers(1, 11)))
    bits = arrays(np.uint8, shape, elements=st.integers(0, 1))
    candidates = draw(bits)
    return candidates, candidates * draw(bits)


@given(labeled())
def test_figures_by_counting(matrices):
    candidates, truth = matrices
    found = PartialDataset(None, candidates, truth).statistics()
    true_sets = [frozenset(j for j, y in enumerate(row) if y) for row in truth.tolist()]
    candidate_sets = [frozenset(j for j, y in enumerate(row) if y) for row in candidates.tolist()]
    n, c = candidates.shape
    n_true, n_candidates = sum(map(len, true_sets)), sum(map(len, candidate_sets))
    n_false = sum(len(s - y) for s, y in zip(candidate_sets, true_sets, strict=True))
    assert (found.n_rows, found.n_labels, found.n_features, found.sparse) == (n, c, None, False)
    assert found.cardinality == pytest.approx(n_true / n)
    assert found.density == pytest.approx(n_true / n / c)
    assert found.diversity == len(set(true_sets))
    assert found.diversity_share == pytest.approx(len(set(true_sets)) / n)
    assert found.candidates_per_row == pytest.approx(n_candidates / n)
    assert found.noise_rate == pytest.approx(n_false / n_candidates if n_candidates else 0)
    assert found.rows_without_true_label == sum(not s for s in true_sets)
    assert found.rows_without_candidates == sum(not s for s in candidate_sets)
    assert found.labels_without_true_row == c - len(frozenset().union(*true_sets))


def test_what_needs_the_truth_is_none_without_it():
    found = example(truth=None, features="sparse").statistics()
    assert found.sparse
    assert found.n_features == 3
    assert found.candidates_per_row > 0
    assert {found.cardinality, found.density, found.diversity, found.diversity_share, found.noise_rate} == {
        None
    }
    assert {found.rows_without_true_label, found.labels_without_true_row} == {None}
