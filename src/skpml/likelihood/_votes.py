"""The likelihood of votes: two classes of cells, rates of annotators, and a prior from the features.

A cell is of the class of true labels with probability η(x). Annotators give a label of that class at the rate t_j, other
labels at the rate r_j, so that with m annotators

    P(V | x) = η(x) Bin(V; m, t_j) + (1 − η(x)) Bin(V; m, r_j),

the model of Dawid and Skene by label, with the features as the prior. Real cells of a class differ: some false labels
tempt every annotator. In each cell the log-odds of the rate are therefore shifted by u ~ N(0, σ²); σ = 0 is the formula
above. Known annotators have rates of their own,

    logit t_aj ~ logit t_j + δ_a,

shrunk by Beta priors whose strengths are estimated, from annotator and label to label, and from label to all labels.

**Features.** ``logit η = a s(x) + b_j``, with s the logit of the share of votes that a ridge regression without the row
predicts. Regressions on the posteriors, repeated in each round, ranked worse in trials, probably because the votes
of a row come back to it through the posteriors of its neighbors, even if every regression leaves the row out.

**What is true.** Votes do not say what a class means: cells in which a third of the annotators say the label are one too.
By default a cell is true if most annotators would say the label, ``σ(logit t_j + u) > ½``, given its votes and features.
Then u has the mean κ z(x), with z the score relative to the average vote: more annotators say a label that the features
support. Each class has its κ ≥ 0, which is estimated; 0 is the model above.

**Other labels of a row.** True labels can exclude or attract each other: sets of k labels are exp(θ k (k − 1) / 2) times
as probable as independent labels, with the most likely θ. The odds of a cell are multiplied by ``1 − p_k + p_k e^θ`` for
every other label k of the row, with p_k its confidence by its own votes, and divided by the same of the features. Votes
of other labels as features of η predict votes better, but rank worse in trials: annotators who give one label each vote
for j less often if they vote for k, whatever is true.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from array_api_compat import array_namespace, device
from scipy.optimize import minimize_scalar
from scipy.special import betaln, expit, log_expit, logit, logsumexp
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import check_array

from skpml._validation import check_finite, is_number
from skpml.features import RangeScaler, RBFAnchors
from skpml.likelihood._noise import bend, is_auto
from skpml.likelihood._settings import RIDGE_WEIGHTS
from skpml.likelihood._vote_counts import Floats, Votes, check_max_iter, check_votes, has_few_annotators
from skpml.linalg import Spectrum, ridge_scores, spectrum_of, to_numpy

Truth = Literal["majority", "class"]

# Kernel widths of the features, relative to the default.
VOTE_WIDTHS = (0.25, 0.5, 1.0)
# Spreads σ that are tried, from large to small. Without any spread the majority would be a step at a rate of one half.
_SPREADS = (1.0, 0.75, 0.5, 0.25)
_NODES, _REACH = 15, 3.0
# Strengths of Beta priors, in votes, that are tried; "infinite" is the last.
_STRENGTHS = (5.0, 10.0, 20.0, 50.0, 100.0, 300.0, 1000.0, 1e5)
# Rates that the common ones are drawn to, and by how many votes; by half of all votes if there are fewer than three.
_TYPICAL, _TYPICAL_STRENGTH = (0.7, 0.05), 2.0
# Of the prior of the shift of an annotator's log-odds, centered at 0.
_SHIFT_STRENGTH = 2.0
# Smallest distance of the log-odds of the two rates of a label, and the largest log-odds of a rate.
_GAP, _FARTHEST = 0.1, 9.0
_SLOPES, _LARGEST_STEP = (0.01, 10.0), 1.0
# Largest κ, largest |z|, and how many values of z are distinguished if annotators are not known.
_LARGEST_LEAN, _FARTHEST_SCORE, _N_SCORES = 1.0, 3.0, 25
# Added to weights whose sum could be 0.
_TINY = 1e-9
# Values of θ that are tried first. Counts of labels that are less probable than a share are left out.
_ATTRACTION_STEP, _LEAST_SHARE = 0.5, 1e-12
_ATTRACTIONS = tuple(np.arange(-5.0, 1.5, _ATTRACTION_STEP).tolist())


@dataclass(frozen=True, kw_only=True)
class VoteFit:
    """Result of :func:`fit_votes`.

    Parameters
    ----------
    confidences : ndarray of shape (n_rows, n_labels)
        Probability that each label is true, given the features and the votes, for all cells: of a candidate (a cell with
        votes) its confidence, of another cell the probability that annotators missed a true label.
    probabilities : ndarray of shape (n_rows, n_labels)
        Probability that each label is true, from the features and the votes of other rows alone.
    sensitivity : ndarray of shape (n_labels,)
        Rate t at which annotators say a label of a cell that is in the class of true labels.
    false_rate : ndarray of shape (n_labels,)
        Rate r at which they say it otherwise.
    annotator_sensitivity : ndarray of shape (n_annotators, n_labels) or None
        The same by annotator, shrunk to the rates of the label; None if annotators are not known.
    annotator_false_rate : ndarray of shape (n_annotators, n_labels) or None
        The same for the false rate.
    posteriors : ndarray of shape (n_rows, n_labels)
        Probability that each cell is in the class of true labels; ``confidences`` if ``truth="class"``.
    spread : float
        Standard deviation σ of the log-odds of the rates between cells.
    lean : float
        By how much the log-odds of the rate of true labels rise with the score of the features (κ).
    attraction : float
        Sets of k true labels are exp(θ k (k − 1) / 2) times as probable as independent labels, with this θ. Negative if
        labels exclude each other, 0 if ``truth="class"``.
    log_likelihood : float
        Of the votes, without binomial coefficients, with the labels of a row taken as independent.
    n_iter : int
        Number of rounds.
    converged : bool
        Whether the posteriors settled.
    """

    confidences: Floats
    probabilities: Floats
    sensitivity: Floats
    false_rate: Floats
    annotator_sensitivity: Floats | None
    annotator_false_rate: Floats | None
    posteriors: Floats
    spread: float
    lean: float
    attraction: float
    log_likelihood: float
    n_iter: int
    converged: bool


def fit_votes(
    X: Any,
    votes: Any,
    n_annotators: Any = None,
    *,
    truth: Truth = "majority",
    spread: float | str = "auto",
    n_anchors: int | None = None,
    max_iter: int = 300,
    tol: float = 1e-4,
    random_state: Any = 0,
) -> VoteFit:
    """Estimate from votes and features which labels are true.

    Parameters
    ----------
    X : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_features)
        Features.
    votes : array of shape (n_rows, n_labels) or (n_rows, n_annotators, n_labels)
        How many annotators gave the row the label; or 1, 0, and NaN where an annotator did not see the row, as
        :func:`count_votes` returns them.
    n_annotators : int, array of shape (n_rows,) or None, default=None
        Number of annotators who saw each row; needed if votes are counts.
    truth : {"majority", "class"}, default="majority"
        What is called true: a label that most annotators would give the row, or one of the class of cells with the
        higher rate, however low this rate is. Use "class" if annotators name less than half of the true labels.
    spread : float or "auto", default="auto"
        Standard deviation σ of the log-odds of the rates between cells; 0 is the model of Dawid and Skene. "auto" takes
        the most likely of 0.25, 0.5, 0.75 and 1.
    n_anchors : int or None, default=None
        Number of anchors of the feature map; see :class:`~skpml.features.RBFAnchors`.
    max_iter : int, default=300
        Largest number of rounds of the EM algorithm for each spread.
    tol : float, default=1e-4
        Stop when no posterior changes by more than this.
    random_state : int, RandomState or None, default=0
        Draws the anchors.

    Returns
    -------
    VoteFit
        Confidences, probabilities and rates.

    Raises
    ------
    ValueError
        If votes are not whole numbers from 0 to the number of annotators, or shapes do not match.

    Warns
    -----
    UserWarning
        If fewer than three annotators saw each row: rates then come mostly from a prior.

    See Also
    --------
    count_votes : Votes from a long table.

    References
    ----------
    .. [1] A. P. Dawid and A. M. Skene. Maximum likelihood estimation of observer error-rates using the EM algorithm.
       Applied Statistics 28, 1979.
    .. [2] V. C. Raykar et al. Learning from crowds. Journal of Machine Learning Research 11, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from skpml.candidate_likelihood import fit_votes
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> true = X > 0.5
    >>> votes = rng.binomial(5, np.where(true, 0.8, 0.1))
    >>> found = fit_votes(X, votes, n_annotators=5)
    >>> bool(found.confidences[true].mean() > 0.9)
    True
    """
    options = _check_options(truth, spread, max_iter, tol)
    checked = check_votes(votes, n_annotators)
    X = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False)
    check_finite(X)
    if X.shape[0] != len(checked.total):
        raise ValueError(f"X has {X.shape[0]} rows, but votes has {len(checked.total)}.")
    if X.shape[0] < 2:
        raise ValueError("X has 1 row; at least two are needed.")
    scaled = RangeScaler(keep_sparse=True).fit_transform(X)
    random, spectra, anchors = check_random_state(random_state), [], None
    for width in VOTE_WIDTHS:
        feature_map = RBFAnchors(n_anchors=n_anchors, anchors=anchors, width=width, random_state=random)
        spectra.append(spectrum_of(feature_map.fit_transform(scaled)[:, :-1]))
        anchors = feature_map.anchors_
    return fit_vote_model(fit_best_ridge(spectra, checked.shares).held_out, checked, **options)


def _check_options(truth: Any, spread: Any, max_iter: Any, tol: Any) -> dict[str, Any]:
    if truth not in ("majority", "class"):
        raise ValueError(f'truth must be "majority" or "class", got {truth!r}.')
    if not is_auto(spread) and not is_number(spread, 0):
        raise ValueError(f'spread must be "auto" or a number of at least 0, got {spread!r}.')
    check_max_iter(max_iter)
    if not is_number(tol, 0):
        raise ValueError(f"tol must be a finite number of at least 0, got {tol!r}.")
    return {"truth": truth, "spread": spread, "max_iter": max_iter, "tol": tol}


def fit_best_ridge(
    spectra: Sequence[Spectrum], targets: Floats, weights: Sequence[float] = RIDGE_WEIGHTS
) -> Bunch:
    """Fit targets (n, c) by the ridge regression with the least error on rows that it leaves out.

    Returns the position of the spectrum (``place``), the weight ``gamma``, ``coef`` (r, c), ``intercept`` (c) and the
    scores of the rows when left out (``held_out``).
    """
    found = []
    for place, spectrum in enumerate(spectra):
        xp = array_namespace(spectrum.rows)
        where = {"dtype": spectrum.rows.dtype, "device": device(spectrum.rows)}
        Y = xp.asarray(np.ascontiguousarray(targets), **where)[:, None, :]
        for gamma in weights:
            coef, intercept, scores = ridge_scores(spectrum, Y, xp.asarray([gamma], **where))
            error = float(xp.mean((scores - Y) ** 2))
            parts = {
                "coef": coef[:, 0, :],
                "intercept": intercept[0, :],
                "held_out": to_numpy(scores[:, 0, :]),
            }
            found.append(Bunch(place=place, gamma=float(gamma), error=error, **parts))
    return min(found, key=lambda each: each.error)


def fit_vote_model(
    scores: Floats,
    votes: Votes,
    *,
    truth: Truth = "majority",
    spread: float | str = "auto",
    max_iter: int = 300,
    tol: float = 1e-4,
    strengths: tuple[float, float] | None = None,
) -> VoteFit:
    """Fit the model to held-out scores (n, c), predicted shares of votes.

    ``strengths`` are those of the priors of labels and of annotators, in votes; None estimates them.
    """
    if has_few_annotators(votes):
        warnings.warn(
            "No row was seen by three annotators: votes alone do not identify how reliable annotators are. The rates "
            f"are drawn to {_TYPICAL[0]} for true and {_TYPICAL[1]} for false labels; verify some cells.",
            UserWarning,
            stacklevel=3,
        )
    slopes = np.asarray(logit(bend(scores)))
    best = None
    start = votes.shares
    for sigma in _SPREADS if is_auto(spread) else (float(spread),):
        model = _VoteModel(slopes, votes, sigma, strengths, leans=truth == "majority")
        fit = model.fit(start, truth, max_iter=max_iter, tol=tol)
        start = fit.posteriors
        if best is None or fit.log_likelihood > best.log_likelihood:
            best = fit
    assert best is not None
    if truth == "class":
        return best
    confidences, attraction = couple_labels(best.probabilities, best.confidences)
    return replace(best, confidences=confidences, attraction=attraction)


@dataclass(frozen=True, kw_only=True)
class _Rates:
    """Log-odds of the rates of one class: common, of labels (c), shifts of annotators (a), and of both (a, c)."""

    common: float
    label: Floats
    shift: Floats
    cell: Floats


class _VoteModel:
    """The EM algorithm for one spread."""

    def __init__(
        self,
        features: Floats,
        votes: Votes,
        sigma: float,
        strengths: tuple[float, float] | None,
        *,
        leans: bool = False,
    ) -> None:
        self.features, self.strengths, self.sigma, self.lean = features, strengths, sigma, [0.0, 0.0]
        self.leans = leans and sigma > 0
        votes, self.scores = _split_patterns(features, votes) if self.leans else (votes, np.zeros((1, 1)))
        self.votes = votes
        if sigma > 0:
            step = 2 * _REACH * sigma / (_NODES - 1)
            farthest = _LARGEST_LEAN * float(np.abs(self.scores).max())
            reach = _NODES // 2 + int(np.ceil(farthest / step))
            self.nodes: Floats = np.arange(-reach, reach + 1, dtype=np.float64) * step
        else:
            self.nodes = np.zeros(1)
        self.slope, self.intercepts = 1.0, np.zeros(features.shape[1])
        self.columns = np.broadcast_to(np.arange(features.shape[1]), features.shape)
        self.by_label = np.ascontiguousarray(votes.counts.transpose(2, 0, 1))
        self.votes_of_pattern = votes.counts.sum(axis=1)[:, :, None]
        self.weak = has_few_annotators(votes)
        total = votes.trials.T @ np.bincount(votes.index[:, 0], minlength=len(votes.trials))
        self.trials_of_annotator = np.asarray(total, dtype=np.float64)

    def fit(self, start: Floats, truth: Truth, *, max_iter: int, tol: float) -> VoteFit:
        rates = self._start_rates()
        q, node_posteriors = start, [np.exp(self._log_weights(place)) for place in (0, 1)]
        converged, n_iter, value = False, 0, -np.inf
        while n_iter < max_iter and not converged:
            n_iter += 1
            rates = self._update_rates(q, node_posteriors, rates)
            self._update_lean(q, node_posteriors)
            self._update_prior(q)
            new, node_posteriors, value = self._infer(rates)
            converged = bool(np.abs(new - q).max() <= tol)
            q = new
        return self._report(q, rates, node_posteriors, truth, value, n_iter, converged)

    def _start_rates(self) -> list[_Rates]:
        n_annotators, n_labels = self.votes.counts.shape[1:]
        return [
            _Rates(
                common=float(at),
                label=np.full(n_labels, at),
                shift=np.zeros(n_annotators),
                cell=np.full((n_annotators, n_labels), at),
            )
            for at in logit(_TYPICAL)
        ]

    def _log_weights(self, place: int) -> Floats:
        """Return the log-probabilities (p, c, k) of the shift u in a class, before the votes."""
        shape = (len(self.votes.counts), self.features.shape[1], len(self.nodes))
        if self.sigma == 0:
            return np.zeros(shape)
        mean = self.lean[place] * self.scores[:, :, None]
        weights = -(((self.nodes - mean) / self.sigma) ** 2) / 2
        return np.broadcast_to(weights - logsumexp(weights, axis=2, keepdims=True), shape)

    def _update_lean(self, q: Floats, node_posteriors: list[Floats]) -> None:
        """Regress the shifts of each class on the scores, with a prior of one standard deviation of κ."""
        if not self.leans:
            return
        for place, (cells, nodes) in enumerate(zip((q, 1 - q), node_posteriors, strict=True)):
            weighted = self._mass(cells) * self.scores
            slope = (weighted * (nodes @ self.nodes)).sum()
            lean = slope / ((weighted * self.scores).sum() + self.sigma**2)
            self.lean[place] = float(np.clip(lean, 0.0, _LARGEST_LEAN))

    def _mass(self, weights: Floats) -> Floats:
        """Return the sums of weights of cells over patterns and labels (p, c)."""
        shape = (len(self.votes.counts), weights.shape[1])
        cells = self.votes.index * shape[1] + self.columns
        mass = np.bincount(cells.ravel(), weights.ravel(), shape[0] * shape[1])
        return mass.reshape(shape).astype(np.float64)

    def eta(self) -> Floats:
        return np.asarray(expit(self.slope * self.features + self.intercepts))

    def _infer(self, rates: list[_Rates]) -> tuple[Floats, list[Floats], float]:
        """Return posteriors of cells (n, c), of the shift u by pattern and class, and the log-likelihood."""
        evidence, posteriors = [], []
        for place, each in enumerate(rates):
            joint = self._log_likelihoods(each.cell) + self._log_weights(place)
            total = logsumexp(joint, axis=2)
            posteriors.append(np.exp(joint - total[:, :, None]))
            evidence.append(total[self.votes.index, self.columns])
        linear = self.slope * self.features + self.intercepts
        true, false = log_expit(linear) + evidence[0], log_expit(-linear) + evidence[1]
        return np.asarray(expit(true - false)), posteriors, float(np.logaddexp(true, false).sum())

    def _log_likelihoods(self, log_odds: Floats) -> Floats:
        """Return log P(votes | class, u) of patterns (p, c, k)."""
        at = log_odds[:, :, None] + self.nodes
        n_annotators, n_labels, n_nodes = at.shape
        # A shift adds the same to every vote of a cell.
        yes = (self.by_label @ log_odds.T[:, :, None]).transpose(1, 0, 2) + self.votes_of_pattern * self.nodes
        no = self.votes.trials @ log_expit(-at).reshape(n_annotators, n_labels * n_nodes)
        return np.asarray(yes + no.reshape(-1, n_labels, n_nodes))

    def _update_rates(self, q: Floats, node_posteriors: list[Floats], rates: list[_Rates]) -> list[_Rates]:
        found = []
        for place, (weights, nodes) in enumerate(zip((q, 1 - q), node_posteriors, strict=True)):
            mass = self._mass(weights)
            yes = (mass.T[:, None, :] @ self.by_label)[:, 0, :].T
            by_node = (mass[:, :, None] * nodes).reshape(len(mass), -1)
            trials = (self.votes.trials.T @ by_node).reshape(-1, *nodes.shape[1:])
            found.append(self._maximize(yes, trials, rates[place], _TYPICAL[place]))
        low, high = found[1].label, found[0].label
        # Labels do not swap their classes.
        gap = np.maximum(low + _GAP - high, 0.0)
        found[0] = replace(found[0], label=high + gap / 2, cell=found[0].cell + gap / 2)
        found[1] = replace(found[1], label=low - gap / 2, cell=found[1].cell - gap / 2)
        return found

    def _maximize(self, yes: Floats, trials: Floats, rates: _Rates, typical: float) -> _Rates:
        """Take a step to the best rates, from expected votes (a, c) and trials (a, c, k)."""
        of_cell = trials.sum(axis=2)
        data = (yes, trials)
        common, label, shift = rates.common, rates.label, rates.shift
        # The prior has the strength of all votes where these do not identify the rates.
        strength = of_cell.sum() if self.weak else _TYPICAL_STRENGTH
        at = common + np.zeros_like(label) + shift[:, None]
        common = self._step(common, *data, at, axis=(0, 1), prior=typical, strength=strength)
        expected = (trials * expit(common + shift[:, None, None] + self.nodes)).sum(axis=2)
        strength = self._strength(0, yes.sum(axis=0), of_cell.sum(axis=0), expected.sum(axis=0))
        at = label + shift[:, None]
        label = self._step(label, *data, at, axis=0, prior=expit(common), strength=strength)
        if not self.votes.known:
            return _Rates(common=common, label=label, shift=shift, cell=label[None, :])
        at = label + shift[:, None]
        shift = self._step(shift, *data, at, axis=1, prior=0.5, strength=_SHIFT_STRENGTH)
        shift = shift - np.average(shift, weights=self.trials_of_annotator)
        at = label + shift[:, None]
        expected = (trials * expit(at[:, :, None] + self.nodes)).sum(axis=2)
        strength = self._strength(1, yes, of_cell, expected)
        cell = self._step(rates.cell, *data, rates.cell, axis=(), prior=expit(at), strength=strength)
        return _Rates(common=common, label=label, shift=shift, cell=cell)

    def _strength(self, level: int, yes: Floats, trials: Floats, expected: Floats) -> float:
        """Return the strength of the prior of labels (0) or annotators (1)."""
        if self.strengths is not None:
            return self.strengths[level]
        return _best_strength(yes, trials, expected)

    def _step(
        self,
        values: Any,
        yes: Floats,
        trials: Floats,
        log_odds: Floats,
        *,
        axis: int | tuple[int, ...],
        prior: Any,
        strength: float,
    ) -> Any:
        """Take a Newton step for values whose sum is part of log-odds (a, c), with a Beta prior on their rate."""
        p = expit(log_odds[:, :, None] + self.nodes)
        slope, curvature = yes - (trials * p).sum(axis=2), (trials * p * (1 - p)).sum(axis=2)
        slope, curvature = slope.sum(axis=axis), curvature.sum(axis=axis)
        at = expit(values)
        slope = slope + strength * (prior - at)
        step = slope / np.maximum(curvature + strength * at * (1 - at), 1e-9)
        return np.clip(values + np.clip(step, -_LARGEST_STEP, _LARGEST_STEP), -_FARTHEST, _FARTHEST)

    def _update_prior(self, q: Floats) -> None:
        """Take a Newton step of the logistic regression of the posteriors on the features."""
        s, eta = self.features, self.eta()
        error, weight = q - eta, eta * (1 - eta)
        pull = self.intercepts - self.intercepts.mean()
        gradient = np.append(error.sum(axis=0) - pull, (error * s).sum() - (self.slope - 1))
        curvature = np.diag(np.append(weight.sum(axis=0) + 1, (weight * s**2).sum() + 1))
        curvature[-1, :-1] = curvature[:-1, -1] = (weight * s).sum(axis=0)
        step = np.clip(np.linalg.solve(curvature, gradient), -_LARGEST_STEP, _LARGEST_STEP)
        slope = float(np.clip(self.slope + step[-1], *_SLOPES))
        if slope != self.slope + step[-1]:
            # At the bound the intercepts go their own way.
            step[:-1] = np.clip(gradient[:-1] / np.diag(curvature)[:-1], -_LARGEST_STEP, _LARGEST_STEP)
        self.slope, self.intercepts = slope, self.intercepts + step[:-1]

    def _report(
        self,
        q: Floats,
        rates: list[_Rates],
        node_posteriors: list[Floats],
        truth: Truth,
        value: float,
        n_iter: int,
        converged: bool,
    ) -> VoteFit:
        eta, confidences = self.eta(), q
        probabilities = eta
        weights = [np.exp(self._log_weights(place)) for place in (0, 1)]
        if truth == "majority":
            above = [_share_above(each.label, self.nodes) for each in rates]
            before, after = (
                [
                    (part * share).sum(axis=2)[self.votes.index, self.columns]
                    for part, share in zip(parts, above, strict=True)
                ]
                for parts in (weights, node_posteriors)
            )
            # Sums of shares can exceed 1 by rounding.
            probabilities = np.minimum(eta * before[0] + (1 - eta) * before[1], 1.0)
            confidences = np.minimum(q * after[0] + (1 - q) * after[1], 1.0)
        by_annotator = [
            self._mean_rate(each.cell, part, cells)
            for each, part, cells in zip(rates, weights, (q, 1 - q), strict=True)
        ]
        seen = self.trials_of_annotator
        by_label = [np.average(each, axis=0, weights=seen) for each in by_annotator]
        known = self.votes.known
        return VoteFit(
            confidences=confidences,
            probabilities=probabilities,
            sensitivity=by_label[0],
            false_rate=by_label[1],
            annotator_sensitivity=by_annotator[0] if known else None,
            annotator_false_rate=by_annotator[1] if known else None,
            posteriors=q,
            spread=self.sigma,
            lean=self.lean[0],
            attraction=0.0,
            log_likelihood=value,
            n_iter=n_iter,
            converged=converged,
        )

    def _mean_rate(self, log_odds: Floats, weights: Floats, cells: Floats) -> Floats:
        """Return the rates (a, c) of the cells of a class, averaged over their shifts."""
        mass = self._mass(cells) + _TINY
        shares = (mass[:, :, None] * weights).sum(axis=0) / mass.sum(axis=0)[:, None]
        return np.asarray((expit(log_odds[:, :, None] + self.nodes) * shares).sum(axis=2))


def couple_labels(probabilities: Floats, confidences: Floats) -> tuple[Floats, float]:
    """Let the labels of a row exclude or attract each other; return confidences (n, c) and the attraction θ.

    ``probabilities`` (n, c) are without the votes of the row, ``confidences`` with those for the label alone. Sets of k
    labels are exp(θ k (k − 1) / 2) times as probable as independent labels. With the distributions of k before and after
    the votes, the likelihood of θ is exact.
    """
    before, after = (_count_distribution(each) for each in (probabilities, confidences))
    used = np.maximum(before, after).max(axis=0) > _LEAST_SHARE
    before, after = (np.log(np.maximum(each[:, used], _LEAST_SHARE**2)) for each in (before, after))
    k = np.flatnonzero(used)
    pairs = k * (k - 1) / 2

    def loss(theta: float) -> float:
        change = logsumexp(after + theta * pairs, axis=1) - logsumexp(before + theta * pairs, axis=1)
        return float(theta**2 / 2 - change.sum())

    # It can have several minima.
    start = min(_ATTRACTIONS, key=loss)
    near = (start - _ATTRACTION_STEP, start + _ATTRACTION_STEP)
    attraction = float(minimize_scalar(loss, bounds=near, method="bounded").x)
    # The expected factor is taken out again: the level stays that of the votes.
    factors, usual = (np.log1p(each * np.expm1(attraction)) for each in (confidences, probabilities))
    change = (factors - usual).sum(axis=1, keepdims=True) - (factors - usual)
    return np.asarray(expit(logit(confidences) + change)), attraction


def _count_distribution(probabilities: Floats) -> Floats:
    """Return the distribution (n, c + 1) of the number of true labels of a row, if these are independent."""
    found = np.zeros((len(probabilities), probabilities.shape[1] + 1))
    found[:, 0] = 1.0
    for p in probabilities.T[:, :, None]:
        found[:, 1:] += p * (found[:, :-1] - found[:, 1:])
        found[:, :1] *= 1 - p
    return found


def _split_patterns(features: Floats, votes: Votes) -> tuple[Votes, Floats]:
    """Return votes whose patterns also agree in the scores z of their cells, and these scores, of which there are few.

    Scores are relative to their average over all votes.
    """
    step = 2 * _FARTHEST_SCORE / (_N_SCORES - 1)
    z = features - np.average(features, weights=votes.shares + _TINY)
    place = np.rint((np.clip(z, -_FARTHEST_SCORE, _FARTHEST_SCORE) + _FARTHEST_SCORE) / step).astype(np.intp)
    if votes.known:
        return votes, np.asarray(place * step - _FARTHEST_SCORE, dtype=np.float64)
    used, index = np.unique(votes.index * _N_SCORES + place, return_inverse=True)
    pattern, place = np.divmod(used, _N_SCORES)
    split = replace(
        votes, counts=votes.counts[pattern], trials=votes.trials[pattern], index=index.reshape(z.shape)
    )
    return split, np.asarray(place * step - _FARTHEST_SCORE, dtype=np.float64)[:, None]


def _share_above(label: Floats, nodes: Floats) -> Floats:
    """Return which part of each node (c, k) has a rate above one half."""
    at = label[:, None] + nodes
    if len(nodes) == 1:
        return (at > 0).astype(np.float64)
    return np.clip(at / (nodes[1] - nodes[0]) + 0.5, 0.0, 1.0)


def _best_strength(yes: Floats, trials: Floats, expected: Floats) -> float:
    """Return the strength of a Beta prior under which votes are most likely; all are sums over cells."""
    present = trials > 0
    yes, trials, expected = (values[present] for values in (yes, trials, expected))
    rate, no = np.clip(expected / trials, 1e-6, 1 - 1e-6), np.maximum(trials - yes, 0)

    def log_likelihood(s: float) -> float:
        return float((betaln(s * rate + yes, s * (1 - rate) + no) - betaln(s * rate, s * (1 - rate))).sum())

    return max(_STRENGTHS, key=log_likelihood)
