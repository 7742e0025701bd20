"""Tags as people write them, from the command line: separators, spellings, rows that are not tagged yet."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from skpml.tables import Columns, Table, read_table

from .conftest import Run, rows_with_tags, write_rows

Refused = Callable[..., str]
FAST = ("--method", "ridge", "--folds", "3")


def test_spellings_and_untagged_rows_are_settings(run: Run, folder: Path) -> None:
    features, tags, _ = rows_with_tags(30)
    cells = [tag.upper() if i % 3 == 0 else tag for i, tag in enumerate(tags)]
    cells[4] = ""
    rows = [
        [*numbers, "|".join(cell.split(";"))] for numbers, cell in zip(features.tolist(), cells, strict=True)
    ]
    write_rows(folder / "a.csv", [*map(str, range(features.shape[1])), "tags"], rows)
    result = run(
        "clean", "a.csv", *FAST, "--merge-case", "--skip-untagged", "-o", "out.csv", "--drop-below", 0
    )
    assert result.exit_code == 0, result.output
    labels = {tag for cell in tags for tag in cell.split(";")}
    assert f"29 rows, {len(labels)} labels" in result.stdout
    assert "tags are separated by '|'" in result.stdout
    settings = json.loads((folder / "out.csv.json").read_text())
    assert settings["reading"] == {"merge_case": True, "skip_untagged": True}
    # A decision goes by the rows that were read: row 4 of these is row 5 of the file.
    label = next(tag for tag in labels if tag in cells[5].casefold().split(";"))
    write_rows(folder / "d.csv", ["id", "row", "label", "decision"], [["5", 4, label, "drop"]])
    result = run("clean", "apply", "a.csv", "d.csv", "--settings", "out.csv.json", "-o", "applied.csv")
    assert result.exit_code == 0, result.output
    with (folder / "applied.csv").open(newline="") as text:
        applied = [row[-1] for row in csv.reader(text)][1:]
    assert [i for i in range(30) if applied[i] != rows[i][-1]] == [5]
    assert label not in applied[5].casefold().split("|")


def test_the_question_names_the_option(refused: Refused, folder: Path) -> None:
    write_rows(folder / "a.csv", ["x", "tags"], [[i, "['a' 'b']"] for i in range(9)])
    assert "--separator ';'" in refused("clean", "a.csv", "-o", "out.csv")


@pytest.mark.parametrize("option", ["--merge-case", "--skip-untagged"])
def test_options_of_tables_are_refused_for_other_files(
    refused: Refused, run: Run, folder: Path, option: str
) -> None:
    write_rows(folder / "a.csv", ["x", "tags"], [[i, "a;b"] for i in range(9)])
    assert run("data", "import", "a.csv", "-o", "a.npz").exit_code == 0
    assert f"{option} does not apply to .npz files" in refused("clean", "a.npz", option, "-o", "out.npz")


def write_folder(path: Path, columns: dict) -> Path:
    """Write a folder as Hugging Face Datasets saves one."""
    arrow = pytest.importorskip("pyarrow")
    path.mkdir()
    with arrow.ipc.new_stream(str(path / "data-00000-of-00001.arrow"), arrow.table(columns).schema) as writer:
        writer.write_table(arrow.table(columns))
    (path / "state.json").write_text('{"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}')
    return path


@pytest.mark.parametrize("kind", ["xlsx", "jsonl", "folder"])
def test_a_file_is_cleaned_and_predicted_and_decisions_are_applied(run: Run, folder: Path, kind: str) -> None:
    features, tags, _ = rows_with_tags(30)
    columns = {
        "name": [f"r{i}" for i in range(30)],
        "vector": features.tolist(),
        "tags": [t.split(";") for t in tags],
    }
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    source, suffix = folder / f"a.{kind}", kind
    if kind == "xlsx":
        book = pytest.importorskip("openpyxl", reason="needs the extra excel").Workbook()
        numbers = [f"vector_{j}" for j in range(features.shape[1])]
        for cells in (
            ["name", *numbers, "tags"],
            *([r["name"], *r["vector"], ";".join(r["tags"])] for r in rows),
        ):
            book.active.append(cells)
        book.save(source)
    elif kind == "jsonl":
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        source, suffix = write_folder(folder / "a", columns), "arrow"
    cleaned, applied = f"out.{suffix}", f"applied.{suffix}"
    result = run(
        "clean", source, *FAST, "--id", "name", "-o", cleaned, "--model", "m.skpml", "--drop-below", 0
    )
    assert result.exit_code == 0, result.output
    assert "vector" in result.stdout.splitlines()[0]
    label = tags[3].split(";")[0]
    write_rows(folder / "d.csv", ["id", "row", "label", "decision"], [["r3", 3, label, "drop"]])
    result = run("clean", "apply", source, "d.csv", "--settings", f"{cleaned}.json", "-o", applied)
    assert result.exit_code == 0, result.output
    before, after = (read_table(path, columns=Columns(id="name")) for path in (source, folder / applied))
    removed = [{label} if row == 3 else set() for row in range(30)]
    assert [one - other for one, other in zip(tag_sets(before), tag_sets(after), strict=True)] == removed
    assert run("predict", "m.skpml", source, "--id", "name", "-o", "p.csv").exit_code == 0
    with (folder / "p.csv").open(newline="") as text:
        assert [row["id"] for row in csv.DictReader(text)] == columns["name"]


def tag_sets(table: Table) -> list[set[str]]:
    return [{table.label_names[j] for j in row.nonzero()[0]} for row in table.candidates]
