"""Why a candidate is doubted, and which label is true instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc
from sklearn.neighbors import NearestNeighbors

from skpml.features import RangeScaler

# Rows among which neighbors are searched; more take time and add little.
_MOST_ROWS = 20_000
# A label gets a partner by mere chance at most this often.
_CHANCE = 0.05


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Evidence for and against a candidate; ``str(reason)`` is a sentence.

    Parameters
    ----------
    carried : int
        How many of the nearest other rows carry the label.
    neighbors : int
        Number of nearest rows that were compared; 0 without features.
    usual : float
        Share of all rows that carry it.
    probability : float
        Probability that the label is true, by a model that has not seen the row, from the features alone. The confidence
        also counts that somebody gave the tag.
    better : tuple of str
        Candidates of the row with a higher confidence, the highest first.
    """

    carried: int
    neighbors: int
    usual: float
    probability: float
    better: tuple[str, ...]

    def __str__(self) -> str:
        text = f"leaving the tag aside, it is expected in {_percent(self.probability)} of such rows"
        if self.neighbors:
            usual = _percent(self.usual)
            text = f"{self.carried} of {self.neighbors} similar rows have it ({usual} of all); {text}"
        if self.better:
            text += f"; {' and '.join(self.better)} {'fits' if len(self.better) == 1 else 'fit'} better"
        return text


def _percent(share: float) -> str:
    """Format a share in whole percent; only 0 and 1 are shown as 0% and 100%."""
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
    """Return a reason for each cell (row, label); neighbors are counted if there are features X."""
    if len(rows) == 0:
        return []
    asked, place = np.unique(rows, return_inverse=True)
    near = np.empty((len(asked), 0), dtype=np.intp)
    if X is not None:
        near = _find_neighbors(X, asked, n_neighbors, random_state)
    usual = np.mean(Y > 0, axis=0)
    carried = np.zeros(len(rows), dtype=np.intp)
    for column in range(near.shape[1]):
        carried += (Y[near[place, column], labels] > 0).astype(np.intp)
    found = []
    for cell, (row, label) in enumerate(zip(rows.tolist(), labels.tolist(), strict=True)):
        sure = confidences[row]
        highest = np.argsort(-sure, kind="stable")[:2].tolist()
        found.append(
            Reason(
                carried=int(carried[cell]),
                neighbors=near.shape[1],
                usual=float(usual[label]),
                probability=float(probabilities[row, label]),
                better=tuple(
                    label_names[other]
                    for other in highest
                    if other != label and sure[other] > max(sure[label], 0.5)
                ),
            )
        )
    return found


def _find_neighbors(X: Any, rows: NDArray[np.intp], count: int, random_state: int) -> NDArray[np.intp]:
    """Return the nearest other rows of some rows, (m, count)."""
    n = X.shape[0]
    known = np.arange(n)
    if n > _MOST_ROWS:
        known = np.sort(np.random.default_rng(random_state).permutation(n)[:_MOST_ROWS])
    scaled = RangeScaler().fit_transform(X)
    count = min(count, len(known) - 1)
    search = NearestNeighbors(n_neighbors=count + 1).fit(scaled[known])
    found = known[search.kneighbors(scaled[rows], return_distance=False)]
    # A row is not its own neighbor, and may not be among the known rows.
    own = found == rows[:, None]
    own[~own.any(axis=1), -1] = True
    return found[~own].reshape(len(rows), count)


def find_partners(
    confidences: NDArray[np.float64], Y: NDArray[Any], names: Sequence[str]
) -> tuple[str | None, ...]:
    """Return for each label the one that is true more often than usual where the label is wrong, or None.

    If labels had nothing to do with each other, the number of wrong candidates beside which another label is true would
    be binomial; a partner has a probability below 1/20 in its upper tail, times the number of other labels. Labels with
    fewer than one wrong candidate have no partner.
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
