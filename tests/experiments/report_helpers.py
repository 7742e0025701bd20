"""A suite and invented records of its runs, in the form in which runs are stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skpml.experiments import Plan, Results, Run, Suite, collect, expand, read_published
from skpml.experiments._metrics import RUN_METRICS

METHODS = ("pml-ma", "pml-plr", "fbd-pml", "pml-nd", "p-lenfn", "pamb", "pml-ni", "particle", "pml-fp")
CONFIGURATIONS = (
    "mirflickr", "emotions-3", "emotions-4", "birds-3", "birds-4", "image-2", "image-4", "scene-3",
    "scene-5", "yeast-7", "arts-9", "reference-11",
)  # fmt: skip
# How much of the way from floor to ceiling each method goes, in this invented world.
SKILL = dict(zip(METHODS, (0.62, 0.55, 0.5, 0.35, 0.3, 0.33, 0.2, -0.3, -0.1), strict=True))


def make_suite(**changed: Any) -> Suite:
    """Nine methods, a floor and a ceiling on twelve configurations."""
    methods: list[dict[str, Any]] = [{"name": name} for name in METHODS]
    methods[0]["tuning"] = {"selector": "label-free", "grid": {"ridge_weight": [0.1, 1.0, 10.0]}}
    methods[1]["parameters"] = {"max_iter": 100}
    methods += [
        {"name": "ridge", "label": "ridge on candidates", "role": "floor"},
        {"name": "ridge", "label": "ridge on truth", "role": "ceiling"},
    ]
    content = {
        "name": "paper",
        "title": "Nine methods on invented results",
        "description": "Nothing here was measured: the records were drawn at random to show a report.",
        "configurations": list(CONFIGURATIONS),
        "control": "pml-ma",
        "methods": methods,
    }
    return Suite.model_validate({**content, **changed})


def gather(suite: Suite, records: Any, absent: dict[str, str] | None = None) -> Results:
    """Results of a suite, whatever data are on this machine."""
    plan = expand(suite, data_home=Path("/nowhere"))
    return collect(Plan(suite, plan.entries, absent or {}), records)


def published() -> pd.DataFrame:
    return read_published(Path(__file__).parents[2] / "benchmarks" / "published_results.csv")


def make_record(suite: Suite, label: str, configuration: str, fold: int, **changed: Any) -> dict[str, Any]:
    """A finished run; the same arguments give the same record. `changed` replaces entries of record or run."""
    entry = suite.method(label)
    seed = changed.pop("seed", 0)
    parameters = {**entry.parameters_on(configuration), **changed.pop("parameters", {})}
    rng = np.random.default_rng([len(configuration), *map(ord, label + configuration), fold, seed])
    shared = np.random.default_rng([*map(ord, configuration)])
    low, high = 0.45 + 0.3 * shared.random(), 0.82 + 0.1 * shared.random()
    skill = {"floor": 0.0, "ceiling": 1.0}.get(entry.role, SKILL.get(entry.name, 0.4))
    skill += {"floor": 0.0, "ceiling": 0.0}.get(
        entry.role, 0.15 * np.random.default_rng([*map(ord, label + configuration)]).normal()
    )
    quality = low + skill * (high - low) + 0.012 * rng.normal()
    metrics = {}
    for place, (name, metric) in enumerate(RUN_METRICS.items()):
        # The metrics agree in the main and differ in detail, as real ones do.
        turn = 0.012 * np.random.default_rng([place, *map(ord, label + configuration)]).normal()
        value = quality + turn if metric.greater_is_better else 0.42 * (1 - quality - turn)
        metrics[name] = float(np.clip(value, 0, 1))
    run = {
        "configuration": configuration,
        "seed": seed,
        "folds": suite.folds,
        "fold": fold,
        "method": entry.name,
        "parameters": parameters,
        "tuning": None if entry.tuning is None else entry.tuning.model_dump(exclude_none=True),
        "trained_on": "truth" if entry.role == "ceiling" else "candidates",
        "history": entry.history,
        "kind": "decomposition" if suite.kind == "decomposition" else "classification",
        "data": None,
    }
    run["code"] = changed.pop("code", Run(**run).compute_code(None))
    seconds = 0.4 * (1 + len(label)) * (1 + 0.1 * rng.random())
    record = {
        "format": 2,
        "key": Run(**run).key,
        "run": run,
        "status": "done",
        "metrics": metrics,
        "chosen": None
        if entry.tuning is None
        else {"ridge_weight": float(rng.choice([0.1, 1.0, 1.0, 10.0]))},
        "n_iter": 12,
        "converged": True,
        "history": None,
        "fit_seconds": seconds,
        "predict_seconds": 0.01 * seconds,
        "peak_memory_mb": 180 + 30 * len(label),
        "warnings": [],
        "error": None,
        "provenance": {
            "versions": {"scikit-pml": "0.1.0", "numpy": "2.1.0", "scipy": "1.14.0", "python": "3.12.1"},
            "threads": 1,
            "data_checksum": f"{sum(map(ord, configuration)):032x}",
            "started": "2026-01-02T03:04:05+00:00",
            "platform": "Linux-6.1-x86_64",
        },
    }
    return {**record, **changed}


def make_failure(suite: Suite, label: str, configuration: str, fold: int, message: str) -> dict[str, Any]:
    """A run that failed."""
    error = {
        "type": "LinAlgError",
        "message": message,
        "traceback": f"Traceback (most recent call last):\n  ...\nLinAlgError: {message}",
    }
    return make_record(suite, label, configuration, fold, status="failed", metrics={}, error=error)


def make_records(suite: Suite) -> list[dict[str, Any]]:
    """All runs of a suite, finished."""
    return [
        make_record(suite, entry.label, configuration, fold, seed=seed)
        for entry in suite.methods
        for configuration in suite.configurations
        for seed in suite.seeds
        for fold in range(suite.folds)
    ]
