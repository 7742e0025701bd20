"""``skpml clean``: a file goes in, a cleaned one comes out, and nothing else in it has changed."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import skpml.cleaning
from skpml.io import load_model
from skpml.tables import Columns, read_table

from .conftest import LABELS, Run, rows_with_tags, write_rows

FAST = ("--method", "ridge", "--folds", "3")
# Enough to tell wrong tags from right ones by three numbers.
N_ROWS = 300


@pytest.fixture
def tagged(folder: Path) -> Path:
    features, tags, _ = rows_with_tags(N_ROWS)
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


@pytest.mark.parametrize(("option", "value"), [("--drop-below", 0.9), ("--keep-above", 0.1)])
def test_a_threshold_moves_the_other_along(
    run: Run, tagged: Path, folder: Path, option: str, value: float
) -> None:
    done = run("clean", tagged, "--id", "file", "-o", "c.csv", "--audit", "d.csv", option, value, *FAST)
    assert done.exit_code == 0, done.output
    kept = json.loads((folder / "c.csv.json").read_text())["audit"]
    assert kept["drop_below"] == kept["keep_above"] == value
    doubts = cells(folder / "d.csv")
    assert doubts
    assert all(float(doubt["confidence"]) <= value for doubt in doubts)


def test_tags_are_cleaned_and_what_is_known_to_be_true_is_not(run: Run, tagged: Path, folder: Path) -> None:
    lines = tagged.read_text().splitlines()
    with_truth = [f"{line},{'truth' if number == 0 else 'sea'}" for number, line in enumerate(lines)]
    tagged.write_text("\n".join(with_truth) + "\n")
    done = run("clean", tagged, "--id", "file", "-o", "c.csv", *FAST)
    assert done.exit_code == 0, done.output
    described, note, *_ = done.stdout.splitlines()
    assert described == "Tags from column 'tags'; learning from 3 columns: a, b, c."
    assert note.startswith("Note: ")
    assert "'truth'" in note
    before, after = cells(tagged), cells(folder / "c.csv")
    assert [row["truth"] for row in after] == [row["truth"] for row in before]
    assert [row["tags"] for row in after] != [row["tags"] for row in before]


def test_rows_that_lose_all_tags_are_counted(
    run: Run, tagged: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = skpml.cleaning.audit

    def severe(*arguments: Any, **options: Any) -> Any:
        found = real(*arguments, **options)
        actions = np.where(found.actions == "", "", "keep")
        actions[:3][actions[:3] != ""] = "drop"
        return replace(found, actions=actions)

    with monkeypatch.context() as patch:
        patch.setattr(skpml.cleaning, "audit", severe)
        done = run("clean", tagged, "--id", "file", "-o", "c.csv", *FAST)
    assert [number for number, row in enumerate(cells(folder / "c.csv")) if not row["tags"]] == [0, 1, 2]
    assert "\n3 rows have lost all tags.\n" in done.stdout
    done = run("clean", tagged, "--id", "file", "-o", "d.csv", "--drop-below", 0, *FAST)
    assert "lost" not in done.stdout
    first = cells(tagged)[0]["tags"].split(";")
    decisions = [["img 0.png", 0, tag, "drop", ""] for tag in first]
    write_rows(folder / "decisions.csv", ["id", "row", "label", "decision", "confidence"], decisions)
    done = run("clean", "apply", tagged, "decisions.csv", "--id", "file", "-o", "e.csv")
    assert "\n1 row has lost all tags.\n" in done.stdout


def test_one_thing_is_no_plural(run: Run, tagged: Path, folder: Path) -> None:
    write_rows(folder / "one.csv", ["a", "tags"], [[i % 3, "sea" if i == 0 else ""] for i in range(12)])
    done = run("clean", "one.csv", "-o", "c.csv", *FAST)
    assert "12 rows, 1 label, 1 tag.\n" in done.stdout
    tag = cells(tagged)[0]["tags"].split(";")[0]
    decisions = [["img 0.png", 0, tag, "drop", ""]]
    write_rows(folder / "decisions.csv", ["id", "row", "label", "decision", "confidence"], decisions)
    done = run("clean", "apply", tagged, "decisions.csv", "--id", "file", "-o", "e.csv")
    assert "1 decision: 1 tag dropped, 0 kept.\n" in done.stdout


def test_a_name_of_a_file_that_is_no_text(run: Run, tagged: Path, folder: Path) -> None:
    odd = folder / "caf\udce9.csv"
    try:
        odd.write_bytes(tagged.read_bytes())
    except (OSError, UnicodeError):
        pytest.skip("this file system takes no such name")
    done = run("clean", odd, "--id", "file", "-o", "c\udce9.csv", "--report", "r\udce9.html", *FAST)
    assert done.exit_code == 0, done.output
    assert json.loads((folder / "c\udce9.csv.json").read_text())["data"] == odd.name
    assert (folder / "r\udce9.html").exists()
    (folder / "d.csv").write_text("id,row,label,decision\n")
    done = run("clean", "apply", odd, "d.csv", "-o", "e.csv", "--settings", "c\udce9.csv.json")
    assert done.exit_code == 0, done.output


@pytest.mark.slow
def test_the_examples_of_the_help_run_one_after_the_other(run: Run, tagged: Path, folder: Path) -> None:
    help = run("clean", "--help").stdout
    commands = [line.split() for line in help.splitlines() if line.strip().startswith("skpml clean ")]
    assert len(commands) == 5
    write_rows(
        folder / "news.csv",
        ["headline", "tags"],
        [[f"word{i % 5} word{i % 3}", "ab"[i % 2]] for i in range(40)],
    )
    tag = cells(tagged)[0]["tags"].split(";")[0]
    decisions = [["img 0.png", 0, tag, "drop", ""]]
    write_rows(folder / "photos_decisions.csv", ["id", "row", "label", "decision", "confidence"], decisions)
    for _, *arguments in commands:
        done = run(*arguments)
        assert done.exit_code == 0, done.output


def test_the_model_of_cleaned_tags_predicts(run: Run, tagged: Path, folder: Path) -> None:
    done = run("clean", tagged, "--ignore", "file", "-o", "cleaned.csv", "--model", "photos.skpml", *FAST)
    assert done.exit_code == 0, done.output
    assert load_model(folder / "photos.skpml").predict(
        read_table(tagged, columns=Columns(ignore=["file"])).X
    ).shape == (
        N_ROWS,
        4,
    )
    done = run("predict", "photos.skpml", tagged, "-o", "tags.csv")
    assert done.exit_code == 0, done.output
    assert len(cells(folder / "tags.csv")) == N_ROWS


@pytest.mark.slow
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

    def test_text_where_a_number_should_be(self, refused, tagged: Path) -> None:
        lines = tagged.read_text().split("\n")
        place = lines[0].split(",").index("b")
        cells = lines[5].split(",")
        lines[5] = ",".join([*cells[:place], "many", *cells[place + 1 :]])
        tagged.write_text("\n".join(lines))
        message = refused("clean", tagged, "-o", "cleaned.csv")
        assert "line 6: column 'b' holds 'many'" in message
        assert "--category 'b'" in message
        assert "--ignore 'b'" in message

    def test_an_empty_file(self, refused, folder: Path) -> None:
        (folder / "empty.csv").touch()
        assert "empty.csv" in refused("clean", "empty.csv", "-o", "cleaned.csv")

    def test_an_unknown_method(self, refused, tagged: Path) -> None:
        assert "there is no method 'magic'" in refused("clean", tagged, "-o", "c.csv", "--method", "magic")

    def test_what_is_no_file_of_settings(self, refused, tagged: Path, folder: Path) -> None:
        (folder / "s.json").write_text("[]")
        (folder / "d.csv").write_text("id,row,label,decision\n")
        assert "is not a settings file" in refused(
            "clean", "apply", tagged, "d.csv", "-o", "c.csv", "--settings", "s.json"
        )

    def test_thresholds_that_cross(self, refused, tagged: Path) -> None:
        crossing = ("--drop-below", 0.9, "--keep-above", 0.8)
        message = refused("clean", tagged, "--ignore", "file", "-o", "c.csv", *crossing, *FAST)
        assert "--drop-below must not exceed --keep-above, got 0.9 and 0.8" in message

    @pytest.mark.parametrize("option", ["--drop-below", "--keep-above"])
    def test_a_budget_and_a_threshold(self, refused, tagged: Path, option: str) -> None:
        message = refused(
            "clean", tagged, "--ignore", "file", "-o", "c.csv", "--budget", 5, option, 0.5, *FAST
        )
        assert f"--budget and {option} exclude each other" in message

    def test_advice_speaks_of_options(self, refused, folder: Path) -> None:
        write_rows(folder / "unlabelled.csv", ["a", "b"], [["1", "2"], ["3", "4"]])
        message = refused("clean", "unlabelled.csv", "-o", "c.csv")
        assert "pass --tags COLUMN" in message
        assert "--label COLUMN" in message
        write_rows(folder / "twice.csv", ["file", "a", "tags"], [["x", "1", "sea"], ["x", "2", "sky"]])
        assert "--id COLUMN" in refused("clean", "twice.csv", "--id", "file", "-o", "c.csv")

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


def test_what_the_rows_do_not_tell_is_not_dropped(run: Run) -> None:
    rng = np.random.default_rng(0)
    tags = ["sea" if y else "lake" for y in rng.random(200) < 0.5]
    lines = [f"{x:.4f},{tag}" for x, tag in zip(rng.normal(size=200), tags, strict=True)]
    Path("coins.csv").write_text("\n".join(["number,tags", *lines]) + "\n", encoding="utf-8")
    result = run("clean", "coins.csv", "-o", "cleaned.csv", "--method", "ridge")
    assert "Dropped 0;" in result.stdout
    assert Path("cleaned.csv").read_bytes() == Path("coins.csv").read_bytes()


def test_tags_of_few_rows_are_reported_as_such(run: Run) -> None:
    """Two groups of rows, and a tag of three rows."""
    lines = [f"{i % 2}.{i:03d},{'sea' if i % 2 else 'lake'}" for i in range(200)]
    lines = [line + ";ship" * (i in (0, 2, 4)) for i, line in enumerate(lines)]
    Path("ships.csv").write_text("\n".join(["number,tags", *lines]) + "\n", encoding="utf-8")
    result = run("clean", "ships.csv", "-o", "cleaned.csv", "--method", "ridge", "--drop-below", "1")
    assert "fewer than 10 rows have such a tag" in result.stdout, result.output
    assert Path("cleaned.csv").read_text(encoding="utf-8").count("ship") == 3


@pytest.mark.slow
def test_a_page_far_from_its_images_is_named(run: Run, tagged: Path, folder: Path) -> None:
    (folder / "far").mkdir()
    here, far = (
        run(
            "clean",
            tagged,
            "--method",
            "ridge",
            "--image",
            "file",
            "-o",
            f"{place}c.csv",
            "--report",
            f"{place}r.html",
        )
        for place in ("", "far/")
    )
    assert (here.exit_code, far.exit_code) == (0, 0), here.output + far.output
    assert "beside itself" not in here.stdout
    assert "beside itself" in far.stdout
