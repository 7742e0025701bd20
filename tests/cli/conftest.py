"""What the tests of the command share: a way to run it, and a small file of tagged rows."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

from click.testing import CliRunner, Result

from skpml.cli._app import app

Run = Callable[..., Result]
LABELS = ("beach", "forest", "sea", "sky")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with no data sets but the embedded ones."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("SKPML_DATA", str(tmp_path / "no-data"))
    return work


@pytest.fixture
def run(folder: Path) -> Run:
    """Run the command in the folder."""

    def call(*arguments: Any) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return call


@pytest.fixture
def refused(run: Run, folder: Path) -> Callable[..., str]:
    """Run the command, see it refuse in one sentence with exit code 2, and see that no file came or went."""

    def call(*arguments: Any) -> str:
        before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        result = run(*arguments)
        assert result.exit_code == 2, result.output
        assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
        assert result.stdout == ""
        *warnings, message = result.stderr.strip().splitlines()
        assert message.startswith("error: ")
        assert all(line.startswith("warning: ") for line in warnings)
        assert len(set(warnings)) == len(warnings)
        return message

    return call


def rows_with_tags(n_rows: int = 40, seed: int = 0) -> tuple[np.ndarray, list[str], list[str]]:
    """Features, candidate tags and true tags of rows whose features tell their labels."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n_rows, len(LABELS))) < 0.4
    truth[np.arange(n_rows), rng.integers(len(LABELS), size=n_rows)] = True
    candidates = truth | (rng.random(truth.shape) < 0.2)
    features = truth @ rng.normal(size=(len(LABELS), 3)) + 0.1 * rng.normal(size=(n_rows, 3))
    joined = [
        [";".join(LABELS[column] for column in np.flatnonzero(row)) for row in matrix]
        for matrix in (candidates, truth)
    ]
    return features, joined[0], joined[1]


def write_rows(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return path


@pytest.fixture
def photos(folder: Path) -> Path:
    """``photos.csv``: three features, a column of candidate tags, one of true tags, one of file names."""
    features, tags, truth = rows_with_tags()
    rows = [
        [f"{index}.jpg", *map(repr, values.tolist()), tag, true]
        for index, (values, tag, true) in enumerate(zip(features, tags, truth, strict=True))
    ]
    return write_rows(folder / "photos.csv", ["file", "red", "green", "blue", "tags", "checked"], rows)


PHOTO_OPTIONS = ("--tags", "tags", "--ignore", "file", "--ignore", "checked")


@pytest.fixture
def model(run: Run, photos: Path, folder: Path) -> Path:
    """A model fitted to the photos."""
    result = run("fit", photos, *PHOTO_OPTIONS, "--method", "pml-ma", "-o", "photos.skpml")
    assert result.exit_code == 0, result.output
    return folder / "photos.skpml"
