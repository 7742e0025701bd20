"""Decisions of a person about doubtful labels: a small CSV file, checked against its table."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpml._writing import replacing
from skpml.cleaning._batch import find_sample, random_order
from skpml.tables import (
    Argument,
    Dialect,
    Record,
    Table,
    TableError,
    detect_dialect,
    find_repeated,
    format_names,
    quote_text,
    read_records,
)

# The first four are required. The last two are written only if a line has a value there.
DECISION_COLUMNS = ("id", "row", "label", "decision", "confidence", "by", "drawn")
_N_REQUIRED, _N_WRITTEN = 4, 5
# What is decided about labels that a row has, and about others.
_WORDS, _ADD = {"keep": True, "drop": False}, "add"
_BY_MODEL = "model"


@dataclass(frozen=True, kw_only=True)
class RandomSample:
    """Decisions that are a random sample of all tags: they show how many tags are wrong.

    Parameters
    ----------
    cells : ndarray of bool, shape (n_rows, n_labels)
        True for the tags of the sample.
    n_misplaced : int
        Decisions whose recorded place is not that of their tag in the random order: the seed or the file was another
        one, or the decisions were edited.
    n_after_gap : int
        Decisions with the right place that come after an undecided tag in the random order.
    """

    cells: NDArray[np.bool_]
    n_misplaced: int
    n_after_gap: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Decisions:
    """Decisions about labels of rows, in the order in which they were made.

    Parameters
    ----------
    rows : ndarray of int, shape (n_decisions,)
        Row of each decision.
    labels : ndarray of int, shape (n_decisions,)
        Label of each decision, by position.
    keep : ndarray of bool of shape (n_decisions,)
        Whether the label is kept; True also for a label that is added to a row which does not have it.
    confidence : ndarray of shape (n_decisions,)
        Confidence of the label; NaN if it is not known.
    by_model : ndarray of bool, shape (n_decisions,), optional
        Whether a suggestion was accepted that nobody checked; by default none.
    drawn : ndarray of int, shape (n_decisions,), optional
        Place of the label in the random order of all candidates, from 1; 0, the default, if it was chosen otherwise.
    """

    rows: NDArray[np.intp]
    labels: NDArray[np.intp]
    keep: NDArray[np.bool_]
    confidence: NDArray[np.float64]
    by_model: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    drawn: NDArray[np.intp] = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    def __post_init__(self) -> None:
        for name in ("by_model", "drawn"):
            given = getattr(self, name)
            if len(given) == 0:
                object.__setattr__(self, name, np.zeros(len(self.rows), dtype=given.dtype))

    def __len__(self) -> int:
        return len(self.rows)

    def drop_mask(self, table: Table) -> NDArray[np.bool_]:
        """Return which labels to drop.

        Parameters
        ----------
        table : Table
            Table that the decisions are about.

        Returns
        -------
        ndarray of bool, shape (n_rows, n_labels)
            True where a label is to be dropped.
        """
        mask = np.zeros(table.candidates.shape, dtype=np.bool_)
        mask[self.rows, self.labels] = ~self.keep
        return mask

    def add_mask(self, table: Table) -> NDArray[np.bool_]:
        """Return which labels to add.

        Parameters
        ----------
        table : Table
            Table that the decisions are about.

        Returns
        -------
        ndarray of bool, shape (n_rows, n_labels)
            True where a row is to get a label that it does not have.
        """
        mask = np.zeros(table.candidates.shape, dtype=np.bool_)
        mask[self.rows, self.labels] = self.keep
        return mask & (table.candidates == 0)

    def verified(self, table: Table) -> NDArray[np.int8]:
        """Return what a person found, for :func:`skpml.cleaning.audit`.

        Parameters
        ----------
        table : Table
            Table that the decisions are about.

        Returns
        -------
        ndarray of int8, shape (n_rows, n_labels)
            1 where a label is right or was added, -1 where it is wrong, 0 where nobody has checked it. Accepted
            suggestions are 0.
        """
        found = np.zeros(table.candidates.shape, dtype=np.int8)
        found[self.rows, self.labels] = np.where(self.by_model, 0, np.where(self.keep, 1, -1))
        return found

    def random_sample(self, table: Table, *, random_state: int = 0) -> RandomSample:
        """Return which decisions are a random sample of all candidates.

        They are those up to the first undecided candidate in the random order, as far as the decisions say that they
        were drawn from this order.

        Parameters
        ----------
        table : Table
            Table that the decisions are about.
        random_state : int, default=0
            Seed of the audit whose batch was checked.

        Returns
        -------
        RandomSample
            The sample, and how many decisions that were drawn do not belong to it.
        """
        places = random_order(table.candidates, random_state)
        placed = (self.drawn > 0) & ~self.by_model & (places[self.rows, self.labels] == self.drawn)
        drawn = np.zeros(places.shape, dtype=np.bool_)
        drawn[self.rows[placed], self.labels[placed]] = True
        sample = find_sample(places, self.verified(table), drawn)
        return RandomSample(
            cells=sample,
            n_misplaced=int(np.count_nonzero((self.drawn > 0) & ~placed)),
            n_after_gap=int(np.count_nonzero(drawn & ~sample)),
        )


def read_decisions(path: str | Path, table: Table) -> Decisions:
    """Read a file of decisions about the labels of a table.

    Its columns are ``id``, ``row`` (counted from 0), ``label``, ``decision`` (``keep`` or ``drop``, or ``add`` for a
    label that the row does not have), and three that may be missing or empty: ``confidence``, ``by`` (``model`` for a
    suggestion that nobody checked) and ``drawn`` (place in the random order). Files that a spreadsheet saved with other
    delimiters are read too.

    Parameters
    ----------
    path : path-like
        File to read.
    table : Table
        Table that the decisions are about.

    Returns
    -------
    Decisions
        One for each cell; repeated lines count once.

    Raises
    ------
    TableError
        If a line names a row, an id or a label that the table does not have, keeps or drops a label that its row does
        not have, adds one that it has, holds another decision, or contradicts a line before it.
    """
    path = Path(path)
    dialect = detect_dialect(
        path, Dialect(quote='"'), columns=DECISION_COLUMNS, not_numbers=DECISION_COLUMNS[:_N_REQUIRED]
    )
    reading = _Reading(path, dialect, table)
    records = (record for record in read_records(path, dialect) if record.cells)
    return _collect(reading, reading.find_columns(next(records).cells, records))


def decisions_from_frame(frame: Any, table: Table) -> Decisions:
    """Return the decisions of a data frame; rows go by position if it has no ids, and empty decisions are none."""
    reading = _Reading(Path("decisions"), None, table)
    texts = [
        ["" if value != value or value is None else str(value) for value in row]
        for row in frame.to_numpy(object)
    ]
    records = (Record(row, "", cells) for row, cells in enumerate(texts))
    return _collect(reading, reading.find_columns([str(name) for name in frame.columns], records))


def _collect(reading: _Reading, records: Iterator[Record]) -> Decisions:
    """Return one decision for each cell; a contradiction is an error."""
    found: dict[tuple[int, int], _Line] = {}
    table = reading.table
    for record in records:
        cell, line = reading.decision(record)
        earlier = found.setdefault(cell, line)
        if earlier.keep != line.keep:
            reading.refuse(
                f"contradicts line {earlier.number}, which {'keeps' if earlier.keep else 'drops'} the same label "
                f"{table.label_names[cell[1]]!r} of row {cell[0]}; delete one of the two",
                record.line,
            )
        # A check by a person counts more than an accepted suggestion, and a place is known or not.
        found[cell] = earlier._replace(
            by_model=earlier.by_model and line.by_model, drawn=earlier.drawn or line.drawn
        )
    return Decisions(
        rows=np.array([row for row, _ in found], dtype=np.intp),
        labels=np.array([label for _, label in found], dtype=np.intp),
        keep=np.array([line.keep for line in found.values()], dtype=np.bool_),
        confidence=np.array([line.confidence for line in found.values()], dtype=np.float64),
        by_model=np.array([line.by_model for line in found.values()], dtype=np.bool_),
        drawn=np.array([line.drawn for line in found.values()], dtype=np.intp),
    )


class _Line(NamedTuple):
    """One line of a file of decisions, but for its cell."""

    number: int
    keep: bool
    confidence: float
    by_model: bool
    drawn: int


class _Reading:
    """Reader of one file of decisions about one table, or of a data frame, which has no dialect."""

    def __init__(self, path: Path, dialect: Dialect | None, table: Table) -> None:
        self.path, self.dialect, self.table = path, dialect, table
        self._label = {name: column for column, name in enumerate(table.label_names)}
        self._position: dict[str, int] = {}

    def find_columns(self, header: Sequence[str], records: Iterator[Record]) -> Iterator[Record]:
        """Find the columns by the header, and return the records that hold a decision."""
        of_frame = self.dialect is None
        needed = DECISION_COLUMNS[1 if of_frame else 0 : _N_REQUIRED]
        columns = ", ".join(DECISION_COLUMNS[:_N_WRITTEN])
        if missing := [name for name in needed if name not in header]:
            self.refuse(f"has no column {format_names(missing)}: decisions have the columns {columns}", 1)
        if twice := [name for name in find_repeated(header) if name in DECISION_COLUMNS]:
            self.refuse(f"has more than one column {format_names(twice)}; delete the others", 1)
        self._position = {name: header.index(name) for name in DECISION_COLUMNS if name in header}
        decision = self._position["decision"]
        return (record for record in records if record.cells[decision].strip() or not of_frame)

    def decision(self, record: Record) -> tuple[tuple[int, int], _Line]:
        cells = {name: record.cells[column] for name, column in self._position.items()}
        row = self._row(cells["row"], cells.get("id"), record.line)
        label = self._label_of(cells["label"], record.line)
        word = cells["decision"].strip().lower()
        if word not in (*_WORDS, _ADD):
            found = quote_text(cells["decision"])
            self.refuse(f"the decision is {found}, not 'keep', 'drop' or 'add'", record.line)
        self._check_word(word, row, label, record.line)
        confidence = self._confidence(cells.get("confidence", ""), record.line)
        by_model = self._by_model(cells.get("by", ""), record.line)
        if by_model and word == _ADD:
            self.refuse("only a person adds labels: the column by must be empty", record.line)
        drawn = self._drawn(cells.get("drawn", ""), record.line)
        return (row, label), _Line(record.line, _WORDS.get(word, True), confidence, by_model, drawn)

    def _row(self, text: str, name: str | None, line: int) -> int:
        n_rows = len(self.table.ids)
        if not (text.strip().isascii() and text.strip().isdecimal() and int(text) < n_rows):
            self.refuse(
                f"there is no row {quote_text(text)} in {self.table.path.name}, whose rows are 0 to {n_rows - 1}",
                line,
            )
        row = int(text)
        if name is not None and self.table.ids[row] != name:
            if self.table.columns.id is None:
                self.refuse(
                    f"the decisions call row {row} {quote_text(name)}, but rows of {self.table.path.name} were read by "
                    "their numbers; name the column that holds their names (",
                    line,
                    Argument("id", ...),
                    ")",
                )
            self.refuse(
                f"row {row} of {self.table.path.name} is {quote_text(self.table.ids[row])}, not {quote_text(name)}: the "
                "decisions are of another file, or its rows have been moved, or the id column is another",
                line,
            )
        return row

    def _label_of(self, name: str, line: int) -> int:
        if name not in self._label:
            near = difflib.get_close_matches(name, self._label, n=1)
            labels = f"; its labels are {format_names(self.table.label_names)}"
            hint = f"; did you mean {near[0]!r}?" if near else labels
            self.refuse(f"{self.table.path.name} has no label {quote_text(name)}{hint}", line)
        return self._label[name]

    def _check_word(self, word: str, row: int, label: int, line: int) -> None:
        """Refuse to keep or drop a label that a row does not have, and to add one that it has."""
        has = bool(self.table.candidates[row, label])
        if has == (word in _WORDS):
            return
        which = f"row {row} of {self.table.path.name} {'has' if has else 'does not have'} the label"
        why = (
            "the file has been changed since the decisions were made, or they have been applied to it already"
        )
        advice = "" if has else "; to add it, the decision must be 'add'"
        already = " already" if has else ""
        self.refuse(f"{which} {self.table.label_names[label]!r}{already}: {why}{advice}", line)

    def _confidence(self, text: str, line: int) -> float:
        if not text.strip():
            return nan
        try:
            comma = self.dialect is not None and self.dialect.decimal == ","
            value = float(text.replace(",", ".") if comma else text)
        except ValueError:
            value = nan
        if not 0 <= value <= 1:
            found = quote_text(text)
            self.refuse(f"the confidence is {found}, not a number from 0 to 1; it may also be empty", line)
        return value

    def _by_model(self, text: str, line: int) -> bool:
        if text.strip().lower() not in ("", _BY_MODEL):
            self.refuse(f"the decision is by {quote_text(text)}, not by 'model'; it may also be empty", line)
        return bool(text.strip())

    def _drawn(self, text: str, line: int) -> int:
        text = text.strip()
        if text and not (text.isascii() and text.isdecimal() and int(text) > 0):
            self.refuse(f"the place in the random order is {quote_text(text)}, not 1 or more, or empty", line)
        return int(text or 0)

    def refuse(self, problem: str, line: int, *more: str | Argument) -> None:
        if self.dialect is None:
            raise TableError(problem, *more, path=self.path, row=line)
        raise TableError(problem, *more, path=self.path, line=line)


def word_of(table: Table, row: int, label: int, *, keep: bool) -> str:
    """Return the word for a decision about a label of a row."""
    return "drop" if not keep else "keep" if table.candidates[row, label] else _ADD


def write_decisions(decisions: Decisions, table: Table, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a file for :func:`read_decisions`, completely or not at all.

    Parameters
    ----------
    decisions : Decisions
        Decisions to write.
    table : Table
        Table that the decisions are about.
    path : path-like
        File to write.
    overwrite : bool, default=False
        Replace an existing file.
    """
    with (
        replacing(Path(path), overwrite=overwrite) as (temporary,),
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        # With lines that end in "\n" alone, Python does not quote a cell that holds "\r".
        writer = csv.writer(file, lineterminator="\r\n")
        used = [*DECISION_COLUMNS[:_N_WRITTEN]]
        used += [
            name for name, some in (("by", decisions.by_model), ("drawn", decisions.drawn)) if some.any()
        ]
        writer.writerow(used)
        columns = (
            decisions.rows, decisions.labels, decisions.keep, decisions.confidence, decisions.by_model, decisions.drawn,
        )  # fmt: skip
        for row, label, keep, sure, by_model, drawn in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            known, word = "" if np.isnan(sure) else repr(sure), word_of(table, row, label, keep=keep)
            more = {"by": _BY_MODEL if by_model else "", "drawn": drawn or ""}
            last = [more[name] for name in used[_N_WRITTEN:]]
            writer.writerow((table.ids[row], row, table.label_names[label], word, known, *last))
