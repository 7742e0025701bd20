"""Copies of tables without some labels; everything else stays as it is, in text files to the byte."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpml._writing import replacing
from skpml.tables._columns import parse_flag
from skpml.tables._csv import Progress, Record, read_records
from skpml.tables._dialect import Dialect
from skpml.tables._errors import TableError, parsing, require_extra
from skpml.tables._parquet import open_parquet
from skpml.tables._table import Table

DropMask = NDArray[np.bool_]
_OPPOSITES = {"1": "0", "1.0": "0.0", "true": "false", "yes": "no"}
_MINUS = {"1": "-1", "1.0": "-1.0"}


def write_cleaned(
    table: Table, drop: Any, target: str | Path, *, overwrite: bool = False, progress: Progress | None = None
) -> None:
    """Copy the file of a table without the labels to drop, completely or not at all.

    Every other cell of a text file stays as it is written, to the byte: delimiters, quotes, encoding, line endings,
    order of columns and of the remaining tags. A 0/1 column gets the opposite of what it holds, as in 0 for 1, -1 for 1
    where the column writes no as -1, and FALSE for TRUE. A Parquet file keeps its schema, its metadata and all other
    columns.

    Parameters
    ----------
    table : Table
        What `read_table` returned for the file.
    drop : array-like of bool of shape (n_rows, n_labels)
        True where a label is to be dropped; the row must carry it.
    target : path-like
        File to write, with the same suffix.
    overwrite : bool, default=False
        Whether to replace a file that exists.
    progress : callable, optional
        Called as ``progress(done, total, what)`` now and then.

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
    mask = check_drop(drop, table)
    check_suffix(table.path, target)
    with replacing(target, overwrite=overwrite) as (temporary,):
        if table.dialect is not None:
            _copy_csv(table, table.dialect, mask, temporary, progress)
        else:
            _copy_parquet(table, mask, temporary, progress)


def check_suffix(source: Path, target: Path) -> None:
    """Raise unless a copy is named as what it will be."""
    if source.suffix.lower() != target.suffix.lower():
        problem = f"the copy has the format of {source.name}, so its name must end in {source.suffix}"
        raise TableError(problem, path=target, expected=source.suffix)


def check_drop(drop: Any, table: Table) -> DropMask:
    """Return what to drop as a boolean matrix; raise unless the rows have these labels."""
    mask = np.asarray(drop)
    if mask.dtype != np.bool_ or mask.shape != table.candidates.shape:
        raise ValueError(
            f"drop must be a boolean matrix of shape {table.candidates.shape}, got {mask.dtype} of shape {mask.shape}"
        )
    odd = mask & (table.candidates == 0)
    if odd.any():
        row, label = np.argwhere(odd)[0]
        raise ValueError(
            f"drop is True for row {row} and label {table.label_names[label]!r}, which the row does not have"
        )
    return mask


def _file_changed(path: Path, line: int | None = None) -> TableError:
    problem = "has changed since it was read, so nothing was written; read it again"
    return TableError(problem, path=path, line=line)


def _copy_csv(
    table: Table, dialect: Dialect, mask: DropMask, target: Path, progress: Progress | None
) -> None:
    """Copy record by record; those that lose no label are copied as they are."""
    marked = set(np.flatnonzero(mask.any(axis=1)).tolist())
    row, edit = -1, None
    with target.open("wb") as raw:
        raw.write(dialect.mark)
        with TextIOWrapper(raw, encoding=dialect.encoding, newline="") as file:
            for record in read_records(table.path, dialect, progress):
                text = record.text
                if record.cells and edit is None:
                    edit = _make_editor(table, dialect, record.cells)
                elif record.cells and edit is not None:
                    row += 1
                    text = edit(record, mask[row]) if row in marked else text
                file.write(text)
    if row + 1 != len(mask):
        raise _file_changed(table.path)


def _make_editor(table: Table, dialect: Dialect, header: list[str]) -> Callable[[Record, DropMask], str]:
    """Return the function that gives the text of a record without the labels to drop."""
    columns = table.columns.label_columns
    if not set(columns) <= set(header):
        raise _file_changed(table.path, 1)
    positions = [header.index(name) for name in columns]
    minus = [] if table.columns.tags is not None else _find_minus(table.path, dialect, positions)

    def change(cells: list[str], dropped: list[int]) -> dict[int, str]:
        if table.columns.tags is not None:
            gone = {table.label_names[label] for label in dropped}
            return {positions[0]: _remove_tags(cells[positions[0]], gone, table.separator)}
        return {positions[j]: _opposite(cells[positions[j]], minus=minus[j]) for j in dropped}

    def edit(record: Record, dropped: DropMask) -> str:
        cells, ending = _raw_cells(record, dialect)
        try:
            changes = change(record.cells, np.flatnonzero(dropped).tolist())
        except (KeyError, IndexError):
            raise _file_changed(table.path, record.line) from None
        for column, text in changes.items():
            cells[column] = _write_cell(text, cells[column], dialect)
        body = str(dialect.delimiter).join(cells)
        if not body:
            # A line with nothing in it would not be a row.
            if not dialect.quote:
                problem = (
                    "the only cell of a row cannot lose its last tag where cells are not quoted; add a column"
                )
                raise TableError(problem, path=table.path, line=record.line)
            body = dialect.quote * 2
        return body + ending

    return edit


def _find_minus(source: Path, dialect: Dialect, positions: Sequence[int]) -> list[bool]:
    """Whether each 0/1 column writes no as -1, judged by its first cell that means no."""
    found: dict[int, bool] = {}
    with closing(read_records(source, dialect)) as records:
        rows = (record for record in records if record.cells)
        next(rows)
        for record in rows:
            for label in set(range(len(positions))).difference(found):
                cell = record.cells[positions[label]]
                try:
                    if parse_flag(cell) == 0:
                        found[label] = cell.strip().startswith("-")
                except KeyError:
                    raise _file_changed(source, record.line) from None
            if len(found) == len(positions):
                break
    return _complete_minus(found, len(positions))


def _complete_minus(found: Mapping[int, bool], n_labels: int) -> list[bool]:
    """Whether -1, not 0, means no in the column of each label: as found there, else as in any other column."""
    return [found.get(label, any(found.values())) for label in range(n_labels)]


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


def _remove_tags(cell: str, dropped: set[str], separator: str) -> str:
    """Remove tags from a cell and leave the others as they are; KeyError if one is not there."""
    parts = cell.split(separator)
    tags = [part.strip() for part in parts]
    if missing := dropped.difference(tags):
        raise KeyError(missing.pop())
    kept = [part for part, tag in zip(parts, tags, strict=True) if tag not in dropped]
    if kept and tags[0] in dropped:
        # The blanks behind a separator go with the tag before it.
        kept[0] = parts[0][: len(parts[0]) - len(parts[0].lstrip())] + kept[0].lstrip()
    return separator.join(kept)


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


def _copy_parquet(table: Table, mask: DropMask, target: Path, progress: Progress | None) -> None:
    """Copy row group by row group, each column compressed as it was."""
    parquet = require_extra("pyarrow.parquet", "writing Parquet files")
    file = open_parquet(table.path)
    if file.metadata.num_rows != len(mask):
        raise _file_changed(table.path)
    no = _find_negatives(table.path, file, table.columns.labels or ())
    done = 0
    with parquet.ParquetWriter(
        target, file.schema_arrow, compression=_compression(file.metadata), write_page_checksum=True
    ) as writer:
        for number in range(file.metadata.num_row_groups):
            with parsing(table.path, "Parquet"):
                group = file.read_row_group(number)
            try:
                group = _edit_group(table, group, mask[done : done + len(group)], no)
            except KeyError:
                raise _file_changed(table.path) from None
            writer.write_table(group, row_group_size=max(len(group), 1))
            done += len(group)
            if progress is not None:
                progress(done, len(mask), f"copying {table.path.name}")


def _compression(metadata: Any) -> dict[str, str]:
    group = metadata.row_group(0)
    columns = (group.column(index) for index in range(group.num_columns))
    return {column.path_in_schema: column.compression.replace("UNCOMPRESSED", "NONE") for column in columns}


def _find_negatives(source: Path, file: Any, columns: Sequence[str]) -> list[int]:
    """What means no in each 0/1 column, 0 or -1, judged by its first such value."""
    found: dict[int, bool] = {}
    kinds = [np.dtype(file.schema_arrow.field(name).type.to_pandas_dtype()).kind for name in columns]
    signed = {label for label, kind in enumerate(kinds) if kind in "if"}
    with parsing(source, "Parquet"):
        for batch in file.iter_batches(columns=list(columns)) if signed else ():
            for label in signed.difference(found):
                values = batch.column(columns[label]).to_numpy(zero_copy_only=False)
                if (negative := values[values != 1]).size:
                    found[label] = bool(negative[0] == -1)
            if signed.issubset(found):
                break
    minus = _complete_minus(found, len(columns))
    return [-1 if minus[label] and label in signed else 0 for label in range(len(columns))]


def _edit_group(table: Table, group: Any, mask: DropMask, no: Sequence[int]) -> Any:
    """Return rows without the labels to drop; KeyError where one is not there."""
    if table.columns.tags is not None:
        cells = group.column(table.columns.tags).to_pylist()
        for row in np.flatnonzero(mask.any(axis=1)):
            gone = {table.label_names[label] for label in np.flatnonzero(mask[row])}
            cells[row] = _remove_from_value(cells[row], gone, table.separator)
        return _replace_column(group, table.columns.tags, cells)
    for label in np.flatnonzero(mask.any(axis=0)).tolist():
        name = (table.columns.labels or ())[label]
        values = group.column(name).to_numpy().copy()
        if values.dtype.kind == "O":
            values[mask[:, label]] = [_opposite(str(value)) for value in values[mask[:, label]]]
        else:
            if (values[mask[:, label]] != 1).any():
                raise KeyError(name)
            values[mask[:, label]] = no[label]
        group = _replace_column(group, name, values)
    return group


def _remove_from_value(cell: Any, gone: set[str], separator: str) -> Any:
    if isinstance(cell, list):
        if gone.difference(str(tag).strip() for tag in cell):
            raise KeyError(separator)
        return [tag for tag in cell if str(tag).strip() not in gone]
    return _remove_tags(cell or "", gone, separator)


def _replace_column(group: Any, name: str, values: Any) -> Any:
    arrow = require_extra("pyarrow", "writing Parquet files")
    place = group.column_names.index(name)
    column = group.schema.field(place)
    return group.set_column(place, column, arrow.array(values, type=column.type))
