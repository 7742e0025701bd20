"""Benchmarks never replace the kept results of a whole run by those of a part."""

import argparse
import csv
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _import_from_benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def test_a_table_is_written_by_a_whole_run_only(tmp_path, capsys):
    from keeping import write_if_whole

    parser = argparse.ArgumentParser()
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    path = tmp_path / "table.md"
    write_if_whole(path, "whole", parser, parser.parse_args(["--jobs", "2"]), "folds")
    write_if_whole(path, "part", parser, parser.parse_args(["--folds", "1"]), "folds")
    assert path.read_text() == "whole"
    assert "folds" in capsys.readouterr().out


def test_rows_of_a_part_replace_only_their_own(tmp_path, monkeypatch):
    import reproduce

    path = tmp_path / "reproduction.csv"
    path.write_bytes((ROOT / "results" / "reproduction.csv").read_bytes())
    kept = reproduce.read(path)
    part = [row for row in kept if (row["configuration"], row["seed"]) == ("emotions-3", "0")]
    monkeypatch.setattr(
        reproduce,
        "run_fold",
        lambda name, seed, fold: [{**row, "n_iter": 99} for row in part if row["fold"] == str(fold)],
    )
    monkeypatch.setattr(
        sys, "argv", ["reproduce.py", "emotions-3", "--seeds", "1", "--jobs", "1", "--output", str(path)]
    )
    reproduce.main()
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(kept)
    changed = [row for row, before in zip(rows, kept, strict=True) if row != before]
    assert len(changed) == len(part)
    assert {(row["configuration"], row["seed"], row["n_iter"]) for row in changed} == {
        ("emotions-3", "0", "99")
    }


def test_the_tables_follow_from_the_kept_rows(tmp_path):
    import reproduce

    rows = reproduce.read(ROOT / "results" / "reproduction.csv")
    reproduce.write(rows, tmp_path / "reproduction.csv")
    reproduce.report(rows, tmp_path / "reproduction.csv")
    for name in ("reproduction.csv", "reproduction.md"):
        assert (tmp_path / name).read_bytes() == (ROOT / "results" / name).read_bytes()


@pytest.mark.parametrize("name", ["variants", "ablation", "sensitivity", "convergence", "decomposition"])
def test_an_account_follows_from_the_kept_runs(name):
    import paper_parts

    account = paper_parts.ACCOUNTS[name](paper_parts.read(name)) + "\n"
    assert account == (ROOT / "results" / name / "account.md").read_text(encoding="utf-8")


def test_a_part_of_the_gaps_replaces_only_its_own(tmp_path, monkeypatch):
    import gaps

    kept = gaps.read()
    monkeypatch.setattr(gaps, "OUTPUT", tmp_path / "gaps.csv")
    monkeypatch.setattr(
        gaps, "run_fold", lambda *run: dict(zip(gaps.FIELDS, (*run, 0.125), strict=True)) | {"fold": run[-1]}
    )
    gaps.merge(kept)
    part = ["--redo", "--methods", "pml-fp", "--configurations", "yeast-7", "--jobs", "1"]
    monkeypatch.setattr(sys, "argv", ["gaps.py", *part])
    gaps.main()
    rows = gaps.read()
    assert len(rows) == len(kept)
    changed = [row for row, before in zip(rows, kept, strict=True) if row != before]
    assert len(changed) == len(gaps.CHANGES["pml-fp"]) * len(gaps.folds_of("pml-fp", "yeast-7"))
    assert {(row["method"], row["configuration"], row["average_precision"]) for row in changed} == {
        ("pml-fp", "yeast-7", 0.125)
    }


def test_the_table_of_the_gaps_follows_from_the_kept_rows():
    import gaps

    assert gaps.markdown(gaps.read()) == (ROOT / "results" / "gaps.md").read_text(encoding="utf-8")


def test_the_table_of_scale_compares_within_a_run(tmp_path, monkeypatch):
    import scale

    def row(method, rows, seconds, where="2 cores", started="monday"):
        return dict(method=method, rows=rows, where=where, seconds=seconds, started=started, memory_gb=1)

    ours, ridge = "pml-ma", "scikit-learn ridge"
    monkeypatch.setattr(scale, "OUTPUT", tmp_path / "scale.csv")
    scale.merge([row(ours, 1000, 12), row(ridge, 1000, 3), row(ours, 4000, 96)])
    scale.merge([row(ridge, 4000, 4, started="tuesday"), row(ours, 1000, 10, "dask 1")])
    scale.merge([row(ours, 1000, 4, "dask 2")])
    assert scale.format_tables(scale.read()) == (tmp_path / "scale.md").read_text(encoding="utf-8")
    lines = [line.split(" | ") for line in (tmp_path / "scale.md").read_text(encoding="utf-8").splitlines()]
    small, large = (next(line for line in lines if line[:2] == [f"| {n}", ours]) for n in ("1,000", "4,000"))
    # Four times as many rows took eight times as long; Ridge was measured in another run then.
    assert (small[4], large[4], large[5]) == ("4.0", "", "1.50")
    assert next(line for line in lines if line[2:3] == ["2"])[-1] == "2.50 |"
