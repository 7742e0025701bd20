import dataclasses
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from dataset_helpers import example

from skpml.datasets import PartialDataset

X = np.arange(6.0).reshape(3, 2)
CANDIDATES = np.array([[1, 1], [0, 1], [1, 0]])


def test_keeps_what_it_is_given():
    dataset = PartialDataset(
        X, CANDIDATES, CANDIDATES * [[1, 0], [0, 1], [1, 0]], ("a", "b"), ("u", "v"), "n", "d"
    )
    np.testing.assert_array_equal(dataset.X, X)
    assert dataset.candidates.dtype == dataset.truth.dtype == np.uint8
    assert dataset.truth.tolist() == [[1, 0], [0, 1], [1, 0]]
    assert (dataset.label_names, dataset.feature_names) == (("a", "b"), ("u", "v"))
    assert repr(dataset) == "<PartialDataset 'n': 3 rows, 2 features, 2 labels, truth known>"


def test_is_frozen_and_apart_from_its_inputs():
    given = CANDIDATES.astype(np.uint8)
    dataset = PartialDataset(X, given)
    with pytest.raises(dataclasses.FrozenInstanceError):
        dataset.name = "x"
    with pytest.raises(ValueError, match="read-only"):
        dataset.candidates[0, 0] = 0
    given[0, 0] = 0
    assert dataset.candidates[0, 0] == 1


@pytest.mark.parametrize("kind", [bool, np.int64, np.float64, sp.csr_matrix, sp.coo_array])
def test_labels_may_come_in_any_numeric_form(kind):
    given = kind(CANDIDATES) if kind in (sp.csr_matrix, sp.coo_array) else CANDIDATES.astype(kind)
    np.testing.assert_array_equal(PartialDataset(X, given).candidates, CANDIDATES)


@pytest.mark.parametrize(
    ("given", "kept"), [(np.float32, np.float32), (np.int32, np.float64), (bool, np.float64)]
)
def test_type_of_features(given, kept):
    assert PartialDataset(X.astype(given), CANDIDATES).X.dtype == kept
    assert PartialDataset(sp.csc_matrix(X.astype(given)), CANDIDATES).X.dtype == kept


def test_sparse_features_become_canonical_csr():
    given = sp.coo_matrix(([1.0, 2.0, 3.0, 0.0], ([0, 0, 2, 1], [1, 1, 0, 0])), shape=(3, 2))
    kept = PartialDataset(given, CANDIDATES).X
    assert kept.format == "csr"
    assert kept.nnz == 2
    assert kept.indices.dtype == np.int32
    np.testing.assert_array_equal(kept.toarray(), [[0, 3], [0, 0], [3, 0]])
    twice = sp.csr_array(
        (np.ones(3), np.array([1, 1, 0], dtype=np.int64), np.array([0, 2, 2, 3])), shape=(3, 2)
    )
    assert PartialDataset(twice, CANDIDATES).X.nnz == 2
    assert twice.nnz == 3, "what was given stays as it was"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            {"candidates": [[1, 2], [0, 1], [1, 0]]},
            "candidates should hold only 0 and 1, but row 0, label 1 is 2",
        ),
        ({"candidates": [[1, -1], [0, 1], [1, 0]]}, "row 0, label 1 is -1"),
        ({"candidates": [[1, np.nan], [0, 1], [1, 0]]}, "row 0, label 1 is nan"),
        ({"candidates": [["1", "0"]] * 3}, "should hold 0 and 1, but its values are of type"),
        ({"candidates": [1, 0, 1]}, "2d matrix of 0 and 1, got shape"),
        ({"candidates": np.zeros((3, 0))}, "at least one label"),
        ({"candidates": np.zeros((0, 2)), "X": np.zeros((0, 2))}, "at least one row"),
        ({"X": X[:2]}, "X has 2 rows and candidates has 3"),
        ({"X": X.ravel()}, "matrix of rows × features"),
        ({"X": [["a", "b"]] * 3}, "X must hold numbers"),
        ({"X": np.where(X == 3, np.nan, X)}, r"X contains NaN in row 1, column 1. Fill in"),
        (
            {"X": np.where(X == 4, np.inf, X), "feature_names": ("u", "v")},
            r"X contains infinity in row 2, column 0 \('u'\)",
        ),
        ({"X": sp.csr_array(np.where(X == 3, np.nan, X))}, r"X contains NaN in row 1, column 1"),
        ({"truth": CANDIDATES[:2]}, r"truth has shape \(2, 2\) and candidates \(3, 2\)"),
        (
            {"truth": [[1, 0], [1, 1], [0, 0]]},
            r"row 1 has label 0 \('a'\) in truth but not in candidates \(1 such",
        ),
        ({"label_names": ("a",)}, "label_names has 1 names for 2 columns"),
        ({"label_names": "ab"}, "single string"),
        ({"label_names": ("a", "a")}, "distinct, found more than once: a"),
        ({"feature_names": ("u",)}, "feature_names has 1 names for 2 columns"),
        ({"X": None, "feature_names": ("u",)}, "feature_names given without X"),
        ({"on_empty": "maybe"}, 'on_empty must be "raise", "warn" or "ignore"'),
    ],
)
def test_what_is_wrong_is_named(parts, message):
    given = {"X": X, "candidates": CANDIDATES, "label_names": ("a", "b")} | parts
    with pytest.raises(ValueError, match=message):
        PartialDataset(**given)


def test_empty_rows_and_labels_need_leave_where_truth_is_unknown():
    with pytest.raises(
        ValueError, match=r'1 of 3 rows have no candidate label \(first: row 1\)\. .*on_empty="warn"'
    ):
        PartialDataset(X, [[1, 1], [0, 0], [1, 0]])
    with pytest.raises(ValueError, match=r"1 of 3 labels are not a candidate of any row \(label_1\)\."):
        PartialDataset(X, [[1, 0, 0], [0, 0, 1], [1, 0, 1]])
    candidates = [[1, 0, 0], [0, 0, 0], [1, 0, 1]]
    with pytest.warns(UserWarning, match="row 1"), pytest.warns(UserWarning, match="label_1"):
        PartialDataset(X, candidates, on_empty="warn")
    assert PartialDataset(X, candidates, on_empty="ignore").candidates.tolist() == candidates


def test_empty_rows_and_labels_are_facts_where_truth_is_known():
    candidates = [[1, 0], [0, 0], [1, 0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dataset = PartialDataset(X, candidates, candidates)
    assert dataset.statistics().rows_without_true_label == 1


@pytest.mark.parametrize(
    "rows", [[2, 0], np.array([True, False, True, False, False, False, False]), slice(1, 6, 2)]
)
@pytest.mark.parametrize("features", ["dense", "sparse", None])
def test_subset(rows, features):
    dataset = example(features=features)
    part = dataset.subset(rows)
    np.testing.assert_array_equal(part.candidates, dataset.candidates[rows])
    np.testing.assert_array_equal(part.truth, dataset.truth[rows])
    if features == "dense":
        np.testing.assert_array_equal(part.X, dataset.X[rows])
    elif features == "sparse":
        np.testing.assert_array_equal(part.X.toarray(), dataset.X.toarray()[rows])
    assert (part.label_names, part.name) == (dataset.label_names, dataset.name)


def test_subset_may_lose_a_label_but_not_all_rows():
    dataset = PartialDataset(X, CANDIDATES)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dataset.subset([2]).candidates.tolist() == [[1, 0]]
    with pytest.raises(ValueError, match="at least one row"):
        dataset.subset([])
    with pytest.raises(ValueError, match="one-dimensional"):
        dataset.subset(1)


def test_with_candidates():
    dataset = example()
    more = dataset.with_candidates(np.ones_like(dataset.candidates))
    assert more.candidates.all()
    np.testing.assert_array_equal(more.truth, dataset.truth)
    assert (more.name, more.description, more.feature_names) == (
        dataset.name,
        dataset.description,
        dataset.feature_names,
    )
    with pytest.raises(ValueError, match="every true label must be a candidate"):
        dataset.with_candidates(np.zeros_like(dataset.candidates))
