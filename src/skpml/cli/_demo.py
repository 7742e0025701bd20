"""``skpml demo``: a first look, on data that come with the library."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skpml.cli._base import Command
from skpml.cli._console import progress_bar, results, say, show_table
from skpml.cli._outputs import check_outputs, force_option, whole

if TYPE_CHECKING:
    from skpml.demo import DemoResult


@click.command(cls=Command)
@click.option(
    "-o", "--output", "target", metavar="FILE", default="demo.html", show_default=True,
    type=click.Path(path_type=Path), help="Page to write.",
)  # fmt: skip
@click.option(
    "--candidates", type=click.IntRange(1, 10), default=6, show_default=True, metavar="K",
    help="Fill each row up to K of its 10 labels.",
)  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True)
@force_option
def demo(*, target: Path, candidates: int, seed: int, force: bool) -> None:
    """Compare PML-MA with plain ridge regression on handwritten digits.

    Takes about half a minute. Ten-fold cross-validation on data that come along: PML-MA and ridge learn from
    candidate labels, and ridge on the true labels shows what could be reached. Prints a table and writes one web page
    that opens without a network. An earlier page of the demo is replaced; any other file only with --force.

    \b
    Example:
      skpml demo --candidates 8 --seed 1 -o eight.html
    """
    from skpml.demo import is_demo_page, render_page, run_demo, verdict

    check_outputs(target, force=force or is_demo_page(target))
    begun = time.monotonic()
    with progress_bar("loading") as update:
        result = run_demo(candidates=candidates, seed=seed, progress=update)
        update(1, 1, "drawing")
        page = render_page(result)
        with whole(target) as (temporary,):
            temporary.write_text(page, encoding="utf-8")
    _print_table(result)
    headline, grounds = verdict(result)
    console = results()
    console.print(f"\n[bold]{headline}[/bold]")
    console.print(grounds, markup=False, soft_wrap=not console.is_terminal)
    say(f"\nWrote {target} ({time.monotonic() - begun:.0f} s).")


def _print_table(result: DemoResult) -> None:
    from rich.table import Table

    from skpml.demo import METHODS, summarise

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("metric")
    for method in METHODS.values():
        table.add_column(f"{method.title}\n({method.role})", justify="right")
    table.add_column("way to\nthe ceiling", justify="right")
    for summary in summarise(result):
        table.add_row(
            f"{summary.title} {'↑' if summary.greater_is_better else '↓'}",
            *(f"{summary.mean[key]:.4f} ± {summary.std[key]:.4f}" for key in METHODS),
            "–" if summary.closed is None else f"{summary.closed:.0%}",
        )
    say(
        f"Digits, {result.candidates} candidates a row, {result.n_folds} folds, seed {result.seed}: "
        "mean ± standard deviation, pml convention\n"
    )
    show_table(table)
