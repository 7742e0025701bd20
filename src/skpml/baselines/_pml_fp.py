"""PML-fp and PML-lc: a ranking model and confidences, by feature prototypes or by label correlations.

Both minimize, over linear scorers f and confidences P (``0 ≤ P ≤ Y``, every row with candidates summing to at least 1),

    Σ_k (‖w_k‖² + b_k²/100) + C1 Σ_i (1/γ_i) Σ_{k,l} max(0, P_ik − P_il) h(1 − f_k(x_i) + f_l(x_i))
        + Σ_ik L_ik P_ik − Σ_i P_i R P_iᵀ

with ``γ_i = |Ŷ_i| (c − |Ŷ_i|) + |Ŷ_i|²/2``, h the rounded hinge and b the biases of centered features; they differ in the
cost L and the reward R. All P of the solver are constant on a set of each row's candidates, and zero elsewhere.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from math import sqrt
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils import Bunch

from skpml._docstrings import fill_docstring
from skpml._sharing import once
from skpml.base import BasePMLClassifier, MethodFacts
from skpml.baselines._common import Array, History, Matrix, ShiftedRows, append, leave_out_lowest
from skpml.baselines._pml_fp_steps import fit_ranking, model_size, ranking_loss, update_confidences
from skpml.features import RangeScaler

_TEXTS = {
    "C1": """\
C1 : float, default=1
    Weight of the ranking loss.""",
    "stop": """\
max_iter : int, default=20
    Maximum number of iterations.
tol : float, default=1e-3
    Stop when the objective changes relatively by less.
threshold : float, "auto" or "non-candidates", default="auto"
    Scores above it are predicted; for "auto" see :class:`PMLNI`. "non-candidates" is the mean over training rows of the
    highest score of a non-candidate, a rule of the paper; its other rule needs the true number of labels of a row.
    With a single label both named rules give 0, where the label and "none" tie.
on_empty : {"warn", "raise", "ignore"}, default="warn"
    What to do about rows without candidates, which the method skips, and about labels that are not a candidate of any
    row, which it ranks last.""",
    "model": """\
confidences_ : ndarray of shape (n_rows, n_labels)
    P: equal on the chosen candidates of a row, 0 elsewhere.
coef_, intercept_ : ndarrays of shape (n_features, n_labels) and (n_labels,)
    Scores are ``scaled @ coef_ + intercept_``.""",
    "history": """\
history_ : dict of ndarrays
    One value per iteration: "objective", and "confidence_step", its value between the two steps of the iteration.""",
}


def candidate_prototypes(X: Matrix, Y: Matrix) -> Matrix:
    """Compute q (c×d): the mean of the rows that have the label as a candidate; zero if there are none."""
    counts = Y.sum(axis=0)
    return (Y.T @ X) / np.maximum(counts, 1)[:, None]


def label_correlation(Y: Matrix) -> Matrix:
    """Compute Sc (c×c): rows with both labels as candidates, as a share of rows with either; zero on the diagonal."""
    both = Y.T @ Y
    counts = np.diag(both)
    either = counts[:, None] + counts - both
    correlation = both / np.maximum(either, 1)
    np.fill_diagonal(correlation, 0)
    return correlation


def solve(X: Matrix, Y: Matrix, linear_cost: Matrix, pair_reward: Matrix, model: _ConfidenceRanking) -> Bunch:
    """Alternate exact model steps and confidence steps, from equal confidences of each row's candidates.

    ``linear_cost`` is L (n×c); ``pair_reward`` is R (c×c), symmetric with an empty diagonal; C1 and the stop rule are
    those of the model. Stops when the objective changes relatively by less than ``tol``.
    """
    candidates = Y > 0
    sizes = Y.sum(axis=1)
    pair_count = sizes * (Y.shape[1] - sizes) + sizes**2 / 2
    pair_weights = np.where(sizes > 0, model.C1 / np.where(sizes > 0, pair_count, 1), 0)
    # Rows without candidates must not count, not even in the center.
    mean = candidates.any(axis=1) @ X / max(int(np.count_nonzero(sizes)), 1)
    features, basis = _center(X, mean)

    def fit(P: Matrix, start: Matrix | None) -> Matrix:
        return fit_ranking(features, P > 0, pair_weights * P.max(axis=1), start)

    def objective(coef: Matrix, scores: Matrix, P: Matrix) -> float:
        ranking = ranking_loss(scores, P > 0, pair_weights * P.max(axis=1))
        confidence_cost = np.sum(linear_cost * P) - np.sum((P @ pair_reward) * P)
        return model_size(coef) + ranking + float(confidence_cost)

    P = Y / np.maximum(sizes, 1)[:, None]
    # The first model does not depend on the cost and the reward.
    coef = once(lambda *_: fit(P, None), np.hstack([X, Y]), "first model", float(model.C1))
    scores = features @ coef
    history: History = {}
    previous, converged = objective(coef, scores, P), False
    for _ in range(model.max_iter):
        chosen = update_confidences(
            scores, candidates, P, pair_weights=pair_weights, linear_cost=linear_cost, pair_reward=pair_reward
        )
        moved, P = not np.array_equal(chosen, P), chosen
        confidence_step = objective(coef, scores, P)
        if moved:
            coef = fit(P, coef)
            scores = features @ coef
        current = objective(coef, scores, P)
        append(history, confidence_step=confidence_step, objective=current)
        converged = abs(current - previous) <= model.tol * abs(previous)
        if converged:
            break
        previous = current
    weights = coef[:-1] if basis is None else basis @ coef[:-1]
    return Bunch(
        coef=weights,
        intercept=coef[-1] - mean @ weights,
        scores=scores,
        confidences=P,
        history=history,
        converged=converged,
    )


def _center(X: Matrix, mean: Matrix) -> tuple[Any, Matrix | None]:
    """Return centered features with a column of ones, for products, and the basis of :func:`_compact`.

    If few values of a feature differ from its smallest, as in texts, products leave out the others. With many more
    features than rows, the fewer coefficients of the basis save more.
    """
    ones = np.ones((len(X), 1))
    if X.shape[1] <= 2 * X.shape[0]:
        features = leave_out_lowest(np.hstack([X - mean, ones]))
        if isinstance(features, ShiftedRows):
            return features, None
    reduced, basis = _compact(X - mean)
    return np.hstack([reduced, ones]), basis


def _compact(X: Matrix) -> tuple[Matrix, Matrix | None]:
    """Express X in an orthonormal basis (columns) of the span of its rows if there are fewer rows than features.

    The penalty does not change under rotation, and directions that no row has get no weight.
    """
    if X.shape[1] <= X.shape[0]:
        return X, None
    basis, triangle = np.linalg.qr(X.T)
    return np.ascontiguousarray(triangle.T), basis


class _ConfidenceRanking(BasePMLClassifier):
    """What PML-fp and PML-lc share: everything but the terms that distinguish candidates."""

    C1: float
    max_iter: int
    tol: float

    @abstractmethod
    def _confidence_terms(self, X: Matrix, Y: Matrix) -> tuple[Matrix, Matrix]:
        """Cost (n×c) of the confidence in a candidate, and reward (c×c) of confidence in two together."""

    def _fit(self, X: Any, Y: Array) -> Array:
        self.scaler_ = RangeScaler().fit(X)
        scaled = self.scaler_.transform(X).astype(np.float64)
        labels = Y.astype(np.float64)
        single = labels.shape[1] == 1
        if single:
            # One label has no pair to rank. "None" is the other: the only candidate of the rows that lack the label.
            labels = np.hstack([labels, 1 - labels])
        solution = solve(scaled, labels, *self._confidence_terms(scaled, labels), self)
        coef, intercept, scores = solution.coef, solution.intercept, solution.scores
        if single:
            coef, intercept, scores = (
                values[..., :1] - values[..., 1:] for values in (coef, intercept, scores)
            )
        self.coef_: Array = coef.astype(X.dtype, copy=False)
        self.intercept_: Array = intercept.astype(X.dtype, copy=False)
        self.confidences_: Array = solution.confidences[:, : Y.shape[1]].astype(X.dtype, copy=False)
        self._record(solution.history, converged=solution.converged)
        return scores.astype(X.dtype, copy=False)

    def _estimate_threshold(self, scores: Array, candidates: Array) -> None:
        if candidates.shape[1] == 1:
            # The score is already a comparison, with "none".
            self.threshold_, self._probability_width = 0.0, 2.0
        else:
            super()._estimate_threshold(scores, candidates)

    def _scores(self, X: Any) -> Array:
        coef, intercept = (values.astype(X.dtype, copy=False) for values in (self.coef_, self.intercept_))
        return self.scaler_.transform(X) @ coef + intercept


@partial(fill_docstring, texts=_TEXTS)
@dataclass(kw_only=True, repr=False, eq=False)
class PMLFP(_ConfidenceRanking):
    """Partial multi-label learning by ranking, with feature prototypes (PML-fp).

    Linear scorers rank the chosen candidates of a row above its other labels. The choice is learned along with them: a
    candidate costs little if it already scores high, and if the row is near the label's prototype q_k, the mean of all
    rows that have k among their candidates. Minimizes, alternating between the scorers ``f_k(x) = w_k·x + b_k`` and the
    confidences P,

        Σ_k ‖w_k‖² + C1 Σ_i (1/γ_i) Σ_{k,l} max(0, P_ik − P_il) ξ_ikl + C3 Σ_ik P_ik ‖x_i − q_k‖/√d

    with d the number of features that vary, ``ξ_ikl = max(0, 1 − f_k(x_i) + f_l(x_i))``, ``0 ≤ P ≤ Y``, ``Σ_k P_ik ≥ 1``,
    and ``γ_i = |Ŷ_i||Ȳ_i| + |Ŷ_i|²/2`` from the numbers of candidates and non-candidates.

    The objective, its constraints, C1 and the range of C3 are published, except for the division by √d. The paper has
    plain distances and does not tell how its features were scaled. Between features in [−1, 1], distances grow with √d,
    while the ranking loss of a row is of the order of 1: the same C3 would mean something else for every data set.
    Divided by √d, they are the root mean square of the differences of the features, and repeating every feature does not
    change them. Multiply C3 by √d for plain distances. Ours are also the solvers (the paper names only quadratic and
    linear programming), the start from equal confidences, the hinge rounded over a width of 0.1, and a weight of 0.01 on
    b_k² (for centered features), without which some biases would be undetermined.

    Parameters
    ----------
    %(C1)s
    C3 : float, default=10
        Weight of the distances to the prototypes. The paper chose from 1, 10 and 100 by Hamming loss; later comparisons
        set 10.
    %(stop)s

    Attributes
    ----------
    %(model)s
    prototypes_ : ndarray of shape (n_labels, n_features)
        q, of scaled features; with a single label, the second row is that of "none".
    %(history)s
    %(iterations)s
    %(scaler)s
    %(fitted)s

    Notes
    -----
    The larger C3, the fewer candidates of a row keep a confidence above 0; with a very large one, only that of the
    nearest prototype does. This is good if rows have one or two true labels, and poor if they have many, because the
    others are then ranked as if they were false. A smaller C3, or :class:`PMLLC`, keeps more candidates.

    The model step is L-BFGS with O(ncd + bc) work per evaluation, where b is the number of chosen candidates (with
    fewer rows than features, O(n²c + bc) after one O(n²d) reduction; if at most a tenth of the values differ from the
    smallest of their feature, as in texts, and d ≤ 2n, only these are multiplied). The confidence step is exact
    for rows with up to 12 candidates, by comparing all their subsets; with more, it compares only nested sets, those of
    the labels that cost least alone. Memory is O(nd + nc).

    A single label has no other label to be ranked against; "none" is then the other label, the only candidate of the rows
    that lack the label.

    %(reference_and_data)s
    >>> from skpml.baselines import PMLFP
    >>> model = PMLFP().fit(X, candidates)
    >>> bool((model.confidences_.sum(axis=1) >= 1 - 1e-12).all())
    True
    """

    C1: float = 1.0
    C3: float = 10.0
    max_iter: int = 20
    tol: float = 1e-3
    threshold: float | str = "auto"
    on_empty: str = "warn"

    _facts = MethodFacts(
        name="pml-fp",
        title="PML-fp",
        kind="baseline",
        summary="a ranking model and confidences drawn to the nearest label prototype",
        confidences=True,
        source="paper",
        year=2018,
        reference="Xie, Huang. Partial Multi-Label Learning. AAAI 2018, 4302–4309.",
        comparison_threshold="non-candidates",
    )

    def _confidence_terms(self, X: Matrix, Y: Matrix) -> tuple[Matrix, Matrix]:
        self.prototypes_ = candidate_prototypes(X, Y)
        n_varying = max(int(np.count_nonzero(self.scaler_.scale_)), 1)
        return self.C3 / sqrt(n_varying) * cdist(X, self.prototypes_), np.zeros((Y.shape[1], Y.shape[1]))


@partial(fill_docstring, texts=_TEXTS)
@dataclass(kw_only=True, repr=False, eq=False)
class PMLLC(_ConfidenceRanking):
    """Partial multi-label learning by ranking, with label correlations (PML-lc).

    Like :class:`PMLFP`, except that a candidate is rewarded if it often occurs among the candidates together with the
    other chosen ones. Minimizes, alternating between linear scorers and the confidences P,

        Σ_k ‖w_k‖² + C1 Σ_i (1/γ_i) Σ_{k,l} max(0, P_ik − P_il) ξ_ikl − C2 Σ_i P_i Sc P_iᵀ

    under the same constraints, where Sc_kl is the share of the rows with both k and l among those with either, and 0 for
    k = l.

    The objective, its constraints, C1 and the range of C2 are published. Ours are, in addition to those of PML-fp, the
    formula of the co-occurrence rate, and the confidence step: its problem is not convex, and the best vector that is
    constant on a set of candidates and zero elsewhere is used.

    Parameters
    ----------
    %(C1)s
    C2 : float, default=3
        Weight of the correlations. The paper chose from 1, 2, …, 10 by Hamming loss.
    %(stop)s

    Attributes
    ----------
    %(model)s
    label_correlation_ : ndarray of shape (n_labels, n_labels)
        Sc; with a single label, the second row and column are those of "none".
    %(history)s
    %(iterations)s
    %(scaler)s
    %(fitted)s

    Notes
    -----
    At the default C2 the correlations outweigh the ranking loss, and P is usually 1 on all candidates: nothing is
    distinguished, and the method is a ranking machine on the candidates. A C2 well below 1 keeps fewer candidates.

    Time, O(ncd + bc) per evaluation, memory, O(nd + nc), and the case of a single label are as in :class:`PMLFP`.

    %(reference_and_data)s
    >>> from skpml.baselines import PMLLC
    >>> PMLLC().fit(X, candidates).confidences_.shape
    (300, 5)
    """

    C1: float = 1.0
    C2: float = 3.0
    max_iter: int = 20
    tol: float = 1e-3
    threshold: float | str = "auto"
    on_empty: str = "warn"

    _facts = replace(
        PMLFP._facts,
        name="pml-lc",
        title="PML-lc",
        summary="a ranking model and confidences that follow label correlations",
    )

    def _confidence_terms(self, X: Matrix, Y: Matrix) -> tuple[Matrix, Matrix]:
        self.label_correlation_ = label_correlation(Y)
        return np.zeros_like(Y), self.C2 * self.label_correlation_
