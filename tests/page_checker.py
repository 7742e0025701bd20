"""What every page of ours must be: well-formed, with ids that are unique, and no reference into the void."""

from __future__ import annotations

import re
from html.parser import HTMLParser

VOID = {"meta", "br", "input", "wbr", "link", "img"}


class PageChecker(HTMLParser):
    """Collects ids, references, scripts and text, and fails at what a browser would have to guess."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.scripts = 0
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self._note(tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)

    def _note(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        self.ids += [value or "" for name, value in attrs if name == "id"]
        assert not [name for name, _ in attrs if name.startswith("on") or name == "src"]
        for _, value in attrs:
            self.references += re.findall(r"^#(.+)$", value or "") + re.findall(r"url\(#(.+?)\)", value or "")

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
