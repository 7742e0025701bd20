"""The metrics that records of runs hold, with their titles."""

from __future__ import annotations

from typing import NamedTuple

from skpml.metrics import METRICS

COMMON_HAMMING_LOSS = "hamming_loss_common"
# What denoising_scores returns.
DENOISING = {
    "precision": "Precision of removal",
    "recall": "Recall of removal",
    "f1": "F1 of removal",
    "auc": "Denoising AUC",
}


class RunMetric(NamedTuple):
    """Name in tables, and whether larger values are better."""

    title: str
    greater_is_better: bool


RUN_METRICS: dict[str, RunMetric] = {
    **{name: RunMetric(metric.title, metric.greater_is_better) for name, metric in METRICS.items()},
    COMMON_HAMMING_LOSS: RunMetric("Hamming loss, common threshold", False),
}
ALL_METRICS = {**RUN_METRICS, **{name: RunMetric(title, True) for name, title in DENOISING.items()}}


def metric_title(metric: str) -> str:
    """Return the title of a metric."""
    return ALL_METRICS[metric].title if metric in ALL_METRICS else metric


def title_with_arrow(metric: str) -> str:
    """Return the title of a metric, with an arrow towards better values."""
    return f"{metric_title(metric)} {'↑' if greater_is_better(metric) else '↓'}"


def greater_is_better(metric: str) -> bool:
    """Whether larger values of a metric are better."""
    if metric not in ALL_METRICS:
        raise ValueError(f"unknown metric {metric!r}; choose from {', '.join(ALL_METRICS)}")
    return ALL_METRICS[metric].greater_is_better
