"""One table written in many ways: every command sees the same rows, features and labels."""

from __future__ import annotations

import csv
import io
import json
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skpml.datasets import read_dataset
from skpml.io import load_model, read_model_info
from skpml.metrics import evaluate
from skpml.reference import CandidateRidge

from .conftest import Run

pytest.importorskip("skops.io")
pytest.importorskip("pydantic")

LABELS = ("beach", "café", "sky")
N_ROWS = 36
RIDGE = ("--method", "ridge")


@dataclass
class Data:
    """The content of a table, whatever its format."""

    X: np.ndarray
    candidates: np.ndarray
    truth: np.ndarray

    def fit(self) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return CandidateRidge(random_state=0).fit(self.X, self.candidates)

    def tags(self, name: str, separator: str = ";") -> list[str]:
        return [separator.join(np.array(LABELS)[row > 0]) for row in getattr(self, name)]


@dataclass
class Odd:
    """How a file is written, and the options that describe it."""

    suffix: str
    write: Callable[[Path, Data], None]
    feature_names: tuple[str, str] = ("x", "y")
    reading: dict[str, Any] = field(default_factory=lambda: {"tags": "tags", "true_tags": "checked"})
    empty_rows: tuple[int, ...] = ()

    @property
    def labels_only(self) -> dict[str, Any]:
        """The options without true labels, whose columns are ignored."""
        named = [name for key in ("true_tags", "true_labels") for name in _as_list(self.reading.get(key, []))]
        kept = {key: value for key, value in self.reading.items() if not key.startswith("true_")}
        return {**kept, "ignore": [*kept["ignore"], *named]}

    def __post_init__(self) -> None:
        self.reading = {"ignore": ["name", "note"], **self.reading}


def _as_list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def options(reading: dict[str, Any]) -> list[str]:
    """Command line options for the arguments of a reader."""
    flags = {"labels": "--label", "true_labels": "--true-label", "true_tags": "--true-tags"}
    return [
        part for name, value in reading.items() for one in _as_list(value) for part in (flags.get(name, f"--{name}"), one)
    ]  # fmt: skip


def text(
    *, delimiter: str = ",", decimal: str = ".", separator: str = ";", encoding: str = "utf-8", end: str = "\n",
    names: Sequence[str] = ("x", "y"), note: str = 'say "hi"', flags: bool = False,
) -> Callable[[Path, Data], None]:  # fmt: skip
    """Return a writer of text files."""

    def write(path: Path, data: Data) -> None:
        content = io.StringIO(newline="")
        writer = csv.writer(content, delimiter=delimiter, lineterminator=end)
        if flags:
            header = [*LABELS, *(f"true {label}" for label in LABELS)]
            cells: list[list[Any]] = np.hstack([data.candidates, data.truth]).tolist()
        else:
            header = ["tags", "checked"]
            cells = [
                list(row)
                for row in zip(data.tags("candidates", separator), data.tags("truth", separator), strict=True)
            ]
        writer.writerow(["name", *names, "note", *header])
        for row, numbers in enumerate(data.X.tolist()):
            shown = [repr(number).replace(".", decimal) for number in numbers]
            writer.writerow([f"r{row}", *shown, note, *cells[row]])
        path.write_bytes(content.getvalue().encode(encoding))

    return write


def parquet(path: Path, data: Data) -> None:
    """Write lists of tags, with null for a row without tags."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as pq

    lists = {
        name: [[LABELS[j] for j in np.flatnonzero(row)] or None for row in getattr(data, name)]
        for name in ("candidates", "truth")
    }
    columns = {
        "name": [f"r{row}" for row in range(N_ROWS)],
        "x": data.X[:, 0],
        "y": data.X[:, 1],
        "note": ["-"] * N_ROWS,
    }
    pq.write_table(pa.table({**columns, "tags": lists["candidates"], "checked": lists["truth"]}), path)


SPACED = ('width in "cm"', "it's, y")
TAGS = {"tags": "tags", "true_tags": "checked"}
FLAGS = {"labels": list(LABELS), "true_labels": [f"true {label}" for label in LABELS]}
ODD_FILES = {
    "plain": Odd(".csv", text()),
    "semicolons and decimal commas": Odd(
        ".csv", text(delimiter=";", decimal=",", separator="|"), reading={**TAGS, "separator": "|"}
    ),
    "tsv": Odd(".tsv", text(delimiter="\t")),
    "tabs in txt": Odd(".txt", text(delimiter="\t", decimal=",")),
    "utf-16": Odd(".csv", text(encoding="utf-16")),
    "latin-1": Odd(".csv", text(encoding="latin-1", delimiter=";", separator="/"), reading={**TAGS, "separator": "/"}),
    "byte order mark": Odd(".csv", text(encoding="utf-8-sig")),
    "cells with newlines": Odd(".csv", text(note='two\nlines, "quoted"; and more')),
    "0/1 columns": Odd(".csv", text(flags=True), reading=FLAGS),
    "commas between tags": Odd(".csv", text(separator=","), reading={**TAGS, "separator": ","}),
    "rows without tags": Odd(".csv", text(), empty_rows=(3, 20)),
    "crlf, odd column names": Odd(".csv", text(end="\r\n", names=SPACED), feature_names=SPACED),
    "parquet with nulls": Odd(".parquet", parquet, empty_rows=(0, 7)),
}  # fmt: skip


def make_data(empty_rows: Sequence[int]) -> Data:
    rng = np.random.default_rng(0)
    truth = rng.random((N_ROWS, 3)) < 0.4
    truth[np.arange(N_ROWS), rng.integers(3, size=N_ROWS)] = True
    candidates = truth | (rng.random(truth.shape) < 0.3)
    # Few digits, so that every format holds the same numbers.
    X = np.round(truth @ rng.normal(size=(3, 2)) + 0.1 * rng.normal(size=(N_ROWS, 2)), 3) + 0.0005
    for matrix in (truth, candidates):
        matrix[list(empty_rows)] = False
    return Data(X, candidates.astype(np.uint8), truth.astype(np.uint8))


@pytest.fixture(params=ODD_FILES)
def odd(request: pytest.FixtureRequest, folder: Path) -> tuple[Odd, Path, Data]:
    kind = ODD_FILES[request.param]
    data = make_data(kind.empty_rows)
    path = folder / f"odd{kind.suffix}"
    kind.write(path, data)
    return kind, path, data


def done(result: Any) -> str:
    assert result.exit_code == 0, result.output
    return result.stdout


def check_dataset(path: str, kind: Odd, data: Data, *, truth: bool = True) -> None:
    found = read_dataset(path, on_empty="ignore")
    np.testing.assert_allclose(found.X, data.X, rtol=1e-15)
    np.testing.assert_array_equal(found.candidates, data.candidates)
    assert (found.feature_names, found.label_names) == (kind.feature_names, LABELS)
    if truth:
        np.testing.assert_array_equal(found.truth, data.truth)


def test_data_commands(run: Run, odd: tuple[Odd, Path, Data]) -> None:
    kind, path, data = odd
    shown = done(run("data", "info", path, *options(kind.reading)))
    assert re.search(r"^features +2$", shown, re.MULTILINE)
    assert re.search(rf"^labels +3: {', '.join(LABELS)}$", shown, re.MULTILINE)
    assert f"candidates per row        {data.candidates.sum() / N_ROWS:.2f}" in shown
    done(run("data", "import", path, *options(kind.reading), "-o", "odd.npz"))
    check_dataset("odd.npz", kind, data)


@pytest.mark.slow
def test_models(run: Run, folder: Path, odd: tuple[Odd, Path, Data]) -> None:
    """``fit``, ``predict`` and ``evaluate`` agree with the library on plain arrays."""
    kind, path, data = odd
    given = options(kind.reading)
    done(run("fit", path, *given, *RIDGE, "-o", "m.skpml", "--allow-empty"))
    expected = data.fit()
    model, info = load_model(folder / "m.skpml"), read_model_info(folder / "m.skpml")
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
    assert (info.feature_names, info.label_names) == (kind.feature_names, LABELS)

    done(run("predict", "m.skpml", path, "--id", "name", "-o", "p.csv"))
    with (folder / "p.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert [line["id"] for line in lines] == [f"r{row}" for row in range(N_ROWS)]
    found = [[float(line[f"probability:{label}"]) for label in LABELS] for line in lines]
    np.testing.assert_allclose(found, expected.predict_proba(data.X), rtol=1e-5)

    report = json.loads(done(run("evaluate", "m.skpml", path, *given, "--json")))
    metrics = evaluate(data.truth, expected.decision_function(data.X), expected.predict(data.X))
    assert report["metrics"] == pytest.approx(metrics)


def test_clean_and_what_it_writes(run: Run, folder: Path, odd: tuple[Odd, Path, Data]) -> None:
    kind, path, data = odd
    given = [*options(kind.labels_only), "--id", "name"]
    given = [
        part
        for pair in zip(given[::2], given[1::2], strict=True)
        if pair != ("--ignore", "name")
        for part in pair
    ]
    cleaned = f"cleaned{kind.suffix}"
    fast = (*RIDGE, "--folds", 2, "--drop-below", 0)
    shown = done(run("clean", path, *given, *fast, "-o", cleaned, "--model", "c.skpml"))
    assert f"{N_ROWS} rows, 3 labels, {data.candidates.sum()} tags." in shown
    expected = data.fit()
    np.testing.assert_allclose(load_model(folder / "c.skpml").coef_, expected.coef_, rtol=1e-9, atol=1e-12)
    if kind.suffix != ".parquet":
        assert (folder / cleaned).read_bytes() == path.read_bytes()

    row, label = np.argwhere(data.candidates)[5]
    decisions = f"id,row,label,decision\nr{row},{row},{LABELS[label]},drop\n"
    (folder / "decisions.csv").write_text(decisions, encoding="utf-8")
    done(
        run(
            "clean",
            "apply",
            path,
            "decisions.csv",
            "--settings",
            f"{cleaned}.json",
            "-o",
            f"final{kind.suffix}",
        )
    )
    data.candidates[row, label] = 0
    done(run("data", "import", f"final{kind.suffix}", *options(kind.labels_only), "-o", "final.npz"))
    check_dataset("final.npz", kind, data, truth=False)


def test_bench(run: Run, folder: Path, odd: tuple[Odd, Path, Data]) -> None:
    kind, path, data = odd
    plain = folder / "plain.csv"
    text(names=kind.feature_names)(plain, data)
    found = {}
    for source, reading in ((path, kind.reading), (plain, ODD_FILES["plain"].reading)):
        keys = ", ".join(
            f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in reading.items()
        )
        (folder / "suite.toml").write_text(
            f'name = "odd"\nconfigurations = ["{source.name}"]\nfolds = 2\n'
            f'reading = {{ "{source.name}" = {{ {keys} }} }}\n[[methods]]\nname = "linear-ridge"\n',
            encoding="utf-8",
        )
        out = folder / f"out {source.name}"
        done(run("bench", "run", "suite.toml", "--folder", out, "--no-report"))
        records = [json.loads(file.read_text()) for file in sorted((out / "runs").glob("*.json"))]
        found[source] = sorted(
            (record["run"]["fold"], sorted(record["metrics"].items())) for record in records
        )
    assert len(found[path]) == 2
    assert found[path] == found[plain]


def test_escape_sequences_do_not_reach_the_terminal(run: Run, folder: Path) -> None:
    rows = "".join(f"{row % 7},{'sky' if row % 2 else chr(27) + '[31mred'}\n" for row in range(30))
    (folder / "odd.csv").write_text(f"x,tags\n{rows}")
    for arguments in (("data", "info", "odd.csv"), ("clean", "odd.csv", "-o", "c.csv", "--tags", "\x1b[31m")):
        found = run(*arguments)
        assert "\x1b" not in found.output
        assert "red" in found.output or found.exit_code == 2
