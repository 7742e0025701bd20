"""All metrics of a prediction at once, and what a table must know about each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from skpml.metrics._checks import check_truth_and_decisions, check_truth_and_scores
from skpml.metrics._decisions import (
    example_accuracy,
    example_f1,
    hamming_loss,
    macro_f1,
    micro_f1,
    subset_accuracy,
)
from skpml.metrics._ranking import (
    Convention,
    average_precision,
    check_convention,
    coverage,
    macro_auc,
    one_error,
    ranking_loss,
)


@dataclass(frozen=True)
class Metric:
    """What there is to know about a metric in order to compute it, print it and rank methods by it."""

    function: Callable[..., float]
    title: str
    greater_is_better: bool
    needs: Literal["scores", "decisions"]
    has_conventions: bool = False


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        # The five of the literature come first, in the order in which papers print them.
        "hamming_loss": Metric(hamming_loss, "Hamming loss", False, "decisions"),
        "ranking_loss": Metric(ranking_loss, "Ranking loss", False, "scores", has_conventions=True),
        "one_error": Metric(one_error, "One-error", False, "scores", has_conventions=True),
        "coverage": Metric(coverage, "Coverage", False, "scores", has_conventions=True),
        "average_precision": Metric(
            average_precision, "Average precision", True, "scores", has_conventions=True
        ),
        "macro_auc": Metric(macro_auc, "Macro AUC", True, "scores"),
        "micro_f1": Metric(micro_f1, "Micro F1", True, "decisions"),
        "macro_f1": Metric(macro_f1, "Macro F1", True, "decisions"),
        "example_f1": Metric(example_f1, "Example F1", True, "decisions"),
        "example_accuracy": Metric(example_accuracy, "Example accuracy", True, "decisions"),
        "subset_accuracy": Metric(subset_accuracy, "Subset accuracy", True, "decisions"),
    }
)


def evaluate(
    truth: Any,
    scores: Any,
    decisions: Any = None,
    *,
    convention: Convention = "pml",
) -> dict[str, float]:
    """Compute every metric of ``METRICS`` that the given arrays allow.

    Parameters
    ----------
    truth : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels)
        True labels, 0 or 1.
    scores : array-like of shape (n_rows, n_labels)
        Finite scores; larger means more likely.
    decisions : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels), optional
        Assigned labels, 0 or 1. Without them, the metrics of decisions are left out.
    convention : {"pml", "sklearn"}, default="pml"
        Convention of ranking loss, one-error, coverage and average precision; the others have only one.

    Returns
    -------
    dict of str to float
        Metric name to value, in the order of ``METRICS``.

    Examples
    --------
    >>> from skpml.metrics import evaluate
    >>> evaluate([[1, 0], [0, 1]], [[0.9, 0.2], [0.3, 0.4]])["average_precision"]
    1.0
    """
    check_convention(convention)
    given: dict[str, Any] = {}
    labels, given["scores"] = check_truth_and_scores(truth, scores)
    if decisions is not None:
        _, given["decisions"] = check_truth_and_decisions(truth, decisions)
    return {
        name: metric.function(
            labels, given[metric.needs], **({"convention": convention} if metric.has_conventions else {})
        )
        for name, metric in METRICS.items()
        if metric.needs in given
    }
