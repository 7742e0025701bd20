"""``skpml methods`` and ``skpml fit``: list the methods, fit one to candidate labels, write a model file."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from skpml._writing import replacing
from skpml.cli import _console as ui
from skpml.registry import TAGS, Method, get_method, list_methods

if TYPE_CHECKING:
    from skpml.tables import Table

# Parameters that the command sets itself.
_RESERVED = {
    "on_empty": "--allow-empty",
    "random_state": "--seed",
    "callback": "the command itself, for its progress bar",
}


@click.command()
@click.argument("source", metavar="DATA")
@ui.output_option("MODEL", "Model file to write, such as photos.skpml.", "-o", "--output", "target")
@ui.output_option("OUT.csv", "Also write the confidence of each candidate, lowest first.", "--confidences")
@ui.method_option
@click.option("-P", "--param", "parameters", metavar="NAME=VALUE", multiple=True,
              help="Parameter of the method, as in -P tol=0.01; repeatable. 'skpml methods NAME' lists all.")  # fmt: skip
@ui.seed_option
@click.option("--allow-empty", is_flag=True, help="Accept rows without candidates and labels without rows.")
@ui.force_option
@ui.source_options
def fit(
    *, source: str, target: Path, confidences: Path | None, method: str, parameters: tuple[str, ...], seed: int,
    allow_empty: bool, force: bool, reading: dict[str, Any],
) -> None:  # fmt: skip
    """Learn from candidate labels and write a model file.

    DATA is a table (.csv, .tsv, .txt, .parquet, .arrow, .feather, .json, .jsonl, .ndjson, .xlsx), another file (.npz,
    .mat, .arff) or the name of a data set.

    \b
    Examples:
      skpml fit photos.csv --id file -o photos.skpml --confidences doubts.csv
      skpml fit news.csv --id article --text headline -o news.skpml
      skpml fit digits --candidates 6 -o digits.skpml
      skpml fit digits -o floor.skpml --method ridge
      skpml fit digits -o other.skpml --method pml-plr -P ratio=0.9
    """
    outputs = [target] if confidences is None else [target, confidences]
    ui.check_outputs(*outputs, force=force, inputs=[source, reading["xml"], reading["embeddings"]])
    model = _make_model(method, parameters, seed)
    if confidences is not None and not get_method(method).confidences:
        names = ", ".join(list_methods(confidences=True))
        raise click.UsageError(f"--confidences: {method} has no confidences; methods that have them: {names}")
    with ui.progress_bar(f"reading {source}") as update:
        table = ui.read_source(source, reading, truth=True, random_state=seed, progress=update)
        _check_data(source, table, allow_empty)
        plain = table.feature_kind not in ("text", "mixed")
        ui.show_reading(table, *(() if plain else (f"Learning from {ui.describe_features(table)}.",)))
        update(0, None, "preparing")
        if len(table.views) > 1 and model.get_params().get("views", table) is None:
            model.set_params(views=table.views)
        try:
            _fit_model(model, table, update)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from error
        _write_outputs(model, table, outputs)
    ui.say(_describe_fit(method, model, table))
    for path in outputs:
        ui.say(f"Wrote {path}.")


def _make_model(name: str, parameters: tuple[str, ...], seed: int) -> Any:
    model = get_method(name)()
    known = model.get_params()
    given: dict[str, Any] = {}
    for text in parameters:
        key, value = ui.split_assignment("--param", text)
        if key in _RESERVED:
            raise click.UsageError(f"--param: {key} is set by {_RESERVED[key]}")
        if key in given:
            raise click.UsageError(f"--param: {key} is given twice")
        if key not in known:
            raise click.UsageError(f"--param: {name} has no parameter {key!r}; it has {', '.join(known)}")
        given[key] = _parse_value(value)
    if "random_state" in known:
        given["random_state"] = seed
    return model.set_params(**given)


def _parse_value(text: str) -> Any:
    """Return a Python literal such as a number, None or a list; otherwise the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _check_data(source: str, table: Table, allow_empty: bool) -> None:
    """Refuse data without features and, unless allowed, with empty rows or labels: mostly reading mistakes."""
    if table.X is None or not table.X.shape[1]:
        unused = "".join(f"; {name!r} {reason}" for name, reason in list(table.unused.items())[:5])
        raise click.ClickException(f"{source} has labels only; there are no features to learn from{unused}")
    if allow_empty:
        return
    for axis, what in ((1, "rows without candidates"), (0, "labels that no row carries")):
        empty = np.flatnonzero(~table.candidates.any(axis=axis))
        if empty.size:
            first = f"row {empty[0]} (counted from 0)" if axis else repr(table.label_names[empty[0]])
            counts = f"{empty.size:,} of {table.candidates.shape[1 - axis]:,}, the first is {first}"
            raise click.ClickException(f"{source} has {what} ({counts}); --allow-empty accepts them")


def _fit_model(model: Any, table: Table, update: ui.Update) -> None:
    import pandas as pd

    if "callback" in model.get_params():
        limit = model.max_iter
        model.set_params(callback=lambda iteration, _: update(iteration, limit, f"iteration {iteration}"))
    X = table.X
    if table.feature_kind == "columns" and ui.known_feature_names(table) and isinstance(X, np.ndarray):
        # Rows in a file stay there.
        X = pd.DataFrame(X, columns=list(table.feature_names), copy=False)
    model.fit(X, pd.DataFrame(table.candidates, columns=list(table.label_names)))
    if "callback" in model.get_params():
        model.set_params(callback=None)


def _write_outputs(model: Any, table: Table, outputs: list[Path]) -> None:
    """Write the model and, if asked for, one line per candidate with its confidence, lowest first."""
    from skpml.tables import write_rows

    with replacing(*outputs, overwrite=True) as temporary:
        ui.save_table_model(model, temporary[0], table)
        if len(outputs) > 1:
            rows, labels = np.nonzero(table.candidates)
            values = model.confidences_[rows, labels]
            order = np.argsort(values, kind="stable").tolist()
            ids = None if table.columns.id is None else table.ids
            lines = (
                [rows[i], *([ids[rows[i]]] if ids else []), table.label_names[labels[i]], f"{values[i]:.6g}"]
                for i in order
            )
            header = ["row", *(["id"] if ids else []), "label", "confidence"]
            write_rows(temporary[1], header, lines)


def _describe_fit(method: str, model: Any, table: Table) -> str:
    n_rows, n_labels = table.candidates.shape
    sizes = zip((n_rows, table.X.shape[1], n_labels), ("row", "feature", "label"), strict=True)
    title = get_method(method).title
    fitted = f"Fitted {title} to {', '.join(ui.format_count(*size) for size in sizes)}"
    if not hasattr(model, "n_iter_"):
        return f"{fitted}."
    how = "converged" if model.converged_ else "stopped"
    return f"{fitted}: {how} after {ui.format_count(model.n_iter_, 'iteration')}."


@click.command()
@click.argument("name", required=False)
@ui.json_option
def methods(*, name: str | None, as_json: bool) -> None:
    """List the methods, or describe one.

    \b
    Examples:
      skpml methods
      skpml methods pml-ni
    """
    try:
        found = [get_method(each) for each in ([name] if name else list_methods())]
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    if as_json:
        facts = [_facts(method) for method in found]
        ui.say(json.dumps(facts[0] if name else facts, indent=1, ensure_ascii=False))
    elif name:
        _show_method(found[0])
    else:
        _show_all(found)


def _facts(method: Method) -> dict[str, Any]:
    return {name: getattr(method, name) for name in ("name", "title", "summary", *TAGS, "reference")}


def _format(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


def _show_all(found: list[Method]) -> None:
    table = ui.make_table("name", "year", "kind", "confidences", "nonlinear", "description")
    for method in found:
        values = (method.name, method.year, method.kind, method.confidences, method.nonlinear, method.summary)
        table.add_row(*map(_format, values))
    ui.show_table(table)
    ui.say("\n'skpml methods NAME' describes one method; 'skpml fit DATA --method NAME' uses it.")


def _show_method(method: Method) -> None:
    table = ui.make_table()
    for name, value in _facts(method).items():
        if value not in (None, ""):
            table.add_row(name, _format(value))
    parameters = method().get_params()
    table.add_row("parameters", ", ".join(f"{name}={value!r}" for name, value in parameters.items()))
    ui.show_table(table)
