"""Execution of one run: from data to record, with time and memory."""

from __future__ import annotations

import platform
import re
import sys
import traceback
import warnings
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from skpml._sharing import SharedWork
from skpml.experiments._evaluate import FoldData, classify, messages_of
from skpml.experiments._fingerprint import find_commit
from skpml.experiments._runs import Run
from skpml.experiments._store import RECORD_FORMAT

# Time and memory of one thread, for any number of jobs, so that they can be compared between methods.
_THREADS = 1
_MAX_WARNINGS = 20

_TIMES = ("tune_seconds", "fit_seconds", "predict_seconds")
_RESULTS = ("metrics", "chosen", "n_iter", "converged", "history", *_TIMES)

_SINCE_RESET = "VmHWM of the process, reset at the start of the run"
_OF_PROCESS = "ru_maxrss of the process since it began"
_CLEAR, _STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")


@dataclass(frozen=True)
class Limits:
    """Limits of a single run: seconds, and MB (10⁶ bytes) of resident memory; None means no limit."""

    seconds: float | None = None
    memory_mb: float | None = None


def execute(run: Run, data: FoldData, *, work: SharedWork | None = None) -> dict[str, Any]:
    """Do a run and return its record; an exception becomes a record too.

    Time saved by `work`, which is shared with other runs of the fold, is added to the time of the fit.
    """
    started, record, error = current_time(), _start_record(run), None
    memory = PeakMemory()
    with warnings.catch_warnings(record=True, action="always") as caught, threadpool_limits(_THREADS):
        try:
            classify(run, data, record, work)
        except Exception as problem:
            record["status"], trace = "failed", traceback.format_exc()
            error = {"type": type(problem).__name__, "message": str(problem), "traceback": trace}
    return {
        **record,
        "peak_memory_mb": memory.megabytes(),
        "warnings": list(dict.fromkeys([*data.warnings, *messages_of(caught)]))[:_MAX_WARNINGS],
        "error": error,
        "provenance": {
            **_provenance(started),
            # None if the data could not be loaded.
            "data_checksum": data.checksum if "dataset" in vars(data) else None,
            "memory_source": memory.source,
        },
    }


def record_failure(
    run: Run,
    error: dict[str, Any],
    *,
    limits: Limits,
    started: str | None = None,
    peak_memory_mb: float | None = None,
) -> dict[str, Any]:
    """Return the record of a run that ended without one; `error` has a type, a message and a traceback."""
    provenance = {**_provenance(started or current_time()), "data_checksum": None, "memory_source": None}
    return {
        **_start_record(run),
        "status": "failed",
        "peak_memory_mb": peak_memory_mb,
        "warnings": [],
        "error": error,
        "provenance": {**provenance, "limits": asdict(limits)},
    }


def _start_record(run: Run) -> dict[str, Any]:
    record = {"format": RECORD_FORMAT, "key": run.key, "run": run.content, "status": "done"}
    return {**record, **dict.fromkeys(_RESULTS)}


def _provenance(started: str) -> dict[str, Any]:
    """Return what the records of all runs in this process have in common."""
    return {
        "versions": _versions(),
        "commit": find_commit(),
        "threads": _THREADS,
        "started": started,
        "platform": platform.platform(),
    }


def current_time() -> str:
    """Return the time in UTC, as records have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class PeakMemory:
    """Peak memory of the process since this object was created (Linux), or since the process began.

    :attr:`source` says which. Interpreter and data are included.
    """

    def __init__(self) -> None:
        self.source = _OF_PROCESS
        with suppress(OSError):
            _CLEAR.write_text("5")
            self.source = _OF_PROCESS if _high_water_mark() is None else _SINCE_RESET

    def megabytes(self) -> float | None:
        """Return MB of 10⁶ bytes; None if the system does not report memory."""
        if self.source == _SINCE_RESET:
            return _high_water_mark()
        try:
            import resource
        except ImportError:
            return None
        unit = 1 if sys.platform == "darwin" else 1024
        return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6, 1)


def _high_water_mark() -> float | None:
    found = re.search(r"^VmHWM:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    return None if found is None else round(int(found[1]) * 1024 / 1e6, 1)


@cache
def _versions() -> dict[str, str]:
    names = ("scikit-pml", "numpy", "scipy", "scikit-learn")
    return {name: version(name) for name in names} | {"python": sys.version.split()[0]}
