"""The example that comes along: what is in its folder, and that ``skpml clean`` finds what was planted there."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from skpml.cleaning import read_decisions
from skpml.datasets import PartialDataset, write_example
from skpml.datasets import _digits as example
from skpml.tables import Columns, read_table

pytestmark = pytest.mark.slow


@pytest.fixture
def digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PartialDataset:
    """The example, in the folder ``digits`` of the present one."""
    monkeypatch.chdir(tmp_path)
    return write_example("digits")


@pytest.fixture
def skpml() -> Callable[..., str]:
    """The command: arguments in, exit code 0, stdout out."""
    testing = pytest.importorskip("click.testing")
    pytest.importorskip("rich")
    from skpml.cli._app import app

    def run(*arguments: str, code: int = 0) -> str:
        done = testing.CliRunner().invoke(app, list(arguments))
        assert done.exit_code == code, done.output
        return done.stdout if code == 0 else done.stderr

    return run


def rows_of(path: str) -> list[dict[str, str]]:
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def contents(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_without_the_planted_tags_the_table_holds_the_truth(digits: PartialDataset) -> None:
    table = read_table("digits/digits.csv", columns=Columns(id="file"))
    planted = read_decisions("digits/planted.csv", table).drop_mask(table)
    order = [table.label_names.index(name) for name in digits.label_names]
    np.testing.assert_array_equal(table.candidates[:, order], digits.candidates)
    np.testing.assert_array_equal((table.candidates - planted)[:, order], digits.truth)
    np.testing.assert_array_equal(table.X, digits.X)


def test_true_tags_follow_from_the_numeral(digits: PartialDataset) -> None:
    numerals = load_digits().target[: len(digits.truth)]
    true = dict(zip(digits.label_names, digits.truth.T, strict=True))
    words = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    np.testing.assert_array_equal(np.column_stack([true[word] for word in words]).argmax(axis=1), numerals)
    assert (sum(true[word] for word in words) == 1).all()
    np.testing.assert_array_equal(true["odd"], numerals % 2)
    np.testing.assert_array_equal(true["even"], 1 - numerals % 2)


def test_images_are_the_rows(digits: PartialDataset) -> None:
    """Another program opens them; means over blocks of their pixels are the ink of the row, but for the smoothing."""
    image = pytest.importorskip("PIL.Image")
    files = [row["file"] for row in rows_of("digits/digits.csv")]
    assert {Path("digits", file) for file in files} == set(Path("digits", "images").iterdir())
    for row in (0, 1, 499):
        with image.open(Path("digits", files[row])) as opened:
            assert (opened.format, opened.mode) == ("PNG", "L")
            opened.load()
            grey = np.asarray(opened)
        np.testing.assert_array_equal(grey, example._enlarge(digits.X[row]))
        blocks = 1 - grey.reshape(10, 12, 10, 12).mean(axis=(1, 3)) / 255
        assert np.corrcoef(blocks[1:-1, 1:-1].ravel(), digits.X[row])[0, 1] > 0.98


def test_it_is_the_same_every_time(digits: PartialDataset, tmp_path: Path) -> None:
    write_example("again")
    assert contents(tmp_path / "again") == contents(tmp_path / "digits")


def test_clean_finds_what_was_planted(digits: PartialDataset, skpml: Callable[..., str]) -> None:
    skpml("clean", "digits/digits.csv", "--id", "file", "--image", "file", "-o", "cleaned.csv", "--audit", "all.csv",
          "--keep-above", "1")  # fmt: skip
    planted = {(row["id"], row["label"]) for row in rows_of("digits/planted.csv")}
    before, after = (
        {(row["file"], tag) for row in rows_of(path) for tag in row["tags"].split(";")}
        for path in ("digits/digits.csv", "cleaned.csv")
    )
    dropped = before - after
    assert len(dropped & planted) > 0.97 * len(dropped)
    assert len(dropped & planted) > 0.9 * len(planted)
    # With nothing kept by itself, all tags are listed with the confidence in them, but those that are certain.
    believed = dict.fromkeys(before, 1.0)
    believed |= {(row["id"], row["label"]): float(row["confidence"]) for row in rows_of("all.csv")}
    suspected = {tag for tag, confidence in believed.items() if confidence < 0.75}
    assert len(suspected & planted) > 0.95 * len(planted)
    assert roc_auc_score([tag in planted for tag in believed], [-c for c in believed.values()]) > 0.995


def test_answers_can_be_applied(digits: PartialDataset, skpml: Callable[..., str]) -> None:
    """They are decisions: taken, they leave exactly the true tags."""
    skpml("clean", "apply", "digits/digits.csv", "digits/planted.csv", "--id", "file", "-o", "true.csv")
    true = [{digits.label_names[label] for label in np.flatnonzero(row)} for row in np.asarray(digits.truth)]
    assert [set(row["tags"].split(";")) for row in rows_of("true.csv")] == true


class TestFolder:
    def test_one_that_is_not_empty_stays_as_it_is(self, tmp_path: Path, skpml: Callable[..., str]) -> None:
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "digits.csv").write_text("mine")
        message = skpml("data", "example", str(tmp_path / "mine"), code=2)
        assert message == f"error: {tmp_path / 'mine'} is not empty; --force replaces files in it\n"
        assert contents(tmp_path) == {Path("mine/digits.csv"): b"mine"}

    def test_force_replaces_the_files_of_the_example_only(
        self, digits: PartialDataset, tmp_path: Path, skpml: Callable[..., str]
    ) -> None:
        before = contents(tmp_path)
        (tmp_path / "digits" / "planted.csv").write_text("changed")
        (tmp_path / "digits" / "images" / "mine.png").write_text("mine")
        skpml("data", "example", "digits", "--force")
        assert contents(tmp_path) == {**before, Path("digits/images/mine.png"): b"mine"}

    @pytest.mark.parametrize("stopped_by", [KeyboardInterrupt, OSError])
    @pytest.mark.parametrize("exists", [False, True])
    def test_what_is_stopped_leaves_nothing(
        self, stopped_by: type[BaseException], exists: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def stop(*_: object) -> None:
            raise stopped_by

        if exists:
            (tmp_path / "digits").mkdir()
        before = sorted(tmp_path.rglob("*"))
        monkeypatch.setattr(example, "write_rows", stop)
        with pytest.raises(stopped_by):
            write_example(tmp_path / "digits")
        assert sorted(tmp_path.rglob("*")) == before

    def test_an_empty_one_is_filled(self, tmp_path: Path) -> None:
        write_example(tmp_path)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["digits.csv", "images", "planted.csv"]

    def test_a_file_is_no_folder(self, tmp_path: Path) -> None:
        (tmp_path / "digits").write_text("mine")
        with pytest.raises(FileExistsError, match="is a file; name a folder"):
            write_example(tmp_path / "digits", overwrite=True)

    def test_its_own_folder_must_exist(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match=r"the folder \S+nowhere does not exist"):
            write_example(tmp_path / "nowhere" / "digits")
