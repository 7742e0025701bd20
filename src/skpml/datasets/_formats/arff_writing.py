"""Writing Mulan and MEKA data sets: ARFF files some of whose attributes are labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from skpml._writing import replacing
from skpml.datasets._formats.arff_table import END_MARKER, quoted
from skpml.datasets._formats.mulan_xml import label_xml
from skpml.datasets._partial_dataset import PartialDataset
from skpml.datasets._validation import LabelMatrix, default_feature_names, is_sparse, listed, repeated


def write_arff(
    dataset: PartialDataset,
    path: str | Path,
    *,
    style: Literal["mulan", "meka"] = "mulan",
    overwrite: bool = False,
) -> None:
    """Write an ``.arff`` file, sparse where X is.

    Its labels are the truth where that is known, as other tools expect, else the candidates. Candidates that
    differ from a known truth stand in a second file, ``NAME.candidates.arff``; the first one says so in a
    comment.

    Parameters
    ----------
    dataset : PartialDataset
        What to write.
    path : path-like
        File to write.
    style : {"mulan", "meka"}, default="mulan"
        Mulan names the labels in an ``.xml`` file beside; MEKA puts them first and their number
        into the relation.
    overwrite : bool, default=False
        Replace files that exist.
    """
    path = Path(path)
    if style not in ("mulan", "meka"):
        raise ValueError(f'style must be "mulan" or "meka", got {style!r}')
    n_features = 0 if dataset.X is None else dataset.X.shape[1]
    feature_names = dataset.feature_names or default_feature_names(n_features)
    _check_names(feature_names + dataset.label_names)
    labels = dataset.candidates if dataset.truth is None else dataset.truth
    markers = {"rows": str(len(labels)), "labels": "candidates" if dataset.truth is None else "truth"}
    parts: dict[Path, Iterable[str]] = {}
    name = re.sub(r"\s+", " ", dataset.name or path.stem)
    declared = [f"@attribute {quoted(label)} {{0,1}}" for label in dataset.label_names]
    meka_relation = f"{name}: -C {len(declared)}"
    if dataset.truth is not None and not np.array_equal(dataset.truth, dataset.candidates):
        beside = path.with_name(f"{path.stem}.candidates.arff")
        markers["candidates"] = beside.name
        parts[beside] = _arff_lines(
            meka_relation, declared, {"rows": str(len(labels))}, sp.csr_array(dataset.candidates)
        )
    numeric = [f"@attribute {quoted(feature)} numeric" for feature in feature_names]
    blocks = [] if dataset.X is None else [dataset.X]
    stack: Any = sp.hstack if is_sparse(dataset.X) or dataset.X is None else np.hstack
    if style == "mulan":
        parts[path.with_suffix(".xml")] = [label_xml(dataset.label_names)]
        parts[path] = _arff_lines(
            name, numeric + declared, markers, stack([*blocks, _like(labels, dataset.X)])
        )
    else:
        parts[path] = _arff_lines(
            meka_relation, declared + numeric, markers, stack([_like(labels, dataset.X), *blocks])
        )
    with replacing(*parts, overwrite=overwrite) as temporary:
        for target, text in zip(temporary, parts.values(), strict=True):
            with target.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(text)


def _like(labels: LabelMatrix, X: Any) -> Any:
    as_double = labels.astype(np.float64)
    return sp.csr_array(as_double) if X is None or is_sparse(X) else as_double


def _check_names(names: tuple[str, ...]) -> None:
    if twice := repeated(names):
        raise ValueError(
            f"ARFF needs a different name for every feature and label, found twice: {listed(twice)}"
        )
    if bad := [name for name in names if not name.isprintable()]:
        raise ValueError(f"ARFF names cannot hold line breaks and other control characters: {listed(bad)}")


def _arff_lines(relation: str, attributes: list[str], markers: dict[str, str], values: Any) -> Iterator[str]:
    for key, text in markers.items():
        yield f"% skpml-{key}: {text}\n"
    yield f"@relation {quoted(relation)}\n\n"
    for attribute in attributes:
        yield f"{attribute}\n"
    yield "\n@data\n"
    if not is_sparse(values):
        for row in values.astype(np.float64):
            yield ",".join(map(_number, row.tolist())) + "\n"
        yield f"{END_MARKER}\n"
        return
    rows: Any = sp.csr_array(values)
    rows.sort_indices()
    for first, last in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        entries = zip(rows.indices[first:last].tolist(), rows.data[first:last].tolist(), strict=True)
        yield "{" + ",".join(f"{column} {_number(value)}" for column, value in entries) + "}\n"
    yield f"{END_MARKER}\n"


def _number(value: float) -> str:
    # Nominal labels are declared {0,1}, so whole numbers go without ".0"; the rest reads back exactly.
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))
