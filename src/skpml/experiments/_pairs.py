"""Two methods, head to head."""

from __future__ import annotations

from dataclasses import dataclass

from skpml import stats
from skpml.experiments._metric_tables import Entry, is_whole, metric_table
from skpml.experiments._results import Results

PUBLISHED_PREFIX = "published:"


@dataclass(frozen=True, kw_only=True)
class PairComparison:
    """One method against another by a metric, over the configurations on which both have a whole result.

    Attributes
    ----------
    metric, one, other : str
    greater_is_better : bool
    values : dict of configuration to (float, float)
        Means of the two.
    left_out : dict of configuration to str
        Where one of them has no whole result, and which.
    counts : WinTieLoss
        Of the first method.
    test : Comparison or None
        Wilcoxon's test; None with fewer than two configurations.
    """

    metric: str
    one: str
    other: str
    greater_is_better: bool
    values: dict[str, tuple[float, float]]
    left_out: dict[str, str]
    counts: stats.WinTieLoss
    test: stats.Comparison | None


def compare_methods(results: Results, one: str, other: str, metric: str) -> PairComparison:
    """Wins, ties, losses, Wilcoxon's signed-rank test and its effect size, for two methods of any role.

    Parameters
    ----------
    results : Results
    one, other : str
        Labels of the suite, or ``"published:NAME"`` for what the paper prints of a method.
    metric : str
    """
    if one == other:
        raise ValueError(f"{one!r} is compared with itself; name two methods.")
    columns = {label: _column(results, label, metric) for label in (one, other)}
    values: dict[str, tuple[float, float]] = {}
    left_out: dict[str, str] = {}
    for place, configuration in enumerate(results.suite.configurations):
        first, second = (columns[label][place] for label in (one, other))
        holes = [label for label in (one, other) if not is_whole(columns[label][place])]
        if configuration in results.absent:
            left_out[configuration] = "absent"
        elif holes:
            left_out[configuration] = "no whole result: " + ", ".join(holes)
        else:
            values[configuration] = (first.mean, second.mean)
    better = metric_table(results, metric).greater_is_better
    wide = list(values.values())
    # The statistics want two rows; a single one is counted twice and halved.
    rows = wide if len(wide) > 1 else wide * 2
    counts = stats.WinTieLoss(method=other, wins=0, ties=0, losses=0)
    test = None
    if rows:
        options = {"lower_is_better": not better, "methods": [one, other]}
        (counts,) = stats.win_tie_loss(rows, one, **options)  # type: ignore[arg-type]
        if len(wide) == 1:
            halves = (counts.wins // 2, counts.ties // 2, counts.losses // 2)
            counts = stats.WinTieLoss(method=other, wins=halves[0], ties=halves[1], losses=halves[2])
        else:
            (test,) = stats.wilcoxon(rows, one, **options)  # type: ignore[arg-type]
    return PairComparison(
        metric=metric,
        one=one,
        other=other,
        greater_is_better=better,
        values=values,
        left_out=left_out,
        counts=counts,
        test=test,
    )


def _column(results: Results, label: str, metric: str) -> list[Entry]:
    if label.startswith(PUBLISHED_PREFIX):
        name = label.removeprefix(PUBLISHED_PREFIX)
        table = metric_table(results, metric, with_published=True)
        names = [column.label for column in table.columns if column.role == "published"]
        if name not in names:
            known = f"published are {', '.join(names)}" if names else "nothing is published for this suite"
            raise ValueError(f"there is no published result of {name!r} by {metric}; {known}.")
        return table.column(name, "published")
    if label not in results.labels():
        known = ", ".join(results.labels()) or "none without a sweep"
        raise ValueError(
            f"the suite {results.suite.name} has no method {label!r} to compare; it has {known}."
        )
    return metric_table(results, metric).column(label)
