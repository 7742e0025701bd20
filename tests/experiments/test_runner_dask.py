"""The runner on a Dask cluster of real worker processes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from bench_helpers import Small, records

from skpml.experiments import _runner as runner
from skpml.experiments import expand, load_suite, run_plan

pytestmark = pytest.mark.slow

distributed = pytest.importorskip("distributed")


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


def test_no_scheduler_is_an_error_in_one_sentence(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_SECONDS_TO_CONNECT", 1)
    with pytest.raises(OSError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        run_plan(expand(load_suite(small.suite())), small.results, dask="tcp://127.0.0.1:9")


@pytest.mark.parametrize(("status", "error"), [("closed", runner.WorkerDied), ("running", OSError)])
def test_a_scheduler_that_went_away_is_named(
    monkeypatch: pytest.MonkeyPatch, status: str, error: type[Exception]
) -> None:
    def fail() -> None:
        raise OSError("closed")

    def cancel(_: object) -> None:
        raise RuntimeError("closed")

    client = SimpleNamespace(
        map=lambda *_, **__: [SimpleNamespace(result=fail)], loop=None, status=status, cancel=cancel
    )
    module = SimpleNamespace(as_completed=lambda futures, loop: futures, KilledWorker=ZeroDivisionError)
    monkeypatch.setattr(runner, "import_module", lambda _: module)
    with pytest.raises(error, match="scheduler" if status == "closed" else "closed"):
        list(runner._do_on_cluster(client, None, []))
