"""Tables with labels: one class, and one reader for files of all formats and for data frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpml.tables._columns import (
    Columns,
    Resolved,
    check_file,
    check_known_suffix,
    format_names,
    looks_like_labels,
    name_list_columns,
    no_features,
    number_names,
    parse_number,
    quote_text,
    resolve_columns,
    resolve_rows,
)
from skpml.tables._dialect import Dialect, detect_dialect
from skpml.tables._errors import Argument, TableError, refuse_arguments
from skpml.tables._features import EMBEDDING_SUFFIXES, read_embeddings
from skpml.tables._formats import EXCEL_SUFFIX, TABLE_SUFFIXES, TEXT_SUFFIXES, Batch, Rows, open_rows
from skpml.tables._kinds import ColumnType, FeatureCollector, FeatureKind, Features
from skpml.tables._mixed import Embedder, leave_columns, list_items, made_fields, make_features
from skpml.tables._rows import BadCell, Progress
from skpml.tables._tags import (
    LISTS,
    TAG_SEPARATOR,
    TagCollector,
    choose_spellings,
    count_tags,
    detect_separator,
    find_other_separator,
    find_unknown,
    fold_tag,
    split_tags,
)
from skpml.tables._values import ValueRows, frame_rows

LabelMatrix = NDArray[np.uint8]
# More cells than this are not labels of rows; the column holds something else, such as text.
_MOST_CELLS = 1 << 31
# So are more labels than this if they occur less than twice, on average.
_FEW_LABELS = 1000


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Table:
    """Rows of a file: features, labels, and what a person needs to judge them.

    Parameters
    ----------
    path : Path
        The file.
    X : ndarray or CSR array of shape (n_rows, n_features)
        What a model learns from: numbers, or columns of numbers, categories and texts as they are for a fitted model.
    candidates : ndarray of uint8 of shape (n_rows, n_labels) or None
        1 where the row carries the label; None where labels were not read.
    truth : ndarray of uint8 of shape (n_rows, n_labels) or None
        1 where the label is true; None where true labels were not read.
    label_names, feature_names : tuple of str
        Names of the columns of `candidates` and of `X`.
    feature_kind : {"columns", "text", "mixed", "embeddings"}
        Where `X` comes from: complete columns of numbers, a column of texts, columns of several kinds or with missing
        values, or another file.
    feature_types : dict of str to {"number", "category", "text", "image"}
        What the columns hold that a mixed `X` comes from, in the order that `transformer` takes them.
    views : dict of str to list of int
        Columns of a mixed `X` by their kind, for methods that weight them, as :mod:`skpml.views`.
    n_missing : dict of str to int
        Number of missing values of columns that lack some.
    ids : tuple of str
        A name for each row: from the id column, else its number, counted from 0.
    texts, images : tuple of str or None
        What to show a person for each row, where there is such a column.
    columns : Columns
        What each column of the file holds.
    separator : str
        Separator of tags; ``"[]"`` where cells are lists that are written as text.
    merge_case : bool
        Whether tags that differ in case or in blanks only are one label.
    kept_rows : ndarray of int or None
        Rows of the file that the table has; None if it has all.
    n_file_rows : int
        Number of rows of the file, if the table has only some.
    dialect : Dialect or None
        How a text file is written; None for other files.
    sheet : str or None
        Sheet of an Excel file.
    frame : object or None
        The data frame that was read, if it was none of a file.
    transformer : transformer or None
        What made `X` from texts or from columns of several kinds, fitted; it takes these columns.
    dataset : object or None
        The data set of a file that is not a table.
    unused : dict of str to str
        Columns that are not used, and why, unless the features are named.
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
    feature_kind: FeatureKind = "columns"
    feature_types: dict[str, ColumnType] = field(default_factory=dict)
    views: dict[str, list[int]] = field(default_factory=dict)
    n_missing: dict[str, int] = field(default_factory=dict)
    ids: tuple[str, ...] = ()
    texts: tuple[str, ...] | None = None
    images: tuple[str, ...] | None = None
    columns: Columns = field(default_factory=Columns)
    separator: str = TAG_SEPARATOR
    merge_case: bool = False
    kept_rows: NDArray[np.int64] | None = None
    n_file_rows: int = 0
    dialect: Dialect | None = None
    sheet: str | None = None
    frame: Any = None
    transformer: Any = None
    dataset: Any = None
    unused: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def from_texts(self) -> bool:
        """Whether features of the table come from texts, alone or beside other columns."""
        return self.feature_kind == "text" or "text" in self.feature_types.values()

    def __repr__(self) -> str:
        labels = "" if self.candidates is None else f", {len(self.label_names)} labels"
        size = f"{self.X.shape[0]} rows, {self.X.shape[1]} features ({self.feature_kind})"
        return f"<Table {self.path.name!r}: {size}{labels}>"


def read_table(
    path: Any,
    *,
    columns: Columns | None = None,
    dialect: Dialect | None = None,
    sheet: str | None = None,
    separator: str | None = None,
    merge_case: bool = False,
    skip_untagged: bool = False,
    embeddings: str | Path | None = None,
    labeled: bool = True,
    truth: bool = False,
    only_numbers: bool = False,
    text_components: int | None = 200,
    text_model: str | None = None,
    image_model: str | None = None,
    folder: str | Path | None = None,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Table:
    """Read a table from a file or from a data frame.

    Features are the `embeddings`, or the columns that are named as features, or the text and all columns that are
    nothing else. Columns of few different texts are categories, with a feature each; true and false are 1 and 0. A
    missing number is replaced by the median, and if many are missing, another feature tells where; a missing category
    is one of its own. Columns that are neither named nor of use, such as names or dates, are left out; ``unused`` tells
    why. A column of lists of equally many numbers is as many features. Rows without labels are kept. A missing value of
    a column of tags means no tag.

    Parameters
    ----------
    path : path-like or data frame
        A ``.csv``, ``.tsv``, ``.txt``, ``.parquet``, ``.arrow``, ``.feather``, ``.json``, ``.jsonl``, ``.ndjson`` or
        ``.xlsx`` file; a folder that Hugging Face Datasets has saved; a data frame of pandas or Polars. With
        ``labeled=False`` also an ``.npy`` or ``.npz`` file of embeddings.
    columns : Columns, optional
        Which column holds what; what is not named is found automatically.
    dialect : Dialect, optional
        How a text file is written; what is None is detected.
    sheet : str, optional
        Sheet of an Excel file. By default the only one that is not empty.
    separator : str, optional
        Separator of tags; ``"[]"`` for cells that are lists, as JSON or Python write them. By default it is detected; a
        file in which it is not clear is refused.
    merge_case : bool, default=False
        Whether tags that differ in case or in blanks only are one label, called by the most frequent spelling.
    skip_untagged : bool, default=False
        Whether rows without tags are left out, as not tagged yet. By default they have no label.
    embeddings : path-like, optional
        An ``.npy`` or ``.npz`` file with a row of numbers for each row of the table, or a folder with an ``.npy`` file of
        a vector for each, called as its image, or as its id where there are no images.
    labeled : bool, default=True
        Whether there are labels to read. If False, only columns that are named are read, and the embeddings, for a fitted
        model; texts are not turned into features, and ids may repeat.
    truth : bool, default=False
        Also read true labels that are found by name. If there are no other labels, they are the candidates too, and
        the table may lack features. If False, only true labels that are named are read.
    only_numbers : bool, default=False
        Whether an incomplete column of numbers, or one of categories, is an error.
    text_components : int or None, default=200
        Largest number of features that are made from texts; None leaves texts, categories and missing values as they are.
    text_model : str, optional
        Language model of sentence-transformers that turns texts into features instead of their words: its name or its
        folder. The embeddings are kept beside the file, in a file whose name ends with ``.embeddings.npz``.
    image_model : str, optional
        An ONNX file of a model of images, by which the images are learned from; the embeddings are kept beside the file,
        in a file whose name ends with ``.images.npz``. Without a model, images that are learned from are described by
        their colors and edges.
    folder : path-like, optional
        Where images are and embeddings are kept. By default it is the folder of the file.
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
    frame = None if isinstance(path, (str, PathLike)) else path
    path = Path("data frame" if frame is not None else path)
    columns, suffix = columns or Columns(), path.suffix.lower()
    if embeddings is not None and (columns.features is not None or columns.categories):
        both = Argument("features"), " and ", Argument("embeddings")
        raise TableError(*both, " exclude each other: a model learns from one of them")
    if image_model is not None and columns.image is None:
        needs = Argument("image_model"), " needs a column of images: pass ", Argument("image", ...)
        raise TableError(*needs, path=path, value=image_model)
    if separator == "":
        raise TableError(Argument("separator"), " must not be empty", value="", expected="such as ';'")
    if text_components is not None and text_components < 1:
        problem = f" must be at least 1, got {text_components}"
        raise TableError(Argument("text_components"), problem, value=text_components)
    if frame is None and not path.is_dir():
        check_known_suffix(path, TABLE_SUFFIXES if labeled else (*TABLE_SUFFIXES, *EMBEDDING_SUFFIXES))
        check_file(path)
    if sheet is not None and suffix != EXCEL_SUFFIX:
        raise TableError(Argument("sheet"), " is for Excel files", path=path, value=sheet)
    if suffix in EMBEDDING_SUFFIXES:
        refuse_arguments(suffix, columns, dialect)
        X = read_embeddings(path)
        ids, names = tuple(map(str, range(len(X)))), number_names("embeddings", X.shape[1])
        return Table(path=path, X=X, ids=ids, feature_names=names, feature_kind="embeddings")
    for name in () if labeled else ("tags", "labels", "true_tags", "true_labels", "label_names"):
        if (value := getattr(columns, name)) is not None:
            problem = " does not apply with labeled=False, which reads no labels"
            raise TableError(Argument(name), problem, path=path, value=value)
    learnable = embeddings is not None or columns.features is not None or columns.text is not None
    if not (labeled or learnable or columns.categories):
        either = "the ", Argument("features"), " or the ", Argument("text")
        raise TableError("name ", *either, " of the model", path=path)
    if frame is None and suffix in TEXT_SUFFIXES and not path.is_dir():
        dialect = detect_dialect(
            path, dialect, columns=columns.named, numbers=columns.features, not_numbers=columns.not_numbers,
            is_known=partial(looks_like_labels, columns) if labeled else None,
        )  # fmt: skip
    else:
        refuse_arguments(suffix or "such", dialect)
        dialect = None
    rows: Rows
    rows = (
        open_rows(path, dialect=dialect, sheet=sheet, progress=progress)
        if frame is None
        else frame_rows(frame)
    )
    wanted_features, features_named = tuple(columns.features or ()), columns.features is not None
    columns = name_list_columns(columns, rows.header)
    if labeled:
        resolved = resolve_columns(path, rows.header, columns, truth=truth, embeddings=embeddings is not None)
    else:
        resolved = resolve_rows(path, rows.header, columns)
    content = _Content(
        path, resolved, separator, labeled=labeled, merge_case=merge_case, only_numbers=only_numbers
    )
    for batch in rows.batches(resolved.read or rows.header[:1]):
        content.add(batch)
    if not content.n_rows:
        raise TableError("has a header but no rows", path=path)
    shown = {role: tuple(values) for role, values in content.shown.items()}
    candidates, true, label_names = content.labels()
    features = content.features(label_names)
    learned = list(resolved.learned)
    if embeddings is None:
        # Who gives a model wants it to be used; without one, images are a last resort.
        last_resort = not (features_named or features.used or learned or text_model)
        wanted = {columns.text: text_model is not None, columns.image: image_model is not None or last_resort}
        learned = [name for name, yes in wanted.items() if name is not None and (yes or name in learned)]
    if not (features.used or learned or truth or embeddings is not None) and resolved.guessed:
        raise no_features(path, features.unused)
    elements = [name for name in wanted_features if name not in learned and name not in features.categories]
    if elements and set(features.number_names) >= set(elements):
        # A model names the elements of lists that its file holds.
        features = features.pick_numbers(elements)
    columns = replace(
        resolved.columns,
        features=tuple(name for name in resolved.columns.features or () if name not in features.unused),
        categories=tuple(features.categories),
    )
    home = path.parent if folder is None else Path(folder)
    columns_to_embed = {name: list_items(home, columns, shown, name) for name in learned}
    if embeddings is not None:
        names = shown.get("image", shown.get("id", ()))
        X = read_embeddings(embeddings, table=path, n_rows=content.n_rows, names=names)
        made = made_fields(X, "embeddings", number_names("embeddings", X.shape[1]))
    elif not learned and features.are_plain:
        made = made_fields(features.numbers, "columns", features.number_names)
    elif text_components is None or not labeled:
        made = leave_columns(features, columns_to_embed)
    else:
        embedder = Embedder(
            home / path.name if frame is None else None, content.place, text_components=text_components,
            text_model=text_model, image_model=image_model, random_state=random_state, progress=progress,
        )  # fmt: skip
        made = make_features(
            features, {name: embedder.embed(name, *each) for name, each in columns_to_embed.items()}
        )
    unused = dict.fromkeys(resolved.unused if embeddings is not None else (), "is beside the embeddings")
    table = Table(
        path=path, candidates=candidates, truth=true, label_names=label_names, **made,
        n_missing=features.count_missing(),
        ids=shown.get("id", tuple(map(str, range(content.n_rows)))), texts=shown.get("text"), images=shown.get("image"),
        columns=columns, separator=content.separator, merge_case=merge_case, dialect=dialect,
        sheet=rows.sheet if isinstance(rows, ValueRows) else None, frame=frame, unused=unused | features.unused,
        notes=(*features.describe_missing(), *content.notes(), *rows.notes),
    )  # fmt: skip
    return _skip_untagged(table) if skip_untagged else _note_untagged(table)


def _note_untagged(table: Table) -> Table:
    if table.candidates is None:
        return table
    return replace(table, notes=(*describe_unlabeled(table.candidates), *table.notes))


def _skip_untagged(table: Table) -> Table:
    """Return the rows of a table that have tags."""
    if table.candidates is None:
        return table
    has_tags = table.candidates.any(axis=1)
    rows = np.flatnonzero(has_tags)
    if len(rows) == len(has_tags):
        return table
    skipped = len(has_tags) - len(rows)
    parts: dict[str, Any] = {
        name: tuple(values[row] for row in rows) if isinstance(values, tuple) else values[rows]
        for name in ("X", "candidates", "truth", "ids", "texts", "images")
        if (values := getattr(table, name)) is not None
    }
    rows_are = "1 row without a label is" if skipped == 1 else f"{skipped:,} rows without a label are"
    parts["notes"] = (f"{rows_are} left out", *table.notes)
    return replace(table, kept_rows=rows, n_file_rows=len(has_tags), **parts)


class _Content:
    """What the columns of a table hold, collected batch by batch without the text of the file."""

    def __init__(
        self, path: Path, resolved: Resolved, separator: str | None, *, labeled: bool, merge_case: bool,
        only_numbers: bool,
    ) -> None:  # fmt: skip
        self.path, self.resolved, self.n_rows = path, resolved, 0
        self.separator = TAG_SEPARATOR if separator is None else separator
        columns = resolved.columns
        self.shown: dict[str, list[str]] = {
            role: [] for role in ("text", "image", "id") if getattr(columns, role) is not None
        }
        self._features = FeatureCollector(
            columns.features or (), categories=columns.categories, guessed=resolved.guessed,
            only_numbers=only_numbers, known=not labeled,
        )  # fmt: skip
        self._lines: list[int] = []
        self._first: dict[str, int] | None = {} if labeled else None
        self._flags = {"labels": bytearray(), "true_labels": bytearray()}
        self._tags = {
            role: TagCollector(getattr(columns, role))
            for role in ("tags", "true_tags")
            if getattr(columns, role) is not None
        }
        self._separator_given, self._merge_case, self._n_tags = separator is not None, merge_case, 0

    def add(self, batch: Batch) -> None:
        """Take the rows of a batch."""
        columns = self.resolved.columns
        self._lines.extend(batch.lines)
        try:
            for role, collector in self._tags.items():
                collector.add(batch.tags(getattr(columns, role)))
            for role, flags in self._flags.items():
                if names := getattr(columns, role):
                    flags.extend(batch.flags(names).tobytes())
            self._features.add(batch)
        except BadCell as bad:
            raise self._bad_cell(bad) from None
        for role, values in self.shown.items():
            values.extend(batch.texts(getattr(columns, role)))
        if "id" in self.shown and self._first is not None:
            self._check_ids(self._first)
        self.n_rows += batch.n_rows

    def features(self, label_names: Sequence[str]) -> Features:
        """The columns to learn from."""
        try:
            return self._features.finish(frozenset(label_names), self.separator)
        except BadCell as bad:
            raise self._bad_cell(bad, first=0) from None

    def labels(self) -> tuple[LabelMatrix | None, LabelMatrix | None, tuple[str, ...]]:
        """Candidates, true labels and the names of the labels."""
        columns = self.resolved.columns
        label_columns = (*columns.label_columns, *columns.true_label_columns)
        if not label_columns:
            return None, None, ()
        names, spelling = self._name_labels()
        if not names:
            problem = f"column {label_columns[0]!r} holds no tag in any row"
            raise TableError(problem, path=self.path, column=label_columns[0])
        rarely = len(names) > _FEW_LABELS and self._n_tags < 2 * len(names)
        if (
            self._tags
            and self.resolved.label_names is None
            and (rarely or self.n_rows * len(names) > _MOST_CELLS)
        ):
            column = next(iter(self._tags.values())).column
            raise TableError(
                f"column {column!r} holds {len(names):,} different tags: does it hold tags, separated by "
                f"{self.separator!r} (", Argument("separator", ...), ")?",
                path=self.path, column=column, value=len(names),
            )  # fmt: skip
        candidates, truth = (
            self._tag_matrix(tags, names, spelling) if tags in self._tags else self._flag_matrix(flags)
            for tags, flags in (("tags", "labels"), ("true_tags", "true_labels"))
        )
        if candidates is not None and truth is not None:
            self._check_truth(candidates, truth, names)
        for matrix in (candidates, truth):
            if matrix is not None:
                matrix.flags.writeable = False
        return truth if candidates is None else candidates, truth, names

    def notes(self) -> Iterator[str]:
        """What a person should know about the labels."""
        if others := self.resolved.other_labels:
            yield f"ignored other label columns: {format_names([repr(name) for name in others])}"
        if not self._separator_given and self.separator != TAG_SEPARATOR:
            how = (
                "are lists written as text"
                if self.separator == LISTS
                else f"are separated by {self.separator!r}"
            )
            yield f"tags {how}"
        for collector in self._tags.values():
            if repeating := collector.count_repeating(self.separator):
                yield f"{repeating:,} {'cell repeats' if repeating == 1 else 'cells repeat'} a tag, which counts once"
            if (
                self._separator_given
                and (other := find_other_separator(collector, self.separator)) is not None
            ):
                problem = f"no cell of {collector.column!r} holds {self.separator!r}, but most hold {other!r}"
                yield f"{problem}; is the separator right?"

    def _name_labels(self) -> tuple[tuple[str, ...], dict[str, str]]:
        """Return the labels, and the label of each tag that is spelled in another way."""
        fixed, collectors = self.resolved.label_names, list(self._tags.values())
        if not collectors:
            return fixed or (), {}
        if not self._separator_given:
            self.separator = self._locate(detect_separator, self.path, collectors)
        counts = self._locate(count_tags, collectors, self.separator)
        self._n_tags = counts.total()
        if fixed is None:
            spelling = choose_spellings(counts) if self._merge_case else {}
            return tuple(sorted({spelling.get(tag, tag) for tag in counts})), spelling
        folded = {fold_tag(name): name for name in fixed} if self._merge_case else {}
        known = {name: place for place, name in enumerate(fixed)}
        spelling = {tag: folded.get(fold_tag(tag), tag) for tag in counts if tag not in known}
        for collector in collectors:
            if (unknown := find_unknown(collector, self.separator, known, spelling)) is not None:
                row, tag, expected = unknown
                raise self._bad_cell(BadCell(collector.column, row, tag, expected), first=0)
        return fixed, spelling

    def _locate(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the tags, and name the line in its errors."""
        try:
            return function(*arguments)
        except TableError as error:
            if error.row is not None and self._lines:
                error.line = self._lines[error.row]
                error.args = (error.describe(str),)
            raise
        except ValueError as error:
            text = str(error)
            collector = next(each for each in self._tags.values() if text in each.texts())
            bad = BadCell(collector.column, collector.first_row(text), text, 'a list such as ["a", "b"]')
            raise self._bad_cell(bad, first=0) from None

    def _tag_matrix(self, role: str, names: tuple[str, ...], spelling: dict[str, str]) -> LabelMatrix:
        """0/1 matrix of all rows."""
        collector, place = self._tags[role], {name: column for column, name in enumerate(names)}
        cells = collector.tags(self.separator)
        distinct = np.zeros((len(cells), len(names)), dtype=np.uint8)
        columns = [place[spelling.get(tag, tag)] for tags in cells for tag in tags]
        distinct[np.repeat(np.arange(len(cells)), [len(tags) for tags in cells]), columns] = 1
        return distinct[collector.rows]

    def _flag_matrix(self, role: str) -> LabelMatrix | None:
        names = getattr(self.resolved.columns, role)
        return np.frombuffer(self._flags[role], dtype=np.uint8).reshape(-1, len(names)) if names else None

    def place(self, row: int) -> dict[str, Any]:
        """Where a row is, as arguments of TableError."""
        return {"path": self.path, "row": row, "line": self._lines[row] if self._lines else None}

    def _check_ids(self, first: dict[str, int]) -> None:
        """Raise if a row has the id of an earlier one; decisions about rows go by ids."""
        ids, column = self.shown["id"], self.resolved.columns.id
        for row in range(self.n_rows, len(ids)):
            if (earlier := first.setdefault(ids[row], row)) != row:
                where = f"line {self._lines[earlier]}" if self._lines else f"row {earlier}"
                raise TableError(
                    f"column {column!r} holds {quote_text(ids[row])} here and in {where}: ids must differ; correct one, "
                    "or omit ", Argument("id", ...), " to go by the number of the row",
                    **self.place(row), column=column, value=ids[row],
                )  # fmt: skip

    def _bad_cell(self, bad: BadCell, *, first: int | None = None) -> TableError:
        """Return the error about a cell; rows count from the present batch, or from a given one."""
        advice: tuple[str | Argument, ...] = bad.advice
        text = "" if bad.value is None else str(bad.value)
        if bad.expected == "a finite number":
            ignore = Argument("ignore", [bad.column])
            if self._first is None:
                advice = advice or ("the model needs a number there: fill it in or drop the row",)
            elif not advice and parse_number(text) != text.strip():
                advice = "fill it in, drop the row, or leave the column out by ", ignore
            elif not advice and set(split_tags(text, TAG_SEPARATOR)) <= self._seen_tags():
                truth = Argument("true_tags", bad.column)
                advice = (
                    "if it lists true labels, pass ",
                    truth,
                    "; if the column is not a feature, pass ",
                    ignore,
                )
            elif not advice:
                advice = "if the column is not a feature, pass ", ignore
            elif ignore not in advice:
                advice = (*advice, ", or pass ", ignore)
        found = "no value" if bad.value is None else quote_text(bad.value)
        return TableError(
            f"column {bad.column!r} holds {found}, expected {bad.expected}", *(("; ", *advice) if advice else ()),
            **self.place((self.n_rows if first is None else first) + bad.row),
            column=bad.column, value=bad.value, expected=bad.expected,
        )  # fmt: skip

    def _seen_tags(self) -> set[str]:
        """Return tags and known labels so far, as far as the usual separator splits them."""
        texts = (text for collector in self._tags.values() for text in collector.texts())
        return {
            *(self.resolved.label_names or ()),
            *(tag for text in texts for tag in split_tags(text, TAG_SEPARATOR)),
        }

    def _check_truth(self, candidates: LabelMatrix, truth: LabelMatrix, names: tuple[str, ...]) -> None:
        missing = truth > candidates
        if not missing.any():
            return
        row, label = (int(index) for index in np.argwhere(missing)[0])
        count, columns = int(missing.sum()), self.resolved.columns
        column, other = (
            found[0] if len(found) == 1 else found[label]
            for found in (columns.true_label_columns, columns.label_columns)
        )
        unlike = columns.true_tags is not None and not (truth & candidates).any()
        raise TableError(
            f"every true label must be a candidate: {names[label]!r} is in column {column!r} but not in {other!r} "
            f"({count} such {'label' if count == 1 else 'labels'} in the file)",
            *(("; is ", Argument("separator", self.separator), " right?") if unlike else ()),
            **self.place(row), column=column, value=names[label],
        )  # fmt: skip


def describe_unlabeled(candidates: LabelMatrix) -> Iterator[str]:
    """Yield a sentence about rows without any label, where there are any."""
    rows = np.flatnonzero(~candidates.any(axis=1))
    if rows.size:
        first = format_names([f"{row:,}" for row in rows])
        yield f"{rows.size:,} {'row has' if rows.size == 1 else 'rows have'} no label (counted from 0: {first})"
