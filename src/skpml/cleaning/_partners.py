"""Which label is true instead where another one is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc

# A label gets a partner by mere chance at most this often.
_CHANCE = 0.05


def find_partners(
    confidences: NDArray[np.float64], Y: NDArray[Any], names: Sequence[str]
) -> tuple[str | None, ...]:
    """For each label the one that, where it is wrong, is true more often than usual.

    None where no other label is so by more than chance, or where less than one candidate is estimated to be wrong. If
    labels had nothing to do with each other, the number of wrong candidates beside which another label is true would be
    binomial; a partner is less likely than one in twenty in its upper tail, times the number of other labels.

    Parameters
    ----------
    confidences : (n, c)
        Of candidates to be true; 0 elsewhere.
    Y : (n, c) of 0 and 1
        The candidates.
    names : sequence of str
        Of the labels.
    """
    doubt = np.where(Y > 0, 1 - confidences, 0.0)
    n_wrong = doubt.sum(axis=0)[:, None]
    beside, usual = doubt.T @ confidences, confidences.mean(axis=0)
    possible = (beside > n_wrong * usual) & (n_wrong >= 1)
    np.fill_diagonal(possible, False)
    # The binomial tail, in the form that also takes sums of probabilities.
    tail = betainc(np.where(possible, beside, 1.0), np.maximum(n_wrong - beside, 0) + 1, usual)
    chance = np.where(possible, tail * (len(names) - 1), np.inf)
    best = chance.argmin(axis=1)
    return tuple(
        names[other] if chance[label, other] < _CHANCE else None for label, other in enumerate(best.tolist())
    )
