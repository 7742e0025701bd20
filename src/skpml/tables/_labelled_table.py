"""A labelled table: rows with doubtful labels, and what a model and a person need to judge them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skpml.datasets._partial_dataset import PartialDataset
from skpml.datasets._validation import LabelMatrix
from skpml.io import FeatureKind
from skpml.tables._dialect import Dialect
from skpml.tables._label_columns import Flags, Tags


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LabelledTable:
    """A file of rows with labels, some of which may be wrong.

    Attributes
    ----------
    path : Path
        The file.
    X : ndarray or CSR array of shape (n_rows, n_features)
        What a model learns from.
    candidates : ndarray of uint8 of shape (n_rows, n_labels)
        1 where the row has the label.
    label_names, feature_names : tuple of str
        Names of the columns of `candidates` and of `X`.
    feature_kind : {"columns", "text", "embeddings"}
        Where `X` comes from.
    ids : tuple of str
        A name for each row: of the id column, else its number, counted from 0.
    texts, images : tuple of str or None
        What to show a person for each row, where there is a column of it.
    text_name, id_name : str or None
        Names of the columns of texts and of names of rows.
    labels : Tags, Flags or None
        The columns that hold the labels; None where the file is no table.
    separator : str
        What stands between tags.
    dialect : Dialect or None
        How a CSV file is written; None for any other.
    text_transformer : sklearn.pipeline.Pipeline or None
        What made `X` from texts, fitted; it takes a table of one column of text.
    dataset : PartialDataset or None
        The data set, where the file is no table.
    unused : tuple of str
        Columns that nothing was said about and that are not read, as those beside a column of texts.
    notes : tuple of str
        What a person should know about the file, a sentence each.
    """

    path: Path
    X: Any
    candidates: LabelMatrix
    label_names: tuple[str, ...]
    feature_names: tuple[str, ...]
    feature_kind: FeatureKind
    ids: tuple[str, ...]
    texts: tuple[str, ...] | None = None
    images: tuple[str, ...] | None = None
    text_name: str | None = None
    id_name: str | None = None
    labels: Tags | Flags | None = None
    separator: str = ";"
    dialect: Dialect | None = None
    text_transformer: Any = None
    dataset: PartialDataset | None = None
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        n_rows, n_labels = self.candidates.shape
        return (
            f"<LabelledTable {self.path.name!r}: {n_rows} rows, {self.X.shape[1]} features ({self.feature_kind}), "
            f"{n_labels} labels>"
        )
