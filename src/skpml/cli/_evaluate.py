"""``skpml evaluate``: measure a model against true labels."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import click
import numpy as np

from skpml.cli import _console as ui
from skpml.cli._predict import read_model_rows


@click.command()
@click.argument("model_file", metavar="MODEL", type=ui.path_type)
@click.argument("source", metavar="DATA")
@click.option("--convention", type=click.Choice(["pml", "sklearn"]), default="pml", show_default=True,
              help="How ranking metrics treat rows with no true label or with all labels true.")  # fmt: skip
@ui.json_option
@ui.source_options
def evaluate(
    *, model_file: Path, source: str, convention: str, as_json: bool, reading: dict[str, Any]
) -> None:
    """Measure a model against the true labels of DATA.

    Use rows that the model was not fitted to: scores on training rows are too optimistic.

    \b
    Examples:
      skpml evaluate photos.skpml checked.csv --true-tags tags
      skpml evaluate photos.skpml checked.csv --true-tags tags --convention sklearn --json
    """
    from skpml import metrics
    from skpml.io import load_model, read_model_info

    with ui.progress_bar(f"opening {model_file}") as update:
        info, model = read_model_info(model_file), load_model(model_file)
        update(0, None, f"reading {source}")
        table = read_model_rows(source, reading, model, info, labelled=True, progress=update)
        if table.truth is None:
            raise click.ClickException(
                f"{source} has no true labels to compare with; --true-tags or --true-label names their columns"
            )
        truth = _in_model_order(source, table.truth, table.label_names, info.label_names)
        update(0, None, "predicting")
        decisions = model.predict(table.X)
        if decisions.ndim == 1:
            raise click.ClickException(f"{model_file} predicts one class per row, not a set of labels")
        found = metrics.evaluate(truth, model.decision_function(table.X), decisions, convention=convention)  # type: ignore[arg-type]
    if as_json:
        values = {name: value if math.isfinite(value) else None for name, value in found.items()}
        facts = {"model": info.model, "rows": truth.shape[0], "convention": convention, "metrics": values}
        ui.say(json.dumps(facts, indent=2))
        return
    ui.show_reading(table)
    listing = ui.make_table("metric", "value", "better", right=["value"])
    for name, value in found.items():
        direction = "higher" if metrics.METRICS[name].greater_is_better else "lower"
        listing.add_row(metrics.METRICS[name].title, f"{value:.4f}", direction)
    ui.say(f"{info.model} on {ui.format_count(truth.shape[0], 'row')} of {source} ({convention} convention)")
    ui.show_table(listing)


def _in_model_order(source: str, truth: Any, names: tuple[str, ...], wanted: tuple[str, ...]) -> Any:
    """Return columns in the order of the model; a label that does not occur in the data is true for no row."""
    position = {name: column for column, name in enumerate(wanted)}
    if unknown := [name for name in names if name not in position]:
        # A model fitted to a bare matrix names its labels by position.
        if wanted == tuple(map(str, range(len(names)))):
            return truth
        listed = ", ".join(map(repr, unknown[:5]))
        raise click.ClickException(f"{source} has labels that the model was not fitted to: {listed}")
    ordered = np.zeros((truth.shape[0], len(wanted)), truth.dtype)
    ordered[:, [position[name] for name in names]] = truth
    return ordered
