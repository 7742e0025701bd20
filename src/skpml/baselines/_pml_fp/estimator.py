"""PML-fp and PML-lc with a scikit-learn face."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpml._validation import check_parameters
from skpml.base import BasePMLClassifier, MethodFacts
from skpml.baselines._pml_fp.ranking import Matrix
from skpml.baselines._pml_fp.solver import (
    candidate_prototypes,
    label_correlation,
    prototype_distances,
    solve,
)
from skpml.features import RangeScaler

__all__ = ["PMLFP", "PMLLC"]


class _ConfidenceRanking(BasePMLClassifier):
    """What PML-fp and PML-lc share: everything but the terms that tell candidates apart."""

    C1: float
    max_iter: int
    tol: float
    _weights: tuple[str, ...]

    @abstractmethod
    def _belief_terms(self, X: Matrix, Y: Matrix) -> tuple[Matrix, Matrix]:
        """Cost (n×c) of believing a candidate, and reward (c×c) of believing two together."""

    def _check_parameters(self) -> None:
        check_parameters(self, weights=("C1", *self._weights, "tol"), counts=("max_iter",))

    def _fit(self, X: Any, Y: NDArray[Any]) -> NDArray[Any]:
        self.scaler_ = RangeScaler().fit(X)
        scaled = self.scaler_.transform(X).astype(np.float64)
        labels = Y.astype(np.float64)
        single = labels.shape[1] == 1
        if single:
            # One label makes no pair to rank. "None" is the other: the only candidate of the rows that lack the label.
            labels = np.hstack([labels, 1 - labels])
        linear_cost, pair_reward = self._belief_terms(scaled, labels)
        solution = solve(
            scaled,
            labels,
            C1=float(self.C1),
            linear_cost=linear_cost,
            pair_reward=pair_reward,
            max_iter=self.max_iter,
            tol=float(self.tol),
        )
        coef, intercept, scores = solution.coef, solution.intercept, solution.scores
        if single:
            coef, intercept, scores = (
                values[..., :1] - values[..., 1:] for values in (coef, intercept, scores)
            )
        self.coef_: NDArray[Any] = coef.astype(X.dtype, copy=False)
        self.intercept_: NDArray[Any] = intercept.astype(X.dtype, copy=False)
        self.confidences_: NDArray[Any] = solution.confidences[:, : Y.shape[1]].astype(X.dtype, copy=False)
        self._record(solution.history, converged=solution.converged)
        return scores.astype(X.dtype, copy=False)

    def _estimate_threshold(self, scores: NDArray[Any], candidates: NDArray[np.uint8]) -> None:
        if candidates.shape[1] == 1:
            # The score is already a comparison, with "none".
            self.threshold_, self._probability_width = 0.0, 2.0
        else:
            super()._estimate_threshold(scores, candidates)

    def _scores(self, X: Any) -> NDArray[Any]:
        coef, intercept = (values.astype(X.dtype, copy=False) for values in (self.coef_, self.intercept_))
        return self.scaler_.transform(X) @ coef + intercept


class PMLFP(_ConfidenceRanking):
    """Partial multi-label learning by ranking, with candidates told apart by feature prototypes (PML-fp).

    Linear scorers rank the believed candidates of a row above its other labels. What to believe is learnt along with
    them: a candidate is cheap to believe where it already scores high, and where the row lies near the label's prototype
    q_k, the mean of all rows that have k among their candidates. Minimises, by turns over the scorers
    ``f_k(x) = w_k·x + b_k`` and the confidences P,

        Σ_k ‖w_k‖² + C1 Σ_i (1/γ_i) Σ_{k,l} max(0, P_ik − P_il) ξ_ikl + C3 Σ_ik P_ik ‖x_i − q_k‖

    with ``ξ_ikl = max(0, 1 − f_k(x_i) + f_l(x_i))``, ``0 ≤ P ≤ Y``, ``Σ_k P_ik ≥ 1``, and ``γ_i = |Ŷ_i||Ȳ_i| + |Ŷ_i|²/2``
    from the numbers of candidates and non-candidates.

    Published are the objective, its constraints, C1 and the range of C3. Ours are the solvers (the paper names only
    quadratic and linear programming), the start from equal confidences, the hinge rounded off over a width of 0.1, and a
    weight of 0.01 on b_k² (for centred features), without which some biases would be undetermined.

    Parameters
    ----------
    C1 : float, default=1
        Weight of the ranking loss.
    C3 : float, default=10
        Weight of the distances to the prototypes. The paper chose from 1, 10 and 100 by Hamming loss.
    max_iter : int, default=20
    tol : float, default=1e-3
        Stop where the objective changes relatively by less.
    threshold : float, "auto" or "non-candidates", default="auto"
        Scores above it are predicted. "non-candidates" is the mean over training rows of the highest score of a
        non-candidate, a rule of the paper; its other rule asks for the true number of labels of a row. With a single
        label both named rules give 0, where the label and "none" tie.
    on_empty : {"warn", "raise", "ignore"}, default="warn"
        What to do about rows without candidates, which the method skips, and labels that are nobody's candidate, which
        it ranks last.

    Attributes
    ----------
    confidences_ : ndarray of shape (n, c)
        P: equal on the believed candidates of a row, 0 elsewhere.
    coef_ : ndarray of shape (d, c)
    intercept_ : ndarray of shape (c,)
        Scores are ``scaled @ coef_ + intercept_``, of scaled features.
    prototypes_ : ndarray of shape (c, d)
        q, of scaled features; (2, d) where there is one label, the second being "none"'s.
    threshold_ : float
    classes_ : ndarray of shape (c,)
    history_ : dict of ndarrays
        After every iteration: "objective", and "confidence_step", its value between the iteration's two steps.
    n_iter_ : int
    converged_ : bool
    scaler_ : fitted transformer
    n_features_in_ : int
    feature_names_in_ : ndarray, where X had names

    Notes
    -----
    At the default C3 the distances outweigh the ranking loss, and P comes out with one label in nearly every row, often
    the right one: good where rows have one or two true labels, poor where they have many (as in yeast), since the others
    are then ranked as if false. A smaller C3, or :class:`PMLLC`, believes more.

    The model step is L-BFGS with O(ncd + bc) work an evaluation, b being the number of believed candidates (with fewer
    rows than features, O(n²c + bc) after one O(n²d) reduction). The confidence step is exact for rows with up to 12
    candidates, by comparing all their subsets; with more, only nested sets are compared, those of the labels that cost
    least alone. Memory is O(nd + nc).

    With a single label there is nothing to rank it against; "none" then stands in as the other label, being the only
    candidate of the rows that lack the label.

    References
    ----------
    M.-K. Xie, S.-J. Huang. Partial Multi-Label Learning. AAAI Conference on Artificial Intelligence, 2018,
    pp. 4302–4309.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from skpml.baselines._pml_fp import PMLFP
    >>> from skpml.noise import top_up
    >>> X, truth = make_multilabel_classification(300, random_state=0, allow_unlabeled=False)
    >>> model = PMLFP().fit(X, top_up(truth, 4, random_state=0))
    >>> bool((model.confidences_.sum(axis=1) >= 1 - 1e-12).all())
    True
    """

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

    _weights = ("C3",)

    def __init__(
        self,
        *,
        C1: float = 1.0,
        C3: float = 10.0,
        max_iter: int = 20,
        tol: float = 1e-3,
        threshold: float | str = "auto",
        on_empty: str = "warn",
    ) -> None:
        self.C1 = C1
        self.C3 = C3
        self.max_iter = max_iter
        self.tol = tol
        self.threshold = threshold
        self.on_empty = on_empty

    def _belief_terms(self, X: Matrix, Y: Matrix) -> tuple[Matrix, Matrix]:
        self.prototypes_ = candidate_prototypes(X, Y)
        return self.C3 * prototype_distances(X, self.prototypes_), np.zeros((Y.shape[1], Y.shape[1]))


class PMLLC(_ConfidenceRanking):
    """Partial multi-label learning by ranking, with candidates told apart by label correlation (PML-lc).

    As :class:`PMLFP`, but for what makes a candidate worth believing: that it often occurs among the candidates together
    with the others that are believed. Minimises, by turns over linear scorers and the confidences P,

        Σ_k ‖w_k‖² + C1 Σ_i (1/γ_i) Σ_{k,l} max(0, P_ik − P_il) ξ_ikl − C2 Σ_i P_i Sc P_iᵀ

    under the same constraints, Sc_kl being the share of the rows with both k and l among those with either, and 0 for
    k = l.

    Published are the objective, its constraints, C1 and the range of C2. Ours are, besides what is ours in PML-fp, the
    formula of the co-occurrence rate, and the confidence step: its problem is not convex, and the best vector that is
    constant on a set of candidates and zero elsewhere is taken.

    Parameters
    ----------
    C1 : float, default=1
        Weight of the ranking loss.
    C2 : float, default=3
        Weight of the correlations. The paper chose from 1, 2, …, 10 by Hamming loss.
    max_iter : int, default=20
    tol : float, default=1e-3
        Stop where the objective changes relatively by less.
    threshold : float, "auto" or "non-candidates", default="auto"
        Scores above it are predicted. "non-candidates" is the mean over training rows of the highest score of a
        non-candidate, a rule of the paper; its other rule asks for the true number of labels of a row. With a single
        label both named rules give 0, where the label and "none" tie.
    on_empty : {"warn", "raise", "ignore"}, default="warn"
        What to do about rows without candidates, which the method skips, and labels that are nobody's candidate, which
        it ranks last.

    Attributes
    ----------
    confidences_ : ndarray of shape (n, c)
        P: equal on the believed candidates of a row, 0 elsewhere.
    coef_ : ndarray of shape (d, c)
    intercept_ : ndarray of shape (c,)
        Scores are ``scaled @ coef_ + intercept_``, of scaled features.
    label_correlation_ : ndarray of shape (c, c)
        Sc; (2, 2) where there is one label, the second being "none".
    threshold_ : float
    classes_ : ndarray of shape (c,)
    history_ : dict of ndarrays
        After every iteration: "objective", and "confidence_step", its value between the iteration's two steps.
    n_iter_ : int
    converged_ : bool
    scaler_ : fitted transformer
    n_features_in_ : int
    feature_names_in_ : ndarray, where X had names

    Notes
    -----
    At the default C2 the correlations outweigh the ranking loss, and as a rule P comes out as 1 on all candidates:
    nothing is told apart, and the method is a ranking machine on the candidates. A C2 well below 1 believes fewer.

    Time, O(ncd + bc) an evaluation, memory, O(nd + nc), and the case of a single label are as in :class:`PMLFP`.

    References
    ----------
    M.-K. Xie, S.-J. Huang. Partial Multi-Label Learning. AAAI Conference on Artificial Intelligence, 2018,
    pp. 4302–4309.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from skpml.baselines._pml_fp import PMLLC
    >>> from skpml.noise import top_up
    >>> X, truth = make_multilabel_classification(300, random_state=0, allow_unlabeled=False)
    >>> model = PMLLC().fit(X, top_up(truth, 4, random_state=0))
    >>> model.confidences_.shape
    (300, 5)
    """

    _facts = MethodFacts(
        name="pml-lc",
        title="PML-lc",
        kind="baseline",
        summary="a ranking model and confidences that follow label correlations",
        confidences=True,
        source="paper",
        year=2018,
        reference="Xie, Huang. Partial Multi-Label Learning. AAAI 2018, 4302–4309.",
        comparison_threshold="non-candidates",
    )

    _weights = ("C2",)

    def __init__(
        self,
        *,
        C1: float = 1.0,
        C2: float = 3.0,
        max_iter: int = 20,
        tol: float = 1e-3,
        threshold: float | str = "auto",
        on_empty: str = "warn",
    ) -> None:
        self.C1 = C1
        self.C2 = C2
        self.max_iter = max_iter
        self.tol = tol
        self.threshold = threshold
        self.on_empty = on_empty

    def _belief_terms(self, X: Matrix, Y: Matrix) -> tuple[Matrix, Matrix]:
        self.label_correlation_ = label_correlation(Y)
        return np.zeros_like(Y), self.C2 * self.label_correlation_
