"""Every method by its name: listed, described, fitted, saved."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from skpml import get_method, list_methods
from skpml.io import load_model

from .conftest import PHOTO_OPTIONS, Run


def test_the_list_names_every_method(run: Run) -> None:
    result = run("methods")
    assert result.exit_code == 0
    assert [
        line.split()[0] for line in result.stdout.splitlines()[1 : 1 + len(list_methods())]
    ] == list_methods()


def test_one_method_with_its_reference_and_parameters(run: Run) -> None:
    shown = run("methods", "pml-ni").stdout
    assert get_method("pml-ni").reference[:40] in shown
    assert "lam=10.0" in shown


def test_facts_for_programs(run: Run) -> None:
    facts = json.loads(run("methods", "--json").stdout)
    assert [entry["name"] for entry in facts] == list_methods()
    assert json.loads(run("methods", "pamb", "--json").stdout)["confidences"] is False


def test_unknown_method(refused: Callable[..., str], photos: Path) -> None:
    assert "did you mean 'pml-ni'" in refused("methods", "pml-mi")
    assert "did you mean 'pml-ni'" in refused(
        "fit", photos, *PHOTO_OPTIONS, "--method", "pml-mi", "-o", "a.skpml"
    )


def test_parameters_of_a_method(refused: Callable[..., str], photos: Path) -> None:
    fit = ("fit", photos, *PHOTO_OPTIONS, "-o", "a.skpml", "--method", "pml-ni")
    assert "pml-ni has no parameter 'ratio'; it has" in refused(*fit, "-P", "ratio=1")
    assert "--param needs NAME=VALUE" in refused(*fit, "-P", "beta")
    assert "--param: on_empty is set by --allow-empty" in refused(*fit, "-P", "on_empty=ignore")
    assert "--param: random_state is set by --seed" in refused(*fit, "-P", "random_state=1")
    assert "--param: lam is given twice" in refused(*fit, "-P", "lam=1", "-P", "lam=2")
    assert "beta must be a finite number" in refused(*fit, "-P", "beta=much")


@pytest.mark.parametrize("name", list_methods())
@pytest.mark.slow
def test_fit_save_and_predict(run: Run, photos: Path, folder: Path, name: str) -> None:
    if get_method(name).needs is not None:
        pytest.importorskip(get_method(name).needs, reason=f"{name} needs {get_method(name).needs}")
    done = run("fit", photos, *PHOTO_OPTIONS, "--method", name, "-o", "a.skpml")
    assert done.exit_code == 0, done.output
    assert get_method(name).title in done.stdout
    assert isinstance(load_model(folder / "a.skpml"), get_method(name).estimator_class)
    done = run("predict", "a.skpml", photos, "-o", "tags.csv")
    assert done.exit_code == 0, done.output


def test_a_parameter_reaches_the_method(run: Run, photos: Path, folder: Path) -> None:
    done = run(
        "fit",
        photos,
        *PHOTO_OPTIONS,
        "--method",
        "pml-ni",
        "-P",
        "beta=2",
        "-P",
        "max_iter=7",
        "-o",
        "a.skpml",
    )
    assert done.exit_code == 0, done.output
    model = load_model(folder / "a.skpml")
    assert (model.beta, model.max_iter) == (2, 7)
