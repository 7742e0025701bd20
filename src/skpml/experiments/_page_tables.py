"""Tables as a page shows them: what each cell says, what it sorts by, and what filters it belongs to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from skpml.experiments._metric_tables import PUBLISHED, Column, Entry, MetricTable, entry_of
from skpml.experiments._ranking import Ranking
from skpml.experiments._results import Results, greater_is_better, metric_title
from skpml.experiments._summaries import Cost, NoiseGap
from skpml.experiments._wording import number, p_value


@dataclass(frozen=True, kw_only=True)
class Head:
    """A column: its title, a second line, and the method or configuration that hides it."""

    title: str
    note: str = ""
    numeric: bool = True
    high_first: bool = False
    method: str = ""
    configuration: str = ""
    group: str = ""


@dataclass(frozen=True, kw_only=True)
class Box:
    """A cell: what it says, a smaller second part, what it sorts by (None: after all others), how it looks."""

    text: str
    note: str = ""
    value: float | str | None = None
    look: str = ""
    hint: str = ""


@dataclass(frozen=True, kw_only=True)
class Line:
    """A row; its first cell is its name."""

    name: str
    cells: tuple[Box, ...]
    method: str = ""
    configuration: str = ""
    look: str = ""


@dataclass(frozen=True, kw_only=True)
class PageTable:
    """A table of a page. The rows of the foot stay below, however the others are sorted.

    A quiet caption is for those who cannot see the heading above it.
    """

    caption: str
    heads: tuple[Head, ...]
    lines: tuple[Line, ...]
    foot: tuple[Line, ...] = ()
    quiet: bool = False

    @property
    def wide(self) -> bool:
        """Whether the smaller part of a cell had better stand below the number than beside it."""
        return len(self.heads) > 8

    @property
    def grouped(self) -> int:
        """How many columns at the end stand under a common heading."""
        return sum(bool(head.group) for head in self.heads)


def box(value: float, digits: int, *, look: str = "", note: str = "", suffix: str = "") -> Box:
    """A number."""
    known = math.isfinite(value)
    text = number(value, digits)
    return Box(text=text + suffix if known else text, value=value if known else None, look=look, note=note)


def results_page_table(table: MetricTable, ranking: Ranking) -> PageTable:
    """A metric: configurations × methods, with average ranks below."""
    heads = [Head(title="Configuration", numeric=False)]
    heads += [
        Head(
            title=column.label,
            note=column.tuning if column.role == "method" else column.role,
            high_first=table.greater_is_better,
            method="published" if column.role == "published" else column.label,
            group=PUBLISHED if column.role == "published" else "",
        )
        for column in table.columns
    ]
    lines = [
        Line(
            name=name,
            configuration=name,
            cells=tuple(_result(entry, c, table.digits) for entry, c in zip(row, table.columns, strict=True)),
        )
        for name, row in table.rows.items()
    ]
    foot = []
    if ranking.average_ranks:
        best = number(min(ranking.average_ranks.values()), 2)
        shown = [number(ranking.average_ranks.get(c.name, math.nan), 2) for c in table.columns]
        cells = (Box(text="" if s == "–" else s, look="best" if s == best else "") for s in shown)
        foot.append(Line(name=f"Average rank (N = {ranking.n})", cells=tuple(cells)))
    return PageTable(
        caption=f"{table.title} {table.direction}",
        heads=tuple(heads),
        lines=tuple(lines),
        foot=tuple(foot),
        quiet=True,
    )


def _result(entry: Entry, column: Column, digits: int) -> Box:
    look = " ".join(filter(None, (entry.mark, "aside" if column.role != "method" else "")))
    if not entry.shown:
        return Box(text="–", look="none", note=entry.state if entry.state != "not published" else "")
    note = f"± {number(entry.std, digits)}" if math.isfinite(entry.std) else ""
    hint = {"best": "best of the row", "second": "second best of the row"}.get(entry.mark, "")
    if entry.state == "incomplete":
        note, look = f"{note} ({entry.n}/{entry.expected})".strip(), f"{look} partial".strip()
        hint = f"{entry.n} of {entry.expected} runs are finished"
    return Box(text=number(entry.mean, digits), note=note, value=entry.mean, look=look, hint=hint)


def ranks_page_table(rankings: Sequence[Ranking]) -> PageTable:
    """Average ranks: methods × metrics, with what the tests say below."""
    names = list(dict.fromkeys(name for ranking in rankings for name in ranking.average_ranks))
    best = [min(ranking.average_ranks.values(), default=math.nan) for ranking in rankings]
    lines = []
    for name in names:
        ranks = [ranking.average_ranks.get(name, math.nan) for ranking in rankings]
        held = [rank for rank in ranks if math.isfinite(rank)]
        cells = [
            box(rank, 2, look="best" if rank == lowest else "")
            for rank, lowest in zip(ranks, best, strict=True)
        ]
        cells.append(box(sum(held) / len(held), 2))
        control = name == rankings[0].control
        lines.append(Line(name=name, method=name, cells=tuple(cells), look="control" if control else ""))
    means = [float(line.cells[-1].value or math.inf) for line in lines]
    lines = [line for _, line in sorted(zip(means, lines, strict=True), key=lambda pair: pair[0])]
    tests = [(ranking.friedman, ranking.nemenyi) for ranking in rankings]
    facts = {
        "N, configurations": [str(ranking.n) for ranking in rankings],
        "Friedman χ²": ["–" if f is None else number(f.chi2, 2) for f, _ in tests],
        "Iman–Davenport F": ["–" if f is None else number(f.f_statistic, 2) for f, _ in tests],
        "critical F at 0.05": ["–" if f is None else number(f.critical_value, 2) for f, _ in tests],
        "p (Friedman)": ["–" if f is None else p_value(f.p_value) for f, _ in tests],
        "Nemenyi critical difference": [
            "–" if n is None else number(n.critical_difference, 2) for _, n in tests
        ],
    }
    return PageTable(
        caption="Average ranks, 1 is best",
        quiet=True,
        heads=(
            Head(title="Method", numeric=False),
            *(Head(title=metric_title(ranking.metric)) for ranking in rankings),
            Head(title="Mean of ranks"),
        ),
        lines=tuple(lines),
        foot=tuple(
            Line(name=name, cells=(*(Box(text=text) for text in texts), Box(text="")))
            for name, texts in facts.items()
            if set(texts) != {"–"}
        ),
    )


def control_page_table(ranking: Ranking) -> PageTable | None:
    """The control against each other method: wins, ties, losses and Wilcoxon's test."""
    if not ranking.wilcoxon:
        return None
    lines = [
        Line(
            name=test.method,
            method=test.method,
            cells=(
                *(box(count, 0) for count in (counts.wins, counts.ties, counts.losses)),
                Box(text=p_value(test.p_value), value=test.p_value),
                Box(
                    text=p_value(test.holm_p_value),
                    value=test.holm_p_value,
                    look="significant" if test.holm_p_value < 0.05 else "",
                ),
                box(test.effect_size, 2),
            ),
        )
        for test, counts in zip(ranking.wilcoxon, ranking.win_tie_loss, strict=True)
    ]
    titles = ("Wins", "Ties", "Losses", "p", "p (Holm)", "Effect size")
    return PageTable(
        caption=f"{ranking.control} against each other method, {metric_title(ranking.metric)}, N = {ranking.n}",
        heads=(Head(title="Against", numeric=False), *(Head(title=title) for title in titles)),
        lines=tuple(lines),
    )


def gap_page_table(gap: NoiseGap) -> PageTable:
    """The share of the noise gap closed: configurations × methods, mean and median below."""

    def percent(share: float) -> Box:
        look = "loss" if share < 0 else ""
        return box(100 * share, 0, look=look, suffix=" %")

    lines = [
        Line(
            name=configuration,
            configuration=configuration,
            cells=tuple(percent(row.get(label, math.nan)) for label in gap.methods),
        )
        for configuration, row in gap.shares.items()
    ]
    summaries = [gap.summary(label) for label in gap.methods]
    return PageTable(
        caption=f"Share of the way from {gap.floor} to {gap.ceiling}, average precision",
        heads=(
            Head(title="Configuration", numeric=False),
            *(Head(title=label, high_first=True, method=label) for label in gap.methods),
        ),
        lines=tuple(lines),
        foot=(
            Line(name="Mean", cells=tuple(percent(mean) for mean, _, _ in summaries)),
            Line(name="Median", cells=tuple(percent(median) for _, median, _ in summaries)),
            Line(name="Configurations", cells=tuple(Box(text=str(count)) for _, _, count in summaries)),
        ),
    )


def cost_page_table(found: Sequence[Cost], control: str | None) -> PageTable:
    """Time and memory of each method."""

    def significant(value: float) -> Box:
        text = "–" if not math.isfinite(value) else f"{value:.3g}" if value < 100 else f"{value:,.0f}"
        return Box(text=text, value=value if math.isfinite(value) else None)

    lines = [
        Line(
            name=cost.label,
            method=cost.label,
            look="control" if cost.label == control else "",
            cells=(
                significant(cost.fit_seconds),
                box(cost.fit_ratio, 2, suffix=" ×"),
                significant(cost.predict_seconds),
                significant(cost.memory_mb),
                box(cost.memory_ratio, 2, suffix=" ×"),
                box(cost.n, 0),
            ),
        )
        for cost in found
    ]
    to = f"to {control}" if control else "no control"
    return PageTable(
        caption="Time and memory of a run",
        quiet=True,
        heads=(
            Head(title="Method", numeric=False),
            Head(title="Fit", note="seconds"),
            Head(title="Ratio", note=to),
            Head(title="Predict", note="seconds"),
            Head(title="Peak memory", note="MB"),
            Head(title="Ratio", note=to),
            Head(title="Configurations"),
        ),
        lines=tuple(lines),
    )


def ablation_page_table(table: MetricTable, results: Results) -> PageTable | None:
    """Every variant against the control: what is lost, configuration by configuration, where both are whole."""
    control = results.suite.control
    labels = [column.label for column in table.columns if column.role != "published"]
    if control not in labels or len(labels) < 2:
        return None
    base = table.column(control)
    lines = []
    for label in labels:
        pairs = zip(table.column(label), base, strict=True)
        gains = [
            entry.mean - other.mean if {entry.state, other.state} == {"done"} else math.nan
            for entry, other in pairs
        ]
        held = [gain for gain in gains if math.isfinite(gain)]
        cells = [
            box(entry.mean, table.digits, note="" if label == control else _signed(gain, table.digits))
            for entry, gain in zip(table.column(label), gains, strict=True)
        ]
        mean = sum(held) / len(held) if held else math.nan
        cells.append(Box(text=_signed(mean, table.digits), value=mean if held else None))
        lines.append(
            Line(name=label, method=label, cells=tuple(cells), look="control" if label == control else "")
        )
    return PageTable(
        caption=f"{table.title} {table.direction} of each variant, and its difference from {control}",
        heads=(
            Head(title="Variant", numeric=False),
            *(
                Head(title=name, high_first=table.greater_is_better, configuration=name)
                for name in table.rows
            ),
            Head(title="Mean difference", high_first=table.greater_is_better),
        ),
        lines=tuple(lines),
    )


def sweep_page_table(results: Results, label: str, parameter: str, metric: str, digits: int = 3) -> PageTable:
    """The figures behind a sensitivity curve: a row a value, a column a configuration."""
    better, configurations = greater_is_better(metric), results.suite.configurations
    column = Column(label=label, role="method", tuning="")
    return PageTable(
        caption=f"{metric_title(metric)} {'↑' if better else '↓'} of {label} against {parameter}",
        heads=(
            Head(title=parameter, numeric=False),
            *(Head(title=name, high_first=better, configuration=name) for name in configurations),
        ),
        lines=tuple(
            Line(
                name=str(value),
                cells=tuple(
                    _result(entry_of(cells[name], metric), column, digits) for name in configurations
                ),
            )
            for value, cells in results.sweeps[label, parameter]
        ),
    )


def _signed(value: float, digits: int) -> str:
    text = number(value, digits)
    return f"+{text}" if math.isfinite(value) and float(f"{value:.{digits}f}") > 0 else text
