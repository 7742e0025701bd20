"""Excel workbooks: the rows of a sheet, and copies in which only some cells differ."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from string import ascii_uppercase, digits
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from skpml.tables._columns import format_names
from skpml.tables._errors import Argument, TableError, check_unpacked_size, parsing, require_extra
from skpml.tables._values import ValueRows

_CELL = re.compile(r"<((?:\w+:)?)c\b([^>]*?)(?:/>|>.*?</\1c>)", re.DOTALL)
_ROW = re.compile(r'<((?:\w+:)?)row\b[^>]*?\br="([0-9]+)"[^>]*(?<!/)>.*?</\1row>', re.DOTALL)
_REFERENCE = re.compile(r'\br="([A-Z]+[0-9]+)"')
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


def excel_rows(path: Path, sheet: str | None) -> ValueRows:
    """Return the rows of a sheet: the given one, or the only one that is not empty."""
    openpyxl = require_extra("openpyxl", "reading Excel files")
    with parsing(path, "Excel"):
        with zipfile.ZipFile(path) as archive:
            check_unpacked_size(path, sum(entry.file_size for entry in archive.infolist()))
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            names = [each.title for each in book.worksheets]
            if sheet is not None and sheet not in names:
                parts = Argument("sheet"), f" {sheet!r} does not exist; the sheets are {format_names(names)}"
                raise TableError(*parts, path=path, value=sheet, expected=tuple(names))
            content = {name: _read_sheet(book[name]) for name in (names if sheet is None else [sheet])}
        finally:
            book.close()
    filled = [name for name, rows in content.items() if rows]
    if len(filled) > 1:
        problem = f"has {len(filled)} sheets with content ({format_names(filled)}); name one by "
        raise TableError(problem, Argument("sheet", ...), path=path, value=tuple(filled))
    if not filled:
        raise TableError("is empty; a first row with the names of the columns is needed", path=path)
    (first, header), *rows = content[filled[0]]
    width = max(place for place, value in enumerate(header, start=1) if value is not None)
    for line, cells in ((first, header[:width]), *((line, cells[width:]) for line, cells in rows)):
        odd = None in cells if line == first else any(value is not None for value in cells)
        if odd:
            problem = (
                "a column has no name" if line == first else "a cell stands in a column that has no name"
            )
            raise TableError(f"{problem}; write one into row {first} of the sheet", path=path, line=line)
    names = [str(value) for value in header[:width]]
    place = {name: column for column, name in enumerate(names)}
    lines = [line for line, _ in rows]
    found = ValueRows(names, len(rows), lambda name: [cells[place[name]] for _, cells in rows], lines)
    found.sheet, found.header_line = filled[0], first
    return found


def _read_sheet(sheet: Any) -> list[tuple[int, tuple[Any, ...]]]:
    """Return the rows of a sheet that are not empty, with their numbers."""
    sheet.reset_dimensions()
    rows = [
        (number, cells)
        for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1)
        if any(value is not None for value in cells)
    ]
    width = max((len(cells) for _, cells in rows), default=0)
    return [(number, cells + (None,) * (width - len(cells))) for number, cells in rows]


def copy_excel(path: Path, sheet: str, changes: Mapping[tuple[int, int], Any], target: Path) -> None:
    """Copy a workbook with other values in some cells of a sheet, by row and column, both counted from 1."""
    from openpyxl.utils import get_column_letter

    wanted = {f"{get_column_letter(column)}{row}": value for (row, column), value in changes.items()}
    with parsing(path, "Excel"), zipfile.ZipFile(path) as archive:
        member = _find_sheet(archive, sheet)
        with zipfile.ZipFile(target, "w") as copy:
            for entry in archive.infolist():
                content = archive.read(entry)
                if entry.filename == member:
                    sheet_text = _replace_cells(content.decode("utf-8"), wanted)
                    content = _insert_cells(sheet_text, wanted).encode("utf-8")
                copy.writestr(entry, content, compress_type=entry.compress_type)
    if wanted:
        problem = f"cell {next(iter(wanted))} cannot be found in the sheet; save the file by Excel or LibreOffice first"
        raise TableError(problem, path=path)


def _find_sheet(archive: zipfile.ZipFile, title: str) -> str:
    """Return the name of the part of a workbook that holds a sheet."""
    book = ElementTree.fromstring(archive.read("xl/workbook.xml"))
    sheets = (each for each in book.iter() if each.tag.endswith("}sheet"))
    identity = next(each.get(_RELATION) for each in sheets if each.get("name") == title)
    relations = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    target = next(str(each.get("Target")) for each in relations if each.get("Id") == identity)
    return target.lstrip("/") if target.startswith("/") else f"xl/{target}"


def _replace_cells(text: str, wanted: dict[str, Any]) -> str:
    """Write values into the cells of a sheet; those that were found are removed from `wanted`."""

    def write(found: re.Match[str]) -> str:
        reference = _REFERENCE.search(found[2])
        if reference is None or reference[1] not in wanted:
            return found[0]
        attributes = re.sub(r'\s+t="[^"]*"', "", found[2]).rstrip()
        return _write_cell(found[1], attributes, wanted.pop(reference[1]))

    return _CELL.sub(write, text)


def _insert_cells(text: str, wanted: dict[str, Any]) -> str:
    """Write values into empty cells, which a sheet leaves out; those whose row was found are removed from `wanted`."""
    by_row: dict[str, list[str]] = {}
    for reference in wanted:
        by_row.setdefault(reference.lstrip(ascii_uppercase), []).append(reference)

    def write(found: re.Match[str]) -> str:
        row = found[0]
        for reference in by_row.get(found[2], ()):
            cells = [(_REFERENCE.search(cell[2]), cell.start()) for cell in _CELL.finditer(row)]
            if any(name is None for name, _ in cells):
                continue
            behind = [start for name, start in cells if name and _column(name[1]) > _column(reference)]
            place = behind[0] if behind else row.rindex("</")
            row = (
                row[:place] + _write_cell(found[1], f' r="{reference}"', wanted.pop(reference)) + row[place:]
            )
        return row

    return _ROW.sub(write, text) if wanted else text


def _column(reference: str) -> tuple[int, str]:
    """Return what orders cells by their columns: Z comes before AA."""
    letters = reference.rstrip(digits)
    return len(letters), letters


def _write_cell(prefix: str, attributes: str, value: Any) -> str:
    if isinstance(value, str):
        text = f'<{prefix}t xml:space="preserve">{escape(value)}</{prefix}t>'
        kind, inner = "inlineStr", f"<{prefix}is>{text}</{prefix}is>"
    else:
        kind, inner = "b" if isinstance(value, bool) else "n", f"<{prefix}v>{float(value):g}</{prefix}v>"
    return f'<{prefix}c{attributes} t="{kind}">{inner}</{prefix}c>'
