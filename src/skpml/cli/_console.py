"""What all commands share: printing, progress, output files, and the options that describe input files."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from skpml._writing import OutputExistsError

if TYPE_CHECKING:
    from skpml.tables import Profile
    from skpml.tables import Table as LabelTable

Update = Callable[[int, int | None, str], None]

# Without a terminal there is no width to respect, so tables are as wide as they need to be.
_PIPE_WIDTH = 200

_MOST_UNUSED = 10

# All but tabs and line feeds.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")

path_type = click.Path(path_type=Path)
force_option = click.option("--force", is_flag=True, help="Replace output files that exist.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
seed_option = click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True,
                           help="Seed of the random number generator.")  # fmt: skip


def output_option(metavar: str, help: str, *names: str) -> Callable[..., Any]:
    """Return an option that names a file to write; ``-o`` is required."""
    return click.option(*names, metavar=metavar, required="-o" in names, type=path_type, help=help)


def _check_method(_: click.Context, __: click.Parameter, name: str) -> str:
    from skpml.registry import get_method

    try:
        return get_method(name).name
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


method_option = click.option("--method", metavar="NAME", default="candidate-likelihood", show_default=True,
                             callback=_check_method, help="Method; 'skpml methods' lists all.")  # fmt: skip


# Printing: results go to stdout, everything else to stderr.


def stdout_console() -> Console:
    """Return the console for results."""
    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)


def stderr_console() -> Console:
    """Return the console for progress, warnings and errors."""
    return Console(stderr=True, highlight=False)


def say(message: str, *, console: Console | None = None, style: str = "") -> None:
    """Print one line, not wrapped: by default a result, not colored."""
    # The bytes of a file name that are not text are replaced: a terminal cannot print them.
    text = Text(_show_controls(message.encode("utf-8", "replace").decode()), style=style)
    (console or stdout_console()).print(text, soft_wrap=True)


def _show_controls(text: str) -> str:
    """Return a text with control characters as codes: names in a file of a stranger must not steer the terminal."""
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def show_error(message: str) -> None:
    """Print one red line on stderr."""
    say(f"error: {message}", console=stderr_console(), style="bold red")


def show_warning(message: str) -> None:
    """Print one yellow line on stderr."""
    say(f"warning: {message}", console=stderr_console(), style="yellow")


def format_error(error: BaseException) -> str:
    """Return the message of an error in one line, with arguments of Python worded as options."""
    if isinstance(error, OSError) and error.strerror:
        message = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    elif isinstance(error, OutputExistsError):
        message = f"{error.problem}; --force replaces {error.what}"
    elif hasattr(error, "describe") and not getattr(error, "about_a_suite", False):
        message = error.describe(_format_argument)
    else:
        message = str(error)
    return " ".join(message.split()) or type(error).__name__


def _format_argument(argument: Any) -> str:
    """Return an argument as an option: ``separator=","`` in Python is ``--separator ','`` here."""
    flag, metavar, _ = TABLE_OPTIONS.get(argument.name, (f"--{argument.name.replace('_', '-')}", "VALUE", ""))
    if argument.value is None or argument.name in FLAGS:
        return flag
    values = argument.value if isinstance(argument.value, (list, tuple)) else [argument.value]
    return " ".join(f"{flag} {metavar if value is ... else repr(value)}" for value in values)


def format_count(count: int, noun: str) -> str:
    """Return a number with its noun, as in "1 tag" and "1,529 tags"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


class _PlainTable(Table):
    """A table whose cells are shown as they are, without markup and control characters."""

    def add_row(self, *cells: Any, **options: Any) -> None:
        """Add a row."""
        super().add_row(
            *(Text(_show_controls(cell)) if isinstance(cell, str) else cell for cell in cells), **options
        )


def make_table(*columns: str, right: Iterable[str] = ()) -> Table:
    """Return an empty table; without column titles it has two columns, names and values."""
    table = _PlainTable(box=None, pad_edge=False, show_header=bool(columns))
    for title in columns:
        table.add_column(title, justify="right" if title in right else "left")
    if not columns:
        table.add_column(style="dim")
        table.add_column()
    return table


def show_table(table: Table) -> None:
    """Print a table; in a pipe, without trailing blanks."""
    console = stdout_console()
    if console.is_terminal:
        console.print(table)
        return
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        say(line.rstrip())


def show_reading(table: LabelTable, *lines: str) -> None:
    """Print how a file was read if that is unusual, since detection may be wrong; then other lines, then notes."""
    if table.dialect is not None and not table.dialect.is_default:
        say(f"Read {table.path} as {table.dialect}.")
    for line in (*lines, *_describe_unused(table), *(f"Note: {note}." for note in table.notes)):
        say(line)


def _describe_unused(table: LabelTable) -> Iterator[str]:
    """Yield a line about the columns that are not used, and how to use them."""
    columns = list(table.unused.items())
    if columns and table.feature_kind != "embeddings":
        listed = "; ".join(f"{name!r} {reason}" for name, reason in columns[:_MOST_UNUSED])
        more = (
            f"; and {format_count(len(columns) - _MOST_UNUSED, 'more')}"
            if len(columns) > _MOST_UNUSED
            else ""
        )
        yield f"Not used: {listed}{more}. --feature, --category, --text, --image or --id use a column."


def describe_features(table: LabelTable, embeddings: Any = None) -> str:
    """Return what a model learns from, in words."""
    from skpml.tables import format_names

    def count(names: Sequence[str], noun: str) -> str:
        return f"{format_count(len(names), noun)}: {format_names(names)}"

    if table.dataset is not None:
        return f"its {format_count(len(table.feature_names), 'feature')}"
    if table.feature_kind == "embeddings":
        return (
            f"{embeddings}, not from {count(list(table.unused), 'other column')}"
            if table.unused
            else str(embeddings)
        )
    numbers = [name for name in table.columns.features or () if name not in table.columns.categories]
    kinds = [count(numbers, "column")] if numbers else []
    if table.columns.categories:
        kinds.append(f"categories in {count(table.columns.categories, 'column')}")
    if table.feature_kind == "text" or "text" in table.feature_types.values():
        kinds.append(f"the texts of {table.columns.text!r}")
    if "image" in table.feature_types.values():
        plain = any(
            name == "image" and embedder.model is None
            for name, embedder, _ in getattr(table.transformer, "parts", ())
        )
        images = f"the images of {table.columns.image!r}"
        more = ", by their colors and edges (a model, --image-model FILE.onnx, sees more)"
        kinds.append(images + more if plain else images)
    return "; ".join(kinds)


@contextmanager
def progress_bar(what: str) -> Iterator[Update]:
    """Show a progress bar on stderr if it is a terminal; yield ``update(done, total, what)``."""
    console = stderr_console()
    if not console.is_terminal:
        # A disabled bar of older versions of rich prints an empty line.
        yield lambda done, total, what: None
        return
    parts: list[Any] = [SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()]
    parts += [TimeElapsedColumn(), TextColumn("{task.fields[left]}"), TimeRemainingColumn()]
    with Progress(*parts, console=console, transient=True) as progress:
        task = progress.add_task(what, total=None, left="")

        def update(done: int, total: int | None, what: str) -> None:
            left = "" if total is None else "left:"
            progress.update(task, completed=done, total=total, description=what, left=left)

        yield update


# Output files: checked before the work begins, written completely or not at all.


def check_outputs(*paths: Path, force: bool, inputs: Iterable[str | Path | None] = ()) -> None:
    """Refuse, before any work, outputs that cannot be written or that would replace an input."""
    for place, path in enumerate(paths):
        if any(_is_same_file(path, other) for other in paths[:place]):
            raise click.UsageError(f"{path} is named as two outputs")
        if any(_is_same_file(path, Path(source)) for source in inputs if source is not None):
            raise click.ClickException(f"{path} is read by this command, so it cannot be replaced")
        if path.is_dir():
            raise click.ClickException(f"{path} is a folder; name a file to write")
        if not path.parent.is_dir():
            raise click.ClickException(f"{path} cannot be written: there is no folder {path.parent}")
        if path.exists() and not path.is_file():
            raise click.ClickException(f"{path} is not a plain file, so it cannot be replaced; name another")
        if os.path.lexists(path) and not force:
            raise click.ClickException(f"{path} exists already; --force replaces it")


def _is_same_file(path: Path, other: Path) -> bool:
    # Beyond the path: hard links, and file systems that ignore case.
    linked = path.exists() and other.exists() and path.samefile(other)
    return linked or path.resolve() == other.resolve()


# Input files: the same options for all commands.

# Argument of Columns, Dialect or read_table: option, metavar, help.
TABLE_OPTIONS = {
    "tags": ("--tags", "COLUMN", 'Column that lists the candidate labels, as in "lake;sea".  [default: tags or labels]'),
    "labels": ("--label", "COLUMN", "0/1 column of one candidate label; repeatable."),
    "true_tags": ("--true-tags", "COLUMN", "Column that lists the true labels.  [default: truth]"),
    "true_labels": ("--true-label", "COLUMN", "0/1 column of one true label; repeatable."),
    "text": ("--text", "COLUMN", "Column of texts: displayed and, unless --feature names others alone, learned from."),
    "text_model": ("--text-model", "NAME|FOLDER", "Language model (sentence-transformers) that texts are embedded by.  "
                   "[default: words and their frequencies]"),
    "image": ("--image", "COLUMN", "Column of image paths: displayed and, with --image-model or nothing else to learn "
              "from, learned from."),
    "image_model": ("--image-model", "FILE.onnx", "Model of images (ONNX) that images are embedded by.  [default: colors "
                    "and edges]"),
    "id": ("--id", "COLUMN", "Column of row names.  [default: row numbers]"),
    "features": ("--feature", "COLUMN", "Column to learn from: numbers, few categories, or that of --text; repeatable.  "
                 "[default: --text and all other columns that can be used]"),
    "categories": ("--category", "COLUMN", "Column of categories, even if they are numbers; repeatable."),
    "ignore": ("--ignore", "COLUMN", "Column that is not used; repeatable."),
    "embeddings": ("--embeddings", "FILE", "An .npy or .npz file, dense or sparse, with one row per row of DATA, or "
                   "a folder of one .npy file per row."),
    "sheet": ("--sheet", "NAME", "Sheet of an Excel file.  [default: the only one that is not empty]"),
    "separator": ("--separator", "TEXT", 'Separator of tags; "[]" for lists written as text.  [default: detected]'),
    "merge_case": ("--merge-case", "", "Tags that differ in case or in blanks only are one label."),
    "skip_untagged": ("--skip-untagged", "", "Leave out rows without tags, as not tagged yet.  [default: they have no "
                      "label]"),
    "encoding": ("--encoding", "NAME", "Encoding of a text file.  [default: detected]"),
    "delimiter": ("--delimiter", "CHAR", 'Delimiter of columns; "tab" for tabs.  [default: detected]'),
    "quote": ("--quote", "CHAR", "Quote character.  [default: detected]"),
    "decimal": ("--decimal", "CHAR", "Decimal point or comma.  [default: detected]"),
    "xml": ("--xml", "FILE", "Label names of an ARFF file, in the XML format of Mulan."),
    "reader_options": ("--reader-option", "NAME=VALUE", "Other argument of the format's reader, such as "
                       "label_layout=labels_by_rows for MATLAB; repeatable."),
}  # fmt: skip
_REPEATABLE = ("labels", "true_labels", "features", "categories", "ignore", "reader_options")
FLAGS = ("merge_case", "skip_untagged")
_Command = Callable[..., Any]


def table_options(command: _Command) -> _Command:
    """Add the options about an input file; the command gets them as one dictionary, ``reading``."""

    @functools.wraps(command)
    def gather(**arguments: Any) -> Any:
        names = [name for name in (*TABLE_OPTIONS, "candidates", "noise_seed") if name in arguments]
        reading = {name: arguments.pop(name) for name in names}
        if reading["delimiter"] in ("tab", "\\t"):
            reading["delimiter"] = "\t"
        for model in ("text_model", "image_model"):
            if reading[model] is not None and Path(reading[model]).exists():
                # Settings and model files may be used from another folder.
                reading[model] = str(Path(reading[model]).resolve())
        return command(reading=reading, **arguments)

    for name, (flag, metavar, help) in reversed(TABLE_OPTIONS.items()):
        flags = ("-O", flag) if name == "reader_options" else (flag,)
        kind = {"is_flag": True} if name in FLAGS else {"metavar": metavar, "multiple": name in _REPEATABLE}
        gather = click.option(*flags, name, help=help, **kind)(gather)
    return gather


def source_options(command: _Command) -> _Command:
    """Add the options about an input file or a data set by name, as `table_options`."""
    number = click.option("--candidates", type=click.IntRange(min=0), metavar="K",
                          help="For a data set by name: add random false labels until each row has K "
                               "candidates.")  # fmt: skip
    seed = click.option(
        "--noise-seed", type=int, metavar="SEED", help="Seed of these false labels.  [default: 0]"
    )
    return number(seed(table_options(command)))


def split_assignment(option: str, text: str) -> tuple[str, str]:
    """Split the ``NAME=VALUE`` that an option takes."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.UsageError(f"{option} needs NAME=VALUE, got {text!r}")
    return name, value


def table_arguments(reading: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `skpml.tables.read_table` for the options that were given."""
    from skpml.tables import Columns, Dialect

    given = {name: value for name, value in reading.items() if value not in (None, (), False)}
    names = [{field.name for field in dataclasses.fields(kind)} & given.keys() for kind in (Columns, Dialect)]
    columns, dialect = ({name: given[name] for name in group} for group in names)
    others: dict[str, Any] = {
        name: given[name]
        for name in ("sheet", "separator", *FLAGS, "embeddings", "text_model", "image_model")
        if name in given
    }
    return {"columns": Columns(**columns), "dialect": Dialect(**dialect), **others}


def is_table(source: str | Path) -> bool:
    """Whether a file is a table, by its suffix."""
    from skpml.tables import TABLE_SUFFIXES

    return Path(source).suffix.lower() in TABLE_SUFFIXES


def read_source(source: str | Path, reading: dict[str, Any], **options: Any) -> LabelTable:
    """Read a file of any format, or load a data set by its name; `options` are those of ``read_table``."""
    from skpml.datasets import READERS, read_as_table, reader_options
    from skpml.tables import read_table

    path, suffix = Path(source), Path(source).suffix.lower()
    if suffix not in READERS and len(path.parts) == 1 and not path.exists():
        return _load_dataset(str(source), reading)
    if reading.get("candidates") is not None or reading.get("noise_seed") is not None:
        raise click.UsageError("--candidates and --noise-seed are for data sets by name, not for files")
    options = {**options, **table_arguments(reading)}
    others = dict(split_assignment("--reader-option", text) for text in reading["reader_options"])
    others |= {"xml": reading["xml"]} if reading["xml"] is not None else {}
    known = () if is_table(path) or suffix not in READERS else reader_options(suffix)
    if unknown := [name for name in others if name not in known]:
        option = "--xml" if unknown[0] == "xml" else f"--reader-option {unknown[0]}"
        raise click.UsageError(f"{option} does not apply to {suffix} files")
    return (
        read_table(path, **options)
        if is_table(path)
        else read_as_table(path, reader_options=others, **options)
    )


def _load_dataset(name: str, reading: dict[str, Any]) -> LabelTable:
    from skpml.datasets import list_datasets, load_dataset, split_configuration
    from skpml.tables import Table

    if given := [
        flag for key, (flag, *_) in TABLE_OPTIONS.items() if reading[key] not in (None, (), [], False)
    ]:
        raise click.UsageError(f"{given[0]} is for files, but {name!r} is the name of a data set")
    names = [entry.name for entry in list_datasets()]
    # "emotions-3" means three candidates per row.
    if name not in names and split_configuration(name)[0] not in names:
        near = difflib.get_close_matches(name, names, n=3)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise click.ClickException(f"there is no data set {name!r}.{hint} 'skpml data list' lists all names")
    found = load_dataset(name, candidates=reading["candidates"], random_state=reading["noise_seed"] or 0)
    return Table(
        path=Path(name), X=found.X, candidates=found.candidates, truth=found.truth, label_names=found.label_names,
        feature_names=found.feature_names or (), dataset=found,
    )  # fmt: skip


def known_feature_names(table: LabelTable) -> tuple[str, ...] | None:
    """Return the names of the features; None if they have none in the file, such as embeddings."""
    if table.feature_kind == "text":
        return (str(table.columns.text),)
    if table.feature_kind == "mixed":
        return tuple(table.feature_types)
    unnamed = table.dataset is not None and table.dataset.feature_names is None
    return None if unnamed or table.feature_kind == "embeddings" else table.feature_names


def save_table_model(model: Any, path: Path, table: LabelTable) -> None:
    """Save a model fitted to a table, so that it takes the columns, texts or embeddings that the table has."""
    from sklearn.pipeline import Pipeline

    from skpml.io import save_model

    if table.transformer is not None:
        model = Pipeline([("features", table.transformer), ("model", model)])
    save_model(
        model, path, label_names=table.label_names, feature_names=known_feature_names(table),
        feature_kind=table.feature_kind, feature_types=list(table.feature_types.values()) or None,
    )  # fmt: skip


def show_labels(table: LabelTable) -> None:
    """Print the most frequent labels, and what may be wrong with labels and rows."""
    from skpml.tables import format_names, profile_table

    found = profile_table(table)
    listed = format_names([f"{name} {count:,}" for name, count in found.label_counts.items()])
    say(f"Labels by number of rows: {listed}.")
    for note in describe_oddities(found):
        say(f"Note: {note}.")


def describe_oddities(found: Profile) -> Iterator[str]:
    """Yield a sentence about each thing that may be wrong with labels and rows, and what to do."""
    from skpml.likelihood import ENOUGH_CANDIDATES
    from skpml.tables import format_names

    if rare := found.rare_labels(ENOUGH_CANDIDATES):
        labels = "1 label is" if len(rare) == 1 else f"{len(rare):,} labels are"
        few = f"{labels} in fewer than {ENOUGH_CANDIDATES} rows, too few for automatic drops"
        yield f"{few}: {format_names(rare)}"
    if found.twins:
        listed = format_names([" / ".join(group) for group in found.twins])
        yield f"labels differ in case or in blanks only: {listed}; --merge-case merges them"
    if found.n_untagged:
        yield "rows without tags count as having none of the labels; if they are not tagged yet, pass --skip-untagged"
    if found.n_repeated:
        rows = "1 row repeats" if found.n_repeated == 1 else f"{found.n_repeated:,} rows repeat"
        yield f"{rows} the features and the tags of an earlier row"
