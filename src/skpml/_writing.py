"""Writing files whole or not at all."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["replacing", "replacing_folder"]


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


@contextmanager
def replacing_folder(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """Give a temporary folder; on success it becomes the target, on error nothing is left.

    A target that exists keeps its other files.

    Raises
    ------
    FileExistsError
        If the target is a folder with something in it and `overwrite` is False, or a file.
    """
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target}: the folder {target.parent} does not exist")
    if target.exists() and not target.is_dir():
        raise FileExistsError(f"{target} is a file; name a folder")
    if target.is_dir() and any(target.iterdir()) and not overwrite:
        raise FileExistsError(f"{target} is not empty: pass overwrite=True to replace files in it")
    # Beside or inside the target, so that moving is renaming.
    place = target if target.is_dir() else target.parent
    temporary = place / f".{target.name}.{uuid.uuid4().hex}.tmp"
    temporary.mkdir()
    try:
        yield temporary
        if target.exists():
            _move_files(temporary, target)
        else:
            temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _move_files(source: Path, target: Path) -> None:
    for path in sorted(source.rglob("*")):
        place = target / path.relative_to(source)
        if path.is_dir():
            place.mkdir(exist_ok=True)
        else:
            os.replace(path, place)
