"""LIFT: distances to the cluster centers of the rows with and without a label as its features."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
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

from skpml._docstrings import fill_docstring
from skpml._ordering import feature_order, row_order
from skpml.base import BasePMLClassifier, MethodFacts
from skpml.features import RangeScaler

_NEVER = -1.0
# A share of the rows would make distances of all rows to all centers grow with the square of the rows.
MAX_CLUSTERS = 500


@fill_docstring
@dataclass(kw_only=True, repr=False, eq=False)
class LIFT(BasePMLClassifier):
    """Label-specific features (LIFT), on candidates taken for true labels.

    For each label, k-means finds m centers among the rows with it and m among the rows without it, where m is a share of
    the smaller group. A row is described by its distances to these 2m centers, and a linear support vector machine
    separates the two groups. It is a reference point: it does nothing about false candidates.

    Parameters
    ----------
    ratio : float, default=0.1
        ``m = ⌈ratio · min(positives, negatives)⌉``, but no more than 500; above 0 and at most 1.
    C : float, default=1.0
        Weight of the errors in the support vector machine, above 0.
    %(threshold)s
        0 is the border of the support vector machines.
    %(on_empty)s
    random_state : int, RandomState or None, default=None
        Draws the first centers of k-means, for all labels from the same seed and in the order of the rows' content.

    Attributes
    ----------
    centers_ : list of c ndarrays of shape (2m, d)
        Centers among the scaled rows of each label, positives first; empty if a label has no classifier.
    coef_ : list of c ndarrays of shape (2m,)
        Decision values are ``distances to centers_ @ coef_ + intercept_``.
    intercept_ : ndarray of shape (c,)
        Intercepts of the labels.
    %(scaler)s
    %(fitted)s

    Notes
    -----
    Distances are standardized. The loss is the squared hinge, whose minimum is unique and found exactly; the published
    method has the plain hinge. The score is ``f / (1 + |f|)`` of the decision value f: it keeps order and sign and is
    never large. A label with fewer than two rows on one side has the constant decision value 2p − 1, with p its share of
    the rows, which minimizes the squared hinge without features. A label that no row has scores −1, below all others.

    Fitting takes time O(c n m (d + m)), times the few steps of k-means and of the solver, and memory O(n m) beyond the
    scaled features, where m grows with n up to its limit of 500; the model holds O(c d m) numbers.

    %(reference_and_data)s
    >>> from skpml.reference import LIFT
    >>> model = LIFT(random_state=0).fit(X, candidates)
    >>> len(model.centers_)
    5
    """

    ratio: float = 0.1
    C: float = 1.0
    threshold: float | str = "auto"
    on_empty: str = "warn"
    random_state: Any = None

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

    def _fit(self, X: Any, Y: NDArray[Any]) -> None:
        self.scaler_ = RangeScaler().fit(X)
        rows = self.scaler_.transform(X).astype(np.float64, copy=False)
        # k-means breaks ties by position and by the last digits: both in an order that permutations do not change.
        features, order = feature_order(rows), row_order(rows)
        rows, has_label = rows[np.ix_(order, features)], Y[order] > 0
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        # The threads of k-means add up centers in any order, which moves last digits from fit to fit.
        with threadpool_limits(limits=1, user_api="openmp"):
            fits = [
                fit_label(rows, positive, ratio=self.ratio, C=self.C, seed=seed) for positive in has_label.T
            ]
        self.centers_ = [centers[:, np.argsort(features)] for centers, _, _ in fits]
        self.coef_ = [coef for _, coef, _ in fits]
        self.intercept_ = np.array([intercept for _, _, intercept in fits])
        self._is_empty: NDArray[np.bool_] = has_label.sum(axis=0) == 0

    def _scores(self, X: Any) -> NDArray[Any]:
        rows = self.scaler_.transform(X).astype(np.float64, copy=False)
        values = np.tile(self.intercept_, (len(rows), 1))
        for label, (centers, coef) in enumerate(zip(self.centers_, self.coef_, strict=True)):
            if len(centers):
                values[:, label] += euclidean_distances(rows, centers) @ coef
        scores = values / (1 + np.abs(values))
        scores[:, self._is_empty] = _NEVER
        return scores.astype(X.dtype)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not 0 < self.ratio <= 1:
            raise ValueError(f"ratio must be above 0 and at most 1, got {self.ratio!r}.")
        if self.C == 0:
            raise ValueError("C must be above 0: without errors there is nothing to learn.")


def fit_label(
    rows: NDArray[np.float64], positive: NDArray[np.bool_], *, ratio: float, C: float, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return centers (2m, d), coefficients of the distances to them (2m,), and intercept, for one label."""
    n_positive = int(positive.sum())
    smaller = min(n_positive, len(rows) - n_positive)
    if smaller < 2:
        return np.empty((0, rows.shape[1])), np.empty(0), 2 * n_positive / len(rows) - 1
    m = min(ceil(ratio * smaller), MAX_CLUSTERS)
    machine = KMeans(m, n_init=1, random_state=seed)
    # Duplicate rows make some centers coincide, which is harmless.
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        centers = np.vstack([machine.fit(rows[side]).cluster_centers_ for side in (positive, ~positive)])
    distances = euclidean_distances(rows, centers)
    mean, spread = distances.mean(axis=0), distances.std(axis=0)
    spread[spread <= 1e-9 * mean] = 1
    coef, intercept = fit_linear((distances - mean) / spread, np.where(positive, 1.0, -1.0), C=C)
    coef /= spread
    return centers, coef, intercept - float(mean @ coef)


def fit_linear(
    features: NDArray[np.float64], sign: NDArray[np.float64], *, C: float
) -> tuple[NDArray[np.float64], float]:
    """Find w and b of ``min ½‖w‖² + C Σ_i max(0, 1 − sign_i (w·x_i + b))²``.

    Newton's method finds the minimum of a piecewise quadratic function of few unknowns exactly. With an approximate
    minimum, scores would depend on the order of rows and columns.
    """
    signed = sign[:, None] * np.column_stack([features, np.ones(len(features))])
    penalty = np.ones(signed.shape[1])
    penalty[-1] = 0

    def loss_and_slope(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        missing = np.maximum(1 - signed @ w, 0)
        return float(penalty @ w**2 / 2 + C * missing @ missing), penalty * w - 2 * C * missing @ signed

    def curvature(w: NDArray[np.float64]) -> NDArray[np.float64]:
        active = signed[signed @ w < 1]
        # If no row is active the intercept has no curvature, and the solver divides by it.
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
