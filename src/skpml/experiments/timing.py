"""How long the rest will take, from what has been measured and nothing else."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from skpml.experiments.runs import Run

_PARTS = ("tune_seconds", "fit_seconds", "predict_seconds")


@dataclass(frozen=True)
class Estimate:
    """Time for some runs, one after the other.

    Attributes
    ----------
    seconds : float
        For the runs that can be estimated.
    unknown : int
        Number of runs whose method has not been measured on anything.
    """

    seconds: float
    unknown: int

    def __str__(self) -> str:
        if self.unknown and not self.seconds:
            return "unknown"
        return f"at least {duration(self.seconds)}" if self.unknown else f"about {duration(self.seconds)}"


class Timing:
    """Times of finished runs, by method and configuration.

    A run is expected to take the mean of the finished runs of its method on its configuration. Where there is none, the
    method's typical time on other configurations, times how much longer the methods measured on this configuration took
    here than they typically do.
    """

    def __init__(self, records: Iterable[Mapping[str, Any]] = ()) -> None:
        self._seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
        for record in records:
            self.add(record)

    def add(self, record: Mapping[str, Any]) -> None:
        """Take note of a finished run; one that failed says nothing about time."""
        if record["status"] == "done":
            run = record["run"]
            self._seconds[_method(run), run["configuration"]].append(seconds_of(record))

    def expected(self, run: Run) -> float | None:
        """Seconds that a run will take, or None where its method has not been measured."""
        method = _method(run.content)
        if own := self._seconds.get((method, run.configuration)):
            return sum(own) / len(own)
        typical = self._typical(method)
        if typical is None:
            return None
        ratios = [
            math.log(max(sum(found) / len(found), 1e-6)) - usual
            for (other, configuration), found in self._seconds.items()
            if configuration == run.configuration and (usual := self._typical(other)) is not None
        ]
        return math.exp(typical + (sum(ratios) / len(ratios) if ratios else 0.0))

    def estimate(self, runs: Iterable[Run]) -> Estimate:
        """Time for runs, one after the other."""
        cells: dict[tuple[str, str], list[Run]] = defaultdict(list)
        for run in runs:
            cells[_method(run.content), run.configuration].append(run)
        seconds, unknown = 0.0, 0
        for found in cells.values():
            expected = self.expected(found[0])
            if expected is None:
                unknown += len(found)
            else:
                seconds += expected * len(found)
        return Estimate(seconds, unknown)

    def _typical(self, method: str) -> float | None:
        """Mean of the logarithms of a method's mean times, each configuration counting once."""
        logs = [
            math.log(max(sum(found) / len(found), 1e-6))
            for (name, _), found in self._seconds.items()
            if name == method
        ]
        return sum(logs) / len(logs) if logs else None


def seconds_of(record: Mapping[str, Any]) -> float:
    """All the time of a run: tuning, fit and prediction."""
    return float(sum(record.get(part) or 0.0 for part in _PARTS))


def duration(seconds: float) -> str:
    """A time for people."""
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{seconds / 3600:.1f} h"


def _method(run: Mapping[str, Any]) -> str:
    """What decides the time of a run besides its data. Values of parameters hardly do; the size of a grid does."""
    return json.dumps([run["method"], run["tuning"], run["trained_on"]], sort_keys=True)
