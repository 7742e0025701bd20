"""PARTICLE: find credible labels by propagation between neighbors, then rank labels by pairwise models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils import Bunch, gen_batches

from skpml._docstrings import fill_docstring
from skpml._sharing import once
from skpml.base import BasePMLClassifier, MethodFacts
from skpml.baselines._common import Matrix
from skpml.baselines._particle_svm import train_machine
from skpml.features import RangeScaler
from skpml.graph import reconstruction_weights

# Decision values this close to zero are rounding errors: such a vote is split.
_UNDECIDED = 1e-9
# Weight of the decision values if votes tie.
_TIE_WEIGHT = 1e-6
# Decision values in memory at a time.
_BLOCK_SIZE = 4_000_000


def propagate(
    H: Any, Y: NDArray[Any], *, alpha: float = 0.95, max_iter: int = 1000, tol: float = 1e-5
) -> Bunch:
    """Iterate ``F ← Norm(α H F + (1 − α) F⁰)`` from F⁰, equal confidences of the candidates of each row.

    Norm sets non-candidates to 0 and divides each row by its sum; a row with sum 0 becomes F⁰. Stops when
    ``‖F_new − F‖ < tol``.
    """
    Y = Y.astype(np.float64)
    start = _rows_to_one(Y, Y)
    changes: list[float] = []
    F, converged = start, False
    while len(changes) < max_iter and not converged:
        new = _rows_to_one((alpha * (H @ F) + (1 - alpha) * start) * Y, start)
        changes.append(float(np.linalg.norm(new - F)))
        F, converged = new, changes[-1] < tol
    return Bunch(confidences=F, history={"change": changes}, converged=converged)


def _rows_to_one(values: Matrix, otherwise: Matrix) -> Matrix:
    totals = values.sum(axis=1, keepdims=True)
    return np.where(totals > 0, values / np.where(totals > 0, totals, 1), otherwise)


def credible_labels(F: NDArray[Any], Y: NDArray[Any], *, credibility: float = 0.9) -> NDArray[np.bool_]:
    """Select candidates whose confidence is at least ``credibility`` times the highest of their row."""
    return (Y > 0) & (credibility * F.max(axis=1, keepdims=True) <= F)


def train_pairs(X: NDArray[Any], credible: NDArray[np.bool_], Y: NDArray[Any], *, C: float) -> Bunch:
    """Train linear support vector machines between every two labels, and between each label and the virtual one.

    Rows for j against k have j as a credible label and k as a non-candidate. The virtual label is credible and a
    non-candidate everywhere, so the same rule separates a label's credible rows from the rows that certainly lack it. A
    pair without rows on both sides has no model. Returns the pairs (j, k) with j < k, where c is the virtual label and a
    positive decision value is a vote for j; the models; and the share of its training rows that each decides correctly.
    """
    n, c = Y.shape
    everywhere = np.ones((n, 1), dtype=np.bool_)
    yes = np.asfortranarray(np.hstack([credible, everywhere]))
    no = np.asfortranarray(np.hstack([Y == 0, everywhere]))
    # The last weight is the intercept, so it is in the penalty too.
    design = np.hstack([X, np.ones((n, 1))])
    pairs, weights, accuracy = [], [], []
    for j, k in combinations(range(c + 1), 2):
        first, second = np.flatnonzero(yes[:, j] & no[:, k]), np.flatnonzero(yes[:, k] & no[:, j])
        if not first.size or not second.size:
            continue
        rows = design.take(np.concatenate([first, second]), axis=0)
        is_first = np.arange(len(rows)) < first.size
        pairs.append((j, k))
        weights.append(train_machine(rows, is_first, C=C))
        accuracy.append(np.mean((rows @ weights[-1] > 0) == is_first))
    models = np.array(weights, dtype=np.float64).reshape(-1, design.shape[1])
    return Bunch(
        pairs=np.array(pairs, dtype=np.intp).reshape(-1, 2),
        coef=np.ascontiguousarray(models[:, :-1]),
        intercept=np.ascontiguousarray(models[:, -1]),
        accuracy=np.array(accuracy, dtype=np.float64),
    )


def count_votes(
    decisions: NDArray[Any], pairs: NDArray[np.intp], weights: NDArray[Any], c: int
) -> NDArray[Any]:
    """Count weighted votes for each of the c labels and the virtual one, n×(c + 1)."""
    first, second = _incidence(pairs[:, 0], weights, c), _incidence(pairs[:, 1], weights, c)
    won = np.where(np.abs(decisions) <= _UNDECIDED, 0.5, decisions > 0)
    return won @ first + (1 - won) @ second


def signed_mean(decisions: NDArray[Any], pairs: NDArray[np.intp], c: int) -> NDArray[Any]:
    """Average the decision values of a label's models, squashed into (−1, 1); −1 for a label without models."""
    ones = np.ones(len(pairs))
    total = decisions @ (_incidence(pairs[:, 0], ones, c) - _incidence(pairs[:, 1], ones, c))
    models = np.bincount(pairs.ravel(), minlength=c + 1)
    mean = (total / np.maximum(models, 1))[:, :c]
    return np.where(models[:c] > 0, mean / (1 + np.abs(mean)), -1.0)


def _incidence(labels: NDArray[np.intp], weights: NDArray[Any], c: int) -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array((weights, (np.arange(len(labels)), labels)), shape=(len(labels), c + 1))


def vote_likelihoods(votes: NDArray[np.intp], members: NDArray[np.bool_]) -> Matrix:
    """Compute the share of each vote count 0 … c − 1 among the members of each label (c×c), smoothed by one row each."""
    c = votes.shape[1]
    counts = np.array([np.bincount(votes[members[:, j], j], minlength=c) for j in range(c)])
    return (1 + counts) / (c + counts.sum(axis=1, keepdims=True))


@fill_docstring
@dataclass(kw_only=True, repr=False, eq=False)
class PARTICLE(BasePMLClassifier):
    """Partial multi-label learning by credible label elicitation (PARTICLE).

    In two stages. First, every row is written as a non-negative combination of its nearest neighbors (weights H), and
    confidences F spread along these weights among the candidates S of each row until

        F = Norm_S(α H F + (1 − α) F⁰),

    where F⁰ has equal confidences for each row's candidates. Candidates close to the highest confidence of their row are
    *credible*. Second, a linear support vector machine for each pair of labels separates rows in which the first is
    credible and the second is not a candidate from rows in the opposite case; candidates that are not credible are not
    used. A *virtual* label, paired with each label in the same way, marks the cut between relevant and irrelevant. The
    models vote:

    * ``"vls"`` (virtual label splitting): a vote is weighted by the training accuracy of its model. The score is ``(votes
      of the label − votes of the virtual label) / c``: relevant above 0;
    * ``"map"`` (maximum a posteriori): the probability that the label is relevant, given how many of the other labels it
      beats; estimated from how many it beats on training rows in which it is credible and in which it is not a candidate.
      Relevant above ½.

    The algorithm is the published one. The authors' released code differs in ways not followed here: there, a row is
    its own nearest neighbor, so that nothing is propagated; credible labels are found with the candidates of the test
    rows; and the likelihoods of "map" are taken from the true labels of the test rows. Our choices: features are scaled
    to [−1, 1]; the machines use the squared hinge; a vote that differs from zero only by rounding is split.

    Parameters
    ----------
    variant : {"vls", "map"}, default="vls"
        How votes become scores.
    alpha : float, default=0.95
        Share α of a row's confidences that comes from its neighbors, between 0 and 1.
    n_neighbors : int, default=10
        Number of neighbors of a row; all other rows if there are fewer.
    credibility : float, default=0.9
        A candidate is credible with at least this share of the highest confidence of its row; between 0 and 1.
    C : float, default=1.0
        Weight of the squared hinge losses against the size of a model, above 0.
    threshold : float, "auto", "non-candidates" or "variant", default="auto"
        Scores above it are predicted; for "auto" and "non-candidates" see :class:`PMLNI`. "variant" is the rule of the
        paper, 0 for "vls" and 0.5 for "map".
    max_iter : int, default=1000
        Maximum number of propagation steps.
    tol : float, default=1e-5
        Stop when a step changes F by less, in the Frobenius norm.
    %(on_empty)s

    Attributes
    ----------
    confidences_ : ndarray of shape (n_rows, n_labels)
        F: rows sum to 1 over their candidates (0 if there are none).
    credible_ : ndarray of bool, shape (n_rows, n_labels)
        The candidates that the models take as true.
    pairs_ : ndarray of shape (n_models, 2)
        Labels that a model decides between, the first for positive decision values; c is the virtual label.
    coef_, intercept_ : ndarray of shape (n_models, n_features) and (n_models,)
        The models, on scaled features.
    accuracy_ : ndarray of shape (n_models,)
        Training accuracy of each model.
    prior_ : ndarray of shape (n_labels,)
        Smoothed share of credible rows among credible and non-candidate ones ("map" only).
    likelihood_ : ndarray of shape (2, n_labels, n_labels)
        Share of each vote count, for each label, among rows that lack the label and rows that have it ("map" only).
    history_ : dict of ndarrays
        The change of F in each propagation step.
    %(iterations)s
    %(scaler)s
    %(fitted)s

    Notes
    -----
    There are c(c + 1)/2 models, each on the rows that separate its two labels: time grows with the square
    of the number of labels; memory is O(c² d) for the models and O(n (k + c)) in addition to the features. The neighbor
    search compares all pairs of rows, in blocks. Votes take few values; within 1e-6, the decision values break ties. A
    label that is a candidate of every row has no certain negative, hence no model: it gets no votes ("vls") or its
    prior ("map"). The models are linear. Usually one candidate of a row is credible: with little noise, true labels are
    not used in training, and ``alpha=0``, which makes every candidate credible, can be the better choice.

    %(reference_and_data)s
    >>> from skpml.baselines import PARTICLE
    >>> PARTICLE().fit(X, candidates).predict(X).shape
    (300, 5)
    """

    variant: Literal["vls", "map"] = "vls"
    alpha: float = 0.95
    n_neighbors: int = 10
    credibility: float = 0.9
    C: float = 1.0
    threshold: float | str = "auto"
    max_iter: int = 1000
    tol: float = 1e-5
    on_empty: str = "warn"

    _facts = MethodFacts(
        name="particle",
        title="PARTICLE (PAR-VLS)",
        kind="baseline",
        summary="credible labels by propagation, then pairs of labels vote against a virtual label",
        confidences=True,
        nonlinear=True,
        source="paper",
        year=2020,
        reference="Zhang, Fang. Partial Multi-Label Learning via Credible Label Elicitation. IEEE TPAMI "
        "43(10):3587–3599, 2021 (online 2020).",
        comparison_threshold="variant",
    )
    _variants = (
        replace(
            _facts,
            name="particle-map",
            title="PARTICLE (PAR-MAP)",
            summary="credible labels by propagation, then a posterior from the votes of pairs",
            parameters={"variant": "map"},
        ),
    )
    _threshold_rules = ("variant", "auto", "non-candidates")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("alpha", "credibility"):
            if getattr(self, name) > 1:
                raise ValueError(f"{name} must lie between 0 and 1, got {getattr(self, name)!r}.")
        if self.C == 0:
            raise ValueError("C must be above 0, got 0.")

    def _fit(self, X: Any, Y: NDArray[Any]) -> None:
        self.scaler_ = RangeScaler().fit(X)
        scaled = self.scaler_.transform(X).astype(np.float64, copy=False)
        # The same for all C and variants.
        settings = self.n_neighbors, float(self.alpha), self.max_iter, float(self.tol)
        spread = once(lambda *_: self._spread(scaled, Y), np.hstack([scaled, Y]), *settings)
        self.confidences_ = spread.confidences.astype(X.dtype)
        self._record(spread.history, converged=spread.converged)
        self.credible_ = credible_labels(spread.confidences, Y, credibility=self.credibility)
        models = train_pairs(scaled, self.credible_, Y, C=self.C)
        self.pairs_, self.accuracy_ = models.pairs, models.accuracy
        self.coef_, self.intercept_ = models.coef, models.intercept
        if self.variant == "map":
            self._fit_posterior(scaled, Y)

    def _spread(self, scaled: NDArray[Any], Y: NDArray[Any]) -> Bunch:
        H = reconstruction_weights(scaled, n_neighbors=self.n_neighbors)
        return propagate(H, Y, alpha=self.alpha, max_iter=self.max_iter, tol=self.tol)

    def _fit_posterior(self, scaled: NDArray[Any], Y: NDArray[Any]) -> None:
        present, absent = self.credible_, Y == 0
        votes = np.vstack([self._labels_beaten(decisions) for decisions in self._decisions(scaled)])
        n_present, n_absent = present.sum(axis=0), absent.sum(axis=0)
        self.prior_ = (1 + n_present) / (2 + n_present + n_absent)
        self.likelihood_ = np.stack([vote_likelihoods(votes, absent), vote_likelihoods(votes, present)])
        # A label without a pair gets no votes in any row, so votes carry no information about it.
        paired = self.pairs_[self.pairs_[:, 1] < Y.shape[1]]
        self.likelihood_[:, np.setdiff1d(np.arange(Y.shape[1]), paired)] = 1.0

    def _scores(self, X: Any) -> NDArray[Any]:
        scaled = self.scaler_.transform(X).astype(np.float64, copy=False)
        score = self._splitting_scores if self.variant == "vls" else self._posterior_scores
        c = len(self.classes_)
        blocks = [
            score(decisions) + _TIE_WEIGHT * signed_mean(decisions, self.pairs_, c)
            for decisions in self._decisions(scaled)
        ]
        return np.vstack(blocks).astype(X.dtype)

    def _decisions(self, scaled: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """Yield decision values of all models for blocks of rows."""
        for rows in gen_batches(len(scaled), max(1, _BLOCK_SIZE // max(1, len(self.pairs_)))):
            yield scaled[rows] @ self.coef_.T + self.intercept_

    def _splitting_scores(self, decisions: NDArray[Any]) -> NDArray[Any]:
        c = len(self.classes_)
        votes = count_votes(decisions, self.pairs_, self.accuracy_, c)
        return (votes[:, :c] - votes[:, c:]) / c

    def _posterior_scores(self, decisions: NDArray[Any]) -> NDArray[Any]:
        votes = self._labels_beaten(decisions)
        absent, present = (table[np.arange(len(table)), votes] for table in self.likelihood_)
        relevant = self.prior_ * present
        return relevant / (relevant + (1 - self.prior_) * absent)

    def _labels_beaten(self, decisions: NDArray[Any]) -> NDArray[np.intp]:
        """Count the other labels that each label beats, without the virtual one."""
        c = len(self.classes_)
        is_real = (self.pairs_[:, 1] < c).astype(np.float64)
        # Halves come only from undecided votes.
        return np.floor(count_votes(decisions, self.pairs_, is_real, c)[:, :c]).astype(np.intp)

    def _estimate_threshold(self, scores: NDArray[Any], candidates: NDArray[np.uint8]) -> None:
        if self.threshold == "variant":
            self.threshold_, self._probability_width = (0.0 if self.variant == "vls" else 0.5), 1.0
        else:
            super()._estimate_threshold(scores, candidates)
