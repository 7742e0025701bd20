"""The settings of a cleaning: stored beside what it wrote, and used again."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from skpml import __version__
from skpml.cli._clean_reading import given

_READING = ("tags", "labels", "text", "image", "id", "features", "embeddings", "separator", "ignore",
            "encoding", "delimiter", "quote", "decimal")  # fmt: skip
# Arguments of the audit, and the options that they come from.
_AUDIT = {
    "method": "method",
    "drop_below": "drop_below",
    "keep_above": "keep_above",
    "budget": "budget",
    "n_folds": "folds",
    "random_state": "seed",
}
_EXCLUDING = (
    ("tags", "labels"),
    ("features", "embeddings"),
    ("budget", "drop_below"),
    ("budget", "keep_above"),
)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A file of settings, whose values stand in for options that are not given."""

    path: Path
    digests: tuple[str, ...]
    """Of the file that was cleaned, and of what it became; none in files of earlier versions."""

    def are_of_another(self, source: Path) -> bool:
        """Whether this is neither the file that was cleaned nor what it became; both have the same rows in place."""
        return bool(self.digests) and source.is_file() and _digest(source) not in self.digests


def settings_option(help: str) -> Callable[..., Any]:
    """The option that takes a file of settings and makes its values the defaults of the others."""
    return click.option(
        "--settings", metavar="FILE.json", type=click.Path(path_type=Path, exists=True, dir_okay=False),
        is_eager=True, callback=_use, help=help,
    )  # fmt: skip


def _use(context: click.Context, _: click.Parameter, path: Path | None) -> Settings | None:
    if path is None:
        return None
    content = _content(path)
    reading, audit = content["reading"], content.get("audit", {})
    if "embeddings" in reading:
        reading["embeddings"] = _found(reading["embeddings"], path.parent)
    if audit.get("budget") is not None:
        audit = {name: value for name, value in audit.items() if name not in ("drop_below", "keep_above")}
    values = {**reading, **{_AUDIT[name]: value for name, value in audit.items() if value is not None}}
    known = {parameter.name for parameter in context.command.params}
    context.default_map = {name: value for name, value in values.items() if name in known}
    digests = (content.get("sha256"), content.get("cleaned_sha256"))
    return Settings(path=path, digests=tuple(digest for digest in digests if isinstance(digest, str)))


def _content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        reading, audit = content["reading"], content.get("audit", {})
        right = isinstance(audit, dict) and all(map(_is_text, reading.values()))
    except (ValueError, KeyError, AttributeError, TypeError):
        right = False
    if not right:
        raise click.ClickException(
            f"{path} is not a file of settings; give the .json that 'skpml clean' wrote beside its output"
        )
    for part, values, known in (("reading", reading, _READING), ("audit", audit, _AUDIT)):
        if strange := sorted(set(values) - set(known)):
            raise click.ClickException(f"{path}: {part} has no setting {strange[0]!r}")
    return dict(content)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(part, str) for part in value)
    )


def _found(name: str, folder: Path) -> str:
    """A file that settings name: beside them, else, as earlier versions meant it, from where we are."""
    beside = folder / name
    return str(beside) if beside.is_file() else name


def settled(values: dict[str, Any]) -> dict[str, Any]:
    """Options without those from settings that an option of the command line excludes."""
    said = said_by_hand()
    gone = {
        other
        for pair in _EXCLUDING
        for one, other in (pair, pair[::-1])
        if one in said and other not in said and other in values
    }
    return {**values, **{name: () if isinstance(values[name], tuple) else None for name in gone}}


def said_by_hand() -> set[str]:
    """The options that stand on the command line."""
    context = click.get_current_context()
    return {
        name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }


def settings_text(
    source: Path, cleaned: Path, chosen: dict[str, Any], reading: dict[str, Any], folder: Path
) -> str:
    """What is stored: all that makes the same output again, and what tells the files apart."""
    # In an order of ours: options come in that of the command line.
    stored = {name: value for name in _READING if (value := given(reading).get(name)) is not None}
    if "embeddings" in stored:
        stored["embeddings"] = _from_folder(stored["embeddings"], folder)
    content = {
        "skpml": __version__,
        "data": source.name,
        "sha256": _digest(source),
        "cleaned_sha256": _digest(cleaned),
        "audit": chosen,
        "reading": stored,
    }
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    # Bytes of a file name that are no text have no UTF-8 form.
    return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _from_folder(name: str, folder: Path) -> str:
    if os.path.isabs(name):
        return name
    try:
        return os.path.relpath(name, folder)
    except ValueError:  # another drive
        return os.path.abspath(name)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
