import hashlib
import os

import numpy as np
import pytest
from dataset_helpers import assert_same_content, example

from skpml.datasets import (
    REGISTRY,
    DatasetFacts,
    data_home,
    list_datasets,
    load_dataset,
    write_dataset,
)
from skpml.datasets._loading import content_checksum, record_checksum
from skpml.noise import instance_dependent, label_dependent, top_up
from skpml.tables import TableError


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("SKPML_DATA", str(tmp_path))
    return tmp_path


def test_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("SKPML_DATA", str(tmp_path))
    assert data_home() == tmp_path
    assert data_home("elsewhere") == data_home(os.path.join(".", "elsewhere"))
    monkeypatch.delenv("SKPML_DATA")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr("sys.platform", "linux")
    assert data_home() == tmp_path / "xdg" / "skpml"
    monkeypatch.delenv("XDG_DATA_HOME")
    assert data_home() == tmp_path / ".local" / "share" / "skpml"
    monkeypatch.setattr("sys.platform", "darwin")
    assert data_home() == tmp_path / "Library" / "Application Support" / "skpml"


def test_true_labels_are_the_candidates_until_noise_is_asked_for(home):
    dataset = example(truth="all")
    write_dataset(dataset, home / "mine.npz")
    assert_same_content(load_dataset("mine"), dataset)
    assert_same_content(load_dataset("mine", candidates=0), dataset)
    noisy = load_dataset("mine", candidates=4, random_state=3)
    np.testing.assert_array_equal(noisy.truth, dataset.truth)
    np.testing.assert_array_equal(noisy.candidates, top_up(dataset.truth, 4, random_state=3))


def test_configurations_by_name(home):
    write_dataset(example(truth="all"), home / "mine.npz")
    write_dataset(example(truth="all", rows=5), home / "mine-2.npz")
    np.testing.assert_array_equal(
        load_dataset("mine-3").candidates, load_dataset("mine", candidates=3).candidates
    )
    assert len(load_dataset("mine-2").candidates) == 5, "a file of that very name comes first"
    assert load_dataset("mine-3", candidates=3).statistics().candidates_per_row >= 3
    with pytest.raises(ValueError, match="'mine-3' asks for 3 candidates, and candidates=4 for others"):
        load_dataset("mine-3", candidates=4)


def test_three_noises_differ_in_which_labels_are_false():
    uniform, label, instance = (load_dataset(f"digits-6{end}") for end in ("", "-label", "-instance"))
    X, truth = uniform.X, uniform.truth
    for dataset in (label, instance):
        np.testing.assert_array_equal(dataset.X, X)
        np.testing.assert_array_equal(dataset.truth, truth)
        np.testing.assert_array_equal(dataset.candidates.sum(axis=1), uniform.candidates.sum(axis=1))
    for one, other in ((uniform, label), (uniform, instance), (label, instance)):
        assert (one.candidates != other.candidates).any(axis=1).mean() > 0.5
    np.testing.assert_array_equal(uniform.candidates, top_up(truth, 6, random_state=0))
    np.testing.assert_array_equal(label.candidates, label_dependent(truth, 6, random_state=0))
    np.testing.assert_array_equal(instance.candidates, instance_dependent(X, truth, 6, random_state=0))


def test_noise_by_argument_and_by_name(home):
    write_dataset(example(truth="all"), home / "mine.npz")
    write_dataset(example(truth="all", rows=5), home / "mine-2-label.npz")
    for noise in ("label", "instance"):
        by_argument = load_dataset("mine", candidates=3, noise=noise, random_state=4)
        np.testing.assert_array_equal(
            load_dataset(f"mine-3-{noise}", random_state=4).candidates, by_argument.candidates
        )
        assert_same_content(load_dataset("mine", candidates=0, noise=noise), load_dataset("mine"))
    assert_same_content(load_dataset("mine-3", noise="uniform"), load_dataset("mine-3"))
    assert_same_content(load_dataset("digits", noise="label"), load_dataset("digits-6-label"))
    assert len(load_dataset("mine-2-label").candidates) == 5, "a file of that very name comes first"
    with pytest.raises(
        ValueError, match="'mine-3-label' asks for label noise, and noise='instance' for another"
    ):
        load_dataset("mine-3-label", noise="instance")
    with pytest.raises(ValueError, match="'mine-3' asks for uniform noise, and noise='label' for another"):
        load_dataset("mine-3", noise="label")
    with pytest.raises(ValueError, match="noise must be one of 'uniform', 'label', 'instance', got 'other'"):
        load_dataset("mine", candidates=3, noise="other")
    with pytest.raises(ValueError, match="noise='label' needs the number of candidates per row"):
        load_dataset("mine", noise="label")
    with pytest.raises(LookupError, match="there is no data set 'mine-3-other'"):
        load_dataset("mine-3-other")


def test_instance_noise_needs_features(home):
    write_dataset(example(features=None, truth="all"), home / "bare.npz")
    assert load_dataset("bare-3-label").truth is not None
    with pytest.raises(ValueError, match="has labels only: noise='instance' needs features"):
        load_dataset("bare-3-instance")


@pytest.mark.parametrize("truth", ["partly", None])
def test_real_candidates_are_not_drowned_in_noise(home, truth):
    write_dataset(example(truth=truth), home / "mine.npz")
    assert_same_content(load_dataset("mine"), example(truth=truth))
    with pytest.raises(ValueError, match="has its own candidate labels"):
        load_dataset("mine", candidates=3)


def test_absent_sets_say_what_to_do(home, tmp_path):
    with pytest.raises(
        LookupError, match=r"download it by skpml\.datasets\.fetch_dataset\('emotions'\)"
    ) as caught:
        load_dataset("emotions-3")
    assert str(home) in str(caught.value)
    with pytest.raises(
        LookupError, match=r"'mirflickr' is not in .*: put mirflickr.npz there\. Did you mean 'mirf"
    ):
        load_dataset("mirflickr")
    with pytest.raises(LookupError, match=r"there is no data set 'emotoins' in .* Did you mean 'emotions'"):
        load_dataset("emotoins", data_home=tmp_path / "nowhere")


def test_list(home):
    write_dataset(example(), home / "mine.npz")
    write_dataset(example(features="sparse"), home / "thin.npz")
    write_dataset(example(features=None, truth=None), home / "bare.npz")
    (home / "broken.npz").write_bytes(b"no")
    write_dataset(example(), home / "scene.npz")
    write_dataset(example(), home / "digits.npz")
    entries = {entry.name: entry for entry in list_datasets()}
    assert [entry.name for entry in list_datasets()] == sorted(entries), "by name, each once"
    assert set(REGISTRY) <= set(entries)
    assert {name for name, entry in entries.items() if entry.present} == {
        "bare",
        "digits",
        "mine",
        "scene",
        "thin",
    }
    for name, n_features in (("mine", 3), ("thin", 3), ("bare", None)):
        assert (entries[name].n_rows, entries[name].n_features, entries[name].n_labels) == (7, n_features, 4)
    assert entries["emotions"].n_rows == 593
    assert not entries["emotions"].real_candidates
    assert entries["yeastbp"].real_candidates
    assert not any(entry.present and entry.name != "digits" for entry in list_datasets(data_home=home / "no"))


def test_verify_by_registered_file_checksum(home, monkeypatch):
    path = home / "mine.npz"
    write_dataset(example(), path)
    sha = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setitem(REGISTRY, "mine", DatasetFacts("mine", None, None, None, None, file_sha256=sha))
    load_dataset("mine", verify=True)
    write_dataset(example(seed=1), path, overwrite=True)
    load_dataset("mine")
    with pytest.raises(TableError, match="checksum is not the expected one"):
        load_dataset("mine", verify=True)


def test_verify_by_recorded_content_checksum(home):
    path = home / "mine.npz"
    write_dataset(example(), path)
    with pytest.raises(ValueError, match="no checksum is known of 'mine'"):
        load_dataset("mine", verify=True)
    record_checksum(path, content_checksum(example()))
    load_dataset("mine", verify=True)
    record_checksum(path, content_checksum(example(seed=1)))
    with pytest.raises(TableError, match="checksum is not the expected one"):
        load_dataset("mine", verify=True)


def test_content_checksum_sees_content_and_nothing_else():
    base = example(features="sparse")
    checksum = content_checksum(base)
    dense = type(base)(base.X.toarray(), base.candidates, base.truth)
    assert content_checksum(dense) == checksum
    others = [
        type(base)(base.X * 2, base.candidates, base.truth),
        type(base)(None, base.candidates, base.truth),
        type(base)(base.X, base.candidates),
        type(base)(base.X, base.truth, base.truth),
        base.subset(slice(None, None, -1)),
    ]
    assert len({checksum, *map(content_checksum, others)}) == 6


def test_content_checksum_is_what_its_description_says():
    dataset = type(example())([[0.0, 2.5], [1.0, 0.0]], [[1, 1], [0, 1]], [[1, 0], [0, 1]])
    ints = b"".join(int(i).to_bytes(8, "little") for i in (0, 1, 2, 1, 0))
    floats = np.array([2.5, 1.0], dtype="<f8").tobytes()
    expected = b"skpml-content-1 2 2 2\n" + ints + floats + bytes([1, 1, 0, 1]) + b"1" + bytes([1, 0, 0, 1])
    assert content_checksum(dataset) == hashlib.sha256(expected).hexdigest()
