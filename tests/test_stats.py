"""Golden values from print: the paper's own ranks and statistics, and the worked example of Demšar (2006)."""

import itertools
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats as scipy_stats

from skpml.stats import average_ranks, friedman, nemenyi, wilcoxon, win_tie_loss

PUBLISHED = Path(__file__).parents[1] / "benchmarks" / "published_results.csv"

# AUC of C4.5 and three variants on 14 data sets (Demšar 2006, table 6).
DEMSAR = pd.DataFrame(
    [
        (0.763, 0.768, 0.771, 0.798),
        (0.599, 0.591, 0.590, 0.569),
        (0.954, 0.971, 0.968, 0.967),
        (0.628, 0.661, 0.654, 0.657),
        (0.882, 0.888, 0.886, 0.898),
        (0.936, 0.931, 0.916, 0.931),
        (0.661, 0.668, 0.609, 0.685),
        (0.583, 0.583, 0.563, 0.625),
        (0.775, 0.838, 0.866, 0.875),
        (1.000, 1.000, 1.000, 1.000),
        (0.940, 0.962, 0.965, 0.962),
        (0.619, 0.666, 0.614, 0.669),
        (0.972, 0.981, 0.975, 0.974),
        (0.957, 0.978, 0.946, 0.970),
    ],
    columns=["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"],
)


def published(metric):
    frame = pd.read_csv(PUBLISHED)
    return frame[frame["metric"] == metric].pivot(index="configuration", columns="method", values="mean")


@pytest.mark.parametrize(
    ("metric", "f_statistic", "rank"),
    [
        ("hamming_loss", 23.1348, 2.0833),
        ("ranking_loss", 71.4812, 1.2500),
        ("one_error", 54.1232, 1.2500),
        ("coverage", 51.7904, 1.6000),
        ("average_precision", 128.4977, 1.1000),
    ],
)
def test_the_statistics_of_the_paper_to_the_last_digit(metric, f_statistic, rank):
    found = friedman(published(metric), lower_is_better=metric != "average_precision")
    assert (found.n_datasets, found.n_methods) == (30, 9)
    assert round(found.f_statistic, 4) == f_statistic
    assert round(found.average_ranks["pml-ma"], 4) == rank
    assert found.critical_value == pytest.approx(scipy_stats.f.ppf(0.95, 8, 232))
    assert found.significant


def test_the_critical_difference_of_the_paper():
    """The paper's 2.1934 comes from the table value q = 3.102, rounded to three digits; the exact q is 3.1017."""
    found = nemenyi(published("average_precision")).critical_difference
    assert round(3.102 * np.sqrt(9 * 10 / (6 * 30)), 4) == 2.1934
    assert found == pytest.approx(2.1934, abs=2e-4)
    assert round(found / np.sqrt(9 * 10 / (6 * 30)), 3) == 3.102


def test_the_example_of_demsar():
    found = friedman(DEMSAR)
    assert [round(rank, 3) for rank in found.average_ranks.values()] == [3.143, 2.0, 2.893, 1.964]
    assert round(found.chi2, 2) == 9.28
    assert round(found.f_statistic, 2) == 3.69
    assert round(found.critical_value, 2) == 2.85
    pairs = nemenyi(DEMSAR)
    assert round(pairs.critical_difference, 2) == 1.25
    assert round(nemenyi(DEMSAR, alpha=0.1).critical_difference, 2) == 1.12


def test_nemenyi_p_values_agree_with_the_critical_difference():
    found = nemenyi(published("ranking_loss"), lower_is_better=True)
    for (one, other), p_value in found.p_values.items():
        apart = abs(found.average_ranks[one] - found.average_ranks[other]) > found.critical_difference
        assert apart == (p_value < 0.05)
        assert found.p_values[other, one] == p_value


def test_nemenyi_p_values_are_those_of_scikit_posthocs():
    posthocs = pytest.importorskip("scikit_posthocs")
    theirs = posthocs.posthoc_nemenyi_friedman(DEMSAR)
    ours = nemenyi(DEMSAR).p_values
    for (one, other), p_value in ours.items():
        assert p_value == pytest.approx(theirs.loc[one, other], abs=1e-6)


def test_friedman_without_ties_is_that_of_scipy():
    table = np.random.default_rng(0).normal(size=(12, 5))
    assert friedman(table).chi2 == pytest.approx(scipy_stats.friedmanchisquare(*table.T).statistic)


def test_equal_methods_and_methods_in_one_order():
    assert friedman(np.ones((6, 3))).chi2 == pytest.approx(0)
    ordered = friedman(np.arange(12.0).reshape(4, 3))
    assert ordered.f_statistic == np.inf
    assert ordered.p_value == pytest.approx(1 / 6**3)  # the other three agree with the first by chance
    assert ordered.average_ranks == {"0": 3.0, "1": 2.0, "2": 1.0}
    assert friedman(np.arange(90.0).reshape(10, 9)).p_value == pytest.approx(math.factorial(9) ** -9.0)


@pytest.mark.parametrize(
    "table",
    [
        [[0.3, 0.2, 0.1], [0.3, 0.1, 0.2], [0.3, 0.2, 0.1]],
        [[1, 2, 3, 4], [1, 2, 4, 3], [2, 1, 3, 4]],
        [[1, 1, 2, 3], [2, 1, 1, 1], [1, 2, 3, 4]],
        [[1, 2], [1, 2], [2, 1], [1, 1]],
        [[5, 5, 5], [5, 5, 5]],
    ],
)
def test_few_data_sets_are_counted_order_by_order(table):
    found = friedman(table, lower_is_better=True)
    ranks = scipy_stats.rankdata(table, axis=1)
    as_much = [
        np.sum(np.sum(orders, axis=0) ** 2) >= np.sum(ranks.sum(axis=0) ** 2) - 1e-9
        for orders in itertools.product(*(itertools.permutations(row) for row in ranks))
    ]
    assert found.exact
    assert found.p_value == pytest.approx(np.mean(as_much))
    assert found.significant == (np.mean(as_much) < 0.05)


def test_more_agreement_is_never_less_significant():
    one_order = np.tile([1.0, 2, 3, 4], (3, 1))
    less = one_order.copy()
    less[2] = [1, 2, 4, 3]
    assert friedman(one_order).p_value == pytest.approx(1 / 24**2)
    assert friedman(less).p_value > 10 * friedman(one_order).p_value


def test_many_data_sets_have_the_p_value_of_f():
    table = np.random.default_rng(0).normal(size=(12, 5)) + np.arange(5)
    found = friedman(table)
    assert not found.exact
    assert found.p_value == scipy_stats.f.sf(found.f_statistic, 4, 44)


@pytest.mark.parametrize(
    ("table", "chi2", "p_value"),
    [
        ([[1, 2, 3]] * 3 + [[2, 1, 3]], 6.5, 0.042),
        ([[1, 2, 3]] * 4 + [[2, 3, 1]], 5.2, 0.093),
        ([[1, 2, 3, 4]] * 2 + [[2, 1, 3, 4]], 8.2, 0.017),
    ],
)
def test_counted_p_values_are_those_of_the_printed_tables(table, chi2, p_value):
    found = friedman(table, lower_is_better=True)
    assert found.chi2 == pytest.approx(chi2)
    assert round(found.p_value, 3) == p_value


def test_directions_are_mirror_images():
    up, down = average_ranks(DEMSAR), average_ranks(DEMSAR, lower_is_better=True)
    assert {name: pytest.approx(5 - rank) for name, rank in up.items()} == down


def test_wilcoxon_by_hand():
    """Differences 1, 2, −3, 4 have ranks 1 to 4: sums 7 and 3, correlation (7 − 3)/10."""
    table = np.column_stack([[1.0, 2, -3, 4], np.zeros(4)])
    (found,) = wilcoxon(table, "a", methods=["a", "b"])
    assert found.statistic == 3
    assert found.effect_size == pytest.approx(0.4)
    assert found.p_value == pytest.approx(scipy_stats.wilcoxon([1, 2, -3, 4]).pvalue)
    (reverse,) = wilcoxon(table, "a", methods=["a", "b"], lower_is_better=True)
    assert reverse.effect_size == pytest.approx(-0.4)


@pytest.mark.parametrize(
    "gains",
    [
        [1, 1, 1, 1, 1],  # 2/2⁵; a normal approximation would call it significant
        [1, 1, -2, 3, 3, -3, 4],
        [0.5, -0.5, 1, 1, 2],
        [1, -1],
        [-2],
    ],
)
def test_signs_of_tied_ranks_are_counted(gains):
    (found,) = wilcoxon(np.column_stack([gains, np.zeros(len(gains))]), "0")
    ranks = scipy_stats.rankdata(np.abs(gains))
    reached = abs(ranks @ np.sign(gains))
    signs = itertools.product((-1, 1), repeat=len(gains))
    assert found.p_value == pytest.approx(np.mean([abs(ranks @ sign) >= reached for sign in signs]))


@pytest.mark.parametrize("count", [8, 30, 50, 120])
def test_without_ties_signed_ranks_are_those_of_scipy(count):
    gains = np.random.default_rng(count).normal(0.2, 1, count)
    (found,) = wilcoxon(np.column_stack([gains, np.zeros(count)]), "0")
    assert found.p_value == pytest.approx(scipy_stats.wilcoxon(gains, method="exact").pvalue)


def test_the_p_values_of_many_differences_are_close_to_exact_ones():
    gains = np.random.default_rng(0).normal(0.1, 1, 201)
    (many,) = wilcoxon(np.column_stack([gains, np.zeros(201)]), "0")
    assert many.p_value == pytest.approx(scipy_stats.wilcoxon(gains, method="exact").pvalue, rel=0.02)


def test_holm_by_hand():
    """p = .01, .04, .03 → times 3, 1, 2 in rising order, never falling: .03, .06, .06."""
    from skpml.stats import _correct_holm

    assert _correct_holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert _correct_holm([0.5, 0.9]) == pytest.approx([1, 1])


def test_the_control_against_itself_everywhere_equal():
    (found,) = wilcoxon(np.ones((5, 2)), "0")
    assert (found.p_value, found.effect_size, found.n_different) == (1, 0, 0)


def test_wins_ties_and_losses():
    table = pd.DataFrame({"ours": [0.5, 0.7, 0.61, 0.3], "theirs": [0.4, 0.7, 0.6, 0.9]})
    (found,) = win_tie_loss(table, "ours")
    assert (found.wins, found.ties, found.losses) == (2, 1, 1)
    (found,) = win_tie_loss(table, "ours", tolerance=0.011)
    assert (found.wins, found.ties, found.losses) == (1, 2, 1)
    (found,) = win_tie_loss(table, "ours", lower_is_better=True)
    assert (found.wins, found.ties, found.losses) == (1, 1, 2)


@pytest.mark.parametrize("function", [average_ranks, friedman, nemenyi])
def test_missing_cells_are_named(function):
    table = DEMSAR.rename(index={3: "cmc", 5: "iris"}).copy()
    table.loc["cmc", "C4.5+m"] = np.nan
    table.loc["iris", "C4.5"] = np.nan
    with pytest.raises(ValueError, match=r"2 missing values: C4.5\+m on cmc, C4.5 on iris"):
        function(table)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: friedman([1.0, 2.0]), "one row per data set"),
        (lambda: friedman([[1.0, 2.0]]), "at least 2 data sets"),
        (lambda: friedman(np.eye(3), methods=["a", "b"]), "2 names for 3 columns"),
        (lambda: friedman(np.eye(3), methods=["a", "b", "a"]), "'a' has more than one column"),
        (lambda: friedman(np.eye(3), alpha=5), "alpha must be between 0 and 1"),
        (lambda: wilcoxon(np.eye(3), "ours"), "the control 'ours' is not a column; the columns are 0, 1, 2"),
    ],
)
def test_bad_tables(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_one_data_set_has_ranks_and_counts_but_no_test():
    table = pd.DataFrame([[0.3, 0.1, 0.1]], columns=["a", "b", "c"])
    assert average_ranks(table) == {"a": 1.0, "b": 2.5, "c": 2.5}
    assert [(each.wins, each.ties, each.losses) for each in win_tie_loss(table, "b")] == [
        (0, 0, 1),
        (0, 1, 0),
    ]
    for function in (friedman, nemenyi):
        with pytest.raises(ValueError, match="at least 2 data sets"):
            function(table)


def test_rounding_errors_break_no_tie() -> None:
    """Means of the same numbers in another order differ in the last bit."""
    one, other = sum([0.1, 0.2, 0.3]) / 3, sum([0.3, 0.2, 0.1]) / 3
    assert one != other
    table = [[one, other, 0.5], [other, one, 0.1], [0.4, 0.3, 0.2]]
    ranks = average_ranks(table, methods=["a", "b", "c"])
    assert ranks == {"a": (2.5 + 1.5 + 1) / 3, "b": (2.5 + 1.5 + 2) / 3, "c": (1 + 3 + 3) / 3}
    exact = [[0.2, 0.2, 0.5], [0.2, 0.2, 0.1], [0.4, 0.3, 0.2]]
    assert friedman(table).f_statistic == friedman(exact).f_statistic
    (counts, _) = win_tie_loss(table, "a", methods=["a", "b", "c"])
    assert (counts.wins, counts.ties, counts.losses) == (1, 2, 0)
