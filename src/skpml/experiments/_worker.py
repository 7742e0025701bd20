"""What a worker process does with a group of runs."""

from __future__ import annotations

import socket
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from skpml._sharing import shared_work
from skpml.experiments._execute import FoldData, execute
from skpml.experiments._runs import Run
from skpml.experiments._store import Store

# Time, memory and warnings are those of a process: workers with several threads still do one run at a time.
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class Task:
    """Runs of one configuration, seed and fold.

    Attributes
    ----------
    runs : tuple of Run
    results : Path
        Folder of the store.
    data_home, suite_folder : Path or None
    retry_before : str or None
        Do failed runs again that were started before this time; None leaves all failures alone.
    yields : bool
        Leave the whole group where another process is at work on it, so that each shares work among its own runs.
    """

    runs: tuple[Run, ...]
    results: Path
    data_home: Path | None
    suite_folder: Path | None
    retry_before: str | None
    yields: bool


@dataclass(frozen=True)
class Done:
    """What became of a run: done or failed here, there already, or busy in another process."""

    run: Run
    outcome: Literal["done", "failed", "present", "busy"]
    set_aside: str | None = None


def needs_doing(record: dict[str, Any] | None, retry_before: str | None) -> bool:
    """Whether a run is still to be done: no readable record, or a failure that is to be retried."""
    if record is None:
        return True
    if record["status"] != "failed" or retry_before is None:
        return False
    # A failure from after the start is this very retry's, perhaps by another process: once is enough.
    return str(record["provenance"].get("started", "")) < retry_before


def do_task(task: Task) -> list[Done]:
    """Do the runs of a task that nobody else has done or is doing; every record is written as soon as it is there."""
    store = Store(task.results)
    if not store.runs.is_dir():
        raise FileNotFoundError(
            f"the worker on {socket.gethostname()} does not see the folder {task.results}: "
            "results must lie where all workers can reach them"
        )
    found: list[Done] = []
    data = FoldData(task.runs[0], task.data_home, task.suite_folder)
    with _ONE_AT_A_TIME, shared_work() as work:
        for run in task.runs:
            if task.yields and found and found[-1].outcome == "busy":
                found.append(Done(run, "busy"))
            elif not needs_doing(store.read(run.key), task.retry_before):
                found.append(Done(run, "present"))
            else:
                found.append(_do_run(run, store, data, work, task.retry_before))
    return found


def _do_run(run: Run, store: Store, data: FoldData, work: Any, retry_before: str | None) -> Done:
    with store.claim(run.key) as claimed:
        if not claimed:
            return Done(run, "busy")
        if not needs_doing(store.read(run.key), retry_before):
            return Done(run, "present")
        aside = store.set_aside(run.key)
        record = execute(run, data, work=work)
        store.write(record)
        return Done(run, record["status"], None if aside is None else str(aside))
