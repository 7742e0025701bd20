"""What ``skpml clean`` says and refuses before it begins to learn, which may take long."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import skpml.cleaning

from .conftest import Run, rows_with_tags, write_rows

Refused = Callable[..., str]


class LearningError(ValueError):
    """Raised where learning would begin."""


@pytest.fixture
def no_learning(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(*_: object, **__: object) -> None:
        raise LearningError("learning begins")

    monkeypatch.setattr(skpml.cleaning, "audit", begin)


@pytest.fixture
def told(run: Run, no_learning: None) -> Callable[..., list[str]]:
    """Run the command up to where learning begins; gives what it has said."""

    def call(*arguments: object) -> list[str]:
        result = run("clean", *arguments, "-o", f"out{Path(str(arguments[0])).suffix}")
        assert result.stderr == "error: learning begins\n", result.output
        # What follows is about the labels, and has tests of its own.
        return result.stdout.partition("Labels by number of rows: ")[0].splitlines()

    return call


@pytest.fixture
def songs(folder: Path) -> Path:
    features, tags, _ = rows_with_tags(30)
    np.save(folder / "songs.npy", features)
    rows = [[f"s{i}", f"some words {i % 7}", i, i % 3, tag] for i, tag in enumerate(tags)]
    return write_rows(folder / "songs.csv", ["name", "lyrics", "year", "length", "tags"], rows)


class TestTold:
    def test_columns(self, told: Callable, songs: Path) -> None:
        assert told(songs, "--id", "name", "--ignore", "lyrics") == [
            "Tags from column 'tags'; learning from 2 columns: year, length."
        ]
        assert told(songs, "--feature", "year") == ["Tags from column 'tags'; learning from 1 column: year."]

    def test_texts(self, told: Callable, songs: Path) -> None:
        assert told(songs, "--id", "name", "--text", "lyrics") == [
            "Tags from column 'tags'; learning from 2 columns: year, length; the texts of 'lyrics'."
        ]
        assert told(songs, "--id", "name", "--text", "lyrics", "--ignore", "year", "--ignore", "length") == [
            "Tags from column 'tags'; learning from the texts of 'lyrics'."
        ]

    def test_embeddings(self, told: Callable, songs: Path) -> None:
        lines = told(songs, "--id", "name", "--embeddings", "songs.npy")
        assert lines[0].startswith(
            "Tags from column 'tags'; learning from songs.npy, not from 3 other columns:"
        )

    def test_label_columns_and_data_sets(self, told: Callable, run: Run, folder: Path) -> None:
        write_rows(folder / "flags.csv", ["x", "sea", "sky"], [[i, i % 2, 1] for i in range(9)])
        assert told("flags.csv", "--label", "sea", "--label", "sky") == [
            "Tags from 2 columns: sea, sky; learning from 1 column: x."
        ]
        run("data", "import", "flags.csv", "--label", "sea", "--label", "sky", "-o", "flags.npz")
        assert told("flags.npz") == ["Tags from the labels of the data set; learning from its 1 feature."]

    def test_how_the_file_is_written(self, told: Callable, folder: Path) -> None:
        (folder / "de.csv").write_text("x;Tags\n" + "".join(f"{i},5;sea,sky\n{i};sky\n" for i in range(9)))
        read, tags = told("de.csv", "--separator", ",")
        assert read.startswith("Read de.csv as UTF-8, columns separated by semicolons")
        assert tags.startswith("Tags from column 'Tags'")

    def test_notes(self, told: Callable, folder: Path) -> None:
        write_rows(folder / "a.csv", ["x", "tags"], [[i, "sea,sky"] for i in range(9)])
        note = told("a.csv", "--separator", ";")[1]
        assert note.startswith("Note: ")
        assert "','" in note


@pytest.mark.usefixtures("no_learning")
class TestRefused:
    @pytest.mark.parametrize("target", ["out.tsv", "out", "out.parquet"])
    def test_another_suffix(self, refused: Refused, songs: Path, target: str) -> None:
        message = refused("clean", songs, "--feature", "year", "-o", target)
        assert f"{target}: " in message
        assert ".csv" in message
        (songs.parent / "d.csv").write_text("id,row,label,decision\n")
        assert f"{target}: " in refused("clean", "apply", songs, "d.csv", "-o", target)

    @pytest.mark.parametrize(
        ("package", "output", "extra"),
        [("jinja2", ("--report", "r.html"), "report"), ("skops.io", ("--model", "m.skpml"), "models")],
    )
    def test_a_missing_package(
        self,
        refused: Refused,
        songs: Path,
        monkeypatch: pytest.MonkeyPatch,
        package: str,
        output: tuple[str, str],
        extra: str,
    ) -> None:
        monkeypatch.setitem(sys.modules, package, None)
        message = refused("clean", songs, "--feature", "year", "-o", "out.csv", *output)
        assert f'pip install "scikit-pml[{extra}]"' in message

    def test_labels_that_label_studio_cannot_hold(self, refused: Refused, folder: Path) -> None:
        write_rows(folder / "a.csv", ["x", "tags"], [[i, "sea\x01;sky"] for i in range(9)])
        message = refused("clean", "a.csv", "-o", "out.csv", "--label-studio", "tasks.json")
        assert repr("sea\x01") in message

    def test_too_few_rows(self, refused: Refused, folder: Path) -> None:
        write_rows(folder / "five.csv", ["x", "tags"], [[i, "sea;sky"] for i in range(5)])
        assert "five.csv has 5 rows; cross-validation needs at least 6" in refused(
            "clean", "five.csv", "-o", "out.csv"
        )

    def test_more_folds_than_rows(self, refused: Refused, songs: Path) -> None:
        message = refused("clean", songs, "--feature", "year", "-o", "out.csv", "--folds", 31)
        assert "--folds 31: " in message
        assert "has only 30 rows" in message

    def test_a_separator_that_splits_nothing(self, refused: Refused, folder: Path) -> None:
        write_rows(folder / "a.csv", ["x", "tags"], [[i, "sea,sky"] for i in range(9)])
        message = refused("clean", "a.csv", "-o", "out.csv")
        assert "pass --separator ',', else pass --separator ';'" in message

    def test_advice_speaks_of_options(self, refused: Refused, folder: Path) -> None:
        write_rows(folder / "a.csv", ["x", "tags"], [["x", "sea"], [1, "sky"]])
        assert "if it is not a feature, pass --ignore 'x'" in refused("clean", "a.csv", "-o", "out.csv")
        write_rows(folder / "a.csv", ["x", "tags"], [[1, "sea"]])
        for options, words in (
            (("--tags", "tags", "--label", "x"), "--tags and --label exclude each other"),
            (("--feature", "x", "--embeddings", "e.npy"), "--feature and --embeddings exclude each other"),
            (("--delimiter", "::"), "--delimiter must be a single character"),
            (("--decimal", "x"), "--decimal must be"),
            (("--separator", ""), "--separator must not be empty"),
        ):
            assert f"error: {words}" in refused("clean", "a.csv", "-o", "out.csv", *options)
        np.savez(folder / "a.npz", X=np.ones((9, 1)), Y_candidate=np.ones((9, 2), int))
        for option, value in (("--delimiter", ";"), ("--text", "x"), ("--feature", "x"), ("--label", "x")):
            message = refused("clean", "a.npz", "-o", "out.npz", option, value)
            assert f"error: {option} does not apply to .npz files" in message


def test_advice_about_parameters_of_methods_is_kept_away(
    run: Run, songs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = skpml.cleaning.audit

    def warning(*arguments: object, **options: object) -> object:
        warnings.warn("increase max_iter or tol", ConvergenceWarning, stacklevel=2)
        return real(*arguments, **options)

    monkeypatch.setattr(skpml.cleaning, "audit", warning)
    done = run("clean", songs, "--feature", "length", "-o", "out.csv", "--method", "ridge")
    assert (done.exit_code, done.stderr) == (0, "")
