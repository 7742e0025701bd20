"""What it costs to choose everything: CandidateLikelihood with nothing set, in fits of PMLMA, and the memory of a search.

    OMP_NUM_THREADS=1 python benchmarks/likelihood_cost.py

Writes results/likelihood_cost.md, for the default configuration. Fits of PMLMA stand before and after the long fit, in
the same process, so that a machine that is slow for a while is slow for both. Memory is what NumPy
allocates beyond the features (tracemalloc).
Needs the data sets (SKPML_DATA).
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from pathlib import Path
from statistics import median

import numpy as np
from keeping import write_if_whole
from sklearn.model_selection import KFold

from skpml import PMLMA, CandidateLikelihood
from skpml.candidate_likelihood._search import SettingJudge, coarse_settings
from skpml.datasets import load_dataset

OUTPUT = Path(__file__).parents[1] / "results" / "likelihood_cost.md"
QUIET = {"random_state": 0, "on_empty": "ignore"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--configuration", default="arts-5")
    options = parser.parse_args()
    data = load_dataset(options.configuration)
    train, _ = next(iter(KFold(10, shuffle=True, random_state=0).split(data.X)))
    X, Y = data.X[train], data.candidates[train]
    single = [seconds(PMLMA(**QUIET), X, Y)[0] for _ in range(3)]
    whole, model = seconds(CandidateLikelihood(**QUIET), X, Y)
    single += [seconds(PMLMA(**QUIET), X, Y)[0] for _ in range(3)]
    tried = len(model.selection_["tried"])
    lines = [
        f"{options.configuration}, {len(train)} training rows: choosing among {tried} settings and fitting the "
        f"{len(model.selection_['members'])} best takes {whole / median(single):.0f} times one fit of PMLMA with given "
        "weights.",
        "",
        "| batch | settings tried | memory beyond the features |",
        "|---|---|---|",
    ]
    for batch in (4, 16):
        for count in (16, 64, 256):
            lines.append(f"| {batch} | {count} | {search_memory(batch, count):.0f} MB |")
    text = "\n".join(lines) + "\n"
    print(text)
    write_if_whole(OUTPUT, text, parser, options, "configuration")


def seconds(model, X, Y):
    start = time.perf_counter()
    model.fit(X, Y)
    return time.perf_counter() - start, model


def search_memory(batch: int, count: int) -> float:
    """Megabytes at the peak of a search over so many settings: 3000 rows, 50 features, 20 labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 50))
    Y = (X[:, :20] + rng.normal(size=(3000, 20)) > 1).astype(float)
    settings = coarse_settings(
        families=("logistic",), one_true=(True,), widths=(1.0,), gammas=np.geomspace(0.01, 1, count), noises=(1.0,)
    )  # fmt: skip
    folds, rates = rng.permutation(3000) % 3, np.full(20, 0.1)
    judge = SettingJudge({1.0: X}, Y, folds, rates=rates, keep=10, batch=batch, max_iter=3)
    tracemalloc.start()
    judge.try_settings(settings)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


if __name__ == "__main__":
    main()
