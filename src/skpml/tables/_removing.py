"""Taking labels out of single cells."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from skpml.datasets._errors import DatasetFormatError
from skpml.tables._label_columns import flag

DropMask = NDArray[np.bool_]
_OPPOSITES = {"1": "0", "1.0": "0.0", "true": "false", "yes": "no"}
_MINUS = {"1": "-1", "1.0": "-1.0"}


def file_changed(path: Path, line: int | None = None) -> DatasetFormatError:
    return DatasetFormatError(
        path, "has been changed since it was read, so nothing was written; read it again", line=line
    )


def without_tags(cell: str, dropped: set[str], separator: str) -> str:
    """The text of a cell of tags without some of them; the others stay as they stand.

    Raises KeyError where one of the tags does not stand there.
    """
    parts = cell.split(separator)
    tags = [part.strip() for part in parts]
    if missing := dropped.difference(tags):
        raise KeyError(missing.pop())
    kept = [part for part, tag in zip(parts, tags, strict=True) if tag not in dropped]
    if kept and tags[0] in dropped:
        # The blanks behind a separator go with the tag before it.
        kept[0] = parts[0][: len(parts[0]) - len(parts[0].lstrip())] + kept[0].lstrip()
    return separator.join(kept)


def opposite(cell: str, *, minus: bool = False) -> str:
    """The text for 0 where one for 1 stands, written alike; KeyError where there is none.

    Where ``minus`` is True, -1 is the number that says no.
    """
    word = cell.strip()
    if flag(cell) != 1:
        raise KeyError(cell)
    opposite = (_OPPOSITES | _MINUS if minus else _OPPOSITES)[word.lower()]
    for alike in (str.lower, str.upper, str.capitalize):
        if alike(word) == word:
            opposite = alike(opposite)
            break
    return cell.replace(word, opposite)


def says_no_by_minus(found: Mapping[int, bool], n_labels: int) -> list[bool]:
    """Whether -1, and not 0, says no in the column of each label: as found there, else as in any other column."""
    return [found.get(label, any(found.values())) for label in range(n_labels)]
