"""Bad input: one sentence that names the place, exit code 2, and nothing written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from skpml.datasets import PartialDataset, write_dataset

from .conftest import PHOTO_OPTIONS, Run, write_rows

Refused = Callable[..., str]


def changed(path: Path, line: int, column: int, value: str) -> None:
    """Put a value into a cell of a CSV file; line 1 is the header."""
    lines = path.read_text().splitlines()
    fields = lines[line - 1].split(",")
    fields[column] = value
    lines[line - 1] = ",".join(fields)
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("value", ["inf", "-inf", "red"])
def test_a_feature_that_is_no_finite_number(refused: Refused, photos: Path, value: str) -> None:
    changed(photos, 7, 2, value)
    message = refused("fit", photos, *PHOTO_OPTIONS, "-o", "a.skpml")
    assert "photos.csv, line 7: column 'green'" in message
    assert "--ignore 'green'" in message


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_feature_that_is_not_finite_in_a_binary_file(refused: Refused, folder: Path, value: float) -> None:
    X = np.ones((4, 3))
    X[2, 1] = value
    np.savez(folder / "bad.npz", X=X, Y_candidate=np.ones((4, 2), int))
    message = refused("fit", "bad.npz", "-o", "a.skpml")
    assert "bad.npz" in message
    assert "row 2, column 1" in message


@pytest.mark.parametrize("value", ["2", "0.5", "nan", "x", ""])
def test_a_label_that_is_neither_0_nor_1(refused: Refused, folder: Path, value: str) -> None:
    write_rows(folder / "flags.csv", ["x", "cat", "dog"], [[1, 0, 1], [2, 1, 0], [3, 1, value]])
    message = refused("fit", "flags.csv", "--label", "cat", "--label", "dog", "-o", "a.skpml")
    assert "flags.csv, line 4: column 'dog'" in message
    assert "0 or 1" in message


def test_a_label_matrix_with_other_values(refused: Refused, folder: Path) -> None:
    np.savez(folder / "bad.npz", X=np.ones((2, 1)), Y_candidate=np.array([[0, 1], [1, 3]]))
    message = refused("fit", "bad.npz", "-o", "a.skpml")
    assert "bad.npz" in message
    assert "row 1, label 1 is 3" in message


def test_a_row_without_candidates(refused: Refused, photos: Path) -> None:
    changed(photos, 6, 4, "")
    message = refused("fit", photos, *PHOTO_OPTIONS, "-o", "a.skpml")
    assert "rows without candidates (1 of 40, the first is row 4" in message
    assert "--allow-empty " in message


def test_a_label_nobody_has(refused: Refused, run: Run, folder: Path) -> None:
    write_rows(folder / "flags.csv", ["x", "cat", "dog"], [[index, 1, 0] for index in range(8)])
    arguments = ("fit", "flags.csv", "--label", "cat", "--label", "dog", "-o", "a.skpml")
    message = refused(*arguments)
    assert "labels that no row carries (1 of 2, the first is 'dog')" in message
    assert "--allow-empty " in message
    allowed = run(*arguments, "--allow-empty")
    assert allowed.exit_code == 0
    assert "warning: 1 of 2 labels are not a candidate of any row (dog)." in " ".join(allowed.stderr.split())


def test_a_single_row(refused: Refused, folder: Path) -> None:
    write_rows(folder / "one.csv", ["x", "tags"], [[1, "a;b"]])
    assert "at least two rows" in refused("fit", "one.csv", "--tags", "tags", "-o", "a.skpml")


def test_fewer_rows_than_neighbours(refused: Refused, folder: Path) -> None:
    write_rows(folder / "few.csv", ["x", "tags"], [[1, "a"], [2, "a;b"], [3, "b"], [5, "a"]])
    message = refused("fit", "few.csv", "--tags", "tags", "-o", "a.skpml", "--method", "pml-ma")
    assert "n_neighbors=5 needs at least 6 rows" in message


def test_constant_features(refused: Refused, folder: Path) -> None:
    write_rows(folder / "flat.csv", ["x", "tags"], [[1, "a"]] * 8)
    options = ("--tags", "tags", "--method", "pml-ma", "-o", "a.skpml")
    assert "Every feature of X is constant" in refused("fit", "flat.csv", *options)


def test_labels_only(refused: Refused, model: Path, folder: Path) -> None:
    write_dataset(PartialDataset(None, [[1, 0], [0, 1]]), folder / "labels.npz")
    assert "has labels only" in refused("fit", "labels.npz", "-o", "a.skpml")
    assert "has labels only" in refused("predict", model, "labels.npz", "-o", "out.csv")


def test_mismatched_lengths(refused: Refused, photos: Path, folder: Path) -> None:
    np.savez(folder / "bad.npz", X=np.ones((4, 3)), Y_candidate=np.ones((5, 2), int))
    assert "X has 4 rows and candidates has 5" in refused("fit", "bad.npz", "-o", "a.skpml")
    with photos.open("a") as file:
        file.write("41.jpg,1,2\n")
    assert "photos.csv, line 42: 3 values for 6 columns" in refused(
        "fit", photos, *PHOTO_OPTIONS, "-o", "a.skpml"
    )


def test_options_that_do_not_apply(refused: Refused, photos: Path, folder: Path) -> None:
    write_dataset(PartialDataset([[1.0], [2.0]], [[1, 0], [0, 1]]), folder / "a.npz")
    fit = ("-o", "a.skpml")
    assert "--tags does not apply to .npz files" in refused("fit", "a.npz", "--tags", "tags", *fit)
    assert "--reader-option colour does not apply" in refused("fit", "a.npz", "-O", "colour=red", *fit)
    assert "needs NAME=VALUE" in refused("fit", "a.npz", "-O", "colour", *fit)
    assert "--tags is for files" in refused("fit", "digits", "--tags", "tags", *fit)
    assert "for data sets by name" in refused("fit", photos, *PHOTO_OPTIONS, "--candidates", 3, *fit)
    assert "exclude each other" in refused("fit", photos, "--tags", "tags", "--label", "red", *fit)
    assert "--confidences: ridge has no confidences; methods that have them: pml-ma" in refused(
        "fit", photos, *PHOTO_OPTIONS, "--method", "ridge", "--confidences", "c.csv", *fit
    )
    assert "--style does not apply to .npz files" in refused(
        "data", "import", "digits", "-o", "d.npz", "--style", "tags"
    )
    assert "d.xyz: unknown suffix" in refused("data", "import", "digits", "-o", "d.xyz")


def test_columns_that_are_not_there(refused: Refused, photos: Path) -> None:
    assert "has no column 'keywords'" in refused("fit", photos, "--tags", "keywords", "-o", "a.skpml")
    write_rows(photos, ["red", "green"], [[1, 2], [3, 4]])
    message = refused("fit", photos, "-o", "a.skpml")
    assert "--tags COLUMN" in message
    assert "--label COLUMN" in message


def test_unknown_names_suggest_near_ones(refused: Refused) -> None:
    message = refused("fit", "digit", "-o", "a.skpml")
    assert "no data set 'digit'. Did you mean 'digits'?" in message
    assert "'skpml data list'" in message
    assert "no data set 'qqqq'. 'skpml data list'" in refused("data", "info", "qqqq")
    assert "'emotions' is not in" in refused("data", "info", "emotions")


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".mat"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.95])
def test_data_files_cut_short(
    refused: Refused, run: Run, folder: Path, photos: Path, suffix: str, share: float
) -> None:
    whole = folder / f"data{suffix}"
    run("data", "import", photos, *PHOTO_OPTIONS, "-o", whole)
    content = whole.read_bytes()
    whole.write_bytes(content[: int(len(content) * share)])
    assert f"data{suffix}" in refused("fit", whole, "-o", "a.skpml")


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_model_files_cut_short(refused: Refused, model: Path, photos: Path, share: float) -> None:
    content = model.read_bytes()
    model.write_bytes(content[: int(len(content) * share)])
    message = refused("predict", model, photos, "-o", "out.csv")
    assert "photos.skpml" in message
    assert "cut short" in message
    assert "cut short" in refused("evaluate", model, photos, "--true-tags", "checked", "--ignore", "file")


def test_data_given_as_the_model(refused: Refused, photos: Path) -> None:
    assert "photos.csv is not a model file" in refused("predict", photos, photos, "-o", "out.csv")


def test_missing_files(refused: Refused, model: Path, photos: Path) -> None:
    assert "there is no file none.csv" in refused("fit", "none.csv", "-o", "a.skpml")
    assert "there is no file none.skpml" in refused("predict", "none.skpml", photos, "-o", "out.csv")
    assert "there is no file none.csv" in refused("predict", model, "none.csv", "-o", "out.csv")
    assert "there is no file folder/none.txt" in refused("fit", "folder/none.txt", "-o", "a.skpml")
    assert "none.doc: unknown suffix '.doc'" in refused("fit", "folder/none.doc", "-o", "a.skpml")


def test_features_the_model_does_not_know(refused: Refused, model: Path, folder: Path) -> None:
    write_rows(folder / "new.csv", ["red", "grey"], [[1, 2]])
    message = refused("predict", model, "new.csv", "-o", "out.csv")
    assert "new.csv: lacks 2 of the 3 columns that are needed: green, blue" in message
    np.savez(folder / "new.npz", X=np.ones((4, 5)), Y_candidate=np.ones((4, 2), int))
    message = refused("predict", model, "new.npz", "-o", "out.csv")
    assert "new.npz has 5 features, but the model was fitted to 3" in message


def test_new_rows_with_holes(refused: Refused, model: Path, folder: Path) -> None:
    write_rows(folder / "new.csv", ["red", "green", "blue"], [[1, 2, 3], [1, "nan", 3]])
    assert "new.csv, line 3: column 'green' holds 'nan'" in refused(
        "predict", model, "new.csv", "-o", "out.csv"
    )


def test_evaluation_without_truth_and_with_other_labels(refused: Refused, model: Path, photos: Path) -> None:
    message = refused("evaluate", model, photos, *PHOTO_OPTIONS)
    assert "photos.csv has no true labels to compare with; --true-tags" in message
    changed(photos, 3, 5, "unicorn")
    changed(photos, 3, 4, "unicorn")
    message = refused(
        "evaluate", model, photos, "--true-tags", "checked", "--tags", "tags", "--ignore", "file"
    )
    assert "labels that the model was not fitted to: 'unicorn'" in message


def test_outputs_that_exist_or_cannot_be(refused: Refused, model: Path, photos: Path, folder: Path) -> None:
    fit = ("fit", photos, *PHOTO_OPTIONS)
    (folder / "old.csv").write_text("precious")
    (folder / "sub").mkdir()
    assert "photos.skpml exists already; --force replaces it" in refused(*fit, "-o", "photos.skpml")
    assert "old.csv exists already" in refused(*fit, "-o", "a.skpml", "--confidences", "old.csv")
    assert "old.csv exists already" in refused("predict", model, photos, "-o", "old.csv")
    assert "old.csv exists already" in refused("data", "import", "digits", "-o", "old.csv")
    assert "sub is a folder" in refused(*fit, "-o", "sub", "--force")
    assert "there is no folder" in refused(*fit, "-o", "nowhere/a.skpml")
    assert "named as two outputs" in refused(*fit, "-o", "a.skpml", "--confidences", "a.skpml")


@pytest.mark.slow
def test_a_separator_inside_a_label(refused: Refused, run: Run, folder: Path) -> None:
    write_rows(folder / "a.csv", ["x", "tags"], [[i, "a;b|c" if i % 2 else "c"] for i in range(10)])
    assert run("fit", "a.csv", "--tags", "tags", "--separator", "|", "-o", "a.skpml").exit_code == 0
    message = refused("predict", "a.skpml", "a.csv", "-o", "out.csv")
    assert "the label 'a;b' contains ';'" in message
    assert run("predict", "a.skpml", "a.csv", "-o", "out.csv", "--separator", "|").exit_code == 0


@pytest.mark.parametrize(
    "arguments", [("fitt",), ("fit",), ("fit", "digits"), ("clean", "a.csv", "--folds", "1")]
)
def test_wrong_usage(refused: Refused, arguments: tuple[str, ...]) -> None:
    assert "--help'" in refused(*arguments)


def test_tracebacks_come_when_asked_for(run: Run) -> None:
    result = run("fit", "none.csv", "-o", "a.skpml", "--traceback")
    assert result.exit_code == 2
    assert "Traceback (most recent call last)" in result.stderr
    assert run("--traceback", "fit", "none.csv", "-o", "a.skpml").stderr.count("Traceback") == 1
    assert "Traceback" not in run("fit", "none.csv", "-o", "a.skpml").stderr


def test_our_own_mistakes_are_called_so(run: Run, photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise AttributeError("no such thing")

    monkeypatch.setattr("skpml.reference.CandidateRidge.fit", broken)
    result = run("fit", photos, *PHOTO_OPTIONS, "--method", "ridge", "-o", "a.skpml")
    assert result.exit_code == 1
    assert "unexpected AttributeError (no such thing)" in result.stderr
    assert "--traceback" in result.stderr
