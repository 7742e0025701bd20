"""Numbers of the account of the paper's comparison: the stored results, beside the published ones and in pairs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

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
# A new draw of the noise changes a result as much.
EQUAL = 0.01
PMLMA, OURS, FLOOR = "pml-ma", "candidate-likelihood", "ridge on candidates"
PAIRS = ((PMLMA, FLOOR), (OURS, FLOOR), (OURS, PMLMA))


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
    printed = [round(gain, 3) for gain in gains.dropna()]
    better, worse = sum(gain > EQUAL for gain in printed), sum(gain < -EQUAL for gain in printed)
    return better, len(printed) - better - worse, worse


def judge(counts: tuple[int, int, int]) -> str:
    """Say in a word how results stand beside the published ones."""
    better, _, worse = counts
    if not (n := sum(counts)):
        return "not run"
    if worse <= n / 10:
        return "better" if better > n / 2 else "reproduced"
    return "below" if worse > n / 2 else "mixed"


def rank_paper_methods(stored: Stored) -> dict[str, tuple[int, dict[str, float]]]:
    """Number of configurations and mean of the ranks by the paper's metrics, published and measured, of its methods.

    Measured over the configurations that are complete for all of them; published over those of the tuned methods. The
    settings that the paper lists are those of the eight others; PML-MA is tuned in both.
    """
    metrics = list(dict.fromkeys(stored.published["metric"]))
    labels = stored.paper_methods
    wanted: dict[str, dict[str, pd.DataFrame]] = {"published": {}, "tuned": {}, "settings": {}}
    for metric in metrics:
        tuned, listed = complete_means(stored.paper, metric), complete_means(stored.settings, metric)
        wanted["tuned"][metric] = tuned[labels].dropna()
        wanted["settings"][metric] = listed.assign(**{PMLMA: tuned[PMLMA]})[labels].dropna()
        names = wanted["tuned"][metric].index
        wanted["published"][metric] = published_means(stored.published, metric, names)[labels]
    found = {}
    for name, tables in wanted.items():
        n = min(map(len, tables.values()))
        ranks = [
            stats.average_ranks(table, lower_is_better=not greater_is_better(metric))
            for metric, table in tables.items()
            if n
        ]
        found[name] = (n, {label: sum(rank[label] for rank in ranks) / len(metrics) for label in labels if n})
    return found


def format_interval(gains: pd.Series) -> str:
    """Format a mean and its 95 % interval by Student's distribution."""
    if len(gains) < 2:
        return format_signed(gains.mean())
    low, high = scipy.stats.ttest_1samp(gains, 0.0).confidence_interval(0.95)
    return f"{format_signed(gains.mean())} [{format_signed(low)}, {format_signed(high)}]"


def format_signed(value: float, digits: int = 3) -> str:
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
