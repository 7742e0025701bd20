"""The records of a CSV file, one at a time: their cells, and the very text that they were read from."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from skpml.datasets._errors import DatasetFormatError
from skpml.tables._csv_files import parser_options

if TYPE_CHECKING:
    from skpml.tables._dialect import Dialect

Progress = Callable[[int, int | None, str], None]
_REPORTED_EVERY = 2000
# Python's limit of 131,072 characters is less than a long document; one that is never reached would let a quote that
# is not closed swallow the rest of any file.
_LONGEST_CELL = 1 << 24


class Record(NamedTuple):
    """A line of a table, or several where a quoted cell holds line breaks.

    Attributes
    ----------
    line : int
        Line of the file where it begins, counted from 1.
    text : str
        The text as it stands in the file, with its line ending.
    cells : list of str
        The values; none for a blank line.
    """

    line: int
    text: str
    cells: list[str]


class _Remembered:
    """An iterator over lines that remembers those it gave since they were last taken."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self._given: list[str] = []

    def __iter__(self) -> _Remembered:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self._given.append(line)
        return line

    def take(self) -> str:
        text = self._given[0] if len(self._given) == 1 else "".join(self._given)
        self._given.clear()
        return text


def read_records(
    path: Path, dialect: Dialect, progress: Progress | None = None
) -> Generator[Record, None, None]:
    """Give the records of a file, blank lines included; the first one that is not blank is the header.

    Every other record that is not blank has as many cells as the header, or `DatasetFormatError` names the line.
    """
    total, what = path.stat().st_size, f"reading {path.name}"
    with path.open("rb") as raw, _long_cells(path, dialect):
        raw.seek(len(dialect.mark))
        lines = _Remembered(iter(TextIOWrapper(raw, encoding=dialect.encoding, newline="")))
        reader = csv.reader(lines, **parser_options(dialect.delimiter, dialect.quote))
        width, line, number = 0, 1, 0
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                break
            except csv.Error as error:
                raise DatasetFormatError(path, _explained(error, dialect, reader, line), line=line) from error
            record = Record(line, lines.take(), cells)
            if cells:
                width = width or len(cells)
                if len(cells) != width:
                    raise DatasetFormatError(path, _wrong_width(record, width, dialect), line=line)
            yield record
            line = reader.line_num + 1
            number += 1
            if progress is not None and number % _REPORTED_EVERY == 0:
                progress(raw.tell(), total, what)
    if progress is not None:
        progress(total, total, what)


@contextmanager
def _long_cells(path: Path, dialect: Dialect) -> Iterator[None]:
    """Let cells be as long as documents are, and say what is wrong where bytes are no text."""
    usual = csv.field_size_limit(_LONGEST_CELL)
    try:
        yield
    except UnicodeDecodeError as error:
        raise DatasetFormatError(
            path, f"not {dialect.encoding} text; leave out encoding=… to have it told from the file"
        ) from error
    finally:
        csv.field_size_limit(usual)


def _explained(error: csv.Error, dialect: Dialect, reader: Any, line: int) -> str:
    message = str(error)
    if "unexpected end" in message or "field larger" in message:
        return (
            f"the quote {dialect.quote} that opens in this record is never closed; the file was cut short, or, "
            "if quotes are plain text in it, pass quote=''"
        )
    if "expected after" in message:
        place = "" if reader.line_num == line else f" (in line {reader.line_num})"
        return (
            f"a cell goes on after the quote that closes it{place}; a quote inside a quoted cell is written twice, "
            "or, if quotes are plain text in the file, pass quote=''"
        )
    return f"not a readable CSV record ({message})"


def _wrong_width(record: Record, width: int, dialect: Dialect) -> str:
    found = len(record.cells)
    problem = f"{found} {'value' if found == 1 else 'values'} for {width} columns"
    if found < width and not record.text.endswith(("\n", "\r")):
        return f"{problem}; the file ends within this line, so it was cut short: copy it again"
    if found > width:
        mark = "a tab" if dialect.delimiter == "\t" else repr(dialect.delimiter)
        return f"{problem}; a cell that holds {mark} must be quoted"
    return f"{problem}; write every cell of the row, empty ones too"


def raw_cells(record: Record, dialect: Dialect) -> tuple[list[str], str]:
    """Split the text of a record into cells as they are written, quotes included, and its line ending."""
    body = record.text.rstrip("\r\n")
    delimiter, quote = re.escape(dialect.delimiter), re.escape(dialect.quote)
    plain = f"[^{delimiter}]*"
    cell = re.compile(f"{quote}(?:[^{quote}]|{quote}{quote})*{quote}|{plain}" if quote else plain)
    cells, place = [], 0
    while True:
        match = cell.match(body, place)
        assert match is not None
        cells.append(match[0])
        place = match.end() + 1
        if place > len(body):
            return cells, record.text[len(body) :]


def written_cell(text: str, was: str, dialect: Dialect) -> str:
    """Write a cell in the place of another one, quoted where that was or where it must be."""
    quote = dialect.quote
    if not quote:
        return text
    if was.startswith(quote) or text.startswith(quote):
        return f"{quote}{text.replace(quote, quote * 2)}{quote}"
    return text
