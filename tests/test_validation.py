from types import SimpleNamespace

import numpy as np
import pytest

from skpml._validation import check_parameters


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
