"""LIFT: label-specific features, distances to the centres of a label's positive and negative rows."""

from __future__ import annotations

import warnings
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import euclidean_distances
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits

from skpml._ordering import feature_order, row_order
from skpml._validation import check_parameters
from skpml.base import BasePMLClassifier, MethodFacts
from skpml.features import RangeScaler

__all__ = ["LIFT"]

_NEVER = -1.0
# A share of the rows would make distances of all rows to all centres grow with the square of the rows.
MAX_CLUSTERS = 500


class LIFT(BasePMLClassifier):
    """Label-specific features, on candidates taken for true labels.

    For each label alone, k-means finds m centres among the rows that have it and m among the rows that have not, where m
    is a share of the smaller group. A row is described by its distances to these 2m centres, and a linear support vector
    machine tells the two groups apart. Nothing here is meant for false candidates: it is a reference point.

    Parameters
    ----------
    ratio : float, default=0.1
        ``m = ⌈ratio · min(positives, negatives)⌉``, but no more than 500; above 0 and at most 1.
    C : float, default=1.0
        Weight of the errors in the support vector machine, above 0.
    threshold : float, "auto" or "non-candidates", default="auto"
        Scores above it are predicted; for the names see :mod:`skpml.base`. 0 is the border that the machines draw.
    on_empty
        As in :class:`skpml.PMLMA`.
    random_state : int, RandomState or None, default=None
        Draws the first centres of k-means, for all labels from the same seed and in the order of the rows' content.

    Attributes
    ----------
    centres_ : list of c ndarrays of shape (2m, d)
        Centres among the scaled rows of each label, positives first; empty where a label has no machine.
    coef_ : list of c ndarrays of shape (2m,)
    intercept_ : ndarray of shape (c,)
        Decision values are ``distances to centres_ @ coef_ + intercept_``.
    threshold_ : float
    classes_ : ndarray of shape (c,)
    scaler_ : fitted scaler of the features to [−1, 1]

    Notes
    -----
    Distances are standardised before the machine sees them. Its loss is the squared hinge, whose minimum is unique
    and found exactly; the published method has the plain hinge. The score is ``f / (1 + |f|)`` of the decision
    value f: the order and the sign stay, and no score is large.

    A label with fewer than two rows on one side has no machine but a constant decision value 2p − 1, with p its share of
    the rows, which is what the squared hinge makes of no features at all. A label that no row has scores −1, below all.

    Fitting takes time O(c n m (d + m)), times the few steps of k-means and of the machine, and memory O(n m) beyond the
    scaled features, where m grows with n up to its limit of 500; the model holds O(c d m) numbers.

    References
    ----------
    M.-L. Zhang, L. Wu. LIFT: Multi-label learning with label-specific features. IEEE Transactions on Pattern Analysis and
    Machine Intelligence 37(1), 2015.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from skpml.noise import top_up
    >>> from skpml.reference import LIFT
    >>> X, truth = make_multilabel_classification(300, allow_unlabeled=False, random_state=0)
    >>> model = LIFT(random_state=0).fit(X, top_up(truth, 4, random_state=0))
    >>> len(model.centres_)
    5
    """

    _facts = MethodFacts(
        name="lift",
        title="LIFT on the candidates",
        kind="reference",
        summary="a linear machine on distances to clusters of each label's positives and negatives",
        nonlinear=True,
        random=True,
        source="paper",
        year=2015,
        reference="Zhang, Wu. LIFT: Multi-Label Learning with Label-Specific Features. IEEE TPAMI "
        "37(1):107–120, 2015.",
        comparison_threshold=0.0,
    )

    def __init__(
        self,
        *,
        ratio: float = 0.1,
        C: float = 1.0,
        threshold: float | str = "auto",
        on_empty: str = "warn",
        random_state: Any = None,
    ) -> None:
        self.ratio = ratio
        self.C = C
        self.threshold = threshold
        self.on_empty = on_empty
        self.random_state = random_state

    def _fit(self, X: Any, Y: NDArray[Any]) -> None:
        self.scaler_ = RangeScaler().fit(X)
        rows = self.scaler_.transform(X).astype(np.float64, copy=False)
        # k-means breaks ties by position and by the last digits: both in an order that permutations do not change.
        features, order = feature_order(rows), row_order(rows)
        rows, has_label = rows[np.ix_(order, features)], Y[order] > 0
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        # The threads of k-means add up centres in any order, which moves last digits from fit to fit.
        with threadpool_limits(limits=1, user_api="openmp"):
            machines = [
                label_machine(rows, positive, ratio=self.ratio, C=self.C, seed=seed)
                for positive in has_label.T
            ]
        self.centres_ = [centres[:, np.argsort(features)] for centres, _, _ in machines]
        self.coef_ = [coef for _, coef, _ in machines]
        self.intercept_ = np.array([intercept for _, _, intercept in machines])
        self._is_empty: NDArray[np.bool_] = has_label.sum(axis=0) == 0

    def _scores(self, X: Any) -> NDArray[Any]:
        rows = self.scaler_.transform(X).astype(np.float64, copy=False)
        values = np.tile(self.intercept_, (len(rows), 1))
        for label, (centres, coef) in enumerate(zip(self.centres_, self.coef_, strict=True)):
            if len(centres):
                values[:, label] += euclidean_distances(rows, centres) @ coef
        scores = values / (1 + np.abs(values))
        scores[:, self._is_empty] = _NEVER
        return scores.astype(X.dtype)

    def _check_parameters(self) -> None:
        check_parameters(self, weights=("ratio", "C"))
        if not 0 < self.ratio <= 1:
            raise ValueError(f"ratio must be above 0 and at most 1, got {self.ratio!r}.")
        if self.C == 0:
            raise ValueError("C must be above 0: without errors there is nothing to learn.")


def label_machine(
    rows: NDArray[np.float64], positive: NDArray[np.bool_], *, ratio: float, C: float, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Centres (2m, d), coefficients of the distances to them (2m,), and intercept, for one label."""
    n_positive = int(positive.sum())
    smaller = min(n_positive, len(rows) - n_positive)
    if smaller < 2:
        return np.empty((0, rows.shape[1])), np.empty(0), 2 * n_positive / len(rows) - 1
    m = min(ceil(ratio * smaller), MAX_CLUSTERS)
    centres = np.vstack([cluster_centres(rows[side], m, seed=seed) for side in (positive, ~positive)])
    distances = euclidean_distances(rows, centres)
    mean, spread = distances.mean(axis=0), distances.std(axis=0)
    spread[spread <= 1e-9 * mean] = 1
    coef, intercept = linear_machine((distances - mean) / spread, np.where(positive, 1.0, -1.0), C=C)
    coef /= spread
    return centres, coef, intercept - float(mean @ coef)


def linear_machine(
    features: NDArray[np.float64], sign: NDArray[np.float64], *, C: float
) -> tuple[NDArray[np.float64], float]:
    """Coefficients w and intercept b of ``min ½‖w‖² + C Σ_i max(0, 1 − sign_i (w·x_i + b))²``.

    Newton's method on a piecewise quadratic function of few unknowns ends at the minimum itself, in a few steps. A
    solver that stops near it would let the order of rows and columns show in the scores.
    """
    signed = sign[:, None] * np.column_stack([features, np.ones(len(features))])
    penalty = np.ones(signed.shape[1])
    penalty[-1] = 0

    def loss_and_slope(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        missing = np.maximum(1 - signed @ w, 0)
        return float(penalty @ w**2 / 2 + C * missing @ missing), penalty * w - 2 * C * missing @ signed

    def curvature(w: NDArray[np.float64]) -> NDArray[np.float64]:
        active = signed[signed @ w < 1]
        # Where no row is active nothing bends along the intercept, and the solver divides by the curvature.
        return np.diag(np.maximum(penalty, 1e-8)) + 2 * C * active.T @ active

    found = minimize(
        loss_and_slope,
        np.zeros(signed.shape[1]),
        jac=True,
        hess=curvature,
        method="dogleg",
        options={"gtol": 1e-10 * C * len(signed)},
    )
    return found.x[:-1], float(found.x[-1])


def cluster_centres(rows: NDArray[np.float64], m: int, *, seed: int) -> NDArray[np.float64]:
    """Centres of k-means with m clusters, (m, d)."""
    with warnings.catch_warnings():
        # Said of rows that are duplicates: some centres then coincide, which does no harm.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return KMeans(m, n_init=1, random_state=seed).fit(rows).cluster_centers_
