"""Tables as text: CSV for programs, LaTeX for papers, Markdown for pages, and notes for readers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import NamedTuple, cast

import pandas as pd

from skpml.experiments._metrics import greater_is_better, metric_title, title_with_arrow
from skpml.experiments._ranking import Ranking, rank_methods
from skpml.experiments._results import PUBLISHED, STATISTICS, Results, check_published, select
from skpml.experiments._suite import dataset_of

FORMATS = {"csv": "csv", "latex": "tex", "markdown": "md"}
DIGITS = 3
# Twelve columns of "0.812 ± 0.010" fill the width of a page.
_WIDE = 12

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "±": r"$\pm$",
        "−": r"$-$",
        "–": "--",
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
        "χ": r"$\chi$",
        "²": r"$^2$",
        **{character: f"\\{character}" for character in "{}$&#_%"},
    }
)
_TUNED = {
    "fixed": "with the parameters of the suite (fixed)",
    "label-free": "tuned without true labels (label-free)",
    "oracle": "tuned with true labels of inner folds (oracle)",
}
_MARKDOWN = str.maketrans(
    {"<": "&lt;", ">": "&gt;", "&": "&amp;", **{character: f"\\{character}" for character in "\\`*_[]|~$"}}
)


def escape_latex(text: str) -> str:
    """Escape text for LaTeX; line breaks become spaces."""
    return " ".join(text.split()).translate(_LATEX)


def escape_markdown(text: str) -> str:
    """Escape text for a cell of a Markdown table."""
    return " ".join(text.split()).translate(_MARKDOWN)


class CellStyle(NamedTuple):
    """How a cell is written: escaping, the best and second best mean, others, and the standard deviation."""

    escape: Callable[[str], str]
    best: str
    second: str
    plain: str
    spread: str


MARKDOWN = CellStyle(escape_markdown, "**{}**", "<ins>{}</ins>", "{}", " ± {}")
LATEX = CellStyle(escape_latex, r"\textbf{{{}}}", r"\underline{{{}}}", "{}", r" {{\scriptsize$\pm$\,{}}}")


def format_number(value: float, digits: int) -> str:
    """Format a number: a dash if undefined, a proper minus sign, never "-0.000"."""
    if not math.isfinite(value):
        return "∞" if value == math.inf else "–"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def format_p_value(value: float) -> str:
    """Format a p-value."""
    return "< 0.0001" if value < 0.0001 else format_number(value, 4)


def mark_best(results: Results, table: pd.DataFrame, metric: str, digits: int = DIGITS) -> pd.DataFrame:
    """Mark the best and second best method of each row as printed: equal figures share a mark."""
    methods = [label for label in results.labels("method") if label in table]
    means = select(table, "mean").where(select(table, "state") == "done")[methods].round(digits)
    ranks = means.rank(axis=1, method="dense", ascending=not greater_is_better(metric))
    ranks = ranks.where(means.notna().sum(axis=1) > 1)
    marks = ranks.map(lambda rank: {1.0: "best", 2.0: "second"}.get(rank, "plain"))
    return marks.reindex(columns=table.columns.unique(0), fill_value="plain")


def format_table(table: pd.DataFrame, marks: pd.DataFrame | None, style: CellStyle) -> pd.DataFrame:
    """Format a wide table: one text per configuration and method, such as ``0.812 ± 0.010 (9/10)``.

    The first ± is over folds, the second, with several seeds, over seeds.
    """
    formatted = pd.DataFrame("", index=table.index, columns=table.columns.unique(0), dtype=object)
    for label in list(formatted.columns):
        for name, row in zip(table.index, table[label].itertuples(), strict=True):
            if not math.isfinite(row.mean):
                text = style.escape("–" if row.state == "not published" else f"– ({row.state})")
            else:
                mark = "plain" if marks is None else str(marks.at[name, label])
                text = getattr(style, mark).format(style.escape(format_number(row.mean, DIGITS)))
                for spread in filter(math.isfinite, (row.fold_std, row.seed_std)):
                    text += style.spread.format(format_number(spread, DIGITS))
                text += f" ({row.runs}/{row.expected})" if row.state == "incomplete" else ""
            formatted.at[name, label] = text
    return formatted


def format_rank_row(ranking: Ranking, columns: Iterable[str], style: CellStyle) -> pd.DataFrame:
    """Format the row of average ranks below a table."""
    if not ranking.average_ranks:
        return pd.DataFrame(columns=list(columns))
    texts = {label: format_number(rank, 2) for label, rank in ranking.average_ranks.items()}
    marks = {format_number(min(ranking.average_ranks.values()), 2): style.best}
    row = {label: marks.get(text, style.plain).format(text) for label, text in texts.items()}
    index = [f"Average rank (N = {ranking.n})"]
    return pd.DataFrame([row], index=index).reindex(columns=list(columns), fill_value=style.plain.format(""))


def format_ranks(rankings: Sequence[Ranking]) -> tuple[pd.DataFrame, int]:
    """Format average ranks (methods × metrics, and their mean); also return the number of rows with tests."""
    ranks = pd.DataFrame({metric_title(r.metric): pd.Series(r.average_ranks, dtype=float) for r in rankings})
    names = dict.fromkeys(name for ranking in rankings for name in ranking.average_ranks)
    ranks = ranks.reindex(list(names))
    ranks["Mean of ranks"] = ranks.mean(axis=1)
    body = ranks.sort_values("Mean of ranks", kind="stable").map(lambda rank: format_number(rank, 2))
    tests = {
        "N": [str(ranking.n) for ranking in rankings],
        "Friedman χ²": [_format_test(r.friedman, "chi2") for r in rankings],
        "Iman–Davenport F": [_format_test(r.friedman, "f_statistic") for r in rankings],
        "Critical F at 0.05": [_format_test(r.friedman, "critical_value") for r in rankings],
        "p (Friedman)": ["–" if r.friedman is None else format_p_value(r.friedman.p_value) for r in rankings],
        "CD (Nemenyi)": [_format_test(r.nemenyi, "critical_difference") for r in rankings],
    }
    rows = {name: [*texts, ""] for name, texts in tests.items() if set(texts) != {"–"}}
    foot = pd.DataFrame.from_dict(rows, orient="index", columns=body.columns)
    return pd.concat([body, foot]), len(foot)


def _format_test(result: object, name: str) -> str:
    return "–" if result is None else format_number(getattr(result, name), 2)


def _render_markdown(frame: pd.DataFrame, corner: str) -> str:
    header = [corner, *map(escape_markdown, frame.columns)]
    lines = [header, ["---", *["---:"] * frame.shape[1]]]
    lines += [[escape_markdown(str(name)), *row] for name, *row in frame.itertuples()]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _render_latex(frame: pd.DataFrame, corner: str, caption: str, label: str) -> str:
    """Write a ``table*`` for booktabs; the cells are LaTeX already."""
    shown = frame.set_axis([escape_latex(name) for name in frame.columns], axis=1)
    shown.insert(0, corner, [escape_latex(str(name)) for name in frame.index])
    text = shown.style.hide(axis="index").to_latex(
        hrules=True,
        environment="table*",
        position_float="centering",
        column_format="l" + "r" * frame.shape[1],
        caption=escape_latex(caption),
        label=label,
    )
    packages, before = "booktabs", "\\footnotesize\\setlength{\\tabcolsep}{3pt}\n"
    if frame.shape[1] >= _WIDE:
        packages, before = "booktabs,graphicx", before + "\\resizebox{\\linewidth}{!}{%\n"
        text = text.replace("\\end{tabular}", "\\end{tabular}}")
    text = text.replace("\\begin{tabular}", f"{before}\\begin{{tabular}}")
    return f"% needs \\usepackage{{{packages}}}\n{text}"


def _export_table(
    results: Results, metric: str, format: str, *, published: pd.DataFrame | None = None
) -> str:
    """Write the table of a metric; CSV has all digits, others mark the best and add ranks and notes."""
    table = results.table(metric, published=published)
    if format == "csv":
        kept = ["mean", "fold_std", *(["seed_std"] if len(results.suite.seeds) > 1 else [])]
        parts = [
            (label, part)
            for label, part in cast(list[tuple[str, str]], list(table.columns))
            if part in kept or (part in ("runs", "older") and results.role(label) != "published")
        ]
        exact = table[parts].set_axis([f"{label} {part}" for label, part in parts], axis=1)
        return _render_csv(exact.reset_index())
    style, ranking = LATEX if format == "latex" else MARKDOWN, rank_methods(results, metric)
    frame = format_table(table, mark_best(results, table, metric), style)
    frame = pd.concat([frame, format_rank_row(ranking, list(frame.columns), style)])
    notes = " ".join([*table_notes(results, table, metric), *ranking_notes(ranking)])
    title = title_with_arrow(metric)
    if format == "markdown":
        return f"### {title}\n\n{_render_markdown(frame, 'configuration')}\n{escape_markdown(notes)}\n"
    frame.columns = [str(label).replace(PUBLISHED, "published") for label in frame.columns]
    label = f"tab:{_slug(results.suite.name)}-{_slug(metric)}"
    return _render_latex(frame, "Configuration", f"{title}. {notes}", label)


def _export_ranks(results: Results, format: str) -> str:
    """Write the average ranks by all metrics of the suite."""
    rankings = [rank_methods(results, metric) for metric in results.suite.metrics]
    if format == "csv":
        names = list(dict.fromkeys(name for ranking in rankings for name in ranking.average_ranks))
        content = {r.metric: [*(r.average_ranks.get(name, "") for name in names), r.n] for r in rankings}
        return _render_csv(pd.DataFrame({"method": [*names, "N"], **content}, dtype=object))
    frame, _ = format_ranks(rankings)
    notes = " ".join([*join_notes({r.metric: ranking_notes(r) for r in rankings}), *_origin_notes(results)])
    if format == "markdown":
        table = _render_markdown(frame.map(escape_markdown), "method")
        return f"### Average ranks\n\n{table}\n1 is best. {escape_markdown(notes)}\n"
    caption, label = f"Average ranks; 1 is best. {notes}", f"tab:{_slug(results.suite.name)}-ranks"
    return _render_latex(frame.map(escape_latex), "Method", caption, label)


def _export_sweeps(results: Results, metric: str) -> str:
    """Write every point of every sweep as CSV, one row each."""
    rows = [
        [*swept, *place, *cell.summarize(metric)[:4]]
        for swept, cells in results.sweeps.items()
        for place, cell in cells.items()
    ]
    columns = ["method", "parameter", "value", "configuration", *STATISTICS[:4]]
    return _render_csv(pd.DataFrame(rows, columns=columns))


def export_tables(
    results: Results, formats: Sequence[str] = tuple(FORMATS), *, published: pd.DataFrame | None = None
) -> dict[str, str]:
    """Write all tables of a suite as text.

    Parameters
    ----------
    results : Results
        Results of a suite.
    formats : sequence of {"csv", "latex", "markdown"}
        CSV contains mean, standard deviations and numbers of runs with all digits. LaTeX needs booktabs; like Markdown,
        it marks the best and second best method, and adds average ranks and notes.
    published : DataFrame, optional
        Published results to add, as :func:`read_published` returns them.

    Returns
    -------
    dict of file name to str
        Content of each table.

    Raises
    ------
    ValueError
        If no published result is about the suite.
    """
    check_published(results.suite, published)
    metrics, texts = results.suite.metrics, {}
    for metric in metrics if results.cells else ():
        for format in formats:
            texts[f"{metric}.{FORMATS[format]}"] = _export_table(results, metric, format, published=published)
    if any(rank_methods(results, metric).average_ranks for metric in metrics):
        texts |= {f"ranks.{FORMATS[format]}": _export_ranks(results, format) for format in formats}
    if results.sweeps and "csv" in formats:
        texts |= {f"sensitivity-{metric}.csv": _export_sweeps(results, metric) for metric in metrics}
    return texts


def _render_csv(frame: pd.DataFrame) -> str:
    return frame.to_csv(index=False, lineterminator="\n")


def _slug(text: str) -> str:
    return "".join(each if each.isascii() and each.isalnum() else "-" for each in text.lower())


def table_notes(results: Results, table: pd.DataFrame, metric: str) -> list[str]:
    """What a reader must know about a table of results."""
    notes = [
        _describe_spread(results),
        f"{'Higher' if greater_is_better(metric) else 'Lower'} is better.",
        f"The best and the second best method of a row are marked, as printed to {DIGITS} decimals; equal figures "
        "share a mark.",
    ]
    groups: dict[str, list[str]] = {}
    for label in results.labels():
        groups.setdefault(_TUNED[results.suite.method(label).tuned], []).append(label)
    text = "; ".join(f"{how}: {', '.join(names)}" for how, names in groups.items())
    notes.append(f"{text[:1].upper()}{text[1:]}.")
    roles = {label: results.role(label) for label in table.columns.unique(0)}
    if unranked := [f"{label} ({role})" for label, role in roles.items() if role in ("floor", "ceiling")]:
        notes.append(f"Neither marked nor ranked: {', '.join(unranked)}.")
    if "published" in roles.values():
        notes.append("Published results were not measured here; they are neither marked nor ranked.")
    notes += _origin_notes(results)
    if (select(table, "state") == "incomplete").any(axis=None):
        notes.append("A fraction after a result is the number of finished runs; such results are not ranked.")
    return notes


def _origin_notes(results: Results) -> list[str]:
    """Which results were left out, and which are of older code."""
    notes = []
    if results.left_out:
        notes.append(f"Left out by request: {', '.join(results.left_out)}.")
    if older := results.older:
        listed = ", ".join(f"{label} ({count} runs)" for label, count in older.items())
        notes.append(f"Results of older code, which the present code may not reproduce: {listed}.")
    return notes


def _describe_spread(results: Results) -> str:
    """Say what ± is."""
    suite = results.suite
    seeds = f"standard deviation of the means of the {len(suite.seeds)} seeds (noise and folds)"
    if len(suite.only_folds or range(suite.folds)) == 1:
        return f"Mean ± {seeds}." if len(suite.seeds) > 1 else "Results of one run."
    if len(suite.seeds) > 1:
        return f"Mean over all runs ± sample standard deviation over folds within a seed ± {seeds}."
    return "Mean ± sample standard deviation over folds."


def ranking_notes(ranking: Ranking) -> list[str]:
    """Which configurations are ranked, and what is left out."""
    notes, n = [], ranking.n
    if ranking.average_ranks:
        notes.append(f"Average ranks over N = {n} configurations on which every ranked method is complete.")
        n_datasets = len({dataset_of(name) for name in ranking.values.index})
        if n_datasets < n:
            notes.append(
                f"The {n} configurations come from {n_datasets} data set{'s' if n_datasets > 1 else ''}. The tests "
                "assume independent configurations, so their p-values are too small."
            )
    if ranking.wilcoxon and n < 6:
        notes.append(f"With N = {n}, Wilcoxon's two-sided p cannot be smaller than {2 ** (1 - n):g}.")
    elif ranking.friedman and n <= 10:
        notes.append("Friedman's and Nemenyi's tests are approximations for more than 10 configurations.")
    if ranking.methods_left_out:
        listed = "; ".join(f"{name} ({why})" for name, why in ranking.methods_left_out.items())
        notes.append(f"Not ranked, because not complete on any configuration: {listed}.")
    if ranking.left_out:
        names: dict[str, list[str]] = {}
        for name, why in ranking.left_out.items():
            names.setdefault(why, []).append(name)
        listed = "; ".join(f"{', '.join(found)} ({why})" for why, found in names.items())
        notes.append(f"Not in the ranks: {listed}.")
    return notes


def join_notes(notes_of: Mapping[str, Iterable[str]]) -> list[str]:
    """Join the notes of several metrics: common notes once, others with the names of their metrics."""
    metrics_of: dict[str, list[str]] = {}
    # The first notes of all metrics, then the second ones, so that related notes are adjacent.
    for notes in zip_longest(*notes_of.values()):
        for metric, note in zip(notes_of, notes, strict=True):
            if note is not None:
                metrics_of.setdefault(note, []).append(metric_title(metric))
    return [
        note if len(titles) == len(notes_of) else f"{', '.join(titles)}: {note}"
        for note, titles in metrics_of.items()
    ]
