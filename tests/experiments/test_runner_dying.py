"""Runs that end their process or take too much: each has a record, and the suite goes on around it."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from bench_helpers import (
    RUN_MEMORY_MB,
    RUN_TIMEOUT,
    Small,
    check_causes,
    entry,
    record_files,
    wait_until_gone,
)

from skpml.experiments import Store, WorkerDied, expand, load_suite, run_plan
from skpml.experiments._execute import Limits
from skpml.experiments._worker import hold_worker

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="signals of processes are POSIX's"),
]


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path)


def test_runs_that_die_are_recorded_and_the_others_done(small: Small) -> None:
    plan = expand(load_suite(small.dying_suite("Exits", "Sleeps", "Grows")))
    outcome = run_plan(plan, small.results, run_timeout=RUN_TIMEOUT, run_memory_mb=RUN_MEMORY_MB)
    assert (len(outcome.executed), len(outcome.failed)) == (5, 3)
    check_causes(small.results)
    wait_until_gone(small.pids("children"))
    assert len(small.pids("children")) == 2
    again = run_plan(plan, small.results)
    assert (len(again.executed), again.skipped, len(again.failed)) == (0, 5, 3)
    assert set(small.fits().values()) == {1}
    part = plan.only(methods=["Exits"])
    retried = run_plan(part, small.results, retry_failed=True)
    assert (len(retried.executed), len(retried.failed)) == (1, 1)
    assert sorted(small.fits().values()) == [1, 1, 1, 1, 2]


def test_the_command_with_two_jobs_goes_on_after_deaths(small: Small) -> None:
    small.dying_suite("Crashes", data=2)
    limits = ("--run-timeout", str(RUN_TIMEOUT), "--run-memory", f"{RUN_MEMORY_MB / 1000}GB")
    code, out, err = small.run("--jobs", "2", "--no-report", *limits)
    assert (code, "6 runs done" in out, "2 runs failed" in err) == (3, True, True)
    assert "signal 11" in err
    assert "Traceback" not in err
    check_causes(small.results)


def test_memory_that_earlier_runs_left_behind_does_not_count(small: Small) -> None:
    small.suite(count=0, data=1, folds=2, extra=entry("Hoards"))
    outcome = run_plan(expand(load_suite(small.path)), small.results, run_memory_mb=RUN_MEMORY_MB)
    assert (len(outcome.executed), outcome.failed) == (2, [])
    # The second was stopped in the process of the first, before its fit was noted.
    assert len(small.pids()) == 2
    assert set(small.fits().values()) == {1}


def test_a_worker_is_kept_for_the_next_call_and_sees_its_surroundings(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.suite(count=0, data=1, extra=entry("Surroundings"))
    plan = expand(load_suite(small.path))
    for number in range(2):
        (small.folder / str(number)).mkdir()
        monkeypatch.chdir(small.folder / str(number))
        monkeypatch.setenv("SKPML_TEST", f"call {number}")
        run_plan(plan, small.folder / f"results {number}")
        (seen,) = {
            tuple(record["warnings"]) for record in Store(small.folder / f"results {number}").records()
        }
        assert seen == (f"UserWarning: call {number} {small.folder / str(number)}",)
    assert len(small.pids()) == 1


def test_no_run_is_blamed_for_a_process_that_ended_before(small: Small) -> None:
    plan = expand(load_suite(small.suite(count=1, data=1, folds=2)))
    with hold_worker("test") as worker:
        for run in plan.runs:
            assert worker.execute(run, None, small.folder, Limits())["status"] == "done"
            for pid in small.pids():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    assert len(small.pids()) == 2


def test_a_worker_that_cannot_start_is_no_failure_of_the_runs(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = expand(load_suite(small.suite(count=1)))
    monkeypatch.setattr("skpml.experiments._worker._IDLE", [])
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(WorkerDied, match="exit code 1"):
        run_plan(plan, small.results)
    assert record_files(small.results) == []


@pytest.mark.parametrize("name", ["run_timeout", "run_memory_mb"])
def test_limits_are_positive(small: Small, name: str) -> None:
    plan = expand(load_suite(small.suite()))
    with pytest.raises(ValueError, match=name):
        run_plan(plan, small.results, **{name: 0})
    assert not small.results.exists()
