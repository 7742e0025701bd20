"""What all commands share: printing, progress, tables, and output files."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from skpml.cli._wording import in_options

if TYPE_CHECKING:
    from skpml.tables import Dialect

Update = Callable[[int, int | None, str], None]

# Without a terminal there is no width to respect, so tables are as wide as they need to be.
_PIPE_WIDTH = 200

output_path = click.Path(path_type=Path)
force_option = click.option("--force", is_flag=True, help="Replace output files that exist.")
seed_option = click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True,
                           help="Seed of the random number generator.")  # fmt: skip


# Printing: results go to stdout, everything else to stderr.


def stdout_console() -> Console:
    """Return the console for results."""
    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)


def stderr_console() -> Console:
    """Return the console for progress, warnings and errors."""
    return Console(stderr=True, highlight=False)


def say(message: str) -> None:
    """Print one line of results, neither wrapped nor colored."""
    stdout_console().print(Text(_printable(message)), soft_wrap=True)


def show_error(message: str) -> None:
    """Print one red line on stderr."""
    stderr_console().print(Text(_printable(f"error: {message}"), style="bold red"), soft_wrap=True)


def show_warning(message: str) -> None:
    """Print one yellow line on stderr."""
    stderr_console().print(Text(_printable(f"warning: {message}"), style="yellow"), soft_wrap=True)


def _printable(message: str) -> str:
    """Replace the bytes of a file name that are not text: a terminal cannot print them."""
    return message.encode("utf-8", "replace").decode()


def format_error(error: BaseException) -> str:
    """Return the message of an error in one line, worded for the command line."""
    if isinstance(error, OSError) and error.strerror:
        message = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    else:
        message = str(error)
    message = " ".join(message.split()) or type(error).__name__
    # In a suite file, arguments are keys and not options.
    return message if getattr(error, "about_a_suite", False) else in_options(message)


def format_count(count: int, noun: str) -> str:
    """Return a number with its noun, as in "1 tag" and "1,529 tags"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def make_table(*columns: str, right: Iterable[str] = ()) -> Table:
    """Return an empty table; without column titles it has two columns, names and values."""
    table = Table(box=None, pad_edge=False, show_header=bool(columns))
    for title in columns:
        table.add_column(title, justify="right" if title in right else "left")
    if not columns:
        table.add_column(style="dim")
        table.add_column()
    return table


def show_table(table: Table) -> None:
    """Print a table; in a pipe, without trailing blanks."""
    console = stdout_console()
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        say(line.rstrip())


def show_dialect(path: Path, dialect: Dialect | None) -> None:
    """Print how a text file was read if its format is unusual, since detection may be wrong."""
    if dialect is not None and not dialect.is_default:
        say(f"Read {path} as {dialect}.")


def show_notes(notes: Iterable[str]) -> None:
    """Print the remarks of a reader about a file, one per line."""
    for note in notes:
        say(f"Note: {in_options(note)}.")


@contextmanager
def progress_bar(what: str) -> Iterator[Update]:
    """Show a progress bar on stderr if it is a terminal; yield ``update(done, total, what)``."""
    console = stderr_console()
    if not console.is_terminal:
        # A disabled bar of older versions of rich prints an empty line.
        yield lambda done, total, what: None
        return
    columns: tuple[Any, ...] = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=None)

        def update(done: int, total: int | None, what: str) -> None:
            progress.update(task, completed=done, total=total, description=what)

        yield update


# Output files: checked before the work begins, written completely or not at all.


def check_outputs(*paths: Path, force: bool, inputs: Iterable[str | Path | None] = ()) -> None:
    """Refuse, before any work, outputs that cannot be written or that would replace an input."""
    for place, path in enumerate(paths):
        if any(_is_same_file(path, other) for other in paths[:place]):
            raise click.UsageError(f"{path} is named as two outputs")
    for path in paths:
        if any(_is_same_file(path, Path(source)) for source in inputs if source is not None):
            raise click.ClickException(
                f"{path} is read by this command and cannot be replaced; name another file"
            )
        if path.is_dir():
            raise click.ClickException(f"{path} is a folder; name a file to write")
        if not path.parent.is_dir():
            raise click.ClickException(f"{path} cannot be written: there is no folder {path.parent}")
        if path.exists() and not force:
            raise click.ClickException(f"{path} exists already; --force replaces it")


def _is_same_file(path: Path, other: Path) -> bool:
    if path.resolve() == other.resolve():
        return True
    # Hard links, and file systems that ignore case.
    return path.exists() and other.exists() and path.samefile(other)


@contextmanager
def atomic_outputs(*paths: Path) -> Iterator[list[Path]]:
    """Yield temporary paths; on success they become the outputs together, on error nothing is left."""
    from skpml._writing import replacing

    with replacing(*paths, overwrite=True) as temporary:
        yield temporary


def write_csv_rows(path: Path, header: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
