import os

import numpy as np
import pytest
from dataset_helpers import assert_same_content, example
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import skpml.datasets
from skpml.datasets import PartialDataset, read_dataset, write_dataset

FORMATS = {
    "npz": (".npz", {}),
    "mat": (".mat", {}),
    "mulan": (".arff", {"style": "mulan"}),
    "meka": (".arff", {"style": "meka"}),
    "csv": (".csv", {}),
    "csv tags": (".csv", {"style": "tags"}),
    "parquet": (".parquet", {}),
    "parquet tags": (".parquet", {"style": "tags"}),
}
KEEP_SPARSE = ("npz", "mat", "mulan", "meka")


def round_trip(dataset, folder, kind):
    suffix, options = FORMATS[kind]
    path = folder / f"there{suffix}"
    write_dataset(dataset, path, overwrite=True, **options)
    # Tags do not say which order labels have, nor which nobody has.
    again = {"label_names": dataset.label_names} if "tags" in kind else {}
    return read_dataset(path, **again)


@pytest.mark.parametrize("truth", ["partly", "all", None])
@pytest.mark.parametrize("features", ["dense", "sparse", None])
@pytest.mark.parametrize("kind", FORMATS)
def test_comes_back_as_it_was(tmp_path, kind, features, truth):
    dataset = example(features=features, truth=truth)
    found = round_trip(dataset, tmp_path, kind)
    assert_same_content(found, dataset)
    if features == "sparse":
        assert found.statistics().sparse == (kind in KEEP_SPARSE)


@pytest.mark.parametrize("kind", FORMATS)
def test_as_many_rows_as_labels(tmp_path, kind):
    dataset = example(rows=4)
    assert_same_content(round_trip(dataset, tmp_path, kind), dataset)


@pytest.mark.parametrize("kind", FORMATS)
def test_rows_and_labels_nobody_has(tmp_path, kind):
    dataset = PartialDataset([[1.5], [0.0]], [[0, 0, 1], [0, 0, 0]], [[0, 0, 1], [0, 0, 0]], ("a", "b", "c"))
    assert_same_content(round_trip(dataset, tmp_path, kind), dataset, feature_names=False)


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_single_precision_is_kept(tmp_path, kind):
    dataset = PartialDataset(np.float32([[0.1], [0.7]]), [[1], [1]])
    assert round_trip(dataset, tmp_path, kind).X.dtype == np.float32


@pytest.mark.parametrize("kind", FORMATS)
def test_single_precision_keeps_its_value(tmp_path, kind):
    dataset = PartialDataset(np.float32([[0.1], [1 / 3]]), [[1], [1]])
    assert_same_content(round_trip(dataset, tmp_path, kind), dataset, feature_names=False)


@pytest.mark.parametrize("kind", ["npz", "mat"])
def test_name_and_description_are_kept(tmp_path, kind):
    found = round_trip(example(), tmp_path, kind)
    assert (found.name, found.description) == ("example", "made for tests")


@pytest.mark.parametrize(("kind", "name"), [("mulan", "example"), ("meka", "example"), ("csv", "there")])
def test_name_in_text_formats(tmp_path, kind, name):
    assert round_trip(example(), tmp_path, kind).name == name


def test_features_without_names_get_some(tmp_path):
    dataset = PartialDataset([[1.0, 2.0]], [[1]])
    assert round_trip(dataset, tmp_path, "npz").feature_names is None
    assert round_trip(dataset, tmp_path, "csv").feature_names == ("feature_0", "feature_1")


printable = st.text(st.characters(exclude_categories=("C", "Z")) | st.just(" "), min_size=1, max_size=6)
awkward = st.text(st.sampled_from("""'"\\%{},;: ?@λ-C1"""), min_size=1, max_size=6)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    names=st.lists(printable | awkward, min_size=5, max_size=5, unique=True),
    numbers=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=6, max_size=6),
)
@pytest.mark.parametrize("kind", ["npz", "mat", "mulan", "meka", "csv", "parquet"])
def test_any_names_and_numbers(tmp_path, kind, names, numbers):
    dataset = PartialDataset(
        np.reshape(numbers, (3, 2)),
        np.eye(3, dtype=int),
        np.diag([1, 0, 1]),
        names[:3],
        [f"#{n}" for n in names[3:]],
    )
    assert_same_content(round_trip(dataset, tmp_path, kind), dataset)


@pytest.mark.parametrize("kind", FORMATS)
def test_refuses_to_overwrite(tmp_path, kind):
    suffix, options = FORMATS[kind]
    path = tmp_path / f"there{suffix}"
    path.write_text("precious")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        write_dataset(example(), path, **options)
    assert path.read_text() == "precious"
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("kind", FORMATS)
def test_failed_writing_leaves_nothing(tmp_path, kind, monkeypatch):
    suffix, options = FORMATS[kind]
    path = tmp_path / f"there{suffix}"

    def full(*_):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="disk full"):
        write_dataset(example(), path, **options)
    assert os.listdir(tmp_path) == []


def test_functions_of_a_format_take_plain_names(tmp_path):
    for suffix in (".npz", ".mat", ".arff", ".csv", ".parquet"):
        name = suffix.removeprefix(".")
        path = str(tmp_path / f"x{suffix}")
        getattr(skpml.datasets, f"write_{name}", skpml.datasets.write_dataset)(example(), path)
        read = getattr(skpml.datasets, f"read_{name}", skpml.datasets.read_dataset)
        assert_same_content(read(path), example())


def test_folder_that_does_not_exist(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        write_dataset(example(), tmp_path / "no" / "x.npz")


def test_unknown_suffix(tmp_path):
    with pytest.raises(ValueError, match=r"unknown suffix '.xls'; known are .npz, .mat"):
        write_dataset(example(), tmp_path / "x.xls")
    with pytest.raises(ValueError, match="unknown suffix"):
        read_dataset(tmp_path / "x.xls")


def test_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        read_dataset(tmp_path / "x.csv")


@pytest.mark.parametrize(("suffix", "style"), [(".csv", "x"), (".parquet", "x"), (".arff", "x")])
def test_unknown_style(tmp_path, suffix, style):
    with pytest.raises(ValueError, match="style must be"):
        write_dataset(example(), tmp_path / f"x{suffix}", style=style)
    assert os.listdir(tmp_path) == []


def test_names_a_format_cannot_carry(tmp_path):
    X, Y = [[1.0]], [[1]]
    cases = [
        (PartialDataset(X, Y, None, ("a",), ("a",)), ".arff", {}, "found twice: a"),
        (PartialDataset(X, Y, None, ("a\nb",)), ".arff", {}, "control characters"),
        (PartialDataset(X, Y, None, ("a",), ("candidate:a",)), ".csv", {}, "found twice"),
        (
            PartialDataset(X, Y, None, ("a",), ("truth:b",)),
            ".parquet",
            {},
            "cannot be distinguished from labels",
        ),
        (PartialDataset(X, Y, None, ("a;b",)), ".csv", {"style": "tags"}, "cannot be tags: a;b"),
        (PartialDataset(X, Y, None, ("a\0",)), ".npz", {}, "NUL"),
    ]
    for dataset, suffix, options, message in cases:
        with pytest.raises(ValueError, match=message):
            write_dataset(dataset, tmp_path / f"x{suffix}", **options)
    assert os.listdir(tmp_path) == []
