"""The ARFF language: header and data of a file as arrays, without knowing which attributes are labels.

liac-arff parses the data. Names and the relation are parsed here: liac-arff does not undo escapes in names,
and cuts values of INTEGER attributes down to whole numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from skpml.datasets._errors import DatasetFormatError, require_extra
from skpml.datasets._formats.files import message_of, parsing
from skpml.datasets._validation import is_sparse

_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_RELATION = re.compile(r"@relation\s+(.+)$", re.IGNORECASE)
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|\S+)\s*(.+)$", re.IGNORECASE)
_NOMINAL_VALUE = re.compile(rf"{_QUOTED}|[^,\s]+")
_MARKER = re.compile(r"%\s*skpml-(\w+):\s*(.*)$")
END_MARKER = "% skpml-end"
_NUMERIC = ("numeric", "real", "integer")


@dataclass
class ArffTable:
    """Content of an ARFF file: numbers as they are, nominal values as indices into their declaration."""

    relation: str = ""
    names: list[str] = field(default_factory=list)
    # Declared values of a nominal attribute, None for a numeric one, "string" or "date" for the others.
    kinds: list[list[str] | str | None] = field(default_factory=list)
    markers: dict[str, str] = field(default_factory=dict)
    values: Any = None
    lines: list[int] = field(default_factory=list)

    @property
    def sparse(self) -> bool:
        """Whether the file lists only entries that are not zero."""
        return is_sparse(self.values)

    def column(self, index: int) -> NDArray[np.float64]:
        """Return one column; NaN where the value is missing."""
        if self.sparse:
            return np.asarray(self.values[:, [index]].toarray(), dtype=np.float64).ravel()
        return np.asarray(self.values[:, index], dtype=np.float64)


def read_arff_table(path: Path, *, encoding: str, ignore: tuple[str, ...] = ()) -> ArffTable:
    """Read a dense or sparse ARFF file; text and date attributes must be among those to ignore."""
    try:
        text = path.read_text(encoding=encoding)
    except UnicodeDecodeError as exc:
        line = path.read_bytes().count(b"\n", 0, exc.start) + 1
        raise DatasetFormatError(
            path,
            f'not {encoding} text; if it is sound, pass its encoding, as in encoding="latin-1"',
            line=line,
        ) from exc
    # Not str.splitlines, which also splits at characters that may stand inside a value.
    lines = text.replace("\r\n", "\n").split("\n")
    table = ArffTable()
    start = _read_header(path, lines, table)
    for name, kind in zip(table.names, table.kinds, strict=True):
        if isinstance(kind, str) and name not in ignore:
            raise DatasetFormatError(
                path,
                f"attribute {name!r} holds {kind} values, not numbers; leave it out by ignore=[{name!r}]",
            )
    _read_data(path, lines, start, table)
    return table


def _read_header(path: Path, lines: list[str], table: ArffTable) -> int:
    for number, raw in enumerate(lines, start=1):
        line = raw.strip()
        keyword = line.partition(" ")[0].partition("\t")[0].lower()
        if keyword == "@data":
            if not table.names:
                raise DatasetFormatError(path, "@data comes before any @attribute", line=number)
            return number
        if keyword == "@relation" and (match := _RELATION.match(line)):
            table.relation = _unquoted(match[1].strip())
        elif keyword == "@attribute" and (match := _ATTRIBUTE.match(line)):
            _add_attribute(path, number, table, _unquoted(match[1]), match[2].strip())
        elif match := _MARKER.match(line):
            table.markers[match[1]] = match[2].strip()
        elif line and not line.startswith("%"):
            raise DatasetFormatError(
                path, f"expected @relation, @attribute or @data, got {line[:60]!r}", line=number
            )
    raise DatasetFormatError(path, "has no @data: not an ARFF file, or cut short")


def _add_attribute(path: Path, number: int, table: ArffTable, name: str, declared: str) -> None:
    if name in table.names:
        raise DatasetFormatError(path, f"attribute {name!r} is declared twice", line=number)
    kind: list[str] | str | None
    word = declared.split()[0].lower()
    if declared.startswith("{"):
        if not declared.endswith("}"):
            raise DatasetFormatError(
                path, f"attribute {name!r}: the list of values lacks its closing }}", line=number
            )
        kind = [_unquoted(value) for value in _NOMINAL_VALUE.findall(declared[1:-1])]
    elif word in _NUMERIC:
        kind = None
    elif word in ("string", "date"):
        kind = word
    else:
        raise DatasetFormatError(path, f"attribute {name!r} has unknown type {declared[:60]!r}", line=number)
    table.names.append(name)
    table.kinds.append(kind)


def _unquoted(word: str) -> str:
    if len(word) >= 2 and word[0] == word[-1] and word[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", word[1:-1])
    return word


def quoted(word: str) -> str:
    """Write a word as ARFF reads it back."""
    return "'" + re.sub(r"(['\\])", r"\\\1", word) + "'"


def _read_data(path: Path, lines: list[str], start: int, table: ArffTable) -> None:
    arff = require_extra("arff", "reading ARFF files")
    rows = [number for number in range(start, len(lines)) if lines[number].strip()[:1] not in ("", "%")]
    table.lines = [number + 1 for number in rows]
    if not rows:
        raise DatasetFormatError(path, "has no rows after @data")
    sparse = lines[rows[0]].lstrip().startswith("{")
    reached = 0

    def stream() -> Iterator[str]:
        nonlocal reached
        yield "@relation x"
        for index, kind in enumerate(table.kinds):
            yield f"@attribute a{index} {_liac_type(kind)}"
        yield "@data"
        for number in rows:
            reached = number + 1
            yield lines[number]

    try:
        with parsing(path, "ARFF"):
            decoded = arff.ArffDecoder().decode(
                stream(), encode_nominal=True, return_type=arff.COO if sparse else arff.DENSE
            )["data"]
            shape = (len(rows), len(table.names))
            table.values = _sparse_values(decoded, shape) if sparse else _dense_values(decoded, table)
    except DatasetFormatError as exc:
        cause = exc.__cause__ or exc
        what = message_of(cause).partition("at line")[0].partition("in line")[0].strip(" ,")
        expected = f"expected {len(table.names)} values" if not sparse else "expected {index value, …}"
        raise DatasetFormatError(path, f"{what or 'bad data'}; {expected}", line=reached or None) from cause
    if "rows" in table.markers and not any(line.strip() == END_MARKER for line in lines[rows[-1] + 1 :]):
        raise DatasetFormatError(path, f"cut short: its last line, {END_MARKER!r}, is missing")
    expected_rows = table.markers.get("rows")
    if expected_rows is not None and expected_rows != str(len(rows)):
        raise DatasetFormatError(path, f"cut short: says it has {expected_rows} rows, but holds {len(rows)}")


def _liac_type(kind: list[str] | str | None) -> str:
    if isinstance(kind, list):
        return "{" + ",".join(quoted(value) for value in kind) + "}"
    return "string" if kind is not None else "numeric"


def _dense_values(rows: list[list[Any]], table: ArffTable) -> NDArray[np.float64]:
    text = [index for index, kind in enumerate(table.kinds) if isinstance(kind, str)]
    for row in rows:
        for index in text:
            row[index] = 0.0
    return np.array(rows, dtype=np.float64)


def _sparse_values(decoded: tuple[list[Any], list[int], list[int]], shape: tuple[int, int]) -> Any:
    data, rows, columns = decoded
    numbers = [0.0 if isinstance(value, str) else value for value in data]
    return sp.csr_array((np.array(numbers, dtype=np.float64), (rows, columns)), shape=shape).tocsc()
