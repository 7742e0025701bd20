"""Rows without labels, for a model that is fitted already: the columns that it wants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skpml.tables._columns import TABLE_SUFFIXES, read_columns, refuse_given
from skpml.tables._dialect import Dialect
from skpml.tables._embeddings import EMBEDDING_SUFFIXES, read_embeddings
from skpml.tables._records import Progress
from skpml.tables._roles import ColumnChoice
from skpml.tables._text_features import text_column

ROW_SUFFIXES = (*TABLE_SUFFIXES, *EMBEDDING_SUFFIXES)


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """Rows to predict.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
        What a model takes: numbers, or a single column of texts.
    ids : tuple of str or None
        A name for each row, where a column of names was asked for.
    dialect : Dialect or None
        How a CSV file is written; None for any other.
    notes : tuple of str
        What a person should know about the file, a sentence each.
    """

    X: Any
    ids: tuple[str, ...] | None = None
    dialect: Dialect | None = None
    notes: tuple[str, ...] = ()


def read_rows(
    path: str | Path,
    *,
    features: Sequence[str] | None = None,
    text: str | None = None,
    id: str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    quote: str | None = None,
    decimal: str | None = None,
    progress: Progress | None = None,
) -> Rows:
    """Read rows for a fitted model; they need no labels.

    Parameters
    ----------
    path : path-like
        A table (``.csv``, ``.tsv``, ``.txt`` or ``.parquet``), or an ``.npy`` or ``.npz`` file of embeddings.
    features : sequence of str, optional
        The columns of numbers that the model wants, in its order; others are passed over.
    text : str, optional
        The column of texts that the model wants. A table needs either this or `features`, embeddings neither.
    id : str, optional
        A column that names the rows; here names may repeat.
    encoding, delimiter, quote, decimal : str, optional
        How a CSV file is written; see `detect_dialect`, which tells what is not given.
    progress : callable, optional
        Called as ``progress(done, total, what)`` now and then.

    Returns
    -------
    Rows

    Raises
    ------
    DatasetFormatError
        If the file is not what it should be; it names the file, the line and what would be right.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from skpml.cleaning import read_rows
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "new.csv")
    ...     _ = path.write_text("file;red;green\\nc.jpg;0,5;0,25\\nd.jpg;1;0\\n")
    ...     new = read_rows(path, features=["green", "red"], id="file")
    >>> new.X.tolist()
    [[0.25, 0.5], [0.0, 1.0]]
    >>> new.ids
    ('c.jpg', 'd.jpg')
    """
    path, suffix = Path(path), Path(path).suffix.lower()
    if suffix not in ROW_SUFFIXES:
        raise ValueError(f"{path}: unknown suffix {path.suffix!r}; known are {', '.join(ROW_SUFFIXES)}")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    written = {"encoding": encoding, "delimiter": delimiter, "quote": quote, "decimal": decimal}
    if suffix in EMBEDDING_SUFFIXES:
        refuse_given(suffix, {"features": features, "text": text, "id": id, **written})
        return Rows(X=read_embeddings(path))
    if (features is None) == (text is None):
        raise ValueError(f"{path}: name either the features or the text that the model wants")
    choice = ColumnChoice(
        features=None if features is None else tuple(features), text=text, id=id, labelled=False
    )
    _, content, dialect = read_columns(path, choice, separator=None, written=written, progress=progress)
    X = content.numbers if content.texts is None else text_column(content.texts)
    return Rows(X=X, ids=content.ids, dialect=dialect, notes=tuple(content.notes))
