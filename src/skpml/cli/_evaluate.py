"""``skpml evaluate``: a model against true labels."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import click
import numpy as np

from skpml.cli._base import Command
from skpml.cli._console import progress_bar, say, show_table
from skpml.cli._features import read_labelled_rows_for
from skpml.cli._reading import Reading, row_reading_options
from skpml.cli._wording import counted


@click.command(cls=Command)
@click.argument("model_file", metavar="MODEL", type=click.Path(path_type=Path))
@click.argument("source", metavar="DATA")
@click.option(
    "--convention", type=click.Choice(["pml", "sklearn"]), default="pml", show_default=True,
    help="How the ranking metrics treat ties and rows without labels.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
@row_reading_options
def evaluate(*, model_file: Path, source: str, convention: str, as_json: bool, reading: Reading) -> None:
    """Measure a model against the true labels of DATA.

    Use rows that the model was not fitted on: on its own training rows every model looks better than it is.

    \b
    Examples:
      skpml evaluate photos.skpml checked.csv --true-tags tags
      skpml evaluate photos.skpml checked.csv --true-tags tags --convention sklearn --json
    """
    from skpml import metrics
    from skpml.io import load_model, read_model_info

    with progress_bar(f"opening {model_file}") as update:
        info, model = read_model_info(model_file), load_model(model_file)
        update(0, None, f"reading {source}")
        X, dataset = read_labelled_rows_for(source, reading, model, info)
        if dataset.truth is None:
            raise click.ClickException(
                f"{source} has no true labels to compare with; --true-tags or --true-label names their columns"
            )
        truth = _in_model_order(source, dataset.truth, dataset.label_names, info.label_names)
        update(0, None, "predicting")
        decisions = model.predict(X)
        if decisions.ndim == 1:
            raise click.ClickException(
                f"{model_file} was fitted to one class a row; there is no label set to measure"
            )
        found = metrics.evaluate(truth, model.decision_function(X), decisions, convention=convention)  # type: ignore[arg-type]
    if as_json:
        _print_json(found, convention, info.model, truth.shape[0])
    else:
        _print_table(
            found, f"{info.model} on {counted(truth.shape[0], 'row')} of {source} ({convention} convention)"
        )


def _in_model_order(source: str, truth: Any, names: tuple[str, ...], wanted: tuple[str, ...]) -> Any:
    """Columns as the model has them; a label that does not occur in the data is true of no row."""
    position = {name: column for column, name in enumerate(wanted)}
    if unknown := [name for name in names if name not in position]:
        # A model fitted to a bare matrix names its labels by position.
        if wanted == tuple(map(str, range(len(names)))):
            return truth
        listed = ", ".join(map(repr, unknown[:5]))
        raise click.ClickException(f"{source} has labels the model was not fitted on: {listed}")
    ordered = np.zeros((truth.shape[0], len(wanted)), truth.dtype)
    ordered[:, [position[name] for name in names]] = truth
    return ordered


def _print_json(found: dict[str, float], convention: str, model: str, n_rows: int) -> None:
    values = {name: value if math.isfinite(value) else None for name, value in found.items()}
    click.echo(
        json.dumps({"model": model, "rows": n_rows, "convention": convention, "metrics": values}, indent=2)
    )


def _print_table(found: dict[str, float], title: str) -> None:
    from rich.table import Table

    from skpml.metrics import METRICS

    table = Table(box=None, pad_edge=False)
    table.add_column("metric")
    table.add_column("value", justify="right")
    table.add_column("better", style="dim")
    for name, value in found.items():
        direction = "higher" if METRICS[name].greater_is_better else "lower"
        table.add_row(METRICS[name].title, f"{value:.4f}", direction)
    say(title)
    show_table(table)
