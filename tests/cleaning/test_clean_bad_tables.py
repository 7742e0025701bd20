"""Tables that are not what they should be: one sentence names the file, the place and what would be right."""

import numpy as np
import pytest

from skpml.cleaning import read_rows, read_table
from skpml.datasets import DatasetFormatError, PartialDataset, write_dataset

GOOD = "id,x,y,text,tags\na,1,2,one word,sea;sky\nb,3,4,two words,sky\n"


@pytest.fixture
def file(tmp_path):
    def write(text, name="photos.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def parquet(path, **columns):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path)
    return path


def refused(path, message, **options):
    """The error of a file: a single line that begins with its name."""
    with pytest.raises(DatasetFormatError, match=message) as caught:
        read_table(path, **{"id": "id", "ignore": ["text"], **options})
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
    return caught.value


def test_the_good_file_is_good(file):
    assert read_table(file(GOOD), id="id", ignore=["text"]).X.shape == (2, 2)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (
            {"tags": "tgas"},
            r"has no column 'tgas'; did you mean 'tags'\? \(its columns are id, x, y, text, tags\)",
        ),
        ({"tags": "Tags"}, "did you mean 'tags'"),
        ({"labels": ["x", "Y"]}, "has no column 'Y'; did you mean 'y'"),
        ({"text": "texts"}, "did you mean 'text'"),
        ({"image": "picture"}, r"has no column 'picture' \("),
        ({"id": "ids"}, "did you mean 'id'"),
        ({"features": ["x", "z"]}, "has no column 'z'"),
        ({"ignore": ["zzz"]}, "has no column 'zzz'"),
    ],
)
def test_a_missing_column(file, option, message):
    refused(file(GOOD), message, **option)


def test_no_labels(file):
    refused(file(GOOD.replace("tags", "marks")), r'no labels found: pass tags="COLUMN".*labels=\[…\]')


def test_a_column_cannot_be_two_things(file):
    refused(file(GOOD), "column 'tags' holds labels, so it cannot be the text too", tags="tags", text="tags")
    refused(file(GOOD), "columns cannot be features and something else: id", features=["id"])
    refused(file(GOOD), "columns cannot be features and something else: text", features=["text"])
    refused(file("x,x,tags\n1,2,a\n"), "line 1: columns must have different names", id=None, ignore=())


def test_nothing_to_learn_from(file):
    path = file("id,tags\na,sea\nb,sky\n")
    refused(path, r"no columns left to learn from: .*text=….*embeddings=….*features=\[…\]", ignore=())
    refused(
        file("id,text,tags\na,,sea\nb, ,sky\n"),
        "column 'text' is nothing to learn from",
        text="text",
        ignore=(),
    )


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("three", r"line 3: column 'x' holds 'three', which is not a finite number; .*pass ignore=\['x'\]"),
        ("", "line 3: column 'x' holds '', which is not a finite number; fill it in"),
        ("NaN", "line 3: column 'x' holds 'NaN', .* fill it in, drop the row"),
        ("-inf", "line 3: column 'x' holds '-inf'"),
        ("1e999", "line 3: column 'x' holds '1e999'"),
        ("1_000", "line 3: column 'x' holds '1_000'"),
        ('"3,5"', "line 3: column 'x' holds '3,5', .* if ',' is the decimal mark, pass decimal=','"),
        ("<script>alert(1)</script>", "holds '<script>alert"),
    ],
)
def test_a_cell_that_is_no_number(file, cell, message):
    # The point in the other column keeps a comma from being taken as a decimal mark.
    refused(file(f"id,x,y,text,tags\na,1,2.5,t,sea\nb,{cell},4.5,t,sky\n"), message)


def test_a_document_in_the_place_of_a_number_is_not_shown_whole(file):
    error = refused(file(f"id,x,text,tags\na,1,t,sea\nb,{'word ' * 999},t,sky\n"), "holds 'word word .*…'")
    assert len(str(error)) < 400


def test_thousands_are_not_decimals(file):
    path = file("id;x;text;tags\na;1,5;t;sea\nb;1.500;t;sky\n")
    refused(path, "line 3: column 'x' holds '1.500', .* if '.' is the decimal mark", decimal=",")


def test_a_quoted_comma_may_stand_between_thousands(file):
    path = file('id,price,text,tags\na,"1,234",wide sea,sea\nb,17,blue sky,sky\nc,"-56,789",dark sky,sky\n')
    readings = r"pass decimal=',' if that is 1\.234; if it is 1234, write it without the comma"
    refused(path, rf"line 2: column 'price' holds '1,234', .*; {readings}, or pass ignore=\['price'\]$")
    with pytest.raises(DatasetFormatError, match=f"{readings}$"):
        read_rows(path, features=["price"])
    read = read_table(path, id="id", ignore=["text"], decimal=",")
    np.testing.assert_array_equal(read.X[:, 0], [1.234, 17, -56.789])
    # Nobody has to be asked about a column that nobody reads.
    assert read_table(path, id="id", text="text").dialect.decimal == "."


def test_large_numbers_whose_sum_overflows_are_numbers(file):
    table = read_table(file("x,y,tags\n1e308,1e308,a\n1,2,b\n"))
    assert table.X.tolist() == [[1e308, 1e308], [1, 2]]


def test_lines_after_cells_with_line_breaks(file):
    refused(file('id,x,text,tags\na,1,"two\nlines",sea\n\nb,no,t,sky\n'), "line 5: column 'x' holds 'no'")


@pytest.mark.parametrize("cell", ["2", "maybe", "", "0.5"])
def test_label_columns_with_other_values(file, cell):
    path = file(f"id,x,text,p,q\na,1,t,0,1\nb,2,t,1,{cell}\n")
    refused(path, f"line 3: label column 'q' holds '{cell}', not 0 or 1", labels=["p", "q"])


def test_duplicate_ids(file):
    error = refused(file(GOOD + "a,5,6,three,sea\n"), "column 'id' holds 'a' in line 2 and in line 4")
    assert "leave out id=…" in str(error)


def test_tags_without_any_tag(file):
    refused(file("id,x,text,tags\na,1,t,\nb,2,t, ; \n"), "column 'tags' holds no tag in any row")


def test_text_that_is_taken_for_tags(file, monkeypatch):
    monkeypatch.setattr("skpml.tables._collecting._MOST_CELLS", 3)
    refused(
        file(GOOD), r"column 'text' holds 2 different tags: does it hold tags", tags="text", ignore=["tags"]
    )


def test_empty_files(file, tmp_path):
    refused(file(b""), "is empty; a header line with the names of the columns is needed")
    refused(file("id,x,text,tags\n"), "has a header but no rows")
    refused(file(b"", "photos.parquet"), "is empty, so it is no Parquet file")
    np.save(tmp_path / "ok.npy", np.ones((2, 2)))
    vectors = file(b"", "vectors.npy")
    with pytest.raises(DatasetFormatError, match=r"vectors\.npy: is empty"):
        read_table(file(GOOD), embeddings=vectors)


@pytest.mark.parametrize("cut", range(1, len("b,3,4,two words,sky\n")))
def test_a_last_line_cut_anywhere(file, cut):
    """A cut line has too few values, or holds a shorter tag that nobody can tell from a whole one."""
    text = GOOD[:-cut]
    kept = text.splitlines()[-1]
    if kept.count(",") == 4:
        assert read_table(file(text), id="id", ignore=["text"]).candidates.shape[0] == 2
        return
    refused(
        file(text), r"line 3: \d values? for 5 columns; the file ends within this line, so it was cut short"
    )


def test_lines_too_short_and_too_long(file):
    refused(
        file(GOOD.replace(",sky\n", "\n") + "c,1,2,t,sea\n"),
        "line 3: 4 values for 5 columns; write every cell",
    )
    refused(file(GOOD.replace("sea;sky", "sea,sky")), "line 2: 6 values for 5 columns; a cell that holds ','")


def test_quotes_that_are_not_closed(file):
    whole = GOOD.replace("two words", '"two words"')
    refused(
        file(whole.replace('words"', "words")),
        r'line 3: the quote " that opens in this record is never closed; the file was cut short',
    )
    refused(
        file(whole.replace('words"', 'words" more')), "line 3: a cell goes on after the quote that closes it"
    )
    plain = read_table(file(whole.replace('words"', "words")), id="id", ignore=["text"], quote="")
    assert plain.ids == ("a", "b")


def test_an_unknown_delimiter(file):
    refused(
        file(GOOD.replace(",", ":").replace(";", "/")), "cannot tell what stands between columns", ignore=()
    )


def test_bytes_in_another_encoding_than_the_one_given(file):
    path = file(GOOD.encode() + b"c,1,2," + b"t" * 300_000 + b",\xe9\n")
    refused(path, "not utf-8 text; leave out encoding=…", encoding="utf-8")
    assert read_table(path, id="id", ignore=["text"]).dialect.encoding == "cp1252"


@pytest.mark.parametrize("rows", [1, 3])
def test_embeddings_with_another_number_of_rows(file, tmp_path, rows):
    np.save(tmp_path / "vectors.npy", np.ones((rows, 2)))
    with pytest.raises(DatasetFormatError, match=f"vectors.npy: has {rows} rows, but photos.csv has 2"):
        read_table(file(GOOD), embeddings=tmp_path / "vectors.npy")


def test_embeddings_that_are_none(file, tmp_path):
    path, table = tmp_path / "vectors.npy", file(GOOD)
    for matrix, message in (
        (np.ones(2), "must be a matrix of rows × features"),
        (np.ones((2, 0)), "must be a matrix of rows × features"),
        (np.array([[1, np.nan], [1, 2]]), "contains NaN in row 0, column 1"),
        (np.array([["a"], ["b"]]), "must hold numbers"),
    ):
        np.save(path, matrix)
        with pytest.raises(DatasetFormatError, match=message):
            read_table(table, embeddings=path)
    np.save(path, np.array([[None]]), allow_pickle=True)
    with pytest.raises(DatasetFormatError, match="not a readable npy file"):
        read_table(table, embeddings=path)
    np.savez(tmp_path / "two.npz", a=np.ones((2, 1)), b=np.ones((2, 1)))
    with pytest.raises(
        DatasetFormatError, match=r"cannot tell which of its arrays .*\(a, b\); call it 'embeddings'"
    ):
        read_table(table, embeddings=tmp_path / "two.npz")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_table(table, embeddings=tmp_path / "none.npy")
    with pytest.raises(ValueError, match=r"read from \.npy and \.npz files, not '.txt'"):
        read_table(table, embeddings=file("1 2", "vectors.txt"))


def test_parquet_columns(tmp_path):
    path = tmp_path / "photos.parquet"
    base = {"id": ["a", "b"], "text": ["s", "t"], "tags": ["sea", "sky"]}
    for columns, message in (
        ({"x": ["1", "two"]}, r"column 'x' holds string values, not numbers; .*ignore=\['x'\]"),
        ({"x": [1, None]}, "column 'x' has no value in row 1; fill it in"),
        ({"x": [1.0, np.inf]}, "column 'x' has inf, which is not a finite number, in row 1"),
        ({"x": [1, 2], "id": ["a", "a"]}, "column 'id' holds 'a' in row 0 and in row 1"),
        ({"x": [1, 2], "tags": [1, 2]}, "column 'tags' must hold text such as 'a;b', or lists of text"),
    ):
        refused(parquet(path, **(base | columns)), message)
    flags = parquet(path, **base, x=[1, 2], p=[0, 2])
    refused(flags, "'p' holds 2 in row 1, not 0 or 1", labels=["p"], ignore=["text", "tags"])
    refused(parquet(path, **base, x=[1, 2]), "has no column 'tgas'; did you mean 'tags'", tags="tgas")


def test_parquet_files_that_are_cut(tmp_path):
    path = parquet(tmp_path / "photos.parquet", id=["a", "b"], text=["", ""], x=[1, 2], tags=["sea", "sky"])
    whole = path.read_bytes()
    for end in (10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:end])
        refused(path, "not a readable Parquet file; it may be cut short or damaged")


def test_arguments_that_exclude_each_other_or_do_not_apply(file, tmp_path):
    path = file(GOOD)
    for options, message in (
        ({"tags": "tags", "labels": ["x"]}, "tags and labels exclude each other"),
        ({"features": ["x"], "embeddings": "e.npy"}, "features and embeddings exclude each other"),
        ({"labels": "x"}, "labels must be a list of columns, got the single string 'x'"),
        ({"separator": ""}, "separator must not be empty"),
        ({"reader_options": {"xml": "a"}}, "reader_options do not apply to .csv files"),
    ):
        with pytest.raises(ValueError, match=message):
            read_table(path, **{"id": "id", "ignore": ["text"], **options})
    write_dataset(PartialDataset(None, [[1, 0], [0, 1]]), tmp_path / "set.npz")
    for option in ({"tags": "a"}, {"text": "a"}, {"delimiter": ";"}, {"ignore": ["a"]}, {"labels": ["a"]}):
        with pytest.raises(ValueError, match=f"{next(iter(option))} does not apply to .npz files"):
            read_table(tmp_path / "set.npz", **option)
    with pytest.raises(DatasetFormatError, match="has labels only: pass a file of embeddings"):
        read_table(tmp_path / "set.npz")
    with pytest.raises(ValueError, match=r"unknown suffix '\.xlsx'; known are \.csv"):
        read_table(file(b"PK", "photos.xlsx"))
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(ValueError, match=r"decimal does not apply to \.parquet files"):
        read_table(parquet(tmp_path / "a.parquet", x=[1], tags=["a"]), decimal=",")
