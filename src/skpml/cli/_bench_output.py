"""Output of ``skpml bench``: plans, progress, failures and comparisons."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.text import Text

from skpml import experiments
from skpml.cli._console import make_table, progress_bar, say, show_table, show_warning, stderr_console
from skpml.experiments import Confirmation, Outcome, PairComparison, Plan, Progress, Run

_FAILURES_SHOWN = 10
_SECONDS_BETWEEN_LINES = 60.0


def warn_of_absent(plan: Plan) -> None:
    """Print which configurations are skipped because their data are absent."""
    total = len({entry.run.configuration for entry in plan.entries} | set(plan.absent))
    for name, reason in plan.absent.items():
        show_warning(f"skipped {name}: {reason}")
    if plan.absent:
        show_warning(f"{len(plan.absent)} of {total} configurations are absent")


def show_plan(plan: Plan, folder: Path, jobs: int, retry_failed: bool) -> None:
    """Print the runs of each configuration and method, which results are of older code, and the expected time."""
    store = experiments.Store(folder)
    status = experiments.find_status(plan, store)
    to_do = {run for run, state in status.states.items() if state in ("missing", "older")}
    to_do |= {run for run, state in status.states.items() if state == "failed" and retry_failed}
    states = {run: "to do" if run in to_do else state for run, state in status.states.items()}
    timing = experiments.Timing(store.records())
    cells: dict[tuple[str, str], dict[Run, str]] = defaultdict(dict)
    for entry in plan.entries:
        if entry.run in states:
            cells[entry.run.configuration, entry.label][entry.run] = states[entry.run]
    numbers = ("runs", "done", "failed", "to do", "remaining time")
    table = make_table("configuration", "method", *numbers, right=numbers)
    for (configuration, label), runs in cells.items():
        found = list(runs.values())
        waiting = [run for run in runs if run in to_do]
        counts = (len(runs), *(found.count(state) for state in ("done", "failed", "to do")))
        expected = str(timing.estimate(waiting)) if waiting else ""
        table.add_row(configuration, label, *map(str, counts), expected)
    for configuration in status.absent:
        table.add_row(configuration, "absent", "0", "", "", "", "")
    show_table(table)
    warn_of_absent(plan)
    estimate = timing.estimate(to_do)
    share = experiments.Estimate(estimate.seconds / jobs, estimate.unknown)
    processes = "one process" if jobs == 1 else f"{jobs} processes"
    found = list(states.values())
    failed = f" {found.count('failed')} failed," if "failed" in found else ""
    remaining = f"; remaining time with {processes}: {share}" if to_do else ""
    say(f"\n{found.count('done')} of {len(found)} runs are done,{failed} {len(to_do)} to do{remaining}.")
    if n_older := status.counts["older"]:
        older = {label: counts["older"] for label, counts in status.by_method().items() if counts["older"]}
        listed = ", ".join(f"{label} {count}" for label, count in older.items())
        say(f"{n_older} of them have a result of older code, which is shown until they are done: {listed}.")
    if status.complete:
        say("The suite is complete, and all results are of the present code.")
    if status.n_confirmed:
        say(
            f"{status.n_confirmed} of them were made by older code, and confirmed by other runs of their methods."
        )
    if estimate.unknown:
        say(f"The time of {estimate.unknown} runs is unknown: no similar run has been measured in {folder}.")


def show_confirmations(found: Sequence[Confirmation], folder: Path) -> None:
    """Print how runs that were done again differ, and which results they confirm."""
    if not found:
        say(f"There is no result of older code in {folder}.")
        return
    numbers = ("done again", "largest difference", "confirmed", "still of older code")
    table = make_table("method", *numbers, right=numbers)
    for each in found:
        difference = "failed" if math.isinf(each.largest_difference) else f"{each.largest_difference:.1g}"
        table.add_row(each.label, str(each.n_compared), difference, str(each.n_confirmed), str(each.n_older))
    show_table(table)


def show_outcome(plan: Plan, outcome: Outcome, folder: Path) -> None:
    """Print what a run of a plan did."""
    for path in outcome.set_aside:
        show_warning(f"a file could not be read; its run was repeated, and the file was moved to {path}")
    parts = [f"{len(outcome.executed)} runs done in {experiments.format_duration(outcome.seconds)}"]
    parts += [f"{outcome.skipped} already present"] if outcome.skipped else []
    parts += [f"{outcome.elsewhere} done by another process"] if outcome.elsewhere else []
    parts += [f"{outcome.left} omitted because of --limit"] if outcome.left else []
    say(f"{plan.suite.name}: {', '.join(parts)}. Results are in {folder}.")
    warn_of_mixed_data(plan, folder)
    show_failures(plan, outcome.failed, folder)


def warn_of_mixed_data(plan: Plan, folder: Path) -> None:
    """Warn of configurations whose results come from different data."""
    keys = (entry.run.key for entry in plan.entries)
    for name in experiments.find_mixed_data(experiments.Store(folder).records(keys)):
        show_warning(
            f"the results on {name} come from different data with that name; use a new folder of results, or remove "
            f"those of {name} from {folder / 'runs'}"
        )


def show_failures(plan: Plan, failed: list[dict[str, Any]], folder: Path) -> None:
    """Print one line for each kind of failure of a method, with an example."""
    if not failed:
        return
    show_warning(
        f"{len(failed)} runs failed; --retry-failed repeats them, 'skpml bench status --failed' shows tracebacks:"
    )
    groups = _group(plan, failed)
    for (label, kind, message), records in list(groups.items())[:_FAILURES_SHOWN]:
        others = f" and {len(records) - 1} more" if len(records) > 1 else ""
        path = folder / "runs" / f"{records[0]['key']}.json"
        show_warning(
            f"{label}: {kind}: {message} ({experiments.place_of(records[0]['run'])}{others}; {path})"
        )
    if len(groups) > _FAILURES_SHOWN:
        show_warning(f"and {len(groups) - _FAILURES_SHOWN} other errors")


def show_tracebacks(plan: Plan, failed: list[dict[str, Any]]) -> None:
    """Print the traceback of the first run of each kind of failure."""
    for (label, _, _), records in _group(plan, failed).items():
        others = f" and {len(records) - 1} more" if len(records) > 1 else ""
        traceback = records[0]["error"]["traceback"].rstrip()
        say(f"{label} on {experiments.place_of(records[0]['run'])}{others}:\n\n{traceback}\n")
    say(f"{len(failed)} of {len(plan.runs)} runs failed." if failed else "No run failed.")


def _group(plan: Plan, failed: list[dict[str, Any]]) -> dict[tuple[str, str, str], Any]:
    records = {record["key"]: record for record in failed}
    entries = [entry for entry in plan.entries if entry.run.key in records]
    return experiments.group_failures((entry.label, records[entry.run.key]) for entry in entries)


@contextmanager
def progress_of(name: str) -> Iterator[Callable[[Progress], None]]:
    """Show a bar on a terminal, else print a line now and then."""
    console, last_line = stderr_console(), time.monotonic()
    with progress_bar(name) as show:

        def update(progress: Progress) -> None:
            nonlocal last_line
            remaining = "nothing" if progress.done == progress.total else str(progress.remaining)
            remaining += f" ({progress.failed} failed)" if progress.failed else ""
            line = f"{name}: {progress.done} of {progress.total} runs, remaining: {remaining}"
            show(progress.done, progress.total, escape(line))
            if not console.is_terminal and time.monotonic() - last_line >= _SECONDS_BETWEEN_LINES:
                last_line = time.monotonic()
                console.print(Text(line), soft_wrap=True)

        yield update


def show_comparison(pairs: list[PairComparison]) -> None:
    """Print wins, ties, losses and tests of two methods, and the difference on each configuration."""
    one, other = pairs[0].one, pairs[0].other
    titles = [
        f"{experiments.metric_title(pair.metric)} {'↑' if pair.greater_is_better else '↓'}" for pair in pairs
    ]
    numbers = ("N", "wins", "ties", "losses", "p (Wilcoxon)", "effect size")
    summary = make_table("metric", *numbers, right=numbers)
    for title, pair in zip(titles, pairs, strict=True):
        counts, test = (len(pair.values), pair.counts.wins, pair.counts.ties, pair.counts.losses), pair.test
        p_value = "–" if test is None else experiments.format_p_value(test.p_value)
        effect = "–" if test is None else experiments.format_number(test.effect_size, 2)
        summary.add_row(title, *map(str, counts), p_value, effect)
    say(f"{one} against {other}: configurations won, tied and lost\n")
    show_table(summary)
    say(f"\nDifference {one} − {other} on each configuration\n")
    details = make_table("configuration", *titles, right=titles)
    differences = [pair.values[one] - pair.values[other] for pair in pairs]
    for name in dict.fromkeys(name for values in differences for name in values.index):
        row = (experiments.format_number(values.get(name, float("nan")), 4) for values in differences)
        details.add_row(name, *row)
    show_table(details)
    left_out = {name: why for pair in pairs for name, why in pair.left_out.items()}
    if left_out:
        say("\nLeft out: " + "; ".join(f"{name} ({why})" for name, why in left_out.items()) + ".")
