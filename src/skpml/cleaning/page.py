"""The review page: doubtful tags to keep or drop, in one HTML file that needs no server and no network."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from typing import Any

from skpml.pages import page_environment

__all__ = ["render_review"]

_ACTIONS = ("keep", "drop", "ask")
_PARTS = ("title", "key", "settings", "overview", "labels", "items", "cells")
_COLUMNS = ("item", "label", "confidence", "action", "reason")
_FIGURES = ("candidates", "wrong", "low", "high")

# The page's script in the order in which its parts build on each other.
_SCRIPTS = (
    "data.js",
    "csv.js",
    "storage.js",
    "decisions.js",
    "exchange.js",
    "listing.js",
    "dialogs.js",
    "overview.js",
    "detail.js",
    "grid.js",
    "main.js",
)


def render_review(payload: Mapping[str, Any]) -> str:
    """The whole review page as HTML.

    Parameters
    ----------
    payload : dict
        What the page shows, of plain Python values that JSON can hold:

        * ``title``: what is reviewed, such as the file's name;
        * ``key``: identifies data and run; the browser keeps decisions under it;
        * ``settings``: pairs of name and text;
        * ``overview``: ``rows``, ``labels``, ``candidates``, and the estimate ``wrong`` between ``low`` and ``high``;
        * ``labels``: for each label ``name``, ``candidates``, ``wrong``, ``low``, ``high`` and ``partner`` (or None);
        * ``items``: for each row in doubt ``id``, ``row``, ``text`` (or None), ``image`` (a path relative to the
          page, or None) and ``tags`` (positions in ``labels``);
        * ``cells``: the columns ``item`` and ``label`` (positions), ``confidence``, ``action`` (``"keep"``,
          ``"drop"`` or ``"ask"``) and ``reason``, the most useful cell to check first.

    Returns
    -------
    str
        The same payload gives the same page, to the byte. Text from the payload is shown as text and never as HTML.

    Raises
    ------
    ValueError
        If the payload is not as above; the message names the place.
    ImportError
        If jinja2 is missing.
    """
    _check_payload(payload)
    try:
        import jinja2  # noqa: F401
        from markupsafe import Markup
    except ImportError as error:
        raise ImportError(
            f'the review page needs {error.name}: pip install "scikit-pml[report]"', name=error.name
        ) from error
    script = _read_script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        page_environment("skpml.cleaning")
        .get_template("review.html.j2")
        .render(
            # A file name may hold bytes that are no text.
            title=payload["title"].encode("utf-8", "replace").decode(),
            data=Markup(_script_safe_json(payload)),
            style=Markup(_template("review.css")),
            script=Markup(script),
            script_digest=digest,
        )
    )


def _template(*path: str) -> str:
    return files("skpml.cleaning").joinpath("templates", *path).read_text(encoding="utf-8")


def _read_script() -> str:
    """All parts in one scope of their own, so that they share names with each other and with nobody else."""
    parts = "\n".join(_template("review", name) for name in _SCRIPTS)
    return f'"use strict";\n(() => {{\n{parts}}})();\n'


def _script_safe_json(payload: Mapping[str, Any]) -> str:
    """JSON that cannot end the script element it stands in, and that UTF-8 can hold."""
    try:
        text = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"the payload of the review page must be plain values that JSON can hold: {error}"
        ) from error
    # `<` would begin `</script>` and `<!--`; a lone surrogate, as file names can hold, has no UTF-8 form.
    return re.sub("[<\u2028\u2029\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _check_payload(payload: Mapping[str, Any]) -> None:
    _check_keys("the payload", payload, _PARTS)
    _check_keys("overview", payload["overview"], ("rows", "labels", *_FIGURES))
    labels, items, cells = payload["labels"], payload["items"], payload["cells"]
    for place, label in enumerate(labels):
        _check_keys(f"labels[{place}]", label, ("name", *_FIGURES, "partner"))
    for place, item in enumerate(items):
        _check_keys(f"items[{place}]", item, ("id", "row", "text", "image", "tags"))
        _check_each(f"items[{place}]['tags']", item["tags"], _position(labels, "labels"))
    # A decision is found again by row and name of the label, so both must tell their cell from all others.
    _check_unique("labels", "name", (label["name"] for label in labels))
    _check_unique("items", "row", (item["row"] for item in items))
    _check_keys("cells", cells, _COLUMNS)
    for column in _COLUMNS[1:]:
        if len(cells[column]) != len(cells["item"]):
            raise ValueError(
                f"cells[{column!r}] has {len(cells[column])} entries and cells['item'] has {len(cells['item'])}; "
                "all columns must be of the same length"
            )
    _check_each("cells['item']", cells["item"], _position(items, "items"))
    _check_each("cells['label']", cells["label"], _position(labels, "labels"))
    _check_each("cells['action']", cells["action"], _action)
    _check_each("cells['confidence']", cells["confidence"], _probability)
    _check_unique("cells", "pair of item and label", zip(cells["item"], cells["label"], strict=True))


def _check_keys(place: str, part: Mapping[str, Any], keys: Iterable[str]) -> None:
    missing = [key for key in keys if key not in part]
    if missing:
        raise ValueError(f"{place} of the review page lacks {', '.join(map(repr, missing))}")


def _check_each(place: str, values: Iterable[Any], fault: Callable[[Any], str]) -> None:
    for number, value in enumerate(values):
        if reason := fault(value):
            raise ValueError(f"{place}[{number}] is {value!r}; {reason}")


def _position(of: list[Any], name: str) -> Callable[[Any], str]:
    def fault(value: Any) -> str:
        is_position = type(value) is int and 0 <= value < len(of)
        return "" if is_position else f"it must be a position in {name}, from 0 to {len(of) - 1}"

    return fault


def _action(value: Any) -> str:
    return "" if value in _ACTIONS else f"it must be one of {', '.join(map(repr, _ACTIONS))}"


def _probability(value: Any) -> str:
    is_number = isinstance(value, int | float) and 0 <= value <= 1
    return "" if is_number else "it must be a number from 0 to 1"


def _check_unique(place: str, name: str, values: Iterable[Any]) -> None:
    seen: dict[Any, int] = {}
    for number, value in enumerate(values):
        first = seen.setdefault(value, number)
        if first != number:
            raise ValueError(
                f"{place} {first} and {number} have the same {name}, {value!r}; each must have its own"
            )
