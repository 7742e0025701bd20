"""What several methods share: results of solvers, their histories, and feature maps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline

from skpml.base import BasePMLClassifier
from skpml.features import MAX_ANCHORS, LinearMap, RangeScaler, RBFAnchors, as_dense, resolve_feature_map
from skpml.graph import neighbor_similarity

Array = NDArray[Any]
Matrix = NDArray[np.float64]
History = dict[str, list[float]]

# Share of the range of a row's scores above which the rule "relative" predicts.
_RELATIVE_CUT = 0.9
# Products leave out the smallest value of each feature if at most this share of the values is larger.
_SPARSE_SHARE = 0.1


def append(history: History, **values: float) -> None:
    """Append the values of one iteration."""
    for name, value in values.items():
        history.setdefault(name, []).append(value)


def square(M: Array) -> float:
    """Compute ``‖M‖²``."""
    return float(np.vdot(M, M))


@dataclass(frozen=True)
class ShiftedRows:
    """A matrix ``S + 1 tᵀ`` of sparse rows S with one shift t, or its transpose, for products with thin matrices."""

    rows: scipy.sparse.csr_array
    shift: Matrix
    transposed: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        n, d = self.rows.shape
        return (d, n) if self.transposed else (n, d)

    @property
    def T(self) -> Self:
        return type(self)(self.rows, self.shift, not self.transposed)

    def __matmul__(self, M: Matrix) -> Matrix:
        if self.transposed:
            return np.asarray(self.rows.T @ M + np.outer(self.shift, M.sum(axis=0)))
        return np.asarray(self.rows @ M + self.shift @ M)


def leave_out_lowest(X: Matrix) -> Matrix | ShiftedRows:
    """Return features whose products leave out the smallest value of each feature, if most values are such.

    That is so in texts, whose words occur in few rows. Scaled and shifted features
    are not sparse themselves. Other features are returned unchanged.
    """
    lowest = X.min(axis=0)
    if np.count_nonzero(lowest < X) > _SPARSE_SHARE * X.size:
        return X
    return ShiftedRows(scipy.sparse.csr_array(X - lowest), lowest)


class LinearClassifier(BasePMLClassifier):
    """Base of methods with a linear model of the scaled features and a constant, fitted in double precision."""

    coef_: Array

    def _map(self, X: Any) -> Matrix:
        self.feature_map_: Any = make_pipeline(RangeScaler(), LinearMap(intercept=True))
        # Constraints cannot be met to the usual tolerances in single precision.
        mapped: Matrix = self.feature_map_.fit_transform(X).astype(np.float64, copy=False)
        return mapped

    def _scores(self, X: Any) -> Array:
        return self.feature_map_.transform(X) @ self.coef_.astype(X.dtype, copy=False)


class MappedClassifier(BasePMLClassifier):
    """Base of methods with a linear model of mapped features, as the user chooses, fitted in double precision."""

    feature_map: Any
    n_anchors: int | None
    random_state: Any
    coef_: Array

    def _map(self, X: Any) -> Matrix:
        if isinstance(self.feature_map, str) and self.feature_map == "linear":
            feature_map: Any = LinearMap(intercept=True)
        else:
            feature_map = resolve_feature_map(
                self.feature_map, n_anchors=self.n_anchors, random_state=self.random_state
            )
        # Similarities to anchors need differences of rows alone, which do not need the shift.
        scaler = RangeScaler(keep_sparse=isinstance(feature_map, RBFAnchors))
        self.feature_map_: Any = make_pipeline(scaler, feature_map)
        return as_dense(self.feature_map_.fit_transform(X), np.float64)

    def _scores(self, X: Any) -> Array:
        return as_dense(self.feature_map_.transform(X), X.dtype) @ self.coef_.astype(X.dtype, copy=False)


class RelativeThreshold(BasePMLClassifier):
    """Base of methods with the rule "relative": of scores scaled to [0, 1] by row, those above 0.9 are predicted.

    Scores are then relative to that cut of their row, so that 0 decides. A single label has nothing to be compared with:
    "auto" is used for it. ``_fit`` sets the rule by ``_set_rule``.
    """

    _threshold_rules = ("relative", "auto", "non-candidates")

    def _set_rule(self) -> None:
        self._relative = self.threshold == "relative" and len(self.classes_) > 1

    def _subtract_cut(self, scores: Array) -> Array:
        """Return scores relative to the cut of their row; unchanged under another rule."""
        if not self._relative:
            return scores
        low, high = scores.min(axis=1, keepdims=True), scores.max(axis=1, keepdims=True)
        return scores - (low + scores.dtype.type(_RELATIVE_CUT) * (high - low))

    def _estimate_threshold(self, scores: Array, candidates: NDArray[np.uint8]) -> None:
        if not self._relative:
            super()._estimate_threshold(scores, candidates)
            return
        self.threshold_ = 0.0
        self._probability_width = 2 * max(-float(np.quantile(scores, 0.25)), 1e-3)


class AnchorClassifier(BasePMLClassifier):
    """Base of methods with a linear model of similarities to anchor rows, and a graph of near rows."""

    n_anchors: int | None
    n_neighbors: int
    random_state: Any
    coef_: Array

    def _map(self, X: Any) -> tuple[Array, Array, Any]:
        """Mapped features, scaled features, and similarities of near rows."""
        self.scaler_ = RangeScaler().fit(X)
        scaled = self.scaler_.transform(X)
        n_anchors = self.n_anchors or min(5 * X.shape[1], MAX_ANCHORS)
        self.feature_map_ = RBFAnchors(n_anchors=n_anchors, random_state=self.random_state)
        mapped = self.feature_map_.fit_transform(scaled)
        n_neighbors = min(self.n_neighbors, scaled.shape[0] - 1)
        return mapped, scaled, neighbor_similarity(scaled, n_neighbors=n_neighbors, scale="first")

    def _scores(self, X: Any) -> Array:
        return self.feature_map_.transform(self.scaler_.transform(X)) @ self.coef_.astype(X.dtype, copy=False)
