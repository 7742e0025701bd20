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
    from skpml.tables import Columns, Dialect, Rows, Table

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
    from skpml.tables import TableError, read_table, write_tags

    _check_options(source, reading, path)
    arguments = ui.table_arguments(reading)
    wanted, separator = arguments["columns"], arguments.get("separator", _SEPARATOR)
    sheet, dialect = arguments.get("sheet"), _find_dialect(source, arguments["dialect"], wanted)
    ids = _read_ids(source, dialect, sheet, wanted.id)
    votes = _read_votes(path, _Names.find(columns, wanted.id), ids, source, separator)
    tags = wanted.tags or _TAGS
    given: dict[int, list[str]] = {}
    for row, _, label in votes:
        if label:
            given.setdefault(row, []).append(label)
    cells = [separator.join(sorted(set(given.get(row, ())))) for row in range(len(ids))]
    with TemporaryDirectory() as folder:
        copy = Path(folder) / (f"{source.name}.arrow" if source.is_dir() else source.name)
        try:
            write_tags(source, tags, cells, copy, dialect=dialect, sheet=sheet)
            arguments |= {
                "columns": replace(wanted, tags=tags),
                "separator": separator,
                "folder": source.parent,
            }
            table = read_table(copy, **{**arguments, "dialect": dialect}, **options)
        except TableError as error:
            error.path = source if error.path == copy else error.path
            raise
        yield _as_arguments(table, _merge_spellings(votes, table), path)


def _check_options(source: Path, reading: dict[str, Any], path: Path) -> None:
    if not ui.is_table(source) and not source.is_dir():
        raise click.UsageError(f"--votes is for tables such as .csv, which {source} is not")
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


def _find_dialect(path: Path, given: Dialect, columns: Columns) -> Dialect | None:
    """Return how a text table is written; None for other tables."""
    from skpml.tables import TEXT_SUFFIXES, detect_dialect

    if path.is_dir() or path.suffix.lower() not in TEXT_SUFFIXES:
        return None
    numbers, not_numbers = columns.features, columns.not_numbers
    return detect_dialect(path, given, columns=columns.named, numbers=numbers, not_numbers=not_numbers)


def _read_ids(source: Path, dialect: Dialect | None, sheet: str | None, column: str | None) -> list[str]:
    """Return the names of the rows of a table: its id column, or their numbers."""
    from skpml.tables import TableError, format_names, open_rows

    rows = open_rows(source, dialect=dialect, sheet=sheet)
    if column is None:
        return [str(row) for row in range(sum(batch.n_rows for batch in rows.batches(rows.header[:1])))]
    if column not in rows.header:
        problem = f"has no column {column!r} (its columns are {format_names(rows.header)})"
        raise TableError(problem, path=source, column=column)
    return [name for batch in rows.batches([column]) for name in batch.texts(column)]


def _list_votes(
    path: Path, rows: Rows, names: Sequence[str]
) -> Iterator[tuple[dict[str, int], str, str, str]]:
    """Yield where each vote is, and its row, its annotator and its label; a list of labels is as many votes."""
    from skpml.tables import BadCell, TableError

    done = 0
    for batch in rows.batches(names):
        try:
            texts = (*(batch.texts(name) for name in names[:2]), batch.tags(names[2]))
        except BadCell as bad:
            problem = f"column {bad.column!r} holds {bad.value!r}, expected {bad.expected}"
            raise TableError(problem, path=path, row=done + bad.row, column=bad.column) from None
        for number, (name, annotator, labels) in enumerate(zip(*texts, strict=True)):
            place = {"line": batch.lines[number]} if batch.lines else {"row": done + number}
            for label in [labels] if isinstance(labels, str) else labels or [""]:
                yield place, name.strip(), annotator.strip(), str(label).strip()
        done += batch.n_rows


def _read_votes(
    path: Path, names: _Names, ids: Sequence[str], source: Path, separator: str
) -> list[tuple[int, str, str]]:
    """Return the row, the annotator and the label of each vote; an empty label says that nothing was given."""
    from skpml.tables import Columns, Dialect, TableError, format_names, open_rows, quote_text

    def refuse(problem: str, place: dict[str, Any] | None = None) -> None:
        raise TableError(problem, path=path, **(place or {}))

    def format_place(place: dict[str, int]) -> str:
        return " ".join(f"{what} {number}" for what, number in place.items())

    dialect = _find_dialect(path, Dialect(), Columns(ignore=(*names.row, names.annotator, names.label)))
    rows = open_rows(path, dialect=dialect, sheet=None)
    header = rows.header
    row_name = next((name for name in names.row if name in header), names.row[0])
    wanted = (row_name, names.annotator, names.label)
    if missing := [name for name in wanted if name not in header]:
        refuse(
            f"has no column {format_names(list(map(repr, missing)))} (its columns are {format_names(header)}); name "
            "those of row, annotator and label by --vote-columns ROW ANNOTATOR LABEL",
            {"line": 1},
        )
    row_of = {name: row for row, name in enumerate(ids)}
    seen: dict[tuple[int, str], dict[str, str]] = {}
    votes: list[tuple[int, str, str]] = []
    for place, name, annotator, label in _list_votes(path, rows, wanted):
        if name not in row_of:
            near = difflib.get_close_matches(name, row_of, n=1) if name else []
            hint = f"; did you mean {near[0]!r}?" if near else ""
            if row_name == "row" and not hint:
                hint = f": its rows are 0 to {len(ids) - 1}; --id COLUMN matches by names"
            refuse(f"there is no row {quote_text(name)} in {source.name}{hint}", place)
        if not annotator:
            refuse(f"column {names.annotator!r} is empty: every vote needs an annotator", place)
        if separator in label:
            refuse(f"the label {quote_text(label)} holds {separator!r}, which separates tags; give another --separator",
                   place)  # fmt: skip
        row = row_of[name]
        earlier = seen.setdefault((row, annotator), {})
        if label in earlier:
            refuse(
                f"repeats {earlier[label]}: the same vote of {annotator!r} about row {name!r}",
                place,
            )
        if earlier and ("" in earlier or not label):
            refuse(f"contradicts {next(iter(earlier.values()))}: an empty label says that {annotator!r} gave row "
                   f"{name!r} no label", place)  # fmt: skip
        earlier[label] = format_place(place)
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
