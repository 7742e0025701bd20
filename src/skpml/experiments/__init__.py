"""Experiments: from a suite to runs, from runs to records, from records to tables, figures and a report."""

from skpml.experiments._execute import FoldData, execute
from skpml.experiments._protocol import MethodEntry, Suite, SuiteError, Tuning, load_suite, shipped_suites
from skpml.experiments._report import render_report
from skpml.experiments._results import Results, collect_plan
from skpml.experiments._runner import Outcome, Progress, WorkerDied, run_plan
from skpml.experiments._runs import Plan, PlannedRun, Run, expand
from skpml.experiments._store import Store

__all__ = [
    "FoldData",
    "MethodEntry",
    "Outcome",
    "Plan",
    "PlannedRun",
    "Progress",
    "Results",
    "Run",
    "Store",
    "Suite",
    "SuiteError",
    "Tuning",
    "WorkerDied",
    "collect_plan",
    "execute",
    "expand",
    "load_suite",
    "render_report",
    "run_plan",
    "shipped_suites",
]
