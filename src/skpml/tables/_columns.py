"""The columns of a table that are asked for, whatever kind of table it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skpml.tables._collecting import Content
from skpml.tables._csv_tables import read_csv_table
from skpml.tables._dialect import Dialect, detect_dialect
from skpml.tables._label_columns import CANDIDATE_COLUMN, TRUTH_COLUMN
from skpml.tables._parquet_tables import read_parquet_table
from skpml.tables._records import Progress
from skpml.tables._roles import TAG_COLUMN, ColumnChoice, Roles

TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
PARQUET_SUFFIX = ".parquet"
TABLE_SUFFIXES = (*TEXT_SUFFIXES, PARQUET_SUFFIX)


def read_columns(
    path: Path,
    choice: ColumnChoice,
    *,
    separator: str | None,
    written: dict[str, str | None],
    progress: Progress | None,
) -> tuple[Roles, Content, Dialect | None]:
    """Read a table by its suffix; a CSV file as `written` says, and as the file tells where that holds None."""
    suffix = path.suffix.lower()
    if suffix == PARQUET_SUFFIX:
        refuse_given(suffix, written)
        return *read_parquet_table(path, choice, separator, progress), None
    dialect = detect_dialect(
        path,
        **written,
        columns=choice.named,
        numbers=choice.features,
        not_numbers=(*choice.not_numbers, TAG_COLUMN, CANDIDATE_COLUMN, TRUTH_COLUMN),
    )
    return *read_csv_table(path, dialect, choice, separator, progress), dialect


def refuse_given(suffix: str, arguments: dict[str, Any]) -> None:
    """Raise if any of the arguments, which do not apply to such a file, is given."""
    for name, value in arguments.items():
        if value is not None:
            raise ValueError(f"{name} does not apply to {suffix} files")
