"""The two steps of PML-fp and PML-lc: linear scorers for given confidences, and confidences for given scores.

The model step fits scorers that rank a set of labels of each row above its other labels. The confidence step chooses the
confidences P of each row: ``min  Σ_k a_k P_k + Σ_{k,l} I_kl max(0, P_k − P_l) − P R Pᵀ`` over ``0 ≤ P ≤ 1``, ``Σ P ≥ 1``,
with the losses of the pairs fixed. In any fixed order of its values, P is a non-negative combination of the indicators of
nested sets, with two constraints on the coefficients. Without the reward R the problem is linear in them, so a minimizer
has the form ``1_T`` or ``1_T / |T|`` for a set T of candidates. Sets are therefore compared instead of vectors:

    cost(T) = Σ_{k∈T} a_k + Σ_{k∈T, l∉T} I_kl = Σ_{k∈T} own_k − Σ_{{k,l}⊆T} saved_kl

where ``own_k`` is the cost of {k} alone, and ``saved_kl = I_kl + I_lk`` is what k and l save together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.utils import gen_batches

from skpml.baselines._common import Matrix

Block = tuple[NDArray[np.intp], NDArray[np.intp]]
Choice = tuple[Matrix, Matrix]
Index = NDArray[np.intp]

# Width of the parabola that rounds the hinge, so that L-BFGS gets a differentiable function.
SMOOTHING = 0.1
# Up to this many candidates all subsets are compared, beyond it only nested ones.
MAX_ENUMERATED = 12
# Numbers in a block of label pairs (small enough for the processor's cache) and in a block of sets.
_PAIR_CELLS = 1 << 16
_SET_CELLS = 1 << 20
# Far below any margin, but zero times it is zero: switches a pair off.
_NEVER = -1e30
# The published model leaves biases free; those of a label without rows could then be any low value. A weight far below
# that of a single row makes them unique.
_BIAS_WEIGHT = 0.01
_GRADIENT_TOLERANCE = 1e-9
_MAX_STEPS = 5000
# Values closer than this, relative to the size of their terms, are equal, so that rounding does not decide.
_TIE = 1e-8


def equal_size_blocks(
    sets: NDArray[np.bool_], row_cells: Callable[[int], int], cells: int = _PAIR_CELLS
) -> Iterator[Block]:
    """Yield rows (r) with equally many members and their members (r×m, as column numbers) in blocks of ``cells`` numbers.

    Rows without members are dropped. ``row_cells`` returns how many numbers the caller needs for a row with m members.
    """
    sizes = sets.sum(axis=1)
    for size in np.unique(sizes[sizes > 0]).tolist():
        rows = np.flatnonzero(sizes == size)
        members = np.nonzero(sets[rows])[1].reshape(len(rows), size)
        for part in gen_batches(len(rows), max(1, cells // row_cells(size))):
            yield rows[part], members[part]


def smooth_hinge(slack: Matrix) -> tuple[Matrix, Matrix]:
    """Compute value and slope of ``h(m)``: 0 below 0, ``m²/2τ`` up to τ, ``m − τ/2`` above."""
    slope = np.clip(slack / SMOOTHING, 0, 1)
    return slope * (slack - SMOOTHING / 2 * slope), slope


def _pair_loss(
    scores: Matrix, blocks: list[Block], row_weights: Matrix, gradient: Matrix | None = None
) -> float:
    """Compute :func:`ranking_loss`; write its derivative in the scores to ``gradient``."""
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
    """Compute ``Σ_i u_i Σ_{k∈T_i, l∉T_i} h(1 − f_ik + f_il)``: every label of a set against every other label."""
    return _pair_loss(scores, _pair_blocks(sets), row_weights)


def model_size(coef: Matrix) -> float:
    """Compute ``Σ_k ‖w_k‖² + 0.01 Σ_k b_k²``; the last row holds the biases."""
    return float(np.sum(coef[:-1] ** 2) + _BIAS_WEIGHT * np.sum(coef[-1] ** 2))


def fit_ranking(X: Any, sets: NDArray[np.bool_], row_weights: Matrix, start: Matrix | None = None) -> Matrix:
    """Minimize the :func:`model_size` plus the :func:`ranking_loss` of the scores ``X @ coef`` by L-BFGS.

    X is an array, or what :func:`leave_out_lowest` makes of it. Its last column is ones, with the biases as coefficients.
    The loss depends only on differences of scores, so the biases of the minimizer sum to zero. L-BFGS takes ten to fifty
    times fewer steps if the features are centered.
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
        # No tolerance on the value: comparing costs of confidences needs an exact model.
        options=dict(maxcor=20, maxiter=_MAX_STEPS, maxfun=2 * _MAX_STEPS, ftol=0, gtol=_GRADIENT_TOLERANCE),
    )
    coef: Matrix = result.x.reshape(shape)
    return coef


def update_confidences(
    scores: Matrix,
    candidates: NDArray[np.bool_],
    current: Matrix,
    *,
    pair_weights: Matrix,
    linear_cost: Matrix,
    pair_reward: Matrix,
) -> Matrix:
    """P of all rows: the best vectors that are constant on a set of candidates and zero elsewhere, for

        g_i Σ_{k,l} max(0, P_ik − P_il) h(1 − f_ik + f_il)  +  Σ_k L_ik P_ik  −  P_i R P_iᵀ

    with f the ``scores``, g the ``pair_weights``, L the ``linear_cost`` and R the ``pair_reward``, symmetric with an
    empty diagonal. ``current`` are confidences of this form; the new ones are never worse.
    """
    confidences = np.zeros_like(current)
    c = candidates.shape[1]

    def row_cells(size: int) -> int:
        return max(size * c, 1 << size if size <= MAX_ENUMERATED else size)

    for rows, members in equal_size_blocks(candidates, row_cells, _SET_CELLS):
        block = np.arange(len(rows))[:, None]
        f = scores[rows]
        loss, _ = smooth_hinge(1 - f[block, members][:, :, None] + f[:, None, :])
        loss *= pair_weights[rows, None, None]
        within = np.take_along_axis(loss, members[:, None, :], axis=2)
        # A label makes no pair with itself.
        own = linear_cost[rows[:, None], members] + loss.sum(axis=2) - np.einsum("rkk->rk", within)
        saved = within + within.transpose(0, 2, 1)
        reward = pair_reward[members[:, :, None], members[:, None, :]]
        confidences[rows[:, None], members] = best_confidences(
            own, saved, reward, current[rows[:, None], members]
        )
    return confidences


def best_confidences(own: Matrix, saved: Matrix, reward: Matrix, current: Matrix) -> Matrix:
    """Choose confidences (r×m) of rows with m candidates; ``saved`` and ``reward`` (r×m×m) are symmetric."""
    if own.shape[1] <= MAX_ENUMERATED:
        return subset_choice(own, saved, reward)[0]
    chosen, value = nested_choice(own, saved, reward)
    worse = _value(current, own, saved, reward) < value - _tolerance(own)
    return np.where(worse[:, None], current, chosen)


def subset_choice(own: Matrix, saved: Matrix, reward: Matrix) -> Choice:
    """Choose the best of all non-empty sets: confidences (r×m) and values (r)."""
    m = own.shape[1]
    sets, pairs = _subsets(m)
    upper = np.triu_indices(m, 1)
    cost = own @ sets.T - saved[:, *upper] @ pairs.T
    gain = 2 * reward[:, *upper] @ pairs.T
    index, level, value = _choose(cost, gain, sets.sum(axis=1), _tolerance(own), _union_of_ties)
    return level[:, None] * sets[index], value


def nested_choice(own: Matrix, saved: Matrix, reward: Matrix) -> Choice:
    """Choose the best of the sets of the 1, 2, …, m labels that cost least on their own: confidences and values."""
    r, m = own.shape
    order = np.argsort(own, axis=1, kind="stable")
    sorted_pairs = np.arange(r)[:, None, None], order[:, :, None], order[:, None, :]
    ranked = np.take_along_axis(own, order, axis=1)
    earlier = np.triu(np.ones((m, m)), 1)
    cost = np.cumsum(ranked - (saved[sorted_pairs] * earlier).sum(axis=1), axis=1)
    gain = 2 * np.cumsum((reward[sorted_pairs] * earlier).sum(axis=1), axis=1)
    tolerance = _tolerance(own)
    # A set with one of two equal labels would depend on their order.
    cost[:, :-1][np.diff(ranked, axis=1) <= tolerance[:, None]] = np.inf
    index, level, value = _choose(cost, gain, np.arange(1.0, m + 1), tolerance, _last_of_ties)
    rank = np.argsort(order, axis=1)
    return level[:, None] * (rank <= index[:, None]), value


def _choose(
    cost: Matrix, gain: Matrix, sizes: Matrix, tolerance: Matrix, join: Callable[[Matrix, Matrix], Index]
) -> tuple[Index, Matrix, Matrix]:
    """Choose for each row, from r×s costs and rewards of s sets: set, confidence (1 or 1/|T|) of its members, value."""
    rows = np.arange(len(cost))
    shared, whole = cost / sizes - gain / sizes**2, cost - gain
    by_shared, by_whole = join(shared, tolerance), join(whole, tolerance)
    lowest_shared, lowest_whole = shared[rows, by_shared], whole[rows, by_whole]
    is_whole = lowest_whole < lowest_shared - tolerance
    index = np.where(is_whole, by_whole, by_shared)
    level = np.where(is_whole, 1, 1 / sizes[index])
    return index, level, np.where(is_whole, lowest_whole, lowest_shared)


def _union_of_ties(values: Matrix, tolerance: Matrix) -> Index:
    """Return the index of the union of the sets of lowest value, if its value is as low; else of the first lowest.

    ``cost(T) − μ|T|`` is submodular, so with μ the lowest ratio ``cost(T) / |T|`` the union of its minimizers is one of
    them: the only choice among ties that does not depend on the order of labels.
    """
    codes = np.arange(1, values.shape[1] + 1)
    lowest = values.min(axis=1)
    tied = values <= (lowest + tolerance)[:, None]
    union = np.bitwise_or.reduce(np.where(tied, codes, 0), axis=1) - 1
    as_low = values[np.arange(len(values)), union] <= lowest + 10 * tolerance
    return np.where(as_low, union, values.argmin(axis=1))


def _last_of_ties(values: Matrix, tolerance: Matrix) -> Index:
    tied = values <= (values.min(axis=1) + tolerance)[:, None]
    return values.shape[1] - 1 - tied[:, ::-1].argmax(axis=1)


def _value(confidences: Matrix, own: Matrix, saved: Matrix, reward: Matrix) -> Matrix:
    """Compute the cost of confidences of the form level · 1_T."""
    off_diagonal = 1 - np.eye(own.shape[1])
    together = np.einsum("rk,rkl,rl->r", confidences, saved * off_diagonal, confidences)
    gain = np.einsum("rk,rkl,rl->r", confidences, reward * off_diagonal, confidences)
    return (own * confidences).sum(axis=1) - together / (2 * confidences.max(axis=1)) - gain


def _tolerance(own: Matrix) -> Matrix:
    return _TIE * np.abs(own).max(axis=1)


@cache
def _subsets(m: int) -> tuple[Matrix, Matrix]:
    """Return indicators of all non-empty sets of m labels (2^m − 1 rows, in the order of bits), and of their pairs."""
    sets = (np.arange(1, 1 << m)[:, None] >> np.arange(m) & 1).astype(np.float64)
    first, second = np.triu_indices(m, 1)
    return sets, sets[:, first] * sets[:, second]
