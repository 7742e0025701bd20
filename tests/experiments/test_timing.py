"""Remaining time: from what was measured, and unknown where nothing was."""

from __future__ import annotations

import pytest

from skpml.experiments import Run
from skpml.experiments._runner import Estimate, Timing, format_duration


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
    assert timing.estimate([run("a", "x")]) == Estimate(pytest.approx(3.0), 0)
    assert timing.estimate([run("b", "x")]).unknown == 1
    estimate = timing.estimate([run("a", "x", fold=fold) for fold in range(4)] + [run("b", "x")])
    assert estimate.seconds == pytest.approx(12.0)
    assert estimate.unknown == 1
    assert str(estimate) == "at least 12 s"


def test_other_noise_on_the_same_data_takes_the_same_time() -> None:
    timing = Timing([record("a", "emotions-3", 1.0), record("b", "emotions-3", 2.0)])
    waiting = [run("a", "arts-5"), run("a", "arts-7"), run("b", "arts-5"), run("a", "emotions-3")]
    assert timing.estimate(waiting) == Estimate(pytest.approx(1.0), 3)
    timing.add(record("a", "arts-5", 100.0))
    assert timing.estimate(waiting) == Estimate(pytest.approx(201.0), 1)


def test_failures_say_nothing_and_tuning_makes_another_method() -> None:
    timing = Timing([record("a", "x", 0.001, status="failed")])
    assert timing.estimate([run("a", "x")]).unknown == 1
    timing.add(record("a", "x", 5.0, tuning={"grid": {"g": [1]}}))
    assert timing.estimate([run("a", "x")]).unknown == 1
    assert timing.estimate([run("a", "x", tuning={"grid": {"g": [1]}})]) == Estimate(pytest.approx(5.0), 0)
    timing.add(record("a", "x", 7.0, parameters={"g": 1.0}))
    assert timing.estimate([run("a", "x", parameters={"g": 2.0})]) == Estimate(pytest.approx(7.0), 0)


def test_words() -> None:
    assert [format_duration(s) for s in (0, 0.2, 89, 91, 3600, 7300)] == [
        "0 s",
        "1 s",
        "89 s",
        "2 min",
        "60 min",
        "2.0 h",
    ]
    assert str(Estimate(30.0, 0)) == "about 30 s"
