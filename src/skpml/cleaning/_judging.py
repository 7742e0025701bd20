"""Judge candidates by models that were not trained on their rows: confidences, counts and actions.

A model that has seen a row has seen its candidates, and its confidence in them is too high. So rows are cut into folds,
each is scored by a model of the other folds, and these scores set the *level* of the confidences. A model of all rows
still orders candidates well: the *order* is that of both together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import betainc, expit, logit
from scipy.stats import norm
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils import Bunch, gen_batches

from skpml._validation import take_rows
from skpml.likelihood import (
    ENOUGH_CANDIDATES,
    apply_level,
    calibrate,
    estimate_noise,
    estimate_share,
    fit_calibration,
    fit_level,
    posterior,
    scale_odds,
)
from skpml.model_selection import InnerFolds

Floats = NDArray[np.float64]
Progress = Callable[[int, int, str], None]

KEEP, DROP, ASK = "keep", "drop", "ask"
# More rows take time and memory, and hardly change a model.
MAX_ROWS = 40_000
# Confidences are clipped by this before their odds are taken.
CERTAIN = 1e-6
# Standard deviation of the log-odds of noise, beyond what the likelihood allows, and of confidences, as a share of their
# sum, if the noise rate is right. Both are what estimates were off by in measurements.
_NOISE_DEVIATION, _SHARE_DEVIATION = 0.08, 0.08
# The same for confidences from votes, whose level rests on what "true" means.
_VOTES_DEVIATION = 0.1
# Standard deviations of the shift of log-odds of missing labels, before any answer, and of their factor. Votes set the
# level, scores of other models do not.
_SHIFT_DEVIATIONS = {"votes": 0.5, "ranking": 2.0}
_FACTOR_DEVIATION, _LEAST_FACTOR = 0.5, 0.05
# Of which products of labels are summed at a time, for memory.
ROWS_AT_ONCE = 100_000
# A label gets a partner by mere chance at most this often.
_CHANCE = 0.05


class Actions:
    """The action of each cell, a matrix of "keep", "drop" and "ask", and "" outside the candidates.

    It needs one byte for a cell and behaves as an array of str: compared with an action it gives a mask, and cells are
    taken and assigned as those of an array. ``np.asarray`` returns all of it.

    Parameters
    ----------
    shape : tuple of int
        Numbers of rows and labels.
    """

    _NAMES = np.array(["", KEEP, DROP, ASK])
    _UNKNOWN = 255
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._codes = np.zeros(shape, dtype=np.uint8)

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of rows and labels."""
        return self._codes.shape

    def __len__(self) -> int:
        return len(self._codes)

    def __getitem__(self, cells: Any) -> Any:
        return self._NAMES[self._codes[cells]]

    def __setitem__(self, cells: Any, actions: Any) -> None:
        codes = self._encode(actions)
        if (codes == self._UNKNOWN).any():
            raise ValueError(f"Actions are 'keep', 'drop', 'ask' and '', got {actions!r}.")
        self._codes[cells] = codes

    def __eq__(self, other: object) -> NDArray[np.bool_]:  # type: ignore[override]
        return np.asarray(self._codes == self._encode(other))

    def __ne__(self, other: object) -> NDArray[np.bool_]:  # type: ignore[override]
        return ~(self == other)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("Actions are not stored as text; an array of them is a copy.")
        return np.asarray(self[:], dtype=dtype)

    def __repr__(self) -> str:
        return repr(self[:])

    def copy(self) -> Actions:
        """Copy the actions.

        Returns
        -------
        Actions
            A copy that can be changed.
        """
        copied = Actions(self.shape)
        copied._codes = self._codes.copy()
        return copied

    @classmethod
    def _encode(cls, actions: Any) -> NDArray[np.uint8]:
        if isinstance(actions, Actions):
            return actions._codes
        names = np.asarray(actions)
        codes = np.full(names.shape, cls._UNKNOWN, dtype=np.uint8)
        for code, name in enumerate(cls._NAMES):
            codes[names == name] = code
        return codes


def cross_fit(
    model: Any,
    X: Any,
    Y: NDArray[Any],
    *,
    n_folds: int = 5,
    max_rows: int = MAX_ROWS,
    random_state: int = 0,
    progress: Progress | None = None,
) -> tuple[Any, Floats, NDArray[np.intp]]:
    """Fit a model to all rows, and again without each fold.

    Settings that :class:`~skpml.CandidateLikelihood` chooses on all rows are kept in the folds; if it has compared them
    on these folds, the models of its search are used. Models are fitted to at most ``max_rows`` random rows. Rows with
    equal features are in one fold, since a copy would give the labels of a row away. Returns the model of all rows, the
    held-out probabilities (n×c) and the rows in random order.
    """
    cut = InnerFolds(X, Y, n_folds=n_folds, random_state=random_state, copies_together=True)
    tell = progress if progress is not None else lambda done, total, what: None
    # A search that uses all rows has models without each fold.
    share = 1.0 if len(Y) <= min(max_rows, getattr(model, "_most_held_out", 0)) else 0.3

    def report(done: float, what: str) -> None:
        tell(round(100 * done), 100, what)

    whole, probabilities = _fit_some(model, cut, max_rows, lambda done, what: report(share * done, what))
    if probabilities is None:
        probabilities = np.empty(Y.shape)
        for fold, (rows, held_out) in enumerate(cut.splits):
            done = share + (1 - share) * fold / n_folds
            report(done, f"judging rows by models of the others, {fold + 1} of {n_folds}")
            fit = whole.refit if hasattr(whole, "refit") else clone(model).fit
            without = fit(cut.rows(rows[:max_rows]), Y[rows[:max_rows]])
            probabilities[held_out] = without.predict_proba(cut.rows(held_out))
    report(1.0, "weighing the evidence")
    return whole, probabilities, cut.shuffled


def train(model: Any, X: Any, Y: NDArray[Any], *, max_rows: int, random_state: int) -> Any:
    """Fit a clone of a model to all rows, or to ``max_rows`` random ones."""
    n_folds = getattr(model, "n_folds", 2)
    if len(Y) > 2 * max_rows:
        # To order all rows by their content would need them in memory.
        some = np.random.default_rng(random_state).permutation(len(Y))[:max_rows]
        X, Y = take_rows(X, some), Y[some]
    rows = InnerFolds(X, Y, n_folds=n_folds, random_state=random_state, copies_together=True)
    with config_context(transform_output="default"):
        return _fit_some(model, rows, max_rows, lambda done, what: None)[0]


def _fit_some(
    model: Any, cut: InnerFolds, max_rows: int, report: Callable[[float, str], None]
) -> tuple[Any, Floats | None]:
    """Fit a clone of a model to at most ``max_rows`` rows; also return probabilities without each row, if known."""
    X, Y, folds = cut.X, cut.candidates, cut.numbers
    if some := len(Y) > max_rows:
        drawn = cut.shuffled[:max_rows]
        X, Y, folds = cut.rows(drawn), Y[drawn], folds[drawn]
    fitted = clone(model)
    if not hasattr(model, "_fit_held_out"):
        report(0.0, "learning from all rows")
        return fitted.fit(X, Y), None
    held_out = fitted._fit_held_out(X, Y, folds, report)
    return fitted, None if some else held_out


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """How held-out scores become probabilities: noise rates and curves, as estimated and with the least noise."""

    rates: Floats
    least_rates: Floats
    curve: tuple[float, float] | None = None
    least_curve: tuple[float, float] | None = None

    def apply(self, scores: Floats, Y: NDArray[Any]) -> Bunch:
        """Return ``probabilities``, ``expected``, ``held_out`` and ``at_least_noise``, see :func:`judge`."""
        probabilities = scores if self.curve is None else calibrate(scores, self.curve)
        least = scores if self.least_curve is None else calibrate(scores, self.least_curve)
        return Bunch(
            probabilities=probabilities,
            expected=probabilities + (1 - probabilities) * self.rates,
            held_out=posterior(probabilities, self.rates, Y),
            at_least_noise=posterior(least, self.least_rates, Y),
        )


def judge(
    scores: Floats,
    Y: NDArray[Any],
    *,
    rates: Floats | None = None,
    of_all: NDArray[Any] | None = None,
    order: NDArray[np.intp] | None = None,
) -> Bunch:
    """Judge candidates by held-out probabilities (n×c) of any level.

    If the noise ``rates`` (c) are known, the probabilities have the right level. ``of_all`` are the confidences of a
    model of all rows, ``order`` the rows in random order.

    Returns ``probabilities`` that labels are true and ``expected`` ones of candidates, from the features alone;
    ``held_out``, the probability that each
    candidate is true, by a model without the row; ``at_least_noise``, the same under the least noise that the interval
    of :func:`count_wrong` reaches;
    ``confidences``, at the level of ``held_out``, in the order of it and the model of all rows together (all n×c, the
    last three 0 outside the candidates); ``noise_rate`` (c) and ``noise_range``, the least and largest allowed rate; and
    the ``calibration``, which judges other rows alike.
    """
    if rates is not None:
        low = high = rates
        calibration = Calibration(rates=rates, least_rates=rates)
    else:
        noise = estimate_noise(scores, Y, by_frequency=True, order=order)
        rates, low, high = noise.rate, noise.low, noise.high
        least = scale_odds(low, 1 / _beyond_range(0.9))
        calibration = Calibration(
            rates=rates,
            curve=fit_calibration(scores, rates, Y),
            least_rates=least,
            least_curve=fit_calibration(scores, least, Y),
        )
    found = calibration.apply(scores, Y)
    return Bunch(
        **found,
        confidences=found.held_out if of_all is None else _combine(found.held_out, of_all, Y > 0),
        noise_rate=rates,
        noise_range=(low, high),
        calibration=calibration,
    )


def _combine(held_out: Floats, of_all: NDArray[Any], candidate: NDArray[np.bool_]) -> Floats:
    """Return confidences in the order of both, at the level of the first."""
    odds = [p / (1 - p) for p in (np.clip(each, CERTAIN, 1 - CERTAIN) for each in (held_out, of_all))]
    both = np.sqrt(odds[0] * odds[1])
    both /= 1 + both
    return apply_level(both, fit_level(both[candidate], held_out[candidate]), candidate)


@dataclass(frozen=True, kw_only=True)
class WrongCounts:
    """Estimated numbers of wrong candidates.

    Parameters
    ----------
    estimate : ndarray of shape (n_labels,)
        Estimated number for each label.
    low, high : ndarray of shape (n_labels,)
        Ends of the interval of each label.
    total : tuple of float
        Estimate, low and high for all labels together. Errors that labels share do not cancel, random ones do.
    basis : {"sample", "random noise", "votes", "unknown"}
        What the counts rest on: a random sample of verified candidates; random noise, which the data support; votes; or
        nothing: then the estimate holds if noise is random, which the data contradict, and the interval excludes nothing.
    """

    estimate: Floats
    low: Floats
    high: Floats
    total: tuple[float, float, float]
    basis: str = "random noise"


def count_wrong(
    found: Bunch, Y: NDArray[Any], *, unknown: NDArray[np.bool_] | None = None, level: float = 0.9
) -> WrongCounts:
    """Count wrong candidates by label, with an interval of the given level.

    Given the confidences, the number still varies by chance. The noise rate, which sets their level, is moved to both
    ends of its range and a little beyond, and the level is fitted anew. A share of the estimate is added, by which
    confidences were off where the rate was right. Of ``unknown`` labels, none or all candidates may be wrong.
    """
    candidate = Y > 0
    confidences, count = found.confidences, candidate.sum(axis=0)
    reach = float(norm.ppf((1 + level) / 2))
    estimate = np.sum((1 - confidences) * candidate, axis=0)
    chance = reach**2 * np.sum(confidences * (1 - confidences) * candidate, axis=0)
    beyond = _beyond_range(level)
    ends = scale_odds(found.noise_range[0], 1 / beyond), scale_odds(found.noise_range[1], beyond)
    middle, less, more = (_count_at(found.probabilities, at, Y) for at in (found.noise_rate, *ends))
    share = reach * _SHARE_DEVIATION * estimate
    down, up = np.hypot(np.minimum(less - middle, 0), share), np.hypot(np.maximum(more - middle, 0), share)
    low = np.clip(estimate - np.sqrt(down**2 + chance), 0, count)
    high = np.clip(estimate + np.sqrt(up**2 + chance), 0, count)
    total = float(estimate.sum())
    least = max(0.0, total - float(np.sqrt(down.sum() ** 2 + chance.sum())))
    most = min(float(count.sum()), total + float(np.sqrt(up.sum() ** 2 + chance.sum())))
    if unknown is not None:
        least = max(0.0, least - float(low[unknown].sum()))
        most = min(float(count.sum()), most + float((count - high)[unknown].sum()))
        low, high = np.where(unknown, 0.0, low), np.where(unknown, count, high)
    return WrongCounts(estimate=estimate, low=low, high=high, total=(total, least, most))


def _beyond_range(level: float) -> float:
    """Return the factor of the odds of noise by which an interval of a level reaches beyond what candidates allow."""
    return float(np.exp(norm.ppf((1 + level) / 2) * _NOISE_DEVIATION))


def count_from_sample(
    judged: Floats,
    candidate: NDArray[np.bool_],
    verified: NDArray[np.int8],
    sample: NDArray[np.bool_],
    *,
    level: float = 0.9,
) -> WrongCounts:
    """Count wrong candidates from a random sample of them, by prediction-powered inference.

    ``judged`` are confidences, those of the sample by models that did not see its answers. The interval of a label is
    that of its own cells in the sample, which may be few. What was checked otherwise bounds all intervals.
    """
    count = candidate.sum(axis=0)
    n_all = int(count.sum())
    wrong = verified[sample] < 0
    share = estimate_share(wrong, 1 - judged[sample], 1 - judged[candidate], level=level)
    surely = np.sum(candidate & (verified < 0), axis=0)
    at_most = count - np.sum(candidate & (verified > 0), axis=0)
    estimate, least, most = (float(np.clip(each * n_all, surely.sum(), at_most.sum())) for each in share)
    low, high = surely.astype(np.float64), at_most.astype(np.float64)
    for label in np.flatnonzero(sample.any(axis=0)).tolist():
        of_label = verified[sample[:, label], label] < 0
        # Too few for anything but the plain share of the label's own cells.
        _, *ends = estimate_share(of_label, np.zeros(len(of_label)), np.zeros(count[label]), level=level)
        low[label], high[label] = np.clip(count[label] * np.array(ends), surely[label], at_most[label])
    by_label = np.sum(np.where(candidate, 1 - judged, 0.0), axis=0, dtype=np.float64)
    by_label = np.clip(by_label * estimate / max(float(by_label.sum()), 1e-9), low, high)
    return WrongCounts(estimate=by_label, low=low, high=high, total=(estimate, least, most), basis="sample")


def count_without_noise(
    confidences: Floats,
    candidate: NDArray[np.bool_],
    verified: NDArray[np.int8],
    *,
    known: bool,
    level: float = 0.9,
) -> WrongCounts:
    """Count wrong candidates by their confidences, if these are ``known``; otherwise nothing is excluded but checks."""
    count = candidate.sum(axis=0).astype(np.float64)
    # In single precision, a sum over millions of rows loses small terms.
    estimate: Floats = np.sum((1 - confidences) * candidate, axis=0, dtype=np.float64)
    low = np.sum(candidate & (verified < 0), axis=0).astype(np.float64)
    high = count - np.sum(candidate & (verified > 0), axis=0)
    ends = low.sum(), high.sum()
    if known:
        reach = float(norm.ppf((1 + level) / 2))
        chance = np.sum(confidences * (1 - confidences) * candidate, axis=0, dtype=np.float64)
        share = _VOTES_DEVIATION * estimate
        low = np.maximum(low, estimate - reach * np.sqrt(chance + share**2))
        high = np.minimum(high, estimate + reach * np.sqrt(chance + share**2))
        half = reach * float(np.sqrt(chance.sum() + share.sum() ** 2))
        ends = (
            max(float(ends[0]), float(estimate.sum()) - half),
            min(float(ends[1]), float(estimate.sum()) + half),
        )
    total = (float(estimate.sum()), float(ends[0]), float(ends[1]))
    return WrongCounts(
        estimate=estimate, low=low, high=high, total=total, basis="votes" if known else "unknown"
    )


def _count_at(probabilities: Floats, rates: Floats, Y: NDArray[Any]) -> Floats:
    """Return the wrong candidates by label if the noise had these rates."""
    eta = calibrate(probabilities, fit_calibration(probabilities, rates, Y))
    return np.asarray(np.sum((1 - posterior(eta, rates, Y)) * (Y > 0), axis=0))


def benefit(confidences: NDArray[Any]) -> NDArray[Any]:
    """Return the probability that a look at a candidate corrects the more likely answer."""
    return np.minimum(confidences, 1 - confidences)


def is_count(value: Any) -> bool:
    """Return whether a value is an integer, which a bool is not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_thresholds(*, drop_below: float, keep_above: float, budget: int | None) -> None:
    """Raise an error if thresholds cross or a budget is not a number of tags."""
    if not 0 <= drop_below <= keep_above <= 1:
        raise ValueError(
            f"drop_below must not be above keep_above, both between 0 and 1, got {drop_below!r} and {keep_above!r}."
        )
    if budget is not None and not (is_count(budget) and budget >= 0):
        raise ValueError(f"budget must be an integer of at least 0, got {budget!r}.")


def suggest_actions(
    confidences: NDArray[Any],
    *,
    drop_below: float = 0.25,
    keep_above: float = 0.75,
    budget: int | None = None,
) -> NDArray[np.str_]:
    """Suggest an action for each confidence.

    Parameters
    ----------
    confidences : ndarray of shape (n_candidates,)
        Probabilities that candidates are true.
    drop_below : float, default=0.25
        Drop candidates with a confidence below this value.
    keep_above : float, default=0.75
        Keep candidates with a confidence above this value. A person decides on the rest.
    budget : int or None, default=None
        Number of candidates that a person checks: those for which a check is most likely to change the answer. All other
        candidates are kept or dropped by what is more likely; the thresholds are not used.

    Returns
    -------
    ndarray of str, shape (n_candidates,)
        "keep", "drop" or "ask".

    Raises
    ------
    ValueError
        If the thresholds cross or are outside [0, 1], or the budget is negative.
    """
    check_thresholds(drop_below=drop_below, keep_above=keep_above, budget=budget)
    if budget is None:
        asked = (confidences >= drop_below) & (confidences <= keep_above)
        return np.where(asked, ASK, np.where(confidences > keep_above, KEEP, DROP))
    actions = np.where(confidences >= 0.5, KEEP, DROP)
    # Ties are broken by position, so that the same data give the same list.
    actions[np.argsort(-benefit(confidences), kind="stable")[:budget]] = ASK
    return actions


def find_partners(
    confidences: NDArray[np.float64], Y: NDArray[Any], names: Sequence[str]
) -> tuple[str | None, ...]:
    """Return for each label the one that is true more often than usual where the label is wrong, or None.

    If labels had nothing to do with each other, the number of wrong candidates beside which another label is true would
    be binomial; a partner has a probability below 1/20 in its upper tail, times the number of other labels. Labels with
    fewer than one wrong candidate have no partner.
    """
    n_wrong, beside = np.zeros((len(names), 1)), np.zeros((len(names), len(names)))
    for rows in gen_batches(len(Y), ROWS_AT_ONCE):
        doubt = np.where(Y[rows] > 0, 1.0 - confidences[rows], 0.0)
        n_wrong += doubt.sum(axis=0, dtype=np.float64)[:, None]
        beside += doubt.T @ confidences[rows]
    usual = confidences.mean(axis=0, dtype=np.float64)
    possible = (beside > n_wrong * usual) & (n_wrong >= 1)
    np.fill_diagonal(possible, False)
    # The binomial tail, in the form that also takes sums of probabilities.
    tail = betainc(np.where(possible, beside, 1.0), np.maximum(n_wrong - beside, 0) + 1, usual)
    chance = np.where(possible, tail * (len(names) - 1), np.inf)
    best = chance.argmin(axis=1)
    return tuple(
        names[other] if chance[label, other] < _CHANCE else None for label, other in enumerate(best.tolist())
    )


@dataclass(frozen=True, kw_only=True)
class Missing:
    """Labels that rows may lack: proposals for a person, never added automatically.

    Parameters
    ----------
    probabilities : ndarray of shape (n_rows, n_labels)
        Probability that each label is true, of labels that the row does not have and nobody has checked; 0 elsewhere.
        Only their order has a meaning if the basis is "ranking".
    basis : {"votes", "verified", "ranking"}
        What the level rests on: votes of annotators; at least ten checked labels that their rows do not have; or nothing,
        because a model of candidates takes absent labels for wrong.
    """

    probabilities: Floats
    basis: str

    def cells(self, at_least: float = 0.0) -> NDArray[np.intp]:
        """Return the cells with at least some probability above 0, the most likely first.

        Parameters
        ----------
        at_least : float, default=0.0
            Smallest probability.

        Returns
        -------
        ndarray of int, shape (n_cells, 2)
            Row and label of each cell.
        """
        rows, labels = np.nonzero((self.probabilities > 0) & (self.probabilities >= at_least))
        order = np.argsort(-self.probabilities[rows, labels], kind="stable")
        return np.column_stack([rows[order], labels[order]])


def find_missing(
    probabilities: Floats, candidate: NDArray[np.bool_], verified: NDArray[np.int8], basis: str
) -> Missing:
    """Calibrate the probabilities of labels that are not candidates by the answers about some of them.

    With log-odds s and their median m over the answers, a logistic regression of the answers on m + a + b (s − m), whose
    prior is centered at a = 0 and b = 1: without answers nothing changes, and with few answers little. b is positive, so
    that the order stays.
    """
    # In place, since these arrays of a large table fill the memory.
    s = np.clip(probabilities, CERTAIN, 1 - CERTAIN)
    logit(s, out=s)
    answered = ~candidate & (verified != 0)
    middle = float(np.median(s[answered])) if answered.any() else 0.0
    s -= middle
    curve = np.array([0.0, 1.0])
    if answered.any():
        at, sign = s[answered], verified[answered].astype(np.float64)
        scale = np.array([_SHIFT_DEVIATIONS[basis], _FACTOR_DEVIATION])

        def loss(values: Floats) -> tuple[float, Floats]:
            margin, off = sign * (middle + values[0] + values[1] * at), (values - [0.0, 1.0]) / scale
            slope = -sign * expit(-margin)
            gradient = np.array([slope.sum(), slope @ at]) + off / scale
            return float(np.logaddexp(0, -margin).sum() + off @ off / 2), gradient

        curve = minimize(
            loss, curve, jac=True, method="L-BFGS-B", bounds=[(None, None), (_LEAST_FACTOR, None)]
        ).x
    if np.count_nonzero(answered) >= ENOUGH_CANDIDATES:
        basis = "verified"
    s *= curve[1]
    s += middle + curve[0]
    expit(s, out=s)
    s[candidate | (verified != 0)] = 0.0
    return Missing(probabilities=s, basis=basis)
