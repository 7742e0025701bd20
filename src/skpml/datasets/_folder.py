"""The data folder: where it is, and what is in it."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from skpml.datasets._digits import DIGITS
from skpml.datasets._errors import DatasetFormatError
from skpml.datasets._formats.npz import npz_shape
from skpml.datasets._registry import REGISTRY, DatasetFacts

ENVIRONMENT_VARIABLE = "SKPML_DATA"


def data_home(path: str | Path | None = None) -> Path:
    """Return the data folder; it need not exist.

    Parameters
    ----------
    path : path-like, optional
        The folder, if not the usual one: that of the environment variable ``SKPML_DATA`` where it is set,
        else ``skpml`` in the user's data folder (``~/.local/share`` or ``$XDG_DATA_HOME`` on Linux,
        ``~/Library/Application Support`` on macOS, ``%LOCALAPPDATA%`` on Windows).
    """
    if path is not None:
        return Path(path).expanduser()
    if chosen := os.environ.get(ENVIRONMENT_VARIABLE):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "skpml"
    variable, usual = (
        ("LOCALAPPDATA", "AppData/Local") if os.name == "nt" else ("XDG_DATA_HOME", ".local/share")
    )
    base = os.environ.get(variable)
    return (Path(base) if base else Path.home() / usual) / "skpml"


@dataclass(frozen=True)
class DatasetEntry:
    """One line of `list_datasets`; sizes are None where they are unknown.

    Attributes
    ----------
    name : str
        What `load_dataset` takes.
    present : bool
        Whether it can be loaded now.
    n_rows, n_features, n_labels : int or None
        Size; `n_features` is also None for a set of labels only.
    cardinality : float or None
        Mean number of true labels a row, for registered sets.
    real_candidates : bool or None
        Whether it comes with candidate labels; None if unknown.
    openml_id : int or None
        Number at OpenML: `fetch_dataset` can download it.
    """

    name: str
    present: bool
    n_rows: int | None
    n_features: int | None
    n_labels: int | None
    cardinality: float | None
    real_candidates: bool | None
    openml_id: int | None


def list_datasets(*, data_home: str | Path | None = None) -> list[DatasetEntry]:
    """List the registered data sets, present or absent, and any other ``.npz`` of the folder, by name."""
    files = present_files(data_home)
    entries = [_registered(facts, present=facts.name in files) for facts in (DIGITS, *REGISTRY.values())]
    entries += [_found(name, path) for name, path in files.items() if name not in {DIGITS.name, *REGISTRY}]
    return sorted(entries, key=lambda entry: entry.name)


def present_files(path: str | Path | None = None) -> dict[str, Path]:
    """Return the ``.npz`` files of the data folder by the name of the set."""
    home = data_home(path)
    return {file.stem: file for file in sorted(home.glob("*.npz"))} if home.is_dir() else {}


def _registered(facts: DatasetFacts, *, present: bool) -> DatasetEntry:
    return DatasetEntry(
        facts.name,
        present or facts is DIGITS,
        facts.n_rows,
        facts.n_features,
        facts.n_labels,
        facts.cardinality,
        facts.real_candidates,
        facts.openml_id,
    )


def _found(name: str, path: Path) -> DatasetEntry:
    try:
        n_rows, n_features, n_labels = npz_shape(path)
    except DatasetFormatError:
        return DatasetEntry(name, False, None, None, None, None, None, None)
    return DatasetEntry(name, True, n_rows, n_features, n_labels, None, None, None)
