"""Outputs: checked before the work begins; what is read is never written, whatever is forced."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import pytest

from skpml.cli._console import check_outputs

from .conftest import PHOTO_OPTIONS

Refused = Callable[..., str]
READ = "is read by this command"


@pytest.mark.parametrize("option", ["-o", "--audit", "--report", "--model", "--label-studio"])
def test_cleaning_never_replaces_its_data(refused: Refused, photos: Path, option: str) -> None:
    outputs = ("-o", "cleaned.csv", option, photos) if option != "-o" else ("-o", photos)
    assert f"{photos} {READ}" in refused("clean", photos, *PHOTO_OPTIONS, *outputs, "--force")


def test_cleaning_never_replaces_its_embeddings(refused: Refused, photos: Path, folder: Path) -> None:
    np.save(folder / "photos.npy", np.ones((40, 2)))
    message = refused(
        "clean", photos, "--embeddings", "photos.npy", "-o", "c.csv", "--model", "./photos.npy", "--force"
    )
    assert f"photos.npy {READ}" in message


@pytest.mark.parametrize("target", ["photos.csv", "decisions.csv", "settings.json"])
def test_applying_never_replaces_what_it_reads(
    refused: Refused, photos: Path, folder: Path, target: str
) -> None:
    (folder / "decisions.csv").write_text("id,row,label,decision\n")
    content = {"sha256": "", "cleaned_sha256": "", "reading": {}, "audit": {}}
    (folder / "settings.json").write_text(json.dumps(content))
    message = refused(
        "clean", "apply", photos, "decisions.csv", "--settings", "settings.json", "-o", target, "--force"
    )
    assert f"{target} {READ}" in message


def test_predicting_never_replaces_what_it_reads(refused: Refused, photos: Path, model: Path) -> None:
    for target in (photos, model):
        assert READ in refused("predict", model, photos, "-o", target, "--force")


def test_fitting_never_replaces_its_data(refused: Refused, photos: Path) -> None:
    assert READ in refused("fit", photos, *PHOTO_OPTIONS, "-o", photos, "--force")
    assert READ in refused("fit", photos, *PHOTO_OPTIONS, "-o", "m.skpml", "--confidences", photos, "--force")
    assert READ in refused("data", "import", photos, *PHOTO_OPTIONS, "-o", photos, "--force")


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_file_is_known_by_any_name(refused: Refused, photos: Path, folder: Path, link: Callable) -> None:
    link(photos, folder / "same.csv")
    assert READ in refused("clean", photos, *PHOTO_OPTIONS, "-o", "same.csv", "--force")


def test_a_file_named_as_two_outputs(folder: Path) -> None:
    with pytest.raises(click.UsageError, match=r"^b\.csv is named as two outputs"):
        check_outputs(Path("a.csv"), folder / "b.csv", Path("b.csv"), Path("c.csv"), force=False)


def test_files_beside_an_output_are_replaced_by_force(refused: Refused, run: Callable, folder: Path) -> None:
    (folder / "digits.xml").write_text("kept")
    message = refused("data", "import", "digits", "-o", "digits.arff")
    assert "digits.xml exists already; --force replaces it" in message
    assert "overwrite" not in message
    assert run("data", "import", "digits", "-o", "digits.arff", "--force").exit_code == 0


def test_cleaned_files_appear_all_or_none(
    run: Callable, photos: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("skpml.cli._clean._format_settings", full)
    before = sorted(folder.iterdir())
    options = ("--id", "file", "--ignore", "checked", "-o", "c.csv", "--audit", "a.csv")
    assert run("clean", photos, *options).exit_code == 2
    assert sorted(folder.iterdir()) == before
