"""What people see: results on stdout, everything else on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from skpml.cli._wording import in_options

if TYPE_CHECKING:
    from skpml.cleaning import Dialect

# Where there is no terminal there is no width to respect; tables then are as wide as they need to be.
_PIPE_WIDTH = 200


def results() -> Console:
    """The console for what was asked for."""
    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)


def notes() -> Console:
    """The console for progress, warnings and errors."""
    return Console(stderr=True, highlight=False)


def say(message: str) -> None:
    """One line of result, never wrapped or coloured by what happens to stand in it."""
    results().print(Text(_printable(message)), soft_wrap=True)


def _printable(message: str) -> str:
    """A message without the bytes of a file name that are no text: a terminal cannot be given them."""
    return message.encode("utf-8", "replace").decode()


def tell_dialect(path: Path, dialect: Dialect | None) -> None:
    """Say how a file was read where it is not written as most are: it was detected, and may be wrong."""
    from skpml.cleaning import Dialect

    if dialect not in (None, Dialect()):
        say(f"Read {path} as {dialect}.")


def tell_notes(notes: Iterable[str]) -> None:
    """Say what the library has remarked about a file, a line each."""
    for note in notes:
        say(f"Note: {in_options(note)}.")


def show_table(table: Table) -> None:
    """A table; in a pipe without the blanks that fill up its lines."""
    console = results()
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        say(line.rstrip())


def show_error(message: str) -> None:
    """One red line on stderr."""
    notes().print(Text(_printable(f"error: {message}"), style="bold red"), soft_wrap=True)


def show_warning(message: str) -> None:
    """One yellow line on stderr."""
    notes().print(Text(_printable(f"warning: {message}"), style="yellow"), soft_wrap=True)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int | None, str], None]]:
    """A bar on stderr while there is a terminal to show it; gives ``update(done, total, what)``."""
    columns: tuple[Any, ...] = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
    )
    console = notes()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=None)

        def update(done: int, total: int | None, what: str) -> None:
            progress.update(task, completed=done, total=total, description=what)

        yield update
