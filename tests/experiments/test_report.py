"""The report as a file: whole, well-formed, honest about what is missing, and safe to open."""

from __future__ import annotations

import base64
import hashlib
import html
import random
import re
from pathlib import Path
from typing import Any

import pytest
from report_helpers import (
    CONFIGURATIONS,
    METHODS,
    gather,
    make_failure,
    make_record,
    make_records,
    make_suite,
    published,
)

from page_checker import PageChecker

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
pytest.importorskip("scikit_posthocs")

from skpml.experiments import rank_methods
from skpml.experiments._report import is_report, render_report

ATTACK = '<script>alert("x")</script><img src=x onerror=alert(1)>'


def check_page(page: str) -> PageChecker:
    checker = PageChecker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    assert len(checker.ids) == len(set(checker.ids)) > 0
    assert set(checker.references) <= set(checker.ids)
    assert checker.scripts == 1
    assert not re.search(r"https?:|@import|<link|<iframe|url\((?!#)", page)
    assert not re.search(r"\bnan\b|\bNone\b|#0102", page)
    return checker


def broken_records(suite: Any) -> list[dict[str, Any]]:
    """One configuration absent, one cell with failures, one fold not done, a warning here and there."""
    gone = {("pamb", "arts-9", 2), ("pamb", "arts-9", 0), ("pml-ni", "image-2", 1)}
    records = [
        record
        for record in make_records(suite)
        if record["run"]["configuration"] != "mirflickr"
        and (record["run"]["method"], record["run"]["configuration"], record["run"]["fold"]) not in gone
    ]
    records += [
        make_failure(suite, "pamb", "arts-9", fold, f"SVD did not converge {ATTACK}") for fold in (0, 2)
    ]
    records[0] = {**records[0], "warnings": ["stopped early"], "converged": False}
    return records


@pytest.fixture(scope="module")
def page() -> str:
    suite = make_suite(folds=3)
    results = gather(suite, broken_records(suite), absent={"mirflickr": "not in the data folder"})
    return render_report(results, published=published())


def test_the_page_is_well_formed_and_asks_for_nothing(page: str) -> None:
    check_page(page)
    assert page.startswith("<!doctype html>")


@pytest.mark.slow
def test_the_same_records_give_the_same_page_in_whatever_order(page: str) -> None:
    suite = make_suite(folds=3)
    records = broken_records(suite)
    random.Random(0).shuffle(records)
    results = gather(suite, records, absent={"mirflickr": "not in the data folder"})
    assert render_report(results, published=published()) == page
    assert render_report(results) != page


@pytest.mark.slow
def test_the_page_shows_what_was_measured(page: str) -> None:
    suite = make_suite(folds=3)
    results = gather(suite, broken_records(suite))
    text = "".join(check_page(page).text)
    for metric in suite.metrics:
        table = results.table(metric)
        for label in table.columns.unique(0):
            for entry in table[label].itertuples():
                assert entry.runs == 0 or f"{entry.mean:.3f}{spread(entry)}" in text
        for rank in rank_methods(results, metric).average_ranks.values():
            assert f"{rank:.2f}" in text
    for section in ("ranks", "gap", "costs", "methods", "provenance", "failures", "metric-average_precision"):
        assert f'id="{section}"' in page


def spread(entry: Any) -> str:
    """One run has no standard deviation."""
    return f"± {entry.fold_std:.3f}" if entry.runs > 1 else f" ({entry.runs}/{entry.expected})"


def test_what_is_missing_is_said(page: str) -> None:
    text = " ".join("".join(check_page(page).text).split())
    assert "The data of 1 of 12 configurations are absent: mirflickr" in text
    assert "2 runs failed" in text
    assert "1 runs have not been done yet" in text
    assert "mirflickr (absent)" in text
    assert "arts-9 (incomplete: pamb)" in text
    assert "image-2 (incomplete: pml-ni)" in text
    assert "N = 9" in text
    assert "pamb, 2 runs (arts-9, seed 0, fold 0; arts-9, seed 0, fold 2)" in text
    assert "1 of 33 runs stopped before they converged" in text
    assert "label-free: no true label was used" in text
    assert "scikit-pml 0.1.0" in text


@pytest.mark.slow
def test_published_results_are_shown_only_when_asked_and_marked(page: str) -> None:
    assert page.count("<small>published</small>") == len(METHODS) * 5
    assert "Published results were not measured here" in page
    suite = make_suite(folds=2, metrics=["average_precision"])
    results = gather(suite, make_records(suite))
    plain = render_report(results)
    assert "published" not in re.sub(r"<script>.*?</script>", "", plain, flags=re.DOTALL)
    assert "Read this first" not in plain


@pytest.mark.slow
def test_names_and_messages_are_text_and_never_markup() -> None:
    labels = [ATTACK, "{{ 7 * 7 }}", "</table>&amp;", "a\"b'c"]
    methods = [{"name": name, "label": label} for name, label in zip(METHODS, labels, strict=False)]
    suite = make_suite(
        folds=2,
        methods=methods,
        metrics=["average_precision"],
        control=ATTACK,
        title=f"T {ATTACK}",
        description=ATTACK,
    )
    records = make_records(suite)
    records[0] = {**records[0], "warnings": [ATTACK]}
    records[1]["provenance"]["versions"] = {ATTACK: ATTACK}
    records[-1] = make_failure(suite, labels[-1], CONFIGURATIONS[-1], 1, ATTACK)
    page = render_report(gather(suite, records, absent={}))
    checker = check_page(page)
    text = "".join(checker.text)
    for label in labels:
        assert label in text
    assert "49" not in re.findall(r"<th scope=\"row\">(.*?)</th>", page)
    assert "<img" not in page
    assert html.escape(ATTACK, quote=False) in page or "&lt;script&gt;" in page


def test_only_the_pages_own_script_may_run(page: str) -> None:
    script = re.search(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    assert script
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    assert f"script-src 'sha256-{digest}'" in html.unescape(policy[1])
    assert "default-src 'none'" in html.unescape(policy[1])


def test_dark_and_light_have_the_same_colours_defined(page: str) -> None:
    light, dark = re.findall(r":root \{(.*?)\}", page, flags=re.DOTALL)[:2]
    assert set(re.findall(r"--\w+(?=:)", light)) == set(re.findall(r"--\w+(?=:)", dark))
    used = set(re.findall(r"var\((--\w+)\)", page)) - {"--width"}
    assert used <= set(re.findall(r"--\w+(?=:)", light))


@pytest.mark.slow
def test_mixed_versions_and_mixed_data_are_a_warning() -> None:
    suite = make_suite(folds=2, seeds=[0, 1], metrics=["average_precision"])
    records = make_records(suite)
    assert "Read this first" not in render_report(gather(suite, records))
    records[0]["provenance"]["versions"]["numpy"] = "1.26.0"
    records[0]["provenance"]["data_checksum"] = "other"
    text = render_report(gather(suite, records))
    assert "used different versions of numpy" in text
    assert f"used different data on {records[0]['run']['configuration']}" in text
    assert "numpy 1.26.0 and 2.1.0" in text


def sweep_records(suite: Any) -> list[dict[str, Any]]:
    return [
        make_record(suite, "pml-ma", name, fold, parameters={"low_rank_weight": value})
        for value in suite.methods[0].sweep["low_rank_weight"]
        for name in suite.configurations
        for fold in range(suite.folds)
    ]


@pytest.mark.parametrize("kind", ["sensitivity", "convergence", "ablation", "decomposition"])
@pytest.mark.slow
def test_every_kind_of_suite_has_its_page_with_and_without_records(kind: str) -> None:
    changed: dict[str, Any] = {
        "kind": kind,
        "folds": 2,
        "configurations": ["yeast-7", "yeast-9"],
        "name": kind,
    }
    if kind == "sensitivity":
        changed["methods"] = [{"name": "pml-ma", "sweep": {"low_rank_weight": [0.1, 1.0]}}]
    elif kind == "decomposition":
        changed |= {
            "methods": [{"name": "pml-ma"}, {"name": "ridge"}],
            "metrics": ["average_precision", "auc"],
        }
    else:
        changed["methods"] = [
            {"name": "pml-ma", "history": True},
            {"name": "pml-ma", "label": "without alignment", "parameters": {"alignment_weight": 0.0}},
        ]
    suite = make_suite(**changed)
    records = sweep_records(suite) if kind == "sensitivity" else make_records(suite)
    for record in records:
        record["history"] = {"objective": [3.0, 2.0, 1.5]}
        # Ridge has no confidences.
        if kind == "decomposition" and record["run"]["method"] == "pml-ma":
            record["metrics"]["auc"] = 0.7
    page = render_report(gather(suite, records))
    check_page(page)
    assert page.count("<figure") >= (2 if kind in ("convergence", "decomposition", "sensitivity") else 0) / 2
    if kind == "ablation":
        assert "of each variant, and its difference from pml-ma" in page
    check_page(render_report(gather(suite, [])))


def test_with_two_methods_the_verdict_is_that_of_wilcoxon() -> None:
    suite = make_suite(folds=2, methods=[{"name": "pml-ma"}, {"name": "particle"}])
    page = render_report(gather(suite, make_records(suite)))
    assert re.search(r"On 12 configurations pml-ma is better than particle \d+ times", page)
    assert "Friedman" not in page


@pytest.mark.slow
def test_a_suite_without_a_control_has_a_page() -> None:
    suite = make_suite(folds=2, control=None, metrics=["average_precision"])
    page = render_report(gather(suite, make_records(suite)))
    check_page(page)
    assert "The methods differ" in page


@pytest.mark.slow
def test_the_verdict_follows_the_figures() -> None:
    suite = make_suite(folds=2, metrics=["average_precision"], methods=[{"name": n} for n in METHODS[:4]])

    def verdict(value: Any) -> str:
        records = make_records(suite)
        for record in records:
            record["metrics"] = {
                "average_precision": value(record["run"]["method"], record["run"]["configuration"])
            }
        return " ".join(render_report(gather(suite, records)).split())

    order = {name: place for place, name in enumerate(METHODS[:4])}
    alike = verdict(lambda method, _: 0.9 - 0.1 * order[method])
    assert "all configurations have the same order" in alike
    assert "pml-ma is ranked better than fbd-pml and pml-nd by Nemenyi's test" in html.unescape(alike)
    assert "It does not differ significantly from pml-plr." in alike
    worst = verdict(lambda method, _: 0.5 + 0.1 * order[method])
    assert "pml-ma is ranked worse than fbd-pml and pml-nd" in worst
    turning = verdict(lambda method, name: (order[method] + CONFIGURATIONS.index(name)) % 4 / 10)
    assert "finds no difference among the 4 methods" in turning


def test_only_reports_are_taken_for_such(page: str, tmp_path: Path) -> None:
    own, other = tmp_path / "own.html", tmp_path / "other.html"
    own.write_text(page, encoding="utf-8")
    other.write_text("<!doctype html><title>scikit-pml report</title>")
    assert is_report(own)
    assert not is_report(other)
    assert not is_report(tmp_path)


def section(page: str, name: str) -> str:
    """The text of a section, on one line; empty where there is none."""
    found = re.search(rf'<section id="{name}">.*?</section>', page, flags=re.DOTALL)
    return "" if found is None else " ".join("".join(check_text(found[0])).split())


def check_text(part: str) -> list[str]:
    checker = PageChecker()
    checker.feed(part)
    return checker.text


@pytest.mark.slow
def test_where_there_are_no_ranks_the_page_says_why() -> None:
    floor = {"name": "ridge", "role": "floor"}
    alone = make_suite(methods=[{"name": "pml-ma"}, floor], folds=2)
    reason = "There are no ranks: pml-ma is the only method to rank, and at least two are needed"
    assert reason in section(render_report(gather(alone, make_records(alone))), "ranks")
    none = make_suite(methods=[floor], control=None, folds=2)
    assert "there is no method to rank" in section(render_report(gather(none, make_records(none))), "ranks")
    two = make_suite(
        methods=[{"name": "pml-ma"}, {"name": "pml-ni"}], folds=2, configurations=["emotions-3", "birds-3"]
    )
    records = make_records(two)
    assert "There are no ranks" not in render_report(gather(two, records))
    places = {("pml-ma", "emotions-3"), ("pml-ni", "birds-3")}
    apart = [r for r in records if (r["run"]["method"], r["run"]["configuration"]) in places]
    told = section(render_report(gather(two, apart)), "ranks")
    assert "no configuration on which all ranked methods are complete" in told
    assert "emotions-3 (not run: pml-ni)" in told
    alone = [r for r in records if r["run"]["method"] == "pml-ma"]
    told = section(render_report(gather(two, alone)), "ranks")
    assert "fewer than two methods are complete" in told


def test_two_methods_without_a_control_have_ranks_and_no_test() -> None:
    suite = make_suite(methods=[{"name": "pml-ma"}, {"name": "pml-ni"}], control=None, folds=2)
    page = render_report(gather(suite, make_records(suite)))
    assert "There is no test: two methods are compared if one of them is the control" in page


def test_what_holds_for_every_table_is_said_once(page: str) -> None:
    notes = ["".join(check_text(note)) for note in re.findall(r"<li>(.*?)</li>", page, flags=re.DOTALL)]
    assert len(notes) == len(set(notes))
    for words in (
        "Mean ± sample standard deviation",
        "Wilcoxon's signed-rank",
        "A bar joins methods",
        "Effect size:",
    ):
        assert sum(words in note for note in notes) == 1, words
    assert "Hamming loss, Ranking loss, One-error, Coverage: Lower is better." in notes
    assert "Average precision: Higher is better." in notes


@pytest.mark.slow
def test_a_long_message_of_a_failure_is_cut_and_its_traceback_is_not() -> None:
    suite = make_suite(folds=2)
    page = render_report(gather(suite, [make_failure(suite, "pamb", "arts-9", 0, "long " * 100)]))
    told, traceback = re.search(
        r"<code>(LinAlgError.*?)</code>.*?<pre>(.*?)</pre>", page, flags=re.DOTALL
    ).groups()
    assert told.endswith("…")
    assert len(told) < 320
    assert traceback.count("long") == 100


def test_the_page_says_if_floor_and_ceiling_are_not_tuned_like_the_methods() -> None:
    suite = make_suite(configurations=["emotions-3", "birds-3"])
    results = gather(suite, make_records(suite))
    assert "Floor and ceiling are not both tuned, but pml-ma is" in render_report(results)
    assert "Floor and ceiling are not both tuned" not in render_report(results.leave_out(["pml-ma"]))
