"""What to do with each candidate: keep it, drop it, or ask a person."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

KEEP, DROP, ASK = "keep", "drop", "ask"


def benefit(confidences: NDArray[Any]) -> NDArray[Any]:
    """How likely a look at a candidate corrects what would be done without it: the chance of the less likely answer."""
    return np.minimum(confidences, 1 - confidences)


def check_thresholds(*, drop_below: float, keep_above: float, budget: int | None) -> None:
    """Refuse thresholds that cross, and a budget below 0."""
    if not 0 <= drop_below <= keep_above <= 1:
        raise ValueError(
            f"drop_below must not be above keep_above, both between 0 and 1, got {drop_below!r} and {keep_above!r}."
        )
    if budget is not None and budget < 0:
        raise ValueError(f"budget must be at least 0, got {budget!r}.")


def suggest_actions(
    confidences: NDArray[Any],
    *,
    drop_below: float = 0.25,
    keep_above: float = 0.75,
    budget: int | None = None,
) -> NDArray[np.str_]:
    """An action for each confidence.

    Parameters
    ----------
    confidences : (m,)
        Of candidates to be true.
    drop_below, keep_above : float
        What is less sure than the one is dropped, what is surer than the other kept; a person decides on the rest.
        Only without a budget.
    budget : int, optional
        Number of candidates that a person looks at: those with the largest :func:`benefit`. It takes the place of the
        thresholds; all other candidates are kept or dropped by what is more likely.
    """
    check_thresholds(drop_below=drop_below, keep_above=keep_above, budget=budget)
    if budget is None:
        asked = (confidences >= drop_below) & (confidences <= keep_above)
        likely = np.where(confidences > keep_above, KEEP, DROP)
        return np.where(asked, ASK, likely)
    actions = np.where(confidences >= 0.5, KEEP, DROP)
    # Equals go by place, so that the same data give the same list.
    actions[np.argsort(-benefit(confidences), kind="stable")[:budget]] = ASK
    return actions
