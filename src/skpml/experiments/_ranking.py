"""Comparison of methods: ranks and tests, pairs, the noise gap, time and memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from skpml import stats
from skpml.experiments._metrics import greater_is_better
from skpml.experiments._results import Results, select
from skpml.experiments._suite import MethodEntry

# With a smaller distance between ceiling and floor, a share of it is mostly chance.
SMALLEST_GAP = 0.002

_REASONS = {
    "failed": "failed",
    "incomplete": "incomplete",
    "undefined": "undefined",
    "absent": "absent",
    "missing": "not run",
}


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """Ranks of the methods by a metric, and tests of their differences.

    values: the ranked means, configurations on which every ranked method is complete × methods. left_out,
    methods_left_out: the others, and why. friedman, nemenyi: None with fewer than three methods (two are compared by
    Wilcoxon's test) or two configurations. wilcoxon, win_tie_loss: the control against each other method.
    """

    metric: str
    control: str | None
    values: pd.DataFrame
    left_out: dict[str, str]
    methods_left_out: dict[str, str]
    average_ranks: dict[str, float]
    friedman: stats.FriedmanResult | None
    nemenyi: stats.NemenyiResult | None
    wilcoxon: list[stats.Comparison]
    win_tie_loss: list[stats.WinTieLoss]

    @property
    def n(self) -> int:
        """Number of configurations."""
        return len(self.values)


def rank_methods(results: Results, metric: str, *, alpha: float = 0.05) -> Ranking:
    """Rank the methods over the configurations on which all of them are complete.

    Parameters
    ----------
    results : Results
        Results of a suite.
    metric : str
        Name of the metric.
    alpha : float, default=0.05
        Level of Friedman's and Nemenyi's tests.

    Returns
    -------
    Ranking
        Average ranks, tests, and what is left out.
    """
    table, methods = results.table(metric), results.labels("method")
    states = select(table, "state")[methods]
    ranked = [label for label in methods if (states[label] == "done").any()]
    left_out: dict[str, str] = {}
    for name in table.index:
        if name in results.absent:
            # Without the reason, which contains local paths.
            left_out[name] = "absent"
        elif not (states.loc[name, ranked] == "done").all() or not ranked:
            left_out[name] = _describe_gaps(states.loc[name, ranked]) or "no method has a result"
    values = select(table, "mean").loc[[name not in left_out for name in table.index], ranked]
    control, lower = results.suite.control, not greater_is_better(metric)
    rankable = len(values) >= 1 and len(ranked) >= 2
    several = len(values) >= 2 and len(ranked) >= 3
    compared = rankable and len(values) >= 2 and control in ranked
    return Ranking(
        metric=metric,
        control=control,
        values=values,
        left_out=left_out,
        methods_left_out={
            label: next(reason for state, reason in _REASONS.items() if state in set(states[label]))
            for label in methods
            if label not in ranked
        },
        average_ranks=stats.average_ranks(values, lower_is_better=lower) if rankable else {},
        friedman=stats.friedman(values, lower_is_better=lower, alpha=alpha) if several else None,
        nemenyi=stats.nemenyi(values, lower_is_better=lower, alpha=alpha) if several else None,
        wilcoxon=stats.wilcoxon(values, str(control), lower_is_better=lower) if compared else [],
        win_tie_loss=stats.win_tie_loss(values, str(control), lower_is_better=lower) if compared else [],
    )


def _describe_gaps(states: pd.Series) -> str:
    """Describe which methods lack a complete result, by reason."""
    reasons = states[states != "done"].map(_REASONS)
    if reasons.nunique() == 1 and len(reasons) == len(states):
        return reasons.iloc[0]
    return "; ".join(f"{why}: {', '.join(reasons.index[reasons == why])}" for why in reasons.unique())


@dataclass(frozen=True)
class PairComparison:
    """Two methods compared by a metric, over the configurations on which both are complete.

    values: means, configurations × the two methods. left_out: the other configurations, and why. counts: of the first
    method. test: None with fewer than two configurations.
    """

    metric: str
    one: str
    other: str
    greater_is_better: bool
    values: pd.DataFrame
    left_out: dict[str, str]
    counts: stats.WinTieLoss
    test: stats.Comparison | None


def compare_methods(results: Results, one: str, other: str, metric: str) -> PairComparison:
    """Compare two methods: wins, ties, losses, Wilcoxon's test and its effect size.

    Parameters
    ----------
    results : Results
        Results of a suite.
    one, other : str
        Labels of the suite, of any role.
    metric : str
        Name of the metric.

    Returns
    -------
    PairComparison
        Counts, test, means, and what is left out.

    Raises
    ------
    ValueError
        If the labels are equal, or the suite has no such method.
    """
    if one == other:
        raise ValueError(f"cannot compare {one!r} with itself: name two methods")
    if unknown := [label for label in (one, other) if label not in results.labels()]:
        known = ", ".join(results.labels()) or "none without a sweep"
        problem = f"has no method {unknown[0]!r} to compare; it has {known}"
        raise ValueError(f"the suite {results.suite.name} {problem}")
    table = results.table(metric)
    done = select(table, "state")[[one, other]] == "done"
    left_out: dict[str, str] = {}
    for name, row in done[~done.all(axis=1)].iterrows():
        missing = f"no complete result: {', '.join(row.index[~row])}"
        left_out[str(name)] = "absent" if name in results.absent else missing
    values = select(table, "mean").loc[done.all(axis=1), [one, other]]
    lower = not greater_is_better(metric)
    counts = stats.WinTieLoss(method=other, wins=0, ties=0, losses=0)
    if len(values):
        (counts,) = stats.win_tie_loss(values, one, lower_is_better=lower)
    test = stats.wilcoxon(values, one, lower_is_better=lower)[0] if len(values) > 1 else None
    return PairComparison(metric, one, other, not lower, values, left_out, counts, test)


@dataclass(frozen=True, kw_only=True)
class NoiseGap:
    """Share of the distance from the floor (trained on candidates) to the ceiling (trained on truth).

    shares: configurations × methods; 0 is the floor, 1 the ceiling. undefined: configurations without a share, and why.
    alike: whether floor and ceiling are the same learner, tuned in the same way. tuned: whether both are tuned.
    tuned_methods: methods that are tuned although floor and ceiling are not, so that their shares are too large.
    """

    floor: str
    ceiling: str
    shares: pd.DataFrame
    undefined: dict[str, str]
    alike: bool
    tuned: bool
    tuned_methods: list[str]


def noise_gap(results: Results, metric: str = "average_precision") -> NoiseGap | None:
    """Compute ``(method − floor) / (ceiling − floor)`` from means over folds; None without floor or ceiling.

    Floor and ceiling are the same learner with the same tuning, if the suite has such a pair, and rather a tuned one.
    Undefined where the ceiling does not exceed the floor by at least 0.002, or a run is missing.
    """
    entries = [results.suite.method(label) for label in results.labels()]
    pairs = [(a, b) for a in entries for b in entries if (a.role, b.role) == ("floor", "ceiling")]
    if not pairs:
        return None

    def is_alike(one: MethodEntry, other: MethodEntry) -> bool:
        same = {"label": "", "role": "method"}
        return one.model_copy(update=same) == other.model_copy(update=same)

    # The first of equal pairs.
    chosen = max(pairs, key=lambda pair: (is_alike(*pair), all(entry.tuning for entry in pair)))
    alike, tuned = is_alike(*chosen), all(entry.tuning for entry in chosen)
    floor, ceiling = (entry.label for entry in chosen)
    table = results.table(metric)
    means = select(table, "mean").where(select(table, "state") == "done")
    gap = (means[ceiling] - means[floor]) * (1 if greater_is_better(metric) else -1)
    undefined = {}
    for name in table.index:
        if name in results.absent:
            undefined[name] = "the data are absent"
        elif np.isnan(gap[name]):
            undefined[name] = "floor or ceiling is not complete"
        elif gap[name] < SMALLEST_GAP:
            low, high = means.loc[name, [floor, ceiling]]
            undefined[name] = f"the ceiling ({high:.4f}) is not above the floor ({low:.4f}) by {SMALLEST_GAP}"
    kept = [name for name in table.index if name not in undefined]
    gains = means.loc[kept, results.labels("method")].sub(means.loc[kept, floor], axis=0)
    shares = gains.div(means.loc[kept, ceiling] - means.loc[kept, floor], axis=0)
    return NoiseGap(
        floor=floor,
        ceiling=ceiling,
        shares=shares,
        undefined=undefined,
        alike=alike,
        tuned=tuned,
        tuned_methods=[e.label for e in entries if e.role == "method" and e.tuning and not tuned],
    )


def measure_costs(results: Results) -> pd.DataFrame:
    """Summarize time and memory, one row per method: the median over folds, then over configurations.

    A ratio is to the control on the same configuration, the median over the ``n_ratio`` configurations that both have.
    """
    names, labels = results.suite.configurations, results.labels()

    def medians(field: str) -> pd.DataFrame:
        def median(label: str, name: str) -> float:
            return pd.Series([r.get(field) for r in results.cells[label, name].records], dtype=float).median()

        content = {label: [median(label, name) for name in names] for label in labels}
        return pd.DataFrame(content, index=pd.Index(names))

    fit, predict, memory = map(medians, ("fit_seconds", "predict_seconds", "peak_memory_mb"))
    control = results.suite.control if results.suite.control in labels else None

    def ratios(values: pd.DataFrame) -> pd.DataFrame:
        base = values[control] if control else pd.Series(np.nan, index=values.index)
        return values.div(base.where(base > 0), axis=0)

    costs = pd.DataFrame(
        {
            "fit_seconds": fit.median(),
            "fit_ratio": ratios(fit).median(),
            "predict_seconds": predict.median(),
            "memory_mb": memory.median(),
            "memory_ratio": ratios(memory).median(),
            "n": fit.notna().sum(),
            "n_ratio": ratios(fit).notna().sum(),
        }
    )
    return costs[costs["n"] > 0]
