"""``skpml fit``: from candidate labels to a model file and confidences."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from skpml.cli._base import Command
from skpml.cli._console import progress_bar, say
from skpml.cli._outputs import check_outputs, force_option, whole, write_table
from skpml.cli._reading import Reading, key_and_value, read, reading_options
from skpml.cli._wording import counted
from skpml.registry import get_method, list_methods

if TYPE_CHECKING:
    from skpml.datasets import PartialDataset

_AT_LEAST_0 = click.FloatRange(min=0)
_AT_LEAST_1 = click.IntRange(min=1)


class _Threshold(click.ParamType):
    name = "threshold"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return float(value)
        except ValueError:
            return value  # the name of a rule; the method says which it has


_PARAMETERS = (
    click.option("--lam", type=_AT_LEAST_0, help="Weight of the low rank of the labels.  [default: 1]"),
    click.option("--alpha", type=_AT_LEAST_0, help="Weight of the alignment of neighbours.  [default: 0.01]"),
    click.option("--beta", type=_AT_LEAST_0, help="Weight of the prototypes.  [default: 0.01]"),
    click.option("--gamma", type=_AT_LEAST_0, help="Weight of the size of the classifier.  [default: 1]"),
    click.option("--n-neighbors", type=_AT_LEAST_1, help="Neighbours of a row.  [default: 5]"),
    click.option("--feature-map", type=click.Choice(["rbf", "linear"]), help="What is seen of the features."),
    click.option(
        "--n-anchors", type=_AT_LEAST_1, help="Anchors of the rbf map.  [default: by number of rows]"
    ),
    click.option(
        "--threshold",
        type=_Threshold(),
        help="Score above which a label is predicted, or a rule's name.  [default: auto]",
    ),
    click.option("--max-iter", type=_AT_LEAST_1, help="Iterations at most.  [default: 50]"),
    click.option(
        "--tol", type=_AT_LEAST_0, help="Stop where the objective changes by less.  [default: 0.001]"
    ),
)


# Parameters that the command sets itself.
_OWN_OPTIONS = {
    "empty_rows": "--allow-empty-rows",
    "empty_labels": "--allow-empty-labels",
    "random_state": "--seed",
    "callback": "the command itself, for its progress bar",
}


def _parameter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_PARAMETERS):
        command = option(command)
    return command


@click.command(cls=Command)
@click.argument("source", metavar="DATA")
@click.option(
    "-o", "--output", "target", metavar="MODEL", required=True, type=click.Path(path_type=Path),
    help="Model file to write, such as photos.skpml.",
)  # fmt: skip
@click.option(
    "--confidences", metavar="OUT.csv", type=click.Path(path_type=Path),
    help="Also write how far each candidate is believed, least first.",
)  # fmt: skip
@click.option(
    "--method", metavar="NAME", default="pml-ma", show_default=True, help="'skpml methods' lists them all."
)
@_parameter_options
@click.option(
    "-P", "--param", "others", metavar="NAME=VALUE", multiple=True,
    help="Any other parameter of the method, such as -P n_neighbors=20; repeat it.",
)  # fmt: skip
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="For all that is drawn at random.",
)
@click.option("--allow-empty-rows", is_flag=True, help="Take rows without candidates as having no label.")
@click.option("--allow-empty-labels", is_flag=True, help="Keep labels that are nobody's candidate.")
@force_option
@reading_options
def fit(
    *,
    source: str,
    target: Path,
    confidences: Path | None,
    method: str,
    others: tuple[str, ...],
    seed: int,
    allow_empty_rows: bool,
    allow_empty_labels: bool,
    force: bool,
    reading: Reading,
    **parameters: Any,
) -> None:
    """Learn from candidate labels and write a model file.

    DATA is a file (.csv, .parquet, .npz, .mat, .arff) or the name of a data set. The defaults below are those of pml-ma;
    'skpml methods NAME' tells those of another method.

    \b
    Examples:
      skpml fit photos.csv --tags tags -o photos.skpml
      skpml fit photos.csv --tags tags --ignore file -o photos.skpml --confidences doubts.csv
      skpml fit digits --candidates 6 -o digits.skpml --lam 5
      skpml fit digits -o floor.skpml --method ridge
      skpml fit digits -o other.skpml --method pml-plr -P ratio=0.9
    """
    outputs = [target] if confidences is None else [target, confidences]
    check_outputs(*outputs, force=force, inputs=[source, reading.xml])
    model = _model(method, parameters, others, seed, allow_empty_labels)
    if confidences is not None and not get_method(method).confidences:
        able = ", ".join(list_methods(confidences=True))
        raise click.UsageError(f"--confidences: {method} has none; methods that have are {able}")
    with progress_bar(f"reading {source}") as update:
        dataset = read(source, reading)
        _check(source, dataset, allow_empty_rows, allow_empty_labels)
        update(0, None, "preparing")
        try:
            _learn(model, dataset, update)
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from error
        _write(model, dataset, outputs)
    say(_outcome(method, model, dataset))
    for path in outputs:
        say(f"Wrote {path}.")


def _model(
    name: str, options: dict[str, Any], others: tuple[str, ...], seed: int, allow_empty_labels: bool
) -> Any:
    """The method by its name, with the parameters given, each refused where the method does not have it."""
    try:
        model = get_method(name)()
    except ValueError as error:
        raise click.UsageError(f"--method: {error}") from error
    known = model.get_params()
    given = {key: value for key, value in options.items() if value is not None}
    if foreign := sorted(set(given) - set(known)):
        raise click.UsageError(f"--{foreign[0].replace('_', '-')} does not apply to --method {name}")
    for text in others:
        key, value = key_and_value("--param", text)
        if key in _OWN_OPTIONS:
            raise click.UsageError(f"--param: {key} is set by {_OWN_OPTIONS[key]}")
        if key in given:
            raise click.UsageError(f"--param: {key} is given twice")
        if key not in known:
            raise click.UsageError(f"--param: {name} has no parameter {key!r}; it has {', '.join(known)}")
        given[key] = _literal(value)
    if "random_state" in known:
        given["random_state"] = seed
    return model.set_params(**given, empty_labels="warn" if allow_empty_labels else "error")


def _literal(text: str) -> Any:
    """A number, None, True, a list and so on, as Python writes them; else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _check(source: str, dataset: PartialDataset, allow_empty_rows: bool, allow_empty_labels: bool) -> None:
    if dataset.X is None:
        raise click.ClickException(f"{source} has labels only; there are no features to learn from")
    rows = np.flatnonzero(~dataset.candidates.any(axis=1))
    if rows.size and not allow_empty_rows:
        raise click.ClickException(
            f"{source} has {rows.size} of {dataset.candidates.shape[0]} rows without a candidate label, the first is "
            f"row {rows[0]} (counted from 0); leave them out, or --allow-empty-rows takes them as having no label"
        )
    columns = np.flatnonzero(~dataset.candidates.any(axis=0))
    if columns.size and not allow_empty_labels:
        names = ", ".join(repr(dataset.label_names[column]) for column in columns[:5].tolist())
        raise click.ClickException(
            f"{source} has {columns.size} labels that are nobody's candidate: {names}{', …' * (columns.size > 5)}; "
            "leave them out, or --allow-empty-labels keeps them"
        )


def _learn(model: Any, dataset: PartialDataset, update: Callable[[int, int | None, str], None]) -> None:
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


def _write(model: Any, dataset: PartialDataset, outputs: list[Path]) -> None:
    """The model and, where asked for, the confidences: a line a candidate, least believed first."""
    from skpml.io import save_model

    with whole(*outputs) as temporary:
        save_model(model, temporary[0], label_names=dataset.label_names, feature_names=dataset.feature_names)
        if len(outputs) > 1:
            rows, labels = np.nonzero(dataset.candidates)
            believed = model.confidences_[rows, labels]
            order = np.argsort(believed, kind="stable").tolist()
            write_table(
                temporary[1],
                ["row", "label", "confidence"],
                ([rows[i], dataset.label_names[labels[i]], f"{believed[i]:.6g}"] for i in order),
            )


def _outcome(method: str, model: Any, dataset: PartialDataset) -> str:
    n_rows, n_labels = dataset.candidates.shape
    sizes = zip((n_rows, dataset.X.shape[1], n_labels), ("row", "feature", "label"), strict=True)
    learnt = f"Learnt from {', '.join(counted(*size) for size in sizes)}"
    title = get_method(method).title
    if not hasattr(model, "n_iter_"):
        return f"{learnt}: {title}."
    how = "converged" if model.converged_ else "stopped"
    return f"{learnt}: {title} {how} after {counted(model.n_iter_, 'iteration')}."
