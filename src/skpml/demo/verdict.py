"""What the figures of the demonstration say, in words that follow from them and from nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skpml.demo.job import DEFAULT_PENALTY, METHODS, METRIC_NAMES, DemoResult, Scores
from skpml.metrics import METRICS

# Below a tenth of the distance from floor to ceiling, a difference is called little.
_LITTLE = 0.1
_SMALL = 0.25
# A smaller distance from floor to ceiling is no distance to take parts of.
_NO_GAP = 1e-3


@dataclass(frozen=True, kw_only=True)
class MetricSummary:
    """One line of the table.

    Attributes
    ----------
    name, title : str
        The metric.
    greater_is_better : bool
        Which way is up.
    mean, std : dict of method to float
        Over the folds.
    closed : float or None
        Part of the way from floor to ceiling that PML-MA goes; None where the ceiling is hardly above the floor.
    folds_won, folds_lost : int
        Folds in which PML-MA is better, or worse, than the floor.
    """

    name: str
    title: str
    greater_is_better: bool
    mean: dict[str, float]
    std: dict[str, float]
    closed: float | None
    folds_won: int
    folds_lost: int


def summarise(result: DemoResult) -> list[MetricSummary]:
    """Means, spreads and the part of the gap that PML-MA closes, one entry a metric."""
    return [_summary(name, {key: result.scores[key][name] for key in METHODS}) for name in METRIC_NAMES]


def _summary(name: str, folds: dict[str, NDArray[np.float64]]) -> MetricSummary:
    metric = METRICS[name]
    sign = 1 if metric.greater_is_better else -1
    gain = sign * (folds["pml-ma"] - folds["floor"])
    gap = float(sign * (folds["ceiling"] - folds["floor"]).mean())
    return MetricSummary(
        name=name,
        title=metric.title,
        greater_is_better=metric.greater_is_better,
        mean={key: float(values.mean()) for key, values in folds.items()},
        std={key: float(values.std(ddof=1)) for key, values in folds.items()},
        closed=float(gain.mean()) / gap if gap > _NO_GAP else None,
        folds_won=int((gain > 0).sum()),
        folds_lost=int((gain < 0).sum()),
    )


def verdict(result: DemoResult) -> tuple[str, str]:
    """A headline and a sentence or two of grounds.

    Returns
    -------
    (str, str)
        Judged by average precision: how far PML-MA goes from the floor to the ceiling.
    """
    summaries = {summary.name: summary for summary in summarise(result)}
    judged = summaries["average_precision"]
    better = [_inside(s.title) for s in summaries.values() if s.folds_won > s.folds_lost]
    worse = [_inside(s.title) for s in summaries.values() if s.folds_won < s.folds_lost]
    grounds = (
        f"Average precision: {judged.mean['floor']:.4f} for ridge on the candidates, "
        f"{judged.mean['pml-ma']:.4f} for PML-MA, {judged.mean['ceiling']:.4f} for ridge on the true labels. "
        f"Against ridge on the same candidates PML-MA wins more folds than it loses in "
        f"{_listed(better)}, and loses more than it wins in {_listed(worse)}."
    )
    return _headline(judged), f"{grounds}{_over_penalties(result)}{_over_noise(result)}"


def _over_penalties(result: DemoResult) -> str:
    """Whether the difference outlives another penalty, and whether the penalty alone would have done more."""
    precision = {gamma: _average_precision(scores) for gamma, scores in result.penalties.items()}
    if len(precision) < 2:
        return ""
    ahead = sum(found["pml-ma"] > found["floor"] for found in precision.values())
    same = (
        f" With the same penalty γ for both, PML-MA is ahead at {ahead} of the {len(precision)} values tried."
    )
    best = max(precision, key=lambda gamma: precision[gamma]["floor"])
    reached, method = precision[best]["floor"], precision[DEFAULT_PENALTY]["pml-ma"]
    if reached > method:
        return (
            f"{same} But ridge with γ = {best:g} reaches {reached:.4f}, more than PML-MA at the default "
            f"γ = {DEFAULT_PENALTY:g}: here the penalty matters more than the method."
        )
    return f"{same} No other γ tried lifts ridge to what PML-MA has at the default."


def _average_precision(scores: Scores) -> dict[str, float]:
    return {key: float(found["average_precision"].mean()) for key, found in scores.items()}


def _over_noise(result: DemoResult) -> str:
    """Where PML-MA stands best and worst against the floor, over the amounts of noise tried."""
    precision = {level: _average_precision(scores) for level, scores in result.sweep.items()}
    if len(precision) < 2:
        return ""
    ordered = sorted(precision, key=lambda level: precision[level]["pml-ma"] - precision[level]["floor"])
    (worst, at_worst), (best, at_best) = ((level, precision[level]) for level in (ordered[0], ordered[-1]))
    return (
        f" Over the amounts of noise tried, it stands best against ridge with {best} candidates a row "
        f"({at_best['pml-ma']:.4f} against {at_best['floor']:.4f}) and worst with {worst} "
        f"({at_worst['pml-ma']:.4f} against {at_worst['floor']:.4f})."
    )


def _headline(judged: MetricSummary) -> str:
    if judged.closed is None:
        harm = (
            ", and PML-MA loses a little by doubting what is right"
            if judged.folds_lost > judged.folds_won
            else ""
        )
        return f"There is next to no noise here, so there is nothing to gain{harm}."
    percent = f"{abs(judged.closed):.0%}"
    if 0 < judged.closed < _LITTLE:
        return "On these data PML-MA adds little over plain ridge regression on the candidates."
    if -_LITTLE < judged.closed <= 0:
        return "On these data PML-MA does not improve on plain ridge regression on the candidates."
    if judged.closed < 0:
        return (
            "On these data PML-MA does worse than plain ridge regression on the candidates "
            f"(by {percent} of the way from floor to ceiling)."
        )
    only = "only " if judged.closed < _SMALL else ""
    return (
        f"On these data PML-MA goes {only}{percent} of the way "
        "from ridge on the candidates to ridge on the truth."
    )


def _inside(title: str) -> str:
    """A metric's title inside a sentence; Hamming is a person."""
    return title if title.startswith("Hamming") else title[0].lower() + title[1:]


def _listed(titles: list[str]) -> str:
    if not titles:
        return "no metric"
    return titles[0] if len(titles) == 1 else f"{', '.join(titles[:-1])} and {titles[-1]}"
