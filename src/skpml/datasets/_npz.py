"""NumPy archives: dense or CSR features, true labels, candidate labels and names under fixed keys."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from skpml._docstrings import fill_docstring
from skpml._validation import EmptyPolicy
from skpml._writing import replacing
from skpml.datasets._partial_dataset import PartialDataset, build_dataset
from skpml.tables import TableError, check_unpacked_size, parsing, read_arrays

_SPARSE_KEYS = ("X_data", "X_indices", "X_indptr", "X_shape")


@fill_docstring
def read_npz(path: str | Path, *, on_empty: EmptyPolicy = "raise") -> PartialDataset:
    """Read a ``.npz`` file.

    Keys: ``X`` (dense), or ``X_data``, ``X_indices``, ``X_indptr``, ``X_shape`` (CSR), or neither for a set
    of labels only; ``Y_true`` and ``Y_candidate`` (at least one); ``label_names``, ``feature_names``,
    ``name`` and ``description`` where known. Pickled arrays are never loaded.

    Parameters
    ----------
    path : path-like
        File to read.
    %(on_empty_and_dataset)s
    """
    path = Path(path)
    arrays = read_arrays(path)
    if "Y_true" not in arrays and "Y_candidate" not in arrays:
        problem = f"neither Y_true nor Y_candidate among its keys ({', '.join(arrays) or 'none'})"
        raise TableError(problem, path=path)
    labels = {"candidates": arrays.get("Y_candidate"), "truth": arrays.get("Y_true")}
    names = {key: _names(path, arrays, key) for key in ("label_names", "feature_names")}
    texts = {key: str(arrays.get(key, "")) for key in ("name", "description")}
    return build_dataset(path, X=_features(path, arrays), on_empty=on_empty, **labels, **names, **texts)


def holds_labels(path: Path) -> bool:
    """Whether a file is a data set, judged by the names of its arrays."""
    with parsing(path, "npz"), zipfile.ZipFile(path) as archive:
        return not {"Y_true.npy", "Y_candidate.npy"}.isdisjoint(archive.namelist())


def _features(path: Path, arrays: dict[str, Any]) -> Any:
    if "X" in arrays:
        return arrays["X"]
    present = [key for key in _SPARSE_KEYS if key in arrays]
    if not present:
        return None
    if len(present) < len(_SPARSE_KEYS):
        missing = ", ".join(key for key in _SPARSE_KEYS if key not in arrays)
        raise TableError(f"sparse X lacks {missing}; it needs {', '.join(_SPARSE_KEYS)}", path=path)
    with parsing(path, "npz"):
        data, indices, indptr, shape = (arrays[key] for key in _SPARSE_KEYS)
        # A model keeps some numbers for every column, empty ones too.
        check_unpacked_size(path, 8 * int(shape[1]))
        matrix = sp.csr_array((data, indices, indptr), shape=(int(shape[0]), int(shape[1])))
        matrix.check_format(full_check=True)
        return matrix


def _names(path: Path, arrays: dict[str, Any], key: str) -> tuple[str, ...] | None:
    if key not in arrays:
        return None
    if arrays[key].ndim != 1:
        raise TableError(f"{key} must be a one-dimensional array of names", path=path)
    with parsing(path, "npz"):
        return tuple(str(name) for name in arrays[key])


def npz_shape(path: Path) -> tuple[int, int | None, int]:
    """Return (rows, features or None, labels) of a file without reading its matrices."""
    with parsing(path, "npz"), zipfile.ZipFile(path) as archive:
        members = {member.removesuffix(".npy") for member in archive.namelist()}
        n_rows, n_labels = _array_shape(archive, "Y_true" if "Y_true" in members else "Y_candidate")
        n_features = None
        if "X" in members:
            n_features = _array_shape(archive, "X")[1]
        elif "X_shape" in members:
            n_features = int(np.load(io.BytesIO(archive.read("X_shape.npy")), allow_pickle=False)[1])
        return n_rows, n_features, n_labels


def _array_shape(archive: zipfile.ZipFile, key: str) -> tuple[int, int]:
    with archive.open(f"{key}.npy") as member:
        version = np.lib.format.read_magic(member)
        read_header = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        rows, columns = read_header(member)[0]
        return rows, columns


@fill_docstring
def write_npz(dataset: PartialDataset, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a ``.npz`` file for `read_npz`; ``Y_candidate`` is left out if it equals ``Y_true``.

    Parameters
    ----------
    %(dataset_and_path)s
    %(overwrite)s
    """
    path = Path(path)
    arrays: dict[str, Any] = {}
    if dataset.truth is not None:
        arrays["Y_true"] = dataset.truth
    if dataset.truth is None or not np.array_equal(dataset.truth, dataset.candidates):
        arrays["Y_candidate"] = dataset.candidates
    if sp.issparse(dataset.X):
        arrays["X_data"], arrays["X_indices"] = dataset.X.data, dataset.X.indices
        arrays["X_indptr"], arrays["X_shape"] = dataset.X.indptr, np.array(dataset.X.shape)
    elif dataset.X is not None:
        arrays["X"] = dataset.X
    # An array of fixed-width text drops trailing NULs, so names that end in one cannot be kept.
    for key in ("label_names", "feature_names"):
        if (names := getattr(dataset, key)) is not None:
            if any(name.endswith("\0") for name in names):
                raise ValueError(f"{key} that end in a NUL character cannot be written to npz")
            arrays[key] = np.array(names, dtype=str)
    arrays |= {key: np.array(text) for key in ("name", "description") if (text := getattr(dataset, key))}
    with replacing(path, overwrite=overwrite) as (temporary,), temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)
