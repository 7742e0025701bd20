"""A checksum of what a data set holds, whatever file it came from."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from skpml._writing import replacing
from skpml.datasets._partial_dataset import PartialDataset


def content_checksum(dataset: PartialDataset) -> str:
    """Return the SHA-256 of features, candidates and truth, as hexadecimal digits.

    Hashed are, in this order: the line ``skpml-content-1 ROWS FEATURES LABELS`` and a line feed (FEATURES is
    ``-`` without X); the entries of X that are not zero in CSR form, row pointers and column indices as
    64-bit integers, values as 64-bit floats, all little-endian; the candidates, one byte a cell, row by row;
    ``1`` and the truth in the same way, or ``0`` where it is unknown. Names are not hashed, nor whether X is
    stored sparse.
    """
    n_rows, n_labels = dataset.candidates.shape
    digest = hashlib.sha256()
    n_features = "-" if dataset.X is None else str(dataset.X.shape[1])
    digest.update(f"skpml-content-1 {n_rows} {n_features} {n_labels}\n".encode())
    if dataset.X is not None:
        X = sp.csr_array(dataset.X)
        X.eliminate_zeros()
        X.sort_indices()
        for part, kind in ((X.indptr, "<i8"), (X.indices, "<i8"), (X.data, "<f8")):
            digest.update(np.ascontiguousarray(part.astype(kind)).tobytes())
    digest.update(dataset.candidates.tobytes())
    digest.update(b"0" if dataset.truth is None else b"1" + dataset.truth.tobytes())
    return digest.hexdigest()


def _record_path(path: Path) -> Path:
    return path.with_name(f"{path.stem}.content-sha256")


def recorded_checksum(path: Path) -> str | None:
    """Return the content checksum recorded beside a data file at its first download, if there is one."""
    record = _record_path(path)
    return record.read_text(encoding="ascii", errors="replace").strip() if record.is_file() else None


def record_checksum(path: Path, checksum: str) -> None:
    """Record the content checksum of a data file beside it."""
    with replacing(_record_path(path), overwrite=True) as (temporary,):
        temporary.write_text(checksum + "\n", encoding="ascii")
