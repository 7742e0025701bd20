"""Cells of tags: what separates them is detected or asked for, and spellings of a tag can be merged."""

import csv

import numpy as np
import pytest
from table_helpers import parquet, read, refused

from skpml.tables import find_twins, write_cleaned
from skpml.tables._tags import split_tags

THREE = (["sea", "sky"], ["sky"], ["lake"], ["sea"], ["lake", "sea", "sky"], [])


@pytest.fixture
def file(tmp_path):
    def write(cells, name="a.csv"):
        with (tmp_path / name).open("w", newline="", encoding="utf-8") as target:
            csv.writer(target).writerows([("x", "tags"), *enumerate(cells)])
        return tmp_path / name

    return write


def sets(table):
    return [[table.label_names[j] for j in np.flatnonzero(row)] for row in table.candidates]


@pytest.mark.parametrize(
    ("cells", "separator"),
    [
        (["sea;sky", "sky", "lake", "sea", "lake;sea;sky", ""], ";"),
        (["sea|sky", "sky", "lake", "sea", "lake|sea|sky", ""], "|"),
        (["sea, sky", "sky", "lake", "sea", "lake, sea, sky", ""], ","),
        (["sea\nsky", "sky", "lake", "sea", "lake\nsea\nsky", ""], "\n"),
        (["sea;\nsky", "sky", "lake", "sea", "lake;\nsea;\nsky", ""], ";"),
        (['["sea", "sky"]', '["sky"]', '["lake"]', '["sea"]', '["lake","sea","sky"]', "[]"], "[]"),
        (["['sea', 'sky']", "['sky']", "['lake']", "['sea']", "['lake', 'sea', 'sky']", ""], "[]"),
        (["{'sea', 'sky'}", "{'sky'}", "{'lake'}", "{'sea'}", "{'lake', 'sea', 'sky'}", ""], "[]"),
        (["('sea', 'sky')", "('sky',)", "('lake',)", "('sea',)", "('lake', 'sea', 'sky')", "()"], "[]"),
        (["[sea, sky]", "[sky]", "[lake]", "[sea]", "[lake, sea, sky]", "[]"], "[]"),
    ],
)
def test_clear_separators_are_detected(file, cells, separator):
    table = read(file(cells))
    assert (table.separator, sets(table)) == (separator, [list(tags) for tags in THREE])


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["Lakes, rivers", "sky", "sea"], ("Lakes, rivers", "sea", "sky")),
        (["Lakes, rivers;sky", "sky", "sea"], ("Lakes, rivers", "sea", "sky")),
        (["C++", "AC/DC", "rock"], ("AC/DC", "C++", "rock")),
        (['["say \\"hi\\", all", "caf\\u00e9"]', "[]"], ("café", 'say "hi", all')),
        (["['it\\'s', None, 'b']", "[]"], ("b", "it's")),
        (["[draft]", "[draft, final]"], ("draft", "final")),
        (["sea, sky", "sky", "sea", "big\tlake, sky", "sea, sky, sea"], ("big\tlake", "sea", "sky")),
        (["sea|lake", "lake", "sea|big\tlake"], ("big\tlake", "lake", "sea")),
        (["sea\tsky", "sky", "sea\tlake, deep"], ("lake, deep", "sea", "sky")),
    ],
)
def test_marks_within_tags_do_not_separate(file, cells, labels):
    assert read(file(cells)).label_names == labels


@pytest.mark.parametrize(
    ("cells", "facts"),
    [
        (["sea,sky", "lake,tree"], {"argument": "separator", "value": ";", "expected": ",", "row": 0}),
        (["sea;sky", "lake", "sky,sea"], {"argument": "separator", "value": ";", "expected": ",", "row": 2}),
        (["sea;sky", "sky|sea"], {"argument": "separator", "row": 1}),
        (["sea;sky", "lake;sea", "sky\tsea"], {"argument": "separator", "expected": "\t", "row": 2}),
        (["a/b", "a/c", "b"], {"argument": "separator", "expected": "/"}),
        (["['a', 'b']", "a"], {"argument": "separator", "value": "a", "line": 3}),
        (["['a' 'b']", "['a']"], {"argument": "separator", "value": "['a' 'b']", "line": 2}),
        (["['a', 'b'", "['a']"], {"argument": "separator", "line": 2}),
    ],
)
def test_what_is_not_clear_is_asked(file, cells, facts):
    error = refused(lambda: read(file(cells)), column="tags", **facts)
    # The answer that is proposed is accepted.
    assert read(file(cells), separator=error.arguments[-1].value).n_file_rows == 0


def test_a_separator_of_lists_needs_lists(file):
    refused(lambda: read(file(["['a']", "a;b"]), separator="[]"), line=3, value="a;b")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_lists_are_edited_as_they_are_written(file, tmp_path, kind):
    cells = ['["sea", "sky"]', ' [ "sky","sea" ] ', '["sea"]']
    path = file(cells) if kind == "csv" else parquet(tmp_path / "a.parquet", x=[0, 1, 2], tags=cells)
    table = read(path)
    drop = (table.candidates > 0) & (np.array(table.label_names) == "sea")
    write_cleaned(table, drop, tmp_path / f"out.{kind}")
    again = read(tmp_path / f"out.{kind}", separator="[]")
    assert sets(again) == [["sky"], ["sky"], []]
    if kind == "csv":
        with (tmp_path / "out.csv").open(newline="") as text:
            assert [row[1] for row in csv.reader(text)] == ["tags", '["sky"]', ' [ "sky"] ', "[]"]


@pytest.mark.parametrize("lists", [False, True])
def test_spellings_are_merged_into_the_most_frequent(file, tmp_path, lists):
    cells = [["Lake", "sea"], ["lake"], ["lake", "Sea  lion"], ["LAKE", "sea lion"], ["sea lion"]]
    if lists:
        path = parquet(tmp_path / "a.parquet", x=list(range(5)), tags=cells)
    else:
        path = file([";".join(tags) for tags in cells])
    assert find_twins(read(path).label_names) == [("LAKE", "Lake", "lake"), ("Sea  lion", "sea lion")]
    table = read(path, merge_case=True)
    assert table.label_names == ("lake", "sea", "sea lion")
    drop = np.zeros(table.candidates.shape, bool)
    drop[[0, 3], 0] = True
    out = tmp_path / f"out{path.suffix}"
    write_cleaned(table, drop, out)
    assert sets(read(out)) == [["sea"], ["lake"], ["Sea  lion", "lake"], ["sea lion"], ["sea lion"]]
    fixed = read(path, merge_case=True, label_names=("Sea Lion", "Lake", "sea"))
    assert fixed.candidates.sum(axis=0).tolist() == [3, 4, 1]
    refused(lambda: read(path, label_names=("Sea Lion", "Lake", "sea")), column="tags", value="lake")


def test_rows_without_tags_are_left_out_and_copied(file, tmp_path):
    path = file(["sea;sky", "", "sky", "", "sea"])
    assert read(path).candidates.sum(axis=1).tolist() == [2, 0, 1, 0, 1]
    table = read(path, skip_untagged=True)
    assert (table.ids, table.X.ravel().tolist()) == (("0", "2", "4"), [0, 2, 4])
    drop = np.zeros((3, 2), bool)
    drop[[0, 2], 0] = True
    write_cleaned(table, drop, tmp_path / "out.csv")
    assert sets(read(tmp_path / "out.csv")) == [["sky"], [], ["sky"], [], []]


def test_a_list_of_many_blanks_is_split_in_time():
    assert split_tags("[" + " " * 100_000 + "'a'" + " " * 100_000 + "]", "[]") == ["a"]
