"""Where to cut scores into yes and no, without a true label.

With false candidates added at rate ρ, scores fitted to candidates estimate ``η + (1 − η)ρ`` and not the chance η that
the label is true: clear negatives sit near ρ, not near 0, and a fixed cut at 0.5 calls nearly everything positive when
the noise is high. A method that shrinks its confidences moves the upper end down as well. So both ends are estimated
from the training scores, and the cut is half way between them, which is where η = ½:

* the *negative level*: most cells of a label matrix are clear negatives, so their level is the lower quartile of the
  scores;
* the *positive level*: the mean confidence among the quarter of the candidates that have the highest scores (1 for a
  method without confidences).

A simpler rule, used by several published methods, asks that a label score above what certain negatives reach:
:func:`non_candidate_threshold`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["automatic_threshold", "non_candidate_threshold"]

_NEGATIVE_QUANTILE = 0.25
# The candidates taken as surely true when the positive level is estimated.
_SURE_SHARE = 0.25


def automatic_threshold(
    scores: NDArray[Any], candidates: NDArray[Any], confidences: NDArray[Any] | None = None
) -> tuple[float, float]:
    """The cut between negatives and positives, and the negative level.

    Parameters
    ----------
    scores : (n, c)
        A method's scores on its own training rows.
    candidates : (n, c) of 0 and 1
    confidences : (n, c) or None
        What the scores were fitted to; None is the candidates themselves.
    """
    negative = float(np.quantile(scores, _NEGATIVE_QUANTILE))
    is_candidate = np.asarray(candidates) > 0
    positive = 1.0
    if confidences is not None and is_candidate.any():
        candidate_scores = scores[is_candidate]
        sure = candidate_scores >= np.quantile(candidate_scores, 1 - _SURE_SHARE)
        positive = float(confidences[is_candidate][sure].mean())
    if positive <= max(negative, 0.0):
        # Nothing is believed: ask for as much as a sure candidate would have.
        positive = max(1.0, negative)
    return (negative + positive) / 2, negative


def non_candidate_threshold(scores: NDArray[Any], candidates: NDArray[Any]) -> tuple[float, float]:
    """The mean over rows of the highest score among non-candidates, and the negative level.

    Non-candidates are certain negatives: a label is predicted where it scores above what the best of them does on
    average. Rows whose labels are all candidates tell nothing and are left out.

    Parameters
    ----------
    scores : (n, c)
        A method's scores on its own training rows.
    candidates : (n, c) of 0 and 1
    """
    is_candidate = np.asarray(candidates) > 0
    telling = ~is_candidate.all(axis=1)
    if not telling.any():
        return automatic_threshold(scores, candidates)
    highest = np.where(is_candidate, -np.inf, scores)[telling].max(axis=1)
    return float(highest.mean()), float(np.quantile(scores, _NEGATIVE_QUANTILE))
