"""What the checks of estimators stand on: made-up problems, quiet fits, and what must hold of every model."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skpml.noise import top_up

# What two orders of summation may differ by, after an iterative solver has carried it along.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Problem:
    """Rows around the sum of the centres of their labels, one to three of five: as many for training as new ones."""

    X: NDArray[np.float64]
    truth: NDArray[np.uint8]
    candidates: NDArray[np.uint8]
    X_new: NDArray[np.float64]
    truth_new: NDArray[np.uint8]


def made_up_problem(seed: int = 0, n: int = 60, d: int = 30, *, apart: float = 1.5) -> Problem:
    """A problem without duplicates or ties; ``apart`` is the spread of the centres against the noise."""
    rng = np.random.default_rng(seed)
    n_new, c = n, 5
    truth = np.zeros((n + n_new, c), np.uint8)
    for row in range(n + n_new):
        truth[row, rng.choice(c, size=rng.integers(1, 4), replace=False)] = 1
    # Frequencies that differ keep labels from being exchangeable.
    truth[rng.random(truth.shape) < np.linspace(0, 0.4, c)] = 0
    truth[~truth.any(axis=1), 0] = 1
    X = truth @ rng.normal(scale=apart, size=(c, d)) + rng.normal(size=(n + n_new, d))
    candidates = top_up(truth[:n], 3, random_state=seed)
    return Problem(X[:n], truth[:n], np.asarray(candidates, np.uint8), X[n:], truth[n:])


def table_of_words() -> Problem:
    """The same as a table of words, 0 and 1: many rows are equally far from a row, but no two rows are the same."""
    problem = made_up_problem(n=240, d=60, apart=1.0)
    return replace(
        problem, X=(problem.X > 0.5).astype(np.float64), X_new=(problem.X_new > 0.5).astype(np.float64)
    )


def prepared(estimator: Any, **parameters: Any) -> Any:
    """A fresh copy with a fixed seed and the given parameters, where it or an estimator inside it has them."""
    model = clone(estimator)
    wanted = {"random_state": 0, **parameters}
    known = {name: name.split("__")[-1] for name in model.get_params()}
    return model.set_params(**{name: wanted[last] for name, last in known.items() if last in wanted})


def fitted(estimator: Any, X: Any, y: Any, **parameters: Any) -> Any:
    model = prepared(estimator, **parameters)
    with warnings.catch_warnings():
        # Not converged, rows without candidates: not what is checked here.
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(X, y)


def assert_sound(model: Any, X: NDArray[Any], n_labels: int) -> NDArray[Any]:
    """Shapes and ranges of everything a fitted model returns; the scores of X."""
    shape = (X.shape[0], n_labels)
    scores, chances, decisions = model.decision_function(X), model.predict_proba(X), model.predict(X)
    for name, values in (("decision_function", scores), ("predict_proba", chances), ("predict", decisions)):
        assert values.shape == shape, f"{name} has shape {values.shape}, expected {shape}"
        assert np.isfinite(values).all(), f"{name} holds NaN or infinity"
    assert chances.min() >= 0, "predict_proba is below 0 somewhere"
    assert chances.max() <= 1, "predict_proba is above 1 somewhere"
    assert np.isin(decisions, (0, 1)).all(), "predict returns something else than 0 and 1"
    return scores


def assert_confidences(model: Any, candidates: NDArray[Any]) -> None:
    if not hasattr(model, "confidences_"):
        return
    confidences = model.confidences_
    assert confidences.shape == candidates.shape, "confidences_ has another shape than the candidates"
    assert np.isfinite(confidences).all(), "confidences_ holds NaN or infinity"
    assert confidences.min() >= 0, "a confidence is below 0"
    assert confidences.max() <= 1, "a confidence is above 1"
    assert (confidences[candidates == 0] == 0).all(), (
        "a label outside the candidates has a confidence above 0"
    )


def assert_close(found: Any, expected: Any, complaint: str, tolerance: float = ROUNDING) -> None:
    """Equal up to the tolerance, relative to the largest value where that is above 1."""
    gap = float(np.abs(found - expected).max())
    allowed = tolerance * max(1.0, float(np.abs(expected).max()))
    assert gap <= allowed, f"{complaint}: they differ by up to {gap:.2g}"


def assert_refused(estimator: Any, X: Any, y: Any, place: str, **policy: str) -> None:
    """Fit must raise a ValueError that names the place."""
    try:
        fitted(estimator, X, y, **policy)
    except ValueError as error:
        message = str(error)
    else:
        raise AssertionError(f"fit accepts under {policy} what it should refuse ({place})")
    assert place in message, f"the error does not name the place ({place}): {message}"
