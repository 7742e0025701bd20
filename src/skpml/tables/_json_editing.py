"""Edits of the text of JSON files: other labels in some objects, and all else as it is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

from skpml.tables._editing import TagChange, edit_list, edit_tags, turn_text
from skpml.tables._json import DECODER, JsonFile, JsonRecord, KeyPath, find_live, find_span, list_members
from skpml.tables._tags import LISTS, split_tags

# Where an edit begins and ends, and what to write there.
Edit = tuple[int, int, str]
Style = Literal["list", "text", "choices"]
# Of a text that is one tag, whatever it holds.
_NO_SEPARATOR = "\0"


def turn_member(file: JsonFile, record: JsonRecord, column: str, *, yes: bool, minus: bool) -> Edit:
    """Return the edit that turns a 0/1 value over."""
    start, end = find_span(file.text, record.start, (column,))
    value = file.text[start:end]
    quote = '"' if value.startswith('"') else ""
    return start, end, f"{quote}{turn_text(value.strip(quote or None), yes=yes, minus=minus)}{quote}"


def find_style(file: JsonFile, column: str) -> Style:
    """Return how several tags are written: as a list, in one text, or as choices in the short export of Label Studio."""
    values = [record.values.get(column) for record in file.records]
    if any(isinstance(value, dict) for value in values):
        return "choices"
    return "list" if any(isinstance(value, list) for value in values) else "text"


def edit_members(
    file: JsonFile, record: JsonRecord, column: str, change: TagChange, style: Style
) -> Iterator[Edit]:
    """Yield the edits that give an object other tags; of several values with tags, the last gets the added ones."""
    text, left = file.text, set(change.dropped)
    paths = record.tag_paths.get(column, [])
    spans = [find_span(text, record.start, path) for path in paths]
    spans = [span for span in spans if not text.startswith("null", span[0])]
    for place, (start, end) in enumerate(spans):
        if text[start] == "{":
            start, end = find_span(text, start, ("choices",))
        value, separator = json.loads(text[start:end]), LISTS
        if isinstance(value, str):
            # A list of tags is either in the text, or the text is the only tag of an answer.
            separator = change.separator if len(paths[0]) == 1 else _NO_SEPARATOR
        tags = split_tags(value if isinstance(value, str) else text[start:end], separator)
        here = replace(change.restrict(tags, add=place == len(spans) - 1), separator=separator)
        left -= here.dropped
        if isinstance(value, str) and here.added and (len(paths[0]) > 1 or style == "choices"):
            yield start, end, _dump(_as_answer(edit_list(tags, here, {}), choices=len(paths[0]) == 1))
        elif isinstance(value, str) and (here.dropped or here.added):
            yield start, end, _dump(edit_tags(value, here))
        elif here.dropped or here.added:
            yield start, end, edit_tags(text[start:end], here)
    if left:
        raise KeyError(left.pop())
    if change.added and not spans:
        new: Any = list(change.added)
        if style == "choices":
            new = _as_answer(new, choices=True)
        elif style == "text":
            new = edit_tags("", change)
        yield _insert_tags(file, record, column, new)


def _as_answer(tags: list[str], *, choices: bool) -> Any:
    """Return one tag as a text and several as an answer with several choices."""
    return tags[0] if len(tags) == 1 else {"choices": tags} if choices else tags


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _insert_tags(file: JsonFile, record: JsonRecord, column: str, tags: Any) -> Edit:
    """Return an edit that gives tags to an object which has none, where other objects of the file have them."""
    text, start = file.text, record.start
    value = DECODER.raw_decode(text, start)[0]
    others = ((other.start, path) for other in file.records for path in other.tag_paths.get(column, ()))
    other, path = next(others, (start, (column,)))
    if len(path) == 1:
        return _set_member(text, start, path, tags)
    if path[-1] == "choices":
        result = DECODER.raw_decode(text, find_span(text, other, path[:-2])[0])[0]
        result = {name: each for name, each in result.items() if name in ("from_name", "to_name", "type")}
        result["value"] = {"choices": tags}
        kind, place = next(find_live(value), ("annotations", None))
        if place is None:
            return _append(text, start, (kind,), {"result": [result]})
        return _append(text, start, (kind, place, "result"), result)
    question, (begin, end) = path[1], find_span(text, other, path)
    tags = tags[0] if isinstance(json.loads(text[begin:end]), str) and len(tags) == 1 else tags
    if (value.get("responses") or {}).get(question):
        return _set_member(text, start, ("responses", question, 0, "value"), tags)
    if (value.get("suggestions") or {}).get(question):
        return _set_member(text, start, ("suggestions", question, "value"), tags)
    return _set_member(text, start, ("responses", question), [{"value": tags}])


def _set_member(text: str, start: int, path: KeyPath, value: Any) -> Edit:
    """Return an edit that gives a member of an object a value; members that lead to it are made where they lack."""
    for depth, step in enumerate(path):
        nested = value
        for name in reversed(path[depth + 1 :]):
            nested = {name: nested}
        found = next((begin for name, begin in list_members(text, start) if name == step), None)
        if found is None:
            return _insert(text, start, nested, name=str(step))
        start = found
        if text.startswith("null", start):
            return start, start + len("null"), _dump(nested)
    return *find_span(text, start, ()), _dump(value)


def _append(text: str, start: int, path: KeyPath, value: Any) -> Edit:
    """Return an edit that appends a value to a list, which is made where it lacks."""
    try:
        begin = find_span(text, start, path)[0]
    except KeyError:
        begin = -1
    if begin < 0 or text[begin] != "[":
        return _set_member(text, start, path, [value])
    return _insert(text, begin, value)


def _insert(text: str, start: int, value: Any, name: str | None = None) -> Edit:
    """Return an edit that inserts an element at the end of a list, or a member at the end of an object."""
    filled = next(list_members(text, start), None) is not None
    end = find_span(text, start, ())[1] - 1
    end -= len(text[start:end]) - len(text[start:end].rstrip())
    new = _dump(value)
    new = new if name is None else f"{_dump(name)}: {new}"
    return end, end, f", {new}" if filled else new
