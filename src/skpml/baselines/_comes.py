"""COMES with the squared loss: a risk on candidates that is consistent with the risk on true labels.

For label j with noise rate ρ_j and odds o_j = ρ_j/(1 − ρ_j), g are its scores, and sums run over the rows with the
candidate (i ∈ j) and without it (i ∉ j). n times the risk is |A| + B with

    A = Σ_{i∈j} (1 − g_i)² − o_j Σ_{i∉j} (1 − g_i)²        B = (1 + o_j) Σ_{i∉j} g_i²

A estimates the loss of the positives, which cannot be negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.utils import Bunch

from skpml._docstrings import fill_docstring
from skpml._sharing import once
from skpml.base import MethodFacts
from skpml.baselines._common import Array, MappedClassifier, Matrix
from skpml.likelihood import check_noise_rate, estimate_noise, held_out_ridge
from skpml.linalg import ridge_factor, spectrum_of

# Halvings of the interval of s.
_HALVINGS = 40
# Quantile of the held-out scores of a label that most likely belongs to a row without it.
_CLEAR_NEGATIVE = 0.25
# Relative error of a solution.
_PRECISION = 1e-10


def estimate_rates(rows: Matrix, n_labels: int) -> Matrix:
    """Estimate the noise rate of each label from rows of mapped features and, in the last columns, candidates.

    The level of clear negatives bounds a rate from above, so that some candidates of every label can be true.
    """
    C = rows[:, -n_labels:]
    held_out, _ = held_out_ridge(spectrum_of(rows[:, :-n_labels]), C)
    rates = estimate_noise(held_out, C, of_candidates=True, by_frequency=True).usable()
    return np.minimum(rates, np.maximum(np.quantile(held_out, _CLEAR_NEGATIVE, axis=0), 0))


def solve(X: Matrix, C: Matrix, odds: Matrix, *, gamma: float) -> Bunch:
    """Minimize ``|A| + B + γ‖w‖²`` for every label, given the odds of its noise rate.

    The minimum of A + B is a ridge regression. If A < 0 at it, A = 0 at the minimum of the objective, which is also that
    of sA + B for one s between 0 and 1: for such s it is convex, and |A| + B ≥ sA + B everywhere. :func:`find_shares`
    finds s: A at the minimum falls as s grows, and is not negative at s = 0.
    """
    solve_ridge = ridge_factor(X, ridge=gamma)
    W = solve_ridge(X.T @ np.where(C > 0, 1.0, -odds))
    scores = X @ W
    share = np.ones(C.shape[1])
    corrected = positive_loss(scores, C, odds) < 0
    if corrected.any():
        labels, odds = C[:, corrected], odds[corrected]
        share[corrected], start = find_shares(X, labels, odds, solve_ridge, W[:, corrected])
        W[:, corrected] = solve_weighted(X, labels, odds, share[corrected], gamma, solve_ridge, start)
        scores = X @ W
    return Bunch(coef=W, scores=scores, positive_weight=share)


def find_shares(X: Matrix, C: Matrix, odds: Matrix, solve_ridge: Any, ridge: Matrix) -> tuple[Matrix, Matrix]:
    """Find the s of every label for which A = 0 at the minimum of ``sA + B + γ‖w‖²``; also return the minima.

    ``ridge`` are the minima for s = 1, M⁻¹b with the matrix M = XᵀX + γI of ``solve_ridge``. With D = Xᵀ diag(±) X, where
    rows count 1 with the candidate and −o without it, the minimum for s is s(M − (1 − s)D)⁻¹b, and A is a constant −
    2bᵀw + wᵀDw. Conjugate gradients with the preconditioner M look for it in the span of (M⁻¹D)ᵏM⁻¹b, which is the same
    for every s. One M-orthonormal basis of it (Lanczos) therefore serves all s: D is tridiagonal in it, and A a sum of
    fractions of s.
    """
    signs = np.where(C > 0, 1.0, -odds)
    right = X.T @ signs
    size = np.sqrt(np.einsum("ij,ij->j", right, ridge))
    constant = signs.sum(axis=0)
    basis, images = [ridge / size], [right / size]
    diagonal: list[Matrix] = []
    beside: list[Matrix] = []
    while True:
        pull = X.T @ (signs * (X @ basis[-1]))
        diagonal.append(np.einsum("ij,ij->j", basis[-1], pull))
        # Rounding errors would let the basis lose its orthogonality: all components are removed, and twice.
        for _ in range(2):
            for vector, image in zip(basis, images, strict=True):
                pull -= np.einsum("ij,ij->j", vector, pull) * image
        vector = solve_ridge(pull)
        beside.append(np.sqrt(np.maximum(np.einsum("ij,ij->j", vector, pull), 0)))
        share, weights = _bisect(np.array(diagonal), np.array(beside[:-1]), size, constant)
        missing = (1 - share) * beside[-1] * np.abs(weights[-1])
        if len(basis) == len(X.T) or (missing <= _PRECISION * share * size).all():
            return share, sum(w * vector for w, vector in zip(weights, basis, strict=True))
        # The basis of a label may be complete before those of others.
        scale = np.where(beside[-1] > _PRECISION * np.abs(diagonal[0]), beside[-1], np.inf)
        beside[-1] = np.where(np.isfinite(scale), beside[-1], 0)
        basis.append(vector / scale)
        images.append(pull / scale)


def _bisect(diagonal: Matrix, beside: Matrix, size: Matrix, constant: Matrix) -> tuple[Matrix, Matrix]:
    """Find s by bisection for tridiagonal D (k and k − 1 by label); also return the minima in the basis (k by label)."""
    places = np.arange(len(diagonal))
    D = np.zeros((diagonal.shape[1], len(places), len(places)))
    D[:, places, places] = diagonal.T
    D[:, places[1:], places[:-1]] = D[:, places[:-1], places[1:]] = beside.T
    values, vectors = np.linalg.eigh(D)
    # M − D is positive, up to rounding errors if γ is 0.
    values, b = np.minimum(values.T, 1 - _PRECISION), size * vectors[:, 0].T
    low, high = np.zeros(len(size)), np.ones(len(size))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        w = middle * b / (1 - (1 - middle) * values)
        is_positive = constant - np.sum((2 * b - values * w) * w, axis=0) >= 0
        low, high = np.where(is_positive, middle, low), np.where(is_positive, high, middle)
    w = low * b / (1 - (1 - low) * values)
    return low, np.einsum("jki,ij->kj", vectors, w)


def positive_loss(scores: Matrix, C: Matrix, odds: Matrix) -> Matrix:
    """Compute A for every label."""
    losses = (1 - scores) ** 2
    return np.where(C > 0, losses, -odds * losses).sum(axis=0)


def solve_weighted(
    X: Matrix, C: Matrix, odds: Matrix, share: Matrix, gamma: float, solve_ridge: Any, start: Matrix
) -> Matrix:
    """Minimize ``sA + B + γ‖w‖²`` for every label by conjugate gradients.

    Rows count s with the candidate and 1 + (1 − s)o without it. The ridge regression with weights of 1, which is factored
    already, is the preconditioner.
    """
    weights = np.where(C > 0, share, 1 + (1 - share) * odds)
    target = X.T @ (share * np.where(C > 0, 1.0, -odds))

    def apply(v: NDArray[Any]) -> NDArray[Any]:
        V = v.reshape(target.shape)
        return (X.T @ (weights * (X @ V)) + gamma * V).ravel()

    def precondition(v: NDArray[Any]) -> NDArray[Any]:
        return solve_ridge(v.reshape(target.shape)).ravel()

    shape = (target.size, target.size)
    system = LinearOperator(shape, matvec=apply, dtype=target.dtype)
    inverse = LinearOperator(shape, matvec=precondition, dtype=target.dtype)
    return cg(system, target.ravel(), x0=start.ravel(), rtol=_PRECISION, M=inverse)[0].reshape(target.shape)


@fill_docstring
@dataclass(kw_only=True, repr=False, eq=False)
class COMES(MappedClassifier):
    """Consistent multi-label classification with one noise rate per label (COMES), squared loss; a reconstruction.

    Rows that do not have label j as a candidate are certain negatives of it, and a random sample of its negatives if the
    noise rate ρ_j is constant. The risk on true labels is therefore

        Σ_j E[ℓ(g_j, 1)] + (1 − π_j) E[ℓ(g_j, 0) − ℓ(g_j, 1) | j not a candidate],

    where π_j is the share of rows for which the label is true. What it holds of the positives, E[ℓ(g_j, 1)] − (1 − π_j)
    E[ℓ(g_j, 1) | j not a candidate], is replaced by its absolute value, because a flexible model can make it negative.
    Here ℓ is the squared error of 1 or 0, g_j = Φw_j for mapped features Φ, and γ‖w_j‖² is added to n times the risk.

    The risk and its correction are published, with networks and other losses. The squared loss, the linear model, its
    solution and the noise rates are ours: the authors take π_j as known, and here it follows from the noise rate,
    ρ_j = (P(C_j) − π_j)/(1 − π_j).

    Parameters
    ----------
    gamma : float, default=1.0
        Weight γ of the squared coefficients, at least 0; that of :class:`~skpml.reference.CandidateRidge`.
    noise_rate : "auto", float or array of shape (n_labels,), default="auto"
        Noise rates ρ, at most the share of rows with the candidate. "auto" estimates them from the candidates and
        leave-one-out scores of a ridge regression: one for all labels, or odds proportional to those of the labels if
        that explains the candidates better, but not more than the lower quartile of the scores of the label.
    %(feature_map)s
    %(map_anchors)s
    %(threshold)s
    %(on_empty)s
    %(anchor_random_state)s

    Attributes
    ----------
    noise_rate_ : ndarray of shape (n_labels,)
        ρ.
    class_prior_ : ndarray of shape (n_labels,)
        π, which follows from ρ and the share of rows with the candidate.
    positive_weight_ : ndarray of shape (n_labels,)
        Weight s of the loss of the positives: 1 where the estimate of that loss is not negative, else between 0 and 1 and
        such that it is zero.
    coef_ : ndarray of shape (n_mapped_features, n_labels)
        Scores are ``mapped @ coef_``.
    feature_map_ : Pipeline
        Scales and maps the features.
    %(fitted)s

    Notes
    -----
    With the squared loss and without the correction, the minimum is the ridge regression of (C − ρ_j)/(1 − ρ_j): scores
    are those of ridge regression on the candidates, shifted and stretched for each label, so with one rate for all labels
    they rank the labels of a row as ridge regression does. With rate 0 they are the same. The correction weights rows
    with the candidate less. The problem with the absolute value is not convex, but its minimum is found exactly: see the
    source.

    Scores estimate the probability that a label is true. Single candidates are not judged.

    With n rows, h mapped features and c labels, a fit takes O(nh² + h³ + nhc) time, O(nhc) more for each of a few dozen
    steps if labels need the correction, and O(nh + h² + khc) memory for k steps.

    %(reference_and_data)s
    >>> from skpml.baselines import COMES
    >>> model = COMES(random_state=0).fit(X, candidates)
    >>> bool((model.class_prior_ <= candidates.mean(axis=0)).all())
    True
    """

    gamma: float = 1.0
    noise_rate: Any = "auto"
    feature_map: Any = "rbf"
    n_anchors: int | None = None
    threshold: float | str = "auto"
    on_empty: str = "warn"
    random_state: Any = None

    _facts = MethodFacts(
        name="comes",
        title="COMES (squared loss, reconstruction)",
        kind="baseline",
        summary="a risk that is consistent under one noise rate per label, with the squared loss",
        dense=False,
        nonlinear=True,
        random=True,
        source="abstract",
        year=2025,
        reference="COMES. arXiv:2510.04091, 2025.",
        comparison_threshold=0.5,
    )

    def _fit(self, X: Any, Y: Array) -> Array:
        c = Y.shape[1]
        given = check_noise_rate(self.noise_rate, c)
        mapped, C = self._map(X), Y.astype(np.float64, copy=False)
        if given is None:
            # The same for all weights, and most of the time of a fit.
            rates = once(estimate_rates, np.hstack([mapped, C]), c)
        else:
            rates = np.broadcast_to(np.asarray(self.noise_rate, dtype=np.float64), (c,))
        share = C.mean(axis=0)
        self.noise_rate_: Array = np.minimum(rates, share)
        self.class_prior_: Array = (share - self.noise_rate_) / (1 - self.noise_rate_)
        odds = self.noise_rate_ / (1 - self.noise_rate_)
        solution = solve(mapped, C, odds, gamma=float(self.gamma))
        self.coef_ = solution.coef.astype(X.dtype)
        self.positive_weight_: Array = solution.positive_weight
        return solution.scores.astype(X.dtype, copy=False)
