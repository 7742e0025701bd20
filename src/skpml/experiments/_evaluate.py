"""Evaluation of a method on a fold: data, training, tuning and metrics.

Everything here can change the numbers of a run, so a change of this code makes stored results outdated. What does not
change them (time limits, memory, records) is elsewhere.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from skpml._sharing import SharedWork
from skpml.base import BasePMLClassifier, automatic_threshold
from skpml.datasets import PartialDataset, content_checksum, load_dataset, read_dataset
from skpml.experiments._metrics import COMMON_HAMMING_LOSS
from skpml.experiments._runs import Run, custom_estimator, data_file
from skpml.metrics import denoising_scores, evaluate, hamming_loss
from skpml.reference import Oracle
from skpml.registry import get_method


@dataclass(frozen=True)
class FoldData:
    """The common data of the runs of one configuration, seed and fold; loaded on first use."""

    run: Run
    data_home: Path | None = None
    folder: Path | None = None
    # Warnings of loading concern every run of the fold, not only the first.
    warnings: list[str] = field(default_factory=list)

    @cached_property
    def dataset(self) -> PartialDataset:
        """All rows, with noise."""
        run = self.run
        with warnings.catch_warnings(record=True, action="always") as caught:
            if run.data is None:
                dataset = load_dataset(run.configuration, random_state=run.seed, data_home=self.data_home)
            else:
                dataset = read_dataset(data_file(run.configuration, self.folder), **run.data["options"])
        if dataset.truth is None:
            hint = "" if run.data is None else '; set the column, as in reading = { … true_tags = "COLUMN" }'
            raise ValueError(f"{run.configuration} has no true labels, so nothing can be scored{hint}")
        if dataset.X is None:
            raise ValueError(f"{run.configuration} has labels only, no features")
        self.warnings.extend(messages_of(caught))
        return dataset

    @cached_property
    def checksum(self) -> str:
        """Checksum of features, candidates and truth."""
        return content_checksum(self.dataset)

    @cached_property
    def X(self) -> Any:
        """Features in double precision."""
        return self.dataset.X.astype(np.float64)

    @cached_property
    def rows(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Training and test rows of the fold."""
        run = self.run
        splits = KFold(run.folds, shuffle=True, random_state=run.seed).split(self.dataset.candidates)
        return list(splits)[run.fold or 0]


def messages_of(caught: Iterable[warnings.WarningMessage]) -> list[str]:
    """Format warnings."""
    return [f"{warning.category.__name__}: {warning.message}" for warning in caught]


def classify(run: Run, data: FoldData, result: dict[str, Any], work: SharedWork | None) -> None:
    """Train and score a classifier; `result` gets metrics, chosen parameters, iterations and times.

    In a decomposition, metrics also tell how well the confidences separate false candidates of training rows.
    """
    (train, test), model = data.rows, make_estimator(run, data.folder)
    X, dataset, truth = data.X, data.dataset, data.dataset.truth
    assert truth is not None
    # A ceiling is tuned on true labels too.
    labels = truth if run.trained_on == "truth" else dataset.candidates
    if run.tuning is not None:
        with _measure(result, "tune_seconds", work):
            result["chosen"] = _tune(run, model, X[train], labels[train], truth[train])
        model.set_params(**result["chosen"])
    if not isinstance(model, BasePMLClassifier):
        model = Oracle(model, on_empty="ignore")
    with _measure(result, "fit_seconds", work):
        model.fit(X[train], labels[train])
    with _measure(result, "predict_seconds", work):
        scores = model.decision_function(X[test])
        decisions = model.predict(X[test]) if isinstance(model, Oracle) else scores > model.threshold_
    # In parts as large as the test fold, so that the memory of the run stays that of the method.
    parts = [model.decision_function(X[rows]) for rows in np.array_split(train, run.folds - 1)]
    common = common_threshold(np.concatenate(parts), labels[train])
    metrics = evaluate(truth[test], scores, decisions)
    metrics[COMMON_HAMMING_LOSS] = hamming_loss(truth[test], scores > common)
    result["metrics"] = plain(metrics)
    inner = model.estimator_ if isinstance(model, Oracle) else model
    if run.kind == "decomposition" and run.trained_on == "candidates" and hasattr(inner, "confidences_"):
        recovered = denoising_scores(dataset.candidates[train], truth[train], inner.confidences_)
        result["metrics"] |= plain(recovered)
    n_iter, converged = getattr(inner, "n_iter_", None), getattr(inner, "converged_", None)
    result["n_iter"] = int(n_iter) if isinstance(n_iter, Integral) else None
    result["converged"] = None if converged is None else bool(converged)
    if run.history and hasattr(inner, "history_"):
        result["history"] = plain(inner.history_)


def common_threshold(scores: NDArray[Any], candidates: NDArray[Any]) -> float:
    """Estimate a threshold for the scores of any method, from scores and candidates of the training rows.

    This is the rule of ``threshold="auto"`` with both levels, of clear negatives and of sure candidates, taken from the
    scores. The scale of the scores does not matter then. No true label is used.
    """
    lowest = scores.min()
    shifted = scores - lowest
    return automatic_threshold(shifted, candidates, shifted)[0] + float(lowest)


def make_estimator(run: Run, folder: Path | None) -> Any:
    """Create the unfitted estimator of a run, with the seed of the fold.

    Empty rows and labels are ignored: they are a property of the split, the same for every method.
    """
    custom = ":" in run.method
    model = custom_estimator(run.method, folder, run) if custom else get_method(run.method)()
    known = model.get_params()
    # Different for every fold, the same for all methods: they draw the same anchors and can share them.
    defaults = {"random_state": run.seed * run.folds + (run.fold or 0), "on_empty": "ignore"}
    if not custom:
        # Results are those of the methods as published; keys of stored runs contain only what a suite sets.
        defaults["threshold"] = get_method(run.method).comparison_threshold
    return model.set_params(**{**{k: v for k, v in defaults.items() if k in known}, **run.parameters})


def _tune(run: Run, model: Any, X: Any, labels: Any, truth: Any) -> dict[str, Any]:
    # Imported on demand: most suites need no tuning.
    from skpml.model_selection import select_parameters

    assert run.tuning is not None
    selector = run.tuning["selector"]
    selection = select_parameters(
        model,
        run.tuning["grid"],
        X,
        labels,
        selector=selector,
        # The only place where true labels could leak into a label-free selection.
        truth=truth if selector == "oracle" else None,
        n_folds=run.tuning["inner_folds"],
        search=run.tuning["search"],
        max_rows=run.tuning.get("max_rows"),
        random_state=run.seed * run.folds + (run.fold or 0),
    )
    return dict(plain(selection.parameters))


@contextmanager
def _measure(result: dict[str, Any], name: str, work: SharedWork | None) -> Iterator[None]:
    """Store the seconds of a block as if nothing were shared: reused work is added at its original cost."""
    saved, start = 0.0 if work is None else work.saved_seconds, time.perf_counter()
    yield
    saved = 0.0 if work is None else work.saved_seconds - saved
    result[name] = round(time.perf_counter() - start + saved, 6)


def plain(value: Any) -> Any:
    """Convert a value for JSON: NumPy numbers and arrays to Python's, non-finite numbers to None."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
