"""The table of metrics, and all metrics of a prediction at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from skpml._docstrings import fill_docstring
from skpml.metrics import _decisions, _ranking
from skpml.metrics._checks import Validated, check_truth_and_decisions, check_truth_and_scores
from skpml.metrics._ranking import Convention


@dataclass(frozen=True)
class Metric:
    """Facts about a metric: how to compute it, print it and rank methods by it.

    Parameters
    ----------
    function : callable
        Takes the truth and the scores or decisions.
    title : str
        Name in tables.
    greater_is_better : bool
        Whether larger values are better.
    needs : {"scores", "decisions"}
        Second argument of the function.
    has_conventions : bool, default=False
        Whether the function has a parameter ``convention``.
    """

    function: Callable[..., float]
    title: str
    greater_is_better: bool
    needs: Literal["scores", "decisions"]
    has_conventions: bool = False


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        metric.function.__name__: metric
        for metric in (
            # The five of the literature come first, in the order in which papers print them.
            Metric(_decisions.hamming_loss, "Hamming loss", False, "decisions"),
            Metric(_ranking.ranking_loss, "Ranking loss", False, "scores", has_conventions=True),
            Metric(_ranking.one_error, "One-error", False, "scores", has_conventions=True),
            Metric(_ranking.coverage, "Coverage", False, "scores", has_conventions=True),
            Metric(_ranking.average_precision, "Average precision", True, "scores", has_conventions=True),
            Metric(_ranking.macro_auc, "Macro AUC", True, "scores"),
            Metric(_decisions.micro_f1, "Micro F1", True, "decisions"),
            Metric(_decisions.macro_f1, "Macro F1", True, "decisions"),
            Metric(_decisions.example_f1, "Example F1", True, "decisions"),
            Metric(_decisions.example_accuracy, "Example accuracy", True, "decisions"),
            Metric(_decisions.subset_accuracy, "Subset accuracy", True, "decisions"),
        )
    }
)


@fill_docstring
def evaluate(
    truth: Any, scores: Any, decisions: Any = None, *, convention: Convention = "pml"
) -> dict[str, float]:
    """Compute every metric of ``METRICS`` that the given arrays allow.

    %(parameters_scores)s
    decisions : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels), optional
        Assigned labels, 0 or 1. Without them, the metrics of decisions are omitted.
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
    given: dict[str, Any] = {}
    labels, given["scores"] = map(Validated, check_truth_and_scores(truth, scores))
    if decisions is not None:
        _, given["decisions"] = map(Validated, check_truth_and_decisions(truth, decisions))
    return {
        name: metric.function(
            labels, given[metric.needs], **({"convention": convention} if metric.has_conventions else {})
        )
        for name, metric in METRICS.items()
        if metric.needs in given
    }
