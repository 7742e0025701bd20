"""The comparison behind the demonstration: three learners, the same folds, the same feature map."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from skpml.datasets import PartialDataset, load_dataset
from skpml.metrics import denoising_scores, evaluate
from skpml.modal_alignment import PMLMA
from skpml.reference import CandidateRidge

Scores = dict[str, dict[str, NDArray[np.float64]]]
Progress = Callable[[int, int, str], None]

METRIC_NAMES = ("hamming_loss", "ranking_loss", "one_error", "coverage", "average_precision")
DEFAULT_CANDIDATES = 6
DEFAULT_FOLDS = 10
# With fewer candidates most rows keep only true labels, with ten every row has every label.
NOISE_LEVELS = (4, 5, 6, 7, 8, 9)
# The one parameter that all three learners have; the comparison is made at the library's default.
PENALTIES = (0.01, 0.1, 1.0, 10.0)
DEFAULT_PENALTY = 1.0


@dataclass(frozen=True)
class Method:
    """One learner of the comparison."""

    title: str
    role: str
    learns_from: Literal["candidates", "truth"]
    build: Callable[[int, float], Any]


METHODS = {
    "floor": Method(
        "Ridge on candidates",
        "floor",
        "candidates",
        lambda seed, gamma: CandidateRidge(gamma=gamma, random_state=seed),
    ),
    "pml-ma": Method(
        "PML-MA", "the method", "candidates", lambda seed, gamma: PMLMA(gamma=gamma, random_state=seed)
    ),
    "ceiling": Method(
        "Ridge on true labels",
        "ceiling",
        "truth",
        lambda seed, gamma: CandidateRidge(gamma=gamma, random_state=seed),
    ),
}


@dataclass(frozen=True, kw_only=True)
class DemoResult:
    """What the demonstration found.

    Attributes
    ----------
    dataset : PartialDataset
        The rows, with the candidates that were used.
    candidates, seed, n_folds : int
        What was asked for.
    scores : dict of method to dict of metric to array of shape (n_folds,)
        Metrics on the held-out rows of each fold.
    sweep : dict of number of candidates to scores
        The same with other amounts of noise; `candidates` is among them where it is one of the usual ones.
    penalties : dict of penalty γ to scores
        The same with other penalties, for all three learners alike.
    model : PMLMA
        Fitted to all rows, for confidences and the history of the objective.
    denoising_auc : dict of method to float
        How well PML-MA's confidences, and the training scores of ridge on candidates, put true candidates above
        false ones; NaN where no candidate is false.
    denoising_by_label : dict of method to array of shape (n_labels,)
        The same for the candidates of one label; NaN where they are all true or all false.
    """

    dataset: PartialDataset
    candidates: int
    seed: int
    n_folds: int
    scores: Scores
    sweep: dict[int, Scores]
    penalties: dict[float, Scores]
    model: PMLMA
    denoising_auc: dict[str, float]
    denoising_by_label: dict[str, NDArray[np.float64]]


def run_demo(
    *,
    candidates: int = DEFAULT_CANDIDATES,
    seed: int = 0,
    n_folds: int = DEFAULT_FOLDS,
    noise_levels: tuple[int, ...] = NOISE_LEVELS,
    penalties: tuple[float, ...] = PENALTIES,
    progress: Progress | None = None,
) -> DemoResult:
    """Run the comparison on the embedded data.

    Parameters
    ----------
    candidates : int, default=6
        Number of candidates each row is filled up to with false labels.
    seed : int, default=0
        Draws the false labels, the folds and the anchors of the feature map.
    n_folds : int, default=10
        Folds of the cross-validation.
    noise_levels : tuple of int
        Numbers of candidates for the comparison over the amount of noise.
    penalties : tuple of float
        Values of γ for the comparison over the penalty.
    progress : callable, optional
        Called as ``progress(done, total, what)`` before each step.

    Returns
    -------
    DemoResult
    """
    levels = sorted({candidates, *noise_levels})
    others = [gamma for gamma in penalties if gamma != DEFAULT_PENALTY]
    steps = _Steps(((len(levels) + len(others)) * n_folds) + 1, progress)
    datasets = {level: load_dataset("digits", candidates=level, random_state=seed) for level in levels}
    results = {
        level: _compare(dataset, n_folds, seed, DEFAULT_PENALTY, steps, f"{level} candidates a row")
        for level, dataset in datasets.items()
    }
    dataset = datasets[candidates]
    by_penalty = {
        gamma: _compare(dataset, n_folds, seed, gamma, steps, f"penalty {gamma:g}") for gamma in others
    }
    by_penalty[DEFAULT_PENALTY] = results[candidates]
    steps.advance("PML-MA on all rows")
    model = PMLMA(random_state=seed).fit(dataset.X, dataset.candidates)
    ridge = CandidateRidge(random_state=seed).fit(dataset.X, dataset.candidates)
    confidences = {"floor": ridge.decision_function(dataset.X), "pml-ma": model.confidences_}
    columns = range(dataset.candidates.shape[1])
    return DemoResult(
        dataset=dataset,
        candidates=candidates,
        seed=seed,
        n_folds=n_folds,
        scores=results[candidates],
        sweep={level: results[level] for level in noise_levels},
        penalties=dict(sorted(by_penalty.items())),
        model=model,
        denoising_auc={key: _denoising_auc(dataset, values) for key, values in confidences.items()},
        denoising_by_label={
            key: np.array([_denoising_auc(dataset, values, [column]) for column in columns])
            for key, values in confidences.items()
        },
    )


class _Steps:
    """Counts steps for whoever watches."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.done, self.total, self.progress = 0, total, progress

    def advance(self, what: str) -> None:
        if self.progress is not None:
            self.progress(self.done, self.total, what)
        self.done += 1


def _compare(
    dataset: PartialDataset, n_folds: int, seed: int, gamma: float, steps: _Steps, what: str
) -> Scores:
    folds: list[dict[str, dict[str, float]]] = []
    for train, test in _folds(dataset, n_folds, seed):
        steps.advance(what)
        folds.append(
            {
                key: _held_out(method.build(seed, gamma), method.learns_from, dataset, train, test)
                for key, method in METHODS.items()
            }
        )
    return {
        key: {name: np.array([fold[key][name] for fold in folds]) for name in METRIC_NAMES} for key in METHODS
    }


def _folds(dataset: PartialDataset, n_folds: int, seed: int) -> Iterator[tuple[Any, Any]]:
    yield from KFold(n_folds, shuffle=True, random_state=seed).split(dataset.X)


def _held_out(
    model: Any, learns_from: str, dataset: PartialDataset, train: Any, test: Any
) -> dict[str, float]:
    assert dataset.truth is not None
    labels = dataset.candidates if learns_from == "candidates" else dataset.truth
    # The same seed draws the same anchors from the same rows, so all three see the same features.
    model.fit(dataset.X[train], labels[train])
    rows = dataset.X[test]
    return evaluate(dataset.truth[test], model.decision_function(rows), model.predict(rows), convention="pml")


def _denoising_auc(dataset: PartialDataset, confidences: Any, columns: Any = slice(None)) -> float:
    candidates, truth = dataset.candidates[:, columns], np.asarray(dataset.truth)[:, columns]
    if np.array_equal(candidates, truth) or not truth.any():
        return float("nan")
    return denoising_scores(candidates, truth, confidences[:, columns])["auc"]
