"""P-LENFN: labels enhanced by near and far rows, and a linear classifier guided by a small network.

X features with a constant column (n×d), J enhanced labels (n×c), W the classifier (d×c), σ(XV)U the network.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils import Bunch, check_random_state

from skpml._docstrings import fill_docstring
from skpml._ordering import feature_order, label_order
from skpml._sharing import once
from skpml.base import MethodFacts
from skpml.baselines._common import Array, Matrix, RelativeThreshold, ShiftedRows, leave_out_lowest
from skpml.features import RangeScaler
from skpml.linalg import ridge_factor, squared_row_norms, tall_product

Exclude = Literal["none", "self", "first"]

_SELF_SHARE = 0.7
_NEAR_SHARE = 0.2
_FAR_SHARE = 0.1
_RELATIVE_DISTANCE = 0.2
# Cells of a block of distances: 32 MB.
_BLOCK_CELLS = 4_000_000
_STEP = 1e-3
_HALVINGS = 40
_FIRST_STOP = 5


def enhance_labels(X: Matrix, Y: Matrix, *, exclude: Exclude = "none") -> Matrix:
    """J: candidates weighted by how common they are among near rows, and how rare among far rows.

    ``J_i = Y_i ∘ (0.7 Y_i + 0.2 mean_near(Y_j) + 0.1 mean_far(1 − Y_j))``. With ``S_ij = exp(−‖x_i − x_j‖ / (2s²))``
    and s the mean distance to the nearest other row, rows are near (far) if S is within a fifth of its range over the row
    from the largest (smallest) value. If there are no such rows, the mean is 1.
    """
    scale = 2 * np.mean(np.concatenate([nearest for _, _, nearest in _distance_blocks(X)])) ** 2
    J = np.empty_like(Y)
    for rows, distances, _ in _distance_blocks(X):
        S = np.exp(-distances / scale) if scale > 0 else (distances == 0).astype(float)
        low, high = S.min(axis=1, keepdims=True), S.max(axis=1, keepdims=True)
        width = _RELATIVE_DISTANCE * (high - low)
        near = (high - width) <= S
        far = (low + width) >= S
        if exclude == "first":
            near[:, 0] = far[:, 0] = False
        elif exclude == "self":
            local = np.arange(len(rows))
            near[local, rows] = far[local, rows] = False
        J[rows] = _SELF_SHARE * Y[rows] + _FAR_SHARE * _mean_over(far, 1 - Y)
        J[rows] += _NEAR_SHARE * _mean_over(near, Y)
    # The three shares may sum to slightly more than 1 by rounding.
    return np.minimum(J, 1) * Y


def _distance_blocks(X: Matrix) -> Iterator[tuple[NDArray[np.intp], Matrix, Matrix]]:
    """Yield blocks of rows, their distances to all rows, and to the nearest other row."""
    n = len(X)
    rows = leave_out_lowest(X)
    # Distances do not depend on the shift.
    points = rows.rows if isinstance(rows, ShiftedRows) else X
    norms = squared_row_norms(points)
    # Bound of the squared distance between duplicates, which is computed from products.
    rounding = 1e-12 * max(float(norms.max()), 1.0)
    for start in range(0, n, max(1, _BLOCK_CELLS // n)):
        block = np.arange(start, min(start + max(1, _BLOCK_CELLS // n), n))
        squared = euclidean_distances(
            points[block], points, squared=True, X_norm_squared=norms[block], Y_norm_squared=norms
        )
        squared[squared <= rounding] = 0
        local = np.arange(len(block))
        squared[local, block] = np.inf
        nearest = np.sqrt(squared.min(axis=1))
        squared[local, block] = 0
        yield block, np.sqrt(squared, out=squared), nearest


def _mean_over(chosen: NDArray[np.bool_], labels: Matrix) -> Matrix:
    count = chosen.sum(axis=1, keepdims=True)
    return np.where(count > 0, chosen.astype(np.float64) @ labels / np.maximum(count, 1), 1.0)


def label_laplacian(J: Matrix) -> Matrix:
    """Compute ``L = diag(R1) − R``, ``R_ij = J_iᵀJ_j / J_iᵀJ_i`` over columns of J (0 if J_i is 0); not symmetric."""
    products = J.T @ J
    sizes = np.diagonal(products)[:, None]
    R = np.where(sizes > 0, products / np.where(sizes > 0, sizes, 1), 0)
    return np.diag(R.sum(axis=1)) - R


def solve(X: Matrix, J: Matrix, U: Matrix, V: Matrix, model: PLENFN) -> Bunch:
    """Minimize ``‖XW − J‖² + ‖XW − σ(XV)U‖² + λ₁‖W‖² + λ₂ tr(W L Wᵀ) + λ₃‖U‖² + λ₄‖V‖²`` by alternating steps.

    W and U exactly, V by a gradient step of length 0.001, halved while its part of the objective would rise. Stops when
    the objective falls relatively by less than ``tol``, after the fifth iteration. Weights and stop rule are those of the
    model.
    """
    laplacian = label_laplacian(J)
    classifier = _Classifier(X, model, laplacian)
    rows = classifier.rows
    M = expit(rows @ V)
    step = _STEP
    objective: list[float] = []
    converged = False
    while not converged and len(objective) < model.max_iter:
        W = classifier.solve(M @ U + J)
        scores = rows @ W
        U = ridge_factor(M, ridge=model.lam3)(M.T @ scores)
        V, M, step = _descend(rows, V, M, U, scores, model.lam4, min(2 * step, _STEP))
        value = (
            np.sum((scores - J) ** 2)
            + np.sum((scores - M @ U) ** 2)
            + model.lam1 * np.sum(W**2)
            + model.lam2 * np.vdot(W, W @ laplacian)
            + model.lam3 * np.sum(U**2)
            + model.lam4 * np.sum(V**2)
        )
        if len(objective) >= _FIRST_STOP:
            converged = bool(objective[-1] - value <= model.tol * abs(objective[-1]))
        objective.append(float(value))
    history = {"objective": objective}
    return Bunch(coef=W, hidden_coef=V, output_coef=U, history=history, converged=converged)


class _Classifier:
    """Solve ``2XᵀX W + W B = Xᵀ target`` with ``B = λ₁I + (λ₂/2)(L + Lᵀ)``, both sides decomposed once.

    W and the right-hand side lie in the row space of X, so the thin singular value decomposition is enough. The
    symmetrized Laplacian may have negative eigenvalues; if they outweigh λ₁, the weight is raised, so that there is a
    minimum.
    """

    def __init__(self, X: Matrix, model: PLENFN, laplacian: Matrix) -> None:
        self.rows = leave_out_lowest(X)
        c = len(laplacian)
        B = model.lam1 * np.eye(c) + model.lam2 / 2 * (laplacian + laplacian.T)
        # The same for all weights.
        squares, self.left = once(_decompose, X)
        b, self.right = scipy.linalg.eigh(B)
        sums = 2 * squares[:, None] + b
        self.raised = max(0.0, 1e-9 * float(sums.max()) - float(sums.min()))
        self.inverse = 1 / (sums + self.raised)

    def solve(self, target: Matrix) -> Matrix:
        rotated = tall_product(self.left, self.rows.T @ target, transpose=True) @ self.right
        return tall_product(self.left, (rotated * self.inverse) @ self.right.T)


def _decompose(X: Matrix) -> tuple[Matrix, Matrix]:
    """Compute the eigenvalues and eigenvectors of XᵀX, at most as many as X has rows."""
    if X.shape[0] > X.shape[1]:
        squares, vectors = scipy.linalg.eigh(X.T @ X)
        return np.maximum(squares, 0), vectors
    _, values, right = scipy.linalg.svd(X, full_matrices=False)
    return values**2, right.T


def _descend(
    X: Matrix | ShiftedRows, V: Matrix, M: Matrix, U: Matrix, scores: Matrix, lam4: float, step: float
) -> tuple[Matrix, Matrix, float]:
    """Take a gradient step in V that does not raise ``‖σ(XV)U − scores‖² + λ₄‖V‖²``: V, σ(XV) and the step length."""
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


@fill_docstring
@dataclass(kw_only=True, repr=False, eq=False)
class PLENFN(RelativeThreshold):
    """Near-far label enhancement with nonlinear guidance (P-LENFN, PML-LENFN).

    First each candidate gets a weight J between 0.7 and 1: more if it is a candidate of near rows, and if it is not one
    of far rows. Then a linear classifier W is fitted to J together with a network of one hidden layer, σ(XV)U;
    classifier and network attract each other:

        ‖XW − J‖² + ‖XW − σ(XV)U‖² + λ₁‖W‖² + λ₂ tr(W L Wᵀ) + λ₃‖U‖² + λ₄‖V‖²

    over W, U and V, where L is the Laplacian of how often labels occur together in J. Only W predicts.

    Follows the authors' released code; the weights, the step of 0.001 in V and the rule "relative" are theirs. Two things
    differ: which rows can be near or far (``exclude``), and that the step in V is halved if it would raise the objective
    (on small data it never does), so that it cannot diverge.

    Parameters
    ----------
    lam1, lam2, lam3, lam4 : float, default=10, 1, 0.01, 10
        Weights λ₁ (size of W), λ₂ (labels that occur together get similar classifiers), λ₃ (size of U), λ₄ (size of V),
        each at least 0. λ₁ is raised if the objective has no minimum otherwise, because the Laplacian is not symmetric.
    n_hidden : int or None, default=None
        Number of hidden units of the network; None is the number of labels.
    exclude : {"none", "self", "first"}, default="none"
        Rows that are neither near nor far: none, each row itself, or the first row of the data. The released code
        excludes the first row for all rows, probably instead of each row itself, and so depends on the order of rows;
        "first" matches it. Average precision differs in the fourth decimal.
    %(relative_threshold)s
    %(max_iter)s
    tol : float, default=1e-3
        Stop when the objective falls relatively by less, after the fifth iteration. Usually ``max_iter`` is reached
        first, as in the published results.
    %(on_empty)s
    random_state : int, RandomState or None, default=None
        Draws the start of U and V.

    Attributes
    ----------
    confidences_ : ndarray of shape (n_rows, n_labels)
        J: between 0.7 and 1 on the candidates, 0 elsewhere.
    coef_, intercept_ : ndarrays of shape (n_features, n_labels) and (n_labels,)
        W, for features scaled to [−1, 1].
    hidden_coef_, output_coef_ : ndarrays of shape (n_features + 1, n_hidden) and (n_hidden, n_labels)
        V and U.
    %(objective_history)s
    %(iterations)s
    %(scaler)s
    %(fitted)s

    Notes
    -----
    Time: O(n²(d + c)) for the enhanced labels, in blocks of rows, and O(ndc) per iteration after decompositions of
    O(nd·min(n, d)). Memory: O(nd + d² + nc).

    In many dimensions no other row is near, and the enhanced labels are nearly the candidates themselves, with one level
    per column. This is how the method behaves.

    %(reference_and_data)s
    >>> from skpml.baselines import PLENFN
    >>> model = PLENFN(max_iter=500, random_state=0).fit(X, candidates)
    >>> bool(model.confidences_.max() <= 1)
    True
    """

    lam1: float = 10.0
    lam2: float = 1.0
    lam3: float = 0.01
    lam4: float = 10.0
    n_hidden: int | None = None
    exclude: Exclude = "none"
    threshold: float | str = "auto"
    max_iter: int = 200
    tol: float = 1e-3
    on_empty: str = "warn"
    random_state: Any = None

    _facts = MethodFacts(
        name="p-lenfn",
        title="P-LENFN",
        kind="baseline",
        summary="labels enhanced by near and far rows; a linear model guided by a small network",
        confidences=True,
        random=True,
        source="release",
        year=2024,
        reference="Chen, Wu, Han, Fang, Chen, Wen. Partial Multi-label Learning Based On Near-Far "
        "Neighborhood Label Enhancement And Nonlinear Guidance. ACM MM 2024, 3722–3731.",
        comparison_threshold="relative",
    )

    def _fit(self, X: Any, Y: Array) -> Array:
        self.scaler_ = RangeScaler().fit(X)
        features, Y = self.scaler_.transform(X).astype(np.float64), Y.astype(np.float64)
        with_constant = np.hstack([features, np.ones((len(features), 1))])
        # The same for all weights.
        J = once(
            lambda *_: enhance_labels(features, Y, exclude=self.exclude),
            np.hstack([features, Y]),
            "enhanced labels",
            self.exclude,
        )
        solution = solve(with_constant, J, *self._start(features, Y), self)
        self.confidences_ = J.astype(X.dtype)
        self.coef_, self.intercept_ = solution.coef[:-1], solution.coef[-1]
        self.hidden_coef_, self.output_coef_ = solution.hidden_coef, solution.output_coef
        self._record(solution.history, converged=solution.converged)
        self._set_rule()
        return self._scores(X)

    def _start(self, features: Matrix, Y: Matrix) -> tuple[Matrix, Matrix]:
        """Draw U and V for labels and features in the order of their content, not of their position."""
        rng = check_random_state(self.random_state)
        (d, c), k = (features.shape[1], Y.shape[1]), self.n_hidden or Y.shape[1]
        U, V = np.empty((k, c)), np.empty((d + 1, k))
        U[:, label_order(features, Y)] = rng.normal(size=(k, c))
        V[np.append(feature_order(features), d)] = rng.normal(size=(d + 1, k))
        return U, V

    def _scores(self, X: Any) -> Array:
        dtype = X.dtype
        scores = self.scaler_.transform(X) @ self.coef_.astype(dtype) + self.intercept_.astype(dtype)
        return self._subtract_cut(np.asarray(scores))
