"""What was read: a few lines before the work of a command, and ``skpml data profile``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from skpml.cli import _console as ui

if TYPE_CHECKING:
    from skpml.tables import Profile, Table

_MOST_LABELS, _BAR = 30, 30


def show_labels(table: Table) -> None:
    """Print the most frequent labels, and what may be wrong with labels and rows."""
    from skpml.tables import format_names, profile_table

    found = profile_table(table)
    listed = format_names([f"{name} {count:,}" for name, count in found.label_counts.items()])
    ui.say(f"Labels by number of rows: {listed}.")
    for note in describe_oddities(found):
        ui.say(f"Note: {note}.")


def describe_oddities(found: Profile) -> Iterator[str]:
    """Yield a sentence about each thing that may be wrong with labels and rows, and what to do."""
    from skpml.likelihood import ENOUGH_CANDIDATES
    from skpml.tables import format_names

    if rare := found.rare_labels(ENOUGH_CANDIDATES):
        labels = "1 label is" if len(rare) == 1 else f"{len(rare):,} labels are"
        few = f"{labels} in fewer than {ENOUGH_CANDIDATES} rows, too few for automatic drops"
        yield f"{few}: {format_names(rare)}"
    if found.twins:
        listed = format_names([" / ".join(group) for group in found.twins])
        yield f"labels differ in case or in blanks only: {listed}; --merge-case merges them"
    if found.n_untagged:
        yield "rows without tags count as having none of the labels; if they are not tagged yet, pass --skip-untagged"
    if found.n_repeated:
        rows = "1 row repeats" if found.n_repeated == 1 else f"{found.n_repeated:,} rows repeat"
        yield f"{rows} the features and the tags of an earlier row"


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
    for note in describe_oddities(found):
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
