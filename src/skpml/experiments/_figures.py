"""Figures of a report as inline SVG: critical differences, sensitivity, convergence, decomposition."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from skpml.experiments._metrics import metric_title
from skpml.experiments._ranking import Ranking
from skpml.experiments._results import Results

# Drawn in colors that occur nowhere else, which are then replaced by those of the page, light or dark.
INK = "#010203"
FAINT = "#010204"
CONTROL = "#010205"
BAND = "#010206"
SERIES = tuple(f"#0102{number:02x}" for number in range(16, 24))
_ON_PAGE = {
    INK: "currentColor",
    FAINT: "var(--rule)",
    CONTROL: "var(--accent)",
    BAND: "var(--band)",
    **{color: f"var(--series{place + 1})" for place, color in enumerate(SERIES)},
}
MARKERS = "osD^vPX*"
# Narrow, so that text stays readable on a phone.
SIZE = (3.5, 2.5)
_LINE: Any = {"markersize": 4, "linewidth": 1.5, "elinewidth": 0.8}
_LEGEND: Any = {"fontsize": 9, "handlelength": 1.8, "columnspacing": 1.2, "borderpad": 0}
_DIAGRAM: Any = {
    # Non-breaking spaces: browsers drop ordinary ones at the end of a text.
    "label_fmt_left": "{label}\u2002{rank:.2f}\u00a0",
    "label_fmt_right": "\u00a0{rank:.2f}\u2002{label}",
    "label_props": {"fontsize": 9.5},
    "marker_props": {"s": 14},
    "elbow_props": {"linewidth": 0.9},
    "crossbar_props": {"color": INK, "linewidth": 3, "solid_capstyle": "butt"},
}

# A log axis over fewer powers of ten has ticks between them, and a narrow one has those of a linear axis.
_FEW_POWERS, _NARROW = 30, 5
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

# Value, mean and standard deviation.
Points = list[tuple[Any, float, float]]


class Drawing(NamedTuple):
    """A figure: title, ``<svg>`` element, alternative text, and the configuration if it shows only one."""

    title: str
    svg: str
    description: str
    configuration: str = ""


def critical_difference(ranking: Ranking) -> Drawing | None:
    """Draw average ranks on a line, with bars over methods that Nemenyi's test does not separate.

    The light band is one critical difference wide on both sides of the control. None without Nemenyi's test.
    """
    if ranking.nemenyi is None:
        return None
    from scikit_posthocs import critical_difference_diagram

    found = ranking.nemenyi
    # Sorted here, because scikit-posthocs leaves the order of equal ranks open.
    ranks = dict(sorted(found.average_ranks.items(), key=lambda item: item[1]))
    names, control = list(ranks), ranking.control
    p_values = pd.Series(found.p_values).unstack().loc[names, names].fillna(1.0)
    half, difference = (len(names) + 1) // 2, found.critical_difference
    # An upper bound on the number of bars above each other.
    n_bars = sum(found.p_values[pair] > found.alpha for pair in pairwise(names))

    def draw(axes: Any) -> None:
        palette = {name: CONTROL if name == control else INK for name in names}
        options = {"alpha": found.alpha, "text_h_margin": 0.035 * (len(names) - 1), **_DIAGRAM}
        drawn = critical_difference_diagram(ranks, p_values, ax=axes, color_palette=palette, **options)
        for (bar,) in drawn["crossbars"]:
            # The bar is drawn over a set of names, whose order differs between processes.
            ends = np.asarray(bar.get_xdata(), dtype=float)
            bar.set_data([ends.min(), ends.max()], np.asarray(bar.get_ydata())[:2])
        for label in drawn["labels"]:
            if label.get_color() == CONTROL:
                label.set_fontweight("bold")
        low, high = 1, len(names)
        bottom, _ = axes.get_ylim()
        axes.spines["top"].set_visible(True)
        axes.spines["top"].set_bounds(low, high)
        margin = 0.035 * (high - low) + 0.02
        axes.set_xlim(low - margin, high + margin)
        axes.set_xticks(range(low, high + 1))
        axes.tick_params(axis="x", direction="out", pad=1, labelsize=9)
        top = 2.6
        axes.plot([low, low + difference], [top, top], color=INK, linewidth=1.2, marker="|", markersize=6)
        right = low + difference + 0.03 * (high - low)
        axes.text(right, top, f"CD = {difference:.2f}", va="center", fontsize=9)
        if control in ranks:
            ends = np.clip(np.array([-difference, difference]) + ranks[control], low, high)
            levels = -min([-1, *(float(bar.get_ydata()[0]) for (bar,) in drawn["crossbars"])]) + 0.5
            axes.fill_between(ends, -levels, 0, color=BAND, linewidth=0, zorder=0)
        axes.set_ylim(bottom, top + 0.6)

    title = f"{metric_title(ranking.metric)}: critical differences"
    svg = _render_svg(f"cd-{ranking.metric}", draw, (SIZE[0], 0.175 * (half + 4 + n_bars)))
    listed = ", ".join(f"{name} {rank:.2f}" for name, rank in ranks.items())
    text = f"Average ranks over {ranking.n} configurations, best first: {listed}. Critical difference {difference:.2f}."
    return Drawing(title, svg, text)


def sensitivity_curves(results: Results, metric: str) -> list[Drawing]:
    """Draw the metric against each swept parameter, one line per configuration.

    All figures of a method share the range of the metric: a parameter that hardly matters looks flat.
    """
    drawings: list[Drawing] = []
    for label in dict.fromkeys(label for label, _ in results.sweeps):
        entry = results.suite.method(label)
        curves: dict[str, dict[str, Points]] = {}
        for parameter, values in entry.sweep.items():
            table = results._sweep_table(label, parameter, metric)
            curves[parameter] = _complete_points(values, table, results.suite.configurations)
        points = [p for lines in curves.values() for line in lines.values() for p in line]
        if not points:
            continue
        low = min(mean - spread for _, mean, spread in points)
        high = max(mean + spread for _, mean, spread in points)
        margin = 0.05 * (high - low) or 0.01
        for parameter, lines in curves.items():
            title, limits = metric_title(metric), (low - margin, high + margin)
            name = re.sub(r"[^A-Za-z0-9]+", "-", f"sensitivity-{label}-{parameter}")
            colors = {line: SERIES[place % len(SERIES)] for place, line in enumerate(lines)}
            svg = _draw_lines(f"{name}-{metric}-{len(drawings)}", lines, colors, parameter, title, limits)
            text = f"{title} of {label} against {parameter}, one line per configuration."
            drawings.append(Drawing(f"{label}: {parameter}", svg, text))
    return drawings


def decomposition_curves(results: Results) -> list[Drawing]:
    """Draw each score of each decomposition against the number of candidates per row, by data set."""
    levels: dict[str, list[tuple[int, str]]] = {}
    for configuration in results.suite.configurations:
        dataset, dash, number = configuration.rpartition("-")
        if dash and number.isdecimal():
            levels.setdefault(dataset, []).append((int(number), configuration))
    drawings: list[Drawing] = []
    unused, labels = iter(SERIES), results.labels()
    colors = {name: CONTROL if name == results.suite.control else next(unused, FAINT) for name in labels}
    for metric in results.suite.metrics:
        table, title = results.table(metric), metric_title(metric)
        for dataset, configurations in levels.items():
            numbers, rows = zip(*sorted(configurations), strict=True)
            if lines := _complete_points(numbers, table.loc[list(rows)], labels):
                name = f"decomposition-{len(drawings)}"
                svg = _draw_lines(name, lines, colors, "candidates per row", title)
                text = f"{title} on {dataset} against the number of candidates per row."
                drawings.append(Drawing(f"{dataset}: {title}", svg, text))
    return drawings


def _complete_points(values: Sequence[Any], table: pd.DataFrame, columns: list[str]) -> dict[str, Points]:
    """Return the points of each line of which all runs are finished, and the lines that have any."""
    lines: dict[str, Points] = {}
    for name in columns:
        for value, row in zip(values, table[name].itertuples(), strict=True):
            if row.state == "done":
                # Without folds, the spread is that of the seeds.
                spread = row.seed_std if math.isnan(row.fold_std) else row.fold_std
                lines.setdefault(name, []).append((value, row.mean, spread if spread > 0 else 0.0))
    return lines


def _draw_lines(
    name: str,
    lines: dict[str, Points],
    colors: dict[str, str],
    xlabel: str,
    ylabel: str,
    limits: tuple[float, float] | None = None,
) -> str:
    values = list(dict.fromkeys(value for points in lines.values() for value, _, _ in points))
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    logarithmic = numeric and min(values, default=0) > 0 and max(values) / min(values) >= 50
    # Values that are not numbers keep the order of the suite.
    ticks = list(map(str, values))

    def draw(axes: Any) -> None:
        axes.grid(axis="y")
        for place, (label, points) in enumerate(lines.items()):
            axes.errorbar(
                [value if numeric else ticks.index(str(value)) for value, _, _ in points],
                [mean for _, mean, _ in points],
                [spread for _, _, spread in points],
                color=colors[label],
                marker=MARKERS[place % len(MARKERS)],
                label=label,
                **_LINE,
            )
        axes.set(xlabel=xlabel, ylabel=ylabel, ylim=limits)
        if logarithmic:
            axes.set_xscale("log")
            _format_powers(axes.xaxis)
        elif not numeric:
            axes.set_xticks(range(len(ticks)), ticks)
        elif limits is None:
            axes.set_xticks(values)
        if lines:
            _put_legend_below(axes, min(3, len(lines)))

    return _render_svg(name, draw)


def convergence_curves(results: Results) -> list[Drawing]:
    """Draw the objective against the iteration for each configuration, one line per run."""
    drawings: list[Drawing] = []
    for number, configuration in enumerate(results.suite.configurations):
        curves: dict[str, list[Any]] = {}
        for label in results.labels():
            for record in results.cells[label, configuration].records:
                if objective := (record.get("history") or {}).get("objective"):
                    curves.setdefault(label, []).append(np.asarray(objective, dtype=float))
        if not curves:
            continue
        values = np.concatenate([history for histories in curves.values() for history in histories])
        logarithmic = bool((values[np.isfinite(values)] > 0).all())
        title = configuration + ("" if logarithmic else " (linear axis: not all values are positive)")
        svg = _draw_histories(f"convergence-{number}", curves, logarithmic, results.suite.control)
        text = f"Objective against iteration on {configuration}: {', '.join(curves)}."
        drawings.append(Drawing(title, svg, text, configuration))
    return drawings


def _draw_histories(figure: str, curves: dict[str, list[Any]], logarithmic: bool, control: str | None) -> str:
    unused = iter(SERIES)

    def draw(axes: Any) -> None:
        axes.grid(axis="y")
        for label, histories in curves.items():
            color = CONTROL if label == control else next(unused, INK)
            for place, history in enumerate(histories):
                runs = "run" if len(histories) == 1 else "runs"
                name = None if place else f"{label} ({len(histories)} {runs})"
                marker = "." if len(history) < 40 else None
                steps = np.arange(1, len(history) + 1)
                axes.plot(steps, history, color=color, linewidth=1.1, marker=marker, markersize=3, label=name)
        axes.set(xlabel="iteration", ylabel="objective (log scale)" if logarithmic else "objective")
        axes.xaxis.get_major_locator().set_params(integer=True)
        if logarithmic:
            axes.set_yscale("log")
            _format_powers(axes.yaxis)
        _put_legend_below(axes, min(2, len(curves)))

    return _render_svg(figure, draw)


def _render_svg(name: str, draw: Callable[[Any], None], size: tuple[float, float] = SIZE) -> str:
    """Render what `draw` draws on axes; the same drawing gives the same bytes.

    The ids of the figure begin with `name`, which must be unique in the page. The size is in inches.
    """
    import matplotlib
    from matplotlib.figure import Figure

    style: Any = {
        "svg.fonttype": "none",  # text can be searched, read aloud, and has every script
        "svg.hashsalt": name,
        "text.parse_math": False,  # names are not formulas
        "font.size": 9.5,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), INK),
        **dict.fromkeys(("xtick.color", "ytick.color"), INK),
        "grid.color": FAINT,
        "grid.linewidth": 0.6,
    }
    with matplotlib.rc_context(style):
        figure = Figure(figsize=size)
        axes = figure.subplots()
        axes.set_axisbelow(True)
        draw(axes)
        buffer = io.StringIO()
        with warnings.catch_warnings():
            # The browser draws glyphs that are missing here.
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            figure.savefig(buffer, format="svg", transparent=True, bbox_inches="tight", pad_inches=0.05)
    return _adapt_to_page(buffer.getvalue(), name)


def _put_legend_below(axes: Any, columns: int) -> None:
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24), ncols=columns, **_LEGEND)


def _format_powers(axis: Any) -> None:
    """Format the ticks of a log axis as 10⁻² without mathematical markup, or as plain numbers if it is narrow."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    low, high = axis.get_view_interval()
    axis.set_minor_locator(NullLocator())
    if low > 0 and high / low < _NARROW:
        # LogLocator would place ticks that one digit cannot tell apart.
        axis.set_major_locator(MaxNLocator(5))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
        return
    # Less than two powers of ten would leave the axis with one tick or none.
    few = low > 0 and high / low < _FEW_POWERS
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)) if few else LogLocator(numticks=7))
    axis.set_major_formatter(FuncFormatter(lambda value, _: format_power(value)))


def format_power(value: float) -> str:
    """Format a positive number of one digit as 10⁻² or 2·10³."""
    mantissa, exponent = f"{value:.0e}".split("e")
    power = f"10{str(int(exponent)).translate(_RAISED)}"
    return power if mantissa == "1" else f"{mantissa}·{power}"


def _adapt_to_page(text: str, name: str) -> str:
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", text, count=1, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    for drawn, color in _ON_PAGE.items():
        text = text.replace(drawn, color)
    # Use the font of the page.
    text = re.sub(r"font-family: [^;\"]*;?", "", text)
    font = re.compile(r"font: (?:(bold|\d{3}) )?(?:[a-z]+ )?([\d.]+)px [^;\"]*")
    text = font.sub(lambda m: f"font-size: {m[2]}px" + (f"; font-weight: {m[1]}" if m[1] else ""), text)
    # Ids must be unique in a page with several figures.
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(href="#|url\(#)', rf"\1{name}-", text)
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text)
    text = text.replace("xlink:href", "href")
    found = re.search(r'<svg [^>]*?viewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>', text)
    assert found is not None
    width, height = (float(side) for side in found.groups())
    opening = f'<svg viewBox="0 0 {width:g} {height:g}" style="--width: {width:.0f}px" aria-hidden="true">'
    return opening + text[found.end() :].strip()
