"""The file of published results, which benchmarks and reports show beside measured ones."""

from pathlib import Path

import pytest

from skpml import list_methods
from skpml.experiments import read_published
from skpml.metrics import METRICS

PATH = Path(__file__).parents[1] / "benchmarks" / "published_results.csv"


def test_every_result_once_under_the_names_of_the_library():
    results = read_published(PATH)
    assert len(results) == len(results[["metric", "configuration", "method"]].drop_duplicates()) == 5 * 30 * 9
    assert set(results["metric"]) <= set(METRICS)
    assert set(results["method"]) <= set(list_methods())


def test_values_of_the_first_and_the_last_table():
    printed = read_published(PATH).set_index(["metric", "configuration", "method"])
    assert printed.loc[("hamming_loss", "mirflickr", "pml-ma")].tolist() == [0.169, 0.004]
    assert printed.loc[("average_precision", "arts-11", "pml-plr"), "mean"] == 0.560


def test_a_missing_column_is_named(tmp_path):
    (tmp_path / "bad.csv").write_text("metric,configuration,method,mean\n")
    with pytest.raises(ValueError, match="no column 'std'"):
        read_published(tmp_path / "bad.csv")
