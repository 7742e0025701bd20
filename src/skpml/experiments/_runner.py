"""Doing the runs of a plan: in this process, in several, or on a Dask cluster."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from skpml.experiments._door import check_data, check_methods, check_names
from skpml.experiments._runs import Plan, Run
from skpml.experiments._store import Store
from skpml.experiments._timing import Estimate, Timing, seconds_of
from skpml.experiments._worker import Done, Task, do_task, needs_doing

_LOOK_EVERY = 0.5
_WAIT_FOR_OTHERS = 0.5
_SECONDS_TO_CONNECT = 10
# The share of a processor that a job gets is measured from this many runs and seconds on.
_RUNS_TO_MEASURE, _SECONDS_TO_MEASURE = 4, 5.0
# Only there to divide by: quick runs on a machine that stands still are slower than any sensible bound.
_SLOWEST = 1e-9


class WorkerDied(RuntimeError):
    """A worker process ended in the middle of a run, most often for want of memory."""


@dataclass(frozen=True)
class Progress:
    """How far a plan is.

    Attributes
    ----------
    total, done, failed : int
        Runs of the plan, and those among them with a result (done or failed), by whatever process.
    remaining : Estimate
        Time to the end at the present pace.
    """

    total: int
    done: int
    failed: int
    remaining: Estimate


@dataclass
class Outcome:
    """What came of a plan.

    Attributes
    ----------
    executed : list of Run
        Done by this call, whether they failed or not.
    skipped : int
        Runs that had a result already.
    elsewhere : int
        Runs that other processes did meanwhile.
    left : int
        Runs that a limit left out.
    failed : list of dict
        Records of all failed runs of the plan, earlier failures included.
    set_aside : list of str
        Where damaged files went; their runs were done again.
    seconds : float
    """

    executed: list[Run] = field(default_factory=list)
    skipped: int = 0
    elsewhere: int = 0
    left: int = 0
    failed: list[dict[str, Any]] = field(default_factory=list)
    set_aside: list[str] = field(default_factory=list)
    seconds: float = 0.0


def run_plan(
    plan: Plan,
    folder: str | Path,
    *,
    jobs: int = 1,
    dask: str | None = None,
    retry_failed: bool = False,
    limit: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Do the runs of a plan that have no result yet, and write a record of each.

    Before the first one, names, methods and the data files of the runs are checked.

    May be called again at any time, by several processes at once, and after any of them was killed.

    Parameters
    ----------
    plan : Plan
    folder : path-like
        Where records are kept.
    jobs : int
        Worker processes; 1 works in this process. Each computes with one thread.
    dask : str, optional
        Address of a Dask scheduler, such as ``"tcp://head:8786"``; its workers are used instead of `jobs`. They must
        see the same folders of data and results.
    retry_failed : bool
        Do failed runs again.
    limit : int, optional
        Do at most so many runs.
    on_progress : callable, optional
        Called from another thread with a :class:`Progress`, about twice a second.

    Raises
    ------
    SuiteError
        If the checks find something wrong. Nothing is written.
    WorkerDied
        If a worker process ended in the middle of a run. What was done is kept.
    """
    start = time.monotonic()
    check_names(plan)
    check_methods(plan)
    store = Store(Path(folder).expanduser().resolve())
    retry_before = datetime.now(UTC).isoformat(timespec="milliseconds") if retry_failed else None
    groups = [
        [run for run in group if needs_doing(store.read(run.key), retry_before)] for group in plan.groups()
    ]
    pending = [group for group in groups if group]
    check_data(plan, [run for group in pending for run in group])
    store.prepare()
    outcome = Outcome(skipped=len(plan.runs) - sum(map(len, pending)))
    if limit is not None:
        pending, outcome.left = _cut(pending, limit)

    def task(runs: Sequence[Run], yields: bool) -> Task:
        return Task(tuple(runs), store.folder, plan.data_home, plan.suite.folder, retry_before, yields)

    with (
        _watching(_Watch(plan, store, pending, retry_before, jobs), on_progress),
        _backend(jobs, dask) as do_all,
    ):
        yields = True
        while pending:
            busy: list[list[Run]] = []
            progressed = False
            for found in do_all([task(runs, yields) for runs in pending]):
                _note(found, outcome)
                progressed |= any(done.outcome in ("done", "failed") for done in found)
                if rest := [done.run for done in found if done.outcome == "busy"]:
                    busy.append(rest)
            # What another process was at work on is looked at again, until it is there or the other one is gone.
            pending, yields = busy, False
            if pending and not progressed:
                time.sleep(_WAIT_FOR_OTHERS)
    outcome.failed = [r for r in store.records(run.key for run in plan.runs) if r["status"] == "failed"]
    outcome.seconds = time.monotonic() - start
    return outcome


def _note(found: list[Done], outcome: Outcome) -> None:
    for done in found:
        if done.outcome == "present":
            outcome.elsewhere += 1
        elif done.outcome != "busy":
            outcome.executed.append(done.run)
        if done.set_aside is not None:
            outcome.set_aside.append(done.set_aside)


def _cut(groups: list[list[Run]], limit: int) -> tuple[list[list[Run]], int]:
    kept, room = [], limit
    for group in groups:
        if room > 0:
            kept.append(group[:room])
        room -= len(group)
    return kept, sum(map(len, groups)) - sum(map(len, kept))


DoAll = Callable[[list[Task]], Iterator[list[Done]]]


@contextmanager
def _backend(jobs: int, dask: str | None) -> Iterator[DoAll]:
    """Gives a function that does tasks, in any order, and yields what became of each."""
    if dask is not None:
        with _dask_backend(dask) as do_all:
            yield do_all
    elif jobs == 1:
        yield lambda tasks: map(do_task, tasks)
    else:
        yield lambda tasks: _in_processes(tasks, jobs)


def _in_processes(tasks: list[Task], jobs: int) -> Iterator[list[Done]]:
    import joblib
    from joblib.externals.loky.process_executor import BrokenProcessPool

    # Without the limit each worker would start as many threads as there are processors.
    with joblib.parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
        parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs")
        try:
            yield from parallel(joblib.delayed(do_task)(task) for task in tasks)
        except BrokenProcessPool as error:
            raise WorkerDied(
                "a worker process died in the middle of a run, most often for want of memory; what was done is kept: "
                "start again with fewer jobs"
            ) from error


@contextmanager
def _dask_backend(address: str) -> Iterator[DoAll]:
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise ImportError("a Dask cluster needs dask: pip install scikit-pml[dask]") from error
    try:
        client = distributed.Client(address, timeout=_SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise OSError(f"no Dask scheduler answers at {address}") from error

    def do_all(tasks: list[Task]) -> Iterator[list[Done]]:
        # Not pure: a task looks at the folder, so that equal tasks need not have equal results.
        futures = client.map(do_task, tasks, pure=False)
        try:
            for future in distributed.as_completed(futures, loop=client.loop):
                yield future.result()
        except distributed.KilledWorker as error:
            raise WorkerDied(
                "a Dask worker died several times in the middle of a run, most often for want of memory; what was "
                "done is kept: start again with more memory a worker"
            ) from error
        finally:
            client.cancel(futures)

    with client:
        yield do_all


@contextmanager
def _watching(watch: _Watch, on_progress: Callable[[Progress], None] | None) -> Iterator[None]:
    """Tell how far the plan is, from the folder alone: it shows the runs of all processes, as they come."""
    if on_progress is None:
        yield
        return
    on_progress(watch.look())
    stop = threading.Event()

    def go_on() -> None:
        while not stop.wait(_LOOK_EVERY):
            on_progress(watch.look())

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        on_progress(watch.look())


class _Watch:
    """Follows the folder: which runs of the plan came to an end since the last look, and how fast."""

    def __init__(
        self, plan: Plan, store: Store, pending: list[list[Run]], retry_before: str | None, jobs: int
    ) -> None:
        self._store, self._retry_before, self._jobs = store, retry_before, jobs
        self._waiting = {run.key: run for group in pending for run in group}
        present = store.records()
        # Runs of other suites in the folder say something about time too.
        self._timing = Timing(present)
        ours = {run.key for run in plan.runs}
        settled = [r for r in present if r["key"] in ours and not needs_doing(r, retry_before)]
        self._done = len(settled)
        self._failed = sum(record["status"] == "failed" for record in settled)
        self._total = self._done + len(self._waiting)
        self._start, self._spent, self._finished = time.monotonic(), 0.0, 0

    def look(self) -> Progress:
        for key in self._store.keys() & set(self._waiting):
            record = self._store.read(key)
            if record is None or needs_doing(record, self._retry_before):
                continue
            del self._waiting[key]
            self._done += 1
            self._failed += record["status"] == "failed"
            self._timing.add(record)
            self._spent += seconds_of(record)
            self._finished += 1
        alone = self._timing.estimate(self._waiting.values())
        remaining = Estimate(alone.seconds / self._pace(alone), alone.unknown)
        return Progress(self._total, self._done, self._failed, remaining)

    def _pace(self, alone: Estimate) -> float:
        """Seconds of work done in a second: the number of jobs less all that slows them, measured."""
        elapsed = time.monotonic() - self._start
        if elapsed < _SECONDS_TO_MEASURE:
            return float(self._jobs)
        if self._finished >= _RUNS_TO_MEASURE:
            return max(self._spent / elapsed, _SLOWEST)
        # Hardly anything is finished after all this time: what is under way may be nearly done, but no more than that.
        known = len(self._waiting) - alone.unknown
        under_way = self._jobs * alone.seconds / known if known else 0.0
        return min(max((self._spent + under_way) / elapsed, _SLOWEST), float(self._jobs))
