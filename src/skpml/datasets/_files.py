"""Reading and writing data sets, by the suffix of the file's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from skpml.datasets._formats.arff_reading import read_arff
from skpml.datasets._formats.arff_writing import write_arff
from skpml.datasets._formats.matlab import read_mat, write_mat
from skpml.datasets._formats.npz import read_npz, write_npz
from skpml.datasets._partial_dataset import PartialDataset
from skpml.tables._csv_files import read_csv, write_csv
from skpml.tables._parquet_files import read_parquet, write_parquet

READERS: dict[str, Callable[..., PartialDataset]] = {
    ".npz": read_npz,
    ".mat": read_mat,
    ".arff": read_arff,
    ".csv": read_csv,
    ".parquet": read_parquet,
}
WRITERS: dict[str, Callable[..., None]] = {
    ".npz": write_npz,
    ".mat": write_mat,
    ".arff": write_arff,
    ".csv": write_csv,
    ".parquet": write_parquet,
}


def read_dataset(path: str | Path, **options: Any) -> PartialDataset:
    """Read a data set from a file.

    Parameters
    ----------
    path : path-like
        A ``.npz``, ``.mat``, ``.arff`` (Mulan or MEKA), ``.csv`` or ``.parquet`` file.
    **options
        Options of the format: see `skpml.datasets.read_npz`, `read_mat`, `read_arff`, `read_csv` and
        `read_parquet`. All take ``empty_rows`` and ``empty_labels``.

    Returns
    -------
    PartialDataset

    Raises
    ------
    DatasetFormatError
        If the file is damaged, cut short or laid out in another way; it names the file, and the line where
        known.
    FileNotFoundError
        If there is no such file.
    """
    source = Path(path)
    reader = _by_suffix(READERS, source)
    if not source.is_file():
        raise FileNotFoundError(f"there is no file {source}")
    return reader(source, **options)


def write_dataset(
    dataset: PartialDataset, path: str | Path, *, overwrite: bool = False, **options: Any
) -> None:
    """Write a data set to a file: whole, or not at all.

    Parameters
    ----------
    dataset : PartialDataset
        What to write.
    path : path-like
        A name ending in ``.npz``, ``.mat``, ``.arff``, ``.csv`` or ``.parquet``.
    overwrite : bool, default=False
        Replace a file that exists.
    **options
        ``style="mulan"`` or ``"meka"`` for ARFF; ``style="flags"`` or ``"tags"`` and ``separator``
        for CSV and Parquet.

    Raises
    ------
    FileExistsError
        If the file exists and `overwrite` is False.
    """
    target = Path(path)
    _by_suffix(WRITERS, target)(dataset, target, overwrite=overwrite, **options)


def _by_suffix(table: dict[str, Any], path: Path) -> Any:
    try:
        return table[path.suffix.lower()]
    except KeyError:
        raise ValueError(f"{path}: unknown suffix {path.suffix!r}; known are {', '.join(table)}") from None
