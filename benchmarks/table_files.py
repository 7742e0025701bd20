"""What it costs to read a large labeled table, and to write it again without some labels.

    OMP_NUM_THREADS=1 python benchmarks/table_files.py
    OMP_NUM_THREADS=1 python benchmarks/table_files.py --rows 20000

Writes a CSV and a Parquet file of random numbers and tags to a temporary folder, reads each by `read_table`, drops every
tenth tag by `write_cleaned`, and prints seconds and the peak memory of the process.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from skpml.experiments import PeakMemory
from skpml.tables import Columns, read_table, write_cleaned


def made_up(rows: int, features: int, labels: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    names = np.array([f"tag{label}" for label in range(labels)])
    chosen = rng.random((rows, labels)) < 0.2
    frame = pd.DataFrame(rng.normal(size=(rows, features)).round(6))
    frame.columns = pd.Index([f"x{column}" for column in range(features)])
    frame.insert(0, "id", [f"item {row}" for row in range(rows)])
    frame["tags"] = [";".join(names[row]) for row in chosen]
    return frame


def measured(path: Path) -> str:
    memory, began = PeakMemory(), (time.perf_counter(), time.process_time())
    table = read_table(path, columns=Columns(tags="tags", id="id"))
    read = (time.perf_counter() - began[0], time.process_time() - began[1], memory.megabytes())
    drop = (table.candidates == 1) & (
        np.arange(table.candidates.size).reshape(table.candidates.shape) % 10 == 0
    )
    memory, began = PeakMemory(), (time.perf_counter(), time.process_time())
    write_cleaned(table, drop, path.with_name(f"cleaned{path.suffix}"))
    wrote = (time.perf_counter() - began[0], time.process_time() - began[1], memory.megabytes())
    return "; ".join(
        f"{what} in {wall:.1f} s ({processor:.1f} s of processor), peak {peak:.0f} MB"
        for what, (wall, processor, peak) in (("read", read), ("written", wrote))
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--labels", type=int, default=20)
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        paths = [Path(folder, f"table{suffix}") for suffix in (".csv", ".parquet")]
        frame = made_up(options.rows, options.features, options.labels)
        frame.to_csv(paths[0], index=False)
        frame.to_parquet(paths[1], index=False)
        del frame
        print(f"{options.rows:,} rows × {options.features} features × {options.labels} labels")
        for path in paths:
            print(f"{path.suffix} ({path.stat().st_size / 1e6:.0f} MB): {measured(path)}")


if __name__ == "__main__":
    main()
