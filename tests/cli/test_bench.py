"""``skpml bench run`` and ``status``: what people see of an experiment."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import skpml.cli._bench_output
from skpml.datasets import PartialDataset, load_dataset, write_npz
from skpml.experiments import Store

from .conftest import Run

SUITE = """name = "mine"
configurations = ["digits-5", "emotions-3"]
folds = 2
[[methods]]
name = "linear-ridge"
[[methods]]
name = "linear-ridge"
label = "ceiling"
role = "ceiling"
"""


@pytest.fixture
def suite(folder: Path) -> Path:
    path = folder / "mine.toml"
    path.write_text(SUITE)
    return path


def lines(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_a_suite_is_run_reported_and_then_done(run: Run, suite: Path, folder: Path) -> None:
    first = run("bench", "run", suite, "--folder", "out")
    assert first.exit_code == 0, first.output
    assert first.stdout.startswith("mine: 4 runs done in ")
    assert f"Wrote {Path('out') / 'mine.html'}." in first.stdout
    assert "skipped emotions-3: the data set 'emotions' is not in " in first.stderr
    assert "1 of 2 configurations are absent" in first.stderr
    assert "digits-5" in (folder / "out" / "mine.html").read_text(encoding="utf-8")
    second = run("bench", "run", suite, "--folder", "out", "--no-report")
    assert (
        second.stdout.startswith("mine: 0 runs done in 0 s, 4 already present.")
        or "0 runs done" in second.stdout
    )
    assert "Wrote" not in second.stdout


def test_a_page_that_is_no_report_is_left_alone(run: Run, suite: Path, folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "mine.html").write_text("my notes")
    result = run("bench", "run", suite, "--folder", "out")
    assert result.exit_code == 0
    assert "is not a report and was not replaced" in result.stderr
    assert (folder / "out" / "mine.html").read_text() == "my notes"


def test_a_dry_run_does_nothing_and_knows_times_only_once_measured(
    run: Run, suite: Path, folder: Path
) -> None:
    dry = run("bench", "run", suite, "--folder", "out", "--dry-run")
    assert dry.exit_code == 0
    assert not (folder / "out").exists()
    assert ["digits-5", "linear-ridge", "2", "0", "0", "2", "unknown"] in lines(dry.stdout)
    assert ["emotions-3", "absent", "0"] in lines(dry.stdout)
    assert "0 of 4 runs are done, 4 to do; remaining time with one process: unknown." in dry.stdout
    run("bench", "run", suite, "--folder", "out", "--limit", "3")
    assert len(Store(folder / "out").records()) == 3
    dry = run("bench", "run", suite, "--folder", "out", "--dry-run", "--jobs", "2")
    assert ["digits-5", "linear-ridge", "2", "2", "0", "0"] in lines(dry.stdout)
    assert "3 of 4 runs are done, 1 to do; remaining time with 2 processes: about 1 s." in dry.stdout


@pytest.mark.slow
def test_status_tells_of_failures_and_damage(run: Run, suite: Path, folder: Path) -> None:
    suite.write_text(SUITE + "parameters = { gamma = -1.0 }\n")
    result = run("bench", "run", suite, "--folder", "out")
    assert result.exit_code == 3
    for told in (result, run("bench", "status", suite, "--folder", "out")):
        assert "2 runs failed" in told.stderr
        # Under the label that -m wants, not under the name that another method of the suite shares.
        assert "warning: ceiling: ValueError: gamma must be" in told.stderr
        assert "(digits-5, seed 0, fold 0 and 1 more; " in told.stderr
    store = Store(folder / "out")
    good = next(record["key"] for record in store.records() if record["status"] == "done")
    store._path(good).write_text("{")
    status = run("bench", "status", suite, "--folder", "out")
    assert status.exit_code == 0
    assert "1 files cannot be read and will be repeated" in status.stderr
    assert ["digits-5", "linear-ridge", "2", "1", "0", "1", "about", "1", "s"] in lines(status.stdout)
    again = run("bench", "run", suite, "--folder", "out")
    assert "1 runs done" in again.stdout
    assert "a file could not be read; its run was repeated" in again.stderr


def failing(message: str) -> str:
    return f"class Mine(__import__('skpml').PMLMA):\n    def _fit(self, X, Y):\n        raise ValueError({message!r})\n"


OWN = """name = "own"
configurations = ["digits-5"]
folds = 2
[[methods]]
name = "my_method:Mine"
label = "first"
[[methods]]
name = "my_method:Mine"
label = "second"
parameters = { threshold = 0.4 }
"""


def test_failures_are_told_by_label_in_short_and_in_full(run: Run, folder: Path) -> None:
    (folder / "own.toml").write_text(OWN)
    (folder / "my_method.py").write_text(failing(f"{'long ' * 100}end"))
    result = run("bench", "run", "own.toml", "--folder", "out")
    assert result.exit_code == 3
    told = [line for line in result.stderr.splitlines() if "ValueError" in line]
    assert [line.split(":")[1] for line in told] == [" first", " second"]
    assert all(line.count("long") < 61 and "…" in line for line in told)
    status = run("bench", "status", "own.toml", "--folder", "out")
    assert "0 of 4 runs are done, 4 failed, 0 to do." in status.stdout
    full = run("bench", "status", "own.toml", "--folder", "out", "--failed", "-m", "second")
    assert full.exit_code == 0
    assert full.stdout.startswith(
        "second on digits-5, seed 0, fold 0 and 1 more:\n\nTraceback (most recent call last):\n"
    )
    assert f"\nValueError: {'long ' * 100}end\n" in full.stdout
    assert full.stdout.endswith("\n2 of 2 runs failed.\n")
    assert "first" not in full.stdout


def test_status_of_failures_where_there_are_none(run: Run, suite: Path) -> None:
    assert run("bench", "status", suite, "--folder", "out", "--failed").stdout == "No run failed.\n"


@pytest.mark.slow
def test_an_earlier_page_does_not_outlive_runs_that_all_failed(run: Run, folder: Path) -> None:
    (folder / "own.toml").write_text(OWN)
    (folder / "my_method.py").write_text("from skpml.reference import CandidateRidge as Mine\n")
    run("bench", "run", "own.toml", "--folder", "out")
    page = folder / "out" / "own.html"
    assert "4 of 4 runs finished" in page.read_text(encoding="utf-8")
    (folder / "my_method.py").write_text(failing("no luck"))
    result = run("bench", "run", "own.toml", "--folder", "out")
    assert result.exit_code == 3
    assert f"Wrote {Path('out') / 'own.html'}." in result.stdout
    text = page.read_text(encoding="utf-8")
    assert "0 of 4 runs finished, 4 failed" in text
    assert "ValueError: no luck" in text


def test_a_new_users_mistakes_with_a_file(refused: Callable[..., str], folder: Path, photos: Path) -> None:
    """Each is told in the words of the suite, not of the options of other commands; no run is started."""
    own = OWN.replace("digits-5", "photos.csv").replace("my_method:Mine", "ridge")
    reading = 'reading = { "photos.csv" = { tags = "tags", true_tags = "checked", ignore = ["file"] } }\n'
    text = photos.read_text()
    for change, content, message in (
        (
            ('true_tags = "checked", ', ""),
            text,
            "true_tags",
        ),
        (('true_tags = "checked", ', ""), text, "own.toml: reading.photos.csv: "),
        (('tags = "tags"', 'tags = "tagz"'), text, "tagz"),
        (('"file"', '"file", "checked"'), text.replace("checked", "truth"), "has no column 'checked'"),
        (
            ('true_tags = "checked", ignore = ["file"]', 'ignore = ["file", "checked"]'),
            text,
            "has no true labels",
        ),
        (("", ""), text.replace(";", " ", 1), "photos.csv, line 2: every true label must be a candidate: "),
    ):
        (folder / "own.toml").write_text(
            'name = "own"\n' + reading.replace(*change) + own.removeprefix('name = "own"\n')
        )
        photos.write_text(content)
        assert message in refused("bench", "run", "own.toml", "--folder", "out")
        assert not (folder / "out").exists()


@pytest.mark.slow
def test_data_that_changed_under_their_name_are_told(run: Run, suite: Path, folder: Path) -> None:
    digits = load_dataset("digits-5")
    (folder / "data").mkdir()
    write_npz(
        PartialDataset(digits.X[:300], digits.truth[:300], digits.truth[:300]), folder / "data" / "digits.npz"
    )
    run("bench", "run", suite, "--folder", "out", "--limit", "1")
    result = run("bench", "run", suite, "--folder", "out", "--data", "data")
    assert result.exit_code == 0
    for told in (result, run("bench", "status", suite, "--folder", "out")):
        assert "the results on digits-5 come from different data with that name" in told.stderr


def test_a_log_gets_a_line_now_and_then(run: Run, suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skpml.cli._bench_output, "_SECONDS_BETWEEN_LINES", 0.0)
    result = run("bench", "run", suite, "--folder", "out")
    assert "mine: 0 of 4 runs, remaining: unknown" in result.stderr
    assert "mine: 4 of 4 runs, remaining: nothing" in result.stderr


def test_a_part_of_a_suite(run: Run, suite: Path, folder: Path) -> None:
    result = run("bench", "run", suite, "--folder", "out", "-m", "ceiling", "-c", "digits-5")
    assert "2 runs done" in result.stdout
    assert {record["run"]["trained_on"] for record in Store(folder / "out").records()} == {"truth"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["papr"], "there is no suite 'papr': did you mean 'paper'"),
        (["absent.toml"], "there is no file absent.toml"),
        (["mine"], "there is no suite 'mine': did you mean 'mine.toml'?"),
        (["mine.toml", "-m", "x"], "the suite mine has no method 'x'; it has linear-ridge, ceiling"),
        (["mine.toml", "--data", "nothing"], "Directory 'nothing' does not exist"),
        (["mine.toml", "--jobs", "0"], "'-j' / '--jobs'"),
        (["mine.toml", "--run-timeout", "0"], "'--run-timeout'"),
        (["mine.toml", "--run-memory", "4"], "'4' is not a size of memory"),
        (["mine.toml", "--run-memory", "0GB"], "'0GB' is not a size of memory"),
        (["mine.toml", "--run-memory", "4XB"], "'4XB' is not a size of memory"),
        (["wrong.toml"], "wrong.toml: fold: unknown key; did you mean 'folds'?"),
        (["quick", "--folder", "mine.toml"], "mine.toml"),
    ],
)
def test_what_is_wrong_is_told_in_one_sentence(
    refused: Callable[..., str], suite: Path, folder: Path, arguments: list[str], message: str
) -> None:
    (folder / "wrong.toml").write_text(SUITE.replace("folds", "fold"))
    assert message in refused("bench", "run", *arguments)
    if not {"--jobs", "--run-timeout", "--run-memory"} & set(arguments):
        assert message in refused("bench", "status", *arguments)


@pytest.mark.slow
def test_a_new_users_own_data_and_method(run: Run, folder: Path, photos: Path) -> None:
    """The example of the page: a CSV file with tags, a method in a module beside the suite, nothing else."""
    (folder / "my_method.py").write_text(
        "from skpml.reference import CandidateRidge\n\nclass Mine(CandidateRidge):\n    pass\n"
    )
    page = (Path(__file__).parents[2] / "docs" / "guide" / "experiments.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    (folder / "photos.toml").write_text(example)
    result = run("bench", "run", "photos.toml")
    assert result.exit_code == 0, result.output
    assert "40 runs done" in result.stdout
    text = (folder / "bench" / "photos.html").read_text(encoding="utf-8")
    assert "Average rank (N = 2)" in text
    assert "ridge on truth" in text


def test_a_classifier_of_scikit_learn_and_rows_without_candidates(
    run: Run, folder: Path, photos: Path
) -> None:
    first, *rest = photos.read_text().splitlines()
    # The first rows lose all tags.
    bare = [",".join([*line.split(",")[:4], "", ""]) for line in rest[:3]]
    photos.write_text("\n".join([first, *bare, *rest[3:]]) + "\n")
    (folder / "photos.toml").write_text(
        'name = "photos"\nconfigurations = ["photos.csv"]\nfolds = 2\n'
        'reading = { "photos.csv" = { tags = "tags", true_tags = "checked", ignore = ["file"] } }\n'
        '[[methods]]\nname = "sklearn.ensemble:RandomForestClassifier"\nparameters = { n_estimators = 5 }\n'
        '[[methods]]\nname = "pml-ni"\n'
    )
    result = run("bench", "run", "photos.toml")
    assert result.exit_code == 0, result.output
    assert "4 runs done" in result.stdout


@pytest.mark.slow
def test_an_edited_method_is_run_again_and_its_old_results_are_named_until_then(
    run: Run, folder: Path, photos: Path
) -> None:
    code = "from skpml.reference import CandidateRidge\n\nclass Mine(CandidateRidge):\n    pass\n"
    (folder / "my_method.py").write_text(code)
    (folder / "photos.toml").write_text(
        'name = "photos"\nconfigurations = ["photos.csv"]\nfolds = 3\n'
        'reading = { "photos.csv" = { tags = "tags", true_tags = "checked", ignore = ["file"] } }\n'
        '[[methods]]\nname = "my_method:Mine"\nlabel = "mine"\n[[methods]]\nname = "ridge"\n'
    )
    assert "6 runs done" in run("bench", "run", "photos.toml", "--folder", "out").stdout
    status = run("bench", "status", "photos.toml", "--folder", "out")
    assert "complete, and all results are of the present code" in status.stdout
    assert json.loads(run("bench", "status", "photos.toml", "--folder", "out", "--json").stdout)["complete"]
    unused = code.replace("    pass\n", "    size = 1\n")
    (folder / "my_method.py").write_text(unused)
    confirmed = run("bench", "confirm", "photos.toml", "--folder", "out")
    assert (confirmed.exit_code, lines(confirmed.stdout)[-1]) == (0, ["mine", "1", "0", "2", "0"])
    status = run("bench", "status", "photos.toml", "--folder", "out")
    assert "complete, and all results are of the present code" in status.stdout
    assert (
        json.loads(run("bench", "status", "photos.toml", "--folder", "out", "--json").stdout)["confirmed"]
        == 2
    )
    backwards = "    def _scores(self, X):\n        return -super()._scores(X)\n"
    (folder / "my_method.py").write_text(code.replace("    pass\n", backwards))
    status = run("bench", "status", "photos.toml", "--folder", "out")
    assert ["photos.csv", "mine", "3", "0", "0", "3", "about", "1", "s"] in lines(status.stdout)
    assert "3 of 6 runs are done, 3 to do" in status.stdout
    assert "complete" not in status.stdout
    found = json.loads(run("bench", "status", "photos.toml", "--folder", "out", "--json").stdout)
    assert (found["complete"], found["older"], found["methods"]["mine"]["older"]) == (False, 3, 3)
    refused = run("bench", "confirm", "photos.toml", "--folder", "out")
    assert (refused.exit_code, lines(refused.stdout)[-1][-2:]) == (3, ["0", "2"])
    assert run("bench", "report", "photos.toml", "--folder", "out", "-o", "old.html").exit_code == 0
    assert "2 results are of older code" in (folder / "old.html").read_text()
    again = run("bench", "run", "photos.toml", "--folder", "out")
    assert "2 runs done" in again.stdout
    run("bench", "export", "photos.toml", "--folder", "out", "--format", "csv")
    (row,) = csv.DictReader((folder / "tables" / "average_precision.csv").open())
    assert (row["mine runs"], row["mine older"], row["ridge runs"]) == ("3", "0", "3")
    assert float(row["mine mean"]) < float(row["ridge mean"]) - 0.1


@pytest.mark.slow
def test_without_its_packages_the_command_says_what_to_install(folder: Path) -> None:
    program = (
        "import sys; sys.modules['pydantic'] = None\n"
        "from skpml.cli._app import app\nsys.argv = ['skpml', 'bench', 'run', 'quick']\napp()"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert result.returncode == 2
    assert result.stderr == 'error: skpml bench needs pydantic: pip install "scikit-pml[bench]"\n'


def test_importing_the_library_imports_none_of_them() -> None:
    program = (
        "import sys, skpml, skpml.cli._app\n"
        "print([name for name in ('pydantic', 'filelock', 'dask', 'distributed', 'scikit_posthocs') "
        "if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert result.stdout == "[]\n"


@pytest.mark.slow
def test_the_quick_suite_is_done_whole(run: Run, folder: Path) -> None:
    result = run("bench", "run", "quick", "--folder", "out")
    assert result.exit_code == 0, result.output
    assert "42 runs done" in result.stdout
    assert (folder / "out" / "quick.html").exists()
