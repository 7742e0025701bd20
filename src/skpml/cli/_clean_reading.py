"""What ``skpml clean`` reads: its options about columns, the table, and what a person is told before the work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skpml.cli._console import format_count
from skpml.cli._reading import DIALECT_OPTIONS, delimiter_of

if TYPE_CHECKING:
    from skpml.cleaning import LabelledTable

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


def read_for_cleaning(
    source: Path, reading: dict[str, Any], update: Callable[..., None], seed: int
) -> LabelledTable:
    """The table with all that is learnt from and shown."""
    from skpml.cleaning import read_table

    return read_table(source, random_state=seed, progress=update, **_arguments(reading))


def read_for_decisions(source: Path, reading: dict[str, Any], update: Callable[..., None]) -> LabelledTable:
    """The table with its labels and the names of its rows; nothing is learnt, so nothing else is read."""
    from skpml.cleaning import read_table

    arguments = _arguments(reading)
    arguments.pop("embeddings", None)
    others = [*arguments.pop("features", []), *(arguments.pop(role, None) for role in ("text", "image"))]
    # They are not read, but tell the delimiter as they did when the file was cleaned.
    ignore = [*arguments.pop("ignore", []), *(name for name in others if name is not None)]
    return read_table(source, features=[], ignore=ignore, progress=update, **arguments)


def _arguments(reading: dict[str, Any]) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value for name, value in given(reading).items()
    }
    if "delimiter" in arguments:
        arguments["delimiter"] = delimiter_of(arguments["delimiter"])
    return arguments


def label_columns(table: LabelledTable) -> str:
    from skpml.datasets._validation import listed
    from skpml.tables._label_columns import Tags, columns_of

    if table.labels is None:
        return "the labels of the data set"
    if isinstance(table.labels, Tags):
        return f"column {table.labels.column!r}"
    columns = columns_of(table.labels)
    return f"{format_count(len(columns), 'column')}: {listed(columns)}"


def learnt_from(table: LabelledTable, embeddings: str | None) -> str:
    from skpml.datasets._validation import listed

    if table.feature_kind == "columns":
        if table.dataset is not None:
            return f"its {format_count(len(table.feature_names), 'feature')}"
        return f"{format_count(len(table.feature_names), 'column')}: {listed(table.feature_names)}"
    source = f"the texts of {table.text_name!r}" if table.feature_kind == "text" else str(embeddings)
    if not table.unused:
        return source
    return f"{source}, not from {format_count(len(table.unused), 'other column')}: {listed(table.unused)}"
