"""``skpml data``: list data sets, describe one, convert files, write an example."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skpml.cli import _console as ui
from skpml.cli._profile import profile

if TYPE_CHECKING:
    from skpml.datasets import PartialDataset

_SHOWN_LABELS = 30


@click.group()
def data() -> None:
    """List data sets, describe one, show what a file holds, convert files, write an example.

    \b
    Examples:
      skpml data list
      skpml data info digits
      skpml data info photos.csv --tags tags
      skpml data profile photos.csv --id file
      skpml data import emotions.arff --xml emotions.xml -o emotions.npz
      skpml data example digits
    """


@data.command("list")
def list_command() -> None:
    """List the data sets that have a name, whether or not their files are present."""
    from skpml.datasets import data_home, list_datasets

    numbers = ("rows", "features", "labels", "true labels per row")
    table = ui.make_table("name", *numbers, "candidates", "present", right=numbers)
    kinds = {True: "real", False: "added", None: "?"}
    for entry in list_datasets():
        counts = (entry.n_rows, entry.n_features, entry.n_labels, entry.cardinality)
        present, style = ("yes", None) if entry.present else ("no", "dim")
        cells = map(_format_number, counts)
        table.add_row(entry.name, *cells, kinds[entry.real_candidates], present, style=style)
    ui.show_table(table)
    ui.say(f"\nFiles NAME.npz in {data_home()} can be used by name; SKPML_DATA sets another folder.")


def _format_number(value: float | None) -> str:
    if value is None:
        return "?"
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


@data.command()
@click.argument("source", metavar="NAME_OR_FILE")
@ui.source_options
def info(*, source: str, reading: dict[str, Any]) -> None:
    """Describe a data set.

    \b
    Examples:
      skpml data info digits --candidates 5
      skpml data info photos.csv --tags tags --ignore file
    """
    with ui.progress_bar(f"reading {source}") as update:
        dataset = _read_dataset(source, reading, update)
    table = ui.make_table()
    for title, value in _facts(dataset).items():
        table.add_row(title, value)
    ui.show_table(table)


def _read_dataset(source: str, reading: dict[str, Any], update: ui.Update) -> PartialDataset:
    """Read a file or load a data set; files that are not tables may lack features."""
    from skpml.datasets import to_dataset

    if not ui.is_table(source) and reading["embeddings"] is None:
        reading = {**reading, "features": reading["features"] or []}
    table = ui.read_source(source, reading, truth=True, progress=update)
    ui.show_reading(table)
    return table.dataset or to_dataset(table, on_empty="ignore")


def _facts(dataset: PartialDataset) -> dict[str, str]:
    figures = dataset.statistics()
    n_features, more = figures.n_features, len(dataset.label_names) - _SHOWN_LABELS
    labels = ", ".join(dataset.label_names[:_SHOWN_LABELS]) + (f" and {more} more" if more > 0 else "")
    facts: dict[str, Any] = {
        "name": dataset.name,
        "rows": f"{figures.n_rows:,}",
        "features": "none" if n_features is None else f"{n_features:,}" + " (sparse)" * figures.sparse,
        "labels": f"{figures.n_labels:,}: {labels}",
        "candidates per row": f"{figures.candidates_per_row:.2f}",
    }
    if figures.rows_without_candidates:
        facts["rows without candidates"] = f"{figures.rows_without_candidates:,}"
    if dataset.truth is None:
        facts["true labels"] = "unknown"
    else:
        facts["true labels per row"] = f"{figures.cardinality:.2f}"
        facts["false candidates"] = f"{figures.noise_rate:.1%}"
        facts["distinct true label sets"] = f"{figures.diversity:,}"
        if figures.labels_without_true_row:
            facts["labels true for no row"] = f"{figures.labels_without_true_row:,}"
    if dataset.description:
        facts["description"] = dataset.description
    return facts


data.add_command(profile)


@data.command("import")
@click.argument("source", metavar="SOURCE")
@ui.output_option("TARGET", "File to write; its suffix is the format: .npz, .mat, .arff, .csv, .parquet.",
                  "-o", "--output", "target")  # fmt: skip
@click.option("--style", metavar="STYLE", help="flags or tags for CSV and Parquet, mulan or meka for ARFF.")
@ui.force_option
@ui.source_options
def import_command(
    *, source: str, target: Path, style: str | None, force: bool, reading: dict[str, Any]
) -> None:
    """Convert a data set to another format.

    \b
    Examples:
      skpml data import emotions.arff --xml emotions.xml -o emotions.npz
      skpml data import photos.csv --tags tags -o photos.parquet --style tags
    """
    from skpml.datasets import WRITERS, write_dataset

    ui.check_outputs(target, force=force, inputs=[source, reading["xml"], reading["embeddings"]])
    suffix = target.suffix.lower()
    if suffix not in WRITERS:
        raise click.UsageError(f"{target}: unknown suffix {suffix!r}; known suffixes: {', '.join(WRITERS)}")
    if style is not None and "style" not in inspect.signature(WRITERS[suffix]).parameters:
        raise click.UsageError(f"--style does not apply to {suffix} files")
    with ui.progress_bar(f"reading {source}") as update:
        dataset = _read_dataset(source, reading, update)
        update(0, None, f"writing {target}")
        write_dataset(dataset, target, overwrite=force, **({} if style is None else {"style": style}))
    n_rows, n_labels = dataset.candidates.shape
    ui.say(f"Wrote {target}: {ui.format_count(n_rows, 'row')}, {ui.format_count(n_labels, 'label')}.")


@data.command()
@click.argument("folder", metavar="FOLDER", type=ui.path_type)
@click.option("--force", is_flag=True, help="Replace the files of an earlier example.")
def example(*, folder: Path, force: bool) -> None:
    """Write doubtful tags to try 'skpml clean' on: a table, its images, and a list of the wrong tags.

    The data are handwritten digits included in scikit-learn; nothing is downloaded. FOLDER gets digits.csv, the folder
    images, and planted.csv, which lists the wrong tags in the format of exported decisions.

    \b
    Example:
      skpml data example digits
    """
    from skpml.datasets import write_example

    dataset = write_example(folder, overwrite=force)
    n_rows, n_tags = len(dataset.candidates), dataset.candidates.sum()
    n_wrong = (dataset.candidates != dataset.truth).sum()
    ui.say(f"Wrote {folder / 'digits.csv'}: {n_rows:,} pictures with {n_tags:,} tags.")
    ui.say(f"Wrote {folder / 'planted.csv'}: the {n_wrong:,} tags that are wrong.")
