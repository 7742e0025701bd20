"""The runner, with real processes: killed, doubled, interrupted, on a cluster; what is done is done once, and right."""

from __future__ import annotations

import json
import threading
import time
import types
from dataclasses import replace
from pathlib import Path

import pytest
from bench_helpers import BROKEN, Small, record_files, records
from threadpoolctl import threadpool_limits

from skpml.experiments import Store, SuiteError, expand, load_suite, run_plan
from skpml.experiments import _runner as runner
from skpml.experiments._execute import Limits
from skpml.experiments._runner import do_task
from skpml.experiments._worker import _close_idle

pytestmark = pytest.mark.slow

SESSION = "test"


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path)


def plan_of(small: Small, **options):
    return expand(load_suite(small.suite(**options)))


def test_every_run_is_done_once_and_then_skipped(small: Small) -> None:
    plan = plan_of(small)
    first = run_plan(plan, small.results)
    assert (len(first.executed), first.skipped, first.failed) == (18, 0, [])
    assert sum(small.fits().values()) == len(small.fits()) == 18
    before = {path: path.read_bytes() for path in record_files(small.results)}
    second = run_plan(plan, small.results)
    assert (len(second.executed), second.skipped) == (0, 18)
    assert {path: path.read_bytes() for path in record_files(small.results)} == before
    assert sum(small.fits().values()) == 18


def test_another_suite_in_the_folder_adds_only_what_is_new(small: Small) -> None:
    run_plan(plan_of(small, count=2), small.results)
    outcome = run_plan(plan_of(small, count=3), small.results)
    assert (len(outcome.executed), outcome.skipped) == (6, 12)


def test_a_limit_leaves_the_rest_for_later(small: Small) -> None:
    plan = plan_of(small)
    first = run_plan(plan, small.results, limit=4)
    assert (len(first.executed), first.left) == (4, 14)
    assert [run.key for run in first.executed] == [run.key for run in plan.runs[:4]]
    second = run_plan(plan, small.results)
    assert (len(second.executed), second.skipped) == (14, 4)


def test_a_run_that_another_process_finished_meanwhile_is_not_done_again(small: Small, monkeypatch) -> None:
    """The other one writes its record between our look and our claim."""
    plan = plan_of(small, count=1, folds=2, data=1)
    run_plan(plan, small.folder / "other")
    store = Store(small.results)
    store._prepare()
    claim = Store._claim

    def late_claim(self: Store, key: str):
        self._path(key).write_bytes(Store(small.folder / "other")._path(key).read_bytes())
        return claim(self, key)

    monkeypatch.setattr(Store, "_claim", late_claim)
    small.forget_fits()
    found = do_task(SESSION, Limits(), store.folder, None, small.folder, None, True, plan.runs[:1])
    assert [done.outcome for done in found] == ["present"]
    assert not small.fits()


def test_a_group_is_left_to_whoever_began_it_and_later_shared(small: Small) -> None:
    plan = plan_of(small, folds=2, data=1)
    store, runs = Store(small.results), tuple(plan.groups()[0])
    store._prepare()
    with store._claim(runs[0].key):
        for yields, outcomes in ((True, ["busy"] * 3), (False, ["busy", "done", "done"])):
            found = do_task(SESSION, Limits(), store.folder, None, small.folder, None, yields, runs)
            assert [done.outcome for done in found] == outcomes
    assert sum(small.fits().values()) == 2


@pytest.mark.parametrize("finishes", [True, False])
def test_what_another_process_is_at_work_on_is_waited_for(small: Small, finishes: bool) -> None:
    """It comes to an end, or its holder goes away without a result: either way nothing is missing in the end."""
    plan = plan_of(small, count=2, folds=2, data=1)
    run_plan(plan, small.folder / "other")
    store, key = Store(small.results), plan.runs[0].key
    store._prepare()
    held = threading.Event()

    def hold() -> None:
        with store._claim(key):
            held.set()
            time.sleep(1.5)
            if finishes:
                store._write(Store(small.folder / "other").read(key))

    other = threading.Thread(target=hold)
    other.start()
    held.wait()
    outcome = run_plan(plan, small.results)
    other.join()
    assert records(small.results) == records(small.folder / "other")
    assert (len(outcome.executed), outcome.elsewhere) == ((3, 1) if finishes else (4, 0))
    assert outcome.seconds > 1


def test_damaged_files_are_set_aside_and_their_runs_done_again(small: Small) -> None:
    plan = plan_of(small)
    run_plan(plan, small.results)
    expected = records(small.results)
    files = record_files(small.results)
    half = files[0].read_bytes()[: files[0].stat().st_size // 2]
    damage = [half, b"", b"[]", b'{"format": 1}', b"\xff\x00", files[6].read_bytes()]
    for path, content in zip(files, damage, strict=False):
        path.write_bytes(content)
    leftover = small.results / "runs" / f".{files[0].name}.0123.tmp"
    leftover.mkdir()
    (leftover / files[0].name).write_bytes(half)
    small.forget_fits()
    outcome = run_plan(plan, small.results)
    assert sorted(run.key for run in outcome.executed) == sorted(path.stem for path in files[:6])
    assert records(small.results) == expected
    assert len(outcome.set_aside) == 6
    assert {Path(path).read_bytes() for path in outcome.set_aside} == set(damage)
    assert not leftover.exists()


def test_a_retry_that_fails_again_is_not_tried_forever(small: Small) -> None:
    small.suite(count=0, extra=BROKEN)
    plan = expand(load_suite(small.path))
    run_plan(plan, small.results)
    outcome = run_plan(plan, small.results, retry_failed=True)
    assert (len(outcome.executed), len(outcome.failed)) == (6, 6)


def test_failures_of_a_clock_that_was_ahead_are_repeated(small: Small) -> None:
    small.suite(count=0, extra=BROKEN)
    plan, store = expand(load_suite(small.path)), Store(small.results)
    run_plan(plan, small.results)
    for record in store.records():
        store._write(
            {**record, "provenance": {**record["provenance"], "started": "2999-01-01T00:00:00+00:00"}}
        )
    assert len(run_plan(plan, small.results, retry_failed=True).executed) == 6


def test_data_by_name_that_cannot_be_read_fail_their_runs_only(small: Small) -> None:
    small.suite()
    small.path.write_text(small.path.read_text().replace('"one.npz", "two.npz"', '"one", "two"'))
    plan = expand(load_suite(small.path), data_home=small.folder)
    (small.folder / "one.npz").write_bytes(b"no archive")
    outcome = run_plan(plan, small.results)
    assert len(outcome.executed) == 18
    assert {record["run"]["configuration"] for record in outcome.failed} == {"one"}
    assert len(outcome.failed) == 9


def test_jobs_change_nothing_and_use_one_thread_each(small: Small) -> None:
    small.suite(extra='\n[[methods]]\nname = "own_methods:Threads"\n')
    alone, together = small.folder / "alone", small.folder / "together"
    plan = expand(load_suite(small.path))
    with threadpool_limits(2):
        run_plan(plan, alone)
        run_plan(plan, together, jobs=2)
    assert records(alone) == records(together)
    assert {record["provenance"]["threads"] for record in records(together).values()} == {1}
    told = [record["warnings"] for record in records(alone).values() if "Threads" in record["run"]["method"]]
    assert told == [["UserWarning: threads: 1"]] * 6


def test_progress_says_unknown_first_and_ends_at_the_end(small: Small) -> None:
    seen = []
    run_plan(plan_of(small, seconds=0.05), small.results, on_progress=seen.append)
    assert str(seen[0].remaining) == "unknown"
    assert (seen[0].done, seen[0].total) == (0, 18)
    assert (seen[-1].done, seen[-1].failed, seen[-1].remaining.seconds) == (18, 0, 0)
    assert [step.done for step in seen] == sorted(step.done for step in seen)
    middle = next(step for step in seen if 3 < step.done < 15)
    assert 0 < middle.remaining.seconds < 10


def test_a_standstill_does_not_look_like_the_end(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier runs were quick, and now nothing comes to an end: the rest will not take a second."""
    plan = plan_of(small)
    run_plan(plan, small.results, limit=6)
    now = 1000.0
    monkeypatch.setattr(runner, "time", types.SimpleNamespace(monotonic=lambda: now))
    watch = runner._Watch(plan, Store(small.results), [plan.runs[6:]], None, 2)
    assert watch.look().remaining.seconds < 5
    now += 600
    assert watch.look().remaining.seconds > 600


def test_a_method_that_cannot_be_imported_is_told_before_any_work(small: Small) -> None:
    small.suite(extra='\n[[methods]]\nname = "own_methods:Missing"\n')
    code, out, err = small.run()
    assert (code, out) == (2, "")
    assert (
        "the method 'own_methods:Missing' cannot be imported: own_methods has no class 'Missing'; choose from "
        in err
    )
    assert not small.results.exists()


def test_changed_code_means_new_runs_with_the_new_code(small: Small) -> None:
    """In one process too, such as a notebook or a worker of a cluster, which has imported the old code."""
    plan = plan_of(small, count=1, data=1)
    run_plan(plan, small.results)
    module = small.folder / "own_methods.py"
    module.write_text(module.read_text().replace('f"{self.mark} ', 'f"changed {self.mark} '))
    changed = expand(load_suite(small.path))
    outcome = run_plan(changed, small.results)
    assert (len(outcome.executed), outcome.failed) == (3, [])
    assert sorted(line.split()[0] for line in small.fits()) == [
        "0",
        "0",
        "0",
        "changed",
        "changed",
        "changed",
    ]
    # They replace the results of the old code.
    assert {path.stem for path in record_files(small.results)} == {run.key for run in changed.runs}
    assert [run.task for run in changed.runs] == [run.task for run in plan.runs]


def test_changed_code_that_a_custom_method_imports_means_new_runs(small: Small) -> None:
    (small.folder / "helpers.py").write_text("FACTOR = 1.0\n")
    module = small.folder / "own_methods.py"
    module.write_text(
        module.read_text().replace("class Counting", "from helpers import FACTOR\n\nclass Counting")
        .replace('f"{self.mark} ', 'f"{FACTOR} {self.mark} ')
    )  # fmt: skip
    run_plan(plan_of(small, count=1, data=1, folds=2), small.results)
    (small.folder / "helpers.py").write_text("FACTOR = 22.0\n")
    outcome = run_plan(expand(load_suite(small.path)), small.results)
    assert (len(outcome.executed), outcome.failed) == (2, [])
    assert sorted(line.split()[0] for line in small.fits()) == ["1.0", "1.0", "22.0", "22.0"]


def test_code_that_changes_under_way_is_not_taken_for_what_was_planned(small: Small) -> None:
    plan = plan_of(small, count=1, data=1)
    module = small.folder / "own_methods.py"
    run_plan(plan, small.results, limit=1)
    module.write_text(module.read_text() + "\nraise ValueError\n")
    # What the worker imported is still what was planned.
    assert run_plan(plan, small.results, limit=1).failed == []
    _close_idle()
    store = Store(small.results)
    with pytest.raises(SuiteError, match=r"the code of own_methods:Counting has changed since its runs were"):
        do_task(SESSION, Limits(), store.folder, None, small.folder, None, True, plan.runs)
    assert [record["status"] for record in store.records()] == ["done", "done"]


def test_a_worker_with_another_library_does_not_do_the_run(small: Small) -> None:
    small.suite(count=0, data=1, folds=2, extra='\n[[methods]]\nname = "linear-ridge"\n')
    plan = expand(load_suite(small.path))
    store = Store(small.results)
    store._prepare()
    planned = [replace(run, code="0" * 16) for run in plan.runs]
    with pytest.raises(SuiteError, match=r"the code of linear-ridge has changed"):
        do_task(SESSION, Limits(), store.folder, None, small.folder, None, True, planned)
    assert store.keys() == set()


def test_records_are_json_of_the_agreed_form(small: Small) -> None:
    run_plan(plan_of(small, count=1, folds=2, data=1), small.results)
    record = json.loads(record_files(small.results)[0].read_text())
    assert list(record) == [
        "format", "key", "run", "status", "metrics", "chosen", "n_iter", "converged", "history", "tune_seconds",
        "fit_seconds", "predict_seconds", "peak_memory_mb", "warnings", "error", "provenance", "digest",
    ]  # fmt: skip
    assert record["key"] == record_files(small.results)[0].stem
    assert set(record["provenance"]["versions"]) == {"scikit-pml", "numpy", "scipy", "scikit-learn", "python"}
