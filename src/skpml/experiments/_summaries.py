"""What is said of methods beside their ranks: the noise gap, time and memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from skpml.experiments._metric_tables import is_whole, table_entry
from skpml.experiments._results import Results, greater_is_better

# Below this distance of ceiling and floor, a share of it is mostly chance.
SMALLEST_GAP = 0.002


@dataclass(frozen=True, kw_only=True)
class NoiseGap:
    """How much of the way from the floor (trained on candidates) to the ceiling (trained on truth) each method goes.

    Attributes
    ----------
    floor, ceiling : str
        Labels of the two.
    methods : tuple of str
    shares : dict of configuration to dict of label to float
        0 is the floor, 1 the ceiling; below 0 is worse than the floor.
    undefined : dict of configuration to str
        Where there is no share, and why.
    """

    floor: str
    ceiling: str
    methods: tuple[str, ...]
    shares: dict[str, dict[str, float]]
    undefined: dict[str, str]

    def summary(self, label: str) -> tuple[float, float, int]:
        """Mean, median and number of a method's shares."""
        values = [row[label] for row in self.shares.values() if label in row]
        if not values:
            return float("nan"), float("nan"), 0
        return float(np.mean(values)), float(np.median(values)), len(values)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Time and memory of a method: the median over folds, then over configurations.

    The ratios are to the control on the same configuration, the median over the ``n_ratio`` configurations both have.
    """

    label: str
    fit_seconds: float
    fit_ratio: float
    predict_seconds: float
    memory_mb: float
    memory_ratio: float
    n: int
    n_ratio: int


def noise_gap(results: Results, metric: str = "average_precision") -> NoiseGap | None:
    """The share of the distance from floor to ceiling that each method closes; None without both of them.

    ``(method − floor) / (ceiling − floor)``, of means over folds. It has no value where the ceiling is not better than
    the floor by at least 0.002, and is never guessed where a run is missing.
    """
    floors, ceilings = results.labels("floor"), results.labels("ceiling")
    if not floors or not ceilings:
        return None
    floor, ceiling, methods = floors[0], ceilings[0], results.labels("method")
    sign = 1 if greater_is_better(metric) else -1
    shares: dict[str, dict[str, float]] = {}
    undefined: dict[str, str] = {}
    for configuration in results.suite.configurations:
        ends = [table_entry(results, label, configuration, metric) for label in (floor, ceiling)]
        if configuration in results.absent:
            undefined[configuration] = "the data are absent"
            continue
        if not all(map(is_whole, ends)):
            undefined[configuration] = "floor or ceiling has no whole result"
            continue
        low, high = (entry.mean for entry in ends)
        gap = sign * (high - low)
        if gap < SMALLEST_GAP:
            undefined[configuration] = (
                f"the ceiling ({high:.4f}) is not above the floor ({low:.4f}) by {SMALLEST_GAP}"
            )
            continue
        found = {label: table_entry(results, label, configuration, metric) for label in methods}
        shares[configuration] = {
            label: sign * (entry.mean - low) / gap for label, entry in found.items() if is_whole(entry)
        }
    return NoiseGap(floor=floor, ceiling=ceiling, methods=tuple(methods), shares=shares, undefined=undefined)


def costs(results: Results) -> list[Cost]:
    """Time and memory of each method, in the order of the suite; methods without a finished run are left out."""
    medians = {
        (label, field): {
            configuration: float(np.nanmedian(values))
            for configuration in results.suite.configurations
            if np.isfinite(values := results.cells[label, configuration].measured(field)).any()
        }
        for label in results.labels()
        for field in ("fit_seconds", "predict_seconds", "peak_memory_mb")
    }

    def ratio(label: str, field: str) -> tuple[float, int]:
        own, control = medians[label, field], medians.get((results.suite.control or "", field), {})
        shared = [own[name] / control[name] for name in own if control.get(name)]
        return _median(shared), len(shared)

    found = []
    for label in results.labels():
        fit_ratio, n_ratio = ratio(label, "fit_seconds")
        if not medians[label, "fit_seconds"]:
            continue
        found.append(
            Cost(
                label=label,
                fit_seconds=_median(medians[label, "fit_seconds"].values()),
                fit_ratio=fit_ratio,
                predict_seconds=_median(medians[label, "predict_seconds"].values()),
                memory_mb=_median(medians[label, "peak_memory_mb"].values()),
                memory_ratio=ratio(label, "peak_memory_mb")[0],
                n=len(medians[label, "fit_seconds"]),
                n_ratio=n_ratio,
            )
        )
    return found


def _median(values: Iterable[float]) -> float:
    held = list(values)
    return float(np.median(held)) if held else float("nan")
