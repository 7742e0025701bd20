"""Ranks and tests of the stored suites of the paper, computed again from their runs with SciPy alone."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from report_helpers import make_records
from scipy import stats

from skpml.experiments import (
    Results,
    Store,
    Suite,
    collect,
    compare_methods,
    expand,
    format_number,
    format_p_value,
    load_suite,
    rank_methods,
)
from skpml.experiments._export import _export_ranks as export_ranks
from skpml.experiments._metrics import RUN_METRICS

FOLDER = Path(__file__).parents[2] / "results"
SUITES = ("paper", "paper-settings", "paper-seeds", "paper-real")
METRICS = load_suite("paper").metrics


# Values by (label, configuration), then by (seed, fold).
Found = dict[tuple[str, str], dict[tuple[int, int], dict[str, float]]]


@dataclass(frozen=True)
class Stored:
    """A suite, the metrics of its runs, and the results and the table of ranks that the library makes of them."""

    suite: Suite
    found: Found
    results: Results
    printed: dict[str, dict[str, str]]


@pytest.fixture(
    scope="module",
    params=[(name, origin) for name in SUITES for origin in ("stored", "invented")],
    ids=" ".join,
)
def stored(request: pytest.FixtureRequest) -> Stored:
    name, origin = request.param
    suite = load_suite(name)
    if origin == "invented":
        # The stored runs may be few: complete ones show that the comparison below compares.
        suite = suite.model_copy(update={"folds": 3})
        records = make_records(suite)
    else:
        records = Store(FOLDER / name).records()
    results = collect(expand(suite, data_home=Path("/nowhere")), records)
    # The exported table of ranks: text by row and metric.
    lines = [line for line in export_ranks(results, "markdown").splitlines() if line.startswith("| ")]
    titles, _, *rows = ([cell.strip() for cell in line.strip("| ").split("|")] for line in lines)
    printed = {row[0]: dict(zip(titles[1:], row[1:], strict=False)) for row in rows}
    return Stored(suite, find_metrics(suite, records), results, printed)


def find_metrics(suite: Suite, records: list[dict]) -> Found:
    """Assign the finished runs to the methods of a suite by what they say about themselves."""
    tunings = {
        e.label: None if e.tuning is None else e.tuning.model_dump(exclude_none=True) for e in suite.methods
    }
    found: Found = defaultdict(dict)
    for record in records:
        run = record["run"]
        own = (run["method"], run["parameters"], run["tuning"], run["trained_on"] == "truth")
        for entry in suite.methods:
            settings = (
                entry.name,
                entry.parameters_on(run["configuration"]),
                tunings[entry.label],
                entry.role == "ceiling",
            )
            if settings == own and run["folds"] == suite.folds and record["status"] == "done":
                found[entry.label, run["configuration"]][run["seed"], run["fold"]] = record["metrics"]
    return found


def find_values(stored: Stored, metric: str) -> dict[tuple[str, str], list[float]]:
    """Values of all runs by (label, configuration), of what is complete and defined."""
    suite = stored.suite
    places = [(seed, fold) for seed in suite.seeds for fold in range(suite.folds)]
    values = {
        place: [metrics[each].get(metric) for each in places]
        for place, metrics in stored.found.items()
        if set(places) <= set(metrics) and place[1] in suite.configurations
    }
    return {place: each for place, each in values.items() if None not in each}


def find_means(stored: Stored, metric: str) -> tuple[np.ndarray, list[str]]:
    """Means over all runs, configurations × methods, where every method has all its runs."""
    found, suite = find_values(stored, metric), stored.suite
    methods = [
        e.label for e in suite.methods if e.role == "method" and any(e.label == place[0] for place in found)
    ]
    names = [name for name in suite.configurations if all((label, name) in found for label in methods)]
    names = names if methods else []
    means = [[np.mean(found[label, name]) for label in methods] for name in names]
    return np.round(means, 12).reshape(len(names), len(methods)), methods


def test_the_comparison_of_the_paper_is_complete(stored: Stored) -> None:
    """All methods, floors and ceilings on all configurations; the stored runs of the other suites may be fewer."""
    if stored.suite.name == "paper":
        found = find_values(stored, "average_precision")
        assert len(found) == len(stored.suite.methods) * len(stored.suite.configurations) == 17 * 26


@pytest.mark.parametrize("metric", METRICS)
def test_ranks_and_tests_agree_to_the_last_printed_digit(metric: str, stored: Stored) -> None:
    values, methods = find_means(stored, metric)
    n, k = values.shape
    ranking = rank_methods(stored.results, metric)
    assert ranking.n == n
    if n < 2 or k < 3:
        assert ranking.friedman is ranking.nemenyi is None
        pytest.skip(f"{n} configurations are complete for {k} methods: there is nothing to test")
    sign = -1 if RUN_METRICS[metric].greater_is_better else 1
    ranks = stats.rankdata(sign * values, axis=1)
    column = RUN_METRICS[metric].title

    def shown(row: str) -> str:
        return stored.printed[row][column]

    assert shown("N") == str(n)
    for label, rank in zip(methods, ranks.mean(axis=0), strict=True):
        assert shown(label) == format_number(rank, 2), label
    # SciPy divides by a correction for ties, which Demšar's formula does not have.
    ties = sum((count**3 - count).sum() for count in (np.unique(row, return_counts=True)[1] for row in ranks))
    chi2 = stats.friedmanchisquare(*values.T).statistic * (1 - ties / (n * k * (k**2 - 1)))
    f_statistic = (n - 1) * chi2 / (n * (k - 1) - chi2)
    assert shown("Friedman χ²") == format_number(chi2, 2)
    assert shown("Iman–Davenport F") == format_number(f_statistic, 2)
    freedom = (k - 1, (k - 1) * (n - 1))
    assert shown("Critical F at 0.05") == format_number(stats.f.ppf(0.95, *freedom), 2)
    # Few data sets and methods are counted.
    if not ranking.friedman.exact:
        p_value = format_p_value(stats.f.sf(f_statistic, *freedom))
        assert shown("p (Friedman)").replace("&lt;", "<") == p_value
    quantile = stats.studentized_range.ppf(0.95, k, np.inf) / np.sqrt(2)
    assert shown("CD (Nemenyi)") == format_number(quantile * np.sqrt(k * (k + 1) / (6 * n)), 2)


def compute_p_value(gain: np.ndarray) -> float:
    """Return the exact p-value of the signed ranks; with ties, which SciPy approximates, by the characteristic function.

    A sum of ranks with random signs has the characteristic function Π cos(t r); its values are whole numbers if the ranks
    are doubled, so that as many points as values invert it.
    """
    different = gain[gain != 0]
    sizes = np.abs(different)
    if len(np.unique(sizes)) == len(sizes):
        return float(stats.wilcoxon(different, method="exact").pvalue)
    ranks = 2 * stats.rankdata(sizes)
    most = int(ranks.sum())
    points = 2 * np.pi * np.arange(2 * most + 1) / (2 * most + 1)
    waves = np.prod(np.cos(points[:, None] * ranks), axis=1)
    sums = np.arange(-most, most + 1)
    probability = (np.cos(np.outer(sums, points)) @ waves) / len(points)
    reached = abs((ranks * np.sign(different)).sum())
    return float(min(1.0, probability[np.abs(sums) >= reached - 0.5].sum()))


@pytest.mark.parametrize("metric", METRICS)
def test_signed_ranks_agree_to_the_last_printed_digit(metric: str, stored: Stored) -> None:
    """Wilcoxon's tests of the control against each other method."""
    values, methods = find_means(stored, metric)
    ranking = rank_methods(stored.results, metric)
    tests = {test.method: test for test in ranking.wilcoxon}
    if len(values) < 2 or ranking.control not in methods or len(methods) < 2:
        assert not tests
        pytest.skip("the control has nothing to be compared with")
    losses = values * (-1 if RUN_METRICS[metric].greater_is_better else 1)
    control = methods.index(ranking.control)
    assert set(tests) == set(methods) - {ranking.control}
    for label, other in zip(methods, losses.T, strict=True):
        if label != ranking.control:
            gain = np.round(other - losses[:, control], 12)
            assert format_p_value(tests[label].p_value) == format_p_value(compute_p_value(gain)), label
            assert tests[label].statistic == stats.wilcoxon(gain[gain != 0]).statistic
            signed = stats.rankdata(np.abs(gain[gain != 0])) * np.sign(gain[gain != 0])
            effect = signed.sum() / np.abs(signed).sum()
            assert format_number(tests[label].effect_size, 2) == format_number(effect, 2)


@pytest.mark.parametrize("metric", METRICS)
def test_gains_over_tuned_ridge_agree_to_the_last_printed_digit(metric: str, stored: Stored) -> None:
    """The comparisons of the account: over configurations, floors included."""
    suite, found = stored.suite, find_values(stored, metric)
    sign = 1 if RUN_METRICS[metric].greater_is_better else -1
    floors = [entry.label for entry in suite.methods if entry.role == "floor"]
    pairs = [(label, floor) for label in ("pml-ma", "candidate-likelihood") for floor in floors]
    compared = 0
    for one, other in pairs:
        names = [name for name in suite.configurations if {(one, name), (other, name)} <= set(found)]
        means = [[np.mean(found[label, name]) for label in (one, other)] for name in names]
        pair = compare_methods(stored.results, one, other, metric)
        assert list(pair.values.index) == names
        if len(names) < 2:
            assert pair.test is None
            continue
        rounded = np.round(means, 12)
        gain = np.round(sign * (rounded[:, 0] - rounded[:, 1]), 12)
        compared += 1
        assert format_number(np.mean(means, axis=0)[0], 3) == format_number(pair.values[one].mean(), 3)
        assert format_p_value(pair.test.p_value) == format_p_value(compute_p_value(gain))
        assert (pair.counts.wins, pair.counts.losses) == ((gain > 0).sum(), (gain < 0).sum())
    if not compared:
        pytest.skip("no floor and method are complete on two configurations")
