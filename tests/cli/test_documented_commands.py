"""The commands that the guide shows do what it says, in the order in which it shows them."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from .conftest import LABELS, Run, rows_with_tags, write_rows

pytest.importorskip("skops.io")

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "command_line.md"


def sections() -> dict[str, list[str]]:
    """The commands of each section, by its heading."""
    found = {}
    for part in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        blocks = re.findall(r"^```sh\n(.*?)^```", part, flags=re.MULTILINE | re.DOTALL)
        if commands := [line for block in blocks for line in block.splitlines() if line]:
            found[part.splitlines()[0]] = commands
    return found


@pytest.fixture
def desk(folder: Path) -> Path:
    """The files that the page speaks of."""
    for name, seed in (("photos", 0), ("new", 1), ("checked", 2)):
        features, tags, truth = rows_with_tags(60, seed)
        shown = truth if name == "checked" else tags
        rows = [[f"{i}.jpg", *map(repr, features[i].tolist()), shown[i]] for i in range(60)]
        write_rows(folder / f"{name}.csv", ["file", "red", "green", "blue", "tags"], rows)
        if name != "checked":
            words = [" ".join(f"{tag}word" for tag in row.split(";")) for row in truth]
            articles = [[f"a{i}", words[i], tags[i]] for i in range(60)]
            target = "news.csv" if name == "photos" else "new_articles.csv"
            write_rows(folder / target, ["article", "headline", "tags"], articles)
    features, tags, _ = rows_with_tags(60)
    write_rows(folder / "songs.csv", ["song", "tags"], [[i, tags[i]] for i in range(60)])
    np.save(folder / "songs.npy", features)
    np.save(folder / "new_songs.npy", features[:20])
    said = [[f"{i}.jpg", who, tag] for i in range(60) for who in "abc" for tag in tags[i].split(";")]
    write_rows(folder / "votes.csv", ["file", "annotator", "label"], said)
    first = rows_with_tags(60)[1][0].split(";")[0]
    decisions = [["0.jpg", 0, first, "drop", 0.1]]
    write_rows(folder / "photos_decisions.csv", ["id", "row", "label", "decision", "confidence"], decisions)
    return folder


@pytest.mark.parametrize("section", sections())
def test_commands_of_a_section(run: Run, desk: Path, section: str) -> None:
    for command in sections()[section]:
        program, *arguments = shlex.split(command)
        assert program == "skpml"
        done = run(*arguments)
        assert done.exit_code == 0, f"{command}: {done.output}"
        for option in ("-o", "--report", "--model", "--confidences"):
            if option in arguments:
                assert (desk / arguments[arguments.index(option) + 1]).exists()


def test_the_section_on_cleaning_is_among_them(run: Run, desk: Path) -> None:
    commands = sections()["Cleaning a file"]
    assert [shlex.split(command)[1] for command in commands].count("predict") == 3
    for command in commands[:3]:
        run(*shlex.split(command)[1:])
    # Only what was decided is gone, whatever the first command took out.
    before, after = ((desk / name).read_text().splitlines() for name in ("photos.csv", "cleaned.csv"))
    assert [line for line in range(len(before)) if before[line] != after[line]] == [1]
    with (desk / "tags.csv").open("w"):
        pass
    predict = next(command for command in commands if command.startswith("skpml predict"))
    done = run(*shlex.split(predict)[1:], "--force")
    assert done.exit_code == 0, done.output
    with (desk / "tags.csv").open(newline="", encoding="utf-8") as file:
        header = next(csv.reader(file))
    assert header == ["row", "id", "predicted", *(f"probability:{label}" for label in LABELS)]
