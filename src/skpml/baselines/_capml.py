"""CAPML: clusters of rows, matched to labels, say how reliable each candidate is; reconstructed from its outline.

Letters as in the class docstring, with rows for instances: X scaled features (n×d), Φ mapped features (n×h), F
memberships in clusters (n×c), M centers and O label prototypes (c×d), R regressed labels (n×c), W classifier (h×c).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax
from sklearn.metrics import euclidean_distances
from sklearn.utils import Bunch

from skpml._docstrings import fill_docstring
from skpml.base import MethodFacts
from skpml.baselines._common import Array, History, MappedClassifier, Matrix, append, square
from skpml.linalg import one_blas

_MOST_CLUSTER_STEPS = 300
# Clusters have settled if no membership changes by more.
_SETTLED = 1e-4
# Smooths the lengths of rows of W, which have no slope at 0.
_SMALLEST_LENGTH = 1e-6


def cluster_rows(X: Any, C: Matrix, temperature: float) -> Matrix:
    """Find the centers M of fuzzy clusters with an entropy term, one per label, starting from the candidates of each row.

    Minimizes ``Σ_ij F_ij ‖x_i − m_j‖² + λ Σ_ij F_ij log F_ij`` with rows of F that sum to 1. Labels must have candidates.
    """
    F = C / np.maximum(C.sum(axis=1, keepdims=True), 1)
    for _ in range(_MOST_CLUSTER_STEPS):
        M = weighted_means(X, F)
        last_F, F = F, softmax(-euclidean_distances(X, M, squared=True) / temperature, axis=1)
        if np.abs(F - last_F).max() <= _SETTLED:
            break
    return weighted_means(X, F)


def weighted_means(X: Any, weights: Matrix) -> Matrix:
    """Compute ``m_j = Σ_i F_ij x_i / Σ_i F_ij``; a cluster that has lost all rows is at the origin."""
    total = weights.sum(axis=0)[:, None]
    return np.asarray(X.T @ weights).T / np.where(total > 0, total, 1)


def match_clusters(M: Matrix, prototypes: Matrix) -> NDArray[np.intp]:
    """Find the cluster of each label: the permutation of centers with the least ``Σ_j ‖m_π(j) − o_j‖²``."""
    _, clusters = linear_sum_assignment(euclidean_distances(prototypes, M, squared=True))
    return np.asarray(clusters)


def reliability_of_candidates(X: Any, C: Matrix, temperature: float) -> Matrix:
    """Compute Rel (n×c): between 0 and 1 on the candidates, 1 elsewhere.

    Memberships in the clusters of the candidates, divided by the largest of the row, times 1 − (k − 1)/c for k
    candidates.
    """
    n_labels = C.shape[1]
    used = C.any(axis=0)
    reliability = np.ones_like(C)
    if not used.any():
        return reliability
    C = C[:, used]
    M = cluster_rows(X, C, temperature)
    M = M[match_clusters(M, weighted_means(X, C))]
    squared = euclidean_distances(X, M, squared=True)
    nearest = np.where(C > 0, squared, np.inf).min(axis=1, keepdims=True)
    # Quotients of memberships, without memberships of far rows, which would be lost to underflow.
    quotient = np.exp(-np.maximum(squared - nearest, 0) / temperature)
    fewer = 1 - (C.sum(axis=1, keepdims=True) - 1) / n_labels
    reliability[:, used] = np.where(C > 0, quotient * fewer, 1)
    return reliability


def solve(
    mapped: Matrix,
    C: Matrix,
    reliability: Matrix,
    *,
    alpha: float,
    beta: float,
    max_iter: int = 100,
    tol: float = 1e-4,
) -> Bunch:
    """Minimize ``‖Rel∘(R − C)‖² + ‖R − ΦW‖² + α‖R‖₁ + β‖W‖₂,₁`` over R ≥ 0 and W in turns.

    The problem is convex. W is a ridge regression whose weights are the inverse lengths of the rows of the last W, which
    does not raise the objective. Stops when the objective falls relatively by less than ``tol``.
    """
    with one_blas(mapped):
        gram = mapped.T @ mapped
        pull = reliability**2
        lengths, R = np.ones(len(gram)), C
        history: History = {}
        converged = False
        for _ in range(max_iter):
            W = _solve_ridge(gram, beta / 2 / lengths, mapped.T @ R)
            lengths = np.sqrt(np.einsum("ij,ij->i", W, W) + _SMALLEST_LENGTH**2)
            scores = mapped @ W
            R = np.maximum((pull * C + scores - alpha / 2) / (pull + 1), 0)
            losses = {
                "candidates": square(reliability * (R - C)),
                "classifier": square(R - scores),
                "sparsity": alpha * float(R.sum()),
                "coefficients": beta * float(lengths.sum()),
            }
            append(history, **losses, objective=sum(losses.values()))
            if len(history["objective"]) > 1:
                before, now = history["objective"][-2:]
                converged = before - now <= tol * before
                if converged:
                    break
    return Bunch(coef=W, scores=scores, labels=R, history=history, converged=converged)


def _solve_ridge(gram: Matrix, weights: Matrix, target: Matrix) -> Matrix:
    system = gram.copy()
    np.einsum("ii->i", system)[...] += weights
    factor = scipy.linalg.cho_factor(system, lower=True, overwrite_a=True, check_finite=False)
    return np.asarray(scipy.linalg.cho_solve(factor, target, check_finite=False))


@fill_docstring
@dataclass(kw_only=True, repr=False, eq=False)
class CAPML(MappedClassifier):
    """Cluster alignment for partial multi-label learning (CAPML), a reconstruction.

    Clusters of rows show which of its candidates a row belongs to. The method has two stages.

    1. Fuzzy clustering with as many clusters as labels, memberships ``F_ij ∝ exp(−‖x_i − m_j‖²/λ)`` in clusters with
       centers M, starting from the candidates C. Each cluster is matched to a label by ``min ‖MP − OH‖²`` over
       permutations P and orthogonal H, where O are the means of the rows with each candidate. FP then says how reliable
       each candidate is: Rel.
    2. Sparse regression: ``min ‖Rel∘(R − C)‖² + ‖R − ΦW‖² + α‖R‖₁ + β‖W‖₂,₁`` over R ≥ 0 and W, where ‖W‖₂,₁ is the sum
       of the lengths of the rows of W and Φ are mapped features. Only W predicts.

    The structure, λ, the ranges of α and β and the Gaussian map are published; the rest is a reconstruction. Ours are:
    the distances (of features scaled to [−1, 1], not divided by anything); Rel, which is FP on the candidates divided by
    the largest of the row, times 1 − (k − 1)/c for k candidates of c labels (known is a scaling of each row to [0, 1],
    and less for rows with many candidates); α‖R‖₁ (another account of the method has α‖C − R‖₁); the width of the map,
    that of :class:`~skpml.features.RBFAnchors`; and the solver. Judge the method of the paper by the paper's own figures.

    Parameters
    ----------
    alpha : float, default=0.01
        Weight α of the regressed labels. The authors choose from 0.001 to 100. A candidate of reliability r that nothing
        else speaks for or against settles at 1 − α/(2r²): the default leaves ½ of it down to r = 0.1, and values above 1
        leave nothing of most candidates.
    beta : float, default=1.0
        Weight β of the lengths of the rows of W, above 0. The authors choose from 0.001 to 100.
    temperature : float, default=0.5
        Weight λ of the entropy of the memberships, above 0. Memberships are nearly 0 or 1 if it is small. Above twice the
        largest variance of the features in any direction, all clusters melt into one, and all candidates of a row are
        equally reliable.
    %(feature_map)s
    %(map_anchors)s
    %(threshold)s
    %(max_iter)s
    tol : float, default=1e-4
        Stop when the objective of the regression falls relatively by less.
    %(on_empty)s
    %(anchor_random_state)s

    Attributes
    ----------
    confidences_ : ndarray of shape (n_rows, n_labels)
        R, at most 1, and 0 outside the candidates.
    reliability_ : ndarray of shape (n_rows, n_labels)
        Rel: between 0 and 1 on the candidates, 1 elsewhere.
    coef_ : ndarray of shape (n_mapped_features, n_labels)
        W; scores are ``mapped @ coef_``.
    %(objective_history)s
    %(iterations)s
    feature_map_ : Pipeline
        Scales and maps the features.
    %(fitted)s

    Notes
    -----
    The best H for a permutation P is the polar factor of OᵀM times P, with which ‖MP − OH‖² is the same for every P. H
    therefore does not help to choose P: alternating from H = I ends after one step, at the P that brings the centers
    nearest to the prototypes. Only this step is computed.

    The reliability is a weight, not a target: a candidate of reliability 0 is not called false, but left to the
    classifier. Its authors say that the method fails where a label has several clusters. With the published λ it is far
    below ridge regression on the emotions data, because clusters there are not labels; tuning without true labels
    (:func:`~skpml.model_selection.select_parameters`) over ``temperature`` then prefers clusters that have melted.

    With n rows, d features, h mapped features and c labels, a fit takes O(ndc) for each of up to 300 steps of the
    clustering, O(nh²) once and O(h³ + nhc) for each iteration of the regression; memory is O(nh + h²).

    %(reference_and_data)s
    >>> from skpml.baselines import CAPML
    >>> model = CAPML(random_state=0).fit(X, candidates)
    >>> bool(model.reliability_.min() >= 0), bool(model.reliability_.max() <= 1)
    (True, True)
    """

    alpha: float = 0.01
    beta: float = 1.0
    temperature: float = 0.5
    feature_map: Any = "rbf"
    n_anchors: int | None = None
    threshold: float | str = "auto"
    max_iter: int = 100
    tol: float = 1e-4
    on_empty: str = "warn"
    random_state: Any = None

    _facts = MethodFacts(
        name="capml",
        title="CAPML (reconstruction)",
        kind="baseline",
        summary="clusters matched to labels say how reliable candidates are; a sparse regression weighted by it",
        confidences=True,
        dense=False,
        nonlinear=True,
        random=True,
        source="abstract",
        year=2025,
        reference="CAPML: cluster alignment for partial multi-label learning. NeurIPS 2025.",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("beta", "temperature"):
            if getattr(self, name) == 0:
                raise ValueError(f"{name} must be above 0, got 0.")

    def _fit(self, X: Any, Y: Array) -> Array:
        mapped, C = self._map(X), Y.astype(np.float64, copy=False)
        scaled = self.feature_map_[0].transform(X).astype(np.float64)
        reliability = reliability_of_candidates(scaled, C, float(self.temperature))
        weights = {name: float(getattr(self, name)) for name in ("alpha", "beta", "tol")}
        solution = solve(mapped, C, reliability, max_iter=self.max_iter, **weights)
        self.coef_ = solution.coef.astype(X.dtype)
        self.reliability_: Array = reliability.astype(X.dtype)
        self.confidences_ = np.minimum(solution.labels, 1).astype(X.dtype) * Y
        self._record(solution.history, converged=solution.converged)
        return solution.scores.astype(X.dtype, copy=False)
