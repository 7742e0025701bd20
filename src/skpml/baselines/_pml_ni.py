"""PML-NI: a low-rank classifier and a sparse noise identifier that explain the candidates together.

Letters as in the paper, but every matrix of coefficients is D×c, one column a label, so that scores are ``X W``:
H = W + S is the joint model, W the classifier, S the noise identifier, A the multiplier of that constraint.
"""

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

__all__ = ["PMLNI"]

Matrix = NDArray[np.float64]

_FIRST_PENALTY = 1e-4
_LARGEST_PENALTY = 1e10
_PENALTY_GROWTH = 1.1
# W stands still, as far as the present penalty is concerned, where μ times its relative change is below this.
_STILL = 1e-5


@dataclass(frozen=True, kw_only=True)
class Solution:
    """What :func:`solve` leaves behind: W and S (both D×c), a history with a value an iteration, and how it ended."""

    classifier: Matrix
    noise_identifier: Matrix
    history: dict[str, list[float]]
    converged: bool


def solve(
    X: Matrix, Y: Matrix, *, lam: float, beta: float, gamma: float, max_iter: int = 500, tol: float = 1e-7
) -> Solution:
    """Minimise ``½‖Y − XH‖² + (λ/2)‖H‖² + β‖W‖* + γ‖S‖₁`` subject to H = W + S by inexact augmented Lagrangians.

    The penalty μ of the constraint starts small and is raised only where W stands still at its present value. The problem
    is convex; H is unique, how it splits into W and S need not be. The published rule for stopping watches W alone, so
    where S is not empty the last few digits of the result are not settled.

    Parameters
    ----------
    X : (n, D)
        Features with their constant column.
    Y : (n, c)
        Candidates as 0.0 and 1.0.
    lam, beta, gamma : float
        λ, β and γ, at least 0.
    max_iter, tol
        Stop where W stands still and ‖H − W − S‖ is below ``tol`` times ‖H‖.
    """
    with one_blas(X):
        gram = GramSpectrum(X)
        Z = X.T @ Y
        W, S, A = np.zeros_like(Z), np.zeros_like(Z), np.zeros_like(Z)
        mu = _FIRST_PENALTY
        history: dict[str, list[float]] = {"objective": [], "gap": [], "change": [], "penalty": []}
        converged = False
        while not converged and len(history["gap"]) < max_iter:
            H = gram.solve(Z + mu * (W + S) + A, lam + mu)
            last_W, W = W, singular_value_threshold(H - S - A / mu, beta / mu)
            S = soft_threshold(H - W - A / mu, gamma / mu)
            size = float(np.linalg.norm(H))
            change = _ratio(mu * float(np.linalg.norm(W - last_W)), size)
            gap = _ratio(float(np.linalg.norm(H - W - S)), size)
            converged = gap < tol and change < _STILL
            history["objective"].append(_objective(Y, Z, gram, W, S, lam=lam, beta=beta, gamma=gamma))
            history["gap"].append(gap)
            history["change"].append(change)
            history["penalty"].append(mu)
            if change < _STILL:
                mu = min(_PENALTY_GROWTH * mu, _LARGEST_PENALTY)
            A = A + mu * (W + S - H)
    return Solution(classifier=W, noise_identifier=S, history=history, converged=converged)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _objective(
    Y: Matrix, Z: Matrix, gram: GramSpectrum, W: Matrix, S: Matrix, *, lam: float, beta: float, gamma: float
) -> float:
    """The objective at H = W + S, where the constraint holds, without touching the n rows."""
    H = W + S
    misfit = float(Y.ravel() @ Y.ravel()) - 2 * float(np.vdot(Z, H)) + gram.squared_norm(H)
    return (
        0.5 * misfit
        + 0.5 * lam * float(np.vdot(H, H))
        + beta * nuclear_norm(W)
        + gamma * float(np.abs(S).sum())
    )


class PMLNI(BasePMLClassifier):
    """Partial multi-label learning with noisy label identification (PML-NI).

    Takes the view that a false candidate has a cause in the features, and explains the candidates by two linear models
    at once: a low-rank W for the true labels, which depend on one another, and a sparse S for the noise, which a few
    features cause. Only W predicts. Minimises

        ½‖Y − XH‖² + (λ/2)‖H‖² + β‖W‖* + γ‖S‖₁  subject to  H = W + S,

    where ‖·‖* is the sum of singular values and X holds the features, scaled to [−1, 1], and a constant.

    The algorithm, its constants and the weights are the published ones. Two things differ: the features are scaled, as
    in published comparisons; and decisions are cut at a fixed score instead of a threshold function that was fitted to
    the true labels of the training rows, which are not known here.

    Parameters
    ----------
    lam : float, default=10.0
        Weight λ of the squared coefficients of the joint model. The paper chooses among 1, 10 and 100.
    beta : float, default=0.5
        Weight β of the sum of singular values of the classifier.
    gamma : float, default=0.5
        Weight γ of the absolute coefficients of the noise identifier. See the notes: below β, or there is no identifier.
    threshold : float, "auto" or "non-candidates", default="auto"
        Scores above it are predicted; for the names see :mod:`skpml.base`. 0.5 is used in comparisons.
    max_iter : int, default=500
    tol : float, default=1e-7
        Stop where ‖H − W − S‖ is smaller, relative to ‖H‖, and W stands still.
    on_empty : {"warn", "raise", "ignore"}, default="warn"
        What to do about rows without candidates (taken as having no label) and labels that are nobody's candidate.

    Attributes
    ----------
    coef_ : ndarray of shape (d + 1, c)
        W. The last row belongs to the constant.
    noise_coef_ : ndarray of shape (d + 1, c)
        S.
    threshold_ : float
    classes_ : ndarray of shape (c,)
        Label names.
    history_ : dict of ndarrays
        After every iteration: the ``"objective"`` at H = W + S, the relative ``"gap"`` between H and W + S, the relative
        ``"change"`` of W times the penalty, and the ``"penalty"``. The objective need not fall from one iteration to the
        next.
    n_iter_ : int
    converged_ : bool
    feature_map_ : fitted pipeline of scaler and constant
    n_features_in_ : int
    feature_names_in_ : ndarray, where X had names

    Notes
    -----
    The sum of singular values of a matrix is never larger than the sum of its absolute entries. So wherever β ≤ γ, moving
    S into W costs nothing and the optimum has **S = 0**. With the published weights β = γ = 0.5 the noise identifier is
    therefore empty, and the method is ridge regression on the candidates with a slight push towards low rank. To let it
    work, choose β well above γ (β = 2, γ = 0.5 makes a few per cent of S non-zero on the emotions data). Convergence is
    slower then, and 500 iterations may not be enough.

    Nothing is random. There are no confidences: the method does not look at single candidates.

    With n rows, d features and c labels, a fit takes O(nd·min(n, d)) once and O(cd·min(n, d) + c²d) an iteration, usually
    100 to 350 of them, and O(nd + d·min(n, d) + cd) memory. Everything is computed in double precision.

    References
    ----------
    M.-K. Xie, S.-J. Huang. Partial Multi-Label Learning with Noisy Label Identification. IEEE Transactions on Pattern
    Analysis and Machine Intelligence 44(7):3676–3687, 2022. Earlier version: AAAI 2020, pages 6454–6461.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from skpml.baselines._pml_ni import PMLNI
    >>> from skpml.noise import top_up
    >>> X, truth = make_multilabel_classification(300, random_state=0)
    >>> candidates = top_up(truth, 4, random_state=0)
    >>> bool(PMLNI().fit(X, candidates).noise_coef_.any())
    False
    >>> bool(PMLNI(beta=5.0).fit(X, candidates).noise_coef_.any())
    True
    """

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

    def __init__(
        self,
        *,
        lam: float = 10.0,
        beta: float = 0.5,
        gamma: float = 0.5,
        threshold: float | str = "auto",
        max_iter: int = 500,
        tol: float = 1e-7,
        on_empty: str = "warn",
    ) -> None:
        self.lam = lam
        self.beta = beta
        self.gamma = gamma
        self.threshold = threshold
        self.max_iter = max_iter
        self.tol = tol
        self.on_empty = on_empty

    def _check_parameters(self) -> None:
        check_parameters(self, weights=("lam", "beta", "gamma", "tol"), counts=("max_iter",))

    def _fit(self, X: Any, Y: NDArray[Any]) -> None:
        self.feature_map_: Any = make_pipeline(RangeScaler(), LinearMap(intercept=True))
        # Single precision cannot tell when H and W + S agree to the tolerance.
        mapped = self.feature_map_.fit_transform(X).astype(np.float64, copy=False)
        solution = solve(
            mapped,
            Y.astype(np.float64, copy=False),
            lam=float(self.lam),
            beta=float(self.beta),
            gamma=float(self.gamma),
            max_iter=self.max_iter,
            tol=float(self.tol),
        )
        self.coef_: NDArray[Any] = solution.classifier.astype(X.dtype)
        self.noise_coef_: NDArray[Any] = solution.noise_identifier.astype(X.dtype)
        self._record(solution.history, converged=solution.converged)

    def _scores(self, X: Any) -> NDArray[Any]:
        return self.feature_map_.transform(X) @ self.coef_.astype(X.dtype, copy=False)
