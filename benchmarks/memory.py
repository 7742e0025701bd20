"""No method holds an n×n array on large data: peak memory of a fit on 21,000 rows, against the size of such an array.

python benchmarks/memory.py                  # all methods, a process each; writes results/memory.md
python benchmarks/memory.py pml-ni pamb      # some
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from skpml import get_method, list_methods

OUTPUT = Path(__file__).parents[1] / "results" / "memory.md"
ROWS, FEATURES, LABELS = 21_000, 6, 5


def fit_alone(name: str) -> None:
    """In a process of its own: peak memory beyond what was there before the fit, and time."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, FEATURES))
    truth = X @ rng.normal(size=(FEATURES, LABELS)) > 1
    candidates = (truth | (rng.random(truth.shape) < 0.3)).astype(np.uint8)
    small = get_method(name)().set_params(empty_rows="ignore")
    warnings.simplefilter("ignore")
    small.fit(X[:100], candidates[:100])  # everything is imported
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
    get_method(name)().set_params(empty_rows="ignore").fit(X, candidates)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print((peak - before) / 1024, time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("methods", nargs="*", default=list_methods(), metavar="NAME")
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        fit_alone(options.alone)
        return
    square = ROWS**2 * 4 / 2**20
    lines = [
        f"Peak memory of a fit on {ROWS:,} rows, {FEATURES} features and {LABELS} labels. An array of {ROWS:,} × {ROWS:,}"
        f" numbers would take {square:,.0f} MB in single precision.",
        "",
        "| method | MB | share of such an array |",
        "|---|---|---|",
    ]
    for name in options.methods:
        done = subprocess.run(
            [sys.executable, __file__, "--alone", name], capture_output=True, text=True, check=True
        )
        megabytes, seconds = (float(value) for value in done.stdout.split())
        lines.append(f"| {get_method(name).title} | {megabytes:.0f} | {megabytes / square:.0%} |")
        print(lines[-1], f"{seconds:.0f} s", flush=True)
    if options.methods == list_methods():
        OUTPUT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
