"""Wrong names, methods and data files are told before any run, with file and line, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bench_helpers import Small

from skpml.datasets import PartialDataset, write_npz
from skpml.experiments import SuiteError, expand, load_suite, run_plan
from skpml.experiments._door import check_names
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


def refusal(small: Small, text: str) -> str:
    """What running the suite is refused with; nothing is run or written."""
    small.path.write_text(text)
    with pytest.raises((SuiteError, TableError)) as caught:
        run_plan(expand(load_suite(small.path), data_home=small.folder / "none"), small.results)
    assert not small.results.exists()
    assert not small.fits()
    return str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("one.npz", "on.npz", 2, ["configurations[1]: there is no file", "did you mean 'one.npz'?"]),
        ("digits-6", "digit-6", 2, ["configurations[2]: there is no data set 'digit'", "did you mean 'digits-6'?"]),
        ("digits-6", "digits-99", 2, ["configurations[2]: 99 candidates", "digits has 10 labels"]),
        ("digits-6", "emotions-7", 2, ["7 candidates a row are too many: emotions has 6 labels"]),
        ("folds = 3", "folds = 91", 3, ["folds: one.npz has 90 rows: too few for 91 folds"]),
        ("Counting", "Countin", 5, ["methods[1].name: ", "has no class 'Countin'; did you mean 'Counting'?"]),
        ("own_methods:", "own_method:", 5, ["methods[1].name: ", "No module named 'own_method'"]),
        ("Counting", "NoEstimator", 5, ["methods[1].name: own_methods:NoEstimator is no estimator"]),
        ("own_methods:Counting", "builtins:range", 5, ["builtins:range cannot be made without arguments"]),
        ("gamma = 1.0", "gama = 1.0", 7, ["methods[1].parameters.gama: ", "did you mean 'gamma'?"]),
        ("parameters = {", "sweep = { gama = [1]}\nparameters = {", 7, ["methods[1].sweep.gama", "'gamma'?"]),
        ("parameters = {", "tuning.grid.gama = [1]\nparameters = {", 7, ["tuning.grid.gama", "'gamma'?"]),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_line(
    small: Small, old: str, new: str, line: int, words: list[str]
) -> None:
    assert SUITE.count(old) == 1
    message = refusal(small, SUITE.replace(old, new))
    assert message.startswith(f"{small.path}, line {line}: "), message
    for word in words:
        assert word in message
    assert "\n" not in message


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
            "line 2: configurations[1]: one.npz has no true labels",
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
    assert words in refusal(small, SUITE)


def test_only_data_that_something_is_to_do_on_are_read(small: Small) -> None:
    small.path.write_text(SUITE.replace(', "digits-6"', ""))
    plan = expand(load_suite(small.path))
    run_plan(plan, small.results)
    (small.folder / "one.npz").write_bytes(b"no archive")
    assert run_plan(plan, small.results).skipped == 3


def test_an_error_of_a_module_is_told(small: Small) -> None:
    (small.folder / "own_methods.py").write_text("def (")
    assert "line 5: methods[1].name: the method 'own_methods:Counting' cannot be imported" in refusal(
        small, SUITE
    )


def test_a_suite_without_a_file_is_told_without_a_line() -> None:
    suite = load_suite("quick").model_copy(update={"configurations": ["digits-99"]})
    suite._text = suite._source = ""
    with pytest.raises(SuiteError, match=r"^quick: configurations\[1\]: 99 candidates"):
        check_names(expand(suite))
