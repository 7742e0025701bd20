"""The figures of a report: critical differences, sensitivity, convergence, decomposition. Each is inline SVG."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from skpml.experiments._drawing import (
    BAND,
    CONTROL,
    FAINT,
    INK,
    MARKERS,
    SERIES,
    SIZE,
    legend_below,
    powers_of_ten,
    svg,
)
from skpml.experiments._metric_tables import entry_of
from skpml.experiments._ranking import Ranking
from skpml.experiments._results import Results, metric_title

__all__ = [
    "Drawing",
    "convergence_curves",
    "critical_difference",
    "decomposition_curves",
    "sensitivity_curves",
]


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A figure for a page.

    Attributes
    ----------
    title : str
    svg : str
        An ``<svg>`` element whose colours are custom properties of the page.
    description : str
        What it shows, for those who cannot see it.
    configuration : str
        The one it shows, where it shows one.
    """

    title: str
    svg: str
    description: str
    configuration: str = ""


def critical_difference(ranking: Ranking) -> Drawing | None:
    """Average ranks on a line; bars join methods that Nemenyi's test does not tell apart.

    The light band reaches one critical difference to both sides of the control: methods outside of it differ from it.
    None where there are fewer than three methods or two configurations.
    """
    if ranking.nemenyi is None:
        return None
    from pandas import DataFrame
    from scikit_posthocs import critical_difference_diagram

    found = ranking.nemenyi
    # Sorted here: the drawing's own sort would leave the order of equal ranks open.
    ranks = dict(sorted(found.average_ranks.items(), key=lambda item: item[1]))
    names, control = list(ranks), ranking.control
    p_values = DataFrame(1.0, index=names, columns=names)
    for (one, other), p_value in found.p_values.items():
        p_values.loc[one, other] = p_value
    half, difference = (len(names) + 1) // 2, found.critical_difference

    def draw(axes: Any) -> None:
        drawn = critical_difference_diagram(
            ranks,
            p_values,
            alpha=found.alpha,
            ax=axes,
            # Blanks that do not break: ordinary ones at the end of a text are dropped by browsers.
            label_fmt_left="{label}\u2002{rank:.2f}\u00a0",
            label_fmt_right="\u00a0{rank:.2f}\u2002{label}",
            text_h_margin=0.035 * (len(names) - 1),
            label_props={"fontsize": 9.5},
            marker_props={"s": 14},
            elbow_props={"linewidth": 0.9},
            crossbar_props={"color": INK, "linewidth": 3, "solid_capstyle": "butt"},
            color_palette={name: CONTROL if name == control else INK for name in names},
        )
        for (bar,) in drawn["crossbars"]:
            # The bar runs through a set of names, whose order changes from one process to the next.
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
        axes.text(
            low + difference + 0.03 * (high - low), top, f"CD = {difference:.2f}", va="center", fontsize=9
        )
        if control in ranks:
            ends = np.clip(np.array([-difference, difference]) + ranks[control], low, high)
            levels = -min([-1, *(float(bar.get_ydata()[0]) for (bar,) in drawn["crossbars"])]) + 0.5
            axes.fill_between(ends, -levels, 0, color=BAND, linewidth=0, zorder=0)
        axes.set_ylim(bottom, top + 0.6)

    height = 0.175 * (half + 4 + _n_bars(ranks, found.p_values, found.alpha))
    return Drawing(
        title=f"{metric_title(ranking.metric)}: critical differences",
        svg=svg(f"cd-{ranking.metric}", draw, (SIZE[0], height)),
        description=f"Average ranks over {ranking.n} configurations, best first: "
        + ", ".join(f"{name} {rank:.2f}" for name, rank in ranks.items())
        + f". Critical difference {difference:.2f}.",
    )


def _n_bars(ranks: dict[str, float], p_values: dict[tuple[str, str], float], alpha: float) -> int:
    """At most so many bars lie above each other: methods with a neighbour on their right that is not told apart."""
    names = list(ranks)
    return sum(p_values[one, other] > alpha for one, other in pairwise(names))


def sensitivity_curves(results: Results, metric: str) -> list[Drawing]:
    """A figure for each parameter swept: the metric against its value, a line a configuration, bars of one std.

    All figures of a method share the range of the metric: what hardly matters looks flat.
    """
    drawings: list[Drawing] = []
    for label in dict.fromkeys(label for label, _ in results.sweeps):
        curves = {
            parameter: _swept(results, label, parameter, metric)
            for own, parameter in results.sweeps
            if own == label
        }
        ends = [
            (mean - spread, mean + spread)
            for lines in curves.values()
            for points in lines.values()
            for _, mean, spread in points
        ]
        if not ends:
            continue
        low, high = min(low for low, _ in ends), max(high for _, high in ends)
        margin = 0.05 * (high - low) or 0.01
        for parameter, lines in curves.items():
            name = f"sensitivity-{_slug(label)}-{_slug(parameter)}-{metric}"
            number = len(drawings)
            drawings.append(
                Drawing(
                    title=f"{label}: {parameter}",
                    svg=_sweep_svg(
                        f"{name}-{number}", lines, parameter, metric, (low - margin, high + margin)
                    ),
                    description=f"{metric_title(metric)} of {label} against {parameter}, a line a configuration.",
                )
            )
    return drawings


Points = list[tuple[Any, float, float]]


def _swept(results: Results, label: str, parameter: str, metric: str) -> dict[str, Points]:
    """For each configuration: value, mean and standard deviation where all runs are finished."""
    lines: dict[str, Points] = {}
    for value, cells in results.sweeps[label, parameter]:
        for configuration, cell in cells.items():
            entry = entry_of(cell, metric)
            if entry.state == "done":
                spread = entry.std if np.isfinite(entry.std) else 0.0
                lines.setdefault(configuration, []).append((value, entry.mean, spread))
    return lines


def _sweep_svg(
    name: str, lines: dict[str, Points], parameter: str, metric: str, limits: tuple[float, float]
) -> str:
    values = [value for points in lines.values() for value, _, _ in points]
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    logarithmic = numeric and min(values, default=0) > 0 and max(values) / min(values) >= 50
    # What has no place on a line stands in the order of the suite.
    ticks = list(dict.fromkeys(map(str, values)))

    def draw(axes: Any) -> None:
        axes.grid(axis="y")
        for place, (configuration, points) in enumerate(lines.items()):
            axes.errorbar(
                [value if numeric else ticks.index(str(value)) for value, _, _ in points],
                [mean for _, mean, _ in points],
                [spread for _, _, spread in points],
                color=SERIES[place % len(SERIES)],
                marker=MARKERS[place % len(MARKERS)],
                markersize=4,
                linewidth=1.5,
                elinewidth=0.8,
                label=configuration,
            )
        axes.set(xlabel=parameter, ylabel=metric_title(metric), ylim=limits)
        if logarithmic:
            axes.set_xscale("log")
            powers_of_ten(axes.xaxis)
        elif not numeric:
            axes.set_xticks(range(len(ticks)), ticks)
        if lines:
            legend_below(axes, min(3, len(lines)))

    return svg(name, draw)


def convergence_curves(results: Results) -> list[Drawing]:
    """A figure for each configuration: the objective against the iteration, a thin line a fold, a colour a method."""
    drawings: list[Drawing] = []
    for number, configuration in enumerate(results.suite.configurations):
        curves = {
            label: [
                np.asarray(record["history"]["objective"], dtype=float)
                for record in results.cells[label, configuration].records
                if (record.get("history") or {}).get("objective")
            ]
            for label in results.labels()
        }
        curves = {label: histories for label, histories in curves.items() if histories}
        if not curves:
            continue
        held = np.concatenate([history for histories in curves.values() for history in histories])
        logarithmic = bool((held[np.isfinite(held)] > 0).all())
        drawings.append(
            Drawing(
                title=configuration + ("" if logarithmic else " (linear axis: not all values are positive)"),
                svg=_convergence_svg(f"convergence-{number}", curves, logarithmic, results.suite.control),
                description=f"Objective against iteration on {configuration}: {', '.join(curves)}.",
                configuration=configuration,
            )
        )
    return drawings


def _convergence_svg(name: str, curves: dict[str, list[Any]], logarithmic: bool, control: str | None) -> str:
    colours = iter(SERIES)

    def draw(axes: Any) -> None:
        axes.grid(axis="y")
        for label, histories in curves.items():
            colour = CONTROL if label == control else next(colours, INK)
            for place, history in enumerate(histories):
                axes.plot(
                    np.arange(1, len(history) + 1),
                    history,
                    color=colour,
                    linewidth=1.1,
                    marker="." if len(history) < 40 else None,
                    markersize=3,
                    label=None if place else f"{label} ({len(histories)} runs)",
                )
        axes.set(xlabel="iteration", ylabel="objective (log scale)" if logarithmic else "objective")
        axes.xaxis.get_major_locator().set_params(integer=True)
        if logarithmic:
            axes.set_yscale("log")
            powers_of_ten(axes.yaxis)
        legend_below(axes, min(2, len(curves)))

    return svg(name, draw)


def decomposition_curves(results: Results) -> list[Drawing]:
    """A figure for each data set and score: the score of each decomposition against the number of candidates a row."""
    levels: dict[str, list[tuple[int, str]]] = {}
    for configuration in results.suite.configurations:
        dataset, dash, number = configuration.rpartition("-")
        if dash and number.isdecimal():
            levels.setdefault(dataset, []).append((int(number), configuration))
    drawings: list[Drawing] = []
    for dataset, configurations in levels.items():
        for metric in results.suite.metrics:
            lines = {
                label: [
                    (level, entry.mean, entry.std if np.isfinite(entry.std) else 0.0)
                    for level, configuration in sorted(configurations)
                    if (entry := entry_of(results.cells[label, configuration], metric)).state == "done"
                ]
                for label in results.labels()
            }
            if not any(lines.values()):
                continue
            drawings.append(
                Drawing(
                    title=f"{dataset}: {metric_title(metric)}",
                    svg=_levels_svg(f"decomposition-{len(drawings)}", lines, metric, results.suite.control),
                    description=f"{metric_title(metric)} on {dataset} against the number of candidates a row.",
                )
            )
    return drawings


def _levels_svg(name: str, lines: dict[str, Points], metric: str, control: str | None) -> str:
    def draw(axes: Any) -> None:
        axes.grid(axis="y")
        colours = iter(SERIES)
        for place, (label, points) in enumerate(lines.items()):
            axes.errorbar(
                [level for level, _, _ in points],
                [mean for _, mean, _ in points],
                [spread for _, _, spread in points],
                color=CONTROL if label == control else next(colours, FAINT),
                marker=MARKERS[place % len(MARKERS)],
                linestyle="-" if label == control else "--",
                markersize=5,
                linewidth=1.6,
                elinewidth=0.8,
                label=label,
            )
        axes.set(xlabel="candidates a row", ylabel=metric_title(metric))
        axes.set_xticks(sorted({level for points in lines.values() for level, _, _ in points}))
        legend_below(axes, min(2, len(lines)))

    return svg(name, draw)


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", text)
