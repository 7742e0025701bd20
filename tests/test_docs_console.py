"""What the documentation shows of a terminal is what is printed there, to the character.

A ``console`` block holds commands, each after ``$``, and below each what it prints. The commands of a page run one after
the other, beginning in an empty folder; those that run a script of ``examples`` run in the clone. Figures that another
machine may compute a little differently stand on a page only where that cannot be seen: a test below says how far the
audit of the example is from printing anything else.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("click")
pytest.importorskip("jinja2")

from skpml.cleaning import audit
from skpml.datasets import write_example
from skpml.tables import Columns, read_table

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PROGRAMS = {"skpml": '-c "from skpml.cli import main; main()"', "python": ""}


def console_blocks(page: Path) -> list[tuple[str, str]]:
    """Commands of a page, and what it shows below each."""
    found: list[tuple[str, str]] = []
    for block in re.findall(r"^```console\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S):
        for line in block.splitlines(keepends=True):
            if line.startswith("$ "):
                found.append((line[2:].strip(), ""))
            else:
                command, shown = found[-1]
                found[-1] = (command, shown + line)
    return found


PAGES = [page for page in sorted((ROOT / "docs").rglob("*.md")) if console_blocks(page)]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Where ``skpml`` and ``python`` are those of the tests."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, arguments in PROGRAMS.items():
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {arguments} "$@"\n')
        program.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "OMP_NUM_THREADS": "1",
        "PYTHONIOENCODING": "utf-8",
    }


@pytest.mark.skipif(os.name == "nt", reason="the pages show a terminal of Unix")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_terminal_prints_what_the_page_shows(
    page: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    here = tmp_path / "empty"
    here.mkdir()
    for command, shown in console_blocks(page):
        if command.startswith("cd "):
            here /= command[3:]
            continue
        if "digits_decisions.csv" in command:
            export_decisions(here)
        done = subprocess.run(
            command,
            shell=True,
            cwd=ROOT if command.startswith("python examples/") else here,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            timeout=300,
        )
        assert (done.returncode, done.stderr) == (0, ""), command
        assert done.stdout == shown, command


def export_decisions(folder: Path) -> None:
    """What the review page exports if a person who knows the truth decides what is asked, and accepts the rest."""
    page = (folder / "review.html").read_text(encoding="utf-8")
    payload = json.loads(re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.S)[1])
    with (folder / "planted.csv").open(newline="", encoding="utf-8") as file:
        planted = {(row["id"], row["label"]) for row in csv.DictReader(file)}
    with (folder / "digits_decisions.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "row", "label", "decision", "confidence", "by", "drawn"])
        writer.writerows(decided(payload, planted))


def decided(payload: dict, planted: set[tuple[str, str]]) -> Iterator[list]:
    cells = payload["cells"]
    # Without the last ones, which are kept and not in the list of doubtful tags.
    n_others = len(cells["item"]) - len(payload["batch"]["drawn"]) - payload["kept"]["listed"]
    drawn = payload["batch"]["drawn"] + [0] * n_others
    for place, label, confidence, action, drawn_as in zip(
        *(cells[name] for name in ("item", "label", "confidence", "action")), drawn, strict=False
    ):
        item, tag = payload["items"][place], payload["labels"][label]
        # Tags of the batch have no suggestion.
        by = "" if action in ("", "ask") else "model"
        if not by:
            action = "drop" if (item["id"], tag) in planted else "keep"
        yield [item["id"], item["row"], tag, action, confidence, by, drawn_as or ""]


def test_figures_of_the_example_are_the_same_on_every_machine(tmp_path: Path) -> None:
    """Confidences stay away from the thresholds, and estimates from where they are rounded the other way.

    Kernels of BLAS for five kinds of processor and one or two threads moved confidences by less than 1e-7, the
    estimated numbers by less than 1e-5.
    """
    write_example(tmp_path / "digits")
    table = read_table(tmp_path / "digits" / "digits.csv", columns=Columns(id="file"))
    found = audit(table.X, table.candidates, label_names=table.label_names)
    believed = found.confidences[table.candidates > 0]
    assert np.abs(believed[:, None] - [0.25, 0.75]).min() > 1e-3
    estimates = np.array(found.wrong.total)
    assert np.abs(estimates - np.floor(estimates) - 0.5).min() > 1e-2
    assert 1e-2 < 100 * found.evidence.drops_wrong % 1 < 1 - 1e-2
