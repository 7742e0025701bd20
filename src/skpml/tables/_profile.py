"""What a table holds, in numbers: labels, spellings, rows without tags, repeated rows, columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from skpml.tables._table import Table
from skpml.tables._tags import find_twins


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What a table holds.

    Parameters
    ----------
    n_rows, n_tags : int
        Numbers of rows and of tags.
    label_counts : dict
        Number of rows of each label, the most frequent label first.
    tags_per_row : dict
        Number of rows for each number of tags, in ascending order.
    twins : tuple of tuples of str
        Labels that differ in case or in blanks only.
    n_repeated : int
        Number of rows that have the tags and the features (or the text) of an earlier row.
    columns : dict
        Columns of the file by what they are used for.
    unused : dict
        Columns that are not used, and why.
    n_missing : dict
        Number of missing values of columns to learn from that lack some.

    See Also
    --------
    skpml.tables.profile_table : Computes it.
    """

    n_rows: int
    n_tags: int
    label_counts: dict[str, int]
    tags_per_row: dict[int, int]
    twins: tuple[tuple[str, ...], ...]
    n_repeated: int
    columns: dict[str, tuple[str, ...]]
    unused: dict[str, str]
    n_missing: dict[str, int]

    @property
    def n_untagged(self) -> int:
        """Number of rows without a tag."""
        return self.tags_per_row.get(0, 0)

    def rare_labels(self, fewest_rows: int) -> list[str]:
        """Return the labels that fewer rows have.

        Parameters
        ----------
        fewest_rows : int
            Number of rows that is enough.

        Returns
        -------
        list of str
            The labels, the most frequent first.
        """
        return [name for name, count in self.label_counts.items() if count < fewest_rows]


def profile_table(table: Table) -> Profile:
    """Compute what a table holds, in numbers.

    Parameters
    ----------
    table : Table
        A table with labels.

    Returns
    -------
    Profile
        The numbers.

    See Also
    --------
    skpml.tables.read_table : Reads a table.

    Examples
    --------
    >>> import pandas as pd
    >>> from skpml.tables import profile_table, read_table
    >>> table = read_table(pd.DataFrame({"warmth": [0.5, 0.1, 0.5], "tags": ["sea;sky", "Sky", "sea;sky"]}))
    >>> found = profile_table(table)
    >>> found.label_counts, found.twins, found.n_repeated
    ({'sea': 2, 'sky': 2, 'Sky': 1}, (('Sky', 'sky'),), 1)
    """
    if table.candidates is None:
        raise ValueError("the table was read without labels; read it with labeled=True")
    counts = table.candidates.sum(axis=0, dtype=np.int64).tolist()
    order = sorted(range(len(counts)), key=lambda label: (-counts[label], table.label_names[label]))
    sizes, times = np.unique(table.candidates.sum(axis=1, dtype=np.int64), return_counts=True)
    return Profile(
        n_rows=len(table.candidates),
        n_tags=sum(counts),
        label_counts={table.label_names[label]: counts[label] for label in order},
        tags_per_row=dict(zip(sizes.tolist(), times.tolist(), strict=True)),
        twins=tuple(find_twins(table.label_names)),
        n_repeated=_count_repeated(table),
        columns=_list_columns(table),
        unused=dict(table.unused),
        n_missing=dict(table.n_missing),
    )


def _count_repeated(table: Table) -> int:
    """Count the rows whose tags and features, or whose tags and text, an earlier row has."""
    if table.feature_kind == "text":
        content: Any = table.texts
    elif table.X is None or not table.X.shape[1]:
        return 0
    elif table.X.dtype == object:
        content = list(map(repr, table.X.tolist()))
    elif hasattr(table.X, "indptr"):
        rows = (table.X[[row]] for row in range(table.X.shape[0]))
        content = [row.indices.tobytes() + row.data.tobytes() for row in rows]
    else:
        content = [row.tobytes() for row in np.ascontiguousarray(table.X)]
    tags = (row.tobytes() for row in np.packbits(table.candidates, axis=1))
    return len(table.candidates) - len(set(zip(content, tags, strict=True)))


def _list_columns(table: Table) -> dict[str, tuple[str, ...]]:
    columns = table.columns
    roles = {
        "tags": columns.label_columns,
        "true labels": columns.true_label_columns,
        "numbers": tuple(name for name in columns.features or () if name not in columns.categories),
        "categories": tuple(columns.categories),
        **{role: (name,) for role in ("text", "image", "id") if (name := getattr(columns, role)) is not None},
        "ignored": tuple(columns.ignore),
    }
    return {role: names for role, names in roles.items() if names}
