"""Copies of tables with other labels; everything else stays as it is, in text files to the byte."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from io import TextIOWrapper
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpml._docstrings import fill_docstring
from skpml._writing import replacing
from skpml.tables._arrow import class_names, is_list_type, open_parquet, read_arrow
from skpml.tables._columns import parse_flag
from skpml.tables._dialect import Dialect
from skpml.tables._editing import (
    TagChange,
    edit_list,
    edit_tags,
    edit_value,
    find_elements,
    is_list,
    turn_text,
    turn_value,
)
from skpml.tables._errors import TableError, parsing, require_extra
from skpml.tables._excel import copy_excel, excel_rows
from skpml.tables._formats import EXCEL_SUFFIX, PARQUET_SUFFIX, open_rows
from skpml.tables._json import JSON_SUFFIXES, read_json
from skpml.tables._json_editing import edit_members, find_style, turn_member
from skpml.tables._rows import Progress, Record, read_records
from skpml.tables._table import Table
from skpml.tables._values import ValueRows, frame_rows

# 1 where a row gets a label, -1 where it loses one.
Changes = NDArray[np.int8]
# How an Arrow file that is not a stream begins.
_ARROW_FILE = b"ARROW1"


@fill_docstring
def write_cleaned(
    table: Table,
    drop: Any,
    target: str | Path,
    *,
    add: Any = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> None:
    """Copy the file of a table without the labels to drop and with those to add, completely or not at all.

    Every other cell of a text file stays as it is written, to the byte: delimiters, quotes, encoding, line endings,
    order of columns and of the remaining tags; added ones stand behind them. A 0/1 column gets the opposite of what it
    holds, as in 0 for 1, -1 for 1 where the column writes no as -1, and FALSE for TRUE. All other values of a JSON file
    and all other cells, styles and sheets of a workbook stay as they are, too. A Parquet or Arrow file keeps its schema,
    its metadata and all other columns; the copy of a folder of Arrow files is one file.

    Parameters
    ----------
    table : Table
        What `read_table` returned for the file.
    %(cleaned_copy)s

    Raises
    ------
    TableError
        If the file has changed since the table was read.
    FileExistsError
        If the target exists and `overwrite` is False.

    See Also
    --------
    skpml.tables.read_table : Reads the table.
    """
    target = Path(target)
    if table.frame is not None:
        raise ValueError("the table is that of a data frame, not of a file; clean_frame copies it")
    changes = _all_rows(table, check_changes(table, drop, add))
    check_suffix(table.path, target)
    suffix = "" if table.path.is_dir() else table.path.suffix.lower()
    with replacing(target, overwrite=overwrite, like=table.path) as (temporary,):
        try:
            if table.dialect is not None:
                _copy_csv(table, table.dialect, changes, temporary, progress)
            elif suffix == PARQUET_SUFFIX:
                _copy_parquet(table, changes, temporary, progress)
            elif suffix in JSON_SUFFIXES:
                _copy_json(table, changes, temporary)
            elif suffix == EXCEL_SUFFIX:
                _copy_excel(table, changes, temporary)
            else:
                _copy_arrow(table, changes, temporary)
        except TableError as error:
            if error.path is not None:
                raise
            facts = {"column": error.column, "value": error.value}
            raise TableError(error.problem, path=table.path, **facts) from None


def clean_frame(table: Table, drop: Any, *, add: Any = None) -> Any:
    """Return a copy of the data frame of a table without the labels to drop and with those to add.

    Parameters
    ----------
    table : Table
        What `read_table` returned for a data frame of pandas or Polars.
    drop : array-like of bool of shape (n_rows, n_labels)
        Which labels to drop; only labels that a row has.
    add : array-like of bool of shape (n_rows, n_labels), optional
        Which labels to add; only labels that a row does not have.

    Returns
    -------
    DataFrame
        Of the same kind. In a column of tags, texts stay texts and lists stay lists.

    Raises
    ------
    ValueError
        If the table is not that of a data frame.

    See Also
    --------
    skpml.tables.write_cleaned : Copies a file.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpml.tables import clean_frame, read_table
    >>> photos = pd.DataFrame({"warmth": [0.5, 0.1], "tags": [["sea", "sky"], ["sky"]]})
    >>> table = read_table(photos)
    >>> clean_frame(table, [[True, False], [False, False]])["tags"].tolist()
    [['sky'], ['sky']]
    >>> clean_frame(table, [[False, True], [False, False]], add=[[False, False], [True, False]])["tags"].tolist()
    [['sea'], ['sky', 'sea']]
    """
    if table.frame is None or not hasattr(table.frame, "to_numpy"):
        raise ValueError("table must be that of a data frame of pandas or Polars; write_cleaned copies files")
    changes, frame = _all_rows(table, check_changes(table, drop, add)), table.frame
    rows = frame_rows(frame)
    for name, edits in _edit_values(table, changes, rows).items():
        values = [edits.get(row, value) for row, value in enumerate(rows.batch.column(name))]
        series, kind = type(frame[name]), frame[name].dtype
        if hasattr(frame, "with_columns"):
            frame = frame.with_columns(series(name, values, dtype=kind))
        else:
            # Cells of other tags are other categories.
            fixed = {} if str(kind) == "category" else {"dtype": kind}
            column = series(values, index=frame.index, **fixed)
            frame = frame.assign(**{name: column if fixed else column.astype("category")})
    return frame


def _edit_values(table: Table, changes: Changes, rows: ValueRows) -> dict[str, dict[int, Any]]:
    """Return the new values of cells, by column and row."""
    minus, in_tags = _find_minus(table), table.columns.tags is not None
    found: dict[str, dict[int, Any]] = {}
    for label, name in enumerate(table.columns.label_columns):
        values = rows.batch.column(name)
        as_list = any(map(is_list, values))
        elements = find_elements(values) if as_list and (changes > 0).any() else {}
        for row in np.flatnonzero(changes.any(axis=1) if in_tags else changes[:, label]).tolist():
            try:
                if in_tags:
                    change = _tag_change(table, changes[row])
                    new = edit_value(values[row], change, elements, as_list=as_list)
                else:
                    new = turn_value(values[row], yes=bool(changes[row, label] > 0), minus=minus[label])
            except (KeyError, TypeError):
                raise _file_changed(table.path, rows.batch.lines[row] if rows.batch.lines else None) from None
            found.setdefault(name, {})[row] = new
    return found


def _tag_change(table: Table, change: Changes) -> TagChange:
    """Return what changes in the tags of a row."""
    dropped, added = (
        [table.label_names[label] for label in np.flatnonzero(change == way)] for way in (-1, 1)
    )
    return TagChange(frozenset(dropped), tuple(added), table.separator, table.merge_case)


def quote_cell(text: str, dialect: Dialect, path: Path, line: int) -> str:
    """Write a cell, quoted if it must be."""
    if not any(mark in text for mark in (str(dialect.delimiter), dialect.quote or "\n", "\n", "\r")):
        return text
    if not dialect.quote:
        raise TableError(f"{text!r} cannot be written without quotes", path=path, line=line, value=text)
    return f"{dialect.quote}{text.replace(dialect.quote, dialect.quote * 2)}{dialect.quote}"


def check_suffix(source: Path, target: Path) -> None:
    """Raise unless a copy is named as what it will be."""
    suffix = ".arrow" if source.is_dir() else source.suffix
    if suffix.lower() != target.suffix.lower():
        problem = f"the copy has the format of {source.name}, so its name must end in {suffix}"
        raise TableError(problem, path=target, expected=suffix)


def check_changes(table: Table, drop: Any, add: Any = None) -> Changes:
    """Return 1 where a row gets a label and -1 where it loses one; raise unless rows lack and have these labels."""
    changes = np.zeros(table.candidates.shape, dtype=np.int8)
    for name, given, has, way in (("drop", drop, "does not have", -1), ("add", add, "has already", 1)):
        if given is None:
            continue
        mask = np.asarray(given)
        if mask.dtype != np.bool_ or mask.shape != changes.shape:
            found = f"{mask.dtype} of shape {mask.shape}"
            raise ValueError(f"{name} must be a boolean matrix of shape {changes.shape}, got {found}")
        odd = mask & ((table.candidates > 0) == (way > 0))
        if odd.any():
            row, label = np.argwhere(odd)[0].tolist()
            which = f"row {row} and label {table.label_names[label]!r}"
            raise ValueError(f"{name} is True for {which}, which the row {has}")
        changes[mask] = way
    return changes


def _all_rows(table: Table, changes: Changes) -> Changes:
    """Return the changes of all rows of the file, of which the table may have only some."""
    if table.kept_rows is None:
        return changes
    whole = np.zeros((table.n_file_rows, changes.shape[1]), dtype=np.int8)
    whole[table.kept_rows] = changes
    return whole


def _file_changed(path: Path, line: int | None = None) -> TableError:
    problem = "has changed since it was read, so nothing was written; read it again"
    return TableError(problem, path=path, line=line)


def _copy_csv(
    table: Table, dialect: Dialect, changes: Changes, target: Path, progress: Progress | None
) -> None:
    """Copy record by record; those whose labels stay are copied as they are."""
    minus, row, position = _find_minus(table), -1, None
    with target.open("wb") as raw:
        raw.write(dialect.mark)
        with TextIOWrapper(raw, encoding=dialect.encoding, newline="") as file:
            for record in read_records(table.path, dialect, progress):
                text = record.text
                if record.cells and position is None:
                    position = {name: column for column, name in enumerate(record.cells)}
                elif record.cells and position is not None:
                    row += 1
                    if row < len(changes) and changes[row].any():
                        text = _edit_record(table, dialect, record, position, changes[row], minus)
                file.write(text)
    if row + 1 != len(changes):
        raise _file_changed(table.path)


def _edit_record(
    table: Table, dialect: Dialect, record: Record, position: dict[str, int], change: Changes, minus: list[bool]
) -> str:  # fmt: skip
    """Return the text of a record with other labels."""
    cells, ending = raw_cells(record, dialect)
    try:
        columns = [position[name] for name in table.columns.label_columns]
        if table.columns.tags is not None:
            edits = {columns[0]: edit_tags(record.cells[columns[0]], _tag_change(table, change))}
        else:
            edits = {
                columns[label]: turn_text(
                    record.cells[columns[label]], yes=bool(change[label] > 0), minus=minus[label]
                )
                for label in np.flatnonzero(change).tolist()
            }
    except LookupError:
        raise _file_changed(table.path, record.line) from None
    for column, text in edits.items():
        cells[column] = _write_cell(text, cells[column], dialect, table.path, record.line)
    body = str(dialect.delimiter).join(cells)
    if not body:
        # A line with nothing in it would not be a row.
        if not dialect.quote:
            problem = "an only cell that is not quoted cannot lose its last tag; add a column"
            raise TableError(problem, path=table.path, line=record.line)
        body = dialect.quote * 2
    return body + ending


def _find_minus(table: Table) -> list[bool]:
    """Whether each 0/1 column writes no as -1: judged by its first cell that means no, else by other columns."""
    columns = table.columns.labels or ()
    found: dict[str, bool] = {}
    if table.frame is None:
        rows = open_rows(table.path, dialect=table.dialect, sheet=table.sheet)
    else:
        rows = frame_rows(table.frame)
    if not set(table.columns.label_columns) <= set(rows.header):
        raise _file_changed(table.path, None if table.dialect is None else 1)
    for batch in rows.batches(columns) if columns else ():
        for name in set(columns).difference(found):
            for line, cell in zip_longest(batch.lines, batch.texts(name)):
                try:
                    is_no = parse_flag(cell) == 0
                except KeyError:
                    raise _file_changed(table.path, line) from None
                if is_no:
                    found[name] = cell.strip().startswith("-")
                    break
        if len(found) == len(columns):
            break
    return [found.get(name, any(found.values())) for name in columns]


def raw_cells(record: Record, dialect: Dialect) -> tuple[list[str], str]:
    """Split the text of a record into cells as they are written, quotes included, and its line ending."""
    body = record.text.rstrip("\r\n")
    delimiter, quote = re.escape(str(dialect.delimiter)), re.escape(str(dialect.quote))
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


def _write_cell(text: str, was: str, dialect: Dialect, path: Path, line: int) -> str:
    """Write a cell in the place of another one, quoted if that was or if it must be."""
    quote = dialect.quote
    if quote and (was.startswith(quote) or text.startswith(quote)):
        return f"{quote}{text.replace(quote, quote * 2)}{quote}"
    if any(mark in text for mark in (str(dialect.delimiter), "\n", "\r")):
        return quote_cell(text, dialect, path, line)
    return text


def _copy_json(table: Table, changes: Changes, target: Path) -> None:
    """Copy the text of a file, in which only the values of labels differ."""
    file, minus = read_json(table.path), _find_minus(table)
    if len(file.records) != len(changes):
        raise _file_changed(table.path)
    pieces, place, ascii_only = [], 0, file.text.isascii()
    tags = table.columns.tags
    style = "text" if tags is None else find_style(file, tags)
    for row in np.flatnonzero(changes.any(axis=1)).tolist():
        record = file.records[row]
        try:
            if tags is None:
                edits = [
                    turn_member(file, record, name, yes=bool(changes[row, label] > 0), minus=minus[label])
                    for label, name in enumerate(table.columns.labels or ())
                    if changes[row, label]
                ]
            else:
                change = _tag_change(table, changes[row])
                edits = [*edit_members(file, record, tags, change, style)]
        except KeyError:
            raise _file_changed(table.path, record.line) from None
        for start, end, new in sorted(edits):
            # Only within texts a file of JSON has other characters.
            new = re.sub("[^\\0-\x7f]", lambda found: json.dumps(found[0])[1:-1], new) if ascii_only else new
            pieces += [file.text[place:start], new]
            place = end
    target.write_bytes("".join([*pieces, file.text[place:]]).encode(file.encoding))


def _copy_excel(table: Table, changes: Changes, target: Path) -> None:
    """Copy a workbook, in which only the cells of labels differ."""
    rows = excel_rows(table.path, table.sheet)
    if rows.batch.n_rows != len(changes):
        raise _file_changed(table.path)
    places = {
        (rows.batch.lines[row], rows.header.index(name) + 1): value
        for name, edits in _edit_values(table, changes, rows).items()
        for row, value in edits.items()
    }
    copy_excel(table.path, str(table.sheet), places, target)


def _copy_arrow(table: Table, changes: Changes, target: Path) -> None:
    """Copy an Arrow file, in the format of files or of streams as it is."""
    content = read_arrow(table.path)
    if len(content) != len(changes):
        raise _file_changed(table.path)
    try:
        edited = _edit_group(table, content, changes, _find_minus(table))
    except KeyError:
        raise _file_changed(table.path) from None
    write_arrow(edited, table.path, target)


def write_arrow(content: Any, source: Path, target: Path) -> None:
    """Write an Arrow file in the format of files or of streams, as the source is."""
    arrow = require_extra("pyarrow", "writing Arrow files")
    is_file = source.is_file() and source.read_bytes()[: len(_ARROW_FILE)] == _ARROW_FILE
    with (arrow.ipc.new_file if is_file else arrow.ipc.new_stream)(str(target), content.schema) as writer:
        writer.write_table(content)


def _copy_parquet(table: Table, changes: Changes, target: Path, progress: Progress | None) -> None:
    """Copy row group by row group, each column compressed as it was."""
    parquet = require_extra("pyarrow.parquet", "writing Parquet files")
    file = open_parquet(table.path)
    if file.metadata.num_rows != len(changes):
        raise _file_changed(table.path)
    minus = _find_minus(table)
    done = 0
    first = file.metadata.row_group(0)
    parts = [first.column(index) for index in range(first.num_columns)]
    compression = {part.path_in_schema: part.compression.replace("UNCOMPRESSED", "NONE") for part in parts}
    options = {"compression": compression, "write_page_checksum": True}
    with parquet.ParquetWriter(target, file.schema_arrow, **options) as writer:
        for number in range(file.metadata.num_row_groups):
            with parsing(table.path, "Parquet"):
                group = file.read_row_group(number)
            try:
                group = _edit_group(table, group, changes[done : done + len(group)], minus)
            except KeyError:
                raise _file_changed(table.path) from None
            writer.write_table(group, row_group_size=max(len(group), 1))
            done += len(group)
            if progress is not None:
                progress(done, len(changes), f"copying {table.path.name}")


def _edit_group(table: Table, group: Any, changes: Changes, minus: list[bool]) -> Any:
    """Return rows with other labels; KeyError where a cell is not as it was."""
    if table.columns.tags is not None:
        return _edit_tag_column(table, group, changes)
    for label in np.flatnonzero(changes.any(axis=0)).tolist():
        name = (table.columns.labels or ())[label]
        values = group.column(name).to_numpy().copy()
        for row in np.flatnonzero(changes[:, label]).tolist():
            value, yes = values[row], bool(changes[row, label] > 0)
            values[row] = turn_value(value, yes=yes, minus=minus[label] and values.dtype.kind in "ifO")
        group = _replace_column(group, name, values)
    return group


def _edit_tag_column(table: Table, group: Any, changes: Changes) -> Any:
    """Return rows with other tags: texts, lists, or numbers of classes."""
    name = str(table.columns.tags)
    cells = group.column(name).to_pylist()
    classes = class_names(group.schema).get(name)
    kind = group.schema.field(name).type
    element = getattr(kind, "value_type", None) if is_list_type(kind) else None
    for row in np.flatnonzero(changes.any(axis=1)).tolist():
        change = _tag_change(table, changes[row])
        if classes is not None:
            one = element is None
            numbers = [cells[row]] if one else cells[row] or []
            tags = [classes[number] for number in numbers if number is not None and number >= 0]
            found = [_number_class(classes, tag, name) for tag in edit_list(tags, change, {})]
            if one and len(found) > 1:
                problem = f"column {name!r} holds one class per row; {change.added[0]!r} can only replace {tags[0]!r}"
                raise TableError(problem, column=name, value=change.added[0])
            cells[row] = found if not one else found[0] if found else None
        elif element is not None:
            arrow = require_extra("pyarrow", "writing Parquet files")
            added = dict(
                zip(
                    change.added,
                    arrow.array(change.added, arrow.string()).cast(element).to_pylist(),
                    strict=True,
                )
            )
            cells[row] = edit_list(cells[row] or [], change, added)
        else:
            cells[row] = edit_tags(cells[row] or "", change)
    return _replace_column(group, name, cells)


def _number_class(classes: Sequence[str], tag: str, column: str) -> int:
    if tag not in classes:
        raise TableError(f"column {column!r} has no class {tag!r}", column=column, value=tag)
    return classes.index(tag)


def _replace_column(group: Any, name: str, values: Any) -> Any:
    arrow = require_extra("pyarrow", "writing Parquet files")
    place = group.column_names.index(name)
    column = group.schema.field(place)
    return group.set_column(place, column, arrow.array(values, type=column.type))
