"""CSV, LaTeX and Markdown: every figure is there, every name is shown as it is written, and LaTeX would compile."""

from __future__ import annotations

import csv
import io
import math
import re

import pytest
from report_helpers import CONFIGURATIONS, gather, make_failure, make_records, make_suite, published

from skpml.experiments import Results, rank_methods
from skpml.experiments._export import (
    _export_ranks as export_ranks,
)
from skpml.experiments._export import (
    _export_sweeps as export_sweeps,
)
from skpml.experiments._export import (
    _export_table as export_table,
)
from skpml.experiments._export import (
    escape_latex,
    escape_markdown,
    export_tables,
    format_number,
    format_p_value,
    mark_best,
)

METRIC = "average_precision"
NASTY = r"50% of $x_i$ & {#1} ~^\ <b>|*`[a](b)"


@pytest.fixture(scope="module")
def results() -> Results:
    suite = make_suite(folds=2, methods=_methods(), configurations=list(CONFIGURATIONS[1:8]))
    records = [r for r in make_records(suite) if r["run"]["configuration"] != "birds-4"]
    lost = ("pml-ni", "emotions-3", 1)
    records = [
        r for r in records if (r["run"]["method"], r["run"]["configuration"], r["run"]["fold"]) != lost
    ]
    records.append(make_failure(suite, "pml-ni", "emotions-3", 1, "no"))
    return gather(suite, records, absent={"birds-4": "not on this disk: C:\\data_sets\\100%"})


def _methods() -> list[dict[str, str]]:
    return [
        {"name": "pml-ma"},
        {"name": "pml-ni"},
        {"name": "pamb", "label": NASTY},
        {"name": "ridge", "label": "floor", "role": "floor"},
    ]


def check_latex(text: str) -> None:
    """What a compiler would trip over: braces, environments, columns, characters with a meaning."""
    text = re.sub(r"(?m)(?<!\\)%.*$", "", text)
    bare = text.replace(r"\\", "\n").replace(r"\{", "").replace(r"\}", "")
    depth = 0
    for character in bare:
        depth += {"{": 1, "}": -1}.get(character, 0)
        assert depth >= 0
    assert depth == 0
    opened = []
    for kind, name in re.findall(r"\\(begin|end)\{([a-z*]+)\}", bare):
        if kind == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert opened == []
    assert len(re.findall(r"(?<!\\)\$", bare)) % 2 == 0
    words = re.sub(r"\\(label|begin|end|cmidrule\(lr\)|usepackage)\{[^}]*\}", "", bare)
    outside = re.sub(r"(?<!\\)\$[^$]*(?<!\\)\$", "", words)
    assert not re.search(r"(?<!\\)[#_^~]", outside)
    assert set(re.findall(r"\\([a-zA-Z]+)", bare)) <= {
        "begin", "end", "centering", "footnotesize", "scriptsize", "setlength", "tabcolsep", "caption", "label",
        "toprule", "midrule", "bottomrule", "cmidrule", "multicolumn", "textbf", "underline", "pm", "uparrow",
        "downarrow", "resizebox", "linewidth", "textbackslash", "textasciitilde", "textasciicircum", "textless",
        "textgreater", "textbar", "chi",
    }  # fmt: skip
    found = re.search(r"\\begin\{tabular\}\{(l?r*)\}(.*)\\end\{tabular\}", text, flags=re.DOTALL)
    assert found
    columns, body = found.groups()
    body = re.sub(r"\\(toprule|midrule|bottomrule|cmidrule\(lr\)\{[\d-]+\})", "", body)
    rows = [row for row in re.split(r"\\\\\s*\n", body) if row.strip()]
    for row in rows:
        spans = sum(int(n) - 1 for n in re.findall(r"\\multicolumn\{(\d+)\}", row))
        assert len(re.findall(r"(?<!\\)&", row)) + 1 + spans == len(columns), row


@pytest.mark.parametrize("shown", [False, True])
def test_latex_would_compile(results: Results, shown: bool) -> None:
    text = export_table(results, METRIC, "latex", published=published() if shown else None)
    check_latex(text)
    assert ("(published)" in text) == shown
    assert (r"\resizebox" in text) == shown
    assert r"\label{tab:paper-average-precision}" in text
    check_latex(export_ranks(results, "latex"))


def test_the_check_of_latex_can_fail() -> None:
    good = "\\begin{tabular}{lr}\na & b \\\\\n\\end{tabular}"
    check_latex(good)
    for bad in ("a & b_c", "a & {b", "a", "a & b & c", "a & \\undefined", "a & $b"):
        with pytest.raises(AssertionError):
            check_latex(good.replace("a & b", bad))


def test_every_character_with_a_meaning_in_latex_is_printed_instead() -> None:
    assert escape_latex("a_b & 50%\n#1") == r"a\_b \& 50\% \#1"
    assert escape_latex("\\{}") == r"\textbackslash{}\{\}"
    assert escape_latex("~^<>|$") == (
        r"\textasciitilde{}\textasciicircum{}\textless{}\textgreater{}\textbar{}\$"
    )


def test_latex_marks_the_best_and_tells_what_is_missing(results: Results) -> None:
    table, ranking = results.table(METRIC), rank_methods(results, METRIC)
    text = export_table(results, METRIC, "latex")
    marks = mark_best(results, table, METRIC).loc["image-2"]
    best, second = (table.loc["image-2", marks[marks == mark].index[0]] for mark in ("best", "second"))
    line = next(line for line in text.splitlines() if line.startswith("image-2"))
    assert rf"\textbf{{{best['mean']:.3f}}} {{\scriptsize$\pm$\,{best['fold_std']:.3f}}}" in line
    assert rf"\underline{{{second['mean']:.3f}}}" in line
    assert next(line for line in text.splitlines() if line.startswith("birds-4")).count("-- (absent)") == 4
    assert "(1/2)" in next(line for line in text.splitlines() if line.startswith("emotions-3"))
    assert f"Average rank (N = {ranking.n})" in text
    assert "birds-4 (absent)" in text
    assert "on this disk" not in text
    assert "emotions-3 (incomplete: pml-ni)" in text


def test_csv_holds_every_figure_to_the_last_digit(results: Results) -> None:
    header, *rows = csv.reader(io.StringIO(export_table(results, METRIC, "csv", published=published())))
    assert len(set(header)) == len(header)
    assert [row[0] for row in rows] == list(results.suite.configurations)
    place = header.index(f"{NASTY} mean")
    for row, mean in zip(rows, results.table(METRIC)[NASTY, "mean"], strict=True):
        assert row[place] == ("" if math.isnan(mean) else repr(mean))
    assert rows[0][header.index("pml-ni runs")] == "1"
    assert rows[0][header.index("pml-ni (published, not measured here) mean")] == "0.777"
    ranks = list(csv.reader(io.StringIO(export_ranks(results, "csv"))))
    assert ranks[-1] == ["N", *["5"] * 5]
    place = ranks[0].index(METRIC)
    assert float(ranks[1][place]) == rank_methods(results, METRIC).average_ranks["pml-ma"]


def test_markdown_has_the_same_columns_in_every_row(results: Results) -> None:
    text = export_table(results, METRIC, "markdown", published=published())
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 2 + 7 + 1
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {4 + 9 + 2}
    assert "<b>" not in text
    assert "– (absent)" in text
    assert "(1/2)" in text
    assert re.search(r"\*\*0\.\d{3}\*\* ± 0\.\d{3}", text)
    assert re.search(r"<ins>0\.\d{3}</ins> ± 0\.\d{3}", text)
    assert escape_markdown("a|b_c\n<d>") == r"a\|b\_c &lt;d&gt;"
    assert "| N | 5 |" in export_ranks(results, "markdown")


@pytest.mark.slow
def test_every_table_in_every_format(results: Results) -> None:
    names = [*results.suite.metrics, "ranks"]
    assert set(export_tables(results)) == {f"{name}.{end}" for name in names for end in ("csv", "tex", "md")}
    assert set(export_tables(results, ["csv"])) == {f"{name}.csv" for name in names}


def test_notes_say_how_parameters_were_chosen(results: Results) -> None:
    tuned = [
        {
            "name": "pml-ma",
            "tuning": {"selector": selector, "grid": {"ridge_weight": [0.1, 1.0]}},
            "label": selector,
        }
        for selector in ("label-free", "oracle")
    ]
    suite = make_suite(methods=[*tuned, {"name": "pml-ni"}], folds=2, control="oracle")
    text = export_table(gather(suite, make_records(suite)), METRIC, "markdown")
    assert "Tuned without true labels (label-free): label-free" in text
    assert "tuned with true labels of inner folds (oracle): oracle" in text
    assert "(fixed): pml-ni." in text


def test_sweeps_are_exported_point_by_point() -> None:
    methods = [{"name": "pml-ma", "sweep": {"low_rank_weight": [0.1, 1.0]}}]
    suite = make_suite(kind="sensitivity", methods=methods, configurations=["birds-3"], folds=2)
    rows = list(csv.reader(io.StringIO(export_sweeps(gather(suite, []), METRIC))))
    assert rows[1:] == [["pml-ma", "low_rank_weight", v, "birds-3", "", "", "", "0"] for v in ("0.1", "1.0")]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1236, "0.124"), (-0.5, "−0.500"), (-0.0001, "0.000"), (math.nan, "–"), (math.inf, "∞")],
)
def test_numbers_for_people(value: float, text: str) -> None:
    assert format_number(value, 3) == text
    assert format_p_value(0.00001) == "< 0.0001"


def test_notes_warn_of_configurations_of_one_data_set_and_of_few(results: Results) -> None:
    # emotions-4, birds-3, image-2, image-4 and scene-3 are whole.
    text = export_table(results, METRIC, "markdown")
    assert "The 5 configurations come from 4 data sets." in text
    assert "With N = 5, Wilcoxon's two-sided p cannot be smaller than 0.0625." in text
    suite = make_suite(
        folds=2, configurations=["emotions-3", "birds-3"], methods=[{"name": "pml-ma"}, {"name": "pamb"}]
    )
    plain = export_table(gather(suite, make_records(suite)), METRIC, "markdown")
    assert "come from" not in plain
