"""The figures of the demonstration as SVG that follows the page's colours, light or dark."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from skpml.demo.job import DEFAULT_PENALTY, METHODS, DemoResult, Scores

# Drawn in colours that occur nowhere else, which then are replaced by the page's own.
_INK = "#010203"
_COLOURS = {
    "floor": ("#010204", "var(--floor)"),
    "pml-ma": ("#010205", "var(--method)"),
    "ceiling": ("#010206", "var(--ceiling)"),
    "true": ("#010207", "var(--true)"),
    "false": ("#010208", "var(--false)"),
    "faint": ("#010209", "var(--rule)"),
}
_TERMS = {
    "low_rank": "low rank",
    "decomposition": "decomposition",
    "global_alignment": "global alignment",
    "prototypes": "prototypes",
    "classifier": "classifier size",
    "local_alignment": "local alignment",
}
# Height of a label as a part of the figure's range.
_LABEL_STEP = 0.06
# Narrow, so that letters stay readable on a phone.
_SIZE = (4.6, 3.3)


def _svg(name: str, draw: Callable[[Any], None]) -> str:
    """One figure with a single pair of axes, ready to stand in a page."""
    import matplotlib
    from matplotlib.figure import Figure

    style: Any = {
        "svg.fonttype": "path",  # the same letters everywhere, whatever fonts the reader has
        "svg.hashsalt": name,
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), _INK),
        **dict.fromkeys(("xtick.color", "ytick.color"), _INK),
        "grid.color": _COLOURS["faint"][0],
        "grid.linewidth": 0.6,
    }
    with matplotlib.rc_context(style):
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.subplots()
        axes.grid(axis="y")
        axes.set_axisbelow(True)
        draw(axes)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True)
    return _for_page(buffer.getvalue(), name)


def _for_page(svg: str, name: str) -> str:
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    for drawn, shown in ((_INK, "currentColor"), *_COLOURS.values()):
        svg = svg.replace(drawn, shown)
    # Several figures stand in one page, where every id may occur once.
    svg = re.sub(r'id="', f'id="{name}-', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\1{name}-", svg)
    return re.sub(
        r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', r'<svg viewBox="\1" aria-hidden="true">', svg, count=1
    )


def convergence(result: DemoResult) -> str:
    """The objective and its weighted terms after every iteration, each line named at its end."""
    history = result.model.history_
    last = result.model.n_iter_
    lines = {"objective": history["objective"]}
    lines |= {title: history[term] for term, title in _TERMS.items() if (history[term] > 0).all()}

    def draw(axes: Any) -> None:
        iterations = np.arange(1, last + 1)
        for title, values in lines.items():
            is_total = title == "objective"
            colour, width = (_COLOURS["pml-ma"][0], 2.4) if is_total else (_INK, 1.1)
            axes.plot(
                iterations, values, color=colour, linewidth=width, marker=".", markersize=2.5 + 2 * width
            )
        axes.set(xlabel="iteration", ylabel="value (log scale)", yscale="log", xlim=(0.8, last + 0.2))
        axes.set_xticks(iterations if last <= 10 else np.unique(np.linspace(1, last, 6).astype(int)))
        heights = _spread([np.log10(values[-1]) for values in lines.values()], _LABEL_STEP)
        for title, height in zip(lines, heights, strict=True):
            axes.annotate(
                title,
                (1.02, 10**height),
                xycoords=("axes fraction", "data"),
                verticalalignment="center",
                fontsize=8,
                color=_COLOURS["pml-ma"][0] if title == "objective" else _INK,
            )

    return _svg("convergence", draw)


def _spread(heights: list[float], step: float) -> list[float]:
    """Heights moved apart, from the top down, until labels there do not run into each other."""
    order = np.argsort(heights)[::-1]
    moved = dict.fromkeys(range(len(heights)), 0.0)
    above = np.inf
    for index in order.tolist():
        above = moved[index] = min(heights[index], above - step * (max(heights) - min(heights)))
    return list(moved.values())


def confidence_distribution(result: DemoResult) -> str:
    """How the confidences of true and of false candidates are spread."""
    dataset, confidences = result.dataset, result.model.confidences_
    is_candidate = dataset.candidates > 0
    is_true = np.asarray(dataset.truth)[is_candidate] > 0
    values = confidences[is_candidate]

    def draw(axes: Any) -> None:
        edges = np.linspace(0, 1, 41)
        for kind, mask in (("true", is_true), ("false", ~is_true)):
            axes.hist(values[mask], edges, color=_COLOURS[kind][0], alpha=0.28)
            axes.hist(
                values[mask],
                edges,
                histtype="step",
                color=_COLOURS[kind][0],
                linewidth=1.6,
                linestyle="-" if kind == "true" else "--",
                label=f"{kind} ({int(mask.sum()):,})",
            )
        axes.set(xlabel="confidence", ylabel="candidates", xlim=(0, 1))
        axes.figure.legend(loc="outside lower center", ncols=2, fontsize=8, handlelength=2.6)

    return _svg("confidences", draw)


def _precision_lines(axes: Any, found: Mapping[Any, Scores]) -> None:
    for (key, method), marker in zip(METHODS.items(), "so^", strict=True):
        means = [scores[key]["average_precision"].mean() for scores in found.values()]
        axes.plot(list(found), means, color=_COLOURS[key][0], marker=marker, markersize=5, label=method.title)
    axes.set(ylabel="average precision")
    axes.figure.legend(loc="outside lower center", ncols=3, fontsize=8, handlelength=2.0)


def noise_sweep(result: DemoResult) -> str:
    """Average precision of the three learners as false candidates are added."""

    def draw(axes: Any) -> None:
        _precision_lines(axes, result.sweep)
        axes.set(xlabel="candidates a row", xticks=list(result.sweep))

    return _svg("sweep", draw)


def penalty_sweep(result: DemoResult) -> str:
    """Average precision of the three learners over the penalty that they share."""

    def draw(axes: Any) -> None:
        _precision_lines(axes, result.penalties)
        axes.axvline(DEFAULT_PENALTY, color=_INK, linewidth=0.8, linestyle=":", zorder=0)
        axes.set(xlabel="penalty γ (dotted: the default)", xscale="log")
        axes.set_xticks(list(result.penalties), [f"{gamma:g}" for gamma in result.penalties])
        axes.minorticks_off()

    return _svg("penalties", draw)


def denoising_by_label(result: DemoResult) -> str:
    """For each label, how well its true candidates are told from its false ones."""
    auc = result.denoising_by_label
    names = result.dataset.label_names

    def draw(axes: Any) -> None:
        order = np.argsort(np.nan_to_num(auc["pml-ma"], nan=-1.0))
        places = np.arange(len(names))
        axes.grid(axis="y", visible=False)
        axes.grid(axis="x")
        for key, marker in (("floor", "s"), ("pml-ma", "o")):
            axes.plot(
                auc[key][order],
                places,
                marker,
                color=_COLOURS[key][0],
                markersize=5,
                label=METHODS[key].title,
            )
        axes.set_yticks(places, [names[index] for index in order.tolist()])
        axes.set(xlabel="AUC of true against false candidates")
        axes.figure.legend(loc="outside lower center", ncols=2, fontsize=8, handlelength=1.2)

    return _svg("labels", draw)
