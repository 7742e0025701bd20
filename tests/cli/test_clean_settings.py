"""Settings of ``skpml clean``: stored beside its output, they make it again, and apply decisions to the same rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import skpml.tables._table

from .conftest import Run, rows_with_tags, write_rows

Refused = Callable[..., str]
FAST = ("--method", "ridge", "--folds", "3", "--seed", "7")


@pytest.fixture
def songs(folder: Path) -> Path:
    """``songs.csv`` with names, texts and tags, and ``songs.npy`` beside it."""
    features, tags, truth = rows_with_tags(90)
    np.save(folder / "songs.npy", features)
    rows = [
        [f"s{i}", " ".join(f"{tag}word" for tag in true.split(";")), tag]
        for i, (tag, true) in enumerate(zip(tags, truth, strict=True))
    ]
    return write_rows(folder / "songs.csv", ["name", "lyrics", "tags"], rows)


def stored(folder: Path, name: str = "one.csv") -> dict:
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


def done(run: Run, *arguments: object) -> str:
    result = run("clean", *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def decide(folder: Path, songs: Path) -> tuple[str, str]:
    """A decision to drop the first tag of the first row; gives the line before and after."""
    line = songs.read_text().splitlines()[1]
    tags = line.split(",")[2].split(";")
    write_rows(folder / "decisions.csv", ["id", "row", "label", "decision"], [["s0", 0, tags[0], "drop"]])
    return line, ",".join([*line.split(",")[:2], ";".join(tags[1:])])


@pytest.mark.slow
def test_a_first_look_drops_nothing_and_is_repeated(run: Run, songs: Path, folder: Path) -> None:
    done(run, songs, "--embeddings", "songs.npy", "--fast", "-o", "one.csv")
    assert (folder / "one.csv").read_bytes() == songs.read_bytes()
    assert stored(folder)["audit"]["fast"] is True
    done(run, songs, "--settings", "one.csv.json", "-o", "two.csv")
    assert stored(folder, "two.csv")["audit"] == stored(folder)["audit"]


def test_a_first_look_belongs_to_one_method(refused: Refused, songs: Path) -> None:
    assert "candidate-likelihood" in refused("clean", songs, "--fast", "--method", "ridge", "-o", "one.csv")


@pytest.mark.parametrize(
    "options",
    [
        ("--embeddings", "songs.npy", "--budget", 9),
        ("--text", "lyrics", "--drop-below", 0.4, "--keep-above", 0.5),
    ],
    ids=["budget", "thresholds"],
)
@pytest.mark.slow
def test_a_run_is_repeated(run: Run, songs: Path, folder: Path, options: tuple) -> None:
    first = done(run, songs, "--id", "name", "-o", "one.csv", "--report", "one.html", *options, *FAST)
    again = done(run, songs, "--settings", "one.csv.json", "-o", "two.csv", "--report", "two.html")
    assert again == first.replace("one", "two")
    for suffix in ("csv", "html", "csv.json"):
        assert (folder / f"one.{suffix}").read_bytes() == (folder / f"two.{suffix}").read_bytes()


@pytest.mark.slow
def test_options_on_the_command_line_go_first(run: Run, songs: Path, folder: Path) -> None:
    done(run, songs, "--id", "name", "--embeddings", "songs.npy", "--budget", 9, "-o", "one.csv", *FAST)
    done(run, songs, "--settings", "one.csv.json", "-o", "two.csv", "--seed", 8, "--drop-below", 0.9)
    assert stored(folder, "two.csv")["audit"] == {
        "method": "ridge",
        "drop_below": 0.9,
        "keep_above": 0.9,
        "batch_size": 100,
        "n_folds": 3,
        "random_state": 8,
    }
    # What was stored moves along, or goes, where it does not fit to what is said.
    done(run, songs, "--settings", "two.csv.json", "-o", "three.csv", "--keep-above", 0.1)
    assert stored(folder, "three.csv")["audit"]["drop_below"] == 0.1
    done(run, songs, "--settings", "two.csv.json", "-o", "four.csv", "--budget", 3)
    assert stored(folder, "four.csv")["audit"].keys() == {
        "method", "budget", "batch_size", "n_folds", "random_state",
    }  # fmt: skip


def test_stored_columns_go_where_others_are_named(run: Run, folder: Path) -> None:
    rows = [[i, i % 2, 1, "sea;sky"] for i in range(12)]
    write_rows(folder / "a.csv", ["x", "sea", "sky", "marks"], rows)
    done(run, "a.csv", "--label", "sea", "--label", "sky", "--feature", "x", "-o", "one.csv", *FAST)
    done(run, "a.csv", "--settings", "one.csv.json", "--tags", "marks", "-o", "two.csv")
    assert stored(folder, "two.csv")["reading"] == {"tags": "marks", "features": ["x"]}


def test_files_are_known_by_their_content(run: Run, songs: Path, folder: Path) -> None:
    done(run, songs, "--text", "lyrics", "--id", "name", "-o", "one.csv", *FAST)
    for name, key in (("songs.csv", "sha256"), ("one.csv", "cleaned_sha256")):
        assert stored(folder)[key] == hashlib.sha256((folder / name).read_bytes()).hexdigest()


def test_decisions_are_applied_to_the_same_rows_only(
    run: Run, refused: Refused, songs: Path, folder: Path
) -> None:
    done(run, songs, "--text", "lyrics", "--id", "name", "-o", "one.csv", "--drop-below", 0, *FAST)
    before, after = decide(folder, songs)
    apply = ("apply", songs, "decisions.csv", "--settings", "one.csv.json")
    assert "1 tag dropped" in done(run, *apply, "-o", "final.csv")
    assert (folder / "final.csv").read_text() == songs.read_text().replace(before, after)
    # What was cleaned has its rows in the same places.
    done(run, "apply", "one.csv", *apply[2:], "-o", "other.csv")
    songs.write_text(songs.read_text() + "s90,words,sea\n")
    message = refused("clean", *apply, "-o", "late.csv")
    assert f"{songs} is not the file that one.csv.json describes, or it has changed since" in message
    note = done(run, songs, "--settings", "one.csv.json", "-o", "late.csv").splitlines()[0]
    assert note == f"Note: {songs} is not the file that one.csv.json describes, or it has changed since."


def test_embeddings_are_found_from_any_folder(
    run: Run, songs: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "out").mkdir()
    done(run, songs, "--embeddings", "songs.npy", "--id", "name", "-o", "out/one.csv", *FAST)
    assert Path(stored(folder / "out")["reading"]["embeddings"]) == Path("..", "songs.npy")
    decide(folder, songs)
    elsewhere = folder / "some" / "where"
    elsewhere.mkdir(parents=True)
    monkeypatch.chdir(elsewhere)
    done(run, "../../songs.csv", "--settings", "../../out/one.csv.json", "-o", "two.csv")
    assert (elsewhere / "two.csv").read_bytes() == (folder / "out" / "one.csv").read_bytes()
    done(
        run,
        "apply",
        "../../songs.csv",
        "../../decisions.csv",
        "--settings",
        "two.csv.json",
        "-o",
        "final.csv",
    )


def test_applying_reads_tags_and_names_alone(
    run: Run, songs: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(*_: object, **__: object) -> None:
        raise AssertionError("nothing is learnt here")

    monkeypatch.setattr(skpml.tables._mixed, "fit_text_features", fit)
    before, after = decide(folder, songs)
    cleaned = songs.read_text().replace(before, after)
    for number, options in enumerate(
        ((), ("--text", "lyrics"), ("--embeddings", "gone.npy"), ("--ignore", "lyrics"))
    ):
        done(run, "apply", songs, "decisions.csv", "--id", "name", *options, "-o", f"{number}.csv")
        assert (folder / f"{number}.csv").read_text() == cleaned


def test_names_of_rows_without_their_column(refused: Refused, songs: Path, folder: Path) -> None:
    decide(folder, songs)
    message = refused("clean", "apply", songs, "decisions.csv", "-o", "final.csv")
    assert "call row 0 's0'" in message
    assert "--id COLUMN" in message


@pytest.mark.parametrize(
    ("reading", "audit", "problem"),
    [
        ([], {}, "is not a settings file"),
        ({}, [], "is not a settings file"),
        ({"tags": 5}, {}, "reading.tags must be text"),
        ({"tagz": "a"}, {}, "reading has no setting 'tagz'"),
        ({}, {"magic": 1}, "audit has no setting 'magic'"),
        ({}, {"n_folds": "five"}, "'--folds'"),
        ({}, {"keep_above": 2}, "'--keep-above'"),
        ({}, {"n_folds": 2.5}, "audit.n_folds must be a whole number"),
        ({}, {"random_state": [1]}, "audit.random_state must be a number"),
        ({}, {"drop_below": {"a": 1}}, "audit.drop_below must be a number"),
        ({}, {"drop_below": 0.9, "keep_above": 0.8}, "--drop-below must not exceed"),
    ],
)
def test_wrong_settings(
    refused: Refused, songs: Path, folder: Path, reading: object, audit: object, problem: str
) -> None:
    content = {"sha256": "", "cleaned_sha256": "", "reading": reading, "audit": audit}
    (folder / "s.json").write_text(json.dumps(content))
    assert problem in refused("clean", songs, "--settings", "s.json", "-o", "c.csv")


@pytest.mark.parametrize("content", ["[]", "{}", "{", '{"reading": {}, "audit": {}}', "[" * 100_000])
def test_other_files_are_not_settings(refused: Refused, songs: Path, folder: Path, content: str) -> None:
    (folder / "s.json").write_text(content)
    assert "is not a settings file" in refused("clean", songs, "--settings", "s.json", "-o", "c.csv")
