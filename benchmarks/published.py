"""Published results of nine methods on thirty configurations, copied from the paper of PML-MA, not measured here."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PATH = Path(__file__).with_name("published_results.csv")


@dataclass(frozen=True, kw_only=True)
class PublishedResult:
    """Mean and standard deviation over ten folds, as printed."""

    metric: str
    configuration: str
    method: str
    mean: float
    std: float


@cache
def published_results() -> tuple[PublishedResult, ...]:
    """Read all results: five metrics, thirty configurations, nine methods."""
    with PATH.open(encoding="utf-8", newline="") as file:
        rows = [dict(row) for row in csv.DictReader(file)]
    return tuple(
        PublishedResult(
            metric=row["metric"],
            configuration=row["configuration"],
            method=row["method"],
            mean=float(row["mean"]),
            std=float(row["std"]),
        )
        for row in rows
    )
