"""What ``skpml bench`` shows of an experiment: what is to do, how far it is, what came of it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.text import Text

from skpml.cli._console import say, show_table, show_warning, stderr_console

if TYPE_CHECKING:
    from skpml.experiments._runner import Outcome, Progress
    from skpml.experiments._runs import Plan, Run

_FAILURES_SHOWN = 10
_SECONDS_BETWEEN_LINES = 60.0


def warn_of_absent(plan: Plan) -> None:
    total = len({entry.run.configuration for entry in plan.entries}) + len(plan.absent)
    for name, reason in plan.absent.items():
        show_warning(f"{name} is left out: {reason}")
    if plan.absent:
        show_warning(f"{len(plan.absent)} of {total} configurations are absent")


def show_plan(plan: Plan, folder: Path, jobs: int, retry_failed: bool) -> None:
    """A line for each configuration and method with something to do, and the time expected of all."""
    from rich.table import Table

    from skpml.experiments._store import Store
    from skpml.experiments._timing import Estimate, Timing

    store = Store(folder)
    states = {run.key: "to do" for run in plan.runs}
    for record in store.records(store.keys() & set(states)):
        states[record["key"]] = record["status"]
    if retry_failed:
        states = {key: "to do" if state == "failed" else state for key, state in states.items()}
    timing = Timing(store.records())
    cells: dict[tuple[str, str], dict[str, Run]] = defaultdict(dict)
    for entry in plan.entries:
        cells[entry.run.configuration, entry.label][entry.run.key] = entry.run
    table = Table(box=None, pad_edge=False)
    for title in ("configuration", "method", "runs", "done", "failed", "to do", "time to go"):
        table.add_column(title, justify="left" if title in ("configuration", "method") else "right")
    for (configuration, label), runs in cells.items():
        count = {state: sum(states[key] == state for key in runs) for state in ("done", "failed", "to do")}
        waiting = [run for key, run in runs.items() if states[key] == "to do"]
        table.add_row(
            escape(configuration), escape(label), str(len(runs)), *map(str, count.values()),
            str(timing.estimate(waiting)) if waiting else "",
        )  # fmt: skip
    for configuration in plan.absent:
        table.add_row(escape(configuration), "absent", "0", "", "", "", "")
    show_table(table)
    warn_of_absent(plan)
    waiting = [run for run in plan.runs if states[run.key] == "to do"]
    estimate = timing.estimate(waiting)
    share = Estimate(estimate.seconds / jobs, estimate.unknown)
    at_a_time = "one process" if jobs == 1 else f"{jobs} processes"
    done, failed = (sum(state == which for state in states.values()) for which in ("done", "failed"))
    to_go = f"; time to go with {at_a_time}: {share}" if waiting else ""
    with_failed = f" {failed} failed," if failed else ""
    say(f"\n{done} of {len(plan.runs)} runs are done,{with_failed} {len(waiting)} are to do{to_go}.")
    if waiting and estimate.unknown:
        say(
            f"{estimate.unknown} of them are of methods or on data that have not been measured in {folder} yet."
        )


def show_outcome(plan: Plan, outcome: Outcome, folder: Path) -> None:
    from skpml.experiments._timing import duration

    for path in outcome.set_aside:
        show_warning(f"a file could not be read; its run was done again, and the file is now {path}")
    parts = [f"{len(outcome.executed)} runs done in {duration(outcome.seconds)}"]
    parts += [f"{outcome.skipped} there already"] if outcome.skipped else []
    parts += [f"{outcome.elsewhere} done by another process"] if outcome.elsewhere else []
    parts += [f"{outcome.left} left for later"] if outcome.left else []
    say(f"{plan.suite.name}: {', '.join(parts)}. Results are in {folder}.")
    warn_of_mixed_data(plan, folder)
    show_failures(plan, outcome.failed, folder)


def warn_of_mixed_data(plan: Plan, folder: Path) -> None:
    from skpml.experiments._store import Store, mixed_data

    for name in mixed_data(Store(folder).records(run.key for run in plan.runs)):
        show_warning(
            f"the results on {name} come from different data of that name; begin a new folder of results, or remove "
            f"those of {name} from {folder / 'runs'}"
        )


def show_failures(plan: Plan, failed: list[dict[str, Any]], folder: Path) -> None:
    """One line for each way in which a method failed, with a run that shows it."""
    if not failed:
        return
    from skpml.experiments._provenance import place_of, shortened

    show_warning(
        f"{len(failed)} runs failed; --retry-failed does them again, 'skpml bench status' with --failed shows where:"
    )
    alike = _alike(plan, failed)
    for (label, what), records in list(alike.items())[:_FAILURES_SHOWN]:
        others = f" and {len(records) - 1} more" if len(records) > 1 else ""
        path = folder / "runs" / f"{records[0]['key']}.json"
        show_warning(f"{label}: {shortened(what)} ({place_of(records[0]['run'])}{others}; {path})")
    if len(alike) > _FAILURES_SHOWN:
        show_warning(f"and {len(alike) - _FAILURES_SHOWN} other errors")


def show_tracebacks(plan: Plan, failed: list[dict[str, Any]]) -> None:
    """Where each method failed: the traceback of the first run of each kind."""
    from skpml.experiments._provenance import place_of

    for (label, _), records in _alike(plan, failed).items():
        others = f" and {len(records) - 1} more" if len(records) > 1 else ""
        say(
            f"{label} on {place_of(records[0]['run'])}{others}:\n\n{records[0]['error']['traceback'].rstrip()}\n"
        )
    say(f"{len(failed)} of {len(plan.runs)} runs failed." if failed else "No run failed.")


def _alike(plan: Plan, failed: list[dict[str, Any]]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Failed runs by the label of the method and what went wrong, in the order of the suite."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    records = {record["key"]: record for record in failed}
    for entry in plan.entries:
        if record := records.get(entry.run.key):
            error = record["error"]
            found[entry.label, f"{error['type']}: {error['message']}"].append(record)
    return found


@contextmanager
def progress_of(name: str) -> Iterator[Callable[[Progress], None]]:
    """A bar on a terminal; else a line now and then, for logs."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    console = stderr_console()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("to go: {task.fields[to_go]}"),
    )
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(escape(name), total=None, to_go="unknown")
        last_line = time.monotonic()

        def update(progress: Progress) -> None:
            nonlocal last_line
            to_go = "nothing" if progress.done == progress.total else str(progress.remaining)
            to_go += f" ({progress.failed} failed)" if progress.failed else ""
            bar.update(task, completed=progress.done, total=progress.total, to_go=to_go)
            if not console.is_terminal and time.monotonic() - last_line >= _SECONDS_BETWEEN_LINES:
                last_line = time.monotonic()
                console.print(
                    Text(f"{name}: {progress.done} of {progress.total} runs, to go: {to_go}"), soft_wrap=True
                )

        yield update
