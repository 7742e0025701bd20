"""Evidence on the review page, the list of all tags, and bulk actions: by keyboard, on all screens, accessible."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from review_helpers import (
    ATTACK,
    SCREENS,
    Watched,
    batch_payload,
    choose_bulk,
    choose_command,
    current,
    find_violations,
    listed,
    make_item,
    open_detail,
    press,
    progress,
    read_notice,
    small_payload,
    watched,
)

from browser_helpers import CHROMIUM, chromium

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.slow,
]

# One black pixel.
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Watched]:
    with watched(browser, tmp_path) as watch:
        yield watch


def evidence_payload() -> dict[str, Any]:
    """Evidence for the first two doubts, and three tags that are kept, of four."""
    payload = small_payload()
    payload["key"] = "photos-evidence"
    payload["items"] += [
        make_item(30, "s30.jpg", [0], "Waves"),
        make_item(31, "s31.jpg", [1], f"Moss {ATTACK}"),
    ]
    payload["evidence"] = {
        "with": [[3, 2], []],
        "without": [[4], [0]],
        "supporting": [["boats"], []],
        "opposing": [["bay", "forest"], []],
    }
    payload["examples"] = [
        [[[3, 0.9975], [0, 0.9]], [[4, 0.001], [2, 0.0625]]],
        [],
        [[[2, 0.5]], [[1, 0.07]]],
    ]
    payload["votes"] = {
        "annotators": ["ann", ATTACK, "bob"],
        "yes": [[0], [], [0, 1], [2], [0], [0, 1, 2], [1], []],
        "no": [[1, 2], [0], [], [], [1], [], [], [0, 1]],
    }
    kept = {"item": [3, 4, 2], "label": [0, 1, 2], "confidence": [0.8, 0.9, 1.0], "action": ["keep"] * 3}
    for name, values in {**kept, "reason": [""] * 3}.items():
        payload["cells"][name] += values
    payload["kept"] = {"listed": 3, "all": 4}
    return payload


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_the_page_fits_every_screen_and_axe_finds_nothing(show: Watched, width: int, scheme: str) -> None:
    payload = evidence_payload()
    payload["labels"][0]["name"] = "implemented-in::python-or-another-language"
    page = show(payload, width=width, height=800)
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    assert page.locator("#need").is_visible()
    open_detail(page)
    assert page.locator("mark.for, mark.against").count() == 2
    for part in ("detail-reason", "detail-votes", "words-for", "words-against"):
        assert page.locator(f"#{part}").is_visible()
    # By keyboard, whatever the width.
    press(page, "j", "k", "y", "x", "u", "u")
    assert page.locator("#detail-label").inner_text() == payload["labels"][0]["name"]
    assert page.locator("#similar-with li").count() == 2
    press(page, "e")
    assert page.locator("#examples li").count() == 4
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert find_violations(page) == []
    press(page, "z")
    assert page.locator("#look").is_visible()
    assert find_violations(page) == []
    press(page, "Escape", "?")
    assert find_violations(page) == []
    press(page, "Escape")
    if page.locator("#close-sheet").is_visible():
        page.locator("#close-sheet").click()
    page.locator("#show-all").click()
    page.locator("#bulk summary").click()
    assert find_violations(page) == []
    box = page.locator("#bulk .entries").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_the_batch_and_an_empty_page_are_accessible(show: Watched, width: int, scheme: str) -> None:
    empty = small_payload()
    empty.update(items=[], cells={name: [] for name in empty["cells"]}, key="empty")
    for payload in (batch_payload(), empty):
        page = show(payload, width=width, height=800)
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert find_violations(page) == []


def test_similar_items_and_telling_words(show: Watched) -> None:
    page = show(evidence_payload())
    similar = {name: page.locator(f"#similar-{name} li") for name in ("with", "without")}
    assert similar["with"].all_inner_texts() == ["Waves", "A forest, and a bay"]
    assert similar["without"].all_inner_texts() == [f"Moss {ATTACK}"]
    assert page.locator("#detail-text").inner_text() == "Boats in the bay"
    assert page.locator("mark.for").all_inner_texts() == ["Boats"]
    assert page.locator("mark.against").all_inner_texts() == ["bay"]
    assert page.locator("#words-against").inner_text() == "bay, forest"
    press(page, "j")
    assert page.locator("#similar-with-none").is_visible()
    assert similar["without"].all_inner_texts() == ["Boats in the bay"]
    assert page.locator("mark").count() == 0
    assert not page.locator("#words-for-title").is_visible()
    press(page, "j")
    assert not page.locator("#evidence").is_visible()
    press(page, "k", "k")
    # A similar item can be read in full, with its tags.
    similar["without"].locator("button").click()
    assert page.locator("#look-text").inner_text() == f"Moss {ATTACK}"
    assert page.locator("#look-tags").inner_text() == "lake"
    assert page.evaluate("window.attacked") is None


def test_best_and_worst_examples_on_request(show: Watched) -> None:
    page = show(evidence_payload())
    examples = {name: page.locator(f"#examples-{name} li") for name in ("best", "worst")}
    # Nothing is made before a person asks.
    assert page.locator("#examples li").count() == 0
    page.locator("#examples summary").focus()
    press(page, "Enter")
    examples["worst"].last.wait_for()
    assert examples["best"].all_inner_texts() == ["Waves\n>0.99", "Boats in the bay\n0.90"]
    assert examples["worst"].all_inner_texts() == [f"Moss {ATTACK}\n<0.01", "A forest, and a bay\n0.06"]
    # They follow the tag, and stay open.
    page.locator("#grid").focus()
    press(page, "j")
    assert examples["worst"].all_inner_texts() == ["b9.jpg\n0.07"]
    press(page, "j")
    assert not page.locator("#examples").is_visible()
    press(page, "k")
    examples["best"].locator("button").click()
    assert page.locator("#look-id").inner_text() == "a1.jpg"
    press(page, "Escape", "e")
    assert not examples["best"].first.is_visible()
    assert page.evaluate("window.attacked") is None


def test_votes_of_annotators(show: Watched) -> None:
    payload = evidence_payload()
    page = show(payload)
    votes = page.locator("#detail-votes")
    assert votes.inner_text() == f"1 of 3 annotators gave it: ann; not {ATTACK}, bob."
    press(page, "j")
    assert votes.inner_text() == "0 of 1 annotator gave it; not ann."
    press(page, "j")
    assert votes.inner_text() == f"2 of 2 annotators gave it: ann, {ATTACK}."
    assert page.evaluate("window.attacked") is None
    payload |= {"votes": {"annotators": None, "yes": [2] * 8, "no": [3] * 8}, "key": "counts"}
    assert show(payload).locator("#detail-votes").inner_text() == "2 of 5 annotators gave it."
    assert not show(small_payload()).locator("#votes-title").is_visible()


def test_a_long_text_of_a_similar_item_is_cut_at_a_line(show: Watched) -> None:
    payload = evidence_payload()
    payload["items"][3]["text"] = "many words " * 40
    page = show(payload)
    button, words = (
        page.locator(f"#similar-with {name}").first.bounding_box() for name in ("button", "span")
    )
    assert words["y"] + words["height"] <= button["y"] + button["height"] - 4
    assert button["height"] < 70


def test_the_batch_shows_no_evidence(show: Watched) -> None:
    payload = batch_payload()
    payload["evidence"].update(
        {"with": [[0], [1]], "without": [[1], [0]], "supporting": [["a"]], "opposing": [["forest"]]}
    )
    payload["examples"] = [[[[0, 1]], [[1, 0]]]] * 3
    payload["votes"] = {"annotators": ["ann"], "yes": [[0], []], "no": [[], [0]]}
    page = show(payload)
    for _ in range(6):
        assert not page.locator("#evidence").is_visible()
        assert not page.locator("#examples").is_visible()
        assert not page.locator("#detail-votes").is_visible()
        assert page.locator("mark").count() == 0
        press(page, "j")
    page.locator("#show-doubts").click()
    assert page.locator("#evidence").is_visible()
    assert page.locator("#examples").is_visible()
    assert page.locator("#detail-votes").inner_text() == "1 of 1 annotator gave it: ann."


def test_j_and_k_move_and_decide_nothing(show: Watched) -> None:
    page = show(small_payload())
    first = current(page)
    press(page, "j", "j", "k", "k", "k")
    assert current(page) == first
    assert progress(page) == (0, 0)
    press(page, "d", "n")
    assert progress(page) == (0, 0)


def test_an_image_is_enlarged_by_click_and_key(show: Watched, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(base64.b64decode(PNG))
    payload = evidence_payload()
    for item in payload["items"]:
        item["image"] = "a.png"
    page = show(payload, files=("a.png",))
    # A thumbnail in each row, and one of each similar item.
    assert page.locator("#rows [role=row] img").count() == 5
    assert page.locator("#evidence img").count() == 3
    small = page.locator("#detail-image img").bounding_box()
    page.locator("#detail-image button").click()
    page.wait_for_function("() => document.querySelector('#look-picture img').naturalWidth === 1")
    large = page.locator("#look-picture img").bounding_box()
    assert large["height"] > 10 * small["height"]
    for key in ("z", "z", "Escape", "z", "z"):
        before = page.locator("#look").is_visible()
        press(page, key)
        assert page.locator("#look").is_visible() != before or key == "Escape"
    page.locator("#similar-without button").focus()
    press(page, "Enter")
    assert page.locator("#look-id").inner_text() == "s31.jpg"


def test_a_long_tag_can_be_read(show: Watched) -> None:
    payload = small_payload()
    payload["labels"][0]["name"] = name = "implemented-in::" + "a-language-with-a-long-name-" * 4
    page = show(payload, width=1280)
    assert page.locator("#rows .tag-name").first.get_attribute("title") == name
    label = page.locator("#detail-label")
    assert label.inner_text() == name
    assert label.evaluate("e => e.scrollWidth <= e.parentElement.clientWidth")
    payload["labels"][0]["name"] = "implemented-in::python"
    payload["key"] = "long"
    cell = show(payload, width=1280).locator("#rows .tag-name").first
    assert cell.evaluate("e => e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight")


def test_the_header_counts_what_needs_a_person(show: Watched) -> None:
    page = show(small_payload())
    need = page.locator("#need")
    assert need.inner_text() == "2 need you, 2 will be dropped."
    press(page, "y", "x")
    assert need.inner_text() == "1 needs you, 1 will be dropped."
    press(page, "y", "x", "y")
    assert need.inner_text() == "Nothing is left to decide."
    assert show(batch_payload()).locator("#need").inner_text() == "6 to check next, 2 will be dropped."


def test_an_empty_page_says_what_to_do_next(show: Watched) -> None:
    payload = evidence_payload()
    first = 5
    payload["cells"] = {name: values[first:] for name, values in payload["cells"].items()}
    payload["evidence"] = {name: [] for name in payload["evidence"]}
    page = show(payload)
    assert "--batch" in page.locator("#empty").inner_text()
    page.locator("#empty [data-command=showAll]").click()
    assert not page.locator("#empty").is_visible()
    assert len(listed(page)) == 3


def test_a_page_of_which_all_tags_are_checked_asks_for_nothing(show: Watched) -> None:
    payload = small_payload()
    payload.update(items=[], cells={name: [] for name in payload["cells"]}, key="checked")
    payload["overview"]["candidates"] = 2
    payload["earlier"] = batch_payload()["earlier"]
    # An accepted suggestion is not a check.
    assert "--batch" in show(payload).locator("#empty").inner_text()
    payload["earlier"]["byModel"] = [False, False]
    page = show(payload)
    assert "All tags are checked" in page.locator("#empty").inner_text()
    assert "--batch" not in page.locator("#empty").inner_text()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export").click()
    assert len(Path(waiting.value.path()).read_text().splitlines()) == 3


def test_all_tags_are_listed_decided_and_exported(show: Watched) -> None:
    page = show(evidence_payload())
    assert len(listed(page)) == 5
    page.locator("#show-all").click()
    assert listed(page)[5:] == [("sea", "s30.jpg"), ("lake", "s31.jpg"), ("tree", "a1.jpg")]
    # The file of the page does not hold all, and the page says so.
    assert "3 of 4 kept tags" in page.locator("#cap").inner_text()
    page.locator("#sort").select_option("believed")
    page.locator("#action").select_option("keep")
    assert [tag for tag, _ in listed(page)] == ["tree", "lake", "lake", "sea"]
    page.locator("#grid").focus()
    press(page, "Home", "x")
    with page.expect_download() as waiting:
        choose_bulk(page, "export")
    assert waiting.value.suggested_filename == "photos_tags.csv"
    assert Path(waiting.value.path()).read_text().splitlines() == [
        "id,row,label,confidence,suggested,decision",
        "a1.jpg,5,tree,1,keep,drop",
        "b10.jpg,17,lake,0.93,keep,",
        "s31.jpg,31,lake,0.9,keep,",
        "s30.jpg,30,sea,0.8,keep,",
    ]
    # A kept tag of the item of a doubtful one leads to the list of all tags.
    page.locator("#show-doubts").click()
    page.locator("#clear-filters").click()
    page.locator("#rows [role=row]", has_text="a1.jpg").first.click()
    page.locator("#detail-tags button", has_text="tree").click()
    assert current(page) == ("tree", "a1.jpg")
    assert page.locator("#show-all").get_attribute("aria-pressed") == "true"


def test_bulk_actions_act_on_the_filtered_list_and_say_how_many(show: Watched) -> None:
    page = show(small_payload())
    page.locator("#label").select_option(label="sea")
    words = [page.locator(f"#bulk-{name}").text_content() for name in ("accept", "keep", "drop", "export")]
    assert words == [
        "Accept 1 suggestion",
        "Keep 2 undecided",
        "Drop 2 undecided",
        "Export 2 tags with confidences",
    ]
    choose_bulk(page, "accept")
    assert read_notice(page).startswith("Accepted: 0 kept, 1 dropped.")
    # What is decided stays as it is.
    choose_bulk(page, "keep")
    assert read_notice(page).startswith("1 tag kept.")
    assert progress(page) == (1, 1)
    page.locator("#clear-filters").click()
    choose_bulk(page, "drop")
    assert progress(page) == (1, 4)
    press(page, "u")
    assert progress(page) == (1, 1)
    choose_command(page, "Delete my decisions")
    # By keyboard alone.
    page.locator("#bulk summary").focus()
    press(page, "Enter", "Tab", "Tab", "Enter")
    assert progress(page) == (5, 0)
    assert page.evaluate("document.activeElement.textContent") == "All listed"
