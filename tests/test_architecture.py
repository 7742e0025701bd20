"""The structure of the package: private modules, imports through packages, and the map in CONTRIBUTING.md."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "skpml"
PUBLIC_MODULES = {
    "base",
    "features",
    "graph",
    "io",
    "linalg",
    "noise",
    "registry",
    "stats",
    "views",
    "estimator_checks",
}
MODULES = sorted(SOURCE.rglob("*.py"))


def package_of(path):
    """The package or top-level module that a file belongs to."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_modules(path):
    """Absolute names of what a file imports from skpml, each with its line."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module, node.lineno
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno


def test_modules_are_private():
    public = {
        path.stem
        for path in MODULES
        if not path.stem.startswith("_")
        and not any(p.startswith("_") for p in path.relative_to(SOURCE).parts)
    }
    assert public == PUBLIC_MODULES


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_through_packages(path):
    past = []
    for name, line in imported_modules(path):
        parts = name.split(".")
        if (
            parts[0] == "skpml"
            and len(parts) > 2
            and parts[1] != package_of(path)
            and parts[2].startswith("_")
        ):
            past.append(f"line {line}: {name}")
    assert past == []


def test_the_map_shows_every_package():
    """The map in CONTRIBUTING.md names exactly the packages and modules that exist."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = re.search(r"^## Map of the code$.*?^```\n(.*?)^```$", text, re.M | re.S)[1]
    listed = set()
    for line in block.splitlines():
        if match := re.match(r"  ([\w./ ]+?)(?:  |$)", line):
            listed |= {name.rstrip("/") for name in match[1].split()}
    present = {
        path.name for path in SOURCE.iterdir() if path.name not in ("__init__.py", "py.typed", "__pycache__")
    }
    assert listed == present


def test_the_map_names_files_that_exist():
    """Every file that the table "Where to change what" names is there."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = re.search(r"^### Where to change what$(.*?)^#", text, re.M | re.S)[1]
    named = re.findall(r"`((?:src|tests|docs|benchmarks)/[\w./-]+)`", table)
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_citation_has_the_version_of_the_code():
    import skpml

    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (\S+)$", text, re.M)[1] == skpml.__version__
