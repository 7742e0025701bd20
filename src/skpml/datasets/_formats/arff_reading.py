"""Reading Mulan and MEKA data sets: ARFF files some of whose attributes are labels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from skpml._validation import EmptyPolicy
from skpml.datasets._errors import DatasetFormatError
from skpml.datasets._formats.arff_table import ArffTable, read_arff_table
from skpml.datasets._formats.files import build_dataset
from skpml.datasets._formats.mulan_xml import read_label_names
from skpml.datasets._partial_dataset import PartialDataset
from skpml.datasets._validation import LabelMatrix, listed

_MEKA = re.compile(r"(?:(?P<name>.*):)?[^:]*?-[cC]\s+(?P<count>-?\d+)", re.DOTALL)
_FALSE = ("0", "false", "no", "-1", "0.0")
_TRUE = ("1", "true", "yes", "1.0")


def read_arff(
    path: str | Path,
    *,
    xml: str | Path | None = None,
    label_attributes: Sequence[str] | None = None,
    labels: Literal["truth", "candidates"] | None = None,
    ignore: Sequence[str] = (),
    encoding: str = "utf-8",
    empty_rows: EmptyPolicy = "error",
    empty_labels: EmptyPolicy = "error",
) -> PartialDataset:
    """Read a dense or sparse ``.arff`` file of Mulan or MEKA.

    Parameters
    ----------
    path : path-like
        File to read.
    xml : path-like, optional
        Mulan's file of label names. By default the ``.xml`` of the same name, where there is one.
    label_attributes : sequence of str, optional
        The attributes that are labels, where neither XML nor MEKA's ``-C`` option says so.
    labels : {"truth", "candidates"}, optional
        What the labels are. By default what the file says if it was written by `write_arff`, else the truth.
    ignore : sequence of str, default=()
        Attributes to leave out, such as names of rows.
    encoding : str, default="utf-8"
        Encoding of the text.
    empty_rows, empty_labels : {"error", "warn", "ignore"}, default="error"
        See `PartialDataset`.

    Notes
    -----
    Labels may be numeric 0/1 or nominal {0,1}, {FALSE,TRUE}, {NO,YES} in either order. A nominal feature
    whose values all are numbers takes those numbers; any other takes the index of the value in its
    declaration. As ARFF has it, an entry left out of a sparse row is zero, or the first declared value of a
    nominal attribute.
    """
    path = Path(path)
    table = read_arff_table(path, encoding=encoding, ignore=tuple(ignore))
    if unknown := [name for name in ignore if name not in table.names]:
        raise DatasetFormatError(path, f"has no attribute {listed(unknown)} to ignore")
    is_label = _label_mask(path, table, None if xml is None else Path(xml), label_attributes)
    kept = [index for index, name in enumerate(table.names) if name not in ignore and not is_label[index]]
    columns = [index for index, label in enumerate(is_label) if label]
    matrix = np.column_stack([_label_column(path, table, index) for index in columns])
    role = labels or table.markers.get("labels", "truth")
    if role not in ("truth", "candidates"):
        problem = f'labels must be "truth" or "candidates", got {role!r}'
        raise ValueError(problem) if labels else DatasetFormatError(path, problem)
    names = tuple(table.names[index] for index in columns)
    meka = _MEKA.match(table.relation)
    name = table.relation if meka is None else (meka["name"] or "")
    return build_dataset(
        path,
        X=_features(path, table, kept) if kept else None,
        truth=matrix if role == "truth" else None,
        candidates=matrix if role == "candidates" else _companion(path, table, names, len(matrix), encoding),
        label_names=names,
        feature_names=tuple(table.names[index] for index in kept) if kept else None,
        name=name.strip(),
        empty_rows=empty_rows,
        empty_labels=empty_labels,
    )


def _label_mask(
    path: Path, table: ArffTable, xml: Path | None, attributes: Sequence[str] | None
) -> list[bool]:
    if attributes is not None:
        return _named_mask(path, table, attributes)
    if xml is not None:
        return _named_mask(path, table, read_label_names(xml))
    beside = path.with_suffix(".xml")
    counted = _counted_mask(path, table)
    named = _named_mask(path, table, read_label_names(beside)) if beside.is_file() else None
    if counted is not None and named is not None and counted != named:
        raise DatasetFormatError(
            path,
            f"its relation ({table.relation!r}) and {beside.name} name different labels; "
            "pass xml=… to go by a file",
        )
    mask = named or counted
    if mask is None:
        raise DatasetFormatError(
            path,
            f"cannot tell labels from features: put Mulan's label file at {beside.name}, pass xml=… or "
            "label_attributes=[…], or give the number of labels in MEKA's way, as in @relation 'name: -C 6'",
        )
    return mask


def _named_mask(path: Path, table: ArffTable, names: Sequence[str]) -> list[bool]:
    if missing := sorted(set(names).difference(table.names)):
        raise DatasetFormatError(path, f"has no attribute for the label(s) {listed(missing)}")
    if not names:
        raise DatasetFormatError(path, "label_attributes names no label")
    return [name in names for name in table.names]


def _counted_mask(path: Path, table: ArffTable) -> list[bool] | None:
    counted = _MEKA.match(table.relation)
    if counted is None:
        return None
    count, total = int(counted["count"]), len(table.names)
    if not 1 <= abs(count) <= total:
        raise DatasetFormatError(path, f"-C {count} asks for {abs(count)} labels among {total} attributes")
    return [index < count if count > 0 else index >= total + count for index in range(total)]


def _label_column(path: Path, table: ArffTable, index: int) -> LabelMatrix:
    kind, values = table.kinds[index], table.column(index)
    missing = np.flatnonzero(np.isnan(values))
    if missing.size:
        raise DatasetFormatError(
            path, f"label {table.names[index]!r} has no value; write 0 or 1", line=table.lines[missing[0]]
        )
    if isinstance(kind, list):
        try:
            meaning = np.array([_binary(value) for value in kind])
        except ValueError as exc:
            raise DatasetFormatError(
                path,
                f"label {table.names[index]!r} may be declared {{0,1}}, {{FALSE,TRUE}} or {{NO,YES}}, "
                f"not {{{', '.join(kind)}}}",
            ) from exc
        values = meaning[values.astype(int)]
    values = np.where(values == -1, 0, values)
    wrong = np.flatnonzero((values != 0) & (values != 1))
    if wrong.size:
        raise DatasetFormatError(
            path,
            f"label {table.names[index]!r} is {values[wrong[0]]:g}, not 0 or 1",
            line=table.lines[wrong[0]],
        )
    return values.astype(np.uint8)


def _binary(value: str) -> int:
    if value.lower() in _FALSE:
        return 0
    if value.lower() in _TRUE:
        return 1
    raise ValueError(value)


def _features(path: Path, table: ArffTable, kept: list[int]) -> Any:
    X: Any = table.values[:, kept]
    X = X.tolil() if table.sparse else X
    for column, index in enumerate(kept):
        kind = table.kinds[index]
        if not isinstance(kind, list):
            continue
        meaning = _numbers(kind)
        if np.array_equal(meaning, np.arange(len(kind))):
            continue
        codes = table.column(index)
        values = np.where(np.isnan(codes), np.nan, meaning[np.nan_to_num(codes).astype(int)])
        X[:, [column]] = values[:, None]
    X = sp.csr_array(X) if table.sparse else X
    entries: Any = sp.coo_array(X) if table.sparse else X
    finite = np.isfinite(entries.data if table.sparse else entries)
    if not finite.all():
        place = np.argwhere(~finite)[0]
        row, column = (entries.row[place[0]], entries.col[place[0]]) if table.sparse else place
        raise DatasetFormatError(
            path,
            f"row {row}, feature {table.names[kept[column]]!r}: the value is missing or not finite; "
            "fill it in or drop it first",
            line=table.lines[row],
        )
    return X


def _numbers(values: list[str]) -> Any:
    try:
        return np.array([float(value) for value in values])
    except ValueError:
        return np.arange(len(values), dtype=float)


def _companion(path: Path, table: ArffTable, names: tuple[str, ...], n_rows: int, encoding: str) -> Any:
    if "candidates" not in table.markers:
        return None
    beside = path.with_name(table.markers["candidates"])
    if not beside.is_file():
        raise DatasetFormatError(path, f"its candidate labels are in {beside.name}, which is not beside it")
    other = read_arff_table(beside, encoding=encoding)
    if tuple(other.names) != names or len(other.lines) != n_rows:
        raise DatasetFormatError(beside, f"its labels or rows are not those of {path.name}")
    return np.column_stack([_label_column(beside, other, index) for index in range(len(names))])
