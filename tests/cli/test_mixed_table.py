"""A table of numbers, categories and texts with missing values: cleaned, fitted, predicted and shown by the command."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from skpml.io import load_model, read_model_info

from .conftest import LABELS, Run, rows_with_tags, write_rows

Refused = Callable[..., str]
HEADER = ["file", "red", "green", "season", "caption", "tags", "checked"]
OPTIONS = ("--text", "caption", "--ignore", "checked")


def make_rows(n_rows: int, seed: int) -> list[list[str]]:
    features, tags, truth = rows_with_tags(n_rows, seed)
    rows = []
    for row, (values, tag, true) in enumerate(zip(features, tags, truth, strict=True)):
        red, green = (f"{value:.4f}" for value in values[:2])
        season = "" if row % 9 == 0 else "warm" if "beach" in true else "cold"
        caption = " ".join(f"{label}word" for label in true.split(";"))
        rows.append([f"{row}.jpg", "" if row % 4 == 0 else red, green, season, caption, tag, true])
    return rows


@pytest.fixture
def photos(folder: Path) -> Path:
    return write_rows(folder / "photos.csv", HEADER, make_rows(60, 0))


@pytest.fixture
def new(folder: Path) -> Path:
    rows = make_rows(12, 1)
    rows[5][HEADER.index("season")] = "monsoon"
    return write_rows(folder / "new.csv", HEADER, rows)


def test_cleaned_and_predicted(run: Run, photos: Path, new: Path, folder: Path) -> None:
    result = run("clean", photos, *OPTIONS, "--method", "ridge", "-o", "out.csv", "--model", "m.skpml")
    assert result.exit_code == 0, result.output
    used, unused, *notes = result.stdout.splitlines()
    for name in ("red", "green", "season", "caption"):
        assert name in used
    assert "'file'" in unused
    assert any("'red': 15 of 60 missing" in note for note in notes)
    assert any("'season': 7 of 60 missing" in note for note in notes)
    info = read_model_info(folder / "m.skpml")
    assert info.feature_types == ("number", "number", "category", "text")
    result = run("predict", "m.skpml", new, "--id", "file", "-o", "p.csv")
    assert result.exit_code == 0, result.output
    assert "'monsoon'" in result.stdout
    assert "'red': 3 of 12 missing" in result.stdout
    cells = list(csv.DictReader((folder / "p.csv").read_text().splitlines()))
    rows = list(csv.DictReader(new.read_text().splitlines()))
    X = np.array(
        [[float(r["red"] or "nan"), float(r["green"]), r["season"], r["caption"]] for r in rows], dtype=object
    )
    expected = load_model(folder / "m.skpml").predict_proba(X)
    found = [[float(line[f"probability:{label}"]) for label in LABELS] for line in cells]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    measured = run("evaluate", "m.skpml", new, "--true-tags", "checked", "--json")
    assert measured.exit_code == 0, measured.output


def test_rows_that_do_not_fit_the_model(run: Run, refused: Refused, photos: Path, new: Path) -> None:
    assert run("fit", photos, *OPTIONS, "--method", "ridge", "-o", "m.skpml").exit_code == 0
    rows = list(csv.reader(new.read_text().splitlines()))
    write_rows(new, rows[0][2:], [row[2:] for row in rows[1:]])
    assert "lacks 1 of the 3 columns" in refused("predict", "m.skpml", new, "-o", "p.csv")
    rows[3][1] = "much"
    write_rows(new, rows[0], rows[1:])
    assert "new.csv, line 4: column 'red' holds 'much'" in refused("predict", "m.skpml", new, "-o", "p.csv")
    assert "not a table" in refused("predict", "m.skpml", "digits", "-o", "p.csv")


def test_a_model_of_complete_numbers_needs_complete_rows(run: Run, refused: Refused, photos: Path) -> None:
    assert run("fit", photos, "--feature", "green", "--method", "ridge", "-o", "m.skpml").exit_code == 0
    photos.write_text('green\n1\n""\n')
    assert "photos.csv, line 3: column 'green'" in refused("predict", "m.skpml", photos, "-o", "p.csv")


@pytest.mark.parametrize("method", ["candidate-likelihood", "ridge"])
def test_kinds_of_columns_are_views_of_methods_that_take_them(
    run: Run, photos: Path, folder: Path, method: str
) -> None:
    result = run("fit", photos, *OPTIONS, "--method", method, "-o", "m.skpml")
    assert result.exit_code == 0, result.output
    assert "season" in result.stdout.splitlines()[0]
    views = load_model(folder / "m.skpml").steps[-1][1].get_params().get("views")
    assert (None if views is None else list(views)) == (
        ["numbers", "categories", "text"] if method == "candidate-likelihood" else None
    )


def test_the_audit_weights_the_kinds_of_columns(
    run: Run, photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {}

    def stop(X: np.ndarray, **options: object) -> None:
        given.update(options)
        raise KeyboardInterrupt

    monkeypatch.setattr("skpml.cleaning.audit", stop)
    run("clean", photos, *OPTIONS, "-o", "out.csv")
    assert list(given["views"]) == ["numbers", "categories", "text"]
    run("clean", photos, "--feature", "green", "-o", "out.csv")
    assert given["views"] is None


@pytest.mark.parametrize(
    ("options", "family"),
    [
        (OPTIONS, "logistic"),
        ((*OPTIONS, "--ignore", "red", "--ignore", "green", "--ignore", "season"), "logistic"),
        (("--feature", "green"), None),
        (("--feature", "green", "--feature", "season"), None),
        ((*OPTIONS, "--fast"), None),
        ((*OPTIONS, "--method", "ridge"), None),
    ],
)
def test_texts_are_audited_by_logistic_regression(
    run: Run, photos: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], family: str | None
) -> None:
    given = []

    def stop(X: np.ndarray, **options: object) -> None:
        given.append(options.get("family"))
        raise KeyboardInterrupt

    monkeypatch.setattr("skpml.cleaning.audit", stop)
    run("clean", photos, *options, "-o", "out.csv")
    assert given == [family]


def test_the_profile_shows_kinds_and_gaps(run: Run, photos: Path) -> None:
    result = run("data", "profile", photos, *OPTIONS)
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["as", "numbers", "red,", "green"] in lines
    assert ["as", "categories", "season"] in lines
    assert ["not", "used", "file"] in lines
    assert ["red", "15", "25%", "█" * 30] in lines


def test_a_folder_of_pictures(run: Run, refused: Refused, folder: Path) -> None:
    pictures = pytest.importorskip("PIL.Image", reason="needs scikit-pml[images]")
    (folder / "photos").mkdir()
    _, tags, truth = rows_with_tags(40)
    for row, true in enumerate(truth):
        pixels = np.full((16, 16, 3), 10 * row % 60, dtype=np.uint8)
        for label in true.split(";"):
            place = 4 * LABELS.index(label)
            pixels[place : place + 4] = 250
        pictures.fromarray(pixels).save(folder / "photos" / f"{row}.png")
    rows = [[f"photos/{row}.png", tag, true] for row, (tag, true) in enumerate(zip(tags, truth, strict=True))]
    write_rows(folder / "photos.csv", ["file", "tags", "checked"], rows)
    options = ("--image", "file", "--ignore", "checked", "--method", "ridge")
    result = run("clean", "photos.csv", *options, "-o", "out.csv", "--model", "m.skpml")
    assert result.exit_code == 0, result.output
    assert "--image-model" in result.stdout.splitlines()[0]
    assert read_model_info(folder / "m.skpml").feature_types == ("image",)
    measured = run("evaluate", "m.skpml", "photos.csv", "--true-tags", "checked", "--json")
    assert json.loads(measured.stdout)["metrics"]["average_precision"] > 0.9
    (folder / "photos" / "7.png").write_text("no picture")
    for command in (
        ("clean", "photos.csv", *options, "-o", "b.csv"),
        ("predict", "m.skpml", "photos.csv", "-o", "b.csv"),
    ):
        message = refused(*command)
        assert "1 of 40 images" in message
        assert "7.png" in message
    assert "--image-model needs" in refused("clean", "photos.csv", "--image-model", "a.onnx", "-o", "b.csv")
