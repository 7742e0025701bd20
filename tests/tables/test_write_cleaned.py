"""Cleaned copies: the labels that are dropped are gone, and nothing else is changed."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_helpers import read, refused

from skpml.datasets import PartialDataset, read_dataset, write_cleaned_copy, write_dataset
from skpml.tables import write_cleaned
from skpml.tables._editing import TagChange, edit_tags, turn_text

# Blank lines, needless quotes, doubled quotes, line breaks, blanks around and no line ending at the end.
ODD = (
    '"x";note;tags;y\r\n'
    '1,50;"say ""hi""; and\r\nmore";sea; 2\r\n'
    "\r\n"
    '+2,0;;" sky , sea,sand,sea ";03\r\n'
    '3;plain "quotes";"sky";4'
)


def written(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def dropping(table, *cells):
    drop = np.zeros(table.candidates.shape, bool)
    for row, label in cells:
        drop[row, table.label_names.index(label)] = True
    return drop


def cleaned(path, table, drop):
    target = path.with_name(f"cleaned{path.suffix}")
    write_cleaned(table, drop, target, overwrite=True)
    return target


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16-be", "utf-16", "cp1252"])
def test_every_encoding_is_copied_to_the_byte(tmp_path, encoding):
    def encoded(text):
        return (b"\xfe\xff" if encoding == "utf-16-be" else b"") + text.encode(encoding)

    text = ODD.replace("plain", "größer")
    path = written(tmp_path / "odd.csv", encoded(text))
    table = read(path, separator=",", ignore=["note"])
    assert table.candidates.tolist() == [[0, 1, 0], [1, 1, 1], [0, 0, 1]]
    assert cleaned(path, table, dropping(table)).read_bytes() == encoded(text)
    without_sky = cleaned(path, table, dropping(table, (2, "sky")))
    assert without_sky.read_bytes() == encoded(text.replace('"sky";4', '"";4'))


def test_dropped_tags_are_gone_and_all_else_stands(tmp_path):
    path = written(tmp_path / "odd.csv", ODD)
    table = read(path, separator=",", ignore=["note"])
    drop = dropping(table, (0, "sea"), (1, "sea"), (2, "sky"))
    expected = (
        ODD.replace(";sea; 2", ";; 2")
        .replace('" sky , sea,sand,sea "', '" sky ,sand"')
        .replace('"sky";4', '"";4')
    )
    assert cleaned(path, table, drop).read_bytes() == expected.encode()


@pytest.mark.parametrize(
    ("cell", "dropped", "expected"),
    [
        ("lake;sea;tree", {"sea"}, "lake;tree"),
        ("lake; sea; tree", {"lake"}, "sea; tree"),
        (" lake; sea", {"lake"}, " sea"),
        ("lake; sea; tree", {"tree"}, "lake; sea"),
        ("sea;lake;sea", {"sea"}, "lake"),
        ("sea", {"sea"}, ""),
        ("sea;;lake;", {"lake"}, "sea;;"),
        ("Sea;sea", {"sea"}, "Sea"),
        ("b;a;c", {"a"}, "b;c"),
    ],
)
def test_tags_out_of_a_cell(cell, dropped, expected):
    assert edit_tags(cell, TagChange(frozenset(dropped), (), ";")) == expected


def test_a_tag_that_does_not_stand_there():
    with pytest.raises(KeyError):
        edit_tags("lake;seaside", TagChange(frozenset({"sea"}), (), ";"))


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("1", "0"),
        (" 1 ", " 0 "),
        ("1.0", "0.0"),
        ("true", "false"),
        ("TRUE", "FALSE"),
        ("Yes", "No"),
        ("tRue", "false"),
    ],
)
def test_the_opposite_is_written_alike(cell, expected):
    assert turn_text(cell, yes=False) == expected


@pytest.mark.parametrize(
    ("cell", "expected"), [("1", "-1"), (" 1.0", " -1.0"), ("TRUE", "FALSE"), ("yes", "no")]
)
def test_the_opposite_of_a_number_where_minus_one_says_no(cell, expected):
    assert turn_text(cell, yes=False, minus=True) == expected


# A label without any no goes by the others; each column with one by its own first.
SIGNED = "a,b,c,d,e,x\n1,1,1,TRUE,1,1\n-1,0,1,TRUE,1,2\n1,-1,1,FALSE,0,3\n1,1,1,TRUE,-1,4\n"


def test_label_columns_get_their_own_way_to_say_no(tmp_path):
    path = written(tmp_path / "signed.csv", SIGNED)
    table = read(path, labels=["a", "b", "c", "d", "e"])
    drop = dropping(table, (3, "a"), (3, "b"), (3, "c"), (3, "d"), (1, "e"))
    expected = SIGNED.replace("1,1,1,TRUE,-1,4", "-1,0,-1,FALSE,-1,4").replace("TRUE,1,2", "TRUE,0,2")
    assert cleaned(path, table, drop).read_text() == expected
    plain = written(tmp_path / "plain.csv", "a,b,x\n1,1,1\n1,1,2\n")
    table = read(plain, labels=["a", "b"])
    assert cleaned(plain, table, dropping(table, (1, "b"))).read_text() == "a,b,x\n1,1,1\n1,0,2\n"


def test_label_columns_get_zero(tmp_path):
    text = "a,x,b,c\n1,1,TRUE,1\n0,2,FALSE,1.0\n1,3,TRUE,0\n"
    path = written(tmp_path / "flags.csv", text)
    table = read(path, labels=["a", "b", "c"])
    drop = dropping(table, (0, "a"), (0, "b"), (1, "c"), (2, "b"))
    assert cleaned(path, table, drop).read_text() == "a,x,b,c\n0,1,FALSE,1\n0,2,FALSE,0.0\n1,3,FALSE,0\n"


def test_a_cell_that_begins_with_a_quote_after_the_drop(tmp_path):
    path = written(tmp_path / "quotes.csv", 'x,tags\n1,a;"b"\n2,"b"\n')
    table = read(path)
    assert table.label_names == ('"b"', "a", "b")
    target = cleaned(path, table, dropping(table, (0, "a")))
    assert target.read_text() == 'x,tags\n1,"""b"""\n2,"b"\n'


def test_a_row_of_one_column_does_not_vanish(tmp_path):
    path = written(tmp_path / "one.csv", "tags\nsea\nsky;sea\n")
    np.save(tmp_path / "e.npy", np.ones((2, 1)))
    options = {"tags": "tags", "embeddings": tmp_path / "e.npy"}
    table = read(path, **options)
    target = cleaned(path, table, dropping(table, (0, "sea")))
    assert target.read_text() == 'tags\n""\nsky;sea\n'
    assert read(target, **options).candidates.tolist() == [[0, 0], [1, 1]]
    unquoted = read(path, **options, quote="")
    refused(lambda: cleaned(path, unquoted, dropping(unquoted, (0, "sea"))), path=path, line=2)


CELL = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
TAG = st.one_of(
    st.sampled_from(
        ["sea", "<b>sea</b>", "<script>alert('x')</script>", 'say "hi"', "a,b", "ü\n", "'", '"', "=1+1"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5),
)


@given(data=st.data())
@pytest.mark.slow
def test_odd_tags_make_the_round_trip(tmp_path_factory, data):
    """Whatever stands in cells and tags: nothing dropped is the same file, and what is dropped is exactly gone."""
    delimiter = data.draw(st.sampled_from(",;\t|"))
    separator = data.draw(st.sampled_from(";,/|"))
    tag_lists = data.draw(st.lists(st.lists(TAG, max_size=4), min_size=1, max_size=6))
    tag_lists.append(["always"])
    notes = data.draw(st.lists(CELL, min_size=len(tag_lists), max_size=len(tag_lists)))
    buffer = io.StringIO(newline="")
    writer = csv.writer(
        buffer, delimiter=delimiter, quoting=data.draw(st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]))
    )
    writer.writerow(["note", "tags", "x"])
    writer.writerows([note, separator.join(tags), 1] for note, tags in zip(notes, tag_lists, strict=True))
    path = written(tmp_path_factory.mktemp("odd") / "odd.csv", buffer.getvalue())
    options = {
        "separator": separator,
        "ignore": ["note"],
        "delimiter": delimiter,
        "quote": '"',
        "encoding": "utf-8",
    }
    table = read(path, **options)
    expected = [
        {t for tag in tags for part in tag.split(separator) if (t := part.strip())} for tags in tag_lists
    ]
    found = [{table.label_names[j] for j in np.flatnonzero(row)} for row in table.candidates]
    assert found == expected
    assert cleaned(path, table, np.zeros(table.candidates.shape, bool)).read_bytes() == path.read_bytes()
    drop = np.array(
        data.draw(st.lists(st.booleans(), min_size=table.candidates.size, max_size=table.candidates.size))
    )
    chosen = drop.reshape(table.candidates.shape)
    drop, add = chosen & (table.candidates == 1), chosen & (table.candidates == 0)
    drop[-1] = add[-1] = False
    target = path.with_name("added.csv")
    write_cleaned(table, drop, target, add=add)
    again = read(target, **options)
    left = [
        {table.label_names[j] for j in np.flatnonzero(row)}
        for row in (table.candidates.astype(bool) & ~drop) | add
    ]
    assert [{again.label_names[j] for j in np.flatnonzero(row)} for row in again.candidates] == left
    rows = list(csv.reader(io.StringIO(target.read_bytes().decode(), newline=""), delimiter=delimiter))
    assert [row[0] for row in rows[1:]] == notes


def test_a_whole_or_nothing(tmp_path):
    path = written(tmp_path / "a.csv", "x,tags\n1,sea\n2,sky\n")
    table, target = read(path), tmp_path / "b.csv"
    drop = dropping(table, (0, "sea"))
    target.write_text("mine")
    with pytest.raises(FileExistsError, match=r"b\.csv exists already: pass overwrite=True"):
        write_cleaned(table, drop, target)
    assert target.read_text() == "mine"
    for changed in (
        "x,tags\n1,sky\n2,sky\n",
        "x,tags\n1,sea\n",
        "x,tags\n1,sea\n2,sky\n3,sea\n",
        "x,marks\n1,sea\n",
    ):
        path.write_text(changed)
        error = refused(lambda: write_cleaned(table, drop, target, overwrite=True), path=path)
        assert "has changed" in error.problem
    assert target.read_text() == "mine"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a.csv", "b.csv"]


def test_the_file_itself_may_be_replaced(tmp_path):
    path = written(tmp_path / "a.csv", "x,tags\n1,sea;sky\n2,sky\n")
    table = read(path)
    write_cleaned(table, dropping(table, (0, "sky")), path, overwrite=True)
    assert path.read_text() == "x,tags\n1,sea\n2,sky\n"


def test_what_cannot_be_dropped(tmp_path):
    path = written(tmp_path / "a.csv", "x,tags\n1,sea\n2,sky\n")
    table = read(path)
    with pytest.raises(ValueError, match="row 1 and label 'sea', which the row does not have"):
        write_cleaned(table, dropping(table, (1, "sea")), tmp_path / "b.csv")
    for drop in (np.zeros((2, 3), bool), np.zeros((2, 2), int)):
        with pytest.raises(ValueError, match=r"drop must be a boolean matrix of shape \(2, 2\)"):
            write_cleaned(table, drop, tmp_path / "b.csv")
    target = tmp_path / "b.parquet"
    refused(lambda: write_cleaned(table, dropping(table), target), path=target, expected=".csv")


def parquet_types():
    pa = pytest.importorskip("pyarrow")
    return {
        "text": (pa.string(), ["sea; sky", "sky", None, "sea"], ["sea", "sky", None, ""]),
        "large text": (pa.large_string(), ["sea; sky", "sky", None, "sea"], ["sea", "sky", None, ""]),
        "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["sea; sky", "sky", None, "sea"], ["sea", "sky", None, ""]),
        "list": (pa.list_(pa.string()), [["sea", "sky"], ["sky"], None, ["sea"]], [["sea"], ["sky"], None, []]),
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["text", "large text", "dictionary", "list"])
def test_parquet_keeps_schema_and_other_columns(tmp_path, kind):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    tag_type, before, after = parquet_types()[kind]
    schema = pa.schema(
        [
            pa.field("x", pa.float32(), nullable=False),
            pa.field("tags", tag_type, metadata={"about": "tags"}),
            pa.field("when", pa.timestamp("ms")),
            pa.field("nested", pa.struct([("a", pa.int8())])),
        ],
        metadata={"written by": "a test"},
    )
    others = {"x": [1, 2, 3, 4], "when": [None, 1, 2, 3], "nested": [{"a": 1}, None, {"a": None}, {"a": 2}]}
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({**others, "tags": before}, schema=schema), path, row_group_size=3, compression="zstd"
    )
    table, seen = read(path, tags="tags", features=["x"]), []
    target = tmp_path / "b.parquet"
    drop = dropping(table, (0, "sky"), (3, "sea"))
    write_cleaned(table, drop, target, progress=lambda *report: seen.append(report))
    found = pq.read_table(target)
    assert found.schema.equals(pq.read_table(path).schema, check_metadata=True)
    assert found.column("tags").to_pylist() == after
    for name in others:
        assert found.column(name).equals(pq.read_table(path).column(name))
    assert pq.ParquetFile(target).metadata.num_row_groups == 2
    assert pq.ParquetFile(target).metadata.row_group(0).column(0).compression == "ZSTD"
    assert seen[-1] == (4, 4, "copying a.parquet")
    pq.write_table(pq.read_table(path).slice(0, 3), path)
    error = refused(lambda: write_cleaned(table, drop, target, overwrite=True), path=path)
    assert "has changed" in error.problem
    assert pq.read_table(target).equals(found)


def test_parquet_label_columns(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    columns = {
        "a": pa.array([True, False, True]),
        "b": pa.array([1, 1, -1], pa.int8()),
        "c": pa.array([0.0, 1.0, 1.0], pa.float32()),
        "x": pa.array([1, 2, 3]),
    }
    path, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table(columns), path)
    table = read(path, labels=["a", "b", "c"])
    write_cleaned(table, dropping(table, (0, "a"), (0, "b"), (2, "c")), target)
    found = pq.read_table(target)
    assert found.schema == pa.table(columns).schema
    assert found.to_pydict() == {"a": [False, False, True], "b": [-1, 1, -1], "c": [0, 1, 0], "x": [1, 2, 3]}
    pq.write_table(pa.table(columns | {"a": pa.array([False, False, True])}), path)
    error = refused(
        lambda: write_cleaned(table, dropping(table, (0, "a")), target, overwrite=True), path=path
    )
    assert "has changed" in error.problem


def test_parquet_label_columns_without_a_no_go_by_the_others(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    columns = {
        "a": pa.array([1, 1, 1], pa.int64()),
        "b": pa.array([True, True, True]),
        "c": pa.array([1, 1, 1], pa.uint8()),
        "d": pa.array([1, 1, -1], pa.float64()),
        "x": pa.array([1, 2, 3]),
    }
    path, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    # The -1 stands in a row group behind that of the label which is dropped.
    pq.write_table(pa.table(columns), path, row_group_size=1)
    table = read(path, labels=["a", "b", "c", "d"])
    write_cleaned(table, dropping(table, (0, "a"), (0, "b"), (0, "c"), (0, "d")), target)
    first = pq.read_table(target).to_pylist()[0]
    assert first == {"a": -1, "b": False, "c": 0, "d": -1.0, "x": 1}


def test_parquet_label_columns_of_words(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table({"a": ["yes", "no"], "b": ["TRUE", "TRUE"], "x": [1, 2]}), path)
    table = read(path, labels=["a", "b"])
    assert table.candidates.tolist() == [[1, 1], [0, 1]]
    write_cleaned(table, dropping(table, (0, "a"), (1, "b")), target)
    assert pq.read_table(target).to_pydict() == {"a": ["no", "no"], "b": ["TRUE", "FALSE"], "x": [1, 2]}


@pytest.mark.parametrize("suffix", [".npz", ".mat", ".arff"])
@pytest.mark.parametrize("truth", ["unknown", "same"])
def test_data_sets(tmp_path, suffix, truth):
    labels = np.array([[1, 1], [0, 1], [1, 0]], np.uint8)
    X = np.array([[1.0, 2], [3, 4], [5, 6]])
    path = tmp_path / f"a{suffix}"
    write_dataset(
        PartialDataset(X, labels, None if truth == "unknown" else labels, label_names=["p", "q"]), path
    )
    table, target = read(path), tmp_path / f"b{suffix}"
    write_cleaned_copy(table, dropping(table, (0, "q"), (2, "p")), target)
    found = read_dataset(target, on_empty="ignore")
    np.testing.assert_array_equal(found.X, X)
    assert found.candidates.tolist() == [[1, 0], [0, 1], [0, 0]]
    assert found.label_names == ("p", "q")
    with pytest.raises(FileExistsError):
        write_cleaned_copy(table, dropping(table), target)


def test_true_labels_of_a_data_set(tmp_path):
    path, target = tmp_path / "a.npz", tmp_path / "b.npz"
    write_dataset(
        PartialDataset([[1.0], [2.0]], [[1, 1], [1, 1]], [[1, 0], [0, 1]], label_names=["p", "q"]), path
    )
    table = read(path)
    write_cleaned_copy(table, dropping(table, (0, "q")), target)
    assert read_dataset(target).truth.tolist() == [[1, 0], [0, 1]]
    with pytest.warns(UserWarning, match="among the true labels of the file"):
        write_cleaned_copy(table, dropping(table, (0, "p")), target, overwrite=True)
    assert read_dataset(target).truth is None
    assert read_dataset(target).candidates.tolist() == [[0, 1], [1, 1]]


def test_parquet_label_columns_of_numbers_as_text(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    path, target = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pq.write_table(pa.table({"a": ["1", "-1"], "b": ["1", "1"], "x": [1, 2]}), path)
    table = read(path, labels=["a", "b"])
    write_cleaned(table, dropping(table, (0, "a"), (1, "b")), target)
    assert pq.read_table(target).to_pydict() == {"a": ["-1", "-1"], "b": ["1", "-1"], "x": [1, 2]}


@pytest.mark.parametrize("content", ["", "x,words\n1,sea\n"])
def test_a_file_that_lost_its_header(tmp_path, content):
    path = written(tmp_path / "a.csv", "x,tags\n1,sea\n")
    table = read(path)
    path.write_text(content)
    error = refused(
        lambda: write_cleaned(table, dropping(table, (0, "sea")), tmp_path / "b.csv"), path=path, line=1
    )
    assert "has changed" in error.problem
