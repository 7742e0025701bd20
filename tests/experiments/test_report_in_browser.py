"""The report in a real browser: sorting reorders, filters hide, nothing goes wrong and nothing goes out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_helpers import METHODS, gather, make_failure, make_records, make_suite, published

from browser_helpers import CHROMIUM, chromium, contrast

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
pytest.importorskip("scikit_posthocs")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


from skpml.experiments._report import render_report

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")]

ATTACK = "<img src=http://example.org/x onerror=alert(1)><script>alert(1)</script>"
METRIC = "average_precision"
TABLE = "#metric-average_precision table.wide"


@pytest.fixture(scope="module")
def suite() -> Any:
    methods = [{"name": name} for name in METHODS[:-1]]
    methods += [
        {"name": METHODS[-1], "label": ATTACK},
        {"name": "ridge", "label": "floor", "role": "floor"},
        {"name": "ridge", "label": "ceiling", "role": "ceiling"},
    ]
    return make_suite(methods=methods)


@pytest.fixture(scope="module")
def results(suite: Any) -> Any:
    records = [r for r in make_records(suite) if r["run"]["configuration"] != "mirflickr"]
    lost = {("pamb", "arts-9", fold) for fold in range(10)}
    records = [
        r for r in records if (r["run"]["method"], r["run"]["configuration"], r["run"]["fold"]) not in lost
    ]
    records.append(make_failure(suite, "pamb", "arts-9", 0, ATTACK))
    return gather(suite, records, absent={"mirflickr": ATTACK})


@pytest.fixture(scope="module")
def file(results: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_report(results, published=published()), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as held:
        yield held


@pytest.fixture
def page(browser: Any, file: Path) -> Iterator[Any]:
    """The open report; at the end of each test no error was logged, no dialog shown and nothing asked for."""
    held = browser.new_page(viewport={"width": 1400, "height": 900})
    held.set_default_timeout(5000)
    troubles: list[str] = []
    requests: list[str] = []
    held.on("console", lambda message: troubles.append(message.text))
    held.on("pageerror", lambda error: troubles.append(str(error)))
    held.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
    held.on("request", lambda request: requests.append(request.url))
    held.goto(file.as_uri())
    yield held
    held.wait_for_timeout(50)
    held.close()
    assert troubles == []
    assert requests == [file.as_uri()]


def names(page: Any, table: str = TABLE) -> list[str]:
    """First cells of the rows that can be seen."""
    rows = page.locator(f"{table} tbody tr:visible th")
    return rows.all_inner_texts()


def button(page: Any, title: str) -> Any:
    return page.locator(f"{TABLE} thead button").get_by_text(title, exact=True).first


def test_sorting_reorders_by_value_and_comes_back(page: Any, results: Any, suite: Any) -> None:
    original = names(page)
    assert original == list(suite.configurations)
    means = results.table(METRIC)["pml-ni", "mean"].round(3)
    measured = [name for name in original if name != "mirflickr"]
    # Equal figures keep the order of the suite.
    ascending = sorted(measured, key=lambda name: means[name])
    descending = sorted(measured, key=lambda name: -means[name])
    head = button(page, "pml-ni").locator("..")
    button(page, "pml-ni").click()
    # High average precision is good: it comes first, and what is absent last.
    assert names(page) == [*descending, "mirflickr"]
    assert head.get_attribute("aria-sort") == "descending"
    button(page, "pml-ni").click()
    assert names(page) == [*ascending, "mirflickr"]
    assert head.get_attribute("aria-sort") == "ascending"
    button(page, "pml-ni").click()
    assert names(page) == original
    assert head.get_attribute("aria-sort") is None
    assert page.locator(f"{TABLE} tfoot tr").count() == 1


def test_sorting_by_keyboard_and_by_name(page: Any, suite: Any) -> None:
    button(page, "Configuration").focus()
    page.keyboard.press("Enter")
    assert names(page) == sorted(
        suite.configurations, key=lambda n: (n.split("-")[0], int((n + "-0").split("-")[1]))
    )
    page.keyboard.press("Space")
    assert names(page)[0] == "yeast-7"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "pml-ma"


def test_a_loss_is_sorted_from_low_to_high_first(page: Any, results: Any) -> None:
    table = "#metric-one_error table.wide"
    page.locator(f"{table} thead button").get_by_text("pml-ma", exact=True).first.click()
    losses = results.table("one_error")["pml-ma", "mean"].round(3)
    values = [losses[name] for name in names(page, table)[:-1]]
    assert values == sorted(values)


def test_the_text_filter_hides_rows_in_every_table(page: Any, suite: Any) -> None:
    page.get_by_label("Filter rows by name").fill("EMOTIONS")
    assert names(page) == ["emotions-3", "emotions-4"]
    assert names(page, "#gap table") == ["emotions-3", "emotions-4"]
    assert "rows shown; ranks and marks are those of all rows" in page.locator("#filter-status").inner_text()
    # The foot stays: its ranks are over all configurations.
    assert page.locator(f"{TABLE} tfoot tr:visible").count() == 1
    page.get_by_role("button", name="Show all").click()
    assert names(page) == list(suite.configurations)
    assert page.locator("#filter-status").inner_text() == ""


def test_methods_and_data_sets_can_be_switched_off(page: Any, suite: Any) -> None:
    cells = f"{TABLE} tbody tr:first-child td:visible"
    before = page.locator(cells).count()
    assert before == 11 + 9
    page.locator("summary", has_text="Methods").click()
    page.get_by_role("checkbox", name="pml-ni").uncheck()
    assert page.locator(cells).count() == before - 1
    assert "pml-ni" not in names(page, "#ranks table")
    page.get_by_role("checkbox", name="published results").uncheck()
    assert page.locator(cells).count() == 10
    page.keyboard.press("Escape")
    assert not page.get_by_role("checkbox", name="pml-ni").is_visible()
    page.locator("summary", has_text="Data sets").click()
    page.get_by_role("checkbox", name="scene-3").uncheck()
    assert names(page) == [name for name in suite.configurations if name != "scene-3"]
    # Sorting and filtering go together.
    button(page, "pml-ma").click()
    assert "scene-3" not in names(page)
    assert len(names(page)) == 11


def test_markup_in_names_and_messages_is_shown_as_text(page: Any) -> None:
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 1
    assert ATTACK in page.locator(".failure").first.inner_text()
    assert ATTACK in names(page, "#ranks table")
    assert page.locator("#metric-average_precision svg text", has_text="alert(1)").count() == 1
    page.locator("summary", has_text="Methods").click()
    page.get_by_role("checkbox", name=ATTACK).uncheck()
    assert ATTACK not in names(page, "#ranks table")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark_in_figures_too(page: Any, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    colour = "element => getComputedStyle(element)[%r]"
    paper = page.locator("body").evaluate(colour % "backgroundColor")
    panel = page.locator("figure").first.evaluate(colour % "backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", paper)[:3])) < 200) == (scheme == "dark")
    for selector in ("p", "h2", "td b.best", "td small", ".notes li", "a", "tfoot th"):
        assert contrast(page.locator(selector).first.evaluate(colour % "color"), paper) >= 4.5, selector
    labels = page.locator("#metric-average_precision figure svg text")
    assert labels.count() >= 19
    for place in range(labels.count()):
        assert contrast(labels.nth(place).evaluate(colour % "fill"), panel) >= 4.5


@pytest.mark.parametrize("width", [360, 390, 768, 1400])
def test_the_page_is_never_wider_than_the_screen(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # Names of rows stay in sight while a wide table is moved.
    scroller = page.locator("#metric-average_precision .scroll").first
    scroller.evaluate("element => { element.scrollLeft = 400; }")
    cell = page.locator(f"{TABLE} tbody th").first
    assert cell.bounding_box()["x"] == pytest.approx(scroller.bounding_box()["x"], abs=1)


def test_labels_of_the_diagram_do_not_run_into_each_other_or_out_of_it(page: Any) -> None:
    boxes = page.locator("#metric-average_precision figure svg").first.evaluate(
        """svg => {
          const frame = svg.getBoundingClientRect();
          return Array.from(svg.querySelectorAll("text"), (text) => {
            const b = text.getBoundingClientRect();
            return [b.left - frame.left, b.right - frame.left, b.top - frame.top, b.bottom - frame.top, frame.width];
          });
        }"""
    )
    assert len(boxes) >= 19
    for place, (left, right, top, bottom, width) in enumerate(boxes):
        assert left >= -1
        assert right <= width + 1
        for other in boxes[:place]:
            # Boxes of letters are taller than the letters; a quarter of overlap still leaves them apart.
            apart = right <= other[0] or other[1] <= left
            overlap = min(bottom, other[3]) - max(top, other[2])
            assert apart or overlap < 0.3 * (bottom - top)


def test_long_labels_are_broken_before_a_column_is_cut(browser: Any, tmp_path: Path) -> None:
    long = "my own method with a rather long label, trained on half of the candidates only"
    methods = [{"name": "mine:Mine", "label": long}, {"name": "pml-ma"}]
    methods += [{"name": "sklearn.ensemble:RandomForestClassifier"}, {"name": "ridge", "role": "floor"}]
    methods += [{"name": "ridge", "label": "ridge on truth", "role": "ceiling"}]
    suite = make_suite(methods=methods, configurations=["photos.csv", "digits-6"], control=long, folds=2)
    file = tmp_path / "long.html"
    file.write_text(render_report(gather(suite, make_records(suite))), encoding="utf-8")
    page = browser.new_page(viewport={"width": 1300, "height": 900})
    page.goto(file.as_uri())
    cut = page.evaluate(
        "() => Array.from(document.querySelectorAll('.scroll')).filter(e => e.scrollWidth > e.clientWidth)"
        ".map(e => e.getAttribute('aria-label'))"
    )
    page.close()
    assert cut == []
