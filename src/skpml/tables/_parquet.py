"""Parquet files: their columns as arrays, in batches of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skpml.tables._columns import parse_flag
from skpml.tables._csv import BadCell, Progress
from skpml.tables._errors import TableError, parsing, require_extra

_BATCH = 8192


def open_parquet(path: Path) -> Any:
    """Open a Parquet file whose checksums are verified as it is read."""
    parquet = require_extra("pyarrow.parquet", "reading Parquet files")
    if path.stat().st_size == 0:
        raise TableError("is empty, so it is not a Parquet file; copy it again", path=path)
    with parsing(path, "Parquet"):
        return parquet.ParquetFile(path, page_checksum_verification=True)


class ParquetBatch:
    """Some rows of a Parquet file."""

    lines: Sequence[int] = ()

    def __init__(self, batch: Any) -> None:
        self._batch, self.n_rows = batch, batch.num_rows

    def texts(self, name: str) -> list[str]:
        """Values of a column as text; a missing one is empty."""
        return ["" if value is None else str(value) for value in self._batch.column(name).to_pylist()]

    def tags(self, name: str) -> list[Any]:
        """Values of a column of tags: texts or lists; a missing one has no tags."""
        values = self._batch.column(name).to_pylist()
        for row, value in enumerate(values):
            if not isinstance(value, str | list | None):
                raise BadCell(name, row, value, "text such as 'a;b', or a list of texts")
        return ["" if value is None else value for value in values]

    def numbers(self, names: Sequence[str]) -> Any:
        """Values of some columns as a matrix of finite numbers; BadCell names the first that is not one."""
        matrix = np.column_stack([self._numeric(name, "a finite number") for name in names])
        return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)

    def flags(self, names: Sequence[str]) -> Any:
        """Values of some 0/1 columns as a matrix; BadCell names the first that is neither."""
        return np.column_stack([self._flags(name) for name in names])

    def _numeric(self, name: str, expected: str) -> Any:
        column = self._batch.column(name)
        missing = column.is_null().to_numpy(zero_copy_only=False)
        values = column.to_numpy(zero_copy_only=False)
        if values.dtype.kind not in "buif":
            bad = ~missing if not missing.all() else missing
        else:
            bad = missing if values.dtype.kind != "f" else missing | ~np.isfinite(values)
        if bad.any():
            row = int(np.argmax(bad))
            raise BadCell(name, row, None if missing[row] else values[row], expected)
        return values

    def _flags(self, name: str) -> Any:
        if str(self._batch.column(name).type) in ("string", "large_string"):
            values = np.array([_flag_or_two(text) for text in self._batch.column(name).to_pylist()])
        else:
            values = self._numeric(name, "0 or 1")
            values = np.where(values == -1, 0, values) if values.dtype.kind in "if" else values
        if (wrong := (values != 0) & (values != 1)).any():
            row = int(np.argmax(wrong))
            raise BadCell(name, row, self._batch.column(name)[row].as_py(), "0 or 1")
        return values.astype(np.uint8)


def _flag_or_two(text: str | None) -> int:
    try:
        return parse_flag(text or "")
    except KeyError:
        return 2


class ParquetRows:
    """The rows of a Parquet file, in batches."""

    notes: Sequence[str] = ()

    def __init__(self, path: Path, progress: Progress | None) -> None:
        self._path, self._progress = path, progress
        self._file = open_parquet(path)
        self.header = list(self._file.schema_arrow.names)

    def batches(self, columns: Sequence[str]) -> Iterator[ParquetBatch]:
        """Yield the rows with some of their columns."""
        done, total = 0, self._file.metadata.num_rows
        with parsing(self._path, "Parquet"):
            for batch in self._file.iter_batches(batch_size=_BATCH, columns=list(columns)):
                yield ParquetBatch(batch)
                done += batch.num_rows
                if self._progress is not None:
                    self._progress(done, total, f"reading {self._path.name}")


def write_parquet(path: Path, columns: dict[str, Any]) -> None:
    """Write columns of equal length to a new Parquet file with checksums in its pages."""
    arrow = require_extra("pyarrow", "writing Parquet files")
    parquet = require_extra("pyarrow.parquet", "writing Parquet files")
    table = arrow.table({name: arrow.array(values) for name, values in columns.items()})
    parquet.write_table(table, path, write_page_checksum=True)
