"""The door of the review page: what it could not show, and decisions that could not be told apart, are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from skpml.cleaning._actions import ASK, DROP, KEEP

_PARTS = ("title", "key", "settings", "overview", "labels", "items", "cells")
_FIGURES = ("candidates", "wrong", "low", "high")
_COLUMNS = ("item", "label", "confidence", "action", "reason")
_ACTIONS = (KEEP, DROP, ASK)

# What is wrong with a value, said as what would be right; empty where nothing is.
_Fault = Callable[[Any], str]


def check_payload(payload: Mapping[str, Any]) -> None:
    """Raise a ValueError that names the place, unless the payload is as `skpml.review._page.render_review` says."""
    _check_keys("the payload", payload, _PARTS)
    _check("title", payload["title"], _text)
    _check("key", payload["key"], _text)
    _check_keys("overview", payload["overview"], ("rows", "labels", *_FIGURES))
    _check_labels(payload["labels"])
    _check_items(payload["items"], payload["labels"])
    _check_cells(payload["cells"], payload["items"], payload["labels"])


def _check_labels(labels: list[Mapping[str, Any]]) -> None:
    for place, label in enumerate(labels):
        _check_keys(f"labels[{place}]", label, ("name", *_FIGURES, "partner"))
        _check(f"labels[{place}]['name']", label["name"], _text)
        _check(f"labels[{place}]['partner']", label["partner"], _text_or_none)
    # A decision is found again by row and name of the label, so both must tell their cell from all others.
    _check_unique("labels", "name", (label["name"] for label in labels))


def _check_items(items: list[Mapping[str, Any]], labels: list[Any]) -> None:
    for place, item in enumerate(items):
        _check_keys(f"items[{place}]", item, ("id", "row", "text", "image", "tags"))
        _check(f"items[{place}]['id']", item["id"], _text)
        _check(f"items[{place}]['row']", item["row"], _count)
        _check(f"items[{place}]['text']", item["text"], _text_or_none)
        _check(f"items[{place}]['image']", item["image"], _text_or_none)
        _check_each(f"items[{place}]['tags']", item["tags"], _position_in("labels", labels))
    _check_unique("items", "row", (item["row"] for item in items))


def _check_cells(cells: Mapping[str, list[Any]], items: list[Any], labels: list[Any]) -> None:
    _check_keys("cells", cells, _COLUMNS)
    n_cells = len(cells["item"])
    for column in _COLUMNS:
        if len(cells[column]) != n_cells:
            raise ValueError(
                f"cells[{column!r}] has {len(cells[column])} entries and cells['item'] has {n_cells}; all columns "
                "must be of the same length"
            )
    faults: dict[str, _Fault] = {
        "item": _position_in("items", items),
        "label": _position_in("labels", labels),
        "confidence": _probability,
        "action": _action,
        "reason": _text,
    }
    for column, fault in faults.items():
        _check_each(f"cells[{column!r}]", cells[column], fault)
    _check_unique("cells", "pair of item and label", zip(cells["item"], cells["label"], strict=True))


def _check_keys(place: str, part: Mapping[str, Any], keys: Iterable[str]) -> None:
    missing = [key for key in keys if key not in part]
    if missing:
        raise ValueError(f"{place} of the review page lacks {', '.join(map(repr, missing))}")


def _check(place: str, value: Any, fault: _Fault) -> None:
    if reason := fault(value):
        raise ValueError(f"{place} of the review page is {value!r}; it must be {reason}")


def _check_each(place: str, values: Iterable[Any], fault: _Fault) -> None:
    for number, value in enumerate(values):
        _check(f"{place}[{number}]", value, fault)


def _check_unique(place: str, name: str, values: Iterable[Any]) -> None:
    seen: dict[Any, int] = {}
    for number, value in enumerate(values):
        first = seen.setdefault(value, number)
        if first != number:
            raise ValueError(
                f"{place} {first} and {number} of the review page have the same {name}, {value!r}; each must have its own"
            )


def _text(value: Any) -> str:
    return "" if isinstance(value, str) else "a string"


def _text_or_none(value: Any) -> str:
    return "" if value is None or isinstance(value, str) else "a string or None"


def _count(value: Any) -> str:
    return "" if type(value) is int and value >= 0 else "a whole number of 0 or more"


def _action(value: Any) -> str:
    return "" if value in _ACTIONS else f"one of {', '.join(map(repr, _ACTIONS))}"


def _probability(value: Any) -> str:
    return "" if isinstance(value, int | float) and 0 <= value <= 1 else "a number from 0 to 1"


def _position_in(name: str, parts: list[Any]) -> _Fault:
    n_parts = len(parts)

    def fault(value: Any) -> str:
        is_position = type(value) is int and 0 <= value < n_parts
        return "" if is_position else f"a position in {name}, from 0 to {n_parts - 1}"

    return fault
