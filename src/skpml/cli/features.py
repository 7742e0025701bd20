"""Rows for a model that is fitted already: the features it knows, in its order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from skpml.cli.reading import Reading, is_file_name, read

if TYPE_CHECKING:
    from skpml.datasets import PartialDataset
    from skpml.io import ModelInfo


def read_rows(source: str, reading: Reading, model: Any, info: ModelInfo) -> Any:
    """Features for a model from data that need no labels where they are a table with named columns."""
    from skpml.datasets import read_features

    columns = columns_wanted(source, info)
    if columns is None:
        return features_of(source, read(source, reading), model, info)
    options = reading.for_file(Path(source).suffix.lower())
    text = {name: options[name][1] for name in ("delimiter", "encoding") if name in options}
    return _framed(read_features(source, columns, **text), model, info)


def columns_wanted(source: str, info: ModelInfo) -> tuple[str, ...] | None:
    """The columns of a table that the model knows by name; None where data have no such columns."""
    from skpml.datasets.files import FEATURE_READERS

    is_table = is_file_name(source) and Path(source).suffix.lower() in FEATURE_READERS
    return info.feature_names if is_table else None


def features_of(source: str, dataset: PartialDataset, model: Any, info: ModelInfo) -> Any:
    """Features of a data set in the order the model was fitted on."""
    if dataset.X is None:
        raise click.ClickException(f"{source} has labels only; the model needs features")
    X, wanted, names = dataset.X, info.feature_names, dataset.feature_names
    if wanted is not None and names is not None and names != wanted:
        _check_present(source, names, wanted)
        position = {name: column for column, name in enumerate(names)}
        X = X[:, [position[name] for name in wanted]]
    elif X.shape[1] != model.n_features_in_:
        raise click.ClickException(
            f"{source} has {X.shape[1]} features, but the model was fitted on {model.n_features_in_}"
        )
    return _framed(X, model, info)


def _check_present(source: str | Path, names: Any, wanted: tuple[str, ...]) -> None:
    if missing := [name for name in wanted if name not in set(names)]:
        listed = ", ".join(map(repr, missing[:5])) + (
            f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        )
        raise click.ClickException(
            f"{source} lacks {len(missing)} of the {len(wanted)} features the model was fitted on: {listed}"
        )


def _framed(X: Any, model: Any, info: ModelInfo) -> Any:
    if not hasattr(model, "feature_names_in_") or not isinstance(X, np.ndarray):
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=list(model.feature_names_in_))
