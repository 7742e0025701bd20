"""An audit as a person looks at it: a summary in words, a table in HTML, a data frame, a picture."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skpml._writing import require_packages
from skpml.cleaning._judging import ASK, DROP, KEEP, Actions

if TYPE_CHECKING:
    from skpml.cleaning._audit import Audit

_ACTIONS = (KEEP, ASK, DROP)
# The palette of Okabe and Ito, which people with color vision deficiencies can tell apart.
_COLORS = {KEEP: "#56B4E9", ASK: "#E69F00", DROP: "#D55E00"}
# A table or a picture of more labels does not fit on a screen.
_MOST_LABELS = 20


def count_actions(actions: Actions) -> dict[str, NDArray[np.intp]]:
    """Return how many tags of each label are kept, asked about and dropped."""
    return {action: np.count_nonzero(actions == action, axis=0) for action in _ACTIONS}


def describe_wrong(found: Audit) -> str:
    """Return a sentence about how many tags are wrong, and what that rests on."""
    estimate, low, high = found.wrong.total
    if found.wrong.basis == "unknown":
        if found.evidence.fast:
            return "A first look does not tell how many tags are wrong. Check some at random, or look again in full."
        why = "" if found.evidence.random_noise else ": that wrong tags are random could not be shown"
        return (
            f"How many tags are wrong cannot be told from these data alone{why}. Check some tags at random."
        )
    wrong = "1 tag is" if round(estimate) == 1 else f"{round(estimate):,} tags are"
    n_checks = found.evidence.n_sample
    bases = {
        "sample": f"judged by {n_checks:,} random {'check' if n_checks == 1 else 'checks'}",
        "random noise": "if wrong tags are random, as they seem to be",
        "votes": "judged by the votes",
    }
    return f"About {wrong} wrong (between {low:,.0f} and {high:,.0f}), {bases[found.wrong.basis]}."


def summarize(found: Audit) -> list[str]:
    """Return the lines that describe an audit."""
    n_rows, n_labels = found.actions.shape
    counts = {action: int(number.sum()) for action, number in count_actions(found.actions).items()}
    parts = (f"{counts[KEEP]:,} to keep", f"{counts[ASK]:,} to ask about", f"{counts[DROP]:,} to drop")
    return [
        f"Audit of {n_rows:,} rows, {n_labels:,} labels, {sum(counts.values()):,} tags, of which "
        f"{found.evidence.n_verified:,} are checked",
        describe_wrong(found),
        f"Tags: {', '.join(parts)}.",
    ]


def select_labels(found: Audit) -> NDArray[np.intp]:
    """Return the labels to show: at most 20, those with the most tags to ask about or to drop."""
    counts = count_actions(found.actions)
    order = np.argsort(-(counts[ASK] + counts[DROP]), kind="stable")
    return order[:_MOST_LABELS]


def make_html(found: Audit) -> str:
    """Return the summary and a table of labels."""
    counts, wrong, shown = count_actions(found.actions), found.wrong, select_labels(found)
    lines = "".join(f"<p>{html.escape(line)}</p>" for line in summarize(found))
    heads = ("label", "tags", KEEP, ASK, DROP, "wrong, about", "between")
    header = "".join(f"<th scope='col'>{name}</th>" for name in heads)
    body = ""
    for label in shown.tolist():
        numbers = [int(counts[action][label]) for action in _ACTIONS]
        cells = [f"{number:,}" for number in (sum(numbers), *numbers)]
        known = wrong.basis != "unknown"
        cells.append(f"{wrong.estimate[label]:,.0f}" if known else "unknown")
        cells.append(f"{wrong.low[label]:,.0f} and {wrong.high[label]:,.0f}" if known else "")
        row = "".join(f"<td>{cell}</td>" for cell in cells)
        body += f"<tr><th scope='row'>{html.escape(found.label_names[label])}</th>{row}</tr>"
    more = len(found.label_names) - len(shown)
    rest = f"<p>and {more:,} more labels with fewer doubtful tags</p>" if more else ""
    table = f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div>{lines}{table}{rest}</div>"


def make_frame(found: Audit) -> Any:
    """Return one row for each tag, see :meth:`Audit.to_frame`."""
    require_packages("Audit.to_frame", "files", "pandas")
    import pandas as pd

    rows, labels = np.nonzero(found.actions != "")
    reasons = {(doubt.row, doubt.label): str(doubt.reason) for doubt in found.doubts}
    index = pd.RangeIndex(len(found.actions)) if found.index is None else found.index
    columns = {
        "row": rows,
        "label": np.array(found.label_names, dtype=object)[labels],
        "confidence": found.confidences[rows, labels],
        "action": found.actions[rows, labels].astype(object),
        "verified": found.verified[rows, labels],
        "reason": [reasons.get(cell, "") for cell in zip(rows.tolist(), labels.tolist(), strict=True)],
    }
    return pd.DataFrame(columns, index=index.take(rows))


def plot(found: Audit, ax: Any = None) -> Any:
    """Draw the tags of each label by action, see :meth:`Audit.plot`."""
    require_packages("Audit.plot", "report", "matplotlib")
    import matplotlib.pyplot as plt

    counts, wrong, shown = count_actions(found.actions), found.wrong, select_labels(found)
    if ax is None:
        _, ax = plt.subplots(figsize=(7, 1.2 + 0.3 * len(shown)), layout="constrained")
    places, start = np.arange(len(shown)), np.zeros(len(shown))
    # From the left: dropped tags are where the count of wrong ones begins.
    for action in reversed(_ACTIONS):
        ax.barh(places, counts[action][shown], left=start, color=_COLORS[action], label=action, height=0.7)
        start += counts[action][shown]
    if wrong.basis != "unknown":
        estimate = wrong.estimate[shown]
        spread = np.maximum([estimate - wrong.low[shown], wrong.high[shown] - estimate], 0)
        ax.errorbar(
            estimate,
            places,
            xerr=spread,
            fmt="o",
            color="black",
            markersize=4,
            capsize=3,
            label="wrong (estimated)",
        )
    ax.set_yticks(places, [_shorten(found.label_names[label]) for label in shown])
    ax.invert_yaxis()
    ax.set_xlabel("tags")
    ax.set_xlim(left=0)
    ax.set_title(_title(found, shown), fontsize="medium", loc="left")
    # Below the picture, where no bar is.
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.5 / (0.3 * len(shown) + 0.4)), ncols=4, frameon=False
    )
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _title(found: Audit, shown: Sequence[int] | NDArray[np.intp]) -> str:
    estimate, low, high = found.wrong.total
    known = found.wrong.basis != "unknown"
    wrong = (
        f"about {estimate:,.0f} wrong ({low:,.0f} to {high:,.0f})" if known else "unknown how many are wrong"
    )
    n_labels = len(found.label_names)
    labels = f"; {len(shown)} of {n_labels:,} labels" if len(shown) < n_labels else ""
    return f"{np.count_nonzero(found.actions != ''):,} tags, {wrong}{labels}"


def _shorten(name: str, most: int = 30) -> str:
    # A dollar sign would begin mathematics.
    return (name if len(name) <= most else f"{name[: most - 1]}…").replace("$", r"\$")
