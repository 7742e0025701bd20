"""How a CSV file is written is told from the file, and said when it cannot be told."""

import codecs
import csv
import io
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_helpers import refused

from skpml.tables import Dialect, Record, detect_dialect, read_records
from skpml.tables._copying import raw_cells

USUAL = Dialect(encoding="utf-8", delimiter=",", quote='"', decimal=".")

ROWS = [["name", "wärme", "tags"], ["é", "1", "See;Meer"], ["ü", "2", "Meer"], ["ß", "3", ""]]
MARKS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}


def written(path, data):
    path.write_bytes(data)
    return path


@pytest.fixture
def file(tmp_path):
    return lambda data: written(
        tmp_path / "file.csv", data if isinstance(data, bytes) else data.encode("utf-8")
    )


def table(delimiter=",", ending="\n", rows=ROWS):
    return "".join(delimiter.join(row) + ending for row in rows)


@pytest.mark.parametrize(
    ("codec", "mark", "name", "words"),
    [
        ("utf-8", b"", "utf-8", "UTF-8,"),
        ("utf-8", codecs.BOM_UTF8, "utf-8", "UTF-8 with a byte order mark,"),
        ("utf-16-le", codecs.BOM_UTF16_LE, "utf-16-le", "UTF-16,"),
        ("utf-16-be", codecs.BOM_UTF16_BE, "utf-16-be", "UTF-16,"),
        ("utf-32-le", codecs.BOM_UTF32_LE, "utf-32-le", "utf-32-le,"),
        ("cp1252", b"", "cp1252", "Windows-1252 (a guess, because it is not UTF-8),"),
    ],
)
def test_encoding(file, codec, mark, name, words):
    path = file(mark + table().encode(codec))
    found = detect_dialect(path)
    assert (found.encoding, found.mark) == (name, mark)
    assert str(found).startswith(words)
    assert [record.cells for record in read_records(path, found)] == ROWS


def test_bytes_that_windows_does_not_know_are_latin_1(file):
    found = detect_dialect(file(b"a,b\n1,\x81\xe9\n"))
    assert (found.encoding, found.encoding_guessed) == ("latin-1", True)


@pytest.mark.slow
def test_the_odd_byte_may_stand_far_behind_the_first_lines(file):
    data = b"a,b\n" + b"1,2\n" * 400_000 + b"1,\xe9\n"
    assert detect_dialect(file(data)).encoding == "cp1252"


def test_a_character_cut_in_the_middle(file):
    assert "middle of a character" in refused(lambda: detect_dialect(file("a,b\né,ü".encode()[:-1]))).problem
    # After plain ASCII the same byte is a letter of an older encoding.
    assert detect_dialect(file("a,b\n1,ü".encode("cp1252"))).encoding == "cp1252"


@pytest.mark.parametrize(
    ("given", "mark", "expected"),
    [
        ("utf-16", codecs.BOM_UTF16_BE, ("utf-16-be", codecs.BOM_UTF16_BE)),
        ("utf-8-sig", codecs.BOM_UTF8, ("utf-8", codecs.BOM_UTF8)),
        ("UTF8", codecs.BOM_UTF8, ("utf-8", codecs.BOM_UTF8)),
        ("utf-8", b"", ("utf-8", b"")),
        ("latin1", b"", ("latin-1", b"")),
        ("cp1252", codecs.BOM_UTF8, ("cp1252", b"")),
    ],
)
def test_a_given_encoding_keeps_the_mark_that_belongs_to_it(file, given, mark, expected):
    encoded = "a,b".encode("utf-16-be" if mark == codecs.BOM_UTF16_BE else "ascii")
    found = detect_dialect(file(mark + encoded), Dialect(encoding=given))
    assert (found.encoding, found.mark) == expected
    assert not found.encoding_guessed


def test_encodings_that_cannot_be(file):
    refused(lambda: Dialect(encoding="utf-9"), argument="encoding", value="utf-9", path=None)
    path = file("a,é\n")
    refused(
        lambda: detect_dialect(path, Dialect(encoding="ascii")), argument="encoding", value="ascii", path=path
    )
    error = refused(lambda: detect_dialect(file("a,b\n1,2\n".encode("utf-16-le"))), argument="encoding")
    assert [value for _, value in error.arguments] == ["utf-16-le", "utf-16-be"]


@pytest.mark.parametrize("delimiter", MARKS)
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_delimiter(file, delimiter, ending):
    tags = ROWS if delimiter != ";" else [[cell.replace(";", ",") for cell in row] for row in ROWS]
    path = file(table(delimiter, ending, tags))
    found = detect_dialect(path)
    assert found.delimiter == delimiter
    assert f"separated by {MARKS[delimiter]}" in str(found)
    assert [record.cells for record in read_records(path, found)] == tags


def test_marks_that_are_equally_frequent_in_rows_do_not_mislead(file):
    # Two tags in each row, and a decimal comma in each: only the header tells.
    assert detect_dialect(file("x|tags\n1,5|a;b\n2,5|a;c\n")).delimiter == "|"
    assert detect_dialect(file("id,tags\n1,a;b\n2,c;d\n")).delimiter == ","
    assert detect_dialect(file("x;y\n1,5;2,5\n2,5;3,5\n")).delimiter == ";"


def test_the_columns_that_are_asked_for_decide(file):
    path = file("a,b;c\n1,2;3\n4,5;6\n")
    assert detect_dialect(path, columns=["a"]).delimiter == ","
    assert detect_dialect(path, columns=["c"]).delimiter == ";"


def test_a_file_of_one_column_is_believed_where_the_column_is_known(file):
    path = file("tags\nsea,sky\nsea\n")
    found = detect_dialect(path, columns=["tags"])
    assert [record.cells for record in read_records(path, found)] == [["tags"], ["sea,sky"], ["sea"]]
    refused(lambda: detect_dialect(path), argument="delimiter", path=path)


def test_a_delimiter_that_cannot_be_told(file):
    for text in ("x:y:tags\n1:2:sea\n", "Dear Sir, I write\nto you\nabout it\n"):
        refused(lambda text=text: detect_dialect(file(text)), argument="delimiter")
    path = file("x:y:tags\n1:2:sea\n")
    found = detect_dialect(path, Dialect(delimiter=":"))
    assert [record.cells for record in read_records(path, found)][1] == ["1", "2", "sea"]


def test_quotes(file):
    assert detect_dialect(file("a,b\n'x,y',1\n'z',2\n")).quote == "'"
    assert detect_dialect(file("a,b\n'tis,1\n'z',2\n")).quote == '"'
    assert detect_dialect(file("a,b\n\"it's\",1\n'z',2\n")).quote == '"'
    assert detect_dialect(file("a,b\nx,1\n")).quote == '"'
    plain = detect_dialect(file('a,b\n"x,1\n'), Dialect(quote=""))
    assert plain.quote == ""
    assert "cells not quoted" in str(plain)


@pytest.mark.parametrize(
    ("text", "decimal"),
    [
        ("x;y\n1,5;2\n3;4\n", ","),
        ("x;y\n1.5;2\n3;4\n", "."),
        ("x;y\n1;2\n3;4\n", "."),
        ('x,y\n"1,5",2\n', ","),
        # A column that needs the point forbids the comma; who reads the file names the cell.
        ("x;y\n1,5;2.5\n", "."),
        ("x;y\n1,5;v2.5\n", ","),
        ("x;y\n-,5e-3;2\n", ","),
        ("x;y\n1.234,5;2\n", "."),
        ("x;y\n;2\n,25;1\n", ","),
    ],
)
def test_decimal_mark(file, text, decimal):
    found = detect_dialect(file(text))
    assert found.decimal == decimal
    assert str(found).endswith("decimal comma" if decimal == "," else "decimal point")


@pytest.mark.parametrize(
    "text",
    [
        'name,price\na,"1,234"\nb,"56,789"\nc,"-123,456"\n',
        # Plain numbers beside them settle nothing.
        'name,price\na,"1,234"\nb,17\nc,\nd,2000\n',
        "name,price\na,'1,234'\nb,'1,235'\n",
        'price,weight\n"1,234","2,500"\n',
    ],
)
def test_commas_that_may_as_well_stand_between_thousands(file, text):
    path = file(text)
    assert detect_dialect(path).decimal == "."
    assert detect_dialect(path, Dialect(decimal=",")).decimal == ","


@pytest.mark.parametrize(
    "text",
    [
        # Nobody writes thousands so: not three digits, a leading zero, four digits before, an exponent.
        'x,y\n"1,234","2,5"\n',
        'x,y\n"1,234",1\n"12,34",2\n',
        'x,y\n"1,234",1\n"0,234",2\n',
        'x,y\n"1,234",1\n"1234,567",2\n',
        'x,y\n"1,234",1\n"1,234e3",2\n',
        # Where another mark stands between columns a comma is free to be the decimal mark, and mostly is.
        "x;y\n1,234;1\n5,678;2\n",
        "x\ty\n1,234\t1\n5,678\t2\n",
        "x|y\n1,234|1\n5,678|2\n",
    ],
)
def test_commas_that_do_not_stand_between_thousands(file, text):
    assert detect_dialect(file(text)).decimal == ","


def test_columns_of_numbered_tags_are_no_numbers(file):
    path = file("x;tags\n1;1,2\n2;3,1\n")
    assert detect_dialect(path).decimal == ","
    assert detect_dialect(path, not_numbers=["tags"]).decimal == "."


def test_what_is_given_is_believed(file):
    given = {"encoding": "cp1252", "delimiter": "|", "quote": "'", "decimal": ","}
    assert detect_dialect(file("a,b\n1,2\n"), Dialect(**given)) == Dialect(**given)


@pytest.mark.parametrize(
    "given",
    [
        {"delimiter": "ab"},
        {"delimiter": ""},
        {"quote": "ab"},
        {"quote": "|", "delimiter": "|"},
        {"decimal": ";"},
        {"delimiter": ",", "decimal": ",", "quote": ""},
    ],
)
def test_what_cannot_be_given(given):
    refused(lambda: Dialect(**given), argument=next(iter(given)), path=None)


def test_a_detected_dialect_is_refused_if_it_contradicts_what_is_given(file):
    path = file("a,b\n1,2\n")
    refused(lambda: detect_dialect(path, Dialect(decimal=",", quote="")), argument="delimiter")


def test_empty_and_blank_files(file, tmp_path):
    for data in (b"", b"\r\n  \n\n"):
        path = file(data)
        assert "header line" in refused(lambda path=path: detect_dialect(path), path=path).problem
    with pytest.raises(FileNotFoundError, match="there is no file"):
        detect_dialect(tmp_path / "none.csv")


def test_only_the_usual_dialect_needs_no_words(file):
    assert detect_dialect(file("a,b\n1,2.5\n")).is_default
    assert not detect_dialect(file("a;b\n1;2.5\n")).is_default
    assert not detect_dialect(file(codecs.BOM_UTF8 + b"a,b\n")).is_default


CELLS = st.text(st.sampled_from("ab\",;|\t\n\r'\\ é<>&"), max_size=6)


@given(
    rows=st.integers(2, 4).flatmap(
        lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1)
    ),
    delimiter=st.sampled_from(list(MARKS)),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
)
def testraw_cells_are_the_cells_as_written(tmp_path_factory, rows, delimiter, quoting):
    """Cells written by Python's csv module: texts of records join to the file, raw cells to the record."""
    ending = "\r\n"
    buffer = io.StringIO(newline="")
    csv.writer(buffer, delimiter=delimiter, lineterminator=ending, quoting=quoting).writerows(rows)
    path = written(tmp_path_factory.mktemp("raw") / "file.csv", buffer.getvalue().encode())
    dialect = replace(USUAL, delimiter=delimiter)
    records = list(read_records(path, dialect))
    assert [record.cells for record in records] == rows
    assert "".join(record.text for record in records) == buffer.getvalue()
    for record in records:
        cells, end = raw_cells(record, dialect)
        assert end == ending
        assert delimiter.join(cells) + end == record.text
        unquoted = [cell[1:-1].replace('""', '"') if cell.startswith('"') else cell for cell in cells]
        assert unquoted == record.cells


def testraw_cells_with_quotes_inside_plain_cells():
    record = Record(1, 'a "b", "c,d"\r\n', [])
    assert raw_cells(record, USUAL) == (['a "b"', ' "c', 'd"'], "\r\n")
    assert raw_cells(Record(1, '"a,b', []), replace(USUAL, quote="")) == (['"a', "b"], "")


def test_lines_are_counted_over_cells_that_hold_line_breaks(file):
    path = file('a,b\n\n"1\n2",3\n4,5\n')
    assert [(r.line, r.cells) for r in read_records(path, USUAL)] == [
        (1, ["a", "b"]),
        (2, []),
        (3, ["1\n2", "3"]),
        (5, ["4", "5"]),
    ]


def test_a_cell_as_long_as_a_document(file):
    path = file("a,b\n1," + "word " * 60_000 + "\n")
    assert len(list(read_records(path, USUAL))[1].cells[1]) == 300_000


def test_two_readers_at_once_leave_the_limit_of_the_csv_module_as_it_was(file, tmp_path):
    """The limit holds for the whole process, and generators may wait in the middle of a file."""
    long = written(tmp_path / "long.csv", ("a,b\n1," + "word " * 60_000 + "\n2,x\n").encode())
    usual = csv.field_size_limit()
    first, second = read_records(long, USUAL), read_records(long, USUAL)
    next(first)
    assert csv.field_size_limit() == usual
    next(second)
    first.close()
    assert [len(record.cells[1]) for record in second] == [300_000, 1]
    assert csv.field_size_limit() == usual
