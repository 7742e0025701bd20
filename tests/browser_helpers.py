"""What tests in a real browser share: how Chromium is started, and how well text can be read."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# SKPML_CHROMIUM names another browser; where it is empty, tests that need one are skipped.
CHROMIUM = (
    os.environ.get("SKPML_CHROMIUM", shutil.which("chromium") or shutil.which("chromium-browser")) or None
)
ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
)  # fmt: skip


@contextmanager
def chromium() -> Iterator[Any]:
    """A running browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        held = driver.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield held
        held.close()


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, as the guidelines for accessible pages reckon it."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)
