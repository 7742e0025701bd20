"""Rows for a fitted model: the columns it wants, whatever else stands in the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from skpml.cleaning import detect_dialect, read_rows, read_table
from skpml.datasets import DatasetFormatError, read_csv


def test_rows_are_those_of_the_labelled_table(tmp_path: Path) -> None:
    path = tmp_path / "photos.csv"
    path.write_text("file;a;b;note;tags\nx;0,5;1;one;sea\ny;2;-3,25;;sky\n")
    table = read_table(path, id="file", text="note", features=["a", "b"])
    rows = read_rows(path, features=["b", "a"], id="file")
    np.testing.assert_array_equal(rows.X, table.X[:, ::-1])
    assert (rows.ids, rows.dialect) == (table.ids, table.dialect)
    texts = read_rows(path, text="note")
    assert texts.X.tolist() == [[text] for text in table.texts or ()]
    assert texts.ids is None


def test_the_order_of_features_is_the_callers(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("c,a,b\n3,1,2\n6,4,5\n")
    assert read_rows(path, features=["a", "b", "c"]).X.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert read_rows(path, features=("b",)).X.tolist() == [[2], [5]]


def test_the_decimal_mark_is_told_by_the_columns_that_are_wanted(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("version;a\n1.5;0,5\n1.6;2\n")
    assert detect_dialect(path).decimal == "."
    assert detect_dialect(path, numbers=["a"]).decimal == ","
    assert read_rows(path, features=["a"]).X.tolist() == [[0.5], [2.0]]
    assert read_rows(path, features=["version"]).X.tolist() == [[1.5], [1.6]]


def test_what_is_wanted_must_be_said_and_fit_the_file(tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("a,b\n1,2\n")
    for wanted in ({}, {"features": ["a"], "text": "b"}):
        with pytest.raises(ValueError, match="name either the features or the text"):
            read_rows(path, **wanted)
    with pytest.raises(DatasetFormatError, match="lacks 2 of the 3 columns that are needed: c, d"):
        read_rows(path, features=["c", "a", "d"])
    with pytest.raises(
        ValueError, match=r"unknown suffix '.xlsx'; known are .csv, .tsv, .txt, .parquet, .npy, .npz"
    ):
        read_rows(tmp_path / "new.xlsx", features=["a"])
    np.save(tmp_path / "new.npy", np.ones((2, 3)))
    assert read_rows(tmp_path / "new.npy").X.shape == (2, 3)
    for name, value in (("features", ["a"]), ("text", "a"), ("id", "a"), ("decimal", ",")):
        with pytest.raises(ValueError, match=f"{name} does not apply to .npy files"):
            read_rows(tmp_path / "new.npy", **{name: value})
    path.write_text("a,b\n")
    with pytest.raises(DatasetFormatError, match="has a header but no rows"):
        read_rows(path, features=["a"])


def test_quotes_of_a_data_set_are_the_callers(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("x,candidates\n1,'a,b'\n2,\"c\n")
    data = read_csv(path, quote="'", separator=",")
    assert data.label_names == ('"c', "a", "b")
    path.write_text("x,candidates\n1,'a'\n2,\"c\n")
    assert read_csv(path, quote="").label_names == ('"c', "'a'")
