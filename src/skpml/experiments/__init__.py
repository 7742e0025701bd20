"""Reproducible experiments: suites, runs, records, tables and reports."""

from skpml.experiments._confirm import Confirmation, confirm_results  # noqa: F401
from skpml.experiments._execute import PeakMemory  # noqa: F401
from skpml.experiments._export import (  # noqa: F401
    FORMATS,
    export_tables,
    format_number,
    format_p_value,
)
from skpml.experiments._metrics import greater_is_better, metric_title  # noqa: F401
from skpml.experiments._ranking import (  # noqa: F401
    PairComparison,
    compare_methods,
    measure_costs,
    noise_gap,
    rank_methods,
)
from skpml.experiments._report import is_report, write_report  # noqa: F401
from skpml.experiments._results import (  # noqa: F401
    Results,
    collect,
    find_mixed_data,
    group_failures,
    place_of,
    read_published,
)
from skpml.experiments._runner import (  # noqa: F401
    Estimate,
    Outcome,
    Progress,
    Timing,
    check_methods,
    check_names,
    format_duration,
    run_plan,
)
from skpml.experiments._runs import Plan, Run, expand  # noqa: F401
from skpml.experiments._status import Status, find_status  # noqa: F401
from skpml.experiments._store import PACK_NAME, Store, merge_folders, pack, task_of  # noqa: F401
from skpml.experiments._suite import Suite, SuiteError, load_suite, shipped_suites
from skpml.experiments._worker import WorkerDied

__all__ = [
    "Plan",
    "Results",
    "Store",
    "Suite",
    "SuiteError",
    "WorkerDied",
    "collect",
    "compare_methods",
    "confirm_results",
    "expand",
    "export_tables",
    "load_suite",
    "merge_folders",
    "rank_methods",
    "read_published",
    "run_plan",
    "shipped_suites",
    "write_report",
]
