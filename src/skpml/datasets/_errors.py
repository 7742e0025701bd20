"""What reading and writing data sets can go wrong with."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType


class DatasetFormatError(ValueError):
    """A file is not what its format asks for: cut short, corrupt, or laid out in another way.

    Parameters
    ----------
    path : path-like
        The file at fault.
    problem : str
        What is wrong, and what would be right.
    line : int, optional
        Line of a text file, counted from 1.

    Attributes
    ----------
    path : Path
        The file at fault.
    line : int or None
        Line of a text file, where known.
    """

    def __init__(self, path: str | Path, problem: str, *, line: int | None = None) -> None:
        self.path = Path(path)
        self.line = line
        place = f"{self.path}, line {line}" if line is not None else f"{self.path}"
        super().__init__(f"{place}: {problem}")


def require_extra(module: str, purpose: str) -> ModuleType:
    """Import an optional dependency, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as exc:
        package = {"arff": "liac-arff"}.get(module.partition(".")[0], module.partition(".")[0])
        raise ImportError(f"{purpose} needs {package}: pip install scikit-pml[files]") from exc
