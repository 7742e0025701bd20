"""What each column of a labelled table is: labels, features, text, image, name of the row."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from skpml.datasets._errors import DatasetFormatError
from skpml.datasets._validation import listed
from skpml.tables._label_columns import (
    CANDIDATE_COLUMN,
    CANDIDATE_PREFIX,
    TRUTH_COLUMN,
    TRUTH_PREFIX,
    Flags,
    LabelSource,
    Tags,
    check_columns,
    check_distinct,
    columns_of,
    find_layout,
)

TAG_COLUMN = "tags"
TAG_SEPARATOR = ";"


@dataclass(frozen=True, kw_only=True)
class ColumnChoice:
    """What the caller says about the columns; None and () stand for what was not said."""

    tags: str | None = None
    labels: tuple[str, ...] | None = None
    text: str | None = None
    image: str | None = None
    id: str | None = None
    features: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    elsewhere: bool = False
    """Whether the features stand in another file."""
    labelled: bool = True
    """Whether there are labels to be read; where not, only columns that are named here are."""

    def __post_init__(self) -> None:
        if self.tags is not None and self.labels is not None:
            raise ValueError("tags and labels exclude each other: labels stand in one column or in many")
        if self.features is not None and self.elsewhere:
            raise ValueError("features and embeddings exclude each other: the model learns from one of them")

    @property
    def named(self) -> tuple[str, ...]:
        """All columns that were named."""
        return tuple(dict.fromkeys((*self.not_numbers, *(self.labels or ()), *(self.features or ()))))

    @property
    def not_numbers(self) -> tuple[str, ...]:
        """Columns that were named as something else than numbers."""
        named = (self.tags, self.text, self.image, self.id, *self.ignore)
        return tuple(name for name in named if name is not None)


@dataclass(frozen=True, kw_only=True)
class Roles:
    """What each column of a table is; columns not named here are passed over, and rows to predict have no labels."""

    labels: Tags | Flags | None
    features: tuple[str, ...]
    text: str | None
    image: str | None
    id: str | None
    other_labels: tuple[str, ...] = ()
    """Columns that hold labels by their names, but not those that are asked for."""
    unused: tuple[str, ...] = ()
    """All other columns that nothing was said about and that are not read."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are read."""
        others = (name for name in (self.text, self.image, self.id) if name is not None)
        return tuple(dict.fromkeys((*self.features, *columns_of(self.labels), *others)))


def find_roles(path: Path, header: Sequence[str], choice: ColumnChoice) -> Roles:
    """Tell from the header, and from what the caller says, what each column is."""
    if not choice.labelled:
        return _roles_as_named(path, header, choice)
    for name in choice.named:
        _check_there(path, header, name)
    source = _label_source(path, header, choice)
    others = _other_labels(header, source, choice)
    hidden = {*others, *choice.ignore}.difference(replace(choice, ignore=()).named)
    layout = find_layout(
        path,
        [name for name in header if name not in hidden],
        candidates=source,
        truth=None,
        candidate_prefix=CANDIDATE_PREFIX,
        truth_prefix=TRUTH_PREFIX,
        features=_wanted_features(choice),
        ignore=[
            name
            for name in (choice.text, choice.image, choice.id, *choice.ignore)
            if name is not None and name not in hidden
        ],
    )
    labels = layout.candidates
    assert labels is not None
    roles = Roles(labels=labels, features=layout.features, text=choice.text, image=choice.image, id=choice.id)
    unused = set(header).difference(roles.columns, others, choice.ignore)
    roles = replace(roles, other_labels=others, unused=tuple(name for name in header if name in unused))
    taken = columns_of(labels)
    for role in ("text", "image", "id"):
        if getattr(choice, role) in taken:
            raise DatasetFormatError(
                path, f"column {getattr(choice, role)!r} holds labels, so it cannot be the {role} too"
            )
    if not roles.features and choice.features is None and choice.text is None and not choice.elsewhere:
        raise DatasetFormatError(
            path,
            "has no columns left to learn from: name a column of text (text=…), a file of embeddings "
            "(embeddings=…) or numeric columns (features=[…])",
        )
    return roles


def _roles_as_named(path: Path, header: Sequence[str], choice: ColumnChoice) -> Roles:
    features = choice.features or ()
    # Other columns are nobody's business here, whatever their names.
    check_distinct(path, [name for name in header if name in choice.named])
    check_columns(path, header, features)
    for name in choice.named:
        _check_there(path, header, name)
    return Roles(labels=None, features=features, text=choice.text, image=choice.image, id=choice.id)


def _wanted_features(choice: ColumnChoice) -> tuple[str, ...] | None:
    if choice.features is None and (choice.text is not None or choice.elsewhere):
        return ()
    return choice.features


def _check_there(path: Path, header: Sequence[str], name: str) -> None:
    if name in header:
        return
    near = difflib.get_close_matches(name, header, n=1) or [
        other for other in header if other.strip().lower() == name.strip().lower()
    ]
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise DatasetFormatError(path, f"has no column {name!r}{hint} (its columns are {listed(header)})")


def _label_source(path: Path, header: Sequence[str], choice: ColumnChoice) -> LabelSource:
    """The columns that are named; else `tags`, however it is spelt; else None, which stands for the candidates.

    What is called truth is believed to be right, so that it is cleaned by nobody's mistake.
    """
    if choice.tags is not None or choice.labels is not None:
        return choice.tags if choice.tags is not None else choice.labels
    free = [name for name in header if name not in choice.ignore]
    alike = [name for name in free if name.strip().lower() == TAG_COLUMN]
    if TAG_COLUMN in alike or len(alike) == 1:
        return TAG_COLUMN if TAG_COLUMN in alike else alike[0]
    if not alike and any(name == CANDIDATE_COLUMN or name.startswith(CANDIDATE_PREFIX) for name in free):
        return None
    true = [name for name in free if name == TRUTH_COLUMN or name.startswith(TRUTH_PREFIX)]
    hint = f"; what {listed(true)} holds is cleaned only if it is named" if true else ""
    raise DatasetFormatError(
        path,
        'no labels found: pass tags="COLUMN" for a column of tags such as "a;b", or labels=[…] for columns of 0 and 1 '
        f"(its columns are {listed(header)}){hint}",
    )


def _other_labels(header: Sequence[str], source: LabelSource, choice: ColumnChoice) -> tuple[str, ...]:
    """Columns that are neither features nor the labels to clean: candidates where others are, and truth."""
    if source is None:
        flags = [name for name in header if name.startswith(CANDIDATE_PREFIX) and name not in choice.ignore]
        source = flags or CANDIDATE_COLUMN
    taken = {source, *choice.named} if isinstance(source, str) else {*source, *choice.named}
    return tuple(
        name
        for name in header
        if name not in taken
        and (name in (CANDIDATE_COLUMN, TRUTH_COLUMN) or name.startswith((CANDIDATE_PREFIX, TRUTH_PREFIX)))
    )
