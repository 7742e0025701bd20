"""A small experiment in a folder of its own, with methods that count, fail or die, and the command as a real process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from skpml.datasets import PartialDataset, write_npz

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
COMMAND = [sys.executable, "-c", "from skpml.cli import main; main()"]

# Every fit adds a line to a file, in one write that the kernel appends: the count of work really done.
METHODS = """
import ctypes, os, signal, time
import numpy as np
from pathlib import Path
from skpml.reference import CandidateRidge

HERE = Path(__file__).parent

class Counting(CandidateRidge):
    def __init__(self, *, mark=0, seconds=0.0, together=0, gamma=1.0, feature_map="linear", n_anchors=None,
                 threshold="auto", on_empty="warn", random_state=None):
        super().__init__(gamma=gamma, feature_map=feature_map, n_anchors=n_anchors, threshold=threshold,
                         on_empty=on_empty, random_state=random_state)
        self.mark = mark
        self.seconds = seconds
        self.together = together

    def _note(self, X):
        line = f"{self.mark} {self.random_state} {int(1e6 * X.sum())}\\n"
        file = os.open(HERE / "fits.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, line.encode())
        os.close(file)

    def _fit(self, X, Y):
        self._note(X)
        time.sleep(self.seconds)
        # Nobody goes on before so many processes are at work.
        (HERE / "at_work").mkdir(exist_ok=True)
        (HERE / "at_work" / str(os.getpid())).touch()
        deadline = time.monotonic() + 60
        while len(list((HERE / "at_work").iterdir())) < self.together and time.monotonic() < deadline:
            time.sleep(0.02)
        return super()._fit(X, Y)

class Broken(Counting):
    def _fit(self, X, Y):
        if not (HERE / "repaired").exists():
            raise ZeroDivisionError(f"no luck\\nwith seed {self.random_state}")
        return super()._fit(X, Y)

def start_child(work):
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    (HERE / "children").mkdir(exist_ok=True)
    (HERE / "children" / str(child)).touch()
    return child

class Exits(Counting):
    # The child holds the pipes of the worker, which must not keep the suite waiting.
    def _fit(self, X, Y):
        self._note(X)
        start_child(lambda: time.sleep(1000))
        os._exit(7)

class Crashes(Counting):
    def _fit(self, X, Y):
        self._note(X)
        ctypes.string_at(0)

class Sleeps(Counting):
    def _fit(self, X, Y):
        self._note(X)
        ctypes.PyDLL(None).sleep(1000)  # holds Python's lock, as compiled code can

def grow():
    blocks = []
    while len(blocks) < 200:
        blocks.append(np.ones(2_500_000))  # 20 MB, at most 4 GB
        time.sleep(0.01)

class Grows(Counting):
    # Memory of children counts.
    def _fit(self, X, Y):
        self._note(X)
        os.waitpid(start_child(grow), 0)

class Hoards(Counting):
    kept = []

    def _fit(self, X, Y):
        self.kept.append(np.ones(40_000_000))  # 320 MB
        time.sleep(0.5)
        return super()._fit(X, Y)

class Surroundings(Counting):
    def _fit(self, X, Y):
        import warnings
        warnings.warn(f"{os.environ['SKPML_TEST']} {os.getcwd()}", UserWarning)
        return super()._fit(X, Y)

class Threads(Counting):
    def _fit(self, X, Y):
        import warnings
        from threadpoolctl import threadpool_info
        warnings.warn(f"threads: {max(pool['num_threads'] for pool in threadpool_info())}", UserWarning)
        return super()._fit(X, Y)

class NoEstimator:
    pass
"""

SUITE = """name = "small"
configurations = [{configurations}]
seeds = [0]
folds = {folds}
only_folds = {only_folds}
{methods}
"""


class Small:
    """A folder with a suite, data and methods."""

    def __init__(self, folder: Path) -> None:
        # Another test's module of this name writes to another folder.
        sys.modules.pop("own_methods", None)
        self.folder = folder
        self.path = folder / "small.toml"
        self.results = folder / "results"
        (folder / "own_methods.py").write_text(METHODS)
        for seed, name in enumerate(("one", "two")):
            write_npz(problem(seed), folder / f"{name}.npz")

    def suite(
        self,
        *,
        count: int = 3,
        seconds: float = 0.0,
        together: int = 0,
        folds: int = 3,
        only_folds: Sequence[int] = (),
        data: int = 2,
        extra: str = "",
    ) -> Path:
        methods = "".join(
            f'\n[[methods]]\nname = "own_methods:Counting"\nlabel = "counting {mark}"\n'
            f"parameters = {{ mark = {mark}, seconds = {seconds}, together = {together}, gamma = {mark + 1}.0 }}\n"
            for mark in range(count)
        )
        names = ", ".join(f'"{name}.npz"' for name in ("one", "two")[:data])
        chosen = list(only_folds or range(folds))
        self.path.write_text(
            SUITE.format(configurations=names, folds=folds, only_folds=chosen, methods=methods + extra)
        )
        return self.path

    def dying_suite(self, *names: str, data: int = 1) -> Path:
        """One fold of each data set: a good method, some that die, and another good one."""
        extra = "".join(entry(name, mark) for mark, name in enumerate(names, start=5)) + entry("Counting", 1)
        return self.suite(count=1, data=data, only_folds=[0], extra=extra)

    def start(self, *arguments: str, results: Path | None = None) -> subprocess.Popen[str]:
        """``skpml bench run`` in a process group of its own."""
        folder = self.results if results is None else results
        return subprocess.Popen(
            [*COMMAND, "bench", "run", str(self.path), "--folder", str(folder), *arguments],
            env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def run(self, *arguments: str, results: Path | None = None) -> tuple[int, str, str]:
        process = self.start(*arguments, results=results)
        stdout, stderr = process.communicate(timeout=300)
        return process.returncode, stdout, stderr

    def fits(self) -> Counter[str]:
        log = self.folder / "fits.log"
        return Counter(log.read_text().splitlines()) if log.exists() else Counter()

    def forget_fits(self) -> None:
        (self.folder / "fits.log").unlink(missing_ok=True)

    def pids(self, kind: str = "at_work") -> list[int]:
        """The processes that did a fit, or the "children" that they started."""
        return [int(path.name) for path in (self.folder / kind).iterdir()]

    def wait_for_results(self, count: int, process: subprocess.Popen[str]) -> None:
        """Until so many records are there; the process must still be at work then."""
        # Generous: on a machine with other work a start alone may take a minute.
        deadline = time.monotonic() + 240
        while len(record_files(self.results)) < count:
            assert process.poll() is None, process.communicate()
            if time.monotonic() > deadline:
                process.kill()
                raise AssertionError(f"no {count} results within four minutes")
            time.sleep(0.01)


def problem(seed: int) -> PartialDataset:
    rng = np.random.default_rng(seed)
    truth = (rng.random((90, 4)) < 0.4).astype(int)
    truth[np.arange(90), rng.integers(4, size=90)] = 1
    candidates = truth | (rng.random(truth.shape) < 0.2)
    X = truth @ rng.normal(size=(4, 5)) + 0.3 * rng.normal(size=(90, 5))
    return PartialDataset(X, candidates, truth)


def record_files(results: Path) -> list[Path]:
    return sorted((results / "runs").glob("[!.]*.json"))


TIMES = ("tune_seconds", "fit_seconds", "predict_seconds", "peak_memory_mb")


def records(results: Path) -> dict[str, dict[str, Any]]:
    """All records but for time and memory, by key."""
    found = {}
    for path in record_files(results):
        record = json.loads(path.read_text())
        for name in (*TIMES, "digest"):
            del record[name]
        del record["provenance"]["started"]
        found[path.stem] = record
    return found


DYING = {"Exits": "ProcessDied", "Crashes": "ProcessDied", "Sleeps": "TimeLimitExceeded",
         "Grows": "MemoryLimitExceeded"}  # fmt: skip
# A worker has about 200 MB before its first run. Good runs take milliseconds, but not on a busy machine.
RUN_TIMEOUT, RUN_MEMORY_MB = 8.0, 700.0


def check_causes(results: Path) -> None:
    """The record of every run that died says why, and all others are done."""
    for path in record_files(results):
        record = json.loads(path.read_text())
        name, error = record["run"]["method"].partition(":")[2], record["error"]
        assert record["provenance"]["limits"] == {"seconds": RUN_TIMEOUT, "memory_mb": RUN_MEMORY_MB}
        assert (record["status"], None if error is None else error["type"]) == (
            ("failed", DYING[name]) if name in DYING else ("done", None)
        )
        if name not in DYING:
            continue
        assert error["exit_code"] == {"Exits": 7, "Crashes": -signal.SIGSEGV}.get(name, -signal.SIGKILL)
        # os._exit leaves no trace.
        assert ("in _fit" in error["traceback"]) == (name != "Exits")
        assert record["metrics"] is None
        if name == "Grows":
            assert RUN_MEMORY_MB < record["peak_memory_mb"] < 3 * RUN_MEMORY_MB


def wait_until_gone(pids: Iterable[int]) -> None:
    """Until none of these processes runs; one that nobody has waited for does not."""
    deadline = time.monotonic() + 20
    for pid in pids:
        while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline, f"process {pid} still runs"
            time.sleep(0.05)


def entry(name: str, mark: int = 9) -> str:
    """A method of the suite, by the name of its class."""
    return f'\n[[methods]]\nname = "own_methods:{name}"\nlabel = "{name}"\nparameters = {{ mark = {mark} }}\n'


BROKEN = '\n[[methods]]\nname = "own_methods:Broken"\nlabel = "broken"\nparameters = { mark = 9 }\n'
ENDLESS = (
    '\n[[methods]]\nname = "own_methods:Counting"\nlabel = "endless"\nparameters = { seconds = 1000.0 }\n'
)
