"""``skpml bench``: experiments, from a suite to records; what is done stays done."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skpml.cli._bench_display import (
    progress_of,
    show_failures,
    show_outcome,
    show_plan,
    show_tracebacks,
    warn_of_absent,
    warn_of_mixed_data,
)
from skpml.cli._bench_options import data_option, folder_option
from skpml.cli._bench_report import compare, export, report
from skpml.cli._console import atomic_outputs, say, show_warning

if TYPE_CHECKING:
    from skpml.experiments._runs import Plan

SOME_FAILED = 3

_CONFIGURATION = click.option(
    "-c", "--configuration", "configurations", metavar="NAME", multiple=True,
    help="Only this configuration of the suite; repeat it.",
)  # fmt: skip
_METHOD = click.option(
    "-m", "--method", "methods", metavar="LABEL", multiple=True,
    help="Only the method of this label; repeat it.",
)  # fmt: skip


@click.group()
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
    from skpml.experiments._door import check_methods, check_names

    check_names(plan)
    if dry_run:
        check_methods(plan)
        show_plan(plan, folder, jobs, retry_failed)
        return
    from skpml.experiments._runner import WorkerDied, run_plan

    warn_of_absent(plan)
    # joblib replaces workers that have grown; nothing is lost by it, and nobody can do anything about it.
    warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given")
    try:
        with progress_of(plan.suite.name) as update:
            outcome = run_plan(
                plan, folder, jobs=jobs, dask=dask, retry_failed=retry_failed, limit=limit, on_progress=update
            )
    except WorkerDied as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        show_warning("what was done is kept; the same command goes on from there")
        raise
    show_outcome(plan, outcome, folder)
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
@click.option("--failed", is_flag=True, help="Show the tracebacks of failed runs instead.")
def status(
    *,
    suite: str,
    data_home: Path | None,
    folder: Path,
    configurations: tuple[str, ...],
    methods: tuple[str, ...],
    failed: bool,
) -> None:
    """Tell how far a suite is, what failed, and how long the rest will take.

    \b
    Examples:
      skpml bench status paper --data FOLDER
      skpml bench status mine.toml --failed -m mine
    """
    plan = _plan(suite, data_home).only(configurations=configurations, methods=methods)
    from skpml.experiments._door import check_names
    from skpml.experiments._store import Store

    check_names(plan)
    store = Store(folder)
    keys = [run.key for run in plan.runs]
    failures = [record for record in store.records(keys) if record["status"] == "failed"]
    if failed:
        show_tracebacks(plan, failures)
        return
    show_plan(plan, folder, 1, False)
    if damaged := store.damaged(keys):
        show_warning(
            f"{len(damaged)} files cannot be read and will be done again, such as {store.path(damaged[0])}"
        )
    warn_of_mixed_data(plan, folder)
    show_failures(plan, failures, folder)


def _plan(suite: str, data_home: Path | None) -> Plan:
    try:
        from skpml.experiments import expand, load_suite
    except ModuleNotFoundError as error:
        raise ImportError(f'skpml bench needs {error.name}: pip install "scikit-pml[bench]"') from error
    return expand(load_suite(suite), data_home=data_home)


def _write_report(plan: Plan, folder: Path) -> None:
    """The page of the whole suite, even where only a part of it was run: what is missing is named there."""
    from skpml.experiments._report import is_report, render_report
    from skpml.experiments._results import collect_plan
    from skpml.experiments._store import Store

    store = Store(folder)
    target = folder / f"{Path(plan.suite.name).name}.html"
    if target.exists() and not is_report(target):
        show_warning(f"{target} is no report and was left alone; 'skpml bench report' writes one elsewhere")
        return
    # Where every run failed the page says so; an earlier one must not be taken for what these runs gave.
    if not store.records(run.key for run in plan.runs):
        return
    page = render_report(collect_plan(plan, store.records()))
    with atomic_outputs(target) as (temporary,):
        temporary.write_text(page, encoding="utf-8")
    say(f"Wrote {target}.")


for _command in (report, compare, export):
    bench.add_command(_command)
