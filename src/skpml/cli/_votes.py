"""Votes of several annotators for ``skpml clean``: a long table of row, annotator and label beside the table of rows."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from skpml.cli import _console as ui

if TYPE_CHECKING:
    from skpml.tables import Table

_TAGS, _SEPARATOR = "tags", ";"
# Larger arrays of rows, annotators and labels are not built: votes are counted instead.
_MOST_CELLS = 1 << 26


@dataclass(frozen=True)
class Voted:
    """A table whose tags are the labels with votes, and the votes as arguments of the audit."""

    table: Table
    arguments: dict[str, Any]
    describe: str
    notes: tuple[str, ...]
    annotators: tuple[str, ...] | None = None
    """Their names, if the votes are not counted."""


@contextmanager
def read_voted(
    source: Path, reading: dict[str, Any], path: Path, columns: Sequence[str] | None, **options: Any
) -> Iterator[Voted]:
    """Read the rows of a table and the votes about them.

    The table is that of a copy of the source whose column of tags lists the labels with votes. The copy exists as long as
    the context does, so that whatever reads or copies the table works with votes too.
    """
    from skpml.tables import TableError, detect_dialect, read_table, write_tags

    _check_options(source, reading, path)
    arguments = ui.table_arguments(reading)
    wanted, separator = arguments["columns"], arguments.get("separator", _SEPARATOR)
    dialect = detect_dialect(source, arguments["dialect"], columns=wanted.named, numbers=wanted.features,
                             not_numbers=wanted.not_numbers)  # fmt: skip
    ids = _read_ids(source, dialect, wanted.id)
    votes = _read_votes(path, _Names.find(columns, wanted.id), ids, source, separator)
    tags = wanted.tags or _TAGS
    given: dict[int, list[str]] = {}
    for row, _, label in votes:
        if label:
            given.setdefault(row, []).append(label)
    cells = [separator.join(sorted(set(given.get(row, ())))) for row in range(len(ids))]
    with TemporaryDirectory() as folder:
        copy = Path(folder) / source.name
        try:
            write_tags(source, dialect, tags, cells, copy)
            arguments |= {"columns": replace(wanted, tags=tags), "dialect": dialect, "separator": separator}
            table = read_table(copy, **arguments, **options)
        except TableError as error:
            error.path = source if error.path == copy else error.path
            raise
        yield _as_arguments(table, _merge_spellings(votes, table), path)


def _check_options(source: Path, reading: dict[str, Any], path: Path) -> None:
    from skpml.tables import TEXT_SUFFIXES

    if source.suffix.lower() not in TEXT_SUFFIXES:
        raise click.UsageError(f"--votes is for text tables such as .csv, which {source} is not")
    for name in ("labels", "true_tags", "true_labels", "skip_untagged"):
        if reading[name]:
            option = ui.TABLE_OPTIONS[name][0]
            raise click.UsageError(
                f"--votes and {option} exclude each other: the votes say which labels rows have"
            )
    if source.exists() and source.samefile(path):
        raise click.ClickException(
            f"{source} is the table of votes itself: DATA needs one line per row, with the features, and --votes one "
            "line per vote"
        )


@dataclass(frozen=True)
class _Names:
    """Names of the columns of a table of votes; the first that the table has is meant."""

    row: tuple[str, ...]
    annotator: str = "annotator"
    label: str = "label"

    @classmethod
    def find(cls, given: Sequence[str] | None, id_column: str | None) -> _Names:
        if given:
            return cls((given[0],), given[1], given[2])
        return cls(("row",) if id_column is None else tuple(dict.fromkeys((id_column, "id"))))


def _read_ids(source: Path, dialect: Any, column: str | None) -> list[str]:
    """Return the names of the rows of a table: its id column, or their numbers."""
    from skpml.tables import TableError, format_names, read_records

    records = (record for record in read_records(source, dialect) if record.cells)
    header = next(records).cells
    if column is not None and column not in header:
        raise TableError(
            f"has no column {column!r} (its columns are {format_names(header)})", path=source, column=column
        )
    place = None if column is None else header.index(column)
    return [str(row) if place is None else record.cells[place] for row, record in enumerate(records)]


def _read_votes(
    path: Path, names: _Names, ids: Sequence[str], source: Path, separator: str
) -> list[tuple[int, str, str]]:
    """Return the row, the annotator and the label of each vote; an empty label says that nothing was given."""
    from skpml.tables import Dialect, TableError, detect_dialect, format_names, quote_text, read_records

    def refuse(problem: str, line: int | None = None) -> None:
        raise TableError(problem, path=path, line=line)

    expected = (*names.row, names.annotator, names.label)
    dialect = detect_dialect(path, Dialect(), columns=expected, not_numbers=expected)
    records = (record for record in read_records(path, dialect) if record.cells)
    first = next(records)
    header = first.cells
    row_name = next((name for name in names.row if name in header), names.row[0])
    wanted = (row_name, names.annotator, names.label)
    if missing := [name for name in wanted if name not in header]:
        refuse(
            f"has no column {format_names(list(map(repr, missing)))} (its columns are {format_names(header)}); name "
            "those of row, annotator and label by --vote-columns ROW ANNOTATOR LABEL",
            first.line,
        )
    places = [header.index(name) for name in wanted]
    row_of = {name: row for row, name in enumerate(ids)}
    seen: dict[tuple[int, str], dict[str, int]] = {}
    votes: list[tuple[int, str, str]] = []
    for record in records:
        name, annotator, label = (record.cells[place].strip() for place in places)
        if name not in row_of:
            near = difflib.get_close_matches(name, row_of, n=1) if name else []
            hint = f"; did you mean {near[0]!r}?" if near else ""
            if row_name == "row" and not hint:
                hint = f": its rows are 0 to {len(ids) - 1}; --id COLUMN matches by names"
            refuse(f"there is no row {quote_text(name)} in {source.name}{hint}", record.line)
        if not annotator:
            refuse(f"column {names.annotator!r} is empty: every vote needs an annotator", record.line)
        if separator in label:
            refuse(f"the label {quote_text(label)} holds {separator!r}, which separates tags; give another --separator",
                   record.line)  # fmt: skip
        row = row_of[name]
        earlier = seen.setdefault((row, annotator), {})
        if label in earlier:
            refuse(
                f"repeats line {earlier[label]}: the same vote of {annotator!r} about row {name!r}",
                record.line,
            )
        if earlier and ("" in earlier or not label):
            refuse(f"contradicts line {next(iter(earlier.values()))}: an empty label says that {annotator!r} gave row "
                   f"{name!r} no label", record.line)  # fmt: skip
        earlier[label] = record.line
        votes.append((row, annotator, label))
    if not votes:
        refuse("has a header but no votes")
    if not any(label for _, _, label in votes):
        refuse(f"column {names.label!r} holds no label in any line")
    if unseen := sorted(set(range(len(ids))).difference(row for row, _ in seen)):
        number = "1 row" if len(unseen) == 1 else f"{len(unseen):,} rows"
        refuse(
            f"has no vote about {number} of {source.name}: {format_names([repr(ids[row]) for row in unseen])}; nothing "
            "is known about rows that nobody saw, so remove them, or add a line with an empty label if somebody saw them"
        )
    return votes


def _merge_spellings(votes: list[tuple[int, str, str]], table: Table) -> list[tuple[int, str, str]]:
    """Return the votes for the labels of the table, if it merges tags that differ in case only."""
    from skpml.tables import fold_tag

    if not table.merge_case:
        return votes
    name = {fold_tag(label): label for label in table.label_names}
    return sorted({(row, annotator, name.get(fold_tag(label), label)) for row, annotator, label in votes})


def _as_arguments(table: Table, votes: Sequence[tuple[int, str, str]], path: Path) -> Voted:
    from skpml.likelihood import count_votes

    annotators = sorted({annotator for _, annotator, _ in votes})
    size = (len(table.ids), len(annotators), len(table.label_names))
    describe = f"Tags from {ui.format_count(len(votes), 'vote')} of {ui.format_count(size[1], 'annotator')} in {path}"
    if np.prod(size, dtype=float) > _MOST_CELLS:
        counts, seen = np.zeros((size[0], size[2])), [set[str]() for _ in range(size[0])]
        column = {name: place for place, name in enumerate(table.label_names)}
        for row, annotator, label in votes:
            seen[row].add(annotator)
            if label:
                counts[row, column[label]] += 1
        note = "so many annotators are not told apart: their votes are counted"
        return Voted(
            table, {"votes": counts, "n_annotators": [len(each) for each in seen]}, describe, (note,)
        )
    found = count_votes(
        *zip(*votes, strict=True),
        row_names=range(size[0]),
        annotator_names=annotators,
        label_names=table.label_names,
    )
    return Voted(table, {"votes": found.votes}, describe, (), tuple(annotators))
