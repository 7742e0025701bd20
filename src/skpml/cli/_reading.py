"""Where data come from: a file, read with the options given, or a data set by its name."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from skpml.datasets import PartialDataset
    from skpml.tables import Dialect


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the command line says about reading; None and () stand for what was not given."""

    tags: str | None
    label: tuple[str, ...]
    true_tags: str | None
    true_label: tuple[str, ...]
    separator: str | None
    ignore: tuple[str, ...]
    delimiter: str | None
    encoding: str | None
    xml: str | None
    reader_option: tuple[str, ...]
    candidates: int | None
    noise_seed: int | None
    quote: str | None = None
    decimal: str | None = None

    def for_file(self, suffix: str) -> dict[str, Any]:
        """Arguments of the reader of a format, each with the option it came from."""
        for one, other, names in (
            (self.tags, self.label, "--tags and --label"),
            (self.true_tags, self.true_label, "--true-tags and --true-label"),
        ):
            if one is not None and other:
                raise click.UsageError(f"{names} exclude each other: labels stand in one column or in many")
        table = suffix in ("", ".csv", ".tsv", ".txt", ".parquet")
        labels = "labels" if table else "label_attributes" if suffix == ".arff" else "candidates"
        given = [
            ("--tags", "tags" if table else "candidates", self.tags),
            ("--label", labels, list(self.label)),
            ("--true-tags", "true_tags" if table else "truth", self.true_tags),
            ("--true-label", "true_labels" if table else "truth", list(self.true_label)),
            ("--separator", "separator", self.separator),
            ("--ignore", "ignore", list(self.ignore)),
            ("--delimiter", "delimiter", delimiter_of(self.delimiter)),
            ("--quote", "quote", self.quote),
            ("--decimal", "decimal", self.decimal),
            ("--encoding", "encoding", self.encoding),
            ("--xml", "xml", self.xml),
        ]
        given += [("--reader-option", *key_and_value("--reader-option", text)) for text in self.reader_option]
        return {name: (option, value) for option, name, value in given if value not in (None, [])}

    def as_written(self) -> dict[str, str | None]:
        """How a table of text is written, as far as it was said."""
        return {
            "encoding": self.encoding,
            "delimiter": delimiter_of(self.delimiter),
            "quote": self.quote,
            "decimal": self.decimal,
        }

    def told(self, dialect: Dialect | None) -> Reading:
        """The same with what a table has told about how it is written, for the reader of its labels."""
        if dialect is None:
            return self
        encoding = _MARKED.get(dialect.encoding, dialect.encoding) if dialect.mark else dialect.encoding
        return replace(
            self, encoding=encoding, delimiter=dialect.delimiter, quote=dialect.quote, decimal=None
        )

    def check_none_for(self, suffix: str) -> None:
        """Refuse options about labels and text for a file that has neither."""
        for name, (option, _) in self.for_file(suffix).items():
            # It also stands between the labels that are written.
            if name != "separator":
                raise click.UsageError(f"{option} does not apply to {suffix} files")


# Codecs that skip the byte order mark.
_MARKED = {"utf-8": "utf-8-sig"} | {
    f"utf-{bits}-{end}": f"utf-{bits}" for bits in (16, 32) for end in ("le", "be")
}


def delimiter_of(given: str | None) -> str | None:
    """The delimiter that an option means."""
    return "\t" if given in ("tab", "\\t") else given


def key_and_value(option: str, text: str) -> tuple[str, str]:
    """The two sides of the ``NAME=VALUE`` that an option takes."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.UsageError(f"{option} needs NAME=VALUE, got {text!r}")
    return name, value


DIALECT_OPTIONS = (
    click.option("--encoding", metavar="NAME", help="Encoding of a text file.  [default: detected]"),
    click.option("--delimiter", metavar="CHAR", help='What stands between columns; "tab" for tabs.  [default: detected]'),
    click.option("--quote", metavar="CHAR", help="What stands around cells.  [default: detected]"),
    click.option("--decimal", metavar="CHAR", help="Decimal point or comma.  [default: detected]"),
)  # fmt: skip
_FIXED_DIALECT_OPTIONS = (
    click.option("--delimiter", metavar="CHAR", help='What stands between columns; "tab" for tabs.  [default: ","]'),
    click.option("--encoding", metavar="NAME", help="Encoding of a text file.  [default: utf-8]"),
)  # fmt: skip
_LABEL_OPTIONS = (
    click.option("--tags", metavar="COLUMN", help='Column that lists candidates, as in "beach;sea".'),
    click.option("--label", metavar="COLUMN", multiple=True, help="A 0/1 column of one candidate label; repeat it."),
    click.option("--true-tags", metavar="COLUMN", help="Column that lists true labels."),
    click.option("--true-label", metavar="COLUMN", multiple=True, help="A 0/1 column of one true label; repeat it."),
    click.option("--separator", metavar="TEXT", help='What stands between tags.  [default: ";"]'),
    click.option("--ignore", metavar="COLUMN", multiple=True, help="A column that is no feature; repeat it."),
)  # fmt: skip
_FORMAT_OPTIONS = (
    click.option("--xml", metavar="FILE", help="Mulan's file of label names for an ARFF file."),
    click.option(
        "-O", "--reader-option", metavar="NAME=VALUE", multiple=True,
        help="Any other argument of the format's reader, such as label_layout=labels_by_rows for MATLAB.",
    ),
    click.option(
        "--candidates", type=click.IntRange(min=0), metavar="K",
        help="For a data set by name: fill each row up to K candidates with random false labels.",
    ),
    click.option("--noise-seed", type=int, metavar="SEED", help="Seed of these false labels.  [default: 0]"),
)  # fmt: skip


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of reading to a command, which gets them as one `Reading`."""
    return _with_options(command, (*_LABEL_OPTIONS, *_FIXED_DIALECT_OPTIONS, *_FORMAT_OPTIONS))


def row_reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same for a command that takes rows for a fitted model: how tables are written is detected."""
    return _with_options(command, (*_LABEL_OPTIONS, *DIALECT_OPTIONS, *_FORMAT_OPTIONS))


def _with_options(command: Callable[..., Any], options: tuple[Any, ...]) -> Callable[..., Any]:
    def gathered(**arguments: Any) -> Any:
        fields = inspect.signature(Reading).parameters
        reading = Reading(**{name: arguments.pop(name, None) for name in fields})
        return command(reading=reading, **arguments)

    gathered.__name__, gathered.__doc__ = command.__name__, command.__doc__
    gathered.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    for option in reversed(options):
        gathered = option(gathered)
    return gathered


def is_file_name(source: str) -> bool:
    """Whether what was given means a file, there or not, and not the name of a data set."""
    from skpml.datasets import READERS

    path = Path(source)
    return path.suffix.lower() in (*READERS, ".npy") or len(path.parts) > 1 or path.exists()


def read(source: str, reading: Reading, *, features: tuple[str, ...] | None = None) -> PartialDataset:
    """Read a file or load a data set. Empty rows and labels pass: the commands look at them.

    `features` names the columns of a table to take; by default all that are not labels.
    """
    from skpml.datasets import read_dataset

    if not is_file_name(source):
        return _load(source, reading)
    if reading.candidates is not None or reading.noise_seed is not None:
        raise click.UsageError("--candidates and --noise-seed are for data sets by name; a file has its own")
    options = _checked_options(Path(source), reading)
    if features is not None:
        options["features"] = features
    return read_dataset(source, empty_rows="ignore", empty_labels="ignore", **options)


def _checked_options(path: Path, reading: Reading) -> dict[str, Any]:
    from skpml.datasets import READERS

    suffix = path.suffix.lower()
    given = reading.for_file(suffix)
    if suffix in READERS:
        known = inspect.signature(READERS[suffix]).parameters
        for name, (option, _) in given.items():
            if name not in known:
                shown = f"{option} {name}" if option == "--reader-option" else option
                raise click.UsageError(f"{shown} does not apply to {suffix} files")
    return {name: value for name, (_, value) in given.items()}


def _load(name: str, reading: Reading) -> PartialDataset:
    from skpml.datasets import READERS, list_datasets, load_dataset

    if given := [option for option, _ in reading.for_file("").values()]:
        raise click.UsageError(f"{given[0]} is for files, but {name!r} is the name of a data set")
    names = [entry.name for entry in list_datasets()]
    # "emotions-3" stands for three candidates a row.
    if name not in names and name.rpartition("-")[0] not in names:
        near = difflib.get_close_matches(name, names, n=3)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise click.ClickException(
            f"there is no data set {name!r}.{hint} 'skpml data list' gives all names; "
            f"a file has one of the suffixes {', '.join(READERS)}"
        )
    return load_dataset(name, candidates=reading.candidates, random_state=reading.noise_seed or 0)
