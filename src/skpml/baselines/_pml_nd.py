"""PML-ND: disambiguation guided by negative labels and noise.

First stage: X features (n×d), Y candidates, Ȳ = 1 − Y negative labels, Tr reconstruction weights (n×n, sparse), Pc
propagated confidences, T credible labels. Second stage: a classifier W for the credible labels T and one, Hn, for the
noise labels N, from the Gram matrix XᵀX alone; R are the cosine distances of credible and noise labels.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.linalg
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch

from skpml._docstrings import fill_docstring
from skpml._validation import is_number
from skpml.base import BasePMLClassifier, MethodFacts
from skpml.baselines._common import Array, Matrix
from skpml.features import RangeScaler
from skpml.graph import reconstruction_weights
from skpml.linalg import ridge_factor, soft_threshold

Damping = Literal["identity", "ones"]
Solver = Literal["exact", "multiplicative"]

_EPSILON = float(np.finfo(np.float64).eps)
_NEGATIVE_WEIGHT = 0.5
_SINGULAR = 1e-8
_PROPAGATIONS = 100
# Three quarters of an even share: the published cut of 0.25 at three candidates.
_SHARE, _FEW_CANDIDATES = 0.75, 3
_PROPAGATION_TOL = 0.01
# Confidences that differ by less are tied, so that the order of summation does not decide.
_TIE = 1e-9
# Relative to the mean diagonal of the Gram matrix: lets it be factored if features repeat and β is 0.
_JITTER = 1e-10
_CG_STEPS = 500
_CG_TOL = 1e-11


def cosine_distances(A: Matrix, B: Matrix) -> Matrix:
    """Compute ``1 − aᵀb / (‖a‖‖b‖)`` between columns of A and B, shifted by ε so that empty columns stay finite."""
    A, B = A + _EPSILON, B + _EPSILON
    return 1 - (A / np.linalg.norm(A, axis=0)).T @ (B / np.linalg.norm(B, axis=0))


def innocence(X: Matrix, Y: Matrix, *, damping: Damping) -> Matrix:
    """K₁: how little each candidate looks like a negative label; the candidates of a row sum to 1.

    With ``A = XᵀX + μI`` and ``B = μR̄`` (R̄ the cosine distances of the negative labels), V solves
    ``A V + V B = −XᵀȲ`` and ``K = X V`` is high for labels that are unlikely to be negative; K is scaled to [0, 1] within
    each row, and is 0 outside the candidates.

    ``damping="ones"`` has the matrix of ones instead of I, as published. B has negative eigenvalues, because a matrix of
    distances is zero on its diagonal, and small eigenvalues of XᵀX may cancel them: on some data the equation is close to
    singular, and it is not the minimum of anything. With I, the negative part of B is dropped as well, so that V
    minimizes ``‖XV + Ȳ‖² + μ‖V‖² + tr(V B⁺ Vᵀ)``.
    """
    negative, identity = 1 - Y, damping == "identity"
    gram = X.T @ X
    if identity:
        np.einsum("ii->i", gram)[...] += _NEGATIVE_WEIGHT
    else:
        gram += _NEGATIVE_WEIGHT
    a, U = scipy.linalg.eigh(gram)
    b, V = scipy.linalg.eigh(_NEGATIVE_WEIGHT * cosine_distances(negative, negative))
    sums = a[:, None] + (np.maximum(b, 0) if identity else b)
    regular = np.abs(sums) > _SINGULAR
    inverse = np.where(regular, 1 / np.where(regular, sums, 1), 0)
    K = -X @ (U @ ((U.T @ (X.T @ negative) @ V) * inverse) @ V.T)
    low, high = K.min(axis=1, keepdims=True), K.max(axis=1, keepdims=True)
    spread = np.where(high - low > _TIE * np.abs(K).max(), high - low, np.inf)
    K = (K - low) / spread * Y
    return K / (K.sum(axis=1, keepdims=True) + _EPSILON)


def propagate(K: Matrix, Y: Matrix, weights: scipy.sparse.csr_array) -> tuple[Matrix, int]:
    """Pc: repeat ``Pc ← [(1 − Dm)∘(Tr Pc) + Dm∘Y]∘Y`` with rows divided by their sums.

    Dm is K₁; the release has 0.999 in Dm outside the candidates, which is multiplied by 0. Stops when the spectral norm
    of the change falls below 0.01. If K₁ and the neighbors give nothing to a row, its candidates get equal confidences.
    """
    share = Y / np.maximum(Y.sum(axis=1, keepdims=True), 1)
    confidences = Y
    steps, change_size = 0, np.inf
    while change_size >= _PROPAGATION_TOL and steps < _PROPAGATIONS:
        mixed = ((1 - K) * (weights @ confidences) + K) * Y
        totals = mixed.sum(axis=1, keepdims=True)
        empty = totals <= _EPSILON
        updated = np.where(empty, share, mixed / np.where(empty, 1, totals))
        change = updated - confidences
        confidences = updated
        change_size = np.sqrt(max(scipy.linalg.eigvalsh(change.T @ change)[-1], 0))
        steps += 1
    return confidences, steps


def credible_labels(confidences: Matrix, Y: Matrix, *, cut: float | Literal["share", "soft"]) -> Matrix:
    """T: candidates above ``cut``, and the most confident ones of each row, all of them if they tie.

    ``"share"`` is 0.25 for rows of up to three candidates, and three quarters of an even share, 0.75/m, for more.
    ``"soft"`` cuts nothing: T is the confidence relative to an even share, ``m Pc``, at most 1.
    """
    counts = Y.sum(axis=1, keepdims=True)
    if cut == "soft":
        return np.minimum(counts * confidences, 1)
    level = _SHARE / np.maximum(counts, _FEW_CANDIDATES) if cut == "share" else cut
    highest = confidences.max(axis=1, keepdims=True)
    kept = (confidences > level + _TIE) | (confidences >= highest - _TIE)
    return np.asarray(kept * Y)


# Overflow shows in the objective.
@np.errstate(all="ignore")
def solve(X: Matrix, T: Matrix, N: Matrix, model: PMLND) -> Bunch:
    """Alternate between W and Hn until the objective changes relatively by less than ``tol``.

    X are features in [0, 1] with a constant column; weights, solver and stop rule are those of the model. A step in W is
    the minimizer given Hn and the reweighted ‖·‖₂,₁ ("exact"), or the published multiplicative step. The latter assumes
    positive numbers and may diverge; it then ends with the last finite W.
    """
    problem = _Problem(X, T, N, model)
    step = problem.exact_coef if problem.exact else problem.multiplicative_coef
    ridge = ridge_factor(X, ridge=model.eta)
    W = ridge(problem.XtT + _EPSILON)
    H = H_before = ridge(problem.XtN)
    b = b_before = 1.0
    objective: list[float] = []
    converged = diverged = False
    while not converged and len(objective) < model.max_iter:
        W_next = step(W, H)
        Z = H + (b_before - 1) / b * (H - H_before)
        H_next = problem.noise_coef(Z, W_next)
        value = problem.objective(W_next, H_next)
        diverged = not np.isfinite(value)
        if diverged:
            break
        b_before, b = b, (1 + np.sqrt(4 * b**2 + 1)) / 2
        W, H, H_before = W_next, H_next, H
        converged = bool(objective) and abs(value - objective[-1]) <= model.tol * abs(objective[-1])
        objective.append(value)
    return Bunch(
        coef=W, noise_coef=H, history={"objective": objective}, converged=converged, diverged=diverged
    )


def scatter(X: Matrix, T: Matrix) -> tuple[Matrix, Matrix]:
    """Compute the spread within rows with and without each label, and the distance of their means, per feature (d×c).

    The first is ``Σ_p(x − m_p)² + (|p|/|q|) Σ_q(x − m_q)²``, the second ``|p|(m_p − m_q)²``, where p are the rows
    with the label and q the others. Both are 0 for a label of no row or of every row.
    """
    with_label = T.sum(axis=0)
    without = len(T) - with_label
    mixed = (with_label > 0) & (without > 0)
    p, q = np.where(mixed, with_label, 1), np.where(mixed, without, 1)
    sums, squares = X.T @ T, (X**2).T @ T
    mean_p, mean_q = sums / p, (X.sum(axis=0)[:, None] - sums) / q
    within_p = squares - p * mean_p**2
    within_q = (X**2).sum(axis=0)[:, None] - squares - q * mean_q**2
    within = np.maximum(within_p, 0) + p / q * np.maximum(within_q, 0)
    return within * mixed, p * (mean_p - mean_q) ** 2 * mixed


def solve_columns(gram: Matrix, diagonals: Matrix, rhs: Matrix, start: Matrix) -> Matrix:
    """Solve ``(gram + diag(diagonals_k)) w_k = rhs_k`` for all k at once, from one factorization.

    Conjugate gradients for all columns together, preconditioned by the Cholesky factor of the Gram matrix with the mean
    of the diagonals, which gives the solution in one step if all diagonals agree. The system of the preconditioner yields
    the product with the Gram matrix, too.
    """
    mean = diagonals.mean(axis=1)
    # Symmetric: the transpose has the order of LAPACK, which saves a copy.
    shared = gram.copy().T
    np.einsum("ii->i", shared)[...] += mean
    differences = diagonals - mean[:, None]
    factor = scipy.linalg.cho_factor(shared, lower=True, overwrite_a=True, check_finite=False)
    W = start
    residual = rhs - gram @ W - diagonals * W
    sizes = np.linalg.norm(rhs, axis=0)
    # Columns that are almost zero, as for a label of no row, need no relative accuracy.
    goal = _CG_TOL * np.maximum(sizes, 1e-3 * sizes.max())
    direction, image, before = np.zeros_like(W), np.zeros_like(W), np.ones(W.shape[1])
    for _ in range(_CG_STEPS):
        active = np.linalg.norm(residual, axis=0) > goal
        if not active.any():
            break
        conditioned = scipy.linalg.cho_solve(factor, residual, check_finite=False)
        size = np.einsum("ij,ij->j", residual, conditioned)
        direction = conditioned + size / before * direction
        image = residual + differences * conditioned + size / before * image
        curvature = np.einsum("ij,ij->j", direction, image)
        active &= curvature > 0
        length = np.where(active, size / np.where(active, curvature, 1), 0)
        W = W + length * direction
        residual = residual - length * image
        before = np.where(size > 0, size, 1)
    return W


class _Problem:
    """What is constant during a fit, and the steps that use it."""

    def __init__(self, X: Matrix, T: Matrix, N: Matrix, model: PMLND) -> None:
        self.weights, self.exact = model, model.solver == "exact"
        self.gram = X.T @ X
        d = len(self.gram)
        self.jitter = _JITTER * max(float(np.trace(self.gram)) / d, _EPSILON)
        self.XtT, self.XtN = X.T @ T, X.T @ N
        self.label_mass = float((T**2).sum() + (N**2).sum())
        self.distances = cosine_distances(T, N)
        within, between = scatter(X, T)
        # The published sums over rows lack the square, so only the negative part is left.
        self.scatter = np.maximum(within - between, 0) if self.exact else -between
        largest = scipy.linalg.eigh(self.gram, eigvals_only=True, subset_by_index=[d - 1, d - 1])[0]
        self.lipschitz = 2 * max(float(largest), _EPSILON)

    def exact_coef(self, W: Matrix, H: Matrix) -> Matrix:
        """``w_k = (XᵀX + β diag(g) + (γ/2) diag(s_k⁺))⁻¹ (XᵀT_k − (δ/2)(Hn R)_k)``."""
        weights = self.weights
        diagonals = weights.gamma / 2 * self.scatter
        diagonals = diagonals + (weights.beta * self._row_weights(W) + self.jitter)[:, None]
        return solve_columns(self.gram, diagonals, self.XtT - weights.delta / 2 * H @ self.distances, W)

    def multiplicative_coef(self, W: Matrix, H: Matrix) -> Matrix:
        """``W ∘ (XᵀT) ⊘ (XᵀXW + β diag(g)W + δ Hn R + γ s∘W + ε)``, with the published scatter."""
        weights = self.weights
        pull = (
            self.gram @ W
            + weights.beta * self._row_weights(W)[:, None] * W
            + weights.delta * H @ self.distances
            + weights.gamma * self.scatter * W
            + _EPSILON
        )
        return np.asarray(W * self.XtT / pull)

    def noise_coef(self, Z: Matrix, W: Matrix) -> Matrix:
        """Take a proximal gradient step from Z. The published one has half the gradient of the data, and R for Rᵀ."""
        weights = self.weights
        pull = self.gram @ Z - self.XtN
        if self.exact:
            gradient = 2 * pull + weights.delta * W @ self.distances.T
        else:
            gradient = pull + weights.delta * W @ self.distances
        return np.asarray(soft_threshold(Z - gradient / self.lipschitz, weights.lam / self.lipschitz))

    def objective(self, W: Matrix, H: Matrix) -> float:
        weights = self.weights
        fit = np.vdot(W, self.gram @ W - 2 * self.XtT) + np.vdot(H, self.gram @ H - 2 * self.XtN)
        sizes = weights.lam * np.abs(H).sum() + weights.beta * np.linalg.norm(W, axis=1).sum()
        scatter = weights.gamma / 2 * np.vdot(self.scatter, W**2)
        incoherence = weights.delta * np.vdot(self.distances.T, W.T @ H)
        return float(fit + self.label_mass + sizes + scatter + incoherence)

    def _row_weights(self, W: Matrix) -> Matrix:
        return np.asarray(0.5 / np.sqrt((W**2).sum(axis=1) + _EPSILON))


@fill_docstring
@dataclass(kw_only=True, repr=False, eq=False)
class PMLND(BasePMLClassifier):
    """Disambiguation guided by negative labels and noise (PML-ND).

    In two stages. First, the labels that are certain, those that are *not* candidates, show how little each candidate
    looks like a negative label; this is blended repeatedly with the candidates of the rows that best reconstruct a row,
    until it settles, and each candidate is declared credible (T) or noise (N = Y − T). Second, one linear classifier W
    is fitted to the credible labels and another, Hn, to the noise, kept apart from each other:

        ‖XW − T‖² + ‖XHn − N‖² + λ‖Hn‖₁ + β‖W‖₂,₁ + (γ/2) Σ_k w_kᵀ diag(s_k) w_k + δ tr(R Wᵀ Hn)

    with R the cosine distances between credible and noise labels, and s_k the spread of each feature within the rows with
    and without label k, minus the distance of their means.

    Follows the authors' released code, not the text of the paper. Five things differ from the release by default,
    because its form is ill-posed or made for one data set:

    * the step in W is the exact minimizer: the released one (``solver="multiplicative"``) multiplies by ratios that
      assume positive numbers, which they are not, and its objective jumps by orders of magnitude;
    * s_k has the squares that the released sums lack (without them only the negative part is left), and is clipped at 0;
      the step in Hn has the gradient of the objective above (``solver="multiplicative"`` has the released form of both);
    * features are scaled to [0, 1] in both stages, as the reconstruction by non-negative weights suggests, and the
      classifiers have an intercept; the release has neither;
    * the equation for the negative labels is damped by the identity, which makes it a convex problem; the release adds a
      matrix of ones (``damping="ones"``), which makes it indefinite and at times nearly singular;
    * the cut between credible labels and noise falls with the number of candidates (``credible="share"``): confidences of
      a row sum to 1, so the released cut of 0.25 (``credible=0.25``) keeps at most three labels, and of eleven candidates
      usually one. The release comes with settings for one data set (mirflickr), whose rows have three candidates; there
      both cuts are the same.

    γ and λ are those of the release. Its other weights, β = 1/64, δ = 256 and η = 0.1, belong to its solver: with the
    exact one, δ = 256 outweighs the rest.

    Parameters
    ----------
    beta, lam, gamma, delta : float, default=4, 0.25, 1, 1/64
        Weights β (few features in W), λ (few non-zero coefficients in Hn), γ (spread of the features within a label), δ
        (W and Hn apart), each at least 0. Good values to try are 1/64, 1/4, 1 and 4. If δ outweighs the rest, there is
        no minimum, and the fit ends at ``max_iter``, with a warning.
    eta : float, default=10
        Ridge of the least-squares fits that W and Hn start from.
    n_neighbors : int, default=10
        Number of rows that reconstruct a row; all other rows if there are fewer.
    credible : float, "share" or "soft", default="share"
        Candidates with a higher confidence are credible, and in any case the most confident one of each row (if several
        tie, all of them). "share" is 0.25 up to three candidates, and three quarters of an even share, 0.75/m, for rows
        of m > 3 candidates; a number, such as the released 0.25, is the same for all rows. "soft" does not cut: T is m
        times the confidence, at most 1, and N the rest of each candidate.
    damping : {"identity", "ones"}, default="identity"
        Matrix of which half is added to XᵀX in the equation for the negative labels. "ones" is the released one.
    solver : {"exact", "multiplicative"}, default="exact"
        Solver of the second stage. "multiplicative" is the released one; it may diverge, with a warning, and then keeps
        the last finite classifier.
    %(threshold)s
    %(max_iter)s
    tol : float, default=1e-3
        Stop when the objective changes relatively by less.
    %(on_empty)s

    Attributes
    ----------
    confidences_ : ndarray of shape (n_rows, n_labels)
        Propagated confidences of the candidates; each row sums to 1 (0 for a row without candidates).
    credible_labels_ : ndarray of shape (n_rows, n_labels)
        T, of 0 and 1; between them for ``credible="soft"``.
    coef_, intercept_ : ndarrays of shape (n_features, n_labels) and (n_labels,)
        W, for features scaled to [0, 1].
    noise_coef_ : ndarray of shape (n_features + 1, n_labels)
        Hn; the last row belongs to the constant.
    n_propagations_ : int
        Number of steps of the first stage.
    %(objective_history)s
    %(iterations)s
    %(scaler)s
    %(fitted)s

    Notes
    -----
    Nothing is random. The released code finds the credible labels once for all rows, including test rows and their
    candidates; here only the training rows are used.

    Time: O(n²d) for the neighbors (never an n×n array), n small non-negative least-squares problems, and O(d³) for each
    of a few iterations: one factorization for all labels, and conjugate gradients for the differences between them.
    Memory: O(nd + d² + n·n_neighbors).

    With much noise the noise model has little influence (δ is small), and the second stage is close to ridge regression
    on the credible labels.

    %(reference_and_data)s
    >>> from skpml.baselines import PMLND
    >>> model = PMLND().fit(X, candidates)
    >>> float(model.confidences_.sum(axis=1).round(6).min())
    1.0
    """

    beta: float = 4.0
    lam: float = 0.25
    gamma: float = 1.0
    delta: float = 2.0**-6
    eta: float = 10.0
    n_neighbors: int = 10
    credible: float | Literal["share", "soft"] = "share"
    damping: Damping = "identity"
    solver: Solver = "exact"
    threshold: float | str = "auto"
    max_iter: int = 50
    tol: float = 1e-3
    on_empty: str = "warn"

    _facts = MethodFacts(
        name="pml-nd",
        title="PML-ND",
        kind="baseline",
        summary="candidates split into true and noise labels, guided by negative labels, with a model for "
        "each",
        confidences=True,
        source="release",
        year=2024,
        reference="Zhong, Shang, Zhao, Zhang, Xu. Negative Label and Noise Information Guided "
        "Disambiguation for Partial Multi-Label Learning. IEEE TMM 26:9920–9935, 2024.",
        comparison_threshold=0.5,
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.credible not in ("share", "soft") and not is_number(self.credible, 0):
            raise ValueError(
                f'credible must be "share", "soft" or a number of at least 0, got {self.credible!r}.'
            )

    def _fit(self, X: Any, Y: Array) -> Array:
        self.scaler_ = RangeScaler().fit(X)
        # The reweighting of the rows of W exceeds the range of single precision.
        features, Y = self._unit_range(X).astype(np.float64), Y.astype(np.float64)
        with_constant = np.hstack([features, np.ones((len(features), 1))])
        neighbors = reconstruction_weights(features, n_neighbors=self.n_neighbors)
        own = innocence(features, Y, damping=self.damping)
        confidences, self.n_propagations_ = propagate(own, Y, neighbors)
        credible = credible_labels(confidences, Y, cut=self.credible)
        solution = solve(with_constant, credible, Y - credible, self)
        self.confidences_ = confidences.astype(X.dtype)
        self.credible_labels_ = credible.astype(X.dtype)
        self.coef_, self.intercept_ = solution.coef[:-1], solution.coef[-1]
        self.noise_coef_ = solution.noise_coef
        self._record(solution.history, converged=solution.converged)
        if solution.diverged:
            warnings.warn(
                f"PMLND diverged after {self.n_iter_} iterations; the last finite classifier is kept. "
                "Use a smaller delta, or the exact solver.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return (with_constant @ solution.coef).astype(X.dtype)

    def _targets(self) -> Array:
        return self.credible_labels_

    def _unit_range(self, X: Any) -> Array:
        """Scale features to [0, 1] on the training rows; constant features become 0."""
        scaler = self.scaler_
        return np.asarray((scaler.transform(X) + 1) / 2 * (scaler.scale_ > 0).astype(X.dtype))

    def _scores(self, X: Any) -> Array:
        return self._unit_range(X) @ self.coef_.astype(X.dtype) + self.intercept_.astype(X.dtype)
