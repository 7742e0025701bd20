"""Rows that are too many for memory are kept in a temporary file, and nobody notices."""

import gc
import os
import resource
import sys
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context

from skpml import PMLMA
from skpml.cleaning import audit
from skpml.tables import Columns, TableError, read_table
from skpml.tables._row_store import RowStore, pick_columns

SMALL = 0.01  # MiB


def blocks(n_blocks=5, n=300, d=7, dtype=np.float32):
    rng = np.random.default_rng(0)
    return [rng.normal(size=(n, d)).astype(dtype) for _ in range(n_blocks)]


def store(parts, memory):
    with config_context(working_memory=memory):
        rows = RowStore()
        for part in parts:
            rows.add(part)
        assert rows.n_rows == sum(map(len, parts))
        return rows.finish()


@pytest.mark.parametrize("memory", [1024, SMALL])
@pytest.mark.parametrize(
    "parts",
    [
        blocks(),
        blocks(dtype=np.float64),
        [*blocks(), *blocks(dtype=np.float64)],
        [*blocks(dtype=np.float64), *blocks()],
        [np.asfortranarray(part) for part in blocks()],
        blocks(n_blocks=1, n=2000),
        [np.empty((4, 0)), np.empty((3, 0))],
    ],
    ids=["single", "double", "wider later", "narrower later", "by columns", "one", "no columns"],
)
def test_rows_are_those_that_were_added(parts, memory):
    found, expected = store(parts, memory), np.concatenate(parts)
    assert found.dtype == expected.dtype
    assert_array_equal(found, expected)
    assert isinstance(found, np.memmap) == (memory == SMALL and expected.size > 0)


def test_no_rows():
    assert RowStore().finish().shape == (0, 0)


@pytest.mark.parametrize("memory", [1024, SMALL])
def test_columns_are_picked(memory):
    parts = blocks(n=5000)
    with config_context(working_memory=memory):
        found = pick_columns(store(parts, memory), [4, 0])
    assert_array_equal(found, np.concatenate(parts)[:, [4, 0]])
    assert isinstance(found, np.memmap) == (memory == SMALL)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at the open files of Linux")
def test_the_file_goes_with_the_matrix(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = store(blocks(), SMALL)
    assert str(tmp_path) in Path("/proc/self/maps").read_text()
    assert os.listdir(tmp_path) == []
    del found
    gc.collect()
    assert str(tmp_path) not in Path("/proc/self/maps").read_text()


@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files")
def test_a_full_disk_is_an_error_that_says_what_to_do():
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        with pytest.raises(TableError, match="TMPDIR"):
            store(blocks(), SMALL)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def write_parquet(path, n=3000, d=20):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(np.float32)
    truth = X[:, :4] > 0.5
    tags = [";".join(f"tag{label}" for label in np.flatnonzero(row | (rng.random(4) < 0.1))) for row in truth]
    frame = pd.DataFrame(X, columns=[f"x{column}" for column in range(d)])
    frame.insert(3, "number", np.arange(n))
    frame.assign(tags=tags).to_parquet(path)
    return X


def test_features_of_a_table_stay_outside_memory(tmp_path):
    X = write_parquet(tmp_path / "rows.parquet")
    columns = Columns(tags="tags", features=[f"x{column}" for column in range(20)])
    whole = read_table(tmp_path / "rows.parquet", columns=columns)
    with config_context(working_memory=SMALL):
        lazy = read_table(tmp_path / "rows.parquet", columns=columns)
    assert isinstance(lazy.X, np.memmap)
    assert not isinstance(whole.X, np.memmap)
    assert_array_equal(lazy.X, X)
    assert lazy.X.dtype == np.float32
    assert_array_equal(lazy.candidates, whole.candidates)
    with config_context(working_memory=1):
        found = PMLMA(n_anchors=50, random_state=0, max_iter=3, on_empty="ignore").fit(
            lazy.X, lazy.candidates
        )
    expected = PMLMA(n_anchors=50, random_state=0, max_iter=3, on_empty="ignore").fit(
        whole.X, whole.candidates
    )
    assert_allclose(found.decision_function(X[:100]), expected.decision_function(X[:100]), atol=1e-4)


def test_a_column_that_numbers_the_rows_is_left_out_in_the_file_too(tmp_path):
    X = write_parquet(tmp_path / "rows.parquet", n=1000)
    with config_context(working_memory=SMALL):
        table = read_table(tmp_path / "rows.parquet", columns=Columns(tags="tags", ignore=["number"]))
    assert_array_equal(table.X, X)


@pytest.mark.parametrize("missing", [False, True])
def test_an_audit_is_the_same(tmp_path, missing):
    X = write_parquet(tmp_path / "rows.parquet", n=400)
    if missing:
        frame = pd.read_parquet(tmp_path / "rows.parquet")
        frame.loc[5, "x3"] = np.nan
        frame.to_parquet(tmp_path / "rows.parquet")
    options = dict(columns=Columns(tags="tags", features=[f"x{column}" for column in range(X.shape[1])]))
    whole = read_table(tmp_path / "rows.parquet", **options)
    with config_context(working_memory=SMALL):
        lazy = read_table(tmp_path / "rows.parquet", **options)
    assert lazy.n_missing == whole.n_missing == ({"x3": 1} if missing else {})
    assert_array_equal(lazy.X, whole.X)
    if not missing:
        found, expected = (audit(each.X, each.candidates, random_state=0) for each in (lazy, whole))
        assert_array_equal(np.asarray(found.actions), np.asarray(expected.actions))
        assert_allclose(found.confidences, expected.confidences, atol=1e-12)


def test_memory_of_reading_does_not_grow_with_the_features(tmp_path):
    write_parquet(tmp_path / "rows.parquet", n=60_000, d=100)
    columns = Columns(tags="tags", features=[f"x{column}" for column in range(100)])
    peaks = []
    for memory in (1024, 1):
        with config_context(working_memory=memory):
            tracemalloc.start()
            read_table(tmp_path / "rows.parquet", columns=columns)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[0] > 60_000 * 100 * 4
    assert peaks[1] < 0.6 * peaks[0]
