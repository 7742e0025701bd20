"""The columns of a Parquet file as arrays, read in batches of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from skpml.datasets._errors import DatasetFormatError, require_extra
from skpml.datasets._formats.files import parsing
from skpml.datasets._validation import LabelMatrix
from skpml.tables._collecting import Content, IdCollector, TagCollector
from skpml.tables._label_columns import Flags, Tags
from skpml.tables._records import Progress
from skpml.tables._roles import ColumnChoice, Roles, find_roles

_BATCH = 8192


def open_parquet(path: Path) -> Any:
    """A Parquet file whose checksums are looked at as it is read."""
    parquet = require_extra("pyarrow.parquet", "reading Parquet files")
    with parsing(path, "Parquet"):
        return parquet.ParquetFile(path, page_checksum_verification=True)


def read_parquet_table(
    path: Path, choice: ColumnChoice, separator: str | None, progress: Progress | None
) -> tuple[Roles, Content]:
    """Read the columns that are asked for, and tell what each one is."""
    if path.stat().st_size == 0:
        raise DatasetFormatError(path, "is empty, so it is no Parquet file; copy it again")
    file = open_parquet(path)
    roles = find_roles(path, file.schema_arrow.names, choice)
    total = file.metadata.num_rows
    if not total:
        raise DatasetFormatError(path, "has columns but no rows")
    collected = _Collected(path, roles, separator, total)
    with parsing(path, "Parquet"):
        for batch in file.iter_batches(batch_size=_BATCH, columns=list(roles.columns)):
            collected.add(batch)
            if progress is not None:
                progress(collected.n_rows, total, f"reading {path.name}")
    return roles, collected.content()


class _Collected:
    def __init__(self, path: Path, roles: Roles, separator: str | None, total: int) -> None:
        self.path, self.roles, self.n_rows = path, roles, 0
        self._numbers = np.empty((total, len(roles.features)))
        n_flags = len(roles.labels.columns) if isinstance(roles.labels, Flags) else 0
        self._flags = np.empty((total, n_flags), dtype=np.uint8)
        self._shown: dict[str, list[str]] = {
            role: [] for role in ("text", "image") if getattr(roles, role) is not None
        }
        labelled = roles.labels is not None
        self._ids = None if roles.id is None else IdCollector(path, roles.id, "row", distinct=labelled)
        self._tags = (
            TagCollector(path, roles.labels.column, separator) if isinstance(roles.labels, Tags) else None
        )

    def add(self, batch: Any) -> None:
        rows = slice(self.n_rows, self.n_rows + batch.num_rows)
        if self.roles.features:
            self._numbers[rows] = self._matrix(batch, self.roles.features, "feature")
        if isinstance(self.roles.labels, Flags):
            self._flags[rows] = self._flag_matrix(batch, self.roles.labels)
        elif self._tags is not None:
            self._add_tags(batch)
        for role, values in self._shown.items():
            values.extend(_as_text(value) for value in batch.column(getattr(self.roles, role)).to_pylist())
        if self._ids is not None:
            for row, name in enumerate(batch.column(self._ids.column).to_pylist(), start=self.n_rows):
                self._ids.add(_as_text(name), row)
        self.n_rows += batch.num_rows

    def _matrix(self, batch: Any, names: tuple[str, ...], kind: str) -> Any:
        return np.column_stack([self._numeric(batch, name, kind) for name in names])

    def _numeric(self, batch: Any, name: str, kind: str) -> Any:
        column = batch.column(name)
        missing = column.is_null().to_numpy(zero_copy_only=False)
        values = column.to_numpy(zero_copy_only=False)
        if values.dtype.kind not in "buif" and not missing.all():
            raise DatasetFormatError(
                self.path,
                f"column {name!r} holds {column.type} values, not numbers; {self._advice(name, kind)}",
            )
        bad = missing if values.dtype.kind not in "f" else missing | ~np.isfinite(values)
        if bad.any():
            row = int(np.argmax(bad))
            problem = "no value" if missing[row] else f"{values[row]}, which is not a finite number,"
            raise DatasetFormatError(
                self.path,
                f"column {name!r} has {problem} in row {self.n_rows + row}; fill it in or drop the row",
            )
        return values

    def _advice(self, name: str, kind: str) -> str:
        if kind == "label":
            return "a label column holds 0 and 1"
        return (
            "the model needs numbers there"
            if self.roles.labels is None
            else f"if it is no feature, pass ignore=[{name!r}]"
        )

    def _flag_matrix(self, batch: Any, labels: Flags) -> Any:
        values = self._matrix(batch, labels.columns, "label")
        values = np.where(values == -1, 0, values) if values.dtype.kind in "if" else values
        wrong = (values != 0) & (values != 1)
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise DatasetFormatError(
                self.path,
                f"label column {labels.columns[column]!r} holds {values[row, column]} in row "
                f"{self.n_rows + row}, not 0 or 1",
            )
        return values.astype(np.uint8)

    def _add_tags(self, batch: Any) -> None:
        assert self._tags is not None
        for cell in batch.column(self._tags.column).to_pylist():
            if cell is None or isinstance(cell, str):
                self._tags.add_text(cell or "")
            elif isinstance(cell, list):
                self._tags.add(list_tags(cell))
            else:
                raise DatasetFormatError(
                    self.path,
                    f"column {self._tags.column!r} must hold text such as 'a{self._tags.separator}b', or lists "
                    "of text",
                )

    def content(self) -> Content:
        candidates, names, notes = self._labels()
        shown = {role: tuple(values) for role, values in self._shown.items()}
        return Content(
            numbers=self._numbers if self.roles.features else None,
            candidates=candidates,
            label_names=names,
            ids=None if self._ids is None else self._ids.names(),
            texts=shown.get("text"),
            images=shown.get("image"),
            notes=notes,
        )

    def _labels(self) -> tuple[LabelMatrix | None, tuple[str, ...], list[str]]:
        if self._tags is not None:
            return *self._tags.matrix(), self._tags.notes()
        if isinstance(self.roles.labels, Flags):
            return self._flags, self.roles.labels.names, []
        return None, (), []


def list_tags(cell: list[Any]) -> list[str]:
    """The tags of a list, without blanks around them and without empty ones."""
    return [tag for value in cell if value is not None and (tag := str(value).strip())]


def _as_text(value: Any) -> str:
    return "" if value is None else str(value)
