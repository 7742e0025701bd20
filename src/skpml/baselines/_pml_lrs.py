"""PML-LRS: candidates are low-rank true labels plus sparse noise, and a low-rank linear map leads to the former."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline

from skpml._validation import check_parameters
from skpml.base import BasePMLClassifier, MethodFacts
from skpml.features import LinearMap, RangeScaler
from skpml.linalg import GramSpectrum, nuclear_norm, one_blas, singular_value_threshold, soft_threshold

__all__ = ["PMLLRS"]

Matrix = NDArray[np.float64]

_FIRST_PENALTY = 1e-3
_LARGEST_PENALTY = 1e6
_PENALTY_GROWTH = 1.1
# W and U stand still, as far as the present penalty is concerned, where μ times their change is below this share of ‖Y‖.
_STILL = 1e-4


@dataclass(frozen=True, kw_only=True)
class Solution:
    """What :func:`solve` leaves behind: W (D×c), U and V (n×c), a history with a value an iteration, how it ended."""

    coef: Matrix
    true_labels: Matrix
    noise: Matrix
    history: dict[str, list[float]]
    converged: bool


def solve(
    X: Matrix, Y: Matrix, *, gamma: float, beta: float, eta: float, max_iter: int = 1000, tol: float = 1e-6
) -> Solution:
    """Minimise ``½‖XW − U‖² + γ‖U‖* + β‖V‖₁ + η‖W‖*`` subject to Y = U + V, by alternating directions.

    The copies A of U and B of W carry the sums of singular values; L1, L2, L3 are the multipliers of Y = U + V, U = A and
    W = B, and μ is the penalty of all three. The problem is convex. Raising μ in every step freezes the variables short
    of the optimum, so it is raised only where W and U stand still.

    Parameters
    ----------
    X : (n, D)
        Features with their constant column.
    Y : (n, c)
        Candidates as 0.0 and 1.0.
    gamma, beta, eta : float
        γ, β and η, at least 0.
    max_iter, tol
        Stop where W and U stand still and no constraint is off by more than ``tol`` times ‖Y‖.
    """
    with one_blas(X):
        gram = GramSpectrum(X)
        W = np.zeros((X.shape[1], Y.shape[1]))
        U, V = Y, np.zeros_like(Y)
        L1, L2, L3 = np.zeros_like(Y), np.zeros_like(Y), np.zeros_like(W)
        mu, scale = _FIRST_PENALTY, float(np.linalg.norm(Y)) or 1.0
        history: dict[str, list[float]] = {"objective": [], "gap": [], "change": [], "penalty": []}
        converged = False
        while not converged and len(history["gap"]) < max_iter:
            last_W, last_U = W, U
            B = singular_value_threshold(W + L3 / mu, eta / mu)
            W = gram.solve(X.T @ U + mu * B - L3, mu)
            predicted = X @ W
            A = singular_value_threshold(U + L2 / mu, gamma / mu)
            U = (predicted + mu * A - L2 + mu * (Y - V) + L1) / (1 + 2 * mu)
            V = soft_threshold(Y - U + L1 / mu, beta / mu)
            gaps = (Y - U - V, U - A, W - B)
            gap = _largest_norm(gaps) / scale
            change = mu * _largest_norm((W - last_W, U - last_U)) / scale
            converged = gap < tol and change < _STILL
            history["objective"].append(
                0.5 * float(np.linalg.norm(predicted - U)) ** 2
                + gamma * nuclear_norm(U)
                + beta * float(np.abs(Y - U).sum())
                + eta * nuclear_norm(W)
            )
            history["gap"].append(gap)
            history["change"].append(change)
            history["penalty"].append(mu)
            L1, L2, L3 = (L + mu * G for L, G in zip((L1, L2, L3), gaps, strict=True))
            if change < _STILL:
                mu = min(_PENALTY_GROWTH * mu, _LARGEST_PENALTY)
    return Solution(coef=W, true_labels=U, noise=V, history=history, converged=converged)


def _largest_norm(matrices: tuple[Matrix, ...]) -> float:
    return max(float(np.linalg.norm(M)) for M in matrices)


class PMLLRS(BasePMLClassifier):
    """Partial multi-label learning by low-rank and sparse decomposition (PML-LRS).

    Splits the candidates Y into low-rank true labels U and sparse noise V, and asks a linear map W, itself of low rank,
    to lead from the features to U. Minimises

        ½‖XW − U‖² + γ‖U‖* + β‖V‖₁ + η‖W‖*  subject to  Y = U + V,

    where ‖·‖* is the sum of singular values and X holds the features, scaled to [−1, 1], and a constant.

    What is certain and what is not: the decomposition, the three norms and the weights are those that are published and
    commonly used; the scaling of the terms against one another, the penalty of the solver, the constant and the scaling
    of features are reconstructed. The penalty is raised only where the variables stand still, so that the optimum is
    reached. There are no published figures by which the reconstruction could be checked.

    Parameters
    ----------
    gamma : float, default=0.01
        Weight γ of the sum of singular values of the true labels.
    beta : float, default=0.1
        Weight β of the absolute noise. A residual beyond it is taken as noise: see the notes.
    eta : float, default=1.0
        Weight η of the sum of singular values of the classifier.
    threshold : float, "auto" or "non-candidates", default="auto"
        Scores above it are predicted; for the names see :mod:`skpml.base`. 0.5 is used in comparisons.
    max_iter : int, default=1000
    tol : float, default=1e-6
        Stop where no constraint is off by more, relative to ‖Y‖, and the variables stand still.
    on_empty : {"warn", "raise", "ignore"}, default="warn"
        What to do about rows without candidates (taken as having no label) and labels that are nobody's candidate.

    Attributes
    ----------
    confidences_ : ndarray of shape (n, c)
        U cut to [0, 1], and 0 outside the candidates.
    coef_ : ndarray of shape (d + 1, c)
        W. The last row belongs to the constant.
    threshold_ : float
    classes_ : ndarray of shape (c,)
        Label names.
    history_ : dict of ndarrays
        After every iteration: the ``"objective"`` at V = Y − U, the relative ``"gap"`` of the constraint that is farthest
        off, the relative ``"change"`` of W and U times the penalty, and the ``"penalty"``. The objective need not fall
        from one iteration to the next.
    n_iter_ : int
    converged_ : bool
    feature_map_ : fitted pipeline of scaler and constant
    n_features_in_ : int
    feature_names_in_ : ndarray, where X had names

    Notes
    -----
    With γ = 0 the noise can be eliminated, and what is left is regression on the candidates with Huber's loss: squared up
    to a residual of β, absolute beyond. With β = 0.1 nearly all residuals of 0/1 labels are beyond, so scores are close
    to medians rather than means: a rare label scores near 0 everywhere. Noise may also *add* labels in this model, as
    nothing keeps U below Y; the confidences show only what is left of the candidates.

    Nothing is random. With n rows, d features and c labels, a fit takes O(nd·min(n, d)) once and O(cnd + c²(n + d)) an
    iteration, usually 200 to 500 of them, and O(nd + d·min(n, d) + nc) memory. Everything is computed in double
    precision.

    References
    ----------
    L. Sun, S. Feng, T. Wang, C. Lang, Y. Jin. Partial Multi-Label Learning by Low-Rank and Sparse Decomposition. AAAI
    2019, pages 5016–5023.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from skpml.baselines._pml_lrs import PMLLRS
    >>> from skpml.noise import top_up
    >>> X, truth = make_multilabel_classification(300, random_state=0)
    >>> candidates = top_up(truth, 4, random_state=0)
    >>> model = PMLLRS().fit(X, candidates)
    >>> is_true, is_false = (truth == 1), (truth == 0) & (candidates == 1)
    >>> bool(model.confidences_[is_true].mean() > model.confidences_[is_false].mean())
    True
    """

    _facts = MethodFacts(
        name="pml-lrs",
        title="PML-LRS",
        kind="baseline",
        summary="candidates as low-rank labels plus sparse noise, with a low-rank classifier",
        confidences=True,
        source="paper",
        year=2019,
        reference="Sun, Feng, Wang, Lang, Jin. Partial Multi-Label Learning by Low-Rank and Sparse "
        "Decomposition. AAAI 2019, 5016–5023.",
        comparison_threshold=0.5,
    )

    def __init__(
        self,
        *,
        gamma: float = 0.01,
        beta: float = 0.1,
        eta: float = 1.0,
        threshold: float | str = "auto",
        max_iter: int = 1000,
        tol: float = 1e-6,
        on_empty: str = "warn",
    ) -> None:
        self.gamma = gamma
        self.beta = beta
        self.eta = eta
        self.threshold = threshold
        self.max_iter = max_iter
        self.tol = tol
        self.on_empty = on_empty

    def _check_parameters(self) -> None:
        check_parameters(self, weights=("gamma", "beta", "eta", "tol"), counts=("max_iter",))

    def _fit(self, X: Any, Y: NDArray[Any]) -> NDArray[Any]:
        self.feature_map_: Any = make_pipeline(RangeScaler(), LinearMap(intercept=True))
        # Single precision cannot tell when the constraints hold to the tolerance.
        mapped = self.feature_map_.fit_transform(X).astype(np.float64, copy=False)
        solution = solve(
            mapped,
            Y.astype(np.float64, copy=False),
            gamma=float(self.gamma),
            beta=float(self.beta),
            eta=float(self.eta),
            max_iter=self.max_iter,
            tol=float(self.tol),
        )
        self.coef_: NDArray[Any] = solution.coef.astype(X.dtype)
        self.confidences_: NDArray[Any] = np.clip(solution.true_labels, 0, 1).astype(X.dtype) * Y
        self._record(solution.history, converged=solution.converged)
        return (mapped @ solution.coef).astype(X.dtype, copy=False)

    def _scores(self, X: Any) -> NDArray[Any]:
        return self.feature_map_.transform(X) @ self.coef_.astype(X.dtype, copy=False)
