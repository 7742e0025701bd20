"""What was read: labels, spellings, rows without tags, repeated rows and columns, before any work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from skpml.tables import Columns, profile_table, read_table

from .conftest import Run, write_rows

Refused = Callable[..., str]


@pytest.fixture
def photos(folder: Path) -> Path:
    """Twelve rows: a spelling, a row without tags, a row that repeats another one, and a name for each."""
    tags = ["sea;sky"] * 3 + ["Sea"] + [""] + ["sky"] * 7
    rows = [[f"p{i}", min(i, 10), f"text {i}", cell] for i, cell in enumerate(tags)]
    return write_rows(folder / "photos.csv", ["file", "size", "note", "tags"], rows)


def test_the_numbers_of_a_table(photos: Path) -> None:
    table = read_table(photos, columns=Columns(id="file", ignore=["note"]))
    found = profile_table(table)
    assert (found.n_rows, found.n_tags, found.n_untagged, found.n_repeated) == (12, 14, 1, 1)
    assert list(found.label_counts.items()) == [("sky", 10), ("sea", 3), ("Sea", 1)]
    assert found.tags_per_row == {0: 1, 1: 8, 2: 3}
    assert found.twins == (("Sea", "sea"),)
    assert found.rare_labels(10) == ["sea", "Sea"]
    assert found.columns == {"tags": ("tags",), "numbers": ("size",), "id": ("file",), "ignored": ("note",)}


def test_repeated_rows_of_texts_and_of_sparse_matrices(photos: Path, folder: Path) -> None:
    assert profile_table(read_table(photos, columns=Columns(text="note"))).n_repeated == 0
    sp.save_npz(folder / "x.npz", sp.csr_array(np.minimum(np.arange(12), 10).reshape(-1, 1) * [[1.0, 0]]))
    table = read_table(photos, columns=Columns(id="file"), embeddings=folder / "x.npz")
    assert profile_table(table).n_repeated == 1


def test_the_command_shows_what_a_file_holds(run: Run, photos: Path) -> None:
    result = run("data", "profile", photos, "--id", "file", "--ignore", "note")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["sky", "10", "83%", "█" * 30] in lines
    assert ["as", "numbers", "size"] in lines
    for option in ("--merge-case", "--skip-untagged"):
        assert option in result.stdout


def test_features_that_cannot_be_read_do_not_hide_the_labels(run: Run, photos: Path) -> None:
    photos.write_text(photos.read_text().replace("p3,3", "p3,three"))
    result = run("data", "profile", photos)
    assert result.exit_code == 0, result.output
    for part in ("column 'size' holds 'three'", "--category 'size'", "--ignore 'size'", "sky"):
        assert part in result.stdout


def test_a_forgotten_role_is_proposed(run: Run, refused: Refused, photos: Path) -> None:
    result = run("data", "profile", photos)
    line = next(line for line in result.stdout.splitlines() if line.startswith("Not used: "))
    for part in ("'file'", "'note'", "--text", "--id"):
        assert part in line
    message = refused("clean", photos, "-o", "out.csv", "--ignore", "size")
    for part in ("'file'", "'note'", "--text"):
        assert part in message


def test_the_work_begins_with_the_labels(run: Run, photos: Path) -> None:
    options = ("--id", "file", "--ignore", "note", "--method", "ridge", "--folds", 2, "-o", "out.csv")
    plain, merged = run("clean", photos, *options), run("clean", photos, *options, "--merge-case", "--force")
    assert "Labels by number of rows: sky 10, sea 3, Sea 1." in plain.stdout
    assert "Sea / sea; --merge-case" in plain.stdout
    assert "Labels by number of rows: sky 10, sea 4." in merged.stdout
    assert "--merge-case" not in merged.stdout
