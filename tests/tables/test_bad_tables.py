"""Tables that are not what they should be: the error names the file, the place and what would be right."""

import numpy as np
import pytest
from table_helpers import parquet, read, refused

from skpml.datasets import PartialDataset, write_dataset
from skpml.tables import TableError

GOOD = "id,x,y,text,tags\na,1,2,one word,sea;sky\nb,3,4,two words,sky\n"
USUAL = {"id": "id", "ignore": ["text"]}


@pytest.fixture
def file(tmp_path):
    def write(text, name="photos.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def bad(path, facts, **options):
    """The error of a file that is read with the usual options."""
    return refused(lambda: read(path, **(USUAL | options)), path=path, **facts)


def test_the_good_file_is_good(file):
    assert read(file(GOOD), **USUAL).X.shape == (2, 2)


@pytest.mark.parametrize(
    ("option", "missing", "near"),
    [
        ({"tags": "tgas"}, "tgas", "tags"),
        ({"tags": "Tags"}, "Tags", "tags"),
        ({"labels": ["x", "Y"]}, "Y", "y"),
        ({"text": "texts"}, "texts", "text"),
        ({"image": "picture"}, "picture", None),
        ({"id": "ids"}, "ids", "id"),
        ({"features": ["x", "z"]}, "z", None),
        ({"ignore": ["zzz"]}, "zzz", None),
    ],
)
def test_a_missing_column(file, option, missing, near):
    error = bad(file(GOOD), {"column": missing, "expected": near}, **option)
    assert "id, x, y, text, tags" in error.problem


def test_no_labels(file):
    error = bad(file(GOOD.replace("tags", "marks")), {"argument": "tags"})
    assert error.arguments == (("tags", ...), ("labels", ...))


def test_a_column_cannot_be_two_things(file):
    bad(file(GOOD), {"column": "tags"}, tags="tags", text="tags")
    bad(file(GOOD), {"column": "id"}, features=["id"])
    bad(file(GOOD), {"column": "text"}, features=["text"])
    bad(file("x,x,tags\n1,2,a\n"), {"column": "x", "line": 1}, id=None, ignore=())


def test_nothing_to_learn_from(file):
    error = bad(file("id,tags\na,sea\nb,sky\n"), {"argument": "text"}, ignore=())
    assert [name for name, _ in error.arguments] == ["text", "image", "features", "embeddings"]
    bad(file("id,text,tags\na,,sea\nb, ,sky\n"), {"column": "text"}, text="text", ignore=())


@pytest.mark.parametrize(
    ("cell", "argument", "proposed"),
    [
        ("three", "categories", ["x"]),
        ("-inf", "categories", ["x"]),
        ("1e999", "categories", ["x"]),
        ("1_000", "categories", ["x"]),
        ('"3,5"', "decimal", ","),
        ("<script>alert(1)</script>", "categories", ["x"]),
    ],
)
def test_a_cell_that_is_no_number(file, cell, argument, proposed):
    # The point in the other column keeps a comma from being taken as a decimal mark.
    path = file(f"id,x,y,text,tags\na,1,2.5,t,sea\nb,{cell},4.5,t,sky\n")
    facts = {"line": 3, "row": 1, "column": "x", "value": cell.strip('"'), "expected": "a finite number"}
    assert bad(path, facts).arguments == ((argument, proposed), ("ignore", ["x"]))


@pytest.mark.parametrize("cell", ["", "NaN", "three"])
def test_a_cell_that_is_no_number_where_all_must_be(file, cell):
    path = file(f"id,x,text,tags\na,1,t,sea\nb,{cell},t,sky\n")
    facts = {"line": 3, "column": "x", "value": cell, "argument": "ignore"}
    bad(path, facts, only_numbers=True)


def test_a_document_in_the_place_of_a_number_is_not_shown_whole(file):
    document = "word " * 999
    error = bad(file(f"id,x,text,tags\na,1,t,sea\nb,{document},t,sky\n"), {"value": document.strip()})
    assert len(str(error)) < 400


def test_thousands_are_not_decimals(file):
    path = file("id;x;text;tags\na;1,5;t;sea\nb;1.500;t;sky\n")
    error = bad(path, {"line": 3, "column": "x", "value": "1.500"}, decimal=",")
    assert error.arguments[0] == ("decimal", ".")


def test_a_quoted_comma_may_separate_thousands(file):
    path = file('id,price,text,tags\na,"1,234",wide sea,sea\nb,17,blue sky,sky\nc,"-56,789",dark sky,sky\n')
    error = bad(path, {"line": 2, "column": "price", "value": "1,234"})
    assert error.arguments == (("decimal", ","), ("ignore", ["price"]))
    assert "1.234" in error.problem
    assert "1234" in error.problem
    error = refused(lambda: read(path, features=["price"], labeled=False), line=2)
    assert error.arguments == (("decimal", ","),)
    table = read(path, **USUAL, decimal=",")
    np.testing.assert_array_equal(table.X[:, 0], [1.234, 17, -56.789])
    # Nobody has to decide about a column that is not read.
    assert read(path, id="id", text="text", ignore=["price"]).dialect.decimal == "."


def test_large_numbers_whose_sum_overflows_are_numbers(file):
    table = read(file("x,y,tags\n1e308,1e308,a\n1,2,b\n"))
    assert table.X.tolist() == [[1e308, 1e308], [1, 2]]


def test_lines_after_cells_with_line_breaks(file):
    bad(file('id,x,text,tags\na,1,"two\nlines",sea\n\nb,no,t,sky\n'), {"line": 5, "column": "x"})


def test_the_first_error_of_the_file_is_reported(file):
    # The second row has a cell that is no number, the third too few cells.
    path = file("id,x,text,tags\na,1,t,sea\nb,no,t,sky\nc\n")
    bad(path, {"line": 3, "column": "x"}, only_numbers=True)
    path = file("id,x,y,text,tags\na,1,no,t,sea\nb,no,1,t,sky\n")
    bad(path, {"line": 2, "column": "y"}, only_numbers=True)


@pytest.mark.parametrize("cell", ["2", "maybe", "", "0.5"])
def test_label_columns_with_other_values(file, cell):
    path = file(f"id,x,text,p,q\na,1,t,0,1\nb,2,t,1,{cell}\n")
    bad(path, {"line": 3, "column": "q", "value": cell, "expected": "0 or 1"}, labels=["p", "q"])


def test_duplicate_ids(file):
    error = bad(file(GOOD + "a,5,6,three,sea\n"), {"line": 4, "column": "id", "value": "a", "argument": "id"})
    assert "line 2" in error.problem


def test_tags_without_any_tag(file):
    bad(file("id,x,text,tags\na,1,t,\nb,2,t, ; \n"), {"column": "tags"})


def test_text_that_is_taken_for_tags(file, monkeypatch):
    monkeypatch.setattr("skpml.tables._table._MOST_CELLS", 3)
    bad(file(GOOD), {"column": "text", "value": 2, "argument": "separator"}, tags="text", ignore=["tags"])


def test_empty_files(file):
    bad(file(b""), {})
    bad(file("id,x,text,tags\n"), {})
    pytest.importorskip("pyarrow")
    bad(file(b"", "photos.parquet"), {})
    vectors = file(b"", "vectors.npy")
    refused(lambda: read(file(GOOD), embeddings=vectors), path=vectors)


@pytest.mark.parametrize("cut", range(1, len("b,3,4,two words,sky\n")))
def test_a_last_line_cut_anywhere(file, cut):
    """A cut line has too few values, or holds a shorter tag that nobody can tell from a whole one."""
    text = GOOD[:-cut]
    kept = text.splitlines()[-1]
    if kept.count(",") == 4:
        assert read(file(text), **USUAL).candidates.shape[0] == 2
        return
    error = bad(file(text), {"line": 3, "value": kept.count(",") + 1, "expected": 5})
    assert "cut short" in error.problem


def test_lines_too_short_and_too_long(file):
    path = file(GOOD.replace(",sky\n", "\n") + "c,1,2,t,sea\n")
    assert "cut short" not in bad(path, {"line": 3, "value": 4, "expected": 5}).problem
    bad(file(GOOD.replace("sea;sky", "sea,sky")), {"line": 2, "value": 6, "expected": 5})


def test_quotes_that_are_not_closed(file):
    whole = GOOD.replace("two words", '"two words"')
    for odd in ("words", 'words" more'):
        error = bad(file(whole.replace('words"', odd)), {"line": 3})
        assert error.arguments == (("quote", ""),)
    assert read(file(whole.replace('words"', "words")), **USUAL, quote="").ids == ("a", "b")


def test_an_unknown_delimiter(file):
    bad(file(GOOD.replace(",", ":").replace(";", "/")), {"argument": "delimiter"}, ignore=())


def test_bytes_in_another_encoding_than_the_one_given(file):
    path = file(GOOD.encode() + b"c,1,2," + b"t" * 300_000 + b",\xe9\n")
    bad(path, {"argument": "encoding", "value": "utf-8"}, encoding="utf-8")
    assert read(path, **USUAL).dialect.encoding == "cp1252"


@pytest.mark.parametrize("rows", [1, 3])
def test_embeddings_with_another_number_of_rows(file, tmp_path, rows):
    path = tmp_path / "vectors.npy"
    np.save(path, np.ones((rows, 2)))
    refused(lambda: read(file(GOOD), embeddings=path), path=path, value=rows, expected=2)


def test_embeddings_that_are_none(file, tmp_path):
    path, table = tmp_path / "vectors.npy", file(GOOD)
    for matrix, value in (
        (np.ones(2), (2,)),
        (np.ones((2, 0)), (2, 0)),
        (np.ones((0, 2)), (0, 2)),
        (np.array([["a"], ["b"]]), np.dtype("<U1")),
    ):
        np.save(path, matrix)
        refused(lambda: read(table, embeddings=path), path=path, value=value)
    np.save(path, np.array([[1, np.nan], [1, 2]]))
    assert "NaN in row 0, column 1" in refused(lambda: read(table, embeddings=path), path=path).problem
    np.save(path, np.array([[None]]), allow_pickle=True)
    refused(lambda: read(table, embeddings=path), path=path, expected="numbers")
    two = tmp_path / "two.npz"
    np.savez(two, a=np.ones((2, 1)), b=np.ones((2, 1)))
    refused(lambda: read(table, embeddings=two), path=two, value=("a", "b"), expected="embeddings")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read(table, embeddings=tmp_path / "none.npy")
    other = file("1 2", "vectors.txt")
    refused(lambda: read(table, embeddings=other), path=other, argument="embeddings")


def test_parquet_columns(tmp_path):
    path = tmp_path / "photos.parquet"
    base = {"id": ["a", "b"], "text": ["s", "t"], "tags": ["sea", "sky"]}
    for columns, facts in (
        ({"x": ["1", "two"]}, {"row": 1, "column": "x", "value": "two", "argument": "categories"}),
        ({"x": [1.0, np.inf]}, {"row": 1, "column": "x", "value": "inf"}),
        ({"x": [1, 2], "id": ["a", "a"]}, {"row": 1, "column": "id", "value": "a"}),
        ({"x": [1, 2], "tags": [1, 2]}, {"row": 0, "column": "tags", "value": 1}),
    ):
        bad(parquet(path, **(base | columns)), facts)
    flags = parquet(path, **base, x=[1, 2], p=[0, 2])
    facts = {"row": 1, "column": "p", "value": 2, "expected": "0 or 1"}
    bad(flags, facts, labels=["p"], ignore=["text", "tags"])
    bad(parquet(path, **base, x=[1, 2]), {"column": "tgas", "expected": "tags"}, tags="tgas")


def test_parquet_files_that_are_cut(tmp_path):
    path = parquet(tmp_path / "photos.parquet", id=["a", "b"], text=["", ""], x=[1, 2], tags=["sea", "sky"])
    whole = path.read_bytes()
    for end in (10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:end])
        bad(path, {"expected": "Parquet"})


def test_arguments_that_exclude_each_other_or_do_not_apply(file, tmp_path):
    path = file(GOOD)
    for options, names in (
        ({"tags": "tags", "labels": ["x"]}, ["tags", "labels"]),
        ({"true_tags": "tags", "true_labels": ["x"]}, ["true_tags", "true_labels"]),
        ({"features": ["x"], "embeddings": "e.npy"}, ["features", "embeddings"]),
        ({"labels": "x"}, ["labels"]),
        ({"labels": []}, ["labels"]),
        ({"separator": ""}, ["separator"]),
        ({"reader_options": {"xml": "a"}}, ["reader_options"]),
    ):
        error = refused(lambda options=options: read(path, **(USUAL | options)), path=None)
        assert [name for name, _ in error.arguments] == names
    data = tmp_path / "set.npz"
    write_dataset(PartialDataset(None, [[1, 0], [0, 1]]), data)
    for option in ({"tags": "a"}, {"text": "a"}, {"delimiter": ";"}, {"ignore": ["a"]}, {"labels": ["a"]}):
        refused(lambda option=option: read(data, **option), argument=next(iter(option)))
    refused(lambda: read(data), path=data, argument="embeddings")
    excel = file(b"PK", "photos.xls")
    refused(lambda: read(excel), path=excel, value=".xls")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read(tmp_path / "none.csv")
    typed = parquet(tmp_path / "a.parquet", x=[1], tags=["a"])
    refused(lambda: read(typed, decimal=","), argument="decimal")


def test_messages_word_arguments_for_python_and_for_others(file):
    error = refused(lambda: read(file('x,tags\n1,"sea,sky"\n')))
    assert "separator=','" in str(error)
    worded = error.describe(lambda argument: f"--{argument.name} {argument.value}")
    assert "pass --separator ,, else pass --separator ;" in worded
    assert worded.startswith(str(error.path))


def test_an_error_survives_pickling(file):
    import pickle

    error = bad(file(GOOD.replace("3", "three")), {"line": 3})
    again = pickle.loads(pickle.dumps(error))
    assert isinstance(again, TableError)
    assert (str(again), again.line, again.column, again.argument) == (str(error), 3, "x", "categories")
