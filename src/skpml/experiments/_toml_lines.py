"""Where in a TOML file a value stands: the parser gives none, and a message without a line sends people searching."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from typing import Any

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class _Statement:
    """A header or an assignment: what it names, and the lines it takes (counted from 1, both ends included)."""

    path: Path
    first: int
    last: int


def line_of(text: str, path: Path, value: Any = None) -> int:
    """The line on which the key or item `path` of a valid TOML text stands; 1 where nothing of it is written.

    Parameters
    ----------
    text : str
    path : tuple of str and int
        Keys and positions from the top of the file, as in ``("methods", 0, "label")``.
    value : optional
        What stands there: finds an item in a list that goes over several lines.
    """
    best = _Statement((), 1, 1)
    for statement in _statements(text):
        length = len(statement.path)
        if length > len(path) and statement.path[: len(path)] == path and len(best.path) < len(path):
            # Named only on the way to something inside it, as a in a.b = 1.
            return statement.first
        if statement.path == path[:length] and length > len(best.path):
            best = statement
    lines = text.splitlines()[best.first - 1 : best.last]
    line = 0
    for step in path[len(best.path) :]:
        if isinstance(step, str):
            line = _first_match(lines, line, rf"(?<![\w-])[\"']?{re.escape(step)}[\"']?\s*=")
    if isinstance(value, str):
        line = _first_match(lines, line, rf"(?:{re.escape(json.dumps(value))}|'{re.escape(value)}')")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        line = _first_match(lines, line, rf"(?<![\w.]){re.escape(str(value))}(?![\w.])")
    return best.first + line


def _first_match(lines: list[str], start: int, pattern: str) -> int:
    return next((n for n in range(start, len(lines)) if re.search(pattern, lines[n])), start)


def _statements(text: str) -> list[_Statement]:
    found: list[_Statement] = []
    table: Path = ()
    counts: dict[Path, int] = {}
    lines = text.splitlines()
    place = 0
    while place < len(lines):
        end = _end_of_statement(lines, place)
        content = tomllib.loads("\n".join(lines[place:end]))
        if content and lines[place].lstrip().startswith("["):
            table = _header(_only_path(content), counts)
            found.append(_Statement(table, place + 1, end))
        elif content:
            path = _only_path(tomllib.loads(f"{_key_part(lines[place])} = {{}}"))
            found.append(_Statement(table + path, place + 1, end))
        place = end
    return found


def _end_of_statement(lines: list[str], start: int) -> int:
    """The first line after a statement: strings and lists may go over several lines."""
    for end in range(start + 1, len(lines) + 1):
        try:
            tomllib.loads("\n".join(lines[start:end]))
        except tomllib.TOMLDecodeError:
            continue
        return end
    return len(lines)


def _key_part(line: str) -> str:
    """What stands before the first equals sign that is not inside a quoted key."""
    found = re.match(r"""(?:[^"'=]|"(?:[^"\\]|\\.)*"|'[^']*')*""", line)
    return found[0] if found else line


def _only_path(content: dict[str, Any]) -> Path:
    """The one path through nested tables of one key each, such as a header alone makes."""
    path: list[str | int] = []
    inner: Any = content
    while isinstance(inner, dict) and inner:
        key, inner = next(iter(inner.items()))
        path.append(key)
    return (*path, 0) if inner == [{}] else tuple(path)


def _header(path: Path, counts: dict[Path, int]) -> Path:
    """A header's path with the positions of the lists it passes through."""
    resolved: Path = ()
    opens = bool(path) and path[-1] == 0
    names = path[:-1] if opens else path
    for position, name in enumerate(names):
        resolved += (name,)
        last = position == len(names) - 1
        if last and opens:
            counts[resolved] = counts.get(resolved, -1) + 1
        if resolved in counts:
            resolved += (counts[resolved],)
    return resolved
