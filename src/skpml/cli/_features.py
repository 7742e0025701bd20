"""Rows for a model that is fitted already: what it learnt from, in its order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from skpml.cli._reading import Reading, is_file_name, read

if TYPE_CHECKING:
    from skpml.datasets import PartialDataset
    from skpml.io import ModelInfo
    from skpml.tables import Table


def read_rows_for(
    source: str,
    reading: Reading,
    model: Any,
    info: ModelInfo,
    *,
    id: str | None = None,
    progress: Callable[..., None] | None = None,
) -> Table:
    """Rows as the model takes them; a table needs no labels where the model knows its columns by name."""
    from skpml.tables import Columns, Dialect, Table, read_table

    if _is_table_for(source, info):
        columns, dialect = Columns(**_wanted_columns(info), id=id), Dialect(**reading.as_written())
        rows = read_table(source, columns=columns, dialect=dialect, labelled=False, progress=progress)
        return replace(rows, X=_with_names(rows.X, model))
    if id is not None:
        raise click.UsageError(f"--id names a column of a table, but {source} is read as a matrix")
    _check_kind(source, model, info)
    if _is_bare_matrix(source, info):
        reading.check_none_for(Path(source).suffix.lower())
        rows = read_table(source, labelled=False)
        _check_width(source, rows.X, model)
        return replace(rows, X=_with_names(rows.X, model))
    return Table(path=Path(source), X=_features_of(source, read(source, reading), model, info))


def read_labelled_rows_for(
    source: str, reading: Reading, model: Any, info: ModelInfo
) -> tuple[Any, PartialDataset]:
    """Rows as the model takes them, and the data set with their labels."""
    if _is_table_for(source, info):
        rows = read_rows_for(source, reading, model, info)
        return rows.X, read(source, reading.told(rows.dialect), features=())
    _check_kind(source, model, info)
    dataset = read(source, reading)
    return _features_of(source, dataset, model, info), dataset


def _is_table_for(source: str, info: ModelInfo) -> bool:
    """Whether the data are a table, and the model knows the columns it wants by name."""
    from skpml.tables import TABLE_SUFFIXES

    is_table = is_file_name(source) and Path(source).suffix.lower() in TABLE_SUFFIXES
    return is_table and info.feature_names is not None


def _wanted_columns(info: ModelInfo) -> dict[str, Any]:
    assert info.feature_names is not None
    return (
        {"text": info.feature_names[0]} if info.feature_kind == "text" else {"features": info.feature_names}
    )


def _check_kind(source: str, model: Any, info: ModelInfo) -> None:
    """Refuse data of another kind than the model learnt from."""
    from skpml.tables import TABLE_SUFFIXES

    if info.feature_kind == "text":
        assert info.feature_names is not None
        raise click.ClickException(
            f"{source} holds no texts, which the model was fitted on: give a table ({', '.join(TABLE_SUFFIXES)}) "
            f"with a column {info.feature_names[0]!r}"
        )
    if info.feature_kind == "embeddings" and Path(source).suffix.lower() in TABLE_SUFFIXES:
        raise click.ClickException(
            f"{source} is a table, but the model was fitted on embeddings: give an .npy or .npz file with "
            f"{model.n_features_in_} numbers a row"
        )


def _is_bare_matrix(source: str, info: ModelInfo) -> bool:
    """Whether a file holds features and nothing else."""
    from skpml.datasets import holds_labels

    path = Path(source)
    if path.suffix.lower() == ".npz" and path.is_file():
        return info.feature_kind == "embeddings" or not holds_labels(path)
    return path.suffix.lower() == ".npy"


def _features_of(source: str, dataset: PartialDataset, model: Any, info: ModelInfo) -> Any:
    """Features of a data set in the order the model was fitted on."""
    if dataset.X is None:
        raise click.ClickException(f"{source} has labels only; the model needs features")
    X, wanted, names = dataset.X, info.feature_names, dataset.feature_names
    if wanted is not None and names is not None and names != wanted:
        _check_present(source, names, wanted)
        position = {name: column for column, name in enumerate(names)}
        X = X[:, [position[name] for name in wanted]]
    else:
        _check_width(source, X, model)
    return _with_names(X, model)


def _check_width(source: str, X: Any, model: Any) -> None:
    if X.shape[1] != model.n_features_in_:
        raise click.ClickException(
            f"{source} has {X.shape[1]} features, but the model was fitted on {model.n_features_in_}"
        )


def _check_present(source: str | Path, names: Any, wanted: tuple[str, ...]) -> None:
    if missing := [name for name in wanted if name not in set(names)]:
        listed = ", ".join(map(repr, missing[:5])) + (
            f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        )
        raise click.ClickException(
            f"{source} lacks {len(missing)} of the {len(wanted)} features the model was fitted on: {listed}"
        )


def _with_names(X: Any, model: Any) -> Any:
    """A model that was fitted to a data frame wants one."""
    if not hasattr(model, "feature_names_in_") or not isinstance(X, np.ndarray):
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=list(model.feature_names_in_))
