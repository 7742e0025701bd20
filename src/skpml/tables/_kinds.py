"""What columns beside the labels hold: numbers, categories, or nothing that a model can learn from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skpml.tables._columns import format_names
from skpml.tables._errors import Argument
from skpml.tables._formats import Batch
from skpml.tables._row_store import RowStore, pick_columns
from skpml.tables._rows import BadCell
from skpml.tables._tags import split_tags

# What a column holds, and where all features come from.
ColumnType = Literal["number", "category", "text", "image"]
FeatureKind = Literal["columns", "text", "mixed", "embeddings"]
_NUMBER = "a finite number"
_DATE = re.compile(r"\d{1,4}([-/.])\d{1,2}\1\d{1,4}(?:[ T].*)?")
# Names of columns that number the rows if their values are whole and all differ.
_ROW_NAME = re.compile(
    r"(?i:|id|idx|index|row|rowid|unnamed.*|.*[_ .-]id|row[_ .-]?(?:number|no|nr))|.*[a-z]I[dD]"
)
_MOST_COLUMNS = 5


class Features(NamedTuple):
    """Columns to learn from: a matrix of numbers with NaN for missing ones, and categories, empty where missing.

    `n_missing` are the numbers of missing values of the columns of numbers, `lists` has the names of the features of each
    column of lists, and `unused` the reasons why columns are left out.
    """

    numbers: NDArray[np.floating]
    number_names: tuple[str, ...]
    n_missing: tuple[int, ...]
    categories: dict[str, list[str]]
    lists: dict[str, tuple[str, ...]]
    unused: dict[str, str]

    @property
    def used(self) -> bool:
        """Whether there is a column to learn from."""
        return bool(self.number_names or self.categories)

    @property
    def are_plain(self) -> bool:
        """Whether all are complete columns of numbers."""
        return not self.categories and not any(self.n_missing)

    def pick_numbers(self, names: Sequence[str]) -> Features:
        """Return some columns of numbers, in this order, and all others."""
        place = {name: column for column, name in enumerate(self.number_names)}
        places = [place[name] for name in names]
        return self._replace(
            numbers=pick_columns(self.numbers, places),
            number_names=tuple(names),
            n_missing=tuple(self.n_missing[column] for column in places),
        )

    def count_missing(self) -> dict[str, int]:
        """Return the number of missing values of each column that lacks some."""
        counts = dict(zip(self.number_names, self.n_missing, strict=True))
        counts |= {name: texts.count("") for name, texts in self.categories.items()}
        return {name: count for name, count in counts.items() if count}

    def describe_missing(self) -> Iterator[str]:
        """Yield a sentence about each column that lacks values; one about all if there are many."""
        missing, n_rows = self.count_missing(), len(self.numbers)
        kinds = ("the median of the training rows is used", "missing is a category of its own")
        for is_category, how in enumerate(kinds):
            columns = {
                name: count
                for name, count in missing.items()
                if (name in self.categories) == bool(is_category)
            }
            if len(columns) > _MOST_COLUMNS:
                most = max(columns.values())
                listed = format_names([repr(name) for name in columns])
                yield f"values are missing in {listed}, in up to {most:,} of {n_rows:,} rows; {how}"
            else:
                yield from (
                    f"{name!r}: {count:,} of {n_rows:,} missing, {how}" for name, count in columns.items()
                )


class FeatureCollector:
    """The columns to learn from as they come, batch by batch.

    `guessed` columns are left out if a model cannot use them; others raise BadCell. With `only_numbers`, every cell
    must be a number. If `known`, `categories` are the only ones, since a fitted model says what columns hold.
    """

    def __init__(
        self,
        names: Sequence[str],
        *,
        categories: Collection[str] = (),
        guessed: Collection[str] = (),
        only_numbers: bool = False,
        known: bool = False,
    ) -> None:
        self._names, self._categories, self._guessed = tuple(names), frozenset(categories), frozenset(guessed)
        self._only_numbers, self._known = only_numbers, known
        self._store = RowStore()
        self._n_missing: NDArray[np.intp] | int = 0
        # Columns that are not complete columns of numbers, and of these the cells that are texts, by row.
        self._odd = {name: dict[int, str]() for name in self._categories}
        self._nested: set[str] = set()
        self._widths: dict[str, int] = {}

    def add(self, batch: Batch) -> None:
        """Take the rows of a batch; BadCell counts its rows."""
        try:
            usual = self._usual(batch)
        except BadCell:
            if self._only_numbers:
                raise
            for name in self._names:
                if name not in self._odd and not self._is_usual(batch, name):
                    self._odd[name] = {}
            usual = self._usual(batch)
        parts = [usual[name] if name in usual else self._read_odd(batch, name) for name in self._names]
        self._check_widths({name: part.shape[1] for name, part in usual.items() if part.ndim > 1})
        block = np.column_stack(parts) if parts else np.empty((batch.n_rows, 0))
        self._n_missing = self._n_missing + np.isnan(block).sum(axis=0)
        self._store.add(block)

    def _usual(self, batch: Batch) -> dict[str, NDArray[np.floating]]:
        """Return the columns that have been complete columns of numbers, or of lists of numbers, so far."""
        names = [name for name in self._names if name not in self._odd]
        if not names:
            return {}
        matrix, found, place = batch.numbers(names), {}, 0
        for name in names:
            width = batch.widths.get(name)
            found[name] = matrix[:, place] if width is None else matrix[:, place : place + width]
            place += width or 1
        return found

    def _is_usual(self, batch: Batch, name: str) -> bool:
        try:
            batch.numbers([name])
        except BadCell as bad:
            if bad.expected != _NUMBER:
                numbers = bad.value is None or all(isinstance(each, (int, float)) for each in bad.value)
                if numbers or name not in self._guessed:
                    raise
                self._nested.add(name)
            elif name in self._widths:
                raise
            return False
        return True

    def _read_odd(self, batch: Batch, name: str) -> NDArray[np.floating]:
        if name in self._nested:
            return np.full(batch.n_rows, np.nan)
        cells, texts = batch.cells(name), self._odd[name]
        for row, cell in enumerate(cells):
            if isinstance(cell, str):
                if not texts and name not in self._categories and (advice := batch.advise(cell)):
                    raise BadCell(name, row, cell, _NUMBER, *advice)
                texts[self._store.n_rows + row] = cell
        return np.array([np.nan if isinstance(cell, str) else cell for cell in cells], dtype=np.float64)

    def _check_widths(self, widths: Mapping[str, int]) -> None:
        """Raise if a column holds lists of another length than before."""
        if not self._store.n_rows:
            self._widths = dict(widths)
        for name in self._widths.keys() | widths.keys():
            if self._widths.get(name) != (found := widths.get(name)):
                expected = f"a list of {self._widths.get(name)} finite numbers"
                raise BadCell(name, 0, f"a list of {found}", expected)

    def finish(self, labels: Collection[str], separator: str) -> Features:
        """Decide what each column holds, given the labels and what separates them; BadCell counts all rows."""
        matrix, n_missing = self._store.finish(), np.atleast_1d(self._n_missing).tolist()
        kept: list[int] = []
        number_names: list[str] = []
        categories: dict[str, list[str]] = {}
        lists: dict[str, tuple[str, ...]] = {}
        unused: dict[str, str] = {}
        place = 0
        for name in self._names:
            width = self._widths.get(name)
            places = range(place, place + (width or 1))
            place = places.stop
            if width is None and (
                reason := self._find_fault(name, matrix[:, places.start], labels, separator)
            ):
                unused[name] = reason
            elif name in self._categories or self._odd.get(name):
                categories[name] = self._format_cells(name, matrix[:, places.start])
            else:
                kept += places
                names = (name,) if width is None else tuple(f"{name}_{element}" for element in range(width))
                number_names += names
                lists |= {} if width is None else {name: names}
        numbers = matrix if len(kept) == matrix.shape[1] else pick_columns(matrix, kept)
        missing = tuple(n_missing[place] for place in kept)
        return Features(numbers, tuple(number_names), missing, categories, lists, unused)

    def _find_fault(
        self, name: str, numbers: NDArray[np.floating], labels: Collection[str], separator: str
    ) -> str:
        """Return why a guessed column cannot be used, nothing if it can; raise BadCell where that is a question."""
        if name in self._categories:
            return ""
        texts, guessed = self._odd.get(name, {}), name in self._guessed
        n_numbers = int(np.count_nonzero(~np.isnan(numbers)))
        if name in self._nested:
            return "holds lists or objects"
        if not texts:
            if not guessed:
                return ""
            if not n_numbers:
                return "is empty"
            numbers_rows = (
                _ROW_NAME.fullmatch(name.strip()) is not None
                and n_numbers == len(numbers) == len(np.unique(numbers))
                and (numbers == np.round(numbers)).all()
            )
            return "numbers the rows" if numbers_rows and n_numbers > 1 else ""
        row, text = next(iter(texts.items()))
        ignore = Argument("ignore", [name])
        if self._known:
            raise BadCell(name, row, text, _NUMBER)
        category = "if the column holds categories, pass ", Argument("categories", [name])
        if n_numbers >= len(texts):
            missing = "if the value is missing, leave the cell empty; "
            raise BadCell(
                name, row, text, _NUMBER, missing, *category, "; if it is not a feature, pass ", ignore
            )
        counts = Counter(self._format_cells(name, numbers))
        n_missing = counts.pop("", 0)
        n_filled = len(numbers) - n_missing
        if labels and all(_lists_labels(value, labels, separator) for value in counts):
            truth = "if it lists true labels, pass ", Argument("true_tags", name), "; "
            raise BadCell(
                name,
                row,
                text,
                "no labels beside those of the row",
                *truth,
                *category,
                "; else pass ",
                ignore,
            )
        if guessed and all(map(_DATE.fullmatch, counts)):
            return "holds dates, which are neither numbers nor categories"
        if 2 * len(counts) > n_filled:
            found = f"{len(counts):,} different texts in {n_filled:,} rows"
            found = "a different text in each row" if len(counts) == n_filled else found
            if guessed:
                return f"holds {found}"
            roles = "; if they are texts, pass ", Argument("text", name)
            raise BadCell(
                name, row, text, f"a number or one of few categories, not {found}", *category, *roles
            )
        return "has the same value in all rows" if len(counts) == 1 and not n_missing and guessed else ""

    def _format_cells(self, name: str, numbers: NDArray[np.floating]) -> list[str]:
        """Return the cells of a column as categories: numbers in one way of writing, empty where missing."""
        cells = ["" if number != number else repr(number).removesuffix(".0") for number in numbers.tolist()]
        for row, text in self._odd.get(name, {}).items():
            cells[row] = text
        return cells


def _lists_labels(cell: str, labels: Collection[str], separator: str) -> bool:
    try:
        return all(tag in labels for tag in split_tags(cell, separator))
    except (ValueError, SyntaxError):
        return False
