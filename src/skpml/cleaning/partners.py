"""Which label is true instead where another one is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A surplus counts from so many standard deviations of chance: the largest of many labels passes two of them by chance.
_DEVIATIONS = 3.0


def find_partners(
    confidences: NDArray[np.float64], Y: NDArray[Any], names: Sequence[str]
) -> tuple[str | None, ...]:
    """For each label the one that, where it is wrong, is true more often than usual.

    None where no other label is so by more than chance, or where less than one candidate is estimated to be wrong.

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
    n_wrong = np.maximum(doubt.sum(axis=0), 1e-12)[:, None]
    usual = confidences.mean(axis=0)
    surplus = doubt.T @ confidences / n_wrong - usual
    np.fill_diagonal(surplus, -np.inf)
    real = (surplus > _DEVIATIONS * np.sqrt(usual * (1 - usual) / n_wrong)) & (n_wrong >= 1)
    best = np.where(real, surplus, -np.inf).argmax(axis=1)
    return tuple(names[other] if real[label, other] else None for label, other in enumerate(best.tolist()))
