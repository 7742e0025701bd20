"""Copies of tables in which a column of tags is replaced or added; everything else stays as it is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from skpml.tables._arrow import open_parquet, read_arrow
from skpml.tables._copying import quote_cell, raw_cells, write_arrow
from skpml.tables._dialect import Dialect
from skpml.tables._errors import TableError, parsing, require_extra
from skpml.tables._excel import copy_excel, excel_rows
from skpml.tables._formats import EXCEL_SUFFIX, PARQUET_SUFFIX
from skpml.tables._json import JSON_SUFFIXES, find_span, read_json
from skpml.tables._rows import read_records


def write_tags(
    path: Path,
    column: str,
    cells: Sequence[str],
    target: Path,
    *,
    dialect: Dialect | None = None,
    sheet: str | None = None,
) -> None:
    """Copy a table with other tags, in their column or in a new last one; a text table has a dialect."""
    suffix = path.suffix.lower()
    if dialect is not None:
        _retag_csv(path, dialect, column, cells, target)
    elif suffix in JSON_SUFFIXES:
        _retag_json(path, column, cells, target)
    elif suffix == EXCEL_SUFFIX:
        rows = excel_rows(path, sheet)
        place = (rows.header.index(column) if column in rows.header else len(rows.header)) + 1
        lines = (rows.header_line, *rows.batch.lines)
        changes = {(line, place): text for line, text in zip(lines, (column, *cells), strict=True)}
        copy_excel(path, str(rows.sheet), changes, target)
    elif suffix == PARQUET_SUFFIX:
        parquet = require_extra("pyarrow.parquet", "writing Parquet files")
        with parsing(path, "Parquet"):
            content = open_parquet(path).read()
        parquet.write_table(_retag_arrow(content, column, cells), target, write_page_checksum=True)
    else:
        write_arrow(_retag_arrow(read_arrow(path), column, cells), path, target)


def _retag_csv(path: Path, dialect: Dialect, column: str, cells: Sequence[str], target: Path) -> None:
    row, place = -1, None
    with target.open("wb") as raw:
        raw.write(dialect.mark)
        with TextIOWrapper(raw, encoding=dialect.encoding, newline="") as file:
            for record in read_records(path, dialect):
                text = record.text
                if record.cells:
                    found, ending = raw_cells(record, dialect)
                    if place is None:
                        place = record.cells.index(column) if column in record.cells else len(record.cells)
                        new = column
                    else:
                        row += 1
                        new = cells[row]
                    found[place : place + 1] = [quote_cell(new, dialect, path, record.line)]
                    text = str(dialect.delimiter).join(found) + ending
                file.write(text)


def _retag_json(path: Path, column: str, cells: Sequence[str], target: Path) -> None:
    """Write a member into each object; in exports, which hold annotations, the tags have no place of their own."""
    file = read_json(path)
    pieces, place = [], 0
    for record, cell in zip(file.records, cells, strict=True):
        if record.tag_paths.keys() != record.values.keys():
            problem = "is an export with annotations; give a list of objects, one for each row"
            raise TableError(problem, path=path, line=record.line)
        start, end = find_span(file.text, record.start, (column,) if column in record.values else ())
        new = json.dumps(cell)
        if column not in record.values:
            start = end = end - 1
            new = f"{', ' if record.values else ''}{json.dumps(column)}: {new}"
        pieces += [file.text[place:start], new]
        place = end
    target.write_bytes("".join([*pieces, file.text[place:]]).encode(file.encoding))


def _retag_arrow(content: Any, column: str, cells: Sequence[str]) -> Any:
    values = require_extra("pyarrow", "writing Arrow files").array(cells, type="string")
    if column not in content.column_names:
        return content.append_column(column, values)
    return content.set_column(content.column_names.index(column), column, values)
