"""``skpml bench report``, ``compare`` and ``export`` on runs that were really done."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

pytest.importorskip("pydantic")
pytest.importorskip("scikit_posthocs")

from skpml.cli._app import app
from skpml.experiments import Store

from .conftest import Run

SUITE = """name = "mine"
title = "Mine & <b>theirs</b>"
configurations = ["digits-5", "digits-6", "digits-8", "enron-3"]
folds = 2
metrics = ["average_precision", "one_error"]
control = "pml_ni"
[[methods]]
name = "pml-ni"
label = "pml_ni"
[[methods]]
name = "linear-ridge"
[[methods]]
name = "linear-ridge"
label = "heavy 100%"
parameters = { gamma = 1e3 }
[[methods]]
name = "ridge"
label = "floor"
role = "floor"
[[methods]]
name = "ridge"
label = "ceiling"
role = "ceiling"
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The suite and all of its runs."""
    work = tmp_path_factory.mktemp("finished")
    (work / "mine.toml").write_text(SUITE)
    command = ["bench", "run", str(work / "mine.toml"), "--folder", str(work / "out"), "--no-report"]
    result = CliRunner().invoke(app, command, env={"SKPML_DATA": str(work / "none")})
    assert result.exit_code == 0, result.output
    return work


@pytest.fixture
def out(finished: Path, folder: Path) -> Path:
    """A copy of them in the folder of the test."""
    shutil.copytree(finished / "out", folder / "out")
    shutil.copy(finished / "mine.toml", folder)
    return folder / "out"


def means(out: Path, metric: str) -> dict[tuple[str, str], float]:
    """Mean of each method's name, parameters and training labels on each configuration, straight from the files."""
    values: dict[tuple[str, str], list[float]] = {}
    for record in Store(out).records():
        run = record["run"]
        name = f"{run['method']}{run['parameters']}{run['trained_on']}"
        values.setdefault((name, run["configuration"]), []).append(record["metrics"][metric])
    return {key: float(np.mean(held)) for key, held in values.items()}


@pytest.mark.slow
def test_the_report_is_one_page_with_the_results(run: Run, out: Path, folder: Path) -> None:
    result = run("bench", "report", "mine.toml", "--folder", "out", "-o", "page.html")
    assert result.exit_code == 0, result.output
    assert re.fullmatch(r"Wrote page\.html \(\d+ kB\)\.\n", result.stdout)
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert "Mine &amp; &lt;b&gt;theirs&lt;/b&gt;" in page
    assert "configurations are absent: enron-3" in page
    for value in means(out, "one_error").values():
        assert re.search(rf"<b(?: class=\"\w+\")?>{value:.3f}</b>", page)
    # The same again, to the byte, over an earlier report but not over anything else.
    assert run("bench", "report", "mine.toml", "--folder", "out", "-o", "page.html").exit_code == 0
    assert (folder / "page.html").read_text(encoding="utf-8") == page


def test_what_is_no_report_is_not_replaced(
    run: Run, refused: Callable[..., str], out: Path, folder: Path
) -> None:
    (folder / "notes.html").write_text("mine")
    message = refused("bench", "report", "mine.toml", "--folder", "out", "-o", "notes.html")
    assert "notes.html exists already; --force replaces it" in message
    assert (
        run("bench", "report", "mine.toml", "--folder", "out", "-o", "notes.html", "--force").exit_code == 0
    )
    assert "<!doctype html>" in (folder / "notes.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["report", "export"])
def test_without_results_there_is_advice_and_no_file(
    refused: Callable[..., str], out: Path, command: str
) -> None:
    message = refused("bench", command, "mine.toml", "--folder", "empty")
    assert "there is no result in empty; 'skpml bench run mine.toml --folder empty' does the runs" in message
    message = refused("bench", command, "ablation", "--folder", "out", "-o", "page")
    assert "only results of other suites" in message
    assert "there is no suite 'quck'" in refused("bench", command, "quck", "--folder", "out")


def test_files_that_cannot_be_read_are_said_and_left_out(run: Run, out: Path, folder: Path) -> None:
    paths = sorted((out / "runs").glob("*.json"))
    paths[0].write_text(paths[0].read_text()[:100])
    result = run("bench", "report", "mine.toml", "--folder", "out")
    assert result.exit_code == 0
    assert "ignored 1 files that cannot be read" in result.stderr
    assert "1 runs have not been done yet" in (folder / "report.html").read_text(encoding="utf-8")


def test_export_writes_every_table_in_every_format(run: Run, out: Path, folder: Path) -> None:
    result = run("bench", "export", "mine.toml", "--folder", "out", "-o", "tables")
    assert result.exit_code == 0, result.output
    assert result.stdout == "Wrote 9 tables to tables.\n"
    names = {
        f"{name}.{end}"
        for name in ("average_precision", "one_error", "ranks")
        for end in ("csv", "tex", "md")
    }
    written = {path.name: path.read_bytes() for path in (folder / "tables").iterdir()}
    assert set(written) == names
    rows = list(csv.DictReader(written["average_precision.csv"].decode().splitlines()))
    expected = means(out, "average_precision")
    for row in rows[:3]:
        name = row["configuration"]
        assert float(row["pml_ni mean"]) == expected["pml-ni{}candidates", name]
        assert float(row["ceiling mean"]) == expected["ridge{}truth", name]
        assert float(row["heavy 100% mean"]) == expected["linear-ridge{'gamma': 1000.0}candidates", name]
    assert rows[3]["pml_ni mean"] == ""
    assert rb"pml\_ni & linear-ridge & heavy 100\% & floor & ceiling" in written["one_error.tex"]
    assert "N = 3" in written["ranks.md"].decode()


@pytest.mark.slow
def test_export_gives_the_same_bytes_in_another_process(run: Run, out: Path, folder: Path) -> None:
    assert run("bench", "export", "mine.toml", "--folder", "out", "-o", "one").exit_code == 0
    for path in (out / "runs").iterdir():
        os.utime(path, (1, 1))
    command = [
        sys.executable,
        "-c",
        "from skpml.cli import main; main()",
        "bench",
        "export",
        "mine.toml",
        "--folder",
        "out",
        "-o",
        "two",
    ]
    subprocess.run(command, check=True, env=os.environ | {"PYTHONHASHSEED": "77"}, timeout=120, cwd=folder)
    one, two = ({p.name: p.read_bytes() for p in (folder / name).iterdir()} for name in ("one", "two"))
    assert one == two


@pytest.mark.slow
def test_export_replaces_only_when_told(
    run: Run, refused: Callable[..., str], out: Path, folder: Path
) -> None:
    assert run("bench", "export", "mine.toml", "--folder", "out", "--format", "csv").exit_code == 0
    assert len(list((folder / "tables").iterdir())) == 3
    assert "--force replaces it" in refused("bench", "export", "mine.toml", "--folder", "out")
    assert len(list((folder / "tables").iterdir())) == 3
    assert run("bench", "export", "mine.toml", "--folder", "out", "--force").exit_code == 0
    assert len(list((folder / "tables").iterdir())) == 9
    assert "there is no folder" in refused("bench", "export", "mine.toml", "--folder", "out", "-o", "a/b")


@pytest.mark.slow
def test_packed_runs_serve_as_a_folder_of_results(
    run: Run, refused: Callable[..., str], out: Path, folder: Path
) -> None:
    result = run("bench", "export", "mine.toml", "--folder", "out", "-o", "kept", "--with-runs")
    assert result.exit_code == 0, result.output
    assert result.stdout == "Wrote 9 tables and 30 records to kept.\n"
    shutil.rmtree(out)
    assert (
        run("bench", "export", "mine.toml", "--folder", "kept", "-o", "again", "--with-runs").exit_code == 0
    )
    kept, again = ({p.name: p.read_bytes() for p in (folder / name).iterdir()} for name in ("kept", "again"))
    assert kept == again
    assert run("bench", "report", "mine.toml", "--folder", "kept").exit_code == 0
    assert "30 of 30 runs are done" in run("bench", "status", "mine.toml", "--folder", "kept").stdout
    # One run is taken out: only it is done, and goes on from the pack.
    lines = gzip.decompress(kept["runs.jsonl.gz"]).splitlines(keepends=True)
    (folder / "kept" / "runs.jsonl.gz").write_bytes(gzip.compress(b"".join(lines[:7] + lines[8:])))
    result = run("bench", "run", "mine.toml", "--folder", "kept", "--no-report")
    assert result.exit_code == 0, result.output
    key = json.loads(lines[7])["key"]
    assert [path.name for path in (folder / "kept" / "runs").iterdir()] == [f"{key}.json"]
    assert run("bench", "export", "mine.toml", "--folder", "kept", "-o", "whole").exit_code == 0
    for path in (folder / "whole").iterdir():
        assert path.read_bytes() == kept[path.name]
    (folder / "kept" / "runs.jsonl.gz").write_bytes(kept["runs.jsonl.gz"][:-20])
    message = refused("bench", "export", "mine.toml", "--folder", "kept", "-o", "none")
    assert "runs.jsonl.gz is damaged" in message


@pytest.mark.slow
def test_stored_runs_are_never_replaced_by_a_part(
    run: Run, refused: Callable[..., str], out: Path, folder: Path
) -> None:
    export = ("bench", "export", "mine.toml", "-o", "kept", "--with-runs", "--force", "--folder")
    assert run(*export, "out").exit_code == 0
    kept = {path.name: path.read_bytes() for path in (folder / "kept").iterdir()}
    lost, *_ = sorted((out / "runs").iterdir())
    lost.unlink()
    message = refused(*export, "out")
    assert "1 finished runs" in message
    assert "bench merge out kept" in message
    assert {path.name: path.read_bytes() for path in (folder / "kept").iterdir()} == kept
    # Merged, nothing is missing; tables without runs can be made of any part.
    assert run("bench", "merge", "out", "kept", "-o", "both").exit_code == 0
    assert run(*export, "both").exit_code == 0
    assert (folder / "kept" / "runs.jsonl.gz").read_bytes() == kept["runs.jsonl.gz"]
    assert run("bench", "export", "mine.toml", "--folder", "out", "-o", "kept", "--force").exit_code == 0


def test_two_methods_are_compared(run: Run, refused: Callable[..., str], out: Path) -> None:
    result = run("bench", "compare", "mine.toml", "ceiling", "heavy 100%", "--folder", "out", "--json")
    assert result.exit_code == 0, result.output
    precision, one_error = json.loads(result.stdout)
    expected = means(out, "average_precision")
    for name, pair in precision["values"].items():
        assert {side: found["mean"] for side, found in pair.items()} == {
            "one": expected["ridge{}truth", name],
            "other": expected["linear-ridge{'gamma': 1000.0}candidates", name],
        }
        # One seed.
        assert pair["one"]["fold_std"] > 0
        assert pair["one"]["seed_std"] is None
    gains = [pair["one"]["mean"] - pair["other"]["mean"] for pair in precision["values"].values()]
    assert precision["wins"] == sum(gain > 0 for gain in gains) == precision["n"] == 3
    assert one_error["greater_is_better"] is False
    assert one_error["wins"] == sum(
        pair["one"]["mean"] < pair["other"]["mean"] for pair in one_error["values"].values()
    )
    assert precision["left_out"] == {"enron-3": "absent"}
    shown = run("bench", "compare", "mine.toml", "ceiling", "heavy 100%", "--folder", "out").stdout
    assert "Average precision ↑" in shown
    assert f"{gains[0]:.4f}" in shown
    assert "Left out: enron-3 (absent)" in shown
    assert "no method 'pml-ma'" in refused(
        "bench", "compare", "mine.toml", "pml-ma", "floor", "--folder", "out"
    )
    assert "itself" in refused("bench", "compare", "mine.toml", "floor", "floor", "--folder", "out")
    assert "unknown metric 'f2'" in refused(
        "bench", "compare", "mine.toml", "floor", "ceiling", "--folder", "out", "--metric", "f2"
    )


def test_help_shows_an_example(run: Run) -> None:
    for command in ("report", "compare", "export"):
        text = run("bench", command, "--help").stdout
        assert f"skpml bench {command} paper" in text


def test_methods_can_be_left_out_and_folders_merged(
    run: Run, refused: Callable[..., str], out: Path, folder: Path
) -> None:
    result = run("bench", "merge", "out", "out", "-o", "all")
    assert result.exit_code == 0, result.output
    assert len(Store(folder / "all").keys()) == len(Store(out).keys())
    options = ("--leave-out", "ceiling", "--folder", "all")
    assert run("bench", "report", "mine.toml", *options, "-o", "a.html").exit_code == 0
    assert "Left out by request: ceiling." in (folder / "a.html").read_text()
    assert run("bench", "export", "mine.toml", *options, "--with-runs").exit_code == 0
    assert "ceiling mean" not in (folder / "tables" / "average_precision.csv").read_text()
    # The runs are complete: leaving out is a matter of the tables.
    assert (folder / "tables" / "runs.jsonl.gz").read_bytes() == (
        folder / "all" / "runs.jsonl.gz"
    ).read_bytes()
    assert "'nothing'" in refused("bench", "report", "mine.toml", "--leave-out", "nothing", "--folder", "out")
    assert "all" in refused("bench", "merge", "out", "-o", "all")
