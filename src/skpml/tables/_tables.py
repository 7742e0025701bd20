"""Reading labelled tables: CSV and Parquet files as people have them, and every data set file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skpml.datasets._errors import DatasetFormatError
from skpml.datasets._files import READERS, read_dataset
from skpml.datasets._validation import default_feature_names, listed
from skpml.io import FeatureKind
from skpml.tables._collecting import Content, untagged_note
from skpml.tables._columns import TABLE_SUFFIXES, read_columns, refuse_given
from skpml.tables._dialect import Dialect
from skpml.tables._embeddings import read_embeddings_of
from skpml.tables._labelled_table import LabelledTable
from skpml.tables._records import Progress
from skpml.tables._roles import TAG_SEPARATOR, ColumnChoice, Roles
from skpml.tables._text_features import FewWordsError, fit_text_features, text_column

OTHER_SUFFIXES = tuple(suffix for suffix in READERS if suffix not in TABLE_SUFFIXES)


def read_table(
    path: str | Path,
    *,
    tags: str | None = None,
    labels: Sequence[str] | None = None,
    text: str | None = None,
    image: str | None = None,
    id: str | None = None,
    features: Sequence[str] | None = None,
    embeddings: str | Path | None = None,
    separator: str | None = None,
    ignore: Sequence[str] = (),
    encoding: str | None = None,
    delimiter: str | None = None,
    quote: str | None = None,
    decimal: str | None = None,
    text_components: int = 200,
    random_state: int = 0,
    reader_options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> LabelledTable:
    """Read a file of labelled rows.

    What a model learns from is, in this order: the `embeddings`, the columns named as `features`, the `text`, or all
    columns that are nothing else. Rows without labels are kept.

    Parameters
    ----------
    path : path-like
        A table (``.csv``, ``.tsv``, ``.txt`` or ``.parquet``) or any other file that
        `skpml.datasets.read_dataset` reads.
    tags : str, optional
        The column that lists the labels of a row, as in ``lake;sea``. By default a column ``tags``, in small letters
        or not, else the candidates that `skpml.datasets.read_csv` finds; never what is called truth.
    labels : sequence of str, optional
        The columns that hold 0 and 1, one a label; for ARFF the attributes that are labels.
    text, image : str, optional
        Columns of text and of paths of images, to be shown to a person.
    id : str, optional
        A column that names the rows.
    features : sequence of str, optional
        Columns of numbers to learn from. An empty list says that nothing will be learnt: only labels and what else is
        named are read, as to apply decisions.
    embeddings : path-like, optional
        An ``.npy`` or ``.npz`` file with a row of numbers for each row of the table.
    separator : str, optional
        What stands between tags; by default ``";"``, and a file that seems to have another one is refused.
    ignore : sequence of str, default=()
        Columns to pass over.
    encoding, delimiter, quote, decimal : str, optional
        How a CSV file is written; see `detect_dialect`, which tells what is not given.
    text_components : int, default=200
        Number of features that are made of texts, at most.
    random_state : int, default=0
        Seed of the reduction of texts.
    reader_options : mapping, optional
        Further options of `skpml.datasets.read_dataset` for files that are no tables.
    progress : callable, optional
        Called as ``progress(done, total, what)`` now and then.

    Returns
    -------
    LabelledTable

    Raises
    ------
    DatasetFormatError
        If the file is not what it should be; it names the file, the line and what would be right.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from skpml.cleaning import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "photos.csv")
    ...     _ = path.write_text("file;warmth;tags\\na.jpg;0,5;sea,sky\\nb.jpg;0,1;sky\\n")
    ...     photos = read_table(path, tags="tags", id="file", separator=",")
    >>> photos
    <LabelledTable 'photos.csv': 2 rows, 1 features (columns), 2 labels>
    >>> print(photos.dialect)
    UTF-8, columns separated by semicolons, cells quoted by double quotes, decimal comma
    >>> photos.candidates.tolist()
    [[1, 1], [0, 1]]
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    choice = ColumnChoice(
        tags=tags,
        labels=_names(labels, "labels"),
        text=text,
        image=image,
        id=id,
        features=_names(features, "features"),
        ignore=_names(ignore, "ignore") or (),
        elsewhere=embeddings is not None,
    )
    written = {"encoding": encoding, "delimiter": delimiter, "quote": quote, "decimal": decimal}
    suffix = path.suffix.lower()
    if suffix in OTHER_SUFFIXES:
        _refuse_unused(suffix, choice, written)
        return _from_dataset(path, choice, embeddings, reader_options)
    if suffix not in TABLE_SUFFIXES:
        known = ", ".join((*TABLE_SUFFIXES, *OTHER_SUFFIXES))
        raise ValueError(f"{path}: unknown suffix {path.suffix!r}; known are {known}")
    if reader_options:
        raise ValueError(f"reader_options do not apply to {suffix} files")
    roles, content, dialect = read_columns(
        path, choice, separator=separator, written=written, progress=progress
    )
    return _assembled(
        path,
        roles,
        content,
        embeddings=embeddings,
        separator=separator,
        dialect=dialect,
        text_components=text_components,
        random_state=random_state,
        progress=progress,
    )


def _names(names: Sequence[str] | None, what: str) -> tuple[str, ...] | None:
    if isinstance(names, str):
        raise ValueError(f"{what} must be a list of columns, got the single string {names!r}")
    return None if names is None else tuple(names)


def _refuse_unused(suffix: str, choice: ColumnChoice, written: dict[str, str | None]) -> None:
    given = {name: getattr(choice, name) for name in ("tags", "text", "image", "id")}
    given["features"] = choice.features or None
    if suffix != ".arff":
        given |= {"labels": choice.labels, "ignore": choice.ignore or None}
    refuse_given(suffix, {**given, **written})


def _from_dataset(
    path: Path,
    choice: ColumnChoice,
    embeddings: str | Path | None,
    reader_options: Mapping[str, Any] | None,
) -> LabelledTable:
    options = dict(reader_options or {})
    if choice.labels is not None:
        options["label_attributes"] = choice.labels
    if choice.ignore:
        options["ignore"] = choice.ignore
    dataset = read_dataset(path, **{"empty_rows": "ignore", "empty_labels": "ignore", **options})
    n_rows = len(dataset.candidates)
    X, names = dataset.X, dataset.feature_names
    if embeddings is not None:
        X, names = read_embeddings_of(path, embeddings, n_rows), None
    elif choice.features == ():
        X, names = np.empty((n_rows, 0)), ()
    if X is None:
        raise DatasetFormatError(
            path, "has labels only: pass a file of embeddings (embeddings=…) to learn from"
        )
    return LabelledTable(
        path=path,
        X=X,
        candidates=dataset.candidates,
        label_names=dataset.label_names,
        feature_names=default_feature_names(X.shape[1]) if names is None else names,
        feature_kind="columns" if embeddings is None else "embeddings",
        ids=_row_numbers(n_rows),
        dataset=dataset,
        notes=tuple(untagged_note(dataset.candidates)),
    )


def _row_numbers(n_rows: int) -> tuple[str, ...]:
    return tuple(map(str, range(n_rows)))


def _assembled(
    path: Path,
    roles: Roles,
    content: Content,
    *,
    embeddings: str | Path | None,
    separator: str | None,
    dialect: Dialect | None,
    text_components: int,
    random_state: int,
    progress: Progress | None,
) -> LabelledTable:
    assert content.candidates is not None
    n_rows = len(content.candidates)
    kind: FeatureKind
    transformer = None
    if embeddings is not None:
        kind, X = "embeddings", read_embeddings_of(path, embeddings, n_rows)
    elif roles.features:
        kind, X = "columns", content.numbers
    elif roles.text is None:
        kind, X = "columns", np.empty((n_rows, 0))
    else:
        assert content.texts is not None
        if progress is not None:
            progress(0, None, "turning texts into features")
        kind = "text"
        transformer = _text_transformer(path, roles.text, content.texts, text_components, random_state)
        X = transformer.transform(text_column(content.texts))
    content.candidates.flags.writeable = False
    return LabelledTable(
        path=path,
        X=X,
        candidates=content.candidates,
        label_names=content.label_names,
        feature_names=roles.features if kind == "columns" else _numbered(kind, X.shape[1]),
        feature_kind=kind,
        ids=content.ids if content.ids is not None else _row_numbers(n_rows),
        texts=content.texts,
        images=content.images,
        text_name=roles.text,
        id_name=roles.id,
        labels=roles.labels,
        separator=TAG_SEPARATOR if separator is None else separator,
        dialect=dialect,
        text_transformer=transformer,
        unused=roles.unused,
        notes=(*_passed_over(roles), *untagged_note(content.candidates), *content.notes),
    )


def _passed_over(roles: Roles) -> list[str]:
    if not roles.other_labels:
        return []
    names = listed([repr(name) for name in roles.other_labels])
    return [f"what by its name holds other labels is passed over: {names}"]


def _numbered(kind: str, count: int) -> tuple[str, ...]:
    return tuple(f"{kind}_{column}" for column in range(count))


def _text_transformer(
    path: Path, column: str, texts: tuple[str, ...], n_components: int, random_state: int
) -> Any:
    try:
        return fit_text_features(texts, n_components=n_components, random_state=random_state)
    except FewWordsError as error:
        raise DatasetFormatError(path, f"column {column!r} is nothing to learn from: {error}") from error
