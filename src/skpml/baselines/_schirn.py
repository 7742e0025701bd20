"""Schirn: sparse binary noise, and predictions of high rank.

Letters as in the class docstring: X mapped features (n×h), C candidates, N noise and A = XW (n×c), W (h×c), and Λ the
multiplier of that constraint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from skpml._docstrings import fill_docstring
from skpml.base import MethodFacts
from skpml.baselines._common import (
    Array,
    History,
    MappedClassifier,
    Matrix,
    append,
    leave_out_lowest,
    square,
)
from skpml.linalg import GramSpectrum, nuclear_norm, one_blas

_FIRST_PENALTY = 1e-4
_LARGEST_PENALTY = 10.0
_PENALTY_GROWTH = 1.1
# Singular values below this share of the largest are rounding errors of a Gram matrix; their directions are arbitrary.
_SMALLEST_SHARE = 1e-7


def solve(
    X: Matrix, C: Matrix, *, alpha: float, beta: float, lam: float, max_iter: int = 100, tol: float = 1e-3
) -> Bunch:
    """Minimize ``‖XW − (C − N)‖² + α‖N‖₁ − 2β‖XW‖* + λ‖W‖²`` by the published steps of an augmented Lagrangian.

    N is 0 or 1 and at most C. Starts from A = C. The penalty μ of the constraint XW = A grows in every iteration. Stops
    when N no longer changes and ‖XW − A‖ is at most ``tol`` times ‖A‖.
    """
    with one_blas(X):
        gram, rows = GramSpectrum(X), leave_out_lowest(X)
        is_candidate = C > 0
        A, N, multiplier = C, np.zeros_like(C), np.zeros_like(C)
        mu = _FIRST_PENALTY
        history: History = {}
        for _ in range(max_iter):
            W = gram.solve(rows.T @ (A - multiplier / mu), 2 * lam / mu)
            predicted = rows @ W
            last_N, N = N, (is_candidate & (C - A - alpha / 2 > 0.5)).astype(C.dtype)
            free = (2 * (C - N) + multiplier + mu * predicted) / (2 + mu)
            A = raise_singular_values(free, 2 * beta / (2 + mu))
            gap = float(np.linalg.norm(predicted - A)) / (float(np.linalg.norm(A)) or 1.0)
            objective = (
                square(predicted - C + N)
                + alpha * float(N.sum())
                - 2 * beta * nuclear_norm(predicted)
                + lam * square(W)
            )
            append(history, objective=objective, gap=gap, penalty=mu)
            converged = gap <= tol and np.array_equal(N, last_N)
            if converged:
                break
            multiplier = multiplier + mu * (predicted - A)
            mu = min(_PENALTY_GROWTH * mu, _LARGEST_PENALTY)
    return Bunch(coef=W, scores=predicted, noise=N, history=history, converged=converged)


def raise_singular_values(B: Matrix, tau: float) -> Matrix:
    """Compute ``argmin_A ½‖A − B‖² − τ‖A‖*``: each singular value of B that is not zero, plus τ.

    With ``BᵀB = E diag(s²) Eᵀ`` the result is ``B E diag(1 + τ/s) Eᵀ``. Along a zero singular value every direction is
    as good, and none is taken.
    """
    if tau == 0:
        return B
    wide = B.shape[0] < B.shape[1]
    squares, vectors = np.linalg.eigh(B @ B.T if wide else B.T @ B)
    values = np.sqrt(np.maximum(squares, 0))
    kept = values > _SMALLEST_SHARE * values[-1]
    factor = np.where(kept, 1 + tau / np.where(kept, values, 1), 0)
    raising = (vectors * factor) @ vectors.T
    return raising @ B if wide else B @ raising


@fill_docstring
@dataclass(kw_only=True, repr=False, eq=False)
class Schirn(MappedClassifier):
    """Sparse noise and high-rank predictions (Schirn).

    Labels of many rows are of full rank, so the method prefers predictions of high rank, where others ask for low rank,
    and explains false candidates by sparse noise N. Minimizes by an augmented Lagrangian with A = XW

        ‖XW − (C − N)‖² + α‖N‖₁ − β‖XW‖* + λ‖W‖²

    over W and N (0 or 1, and 0 outside the candidates C), where ‖·‖* is the sum of singular values and X are the mapped
    features.

    The steps, the penalty and the number of iterations are published, and ranges of α and β. The start, λ, the constant
    and the scaling of features are ours.

    Parameters
    ----------
    alpha : float, default=0.5
        Weight α of the noise: a candidate is removed where its score is below (1 − α)/2. The authors choose from
        [0.1, 2].
    beta : float, default=0.03
        Weight β of the sum of singular values. The authors choose from [0.01, 0.1].
    lam : float, default=10.0
        Weight λ of the squared coefficients, above 0. There is no published value; this one is that of NLR.
    %(linear_feature_map)s
    %(map_anchors)s
    %(threshold)s
    %(max_iter)s
    tol : float, default=1e-3
        Stop when ‖XW − A‖ is at most this, relative to ‖A‖, and N no longer changes.
    %(on_empty)s
    %(anchor_random_state)s

    Attributes
    ----------
    confidences_ : ndarray of shape (n_rows, n_labels)
        XW clipped to [0, 1], and 0 outside the candidates.
    noise_ : ndarray of bool of shape (n_rows, n_labels)
        N: candidates that were removed.
    coef_ : ndarray of shape (n_mapped_features, n_labels)
        W; scores are ``mapped @ coef_``.
    history_ : dict of ndarrays
        One value per iteration: the ``"objective"`` at A = XW, the relative ``"gap"`` between XW and A, and the
        ``"penalty"``. The objective need not fall in every iteration.
    %(iterations)s
    feature_map_ : Pipeline
        Scales and maps the features.
    %(fitted)s

    Notes
    -----
    With β = 0 and nothing removed the optimum is ridge regression on the candidates with weight λ.

    The published step for A adds 2β/(2 + μ) to the singular values, for a penalty μ. It is the minimum for 2β in place
    of β, and ``history_["objective"]`` counts 2β. Singular values that are zero stay zero, because no direction is
    better than another: a label that is not a candidate of any row scores 0.

    With n rows, h mapped features and c labels, a fit takes O(nh·min(n, h)) once, O(nhc + h²c + nc² + c³) per iteration,
    and O(nh + h·min(n, h) + nc) memory: the singular values of (n, c) matrices come from the eigenvalues of (c, c)
    ones. Everything is computed in double precision.

    %(reference_and_data)s
    >>> from skpml.baselines import Schirn
    >>> model = Schirn(alpha=0.1).fit(X, candidates)
    >>> is_false = (candidates == 1) & (truth == 0)
    >>> bool(is_false[model.noise_].mean() > is_false[candidates == 1].mean())
    True
    """

    alpha: float = 0.5
    beta: float = 0.03
    lam: float = 10.0
    feature_map: Any = "linear"
    n_anchors: int | None = None
    threshold: float | str = "auto"
    max_iter: int = 100
    tol: float = 1e-3
    on_empty: str = "warn"
    random_state: Any = None

    _facts = MethodFacts(
        name="schirn",
        title="Schirn",
        kind="baseline",
        summary="sparse binary noise, and predictions of high rank",
        confidences=True,
        source="paper",
        year=2024,
        reference="Schirn: partial multi-label learning with sparse noise and predictions of high rank. 2024.",
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.lam == 0:
            raise ValueError("lam must be above 0: without it the coefficients are not unique.")

    def _fit(self, X: Any, Y: Array) -> Array:
        weights = {name: float(getattr(self, name)) for name in ("alpha", "beta", "lam", "tol")}
        solution = solve(self._map(X), Y.astype(np.float64, copy=False), max_iter=self.max_iter, **weights)
        self.coef_ = solution.coef.astype(X.dtype)
        self.noise_: Array = solution.noise > 0
        scores = solution.scores.astype(X.dtype, copy=False)
        self.confidences_ = np.clip(scores, 0, 1) * Y
        self._record(solution.history, converged=solution.converged)
        return scores

    def _targets(self) -> Array:
        # Candidates that were not removed; the confidences are scores themselves.
        return (~self.noise_).astype(np.float64)
