"""``skpml bench``: run suites of experiments, and report on them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skpml._writing import replacing_folder, require_packages
from skpml.cli._console import check_outputs, force_option, json_option, say, show_warning

if TYPE_CHECKING:
    from skpml.experiments import PairComparison, Plan, Results

SOME_FAILED = 3

_MEGABYTES = {"MB": 1.0, "GB": 1e3, "TB": 1e6, "MIB": 2**20 / 1e6, "GIB": 2**30 / 1e6, "TIB": 2**40 / 1e6}


def _parse_size(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Convert a size of memory with its unit to MB."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Z]+)", value.strip().upper())
    size = 0.0 if found is None else float(found[1]) * _MEGABYTES.get(found[2], 0.0)
    if not size > 0:
        what = f"{value!r} is not a size of memory"
        raise click.BadParameter(f"{what}; write a number with a unit, such as 500MB, 4GB or 4GiB")
    return size


def _suite_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the suite, its data and the folder of its results."""
    folder = click.option(
        "--folder", metavar="RESULTS", type=click.Path(path_type=Path, file_okay=False), default=Path("bench"),
        show_default=True, help="Folder of the results, one file per run.",
    )  # fmt: skip
    data = click.option(
        "--data", "data_home", metavar="FOLDER", type=click.Path(path_type=Path, exists=True, file_okay=False),
        help="Folder of the data sets.  [default: that of 'skpml data list']",
    )  # fmt: skip
    return click.argument("suite")(data(folder(command)))


def _part_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that choose a part of a suite."""
    method = click.option(
        "-m", "--method", "methods", metavar="LABEL", multiple=True,
        help="Only the method with this label; repeatable.",
    )  # fmt: skip
    configuration = click.option(
        "-c", "--configuration", "configurations", metavar="NAME", multiple=True,
        help="Only this configuration of the suite; repeatable.",
    )  # fmt: skip
    return configuration(method(command))


_PUBLISHED = click.option(
    "--published", metavar="FILE", type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Add published results: a CSV file with the columns metric, configuration, method, mean, std.",
)  # fmt: skip


_LEAVE_OUT = click.option(
    "--leave-out", "left_out", metavar="NAME", multiple=True,
    help="Leave out the method with this label, or this configuration; repeatable.",
)  # fmt: skip


_JOBS = click.option(
    "-j", "--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Number of worker processes."
)  # fmt: skip


_DASK = click.option(
    "--dask", metavar="ADDRESS",
    help="Use the workers of this Dask scheduler instead of --jobs: address or scheduler file.",
)  # fmt: skip


@click.group()
def bench() -> None:
    """Run experiments that can be interrupted, resumed and shared, and report on them.

    A SUITE is the name of an included suite (quick, paper, paper-settings, paper-seeds, paper-real, noise, variants,
    ablation, sensitivity, convergence, decomposition) or the path of a .toml file.

    \b
    Examples:
      skpml bench run quick
      skpml bench run paper --data FOLDER --jobs 2
      skpml bench status paper
      skpml bench report paper -o paper.html
    """


@bench.command()
@_suite_options
@_JOBS
@_DASK
@click.option("--run-timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS",
              help="Stop a run that takes longer; it counts as failed.")  # fmt: skip
@click.option("--run-memory", "run_memory_mb", callback=_parse_size, metavar="SIZE",
              help="Stop a run that takes more memory, such as 500MB or 4GB; it counts as failed.")  # fmt: skip
@click.option("--retry-failed", is_flag=True, help="Repeat runs that failed, died or were stopped.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Do at most N runs.")
@_part_options
@click.option("--no-report", is_flag=True, help="Do not write a report at the end.")
@click.option("--dry-run", is_flag=True, help="Only list the runs to do, with the expected time.")
@click.pass_context
def run(
    ctx: click.Context, *, suite: str, data_home: Path | None, folder: Path, jobs: int, dask: str | None,
    run_timeout: float | None, run_memory_mb: float | None, retry_failed: bool, limit: int | None,
    configurations: tuple[str, ...], methods: tuple[str, ...], no_report: bool, dry_run: bool,
) -> None:  # fmt: skip
    """Do the runs of a suite without a result of the present code, then write SUITE.html into the folder of results.

    It can be stopped at any time, even by killing it: the same command continues. Several processes can work on one
    folder. A result of older code is kept until the run is done again. A run that ends its process is recorded as
    failed, and the others go on. The exit code is 3 if runs failed.

    \b
    Examples:
      skpml bench run quick
      skpml bench run paper --data FOLDER --jobs 2 --dry-run
      skpml bench run paper --data FOLDER --jobs 2
      skpml bench run mine.toml -m pml-ma -c emotions-3
      skpml bench run mine.toml --jobs 4 --run-timeout 600 --run-memory 4GB
    """
    complete = _load_plan(suite, data_home)
    plan = complete.only(configurations=configurations, methods=methods)
    from skpml.cli import _bench_output as output
    from skpml.experiments import WorkerDied, check_methods, check_names, run_plan

    check_names(plan)
    if dry_run:
        check_methods(plan)
        output.show_plan(plan, folder, jobs, retry_failed)
        return
    output.warn_of_absent(plan)
    try:
        with output.progress_of(plan.suite.name) as update:
            outcome = run_plan(
                plan, folder, jobs=jobs, dask=dask, retry_failed=retry_failed, limit=limit, run_timeout=run_timeout,
                run_memory_mb=run_memory_mb, on_progress=update,
            )  # fmt: skip
    except WorkerDied as error:
        raise click.ClickException(str(error)) from error
    except KeyboardInterrupt:
        show_warning("finished runs are kept; repeat the command to continue")
        raise
    output.show_outcome(plan, outcome, folder)
    if not no_report:
        _write_report(complete, folder)
    if outcome.failed:
        ctx.exit(SOME_FAILED)


@bench.command()
@_suite_options
@_JOBS
@_DASK
@_part_options
@click.pass_context
def confirm(
    ctx: click.Context, *, suite: str, data_home: Path | None, folder: Path, jobs: int, dask: str | None,
    configurations: tuple[str, ...], methods: tuple[str, ...],
) -> None:  # fmt: skip
    """Do some runs with results of older code again; if nothing has changed, the other results are confirmed.

    One run of each method and configuration is done again. If no metric of a method differs by more than 0.00001, its
    other results count as those of the present code; their records say so. The exit code is 3 if a method differs:
    'skpml bench run' does its runs again.

    \b
    Example:
      skpml bench confirm paper --folder results --data FOLDER --jobs 2
    """
    plan = _load_plan(suite, data_home).only(configurations=configurations, methods=methods)
    from skpml.cli import _bench_output as output
    from skpml.experiments import WorkerDied, check_names, confirm_results

    check_names(plan)
    try:
        with output.progress_of(plan.suite.name) as update:
            found = confirm_results(plan, folder, jobs=jobs, dask=dask, on_progress=update)
    except WorkerDied as error:
        raise click.ClickException(str(error)) from error
    output.show_confirmations(found, folder)
    if any(each.n_older for each in found):
        ctx.exit(SOME_FAILED)


@bench.command()
@_suite_options
@_part_options
@click.option("--failed", is_flag=True, help="Show the tracebacks of failed runs instead.")
@json_option
def status(
    *, suite: str, data_home: Path | None, folder: Path, configurations: tuple[str, ...],
    methods: tuple[str, ...], failed: bool, as_json: bool,
) -> None:  # fmt: skip
    """Show the progress of a suite, results of older code, failures, and the expected time of the rest.

    The code of a run is the method, what it imports from the library, and the evaluation. If it has changed, the result
    is of older code, and 'skpml bench run' does the run again.

    \b
    Examples:
      skpml bench status paper --data FOLDER
      skpml bench status mine.toml --failed -m mine
      skpml bench status paper --folder results --json
    """
    plan = _load_plan(suite, data_home).only(configurations=configurations, methods=methods)
    from skpml.cli import _bench_output as output
    from skpml.experiments import Store, check_names, find_status

    check_names(plan)
    store = Store(folder)
    if as_json:
        say(json.dumps(find_status(plan, store).to_json(), indent=1, ensure_ascii=False))
        return
    keys = [entry.run.key for entry in plan.entries]
    failures = [record for record in store.records(keys) if record["status"] == "failed"]
    if failed:
        output.show_tracebacks(plan, failures)
        return
    output.show_plan(plan, folder, 1, False)
    if damaged := store.damaged(keys):
        show_warning(f"{len(damaged)} files cannot be read and will be repeated, such as {damaged[0]}")
    output.warn_of_mixed_data(plan, folder)
    output.show_failures(plan, failures, folder)


@bench.command()
@_suite_options
@click.option("-o", "--output", "target", metavar="FILE", default="report.html", show_default=True,
              type=click.Path(path_type=Path), help="HTML file to write.")  # fmt: skip
@_LEAVE_OUT
@_PUBLISHED
@force_option
def report(
    *, suite: str, data_home: Path | None, folder: Path, target: Path, left_out: tuple[str, ...],
    published: Path | None, force: bool,
) -> None:  # fmt: skip
    """Write an HTML page with the tables, tests and figures of a suite.

    The page needs no network. Missing and failed runs are listed. An earlier report is replaced; other files only
    with --force.

    \b
    Example:
      skpml bench report paper --folder results -o paper.html
      skpml bench report paper --leave-out pml-plr --leave-out arts-11
    """
    results = _load_results(suite, folder, data_home).leave_out(left_out)
    from skpml.experiments import is_report, read_published, write_report

    check_outputs(target, force=force or is_report(target), inputs=[published])
    write_report(results, target, published=None if published is None else read_published(published))
    size = target.stat().st_size
    say(f"Wrote {target} ({f'{size / 1e6:.1f} MB' if size >= 1e6 else f'{size / 1e3:.0f} kB'}).")


@bench.command()
@_suite_options
@click.argument("one")
@click.argument("other")
@click.option("--metric", "metrics", multiple=True, metavar="NAME",
              help="Only this metric; repeatable.  [default: those of the suite]")  # fmt: skip
@json_option
def compare(
    *, suite: str, one: str, other: str, data_home: Path | None, folder: Path, metrics: tuple[str, ...],
    as_json: bool,
) -> None:  # fmt: skip
    """Compare two methods: wins, ties, losses, Wilcoxon's test, and the difference on each configuration.

    ONE and OTHER are labels of the suite.

    \b
    Example:
      skpml bench compare paper pml-ma pml-ni --metric average_precision
    """
    results = _load_results(suite, folder, data_home)
    from skpml.cli import _bench_output as output
    from skpml.experiments import compare_methods

    pairs = [compare_methods(results, one, other, metric) for metric in metrics or results.suite.metrics]
    if as_json:
        content = [_to_json(results, pair) for pair in pairs]
        say(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False))
    else:
        output.show_comparison(pairs)


@bench.command()
@_suite_options
@click.option("-o", "--output", "target", metavar="FOLDER", default="tables", show_default=True,
              type=click.Path(path_type=Path, file_okay=False),
              help="Folder of the tables; created if necessary.")  # fmt: skip
@click.option("--format", "formats", multiple=True, type=click.Choice(["csv", "latex", "markdown"]),
              help="Only this format; repeatable.  [default: all]")  # fmt: skip
@click.option("--with-runs", is_flag=True,
              help="Add runs.jsonl.gz, all records in one file; --folder then accepts this folder.")  # fmt: skip
@_LEAVE_OUT
@_PUBLISHED
@force_option
def export(
    *, suite: str, data_home: Path | None, folder: Path, target: Path, formats: tuple[str, ...], with_runs: bool,
    left_out: tuple[str, ...], published: Path | None, force: bool,
) -> None:  # fmt: skip
    """Write the tables of each metric and of the ranks as CSV, LaTeX and Markdown.

    The same results give the same files. With --with-runs, runs of the suite that FOLDER already has are never lost: if
    --folder lacks one of them, nothing is written.

    \b
    Examples:
      skpml bench export paper --folder results -o tables --format latex
      skpml bench export paper --folder results -o tables --with-runs
    """
    results = _load_results(suite, folder, data_home)
    from skpml.experiments import FORMATS, PACK_NAME, export_tables, pack, read_published

    figures = None if published is None else read_published(published)
    texts = export_tables(results.leave_out(left_out), formats or tuple(FORMATS), published=figures)
    if not texts:
        raise click.ClickException(
            f"the suite {results.suite.name} has only sweeps, which are exported as CSV: use --format csv"
        )
    contents = {name: text.encode("utf-8") for name, text in texts.items()}
    if with_runs:
        contents[PACK_NAME] = pack(results.records())
        _refuse_loss(suite, results, folder, target)
    if not target.parent.is_dir():
        raise click.ClickException(f"{target} cannot be created: there is no folder {target.parent}")
    if target.exists():
        check_outputs(*(target / name for name in contents), force=force)
    with replacing_folder(target, overwrite=True) as temporary:
        for name, content in contents.items():
            (temporary / name).write_bytes(content)
    packed = f" and {len(results.records())} records" if with_runs else ""
    say(f"Wrote {len(texts)} tables{packed} to {target}.")


@bench.command()
@click.argument("folders", metavar="RESULTS...", nargs=-1, required=True,
                type=click.Path(path_type=Path, exists=True, file_okay=False))  # fmt: skip
@click.option("-o", "--output", "target", metavar="FOLDER", required=True,
              type=click.Path(path_type=Path, file_okay=False), help="New folder of results.")  # fmt: skip
def merge(*, folders: tuple[Path, ...], target: Path) -> None:
    """Merge folders of results, such as those of several machines, into a new one.

    All results go to one file, runs.jsonl.gz; --folder of the other commands reads it. A run that has different results
    in two folders is an error. Nothing is written then.

    \b
    Example:
      skpml bench merge machine1 machine2 -o all
    """
    require_packages("skpml bench", "bench", "skpml.experiments")
    from skpml.experiments import merge_folders

    count = merge_folders(folders, target)
    say(f"Wrote {count} results of {len(folders)} folders to {target}.")


def _load_plan(suite: str, data_home: Path | None) -> Plan:
    require_packages("skpml bench", "bench", "skpml.experiments")
    from skpml.experiments import expand, load_suite

    return expand(load_suite(suite), data_home=data_home)


def _load_results(name: str, folder: Path, data_home: Path | None) -> Results:
    """Read the records in a folder that belong to a suite."""
    plan = _load_plan(name, data_home)
    from skpml.experiments import Store, collect

    store = Store(folder)
    if damaged := store.damaged(store.keys()):
        show_warning(f"ignored {len(damaged)} files that cannot be read, such as {damaged[0]}")
    results = collect(plan, store.records())
    if results.n_other == results.n_records:
        found = "no result" if not results.n_records else "only results of other suites"
        raise click.ClickException(
            f"there is {found} in {folder}; 'skpml bench run {name} --folder {folder}' does the runs"
        )
    return results


def _refuse_loss(suite: str, results: Results, folder: Path, target: Path) -> None:
    """Raise if the packed runs of the target have a finished run that the results have not."""
    from skpml.experiments import PACK_NAME, Store, collect, task_of

    if not (target / PACK_NAME).is_file():
        return

    def find_done(records: Iterable[Mapping[str, Any]]) -> set[str]:
        return {task_of(record["key"]) for record in records if record["status"] == "done"}

    stored = Store(target).records()
    lost = find_done(stored) - find_done(results.records())
    if not lost:
        return
    of_suite = len(lost & find_done(collect(_load_plan(suite, None), stored).records()))
    other = (
        f", and {len(lost) - of_suite} of other settings than the suite has now"
        if len(lost) > of_suite
        else ""
    )
    raise click.ClickException(
        f"{target} has {of_suite} finished runs of the suite that are not in {folder}{other}, and would lose them; "
        f"'skpml bench merge {folder} {target} -o NEW' makes a folder with both, to export from, "
        f"or delete {target} if they are not needed"
    )


def _write_report(plan: Plan, folder: Path) -> None:
    """Write the report of the whole suite, even if only a part of it was run."""
    from skpml.experiments import Store, collect, is_report, write_report

    store = Store(folder)
    target = folder / f"{Path(plan.suite.name).name}.html"
    if target.exists() and not is_report(target):
        show_warning(f"{target} is not a report and was not replaced; 'skpml bench report' writes elsewhere")
        return
    # If every run failed, the page says so; an earlier report must not be mistaken for these runs.
    if store.records(entry.run.key for entry in plan.entries):
        write_report(collect(plan, store.records()), target)
        say(f"Wrote {target}.")


def _to_json(results: Results, pair: PairComparison) -> dict[str, object]:
    test, counts, table = pair.test, pair.counts, results.table(pair.metric)

    def statistics(name: str, label: str) -> dict[str, float | None]:
        row: Any = table.loc[name, label]
        return {
            part: row[part] if math.isfinite(row[part]) else None for part in ("mean", "fold_std", "seed_std")
        }

    return {
        **{name: getattr(pair, name) for name in ("metric", "one", "other", "greater_is_better", "left_out")},
        **{name: getattr(counts, name) for name in ("wins", "ties", "losses")},
        **{name: None if test is None else getattr(test, name) for name in ("p_value", "effect_size")},
        "n": len(pair.values),
        "values": {
            name: {"one": statistics(name, pair.one), "other": statistics(name, pair.other)}
            for name in pair.values.index
        },
    }
