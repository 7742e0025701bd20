"""How time and memory grow with the number of rows: our methods, scikit-learn's on the same features, a GPU, Dask.

    python benchmarks/scale.py                                    # two cores; what results/scale.csv lacks; takes hours
    python benchmarks/scale.py --rows 62500 --methods pml-ma ridge    # some of it; other results are kept
    python benchmarks/scale.py --working-memory 256 --methods pml-ma  # blocks of this many MiB, for all rows
    python benchmarks/scale.py --device cuda                      # our methods on a GPU
    python benchmarks/scale.py --workers 1 2 4                    # one fit on Dask workers of one core each
    python benchmarks/scale.py --redo ...                         # measures again
    python benchmarks/scale.py --tables-only                      # results/scale.md from results/scale.csv

Embedding-like rows (float32, 384 features, 100 labels) are drawn from clusters and written to a file, which every fit
reads as a ``numpy.memmap``. Each fit has 2,000 anchors and a process of its own, that is kept to as many cores as it may
use; its resident memory is that of the fit, the file's pages and the interpreter. A GPU is started before the fit.
scikit-learn's Ridge and OneVsRestClassifier(LogisticRegression) get the mapped features of all rows in memory, as long
as these fit. Predictions are for the training rows, in blocks of 10,000. Average precision is against the true labels of
10,000 other rows, the last of the file, which depend on the largest table of a run.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from keeping import merge_rows

from skpml._writing import replacing

OUTPUT = Path(__file__).parents[1] / "results" / "scale.csv"
FIELDS = (
    "method",
    "rows",
    "where",
    "seconds",
    "mapping_seconds",
    "predict_seconds",
    "memory_gb",
    "device_gb",
)
FIELDS += ("average_precision", "iterations", "started")
KEY = ("method", "rows", "where")
ROWS = (62_500, 250_000, 1_000_000)
OURS = ("pml-ma", "pml-ma without graph", "candidate-likelihood")
# Most rows of each method: mapped features must fit beside the copies that scikit-learn makes of them, and logistic
# regressions one label after the other take long.
SKLEARN = {"scikit-learn ridge": 250_000, "scikit-learn logistic regression": 62_500}
METHODS = (*OURS, "ridge", *SKLEARN)
ON_DASK, DASK_ROWS = "pml-ma without graph", 125_000
FEATURES, LABELS, ANCHORS, TEST_ROWS = 384, 100, 2000, 10_000
STEP = 50_000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", metavar="N")
    parser.add_argument("--methods", nargs="+", choices=METHODS, metavar="NAME")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--device", help="a device of PyTorch")
    parser.add_argument("--working-memory", type=int, metavar="MIB", help="scikit-learn's, in place of 1024")
    parser.add_argument("--workers", type=int, nargs="+", metavar="N", help="numbers of Dask workers")
    parser.add_argument("--redo", action="store_true", help="measure again what the CSV already holds")
    parser.add_argument("--tables-only", action="store_true")
    parser.add_argument("--one", nargs=2, metavar=("FOLDER", "TASK"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(Path(options.one[0]), **json.loads(options.one[1]))))
        return
    kept = merge([])
    tasks = [] if options.tables_only else list_tasks(options)
    have = set() if options.redo else {tuple(str(row[name]) for name in KEY) for row in kept}
    tasks = [task for task in tasks if tuple(str(task[name]) for name in KEY) not in have]
    if not tasks:
        return
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with tempfile.TemporaryDirectory() as folder:
        make_data(Path(folder), max(task["rows"] for task in tasks) + TEST_ROWS)
        for task in tasks:
            command = [sys.executable, __file__, "--one", folder, json.dumps(task)]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            found = {name: task[name] for name in KEY} | json.loads(done.stdout) | {"started": started}
            merge([found])
            print(found, flush=True)


def list_tasks(options: argparse.Namespace) -> list[dict[str, Any]]:
    """List the measurements: method, rows, where, cores, device, number of Dask workers and working memory."""
    common: dict[str, Any] = {"cores": options.cores, "device": None, "workers": 0}
    common["working_memory"] = options.working_memory
    if options.workers:
        methods, rows = options.methods or [ON_DASK], options.rows or [DASK_ROWS]
        return [
            {"method": method, "rows": n, "where": f"dask {count}"} | common | {"workers": count}
            for method in methods
            for n in rows
            for count in options.workers
        ]
    where = options.device or f"{options.cores} cores"
    if options.working_memory:
        where += f", {options.working_memory} MiB"
    methods = options.methods or (OURS if options.device else METHODS)
    return [
        {"method": method, "rows": n, "where": where} | common | {"device": options.device}
        for n in options.rows or ROWS
        for method in methods
        if n <= SKLEARN.get(method, n)
    ]


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


def measure(
    folder: Path,
    method: str,
    rows: int,
    where: str,
    cores: int,
    device: str | None,
    workers: int,
    working_memory: int | None,
) -> dict[str, Any]:
    """Fit one method to the first rows: seconds, memory and average precision on the last rows."""
    if hasattr(os, "sched_setaffinity"):
        # Before any BLAS counts the cores; workers are processes that inherit them.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: workers or cores])
    warnings.simplefilter("ignore")
    import sklearn

    from skpml.metrics import average_precision

    if working_memory:
        sklearn.set_config(working_memory=working_memory)
    X, Y, truth = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("X", "candidates", "truth"))
    if workers:
        return measure_on_dask(X, Y, method, rows, workers)
    if method in SKLEARN:
        predict, seconds, mapping = fit_scikit_learn(method, X[:rows], Y[:rows])
        iterations = None
    else:
        model = make_model(method, device)
        if device is not None:
            import torch

            # Starting a GPU takes seconds, once for each process.
            torch.zeros(1, device=device)
        begin = time.perf_counter()
        model.fit(X[:rows], Y[:rows])
        seconds, mapping, predict = time.perf_counter() - begin, None, model.decision_function
        iterations = getattr(model, "n_iter_", None)
    memory, begin = peak_memory(), time.perf_counter()
    for start in range(0, rows, TEST_ROWS):
        predict(X[start : min(start + TEST_ROWS, rows)])
    predicted = time.perf_counter() - begin
    precision = float(average_precision(truth[-TEST_ROWS:], predict(X[-TEST_ROWS:])))
    return {
        "seconds": round(seconds, 1),
        "mapping_seconds": mapping if mapping is None else round(mapping, 1),
        "predict_seconds": round(predicted, 1),
        "memory_gb": round(memory / 2**20, 2),
        "device_gb": device_memory(device),
        "average_precision": round(precision, 4),
        "iterations": iterations,
    }


def make_model(method: str, device: str | None) -> Any:
    """Return a method of ours by the name of the benchmark."""
    from skpml import PMLMA, CandidateLikelihood
    from skpml.reference import CandidateRidge

    common = {"n_anchors": ANCHORS, "random_state": 0}
    if method == "ridge":
        return CandidateRidge(**common)
    if method == "candidate-likelihood":
        return CandidateLikelihood(**common, device=device)
    options = {"alignment_weight": 0.0} if method == "pml-ma without graph" else {}
    return PMLMA(**common, **options, device=device)


def fit_scikit_learn(method: str, X: Any, Y: Any) -> tuple[Any, float, float]:
    """Map all rows and fit scikit-learn's estimator; the seconds of both, and those of the mapping alone."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.multiclass import OneVsRestClassifier

    from skpml.features import RangeScaler, RBFAnchors

    begin = time.perf_counter()
    scaler, anchors = RangeScaler().fit(X), RBFAnchors(n_anchors=ANCHORS, random_state=0)
    mapped = anchors.fit_transform(scaler.transform(X))
    mapping = time.perf_counter() - begin
    ridge = method == "scikit-learn ridge"
    model = Ridge(fit_intercept=False) if ridge else OneVsRestClassifier(LogisticRegression())
    model.fit(mapped, np.asarray(Y))
    seconds = time.perf_counter() - begin
    decide = model.predict if ridge else model.decision_function
    return (lambda rows: decide(anchors.transform(scaler.transform(rows)))), seconds, mapping


def measure_on_dask(X: Any, Y: Any, method: str, rows: int, workers: int) -> dict[str, Any]:
    """Fit to a dask array on workers of one thread each."""
    import dask.array as da
    from dask.distributed import Client, LocalCluster

    blocks = da.from_array(X[:rows], chunks=(-(-rows // 16), FEATURES))
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        begin = time.perf_counter()
        model = make_model(method, None).fit(blocks, np.asarray(Y[:rows]))
        seconds = time.perf_counter() - begin
        # Of the worker that needed most.
        memory = max(client.run(peak_memory).values())
    return {
        "seconds": round(seconds, 1),
        "memory_gb": round(memory / 2**20, 2),
        "iterations": model.n_iter_,
    }


def peak_memory() -> int:
    """Return the largest resident memory in KiB; that of getrusage begins with the peak of the parent process."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])


def device_memory(device: str | None) -> float | None:
    """Return the largest memory in GB that PyTorch had on a GPU."""
    if device is None or not device.startswith("cuda"):
        return None
    import torch

    return round(torch.cuda.max_memory_allocated() / 1e9, 2)


def read() -> list[dict[str, str]]:
    if not OUTPUT.exists():
        return []
    with open(OUTPUT, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def merge(fresh: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Add measurements to the file; write the table; return all."""
    texts = [{name: "" if row.get(name) is None else str(row[name]) for name in FIELDS} for row in fresh]
    rows = sorted(
        merge_rows(read(), texts, KEY), key=lambda row: (row["where"], int(row["rows"]), row["method"])
    )
    if rows:
        with (
            replacing(OUTPUT, OUTPUT.with_suffix(".md"), overwrite=True) as (table, page),
            open(table, "w", newline="", encoding="utf-8") as file,
        ):
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(rows)
            page.write_text(format_tables(rows), encoding="utf-8")
    return rows


def format_tables(rows: list[dict[str, str]]) -> str:
    """Two tables: cores and GPU by rows and method, and Dask by workers."""
    found = {tuple(row[name] for name in KEY): row for row in rows}
    places = [place for place in dict.fromkeys(row["where"] for row in rows) if not place.startswith("dask")]
    titles = ["rows", "method", "where", "minutes", "times Ridge", "growth", "resident memory, GB"]
    titles += ["memory of the GPU, GB", "minutes of prediction", "average precision", "iterations"]
    lines = ["<!-- growth -->", "", f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    sizes = sorted({int(row["rows"]) for row in rows if row["where"] in places})
    for size in sizes:
        for method in METHODS:
            for place in places:
                row = found.get((method, str(size), place))
                if row is None:
                    continue
                smaller = [n for n in sizes if n < size and (method, str(n), place) in found]
                growth = ""
                if smaller:
                    before = found[method, str(smaller[0]), place]
                    growth = f"{exponent(before, row):.2f}"
                cells = [f"{size:,}", method, place, minutes(row["seconds"])]
                cells += [compare_with_ridge(row, found), growth, row["memory_gb"], row["device_gb"]]
                cells += [minutes(row["predict_seconds"]), row["average_precision"], row["iterations"]]
                lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "<!-- dask -->", ""]
    lines += ["| method | rows | workers | seconds | speed-up |", "|---|---|---|---|---|"]
    for row in rows:
        if not row["where"].startswith("dask"):
            continue
        one = found.get((row["method"], row["rows"], "dask 1"))
        faster = f"{float(one['seconds']) / float(row['seconds']):.2f}" if one else ""
        workers = row["where"].removeprefix("dask ")
        lines.append(f"| {row['method']} | {int(row['rows']):,} | {workers} | {row['seconds']} | {faster} |")
    return "\n".join([*lines, "", "<!-- end -->"]) + "\n"


def minutes(seconds: str) -> str:
    return f"{float(seconds) / 60:.2f}" if seconds else ""


def exponent(before: dict[str, str], after: dict[str, str]) -> float:
    """Return the exponent of the growth of time."""
    ratio = float(after["seconds"]) / float(before["seconds"])
    return float(np.log(ratio) / np.log(int(after["rows"]) / int(before["rows"])))


def compare_with_ridge(row: dict[str, str], found: dict[tuple[str, ...], dict[str, str]]) -> str:
    """Return the time over that of scikit-learn's Ridge, both with the mapping; only of the same run."""
    ridge = found.get(("scikit-learn ridge", row["rows"], row["where"]))
    if ridge is None or ridge["started"] != row["started"]:
        return ""
    return f"{float(row['seconds']) / float(ridge['seconds']):.1f}"


if __name__ == "__main__":
    main()
