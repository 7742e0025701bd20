"""Which column of a table holds what: labels, true labels, features, text, image, id."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan
from pathlib import Path
from typing import Any, NamedTuple

from skpml.tables._errors import Argument, TableError

TAG_COLUMN, CANDIDATE_COLUMN, TRUTH_COLUMN = "tags", "candidates", "truth"
# Names that are taken for tags if there are no others, the likeliest first.
_OTHER_TAG_COLUMNS = ("labels", "tag", "label")
CANDIDATE_PREFIX, TRUTH_PREFIX = "candidate:", "truth:"
FLAGS = {"0": 0, "0.0": 0, "-1": 0, "-1.0": 0, "false": 0, "no": 0, "1": 1, "1.0": 1, "true": 1, "yes": 1}
# Cells without a value.
_MISSING = frozenset(("", "na", "n/a", "#n/a", "nan", "null", "none", "?", "-"))
_TRUTH_VALUES = {"false": 0.0, "true": 1.0}
_MOST_ITEMS, _MOST_CHARACTERS = 5, 60
_LISTS = ("labels", "true_labels", "features", "categories", "ignore", "label_names")


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of the columns of a table by what they hold; None means found automatically.

    Labels are either listed in one column, as in ``"beach;sea"`` (tags), or have one column each that holds 0 and 1.

    Parameters
    ----------
    tags : str, optional
        Column that lists the candidate labels of a row. By default ``tags`` in any case, else ``candidates``, else
        ``labels``, ``tag`` or ``label`` in any case.
    labels : sequence of str, optional
        The 0/1 columns of candidate labels. By default those that begin with `prefix`.
    true_tags : str, optional
        Column that lists the true labels of a row. By default ``truth``, where true labels are read.
    true_labels : sequence of str, optional
        The 0/1 columns of true labels, in the order of `labels`. By default those that begin with `true_prefix`.
    text : str, optional
        Column of texts, to learn from and to be shown to a person.
    image : str, optional
        Column of paths of images, relative to the file, to be shown to a person. They are learned from if there is a
        model of images, if this column is named as a feature too, or if there is nothing else to learn from.
    id : str, optional
        Column that names the rows. By default rows are named by their numbers.
    features : sequence of str, optional
        Columns to learn from, in this order: numbers, categories, and the text if it is named here too. By default the
        text and all columns that are nothing else and that a model can use. An empty list reads no features.
    categories : sequence of str, default=()
        Columns to learn from whose values are categories, even if they are numbers, or if many differ. By default
        columns of few different texts are.
    ignore : sequence of str, default=()
        Columns to leave out.
    prefix, true_prefix : str
        What the names of 0/1 columns begin with; the rest is the name of the label.
    label_names : sequence of str, optional
        Labels that tags may name, in this order; of 0/1 columns, their labels in another order. By default all tags that
        occur, sorted, or the order of the columns.

    See Also
    --------
    skpml.tables.read_table : Reads a table with such columns.

    Examples
    --------
    >>> from skpml.tables import Columns
    >>> Columns(tags="keywords", id="file").named
    ('keywords', 'file')
    """

    tags: str | None = None
    labels: Sequence[str] | None = None
    true_tags: str | None = None
    true_labels: Sequence[str] | None = None
    text: str | None = None
    image: str | None = None
    id: str | None = None
    features: Sequence[str] | None = None
    categories: Sequence[str] = ()
    ignore: Sequence[str] = ()
    prefix: str = CANDIDATE_PREFIX
    true_prefix: str = TRUTH_PREFIX
    label_names: Sequence[str] | None = None

    def __post_init__(self) -> None:
        for name in _LISTS:
            value = getattr(self, name)
            if isinstance(value, str):
                problem = f" must be a list of names, got the single string {value!r}"
                raise TableError(Argument(name), problem, value=value)
            object.__setattr__(self, name, None if value is None else tuple(value))
        for one, many in (("tags", "labels"), ("true_tags", "true_labels")):
            if getattr(self, one) is not None and getattr(self, many) is not None:
                problem = " exclude each other: labels are in one column or in many"
                raise TableError(Argument(one), " and ", Argument(many), problem)
            if getattr(self, many) == ():
                raise TableError(Argument(many), " must name at least one column", value=())

    @property
    def named(self) -> tuple[str, ...]:
        """All columns that are named."""
        lists = (self.ignore, self.labels or (), self.true_labels or (), self.features or (), self.categories)
        return tuple(dict.fromkeys((*self._single, *(name for names in lists for name in names))))

    @property
    def not_numbers(self) -> tuple[str, ...]:
        """Columns that are named as something else than numbers, and the usual columns of tags."""
        return (*self._single, *self.ignore, *self.categories, TAG_COLUMN, *_OTHER_TAG_COLUMNS, CANDIDATE_COLUMN,
                TRUTH_COLUMN)  # fmt: skip

    @property
    def _single(self) -> tuple[str, ...]:
        named = (self.tags, self.true_tags, self.text, self.image, self.id)
        return tuple(name for name in named if name is not None)

    @property
    def label_columns(self) -> tuple[str, ...]:
        """Columns of the candidate labels."""
        return tuple(self.labels or ()) if self.tags is None else (self.tags,)

    @property
    def true_label_columns(self) -> tuple[str, ...]:
        """Columns of the true labels."""
        return tuple(self.true_labels or ()) if self.true_tags is None else (self.true_tags,)


def looks_like_labels(columns: Columns, name: str) -> bool:
    """Whether a column holds candidate or true labels, judged by its name."""
    return name in (CANDIDATE_COLUMN, TRUTH_COLUMN) or name.startswith((columns.prefix, columns.true_prefix))


class Resolved(NamedTuple):
    """What each column of a file is, and the labels as far as the header tells them.

    The features include the categories and include neither the text nor the image, which are features if they are in
    `learned`; `guessed` are those that nobody named, which are left out if a model cannot use them.
    """

    columns: Columns
    label_names: tuple[str, ...] | None
    other_labels: tuple[str, ...] = ()
    guessed: frozenset[str] = frozenset()
    learned: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    @property
    def read(self) -> list[str]:
        """All columns that are read."""
        columns = self.columns
        single = (name for name in (columns.text, columns.image, columns.id) if name is not None)
        labels = (*columns.label_columns, *columns.true_label_columns)
        return list(dict.fromkeys((*(columns.features or ()), *labels, *single)))


def resolve_rows(path: Path, header: Sequence[str], wanted: Columns) -> Resolved:
    """Check that a file without labels has all columns that are named; nothing else is read."""
    present, named = set(header), set(wanted.named)
    _check_distinct(path, [name for name in header if name in named])
    features, learned = _named_features(wanted)
    if missing := [name for name in features if name not in present]:
        problem = (
            f"lacks {len(missing)} of the {len(features)} columns that are needed: {format_names(missing)}"
        )
        raise TableError(problem, path=path, column=missing[0], expected=features)
    _check_present(path, header, wanted.named)
    return Resolved(replace(wanted, features=features), (), learned=learned)


def _named_features(wanted: Columns) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the columns that are named as features, and those of them that hold texts or images."""
    named = dict.fromkeys((*(wanted.features or ()), *wanted.categories))
    learned = [name for name in (wanted.text, wanted.image) if name in named]
    if wanted.features is None and wanted.text is not None:
        learned = [wanted.text, *(name for name in learned if name != wanted.text)]
    return tuple(name for name in named if name not in learned), tuple(map(str, learned))


def resolve_columns(
    path: Path, header: Sequence[str], wanted: Columns, *, truth: bool, embeddings: bool
) -> Resolved:
    """Find out what each column of a labeled file is.

    `truth` also looks for true labels by name, and permits files without features; `embeddings` says that the features
    are in another file.
    """
    _check_present(path, header, wanted.named)
    ignored = set(wanted.ignore)
    _check_distinct(path, [name for name in header if name not in ignored])
    found, label_names = _find_labels(path, header, wanted, truth=truth)
    labels = (*found.label_columns, *found.true_label_columns)
    known = {*labels, *wanted.named}
    others = tuple(name for name in header if looks_like_labels(wanted, name) and name not in known)
    single = {role: getattr(wanted, role) for role in ("text", "image", "id")}
    for role, name in single.items():
        if name in labels:
            problem = f"column {name!r} holds labels, so it cannot be the {role} too"
            raise TableError(problem, path=path, column=name)
    taken = {*labels, *wanted.ignore, *single.values()}
    features, learned = _named_features(wanted)
    if both := [name for name in features if name in taken]:
        problem = f"columns cannot be features and something else: {format_names(both)}"
        raise TableError(problem, path=path, column=both[0])
    guessed: frozenset[str] = frozenset()
    if embeddings:
        learned = ()
    elif wanted.features is None:
        taken.update(others)
        free = tuple(name for name in header if name not in taken)
        guessed = frozenset(free).difference(features)
        features = free
    named = wanted.features is not None or wanted.image is not None
    if not (features or truth or embeddings or learned or named):
        raise no_features(path)
    resolved = Resolved(replace(found, features=features), label_names, others, guessed, learned)
    unread = set(header).difference(resolved.read, others, wanted.ignore)
    return resolved._replace(unused=tuple(name for name in header if name in unread))


def no_features(path: Path, unused: Mapping[str, str] | None = None) -> TableError:
    """Return the error of a table that has no columns to learn from; `unused` has reasons by column."""
    found = "; ".join(f"{name!r} {reason}" for name, reason in list((unused or {}).items())[:_MOST_ITEMS])
    return TableError(
        f"has no columns left to learn from{f' ({found})' if found else ''}: name a column of text (",
        Argument("text", ...), ") or of images (", Argument("image", ...), "), columns of numbers or categories (",
        Argument("features", ...), ") or a file of embeddings (", Argument("embeddings", ...), ")",
        path=path, value=dict(unused or {}),
    )  # fmt: skip


def name_list_columns(wanted: Columns, header: Sequence[str]) -> Columns:
    """Replace names of features such as ``vector_0``, which a file lacks, by that of the column of lists ``vector``."""
    if wanted.features is None:
        return wanted
    present = set(header)
    names = (
        base if name not in present and (base := re.sub(r"_\d+$", "", name)) in present else name
        for name in wanted.features
    )
    return replace(wanted, features=tuple(dict.fromkeys(names)))


def _find_labels(
    path: Path, header: Sequence[str], wanted: Columns, *, truth: bool
) -> tuple[Columns, tuple[str, ...] | None]:
    """Find the columns of candidates and of true labels, and the label names if 0/1 columns or the caller give them."""
    taken = {*wanted.ignore, *wanted.true_label_columns}
    free = [name for name in header if name not in taken]
    found, names = wanted, _strip_prefix(wanted.labels, wanted.prefix)
    true_names = _strip_prefix(wanted.true_labels, wanted.true_prefix)
    if not wanted.label_columns:
        alike = [name for name in free if name.strip().lower() == TAG_COLUMN]
        flags = tuple(name for name in free if name.startswith(wanted.prefix))
        if TAG_COLUMN in alike or len(alike) == 1:
            found = replace(found, tags=TAG_COLUMN if TAG_COLUMN in alike else alike[0])
        elif flags and not alike:
            found, names = replace(found, labels=flags), _strip_prefix(flags, wanted.prefix)
        elif CANDIDATE_COLUMN in free and not alike:
            found = replace(found, tags=CANDIDATE_COLUMN)
        elif not alike and not wanted.true_label_columns and "annotator" not in header:
            # A table of annotators and labels holds votes.
            found = replace(found, tags=_guess_tags(free))
    true = [name for name in free if name == TRUTH_COLUMN or name.startswith(wanted.true_prefix)]
    candidates = set(found.label_columns)
    true = [name for name in true if name not in candidates]
    if truth and not wanted.true_label_columns:
        flags = tuple(name for name in true if name.startswith(wanted.true_prefix))
        if flags:
            found, true_names = replace(found, true_labels=flags), _strip_prefix(flags, wanted.true_prefix)
        elif TRUTH_COLUMN in true:
            found = replace(found, true_tags=TRUTH_COLUMN)
    if not (found.label_columns or found.true_label_columns):
        raise TableError(
            "no labels found: pass ", Argument("tags", ...), ' for a column of tags such as "a;b", or ',
            Argument("labels", ...), f" for columns of 0 and 1 (its columns are {format_names(header)})",
            f"; true labels such as {format_names(true)} are read as candidates only if you name them" if true else "",
            path=path, value=tuple(header),
        )  # fmt: skip
    if found.labels and found.true_labels:
        by_position = wanted.true_labels is not None and len(wanted.true_labels) == len(found.labels)
        if not by_position:
            # In the order of the candidates.
            column = dict(zip(true_names or (), found.true_labels, strict=True))
            if odd := sorted(column.keys() ^ set(names or ())):
                problem = f"true labels and candidates need the same labels; only one has {format_names(odd)}"
                raise TableError(problem, path=path, value=tuple(odd))
            found = replace(found, true_labels=tuple(column[name] for name in names or ()))
        true_names = names
    given = None if wanted.label_names is None else tuple(wanted.label_names)
    flag_names = names or true_names
    if flag_names is None or given is None:
        return found, flag_names or given
    if sorted(given) != sorted(flag_names):
        problem = f" must name the labels of the 0/1 columns, {format_names(flag_names)}, in any order"
        raise TableError(Argument("label_names"), problem, path=path, value=given, expected=flag_names)
    place_of = {name: place for place, name in enumerate(flag_names)}
    order = [place_of[name] for name in given]
    ordered: dict[str, Any] = {
        role: tuple(flags[place] for place in order)
        for role in ("labels", "true_labels")
        if (flags := getattr(found, role)) is not None
    }
    return replace(found, **ordered), given


def _guess_tags(names: Sequence[str]) -> str | None:
    """Return the column that is likely to hold tags, by its name; none if several are."""
    for usual in _OTHER_TAG_COLUMNS:
        if alike := [name for name in names if name.strip().lower() == usual]:
            return alike[0] if len(alike) == 1 else None
    return None


def _strip_prefix(columns: Sequence[str] | None, prefix: str) -> tuple[str, ...] | None:
    """Return the labels of 0/1 columns; the names of the columns if their labels would not differ."""
    if columns is None:
        return None
    names = tuple(name.removeprefix(prefix) for name in columns)
    return names if len(set(names)) == len(names) else tuple(columns)


def _check_distinct(path: Path, names: Sequence[str]) -> None:
    if twice := find_repeated(names):
        problem = f"columns must have different names, found twice: {format_names(twice)}"
        raise TableError(problem, path=path, line=1, column=twice[0])


def _check_present(path: Path, header: Sequence[str], names: Sequence[str]) -> None:
    present = set(header)
    name = next((name for name in names if name not in present), None)
    if name is None:
        return
    near = difflib.get_close_matches(name, header, n=1) or [
        other for other in header if other.strip().lower() == name.strip().lower()
    ]
    hint = f"; did you mean {near[0]!r}?" if near else ""
    problem = f"has no column {name!r}{hint} (its columns are {format_names(header)})"
    raise TableError(problem, path=path, column=name, expected=near[0] if near else None)


def parse_flag(text: str) -> int:
    """Return 0 or 1 for a cell of a 0/1 column; KeyError for anything else."""
    return FLAGS[text.strip().lower()]


def parse_number(text: str, number: Callable[[str], float] = float) -> float | str:
    """Return the number that a cell holds, NaN if it is missing, or else its text; true and false are 1 and 0."""
    text = text.strip()
    if (folded := text.lower()) in _MISSING:
        return nan
    if folded in _TRUTH_VALUES:
        return _TRUTH_VALUES[folded]
    try:
        # Python reads 1_000 as a number, which the file may not mean.
        value = text if "_" in text else number(text)
    except ValueError:
        return text
    return value if isinstance(value, str) or isfinite(value) else text


def check_file(path: Path) -> None:
    """Raise FileNotFoundError unless there is such a file."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")


def check_known_suffix(path: Path, known: Sequence[str]) -> None:
    """Raise unless the name of a file has a known suffix."""
    if path.suffix.lower() not in known:
        problem = f"unknown suffix {path.suffix!r}; known are {', '.join(known)}"
        raise TableError(problem, path=path, value=path.suffix, expected=tuple(known))


def format_names(items: Sequence[Any]) -> str:
    """Write the first few items and how many more there are."""
    text = ", ".join(str(item) for item in items[:_MOST_ITEMS])
    return text if len(items) <= _MOST_ITEMS else f"{text} and {len(items) - _MOST_ITEMS:,} more"


def quote_text(text: Any) -> str:
    """Quote a cell on one line, shortened: a cell may hold a whole document."""
    if not isinstance(text, str):
        return str(text)
    return repr(text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…")


def find_repeated(names: Sequence[str]) -> list[str]:
    """Return each name that occurs more than once, in order of first appearance."""
    return [name for name, times in Counter(names).items() if times > 1]


def number_names(kind: str, count: int) -> tuple[str, ...]:
    """Make names for columns that have none: ``feature_0``, ``feature_1`` and so on."""
    return tuple(f"{kind}_{column}" for column in range(count))
