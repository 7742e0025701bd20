"""A copy of a labelled file without the labels that were found wrong, and with nothing else changed."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

from skpml._writing import replacing
from skpml.datasets._files import write_dataset
from skpml.datasets._partial_dataset import PartialDataset
from skpml.tables._cleaned_csv import copy_csv
from skpml.tables._cleaned_parquet import copy_parquet
from skpml.tables._labelled_table import LabelledTable
from skpml.tables._records import Progress
from skpml.tables._removing import DropMask


def write_cleaned(
    source: str | Path,
    table: LabelledTable,
    drop: Any,
    target: str | Path,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> None:
    """Copy a file without the labels that are to be dropped: whole, or not at all.

    Every other cell of a CSV file stays as it is written, to the byte: delimiters, quotes, encoding, line endings,
    order of columns and of the tags that remain. A label column gets the opposite of what stands there, as in 0 for 1, -1
    for 1 where that is how the column says no, and FALSE for TRUE. A Parquet file keeps its schema, its metadata and all
    other columns. Any other file is written by `skpml.datasets.write_dataset`.

    Parameters
    ----------
    source : path-like
        The file that the table was read from.
    table : LabelledTable
        What `read_table` returned for it.
    drop : array-like of bool of shape (n_rows, n_labels)
        True where a label is to be dropped; the row must have it.
    target : path-like
        File to write, with the same suffix.
    overwrite : bool, default=False
        Replace a file that exists.
    progress : callable, optional
        Called as ``progress(done, total, what)`` now and then.

    Raises
    ------
    DatasetFormatError
        If the file was changed since the table was read.
    FileExistsError
        If the target exists and `overwrite` is False.

    Warns
    -----
    UserWarning
        If a dropped label is among the true ones that a data set also holds; they are then left out, for a data set
        cannot hold a true label that is no candidate.
    """
    source, target = Path(source), Path(target)
    mask = _checked(drop, table)
    check_suffix(source, target)
    if table.dataset is not None:
        write_dataset(_without(table.dataset, mask), target, overwrite=overwrite)
        return
    with replacing(target, overwrite=overwrite) as (temporary,):
        if table.dialect is not None:
            copy_csv(source, table, mask, temporary, progress)
        else:
            copy_parquet(source, table, mask, temporary, progress)


def check_suffix(source: Path, target: Path) -> None:
    """Raise unless a copy is named as what it will be."""
    if source.suffix.lower() != target.suffix.lower():
        raise ValueError(
            f"{target}: the copy has the format of {source.name}, so its name ends in {source.suffix}"
        )


def _checked(drop: Any, table: LabelledTable) -> DropMask:
    mask = np.asarray(drop)
    if mask.dtype != np.bool_ or mask.shape != table.candidates.shape:
        raise ValueError(
            f"drop must be a boolean matrix of shape {table.candidates.shape}, got {mask.dtype} of shape {mask.shape}"
        )
    odd = mask & (table.candidates == 0)
    if odd.any():
        row, label = np.argwhere(odd)[0]
        raise ValueError(
            f"drop is True for row {row} and label {table.label_names[label]!r}, which the row does not have"
        )
    return mask


def _without(dataset: PartialDataset, mask: DropMask) -> PartialDataset:
    candidates = np.where(mask, 0, dataset.candidates).astype(np.uint8)
    truth = dataset.truth
    if truth is not None and np.array_equal(truth, dataset.candidates):
        # The file holds one matrix of labels, which is the one to be cleaned.
        truth = candidates
    elif truth is not None and (truth > candidates).any():
        warnings.warn(
            "some of the labels that are dropped are among the true labels of the file; those are left out of the copy",
            UserWarning,
            stacklevel=3,
        )
        truth = None
    return PartialDataset(
        dataset.X,
        candidates,
        truth,
        dataset.label_names,
        dataset.feature_names,
        dataset.name,
        dataset.description,
        empty_rows="ignore",
        empty_labels="ignore",
    )
