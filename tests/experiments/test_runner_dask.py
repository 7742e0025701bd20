"""The runner on a Dask cluster of real worker processes."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench_helpers import DYING, RUN_MEMORY_MB, RUN_TIMEOUT, Small, check_causes, records, until_gone

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
    plan = expand(load_suite(small.dying_suite(*DYING)))
    with distributed.LocalCluster(
        n_workers=1, processes=True, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        with distributed.Client(cluster, set_as_default=False) as client:
            before = client.run(os.getpid)
            file = small.folder / "scheduler.json"
            client.write_scheduler_file(file)
        limits = {"run_timeout": RUN_TIMEOUT, "run_memory_mb": RUN_MEMORY_MB}
        outcome = run_plan(plan, small.results, dask=str(file), **limits)
        assert (len(outcome.executed), len(outcome.failed)) == (6, 4)
        check_causes(small.results)
        again = run_plan(plan, small.results, dask=str(file))
        assert (len(again.executed), again.skipped) == (0, 6)
        assert set(small.fits().values()) == {1}
        with distributed.Client(cluster, set_as_default=False) as client:
            assert client.run(os.getpid) == before


@posix_only
def test_a_run_that_kills_the_worker_of_dask_is_found_and_recorded(small: Small) -> None:
    import dask

    plan = expand(load_suite(small.dying_suite("KillsItsParent")))
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
    ):
        outcome = run_plan(plan, small.results, dask=cluster.scheduler_address)
    (failed,) = outcome.failed
    assert failed["run"]["method"] == "own_methods:KillsItsParent"
    assert failed["error"]["type"] == "ProcessDied"
    assert sorted(record["status"] for record in records(small.results).values()) == [
        "done",
        "done",
        "failed",
    ]
    # Once with the others of its fold, once alone.
    assert sorted(small.fits().values()) == [1, 1, 2]


@posix_only
def test_ctrl_c_ends_the_runs_on_the_cluster(small: Small) -> None:
    small.dying_suite("Sleeps")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        process = small.start("--dask", cluster.scheduler_address)
        small.wait_for_results(1, process)
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
        assert (process.returncode, "finished runs are kept" in err) == (130, True)
        for pid in small.pids():
            until_gone(pid)
    assert {record["status"] for record in records(small.results).values()} == {"done"}


def test_no_scheduler_is_an_error_in_one_sentence(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_SECONDS_TO_CONNECT", 1)
    with pytest.raises(OSError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        run_plan(expand(load_suite(small.suite())), small.results, dask="tcp://127.0.0.1:9")


@pytest.mark.parametrize(("status", "error"), [("closed", runner.WorkerDied), ("running", OSError)])
def test_a_scheduler_that_went_away_is_named(
    monkeypatch: pytest.MonkeyPatch, status: str, error: type[Exception]
) -> None:
    class Future:
        def result(self) -> None:
            raise OSError("closed")

    def cancel(_: object) -> None:
        raise RuntimeError("closed")

    client = SimpleNamespace(submit=lambda *_, **__: Future(), loop=None, status=status, cancel=cancel)
    module = SimpleNamespace(as_completed=lambda futures, loop: list(futures), KilledWorker=ZeroDivisionError)
    monkeypatch.setattr(runner, "import_module", lambda _: module)
    with pytest.raises(error, match="scheduler" if status == "closed" else "closed"):
        list(runner._do_on_cluster(client, "session", None, None, [[]]))
