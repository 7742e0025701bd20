"""What a whole grid of PML-MA costs, as a multiple of one fit.

    python benchmarks/tuning.py                      # a training fold of arts-5; without SKPML_DATA, made-up data
    python benchmarks/tuning.py --values 1e-4 1 10   # a smaller grid

The grid is {1e-4 … 1e1} for each of the four weights, 1296 points, every one fitted to its own stopping rule; the
single fit has the default weights. Machines are shared, so fits and grid run in turns in one process (a fit after every
value of alpha, their median counts) and only the ratio means something. The grid pays for scaling, graph, feature map and
the coefficients of every point. The whole grid on arts-5 writes results/tuning.md.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from itertools import groupby
from pathlib import Path

import numpy as np
from keeping import write_if_whole
from sklearn.model_selection import KFold

from skpml import PMLMA
from skpml.datasets import load_dataset
from skpml.graph import neighbor_similarity
from skpml.modal_alignment._grid import solve_grid
from skpml.modal_alignment._solver import WEIGHTS
from skpml.noise import top_up

OUTPUT = Path(__file__).parents[1] / "results" / "tuning.md"
VALUES = [10.0**power for power in range(-4, 2)]
ALLOWED = 150


def problem(made_up: bool) -> tuple[str, np.ndarray, np.ndarray]:
    if not made_up and os.environ.get("SKPML_DATA"):
        dataset = load_dataset("arts-5", random_state=0)
        train, _ = next(iter(KFold(10, shuffle=True, random_state=0).split(dataset.X)))
        return (
            "arts-5, first of ten training folds",
            dataset.X[train].astype(float),
            dataset.candidates[train],
        )
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(4500, 20))
    X = (latent @ rng.normal(size=(20, 462)) + rng.normal(size=(4500, 462)) > 5).astype(float)
    truth = latent @ rng.normal(size=(20, 26)) + 2 * rng.normal(size=(4500, 26)) > 8
    return "made-up problem of 4500×462 with 26 labels", X, top_up(truth.astype(np.uint8), 5, random_state=0)


class Clock:
    """Seconds on the wall and on the processor."""

    def __init__(self) -> None:
        self.start = time.perf_counter(), time.process_time()

    def read(self) -> np.ndarray:
        return np.array([time.perf_counter() - self.start[0], time.process_time() - self.start[1]])


def measure(X: np.ndarray, candidates: np.ndarray, values: list[float]) -> dict:
    def fit(**changes) -> tuple[PMLMA, np.ndarray]:
        clock = Clock()
        model = PMLMA(random_state=0, on_empty="ignore", **changes)
        return model.fit(X, candidates), clock.read()

    fit()
    single, seconds = fit()
    fits = [seconds]
    # One iteration is more than the grid needs of a fit: its scaling and its map.
    prepared, grid_seconds = fit(max_iter=1)
    clock = Clock()
    scaled = prepared.scaler_.transform(X)
    similarity, mapped = neighbor_similarity(scaled), prepared.feature_map_.transform(scaled)
    points = solve_grid(mapped, candidates.astype(float), similarity, **dict.fromkeys(WEIGHTS, values))
    iterations = []
    for alpha, group in groupby(points, key=lambda point: point.weights.alignment_weight):
        iterations += [point.n_iter for point in group]
        grid_seconds = grid_seconds + clock.read()
        fits.append(fit()[1])
        wall, processor = grid_seconds / np.median(fits, axis=0)
        print(
            f"alpha {alpha:g}: {len(iterations)} points, {np.mean(iterations):.1f} iterations each; "
            f"{wall:.1f} fits, {processor:.1f} by processor time",
            flush=True,
        )
        clock = Clock()
    wall, processor = np.median(fits, axis=0)
    return {
        "points": len(iterations),
        "iterations": float(np.mean(iterations)),
        "single_iterations": single.n_iter_,
        "grid_seconds": grid_seconds[0],
        "fit_seconds": wall,
        "ratio": grid_seconds[0] / wall,
        "processor_ratio": grid_seconds[1] / processor,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--values", type=float, nargs="+", default=VALUES)
    parser.add_argument("--made-up", action="store_true", help="not the data set, even where it is at hand")
    options = parser.parse_args()
    name, X, candidates = problem(options.made_up)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a point that does not converge is part of the grid
        found = measure(X, candidates, options.values)
    text = (
        f"* {name}: {found['points']} points of PML-MA's grid cost **{found['ratio']:.0f} fits** "
        f"(bar: {ALLOWED} for 1296 points), {found['processor_ratio']:.0f} by processor time; "
        f"{found['grid_seconds']:.0f} s against {found['fit_seconds']:.2f} s. The points take "
        f"{found['iterations']:.1f} iterations in the mean, the fit with the default weights "
        f"{found['single_iterations']}.\n"
    )
    print(text, end="")
    write_if_whole(OUTPUT, text, parser, options, "values", "made_up")


if __name__ == "__main__":
    main()
