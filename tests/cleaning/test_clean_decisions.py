"""Decisions of a person: read back as written, and refused where they are not about the table."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skpml.cleaning import Decisions, read_decisions, write_decisions
from skpml.cleaning._batch import propose_batch, random_order
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


def test_added_labels_are_kept_apart_and_make_the_round_trip(table, file, tmp_path):
    lines = "b.jpg,1,sea,add,\na.jpg,0,sky,drop,0.5\na.jpg,0,<b>sand</b>,ADD,\nb.jpg,1,sea,add,\n"
    found = read_decisions(file(HEADER + lines), table)
    assert as_tuples(found)[0][:3] == (1, 1, True)
    assert np.argwhere(found.add_mask(table)).tolist() == [[0, 0], [1, 1]]
    assert np.argwhere(found.drop_mask(table)).tolist() == [[0, 2]]
    assert found.verified(table).tolist() == [[1, 0, -1], [0, 1, 0], [0, 0, 0]]
    assert not found.random_sample(table).cells.any()
    write_decisions(found, table, tmp_path / "again.csv")
    again = read_decisions(tmp_path / "again.csv", table)
    np.testing.assert_array_equal(again.verified(table), found.verified(table))
    write_cleaned(table, found.drop_mask(table), tmp_path / "c.csv", add=found.add_mask(table))
    assert (tmp_path / "c.csv").read_text() == (
        "file,x,tags\na.jpg,1,sea;<b>sand</b>\nb.jpg,2,sky;sea\n007,3,sea;<b>sand</b>\n"
    )
    with pytest.raises(TableError, match="only a person adds labels") as caught:
        read_decisions(file("id,row,label,decision,by\nb.jpg,1,sea,add,model\n"), table)
    assert caught.value.line == 2


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
        ("a.jpg,0,mountain,drop,", "has no label 'mountain'; its labels are <b>sand</b>, sea, sky"),
        (
            "b.jpg,1,sea,drop,",
            "does not have the label 'sea': the file has been changed .* applied to it already",
        ),
        ("a.jpg,0,sea,remove,", "the decision is 'remove', not 'keep', 'drop' or 'add'"),
        ("b.jpg,1,sea,keep,", "does not have the label 'sea': .*; to add it, the decision must be 'add'"),
        (
            "a.jpg,0,sea,add,",
            "has the label 'sea' already: the file has been changed .* applied to it already",
        ),
        ("b.jpg,1,see,add,", r"has no label 'see'; did you mean 'sea'\?"),
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
            "line 1: has no column label: decisions have the columns id, row, label",
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


@pytest.fixture
def many(tmp_path):
    """Twelve rows with three labels each, and the places of their cells in the random order."""
    path = tmp_path / "many.csv"
    path.write_text("x,tags\n" + "".join(f"{row},a;b;c\n" for row in range(12)))
    table = read_table(path)
    return table, random_order(table.candidates, 0)


def decide(places, chosen, *, drawn=None, keep=True, by_model=False):
    """Decisions about the cells at some places, by default with their places."""
    order = np.argsort(places, axis=None)
    cells = [np.unravel_index(order[place - 1], places.shape) for place in chosen]
    return Decisions(
        rows=np.array([row for row, _ in cells], dtype=np.intp),
        labels=np.array([label for _, label in cells], dtype=np.intp),
        keep=np.full(len(cells), keep),
        confidence=np.full(len(cells), 0.5),
        by_model=np.full(len(cells), by_model),
        drawn=np.array(chosen if drawn is None else drawn, dtype=np.intp),
    )


def test_places_and_accepted_suggestions_are_written_only_where_there_are_any(table, tmp_path):
    rows, labels = np.array([0, 0, 2]), np.array([1, 2, 0])
    decided = {"rows": rows, "labels": labels, "keep": np.array([True, False, False]),
               "confidence": np.array([0.5, np.nan, 1.0])}  # fmt: skip
    more = {"by_model": np.array([False, False, True]), "drawn": np.array([7, 0, 0])}
    headers = {(): "", ("by_model",): ",by", ("drawn",): ",drawn", ("by_model", "drawn"): ",by,drawn"}
    for names, columns in headers.items():
        decisions = Decisions(**decided, **{name: more[name] for name in names})
        write_decisions(decisions, table, tmp_path / "one.csv", overwrite=True)
        found = read_decisions(tmp_path / "one.csv", table)
        for name in ("by_model", "drawn"):
            expected = more[name] if name in names else np.zeros(3)
            np.testing.assert_array_equal(getattr(found, name), expected)
        write_decisions(found, table, tmp_path / "two.csv", overwrite=True)
        content = (tmp_path / "one.csv").read_bytes()
        assert (tmp_path / "two.csv").read_bytes() == content
        assert content.decode().splitlines()[0] == HEADER.strip() + columns
    assert content.decode().splitlines()[1:] == [
        "a.jpg,0,sea,keep,0.5,,7",
        "a.jpg,0,sky,drop,,,",
        "007,2,<b>sand</b>,drop,1.0,model,",
    ]


def test_what_a_person_checked_is_verified_and_what_the_model_suggested_is_not(table, file):
    lines = "a.jpg,0,sea,keep,,,\na.jpg,0,sky,drop,,,2\n007,2,sea,drop,,model,\n"
    found = read_decisions(file(HEADER.strip() + ",by,drawn\n" + lines), table)
    verified = found.verified(table)
    assert verified.dtype == np.int8
    assert verified.tolist() == [[0, 1, -1], [0, 0, 0], [0, 0, 0]]
    # Both were decided.
    assert found.drop_mask(table).sum() == 2


def test_a_cell_decided_twice_counts_once_and_a_check_counts_more_than_a_suggestion(table, file):
    lines = "a.jpg,0,sea,drop,0.5,model,\na.jpg,0,sea,drop,0.5,,4\n"
    found = read_decisions(file(HEADER.strip() + ",by,drawn\n" + lines), table)
    assert as_tuples(found) == [(0, 1, False, 0.5)]
    assert found.by_model.tolist() == [False]
    assert found.drawn.tolist() == [4]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a.jpg,0,sea,drop,,me,", "the decision is by 'me', not by 'model'"),
        ("a.jpg,0,sea,drop,,,0", "the place in the random order is '0'"),
        ("a.jpg,0,sea,drop,,,1.5", "the place in the random order is '1.5'"),
        ("a.jpg,0,sea,drop,,,x", "the place in the random order is 'x'"),
    ],
)
def test_columns_of_the_sample_that_are_refused(table, file, line, message):
    with pytest.raises(TableError, match=message) as caught:
        read_decisions(file(f"{HEADER.strip()},by,drawn\n{line}\n"), table)
    assert caught.value.line == 2


def test_the_sample_is_the_decided_beginning_of_the_random_order(many):
    table, places = many
    sample = decide(places, [3, 1, 2]).random_sample(table)
    assert (sample.cells == ((places > 0) & (places <= 3))).all()
    assert (sample.n_misplaced, sample.n_after_gap) == (0, 0)
    # One undecided cell ends it.
    sample = decide(places, [1, 2, 4, 5]).random_sample(table)
    assert sorted(places[sample.cells]) == [1, 2]
    assert (sample.n_misplaced, sample.n_after_gap) == (0, 2)
    assert not decide(places, [2, 3]).random_sample(table).cells.any()


def test_chosen_cells_fill_the_sample_but_do_not_prolong_it(many):
    table, places = many
    # The second was chosen before its turn, and not asked again; the fifth and sixth are chosen too.
    decisions = decide(places, [1, 2, 3, 4, 5, 6], drawn=[1, 0, 3, 4, 0, 0])
    sample = decisions.random_sample(table)
    assert sorted(places[sample.cells]) == [1, 2, 3, 4]
    assert (sample.n_misplaced, sample.n_after_gap) == (0, 0)
    assert not decide(places, [1, 2], drawn=[0, 0]).random_sample(table).cells.any()


def test_another_seed_or_an_edited_file_is_no_sample_but_still_counts_as_checked(many):
    table, places = many
    decisions = decide(places, [1, 2, 3], keep=False)
    sample = decisions.random_sample(table, random_state=1)
    assert not sample.cells.any()
    assert sample.n_misplaced == 3
    assert (decisions.verified(table) == -1).sum() == 3
    edited = decide(places, [1, 2, 9], drawn=[1, 2, 3]).random_sample(table)
    assert sorted(places[edited.cells]) == [1, 2]
    assert edited.n_misplaced == 1


def test_accepted_suggestions_are_no_sample(many):
    table, places = many
    assert not decide(places, [1, 2, 3], by_model=True).random_sample(table).cells.any()


def test_a_sample_over_two_batches_is_unbiased(many):
    """Over all seeds, each cell is equally often within the sample, whatever was chosen besides."""
    table, _ = many
    counts = np.zeros(table.candidates.shape)
    sizes = []
    for seed in range(1500):
        places = random_order(table.candidates, seed)
        verified = np.zeros(places.shape, dtype=np.int8)
        drawn = np.zeros(places.shape, dtype=np.intp)
        # The most useful cells are always those of the first rows.
        usefulness = np.arange(36, 0, -1.0).reshape(12, 3)
        for _ in range(2):
            for question in propose_batch(places, verified, usefulness, size=10):
                verified[question.row, question.label] = 1
                drawn[question.row, question.label] = question.drawn
        rows, labels = np.nonzero(verified)
        decisions = Decisions(
            rows=rows, labels=labels, keep=np.ones(len(rows), bool), confidence=np.ones(len(rows)),
            drawn=drawn[rows, labels],
        )  # fmt: skip
        sample = decisions.random_sample(table, random_state=seed).cells
        counts += sample
        sizes.append(sample.sum())
    share = counts / 1500
    assert min(sizes) >= 14
    assert abs(share - np.mean(sizes) / 36).max() < 5 * np.sqrt(0.25 / 1500)
