"""Write the API reference, ``api/index.md``, from the ``__all__`` of every public module."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path

import skpml

_HEAD = """# API reference

Every public name, by module. Anything else, and every name that begins with an underscore, may change without notice.
"""


def public_modules() -> list[str]:
    """Names of the modules that declare public names; the command line declares none."""
    found = [module.name for module in pkgutil.walk_packages(skpml.__path__, "skpml.")]
    public = (name for name in found if not any(part.startswith("_") for part in name.split(".")))
    return ["skpml", *(name for name in public if hasattr(importlib.import_module(name), "__all__"))]


def reference_names() -> dict[str, list[str]]:
    """Public names by module; a name that several modules export is listed with the first of them."""
    seen: set[int] = set()
    names: dict[str, list[str]] = {}
    for module_name in public_modules():
        module = importlib.import_module(module_name)
        for name in module.__all__:
            value = getattr(module, name)
            documented = inspect.isclass(value) or inspect.isroutine(value)
            if not (documented and id(value) in seen):
                names.setdefault(module_name, []).append(name)
            if documented:
                seen.add(id(value))
    return names


def write_api_reference(folder: Path) -> None:
    """Write ``index.md`` into the folder ``api`` of the documentation."""
    sections = [_HEAD]
    for module_name, names in reference_names().items():
        module = importlib.import_module(module_name)
        objects = [
            name
            for name in names
            if inspect.isclass(getattr(module, name)) or inspect.isroutine(getattr(module, name))
        ]
        data = [name for name in names if name not in objects]
        lines = [f"## `{module_name}`", "", "```{eval-rst}", f".. automodule:: {module_name}"]
        lines += [f".. currentmodule:: {module_name}", ""]
        if objects:
            lines += [".. autosummary::", "   :toctree: generated", "   :nosignatures:", ""]
            lines += [f"   {name}" for name in objects]
        for name in data:
            lines += ["", f".. autodata:: {name}", "   :no-value:"]
        sections.append("\n".join([*lines, "```", ""]))
    folder.mkdir(exist_ok=True)
    folder.joinpath("index.md").write_text("\n".join(sections), encoding="utf-8")
