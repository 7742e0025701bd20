"""``skpml clean``: from a file of doubtful tags to a cleaned one, with a page for a person to review the rest."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from skpml.cli._base import Command, Group
from skpml.cli._clean_outputs import (
    check_packages,
    check_tasks,
    page,
    save_classifier,
    write_listing,
    write_tasks,
)
from skpml.cli._clean_reading import (
    check_rows,
    read_for_cleaning,
    read_for_decisions,
    table_options,
    tell_table,
)
from skpml.cli._clean_settings import Settings, said_by_hand, settings_option, settings_text, settled
from skpml.cli._console import progress_bar, say, tell_dialect
from skpml.cli._outputs import check_outputs, force_option, whole
from skpml.cli._wording import counted
from skpml.registry import get_method

if TYPE_CHECKING:
    from skpml.cleaning import Audit, LabelledTable

_DROP_BELOW, _KEEP_ABOVE = 0.25, 0.75


class _CleanGroup(Group):
    """``skpml clean DATA`` is short for its only unnamed command; ``apply`` has its name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_CleanGroup)
def clean() -> None:
    """Find wrong tags in a file, take out the sure ones, and make a page to review the others.

    \b
    Examples:
      skpml clean photos.csv --id file --image file -o sure.csv --report review.html
      skpml clean apply photos.csv photos_decisions.csv --settings sure.csv.json -o cleaned.csv
      skpml clean photos.csv --settings sure.csv.json --budget 200 -o other.csv --report other.html
      skpml clean news.csv --text headline -o sure_news.csv --model news.skpml

    'skpml clean run --help' tells all options; 'run' itself may be left out.
    """


@clean.command(cls=Command)
@click.argument("source", metavar="DATA", type=click.Path(path_type=Path))
@click.option("-o", "--output", "target", metavar="CLEANED", required=True, type=click.Path(path_type=Path),
              help="The same file without the tags that are dropped.")  # fmt: skip
@click.option(
    "--report", metavar="PAGE.html", type=click.Path(path_type=Path), help="Page to review doubtful tags."
)
@click.option("--audit", "listing", metavar="OUT.csv", type=click.Path(path_type=Path),
              help="Table of the doubtful tags, with reasons.")  # fmt: skip
@click.option("--model", metavar="MODEL", type=click.Path(path_type=Path),
              help="Also save a classifier trained on the cleaned tags, for 'skpml predict'.")  # fmt: skip
@click.option("--label-studio", metavar="OUT.json", type=click.Path(path_type=Path),
              help="Also write tasks with predictions for Label Studio.")  # fmt: skip
@click.option("--method", metavar="NAME", default="candidate-likelihood", show_default=True,
              help="'skpml methods' lists them all.")  # fmt: skip
@click.option("--drop-below", type=click.FloatRange(0, 1),
              help="Drop tags that are true with less probability; above --keep-above, that goes up too.  "
                   f"[default: {_DROP_BELOW}]")  # fmt: skip
@click.option("--keep-above", type=click.FloatRange(0, 1),
              help="Keep tags that are true with more; a person decides on what lies between.  "
                   f"[default: {_KEEP_ABOVE}]")  # fmt: skip
@click.option("--budget", type=click.IntRange(min=0), metavar="N",
              help="Ask about the N most useful tags instead, and decide on all others.")  # fmt: skip
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True,
              help="Each part of the rows is judged by a model of the others.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True,
              help="For all that is drawn at random.")  # fmt: skip
@settings_option(
    "Settings of an earlier run, CLEANED.json: used for all options but outputs that are not given."
)
@force_option
@table_options
def run(
    *,
    source: Path,
    target: Path,
    report: Path | None,
    listing: Path | None,
    model: Path | None,
    label_studio: Path | None,
    method: str,
    drop_below: float | None,
    keep_above: float | None,
    budget: int | None,
    folds: int,
    seed: int,
    settings: Settings | None,
    force: bool,
    **reading: Any,
) -> None:
    """Find wrong tags in DATA and write it without those that are surely wrong.

    Tags of which a person should decide stay in CLEANED; decide on the page, export the decisions, and
    'skpml clean apply' takes them out. The settings are written beside CLEANED, as CLEANED.json; --settings repeats
    the run. With --text, numeric columns are learnt from only if --feature names them, and the texts then are not.
    """
    from skpml.cleaning import audit, write_cleaned
    from skpml.tables._cleaned_files import check_suffix

    _check_method(method)
    reading = settled(reading)
    chosen = {
        "method": method,
        **_rule(drop_below, keep_above, budget),
        "n_folds": folds,
        "random_state": seed,
    }
    record = target.with_name(target.name + ".json")
    outputs = [path for path in (target, record, report, listing, model, label_studio) if path is not None]
    if label_studio is not None:
        outputs.append(label_studio.with_suffix(".xml"))
    inputs = [source, reading["embeddings"], None if settings is None else settings.path]
    check_outputs(*outputs, force=force, inputs=inputs)
    check_suffix(source, target)
    check_packages(report=report, model=model)
    with progress_bar(f"reading {source}") as update, _without_developers_warnings():
        table = read_for_cleaning(source, reading, update, seed)
        check_rows(table, folds)
        check_tasks(table, label_studio)
        if settings is not None and settings.are_of_another(source):
            say(f"Note: {source} is not the file that {settings.path} is of, or has changed since.")
        tell_table(table, reading["embeddings"])
        found = audit(table.X, table.candidates, label_names=table.label_names, progress=update, **chosen)
        update(0, None, "writing")
        beside = [path for path in outputs if path != target]
        with whole(*beside) as temporary:
            place = dict(zip(beside, temporary, strict=True))
            if report is not None:
                place[report].write_text(page(table, found, chosen), encoding="utf-8")
            if listing is not None:
                write_listing(place[listing], table, found)
            if model is not None:
                save_classifier(place[model], table, found, update)
            if label_studio is not None:
                write_tasks(place, label_studio, table, found)
            # Whole by itself, and after all others: they appear with it or not at all. The settings tell its content.
            write_cleaned(source, table, found.actions == "drop", target, overwrite=force)
            text = settings_text(source, target, chosen, reading, record.parent)
            place[record].write_text(text, encoding="utf-8")
    _tell(table, found, outputs, drop_below=chosen.get("drop_below", 0.0))
    if report is not None:
        _tell_what_is_shown(found, report, target)


@clean.command(cls=Command)
@click.argument("source", metavar="DATA", type=click.Path(path_type=Path))
@click.argument("decided", metavar="DECISIONS", type=click.Path(path_type=Path))
@click.option("-o", "--output", "target", metavar="CLEANED", required=True, type=click.Path(path_type=Path),
              help="The same file without the tags that were dropped.")  # fmt: skip
@settings_option(
    "How DATA is read, as 'skpml clean' has written it beside its output; DATA must be unchanged."
)
@force_option
@table_options
def apply(
    *, source: Path, decided: Path, target: Path, settings: Settings | None, force: bool, **reading: Any
) -> None:
    """Take the tags out of DATA that DECISIONS, exported from the review page, says to drop.

    Only tags and names of rows are read, so options about other columns may be left out. Give --id as it was given to
    'skpml clean', or --settings.
    """
    from skpml.cleaning import read_decisions, write_cleaned
    from skpml.tables._cleaned_files import check_suffix

    check_outputs(target, force=force, inputs=[source, decided, None if settings is None else settings.path])
    check_suffix(source, target)
    with progress_bar(f"reading {source}") as update:
        if settings is not None and settings.are_of_another(source):
            raise click.ClickException(
                f"{source} is not the file that {settings.path} is of, or has changed since: decisions go by the numbers "
                "of rows and might go astray; give the file as it was"
            )
        table = read_for_decisions(source, settled(reading), update)
        decisions = read_decisions(decided, table)
        tell_dialect(source, table.dialect)
        drop = decisions.drop_mask(table)
        write_cleaned(source, table, drop, target, overwrite=force)
    dropped = int(np.count_nonzero(drop))
    kept = len(decisions) - dropped
    say(f"{counted(len(decisions), 'decision')}: {counted(dropped, 'tag')} dropped, {kept:,} kept.")
    _tell_lost(table, (table.candidates > 0) & ~drop)
    say(f"Wrote {target}.")


def _check_method(name: str) -> None:
    try:
        get_method(name)
    except ValueError as error:
        raise click.UsageError(f"--method: {error}") from error


def _rule(drop_below: float | None, keep_above: float | None, budget: int | None) -> dict[str, Any]:
    """What decides about tags: a budget, or two thresholds, of which one that is said moves the other along."""
    values = settled({"drop_below": drop_below, "keep_above": keep_above, "budget": budget})
    thresholds = {name: values[name] for name in ("drop_below", "keep_above") if values[name] is not None}
    if values["budget"] is not None:
        if thresholds:
            option = f"--{next(iter(thresholds)).replace('_', '-')}"
            raise click.UsageError(
                f"--budget and {option} exclude each other: a budget asks about so many tags, whatever their probability"
            )
        return {"budget": values["budget"]}
    low, high = thresholds.get("drop_below", _DROP_BELOW), thresholds.get("keep_above", _KEEP_ABOVE)
    if low > high:
        said = said_by_hand().intersection(thresholds)
        if len(said) != 1:
            raise click.UsageError(f"--drop-below must not be above --keep-above, got {low:g} and {high:g}")
        low = high = thresholds[said.pop()]
    return {"drop_below": low, "keep_above": high}


@contextmanager
def _without_developers_warnings() -> Iterator[None]:
    """Keep away advice about parameters of methods, which this command does not take."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def _tell_what_is_shown(found: Audit, report: Path, target: Path) -> None:
    from skpml.review import select_doubts

    n_shown = len(select_doubts(found))
    if n_shown < len(found.doubts):
        say(
            f"{report} shows {n_shown:,} of {len(found.doubts):,} doubtful tags, the most useful to check; apply its "
            f"decisions to {target}, which is without the dropped ones already."
        )


def _tell(table: LabelledTable, found: Audit, outputs: list[Path], *, drop_below: float) -> None:
    estimate, low, high = found.wrong.total
    asked = sum(doubt.action == "ask" for doubt in found.doubts)
    dropped = int(np.count_nonzero(found.actions == "drop"))
    n_rows, n_labels = table.candidates.shape
    n_tags = int(table.candidates.sum())
    say(f"{counted(n_rows, 'row')}, {counted(n_labels, 'label')}, {counted(n_tags, 'tag')}.")
    are = "is" if round(estimate) == 1 else "are"
    say(f"About {counted(round(estimate), 'tag')} {are} wrong (between {low:,.0f} and {high:,.0f}).")
    are, stay = ("is", "stays") if asked == 1 else ("are", "stay")
    say(f"Dropped {dropped:,}; {asked:,} {are} for a person to decide and {stay} for now.")
    withheld = sum(doubt.action == "ask" and doubt.confidence < drop_below for doubt in found.doubts)
    if withheld:
        looks = "looks" if withheld == 1 else "look"
        say(
            f"Of these, {withheld:,} {looks} wrong, but the rows tell too little to drop such tags without a person."
        )
    _tell_lost(table, found.cleaned() > 0)
    for path in outputs:
        say(f"Wrote {path}.")


def _tell_lost(table: LabelledTable, left: Any) -> None:
    lost = int(np.count_nonzero(table.candidates.any(axis=1) & ~left.any(axis=1)))
    if lost:
        say(f"{counted(lost, 'row')} {'has' if lost == 1 else 'have'} lost all tags.")
