"""Decisions of a person: read back as written, and refused where they are not about the table."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skpml.cleaning import Decisions, read_decisions, write_decisions
from skpml.tables import Columns, Dialect, TableError, read_table, write_cleaned

TABLE = "file,x,tags\na.jpg,1,sea;sky\nb.jpg,2,sky\n007,3,sea;<b>sand</b>\n"
HEADER = "id,row,label,decision,confidence\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "photos.csv"
    path.write_text(TABLE)
    return read_table(path, columns=Columns(id="file"))


@pytest.fixture
def file(tmp_path):
    def write(text, encoding="utf-8"):
        path = tmp_path / "decisions.csv"
        path.write_bytes(text.encode(encoding))
        return path

    return write


def as_tuples(decisions):
    cells = (decisions.rows, decisions.labels, decisions.keep, decisions.confidence)
    return list(zip(*(values.tolist() for values in cells), strict=True))


def test_what_the_page_exports(table, file, tmp_path):
    found = read_decisions(
        file(HEADER + "007,2,<b>sand</b>,drop,0.125\na.jpg,0,sea,keep,0.5\na.jpg,0,sky,drop,\n"), table
    )
    assert table.label_names == ("<b>sand</b>", "sea", "sky")
    assert found.rows.tolist() == [2, 0, 0]
    assert found.labels.tolist() == [0, 1, 2]
    assert found.keep.tolist() == [False, True, False]
    np.testing.assert_array_equal(found.confidence, [0.125, 0.5, np.nan])
    assert len(found) == 3
    assert found.drop_mask(table).tolist() == [[False, False, True], [False] * 3, [True, False, False]]
    write_cleaned(table, found.drop_mask(table), tmp_path / "cleaned.csv")
    assert (tmp_path / "cleaned.csv").read_text() == "file,x,tags\na.jpg,1,sea\nb.jpg,2,sky\n007,3,sea\n"


def test_a_file_that_went_through_a_spreadsheet(table, file):
    text = (
        "label;id;row;decision;confidence;remark\r\nsea;a.jpg;0; DROP ;0,25;\r\nsky;b.jpg;1;Keep;1;sure\r\n"
    )
    for encoding in ("utf-8-sig", "utf-16"):
        assert as_tuples(read_decisions(file(text, encoding), table)) == [
            (0, 1, False, 0.25),
            (1, 2, True, 1.0),
        ]


def test_apostrophes_around_labels_belong_to_them(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,tags\n1,'sea'\n2,'sky'\n")
    table = read_table(path, dialect=Dialect(quote='"'))
    (tmp_path / "d.csv").write_text(HEADER + "0,0,'sea',drop,\n1,1,'sky',keep,\n")
    assert read_decisions(tmp_path / "d.csv", table).keep.tolist() == [False, True]


def test_no_decisions(table, file):
    found = read_decisions(file(HEADER), table)
    assert len(found) == 0
    assert not found.drop_mask(table).any()


def test_the_confidence_may_be_missing(table, file):
    found = read_decisions(file("id,row,label,decision\na.jpg,0,sea,drop\n"), table)
    assert np.isnan(found.confidence).all()


def test_the_same_twice_counts_once(table, file):
    line = "a.jpg,0,sea,drop,0.5\n"
    assert as_tuples(read_decisions(file(HEADER + line + line), table)) == [(0, 1, False, 0.5)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a.jpg,3,sea,drop,", r"there is no row '3' in photos\.csv, whose rows are 0 to 2"),
        ("a.jpg,-1,sea,drop,", "there is no row '-1'"),
        ("a.jpg,x,sea,drop,", "there is no row 'x'"),
        ("a.jpg,,sea,drop,", "there is no row ''"),
        ("a.jpg,²,sea,drop,", "there is no row '²'"),
        (
            "b.jpg,0,sea,drop,",
            r"row 0 of photos\.csv is 'a\.jpg', not 'b\.jpg': the decisions are of another file",
        ),
        ("7,2,sea,drop,", "row 2 of .* is '007', not '7'"),
        ("a.jpg,0,see,drop,", r"has no label 'see'; did you mean 'sea'\?"),
        ("a.jpg,0,mountain,drop,", "has no label 'mountain'$"),
        (
            "b.jpg,1,sea,drop,",
            "does not have the label 'sea': the file has been changed .* applied to it already",
        ),
        ("a.jpg,0,sea,remove,", "the decision is 'remove', not 'keep' or 'drop'"),
        ("a.jpg,0,sea,,", "the decision is '', not"),
        ("a.jpg,0,sea,drop,high", "the confidence is 'high', not a number from 0 to 1"),
        ("a.jpg,0,sea,drop,1.5", "the confidence is '1.5'"),
        ("a.jpg,0,sea,drop,nan", "the confidence is 'nan'"),
        ("a.jpg,0,sky,keep,", "contradicts line 2, which drops the same label 'sky' of row 0"),
        ("a.jpg,0,sea,drop", "4 values for 5 columns; the file ends within this line"),
        ('"a.jpg,0,sea,drop,', "is never closed"),
    ],
)
def test_lines_that_are_refused(table, file, line, message):
    path = file(f"{HEADER}a.jpg,0,sky,drop,0.5\n{line}")
    with pytest.raises(TableError, match=message) as caught:
        read_decisions(path, table)
    assert str(caught.value).startswith(f"{path}, line 3: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        (
            "id,row,tag,decision\n",
            "line 1: has no column label: a file of decisions has the columns id, row, label",
        ),
        ("id\nx\n", "line 1: has no column row, label, decision"),
    ],
)
def test_files_that_hold_no_decisions(table, file, text, message):
    with pytest.raises(TableError, match=message):
        read_decisions(file(text), table)


def test_names_of_rows_that_were_read_by_number(tmp_path):
    (tmp_path / "a.csv").write_text("file,tags\nx.jpg,sea\n")
    (tmp_path / "d.csv").write_text(HEADER + "x.jpg,0,sea,drop,\n")
    table = read_table(tmp_path / "a.csv", columns=Columns(features=[]))
    with pytest.raises(
        TableError, match=r"call row 0 'x.jpg'.*read by their numbers; name the column .*id=…"
    ):
        read_decisions(tmp_path / "d.csv", table)


# NUL is left out: a file that holds one is taken for no text.
NAME = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=6
).filter(str.strip)


@settings(deadline=None)
@given(data=st.data())
@pytest.mark.slow
def test_odd_names_make_the_round_trip(tmp_path_factory, data):
    labels = sorted(
        data.draw(st.sets(NAME.map(str.strip).filter(lambda name: ";" not in name), min_size=1, max_size=4))
    )
    ids = data.draw(st.lists(NAME, min_size=1, max_size=4, unique=True))
    folder = tmp_path_factory.mktemp("decisions")
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows([("id", "x", "tags"), *((name, 1, ";".join(labels)) for name in ids)])
    (folder / "a.csv").write_bytes(buffer.getvalue().encode())
    dialect = Dialect(delimiter=",", quote='"', encoding="utf-8")
    table = read_table(
        folder / "a.csv", columns=Columns(tags="tags", id="id"), dialect=dialect, separator=";"
    )
    assert table.label_names == tuple(labels)
    cells = [(row, label) for row in range(len(ids)) for label in range(len(labels))]
    chosen = data.draw(st.permutations(cells))[: data.draw(st.integers(0, len(cells)))]
    size = {"min_size": len(chosen), "max_size": len(chosen)}
    decisions = Decisions(
        rows=np.array([row for row, _ in chosen], dtype=np.intp),
        labels=np.array([label for _, label in chosen], dtype=np.intp),
        keep=np.array(data.draw(st.lists(st.booleans(), **size)), dtype=bool),
        confidence=np.array(data.draw(st.lists(st.floats(0, 1) | st.just(np.nan), **size)), dtype=float),
    )
    write_decisions(decisions, table, folder / "b.csv")
    found = read_decisions(folder / "b.csv", table)
    for name in ("rows", "labels", "keep", "confidence"):
        np.testing.assert_array_equal(getattr(found, name), getattr(decisions, name))


def test_nothing_is_overwritten(table, tmp_path):
    path = tmp_path / "decisions.csv"
    path.write_text("mine")
    none = Decisions(
        rows=np.array([], np.intp),
        labels=np.array([], np.intp),
        keep=np.array([], bool),
        confidence=np.array([]),
    )
    with pytest.raises(FileExistsError):
        write_decisions(none, table, path)
    assert path.read_text() == "mine"
    write_decisions(none, table, path, overwrite=True)
    assert path.read_bytes() == b"id,row,label,decision,confidence\r\n"
