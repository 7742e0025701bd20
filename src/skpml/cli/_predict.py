"""``skpml predict``: labels and probabilities for new rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

from skpml.cli._base import Command
from skpml.cli._console import progress_bar, say, tell_dialect, tell_notes
from skpml.cli._features import read_rows_for
from skpml.cli._outputs import check_outputs, force_option, whole, write_table
from skpml.cli._reading import Reading, row_reading_options
from skpml.cli._wording import counted


@click.command(cls=Command)
@click.argument("model_file", metavar="MODEL", type=click.Path(path_type=Path))
@click.argument("source", metavar="DATA")
@click.option(
    "-o", "--output", "target", metavar="OUT.csv", required=True, type=click.Path(path_type=Path),
    help="CSV file to write: the row, its labels, a probability a label.",
)  # fmt: skip
@click.option("--id", metavar="COLUMN", help="Column of DATA that names the rows, to be written too.")
@force_option
@row_reading_options
def predict(
    *, model_file: Path, source: str, target: Path, id: str | None, force: bool, reading: Reading
) -> None:
    """Predict the labels of new rows.

    DATA is of the kind that the model was fitted on. A CSV or Parquet file needs the columns of numbers, or the column of
    texts, that the model knows, in any order and among others, and no labels; how a CSV file is written is detected.
    Embeddings are an .npy or .npz file. Any other data set, by file or by name, is read with its labels.

    Each line of OUT.csv holds the row (counted from 0), its name (with --id), the predicted labels ("beach;sea") and a
    column "probability:LABEL" for each label. Models of the methods candidate-likelihood, which 'skpml clean' trains
    unless told otherwise, and deep-candidate-likelihood give their probabilities of the labels to be true. Any other
    model gives scores mapped to 0…1, above ½ where the label is predicted; they are not calibrated.

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
                f"the label {bad[0]!r} holds {separator!r}, which stands between labels; --separator takes another"
            )
        update(0, None, f"reading {source}")
        rows = read_rows_for(source, reading, model, info, id=id, progress=update)
        update(0, None, "predicting")
        decisions, probabilities = model.predict(rows.X), model.predict_proba(rows.X)
        lines = _lines(decisions, probabilities, rows.ids, info.label_names, separator)
        header = ["row", *(["id"] if rows.ids else []), "predicted"]
        with whole(target) as (temporary,):
            write_table(temporary, [*header, *(f"probability:{name}" for name in info.label_names)], lines)
    tell_dialect(Path(source), rows.dialect)
    tell_notes(rows.notes)
    say(f"Wrote {target}: {counted(rows.X.shape[0], 'row')}.")


def _lines(
    decisions: Any,
    probabilities: Any,
    ids: tuple[str, ...] | None,
    names: tuple[str, ...],
    separator: str,
) -> Iterator[list[Any]]:
    for row, (decision, probability) in enumerate(zip(decisions, probabilities.tolist(), strict=True)):
        # A model fitted to one class a row, in Python, predicts that class.
        chosen = (
            str(decision)
            if decisions.ndim == 1
            else separator.join(names[j] for j in np.flatnonzero(decision))
        )
        yield [row, *([ids[row]] if ids else []), chosen, *(f"{value:.6g}" for value in probability)]
