"""What is gathered while a table goes by, row by row, without holding its text."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from skpml.datasets._errors import DatasetFormatError
from skpml.datasets._validation import LabelMatrix, listed
from skpml.tables._label_columns import split_tags
from skpml.tables._roles import TAG_SEPARATOR
from skpml.tables._wording import shown

_SEPARATORS = ",;|/\t"
# More cells than this are not labels of rows but something else in the column, such as text.
_MOST_CELLS = 1 << 31


@dataclass(kw_only=True)
class Content:
    """What the columns of a table hold; None stands for what was not asked for."""

    numbers: Any
    candidates: LabelMatrix | None
    label_names: tuple[str, ...]
    ids: tuple[str, ...] | None
    texts: tuple[str, ...] | None
    images: tuple[str, ...] | None
    notes: list[str] = field(default_factory=list)


class TagCollector:
    """Tags of rows as they come, kept as numbers."""

    def __init__(self, path: Path, column: str, separator: str | None) -> None:
        if separator == "":
            raise ValueError("separator must not be empty: it is what stands between tags, such as ';'")
        self.path, self.column, self._separator_given = path, column, separator is not None
        self.separator = TAG_SEPARATOR if separator is None else separator
        self._number: dict[str, int] = {}
        self._tags, self._ends = array("q"), array("q")
        self._separated, self._repeating = 0, 0
        self._otherwise = dict.fromkeys((mark for mark in _SEPARATORS if mark != self.separator), 0)

    def add_text(self, cell: str) -> None:
        """Take the tags of a cell such as ``"lake; sea"``."""
        if self.separator in cell:
            self._separated += 1
        else:
            for mark in self._otherwise:
                if mark in cell:
                    self._otherwise[mark] += 1
        self.add(split_tags(cell, self.separator))

    def add(self, tags: Sequence[str]) -> None:
        """Take the tags of a row."""
        numbers = [self._number.setdefault(tag, len(self._number)) for tag in tags]
        self._repeating += len(set(numbers)) < len(numbers)
        self._tags.extend(numbers)
        self._ends.append(len(self._tags))

    def matrix(self) -> tuple[LabelMatrix, tuple[str, ...]]:
        """Candidates of all rows, and the labels, sorted."""
        n_rows, names = len(self._ends), tuple(sorted(self._number))
        if not self._separator_given and (other := self._likelier_separator()) is not None:
            raise DatasetFormatError(
                self.path,
                f"no cell of {self.column!r} holds {self.separator!r}, but most hold {other!r}: if that stands between "
                f"tags, pass separator={other!r}, else pass separator={self.separator!r}",
            )
        if not names:
            raise DatasetFormatError(self.path, f"column {self.column!r} holds no tag in any row")
        if n_rows * len(names) > _MOST_CELLS:
            raise DatasetFormatError(
                self.path,
                f"column {self.column!r} holds {len(names):,} different tags: does it hold tags, and does "
                f"{self.separator!r} stand between them (separator=…)?",
            )
        order = np.array([self._number[name] for name in names])
        column = np.empty(len(names), dtype=np.intp)
        column[order] = np.arange(len(names))
        ends = np.frombuffer(self._ends, dtype=np.int64)
        rows = np.repeat(np.arange(n_rows), np.diff(ends, prepend=0))
        matrix = np.zeros((n_rows, len(names)), dtype=np.uint8)
        matrix[rows, column[np.frombuffer(self._tags, dtype=np.int64)]] = 1
        return matrix, names

    def notes(self) -> list[str]:
        """What a person should know about the tags."""
        notes = []
        if self._repeating:
            cells = "cell repeats" if self._repeating == 1 else "cells repeat"
            notes.append(f"{self._repeating:,} {cells} a tag; it counts once")
        if (other := self._likelier_separator()) is not None:
            notes.append(
                f"no cell of {self.column!r} holds {self.separator!r}, but most hold {other!r}; "
                f"if that stands between tags, pass separator={other!r}"
            )
        return notes

    def _likelier_separator(self) -> str | None:
        """What most cells hold where none holds the separator."""
        other = max(self._otherwise, key=lambda mark: self._otherwise[mark])
        return other if not self._separated and 2 * self._otherwise[other] > len(self._ends) else None


class IdCollector:
    """Names of rows, which must differ where decisions go by them."""

    def __init__(self, path: Path, column: str, place: str, *, distinct: bool) -> None:
        self.path, self.column, self.place, self.distinct = path, column, place, distinct
        self._names: list[str] = []
        self._where: dict[str, int] = {}

    def add(self, name: str, where: int) -> None:
        """Take the name of a row that stands in a line, or is a row, of the file."""
        self._names.append(name)
        if not self.distinct:
            return
        first = self._where.setdefault(name, where)
        if first != where:
            raise DatasetFormatError(
                self.path,
                f"column {self.column!r} holds {shown(name)} in {self.place} {first} and in {self.place} {where}: "
                "names of rows must differ; correct one, or leave out id=… to go by the number of the row",
            )

    def names(self) -> tuple[str, ...]:
        """The names, in the order of the rows."""
        return tuple(self._names)


def untagged_note(candidates: LabelMatrix) -> list[str]:
    """A sentence about rows without any label, where there are any."""
    rows = np.flatnonzero(~candidates.any(axis=1))
    if not rows.size:
        return []
    having = "row has" if rows.size == 1 else "rows have"
    first = listed([f"{row:,}" for row in rows])
    return [
        f"{rows.size:,} {having} no label and {'is' if rows.size == 1 else 'are'} kept so (counted from 0: {first})"
    ]
