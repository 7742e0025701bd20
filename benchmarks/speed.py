"""Speed and memory of a fold of PML-MA, as ratios against something measured in the same process.

    python benchmarks/speed.py        # writes results/speed.json and .md

One whole fold of arts with 5 candidates, against one Gram product. It needs the data set arts (environment variable
SKPML_DATA); without it, features of the same shape and sparsity stand in, and the output says so. Every time is the best
of several repeats: machines are shared and noisy. ``scale.py`` measures how times grow with the rows.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
import tracemalloc
from pathlib import Path

import numpy as np
import scipy.sparse
import sklearn
import threadpoolctl
from keeping import write_if_whole

from skpml import PMLMA
from skpml.datasets import load_dataset
from skpml.metrics import average_precision
from skpml.noise import top_up

OUTPUT = Path(__file__).parents[1] / "results" / "speed.json"
WEIGHTS = dict(
    low_rank_weight=10, alignment_weight=1e-4, prototype_weight=1e-4, ridge_weight=10
)  # as published for arts


def best_time(function, repeats: int) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def arts() -> tuple[str, scipy.sparse.csr_array, np.ndarray, np.ndarray]:
    try:
        data = load_dataset("arts-5", random_state=0)
        return "arts-5", scipy.sparse.csr_array(data.X, dtype=np.float64), data.candidates, data.truth
    except (FileNotFoundError, ValueError):
        rng = np.random.default_rng(0)
        X = scipy.sparse.csr_array(rng.random((5000, 462)) * (rng.random((5000, 462)) < 0.05))
        truth = (rng.random((5000, 26)) < 0.063).astype(np.uint8)
        return "stand-in of the shape of arts", X, top_up(truth, 5, random_state=0), truth


def fold(repeats: int) -> dict:
    name, X, candidates, truth = arts()
    order = np.random.default_rng(0).permutation(X.shape[0])
    train, test = order[:4500], order[4500:]
    model = PMLMA(random_state=0, **WEIGHTS)

    def whole_fold() -> np.ndarray:
        """Scale, graph, map, fit, predict."""
        return model.fit(X[train], candidates[train]).decision_function(X[test])

    shaped = np.random.default_rng(0).normal(size=(4500, 2251))
    score = average_precision(truth[test], whole_fold())
    assert model.coef_.shape == (2251, 26)
    # The two are measured in turns, so that a busy neighbour slows both.
    pairs = [(best_time(lambda: shaped.T @ shaped, 2), best_time(whole_fold, 1)) for _ in range(repeats)]
    gram, whole = (min(times) for times in zip(*pairs, strict=True))
    tracemalloc.start()
    whole_fold()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    mapped = shaped.nbytes
    return {
        "data": name,
        "gram_seconds": gram,
        "fold_seconds": whole,
        "fold_over_gram": whole / gram,
        "fold_over_gram_in_turns": sorted(fold / product for product, fold in pairs),
        "allowed": 4.0,
        "iterations": model.n_iter_,
        "average_precision": score,
        "mapped_features_mb": mapped / 1e6,
        "extra_memory_over_mapped": peak / mapped - 1,
        "extra_memory_allowed": 4.0,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    report: dict = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "blas": [
            f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads"
            for pool in threadpoolctl.threadpool_info()
        ],
    }
    part = report["fold"] = fold(options.repeats)
    text = (
        f"* {part['data']}: a whole fold takes **{part['fold_over_gram']:.2f} Gram products** "
        f"(bar: {part['allowed']:g}) and **{part['extra_memory_over_mapped']:.2f} times the mapped features** in "
        f"extra memory (bar: {part['extra_memory_allowed']:g}); {part['iterations']} iterations.\n"
    )
    print(text, end="")
    write_if_whole(OUTPUT, json.dumps(report, indent=2) + "\n", parser, options)
    write_if_whole(OUTPUT.with_suffix(".md"), text, parser, options)


if __name__ == "__main__":
    main()
