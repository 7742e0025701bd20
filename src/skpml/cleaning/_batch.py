"""Which tags a person should check next: some at random, which show how many are wrong, and some where it helps most.

All candidates stand in one random order, which depends on the candidates and a seed alone. A prefix of it is a random
sample, whatever else was checked, and however many batches it took: so the estimate from it stays valid while the other
part of each batch is chosen by what the model finds useful.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Share of a batch that is drawn at random.
RANDOM_SHARE = 0.7


@dataclass(frozen=True, kw_only=True)
class Question:
    """A tag that a person is asked to check.

    Parameters
    ----------
    row : int
        Row of the tag.
    label : int
        Its label, by position.
    drawn : int
        Place of the tag in the random order of all tags, from 1; 0 if it was chosen because its answer helps most.
    """

    row: int
    label: int
    drawn: int


def random_order(Y: NDArray[Any], random_state: int) -> NDArray[Any]:
    """Return the place of each candidate in a random order, from 1; 0 outside the candidates.

    The order is stratified: in every prefix, the drawn shares of two labels differ by less than one cell of each. The
    chance to be within a prefix is the same for all cells if labels are equally frequent; otherwise, that of rare labels
    differs by less than one place.
    """
    random = np.random.default_rng(random_state)
    candidate = Y > 0
    cells = np.flatnonzero(candidate)
    key = np.empty(len(cells))
    labels = cells % Y.shape[1]
    for label in range(Y.shape[1]):
        of_label = np.flatnonzero(labels == label)
        key[of_label] = (random.permutation(len(of_label)) + random.random()) / max(len(of_label), 1)
    places = np.zeros(Y.shape, dtype=np.int32 if Y.size < 1 << 31 else np.int64)
    places.flat[cells[np.argsort(key, kind="stable")]] = np.arange(1, len(cells) + 1)
    return places


def find_sample(
    places: NDArray[Any], verified: NDArray[Any], drawn: NDArray[np.bool_] | None = None
) -> NDArray[np.bool_]:
    """Return which verified cells are a random sample: the longest prefix of the order that is verified.

    Where it is known which cells were ``drawn``, the prefix ends with one of them. Otherwise it would go on as long as
    cells were chosen, and end with chosen ones. Chosen cells before its end belong to it: they were not asked again.
    """
    unknown = places[(places > 0) & (verified == 0)]
    sample = (places > 0) & (places < unknown.min(initial=places.max() + 1))
    return sample if drawn is None else sample & (places <= places[sample & drawn].max(initial=0))


def propose_batch(
    places: NDArray[Any], verified: NDArray[Any], usefulness: NDArray[Any], *, size: int
) -> list[Question]:
    """Return the next cells to check: the next ones of the random order, then those that help most."""
    left = np.flatnonzero((places > 0) & (verified == 0))
    place, useful = places.flat[left], usefulness.flat[left]
    drawn = _find_least(place, round(size * RANDOM_SHARE))
    useful[drawn] = -np.inf
    helpful = _find_least(-useful, min(max(size - len(drawn), 0), len(left) - len(drawn)))
    n_labels = places.shape[1]
    return [
        Question(row=cell // n_labels, label=cell % n_labels, drawn=number)
        for cells, numbers in ((left[drawn], place[drawn]), (left[helpful], np.zeros_like(helpful)))
        for cell, number in zip(cells.tolist(), numbers.tolist(), strict=True)
    ]


def _find_least(values: NDArray[Any], count: int) -> NDArray[np.intp]:
    """Return where the smallest values are, in ascending order, of equal ones the first, without sorting all."""
    if not 0 < count < len(values):
        return np.argsort(values, kind="stable")[:count]
    some = np.flatnonzero(values <= np.partition(values, count - 1)[count - 1])
    return some[np.argsort(values[some], kind="stable")[:count]]
