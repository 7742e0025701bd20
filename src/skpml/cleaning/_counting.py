"""How many tags of each label are wrong, with an interval that a person can act on.

Two things are uncertain. Confidences are probabilities: given them, the number of wrong tags still scatters. And the
noise rate, which sets their level, is an estimate: it is moved to both ends of what the candidates allow
(:mod:`skpml.likelihood._noise`), and a little beyond, by what it was off in measurements; the level of the
confidences is found anew under each, and the wrong tags are counted again. A share of the estimate is added, by which
confidences were off where the rate was right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from skpml.likelihood import calibrate, fit_calibration, posterior

Floats = NDArray[np.float64]

# Standard deviation of the logarithm of the odds of noise, beyond what the likelihood allows.
_NOISE_DEVIATION = 0.08
# And of confidences by themselves, as a share of what they add up to.
_SHARE_DEVIATION = 0.05


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

    def open_for(self, labels: NDArray[np.bool_], counts: NDArray[Any]) -> WrongCounts:
        """The same, but that nothing is known of some labels: none or all of their candidates may be wrong."""
        low, high = np.where(labels, 0.0, self.low), np.where(labels, counts, self.high)
        estimate, least, most = self.total
        return WrongCounts(
            estimate=self.estimate,
            low=low,
            high=high,
            total=(
                estimate,
                max(0.0, least - float((self.low - low).sum())),
                min(float(counts.sum()), most + float((high - self.high).sum())),
            ),
        )


def count_wrong(
    confidences: Floats,
    probabilities: Floats,
    noise_rate: Floats,
    noise_range: tuple[Floats, Floats],
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
    noise_range : (c,), (c,)
        Its least and its largest value.
    Y : (n, c)
    level : float, default=0.9
        Of the interval.
    """
    candidate = Y > 0
    reach = float(norm.ppf((1 + level) / 2))
    estimate = np.sum((1 - confidences) * candidate, axis=0)
    variance = np.sum(confidences * (1 - confidences) * candidate, axis=0)
    beyond = reach * _NOISE_DEVIATION
    middle, less, more = (
        _counts(probabilities, rates, Y)
        for rates in (noise_rate, _shifted(noise_range[0], -beyond), _shifted(noise_range[1], beyond))
    )
    down, up = np.minimum(less - middle, 0), np.maximum(more - middle, 0)
    count = candidate.sum(axis=0)
    chance = reach**2 * variance
    share = reach * _SHARE_DEVIATION
    down, up = (np.sqrt(part**2 + (share * estimate) ** 2) for part in (down, up))
    low = np.clip(estimate - np.sqrt(down**2 + chance), 0, count)
    high = np.clip(estimate + np.sqrt(up**2 + chance), 0, count)
    together = float(chance.sum())
    total = (
        float(estimate.sum()),
        max(0.0, float(estimate.sum() - np.sqrt(down.sum() ** 2 + together))),
        min(float(count.sum()), float(estimate.sum() + np.sqrt(up.sum() ** 2 + together))),
    )
    return WrongCounts(estimate=estimate, low=low, high=high, total=total)


def _shifted(noise_rate: Floats, by: float) -> Floats:
    odds = noise_rate / (1 - noise_rate) * np.exp(by)
    return np.asarray(odds / (1 + odds))


def _counts(probabilities: Floats, rates: Floats, Y: NDArray[Any]) -> Floats:
    """Wrong candidates by label, if the noise had these rates."""
    eta = calibrate(probabilities, fit_calibration(probabilities, rates, Y))
    believed = posterior(eta, rates, Y)
    return np.asarray(np.sum((1 - believed) * (Y > 0), axis=0))
