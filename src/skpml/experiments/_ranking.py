"""Ranks of the methods by a metric, and whether they are more than chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skpml import stats
from skpml.experiments._metric_tables import Entry, MetricTable, is_whole, metric_table
from skpml.experiments._results import Results


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Ranks of the methods by a metric, and whether they are more than chance.

    Attributes
    ----------
    metric : str
    control : str or None
    configurations : tuple of str
        Those ranked over: every ranked method has a whole result on them.
    left_out : dict of configuration to str
        The others, and why.
    methods_left_out : dict of label to str
        Methods without a whole result on any configuration, and why.
    values : dict of label to tuple of float
        The means ranked, over ``configurations``.
    average_ranks : dict of label to float
        Empty where there is nothing to rank.
    friedman, nemenyi
        As in :mod:`skpml.stats`; None where there are fewer than three methods (two are compared by Wilcoxon's test) or
        two configurations.
    wilcoxon, win_tie_loss
        The control against each other method; empty where it is not ranked.
    """

    metric: str
    control: str | None
    configurations: tuple[str, ...]
    left_out: dict[str, str]
    methods_left_out: dict[str, str]
    values: dict[str, tuple[float, ...]]
    average_ranks: dict[str, float]
    friedman: stats.FriedmanResult | None
    nemenyi: stats.NemenyiResult | None
    wilcoxon: list[stats.Comparison]
    win_tie_loss: list[stats.WinTieLoss]

    @property
    def n(self) -> int:
        """How many configurations the ranks are over."""
        return len(self.configurations)


def rank_methods(
    results: Results, metric: str, *, rank_published: bool = False, alpha: float = 0.05
) -> Ranking:
    """Average ranks over the configurations on which every ranked method has a whole result, and tests over them.

    Parameters
    ----------
    results : Results
    metric : str
    rank_published : bool, default=False
        Let the paper's printed results take part, each as a method ``NAME (published, not measured here)``.
    alpha : float, default=0.05
        Level of Friedman's and Nemenyi's test.
    """
    table = metric_table(results, metric, with_published=rank_published)
    wanted = {"method", "published"} if rank_published else {"method"}
    ranked = {
        column.name: [row[place] for row in table.rows.values()]
        for place, column in enumerate(table.columns)
        if column.role in wanted
    }
    methods_left_out = {
        name: _reason(entries)
        for name, entries in ranked.items()
        if not any(is_whole(entry) for entry in entries)
    }
    ranked = {name: entries for name, entries in ranked.items() if name not in methods_left_out}
    left_out: dict[str, str] = {}
    for place, configuration in enumerate(table.rows):
        holes = {name: entries[place] for name, entries in ranked.items() if not is_whole(entries[place])}
        if configuration in results.absent:
            # Not why: that names folders of this machine, and tables travel.
            left_out[configuration] = "absent"
        elif holes:
            left_out[configuration] = _holes(holes, len(ranked))
        elif not ranked:
            left_out[configuration] = "no method has a result"
    kept = [place for place, name in enumerate(table.rows) if name not in left_out]
    values = {name: tuple(entries[place].mean for place in kept) for name, entries in ranked.items()}
    return _tested(results, table, values, kept, left_out, methods_left_out, alpha)


def _tested(
    results: Results,
    table: MetricTable,
    values: dict[str, tuple[float, ...]],
    kept: list[int],
    left_out: dict[str, str],
    methods_left_out: dict[str, str],
    alpha: float,
) -> Ranking:
    control, names = results.suite.control, list(values)
    wide, lower = np.array(list(values.values()), dtype=float).T, not table.greater_is_better
    testable = len(kept) >= 2 and len(names) >= 2
    several = testable and len(names) >= 3
    ranks = {}
    if testable:
        ranks = stats.average_ranks(wide, lower_is_better=lower, methods=names)
    elif len(kept) == 1 and len(names) >= 2:
        # One configuration has ranks too, only no test; the same row twice ranks like the row.
        ranks = stats.average_ranks(np.vstack([wide, wide]), lower_is_better=lower, methods=names)
    return Ranking(
        metric=table.metric,
        control=control,
        configurations=tuple(list(table.rows)[place] for place in kept),
        left_out=left_out,
        methods_left_out=methods_left_out,
        values=values,
        average_ranks=ranks,
        friedman=stats.friedman(wide, lower_is_better=lower, methods=names, alpha=alpha) if several else None,
        nemenyi=stats.nemenyi(wide, lower_is_better=lower, methods=names, alpha=alpha) if several else None,
        wilcoxon=(
            stats.wilcoxon(wide, control, lower_is_better=lower, methods=names)
            if testable and control in names
            else []
        ),
        win_tie_loss=(
            stats.win_tie_loss(wide, control, lower_is_better=lower, methods=names)
            if testable and control in names
            else []
        ),
    )


def _holes(holes: Mapping[str, Entry], n_ranked: int) -> str:
    """Which methods have no whole result, by reason."""
    names: dict[str, list[str]] = {}
    for name, entry in holes.items():
        names.setdefault(_reason([entry]), []).append(name)
    if len(names) == 1 and len(holes) == n_ranked:
        return next(iter(names))
    return "; ".join(f"{reason}: {', '.join(found)}" for reason, found in names.items())


def _reason(entries: Sequence[Entry]) -> str:
    """Why there is no whole result, the worst reason first."""
    states = {entry.state for entry in entries}
    words = {
        "failed": "failed",
        "incomplete": "incomplete",
        "undefined": "undefined",
        "absent": "absent",
        "missing": "not run",
        "not published": "not published",
    }
    return next(word for state, word in words.items() if state in states)
