"""Ridge regression on labels that a decomposition recovers from the candidates, without features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline

from skpml._docstrings import fill_docstring
from skpml.base import BasePMLClassifier, MethodFacts
from skpml.features import RangeScaler, as_dense, resolve_feature_map
from skpml.linalg import ridge_factor
from skpml.modal_alignment._decomposition import low_rank_orthogonal, low_rank_sparse

Recovery = Literal["low-rank-orthogonal", "low-rank-sparse", "frequency"]


@fill_docstring
@dataclass(kw_only=True, repr=False, eq=False)
class RecoveredRidge(BasePMLClassifier):
    """Ridge regression from mapped features to recovered labels.

    The labels are recovered from the candidates alone. To compare decompositions: the classifier is the same for all.

    Parameters
    ----------
    recovery : {"low-rank-orthogonal", "low-rank-sparse", "frequency"}, default="low-rank-orthogonal"
        R of :func:`low_rank_orthogonal`, G of :func:`low_rank_sparse`, or, as a trivial recovery, the share of rows that
        have the candidate.
    weight : float, default=1.0
        Weight λ of the low-rank orthogonal decomposition, at least 0; or σ of the low-rank sparse one in multiples of
        ``1/√max(n, c)``, above 0. Not used by "frequency".
    gamma : float, default=1.0
        Weight of the squared coefficients, at least 0.
    %(feature_map)s
    %(map_anchors)s
    %(threshold)s
    %(on_empty)s
    %(anchor_random_state)s

    Attributes
    ----------
    recovered_ : ndarray of shape (n, c)
        What the classifier is fitted to.
    confidences_ : ndarray of shape (n, c)
        The recovered labels between 0 and 1, and 0 for non-candidates.
    coef_ : ndarray of shape (n_mapped_features, c)
        Scores are ``mapped @ coef_``.
    feature_map_ : Pipeline
        Scales and maps the features.
    %(iterations)s
    %(fitted)s

    See Also
    --------
    skpml.reference.CandidateRidge : The same classifier on the candidates themselves.

    Notes
    -----
    With n rows, a mapped features and c labels, a fit takes O(na² + a³ + nac) time and O(nc² + c³) for each iteration of
    the decomposition.

    Examples
    --------
    %(example_data)s
    >>> from skpml.modal_alignment import RecoveredRidge
    >>> RecoveredRidge(recovery="low-rank-sparse").fit(X, candidates).confidences_.shape
    (300, 5)
    """

    recovery: Recovery = "low-rank-orthogonal"
    weight: float = 1.0
    gamma: float = 1.0
    feature_map: Any = "rbf"
    n_anchors: int | None = None
    threshold: float | str = "auto"
    on_empty: str = "warn"
    random_state: Any = None

    _facts = MethodFacts(
        name="recovered-ridge",
        title="Ridge on recovered labels",
        kind="reference",
        summary="kernel ridge regression on labels that a decomposition recovers",
        confidences=True,
        nonlinear=True,
        random=True,
    )

    def _fit(self, X: Any, Y: NDArray[Any]) -> NDArray[Any]:
        self.recovered_ = self._recover(Y)
        self.confidences_ = np.clip(self.recovered_, 0, Y)
        feature_map = resolve_feature_map(
            self.feature_map, n_anchors=self.n_anchors, random_state=self.random_state
        )
        self.feature_map_: Any = make_pipeline(RangeScaler(), feature_map)
        mapped = as_dense(self.feature_map_.fit_transform(X), X.dtype)
        self.coef_: NDArray[Any] = ridge_factor(mapped, ridge=float(self.gamma))(mapped.T @ self.recovered_)
        return mapped @ self.coef_

    def _recover(self, Y: NDArray[Any]) -> NDArray[Any]:
        if self.recovery == "frequency":
            self.n_iter_, self.converged_ = 1, True
            return Y * Y.mean(axis=0)
        if self.recovery == "low-rank-sparse":
            # Accurate to far less than the differences between methods, in a tenth of the time.
            split = low_rank_sparse(Y, sparsity=self.weight / max(Y.shape) ** 0.5, tol=1e-4)
            recovered = split.low_rank
        else:
            split = low_rank_orthogonal(Y, low_rank_weight=self.weight)
            recovered = split.pseudo_labels
        self.n_iter_, self.converged_ = split.n_iter, split.converged
        return np.asarray(recovered)

    def _scores(self, X: Any) -> NDArray[Any]:
        return as_dense(self.feature_map_.transform(X), X.dtype) @ self.coef_.astype(X.dtype, copy=False)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.recovery == "low-rank-sparse" and self.weight == 0:
            raise ValueError('weight must be above 0 with recovery="low-rank-sparse", got 0.')
