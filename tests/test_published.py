"""The file of published results, which benchmarks and reports show beside measured ones."""

from pathlib import Path

import pytest

from skpml import list_methods
from skpml.experiments import read_published
from skpml.metrics import METRICS
from skpml.tables import TableError

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


HEAD = "metric,configuration,method,mean,std,source\n"
GOOD = "average_precision,emotions-3,ours,0.81,,thesis\n"


def test_a_file_of_a_user(tmp_path):
    path = tmp_path / "good.csv"
    path.write_text(
        "\ufeff" + HEAD + GOOD + "\n" + GOOD.replace("ours", "theirs").replace(",,", ",0.01,"),
        encoding="utf-8",
    )
    table = read_published(path)
    assert table["mean"].tolist() == [0.81, 0.81]
    assert table["std"].isna().tolist() == [True, False]


@pytest.mark.parametrize(
    ("row", "column"),
    [
        (GOOD.replace("average_precision", "average_precison"), "metric"),
        (GOOD.replace("emotions-3", ""), "configuration"),
        (GOOD.replace("ours", " "), "method"),
        (GOOD.replace("0.81", "0,81").replace("0,81", '"0,81"'), "mean"),
        (GOOD.replace("0.81", ""), "mean"),
        (GOOD.replace("0.81", "nan"), "mean"),
        (GOOD.replace("0.81,", "0.81,±0.01"), "std"),
        (GOOD.replace("thesis", "book"), None),
    ],
)
def test_a_wrong_value_is_reported_with_line_and_column(tmp_path, row, column):
    path = tmp_path / "bad.csv"
    path.write_text(HEAD + GOOD + "\n" + row, encoding="utf-8")
    with pytest.raises(TableError) as raised:
        read_published(path)
    assert (raised.value.path, raised.value.line, raised.value.column) == (path, 4, column)
    assert "line 4" in str(raised.value)
