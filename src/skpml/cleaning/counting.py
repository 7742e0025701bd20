"""How many tags of each label are wrong, with an interval that a person can act on.

Two things are uncertain. Confidences are probabilities: given them, the number of wrong tags still scatters. And the
noise rate, which sets their level, is an estimate: it is moved both ways by what it was off in measurements and by what
chance does to a count of false candidates, the level of the confidences is found anew under each, and the wrong tags are
counted again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from skpml.candidate_likelihood.calibration import calibrated, calibration
from skpml.candidate_likelihood.noise_model import posterior

Floats = NDArray[np.float64]

# Standard deviation of the logarithm of estimated odds of noise over true ones (results/candidate_likelihood.csv).
_NOISE_DEVIATION = 0.15


@dataclass(frozen=True, kw_only=True)
class WrongCounts:
    """Estimated numbers of wrong candidates.

    Attributes
    ----------
    estimate, low, high : (c,)
        For each label, with the ends of the interval.
    total : tuple of float
        Estimate, low and high of all labels together. Their errors in common do not cancel, chance does.
    """

    estimate: Floats
    low: Floats
    high: Floats
    total: tuple[float, float, float]


def count_wrong(
    confidences: Floats,
    probabilities: Floats,
    noise_rate: Floats,
    Y: NDArray[Any],
    *,
    level: float = 0.9,
) -> WrongCounts:
    """Count wrong candidates (n×c) by label.

    Parameters
    ----------
    confidences : (n, c)
        Of candidates to be true.
    probabilities : (n, c)
        Of labels to be true, by models without the row.
    noise_rate : (c,)
    Y : (n, c)
    level : float, default=0.9
        Of the interval.
    """
    candidate = Y > 0
    reach = float(norm.ppf((1 + level) / 2))
    estimate = np.sum((1 - confidences) * candidate, axis=0)
    variance = np.sum(confidences * (1 - confidences) * candidate, axis=0)
    deviation = reach * _deviation(noise_rate, len(Y))
    middle, less, more = (
        _counts(probabilities, _shifted(noise_rate, shift), Y) for shift in (0.0, -deviation, deviation)
    )
    down, up = np.minimum(less - middle, 0), np.maximum(more - middle, 0)
    count = candidate.sum(axis=0)
    chance = reach**2 * variance
    low = np.clip(estimate - np.sqrt(down**2 + chance), 0, count)
    high = np.clip(estimate + np.sqrt(up**2 + chance), 0, count)
    together = float(chance.sum())
    total = (
        float(estimate.sum()),
        max(0.0, float(estimate.sum() - np.sqrt(down.sum() ** 2 + together))),
        min(float(count.sum()), float(estimate.sum() + np.sqrt(up.sum() ** 2 + together))),
    )
    return WrongCounts(estimate=estimate, low=low, high=high, total=total)


def _deviation(noise_rate: Floats, n_rows: int) -> Floats:
    """Of the logarithm of the odds of noise: what was measured, and that of a count over half of the rows."""
    counted = np.maximum(n_rows / 2 * noise_rate * (1 - noise_rate), 1)
    return np.asarray(np.sqrt(_NOISE_DEVIATION**2 + 1 / counted))


def _shifted(noise_rate: Floats, by: float | Floats) -> Floats:
    odds = noise_rate / (1 - noise_rate) * np.exp(by)
    return np.asarray(odds / (1 + odds))


def _counts(probabilities: Floats, rates: Floats, Y: NDArray[Any]) -> Floats:
    """Wrong candidates by label, if the noise had these rates."""
    eta = calibrated(probabilities, *calibration(probabilities, rates, Y))
    believed = posterior(eta, rates, Y)
    return np.asarray(np.sum((1 - believed) * (Y > 0), axis=0))
