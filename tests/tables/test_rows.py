"""Rows for a fitted model: the columns it wants, whatever else stands in the file."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from table_helpers import read, refused

from skpml.datasets import read_dataset
from skpml.tables import TABLE_SUFFIXES, detect_dialect


def test_rows_are_those_of_the_labeled_table(tmp_path: Path) -> None:
    path = tmp_path / "photos.csv"
    path.write_text("file;a;b;note;tags\nx;0,5;1;one;sea\ny;2;-3,25;;sky\n")
    table = read(path, id="file", text="note", features=["a", "b"])
    rows = read(path, labeled=False, features=["b", "a"], id="file")
    np.testing.assert_array_equal(rows.X, table.X[:, ::-1])
    assert (rows.ids, rows.dialect) == (table.ids, table.dialect)
    texts = read(path, labeled=False, text="note")
    assert texts.X.tolist() == [[text] for text in table.texts or ()]
    assert texts.ids == ("0", "1")
    assert (texts.candidates, texts.truth, texts.label_names) == (None, None, ())


def test_the_order_of_features_is_the_callers(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("c,a,b\n3,1,2\n6,4,5\n")
    assert read(path, labeled=False, features=["a", "b", "c"]).X.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert read(path, labeled=False, features=("b",)).X.tolist() == [[2], [5]]


def test_the_decimal_mark_is_told_by_the_columns_that_are_wanted(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("version;a\n1.5;0,5\n1.6;2\n")
    assert detect_dialect(path).decimal == "."
    assert detect_dialect(path, numbers=["a"]).decimal == ","
    assert read(path, labeled=False, features=["a"]).X.tolist() == [[0.5], [2.0]]
    assert read(path, labeled=False, features=["version"]).X.tolist() == [[1.5], [1.6]]


def test_what_is_wanted_must_be_said_and_fit_the_file(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("a,b\n1,2\n")
    error = refused(lambda: read(path, labeled=False), path=path)
    assert [name for name, _ in error.arguments] == ["features", "text"]
    wanted = ("c", "a", "d")
    refused(lambda: read(path, labeled=False, features=wanted), path=path, column="c", expected=wanted)
    known = (*TABLE_SUFFIXES, ".npy", ".npz")
    unknown = tmp_path / "new.xls"
    refused(lambda: read(unknown, labeled=False, features=["a"]), path=unknown, value=".xls", expected=known)
    np.save(tmp_path / "new.npy", np.ones((2, 3)))
    assert read(tmp_path / "new.npy", labeled=False).X.shape == (2, 3)
    for name, value in (("features", ["a"]), ("text", "a"), ("id", "a"), ("decimal", ",")):
        refused(
            lambda option={name: value}: read(tmp_path / "new.npy", labeled=False, **option), argument=name
        )
    for name, value in (("tags", "b"), ("labels", ("b",)), ("true_tags", "b"), ("label_names", ("x",))):
        call = partial(read, path, labeled=False, features=["a"], **{name: value})
        refused(call, argument=name, value=value)
    path.write_text("a,b\n")
    refused(lambda: read(path, labeled=False, features=["a"]), path=path)


def test_quotes_of_a_data_set_are_the_callers(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("x,candidates\n1,'a,b'\n2,\"c\n")
    data = read_dataset(path, quote="'", separator=",")
    assert data.label_names == ('"c', "a", "b")
    path.write_text("x,candidates\n1,'a'\n2,\"c\n")
    assert read_dataset(path, quote="").label_names == ('"c', "'a'")
