"""The review page as a file: data that cannot become markup, and payloads that are refused with the place named."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from review_helpers import large_payload, small_payload

from page_checker import PageChecker

pytest.importorskip("jinja2")

from skpml.review._page import render_review

NASTY = [
    "</script><script>window.broken = true</script>",
    "<!--<script>",
    "]]>",
    "\"'`&amp;",
    "\u2028\u2029\u0000\r\n\t",
    "\udce9 lone surrogate",
    "🌊 \\u003c \\",
]


def payload_of(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="payload">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])


@pytest.mark.parametrize("text", NASTY)
def test_any_text_comes_back_from_the_page_unchanged_and_adds_no_markup(text: str) -> None:
    payload = small_payload()
    payload.update(title=text, key=text, settings=[[text, text]])
    payload["labels"][0]["name"] = payload["labels"][1]["partner"] = text
    payload["items"][0].update(id=text, text=text, image=text)
    payload["cells"]["reason"][0] = text
    page = render_review(payload)
    assert payload_of(page) == payload
    checker = PageChecker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    # The data and the program: nothing else.
    assert checker.scripts == 2
    # What a file written as UTF-8 holds is the page.
    assert page.encode("utf-8").decode("utf-8") == page


def test_the_page_is_well_formed_and_every_reference_has_its_target() -> None:
    page = render_review(small_payload())
    checker = PageChecker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    assert len(set(checker.ids)) == len(checker.ids)
    described = re.findall(r'aria-(?:labelledby|describedby|controls)="([^"]+)"', page)
    assert described
    assert set(described) <= set(checker.ids)
    script = page[page.rindex("<script>") :]
    asked_for = set(re.findall(r'byId\("([\w-]+)"\)', script))
    assert asked_for
    assert asked_for <= set(checker.ids)


def test_nothing_in_the_page_can_be_asked_of_a_network_or_run_from_data() -> None:
    page = render_review(small_payload())
    assert re.findall(r"https?://|//\w+\.\w+", page) == []
    program = page[page.rindex("<script>") :]
    ways_in = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|fetch\(|XMLHttpRequest"
    )
    assert re.findall(ways_in, program) == []


def test_the_same_payload_gives_the_same_page() -> None:
    assert render_review(large_payload(300)) == render_review(large_payload(300))


def test_a_page_is_its_data_and_little_more() -> None:
    payload = large_payload(2000)
    data = len(json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode())
    assert len(render_review(payload).encode()) - data < 70_000


def test_a_page_without_cells_can_be_made() -> None:
    payload = small_payload()
    payload.update(items=[], cells={name: [] for name in payload["cells"]})
    assert payload_of(render_review(payload)) == payload


def change(*path: Any, value: Any) -> Any:
    def apply(payload: dict[str, Any]) -> None:
        part: Any = payload
        for step in path[:-1]:
            part = part[step]
        part[path[-1]] = value

    return apply


FAULTS = [
    (lambda payload: payload.pop("key"), "the payload of the review page lacks 'key'"),
    (lambda payload: payload["overview"].pop("low"), "overview of the review page lacks 'low'"),
    (lambda payload: payload["labels"][1].pop("partner"), "labels[1] of the review page lacks 'partner'"),
    (lambda payload: payload["items"][2].pop("row"), "items[2] of the review page lacks 'row'"),
    (lambda payload: payload["cells"].pop("reason"), "cells of the review page lacks 'reason'"),
    (
        lambda payload: payload["cells"]["reason"].pop(),
        "cells['reason'] has 4 entries and cells['item'] has 5",
    ),
    (
        change("items", 0, "tags", 1, value=3),
        "items[0]['tags'][1] of the review page is 3; it must be a position in labels, from 0 to 2",
    ),
    (
        change("cells", "item", 4, value=-1),
        "cells['item'][4] of the review page is -1; it must be a position in items, from 0 to 2",
    ),
    (
        change("cells", "label", 0, value=True),
        "cells['label'][0] of the review page is True; it must be a position in labels",
    ),
    (
        change("cells", "action", 2, value="delete"),
        "cells['action'][2] of the review page is 'delete'; it must be one of 'keep', 'drop'",
    ),
    (
        change("cells", "confidence", 1, value=float("nan")),
        "cells['confidence'][1] of the review page is nan; it must be a number from 0",
    ),
    (
        change("cells", "confidence", 1, value=1.5),
        "cells['confidence'][1] of the review page is 1.5; it must be a number from 0 to 1",
    ),
    (change("labels", 2, "name", value="sea"), "labels 0 and 2 of the review page have the same name, 'sea'"),
    (change("items", 1, "row", value=17), "items 0 and 1 of the review page have the same row, 17"),
    (
        change("cells", "label", 2, value=0),
        "cells 0 and 2 of the review page have the same pair of item and label, (0, 0)",
    ),
    (change("items", 1, "id", value=9), "items[1]['id'] of the review page is 9; it must be a string"),
    (
        change("items", 1, "row", value="9"),
        "items[1]['row'] of the review page is '9'; it must be a whole number",
    ),
    (
        change("items", 1, "text", value=9),
        "items[1]['text'] of the review page is 9; it must be a string or None",
    ),
    (
        change("cells", "reason", 0, value=None),
        "cells['reason'][0] of the review page is None; it must be a string",
    ),
    (change("title", value=None), "title of the review page is None; it must be a string"),
    (change("overview", "wrong", value=float("inf")), "must be plain values that JSON can hold"),
    (change("overview", "wrong", value={1}), "must be plain values that JSON can hold"),
]


@pytest.mark.parametrize(("spoil", "message"), FAULTS, ids=[message[:40] for _, message in FAULTS])
def test_a_faulty_payload_is_refused_with_its_place(spoil: Any, message: str) -> None:
    payload = copy.deepcopy(small_payload())
    spoil(payload)
    with pytest.raises(ValueError, match=re.escape(message)):
        render_review(payload)
