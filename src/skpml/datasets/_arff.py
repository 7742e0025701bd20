"""ARFF files of Mulan and MEKA: data sets some of whose attributes are labels.

liac-arff parses the data. Names and the relation are parsed here: liac-arff does not undo escapes in names, and cuts
values of INTEGER attributes down to whole numbers.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from skpml._docstrings import fill_docstring
from skpml._validation import EmptyPolicy
from skpml._writing import replacing
from skpml.datasets._partial_dataset import LabelMatrix, PartialDataset, build_dataset
from skpml.tables import (
    Argument,
    TableError,
    find_repeated,
    format_names,
    message_of,
    number_names,
    require_extra,
)

_MEKA = re.compile(r"(?:(?P<name>.*):)?[^:]*?-[cC]\s+(?P<count>-?\d+)", re.DOTALL)
_BINARY = dict.fromkeys(("0", "false", "no", "-1", "0.0"), 0) | dict.fromkeys(("1", "true", "yes", "1.0"), 1)


@fill_docstring
def read_arff(
    path: str | Path,
    *,
    xml: str | Path | None = None,
    label_attributes: Sequence[str] | None = None,
    labels: Literal["truth", "candidates"] | None = None,
    ignore: Sequence[str] = (),
    encoding: str = "utf-8",
    on_empty: EmptyPolicy = "raise",
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
    %(on_empty_and_dataset)s

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
        raise TableError(f"has no attribute {format_names(unknown)} to ignore", path=path)
    is_label = _label_mask(path, table, None if xml is None else Path(xml), label_attributes)
    kept = [index for index, name in enumerate(table.names) if name not in ignore and not is_label[index]]
    columns = [index for index, label in enumerate(is_label) if label]
    matrix = np.column_stack([_label_column(path, table, index) for index in columns])
    role = labels or table.markers.get("labels", "truth")
    if role not in ("truth", "candidates"):
        problem = f'labels must be "truth" or "candidates", got {role!r}'
        raise ValueError(problem) if labels else TableError(problem, path=path)
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
        on_empty=on_empty,
    )


def _label_mask(
    path: Path, table: ArffTable, xml: Path | None, attributes: Sequence[str] | None
) -> list[bool]:
    """Whether each attribute is a label: as the caller says, else as the XML file and the relation say."""
    masks, total, beside = [], len(table.names), path.with_suffix(".xml")
    counted = _MEKA.match(table.relation) if xml is None and attributes is None else None
    if counted is not None:
        count = int(counted["count"])
        if not 1 <= abs(count) <= total:
            raise TableError(f"-C {count} asks for {abs(count)} labels among {total} attributes", path=path)
        masks.append([index < count if count > 0 else index >= total + count for index in range(total)])
    if attributes is not None or xml is not None or beside.is_file():
        names = read_label_names(xml or beside) if attributes is None else attributes
        if missing := sorted(set(names).difference(table.names)):
            raise TableError(f"has no attribute for the label(s) {format_names(missing)}", path=path)
        if not names:
            raise TableError(Argument("label_attributes"), " names no label", path=path)
        labels = set(names)
        masks.append([name in labels for name in table.names])
    if not masks:
        raise TableError(
            f"cannot tell labels from features: put Mulan's label file at {beside.name}, pass ", Argument("xml", ...),
            " or ", Argument("label_attributes", ...), ", or write the number of labels in the style of MEKA, as in "
            "@relation 'name: -C 6'", path=path,
        )  # fmt: skip
    if masks[0] != masks[-1]:
        problem = f"its relation ({table.relation!r}) and {beside.name} name different labels; pass "
        raise TableError(problem, Argument("xml", ...), " to go by a file", path=path)
    return masks[0]


def _label_column(path: Path, table: ArffTable, index: int) -> LabelMatrix:
    name, kind, values = table.names[index], table.kinds[index], table.column(index)
    missing = np.flatnonzero(np.isnan(values))
    if missing.size:
        problem, line = f"label {name!r} has no value; write 0 or 1", table.lines[missing[0]]
        raise TableError(problem, path=path, line=line, column=name)
    if isinstance(kind, list):
        try:
            meaning = np.array([_BINARY[value.lower()] for value in kind])
        except KeyError as exc:
            allowed = "{0,1}, {FALSE,TRUE} or {NO,YES}"
            problem = f"label {name!r} may be declared {allowed}, not {{{', '.join(kind)}}}"
            raise TableError(problem, path=path, column=name, value=tuple(kind), expected=allowed) from exc
        values = meaning[values.astype(int)]
    values = np.where(values == -1, 0, values)
    wrong = np.flatnonzero((values != 0) & (values != 1))
    if wrong.size:
        value, line = values[wrong[0]], table.lines[wrong[0]]
        problem = f"label {name!r} is {value:g}, not 0 or 1"
        raise TableError(problem, path=path, line=line, column=name, value=value, expected="0 or 1")
    return values.astype(np.uint8)


def _features(path: Path, table: ArffTable, kept: list[int]) -> Any:
    X: Any = table.values[:, kept]
    X = X.tolil() if table.sparse else X
    for column, index in enumerate(kept):
        kind = table.kinds[index]
        try:
            meaning = np.array(kind, dtype=float) if isinstance(kind, list) else None
        except ValueError:
            continue
        if meaning is not None and not np.array_equal(meaning, np.arange(len(meaning))):
            codes = table.column(index)
            values = np.where(np.isnan(codes), np.nan, meaning[np.nan_to_num(codes).astype(int)])
            X[:, [column]] = values[:, None]
    X = sp.csr_array(X) if table.sparse else X
    if not np.isfinite(X.data if table.sparse else X).all():
        entries: Any = sp.coo_array(X)
        place = np.flatnonzero(~np.isfinite(entries.data))[0]
        row, name = int(entries.row[place]), table.names[kept[entries.col[place]]]
        problem = (
            f"row {row}, feature {name!r}: the value is missing or not finite; fill it in or drop it first"
        )
        raise TableError(problem, path=path, line=table.lines[row], row=row, column=name)
    return X


def _companion(path: Path, table: ArffTable, names: tuple[str, ...], n_rows: int, encoding: str) -> Any:
    if "candidates" not in table.markers:
        return None
    beside = path.with_name(table.markers["candidates"])
    if not beside.is_file():
        raise TableError(f"its candidate labels are in {beside.name}, which is not beside it", path=path)
    other = read_arff_table(beside, encoding=encoding)
    if tuple(other.names) != names or len(other.lines) != n_rows:
        raise TableError(f"its labels or rows are not those of {path.name}", path=beside)
    return np.column_stack([_label_column(beside, other, index) for index in range(len(names))])


_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_RELATION = re.compile(r"@relation\s+(.+)$", re.IGNORECASE)
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|\S+)\s*(.+)$", re.IGNORECASE)
_NOMINAL_VALUE = re.compile(rf"{_QUOTED}|[^,\s]+")
_MARKER = re.compile(r"%\s*skpml-(\w+):\s*(.*)$")
END_MARKER = "% skpml-end"
_NUMERIC = ("numeric", "real", "integer")
_XML = """\
<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
{}</labels>
"""


@dataclass
class ArffTable:
    """Content of an ARFF file: numbers as they are, nominal values as indices into their declaration."""

    relation: str = ""
    names: list[str] = field(default_factory=list)
    # Declared values of a nominal attribute, None for a numeric one, "string" or "date" for the others.
    kinds: list[list[str] | str | None] = field(default_factory=list)
    markers: dict[str, str] = field(default_factory=dict)
    values: Any = None
    lines: list[int] = field(default_factory=list)

    @property
    def sparse(self) -> bool:
        """Whether the file lists only entries that are not zero."""
        return sp.issparse(self.values)

    def column(self, index: int) -> NDArray[np.float64]:
        """Return one column; NaN where the value is missing."""
        values = self.values[:, [index]]
        return np.asarray(values.toarray() if self.sparse else values, dtype=np.float64).ravel()


def read_arff_table(path: Path, *, encoding: str, ignore: tuple[str, ...] = ()) -> ArffTable:
    """Read a dense or sparse ARFF file; text and date attributes must be among those to ignore."""
    try:
        text = path.read_text(encoding=encoding)
    except LookupError as exc:
        problem = f" must be one that Python knows, such as 'utf-8', got {encoding!r}"
        raise TableError(Argument("encoding"), problem, path=path, value=encoding) from exc
    except UnicodeDecodeError as exc:
        line = path.read_bytes().count(b"\n", 0, exc.start) + 1
        problem, latin = f"not {encoding} text; pass its encoding, as in ", Argument("encoding", "latin-1")
        raise TableError(problem, latin, path=path, line=line, value=encoding) from exc
    # Not str.splitlines, which also splits at characters that may stand inside a value.
    lines = text.replace("\r\n", "\n").split("\n")
    table = ArffTable()
    start = _read_header(path, lines, table)
    for name, kind in zip(table.names, table.kinds, strict=True):
        if isinstance(kind, str) and name not in ignore:
            problem = f"attribute {name!r} holds {kind} values, not numbers; leave it out by "
            raise TableError(problem, Argument("ignore", [name]), path=path, column=name)
    _read_data(path, lines, start, table)
    return table


def _read_header(path: Path, lines: list[str], table: ArffTable) -> int:
    seen: set[str] = set()
    for number, raw in enumerate(lines, start=1):
        line = raw.strip()
        keyword = line.partition(" ")[0].partition("\t")[0].lower()
        if keyword == "@data":
            if not table.names:
                raise TableError("@data comes before any @attribute", line=number, path=path)
            return number
        if keyword == "@relation" and (match := _RELATION.match(line)):
            table.relation = _unquote(match[1].strip())
        elif keyword == "@attribute" and (match := _ATTRIBUTE.match(line)):
            name = _unquote(match[1])
            if name in seen:
                raise TableError(f"attribute {name!r} is declared twice", line=number, path=path)
            seen.add(name)
            _add_attribute(path, number, table, name, match[2].strip())
        elif match := _MARKER.match(line):
            table.markers[match[1]] = match[2].strip()
        elif line and not line.startswith("%"):
            problem = f"expected @relation, @attribute or @data, got {line[:60]!r}"
            raise TableError(problem, line=number, path=path)
    raise TableError("has no @data: not an ARFF file, or cut short", path=path)


def _add_attribute(path: Path, number: int, table: ArffTable, name: str, declared: str) -> None:
    kind: list[str] | str | None
    word = declared.split()[0].lower()
    if declared.startswith("{"):
        if not declared.endswith("}"):
            raise TableError(f"attribute {name!r}: the list of values lacks its }}", line=number, path=path)
        kind = [_unquote(value) for value in _NOMINAL_VALUE.findall(declared[1:-1])]
    elif word in _NUMERIC:
        kind = None
    elif word in ("string", "date"):
        kind = word
    else:
        raise TableError(f"attribute {name!r} has unknown type {declared[:60]!r}", line=number, path=path)
    table.names.append(name)
    table.kinds.append(kind)


def _unquote(word: str) -> str:
    if len(word) >= 2 and word[0] == word[-1] and word[0] in "'\"":
        return re.sub(r"\\(.)", r"\1", word[1:-1])
    return word


def quote_word(word: str) -> str:
    """Write a word as ARFF reads it back."""
    return "'" + re.sub(r"(['\\])", r"\\\1", word) + "'"


def _read_data(path: Path, lines: list[str], start: int, table: ArffTable) -> None:
    arff = require_extra("arff", "reading ARFF files")
    rows = [number for number in range(start, len(lines)) if lines[number].strip()[:1] not in ("", "%")]
    table.lines = [number + 1 for number in rows]
    if not rows:
        raise TableError("has no rows after @data", path=path)
    sparse = lines[rows[0]].lstrip().startswith("{")
    reached = 0

    def stream() -> Iterator[str]:
        nonlocal reached
        yield "@relation x"
        for index, kind in enumerate(table.kinds):
            values = f"{{{','.join(map(quote_word, kind))}}}" if isinstance(kind, list) else "string"
            yield f"@attribute a{index} {'numeric' if kind is None else values}"
        yield "@data"
        for number in rows:
            reached = number + 1
            yield lines[number]

    try:
        kind = arff.COO if sparse else arff.DENSE
        decoded = arff.ArffDecoder().decode(stream(), encode_nominal=True, return_type=kind)["data"]
        if sparse:
            data, *places = decoded
            numbers = np.array([0.0 if isinstance(value, str) else value for value in data], dtype=float)
            table.values = sp.csc_array((numbers, tuple(places)), shape=(len(rows), len(table.names)))
        else:
            texts = [index for index, kind in enumerate(table.kinds) if isinstance(kind, str)]
            for row, index in itertools.product(decoded, texts):
                row[index] = 0.0
            table.values = np.array(decoded, dtype=np.float64)
    except Exception as exc:  # liac-arff raises anything on damaged input
        what = message_of(exc).partition("at line")[0].partition("in line")[0].strip(" ,")
        expected = f"expected {len(table.names)} values" if not sparse else "expected {index value, …}"
        raise TableError(f"{what or 'bad data'}; {expected}", line=reached or None, path=path) from exc
    if "rows" in table.markers:
        if not any(line.strip() == END_MARKER for line in lines[rows[-1] + 1 :]):
            raise TableError(f"cut short: its last line, {END_MARKER!r}, is missing", path=path)
        if (promised := table.markers["rows"]) != str(len(rows)):
            raise TableError(f"cut short: says it has {promised} rows, but holds {len(rows)}", path=path)


@fill_docstring
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
    %(dataset_and_path)s
    style : {"mulan", "meka"}, default="mulan"
        Mulan names the labels in an ``.xml`` file beside; MEKA puts them first and their number
        into the relation.
    %(overwrite)s
    """
    path = Path(path)
    if style not in ("mulan", "meka"):
        raise ValueError(f'style must be "mulan" or "meka", got {style!r}')
    n_features = 0 if dataset.X is None else dataset.X.shape[1]
    feature_names = dataset.feature_names or number_names("feature", n_features)
    if twice := find_repeated(feature_names + dataset.label_names):
        problem = "ARFF needs a different name for every feature and label, found twice: "
        raise ValueError(problem + format_names(twice))
    if bad := [name for name in feature_names + dataset.label_names if not name.isprintable()]:
        raise ValueError(
            f"ARFF names cannot hold line breaks and other control characters: {format_names(bad)}"
        )
    labels = dataset.candidates if dataset.truth is None else dataset.truth
    markers = {"rows": str(len(labels)), "labels": "candidates" if dataset.truth is None else "truth"}
    parts: dict[Path, Iterable[str]] = {}
    name = re.sub(r"\s+", " ", dataset.name or path.stem)
    declared = [f"@attribute {quote_word(label)} {{0,1}}" for label in dataset.label_names]
    meka_relation = f"{name}: -C {len(declared)}"
    if dataset.truth is not None and not np.array_equal(dataset.truth, dataset.candidates):
        beside = path.with_name(f"{path.stem}.candidates.arff")
        rows, markers["candidates"] = {"rows": markers["rows"]}, beside.name
        parts[beside] = _arff_lines(meka_relation, declared, rows, sp.csr_array(dataset.candidates))
    sparse = dataset.X is None or sp.issparse(dataset.X)
    attributes = [[f"@attribute {quote_word(feature)} numeric" for feature in feature_names], declared]
    blocks = [] if dataset.X is None else [dataset.X]
    blocks.append(sp.csr_array(labels, dtype=np.float64) if sparse else labels)
    if style == "meka":
        attributes, blocks = attributes[::-1], blocks[::-1]
    else:
        elements = "".join(f"  <label name={quoteattr(name)}></label>\n" for name in dataset.label_names)
        parts[path.with_suffix(".xml")] = [_XML.format(elements)]
    values = (sp.hstack if sparse else np.hstack)(blocks)
    relation = name if style == "mulan" else meka_relation
    parts[path] = _arff_lines(relation, [*attributes[0], *attributes[1]], markers, values)
    with replacing(*parts, overwrite=overwrite) as temporary:
        for target, text in zip(temporary, parts.values(), strict=True):
            with target.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(text)


def _arff_lines(relation: str, attributes: list[str], markers: dict[str, str], values: Any) -> Iterator[str]:
    for key, text in markers.items():
        yield f"% skpml-{key}: {text}\n"
    yield f"@relation {quote_word(relation)}\n\n"
    for attribute in attributes:
        yield f"{attribute}\n"
    yield "\n@data\n"
    if sp.issparse(values):
        rows: Any = sp.csr_array(values)
        rows.sort_indices()
        for first, last in itertools.pairwise(rows.indptr):
            entries = zip(rows.indices[first:last].tolist(), rows.data[first:last].tolist(), strict=True)
            yield "{" + ",".join(f"{column} {_number(value)}" for column, value in entries) + "}\n"
    else:
        for row in values.astype(np.float64):
            yield ",".join(map(_number, row.tolist())) + "\n"
    yield f"{END_MARKER}\n"


def _number(value: float) -> str:
    # Nominal labels are declared {0,1}, so whole numbers go without ".0"; the rest reads back exactly.
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(float(value))


def read_label_names(path: Path) -> list[str]:
    """Return the names of all ``<label name="…">`` elements, nested ones (label hierarchies) included."""
    names: list[str] = []
    parser = expat.ParserCreate()

    def element(tag: str, attributes: dict[str, str]) -> None:
        if tag.rpartition(":")[2] != "label":
            return
        if "name" not in attributes:
            raise TableError('a <label> has no name="…" attribute', line=parser.CurrentLineNumber, path=path)
        names.append(attributes["name"])

    def doctype(*_: object) -> None:
        # Entities can make a small file grow without bound; label files have no use for them.
        raise TableError("holds a DTD; a Mulan label file has none", line=parser.CurrentLineNumber, path=path)

    parser.StartElementHandler = element
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(path.read_bytes(), True)
    except LookupError as exc:
        raise TableError(f"is written in an encoding that Python does not know ({exc})", path=path) from exc
    except expat.ExpatError as exc:
        problem = f"not well-formed XML, it may be cut short or damaged ({exc})"
        raise TableError(problem, line=exc.lineno, path=path) from exc
    if not names:
        raise TableError('names no labels; expected <labels><label name="…"></label>…</labels>', path=path)
    return names
