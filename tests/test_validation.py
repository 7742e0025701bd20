from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from skpml._validation import check_parameters, check_verified


def checked(**parameters):
    check_parameters(
        SimpleNamespace(**({"weight": 1.0, "count": 1, "size": None, "form": "mean"} | parameters)),
        weights=("weight",),
        counts=("count",),
        optional_counts=("size",),
        choices={"form": ("mean", "median")},
    )


@pytest.mark.parametrize(
    "good",
    [{"weight": 0}, {"weight": np.float32(3)}, {"count": np.int64(2)}, {"size": 4}, {"form": "median"}],
)
def test_good_values(good):
    checked(**good)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"weight": -1}, "weight must be a finite number of at least 0, got -1"),
        ({"weight": np.inf}, "weight must be"),
        ({"weight": np.nan}, "weight must be"),
        ({"weight": True}, "weight must be"),
        ({"weight": "1"}, "weight must be"),
        ({"count": 0}, "count must be a whole number of at least 1, got 0"),
        ({"count": 2.0}, "count must be"),
        ({"count": None}, "count must be"),
        ({"count": True}, "count must be"),
        ({"size": 0}, "size must be None or a whole number"),
        ({"form": "mode"}, r"form must be one of \('mean', 'median'\), got 'mode'"),
        ({"form": ["mean"]}, "form must be one of"),
    ],
)
def test_bad_values_are_named(bad, message):
    with pytest.raises(ValueError, match=message):
        checked(**bad)


VERIFIED = np.array([[1, 0, -1], [0, 0, 1]])


@pytest.mark.parametrize(
    "given",
    [
        VERIFIED,
        VERIFIED.astype(np.float32),
        VERIFIED.astype(object),
        VERIFIED.tolist(),
        pd.DataFrame(VERIFIED, columns=list("abc")),
        *(getattr(scipy.sparse, f"{form}_array")(VERIFIED) for form in ("csr", "csc", "coo", "lil", "dok")),
        scipy.sparse.csr_matrix(VERIFIED),
        # The same answer twice is one answer.
        scipy.sparse.coo_array(([1, 1, -1, 1], ([0, 0, 0, 1], [0, 0, 2, 2])), shape=(2, 3)),
    ],
)
def test_verified_cells_of_any_form(given):
    found = check_verified(given, (2, 3))
    assert found.dtype == np.int8
    np.testing.assert_array_equal(found, VERIFIED)


def test_columns_of_verified_cells_are_in_the_order_of_the_labels():
    frame = pd.DataFrame(VERIFIED, columns=list("acb"))
    check_verified(frame, (2, 3))
    check_verified(frame, (2, 3), names=np.array(list("acb")))
    check_verified(frame, (2, 3), names=np.array(list("xyz")))
    with pytest.raises(ValueError, match="column 1 is 'c' and label 1 is 'b'"):
        check_verified(frame, (2, 3), names=list("abc"))


def test_verified_cells_are_copied_and_may_be_absent():
    given = VERIFIED.astype(np.int8)
    assert check_verified(given, (2, 3)) is not given
    assert check_verified(None, (2, 3)) is None
    assert not check_verified(np.zeros((2, 3)), (2, 3)).any()


@pytest.mark.parametrize("convert", [np.asarray, scipy.sparse.csr_array, scipy.sparse.coo_array])
@pytest.mark.parametrize("bad", [2, -2, 0.5, np.nan, np.inf])
def test_other_values_of_verified_cells_are_named(bad, convert):
    given = VERIFIED.astype(float)
    given[1, 0] = bad
    with pytest.raises(ValueError, match=rf"row 1, label 0 is {bad}"):
        check_verified(convert(given), (2, 3))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            VERIFIED.T,
            r"verified should have the shape of the candidates, \(2, 3\), but its shape is \(3, 2\)",
        ),
        (VERIFIED[0], r"its shape is \(3,\)"),
        (scipy.sparse.csr_array(VERIFIED.T), r"its shape is \(3, 2\)"),
        (VERIFIED > 0, "boolean"),
        (VERIFIED.astype(str), "of type <U"),
        (np.array([[1, 0, 0], [0, "yes", 0]], dtype=object), "row 1, label 1 is 'yes'"),
        (np.array([[1, 0, 0], [0, None, 0]], dtype=object), "row 1, label 1 is None"),
        (pd.DataFrame({"a": [1, 0], "b": [0, 3], "c": [0, 0]}), "row 1, label 'b' is 3"),
        (
            scipy.sparse.coo_array(([1, -1], ([1, 1], [2, 2])), shape=(2, 3)),
            "row 1, label 2 more than once, with different values",
        ),
    ],
)
def test_errors_of_verified_cells_name_the_place(given, message):
    with pytest.raises(ValueError, match=message):
        check_verified(given, (2, 3))
