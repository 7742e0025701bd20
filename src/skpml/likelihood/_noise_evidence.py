"""Which noise rates the candidates of rows left out speak for, and which they allow.

A row that surely lacks a label still carries it at the noise rate ρ: so, as scores fall, the share of candidates falls to
ρ and not to 0. How well that floor is seen depends on the features. Where they tell labels well, only rates close to the
true one explain the candidates; where they tell little, weak features without noise explain them just as well as strong
noise does, and no one can say which it is. The likelihood knows: for each rate the scores are calibrated anew
(:func:`~skpml.likelihood._calibration.calibration`), and the rates under which the candidates are not much less
likely than under the best one are allowed.

False candidates may be as frequent for all labels, or more frequent for labels that are frequent themselves. The odds of
noise are the same for all labels, or proportional to the odds of the label where that explains the candidates better.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from skpml.likelihood._calibration import calibrated, calibration
from skpml.likelihood._noise_model import log_likelihood

Floats = NDArray[np.float64]

# No noise, and other rates in steps of their log-odds; the best and the ends are found in finer ones.
_NO_NOISE = 1e-6
_COARSE, _FINE = 0.5, 0.1
_COARSE_GRID = (float(logit(_NO_NOISE)), *np.arange(-6.0, 3.01, _COARSE).tolist())
# A rate is allowed if it is worse by so much likelihood at most, or by so many standard errors over the rows.
_LIKELIHOOD, _ERRORS = 2.0, 2.0
# More rows take time and tell little more.
_MOST_ROWS = 20_000


@dataclass(frozen=True, kw_only=True)
class NoiseEvidence:
    """What the candidates say of the noise.

    Attributes
    ----------
    rate : (c,)
        Under which they are most likely.
    low, high : (c,)
        Ends of the rates that they allow.
    """

    rate: Floats
    low: Floats
    high: Floats


def noise_evidence(
    scores: Floats, Y: NDArray[Any], *, frequent: NDArray[np.bool_], order: NDArray[np.intp]
) -> NoiseEvidence:
    """Noise rates of labels, from scores (n×c, between 0 and 1) of rows that had no part in finding them.

    No rate is above the share of rows that have the label as a candidate.

    Parameters
    ----------
    scores : (n, c)
    Y : (n, c)
        Candidates.
    frequent : (c,)
        Labels that have enough candidates to tell; all are taken where none has.
    order : (n,)
        Rows, of which the first 20,000 are looked at.
    """
    share = np.clip(np.mean(Y > 0, axis=0), _NO_NOISE, 1 - _NO_NOISE)
    told = frequent if frequent.any() else np.ones_like(frequent)
    some = order[:_MOST_ROWS]
    scores, Y = scores[np.ix_(some, told)], np.asarray(Y, dtype=np.float64)[np.ix_(some, told)]
    by_frequency = logit(share) - logit(share[told]).mean()
    offsets = np.zeros_like(share)
    profile = _Profile(scores, Y, offsets[told])
    best = profile.most_likely()
    other = _Profile(scores, Y, by_frequency[told])
    if other.total(other.most_likely()) > profile.total(best) + _LIKELIHOOD:
        profile, best, offsets = other, other.most_likely(), by_frequency
    low = profile.last_allowed(best, [at for at in reversed(_COARSE_GRID) if at < best])
    high = profile.last_allowed(best, [at for at in _COARSE_GRID if at > best])
    rate, low_rate, high_rate = (np.minimum(expit(at + offsets), share) for at in (best, low, high))
    return NoiseEvidence(rate=rate, low=low_rate, high=high_rate)


class _Profile:
    """Likelihood of the rows at each rate, by its log-odds, with the calibration that suits it."""

    def __init__(self, scores: Floats, Y: Floats, offsets: Floats) -> None:
        self.scores, self.Y, self.offsets = scores, Y, offsets
        self._known: dict[float, Floats] = {}

    def rows(self, at: float) -> Floats:
        if at not in self._known:
            rates = expit(at + self.offsets)
            eta = calibrated(self.scores, *calibration(self.scores, rates, self.Y))
            self._known[at] = np.asarray(log_likelihood(logit(eta), rates, self.Y))
        return self._known[at]

    def total(self, at: float) -> float:
        return float(self.rows(at).sum())

    def most_likely(self) -> float:
        coarse = max(_COARSE_GRID, key=self.total)
        return max((coarse + step * _FINE for step in range(-4, 5)), key=self.total)

    def allowed(self, best: float, at: float) -> bool:
        worse = self.rows(best) - self.rows(at)
        return bool(worse.sum() <= max(_LIKELIHOOD, _ERRORS * worse.std() * len(worse) ** 0.5))

    def last_allowed(self, best: float, places: Iterable[float]) -> float:
        """How far from the best, towards the places in turn, rates are allowed; in coarse steps, then in fine ones."""
        last = best
        for at in places:
            if not self.allowed(best, at):
                step = _FINE if at > last else -_FINE
                while abs(at - last) > 1.5 * _FINE and self.allowed(best, last + step):
                    last += step
                return last
            last = at
        return last
