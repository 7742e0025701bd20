"""A copy of a CSV file without some labels; every other cell stays as it is written, to the byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from io import TextIOWrapper
from pathlib import Path

import numpy as np

from skpml.datasets._errors import DatasetFormatError
from skpml.tables._dialect import Dialect
from skpml.tables._label_columns import Flags, Tags, flag
from skpml.tables._labelled_table import LabelledTable
from skpml.tables._records import Progress, Record, raw_cells, read_records, written_cell
from skpml.tables._removing import DropMask, file_changed, opposite, says_no_by_minus, without_tags


def copy_csv(
    source: Path, table: LabelledTable, mask: DropMask, target: Path, progress: Progress | None
) -> None:
    """Write a CSV file anew, record by record; those that lose no label are copied as they are."""
    dialect = table.dialect
    assert dialect is not None
    marked = set(np.flatnonzero(mask.any(axis=1)).tolist())
    row, editor = -1, None
    with target.open("wb") as raw:
        raw.write(dialect.mark)
        with TextIOWrapper(raw, encoding=dialect.encoding, newline="") as file:
            for record in read_records(source, dialect, progress):
                text = record.text
                if record.cells and editor is None:
                    editor = _editor(source, table, dialect, record.cells)
                elif record.cells and editor is not None:
                    row += 1
                    text = editor(record, mask[row]) if row in marked else text
                file.write(text)
    if row + 1 != len(mask):
        raise file_changed(source)


def _editor(
    source: Path, table: LabelledTable, dialect: Dialect, header: list[str]
) -> Callable[[Record, DropMask], str]:
    """The function that gives the text of a record without the labels that are marked."""
    change = _changer(source, table, dialect, header)

    def edit(record: Record, dropped: DropMask) -> str:
        cells, ending = raw_cells(record, dialect)
        try:
            changes = change(record.cells, dropped)
        except KeyError:
            raise file_changed(source, record.line) from None
        for column, text in changes.items():
            cells[column] = written_cell(text, cells[column], dialect)
        body = dialect.delimiter.join(cells)
        # A line with nothing in it would be no row.
        return (body or _empty_row(source, record, dialect)) + ending

    return edit


def _empty_row(source: Path, record: Record, dialect: Dialect) -> str:
    if not dialect.quote:
        raise DatasetFormatError(
            source,
            "the only cell of a row cannot lose its last tag where cells are not quoted; add a column",
            line=record.line,
        )
    return dialect.quote * 2


def _changer(
    source: Path, table: LabelledTable, dialect: Dialect, header: list[str]
) -> Callable[[list[str], DropMask], dict[int, str]]:
    """The function that gives the new cells of a row by their columns; KeyError where a label is not there."""
    labels, names = table.labels, table.label_names
    assert labels is not None
    columns = (labels.column,) if isinstance(labels, Tags) else labels.columns
    if not set(columns) <= set(header):
        raise file_changed(source, 1)
    positions = [header.index(name) for name in columns]

    if isinstance(labels, Flags):
        minus = _minus(source, dialect, positions)
        return lambda cells, dropped: {
            positions[label]: opposite(cells[positions[label]], minus=minus[label])
            for label in np.flatnonzero(dropped)
        }

    def changed_tags(cells: list[str], dropped: DropMask) -> dict[int, str]:
        gone = {names[label] for label in np.flatnonzero(dropped)}
        return {positions[0]: without_tags(cells[positions[0]], gone, table.separator)}

    return changed_tags


def _minus(source: Path, dialect: Dialect, positions: Sequence[int]) -> list[bool]:
    """Whether -1 says no in each label column, told from its first cell that says no, mostly near the top."""
    found: dict[int, bool] = {}
    with closing(read_records(source, dialect)) as records:
        rows = (record for record in records if record.cells)
        next(rows)
        for record in rows:
            for label in set(range(len(positions))).difference(found):
                cell = record.cells[positions[label]]
                try:
                    if flag(cell) == 0:
                        found[label] = cell.strip().startswith("-")
                except KeyError:
                    raise file_changed(source, record.line) from None
            if len(found) == len(positions):
                break
    return says_no_by_minus(found, len(positions))
