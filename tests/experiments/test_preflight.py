"""Wrong names, methods and data files are reported before any run, with their key, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bench_helpers import Small

from skpml.datasets import PartialDataset, write_npz
from skpml.experiments import Suite, SuiteError, check_names, expand, load_suite, run_plan
from skpml.tables import TableError

SUITE = """name = "mine"
configurations = ["one.npz", "digits-6"]
folds = 3
[[methods]]
name = "own_methods:Counting"
label = "mine"
parameters = { gamma = 1.0 }
"""


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path)


def refusal(small: Small, text: str) -> SuiteError:
    """The error of running the suite; nothing is run or written."""
    small.path.write_text(text)
    with pytest.raises((SuiteError, TableError)) as caught:
        run_plan(expand(load_suite(small.path), data_home=small.folder / "none"), small.results)
    assert not small.results.exists()
    assert not small.fits()
    return caught.value


@pytest.mark.parametrize(
    ("old", "new", "key", "words"),
    [
        ("one.npz", "on.npz", "configurations[0]", "did you mean 'one.npz'?"),
        ("digits-6", "digit-6", "configurations[1]", "did you mean 'digits-6'?"),
        ("digits-6", "digits-99", "configurations[1]", "digits has 10 labels"),
        ("digits-6", "emotions-7", "configurations[1]", "emotions has 6 labels"),
        ("folds = 3", "folds = 91", "folds", "one.npz has 90 rows: too few for 91 folds"),
        ("Counting", "Countin", "methods[0].name", "did you mean 'Counting'?"),
        ("own_methods:", "own_method:", "methods[0].name", "No module named 'own_method'"),
        ("Counting", "NoEstimator", "methods[0].name", "own_methods:NoEstimator is not an estimator"),
        ("own_methods:Counting", "builtins:range", "methods[0].name", "cannot be created without arguments"),
        ("gamma = 1.0", "gama = 1.0", "methods[0].parameters.gama", "did you mean 'gamma'?"),
        ("parameters = {", "sweep = { gama = [1]}\nparameters = {", "methods[0].sweep.gama", "'gamma'?"),
        (
            "parameters = {",
            "tuning.grid.gama = [1]\nparameters = {",
            "methods[0].tuning.grid.gama",
            "'gamma'?",
        ),
    ],
)
def test_an_error_names_its_key(small: Small, old: str, new: str, key: str, words: str) -> None:
    assert SUITE.count(old) == 1
    error = refusal(small, SUITE.replace(old, new))
    assert (error.source, error.key) == (str(small.path), key)
    assert words in error.problem
    assert "\n" not in str(error)


def test_the_suite_as_it_stands_is_run(small: Small) -> None:
    small.path.write_text(SUITE)
    assert len(run_plan(expand(load_suite(small.path)), small.results, limit=1).executed) == 1


def test_registered_data_that_are_absent_are_no_mistake(small: Small) -> None:
    small.path.write_text(SUITE.replace("digits-6", "emotions-3"))
    plan = expand(load_suite(small.path), data_home=small.folder / "none")
    check_names(plan)
    assert list(plan.absent) == ["emotions-3"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"no archive", "one.npz: not a readable npz file"),
        (
            PartialDataset(np.ones((9, 3)), np.eye(3)[np.arange(9) % 3]),
            "configurations[0]: one.npz has no true labels",
        ),
        (PartialDataset(None, np.ones((9, 3)), np.ones((9, 3))), "one.npz has labels only"),
    ],
)
def test_a_data_file_that_cannot_be_used(small: Small, content: bytes | PartialDataset, words: str) -> None:
    path = small.folder / "one.npz"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        write_npz(content, path, overwrite=True)
    assert words in str(refusal(small, SUITE))


def test_only_data_that_something_is_to_do_on_are_read(small: Small) -> None:
    small.path.write_text(SUITE.replace(', "digits-6"', ""))
    plan = expand(load_suite(small.path))
    run_plan(plan, small.results)
    (small.folder / "one.npz").write_bytes(b"no archive")
    assert run_plan(plan, small.results).skipped == 3


def test_an_error_of_a_module_is_told(small: Small) -> None:
    (small.folder / "own_methods.py").write_text("def (")
    error = refusal(small, SUITE)
    assert error.key == "methods[0].name"
    assert "cannot be imported" in error.problem


def test_a_suite_without_a_file_is_called_by_its_name() -> None:
    suite = Suite(name="made", configurations=["digits-99"], methods=[{"name": "ridge"}])
    with pytest.raises(SuiteError, match=r"^made: configurations\[0\]: 99 candidates"):
        check_names(expand(suite))
