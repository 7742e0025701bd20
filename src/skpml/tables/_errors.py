"""Errors about files: what is wrong, where, and which argument to change."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

# A file may unpack into this many times its size, and into this many bytes in any case. Data sets reach 25.
_MOST_UNPACKED, _UNPACKED_AT_LEAST = 100, 1 << 30


class Argument(NamedTuple):
    """An argument that a message mentions.

    Without a value the name alone is meant; a value of ``...`` stands for any value.
    """

    name: str
    value: Any = None

    def __str__(self) -> str:
        if self.value is None:
            return self.name
        return f"{self.name}=…" if self.value is ... else f"{self.name}={self.value!r}"


class TableError(ValueError):
    """A file is damaged or has another layout than expected, or an argument does not fit it.

    Parameters
    ----------
    *parts : str or Argument
        The problem and what to do about it, in pieces that are joined.
    path : path-like, optional
        The file.
    line : int, optional
        Line of a text file, counted from 1.
    row : int, optional
        Row of the table, counted from 0.
    column : str, optional
        Name of the column.
    value : object, optional
        What was found there, or what was passed for the argument.
    expected : object, optional
        What would be right.

    Attributes
    ----------
    problem : str
        The message without the place.
    argument : str or None
        Name of the first argument that the message mentions.
    arguments : tuple of Argument
        All arguments that the message mentions, with the values that it proposes.

    See Also
    --------
    skpml.tables.read_table : Raises this error.

    Examples
    --------
    >>> from skpml.tables import Dialect
    >>> Dialect(decimal="'")
    Traceback (most recent call last):
        ...
    skpml.tables._errors.TableError: decimal must be '.' or ',', got "'"
    """

    def __init__(
        self,
        *parts: str | Argument,
        path: str | Path | None = None,
        line: int | None = None,
        row: int | None = None,
        column: str | None = None,
        value: Any = None,
        expected: Any = None,
    ) -> None:
        self._parts = parts
        self.path = None if path is None else Path(path)
        self.line, self.row, self.column = line, row, column
        self.value, self.expected = value, expected
        self.arguments = tuple(part for part in parts if isinstance(part, Argument))
        self.argument = self.arguments[0].name if self.arguments else None
        self.problem = "".join(map(str, parts))
        super().__init__(self.describe(str))

    def describe(self, format_argument: Callable[[Argument], str]) -> str:
        """Word the message, with the arguments as the caller's users know them.

        Parameters
        ----------
        format_argument : callable
            Takes an argument with the attributes ``name`` and ``value`` and returns its text, such as
            ``--separator ,`` for a command line.

        Returns
        -------
        str
            The place and the problem.
        """
        text = "".join(part if isinstance(part, str) else format_argument(part) for part in self._parts)
        place = "" if self.path is None else str(self.path)
        if place and self.line is not None:
            place += f", line {self.line}"
        elif place and self.row is not None:
            place += f", row {self.row}"
        return f"{place}: {text}" if place else text


def refuse_arguments(suffix: str, *given: Any) -> None:
    """Raise if any field of the given data classes, which do not apply to a format, is set."""
    for part in given:
        for field in () if part is None else fields(part):
            value = getattr(part, field.name)
            if value != field.default:
                raise TableError(Argument(field.name), f" does not apply to {suffix} files", value=value)


@contextmanager
def parsing(path: Path, kind: str) -> Iterator[None]:
    """Report whatever a parser raises on damaged input as a TableError.

    Parsers of binary formats raise anything from ``struct.error`` to ``MemoryError`` on damaged bytes; errors that are
    not about the content pass.
    """
    try:
        yield
    except (TableError, ImportError, FileNotFoundError, PermissionError):
        raise
    except Exception as error:
        problem = f"not a readable {kind} file; it may be cut short or damaged, so copy it again ({message_of(error)})"
        if "allow_pickle" in message_of(error):
            problem = "holds Python objects, which are never loaded; write numbers, as in np.save(path, X.astype(float))"
        raise TableError(problem, path=path, expected=kind) from error


def check_unpacked_size(path: Path, n_bytes: int, packed: int | None = None) -> None:
    """Raise before anything is unpacked if that would take much memory for a small file; `packed` is its size."""
    packed = path.stat().st_size if packed is None else packed
    if n_bytes > max(_UNPACKED_AT_LEAST, _MOST_UNPACKED * packed):
        problem = (
            f"takes {n_bytes / 2**30:,.1f} GiB unpacked, more than {_MOST_UNPACKED} times its size, so it is refused; if "
            "that is meant, write it without compression"
        )
        raise TableError(problem, path=path, value=n_bytes)


def message_of(error: BaseException) -> str:
    """Return the message of an exception; some parsers fail to format it when the input holds a ``%``."""
    try:
        text = str(error)
    except Exception:
        text = ""
    return text or type(error).__name__


def require_extra(module: str, purpose: str) -> ModuleType:
    """Import an optional dependency, or explain how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = {"arff": "liac-arff"}.get(module.partition(".")[0], module.partition(".")[0])
        extra = "excel" if package == "openpyxl" else "files"
        raise ImportError(f"{purpose} needs {package}: pip install scikit-pml[{extra}]") from error
