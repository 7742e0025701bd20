"""How long the rest will take, from what has been measured and nothing else."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from skpml.experiments._consistency import dataset_of
from skpml.experiments._runs import Run

Name = TypeVar("Name")

_PARTS = ("tune_seconds", "fit_seconds", "predict_seconds")


@dataclass(frozen=True)
class Estimate:
    """Time for some runs, one after the other.

    Attributes
    ----------
    seconds : float
        For the runs that can be estimated.
    unknown : int
        Number of runs whose method has not been measured on anything, or on whose data nothing has.
    """

    seconds: float
    unknown: int

    def __str__(self) -> str:
        if self.unknown and not self.seconds:
            return "unknown"
        return f"at least {duration(self.seconds)}" if self.unknown else f"about {duration(self.seconds)}"


class Timing:
    """Times of finished runs, by method and configuration.

    A run is expected to take the mean of the finished runs of its method on its configuration, or else on the same data
    with other noise. Where there is none, the method's typical time on other data, times how much longer the methods
    measured on these data took here than they typically do. Nothing is known of data that nothing has been measured
    on: the small ones come first, and say little about the large ones.
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
        """Seconds that a run will take, or None where its method or its data have not been measured."""
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
        exact = {cell: sum(found) / len(found) for cell, found in self._seconds.items()}
        # Each configuration counts once, whatever the number of its runs, and then each data set.
        on_data = _means(((method, dataset_of(place)), _log(mean)) for (method, place), mean in exact.items())
        typical = _means((method, value) for (method, _), value in on_data.items())
        longer = _means((data, value - typical[method]) for (method, data), value in on_data.items())
        seconds, unknown = 0.0, 0
        for (method, place), count in counts.items():
            data = dataset_of(place)
            if (method, place) in exact:
                seconds += count * exact[method, place]
            elif (method, data) in on_data:
                seconds += count * math.exp(on_data[method, data])
            elif method in typical and data in longer:
                seconds += count * math.exp(typical[method] + longer[data])
            else:
                unknown += count
        return Estimate(seconds, unknown)


def _log(seconds: float) -> float:
    return math.log(max(seconds, 1e-6))


def _means(pairs: Iterable[tuple[Name, float]]) -> dict[Name, float]:
    values: dict[Name, list[float]] = defaultdict(list)
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
