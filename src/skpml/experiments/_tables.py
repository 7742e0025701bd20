"""Records of a suite as tables: results of each metric, ranks and tests, the noise gap, time and memory.

Everything here follows from the metrics of the records alone, so the same records give the same bytes; only
:func:`costs` looks at the clock.
"""

from __future__ import annotations

from skpml.experiments._formats import (
    ranks_csv,
    ranks_latex,
    ranks_markdown,
    sweeps_csv,
    table_csv,
    table_latex,
    table_markdown,
)
from skpml.experiments._metric_tables import Column, Entry, MetricTable, metric_table
from skpml.experiments._pairs import PairComparison, compare_methods
from skpml.experiments._ranking import Ranking, rank_methods
from skpml.experiments._results import Cell, Results, collect
from skpml.experiments._summaries import Cost, NoiseGap, costs, noise_gap

__all__ = [
    "Cell",
    "Column",
    "Cost",
    "Entry",
    "MetricTable",
    "NoiseGap",
    "PairComparison",
    "Ranking",
    "Results",
    "collect",
    "compare_methods",
    "costs",
    "metric_table",
    "noise_gap",
    "rank_methods",
    "ranks_csv",
    "ranks_latex",
    "ranks_markdown",
    "sweeps_csv",
    "table_csv",
    "table_latex",
    "table_markdown",
]
