"""The way through: look at data, fit, predict, evaluate, convert."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skpml import PMLMA, CandidateLikelihood, __version__
from skpml.datasets import load_dataset, read_dataset
from skpml.io import load_model, read_model_info
from skpml.metrics import evaluate
from skpml.reference import CandidateRidge

from .conftest import LABELS, PHOTO_OPTIONS, Run, rows_with_tags, write_rows


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_version_and_help(run: Run) -> None:
    assert run("--version").stdout == f"scikit-pml {__version__}\n"
    for command in ((), ("data",), ("data", "info"), ("fit",), ("predict",), ("evaluate",)):
        result = run(*command, "--help")
        assert result.exit_code == 0
        assert "Usage: " in result.stdout
        assert "Example" in result.stdout


def test_fit_writes_the_model_the_library_would_make(run: Run, photos: Path, model: Path) -> None:
    data = read_dataset(photos, tags="tags", ignore=["file", "checked"])
    X = pd.DataFrame(data.X, columns=data.feature_names, copy=False)
    expected = PMLMA(random_state=0).fit(X, data.candidates)
    loaded = load_model(model)
    np.testing.assert_array_equal(loaded.coef_, expected.coef_)
    assert loaded.classes_.tolist() == list(LABELS)
    assert loaded.feature_names_in_.tolist() == ["red", "green", "blue"]
    assert loaded.callback is None
    assert read_model_info(model).label_names == LABELS


@pytest.mark.slow
def test_fit_says_what_it_did(run: Run, photos: Path) -> None:
    result = run("fit", photos, *PHOTO_OPTIONS, "-o", "a.skpml", "--confidences", "doubts.csv")
    assert result.exit_code == 0, result.output
    assert "Fitted Candidate likelihood to 40 rows, 3 features, 4 labels: " in result.stdout
    assert "Wrote a.skpml." in result.stdout
    assert "Wrote doubts.csv." in result.stdout
    assert result.stderr == ""


@pytest.mark.slow
def test_confidences_stand_where_candidates_are(run: Run, photos: Path, folder: Path) -> None:
    run("fit", photos, *PHOTO_OPTIONS, "-o", "a.skpml", "--confidences", "doubts.csv")
    confidences = load_model(folder / "a.skpml").confidences_
    written = rows_of(folder / "doubts.csv")
    tags = {(row, tag) for row, photo in enumerate(rows_of(photos)) for tag in photo["tags"].split(";")}
    assert len(written) == len(tags)
    assert {(int(line["row"]), line["label"]) for line in written} == tags
    values = [float(line["confidence"]) for line in written]
    assert values == sorted(values)
    for line, value in zip(written, values, strict=True):
        assert value == pytest.approx(confidences[int(line["row"]), LABELS.index(line["label"])], abs=1e-5)


@pytest.mark.parametrize(
    ("source", "name"), [(("digits", "--candidates", 4), "digits-4"), (("digits-4-label",), "digits-4-label")]
)
def test_a_data_set_is_taken_by_name(run: Run, folder: Path, source: tuple, name: str) -> None:
    result = run("fit", *source, "--noise-seed", 3, "--method", "ridge", "-o", "a.skpml")
    assert result.exit_code == 0, result.output
    data = load_dataset(name, random_state=3)
    X = pd.DataFrame(data.X, columns=data.feature_names, copy=False)
    expected = CandidateRidge(random_state=0).fit(X, data.candidates)
    np.testing.assert_array_equal(load_model(folder / "a.skpml").coef_, expected.coef_)


def test_predict_needs_no_labels_and_no_order(run: Run, photos: Path, model: Path, folder: Path) -> None:
    lines = rows_of(photos)
    new = write_rows(
        folder / "new.csv",
        ["note", "blue", "red", "green"],
        [["x", line["blue"], line["red"], line["green"]] for line in lines],
    )
    result = run("predict", model, new, "-o", "tags.csv")
    assert result.exit_code == 0, result.output
    assert result.stdout == "Wrote tags.csv: 40 rows.\n"
    fitted = load_model(model)
    X = read_dataset(photos, tags="tags", ignore=["file", "checked"]).X
    fitted.__dict__.pop("feature_names_in_")
    decisions, probabilities = fitted.predict(X), fitted.predict_proba(X)
    for row, line in enumerate(rows_of(folder / "tags.csv")):
        assert line["row"] == str(row)
        assert line["predicted"] == ";".join(LABELS[column] for column in np.flatnonzero(decisions[row]))
        for column, label in enumerate(LABELS):
            assert float(line[f"probability:{label}"]) == pytest.approx(probabilities[row, column], rel=1e-5)


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".mat", ".arff"])
def test_predict_reads_every_format(run: Run, photos: Path, model: Path, folder: Path, suffix: str) -> None:
    run("predict", model, photos, "-o", "expected.csv")
    converted = run("data", "import", photos, *PHOTO_OPTIONS, "-o", f"photos{suffix}")
    assert converted.exit_code == 0, converted.output
    result = run("predict", model, f"photos{suffix}", "-o", "found.csv")
    assert result.exit_code == 0, result.output
    assert (folder / "found.csv").read_text() == (folder / "expected.csv").read_text()


def test_evaluate_measures_what_the_library_measures(run: Run, photos: Path, model: Path) -> None:
    options = ("--true-tags", "checked", "--ignore", "file", "--tags", "tags")
    data = read_dataset(photos, tags="tags", true_tags="checked", ignore=["file"])
    fitted = load_model(model)
    fitted.__dict__.pop("feature_names_in_")
    for convention in ("pml", "sklearn"):
        expected = evaluate(
            data.truth, fitted.decision_function(data.X), fitted.predict(data.X), convention=convention
        )
        result = run("evaluate", model, photos, *options, "--convention", convention, "--json")
        assert result.exit_code == 0, result.output
        found = json.loads(result.stdout)
        assert found["metrics"] == pytest.approx(expected)
        assert (found["convention"], found["rows"], found["model"]) == (convention, 40, "pml-ma")
        table = run("evaluate", model, photos, *options, "--convention", convention)
        assert f"pml-ma on 40 rows of {photos} ({convention} convention)" in table.stdout
        assert f"{expected['average_precision']:.4f}" in table.stdout


def test_evaluate_matches_labels_and_features_by_name(
    run: Run, photos: Path, model: Path, folder: Path
) -> None:
    lines = [line for line in rows_of(photos) if "beach" not in line["checked"]]
    some = write_rows(
        folder / "some.csv",
        ["blue", "extra", "red", "checked", "green"],
        [[line["blue"], 7, line["red"], line["checked"], line["green"]] for line in lines],
    )
    result = run("evaluate", model, some, "--true-tags", "checked", "--json")
    assert result.exit_code == 0, result.output
    fitted = load_model(model)
    fitted.__dict__.pop("feature_names_in_")
    X = np.array([[float(line[name]) for name in ("red", "green", "blue")] for line in lines])
    truth = np.array([[label in line["checked"].split(";") for label in LABELS] for line in lines]).astype(
        int
    )
    assert truth[:, 0].sum() == 0
    expected = evaluate(truth, fitted.decision_function(X), fitted.predict(X))
    assert json.loads(result.stdout)["metrics"]["hamming_loss"] == pytest.approx(expected["hamming_loss"])


@pytest.mark.slow
def test_labels_in_columns_of_their_own(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [[*rng.normal(size=2), *label] for label in ([1, 0], [1, 1], [0, 1]) * 4]
    write_rows(folder / "flags.csv", ["x", "y", "cat", "dog"], rows)
    result = run("fit", "flags.csv", "--label", "cat", "--label", "dog", "-o", "a.skpml")
    assert result.exit_code == 0, result.output
    assert load_model(folder / "a.skpml").classes_.tolist() == ["cat", "dog"]


def test_data_list_and_info(run: Run, photos: Path) -> None:
    listing = run("data", "list")
    assert listing.exit_code == 0
    assert "digits" in listing.stdout
    assert "emotions" in listing.stdout
    info = run("data", "info", "digits", "--candidates", 5).stdout
    assert "1,797" in info
    assert "candidates per row        5.0" in info
    assert "false candidates" in info
    unknown = run("data", "info", photos, *PHOTO_OPTIONS).stdout
    assert "4: beach, forest, sea, sky" in unknown
    assert "unknown" in unknown


def test_import_converts_and_back(run: Run, photos: Path, folder: Path) -> None:
    read = ("--tags", "tags", "--true-tags", "checked", "--ignore", "file")
    assert run("data", "import", photos, *read, "-o", "a.npz").exit_code == 0
    result = run("data", "import", "a.npz", "-o", "b.csv", "--style", "tags")
    assert result.stdout == "Wrote b.csv: 40 rows, 4 labels.\n"
    first, second = read_dataset(folder / "a.npz"), read_dataset(folder / "b.csv")
    np.testing.assert_array_equal(first.X, second.X)
    np.testing.assert_array_equal(first.candidates, second.candidates)
    np.testing.assert_array_equal(first.truth, second.truth)


@pytest.mark.slow
def test_empty_rows_pass_with_a_warning_when_allowed(run: Run, photos: Path, folder: Path) -> None:
    lines = photos.read_text().splitlines()
    fields = lines[5].split(",")
    fields[4] = ""
    lines[5] = ",".join(fields)
    photos.write_text("\n".join(lines))
    result = run("fit", photos, *PHOTO_OPTIONS, "-o", "a.skpml", "--allow-empty")
    assert result.exit_code == 0, result.output
    assert result.stderr.startswith("warning: 1 of 40 rows have no candidate label (first: row 4)")
    assert result.stderr.count("\n") == 1
    assert (folder / "a.skpml").exists()


@pytest.mark.slow
def test_force_replaces(run: Run, photos: Path, folder: Path) -> None:
    (folder / "a.skpml").write_text("old")
    result = run("fit", photos, *PHOTO_OPTIONS, "-o", "a.skpml", "--force")
    assert result.exit_code == 0, result.output
    assert isinstance(load_model(folder / "a.skpml"), CandidateLikelihood)


@pytest.mark.parametrize("kind", ["text", "embeddings"])
def test_models_of_texts_and_embeddings(run: Run, folder: Path, kind: str) -> None:
    features, tags, truth = rows_with_tags(60)
    words = [" ".join(f"{tag}word" for tag in row.split(";")) for row in truth]
    write_rows(
        folder / "news.csv", ["headline", "tags", "checked"], list(zip(words, tags, truth, strict=True))
    )
    np.save(folder / "news.npy", features)
    given = (
        ("--text", "headline", "--feature", "headline") if kind == "text" else ("--embeddings", "news.npy")
    )
    fitted = run("fit", "news.csv", *given, "--method", "ridge", "-o", "m.skpml")
    assert fitted.exit_code == 0, fitted.output
    assert read_model_info(folder / "m.skpml").feature_kind == kind
    new = "news.csv" if kind == "text" else "news.npy"
    assert run("predict", "m.skpml", new, "-o", "p.csv").exit_code == 0
    model = load_model(folder / "m.skpml")
    X = np.array([[text] for text in words], dtype=object) if kind == "text" else features
    expected = model.predict_proba(X)
    found = [[float(line[f"probability:{label}"]) for label in LABELS] for line in rows_of(folder / "p.csv")]
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    measured = run("evaluate", "m.skpml", "news.csv", "--true-tags", "checked", *given, "--json")
    assert measured.exit_code == 0, measured.output
    true = np.array([[label in row.split(";") for label in LABELS] for row in truth]).astype(int)
    metrics = evaluate(true, model.decision_function(X), model.predict(X))
    assert json.loads(measured.stdout)["metrics"] == pytest.approx(metrics)


def test_confidences_name_the_rows(run: Run, folder: Path) -> None:
    lines = [f"r{row},waves and sand,sea\nq{row},snow on summits,sea;mountain\n" for row in range(10)]
    (folder / "news.csv").write_text("name,story,tags\n" + "".join(lines))
    options = (
        "--id",
        "name",
        "--text",
        "story",
        "--method",
        "pml-ma",
        "-o",
        "b.skpml",
        "--confidences",
        "c.csv",
    )
    result = run("fit", "news.csv", *options)
    assert result.exit_code == 0, result.output
    with (folder / "c.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert len(found) == 30
    names = [name for row in range(10) for name in (f"r{row}", f"q{row}")]
    assert all(line["id"] == names[int(line["row"])] for line in found)
