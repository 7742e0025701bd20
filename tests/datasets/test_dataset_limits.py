"""Files that claim more than they hold are refused before memory is taken, and wide ones are read in linear time."""

import csv
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from skpml.datasets import read_dataset
from skpml.tables import Columns, TableError, read_table


@pytest.fixture
def low_limit(monkeypatch):
    """Refuse what unpacks into 100,000 bytes and 100 times its size, to test the limit without gigabytes."""
    monkeypatch.setattr("skpml.tables._errors._UNPACKED_AT_LEAST", 100_000)


LABELS = np.tile([[1, 0], [0, 1]], (1000, 1))


@pytest.mark.parametrize("variable", ["data", "target"])
@pytest.mark.parametrize("index", [2_000_000_000, -1, 20])
def test_a_sparse_matrix_that_points_outside_is_refused(tmp_path, variable, index):
    variables = {
        "data": sp.random(20, 5, 0.5, format="csc", random_state=0),
        "target": sp.csc_matrix(LABELS[:20].astype(float)),
    }
    variables[variable].indices[0] = index
    scipy.io.savemat(tmp_path / "file.mat", variables)
    with pytest.raises(TableError, match=f"variable '{variable}'") as caught:
        read_dataset(tmp_path / "file.mat")
    assert caught.value.path == tmp_path / "file.mat"


def write_npz(path):
    np.savez_compressed(path, X=np.zeros((2000, 500)), Y_true=LABELS)


def write_sparse_npz(path):
    arrays = {"X_data": np.zeros(0), "X_indices": np.zeros(0, int), "X_indptr": np.zeros(3, int)}
    np.savez_compressed(path, **arrays, X_shape=[2, 10**6], Y_true=LABELS[:2])


def write_mat(path):
    variables = {"data": np.zeros((2000, 500)), "target": LABELS.astype(float)}
    scipy.io.savemat(path, variables, do_compression=True)


def write_parquet(path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"f": np.zeros(200_000), "candidate:a": np.zeros(200_000, np.int8)}
    parquet.write_table(pa.table(columns), path)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("dense.npz", write_npz),
        ("sparse.npz", write_sparse_npz),
        ("file.mat", write_mat),
        ("file.parquet", write_parquet),
    ],
)
def test_a_small_file_cannot_take_much_memory(tmp_path, low_limit, name, write):
    path = tmp_path / name
    write(path)
    with pytest.raises(TableError, match="unpacked") as caught:
        read_dataset(path, on_empty="ignore")
    assert caught.value.path == path
    assert caught.value.value > 100 * path.stat().st_size


def test_without_compression_the_same_file_is_read(tmp_path, low_limit):
    np.savez(tmp_path / "plain.npz", X=np.zeros((2000, 500)), Y_true=LABELS)
    assert read_dataset(tmp_path / "plain.npz").X.shape == (2000, 500)


def test_captions_are_not_taken_for_tags(tmp_path):
    path = tmp_path / "captions.csv"
    path.write_text("x,tags\n" + "".join(f"{row},this is caption {row}\n" for row in range(1500)))
    with pytest.raises(TableError, match="different tags") as caught:
        read_table(path)
    assert (caught.value.column, caught.value.value) == ("tags", 1500)


def test_many_columns_are_read_in_linear_time(tmp_path):
    # A search of all columns for each of them takes minutes here.
    names = [f"f{column}" for column in range(40_000)]
    ones = ",".join("1" for _ in names)
    path, arff = tmp_path / "wide.csv", tmp_path / "wide.arff"
    path.write_text(",".join(names) + f",tags\n{ones},a;b\n{ones},a\n")
    attributes = "".join(f"@attribute {name} numeric\n" for name in names)
    arff.write_text(f"@relation x\n{attributes}@attribute a {{0,1}}\n@data\n{ones},1\n{ones},0\n")
    start = time.process_time()
    for columns, options in (
        (Columns(features=names), {"labeled": False}),
        (Columns(features=names), {}),
        (Columns(labels=names, features=()), {}),
        (Columns(), {}),
    ):
        read_table(path, columns=columns, **options)
    pytest.importorskip("arff")
    read_dataset(arff, label_attributes=["a"], on_empty="ignore")
    assert time.process_time() - start < 15


def test_names_beyond_unicode_are_damage(tmp_path):
    names = np.array([ord("a"), 0x110001], dtype=np.uint32).view("U1")
    np.savez(tmp_path / "odd.npz", X=np.eye(4), Y_true=LABELS[:4], label_names=names)
    with pytest.raises(TableError) as caught:
        read_dataset(tmp_path / "odd.npz")
    assert caught.value.path == tmp_path / "odd.npz"


def test_an_encoding_that_does_not_exist_is_named_with_its_file(tmp_path):
    pytest.importorskip("arff")
    path, xml = tmp_path / "file.arff", tmp_path / "file.xml"
    path.write_text("@relation r\n@attribute f numeric\n@attribute c {0,1}\n@data\n1,1\n2,0\n")
    with pytest.raises(TableError) as caught:
        read_dataset(path, encoding="utf-9", label_attributes=["c"])
    assert (caught.value.path, caught.value.argument) == (path, "encoding")
    xml.write_text('<?xml version="1.0" encoding="utf-9"?><labels><label name="c"></label></labels>')
    with pytest.raises(TableError) as caught:
        read_dataset(path)
    assert caught.value.path == xml


def test_objects_are_not_called_damage(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([[1, "a"]], dtype=object))
    with pytest.raises(TableError, match="Python objects"):
        read_table(tmp_path / "objects.npy", labeled=False)


def test_threads_leave_the_limit_of_csv_as_it_was(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text("x,text,tags\n" + "".join(f"{row},{'word ' * 30_000},a\n" for row in range(30)))
    usual, interval = csv.field_size_limit(), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            tables = list(pool.map(lambda _: read_table(path, columns=Columns(ignore=["text"])), range(4)))
    finally:
        sys.setswitchinterval(interval)
    assert all(len(table.candidates) == 30 for table in tables)
    assert csv.field_size_limit() == usual
