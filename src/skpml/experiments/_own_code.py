"""Methods of one's own: found beside the suite, imported, and known by their content: changed code means new runs."""

from __future__ import annotations

import hashlib
import importlib
import sys
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any

from skpml.experiments._protocol import SuiteError

# Which content of which file a module of this process came from.
_IMPORTED: dict[str, tuple[Path, dict[str, Any]]] = {}


def code_facts(name: str, folder: Path | None) -> dict[str, Any] | None:
    """What tells one content of the module of ``"package.module:Class"`` from another.

    None for registered methods and installed packages: only modules beside the suite are one's own.
    """
    source = _source_file(name, folder)
    return None if source is None else {"module_sha256": hashlib.sha256(source.read_bytes()).hexdigest()}


def own_class(name: str, folder: Path | None, code: dict[str, Any] | None = None) -> type:
    """Import ``"package.module:Class"``; modules beside the suite's file are found too.

    Parameters
    ----------
    name : str
    folder : Path or None
        Of the suite's own file.
    code : dict, optional
        What :func:`code_facts` said when the run was planned; by default what it says now.

    Raises
    ------
    SuiteError
        If it cannot be imported, or the module beside the suite is no longer that of `code`.
    """
    module_name, _, class_name = name.partition(":")
    if folder is not None and sys.path[:1] != [str(folder)]:
        sys.path.insert(0, str(folder))
    try:
        module = _module(name, folder, code)
    except SuiteError:
        raise
    # Whatever a stranger's module does while it is imported.
    except Exception as error:
        beside = "" if folder is None else f" (looked for beside the suite in {folder} too)"
        what = str(error) if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        raise SuiteError(f"the method {name!r} cannot be imported{beside}: {what}") from error
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        problem = f"{module_name} has no class {class_name!r}"
        raise SuiteError(
            f"the method {name!r} cannot be imported: {problem}{_nearest_class(class_name, module)}"
        )
    return found


def own_estimator(name: str, folder: Path | None, code: dict[str, Any] | None = None) -> Any:
    """An unfitted estimator of one's own class, with its defaults.

    Raises
    ------
    SuiteError
        If the class cannot be imported, or is no estimator.
    """
    found = own_class(name, folder, code)
    try:
        model = found()
    except TypeError as error:
        raise SuiteError(f"{name} cannot be made without arguments: give each a default ({error})") from error
    if not hasattr(model, "get_params"):
        raise SuiteError(f"{name} is no estimator: derive it from skpml.base.BasePMLClassifier")
    return model


def _source_file(name: str, folder: Path | None) -> Path | None:
    if folder is None or ":" not in name:
        return None
    stem = folder.joinpath(*name.partition(":")[0].split("."))
    return next((path for path in (stem / "__init__.py", stem.with_suffix(".py")) if path.is_file()), None)


def _module(name: str, folder: Path | None, code: dict[str, Any] | None) -> ModuleType:
    """The module of the content asked for: a process that works for long may have imported an earlier one."""
    module, source, now = name.partition(":")[0], _source_file(name, folder), code_facts(name, folder)
    if source is None or now is None:
        return importlib.import_module(module)
    asked = code or now
    if module not in sys.modules or _IMPORTED.get(module) != (source, asked):
        if asked != now:
            raise SuiteError(
                f"{source} has changed since its runs were planned; the same command does the new ones"
            )
        sys.modules.pop(module, None)
        importlib.invalidate_caches()
        importlib.import_module(module)
        _IMPORTED[module] = (source, asked)
    return sys.modules[module]


def _nearest_class(wanted: str, module: ModuleType) -> str:
    own = [
        name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__
    ]
    classes = [name for name in own if isinstance(getattr(module, name), type)]
    by_lower = {name.lower(): name for name in classes}
    near = get_close_matches(wanted.lower(), by_lower, n=1)
    if near or len(classes) == 1:
        return f"; did you mean {(by_lower[near[0]] if near else classes[0])!r}?"
    return f"; it has {', '.join(classes)}" if classes else "; it has no class at all"
