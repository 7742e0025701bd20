"""Figures: they show the figures of the tables, in the page's colours, and are the same every time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from report_helpers import METHODS, gather, make_record, make_records, make_suite

pytest.importorskip("matplotlib")
pytest.importorskip("scikit_posthocs")

from skpml.experiments import Suite, rank_methods
from skpml.experiments._figures import (
    convergence_curves,
    critical_difference,
    decomposition_curves,
    sensitivity_curves,
)

METRIC = "average_precision"
_DIAGRAM = """
from report_helpers import gather, make_records, make_suite
from skpml.experiments import rank_methods
from skpml.experiments._figures import critical_difference
suite = make_suite(folds=2)
drawing = critical_difference(rank_methods(gather(suite, make_records(suite)), "average_precision"))
print(drawing.svg)
"""


def texts(svg: str) -> list[str]:
    found = ElementTree.fromstring(svg)
    return ["".join(node.itertext()).replace("\u2002", " ").strip() for node in found.iter("text")]


def check_svg(svg: str) -> None:
    """Well-formed, without colours of its own, without references to anything outside."""
    ElementTree.fromstring(svg)
    assert not re.search(r"#[0-9a-f]{6}|(?:fill|stroke): (?:black|white)|https?:", svg)
    ids = re.findall(r'\bid="([^"]+)"', svg)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg)) <= set(ids)


def test_the_diagram_shows_ranks_control_and_bars() -> None:
    suite = make_suite(folds=2)
    ranking = rank_methods(gather(suite, make_records(suite)), METRIC)
    drawing = critical_difference(ranking)
    assert drawing is not None
    check_svg(drawing.svg)
    shown = texts(drawing.svg)
    for name, rank in ranking.average_ranks.items():
        assert {f"{name} {rank:.2f}", f"{rank:.2f} {name}"} & set(shown)
    assert ranking.nemenyi is not None
    assert f"CD = {ranking.nemenyi.critical_difference:.2f}" in shown
    label = next(
        node
        for node in ElementTree.fromstring(drawing.svg).iter("text")
        if "pml-ma" in "".join(node.itertext())
    )
    assert "var(--accent)" in label.attrib["style"]
    assert re.search(r"font-weight: (bold|700)|bold", label.attrib["style"])


def test_bars_join_exactly_those_that_the_test_does_not_tell_apart() -> None:
    suite = make_suite(folds=2)
    ranking = rank_methods(gather(suite, make_records(suite)), METRIC)
    drawing = critical_difference(ranking)
    assert drawing is not None
    assert ranking.nemenyi is not None
    # Places of ranks on the page, from the ticks.
    ranks = sorted(ranking.average_ranks.values())
    expected = []
    for low in ranks:
        # The last rank within reach; a bar that lies in another one is not drawn.
        high = max(rank for rank in ranks if rank - low <= ranking.nemenyi.critical_difference)
        if high > low and not any(bar[1] >= high for bar in expected):
            expected.append((low, high))
    lines = re.findall(
        r'<path d="M ([\d.]+) ([\d.]+) \nL ([\d.]+) [\d.]+ \n"[^>]*stroke-width: 3', drawing.svg
    )
    bars = sorted((float(start), float(end)) for start, _, end in lines)
    assert len(bars) == len(expected) > 1
    ticks = [
        float(x)
        for x in re.findall(
            r'<use href="#[^"]+" x="([\d.]+)" y="[\d.]+" style="fill: currentColor', drawing.svg
        )
    ]
    first, last = min(ticks[:9]), max(ticks[:9])
    scale = (last - first) / 8
    for (start, end), (low, high) in zip(bars, sorted(expected), strict=True):
        assert start == pytest.approx(first + (low - 1) * scale, abs=0.01)
        assert end == pytest.approx(first + (high - 1) * scale, abs=0.01)


@pytest.mark.slow
def test_the_diagram_is_the_same_in_every_process() -> None:
    pages = set()
    path = os.pathsep.join(filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH"))))
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path}
        run = subprocess.run(
            [sys.executable, "-c", _DIAGRAM],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        pages.add(run.stdout)
    assert len(pages) == 1


@pytest.mark.filterwarnings("error")
def test_names_are_drawn_as_they_are_written() -> None:
    names = ["a $x_1$ <b>&", "方法", "{curly}", "c"]
    methods = [{"name": name, "label": label} for name, label in zip(METHODS, names, strict=False)]
    suite = make_suite(folds=2, methods=methods, control=names[0])
    drawing = critical_difference(rank_methods(gather(suite, make_records(suite)), METRIC))
    assert drawing is not None
    check_svg(drawing.svg)
    for name in names:
        assert any(name in text for text in texts(drawing.svg))


def test_there_is_no_diagram_of_two_methods_or_one_configuration() -> None:
    two = make_suite(folds=2, methods=[{"name": "pml-ma"}, {"name": "pml-ni"}])
    one = make_suite(folds=2, configurations=["birds-3"])
    for suite in (two, one):
        assert critical_difference(rank_methods(gather(suite, make_records(suite)), METRIC)) is None


def sensitivity_suite() -> Suite:
    sweep = {"low_rank_weight": [1e-4, 1e-2, 1.0], "ridge_weight": [0.1, 1.0, 10.0]}
    methods = [{"name": "pml-ma", "sweep": sweep}]
    return make_suite(kind="sensitivity", methods=methods, configurations=["birds-3", "yeast-7"], folds=2)


def test_sensitivity_has_a_figure_a_parameter_with_one_range_for_all() -> None:
    suite = sensitivity_suite()
    records = [
        make_record(
            suite,
            "pml-ma",
            name,
            fold,
            parameters={parameter: value},
            metrics={METRIC: 0.5 + (0.1 if parameter == "low_rank_weight" else 0.01) * place},
        )
        for parameter, values in suite.methods[0].sweep.items()
        for place, value in enumerate(values)
        for name in suite.configurations
        for fold in range(2)
    ]
    drawings = sensitivity_curves(gather(suite, records), METRIC)
    assert [drawing.title for drawing in drawings] == ["pml-ma: low_rank_weight", "pml-ma: ridge_weight"]
    ticks = []
    for drawing in drawings:
        check_svg(drawing.svg)
        shown = texts(drawing.svg)
        assert {"birds-3", "yeast-7", "Average precision"} <= set(shown)
        ticks.append([text for text in shown if re.fullmatch(r"0\.\d+", text)])
    assert ticks[0] == ticks[1]
    assert "10⁻⁴" in texts(drawings[0].svg)
    assert sensitivity_curves(gather(suite, []), METRIC) == []


def test_convergence_is_on_a_log_axis_unless_a_value_is_not_positive() -> None:
    suite = make_suite(
        kind="convergence",
        folds=2,
        configurations=["birds-3", "yeast-7", "arts-9"],
        methods=[{"name": "pml-ma", "history": True}],
    )
    objective = {"birds-3": [1000.0, 10.0, 0.1], "yeast-7": [5.0, -1.0]}
    records = [
        make_record(suite, "pml-ma", name, fold, history={"objective": values})
        for name, values in objective.items()
        for fold in range(2)
    ]
    log, linear = convergence_curves(gather(suite, records))
    assert (log.title, log.configuration) == ("birds-3", "birds-3")
    assert {"10³", "10⁻¹", "objective (log scale)", "pml-ma (2 runs)"} <= set(texts(log.svg))
    # Equal factors are equal steps.
    curve = re.search(
        r'd="M [\d.]+ ([\d.]+) \nL [\d.]+ ([\d.]+) \nL [\d.]+ ([\d.]+) \n"[^>]*stroke: var\(--accent\)',
        log.svg,
    )
    assert curve
    heights = [float(height) for height in curve.groups()]
    assert np.diff(heights)[0] == pytest.approx(np.diff(heights)[1], rel=1e-4)
    assert "not all values are positive" in linear.title
    for drawing in (log, linear):
        check_svg(drawing.svg)


@pytest.mark.parametrize(
    "objective",
    [
        [2900.0, 2376.0, 2403.0],
        [23760.5, 23760.1, 23759.9],
        [40.0, 10.0, 9.0],
        [0.0021, 0.0019],
        [3e7, 2.9e7],
    ],
)
def test_ticks_of_a_narrow_log_axis_are_distinct(objective) -> None:
    suite = make_suite(
        kind="convergence", configurations=["birds-3"], methods=[{"name": "pml-ma", "history": True}], folds=2
    )
    records = [
        make_record(suite, "pml-ma", "birds-3", fold, history={"objective": objective}) for fold in (0, 1)
    ]
    (drawing,) = convergence_curves(gather(suite, records))
    shown = texts(drawing.svg)
    ticks = shown[shown.index("iteration") + 1 : shown.index("objective (log scale)")]
    assert len(ticks) >= 2
    assert len(set(ticks)) == len(ticks)


def test_decomposition_is_drawn_over_noise_levels_for_both_methods() -> None:
    methods = [{"name": "pml-ma"}, {"name": "particle"}]
    suite = make_suite(
        kind="decomposition", configurations=["yeast-9", "yeast-5", "yeast-11"], methods=methods,
        metrics=["f1", "auc"], folds=2,
    )  # fmt: skip
    records = []
    for entry in suite.methods:
        for name in suite.configurations:
            metrics = {"f1": 0.5, "auc": 0.7}
            records += [make_record(suite, entry.label, name, fold, metrics=metrics) for fold in (0, 1)]
    drawings = decomposition_curves(gather(suite, records))
    assert [drawing.title for drawing in drawings] == ["yeast: F1 of removal", "yeast: Denoising AUC"]
    for drawing in drawings:
        check_svg(drawing.svg)
        shown = texts(drawing.svg)
        assert [text for text in shown if text.isdecimal()] == ["5", "9", "11"]
        assert {"pml-ma", "particle", "candidates per row"} <= set(shown)
        # From the lowest level to the highest, whatever order the suite has them in.
        line = re.search(r'd="((?:[ML] [\d.]+ [\d.]+ \n){3})"[^>]*stroke: var\(--accent\)', drawing.svg)
        assert line
        places = [float(x) for x in re.findall(r"[ML] ([\d.]+)", line[1])]
        assert places == sorted(set(places))
