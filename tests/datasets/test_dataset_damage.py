"""Damaged files of every format give a TableError that names the file, never another error."""

import numpy as np
import pytest
from dataset_helpers import assert_same_content, example

from skpml.datasets import read_dataset, write_dataset
from skpml.tables import TableError

FORMATS = {
    "npz": (".npz", {}),
    "mat": (".mat", {}),
    "mulan": (".arff", {"style": "mulan"}),
    "meka": (".arff", {"style": "meka"}),
    "csv": (".csv", {}),
    "parquet": (".parquet", {}),
}
BINARY = ("npz", "mat", "parquet")


def written(folder, kind, dataset):
    suffix, options = FORMATS[kind]
    path = folder / f"file{suffix}"
    write_dataset(dataset, path, **options)
    return path


@pytest.mark.parametrize("features", ["dense", "sparse"])
@pytest.mark.parametrize("kind", FORMATS)
def test_cut_short_anywhere(tmp_path, kind, features):
    dataset = example(rows=12, features=features)
    path = written(tmp_path, kind, dataset)
    whole = path.read_bytes()
    step = max(1, len(whole) // 150)
    for length in [*range(0, len(whole) - 1, step), len(whole) - 2]:
        path.write_bytes(whole[:length])
        # A line is the least that a CSV can lose unnoticed: nothing in it says how many there are.
        if kind == "csv" and whole[:length].count(b"\n") and whole[length - 1 : length + 1].count(b"\n"):
            continue
        with pytest.raises(TableError, match=r"file\.") as caught:
            read_dataset(path)
        assert caught.value.path == path


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"\0" * 300,
        bytes(range(256)) * 3,
        b"hello\n",
        b"PK\x03\x04" + b"x" * 100,
        b"PAR1" + b"x" * 40 + b"PAR1",
        b"{",
    ],
)
def test_garbage(tmp_path, kind, garbage):
    path = tmp_path / f"file{FORMATS[kind][0]}"
    path.write_bytes(garbage)
    with pytest.raises(TableError, match=r"file\."):
        read_dataset(path)


@pytest.mark.parametrize("kind", FORMATS)
def test_overwritten_bytes_never_escape_as_another_error(tmp_path, kind):
    dataset = example(rows=12)
    path = written(tmp_path, kind, dataset)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for start in range(0, len(whole), max(1, len(whole) // 80)):
        damaged = bytearray(whole)
        damaged[start : start + 6] = rng.bytes(6)
        path.write_bytes(bytes(damaged))
        try:
            found = read_dataset(path)
        except TableError:
            continue
        if kind in BINARY:
            # Binary formats carry checksums: what passes is unharmed, but for names of variables and padding.
            assert found.candidates.shape == dataset.candidates.shape
            np.testing.assert_array_equal(found.candidates, dataset.candidates)
            np.testing.assert_array_equal(found.X, dataset.X)


def test_damaged_mulan_xml(tmp_path):
    path = written(tmp_path, "mulan", example())
    xml = path.with_suffix(".xml")
    whole = xml.read_bytes()
    for length in range(0, len(whole) - 2, 7):
        xml.write_bytes(whole[:length])
        with pytest.raises(TableError, match=r"file\.xml"):
            read_dataset(path)
    xml.write_bytes(b"\xff\xfe\x00garbage")
    with pytest.raises(TableError, match=r"file\.xml, line 1"):
        read_dataset(path)


def test_damaged_arff_companion(tmp_path):
    path = written(tmp_path, "meka", example())
    beside = tmp_path / "file.candidates.arff"
    whole = beside.read_bytes()
    beside.write_bytes(whole[:-8])
    with pytest.raises(TableError, match=r"file\.candidates\.arff"):
        read_dataset(path)
    beside.write_bytes(whole.replace(b"'sea'", b"'lake'"))
    with pytest.raises(TableError, match=r"not those of file\.arff"):
        read_dataset(path)
    beside.unlink()
    with pytest.raises(TableError, match=r"its candidate labels are in file\.candidates\.arff"):
        read_dataset(path)
    beside.write_bytes(whole)
    assert_same_content(read_dataset(path), example())


def npz(path, **arrays):
    np.savez(path, **arrays)
    return path


Y = np.eye(2, dtype=np.uint8)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.eye(2)}, r"neither Y_true nor Y_candidate among its keys \(X\)"),
        ({"Y_true": Y, "X_data": np.ones(2)}, "sparse X lacks X_indices, X_indptr, X_shape"),
        (
            {"Y_true": Y, "X_data": [1.0], "X_indices": [9], "X_indptr": [0, 1, 1], "X_shape": [2, 2]},
            "not a readable npz file",
        ),
        ({"Y_true": Y, "X": np.array([{}, {}])}, "holds Python objects"),
        ({"Y_true": Y, "X": np.array([[1.0], [np.nan]])}, "X contains NaN in row 1, column 0"),
        ({"Y_true": Y, "Y_candidate": 1 - Y}, "every true label must be a candidate: row 0"),
        ({"Y_true": Y, "label_names": np.array([["a", "b"]])}, "label_names must be a one-dimensional array"),
        ({"Y_true": Y, "label_names": np.array(["a"])}, "label_names has 1 names for 2 columns"),
        ({"Y_candidate": 0 * Y}, "no candidate label"),
    ],
)
def test_npz_of_another_layout(tmp_path, arrays, message):
    path = npz(tmp_path / "file.npz", **arrays)
    with pytest.raises(TableError, match=message) as caught:
        read_dataset(path)
    assert str(path) in str(caught.value)


def test_npz_with_empty_rows_by_leave(tmp_path):
    path = npz(tmp_path / "file.npz", Y_candidate=np.array([[1, 1], [0, 0]]))
    with pytest.warns(UserWarning, match="row 1"):
        assert read_dataset(path, on_empty="warn").candidates.tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize(("suffix", "missing"), [(".arff", "arff"), (".parquet", "pyarrow")])
def test_missing_extra_says_what_to_install(tmp_path, monkeypatch, suffix, missing):
    path = tmp_path / f"file{suffix}"
    write_dataset(example(), path)
    monkeypatch.setitem(__import__("sys").modules, missing, None)
    monkeypatch.delitem(__import__("sys").modules, f"{missing}.parquet", raising=False)
    with pytest.raises(ImportError, match=r"pip install scikit-pml\[files\]"):
        read_dataset(path)
