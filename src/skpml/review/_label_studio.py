"""Rows and labels for Label Studio: tasks with predictions, and the labelling interface that shows them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal
from xml.etree import ElementTree

import numpy as np

from skpml._writing import replacing
from skpml.cleaning._actions import benefit
from skpml.tables._labelled_table import LabelledTable

_NOT_IN_XML = {chr(code) for code in range(32)} - {"\t", "\n", "\r"} | {"\ufffe", "\uffff"}


def label_studio_tasks(
    table: LabelledTable,
    confidence: Any,
    keep: Any,
    *,
    from_name: str = "labels",
    to_name: str = "item",
    model_version: str = "skpml",
) -> Iterator[dict[str, Any]]:
    """Give one task a row, in Label Studio's format of predictions.

    The data of a task are the row, its id, its labels as they are in the file, and the text and the image where there
    are such columns. Its prediction chooses the labels that are kept. The score says how sure the row as a whole is: it
    is 1 less the largest benefit of a look at one of its labels, kept or not, that is, less the chance of the less likely
    answer where that is largest. Tasks in the order of their scores begin with the row most useful to check, at 0.5 or a
    little more; a row without labels has nothing to check, and 1.

    Parameters
    ----------
    table : LabelledTable
        The rows.
    confidence : array-like of shape (n_rows, n_labels)
        How sure the model is of each label, from 0 to 1.
    keep : array-like of bool of shape (n_rows, n_labels)
        True where a row should have a label.
    from_name, to_name : str
        Names of the control and of the object in the labelling interface; see `label_studio_config`.
    model_version : str, default="skpml"
        What Label Studio shows as the origin of the predictions.

    Yields
    ------
    dict
        A task, which JSON can hold.
    """
    shape = table.candidates.shape
    scores, kept = np.asarray(confidence, dtype=np.float64), np.asarray(keep)
    if scores.shape != shape or kept.shape != shape or kept.dtype != np.bool_:
        raise ValueError(
            f"confidence and keep must be matrices of shape {shape}, keep of booleans; got {scores.shape} and "
            f"{kept.dtype} of shape {kept.shape}"
        )
    bad = ~((scores >= 0) & (scores <= 1))
    if bad.any():
        row, label = np.argwhere(bad)[0]
        raise ValueError(
            f"confidence must be from 0 to 1, but row {row}, label {label} is {scores[row, label]}"
        )
    checked = np.where((table.candidates > 0) | kept, benefit(scores), 0.0)
    sureness = 1 - checked.max(axis=1, initial=0.0)
    return (
        _task(table, row, float(sureness[row]), np.flatnonzero(kept[row]), from_name, to_name, model_version)
        for row in range(shape[0])
    )


def _task(
    table: LabelledTable, row: int, score: float, kept: Any, from_name: str, to_name: str, model_version: str
) -> dict[str, Any]:
    data = {"row": row, "id": table.ids[row], "labels": _chosen(table, np.flatnonzero(table.candidates[row]))}
    if table.texts is not None:
        data["text"] = table.texts[row]
    if table.images is not None:
        data["image"] = table.images[row]
    result = {
        "from_name": from_name,
        "to_name": to_name,
        "type": "choices",
        "value": {"choices": _chosen(table, kept)},
        "score": score,
    }
    prediction = {"model_version": model_version, "score": score, "result": [result] if kept.size else []}
    return {"data": data, "predictions": [prediction]}


def _chosen(table: LabelledTable, labels: Any) -> list[str]:
    return [table.label_names[label] for label in labels]


def label_studio_config(
    label_names: Sequence[str],
    *,
    show: Literal["text", "image", "id"] = "text",
    from_name: str = "labels",
    to_name: str = "item",
) -> str:
    """Give the labelling interface for the tasks of `label_studio_tasks`, as XML.

    Parameters
    ----------
    label_names : sequence of str
        The labels to choose from.
    show : {"text", "image", "id"}, default="text"
        What of a task's data is shown.
    from_name, to_name : str
        Names of the control and of the object.

    Returns
    -------
    str

    Examples
    --------
    >>> from skpml.cleaning import label_studio_config
    >>> print(label_studio_config(["sea", "<sky>"]))
    <View>
      <Text name="item" value="$text" />
      <Choices name="labels" toName="item" choice="multiple">
        <Choice value="sea" />
        <Choice value="&lt;sky&gt;" />
      </Choices>
    </View>
    """
    if show not in ("text", "image", "id"):
        raise ValueError(f'show must be "text", "image" or "id", got {show!r}')
    if odd := [name for name in label_names if _NOT_IN_XML.intersection(name)]:
        raise ValueError(f"labels with control characters cannot stand in XML: {odd[0]!r}")
    view = ElementTree.Element("View")
    kind = "Image" if show == "image" else "Text"
    ElementTree.SubElement(view, kind, {"name": to_name, "value": f"${show}"})
    choices = ElementTree.SubElement(
        view, "Choices", {"name": from_name, "toName": to_name, "choice": "multiple"}
    )
    for name in label_names:
        ElementTree.SubElement(choices, "Choice", {"value": name})
    ElementTree.indent(view)
    return ElementTree.tostring(view, encoding="unicode")


def write_label_studio(
    table: LabelledTable,
    confidence: Any,
    keep: Any,
    path: str | Path,
    *,
    config: str | Path | None = None,
    from_name: str = "labels",
    to_name: str = "item",
    model_version: str = "skpml",
    overwrite: bool = False,
) -> None:
    """Write the tasks as a JSON file and the labelling interface beside it: both whole, or nothing.

    Parameters
    ----------
    table, confidence, keep, from_name, to_name, model_version
        See `label_studio_tasks`.
    path : path-like
        JSON file to write.
    config : path-like, optional
        XML file to write; by default the name of `path` with the suffix ``.xml``.
    overwrite : bool, default=False
        Replace files that exist.
    """
    path = Path(path)
    beside = path.with_suffix(".xml") if config is None else Path(config)
    if beside.resolve() == path.resolve():
        raise ValueError(f"{path} is named for the tasks and for the labelling interface; name two files")
    show: Literal["text", "image", "id"] = (
        "image" if table.images is not None else "text" if table.texts is not None else "id"
    )
    interface = label_studio_config(table.label_names, show=show, from_name=from_name, to_name=to_name)
    tasks = label_studio_tasks(
        table, confidence, keep, from_name=from_name, to_name=to_name, model_version=model_version
    )
    with replacing(path, beside, overwrite=overwrite) as (temporary, temporary_beside):
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.write("[")
            for number, task in enumerate(tasks):
                file.write(
                    (",\n" if number else "\n") + json.dumps(task, ensure_ascii=False, allow_nan=False)
                )
            file.write("\n]\n")
        temporary_beside.write_text(interface + "\n", encoding="utf-8", newline="\n")
