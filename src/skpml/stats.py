"""Statistical comparison of methods over data sets: ranks and tests.

Input is a wide table: one row per data set, one column per method, no missing values. Rank 1 is best; equal results
share the mean of their ranks. Results are equal if they agree to 12 decimals, so that rounding errors break no tie.
P-values are exact where the data sets are few; the other distributions are those of SciPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import gammaln

from skpml._docstrings import fill_docstring

__all__ = [
    "Comparison",
    "FriedmanResult",
    "NemenyiResult",
    "WinTieLoss",
    "average_ranks",
    "friedman",
    "nemenyi",
    "wilcoxon",
    "win_tie_loss",
]

# Results are fractions of few decimals, whose sums round differently: beyond this many decimals they are equal.
_DECIMALS = 12
# With at most this many orders of the methods, the p-value is counted; else the distribution of F is used.
_MOST_ORDERS = 1e6
# With more differences than these, Wilcoxon's p-value is that of the normal distribution, which is then close.
_MOST_SIGNS = 200


@dataclass(frozen=True, kw_only=True)
class FriedmanResult:
    """Result of Friedman's test of whether the methods differ.

    Parameters
    ----------
    average_ranks : dict of method to float
        1 is best.
    chi2 : float
        Friedman's statistic, without a correction for ties, as in Demšar (2006).
    f_statistic : float
        Iman and Davenport's less conservative form, F with k − 1 and (k − 1)(N − 1) degrees of freedom.
    p_value : float
        From the distribution of F, an approximation for many data sets; if `exact`, counted over all orders of the
        methods on each data set.
    exact : bool
        Whether `p_value` was counted: for few data sets and methods, and if F is infinite.
    critical_value : float
        The quantile of F at the level `alpha`.
    alpha : float
        Level of the test.
    n_datasets, n_methods : int
        N and k.
    """

    average_ranks: dict[str, float]
    chi2: float
    f_statistic: float
    p_value: float
    exact: bool
    critical_value: float
    alpha: float
    n_datasets: int
    n_methods: int

    @property
    def significant(self) -> bool:
        """Whether the methods differ at the level ``alpha``."""
        return self.p_value < self.alpha


@dataclass(frozen=True, kw_only=True)
class NemenyiResult:
    """Result of Nemenyi's test of all pairs of methods.

    Parameters
    ----------
    average_ranks : dict of method to float
        1 is best.
    critical_difference : float
        Methods whose average ranks differ by more differ at the level `alpha`.
    p_values : dict of (method, method) to float
        For each pair, in both orders.
    alpha : float
        Level of the test.
    n_datasets, n_methods : int
        N and k.
    """

    average_ranks: dict[str, float]
    critical_difference: float
    p_values: dict[tuple[str, str], float]
    alpha: float
    n_datasets: int
    n_methods: int


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Result of Wilcoxon's signed-rank test of the control against another method.

    Parameters
    ----------
    method : str
        The other method.
    statistic : float
        The smaller of the two rank sums.
    p_value : float
        Two-sided; 1 if the two are equal on every data set.
    holm_p_value : float
        Corrected for the number of methods that the control is compared with.
    effect_size : float
        Matched-pairs rank-biserial correlation: 1 if the control is better on every data set, −1 if it is worse.
    n_different : int
        Number of data sets on which the two differ; the others are not used.
    """

    method: str
    statistic: float
    p_value: float
    holm_p_value: float
    effect_size: float
    n_different: int


@dataclass(frozen=True, kw_only=True)
class WinTieLoss:
    """Number of data sets on which the control is better than, equal to and worse than another method.

    Parameters
    ----------
    method : str
        The other method.
    wins, ties, losses : int
        Number of data sets.
    """

    method: str
    wins: int
    ties: int
    losses: int


@fill_docstring
def average_ranks(
    table: Any, *, lower_is_better: bool = False, methods: Sequence[str] | None = None
) -> dict[str, float]:
    """Compute the mean rank of each method over the data sets; 1 is best.

    Parameters
    ----------
    %(results_table)s
    %(results_options)s

    Returns
    -------
    dict of method to float
        In the order of the columns.

    Examples
    --------
    >>> from skpml.stats import average_ranks
    >>> average_ranks([[0.1, 0.2, 0.2], [0.3, 0.4, 0.5]], lower_is_better=True, methods=["a", "b", "c"])
    {'a': 1.0, 'b': 2.25, 'c': 2.75}
    """
    return _rank_rows(table, lower_is_better, methods)[1]


@fill_docstring
def friedman(
    table: Any, *, lower_is_better: bool = False, methods: Sequence[str] | None = None, alpha: float = 0.05
) -> FriedmanResult:
    """Test whether the methods differ, by Friedman's test and Iman and Davenport's F.

    ``χ² = 12N / (k(k+1)) · (Σ_j R_j² − k(k+1)²/4)`` and ``F = (N−1)χ² / (N(k−1) − χ²)``.

    Parameters
    ----------
    %(results_table)s
    %(results_options)s
    alpha : float, default=0.05
        Level of the test.

    Returns
    -------
    FriedmanResult
        Statistics and p-value.
    """
    ranks, means = _rank_rows(table, lower_is_better, methods, n_rows=2)
    n, k = ranks.shape
    chi2 = 12 * n / (k * (k + 1)) * (np.sum(ranks.mean(axis=0) ** 2) - k * (k + 1) ** 2 / 4)
    room = n * (k - 1) - chi2
    # If all data sets have the same order, the statistic is infinite.
    f_statistic = (n - 1) * chi2 / room if room > 1e-12 * n * k else np.inf
    freedom = (k - 1, (k - 1) * (n - 1))
    counted = _count_p_value(ranks)
    return FriedmanResult(
        average_ranks=means,
        chi2=float(chi2),
        f_statistic=float(f_statistic),
        p_value=float(stats.f.sf(f_statistic, *freedom)) if counted is None else counted,
        exact=counted is not None,
        critical_value=float(stats.f.ppf(1 - _check_level(alpha), *freedom)),
        alpha=alpha,
        n_datasets=n,
        n_methods=k,
    )


def _count_p_value(ranks: NDArray[np.float64]) -> float | None:
    """Share of all permutations of the ranks within rows whose rank sums spread as much; None if there are too many.

    One row can keep its order, since only relative orders matter. If all rows have the same order without ties, no
    permutation spreads more, and the share is ``(k!)^(1−n)``.
    """
    n, k = ranks.shape
    if (ranks == ranks[0]).all() and len(np.unique(ranks[0])) == k:
        return float(np.exp((1 - n) * gammaln(k + 1)))
    if (n - 1) * gammaln(k + 1) > np.log(_MOST_ORDERS):
        return None
    # Twice the ranks are integers, so that sums can be compared exactly.
    doubled = np.rint(2 * ranks).astype(np.int64)
    sums, weights = doubled[:1], np.ones(1, dtype=np.float64)
    for row in doubled[1:]:
        orders = np.array(list(permutations(row)))
        sums = (sums[:, None] + orders).reshape(-1, k)
        sums, place = np.unique(sums, axis=0, return_inverse=True)
        weights = np.bincount(place.ravel(), weights=np.repeat(weights, len(orders))).astype(np.float64)
    spread = (sums**2).sum(axis=1)
    return float(weights[spread >= (doubled.sum(axis=0) ** 2).sum()].sum() / weights.sum())


@fill_docstring
def nemenyi(
    table: Any, *, lower_is_better: bool = False, methods: Sequence[str] | None = None, alpha: float = 0.05
) -> NemenyiResult:
    """Test all pairs of methods by their average ranks and the studentized range.

    ``CD = q √(k(k+1) / 6N)`` where q is the quantile of the studentized range of k groups, divided by √2.

    Parameters
    ----------
    %(results_table)s
    %(results_options)s
    alpha : float, default=0.05
        Level of the test.

    Returns
    -------
    NemenyiResult
        Critical difference and p-values.
    """
    ranks, means = _rank_rows(table, lower_is_better, methods, n_rows=2)
    n, k = ranks.shape
    unit = np.sqrt(k * (k + 1) / (6 * n))
    p_values = {}
    for one, other in combinations(means, 2):
        distance = abs(means[one] - means[other]) / unit * np.sqrt(2)
        p = float(stats.studentized_range.sf(distance, k, np.inf))
        p_values[one, other] = p_values[other, one] = p
    quantile = stats.studentized_range.ppf(1 - _check_level(alpha), k, np.inf) / np.sqrt(2)
    return NemenyiResult(
        average_ranks=means,
        critical_difference=float(quantile * unit),
        p_values=p_values,
        alpha=alpha,
        n_datasets=n,
        n_methods=k,
    )


@fill_docstring
def wilcoxon(
    table: Any, control: str, *, lower_is_better: bool = False, methods: Sequence[str] | None = None
) -> list[Comparison]:
    """Compare the control with each other method by signed-rank tests with Holm's correction.

    P-values are two-sided and, with up to 200 differences, those of all signs of the ranks, ties included.

    Parameters
    ----------
    %(results_table)s
    control : str
        Name of a column.
    %(results_options)s

    Returns
    -------
    list of Comparison
        In the order of the columns.
    """
    gains = _compute_gains(table, control, lower_is_better, methods)
    tests = [_test_signed_ranks(gain) for gain in gains.values()]
    corrected = _correct_holm([test["p_value"] for test in tests])
    return [
        Comparison(method=name, holm_p_value=holm, n_different=int(np.sum(gains[name] != 0)), **test)
        for name, test, holm in zip(gains, tests, corrected, strict=True)
    ]


@fill_docstring
def win_tie_loss(
    table: Any,
    control: str,
    *,
    lower_is_better: bool = False,
    methods: Sequence[str] | None = None,
    tolerance: float = 0.0,
) -> list[WinTieLoss]:
    """Count the data sets on which the control is better than, equal to and worse than each other method.

    Parameters
    ----------
    %(results_table)s
    control : str
        Name of a column.
    %(results_options)s
    tolerance : float, default=0
        Results that differ by at most this much are a tie.

    Returns
    -------
    list of WinTieLoss
        In the order of the columns.
    """
    return [
        WinTieLoss(
            method=name,
            wins=int((gain > tolerance).sum()),
            ties=int((np.abs(gain) <= tolerance).sum()),
            losses=int((gain < -tolerance).sum()),
        )
        for name, gain in _compute_gains(table, control, lower_is_better, methods).items()
    ]


def _check_table(
    table: Any, methods: Sequence[str] | None, n_rows: int = 1
) -> tuple[NDArray[np.float64], list[str]]:
    """Return values, without rounding errors, and column names of a table without missing values."""
    values = np.asarray(table, dtype=np.float64).round(_DECIMALS)
    if values.ndim != 2:
        raise ValueError(
            f"expected one row per data set and one column per method, got shape {values.shape}."
        )
    is_frame = hasattr(table, "columns")
    columns = methods if methods is not None else table.columns if is_frame else range(values.shape[1])
    names = [str(name) for name in columns]
    rows = table.index if is_frame else range(values.shape[0])
    if len(names) != values.shape[1]:
        raise ValueError(f"{len(names)} names for {values.shape[1]} columns.")
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"the method {repeated[0]!r} has more than one column.")
    missing = np.argwhere(~np.isfinite(values))
    if len(missing):
        cells = ", ".join(f"{names[column]} on {rows[row]}" for row, column in missing[:10])
        more = f" and {len(missing) - 10} more" if len(missing) > 10 else ""
        raise ValueError(
            f"the table has {len(missing)} missing values: {cells}{more}. Remove these data sets or methods, or run them."
        )
    if values.shape[0] < n_rows or values.shape[1] < 2:
        raise ValueError(f"at least {n_rows} data sets and 2 methods are needed, got shape {values.shape}.")
    return values, names


def _check_level(alpha: float) -> float:
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be between 0 and 1, got {alpha!r}.")
    return alpha


def _rank_rows(
    table: Any, lower_is_better: bool, methods: Sequence[str] | None, n_rows: int = 1
) -> tuple[NDArray[np.float64], dict[str, float]]:
    """Return the ranks on each data set, and the mean rank of each method."""
    values, names = _check_table(table, methods, n_rows)
    ranks = np.asarray(stats.rankdata(values if lower_is_better else -values, axis=1))
    return ranks, dict(zip(names, ranks.mean(axis=0).tolist(), strict=True))


def _compute_gains(
    table: Any, control: str, lower_is_better: bool, methods: Sequence[str] | None
) -> dict[str, NDArray[np.float64]]:
    """Return by how much the control is better than each other method on each data set."""
    values, names = _check_table(table, methods)
    if control not in names:
        raise ValueError(f"the control {control!r} is not a column; the columns are {', '.join(names)}.")
    gains = values[:, [names.index(control)]] - values
    # Equal differences of different results are a tie too.
    gains = np.round(-gains if lower_is_better else gains, _DECIMALS)
    return {name: gain for name, gain in zip(names, gains.T, strict=True) if name != control}


def _test_signed_ranks(gain: NDArray[np.float64]) -> dict[str, float]:
    """Compute statistic, p-value and rank-biserial correlation, without the data sets that are equal."""
    different = gain[gain != 0]
    if not len(different):
        return {"statistic": 0.0, "p_value": 1.0, "effect_size": 0.0}
    ranks = stats.rankdata(np.abs(different))
    effect = (ranks * np.sign(different)).sum() / ranks.sum()
    statistic = min(ranks[different > 0].sum(), ranks[different < 0].sum())
    if len(different) > _MOST_SIGNS:
        p_value = stats.wilcoxon(different).pvalue
    else:
        p_value = min(1.0, 2 * _sum_tail(ranks, statistic))
    return {"statistic": float(statistic), "p_value": float(p_value), "effect_size": float(effect)}


def _sum_tail(ranks: NDArray[np.float64], limit: float) -> float:
    """Return the probability that the ranks with positive sign add up to at most the limit, if all signs are as likely.

    Also with ties, for which versions of SciPy use different approximations that are far off where differences are few.
    """
    # Ranks of ties are halves.
    steps = np.rint(2 * ranks).astype(int)
    probability = np.zeros(steps.sum() + 1)
    probability[0] = 1.0
    for step in steps:
        probability[step:] += probability[:-step].copy()
        probability /= 2
    return float(probability[: round(2 * limit) + 1].sum())


def _correct_holm(p_values: list[float]) -> list[float]:
    """Apply Holm's step-down correction: the j-th smallest times the number of remaining tests, never decreasing."""
    order = np.argsort(p_values, kind="stable")
    stepped = np.asarray(p_values)[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(stepped), 1)
    return corrected.tolist()
