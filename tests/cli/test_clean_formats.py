"""Tags as people write them, from the command line: separators, spellings, rows that are not tagged yet."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

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
