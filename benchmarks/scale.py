"""How time and memory grow with the number of rows: PML-MA, candidate likelihood and ridge regression.

    python benchmarks/scale.py                               # 62,500 to 1,000,000 rows; takes hours
    python benchmarks/scale.py --rows 62500 --methods pml-ma ridge
    python benchmarks/scale.py --device cuda                 # also on a GPU

Embedding-like rows (float32, 384 features, 100 labels) are drawn from clusters and written to a file, which every fit
reads as a ``numpy.memmap``. Each fit has 2,000 anchors and a process of its own, whose resident memory is that of the
fit, the file's pages and the interpreter. Beside the methods: scikit-learn's Ridge, with the mapped features of all rows
in memory, as long as these fit. Average precision is against the true labels of 10,000 other rows. Writes
results/scale.md if the whole table was made.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from keeping import write_if_whole

OUTPUT = Path(__file__).parents[1] / "results" / "scale.md"
ROWS = (62_500, 250_000, 1_000_000)
METHODS = ("pml-ma", "pml-ma without graph", "candidate-likelihood", "ridge", "scikit-learn ridge")
FEATURES, LABELS, ANCHORS, TEST_ROWS = 384, 100, 2000, 10_000
# Mapped features of more rows than this do not fit beside scikit-learn's copies of them.
MOST_IN_MEMORY = 250_000
STEP = 50_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--device")
    parser.add_argument("--one", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(Path(options.one), options.rows[0], options.methods[0], options.device)))
        return
    found = []
    with tempfile.TemporaryDirectory() as folder:
        make_data(Path(folder), max(options.rows) + TEST_ROWS)
        for method in options.methods:
            for n_rows in options.rows:
                if method == "scikit-learn ridge" and n_rows > MOST_IN_MEMORY:
                    continue
                command = [
                    sys.executable,
                    __file__,
                    "--one",
                    folder,
                    "--rows",
                    str(n_rows),
                    "--methods",
                    method,
                ]
                command += ["--device", options.device] if options.device else []
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                found.append(json.loads(done.stdout))
                print(found[-1], flush=True)
    write_if_whole(OUTPUT, format_table(found), parser, options, "rows", "methods", "device")


def make_data(folder: Path, n_rows: int) -> None:
    """Write features, candidates and true labels in blocks."""
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(300, 24)).astype(np.float32)
    spread = rng.normal(size=(24, FEATURES)).astype(np.float32) / 5
    direction = rng.normal(size=(24, LABELS)).astype(np.float32)
    shape = {"X": (np.float32, FEATURES), "candidates": (np.uint8, LABELS), "truth": (np.uint8, LABELS)}
    files = {
        name: np.lib.format.open_memmap(folder / f"{name}.npy", "w+", dtype, (n_rows, width))
        for name, (dtype, width) in shape.items()
    }
    for start in range(0, n_rows, STEP):
        rows = slice(start, min(start + STEP, n_rows))
        n = rows.stop - rows.start
        hidden = centers[rng.integers(0, len(centers), n)] + 0.7 * rng.normal(size=(n, 24)).astype(np.float32)
        files["X"][rows] = hidden @ spread + 0.3 * rng.normal(size=(n, FEATURES)).astype(np.float32)
        scores = np.tanh(hidden) @ direction + rng.normal(size=(n, LABELS))
        truth = scores > np.sort(scores, axis=1)[:, -4:-3]
        files["truth"][rows] = truth
        files["candidates"][rows] = truth | (rng.random((n, LABELS)) < 0.05)


def measure(folder: Path, n_rows: int, method: str, device: str | None) -> dict:
    """Fit one method to the first rows: seconds, resident memory and average precision on the last rows."""
    from sklearn.linear_model import Ridge

    from skpml import PMLMA, CandidateLikelihood
    from skpml.features import RangeScaler, RBFAnchors
    from skpml.metrics import average_precision
    from skpml.reference import CandidateRidge

    warnings.simplefilter("ignore")
    X, Y, truth = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("X", "candidates", "truth"))
    common = {"n_anchors": ANCHORS, "random_state": 0}
    models = {
        "pml-ma": lambda: PMLMA(**common, device=device),
        "pml-ma without graph": lambda: PMLMA(**common, alignment_weight=0.0, device=device),
        "candidate-likelihood": lambda: CandidateLikelihood(**common, device=device),
        "ridge": lambda: CandidateRidge(**common),
    }
    begin = time.perf_counter()
    if method == "scikit-learn ridge":
        scaler, anchors = RangeScaler().fit(X[:n_rows]), RBFAnchors(**common)
        mapped = anchors.fit_transform(scaler.transform(X[:n_rows]))
        mapping = time.perf_counter() - begin
        fitted = Ridge(alpha=1.0, fit_intercept=False).fit(mapped, Y[:n_rows])
        seconds = time.perf_counter() - begin
        scores = fitted.predict(anchors.transform(scaler.transform(X[-TEST_ROWS:])))
    else:
        model = models[method]().fit(X[:n_rows], Y[:n_rows])
        seconds, mapping = time.perf_counter() - begin, None
        scores = model.decision_function(X[-TEST_ROWS:])
    return {
        "method": method,
        "rows": n_rows,
        "seconds": round(seconds, 1),
        "mapping": mapping,
        "memory_gb": round(peak_memory() / 2**20, 2),
        "average_precision": round(float(average_precision(truth[-TEST_ROWS:], scores)), 4),
        "iterations": int(getattr(locals().get("model"), "n_iter_", 0)),
    }


def peak_memory() -> int:
    """Return the largest resident memory in KiB; that of getrusage begins with the peak of the parent process."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])


def format_table(found: list[dict]) -> str:
    """Format the results, with the exponent of growth from the row above."""
    head = ["method", "rows", "minutes", "growth", "resident memory, GB", "average precision", "iterations"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    before: dict[str, dict] = {}
    for each in found:
        growth, last = "", before.get(each["method"])
        if last is not None:
            ratio = np.log(each["seconds"] / last["seconds"]) / np.log(each["rows"] / last["rows"])
            growth = f"{ratio:.2f}"
        before[each["method"]] = each
        cells = [each["method"], f"{each['rows']:,}", f"{each['seconds'] / 60:.1f}", growth]
        cells += [
            f"{each['memory_gb']:.1f}",
            f"{each['average_precision']:.3f}",
            str(each["iterations"] or ""),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
