"""The columns of a CSV file as arrays; its rows go by one at a time."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from math import isfinite
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from skpml.datasets._errors import DatasetFormatError
from skpml.tables._collecting import Content, IdCollector, TagCollector
from skpml.tables._dialect import THOUSANDS, Dialect
from skpml.tables._label_columns import Flags, Tags, flag
from skpml.tables._records import Progress, Record, read_records
from skpml.tables._roles import ColumnChoice, Roles, find_roles
from skpml.tables._wording import shown


def read_csv_table(
    path: Path, dialect: Dialect, choice: ColumnChoice, separator: str | None, progress: Progress | None
) -> tuple[Roles, Content]:
    """Read the columns that are asked for, and tell what each one is."""
    blank = _BlankLines()
    rows = blank.passed_over(read_records(path, dialect, progress))
    header = next(rows).cells
    roles = find_roles(path, header, choice)
    position = {name: column for column, name in enumerate(header)}
    numbers = _NumberCollector(path, roles, position, dialect.decimal)
    labels = _label_collector(path, roles.labels, position, separator)
    ids = None if roles.id is None else IdCollector(path, roles.id, "line", distinct=choice.labelled)
    seen: dict[str, list[str]] = {role: [] for role in ("text", "image") if getattr(roles, role)}
    columns = {role: position[getattr(roles, role)] for role in (*seen, *(("id",) if ids else ()))}
    n_rows = 0
    for record in rows:
        n_rows += 1
        numbers.add(record)
        if labels is not None:
            labels.add_record(record)
        for role, cells in seen.items():
            cells.append(record.cells[columns[role]])
        if ids is not None:
            ids.add(record.cells[columns["id"]], record.line)
    if not n_rows:
        raise DatasetFormatError(path, "has a header but no rows")
    candidates, names = (None, ()) if labels is None else labels.matrix()
    return roles, Content(
        numbers=numbers.matrix(),
        candidates=candidates,
        label_names=names,
        ids=None if ids is None else ids.names(),
        texts=tuple(seen["text"]) if "text" in seen else None,
        images=tuple(seen["image"]) if "image" in seen else None,
        notes=[*([] if labels is None else labels.notes()), *blank.notes(header, dialect)],
    )


class _BlankLines:
    """Blank lines are no rows; in a file of one column somebody may have meant them as such."""

    def __init__(self) -> None:
        self._count = 0

    def passed_over(self, records: Iterator[Record]) -> Iterator[Record]:
        waiting = 0
        for record in records:
            if record.cells:
                # What stands at the end of a file is no row to anybody.
                self._count, waiting = self._count + waiting, 0
                yield record
            else:
                waiting += 1

    def notes(self, header: list[str], dialect: Dialect) -> list[str]:
        if len(header) > 1 or not self._count:
            return []
        lines = "blank line is" if self._count == 1 else "blank lines are"
        empty = f"; an empty cell in a file of one column is written as {dialect.quote * 2}"
        return [f"{self._count:,} {lines} passed over{empty if dialect.quote else ''}"]


def _picker(columns: Sequence[int]) -> Callable[[list[str]], Sequence[str]]:
    if len(columns) > 1:
        return itemgetter(*columns)
    return lambda cells: [cells[column] for column in columns]


class _NumberCollector:
    """Numeric columns, kept as numbers alone."""

    def __init__(self, path: Path, roles: Roles, position: dict[str, int], decimal: str) -> None:
        self.path, self.names, self.decimal = path, roles.features, decimal
        self._for_model = roles.labels is None
        self._pick = _picker([position[name] for name in self.names])
        self._number = float if decimal == "." else _comma_number
        self._values = array("d")

    def add(self, record: Record) -> None:
        if not self.names:
            return
        cells = self._pick(record.cells)
        try:
            numbers = list(map(self._number, cells))
        except ValueError:
            self._refuse(record)
        # A sum is finite only if all terms are. Python reads 1_000 as a number, which the file may not mean.
        if not isfinite(sum(numbers)) or ("_" in record.text and any("_" in cell for cell in cells)):
            self._refuse(record)
        self._values.extend(numbers)

    def _refuse(self, record: Record) -> None:
        """Name the first cell of a record that is no finite number, where there is one."""
        for name, cell in zip(self.names, self._pick(record.cells), strict=True):
            if not _is_finite(cell, self._number):
                raise DatasetFormatError(
                    self.path,
                    f"column {name!r} holds {shown(cell)}, which is not a finite number; {self._advice(name, cell)}",
                    line=record.line,
                )

    def _advice(self, name: str, cell: str) -> str:
        other = "," if self.decimal == "." else "."
        if other == "," and THOUSANDS.fullmatch(cell):
            return self._readings(name, cell.strip())
        if _is_finite(cell, _comma_number if other == "," else float):
            return f"if {other!r} is the decimal mark, pass decimal={other!r}"
        if self._for_model:
            return "the model needs a number there: fill it in or drop the row"
        if not cell.strip() or cell.strip().lower() in ("nan", "na", "null", "none", "inf", "-inf"):
            return f"fill it in, drop the row, or leave the column out by ignore=[{name!r}]"
        return f"if the column is no feature, pass ignore=[{name!r}]"

    def _readings(self, name: str, cell: str) -> str:
        ignored = "" if self._for_model else f", or pass ignore=[{name!r}]"
        return (
            f"pass decimal=',' if that is {cell.replace(',', '.')}; if it is {cell.replace(',', '')}, write it without "
            f"the comma{ignored}"
        )

    def matrix(self) -> Any:
        if not self.names:
            return None
        return np.frombuffer(self._values, dtype=np.float64).reshape(-1, len(self.names))


def _comma_number(cell: str) -> float:
    # A point would be a thousands separator: 1.500 must not become one and a half.
    if "." in cell:
        raise ValueError(cell)
    return float(cell.replace(",", "."))


def _is_finite(cell: str, number: Callable[[str], float]) -> bool:
    try:
        return "_" not in cell and isfinite(number(cell))
    except ValueError:
        return False


def _label_collector(
    path: Path, labels: Tags | Flags | None, position: dict[str, int], separator: str | None
) -> _TagColumn | _FlagColumns | None:
    if labels is None:
        return None
    if isinstance(labels, Tags):
        return _TagColumn(path, labels.column, position[labels.column], separator)
    return _FlagColumns(path, labels, position)


class _TagColumn(TagCollector):
    def __init__(self, path: Path, name: str, column: int, separator: str | None) -> None:
        super().__init__(path, name, separator)
        self._column = column

    def add_record(self, record: Record) -> None:
        self.add_text(record.cells[self._column])


class _FlagColumns:
    def __init__(self, path: Path, labels: Flags, position: dict[str, int]) -> None:
        self.path, self.labels = path, labels
        self._pick = _picker([position[name] for name in labels.columns])
        self._flags = bytearray()

    def add_record(self, record: Record) -> None:
        try:
            self._flags.extend(map(flag, self._pick(record.cells)))
        except KeyError:
            name, cell = next(self._odd(record))
            raise DatasetFormatError(
                self.path, f"label column {name!r} holds {shown(cell)}, not 0 or 1", line=record.line
            ) from None

    def _odd(self, record: Record) -> Iterator[tuple[str, str]]:
        for name, cell in zip(self.labels.columns, self._pick(record.cells), strict=True):
            try:
                flag(cell)
            except KeyError:
                yield name, cell

    def matrix(self) -> tuple[Any, tuple[str, ...]]:
        flags = np.frombuffer(bytes(self._flags), dtype=np.uint8)
        return flags.reshape(-1, len(self.labels.columns)), self.labels.names

    def notes(self) -> list[str]:
        return []
