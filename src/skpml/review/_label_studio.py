"""Tasks with predictions for Label Studio, and the labeling interface that shows them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from skpml._writing import replacing
from skpml.review._page import check_same_table

if TYPE_CHECKING:
    from skpml.cleaning import Audit
    from skpml.tables import Table

_NOT_IN_XML = set(map(chr, range(32))) - set("\t\n\r") | {"\ufffe", "\uffff"}


def write_label_studio(
    table: Table,
    audit: Audit,
    path: str | Path,
    *,
    config: str | Path | None = None,
    overwrite: bool = False,
) -> None:
    """Write an audited table as Label Studio tasks, with the labeling interface.

    There is one task per row. Its data are the row number, the id, the labels of the file, and the text and the image
    if the table has them. Its prediction chooses the labels that the audit does not drop, and those that a person added.
    The score of a prediction is 1 - max min(p, 1 - p) over the labels of the row, where p is the confidence: sorted by
    score, tasks begin with the row that is most useful to check. A row without labels has score 1.

    Parameters
    ----------
    table : Table
        The rows that were audited.
    audit : Audit
        Result of :func:`skpml.cleaning.audit` for the rows of the table.
    path : path-like
        JSON file of tasks to write.
    config : path-like, optional
        XML file of the labeling interface to write; by default `path` with the suffix ``.xml``.
    overwrite : bool, default=False
        Replace files that exist.

    Raises
    ------
    ValueError
        If the audit belongs to another table, a label has characters that XML cannot hold, or both files are the same.

    See Also
    --------
    write_review : Write a page for the same work that needs no server.
    """
    check_same_table(table, audit)
    path = Path(path)
    beside = path.with_suffix(".xml") if config is None else Path(config)
    if beside.resolve() == path.resolve():
        raise ValueError(f"{path} is given for the tasks and for the labeling interface; name two files")
    interface = _build_interface(table)
    with replacing(path, beside, overwrite=overwrite) as (temporary, temporary_beside):
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.write("[")
            for number, task in enumerate(_build_tasks(table, audit)):
                text = json.dumps(task, ensure_ascii=False, allow_nan=False)
                file.write(f"{',' if number else ''}\n{text}")
            file.write("\n]\n")
        temporary_beside.write_text(interface + "\n", encoding="utf-8", newline="\n")


def check_label_names(names: Sequence[str]) -> None:
    """Raise a ValueError if a label cannot be written to the labeling interface."""
    if odd := [name for name in names if _NOT_IN_XML.intersection(name)]:
        raise ValueError(f"XML cannot hold labels with control characters, such as {odd[0]!r}; rename them")


def _build_interface(table: Table) -> str:
    check_label_names(table.label_names)
    shown = "image" if table.images is not None else "text" if table.texts is not None else "id"
    view = ElementTree.Element("View")
    kind = "Image" if shown == "image" else "Text"
    ElementTree.SubElement(view, kind, {"name": "item", "value": f"${shown}"})
    choices = ElementTree.SubElement(
        view, "Choices", {"name": "labels", "toName": "item", "choice": "multiple"}
    )
    for name in table.label_names:
        ElementTree.SubElement(choices, "Choice", {"value": name})
    ElementTree.indent(view)
    return ElementTree.tostring(view, encoding="unicode")


def _build_tasks(table: Table, audit: Audit) -> Iterator[dict[str, Any]]:
    less_likely = np.minimum(audit.confidences, 1 - audit.confidences)
    scores = 1 - np.where(table.candidates > 0, less_likely, 0.0).max(axis=1, initial=0.0)
    kept = audit.clean_labels() > 0
    for row, score in enumerate(scores.tolist()):
        labels, choices = (
            [table.label_names[label] for label in np.flatnonzero(matrix[row])]
            for matrix in (table.candidates, kept)
        )
        data: dict[str, Any] = {"row": row, "id": table.ids[row], "labels": labels}
        if table.texts is not None:
            data["text"] = table.texts[row]
        if table.images is not None:
            data["image"] = table.images[row]
        result = {
            "from_name": "labels",
            "to_name": "item",
            "type": "choices",
            "value": {"choices": choices},
            "score": score,
        }
        prediction = {"model_version": "skpml", "score": score, "result": [result] if choices else []}
        yield {"data": data, "predictions": [prediction]}
