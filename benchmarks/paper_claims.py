"""The claims of the paper about its comparison, judged by the stored runs; `paper_results.py` prints them."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
from paper_numbers import (
    AP,
    PMLMA,
    MetricTables,
    Stored,
    as_printed,
    mean_ranks,
    paper_tables,
)
from paper_parts import FAILS, HOLDS, LEVEL, OPEN, make_table

from skpml import stats
from skpml.datasets import split_configuration
from skpml.experiments import format_number, greater_is_better, metric_title

Verdict = tuple[str, str]
# Of the 150 cases of the paper, 30 configurations by five metrics.
TOP_TWO = 133 / 150
UNKNOWN = "fewer than two configurations are complete"

RULES = (
    "Rules: the first claim holds if the share is at least the published one. That about Wilcoxon's tests holds if "
    "p < 0.05 in each, and does not hold if another method is better with p < 0.05 in one; that about Friedman's holds "
    "if p < 0.05 in each. Claims about ranks hold or not by their order. The last claim holds if PML-MA loses less than "
    "both others on every data set, and does not hold if one of them loses no more in the mean. Otherwise a claim cannot "
    "be decided. p-values are over configurations and not corrected. Cases and losses are compared as printed, with "
    "three digits."
)


def tabulate_claims(stored: Stored) -> str:
    """One row for each claim: the verdict and the number, for each way of setting the methods."""
    tables = paper_tables(stored)
    columns = {
        "printed": "the paper's own figures",
        "tuned": "all tuned",
        "common": "all tuned, common threshold",
        "settings": "eight with the paper's settings",
    }
    counts = {name: len(tables[name][AP]) for name in columns}
    rows = []
    for claim, judge in CLAIMS.items():
        verdicts = [judge(tables[name]) if counts[name] > 1 else (OPEN, UNKNOWN) for name in columns]
        rows.append((claim, *(f"{verdict}: {measured}" for verdict, measured in verdicts)))
    titles = ("claim of the paper", *(f"{title} (N = {counts[name]})" for name, title in columns.items()))
    return f"{make_table(titles, rows)}\n\n{RULES}"


def judge_top_two(tables: MetricTables) -> Verdict:
    n_top, n = count_top_two(tables)
    return HOLDS if n_top / n >= TOP_TWO else FAILS, f"{n_top} of {n} ({format_number(100 * n_top / n, 0)} %)"


def count_top_two(tables: MetricTables) -> tuple[int, int]:
    """Count the cases in which at most one method is better than PML-MA, and all cases."""
    n_top = 0
    for metric, table in tables.items():
        values = as_printed(table) * (1 if greater_is_better(metric) else -1)
        n_top += int((values.gt(values[PMLMA], axis=0).sum(axis=1) < 2).sum())
    return n_top, sum(map(len, tables.values()))


def judge_lowest_ranks(tables: MetricTables) -> Verdict:
    first, others = 0, []
    for metric, table in tables.items():
        ranks = stats.average_ranks(table, lower_is_better=not greater_is_better(metric))
        best = min(ranks, key=lambda label: (ranks[label], label != PMLMA))
        first += best == PMLMA
        if best != PMLMA:
            numbers = (f"{label} {format_number(ranks[label], 2)}" for label in (best, PMLMA))
            others.append(f"{metric_title(metric).lower()}: {', '.join(numbers)}")
    measured = "; ".join([f"lowest in {first} of {len(tables)}", *others])
    return HOLDS if not others else FAILS, measured


def judge_wilcoxon(tables: MetricTables) -> Verdict:
    better, worse, n = 0, [], 0
    for metric, table in tables.items():
        lower = not greater_is_better(metric)
        for test in stats.wilcoxon(table, PMLMA, lower_is_better=lower):
            n += 1
            certain = test.p_value < LEVEL
            better += certain and test.effect_size > 0
            if certain and test.effect_size < 0:
                worse.append(f"{test.method} in {metric_title(metric).lower()}")
    measured = f"better in {better} of {n} tests" + (f"; worse than {', '.join(worse)}" if worse else "")
    return HOLDS if better == n else FAILS if worse else OPEN, measured


def judge_friedman(tables: MetricTables) -> Verdict:
    found = [stats.friedman(table, lower_is_better=not greater_is_better(m)) for m, table in tables.items()]
    certain = sum(test.p_value < LEVEL for test in found)
    smallest, critical = (
        format_number(value, 2)
        for value in (min(test.f_statistic for test in found), found[0].critical_value)
    )
    measured = f"rejected in {certain} of {len(found)}; F at least {smallest} (critical {critical})"
    return HOLDS if certain == len(found) else OPEN, measured


def judge_most_competitive(tables: MetricTables) -> Verdict:
    ranks = mean_ranks(tables)
    nearest = sorted((label for label in ranks if label != PMLMA), key=lambda label: ranks[label])[:2]
    measured = ", ".join(f"{label} {format_number(ranks[label], 2)}" for label in nearest)
    return HOLDS if set(nearest) == {
        "pml-plr",
        "pml-nd",
    } else FAILS, f"the best two of the others: {measured}"


def judge_alignment_rivals(tables: MetricTables) -> Verdict:
    ranks = mean_ranks(tables)
    ahead = all(ranks[PMLMA] < ranks[label] for label in ("fbd-pml", "pml-fp"))
    measured = ", ".join(
        f"{label} {format_number(ranks[label], 2)}" for label in (PMLMA, "fbd-pml", "pml-fp")
    )
    return HOLDS if ahead else FAILS, f"mean of ranks: {measured}"


def judge_stability(tables: MetricTables) -> Verdict:
    losses = lose_by_noise(tables[AP])
    if losses.empty:
        return OPEN, "no data set has two amounts of noise"
    others = ["particle", "pml-ni"]
    means = as_printed(losses.mean())
    always = losses[others].gt(losses[PMLMA], axis=0).all(axis=None)
    verdict = HOLDS if always else OPEN if (means[others] > means[PMLMA]).all() else FAILS
    listed = ", ".join(f"{label} {format_number(means[label], 3)}" for label in (PMLMA, *others))
    what = "average precision lost from the least to the most noise"
    return verdict, f"{what}, mean over data sets with several amounts ({len(losses)}): {listed}"


def lose_by_noise(table: pd.DataFrame) -> pd.DataFrame:
    """What each method loses from the least to the most noise, on data sets with several amounts."""
    groups = as_printed(table).groupby(lambda name: split_configuration(name)[0], sort=False)
    # Configurations of a data set are in the order of their noise.
    ends = {name: group.iloc[0] - group.iloc[-1] for name, group in groups if len(group) > 1}
    return as_printed(pd.DataFrame(ends.values(), index=list(ends), columns=table.columns))


CLAIMS: dict[str, Callable[[MetricTables], Verdict]] = {
    "PML-MA is best or second in 133 of 150 cases (89 %)": judge_top_two,
    "PML-MA has the lowest average rank in all five metrics": judge_lowest_ranks,
    "PML-MA is better than each of eight methods in each metric, Wilcoxon p < 0.05": judge_wilcoxon,
    "the nine methods differ in each metric, Friedman p < 0.05": judge_friedman,
    "PML-PLR and PML-ND are the most competitive": judge_most_competitive,
    "PML-MA is ahead of FBD-PML and PML-fp": judge_alignment_rivals,
    "PML-MA is stable under severe noise, PARTICLE and PML-NI degrade rapidly": judge_stability,
}
