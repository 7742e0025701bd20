"""Tags that a person adds to an item or puts in the place of another one: by keyboard, undone, exported, shown again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jinja2")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from review_helpers import (
    ATTACK,
    SCREENS,
    Watched,
    batch_payload,
    choose_command,
    current,
    export,
    find_violations,
    import_text,
    make_label,
    open_detail,
    press,
    progress,
    read_notice,
    reload,
    small_payload,
    watched,
)

from browser_helpers import CHROMIUM, chromium
from skpml.cleaning import audit, read_decisions
from skpml.review import write_review
from skpml.tables import Columns, read_table

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed"),
    pytest.mark.slow,
]
HEADER = "id,row,label,decision,confidence"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Watched]:
    with watched(browser, tmp_path) as watch:
        yield watch


def tags(page: Any) -> list[str]:
    """The tags of the item, one text each, without what is said about those that are not added."""
    texts = page.locator("#detail-tags li").all_inner_texts()
    return [text.replace("\n", ": ") if "added" in text else text.split("\n")[0] for text in texts]


def type_tag(page: Any, name: str, *keys: str) -> None:
    page.locator("#add-tag").fill(name)
    press(page, *keys)


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_a_tag_is_added_replaced_and_removed_by_keyboard(show: Watched, width: int, scheme: str) -> None:
    page = show(small_payload(), width=width, height=800)
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    press(page, "a")
    page.keyboard.type("TREE")
    press(page, "Enter")
    assert tags(page) == ["sea", "lake", "tree: added, remove"]
    assert page.locator("#progress-added").inner_text() == "1 added"
    # The field is empty and ready for the next one; letters in it are no commands.
    page.keyboard.type("y")
    assert page.locator("#add-tag").input_value() == "y"
    assert progress(page) == (0, 0)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert find_violations(page) == []
    press(page, "Enter")
    assert page.locator("#add-tag").get_attribute("aria-invalid") == "true"
    assert find_violations(page) == []
    press(page, "Escape", "u")
    assert tags(page) == ["sea", "lake"]
    assert not page.locator("#progress-added").is_visible()
    press(page, "a")
    page.keyboard.type("tree")
    press(page, "Shift+Enter")
    # The tag in question is dropped, and the next one is shown.
    assert progress(page) == (0, 1)
    assert current(page) == ("tree", "b9.jpg")
    assert page.evaluate("document.activeElement.id") == "grid"
    page.locator("#progress-added").focus()
    press(page, "Enter")
    assert page.locator("#additions-list button").all_inner_texts() == ["tree\nb10.jpg, row 17: remove"]
    assert find_violations(page) == []
    press(page, "Shift+Tab", "Enter")
    assert page.locator("#additions-list li").count() == 0
    press(page, "Escape", "u", "u")
    # One step takes back both the drop and the added tag.
    assert progress(page) == (0, 0)
    assert current(page) == ("sea", "b10.jpg")
    assert tags(page) == ["sea", "lake"]


def test_what_cannot_be_added_is_explained(show: Watched) -> None:
    payload = small_payload()
    payload["labels"] += [
        make_label(name, 5, 1, 0, 2) for name in ("tree house", "treetop", ATTACK, "Sea side")
    ]
    page = show(payload)
    problem = page.locator("#add-problem")
    press(page, "a")
    for name, words in [
        ("", "Type"),
        ("moon", "no such tag"),
        ("lake", "already"),
        ("tree ", ""),
        ("tree", "already"),
        ("treet", ""),
        ("e", "Which of"),
    ]:
        type_tag(page, name, "Enter")
        assert words in problem.inner_text(), name
        assert (problem.inner_text() == "") == (words == "")
    type_tag(page, "onerror", "Enter")
    assert [text.split(":")[0] for text in tags(page)[2:4]] == ["tree", "treetop"]
    assert page.evaluate("window.attacked") is None
    # Every label is offered.
    assert page.locator("#label-names option").count() == 7
    assert page.locator("#add-tag").get_attribute("list") == "label-names"


def test_added_tags_are_stored_exported_and_imported(show: Watched) -> None:
    page = show(small_payload())
    press(page, "a")
    type_tag(page, "tree", "Shift+Enter")
    lines = export(page).splitlines()
    assert lines == [HEADER, "b10.jpg,17,sea,drop,0.48", "b10.jpg,17,tree,add,"]
    reload(page)
    assert export(page).splitlines() == lines
    other = show(small_payload())
    choose_command(page, "Delete my decisions")
    assert read_notice(page).startswith("2 decisions deleted")
    assert not page.locator("#progress-added").is_visible()
    text = "\n".join(
        [*lines, "b9.jpg,3,lake,add,", "x.jpg,99,lake,add,", "b9.jpg,3,sea,add,", "b9.jpg,3,moon,add,"]
    )
    notice = import_text(other, text)
    assert "3 decisions read, 3 of them new." in notice
    assert "3 lines skipped" in notice
    assert export(other).splitlines() == [*lines, "b9.jpg,3,lake,add,"]
    assert "line 2" in import_text(other, f"{HEADER}\nb9.jpg,3,lake,insert,\n")


def test_tags_that_were_added_before_are_shown_and_can_be_undone(show: Watched) -> None:
    payload = batch_payload()
    # One for an item of the page, one for another.
    for name, values in {"id": ["b10.jpg", "z.jpg"], "row": [17, 99], "label": [2, 2], "decision": ["add"] * 2,
                         "confidence": [None] * 2, "byModel": [False] * 2, "drawn": [0] * 2}.items():  # fmt: skip
        payload["earlier"][name] += values
    page = show(payload)
    before = [line for line in export(page).splitlines() if ",add," in line]
    assert before == ["b10.jpg,17,tree,add,,,", "z.jpg,99,tree,add,,,"]
    press(page, "j")
    assert tags(page) == ["sea", "lake", "tree: added, remove"]
    page.locator("#detail-tags .added button").click()
    assert tags(page) == ["sea", "lake"]
    page.locator("#progress-added").click()
    page.locator("#additions-list button").click()
    press(page, "Escape")
    assert not page.locator("#progress-added").is_visible()
    assert ",add," not in export(page)
    reload(page)
    assert ",add," not in export(page)
    choose_command(page, "Delete my decisions")
    assert [line for line in export(page).splitlines() if ",add," in line] == before


def test_nothing_is_lost_from_page_to_run_to_page(show: Watched, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    names = [
        [tag for tag, on in zip(("a", "b", "c"), row > 0.4, strict=True) if on] for row in rng.random((60, 3))
    ]
    lines = [f"{row}.jpg,{one:.3f},{two:.3f},{';'.join(names[row])}" for row, (one, two) in enumerate(x)]
    path = tmp_path / "photos.csv"
    path.write_text("\n".join(["file,x,y,tags", *lines]))
    table = read_table(path, columns=Columns(id="file"))

    def next_page(decisions: Any) -> Any:
        verified = None if decisions is None else decisions.verified(table)
        found = audit(
            table.X,
            table.candidates,
            label_names=table.label_names,
            method="ridge",
            verified=verified,
            batch_size=4,
        )
        write_review(table, found, show.file, decisions=decisions, overwrite=True)
        return show()

    page = next_page(None)
    row = int(page.locator("#detail-row").inner_text().split()[1])
    missing = next(name for name in "abc" if name not in names[row])
    press(page, "a")
    type_tag(page, missing, "Shift+Enter")
    press(page, "y")
    (tmp_path / "d.csv").write_text(export(page))
    decisions = read_decisions(tmp_path / "d.csv", table)
    assert np.argwhere(decisions.add_mask(table)).tolist() == [[row, "abc".index(missing)]]
    again = next_page(decisions)
    assert again.locator("#progress-added").inner_text() == "1 added"
    (tmp_path / "e.csv").write_text(export(again))
    np.testing.assert_array_equal(
        read_decisions(tmp_path / "e.csv", table).verified(table), decisions.verified(table)
    )


def test_items_of_the_batch_get_tags_too(show: Watched) -> None:
    page = show(batch_payload(), width=390, height=800)
    open_detail(page)
    page.locator("#add-tag").fill("sea")
    page.locator("#add-form button", has_text="Replace").click()
    assert progress(page) == (0, 1)
    page.locator("#close-sheet").click()
    assert "c8.jpg,8,sea,add,,," in export(page)
