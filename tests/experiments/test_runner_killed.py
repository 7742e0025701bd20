"""The runner as real processes: killed with SIGKILL and started again, and two of them on one folder."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from bench_helpers import ENDLESS, Small, record_files, records, wait_until_gone

from skpml.experiments import expand, load_suite, run_plan

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="signals of processes are POSIX's"),
]


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_killed_in_the_middle_and_started_again_gives_the_same_records(small: Small, jobs: str) -> None:
    small.suite(seconds=0.1)
    whole = small.folder / "whole"
    run_plan(expand(load_suite(small.path)), whole)
    small.forget_fits()

    process = small.start("--jobs", jobs)
    small.wait_for_results(5, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    kept = {path.name: path.read_bytes() for path in record_files(small.results)}
    assert 5 <= len(kept) < 18

    code, out, err = small.run("--jobs", jobs)
    assert (code, err) == (0, "")
    assert f"{len(kept)} already present" in out
    assert records(small.results) == records(whole)
    # What was there before the kill was neither done again nor touched.
    assert {name: (small.results / "runs" / name).read_bytes() for name in kept} == kept
    assert sum(small.fits().values()) <= 18 + int(jobs)
    assert list((small.results / "runs").glob(".*")) == []


def test_workers_do_not_outlive_a_killed_parent(small: Small) -> None:
    small.suite(extra=ENDLESS)
    process = small.start("--jobs", "2")
    small.wait_for_results(6, process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert len(small.pids()) == 2
    wait_until_gone(small.pids())
    small.suite()
    run_plan(expand(load_suite(small.path)), small.results)
    assert len(records(small.results)) == 18
    assert max(small.fits().values()) <= 2


def test_two_processes_on_one_folder_share_the_work(small: Small) -> None:
    small.suite(count=4, together=3)
    processes = [small.start(), small.start("--jobs", "2")]
    finished = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], finished
    assert len(records(small.results)) == 24
    # A line a fit: every run was done, none twice, and both had a part in it.
    assert len(small.fits()) == 24
    assert set(small.fits().values()) == {1}
    counts = [int(out.split(": ")[1].split()[0]) for out, _ in finished]
    assert sum(counts) == 24
    assert min(counts) > 0
