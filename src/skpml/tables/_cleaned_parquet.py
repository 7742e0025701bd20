"""A copy of a Parquet file without some labels; schema, metadata and all other columns stay."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from skpml.datasets._errors import require_extra
from skpml.datasets._formats.files import parsing
from skpml.tables._label_columns import Flags, Tags
from skpml.tables._labelled_table import LabelledTable
from skpml.tables._parquet_tables import open_parquet
from skpml.tables._records import Progress
from skpml.tables._removing import DropMask, file_changed, says_no_by_minus, without_tags


def copy_parquet(
    source: Path, table: LabelledTable, mask: DropMask, target: Path, progress: Progress | None
) -> None:
    """Write a Parquet file anew, row group by row group, each column compressed as it was."""
    arrow = require_extra("pyarrow", "writing Parquet files")
    parquet = require_extra("pyarrow.parquet", "writing Parquet files")
    file = open_parquet(source)
    if file.metadata.num_rows != len(mask):
        raise file_changed(source)
    no = _negatives(source, file, table.labels.columns) if isinstance(table.labels, Flags) else ()
    done = 0
    with parquet.ParquetWriter(
        target, file.schema_arrow, compression=_compression(file.metadata), write_page_checksum=True
    ) as writer:
        for number in range(file.metadata.num_row_groups):
            with parsing(source, "Parquet"):
                group = file.read_row_group(number)
            try:
                group = _edited(arrow, table, group, mask[done : done + len(group)], no)
            except KeyError:
                raise file_changed(source) from None
            writer.write_table(group, row_group_size=max(len(group), 1))
            done += len(group)
            if progress is not None:
                progress(done, len(mask), f"copying {source.name}")


def _compression(metadata: Any) -> dict[str, str]:
    group = metadata.row_group(0)
    columns = (group.column(index) for index in range(group.num_columns))
    return {column.path_in_schema: column.compression.replace("UNCOMPRESSED", "NONE") for column in columns}


def _negatives(source: Path, file: Any, columns: Sequence[str]) -> list[int]:
    """What says no in each label column, 0 or -1, told from the first value that does."""
    found: dict[int, bool] = {}
    signed = {label for label, name in enumerate(columns) if _is_signed(file.schema_arrow.field(name).type)}
    with parsing(source, "Parquet"):
        for batch in file.iter_batches(columns=list(columns)):
            for label in signed.difference(found):
                values = batch.column(columns[label]).to_numpy(zero_copy_only=False)
                if (negative := values[values != 1]).size:
                    found[label] = bool(negative[0] == -1)
            if signed.issubset(found):
                break
    minus = says_no_by_minus(found, len(columns))
    return [-1 if minus[label] and label in signed else 0 for label in range(len(columns))]


def _is_signed(kind: Any) -> bool:
    return np.dtype(kind.to_pandas_dtype()).kind in "if"


def _edited(arrow: ModuleType, table: LabelledTable, group: Any, mask: DropMask, no: Sequence[int]) -> Any:
    """Rows without the labels that are marked; KeyError where one is not there."""
    labels = table.labels
    assert labels is not None
    if isinstance(labels, Tags):
        cells = group.column(labels.column).to_pylist()
        for row in np.flatnonzero(mask.any(axis=1)):
            gone = {table.label_names[label] for label in np.flatnonzero(mask[row])}
            cells[row] = _cell_without(cells[row], gone, table.separator)
        return _with_column(arrow, group, labels.column, cells)
    for label in np.flatnonzero(mask.any(axis=0)).tolist():
        name = labels.columns[label]
        values = group.column(name).to_numpy().copy()
        if (values[mask[:, label]] != 1).any():
            raise KeyError(name)
        values[mask[:, label]] = no[label]
        group = _with_column(arrow, group, name, values)
    return group


def _cell_without(cell: Any, gone: set[str], separator: str) -> Any:
    if isinstance(cell, list):
        kept = [tag for tag in cell if str(tag).strip() not in gone]
        if gone.difference(str(tag).strip() for tag in cell):
            raise KeyError(separator)
        return kept
    return without_tags(cell or "", gone, separator)


def _with_column(arrow: ModuleType, group: Any, name: str, values: Any) -> Any:
    place = group.column_names.index(name)
    column = group.schema.field(place)
    return group.set_column(place, column, arrow.array(values, type=column.type))
