"""The report of a suite: one HTML file that opens without a network."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skpml._pages import inline_files, page_environment, require_packages
from skpml.experiments import _figures as figures
from skpml.experiments._figures import Drawing
from skpml.experiments._metric_tables import MetricTable, metric_table, tuning_of
from skpml.experiments._page_tables import (
    PageTable,
    ablation_page_table,
    control_page_table,
    cost_page_table,
    gap_page_table,
    ranks_page_table,
    results_page_table,
    sweep_page_table,
)
from skpml.experiments._provenance import chosen_values, gather_provenance
from skpml.experiments._ranking import Ranking, rank_methods
from skpml.experiments._results import Results, metric_title
from skpml.experiments._summaries import SMALLEST_GAP, costs, noise_gap
from skpml.experiments._wording import (
    comparison_notes,
    joint_notes,
    number,
    p_value,
    said_once,
    table_notes,
    why_no_ranks,
)

__all__ = ["is_report", "render_report"]

# Characters; longer names are broken where a table is wider than the page.
_LONG_NAME = 24

_GENERATOR = '<meta name="generator" content="scikit-pml bench report">'


@dataclass(frozen=True, kw_only=True)
class _MetricPart:
    """What the page tells of one metric."""

    metric: str
    title: str
    table: PageTable
    verdict: str
    diagram: Drawing | None
    control: PageTable | None
    ablation: PageTable | None
    curves: list[Drawing]
    sweeps: list[PageTable]


@dataclass(frozen=True, kw_only=True)
class _MethodFacts:
    """What the page tells of how a method was set up."""

    label: str
    name: str
    role: str
    parameters: str
    tuning: str
    chosen: str


def render_report(results: Results, *, with_published: bool = False, rank_published: bool = False) -> str:
    """The whole report as HTML.

    Parameters
    ----------
    results : Results
        As :func:`skpml.experiments._tables.collect` gives them. The same records give the same page, to the byte.
    with_published : bool, default=False
        Show what the paper prints in columns of their own, marked as not measured here.
    rank_published : bool, default=False
        Let those columns take part in ranks and tests; shows them too.

    Raises
    ------
    ImportError
        If jinja2, matplotlib or scikit-posthocs is missing.
    """
    require_packages("the report", "bench", "jinja2", "markupsafe", "matplotlib", "scikit_posthocs")
    from markupsafe import Markup, escape

    environment = page_environment("skpml.experiments")
    # A long name without blanks, such as that of a class, may be broken at its marks.
    environment.filters["breakable"] = lambda text: Markup(
        re.sub(r"(?<=[.:_/])(?=\w)", "<wbr>", escape(text))
    )
    environment.globals["long"] = _LONG_NAME
    suite, has_cells = results.suite, bool(results.cells)
    with_published = with_published or rank_published
    rankings = [rank_methods(results, metric, rank_published=rank_published) for metric in suite.metrics]
    tables = [metric_table(results, metric, with_published=with_published) for metric in suite.metrics]
    gap = noise_gap(results) if suite.kind != "decomposition" else None
    convergence = figures.convergence_curves(results) if suite.kind == "convergence" else []
    decomposition = figures.decomposition_curves(results) if suite.kind == "decomposition" else []
    found = costs(results)
    ranked = any(ranking.average_ranks for ranking in rankings)
    no_ranks = "" if ranked else why_no_ranks(results, rankings[0])
    notes = {
        table.metric: [
            *table_notes(table, None if ranked or no_ranks else ranking),
            *comparison_notes(ranking),
        ]
        for table, ranking in zip(tables, rankings, strict=True)
    }
    page = environment.get_template("report.html.j2").render(
        generator=Markup(_GENERATOR),
        **inline_files("skpml.experiments", style="report.css", scripts=("report.js",)),
        svg=Markup,
        suite=suite,
        results=results,
        provenance=gather_provenance(results),
        ranks=ranks_page_table(rankings) if ranked else None,
        no_ranks=no_ranks,
        rank_notes=joint_notes(rankings),
        notes_of_tables=said_once(notes) if has_cells else [],
        parts=[_part(results, *pair) for pair in zip(rankings, tables, strict=True)]
        if has_cells or results.sweeps
        else [],
        gap=gap,
        gap_table=gap_page_table(gap) if gap and gap.shares else None,
        smallest_gap=SMALLEST_GAP,
        costs=cost_page_table(found, suite.control) if found else None,
        convergence=convergence,
        decomposition=decomposition,
        methods=_method_facts(results),
        with_published=with_published,
        rank_published=rank_published,
    )
    # What the macros leave above the page.
    return page.lstrip()


def is_report(path: str | Path) -> bool:
    """Whether a file is a report that was written here, and may be written again."""
    try:
        with Path(path).open("rb") as file:
            return _GENERATOR.encode() in file.read(1000)
    except OSError:
        return False


def _part(results: Results, ranking: Ranking, table: MetricTable) -> _MetricPart:
    metric, kind = ranking.metric, results.suite.kind
    return _MetricPart(
        metric=metric,
        title=f"{metric_title(metric)} {table.direction}",
        table=results_page_table(table, ranking),
        verdict=_verdict(ranking),
        diagram=figures.critical_difference(ranking),
        control=control_page_table(ranking),
        ablation=ablation_page_table(table, results) if kind == "ablation" else None,
        curves=figures.sensitivity_curves(results, metric) if results.sweeps else [],
        sweeps=[sweep_page_table(results, label, name, metric) for label, name in results.sweeps],
    )


def _verdict(ranking: Ranking) -> str:
    """What the tests say of a metric, in a few sentences."""
    test, found = ranking.friedman, ranking.nemenyi
    if test is None or found is None:
        if ranking.n == 1 and ranking.average_ranks:
            return "With 1 configuration there is no test: two at least are needed."
        if len(ranking.average_ranks) == 2 and not ranking.wilcoxon:
            return "There is no test: two methods are compared where one of them is the control of the suite."
        return _verdict_on_two(ranking) if len(ranking.wilcoxon) == 1 else ""
    f_statistic = (
        f"F = {number(test.f_statistic, 2)} against a critical value of {number(test.critical_value, 2)}"
    )
    if math.isinf(test.f_statistic):
        f_statistic = "all configurations rank them alike"
    elif test.exact:
        f_statistic = f"χ² = {number(test.chi2, 2)}, p counted exactly"
    if not test.significant:
        return (
            f"Friedman's test finds no difference among the {test.n_methods} methods ({f_statistic}, "
            f"{_p(test.p_value)}, N = {test.n_datasets}): what the ranks and the diagram show may be chance."
        )
    text = f"The methods differ (Friedman, {f_statistic}, {_p(test.p_value)}, N = {test.n_datasets})."
    control, ranks = ranking.control, found.average_ranks
    if control not in ranks:
        return text
    others = {name: found.p_values[control, name] for name in ranks if name != control}
    told = [name for name, p in others.items() if p < found.alpha]
    sides = {
        "better": [name for name in told if ranks[name] > ranks[control]],
        "worse": [name for name in told if ranks[name] < ranks[control]],
    }
    level = f"by Nemenyi's test at the level {found.alpha:g}"
    if not told:
        return f"{text} No other method can be told from {control} {level}."
    parts = [f"{control} is ranked {side} than {_listed(names)}" for side, names in sides.items() if names]
    rest = [name for name in others if name not in told]
    tail = f" It cannot be told from {_listed(rest)}." if rest else ""
    return f"{text} {level[:1].upper()}{level[1:]}, {' and '.join(parts)}.{tail}"


def _verdict_on_two(ranking: Ranking) -> str:
    counts, test = ranking.win_tie_loss[0], ranking.wilcoxon[0]
    return (
        f"On {ranking.n} configurations {ranking.control} is better than {counts.method} {counts.wins} times, as good "
        f"{counts.ties} times, worse {counts.losses} times (Wilcoxon, {_p(test.p_value)})."
    )


def _p(value: float) -> str:
    text = p_value(value)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _method_facts(results: Results) -> list[_MethodFacts]:
    facts = []
    for entry in results.suite.methods:
        records = [
            record
            for label, _, cell in results.all_cells()
            if label == entry.label
            for record in cell.records
        ]
        chosen = [
            f"{name}: "
            + ", ".join(f"{value} ({count}×)" for value, count in counts[:4])
            + (", …" if counts[4:] else "")
            for name, counts in chosen_values(records).items()
        ]
        by_data = [f"{name}: {_assigned(values)}" for name, values in entry.by_data.items()]
        sweep = [f"{name} over {', '.join(map(str, values))}" for name, values in entry.sweep.items()]
        facts.append(
            _MethodFacts(
                label=entry.label,
                name=entry.name,
                role=entry.role + (", trained on true labels" if entry.role == "ceiling" else ""),
                parameters="; ".join(
                    filter(
                        None,
                        (
                            _assigned(entry.parameters) or ("defaults" if not by_data else ""),
                            *by_data,
                            *sweep,
                        ),
                    )
                ),
                tuning=_tuning_words(results, entry.label),
                chosen="; ".join(chosen),
            )
        )
    return facts


def _tuning_words(results: Results, label: str) -> str:
    tuning: Any = results.method(label).tuning
    if tuning is None:
        return "fixed: not tuned"
    how = {
        "label-free": "label-free: no true label was used",
        "oracle": "oracle: the true labels of inner folds were used",
    }[tuning_of(results, label)]
    grid = "; ".join(f"{name} in {', '.join(map(str, values))}" for name, values in tuning.grid.items())
    return f"{how}. {tuning.search} search, {tuning.inner_folds} inner folds of the training fold: {grid}"


def _assigned(parameters: Any) -> str:
    return ", ".join(f"{name} = {value}" for name, value in parameters.items())
