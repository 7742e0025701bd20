"""Files of embeddings: what type of numbers they hold, what of them is in memory, and what is given back."""

import gc
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn import config_context

from skpml.tables import TableError, read_embeddings, release_rows

SMALL = 0.01  # MiB
# What is read of a file of numbers of each type; single precision only where it holds all of them.
READ_AS = {
    "bool": np.float32,
    "int8": np.float32,
    "uint8": np.float32,
    "int16": np.float32,
    "uint16": np.float32,
    "float16": np.float32,
    "<f4": np.float32,
    ">f4": np.float32,
    "int32": np.float64,
    "uint32": np.float64,
    "int64": np.float64,
    "<f8": np.float64,
    ">f8": np.float64,
}


def draw(dtype, n=2000, d=7):
    """Numbers of a type, with the ends of its range."""
    rng, dtype = np.random.default_rng(0), np.dtype(dtype)
    if dtype.kind == "f":
        return rng.normal(size=(n, d)).astype(dtype)
    if dtype.kind == "b":
        return rng.random((n, d)) < 0.5
    ends = np.iinfo(dtype)
    values = rng.integers(-100, 100, (n, d)).astype(dtype)
    values[0], values[-1] = ends.min, ends.max
    return values


@pytest.mark.parametrize("memory", [1024, SMALL])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", READ_AS)
def test_numbers_of_any_type_are_read_exactly(tmp_path, dtype, order, memory):
    values = np.asarray(draw(dtype), order=order)
    np.save(tmp_path / "x.npy", values)
    with config_context(working_memory=memory):
        found = read_embeddings(tmp_path / "x.npy")
    assert found.dtype == READ_AS[dtype]
    assert found.dtype.isnative
    assert_array_equal(found, values)
    assert isinstance(found, np.memmap) == (memory == SMALL)


@pytest.mark.parametrize("memory", [1024, SMALL])
def test_a_number_that_is_missing_is_found_after_the_conversion(tmp_path, memory):
    values = draw("float16")
    values[1234, 5] = np.nan
    np.save(tmp_path / "x.npy", values)
    with config_context(working_memory=memory), pytest.raises(TableError, match="NaN in row 1234, column 5"):
        read_embeddings(tmp_path / "x.npy")


@pytest.mark.parametrize("dtype", ["float16", "int8", ">f4"])
def test_a_conversion_needs_no_more_memory_than_it_may(tmp_path, dtype):
    n, d = 60_000, 100
    np.save(tmp_path / "x.npy", draw(dtype, n, d))
    gc.collect()
    with config_context(working_memory=1):
        tracemalloc.start()
        try:
            found = read_embeddings(tmp_path / "x.npy")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert isinstance(found, np.memmap)
    # The whole takes 23 MiB in single precision.
    assert peak < 4 * 2**20


@pytest.mark.parametrize("part", [lambda X: X, lambda X: X[10:], lambda X: np.asarray(X)[:, 1:]])
@pytest.mark.parametrize("mode", ["c", "r+"])
def test_what_was_written_to_a_map_stays(tmp_path, mode, part):
    np.save(tmp_path / "x.npy", np.zeros((5000, 10)))
    X = np.load(tmp_path / "x.npy", mmap_mode=mode)
    X[:] = 7
    release_rows(part(X))
    assert (X == 7).all()


@pytest.mark.parametrize("part", [lambda X: X[10:], lambda X: X.T, lambda X: np.asarray(X)[::2, 1:]])
def test_views_of_a_map_that_is_only_read_give_memory_back(tmp_path, part):
    maps = Path("/proc/self/smaps")
    if not maps.exists():
        pytest.skip("memory by file is known on Linux only")
    np.save(tmp_path / "x.npy", np.ones((5000, 100)))

    def resident():
        return int(re.search(rf"{tmp_path}/x\.npy\n(?:.*\n)*?Rss:\s+(\d+) kB", maps.read_text())[1])

    X = np.load(tmp_path / "x.npy", mmap_mode="r")
    X.sum()
    assert resident() > 3000
    release_rows(part(X))
    assert resident() == 0
    assert X.sum() == 500_000


def test_what_is_no_map_is_left_alone():
    X = np.ones((3, 2))
    for each in (X, X[1:], [[1.0]], None):
        release_rows(each)
    assert (X == 1).all()
