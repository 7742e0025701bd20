"""How long the rest will take, from what has been measured and nothing else."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
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
        self._methods: dict[str, str] = {}
        for record in records:
            self.add(record)

    def add(self, record: Mapping[str, Any]) -> None:
        """Take note of a finished run; one that failed says nothing about time."""
        if record["status"] == "done":
            run = record["run"]
            method = _method(run["method"], run["tuning"], run["trained_on"])
            self._seconds[method, run["configuration"]].append(seconds_of(record))

    def expected(self, run: Run) -> float | None:
        """Seconds that a run will take, or None where its method has not been measured."""
        estimate = self.estimate([run])
        return None if estimate.unknown else estimate.seconds

    def estimate(self, runs: Iterable[Run]) -> Estimate:
        """Time for runs, one after the other."""
        counts: Counter[tuple[str, str]] = Counter()
        for run in runs:
            # Asked twice a second about thousands of runs.
            if run.key not in self._methods:
                self._methods[run.key] = _method(run.method, run.tuning, run.trained_on)
            counts[self._methods[run.key], run.configuration] += 1
        logs = {cell: math.log(max(sum(found) / len(found), 1e-6)) for cell, found in self._seconds.items()}
        # Each configuration counts once, whatever the number of its runs.
        typical = _means((method, value) for (method, _), value in logs.items())
        longer = _means((place, value - typical[method]) for (method, place), value in logs.items())
        seconds, unknown = 0.0, 0
        for (method, place), count in counts.items():
            if (method, place) in self._seconds:
                found = self._seconds[method, place]
                seconds += count * sum(found) / len(found)
            elif method in typical:
                seconds += count * math.exp(typical[method] + longer.get(place, 0.0))
            else:
                unknown += count
        return Estimate(seconds, unknown)


def _means(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    values: dict[str, list[float]] = defaultdict(list)
    for name, value in pairs:
        values[name].append(value)
    return {name: sum(found) / len(found) for name, found in values.items()}


def seconds_of(record: Mapping[str, Any]) -> float:
    """All the time of a run: tuning, fit and prediction."""
    return float(sum(record.get(part) or 0.0 for part in _PARTS))


def duration(seconds: float) -> str:
    """A time for people."""
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    minutes = math.ceil(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{seconds / 3600:.1f} h"


def _method(name: str, tuning: Any, trained_on: str) -> str:
    """What decides the time of a run besides its data. Values of parameters hardly do; the size of a grid does."""
    return json.dumps([name, tuning, trained_on], sort_keys=True)
