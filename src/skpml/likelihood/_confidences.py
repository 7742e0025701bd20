"""How far the candidates of training rows are believed.

A row that was trained on confirms itself: its candidates are what the fit was made to expect. That hardly harms the order
of the confidences, and a fit to all rows orders best; but it lifts their level. Rows left out of a fit have the right
level. So confidences have the order of the one and the level of the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit

Floats = NDArray[np.float64]
Curve = tuple[float, float]

# Nothing is more certain than this, either way.
_CERTAIN = 1e-6
_SLOPES, _SHIFTS = (0.02, 50.0), (-20.0, 20.0)


def level_curve(confidences: NDArray[Any], reference: NDArray[Any]) -> Curve:
    """Slope and shift on logits by which confidences come closest to probabilities that are right in the mean.

    The logistic regression of the reference, cell by cell. Its sum is that of the reference.
    """
    t, r = _logit(confidences), np.asarray(reference, dtype=np.float64)
    if len(r) == 0:
        return 1.0, 0.0

    def loss(curve: Floats) -> tuple[float, Floats]:
        bent = curve[0] * t + curve[1]
        surprise = expit(bent) - r
        value = np.mean(np.logaddexp(0, bent) - r * bent)
        return float(value), np.array([np.mean(surprise * t), np.mean(surprise)])

    found = minimize(loss, np.array([1.0, 0.0]), jac=True, bounds=[_SLOPES, _SHIFTS], tol=1e-10).x
    return float(found[0]), float(found[1])


def on_curve(confidences: NDArray[Any], curve: Curve, candidate: NDArray[np.bool_]) -> Floats:
    """Confidences at their level; 0 outside the candidates."""
    return np.where(candidate, expit(curve[0] * _logit(confidences) + curve[1]), 0.0)


def _logit(p: NDArray[Any]) -> Floats:
    return np.asarray(logit(np.clip(np.asarray(p, dtype=np.float64), _CERTAIN, 1 - _CERTAIN)))
