"""Copies with added labels: in every format the row has them afterwards, and nothing else is changed."""

import itertools
import json
import re
import zipfile

import numpy as np
import pytest
from table_helpers import read, refused
from test_formats import COLUMNS, EXPECTED, FORMATS, LABELS, TAGS, facts, objects

from skpml.datasets import PartialDataset, read_dataset, write_cleaned_copy, write_dataset
from skpml.tables import Columns, TableError, clean_frame, read_table, write_cleaned
from skpml.tables._editing import TagChange, edit_tags, turn_text

# To an empty row, behind one tag and behind three, and in the place of an only one.
ADDED = {5: ["tree"], 8: ["café", "sea"], 4: ["tree"], 9: ["lake"]}
DROPPED = {9: ["café"], 0: ["sea"]}


def mask(cells, shape, labels=LABELS):
    found = np.zeros(shape, bool)
    for row, names in cells.items():
        found[row, [labels.index(name) for name in names]] = True
    return found


def expected_tags():
    return [
        sorted({*tags}.difference(DROPPED.get(row, ())).union(ADDED.get(row, ())))
        for row, tags in enumerate(TAGS)
    ]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gets_added_tags(tmp_path, name):
    path = tmp_path / name
    FORMATS[name](path)
    table = read_table(path, columns=COLUMNS)
    shape = table.candidates.shape
    target = tmp_path / ("out.arrow" if path.is_dir() else f"out{path.suffix}")
    write_cleaned(table, mask(DROPPED, shape), target, add=mask(ADDED, shape))
    again = read_table(target, columns=COLUMNS)
    assert facts(again)[:4] == (*EXPECTED[:3], expected_tags())
    # The way back leads to the same table.
    back = tmp_path / f"back{target.suffix}"
    write_cleaned(
        again,
        mask(ADDED, again.candidates.shape, again.label_names),
        back,
        add=mask(DROPPED, again.candidates.shape, again.label_names),
    )
    assert facts(read_table(back, columns=COLUMNS))[:4] == EXPECTED[:4]


@pytest.mark.parametrize(
    ("library", "kind"),
    [*itertools.product(["pandas", "polars"], ["text", "list", "numbers"]), ("pandas", "category")],
)
def test_frames_get_added_tags(library, kind):
    made = pytest.importorskip(library)
    tags = {
        "text": ["a;b", "a", None],
        "category": ["a;b", "a", None],
        "list": [["a", "b"], ["a"], None],
        "numbers": [[1, 2], [1], None],
    }[kind]
    frame = made.DataFrame({"x": [1.0, 2.0, 3.0], "tags": tags})
    if kind == "category":
        frame["tags"] = frame["tags"].astype("category")
    table = read_table(frame)
    drop, add = np.zeros((3, 2), bool), np.zeros((3, 2), bool)
    drop[0, 0] = drop[1, 0] = add[1, 1] = add[2, 0] = add[2, 1] = True
    found = clean_frame(table, drop, add=add)
    expected = {"list": [["b"], ["b"], ["a", "b"]], "numbers": [[2], [2], [1, 2]]}.get(
        kind, ["b", "b", "a;b"]
    )
    assert found["tags"].to_list() == expected
    assert found["tags"].dtype == frame["tags"].dtype or kind == "category"
    assert frame["tags"].to_list()[1] in ("a", ["a"], [1])


@pytest.mark.parametrize(
    ("cell", "dropped", "added", "separator", "expected"),
    [
        ("", "", "sea", ";", "sea"),
        ("  ", "", "sea", ";", "sea"),
        ("lake", "", "sea", ";", "lake;sea"),
        ("lake", "lake", "sea", ";", "sea"),
        ("lake; sky", "", "sea", ";", "lake; sky; sea"),
        ("lake;sky;", "", "sea", ";", "lake;sky;sea;"),
        ("lake; sky", "lake", "sea", ";", "sky; sea"),
        ("lake|sky", "", "sea,tree", "|", "lake|sky|sea|tree"),
        ("", "", "sea,tree", "[]", '["sea", "tree"]'),
        ("[]", "", "sea", "[]", '["sea"]'),
        ('["lake","sky"]', "", "sea", "[]", '["lake","sky","sea"]'),
        ("['lake', 'sky']", "lake", "sea", "[]", "['sky', 'sea']"),
        ("{'lake'}", "", "it's", "[]", "{'lake', \"it's\"}"),
        ("[lake, sky]", "", "sea", "[]", "[lake, sky, sea]"),
        ("[lake, sky]", "", "a b]", "[]", '[lake, sky, "a b]"]'),
        ("[1, 2]", "", "3", "[]", "[1, 2, 3]"),
        ("[1, 2]", "", "sea", "[]", '[1, 2, "sea"]'),
        ("[None]", "", "sea", "[]", '["sea"]'),
    ],
)
def test_tags_into_a_cell(cell, dropped, added, separator, expected):
    change = TagChange(frozenset(filter(None, [dropped])), tuple(added.split(",")), separator)
    assert edit_tags(cell, change) == expected


def test_tags_that_cannot_be_added():
    with pytest.raises(KeyError):
        edit_tags("lake;sea", TagChange(frozenset(), ("sea",), ";"))
    with pytest.raises(KeyError):
        edit_tags("lake;Sea", TagChange(frozenset(), ("sea",), ";", merge_case=True))
    assert edit_tags("lake;Sea", TagChange(frozenset(), ("sea",), ";")) == "lake;Sea;sea"
    with pytest.raises(TableError) as caught:
        edit_tags("lake", TagChange(frozenset(), ("sea;side",), ";"))
    assert caught.value.value == "lake"


@pytest.mark.parametrize(
    ("cell", "expected"),
    [("0", "1"), (" -1", " 1"), ("0.0", "1.0"), ("-1.0", "1.0"), ("FALSE", "TRUE"), ("No", "Yes")],
)
def test_yes_is_written_as_no_was(cell, expected):
    assert turn_text(cell, yes=True) == expected
    with pytest.raises(KeyError):
        turn_text(expected, yes=True)


def test_a_cell_is_quoted_where_it_becomes_necessary(tmp_path):
    path, target = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text('x,tags\n1,sea\n2,"sea,sky"\n3,\n')
    options = {"separator": ",", "tags": "tags"}
    table = read(path, **options)
    add = np.array([[False, True], [False, False], [True, True]])
    write_cleaned(table, ~add & False, target, add=add)
    assert target.read_text() == 'x,tags\n1,"sea,sky"\n2,"sea,sky"\n3,"sea,sky"\n'
    unquoted = tmp_path / "unquoted.csv"
    unquoted.write_text("x;tags\n1;sea\n2;sky\n")
    table = read(unquoted, separator=";", tags="tags", delimiter=";", quote="")
    add = np.array([[False, True], [False, False]])
    refused(
        lambda: write_cleaned(table, ~add & False, target, add=add, overwrite=True), path=unquoted, line=2
    )


@pytest.mark.parametrize("kind", ["csv", "json", "xlsx", "parquet", "pandas"])
@pytest.mark.parametrize(("yes", "no"), [(1, 0), (1, -1), (True, False), ("yes", "no"), (1.0, 0.0)])
def test_columns_of_flags_get_a_yes(tmp_path, kind, yes, no):
    columns = {"size": [1.5, 2.5, 0.5], "sea": [yes, no, yes], "sky": [no, yes, no]}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    path, target = tmp_path / f"a.{kind}", tmp_path / f"b.{kind}"
    if kind == "json":
        path.write_text(json.dumps(rows))
    elif kind == "csv":
        path.write_text(
            "\n".join(",".join(map(str, row)) for row in (columns, *(row.values() for row in rows)))
        )
    elif kind == "xlsx":
        book = pytest.importorskip("openpyxl").Workbook()
        for row in (list(columns), *(list(row.values()) for row in rows)):
            book.active.append(row)
        book.save(path)
    elif kind == "parquet":
        arrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(arrow.table(columns), path)
    else:
        path = pytest.importorskip("pandas").DataFrame(columns)
    roles = Columns(labels=["sea", "sky"])
    table = read_table(path, columns=roles)
    drop, add = np.zeros((3, 2), bool), np.zeros((3, 2), bool)
    drop[0, 0] = add[0, 1] = add[1, 0] = True
    if kind == "pandas":
        target = clean_frame(table, drop, add=add)
        assert target["sky"].tolist() == [yes, yes, no]
        assert target["sky"].dtype == path["sky"].dtype
    else:
        write_cleaned(table, drop, target, add=add)
    assert read_table(target, columns=roles).candidates.tolist() == [[0, 1], [1, 1], [1, 0]]


@pytest.mark.parametrize("suffix", [".npz", ".mat", ".arff"])
def test_data_sets_get_added_labels(tmp_path, suffix):
    path, target = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    write_dataset(PartialDataset([[1.0], [2.0]], [[1, 1], [0, 1]], label_names=["p", "q"]), path)
    table = read(path)
    add = np.array([[False, False], [True, False]])
    write_cleaned_copy(table, np.array([[True, False], [False, False]]), target, add=add)
    assert read_dataset(target).candidates.tolist() == [[0, 1], [1, 1]]


def test_what_cannot_be_added(tmp_path):
    (tmp_path / "a.csv").write_text("x,tags\n1,sea\n2,sky\n")
    table = read(tmp_path / "a.csv")
    none = np.zeros((2, 2), bool)
    with pytest.raises(ValueError, match="row 0 and label 'sea', which the row has already"):
        write_cleaned(table, none, tmp_path / "b.csv", add=np.eye(2) > 0)
    with pytest.raises(ValueError, match=r"add must be a boolean matrix of shape \(2, 2\)"):
        write_cleaned(table, none, tmp_path / "b.csv", add=np.eye(2))
    assert not (tmp_path / "b.csv").exists()


def test_a_row_that_was_left_out_stays_as_it_is(tmp_path):
    (tmp_path / "a.csv").write_text("x,tags\n1,\n2,sky\n3,sea\n")
    table = read(tmp_path / "a.csv", skip_untagged=True)
    add = np.array([[True, False], [False, False]])
    write_cleaned(table, add & False, tmp_path / "b.csv", add=add)
    assert (tmp_path / "b.csv").read_text() == "x,tags\n1,\n2,sky;sea\n3,sea\n"


def test_one_class_per_row_is_replaced_but_not_joined(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    path, target = tmp_path / "a.arrow", tmp_path / "b.arrow"
    feature = {"names": ["sea", "sky"], "_type": "ClassLabel"}
    metadata = {"huggingface": json.dumps({"info": {"features": {"tags": feature}}})}
    content = arrow.table({"x": [1.0, 2.0, 3.0], "tags": [0, 1, None]}).replace_schema_metadata(metadata)
    with arrow.ipc.new_file(str(path), content.schema) as writer:
        writer.write_table(content)
    table = read_table(path, columns=Columns(tags="tags"))
    none, add = np.zeros((3, 2), bool), np.zeros((3, 2), bool)
    add[0, 1] = add[2, 0] = True
    error = refused(lambda: write_cleaned(table, none, target, add=add), path=path, column="tags")
    assert error.value == "sky"
    drop = none.copy()
    drop[0, 0] = True
    write_cleaned(table, drop, target, add=add)
    assert read_table(target, columns=Columns(tags="tags")).candidates.tolist() == [[0, 1], [0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            '[{"x": 1}, {"x": 2, "tags": ["a", "b"]}]',
            '[{"x": 1, "tags": ["a"]}, {"x": 2, "tags": ["a", "b"]}]',
        ),
        (
            '{"tags": null, "x": 1}\n{"x": 2, "tags": "a; b"}',
            '{"tags": "a", "x": 1}\n{"x": 2, "tags": "a; b"}',
        ),
        (
            '{"x": 1, "tags": "b"}\n{"x": 2, "tags": {"choices": ["a", "b"]}}',
            '{"x": 1, "tags": {"choices": ["b", "a"]}}\n{"x": 2, "tags": {"choices": ["a", "b"]}}',
        ),
        (
            '{"x": 1}\n{"x": 2, "tags": ["\\u00e9"]}',
            '{"x": 1, "tags": ["\\u00e9"]}\n{"x": 2, "tags": ["\\u00e9"]}',
        ),
    ],
)
def test_json_without_tags_gets_some(tmp_path, before, after):
    path, target = tmp_path / "a.json", tmp_path / "b.json"
    path.write_text(before)
    table = read_table(path, columns=Columns(features=["x"], tags="tags"))
    add = np.zeros(table.candidates.shape, bool)
    add[0, 0] = True
    write_cleaned(table, add & False, target, add=add)
    assert target.read_text() == after
    assert read_table(target, columns=Columns(features=["x"], tags="tags")).candidates[0, 0] == 1


@pytest.mark.parametrize(
    "parts",
    [
        {"annotations": []},
        {"annotations": [{"result": []}]},
        {"annotations": [{"was_cancelled": True, "result": []}], "predictions": [{"result": None}]},
        {"predictions": []},
    ],
)
def test_tasks_of_label_studio_without_an_answer_get_one(tmp_path, parts):
    path, target = tmp_path / "a.json", tmp_path / "b.json"
    result = {
        "from_name": "topic",
        "to_name": "item",
        "type": "choices",
        "id": "1",
        "value": {"choices": ["a"]},
    }
    tasks = [{"data": {"x": 1}, **parts}, {"data": {"x": 2}, "annotations": [{"result": [result]}]}]
    path.write_text(json.dumps(tasks))
    table = read_table(path, columns=Columns(features=["x"]))
    write_cleaned(table, np.zeros((2, 1), bool), target, add=np.array([[True], [False]]))
    assert read_table(target, columns=Columns(features=["x"])).candidates.tolist() == [[1], [1]]
    first, second = json.loads(target.read_text())
    assert second == tasks[1]
    new = {key: value for key, value in result.items() if key != "id"}
    kind = "predictions" if parts.get("predictions") else "annotations"
    assert first[kind][-1]["result"] == [new]


@pytest.mark.parametrize("answer", [["a"], "a"])
@pytest.mark.parametrize(
    "parts",
    [
        {"responses": {}},
        {"responses": None, "suggestions": {}},
        {"responses": {"topic": [{"value": None}]}},
        {"suggestions": {"topic": {"value": None}}},
    ],
)
def test_records_of_argilla_without_an_answer_get_one(tmp_path, parts, answer):
    path, target = tmp_path / "a.json", tmp_path / "b.json"
    records = [
        {"fields": {"x": 1}, **parts},
        {"fields": {"x": 2}, "responses": {"topic": [{"value": answer}]}},
    ]
    path.write_text(json.dumps(records))
    table = read_table(path, columns=Columns(features=["x"]))
    write_cleaned(table, np.zeros((2, 1), bool), target, add=np.array([[True], [False]]))
    assert read_table(target, columns=Columns(features=["x"])).candidates.tolist() == [[1], [1]]
    assert json.loads(target.read_text())[1] == records[1]


def test_an_answer_of_one_text_becomes_a_list(tmp_path):
    path, target = tmp_path / "a.json", tmp_path / "b.json"
    path.write_text(
        json.dumps(
            [{"fields": {"x": row}, "responses": {"topic": [{"value": tag}]}} for row, tag in enumerate("ab")]
        )
    )
    table = read_table(path, columns=Columns(features=["x"]))
    drop = np.array([[False, False], [False, True]])
    write_cleaned(table, drop, target, add=np.array([[False, True], [True, False]]))
    values = [record["responses"]["topic"][0]["value"] for record in json.loads(target.read_text())]
    assert values == [["a", "b"], "a"]


def test_an_empty_cell_of_a_workbook_is_made_in_its_place(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra excel")
    path, target = tmp_path / "a.xlsx", tmp_path / "b.xlsx"
    book = openpyxl.Workbook()
    names = [f"c{column}" for column in range(28)]
    book.active.append(["x", *names[:25], "tags", "z"])
    for row in objects()[:3]:
        book.active.append(
            [row["size"], *[None] * 25, ";".join(row["tags"]) if row["id"] != "p1" else None, 7]
        )
    book.save(path)
    columns = Columns(features=["x"], tags="tags")
    table = read_table(path, columns=columns)
    add = np.zeros(table.candidates.shape, bool)
    add[1] = True
    write_cleaned(table, add & False, target, add=add)
    # Excel asks for cells in the order of their columns.
    with zipfile.ZipFile(target) as archive:
        text = archive.read("xl/worksheets/sheet1.xml").decode()
    assert re.findall(r'<c r="([A-Z]+)3"', text) == ["A", "AA", "AB"]
    sheet = openpyxl.load_workbook(target).active
    assert [cell.value for cell in sheet[3]][-2:] == [";".join(table.label_names), 7]
    assert read_table(target, columns=columns).candidates[1].all()
