"""What several methods share: results of solvers, their histories, and feature maps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline

from skpml.base import BasePMLClassifier
from skpml.features import MAX_ANCHORS, LinearMap, RangeScaler, RBFAnchors
from skpml.graph import neighbor_similarity

Array = NDArray[Any]
Matrix = NDArray[np.float64]
History = dict[str, list[float]]


def append(history: History, **values: float) -> None:
    """Append the values of one iteration."""
    for name, value in values.items():
        history.setdefault(name, []).append(value)


def square(M: Array) -> float:
    """Compute ``‖M‖²``."""
    return float(np.vdot(M, M))


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
