"""The review page in a browser: opened with an eye on what it logs and asks for, read and worked by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

WIDE = {"width": 1400, "height": 900}
ATTACK = "<img src=x onerror='window.attacked=1'><script>window.attacked=1</script>"


class Watched:
    """Opens pages, and gathers what they log, the dialogs they show and the addresses they ask for."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser
        self.contexts: list[Any] = []
        self.troubles: list[str] = []
        self.requests: list[str] = []
        self.allowed: set[str] = set()

    def open(self, file: Path, *, viewport: Any = WIDE, before: str = "", files: tuple[str, ...] = ()) -> Any:
        """Open a page; `files` are addresses beside it that it may ask for."""
        self.allowed.update({file.as_uri()}, (f"{file.parent.as_uri()}/{name}" for name in files))
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
        page.goto(file.as_uri())
        settle(page)
        return page


@contextmanager
def watched(browser: Any) -> Iterator[Watched]:
    """At the end no error was logged, no dialog shown and nothing asked for but what may be."""
    watch = Watched(browser)
    try:
        yield watch
    finally:
        for context in watch.contexts:
            context.close()
    assert watch.troubles == []
    assert {url for url in watch.requests if not url.startswith("blob:")} == watch.allowed


def settle(page: Any) -> None:
    """Wait until the page has looked what the browser keeps, and has drawn itself."""
    page.locator("body:not([aria-busy])").wait_for()


def reload(page: Any) -> None:
    page.reload()
    settle(page)


def listed(page: Any) -> list[tuple[str, str]]:
    """Tag and id of the rows in the document, from top to bottom."""
    rows = page.locator("#rows [role=row]").evaluate_all(
        """rows => rows.map(row => [Number(row.getAttribute("aria-rowindex")),
             row.querySelector(".tag-name").textContent, row.querySelector(".id").textContent])"""
    )
    return [(tag, item) for _, tag, item in sorted(rows)]


def current(page: Any) -> tuple[str, str]:
    """Tag and id of the current cell; the row that the grid names and the details agree."""
    row = page.locator(f"[id='{page.locator('#grid').get_attribute('aria-activedescendant')}']")
    assert row.get_attribute("aria-selected") == "true"
    assert page.locator("#rows [aria-selected=true]").count() == 1
    shown = (page.locator("#detail-label").inner_text(), page.locator("#detail-id").inner_text())
    assert (row.locator(".tag-name").inner_text(), row.locator(".id").inner_text()) == shown
    return shown


def progress(page: Any) -> str:
    return " ".join(page.locator(".progress p").inner_text().split())


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def exported(page: Any) -> str:
    """What *Export* writes for ``photos.csv``."""
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export").click()
    assert waiting.value.suggested_filename == "photos_decisions.csv"
    return Path(waiting.value.path()).read_bytes().decode("utf-8")
