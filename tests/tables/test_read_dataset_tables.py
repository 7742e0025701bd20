"""CSV and Parquet files as people have them, rather than as we write them."""

import numpy as np
import pytest
from table_helpers import refused

from skpml.datasets import read_dataset

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def csv(folder, text):
    path = folder / "file.csv"
    path.write_text(text, encoding="utf-8")
    return path


def parquet(folder, **columns):
    path = folder / "file.parquet"
    pq.write_table(pa.table(columns), path)
    return path


PHOTOS = """file,width,tags,height,checked
a.jpg,1,sea; sky,2.5,sea
b.jpg,3,"sky",-1e-3,sky
c.jpg,4,sand;sea;sea,0,
"""


def test_tags(tmp_path):
    found = read_dataset(csv(tmp_path, PHOTOS), tags="tags", true_tags="checked", ignore=["file"])
    assert found.label_names == ("sand", "sea", "sky")
    assert found.feature_names == ("width", "height")
    np.testing.assert_array_equal(found.X, [[1, 2.5], [3, -1e-3], [4, 0]])
    assert found.candidates.tolist() == [[0, 1, 1], [0, 0, 1], [1, 1, 0]]
    assert found.truth.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


def test_tags_with_given_labels_and_separators(tmp_path):
    text = PHOTOS.replace(",", "\t").replace(";", "|")
    options = {"tags": "tags", "ignore": ["file", "checked"], "delimiter": "\t", "separator": "|"}
    path = csv(tmp_path, text)
    assert read_dataset(path, **options, label_names=["sky", "sea", "sand"]).label_names == (
        "sky",
        "sea",
        "sand",
    )
    few = ("sky", "sea")
    facts = {"line": 4, "row": 2, "column": "tags", "value": "sand"}
    refused(lambda: read_dataset(path, **options, label_names=few), **facts)


def test_label_columns_by_list_and_by_prefix(tmp_path):
    path = csv(tmp_path, "x,tag_a,tag_b,really_b,really_a\n1,1,true,0,1\n2,0,1,yes,0\n")
    by_prefix = read_dataset(path, prefix="tag_", true_prefix="really_")
    by_list = read_dataset(path, labels=["tag_a", "tag_b"], true_labels=["really_a", "really_b"])
    assert by_prefix.label_names == ("a", "b")
    assert by_list.label_names == ("tag_a", "tag_b")
    for found in (by_prefix, by_list):
        assert found.feature_names == ("x",)
        assert found.candidates.tolist() == [[1, 1], [0, 1]]
        assert found.truth.tolist() == [[1, 0], [0, 1]]


def test_only_true_labels(tmp_path):
    found = read_dataset(csv(tmp_path, "x,truth\n1,a\n2,\n"))
    assert found.candidates.tolist() == found.truth.tolist() == [[1], [0]]


def test_byte_order_mark_and_encoding(tmp_path):
    path = tmp_path / "file.csv"
    path.write_bytes("candidates,x\né,1\n".encode("utf-8-sig"))
    assert read_dataset(path).label_names == ("é",)
    path.write_bytes("candidates,x\né,1\n".encode("latin-1"))
    for options in ({}, {"encoding": "latin-1"}):
        assert read_dataset(path, **options).label_names == ("é",)
    refused(lambda: read_dataset(path, encoding="utf-8"), argument="encoding", value="utf-8")


def test_a_semicolon_table_with_decimal_commas_and_a_tab_table_are_data_sets(tmp_path):
    """What `skpml clean` reads, every other reader reads too."""
    path = csv(tmp_path, "x;candidates;truth\n0,5;a,b;a\n1,25;b;b\n")
    found = read_dataset(path, separator=",")
    assert found.X.tolist() == [[0.5], [1.25]]
    assert found.truth.tolist() == [[1, 0], [0, 1]]
    path = tmp_path / "file.tsv"
    path.write_text("x\tTags\n0.5\ta;b\n1.25\tb\n")
    assert read_dataset(path).candidates.tolist() == [[1, 1], [0, 1]]


@pytest.mark.parametrize(
    ("text", "options", "facts"),
    [
        (PHOTOS, {}, {"line": 2, "column": "file", "value": "a.jpg", "argument": "ignore"}),
        ("x,candidates\n1,a\nnan,b\n", {}, {"line": 3, "column": "x", "value": "nan"}),
        ("x,candidates\n1,a\n,b\n", {}, {"line": 3, "column": "x", "value": ""}),
        ("x,candidates\n1,a\n1_0,b\n", {}, {"line": 3, "column": "x", "value": "1_0"}),
        ('x,candidates\n1,"a\n"\n2\n', {}, {"line": 4, "value": 1, "expected": 2}),
        ("x,candidates\n1,a,b\n", {}, {"line": 2, "value": 3, "expected": 2}),
        ('x,candidates\n1,"a\n', {}, {"line": 2, "argument": "quote"}),
        ("x,candidate:a\n1,1\n2,2\n", {}, {"line": 3, "column": "candidate:a", "value": "2"}),
        ("x,candidate:a,truth:b\n1,1,1\n", {}, {"value": ("a", "b")}),
        ("x,x\n1,1\n", {}, {"line": 1, "column": "x"}),
        ("x,y\n1,1\n", {}, {"argument": "tags", "value": ("x", "y")}),
        ("x,y\n1,1\n", {"tags": "z"}, {"column": "z"}),
        ("x,y\n1,1\n", {"tags": "y", "ignore": ["w"]}, {"column": "w"}),
        ("x,candidates\n", {}, {"line": None}),
        ("x,candidates\n1,a\n2,\n", {}, {"line": None}),
        ("x,candidates,truth\n1,a,a\n2,a;b,b;c\n", {}, {"line": 3, "column": "truth", "value": "c"}),
        ("x,tags,truth:a,truth:b\n1,a,1,0\n2,a,1,1\n3,a,1,1\n", {}, {"line": 3, "column": "truth:b", "value": "b"}),
        ('x,candidates,truth\n1,a;b,"a,b"\n', {}, {"argument": "separator", "column": "truth", "expected": ","}),
        ("x,candidates,truth\n1,a;b,a b\n", {}, {"argument": "separator", "column": "truth", "value": "a b"}),
        ("x,tags,checked\n1,a;b,a\n", {}, {"column": "checked", "argument": "true_tags"}),
        ("x,tags,file\n1,a;b,c\n", {}, {"column": "file", "argument": "ignore"}),
        ("x,candidates\n1,\n", {}, {"column": "candidates"}),
    ],
)  # fmt: skip
def test_csv_what_is_wrong_is_named(tmp_path, text, options, facts):
    path = csv(tmp_path, text)
    refused(lambda: read_dataset(path, **options), path=path, **facts)


def test_parquet_tags_as_text_or_lists(tmp_path):
    path = parquet(tmp_path, x=[1, 2], candidates=[["b", "a"], ["b"]], truth=["b", ""])
    found = read_dataset(path)
    assert found.label_names == ("a", "b")
    assert found.candidates.tolist() == [[1, 1], [0, 1]]
    assert found.truth.tolist() == [[0, 1], [0, 0]]
    np.testing.assert_array_equal(found.X, [[1.0], [2.0]])


def test_parquet_flags_of_any_type(tmp_path):
    path = parquet(tmp_path, a=[True, False], b=[-1, 1], c=[1.0, 0.0], x=pa.array([1, 2], pa.float32()))
    found = read_dataset(path, labels=["a", "b", "c"])
    assert found.candidates.tolist() == [[1, 0, 1], [0, 1, 0]]
    assert found.X.dtype == np.float32


def test_a_missing_list_of_tags_has_no_tags(tmp_path):
    """The same as an empty cell of a CSV file, for data sets as for cleaning."""
    path = parquet(tmp_path, x=[1.0, 2.0], candidates=["a", None], truth=[None, ""])
    assert read_dataset(path).candidates.tolist() == [[1], [0]]
    path = csv(tmp_path, "x,candidates,truth\n1,a,\n2,,\n")
    assert read_dataset(path).candidates.tolist() == [[1], [0]]


@pytest.mark.parametrize(
    ("columns", "facts"),
    [
        ({"x": [1.0, 2.0], "candidates": ["a", "a"], "truth": ["a", "b"]}, {"row": 1, "column": "truth", "value": "b"}),
        ({"x": [1.0, None], "candidates": ["a", "b"]}, {"row": 1, "column": "x", "value": None}),
        ({"x": ["p", "q"], "candidates": ["a", "b"]}, {"row": 0, "column": "x", "argument": "ignore"}),
        ({"x": [1.0, np.inf], "candidates": ["a", "b"]}, {"row": 1, "column": "x", "value": np.inf}),
        ({"x": [1.0, 2.0], "candidates": [1, 2]}, {"row": 0, "column": "candidates"}),
        ({"x": [1.0, 2.0], "candidate:a": [1, 3]}, {"row": 1, "column": "candidate:a", "value": 3}),
        ({"x": [1.0, 2.0]}, {"argument": "tags"}),
    ],
)  # fmt: skip
def test_parquet_what_is_wrong_is_named(tmp_path, columns, facts):
    path = parquet(tmp_path, **columns)
    refused(lambda: read_dataset(path), path=path, line=None, **facts)


def test_unknown_options_of_a_table(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,tags\n1,sea\n")
    for option in ("text", "colour", "mark"):
        with pytest.raises(TypeError, match=option):
            read_dataset(path, **{option: "x"})
