"""Are the differences in a table of results more than chance? Tests over data sets, as the field reports them.

Every function takes a wide table: a row a data set, a column a method, every cell filled. Ranks start at 1 for the best;
equal results share the mean of their ranks. The distributions are SciPy's.
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

# Orders of the methods that are counted one by one; beyond, the distribution of F has to do.
_MOST_ORDERS = 1e6


@dataclass(frozen=True, kw_only=True)
class FriedmanResult:
    """Do the methods differ at all?

    Attributes
    ----------
    average_ranks : dict of method to float
    chi2 : float
        Friedman's statistic, without a correction for ties, as in Demšar (2006).
    f_statistic : float
        Iman and Davenport's less cautious form of it, F with k − 1 and (k − 1)(N − 1) degrees of freedom.
    p_value : float
        How often chance alone gives ranks that differ as much. From the distribution of F, which is an approximation
        for many data sets; where ``exact``, counted over all orders of the methods on each data set.
    exact : bool
        Whether ``p_value`` was counted: it is for few data sets and methods, and where F is infinite.
    critical_value : float
        What ``f_statistic`` must exceed at the level ``alpha``, by the distribution of F.
    alpha : float
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
    """Which methods differ from which?

    Attributes
    ----------
    average_ranks : dict of method to float
    critical_difference : float
        Average ranks that differ by more differ at the level ``alpha``.
    p_values : dict of (method, method) to float
        For each pair, in both orders.
    alpha : float
    n_datasets, n_methods : int
    """

    average_ranks: dict[str, float]
    critical_difference: float
    p_values: dict[tuple[str, str], float]
    alpha: float
    n_datasets: int
    n_methods: int


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The control method against another, over data sets: Wilcoxon's signed-rank test.

    Attributes
    ----------
    method : str
        The other method.
    statistic : float
        The smaller of the two rank sums.
    p_value : float
        Two-sided; 1 where no data set tells the two apart.
    holm_p_value : float
        Corrected for the number of methods the control is compared with.
    effect_size : float
        Matched-pairs rank-biserial correlation: 1 where the control is better on every data set, −1 where it is worse.
    n_different : int
        Data sets on which the two differ; the others are left out.
    """

    method: str
    statistic: float
    p_value: float
    holm_p_value: float
    effect_size: float
    n_different: int


@dataclass(frozen=True, kw_only=True)
class WinTieLoss:
    """On how many data sets the control is better than another method, as good, and worse."""

    method: str
    wins: int
    ties: int
    losses: int


def average_ranks(
    table: Any, *, lower_is_better: bool = False, methods: Sequence[str] | None = None
) -> dict[str, float]:
    """Mean rank of each method over the data sets; 1 is best.

    Parameters
    ----------
    table : data frame, or array of shape (N, k)
        A row a data set, a column a method.
    lower_is_better : bool, default=False
        True for losses.
    methods : sequence of str, optional
        Names of the columns of an array; by default those of the data frame, or their numbers.

    Examples
    --------
    >>> from skpml.stats import average_ranks
    >>> average_ranks([[0.1, 0.2, 0.2], [0.3, 0.4, 0.5]], lower_is_better=True, methods=["a", "b", "c"])
    {'a': 1.0, 'b': 2.25, 'c': 2.75}
    """
    values, names = _checked(table, methods)
    return _average_ranks(values, names, lower_is_better)


def friedman(
    table: Any, *, lower_is_better: bool = False, methods: Sequence[str] | None = None, alpha: float = 0.05
) -> FriedmanResult:
    """Friedman's test and Iman and Davenport's F, over average ranks.

    ``χ² = 12N / (k(k+1)) · (Σ_j R_j² − k(k+1)²/4)`` and ``F = (N−1)χ² / (N(k−1) − χ²)``.

    Parameters
    ----------
    table, lower_is_better, methods
        As in :func:`average_ranks`; at least two data sets and two methods.
    alpha : float, default=0.05
        Level of the critical value.
    """
    values, names = _checked(table, methods)
    ranks = stats.rankdata(values if lower_is_better else -values, axis=1)
    n, k = ranks.shape
    chi2 = 12 * n / (k * (k + 1)) * (np.sum(ranks.mean(axis=0) ** 2) - k * (k + 1) ** 2 / 4)
    room = n * (k - 1) - chi2
    # All data sets agree on the order: the statistic has no upper end.
    f_statistic = (n - 1) * chi2 / room if room > 1e-12 * n * k else np.inf
    freedom = (k - 1, (k - 1) * (n - 1))
    counted = _counted_p_value(ranks)
    return FriedmanResult(
        average_ranks=dict(zip(names, ranks.mean(axis=0).tolist(), strict=True)),
        chi2=float(chi2),
        f_statistic=float(f_statistic),
        p_value=float(stats.f.sf(f_statistic, *freedom)) if counted is None else counted,
        exact=counted is not None,
        critical_value=float(stats.f.ppf(1 - _level(alpha), *freedom)),
        alpha=alpha,
        n_datasets=n,
        n_methods=k,
    )


def _counted_p_value(ranks: NDArray[np.float64]) -> float | None:
    """Share of all ways to reorder the ranks of each data set whose rank sums spread as much; None if there are too many.

    One data set may keep its order, since only orders relative to each other count. Where all data sets have the same
    order without ties, nothing spreads more, and the share is ``(k!)^(1−n)`` without counting.
    """
    n, k = ranks.shape
    if (ranks == ranks[0]).all() and len(np.unique(ranks[0])) == k:
        return float(np.exp((1 - n) * gammaln(k + 1)))
    if (n - 1) * gammaln(k + 1) > np.log(_MOST_ORDERS):
        return None
    # Twice the ranks are whole numbers, so that equal sums are equal.
    doubled = np.rint(2 * ranks).astype(np.int64)
    sums, weights = doubled[:1], np.ones(1, dtype=np.float64)
    for row in doubled[1:]:
        orders = np.array(list(permutations(row)))
        sums = (sums[:, None] + orders).reshape(-1, k)
        sums, place = np.unique(sums, axis=0, return_inverse=True)
        weights = np.bincount(place.ravel(), weights=np.repeat(weights, len(orders))).astype(np.float64)
    spread = (sums**2).sum(axis=1)
    return float(weights[spread >= (doubled.sum(axis=0) ** 2).sum()].sum() / weights.sum())


def nemenyi(
    table: Any, *, lower_is_better: bool = False, methods: Sequence[str] | None = None, alpha: float = 0.05
) -> NemenyiResult:
    """Nemenyi's test of all pairs: the difference of average ranks against the studentised range.

    ``CD = q √(k(k+1) / 6N)`` with q the studentised range of k groups, divided by √2.

    Parameters
    ----------
    table, lower_is_better, methods, alpha
        As in :func:`friedman`.
    """
    values, names = _checked(table, methods)
    ranks = _average_ranks(values, names, lower_is_better)
    n, k = values.shape
    unit = np.sqrt(k * (k + 1) / (6 * n))
    p_values = {}
    for one, other in combinations(names, 2):
        distance = abs(ranks[one] - ranks[other]) / unit * np.sqrt(2)
        p = float(stats.studentized_range.sf(distance, k, np.inf))
        p_values[one, other] = p_values[other, one] = p
    quantile = stats.studentized_range.ppf(1 - _level(alpha), k, np.inf) / np.sqrt(2)
    return NemenyiResult(
        average_ranks=ranks,
        critical_difference=float(quantile * unit),
        p_values=p_values,
        alpha=alpha,
        n_datasets=n,
        n_methods=k,
    )


def wilcoxon(
    table: Any, control: str, *, lower_is_better: bool = False, methods: Sequence[str] | None = None
) -> list[Comparison]:
    """The control against every other method: signed-rank tests with Holm's correction, and effect sizes.

    Parameters
    ----------
    table, lower_is_better, methods
        As in :func:`average_ranks`.
    control : str
        Name of a column.

    Returns
    -------
    list of Comparison
        In the order of the columns.
    """
    values, names = _checked(table, methods)
    others, gains = _gains(values, names, control, lower_is_better)
    raw = [_signed_ranks(gain) for gain in gains.T]
    corrected = _holm([p_value for _, p_value, _ in raw])
    return [
        Comparison(
            method=name,
            statistic=statistic,
            p_value=p_value,
            holm_p_value=holm,
            effect_size=effect,
            n_different=int(np.count_nonzero(gain)),
        )
        for name, (statistic, p_value, effect), holm, gain in zip(
            others, raw, corrected, gains.T, strict=True
        )
    ]


def win_tie_loss(
    table: Any,
    control: str,
    *,
    lower_is_better: bool = False,
    methods: Sequence[str] | None = None,
    tolerance: float = 0.0,
) -> list[WinTieLoss]:
    """On how many data sets the control is better than each other method, as good, and worse.

    Parameters
    ----------
    table, control, lower_is_better, methods
        As in :func:`wilcoxon`.
    tolerance : float, default=0
        Results that differ by no more are a tie.
    """
    values, names = _checked(table, methods)
    others, gains = _gains(values, names, control, lower_is_better)
    return [
        WinTieLoss(
            method=name,
            wins=int((gain > tolerance).sum()),
            ties=int((np.abs(gain) <= tolerance).sum()),
            losses=int((gain < -tolerance).sum()),
        )
        for name, gain in zip(others, gains.T, strict=True)
    ]


def _checked(table: Any, methods: Sequence[str] | None) -> tuple[NDArray[np.float64], list[str]]:
    """Values and column names; a table with a hole is refused, with the holes named."""
    values = np.asarray(table, dtype=np.float64)
    if values.ndim != 2:
        raise ValueError(
            f"a table of results has a row a data set and a column a method; got shape {values.shape}."
        )
    framed = hasattr(table, "columns")
    columns = methods if methods is not None else table.columns if framed else range(values.shape[1])
    names = [str(name) for name in columns]
    rows = [str(name) for name in (table.index if framed else range(values.shape[0]))]
    if len(names) != values.shape[1]:
        raise ValueError(f"{len(names)} names for {values.shape[1]} columns.")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"the method {twice[0]!r} has more than one column.")
    missing = np.argwhere(~np.isfinite(values))
    if len(missing):
        cells = ", ".join(f"{names[column]} on {rows[row]}" for row, column in missing[:10])
        more = f" and {len(missing) - 10} more" if len(missing) > 10 else ""
        raise ValueError(
            f"the table lacks {len(missing)} results: {cells}{more}. Leave out these data sets or methods, or run them: "
            "a test over data sets needs every cell."
        )
    if values.shape[0] < 2 or values.shape[1] < 2:
        raise ValueError(f"at least two data sets and two methods are needed, got {values.shape}.")
    return values, names


def _level(alpha: float) -> float:
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha!r}.")
    return alpha


def _average_ranks(values: NDArray[np.float64], names: list[str], lower_is_better: bool) -> dict[str, float]:
    ranks = stats.rankdata(values if lower_is_better else -values, axis=1).mean(axis=0)
    return dict(zip(names, ranks.tolist(), strict=True))


def _gains(
    values: NDArray[np.float64], names: list[str], control: str, lower_is_better: bool
) -> tuple[list[str], NDArray[np.float64]]:
    """The other methods, and by how much the control is better than each on each data set."""
    if control not in names:
        raise ValueError(f"the control {control!r} is no column; the columns are {', '.join(names)}.")
    place = names.index(control)
    others = np.delete(values, place, axis=1)
    gains = values[:, [place]] - others
    # Printed results differ by multiples of a thousandth; binary fractions must not break their ties.
    gains = np.round(-gains if lower_is_better else gains, 12)
    return names[:place] + names[place + 1 :], gains


def _signed_ranks(gain: NDArray[np.float64]) -> tuple[float, float, float]:
    """Statistic, p-value and rank-biserial correlation, data sets without a difference left out."""
    told = gain[gain != 0]
    if not len(told):
        return 0.0, 1.0, 0.0
    ranks = stats.rankdata(np.abs(told))
    better, worse = ranks[told > 0].sum(), ranks[told < 0].sum()
    found = stats.wilcoxon(told)
    return float(found.statistic), float(found.pvalue), float((better - worse) / ranks.sum())


def _holm(p_values: list[float]) -> list[float]:
    """Holm's step-down correction: the j-th smallest times the number not yet passed, never falling."""
    order = np.argsort(p_values, kind="stable")
    stepped = np.asarray(p_values)[order] * np.arange(len(p_values), 0, -1)
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(stepped), 1)
    return corrected.tolist()
