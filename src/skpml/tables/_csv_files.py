"""CSV files: numeric feature columns beside label columns. Needs nothing beyond the standard library."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skpml._validation import EmptyPolicy
from skpml._writing import replacing
from skpml.datasets._errors import DatasetFormatError
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
    flag,
    label_vocabulary,
    split_tags,
    table_columns,
    tag_matrix,
)


def read_csv(
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
    delimiter: str = ",",
    quote: str = '"',
    encoding: str = "utf-8-sig",
    empty_rows: EmptyPolicy = "error",
    empty_labels: EmptyPolicy = "error",
) -> PartialDataset:
    """Read a ``.csv`` file with a header line.

    Parameters
    ----------
    path : path-like
        File to read.
    candidates : str or sequence of str, optional
        One name: the column that lists the candidates of a row, as in ``beach;sea``. A list: the columns
        that hold 0 and 1, one a label. By default the columns that begin with `candidate_prefix`, else a
        column ``candidates``.
    truth : str or sequence of str, optional
        The same for true labels, with `truth_prefix` and ``truth``. A list goes in the order of
        `candidates`. Where there are only true labels, they are the candidates too.
    candidate_prefix, truth_prefix : str
        What the names of 0/1 columns begin with; the rest is the label's name.
    separator : str, default=";"
        What stands between tags.
    label_names : sequence of str, optional
        Labels and their order for tags; by default all tags that occur, sorted.
    features : sequence of str, optional
        Columns that are features, in this order; any others are passed over. By default all columns that are
        not labels and not ignored, and they must be numbers.
    ignore : sequence of str, default=()
        Columns that are neither labels nor features.
    delimiter : str, default=","
        What stands between columns.
    quote : str, default='"'
        What stands around cells that hold the delimiter; empty where quotes are plain text.
    encoding : str, default="utf-8-sig"
        Encoding of the text (a byte order mark is skipped).
    empty_rows, empty_labels : {"error", "warn", "ignore"}, default="error"
        See `PartialDataset`.
    """
    path = Path(path)
    header, rows, lines = _read_rows(path, delimiter, quote, encoding)
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
    position = {name: column for column, name in enumerate(header)}
    tags = {
        part.column: [split_tags(row[position[part.column]], separator) for row in rows]
        for part in (layout.candidates, layout.truth)
        if isinstance(part, Tags)
    }
    names = label_vocabulary(layout, label_names, tags.values())

    def matrix(part: Tags | Flags | None) -> Any:
        if isinstance(part, Tags):
            return tag_matrix(path, tags[part.column], names, lines)
        return None if part is None else _flag_matrix(path, rows, part, position, lines)

    def advice(column: str) -> str:
        listed = {tag for row in rows for tag in split_tags(row[position[column]], separator)}
        truth_like = layout.truth is None and listed and listed <= set(names)
        first = f'if it lists true labels, pass truth="{column}"; ' if truth_like else ""
        return f"{first}if the column is no feature, pass ignore=[{column!r}]"

    found = {"candidates": matrix(layout.candidates), "truth": matrix(layout.truth)}
    check_truth(path, layout, **found, names=names, lines=lines, separator=separator)
    return build_dataset(
        path,
        X=_feature_matrix(path, rows, layout.features, position, lines, advice),
        **found,
        label_names=names,
        feature_names=layout.features or None,
        empty_rows=empty_rows,
        empty_labels=empty_labels,
    )


def parser_options(delimiter: str, quote: str) -> dict[str, Any]:
    """Arguments of `csv.reader`; an empty `quote` says that quotes are plain text."""
    quoting = {"quotechar": quote} if quote else {"quoting": csv.QUOTE_NONE}
    return {"delimiter": delimiter, "strict": True, **quoting}


def _read_rows(
    path: Path, delimiter: str, quote: str, encoding: str
) -> tuple[list[str], list[list[str]], list[int]]:
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        with parsing(path, "CSV"), path.open(encoding=encoding, newline="") as file:
            reader = csv.reader(file, **parser_options(delimiter, quote))
            header = next(reader, [])
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    raise DatasetFormatError(
                        path, f"{len(row)} values for {len(header)} columns", line=reader.line_num
                    )
                rows.append(row)
                lines.append(reader.line_num)
    except DatasetFormatError as exc:
        if isinstance(exc.__cause__, UnicodeDecodeError):
            raise DatasetFormatError(
                path, f'not {encoding} text; if it is sound, pass its encoding, as in encoding="latin-1"'
            ) from exc.__cause__
        if isinstance(exc.__cause__, csv.Error):
            raise DatasetFormatError(path, str(exc.__cause__), line=reader.line_num) from exc.__cause__
        raise
    if not header:
        raise DatasetFormatError(path, "is empty; a header line with the names of the columns is needed")
    if not rows:
        raise DatasetFormatError(path, "has a header but no rows")
    return header, rows, lines


def _feature_matrix(
    path: Path,
    rows: list[list[str]],
    names: tuple[str, ...],
    position: dict[str, int],
    lines: list[int],
    advice: Callable[[str], str],
) -> Any:
    if not names:
        return None
    columns = [position[name] for name in names]
    X = np.empty((len(rows), len(columns)))
    for index, row in enumerate(rows):
        cells = [row[column] for column in columns]
        try:
            X[index] = [float(cell) for cell in cells]
            bad = [j for j, cell in enumerate(cells) if "_" in cell] or np.flatnonzero(~np.isfinite(X[index]))
        except ValueError:
            bad = [j for j, cell in enumerate(cells) if not _is_number(cell)]
        if len(bad):
            name, cell = names[bad[0]], cells[bad[0]]
            raise DatasetFormatError(
                path,
                f"column {name!r} holds {cell!r}, which is not a finite number; {advice(name)}",
                line=lines[index],
            )
    return X


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _flag_matrix(
    path: Path, rows: list[list[str]], part: Flags, position: dict[str, int], lines: list[int]
) -> Any:
    columns = [position[name] for name in part.columns]
    matrix = np.empty((len(rows), len(columns)), dtype=np.uint8)
    for index, row in enumerate(rows):
        try:
            matrix[index] = [flag(row[column]) for column in columns]
        except KeyError:
            for name, column in zip(part.columns, columns, strict=True):
                try:
                    flag(row[column])
                except KeyError:
                    raise DatasetFormatError(
                        path, f"label column {name!r} holds {row[column]!r}, not 0 or 1", line=lines[index]
                    ) from None
    return matrix


def write_csv(
    dataset: PartialDataset,
    path: str | Path,
    *,
    style: TableStyle = "flags",
    separator: str = ";",
    overwrite: bool = False,
) -> None:
    """Write a ``.csv`` file: feature columns, then candidates, then the truth where it is known.

    Parameters
    ----------
    dataset : PartialDataset
        What to write. Sparse features are written in full.
    path : path-like
        File to write.
    style : {"flags", "tags"}, default="flags"
        ``flags`` writes a 0/1 column a label, ``candidate:NAME`` and ``truth:NAME``; ``tags`` the columns
        ``candidates`` and ``truth`` that list labels. Tags lose labels nobody has and the order of labels.
    separator : str, default=";"
        What stands between tags.
    overwrite : bool, default=False
        Replace a file that exists.
    """
    path = Path(path)
    columns = table_columns(dataset, style, separator)
    cells = [[*map(repr, c.astype(float).tolist())] if _is_feature(c) else list(c) for c in columns.values()]
    with (
        replacing(path, overwrite=overwrite) as (temporary,),
        temporary.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*cells, strict=True))


def _is_feature(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype.kind == "f"
