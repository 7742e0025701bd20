"""How a text table is written: encoding, delimiter, quote and decimal mark, detected from the file."""

from __future__ import annotations

import codecs
import csv
import itertools
import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from skpml.tables._columns import check_file, quote_text
from skpml.tables._errors import Argument, TableError

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_QUOTES = {'"': "double quotes", "'": "single quotes"}
_ENCODINGS = {
    "utf-8": "UTF-8",
    "utf-16-le": "UTF-16",
    "utf-16-be": "UTF-16",
    "cp1252": "Windows-1252",
    "latin-1": "Latin-1",
}
# UTF-32 first: its little-endian mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SAMPLE, _BLOCK = 1 << 18, 1 << 20
_POINT_NUMBER = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*")
_COMMA_NUMBER = re.compile(r"\s*[+-]?(?:\d+,?\d*|,\d+)(?:[eE][+-]?\d+)?\s*")
# May as well be a whole number with a comma before its last three digits.
THOUSANDS = re.compile(r"\s*[+-]?[1-9]\d{0,2},\d{3}\s*")


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How a CSV file is written; None means to be detected. ``str`` describes it in words.

    Parameters
    ----------
    encoding : str, optional
        Encoding of the text, as Python names it.
    delimiter : str, optional
        Character between columns.
    quote : str, optional
        Character around cells that hold the delimiter; empty where quotes are plain text.
    decimal : {".", ","}, optional
        Decimal mark of numbers.
    mark : bytes, default=b""
        Byte order mark at the beginning of the file; set by detection.
    encoding_guessed : bool, default=False
        Whether the encoding is only likely because the file is not UTF-8; set by detection.

    See Also
    --------
    skpml.tables.detect_dialect : Detects the dialect of a file.

    Examples
    --------
    >>> from skpml.tables import Dialect
    >>> print(Dialect(encoding="utf-8", delimiter=";", quote='"', decimal=","))
    UTF-8, columns separated by semicolons, cells quoted by double quotes, decimal comma
    """

    encoding: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    decimal: str | None = None
    mark: bytes = b""
    encoding_guessed: bool = False

    def __post_init__(self) -> None:
        for name, ok, expected in (
            ("delimiter", lambda mark: len(mark) == 1 and mark not in "\"\r\n", "a single character, such as ';'"),
            ("quote", lambda quote: len(quote) <= 1 and quote not in ("\r", "\n"), "a single character or empty"),
            ("decimal", lambda decimal: decimal in (".", ","), "'.' or ','"),
            ("encoding", _is_encoding, "one that Python knows, such as 'utf-8'"),
        ):  # fmt: skip
            value = getattr(self, name)
            if value is not None and not ok(value):
                problem = f" must be {expected}, got {value!r}"
                raise TableError(Argument(name), problem, value=value, expected=expected)
        if self.delimiter is not None and self.delimiter == self.quote:
            raise TableError(Argument("quote"), " must not be the ", Argument("delimiter"), value=self.quote)
        if self.delimiter == self.decimal == "," and self.quote == "":
            both = Argument("delimiter"), " and ", Argument("decimal")
            raise TableError(*both, ' cannot both be "," where cells are not quoted')

    @property
    def is_default(self) -> bool:
        """Whether it is the usual one: UTF-8, commas, double quotes, decimal point."""
        return self == Dialect(encoding="utf-8", delimiter=",", quote='"', decimal=".")

    def __str__(self) -> str:
        encoding = _ENCODINGS.get(self.encoding or "", str(self.encoding))
        if self.mark == codecs.BOM_UTF8:
            encoding += " with a byte order mark"
        if self.encoding_guessed:
            encoding += " (a guess, because it is not UTF-8)"
        delimiter = DELIMITERS.get(self.delimiter or "", repr(self.delimiter))
        quote = f"quoted by {_QUOTES.get(self.quote, repr(self.quote))}" if self.quote else "not quoted"
        decimal = "comma" if self.decimal == "," else "point"
        return f"{encoding}, columns separated by {delimiter}, cells {quote}, decimal {decimal}"


def _is_encoding(name: str) -> bool:
    with suppress(LookupError):
        return bool(codecs.lookup(name))
    return False


def parser_options(dialect: Dialect) -> dict[str, Any]:
    """Arguments of `csv.reader`; an empty quote means that quotes are plain text."""
    quoting = {"quotechar": dialect.quote} if dialect.quote else {"quoting": csv.QUOTE_NONE}
    return {"delimiter": dialect.delimiter, "strict": True, **quoting}


def detect_dialect(
    path: str | Path,
    dialect: Dialect | None = None,
    *,
    columns: Collection[str] = (),
    numbers: Collection[str] | None = None,
    not_numbers: Collection[str] = (),
    is_known: Callable[[str], bool] | None = None,
) -> Dialect:
    """Detect how a CSV file is written.

    The encoding is detected from all bytes of the file, the rest from its first lines. Between commas, a quoted
    ``"1,234"`` may as well be a thousand or more: unless another number shows that the comma is a decimal mark, it is
    not taken for one.

    Parameters
    ----------
    path : path-like
        A file whose first line names the columns.
    dialect : Dialect, optional
        What is known; what is None there is detected.
    columns : collection of str, default=()
        Columns that the file should have: a delimiter that yields them is preferred, and a file of one column is
        accepted if it is one of them.
    numbers : collection of str, optional
        Columns that decide about the decimal mark. By default all that are not in `not_numbers`.
    not_numbers : collection of str, default=()
        Columns that do not decide about the decimal mark.
    is_known : callable, optional
        Takes the name of a column; a delimiter that yields names for which it returns True is preferred.

    Returns
    -------
    Dialect
        With nothing left to detect.

    Raises
    ------
    TableError
        If the file is empty or not text, or if no delimiter splits its lines as it splits the header.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from skpml.tables import detect_dialect
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "photos.csv")
    ...     _ = path.write_text("file;warmth\\na.jpg;0,5\\n")
    ...     print(detect_dialect(path))
    UTF-8, columns separated by semicolons, cells quoted by double quotes, decimal comma
    """
    path = Path(path)
    check_file(path)
    # A table may have many columns, and each is looked up.
    columns, not_numbers = set(columns), set(not_numbers)
    numbers = None if numbers is None else set(numbers)
    known = _detect_encoding(path, dialect or Dialect())
    lines = _first_lines(path, known)
    if known.quote is None:
        known = replace(known, quote=_detect_quote(lines))
    if known.delimiter is None:
        known = replace(known, delimiter=_detect_delimiter(path, lines, known.quote, columns, is_known))
    if known.decimal is None:
        known = replace(known, decimal=_detect_decimal(lines, known, numbers, not_numbers))
    return known


def _detect_encoding(path: Path, known: Dialect) -> Dialect:
    """Detect the encoding from the byte order mark, else from all bytes."""
    with path.open("rb") as file:
        start = file.read(_BLOCK)
    if not start:
        raise TableError("is empty; a header line with the names of the columns is needed", path=path)
    mark, marked = next(((mark, name) for mark, name in _MARKS if start.startswith(mark)), (b"", None))
    if known.encoding is not None:
        name = codecs.lookup(known.encoding).name
        name = {"utf-8-sig": "utf-8", "iso8859-1": "latin-1"}.get(name, name)
        if marked is None or not marked.startswith(name):
            return replace(known, encoding=name)
    if marked is not None:
        return replace(known, encoding=marked, mark=mark)
    if b"\0" in start:
        problem = "holds NUL bytes, so it is not plain text; if it is UTF-16 without a byte order mark, pass "
        both = Argument("encoding", "utf-16-le"), " or ", Argument("encoding", "utf-16-be")
        raise TableError(problem, *both, path=path)
    name = next(name for name in ("utf-8", "cp1252", "latin-1") if _decodes(path, name))
    return replace(known, encoding=name, encoding_guessed=name != "utf-8")


def _decodes(path: Path, name: str) -> bool:
    decoder, beyond_ascii, ended = codecs.getincrementaldecoder(name)(), False, False
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                beyond_ascii = not decoder.decode(block).isascii() or beyond_ascii
        ended = True
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        # One odd byte at the end of plain ASCII is an older encoding; after other UTF-8 it is half a character.
        if ended and beyond_ascii:
            problem = "ends in the middle of a character: it was cut short, so copy it again"
            raise TableError(problem, path=path) from None
        return False
    return True


def wrong_encoding(path: Path, dialect: Dialect) -> TableError:
    """The error of a file whose bytes are not text in the given encoding."""
    parts = f"not {dialect.encoding} text; omit ", Argument("encoding", ...), " to detect it"
    return TableError(*parts, path=path, value=dialect.encoding)


def _first_lines(path: Path, known: Dialect) -> list[str]:
    """Read the whole lines at the beginning of a file; a single one may be cut."""
    with path.open("rb") as raw:
        raw.seek(len(known.mark))
        try:
            text = TextIOWrapper(raw, encoding=known.encoding, newline="").read(_SAMPLE)
        except UnicodeDecodeError as error:
            raise wrong_encoding(path, known) from error
    lines = [line for line in re.split(r"(?<=\n)|(?<=\r)(?!\n)", text) if line]
    if not "".join(lines).strip():
        raise TableError("holds only blank lines; a header line that names columns is needed", path=path)
    return lines[:-1] if len(text) == _SAMPLE and len(lines) > 1 else lines


def _detect_quote(lines: Sequence[str]) -> str:
    text = "".join(lines)
    marks = "".join(map(re.escape, DELIMITERS))
    begins = f"(?:^|[{marks}])"
    if re.search(f'{begins}"', text, re.MULTILINE):
        return '"'
    opened = len(re.findall(f"{begins}'", text, re.MULTILINE))
    closed = len(re.findall(f"{begins}'[^'\r\n]*'(?=[{marks}]|\r?$)", text, re.MULTILINE))
    # An apostrophe may begin a word; quotes come in pairs.
    return "'" if opened and opened == closed else '"'


def _parse(lines: Sequence[str], dialect: Dialect) -> list[list[str]]:
    """Parse the records up to the first that cannot be read; the reader of the file reports that one."""
    rows: list[list[str]] = []
    with suppress(csv.Error):
        rows.extend(row for row in csv.reader(iter(lines), **parser_options(dialect)) if row)
    return rows


def _detect_delimiter(
    path: Path, lines: Sequence[str], quote: str | None, columns: Collection[str],
    is_known: Callable[[str], bool] | None,
) -> str:  # fmt: skip
    judged = {
        mark: _judge_delimiter(_parse(lines, Dialect(delimiter=mark, quote=quote)), columns, is_known)
        for mark in DELIMITERS
        if mark != quote
    }
    best = max(judged, key=lambda mark: judged[mark])
    known, share, width = judged[best]
    if known or (width > 1 and share > 0):
        return best
    header = quote_text(next(line for line in lines if line.strip()).strip())
    problem = (
        f"the first line, {header}, holds none"
        if width <= 1
        else f"no other line is split like the first, {header}, by any"
    )
    problem += " of comma, semicolon, tab and vertical bar; if it is another character, pass "
    raise TableError(
        "cannot detect what separates the columns: ", problem, Argument("delimiter", ...), path=path
    )


def _judge_delimiter(
    rows: list[list[str]], columns: Collection[str], is_known: Callable[[str], bool] | None
) -> tuple[int, float, int]:
    """How well a delimiter fits: known columns found, share of rows as wide as the header, width.

    A delimiter that does not split the header fits only if nothing else does.
    """
    if not rows:
        return 0, 0.0, 0
    header, body = rows[0], rows[1:]
    known = sum(name in columns or (is_known is not None and is_known(name)) for name in set(header))
    share = sum(len(row) == len(header) for row in body) / len(body) if body else 1.0
    return known, share - (len(header) == 1), len(header)


def _detect_decimal(
    lines: Sequence[str], dialect: Dialect, numbers: Collection[str] | None, not_numbers: Collection[str]
) -> str:
    """A comma if some column holds numbers with it as the decimal mark, and none needs the point to be one."""
    # Files with commas between columns mostly have decimal points, so that a comma may separate thousands.
    may_separate = dialect.delimiter == ","
    by_comma = by_point = False
    rows = _parse(lines, dialect)
    even = [row for row in rows if len(row) == len(rows[0])]
    for name, *cells in itertools.zip_longest(*even, fillvalue=""):
        filled = [cell for cell in cells if cell.strip()]
        if name in not_numbers or (numbers is not None and name not in numbers) or not filled:
            continue
        comma = all(map(_COMMA_NUMBER.fullmatch, filled))
        point = all(map(_POINT_NUMBER.fullmatch, filled))
        if comma and not point:
            marked = (cell for cell in filled if "," in cell)
            by_comma |= not (may_separate and all(map(THOUSANDS.fullmatch, marked)))
        by_point |= point and not comma
    return "," if by_comma and not by_point else "."
