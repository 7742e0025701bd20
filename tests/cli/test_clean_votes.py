"""``skpml clean --votes``: votes of several annotators beside a table of rows."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from skpml.cleaning import audit
from skpml.likelihood import count_votes
from skpml.tables import Columns, read_table

from .conftest import LABELS, Run, rows_with_tags, write_rows

Refused = Callable[..., str]
N_ROWS, N_ANNOTATORS = 60, 5


@pytest.fixture
def truth() -> np.ndarray:
    _, _, true = rows_with_tags(N_ROWS)
    return np.array([[label in tags.split(";") for label in LABELS] for tags in true])


@pytest.fixture
def photos(folder: Path) -> Path:
    features, _, _ = rows_with_tags(N_ROWS)
    rows = [[f"{i}.png", *row] for i, row in enumerate(features.tolist())]
    return write_rows(folder / "photos.csv", ["file", "a", "b", "c"], rows)


@pytest.fixture
def votes(truth: np.ndarray) -> list[list[str]]:
    """Lines of row, annotator and label; who gives a row nothing has an empty label."""
    rng = np.random.default_rng(0)
    lines = []
    for row, true in enumerate(truth):
        for who in range(N_ANNOTATORS):
            said = np.flatnonzero(rng.random(len(LABELS)) < np.where(true, 0.8, 0.15))
            lines += [[f"{row}.png", f"ann{who}", LABELS[label]] for label in said]
            lines += [] if said.size else [[f"{row}.png", f"ann{who}", ""]]
    return lines


@pytest.fixture
def voted(folder: Path, votes: list[list[str]]) -> Path:
    return write_rows(folder / "votes.csv", ["file", "annotator", "label"], votes)


def lines_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def tags_of(path: Path) -> list[set[str]]:
    return [set(filter(None, line["tags"].split(";"))) for line in lines_of(path)]


def done(run: Run, *arguments: object) -> str:
    result = run("clean", *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_same_as_in_python(
    run: Run, photos: Path, voted: Path, votes: list[list[str]], folder: Path, truth: np.ndarray
) -> None:
    printed = done(run, photos, "--votes", voted, "--id", "file", "-o", "c.csv", "--report", "c.html")
    assert (
        f"Tags from {len(votes)} votes of 5 annotators in {voted}; learning from 3 columns: a, b, c."
        in printed
    )
    assert "judged by the votes" in printed
    rows, annotators, labels = zip(*votes, strict=True)
    names = [f"{row}.png" for row in range(N_ROWS)]
    counted = count_votes(rows, annotators, labels, row_names=names, label_names=LABELS)
    features, _, _ = rows_with_tags(N_ROWS)
    found = audit(features, votes=counted.votes, label_names=LABELS)
    kept = [{LABELS[label] for label in np.flatnonzero(row)} for row in found.clean_labels()]
    assert tags_of(folder / "c.csv") == kept
    data = re.search(r'id="payload">(.*?)</script>', (folder / "c.html").read_text(), re.DOTALL)
    assert data
    page = json.loads(data[1])
    first = len(page["batch"]["drawn"])
    row, label = (
        page["items"][page["cells"]["item"][first]]["row"],
        page["labels"][page["cells"]["label"][first]],
    )
    gave = {who for name, who, each in votes if (name, each) == (f"{row}.png", label)}
    assert {page["votes"]["annotators"][number] for number in page["votes"]["yes"][0]} == gave
    assert len(page["votes"]["yes"][0]) + len(page["votes"]["no"][0]) == N_ANNOTATORS
    assert (found.actions == "drop").any()
    # The other columns stay as they are.
    before = [line.rstrip("\r\n") for line in photos.read_text().splitlines()]
    assert [line.rpartition(",")[0] for line in (folder / "c.csv").read_text().splitlines()] == before
    wrong = [
        len(tags - {LABELS[j] for j in np.flatnonzero(true)}) for tags, true in zip(kept, truth, strict=True)
    ]
    assert sum(wrong) < 0.3 * sum(map(len, kept))


def test_settings_repeat_the_run(run: Run, photos: Path, voted: Path, folder: Path) -> None:
    done(run, photos, "--votes", voted, "--id", "file", "-o", "c.csv")
    assert json.loads((folder / "c.csv.json").read_text())["voted"] == {"votes": "votes.csv"}
    done(run, photos, "--settings", "c.csv.json", "-o", "d.csv")
    assert (folder / "d.csv").read_bytes() == (folder / "c.csv").read_bytes()
    # The cleaned file has a column of tags, which the votes replace.
    done(run, "c.csv", "--settings", "c.csv.json", "-o", "e.csv")
    assert (folder / "e.csv").read_bytes() == (folder / "c.csv").read_bytes()


def test_decisions_about_votes(
    run: Run, photos: Path, voted: Path, votes: list[list[str]], folder: Path
) -> None:
    row, _, label = next(vote for vote in votes if vote[2])
    number = int(row.removesuffix(".png"))
    write_rows(folder / "d.csv", ["id", "row", "label", "decision"], [[row, number, label, "drop"]])
    options = ("--votes", voted, "--id", "file")
    printed = done(run, photos, *options, "--decisions", "d.csv", "-o", "c.csv")
    assert "Checked by a person: 1 tag" in printed
    assert label not in tags_of(folder / "c.csv")[number]
    done(run, "apply", photos, "d.csv", "--settings", "c.csv.json", "-o", "applied.csv")
    expected = [{each for name, _, each in votes if name == f"{i}.png" and each} for i in range(N_ROWS)]
    expected[number].remove(label)
    assert tags_of(folder / "applied.csv") == expected


def test_rows_by_number_and_other_columns(
    run: Run, photos: Path, votes: list[list[str]], folder: Path
) -> None:
    lines = [[who, label, row.removesuffix(".png")] for row, who, label in votes]
    write_rows(folder / "v.csv", ["who", "what", "where"], lines)
    write_rows(folder / "w.csv", ["annotator", "label", "row"], lines)
    done(
        run,
        photos,
        "--votes",
        "v.csv",
        "--vote-columns",
        "where",
        "who",
        "what",
        "--ignore",
        "file",
        "-o",
        "c.csv",
    )
    done(run, photos, "--votes", "w.csv", "--ignore", "file", "-o", "d.csv")
    assert (folder / "c.csv").read_bytes() == (folder / "d.csv").read_bytes()


def test_votes_of_many_annotators_are_counted(
    run: Run, photos: Path, voted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skpml.cli._votes._MOST_CELLS", 10)
    printed = done(run, photos, "--votes", voted, "--id", "file", "-o", "c.csv")
    assert "their votes are counted" in printed


@pytest.mark.parametrize(
    ("change", "line", "message"),
    [
        (lambda lines: [*lines, ["61.png", "ann0", "sea"]], "last", "there is no row '61.png' in photos.csv"),
        (lambda lines: [*lines, lines[0]], "last", "repeats line 2"),
        (lambda lines: [*lines, [lines[0][0], lines[0][1], ""]], "last", "contradicts line 2"),
        (lambda lines: [*lines, ["0.png", "", "sea"]], "last", "needs an annotator"),
        (lambda lines: [*lines, ["0.png", "new", "sea;sky"]], "last", "holds ';'"),
        (
            lambda lines: [line for line in lines if line[0] != "7.png"],
            None,
            "no vote about 1 row of photos.csv: '7.png'",
        ),
        (lambda lines: [], None, "no votes"),
        (
            lambda lines: [[row, who, ""] for row, who in {(row, who) for row, who, _ in lines}],
            None,
            "no label in any",
        ),
    ],
)
def test_bad_votes(
    refused: Refused,
    photos: Path,
    folder: Path,
    votes: list[list[str]],
    change: Callable,
    line: str | None,
    message: str,
) -> None:
    lines = change(votes)
    path = write_rows(folder / "bad.csv", ["file", "annotator", "label"], lines)
    found = refused("clean", photos, "--votes", path, "--id", "file", "-o", "c.csv", "--report", "c.html")
    assert message in found
    assert (f"{path}, line {len(lines) + 1}: " if line else f"{path}: ") in found


def test_bad_files_of_votes(
    refused: Refused, photos: Path, voted: Path, folder: Path, votes: list[list[str]]
) -> None:
    end = ("--id", "file", "-o", "c.csv")
    write_rows(folder / "short.csv", ["file", "label"], [[row, label] for row, _, label in votes])
    found = refused("clean", photos, "--votes", "short.csv", *end)
    assert "short.csv, line 1: has no column 'annotator'" in found
    assert "--vote-columns" in found
    (folder / "empty.csv").write_text("")
    assert "empty.csv" in refused("clean", photos, "--votes", "empty.csv", *end)
    assert "is the table of votes itself" in refused("clean", voted, "--votes", voted, *end)
    assert f"give it as --votes {voted}" in refused("clean", voted, *end)
    assert "--label exclude each other" in refused("clean", photos, "--votes", voted, "--label", "a", *end)
    assert "--vote-columns is for --votes" in refused("clean", photos, "--vote-columns", "a", "b", "c", *end)
    # An error in DATA names DATA, not the copy that was read.
    rows = [[f"{i}.png", "x" if i == 3 else 1.5] for i in range(N_ROWS)]
    write_rows(folder / "broken.csv", ["file", "a"], rows)
    assert refused("clean", "broken.csv", "--votes", voted, *end).startswith(
        "error: broken.csv, line 5: column 'a'"
    )


def test_missing_tags_have_a_probability(run: Run, photos: Path, voted: Path, folder: Path) -> None:
    options = ("--votes", voted, "--id", "file", "--keep-above", 0.3, "--drop-below", 0.2)
    printed = done(run, photos, *options, "-o", "c.csv", "--suggest", "s.csv")
    lines = lines_of(folder / "s.csv")
    assert {line["meaning"] for line in lines} == {"probability"}
    added = [line for line in lines if line["proposal"] == "add"]
    assert added == [line for line in lines if float(line["probability"]) >= 0.3]
    assert ("probably missing" in printed) == bool(added)
    tags = tags_of(folder / "c.csv")
    assert not [line for line in lines if line["label"] in tags[int(line["row"])]]


def write_table(path: Path, columns: dict[str, list]) -> Path:
    """Write columns in the format of the suffix."""
    pd = pytest.importorskip("pandas", reason="needs the extra files")
    frame = pd.DataFrame(columns)
    if path.suffix == ".xlsx":
        pytest.importorskip("openpyxl", reason="needs the extra excel")
        frame.to_excel(path, index=False)
    elif path.suffix in (".json", ".jsonl"):
        frame.to_json(path, orient="records", lines=path.suffix == ".jsonl", double_precision=15)
    elif path.suffix == ".arrow":
        frame.to_feather(path)
    else:
        frame.to_parquet(path)
    return path


@pytest.mark.parametrize(
    ("data", "votes_format"),
    [
        (".json", ".parquet"),
        (".jsonl", ".arrow"),
        (".xlsx", ".jsonl"),
        (".parquet", ".xlsx"),
        (".arrow", ".json"),
    ],
)
def test_votes_and_rows_in_other_formats(
    run: Run, folder: Path, truth: np.ndarray, votes: list[list[str]], data: str, votes_format: str
) -> None:
    features, _, _ = rows_with_tags(N_ROWS)
    names = [f"{row}.png" for row in range(N_ROWS)]
    columns = {"file": names, **dict(zip("abc", features.T.tolist(), strict=True))}
    # A column of tags, which the votes replace, or none.
    columns |= {"tags": ["old"] * N_ROWS} if data in (".json", ".xlsx", ".arrow") else {}
    rows = write_table(folder / f"photos{data}", columns)
    lists = dict(zip(("file", "annotator", "label"), map(list, zip(*votes, strict=True)), strict=True))
    said = write_table(folder / f"votes{votes_format}", lists)
    # Nothing is dropped, so that all labels with votes are there.
    printed = done(run, rows, "--votes", said, "--id", "file", "--drop-below", 0, "-o", f"c{data}")
    assert f"Tags from {len(votes)} votes" in printed
    cleaned = read_table(folder / f"c{data}", columns=Columns(id="file"), separator=";")
    assert cleaned.ids == tuple(names)
    np.testing.assert_allclose(cleaned.X, features, rtol=1e-9)
    found = [{cleaned.label_names[j] for j in np.flatnonzero(row)} for row in cleaned.candidates]
    assert found == [{label for row, _, label in votes if row == name and label} for name in names]


def test_lists_of_labels_are_votes(
    run: Run, refused: Refused, folder: Path, photos: Path, voted: Path
) -> None:
    said: dict[tuple[str, str], list[str]] = {}
    for line in lines_of(voted):
        said.setdefault((line["file"], line["annotator"]), []).extend(filter(None, [line["label"]]))
    records = [{"file": row, "annotator": who, "label": labels} for (row, who), labels in said.items()]
    (folder / "votes.json").write_text(json.dumps(records))
    printed = done(run, photos, "--votes", "votes.json", "--id", "file", "-o", "d.csv")
    assert f"Tags from {len(lines_of(voted))} votes" in printed
    records[3]["label"] = 7
    (folder / "votes.json").write_text(json.dumps(records))
    message = refused("clean", photos, "--votes", "votes.json", "--id", "file", "-o", "e.csv")
    assert "column 'label' holds 7" in message
    tasks = [{"data": {"file": f"{row}.png", "a": 1}, "annotations": []} for row in range(N_ROWS)]
    (folder / "tasks.json").write_text(json.dumps(tasks))
    message = refused("clean", "tasks.json", "--votes", voted, "--id", "file", "-o", "e.json")
    assert "export" in message


def test_images_are_beside_the_rows(run: Run, folder: Path, photos: Path, voted: Path) -> None:
    pictures = pytest.importorskip("PIL.Image", reason="needs scikit-pml[images]")
    for row in range(N_ROWS):
        pictures.new("RGB", (8, 8), (4 * row, 99, 9)).save(folder / f"{row}.png")
    options = ("--id", "file", "--image", "file", "--ignore", "a", "--ignore", "b", "--ignore", "c")
    assert "the images of 'file'" in done(run, photos, "--votes", voted, *options, "-o", "c.csv")
    assert (folder / "photos.csv.images.npz").exists()
