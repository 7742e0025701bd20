"""Ridge regression on the candidates: the floor that a method has to beat."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline

from skpml._blocks import multiply_rows, transform_rows
from skpml._docstrings import fill_docstring
from skpml.base import BasePMLClassifier, MethodFacts
from skpml.features import RangeScaler, RBFAnchors, as_dense, fit_map, resolve_feature_map
from skpml.linalg import ridge_factor


@fill_docstring
@dataclass(kw_only=True, repr=False, eq=False)
class CandidateRidge(BasePMLClassifier):
    """Ridge regression from mapped features to the given labels, one output per label.

    ``coef = (ΦᵀΦ + γI)⁻¹ ΦᵀY``. Takes every candidate for true; fitted to true labels, as in
    ``Oracle(CandidateRidge())``, it is the ceiling.

    Parameters
    ----------
    gamma : float, default=1.0
        Weight of the squared coefficients, at least 0.
    %(feature_map)s
    %(map_anchors)s
    %(threshold)s
    %(on_empty)s
    %(anchor_random_state)s

    Attributes
    ----------
    coef_ : ndarray of shape (n_mapped_features, c)
        Scores are ``mapped @ coef_``.
    feature_map_ : Pipeline
        Scales and maps the features.
    %(fitted)s

    Notes
    -----
    With n rows, a mapped features and c labels, a fit takes O(na² + a³ + nac) time and O(na + a²) memory; a is at most
    3000 by default. Sparse features stay sparse with ``feature_map="rbf"``.

    Examples
    --------
    %(example_data)s
    >>> from skpml.reference import CandidateRidge
    >>> CandidateRidge().fit(X, candidates).predict(X).shape
    (300, 5)
    """

    gamma: float = 1.0
    feature_map: Any = "rbf"
    n_anchors: int | None = None
    threshold: float | str = "auto"
    on_empty: str = "warn"
    random_state: Any = None

    _facts = MethodFacts(
        name="ridge",
        title="Ridge on the candidates",
        kind="reference",
        summary="kernel ridge regression, one output per label: the floor",
        dense=False,
        nonlinear=True,
        random=True,
    )
    _variants = (
        replace(
            _facts,
            name="linear-ridge",
            title="Linear ridge on the candidates",
            summary="ridge regression on the features themselves, for methods without a kernel map",
            dense=True,
            nonlinear=False,
            random=False,
            parameters={"feature_map": "linear", "gamma": 10.0},
        ),
    )

    _takes_dask = True

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows and their candidate labels.

        Parameters
        ----------
        X : array, data frame or scipy sparse matrix of shape (n, d)
            Features.
        y : (n, c) matrix of 0 and 1 (array, sparse, data frame), list of n label sets, or n classes
            The candidates of each row.
        sample_weight : array of shape (n,) or None, default=None
            Weights of the rows, at least 0. A row of weight 2 counts as two rows, and one of weight 0 as none; exactly so
            if all rows are anchors, or with ``feature_map="linear"``. A transformer is fitted without weights.

        Returns
        -------
        self : CandidateRidge
            The fitted estimator.
        """
        return self._fit_weighted(X, y, sample_weight)

    def _fit(self, X: Any, Y: NDArray[Any]) -> NDArray[Any]:
        weights = self._weights
        feature_map = resolve_feature_map(
            self.feature_map, n_anchors=self.n_anchors, random_state=self.random_state
        )
        # Similarities to anchors need differences of rows alone, which do not need the shift.
        scaler = RangeScaler(keep_sparse=isinstance(feature_map, RBFAnchors))
        self.feature_map_: Any = make_pipeline(scaler, feature_map)
        if weights is None:
            scaled = transform_rows(X, scaler.fit(X).transform)
            mapped_rows = fit_map(feature_map, scaled, X.dtype)
            solve = mapped_rows.ridge_factor(ridge=float(self.gamma))
            _, (target,) = mapped_rows.visit(lambda rows, labels: ((), (rows.T @ labels,)), Y)
            self.coef_: NDArray[Any] = solve(target)
            (scores,), _ = mapped_rows.visit(lambda rows: ((rows @ self.coef_,), ()))
            return mapped_rows.from_rows(scores)
        is_weighted_map = isinstance(feature_map, RBFAnchors)
        options = {"rbfanchors__sample_weight": weights} if is_weighted_map else {}
        mapped = as_dense(self.feature_map_.fit_transform(X, **options), X.dtype)
        # A row that occurs k times is an anchor k times. Together, the copies have 1/k of the penalty of one anchor, as
        # if its column were √k times as long.
        length = np.ones(mapped.shape[1], X.dtype)
        if is_weighted_map:
            length[:-1] = np.sqrt(feature_map._anchor_weights)
        root = np.sqrt(weights).astype(X.dtype)[:, None]
        weighted = root * mapped * length
        solve = ridge_factor(weighted, ridge=float(self.gamma))
        self.coef_ = length[:, None] * solve(weighted.T @ (root * Y))
        return mapped @ self.coef_

    def _scores(self, X: Any) -> NDArray[Any]:
        coef = self.coef_.astype(X.dtype, copy=False)
        return multiply_rows(X, lambda rows: as_dense(self.feature_map_.transform(rows), X.dtype), coef)
