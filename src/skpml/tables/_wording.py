"""Text from a file inside a message."""

from __future__ import annotations

_MOST = 60


def shown(text: str) -> str:
    """A text in quotes on one line, cut where it is long: a cell may hold a whole document."""
    return repr(text if len(text) <= _MOST else f"{text[:_MOST]}…")
