"""The review page as a file: what it holds of a table and an audit, and data that cannot become markup."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from review_helpers import large_payload, small_payload

from page_checker import PageChecker

pytest.importorskip("jinja2")

from skpml.cleaning import Decisions, Doubt, Question, Reason, WrongCounts
from skpml.cleaning._batch import random_order
from skpml.review import render_review, select_doubts, write_review
from skpml.review._page import _build_payload, _fill_template
from skpml.tables import Columns, read_table

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


def scripted(payload: dict[str, Any]) -> dict[str, Any]:
    """The part of a payload that the script needs; the template shows the rest."""
    kept = {name: values for name, values in payload.items() if name not in ("settings", "overview")}
    return {**kept, "labels": [label["name"] for label in payload["labels"]]}


@pytest.mark.parametrize("text", NASTY)
def test_any_text_comes_back_from_the_page_unchanged_and_adds_no_markup(text: str) -> None:
    payload = small_payload()
    payload.update(title=text, key=text, settings=[[text, text]])
    payload["labels"][0]["name"] = payload["labels"][1]["partner"] = text
    payload["items"][0].update(id=text, text=text, image=text)
    payload["cells"]["reason"][0] = text
    page = _fill_template(payload)
    assert payload_of(page) == scripted(payload)
    checker = PageChecker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    # The data and the program: nothing else.
    assert checker.scripts == 2
    # What a file written as UTF-8 holds is the page.
    assert page.encode("utf-8").decode("utf-8") == page


def test_the_page_is_well_formed_and_every_reference_has_its_target() -> None:
    page = _fill_template(small_payload())
    checker = PageChecker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    assert len(set(checker.ids)) == len(checker.ids)
    described = re.findall(r'aria-(?:labelledby|describedby|controls)="([^"]+)"', page)
    assert described
    assert set(described) <= set(checker.ids)
    script = page[page.rindex("<script ") :]
    asked_for = set(re.findall(r'byId\("([\w-]+)"\)', script))
    assert asked_for
    assert asked_for <= set(checker.ids)


def test_nothing_in_the_page_can_be_asked_of_a_network_or_run_from_data() -> None:
    page = _fill_template(small_payload())
    assert re.findall(r"https?://|//\w+\.\w+", page) == []
    program = page[page.rindex("<script ") :]
    ways_in = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|fetch\(|XMLHttpRequest"
    )
    assert re.findall(ways_in, program) == []


def test_the_same_payload_gives_the_same_page() -> None:
    assert _fill_template(large_payload(300)) == _fill_template(large_payload(300))


def test_a_page_is_its_data_and_little_more() -> None:
    payload = large_payload(2000)
    data = len(json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode())
    assert len(_fill_template(payload).encode()) - data < 95_000


def test_a_page_without_cells_can_be_made() -> None:
    payload = small_payload()
    payload.update(items=[], cells={name: [] for name in payload["cells"]})
    assert payload_of(_fill_template(payload)) == scripted(payload)


TABLE = 'x,name,story,tags\n0,a,"<b>one</b>",sea;lake\n1,b,two,sea\n2,c,three,sky;sea\n'


@pytest.fixture
def table(tmp_path: Path) -> Any:
    path = tmp_path / "photos.csv"
    path.write_text(TABLE)
    return read_table(path, columns=Columns(id="name", text="story"))


def make_reason(confidence: float, **similar: tuple[int, ...]) -> Reason:
    return Reason(carried=1, neighbors=2, usual=0.5, probability=0.1, confidence=confidence, **similar)


def make_audit(table: Any, doubts: list[tuple[int, int, float, str]]) -> Any:
    """An audit with these doubts: row, label, confidence, action."""
    counts = table.candidates.sum(axis=0)
    actions = np.where(table.candidates > 0, "keep", "").astype("<U4")
    for row, label, _, action in doubts:
        actions[row, label] = action
    return SimpleNamespace(
        confidences=table.candidates * 0.9,
        actions=actions,
        doubts=[
            Doubt(row=row, label=label, confidence=confidence, action=action, reason=make_reason(confidence))
            for row, label, confidence, action in doubts
        ],
        wrong=WrongCounts(estimate=counts / 3, low=counts / 4, high=counts / 2, total=(1.66, 1.23, 2.5)),
        partners=("lake", "sea", None),
        batch=[],
        verified=np.zeros(table.candidates.shape, dtype=np.int8),
        random_state=0,
    )


def test_the_page_shows_the_audit_of_a_table(table: Any) -> None:
    lake, sea, sky = (table.label_names.index(name) for name in ("lake", "sea", "sky"))
    doubts = [(2, sea, 0.51234, "ask"), (0, lake, 0.1, "drop"), (2, sky, 0.3, "ask")]
    found = make_audit(table, doubts)
    payload = _build_payload(table, found, {"folds": "5"})
    page = render_review(table, found, settings={"folds": "5"})
    assert payload_of(page) == scripted(payload)
    assert render_review(table, found, settings={"folds": "5"}) == page
    assert "<dt>folds</dt><dd>5</dd>" in page
    assert payload["title"] == "photos.csv"
    assert payload["settings"] == [["folds", "5"]]
    counts = {"rows": 3, "labels": 3, "candidates": 5, "wrong": 1.7, "low": 1.2, "high": 2.5}
    assert payload["overview"] == {**counts, "basis": "random noise"}
    assert payload["batch"] == {"drawn": [], "tags": 5, "sample": 0, "wrong": 0}
    assert not any(payload["earlier"].values())
    assert payload["items"] == [
        {"id": "c", "row": 2, "text": "three", "image": None, "tags": sorted([sea, sky])},
        {"id": "a", "row": 0, "text": "<b>one</b>", "image": None, "tags": sorted([sea, lake])},
        {"id": "b", "row": 1, "text": "two", "image": None, "tags": [sea]},
    ]
    # Doubtful tags, and then those that are kept.
    assert payload["cells"] == {
        "item": [0, 1, 0, 1, 2],
        "label": [sea, lake, sky, sea, sea],
        "confidence": [0.5123, 0.1, 0.3, 0.9, 0.9],
        "action": ["ask", "drop", "ask", "keep", "keep"],
        "reason": [*(str(doubt.reason) for doubt in found.doubts), "", ""],
    }
    assert payload["kept"] == {"listed": 2, "all": 2}
    assert [label["name"] for label in payload["labels"]] == list(table.label_names)
    assert payload["labels"][sea] == {
        "name": "sea", "candidates": 3, "wrong": 1.0, "low": 0.8, "high": 1.5, "partner": found.partners[sea],
    }  # fmt: skip


def test_the_batch_comes_first_and_says_nothing_about_the_answer(table: Any) -> None:
    lake, sea, sky = (table.label_names.index(name) for name in ("lake", "sea", "sky"))
    found = make_audit(table, [(2, sea, 0.5, "ask"), (0, lake, 0.1, "drop")])
    found.batch = [Question(row=1, label=sea, drawn=4), Question(row=2, label=sea, drawn=0)]
    payload = _build_payload(table, found, {})
    # A doubt of the batch is not listed again.
    assert payload["cells"] == {
        "item": [0, 1, 2, 2, 1],
        "label": [sea, sea, lake, sea, sky],
        "confidence": [0.9, 0.9, 0.1, 0.9, 0.9],
        "action": ["", "", "drop", "keep", "keep"],
        "reason": ["", "", str(found.doubts[1].reason), "", ""],
    }
    assert [item["row"] for item in payload["items"]] == [1, 2, 0]
    assert payload["batch"]["drawn"] == [4, 0]
    other = make_audit(table, [(0, lake, 0.1, "drop")])
    assert payload["key"] != _build_payload(table, other, {})["key"]


def test_earlier_decisions_are_exported_and_not_asked_again(table: Any) -> None:
    lake, sky = (table.label_names.index(name) for name in ("lake", "sky"))
    places = random_order(table.candidates, 0)
    first = tuple(int(place) for place in np.argwhere(places == 1)[0])
    cells = [first, *(cell for cell in [(0, lake), (2, sky)] if cell != first)]
    decisions = Decisions(
        rows=np.array([row for row, _ in cells]),
        labels=np.array([label for _, label in cells]),
        keep=np.array([False] + [True] * (len(cells) - 1)),
        confidence=np.array([np.nan] + [0.5] * (len(cells) - 1)),
        by_model=np.array([False] * (len(cells) - 1) + [True]),
        drawn=np.array([1] + [0] * (len(cells) - 1)),
    )
    found = make_audit(table, [(0, lake, 0.1, "drop"), (2, sky, 0.3, "ask")])
    payload = _build_payload(table, found, {}, decisions)
    # What is left is kept.
    assert set(payload["cells"]["action"]) == {"keep"}
    assert payload["kept"]["listed"] == 5 - len(cells)
    assert payload["batch"] == {"drawn": [], "tags": 5, "sample": 1, "wrong": 1}
    earlier = payload["earlier"]
    assert list(zip(earlier["row"], earlier["label"], strict=True)) == cells
    assert earlier["id"] == [table.ids[row] for row, _ in cells]
    assert earlier["confidence"] == [None] + [0.5] * (len(cells) - 1)
    assert earlier["byModel"][-1] is True
    assert earlier["drawn"][0] == 1


def test_what_the_audit_was_told_is_exported_too(table: Any) -> None:
    sea, sky, lake = (table.label_names.index(name) for name in ("sea", "sky", "lake"))
    found = make_audit(table, [(1, sea, 0.5, "ask")])
    found.verified[1, sea], found.verified[0, sky], found.verified[2, lake] = -1, 1, -1
    payload = _build_payload(table, found, {})
    assert "ask" not in payload["cells"]["action"]
    # A row can get a tag that it does not have, but not lose it.
    assert (table.candidates[0, sky], table.candidates[2, lake]) == (0, 0)
    earlier = payload["earlier"]
    assert (earlier["row"], earlier["label"], earlier["decision"]) == ([0, 1], [sky, sea], ["add", "drop"])


@pytest.mark.parametrize(
    ("basis", "words"),
    [("sample", "judged by your random checks"), ("random noise", "if wrong tags are random"),
     ("unknown", "How many of 410 tags are wrong, only checks can show"), ("votes", "judged by the votes")],
)  # fmt: skip
def test_the_page_says_what_the_count_rests_on(basis: str, words: str) -> None:
    payload = small_payload()
    payload["overview"]["basis"] = basis
    assert words in _fill_template(payload)


def test_similar_rows_are_positions_of_items_whose_texts_are_cut(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sea, sky = (table.label_names.index(name) for name in ("sea", "sky"))
    found = make_audit(table, [(2, sea, 0.5, "ask"), (2, sky, 0.4, "ask")])
    reasons = [make_reason(0.5, similar_with=(0, 1)), make_reason(0.4, similar_without=(1,))]
    found.doubts = [
        replace(doubt, reason=reason) for doubt, reason in zip(found.doubts, reasons, strict=True)
    ]
    found.actions[:2] = ""
    monkeypatch.setattr("skpml.review._page._EXCERPT", 4)
    payload = _build_payload(table, found, {})
    assert [(item["row"], item["text"]) for item in payload["items"]] == [
        (2, "three"),
        (0, "<b>…"),
        (1, "two"),
    ]
    assert (payload["evidence"]["with"], payload["evidence"]["without"]) == ([[1, 2], []], [[], [2]])
    # Only the most useful doubts have evidence.
    monkeypatch.setattr("skpml.review._page._MAX_EXPLAINED", 1)
    assert _build_payload(table, found, {})["evidence"]["with"] == [[1, 2]]


def test_examples_of_a_label_are_its_highest_and_lowest_confidences(tmp_path: Path) -> None:
    path = tmp_path / "photos.csv"
    path.write_text("x,tags\n" + "".join(f"{row},{'sea;sky' if row < 10 else 'sea'}\n" for row in range(12)))
    table = read_table(path)
    found = make_audit(table, [(4, 0, 0.5, "ask")])
    found.confidences = np.where(table.candidates > 0, np.arange(1, 13)[:, None] / 20, 0)
    # Asked next, and dropped by a person: neither is shown.
    found.batch = [Question(row=0, label=0, drawn=1)]
    found.verified[1, 0] = -1
    payload = _build_payload(table, found, {})
    rows = [item["row"] for item in payload["items"]]
    best, worst = payload["examples"][0]
    assert [(rows[place], sure) for place, sure in best] == [(11, 0.6), (10, 0.55), (9, 0.5)]
    assert [(rows[place], sure) for place, sure in worst] == [(2, 0.15), (3, 0.2), (4, 0.25)]
    # Labels that nobody doubts need no space.
    assert payload["examples"][1] == []
    few = make_audit(table, [(0, 1, 0.5, "ask")])
    few.verified[3:, 1] = -1
    assert [len(some) for some in _build_payload(table, few, {})["examples"][1]] == [1, 1]


def test_only_a_confidence_that_is_certain_is_rounded_to_0_or_1(table: Any) -> None:
    sea = table.label_names.index("sea")
    found = make_audit(table, [(0, sea, 1e-9, "drop"), (1, sea, 0.0, "drop"), (2, sea, 1 - 1e-9, "ask")])
    assert _build_payload(table, found, {})["cells"]["confidence"][:3] == [0.0001, 0.0, 0.9999]


def test_votes_are_those_of_the_cells(table: Any) -> None:
    lake, sea, sky = (table.label_names.index(name) for name in ("lake", "sea", "sky"))
    found = make_audit(table, [(2, sky, 0.4, "ask")])
    found.batch = [Question(row=0, label=sea, drawn=1)]
    single = np.zeros((3, 3, 3))
    single[2, :2, sky], single[2, 2], single[0, 0, lake] = 1, np.nan, 1
    given = {"votes": single, "annotator_names": ("ann", "bob", "cy")}
    payload = _build_payload(table, found, {}, votes=given)
    cells = list(zip(payload["cells"]["item"], payload["cells"]["label"], strict=True))[1:]
    assert payload["votes"]["annotators"] == ["ann", "bob", "cy"]
    place = cells.index((payload["cells"]["item"][1], sky))
    assert (payload["votes"]["yes"][place], payload["votes"]["no"][place]) == ([0, 1], [])
    place = next(i for i, (item, label) in enumerate(cells) if label == lake)
    assert (payload["votes"]["yes"][place], payload["votes"]["no"][place]) == ([0], [1, 2])
    # Nothing about the batch.
    assert len(payload["votes"]["yes"]) == len(payload["votes"]["no"]) == len(cells)
    counted = {"votes": np.nansum(single, axis=1), "n_annotators": [3, 3, 2]}
    votes = _build_payload(table, found, {}, votes=counted)["votes"]
    assert (votes["annotators"], votes["yes"][place], votes["no"][place]) == (None, 1, 2)
    assert (
        _build_payload(table, found, {}, votes={"votes": single})["votes"]["annotators"][2] == "annotator 2"
    )
    assert _build_payload(table, found, {})["votes"] is None
    with pytest.raises(ValueError, match="the votes have shape"):
        render_review(table, found, votes={"votes": single[:2]})


def test_too_many_kept_tags_leave_some_of_all_confidences(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = make_audit(table, [])
    found.confidences = np.where(table.candidates > 0, np.linspace(0.9, 0.5, 9).reshape(3, 3), 0)
    monkeypatch.setattr("skpml.review._page._MAX_KEPT", 3)
    payload = _build_payload(table, found, {})
    assert payload["kept"] == {"listed": 3, "all": 5}
    sure = np.sort(found.confidences[table.candidates > 0])
    assert payload["cells"]["confidence"] == pytest.approx(sure[[0, 2, 4]], abs=1e-4)


def test_partners_are_shown_for_doubted_labels_only(table: Any) -> None:
    for doubts in ([], [(0, 0, 0.4, "ask")]):
        labels = _build_payload(table, make_audit(table, doubts), {})["labels"]
        assert [label["partner"] for label in labels] == ["lake" if doubts else None, None, None]


def test_decisions_are_stored_by_file_and_listed_tags(table: Any, tmp_path: Path) -> None:
    def key(doubts: list[tuple[int, int, float, str]], other: Any = table) -> str:
        return payload_of(render_review(other, make_audit(other, doubts)))["key"]

    first = key([(0, 0, 0.4, "ask")])
    # Confidences and actions may change from run to run, the tags that the decisions are about may not.
    assert key([(0, 0, 0.2, "drop")]) == first
    renamed = tmp_path / "other.csv"
    renamed.write_text(TABLE.replace("b,two", "bb,two"))
    others = [
        key([(0, 1, 0.4, "ask")]),
        key([(1, 1, 0.4, "ask")]),
        key([(0, 0, 0.4, "ask")], read_table(renamed, columns=Columns(id="name", text="story"))),
    ]
    assert len({first, *others}) == 4


def test_too_many_doubts_leave_only_those_that_a_person_decides(
    table: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = make_audit(table, [(0, 0, 0.4, "ask"), (0, 1, 0.2, "drop"), (1, 1, 0.6, "ask")])
    assert select_doubts(found) == found.doubts
    monkeypatch.setattr("skpml.review._page.MAX_DOUBTS", 2)
    assert select_doubts(found) == [found.doubts[0], found.doubts[2]]
    monkeypatch.setattr("skpml.review._page.MAX_DOUBTS", 1)
    assert select_doubts(found) == [found.doubts[0]]


def test_write_review(table: Any, tmp_path: Path) -> None:
    found = make_audit(table, [(0, 0, 0.4, "ask")])
    path = tmp_path / "review.html"
    write_review(table, found, path)
    assert path.read_bytes() == render_review(table, found).encode()
    with pytest.raises(FileExistsError):
        write_review(table, found, path)
    write_review(table, found, path, settings={"folds": "3"}, overwrite=True)
    assert "folds" in path.read_text(encoding="utf-8")


def test_an_audit_of_another_table_is_refused(table: Any) -> None:
    found = make_audit(table, [])
    found.confidences = found.confidences[:2]
    with pytest.raises(ValueError, match=r"\(2, 3\).*photos\.csv.*\(3, 3\)"):
        render_review(table, found)
