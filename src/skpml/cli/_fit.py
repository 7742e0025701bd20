"""``skpml fit``: learn from candidate labels and write a model file."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from skpml.cli._console import (
    Update,
    atomic_outputs,
    check_outputs,
    force_option,
    format_count,
    output_path,
    progress_bar,
    say,
    seed_option,
    write_csv_rows,
)
from skpml.cli._reading import Reading, key_and_value, read, reading_options
from skpml.registry import get_method, list_methods

if TYPE_CHECKING:
    from skpml.datasets import PartialDataset

# Parameters that the command sets itself.
_RESERVED = {
    "on_empty": "--allow-empty",
    "random_state": "--seed",
    "callback": "the command itself, for its progress bar",
}


@click.command()
@click.argument("source", metavar="DATA")
@click.option(
    "-o",
    "--output",
    "target",
    metavar="MODEL",
    required=True,
    type=output_path,
    help="Model file to write, such as photos.skpml.",
)
@click.option(
    "--confidences",
    metavar="OUT.csv",
    type=output_path,
    help="Also write the confidence of each candidate, lowest first.",
)
@click.option(
    "--method",
    metavar="NAME",
    default="candidate-likelihood",
    show_default=True,
    help="Method; 'skpml methods' lists all.",
)
@click.option(
    "-P",
    "--param",
    "parameters",
    metavar="NAME=VALUE",
    multiple=True,
    help="A parameter of the method, such as -P max_iter=20; repeatable. 'skpml methods NAME' lists them.",
)
@seed_option
@click.option(
    "--allow-empty", is_flag=True, help="Accept rows without candidates and labels that no row carries."
)
@force_option
@reading_options
def fit(
    *,
    source: str,
    target: Path,
    confidences: Path | None,
    method: str,
    parameters: tuple[str, ...],
    seed: int,
    allow_empty: bool,
    force: bool,
    reading: Reading,
) -> None:  # fmt: skip
    """Learn from candidate labels and write a model file.

    DATA is a file (.csv, .tsv, .txt, .parquet, .npz, .mat, .arff) or the name of a data set.

    \b
    Examples:
      skpml fit photos.csv --tags tags -o photos.skpml
      skpml fit photos.csv --tags tags --ignore file -o photos.skpml --confidences doubts.csv
      skpml fit digits --candidates 6 -o digits.skpml
      skpml fit digits -o floor.skpml --method ridge
      skpml fit digits -o other.skpml --method pml-plr -P ratio=0.9
    """
    outputs = [target] if confidences is None else [target, confidences]
    check_outputs(*outputs, force=force, inputs=[source, reading.xml])
    model = _make_model(method, parameters, seed)
    if confidences is not None and not get_method(method).confidences:
        names = ", ".join(list_methods(confidences=True))
        raise click.UsageError(f"--confidences: {method} has no confidences; methods that have them: {names}")
    with progress_bar(f"reading {source}") as update:
        dataset = read(source, reading)
        _check_data(source, dataset, allow_empty)
        update(0, None, "preparing")
        try:
            _fit_model(model, dataset, update)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from error
        _write_outputs(model, dataset, outputs)
    say(_describe_fit(method, model, dataset))
    for path in outputs:
        say(f"Wrote {path}.")


def _make_model(name: str, parameters: tuple[str, ...], seed: int) -> Any:
    try:
        model = get_method(name)()
    except ValueError as error:
        raise click.UsageError(f"--method: {error}") from error
    known = model.get_params()
    given: dict[str, Any] = {}
    for text in parameters:
        key, value = key_and_value("--param", text)
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


def _check_data(source: str, dataset: PartialDataset, allow_empty: bool) -> None:
    """Refuse data without features and, unless allowed, with empty rows or labels: mostly reading mistakes."""
    if dataset.X is None:
        raise click.ClickException(f"{source} has labels only; there are no features to learn from")
    if allow_empty:
        return
    rows = np.flatnonzero(~dataset.candidates.any(axis=1))
    if rows.size:
        raise click.ClickException(
            f"{source} has {rows.size} of {dataset.candidates.shape[0]} rows without candidates, the first is row "
            f"{rows[0]} (counted from 0); remove them, or --allow-empty accepts them as rows without labels"
        )
    columns = np.flatnonzero(~dataset.candidates.any(axis=0))
    if columns.size:
        names = ", ".join(repr(dataset.label_names[column]) for column in columns[:5].tolist())
        raise click.ClickException(
            f"{source} has {columns.size} labels that no row carries: {names}{', …' * (columns.size > 5)}; "
            "remove them, or --allow-empty accepts them"
        )


def _fit_model(model: Any, dataset: PartialDataset, update: Update) -> None:
    import pandas as pd

    if "callback" in model.get_params():
        limit = model.max_iter
        model.set_params(callback=lambda iteration, _: update(iteration, limit, f"iteration {iteration}"))
    X = dataset.X
    if dataset.feature_names is not None and isinstance(X, np.ndarray):
        X = pd.DataFrame(X, columns=list(dataset.feature_names))
    model.fit(X, pd.DataFrame(dataset.candidates, columns=list(dataset.label_names)))
    if "callback" in model.get_params():
        model.set_params(callback=None)


def _write_outputs(model: Any, dataset: PartialDataset, outputs: list[Path]) -> None:
    """Write the model and, if asked for, one line per candidate with its confidence, lowest first."""
    from skpml.io import save_model

    with atomic_outputs(*outputs) as temporary:
        save_model(model, temporary[0], label_names=dataset.label_names, feature_names=dataset.feature_names)
        if len(outputs) > 1:
            rows, labels = np.nonzero(dataset.candidates)
            values = model.confidences_[rows, labels]
            order = np.argsort(values, kind="stable").tolist()
            lines = ([rows[i], dataset.label_names[labels[i]], f"{values[i]:.6g}"] for i in order)
            write_csv_rows(temporary[1], ["row", "label", "confidence"], lines)


def _describe_fit(method: str, model: Any, dataset: PartialDataset) -> str:
    n_rows, n_labels = dataset.candidates.shape
    sizes = zip((n_rows, dataset.X.shape[1], n_labels), ("row", "feature", "label"), strict=True)
    title = get_method(method).title
    fitted = f"Fitted {title} to {', '.join(format_count(*size) for size in sizes)}"
    if not hasattr(model, "n_iter_"):
        return f"{fitted}."
    how = "converged" if model.converged_ else "stopped"
    return f"{fitted}: {how} after {format_count(model.n_iter_, 'iteration')}."
