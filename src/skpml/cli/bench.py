"""``skpml bench``: experiments, from a suite to records; what is done stays done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from skpml.cli.base import Group
from skpml.cli.bench_options import data_option, folder_option
from skpml.cli.bench_report import compare, export, report
from skpml.cli.console import notes, say, show_table, show_warning
from skpml.cli.outputs import whole

if TYPE_CHECKING:
    from skpml.experiments.runner import Outcome, Progress
    from skpml.experiments.runs import Plan, Run

SOME_FAILED = 3
_FAILURES_SHOWN = 10

_CONFIGURATION = click.option(
    "-c", "--configuration", "configurations", metavar="NAME", multiple=True,
    help="Only this configuration of the suite; repeat it.",
)  # fmt: skip
_METHOD = click.option(
    "-m", "--method", "methods", metavar="LABEL", multiple=True,
    help="Only the method of this label; repeat it.",
)  # fmt: skip


@click.group(cls=Group)
def bench() -> None:
    """Run experiments that can be interrupted, resumed and shared, and report on them.

    A SUITE is the name of one that comes along (paper, quick, ablation, sensitivity, convergence, decomposition) or the
    path of your own .toml file.

    \b
    Examples:
      skpml bench run quick
      skpml bench run paper --data FOLDER --jobs 2
      skpml bench status paper
      skpml bench report paper -o paper.html --with-published
    """


@bench.command()
@click.argument("suite")
@data_option
@folder_option
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Processes at work at a time.",
)
@click.option("--dask", metavar="ADDRESS", help="Use the workers of this Dask scheduler instead of --jobs.")
@click.option("--retry-failed", is_flag=True, help="Do runs again that failed before.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Do at most N runs.")
@_CONFIGURATION
@_METHOD
@click.option("--no-report", is_flag=True, help="Write no report at the end.")
@click.option("--dry-run", is_flag=True, help="Only list what there is to do, with the time expected.")
@click.pass_context
def run(
    ctx: click.Context,
    *,
    suite: str,
    data_home: Path | None,
    folder: Path,
    jobs: int,
    dask: str | None,
    retry_failed: bool,
    limit: int | None,
    configurations: tuple[str, ...],
    methods: tuple[str, ...],
    no_report: bool,
    dry_run: bool,
) -> None:
    """Do the runs of a suite that have no result yet, then write the report SUITE.html into the folder of the results.

    Stop it at any time, even by killing it: the same command goes on where it was. Several may work on one folder.
    Leaves with 3 where runs failed.

    \b
    Examples:
      skpml bench run quick
      skpml bench run paper --data FOLDER --jobs 2 --dry-run
      skpml bench run paper --data FOLDER --jobs 2
      skpml bench run mine.toml -m pml-ma -c emotions-3
    """
    whole_plan = _plan(suite, data_home)
    plan = whole_plan.only(configurations=configurations, methods=methods)
    if dry_run:
        _show_plan(plan, folder, jobs, retry_failed)
        return
    from skpml.experiments.runner import WorkerDied, run_plan

    _warn_of_absent(plan)
    try:
        with _progress(plan.suite.name) as update:
            outcome = run_plan(
                plan, folder, jobs=jobs, dask=dask, retry_failed=retry_failed, limit=limit, on_progress=update
            )
    except WorkerDied as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        show_warning("what was done is kept; the same command goes on from there")
        raise
    _show_outcome(plan, outcome, folder)
    if not no_report:
        _write_report(whole_plan, folder)
    if outcome.failed:
        ctx.exit(SOME_FAILED)


@bench.command()
@click.argument("suite")
@data_option
@folder_option
@_CONFIGURATION
@_METHOD
def status(
    *,
    suite: str,
    data_home: Path | None,
    folder: Path,
    configurations: tuple[str, ...],
    methods: tuple[str, ...],
) -> None:
    """Tell how far a suite is, what failed, and how long the rest will take.

    \b
    Example:
      skpml bench status paper --data FOLDER
    """
    plan = _plan(suite, data_home).only(configurations=configurations, methods=methods)
    _show_plan(plan, folder, 1, False)
    from skpml.experiments.store import Store

    store = Store(folder)
    keys = [run.key for run in plan.runs]
    if damaged := store.damaged(keys):
        show_warning(
            f"{len(damaged)} files cannot be read and will be done again, such as {store.path(damaged[0])}"
        )
    _show_failures([record for record in store.records(keys) if record["status"] == "failed"], folder)


def _plan(suite: str, data_home: Path | None) -> Plan:
    try:
        from skpml.experiments import expand, load_suite
    except ModuleNotFoundError as error:
        raise ImportError(f'skpml bench needs {error.name}: pip install "scikit-pml[bench]"') from error
    return expand(load_suite(suite), data_home=data_home)


def _write_report(plan: Plan, folder: Path) -> None:
    """The page of the whole suite, even where only a part of it was run: what is missing is named there."""
    from skpml.experiments.report import is_report, render_report
    from skpml.experiments.store import Store
    from skpml.experiments.tables import collect

    store = Store(folder)
    target = folder / f"{Path(plan.suite.name).name}.html"
    if target.exists() and not is_report(target):
        show_warning(f"{target} is no report and was left alone; 'skpml bench report' writes one elsewhere")
        return
    keys = {run.key for run in plan.runs}
    if not any(record["status"] == "done" for record in store.records(keys & store.keys())):
        return
    data = {run.configuration: run.data for run in plan.runs}
    page = render_report(collect(plan.suite, store.records(), absent=plan.absent, data=data))
    with whole(target) as (temporary,):
        temporary.write_text(page, encoding="utf-8")
    say(f"Wrote {target}.")


def _warn_of_absent(plan: Plan) -> None:
    total = len({entry.run.configuration for entry in plan.entries}) + len(plan.absent)
    for name, reason in plan.absent.items():
        show_warning(f"{name} is left out: {reason}")
    if plan.absent:
        show_warning(f"{len(plan.absent)} of {total} configurations are absent")


def _show_plan(plan: Plan, folder: Path, jobs: int, retry_failed: bool) -> None:
    """A line for each configuration and method with something to do, and the time expected of all."""
    from rich.table import Table

    from skpml.experiments.store import Store
    from skpml.experiments.timing import Estimate, Timing

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
    _warn_of_absent(plan)
    waiting = [run for run in plan.runs if states[run.key] == "to do"]
    estimate = timing.estimate(waiting)
    share = Estimate(estimate.seconds / jobs, estimate.unknown)
    at_a_time = "one process" if jobs == 1 else f"{jobs} processes"
    done = sum(state == "done" for state in states.values())
    time = f"; time to go with {at_a_time}: {share}" if waiting else ""
    say(f"\n{done} of {len(plan.runs)} runs are done, {len(waiting)} are to do{time}.")
    if waiting and estimate.unknown:
        say(f"{estimate.unknown} of them are of methods that have not been measured in {folder} yet.")


def _show_outcome(plan: Plan, outcome: Outcome, folder: Path) -> None:
    from skpml.experiments.timing import duration

    for path in outcome.set_aside:
        show_warning(f"a file could not be read; its run was done again, and the file is now {path}")
    parts = [f"{len(outcome.executed)} runs done in {duration(outcome.seconds)}"]
    parts += [f"{outcome.skipped} there already"] if outcome.skipped else []
    parts += [f"{outcome.elsewhere} done by another process"] if outcome.elsewhere else []
    parts += [f"{outcome.left} left for later"] if outcome.left else []
    say(f"{plan.suite.name}: {', '.join(parts)}. Results are in {folder}.")
    _show_failures(outcome.failed, folder)


def _show_failures(failed: list[dict[str, Any]], folder: Path) -> None:
    """One line for each way in which a method failed, with a run that shows it."""
    if not failed:
        return
    show_warning(
        f"{len(failed)} runs failed; --retry-failed does them again, their files hold the tracebacks:"
    )
    alike: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for record in sorted(failed, key=_place):
        error = record["error"]
        what = " ".join(f"{error['type']}: {error['message']}".split())
        alike[f"{record['run']['method']}: {what}"].append(record)
    for what, records in list(alike.items())[:_FAILURES_SHOWN]:
        run = records[0]["run"]
        fold = "" if run["fold"] is None else f", fold {run['fold'] + 1}"
        others = f" and {len(records) - 1} more" if len(records) > 1 else ""
        path = folder / "runs" / f"{records[0]['key']}.json"
        show_warning(f"{what} ({run['configuration']}, seed {run['seed']}{fold}{others}; {path})")
    if len(alike) > _FAILURES_SHOWN:
        show_warning(f"and {len(alike) - _FAILURES_SHOWN} other errors")


def _place(record: dict[str, Any]) -> tuple[Any, ...]:
    run = record["run"]
    return run["method"], run["configuration"], run["seed"], run["fold"] or 0, record["key"]


@contextmanager
def _progress(name: str) -> Iterator[Callable[[Progress], None]]:
    """A bar on a terminal; else a line now and then, for logs."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    console = notes()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("to go: {task.fields[to_go]}"),
    )
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(escape(name), total=None, to_go="unknown")

        def update(progress: Progress) -> None:
            to_go = "nothing" if progress.done == progress.total else str(progress.remaining)
            to_go += f" ({progress.failed} failed)" if progress.failed else ""
            bar.update(task, completed=progress.done, total=progress.total, to_go=to_go)

        yield update


for _command in (report, compare, export):
    bench.add_command(_command)
