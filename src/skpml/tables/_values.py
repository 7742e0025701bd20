"""Tables whose cells are Python values: JSON files, Excel sheets and data frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite, nan
from typing import Any

import numpy as np

from skpml.tables._columns import FLAGS, parse_number
from skpml.tables._rows import BadCell


class ValueBatch:
    """All rows of a table; `column` returns the values of a column, None or NaN where one is missing."""

    def __init__(
        self, n_rows: int, column: Callable[[str], Sequence[Any]], lines: Sequence[int] = ()
    ) -> None:
        self.n_rows, self.lines, self.column = n_rows, lines, column
        self.widths: dict[str, int] = {}

    def texts(self, name: str) -> list[str]:
        """Values of a column as text; a missing one is empty."""
        return ["" if is_missing(value) else str(value) for value in self.column(name)]

    def tags(self, name: str) -> list[Any]:
        """Values of a column of tags: texts or lists; a missing one has no tags."""
        return [as_tags(value, name, row) for row, value in enumerate(self.column(name))]

    def numbers(self, names: Sequence[str]) -> Any:
        """Values of some columns as a matrix of finite numbers; BadCell names the first that is not one.

        A column of lists of equal length has as many columns in the matrix.
        """
        matrices = [self._matrix(name) for name in names]
        self.widths = {
            name: matrix.shape[1] for name, matrix in zip(names, matrices, strict=True) if matrix.ndim > 1
        }
        return np.column_stack(matrices) if matrices else np.empty((self.n_rows, 0))

    def cells(self, name: str) -> list[float | str]:
        """Values of a column as numbers, NaN where one is missing, and texts."""
        return [parse_value(value) for value in self.column(name)]

    def advise(self, _: str) -> tuple[str, ...]:
        """Numbers are written in one way."""
        return ()

    def flags(self, names: Sequence[str]) -> Any:
        """Values of some 0/1 columns as a matrix; BadCell names the first that is neither."""
        columns = []
        for name in names:
            values = [FLAGS.get(str(value).strip().lower()) for value in self.column(name)]
            if None in values:
                row = values.index(None)
                value = self.column(name)[row]
                raise BadCell(name, row, None if is_missing(value) else value, "0 or 1")
            columns.append(values)
        return np.array(columns, dtype=np.uint8).T

    def _matrix(self, name: str) -> Any:
        values = self.column(name)
        expected = "a finite number"
        for row, value in enumerate(values):
            if isinstance(value, (list, tuple, np.ndarray)):
                first = values[0] if isinstance(values[0], (list, tuple, np.ndarray)) else value
                expected = f"a list of {len(first)} finite numbers"
                if len(value) == len(first) and all(map(_is_number, value)):
                    continue
            elif expected == "a finite number" and _is_number(value):
                continue
            raise BadCell(name, row, None if is_missing(value) else value, expected)
        return np.array([*values], dtype=np.float64)


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, or what pandas writes for a missing one."""
    return (
        value is None
        or (isinstance(value, float) and value != value)
        or type(value).__name__ in ("NAType", "NaTType")
    )


def parse_value(value: Any) -> float | str:
    """Return the number that a value is or holds, NaN if it is missing, or else its text."""
    if is_missing(value):
        return nan
    if isinstance(value, str):
        return parse_number(value)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return str(value)
    return number if isfinite(number) else str(value)


def _is_number(value: Any) -> bool:
    if isinstance(value, str) and "_" in value:
        return False
    try:
        return isfinite(float(value))
    except (TypeError, ValueError, OverflowError):
        return False


def as_tags(value: Any, column: str, row: int) -> str | list[Any]:
    """Return the tags of a cell as text or as a list; BadCell if it holds something else."""
    if isinstance(value, Mapping) and isinstance(value.get("choices"), list):
        # Label Studio writes several choices so.
        value = value["choices"]
    if is_missing(value):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple, set, frozenset, np.ndarray)):
        tags = sorted(value, key=str) if isinstance(value, (set, frozenset)) else list(value)
        if not any(isinstance(tag, (Mapping, list, tuple, set)) for tag in tags):
            return tags
    raise BadCell(column, row, value, "text such as 'a;b', or a list of texts")


class ValueRows:
    """The rows of a table of Python values, in one batch."""

    notes: Sequence[str] = ()
    sheet: str | None = None
    header_line = 1

    def __init__(
        self,
        header: Sequence[str],
        n_rows: int,
        column: Callable[[str], Sequence[Any]],
        lines: Sequence[int] = (),
    ) -> None:
        self.header = list(header)
        self.batch = ValueBatch(n_rows, column, lines)

    def batches(self, _: Sequence[str]) -> Iterator[ValueBatch]:
        """Yield all rows."""
        if self.batch.n_rows:
            yield self.batch


def frame_rows(frame: Any) -> ValueRows:
    """Return the rows of a data frame: of pandas, Polars or PyArrow, or anything with named columns of equal length."""
    names = getattr(frame, "column_names", None)
    names = list(getattr(frame, "columns", ())) if not isinstance(names, list) else names

    def column(name: str) -> Sequence[Any]:
        values = frame[name]
        for convert in ("to_pylist", "to_list", "tolist"):
            if hasattr(values, convert):
                return getattr(values, convert)()
        return list(values)

    return ValueRows([str(name) for name in names], len(frame), column)
