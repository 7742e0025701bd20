"""What the paper of PML-MA prints for nine methods on thirty configurations: figures to stand beside measured ones.

They were not measured here, and every table that shows them says so.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

__all__ = ["PublishedResult", "published_results"]

# Candidates that came with the data: their number is an average, not a setting.
_REAL_CANDIDATES = frozenset({"mirflickr", "music_emotion", "music_style", "yeastbp"})


@dataclass(frozen=True, kw_only=True)
class PublishedResult:
    """Mean and standard deviation over ten folds, as printed.

    Attributes
    ----------
    metric : str
        As in :data:`skpml.metrics.METRICS`.
    configuration : str
        As in :func:`skpml.datasets.load_dataset`, such as ``"emotions-3"``.
    method : str
        As in :func:`skpml.get_method`.
    mean, std : float
    """

    metric: str
    configuration: str
    method: str
    mean: float
    std: float


@cache
def published_results() -> tuple[PublishedResult, ...]:
    """Every printed result: five metrics, thirty configurations, nine methods.

    Examples
    --------
    >>> from skpml.published import published_results
    >>> [r.mean for r in published_results()
    ...  if (r.metric, r.configuration, r.method) == ("average_precision", "emotions-3", "pml-ni")]
    [0.777]
    """
    text = files(__name__).joinpath("published_results.csv").read_text(encoding="utf-8")
    return tuple(
        PublishedResult(
            metric=row["metric"],
            configuration=_configuration(row["dataset"], row["avg_candidates"]),
            method=row["method"].replace("_", "-"),
            mean=float(row["mean"]),
            std=float(row["std"]),
        )
        for row in csv.DictReader(text.splitlines())
    )


def _configuration(dataset: str, candidates: str) -> str:
    return dataset if dataset in _REAL_CANDIDATES else f"{dataset}-{int(float(candidates))}"
