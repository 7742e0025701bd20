"""The encoding of a text file, told from its bytes."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from pathlib import Path

from skpml.datasets._errors import DatasetFormatError

_BLOCK = 1 << 20
# UTF-32 first: its little-endian mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_FALLBACKS = ("cp1252", "latin-1")


@dataclass(frozen=True)
class Encoding:
    """Encoding of a text file.

    Attributes
    ----------
    name : str
        Name of Python's codec; it neither skips nor writes a byte order mark.
    mark : bytes
        The byte order mark that the file begins with; empty where there is none.
    guessed : bool
        Whether it is only what is left after UTF-8 and byte order marks were ruled out.
    """

    name: str
    mark: bytes = b""
    guessed: bool = False


def detect_encoding(path: Path, given: str | None = None) -> Encoding:
    """Tell the encoding of a file from its byte order mark, else from all its bytes.

    Parameters
    ----------
    path : Path
        A text file.
    given : str, optional
        The encoding where the caller knows it; a byte order mark that belongs to it is still found.
    """
    with path.open("rb") as file:
        start = file.read(_BLOCK)
    if not start:
        raise DatasetFormatError(path, "is empty; a header line with the names of the columns is needed")
    marked = next(((mark, name) for mark, name in _MARKS if start.startswith(mark)), None)
    if given is not None:
        return _as_given(given, marked)
    if marked is not None:
        return Encoding(marked[1], marked[0])
    if b"\0" in start:
        raise DatasetFormatError(
            path,
            "holds NUL bytes, so it is no plain text; if it is UTF-16 without a byte order mark, "
            'pass encoding="utf-16-le" or "utf-16-be"',
        )
    if _is_utf8(path):
        return Encoding("utf-8")
    return Encoding(next(name for name in _FALLBACKS if _decodes(path, name)), guessed=True)


def _as_given(given: str, marked: tuple[bytes, str] | None) -> Encoding:
    try:
        name = codecs.lookup(given).name
    except LookupError:
        raise ValueError(f"encoding must be one that Python knows, such as 'utf-8', got {given!r}") from None
    name = {"utf-8-sig": "utf-8", "iso8859-1": "latin-1"}.get(name, name)
    if marked is not None and marked[1].startswith(name):
        return Encoding(marked[1], marked[0])
    return Encoding(name)


def _decodes(path: Path, name: str) -> bool:
    decoder = codecs.getincrementaldecoder(name)()
    with path.open("rb") as file:
        try:
            while block := file.read(_BLOCK):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def _is_utf8(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    beyond_ascii = False
    with path.open("rb") as file:
        try:
            while block := file.read(_BLOCK):
                beyond_ascii = not decoder.decode(block).isascii() or beyond_ascii
        except UnicodeDecodeError:
            return False
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        # One odd byte at the end of plain ASCII is an older encoding; after other UTF-8 it is half a character.
        if beyond_ascii:
            raise DatasetFormatError(
                path, "ends in the middle of a character: it was cut short, so copy it again"
            ) from None
        return False
    return True
