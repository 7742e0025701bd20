"""From scores that rank well to probabilities that mean what they say, without a true label.

Ranking does not tell how high a probability is, so settings that rank alike may be far apart in level. The candidates of
rows that were left out of a fit do tell, once the noise rate is known: of all maps ``η = σ(a·logit(p) + b)``, the one is
taken under which these candidates are most likely. It is the same for all labels, and increasing: no ranking changes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit

from skpml.likelihood._noise_model import log_likelihood, posterior

# Nothing is more certain than this, either way.
_CERTAIN = 1e-12
# Weight of the pull towards the identity, in rows: a few rows must not turn the map around.
_PRIOR = 1.0
_SLOPES, _SHIFTS = (0.01, 10.0), (-10.0, 10.0)


def calibrated(p: NDArray[Any], slope: float, shift: float) -> NDArray[Any]:
    """``σ(a·logit(p) + b)``, above 0 and below 1."""
    # Close to 1 a double has fewer digits than close to 0.
    return np.minimum(expit(slope * _logit(p) + shift), 1 - np.finfo(np.float64).epsneg)


def calibration(p: NDArray[Any], rho: NDArray[Any], Y: NDArray[Any]) -> tuple[float, float]:
    """Slope a and shift b for probabilities (n×c) of rows left out, their candidates and the noise rates (c)."""
    t = _logit(p)

    def loss(map_: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        slope, shift = map_
        logits = slope * t + shift
        eta = expit(logits)
        surprise = posterior(eta, rho, Y) - eta
        pull = np.array([slope - 1, shift])
        value = -log_likelihood(logits, rho, Y).sum() + _PRIOR / 2 * (pull @ pull)
        return float(value), -np.array([(surprise * t).sum(), surprise.sum()]) + _PRIOR * pull

    found = minimize(loss, np.array([1.0, 0.0]), jac=True, bounds=[_SLOPES, _SHIFTS], method="L-BFGS-B")
    return float(found.x[0]), float(found.x[1])


def _logit(p: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(logit(np.clip(p, _CERTAIN, 1 - _CERTAIN)))
