"""``skpml predict`` and ``skpml evaluate``: labels of new rows by a fitted model, and how good they are."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from skpml._writing import replacing
from skpml.cli import _console as ui

if TYPE_CHECKING:
    from skpml.io import ModelInfo
    from skpml.tables import Table

# Rows that are predicted at a time.
_PREDICTED_ROWS = 20_000
# Names of tables that would not be what they say.
_OTHER_TABLES = (".xlsx", ".xls", ".parquet", ".json", ".jsonl", ".arrow", ".feather")


@click.command()
@click.argument("model_file", metavar="MODEL", type=ui.path_type)
@click.argument("source", metavar="DATA")
@ui.output_option("OUT.csv", "CSV file to write: row, predicted labels, one probability per label.",
                  "-o", "--output", "target")  # fmt: skip
@ui.force_option
@ui.source_options
def predict(*, model_file: Path, source: str, target: Path, force: bool, reading: dict[str, Any]) -> None:
    """Predict the labels of new rows.

    DATA must have the features that the model was fitted to. A table needs its columns of numbers, categories and texts
    by name and in any order; other columns are ignored and labels are not needed. Embeddings are an .npy or .npz file,
    or --embeddings beside a table. Any other data set, a file or a name, is read with its labels.

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
    from skpml.tables import write_rows

    ui.check_outputs(target, force=force, inputs=[model_file, source])
    if target.suffix.lower() in _OTHER_TABLES:
        problem = f"{target}: predictions are written as CSV; name the file {target.with_suffix('.csv').name}"
        raise click.ClickException(problem)
    with ui.progress_bar(f"opening {model_file}") as update:
        info, model = read_model_info(model_file), load_model(model_file)
        separator = reading["separator"] or ";"
        if bad := [name for name in info.label_names if separator in name]:
            raise click.ClickException(
                f"the label {bad[0]!r} contains {separator!r}; give another --separator"
            )
        update(0, None, f"reading {source}")
        rows, order = read_model_rows(source, reading, model, info, progress=update)
        ids = None if rows.columns.id is None else rows.ids
        lines = _lines(model, rows.X, order, ids, info.label_names, separator, update)
        header = ["row", *(["id"] if ids else []), "predicted"]
        header += [f"probability:{name}" for name in info.label_names]
        with replacing(target, overwrite=True) as (temporary,):
            write_rows(temporary, header, lines)
    ui.show_reading(rows)
    for note in _describe_unseen(model, info, rows.X):
        ui.say(f"Note: {note}.")
    ui.say(f"Wrote {target}: {ui.format_count(rows.X.shape[0], 'row')}.")


def _lines(
    model: Any, X: Any, order: list[int] | None, ids: tuple[str, ...] | None, names: tuple[str, ...],
    separator: str, update: ui.Update,
) -> Iterator[list[Any]]:  # fmt: skip
    """Yield a line for each row; rows are predicted in blocks, for memory."""
    from sklearn.utils import gen_batches

    from skpml._validation import take_rows

    for block in gen_batches(X.shape[0], _PREDICTED_ROWS):
        update(block.start, X.shape[0], "predicting")
        some = _match_features(take_rows(X, np.arange(block.start, block.stop)), order, model)
        scored, some = _score_once(model, some)
        decisions, probabilities = scored.predict(some), scored.predict_proba(some)
        # A model fitted in Python to one class per row predicts that class.
        one_class = decisions.ndim == 1
        for row, decision, probability in zip(
            range(block.start, block.stop), decisions, probabilities.tolist(), strict=True
        ):
            labels = (
                str(decision) if one_class else separator.join(names[j] for j in np.flatnonzero(decision))
            )
            yield [row, *([ids[row]] if ids else []), labels, *(f"{value:.6g}" for value in probability)]


def _score_once(model: Any, X: Any) -> tuple[Any, Any]:
    """Return a model and its input whose predictions are those of `model` for X, and need the scores only once."""
    from sklearn.pipeline import Pipeline

    if isinstance(model, Pipeline):
        return _score_once(model[-1], model[:-1].transform(X) if len(model) > 1 else X)
    score, scores = model._checked_scores, list[Any]()

    def scores_of_rows(rows: Any) -> Any:
        if not scores:
            scores.append(score(rows))
        return scores[0]

    model = copy(model)
    model._checked_scores = scores_of_rows
    return model, X


def read_model_rows(
    source: str, reading: dict[str, Any], model: Any, info: ModelInfo, *, labeled: bool = False,
    progress: ui.Update,
) -> tuple[Table, list[int] | None]:  # fmt: skip
    """Read rows with the features of a model, and their order in it, if it is another; `labeled` reads labels too."""
    from skpml.tables import Columns, read_table

    names, kind = info.feature_names, info.feature_kind
    order = None
    if ui.is_table(source) and kind != "embeddings" and names is not None:
        arguments = ui.table_arguments({**reading, "embeddings": None})
        given = arguments["columns"] if labeled else Columns(id=reading["id"])
        arguments["columns"] = replace(given, **_columns_of(names, info))
        table = read_table(
            source, labeled=labeled, truth=labeled, only_numbers=kind == "columns", text_components=None,
            progress=progress, **arguments,
        )  # fmt: skip
    else:
        _check_kind(source, reading, model, info)
        if not labeled and ui.is_table(source) and reading["embeddings"] is not None:
            arguments = ui.table_arguments({**reading, "separator": None})
            arguments["columns"] = Columns(id=reading["id"], image=reading["image"])
            table = read_table(source, labeled=False, progress=progress, **arguments)
        elif not labeled and _is_bare_matrix(source, kind):
            table = read_table(source, labeled=False, **ui.table_arguments({**reading, "separator": None}))
        else:
            table = ui.read_source(source, reading, truth=True, progress=progress)
        order = _find_order(source, table, names, model)
    return table, order


def _match_features(X: Any, order: list[int] | None, model: Any) -> Any:
    """Return rows with the features of a model in its order, as a data frame if it was fitted to one."""
    if order is not None:
        X = X[:, order]
    if hasattr(model, "feature_names_in_") and isinstance(X, np.ndarray):
        import pandas as pd

        # Rows in a file stay there.
        return pd.DataFrame(X, columns=list(model.feature_names_in_), copy=False)
    return X


def _columns_of(names: Sequence[str], info: ModelInfo) -> dict[str, Any]:
    """Return which columns of a table a model needs, as arguments of ``Columns``."""
    types = info.feature_types or ("text" if info.feature_kind == "text" else "number",) * len(names)
    of_type = {
        kind: tuple(name for name, each in zip(names, types, strict=True) if each == kind)
        for kind in set(types)
    }
    shown = {role: of_type.get(role, (None,))[0] for role in ("text", "image")}
    features = tuple(name for name, each in zip(names, types, strict=True) if each != "category")
    return {**shown, "features": features, "categories": of_type.get("category", ())}


def _describe_unseen(model: Any, info: ModelInfo, X: Any) -> Iterator[str]:
    """Yield a note about each column with categories that the model was not fitted to."""
    from skpml.tables import format_names

    if info.feature_kind == "mixed" and info.feature_names is not None:
        for column, unseen in model.steps[0][1].find_unseen(X).items():
            listed = format_names([repr(value) if value else "missing values" for value in unseen])
            yield f"{info.feature_names[column]!r} has categories that the model does not know: {listed}"


def _check_kind(source: str, reading: dict[str, Any], model: Any, info: ModelInfo) -> None:
    """Refuse data of another kind than the model was fitted to."""
    if info.feature_kind in ("text", "mixed"):
        from skpml.tables import format_names

        names = format_names([repr(name) for name in info.feature_names or ()])
        raise click.ClickException(f"{source} is not a table, but the model needs columns of one: {names}")
    if info.feature_kind == "embeddings" and ui.is_table(source) and reading["embeddings"] is None:
        raise click.ClickException(
            f"{source} is a table, but the model was fitted to embeddings: give an .npy or .npz file with "
            f"{model.n_features_in_} numbers per row, or such a file beside the table by --embeddings"
        )


def _is_bare_matrix(source: str, kind: str) -> bool:
    """Whether a file holds features and nothing else."""
    from skpml.datasets import holds_labels

    path = Path(source)
    if path.suffix.lower() == ".npz" and path.is_file():
        return kind == "embeddings" or not holds_labels(path)
    return path.suffix.lower() == ".npy"


def _find_order(source: str, table: Table, wanted: tuple[str, ...] | None, model: Any) -> list[int] | None:
    """Return where the features of the model are, by name; None if they are in its order, or either has no names."""
    names, order = ui.known_feature_names(table), None
    if table.X is None:
        raise click.ClickException(f"{source} has labels only; the model needs features")
    if wanted is not None and names is not None and names != wanted:
        position = {name: column for column, name in enumerate(names)}
        if missing := [name for name in wanted if name not in position]:
            lacks = f"{len(missing)} of the {len(wanted)} features of the model, such as {missing[0]!r}"
            raise click.ClickException(f"{source} lacks {lacks}")
        order = [position[name] for name in wanted]
    n_features = table.X.shape[1] if order is None else len(order)
    if n_features != model.n_features_in_:
        problem = f"has {n_features} features, but the model was fitted to {model.n_features_in_}"
        raise click.ClickException(f"{source} {problem}")
    return order


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
        table, order = read_model_rows(source, reading, model, info, labeled=True, progress=update)
        if table.truth is None:
            problem = "has no true labels to compare with; --true-tags or --true-label names their columns"
            raise click.ClickException(f"{source} {problem}")
        truth = _in_model_order(source, table.truth, table.label_names, info.label_names)
        update(0, None, "predicting")
        scored, X = _score_once(model, _match_features(table.X, order, model))
        decisions = scored.predict(X)
        if decisions.ndim == 1:
            raise click.ClickException(f"{model_file} predicts one class per row, not a set of labels")
        found = metrics.evaluate(truth, scored.decision_function(X), decisions, convention=convention)  # type: ignore[arg-type]
    if as_json:
        values = {name: value if math.isfinite(value) else None for name, value in found.items()}
        facts = {"model": info.model, "rows": truth.shape[0], "convention": convention, "metrics": values}
        ui.say(json.dumps(facts, indent=2))
        return
    ui.show_reading(table)
    for note in _describe_unseen(model, info, table.X):
        ui.say(f"Note: {note}.")
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
