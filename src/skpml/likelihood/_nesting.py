"""Labels that never come without another: where every candidate set with *sea* has *water* too, *sea* cannot be the
more probable of the two.

A superset of a label's rows is at least as often a candidate in every kind of row, P(Y_a = 1) ≤ P(Y_b = 1), and with one
rate of noise for both, that is an order of the probabilities to be true. Estimates of two labels do not know of each
other and break it at random. Tags that imply each other (a taxonomy, a tool that adds the parents) look like this.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Chance that any two labels out of all look nested though they are independent.
_BY_CHANCE = 0.01
# With as many rows and no exception, exceptions are rarer than one in twenty (at 95 %).
_FEWEST_ROWS = 60
# The inner label stays below by at least this share, also in single precision.
_BELOW = 1 - 1e-6


def nested_labels(Y: NDArray[Any]) -> list[tuple[int, int]]:
    """Pairs (a, b): label a is never a candidate without label b, and more rarely than it.

    Pairs that few rows make up by chance are left out: among independent labels, as many rows with a would all have b
    with probability ``rate_b ** n_a``; and labels that go together, but not always, show an exception among enough rows.
    Outer labels come first, so that a chain is put right in one pass.
    """
    candidates = Y > 0
    n, c = candidates.shape
    together = candidates.T.astype(np.float64) @ candidates
    count = np.diag(together)
    log_chance = np.outer(count, np.log(np.maximum(count, 1) / n))
    inside = (together == count[:, None]) & (count[:, None] < count[None, :])
    sure = (log_chance < np.log(_BY_CHANCE / max(1, c * (c - 1)))) & (count[:, None] >= _FEWEST_ROWS)
    found = [(int(a), int(b)) for a, b in np.argwhere(inside & sure)]
    return sorted(found, key=lambda pair: (-count[pair[0]], pair))


def keep_order(probabilities: NDArray[Any], pairs: list[tuple[int, int]]) -> NDArray[Any]:
    """Probabilities (n×c) with every inner label below its outer one."""
    if not pairs:
        return probabilities
    ordered = probabilities.copy()
    for inner, outer in pairs:
        np.minimum(ordered[:, inner], ordered[:, outer] * _BELOW, out=ordered[:, inner])
    return ordered
