"""``skpml clean``: a file goes in, a cleaned one comes out, and nothing else in it has changed."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from skpml.cleaning import read_table
from skpml.io import load_model

from .conftest import LABELS, Run, rows_with_tags, write_rows

FAST = ("--method", "ridge", "--folds", "3")


@pytest.fixture
def tagged(folder: Path) -> Path:
    features, tags, _ = rows_with_tags(120)
    rows = [
        [f"img {i}.png", *map(repr, row), tag]
        for i, (row, tag) in enumerate(zip(features.tolist(), tags, strict=True))
    ]
    return write_rows(folder / "photos.csv", ["file", "a", "b", "c", "tags"], rows)


def cells(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_only_dropped_tags_are_gone(run: Run, tagged: Path, folder: Path) -> None:
    done = run("clean", tagged, "--id", "file", "-o", "cleaned.csv", "--audit", "doubts.csv", *FAST)
    assert done.exit_code == 0, done.output
    doubts = cells(folder / "doubts.csv")
    dropped = {(doubt["id"], doubt["label"]) for doubt in doubts if doubt["action"] == "drop"}
    assert dropped
    for before, after in zip(cells(tagged), cells(folder / "cleaned.csv"), strict=True):
        kept = [tag for tag in before["tags"].split(";") if (before["file"], tag) not in dropped]
        assert after == {**before, "tags": ";".join(kept)}
    assert [int(doubt["rank"]) for doubt in doubts] == list(range(1, len(doubts) + 1))
    use = [min(float(doubt["confidence"]), 1 - float(doubt["confidence"])) for doubt in doubts]
    assert use == sorted(use, reverse=True)
    assert f"Dropped {len(dropped)};" in done.stdout
    assert "tags are wrong (between" in done.stdout


def test_the_same_again_gives_the_same_files(run: Run, tagged: Path, folder: Path) -> None:
    for name in ("one", "other"):
        done = run(
            "clean", tagged, "--ignore", "file", "-o", f"{name}.csv", "--report", f"{name}.html", *FAST
        )
        assert done.exit_code == 0, done.output
    for suffix in ("csv", "html", "csv.json"):
        assert (folder / f"one.{suffix}").read_bytes() == (folder / f"other.{suffix}").read_bytes()


def test_settings_are_kept_and_used_again(run: Run, tagged: Path, folder: Path) -> None:
    done = run(
        "clean", tagged, "--id", "file", "-o", "cleaned.csv", "--budget", 7, "--audit", "doubts.csv", *FAST
    )
    assert done.exit_code == 0, done.output
    kept = json.loads((folder / "cleaned.csv.json").read_text())
    assert kept["reading"] == {"id": "file"}
    assert kept["audit"]["budget"] == 7
    asked = [doubt for doubt in cells(folder / "doubts.csv") if doubt["action"] == "ask"]
    assert len(asked) == 7
    decisions = [[doubt["id"], doubt["row"], doubt["label"], "drop", doubt["confidence"]] for doubt in asked]
    decisions[0][3] = "keep"
    write_rows(folder / "decisions.csv", ["id", "row", "label", "decision", "confidence"], decisions)
    done = run("clean", "apply", tagged, "decisions.csv", "-o", "final.csv", "--settings", "cleaned.csv.json")
    assert done.exit_code == 0, done.output
    assert "7 decisions: 6 tags dropped, 1 kept." in done.stdout
    gone = {(row[0], row[2]) for row in decisions[1:]}
    for before, after in zip(cells(tagged), cells(folder / "final.csv"), strict=True):
        kept_tags = [tag for tag in before["tags"].split(";") if (before["file"], tag) not in gone]
        assert after == {**before, "tags": ";".join(kept_tags)}


def test_the_model_of_cleaned_tags_predicts(run: Run, tagged: Path, folder: Path) -> None:
    done = run("clean", tagged, "--ignore", "file", "-o", "cleaned.csv", "--model", "photos.skpml", *FAST)
    assert done.exit_code == 0, done.output
    assert load_model(folder / "photos.skpml").predict(read_table(tagged, ignore=["file"]).X).shape == (
        120,
        4,
    )
    done = run("predict", "photos.skpml", tagged, "-o", "tags.csv")
    assert done.exit_code == 0, done.output
    assert len(cells(folder / "tags.csv")) == 120


def test_texts_alone_can_be_cleaned(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(0)
    words = {label: [f"{label}word{i}" for i in range(8)] for label in LABELS}
    rows, wrong = [], set()
    for number in range(150):
        true = LABELS[rng.integers(4)]
        tags = [true]
        if rng.random() < 0.4:
            other = LABELS[rng.integers(4)]
            if other != true:
                tags.append(other)
                wrong.add((str(number), other))
        rows.append([" ".join(rng.choice(words[true], 5)), ";".join(tags)])
    path = write_rows(folder / "news.csv", ["headline", "tags"], rows)
    done = run("clean", path, "--text", "headline", "-o", "cleaned.csv", "--audit", "doubts.csv", "--model", "news.skpml",
               "--label-studio", "tasks.json", *FAST)  # fmt: skip
    assert done.exit_code == 0, done.output
    dropped = {(d["id"], d["label"]) for d in cells(folder / "doubts.csv") if d["action"] == "drop"}
    assert len(dropped & wrong) > 0.7 * len(wrong)
    assert len(dropped - wrong) < 0.1 * len(wrong)
    assert len(json.loads((folder / "tasks.json").read_text())) == 150
    assert (folder / "tasks.xml").exists()


class TestRefusals:
    def test_nothing_is_overwritten_unasked(self, refused, tagged: Path, folder: Path) -> None:
        (folder / "cleaned.csv.json").write_text("mine")
        assert "cleaned.csv.json exists already; --force replaces it" in refused(
            "clean", tagged, "-o", "cleaned.csv"
        )

    def test_a_missing_column(self, refused, tagged: Path) -> None:
        assert "tagz" in refused("clean", tagged, "--tags", "tagz", "-o", "cleaned.csv")

    def test_text_where_numbers_should_be(self, refused, tagged: Path) -> None:
        message = refused("clean", tagged, "-o", "cleaned.csv")
        assert "column 'file' holds 'img 0.png'" in message
        assert "--ignore" in message

    def test_an_empty_file(self, refused, folder: Path) -> None:
        (folder / "empty.csv").touch()
        assert "empty.csv" in refused("clean", "empty.csv", "-o", "cleaned.csv")

    def test_an_unknown_method(self, refused, tagged: Path) -> None:
        assert "there is no method 'magic'" in refused("clean", tagged, "-o", "c.csv", "--method", "magic")

    def test_what_is_no_file_of_settings(self, refused, tagged: Path, folder: Path) -> None:
        (folder / "s.json").write_text("[]")
        (folder / "d.csv").write_text("id,row,label,decision\n")
        assert "is not a file of settings" in refused(
            "clean", "apply", tagged, "d.csv", "-o", "c.csv", "--settings", "s.json"
        )

    def test_thresholds_that_cross(self, refused, tagged: Path) -> None:
        message = refused("clean", tagged, "--ignore", "file", "-o", "c.csv", "--drop-below", 0.9, *FAST)
        assert "drop_below must not be above keep_above" in message

    def test_advice_speaks_of_options(self, refused, folder: Path) -> None:
        write_rows(folder / "unlabelled.csv", ["a", "b"], [["1", "2"], ["3", "4"]])
        message = refused("clean", "unlabelled.csv", "-o", "c.csv")
        assert "pass --tags COLUMN" in message
        assert "--label COLUMN" in message
        write_rows(folder / "twice.csv", ["file", "a", "tags"], [["x", "1", "sea"], ["x", "2", "sky"]])
        assert "leave out --id" in refused("clean", "twice.csv", "--id", "file", "-o", "c.csv")

    def test_quotes_may_be_plain_text(self, refused, folder: Path) -> None:
        lines = ["size,note,tags", '1,"6 inches,sea', "2,none,sky"]
        (folder / "inches.csv").write_text("\n".join(lines) + "\n")
        options = (
            "clean",
            "inches.csv",
            "--ignore",
            "note",
            "--tags",
            "tags",
            "-o",
            "c.csv",
            "--method",
            "ridge",
        )
        assert "pass --quote ''" in refused(*options, "--quote", '"')
        # With the advice taken the file is read, and two rows are too few to cut into folds.
        assert "quote" not in refused(*options, "--quote", "")
