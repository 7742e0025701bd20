"""``skpml clean`` with what a person has checked: decisions of the page, columns of the file, and missing tags."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from skpml.cleaning import Decisions, audit, read_decisions, write_decisions
from skpml.tables import Columns, Table, read_table

from .conftest import LABELS, Run, rows_with_tags, write_rows

Refused = Callable[..., str]
FAST = ("--id", "file", "--method", "ridge", "--folds", "3")
N_ROWS = 200


@pytest.fixture
def truth() -> np.ndarray:
    """Which labels are true."""
    _, _, true = rows_with_tags(N_ROWS)
    return np.array([[label in tags.split(";") for label in LABELS] for tags in true])


@pytest.fixture
def tagged(folder: Path) -> Path:
    features, tags, _ = rows_with_tags(N_ROWS)
    rows = [[f"{i}.png", *row, tag] for i, (row, tag) in enumerate(zip(features.tolist(), tags, strict=True))]
    return write_rows(folder / "photos.csv", ["file", "a", "b", "c", "tags"], rows)


def read(path: Path) -> Table:
    return read_table(path, columns=Columns(id="file"))


def answer(table: Table, truth: np.ndarray, earlier: Decisions | None = None, size: int = 40) -> Decisions:
    """Decide the batch of an audit like that of the command, rightly."""
    options = {}
    if earlier is not None:
        sample = earlier.random_sample(table).cells
        options = {"verified": earlier.verified(table), "at_random": sample}
    found = audit(table.X, table.candidates, method="ridge", n_folds=3, batch_size=size, **options)
    rows, labels, drawn = (
        np.array([getattr(question, name) for question in found.batch]) for name in ("row", "label", "drawn")
    )
    new = {"rows": rows, "labels": labels, "keep": truth[rows, labels], "confidence": np.full(len(rows), np.nan),
           "drawn": drawn}  # fmt: skip
    if earlier is not None:
        new = {name: np.concatenate([getattr(earlier, name), values]) for name, values in new.items()}
    return Decisions(**new)


def done(run: Run, *arguments: object) -> str:
    result = run("clean", *arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def tags_of(path: Path) -> list[set[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return [set(filter(None, row["tags"].split(";"))) for row in csv.DictReader(file)]


def width(printed: str) -> int:
    found = re.search(r"between ([\d,]+) and ([\d,]+)", printed)
    assert found, printed
    low, high = (int(number.replace(",", "")) for number in found.groups())
    return high - low


def test_the_command_asks_and_says_what_to_do_next(run: Run, tagged: Path) -> None:
    printed = done(run, tagged, "-o", "c.csv", "--report", "c.html", "--batch", 40, *FAST)
    last = printed.splitlines()[-1]
    assert last == "Next: open c.html, check 40 tags, export, and run again with --decisions FILE --force."
    printed = done(run, tagged, "-o", "d.csv", "--batch", 1, *FAST)
    assert printed.splitlines()[-1].startswith("Next: write a page by --report PAGE.html, check 1 tag, ")


def test_a_run_that_has_nothing_to_ask_says_so(
    run: Run, tagged: Path, folder: Path, truth: np.ndarray
) -> None:
    options = ("-o", "c.csv", "--batch", 0, "--force", *FAST)
    asking = done(run, tagged, *options, "--drop-below", 0, "--keep-above", 1)
    assert asking.splitlines()[-1].startswith("Next: write a page by --report PAGE.html, decide ")
    sure = done(run, tagged, *options, "--budget", 0).splitlines()[-1]
    assert "Next" not in sure
    assert "--batch 100" in sure
    table = read(tagged)
    rows, labels = np.nonzero(table.candidates)
    keep = truth[rows, labels]
    every = Decisions(rows=rows, labels=labels, keep=keep, confidence=np.full(len(rows), np.nan))
    write_decisions(every, table, folder / "d.csv")
    last = done(run, tagged, "-o", "d2.csv", "--decisions", "d.csv", *FAST).splitlines()[-1]
    assert last.startswith("All tags are checked")


def test_what_was_decided_is_kept_exactly(run: Run, tagged: Path, folder: Path, truth: np.ndarray) -> None:
    """Also where the model is sure of the contrary: every other answer is wrong on purpose."""
    table = read(tagged)
    rows, labels = np.nonzero(table.candidates)
    keep = truth[rows, labels] ^ (np.arange(len(rows)) % 2 == 0)
    some = np.arange(len(rows)) % 3 == 0
    decisions = Decisions(
        rows=rows[some], labels=labels[some], keep=keep[some], confidence=np.full(some.sum(), np.nan)
    )
    write_decisions(decisions, table, folder / "d.csv")
    printed = done(run, tagged, "-o", "c.csv", "--decisions", "d.csv", "--audit", "doubts.csv", *FAST)
    assert f"Checked by a person: {some.sum():,} tags, none of them at random." in printed
    before, after = tags_of(tagged), tags_of(folder / "c.csv")
    for row, label, kept in zip(rows[some], labels[some], keep[some], strict=True):
        name = table.label_names[label]
        assert name in before[row]
        assert (name in after[row]) == kept
    with (folder / "doubts.csv").open(newline="") as file:
        asked = {(int(line["row"]), line["label"]) for line in csv.DictReader(file)}
    assert not asked & {
        (row, table.label_names[label]) for row, label in zip(rows[some], labels[some], strict=True)
    }


def test_added_tags_are_in_every_output(run: Run, tagged: Path, folder: Path) -> None:
    before = tags_of(tagged)
    row = next(row for row, tags in enumerate(before) if 1 < len(tags) < len(LABELS))
    lacking, dropped = next(label for label in LABELS if label not in before[row]), min(before[row])
    lines = [[f"{row}.png", row, lacking, "add"], [f"{row}.png", row, dropped, "drop"]]
    write_rows(folder / "d.csv", ["id", "row", "label", "decision"], lines)
    expected = {*before[row], lacking} - {dropped}
    printed = done(
        run, tagged, "-o", "c.csv", "--decisions", "d.csv", "--report", "c.html", "--label-studio", "c.json",
        "--suggest", "s.csv", "--drop-below", 0, *FAST,
    )  # fmt: skip
    assert "Added 1 tag" in printed
    assert tags_of(folder / "c.csv")[row] == expected
    task = json.loads((folder / "c.json").read_text())[row]
    assert set(task["predictions"][0]["result"][0]["value"]["choices"]) == expected
    data = re.search(r'id="payload">(.*?)</script>', (folder / "c.html").read_text(), re.DOTALL)
    assert data
    assert json.loads(data[1])["earlier"]["decision"] == ["add", "drop"]
    with (folder / "s.csv").open(newline="") as file:
        assert not [
            line for line in csv.DictReader(file) if (int(line["row"]), line["label"]) == (row, lacking)
        ]
    printed = done(run, "apply", tagged, "d.csv", "--id", "file", "-o", "a.csv")
    assert "2 decisions: 1 tag dropped, 0 kept, 1 added." in printed
    assert tags_of(folder / "a.csv")[row] == expected
    other = [tags for number, tags in enumerate(before) if number != row]
    assert [tags for number, tags in enumerate(tags_of(folder / "a.csv")) if number != row] == other


def test_two_rounds_narrow_the_interval(run: Run, tagged: Path, folder: Path, truth: np.ndarray) -> None:
    table = read(tagged)
    first = answer(table, truth)
    write_decisions(first, table, folder / "first.csv")
    second = answer(table, truth, first, size=160)
    write_decisions(second, table, folder / "second.csv")
    widths = []
    for name, decisions in (("first", first), ("second", second)):
        printed = done(run, tagged, "-o", f"{name}_clean.csv", "--decisions", f"{name}.csv", *FAST)
        n_sample = decisions.random_sample(table).cells.sum()
        checked = f"Checked by a person: {len(decisions)} tags, {n_sample} of them a random sample."
        assert checked in printed
        assert f"judged by {n_sample} random checks." in printed
        widths.append(width(printed))
    assert widths[1] <= widths[0]


def test_a_run_with_decisions_is_repeated_by_its_settings(
    run: Run, tagged: Path, folder: Path, truth: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = read(tagged)
    (folder / "out").mkdir()
    write_decisions(answer(table, truth), table, folder / "d.csv")
    options = ("--decisions", "d.csv", "--batch", 30, "--report")
    first = done(run, tagged, "-o", "out/one.csv", *options, "out/one.html", *FAST)
    stored = json.loads((folder / "out" / "one.csv.json").read_text())
    assert Path(stored["checked"]["decisions"]) == Path("..", "d.csv")
    assert stored["audit"]["batch_size"] == 30
    monkeypatch.chdir(folder / "out")
    again = done(run, tagged, "--settings", "one.csv.json", "-o", "two.csv", "--report", "two.html")
    assert again == first.replace("out/one", "two")
    for suffix in ("csv", "html", "csv.json"):
        assert Path(f"one.{suffix}").read_bytes() == Path(f"two.{suffix}").read_bytes()


def test_another_seed_makes_the_sample_a_mere_choice(
    run: Run, tagged: Path, folder: Path, truth: np.ndarray
) -> None:
    table = read(tagged)
    decisions = answer(table, truth)
    write_decisions(decisions, table, folder / "d.csv")
    printed = done(run, tagged, "-o", "c.csv", "--decisions", "d.csv", "--seed", 1, *FAST)
    n_drawn = np.count_nonzero(decisions.drawn)
    assert (
        f"{n_drawn} decisions about random tags are not part of the random sample: another --seed" in printed
    )
    assert "40 tags, none of them at random." in printed


def test_an_undecided_tag_ends_the_sample(run: Run, tagged: Path, folder: Path, truth: np.ndarray) -> None:
    table = read(tagged)
    decisions = answer(table, truth)
    write_decisions(decisions, table, folder / "d.csv")
    lines = (folder / "d.csv").read_bytes().splitlines(keepends=True)
    fourth = next(place for place, line in enumerate(lines) if line.rstrip().endswith(b",4"))
    (folder / "d.csv").write_bytes(b"".join(lines[:fourth] + lines[fourth + 1 :]))
    printed = done(run, tagged, "-o", "c.csv", "--decisions", "d.csv", *FAST)
    assert "an earlier one of the random order is undecided" in printed
    assert "39 tags, 3 of them a random sample." in printed


class TestVerifiedColumns:
    """Two columns of the file that list confirmed and rejected tags."""

    @pytest.fixture
    def checked(self, folder: Path, tagged: Path, truth: np.ndarray) -> Path:
        """Every fifth row was checked: all its tags, and one that it may lack."""
        with tagged.open(newline="") as file:
            header, *rows = csv.reader(file)
        for number, row in enumerate(rows):
            named = sorted({*row[-1].split(";"), "sea"}) if number % 5 == 0 else []
            right = [tag for tag in named if truth[number, LABELS.index(tag)]]
            row += ["; ".join(right), ";".join(tag for tag in named if tag not in right)]
        return write_rows(folder / "checked.csv", [*header, "yes", "no"], rows)

    def test_they_are_neither_features_nor_tags_and_decide(
        self, run: Run, checked: Path, folder: Path, truth: np.ndarray
    ) -> None:
        columns = ("--verified-columns", "yes", "no")
        printed = done(run, checked, "-o", "c.csv", *columns, "--suggest", "s.csv", *FAST)
        assert "learning from 3 columns: a, b, c." in printed
        before, after = tags_of(checked), tags_of(folder / "c.csv")
        for row in range(0, N_ROWS, 5):
            # A confirmed tag that the row lacks is added.
            assert after[row] == {tag for tag in {*before[row], "sea"} if truth[row, LABELS.index(tag)]}
        assert json.loads((folder / "c.csv.json").read_text())["checked"] == {
            "verified_columns": ["yes", "no"]
        }
        again = done(run, checked, "-o", "d.csv", "--settings", "c.csv.json")
        assert (folder / "d.csv").read_bytes() == (folder / "c.csv").read_bytes()
        assert "Checked by a person" in again
        # A tag that somebody has confirmed or rejected is not suggested.
        with (folder / "s.csv").open(newline="") as file:
            assert not [
                line for line in csv.DictReader(file) if int(line["row"]) % 5 == 0 and line["label"] == "sea"
            ]

    def test_the_page_exports_them(self, run: Run, checked: Path, folder: Path) -> None:
        done(run, checked, "-o", "c.csv", "--verified-columns", "yes", "no", "--report", "c.html", *FAST)
        data = re.search(r'id="payload">(.*?)</script>', (folder / "c.html").read_text(), re.DOTALL)
        assert data
        earlier = json.loads(data[1])["earlier"]
        assert {row % 5 for row in earlier["row"]} == {0}
        with checked.open(newline="") as file:
            confirmed = [set(filter(None, row["yes"].split("; "))) for row in csv.DictReader(file)]
        tags = tags_of(checked)
        assert len(earlier["row"]) == sum(len(tags[row] | confirmed[row]) for row in range(0, N_ROWS, 5))
        assert earlier["decision"].count("add") == sum(
            len(confirmed[row] - tags[row]) for row in range(0, N_ROWS, 5)
        )

    @pytest.mark.parametrize(
        ("change", "problem"),
        [
            (("yes", "see"), "only labels among"),
            (("no", "sea"), "is in column 'yes' and in 'no'"),
        ],
    )
    def test_what_they_cannot_hold(
        self, refused: Refused, checked: Path, change: tuple[str, str], problem: str
    ) -> None:
        with checked.open(newline="") as file:
            header, *rows = csv.reader(file)
        rows[1][header.index("yes")] = "sea"
        rows[1][header.index(change[0])] = change[1]
        write_rows(checked, header, rows)
        assert problem in refused("clean", checked, "-o", "c.csv", "--verified-columns", "yes", "no", *FAST)

    def test_a_column_that_is_not_there(self, refused: Refused, checked: Path) -> None:
        message = refused("clean", checked, "-o", "c.csv", "--verified-columns", "yess", "no", *FAST)
        assert "has no column 'yess'; did you mean 'yes'?" in message

    def test_decisions_that_contradict_them(self, refused: Refused, checked: Path, folder: Path) -> None:
        with checked.open(newline="") as file:
            row = next(csv.DictReader(file))
        tag, word = (row["yes"].split(";")[0], "drop") if row["yes"] else (row["no"].split(";")[0], "keep")
        write_rows(folder / "d.csv", ["id", "row", "label", "decision"], [["0.png", 0, tag, word]])
        columns = ("--verified-columns", "yes", "no", "--decisions", "d.csv")
        message = refused("clean", checked, "-o", "c.csv", *columns, *FAST)
        assert f"d.csv contradicts the columns of {checked} about tag {tag!r} of row 0" in message


def test_accepted_suggestions_are_kept_and_not_learned_from(run: Run, tagged: Path, folder: Path) -> None:
    tag = sorted(tags_of(tagged)[0])[0]
    header = ["id", "row", "label", "decision", "confidence", "by"]
    write_rows(folder / "d.csv", header, [["0.png", 0, tag, "drop", "", "model"]])
    printed = done(run, tagged, "-o", "c.csv", "--decisions", "d.csv", *FAST)
    assert tag not in tags_of(folder / "c.csv")[0]
    assert "Checked by" not in printed


def test_apply_takes_the_columns_of_a_sample(run: Run, tagged: Path, folder: Path, truth: np.ndarray) -> None:
    table = read(tagged)
    decisions = answer(table, truth)
    write_decisions(decisions, table, folder / "d.csv")
    assert (read_decisions(folder / "d.csv", table).drawn == decisions.drawn).all()
    printed = done(run, "apply", tagged, "d.csv", "--id", "file", "-o", "c.csv")
    assert f"40 decisions: {np.count_nonzero(~decisions.keep)} tags dropped" in printed


def test_missing_tags_are_ranked_only(run: Run, tagged: Path, folder: Path) -> None:
    done(run, tagged, "-o", "c.csv", "--suggest", "s.csv", *FAST)
    with (folder / "s.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    tags = tags_of(tagged)
    assert lines
    assert not [line for line in lines if line["label"] in tags[int(line["row"])]]
    assert [int(line["rank"]) for line in lines] == list(range(1, len(lines) + 1))
    assert {(line["probability"], line["meaning"], line["proposal"]) for line in lines} == {
        ("", "rank only", "")
    }


def test_checked_tags_that_rows_lack_make_it_a_probability(
    run: Run, tagged: Path, folder: Path, truth: np.ndarray
) -> None:
    """Somebody removed true tags from the file, and looked for missing tags in some rows."""
    with tagged.open(newline="") as file:
        header, *rows = csv.reader(file)
    rng = np.random.default_rng(0)
    for number, row in enumerate(rows):
        tags = [
            tag for tag in row[-1].split(";") if not truth[number, LABELS.index(tag)] or rng.random() < 0.7
        ]
        lacking = [tag for tag in LABELS if tag not in tags] if number % 3 == 0 else []
        right = [tag for tag in lacking if truth[number, LABELS.index(tag)]]
        row[-1] = ";".join(tags)
        row += [";".join(right), ";".join(tag for tag in lacking if tag not in right)]
    write_rows(tagged, [*header, "yes", "no"], rows)
    columns = ("--verified-columns", "yes", "no", "--suggest", "s.csv", "--keep-above", 0.6)
    printed = done(run, tagged, "-o", "c.csv", *columns, *FAST)
    with (folder / "s.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert {line["meaning"] for line in lines} == {"probability"}
    p = np.array([float(line["probability"]) for line in lines])
    assert (np.diff(p) <= 0).all()
    true = np.array([truth[int(line["row"]), LABELS.index(line["label"])] for line in lines])
    assert abs(p.mean() - true.mean()) < 0.1
    added = [line["proposal"] == "add" for line in lines]
    assert added == (p >= 0.6).tolist()
    assert any(added)
    assert (
        f"{sum(added)} tags are probably missing; none is added, and --suggest OUT.csv lists them." in printed
    )
    # Only what somebody has confirmed is added.
    before, after = tags_of(tagged), tags_of(folder / "c.csv")
    assert {row % 3 for row, tags in enumerate(after) if tags - before[row]} == {0}
