"""The second stage of P-LENFN: a linear classifier guided by a network of one hidden layer.

X features with a constant column (n×d), J enhanced labels (n×c), W the classifier (d×c), σ(XV)U the network.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.special import expit

from skpml.linalg import ridge_factor

Matrix = NDArray[np.float64]

_STEP = 1e-3
_HALVINGS = 40
_FIRST_STOP = 5


def label_laplacian(J: Matrix) -> Matrix:
    """``L = diag(R1) − R`` with ``R_ij = J_iᵀJ_j / J_iᵀJ_i`` over columns of J (0 where J_i is 0); not symmetric."""
    products = J.T @ J
    sizes = np.diagonal(products)[:, None]
    R = np.where(sizes > 0, products / np.where(sizes > 0, sizes, 1), 0)
    return np.diag(R.sum(axis=1)) - R


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Weights λ₁ (size of W), λ₂ (labels that occur together get like columns), λ₃ (size of U), λ₄ (size of V)."""

    lam1: float = 10.0
    lam2: float = 1.0
    lam3: float = 0.01
    lam4: float = 10.0


@dataclass(frozen=True, kw_only=True)
class Solution:
    """W (d×c), the network's V (d×k) and U (k×c), the objective after every iteration, and whether it settled."""

    coef: Matrix
    hidden_coef: Matrix
    output_coef: Matrix
    history: dict[str, list[float]]
    converged: bool


def solve(
    X: Matrix,
    J: Matrix,
    U: Matrix,
    V: Matrix,
    *,
    weights: Weights,
    max_iter: int = 200,
    tol: float = 1e-3,
) -> Solution:
    """Minimise ``‖XW − J‖² + ‖XW − σ(XV)U‖² + λ₁‖W‖² + λ₂ tr(W L Wᵀ) + λ₃‖U‖² + λ₄‖V‖²`` by turns.

    W and U exactly, V by a gradient step of length 0.001, halved as often as its part of the objective would rise.

    Parameters
    ----------
    X : (n, d)
        Features with a constant column.
    J : (n, c)
        Enhanced labels.
    U, V : (k, c), (d, k)
        Where the network starts.
    weights : Weights
    max_iter, tol
        Stop where the objective falls relatively by less, after the fifth iteration.
    """
    laplacian = label_laplacian(J)
    classifier = _Classifier(X, weights, laplacian)
    M = expit(X @ V)
    step = _STEP
    objective: list[float] = []
    converged = False
    while not converged and len(objective) < max_iter:
        W = classifier.solve(M @ U + J)
        scores = X @ W
        U = ridge_factor(M, ridge=weights.lam3)(M.T @ scores)
        V, M, step = _descend(X, V, M, U, scores, weights.lam4, min(2 * step, _STEP))
        value = (
            np.sum((scores - J) ** 2)
            + np.sum((scores - M @ U) ** 2)
            + weights.lam1 * np.sum(W**2)
            + weights.lam2 * np.vdot(W, W @ laplacian)
            + weights.lam3 * np.sum(U**2)
            + weights.lam4 * np.sum(V**2)
        )
        if len(objective) >= _FIRST_STOP:
            converged = bool(objective[-1] - value <= tol * abs(objective[-1]))
        objective.append(float(value))
    return Solution(
        coef=W, hidden_coef=V, output_coef=U, history={"objective": objective}, converged=converged
    )


class _Classifier:
    """Solves ``2XᵀX W + W B = Xᵀ target`` with ``B = λ₁I + (λ₂/2)(L + Lᵀ)``, both sides decomposed once.

    Both W and the right side lie in the row space of X, so the thin singular value decomposition is enough. The
    symmetrised Laplacian may have negative eigenvalues; where they outweigh λ₁ the weight is raised, so that there is
    a minimum.
    """

    def __init__(self, X: Matrix, weights: Weights, laplacian: Matrix) -> None:
        self.X = X
        c = len(laplacian)
        B = weights.lam1 * np.eye(c) + weights.lam2 / 2 * (laplacian + laplacian.T)
        if X.shape[0] > X.shape[1]:
            squares, self.left = scipy.linalg.eigh(X.T @ X)
        else:
            _, values, right = scipy.linalg.svd(X, full_matrices=False)
            squares, self.left = values**2, right.T
        squares = np.maximum(squares, 0)
        b, self.right = scipy.linalg.eigh(B)
        sums = 2 * squares[:, None] + b
        self.raised = max(0.0, 1e-9 * float(sums.max()) - float(sums.min()))
        self.inverse = 1 / (sums + self.raised)

    def solve(self, target: Matrix) -> Matrix:
        rotated = self.left.T @ (self.X.T @ target) @ self.right
        return np.asarray(self.left @ (rotated * self.inverse) @ self.right.T)


def _descend(
    X: Matrix, V: Matrix, M: Matrix, U: Matrix, scores: Matrix, lam4: float, step: float
) -> tuple[Matrix, Matrix, float]:
    """A gradient step in V that does not raise ``‖σ(XV)U − scores‖² + λ₄‖V‖²``: V, σ(XV) and the length that served."""
    miss = M @ U - scores
    gradient = X.T @ (M * (1 - M) * (miss @ U.T)) + lam4 * V
    before = np.sum(miss**2) + lam4 * np.sum(V**2)
    for _ in range(_HALVINGS):
        moved = V - step * gradient
        hidden = expit(X @ moved)
        if np.sum((hidden @ U - scores) ** 2) + lam4 * np.sum(moved**2) <= before:
            return moved, hidden, step
        step /= 2
    return V, M, step
