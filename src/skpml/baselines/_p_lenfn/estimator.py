"""P-LENFN with a scikit-learn face."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from skpml._ordering import feature_order, label_order
from skpml._validation import check_parameters
from skpml.base import BasePMLClassifier, MethodFacts
from skpml.baselines._p_lenfn.enhancement import enhance_labels
from skpml.baselines._p_lenfn.solver import Weights, solve
from skpml.features import RangeScaler

__all__ = ["PLENFN"]

Matrix = NDArray[np.float64]

_RELATIVE_CUT = 0.9


class PLENFN(BasePMLClassifier):
    """Near-far label enhancement with nonlinear guidance (P-LENFN, PML-LENFN).

    First each candidate gets a weight J between 0.7 and 1: more where near rows have it as a candidate, and where far
    rows do not. Then a linear classifier W is fitted to J together with a network of one hidden layer, σ(XV)U, that
    is pulled towards the classifier and pulls it in turn:

        ‖XW − J‖² + ‖XW − σ(XV)U‖² + λ₁‖W‖² + λ₂ tr(W L Wᵀ) + λ₃‖U‖² + λ₄‖V‖²

    over W, U and V, with L the Laplacian of how often labels occur together in J. Predictions come from W alone.

    Made from the authors' released code; the weights, the step of 0.001 in V and the rule of decision are theirs.
    Different from it: which rows can be near or far (``exclude``), and that the step in V is halved where it would
    raise the objective (on small data it never does), so that no data make it run away.

    Parameters
    ----------
    lam1, lam2, lam3, lam4 : float, default=10, 1, 0.01, 10
        Weights λ₁ (size of W), λ₂ (labels that occur together get like classifiers), λ₃ (size of U), λ₄ (size of V),
        each at least 0. λ₁ is raised where the Laplacian, which is not symmetric, would leave the objective without a
        minimum.
    n_hidden : int or None, default=None
        Hidden units of the network; None is the number of labels.
    exclude : {"none", "self", "first"}, default="none"
        Who counts neither as near nor as far: nobody, each row itself, or the first row of the data. The released code
        leaves out the first row for everybody, where each row itself was probably meant, and so depends on the order of
        rows; "first" matches it. Average precision differs in the fourth decimal.
    threshold : "relative", "auto", "non-candidates" or float, default="auto"
        "relative" is the published rule: with the scores of a row brought to [0, 1], labels above 0.9 are predicted.
        The scores are then given relative to that cut of their row, so that 0 decides; they compare labels of one
        row, not rows. It says nothing about a single label, where "auto" is used. With the other rules, scores are
        those of W.
    max_iter : int, default=200
    tol : float, default=1e-3
        Stop where the objective falls relatively by less, after the fifth iteration. As a rule the limit comes first,
        as in the published results.
    on_empty : {"warn", "raise", "ignore"}, default="warn"
        What to do about rows without candidates (taken as having no label) and labels that are nobody's candidate.
    random_state : int, RandomState or None, default=None
        Draws where U and V start.

    Attributes
    ----------
    confidences_ : ndarray of shape (n, c)
        J: between 0.7 and 1 on the candidates, 0 elsewhere.
    coef_, intercept_ : ndarrays of shape (d, c) and (c,)
        W, for features scaled to [−1, 1].
    hidden_coef_, output_coef_ : ndarrays of shape (d + 1, n_hidden) and (n_hidden, c)
        V and U.
    threshold_ : float
    classes_ : ndarray of shape (c,)
    history_ : dict of ndarrays
        The objective after every iteration.
    n_iter_ : int
    converged_ : bool
    scaler_ : fitted transformer
    n_features_in_ : int
    feature_names_in_ : ndarray, where X had names

    Notes
    -----
    Time: O(n²(d + c)) for the enhanced labels, in blocks of rows, and O(ndc) for each iteration after decompositions of
    O(nd·min(n, d)). Memory: O(nd + d² + nc).

    In many dimensions no other row is near, and the enhanced labels are nearly the candidates themselves, each column
    with its own level. That is how the method behaves.

    References
    ----------
    Chen, Wu, Han, Fang, Chen, Wen. Partial Multi-label Learning Based On Near-Far Neighborhood Label Enhancement And
    Nonlinear Guidance. Proceedings of the 32nd ACM International Conference on Multimedia, 3722–3731, 2024.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from skpml.baselines._p_lenfn import PLENFN
    >>> from skpml.noise import top_up
    >>> X, truth = make_multilabel_classification(300, allow_unlabeled=False, random_state=0)
    >>> model = PLENFN(max_iter=500, random_state=0).fit(X, top_up(truth, 4, random_state=0))
    >>> bool(model.confidences_.max() <= 1)
    True
    """

    _facts = MethodFacts(
        name="p-lenfn",
        title="P-LENFN",
        kind="baseline",
        summary="labels enhanced by near and far rows; a linear model guided by a small network",
        confidences=True,
        random=True,
        source="release",
        year=2024,
        reference="Chen, Wu, Han, Fang, Chen, Wen. Partial Multi-label Learning Based On Near-Far "
        "Neighborhood Label Enhancement And Nonlinear Guidance. ACM MM 2024, 3722–3731.",
        comparison_threshold="relative",
    )

    _threshold_rules = ("relative", "auto", "non-candidates")

    def __init__(
        self,
        *,
        lam1: float = 10.0,
        lam2: float = 1.0,
        lam3: float = 0.01,
        lam4: float = 10.0,
        n_hidden: int | None = None,
        exclude: str = "none",
        threshold: float | str = "auto",
        max_iter: int = 200,
        tol: float = 1e-3,
        on_empty: str = "warn",
        random_state: Any = None,
    ) -> None:
        self.lam1 = lam1
        self.lam2 = lam2
        self.lam3 = lam3
        self.lam4 = lam4
        self.n_hidden = n_hidden
        self.exclude = exclude
        self.threshold = threshold
        self.max_iter = max_iter
        self.tol = tol
        self.on_empty = on_empty
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_parameters(
            self,
            weights=("lam1", "lam2", "lam3", "lam4", "tol"),
            counts=("max_iter",),
            optional_counts=("n_hidden",),
            choices={"exclude": ("none", "self", "first")},
        )

    def _fit(self, X: Any, Y: NDArray[Any]) -> NDArray[Any]:
        self.scaler_ = RangeScaler().fit(X)
        features, Y = self.scaler_.transform(X).astype(np.float64), Y.astype(np.float64)
        with_constant = np.hstack([features, np.ones((len(features), 1))])
        J = enhance_labels(features, Y, exclude=self.exclude)  # type: ignore[arg-type]
        U, V = self._start(features, Y)
        solution = solve(
            with_constant,
            J,
            U,
            V,
            weights=Weights(lam1=self.lam1, lam2=self.lam2, lam3=self.lam3, lam4=self.lam4),
            max_iter=self.max_iter,
            tol=self.tol,
        )
        self.confidences_ = J.astype(X.dtype)
        self.coef_, self.intercept_ = solution.coef[:-1], solution.coef[-1]
        self.hidden_coef_, self.output_coef_ = solution.hidden_coef, solution.output_coef
        # A single label has no others in its row to be compared with.
        self._relative = self.threshold == "relative" and Y.shape[1] > 1
        self._record(solution.history, converged=solution.converged)
        return self._scores(X)

    def _start(self, features: Matrix, Y: Matrix) -> tuple[Matrix, Matrix]:
        """U and V drawn for labels and features in the order of their content, whatever their place."""
        rng = check_random_state(self.random_state)
        (d, c), k = (features.shape[1], Y.shape[1]), self.n_hidden or Y.shape[1]
        U, V = np.empty((k, c)), np.empty((d + 1, k))
        U[:, label_order(features, Y)] = rng.normal(size=(k, c))
        V[np.append(feature_order(features), d)] = rng.normal(size=(d + 1, k))
        return U, V

    def _scores(self, X: Any) -> NDArray[Any]:
        dtype = X.dtype
        scores = self.scaler_.transform(X) @ self.coef_.astype(dtype) + self.intercept_.astype(dtype)
        if self._relative:
            low, high = scores.min(axis=1, keepdims=True), scores.max(axis=1, keepdims=True)
            scores = scores - (low + dtype.type(_RELATIVE_CUT) * (high - low))
        return np.asarray(scores)

    def _estimate_threshold(self, scores: NDArray[Any], candidates: NDArray[np.uint8]) -> None:
        if not self._relative:
            super()._estimate_threshold(scores, candidates)
            return
        self.threshold_ = 0.0
        self._probability_width = 2 * max(-float(np.quantile(scores, 0.25)), 1e-3)
