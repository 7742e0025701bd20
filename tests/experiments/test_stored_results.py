"""Ranks and tests of the stored paper suite, computed again from its runs with SciPy alone."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from skpml.experiments import (
    Results,
    Store,
    collect,
    expand,
    format_number,
    format_p_value,
    load_suite,
    rank_methods,
)
from skpml.experiments._export import _export_ranks as export_ranks
from skpml.metrics import METRICS

FOLDER = Path(__file__).parents[2] / "results" / "paper"
SUITE = load_suite("paper")

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="needs the stored results of the repository")


@pytest.fixture(scope="module")
def records() -> list[dict]:
    return Store(FOLDER).records()


@pytest.fixture(scope="module")
def results(records: list[dict]) -> Results:
    return collect(expand(SUITE, data_home=Path("/nowhere")), records)


@pytest.fixture(scope="module")
def printed(results: Results) -> dict[str, dict[str, str]]:
    """The exported table of ranks: text by row and metric."""
    lines = [line for line in export_ranks(results, "markdown").splitlines() if line.startswith("| ")]
    titles, _, *rows = ([cell.strip() for cell in line.strip("| ").split("|")] for line in lines)
    return {row[0]: dict(zip(titles[1:], row[1:], strict=False)) for row in rows}


def values_of(records: list[dict], metric: str) -> tuple[np.ndarray, list[str]]:
    """Means over all runs, configurations × methods, where every method has all its runs."""
    found: dict[tuple[str, str], dict[tuple[int, int], float]] = defaultdict(dict)
    for record in records:
        run = record["run"]
        for entry in SUITE.methods:
            tuning = None if entry.tuning is None else entry.tuning.model_dump(exclude_none=True)
            settings = (
                entry.name,
                entry.parameters_on(run["configuration"]),
                tuning,
                entry.role == "ceiling",
            )
            own = (run["method"], run["parameters"], run["tuning"], run["trained_on"] == "truth")
            if settings == own and run["folds"] == SUITE.folds and record["status"] == "done":
                found[entry.label, run["configuration"]][run["seed"], run["fold"]] = record["metrics"][metric]
    places = {(seed, fold) for seed in SUITE.seeds for fold in range(SUITE.folds)}
    complete = {place for place, values in found.items() if places <= set(values)}
    methods = [
        e.label for e in SUITE.methods if e.role == "method" and any(e.label == p[0] for p in complete)
    ]
    names = [name for name in SUITE.configurations if all((label, name) in complete for label in methods)]
    means = [
        [np.mean([found[m, name][place] for place in sorted(places)]) for m in methods] for name in names
    ]
    return np.round(means, 12), methods


@pytest.mark.parametrize("metric", [metric for metric in SUITE.metrics if metric in METRICS])
def test_ranks_and_tests_agree_to_the_last_printed_digit(
    metric: str, records: list[dict], results: Results, printed: dict[str, dict[str, str]]
) -> None:
    values, methods = values_of(records, metric)
    n, k = values.shape
    assert n >= 13
    assert k >= 10
    sign = -1 if METRICS[metric].greater_is_better else 1
    ranks = stats.rankdata(sign * values, axis=1)
    column = METRICS[metric].title

    def shown(row: str) -> str:
        return printed[row][column]

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
    assert shown("p (Friedman)").replace("&lt;", "<") == format_p_value(stats.f.sf(f_statistic, *freedom))
    quantile = stats.studentized_range.ppf(0.95, k, np.inf) / np.sqrt(2)
    assert shown("CD (Nemenyi)") == format_number(quantile * np.sqrt(k * (k + 1) / (6 * n)), 2)

    control = methods.index(str(SUITE.control))
    tests = {test.method: test for test in rank_methods(results, metric).wilcoxon}
    assert set(tests) == set(methods) - {SUITE.control}
    for label, other in zip(methods, values.T, strict=True):
        if label != SUITE.control:
            gain = np.round(sign * (other - values[:, control]), 12)
            # With zeros or ties, older versions of SciPy approximate, and the sign of all differences matters.
            found = stats.wilcoxon(gain[gain != 0])
            assert format_p_value(tests[label].p_value) == format_p_value(found.pvalue), label
            assert tests[label].statistic == found.statistic
