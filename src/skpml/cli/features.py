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

_TABLES = (".csv", ".parquet")


def read_rows(source: str, reading: Reading, model: Any, info: ModelInfo) -> Any:
    """Features for a model from data that need no labels where they are a table with named columns."""
    path = Path(source)
    if info.feature_names is not None and is_file_name(source) and path.suffix.lower() in _TABLES:
        return _framed(_table_columns(path, reading, info.feature_names), model, info)
    return features_of(source, read(source, reading), model, info)


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


def _table_columns(path: Path, reading: Reading, wanted: tuple[str, ...]) -> Any:
    """The wanted columns of a table; whatever else stands in it is passed over."""
    from skpml.datasets.formats import csv_files, parquet_files
    from skpml.datasets.formats.files import parsing
    from skpml.datasets.formats.label_columns import Layout

    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if path.suffix.lower() == ".parquet":
        from pyarrow import parquet

        with parsing(path, "Parquet"):
            table = parquet.read_table(path)
        _check_present(path, table.column_names, wanted)
        return parquet_files._feature_matrix(path, table, wanted)
    options = reading.for_file(".csv")
    delimiter, encoding = (
        options.get(name, (None, usual))[1] for name, usual in (("delimiter", ","), ("encoding", "utf-8-sig"))
    )
    header, rows, lines = csv_files._read_rows(path, delimiter, encoding)
    _check_present(path, header, wanted)
    position = {name: column for column, name in enumerate(header)}
    return csv_files._feature_matrix(path, rows, Layout(None, None, wanted), position, lines)
