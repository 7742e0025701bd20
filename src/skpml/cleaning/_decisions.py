"""Decisions of a person about doubtful labels: a small CSV file, checked against its table."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from math import nan
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from skpml._writing import replacing
from skpml.tables import (
    Argument,
    Dialect,
    Record,
    Table,
    TableError,
    detect_dialect,
    format_names,
    quote_text,
    read_records,
)

DECISION_COLUMNS = ("id", "row", "label", "decision", "confidence")
_WORDS = {"keep": True, "drop": False}


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
        Whether the label is kept.
    confidence : ndarray of shape (n_decisions,)
        Confidence of the label; NaN if it is not known.
    """

    rows: NDArray[np.intp]
    labels: NDArray[np.intp]
    keep: NDArray[np.bool_]
    confidence: NDArray[np.float64]

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


def read_decisions(path: str | Path, table: Table) -> Decisions:
    """Read a file of decisions about the labels of a table.

    Its columns are ``id``, ``row`` (counted from 0), ``label``, ``decision`` (``keep`` or ``drop``) and
    ``confidence``, which may be missing or empty. Files that a spreadsheet saved with other delimiters are read too.

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
        If a line names a row, an id or a label that the table does not have, a label that its row does not have,
        another decision than ``keep`` or ``drop``, or contradicts a line before it.
    """
    path = Path(path)
    dialect = detect_dialect(
        path, Dialect(quote='"'), columns=DECISION_COLUMNS, not_numbers=DECISION_COLUMNS[:-1]
    )
    found: dict[tuple[int, int], tuple[bool, float, int]] = {}
    reading = _Reading(path, dialect, table)
    for record in reading.records():
        row, label, keep, confidence = reading.decision(record)
        earlier = found.setdefault((row, label), (keep, confidence, record.line))
        if earlier[0] != keep:
            reading.refuse(
                f"contradicts line {earlier[2]}, which {'keeps' if earlier[0] else 'drops'} the same label "
                f"{table.label_names[label]!r} of row {row}; delete one of the two",
                record.line,
            )
    return Decisions(
        rows=np.array([row for row, _ in found], dtype=np.intp),
        labels=np.array([label for _, label in found], dtype=np.intp),
        keep=np.array([keep for keep, _, _ in found.values()], dtype=np.bool_),
        confidence=np.array([confidence for _, confidence, _ in found.values()], dtype=np.float64),
    )


class _Reading:
    """Reader of one file of decisions about one table."""

    def __init__(self, path: Path, dialect: Dialect, table: Table) -> None:
        self.path, self.dialect, self.table = path, dialect, table
        self._label = {name: column for column, name in enumerate(table.label_names)}
        self._position: dict[str, int] = {}

    def records(self) -> Iterator[Record]:
        records = (record for record in read_records(self.path, self.dialect) if record.cells)
        header = next(records).cells
        if missing := [name for name in DECISION_COLUMNS[:-1] if name not in header]:
            columns = ", ".join(DECISION_COLUMNS)
            self.refuse(
                f"has no column {format_names(missing)}: a file of decisions has the columns {columns}", 1
            )
        self._position = {name: header.index(name) for name in DECISION_COLUMNS if name in header}
        return records

    def decision(self, record: Record) -> tuple[int, int, bool, float]:
        cells = {name: record.cells[column] for name, column in self._position.items()}
        row = self._row(cells["row"], cells["id"], record.line)
        label = self._label_of(cells["label"], row, record.line)
        word = cells["decision"].strip().lower()
        if word not in _WORDS:
            found = quote_text(cells["decision"])
            self.refuse(f"the decision is {found}, not 'keep' or 'drop'", record.line)
        return row, label, _WORDS[word], self._confidence(cells.get("confidence", ""), record.line)

    def _row(self, text: str, name: str, line: int) -> int:
        n_rows = len(self.table.ids)
        if not (text.strip().isascii() and text.strip().isdecimal() and int(text) < n_rows):
            self.refuse(
                f"there is no row {quote_text(text)} in {self.table.path.name}, whose rows are 0 to {n_rows - 1}",
                line,
            )
        row = int(text)
        if self.table.ids[row] != name:
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

    def _label_of(self, name: str, row: int, line: int) -> int:
        if name not in self._label:
            near = difflib.get_close_matches(name, self._label, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            self.refuse(f"{self.table.path.name} has no label {quote_text(name)}{hint}", line)
        if not self.table.candidates[row, self._label[name]]:
            self.refuse(
                f"row {row} of {self.table.path.name} does not have the label {name!r}: the file has been changed "
                "since the decisions were made, or they have been applied to it already",
                line,
            )
        return self._label[name]

    def _confidence(self, text: str, line: int) -> float:
        if not text.strip():
            return nan
        try:
            value = float(text.replace(",", ".") if self.dialect.decimal == "," else text)
        except ValueError:
            value = nan
        if not 0 <= value <= 1:
            found = quote_text(text)
            self.refuse(f"the confidence is {found}, not a number from 0 to 1; it may also be empty", line)
        return value

    def refuse(self, problem: str, line: int, *more: str | Argument) -> None:
        raise TableError(problem, *more, line=line, path=self.path)


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
        writer.writerow(DECISION_COLUMNS)
        columns = (decisions.rows, decisions.labels, decisions.keep, decisions.confidence)
        for row, label, keep, sure in zip(*(column.tolist() for column in columns), strict=True):
            known, word = "" if np.isnan(sure) else repr(sure), "keep" if keep else "drop"
            writer.writerow((table.ids[row], row, table.label_names[label], word, known))
