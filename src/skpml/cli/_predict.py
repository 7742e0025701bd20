"""``skpml predict``: labels and probabilities for new rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

from skpml.cli._console import (
    atomic_outputs,
    check_outputs,
    force_option,
    format_count,
    output_path,
    progress_bar,
    say,
    show_dialect,
    show_notes,
    write_csv_rows,
)
from skpml.cli._features import read_rows_for
from skpml.cli._reading import Reading, row_reading_options


@click.command()
@click.argument("model_file", metavar="MODEL", type=output_path)
@click.argument("source", metavar="DATA")
@click.option(
    "-o",
    "--output",
    "target",
    metavar="OUT.csv",
    required=True,
    type=output_path,
    help="CSV file to write: row, predicted labels, one probability per label.",
)
@click.option("--id", metavar="COLUMN", help="Column of DATA that names the rows; copied to OUT.csv.")
@force_option
@row_reading_options
def predict(
    *, model_file: Path, source: str, target: Path, id: str | None, force: bool, reading: Reading
) -> None:  # fmt: skip
    """Predict the labels of new rows.

    DATA must have the features that the model was fitted to. A table needs the numeric columns, or the text column, by
    name and in any order; other columns are ignored and labels are not needed. Embeddings are an .npy or .npz file. Any
    other data set, a file or a name, is read with its labels.

    Each line of OUT.csv holds the row (counted from 0), its name (with --id), the predicted labels ("beach;sea") and a
    column "probability:LABEL" per label. Models of the methods candidate-likelihood, the default of 'skpml clean' and
    'skpml fit', and deep-candidate-likelihood give probabilities that the labels are true. Any other model gives scores
    mapped to 0…1, above ½ if the label is predicted; they are not calibrated.

    \b
    Examples:
      skpml predict photos.skpml new.csv -o tags.csv
      skpml predict news.skpml new.csv --id article -o tags.csv
      skpml predict songs.skpml new_embeddings.npy -o tags.csv
    """
    from skpml.io import load_model, read_model_info

    check_outputs(target, force=force, inputs=[model_file, source])
    with progress_bar(f"opening {model_file}") as update:
        info, model = read_model_info(model_file), load_model(model_file)
        separator = reading.separator or ";"
        if bad := [name for name in info.label_names if separator in name]:
            raise click.ClickException(
                f"the label {bad[0]!r} contains {separator!r}, which separates labels; choose another --separator"
            )
        update(0, None, f"reading {source}")
        rows = read_rows_for(source, reading, model, info, id=id, progress=update)
        ids = None if id is None else rows.ids
        update(0, None, "predicting")
        decisions, probabilities = model.predict(rows.X), model.predict_proba(rows.X)
        lines = _lines(decisions, probabilities, ids, info.label_names, separator)
        header = ["row", *(["id"] if ids else []), "predicted"]
        with atomic_outputs(target) as (temporary,):
            write_csv_rows(temporary, [*header, *(f"probability:{name}" for name in info.label_names)], lines)
    show_dialect(Path(source), rows.dialect)
    show_notes(rows.notes)
    say(f"Wrote {target}: {format_count(rows.X.shape[0], 'row')}.")


def _lines(
    decisions: Any, probabilities: Any, ids: tuple[str, ...] | None, names: tuple[str, ...], separator: str
) -> Iterator[list[Any]]:
    for row, (decision, probability) in enumerate(zip(decisions, probabilities.tolist(), strict=True)):
        # A model fitted in Python to one class per row predicts that class.
        one_class = decisions.ndim == 1
        labels = str(decision) if one_class else separator.join(names[j] for j in np.flatnonzero(decision))
        yield [row, *([ids[row]] if ids else []), labels, *(f"{value:.6g}" for value in probability)]
