"""Writing files whole or not at all."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["replacing"]


@contextmanager
def replacing(*targets: Path, overwrite: bool) -> Iterator[list[Path]]:
    """Give one temporary path a target; on success they are renamed, in order, on error nothing is left.

    Raises
    ------
    FileExistsError
        If a target exists and `overwrite` is False.
    """
    for target in targets:
        if not target.parent.is_dir():
            raise FileNotFoundError(f"{target}: the folder {target.parent} does not exist")
        if target.exists() and not overwrite:
            raise FileExistsError(f"{target} exists already: pass overwrite=True to replace it")
    token = uuid.uuid4().hex
    temporary = [target.with_name(f".{target.name}.{token}.tmp") for target in targets]
    try:
        yield temporary
        for source, target in zip(temporary, targets, strict=True):
            os.replace(source, target)
    finally:
        for source in temporary:
            source.unlink(missing_ok=True)
