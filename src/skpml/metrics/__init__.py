"""Metrics for multi-label predictions and for the cleaning of candidate labels."""

from skpml.metrics._decisions import (
    denoising_scores,
    example_accuracy,
    example_f1,
    hamming_loss,
    macro_f1,
    micro_f1,
    subset_accuracy,
)
from skpml.metrics._ranking import (
    average_precision,
    coverage,
    macro_auc,
    one_error,
    precision_at_k,
    ranking_loss,
)
from skpml.metrics._report import METRICS, Metric, evaluate

__all__ = [
    "METRICS",
    "Metric",
    "average_precision",
    "coverage",
    "denoising_scores",
    "evaluate",
    "example_accuracy",
    "example_f1",
    "hamming_loss",
    "macro_auc",
    "macro_f1",
    "micro_f1",
    "one_error",
    "precision_at_k",
    "ranking_loss",
    "subset_accuracy",
]
