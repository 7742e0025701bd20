"""``skpml bench report``, ``compare`` and ``export``: what the records of a suite say."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skpml.cli._bench_options import data_option, folder_option
from skpml.cli._console import (
    atomic_outputs,
    check_outputs,
    force_option,
    say,
    show_table,
    show_warning,
)

if TYPE_CHECKING:
    from skpml.experiments._tables import PairComparison, Results

_ENDINGS = {"csv": "csv", "latex": "tex", "markdown": "md"}

published_option = click.option(
    "--with-published", is_flag=True, help="Add the paper's printed results, marked as not measured here."
)
rank_published_option = click.option(
    "--rank-published",
    is_flag=True,
    help="Let the printed results take part in ranks and tests, and show them.",
)


@click.command()
@click.argument("suite")
@data_option
@folder_option
@click.option(
    "-o", "--output", "target", metavar="FILE", default="report.html", show_default=True,
    type=click.Path(path_type=Path), help="Page to write.",
)  # fmt: skip
@published_option
@rank_published_option
@force_option
def report(
    *,
    suite: str,
    data_home: Path | None,
    folder: Path,
    target: Path,
    with_published: bool,
    rank_published: bool,
    force: bool,
) -> None:
    """Write one web page with the tables, tests and figures of a suite.

    It opens without a network. Runs that are missing or failed are named, and nothing stands in for them. An earlier
    report is replaced; any other file only with --force.

    \b
    Example:
      skpml bench report paper --folder results -o paper.html --with-published
    """
    results = _results(suite, folder, data_home)
    from skpml.experiments._report import is_report, render_report

    check_outputs(target, force=force or is_report(target))
    page = render_report(results, with_published=with_published, rank_published=rank_published)
    with atomic_outputs(target) as (temporary,):
        temporary.write_text(page, encoding="utf-8")
    size = len(page.encode())
    say(f"Wrote {target} ({f'{size / 1e6:.1f} MB' if size >= 1e6 else f'{size / 1e3:.0f} kB'}).")


@click.command()
@click.argument("suite")
@click.argument("one")
@click.argument("other")
@data_option
@folder_option
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Only this metric; repeat it.  [default: the suite's]",
)
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def compare(
    *,
    suite: str,
    one: str,
    other: str,
    data_home: Path | None,
    folder: Path,
    metrics: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compare two methods: wins, ties, losses, Wilcoxon's test, and the difference on each configuration.

    ONE and OTHER are labels of the suite; "published:NAME" stands for what the paper prints of a method, which was not
    measured here.

    \b
    Examples:
      skpml bench compare paper pml-ma pml-ni
      skpml bench compare paper pml-ma published:pml-ma --metric average_precision
    """
    results = _results(suite, folder, data_home)
    from skpml.experiments._tables import compare_methods

    chosen = metrics or tuple(results.suite.metrics)
    found = [compare_methods(results, one, other, metric) for metric in chosen]
    if as_json:
        say(json.dumps([_facts(pair) for pair in found], indent=1, ensure_ascii=False, allow_nan=False))
    else:
        _show(found)


@click.command()
@click.argument("suite")
@data_option
@folder_option
@click.option(
    "-o", "--output", "target", metavar="FOLDER", default="tables", show_default=True,
    type=click.Path(path_type=Path, file_okay=False), help="Folder for the tables; made if it is not there.",
)  # fmt: skip
@click.option(
    "--format",
    "formats",
    multiple=True,
    type=click.Choice(list(_ENDINGS)),
    help="Only this format; repeat it.  [default: all]",
)
@click.option(
    "--with-runs", is_flag=True,
    help="Add runs.jsonl.gz, all records in one file; with it the folder can be given as --folder.",
)  # fmt: skip
@published_option
@rank_published_option
@force_option
def export(
    *,
    suite: str,
    data_home: Path | None,
    folder: Path,
    target: Path,
    formats: tuple[str, ...],
    with_runs: bool,
    with_published: bool,
    rank_published: bool,
    force: bool,
) -> None:
    """Write the tables of each metric and of the ranks as CSV, LaTeX and Markdown.

    The same results give the same files, to the byte.

    \b
    Examples:
      skpml bench export paper --folder results -o tables --format latex
      skpml bench export paper --folder results -o tables --with-runs
    """
    results = _results(suite, folder, data_home)
    texts = _texts(results, formats or tuple(_ENDINGS), with_published, rank_published)
    contents = {name: text.encode("utf-8") for name, text in texts.items()}
    if with_runs:
        from skpml.experiments._packing import PACK_NAME, pack

        contents[PACK_NAME] = pack(results.records())
    if not target.parent.is_dir():
        raise click.ClickException(f"{target} cannot be made: there is no folder {target.parent}")
    made = not target.exists()
    paths = [target / name for name in contents]
    if made:
        target.mkdir()
    else:
        check_outputs(*paths, force=force)
    try:
        with atomic_outputs(*paths) as temporary:
            for path, content in zip(temporary, contents.values(), strict=True):
                path.write_bytes(content)
    except BaseException:
        if made:
            target.rmdir()
        raise
    packed = f" and {len(results.records())} records" if with_runs else ""
    say(f"Wrote {len(texts)} tables{packed} to {target}.")


def _results(name: str, folder: Path, data_home: Path | None) -> Results:
    """The records in a folder that belong to a suite."""
    try:
        from skpml.experiments import expand, load_suite
        from skpml.experiments._results import collect_plan
        from skpml.experiments._store import Store
    except ModuleNotFoundError as error:
        raise ImportError(f'skpml bench needs {error.name}: pip install "scikit-pml[bench]"') from error
    plan = expand(load_suite(name), data_home=data_home)
    store = Store(folder)
    if damaged := store.damaged(store.keys()):
        show_warning(
            f"{len(damaged)} files cannot be read and are left out, such as {store.path(damaged[0])}"
        )
    results = collect_plan(plan, store.records())
    if results.n_other == results.n_records:
        what = "no result" if not results.n_records else "results of other suites only"
        raise click.ClickException(
            f"there is {what} in {folder}; 'skpml bench run {name} --folder {folder}' does the runs"
        )
    return results


def _texts(
    results: Results, formats: tuple[str, ...], with_published: bool, rank_published: bool
) -> dict[str, str]:
    """File names and contents of all tables."""
    from skpml.experiments import _tables as tables

    suite, texts = results.suite, {}
    rankings = [
        tables.rank_methods(results, metric, rank_published=rank_published) for metric in suite.metrics
    ]
    for ranking in rankings if results.cells else []:
        table = tables.metric_table(results, ranking.metric, with_published=with_published or rank_published)
        content = {
            "csv": tables.table_csv(table),
            "latex": tables.table_latex(table, ranking, suite=suite.name),
            "markdown": tables.table_markdown(table, ranking),
        }
        texts.update({f"{ranking.metric}.{_ENDINGS[key]}": content[key] for key in formats})
    if any(ranking.average_ranks for ranking in rankings):
        content = {
            "csv": tables.ranks_csv(rankings),
            "latex": tables.ranks_latex(rankings, suite=suite.name),
            "markdown": tables.ranks_markdown(rankings),
        }
        texts.update({f"ranks.{_ENDINGS[key]}": content[key] for key in formats})
    if results.sweeps and "csv" in formats:
        texts.update(
            {f"sensitivity-{metric}.csv": tables.sweeps_csv(results, metric) for metric in suite.metrics}
        )
    if not texts:
        raise click.ClickException(
            f"the suite {suite.name} has only sweeps, which are exported as CSV: use --format csv"
        )
    return texts


def _facts(pair: PairComparison) -> dict[str, object]:
    test = pair.test
    return {
        "metric": pair.metric,
        "one": pair.one,
        "other": pair.other,
        "greater_is_better": pair.greater_is_better,
        "n": len(pair.values),
        "wins": pair.counts.wins,
        "ties": pair.counts.ties,
        "losses": pair.counts.losses,
        "p_value": None if test is None else test.p_value,
        "effect_size": None if test is None else test.effect_size,
        "values": {name: {"one": one, "other": other} for name, (one, other) in pair.values.items()},
        "left_out": pair.left_out,
    }


def _show(found: list[PairComparison]) -> None:
    from rich.markup import escape
    from rich.table import Table

    from skpml.experiments._results import metric_title
    from skpml.experiments._wording import number, p_value

    one, other = found[0].one, found[0].other
    arrows = {pair.metric: "↑" if pair.greater_is_better else "↓" for pair in found}
    summary = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("metric", "N", "wins", "ties", "losses", "p (Wilcoxon)", "effect size"):
        summary.add_column(title, justify="left" if title == "metric" else "right")
    for pair in found:
        counts, test = pair.counts, pair.test
        tested = ("–", "–") if test is None else (p_value(test.p_value), number(test.effect_size, 2))
        summary.add_row(
            f"{metric_title(pair.metric)} {arrows[pair.metric]}",
            *map(str, (len(pair.values), counts.wins, counts.ties, counts.losses)),
            *tested,
        )
    say(f"{one} against {other}: configurations won, tied and lost\n")
    show_table(summary)
    say(f"\nDifference {one} − {other} on each configuration\n")
    details = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    details.add_column("configuration")
    for pair in found:
        details.add_column(f"{metric_title(pair.metric)} {arrows[pair.metric]}", justify="right")
    names = dict.fromkeys(name for pair in found for name in pair.values)
    for name in names:
        gains = [
            first - second
            for first, second in (pair.values.get(name, (math.nan, math.nan)) for pair in found)
        ]
        details.add_row(escape(name), *(number(gain, 4) for gain in gains))
    show_table(details)
    left_out = {name: why for pair in found for name, why in pair.left_out.items()}
    if left_out:
        say("\nLeft out: " + "; ".join(f"{name} ({why})" for name, why in left_out.items()) + ".")
    if any(name.startswith("published:") for name in (one, other)):
        say("\nPublished results were not measured here.")
