"""Which tags a person should check next: some at random, which show how many are wrong, and some where it helps most.

All candidates stand in one random order, which depends on the candidates and a seed alone. A prefix of it is a random
sample, whatever else was checked, and however many batches it took: so the estimate from it stays valid while the other
part of each batch is chosen by what the model finds useful. All doubtful tags are ordered by this use, with reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.neighbors import NearestNeighbors

from skpml._validation import take_rows
from skpml.cleaning._judging import ASK, DROP, Actions, Floats, benefit
from skpml.features import RangeScaler

# Share of a batch that is drawn at random.
RANDOM_SHARE = 0.7
# Rows among which neighbors are searched; more take time and add little.
_MOST_ROWS = 20_000
# Similar rows that a reason names, with the label and without it.
_MOST_SIMILAR = 3
# Doubts for which similar rows are searched, the most useful ones: more than anybody looks at.
MAX_COMPARED = 50_000


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
        Probability that the label is true, by a model that has not seen the row, from the features alone.
    confidence : float
        Probability that it is true, given all evidence: also that the row carries it, and what was verified.
    similar_with : tuple of int
        The most similar other rows that carry the label, at most three, the nearest first.
    similar_without : tuple of int
        Those of the nearest rows that do not carry it, at most three.
    """

    carried: int
    neighbors: int
    usual: float
    probability: float
    confidence: float
    similar_with: tuple[int, ...] = ()
    similar_without: tuple[int, ...] = ()

    def __str__(self) -> str:
        # Without the second number, a low first one would seem to contradict the confidence.
        why = "since the row has it" if self.confidence > self.probability else "with all evidence"
        text = f"The features alone make the tag {_percent(self.probability)} likely; {why}, {_percent(self.confidence)}."
        if not self.neighbors:
            return text
        have = "has" if self.carried == 1 else "have"
        counted = f"{self.carried} of {self.neighbors} similar rows {have} the tag"
        return f"{counted}; {_percent(self.usual)} of all rows have it. {text}"


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
    n_neighbors: int = 10,
    random_state: int = 0,
) -> list[Reason]:
    """Return a reason for each cell (row, label); neighbors are found if there are features X."""
    if len(rows) == 0:
        return []
    near = np.empty((len(rows), 0), dtype=np.intp)
    with_label = [np.empty(0, dtype=np.intp)] * len(rows)
    if X is not None:
        search = _NeighborSearch(X, random_state)
        asked, place = np.unique(rows, return_inverse=True)
        near = search.find(asked, n_neighbors)[place]
        for label in np.unique(labels).tolist():
            cells = np.flatnonzero(labels == label)
            found = search.find(rows[cells], _MOST_SIMILAR, among=Y[:, label] > 0)
            for cell, similar in zip(cells.tolist(), found, strict=True):
                with_label[cell] = similar
    usual = np.mean(Y > 0, axis=0)
    reasons = []
    for cell, (row, label) in enumerate(zip(rows.tolist(), labels.tolist(), strict=True)):
        carries = Y[near[cell], label] > 0
        reasons.append(
            Reason(
                carried=int(carries.sum()),
                neighbors=near.shape[1],
                usual=float(usual[label]),
                probability=float(probabilities[row, label]),
                confidence=float(confidences[row, label]),
                similar_with=tuple(with_label[cell].tolist()),
                similar_without=tuple(near[cell][~carries][:_MOST_SIMILAR].tolist()),
            )
        )
    return reasons


class _NeighborSearch:
    """Search for the nearest other rows, among all or among some; among random ones if there are too many."""

    def __init__(self, X: Any, random_state: int) -> None:
        n = X.shape[0]
        self._known = np.arange(n)
        if n > _MOST_ROWS:
            self._known = np.sort(np.random.default_rng(random_state).permutation(n)[:_MOST_ROWS])
        self._X = X
        with config_context(transform_output="default"):
            self._scaler = RangeScaler().fit(take_rows(X, self._known))

    def find(
        self, rows: NDArray[np.intp], count: int, *, among: NDArray[np.bool_] | None = None
    ) -> NDArray[np.intp]:
        """Return the nearest other rows of some rows, (m, count), or fewer columns if there are fewer."""
        known = self._known if among is None else self._known[among[self._known]]
        # A row that is searched for may be among them.
        count = min(count, len(known) - 1)
        if count < 1:
            return np.empty((len(rows), 0), dtype=np.intp)
        search = NearestNeighbors(n_neighbors=count + 1).fit(self._scale(known))
        found = known[search.kneighbors(self._scale(rows), return_distance=False)]
        # A row is not its own neighbor, and may not be among the known rows.
        own = found == rows[:, None]
        own[~own.any(axis=1), -1] = True
        return found[~own].reshape(len(rows), count)

    def _scale(self, rows: NDArray[np.intp]) -> Any:
        with config_context(transform_output="default"):
            return self._scaler.transform(take_rows(self._X, rows))


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """A candidate that may be wrong.

    Parameters
    ----------
    row : int
        Row of the candidate.
    label : int
        Its label, by position.
    confidence : float
        Probability that it is true.
    action : {"drop", "ask"}
        What is suggested.
    reason : Reason
        Evidence; ``str(reason)`` is a sentence.
    """

    row: int
    label: int
    confidence: float
    action: str
    reason: Reason


class Doubts(Sequence[Doubt]):
    """Doubtful candidates, the most useful to check first.

    A sequence of :class:`Doubt`, made when asked for, since a large table has millions of them. Similar rows are known
    for the first 50,000; the reasons of the others do not count any.

    Parameters
    ----------
    rows, labels : ndarray of int of shape (n_doubts,)
        Row and label of each candidate.
    confidences, probabilities : ndarray of shape (n_doubts,)
        Its confidence, and the probability that the label is true by the features alone.
    dropped : ndarray of bool of shape (n_doubts,)
        Whether it is dropped; a person is asked about the others.
    usual : ndarray of shape (n_labels,)
        Share of all rows that carry each label.
    reasons : list of Reason
        Reasons with similar rows, of the first of all doubts.
    places : ndarray of int of shape (n_doubts,) or None, default=None
        Places of these doubts among all; None if these are all.
    """

    def __init__(
        self,
        rows: NDArray[np.intp],
        labels: NDArray[np.intp],
        *,
        confidences: Floats,
        probabilities: Floats,
        dropped: NDArray[np.bool_],
        usual: Floats,
        reasons: list[Reason],
        places: NDArray[np.intp] | None = None,
    ) -> None:
        # Reasons are those of the first of all doubts, of which these have the given places.
        self._places = np.arange(len(rows)) if places is None else places
        self.rows, self.labels, self.confidences, self.dropped = rows, labels, confidences, dropped
        self._probabilities, self._usual, self._reasons = probabilities, usual, reasons

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> Doubt: ...

    @overload
    def __getitem__(self, place: slice) -> Doubts: ...

    def __getitem__(self, place: int | slice) -> Doubt | Doubts:
        if isinstance(place, slice):
            return self.select(np.arange(len(self))[place])
        place = range(len(self))[place]
        row, label = int(self.rows[place]), int(self.labels[place])
        return Doubt(
            row=row,
            label=label,
            confidence=float(self.confidences[place]),
            action=DROP if self.dropped[place] else ASK,
            reason=self._explain(place),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __repr__(self) -> str:
        return f"<{len(self):,} doubts, {np.count_nonzero(self.dropped):,} of them dropped>"

    def select(self, places: NDArray[Any]) -> Doubts:
        """Return some of the doubts.

        Parameters
        ----------
        places : ndarray of int or of bool
            Which doubts: their numbers, or a mask.

        Returns
        -------
        Doubts
            These doubts, in the order of the numbers.
        """
        return Doubts(
            self.rows[places],
            self.labels[places],
            confidences=self.confidences[places],
            probabilities=self._probabilities[places],
            dropped=self.dropped[places],
            usual=self._usual,
            reasons=self._reasons,
            places=self._places[places],
        )

    def _explain(self, place: int) -> Reason:
        """Return the reason with similar rows if they were searched, else one without."""
        if (original := int(self._places[place])) < len(self._reasons):
            return self._reasons[original]
        return Reason(
            carried=0,
            neighbors=0,
            usual=float(self._usual[self.labels[place]]),
            probability=float(self._probabilities[place]),
            confidence=float(self.confidences[place]),
        )


def find_doubts(
    X: Any,
    Y: NDArray[Any],
    doubtful: NDArray[np.bool_],
    actions: Actions,
    *,
    probabilities: Floats,
    confidences: Floats,
    n_neighbors: int,
    random_state: int,
) -> Doubts:
    """Order the doubtful cells by the use of a check, and find the evidence about the first of them."""
    rows, labels = np.nonzero(doubtful)
    order = np.argsort(-benefit(confidences[rows, labels]), kind="stable")
    rows, labels = rows[order], labels[order]
    reasons = find_reasons(
        X,
        Y,
        rows[:MAX_COMPARED],
        labels[:MAX_COMPARED],
        probabilities=probabilities,
        confidences=confidences,
        n_neighbors=n_neighbors,
        random_state=random_state,
    )
    return Doubts(
        rows,
        labels,
        confidences=confidences[rows, labels],
        probabilities=probabilities[rows, labels],
        dropped=actions[rows, labels] == DROP,
        usual=np.mean(Y > 0, axis=0),
        reasons=reasons,
    )
