"""PML-NI: a low-rank classifier and a sparse noise identifier that explain the candidates together.

Letters as in the paper, but every matrix of coefficients is D×c, with one column per label, so that scores are ``X W``:
H = W + S is the joint model, W the classifier, S the noise identifier, A the multiplier of that constraint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from skpml._docstrings import fill_docstring
from skpml.base import MethodFacts
from skpml.baselines._common import Array, History, LinearClassifier, Matrix, append
from skpml.linalg import GramSpectrum, nuclear_norm, one_blas, singular_value_threshold, soft_threshold

_FIRST_PENALTY = 1e-4
_LARGEST_PENALTY = 1e10
_PENALTY_GROWTH = 1.1
# W has settled at the current penalty μ if μ times its relative change is below this.
_SETTLED = 1e-5


def solve(
    X: Matrix, Y: Matrix, *, lam: float, beta: float, gamma: float, max_iter: int = 500, tol: float = 1e-7
) -> Bunch:
    """Minimize ``½‖Y − XH‖² + (λ/2)‖H‖² + β‖W‖* + γ‖S‖₁`` subject to H = W + S by inexact augmented Lagrangians.

    X are features with a constant column. The penalty μ of the constraint starts small and is raised only when W has
    settled. The problem is convex; H is unique, its split into W and S need not be. The published stop rule watches W
    alone (it must have settled, with ‖H − W − S‖ below ``tol`` times ‖H‖), so if S is not zero the last few digits of the
    result may still change.
    """
    with one_blas(X):
        gram = GramSpectrum(X)
        Z = X.T @ Y
        W, S, A = np.zeros_like(Z), np.zeros_like(Z), np.zeros_like(Z)
        mu = _FIRST_PENALTY
        history: History = {}
        for _ in range(max_iter):
            H = gram.solve(Z + mu * (W + S) + A, lam + mu)
            last_W, W = W, singular_value_threshold(H - S - A / mu, beta / mu)
            S = soft_threshold(H - W - A / mu, gamma / mu)
            size = float(np.linalg.norm(H)) or 1.0
            change = mu * float(np.linalg.norm(W - last_W)) / size
            gap = float(np.linalg.norm(H - W - S)) / size
            # At H = W + S, where the constraint holds, without the n rows.
            both = W + S
            objective = (
                0.5 * (float(np.vdot(Y, Y)) - 2 * float(np.vdot(Z, both)) + gram.squared_norm(both))
                + 0.5 * lam * float(np.vdot(both, both))
                + beta * nuclear_norm(W)
                + gamma * float(np.abs(S).sum())
            )
            append(history, objective=objective, gap=gap, change=change, penalty=mu)
            converged = gap < tol and change < _SETTLED
            if converged:
                break
            if change < _SETTLED:
                mu = min(_PENALTY_GROWTH * mu, _LARGEST_PENALTY)
            A = A + mu * (W + S - H)
    return Bunch(classifier=W, noise_identifier=S, history=history, converged=converged)


@fill_docstring
@dataclass(kw_only=True, repr=False, eq=False)
class PMLNI(LinearClassifier):
    """Partial multi-label learning with noisy label identification (PML-NI).

    Assumes that the features cause false candidates, and explains the candidates by two linear models at once: a
    low-rank W for the true labels, which depend on each other, and a sparse S for the noise, which few features cause.
    Only W predicts. Minimizes

        ½‖Y − XH‖² + (λ/2)‖H‖² + β‖W‖* + γ‖S‖₁  subject to  H = W + S,

    where ‖·‖* is the sum of singular values and X are the features, scaled to [−1, 1], with a constant.

    The algorithm, its constants and the weights are the published ones. Two things differ: features are scaled, as in
    published comparisons; and the threshold does not use the true labels of the training rows, which are unknown here.

    Parameters
    ----------
    lam : float, default=10.0
        Weight λ of the squared coefficients of the joint model. The paper chooses from 1, 10 and 100.
    beta : float, default=0.5
        Weight β of the sum of singular values of the classifier.
    gamma : float, default=0.5
        Weight γ of the absolute coefficients of the noise identifier, which is zero unless γ is below β: see the notes.
    %(threshold)s
    %(max_iter)s
    tol : float, default=1e-7
        Stop when ‖H − W − S‖ is smaller, relative to ‖H‖, and W has settled.
    %(on_empty)s

    Attributes
    ----------
    coef_ : ndarray of shape (n_features + 1, n_labels)
        W. The last row belongs to the constant.
    noise_coef_ : ndarray of shape (n_features + 1, n_labels)
        S.
    history_ : dict of ndarrays
        One value per iteration: the ``"objective"`` at H = W + S, the relative ``"gap"`` between H and W + S, the
        relative ``"change"`` of W times the penalty, and the ``"penalty"``. The objective need not fall in every
        iteration.
    %(iterations)s
    feature_map_ : Pipeline
        Scales the features and adds the constant.
    %(fitted)s

    Notes
    -----
    The sum of singular values of a matrix is never larger than the sum of its absolute values. If β ≤ γ, moving S into W
    therefore costs nothing, and the optimum has **S = 0**. With the published weights β = γ = 0.5 the noise identifier is
    zero, and the method is ridge regression on the candidates with a slight preference for low rank. For a non-zero
    identifier choose β well above γ (with β = 2, γ = 0.5 a few percent of S are non-zero on the emotions data).
    Convergence is slower then, and 500 iterations may not be enough.

    Nothing is random. There are no confidences, because the method does not judge single candidates.

    With n rows, d features and c labels, a fit takes O(nd·min(n, d)) once, O(cd·min(n, d) + c²d) per iteration, usually
    100 to 350 iterations, and O(nd + d·min(n, d) + cd) memory. Everything is computed in double precision.

    %(reference_and_data)s
    >>> from skpml.baselines import PMLNI
    >>> bool(PMLNI().fit(X, candidates).noise_coef_.any())
    False
    >>> bool(PMLNI(beta=5.0).fit(X, candidates).noise_coef_.any())
    True
    """

    lam: float = 10.0
    beta: float = 0.5
    gamma: float = 0.5
    threshold: float | str = "auto"
    max_iter: int = 500
    tol: float = 1e-7
    on_empty: str = "warn"

    _facts = MethodFacts(
        name="pml-ni",
        title="PML-NI",
        kind="baseline",
        summary="a low-rank classifier and a sparse identifier of noisy labels, fitted jointly",
        source="release",
        year=2022,
        reference="Xie, Huang. Partial Multi-Label Learning with Noisy Label Identification. IEEE TPAMI "
        "44(7):3676–3687, 2022.",
        comparison_threshold=0.5,
    )

    def _fit(self, X: Any, Y: Array) -> None:
        weights = {name: float(getattr(self, name)) for name in ("lam", "beta", "gamma", "tol")}
        solution = solve(self._map(X), Y.astype(np.float64, copy=False), max_iter=self.max_iter, **weights)
        self.coef_ = solution.classifier.astype(X.dtype)
        self.noise_coef_ = solution.noise_identifier.astype(X.dtype)
        self._record(solution.history, converged=solution.converged)
