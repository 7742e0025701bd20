"""JSON files: lists of objects or one object per line, and the exports of Label Studio and Argilla."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from skpml.tables._columns import quote_text
from skpml.tables._errors import TableError
from skpml.tables._values import ValueRows

JSON_SUFFIXES = (".json", ".jsonl", ".ndjson")
_BLANK = re.compile(r"[ \t\r\n]*")
# Where a value is in an object: names of members and positions in lists.
KeyPath = tuple[str | int, ...]


class JsonRecord(NamedTuple):
    """A row: its columns, where its tags are in the object, and where the object is in the text."""

    values: dict[str, Any]
    tag_paths: dict[str, list[KeyPath]]
    start: int
    line: int


class JsonFile(NamedTuple):
    """The text of a file and its rows."""

    text: str
    encoding: str
    records: list[JsonRecord]


def read_json(path: Path) -> JsonFile:
    """Read all rows of a file."""
    data = path.read_bytes()
    encoding = json.detect_encoding(data)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise TableError(f"is not {encoding} text, as JSON should be; copy it again", path=path) from error
    try:
        found = list(_scan(text))
    except json.JSONDecodeError as error:
        cut = "; was the file cut short?" if error.pos >= len(text.rstrip()) else ""
        problem = f"not readable JSON: {error.msg}{cut}"
        raise TableError(problem, path=path, line=error.lineno) from error
    except (ValueError, RecursionError) as error:
        # Numbers of thousands of digits, and objects within thousands of others.
        raise TableError(f"not readable JSON: {error}", path=path) from error
    records, line, before = [], 1, 0
    unpack = _choose_layout([value for value, _ in found])
    for value, start in found:
        line, before = line + text.count("\n", before, start), start
        if not isinstance(value, dict):
            problem = f'expected an object such as {{"tags": ["a"]}} for each row, found {quote_text(value)}'
            raise TableError(problem, path=path, line=line, value=value)
        if len(found) == 1 and not text.lstrip().startswith("[") and any(map(_holds_objects, value.values())):
            problem = "holds one object, not one per row: write a list of objects, or one object per line"
            raise TableError(problem, path=path, line=line)
        records.append(JsonRecord(*unpack(value), start, line))
    return JsonFile(text, encoding, records)


def _holds_objects(value: Any) -> bool:
    return isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(each, dict) for each in value)
    )


def json_rows(path: Path) -> ValueRows:
    """Return the rows of a file; a member that a row lacks is missing there."""
    records = read_json(path).records
    header = list(dict.fromkeys(name for record in records for name in record.values))
    if not records:
        raise TableError("holds no rows", path=path)
    lines = [record.line for record in records]
    return ValueRows(
        header, len(records), lambda name: [record.values.get(name) for record in records], lines
    )


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, _ in pairs if sum(name == other for other, _ in pairs) > 1)
        raise json.JSONDecodeError(f"the member {twice!r} occurs twice in an object", "", 0)
    return found


DECODER = json.JSONDecoder(object_pairs_hook=_distinct)


def _skip_blanks(text: str, place: int) -> int:
    found = _BLANK.match(text, place)
    assert found is not None
    return found.end()


def _scan(text: str) -> Iterator[tuple[Any, int]]:
    """Yield the elements of a list, or the values that follow each other, with the place where each begins."""
    place = _skip_blanks(text, 0)
    if text.startswith("[", place):
        place = yield from _scan_list(text, place)
        if (place := _skip_blanks(text, place)) < len(text):
            raise json.JSONDecodeError("text after the end of the list", text, place)
        return
    while place < len(text):
        value, end = DECODER.raw_decode(text, place)
        yield value, place
        place = _skip_blanks(text, end)


def _scan_list(text: str, place: int) -> Generator[tuple[Any, int], None, int]:
    """Yield the elements of the list that begins at a place, and return where it ends."""
    place = _skip_blanks(text, place + 1)
    if text.startswith("]", place):
        return place + 1
    while True:
        value, end = DECODER.raw_decode(text, place)
        yield value, place
        place = _skip_blanks(text, end)
        if text.startswith("]", place):
            return place + 1
        if not text.startswith(",", place):
            raise json.JSONDecodeError("expected ',' or ']'", text, place)
        place = _skip_blanks(text, place + 1)


def find_span(text: str, start: int, path: KeyPath) -> tuple[int, int]:
    """Return where the value of a path begins and ends, in the object that begins at a place."""
    for step in path:
        found = next((begin for name, begin in list_members(text, start) if name == step), None)
        if found is None:
            raise KeyError(step)
        start = found
    return start, DECODER.raw_decode(text, start)[1]


def list_members(text: str, start: int) -> Iterator[tuple[str | int, int]]:
    """Yield the members of an object or of a list, each with the place where its value begins."""
    if text[start] == "[":
        yield from ((position, begin) for position, (_, begin) in enumerate(_scan_list(text, start)))
        return
    place = _skip_blanks(text, start + 1)
    while text[place] != "}":
        name, place = DECODER.raw_decode(text, place)
        place = _skip_blanks(text, _skip_blanks(text, place) + 1)
        yield name, place
        place = _skip_blanks(text, DECODER.raw_decode(text, place)[1])
        place = _skip_blanks(text, place + 1) if text[place] == "," else place


# Layouts: the columns of an object, and where its tags are.

# Members whose members are columns.
_TASK_PARTS: tuple[str, ...] = ("data",)
_ARGILLA_PARTS: tuple[str, ...] = ("fields", "metadata", "vectors")
_Unpacked = tuple[dict[str, Any], dict[str, list[KeyPath]]]


def _choose_layout(values: list[Any]) -> Callable[[dict[str, Any]], _Unpacked]:
    find: Callable[[Mapping[str, Any]], Iterator[tuple[str, KeyPath, Any]]]
    objects = [value for value in values if isinstance(value, dict)]
    if objects and all(_is_task(value) for value in objects):
        find, spread = _choices, _TASK_PARTS
    elif objects and all(_is_argilla(value) for value in objects):
        find, spread = _answers, _ARGILLA_PARTS
    else:
        return lambda value: (value, {name: [(name,)] for name in value})
    questions = {name for value in objects for name, _, _ in find(value)}

    def unpack(value: dict[str, Any]) -> _Unpacked:
        columns = {"id": value["id"]} if "id" in value else {}
        for part in spread:
            columns |= value.get(part) or {}
        paths: dict[str, list[KeyPath]] = {}
        for name, path, tags in find(value):
            column = "tags" if len(questions) == 1 else name
            earlier = columns[column] if column in paths else []
            paths.setdefault(column, []).append(path)
            columns[column] = list(dict.fromkeys([*earlier, *(tags if isinstance(tags, list) else [tags])]))
        return columns, paths

    return unpack


def _is_task(value: Mapping[str, Any]) -> bool:
    """Whether an object is a task of Label Studio."""
    return isinstance(value.get("data"), dict) and any(
        isinstance(value.get(name), list) for name in ("annotations", "predictions")
    )


def _choices(task: Mapping[str, Any]) -> Iterator[tuple[str, KeyPath, Any]]:
    """Yield the choices of the annotators of a task; of its predictions, if nobody annotated it."""
    for kind, place in find_live(task):
        for number, result in enumerate(task[kind][place].get("result") or []):
            if isinstance(choices := (result.get("value") or {}).get("choices"), list):
                path = (kind, place, "result", number, "value", "choices")
                yield result.get("from_name", "tags"), path, choices


def find_live(task: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield where the annotations of a task are that were not canceled; the predictions, if there are none."""
    found = False
    for kind in ("annotations", "predictions"):
        for place, each in enumerate(task.get(kind) or []):
            # Some exports hold only the numbers of predictions.
            if isinstance(each, dict) and not each.get("was_cancelled"):
                found = True
                yield kind, place
        if found:
            return


def _is_argilla(value: Mapping[str, Any]) -> bool:
    """Whether an object is a record of Argilla."""
    return isinstance(value.get("fields"), dict) and any(
        isinstance(value.get(name), dict) for name in ("responses", "suggestions")
    )


def _answers(record: Mapping[str, Any]) -> Iterator[tuple[str, KeyPath, Any]]:
    """Yield the responses to the questions of a record; the suggestions, if nobody responded."""
    responses = {name: each for name, each in (record.get("responses") or {}).items() if each}
    for name, given in responses.items():
        for place, response in enumerate(given):
            if isinstance(response.get("value"), (str, list)):
                yield name, ("responses", name, place, "value"), response["value"]
    for name, suggestion in (record.get("suggestions") or {}).items():
        if name not in responses and isinstance((suggestion or {}).get("value"), (str, list)):
            yield name, ("suggestions", name, "value"), suggestion["value"]
