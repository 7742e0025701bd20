"""Why a candidate is doubted, in words and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from skpml.features import RangeScaler

# Rows that neighbours are looked for among; more take time and add little.
_MOST_ROWS = 20_000


@dataclass(frozen=True, kw_only=True)
class Reason:
    """What speaks for and against a candidate.

    Attributes
    ----------
    carried : int
        Of the nearest other rows, how many have the label among their candidates.
    neighbours : int
        How many nearest rows were looked at.
    usual : float
        Share of all rows that have it.
    probability : float
        Of the label to be true, by a model that has not seen the row, from the features alone: that somebody gave the
        tag, which the confidence also counts, is left aside.
    better : tuple of str
        Candidates of the row that are believed more, the most believed first.
    """

    carried: int
    neighbours: int
    usual: float
    probability: float
    better: tuple[str, ...]

    def __str__(self) -> str:
        text = (
            f"{self.carried} of {self.neighbours} similar rows have it ({_percent(self.usual)} of all); "
            f"leaving the tag aside, it is expected in {_percent(self.probability)} of such rows"
        )
        if self.better:
            text += f"; {' and '.join(self.better)} {'fits' if len(self.better) == 1 else 'fit'} better"
        return text


def _percent(share: float) -> str:
    """A share in whole percent; one that is not quite none or all is not shown as if it were."""
    if 0 < share < 0.005:
        return "<1%"
    return ">99%" if 0.995 < share < 1 else f"{share:.0%}"


def find_reasons(
    X: Any,
    Y: NDArray[Any],
    rows: NDArray[np.intp],
    labels: NDArray[np.intp],
    *,
    probabilities: NDArray[Any],
    confidences: NDArray[Any],
    label_names: Sequence[str],
    n_neighbors: int = 10,
    random_state: int = 0,
) -> list[Reason]:
    """A reason for each cell (row, label)."""
    if len(rows) == 0:
        return []
    asked, place = np.unique(rows, return_inverse=True)
    near = _neighbours(X, asked, n_neighbors, random_state)
    usual = np.mean(Y > 0, axis=0)
    carried = np.zeros(len(rows), dtype=np.intp)
    for column in range(near.shape[1]):
        carried += (Y[near[place, column], labels] > 0).astype(np.intp)
    found = []
    for cell, (row, label) in enumerate(zip(rows.tolist(), labels.tolist(), strict=True)):
        believed = confidences[row]
        better = np.argsort(-believed, kind="stable")[:2]
        found.append(
            Reason(
                carried=int(carried[cell]),
                neighbours=near.shape[1],
                usual=float(usual[label]),
                probability=float(probabilities[row, label]),
                better=tuple(
                    label_names[other]
                    for other in better.tolist()
                    if other != label and believed[other] > max(believed[label], 0.5)
                ),
            )
        )
    return found


def _neighbours(X: Any, rows: NDArray[np.intp], count: int, random_state: int) -> NDArray[np.intp]:
    """Nearest other rows of some rows, (m, count)."""
    n = X.shape[0]
    known = np.arange(n)
    if n > _MOST_ROWS:
        known = np.sort(np.random.default_rng(random_state).permutation(n)[:_MOST_ROWS])
    scaled = RangeScaler().fit_transform(X)
    count = min(count, len(known) - 1)
    search = NearestNeighbors(n_neighbors=count + 1).fit(scaled[known])
    found = known[search.kneighbors(scaled[rows], return_distance=False)]
    # A row is not its own neighbour, and may be missing from those that are known.
    own = found == rows[:, None]
    own[~own.any(axis=1), -1] = True
    return found[~own].reshape(len(rows), count)
