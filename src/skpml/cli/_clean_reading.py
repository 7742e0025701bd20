"""What ``skpml clean`` reads: its options about columns, the table, and what a person is told before the work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skpml.cli._console import format_count
from skpml.cli._reading import DIALECT_OPTIONS, delimiter_of

if TYPE_CHECKING:
    from skpml.tables import Table

_OPTIONS = (
    click.option("--tags", metavar="COLUMN", help='Column that lists the tags, as in "lake;sea".  [default: tags]'),
    click.option("--label", "labels", metavar="COLUMN", multiple=True, help="A 0/1 column of one label; repeat it."),
    click.option("--text", metavar="COLUMN",
                 help="Column of texts: shown and, without --feature, learnt from instead of all other columns."),
    click.option("--image", metavar="COLUMN", help="Column of paths of images, to be shown."),
    click.option("--id", metavar="COLUMN", help="Column that names the rows.  [default: their numbers]"),
    click.option("--feature", "features", metavar="COLUMN", multiple=True,
                 help="A numeric column to learn from; repeat it.  [default: all that are nothing else]"),
    click.option("--embeddings", metavar="FILE", help="An .npy or .npz file with a row of numbers for each row."),
    click.option("--separator", metavar="TEXT", help='What stands between tags.  [default: ";"]'),
    click.option("--ignore", metavar="COLUMN", multiple=True, help="A column to pass over; repeat it."),
    *DIALECT_OPTIONS,
)  # fmt: skip


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options about columns and about how a table is written."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def given(reading: dict[str, Any]) -> dict[str, Any]:
    """The options of reading that were given; an empty text is a value too."""
    return {name: value for name, value in reading.items() if value not in (None, ())}


def read_for_cleaning(source: Path, reading: dict[str, Any], update: Callable[..., None], seed: int) -> Table:
    """The table with all that is learnt from and shown."""
    from skpml.datasets import read_as_table

    return read_as_table(source, random_state=seed, progress=update, **_grouped(_arguments(reading)))


def read_for_decisions(source: Path, reading: dict[str, Any], update: Callable[..., None]) -> Table:
    """The table with its labels and the names of its rows; nothing is learnt, so nothing else is read."""
    from skpml.datasets import read_as_table

    arguments = _arguments(reading)
    arguments.pop("embeddings", None)
    others = [*arguments.pop("features", []), *(arguments.pop(role, None) for role in ("text", "image"))]
    # They are not read, but tell the delimiter as they did when the file was cleaned.
    ignore = [*arguments.pop("ignore", []), *(name for name in others if name is not None)]
    arguments = _grouped({"features": [], "ignore": ignore, **arguments})
    return read_as_table(source, progress=update, **arguments)


def _grouped(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments of the reader: names of columns and parts of the dialect together."""
    from skpml.tables import Columns, Dialect

    dialect = {
        name: arguments.pop(name)
        for name in ("encoding", "delimiter", "quote", "decimal")
        if name in arguments
    }
    columns = {
        name: arguments.pop(name)
        for name in ("tags", "labels", "text", "image", "id", "features", "ignore")
        if name in arguments
    }
    return {"columns": Columns(**columns), "dialect": Dialect(**dialect), **arguments}


def _arguments(reading: dict[str, Any]) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value for name, value in given(reading).items()
    }
    if "delimiter" in arguments:
        arguments["delimiter"] = delimiter_of(arguments["delimiter"])
    return arguments


def label_columns(table: Table) -> str:
    from skpml.tables import format_names

    if table.dataset is not None:
        return "the labels of the data set"
    if table.columns.tags is not None:
        return f"column {table.columns.tags!r}"
    columns = table.columns.label_columns
    return f"{format_count(len(columns), 'column')}: {format_names(columns)}"


def learnt_from(table: Table, embeddings: str | None) -> str:
    from skpml.tables import format_names

    if table.feature_kind == "columns":
        if table.dataset is not None:
            return f"its {format_count(len(table.feature_names), 'feature')}"
        return f"{format_count(len(table.feature_names), 'column')}: {format_names(table.feature_names)}"
    source = f"the texts of {table.columns.text!r}" if table.feature_kind == "text" else str(embeddings)
    if not table.unused:
        return source
    return (
        f"{source}, not from {format_count(len(table.unused), 'other column')}: {format_names(table.unused)}"
    )
