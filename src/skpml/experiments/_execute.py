"""One run, from data to record."""

from __future__ import annotations

import math
import platform
import sys
import time
import traceback
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import version
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from skpml._sharing import SharedWork
from skpml.base import BasePMLClassifier
from skpml.datasets import PartialDataset, content_checksum, load_dataset, read_dataset
from skpml.experiments._memory import PeakMemory
from skpml.experiments._own_code import own_estimator
from skpml.experiments._runs import Run, data_file
from skpml.experiments._store import RECORD_FORMAT
from skpml.metrics import denoising_scores, evaluate
from skpml.reference import Oracle
from skpml.registry import get_method

# Times and memory are of one thread, whatever the number of jobs: only so do they say something about the method.
_THREADS = 1
_MAX_WARNINGS = 20


@dataclass(frozen=True)
class FoldData:
    """The data that runs of one configuration, seed and fold have in common; loaded on first use.

    Parameters
    ----------
    run : Run
        Any of the runs.
    data_home : Path or None
        As in :func:`skpml.datasets.load_dataset`.
    folder : Path or None
        Of the suite's own file: data files and modules are looked for there.
    """

    run: Run
    data_home: Path | None = None
    folder: Path | None = None

    @property
    def dataset(self) -> PartialDataset:
        """All rows, after the noise."""
        return self._loaded[0]

    @property
    def warnings(self) -> list[str]:
        """What loading warned of. It concerns every run of the fold, not just the one that came first."""
        return self._loaded[1]

    @property
    def is_loaded(self) -> bool:
        """Whether the data were loaded already."""
        return "_loaded" in vars(self)

    @cached_property
    def _loaded(self) -> tuple[PartialDataset, list[str]]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            dataset = self._load()
        return dataset, _messages(caught)

    def _load(self) -> PartialDataset:
        run = self.run
        if run.data is not None:
            path = data_file(run.configuration, self.folder)
            dataset = read_dataset(path, **run.data["options"])
        else:
            dataset = load_dataset(run.configuration, random_state=run.seed, data_home=self.data_home)
        if dataset.truth is None:
            advice = (
                "" if run.data is None else '; say where they are, as in reading = { … truth = "COLUMN" }'
            )
            raise ValueError(f"{run.configuration} has no true labels, so nothing can be scored{advice}")
        if dataset.X is None and run.kind == "classification":
            raise ValueError(f"{run.configuration} has labels only; there are no features to learn from")
        return dataset

    @cached_property
    def checksum(self) -> str:
        """Of features, candidates and truth."""
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
        train, test = next(split for fold, split in enumerate(splits) if fold == run.fold)
        return train, test


def execute(run: Run, data: FoldData, *, work: SharedWork | None = None) -> dict[str, Any]:
    """Do a run and return its record; what goes wrong becomes a record too.

    Parameters
    ----------
    run : Run
    data : FoldData
        Of this run's configuration, seed and fold.
    work : SharedWork, optional
        What is being shared with other runs of the fold: time saved by it is added to the time of the fit.
    """
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    record: dict[str, Any] = {"format": RECORD_FORMAT, "key": run.key, "run": run.content, "status": "done"}
    result: dict[str, Any] = dict.fromkeys(
        (
            "metrics",
            "chosen",
            "n_iter",
            "converged",
            "history",
            "tune_seconds",
            "fit_seconds",
            "predict_seconds",
        )
    )
    error = None
    memory = PeakMemory()
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(_THREADS):
        warnings.simplefilter("always")
        try:
            if run.kind == "decomposition":
                _decompose(run, data, result)
            else:
                _classify(run, data, result, work)
        except Exception as problem:
            record["status"] = "failed"
            error = {
                "type": type(problem).__name__,
                "message": str(problem),
                "traceback": traceback.format_exc(),
            }
    result["peak_memory_mb"] = memory.megabytes()
    said = dict.fromkeys([*(data.warnings if data.is_loaded else []), *_messages(caught)])
    return {
        **record,
        **result,
        "warnings": list(said)[:_MAX_WARNINGS],
        "error": error,
        "provenance": {
            "versions": _versions(),
            "threads": _THREADS,
            "data_checksum": data.checksum if data.is_loaded else None,
            "started": started,
            "platform": platform.platform(),
            "memory_source": memory.source,
        },
    }


def _messages(caught: Iterable[warnings.WarningMessage]) -> list[str]:
    return [f"{warning.category.__name__}: {warning.message}" for warning in caught]


def _classify(run: Run, data: FoldData, result: dict[str, Any], work: SharedWork | None) -> None:
    train, test = data.rows
    model = make_estimator(run, data.folder)
    X, dataset = data.X, data.dataset
    truth = dataset.truth
    assert truth is not None
    if run.tuning is not None:
        with _Clock(work) as clock:
            result["chosen"] = _tune(run, model, X[train], dataset.candidates[train], truth[train])
        result["tune_seconds"] = clock.seconds
        model.set_params(**result["chosen"])
    if not isinstance(model, BasePMLClassifier):
        model = Oracle(model, on_empty="ignore")
    labels = truth if run.trained_on == "truth" else dataset.candidates
    with _Clock(work) as clock:
        model.fit(X[train], labels[train])
    result["fit_seconds"] = clock.seconds
    with _Clock(work) as clock:
        scores = model.decision_function(X[test])
        decisions = model.predict(X[test]) if isinstance(model, Oracle) else scores > model.threshold_
    result["predict_seconds"] = clock.seconds
    result["metrics"] = plain(evaluate(truth[test], scores, decisions))
    inner = model.estimator_ if isinstance(model, Oracle) else model
    n_iter, converged = getattr(inner, "n_iter_", None), getattr(inner, "converged_", None)
    result["n_iter"] = int(n_iter) if isinstance(n_iter, Integral) else None
    result["converged"] = None if converged is None else bool(converged)
    if run.history and hasattr(inner, "history_"):
        result["history"] = plain(inner.history_)


def make_estimator(run: Run, folder: Path | None) -> Any:
    """The unfitted estimator of a run: its parameters, a seed for the fold, and no complaint about empty rows or labels.

    Labels that a fold leaves without rows are a fact of the split, the same for every method.
    """
    own = ":" in run.method
    model = own_estimator(run.method, folder, run.code) if own else get_method(run.method)()
    known = model.get_params()
    # Different for every fold, the same for all methods: they draw the same anchors, and can share them.
    usual = {
        "random_state": run.seed * run.folds + (run.fold or 0),
        "on_empty": "ignore",
    }
    if not own:
        # Results are those of the methods as published; keys of stored runs hold only what a suite sets.
        usual["threshold"] = get_method(run.method).comparison_threshold
    return model.set_params(**{**{k: v for k, v in usual.items() if k in known}, **run.parameters})


def _tune(run: Run, model: Any, X: Any, candidates: Any, truth: Any) -> dict[str, Any]:
    # Only where a run asks for it: suites without tuning need nothing of it.
    select_parameters: Any = import_module("skpml.model_selection").select_parameters
    assert run.tuning is not None
    selector = run.tuning["selector"]
    selection = select_parameters(
        model,
        run.tuning["grid"],
        X,
        candidates,
        selector=selector,
        # The one place where true labels could leak into an honest selection.
        truth=truth if selector == "oracle" else None,
        n_folds=run.tuning["inner_folds"],
        search=run.tuning["search"],
        random_state=run.seed * run.folds + (run.fold or 0),
    )
    return dict(plain(selection.parameters))


def _decompose(run: Run, data: FoldData, result: dict[str, Any]) -> None:
    from skpml.modal_alignment import low_rank_orthogonal, low_rank_sparse

    candidates, truth = data.dataset.candidates, data.dataset.truth
    Y = candidates.astype(np.float64)
    with _Clock(None) as clock:
        if run.method == "low-rank-orthogonal":
            split: Any = low_rank_orthogonal(Y, **run.parameters)
            believed = split.pseudo_labels
        else:
            split = low_rank_sparse(Y, **run.parameters)
            believed = split.low_rank
    result["fit_seconds"] = clock.seconds
    result["metrics"] = plain(denoising_scores(candidates, truth, believed))
    result["n_iter"], result["converged"] = int(split.n_iter), bool(split.converged)
    if run.history and hasattr(split, "objective"):
        result["history"] = {"objective": plain(split.objective)}


class _Clock:
    """Seconds of a block as if nothing had been shared: what was reused is added at what it cost."""

    def __init__(self, work: SharedWork | None) -> None:
        self._work = work
        self.seconds = 0.0

    def __enter__(self) -> _Clock:
        self._saved = 0.0 if self._work is None else self._work.saved_seconds
        self._start = time.perf_counter()
        return self

    def __exit__(self, *_: object) -> None:
        saved = 0.0 if self._work is None else self._work.saved_seconds - self._saved
        self.seconds = round(time.perf_counter() - self._start + saved, 6)


def plain(value: Any) -> Any:
    """A value as JSON can hold it: NumPy's numbers and arrays as Python's, what is not finite as None."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@cache
def _versions() -> dict[str, str]:
    names = ("scikit-pml", "numpy", "scipy", "scikit-learn")
    return {name: version(name) for name in names} | {"python": sys.version.split()[0]}
