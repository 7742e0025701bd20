"""The runner as real processes: interrupted from the terminal, and with failing runs."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from bench_helpers import BROKEN, ENDLESS, Small, records, wait_until_gone

from skpml.experiments import Store, expand, load_suite, run_plan

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name == "nt", reason="signals of processes are POSIX's"),
]


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path)


def test_failures_are_kept_told_and_retried_only_when_asked(small: Small) -> None:
    small.suite(count=1, extra=BROKEN)
    code, out, err = small.run()
    assert code == 3
    assert "6 runs failed" in err
    assert "ZeroDivisionError: no luck with seed 0" in err
    failed = [record for record in Store(small.results).records() if record["status"] == "failed"]
    assert len(failed) == 6
    assert len(records(small.results)) == 12
    error = failed[0]["error"]
    assert error["type"] == "ZeroDivisionError"
    assert "in _fit" in error["traceback"]
    assert failed[0]["metrics"] is None

    (small.folder / "repaired").touch()
    code, out, err = small.run()
    assert (code, "6 runs failed" in err, "0 runs done" in out) == (3, True, True)
    code, out, err = small.run("--retry-failed")
    assert (code, err) == (0, "")
    assert "6 runs done" in out
    assert {record["status"] for record in records(small.results).values()} == {"done"}


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_keeps_what_is_done(small: Small, jobs: str) -> None:
    small.suite(seconds=0.3, extra=ENDLESS)
    process = small.start("--jobs", jobs)
    small.wait_for_results(3, process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes of the command
    start = time.monotonic()
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - start < 10
    assert process.returncode == 130
    assert "finished runs are kept" in err
    assert "Traceback" not in err
    kept = records(small.results)
    assert 3 <= len(kept) < 18
    assert {record["status"] for record in kept.values()} == {"done"}
    wait_until_gone(small.pids())
    small.suite(seconds=0.3)
    run_plan(expand(load_suite(small.path)), small.results)
    assert len(records(small.results)) == 18
