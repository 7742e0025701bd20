"""From suite to runs: named by content, shared between suites, absent where data are."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from bench_helpers import Small, problem

from skpml.datasets import write_npz
from skpml.experiments import Run, SuiteError, expand, load_suite
from skpml.experiments._fingerprint import fingerprint
from skpml.experiments._suite import parse_suite

SUITE = """name = "{name}"
configurations = ["digits-6", "nowhere-3"]
seeds = [0, 7]
folds = 3
[[methods]]
name = "pml-ma"
label = "{label}"
parameters = {{ low_rank_weight = 2.0 }}
[[methods]]
name = "pml-ma"
label = "swept"
[methods.sweep]
low_rank_weight = [2.0, 4.0]
ridge_weight = [0.5]
[[methods]]
name = "ridge"
role = "ceiling"
"""


@pytest.fixture
def plan(tmp_path: Path):
    path = tmp_path / "a.toml"
    path.write_text(SUITE.format(name="a", label="x"))
    return expand(load_suite(path), data_home=tmp_path)


def test_a_run_for_each_place_method_and_value(plan) -> None:
    # Absent data are planned too, so that their results can be found.
    assert len(plan.entries) == 2 * 2 * 3 * (1 + 3 + 1)
    # low_rank_weight = 2 of the sweep is the first method's run.
    assert len(plan.runs) == 2 * 3 * 4
    assert len({run.key for run in plan.runs}) == len(plan.runs)
    swept = [(entry.swept, entry.run.parameters) for entry in plan.entries[1:4]]
    assert swept == [
        (("low_rank_weight", 2.0), {"low_rank_weight": 2.0}),
        (("low_rank_weight", 4.0), {"low_rank_weight": 4.0}),
        (("ridge_weight", 0.5), {"ridge_weight": 0.5}),
    ]
    assert {run.trained_on for run in plan.runs if run.method == "ridge"} == {"truth"}
    assert {run.trained_on for run in plan.runs if run.method != "ridge"} == {"candidates"}


def test_groups_are_the_folds(plan) -> None:
    groups = plan.groups()
    assert len(groups) == 6
    assert all(
        len({(run.configuration, run.seed, run.folds, run.fold) for run in group}) == 1 for group in groups
    )
    assert [run for group in groups for run in group] == plan.runs


def test_small_data_come_first(tmp_path: Path) -> None:
    for name in ("yeastbp", "emotions", "mine"):
        (tmp_path / f"{name}.npz").touch()
    text = 'name = "d"\nconfigurations = ["yeastbp", "emotions-3", "mine-2"]\nfolds = 2\n[[methods]]\nname = "ridge"\n'
    plan = expand(parse_suite(text, source="d"), data_home=tmp_path)
    assert [run.configuration for run in plan.runs[::2]] == ["yeastbp", "emotions-3", "mine-2"]
    order = [group[0].configuration for group in plan.groups()]
    assert order == ["mine-2", "mine-2", "emotions-3", "emotions-3", "yeastbp", "yeastbp"]


def test_absent_data_are_named_and_have_no_runs(plan) -> None:
    assert list(plan.absent) == ["nowhere-3"]
    assert "there is no data set 'nowhere'" in plan.absent["nowhere-3"]
    assert {run.configuration for run in plan.runs} == {"digits-6"}


def test_names_and_labels_of_a_suite_do_not_matter(plan, tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text(SUITE.format(name="b", label="y"))
    other = expand(load_suite(tmp_path / "b.toml"), data_home=tmp_path)
    assert [run.key for run in other.runs] == [run.key for run in plan.runs]


def test_the_key_is_the_hash_of_the_content_and_the_code() -> None:
    content = {"configuration": "emotions-3", "fold": 2, "method": "pml-ma"}
    run = Run(**content, parameters={"lam": 1.0, "beta": 2})
    canonical = json.dumps(
        {name: value for name, value in run.content.items() if name != "code"},
        sort_keys=True,
        separators=(",", ":"),
    )
    assert run.key == hashlib.sha256(canonical.encode()).hexdigest()[:24]
    # Written down: a change here would orphan everybody's results.
    assert run.key == run.task == "81408dfbe62b3260fe0b6a0a"
    assert run == Run(**content, parameters={"beta": 2, "lam": 1.0})
    new = Run(**content, parameters={"beta": 2, "lam": 1.0}, code="abc")
    assert (new.key, new.task) == ("81408dfbe62b3260fe0b6a0a-abc", run.task)


@pytest.mark.parametrize(
    ("suite", "task", "tuned"),
    [
        ("paper-settings", "be12f68773c10076911ec870", False),
        ("paper", "fbd1f691b546332804c983c2", True),
    ],
)
def test_the_tasks_of_the_shipped_suites_stay(suite: str, task: str, tuned: bool, tmp_path: Path) -> None:
    """Written down: thousands of results are known by them."""
    (tmp_path / "emotions.npz").touch()
    (run,) = (
        run
        for run in expand(load_suite(suite), data_home=tmp_path).runs
        if (run.method, run.configuration, run.fold) == ("pml-ni", "emotions-3", 0)
    )
    assert run.task == task
    assert run.code == fingerprint("pml-ni", tuned=tuned)


@pytest.mark.parametrize(
    "change",
    [
        {"configuration": "emotions-4"},
        {"seed": 1},
        {"folds": 5},
        {"fold": 1},
        {"method": "ridge"},
        {"parameters": {"lam": 2.0}},
        {"tuning": {"grid": {}}},
        {"trained_on": "truth"},
        {"history": True},
        {"kind": "decomposition"},
        {"data": {"file_sha256": "0"}},
        {"code": "0"},
    ],
)
def test_every_part_of_the_content_counts(change) -> None:
    common = {"configuration": "emotions-3", "method": "pml-ma"}
    assert Run(**common).key != Run(**{**common, **change}).key


def test_a_data_file_is_known_by_its_content(tmp_path: Path) -> None:
    small = Small(tmp_path)
    first = expand(load_suite(small.suite()))
    write_npz(problem(5), tmp_path / "one.npz", overwrite=True)
    second = expand(load_suite(small.path))
    same = {run.key for run in first.runs} & {run.key for run in second.runs}
    assert {run.configuration for run in second.runs if run.key in same} == {"two.npz"}
    assert len(same) == len(first.runs) / 2
    (tmp_path / "two.npz").unlink()
    assert "there is no file" in expand(load_suite(small.path)).absent["two.npz"]


def test_a_part_of_a_plan(plan) -> None:
    part = plan.only(methods=["ridge"])
    assert {run.method for run in part.runs} == {"ridge"}
    assert plan.only(configurations=["nowhere-3"]).runs == []
    with pytest.raises(SuiteError, match="no method 'pml-ma'; it has x, swept, ridge"):
        plan.only(methods=["pml-ma"])
    with pytest.raises(SuiteError, match="no configuration 'digits'"):
        plan.only(configurations=["digits"])


def test_only_some_folds_and_the_kind_of_a_decomposition() -> None:
    convergence = expand(load_suite("convergence"), data_home="/nowhere")
    assert len(convergence.absent) == 9
    text = 'name = "d"\nkind = "decomposition"\nconfigurations = ["digits-5"]\n[[methods]]\nname = "ridge"\n'
    runs = expand(parse_suite(text, source="d")).runs
    assert [(run.folds, run.fold, run.kind) for run in runs] == [
        (10, fold, "decomposition") for fold in range(10)
    ]
    folds = text.replace("decomposition", "comparison")
    plan = expand(parse_suite("only_folds = [1, 4]\n" + folds, source="d"))
    assert [(run.folds, run.fold) for run in plan.runs] == [(10, 1), (10, 4)]


def test_a_custom_method_is_known_by_its_code(tmp_path: Path) -> None:
    small = Small(tmp_path)
    forest = '\n[[methods]]\nname = "sklearn.ensemble:RandomForestClassifier"\n[[methods]]\nname = "ridge"\n'
    first = expand(load_suite(small.suite(extra=forest)))
    module = tmp_path / "own_methods.py"
    module.write_text(module.read_text() + "\n# other\n")
    assert [run.key for run in expand(load_suite(small.path)).runs] == [run.key for run in first.runs]
    module.write_text(module.read_text() + "\nother = 1\n")
    second = expand(load_suite(small.path))
    same = {run.key for run in first.runs} & {run.key for run in second.runs}
    # Neither what is installed nor what is registered knows of it.
    assert {run.method for run in second.runs if run.key in same} == {
        "sklearn.ensemble:RandomForestClassifier",
        "ridge",
    }
    assert {run.method for run in second.runs if run.key not in same} == {"own_methods:Counting"}
    assert [run.task for run in second.runs] == [run.task for run in first.runs]
