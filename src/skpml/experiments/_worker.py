"""Worker processes that do one run after the other, and are watched: a run that dies ends its own process only.

A process is kept for the next run, also that of a later call; one that died or exceeded a limit is replaced. Threads of
:func:`~skpml.experiments.run_plan` and tasks of a Dask cluster use the same functions.
"""

from __future__ import annotations

import atexit
import faulthandler
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from queue import Empty, Queue
from typing import Any, BinaryIO

import psutil

from skpml._sharing import shared_work
from skpml.experiments._evaluate import FoldData
from skpml.experiments._execute import Limits, current_time, execute, record_failure
from skpml.experiments._runs import Run, check_code
from skpml.experiments._suite import SuiteError

_LOOK_EVERY = 0.1
# To find the children of a process is to read the table of all processes.
_FIND_CHILDREN_EVERY = 1.0
# An idle process ends by itself; shortly before, it is no longer used.
_IDLE_SECONDS, _USE_WITHIN_SECONDS = 60.0, 45.0
_SECONDS_TO_END = 5.0
_SECONDS_FOR_TRACEBACK = 1.0

# Otherwise each process would start as many threads as there are processors.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
     "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS"),
    "1",
)  # fmt: skip

# The path of modules must be set before the first import.
_MAIN = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from skpml.experiments._worker import serve; serve(int(sys.argv[2]))"
)
_READY = "ready"
_ON_WINDOWS = os.name == "nt"


class WorkerDied(RuntimeError):
    """Raised when workers ended for a reason that is not a run, such as a lost connection to a cluster."""


class Stopped(Exception):
    """Raised instead of a result if :func:`stop_workers` ended the run."""


@dataclass(frozen=True)
class _Request:
    """A run, and what can change in the process that asks for it during the life of the worker."""

    session: str
    run: Run
    data_home: Path | None
    suite_folder: Path | None
    environment: dict[str, str] = field(default_factory=lambda: {**os.environ, **_ONE_THREAD})
    module_path: list[str] = field(default_factory=lambda: list(sys.path))
    working_folder: Path = field(default_factory=Path.cwd)

    @property
    def fold(self) -> tuple[Any, ...]:
        """Identity of the data and the work that runs share; a new session loads its data again."""
        run = self.run
        place = (run.configuration, run.seed, run.folds, run.fold, run.kind)
        return (self.session, self.data_home, self.suite_folder, *place)


class _Ended(Exception):
    """Raised if a process ended instead of sending a result; holds the error of the record."""

    def __init__(self, error: dict[str, Any], peak_memory_mb: float | None = None) -> None:
        super().__init__(error["message"])
        self.error, self.peak_memory_mb = error, peak_memory_mb


class Worker:
    """Does runs in a process of its own, which is started on first use and after each death."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.process: _Process | None = None

    def execute(
        self, run: Run, data_home: Path | None, suite_folder: Path | None, limits: Limits
    ) -> dict[str, Any]:
        """Do a run and return its record, also if the run ended the process or exceeded a limit.

        Raises SuiteError if the process has other code than the run was planned with.
        """
        record, is_sure = self._try(run, data_home, suite_folder, limits)
        if not is_sure:
            # Not to blame for what earlier runs left behind: a new process decides.
            record, _ = self._try(run, data_home, suite_folder, limits, new=True)
        return record

    def _try(
        self,
        run: Run,
        data_home: Path | None,
        suite_folder: Path | None,
        limits: Limits,
        *,
        new: bool = False,
    ) -> tuple[dict[str, Any], bool]:
        """Return a record, and whether it depends on this run alone."""
        process = self._start(new)
        started, has_begun = current_time(), False
        try:
            process.send(_Request(self.session, run, data_home, suite_folder))
            # Not part of the run, and not under its limits.
            if (answer := process.receive(Limits())) != _READY:
                raise answer
            has_begun = True
            record: dict[str, Any] = process.receive(limits)
            record["provenance"]["limits"] = asdict(limits)
            return record, True
        except _Ended as end:
            self._discard()
            record = record_failure(
                run, end.error, limits=limits, started=started, peak_memory_mb=end.peak_memory_mb
            )
            is_sure = has_begun and end.error["type"] != "MemoryLimitExceeded"
            return record, is_sure or process.n_done == 0
        except BaseException:
            self._discard()
            raise

    def _start(self, new: bool) -> _Process:
        with _LOCK:
            if self.session in _STOPPED:
                raise Stopped
            if self.process is None:
                self.process = (None if new else _take_idle()) or _Process()
            process = self.process
        try:
            process.wait_until_ready()
        except _Ended as end:
            self._discard()
            raise WorkerDied(f"a worker process could not be started: {end}") from end
        return process

    def _discard(self) -> None:
        """Forget the process; raise Stopped if it did not end by itself."""
        with _LOCK:
            process, self.process = self.process, None
            if process is not None:
                process.close()
            if self.session in _STOPPED:
                raise Stopped


# Protects the three below.
_LOCK = threading.Lock()
_BUSY: set[Worker] = set()
_IDLE: list[tuple[_Process, float]] = []
_STOPPED: set[str] = set()


@contextmanager
def hold_worker(session: str) -> Iterator[Worker]:
    """Give a worker for the runs of one fold; `session` identifies the call that they belong to."""
    worker = Worker(session)
    with _LOCK:
        _BUSY.add(worker)
    try:
        yield worker
    finally:
        with _LOCK:
            _BUSY.remove(worker)
            if worker.process is not None:
                _IDLE.append((worker.process, time.monotonic()))


def stop_workers(session: str) -> None:
    """End all runs of a call in this process, and those that would follow, without a record."""
    with _LOCK:
        _STOPPED.add(session)
        for worker in _BUSY:
            if worker.session == session and worker.process is not None:
                worker.process.kill()


def _take_idle() -> _Process | None:
    """Return the process that was used last; end those that are about to end by themselves."""
    for place in list(_IDLE):
        process, since = place
        if time.monotonic() - since > _USE_WITHIN_SECONDS or not process.is_alive:
            _IDLE.remove(place)
            process.close()
    return _IDLE.pop()[0] if _IDLE else None


@atexit.register
def _close_idle() -> None:
    with _LOCK:
        while _IDLE:
            _IDLE.pop()[0].close()


class _Process:
    """A process that runs :func:`serve`, seen from the process that started it."""

    def __init__(self) -> None:
        self.n_done = 0
        # Here the process writes where it is when it crashes or is stopped, but not on Windows.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        log = self._log.fileno()
        # Not in the group of a terminal, so that Ctrl-C reaches only the process that decides what to do.
        self._popen = subprocess.Popen(
            [sys.executable, "-c", _MAIN, json.dumps(sys.path), str(log)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=() if _ON_WINDOWS else (log,),
            start_new_session=True, env={**os.environ, **_ONE_THREAD},
        )  # fmt: skip
        self._is_ready = False
        self._replies: Queue[Any] = Queue()
        threading.Thread(target=self._read, daemon=True).start()

    @property
    def is_alive(self) -> bool:
        return self._popen.poll() is None

    def wait_until_ready(self) -> None:
        """Wait until all modules are imported."""
        if not self._is_ready:
            self.receive(Limits())
            self._is_ready = True

    def send(self, request: _Request) -> None:
        assert self._popen.stdin is not None
        # If the process is gone, receive() reports it.
        with suppress(BrokenPipeError):
            pickle.dump(request, self._popen.stdin)
            self._popen.stdin.flush()

    def receive(self, limits: Limits) -> Any:
        """Return the next reply; raise _Ended if the process died or exceeded a limit, and is dead now."""
        start = time.monotonic()
        memory = None if limits.memory_mb is None else _Memory(self._popen.pid)
        while True:
            with suppress(Empty):
                reply = self._replies.get(timeout=_LOOK_EVERY)
                if reply is None:
                    raise _Ended(self._explain_death())
                self.n_done += reply != _READY
                return reply
            if not self.is_alive and self._replies.empty():
                # A child of the process still holds the pipe.
                raise _Ended(self._explain_death())
            if limits.seconds is not None and time.monotonic() - start > limits.seconds:
                message = f"the run took longer than the limit of {limits.seconds:g} s and was stopped"
                raise _Ended(self._explain_stop("TimeLimitExceeded", message))
            if (
                memory is not None
                and limits.memory_mb is not None
                and (used := memory.measure()) > limits.memory_mb
            ):
                message = (
                    f"the run took more memory than the limit of {limits.memory_mb:g} MB and was stopped"
                )
                raise _Ended(self._explain_stop("MemoryLimitExceeded", message), round(used, 1))

    def kill(self) -> None:
        """End the process and its children at once."""
        if _ON_WINDOWS:
            with suppress(psutil.Error):
                for child in psutil.Process(self._popen.pid).children(recursive=True):
                    child.kill()
            self._popen.kill()
        else:
            # Its children are in the group too, also if their parent is dead.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._popen.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the process and remove its traces."""
        self.kill()
        self._popen.wait()
        for file in (self._popen.stdin, self._popen.stdout, self._log):
            assert file is not None
            with suppress(OSError):
                file.close()

    def _read(self) -> None:
        assert self._popen.stdout is not None
        # A process that dies can leave half a reply.
        with suppress(EOFError, pickle.UnpicklingError, OSError, ValueError):
            while True:
                self._replies.put(pickle.load(self._popen.stdout))
        self._replies.put(None)

    def _explain_death(self) -> dict[str, Any]:
        try:
            code = self._popen.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self._popen.wait()
        message = f"the run ended its process with exit code {code}"
        if code < 0:
            name = signal.strsignal(-code) or "unknown"
            message = f"the process of the run was killed by signal {-code} ({name})"
            if code == -getattr(signal, "SIGKILL", 9):
                message += ", usually because the machine ran out of memory"
        return self._make_error("ProcessDied", message, code)

    def _explain_stop(self, kind: str, message: str) -> dict[str, Any]:
        if not _ON_WINDOWS:
            # The process writes where it is, even if it is in compiled code.
            self._popen.send_signal(signal.SIGUSR1)
            end, size = time.monotonic() + _SECONDS_FOR_TRACEBACK, 0
            while time.monotonic() < end and (not size or size != os.fstat(self._log.fileno()).st_size):
                size = os.fstat(self._log.fileno()).st_size
                time.sleep(0.02)
        self.kill()
        return self._make_error(kind, message, self._popen.wait())

    def _make_error(self, kind: str, message: str, exit_code: int) -> dict[str, Any]:
        self._log.seek(0)
        trace = self._log.read().decode("utf-8", errors="replace")
        return {"type": kind, "message": message, "traceback": f"{trace}{message}\n", "exit_code": exit_code}


class _Memory:
    """Resident memory of a process and its children."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._children: list[psutil.Process] = []
        self._found_at = -_FIND_CHILDREN_EVERY

    def measure(self) -> float:
        """Return MB of 10⁶ bytes; pages that several processes share count for each."""
        with suppress(psutil.Error):
            if time.monotonic() - self._found_at >= _FIND_CHILDREN_EVERY:
                self._children = self._process.children(recursive=True)
                self._found_at = time.monotonic()
        total = 0.0
        for process in (self._process, *self._children):
            with suppress(psutil.Error):
                total += process.memory_info().rss / 1e6
        return total


def serve(log: int) -> None:
    """Do the runs that come through standard input; the main function of a worker process.

    `log` is the descriptor of the file for the traceback of a crash.
    """
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What a method reads and prints must not mix with requests and results.
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    if not _ON_WINDOWS:
        faulthandler.enable(log)
        faulthandler.register(signal.SIGUSR1, log)
    # If memory runs out, the kernel shall choose this process and not the one that watches it.
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    received: Queue[_Request] = Queue()
    threading.Thread(target=_receive, args=(requests, received), daemon=True).start()
    _reply(replies, _READY)
    for _, group in groupby(_prepare_requests(received), key=lambda request: request.fold):
        data = None
        with shared_work() as work:
            for request in group:
                data = data or FoldData(request.run, request.data_home, request.suite_folder)
                try:
                    check_code(request.run, request.suite_folder)
                except SuiteError as error:
                    _reply(replies, error)
                    continue
                _reply(replies, _READY)
                _reply(replies, execute(request.run, data, work=work))
    os._exit(0)


def _receive(requests: BinaryIO, received: Queue[_Request]) -> None:
    with suppress(EOFError, pickle.UnpicklingError):
        while True:
            received.put(pickle.load(requests))
    # The process that asked is gone; nobody wants the result.
    if not _ON_WINDOWS:
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def _prepare_requests(received: Queue[_Request]) -> Iterator[_Request]:
    """Give the requests in the surroundings of the process that asks; end if none comes for a while."""
    with suppress(Empty):
        while True:
            request = received.get(timeout=_IDLE_SECONDS)
            os.environ.clear()
            os.environ.update(request.environment)
            sys.path[:] = request.module_path
            os.chdir(request.working_folder)
            yield request


def _reply(replies: BinaryIO, content: Any) -> None:
    pickle.dump(content, replies)
    replies.flush()
