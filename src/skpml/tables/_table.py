"""Tables with labels: one class, and one reader for CSV, TSV, TXT and Parquet files."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from skpml.tables._columns import (
    CANDIDATE_COLUMN,
    TAG_COLUMN,
    TRUTH_COLUMN,
    Columns,
    Resolved,
    resolve_columns,
    resolve_rows,
    split_tags,
)
from skpml.tables._csv import BadCell, CsvBatch, CsvRows, Progress
from skpml.tables._dialect import Dialect, detect_dialect
from skpml.tables._errors import (
    Argument,
    TableError,
    check_file,
    format_names,
    quote_text,
    refuse_arguments,
)
from skpml.tables._features import EMBEDDING_SUFFIXES, as_text_column, fit_text_features, read_embeddings
from skpml.tables._parquet import ParquetBatch, ParquetRows

TEXT_SUFFIXES = (".csv", ".tsv", ".txt")
TABLE_SUFFIXES = (*TEXT_SUFFIXES, ".parquet")
TAG_SEPARATOR = ";"
LabelMatrix = NDArray[np.uint8]
_SEPARATORS = ",;|/\t"
_MISSING = ("", "nan", "na", "null", "none", "inf", "-inf")
# More cells than this are not labels of rows; the column holds something else, such as text.
_MOST_CELLS = 1 << 31


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Table:
    """Rows of a file: features, labels, and what a person needs to judge them.

    Attributes
    ----------
    path : Path
        The file.
    X : ndarray or CSR array of shape (n_rows, n_features)
        What a model learns from: numbers, or a single column of texts for a fitted model of texts.
    candidates : ndarray of uint8 of shape (n_rows, n_labels) or None
        1 where the row carries the label; None where labels were not read.
    truth : ndarray of uint8 of shape (n_rows, n_labels) or None
        1 where the label is true; None where true labels were not read.
    label_names, feature_names : tuple of str
        Names of the columns of `candidates` and of `X`.
    feature_kind : {"columns", "text", "embeddings"}
        Where `X` comes from.
    ids : tuple of str
        A name for each row: from the id column, else its number, counted from 0.
    texts, images : tuple of str or None
        What to show a person for each row, where there is such a column.
    columns : Columns
        What each column of the file holds.
    separator : str
        Separator of tags.
    dialect : Dialect or None
        How a text file is written; None for other files.
    text_transformer : sklearn.pipeline.Pipeline or None
        What made `X` from texts, fitted; it takes a table of one column of text.
    dataset : object or None
        The data set of a file that is not a table.
    unused : tuple of str
        Columns that were not named and are not read, such as those beside a column of texts.
    notes : tuple of str
        What a person should know about the file, one sentence each.

    See Also
    --------
    skpml.tables.read_table : Reads a table.
    skpml.tables.write_cleaned : Copies the file without some labels.
    """

    path: Path
    X: Any
    candidates: Any = None
    truth: Any = None
    label_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    feature_kind: Literal["columns", "text", "embeddings"] = "columns"
    ids: tuple[str, ...] = ()
    texts: tuple[str, ...] | None = None
    images: tuple[str, ...] | None = None
    columns: Columns = field(default_factory=Columns)
    separator: str = TAG_SEPARATOR
    dialect: Dialect | None = None
    text_transformer: Any = None
    dataset: Any = None
    unused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        labels = "" if self.candidates is None else f", {len(self.label_names)} labels"
        n_rows, n_features = self.X.shape
        return (
            f"<Table {self.path.name!r}: {n_rows} rows, {n_features} features ({self.feature_kind}){labels}>"
        )


def read_table(
    path: str | Path,
    *,
    columns: Columns | None = None,
    dialect: Dialect | None = None,
    separator: str | None = None,
    embeddings: str | Path | None = None,
    labelled: bool = True,
    truth: bool = False,
    text_components: int | None = 200,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Table:
    """Read a CSV, TSV, TXT or Parquet file.

    Features are, in this order: the `embeddings`, the columns named as features, the text, or all columns that are
    nothing else. Rows without labels are kept. A missing value of a column of tags means no tag.

    Parameters
    ----------
    path : path-like
        A ``.csv``, ``.tsv``, ``.txt`` or ``.parquet`` file; with ``labelled=False`` also an ``.npy`` or ``.npz`` file of
        embeddings.
    columns : Columns, optional
        Which column holds what; what is not named is found automatically.
    dialect : Dialect, optional
        How a text file is written; what is None is detected.
    separator : str, optional
        Separator of tags. By default ``";"``, and a file that seems to have another one is refused.
    embeddings : path-like, optional
        An ``.npy`` or ``.npz`` file with a row of numbers for each row of the table.
    labelled : bool, default=True
        Whether there are labels to read. If False, only columns that are named are read, for a fitted model; texts are
        not turned into features, and ids may repeat.
    truth : bool, default=False
        Also read true labels that are found by name. If there are no other labels, they are the candidates too, and
        the table may lack features. If False, only true labels that are named are read.
    text_components : int or None, default=200
        Largest number of features that are made from texts; None leaves them as a column of texts.
    random_state : int, default=0
        Seed of the reduction of texts.
    progress : callable, optional
        Called as ``progress(done, total, what)`` now and then.

    Returns
    -------
    Table
        The rows.

    Raises
    ------
    TableError
        If the file is not what it should be; it names the file, the line, the column and what would be right.

    See Also
    --------
    skpml.datasets.read_dataset : Reads a data set from a file of any supported format.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from skpml.tables import Columns, read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "photos.csv")
    ...     _ = path.write_text("file;warmth;tags\\na.jpg;0,5;sea,sky\\nb.jpg;0,1;sky\\n")
    ...     photos = read_table(path, columns=Columns(id="file"), separator=",")
    >>> photos
    <Table 'photos.csv': 2 rows, 1 features (columns), 2 labels>
    >>> print(photos.dialect)
    UTF-8, columns separated by semicolons, cells quoted by double quotes, decimal comma
    >>> photos.candidates.tolist()
    [[1, 1], [0, 1]]
    """
    path, columns = Path(path), columns or Columns()
    if embeddings is not None and columns.features is not None:
        raise TableError(
            Argument("features"), " and ", Argument("embeddings"), " exclude each other: a model learns from one of them"
        )  # fmt: skip
    if separator == "":
        raise TableError(Argument("separator"), " must not be empty", value="", expected="such as ';'")
    suffix = path.suffix.lower()
    known = TABLE_SUFFIXES if labelled else (*TABLE_SUFFIXES, *EMBEDDING_SUFFIXES)
    if suffix not in known:
        raise TableError(
            f"unknown suffix {path.suffix!r}; known are {', '.join(known)}",
            path=path,
            value=suffix,
            expected=known,
        )
    check_file(path)
    if suffix in EMBEDDING_SUFFIXES:
        refuse_arguments(suffix, _given(columns, dialect))
        X = read_embeddings(path)
        return Table(
            path=path, X=X, feature_names=number_names("embeddings", X.shape[1]), feature_kind="embeddings",
            ids=number_rows(len(X)),
        )  # fmt: skip
    if not labelled and (columns.features is None) == (columns.text is None):
        raise TableError(
            "name either the ", Argument("features"), " or the ", Argument("text"), " of the model", path=path
        )
    rows: CsvRows | ParquetRows
    if suffix in TEXT_SUFFIXES:
        dialect = detect_dialect(
            path,
            dialect,
            columns=columns.named,
            numbers=columns.features,
            not_numbers=(*columns.not_numbers, TAG_COLUMN, CANDIDATE_COLUMN, TRUTH_COLUMN),
            is_known=columns.looks_like_labels if labelled else None,
        )
        rows = CsvRows(path, dialect, progress)
    else:
        refuse_arguments(suffix, _given(None, dialect))
        rows = ParquetRows(path, progress)
    resolved = (
        resolve_columns(path, rows.header, columns, truth=truth, embeddings=embeddings is not None)
        if labelled
        else resolve_rows(path, rows.header, columns)
    )
    content = _Content(path, resolved, separator, labelled=labelled)
    for batch in rows.batches(resolved.read):
        content.add(batch)
    if not content.n_rows:
        raise TableError("has a header but no rows", path=path)
    return _assemble(
        content,
        dialect=dialect if suffix in TEXT_SUFFIXES else None,
        embeddings=embeddings,
        text_components=text_components if labelled else None,
        random_state=random_state,
        notes=rows.notes,
        progress=progress,
    )


def _given(columns: Columns | None, dialect: Dialect | None) -> dict[str, Any]:
    """Arguments about columns and dialect that were given, by name."""
    return {
        name: getattr(part, name)
        for part, names in (
            (columns, ("tags", "labels", "true_tags", "true_labels", "text", "image", "id", "features", "ignore")),
            (dialect, ("encoding", "delimiter", "quote", "decimal")),
        )
        if part is not None
        for name in names
        if getattr(part, name) not in (None, ())
    }  # fmt: skip


def _assemble(
    content: _Content,
    *,
    dialect: Dialect | None,
    embeddings: str | Path | None,
    text_components: int | None,
    random_state: int,
    notes: Sequence[str],
    progress: Progress | None,
) -> Table:
    path, columns, texts = content.path, content.resolved.columns, content.shown.get("text")
    candidates, truth, label_names = content.labels()
    X, names, transformer = content.numbers(), tuple(columns.features or ()), None
    kind: Literal["columns", "text", "embeddings"] = "columns"
    if embeddings is not None:
        kind, X = "embeddings", read_embeddings(embeddings, table=path, n_rows=content.n_rows)
    elif not names and texts is not None:
        kind, X = "text", as_text_column(texts)
        if text_components is not None:
            if progress is not None:
                progress(0, None, "turning texts into features")
            try:
                transformer = fit_text_features(
                    texts, n_components=text_components, random_state=random_state
                )
            except TableError as error:
                problem = f"column {columns.text!r} cannot be learned from: {error.problem}"
                raise TableError(problem, path=path, column=columns.text) from error
            X = transformer.transform(X)
    if kind != "columns":
        names = number_names(kind, X.shape[1])
    for matrix in (candidates, truth):
        if matrix is not None:
            matrix.flags.writeable = False
    return Table(
        path=path,
        X=X,
        candidates=candidates,
        truth=truth,
        label_names=label_names,
        feature_names=names,
        feature_kind=kind,
        ids=number_rows(content.n_rows) if columns.id is None else tuple(content.shown["id"]),
        texts=None if texts is None else tuple(texts),
        images=tuple(content.shown["image"]) if "image" in content.shown else None,
        columns=columns,
        separator=content.separator,
        dialect=dialect,
        text_transformer=transformer,
        unused=content.resolved.unused,
        notes=(*content.notes(candidates), *notes),
    )


class _Content:
    """What the columns of a table hold, collected batch by batch without the text of the file."""

    def __init__(self, path: Path, resolved: Resolved, separator: str | None, *, labelled: bool) -> None:
        self.path, self.resolved, self.n_rows = path, resolved, 0
        self.separator = TAG_SEPARATOR if separator is None else separator
        self.shown: dict[str, list[str]] = {
            role: [] for role in ("text", "image", "id") if getattr(resolved.columns, role) is not None
        }
        columns, vocabulary = resolved.columns, {name: j for j, name in enumerate(resolved.label_names or ())}
        self._numbers, self._dtype = bytearray(), np.dtype(np.float64)
        self._lines: array[int] | None = array("q")
        self._first: dict[str, int] | None = {} if labelled else None
        self._vocabulary, self._fixed = vocabulary, resolved.label_names is not None
        self._flags = {"labels": bytearray(), "true_labels": bytearray()}
        self._tags = {
            role: _TagCollector(path, getattr(columns, role), separator, vocabulary, fixed=self._fixed)
            for role in ("tags", "true_tags")
            if getattr(columns, role) is not None
        }

    def add(self, batch: CsvBatch | ParquetBatch) -> None:
        """Take the rows of a batch."""
        columns = self.resolved.columns
        if batch.lines is None:
            self._lines = None
        elif self._lines is not None:
            self._lines.extend(batch.lines)
        try:
            for role, collector in self._tags.items():
                for row, cell in enumerate(batch.tags(getattr(columns, role))):
                    collector.add(cell, lambda row=row: self._place(self.n_rows + row))  # type: ignore[misc]
            for role, flags in self._flags.items():
                if getattr(columns, role):
                    flags.extend(batch.flags(getattr(columns, role)).tobytes())
            if columns.features:
                matrix = batch.numbers(columns.features)
                self._dtype = (
                    matrix.dtype if matrix.dtype in (np.float32, np.float64) else np.dtype(np.float64)
                )
                self._numbers.extend(np.ascontiguousarray(matrix, dtype=self._dtype).tobytes())
        except BadCell as bad:
            raise self._bad_cell(bad) from None
        for role, values in self.shown.items():
            values.extend(batch.texts(getattr(columns, role)))
        if "id" in self.shown and self._first is not None:
            self._check_ids(self._first)
        self.n_rows += batch.n_rows

    def numbers(self) -> Any:
        """The features."""
        n_features = len(self.resolved.columns.features or ())
        if not n_features:
            return np.empty((self.n_rows, 0))
        return np.frombuffer(self._numbers, dtype=self._dtype).reshape(-1, n_features)

    def labels(self) -> tuple[LabelMatrix | None, LabelMatrix | None, tuple[str, ...]]:
        """Candidates, true labels and the names of the labels."""
        columns = self.resolved.columns
        if not (columns.label_columns or columns.true_label_columns):
            return None, None, ()
        for collector in self._tags.values():
            collector.check_separator()
        names = tuple(self._vocabulary if self._fixed else sorted(self._vocabulary))
        if not names:
            column = (*columns.label_columns, *columns.true_label_columns)[0]
            raise TableError(f"column {column!r} holds no tag in any row", path=self.path, column=column)
        candidates, truth = (
            self._tags[tags].matrix(names) if tags in self._tags else self._flag_matrix(flags)
            for tags, flags in (("tags", "labels"), ("true_tags", "true_labels"))
        )
        if candidates is None:
            return truth, truth, names
        if truth is not None:
            self._check_truth(candidates, truth, names)
        return candidates, truth, names

    def notes(self, candidates: LabelMatrix | None) -> Iterator[str]:
        """What a person should know about the labels."""
        if others := self.resolved.other_labels:
            yield f"ignored other label columns: {format_names([repr(name) for name in others])}"
        if candidates is not None:
            yield from describe_unlabelled(candidates)
        for collector in self._tags.values():
            yield from collector.notes()

    def _flag_matrix(self, role: str) -> LabelMatrix | None:
        if not getattr(self.resolved.columns, role):
            return None
        width = len(getattr(self.resolved.columns, role))
        return np.frombuffer(self._flags[role], dtype=np.uint8).reshape(-1, width)

    def _place(self, row: int) -> dict[str, Any]:
        """Where a row is, as arguments of TableError."""
        return {"path": self.path, "row": row, "line": None if self._lines is None else self._lines[row]}

    def _check_ids(self, first: dict[str, int]) -> None:
        """Raise if a row has the id of an earlier one; decisions about rows go by ids."""
        ids = self.shown["id"]
        for row in range(self.n_rows, len(ids)):
            earlier = first.setdefault(ids[row], row)
            if earlier != row:
                where = self._place(earlier)
                raise TableError(
                    f"column {self.resolved.columns.id!r} holds {quote_text(ids[row])} here and in "
                    f"{'row' if where['line'] is None else 'line'} "
                    f"{earlier if where['line'] is None else where['line']}: ids must differ; correct one, or omit ",
                    Argument("id", ...),
                    " to go by the number of the row",
                    **self._place(row),
                    column=self.resolved.columns.id,
                    value=ids[row],
                )

    def _bad_cell(self, bad: BadCell) -> TableError:
        advice = bad.advice
        text = "" if bad.value is None else str(bad.value)
        if bad.expected == "a finite number":
            ignore = Argument("ignore", [bad.column])
            tags = split_tags(text, self.separator)
            columns = self.resolved.columns
            if self._first is None:
                advice = advice or ("the model needs a number there: fill it in or drop the row",)
            elif advice:
                advice = (*advice, ", or pass ", ignore)
            elif text.strip().lower() in _MISSING:
                advice = ("fill it in, drop the row, or leave the column out by ", ignore)
            elif tags and not columns.true_label_columns and set(tags) <= set(self._vocabulary):
                advice = ("if it lists true labels, pass ", Argument("true_tags", bad.column),
                          "; if the column is not a feature, pass ", ignore)  # fmt: skip
            else:
                advice = ("if the column is not a feature, pass ", ignore)
        found = "no value" if bad.value is None else quote_text(bad.value)
        return TableError(
            f"column {bad.column!r} holds {found}, expected {bad.expected}",
            *(("; ", *advice) if advice else ()),
            **self._place(self.n_rows + bad.row),
            column=bad.column,
            value=bad.value,
            expected=bad.expected,
        )

    def _check_truth(self, candidates: LabelMatrix, truth: LabelMatrix, names: tuple[str, ...]) -> None:
        missing = truth > candidates
        if not missing.any():
            return
        row, label = (int(index) for index in np.argwhere(missing)[0])
        count, columns = int(missing.sum()), self.resolved.columns
        column = columns.true_tags or (columns.true_labels or ())[label]
        hint: tuple[str | Argument, ...] = ()
        if columns.true_tags is not None and not (truth & candidates).any():
            hint = "; is ", Argument("separator", self.separator), " right?"
        raise TableError(
            f"every true label must be a candidate: {names[label]!r} is in column {column!r} but not in "
            f"{columns.tags or (columns.labels or ())[label]!r} "
            f"({count} such {'label' if count == 1 else 'labels'} in the file)",
            *hint,
            **self._place(row),
            column=column,
            value=names[label],
        )


class _TagCollector:
    """Tags of a column as they come, kept as numbers; columns that share labels share the vocabulary."""

    def __init__(
        self, path: Path, column: str, separator: str | None, vocabulary: dict[str, int], *, fixed: bool
    ) -> None:
        self._path, self._column, self._given = path, column, separator
        self._separator = TAG_SEPARATOR if separator is None else separator
        self._number, self._fixed = vocabulary, fixed
        self._tags, self._ends = array("q"), array("q")
        self._separated, self._repeating = 0, 0
        self._otherwise = dict.fromkeys((mark for mark in _SEPARATORS if mark != self._separator), 0)

    def add(self, cell: Any, place: Any) -> None:
        """Take the tags of a row: a text such as ``"lake; sea"``, or a list."""
        if isinstance(cell, str):
            if self._separator in cell:
                self._separated += 1
            else:
                for mark in self._otherwise:
                    if mark in cell:
                        self._otherwise[mark] += 1
            tags = split_tags(cell, self._separator)
        else:
            tags = [tag for value in cell if value is not None and (tag := str(value).strip())]
        if self._fixed:
            for tag in tags:
                if tag not in self._number:
                    raise TableError(
                        f"tag {quote_text(tag)} is not among the labels ({format_names(list(self._number))})",
                        **place(), column=self._column, value=tag, expected=tuple(self._number),
                    )  # fmt: skip
        numbers = [self._number.setdefault(tag, len(self._number)) for tag in tags]
        self._repeating += len(set(numbers)) < len(numbers)
        self._tags.extend(numbers)
        self._ends.append(len(self._tags))

    def check_separator(self) -> None:
        """Raise if the tags seem to have another separator than the default one."""
        if self._given is None and (other := self._likelier_separator()) is not None:
            raise TableError(
                f"no cell of {self._column!r} holds {self._separator!r}, but most hold {other!r}: if that separates "
                "tags, pass ",
                Argument("separator", other),
                ", else pass ",
                Argument("separator", self._separator),
                path=self._path,
                column=self._column,
                value=self._separator,
                expected=other,
            )

    def matrix(self, names: tuple[str, ...]) -> LabelMatrix:
        """0/1 matrix of all rows."""
        n_rows = len(self._ends)
        if n_rows * len(names) > _MOST_CELLS:
            raise TableError(
                f"column {self._column!r} holds {len(names):,} different tags: does it hold tags, separated by "
                f"{self._separator!r} (", Argument("separator", ...), ")?",
                path=self._path, column=self._column, value=len(names),
            )  # fmt: skip
        column = np.empty(len(names), dtype=np.intp)
        column[[self._number[name] for name in names]] = np.arange(len(names))
        ends = np.frombuffer(self._ends, dtype=np.int64)
        rows = np.repeat(np.arange(n_rows), np.diff(ends, prepend=0))
        matrix = np.zeros((n_rows, len(names)), dtype=np.uint8)
        matrix[rows, column[np.frombuffer(self._tags, dtype=np.int64)]] = 1
        return matrix

    def notes(self) -> Iterator[str]:
        """What a person should know about the tags."""
        if self._repeating:
            cells = "cell repeats" if self._repeating == 1 else "cells repeat"
            yield f"{self._repeating:,} {cells} a tag, which counts once"
        if (other := self._likelier_separator()) is not None:
            yield (
                f"no cell of {self._column!r} holds {self._separator!r}, but most hold {other!r}; is the separator right?"
            )

    def _likelier_separator(self) -> str | None:
        """What most cells hold where none holds the separator."""
        other = max(self._otherwise, key=lambda mark: self._otherwise[mark])
        return other if not self._separated and 2 * self._otherwise[other] > len(self._ends) else None


def describe_unlabelled(candidates: LabelMatrix) -> Iterator[str]:
    """Yield a sentence about rows without any label, where there are any."""
    rows = np.flatnonzero(~candidates.any(axis=1))
    if rows.size:
        first = format_names([f"{row:,}" for row in rows])
        yield f"{rows.size:,} {'row has' if rows.size == 1 else 'rows have'} no label (counted from 0: {first})"


def number_rows(count: int) -> tuple[str, ...]:
    """Names of rows without an id column."""
    return tuple(map(str, range(count)))


def number_names(kind: str, count: int) -> tuple[str, ...]:
    """Names of columns that came without: ``feature_0``, ``feature_1``, …"""
    return tuple(f"{kind}_{column}" for column in range(count))
