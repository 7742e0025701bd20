"""Payloads of the review page, and the page in a browser: what it logs and requests, read and used by keyboard."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from skpml.review._page import _fill_template

NAMES = ["sea", "lake", "tree", "mountain", "snow", "city", "night", "people", "dog", "flower"]
SCREENS = [(width, scheme) for width in (1280, 768, 390) for scheme in ("light", "dark")]
ATTACK = "<img src=x onerror='window.attacked=1'><script>window.attacked=1</script>"


def make_label(
    name: str, candidates: int, wrong: float, low: float, high: float, partner: Any = None
) -> dict[str, Any]:
    return {
        "name": name, "candidates": candidates, "wrong": wrong, "low": low, "high": high, "partner": partner,
    }  # fmt: skip


def make_item(row: int, name: str, tags: list[int], text: str | None = None) -> dict[str, Any]:
    return {"id": name, "row": row, "text": text, "image": None, "tags": tags}


def no_batch() -> dict[str, Any]:
    """The parts of a payload without a batch and without earlier decisions."""
    columns = ("id", "row", "label", "decision", "confidence", "byModel", "drawn")
    return {
        "batch": {"drawn": [], "tags": 410, "sample": 0, "wrong": 0},
        "earlier": {name: [] for name in columns},
        "evidence": {name: [] for name in ("with", "without", "supporting", "opposing")},
        "examples": [],
        "votes": None,
        "kept": {"listed": 0, "all": 0},
    }


def batch_payload() -> dict[str, Any]:
    """Six cells to check, of which four were drawn at random after ten others; two other doubts; two decisions."""
    payload = small_payload()
    payload["key"] = "photos-batch"
    payload["items"] += [make_item(8, "c8.jpg", [1, 2], "A lake"), make_item(11, "d11.jpg", [0], "The sea")]
    payload["cells"] = {
        "item": [3, 0, 4, 1, 2, 3, 1, 2],
        "label": [1, 0, 0, 0, 2, 2, 2, 0],
        "confidence": [0.9, 0.48, 0.8, 0.7, 0.55, 0.51, 0.07, 0.0625],
        "action": [""] * 6 + ["drop", "drop"],
        "reason": [""] * 6 + ["seventh reason", "eighth reason"],
    }
    payload["batch"] = {"drawn": [11, 12, 13, 15, 0, 0], "tags": 410, "sample": 10, "wrong": 2}
    payload["earlier"] = {
        "id": ["e.jpg", 'f, "g"'],
        "row": [20, 21],
        "label": [0, 2],
        "decision": ["keep", "drop"],
        "confidence": [0.25, None],
        "byModel": [False, True],
        "drawn": [1, 0],
    }
    return payload


def small_payload() -> dict[str, Any]:
    """Three items and five cells."""
    return {
        "title": "photos.csv",
        "key": "photos-1",
        "settings": [["method", "candidate likelihood"], ["folds", "5"]],
        "overview": {
            "rows": 200, "labels": 3, "candidates": 410, "basis": "random noise", "wrong": 61.4, "low": 52, "high": 70,
        },
        "labels": [
            make_label("sea", 120, 30.2, 24, 37, "lake"),
            make_label("lake", 90, 7.26, 4, 10, "sea"),
            make_label("tree", 200, 24.0, 18, 30),
        ],
        "items": [
            make_item(17, "b10.jpg", [0, 1], "Boats in the bay"),
            make_item(3, "b9.jpg", [0, 2]),
            make_item(5, "a1.jpg", [0, 1, 2], "A forest, and a bay"),
        ],
        "cells": {
            "item": [0, 1, 0, 2, 2],
            "label": [0, 2, 1, 1, 0],
            "confidence": [0.48, 0.07, 0.93, 0.5, 0.0625],
            "action": ["ask", "drop", "keep", "ask", "drop"],
            "reason": ["first reason", "second reason", "third reason", "fourth reason", "fifth reason"],
        },
        **no_batch(),
    }  # fmt: skip


def large_payload(n_cells: int) -> dict[str, Any]:
    """Two cells per item, with texts of usual length."""
    rng = random.Random(0)
    items, rows = [], []
    for number in range((n_cells + 1) // 2):
        tags = sorted(rng.sample(range(len(NAMES)), 3))
        text = f"Street market after dark; lamps, wet stones, a crowd at the fish stall, {1990 + number % 30}"
        items.append(make_item(3 * number, f"img_{number:05d}.jpg", tags, text))
        for label in rng.sample(tags, 2):
            confidence = round(rng.betavariate(0.8, 1.1), 4)
            action = "drop" if confidence < 0.2 else "keep" if confidence > 0.8 else "ask"
            rows.append(
                (number, label, confidence, action, f"{label} of 10 similar rows have it (12% of all)")
            )
    rows = sorted(rows[:n_cells], key=lambda row: abs(row[2] - 0.5))
    columns = [list(column) for column in zip(*rows, strict=True)]
    return {
        "title": "holiday_photos.csv",
        "key": f"holiday-{n_cells}",
        "settings": [["folds", "5"]],
        "overview": {
            "rows": 20000, "labels": 10, "candidates": 9000, "basis": "sample", "wrong": 900, "low": 800, "high": 1000,
        },
        "labels": [make_label(name, 900, 90.0, 80, 100) for name in NAMES],
        "items": items,
        "cells": dict(zip(["item", "label", "confidence", "action", "reason"], columns, strict=True)),
        **no_batch(),
    }  # fmt: skip


class Watched:
    """Opens pages, and collects what they log, the dialogs they show and the addresses they request."""

    def __init__(self, browser: Any, folder: Path) -> None:
        self.browser = browser
        self.file = folder / "review.html"
        self.contexts: list[Any] = []
        self.troubles: list[str] = []
        self.requests: list[str] = []
        self.allowed: set[str] = set()

    def __call__(
        self,
        payload: dict[str, Any] | None = None,
        *,
        width: int = 1400,
        height: int = 900,
        before: str = "",
        files: tuple[str, ...] = (),
    ) -> Any:
        """Open the page of a payload, or the one that is there; it may request `files` next to it."""
        if payload is not None:
            self.file.write_text(_fill_template(payload), encoding="utf-8")
        self.allowed.update(f"{self.file.parent.as_uri()}/{name}" for name in (self.file.name, *files))
        viewport = {"width": width, "height": height}
        context = self.browser.new_context(viewport=viewport, reduced_motion="reduce")
        self.contexts.append(context)
        page = context.new_page()
        # Ample: the machine may be busy with other tests.
        page.set_default_timeout(20_000)
        page.on("console", lambda message: self.troubles.append(message.text))
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("dialog", lambda dialog: (self.troubles.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: self.requests.append(request.url))
        if before:
            page.add_init_script(before)
        page.goto(self.file.as_uri())
        settle(page)
        return page


@contextmanager
def watched(browser: Any, folder: Path) -> Iterator[Watched]:
    """At the end no error was logged, no dialog shown, and nothing requested but what is allowed."""
    watch = Watched(browser, folder)
    try:
        yield watch
    finally:
        for context in watch.contexts:
            context.close()
    assert watch.troubles == []
    assert {url for url in watch.requests if not url.startswith("blob:")} == watch.allowed


def settle(page: Any) -> None:
    """Wait until the page has read the storage and drawn itself."""
    page.locator("body:not([aria-busy])").wait_for()


def reload(page: Any) -> None:
    page.reload()
    settle(page)


def listed(page: Any) -> list[tuple[str, str]]:
    """Tag and id of all rows, from top to bottom."""
    rows = page.locator("#rows [role=row]").evaluate_all(
        """rows => rows.map(row => [row.getAttribute("aria-rowindex"),
             row.querySelector(".tag-name").textContent, row.querySelector(".id").textContent])"""
    )
    assert [place for place, _, _ in rows] == [str(place) for place in range(2, len(rows) + 2)]
    return [(tag, item) for _, tag, item in rows]


def current(page: Any) -> tuple[str, str]:
    """Tag and id of the current cell; list and details agree on it."""
    row = page.locator(f"[id='{page.locator('#grid').get_attribute('aria-activedescendant')}']")
    assert row.get_attribute("aria-selected") == "true"
    assert page.locator("#rows [aria-selected=true]").count() == 1
    shown = (page.locator("#detail-label").text_content(), page.locator("#detail-id").text_content())
    # Not their inner text, which is empty until the browser has drawn the row.
    assert (row.locator(".tag-name").text_content(), row.locator(".id").text_content()) == shown
    return shown


def progress(page: Any) -> tuple[int, int]:
    """Numbers of kept and dropped cells."""
    ids = ("kept", "dropped", "words")
    words = [page.locator(f"#progress-{name}").inner_text().split()[0] for name in ids]
    kept, dropped, decided = (int(word.replace(",", "")) for word in words)
    assert decided == kept + dropped
    return kept, dropped


def open_detail(page: Any) -> None:
    """On a phone, the details open when a row is touched."""
    if not page.locator("#detail").is_visible():
        page.locator("#rows [role=row]").first.click()


def find_violations(page: Any) -> list[str]:
    """What axe-core finds."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is missing"
    )
    violations = axe.Axe().run(page).response["violations"]
    return [f"{found['id']}: {node['html'][:120]}" for found in violations for node in found["nodes"]]


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def choose_command(page: Any, name: str) -> None:
    page.locator("header .menu summary").click()
    page.get_by_role("button", name=name).click()


def choose_bulk(page: Any, name: str) -> None:
    """Do something with all listed tags: accept, keep, drop or export."""
    page.locator("#bulk summary").click()
    page.locator(f"#bulk-{name}").click()


def read_notice(page: Any) -> str:
    """The message of the page, which is closed."""
    text = page.locator("#notices p").inner_text()
    page.locator("#notices button").click()
    return text


def import_text(page: Any, text: str, name: str = "other.csv") -> str:
    """Import a file of decisions and return the message of the page."""
    page.set_input_files("#import-file", {"name": name, "mimeType": "text/csv", "buffer": text.encode()})
    return read_notice(page)


def export(page: Any) -> str:
    """What *Export* writes for ``photos.csv``."""
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export").first.click()
    assert waiting.value.suggested_filename == "photos_decisions.csv"
    return Path(waiting.value.path()).read_bytes().decode("utf-8")
