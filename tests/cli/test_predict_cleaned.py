"""``skpml predict`` with the models of ``skpml clean``: texts, embeddings, and tables written in any way."""

from __future__ import annotations

import csv
import inspect
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skpml import get_method, list_methods
from skpml.cli._predict import predict
from skpml.io import load_model, read_model_info
from skpml.metrics import evaluate

from .conftest import LABELS, Run, rows_with_tags, write_rows

pytest.importorskip("skops.io")

FAST = ("--method", "ridge", "--folds", "3")
Refused = Callable[..., str]
# Suffix, and how the table is written: encoding, delimiter, quote, decimal mark.
WRITTEN = {
    "plain": (".csv", "utf-8", ",", '"', "."),
    "german": (".csv", "latin-1", ";", '"', ","),
    "spreadsheet": (".tsv", "utf-16", "\t", '"', "."),
    "marked": (".csv", "utf-8-sig", "|", '"', ","),
    "single": (".csv", "utf-8", ",", "'", "."),
}
TEXTS = [
    "beachword1 beachword2, “beachword3”",
    "",
    'forestword1 is "forestword2"',
    "Über nothing that is known",
    "seaword1\nseaword2",
    " ",
]


def cells(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def texts_for(kind: str) -> list[str]:
    """Texts that can be written so, and are found again: single quotes only around a line."""
    left_out = {"german": "“”", "single": "\n"}.get(kind, "")
    return [text.translate(str.maketrans(dict.fromkeys(left_out, " "))) for text in TEXTS]


def write_as(
    folder: Path, name: str, kind: str, header: Sequence[str], rows: Sequence[Sequence[Any]]
) -> Path:
    """Write a table in one of the ways above; numbers that are no text get the decimal mark."""
    suffix, encoding, delimiter, quote, decimal = WRITTEN[kind]
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, quotechar=quote)
    writer.writerow(header)
    for row in rows:
        writer.writerow(
            [repr(cell).replace(".", decimal) if isinstance(cell, float) else cell for cell in row]
        )
    path = folder / f"{name}{suffix}"
    path.write_bytes(text.getvalue().encode(encoding))
    return path


def done(result: Any) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def check_lines(path: Path, model: Path, X: Any) -> list[dict[str, str]]:
    """Every line of a file of predictions says what the model says of its row."""
    fitted = load_model(model)
    decisions, probabilities = fitted.predict(X), fitted.predict_proba(X)
    lines = cells(path)
    assert len(lines) == len(X)
    for row, line in enumerate(lines):
        assert line["row"] == str(row)
        assert line["predicted"] == ";".join(LABELS[column] for column in np.flatnonzero(decisions[row]))
        found = [float(line[f"probability:{label}"]) for label in LABELS]
        np.testing.assert_allclose(found, probabilities[row], rtol=1e-5)
    return lines


def as_column(texts: Sequence[str]) -> Any:
    return np.array([[text] for text in texts], dtype=object)


@pytest.fixture
def news(run: Run, folder: Path) -> Path:
    """A model of texts whose words tell their tags."""
    rng = np.random.default_rng(0)
    rows = []
    for number in range(240):
        label = LABELS[number % 4]
        words = " ".join(f"{label}word{word}" for word in rng.integers(6, size=5))
        rows.append([f"a{number}", words, f"{label};{LABELS[rng.integers(4)]}"])
    write_rows(folder / "news.csv", ["article", "headline", "tags"], rows)
    options = ("--id", "article", "--text", "headline", "--model", "news.skpml")
    done(run("clean", "news.csv", *options, "-o", "news_c.csv", *FAST))
    return folder / "news.skpml"


@pytest.fixture
def photos_model(run: Run, folder: Path) -> Path:
    """A model of numbers in a table with semicolons and decimal commas."""
    features, tags, _ = rows_with_tags(80)
    rows = [
        [f"é{i}.png", *row, tag] for i, (row, tag) in enumerate(zip(features.tolist(), tags, strict=True))
    ]
    path = write_as(folder, "photos", "german", ["file", "a", "b", "größe", "tags"], rows)
    said = done(
        run("clean", path, "--ignore", "file", "-o", "photos_c.csv", "--model", "photos.skpml", *FAST)
    )
    assert said.startswith(f"Read {path} as Windows-1252 ")
    assert "semicolons" in said
    assert "decimal comma" in said
    return folder / "photos.skpml"


@pytest.fixture
def songs(run: Run, folder: Path) -> Path:
    """A model of embeddings beside a table."""
    features, tags, _ = rows_with_tags(80)
    write_rows(folder / "songs.csv", ["song", "tags"], [[i, tag] for i, tag in enumerate(tags)])
    np.save(folder / "songs.npy", features)
    options = ("--id", "song", "--embeddings", "songs.npy", "--model", "songs.skpml")
    done(run("clean", "songs.csv", *options, "-o", "songs_c.csv", *FAST))
    return folder / "songs.skpml"


@pytest.mark.parametrize("kind", WRITTEN)
def test_texts_in_a_table_written_in_any_way(run: Run, news: Path, folder: Path, kind: str) -> None:
    texts = texts_for(kind)
    rows = [[f"n{row}", 0.5, text] for row, text in enumerate(texts)]
    new = write_as(folder, "new", kind, ["article", "length", "headline"], rows)
    said = done(run("predict", news, new, "-o", "tags.csv"))
    assert said.endswith("Wrote tags.csv: 6 rows.\n")
    assert said.startswith(f"Read {new} as ") == (kind != "plain")
    lines = check_lines(folder / "tags.csv", news, as_column(texts))
    assert lines[0]["predicted"] == "beach"
    assert "id" not in lines[0]
    # A text without words is one of which nothing is known; so is one without known words.
    assert len({tuple(list(lines[row].values())[1:]) for row in (1, 3, 5)}) == 1


@pytest.mark.parametrize("kind", WRITTEN)
def test_numbers_in_a_table_written_in_any_way(run: Run, photos_model: Path, folder: Path, kind: str) -> None:
    features, tags, _ = rows_with_tags(30, seed=1)
    rows = [
        [tag, c, f"f{i}", a, b, "1.5"]
        for i, ((a, b, c), tag) in enumerate(zip(features.tolist(), tags, strict=True))
    ]
    new = write_as(folder, "new", kind, ["tags", "größe", "file", "a", "b", "version"], rows)
    said = done(run("predict", photos_model, new, "--id", "file", "-o", "tags.csv"))
    assert ("decimal comma" in said) == (WRITTEN[kind][-1] == ",")
    lines = check_lines(folder / "tags.csv", photos_model, features)
    assert [line["id"] for line in lines] == [f"f{i}" for i in range(30)]
    assert list(lines[0])[:3] == ["row", "id", "predicted"]


def test_rows_are_predicted_in_blocks(
    run: Run, photos_model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skpml.cli._predict._PREDICTED_ROWS", 7)
    features = rows_with_tags(30, seed=1)[0]
    rows = [[f"f{i}", *row] for i, row in enumerate(features.tolist())]
    write_rows(folder / "new.csv", ["file", "a", "b", "größe"], rows)
    done(run("predict", photos_model, "new.csv", "--id", "file", "-o", "tags.csv"))
    lines = check_lines(folder / "tags.csv", photos_model, features)
    assert [line["id"] for line in lines] == [f"f{i}" for i in range(30)]


def test_a_file_is_read_as_the_options_say(
    run: Run, photos_model: Path, folder: Path, refused: Refused
) -> None:
    # As whole numbers beside one with a comma: it may be a decimal mark, and may be one of thousands.
    (folder / "new.csv").write_text("a;b;größe\n1;2;3\n1,5;2;3\n", encoding="latin-1")
    done(run("predict", photos_model, "new.csv", "-o", "tags.csv"))
    check_lines(folder / "tags.csv", photos_model, np.array([[1.0, 2, 3], [1.5, 2, 3]]))
    message = refused("predict", photos_model, "new.csv", "-o", "out.csv", "--decimal", ".")
    assert "new.csv, line 3: column 'a' holds '1,5'" in message
    assert "pass --decimal ','" in message
    assert "größe" in refused("predict", photos_model, "new.csv", "-o", "out.csv", "--encoding", "cp437")
    assert "lacks" in refused("predict", photos_model, "new.csv", "-o", "out.csv", "--delimiter", "tab")


def test_parquet(run: Run, photos_model: Path, news: Path, folder: Path, refused: Refused) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    features, _, _ = rows_with_tags(20, seed=2)
    a, b, size = features.T
    table = pa.table({"file": list("abcdefghijklmnopqrst"), "größe": size, "b": b, "a": a})
    parquet.write_table(table, folder / "new.parquet")
    said = done(run("predict", photos_model, "new.parquet", "--id", "file", "-o", "tags.csv"))
    assert said == "Wrote tags.csv: 20 rows.\n"
    lines = check_lines(folder / "tags.csv", photos_model, features)
    assert "".join(line["id"] for line in lines) == "abcdefghijklmnopqrst"
    assert "delimiter does not apply to .parquet files" in refused(
        "predict", photos_model, "new.parquet", "-o", "out.csv", "--delimiter", ";"
    )
    assert "tags.csv" in refused("predict", photos_model, "new.parquet", "-o", "tags.xlsx")
    parquet.write_table(pa.table({"a": ["x"], "b": [1], "größe": [2]}), folder / "words.parquet")
    message = refused("predict", photos_model, "words.parquet", "-o", "out.csv")
    assert "row 0: column 'a' holds 'x'" in message
    parquet.write_table(pa.table({"headline": [TEXTS[0], None, "seaword1"]}), folder / "texts.parquet")
    done(run("predict", news, "texts.parquet", "-o", "texts.csv"))
    check_lines(folder / "texts.csv", news, as_column([TEXTS[0], "", "seaword1"]))


def test_embeddings(run: Run, songs: Path, folder: Path) -> None:
    features, _, _ = rows_with_tags(25, seed=3)
    np.save(folder / "new.npy", features)
    np.savez(folder / "one.npz", vectors=features)
    np.savez(folder / "named.npz", embeddings=features, Y_true=np.ones((25, 2), int), other=np.ones(3))
    for name in ("new.npy", "one.npz", "named.npz"):
        said = done(run("predict", songs, name, "-o", "tags.csv", "--force"))
        assert said == "Wrote tags.csv: 25 rows.\n"
        check_lines(folder / "tags.csv", songs, features)
    assert read_model_info(songs).feature_kind == "embeddings"


def test_a_matrix_without_names_goes_by_its_columns(run: Run, photos_model: Path, folder: Path) -> None:
    features, _, _ = rows_with_tags(25, seed=3)
    np.save(folder / "new.npy", features)
    np.savez(folder / "new.npz", X=features)
    for name in ("new.npy", "new.npz"):
        done(run("predict", photos_model, name, "-o", "tags.csv", "--force"))
        check_lines(folder / "tags.csv", photos_model, features)


@pytest.mark.slow
def test_the_default_model_gives_its_probabilities(run: Run, folder: Path) -> None:
    features, tags, _ = rows_with_tags(80)
    rows = [[*row, tag] for row, tag in zip(features.tolist(), tags, strict=True)]
    write_rows(folder / "photos.csv", ["a", "b", "c", "tags"], rows)
    done(run("clean", "photos.csv", "-o", "c.csv", "--model", "m.skpml", "--folds", 2))
    done(run("predict", "m.skpml", "photos.csv", "-o", "tags.csv"))
    check_lines(folder / "tags.csv", folder / "m.skpml", features)
    scores = load_model(folder / "m.skpml").decision_function(features)
    found = [[float(line[f"probability:{label}"]) for label in LABELS] for line in cells(folder / "tags.csv")]
    np.testing.assert_allclose(found, scores, rtol=1e-5)


def test_the_help_names_the_methods_whose_scores_are_probabilities() -> None:
    text = " ".join(inspect.cleandoc(predict.help or "").split())
    sentence = text[text.index("Models of the methods") : text.index("Any other model")]
    told = {name for name in list_methods() if f" {name}" in sentence}
    true = set()
    for name in list_methods():
        try:
            method = get_method(name).estimator_class()
        except ImportError:
            told.discard(name)
            continue
        if method._scores_are_probabilities:
            true.add(name)
    assert told == true


@pytest.mark.parametrize("kind", [kind for kind in WRITTEN if WRITTEN[kind][0] == ".csv"])
def test_evaluate_reads_what_predict_reads(
    run: Run, news: Path, photos_model: Path, folder: Path, kind: str
) -> None:
    truth = np.eye(4, dtype=int)[[0, 1, 2, 3, 0, 3]]
    texts, features = texts_for(kind), rows_with_tags(6, seed=4)[0]
    rows = [
        [LABELS[label.argmax()], text, *numbers]
        for label, text, numbers in zip(truth, texts, features.tolist(), strict=True)
    ]
    path = write_as(folder, "checked", kind, ["checked", "headline", "a", "b", "größe"], rows)
    for model, X in ((news, as_column(texts)), (photos_model, features)):
        said = done(run("evaluate", model, path, "--true-tags", "checked", "--json"))
        fitted = load_model(model)
        expected = evaluate(truth, fitted.decision_function(X), fitted.predict(X))
        assert json.loads(said)["metrics"] == pytest.approx(expected)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_names_of_new_rows_may_repeat(run: Run, news: Path, folder: Path, suffix: str) -> None:
    frame = pd.DataFrame({"article": ["a", "a", "b"], "headline": ["one", "two", "one"]})
    if suffix == ".csv":
        frame.to_csv(folder / "new.csv", index=False)
    else:
        frame.to_parquet(folder / "new.parquet", index=False)
    done = run("predict", news, f"new{suffix}", "--id", "article", "-o", "out.csv")
    assert done.exit_code == 0, done.output
    assert pd.read_csv(folder / "out.csv")["id"].tolist() == ["a", "a", "b"]


def test_embeddings_beside_a_table(run: Run, songs: Path, folder: Path) -> None:
    features = np.load(folder / "songs.npy")
    names = [f"s {row}" for row in range(len(features))]
    write_rows(folder / "new.csv", ["name"], [[name] for name in names])
    (folder / "vectors").mkdir()
    for name, vector in zip(names, features, strict=True):
        np.save(folder / "vectors" / f"{name}.npy", vector)
    run("predict", songs, "songs.npy", "-o", "plain.csv")
    plain = cells(folder / "plain.csv")
    for number, embeddings in enumerate(("songs.npy", "vectors")):
        options = ("--id", "name", "--embeddings", embeddings, "-o", f"{number}.csv")
        result = run("predict", songs, "new.csv", *options)
        assert result.exit_code == 0, result.output
        found = cells(folder / f"{number}.csv")
        assert [line.pop("id") for line in found] == names
        assert found == plain


class TestRefusals:
    def test_a_missing_column_of_texts(self, refused: Refused, news: Path, folder: Path) -> None:
        write_rows(folder / "new.csv", ["article", "Headline"], [["a", "b"]])
        message = refused("predict", news, "new.csv", "-o", "out.csv")
        assert "new.csv: has no column 'headline'; did you mean 'Headline'?" in message

    def test_data_of_another_kind(
        self, refused: Refused, news: Path, songs: Path, photos_model: Path, folder: Path
    ) -> None:
        message = refused("predict", news, "songs.npy", "-o", "out.csv")
        assert "songs.npy is not a table" in message
        assert "'headline'" in message
        assert "digits is not a table" in refused("predict", news, "digits", "-o", "out.csv")
        assert "digits is not a table" in refused("evaluate", news, "digits")
        message = refused("predict", songs, "songs.csv", "-o", "out.csv")
        assert "songs.csv is a table, but the model was fitted to embeddings" in message
        assert "3 numbers per row" in message

    def test_embeddings_that_are_none(self, refused: Refused, songs: Path, folder: Path) -> None:
        np.save(folder / "wide.npy", np.ones((2, 5)))
        message = refused("predict", songs, "wide.npy", "-o", "out.csv")
        assert "wide.npy has 5 features, but the model was fitted to 3" in message
        np.savez(folder / "two.npz", left=np.ones((2, 3)), right=np.ones((2, 3)))
        message = refused("predict", songs, "two.npz", "-o", "out.csv")
        assert "two.npz: holds 2 arrays (left, right)" in message
        np.save(folder / "none.npy", np.ones((0, 3)))
        assert "none.npy: embeddings must be a matrix" in refused(
            "predict", songs, "none.npy", "-o", "out.csv"
        )
        np.save(folder / "hole.npy", np.array([[1, np.nan, 3]]))
        assert "hole.npy" in refused("predict", songs, "hole.npy", "-o", "out.csv")
        (folder / "cut.npz").write_bytes((folder / "two.npz").read_bytes()[:300])
        assert "cut.npz" in refused("predict", songs, "cut.npz", "-o", "out.csv")
        assert "--tags does not apply to .npy" in refused(
            "predict", songs, "wide.npy", "-o", "out.csv", "--tags", "t"
        )

    def test_files_that_are_not_there(self, refused: Refused, songs: Path, news: Path) -> None:
        for name in ("no.npy", "no.npz"):
            assert f"there is no file {name}" in refused("predict", songs, name, "-o", "out.csv")
        for name in ("no.csv", "no.tsv", "no.txt", "no.parquet"):
            assert f"there is no file {name}" in refused("predict", news, name, "-o", "out.csv")

    def test_ids(self, refused: Refused, news: Path, songs: Path, folder: Path) -> None:
        write_rows(folder / "new.csv", ["article", "headline"], [["a", "b"], ["a", "c"]])
        assert "has no column 'artikle'; did you mean 'article'?" in refused(
            "predict", news, "new.csv", "--id", "artikle", "-o", "out.csv"
        )
        assert "--id does not apply to .npy files" in refused(
            "predict", songs, "songs.npy", "--id", "article", "-o", "out.csv"
        )

    def test_cells_that_are_no_numbers(self, refused: Refused, photos_model: Path, folder: Path) -> None:
        for cell in ("", "much"):
            write_rows(folder / "new.csv", ["a", "b", "größe"], [[1, 2, 3], [1, cell, 3]])
            message = refused("predict", photos_model, "new.csv", "-o", "out.csv")
            assert f"new.csv, line 3: column 'b' holds {cell!r}" in message
            # A column that the model wants cannot be ignored.
            assert "fill it in or drop the row" in message
            assert "ignore" not in message

    def test_columns_with_the_same_name(self, refused: Refused, photos_model: Path, folder: Path) -> None:
        write_rows(folder / "new.csv", ["a", "b", "größe", "a"], [[1, 2, 3, 4]])
        assert "found twice: a" in refused("predict", photos_model, "new.csv", "-o", "out.csv")


def test_columns_that_are_not_wanted_may_have_any_name(run: Run, photos_model: Path, folder: Path) -> None:
    write_rows(folder / "new.csv", ["", "a", "b", "größe", ""], [["x", 1, 2, 3, "y"]])
    done(run("predict", photos_model, "new.csv", "-o", "tags.csv"))
    check_lines(folder / "tags.csv", photos_model, np.array([[1.0, 2, 3]]))


def test_blank_lines_in_a_file_of_one_column_are_told(run: Run, news: Path, folder: Path) -> None:
    (folder / "new.csv").write_text('headline\nbeachword1\n\n""\nseaword1\n\n\n')
    said = done(run("predict", news, "new.csv", "-o", "tags.csv"))
    note, wrote = said.splitlines()
    assert note.startswith("Note: 1 blank line ")
    assert wrote == "Wrote tags.csv: 3 rows."
    check_lines(folder / "tags.csv", news, as_column(["beachword1", "", "seaword1"]))
