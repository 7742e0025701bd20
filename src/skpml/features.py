"""Feature maps: scaling, the linear map of the paper, and the RBF anchors of its published results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from numbers import Integral
from typing import Any, Self

import numpy as np
import scipy.sparse
from array_api_compat import array_namespace, is_torch_array
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    OneToOneFeatureMixin,
    TransformerMixin,
    clone,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from skpml._blocks import (
    LazyRows,
    RowBlocks,
    StoredRows,
    read_rows,
    store_if_it_fits,
)
from skpml._docstrings import fill_docstring
from skpml._ordering import row_order
from skpml._sharing import once
from skpml.linalg import (
    Array,
    fits_in_memory,
    multiply_into,
    rows_at_once,
    squared_row_norms,
    to_device,
    to_numpy,
)

__all__ = ["LinearMap", "RBFAnchors", "RangeScaler", "default_n_anchors", "resolve_feature_map"]

# Beyond this the published rule (a fixed share of the rows) would make the cost grow with the cube of the rows.
# It is the largest number the rule gives below 9000 rows, so no published configuration is affected.
MAX_ANCHORS = 3000

_FLOATS = (np.float64, np.float32)
_SPARSE = ("csr", "csc")
# Anchors that are made dense at a time, to multiply sparse rows by them.
_DENSE_ANCHORS = 256


class _FloatTransformer(TransformerMixin, BaseEstimator):
    """A transformer that keeps single precision and accepts sparse features."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


@fill_docstring
@dataclass(kw_only=True, repr=False, eq=False)
class RangeScaler(OneToOneFeatureMixin, _FloatTransformer):
    """Scale each feature to [−1, 1] by its smallest and largest training value.

    Differs from scikit-learn's ``MinMaxScaler`` in two ways: a feature that is constant in training becomes 0 in every
    row, so that a test row in which it varies is not far from all others; and sparse input is accepted. Test rows are not
    clipped.

    Parameters
    ----------
    keep_sparse : bool, default=False
        Whether sparse features stay sparse: a scaler fitted on sparse features then leaves out the shift of features
        whose range includes 0, so that zeros stay zeros. Differences of rows are the same as with the shift. If False,
        the result is dense.

    Attributes
    ----------
    scale_ : ndarray of shape (n_features,)
        Factors; the map is ``x * scale_ + offset_``.
    offset_ : ndarray of shape (n_features,)
        Shifts.
    %(feature_attributes)s

    See Also
    --------
    skpml.views.ViewScaler : The same for several views.
    """

    keep_sparse: bool = False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the range of each feature.

        %(fit_rows)s
        """
        self._fit_range(X, keep_sparse=self.keep_sparse)
        return self

    def _fit_range(self, X: Any, *, keep_sparse: bool) -> None:
        if isinstance(X, LazyRows):
            self.n_features_in_ = X.shape[1]
        else:
            X = validate_data(self, X, accept_sparse=_SPARSE, dtype=_FLOATS)
        if isinstance(X, LazyRows):
            low, high = X.range_of_columns()
        elif scipy.sparse.issparse(X):
            low, high = X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel()
        else:
            low, high = X.min(axis=0), X.max(axis=0)
        # Halving first keeps a range near the largest float from overflowing.
        half_range, middle = high / 2 - low / 2, high / 2 + low / 2
        # A range too small to divide by counts as none.
        varies = half_range >= np.finfo(X.dtype).tiny
        self.scale_ = np.where(varies, 1 / np.where(varies, half_range, 1), 0).astype(X.dtype)
        self.offset_ = (-middle * self.scale_).astype(X.dtype)
        self._stays_sparse = bool(keep_sparse and scipy.sparse.issparse(X))
        if self._stays_sparse:
            # A feature without zeros is shifted: nothing is lost, and values far from 0 would cost digits.
            self.offset_[(low <= 0) & (high >= 0)] = 0

    def transform(self, X: Any) -> Any:
        """Scale rows.

        %(rows)s

        Returns
        -------
        ndarray of shape (n, n_features)
            Or a CSR array, for sparse rows with ``keep_sparse``.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=_SPARSE, dtype=_FLOATS, reset=False)
        scale, offset = (values.astype(X.dtype, copy=False) for values in (self.scale_, self.offset_))
        if scipy.sparse.issparse(X):
            if self._stays_sparse:
                X = scipy.sparse.csr_array(X)
                scaled, shifted, n = X.multiply(scale).tocsr(), np.flatnonzero(offset), X.shape[0]
                parts = (np.tile(offset[shifted], n), np.tile(shifted, n), np.arange(n + 1) * len(shifted))
                shift = scipy.sparse.csr_array(parts, shape=X.shape)
                return scipy.sparse.csr_array(scaled + shift if len(shifted) else scaled)
            X = X.toarray()
        scaled = X * scale
        scaled += offset
        return scaled


@fill_docstring
@dataclass(kw_only=True, repr=False, eq=False)
class LinearMap(OneToOneFeatureMixin, _FloatTransformer):
    """Return the features themselves, as in the equations of the paper.

    Parameters
    ----------
    intercept : bool, default=False
        Whether to append a column of ones. The paper has none.

    Attributes
    ----------
    %(feature_attributes)s

    See Also
    --------
    RBFAnchors : The nonlinear map.
    """

    intercept: bool = False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the features; there is nothing to learn.

        %(fit_rows)s
        """
        validate_data(self, X, dtype=_FLOATS)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the features, with a column of ones if ``intercept`` is True.

        %(rows)s

        Returns
        -------
        ndarray of shape (n, n_features) or (n, n_features + 1)
            The mapped rows.
        """
        X = validate_data(self, X, dtype=_FLOATS, reset=False)
        return np.hstack([X, np.ones((X.shape[0], 1), X.dtype)]) if self.intercept else X

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns.

        %(names_out)s
        """
        names = super().get_feature_names_out(input_features)
        return np.append(names, "intercept").astype(object) if self.intercept else names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.requires_fit = False
        return tags


def default_n_anchors(n_rows: int) -> int:
    """Compute the number of anchors of the published results.

    All rows below 1000, then a half, a third, a quarter; at most 3000, so that the cost stays linear in the number of
    rows beyond 12,000.

    Parameters
    ----------
    n_rows : int
        Number of training rows.

    Returns
    -------
    int
        Number of anchors.
    """
    for limit, share in ((1000, 1), (5000, 2), (9000, 3)):
        if n_rows < limit:
            return ceil(n_rows / share)
    return min(ceil(n_rows / 4), MAX_ANCHORS)


@fill_docstring
@dataclass(kw_only=True, repr=False, eq=False)
class RBFAnchors(ClassNamePrefixFeaturesOutMixin, _FloatTransformer):
    """Map rows to their Gaussian similarity to anchor rows, centered, and a constant column.

    ``φ(x)_j = exp(−‖x − a_j‖² / (2σ²)) − mean_j`` for anchors ``a_j`` drawn without replacement from the training
    rows, and a last column of ones. σ² is the mean of all squared distances from training rows to anchors;
    ``mean_j`` is the training mean of column j. Sparse rows stay sparse; the result is dense.

    Parameters
    ----------
    n_anchors : int or None, default=None
        None takes :func:`default_n_anchors`. At or above the number of rows, every row is an anchor and nothing is
        random. Below, the draw does not depend on the order of the rows.
    anchors : array or scipy sparse matrix of shape (a, n_features) or None, default=None
        Fixed anchors instead of drawn ones.
    width : float, default=1.0
        Multiplies σ².
    random_state : int, RandomState or None, default=None
        Draws the anchors.

    Attributes
    ----------
    anchors_ : ndarray or csr_array of shape (a, n_features)
        Sparse if the training rows were.
    bandwidth_ : float
        σ² times the width.
    mean_ : ndarray of shape (a,)
        Training means of the columns.
    %(feature_attributes)s

    See Also
    --------
    sklearn.kernel_approximation.Nystroem : Also normalizes the similarities of the anchors.
    """

    n_anchors: int | None = None
    anchors: Any = None
    width: float = 1.0
    random_state: Any = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the anchors and the width.

        %(fit_rows)s
        """
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> NDArray[Any]:
        """Choose the anchors and the width, and map the training rows.

        Parameters
        ----------
        X : array or scipy sparse matrix of shape (n, n_features)
            Training rows.
        y : None
            Ignored.
        sample_weight : array of shape (n,) or None, default=None
            Positive weights of the rows in the means and in σ²; a row of weight 2 counts as two.

        Returns
        -------
        ndarray of shape (n, a + 1)
            Similarities and a column of ones, laid out by columns.
        """
        X = validate_data(self, X, accept_sparse="csr", dtype=_FLOATS)
        if scipy.sparse.issparse(X):
            X = scipy.sparse.csr_array(X)
        # A draw from a generator changes its state, so only a draw from a seed can be reused.
        if self.anchors is None and isinstance(self.random_state, Integral) and sample_weight is None:
            key = (self.n_anchors, float(self.width), int(self.random_state))
            fitted = once(lambda rows, *_: self._fit_rows(rows, None), X, *key)
        else:
            fitted = self._fit_rows(X, sample_weight)
        self.anchors_, self.bandwidth_, self.mean_, mapped = fitted
        return mapped

    def _fit_in_blocks(self, X: Any, device: str | None = None) -> Self:
        """Choose the anchors and the width without all mapped rows in memory; X is valid, and may be lazy."""
        self.n_features_in_ = X.shape[1]
        self._choose(X, None)
        kernel = self._kernel if device is None else self._kernel_on(device, X.dtype)
        blocks = read_rows(X, kernel, self._n_features_out)
        xp = array_namespace(blocks.like)
        _, (total,) = blocks.visit(lambda rows: ((), (xp.sum(rows, axis=0, dtype=xp.float64),)))
        self.mean_ = (to_numpy(total)[:-1] / X.shape[0]).astype(X.dtype)
        return self

    def _kernel_on(self, device: str, dtype: Any) -> Callable[[Any], Array]:
        """Return the function of :meth:`_kernel` with PyTorch on a device."""
        import torch

        anchors = to_device(as_dense(self.anchors_, dtype), device)
        center = anchors.mean(dim=0)
        anchors = (anchors - center) / self.bandwidth_**0.5
        half_norms = (anchors**2).sum(dim=1) / 2

        def kernel(rows: Any) -> Array:
            on_device = rows if is_torch_array(rows) else to_device(as_dense(rows, dtype), device)
            X = on_device.to(anchors.dtype)
            X = (X - center) / self.bandwidth_**0.5
            mapped = torch.ones((X.shape[0], anchors.shape[0] + 1), dtype=X.dtype, device=device)
            exponents = torch.addmm(-half_norms, X, anchors.T) - (X**2).sum(dim=1, keepdim=True) / 2
            mapped[:, :-1] = exponents.clamp_(max=0).exp_()
            return mapped

        return kernel

    def _transform_on(self, device: str, dtype: Any) -> Callable[[Any], Array]:
        """Return the function of :meth:`transform` with PyTorch on a device, for valid rows."""
        kernel, mean = self._kernel_on(device, dtype), to_device(self.mean_.astype(dtype), device)

        def transform(rows: Any) -> Array:
            mapped = kernel(rows)
            mapped[:, :-1] -= mean
            return mapped

        return transform

    def _choose(self, X: Any, weights: Any) -> None:
        if not self.width > 0:
            raise ValueError(f"width must be above 0, got {self.width!r}.")
        self.anchors_ = self._choose_anchors(X, weights)
        self.bandwidth_ = self.width * self._mean_squared_distance(X, weights)

    def _fit_rows(self, X: Any, weights: Any) -> tuple[Any, float, NDArray[Any], NDArray[Any]]:
        self._choose(X, weights)
        mapped = self._kernel(X)
        kernel = mapped[:, :-1]
        mean = kernel.mean(axis=0) if weights is None else (weights @ kernel / weights.sum()).astype(X.dtype)
        mapped[:, :-1] -= mean
        return self.anchors_, self.bandwidth_, mean, mapped

    def transform(self, X: Any) -> NDArray[Any]:
        """Map rows to their similarities.

        %(rows)s

        Returns
        -------
        ndarray of shape (n, a + 1)
            Similarities and a column of ones, laid out by columns.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=_FLOATS, reset=False)
        mapped = self._kernel(X)
        mapped[:, :-1] -= self.mean_.astype(mapped.dtype, copy=False)
        return mapped

    @property
    def _n_features_out(self) -> int:
        return int(self.anchors_.shape[0]) + 1

    def _choose_anchors(self, X: Any, weights: NDArray[Any] | None) -> Any:
        n = X.shape[0]
        # Weights of the anchors, for σ² and for whoever weights the columns by them.
        self._anchor_weights: NDArray[Any] | None = None
        if self.anchors is not None:
            is_sparse = scipy.sparse.issparse(self.anchors)
            anchors = (scipy.sparse.csr_array if is_sparse else np.asarray)(self.anchors, dtype=X.dtype)
            if anchors.ndim != 2 or anchors.shape[0] < 1 or anchors.shape[1] != X.shape[1]:
                raise ValueError(f"anchors must have shape (any, {X.shape[1]}), got {anchors.shape}.")
            return anchors
        wanted = default_n_anchors(n) if self.n_anchors is None else self.n_anchors
        if wanted < 1:
            raise ValueError(f"n_anchors must be at least 1, got {wanted}.")
        rows = row_order(X)
        if wanted < n:
            places = check_random_state(self.random_state).choice(n, size=wanted, replace=False)
            # Drawn in the order of content: the position of a row must not decide whether it is an anchor.
            rows = rows[np.sort(places)]
        if weights is not None:
            self._anchor_weights = weights[rows]
        return X[rows]

    def _mean_squared_distance(self, X: Any, weights: NDArray[Any] | None) -> float:
        """Compute the mean of ``‖x − a‖²`` over all pairs, from the spreads of both and the distance of their means."""
        row_mean, row_spread = _mean_and_spread(X, weights)
        anchor_mean, anchor_spread = _mean_and_spread(self.anchors_, self._anchor_weights)
        shift = row_mean - anchor_mean
        mean = row_spread + anchor_spread + float(shift @ shift)
        return mean if mean > 0 else 1.0

    def _kernel(self, X: Any) -> NDArray[Any]:
        """Compute ``exp(−‖x − a‖²/(2σ²))`` and a column of ones, by one matrix product.

        The exponent is ``x·a/σ² − ‖x‖²/2σ² − ‖a‖²/2σ²``: with two more columns on each side the product gives it
        whole. Distances do not change when everything moves, so the anchors are moved to the origin first, where the
        three parts do not cancel each other's digits. The array is laid out by columns, so that the kernel part is
        contiguous and nothing is copied to append the ones.
        """
        columns = np.empty((self.anchors_.shape[0] + 1, X.shape[0]), X.dtype)
        kernel = columns[:-1]
        if scipy.sparse.issparse(X) or scipy.sparse.issparse(self.anchors_):
            self._sparse_exponents(X, kernel)
        else:
            A = self.anchors_.astype(X.dtype, copy=False)
            center = A.mean(axis=0)
            A = A - center
            half = 0.5 / self.bandwidth_
            left = np.empty((A.shape[0], A.shape[1] + 2), X.dtype)
            left[:, :-2] = A / self.bandwidth_
            left[:, -2] = -half * np.einsum("ij,ij->i", A, A)
            left[:, -1] = 1
            right = np.empty((X.shape[0], X.shape[1] + 2), X.dtype)
            np.subtract(X, center, out=right[:, :-2])
            right[:, -2] = 1
            right[:, -1] = -half * np.einsum("ij,ij->i", right[:, :-2], right[:, :-2])
            multiply_into(right, left, kernel.T)
        np.minimum(kernel, 0, out=kernel)  # no distance is negative but for rounding
        np.exp(kernel, out=kernel)
        columns[-1] = 1
        return columns.T

    def _sparse_exponents(self, X: Any, kernel: NDArray[Any]) -> None:
        """Write the exponents into ``kernel`` (a×n); some anchors are made dense at a time, rows never."""
        # In double precision, because nothing is moved to the origin.
        X = X.astype(np.float64)
        half_rows = squared_row_norms(X) / 2
        for start in range(0, kernel.shape[0], _DENSE_ANCHORS):
            some = self.anchors_[start : start + _DENSE_ANCHORS].astype(np.float64)
            some = some.toarray() if scipy.sparse.issparse(some) else some
            products = np.asarray(X @ some.T) - half_rows[:, None] - squared_row_norms(some) / 2
            kernel[start : start + _DENSE_ANCHORS] = products.T / self.bandwidth_


def _mean_and_spread(X: Any, weights: NDArray[Any] | None) -> tuple[NDArray[np.float64], float]:
    """Compute the mean row and the sum of the variances of the columns, in double precision."""
    if weights is None and not scipy.sparse.issparse(X):
        if not isinstance(X, LazyRows) and rows_at_once(8 * X.shape[1]) >= X.shape[0]:
            return X.mean(axis=0, dtype=np.float64), float(X.var(axis=0, dtype=np.float64).sum())
        blocks = read_rows(X, lambda rows: rows, X.shape[1])
        xp = array_namespace(blocks.like)
        _, (total,) = blocks.visit(lambda rows: ((), (xp.sum(rows, axis=0, dtype=xp.float64),)))
        mean = total / X.shape[0]
        _, (squares,) = blocks.visit(lambda rows: ((), (xp.sum((rows - mean) ** 2, axis=0),)))
        return to_numpy(mean), float(xp.sum(squares / X.shape[0]))
    X = X.astype(np.float64)
    share = np.full(X.shape[0], 1 / X.shape[0]) if weights is None else weights / weights.sum()
    mean = np.asarray(share @ X)
    if scipy.sparse.issparse(X):
        return mean, float(share @ squared_row_norms(X) - mean @ mean)
    return mean, float(share @ squared_row_norms(X - mean))


def as_dense(mapped: Any, dtype: Any) -> NDArray[Any]:
    """Return the output of any transformer as a dense array of the given dtype."""
    values = mapped.toarray() if hasattr(mapped, "toarray") else np.asarray(mapped)
    return values.astype(dtype, copy=False)


def transformer_on(feature_map: Any, dtype: Any, device: str | None) -> Callable[[Any], Array]:
    """Return a function that maps rows by a fitted feature map, to NumPy or to PyTorch on a device."""
    if device is not None and isinstance(feature_map, RBFAnchors):
        return feature_map._transform_on(device, dtype)

    same = isinstance(feature_map, LinearMap) and not feature_map.intercept

    def transform(rows: Any) -> Array:
        if is_torch_array(rows):
            if same:
                return rows
            rows = to_numpy(rows)
        return to_device(as_dense(feature_map.transform(rows), dtype), device)

    return transform


def fit_map(feature_map: Any, X: Any, dtype: Any, device: str | None = None) -> RowBlocks:
    """Fit a feature map to scaled rows, and map them.

    Parameters
    ----------
    feature_map : transformer
        From :func:`resolve_feature_map`.
    X : array, scipy sparse matrix or LazyRows of shape (n, d)
        Scaled rows.
    dtype : dtype
        Of the mapped rows.
    device : str or None, default=None
        A device of PyTorch for the mapped rows.

    Returns
    -------
    RowBlocks
        Mapped rows. If they do not fit into scikit-learn's ``working_memory``, "rbf" and "linear" map them again
        on each pass; other transformers get all rows.
    """
    lazy = isinstance(X, LazyRows)
    if isinstance(feature_map, RBFAnchors):
        wanted = feature_map.n_anchors or default_n_anchors(X.shape[0])
        shape = (X.shape[0], min(wanted, X.shape[0]) + 1)
        if lazy or device is not None or not fits_in_memory(shape, dtype):
            return map_rows(feature_map._fit_in_blocks(X, device), X, dtype, device)
    elif lazy and isinstance(feature_map, LinearMap):
        return map_rows(feature_map.fit(X[:1]), X, dtype, device)
    return StoredRows(to_device(as_dense(feature_map.fit_transform(X[:] if lazy else X), dtype), device))


def map_rows(feature_map: Any, X: Any, dtype: Any, device: str | None = None) -> RowBlocks:
    """Map scaled rows by a fitted feature map; parameters and result as in :func:`fit_map`.

    Parameters
    ----------
    feature_map : transformer
        A fitted one.
    X, dtype, device : optional
        As in :func:`fit_map`.

    Returns
    -------
    RowBlocks
        Mapped rows.
    """
    transform = transformer_on(feature_map, dtype, device)
    anchored = isinstance(feature_map, RBFAnchors)
    width = feature_map._n_features_out if anchored else transform(X[:1]).shape[1]
    blocks = read_rows(X, transform, width)
    if device is not None:
        return store_if_it_fits(blocks, device)
    if isinstance(X, LazyRows) or not fits_in_memory((X.shape[0], width), dtype):
        return blocks
    return StoredRows(transform(X))


def resolve_feature_map(feature_map: Any, *, n_anchors: int | None, random_state: Any) -> Any:
    """Make an unfitted transformer from the parameter ``feature_map`` of an estimator.

    Parameters
    ----------
    feature_map : {"rbf", "linear"} or transformer
        A name, or a transformer to clone.
    n_anchors : int or None
        Anchors of "rbf".
    random_state : int, RandomState or None
        Draws the anchors of "rbf".

    Returns
    -------
    transformer
        An unfitted one.

    Raises
    ------
    ValueError
        If it is neither a name nor a transformer.
    """
    if isinstance(feature_map, str) and feature_map == "rbf":
        return RBFAnchors(n_anchors=n_anchors, random_state=random_state)
    if isinstance(feature_map, str) and feature_map == "linear":
        return LinearMap()
    if hasattr(feature_map, "fit") and hasattr(feature_map, "transform"):
        return clone(feature_map)
    raise ValueError(
        f'feature_map must be "rbf", "linear" or a scikit-learn transformer, got {feature_map!r}.'
    )
