"""Parquet files: the same columns as CSV, typed and checked by the format itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skpml._validation import EmptyPolicy
from skpml._writing import replacing
from skpml.datasets._errors import DatasetFormatError, require_extra
from skpml.datasets._formats.files import build_dataset, parsing
from skpml.datasets._partial_dataset import PartialDataset
from skpml.tables._label_columns import (
    CANDIDATE_PREFIX,
    TRUTH_PREFIX,
    Flags,
    LabelSource,
    TableStyle,
    Tags,
    check_truth,
    find_layout,
    label_vocabulary,
    split_tags,
    table_columns,
    tag_matrix,
)


def read_parquet(
    path: str | Path,
    *,
    candidates: LabelSource = None,
    truth: LabelSource = None,
    candidate_prefix: str = CANDIDATE_PREFIX,
    truth_prefix: str = TRUTH_PREFIX,
    separator: str = ";",
    label_names: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    empty_rows: EmptyPolicy = "error",
    empty_labels: EmptyPolicy = "error",
) -> PartialDataset:
    """Read a ``.parquet`` file; the options are those of `read_csv`.

    A column of tags may hold text or lists of text.
    """
    path = Path(path)
    table, header = _read_table(path)
    layout = find_layout(
        path,
        header,
        candidates=candidates,
        truth=truth,
        candidate_prefix=candidate_prefix,
        truth_prefix=truth_prefix,
        features=features,
        ignore=ignore,
    )
    tags = {
        part.column: _tag_lists(path, table, part.column, separator)
        for part in (layout.candidates, layout.truth)
        if isinstance(part, Tags)
    }
    names = label_vocabulary(layout, label_names, tags.values())

    def matrix(part: Tags | Flags | None) -> Any:
        if isinstance(part, Tags):
            return tag_matrix(path, tags[part.column], names, None)
        return None if part is None else _flag_matrix(path, table, part)

    found = {"candidates": matrix(layout.candidates), "truth": matrix(layout.truth)}
    check_truth(path, layout, **found, names=names, lines=None, separator=separator)
    return build_dataset(
        path,
        X=_feature_matrix(path, table, layout.features),
        **found,
        label_names=names,
        feature_names=layout.features or None,
        empty_rows=empty_rows,
        empty_labels=empty_labels,
    )


def _read_table(path: Path) -> tuple[Any, list[str]]:
    parquet = require_extra("pyarrow.parquet", "reading Parquet files")
    with parsing(path, "Parquet"):
        table = parquet.read_table(path, page_checksum_verification=True)
        return table, table.column_names


def _no_nulls(path: Path, table: Any, name: str) -> Any:
    column = table.column(name)
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise DatasetFormatError(
            path, f"column {name!r} has no value in row {row}; fill it in or drop the row"
        )
    return column


def _tag_lists(path: Path, table: Any, name: str, separator: str) -> list[list[str]]:
    cells = _no_nulls(path, table, name).to_pylist()
    if not all(isinstance(cell, str | list) for cell in cells):
        raise DatasetFormatError(
            path, f"column {name!r} must hold text such as 'a{separator}b', or lists of text"
        )
    return [
        split_tags(cell, separator) if isinstance(cell, str) else [str(tag) for tag in cell] for cell in cells
    ]


def _numeric_column(path: Path, table: Any, name: str, hint: str) -> Any:
    column = _no_nulls(path, table, name)
    with parsing(path, "Parquet"):
        values = column.to_numpy()
    if values.dtype.kind not in "buif":
        raise DatasetFormatError(path, f"column {name!r} holds {column.type} values, not numbers; {hint}")
    return values


def _feature_matrix(path: Path, table: Any, names: tuple[str, ...]) -> Any:
    if not names:
        return None
    return np.column_stack(
        [_numeric_column(path, table, n, f"if it is no feature, pass ignore=[{n!r}]") for n in names]
    )


def _flag_matrix(path: Path, table: Any, part: Flags) -> Any:
    columns = []
    for name in part.columns:
        values = _numeric_column(path, table, name, "a label column holds 0 and 1")
        values = np.where(values == -1, 0, values) if values.dtype.kind in "if" else values
        wrong = np.flatnonzero((values != 0) & (values != 1))
        if wrong.size:
            raise DatasetFormatError(
                path, f"label column {name!r} holds {values[wrong[0]]} in row {wrong[0]}, not 0 or 1"
            )
        columns.append(values.astype(np.uint8))
    return np.column_stack(columns)


def write_parquet(
    dataset: PartialDataset,
    path: str | Path,
    *,
    style: TableStyle = "flags",
    separator: str = ";",
    overwrite: bool = False,
) -> None:
    """Write a ``.parquet`` file with checksums in its pages; columns and options are those of `write_csv`."""
    path = Path(path)
    arrow = require_extra("pyarrow", "writing Parquet files")
    parquet = require_extra("pyarrow.parquet", "writing Parquet files")
    columns = table_columns(dataset, style, separator)
    table = arrow.table({name: arrow.array(values) for name, values in columns.items()})
    with replacing(path, overwrite=overwrite) as (temporary,):
        parquet.write_table(table, temporary, write_page_checksum=True)
