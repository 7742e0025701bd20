"""fPML: labels and features share a low-rank description of the rows, and a classifier learns what it says of the labels.

Letters: G (n×r) describes the rows, B (r×c) leads from there to the labels, E (r×D) to the features, W (D×c) is the
classifier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline

from skpml.base import BasePMLClassifier
from skpml.features import LinearMap, RangeScaler
from skpml.linalg import one_blas, ridge_factor
from skpml.validation import check_parameters

__all__ = ["FPML"]

Matrix = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Solution:
    """What :func:`solve` leaves behind: W (D×c), GB (n×c), a history with a value an iteration, how it ended."""

    coef: Matrix
    label_reconstruction: Matrix
    history: dict[str, list[float]]
    converged: bool


def solve(
    X: Matrix,
    Y: Matrix,
    *,
    lam1: float,
    lam2: float,
    lam3: float,
    factor_weight: float,
    rank: int,
    max_iter: int = 100,
    tol: float = 1e-4,
) -> Solution:
    """Minimise ``‖Y − GB‖² + λ1‖X − GE‖² + λ2‖XW − GB‖² + λ3‖W‖² + ω(‖G‖² + ‖B‖² + ‖E‖²)``, one block at a time.

    Every block has a closed form, so the objective never rises. The start is the best approximation of Y of the given
    rank, and the ridge regression on it; turning G together with B and E does not change anything, so it does not matter
    which singular vectors the library returns.

    Parameters
    ----------
    X : (n, D)
        Features with their constant column.
    Y : (n, c)
        Candidates as 0.0 and 1.0.
    lam1, lam2, lam3, factor_weight : float
        λ1 at least 0; λ2, λ3 and ω above 0.
    rank : int
        r, at most min(n, c).
    max_iter, tol
        Stop where the objective falls relatively by less than ``tol``.
    """
    with one_blas(X):
        regress = ridge_factor(X, ridge=lam3 / lam2)
        left, values, right = scipy.linalg.svd(Y, full_matrices=False)
        roots = np.sqrt(values[:rank])
        G, B = left[:, :rank] * roots, roots[:, None] * right[:rank]
        predicted = X @ regress(X.T @ (G @ B))
        ridge = factor_weight * np.eye(rank)
        history: dict[str, list[float]] = {"objective": []}
        converged, last = False, np.inf
        while not converged and len(history["objective"]) < max_iter:
            gram = G.T @ G
            B = _positive_solve((1 + lam2) * gram + ridge, G.T @ (Y + lam2 * predicted))
            E = _positive_solve(lam1 * gram + ridge, lam1 * (G.T @ X))
            G = _positive_solve(
                (1 + lam2) * B @ B.T + lam1 * E @ E.T + ridge,
                B @ (Y + lam2 * predicted).T + lam1 * E @ X.T,
            ).T
            reconstruction = G @ B
            W = regress(X.T @ reconstruction)
            predicted = X @ W
            value = (
                _squared_norm(Y - reconstruction)
                + lam1 * _squared_norm(X - G @ E)
                + lam2 * _squared_norm(predicted - reconstruction)
                + lam3 * _squared_norm(W)
                + factor_weight * sum(_squared_norm(M) for M in (G, B, E))
            )
            converged, last = last - value < tol * abs(value), value
            history["objective"].append(value)
    return Solution(coef=W, label_reconstruction=reconstruction, history=history, converged=converged)


def _positive_solve(A: Matrix, M: Matrix) -> Matrix:
    solution: Matrix = scipy.linalg.solve(A, M, assume_a="pos")
    return solution


def _squared_norm(M: Matrix) -> float:
    return float(np.vdot(M, M))


class FPML(BasePMLClassifier):
    """Feature-induced partial multi-label learning (fPML).

    Describes each row by a few latent numbers G from which both its labels (GB) and its features (GE) can be told; what
    features do not bear out drops out of GB, which thus says how far each candidate is believed. A linear classifier W
    learns GB at the same time. Minimises, by alternating closed forms,

        ‖Y − GB‖² + λ1(c/D)‖X − GE‖² + λ2‖XW − GB‖² + λ3‖W‖² + ω(‖G‖² + ‖B‖² + ‖E‖²),

    where X holds the D − 1 features, scaled to [−1, 1], and a constant.

    This is a **reconstruction**. Certain are the idea and the values 1, 1 and 10 of the λ. The formulas are ours, and
    three choices in them were made so that clean candidates of few rows are learnt at all. Under the plainest reading (λ3
    on all four matrices, D features outvoting c labels, half as many latent numbers as labels) they are not: the labels
    of 60 rows have singular values below λ3, and vanish from G. So ω stands apart from λ3, the features together weigh as
    much as the labels, and there are as many latent numbers as labels. The plainest reading is had with
    ``factor_weight=lam3``, ``lam1=D/c`` and ``rank=ceil(c/2)``. Results differ from the published ones, as a rule
    upwards: do not quote them as those of the authors' program.

    Parameters
    ----------
    lam1 : float, default=1.0
        Weight λ1 of the features, all together, against the labels.
    lam2 : float, default=1.0
        Weight λ2 of the misfit of the classifier, above 0.
    lam3 : float, default=10.0
        Weight λ3 of the squared coefficients of the classifier, above 0.
    factor_weight : float, default=1.0
        Weight ω of the squared entries of G, B and E, above 0. Directions of the labels whose singular value is small
        against it are left out of GB.
    rank : int or None, default=None
        Latent numbers of a row; None is the number of labels. At most the number of labels or of rows is used.
    threshold : float, "auto" or "non-candidates", default=0.5
        Scores above it are predicted. "auto" and "non-candidates" estimate it without true labels; see
        :mod:`skpml.threshold`.
    max_iter : int, default=100
    tol : float, default=1e-4
        Stop where the objective falls relatively by less.
    empty_rows, empty_labels : {"error", "warn", "ignore"}, default="warn" and "error"
        What to do about rows without candidates (taken as having no label) and labels that are nobody's candidate.

    Attributes
    ----------
    confidences_ : ndarray of shape (n, c)
        GB cut to [0, 1], and 0 outside the candidates.
    coef_ : ndarray of shape (n_features_in_ + 1, c)
        W. The last row belongs to the constant.
    rank_ : int
    threshold_ : float
    classes_ : ndarray of shape (c,)
        Label names.
    history_ : dict of ndarrays
        The ``"objective"`` after every iteration; it never rises.
    n_iter_ : int
    converged_ : bool
    feature_map_ : fitted pipeline of scaler and constant
    n_features_in_ : int
    feature_names_in_ : ndarray, where X had names

    Notes
    -----
    Nothing is random: the start is the singular value decomposition of Y. With n rows, d features, c labels and rank r, a
    fit takes O(nd² + d³ + nc·min(n, c)) once and O(n(d + c)r + d²c + r³) an iteration, usually 10 to 40 of them, and
    O(n(d + c) + d²) memory. Everything is computed in double precision.

    References
    ----------
    G. Yu, X. Chen, C. Domeniconi, J. Wang, Z. Li, Z. Zhang, X. Wu. Feature-Induced Partial Multi-Label Learning. ICDM
    2018, pages 1398–1403.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from skpml.baselines.fpml import FPML
    >>> from skpml.noise import top_up
    >>> X, truth = make_multilabel_classification(300, random_state=0)
    >>> candidates = top_up(truth, 4, random_state=0)
    >>> model = FPML().fit(X, candidates)
    >>> is_true, is_false = (truth == 1), (truth == 0) & (candidates == 1)
    >>> bool(model.confidences_[is_true].mean() > model.confidences_[is_false].mean())
    True
    """

    def __init__(
        self,
        *,
        lam1: float = 1.0,
        lam2: float = 1.0,
        lam3: float = 10.0,
        factor_weight: float = 1.0,
        rank: int | None = None,
        threshold: float | str = 0.5,
        max_iter: int = 100,
        tol: float = 1e-4,
        empty_rows: str = "warn",
        empty_labels: str = "error",
    ) -> None:
        self.lam1 = lam1
        self.lam2 = lam2
        self.lam3 = lam3
        self.factor_weight = factor_weight
        self.rank = rank
        self.threshold = threshold
        self.max_iter = max_iter
        self.tol = tol
        self.empty_rows = empty_rows
        self.empty_labels = empty_labels

    def _fit(self, X: Any, Y: NDArray[Any]) -> NDArray[Any]:
        self._check_parameters()
        self.feature_map_: Any = make_pipeline(RangeScaler(), LinearMap(intercept=True))
        mapped = self.feature_map_.fit_transform(X).astype(np.float64, copy=False)
        self.rank_: int = min(self.rank or Y.shape[1], *Y.shape)
        solution = solve(
            mapped,
            Y.astype(np.float64, copy=False),
            lam1=float(self.lam1) * Y.shape[1] / mapped.shape[1],
            lam2=float(self.lam2),
            lam3=float(self.lam3),
            factor_weight=float(self.factor_weight),
            rank=self.rank_,
            max_iter=self.max_iter,
            tol=float(self.tol),
        )
        self.coef_: NDArray[Any] = solution.coef.astype(X.dtype)
        self.confidences_: NDArray[Any] = np.clip(solution.label_reconstruction, 0, 1).astype(X.dtype) * Y
        self._record(solution.history, converged=solution.converged)
        return (mapped @ solution.coef).astype(X.dtype, copy=False)

    def _scores(self, X: Any) -> NDArray[Any]:
        return self.feature_map_.transform(X) @ self.coef_.astype(X.dtype, copy=False)

    def _check_parameters(self) -> None:
        weights = ("lam1", "lam2", "lam3", "factor_weight", "tol")
        check_parameters(self, weights=weights, counts=("max_iter",), optional_counts=("rank",))
        for name in ("lam2", "lam3", "factor_weight"):
            if getattr(self, name) == 0:
                raise ValueError(f"{name} must be above 0, got 0.")
