"""Rows of Parquet and Arrow files, as arrays in batches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skpml.tables._columns import FLAGS, format_names
from skpml.tables._errors import TableError, check_unpacked_size, parsing, require_extra
from skpml.tables._rows import BadCell, Progress
from skpml.tables._values import as_tags, parse_value

ARROW_SUFFIXES = (".arrow", ".feather")
_BATCH_ROWS = 8192


def open_parquet(path: Path) -> Any:
    """Open a Parquet file whose checksums are verified as it is read."""
    parquet = require_extra("pyarrow.parquet", "reading Parquet files")
    if path.stat().st_size == 0:
        raise TableError("is empty, so it is not a Parquet file; copy it again", path=path)
    with parsing(path, "Parquet"):
        return parquet.ParquetFile(path, page_checksum_verification=True)


class ArrowBatch:
    """Some rows of a Parquet or Arrow file."""

    lines: Sequence[int] = ()

    def __init__(self, batch: Any) -> None:
        self._batch, self.n_rows = batch, batch.num_rows
        self.widths: dict[str, int] = {}

    def texts(self, name: str) -> list[str]:
        """Values of a column as text; a missing one is empty."""
        return ["" if value is None else str(value) for value in self._batch.column(name).to_pylist()]

    def tags(self, name: str) -> list[Any]:
        """Values of a column of tags: texts or lists; a missing one has no tags."""
        values = self._batch.column(name).to_pylist()
        if (names := class_names(self._batch.schema).get(name)) is not None:
            values = [_name_classes(value, names) for value in values]
        return [as_tags(value, name, row) for row, value in enumerate(values)]

    def numbers(self, names: Sequence[str]) -> Any:
        """Values of some columns as a matrix of finite numbers; BadCell names the first that is not one.

        A column of lists of equal length has as many columns in the matrix.
        """
        matrices = [self._matrix(name) for name in names]
        self.widths = {
            name: matrix.shape[1] for name, matrix in zip(names, matrices, strict=True) if matrix.ndim > 1
        }
        matrix = np.column_stack(matrices)
        return matrix if matrix.dtype in (np.float32, np.float64) else matrix.astype(np.float64)

    def cells(self, name: str) -> list[float | str]:
        """Values of a column as numbers, NaN where one is missing, and texts."""
        return [parse_value(value) for value in self._batch.column(name).to_pylist()]

    def advise(self, _: str) -> tuple[str, ...]:
        """Numbers are written in one way."""
        return ()

    def flags(self, names: Sequence[str]) -> Any:
        """Values of some 0/1 columns as a matrix; BadCell names the first that is neither."""
        return np.column_stack([self._flags(name) for name in names])

    def _matrix(self, name: str) -> Any:
        """Values of a column of numbers, or of lists of as many numbers."""
        column = self._batch.column(name)
        if not is_list_type(column.type):
            return self._numeric(column, name, "a finite number")
        compute = require_extra("pyarrow.compute", "reading Parquet files")
        lengths = compute.list_value_length(column).to_pylist()
        expected = f"a list of {lengths[0] or 1} finite numbers"
        for row, length in enumerate(lengths):
            if not length or length != lengths[0]:
                raise BadCell(name, row, column[row].as_py(), expected)
        values = self._numeric(column.flatten(), name, expected, per_row=lengths[0])
        return values.reshape(len(lengths), -1)

    def _numeric(self, column: Any, name: str, expected: str, per_row: int = 1) -> Any:
        missing = column.is_null().to_numpy(zero_copy_only=False)
        values = column.to_numpy(zero_copy_only=False)
        if values.dtype.kind not in "buif":
            bad = ~missing if not missing.all() else missing
        else:
            bad = missing if values.dtype.kind != "f" else missing | ~np.isfinite(values)
        if bad.any():
            row = int(np.argmax(bad))
            raise BadCell(name, row // per_row, None if missing[row] else values[row], expected)
        return values

    def _flags(self, name: str) -> Any:
        if str(self._batch.column(name).type) in ("string", "large_string"):
            values = np.array([FLAGS.get(text.strip().lower(), 2) for text in self.texts(name)])
        else:
            values = self._numeric(self._batch.column(name), name, "0 or 1")
            values = np.where(values == -1, 0, values) if values.dtype.kind in "if" else values
        if (wrong := (values != 0) & (values != 1)).any():
            row = int(np.argmax(wrong))
            raise BadCell(name, row, self._batch.column(name)[row].as_py(), "0 or 1")
        return values.astype(np.uint8)


class ParquetRows:
    """The rows of a Parquet file, in batches."""

    notes: Sequence[str] = ()

    def __init__(self, path: Path, progress: Progress | None) -> None:
        self._path, self._progress = path, progress
        self._file = open_parquet(path)
        self.header = list(self._file.schema_arrow.names)

    def batches(self, columns: Sequence[str]) -> Iterator[ArrowBatch]:
        """Yield the rows with some of their columns."""
        done, total = 0, self._file.metadata.num_rows
        # Repeated values take no space in a Parquet file.
        check_unpacked_size(self._path, total * sum(map(self._width, columns)))
        with parsing(self._path, "Parquet"):
            for batch in self._file.iter_batches(batch_size=_BATCH_ROWS, columns=list(columns)):
                yield ArrowBatch(batch)
                done += batch.num_rows
                if self._progress is not None:
                    self._progress(done, total, f"reading {self._path.name}")

    def _width(self, name: str) -> int:
        """Return the bytes of a value in memory; 0 if that depends on the value."""
        try:
            return int(self._file.schema_arrow.field(name).type.bit_width + 7) // 8
        except ValueError:
            return 0


class ArrowRows:
    """The rows of Arrow files (``.arrow``, ``.feather``), one after the other."""

    notes: Sequence[str] = ()

    def __init__(self, path: Path, progress: Progress | None) -> None:
        self._path, self._progress = path, progress
        self.table = read_arrow(path)
        self.header = list(self.table.schema.names)

    def batches(self, columns: Sequence[str]) -> Iterator[ArrowBatch]:
        """Yield the rows with some of their columns."""
        for batch in self.table.select(list(columns)).to_batches(max_chunksize=_BATCH_ROWS):
            yield ArrowBatch(batch)
        if self._progress is not None:
            self._progress(1, 1, f"reading {self._path.name}")


def read_arrow(path: Path) -> Any:
    """Read an Arrow file, in the format of files or of streams, or the files of a folder by Hugging Face Datasets."""
    arrow = require_extra("pyarrow", "reading Arrow files")
    if path.is_dir():
        return arrow.concat_tables([read_arrow(part) for part in _folder_parts(path)])
    with parsing(path, "Arrow"), arrow.memory_map(str(path)) as source:
        try:
            return arrow.ipc.open_file(source).read_all()
        except arrow.ArrowInvalid:
            source.seek(0)
            return arrow.ipc.open_stream(source).read_all()


def _folder_parts(path: Path) -> list[Path]:
    """Return the files of a data set that Hugging Face Datasets has saved, in order."""
    if (path / "dataset_dict.json").is_file():
        splits = json.loads((path / "dataset_dict.json").read_text(encoding="utf-8")).get("splits", [])
        advice = f"name the folder of one, such as {path / splits[0]}" if splits else "save it again"
        raise TableError(f"holds several data sets ({format_names(splits)}); {advice}", path=path)
    if not (path / "state.json").is_file():
        problem = (
            "is a folder, not a file; of folders, those by save_to_disk of Hugging Face Datasets are read"
        )
        raise TableError(problem, path=path)
    with parsing(path / "state.json", "JSON"):
        state = json.loads((path / "state.json").read_text(encoding="utf-8"))
        return [path / Path(part["filename"]).name for part in state["_data_files"]]


def is_list_type(kind: Any) -> bool:
    """Whether values of an Arrow type are lists."""
    types = require_extra("pyarrow.types", "reading Parquet files")
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def class_names(schema: Any) -> dict[str, list[str]]:
    """Return the names of classes that Hugging Face Datasets stores beside columns of their numbers."""
    try:
        stored = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        features = {**stored.get("info", {}).get("features", {})}
    except (ValueError, AttributeError, TypeError):
        return {}
    found = {}
    for name, feature in features.items():
        # A list of classes is written as a list with the class or as an object, depending on the version.
        feature = feature[0] if isinstance(feature, list) and feature else feature
        feature = feature.get("feature", feature) if isinstance(feature, dict) else feature
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel":
            found[name] = list(map(str, feature["names"]))
    return found


def _name_classes(value: Any, names: Sequence[str]) -> list[str]:
    numbers = value if isinstance(value, list) else [value]
    # A negative number stands for an unknown class.
    return [names[number] for number in numbers if number is not None and number >= 0]


def write_parquet(path: Path, columns: dict[str, Any]) -> None:
    """Write columns of equal length to a new Parquet file with checksums in its pages."""
    arrow = require_extra("pyarrow", "writing Parquet files")
    parquet = require_extra("pyarrow.parquet", "writing Parquet files")
    table = arrow.table({name: arrow.array(values) for name, values in columns.items()})
    parquet.write_table(table, path, write_page_checksum=True)
