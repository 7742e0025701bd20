"""Reading and writing data sets by the suffix of the file; files that are not tables, as tables."""

# ruff: noqa: I001
from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from skpml._docstrings import fill_docstring
from skpml._validation import EmptyPolicy
from skpml._writing import replacing
from skpml.datasets._arff import read_arff, write_arff
from skpml.datasets._matlab import read_mat, write_mat
from skpml.datasets._npz import read_npz, write_npz
from skpml.datasets._partial_dataset import PartialDataset, build_dataset
from skpml.tables import CANDIDATE_COLUMN, CANDIDATE_PREFIX, TABLE_SUFFIXES, TRUTH_COLUMN, TRUTH_PREFIX
from skpml.tables import Argument, Columns, Dialect, Progress, Table, TableError, read_table, write_cleaned
from skpml.tables import check_changes, check_file, check_known_suffix, check_suffix, refuse_arguments
from skpml.tables import describe_unlabeled, find_repeated, format_names, looks_like_labels
from skpml.tables import number_names, read_embeddings, write_csv, write_parquet

TableStyle = Literal["flags", "tags"]


_COLUMN_OPTIONS = ("tags", "labels", "true_tags", "true_labels", "prefix", "true_prefix", "label_names", "features",
                   "ignore")  # fmt: skip
_DIALECT_OPTIONS = ("encoding", "delimiter", "quote", "decimal")


def read_tabular(
    path: str | Path, *, separator: str | None = None, on_empty: EmptyPolicy = "raise", **options: Any
) -> PartialDataset:
    """Read a CSV, TSV, TXT or Parquet file by `skpml.tables.read_table`."""
    if unknown := set(options).difference(_COLUMN_OPTIONS, _DIALECT_OPTIONS):
        raise TypeError(f"tables have no option {unknown.pop()!r}")
    dialect = Dialect(**{name: options.pop(name) for name in _DIALECT_OPTIONS if name in options})
    # Medians and categories of all rows would tell a training row about the others.
    table = read_table(
        path, columns=Columns(**options), dialect=dialect, separator=separator, truth=True, only_numbers=True
    )
    return to_dataset(table, on_empty=on_empty)


def reader_options(suffix: str) -> tuple[str, ...]:
    """Names of the options of a format."""
    if suffix in TABLE_SUFFIXES:
        return (*_COLUMN_OPTIONS, *_DIALECT_OPTIONS, "separator", "on_empty")
    return tuple(name for name in inspect.signature(READERS[suffix]).parameters if name != "path")


def to_dataset(table: Table, *, on_empty: EmptyPolicy = "raise") -> PartialDataset:
    """Return the data set of a labeled table; without features, X is None."""
    parts = {name: getattr(table, name) for name in ("candidates", "truth", "label_names")}
    parts |= {"X": table.X, "feature_names": table.feature_names} if table.feature_names else {"X": None}
    return build_dataset(table.path, on_empty=on_empty, **parts)


def write_tabular(
    dataset: PartialDataset, path: Path, *, style: TableStyle = "flags", separator: str = ";", overwrite: bool = False
) -> None:  # fmt: skip
    """Write a CSV or Parquet file: features, then candidates, then the true labels if they are known."""
    columns = _table_columns(dataset, style, separator)
    write = write_parquet if path.suffix.lower() == ".parquet" else write_csv
    with replacing(path, overwrite=overwrite) as (temporary,):
        write(temporary, columns)


READERS: dict[str, Callable[..., PartialDataset]] = {
    ".npz": read_npz,
    ".mat": read_mat,
    ".arff": read_arff,
    **dict.fromkeys(TABLE_SUFFIXES, read_tabular),
}
WRITERS: dict[str, Callable[..., None]] = {
    ".npz": write_npz,
    ".mat": write_mat,
    ".arff": write_arff,
    ".csv": write_tabular,
    ".parquet": write_tabular,
}


def read_dataset(path: str | Path, **options: Any) -> PartialDataset:
    """Read a data set from a file.

    Parameters
    ----------
    path : path-like
        A ``.npz``, ``.mat``, ``.arff`` (Mulan or MEKA), ``.csv``, ``.tsv``, ``.txt`` or ``.parquet`` file.
    **options : dict
        Options of the format: see `read_npz`, `read_mat` and `read_arff`. Tables take the fields of
        `skpml.tables.Columns` that name labels and features (``tags``, ``labels``, ``true_tags``, ``true_labels``,
        ``prefix``, ``true_prefix``, ``label_names``, ``features``, ``ignore``), those of `skpml.tables.Dialect`
        (``encoding``, ``delimiter``, ``quote``, ``decimal``), and ``separator``. All take ``on_empty``;
        see `PartialDataset`.

    Returns
    -------
    PartialDataset
        The data set. If a table has only true labels, they are the candidates too.

    Raises
    ------
    TableError
        If the file is damaged, cut short or has another layout; it names the file, and the line where known.
    FileNotFoundError
        If there is no such file.

    See Also
    --------
    skpml.tables.read_table : Reads a table with ids, texts and images.
    """
    source = Path(path)
    check_known_suffix(source, tuple(READERS))
    check_file(source)
    return READERS[source.suffix.lower()](source, **options)


def write_dataset(
    dataset: PartialDataset, path: str | Path, *, overwrite: bool = False, **options: Any
) -> None:
    """Write a data set to a file, completely or not at all.

    Parameters
    ----------
    dataset : PartialDataset
        What to write.
    path : path-like
        A name that ends in ``.npz``, ``.mat``, ``.arff``, ``.csv`` or ``.parquet``.
    overwrite : bool, default=False
        Whether to replace a file that exists.
    **options : dict
        For ARFF, ``style="mulan"`` or ``"meka"``. For CSV and Parquet, ``style="flags"`` (the default) writes one 0/1
        column per label, ``candidate:NAME`` and ``truth:NAME``; ``style="tags"`` writes columns ``candidates`` and
        ``truth`` that list labels, separated by ``separator``, and loses labels that no row has and the order of labels.

    Raises
    ------
    FileExistsError
        If the file exists and `overwrite` is False.
    """
    target = Path(path)
    check_known_suffix(target, tuple(WRITERS))
    WRITERS[target.suffix.lower()](dataset, target, overwrite=overwrite, **options)


def read_as_table(
    path: str | Path,
    *,
    columns: Columns | None = None,
    dialect: Dialect | None = None,
    embeddings: str | Path | None = None,
    reader_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Table:
    """Read a file of any supported format as a table.

    Parameters
    ----------
    path : path-like
        A table, or any other file that `read_dataset` reads.
    columns : Columns, optional
        Which column of a table holds what. For ARFF, ``labels`` and ``ignore`` name attributes; other formats have no
        columns to name.
    dialect : Dialect, optional
        How a text table is written.
    embeddings : path-like, optional
        A file of features; see `skpml.tables.read_table`.
    reader_options : mapping, optional
        Further options of `read_dataset` for files that are not tables.
    **options : dict
        Further options of `skpml.tables.read_table`.

    Returns
    -------
    Table
        The rows; for a file that is not a table, ``dataset`` is its data set.

    See Also
    --------
    write_cleaned_copy : Writes such a file without some labels.
    """
    path, columns = Path(path), columns or Columns()
    suffix = path.suffix.lower()
    if suffix in TABLE_SUFFIXES or suffix not in READERS:
        if reader_options:
            problem = f" does not apply to {suffix} files"
            raise TableError(Argument("reader_options"), problem, value=reader_options)
        return read_table(path, columns=columns, dialect=dialect, embeddings=embeddings, **options)
    for name in ("merge_case", "skip_untagged"):
        if options.get(name):
            raise TableError(Argument(name), f" does not apply to {suffix} files", path=path, value=True)
    reading = dict(reader_options or {})
    if suffix == ".arff":
        labels = columns.labels or reading.get("label_attributes")
        reading |= {"ignore": columns.ignore, "label_attributes": labels}
        columns = replace(columns, labels=None, ignore=())
    refuse_arguments(suffix, replace(columns, features=columns.features or None), dialect)
    dataset = read_dataset(path, **{"on_empty": "ignore", **reading})
    n_rows = len(dataset.candidates)
    X, names = dataset.X, dataset.feature_names
    if embeddings is not None:
        X, names = read_embeddings(embeddings, table=path, n_rows=n_rows), None
    elif columns.features == ():
        X, names = np.empty((n_rows, 0)), ()
    if X is None:
        raise TableError(
            "has labels only: to learn from embeddings, pass ", Argument("embeddings", ...), path=path
        )
    names = number_names("feature", X.shape[1]) if names is None else names
    labels = {name: getattr(dataset, name) for name in ("candidates", "truth", "label_names")}
    kind: Any = "columns" if embeddings is None else "embeddings"
    ids, notes = tuple(map(str, range(n_rows))), tuple(describe_unlabeled(dataset.candidates))
    return Table(
        path=path,
        X=X,
        feature_names=names,
        feature_kind=kind,
        ids=ids,
        dataset=dataset,
        notes=notes,
        **labels,
    )


@fill_docstring
def write_cleaned_copy(
    table: Table,
    drop: Any,
    target: str | Path,
    *,
    add: Any = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> None:
    """Copy a file of any format without the labels to drop and with those to add, completely or not at all.

    Parameters
    ----------
    table : Table
        What `read_as_table` returned for the file.
    %(cleaned_copy)s

    Warns
    -----
    UserWarning
        If a dropped label is among the true labels that a data set also holds; the copy then has no true labels,
        because a data set cannot hold a true label that is not a candidate.

    See Also
    --------
    skpml.tables.write_cleaned : The same for tables alone.
    """
    if table.dataset is None:
        write_cleaned(table, drop, target, add=add, overwrite=overwrite, progress=progress)
        return
    changes, dataset = check_changes(table, drop, add), table.dataset
    check_suffix(table.path, Path(target))
    candidates = np.where(changes != 0, changes > 0, dataset.candidates).astype(np.uint8)
    truth = dataset.truth
    if truth is not None and np.array_equal(truth, dataset.candidates):
        # The file holds one matrix of labels, which is the one to be cleaned.
        truth = candidates
    elif truth is not None and (truth > candidates).any():
        problem = (
            "some of the dropped labels are among the true labels of the file; the copy has no true labels"
        )
        warnings.warn(problem, UserWarning, stacklevel=2)
        truth = None
    cleaned = replace(dataset, candidates=candidates, truth=truth, on_empty="ignore")
    write_dataset(cleaned, target, overwrite=overwrite)


def _table_columns(dataset: PartialDataset, style: TableStyle, separator: str) -> dict[str, Any]:
    """Return the columns of a data set: features, then candidates unless they equal the truth, then the truth."""
    n_features = 0 if dataset.X is None else dataset.X.shape[1]
    names = list(dataset.feature_names or number_names("feature", n_features))
    matrices = {}
    if dataset.truth is None or not np.array_equal(dataset.candidates, dataset.truth):
        matrices[CANDIDATE_COLUMN, CANDIDATE_PREFIX] = dataset.candidates
    if dataset.truth is not None:
        matrices[TRUTH_COLUMN, TRUTH_PREFIX] = dataset.truth
    label_columns: dict[str, Any] = {}
    bad = [name for name in dataset.label_names if separator in name or name != name.strip() or not name]
    if style == "tags" and bad:
        raise TableError(
            f"labels that are empty, hold {separator!r} or begin or end with blanks cannot be tags: "
            f"{format_names(bad)}; pass ", Argument("style", "flags"), " or another ", Argument("separator", ...),
            value=tuple(bad),
        )  # fmt: skip
    for (column, prefix), matrix in matrices.items():
        if style == "flags":
            label_columns |= {prefix + label: matrix[:, j] for j, label in enumerate(dataset.label_names)}
        elif style == "tags":
            listed = dataset.label_names
            label_columns[column] = [separator.join(listed[j] for j in np.flatnonzero(row)) for row in matrix]
        else:
            raise ValueError(f'style must be "flags" or "tags", got {style!r}')
    if twice := find_repeated(names + list(label_columns)):
        raise ValueError(f"columns need different names, found twice: {format_names(twice)}")
    if odd := [name for name in names if looks_like_labels(Columns(), name)]:
        raise ValueError(f"features cannot be distinguished from labels by their names: {format_names(odd)}")
    dense = dataset.X.toarray() if hasattr(dataset.X, "toarray") else dataset.X
    return {name: dense[:, j] for j, name in enumerate(names)} | label_columns
