"""Cells that list tags: what separates the tags, lists that are written as text, and spellings of the same tag."""

from __future__ import annotations

import ast
import json
import re
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from sys import intern
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpml.tables._columns import format_names, quote_text
from skpml.tables._errors import Argument, TableError

TAG_SEPARATOR = ";"
# The separator of cells that are lists, as JSON or Python write them.
LISTS = "[]"
# These hardly ever occur within a tag; the others do. A tab gets there by mistake, as it cannot be seen.
_CLEAR_SEPARATORS = (";", "|", "\n", "\t")
_TAB, _COMMA, _SLASH = "\t", ",", "/"
_QUOTED = r"""\s*(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*"""
_ITEM = re.compile(rf"""{_QUOTED}|[^"'\[\]{{}}(),]+""", re.DOTALL)
_QUOTED_ITEM = re.compile(_QUOTED, re.DOTALL)
_BRACKETS = {"[": "]", "(": ")", "{": "}"}
_NOTHING = ("None", "null")


def split_cell(text: str, separator: str) -> tuple[str, list[str], str]:
    """Split a cell of tags into what stands before them, its parts as they are written, and what stands behind.

    Raises ValueError if the cell should be a list and is none.
    """
    if separator != LISTS:
        return "", text.split(separator), ""
    inner = text.strip()
    if not inner:
        return text, [], ""
    if len(inner) < 2 or _BRACKETS.get(inner[0]) != inner[-1]:
        raise ValueError(text)
    # Only brackets make a list of bare words: "(sea)" is a word.
    item = _ITEM if inner[0] == "[" else _QUOTED_ITEM
    start = text.index(inner[0]) + 1
    stop = text.rindex(inner[-1])
    parts: list[str] = []
    place = start
    while place < stop:
        found = item.match(text, place, stop)
        if found is None or (found.end() < stop and text[found.end()] != _COMMA):
            raise ValueError(text)
        parts.append(found[0])
        place = found.end() + 1
    return text[:start], parts, text[stop:]


def tag_of_part(part: str, separator: str) -> str:
    """Return the tag of a part of a cell, without blanks and quotes; empty if it is none."""
    part = part.strip()
    if separator != LISTS or not part:
        return part
    if part[0] not in "\"'":
        return "" if part in _NOTHING else part
    try:
        return str(json.loads(part)).strip()
    except ValueError:
        return str(ast.literal_eval(part)).strip()


def split_tags(text: str, separator: str) -> list[str]:
    """Return the tags of a cell, without blanks around them and without empty ones."""
    if separator != LISTS:
        return [tag for part in text.split(separator) if (tag := part.strip())]
    return [tag for part in split_cell(text, separator)[1] if (tag := tag_of_part(part, separator))]


def fold_tag(tag: str) -> str:
    """Return what spellings of a tag share that differ in case or in blanks only."""
    return " ".join(tag.casefold().split())


def find_twins(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the groups of names that differ in case or in blanks only."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(fold_tag(name), []).append(name)
    return [tuple(group) for group in groups.values() if len(group) > 1]


class TagCollector:
    """The cells of a column of tags as they come: distinct ones, and which of them each row has."""

    def __init__(self, column: str) -> None:
        self.column = column
        self._number: dict[str | tuple[str, ...], int] = {}
        self._rows = array("q")
        self._split: tuple[str, list[tuple[str, ...]]] | None = None

    def add(self, cells: Sequence[Any]) -> None:
        """Take the cells of some rows: texts such as ``"lake; sea"``, or lists."""
        for cell in cells:
            if not isinstance(cell, str):
                # Millions of cells repeat a few tags: each is kept once.
                cell = tuple(
                    intern(tag) for value in cell if value is not None and (tag := str(value).strip())
                )
            self._rows.append(self._number.setdefault(cell, len(self._number)))

    @property
    def rows(self) -> NDArray[np.int64]:
        """Number of the distinct cell of each row."""
        return np.frombuffer(self._rows, dtype=np.int64)

    def first_row(self, cell: str | tuple[str, ...]) -> int:
        """Return the first row that has a cell."""
        return int(np.argmax(self.rows == self._number[cell]))

    def texts(self) -> Counter[str]:
        """Number of rows of each cell that is text and not blank."""
        counts = np.bincount(self.rows, minlength=len(self._number)).tolist()
        return Counter(
            {
                cell: counts[number]
                for cell, number in self._number.items()
                if isinstance(cell, str) and cell.strip()
            }
        )

    def tags(self, separator: str) -> list[tuple[str, ...]]:
        """Return the tags of each distinct cell; ValueError where a cell should be a list and is none."""
        if self._split is None or self._split[0] != separator or len(self._split[1]) != len(self._number):
            self._split = (
                separator,
                [
                    tuple(map(intern, split_tags(cell, separator))) if isinstance(cell, str) else cell
                    for cell in self._number
                ],
            )
        return self._split[1]

    @property
    def cells(self) -> list[str | tuple[str, ...]]:
        """The distinct cells."""
        return list(self._number)

    def count_repeating(self, separator: str) -> int:
        """Count the rows whose cell repeats a tag."""
        repeats = [len(set(tags)) < len(tags) for tags in self.tags(separator)]
        return int(np.count_nonzero(np.array(repeats, dtype=bool)[self.rows])) if repeats else 0


def count_tags(collectors: Sequence[TagCollector], separator: str) -> Counter[str]:
    """Count the rows of each tag."""
    found: Counter[str] = Counter()
    for collector in collectors:
        counts = np.bincount(collector.rows).tolist()
        for number, tags in enumerate(collector.tags(separator)):
            for tag in set(tags):
                found[tag] += counts[number]
    return found


def choose_spellings(counts: Mapping[str, int]) -> dict[str, str]:
    """Return the most frequent spelling for each tag, among those that differ in case or in blanks only."""
    spelling: dict[str, str] = {}
    for tag in sorted(counts, key=lambda tag: (-counts[tag], tag)):
        spelling.setdefault(fold_tag(tag), tag)
    return {tag: spelling[fold_tag(tag)] for tag in counts}


def detect_separator(path: Path, collectors: Sequence[TagCollector]) -> str:
    """Find what separates the tags of some columns; TableError with the question where that is not clear."""
    texts = sum((collector.texts() for collector in collectors), Counter[str]())
    if _are_lists(path, collectors, texts):
        return LISTS
    n_cells = texts.total()
    held = {
        mark: count
        for mark in _CLEAR_SEPARATORS
        if (count := sum(times for text, times in texts.items() if mark in text.strip()))
    }
    with_comma = {text: times for text, times in texts.items() if _COMMA in text}
    n_known = _count_recurring(texts, with_comma)
    parts = {tag for text in texts for tag in split_tags(text, _COMMA)}
    commas_fit = bool(with_comma) and len(parts) < len(texts) and 2 * n_known >= len(with_comma)
    if held.get(_TAB, 0) < sum(with_comma.values()) * commas_fit:
        held.pop(_TAB, None)
    if held:
        separator = max(held, key=lambda mark: held[mark])
        known = {tag for collector in collectors for tags in collector.tags(separator) for tag in tags}
        for collector in collectors:
            _refuse_second_separator(path, collector, known, separator)
        return separator
    if commas_fit:
        return _COMMA
    if with_comma and (n_known or 2 * sum(with_comma.values()) > n_cells):
        raise _ask(path, collectors, TAG_SEPARATOR, _COMMA)
    if 2 * sum(times for text, times in texts.items() if _SLASH in text) > n_cells:
        raise _ask(path, collectors, TAG_SEPARATOR, _SLASH)
    return TAG_SEPARATOR


def find_other_separator(collector: TagCollector, separator: str) -> str | None:
    """Return what most cells of a column hold where none holds its separator."""
    texts = collector.texts()
    if separator == LISTS or not texts or any(separator in text for text in texts):
        return None
    marks = (mark for mark in (*_CLEAR_SEPARATORS, _COMMA, _SLASH) if mark != separator)
    held = {mark: sum(times for text, times in texts.items() if mark in text.strip()) for mark in marks}
    other = max(held, key=lambda mark: held[mark])
    return other if 2 * held[other] > texts.total() else None


def _are_lists(path: Path, collectors: Sequence[TagCollector], texts: Mapping[str, int]) -> bool:
    """Whether all cells are lists written as text; TableError if only some are, or if one cannot be read."""
    alike = {text: None for text in texts if _looks_like_list(text)}
    if not alike:
        return False
    for collector in collectors:
        for text in collector.texts():
            if text not in alike:
                problem = f"holds lists such as {quote_text(next(iter(alike)))}, but here {quote_text(text)}"
                raise _not_a_list(path, collector, text, f"{problem}: write all cells as lists")
            try:
                split_tags(text, LISTS)
            except (ValueError, SyntaxError):
                problem = (
                    f'holds {quote_text(text)}, not a list such as ["a", "b"]: commas must separate the tags'
                )
                raise _not_a_list(path, collector, text, problem) from None
    return True


def _not_a_list(path: Path, collector: TagCollector, text: str, problem: str) -> TableError:
    as_text = "; if cells are tags as they stand, pass ", Argument("separator", TAG_SEPARATOR)
    return TableError(
        f"column {collector.column!r} {problem}", *as_text,
        path=path, row=collector.first_row(text), column=collector.column, value=text,
    )  # fmt: skip


def _looks_like_list(text: str) -> bool:
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        return True
    try:
        split_cell(text, LISTS)
    except ValueError:
        return False
    return True


def _count_recurring(texts: Mapping[str, int], with_comma: Mapping[str, int]) -> int:
    """Count the texts between whose commas there are only words that other texts have too."""
    times = Counter(tag for text in texts for tag in set(split_tags(text, _COMMA)))
    return sum(all(times[tag] > 1 for tag in split_tags(text, _COMMA)) for text in with_comma)


def _refuse_second_separator(path: Path, collector: TagCollector, known: set[str], separator: str) -> None:
    """Raise if tags between separators hold another one with other tags around it."""
    others = [mark for mark in (*_CLEAR_SEPARATORS, _COMMA) if mark != separator]
    for tag in sorted({tag for tags in collector.tags(separator) for tag in tags}):
        for other in others:
            if other not in tag or len(parts := split_tags(tag, other)) < 2:
                continue
            judge = all if other in (_COMMA, _TAB) else any
            if judge(part in known for part in parts):
                raise _ask(path, [collector], separator, other, example=tag)


def _ask(
    path: Path, collectors: Sequence[TagCollector], one: str, other: str, *, example: str | None = None
) -> TableError:
    """Return the question which of two separators is meant."""
    collector = next(each for each in collectors if any(other in text for text in each.texts()))
    example = example or next(text for text in collector.texts() if other in text)
    return TableError(
        f"column {collector.column!r} holds {quote_text(example)}: is that one tag, or does {other!r} separate tags? If "
        "it separates them, pass ", Argument("separator", other), ", else pass ", Argument("separator", one),
        path=path, row=collector.first_row(next(text for text in collector.texts() if example in text)),
        column=collector.column, value=one, expected=other,
    )  # fmt: skip


def find_unknown(
    collector: TagCollector, separator: str, known: Mapping[str, int], spelling: Mapping[str, str]
) -> tuple[int, str, str] | None:
    """Return the row and the value of the first tag that is not among the known labels, and what is expected."""
    for cell, tags in zip(collector.cells, collector.tags(separator), strict=True):
        if unknown := [tag for tag in tags if spelling.get(tag, tag) not in known]:
            return collector.first_row(cell), unknown[0], f"only labels among {format_names(list(known))}"
    return None
