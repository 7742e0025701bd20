"""Approximate search for neighbors: the search in cells of ``skpml.graph`` beside pynndescent, hnswlib and faiss.

    pip install pynndescent hnswlib faiss-cpu
    python benchmarks/neighbors.py                                    # about half an hour on one core
    python benchmarks/neighbors.py --data embeddings-20000 --methods "cells, 32 of 4√n (default)" "hnswlib, ef 100, 50"
    python benchmarks/neighbors.py --parts accuracy
    python benchmarks/neighbors.py --parts wheels                     # asks the package index

Three parts. ``search``: recall of the 5 nearest other rows (rows that tie for the last place count as found), CPU seconds
and peak memory beyond the rows, of embedding-like rows (those of benchmarks/scale.py) and of words of reports (tmc2007).
Each search has a process of its own and one thread; exact search is timed on 2,000 rows, in proportion. Searches of
libraries that are not installed are skipped. "32 of 4√n" are 4√n cells, of which the 32 nearest to a row are searched;
"ef 100, 50" are the candidates of construction and of search.
``accuracy``: average precision of PML-MA with different graphs. ``wheels``: for which systems pip finds wheels.
Writes results/neighbors.md if the whole was made. Needs Linux and the data sets (SKPML_DATA).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import numpy as np
import psutil
import scipy.sparse
from keeping import write_if_whole
from reproduce import WEIGHTS
from scale import make_data
from sklearn.model_selection import KFold
from sklearn.neighbors import NearestNeighbors

from skpml import PMLMA, _cell_search, graph
from skpml.datasets import load_dataset
from skpml.metrics import average_precision
from skpml.views import ViewScaler

OUTPUT = Path(__file__).parents[1] / "results" / "neighbors.md"
NEIGHBORS = 5
# Recall is that of so many random rows.
JUDGED = 2000
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
)
DATA = ("embeddings-20000", "embeddings-60000", "tmc2007")
# Average precision: configuration → folds. The last one has too many rows for an exact search by default.
ACCURACY = {"yeast-7": 3, "scene-3": 3, "arts-5": 3, "tmc2007-7": 1}
ALIGNMENT_WEIGHTS = (1e-2, 1e-1)
# The graph of the five nearest rows; the exact one also has those that tie for the fifth place.
WITHOUT_TIES = "exact, ties left out"
# Libraries with the packages they need that are not pure Python.
WHEELS = {
    "pynndescent": ("pynndescent", "numba", "llvmlite"),
    "hnswlib": ("hnswlib",),
    "faiss-cpu": ("faiss-cpu",),
}
SYSTEMS = {
    "Linux": "manylinux_2_28_x86_64",
    "macOS": "macosx_14_0_arm64",
    "Windows": "win_amd64",
    "older Linux": "manylinux2014_x86_64",
    "older macOS": "macosx_11_0_arm64",
}
# Python for which wheels are looked up.
WHEEL_PYTHON = "3.12"


def search_exactly(X: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """Search only for the neighbors of the judged rows; the cost of all rows is in proportion."""
    found = np.zeros((len(X), NEIGHBORS), np.intp)
    index = NearestNeighbors(n_neighbors=NEIGHBORS + 1, algorithm="brute").fit(X)
    found[judged] = drop_self(index.kneighbors(X[judged], return_distance=False), judged)
    return found


def search_cells(X: np.ndarray, judged: np.ndarray, *, cells: float, searched: int) -> np.ndarray:
    with patch.multiple(_cell_search, _CELLS=cells, _SEARCHED=searched):
        return _cell_search.search_cells(X, NEIGHBORS)[0]


def search_pynndescent(X: np.ndarray, judged: np.ndarray, **settings) -> np.ndarray:
    from pynndescent import NNDescent

    found = NNDescent(X, n_jobs=1, random_state=0, **settings).neighbor_graph[0]
    return drop_self(found[:, : NEIGHBORS + 1])


def search_hnswlib(X: np.ndarray, judged: np.ndarray, *, ef_construction: int, ef: int) -> np.ndarray:
    import hnswlib

    index = hnswlib.Index("l2", X.shape[1])
    index.init_index(len(X), M=16, ef_construction=ef_construction, random_seed=0)
    index.set_num_threads(1)
    index.add_items(X)
    index.set_ef(ef)
    return drop_self(index.knn_query(X, k=NEIGHBORS + 1)[0])


def search_faiss_cells(X: np.ndarray, judged: np.ndarray, *, rows_per_cell: int, searched: int) -> np.ndarray:
    import faiss

    faiss.omp_set_num_threads(1)
    cells = -(-len(X) // rows_per_cell)
    quantizer = faiss.IndexFlatL2(X.shape[1])
    index = faiss.IndexIVFFlat(quantizer, X.shape[1], cells)
    index.train(X)
    index.add(X)
    index.nprobe = min(searched, cells)
    return drop_self(index.search(X, NEIGHBORS + 1)[1])


def search_faiss_hnsw(X: np.ndarray, judged: np.ndarray, *, ef_construction: int, ef: int) -> np.ndarray:
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexHNSWFlat(X.shape[1], 16)
    index.hnsw.efConstruction, index.hnsw.efSearch = ef_construction, ef
    index.add(X)
    return drop_self(index.search(X, NEIGHBORS + 1)[1])


Search = Callable[..., np.ndarray]
# Name → (module, search, settings). "cells, 16 of n/256": n/256 cells, of which the 16 around a row are searched.
METHODS: dict[str, tuple[str, Search, dict]] = {
    "exact (scikit-learn)": ("sklearn", search_exactly, {}),
    **{
        f"cells, {searched} of {cells}√n{' (default)' * ((cells, searched) == (4, 32))}": (
            "skpml",
            search_cells,
            {"cells": cells, "searched": searched},
        )
        for cells, searched in ((2, 16), (4, 16), (4, 32), (4, 64), (8, 64))
    },
    "pynndescent, default": ("pynndescent", search_pynndescent, {}),
    "pynndescent, 15 neighbors": ("pynndescent", search_pynndescent, {"n_neighbors": 15}),
    **{
        f"{library}, ef {built}, {ef}": (module, search, {"ef_construction": built, "ef": ef})
        for library, module, search in (
            ("hnswlib", "hnswlib", search_hnswlib),
            ("faiss HNSW", "faiss", search_faiss_hnsw),
        )
        for built, ef in ((100, 50), (200, 100))
    },
    **{
        f"faiss IVF, {searched} of n/{rows}": (
            "faiss",
            search_faiss_cells,
            {"rows_per_cell": rows, "searched": searched},
        )
        for rows, searched in ((256, 8), (256, 16), (256, 32), (64, 32))
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parts = ("search", "accuracy", "wheels")
    parser.add_argument("--parts", nargs="+", default=parts, choices=parts)
    parser.add_argument("--data", nargs="+", default=DATA, choices=DATA)
    parser.add_argument("--methods", nargs="+", default=tuple(METHODS), choices=METHODS)
    parser.add_argument("--one", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # a fit that does not converge is part of the comparison
    if options.one:
        print(json.dumps(measure(Path(options.one), options.methods[0])))
        return
    make = {
        "search": lambda: format_searches(run_searches(options.data, options.methods)),
        "accuracy": lambda: format_accuracy(measure_accuracy()),
        "wheels": lambda: format_wheels({library: find_wheels(names) for library, names in WHEELS.items()}),
    }
    text = join_parts({part: make[part]() for part in options.parts})
    print(text)
    write_if_whole(OUTPUT, text, parser, options, "parts", "data", "methods")


def join_parts(tables: dict[str, str]) -> str:
    """Join the tables; comments mark the parts that the documentation includes."""
    return "".join(f"<!-- {part} -->\n\n{table}\n" for part, table in tables.items()) + "<!-- end -->\n"


def run_searches(data: tuple[str, ...], methods: tuple[str, ...]) -> list[dict]:
    """Measure each method on each data set; methods whose library is not installed get a line that says so."""
    found = []
    for name in data:
        with tempfile.TemporaryDirectory() as folder:
            X = load_rows(name, Path(folder))
            np.save(Path(folder) / "rows.npy", X)
            judged = np.sort(np.random.default_rng(0).permutation(len(X))[:JUDGED])
            truth = squared_distances(X, judged, search_exactly(X, judged)[judged])
            np.savez(Path(folder) / "truth.npz", judged=judged, last=truth.max(axis=1))
            common = {"data": name, "shape": f"{X.shape[0]:,} × {X.shape[1]}"}
            del X
            for method in methods:
                if find_spec(METHODS[method][0]) is None:
                    found.append({**common, "method": method, "missing": METHODS[method][0]})
                    continue
                command = [sys.executable, __file__, "--one", folder, "--methods", method]
                environment = os.environ | ONE_THREAD
                done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
                found.append({**common, "method": method, **json.loads(done.stdout)})
                print(found[-1], flush=True)
    return found


def load_rows(name: str, folder: Path) -> np.ndarray:
    """Load rows in single precision."""
    if name == "tmc2007":
        return load_dataset(name).X.toarray().astype(np.float32)
    n_rows = int(name.split("-")[1])
    make_data(folder, n_rows)
    return np.load(folder / "X.npy")


def measure(folder: Path, method: str) -> dict[str, float]:
    """Search once: recall, CPU seconds and megabytes at the peak beyond the rows; before it, a search of few rows.

    The first search of few rows has the cost of the import, and for pynndescent of the compilation, of every process.
    """
    module, search, settings = METHODS[method]
    X = np.load(folder / "rows.npy")
    truth = np.load(folder / "truth.npz")
    judged = truth["judged"]
    begin = time.process_time()
    importlib.import_module(module)
    search(X[:1000], np.arange(100), **settings)
    start = time.process_time() - begin
    resident = psutil.Process().memory_info().rss
    begin = time.process_time()
    found = search(X, judged, **settings)
    seconds = time.process_time() - begin
    peak = peak_resident()
    if search is search_exactly:
        seconds *= len(X) / len(judged)
    squared = squared_distances(X, judged, found[judged])
    recall = np.mean((squared <= truth["last"][:, None] * (1 + 1e-6)) & (found[judged] >= 0))
    return {
        "recall": float(recall),
        "seconds": seconds,
        "start": start,
        "megabytes": (peak - resident) / 1e6,
    }


def peak_resident() -> int:
    """Return the largest resident memory of this process, in bytes; ``ru_maxrss`` may be that of the parent."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return 1024 * int(re.search(r"VmHWM:\s*(\d+)", status)[1])


def squared_distances(X: np.ndarray, rows: np.ndarray, found: np.ndarray) -> np.ndarray:
    return ((X[rows, None].astype(np.float64) - X[found]) ** 2).sum(axis=2)


def drop_self(found: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
    """Leave each row itself out of the list of its neighbors, or the last one if the row is not in it."""
    others = graph._without_self(found, np.arange(len(found)) if rows is None else rows)
    return found[others].reshape(len(found), found.shape[1] - 1)


def measure_accuracy() -> list[dict]:
    """Fit PML-MA with the weights of the authors, but larger weights of the graph, and different graphs."""
    found = []
    for name, n_folds in ACCURACY.items():
        data = load_dataset(name, random_state=0)
        folds = list(KFold(10, shuffle=True, random_state=0).split(data.X))
        for fold, (train, test) in enumerate(folds[:n_folds]):
            X, Y = data.X[train], data.candidates[train]
            exact, *others = make_graphs(ViewScaler().fit(X, Y).transform(X))
            for weight in ALIGNMENT_WEIGHTS:
                precision = []
                for similarity in (exact[1], *(other[1] for other in others), None):
                    model = make_model(name, fold, weight if similarity is not None else 0.0, similarity)
                    scores = model.fit(X, Y).decision_function(data.X[test])
                    precision.append(float(average_precision(data.truth[test], scores)))
                for (kind, similarity), value in zip((*others, ("none", None)), precision[1:], strict=True):
                    common = 0 if similarity is None else (exact[1] != 0).multiply(similarity != 0).nnz
                    line = {"data": name, "rows": len(train), "fold": fold, "weight": weight, "graph": kind}
                    line |= {"pairs": common / exact[1].nnz, "exact": precision[0], "precision": value}
                    found.append(line)
                    print(line, flush=True)
    return found


def make_graphs(scaled: np.ndarray) -> Iterator[tuple[str, scipy.sparse.csr_array]]:
    """Compute graphs of rows: exact, exact without ties, and in cells."""
    yield "exact", graph.neighbor_similarity(scaled, search="exact")
    with patch.object(graph, "_TIED_PAIRS", 0), patch.object(_cell_search, "_SEARCHED", len(scaled)):
        yield WITHOUT_TIES, graph.neighbor_similarity(scaled, search="cells")
    yield "cells", graph.neighbor_similarity(scaled, search="cells")


def make_model(name: str, fold: int, alignment_weight: float, similarity: object) -> PMLMA:
    """The weights of the authors, but for the alignment; the defaults where they name none."""
    low_rank, _, prototypes, ridge = WEIGHTS.get(name.split("-")[0], (1.0, None, 0.01, 1.0))
    return PMLMA(
        low_rank_weight=low_rank,
        alignment_weight=alignment_weight,
        prototype_weight=prototypes,
        ridge_weight=ridge,
        graph=similarity,
        random_state=fold,
        on_empty="ignore",
    )


def find_wheels(names: tuple[str, ...]) -> dict[str, str]:
    """Return the versions that pip installs from wheels alone on each system; an empty string if there are none."""
    versions = {}
    for system, platform in SYSTEMS.items():
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--ignore-installed"]
        command += [
            "--quiet",
            "--only-binary",
            ":all:",
            "--platform",
            platform,
            "--python-version",
            WHEEL_PYTHON,
        ]
        with tempfile.TemporaryDirectory() as folder:
            command += ["--target", folder, "--report", "-", *names]
            done = subprocess.run(command, capture_output=True, text=True)
        installed = json.loads(done.stdout)["install"] if done.returncode == 0 else []
        known = {each["metadata"]["name"]: each["metadata"]["version"] for each in installed}
        versions[system] = ", ".join(f"{name} {version}" for name, version in sorted(known.items()))
    return versions


def format_searches(found: list[dict]) -> str:
    """Format recall, CPU seconds and megabytes of each data set side by side."""
    sets = list(dict.fromkeys(each["data"] for each in found))
    head = ["search"]
    for name in sets:
        shape = next(each["shape"] for each in found if each["data"] == name)
        head += [f"{name.split('-')[0]} {shape}: recall", "CPU s", "memory, MB"]
    head.append("first search, CPU s")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for method in dict.fromkeys(each["method"] for each in found):
        runs = {each["data"]: each for each in found if each["method"] == method}
        if missing := next((each["missing"] for each in runs.values() if "missing" in each), None):
            lines.append(f"| {method} | {missing} is not installed |" + " |" * (len(head) - 2))
            continue
        cells = [method]
        for name in sets:
            run = runs[name]
            cells += [f"{run['recall']:.3f}", f"{run['seconds']:.1f}", f"{run['megabytes']:.0f}"]
        cells.append(f"{min(run['start'] for run in runs.values()):.1f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def format_accuracy(found: list[dict]) -> str:
    """Format mean differences of average precision, and the largest of a fold."""
    head = ["data", "rows", "α", "graph", "share of the exact pairs", "average precision", "less the exact graph's",
            "largest of a fold", "less that without ties", "largest of a fold"]  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    groups: dict[tuple, list[dict]] = {}
    for run in found:
        groups.setdefault((run["data"], run["weight"], run["graph"]), []).append(run)
    for (name, weight, kind), runs in groups.items():
        precision, exact = (np.array([run[key] for run in runs]) for key in ("precision", "exact"))
        untied = np.array([run["precision"] for run in groups[name, weight, WITHOUT_TIES]])
        cells = [
            name,
            f"{runs[0]['rows']:,}",
            f"{weight:g}",
            kind,
            f"{np.mean([run['pairs'] for run in runs]):.3f}",
        ]
        cells.append(f"{precision.mean():.4f}")
        for change in (precision - exact, precision - untied):
            cells += [f"{change.mean():+.4f}", f"{np.abs(change).max():.4f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def format_wheels(found: dict[str, dict[str, str]]) -> str:
    """Format the newest version with wheels of each system."""
    head = ["library", *(f"{system} ({platform})" for system, platform in SYSTEMS.items())]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for library, versions in found.items():
        lines.append(f"| {library} | {' | '.join(versions[system] or 'none' for system in SYSTEMS)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
