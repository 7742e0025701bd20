"""The runner on a Dask cluster of real worker processes."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bench_helpers import RUN_MEMORY_MB, RUN_TIMEOUT, Small, check_causes, records, wait_until_gone

from skpml.experiments import _runner as runner
from skpml.experiments import expand, load_suite, run_plan

pytestmark = pytest.mark.slow

distributed = pytest.importorskip("distributed")

posix_only = pytest.mark.skipif(os.name == "nt", reason="signals of processes are POSIX's")


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path)


def test_a_dask_cluster_of_processes_gives_the_same_records(small: Small) -> None:
    small.suite()
    plan = expand(load_suite(small.path))
    local = small.folder / "local"
    run_plan(plan, local)
    small.forget_fits()
    with distributed.LocalCluster(
        n_workers=2, processes=True, threads_per_worker=2, dashboard_address=None
    ) as cluster:
        outcome = run_plan(plan, small.results, dask=cluster.scheduler_address)
        assert len(outcome.executed) == 18
        again = run_plan(plan, small.results, dask=cluster.scheduler_address)
        assert (len(again.executed), again.skipped) == (0, 18)
    assert records(small.results) == records(local)
    assert set(small.fits().values()) == {1}


@posix_only
def test_dying_runs_are_recorded_and_the_workers_of_dask_live_on(small: Small) -> None:
    """By a scheduler file, as launchers on clusters write it."""
    plan = expand(load_suite(small.dying_suite("Exits", "Sleeps", "Grows")))
    with distributed.LocalCluster(
        n_workers=1, processes=True, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        with distributed.Client(cluster, set_as_default=False) as client:
            before = client.run(os.getpid)
            file = small.folder / "scheduler.json"
            client.write_scheduler_file(file)
        limits = {"run_timeout": RUN_TIMEOUT, "run_memory_mb": RUN_MEMORY_MB}
        outcome = run_plan(plan, small.results, dask=str(file), **limits)
        assert (len(outcome.executed), len(outcome.failed)) == (5, 3)
        check_causes(small.results)
        again = run_plan(plan, small.results, dask=str(file))
        assert (len(again.executed), again.skipped) == (0, 5)
        assert set(small.fits().values()) == {1}
        with distributed.Client(cluster, set_as_default=False) as client:
            assert client.run(os.getpid) == before
    wait_until_gone(small.pids() + small.pids("children"))


def test_no_scheduler_is_an_error_in_one_sentence(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_SECONDS_TO_CONNECT", 1)
    with pytest.raises(OSError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        run_plan(expand(load_suite(small.suite())), small.results, dask="tcp://127.0.0.1:9")


class Cluster:
    """A cluster without workers: results are made when they are asked for, by a function of the runs."""

    class KilledWorker(Exception):
        pass

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, result: Callable[[Any, list], Any], status: str
    ) -> None:
        self.status, self.result, self.loop = status, result, None
        self.sent: list[int] = []
        self.called: list[tuple] = []
        module = SimpleNamespace(as_completed=lambda tasks, loop: list(tasks), KilledWorker=self.KilledWorker)
        monkeypatch.setattr(runner, "import_module", lambda _: module)
        monkeypatch.setattr(runner, "_connect", lambda _: nullcontext(self))

    def submit(self, do: Any, runs: list, pure: bool) -> Any:
        self.sent.append(len(runs))
        return type("Future", (), {"result": lambda _: self.result(do, runs)})()

    def cancel(self, tasks: list) -> None:
        self.called.append(("cancel", len(tasks)))

    def run(self, function: Any, session: str) -> None:
        self.called.append((function, len(session)))


def test_a_run_that_kills_workers_of_dask_is_found_and_recorded(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(do: Any, runs: list) -> Any:
        if any("Exits" in run.method for run in runs):
            raise cluster.KilledWorker("died 4 times")
        return do(runs)

    cluster = Cluster(monkeypatch, kill, "running")
    plan = expand(load_suite(small.dying_suite("Exits")))
    outcome = run_plan(plan, small.results, dask="cluster")
    (failed,) = outcome.failed
    assert (failed["run"]["method"], failed["error"]["type"]) == ("own_methods:Exits", "ProcessDied")
    assert len(outcome.executed) == len(records(small.results)) == 3
    # Together first, then each alone.
    assert cluster.sent == [3, 1, 1, 1]
    assert run_plan(plan, small.results, dask="cluster").skipped == 3


def test_ctrl_c_ends_the_runs_on_the_cluster(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(do: Any, runs: list) -> Any:
        raise KeyboardInterrupt

    cluster = Cluster(monkeypatch, interrupt, "running")
    with pytest.raises(KeyboardInterrupt):
        run_plan(expand(load_suite(small.suite())), small.results, dask="cluster")
    assert cluster.called == [("cancel", 6), (runner.stop_workers, 32)]
    assert records(small.results) == {}


@pytest.mark.parametrize(("status", "error"), [("closed", runner.WorkerDied), ("running", OSError)])
def test_a_scheduler_that_went_away_is_named(
    small: Small, monkeypatch: pytest.MonkeyPatch, status: str, error: type[Exception]
) -> None:
    def fail(do: Any, runs: list) -> Any:
        raise OSError("closed")

    Cluster(monkeypatch, fail, status)
    with pytest.raises(error, match="scheduler" if status == "closed" else "closed"):
        run_plan(expand(load_suite(small.suite())), small.results, dask="cluster")
