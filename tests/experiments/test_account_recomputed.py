"""The numbers of the stored account, computed again from the stored runs with NumPy and SciPy alone."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from test_stored_results import FOLDER, METRICS, Stored, compute_p_value, find_metrics, find_values

from skpml.experiments import Store, collect, expand, load_suite
from skpml.experiments._metrics import RUN_METRICS

PAPER = "hamming_loss", "ranking_loss", "one_error", "coverage", "average_precision"
NINE = "pml-ma", "pml-plr", "fbd-pml", "pml-nd", "p-lenfn", "pamb", "pml-ni", "particle", "pml-fp"
FLOOR, CEILING = "ridge on candidates", "ridge on truth"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="needs the repository")


@pytest.fixture(scope="module")
def account() -> dict[str, str]:
    text = (FOLDER / "paper" / "account.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE))


@pytest.fixture(scope="module")
def means() -> dict[str, dict[tuple[str, str], float]]:
    """For each metric, the mean over folds of each method and configuration with all its runs."""
    suite = load_suite("paper")
    records = Store(FOLDER / "paper").records()
    results = collect(expand(suite, data_home=Path("/nowhere")), records)
    stored = Stored(suite, find_metrics(suite, records), results, {})
    return {
        metric: {place: float(np.mean(values)) for place, values in find_values(stored, metric).items()}
        for metric in METRICS
    }


def read_tables(text: str) -> list[list[dict[str, str]]]:
    tables = []
    for block in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        titles, _, *rows = (
            [cell.strip() for cell in line.strip("| \n").split("|")] for line in block.splitlines()
        )
        tables.append([dict(zip(titles, row, strict=False)) for row in rows])
    return tables


def complete_names(means: dict[str, dict[tuple[str, str], float]], metrics: list[str]) -> list[str]:
    """The configurations on which all nine methods are complete."""
    names = [
        name
        for name in load_suite("paper").configurations
        if all((label, name) in means[metric] for label in NINE for metric in metrics)
    ]
    assert names
    return names


def sign_of(metric: str) -> int:
    return 1 if RUN_METRICS[metric].greater_is_better else -1


def signed(value: float) -> str:
    text = f"{value:+.3f}".replace("-", "−")
    return text[1:] if float(text[1:]) == 0 else text


def interval(gains: np.ndarray) -> str:
    if len(gains) == 1:
        return signed(gains[0])
    half = stats.t.ppf(0.975, len(gains) - 1) * gains.std(ddof=1) / np.sqrt(len(gains))
    return f"{signed(gains.mean())} [{signed(gains.mean() - half)}, {signed(gains.mean() + half)}]"


def show(p_value: float) -> str:
    return "< 0.0001" if p_value < 0.0001 else f"{p_value:.4f}"


def show_test(gains: np.ndarray) -> str:
    return show(compute_p_value(gains)) if len(gains) > 1 else "–"


def percent(share: float) -> str:
    return str(round(100 * share)).replace("-", "−")


def by_data(names: list[str], values: np.ndarray) -> np.ndarray:
    groups = defaultdict(list)
    for name, value in zip(names, values, strict=True):
        groups[name.rpartition("-")[0]].append(value)
    return np.array([np.mean(each) for each in groups.values()])


@pytest.mark.parametrize(
    ("column", "hamming"),
    [("all tuned", "hamming_loss"), ("all tuned, common threshold", "hamming_loss_common")],
)
def test_mean_ranks_of_the_nine_methods(account, means, column, hamming):
    metrics = [hamming, *PAPER[1:]]
    names = complete_names(means, metrics)
    ranks = []
    for metric in metrics:
        values = np.array([[means[metric][label, name] for label in NINE] for name in names])
        ranks.append(stats.rankdata(-sign_of(metric) * values.round(12), axis=1).mean(axis=0))
    printed = {row["method"]: row for row in read_tables(account["Ranks"])[0]}
    assert set(printed) == set(NINE)
    for label, rank in zip(NINE, np.mean(ranks, axis=0), strict=True):
        assert printed[label][f"{column} (N = {len(names)})"] == f"{rank:.2f}", label


def test_gains_with_intervals_over_configurations_and_data_sets(account, means):
    sections = re.findall(
        r"\*\*(.+?) against (.+?)\*\*\n\n((?:\|.*\n?)+)",
        account["What is gained over tuned ridge regression"],
    )
    assert {one for one, _, _ in sections} == {"pml-ma", "candidate-likelihood"}
    for one, other, text in sections:
        (rows,) = read_tables(text)
        for metric, row in zip(METRICS, rows, strict=True):
            found = means[metric]
            names = [n for n in load_suite("paper").configurations if {(one, n), (other, n)} <= set(found)]
            values = np.array([[found[one, name], found[other, name]] for name in names])
            gains = sign_of(metric) * (values[:, 0] - values[:, 1])
            mean_by_data = by_data(names, gains)
            exact = np.round(sign_of(metric) * -np.diff(values.round(12))[:, 0], 12)
            columns = np.transpose([by_data(names, column) for column in values.T]).round(12)
            exact_by_data = np.round(sign_of(metric) * -np.diff(columns)[:, 0], 12)
            assert row["N"] == str(len(names))
            assert row["mean difference"] == interval(gains)
            assert row["p (Wilcoxon)"] == show_test(exact)
            assert row["data sets"] == str(len(mean_by_data))
            assert row["mean difference over data sets"] == interval(mean_by_data)
            assert row["p over data sets"] == show_test(exact_by_data)


def test_the_correction_of_holm(account, means):
    found = means["average_precision"]
    rows = read_tables(account["Ranks"])[2]
    labels = ["pml-ma", *(row["against"] for row in rows)]
    names = [n for n in load_suite("paper").configurations if all((label, n) in found for label in labels)]
    values = np.array([[found[label, name] for label in labels] for name in names]).round(12)
    p_values = np.array([compute_p_value(np.round(values[:, 0] - other, 12)) for other in values[:, 1:].T])
    order = np.argsort(p_values)
    steps = np.maximum.accumulate(p_values[order] * np.arange(len(order), 0, -1)).clip(max=1)
    for place, step in zip(order, steps, strict=True):
        assert rows[place]["p (Holm)"] == show(step), rows[place]


def test_the_noise_gap(account, means):
    found = means["average_precision"]
    (rows,) = read_tables(account["The noise gap"])
    assert rows
    for row in rows:
        shares = []
        for name in load_suite("paper").configurations:
            if {(label, name) for label in (row["method"], FLOOR, CEILING)} <= set(found):
                floor, ceiling = found[FLOOR, name], found[CEILING, name]
                if ceiling - floor >= 0.002:
                    shares.append((found[row["method"], name] - floor) / (ceiling - floor))
        assert row["N"] == str(len(shares))
        if shares:
            assert row["average precision, median %"] == percent(np.median(shares))
            quartiles = (percent(np.quantile(shares, q)) for q in (0.25, 0.75))
            assert row["quartiles"] == " to ".join(quartiles)
            assert row["above the floor"] == str(sum(share > 0 for share in shares))


@pytest.mark.parametrize(
    ("column", "hamming"),
    [("all tuned", "hamming_loss"), ("all tuned, common threshold", "hamming_loss_common")],
)
def test_the_claims_about_cases_and_tests(account, means, column, hamming):
    names = complete_names(means, [hamming, *PAPER[1:]])
    n_top = n_better = n_rejected = 0
    smallest = np.inf
    worse = []
    for metric in (hamming, *PAPER[1:]):
        values = np.array([[means[metric][label, name] for label in NINE] for name in names])
        printed = sign_of(metric) * values.round(3)
        n_top += int(((printed > printed[:, :1]).sum(axis=1) < 2).sum())
        exact = sign_of(metric) * values.round(12)
        for label, other in zip(NINE[1:], exact[:, 1:].T, strict=True):
            gains = np.round(exact[:, 0] - other, 12)
            if compute_p_value(gains) < 0.05:
                balance = (stats.rankdata(np.abs(gains[gains != 0])) * np.sign(gains[gains != 0])).sum()
                n_better += balance > 0
                worse += [label] * int(balance < 0)
        ranks = stats.rankdata(-exact, axis=1).mean(axis=0)
        n, k = exact.shape
        chi2 = 12 * n / (k * (k + 1)) * ((ranks**2).sum() - k * (k + 1) ** 2 / 4)
        f_statistic = (n - 1) * chi2 / (n * (k - 1) - chi2)
        smallest = min(smallest, f_statistic)
        n_rejected += stats.f.sf(f_statistic, k - 1, (k - 1) * (n - 1)) < 0.05
    (rows,) = read_tables(account["The claims of the paper"])
    cells = [row[f"{column} (N = {len(names)})"] for row in rows]
    assert f": {n_top} of {5 * len(names)} (" in cells[0]
    assert ("**holds**" in cells[0]) == (n_top / (5 * len(names)) >= 133 / 150)
    assert f"better in {n_better} of 40 tests" in cells[2]
    assert ("**does not hold**" in cells[2]) == bool(worse)
    assert ("**holds**" in cells[2]) == (n_better == 40)
    assert f"rejected in {n_rejected} of 5; F at least {smallest:.2f}" in cells[3]
