"""``skpml clean``: find wrong tags in a file, drop the certain ones, and write a page to review the others."""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from click.core import ParameterSource

from skpml import __version__
from skpml._writing import replacing
from skpml.cli import _console as ui
from skpml.cli._checked import Checked, keep_decisions, read_checked
from skpml.cli._clean_output import show_emptied, show_next, show_summary, write_suggestions
from skpml.cli._votes import Voted, read_voted
from skpml.registry import get_method

if TYPE_CHECKING:
    from skpml.cleaning import Audit
    from skpml.tables import Table

_DROP_BELOW, _KEEP_ABOVE = 0.25, 0.75
# With fewer rows, nothing can be chosen by held-out rows.
_FEWEST_ROWS = 6


class _CleanGroup(click.Group):
    """``skpml clean DATA`` is short for ``skpml clean run DATA``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_CleanGroup)
def clean() -> None:
    """Find wrong tags in a file, drop the certain ones, and write a page to review the others.

    \b
    Examples:
      skpml clean photos.csv --id file --image file -o sure.csv --report review.html
      skpml clean photos.csv --settings sure.csv.json --decisions photos_decisions.csv -o surer.csv
      skpml clean apply photos.csv photos_decisions.csv --settings sure.csv.json -o cleaned.csv
      skpml clean photos.csv --settings sure.csv.json --budget 200 -o other.csv --report other.html
      skpml clean news.csv --text headline -o sure_news.csv --model news.skpml

    'skpml clean run --help' lists all options; the word 'run' may be omitted.
    """


# The settings file: written next to the cleaned file, read by --settings.

# Arguments of the audit, and the options that set them.
_AUDIT = {"method": "method", "fast": "fast", "drop_below": "drop_below", "keep_above": "keep_above", "budget": "budget",
          "batch_size": "batch", "n_folds": "folds", "random_state": "seed"}  # fmt: skip
_COUNTS = ("budget", "batch_size", "n_folds", "random_state")
# What a person has checked.
_CHECKED = ("decisions", "verified_columns")
_VOTES = ("votes", "vote_columns")
_EXCLUSIVE = (("tags", "labels"), ("features", "embeddings"), ("categories", "embeddings"),
              ("budget", "drop_below"), ("budget", "keep_above"))  # fmt: skip
_FILES = ("embeddings", "xml", "decisions", "votes")


@dataclass(frozen=True)
class _Settings:
    path: Path
    digests: tuple[str, str]
    """Of the file that was cleaned, and of the cleaned file; both have the same rows."""

    def describes(self, source: Path) -> bool:
        """Whether the settings are those of this file."""
        return not source.exists() or _digest(source) in self.digests


def _settings_option(help: str) -> Callable[..., Any]:
    return click.option("--settings", metavar="FILE.json", type=click.Path(path_type=Path, exists=True, dir_okay=False),
                        is_eager=True, callback=_load_settings, help=help)  # fmt: skip


def _load_settings(context: click.Context, _: click.Parameter, path: Path | None) -> _Settings | None:
    """Make the values of a settings file the defaults of the other options."""
    if path is None:
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        reading, audit, checked = {**content["reading"]}, {**content["audit"]}, {**content.get("checked", {})}
        voted = {**content.get("voted", {})}
        settings = _Settings(path, (str(content["sha256"]), str(content["cleaned_sha256"])))
    except (ValueError, KeyError, TypeError, RecursionError):
        problem = f"{path} is not a settings file; give CLEANED.json, written by 'skpml clean'"
        raise click.ClickException(problem) from None
    parts = (("reading", reading, ui.TABLE_OPTIONS), ("audit", audit, _AUDIT), ("checked", checked, _CHECKED),
             ("voted", voted, _VOTES))  # fmt: skip
    for part, values, known in parts:
        if unknown := sorted(set(values).difference(known)):
            raise click.ClickException(f"{path}: {part} has no setting {unknown[0]!r}")
    for part, values in (("reading", reading), ("checked", checked), ("voted", voted)):
        for name, value in values.items():
            is_flag = name in ui.FLAGS and value is True
            if not is_flag and not all(
                isinstance(text, str) for text in (value if isinstance(value, list) else [value])
            ):
                raise click.ClickException(f"{path}: {part}.{name} must be text")
    for name, value in audit.items():
        if name == "fast" and value is True:
            continue
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise click.ClickException(
                f"{path}: audit.{name} must be a number or text, got {json.dumps(value)}"
            )
        if name in _COUNTS and isinstance(value, float):
            raise click.ClickException(f"{path}: audit.{name} must be a whole number, got {value}")
    for values in (reading, checked, voted):
        values |= {name: str(path.parent / values[name]) for name in _FILES if name in values}
    values = {**reading, **checked, **voted, **{_AUDIT[name]: value for name, value in audit.items()}}
    options = {parameter.name for parameter in context.command.params}
    context.default_map = {name: value for name, value in values.items() if name in options}
    return settings


def _on_command_line() -> set[str]:
    """Return the options that were given on the command line and not by a settings file."""
    context = click.get_current_context()
    given = ParameterSource.COMMANDLINE
    return {name for name in context.params if context.get_parameter_source(name) is given}


def _resolve(values: dict[str, Any]) -> dict[str, Any]:
    """Drop values of the settings file that exclude an option on the command line."""
    given = _on_command_line()
    pairs = [pair for one, other in _EXCLUSIVE for pair in ((one, other), (other, one))]
    dropped = {other for one, other in pairs if one in given and other not in given and other in values}
    return {**values, **{name: () if isinstance(values[name], tuple) else None for name in dropped}}


def _format_settings(
    source: Path, cleaned: Path, digests: tuple[str, str], *, audit: dict[str, Any], reading: dict[str, Any],
    checked: dict[str, Any], voted: dict[str, Any],
) -> str:  # fmt: skip
    """Return the settings file: what reproduces the output, and digests that identify the files."""
    # In a fixed order, since options have that of the command line.
    stored, stored_checked, stored_votes = (
        {
            name: _store(name, value, cleaned)
            for name in names
            if (value := values[name]) not in (None, (), False)
        }
        for names, values in ((ui.TABLE_OPTIONS, reading), (_CHECKED, checked), (_VOTES, voted))
    )
    content = {"skpml": __version__, "data": source.name, "sha256": digests[0], "cleaned_sha256": digests[1],
               "audit": audit, "reading": stored}  # fmt: skip
    content |= {"checked": stored_checked} if stored_checked else {}
    content |= {"voted": stored_votes} if stored_votes else {}
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    # Bytes of a file name that are not text have no UTF-8 form.
    return re.sub("[\ud800-\udfff]", lambda found: f"\\u{ord(found[0]):04x}", text)


def _store(name: str, value: Any, cleaned: Path) -> Any:
    """Return the value of an option for the settings file: paths are relative to it."""
    if name not in _FILES:
        return value
    path = os.path.abspath(value)
    with suppress(ValueError):  # on another drive there is no relative path
        path = os.path.relpath(path, cleaned.parent)
    return path


def _digest(path: Path) -> str:
    if path.is_dir():
        parts = (f"{part.name} {_digest(part)}" for part in sorted(path.iterdir()) if part.is_file())
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# Votes: options of both commands.


def _vote_options(command: Callable[..., Any]) -> Callable[..., Any]:
    table = click.option("--votes", metavar="VOTES.csv", type=click.Path(path_type=Path, exists=True, dir_okay=False),
                         help="Votes of several annotators, one per line: the tags are the labels with votes, and DATA "
                              "needs none. An empty label: the annotator gave the row none.")  # fmt: skip
    columns = click.option("--vote-columns", metavar="ROW ANNOTATOR LABEL", nargs=3,
                           help="Columns of VOTES.csv.  [default: the --id column, id or, without --id, row; annotator; "
                                "label]")  # fmt: skip
    return table(columns(command))


@contextmanager
def _read_rows(
    source: Path,
    reading: dict[str, Any],
    votes: Path | None,
    vote_columns: Sequence[str] | None,
    **options: Any,
) -> Iterator[Voted]:
    """Read a table with its own tags, or with those that have votes."""
    from skpml.tables import TableError

    if votes is not None:
        with read_voted(source, reading, votes, vote_columns, **options) as voted:
            yield voted
        return
    if vote_columns:
        raise click.UsageError("--vote-columns is for --votes, which is not given")
    try:
        table = ui.read_source(source, reading, **options)
    except TableError as error:
        if isinstance(error.value, tuple) and {"annotator", "label"} <= set(error.value):
            raise click.ClickException(
                f"{source} looks like a table of votes: give it as --votes {source}, and as DATA a table with one line "
                "per row and its features"
            ) from error
        raise
    yield Voted(table, {}, "", ())


# skpml clean run


@clean.command()
@click.argument("source", metavar="DATA", type=ui.path_type)
@ui.output_option(
    "CLEANED", "File to write: DATA without dropped and with added tags.", "-o", "--output", "target"
)
@ui.output_option("PAGE.html", "Also write a page to review doubtful tags.", "--report")
@ui.output_option("OUT.csv", "Also write a table of the doubtful tags, with reasons.", "--audit", "listing")
@ui.output_option("MODEL", "Also save a classifier trained on the cleaned tags, for 'skpml predict'.",
                  "--model")  # fmt: skip
@ui.output_option(
    "OUT.csv", "Also write a table of tags that may be missing, the most likely first.", "--suggest"
)
@ui.output_option("OUT.json", "Also write tasks with predictions for Label Studio.", "--label-studio")
@ui.method_option
@click.option("--fast", is_flag=True,
              help="Take a first look, in less time: tags are ordered a little worse, and none is dropped.")  # fmt: skip
@click.option("--drop-below", type=click.FloatRange(0, 1),
              help="Drop tags whose probability of being correct is below this value.  [default: 0.25]")  # fmt: skip
@click.option("--keep-above", type=click.FloatRange(0, 1),
              help="Keep tags whose probability is above this value; a person decides tags in between. If only one of "
                   "the two is given and they cross, both get its value.  [default: 0.75]")  # fmt: skip
@click.option("--budget", type=click.IntRange(min=0), metavar="N",
              help="Instead of thresholds: ask about the N most useful tags and decide all others; those that may not be "
                   "dropped automatically are kept.")  # fmt: skip
@click.option("--decisions", metavar="FILE.csv", type=click.Path(path_type=Path, exists=True, dir_okay=False),
              help="What you decided on the page, as exported. It is never overruled and improves the rest.")  # fmt: skip
@click.option("--verified-columns", metavar="YES NO", nargs=2,
              help="Two columns of DATA that list the tags which a person confirmed and rejected. Confirmed ones that a "
                   "row lacks are added.")  # fmt: skip
@_vote_options
@click.option("--batch", type=click.IntRange(min=0), metavar="N", default=100, show_default=True,
              help="Number of tags that the page asks you to check next; 0 for none.")  # fmt: skip
@click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True,
              help="Folds of cross-validation: each row is judged by a model of the other folds.")  # fmt: skip
@ui.seed_option
@_settings_option("Settings of an earlier run, CLEANED.json: default values of all options except outputs.")
@ui.force_option
@ui.table_options
def run(
    *, source: Path, target: Path, report: Path | None, listing: Path | None, model: Path | None,
    suggest: Path | None, label_studio: Path | None, method: str, fast: bool, drop_below: float | None,
    keep_above: float | None, budget: int | None, decisions: Path | None,
    verified_columns: tuple[str, str] | None, votes: Path | None, vote_columns: tuple[str, str, str] | None, batch: int,
    folds: int, seed: int, settings: _Settings | None, force: bool, reading: dict[str, Any],
) -> None:  # fmt: skip
    """Find wrong tags in DATA and write a copy without those that are almost certainly wrong.

    Tags that a person should decide stay in CLEANED. The page first asks about a batch of tags, some of them drawn at
    random: check them, export the decisions, and run again with --decisions. Repeat until the numbers are good enough.
    'skpml clean apply' applies decisions without a model. The settings are written next to CLEANED, as CLEANED.json;
    --settings repeats the run. The model learns from the texts of --text and from all columns of numbers and of few
    categories; if --feature names columns, from these alone. Missing values are filled in.
    """
    from sklearn.exceptions import ConvergenceWarning

    from skpml import review
    from skpml.cleaning import audit
    from skpml.tables import check_suffix

    reading = _resolve(reading)
    rule = _decision_rule(drop_below, keep_above, budget)
    keep = rule.get("keep_above", _KEEP_ABOVE)
    arguments = {"method": method, **rule, "batch_size": batch, "n_folds": folds, "random_state": seed}
    arguments |= {"fast": True} if fast else {}
    verified_columns, vote_columns = verified_columns or None, vote_columns or None
    record = target.with_name(target.name + ".json")
    outputs = [
        path for path in (target, record, report, listing, model, suggest, label_studio) if path is not None
    ]
    if fast and get_method(method).name != "candidate-likelihood":
        raise click.UsageError(f"--fast belongs to the method candidate-likelihood, not to {method}")
    if label_studio is not None:
        outputs.append(label_studio.with_suffix(".xml"))
    inputs = [
        source,
        reading["embeddings"],
        reading["xml"],
        decisions,
        votes,
        None if settings is None else settings.path,
    ]
    ui.check_outputs(*outputs, force=force, inputs=inputs)
    check_suffix(source, target)
    if report is not None:
        review.require_page_packages()
    if model is not None:
        from skpml.io import require_skops

        require_skops()
    with ui.progress_bar(f"reading {source}") as update, warnings.catch_warnings(), ExitStack() as stack:
        # Advice about parameters that this command does not have.
        warnings.simplefilter("ignore", ConvergenceWarning)
        ignore = (*reading["ignore"], *(verified_columns or ()))
        rows = _read_rows(
            source, {**reading, "ignore": ignore}, votes, vote_columns, random_state=seed, progress=update
        )
        voted = stack.enter_context(rows)
        table = voted.table
        _check_table(table, folds, label_studio)
        checked = read_checked(table, decisions, verified_columns, random_state=seed)
        if settings is not None and not settings.describes(source):
            ui.say(f"Note: {source} is not the file that {settings.path} describes, or it has changed since.")
        ui.show_reading(table, _describe(table, reading["embeddings"], voted.describe))
        ui.show_labels(table)
        for note in (*voted.notes, *checked.notes):
            ui.say(f"Note: {note}.")
        known = {"verified": checked.verified, "at_random": checked.at_random}
        options = {**arguments, **known, "label_names": table.label_names, "progress": update}
        options |= voted.arguments or {"Y": table.candidates}
        options |= _suit_features(table, method, fast=fast)
        found = keep_decisions(audit(table.X, **options), checked.decisions)
        update(0, None, "writing")
        with replacing(*outputs, overwrite=force, like=source) as paths:
            temporary = dict(zip(outputs, paths, strict=True))
            _write_cleaned(
                table, found.actions == "drop", checked.decisions.add_mask(table), temporary[target]
            )
            if report is not None:
                page = _render_page(voted, found, checked, arguments)
                temporary[report].write_text(page, encoding="utf-8")
            if listing is not None:
                _write_listing(temporary[listing], table, found)
            if suggest is not None:
                write_suggestions(temporary[suggest], table, found, keep)
            if model is not None:
                update(0, None, "training on the cleaned tags")
                ui.save_table_model(found.train_model(table.X), temporary[model], table)
            if label_studio is not None:
                tasks, config = temporary[label_studio], temporary[label_studio.with_suffix(".xml")]
                review.write_label_studio(table, found, tasks, config=config, overwrite=True)
            chosen = {"decisions": decisions, "verified_columns": verified_columns}
            digests = _digest(source), _digest(temporary[target])
            text = _format_settings(source, target, digests, audit=arguments, reading=reading, checked=chosen,
                                    voted={"votes": votes, "vote_columns": vote_columns})  # fmt: skip
            temporary[record].write_text(text, encoding="utf-8")
    show_summary(table, found, checked, rule.get("drop_below", 0.0), keep)
    for path in outputs:
        ui.say(f"Wrote {path}.")
    if report is not None:
        _show_page_limit(found, report, target)
        if table.images is not None and report.parent.resolve() != source.parent.resolve():
            ui.say(f"Note: the page looks for images beside itself; move it to the folder of {source}.")
    show_next(found, report)


def _decision_rule(drop_below: float | None, keep_above: float | None, budget: int | None) -> dict[str, Any]:
    """Return a budget, or two thresholds; a threshold given alone moves the other if they cross."""
    values = _resolve({"drop_below": drop_below, "keep_above": keep_above, "budget": budget})
    thresholds = {name: values[name] for name in ("drop_below", "keep_above") if values[name] is not None}
    if values["budget"] is not None:
        if thresholds:
            option = f"--{next(iter(thresholds)).replace('_', '-')}"
            raise click.UsageError(f"--budget and {option} exclude each other; give one of them")
        return {"budget": values["budget"]}
    low, high = thresholds.get("drop_below", _DROP_BELOW), thresholds.get("keep_above", _KEEP_ABOVE)
    if low > high:
        chosen = _on_command_line().intersection(thresholds)
        if len(chosen) != 1:
            raise click.UsageError(f"--drop-below must not exceed --keep-above, got {low:g} and {high:g}")
        low = high = thresholds[chosen.pop()]
    return {"drop_below": low, "keep_above": high}


def _suit_features(table: Table, method: str, *, fast: bool) -> dict[str, Any]:
    """Return the arguments of the audit that suit the kinds of features, as far as the method takes them."""
    found = get_method(method)
    takes_views = "views" in found().get_params()
    options: dict[str, Any] = {"views": table.views if len(table.views) > 1 and takes_views else None}
    if table.from_texts and found.name == "candidate-likelihood" and not fast:
        options["family"] = "logistic"
    return options


def _check_table(table: Table, folds: int, label_studio: Path | None) -> None:
    """Refuse, before the work, a table with too few rows or with labels that an output cannot hold."""
    from skpml.review import check_label_names

    n_rows = len(table.candidates)
    if n_rows < _FEWEST_ROWS:
        problem = f"{table.path} has {n_rows} rows; cross-validation needs at least {_FEWEST_ROWS}"
        raise click.ClickException(problem)
    if folds > n_rows:
        raise click.UsageError(f"--folds {folds}: {table.path} has only {n_rows:,} rows, so use fewer folds")
    if label_studio is not None:
        check_label_names(table.label_names)


def _render_page(voted: Voted, found: Audit, checked: Checked, arguments: dict[str, Any]) -> str:
    from skpml.review import render_review

    table = voted.table
    votes = {**voted.arguments, "annotator_names": voted.annotators} if voted.arguments else None
    settings = {"method": get_method(arguments["method"]).title, "folds": str(arguments["n_folds"])}
    rule = [name for name in ("drop_below", "keep_above", "budget") if name in arguments]
    settings |= {name.replace("_", " "): str(arguments[name]) for name in rule}
    settings |= {} if table.dialect is None else {"file": str(table.dialect)}
    settings["scikit-pml"] = __version__
    return render_review(table, found, decisions=checked.decisions, votes=votes, settings=settings)


def _write_listing(path: Path, table: Table, found: Audit) -> None:
    """Write the doubtful tags as a table."""
    from skpml.tables import write_rows

    rows = (
        [rank, table.ids[doubt.row], doubt.row, table.label_names[doubt.label], f"{doubt.confidence:.4f}",
         doubt.action, str(doubt.reason)]
        for rank, doubt in enumerate(found.doubts, start=1)
    )  # fmt: skip
    write_rows(path, ["rank", "id", "row", "label", "confidence", "action", "reason"], rows)


def _write_cleaned(table: Table, drop: Any, add: Any, target: Path) -> None:
    if table.dataset is None:
        from skpml.tables import write_cleaned as write
    else:
        from skpml.datasets import write_cleaned_copy as write

    write(table, drop, target, add=add)


def _describe(table: Table, embeddings: str | None, voted: str) -> str:
    """Return which columns hold the tags and what the model learns from."""
    from skpml.tables import format_names

    tags, columns = table.columns.tags, table.columns.label_columns
    labels = f"column {tags!r}"
    if table.dataset is not None:
        labels = "the labels of the data set"
    elif tags is None:
        labels = f"{ui.format_count(len(columns), 'column')}: {format_names(columns)}"
    return f"{voted or f'Tags from {labels}'}; learning from {ui.describe_features(table, embeddings)}."


def _show_page_limit(found: Audit, report: Path, target: Path) -> None:
    from skpml.review import select_doubts

    n_shown = len(select_doubts(found))
    if n_shown < len(found.doubts):
        ui.say(
            f"{report} shows {n_shown:,} of {len(found.doubts):,} doubtful tags, the most useful ones; apply its "
            f"decisions to {target}, in which the dropped tags are missing already."
        )


# skpml clean apply


@clean.command()
@click.argument("source", metavar="DATA", type=ui.path_type)
@click.argument("decided", metavar="DECISIONS", type=ui.path_type)
@ui.output_option(
    "CLEANED", "File to write: DATA without dropped and with added tags.", "-o", "--output", "target"
)
@_vote_options
@_settings_option("CLEANED.json of 'skpml clean': how to read DATA, which must be unchanged.")
@ui.force_option
@ui.table_options
def apply(
    *, source: Path, decided: Path, target: Path, votes: Path | None, vote_columns: tuple[str, str, str] | None,
    settings: _Settings | None, force: bool, reading: dict[str, Any],
) -> None:  # fmt: skip
    """Drop from DATA and add to it the tags that DECISIONS, exported from the review page, marks so.

    Only tags and row names are read, so options about other columns may be omitted. Give --settings, or the same --id as
    to 'skpml clean'.
    """
    from skpml.cleaning import read_decisions
    from skpml.tables import check_suffix

    inputs = [source, decided, votes, None if settings is None else settings.path]
    ui.check_outputs(target, force=force, inputs=inputs)
    check_suffix(source, target)
    with ui.progress_bar(f"reading {source}") as update, ExitStack() as stack:
        if settings is not None and not settings.describes(source):
            raise click.ClickException(
                f"{source} is not the file that {settings.path} describes, or it has changed since: decisions refer to "
                "row numbers and could be applied to wrong rows; give the original file"
            )
        rows = _read_rows(source, _only_labels(_resolve(reading)), votes, vote_columns, progress=update)
        table = stack.enter_context(rows).table
        decisions = read_decisions(decided, table)
        ui.show_reading(table)
        drop, add = decisions.drop_mask(table), decisions.add_mask(table)
        with replacing(target, overwrite=force, like=source) as (temporary,):
            _write_cleaned(table, drop, add, temporary)
    dropped, added = int(np.count_nonzero(drop)), int(np.count_nonzero(add))
    kept = len(decisions) - dropped - added
    tags = f"{ui.format_count(dropped, 'tag')} dropped, {kept:,} kept{f', {added:,} added' if added else ''}"
    ui.say(f"{ui.format_count(len(decisions), 'decision')}: {tags}.")
    show_emptied(table, (table.candidates > 0) & ~drop | add)
    ui.say(f"Wrote {target}.")


def _only_labels(reading: dict[str, Any]) -> dict[str, Any]:
    """Return options that read labels and row names; columns of other kinds are ignored."""
    named = (reading["text"], reading["image"], *reading["features"], *reading["categories"])
    others = [name for name in named if name is not None]
    ignore = (*reading["ignore"], *(name for name in others if name != reading["id"]))
    nothing = dict.fromkeys(("text", "image", "image_model", "embeddings"))
    return {**reading, **nothing, "features": [], "categories": (), "ignore": ignore}
