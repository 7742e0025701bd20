"""Loading data sets by name, from the data folder."""

from __future__ import annotations

import difflib
import hashlib
import re
from pathlib import Path
from typing import Any

import numpy as np

from skpml.datasets._checksum import content_checksum, recorded_checksum
from skpml.datasets._digits import DIGITS, load_digits_attributes
from skpml.datasets._errors import DatasetFormatError
from skpml.datasets._folder import ENVIRONMENT_VARIABLE, data_home, present_files
from skpml.datasets._formats.npz import read_npz
from skpml.datasets._partial_dataset import PartialDataset
from skpml.datasets._registry import REGISTRY

_CONFIGURATION = re.compile(r"(?P<name>.+)-(?P<candidates>\d+)")


def load_dataset(
    name: str,
    *,
    candidates: int | None = None,
    random_state: Any = 0,
    data_home: str | Path | None = None,
    verify: bool = False,
) -> PartialDataset:
    """Load a data set from the data folder. Never uses the network.

    Parameters
    ----------
    name : str
        Name of a set, as `list_datasets` gives it. ``"emotions-3"`` is short for ``candidates=3``.
    candidates : int, optional
        Fill each row up with random false labels to this many candidates (`skpml.noise.top_up`); 0 adds none.
        Only for sets without candidate labels of their own. By default the candidates are those of the set:
        real ones where it has them, else the true labels.
    random_state : int, RandomState, Generator or None, default=0
        Source of the false labels.
    data_home : path-like, optional
        The data folder; see `skpml.datasets.data_home`.
    verify : bool, default=False
        Check the file against the registered or recorded checksum first.

    Returns
    -------
    PartialDataset

    Raises
    ------
    LookupError
        If there is no such set in the folder.
    DatasetFormatError
        If the file is damaged, or `verify` finds another checksum.
    """
    files = present_files(data_home)
    if name not in files and (match := _CONFIGURATION.fullmatch(name)):
        asked = int(match["candidates"])
        if candidates is not None and candidates != asked:
            raise ValueError(f"{name!r} asks for {asked} candidates, and candidates={candidates} for others")
        name, candidates = match["name"], asked
    if name == DIGITS.name and name not in files:
        if candidates is None:
            return load_digits_attributes(random_state=random_state)
        return load_digits_attributes(candidates=candidates, random_state=random_state)
    if name not in files:
        raise LookupError(_absent(name, data_home, files))
    if verify:
        _verify(name, files[name])
    # A stranger's file may have empty candidate sets; whoever loads it by name has seen them or will be told.
    dataset = read_npz(files[name], empty_rows="warn", empty_labels="warn")
    return dataset if candidates is None else add_candidates(dataset, candidates, random_state)


def add_candidates(dataset: PartialDataset, candidates: int, random_state: Any) -> PartialDataset:
    """Return the data set with each row filled up to a number of candidates.

    Raises
    ------
    ValueError
        If the truth is unknown, or the set has false candidates already.
    """
    from skpml.noise import top_up

    if dataset.truth is None or not np.array_equal(dataset.truth, dataset.candidates):
        raise ValueError(
            f"{dataset.name!r} has candidate labels of its own: load it without candidates=…, or replace "
            "them by dataset.with_candidates(…)"
        )
    if candidates == 0:
        return dataset
    return dataset.with_candidates(top_up(dataset.truth, candidates, random_state=random_state))


def _absent(name: str, home: str | Path | None, files: dict[str, Path]) -> str:
    folder = f"{data_home(home)} (chosen by data_home=… or {ENVIRONMENT_VARIABLE})"
    near = difflib.get_close_matches(name, sorted({DIGITS.name, *files, *REGISTRY} - {name}), n=3)
    instead = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    if name not in REGISTRY:
        return (
            f"there is no data set {name!r} in {folder}.{instead} list_datasets() gives all names; "
            "read_dataset(path) reads a file from anywhere"
        )
    advice = f"put {name}.npz there"
    if REGISTRY[name].openml_id is not None:
        advice = f"download it by skpml.datasets.fetch_dataset({name!r}), or {advice}"
    return f"the data set {name!r} is not in {folder}: {advice}.{instead}"


def _verify(name: str, path: Path) -> None:
    facts = REGISTRY.get(name)
    expected_file = None if facts is None else facts.file_sha256
    if expected_file is not None and hashlib.sha256(path.read_bytes()).hexdigest() == expected_file:
        return
    expected = recorded_checksum(path) or (None if facts is None else facts.content_sha256)
    if expected is None and expected_file is None:
        raise ValueError(f"no checksum is known of {name!r}: load it with verify=False")
    if expected is None or content_checksum(read_npz(path)) != expected:
        raise DatasetFormatError(path, "its checksum is not the expected one; copy or download it again")
