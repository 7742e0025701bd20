"""The model step of PML-fp and PML-lc: linear scorers that rank a set of labels of each row above its other labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Matrix = NDArray[np.float64]
Block = tuple[NDArray[np.intp], NDArray[np.intp]]

# Width of the parabola that rounds off the hinge, so that L-BFGS meets a differentiable function.
SMOOTHING = 0.1
# A block of label pairs holds about this many numbers: small enough to stay in the processor's cache.
_CELLS = 1 << 16
# Far below any margin, yet times zero it is zero: switches a pair off.
_NEVER = -1e30
# The published model leaves biases free; then those of a label that no row holds up may end anywhere below the others.
# A weight far below that of a single row gives them one place.
_BIAS_WEIGHT = 0.01
_GRADIENT_TOLERANCE = 1e-9
_MAX_STEPS = 5000


def equal_size_blocks(
    sets: NDArray[np.bool_], row_cells: Callable[[int], int], cells: int = _CELLS
) -> Iterator[Block]:
    """Rows (r) with equally many members and their members (r×m, as column numbers), in blocks of bounded size.

    Parameters
    ----------
    sets : (n, c)
        Rows without members are left out.
    row_cells : callable
        How many numbers the caller needs for a row of so many members.
    cells : int
        Numbers in a block.
    """
    sizes = sets.sum(axis=1)
    for size in np.unique(sizes[sizes > 0]).tolist():
        rows = np.flatnonzero(sizes == size)
        members = np.nonzero(sets[rows])[1].reshape(len(rows), size)
        step = max(1, cells // row_cells(size))
        for start in range(0, len(rows), step):
            yield rows[start : start + step], members[start : start + step]


def smooth_hinge(slack: Matrix) -> tuple[Matrix, Matrix]:
    """Value and slope of ``h(m)``: 0 below 0, ``m²/2τ`` up to τ, ``m − τ/2`` above."""
    slope = np.clip(slack / SMOOTHING, 0, 1)
    return slope * (slack - SMOOTHING / 2 * slope), slope


def _pair_loss(
    scores: Matrix, blocks: list[Block], row_weights: Matrix, gradient: Matrix | None = None
) -> float:
    """The loss of :func:`ranking_loss`; its derivative in the scores is written to ``gradient``."""
    total = 0.0
    for rows, members in blocks:
        outside = scores[rows]
        inside = np.take_along_axis(outside, members, axis=1)
        outside += 1
        np.put_along_axis(outside, members, _NEVER, axis=1)
        loss, slope = smooth_hinge(outside[:, None, :] - inside[:, :, None])
        weights = row_weights[rows]
        total += float(weights @ loss.sum(axis=(1, 2)))
        if gradient is not None:
            pull = slope.sum(axis=1)
            np.put_along_axis(pull, members, -slope.sum(axis=2), axis=1)
            gradient[rows] = weights[:, None] * pull
    return total


def _pair_blocks(sets: NDArray[np.bool_]) -> list[Block]:
    return list(equal_size_blocks(sets, lambda size: size * sets.shape[1]))


def ranking_loss(scores: Matrix, sets: NDArray[np.bool_], row_weights: Matrix) -> float:
    """``Σ_i u_i Σ_{k∈T_i, l∉T_i} h(1 − f_ik + f_il)``: every label of a set is ranked against every other."""
    return _pair_loss(scores, _pair_blocks(sets), row_weights)


def model_size(coef: Matrix) -> float:
    """``Σ_k ‖w_k‖² + 0.01 Σ_k b_k²``; the last row holds the biases."""
    return float(np.sum(coef[:-1] ** 2) + _BIAS_WEIGHT * np.sum(coef[-1] ** 2))


def fit_ranking(
    X: Matrix, sets: NDArray[np.bool_], row_weights: Matrix, start: Matrix | None = None
) -> Matrix:
    """Minimise the :func:`model_size` plus the :func:`ranking_loss` of the scores ``X @ coef``, by L-BFGS.

    The loss sees differences of scores alone, so the biases of the minimiser sum to zero.

    Parameters
    ----------
    X : (n, d + 1)
        Features and a last column of ones, whose coefficients are the biases. L-BFGS takes ten to fifty times fewer
        steps where the features are centred.
    sets : (n, c)
        T_i.
    row_weights : (n,)
        u_i.
    start : (d + 1, c) or None
        None is zero.

    Returns
    -------
    (d + 1, c)
    """
    shape = X.shape[1], sets.shape[1]
    blocks = _pair_blocks(sets)
    by_score = np.zeros(sets.shape)

    def objective(flat: Matrix) -> tuple[float, Matrix]:
        coef = flat.reshape(shape)
        loss = _pair_loss(X @ coef, blocks, row_weights, by_score)
        gradient = X.T @ by_score
        gradient[:-1] += 2 * coef[:-1]
        gradient[-1] += 2 * _BIAS_WEIGHT * coef[-1]
        return loss + model_size(coef), gradient.ravel()

    result = minimize(
        objective,
        np.zeros(shape[0] * shape[1]) if start is None else start.ravel(),
        method="L-BFGS-B",
        jac=True,
        # No tolerance on the value: the confidences are chosen by comparing costs, which asks for an exact model.
        options=dict(maxcor=20, maxiter=_MAX_STEPS, maxfun=2 * _MAX_STEPS, ftol=0, gtol=_GRADIENT_TOLERANCE),
    )
    coef: Matrix = result.x.reshape(shape)
    return coef
