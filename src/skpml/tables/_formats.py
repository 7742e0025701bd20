"""The formats of tables: which reader a file has, by its suffix."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from skpml.tables._arrow import ARROW_SUFFIXES, ArrowBatch, ArrowRows, ParquetRows
from skpml.tables._columns import check_known_suffix
from skpml.tables._dialect import Dialect
from skpml.tables._excel import excel_rows
from skpml.tables._json import JSON_SUFFIXES, json_rows
from skpml.tables._rows import CsvBatch, CsvRows, Progress
from skpml.tables._values import ValueBatch, ValueRows

TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
PARQUET_SUFFIX, EXCEL_SUFFIX = ".parquet", ".xlsx"
TABLE_SUFFIXES = (*TEXT_SUFFIXES, PARQUET_SUFFIX, *ARROW_SUFFIXES, *JSON_SUFFIXES, EXCEL_SUFFIX)
Batch: TypeAlias = CsvBatch | ArrowBatch | ValueBatch
Rows: TypeAlias = CsvRows | ParquetRows | ArrowRows | ValueRows


def open_rows(
    path: Path, *, dialect: Dialect | None, sheet: str | None, progress: Progress | None = None
) -> Rows:
    """Return the rows of a table in a file; `dialect` is that of a text table, `sheet` that of a workbook."""
    if path.is_dir():
        return ArrowRows(path, progress)
    suffix = path.suffix.lower()
    check_known_suffix(path, TABLE_SUFFIXES)
    if suffix in TEXT_SUFFIXES:
        assert dialect is not None
        return CsvRows(path, dialect, progress)
    if suffix == PARQUET_SUFFIX:
        return ParquetRows(path, progress)
    if suffix in ARROW_SUFFIXES:
        return ArrowRows(path, progress)
    return excel_rows(path, sheet) if suffix == EXCEL_SUFFIX else json_rows(path)
