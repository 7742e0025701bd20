"""What a person has checked, for ``skpml clean``: a file of decisions, and columns of confirmed and rejected tags."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np
from numpy.typing import NDArray

from skpml.cli import _console as ui

if TYPE_CHECKING:
    from skpml.cleaning import Audit, Decisions
    from skpml.tables import Table


@dataclass(frozen=True)
class Checked:
    """What a person has checked."""

    decisions: Decisions
    """About tags of the table: those of the file, then those of the columns."""
    verified: NDArray[np.int8]
    """1 right, -1 wrong, 0 not checked; also for labels that a row does not have, and gets if they are right."""
    at_random: NDArray[np.bool_]
    """Which of them are a random sample."""
    notes: tuple[str, ...]


def read_checked(
    table: Table, path: Path | None, columns: tuple[str, str] | None, *, random_state: int
) -> Checked:
    """Read what a person has checked; the random order is that of the seed."""
    from skpml.cleaning import Decisions, read_decisions

    none = np.zeros(0, dtype=np.intp)
    decisions = Decisions(rows=none, labels=none, keep=none.astype(bool), confidence=none.astype(float))
    if path is not None:
        decisions = read_decisions(path, table)
    in_columns = np.zeros(table.candidates.shape, dtype=np.int8)
    if columns is not None:
        in_columns = _read_columns(table, columns)
        decisions = _merge(decisions, in_columns, table, path)
    verified = decisions.verified(table)
    sample = decisions.random_sample(table, random_state=random_state)
    return Checked(
        decisions=decisions,
        verified=np.where(verified != 0, verified, in_columns).astype(np.int8),
        at_random=sample.cells,
        notes=tuple(_describe_outside(sample.n_misplaced, sample.n_after_gap)),
    )


def _read_columns(table: Table, columns: tuple[str, str]) -> NDArray[np.int8]:
    """Return the tags of a column that were confirmed, and those of another that were rejected."""
    from skpml.tables import Columns, read_table

    if table.dataset is not None:
        raise click.UsageError(f"--verified-columns is for tables, which {table.path} is not")
    yes, no = (
        read_table(
            table.path, columns=Columns(tags=name, features=(), label_names=table.label_names),
            dialect=table.dialect, sheet=table.sheet, separator=table.separator, merge_case=table.merge_case,
        ).candidates[slice(None) if table.kept_rows is None else table.kept_rows] > 0
        for name in columns
    )  # fmt: skip
    if (both := yes & no).any():
        place = _format_cell(table, both)
        raise click.ClickException(f"{table.path}: {place} is in column {columns[0]!r} and in {columns[1]!r}")
    return yes.astype(np.int8) - no.astype(np.int8)


def _merge(decisions: Decisions, found: NDArray[np.int8], table: Table, path: Path | None) -> Decisions:
    """Add the tags that columns of the table confirm or reject to decisions; they replace accepted suggestions.

    A confirmed tag that its row does not have is added to the row; a rejected one is not decided about.
    """
    from skpml.cleaning import Decisions

    contrary = decisions.verified(table) * found < 0
    if contrary.any():
        place = _format_cell(table, contrary)
        raise click.ClickException(f"{path} contradicts the columns of {table.path} about {place}")
    stays = ~decisions.by_model | (found[decisions.rows, decisions.labels] == 0)
    known = np.zeros(found.shape, dtype=np.bool_)
    known[decisions.rows[stays], decisions.labels[stays]] = True
    rows, labels = np.nonzero((found != 0) & ((table.candidates > 0) | (found > 0)) & ~known)
    more = {"rows": rows, "labels": labels, "keep": found[rows, labels] > 0, "confidence": np.full(len(rows), np.nan),
            "by_model": np.zeros(len(rows), bool), "drawn": np.zeros(len(rows), np.intp)}  # fmt: skip
    return Decisions(
        **{
            name: np.concatenate([getattr(decisions, name)[stays], values]).astype(values.dtype)
            for name, values in more.items()
        }
    )


def _format_cell(table: Table, where: NDArray[np.bool_]) -> str:
    row, label = (int(place) for place in np.argwhere(where)[0])
    return f"tag {table.label_names[label]!r} of row {row} ({table.ids[row]})"


def _describe_outside(n_misplaced: int, n_after_gap: int) -> list[str]:
    """Return why some decisions about drawn tags do not count as a random sample."""
    why = {
        "another --seed, another version of DATA, or an edited file": n_misplaced,
        "an earlier one of the random order is undecided; decide it to count them": n_after_gap,
    }
    return [
        f"{ui.format_count(count, 'decision')} about random tags {'is' if count == 1 else 'are'} not part of the random "
        f"sample: {reason}"
        for reason, count in why.items()
        if count
    ]


def keep_decisions(found: Audit, decisions: Decisions) -> Audit:
    """Return an audit that does not overrule or question what was decided."""
    actions = found.actions.copy()
    decided_about = actions[decisions.rows, decisions.labels] != ""
    rows, labels = decisions.rows[decided_about], decisions.labels[decided_about]
    actions[rows, labels] = np.where(decisions.keep[decided_about], "keep", "drop")
    undecided = np.ones(actions.shape, dtype=bool)
    undecided[decisions.rows, decisions.labels] = False
    doubts = found.doubts.select(undecided[found.doubts.rows, found.doubts.labels])
    return replace(found, actions=actions, doubts=doubts)
