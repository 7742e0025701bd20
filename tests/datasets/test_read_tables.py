"""CSV and Parquet files as people have them, rather than as we write them."""

import numpy as np
import pytest

from skpml.datasets import DatasetFormatError, read_dataset

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
    found = read_dataset(csv(tmp_path, PHOTOS), candidates="tags", truth="checked", ignore=["file"])
    assert found.label_names == ("sand", "sea", "sky")
    assert found.feature_names == ("width", "height")
    np.testing.assert_array_equal(found.X, [[1, 2.5], [3, -1e-3], [4, 0]])
    assert found.candidates.tolist() == [[0, 1, 1], [0, 0, 1], [1, 1, 0]]
    assert found.truth.tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


def test_tags_with_given_labels_and_separators(tmp_path):
    text = PHOTOS.replace(",", "\t").replace(";", "|")
    options = {"candidates": "tags", "ignore": ["file", "checked"], "delimiter": "\t", "separator": "|"}
    path = csv(tmp_path, text)
    assert read_dataset(path, **options, label_names=["sky", "sea", "sand"]).label_names == (
        "sky",
        "sea",
        "sand",
    )
    with pytest.raises(DatasetFormatError, match="line 4: row 2: tag 'sand' is not among the labels"):
        read_dataset(path, **options, label_names=["sky", "sea"])


def test_label_columns_by_list_and_by_prefix(tmp_path):
    path = csv(tmp_path, "x,tag_a,tag_b,really_b,really_a\n1,1,true,0,1\n2,0,1,yes,0\n")
    by_prefix = read_dataset(path, candidate_prefix="tag_", truth_prefix="really_")
    by_list = read_dataset(path, candidates=["tag_a", "tag_b"], truth=["really_a", "really_b"])
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
    with pytest.raises(DatasetFormatError, match='encoding="latin-1"'):
        read_dataset(path)
    assert read_dataset(path, encoding="latin-1").label_names == ("é",)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (PHOTOS, {"candidates": "tags"}, r"line 2: column 'file' holds 'a.jpg', .* ignore=\['file'\]"),
        ("x,candidates\n1,a\nnan,b\n", {}, "line 3: column 'x' holds 'nan'"),
        ("x,candidates\n1,a\n,b\n", {}, "line 3: column 'x' holds ''"),
        ("x,candidates\n1,a\n1_0,b\n", {}, "line 3: column 'x' holds '1_0'"),
        ('x,candidates\n1,"a\n"\n2\n', {}, "line 4: 1 values for 2 columns"),
        ("x,candidates\n1,a,b\n", {}, "line 2: 3 values for 2 columns"),
        ('x,candidates\n1,"a\n', {}, "line 2: unexpected end of data"),
        ("x,candidate:a\n1,1\n2,2\n", {}, "line 3: label column 'candidate:a' holds '2', not 0 or 1"),
        ("x,candidate:a,truth:b\n1,1,1\n", {}, "need the same labels; only one has a, b"),
        ("x,x\n1,1\n", {}, "line 1: columns must have different names, found twice: x"),
        ("x,y\n1,1\n", {}, r"no labels found: .* \(its columns are x, y\)"),
        ("x,y\n1,1\n", {"candidates": "z"}, r"has no column z \(its columns are x, y\)"),
        ("x,y\n1,1\n", {"candidates": "y", "ignore": ["w"]}, "has no column w to ignore"),
        ("x,candidates\n", {}, "has a header but no rows"),
        (
            "x,candidates\n1,a\n2,\n",
            {},
            '1 of 2 rows have no candidate label .first: row 1.*empty_rows="warn"',
        ),
        (
            "x,candidates,truth\n1,a,a\n2,a;b,b;c\n",
            {},
            r"line 3: every true label must be a candidate: 'c' stands in column 'truth' but not in 'candidates' "
            r"\(1 such label in the file\)$",
        ),
        (
            "x,tags,truth:a,truth:b\n1,a,1,0\n2,a,1,1\n3,a,1,1\n",
            {"candidates": "tags"},
            r"line 3: .*'b' stands in column 'truth:b' but not in 'tags' \(2 such labels in the file\)$",
        ),
        (
            "x,candidates,truth\n1,a;b,'a,b'\n".replace("'", '"'),
            {},
            "if ',' stands between tags, pass separator=','",
        ),
        ("x,candidates,truth\n1,a;b,a b\n", {}, "no tag of the one column .* is the separator ';' right"),
        (
            "x,tags,checked\n1,a;b,a\n",
            {"candidates": "tags"},
            "holds 'a', .*; if it lists true labels, pass truth=\"checked\"; if the column is no feature, pass ignore",
        ),
        (
            "x,tags,file\n1,a;b,c\n",
            {"candidates": "tags"},
            "finite number; if the column is no feature, pass ignore",
        ),
        ("x,candidates\n1,\n", {}, "no columns: at least one label"),
    ],
)
def test_csv_what_is_wrong_is_named(tmp_path, text, options, message):
    with pytest.raises(DatasetFormatError, match=message):
        read_dataset(csv(tmp_path, text), **options)


def test_parquet_tags_as_text_or_lists(tmp_path):
    path = parquet(tmp_path, x=[1, 2], candidates=[["b", "a"], ["b"]], truth=["b", ""])
    found = read_dataset(path)
    assert found.label_names == ("a", "b")
    assert found.candidates.tolist() == [[1, 1], [0, 1]]
    assert found.truth.tolist() == [[0, 1], [0, 0]]
    np.testing.assert_array_equal(found.X, [[1.0], [2.0]])


def test_parquet_flags_of_any_type(tmp_path):
    path = parquet(tmp_path, a=[True, False], b=[-1, 1], c=[1.0, 0.0], x=pa.array([1, 2], pa.float32()))
    found = read_dataset(path, candidates=["a", "b", "c"])
    assert found.candidates.tolist() == [[1, 0, 1], [0, 1, 0]]
    assert found.X.dtype == np.float32


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"x": [1.0, 2.0], "candidates": ["a", "a"], "truth": ["a", "b"]},
            "row 1: every true label must be a candidate: 'b' stands in column 'truth' but not in 'candidates'",
        ),
        ({"x": [1.0, None], "candidates": ["a", "b"]}, "column 'x' has no value in row 1"),
        (
            {"x": ["p", "q"], "candidates": ["a", "b"]},
            r"column 'x' holds \w+ values, not numbers; .*ignore=\['x'\]",
        ),
        ({"x": [1.0, np.inf], "candidates": ["a", "b"]}, r"X contains infinity in row 1, column 0 \('x'\)"),
        ({"x": [1.0, 2.0], "candidates": ["a", None]}, "column 'candidates' has no value in row 1"),
        ({"x": [1.0, 2.0], "candidates": [1, 2]}, "column 'candidates' must hold text"),
        ({"x": [1.0, 2.0], "candidate:a": [1, 3]}, "label column 'candidate:a' holds 3 in row 1, not 0 or 1"),
        ({"x": [1.0, 2.0]}, "no labels found"),
    ],
)
def test_parquet_what_is_wrong_is_named(tmp_path, columns, message):
    with pytest.raises(DatasetFormatError, match=message):
        read_dataset(parquet(tmp_path, **columns))
