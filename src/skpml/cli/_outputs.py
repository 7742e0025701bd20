"""What is written: checked before the work begins, whole or not at all."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

force_option = click.option("--force", is_flag=True, help="Replace output files that exist.")


def check_outputs(*paths: Path, force: bool, inputs: Iterable[str | Path | None] = ()) -> None:
    """Refuse, before any work, what could not be written after it, and what would replace an input, by any name."""
    for place, path in enumerate(paths):
        if any(_is_same(path, other) for other in paths[:place]):
            raise click.UsageError(f"{path} is named as two outputs")
    for path in paths:
        if any(_is_same(path, Path(source)) for source in inputs if source is not None):
            raise click.ClickException(
                f"{path} is read by this command, so it cannot be written too; name another file"
            )
        if path.is_dir():
            raise click.ClickException(f"{path} is a folder; name a file to write")
        if not path.parent.is_dir():
            raise click.ClickException(f"{path} cannot be written: there is no folder {path.parent}")
        if path.exists() and not force:
            raise click.ClickException(f"{path} exists already; --force replaces it")


def _is_same(path: Path, other: Path) -> bool:
    if path.resolve() == other.resolve():
        return True
    # Hard links, and file systems that do not care for case.
    return path.exists() and other.exists() and path.samefile(other)


@contextmanager
def whole(*paths: Path) -> Iterator[list[Path]]:
    """Temporary paths to write to; they become the outputs together, or nothing is left."""
    from skpml._writing import replacing

    with replacing(*paths, overwrite=True) as temporary:
        yield temporary


def write_table(path: Path, header: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    """Write a CSV file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
