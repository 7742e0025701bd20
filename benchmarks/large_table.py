"""Large tables cleaned from file to file: minutes, memory, and whether the planted tags are found.

    OMP_NUM_THREADS=2 python benchmarks/large_table.py                       # both tables, an hour or more
    OMP_NUM_THREADS=2 python benchmarks/large_table.py --only csv
    OMP_NUM_THREADS=2 python benchmarks/large_table.py --rows 20000 --features 32

Writes made-up features and tags, of which some are planted, to a temporary folder, as one CSV file and as a Parquet file
with embeddings beside it, and runs ``skpml clean`` on each as a process of its own, with a review page and a model.
Machines differ: reading the same file by pandas, right before, is the yardstick. Memory is the largest resident set of
that process, with the pages of the file of embeddings; Linux only. That every row comes out, in order, is checked. Writes
results/large_table.md, for the default sizes of both.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from keeping import write_if_whole

OUTPUT = Path(__file__).parents[1] / "results" / "large_table.md"
SIZES = {"csv": (200_000, 100, 20), "parquet": (2_000_000, 384, 50)}
BLOCK = 50_000
CLEAN = ("clean", "--id", "id", "--report", "review.html", "--model", "model.skpml")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=SIZES, help="one of the tables")
    for name in ("rows", "features", "labels"):
        parser.add_argument(f"--{name}", type=int, help=f"number of {name}")
    options = parser.parse_args()
    lines = [
        "| rows × features × labels | file | minutes | times pandas | peak memory | tags | planted | dropped "
        "| of these planted |",
        "|---" * 9 + "|",
    ]
    for kind in (options.only,) if options.only else SIZES:
        wanted = options.rows, options.features, options.labels
        lines.append(measure(kind, *(new or usual for new, usual in zip(wanted, SIZES[kind], strict=True))))
    print("\n".join(lines))
    write_if_whole(OUTPUT, "\n".join(lines) + "\n", parser, options, "only", "rows", "features", "labels")


def measure(kind: str, rows: int, features: int, labels: int) -> str:
    """Write a table, clean it, and return a line of the result."""
    with TemporaryDirectory() as folder:
        here = Path(folder)
        write = write_csv if kind == "csv" else write_parquet
        truth, candidates = write(here, made_up(rows, features, labels), rows, features)
        source = here / f"table.{kind}"
        size = sum(path.stat().st_size for path in here.iterdir()) / 1e6
        start = time.perf_counter()
        pd.read_csv(source) if kind == "csv" else pd.read_parquet(source)
        yardstick = time.perf_counter() - start
        beside = ("--embeddings", "embeddings.npy") if kind == "parquet" else ()
        command = (
            Path(sys.executable).with_name("skpml"),
            *CLEAN,
            source.name,
            "-o",
            f"cleaned.{kind}",
            *beside,
        )
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=here)
        peak = watch_memory(process)
        if process.returncode:
            raise SystemExit(f"skpml clean ended with {process.returncode}")
        seconds = time.perf_counter() - start
        kept = read_tags(here / f"cleaned.{kind}", labels)
    dropped, planted = candidates & ~kept, candidates & ~truth
    assert not (kept & ~candidates).any()
    return (
        f"| {rows:,} × {features} × {labels} | {size:,.0f} MB, {kind} | {seconds / 60:.1f} | "
        f"{seconds / yardstick:.0f} | {peak / 1e9:.1f} GB | {candidates.sum():,} | {planted.sum():,} | "
        f"{dropped.sum():,} | {(dropped & planted).sum() / max(dropped.sum(), 1):.1%} |"
    )


def watch_memory(process: subprocess.Popen) -> int:
    """Wait for a process and return the bytes of its largest resident set; that of getrusage begins with its parent's."""
    status, peak = Path(f"/proc/{process.pid}/status"), 0
    while process.poll() is None:
        # A process that has just ended has no memory.
        if found := re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="utf-8")):
            peak = 1024 * int(found[1])
        time.sleep(0.1)
    return peak


def made_up(rows: int, features: int, labels: int) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield blocks of features of a few causes, of labels that a curved function of these decides, and candidates."""
    rng = np.random.default_rng(0)
    seen, bend, mix = (rng.normal(size=shape) for shape in ((10, features), (10, 30), (30, labels)))
    least = None
    for start in range(0, rows, BLOCK):
        n = min(BLOCK, rows - start)
        causes = rng.normal(size=(n, 10))
        X = causes @ seen + rng.normal(size=(n, features))
        bent = np.tanh(causes @ bend) @ mix + 0.5 * rng.normal(size=(n, labels))
        least = np.quantile(bent, 0.85, axis=0) if least is None else least
        truth = bent > least
        yield X, truth, truth | (rng.random(truth.shape) < 0.05)


def write_csv(
    folder: Path, blocks: Iterator[tuple[np.ndarray, ...]], rows: int, features: int
) -> tuple[np.ndarray, np.ndarray]:
    found = []
    for X, truth, candidates in blocks:
        names = name_labels(candidates)
        frame = pd.DataFrame(X.round(5), columns=[f"x{column}" for column in range(features)])
        frame.insert(0, "id", name_rows(len(found) * BLOCK, len(X)))
        frame["tags"] = [";".join(names[row]) for row in candidates]
        frame.to_csv(folder / "table.csv", index=False, mode="a", header=not found)
        found.append((truth, candidates))
    return stack(found)


def write_parquet(
    folder: Path, blocks: Iterator[tuple[np.ndarray, ...]], rows: int, features: int
) -> tuple[np.ndarray, np.ndarray]:
    found = []
    X = np.lib.format.open_memmap(folder / "embeddings.npy", "w+", np.float32, (rows, features))
    schema = pa.schema({"id": pa.string(), "tags": pa.list_(pa.string())})
    with pq.ParquetWriter(folder / "table.parquet", schema) as writer:
        for some, truth, candidates in blocks:
            start = len(found) * BLOCK
            X[start : start + len(some)] = some
            names = name_labels(candidates)
            tags = [names[row].tolist() for row in candidates]
            writer.write_table(pa.table({"id": name_rows(start, len(some)), "tags": tags}, schema=schema))
            found.append((truth, candidates))
    return stack(found)


def name_labels(candidates: np.ndarray) -> np.ndarray:
    return np.array([f"tag{label}" for label in range(candidates.shape[1])])


def name_rows(start: int, count: int) -> list[str]:
    return [f"item {row}" for row in range(start, start + count)]


def stack(blocks: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    truth, candidates = (np.concatenate(each) for each in zip(*blocks, strict=True))
    return truth, candidates


def read_tags(path: Path, labels: int) -> np.ndarray:
    """Read the tags of a cleaned table, whose rows must be all and in order."""
    if path.suffix == ".csv":
        frame = pd.read_csv(path, usecols=["id", "tags"], keep_default_na=False)
        ids, tags = frame["id"].tolist(), [cell.split(";") if cell else [] for cell in frame["tags"]]
    else:
        table = pq.read_table(path)
        ids, tags = table["id"].to_pylist(), table["tags"].to_pylist()
    assert ids == name_rows(0, len(ids)), "rows are missing or in another order"
    kept = np.zeros((len(ids), labels), dtype=bool)
    for row, names in enumerate(tags):
        kept[row, [int(tag[3:]) for tag in names]] = True
    return kept


if __name__ == "__main__":
    main()
