"""The report of a suite: one HTML file that needs no network."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from skpml._writing import inline_files, page_environment, replacing, require_packages
from skpml.experiments import _export as export
from skpml.experiments import _figures as figures
from skpml.experiments._export import DIGITS, format_number, format_p_value, format_table, ranking_notes
from skpml.experiments._metrics import greater_is_better, metric_title, title_with_arrow
from skpml.experiments._ranking import SMALLEST_GAP, NoiseGap, Ranking, measure_costs, noise_gap, rank_methods
from skpml.experiments._results import Results, check_published, gather_provenance, place_of, select

# Longer names are broken where a table is wider than the page.
_LONG_NAME = 24

_GENERATOR = '<meta name="generator" content="scikit-pml bench report">'
_HTML = export.CellStyle(
    str, '<b class="best">{}</b>', '<b class="second">{}</b>', "<b>{}</b>", "<small>± {}</small>"
)


class _PageTable(NamedTuple):
    """A table of the page; the last `foot` rows are not sorted."""

    caption: str
    frame: pd.DataFrame
    corner: str = "Configuration"
    foot: int = 0
    descending: bool = False
    show_caption: bool = True


def write_report(results: Results, path: str | Path, *, published: pd.DataFrame | None = None) -> None:
    """Write the report of a suite as one HTML file.

    Parameters
    ----------
    results : Results
        As :func:`collect` returns them. The same records give the same file.
    path : path-like
        An existing file is replaced.
    published : DataFrame, optional
        Published results to show beside measured ones, as :func:`read_published` returns them.

    Raises
    ------
    ImportError
        If jinja2, matplotlib or scikit-posthocs is missing.
    ValueError
        If no published result is about the suite.
    """
    page = render_report(results, published=published)
    with replacing(Path(path), overwrite=True) as (temporary,):
        temporary.write_text(page, encoding="utf-8")


def render_report(results: Results, *, published: pd.DataFrame | None = None) -> str:
    """Return the HTML of :func:`write_report`."""
    require_packages("the report", "bench", "jinja2", "markupsafe", "matplotlib", "scikit_posthocs")
    import markupsafe

    Markup, environment = markupsafe.Markup, page_environment("skpml.experiments")
    # A long name without spaces, such as that of a class, may be broken after punctuation.
    environment.filters["breakable"] = lambda text: Markup(
        re.sub(r"(?<=[.:_/])(?=\w)", "<wbr>", markupsafe.escape(text))
    )
    environment.globals["long"] = _LONG_NAME
    suite = results.suite
    check_published(suite, published)
    rankings = {metric: rank_methods(results, metric) for metric in suite.metrics}
    tables = {metric: results.table(metric, published=published) for metric in suite.metrics}
    is_ranked = any(ranking.average_ranks for ranking in rankings.values())
    # Ranks are expected, and their absence is explained, where methods are compared.
    no_ranks = not is_ranked and suite.kind in ("comparison", "ablation") and bool(results.cells)
    notes = {
        metric: [
            *export.table_notes(results, tables[metric], metric),
            *([] if is_ranked or no_ranks else ranking_notes(ranking)),
            *_comparison_notes(ranking),
        ]
        for metric, ranking in rankings.items()
    }
    ranks, n_tests = export.format_ranks(list(rankings.values()))
    gap = noise_gap(results)
    costs = measure_costs(results) if results.cells else pd.DataFrame()
    page = environment.get_template("report.html.j2").render(
        generator=Markup(_GENERATOR),
        **inline_files("skpml.experiments", style="report.css", scripts=("report.js",)),
        markup=Markup,
        suite=suite,
        results=results,
        provenance=gather_provenance(results),
        place_of=place_of,
        column_notes={
            label: suite.method(label).tuned if (role := results.role(label)) == "method" else role
            for table in tables.values()
            for label in table.columns.unique(0)
        },
        ranks=is_ranked and _PageTable("Average ranks, 1 is best", ranks, "Method", n_tests, False, False),
        no_ranks=no_ranks,
        number=format_number,
        format_p_value=format_p_value,
        rank_notes=export.join_notes({metric: ranking_notes(rankings[metric]) for metric in rankings}),
        table_notes=export.join_notes(notes) if results.cells else [],
        parts=[_make_part(results, rankings[metric], tables[metric]) for metric in suite.metrics],
        gap=gap,
        gap_table=_make_gap_table(gap) if gap is not None and len(gap.shares) else None,
        smallest_gap=SMALLEST_GAP,
        costs=_make_cost_table(costs, suite.control) if len(costs) else None,
        convergence=figures.convergence_curves(results) if suite.kind == "convergence" else [],
        decomposition=figures.decomposition_curves(results) if suite.kind == "decomposition" else [],
        chosen={entry.label: _count_chosen(results, entry.label) for entry in suite.methods},
        published=published is not None,
    )
    # The macros leave blank lines above the page.
    return page.lstrip()


def is_report(path: str | Path) -> bool:
    """Whether a file is a report of :func:`write_report`, which may be replaced."""
    try:
        with Path(path).open("rb") as file:
            return _GENERATOR.encode() in file.read(1000)
    except OSError:
        return False


def _make_part(results: Results, ranking: Ranking, table: pd.DataFrame) -> dict[str, Any]:
    """Make the section of a metric: table, verdict, diagram, comparison with the control, and sweeps."""
    metric, title = ranking.metric, title_with_arrow(ranking.metric)
    better, ablation = greater_is_better(metric), results.suite.kind == "ablation"
    cells = format_table(table, export.mark_best(results, table, metric), _HTML)
    foot = export.format_rank_row(ranking, list(cells.columns), _HTML)
    main = _PageTable(title, pd.concat([cells, foot]), "Configuration", len(foot), better, False)
    return {
        "metric": metric,
        "title": title,
        "ranking": ranking,
        "sides": _separate(ranking),
        "ablation": _make_ablation_table(results, table, metric) if ablation else None,
        "table": main if results.cells else None,
        "diagram": figures.critical_difference(ranking),
        "control": _make_control_table(ranking) if ranking.wilcoxon else None,
        "curves": figures.sensitivity_curves(results, metric),
        "sweeps": [
            _PageTable(
                f"{title} of {label} against {parameter}",
                format_table(results._sweep_table(label, parameter, metric), None, _HTML),
                parameter,
                descending=better,
            )
            for label, parameter in results.sweeps
        ],
    }


def _make_control_table(ranking: Ranking) -> _PageTable:
    rows = {
        test.method: {
            "Wins": counts.wins,
            "Ties": counts.ties,
            "Losses": counts.losses,
            "p": escape(format_p_value(test.p_value)),
            "p (Holm)": (_HTML.best if test.holm_p_value < 0.05 else "{}").format(
                escape(format_p_value(test.holm_p_value))
            ),
            "Effect size": format_number(test.effect_size, 2),
        }
        for test, counts in zip(ranking.wilcoxon, ranking.win_tie_loss, strict=True)
    }
    caption = f"{ranking.control} against each other method, {metric_title(ranking.metric)}, N = {ranking.n}"
    return _PageTable(caption, pd.DataFrame.from_dict(rows, orient="index"), "Against")


def _make_gap_table(gap: NoiseGap) -> _PageTable:
    shares = gap.shares
    summary = pd.DataFrame({"Mean": shares.mean(), "Median": shares.median()}).T
    cells = pd.concat([shares, summary]).map(
        lambda share: "–" if math.isnan(share) else f"{format_number(100 * share, 0)} %"
    )
    counts = pd.DataFrame({"Configurations": shares.notna().sum().map(str)}).T
    caption = f"Share of the distance from {gap.floor} to {gap.ceiling}, average precision"
    return _PageTable(caption, pd.concat([cells, counts]), foot=3, descending=True)


def _make_cost_table(costs: pd.DataFrame, control: str | None) -> _PageTable:
    def significant(value: float) -> str:
        return "–" if math.isnan(value) else f"{value:.3g}" if value < 100 else f"{value:,.0f}"

    ratio = f"to {control}" if control else "no control"
    frame = pd.DataFrame(
        {
            "Fit (seconds)": costs["fit_seconds"].map(significant),
            f"Fit, ratio {ratio}": costs["fit_ratio"].map(lambda value: format_number(value, 2)),
            "Predict (seconds)": costs["predict_seconds"].map(significant),
            "Peak memory (MB)": costs["memory_mb"].map(significant),
            f"Memory, ratio {ratio}": costs["memory_ratio"].map(lambda value: format_number(value, 2)),
            "Configurations": costs["n"].map(str),
        }
    )
    return _PageTable("Time and memory of a run", frame, "Method", show_caption=False)


def _make_ablation_table(results: Results, table: pd.DataFrame, metric: str) -> _PageTable | None:
    """Every variant and its difference from the control, where both are complete."""
    control, labels = results.suite.control, results.labels()
    if control not in labels or len(labels) < 2:
        return None
    means = select(table, "mean")[labels]
    complete = means.where(select(table, "state")[labels] == "done")
    differences = complete.sub(complete[control], axis=0)
    texts = means.map(lambda value: format_number(value, DIGITS))
    frame = (texts + differences.map(_format_difference)).assign(**{control: texts[control]}).T
    frame["Mean difference"] = differences.mean().map(_format_difference).str.strip(" ()")
    caption = f"{title_with_arrow(metric)} of each variant, and its difference from {control}"
    return _PageTable(caption, frame, "Variant", descending=greater_is_better(metric))


def _format_difference(value: float) -> str:
    if math.isnan(value):
        return ""
    text = format_number(value, DIGITS)
    return f" (+{text})" if float(f"{value:.{DIGITS}f}") > 0 else f" ({text})"


def _comparison_notes(ranking: Ranking) -> list[str]:
    """What a reader must know about the diagram and the comparisons with the control."""
    notes = []
    if ranking.nemenyi is not None:
        band = f" The shaded band is one critical difference wide on both sides of {ranking.control}."
        notes.append(
            "In the diagrams better methods are on the left. A bar joins methods that Nemenyi's test does not separate "
            f"at the level 0.05.{band if ranking.control in ranking.average_ranks else ''}"
        )
    if count := len(ranking.wilcoxon):
        notes += [
            "Against the control: Wilcoxon's signed-rank test over configurations, two-sided; Holm's correction for "
            f"{count} comparison{'s' if count > 1 else ''}; bold below 0.05.",
            f"Effect size: rank-biserial correlation, 1 if {ranking.control} is better everywhere, −1 if it is worse.",
        ]
    return notes


def _separate(ranking: Ranking) -> dict[str, list[str]]:
    """Group the other methods by whether the control is better or worse by Nemenyi's test, or equal."""
    sides: dict[str, list[str]] = {"better": [], "worse": [], "equal": []}
    if (found := ranking.nemenyi) is not None:
        for (one, name), p_value in found.p_values.items():
            if one == ranking.control:
                side = "worse" if found.average_ranks[name] < found.average_ranks[one] else "better"
                sides[side if p_value < found.alpha else "equal"].append(name)
    return sides


def _count_chosen(results: Results, label: str) -> dict[str, list[tuple[str, int]]]:
    """Count the values that were chosen for each tuned parameter of a method, the most common first."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for own, _, cell in results._all_cells():
        for record in cell.records if own == label else ():
            for name, value in (record.get("chosen") or {}).items():
                counts[name][str(value)] += 1
    return {
        name: sorted(found.items(), key=lambda item: (-item[1], item[0])) for name, found in counts.items()
    }
