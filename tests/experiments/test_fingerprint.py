"""The fingerprint of code: what changes it, what does not, and that nothing is imported for it."""

from __future__ import annotations

import ast
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import skpml
from skpml.experiments import _fingerprint
from skpml.experiments._fingerprint import find_commit, fingerprint, local_modules
from skpml.registry import METHOD_PATHS

CODE = '''"""A module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from skpml.likelihood import Votes


class Method:
    """A class."""

    def fit(self, X, *, scale: float = 1.0, **others):
        """A function."""
        # A comment.
        return f"{X!r:>{scale}} and {others['a']}" if X else np.sum(X[1:], axis=0)
'''


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the library that may be changed; each call reads it anew."""
    copy = tmp_path / "skpml"
    shutil.copytree(Path(skpml.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(_fingerprint, "_LIBRARY", copy)

    def read(module: str, folder: Path | None) -> _fingerprint._Source | None:
        path = _fingerprint._find_file(module, folder)
        return None if path is None else _fingerprint._parse(path, module, path.read_bytes())

    monkeypatch.setattr(_fingerprint, "_read", read)
    forget()
    yield copy
    forget()


def forget() -> None:
    _fingerprint._compute_once.cache_clear()


def change(path: Path) -> None:
    path.write_text(path.read_text(encoding="utf-8") + "\n_CHANGED = 1\n", encoding="utf-8")
    forget()


def own(folder: Path, text: str) -> str:
    # Times of files are coarse: two versions of a file can have the same time and size.
    place = folder / str(len(list(folder.iterdir())))
    place.mkdir()
    (place / "own.py").write_text(text)
    return fingerprint("own:Method", folder=place)


def test_comments_docstrings_and_formatting_do_not_count(tmp_path: Path) -> None:
    before = own(tmp_path, CODE)
    for old, new in (
        ("# A comment.", "# Another comment, and a new line.\n"),
        ("A module.", "A better description.\n\nWith details.\n"),
        ('        """A function."""\n', ""),
        ("    from skpml.likelihood import Votes", "    from skpml.tables import Table"),
        ("if TYPE_CHECKING:\n    from skpml.likelihood import Votes\n", ""),
        ("X, *, scale", "X,\n        *,\n        scale"),
        ("'a'", "('a')"),
    ):
        assert old in CODE
        assert own(tmp_path, CODE.replace(old, new)) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1.0", "1"),
        ("axis=0", "axis=None"),
        ("!r", "!s"),
        ("and {", "or {"),
        ("[1:]", "[:1]"),
        ("**others", "*others"),
        ("class Method:", "class Method(object):"),
        ("import numpy as np", "import numpy as np, os"),
        ("fit(", "_fit("),
        ("others['a']", "others['']"),
    ],
)
def test_everything_that_runs_counts(tmp_path: Path, old: str, new: str) -> None:
    assert old in CODE
    assert own(tmp_path, CODE) != own(tmp_path, CODE.replace(old, new))


def test_the_digest_is_the_same_in_every_version_of_python() -> None:
    """Written down; CI runs several versions, and results are shared between them."""
    writer = _fingerprint._Writer("")
    writer.write(ast.parse(CODE + "match x:\n    case [1, *_]: pass\nasync def g(): await (yield)\n"))
    assert hashlib.sha256("".join(writer.parts).encode()).hexdigest()[:16] == "df50fef91f148bd4"


def test_what_a_method_imports_counts_and_other_methods_do_not(library: Path) -> None:
    names = ("pml-nd", "pml-ni", "pml-ma", "candidate-likelihood", "ridge", "chain")

    def changed_by(*parts: str) -> set[str]:
        before = {name: fingerprint(name) for name in names}
        change(library.joinpath(*parts))
        return {name for name in names if fingerprint(name) != before[name]}

    assert changed_by("baselines", "_pml_nd.py") == {"pml-nd"}
    assert changed_by("baselines", "_common.py") == {"pml-nd", "pml-ni"}
    assert changed_by("baselines", "__init__.py") == set()
    assert changed_by("likelihood", "_noise.py") == {"candidate-likelihood"}
    assert changed_by("modal_alignment", "_updates.py") == {"pml-ma"}
    # Imported only when it is needed, two modules away.
    assert changed_by("modal_alignment", "_grid.py") == {"pml-ma"}
    assert changed_by("model_selection", "_judging.py") >= {"pml-ma"}
    for engine in (
        ("base.py",),
        ("noise.py",),
        ("datasets", "_loading.py"),
        ("metrics", "_ranking.py"),
        ("metrics", "_decisions.py"),
        ("reference", "_oracle.py"),
        ("experiments", "_evaluate.py"),
    ):
        assert changed_by(*engine) == set(names), engine
    for other in (
        ("registry.py",),
        ("io.py",),
        ("stats.py",),
        ("_docstrings.py",),
        ("cleaning", "_audit.py"),
        ("tables", "_table.py"),
        ("datasets", "_registry.py"),
        ("datasets", "_files.py"),
        *(
            ("experiments", path.name)
            for path in (library / "experiments").glob("_*.py")
            if path.stem != "_evaluate"
        ),
    ):
        assert changed_by(*other) == set(), other


def test_tuning_and_files_count_for_runs_that_use_them(library: Path) -> None:
    def states() -> list[str]:
        return [fingerprint("ridge", **each) for each in ({}, {"tuned": True}, {"from_file": True})]

    def changed_by(*parts: str) -> list[bool]:
        before = states()
        change(library.joinpath(*parts))
        return [one != other for one, other in zip(before, states(), strict=True)]

    assert len(set(states())) == 3
    assert changed_by("model_selection", "_search.py") == [False, True, False]
    assert changed_by("tables", "_table.py") == [False, False, True]
    assert changed_by("reference", "_ridge.py") == [True, True, True]


def test_all_that_the_evaluation_imports_is_considered() -> None:
    """A new import there must be added to the lists of the fingerprint, or be known not to matter."""
    without_numbers = {
        "skpml._sharing",
        "skpml.datasets._partial_dataset",
        "skpml.experiments._metrics",
        "skpml.experiments._runs",
        "skpml.registry",
    }
    source = _fingerprint._read(_fingerprint._EVALUATE, None)
    lists = (*_fingerprint._ENGINE, *_fingerprint._FOR_TUNING, *_fingerprint._FOR_FILES)
    covered = set(_fingerprint._follow(lists, None, ())) | without_numbers
    imported = [each for each in source.imports if each[0].startswith("skpml")]
    assert len(imported) > 10
    for each in imported:
        module = next(iter(_fingerprint._follow([each], None, ())))
        assert module in covered, each


def test_modules_next_to_the_suite(tmp_path: Path) -> None:
    package = tmp_path / "mine"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("from .method import Mine\n")
    (package / "method.py").write_text("from .inner import steps\nimport numpy\nclass Mine: pass\n")
    (package / "inner" / "__init__.py").write_text("")
    (package / "inner" / "steps.py").write_text("from ..other import *\nfrom skpml import PMLMA\n")
    (package / "other.py").write_text("")
    (package / "unused.py").write_text("")
    assert set(local_modules("mine:Mine", tmp_path)) == {
        "mine",
        "mine.method",
        "mine.inner.steps",
        "mine.other",
    }
    before = fingerprint("mine:Mine", folder=tmp_path)
    (package / "unused.py").write_text("x = 1\n")
    assert fingerprint("mine:Mine", folder=tmp_path) == before
    (package / "other.py").write_text("x = 1\n")
    assert fingerprint("mine:Mine", folder=tmp_path) != before
    assert local_modules("sklearn.ensemble:RandomForestClassifier", tmp_path) == {}


def test_a_custom_method_depends_on_the_library_that_it_imports(library: Path, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("from skpml import PMLMA\nclass Method(PMLMA): pass\n")
    before = fingerprint("own:Method", folder=tmp_path)
    change(library / "modal_alignment" / "_updates.py")
    assert fingerprint("own:Method", folder=tmp_path) != before


def test_a_module_with_an_error_has_a_fingerprint(tmp_path: Path) -> None:
    assert own(tmp_path, "def broken(:\n") != own(tmp_path, "def broken(:\n    ")


def test_every_method_has_a_fingerprint_without_being_imported() -> None:
    code = (
        "import sys\n"
        "from skpml.experiments._fingerprint import fingerprint\n"
        "before = set(sys.modules)\n"
        "from skpml.registry import METHOD_PATHS\n"
        "print(len({fingerprint(name) for name in METHOD_PATHS}))\n"
        "assert not {name for name in set(sys.modules) - before if name.startswith('skpml')}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # Variants of one class have the same code.
    assert int(done.stdout) == len({path.partition(":")[2] for path in METHOD_PATHS.values()} - {"PMLLC"})


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_commit_is_that_of_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> str:
        author = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        command = ["git", "-C", str(tmp_path), *author, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def found() -> dict | None:
        find_commit.cache_clear()
        return find_commit()

    library = tmp_path / "skpml"
    library.mkdir()
    (library / "__init__.py").touch()
    (tmp_path / "notes").touch()
    monkeypatch.setattr(_fingerprint, "_LIBRARY", library)
    assert found() is None
    git("init")
    git("add", "notes")
    git("commit", "-m", "first")
    assert found() is None, "the checkout is of something else"
    git("add", ".")
    git("commit", "-m", "second")
    assert found() == {"id": git("rev-parse", "HEAD"), "changed": False}
    (tmp_path / "notes").write_text("results")
    assert found() == {"id": git("rev-parse", "HEAD"), "changed": False}
    (library / "new.py").touch()
    assert found() == {"id": git("rev-parse", "HEAD"), "changed": True}
    monkeypatch.setenv("PATH", "")
    assert found() is None
    find_commit.cache_clear()
