"""The benchmark archive itself: set SKPML_DATA to its folder."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from dataset_helpers import assert_same_content

from skpml.datasets import REGISTRY, list_datasets, load_dataset, read_dataset, write_dataset

FOLDER = Path(os.environ.get("SKPML_DATA", "/nonexistent"))
README = FOLDER / "README.md"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not README.is_file(), reason="SKPML_DATA does not name the benchmark archive's folder"
    ),
]


def published():
    """Rows of the archive's own table: name, n, d, c, true labels, candidates, storage, rows without label."""
    lines = README.read_text(encoding="utf-8").splitlines() if README.is_file() else []
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if re.match(r"\| \w+ \| \d", line)
    ]
    return {row[0]: row for row in cells}


@pytest.mark.parametrize("name", published())
def test_figures_are_those_of_the_table(name):
    _, n, d, c, true, candidates, storage, empty, *_, sha = published()[name]
    found = load_dataset(name, verify=True).statistics()
    assert found.n_rows == int(n)
    assert found.n_features == (None if d == "absent" else int(d))
    assert found.n_labels == int(c)
    assert found.cardinality == pytest.approx(float(true), abs=5e-5)
    assert found.candidates_per_row == pytest.approx(float(candidates or true), abs=5e-5)
    assert found.sparse == storage.startswith("CSR")
    assert found.rows_without_true_label == int(empty)
    assert REGISTRY[name].file_sha256 == sha.strip("`")
    facts = REGISTRY[name]
    assert (facts.n_rows, facts.n_features, facts.n_labels) == (
        found.n_rows,
        found.n_features,
        found.n_labels,
    )
    assert facts.cardinality == pytest.approx(found.cardinality, abs=5e-5)
    assert facts.real_candidates == bool(candidates)


def test_the_list_knows_every_file():
    listed = {entry.name for entry in list_datasets() if entry.present}
    assert listed == set(published()) | {"digits"}


@pytest.mark.parametrize(
    "configuration", ["emotions-3", "birds-4", "image-2", "scene-5", "yeast-9", "health-7"]
)
def test_configurations(configuration):
    name, _, k = configuration.partition("-")
    clean, noisy = load_dataset(name), load_dataset(configuration)
    expected = np.maximum(clean.truth.sum(axis=1), min(int(k), clean.truth.shape[1]))
    np.testing.assert_array_equal(noisy.candidates.sum(axis=1), expected)
    np.testing.assert_array_equal(noisy.truth, clean.truth)


@pytest.mark.parametrize("suffix", [".mat", ".arff", ".csv", ".parquet"])
@pytest.mark.parametrize("name", ["emotions-4", "genbase-5", "mirflickr_labels"])
def test_round_trips(tmp_path, name, suffix):
    dataset = load_dataset(name)
    write_dataset(dataset, tmp_path / f"set{suffix}")
    assert_same_content(read_dataset(tmp_path / f"set{suffix}"), dataset)
