"""The confidence step of PML-fp and PML-lc: which candidates of each row to believe, given the scores.

With the pairs' losses fixed, a row asks for ``min  Σ_k a_k P_k + Σ_{k,l} I_kl max(0, P_k − P_l) − P R Pᵀ`` over
``0 ≤ P ≤ 1``, ``Σ P ≥ 1``. In any fixed order of its values, P is a non-negative combination of the indicators of nested
sets, with two constraints on the coefficients. Without the reward R the problem is linear in them, so that a minimiser
has the form ``1_T`` or ``1_T / |T|`` for a set T of candidates. Sets are therefore compared, not vectors:

    cost(T) = Σ_{k∈T} a_k + Σ_{k∈T, l∉T} I_kl = Σ_{k∈T} own_k − Σ_{{k,l}⊆T} saved_kl

where ``own_k`` is the cost of {k} alone, and ``saved_kl = I_kl + I_lk`` is what k and l save by being believed together.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from skpml.baselines._pml_fp.ranking import Matrix, equal_size_blocks, smooth_hinge

Choice = tuple[Matrix, Matrix]
Index = NDArray[np.intp]

# Up to this many candidates all subsets are compared, beyond it only nested ones.
MAX_ENUMERATED = 12
_CELLS = 1 << 20
# Values closer than this, relative to the size of their terms, are equal: rounding must not decide.
_TIE = 1e-8


def update_confidences(
    scores: Matrix,
    candidates: NDArray[np.bool_],
    current: Matrix,
    *,
    pair_weights: Matrix,
    linear_cost: Matrix,
    pair_reward: Matrix,
) -> Matrix:
    """P of all rows: the best among vectors that are constant on a set of candidates and zero elsewhere, for

        g_i Σ_{k,l} max(0, P_ik − P_il) h(1 − f_ik + f_il)  +  Σ_k L_ik P_ik  −  P_i R P_iᵀ

    Parameters
    ----------
    scores : (n, c)
        f.
    candidates : (n, c)
    current : (n, c)
        Confidences of this form, which the new ones never do worse than.
    pair_weights : (n,)
        g.
    linear_cost : (n, c)
        L.
    pair_reward : (c, c)
        R, symmetric with an empty diagonal.
    """
    confidences = np.zeros_like(current)
    c = candidates.shape[1]
    for rows, members in equal_size_blocks(
        candidates, lambda size: max(size * c, _family_size(size)), _CELLS
    ):
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
    """Confidences (r×m) of rows with m candidates each.

    Parameters
    ----------
    own : (r, m)
    saved, reward : (r, m, m)
        Symmetric; the diagonals are not read.
    current : (r, m)
    """
    if own.shape[1] <= MAX_ENUMERATED:
        return subset_choice(own, saved, reward)[0]
    chosen, value = nested_choice(own, saved, reward)
    worse = _value(current, own, saved, reward) < value - _tolerance(own)
    return np.where(worse[:, None], current, chosen)


def subset_choice(own: Matrix, saved: Matrix, reward: Matrix) -> Choice:
    """The best of all non-empty sets, as confidences (r×m), and their values (r)."""
    m = own.shape[1]
    sets, pairs = _subsets(m)
    upper = np.triu_indices(m, 1)
    cost = own @ sets.T - saved[:, *upper] @ pairs.T
    gain = 2 * reward[:, *upper] @ pairs.T
    index, level, value = _choose(cost, gain, sets.sum(axis=1), _tolerance(own), _union_of_ties)
    return level[:, None] * sets[index], value


def nested_choice(own: Matrix, saved: Matrix, reward: Matrix) -> Choice:
    """The best among the sets of the 1, 2, …, m labels that cost least on their own: confidences (r×m) and values."""
    r, m = own.shape
    order = np.argsort(own, axis=1, kind="stable")
    sorted_pairs = np.arange(r)[:, None, None], order[:, :, None], order[:, None, :]
    ranked = np.take_along_axis(own, order, axis=1)
    earlier = np.triu(np.ones((m, m)), 1)
    cost = np.cumsum(ranked - (saved[sorted_pairs] * earlier).sum(axis=1), axis=1)
    gain = 2 * np.cumsum((reward[sorted_pairs] * earlier).sum(axis=1), axis=1)
    tolerance = _tolerance(own)
    # A set that holds one of two equal labels would depend on which stands first.
    cost[:, :-1][np.diff(ranked, axis=1) <= tolerance[:, None]] = np.inf
    index, level, value = _choose(cost, gain, np.arange(1.0, m + 1), tolerance, _last_of_ties)
    rank = np.argsort(order, axis=1)
    return level[:, None] * (rank <= index[:, None]), value


def _choose(
    cost: Matrix,
    gain: Matrix,
    sizes: Matrix,
    tolerance: Matrix,
    join: Callable[[Matrix, Matrix], Index],
) -> tuple[Index, Matrix, Matrix]:
    """From r×s costs and rewards of s sets: each row's set, the confidence (1 or 1/|T|) of its members, and the value."""
    rows = np.arange(len(cost))
    shared, whole = cost / sizes - gain / sizes**2, cost - gain
    by_shared, by_whole = join(shared, tolerance), join(whole, tolerance)
    lowest_shared, lowest_whole = shared[rows, by_shared], whole[rows, by_whole]
    is_whole = lowest_whole < lowest_shared - tolerance
    index = np.where(is_whole, by_whole, by_shared)
    level = np.where(is_whole, 1, 1 / sizes[index])
    return index, level, np.where(is_whole, lowest_whole, lowest_shared)


def _union_of_ties(values: Matrix, tolerance: Matrix) -> Index:
    """Place of the union of the sets of lowest value, where it is as low itself; else of the first lowest.

    ``cost(T) − μ|T|`` is submodular, so with μ the lowest ratio ``cost(T) / |T|`` the union of its minimisers is one of
    them: the one choice among ties that does not depend on the order of labels.
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
    """What confidences of the form level · 1_T cost."""
    off_diagonal = 1 - np.eye(own.shape[1])
    together = np.einsum("rk,rkl,rl->r", confidences, saved * off_diagonal, confidences)
    gain = np.einsum("rk,rkl,rl->r", confidences, reward * off_diagonal, confidences)
    return (own * confidences).sum(axis=1) - together / (2 * confidences.max(axis=1)) - gain


def _tolerance(own: Matrix) -> Matrix:
    return _TIE * np.abs(own).max(axis=1)


def _family_size(m: int) -> int:
    return 1 << m if m <= MAX_ENUMERATED else m


@cache
def _subsets(m: int) -> tuple[Matrix, Matrix]:
    """Indicators of all non-empty sets of m labels (2^m − 1 rows, in the order of their bits), and of their pairs."""
    sets = (np.arange(1, 1 << m)[:, None] >> np.arange(m) & 1).astype(np.float64)
    first, second = np.triu_indices(m, 1)
    return sets, sets[:, first] * sets[:, second]
