"""The account of the paper's comparison: made again byte for byte, and true of invented runs whose outcome is known."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from report_helpers import make_record

from skpml.experiments import PACK_NAME, load_suite, pack

ROOT = Path(__file__).parents[2]
FLOOR, CEILING = "ridge on candidates", "ridge on truth"
# The floor is at 0.5 everywhere; PML-MA is half way to the ceiling, candidate likelihood three quarters of it.
SKILL = {FLOOR: 0.0, "pml-ma": 0.5, "candidate-likelihood": 0.75, CEILING: 1.0}

pytestmark = pytest.mark.skipif(not (ROOT / "results").is_dir(), reason="needs the repository")


@pytest.fixture(autouse=True)
def _import_from_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def invent(name: str) -> list[dict[str, Any]]:
    """Runs of four methods: the distance from floor to ceiling is 0.20 and 0.22 in turn, and grows by 0.02 per seed."""
    suite = load_suite(name)
    records = []
    for place, configuration in enumerate(suite.configurations):
        for seed in suite.seeds:
            for fold in range(suite.folds):
                for label, skill in SKILL.items():
                    good = 0.5 + skill * (0.2 + 0.02 * (place % 2) + 0.02 * seed)
                    metrics = dict.fromkeys(suite.metrics, 1 - good) | {"average_precision": good}
                    made = make_record(suite, label, configuration, fold, seed=seed, code="0")
                    records.append({**made, "metrics": metrics})
    return records


def write_account(folder: Path, **records: list[dict[str, Any]]) -> str:
    import paper_results

    for name, each in records.items():
        target = folder / name.replace("_", "-")
        target.mkdir(parents=True, exist_ok=True)
        (target / PACK_NAME).write_bytes(pack(each))
    return paper_results.write_account(paper_results.read_stored(folder))


def read_row(account: str, section: str, start: str) -> list[str]:
    """The cells of the first row of a section that starts so."""
    (text,) = re.findall(rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", account, re.DOTALL | re.MULTILINE)
    line = next(line for line in text.splitlines() if line.startswith(f"| {start} |"))
    return [cell.strip() for cell in line.strip("| ").split("|")]


def test_the_stored_account_follows_from_the_stored_runs() -> None:
    account = (ROOT / "results" / "paper" / "account.md").read_text(encoding="utf-8")
    assert write_account(ROOT / "results") == account


def test_the_numbers_of_the_account(tmp_path: Path) -> None:
    records = invent("paper")
    account = write_account(tmp_path, paper=records, paper_seeds=invent("paper-seeds"))
    assert read_row(account, "How complete the runs are", "`paper`")[5:] == ["1040 of 4160", "0", "0 of 26"]
    gain = read_row(account, "What is gained over tuned ridge regression", "Average precision")
    # Half of the gains are 0.10 and half 0.11: t(25) × 0.005 √(26/25) / √26 = 2.0595 × 0.001.
    assert gain[1:6] == ["26", "+0.105 [+0.103, +0.107]", "26 / 0 / 0", "< 0.0001", "+1.00"]
    assert gain[6] == "9"
    # With nine data sets, nine signs of one kind: 2 / 2⁹.
    assert gain[8] == "0.0039"
    # Losses that shrink are gains too.
    assert read_row(account, "What is gained over tuned ridge regression", "Coverage")[2] == gain[2]
    assert read_row(account, "The noise gap", "pml-ma")[1:5] == ["26", "50", "50 to 50", "26"]
    assert read_row(account, "The noise gap", "candidate-likelihood")[2] == "75"
    # Draws: gains of 0.10, 0.11 and 0.12 have a standard deviation of 0.01; folds do not differ.
    draws = read_row(account, "Draws of the noise", f"pml-ma − {FLOOR}")
    assert draws[1:] == ["26", "0.0100", "0.0100", "0.0000"]
    assert f"pml-ma − {FLOOR}: +0.1050, +0.1150, +0.1250;" in account


def test_missing_runs_and_small_gaps_are_left_out_and_counted(tmp_path: Path) -> None:
    records = invent("paper")
    for record in list(records):
        place = (record["run"]["method"], record["run"]["configuration"], record["run"]["fold"])
        if place == ("pml-ma", "birds-4", 3):
            records.remove(record)
        if record["run"]["configuration"] == "scene-3" and record["run"]["trained_on"] == "truth":
            record["metrics"]["average_precision"] = 0.5019
    account = write_account(tmp_path, paper=records)
    assert read_row(account, "How complete the runs are", "`paper`")[5] == "1039 of 4160"
    assert "not complete for pml-ma, pml-plr" in account
    assert read_row(account, "What is gained over tuned ridge regression", "Average precision")[1] == "25"
    assert "Average precision 1 of 26 (scene-3)." in account
    assert read_row(account, "The noise gap", "pml-ma")[1] == "24"
    assert read_row(account, "The noise gap", "candidate-likelihood")[1] == "25"


def test_the_account_does_not_depend_on_order_code_or_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = invent("paper")
    first = write_account(tmp_path / "one", paper=records)
    random.Random(0).shuffle(records)
    monkeypatch.setenv("SKPML_DATA", str(tmp_path))
    monkeypatch.setattr("skpml.experiments._runs.fingerprint", lambda *_, **__: "1")
    assert write_account(tmp_path / "other", paper=records) == first
    assert "older" not in first
    assert "absent" not in first
