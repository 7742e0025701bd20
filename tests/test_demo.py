"""The demonstration: the same seed gives the same page, the page needs nothing, and its words follow its figures."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.model_selection import KFold

from page_checker import PageChecker
from skpml import PMLMA
from skpml.datasets import load_dataset
from skpml.demo import METHODS, DemoResult, is_demo_page, render_page, run_demo, summarise, verdict
from skpml.demo.job import DEFAULT_PENALTY, METRIC_NAMES
from skpml.metrics import average_precision, denoising_scores
from skpml.reference import CandidateRidge

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def result() -> DemoResult:
    return run_demo(n_folds=3, noise_levels=(6, 9), penalties=(0.1,), seed=4)


@pytest.fixture(scope="module")
def page(result: DemoResult) -> str:
    return render_page(result)


def test_the_figures_are_those_of_the_learners_on_the_same_folds(result: DemoResult) -> None:
    data = load_dataset("digits", candidates=6, random_state=4)
    train, test = next(iter(KFold(3, shuffle=True, random_state=4).split(data.X)))
    for key, model, labels in (
        ("pml-ma", PMLMA(random_state=4), data.candidates),
        ("floor", CandidateRidge(random_state=4), data.candidates),
        ("ceiling", CandidateRidge(random_state=4), data.truth),
    ):
        scores = model.fit(data.X[train], labels[train]).decision_function(data.X[test])
        expected = average_precision(data.truth[test], scores, convention="pml")
        assert result.scores[key]["average_precision"][0] == pytest.approx(expected)
    everything = PMLMA(random_state=4).fit(data.X, data.candidates)
    expected = denoising_scores(data.candidates, data.truth, everything.confidences_)["auc"]
    assert result.denoising_auc["pml-ma"] == pytest.approx(expected)


def test_the_same_seed_gives_the_same_page_and_another_seed_another(result: DemoResult, page: str) -> None:
    assert render_page(run_demo(n_folds=3, noise_levels=(6, 9), penalties=(0.1,), seed=4)) == page
    assert render_page(run_demo(n_folds=3, noise_levels=(6, 9), penalties=(0.1,), seed=5)) != page


def test_the_page_asks_for_nothing_from_outside(page: str) -> None:
    without_namespaces = re.sub(r'xmlns(:\w+)?="[^"]*"', "", page)
    assert not re.search(r"https?:|//[a-z]|@import|src=|<link|<script", without_namespaces)
    assert re.findall(r"url\((?!#)", page) == []


def test_the_page_is_well_formed_and_its_references_resolve(page: str) -> None:
    checker = PageChecker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    assert len(checker.ids) == len(set(checker.ids)) > 0
    assert set(checker.references) <= set(checker.ids)
    assert checker.references


def test_the_page_shows_what_was_measured(result: DemoResult, page: str) -> None:
    for summary in summarise(result):
        assert summary.title in page
        for key in METHODS:
            assert f"{summary.mean[key]:.4f}" in page
            assert f"{summary.std[key]:.4f}" in page
    for figure in (*result.denoising_auc.values(), result.model.n_iter_, "pml convention", "--seed 4"):
        assert (f"{figure:.4f}" if isinstance(figure, float) else str(figure)) in page
    assert page.count('class="card"') == 8
    assert page.count("✗") > 8
    assert "#0102" not in page  # colours that were to be replaced


def test_dark_and_light_have_the_same_colours_defined(page: str) -> None:
    light, dark = re.findall(r":root \{(.*?)\}", page, flags=re.DOTALL)[:2]
    assert set(re.findall(r"--[a-z]+", light)) == set(re.findall(r"--[a-z]+", dark))
    assert set(re.findall(r"var\((--[a-z]+)\)", page)) <= set(re.findall(r"--[a-z]+", light))


def _with_average_precision(result: DemoResult, floor: float, method: float, ceiling: float) -> DemoResult:
    values = {"floor": floor, "pml-ma": method, "ceiling": ceiling}
    scores = {
        key: {name: np.full(3, values[key]) if name == "average_precision" else result.scores[key][name]
              for name in METRIC_NAMES}
        for key in METHODS
    }  # fmt: skip
    return replace(result, scores=scores)


@pytest.mark.parametrize(
    ("floor", "method", "ceiling", "words"),
    [
        (0.80, 0.805, 0.90, "adds little over plain ridge"),
        (0.80, 0.795, 0.90, "does not improve on plain ridge"),
        (0.80, 0.80, 0.90, "does not improve on plain ridge"),
        (0.80, 0.75, 0.90, "does worse than plain ridge"),
        (0.80, 0.87, 0.90, "goes 70% of the way"),
        (0.80, 0.815, 0.90, "goes only 15% of the way"),
        (0.80, 0.80, 0.80, "nothing to gain."),
        (0.80, 0.70, 0.80, "loses a little by doubting what is right"),
    ],
)
def test_the_headline_says_what_the_figures_say(
    result: DemoResult, floor: float, method: float, ceiling: float, words: str
) -> None:
    headline, grounds = verdict(_with_average_precision(result, floor, method, ceiling))
    assert words in headline
    assert f"{method:.4f} for PML-MA" in grounds


@pytest.mark.parametrize(
    ("ridge", "words"),
    [(0.95, "the penalty matters more than the method"), (0.81, "No other γ tried lifts ridge")],
)
def test_what_the_penalty_does_is_said(result: DemoResult, ridge: float, words: str) -> None:
    default = _with_average_precision(result, 0.8, 0.85, 0.9).scores
    other = _with_average_precision(result, ridge, 0.9, 0.95).scores
    _, grounds = verdict(replace(result, penalties={0.1: other, 1.0: default}))
    assert words in grounds
    assert f"PML-MA is ahead at {2 if ridge < 0.9 else 1} of the 2 values tried" in grounds


def test_the_default_penalty_is_the_estimators(result: DemoResult) -> None:
    assert PMLMA().gamma == CandidateRidge().gamma == DEFAULT_PENALTY
    for method in METHODS.values():
        assert method.build(0, 0.5).gamma == 0.5
    assert result.penalties[DEFAULT_PENALTY] is result.scores
    assert list(result.penalties) == [0.1, 1.0]


def test_the_way_to_the_ceiling_is_signed_by_what_is_better(result: DemoResult) -> None:
    for summary in summarise(result):
        sign = 1 if summary.greater_is_better else -1
        gain = sign * (summary.mean["pml-ma"] - summary.mean["floor"])
        assert summary.closed is not None
        assert np.sign(summary.closed) == np.sign(gain)
        assert summary.folds_won + summary.folds_lost <= 3


@pytest.mark.parametrize("candidates", [1, 10])
def test_no_noise_and_nothing_but_noise_give_a_page_too(candidates: int) -> None:
    page = render_page(run_demo(candidates=candidates, n_folds=2, noise_levels=(4,), penalties=(0.1,)))
    assert ("nothing to clean" in page) == (candidates == 1)
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL)


def test_progress_is_told_step_by_step() -> None:
    seen: list[tuple[int, int, str]] = []
    run_demo(n_folds=2, noise_levels=(5,), penalties=(), progress=lambda *step: seen.append(step))
    assert [done for done, _, _ in seen] == list(range(5))
    assert {total for _, total, _ in seen} == {5}
    assert seen[0][2] == "5 candidates a row"


def test_only_pages_of_the_demonstration_are_taken_for_such(page: str, tmp_path: Path) -> None:
    own, other = tmp_path / "own.html", tmp_path / "other.html"
    own.write_text(page, encoding="utf-8")
    other.write_text("<!doctype html><title>scikit-pml demo</title>")
    assert is_demo_page(own)
    assert not is_demo_page(other)
    assert not is_demo_page(tmp_path / "none.html")
    assert not is_demo_page(tmp_path)
