"""Where to cut scores into yes and no, without a true label."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["decision_threshold"]


def decision_threshold(
    threshold: Any, training_scores: Callable[[], NDArray[Any]], candidates: NDArray[np.uint8]
) -> tuple[float, float]:
    """The cut, and the score level of clear negatives (0 where the cut was given as a number)."""
    if isinstance(threshold, str):
        if threshold != "auto":
            raise ValueError(f'threshold must be a number or "auto", got {threshold!r}.')
        level = float(np.quantile(training_scores(), 0.25))
        return (1 + level) / 2, level
    if isinstance(threshold, bool) or not np.isfinite(threshold):
        raise ValueError(f'threshold must be a finite number or "auto", got {threshold!r}.')
    return float(threshold), 0.0
