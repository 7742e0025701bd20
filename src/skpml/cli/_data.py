"""``skpml data``: what data sets there are, what is in one, and moving it from format to format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skpml.cli._base import Group
from skpml.cli._console import progress_bar, say, show_table
from skpml.cli._outputs import check_outputs, force_option
from skpml.cli._reading import Reading, read, reading_options
from skpml.cli._wording import counted

if TYPE_CHECKING:
    from skpml.datasets import PartialDataset

_SHOWN_LABELS = 30


@click.group(cls=Group)
def data() -> None:
    """List data sets, look into one, convert files, write an example.

    \b
    Examples:
      skpml data list
      skpml data info digits
      skpml data info photos.csv --tags tags
      skpml data import emotions.arff --xml emotions.xml -o emotions.npz
      skpml data example digits
    """


@data.command("list")
def list_command() -> None:
    """List the data sets that can be named, present or not."""
    from rich.table import Table

    from skpml.datasets import data_home, list_datasets

    table = Table(box=None, pad_edge=False)
    table.add_column("name")
    for title in ("rows", "features", "labels", "true labels a row"):
        table.add_column(title, justify="right")
    table.add_column("candidates")
    table.add_column("here")
    kinds = {True: "its own", False: "to be added", None: "?"}
    for entry in list_datasets():
        table.add_row(
            entry.name,
            *(
                _number(value)
                for value in (entry.n_rows, entry.n_features, entry.n_labels, entry.cardinality)
            ),
            kinds[entry.real_candidates],
            "yes" if entry.present else "no",
            style=None if entry.present else "dim",
        )
    show_table(table)
    say(f"\nFiles NAME.npz in {data_home()} are found by their names; SKPML_DATA names another folder.")


def _number(value: float | None) -> str:
    if value is None:
        return "?"
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


@data.command()
@click.argument("source", metavar="NAME_OR_FILE")
@reading_options
def info(*, source: str, reading: Reading) -> None:
    """Say what is in a data set.

    \b
    Examples:
      skpml data info digits --candidates 5
      skpml data info photos.csv --tags tags --ignore file
    """
    from rich.table import Table

    with progress_bar(f"reading {source}"):
        dataset = read(source, reading)
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    for title, value in _facts(dataset).items():
        table.add_row(title, value)
    show_table(table)


def _facts(dataset: PartialDataset) -> dict[str, str]:
    figures = dataset.statistics()
    facts: dict[str, Any] = {
        "name": dataset.name,
        "rows": f"{figures.n_rows:,}",
        "features": "none"
        if figures.n_features is None
        else f"{figures.n_features:,}" + " (sparse)" * figures.sparse,
        "labels": f"{figures.n_labels:,}: {_first(dataset.label_names)}",
        "candidates a row": f"{figures.candidates_per_row:.2f}",
    }
    if figures.rows_without_candidates:
        facts["rows without candidates"] = f"{figures.rows_without_candidates:,}"
    if dataset.truth is None:
        facts["true labels"] = "unknown"
    else:
        facts["true labels a row"] = f"{figures.cardinality:.2f}"
        facts["false candidates"] = f"{figures.noise_rate:.1%}"
        facts["distinct true label sets"] = f"{figures.diversity:,}"
        if figures.labels_without_true_row:
            facts["labels true of no row"] = f"{figures.labels_without_true_row:,}"
    if dataset.description:
        facts["description"] = dataset.description
    return facts


def _first(names: tuple[str, ...]) -> str:
    more = len(names) - _SHOWN_LABELS
    return ", ".join(names[:_SHOWN_LABELS]) + (f" and {more} more" if more > 0 else "")


@data.command("import")
@click.argument("source", metavar="SOURCE")
@click.option(
    "-o", "--output", "target", metavar="TARGET", required=True, type=click.Path(path_type=Path),
    help="File to write; its suffix says how: .npz, .mat, .arff, .csv, .parquet.",
)  # fmt: skip
@click.option("--style", metavar="STYLE", help="flags or tags for CSV and Parquet, mulan or meka for ARFF.")
@force_option
@reading_options
def import_command(*, source: str, target: Path, style: str | None, force: bool, reading: Reading) -> None:
    """Convert a data set to another format, or put it where it is found by name.

    \b
    Examples:
      skpml data import emotions.arff --xml emotions.xml -o emotions.npz
      skpml data import photos.csv --tags tags -o photos.parquet --style tags
    """
    import inspect

    from skpml.datasets import write_dataset
    from skpml.datasets._files import WRITERS

    check_outputs(target, force=force, inputs=[source, reading.xml])
    suffix = target.suffix.lower()
    if suffix not in WRITERS:
        raise click.UsageError(f"{target}: a suffix among {', '.join(WRITERS)} says how to write it")
    if style is not None and "style" not in inspect.signature(WRITERS[suffix]).parameters:
        raise click.UsageError(f"--style does not apply to {suffix} files")
    with progress_bar(f"reading {source}") as update:
        dataset = read(source, reading)
        update(0, None, f"writing {target}")
        write_dataset(dataset, target, overwrite=force, **({} if style is None else {"style": style}))
    n_rows, n_labels = dataset.candidates.shape
    say(f"Wrote {target}: {counted(n_rows, 'row')}, {counted(n_labels, 'label')}.")


@data.command()
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace files of an example that is there already.")
def example(*, folder: Path, force: bool) -> None:
    """Write doubtful tags to try 'skpml clean' on: a table, its images, and which tags are wrong.

    Handwritten digits that come along, so nothing is downloaded. FOLDER gets digits.csv, the folder images, and
    planted.csv, which lists the wrong tags as decisions of the review page are listed.

    \b
    Example:
      skpml data example digits
    """
    from skpml.cleaning import write_example

    dataset = write_example(folder, overwrite=force)
    n_rows, n_tags = len(dataset.candidates), dataset.candidates.sum()
    n_wrong = (dataset.candidates != dataset.truth).sum()
    say(f"Wrote {folder / 'digits.csv'}: {n_rows:,} pictures with {n_tags:,} tags.")
    say(f"Wrote {folder / 'planted.csv'}: the {n_wrong:,} tags that are wrong.")
