"""Payloads of the review page: one with a few cells to count by hand, one that looks like a real file, of any size."""

from __future__ import annotations

import random
from typing import Any

NAMES = ["sea", "lake", "tree", "mountain", "snow", "city", "night", "people", "dog", "flower"]
PARTNERS = {
    "sea": "lake",
    "lake": "sea",
    "tree": "flower",
    "mountain": "snow",
    "snow": "mountain",
    "city": "night",
}
SCENES = [
    "A quiet bay at low tide, two boats on the sand and a row of pines behind the wall",
    "Early frost on the ridge above the village, seen from the southern path",
    "Street market after dark; lamps, wet stones, a crowd in front of the fish stall",
    "The dog waits by the garden gate while the tulips are being watered",
    "Still water between the hills, no wind, the far shore doubled in the surface",
]


def make_label(name: str, candidates: int, wrong: float) -> dict[str, Any]:
    half = 0.15 * wrong + 2
    return {
        "name": name,
        "candidates": candidates,
        "wrong": wrong,
        "low": max(0, round(wrong - half)),
        "high": round(wrong + half),
        "partner": PARTNERS.get(name),
    }


def small_payload() -> dict[str, Any]:
    """Three items and five cells."""
    return {
        "title": "photos.csv",
        "key": "photos-1",
        "settings": [["method", "candidate likelihood"], ["folds", "5"]],
        "overview": {"rows": 200, "labels": 3, "candidates": 410, "wrong": 61.4, "low": 52, "high": 70},
        "labels": [make_label("sea", 120, 30.2), make_label("lake", 90, 7.26), make_label("tree", 200, 24.0)],
        "items": [
            {"id": "b10.jpg", "row": 17, "text": "Boats in the bay", "image": None, "tags": [0, 1]},
            {"id": "b9.jpg", "row": 3, "text": None, "image": None, "tags": [0, 2]},
            {"id": "a1.jpg", "row": 5, "text": "A forest, and a bay", "image": None, "tags": [0, 1, 2]},
        ],
        "cells": {
            "item": [0, 1, 0, 2, 2],
            "label": [0, 2, 1, 1, 0],
            "confidence": [0.48, 0.07, 0.93, 0.5, 0.0625],
            "action": ["ask", "drop", "keep", "ask", "drop"],
            "reason": ["first reason", "second reason", "third reason", "fourth reason", "fifth reason"],
        },
    }


def large_payload(n_cells: int, *, seed: int = 0) -> dict[str, Any]:
    """Cells in the shape of a real audit: two for each item, the less certain ones first."""
    rng = random.Random(seed)
    items: list[dict[str, Any]] = []
    rows: list[tuple[int, int, float, str, str]] = []
    for number in range((n_cells + 1) // 2):
        tags = sorted(rng.sample(range(len(NAMES)), 3))
        text = (
            f"{rng.choice(SCENES)}, {rng.choice(['May', 'June', 'August', 'October'])} {1990 + number % 30}"
        )
        items.append(
            {"id": f"img_{number:05d}.jpg", "row": 3 * number, "text": text, "image": None, "tags": tags}
        )
        for label in rng.sample(tags, 2):
            confidence = round(rng.betavariate(0.8, 1.1), 4)
            action = "drop" if confidence < 0.2 else "keep" if confidence > 0.8 else "ask"
            carry = rng.randint(0, 10)
            other = PARTNERS.get(NAMES[label], "people")
            reason = (
                f"{carry} of its 10 nearest neighbours carry “{NAMES[label]}”; the model gives it {confidence:.2f} and "
                f"“{other}” {min(0.99, 1.1 - confidence):.2f}, which explains the row better."
            )
            rows.append((number, label, confidence, action, reason))
    rows = sorted(rows[:n_cells], key=lambda row: abs(row[2] - 0.5) + 0.4 * rng.random())
    columns = [list(column) for column in zip(*rows, strict=True)]
    labels = [make_label(name, rng.randint(250, 1400), round(rng.uniform(8, 240), 1)) for name in NAMES]
    return {
        "title": "holiday_photos.csv",
        "key": f"holiday-{n_cells}-{seed}",
        "settings": [["method", "candidate likelihood"], ["folds", "5"], ["seed", "0"], ["rows", "20,000"]],
        "overview": {
            "rows": 20000,
            "labels": len(NAMES),
            "candidates": sum(label["candidates"] for label in labels),
            "wrong": sum(label["wrong"] for label in labels),
            "low": sum(label["low"] for label in labels),
            "high": sum(label["high"] for label in labels),
        },
        "labels": labels,
        "items": items,
        "cells": dict(zip(["item", "label", "confidence", "action", "reason"], columns, strict=True)),
    }
