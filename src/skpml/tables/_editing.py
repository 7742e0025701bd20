"""Other labels in one cell: tags removed from a text or a list or added to it, and 0/1 values turned over."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skpml.tables._columns import parse_flag
from skpml.tables._errors import TableError
from skpml.tables._tags import LISTS, fold_tag, split_cell, split_tags, tag_of_part
from skpml.tables._values import is_missing

_NO = {"1": "0", "1.0": "0.0", "true": "false", "yes": "no"}
_MINUS = {"1": "-1", "1.0": "-1.0"}
_YES = {"0": "1", "-1": "1", "0.0": "1.0", "-1.0": "1.0", "false": "true", "no": "yes"}


@dataclass(frozen=True)
class TagChange:
    """Tags to remove from a cell and to add to it, and how tags are written and compared.

    In all functions, a KeyError says that a tag to remove is not there, or that one to add is.
    """

    dropped: frozenset[str]
    added: tuple[str, ...]
    separator: str
    merge_case: bool = False

    def fold(self, tag: str) -> str:
        """Return what spellings of the same tag share."""
        return fold_tag(tag) if self.merge_case else tag

    def restrict(self, tags: Sequence[str], *, add: bool) -> TagChange:
        """Return the change for one of several cells that share the tags of a row."""
        here = {self.fold(tag) for tag in tags}
        dropped = frozenset(tag for tag in self.dropped if self.fold(tag) in here)
        return replace(self, dropped=dropped, added=self.added if add else ())

    def keep(self, tags: Sequence[str]) -> list[bool]:
        """Return which tags of a cell stay."""
        gone = {self.fold(tag) for tag in self.dropped}
        present = [self.fold(tag) for tag in tags]
        if wrong := gone.difference(present) or {self.fold(tag) for tag in self.added}.intersection(present):
            raise KeyError(wrong.pop())
        return [tag not in gone for tag in present]


def edit_tags(cell: str, change: TagChange) -> str:
    """Return a cell with other tags; those that stay are written as they are."""
    separator = change.separator
    try:
        before, parts, behind = split_cell(cell, separator)
    except ValueError:
        raise KeyError(cell) from None
    tags = [tag_of_part(part, separator) for part in parts]
    keep = change.keep(tags)
    kept = [part for part, stays in zip(parts, keep, strict=True) if stays]
    if kept and not keep[0]:
        # The blanks behind a separator go with the tag before it.
        kept[0] = parts[0][: len(parts[0]) - len(parts[0].lstrip())] + kept[0].lstrip()
    if change.added:
        if separator == LISTS and not behind:
            before, behind = "[", "]"
        kept = _insert_tags(kept, change.added, parts, separator)
    new = before + ("," if separator == LISTS else separator).join(kept) + behind
    if missing := set(change.added).difference(split_tags(new, separator)):
        problem = (
            f"the tag {missing.pop()!r} cannot be written into a cell in which {separator!r} separates tags"
        )
        raise TableError(problem, value=cell)
    return new


def _insert_tags(kept: list[str], added: Sequence[str], parts: Sequence[str], separator: str) -> list[str]:
    """Return parts of a cell with more tags behind the last one, blanks and quotes as in the other parts."""
    filled = [place for place, part in enumerate(kept) if tag_of_part(part, separator)]
    end = filled[-1] + 1 if filled else 0
    spaced = parts[1].startswith(" ") if len(parts) > 1 else separator == LISTS
    example = next((part.strip() for part in parts if tag_of_part(part, separator)), "")
    new = [_write_tag(tag, example) if separator == LISTS else tag for tag in added]
    new = [f" {tag}" if spaced and (filled or place) else tag for place, tag in enumerate(new)]
    # Without any tag, what stands there are blanks, or a word for nothing.
    return [*kept[:end], *new, *(kept[end:] if filled else ())]


def _write_tag(tag: str, example: str) -> str:
    """Write a tag of a list as another one of it is written: in quotes of one kind or the other, or bare."""
    if example.startswith("'"):
        return repr(tag)
    bare = example and not example.startswith('"') and _is_json(tag) == _is_json(example)
    return tag if bare and _is_bare(tag) else json.dumps(tag, ensure_ascii=False)


def _is_bare(tag: str) -> bool:
    """Whether a tag can stand in a list without quotes."""
    try:
        return split_tags(f"[{tag}]", LISTS) == [tag]
    except ValueError:
        return False


def _is_json(word: str) -> bool:
    try:
        json.loads(word)
    except ValueError:
        return False
    return True


def edit_list(values: Sequence[Any], change: TagChange, elements: Mapping[str, Any]) -> list[Any]:
    """Return a list with other tags; `elements` are what stands for tags that are no texts, such as numbers."""
    keep = change.keep([str(value).strip() for value in values])
    kept = [value for value, stays in zip(values, keep, strict=True) if stays]
    return kept + [elements.get(tag, tag) for tag in change.added]


def edit_value(value: Any, change: TagChange, elements: Mapping[str, Any], *, as_list: bool) -> Any:
    """Return a text or a list with other tags; `as_list` says what takes the place of a missing value."""
    if is_missing(value):
        value = [] if as_list else ""
    if isinstance(value, str):
        return edit_tags(value, change)
    found = edit_list(list(value), change, elements)
    if isinstance(value, list):
        return found
    return np.array(found) if isinstance(value, np.ndarray) else type(value)(found)


def find_elements(values: Sequence[Any]) -> dict[str, Any]:
    """Return what stands for each tag in the lists of a column."""
    lists = (value for value in values if is_list(value))
    return {str(element).strip(): element for value in lists for element in value if element is not None}


def is_list(value: Any) -> bool:
    """Whether a value is a list of tags of any kind."""
    return isinstance(value, (list, tuple, set, frozenset, np.ndarray))


def turn_text(cell: str, *, yes: bool, minus: bool = False) -> str:
    """Return the text for yes or no in the style of a cell for the other; KeyError if it is for the same."""
    word = cell.strip()
    if parse_flag(cell) == yes:
        raise KeyError(cell)
    other = (_YES if yes else _NO | _MINUS if minus else _NO)[word.lower()]
    for alike in (str.lower, str.upper, str.capitalize):
        if alike(word) == word:
            other = alike(other)
            break
    return cell.replace(word, other)


def turn_value(value: Any, *, yes: bool, minus: bool) -> Any:
    """Return the value for yes or no of the type of a value for the other; KeyError if it is for the same."""
    if isinstance(value, str):
        return turn_text(value, yes=yes, minus=minus)
    if (value == 1) == yes:
        raise KeyError(value)
    return type(value)(1 if yes else -1 if minus and not isinstance(value, bool) else 0)
