"""Tables as text: CSV for programs, LaTeX for papers, Markdown for pages."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence

from skpml.experiments._metric_tables import PUBLISHED, Entry, MetricTable, entry_of
from skpml.experiments._ranking import Ranking
from skpml.experiments._results import Results, metric_title
from skpml.experiments._wording import joint_notes, number, p_value, table_notes

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
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
}
_MARKDOWN = {character: "\\" + character for character in "\\`*_[]|~$"} | {
    "<": "&lt;",
    ">": "&gt;",
    "&": "&amp;",
}


def latex_text(text: str) -> str:
    """Any text as LaTeX that prints it; what would break a line or a row of a table becomes a space."""
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def markdown_text(text: str) -> str:
    """Any text as Markdown that prints it, in one cell of a table."""
    return "".join(_MARKDOWN.get(character, character) for character in " ".join(text.split()))


def table_csv(table: MetricTable) -> str:
    """A row a configuration; for each method its mean, standard deviation and number of runs, to the last digit."""
    parts = {"measured": ("mean", "std", "runs"), "published": ("mean", "std")}
    header = ["configuration"]
    rows = [[name] for name in table.rows]
    for place, column in enumerate(table.columns):
        wanted = parts["published" if column.role == "published" else "measured"]
        header += [f"{column.name} {part}" for part in wanted]
        for row, entries in zip(rows, table.rows.values(), strict=True):
            entry = entries[place]
            row += [_exact(entry.mean), _exact(entry.std), str(entry.n)][: len(wanted)]
    return csv_text(header, rows)


def table_latex(table: MetricTable, ranking: Ranking | None = None, *, suite: str = "") -> str:
    """A table for ``booktabs``: best bold, second underlined, average ranks below."""

    def cell(entry: Entry) -> str:
        if not entry.shown:
            return "--"
        mean = number(entry.mean, table.digits).replace("−", "$-$")
        text = {"best": rf"\textbf{{{mean}}}", "second": rf"\underline{{{mean}}}"}.get(entry.mark, mean)
        if math.isfinite(entry.std):
            text += rf" {{\scriptsize$\pm$\,{number(entry.std, table.digits)}}}"
        return text + (f"$^{{{entry.n}/{entry.expected}}}$" if entry.state == "incomplete" else "")

    header = ["Configuration", *(column.label for column in table.columns)]
    groups = ""
    if n_published := sum(column.role == "published" for column in table.columns):
        first = len(table.columns) - n_published + 2
        last = len(table.columns) + 1
        groups = (
            f"{'& ' * (first - 1)}\\multicolumn{{{n_published}}}{{c}}{{{PUBLISHED}}} \\\\\n"
            f"\\cmidrule(lr){{{first}-{last}}}\n"
        )
    body = [[latex_text(name), *map(cell, row)] for name, row in table.rows.items()]
    foot = _rank_row(table, ranking, latex_text, lambda text: rf"\textbf{{{text}}}")
    caption = f"{table.title} {table.direction}. " + " ".join(table_notes(table, ranking))
    label = f"tab:{_slug(suite)}-{_slug(table.metric)}".replace(":-", ":")
    return latex_table([latex_text(text) for text in header], body, foot, latex_text(caption), label, groups)


def latex_table(
    header: Sequence[str],
    body: Sequence[Sequence[str]],
    foot: Sequence[Sequence[str]],
    caption: str,
    label: str,
    groups: str = "",
) -> str:
    """A float around a ``tabular`` whose cells are LaTeX already."""
    lines = [" & ".join(row) + r" \\" for row in body]
    # Twelve columns of "0.812 ± 0.010" are as many as a page is wide.
    wide = len(header) > 12
    last = [r"\midrule", *(" & ".join(row) + r" \\" for row in foot)] if foot else []
    return "\n".join(
        [
            rf"% needs \usepackage{{booktabs{',graphicx' if wide else ''}}}",
            r"\begin{table*}",
            r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
            rf"\caption{{{caption}}}",
            rf"\label{{{label}}}",
            *([r"\resizebox{\linewidth}{!}{%"] if wide else []),
            rf"\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}",
            r"\toprule",
            *(groups.splitlines()),
            " & ".join(header) + r" \\",
            r"\midrule",
            *lines,
            *last,
            r"\bottomrule",
            r"\end{tabular}" + ("}" if wide else ""),
            r"\end{table*}",
            "",
        ]
    )


def table_markdown(table: MetricTable, ranking: Ranking | None = None) -> str:
    """A heading, a table with best bold and second underlined, and what a reader must know."""

    def cell(entry: Entry) -> str:
        if not entry.shown:
            return f"– ({entry.state})" if entry.state not in ("not published",) else "–"
        text = number(entry.mean, table.digits)
        if math.isfinite(entry.std):
            text += f" ± {number(entry.std, table.digits)}"
        text = {"best": f"**{text}**", "second": f"<ins>{text}</ins>"}.get(entry.mark, text)
        return text + (f" ({entry.n}/{entry.expected})" if entry.state == "incomplete" else "")

    header = ["configuration", *(column.name for column in table.columns)]
    body = [[markdown_text(name), *map(cell, row)] for name, row in table.rows.items()]
    body += _rank_row(table, ranking, markdown_text, lambda text: f"**{text}**")
    notes = markdown_text(" ".join(table_notes(table, ranking)))
    rows = markdown_table([markdown_text(name) for name in header], body)
    return f"### {table.title} {table.direction}\n\n{rows}\n{notes}\n"


def markdown_table(header: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A table whose cells are Markdown already; all columns but the first are set to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *body]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def ranks_rows(rankings: Sequence[Ranking]) -> tuple[list[str], list[list[str]], list[list[str]]]:
    """Header, body and foot of the table of average ranks: a row a method, a column a metric, and their mean."""
    header = ["method", *(metric_title(ranking.metric) for ranking in rankings), "mean of ranks"]
    names = list(dict.fromkeys(name for ranking in rankings for name in ranking.average_ranks))
    means = {name: [ranking.average_ranks.get(name, math.nan) for ranking in rankings] for name in names}
    order = sorted(names, key=lambda name: (_mean(means[name]), names.index(name)))
    body = [[name, *(number(rank, 2) for rank in (*means[name], _mean(means[name])))] for name in order]
    tests = [ranking.friedman for ranking in rankings]
    foot = [
        ["N", *(str(ranking.n) for ranking in rankings), ""],
        ["F_F", *("–" if test is None else number(test.f_statistic, 2) for test in tests), ""],
        ["p (Friedman)", *("–" if test is None else p_value(test.p_value) for test in tests), ""],
        [
            "CD (Nemenyi)",
            *("–" if r.nemenyi is None else number(r.nemenyi.critical_difference, 2) for r in rankings),
            "",
        ],
    ]
    return header, body, [row for row in foot if set(row[1:-1]) != {"–"}]


def ranks_csv(rankings: Sequence[Ranking]) -> str:
    """Average ranks to the last digit, and N."""
    names = list(dict.fromkeys(name for ranking in rankings for name in ranking.average_ranks))
    rows = [
        [name, *(_exact(ranking.average_ranks.get(name, math.nan)) for ranking in rankings)] for name in names
    ]
    rows.append(["N", *(str(ranking.n) for ranking in rankings)])
    return csv_text(["method", *(ranking.metric for ranking in rankings)], rows)


def ranks_latex(rankings: Sequence[Ranking], *, suite: str = "") -> str:
    """Average ranks for ``booktabs``."""
    header, body, foot = ranks_rows(rankings)
    label = f"tab:{_slug(suite)}-ranks".replace(":-", ":")
    caption = "Average ranks; 1 is best. " + " ".join(joint_notes(rankings))
    cells = [[[latex_text(cell) for cell in row] for row in rows] for rows in ([header], body, foot)]
    return latex_table(cells[0][0], cells[1], cells[2], latex_text(caption), label)


def ranks_markdown(rankings: Sequence[Ranking]) -> str:
    """Average ranks as Markdown."""
    header, body, foot = ranks_rows(rankings)
    cells = [[markdown_text(cell) for cell in row] for row in (header, *body, *foot)]
    notes = markdown_text(" ".join(joint_notes(rankings)))
    return f"### Average ranks\n\n{markdown_table(cells[0], cells[1:])}\n1 is best. {notes}\n"


def sweeps_csv(results: Results, metric: str) -> str:
    """Every point of every sweep, a row each."""
    rows = []
    for (label, parameter), points in results.sweeps.items():
        for value, cells in points:
            for configuration, cell in cells.items():
                entry = entry_of(cell, metric)
                found = (_exact(entry.mean), _exact(entry.std), str(entry.n))
                rows.append([label, parameter, str(value), configuration, *found])
    return csv_text(["method", "parameter", "value", "configuration", "mean", "std", "runs"], rows)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """CSV with line feeds."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue()


def _rank_row(
    table: MetricTable, ranking: Ranking | None, text: Callable[[str], str], bold: Callable[[str], str]
) -> list[list[str]]:
    if ranking is None or not ranking.average_ranks:
        return []
    shown = {name: number(rank, 2) for name, rank in ranking.average_ranks.items()}
    best = number(min(ranking.average_ranks.values()), 2)
    cells = [shown.get(column.name, "") for column in table.columns]
    return [
        [
            text(f"Average rank (N = {ranking.n})"),
            *(bold(cell) if cell == best else text(cell) for cell in cells),
        ]
    ]


def _mean(values: Sequence[float]) -> float:
    """Of the finite ones: a method that one metric does not rank still has a mean over the others."""
    held = [value for value in values if math.isfinite(value)]
    return sum(held) / len(held) if held else math.nan


def _exact(value: float) -> str:
    return repr(float(value)) if math.isfinite(value) else ""


def _slug(text: str) -> str:
    return "".join(
        character if character.isascii() and character.isalnum() else "-" for character in text.lower()
    )
