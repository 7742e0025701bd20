"""From a file of doubtful tags to the reviewed one: the command, a real browser, a person's keys, the command again."""

from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from review_helpers import ATTACK, current, export, listed, press, progress, reload, watched

from browser_helpers import CHROMIUM, chromium

pytest.importorskip("jinja2")
pytest.importorskip("click")
pytest.importorskip("rich")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
]

TAGS = ("beach", f"forest {ATTACK}", 'the "sea", calm', "sky")
# How tags stand in their cell, in turn: nothing but tags may change.
BETWEEN = (";", "; ")
MORE = 12
BATCH = 40


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as held:
        yield held


class Photos:
    """Rows whose numbers tell their true tags, with wrong tags planted in every third row."""

    def __init__(self, n_rows: int = 90) -> None:
        rng = np.random.default_rng(0)
        truth = np.zeros((n_rows, len(TAGS)), dtype=bool)
        truth[np.arange(n_rows), np.arange(n_rows) % len(TAGS)] = True
        truth[np.arange(n_rows), rng.integers(len(TAGS), size=n_rows)] = True
        self.numbers = truth @ rng.normal(size=(len(TAGS), 5)) + 0.05 * rng.normal(size=(n_rows, 5))
        self.ids = [f"{row}.jpg" for row in range(n_rows)]
        self.ids[3], self.ids[6], self.ids[9] = f"3 {ATTACK}", '6, "six"', "9 é🌊"
        self.tags, self.planted = [], set()
        for row, true in enumerate(truth):
            tags = [TAGS[column] for column in np.flatnonzero(true)]
            if row % 3 == 0 and len(tags) < len(TAGS):
                wrong = str(rng.choice([tag for tag in TAGS if tag not in tags]))
                tags.insert(row % 2, wrong)
                self.planted.add((wrong, self.ids[row]))
            self.tags.append(tags)

    def content(self, dropped: set[tuple[str, str]]) -> bytes:
        """The file without the tags that are dropped: each stands with the blanks that lead to the next one."""
        lines = ["\ufefffile,a,b,c,d,e,tags,note"]
        for row, (name, numbers, tags) in enumerate(
            zip(self.ids, self.numbers.tolist(), self.tags, strict=True)
        ):
            kept = [tag for tag in tags if (tag, name) not in dropped]
            cell = BETWEEN[row // 6 % 2].join(kept)
            lines.append(",".join([quoted(name), *map(repr, numbers), quoted(cell), f"note {row}"]))
        return "\r\n".join([*lines, ""]).encode("utf-8")


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def skpml(folder: Path, *arguments: str) -> str:
    """Run the command as its own process, as a person does."""
    done = subprocess.run(
        [sys.executable, "-c", "from skpml.cli import main; main()", *arguments],
        cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


class Person:
    """Decides by keyboard on what the page shows, rightly, and remembers it."""

    def __init__(self, page: Any, planted: set[tuple[str, str]]) -> None:
        self.page, self.planted = page, planted
        self.decisions: dict[tuple[str, str], str] = {}

    def decide(self) -> None:
        cell = current(self.page)
        self.press("drop" if cell in self.planted else "keep", cell)

    def press(self, decision: str, cell: tuple[str, str]) -> None:
        self.decisions[cell] = decision
        press(self.page, {"keep": "y", "drop": "x"}[decision])

    def dropped(self) -> set[tuple[str, str]]:
        return {cell for cell, decision in self.decisions.items() if decision == "drop"}

    def progress(self) -> tuple[int, int]:
        dropped = len(self.dropped())
        return len(self.decisions) - dropped, dropped


def choose(page: Any, filter_name: str, option: str) -> None:
    page.get_by_role("combobox", name=filter_name, exact=True).select_option(label=option)


def decide_one_tag(page: Any, person: Person, cells: list[tuple[str, str]]) -> None:
    """Decide all cells of one tag, take the last decision back, and change the one before it."""
    choose(page, "Tag", TAGS[1])
    assert listed(page) == cells
    page.locator("#grid").focus()
    for cell in cells:
        assert current(page) == cell
        person.decide()
    press(page, "u")
    del person.decisions[cells[-1]]
    press(page, "ArrowUp")
    person.press("keep" if person.decisions[cells[-2]] == "drop" else "drop", cells[-2])


def decide_more(page: Any, person: Person, strange: tuple[str, str]) -> None:
    """Decide some that are left, and a cell that is found by a search for markup."""
    choose(page, "Decision", "undecided")
    page.locator("#grid").focus()
    press(page, "Home")
    for _ in range(MORE):
        person.decide()
    choose(page, "Decision", "any")
    page.get_by_role("searchbox").fill(f"{strange[1][:12]} {strange[0]}")
    press(page, "Enter")
    assert listed(page) == [strange]
    person.decide()


def test_a_file_is_cleaned_by_command_and_person(browser: Any, tmp_path: Path) -> None:
    photos, source = Photos(), tmp_path / "photos.csv"
    source.write_bytes(photos.content(set()))
    options = ("--id", "file", "--ignore", "note", "--folds", "3", "--batch", "0")
    said = skpml(tmp_path, "clean", "photos.csv", *options, "-o", "sure.csv", "--report", "review.html")
    assert "Wrote review.html." in said

    with watched(browser, tmp_path) as watch:
        page = watch(height=5000)
        person, doubts = Person(page, photos.planted), listed(page)
        total = int(page.locator("#shown").inner_text().split()[-1])
        assert len(doubts) == total
        assert len(photos.planted & set(doubts)) > 0.8 * len(photos.planted)

        decide_one_tag(page, person, [cell for cell in doubts if cell[0] == TAGS[1]])
        assert progress(page) == person.progress()
        reload(page)
        assert progress(page) == person.progress()
        choose(page, "Decision", "dropped")
        assert set(listed(page)) == person.dropped()
        decide_more(page, person, ("beach", photos.ids[3]))
        assert progress(page) == person.progress()

        assert page.evaluate("window.attacked") is None
        assert page.locator("img").count() == 0
        assert page.locator("script").count() == 2
        text = export(page)
    (tmp_path / "decisions.csv").write_bytes(text.encode("utf-8"))

    lines = csv.DictReader(io.StringIO(text, newline=""))
    assert {(line["label"], line["id"]): line["decision"] for line in lines} == person.decisions
    assert set(person.decisions.values()) == {"keep", "drop"}
    assert len(person.decisions) < total
    settings = ("--settings", "sure.csv.json")
    said = skpml(tmp_path, "clean", "apply", "photos.csv", "decisions.csv", "-o", "cleaned.csv", *settings)
    assert f"{len(person.decisions)} decisions: {len(person.dropped())} tags dropped" in said
    assert (tmp_path / "cleaned.csv").read_bytes() == photos.content(person.dropped())
    assert source.read_bytes() == photos.content(set())


def read_export(text: str) -> dict[tuple[str, str], dict[str, str]]:
    """Lines of an export by tag and id."""
    return {(line["label"], line["id"]): line for line in csv.DictReader(io.StringIO(text, newline=""))}


def read_interval(printed: str) -> tuple[int, int]:
    found = re.search(r"between ([\d,]+) and ([\d,]+)", printed)
    assert found, printed
    low, high = (int(number.replace(",", "")) for number in found.groups())
    return low, high


def check_batch(browser: Any, folder: Path, name: str, planted: set[tuple[str, str]]) -> tuple[str, Person]:
    """Check the batch of a page by keyboard; return the export and the person, who remembers the decisions."""
    with watched(browser, folder) as watch:
        watch.file = folder / name
        page = watch()
        person = Person(page, planted)
        batch = listed(page)
        assert len(batch) == BATCH
        for cell in batch:
            assert current(page) == cell
            person.decide()
        assert page.locator("#task-done").is_visible()
        assert list(person.decisions) == batch
        return export(page), person


def test_checking_batches_and_running_again(browser: Any, tmp_path: Path) -> None:
    photos, source = Photos(240), tmp_path / "photos.csv"
    source.write_bytes(photos.content(set()))
    options = ("--id", "file", "--ignore", "note", "--folds", "3", "--method", "ridge", "--batch", str(BATCH))
    printed = skpml(tmp_path, "clean", "photos.csv", *options, "-o", "0.csv", "--report", "0.html")
    known: dict[tuple[str, str], str] = {}
    text, widths = "", []
    for number in (0, 1):
        earlier = text
        text, person = check_batch(browser, tmp_path, f"{number}.html", photos.planted)
        # Nothing is asked twice, and the export holds all decisions so far.
        assert not known.keys() & person.decisions.keys()
        known |= person.decisions
        lines = read_export(text)
        assert {cell: line["decision"] for cell, line in lines.items()} == known
        for cell, line in read_export(earlier).items():
            assert {**lines[cell], "confidence": ""} == {**line, "confidence": ""}
            assert float(lines[cell]["confidence"]) == float(line["confidence"])
        (tmp_path / "decisions.csv").write_bytes(text.encode("utf-8"))

        after = f"{number + 1}"
        arguments = ("--settings", f"{number}.csv.json", "--decisions", "decisions.csv", "-o", f"{after}.csv")
        printed = skpml(tmp_path, "clean", "photos.csv", *arguments, "--report", f"{after}.html")
        n_random = sum(line["drawn"] != "" for line in lines.values())
        checked = re.search(r"Checked by a person: (\d+) tags, (\d+) of them a random sample", printed)
        assert checked, printed
        assert int(checked[1]) == len(known)
        # Tags that were chosen before their turn in the random order belong to the sample, too.
        assert n_random <= int(checked[2]) <= len(known)
        low, high = read_interval(printed)
        widths.append(high - low)

        # Everything that a person decided is kept exactly, whatever the model thinks of it.
        with (tmp_path / f"{after}.csv").open(newline="", encoding="utf-8-sig") as file:
            tags = {
                row["file"]: {tag.strip() for tag in row["tags"].split(";")} for row in csv.DictReader(file)
            }
        for (tag, name), decision in known.items():
            assert (tag in tags[name]) == (decision == "keep")
    assert widths[1] <= widths[0]
    assert source.read_bytes() == photos.content(set())
