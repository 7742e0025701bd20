"""A large table cleaned from file to file: minutes, memory, and whether the planted tags are found.

    OMP_NUM_THREADS=2 python benchmarks/large_table.py
    OMP_NUM_THREADS=2 python benchmarks/large_table.py --rows 20000

Writes a CSV file of made-up features and tags to a temporary folder, of which some tags are planted, and runs
``skpml clean`` on it as a process of its own, with a review page and a model. Machines differ: reading the same file by
pandas, right before, is the yardstick. Writes results/large_table.md, for the default size.
"""

from __future__ import annotations

import argparse
import csv
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from keeping import write_if_whole

OUTPUT = Path(__file__).parents[1] / "results" / "large_table.md"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--labels", type=int, default=20)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        here = Path(folder)
        X, truth, candidates = made_up(options.rows, options.features, options.labels)
        write_table(here / "table.csv", X, candidates)
        size = (here / "table.csv").stat().st_size / 1e6
        start = time.perf_counter()
        pd.read_csv(here / "table.csv")
        yardstick = time.perf_counter() - start
        start = time.perf_counter()
        subprocess.run(
            [
                *(
                    Path(sys.executable).with_name("skpml"),
                    "clean",
                    "table.csv",
                    "--id",
                    "id",
                    "-o",
                    "cleaned.csv",
                ),
                *("--report", "review.html", "--model", "model.skpml"),
            ],
            cwd=here,
            check=True,
        )
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6
        kept = read_tags(here / "cleaned.csv", options.labels)
    dropped = candidates & ~kept
    planted = candidates & ~truth
    lines = [
        "| rows × features × labels | file | minutes | times pandas.read_csv | peak memory | tags | planted | dropped "
        "| of these planted |",
        "|---" * 9 + "|",
        f"| {options.rows:,} × {options.features} × {options.labels} | {size:.0f} MB | {seconds / 60:.1f} | "
        f"{seconds / yardstick:.0f} | {peak:.1f} GB | {candidates.sum():,} | {planted.sum():,} | {dropped.sum():,} | "
        f"{(dropped & planted).sum() / max(dropped.sum(), 1):.1%} |",
    ]
    print("\n".join(lines))
    write_if_whole(OUTPUT, "\n".join(lines) + "\n", parser, options, "rows", "features", "labels")


def made_up(rows: int, features: int, labels: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features of a few causes, labels that are true where a curved function of the causes is large, and candidates."""
    rng = np.random.default_rng(0)
    causes = rng.normal(size=(rows, 10))
    X = causes @ rng.normal(size=(10, features)) + rng.normal(size=(rows, features))
    bent = np.tanh(causes @ rng.normal(size=(10, 30))) @ rng.normal(size=(30, labels))
    bent += 0.5 * rng.normal(size=bent.shape)
    truth = bent > np.quantile(bent, 0.85, axis=0)
    planted = ~truth & (rng.random(truth.shape) < 0.05)
    return X, truth, truth | planted


def write_table(path: Path, X: np.ndarray, candidates: np.ndarray) -> None:
    names = np.array([f"tag{label}" for label in range(candidates.shape[1])])
    frame = pd.DataFrame(X.round(5), columns=[f"x{column}" for column in range(X.shape[1])])
    frame.insert(0, "id", [f"item {row}" for row in range(len(X))])
    frame["tags"] = [";".join(names[row]) for row in candidates]
    frame.to_csv(path, index=False)


def read_tags(path: Path, labels: int) -> np.ndarray:
    with path.open(newline="", encoding="utf-8") as file:
        found = [row["tags"] for row in csv.DictReader(file)]
    kept = np.zeros((len(found), labels), dtype=bool)
    for row, tags in enumerate(found):
        kept[row, [int(tag[3:]) for tag in tags.split(";") if tag]] = True
    return kept


if __name__ == "__main__":
    main()
