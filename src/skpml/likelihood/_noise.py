"""How false candidates arise: the noise model, estimates of its rates, and probabilities at the right level.

For row i and label j, η_ij is the probability that the label is true, and ρ_j the probability that a label which is not
true is a candidate; true labels always are candidates. Labels and false candidates are independent, given the row. Hence

    P(Y_ij = 1) = q_ij = η_ij + (1 − η_ij) ρ_j        P(Y_ij = 0) = (1 − η_ij)(1 − ρ_j)
    P(true | candidate) = η_ij / q_ij

If every row has a true label, all of this is conditional on it: with P∅(p) = Π_j (1 − p_j), the probability that no
label is true is P∅(η) before the candidates are seen and P∅(r) after. These functions take arrays of any namespace of the
array API standard, labels along the last axis; estimates of rates and curves are computed with NumPy.

**Noise rates.** A row that lacks a label still carries it at the noise rate: as scores fall, the share of candidates
falls to ρ and not to 0. How well that floor is visible depends on the features. For each rate the scores are calibrated
anew; rates under which the candidates of held-out rows are not much less likely than under the best one are allowed.
If the features say little about the labels, weak features without noise explain the candidates as well as strong noise
does, and the allowed range is wide.

**Level.** Settings that rank alike may be far apart in level. Of all maps ``σ(a·logit(p) + b)``, :func:`fit_calibration`
takes the one under which held-out candidates are most likely; it is the same for all labels, and increasing, so that no
ranking changes. The confidences of training rows have a good order, but are too high, because a row that was trained on
confirms itself; :func:`fit_level` maps them to the level of held-out confidences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit

from skpml.linalg import Array

Floats = NDArray[np.float64]
# Slope and shift of a map of logits.
Curve = tuple[float, float]

# Labels with fewer candidates do not show a rate, and models hardly see them.
ENOUGH_CANDIDATES = 10
# Bounds of the rates that a fit can use.
LEAST_RATE, LARGEST_RATE = 1e-5, 0.985

# Rates are tried in steps of their log-odds, from no noise on; the best one and the ends are found in finer steps.
_NO_NOISE = 1e-6
_COARSE, _FINE = 0.5, 0.1
_COARSE_GRID = (float(logit(_NO_NOISE)), *np.arange(-6.0, 3.01, _COARSE).tolist())
# A rate is allowed if the log-likelihood falls by at most this much, or by this many standard errors over the rows.
_LIKELIHOOD, _ERRORS = 2.0, 2.0
# More rows take time and hardly change the estimate; nor do more cells the curve at each rate.
_MOST_ROWS, _MOST_CELLS = 20_000, 200_000
# Where linear scores begin to bend, and the exponent at which they end.
_STRAIGHT, _DEEPEST = 1e-2, 25.0
# Weight of the pull of a calibration towards the identity, in rows: few rows must not reverse the map.
_PRIOR = 1.0
# Probabilities are clipped by these before their logits are taken, of labels and of candidates.
_CERTAIN_LABEL, _CERTAIN_CANDIDATE = 1e-12, 1e-6
# Share of the curvature of known labels that is used at least.
_LEAST_CURVATURE = 0.05
# Logit from which on calibrated probabilities approach 0 and 1 more slowly, and never round to them.
_NEARLY_CERTAIN = 15.0


def posterior(eta: Array, rho: Array, Y: Array) -> Array:
    """Return r, the probability of each label given the candidates; 0 outside them."""
    xp = array_namespace(eta)
    likely = eta + (1 - eta) * rho
    # A label that can be neither true nor a false candidate cannot be a candidate.
    return xp.where((Y > 0) & (likely > 0), eta / xp.where(likely > 0, likely, 1.0), 0.0)


def given_one(probabilities: Array, rows: Array) -> Array:
    """Condition probabilities on at least one true label, ``p_j / (1 − P∅(p))``, in the marked rows.

    ``rows`` is bool and broadcasts to (..., 1). A row without candidates has no true label: do not mark it.
    """
    return _condition(probabilities, _probability_of_one(probabilities), rows)


def _condition(probabilities: Array, some: Array, rows: Array) -> Array:
    """Return :func:`given_one`, where the probability of at least one true label is known."""
    xp = array_namespace(probabilities)
    known = xp.where(rows[..., 0] & (some > 0), some, 1.0)
    return xp.clip(probabilities / known[..., None], max=1.0)


def log_likelihood(logits: Array, rho: Array, Y: Array, one_true: Array | None = None) -> Array:
    """Return the log-probability of the candidates of each row, summed over labels.

    ``logits`` (..., c) are log η/(1 − η); ρ is between 0 and 1; ``one_true`` marks rows that have a true label, as in
    :func:`given_one`.
    """
    return likelihood_and_slope(logits, rho, Y, one_true)[0]


def likelihood_and_slope(
    logits: Array, rho: Array, Y: Array, one_true: Array | None = None
) -> tuple[Array, Array]:
    """Return what :func:`log_likelihood` does, and its derivative by the logits: the posterior minus η."""
    xp = array_namespace(logits)
    # Much of the time of a fit is spent here: every array is computed once, and signs decide by arithmetic, because
    # NumPy's ``where`` takes as long as several exponentials if its condition changes from cell to cell.
    large = 1 / (1 + xp.exp(-xp.abs(logits)))
    eta = xp.exp(xp.clip(logits, max=0.0)) * large
    likely = rho + (1 - rho) * eta
    candidate = Y > 0
    # softplus(t) = max(t, 0) − log σ(|t|)
    log_none = xp.log1p(-rho) + xp.log(large) - xp.clip(logits, min=0.0)
    total = xp.sum(xp.where(candidate, xp.log(likely), log_none), axis=-1)
    target = xp.where(candidate, eta / likely, 0.0)
    if one_true is None:
        return total, target - eta
    after, before = _probability_of_one(target), _probability_of_one(eta)
    marked = xp.broadcast_to(one_true[..., 0], total.shape) & (after > 0)
    total = total + (xp.log(xp.where(marked, after, 1.0)) - xp.log(xp.where(marked, before, 1.0)))
    return total, _condition(target, after, one_true) - _condition(eta, before, one_true)


def curvature(logits: Array, rho: Array, Y: Array, one_true: Array | None = None) -> Array:
    """Return minus the second derivative of :func:`log_likelihood` by each logit, but at least η(1 − η)/20.

    The posterior r and η change by r(1 − r) and η(1 − η), so candidates can have a negative curvature. No step can be
    scaled by that.
    """
    xp, eta = array_namespace(logits), sigmoid(logits)
    target = posterior(eta, rho, Y)
    if one_true is not None:
        eta, target = given_one(eta, one_true), given_one(target, one_true)
    known = eta * (1 - eta)
    return xp.maximum(known - target * (1 - target), _LEAST_CURVATURE * known)


def sigmoid(logits: Array) -> Array:
    """Return ``1 / (1 + exp(−t))`` without overflow."""
    xp = array_namespace(logits)
    small = xp.exp(-xp.abs(logits))
    return xp.where(logits >= 0, 1 / (1 + small), small / (1 + small))


def softplus(logits: Array) -> Array:
    """Return ``log(1 + exp(t))``, which is ``−log(1 − η)``, without overflow."""
    xp = array_namespace(logits)
    return xp.where(logits > 0, logits, 0.0) + xp.log1p(xp.exp(-xp.abs(logits)))


def _probability_of_one(probabilities: Array) -> Array:
    """Return ``1 − P∅(p)``, exact for small probabilities too."""
    xp = array_namespace(probabilities)
    certain = xp.any(probabilities >= 1, axis=-1)
    log_none = xp.sum(xp.log1p(-xp.where(probabilities < 1, probabilities, 0.0)), axis=-1)
    return xp.where(certain, 1.0, -xp.expm1(log_none))


def bend(scores: Array) -> Array:
    """Take linear scores for probabilities: unchanged in the middle, curved at the ends, never 0 or 1."""
    xp = array_namespace(scores)
    low, high = _STRAIGHT, 1 - _STRAIGHT
    below = xp.exp(xp.clip(scores / low - 1, -_DEEPEST, 0.0))
    above = xp.exp(xp.clip((high - scores) / low, -_DEEPEST, 0.0))
    return xp.where(scores < low, low * below, xp.where(scores > high, 1 - low * above, scores))


def scale_odds(rates: Array, factor: float) -> Array:
    """Multiply the odds of noise rates by a factor, within the bounds that a fit can use."""
    scaled = factor * rates / (1 - rates + factor * rates)
    return array_namespace(rates).clip(scaled, LEAST_RATE, LARGEST_RATE)


def check_noise_rate(given: Any, n_labels: int) -> Floats | None:
    """Return the parameter ``noise_rate`` as one rate per label, in the bounds of a fit; None for "auto"."""
    if is_auto(given):
        return None
    try:
        rates = np.broadcast_to(np.asarray(given, dtype=np.float64), (n_labels,))
    except (TypeError, ValueError):
        rates = np.full(n_labels, np.nan)
    if not ((rates >= 0) & (rates <= LARGEST_RATE)).all():
        raise ValueError(
            f'noise_rate must be "auto", a number from 0 to {LARGEST_RATE}, or one for each of the {n_labels} labels, '
            f"got {given!r}."
        )
    return np.maximum(rates, LEAST_RATE)


def check_at_least_one(given: Any) -> None:
    """Raise an error if the parameter ``at_least_one`` is neither a bool nor "auto"."""
    if not (isinstance(given, bool | np.bool_) or is_auto(given)):
        raise ValueError(f'at_least_one must be True, False or "auto", got {given!r}.')


def is_auto(value: Any) -> bool:
    """Return whether a parameter is "auto"."""
    return isinstance(value, str) and value == "auto"


@dataclass(frozen=True, kw_only=True)
class NoiseEstimate:
    """Noise rates by label: the one under which the candidates are most likely, and the ends of the allowed range."""

    rate: Floats
    low: Floats
    high: Floats

    def usable(self) -> Floats:
        """Return the rate for a fit: the most likely one, or the largest allowed one if "no noise" is allowed too.

        If the features cannot exclude that there is no noise, the likelihood is nearly flat and its maximum is arbitrary;
        rows with low scores still bound the rate from above.
        """
        return np.clip(np.where(self.low > 2 * _NO_NOISE, self.rate, self.high), LEAST_RATE, LARGEST_RATE)


def estimate_noise(
    scores: NDArray[Any],
    Y: NDArray[Any],
    *,
    of_candidates: bool = False,
    by_frequency: bool = False,
    order: NDArray[np.intp] | None = None,
) -> NoiseEstimate:
    """Estimate noise rates from scores (n×c) of held-out rows, by the profile likelihood.

    The scores are probabilities, of any level, that labels are true; if ``of_candidates``, linear scores for being a
    candidate, which a rate maps to ``(s − ρ)/(1 − ρ)``. All labels have the same rate; if ``by_frequency``, the odds of
    noise may be proportional to the odds of the label, if that explains the candidates better, and no rate exceeds the
    share of rows that carry the label. Of the rows in ``order``, the first 20,000 are used.
    """
    n, c = Y.shape
    frequent = np.asarray(Y.sum(axis=0) >= ENOUGH_CANDIDATES)
    used = frequent if frequent.any() else np.ones_like(frequent)
    share = np.clip(np.mean(Y > 0, axis=0), _NO_NOISE, 1 - _NO_NOISE)
    cells = np.ix_((np.arange(n) if order is None else order)[:_MOST_ROWS], used)
    scores, Y = np.asarray(scores, dtype=np.float64)[cells], np.asarray(Y, dtype=np.float64)[cells]
    offsets = np.zeros(c)
    profile = _Profile(scores, Y, offsets[used], of_candidates)
    best = profile.most_likely()
    if by_frequency:
        proportional = logit(share) - logit(share[used]).mean()
        other = _Profile(scores, Y, proportional[used], of_candidates)
        if other.total(other.most_likely()) > profile.total(best) + _LIKELIHOOD:
            profile, best, offsets = other, other.most_likely(), proportional
    low = profile.last_allowed(best, [at for at in reversed(_COARSE_GRID) if at < best])
    high = profile.last_allowed(best, [at for at in _COARSE_GRID if at > best])
    ends, most = {"rate": best, "low": low, "high": high}, share if by_frequency else 1.0
    return NoiseEstimate(**{name: np.minimum(expit(at + offsets), most) for name, at in ends.items()})


class _Profile:
    """Log-likelihood of each row at each rate (by its log-odds), with the calibration that suits the rate."""

    def __init__(self, scores: Floats, Y: Floats, offsets: Floats, of_candidates: bool) -> None:
        self.scores, self.Y, self.offsets, self.of_candidates = scores, Y, offsets, of_candidates
        self._known: dict[float, Floats] = {}
        self._curve: Curve = (1.0, 0.0)

    def rows(self, at: float) -> Floats:
        if at not in self._known:
            rates = expit(at + self.offsets)
            p = bend((self.scores - rates) / (1 - rates)) if self.of_candidates else self.scores
            some = slice(max(1, _MOST_CELLS // p.shape[1]))
            # The rate before was mostly a near one.
            self._curve = fit_calibration(p[some], rates, self.Y[some], start=self._curve)
            eta = calibrate(p, self._curve)
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

    def last_allowed(self, best: float, grid: Iterable[float]) -> float:
        """Return the last allowed rate along a grid that leads away from the best one, to the fine step."""
        last = best
        for at in grid:
            if not self.allowed(best, at):
                step = _FINE if at > last else -_FINE
                while abs(at - last) > 1.5 * _FINE and self.allowed(best, last + step):
                    last += step
                return last
            last = at
        return last


def calibrate(p: NDArray[Any], curve: Curve, *, certain: float = _CERTAIN_LABEL) -> Floats:
    """Return ``σ(a·logit(p) + b)``, where logits beyond a bound grow only by their logarithm: no label is certain."""
    logits = curve[0] * _logit(p, certain) + curve[1]
    beyond = np.maximum(np.abs(logits) - _NEARLY_CERTAIN, 0.0)
    return expit(np.sign(logits) * (np.minimum(np.abs(logits), _NEARLY_CERTAIN) + np.log1p(beyond)))


def fit_calibration(
    p: NDArray[Any], rho: NDArray[Any], Y: NDArray[Any], *, start: Curve = (1.0, 0.0)
) -> Curve:
    """Fit the calibration of held-out probabilities (n×c) to their candidates, for noise rates (c)."""
    t = _logit(p, _CERTAIN_LABEL)

    def loss(curve: Floats) -> tuple[float, Floats]:
        value, slope = likelihood_and_slope(curve[0] * t + curve[1], rho, Y)
        pull = curve - (1, 0)
        gradient = np.array([np.vdot(slope, t), slope.sum()])
        return float(-value.sum() + _PRIOR / 2 * (pull @ pull)), _PRIOR * pull - gradient

    return _fit_curve(loss, [(0.01, 10.0), (-10.0, 10.0)], start=start)


def fit_level(confidences: NDArray[Any], reference: NDArray[Any]) -> Curve:
    """Fit the curve from confidences of candidates to reference probabilities, cell by cell, by logistic regression.

    The mapped confidences have the sum of the reference.
    """
    t, r = _logit(confidences, _CERTAIN_CANDIDATE), np.asarray(reference, dtype=np.float64)
    if len(r) == 0:
        return 1.0, 0.0

    def loss(curve: Floats) -> tuple[float, Floats]:
        logits = curve[0] * t + curve[1]
        surprise = expit(logits) - r
        value = np.mean(np.logaddexp(0, logits) - r * logits)
        return float(value), np.array([np.mean(surprise * t), np.mean(surprise)])

    return _fit_curve(loss, [(0.02, 50.0), (-20.0, 20.0)], tol=1e-10)


def apply_level(confidences: NDArray[Any], curve: Curve, candidate: NDArray[np.bool_]) -> Floats:
    """Map confidences of candidates by a curve; 0 outside the candidates."""
    return np.where(candidate, calibrate(confidences, curve, certain=_CERTAIN_CANDIDATE), 0.0)


def _fit_curve(
    loss: Callable[[Floats], Any],
    bounds: list[Curve],
    *,
    tol: float | None = None,
    start: Curve = (1.0, 0.0),
) -> Curve:
    found = minimize(loss, np.array(start), jac=True, bounds=bounds, method="L-BFGS-B", tol=tol)
    return float(found.x[0]), float(found.x[1])


def _logit(p: NDArray[Any], certain: float) -> Floats:
    return np.asarray(logit(np.clip(np.asarray(p, dtype=np.float64), certain, 1 - certain)))
