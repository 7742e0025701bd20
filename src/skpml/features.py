"""Feature maps: scaling, the linear map of the printed method, the RBF anchors of the published numbers."""

from __future__ import annotations

from math import ceil
from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from skpml._ordering import row_order
from skpml._sharing import once

__all__ = [
    "LinearMap",
    "RBFAnchors",
    "RangeScaler",
    "default_n_anchors",
    "resolve_feature_map",
]

# Beyond this the published rule (a fixed share of the rows) would make the cost grow with the cube of the rows.
# It is the largest number the rule gives below 9000 rows, so no published configuration is touched.
MAX_ANCHORS = 3000

_FLOATS = (np.float64, np.float32)


class RangeScaler(TransformerMixin, BaseEstimator):
    """Scale each feature to [−1, 1] by its smallest and largest training value.

    Two things differ from scikit-learn's ``MinMaxScaler``: a feature that is constant in training becomes 0 for
    every row, so a test row in which it moves is not thrown far away from everything; and sparse input is accepted
    (the result is dense: the map does not keep zeros). Test rows are not clipped.

    Attributes
    ----------
    scale_, offset_ : ndarray of shape (n_features,)
        The map is ``x * scale_ + offset_``.
    """

    def fit(self, X: Any, y: None = None) -> Self:
        X = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=_FLOATS)
        if scipy.sparse.issparse(X):
            low = X.min(axis=0).toarray().ravel()
            high = X.max(axis=0).toarray().ravel()
        else:
            low, high = X.min(axis=0), X.max(axis=0)
        # Halving first keeps a range near the largest float from overflowing.
        half_range, middle = high / 2 - low / 2, high / 2 + low / 2
        # A range too small to divide by is none.
        varies = half_range >= np.finfo(X.dtype).tiny
        self.scale_ = np.where(varies, 1 / np.where(varies, half_range, 1), 0).astype(X.dtype)
        self.offset_ = (-middle * self.scale_).astype(X.dtype)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=("csr", "csc"), dtype=_FLOATS, reset=False)
        if scipy.sparse.issparse(X):
            X = X.toarray()
        scaled = X * self.scale_.astype(X.dtype, copy=False)
        scaled += self.offset_.astype(X.dtype, copy=False)
        return scaled

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class LinearMap(TransformerMixin, BaseEstimator):
    """The features themselves, as the method is printed.

    Parameters
    ----------
    intercept : bool, default=False
        Append a column of ones. The printed method has none.
    """

    def __init__(self, *, intercept: bool = False) -> None:
        self.intercept = intercept

    def fit(self, X: Any, y: None = None) -> Self:
        validate_data(self, X, dtype=_FLOATS)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        X = validate_data(self, X, dtype=_FLOATS, reset=False)
        return np.hstack([X, np.ones((X.shape[0], 1), X.dtype)]) if self.intercept else X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.requires_fit = False
        return tags


def default_n_anchors(n_rows: int) -> int:
    """Number of anchors behind the published results: all rows below 1000, then a half, a third, a quarter.

    Capped at 3000 so that the cost stays linear in the number of rows beyond 12,000.
    """
    for limit, share in ((1000, 1), (5000, 2), (9000, 3)):
        if n_rows < limit:
            return ceil(n_rows / share)
    return min(ceil(n_rows / 4), MAX_ANCHORS)


class RBFAnchors(TransformerMixin, BaseEstimator):
    """Gaussian similarity to anchor rows, centred, with a constant column.

    ``φ(x)_j = exp(−‖x − a_j‖² / (2σ²)) − mean_j`` for anchors ``a_j`` drawn without replacement from the training
    rows, and a last column of ones. σ² is the mean of all squared distances from training rows to anchors;
    ``mean_j`` is the training mean of column j.

    Parameters
    ----------
    n_anchors : int or None, default=None
        None takes :func:`default_n_anchors`. At or above the number of rows, every row is an anchor and nothing is
        random. Below, the draw does not depend on the order of the rows.
    anchors : array of shape (a, n_features) or None, default=None
        Fixed anchors instead of drawn ones.
    width : float, default=1.0
        Multiplies σ².
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    anchors_ : ndarray of shape (a, n_features)
    bandwidth_ : float
        σ² times the width.
    mean_ : ndarray of shape (a,)
    """

    def __init__(
        self,
        *,
        n_anchors: int | None = None,
        anchors: Any = None,
        width: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.n_anchors = n_anchors
        self.anchors = anchors
        self.width = width
        self.random_state = random_state

    def fit(self, X: Any, y: None = None) -> Self:
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: None = None, **fit_params: Any) -> NDArray[Any]:
        X = validate_data(self, X, dtype=_FLOATS)
        # A draw from a generator moves it on, so only a draw from a seed can be reused.
        if self.anchors is None and isinstance(self.random_state, Integral):
            key = (self.n_anchors, float(self.width), int(self.random_state))
            fitted = once("RBFAnchors", X, key, lambda: self._fitted(X))
        else:
            fitted = self._fitted(X)
        self.anchors_, self.bandwidth_, self.mean_, mapped = fitted
        return mapped

    def _fitted(self, X: NDArray[Any]) -> tuple[NDArray[Any], float, NDArray[Any], NDArray[Any]]:
        if not self.width > 0:
            raise ValueError(f"width must be above 0, got {self.width!r}.")
        self.anchors_ = self._choose_anchors(X)
        self.bandwidth_ = self.width * self._mean_squared_distance(X)
        mapped = self._kernel(X)
        mean = mapped[:, :-1].mean(axis=0)
        mapped[:, :-1] -= mean
        return self.anchors_, self.bandwidth_, mean, mapped

    def transform(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=_FLOATS, reset=False)
        mapped = self._kernel(X)
        mapped[:, :-1] -= self.mean_.astype(mapped.dtype, copy=False)
        return mapped

    def _choose_anchors(self, X: NDArray[Any]) -> NDArray[Any]:
        n = X.shape[0]
        if self.anchors is not None:
            anchors = np.asarray(self.anchors, dtype=X.dtype)
            if anchors.ndim != 2 or anchors.shape[0] < 1 or anchors.shape[1] != X.shape[1]:
                raise ValueError(f"anchors must have shape (any, {X.shape[1]}), got {anchors.shape}.")
            return anchors
        wanted = default_n_anchors(n) if self.n_anchors is None else self.n_anchors
        if wanted < 1:
            raise ValueError(f"n_anchors must be at least 1, got {wanted}.")
        if wanted >= n:
            return X[row_order(X)]
        places = check_random_state(self.random_state).choice(n, size=wanted, replace=False)
        # Drawn in the order of content: where a row stands must not decide whether it is an anchor.
        return X[row_order(X)[np.sort(places)]]

    def _mean_squared_distance(self, X: NDArray[Any]) -> float:
        """Mean over all pairs of ``‖x − a‖²``, without forming them: both clouds' spread plus their means' distance."""
        A = self.anchors_
        spread = float(X.var(axis=0, dtype=np.float64).sum() + A.var(axis=0, dtype=np.float64).sum())
        shift = X.mean(axis=0, dtype=np.float64) - A.mean(axis=0, dtype=np.float64)
        mean = spread + float(shift @ shift)
        return mean if mean > 0 else 1.0

    def _kernel(self, X: NDArray[Any]) -> NDArray[Any]:
        """``exp(−‖x − a‖²/(2σ²))`` and a column of ones, by one matrix product.

        The exponent is ``x·a/σ² − ‖x‖²/2σ² − ‖a‖²/2σ²``: with two more columns on each side the product gives it
        whole. Distances do not change when everything moves, so the anchors are moved to the origin first, where the
        three parts do not cancel each other's digits. The array is laid out by columns, so that the kernel part is
        contiguous and nothing is copied to append the ones.
        """
        A = self.anchors_.astype(X.dtype, copy=False)
        centre = A.mean(axis=0)
        A = A - centre
        half = 0.5 / self.bandwidth_
        left = np.empty((A.shape[0], A.shape[1] + 2), X.dtype)
        left[:, :-2] = A / self.bandwidth_
        left[:, -2] = -half * np.einsum("ij,ij->i", A, A)
        left[:, -1] = 1
        right = np.empty((X.shape[0], X.shape[1] + 2), X.dtype)
        np.subtract(X, centre, out=right[:, :-2])
        right[:, -2] = 1
        right[:, -1] = -half * np.einsum("ij,ij->i", right[:, :-2], right[:, :-2])
        columns = np.empty((A.shape[0] + 1, X.shape[0]), X.dtype)
        kernel = columns[:-1]
        np.matmul(left, right.T, out=kernel)
        np.minimum(kernel, 0, out=kernel)  # no distance is negative but for rounding
        np.exp(kernel, out=kernel)
        columns[-1] = 1
        return columns.T

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def as_dense(mapped: Any, dtype: Any) -> NDArray[Any]:
    """The output of any transformer as a dense array of the given dtype."""
    values = mapped.toarray() if hasattr(mapped, "toarray") else np.asarray(mapped)
    return values.astype(dtype, copy=False)


def resolve_feature_map(feature_map: Any, *, n_anchors: int | None, random_state: Any) -> Any:
    """An unfitted transformer for ``"rbf"``, ``"linear"`` or a clone of the transformer given."""
    if isinstance(feature_map, str):
        if feature_map == "rbf":
            return RBFAnchors(n_anchors=n_anchors, random_state=random_state)
        if feature_map == "linear":
            return LinearMap()
    elif hasattr(feature_map, "fit") and hasattr(feature_map, "transform"):
        return clone(feature_map)
    raise ValueError(
        f'feature_map must be "rbf", "linear" or a scikit-learn transformer, got {feature_map!r}.'
    )
