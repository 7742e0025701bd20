"""``skpml data profile``: what a file holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from skpml.cli import _console as ui

_MOST_LABELS, _BAR = 30, 30


@click.command()
@click.argument("source", metavar="NAME_OR_FILE")
@ui.source_options
def profile(*, source: str, reading: dict[str, Any]) -> None:
    """Show what a file holds: columns, labels by frequency, tags per row, and what may be wrong.

    \b
    Examples:
      skpml data profile photos.csv --id file
      skpml data profile tasks.json --text text
    """
    from skpml.tables import TableError, format_names, profile_table

    problem = None
    with ui.progress_bar(f"reading {source}") as update:
        options: dict[str, Any] = {"truth": True, "text_components": None, "progress": update}
        try:
            table = ui.read_source(source, reading, **options)
        except TableError as error:
            if reading["features"] or error.column is None or error.expected is None:
                raise
            # The labels can be shown even if the features cannot be read yet.
            only_labels = {**reading, "features": [], "categories": ()}
            table, problem = ui.read_source(source, only_labels, **options), error
    found = profile_table(table)
    ui.show_reading(table)
    for note in ui.describe_oddities(found):
        ui.say(f"Note: {note}.")
    if problem is not None:
        ui.say(f"Note: the features cannot be read yet: {ui.format_error(problem)}.")
    facts = ui.make_table()
    for what, count in (("rows", found.n_rows), ("labels", len(found.label_counts)), ("tags", found.n_tags)):
        facts.add_row(what, f"{count:,}")
    for role, names in found.columns.items():
        facts.add_row(role if role == "ignored" else f"as {role}", format_names(names))
    if found.unused:
        facts.add_row("not used", format_names(list(found.unused)))
    ui.show_table(facts)
    if found.n_missing:
        _show_bars("column", found.n_missing, found.n_rows, count="missing")
    shown = dict(list(found.label_counts.items())[:_MOST_LABELS])
    _show_bars("label", shown, found.n_rows)
    if (more := len(found.label_counts) - len(shown)) > 0:
        ui.say(f"and {ui.format_count(more, 'label')} more")
    _show_bars("tags per row", {str(size): count for size, count in found.tags_per_row.items()}, found.n_rows)


def _show_bars(title: str, counts: Mapping[str, int], n_rows: int, *, count: str = "rows") -> None:
    """Print counts as a table with bars."""
    table = ui.make_table(title, count, "share", "", right=[count, "share"])
    longest = max(counts.values(), default=0) or 1
    for name, number in counts.items():
        bar = "█" * max(round(_BAR * number / longest), min(number, 1))
        table.add_row(name, f"{number:,}", f"{number / n_rows:.0%}", bar)
    ui.say("")
    ui.show_table(table)
