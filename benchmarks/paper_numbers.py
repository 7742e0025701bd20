"""Numbers of the account of the paper's comparison: the stored results, beside the published ones and in pairs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import scipy.stats
from published import PATH

from skpml import stats
from skpml.datasets import split_configuration
from skpml.experiments import (
    Results,
    Store,
    collect,
    compare_methods,
    expand,
    format_number,
    greater_is_better,
    load_suite,
    read_published,
)

AP = "average_precision"
# The paper has one Hamming loss; both of ours are compared with it.
PUBLISHED_METRIC = {"hamming_loss_common": "hamming_loss"}
COMMON = {metric: common for common, metric in PUBLISHED_METRIC.items()}
# A new draw of the noise changes a result as much.
EQUAL = 0.01
PMLMA, OURS, FLOOR = "pml-ma", "candidate-likelihood", "ridge on candidates"
FLOORS = (FLOOR, "ridge with larger search")
PAIRS = (*((one, floor) for one in (PMLMA, OURS) for floor in FLOORS), (OURS, PMLMA))
DIGITS = 3

# A table of configurations × methods for each metric.
MetricTables = dict[str, pd.DataFrame]


@dataclass(frozen=True)
class Stored:
    """The stored results of the four suites, and the published ones."""

    paper: Results
    settings: Results
    seeds: Results
    real: Results
    published: pd.DataFrame

    @property
    def paper_methods(self) -> list[str]:
        """The methods with published results, the paper's own first."""
        known = set(self.published["method"])
        return [label for label in self.paper.labels("method") if label in known]


def read_stored(folder: Path) -> Stored:
    """Read the stored folders of all suites; one that is absent has no runs."""
    names = ("paper", "paper-settings", "paper-seeds", "paper-real")
    return Stored(*(read_suite(name, folder / name) for name in names), published=read_published(PATH))


def read_suite(name: str, folder: Path) -> Results:
    """Read stored runs, without what depends on this machine: its data, and the code since the runs."""
    results = collect(expand(load_suite(name)), Store(folder).records())
    cells = {place: replace(cell, older=0) for place, cell in results.cells.items()}
    return replace(results, cells=cells, absent={})


def complete_means(results: Results, metric: str) -> pd.DataFrame:
    """Means of complete results: configurations × methods, NaN for others."""
    table = results.table(metric)
    return table.xs("mean", axis=1, level=1).where(table.xs("state", axis=1, level=1) == "done")


def published_means(published: pd.DataFrame, metric: str, names: Iterable[str]) -> pd.DataFrame:
    """Published means: configurations × methods."""
    rows = published[published["metric"] == PUBLISHED_METRIC.get(metric, metric)]
    return rows.pivot(index="configuration", columns="method", values="mean").reindex(list(names))


def gains_over_published(stored: Stored, results: Results, metric: str) -> pd.DataFrame:
    """How much better the complete results are than the published ones; NaN where there is none."""
    measured = complete_means(results, metric)
    sign = 1 if greater_is_better(metric) else -1
    return sign * (measured - published_means(stored.published, metric, measured.index))


def count_differences(gains: pd.Series) -> tuple[int, int, int]:
    """Count positive, small and negative differences, as printed."""
    printed = [round(gain, DIGITS) for gain in gains.dropna()]
    better, worse = sum(gain > EQUAL for gain in printed), sum(gain < -EQUAL for gain in printed)
    return better, len(printed) - better - worse, worse


def judge(counts: tuple[int, int, int]) -> str:
    """Describe in a word how results stand beside the published ones."""
    better, _, worse = counts
    if not (n := sum(counts)):
        return "not complete"
    if worse <= n / 10:
        return "better" if better > n / 2 else "reproduced"
    return "below" if worse > n / 2 else "mixed"


def paper_tables(stored: Stored) -> dict[str, MetricTables]:
    """Means of the paper's nine methods by its metrics, on the configurations that are complete for all nine.

    All that is printed, printed on the configurations of `tuned`, all tuned, the same with the Hamming loss of the common
    threshold, and the eight others with the settings that the paper lists, beside PML-MA tuned.
    """
    metrics, labels = list(dict.fromkeys(stored.published["metric"])), stored.paper_methods
    tuned, listed = (
        {metric: complete_means(results, metric) for metric in stored.paper.suite.metrics}
        for results in (stored.paper, stored.settings)
    )
    common = {metric: tuned[COMMON.get(metric, metric)] for metric in metrics}
    settings = {metric: listed[metric].assign(**{PMLMA: tuned[metric][PMLMA]}) for metric in metrics}
    found = {}
    for name, tables in {"tuned": tuned, "common": common, "settings": settings}.items():
        wanted = {metric: tables[metric][labels] for metric in metrics}
        complete = pd.concat(wanted.values(), axis=1).notna().all(axis=1)
        found[name] = {metric: table[complete] for metric, table in wanted.items()}
    places = {
        "printed": stored.published["configuration"].unique(),
        "printed, tuned": found["tuned"][AP].index,
    }
    for name, names in places.items():
        found[name] = {m: published_means(stored.published, m, names)[labels] for m in metrics}
    return found


def mean_ranks(tables: MetricTables) -> dict[str, float]:
    """Mean over the metrics of each method's average rank; empty without configurations."""
    ranks = pd.DataFrame(
        [
            stats.average_ranks(table, lower_is_better=not greater_is_better(metric))
            for metric, table in tables.items()
            if len(table)
        ]
    )
    return ranks.mean().to_dict()


def as_printed(values: Any) -> Any:
    return values.round(DIGITS)


def format_interval(gains: pd.Series) -> str:
    """Format a mean and its 95 % interval by Student's distribution, which needs two values."""
    if len(gains) < 2:
        return format_signed(gains.mean())
    low, high = scipy.stats.ttest_1samp(gains, 0.0).confidence_interval(0.95)
    return f"{format_signed(gains.mean())} [{format_signed(low)}, {format_signed(high)}]"


def format_signed(value: float, digits: int = DIGITS) -> str:
    text = format_number(value, digits)
    return text if text[0] in "−–" or float(text) == 0 else f"+{text}"


@dataclass(frozen=True)
class Pair:
    """Two methods compared by a metric: gains of the first by configuration and by data set, and their tests."""

    gains: pd.Series
    test: stats.Comparison | None
    data_gains: pd.Series
    data_test: stats.Comparison | None


def compare_pair(results: Results, one: str, other: str, metric: str) -> Pair:
    found = compare_methods(results, one, other, metric)
    sign = 1 if found.greater_is_better else -1
    # Several amounts of noise on one data set are not independent.
    by_data = found.values.groupby(lambda name: split_configuration(name)[0], sort=False).mean()
    data_test = None
    if len(by_data) > 1:
        data_test = stats.wilcoxon(by_data, one, lower_is_better=not found.greater_is_better)[0]
    gains, data_gains = (sign * (values[one] - values[other]) for values in (found.values, by_data))
    return Pair(gains, found.test, data_gains, data_test)
