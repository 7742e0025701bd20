"""What all formats share: turning parser failures, and parts that do not pass the checks, into one error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skpml.datasets._errors import DatasetFormatError
from skpml.datasets._partial_dataset import PartialDataset


@contextmanager
def parsing(path: Path, kind: str) -> Iterator[None]:
    """Report whatever a parser raises on damaged input as a DatasetFormatError.

    Parsers of binary formats raise anything from ``struct.error`` to ``MemoryError`` on damaged bytes, hence
    the broad net; errors that are not about the content pass.
    """
    try:
        yield
    except (DatasetFormatError, ImportError, FileNotFoundError, PermissionError):
        raise
    except Exception as exc:
        raise DatasetFormatError(
            path,
            f"not a readable {kind} file; it may be cut short or damaged, so copy it again ({message_of(exc)})",
        ) from exc


def message_of(exc: BaseException) -> str:
    """Return what an exception says; some parsers fail to say it when the input holds a ``%``."""
    try:
        text = str(exc)
    except Exception:
        text = ""
    return text or type(exc).__name__


def build_dataset(path: Path, **parts: Any) -> PartialDataset:
    """Make the data set of a file; a part that does not pass the checks is reported with the file's name."""
    if parts["candidates"] is None:
        parts["candidates"] = parts["truth"]
    parts["label_names"] = parts.get("label_names") or ()
    parts["name"] = parts.get("name") or path.stem
    try:
        return PartialDataset(**parts)
    except ValueError as exc:
        raise DatasetFormatError(path, str(exc)) from exc
