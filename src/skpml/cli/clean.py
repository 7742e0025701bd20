"""``skpml clean``: from a file of doubtful tags to a cleaned one, with a page for a person to review the rest."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np

from skpml import __version__
from skpml.cli.base import Command, Group
from skpml.cli.console import progress_bar, say, tell_dialect
from skpml.cli.outputs import check_outputs, force_option, whole, write_table
from skpml.cli.reading import DIALECT_OPTIONS, delimiter_of
from skpml.registry import get_method

_COLUMNS = ("tags", "labels", "text", "image", "id", "features", "embeddings", "separator", "ignore",
            "encoding", "delimiter", "quote", "decimal")  # fmt: skip

_READING = (
    click.option("--tags", metavar="COLUMN", help='Column that lists the tags, as in "lake;sea".  [default: tags]'),
    click.option("--label", "labels", metavar="COLUMN", multiple=True, help="A 0/1 column of one label; repeat it."),
    click.option("--text", metavar="COLUMN", help="Column of texts: shown, and learnt from without --feature."),
    click.option("--image", metavar="COLUMN", help="Column of paths of images, to be shown."),
    click.option("--id", metavar="COLUMN", help="Column that names the rows.  [default: their numbers]"),
    click.option("--feature", "features", metavar="COLUMN", multiple=True,
                 help="A numeric column to learn from; repeat it.  [default: all that are nothing else]"),
    click.option("--embeddings", metavar="FILE", help="An .npy or .npz file with a row of numbers for each row."),
    click.option("--separator", metavar="TEXT", help='What stands between tags.  [default: ";"]'),
    click.option("--ignore", metavar="COLUMN", multiple=True, help="A column to pass over; repeat it."),
    *DIALECT_OPTIONS,
)  # fmt: skip


def _reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_READING):
        command = option(command)
    return command


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
      skpml clean photos.csv -o cleaned.csv --report review.html
      skpml clean photos.csv --tags tags --id file --image file -o cleaned.csv --report review.html
      skpml clean news.csv --text headline -o cleaned.csv --model news.skpml
      skpml clean apply photos.csv decisions.csv -o cleaned.csv

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
@click.option("--drop-below", type=click.FloatRange(0, 1), default=0.25, show_default=True,
              help="Drop tags that are true with less probability.")  # fmt: skip
@click.option("--keep-above", type=click.FloatRange(0, 1), default=0.75, show_default=True,
              help="Keep tags that are true with more; a person decides on what lies between.")  # fmt: skip
@click.option("--budget", type=click.IntRange(min=0), metavar="N",
              help="Ask about the N most useful tags instead, and decide on all others.")  # fmt: skip
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True,
              help="Each part of the rows is judged by a model of the others.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True,
              help="For all that is drawn at random.")  # fmt: skip
@force_option
@_reading_options
def run(
    *,
    source: Path,
    target: Path,
    report: Path | None,
    listing: Path | None,
    model: Path | None,
    label_studio: Path | None,
    method: str,
    drop_below: float,
    keep_above: float,
    budget: int | None,
    folds: int,
    seed: int,
    force: bool,
    **reading: Any,
) -> None:
    """Find wrong tags in DATA and write it without those that are surely wrong.

    Tags of which a person should decide stay in CLEANED; decide on the page, export the decisions, and
    'skpml clean apply' takes them out. The settings are written beside CLEANED, as CLEANED.json.
    """
    from skpml.cleaning import audit, write_cleaned

    _check_method(method)
    record = target.with_name(target.name + ".json")
    named = [target, record, report, listing, model, label_studio]
    outputs = [path for path in named if path is not None]
    if label_studio is not None:
        outputs.append(label_studio.with_suffix(".xml"))
    check_outputs(*outputs, force=force, inputs=[source, reading["embeddings"]])
    chosen = {"method": method, "drop_below": drop_below, "keep_above": keep_above, "budget": budget, "n_folds": folds,
              "random_state": seed}  # fmt: skip
    with progress_bar(f"reading {source}") as update:
        table = _read(source, reading, update, seed)
        for note in table.notes:
            say(note)
        found = audit(table.X, table.candidates, label_names=table.label_names, progress=update, **chosen)  # type: ignore[arg-type]
        update(0, None, "writing")
        drop = found.actions == "drop"
        beside = [path for path in outputs if path != target]
        with whole(*beside) as temporary:
            place = dict(zip(beside, temporary, strict=True))
            place[record].write_text(_settings(source, chosen, reading), encoding="utf-8")
            if report is not None:
                place[report].write_text(_page(table, found, chosen), encoding="utf-8")
            if listing is not None:
                _write_listing(place[listing], table, found)
            if model is not None:
                _save_model(place[model], table, found, update)
            if label_studio is not None:
                _write_tasks(place, label_studio, table, found)
            # Whole by itself, and last: the others appear with it or not at all.
            write_cleaned(source, table, drop, target, overwrite=force)
    _tell(table, found, outputs)
    if report is not None:
        _tell_what_is_shown(found, report, target)


@clean.command(cls=Command)
@click.argument("source", metavar="DATA", type=click.Path(path_type=Path))
@click.argument("decided", metavar="DECISIONS", type=click.Path(path_type=Path))
@click.option("-o", "--output", "target", metavar="CLEANED", required=True, type=click.Path(path_type=Path),
              help="The same file without the tags that were dropped.")  # fmt: skip
@click.option("--settings", metavar="FILE.json", type=click.Path(path_type=Path, exists=True),
              help="How DATA is read, as 'skpml clean' has written it beside its output.")  # fmt: skip
@force_option
@_reading_options
def apply(
    *, source: Path, decided: Path, target: Path, settings: Path | None, force: bool, **reading: Any
) -> None:
    """Take the tags out of DATA that DECISIONS, exported from the review page, says to drop."""
    from skpml.cleaning import read_decisions, write_cleaned

    check_outputs(target, force=force, inputs=[source, decided, settings])
    if settings is not None:
        reading = {**_known_reading(settings), **_given(reading)}
    with progress_bar(f"reading {source}") as update:
        table = _read(source, reading, update, 0)
        decisions = read_decisions(decided, table)
        write_cleaned(source, table, decisions.drop_mask(table), target, overwrite=force)
    dropped = int(np.count_nonzero(~decisions.keep))
    tell_dialect(source, table.dialect)
    say(f"{len(decisions):,} decisions: {dropped:,} tags dropped, {len(decisions) - dropped:,} kept.")
    say(f"Wrote {target}.")


def _check_method(name: str) -> None:
    try:
        get_method(name)
    except ValueError as error:
        raise click.UsageError(f"--method: {error}") from error


def _read(source: Path, reading: dict[str, Any], update: Callable[..., None], seed: int) -> Any:
    from skpml.cleaning import read_table

    given: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value for name, value in _given(reading).items()
    }
    if "delimiter" in given:
        given["delimiter"] = delimiter_of(given["delimiter"])
    return read_table(source, random_state=seed, progress=update, **given)


def _given(reading: dict[str, Any]) -> dict[str, Any]:
    """The options of reading that were given; an empty text is a value too."""
    return {name: value for name, value in reading.items() if value not in (None, ())}


def _settings(source: Path, chosen: dict[str, Any], reading: dict[str, Any]) -> str:
    content = {"skpml": __version__, "data": source.name, "audit": chosen, "reading": _given(reading)}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _known_reading(path: Path) -> dict[str, Any]:
    try:
        reading = json.loads(path.read_text(encoding="utf-8"))["reading"]
        known = {name: tuple(value) if isinstance(value, list) else value for name, value in reading.items()}
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise click.ClickException(
            f"{path} is not a file of settings; give the .json that 'skpml clean' wrote beside its output"
        ) from error
    if strange := sorted(set(known) - set(_COLUMNS)):
        raise click.ClickException(f"{path}: reading has no setting {strange[0]!r}")
    return known


def _page(table: Any, found: Any, chosen: dict[str, Any]) -> str:
    from skpml.cleaning.page import render_review
    from skpml.cleaning.payload import review_payload

    settings = [("method", get_method(chosen["method"]).title), ("folds", str(chosen["n_folds"]))]
    if chosen["budget"] is None:
        settings += [("drop below", f"{chosen['drop_below']:g}"), ("keep above", f"{chosen['keep_above']:g}")]
    else:
        settings += [("budget", str(chosen["budget"]))]
    if table.dialect is not None:
        settings.append(("file", str(table.dialect)))
    return render_review(review_payload(table, found, settings=[*settings, ("scikit-pml", __version__)]))


def _write_listing(path: Path, table: Any, found: Any) -> None:
    header = ["rank", "id", "row", "label", "confidence", "action", "reason"]
    write_table(
        path,
        header,
        (
            [rank, table.ids[doubt.row], doubt.row, table.label_names[doubt.label], f"{doubt.confidence:.4f}",
             doubt.action, str(doubt.reason)]
            for rank, doubt in enumerate(found.doubts, start=1)
        ),
    )  # fmt: skip


def _save_model(path: Path, table: Any, found: Any, update: Callable[..., None]) -> None:
    """A classifier of the cleaned tags; it takes what the table gives: columns, or texts."""
    from sklearn.pipeline import Pipeline

    from skpml.io import save_model

    update(0, None, "training on the cleaned tags")
    model = found.classifier(table.X)
    names = table.feature_names if table.feature_kind == "columns" else None
    if table.text_transformer is not None:
        names = [table.text_name]
        model = Pipeline([("text", table.text_transformer), ("model", model)])
    save_model(
        model, path, label_names=table.label_names, feature_names=names, feature_kind=table.feature_kind
    )


def _write_tasks(place: dict[Path, Path], target: Path, table: Any, found: Any) -> None:
    from skpml.cleaning import write_label_studio

    write_label_studio(
        table, found.confidences, found.cleaned() > 0, place[target], config=place[target.with_suffix(".xml")],
        overwrite=True,
    )  # fmt: skip


def _tell_what_is_shown(found: Any, report: Path, target: Path) -> None:
    from skpml.cleaning.payload import doubts_to_show

    n_shown = len(doubts_to_show(found))
    if n_shown < len(found.doubts):
        say(
            f"{report} shows {n_shown:,} of {len(found.doubts):,} doubtful tags, the most useful to check; apply its "
            f"decisions to {target}, which is without the dropped ones already."
        )


def _tell(table: Any, found: Any, outputs: list[Path]) -> None:
    estimate, low, high = found.wrong.total
    asked = sum(doubt.action == "ask" for doubt in found.doubts)
    dropped = int(np.count_nonzero(found.actions == "drop"))
    n_tags = int(table.candidates.sum())
    tell_dialect(table.path, table.dialect)
    say(f"{len(table.candidates):,} rows, {len(table.label_names):,} labels, {n_tags:,} tags.")
    say(f"About {estimate:,.0f} tags are wrong (between {low:,.0f} and {high:,.0f}).")
    say(f"Dropped {dropped:,}; {asked:,} are for a person to decide and stay for now.")
    for path in outputs:
        say(f"Wrote {path}.")
