"""Rows of text tables: as arrays in batches, and as records with their exact text."""

from __future__ import annotations

import csv
import threading
from array import array
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from io import TextIOWrapper
from math import isfinite
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from skpml.tables._columns import parse_flag, parse_number
from skpml.tables._dialect import THOUSANDS, Dialect, parser_options, wrong_encoding
from skpml.tables._errors import Argument, TableError

Progress = Callable[[int, int | None, str], None]
_REPORTED_EVERY = 2000
# Enough to make the work per batch negligible, few enough for the memory.
_BATCH_CELLS = 1 << 16
# Python's limit of 131,072 characters is shorter than a long document; without any limit, a quote that is not closed
# would swallow the rest of any file.
_LONGEST_CELL = 1 << 24
_LIMIT_LOCK = threading.Lock()


class Record(NamedTuple):
    """A line of a table, or several where a quoted cell holds line breaks.

    `line` is the line where it begins, counted from 1; `text` is its text with the line ending; `cells` are its values,
    none for a blank line.
    """

    line: int
    text: str
    cells: list[str]


class BadCell(Exception):
    """A cell is not what its column holds."""

    def __init__(self, column: str, row: int, value: Any, expected: str, *advice: str | Argument) -> None:
        super().__init__(column)
        self.column, self.row, self.value, self.expected = column, row, value, expected
        self.advice = advice


def read_records(
    path: Path, dialect: Dialect, progress: Progress | None = None
) -> Generator[Record, None, None]:
    """Yield the records of a file, blank lines included; the first one that is not blank is the header.

    Every other record that is not blank has as many cells as the header, or `TableError` names the line.
    """
    total, what = path.stat().st_size, f"reading {path.name}"
    with path.open("rb") as raw:
        raw.seek(len(dialect.mark))
        text = TextIOWrapper(raw, encoding=dialect.encoding, newline="")
        taken: list[str] = []
        reader = csv.reader(_remember(text, taken), **parser_options(dialect))
        width, line, number = 0, 1, 0
        while (cells := _next_cells(path, reader, dialect, line)) is not None:
            record = Record(line, "".join(taken), cells)
            taken.clear()
            if cells:
                width = width or len(cells)
                if len(cells) != width:
                    raise _wrong_width(path, record, width, dialect)
            yield record
            line = reader.line_num + 1
            number += 1
            if progress is not None and number % _REPORTED_EVERY == 0:
                progress(raw.tell(), total, what)
    if progress is not None:
        progress(total, total, what)


def _remember(lines: Iterable[str], taken: list[str]) -> Iterator[str]:
    """Yield lines and note them: the parser takes as many as a record has."""
    for line in lines:
        taken.append(line)
        yield line


def _next_cells(path: Path, reader: Any, dialect: Dialect, line: int) -> list[str] | None:
    """Parse one record. The limit of csv holds for the whole process, so it is raised only meanwhile, by one thread."""
    with _LIMIT_LOCK:
        return _parse_cells(path, reader, dialect, line)


def _parse_cells(path: Path, reader: Any, dialect: Dialect, line: int) -> list[str] | None:
    usual = csv.field_size_limit(_LONGEST_CELL)
    try:
        return next(reader, None)
    except UnicodeDecodeError as error:
        raise wrong_encoding(path, dialect) from error
    except csv.Error as error:
        problem = "a cell continues after its closing quote; write a quote inside a quoted cell twice"
        if "unexpected end" in str(error) or "field larger" in str(error):
            problem = f"the quote {dialect.quote} that opens here is never closed; was the file cut short?"
        elif "expected after" not in str(error):
            raise TableError(f"not a readable CSV record ({error})", path=path, line=line) from error
        elif reader.line_num != line:
            problem += f" (in line {reader.line_num})"
        plain = "; if quotes are plain text in the file, pass ", Argument("quote", "")
        raise TableError(problem, *plain, path=path, line=line) from error
    finally:
        csv.field_size_limit(usual)


def _wrong_width(path: Path, record: Record, width: int, dialect: Dialect) -> TableError:
    found = len(record.cells)
    if found < width and not record.text.endswith(("\n", "\r")):
        advice = "the file ends within this line, so it was cut short: copy it again"
    elif found > width:
        mark = "a tab" if dialect.delimiter == "\t" else repr(dialect.delimiter)
        advice = f"a cell that holds {mark} must be quoted"
    else:
        advice = "write every cell of the row, empty ones too"
    problem = f"{found} {'value' if found == 1 else 'values'} for {width} columns; {advice}"
    return TableError(problem, path=path, line=record.line, value=found, expected=width)


class CsvBatch:
    """Some rows of a text table."""

    widths: Mapping[str, int] = {}

    def __init__(self, records: Sequence[Record], position: dict[str, int], decimal: str | None) -> None:
        self._records, self._position, self._decimal = records, position, decimal
        self.n_rows = len(records)
        self.lines: Sequence[int] = [record.line for record in records]

    def texts(self, name: str) -> list[str]:
        """Cells of a column."""
        column = self._position[name]
        return [record.cells[column] for record in self._records]

    tags = texts

    @property
    def _number(self) -> Callable[[str], float]:
        return float if self._decimal == "." else _comma_number

    def cells(self, name: str) -> list[float | str]:
        """Cells of a column as numbers, NaN where one is missing, and texts."""
        return [parse_number(text, self._number) for text in self.texts(name)]

    def numbers(self, names: Sequence[str]) -> Any:
        """Cells of some columns as a matrix of finite numbers; BadCell names the first that is not one."""
        number = self._number
        pick, values = self._picker(names), array("d")
        try:
            for record in self._records:
                values.extend(map(number, pick(record.cells)))
        except ValueError:
            self._refuse(names, number, "a finite number")
        matrix = np.frombuffer(values, dtype=np.float64).reshape(-1, len(names))
        # Python reads 1_000 as a number, which the file may not mean.
        if not np.isfinite(matrix).all() or any("_" in record.text for record in self._records):
            self._refuse(names, number, "a finite number")
        return matrix

    def flags(self, names: Sequence[str]) -> Any:
        """Cells of some 0/1 columns as a matrix; BadCell names the first that is neither."""
        pick, values = self._picker(names), bytearray()
        try:
            for record in self._records:
                values.extend(map(parse_flag, pick(record.cells)))
        except KeyError:
            self._refuse(names, parse_flag, "0 or 1")
        return np.frombuffer(values, dtype=np.uint8).reshape(-1, len(names))

    def _picker(self, names: Sequence[str]) -> Callable[[list[str]], Sequence[str]]:
        columns = [self._position[name] for name in names]
        return itemgetter(*columns) if len(columns) > 1 else lambda cells: [cells[columns[0]]]

    def _refuse(self, names: Sequence[str], parse: Callable[[str], float], expected: str) -> None:
        pick = self._picker(names)
        for row, record in enumerate(self._records):
            for name, cell in zip(names, pick(record.cells), strict=True):
                if not _is_finite(cell, parse):
                    advice = () if parse is parse_flag else self.advise(cell)
                    raise BadCell(name, row, cell, expected, *advice)

    def advise(self, cell: str) -> tuple[str | Argument, ...]:
        """Return what to do if a cell is a number with another decimal mark; nothing if it is none."""
        other = "," if self._decimal == "." else "."
        if other == "," and THOUSANDS.fullmatch(cell):
            cell = cell.strip()
            meant = f" if that is {cell.replace(',', '.')}; if it is {cell.replace(',', '')}, write it without the comma"
            return "pass ", Argument("decimal", ","), meant
        if _is_finite(cell, _comma_number if other == "," else float):
            return f"if {other!r} is the decimal mark, pass ", Argument("decimal", other)
        return ()


def _comma_number(cell: str) -> float:
    # A point would separate thousands: 1.500 must not become one and a half.
    if "." in cell:
        raise ValueError(cell)
    return float(cell.replace(",", "."))


def _is_finite(cell: str, parse: Callable[[str], float]) -> bool:
    try:
        return "_" not in cell and isfinite(parse(cell))
    except (ValueError, KeyError):
        return False


class CsvRows:
    """The rows of a text table, in batches; `notes` are complete once all were read."""

    def __init__(self, path: Path, dialect: Dialect, progress: Progress | None) -> None:
        self._dialect, self._blank = dialect, 0
        self._records = self._skip_blank(read_records(path, dialect, progress))
        self.header = next(self._records, Record(1, "", [])).cells

    def batches(self, _: Sequence[str]) -> Iterator[CsvBatch]:
        """Yield the rows; an error in the file is raised after the rows before it were yielded."""
        position = {name: column for column, name in enumerate(self.header)}
        size = max(1, _BATCH_CELLS // len(self.header))
        failure: TableError | None = None
        while failure is None:
            records: list[Record] = []
            try:
                for record in self._records:
                    records.append(record)
                    if len(records) == size:
                        break
            except TableError as error:
                failure = error
            if records:
                yield CsvBatch(records, position, self._dialect.decimal)
            elif failure is None:
                return
        raise failure

    def _skip_blank(self, records: Iterator[Record]) -> Iterator[Record]:
        waiting = 0
        for record in records:
            if record.cells:
                # Blank lines at the end of a file are never meant as rows.
                self._blank, waiting = self._blank + waiting, 0
                yield record
            else:
                waiting += 1

    @property
    def notes(self) -> list[str]:
        """Blank lines are not rows; in a file of one column they may have been meant as such."""
        if len(self.header) > 1 or not self._blank:
            return []
        lines = "1 blank line is" if self._blank == 1 else f"{self._blank:,} blank lines are"
        quote = self._dialect.quote
        empty = f"; write an empty cell in a file of one column as {quote * 2}" if quote else ""
        return [f"{lines} ignored{empty}"]


def write_csv(path: Path, columns: dict[str, Any]) -> None:
    """Write columns of equal length to a new CSV file; floats are written exactly."""
    cells = [
        [*map(repr, column.astype(float).tolist())] if np.asarray(column).dtype.kind == "f" else list(column)
        for column in columns.values()
    ]
    write_rows(path, columns, zip(*cells, strict=True))


def write_rows(path: Path, header: Iterable[str], rows: Iterable[Iterable[Any]], *, end: str = "\n") -> None:
    """Write a CSV file with commas and double quotes, in UTF-8."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator=end)
        writer.writerow(header)
        writer.writerows(rows)
