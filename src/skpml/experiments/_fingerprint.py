"""Fingerprint of the code that makes the numbers of a run, so that results of older code are recognized.

It is computed from source files, without importing them: the module of the method, the evaluation of a run, and every
module of the library (or next to the suite) that these import. Comments, docstrings and formatting do not count.
"""

from __future__ import annotations

import ast
import hashlib
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from skpml.registry import METHOD_PATHS

_DIGITS = 16
_LIBRARY = Path(__file__).parents[1]

# A module, and the name that is imported from it; None means all of it.
Import = tuple[str, str | None]

_EVALUATE = "skpml.experiments._evaluate"
# What every evaluation uses. It imports more than it needs for each run, so its imports are not followed.
_ENGINE: tuple[Import, ...] = (
    ("skpml.base", None),
    ("skpml.datasets", "load_dataset"),
    ("skpml.metrics", "evaluate"),
    ("skpml.reference", "Oracle"),
)
_FOR_TUNING: tuple[Import, ...] = (("skpml.model_selection", "select_parameters"),)
_FOR_FILES: tuple[Import, ...] = (("skpml.datasets", "read_dataset"),)
# Texts, files that are written, and facts about data sets.
_WITHOUT_NUMBERS = ("skpml._docstrings", "skpml._writing", "skpml.datasets._registry")
# Data sets by name are arrays in files: reading them cannot change them, and records hold their checksum.
_FILE_FORMATS = ("skpml.datasets._files", "skpml.tables")

# Fields of syntax trees that do not change what runs.
_WITHOUT_MEANING = ("ctx", "kind", "type_comment", "type_ignores")


@dataclass(frozen=True)
class _Source:
    """A source file: digest of its code, what it imports, and where the names that it passes on come from."""

    digest: str
    imports: tuple[Import, ...]
    origins: dict[str, Import]


def fingerprint(
    method: str,
    *,
    folder: Path | None = None,
    tuned: bool = False,
    from_file: bool = False,
) -> str:
    """Return 16 hexadecimal digits that change with the code of a method or of its evaluation.

    Parameters
    ----------
    method : str
        Name of a registered method, or ``"module:Class"``.
    folder : Path, optional
        Folder of the suite; modules in it belong to the code. Installed packages other than this library do not.
    tuned : bool, default=False
        Whether parameters are chosen inside the training fold.
    from_file : bool, default=False
        Whether the data are read from a file of the user.

    Returns
    -------
    str
        The fingerprint.
    """
    # The code of the library that this process has imported does not change.
    compute = _compute if ":" in method else _compute_once
    return compute(method, folder, tuned, from_file)


def _compute(method: str, folder: Path | None, tuned: bool, from_file: bool) -> str:
    module, _, name = METHOD_PATHS.get(method, method).partition(":")
    start: list[Import] = [*_ENGINE, (module, name)]
    start += _FOR_TUNING if tuned else ()
    start += _FOR_FILES if from_file else ()
    ignored = _WITHOUT_NUMBERS if from_file else _WITHOUT_NUMBERS + _FILE_FORMATS
    modules = {_EVALUATE: _read(_EVALUATE, None), **_follow(start, folder, ignored)}
    lines = [f"{name} {source.digest}\n" for name, source in sorted(modules.items()) if source is not None]
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:_DIGITS]


_compute_once = cache(_compute)


def local_modules(method: str, folder: Path | None) -> dict[str, str]:
    """Return the modules next to the suite that a custom method consists of, with the digests of their code."""
    module, _, name = method.partition(":")
    found = _follow([(module, name)], folder, ("skpml",))
    return {each: source.digest for each, source in found.items()}


def _follow(start: Iterable[Import], folder: Path | None, ignored: tuple[str, ...]) -> dict[str, _Source]:
    """Find the modules that imports lead to, directly and through others."""
    found: dict[str, _Source] = {}
    pending, seen = list(start), set[Import]()
    while pending:
        if (each := pending.pop()) in seen:
            continue
        seen.add(each)
        module, name = each
        if any(module == prefix or module.startswith(f"{prefix}.") for prefix in ignored):
            continue
        if name is not None and _find_file(f"{module}.{name}", folder) is not None:
            pending.append((f"{module}.{name}", None))
            continue
        source = _read(module, folder)
        if source is None:
            continue
        if name in source.origins:
            pending.append(source.origins[name])
            if _is_library(module):
                # Other names that the package passes on, such as other methods, do not matter.
                continue
        found[module] = source
        pending += source.imports
    return found


def _is_library(module: str) -> bool:
    return module.partition(".")[0] == "skpml"


def _find_file(module: str, folder: Path | None) -> Path | None:
    base = _LIBRARY.parent if _is_library(module) else folder
    if base is None:
        return None
    stem = base.joinpath(*module.split("."))
    return next((path for path in (stem / "__init__.py", stem.with_suffix(".py")) if path.is_file()), None)


def _read(module: str, folder: Path | None) -> _Source | None:
    path = _find_file(module, folder)
    if path is None:
        return None
    if _is_library(module):
        return _parse(path, module, None)
    facts = path.stat()
    return _parse(path, module, (facts.st_mtime_ns, facts.st_size))


@cache
def _parse(path: Path, module: str, version: object) -> _Source:
    try:
        tree = ast.parse(path.read_bytes())
    except SyntaxError:
        # Importing it raises a better error.
        return _Source(hashlib.sha256(path.read_bytes()).hexdigest(), (), {})
    is_package = path.name == "__init__.py"
    package = module if is_package else module.rpartition(".")[0]
    writer = _Writer(package)
    writer.write(tree)
    digest = hashlib.sha256("".join(writer.parts).encode("utf-8", "surrogatepass")).hexdigest()
    passed_on = (origin for statement in ast.walk(tree) for origin in _list_imports(statement, package))
    return _Source(digest, tuple(dict.fromkeys(writer.imports)), dict(passed_on) if is_package else {})


def _list_imports(statement: ast.AST, package: str) -> Iterator[tuple[str, Import]]:
    """Yield the name and origin of each import of a statement."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            yield alias.asname or alias.name, (alias.name, None)
    elif isinstance(statement, ast.ImportFrom):
        module = statement.module or ""
        if statement.level:
            parents = package.split(".")
            base = parents[: len(parents) - statement.level + 1]
            module = ".".join([*base, *([module] if module else [])])
        for alias in statement.names:
            yield alias.asname or alias.name, (module, None if alias.name == "*" else alias.name)


class _Writer:
    """Writes a syntax tree as text that is the same in every version of Python (``ast.dump`` is not), and finds imports.

    What does not run is left out: docstrings, and imports for type checkers.
    """

    def __init__(self, package: str) -> None:
        self.package, self.parts = package, list[str]()
        self.imports: list[Import] = []

    def write(self, node: Any) -> None:
        if isinstance(node, list):
            for each in node:
                if isinstance(each, ast.If) and _is_for_type_checkers(each.test):
                    self.write(each.orelse)
                elif not _is_docstring(each):
                    self.write(each)
                    self.parts.append(",")
        elif isinstance(node, ast.AST):
            self.imports += (origin for _, origin in _list_imports(node, self.package))
            self._write_fields(node)
        else:
            self.parts.append(repr(node))

    def _write_fields(self, node: ast.AST) -> None:
        self.parts.append(f"({type(node).__name__}")
        for name, value in ast.iter_fields(node):
            if isinstance(node, ast.JoinedStr):
                # Versions differ in empty parts of f-strings.
                value = [part for part in value if getattr(part, "value", None) != ""]
            # Fields that newer versions added are empty in older code.
            if value is not None and value != [] and name not in _WITHOUT_MEANING:
                self.parts.append(f" {name}=")
                self.write(value)
        self.parts.append(")")


def _is_docstring(node: Any) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _is_for_type_checkers(test: ast.expr) -> bool:
    return getattr(test, "id", getattr(test, "attr", None)) == "TYPE_CHECKING"


@cache
def find_commit() -> dict[str, Any] | None:
    """Return the commit of the checkout that the library is imported from, and whether its files were changed since.

    None if it is not in a checkout, or there is no git.
    """

    def ask(*arguments: str) -> str:
        command = ["git", "-C", str(_LIBRARY), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        # A checkout of something else may contain an environment that the library is installed in.
        ask("ls-files", "--error-unmatch", "__init__.py")
        return {"id": ask("rev-parse", "HEAD"), "changed": bool(ask("status", "--porcelain", "--", "."))}
    except (OSError, subprocess.SubprocessError):
        return None
