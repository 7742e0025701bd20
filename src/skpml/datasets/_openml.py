"""Download of the data sets that OpenML has, once, into the data folder."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.error import URLError

import numpy as np
import scipy.sparse as sp

from skpml.datasets._loading import content_checksum, record_checksum, recorded_checksum
from skpml.datasets._loading import data_home as find_data_home
from skpml.datasets._npz import read_npz, write_npz
from skpml.datasets._partial_dataset import PartialDataset
from skpml.datasets._registry import REGISTRY, DatasetFacts
from skpml.tables import TableError

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
    home = find_data_home(data_home)
    path = home / f"{name}.npz"
    if path.is_file() and not force:
        return read_npz(path)
    dataset = _download(facts)
    source = Path(f"openml.org/d/{facts.openml_id}")
    _check_facts(source, facts, dataset)
    checksum = content_checksum(dataset)
    expected = facts.content_sha256 or recorded_checksum(path)
    if expected is not None and checksum != expected:
        problem = f"the content of {name!r} has checksum {checksum}, expected {expected}: nothing was written"
        raise TableError(problem, path=source)
    home.mkdir(parents=True, exist_ok=True)
    record_checksum(path, checksum)
    write_npz(dataset, path, overwrite=True)
    return dataset


def _download(facts: DatasetFacts) -> PartialDataset:
    source = Path(f"openml.org/d/{facts.openml_id}")
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
    feature_names = tuple(bunch.feature_names)
    try:
        return PartialDataset(bunch.data, truth, truth, names, feature_names, facts.name, str(bunch.DESCR))
    except ValueError as exc:
        raise TableError(str(exc), path=source) from exc


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
        return bunch, np.array(
            [[values[j][code] for j, code in enumerate(row)] for row in codes], dtype=object
        )


def _labels(source: Path, target: Any, names: tuple[str, ...]) -> Any:
    text = np.char.upper(target.astype(str))
    wrong = ~np.isin(text, _TRUE + _FALSE)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise TableError(
            f"label {names[column]!r} is {target[row, column]!r} in row {row}, not TRUE or FALSE", path=source
        )
    return np.isin(text, _TRUE).astype(np.uint8)


def _check_facts(source: Path, facts: DatasetFacts, dataset: PartialDataset) -> None:
    found = dataset.statistics()
    for what in ("n_rows", "n_features", "n_labels", "cardinality"):
        expected, actual = getattr(facts, what), getattr(found, what)
        # Cardinality is registered to four places.
        if expected is not None and abs(actual - expected) > 1e-4:
            problem = f"{facts.name!r} should have {what} {expected}, got {actual}: nothing was written"
            raise TableError(problem, path=source)
