"""The review page in a browser: find, decide, store, exchange; no error logged and no network request."""

from __future__ import annotations

import base64
import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from review_helpers import (
    ATTACK,
    NAMES,
    Watched,
    batch_payload,
    choose_bulk,
    choose_command,
    current,
    export,
    import_text,
    large_payload,
    listed,
    press,
    progress,
    read_notice,
    reload,
    settle,
    small_payload,
    watched,
)
from scipy.stats import binomtest

from browser_helpers import CHROMIUM, chromium, contrast

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.slow,
]

HEADER = "id,row,label,decision,confidence\n"
ALL = [("sea", "b10.jpg"), ("tree", "b9.jpg"), ("lake", "b10.jpg"), ("lake", "a1.jpg"), ("sea", "a1.jpg")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Watched]:
    with watched(browser, tmp_path) as watch:
        yield watch


def select(page: Any, name: str, value: str) -> None:
    page.get_by_role("combobox", name=name, exact=True).select_option(label=value)


@pytest.mark.slow
def test_overview(show: Watched) -> None:
    page = show(small_payload())
    assert page.locator("h1").inner_text() == "photos.csv"
    assert page.locator("#sentence").inner_text() == (
        "About 61 of 410 tags are wrong (52 to 70), if wrong tags are random, as they seem to be. "
        "2 need you, 2 will be dropped."
    )
    entries = page.locator("#labels button").all_inner_texts()
    # The most wrong tags first.
    assert [entry.split("\n")[0] for entry in entries] == ["sea", "tree", "lake"]
    assert "about 7.3 of 90 wrong (4 to 10)" in entries[2]
    assert "often correct instead: sea" in entries[2]
    # All bars have one scale: shares of the label with the most tags.
    bars = page.locator("#labels .plot").first.evaluate(
        "plot => Array.from(plot.children, bar => [bar.offsetLeft, bar.offsetWidth].map(x => x / plot.clientWidth))"
    )
    expected = [(0, 120 / 200), (0, 30.2 / 200), (24 / 200, 13 / 200)]
    for bar, wanted in zip(bars, expected, strict=True):
        assert bar == pytest.approx(wanted, abs=0.01)
    page.get_by_text("How this was made").click()
    assert "candidate likelihood" in page.locator("#settings").inner_text()


@pytest.mark.slow
def test_filters_search_and_sort(show: Watched) -> None:
    page = show(small_payload())
    assert listed(page) == ALL
    tree = page.get_by_role("button", name=re.compile("^tree"))
    tree.click()
    assert listed(page) == [ALL[1]]
    assert tree.get_attribute("aria-pressed") == "true"
    tree.click()
    assert listed(page) == ALL
    select(page, "Suggested", "drop")
    assert listed(page) == [ALL[1], ALL[4]]
    select(page, "Tag", "sea")
    assert listed(page) == [ALL[4]]
    page.get_by_role("button", name="Show all").first.click()
    assert listed(page) == ALL
    searches = {"BAY": [0, 2, 3, 4], "bay forest": [3, 4], "b9": [1], "lake bay": [2, 3], "xyz": []}
    for words, places in searches.items():
        page.get_by_role("searchbox").fill(words)
        assert page.locator("#shown").inner_text() == f"{len(places)} of 5"
        assert listed(page) == [ALL[place] for place in places]
    assert page.get_by_text("No tag matches.").is_visible()
    page.locator("#clear").click()
    orders = {
        "doubted": [4, 1, 0, 3, 2],
        "believed": [2, 3, 0, 1, 4],
        "label": [2, 3, 0, 4, 1],
        "id": [3, 4, 1, 0, 2],
    }
    for name, places in orders.items():
        page.locator("#sort").select_option(name)
        assert listed(page) == [ALL[place] for place in places], name
    press(page, "/")
    page.keyboard.type("b9")
    press(page, "Enter", "x")
    assert listed(page) == [ALL[1]]
    assert progress(page) == (0, 1)


@pytest.mark.slow
def test_decide_undo_and_skip_by_keyboard(show: Watched) -> None:
    page = show(small_payload())
    assert current(page) == ALL[0]
    press(page, "y")
    assert current(page) == ALL[1]
    press(page, "x", "j", "x")
    assert current(page) == ALL[4]
    assert progress(page) == (1, 2)
    assert page.locator("#status").inner_text() == "dropped: lake, a1.jpg. 3 of 5 decided"
    press(page, "Space")
    assert current(page) == ALL[2]
    press(page, "Enter")
    assert current(page) == ALL[4]
    press(page, "u", "Control+z")
    assert current(page) == ALL[1]
    assert progress(page) == (1, 0)
    press(page, "u", "u")
    assert progress(page) == (0, 0)
    assert page.locator("#undo").get_attribute("aria-disabled") == "true"
    press(page, "End", "y")
    # The last row has no next one: it stays, and can be changed.
    assert current(page) == ALL[4]
    press(page, "x", "ArrowUp", "ArrowUp", "ArrowDown")
    assert current(page) == ALL[3]
    press(page, "PageUp")
    assert current(page) == ALL[0]
    press(page, "/")
    page.keyboard.type("xuk")
    assert page.get_by_role("searchbox").input_value() == "xuk"
    press(page, "Control+a", "Delete", "Escape")
    assert page.evaluate("document.activeElement.id") == "grid"
    press(page, "?")
    assert page.locator("#help").is_visible()
    press(page, "x", "Escape")
    assert not page.locator("#help").is_visible()
    assert progress(page) == (0, 1)


def test_a_key_held_down_decides_only_once(show: Watched) -> None:
    page = show(small_payload())
    for _ in range(3):  # without a release, the second and third are repeats
        page.keyboard.down("x")
    page.keyboard.up("x")
    assert progress(page) == (0, 1)
    for _ in range(3):
        page.keyboard.down("j")
    page.keyboard.up("j")
    assert current(page) == ALL[4]


@pytest.mark.slow
def test_single_letters_can_be_switched_off(show: Watched) -> None:
    page = show(small_payload())
    press(page, "?")
    page.get_by_role("checkbox", name="Single letters are commands").uncheck()
    press(page, "Escape", "y", "x")
    assert progress(page) == (0, 0)
    reload(page)
    press(page, "y")
    assert progress(page) == (0, 0)
    page.get_by_role("button", name="Keep").click()
    assert progress(page) == (1, 0)


@pytest.mark.slow
def test_the_keyboard_reaches_every_visible_control(show: Watched) -> None:
    page = show(small_payload())
    wanted = set(
        page.evaluate(
            """Array.from(document.querySelectorAll("button, select, input, summary, [tabindex='0']"))
              .filter(e => e.tabIndex >= 0 && e.offsetParent && !e.closest("details:not([open]) > :not(summary)"))
              .map((e, place) => { e.dataset.stop = place; return String(place); })"""
        )
    )
    assert len(wanted) > 15
    reached = set()
    for _ in range(len(wanted) + 3):
        press(page, "Tab")
        reached.add(page.evaluate("document.activeElement.dataset.stop ?? ''"))
    assert wanted <= reached


@pytest.mark.slow
def test_buttons_and_other_tags_of_the_item(show: Watched) -> None:
    page = show(small_payload())
    page.get_by_role("button", name="Drop").click()
    assert progress(page) == (0, 1)
    page.get_by_role("button", name="Undo").click()
    assert current(page) == ALL[0]
    assert page.locator("#detail-text").inner_text() == "Boats in the bay"
    assert page.locator("#detail-reason").inner_text() == "first reason"
    assert page.locator("#detail-confidence").inner_text() == "0.48"
    tags = page.locator("#detail-tags li")
    assert tags.all_inner_texts() == ["sea\n0.48, undecided", "lake\n0.93, undecided"]
    page.locator("#detail-tags button").click()
    assert current(page) == ALL[2]
    press(page, "y", "ArrowUp", "ArrowUp")
    assert not page.locator("#detail-text").is_visible()
    assert tags.all_inner_texts() == ["sea\nnot doubtful", "tree\n0.07, undecided"]
    page.locator("#rows [role=row]", has_text="a1.jpg").first.click()
    assert current(page) == ALL[3]
    page.get_by_role("button", name="Skip").click()
    assert current(page) == ALL[4]


@pytest.mark.slow
def test_a_list_of_undecided_tags_follows_the_decisions(show: Watched) -> None:
    page = show(small_payload())
    select(page, "Decision", "undecided")
    page.locator("#grid").focus()
    press(page, "ArrowDown", "y")
    assert listed(page) == [ALL[0], *ALL[2:]]
    assert current(page) == ALL[2]
    press(page, "End", "x")
    assert current(page) == ALL[3]
    press(page, "u")
    assert current(page) == ALL[4]
    for state in ("kept", "decided"):
        select(page, "Decision", state)
        assert listed(page) == [ALL[1]]


LOCKS = {
    "granted": "",
    "slow": """
      let granted = false;
      const storage = Object.getOwnPropertyDescriptor(window, "localStorage");
      const request = navigator.locks.request.bind(navigator.locks);
      navigator.locks.request = async (...options) => {
        await new Promise((resolve) => setTimeout(resolve, 300));
        granted = true;
        return request(...options);
      };
      Object.defineProperty(window, "localStorage", {get() {
        if (!granted) window.early = true;
        return storage.get.call(window);
      }});""",
    "absent": "Object.defineProperty(navigator, 'locks', {value: undefined});",
    "refused": "Object.defineProperty(navigator, 'locks', {value: {request: () => Promise.reject(new Error())}});",
    "never": "Object.defineProperty(navigator, 'locks', {value: {request: () => new Promise(() => {})}});",
}


@pytest.mark.parametrize("locks", LOCKS)
@pytest.mark.slow
def test_decisions_are_stored(show: Watched, locks: str) -> None:
    """The storage is not used before the browser has granted a lock, if it grants any."""
    page = show(small_payload(), before=LOCKS[locks])
    press(page, "y", "x")
    reload(page)
    assert progress(page) == (1, 1)
    assert page.locator("#rows .kept, #rows .dropped").count() == 2
    assert page.evaluate("window.early") is None


@pytest.mark.slow
def test_decisions_are_stored_by_key_and_shared_by_windows(show: Watched) -> None:
    page = show(small_payload())
    other = page.context.new_page()
    other.goto(page.url)
    settle(other)
    has_progress = "words => document.getElementById('progress-words').textContent.startsWith(words)"
    press(other, "y", "x")
    page.wait_for_function(has_progress, arg="2 of 5")
    press(page, "End", "x")
    other.wait_for_function(has_progress, arg="3 of 5")
    content = show.file.read_text(encoding="utf-8")
    show.file.write_text(content.replace("photos-1", "photos-2"), encoding="utf-8")
    reload(page)
    assert progress(page) == (0, 0)


@pytest.mark.slow
def test_a_browser_that_refuses_storage(show: Watched) -> None:
    refuse = "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('', 'SecurityError'); }});"
    page = show(small_payload(), before=refuse)
    assert page.locator("#storage-note").is_visible()
    press(page, "y", "x", "u")
    page.close(run_before_unload=True)
    page.wait_for_timeout(100)
    # The browser has asked whether to leave; the answer was no.
    assert show.troubles == [""]
    show.troubles.clear()
    assert export(page) == HEADER + "b10.jpg,17,sea,keep,0.48\n"
    with page.expect_event("close"):
        page.close(run_before_unload=True)


@pytest.mark.slow
def test_the_export_is_exact_and_can_be_imported(show: Watched) -> None:
    payload = small_payload()
    awkward = ['he said "no", twice', "=1+1", " blank before", "line\r\nbreak", "naïve 🌊"]
    payload["labels"][0]["name"], payload["labels"][1]["name"] = awkward[:2]
    for item, name in zip(payload["items"], awkward[2:], strict=True):
        item["id"] = name
    payload["cells"]["confidence"][0] = 1e-7
    page = show(payload)
    press(page, "y", "x", "x", "ArrowDown", "y")
    text = export(page)
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert rows == [
        ["id", "row", "label", "decision", "confidence"],
        [awkward[2], "17", awkward[0], "keep", "1e-7"],
        [awkward[3], "3", "tree", "drop", "0.07"],
        [awkward[2], "17", awkward[1], "drop", "0.93"],
        [awkward[4], "5", awkward[0], "keep", "0.0625"],
    ]
    choose_command(page, "Delete my decisions")
    reload(page)
    assert progress(page) == (0, 0)
    assert import_text(page, text).startswith("other.csv: 4 decisions read, 4 of them new.")
    assert export(page) == text
    # As a spreadsheet may write it: other orders of columns and rows, CRLF, quotes, a byte order mark.
    shuffled = [[row[place] for place in (3, 2, 1, 0, 4)] for row in [rows[0], *rows[:0:-1]]]
    again = io.StringIO(newline="")
    csv.writer(again, quoting=csv.QUOTE_ALL).writerows(shuffled)
    press(page, "u")
    assert progress(page) == (0, 0)
    import_text(page, "\ufeff" + again.getvalue())
    assert export(page) == text


@pytest.mark.slow
def test_the_export_mentions_suggested_drops_without_a_decision(show: Watched) -> None:
    payload = small_payload()
    payload["cells"]["action"] = ["drop", "drop", "ask", "keep", "ask"]
    page = show(payload)
    press(page, "y")
    export(page)
    assert "1 suggested drop left undecided will stay" in read_notice(page)
    press(page, "x")
    export(page)
    assert page.locator("#notices p").count() == 0


@pytest.mark.slow
def test_imports_that_add_change_and_fail(show: Watched) -> None:
    page = show(small_payload())
    press(page, "y", "y")
    lines = "b9.jpg,3,tree,drop,0.07\na1.jpg,5,sea,keep,\nb9.jpg,3,lake,drop,\nwrong.jpg,5,lake,drop,\n"
    message = import_text(page, HEADER + lines)
    assert "2 decisions read, 2 of them new. 2 lines skipped" in message
    assert progress(page) == (2, 1)
    press(page, "u")
    assert progress(page) == (2, 0)
    # If a file decides a tag twice, the last line counts.
    import_text(page, HEADER + "b9.jpg,3,tree,drop,\nb9.jpg,3,tree,keep,\n")
    assert progress(page) == (2, 0)
    failures = {
        "": "line 1: the header lacks id, row, label, decision",
        "id;row;label;decision\n": "line 1: the header lacks id, row, label, decision",
        HEADER + "b9.jpg,3,tree,drop,0.07\n\nb9.jpg,3,tree,maybe,\n": "line 4: the decision is “maybe”",
        HEADER + "b9.jpg,3,tree,undecided,\n": "line 2: the decision is “undecided”",
        HEADER + "b9.jpg,3,tree\n": "line 2: 3 fields",
        HEADER + 'b9.jpg,3,"tree,drop,\n': "line 2: a quotation mark is missing",
    }
    for text, problem in failures.items():
        assert import_text(page, text, "<b>bad</b>.csv").startswith(f"<b>bad</b>.csv was not read: {problem}")
        assert progress(page) == (2, 0)


@pytest.mark.slow
def test_suggestions_are_accepted_and_decisions_deleted_in_one_step(show: Watched) -> None:
    page = show(small_payload())
    press(page, "ArrowDown", "y")
    choose_bulk(page, "accept")
    assert read_notice(page).startswith("Accepted: 1 kept, 1 dropped.")
    # Nobody has checked a tag whose suggestion was accepted, and the file says so.
    lines = "b9.jpg,3,tree,keep,0.07,\nb10.jpg,17,lake,keep,0.93,model\na1.jpg,5,sea,drop,0.0625,model\n"
    assert export(page) == HEADER.replace("\n", ",by\n") + lines
    text = export(page)
    choose_command(page, "Delete my decisions")
    import_text(page, text)
    assert export(page) == text
    press(page, "Control+z", "Control+z")
    assert progress(page) == (2, 1)
    press(page, "Control+z")
    assert progress(page) == (1, 0)
    choose_command(page, "Delete my decisions")
    # The entry is hidden now, so its menu has the focus.
    assert page.evaluate("document.activeElement.textContent") == "More"
    assert progress(page) == (0, 0)
    press(page, "u")
    assert progress(page) == (1, 0)


def measure(page: Any, script: str) -> float:
    """Milliseconds that a script takes, including layout."""
    body = f"const start = performance.now(); {script}; document.body.offsetHeight; return performance.now() - start"
    return page.evaluate(f"() => {{ {body} }}")


def choose(name: str, value: str) -> str:
    field = f"document.getElementById('{name}')"
    return f"{field}.value = '{value}'; {field}.dispatchEvent(new Event('change'))"


@pytest.mark.parametrize("n_cells", [5000, 50_000])
@pytest.mark.slow
def test_large_pages_are_fast_and_list_a_bounded_number_of_rows(show: Watched, n_cells: int) -> None:
    payload = large_payload(n_cells)
    page = show(payload)
    # Ample limits: the machine may be busy with other tests.
    assert page.evaluate("performance.now()") < 8000
    cells = payload["cells"]
    page.locator("#grid").focus()
    press(page, "End")
    assert current(page) == (NAMES[cells["label"][1999]], payload["items"][cells["item"][1999]]["id"])
    assert page.locator("#rows [role=row]").count() == 2000
    assert page.locator("#cap").is_visible()
    for order in ("id", "label", "doubted"):
        assert measure(page, choose("sort", order)) < 1500
    assert measure(page, choose("state", "undecided")) < 1500
    press(page, "Home")
    assert measure(page, "document.getElementById('keep').click()") < 500
    # A decided tag leaves the list, and another one enters at its end.
    assert page.locator("#shown").inner_text() == f"{n_cells - 1:,} of {n_cells:,}"
    assert page.locator("#rows [role=row]").count() == 2000
    # Commands apply to all tags, listed or not.
    choose_bulk(page, "accept")
    assert page.locator("#shown").inner_text() == f"{cells['action'].count('ask'):,} of {n_cells:,}"


@pytest.mark.parametrize("width", [320, 768, 1100, 1400])
@pytest.mark.slow
def test_the_page_is_never_wider_than_the_screen(show: Watched, width: int) -> None:
    payload = small_payload()
    payload["labels"][0]["name"] = "a_label_without_any_blank_" * 6
    payload["items"][0].update(id="path/" * 40, text="word" * 100)
    payload["title"] = "a_long_name_of_a_file_" * 10
    payload["overview"].update(candidates=10_000_000, wrong=1_234_567.8, low=1_000_000, high=2_000_000)
    page = show(payload, width=width, height=740)
    # As with fifty thousand cells.
    words = {"words": "49,999 of 50,000 decided", "kept": "24,999 kept", "dropped": "25,000 dropped"}
    for name, text in words.items():
        page.locator(f"#progress-{name}").evaluate("(element, text) => { element.textContent = text; }", text)
    page.locator("#rows [role=row]").first.click()
    assert page.locator("#detail-label").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    over = page.evaluate(
        """width => Array.from(document.querySelectorAll("button, select, input, h1, h2")).filter(
             e => e.offsetParent && e.getBoundingClientRect().right > width + 1).map(e => e.id || e.textContent)""",
        width,
    )
    assert over == []


@pytest.mark.slow
def test_on_a_phone_the_details_are_a_sheet(show: Watched) -> None:
    page = show(small_payload(), width=360, height=640)
    assert not page.locator("#detail").is_visible()
    page.locator("#rows [role=row]").nth(1).click()
    assert page.locator("#detail-label").inner_text() == "tree"
    for name in ("Keep", "Drop", "Skip", "Undo", "Close the details"):
        box = page.get_by_role("button", name=name).bounding_box()
        assert min(box["width"], box["height"]) >= 44, name
        assert 0 <= box["x"] <= 360 - box["width"], name
        assert box["y"] + box["height"] <= 640, name
    page.get_by_role("button", name="Drop").click()
    assert page.locator("#detail-label").inner_text() == "lake"
    # The current row is visible above the sheet.
    row, sheet = (page.locator(place).bounding_box() for place in ("#rows [aria-selected=true]", "#detail"))
    assert row["y"] + row["height"] <= sheet["y"] + 1
    page.get_by_role("button", name="Close the details").click()
    assert not page.locator("#detail").is_visible()
    page.get_by_role("button", name="Filters").click()
    select(page, "Decision", "dropped")
    assert listed(page) == [ALL[1]]
    page.get_by_role("button", name="Overview").click()
    page.get_by_role("button", name=re.compile("^lake")).click()
    assert not page.locator("#overview").is_visible()
    assert page.get_by_text("No tag matches.").is_visible()


@pytest.mark.slow
def test_on_a_phone_in_landscape_list_and_buttons_are_visible(show: Watched) -> None:
    page = show(small_payload(), width=640, height=360)
    assert page.evaluate("document.documentElement.scrollWidth") <= 640
    assert page.evaluate("document.documentElement.scrollHeight") <= 360
    commands = (
        f"[data-command={name}] >> nth=0" for name in ("keep", "drop", "skip", "undo", "exportDecisions")
    )
    for place in (*commands, "#rows [aria-selected=true]", "#detail-label"):
        box = page.locator(place).bounding_box()
        assert 0 <= box["y"] <= 360 - box["height"], place
        assert box["x"] + box["width"] <= 640, place


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.slow
def test_text_has_contrast(show: Watched, scheme: str) -> None:
    page = show(small_payload())
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    press(page, "y", "x", "ArrowUp")
    choose_bulk(page, "accept")
    page.get_by_role("button", name=re.compile("^lake")).hover()
    found = page.evaluate(
        """() => {
          const background = (element) => {
            for (let e = element; e; e = e.parentElement) {
              const color = getComputedStyle(e).backgroundColor;
              if (!/, 0\\)$|transparent/.test(color)) return color;
            }
            return "rgb(255, 255, 255)";
          };
          const hasText = (e) => Array.from(e.childNodes).some(n => n.nodeType === 3 && n.data.trim());
          return Array.from(document.querySelectorAll("body *"))
            .filter(e => e.checkVisibility() && hasText(e) && !e.matches("script, .unseen"))
            .map(e => [e.textContent.slice(0, 40), getComputedStyle(e).color, background(e)]);
        }"""
    )
    body = re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert (sum(map(int, body[:3])) < 200) == (scheme == "dark")
    assert len(found) > 60
    assert [entry for entry in found if contrast(entry[1], entry[2]) < 4.5] == []


@pytest.mark.slow
def test_markup_in_the_data_is_shown_as_text_and_never_run(show: Watched) -> None:
    payload = small_payload()
    payload.update(title=ATTACK, key=ATTACK, settings=[[ATTACK, ATTACK]])
    for label in payload["labels"]:
        label.update(name=label["name"] + ATTACK, partner=ATTACK)
    for item in payload["items"]:
        item.update(id=item["id"] + ATTACK, text=ATTACK)
    payload["cells"]["reason"] = [ATTACK] * 5
    page = show(payload)
    press(page, "y", "x", "j", "?", "Escape")
    page.locator("#rows [role=row]").nth(2).click()
    choose_bulk(page, "accept")
    page.wait_for_timeout(50)
    assert page.evaluate("window.attacked") is None
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    for place in ("h1", "#detail-text", "#detail-reason", "#detail-label", "#detail-id"):
        assert ATTACK in page.locator(place).inner_text()
    assert page.locator("#labels button").first.inner_text().count(ATTACK) == 2


# One black pixel.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="


@pytest.mark.slow
def test_only_an_image_next_to_the_page_is_requested(show: Watched, tmp_path: Path) -> None:
    (tmp_path / "my photos").mkdir()
    (tmp_path / "my photos" / "a#1 50%.png").write_bytes(base64.b64decode(PNG))
    payload = small_payload()
    images = ["my photos/a#1 50%.png", "https://example.org/b.png", "my photos/none.png"]
    for item, image in zip(payload["items"], images, strict=True):
        item["image"] = image
    page = show(payload, files=("my%20photos/a%231%2050%25.png", "my%20photos/none.png"))
    page.wait_for_function("() => document.querySelector('#detail-image img').naturalWidth === 1")
    press(page, "j")
    # A network address is shown, not requested.
    assert page.locator("#detail-image").inner_text() == images[1]
    press(page, "End")
    page.wait_for_function("() => document.querySelector('#detail-image code')")
    assert page.locator("#detail-image").inner_text().startswith(images[2])
    # Only the browser itself reports the missing file, for the image and for its thumbnail.
    assert show.troubles
    assert all("ERR_FILE_NOT_FOUND" in trouble for trouble in show.troubles)
    show.troubles.clear()


@pytest.mark.slow
def test_a_page_without_doubtful_tags(show: Watched) -> None:
    payload = small_payload()
    payload.update(items=[], cells={name: [] for name in payload["cells"]})
    page = show(payload)
    press(page, "y", "x", "u", "j", "Space", "End")
    assert page.get_by_text("No tag is doubtful.").is_visible()
    assert page.get_by_text("No tag is selected.").is_visible()
    assert progress(page) == (0, 0)


BATCH = [
    ("lake", "c8.jpg"), ("sea", "b10.jpg"), ("sea", "d11.jpg"), ("sea", "b9.jpg"), ("tree", "a1.jpg"), ("tree", "c8.jpg"),
]  # fmt: skip


@pytest.mark.slow
def test_the_batch_is_asked_first_and_nothing_suggests_an_answer(show: Watched) -> None:
    page = show(batch_payload())
    assert listed(page) == BATCH
    kinds = page.locator("#rows .kind").all_inner_texts()
    assert kinds == ["random sample"] * 4 + ["most informative"] * 2
    assert page.locator("#task").is_visible()
    assert page.locator("#tools").is_hidden()
    for place in BATCH:
        assert current(page) == place
        shown = page.locator("#list").inner_text() + page.locator("#detail").inner_text()
        assert not re.search(r"0\.\d|Confidence|Suggested|Reason|doubtful\n|reason", shown), shown
        press(page, "y")
        # Neither is it shown afterwards: a person may change the answer.
        assert page.locator("#facts").is_hidden()
    page.get_by_role("button", name="Other doubtful tags").click()
    assert listed(page) == [("tree", "b9.jpg"), ("sea", "a1.jpg")]
    assert page.locator("#detail-reason").inner_text() == "seventh reason"
    # A tag of the batch beside a doubtful one.
    assert page.locator("#detail-tags li").all_inner_texts() == ["sea\nkept", "tree\n0.07, undecided"]
    press(page, "x")
    # Undo leads to where the decision was made.
    press(page, "u", "u")
    assert current(page) == BATCH[5]
    assert page.locator("#task").is_visible()


@pytest.mark.slow
def test_progress_of_the_batch_and_what_comes_next(show: Watched) -> None:
    page = show(batch_payload())

    def parts() -> list[str]:
        return [page.locator(f"#task-{name}").inner_text() for name in ("drawn", "useful")]

    assert parts() == ["0 of 4", "0 of 2"]
    press(page, "y", "Space", "x")
    assert parts() == ["2 of 4", "0 of 2"]
    assert page.locator("#batch-count").inner_text() == "2 of 6"
    assert "Only the 1 before it count" in page.locator("#task-skipped").inner_text()
    press(page, "ArrowUp", "ArrowUp", "x")
    assert not page.locator("#task-skipped").is_visible()
    press(page, "ArrowDown", "y", "y", "x")
    assert page.locator("#task-done").is_visible()
    assert not page.locator("#task-open").is_visible()
    assert page.locator("#task-file").inner_text() == "--decisions photos_decisions.csv --force"
    # 2 of 10 before, 2 of 4 now. The binomial is nearly that of a finite number of tags.
    outlook = page.locator("#task-outlook").inner_text()
    assert outlook.startswith("Of 14 random tags, 4 are wrong. So ")
    now, later = (
        binomtest(wrong, count).proportion_ci(0.9, method="wilson") for wrong, count in ((4, 14), (8, 28))
    )
    numbers = [int(number) for number in re.findall(r"(\d+)(?= %| points)", outlook)]
    expected = [now.low, now.high, now.high - now.low, later.high - later.low]
    assert numbers == pytest.approx([100 * value for value in expected], abs=2)
    reload(page)
    assert page.locator("#task-done").is_visible()


@pytest.mark.slow
def test_the_export_holds_earlier_decisions_and_places(show: Watched) -> None:
    page = show(batch_payload())
    press(page, "y", "x")
    page.get_by_role("button", name="Other doubtful tags").click()
    press(page, "x")
    text = export(page)
    assert text.splitlines() == [
        "id,row,label,decision,confidence,by,drawn",
        "e.jpg,20,sea,keep,0.25,,1",
        '"f, ""g""",21,tree,drop,,model,',
        "c8.jpg,8,lake,keep,0.9,,11",
        "b10.jpg,17,sea,drop,0.48,,12",
        "b9.jpg,3,tree,drop,0.07,,",
    ]
    choose_command(page, "Delete my decisions")
    assert len(export(page).splitlines()) == 3
    assert import_text(page, text) == "other.csv: 3 decisions read, 3 of them new."
    assert export(page) == text


@pytest.mark.slow
def test_accepting_suggestions_does_not_answer_the_batch(show: Watched) -> None:
    page = show(batch_payload())
    page.get_by_role("button", name="Other doubtful tags").click()
    choose_bulk(page, "accept")
    assert read_notice(page).startswith("Accepted: 0 kept, 2 dropped.")
    assert page.locator("#batch-count").inner_text() == "0 of 6"
    page.get_by_role("button", name="Other doubtful tags").click()
    assert progress(page) == (0, 2)
    assert page.locator("#detail-state").inner_text() == "dropped, as suggested"
    # Pressing the key is a check.
    press(page, "x")
    assert [line.split(",")[5] for line in export(page).splitlines()[-2:]] == ["", "model"]


@pytest.mark.slow
def test_a_tag_that_is_asked_again_is_exported_once(show: Watched) -> None:
    """A suggestion was accepted before, and now the tag is in the batch."""
    payload = batch_payload()
    payload["earlier"].update(id=["c8.jpg", "x"], row=[8, 1], label=[1, 0], byModel=[True, False])
    page = show(payload)
    assert "c8.jpg,8,lake,keep,0.25,model,1" in export(page)
    press(page, "x")
    assert [line for line in export(page).splitlines() if line.startswith("c8")] == [
        "c8.jpg,8,lake,drop,0.9,11"
    ]


@pytest.mark.parametrize(("width", "height"), [(320, 740), (768, 740), (1100, 740), (640, 360)])
@pytest.mark.slow
def test_the_batch_fits_the_screen(show: Watched, width: int, height: int) -> None:
    page = show(batch_payload(), width=width, height=height)
    for _ in range(2):
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        rows = page.locator("#rows").bounding_box()
        assert rows["height"] > 60
        page.locator("#rows [role=row]").first.click()
        press(page, "y", "x", "y", "y", "x", "x")
        if page.locator("#close-sheet").is_visible():
            page.locator("#close-sheet").click()
        assert page.locator("#task-done").is_visible()
