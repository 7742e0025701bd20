"""Copies of tables without some labels; everything else stays as it is, in text files to the byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from io import TextIOWrapper
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpml._docstrings import fill_docstring
from skpml._writing import replacing
from skpml.tables._arrow import class_names, open_parquet, read_arrow
from skpml.tables._columns import parse_flag
from skpml.tables._dialect import Dialect
from skpml.tables._errors import TableError, parsing, require_extra
from skpml.tables._excel import copy_excel, excel_rows
from skpml.tables._formats import EXCEL_SUFFIX, PARQUET_SUFFIX, open_rows
from skpml.tables._json import JSON_SUFFIXES, JsonRecord, find_span, read_json
from skpml.tables._rows import Progress, Record, read_records
from skpml.tables._table import Table
from skpml.tables._tags import LISTS, fold_tag, split_cell, tag_of_part
from skpml.tables._values import frame_rows

DropMask = NDArray[np.bool_]
_OPPOSITES = {"1": "0", "1.0": "0.0", "true": "false", "yes": "no"}
# How an Arrow file that is not a stream begins.
_ARROW_FILE = b"ARROW1"
# Of a text that is one tag, whatever it holds.
_NO_SEPARATOR = "\0"
_MINUS = {"1": "-1", "1.0": "-1.0"}


@fill_docstring
def write_cleaned(
    table: Table, drop: Any, target: str | Path, *, overwrite: bool = False, progress: Progress | None = None
) -> None:
    """Copy the file of a table without the labels to drop, completely or not at all.

    Every other cell of a text file stays as it is written, to the byte: delimiters, quotes, encoding, line endings,
    order of columns and of the remaining tags. A 0/1 column gets the opposite of what it holds, as in 0 for 1, -1 for 1
    where the column writes no as -1, and FALSE for TRUE. All other values of a JSON file and all other cells, styles and
    sheets of a workbook stay as they are, too. A Parquet or Arrow file keeps its schema, its metadata and all other
    columns; the copy of a folder of Arrow files is one file.

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
    mask = _all_rows(table, check_drop(drop, table))
    check_suffix(table.path, target)
    suffix = "" if table.path.is_dir() else table.path.suffix.lower()
    with replacing(target, overwrite=overwrite, like=table.path) as (temporary,):
        if table.dialect is not None:
            _copy_csv(table, table.dialect, mask, temporary, progress)
        elif suffix == PARQUET_SUFFIX:
            _copy_parquet(table, mask, temporary, progress)
        elif suffix in JSON_SUFFIXES:
            _copy_json(table, mask, temporary)
        elif suffix == EXCEL_SUFFIX:
            _copy_excel(table, mask, temporary)
        else:
            _copy_arrow(table, mask, temporary)


def clean_frame(table: Table, drop: Any) -> Any:
    """Return a copy of the data frame of a table without the labels to drop.

    Parameters
    ----------
    table : Table
        What `read_table` returned for a data frame of pandas or Polars.
    drop : array-like of bool of shape (n_rows, n_labels)
        Which labels to drop; only labels that a row has.

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
    """
    if table.frame is None or not hasattr(table.frame, "to_numpy"):
        raise ValueError("table must be that of a data frame of pandas or Polars; write_cleaned copies files")
    mask, frame = _all_rows(table, check_drop(drop, table)), table.frame
    rows = frame_rows(frame)
    minus = _find_minus(table)
    for label, name in enumerate(table.columns.label_columns):
        column = mask if table.columns.tags is not None else mask[:, [label]]
        values = list(rows.batch.column(name))
        for row in np.flatnonzero(column.any(axis=1)).tolist():
            values[row] = _edit_value(table, name, values[row], mask[row], minus)
        if hasattr(frame, "with_columns"):
            series = type(frame[name])
            frame = frame.with_columns(series(name, values, dtype=frame[name].dtype))
        else:
            series = type(frame[name])
            frame = frame.assign(**{name: series(values, index=frame.index, dtype=frame[name].dtype)})
    return frame


def _edit_value(table: Table, column: str, value: Any, dropped: DropMask, minus: list[bool]) -> Any:
    """Return the value of a column of labels without those to drop; KeyError where one is not there."""
    if column == table.columns.tags:
        gone = {table.label_names[label] for label in np.flatnonzero(dropped)}
        if isinstance(value, str):
            return _remove_tags(value, gone, table.separator, merge_case=table.merge_case)
        keep = _keep_tags([str(tag).strip() for tag in value], gone, merge_case=table.merge_case)
        kept = [tag for tag, stays in zip(value, keep, strict=True) if stays]
        return (
            kept
            if isinstance(value, list)
            else np.array(kept)
            if isinstance(value, np.ndarray)
            else type(value)(kept)
        )
    with_minus = minus[(table.columns.labels or ()).index(column)]
    if isinstance(value, str):
        return _opposite(value, minus=with_minus)
    if value != 1:
        raise KeyError(column)
    return type(value)(-1 if with_minus and not isinstance(value, bool) else 0)


def write_tags(path: Path, dialect: Dialect, column: str, cells: Sequence[str], target: Path) -> None:
    """Copy a text table with other tags, in their column or in a new last one; all else stays as it is."""
    row, place = -1, None
    with target.open("wb") as raw:
        raw.write(dialect.mark)
        with TextIOWrapper(raw, encoding=dialect.encoding, newline="") as file:
            for record in read_records(path, dialect):
                text = record.text
                if record.cells:
                    raw_cells, ending = _raw_cells(record, dialect)
                    if place is None:
                        place = record.cells.index(column) if column in record.cells else len(record.cells)
                        new = column
                    else:
                        row += 1
                        new = cells[row]
                    raw_cells[place : place + 1] = [_quote_cell(new, dialect, path, record.line)]
                    text = str(dialect.delimiter).join(raw_cells) + ending
                file.write(text)


def _quote_cell(text: str, dialect: Dialect, path: Path, line: int) -> str:
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


def check_drop(drop: Any, table: Table) -> DropMask:
    """Return what to drop as a boolean matrix; raise unless the rows have these labels."""
    mask = np.asarray(drop)
    if mask.dtype != np.bool_ or mask.shape != table.candidates.shape:
        found = f"{mask.dtype} of shape {mask.shape}"
        raise ValueError(f"drop must be a boolean matrix of shape {table.candidates.shape}, got {found}")
    odd = mask & (table.candidates == 0)
    if odd.any():
        row, label = np.argwhere(odd)[0]
        name = table.label_names[label]
        raise ValueError(f"drop is True for row {row} and label {name!r}, which the row does not have")
    return mask


def _all_rows(table: Table, mask: DropMask) -> DropMask:
    """Return what to drop in all rows of the file, of which the table may have only some."""
    if table.kept_rows is None:
        return mask
    whole = np.zeros((table.n_file_rows, mask.shape[1]), dtype=np.bool_)
    whole[table.kept_rows] = mask
    return whole


def _file_changed(path: Path, line: int | None = None) -> TableError:
    problem = "has changed since it was read, so nothing was written; read it again"
    return TableError(problem, path=path, line=line)


def _copy_csv(
    table: Table, dialect: Dialect, mask: DropMask, target: Path, progress: Progress | None
) -> None:
    """Copy record by record; those that lose no label are copied as they are."""
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
                    if row < len(mask) and mask[row].any():
                        text = _edit_record(table, dialect, record, position, mask[row], minus)
                file.write(text)
    if row + 1 != len(mask):
        raise _file_changed(table.path)


def _edit_record(
    table: Table, dialect: Dialect, record: Record, position: dict[str, int], dropped: DropMask, minus: list[bool]
) -> str:  # fmt: skip
    """Return the text of a record without the labels to drop."""
    cells, ending = _raw_cells(record, dialect)
    labels = np.flatnonzero(dropped).tolist()
    try:
        columns = [position[name] for name in table.columns.label_columns]
        if table.columns.tags is not None:
            gone = {table.label_names[label] for label in labels}
            cell = record.cells[columns[0]]
            changes = {columns[0]: _remove_tags(cell, gone, table.separator, merge_case=table.merge_case)}
        else:
            changes = {columns[j]: _opposite(record.cells[columns[j]], minus=minus[j]) for j in labels}
    except LookupError:
        raise _file_changed(table.path, record.line) from None
    for column, text in changes.items():
        cells[column] = _write_cell(text, cells[column], dialect)
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


def _raw_cells(record: Record, dialect: Dialect) -> tuple[list[str], str]:
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


def _write_cell(text: str, was: str, dialect: Dialect) -> str:
    """Write a cell in the place of another one, quoted if that was or if it must be."""
    quote = dialect.quote
    if quote and (was.startswith(quote) or text.startswith(quote)):
        return f"{quote}{text.replace(quote, quote * 2)}{quote}"
    return text


def _remove_tags(cell: str, dropped: set[str], separator: str, *, merge_case: bool = False) -> str:
    """Remove tags from a cell and leave the others as they are; KeyError if one is not there."""
    try:
        before, parts, behind = split_cell(cell, separator)
    except ValueError:
        raise KeyError(cell) from None
    tags = [tag_of_part(part, separator) for part in parts]
    keep = _keep_tags(tags, dropped, merge_case=merge_case)
    kept = [part for part, stays in zip(parts, keep, strict=True) if stays]
    if kept and not keep[0]:
        # The blanks behind a separator go with the tag before it.
        kept[0] = parts[0][: len(parts[0]) - len(parts[0].lstrip())] + kept[0].lstrip()
    return before + ("," if separator == LISTS else separator).join(kept) + behind


def _keep_tags(tags: Sequence[str], dropped: set[str], *, merge_case: bool) -> list[bool]:
    """Return which tags of a cell stay; KeyError if one of the dropped is not there."""
    find = fold_tag if merge_case else str
    gone = {find(tag) for tag in dropped}
    if missing := gone.difference(map(find, tags)):
        raise KeyError(missing.pop())
    return [find(tag) not in gone for tag in tags]


def _opposite(cell: str, *, minus: bool = False) -> str:
    """Return the text for 0 in the style of a cell for 1; KeyError if it is not for 1."""
    word = cell.strip()
    if parse_flag(cell) != 1:
        raise KeyError(cell)
    opposite = (_OPPOSITES | _MINUS if minus else _OPPOSITES)[word.lower()]
    for alike in (str.lower, str.upper, str.capitalize):
        if alike(word) == word:
            opposite = alike(opposite)
            break
    return cell.replace(word, opposite)


def _copy_json(table: Table, mask: DropMask, target: Path) -> None:
    """Copy the text of a file, in which only the values of labels differ."""
    file, minus = read_json(table.path), _find_minus(table)
    if len(file.records) != len(mask):
        raise _file_changed(table.path)
    pieces, place = [], 0
    for row in np.flatnonzero(mask.any(axis=1)).tolist():
        record = file.records[row]
        try:
            changes = sorted(_edit_object(table, file.text, record, mask[row], minus))
        except KeyError:
            raise _file_changed(table.path, record.line) from None
        for start, end, new in changes:
            pieces += [file.text[place:start], new]
            place = end
    target.write_bytes("".join([*pieces, file.text[place:]]).encode(file.encoding))


def _edit_object(
    table: Table, text: str, record: JsonRecord, dropped: DropMask, minus: list[bool]
) -> Iterator[tuple[int, int, str]]:
    """Yield where values of an object begin and end, and what to write there."""
    ascii_only = text.isascii()
    if table.columns.tags is None:
        for label in np.flatnonzero(dropped).tolist():
            name = (table.columns.labels or ())[label]
            start, end = find_span(text, record.start, (name,))
            new = _opposite(text[start:end].strip('"'), minus=minus[label])
            yield start, end, f'"{new}"' if text[start] == '"' else new
        return
    find = fold_tag if table.merge_case else str
    gone = {find(table.label_names[label]) for label in np.flatnonzero(dropped)}
    missing = set(gone)
    for path in record.tag_paths.get(table.columns.tags, ()):
        start, end = find_span(text, record.start, path)
        if text[start] == "{":
            start, end = find_span(text, start, ("choices",))
        value, separator = json.loads(text[start:end]), LISTS
        if isinstance(value, str):
            # A list of tags is either in the text, or the text is the only tag of an answer.
            separator = table.separator if len(path) == 1 else _NO_SEPARATOR
        cell = value if isinstance(value, str) else text[start:end]
        parts = split_cell(cell, separator)[1]
        here = {find(tag_of_part(part, separator)) for part in parts} & gone
        missing -= here
        if here:
            new = _remove_tags(cell, here, separator, merge_case=table.merge_case)
            yield start, end, json.dumps(new, ensure_ascii=ascii_only) if isinstance(value, str) else new
    if missing:
        raise KeyError(missing.pop())


def _copy_excel(table: Table, mask: DropMask, target: Path) -> None:
    """Copy a workbook, in which only the cells of labels differ."""
    rows, minus = excel_rows(table.path, table.sheet), _find_minus(table)
    if rows.batch.n_rows != len(mask):
        raise _file_changed(table.path)
    changes = {}
    for label, name in enumerate(table.columns.label_columns):
        changed = mask.any(axis=1) if table.columns.tags is not None else mask[:, label]
        values = rows.batch.column(name)
        for row in np.flatnonzero(changed).tolist():
            try:
                value = _edit_value(table, name, values[row], mask[row], minus)
            except (KeyError, TypeError):
                raise _file_changed(table.path, rows.batch.lines[row]) from None
            changes[rows.batch.lines[row], rows.header.index(name) + 1] = value
    copy_excel(table.path, str(table.sheet), changes, target)


def _copy_arrow(table: Table, mask: DropMask, target: Path) -> None:
    """Copy an Arrow file, in the format of files or of streams as it is."""
    arrow = require_extra("pyarrow", "writing Arrow files")
    content = read_arrow(table.path)
    if len(content) != len(mask):
        raise _file_changed(table.path)
    try:
        edited = _edit_group(table, content, mask, _find_minus(table))
    except KeyError:
        raise _file_changed(table.path) from None
    is_file = table.path.is_file() and table.path.read_bytes()[: len(_ARROW_FILE)] == _ARROW_FILE
    with (arrow.ipc.new_file if is_file else arrow.ipc.new_stream)(str(target), edited.schema) as writer:
        writer.write_table(edited)


def _copy_parquet(table: Table, mask: DropMask, target: Path, progress: Progress | None) -> None:
    """Copy row group by row group, each column compressed as it was."""
    parquet = require_extra("pyarrow.parquet", "writing Parquet files")
    file = open_parquet(table.path)
    if file.metadata.num_rows != len(mask):
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
                group = _edit_group(table, group, mask[done : done + len(group)], minus)
            except KeyError:
                raise _file_changed(table.path) from None
            writer.write_table(group, row_group_size=max(len(group), 1))
            done += len(group)
            if progress is not None:
                progress(done, len(mask), f"copying {table.path.name}")


def _edit_group(table: Table, group: Any, mask: DropMask, minus: list[bool]) -> Any:
    """Return rows without the labels to drop; KeyError where one is not there."""
    if table.columns.tags is not None:
        cells = group.column(table.columns.tags).to_pylist()
        names = class_names(group.schema).get(table.columns.tags)
        for row in np.flatnonzero(mask.any(axis=1)).tolist():
            gone = {table.label_names[label] for label in np.flatnonzero(mask[row])}
            if names is not None and not isinstance(cells[row], list):
                _keep_tags([names[cells[row]]], gone, merge_case=table.merge_case)
                cells[row] = None
            elif isinstance(cells[row], list):
                tags = [str(tag).strip() if names is None else names[tag] for tag in cells[row]]
                keep = _keep_tags(tags, gone, merge_case=table.merge_case)
                cells[row] = [tag for tag, stays in zip(cells[row], keep, strict=True) if stays]
            else:
                cells[row] = _remove_tags(
                    cells[row] or "", gone, table.separator, merge_case=table.merge_case
                )
        return _replace_column(group, table.columns.tags, cells)
    for label in np.flatnonzero(mask.any(axis=0)).tolist():
        name = (table.columns.labels or ())[label]
        values = group.column(name).to_numpy().copy()
        if values.dtype.kind == "O":
            values[mask[:, label]] = [
                _opposite(str(value), minus=minus[label]) for value in values[mask[:, label]]
            ]
        else:
            if (values[mask[:, label]] != 1).any():
                raise KeyError(name)
            values[mask[:, label]] = -1 if minus[label] and values.dtype.kind in "if" else 0
        group = _replace_column(group, name, values)
    return group


def _replace_column(group: Any, name: str, values: Any) -> Any:
    arrow = require_extra("pyarrow", "writing Parquet files")
    place = group.column_names.index(name)
    column = group.schema.field(place)
    return group.set_column(place, column, arrow.array(values, type=column.type))
