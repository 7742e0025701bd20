"""Tables with labels: which columns hold candidates, truth and features, and how labels are written in them.

Labels stand either in one column a label, holding 0 and 1 (flags), or in one column that lists them, as in
``"beach;sea"`` (tags).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from skpml.datasets._errors import DatasetFormatError
from skpml.datasets._partial_dataset import PartialDataset
from skpml.datasets._validation import LabelMatrix, default_feature_names, listed, repeated

CANDIDATE_PREFIX, TRUTH_PREFIX = "candidate:", "truth:"
CANDIDATE_COLUMN, TRUTH_COLUMN = "candidates", "truth"
LabelSource = str | Sequence[str] | None
TableStyle = Literal["flags", "tags"]
_FLAGS = {"0": 0, "0.0": 0, "-1": 0, "-1.0": 0, "false": 0, "no": 0, "1": 1, "1.0": 1, "true": 1, "yes": 1}


@dataclass(frozen=True)
class Tags:
    """One column that lists labels."""

    column: str


@dataclass(frozen=True)
class Flags:
    """One column a label."""

    columns: tuple[str, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Layout:
    """What each column of a table is."""

    candidates: Tags | Flags | None
    truth: Tags | Flags | None
    features: tuple[str, ...]


def find_layout(
    path: Path,
    header: Sequence[str],
    *,
    candidates: LabelSource,
    truth: LabelSource,
    candidate_prefix: str,
    truth_prefix: str,
    features: Sequence[str] | None,
    ignore: Sequence[str],
) -> Layout:
    """Tell from the header, and from what the caller says, which columns are labels and which features."""
    check_distinct(path, header)
    if unknown := [name for name in ignore if name not in header]:
        raise DatasetFormatError(path, f"has no column {listed(unknown)} to ignore")
    found_candidates = _find(path, header, candidates, candidate_prefix, CANDIDATE_COLUMN)
    found_truth = _find(path, header, truth, truth_prefix, TRUTH_COLUMN)
    if found_candidates is None and found_truth is None:
        raise DatasetFormatError(
            path,
            'no labels found: pass candidates="COLUMN" for a column of tags such as "a;b", candidates=[…] '
            f"for columns of 0 and 1, or candidate_prefix=… (its columns are {listed(header)})",
        )
    if isinstance(found_candidates, Flags) and isinstance(found_truth, Flags):
        found_truth = _aligned(
            path, found_candidates, found_truth, by_position=not isinstance(truth, str | None)
        )
    taken = set(ignore).union(*(columns_of(part) for part in (found_candidates, found_truth)))
    if features is not None:
        check_columns(path, header, features)
        if both := [name for name in features if name in taken]:
            raise DatasetFormatError(path, f"columns cannot be features and something else: {listed(both)}")
        return Layout(found_candidates, found_truth, tuple(features))
    return Layout(found_candidates, found_truth, tuple(name for name in header if name not in taken))


def check_distinct(path: Path, header: Sequence[str]) -> None:
    """Raise if two columns of a table have the same name."""
    if twice := repeated(header):
        raise DatasetFormatError(
            path, f"columns must have different names, found twice: {listed(twice)}", line=1
        )


def check_columns(path: Path, header: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise unless a table has all the columns that are wanted."""
    if missing := [name for name in wanted if name not in set(header)]:
        raise DatasetFormatError(
            path, f"lacks {len(missing)} of the {len(wanted)} columns that are needed: {listed(missing)}"
        )


def _find(
    path: Path, header: Sequence[str], given: LabelSource, prefix: str, usual: str
) -> Tags | Flags | None:
    if given is not None:
        wanted = (given,) if isinstance(given, str) else tuple(given)
        if missing := [name for name in wanted if name not in header]:
            raise DatasetFormatError(
                path, f"has no column {listed(missing)} (its columns are {listed(header)})"
            )
        if not wanted:
            raise ValueError("an empty list names no label column")
        return Tags(given) if isinstance(given, str) else Flags(wanted, wanted)
    flags = tuple(name for name in header if name.startswith(prefix))
    if flags:
        return Flags(flags, tuple(name.removeprefix(prefix) for name in flags))
    return Tags(usual) if usual in header else None


def _aligned(path: Path, candidates: Flags, truth: Flags, *, by_position: bool) -> Flags:
    if by_position and len(truth.names) == len(candidates.names):
        return Flags(truth.columns, candidates.names)
    if set(truth.names) != set(candidates.names):
        odd = sorted(set(truth.names) ^ set(candidates.names))
        raise DatasetFormatError(
            path, f"truth and candidates need the same labels; only one has {listed(odd)}"
        )
    column = dict(zip(truth.names, truth.columns, strict=True))
    return Flags(tuple(column[name] for name in candidates.names), candidates.names)


def columns_of(part: Tags | Flags | None) -> tuple[str, ...]:
    """The columns that labels stand in."""
    if part is None:
        return ()
    return (part.column,) if isinstance(part, Tags) else part.columns


def split_tags(text: str, separator: str) -> list[str]:
    """Return the tags of a cell, without blanks around them and without empty ones."""
    return [tag for part in text.split(separator) if (tag := part.strip())]


def flag(text: str) -> int:
    """Return 0 or 1 for a cell of a label column; KeyError for anything else."""
    return _FLAGS[text.strip().lower()]


def label_vocabulary(
    layout: Layout, label_names: Sequence[str] | None, tag_lists: Iterable[list[list[str]]]
) -> tuple[str, ...]:
    """Return the labels: as given, as the flag columns name them, or all tags that occur, sorted."""
    if label_names is not None:
        return tuple(label_names)
    for part in (layout.candidates, layout.truth):
        if isinstance(part, Flags):
            return part.names
    return tuple(sorted({tag for lists in tag_lists for tags in lists for tag in tags}))


def tag_matrix(
    path: Path, rows: list[list[str]], names: tuple[str, ...], lines: Sequence[int] | None
) -> LabelMatrix:
    """Return the 0/1 matrix of rows of tags."""
    position = {name: column for column, name in enumerate(names)}
    matrix = np.zeros((len(rows), len(names)), dtype=np.uint8)
    for row, tags in enumerate(rows):
        for tag in tags:
            if tag not in position:
                raise DatasetFormatError(
                    path,
                    f"row {row}: tag {tag!r} is not among the labels ({listed(names)})",
                    line=None if lines is None else lines[row],
                )
            matrix[row, position[tag]] = 1
    return matrix


def check_truth(
    path: Path,
    layout: Layout,
    candidates: Any,
    truth: Any,
    names: tuple[str, ...],
    *,
    lines: Sequence[int] | None,
    separator: str,
) -> None:
    """Raise unless every true label of a table is a candidate; names the columns, and the line where there are any."""
    if layout.candidates is None or layout.truth is None:
        return
    missing = truth > candidates
    if not missing.any():
        return
    row, label = np.argwhere(missing)[0]
    held, lacking = (
        part.column if isinstance(part, Tags) else part.columns[label]
        for part in (layout.truth, layout.candidates)
    )
    count, hint = int(missing.sum()), ""
    if isinstance(layout.truth, Tags):
        hint = _separator_hint(names[label], separator, bool((truth & candidates).any()))
    place = f"row {row}: " if lines is None else ""
    raise DatasetFormatError(
        path,
        f"{place}every true label must be a candidate: {names[label]!r} stands in column {held!r} but not in {lacking!r} "
        f"({count} such {'label' if count == 1 else 'labels'} in the file){hint}",
        line=None if lines is None else lines[row],
    )


def _separator_hint(tag: str, separator: str, some_match: bool) -> str:
    other = next((mark for mark in ",;|/\t" if mark != separator and mark in tag), None)
    if other is not None:
        return f"; if {other!r} stands between tags, pass separator={other!r}"
    return (
        ""
        if some_match
        else f"; no tag of the one column stands in the other: is the separator {separator!r} right?"
    )


def table_columns(dataset: PartialDataset, style: TableStyle, separator: str) -> dict[str, Any]:
    """Return the columns of a data set for writing: features, then candidates, then truth.

    Candidates are left out where they equal the truth. Raises ValueError where names clash or a label holds
    the separator.
    """
    n_features = 0 if dataset.X is None else dataset.X.shape[1]
    feature_names = dataset.feature_names or default_feature_names(n_features)
    matrices = {}
    if dataset.truth is None or not np.array_equal(dataset.candidates, dataset.truth):
        matrices[CANDIDATE_COLUMN, CANDIDATE_PREFIX] = dataset.candidates
    if dataset.truth is not None:
        matrices[TRUTH_COLUMN, TRUTH_PREFIX] = dataset.truth
    names = list(feature_names)
    label_columns: dict[str, Any] = {}
    for (column, prefix), matrix in matrices.items():
        if style == "flags":
            label_columns |= {prefix + label: matrix[:, j] for j, label in enumerate(dataset.label_names)}
        elif style == "tags":
            label_columns[column] = _tag_cells(matrix, dataset.label_names, separator)
        else:
            raise ValueError(f'style must be "flags" or "tags", got {style!r}')
    if twice := repeated(names + list(label_columns)):
        raise ValueError(f"columns need different names, found twice: {listed(twice)}")
    reserved = (CANDIDATE_PREFIX, TRUTH_PREFIX)
    if odd := [
        name for name in names if name.startswith(reserved) or name in (CANDIDATE_COLUMN, TRUTH_COLUMN)
    ]:
        raise ValueError(f"features cannot be told from labels by their names: {listed(odd)}")
    dense = None if dataset.X is None else _dense(dataset.X)
    features = {} if dense is None else {name: dense[:, j] for j, name in enumerate(names)}
    return features | label_columns


def _dense(X: Any) -> Any:
    return X.toarray() if hasattr(X, "toarray") else X


def _tag_cells(matrix: LabelMatrix, names: tuple[str, ...], separator: str) -> list[str]:
    if bad := [name for name in names if separator in name or name != name.strip() or not name]:
        raise ValueError(
            f"labels that are empty, hold {separator!r} or begin or end with blanks cannot be tags: "
            f'{listed(bad)}; use style="flags" or another separator'
        )
    return [separator.join(names[column] for column in np.flatnonzero(row)) for row in matrix]
