"""Ridge regression straight to the candidates: the floor."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline

from skpml._validation import check_parameters
from skpml.base import BasePMLClassifier, MethodFacts
from skpml.features import RangeScaler, as_dense, resolve_feature_map
from skpml.linalg import ridge_factor

__all__ = ["CandidateRidge"]


class CandidateRidge(BasePMLClassifier):
    """Ridge regression from mapped features to the labels it is given, one output a label.

    ``coef = (ΦᵀΦ + γI)⁻¹ ΦᵀY``. Believes every candidate; fitted to true labels, as in
    ``Oracle(CandidateRidge())``, it is the ceiling.

    Parameters
    ----------
    gamma : float, default=1.0
        Weight of the squared coefficients, at least 0.
    feature_map, n_anchors, threshold, on_empty, random_state
        As in :class:`skpml.PMLMA`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_mapped_features, c)
    threshold_ : float
    classes_ : ndarray of shape (c,)
    feature_map_ : fitted pipeline of scaler and feature map

    Notes
    -----
    With n rows, a mapped features and c labels, a fit takes O(na² + a³ + nac) time and O(na + a²) memory; a is at most
    3000 by default.
    """

    _facts = MethodFacts(
        name="ridge",
        title="Ridge on the candidates",
        kind="reference",
        summary="kernel ridge regression, one output a label: the honest floor",
        nonlinear=True,
        random=True,
    )
    _variants = (
        replace(
            _facts,
            name="linear-ridge",
            title="Linear ridge on the candidates",
            summary="ridge regression on the features themselves, for methods without a kernel map",
            nonlinear=False,
            random=False,
            parameters={"feature_map": "linear", "gamma": 10.0},
        ),
    )

    def __init__(
        self,
        *,
        gamma: float = 1.0,
        feature_map: Any = "rbf",
        n_anchors: int | None = None,
        threshold: float | str = "auto",
        on_empty: str = "warn",
        random_state: Any = None,
    ) -> None:
        self.gamma = gamma
        self.feature_map = feature_map
        self.n_anchors = n_anchors
        self.threshold = threshold
        self.on_empty = on_empty
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_parameters(self, weights=("gamma",), optional_counts=("n_anchors",))

    def _fit(self, X: Any, Y: NDArray[Any]) -> NDArray[Any]:
        self.feature_map_: Any = make_pipeline(
            RangeScaler(),
            resolve_feature_map(self.feature_map, n_anchors=self.n_anchors, random_state=self.random_state),
        )
        mapped = as_dense(self.feature_map_.fit_transform(X), X.dtype)
        solve = ridge_factor(mapped, ridge=float(self.gamma))
        self.coef_: NDArray[Any] = solve(mapped.T @ Y)
        return mapped @ self.coef_

    def _scores(self, X: Any) -> NDArray[Any]:
        return as_dense(self.feature_map_.transform(X), X.dtype) @ self.coef_.astype(X.dtype, copy=False)
