"""What the documentation shows is true: examples in docstrings and pages run, and no public name is left out.

A Python block of a page runs after the blocks above it, in one namespace, in a folder of its own. A block that begins
with ``# not run`` is skipped.
"""

import doctest
import importlib
import inspect
import pkgutil
import re
import runpy
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import skpml
from browser_helpers import CHROMIUM

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "guide").glob("*.md")],
    key=lambda page: page.name,
)


def imported(name):
    """A module, or None where an optional package is absent."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if (error.name or "").startswith("skpml"):
            raise
        return None


def is_public(name):
    """Whether a module says what it offers; the command line offers commands, not names."""
    hidden = any(part.startswith("_") for part in name.split(".")) or name.startswith("skpml.cli")
    return not hidden and hasattr(imported(name), "__all__")


# To import __main__ is to run the command.
FOUND = sorted(module.name for module in pkgutil.walk_packages(skpml.__path__, "skpml."))
MODULES = ["skpml", *(name for name in FOUND if not name.endswith("__main__"))]
PUBLIC_MODULES = [name for name in MODULES if is_public(name)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    module = imported(name)
    if module is None:
        pytest.skip(f"{name} needs a package that is not installed")
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE, verbose=False)
    assert failed == 0


def python_blocks(page):
    """The Python blocks of a page, each padded so that line numbers in an error are those of the page."""
    lines = page.read_text(encoding="utf-8").splitlines()
    start = None
    for number, line in enumerate(lines):
        if start is None and line.strip() == "```python":
            start = number + 1
        elif start is not None and line.strip() == "```":
            code = lines[start:number]
            if code and code[0].strip() != "# not run":
                yield "\n" * start + "\n".join(code)
            start = None
    assert start is None, f"{page.name} has a block that is not closed"


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with the files that pages speak of: a CSV file of photos, new ones, and the named data sets."""
    from skpml.datasets import PartialDataset, write_npz

    rng = np.random.default_rng(0)
    for name in ("photos.csv", "new.csv", "checked.csv"):
        X = rng.uniform(-1, 1, size=(60, 2))
        true = np.column_stack([X[:, 0] > 0, X[:, 1] > 0, X[:, 0] <= 0])
        tags = true | (rng.random(true.shape) < 0.2)
        lines = ["file,warmth,brightness,tags"]
        for number, (row, marks) in enumerate(zip(X, tags, strict=True)):
            listed = ";".join(tag for tag, mark in zip(("beach", "sky", "snow"), marks, strict=True) if mark)
            lines.append(f"{number}.jpg,{row[0]:.4f},{row[1]:.4f},{listed}")
        (tmp_path / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    data = tmp_path / "data"
    data.mkdir()
    truth = np.eye(6, dtype=np.uint8)[np.arange(60) % 6]
    real = np.maximum(truth, np.roll(truth, 1, axis=1))
    X = rng.normal(size=(60, 5))
    write_npz(PartialDataset(X, truth, truth), data / "emotions.npz")
    write_npz(PartialDataset(X, real, truth), data / "yeastbp.npz")
    write_npz(PartialDataset(None, real, truth), data / "music_style_labels.npz")
    monkeypatch.setenv("SKPML_DATA", str(data))
    monkeypatch.chdir(tmp_path)


@pytest.mark.filterwarnings("ignore:.*no candidate label")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.slow
def test_python_of_a_page(page, desk):
    blocks = list(python_blocks(page))
    if not blocks:
        pytest.skip("the page shows no Python")
    namespace = {"__name__": "__main__"}
    for block in blocks:
        exec(compile(block, str(page), "exec"), namespace)


# Checks of numpydoc that do not apply: texts may begin after the quotes (GL01, GL02), returned values may have names
# (RT02), and an extended summary, "See Also" and "Examples" (ES01, SA01, EX01) stand where they help.
IGNORED_CHECKS = {"GL01", "GL02", "RT02", "ES01", "SA01", "SA04", "EX01"}


def public_objects():
    """Full names of all public classes, functions and methods."""
    for module_name in PUBLIC_MODULES:
        module = importlib.import_module(module_name)
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                yield f"{module_name}.{name}"
            if inspect.isclass(value):
                for member, attribute in vars(value).items():
                    described = inspect.isfunction(attribute) or isinstance(
                        attribute, (classmethod, staticmethod, property)
                    )
                    if described and not member.startswith("_"):
                        yield f"{module_name}.{name}.{member}"


@pytest.mark.parametrize("name", sorted(set(public_objects())))
def test_docstring_follows_numpydoc(name):
    validate = pytest.importorskip("numpydoc.validate").validate
    errors = [error for error in validate(name)["errors"] if error[0] not in IGNORED_CHECKS]
    assert not errors


def test_the_picture_is_what_its_script_draws():
    """Up to rounding: another BLAS may turn a last digit."""
    stored = ROOT / "docs" / "_static" / "confidences.svg"
    assert stored.stat().st_size < 200_000
    drawn = runpy.run_path(str(ROOT / "docs" / "make_picture.py"))["picture"]()
    words, numbers = zip(
        *(texts_and_numbers(text) for text in (stored.read_text(encoding="utf-8"), drawn)), strict=True
    )
    assert words[0] == words[1]
    np.testing.assert_allclose(*numbers, atol=0.021)


def texts_and_numbers(picture):
    texts = [
        element.text for element in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")
    ]
    is_number = [re.fullmatch(r"[\d.]+", text) is not None for text in texts]
    words = sorted(text for text, number in zip(texts, is_number, strict=True) if not number)
    return words, sorted(float(text) for text, number in zip(texts, is_number, strict=True) if number)


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
@pytest.mark.slow
def test_the_screenshots_can_be_taken_again(tmp_path):
    """Letters differ from machine to machine; the size of the picture and most of its points do not."""
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    script = runpy.run_path(str(ROOT / "docs" / "make_screenshot.py"))
    for stored, picture in zip(script["TARGETS"], script["take_screenshots"](), strict=True):
        assert stored.stat().st_size < 200_000
        script["save"](picture, tmp_path / stored.name)
        one, other = (
            np.asarray(image.open(path).convert("L"), dtype=float)
            for path in (stored, tmp_path / stored.name)
        )
        assert one.shape == other.shape
        assert np.mean(np.abs(one - other) > 60) < 0.1


def test_local_links_of_the_readme_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)\)", text) + re.findall(r'src="([^":]+)"', text)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
