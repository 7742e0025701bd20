"""What the review page is given: an audit of a table, as plain values."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from skpml.cleaning._actions import ASK
from skpml.cleaning._audit import Audit, Doubt
from skpml.tables._labelled_table import LabelledTable

# Tags that a page can list without a pause.
MOST_CELLS = 50_000


def doubts_to_show(found: Audit) -> list[Doubt]:
    """All doubts; where they are too many for a page, the most useful of those that a person is asked about."""
    if len(found.doubts) <= MOST_CELLS:
        return found.doubts
    return [doubt for doubt in found.doubts if doubt.action == ASK][:MOST_CELLS]


def review_payload(
    table: LabelledTable, found: Audit, *, settings: Sequence[tuple[str, str]] = ()
) -> dict[str, Any]:
    """The payload of :func:`skpml.cleaning.render_review`.

    Where more than 50,000 tags are doubted, those that are dropped anyway are left out, and the most useful 50,000 of the
    others are taken.

    Parameters
    ----------
    table : LabelledTable
    found : Audit
        Of the rows of the table.
    settings : sequence of (name, text)
        How the audit was made, for the reader.
    """
    doubts = doubts_to_show(found)
    rows = list(dict.fromkeys(doubt.row for doubt in doubts))
    item = {row: place for place, row in enumerate(rows)}
    estimate, low, high = found.wrong.total
    counts = table.candidates.sum(axis=0)
    doubted = {doubt.label for doubt in found.doubts}
    return {
        "title": table.path.name,
        "key": _key(table, found),
        "settings": [[name, text] for name, text in settings],
        "overview": {
            "rows": len(table.candidates),
            "labels": len(table.label_names),
            "candidates": int(counts.sum()),
            "wrong": round(estimate, 1),
            "low": round(low, 1),
            "high": round(high, 1),
        },
        "labels": [
            {
                "name": name,
                "candidates": int(counts[label]),
                "wrong": round(float(found.wrong.estimate[label]), 1),
                "low": round(float(found.wrong.low[label]), 1),
                "high": round(float(found.wrong.high[label]), 1),
                "partner": found.partners[label] if label in doubted else None,
            }
            for label, name in enumerate(table.label_names)
        ],
        "items": [
            {
                "id": table.ids[row],
                "row": row,
                "text": None if table.texts is None else table.texts[row],
                "image": None if table.images is None else table.images[row],
                "tags": np.flatnonzero(table.candidates[row]).tolist(),
            }
            for row in rows
        ],
        "cells": {
            "item": [item[doubt.row] for doubt in doubts],
            "label": [doubt.label for doubt in doubts],
            "confidence": [round(doubt.confidence, 4) for doubt in doubts],
            "action": [doubt.action for doubt in doubts],
            "reason": [str(doubt.reason) for doubt in doubts],
        },
    }


def _key(table: LabelledTable, found: Audit) -> str:
    """The same for the same file and the same doubts, so that decisions are found again."""
    content = hashlib.sha256()
    for part in (table.path.name, *table.ids, *table.label_names):
        # A file name may hold bytes that are no text.
        content.update(part.encode("utf-8", "surrogatepass"))
        content.update(b"\0")
    content.update(np.ascontiguousarray(table.candidates).tobytes())
    content.update(repr([(doubt.row, doubt.label) for doubt in found.doubts]).encode())
    return content.hexdigest()[:24]
