"""``skpml predict``: labels and probabilities for new rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

from skpml.cli.base import Command
from skpml.cli.console import progress_bar, say
from skpml.cli.features import read_rows
from skpml.cli.outputs import check_outputs, force_option, whole, write_table
from skpml.cli.reading import Reading, reading_options


@click.command(cls=Command)
@click.argument("model_file", metavar="MODEL", type=click.Path(path_type=Path))
@click.argument("source", metavar="DATA")
@click.option(
    "-o", "--output", "target", metavar="OUT.csv", required=True, type=click.Path(path_type=Path),
    help="CSV file to write: the row, its labels, a probability a label.",
)  # fmt: skip
@force_option
@reading_options
def predict(*, model_file: Path, source: str, target: Path, force: bool, reading: Reading) -> None:
    """Predict the labels of new rows.

    DATA is a file or the name of a data set. A CSV or Parquet file needs the columns the model was fitted on, in any
    order; it may have others, and needs no labels. Each line of OUT.csv holds the row (counted from 0), the predicted
    labels ("beach;sea") and a column "probability:LABEL" for each label. These are scores mapped to 0…1, above ½ where
    the label is predicted; they are not calibrated.

    \b
    Example:
      skpml predict photos.skpml new.csv -o tags.csv
    """
    from skpml.io import load_model, read_model_info

    check_outputs(target, force=force)
    with progress_bar(f"opening {model_file}") as update:
        info, model = read_model_info(model_file), load_model(model_file)
        separator = reading.separator or ";"
        if bad := [name for name in info.label_names if separator in name]:
            raise click.ClickException(
                f"the label {bad[0]!r} holds {separator!r}, which stands between labels; --separator takes another"
            )
        update(0, None, f"reading {source}")
        X = read_rows(source, reading, model, info)
        update(0, None, "predicting")
        rows = _lines(model.predict(X), model.predict_proba(X), info.label_names, separator)
        with whole(target) as (temporary,):
            header = ["row", "predicted", *(f"probability:{name}" for name in info.label_names)]
            write_table(temporary, header, rows)
    say(f"Wrote {target}: {X.shape[0]:,} rows.")


def _lines(decisions: Any, probabilities: Any, names: tuple[str, ...], separator: str) -> Iterator[list[Any]]:
    for row, (decision, probability) in enumerate(zip(decisions, probabilities.tolist(), strict=True)):
        # A model fitted to one class a row, in Python, predicts that class.
        chosen = (
            str(decision)
            if decisions.ndim == 1
            else separator.join(names[j] for j in np.flatnonzero(decision))
        )
        yield [row, chosen, *(f"{value:.6g}" for value in probability)]
