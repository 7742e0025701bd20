"""Mulan's XML: the file beside an ARFF that names the labels among its attributes."""

from __future__ import annotations

from pathlib import Path
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from skpml.datasets._errors import DatasetFormatError

_NAMESPACE = "http://mulan.sourceforge.net/labels"


def read_label_names(path: Path) -> list[str]:
    """Return the names of all ``<label name="…">`` elements, nested ones (label hierarchies) included."""
    names: list[str] = []
    parser = expat.ParserCreate()

    def element(tag: str, attributes: dict[str, str]) -> None:
        if tag.rpartition(":")[2] != "label":
            return
        if "name" not in attributes:
            raise DatasetFormatError(
                path, 'a <label> has no name="…" attribute', line=parser.CurrentLineNumber
            )
        names.append(attributes["name"])

    def doctype(*_: object) -> None:
        # Entities can make a small file grow without bound; label files have no use for them.
        raise DatasetFormatError(
            path, "holds a DTD; a Mulan label file has none", line=parser.CurrentLineNumber
        )

    parser.StartElementHandler = element
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(path.read_bytes(), True)
    except expat.ExpatError as exc:
        raise DatasetFormatError(
            path, f"not well-formed XML, it may be cut short or damaged ({exc})", line=exc.lineno
        ) from exc
    if not names:
        raise DatasetFormatError(path, 'names no labels; expected <labels><label name="…"></label>…</labels>')
    return names


def label_xml(names: tuple[str, ...]) -> str:
    """Return the text of a label file."""
    elements = "".join(f"  <label name={quoteattr(name)}></label>\n" for name in names)
    return f'<?xml version="1.0" encoding="utf-8"?>\n<labels xmlns="{_NAMESPACE}">\n{elements}</labels>\n'
