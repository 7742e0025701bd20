import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_array_equal

from skpml._validation import check_indicator, check_occupied, encode_labels

MATRIX = np.array([[1, 0, 1], [0, 1, 1]])


@pytest.mark.parametrize(
    "y",
    [
        MATRIX,
        MATRIX.astype(float),
        MATRIX.astype(bool),
        MATRIX.tolist(),
        list(MATRIX),
        MATRIX.astype(object),
        *(scipy.sparse.coo_array(MATRIX).asformat(layout) for layout in ("csr", "csc", "coo", "lil", "dok")),
    ],
)
def test_every_form_of_matrix(y):
    encoded = encode_labels(y)
    assert not encoded.named
    assert encoded.layout == "indicator"
    assert encoded.candidates.dtype == np.uint8
    assert_array_equal(encoded.candidates, MATRIX)
    assert_array_equal(encoded.classes, [0, 1, 2])


def test_data_frame_keeps_its_names():
    encoded = encode_labels(pd.DataFrame(MATRIX, columns=["sea", "lake", "tree"]))
    assert_array_equal(encoded.candidates, MATRIX)
    assert_array_equal(encoded.classes, ["sea", "lake", "tree"])


@pytest.mark.parametrize(
    "y",
    [
        [{"a", "c"}, {"b", "c"}],
        [["a", "c"], ["b", "c"]],
        [("a", "c"), ("c", "b", "b")],
        [frozenset("ac"), ["b", "c"]],
        pd.Series([["a", "c"], ["b", "c"]]),
        np.array([{"a", "c"}, {"b", "c"}], dtype=object),
    ],
)
def test_label_sets(y):
    encoded = encode_labels(y)
    assert_array_equal(encoded.candidates, MATRIX)
    assert_array_equal(encoded.classes, ["a", "b", "c"])


def test_label_sets_of_numbers_and_empty_sets():
    encoded = encode_labels([{3, 7}, set(), {7}])
    assert_array_equal(encoded.candidates, [[1, 1], [0, 0], [0, 1]])
    assert_array_equal(encoded.classes, [3, 7])


@pytest.mark.parametrize(
    "y", [["b", "a", "b"], np.array([5, 2, 5]), pd.Series([5, 2, 5]), [True, False, True]]
)
def test_one_class_a_row(y):
    encoded = encode_labels(y)
    assert encoded.layout == "classes"
    assert_array_equal(encoded.candidates, [[0, 1], [1, 0], [0, 1]])


def test_tags_in_one_string_are_warned_about():
    with pytest.warns(UserWarning, match=r"'sea;sky', which are taken as one class each"):
        encode_labels(["sea;sky", "sea"])


def test_single_column_of_zeros_and_ones_is_one_label():
    encoded = encode_labels([[1], [0]])
    assert encoded.layout == "indicator"
    assert encoded.candidates.shape == (2, 1)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[0, 1], [2, 0]], "row 1, label 0 is 2"),
        ([[0, 1], [0, -1]], r"row 1, label 1 is -1 .where -1 means absent, use y > 0"),
        ([[0.0, 0.5]], r"row 0, label 1 is 0.5"),
        ([[0.0, np.nan]], "row 0, label 1 is nan"),
        (scipy.sparse.csr_array([[0, 3]]), "row 0, label 1 is 3"),
        (pd.DataFrame({"sea": [1], "lake": [4]}), "row 0, label 'lake' is 4"),
        (pd.DataFrame({"sea": [1], "lake": ["yes"]}), "row 0, label 'lake' is 'yes'"),
        ([[0, 1], [1]], "rows of different lengths"),
        ([{"a"}, "b"], "Row 1 of y is 'b'"),
        ([{"a", 1}], "different types"),
        (np.zeros((2, 2, 2)), r"got shape \(2, 2, 2\)"),
        ([1.5, 2.5], "Unknown label type"),
        ([1.0, np.nan], "NaN or infinity in row 1"),
        (None, "requires y"),
        (pd.DataFrame([[1, 0]], columns=["a", "a"]), "'a' appears twice"),
    ],
)
def test_errors_name_the_place(y, message):
    with pytest.raises(ValueError, match=message):
        encode_labels(y)


def test_duplicate_entries_of_a_sparse_matrix_are_summed_before_the_check():
    twice = scipy.sparse.coo_array(([1, 1], ([0, 0], [1, 1])), shape=(1, 2))
    with pytest.raises(ValueError, match="row 0, label 1 is 2"):
        check_indicator(twice, "y")


class TestOccupied:
    classes = np.array(["sea", "lake", "tree"])
    empty_row = np.array([[1, 0, 1], [0, 0, 0], [1, 1, 0]], np.uint8)
    empty_label = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0]], np.uint8)

    def test_rows(self):
        with pytest.raises(ValueError, match=r"1 of 3 rows .*row 1\).*on_empty=\"warn\""):
            check_occupied(self.empty_row, self.classes, on_empty="raise")
        with pytest.warns(UserWarning, match=r"1 of 3 rows"):
            check_occupied(self.empty_row, self.classes, on_empty="warn")

    def test_labels(self):
        with pytest.raises(ValueError, match=r"1 of 3 labels .*\(tree\).*on_empty=\"warn\""):
            check_occupied(self.empty_label, self.classes, on_empty="raise")
        with pytest.warns(UserWarning, match=r"\(tree\)"):
            check_occupied(self.empty_label, self.classes, on_empty="warn")

    def test_nothing_is_reported_if_it_is_to_be_ignored(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for candidates in (self.empty_row, self.empty_label):
                check_occupied(candidates, self.classes, on_empty="ignore")

    def test_candidates_that_tell_nothing(self):
        with pytest.warns(UserWarning, match="Every label is a candidate of every row"):
            check_occupied(np.ones((3, 2), np.uint8), [0, 1], on_empty="raise")

    def test_unknown_policy(self):
        with pytest.raises(ValueError, match='on_empty must be "raise", "warn" or "ignore"'):
            check_occupied(self.empty_row, self.classes, on_empty="drop")


def test_encoded_labels_pass_through():
    encoded = encode_labels([{"b"}, {"a", "c"}])
    assert encode_labels(encoded) is encoded
