"""Data sets by name: the data folder, what it holds, loading, verifying, and downloading from OpenML."""

from __future__ import annotations

import difflib
import hashlib
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import URLError

import numpy as np
import scipy.sparse as sp

from skpml._writing import replacing
from skpml.datasets._digits import DEFAULT_CANDIDATES, DIGITS, NOISES, add_candidates, load_digits_attributes
from skpml.datasets._npz import npz_shape, read_npz, write_npz
from skpml.datasets._partial_dataset import PartialDataset, build_dataset
from skpml.datasets._registry import REGISTRY, DatasetFacts
from skpml.tables import TableError

ENVIRONMENT_VARIABLE = "SKPML_DATA"
_RECORD_SUFFIX = ".content-sha256"


def data_home(path: str | Path | None = None) -> Path:
    """Return the data folder; it need not exist.

    Parameters
    ----------
    path : path-like, optional
        The folder, if not the usual one: that of the environment variable ``SKPML_DATA`` where it is set,
        else ``skpml`` in the user's data folder (``~/.local/share`` or ``$XDG_DATA_HOME`` on Linux,
        ``~/Library/Application Support`` on macOS, ``%LOCALAPPDATA%`` on Windows).

    Returns
    -------
    Path
        The folder.
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


def list_datasets(*, data_home: str | Path | None = None) -> list[DatasetFacts]:
    """List the registered data sets, present or absent, and other ``.npz`` files of the folder.

    Parameters
    ----------
    data_home : path-like, optional
        The data folder; see `skpml.datasets.data_home`.

    Returns
    -------
    list of DatasetFacts
        Sorted by name.
    """
    files = present_files(data_home)
    entries = [
        replace(facts, present=facts is DIGITS or facts.name in files)
        for facts in (DIGITS, *REGISTRY.values())
    ]
    entries += [_found(name, path) for name, path in files.items() if name not in {DIGITS.name, *REGISTRY}]
    return sorted(entries, key=lambda entry: entry.name)


def present_files(path: str | Path | None = None) -> dict[str, Path]:
    """Return the ``.npz`` files of the data folder by the name of the set."""
    home = data_home(path)
    return {file.stem: file for file in sorted(home.glob("*.npz"))} if home.is_dir() else {}


def _file_path(name: str, home: str | Path | None) -> Path:
    return data_home(home) / f"{name}.npz"


def _found(name: str, path: Path) -> DatasetFacts:
    try:
        return DatasetFacts(name, *npz_shape(path), None, None, present=True)
    except TableError:
        return DatasetFacts(name, None, None, None, None, None)


# Uniform noise has no suffix, so that each configuration has one name.
_CONFIGURATION = re.compile(rf"(?P<name>.+)-(?P<candidates>\d+)(?:-(?P<noise>{'|'.join(NOISES[1:])}))?")


def split_configuration(name: str) -> tuple[str, int | None, str]:
    """Split ``"emotions-3-label"`` into data set, candidates per row (None by default) and noise."""
    match = _CONFIGURATION.fullmatch(name)
    if match is None:
        return name, None, NOISES[0]
    return match["name"], int(match["candidates"]), match["noise"] or NOISES[0]


def load_dataset(
    name: str,
    *,
    candidates: int | None = None,
    noise: str | None = None,
    random_state: Any = 0,
    data_home: str | Path | None = None,
    verify: bool = False,
) -> PartialDataset:
    """Load a data set from the data folder. Never uses the network.

    Parameters
    ----------
    name : str
        Name of a set, as `list_datasets` gives it. ``"emotions-3"`` is short for ``candidates=3``, and
        ``"emotions-3-label"`` for ``candidates=3, noise="label"``.
    candidates : int, optional
        Fill each row up with random false labels to this many candidates; 0 adds none.
        Only for sets without real candidate labels. By default the candidates are those of the set:
        real ones where it has them, else the true labels.
    noise : {"uniform", "label", "instance"}, optional
        Which false labels are added: any (`skpml.noise.top_up`, the default), wrong companions of the true labels
        (`skpml.noise.label_dependent`), or labels that the features make plausible
        (`skpml.noise.instance_dependent`). Their number in a row is the same.
    random_state : int, RandomState, Generator or None, default=0
        Source of the false labels.
    data_home : path-like, optional
        The data folder; see `skpml.datasets.data_home`.
    verify : bool, default=False
        Check the file against the registered or recorded checksum first.

    Returns
    -------
    PartialDataset
        The data set.

    Raises
    ------
    LookupError
        If there is no such set in the folder.
    ValueError
        If `noise` is unknown or cannot be drawn, or the name asks for other noise than the arguments.
    TableError
        If the file is damaged, or `verify` finds another checksum.
    """
    if noise not in (None, *NOISES):
        raise ValueError(f"noise must be one of {', '.join(map(repr, NOISES))}, got {noise!r}")
    files = present_files(data_home)
    data, asked, kind = (name, None, NOISES[0]) if name in files else split_configuration(name)
    if asked is not None:
        if candidates is not None and candidates != asked:
            raise ValueError(f"{name!r} asks for {asked} candidates, and candidates={candidates} for others")
        if noise is not None and noise != kind:
            raise ValueError(f"{name!r} asks for {kind} noise, and noise={noise!r} for another")
        name, candidates, noise = data, asked, kind
    if name == DIGITS.name and name not in files:
        asked = DEFAULT_CANDIDATES if candidates is None else candidates
        return add_candidates(load_digits_attributes(candidates=0), asked, random_state, noise or NOISES[0])
    if name not in files:
        raise LookupError(_absent(name, data_home, files))
    if verify:
        _verify(name, files[name])
    # A file of unknown origin may have empty candidate sets, which are worth a warning.
    dataset = read_npz(files[name], on_empty="warn")
    if candidates is None:
        if noise is not None:
            raise ValueError(f"noise={noise!r} needs the number of candidates per row: set candidates=…")
        return dataset
    return add_candidates(dataset, candidates, random_state, noise or NOISES[0])


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
        raise TableError("its checksum is not the expected one; copy or download it again", path=path)


def content_checksum(dataset: PartialDataset) -> str:
    """Compute the SHA-256 of features, candidates and truth.

    Hashed are, in this order: the line ``skpml-content-1 ROWS FEATURES LABELS`` and a line feed (FEATURES is
    ``-`` without X); the entries of X that are not zero in CSR form, row pointers and column indices as
    64-bit integers, values as 64-bit floats, all little-endian; the candidates, one byte per cell, row by row;
    ``1`` and the truth in the same way, or ``0`` where it is unknown. Names are not hashed, nor whether X is
    stored sparse.

    Parameters
    ----------
    dataset : PartialDataset
        What to hash.

    Returns
    -------
    str
        64 hexadecimal digits.
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


def recorded_checksum(path: Path) -> str | None:
    """Return the content checksum recorded beside a data file at its first download, if there is one."""
    record = path.with_suffix(_RECORD_SUFFIX)
    return record.read_text(encoding="ascii", errors="replace").strip() if record.is_file() else None


def record_checksum(path: Path, checksum: str) -> None:
    """Record the content checksum of a data file beside it."""
    with replacing(path.with_suffix(_RECORD_SUFFIX), overwrite=True) as (temporary,):
        temporary.write_text(checksum + "\n", encoding="ascii")


_TRUE, _FALSE = ("TRUE", "1", "1.0", "YES"), ("FALSE", "0", "0.0", "NO")


def fetch_dataset(name: str, *, data_home: str | Path | None = None, force: bool = False) -> PartialDataset:
    """Load a data set from the data folder, or download it from OpenML into it.

    Parameters
    ----------
    name : str
        A registered set that OpenML has: one with an `openml_id` in `list_datasets`.
    data_home : path-like, optional
        The data folder, made if it does not exist; see `skpml.datasets.data_home`.
    force : bool, default=False
        Download even if the file is there.

    Returns
    -------
    PartialDataset
        With the true labels as candidates: no noise is added.

    Raises
    ------
    LookupError
        If OpenML is not known to have the set.
    ConnectionError
        If the download fails.
    TableError
        If the download is not the expected data: its name at OpenML, its size or its mean number of true labels is
        not the registered one, or its content has another checksum than the registered one, or than the one recorded
        at the first download. Nothing is written then.
    """
    facts = REGISTRY.get(name)
    if facts is None or facts.openml_id is None:
        known = ", ".join(facts.name for facts in REGISTRY.values() if facts.openml_id is not None)
        raise LookupError(f"{name!r} is not known to be at OpenML; these are: {known}")
    path = _file_path(name, data_home)
    if path.is_file() and not force:
        return read_npz(path)
    source = Path(f"openml.org/d/{facts.openml_id}")
    dataset = _download(facts, source)
    _check_facts(source, facts, dataset)
    checksum = content_checksum(dataset)
    expected = facts.content_sha256 or recorded_checksum(path)
    if expected is not None and checksum != expected:
        problem = f"the content of {name!r} has checksum {checksum}, expected {expected}: nothing was written"
        raise TableError(problem, path=source)
    path.parent.mkdir(parents=True, exist_ok=True)
    record_checksum(path, checksum)
    write_npz(dataset, path, overwrite=True)
    return dataset


def _download(facts: DatasetFacts, source: Path) -> PartialDataset:
    try:
        bunch, target = _ask_openml(facts.openml_id)
    except (URLError, TimeoutError, ConnectionError) as exc:
        raise ConnectionError(f"could not download {facts.name!r} from OpenML: {exc}") from exc
    except Exception as exc:
        raise TableError(f"OpenML's answer for {facts.name!r} cannot be read: {exc}", path=source) from exc
    if str(bunch.details.get("name", "")).lower() != facts.name:
        raise TableError(f"is named {bunch.details.get('name')!r} at OpenML, not {facts.name!r}", path=source)
    names = tuple(bunch.target_names)
    if not names:
        raise TableError("names no target columns, so there are no labels", path=source)
    truth = _labels(source, np.asarray(target).reshape(-1, len(names)), names)
    names_and_texts = {"label_names": names, "name": facts.name, "description": str(bunch.DESCR)}
    features = {"X": bunch.data, "feature_names": tuple(bunch.feature_names)}
    return build_dataset(source, candidates=truth, truth=truth, **features, **names_and_texts)


def _ask_openml(number: int | None) -> tuple[Any, Any]:
    from sklearn.datasets import fetch_openml

    # The parser liac-arff needs no pandas and gives numbers. The cache only serves the second call.
    with TemporaryDirectory() as cache:
        options = {"data_id": number, "data_home": cache, "as_frame": False, "parser": "liac-arff"}
        bunch = fetch_openml(**options)
        if not sp.issparse(bunch.data):
            return bunch, bunch.target
        # In sparse files scikit-learn leaves targets that are not written out uninitialised (seen in 1.9), so the
        # labels are taken from among the features.
        whole = fetch_openml(**options, target_column=None)
        columns = [whole.feature_names.index(name) for name in bunch.target_names]
        codes = whole.data[:, columns].toarray().astype(int)
        values = [whole.categories.get(name, ["0", "1"]) for name in bunch.target_names]
        words = [[values[j][code] for j, code in enumerate(row)] for row in codes]
        return bunch, np.array(words, dtype=object)


def _labels(source: Path, target: Any, names: tuple[str, ...]) -> Any:
    text = np.char.upper(target.astype(str))
    wrong = ~np.isin(text, _TRUE + _FALSE)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        problem = f"label {names[column]!r} is {target[row, column]!r} in row {row}, not TRUE or FALSE"
        raise TableError(problem, path=source)
    return np.isin(text, _TRUE).astype(np.uint8)


def _check_facts(source: Path, facts: DatasetFacts, dataset: PartialDataset) -> None:
    found = dataset.statistics()
    for what in ("n_rows", "n_features", "n_labels", "cardinality"):
        expected, actual = getattr(facts, what), getattr(found, what)
        # Cardinality is registered to four places.
        if expected is not None and abs(actual - expected) > 1e-4:
            problem = f"{facts.name!r} should have {what} {expected}, got {actual}: nothing was written"
            raise TableError(problem, path=source)
