"""Execution of a plan: by worker processes of this machine, or on a Dask cluster."""

from __future__ import annotations

import json
import math
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from skpml.datasets import DIGITS, READERS, REGISTRY, present_files, split_configuration
from skpml.experiments._evaluate import FoldData
from skpml.experiments._execute import Limits, current_time, record_failure
from skpml.experiments._runs import Plan, Run, custom_estimator
from skpml.experiments._store import Store
from skpml.experiments._suite import (
    KeyPath,
    SuiteError,
    dataset_of,
    find_close,
    find_unknown_parameters,
    is_data_file,
)
from skpml.experiments._worker import WorkerDied, hold_worker, stop_workers

_LOOK_EVERY = 0.5
_WAIT_FOR_OTHERS = 0.5
_SECONDS_TO_CONNECT = 10
# The pace is measured, and no longer assumed, from this many runs and seconds on.
_RUNS_TO_MEASURE, _SECONDS_TO_MEASURE = 4, 5.0


@dataclass(frozen=True)
class Estimate:
    """Expected seconds of some runs, one after the other, and the number of runs that cannot be estimated."""

    seconds: float
    unknown: int

    def __str__(self) -> str:
        if self.unknown and not self.seconds:
            return "unknown"
        return f"{'at least' if self.unknown else 'about'} {format_duration(self.seconds)}"


class Timing:
    """Mean time of finished runs, by method and configuration."""

    def __init__(self, records: Iterable[Mapping[str, Any]] = ()) -> None:
        self._seconds: dict[str, list[float]] = defaultdict(list)
        for record in records:
            self.add(record)

    def add(self, record: Mapping[str, Any]) -> None:
        """Add a record; failed runs are ignored."""
        if record["status"] == "done":
            for kind in set(_kinds(record["run"])):
                self._seconds[kind].append(seconds_of(record))

    def estimate(self, runs: Iterable[Run]) -> Estimate:
        """Use the mean on the same configuration, else on the same data set with other noise."""
        seconds, unknown = 0.0, 0
        for run in runs:
            known = next((self._seconds[kind] for kind in _kinds(vars(run)) if kind in self._seconds), [])
            unknown += not known
            seconds += sum(known) / max(len(known), 1)
        return Estimate(seconds, unknown)


def _kinds(run: Mapping[str, Any]) -> list[str]:
    """Return what determines the time of a run, exactly and roughly; single parameters hardly matter."""
    method = [run["method"], run["tuning"], run["trained_on"]]
    places = (run["configuration"], dataset_of(run["configuration"]))
    return [json.dumps([*method, place], sort_keys=True) for place in places]


def seconds_of(record: Mapping[str, Any]) -> float:
    """Return the time of a run: tuning, fit and prediction."""
    return float(sum(record.get(f"{part}_seconds") or 0.0 for part in ("tune", "fit", "predict")))


def format_duration(seconds: float) -> str:
    """Format a time as seconds, minutes or hours."""
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{seconds / 3600:.1f} h"


@dataclass(frozen=True)
class Progress:
    """Number of runs of a plan, of finished and failed ones from any process, and the remaining time."""

    total: int
    done: int
    failed: int
    remaining: Estimate


@dataclass
class Outcome:
    """Result of :func:`run_plan`.

    executed: runs done by this call, failed ones included. skipped: had a result before. elsewhere: done by other
    processes meanwhile. left: omitted because of a limit. failed: records of all failed runs of the plan. set_aside: new
    paths of damaged files, whose runs were repeated.
    """

    executed: list[Run] = field(default_factory=list)
    skipped: int = 0
    elsewhere: int = 0
    left: int = 0
    failed: list[dict[str, Any]] = field(default_factory=list)
    set_aside: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True)
class TaskResult:
    """What happened to a run: done or failed here, already present, or busy in another process."""

    run: Run
    outcome: Literal["done", "failed", "present", "busy"]
    set_aside: str | None = None


def run_plan(
    plan: Plan,
    folder: str | Path,
    *,
    jobs: int = 1,
    dask: str | None = None,
    retry_failed: bool = False,
    limit: int | None = None,
    run_timeout: float | None = None,
    run_memory_mb: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Do the runs of a plan that have no result yet, and write a record of each.

    Names, methods and data files are checked before the first run. The call can be repeated at any time, by several
    processes at once, and after any of them was killed. Runs are done by worker processes: one that dies, or exceeds a
    limit, is a failed run, whose record has the cause in ``error``; the others go on.

    Parameters
    ----------
    plan : Plan
        The runs.
    folder : path-like
        Folder of the records.
    jobs : int, default=1
        Number of worker processes with one thread each.
    dask : str, optional
        Address of a Dask scheduler, such as ``"tcp://head:8786"``, or the path of its scheduler file. Its workers are
        used instead of `jobs`; each does as many runs at once as it has threads. They must have access to the same
        folders of data and results.
    retry_failed : bool, default=False
        Repeat failed runs, also those that died or exceeded a limit.
    limit : int, optional
        Maximum number of runs.
    run_timeout : float, optional
        Seconds after which a run is stopped. The time to load the data counts, the start of the process does not.
    run_memory_mb : float, optional
        A run is stopped when its process and the children of it have more resident memory, in MB (10⁶ bytes). This is
        looked up ten times a second, so a run can briefly take more.
    on_progress : callable, optional
        Called from another thread with a :class:`Progress`, about twice a second.

    Returns
    -------
    Outcome
        Lists of executed, skipped and failed runs.

    Raises
    ------
    SuiteError
        If a check fails. Nothing is written.
    ValueError
        If a limit is not positive.
    WorkerDied
        If workers cannot be started, or the connection to the Dask scheduler is lost. Finished runs are kept.
    """
    for name, value in (("run_timeout", run_timeout), ("run_memory_mb", run_memory_mb)):
        if value is not None and not value > 0:
            raise ValueError(f"{name} must be positive, not {value!r}")
    start, limits, session = time.monotonic(), Limits(run_timeout, run_memory_mb), uuid4().hex
    check_names(plan)
    check_methods(plan)
    store = Store(Path(folder).expanduser().resolve())
    retry_before = _find_retry_time(plan, store) if retry_failed else None
    groups = [[run for run in group if _is_due(store.read(run.key), retry_before)] for group in plan.groups()]
    pending = [group for group in groups if group]
    check_data(plan, [run for group in pending for run in group])
    store._prepare()
    outcome = Outcome(skipped=len(plan.runs) - sum(map(len, pending)))
    if limit is not None:
        kept = set(islice(chain(*pending), limit))
        outcome.left = sum(map(len, pending)) - len(kept)
        pending = [group for runs in pending if (group := [run for run in runs if run in kept])]
    watch = _Watch(plan, store, pending, retry_before, jobs)
    connection = nullcontext() if dask is None else _connect(dask)
    with _report_progress(watch, on_progress), connection as client:
        # Does groups of runs in any order, by a function of one group.
        do_all: Any = partial(_do_here, jobs, session)
        if dask is not None:
            record_killed = partial(_record_killed, limits, store, retry_before)
            do_all = partial(_do_on_cluster, client, session, record_killed)
        yields = True
        while pending:
            folders = (store.folder, plan.data_home, plan.suite.folder)
            do = partial(do_task, session, limits, *folders, retry_before, yields)
            n_executed, busy = len(outcome.executed), []
            for results in do_all(do, pending):
                outcome.executed += [each.run for each in results if each.outcome in ("done", "failed")]
                outcome.elsewhere += sum(each.outcome == "present" for each in results)
                outcome.set_aside += [each.set_aside for each in results if each.set_aside is not None]
                busy.append([each.run for each in results if each.outcome == "busy"])
            # Runs of other processes are checked again until they are present or the other process is gone.
            pending, yields = list(filter(None, busy)), False
            if pending and len(outcome.executed) == n_executed:
                time.sleep(_WAIT_FOR_OTHERS)
    outcome.failed = [r for r in store.records(run.key for run in plan.runs) if r["status"] == "failed"]
    outcome.seconds = time.monotonic() - start
    return outcome


def _find_retry_time(plan: Plan, store: Store) -> str:
    """Return the time before which failures are to be repeated: now, or after all present ones if a clock was wrong."""
    present = store.records(run.key for run in plan.runs)
    started = [str(each["provenance"].get("started", "")) for each in present if each["status"] == "failed"]
    return max(current_time(), *(f"{time}~" for time in started), "")


def _is_due(record: dict[str, Any] | None, retry_before: str | None) -> bool:
    """Whether a run must be done: no readable record, or a failure that is to be repeated."""
    if record is None:
        return True
    if record["status"] != "failed" or retry_before is None:
        return False
    # A failure after the start is from this retry, perhaps by another process: once is enough.
    return str(record["provenance"].get("started", "")) < retry_before


def check_names(plan: Plan) -> None:
    """Raise SuiteError for configurations that are mistakes and not merely absent; opens no file."""
    for position, name in enumerate(plan.suite.configurations):
        problem = _find_impossible_noise(name, plan.data_home)
        if name in plan.absent and is_data_file(name):
            beside = [path.name for path in (plan.suite.folder or Path()).iterdir()]
            problem = plan.absent[name] + find_close(name, filter(is_data_file, beside))
        elif name in plan.absent and (data := dataset_of(name)) not in REGISTRY:
            known = [DIGITS.name, *REGISTRY, *present_files(plan.data_home)]
            problem = f"there is no data set {data!r}{find_close(data, known, name.removeprefix(data))}"
            problem += f" ('skpml data list' lists names, a data file ends in {', '.join(READERS)})"
        if problem is not None:
            raise plan.suite._error_at(("configurations", position), problem)


def check_methods(plan: Plan) -> None:
    """Raise SuiteError for custom methods that cannot be imported, or lack a parameter that is set."""
    runs = {entry.label: entry.run for entry in plan.entries}
    for position, method in enumerate(plan.suite.methods):
        if ":" not in method.name or method.label not in runs:
            continue
        place: KeyPath = ("methods", position)
        try:
            model = custom_estimator(method.name, plan.suite.folder, runs[method.label])
        except SuiteError as error:
            raise plan.suite._error_at((*place, "name"), error.problem) from error
        for path, problem in find_unknown_parameters(method, place, model.get_params()):
            raise plan.suite._error_at(path, problem)


def check_data(plan: Plan, runs: Iterable[Run]) -> None:
    """Read each data file of these runs once; raise SuiteError if nothing can be learned or scored."""
    for run in {run.configuration: run for run in runs if run.data is not None}.values():
        try:
            n_rows = len(FoldData(run, plan.data_home, plan.suite.folder).dataset.candidates)
        except (ValueError, TypeError) as error:
            place: KeyPath = ("reading", run.configuration)
            if run.configuration not in plan.suite.reading:
                place = ("configurations", plan.suite.configurations.index(run.configuration))
            raise plan.suite._error_at(place, str(error)) from error
        if n_rows < run.folds:
            problem = f"{run.configuration} has {n_rows} rows: too few for {run.folds} folds"
            raise plan.suite._error_at(("folds",), problem)


def _find_impossible_noise(configuration: str, data_home: Path | None) -> str | None:
    data, candidates, _ = split_configuration(configuration)
    if candidates is None or is_data_file(configuration) or configuration in present_files(data_home):
        return None
    facts = {DIGITS.name: DIGITS, **REGISTRY}.get(data)
    if facts is None or facts.n_labels is None or candidates <= facts.n_labels:
        return None
    return f"{candidates} candidates per row are too many: {data} has {facts.n_labels} labels"


def do_task(
    session: str,
    limits: Limits,
    folder: Path,
    data_home: Path | None,
    suite_folder: Path | None,
    retry_before: str | None,
    yields: bool,
    runs: Sequence[Run],
) -> list[TaskResult]:
    """Do the runs of a fold that no other process has done or is doing; write each record at once.

    `session`: the call that the task belongs to. `retry_before`: repeat failed runs that were started before this time;
    None repeats none. `yields`: leave the whole group to another process that works on it, so that each process shares
    work among its own runs.
    """
    store = Store(folder)
    if not store.runs.is_dir():
        raise FileNotFoundError(
            f"the worker on {socket.gethostname()} cannot access the folder {folder}: "
            "results must be in a folder that all workers share"
        )
    results: list[TaskResult] = []
    with hold_worker(session) as worker:
        do = partial(worker.execute, data_home=data_home, suite_folder=suite_folder, limits=limits)
        for run in runs:
            if yields and results and results[-1].outcome == "busy":
                results.append(TaskResult(run, "busy"))
            elif not _is_due(store.read(run.key), retry_before):
                results.append(TaskResult(run, "present"))
            else:
                results.append(_do_run(run, store, do, retry_before))
    return results


def _do_run(
    run: Run, store: Store, do: Callable[[Run], dict[str, Any]], retry_before: str | None
) -> TaskResult:
    with store._claim(run.key) as claimed:
        if not claimed:
            return TaskResult(run, "busy")
        if not _is_due(store.read(run.key), retry_before):
            return TaskResult(run, "present")
        aside = store._set_aside(run.key)
        record = do(run)
        store._write(record)
        return TaskResult(run, record["status"], None if aside is None else str(aside))


def _do_here(jobs: int, session: str, do: Any, groups: list[list[Run]]) -> Iterator[list[TaskResult]]:
    """Do groups in threads, each of which watches a worker process."""
    with ThreadPoolExecutor(jobs) as threads:
        try:
            yield from threads.map(do, groups)
        except BaseException:
            # Mostly Ctrl-C: threads cannot be ended, but the processes that they wait for.
            stop_workers(session)
            raise


def _connect(address: str) -> Any:
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise ImportError("a Dask cluster needs dask: pip install scikit-pml[dask]") from error
    place = {"scheduler_file": address} if Path(address).is_file() else {"address": address}
    try:
        return distributed.Client(**place, timeout=_SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise OSError(f"no Dask scheduler answers at {address}") from error


def _do_on_cluster(
    client: Any, session: str, record_killed: Any, do: Any, groups: list[list[Run]]
) -> Iterator[list[TaskResult]]:
    distributed: Any = import_module("distributed")
    # Not pure: a task depends on the folder, so equal tasks can have different results.
    submit = partial(client.submit, do, pure=False)
    tasks, suspects = {submit(runs): runs for runs in groups}, []
    try:
        for future in distributed.as_completed(tasks, loop=client.loop):
            try:
                yield future.result()
            except distributed.KilledWorker:
                suspects += tasks[future]
        # Dask also blames tasks that only waited for the worker that died. One run at a time is sure to be the cause.
        for run in suspects:
            tasks = {submit([run]): [run]}
            try:
                yield next(iter(tasks)).result()
            except distributed.KilledWorker as error:
                yield [record_killed(run, error)]
    except (CancelledError, OSError) as error:
        if client.status == "running":
            raise
        raise WorkerDied(
            "the connection to the Dask scheduler was lost; finished runs are kept: start again to do the others"
        ) from error
    except BaseException:
        with suppress(Exception):
            client.cancel(list(tasks))
            client.run(stop_workers, session)
        raise


def _record_killed(
    limits: Limits, store: Store, retry_before: str | None, run: Run, error: Exception
) -> TaskResult:
    """Record a run that ended the worker of Dask itself as often as Dask allows."""
    message = (
        "the Dask worker died during the run, as often as distributed.scheduler.allowed-failures permits"
    )
    facts = {"type": "ProcessDied", "message": message, "traceback": f"{error}\n", "exit_code": None}
    return _do_run(run, store, partial(record_failure, error=facts, limits=limits), retry_before)


@contextmanager
def _report_progress(watch: _Watch, on_progress: Callable[[Progress], None] | None) -> Iterator[None]:
    """Report progress from the folder alone, which shows the runs of all processes."""
    if on_progress is None:
        yield
        return
    on_progress(watch.look())
    stop = threading.Event()

    def repeat() -> None:
        while not stop.wait(_LOOK_EVERY):
            on_progress(watch.look())

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        on_progress(watch.look())


class _Watch:
    """Follows the folder: which runs of the plan ended since the last look, and how fast."""

    def __init__(
        self, plan: Plan, store: Store, pending: list[list[Run]], retry_before: str | None, jobs: int
    ) -> None:
        self._store, self._retry_before, self._jobs = store, retry_before, jobs
        self._waiting = {run.key: run for group in pending for run in group}
        present, keys = store.records(), {run.key for run in plan.runs}
        # Runs of other suites in the folder inform about time too.
        self._timing = Timing(present)
        finished = [r for r in present if r["key"] in keys and not _is_due(r, retry_before)]
        self._before = self._done = len(finished)
        self._failed = sum(record["status"] == "failed" for record in finished)
        self._total = self._done + len(self._waiting)
        self._start, self._spent = time.monotonic(), 0.0

    def look(self) -> Progress:
        for key in self._store.keys() & set(self._waiting):
            record = self._store.read(key)
            if record is None or _is_due(record, self._retry_before):
                continue
            del self._waiting[key]
            self._done += 1
            self._failed += record["status"] == "failed"
            self._timing.add(record)
            self._spent += seconds_of(record)
        estimate = self._timing.estimate(self._waiting.values())
        elapsed = time.monotonic() - self._start
        pace = float(self._jobs)
        if elapsed >= _SECONDS_TO_MEASURE:
            # Seconds of work per second. If hardly anything is finished, runs under way may be nearly done.
            known = len(self._waiting) - estimate.unknown
            few = self._done - self._before < _RUNS_TO_MEASURE and known > 0
            under_way = self._jobs * estimate.seconds / known if few else 0.0
            # The lower bound only avoids a division by zero.
            pace = min(max((self._spent + under_way) / elapsed, 1e-9), pace if few else math.inf)
        remaining = Estimate(estimate.seconds / pace, estimate.unknown)
        return Progress(self._total, self._done, self._failed, remaining)
