"""What verified cells teach about the others: a model of which candidates are true, and the share of wrong ones.

A person looked at some (row, label) cells. For a candidate cell with confidence r without these answers,

    logit P(true) = t logit r + Σ_g a_g φ_g · w_g,      w_g ~ N(0, 1)

where φ are features of the cell, some with weights of their own for each label: the score of the cell by a regression on
the present confidences, its rank among the row's candidates, their number, the features of the row, and the other
candidates. The prior is centered on the confidences, and 0 < t ≤ 1 keeps their order: without answers nothing changes.
It is a Gaussian process, fitted by Laplace's approximation. The scales a_g and t are means over their posterior: scales
that may be small together, drawn from a prior and weighted by the evidence of the answers.

Confidences of this model are the targets of a new regression, whose scores (each without its own row) are features of the
next round. Verified cells are judged by models that have not seen their answers, and other cells by the mean of these
models: so the differences between answers and predictions also hold for cells that nobody has looked at.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, logit, softmax
from scipy.stats import binom, hypergeom, rankdata, t
from sklearn.utils import Bunch

from skpml.linalg import Spectrum, leverages

Floats = NDArray[np.float64]

N_FOLDS, _N_ROUNDS = 10, 3
# Log-odds of confidences are the prior mean up to that of the first, and grow slowly beyond; scores are clipped by the
# second.
_CERTAIN, _CERTAIN_SCORE = 0.02, 0.005
# Scale of the common level. Other scales are drawn around those of the parts: standard deviations of their binary
# logarithms, of each and of all together, and that of the trust t.
_LEVEL = 2.0
_SPREAD_OF_EACH, _SPREAD_OF_ALL, _SPREAD_OF_TRUST = 0.7, 1.0, 1.5
_N_DRAWS = 128
# Scales are chosen by at most so many answers.
_MOST_ANSWERS = 400
# Weights of the regression on confidences.
_GAMMAS = 10.0 ** np.arange(-3, 1.01, 0.5)
# Below so many cells, or so many of each answer, the normal approximation is not used.
_FEW_CELLS, _FEW_ANSWERS = 50, 8
# The models of the folds share most of their answers: errors vary more than residuals show, in measurements by so much.
_SHARED_ANSWERS = 1.05
_JITTER = 1e-6
# Standard errors by which answers must be more likely than without them.
_ERRORS = 3.0


@dataclass(frozen=True, kw_only=True)
class _Part:
    """Features of all cells (n, c, d) or of rows (n, 1, d), with one weight each or one for each label."""

    values: Floats
    by_label: bool
    start: float


class _Regression:
    """Ridge regression of confidences on the features of the rows: scores of each row without itself."""

    def __init__(self, spectrum: Spectrum) -> None:
        self.spectrum = spectrum
        self.gamma: float | None = None

    def scores(self, targets: Floats) -> Floats:
        if self.gamma is None:
            errors = {gamma: float(np.sum((self._fit(targets, gamma) - targets) ** 2)) for gamma in _GAMMAS}
            self.gamma = min(errors, key=lambda gamma: errors[gamma])
            self._h = leverages(self.spectrum, np.array([self.gamma]))
        return self._fit(targets, self.gamma)

    def _fit(self, targets: Floats, gamma: float) -> Floats:
        Z, values = self.spectrum.rows, self.spectrum.values
        b = targets.mean(axis=0)
        fitted = Z @ ((Z.T @ (targets - b)) / (values[:, None] + gamma)) + b
        h = leverages(self.spectrum, np.array([gamma])) if self.gamma is None else self._h
        return np.asarray((fitted - h * targets) / np.maximum(1 - h, 1e-9))


def learn_from_verified(
    Y: NDArray[Any],
    verified: NDArray[Any],
    confidences: NDArray[Any],
    probabilities: NDArray[Any],
    *,
    spectrum: Spectrum | None = None,
    random_state: int = 0,
) -> Bunch:
    """Learn from verified cells (n×c: 1 true, −1 false, 0 unknown) which other candidates are true.

    ``confidences`` of the candidates and ``probabilities`` of all labels are those without verified cells; ``spectrum``
    are the features of the rows, if there are any. Returns ``confidences``, 0 and 1 in verified cells; ``judged``, in
    which a verified cell has the confidence of models that did not see its answer; ``targets``, the confidences with
    verified labels outside the candidates; and whether the answers are ``better`` explained than without them.
    """
    candidate = Y > 0
    rows, labels = np.nonzero(candidate & (verified != 0))
    known = np.where(verified != 0, verified > 0, np.where(candidate, confidences, 0.0)).astype(np.float64)
    if len(rows) == 0:
        unchanged = np.where(candidate, known, 0.0)
        return Bunch(confidences=unchanged, judged=confidences, targets=known, better=False)
    answers = (verified[rows, labels] > 0).astype(np.float64)
    model = _CellModel(Y, known, confidences, probabilities, spectrum)
    order = np.random.default_rng(random_state).permutation(len(rows))
    rows, labels, answers = rows[order], labels[order], answers[order]
    scales = model.choose_scales(rows, labels, answers)
    judged, total = np.array(confidences, dtype=np.float64), np.zeros(Y.shape)
    n_folds = min(N_FOLDS, len(rows))
    fold = np.arange(len(rows)) % n_folds
    for place in range(n_folds):
        out = fold == place
        found = model.fit(rows[~out], labels[~out], answers[~out], *scales, unseen=(rows[out], labels[out]))
        judged[rows[out], labels[out]] = found[rows[out], labels[out]]
        total += found
    mean = np.where(candidate, total / n_folds, 0.0)
    unknown = candidate & (verified == 0)
    return Bunch(
        confidences=np.where(candidate, np.where(unknown, mean, known), 0.0),
        judged=np.where(unknown, mean, np.where(candidate, judged, 0.0)),
        targets=np.where(unknown, mean, known),
        better=_is_better(judged[rows, labels], model.prior[rows, labels], answers),
    )


def _is_better(judged: Floats, before: Floats, answers: Floats) -> bool:
    """Return whether answers are more likely than before, beyond chance."""
    if len(answers) < 2:
        return False
    now, then = (
        np.log(np.abs(1 - answers - np.clip(each, _CERTAIN, 1 - _CERTAIN))) for each in (judged, before)
    )
    gain = now - then
    return bool(gain.sum() > max(_ERRORS * gain.std(ddof=1) * len(gain) ** 0.5, 1e-9))


class _CellModel:
    """The model of candidate cells, for any choice of the verified cells that it may see."""

    def __init__(
        self,
        Y: NDArray[Any],
        known: Floats,
        confidences: NDArray[Any],
        probabilities: NDArray[Any],
        spectrum: Spectrum | None,
    ) -> None:
        self.candidate, self.known, self.prior = Y > 0, known, np.asarray(confidences, dtype=np.float64)
        self.offset = _bound(_logit(self.prior, 1e-6), float(logit(1 - _CERTAIN)))
        self.regression = None if spectrum is None else _Regression(spectrum)
        self.free = _logit(probabilities, _CERTAIN_SCORE)
        present = self.candidate.astype(np.float64)
        deviation = np.where(present.std(axis=0) > 0, present.std(axis=0), 1.0)
        others = (present - present.mean(axis=0)) / deviation / np.sqrt(Y.shape[1])
        self.fixed = [
            _Part(values=np.ones((1, 1, 1)), by_label=True, start=0.5),
            _Part(values=others[:, None, :], by_label=True, start=0.5),
        ]
        if spectrum is not None:
            # Of the weight of directions with large variance, only the root: one direction must not hide the others.
            flat = spectrum.rows / np.maximum(spectrum.values, 1e-9) ** 0.25
            size = np.mean(np.sum(flat**2, axis=1)) ** 0.5
            self.fixed.append(_Part(values=(flat / max(size, 1e-9))[:, None, :], by_label=True, start=0.5))

    def choose_scales(
        self, rows: NDArray[np.intp], labels: NDArray[np.intp], answers: Floats
    ) -> tuple[float, Floats]:
        """Return the trust in the confidences, and the scale of each part: means over their posterior."""
        rows, labels, answers = rows[:_MOST_ANSWERS], labels[:_MOST_ANSWERS], answers[:_MOST_ANSWERS]
        parts = self._parts(self._targets(rows, labels))
        grams, offset = _grams(parts, rows, labels), self.offset[rows, labels]
        start = np.log2([part.start for part in parts])
        drawn = np.random.default_rng(0).standard_normal((_N_DRAWS, len(parts) + 2))
        of_trust, of_all, of_each = np.split(drawn, [1, 2], axis=1)
        trusts = -_SPREAD_OF_TRUST * np.abs(of_trust[:, 0])
        scales = start + _SPREAD_OF_ALL * of_all + _SPREAD_OF_EACH * of_each
        evidence = np.array(
            [
                _laplace(_mix(grams, 2.0**scale), 2.0**trust * offset, answers)[0]
                for trust, scale in zip(trusts, scales, strict=True)
            ]
        )
        weights = softmax(evidence)
        return float(2.0 ** (weights @ trusts)), np.asarray(2.0 ** (weights @ scales))

    def fit(
        self,
        rows: NDArray[np.intp],
        labels: NDArray[np.intp],
        answers: Floats,
        trust: float,
        scales: Floats,
        *,
        unseen: tuple[NDArray[np.intp], NDArray[np.intp]],
    ) -> Floats:
        """Return the probability that each cell is true, (n, c), from some verified cells and not from others."""
        targets = self._targets(*unseen)
        # Without answers nothing changes.
        offset, found = (trust if len(rows) else 1.0) * self.offset, self.prior
        for _ in range(_N_ROUNDS if self.regression is not None else 1):
            parts = self._parts(targets)
            alpha = _laplace(_mix(_grams(parts, rows, labels), scales), offset[rows, labels], answers)[1]
            logits = offset + _LEVEL**2 * alpha.sum()
            for part, scale in zip(parts, scales, strict=True):
                logits += scale**2 * _predict(part, rows, labels, alpha, offset.shape)
            found = expit(logits)
            targets = np.where(self.candidate, found, self.known)
            targets[rows, labels] = answers
        return found

    def _targets(self, rows: NDArray[np.intp], labels: NDArray[np.intp]) -> Floats:
        """Return the first targets of the regression, with the prior in cells whose answers are not to be seen."""
        targets = self.known.copy()
        targets[rows, labels] = self.prior[rows, labels]
        return targets

    def _parts(self, targets: Floats) -> list[_Part]:
        scores = self.free
        if self.regression is not None:
            scores = _logit(self.regression.scores(targets), _CERTAIN_SCORE)
        count = np.maximum(self.candidate.sum(axis=1), 1)[:, None]
        # Equal scores, as of clipped ones, share their rank: the order of the labels must not matter.
        rank = (rankdata(-np.where(self.candidate, scores, -np.inf), axis=1) - 1) / np.maximum(count - 1, 1)
        context = np.stack([rank, np.broadcast_to(np.log(count), rank.shape)], axis=-1)
        score = self._standardize(scores)[..., None]
        return [
            *self.fixed,
            _Part(values=score, by_label=False, start=0.35),
            _Part(values=score, by_label=True, start=0.25),
            _Part(values=context - context[self.candidate].mean(axis=0), by_label=False, start=1.0),
        ]

    def _standardize(self, values: Floats) -> Floats:
        """Scale values to mean 0 and variance 1 over the candidates; 0 if they do not differ."""
        of_cells = values[self.candidate]
        deviation = of_cells.std()
        return np.asarray(
            (values - of_cells.mean()) / deviation if deviation > 1e-9 else np.zeros_like(values)
        )


def _grams(parts: list[_Part], rows: NDArray[np.intp], labels: NDArray[np.intp]) -> Floats:
    """Return the covariance of some cells by each part, (parts, m, m)."""
    found = []
    for part in parts:
        at = _at(part, rows, labels)
        gram = at @ at.T
        found.append(gram * (labels[:, None] == labels) if part.by_label else gram)
    return np.stack(found)


def _mix(grams: Floats, scales: Floats) -> Floats:
    """Return the covariance of the common level and of all parts together."""
    return np.asarray(np.tensordot(scales**2, grams, axes=1) + _LEVEL**2)


def _at(part: _Part, rows: NDArray[np.intp], labels: NDArray[np.intp]) -> Floats:
    n, c = part.values.shape[:2]
    return part.values[rows if n > 1 else 0 * rows, labels if c > 1 else 0 * labels]


def _predict(
    part: _Part,
    rows: NDArray[np.intp],
    labels: NDArray[np.intp],
    alpha: Floats,
    shape: tuple[int, ...],
) -> Floats:
    """Return the mean of the process in all cells, (n, c)."""
    weighted = _at(part, rows, labels) * alpha[:, None]
    if not part.by_label:
        return np.broadcast_to(part.values @ weighted.sum(axis=0), shape)
    weights = np.zeros((shape[1], weighted.shape[1]))
    np.add.at(weights, labels, weighted)
    if part.values.shape[1] == 1:
        return np.broadcast_to(part.values[:, 0] @ weights.T, shape)
    return np.asarray(np.sum(part.values * weights, axis=-1))


def _laplace(gram: Floats, offset: Floats, answers: Floats) -> tuple[float, Floats]:
    """Fit a Gaussian process of log-odds with mean ``offset``: approximate log-evidence, and its weights α."""
    m = len(answers)
    if m == 0:
        return 0.0, np.zeros(0)
    gram = gram + _JITTER * np.eye(m)
    sign = 2 * answers - 1
    alpha, f = np.zeros(m), np.zeros(m)

    def objective(alpha: Floats, f: Floats) -> float:
        return float(-np.logaddexp(0, -sign * (offset + f)).sum() - alpha @ f / 2)

    now = objective(alpha, f)
    for _ in range(50):
        p = expit(offset + f)
        weight = np.maximum(p * (1 - p), 1e-6)
        root = np.sqrt(weight)
        factor = cho_factor(np.eye(m) + root[:, None] * gram * root, lower=True)
        b = weight * f + answers - p
        step = b - root * cho_solve(factor, root * (gram @ b)) - alpha
        size = 1.0
        # Far from the optimum, a full step may overshoot.
        while objective(alpha + size * step, gram @ (alpha + size * step)) < now - 1e-9 and size > 1e-4:
            size /= 2
        alpha = alpha + size * step
        f = gram @ alpha
        before, now = now, objective(alpha, f)
        if now - before < 1e-7 * m:
            break
    p = expit(offset + f)
    root = np.sqrt(np.maximum(p * (1 - p), 1e-9))
    factor = cho_factor(np.eye(m) + root[:, None] * gram * root, lower=True)
    return now - float(np.log(np.diag(factor[0])).sum()), alpha


def estimate_share(
    wrong: NDArray[np.bool_], predicted: Floats, all_predicted: Floats, *, level: float = 0.9
) -> tuple[float, float, float]:
    """Estimate the share of wrong cells, with an interval, from a random sample of all cells.

    ``predicted`` are probabilities of being wrong of the sample, by models that did not see it, and ``all_predicted``
    those of all cells: prediction-powered inference. With few cells, or few of one answer, the plain share and the shares
    under which so many wrong cells, or so few, are not too unlikely: the exact interval.
    """
    n, n_all = len(wrong), len(all_predicted)
    if n == 0:
        return float(np.mean(all_predicted)), 0.0, 1.0
    e = wrong.astype(np.float64)
    if n < _FEW_CELLS or min(e.sum(), n - e.sum()) < _FEW_ANSWERS:
        n_wrong, tail = int(e.sum()), (1 - level) / 2
        least = _least_count(n_wrong, n, n_all, tail)
        most = n_all - _least_count(n - n_wrong, n, n_all, tail)
        return n_wrong / n, least / n_all, most / n_all
    spread = predicted.var(ddof=1)
    slope = float(np.clip(np.cov(e, predicted)[0, 1] / spread, 0, 1)) if spread > 0 else 0.0
    share = float(slope * all_predicted.mean() + np.mean(e - slope * predicted))
    # One degree of freedom for the mean, one for the slope.
    variance = np.sum((e - slope * predicted - np.mean(e - slope * predicted)) ** 2) / (n - 2) / n
    finite = max(1 - n / n_all, 0.0)
    half = _SHARED_ANSWERS * float(t.ppf((1 + level) / 2, n - 2)) * float(variance * finite) ** 0.5
    return float(np.clip(share, 0, 1)), max(share - half, 0.0), min(share + half, 1.0)


def _least_count(found: int, n: int, n_all: int, tail: float) -> int:
    """Return the least number of wrong cells with which ``found`` or more of n random ones are not too unlikely."""
    possible = range(found, n_all - n + found + 1)
    # Equality is up to rounding.
    least = tail * (1 - 1e-9)
    likely = bisect_left(
        possible, True, key=lambda n_wrong: hypergeom.sf(found - 1, n_all, n_wrong, n) >= least
    )
    return possible[min(likely, len(possible) - 1)]


def certify_drops(
    confidences: Floats, wrong: NDArray[np.bool_], *, precision: float, level: float = 0.95
) -> float:
    """Return the largest confidence up to which candidates may be dropped; −1 if there is none.

    ``confidences`` are those of a random sample, by models that did not see its answers. Sets of growing size are tested
    in a fixed order, by the exact binomial test, until one cannot be shown to have at least the given share of wrong
    candidates: so with the given probability no set that is dropped has less. A set has all candidates up to a
    confidence, since candidates with the same confidence are dropped together.
    """
    values, count = np.unique(confidences, return_counts=True)
    n_wrong = np.cumsum(
        np.bincount(np.searchsorted(values, confidences), weights=wrong, minlength=len(values))
    )
    size = np.cumsum(count)
    # Sets that could not be shown even with every candidate wrong are not tested.
    large = precision**size <= 1 - level
    failed = large & (binom.sf(n_wrong - 1, size, precision) > 1 - level)
    dropped = values[large & ~np.logical_or.accumulate(failed)]
    return float(dropped[-1]) if len(dropped) else -1.0


def _bound(logits: Floats, most: float) -> Floats:
    """Let log-odds beyond a bound grow by their logarithm only: few answers can move them, and their order stays."""
    beyond = np.maximum(np.abs(logits) - most, 0.0)
    return np.asarray(np.sign(logits) * (np.minimum(np.abs(logits), most) + np.log1p(beyond)))


def _logit(p: NDArray[Any], certain: float) -> Floats:
    return np.asarray(logit(np.clip(np.asarray(p, dtype=np.float64), certain, 1 - certain)))
