"""Votes of several annotators: input checks, and the array of a long table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils import Bunch

from skpml._validation import is_count

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Votes:
    """Checked votes, as patterns: cells with equal votes of one label share their likelihood.

    ``counts`` (p, a, c) are the votes of a pattern by annotator and label, ``trials`` (p, a) how many it had, and
    ``index`` (n, c) is the pattern of each cell. Annotators that are not known count as one, with several trials.
    ``total`` (n, c) are the votes for a cell, ``n_seen`` (n) is the number of annotators of a row.
    """

    counts: Floats
    trials: Floats
    index: NDArray[np.intp]
    total: Floats
    n_seen: Floats
    known: bool

    @property
    def shares(self) -> Floats:
        """Return the share of the annotators of a row who gave it the label (n, c)."""
        return self.total / self.n_seen[:, None]


def check_votes(votes: Any, n_annotators: Any = None) -> Votes:
    """Check counts (n, c) of ``n_annotators``, or single votes (n, a, c) with NaN where an annotator saw no row."""
    dense = votes.toarray() if scipy.sparse.issparse(votes) else votes
    try:
        values = np.asarray(dense, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"votes must be an array of numbers, got {type(votes).__name__}.") from None
    if values.ndim not in (2, 3) or 0 in values.shape:
        raise ValueError(
            f"votes must be counts of shape (n_rows, n_labels) or single votes of shape (n_rows, n_annotators, "
            f"n_labels), got {values.shape}."
        )
    return _check_single(values, n_annotators) if values.ndim == 3 else _check_counts(values, n_annotators)


def _check_counts(values: Floats, n_annotators: Any) -> Votes:
    n, c = values.shape
    if n_annotators is None:
        raise ValueError("n_annotators is needed if votes are counts: a number, or one for each row.")
    try:
        trials = np.asarray(n_annotators, dtype=np.float64)
    except (TypeError, ValueError):
        trials = np.array(np.nan)
    if trials.shape not in ((), (n,)):
        raise ValueError(f"n_annotators must be a number or one for each of {n} rows, got {trials.shape}.")
    trials = np.broadcast_to(trials, (n,))
    bad = np.flatnonzero(~((trials >= 1) & (trials < np.inf) & (trials == np.floor(trials))))
    if bad.size:
        raise ValueError(
            f"n_annotators must be whole numbers of at least 1, but that of row {bad[0]} is {trials[bad[0]]:g}; "
            "leave out rows that nobody saw."
        )
    # A comparison with NaN is false.
    wrong = ~((values >= 0) & (values <= trials[:, None]) & (values == np.floor(values)))
    _raise_at(wrong, values, "whole numbers from 0 to n_annotators")
    pairs, index = np.unique(
        np.stack([values, np.broadcast_to(trials[:, None], (n, c))], axis=-1).reshape(-1, 2),
        axis=0,
        return_inverse=True,
    )
    counts = np.broadcast_to(pairs[:, :1, None], (len(pairs), 1, c))
    return Votes(
        counts=counts,
        trials=pairs[:, 1:],
        index=index.reshape(n, c),
        total=values,
        n_seen=np.array(trials),
        known=False,
    )


def _check_single(values: Floats, n_annotators: Any) -> Votes:
    if n_annotators is not None:
        raise ValueError(
            "n_annotators must be None if votes has one entry per annotator: NaN says who saw which row."
        )
    n, _, c = values.shape
    missing: NDArray[np.bool_] = np.isnan(values)
    seen: NDArray[np.bool_] = np.logical_not(missing.all(axis=2))
    partly = np.argwhere(missing & seen[:, :, None])
    if len(partly):
        row, annotator, label = partly[0].tolist()
        raise ValueError(
            f"votes of row {row}, annotator {annotator} are NaN for label {label}, but not for every label; an "
            "annotator saw a row or did not: fill in 0 for labels that were not given."
        )
    _raise_at(~(missing | (values == 0) | (values == 1)), values, "0, 1 or NaN")
    unseen = np.flatnonzero(~seen.any(axis=1))
    if unseen.size:
        raise ValueError(
            f"No annotator saw row {unseen[0]} ({unseen.size} such rows in all); leave them out of X and votes."
        )
    counts = np.where(missing, 0.0, values)
    return Votes(
        counts=counts,
        trials=np.asarray(seen, dtype=np.float64),
        index=np.broadcast_to(np.arange(n)[:, None], (n, c)),
        total=counts.sum(axis=1),
        n_seen=seen.sum(axis=1).astype(np.float64),
        known=True,
    )


def _raise_at(wrong: NDArray[np.bool_], values: Floats, allowed: str) -> None:
    """Raise for the first wrong vote, with its place."""
    if not wrong.any():
        return
    row, *annotator, label = np.argwhere(wrong)[0].tolist()
    by = f", annotator {annotator[0]}" if annotator else ""
    value = values[(row, *annotator, label)]
    raise ValueError(f"votes must be {allowed}, but row {row}{by}, label {label} has {value:g}.")


def count_votes(
    rows: Iterable[Any],
    annotators: Iterable[Any],
    labels: Iterable[Any],
    *,
    row_names: Sequence[Any] | None = None,
    annotator_names: Sequence[Any] | None = None,
    label_names: Sequence[Any] | None = None,
) -> Bunch:
    """Turn a long table of votes into an array of rows, annotators and labels.

    Each line of the table is one vote. An annotator who gave a row any label saw it, and did not give it the others. A
    line with an empty label (None, NaN or "") says that the annotator saw the row and gave it nothing.

    Parameters
    ----------
    rows : sequence of length n_votes
        Row of each vote, by name or number.
    annotators : sequence of length n_votes
        Annotator of each vote.
    labels : sequence of length n_votes
        Label of each vote, or an empty one.
    row_names : sequence or None, default=None
        Rows in the order of the result; None sorts those of the table.
    annotator_names : sequence or None, default=None
        Annotators in the order of the result; None sorts those of the table.
    label_names : sequence or None, default=None
        Labels in the order of the result; None sorts those of the table.

    Returns
    -------
    Bunch
        ``votes`` of shape (n_rows, n_annotators, n_labels), with 1 for a vote, 0 for none and NaN where the annotator
        did not see the row; and ``row_names``, ``annotator_names`` and ``label_names``.

    Raises
    ------
    ValueError
        If the columns differ in length, a row or an annotator is missing, or a name is not among those given.

    Examples
    --------
    >>> from skpml.candidate_likelihood import count_votes
    >>> table = count_votes([0, 0, 1], ["ann", "bob", "ann"], ["cat", "dog", None])
    >>> table.votes[0]
    array([[1., 0.],
           [0., 1.]])
    >>> table.votes[1]
    array([[ 0.,  0.],
           [nan, nan]])
    """
    columns = {"rows": list(rows), "annotators": list(annotators), "labels": list(labels)}
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"rows, annotators and labels must have the same length, got {lengths}.")
    empty = [_is_empty(label) for label in columns["labels"]]
    for name in ("rows", "annotators"):
        for line, value in enumerate(columns[name]):
            if _is_empty(value):
                raise ValueError(f"{name} must not be empty, but line {line} is {value!r}.")
    given = [label for label, nothing in zip(columns["labels"], empty, strict=True) if not nothing]
    names = {
        "row_names": _order_names("row_names", columns["rows"], row_names),
        "annotator_names": _order_names("annotator_names", columns["annotators"], annotator_names),
        "label_names": _order_names("label_names", given, label_names),
    }
    places = [{name: place for place, name in enumerate(found)} for found in names.values()]
    votes = np.full([len(place) for place in places], np.nan)
    seen = [
        (places[0][row], places[1][who])
        for row, who in zip(columns["rows"], columns["annotators"], strict=True)
    ]
    for row, who in seen:
        votes[row, who] = 0.0
    for (row, who), label, nothing in zip(seen, columns["labels"], empty, strict=True):
        if not nothing:
            votes[row, who, places[2][label]] = 1.0
    return Bunch(votes=votes, **names)


def _is_empty(value: Any) -> bool:
    return value is None or value == "" or value != value


def _order_names(what: str, found: list[Any], given: Sequence[Any] | None) -> list[Any]:
    """Return the names in the order of the result; those of the table must be among given ones."""
    if given is None:
        try:
            return sorted(set(found))
        except TypeError as error:
            raise ValueError(f"Names of different types cannot be sorted; give {what}.") from error
    names = list(given)
    if len(set(names)) < len(names):
        raise ValueError(f"{what} must differ, but a name appears twice.")
    unknown = sorted(map(repr, set(found) - set(names)))
    if unknown:
        raise ValueError(f"The table has names that are not in {what}: {', '.join(unknown[:5])}.")
    return names


def has_few_annotators(votes: Votes) -> bool:
    """Return whether no row was seen by three annotators: then rates are not identified by votes."""
    return bool(votes.n_seen.max() < 3)


def check_max_iter(max_iter: Any) -> None:
    """Raise an error if the largest number of iterations is not a whole number of at least 1."""
    if not is_count(max_iter):
        raise ValueError(f"max_iter must be a whole number of at least 1, got {max_iter!r}.")
