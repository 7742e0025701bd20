"""Remaining time: from what was measured, and unknown where nothing was."""

from __future__ import annotations

import pytest

from skpml.experiments import Run
from skpml.experiments._timing import Estimate, Timing, duration


def run(method: str, configuration: str, **more) -> Run:
    return Run(method=method, configuration=configuration, **more)


def record(method: str, configuration: str, seconds: float, status: str = "done", **more) -> dict:
    content = run(method, configuration, **more).content
    return {"status": status, "run": content, "tune_seconds": None, "fit_seconds": seconds * 0.9,
            "predict_seconds": seconds * 0.1}  # fmt: skip


def test_nothing_measured_is_unknown() -> None:
    estimate = Timing().estimate([run("a", "x"), run("a", "y")])
    assert estimate == Estimate(0.0, 2)
    assert str(estimate) == "unknown"


def test_the_same_method_on_the_same_data_counts_first() -> None:
    timing = Timing([record("a", "x", 2.0), record("a", "x", 4.0), record("a", "y", 100.0)])
    assert timing.expected(run("a", "x")) == pytest.approx(3.0)
    assert timing.expected(run("b", "x")) is None
    estimate = timing.estimate([run("a", "x", fold=fold) for fold in range(4)] + [run("b", "x")])
    assert estimate.seconds == pytest.approx(12.0)
    assert estimate.unknown == 1
    assert str(estimate) == "at least 12 s"


def test_other_data_are_weighed_by_what_other_methods_take_there() -> None:
    # On y everything takes ten times as long as on x.
    timing = Timing([record("a", "x", 1.0), record("b", "x", 3.0), record("b", "y", 30.0)])
    expected = timing.expected(run("a", "y"))
    assert expected is not None
    assert 1.0 < expected < 10.0
    # The geometric mean of b is between its two times; measured data know no more than half of the ratio.
    assert expected == pytest.approx(10**0.5)


def test_small_data_say_nothing_about_data_that_nothing_was_measured_on() -> None:
    timing = Timing([record("a", "emotions-3", 1.0), record("b", "emotions-3", 2.0)])
    waiting = [run("a", "arts-5"), run("a", "arts-7"), run("b", "arts-5"), run("a", "emotions-3")]
    assert timing.estimate(waiting) == Estimate(pytest.approx(1.0), 3)
    timing.add(record("a", "arts-5", 100.0))
    # The same data with other noise take the same time; b takes as much longer there as a does.
    assert timing.expected(run("a", "arts-7")) == pytest.approx(100.0)
    assert timing.expected(run("b", "arts-7")) == pytest.approx(timing.expected(run("b", "arts-5")))
    assert timing.expected(run("b", "arts-5")) == pytest.approx(2.0 * 10.0)
    assert timing.estimate(waiting).unknown == 0


def test_failures_say_nothing_and_tuning_makes_another_method() -> None:
    timing = Timing([record("a", "x", 0.001, status="failed")])
    assert timing.expected(run("a", "x")) is None
    timing.add(record("a", "x", 5.0, tuning={"grid": {"g": [1]}}))
    assert timing.expected(run("a", "x")) is None
    assert timing.expected(run("a", "x", tuning={"grid": {"g": [1]}})) == pytest.approx(5.0)
    timing.add(record("a", "x", 7.0, parameters={"g": 1.0}))
    assert timing.expected(run("a", "x", parameters={"g": 2.0})) == pytest.approx(7.0)


def test_words() -> None:
    assert [duration(s) for s in (0, 0.2, 89, 91, 3600, 7300)] == [
        "0 s",
        "1 s",
        "89 s",
        "2 min",
        "60 min",
        "2.0 h",
    ]
    assert str(Estimate(30.0, 0)) == "about 30 s"
