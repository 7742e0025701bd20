"""How a CSV file is written: told from the file, said in words, and fixed by whoever knows better."""

from __future__ import annotations

import codecs
import csv
import itertools
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path

from skpml.datasets._errors import DatasetFormatError
from skpml.tables._csv_files import parser_options
from skpml.tables._encodings import Encoding, detect_encoding
from skpml.tables._wording import shown

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_QUOTES = {'"': "double quotes", "'": "single quotes"}
_SAMPLE = 1 << 18
_ENCODINGS = {
    "utf-8": "UTF-8",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "cp1252": "Windows-1252",
    "latin-1": "Latin-1",
}
_POINT_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*")
_COMMA_NUMBER = re.compile(r"\s*[+-]?(?:\d+,?\d*|,\d+)(?:[eE][+-]?\d+)?\s*")
# What may as well be a whole number with a comma before its last three digits.
THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*")


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How a CSV file is written; ``str`` of it says so in words.

    Attributes
    ----------
    encoding : str
        Encoding of the text, as Python names it.
    mark : bytes
        Byte order mark that the file begins with; empty where there is none.
    delimiter : str
        What stands between columns.
    quote : str
        What stands around cells that hold the delimiter; empty where quotes are plain text.
    decimal : str
        ``"."`` or ``","``: what stands before the decimals of numbers.
    encoding_guessed : bool
        Whether the file is not UTF-8 and the encoding only a likely one.

    Examples
    --------
    >>> from skpml.cleaning import Dialect
    >>> print(Dialect(delimiter=";", decimal=","))
    UTF-8, columns separated by semicolons, cells quoted by double quotes, decimal comma
    """

    encoding: str = "utf-8"
    mark: bytes = b""
    delimiter: str = ","
    quote: str = '"'
    decimal: str = "."
    encoding_guessed: bool = False

    def __str__(self) -> str:
        encoding = _ENCODINGS.get(self.encoding, self.encoding)
        if self.mark == codecs.BOM_UTF8:
            encoding += " with a byte order mark"
        if self.encoding_guessed:
            encoding += " (a guess, for it is not UTF-8)"
        delimiter = DELIMITERS.get(self.delimiter, repr(self.delimiter))
        quote = f"quoted by {_QUOTES.get(self.quote, repr(self.quote))}" if self.quote else "not quoted"
        decimal = "comma" if self.decimal == "," else "point"
        return f"{encoding}, columns separated by {delimiter}, cells {quote}, decimal {decimal}"


def detect_dialect(
    path: str | Path,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    quote: str | None = None,
    decimal: str | None = None,
    columns: Collection[str] = (),
    numbers: Collection[str] | None = None,
    not_numbers: Collection[str] = (),
) -> Dialect:
    """Tell how a CSV file is written.

    The encoding is told from all bytes of the file, the rest from its first lines. Between commas, a quoted ``"1,234"``
    may as well be a thousand or more: where no other number shows that the comma is a decimal mark, it is not taken for
    one, and whoever reads the numbers has to ask.

    Parameters
    ----------
    path : path-like
        A file whose first line names the columns.
    encoding, delimiter, quote, decimal : str, optional
        What the caller knows; each is told from the file where it is None. ``quote=""`` says that quotes are plain
        text.
    columns : collection of str, default=()
        Columns that the file should have: a delimiter that brings them out is preferred, and a file of one column
        is believed where it is one of them.
    numbers : collection of str, optional
        The columns that count when the decimal mark is told; by default all that are not `not_numbers`.
    not_numbers : collection of str, default=()
        Columns that do not count when the decimal mark is told.

    Returns
    -------
    Dialect

    Raises
    ------
    DatasetFormatError
        If the file is empty or no text, or if no delimiter splits its lines as it splits the header.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    _check_given(delimiter, quote, decimal)
    found = detect_encoding(path, encoding)
    lines = _first_lines(path, found)
    quote = _quote_of(lines) if quote is None else quote
    if delimiter is None:
        delimiter = _delimiter_of(path, lines, quote, columns)
    rows = _parsed(lines, delimiter, quote)
    if decimal is None:
        decimal = _decimal_of(rows, delimiter, numbers, not_numbers)
    if decimal == delimiter and decimal == "," and not quote:
        raise ValueError('delimiter and decimal cannot both be "," where cells are not quoted')
    return Dialect(
        encoding=found.name,
        mark=found.mark,
        delimiter=delimiter,
        quote=quote,
        decimal=decimal,
        encoding_guessed=found.guessed,
    )


def _check_given(delimiter: str | None, quote: str | None, decimal: str | None) -> None:
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise ValueError(f"delimiter must be a single character, such as ';' or a tab, got {delimiter!r}")
    if quote is not None and (len(quote) > 1 or quote in ("\r", "\n") or (quote and quote == delimiter)):
        raise ValueError(f"quote must be a single character or empty, got {quote!r}")
    if decimal not in (None, ".", ","):
        raise ValueError(f'decimal must be "." or ",", got {decimal!r}')


def _first_lines(path: Path, encoding: Encoding) -> list[str]:
    """The whole lines at the beginning of a file; a single one may be cut."""
    with path.open("rb") as raw:
        raw.seek(len(encoding.mark))
        try:
            text = TextIOWrapper(raw, encoding=encoding.name, newline="").read(_SAMPLE)
        except UnicodeDecodeError as error:
            raise DatasetFormatError(
                path, f"not {encoding.name} text; leave out encoding=… to have it told from the file"
            ) from error
    lines = [line for line in re.split(r"(?<=\n)|(?<=\r)(?!\n)", text) if line]
    if not "".join(lines).strip():
        raise DatasetFormatError(
            path, "holds only blank lines; a header line with the names of the columns is needed"
        )
    return lines[:-1] if len(text) == _SAMPLE and len(lines) > 1 else lines


def _quote_of(lines: Sequence[str]) -> str:
    text = "".join(lines)
    begins = f"(?:^|[{''.join(map(re.escape, DELIMITERS))}])"
    if re.search(f'{begins}"', text, re.MULTILINE):
        return '"'
    ends = f"(?=[{''.join(map(re.escape, DELIMITERS))}]|\r?$)"
    opened = len(re.findall(f"{begins}'", text, re.MULTILINE))
    closed = len(re.findall(f"{begins}'[^'\r\n]*'{ends}", text, re.MULTILINE))
    # An apostrophe may begin a word; quotes come in pairs.
    return "'" if opened and opened == closed else '"'


def _parsed(lines: Sequence[str], delimiter: str, quote: str) -> list[list[str]]:
    """The records up to the first that cannot be read: whoever reads the file says what is wrong with it."""
    rows: list[list[str]] = []
    try:
        for row in csv.reader(iter(lines), **parser_options(delimiter, quote)):
            if row:
                rows.append(row)
    except csv.Error:
        pass
    return rows


def _delimiter_of(path: Path, lines: Sequence[str], quote: str, columns: Collection[str]) -> str:
    judged = {mark: _judgement(_parsed(lines, mark, quote), columns) for mark in DELIMITERS}
    best = max(judged, key=lambda mark: judged[mark])
    known, share, width = judged[best]
    if width > 1 and share > 0:
        return best
    header = next(line for line in lines if line.strip()).strip()
    if width == 1 and known:
        return best
    problem = (
        f"the first line, {shown(header)}, holds none of comma, semicolon, tab and vertical bar"
        if width <= 1
        else "by none of comma, semicolon, tab and vertical bar does a line have as many values as the first, "
        f"{shown(header)}"
    )
    raise DatasetFormatError(
        path,
        f"cannot tell what stands between columns: {problem}; pass delimiter=… if it is another character",
    )


def _judgement(rows: list[list[str]], columns: Collection[str]) -> tuple[int, float, int]:
    """How well a delimiter fits: columns brought out, share of rows as wide as the header, width.

    A delimiter that does not split the header fits only if nothing else does.
    """
    if not rows:
        return 0, 0.0, 0
    header, body = rows[0], rows[1:]
    known = len(set(columns) & set(header))
    share = sum(len(row) == len(header) for row in body) / len(body) if body else 1.0
    if len(header) == 1:
        return known, share - 1.0, 1
    return known, share, len(header)


def _decimal_of(
    rows: list[list[str]], delimiter: str, numbers: Collection[str] | None, not_numbers: Collection[str]
) -> str:
    """A comma where some column holds numbers if it is the decimal mark, and none needs the point to be one."""
    # Who writes commas between columns mostly writes points before decimals, so that a comma may part thousands.
    may_part = delimiter == ","
    by_comma = by_point = False
    for name, *cells in itertools.zip_longest(*_even(rows), fillvalue=""):
        filled = [cell for cell in cells if cell.strip()]
        if name in not_numbers or (numbers is not None and name not in numbers) or not filled:
            continue
        comma = all(map(_COMMA_NUMBER.fullmatch, filled))
        point = all(map(_POINT_NUMBER.fullmatch, filled))
        if comma and not point:
            marked = (cell for cell in filled if "," in cell)
            by_comma |= not (may_part and all(map(THOUSANDS.fullmatch, marked)))
        by_point |= point and not comma
    return "," if by_comma and not by_point else "."


def _even(rows: list[list[str]]) -> list[list[str]]:
    return [row for row in rows if len(row) == len(rows[0])]
