"""PML-LRS: candidates are low-rank true labels plus sparse noise, and a low-rank linear map predicts the former."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from skpml._docstrings import fill_docstring
from skpml.base import MethodFacts
from skpml.baselines._common import Array, History, LinearClassifier, Matrix, append
from skpml.linalg import GramSpectrum, nuclear_norm, one_blas, singular_value_threshold, soft_threshold

_FIRST_PENALTY = 1e-3
_LARGEST_PENALTY = 1e6
_PENALTY_GROWTH = 1.1
# W and U have settled at the current penalty μ if μ times their change is below this share of ‖Y‖.
_SETTLED = 1e-4


def solve(
    X: Matrix, Y: Matrix, *, gamma: float, beta: float, eta: float, max_iter: int = 1000, tol: float = 1e-6
) -> Bunch:
    """Minimize ``½‖XW − U‖² + γ‖U‖* + β‖V‖₁ + η‖W‖*`` subject to Y = U + V, by alternating directions.

    X are features with a constant column. The copies A of U and B of W carry the sums of singular values; L1, L2, L3 are
    the multipliers of Y = U + V, U = A and W = B, and μ is the penalty of all three. The problem is convex. Raising μ in
    every step freezes the variables short of the optimum, so it is raised only when W and U have settled. Stops when they
    have settled and no constraint is violated by more than ``tol`` times ‖Y‖.
    """
    with one_blas(X):
        gram = GramSpectrum(X)
        W = np.zeros((X.shape[1], Y.shape[1]))
        U, V = Y, np.zeros_like(Y)
        L1, L2, L3 = np.zeros_like(Y), np.zeros_like(Y), np.zeros_like(W)
        mu, scale = _FIRST_PENALTY, float(np.linalg.norm(Y)) or 1.0
        history: History = {}
        for _ in range(max_iter):
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
            objective = (
                0.5 * float(np.linalg.norm(predicted - U)) ** 2
                + gamma * nuclear_norm(U)
                + beta * float(np.abs(Y - U).sum())
                + eta * nuclear_norm(W)
            )
            append(history, objective=objective, gap=gap, change=change, penalty=mu)
            converged = gap < tol and change < _SETTLED
            if converged:
                break
            L1, L2, L3 = (L + mu * G for L, G in zip((L1, L2, L3), gaps, strict=True))
            if change < _SETTLED:
                mu = min(_PENALTY_GROWTH * mu, _LARGEST_PENALTY)
    return Bunch(coef=W, true_labels=U, noise=V, history=history, converged=converged)


def _largest_norm(matrices: tuple[Matrix, ...]) -> float:
    return max(float(np.linalg.norm(M)) for M in matrices)


@fill_docstring
@dataclass(kw_only=True, repr=False, eq=False)
class PMLLRS(LinearClassifier):
    """Partial multi-label learning by low-rank and sparse decomposition (PML-LRS).

    Splits the candidates Y into low-rank true labels U and sparse noise V, and fits a linear map W, also of low rank,
    from the features to U. Minimizes

        ½‖XW − U‖² + γ‖U‖* + β‖V‖₁ + η‖W‖*  subject to  Y = U + V,

    where ‖·‖* is the sum of singular values and X are the features, scaled to [−1, 1], with a constant.

    The decomposition, the three norms and the weights are published and commonly used; the relative scaling of the terms,
    the penalty of the solver, the constant and the scaling of features are reconstructed. There are no published figures
    to check the reconstruction against.

    Parameters
    ----------
    gamma : float, default=0.01
        Weight γ of the sum of singular values of the true labels.
    beta : float, default=0.1
        Weight β of the absolute noise. Residuals beyond it are treated as noise: see the notes.
    eta : float, default=1.0
        Weight η of the sum of singular values of the classifier.
    %(threshold)s
    %(max_iter)s
    tol : float, default=1e-6
        Stop when no constraint is violated by more, relative to ‖Y‖, and the variables have settled.
    %(on_empty)s

    Attributes
    ----------
    confidences_ : ndarray of shape (n_rows, n_labels)
        U clipped to [0, 1], and 0 outside the candidates.
    coef_ : ndarray of shape (n_features + 1, n_labels)
        W. The last row belongs to the constant.
    history_ : dict of ndarrays
        One value per iteration: the ``"objective"`` at V = Y − U, the relative ``"gap"`` of the most violated
        constraint, the relative ``"change"`` of W and U times the penalty, and the ``"penalty"``. The objective need
        not fall in every iteration.
    %(iterations)s
    feature_map_ : Pipeline
        Scales the features and adds the constant.
    %(fitted)s

    Notes
    -----
    With γ = 0 the noise can be eliminated, which leaves regression on the candidates with Huber's loss: squared up to a
    residual of β, absolute beyond. With β = 0.1 nearly all residuals of 0/1 labels are beyond, so scores are close to
    medians rather than means: a rare label scores near 0 everywhere. Noise may also *add* labels in this model, because
    nothing keeps U below Y; the confidences show only the candidates.

    Nothing is random. With n rows, d features and c labels, a fit takes O(nd·min(n, d)) once, O(cnd + c²(n + d)) per
    iteration, usually 200 to 500 iterations, and O(nd + d·min(n, d) + nc) memory. Everything is computed in double
    precision.

    %(reference_and_data)s
    >>> from skpml.baselines import PMLLRS
    >>> model = PMLLRS().fit(X, candidates)
    >>> is_true, is_false = (truth == 1), (truth == 0) & (candidates == 1)
    >>> bool(model.confidences_[is_true].mean() > model.confidences_[is_false].mean())
    True
    """

    gamma: float = 0.01
    beta: float = 0.1
    eta: float = 1.0
    threshold: float | str = "auto"
    max_iter: int = 1000
    tol: float = 1e-6
    on_empty: str = "warn"

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

    def _fit(self, X: Any, Y: Array) -> Array:
        mapped = self._map(X)
        weights = {name: float(getattr(self, name)) for name in ("gamma", "beta", "eta", "tol")}
        solution = solve(mapped, Y.astype(np.float64, copy=False), max_iter=self.max_iter, **weights)
        self.coef_ = solution.coef.astype(X.dtype)
        self.confidences_ = np.clip(solution.true_labels, 0, 1).astype(X.dtype) * Y
        self._record(solution.history, converged=solution.converged)
        return (mapped @ solution.coef).astype(X.dtype, copy=False)
