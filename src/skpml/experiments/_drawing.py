"""SVG that stands in a page: its letters are letters, and its colours are the page's, light or dark."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from typing import Any

# Drawn in colours that occur nowhere else, which then are replaced by the page's own.
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
    **{colour: f"var(--series{place + 1})" for place, colour in enumerate(SERIES)},
}
MARKERS = "osD^vPX*"
# Narrow, so that letters stay readable on a phone.
SIZE = (3.5, 2.5)


def svg(name: str, draw: Callable[[Any], None], size: tuple[float, float] = SIZE) -> str:
    """One figure with a single pair of axes; the same drawing gives the same bytes.

    Parameters
    ----------
    name : str
        Unique in its page: the ids of the figure begin with it.
    draw : callable
        Takes the axes.
    size : pair of float
        Width and height in inches.
    """
    import matplotlib
    from matplotlib.figure import Figure

    style: Any = {
        "svg.fonttype": "none",  # text can be found, read aloud, and has letters of every script
        "svg.hashsalt": name,
        "text.parse_math": False,  # names are shown as they are written
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
            # Letters that are missing here are the browser's to draw.
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            figure.savefig(buffer, format="svg", transparent=True, bbox_inches="tight", pad_inches=0.05)
    return _for_page(buffer.getvalue(), name)


def legend_below(axes: Any, columns: int) -> None:
    """Names of the lines under the figure, where they hide nothing."""
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.24),
        ncols=columns,
        fontsize=9,
        handlelength=1.8,
        columnspacing=1.2,
        borderpad=0,
    )


def powers_of_ten(axis: Any) -> None:
    """Ticks of a log axis as 10⁻² without mathematical markup."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

    def shown(value: float, _: int) -> str:
        mantissa, exponent = f"{value:.0e}".split("e")
        power = f"10{str(int(exponent)).translate(raised)}"
        return power if mantissa == "1" else f"{mantissa}·{power}"

    axis.set_major_formatter(FuncFormatter(shown))
    axis.set_minor_locator(NullLocator())
    axis.set_major_locator(LogLocator(numticks=7))
    low, high = axis.get_view_interval()
    if low > 0 and high / low < 30:
        # Less than two powers of ten would leave the axis with one tick or none.
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))


def _for_page(text: str, name: str) -> str:
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", text, count=1, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    for drawn, shown in _ON_PAGE.items():
        text = text.replace(drawn, shown)
    # The page's own letters; those that sizes were reckoned with are wider than most.
    text = re.sub(r"font-family: [^;\"]*;?", "", text)
    text = re.sub(r"font: (?:(bold|\d{3}) )?(?:[a-z]+ )?([\d.]+)px [^;\"]*", _letters, text)
    # Several figures stand in one page, where every id may occur once.
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(href="#|url\(#)', rf"\1{name}-", text)
    text = re.sub(r' xmlns(:\w+)?="[^"]*"', "", text)
    text = text.replace("xlink:href", "href")
    found = re.search(r'<svg [^>]*?viewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>', text)
    assert found is not None
    width, height = (float(side) for side in found.groups())
    opening = f'<svg viewBox="0 0 {width:g} {height:g}" style="--width: {width:.0f}px" aria-hidden="true">'
    return opening + text[found.end() :].strip()


def _letters(found: re.Match[str]) -> str:
    weight = f"; font-weight: {found[1]}" if found[1] else ""
    return f"font-size: {found[2]}px{weight}"
