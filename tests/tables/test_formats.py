"""The same ten rows in every format are the same table, and a cleaned copy differs in the dropped labels only."""

import csv
import json
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from table_helpers import refused

from skpml.tables import Columns, clean_frame, read_table, write_cleaned

TAGS = [
    tags.split()
    for tags in ("sea sky", "sky", "lake", "sea", "lake sea sky", "", "sky tree", "tree", "lake", "café")
]
IDS = [f"p{row}" for row in range(10)]
TEXTS = [f"a text, row {row}" + " with\nlines" * (row == 3) for row in range(10)]
NUMBERS = [row / 4 - 1 for row in range(10)]
LABELS = ("café", "lake", "sea", "sky", "tree")
COLUMNS = Columns(id="id", text="text", features=["size"])


def objects():
    each = zip(IDS, TEXTS, NUMBERS, TAGS, strict=True)
    return [{"id": name, "text": text, "size": size, "tags": tags} for name, text, size, tags in each]


def write_csv(path, cell):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "size", "tags"])
        writer.writerows(
            [*[row[name] for name in ("id", "text", "size")], cell(row["tags"])] for row in objects()
        )


def write_json(path, **options):
    path.write_text(json.dumps(objects(), **options), encoding="utf-8")


def write_lines(path, join="\n"):
    path.write_text(
        join.join(json.dumps(row, ensure_ascii=False) for row in objects()) + join, encoding="utf-8"
    )


def write_excel(path):
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra excel")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Photos"
    sheet.append(["id", "text", "size", "tags"])
    for row in objects():
        sheet.append([row["id"], row["text"], row["size"], "; ".join(row["tags"]) or None])
    sheet["D2"].font = openpyxl.styles.Font(bold=True)
    book.create_sheet("Empty")
    book.save(path)


def arrow_table(numbered=False):
    arrow = pytest.importorskip("pyarrow", reason="needs the extra files")
    columns = {name: [row[name] for row in objects()] for name in ("id", "text", "size", "tags")}
    if not numbered:
        return arrow.table(columns)
    # As Hugging Face Datasets writes classes: numbers, and names in the schema.
    columns["tags"] = [[LABELS.index(tag) for tag in tags] for tags in TAGS]
    feature = {"feature": {"names": list(LABELS), "_type": "ClassLabel"}, "_type": "Sequence"}
    metadata = {"huggingface": json.dumps({"info": {"features": {"tags": feature}}})}
    return arrow.table(columns).replace_schema_metadata(metadata)


def write_parquet(path):
    pytest.importorskip("pyarrow.parquet").write_table(arrow_table(), path, row_group_size=4)


def write_arrow(path, *, stream=False, numbered=False, rows=slice(None)):
    table = arrow_table(numbered)
    ipc = pytest.importorskip("pyarrow.ipc")
    part = table.slice(rows.start or 0, (rows.stop or 10) - (rows.start or 0))
    with (ipc.new_stream if stream else ipc.new_file)(str(path), part.schema) as writer:
        writer.write_table(part)


def write_folder(path):
    path.mkdir()
    names = ["data-00000-of-00002.arrow", "data-00001-of-00002.arrow"]
    for name, rows in zip(names, (slice(0, 6), slice(6, 10)), strict=True):
        write_arrow(path / name, stream=True, numbered=True, rows=rows)
    (path / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))


def write_label_studio(path):
    def result(tags):
        return {"result": [{"from_name": "topic", "type": "choices", "value": {"choices": tags}}]}

    tasks = [
        {
            "id": number,
            "data": {name: row[name] for name in ("id", "text", "size")},
            "annotations": [
                result(row["tags"][:1]),
                {**result(["wrong"]), "was_cancelled": True},
                result(row["tags"]),
            ],
            "predictions": [number] if number % 2 else [result(["wrong"])],
        }
        for number, row in enumerate(objects())
    ]
    path.write_text(json.dumps(tasks, indent=1))


def write_argilla(path):
    records = [
        {
            "id": row["id"],
            "fields": {"text": row["text"]},
            "metadata": {"size": row["size"]},
            "suggestions": {"topic": {"value": row["tags"] if number % 2 else ["wrong"], "agent": "model"}},
            "responses": {} if number % 2 else {"topic": [{"value": row["tags"], "user_id": "u"}]},
            "vectors": {},
        }
        for number, row in enumerate(objects())
    ]
    path.write_text(json.dumps(records))


FORMATS = {
    "semicolons.csv": lambda path: write_csv(path, ";".join),
    "bars.csv": lambda path: write_csv(path, "|".join),
    "json cells.csv": lambda path: write_csv(path, json.dumps),
    "python cells.csv": lambda path: write_csv(path, str),
    "list.json": write_json,
    "indented.json": lambda path: write_json(path, indent=2, ensure_ascii=False),
    "lines.json": write_lines,
    "lines.jsonl": write_lines,
    "lines.ndjson": lambda path: write_lines(path, "\r\n"),
    "book.xlsx": write_excel,
    "a.parquet": write_parquet,
    "file.arrow": write_arrow,
    "stream.arrow": lambda path: write_arrow(path, stream=True),
    "classes.feather": lambda path: write_arrow(path, numbered=True),
    "folder": write_folder,
    "label studio.json": write_label_studio,
    "argilla.json": write_argilla,
}


def facts(table):
    tags = [[table.label_names[j] for j in np.flatnonzero(row)] for row in table.candidates]
    return table.ids, table.texts, table.X.ravel().tolist(), tags, table.label_names


EXPECTED = (tuple(IDS), tuple(TEXTS), NUMBERS, [sorted(tags) for tags in TAGS], LABELS)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_table_and_copy(tmp_path, name):
    path = tmp_path / name
    FORMATS[name](path)
    table = read_table(path, columns=COLUMNS)
    assert facts(table) == EXPECTED
    drop = np.zeros(table.candidates.shape, bool)
    drop[4, LABELS.index("sea")] = drop[9, 0] = drop[0, LABELS.index("sea")] = True
    target = tmp_path / ("out.arrow" if path.is_dir() else f"out{path.suffix}")
    write_cleaned(table, np.zeros_like(drop), target)
    if path.suffix in (".csv", ".json", ".jsonl", ".ndjson"):
        assert target.read_bytes() == path.read_bytes()
    write_cleaned(table, drop, target, overwrite=True)
    again = read_table(target, columns=COLUMNS)
    expected = [sorted(tags) for tags in TAGS]
    expected[0], expected[4], expected[9] = ["sky"], ["lake", "sky"], []
    assert facts(again)[:4] == (*EXPECTED[:3], expected)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("listed", [False, True])
def test_frames_give_the_same_table_and_copy(library, listed):
    made = pytest.importorskip(library)
    columns = {name: [row[name] for row in objects()] for name in ("id", "text", "size", "tags")}
    if not listed:
        columns["tags"] = [";".join(tags) or None for tags in TAGS]
    frame = made.table(columns) if library == "pyarrow" else made.DataFrame(columns)
    table = read_table(frame, columns=COLUMNS)
    assert facts(table) == EXPECTED
    drop = np.zeros(table.candidates.shape, bool)
    drop[9, 0] = drop[0, LABELS.index("sea")] = True
    if library == "pyarrow":
        with pytest.raises(ValueError, match="pandas or Polars"):
            clean_frame(table, drop)
        return
    with pytest.raises(ValueError, match="clean_frame"):
        write_cleaned(table, drop, "out.csv")
    cleaned = clean_frame(table, drop)
    assert list(cleaned.columns) == list(frame.columns)
    assert cleaned["id"].to_list() == IDS
    assert cleaned["tags"].to_list()[:2] == ([["sky"], ["sky"]] if listed else ["sky", "sky"])
    assert facts(read_table(cleaned, columns=COLUMNS))[3][9] == []
    assert facts(table) == EXPECTED


@pytest.mark.parametrize("kind", ["json", "xlsx", "pandas", "polars", "arrow"])
@pytest.mark.parametrize(("yes", "no"), [(1, 0), (1, -1), (True, False), ("yes", "no"), (1.0, 0.0)])
def test_columns_of_flags(tmp_path, kind, yes, no):
    columns = {"size": [1.5, 2.5, 0.5], "sea": [yes, no, yes], "sky": [no, yes, yes]}
    path = tmp_path / f"a.{kind}"
    if kind == "json":
        path.write_text(
            json.dumps([dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)])
        )
    elif kind == "xlsx":
        book = pytest.importorskip("openpyxl").Workbook()
        for row in (list(columns), *zip(*columns.values(), strict=True)):
            book.active.append(row)
        book.save(path)
    elif kind == "arrow":
        arrow = pytest.importorskip("pyarrow")
        with arrow.ipc.new_file(str(path), arrow.table(columns).schema) as writer:
            writer.write_table(arrow.table(columns))
    else:
        path = pytest.importorskip(kind).DataFrame(columns)
    roles = Columns(labels=["sea", "sky"])
    table = read_table(path, columns=roles)
    assert table.candidates.tolist() == [[1, 0], [0, 1], [1, 1]]
    drop = [[False, False], [False, True], [True, False]]
    if kind in ("pandas", "polars"):
        copy = clean_frame(table, drop)
        assert copy["sea"].to_list() == [yes, no, no]
    else:
        copy = tmp_path / f"out.{kind}"
        write_cleaned(table, drop, copy)
    assert read_table(copy, columns=roles).candidates.tolist() == [[1, 0], [0, 0], [0, 1]]


def test_a_workbook_differs_in_the_edited_cells_only(tmp_path):
    path, target = tmp_path / "a.xlsx", tmp_path / "out.xlsx"
    write_excel(path)
    table = read_table(path, columns=COLUMNS)
    drop = np.zeros(table.candidates.shape, bool)
    drop[0, LABELS.index("sea")] = True
    write_cleaned(table, drop, target)
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(target) as after:
        differ = [name for name in before.namelist() if before.read(name) != after.read(name)]
        assert (before.namelist(), differ) == (after.namelist(), ["xl/worksheets/sheet1.xml"])
    book = pytest.importorskip("openpyxl").load_workbook(target)
    assert book.sheetnames == ["Photos", "Empty"]
    assert (book["Photos"]["D2"].value, book["Photos"]["D2"].font.bold, book["Photos"]["D6"].value) == (
        "sky", True, "lake; sea; sky",
    )  # fmt: skip


def test_a_json_file_differs_in_the_edited_values_only(tmp_path):
    text = '[ {"tags" : [ "sea" ,"sky" ], "x": 1.50e0, "y": {"tags": ["sea"]}},\n{"x": 2, "tags": "sky; sea", "é": 1} ]\n'
    path, target = tmp_path / "a.json", tmp_path / "out.json"
    path.write_text(text, encoding="utf-8")
    table = read_table(path, columns=Columns(features=["x"]))
    write_cleaned(table, [[True, False], [False, True]], target)
    expected = text.replace('[ "sea" ,"sky" ]', '["sky" ]', 1).replace('"sky; sea"', '"sea"')
    assert target.read_text(encoding="utf-8").replace('[ "sky" ]', '["sky" ]') == expected


@pytest.mark.parametrize("kind", ["parquet", "json", "pandas", "fixed"])
def test_lists_of_numbers_are_features(tmp_path, kind):
    vectors = [[row, row / 2, -row] for row in range(4)]
    columns = {"x": [3, 2, 1, 0], "vector": vectors, "tags": ["a", "b", "a;b", "b"]}
    path = tmp_path / "a.json" if kind == "json" else tmp_path / "a.parquet"
    if kind == "json":
        path.write_text(
            json.dumps([dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)])
        )
    elif kind == "pandas":
        path = pytest.importorskip("pandas").DataFrame(columns)
    else:
        arrow = pytest.importorskip("pyarrow")
        fixed = arrow.list_(arrow.float32(), 3)
        columns["vector"] = arrow.array(vectors, type=fixed if kind == "fixed" else None)
        pytest.importorskip("pyarrow.parquet").write_table(arrow.table(columns), path, row_group_size=2)
    table = read_table(path)
    assert table.feature_names == ("x", "vector_0", "vector_1", "vector_2")
    np.testing.assert_array_equal(table.X, np.column_stack([columns["x"], vectors]))
    # A model asks for its features by their names, in its order.
    asked = read_table(path, columns=Columns(features=["vector_2", "x"]), labeled=False)
    np.testing.assert_array_equal(asked.X, table.X[:, [3, 0]])


def test_sparse_matrices_are_embeddings(tmp_path):
    (tmp_path / "a.csv").write_text("id,tags\np,a\nq,b\n")
    matrix = sp.random(2, 5, 0.5, random_state=0)
    for layout in ("csr", "csc", "coo"):
        sp.save_npz(tmp_path / f"{layout}.npz", matrix.asformat(layout))
        table = read_table(
            tmp_path / "a.csv", columns=Columns(id="id"), embeddings=tmp_path / f"{layout}.npz"
        )
        assert (sp.issparse(table.X), table.feature_kind) == (True, "embeddings")
        np.testing.assert_array_equal(table.X.toarray(), matrix.toarray())
    sp.save_npz(tmp_path / "three.npz", sp.eye(3, format="csr"))
    refused(lambda: read_table(tmp_path / "a.csv", embeddings=tmp_path / "three.npz"), value=3, expected=2)
    np.save(tmp_path / "objects.npy", np.array([[1, "a"], [2, None]], dtype=object))
    refused(lambda: read_table(tmp_path / "a.csv", embeddings=tmp_path / "objects.npy"), expected="numbers")


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("", {}),
        ("[]", {}),
        ('{"x": 1, "tags": ["a"]}\n{"x": 2, "tags"', {"line": 2}),
        ('[{"x": 1, "tags": ["a"]},\n {"x": 2, "tags": ["a"]}', {"line": 2}),
        ('[{"x": 1, "tags": ["a"], "x": 2}]', {}),
        ('{"x": {"0": 1}, "tags": {"0": "a"}}', {"line": 1}),
        ('{"rows": [{"x": 1, "tags": ["a"]}]}', {"line": 1}),
        ("[1, 2]", {"line": 1, "value": 1}),
        ('{"x": 1, "tags": ["a"]}\n{"x": "no", "tags": ["a"]}', {"line": 2, "column": "x", "value": "no"}),
        ('{"x": [1, 2], "tags": ["a"]}\n{"x": [1], "tags": ["a"]}', {"line": 2, "column": "x", "value": [1]}),
        ("[" * 100_000, {}),
        ('[{"x": ' + "1" * 5000 + ', "tags": ["a"]}]', {}),
        (
            '{"x": 1, "tags": ["a"]}\n{"x": 1, "tags": [{"label": "a"}]}',
            {"line": 2, "column": "tags", "value": [{"label": "a"}]},
        ),
        ('{"x": 1, "tags": ["a"]}\n{"x": 1, "tags": 5}', {"line": 2, "column": "tags", "value": 5}),
    ],
)
def test_odd_json_is_refused_by_line(tmp_path, text, facts):
    path = tmp_path / "a.json"
    path.write_text(text)
    refused(lambda: read_table(path), path=path, **facts)


def test_odd_workbooks_are_refused(tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="needs the extra excel")

    def book(**sheets):
        made = openpyxl.Workbook()
        made.remove(made.active)
        for name, rows in sheets.items():
            sheet = made.create_sheet(name)
            for row in rows:
                sheet.append(row)
        made.save(tmp_path / "a.xlsx")
        return tmp_path / "a.xlsx"

    good = [["x", "tags"], [1, "a;b"], [None, None], [2, "b"]]
    path = book(one=good, two=good)
    refused(lambda: read_table(path), argument="sheet", value=("one", "two"))
    assert read_table(path, sheet="two").candidates.tolist() == [[1, 1], [0, 1]]
    refused(lambda: read_table(path, sheet="three"), argument="sheet", expected=("one", "two"))
    refused(lambda: read_table(book(one=[[None]])), path=path)
    refused(lambda: read_table(book(one=[["x", None, "tags"], [1, 2, "a"]])), line=1)
    refused(lambda: read_table(book(one=[["x", "tags"], [1, "a", "more"]])), line=2)
    refused(
        lambda: read_table(book(one=[["x", "tags"], [1, "a"], ["two", "a"]])), line=3, column="x", value="two"
    )
    path.write_bytes(path.read_bytes()[:500])
    refused(lambda: read_table(path), expected="Excel")


def test_folders_that_are_no_data_set_are_refused(tmp_path):
    refused(lambda: read_table(tmp_path), path=tmp_path)
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert "train" in str(refused(lambda: read_table(tmp_path), path=tmp_path))
