"""What ``skpml clean`` prints about its result, and its table of tags that may be missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from skpml.cli import _console as ui

if TYPE_CHECKING:
    from skpml.cleaning import Audit
    from skpml.cli._checked import Checked
    from skpml.tables import Table

# A table of more suggestions is not read to its end.
_MOST_SUGGESTIONS = 1000
_MOST_PAIRS = 3


def show_summary(table: Table, found: Audit, checked: Checked, drop_below: float, keep_above: float) -> None:
    """Print the size of the table, what was checked, how many tags are wrong, and how many were dropped."""
    from skpml.cleaning import describe_wrong
    from skpml.tables import format_names

    sizes = zip((*table.candidates.shape, int(table.candidates.sum())), ("row", "label", "tag"), strict=True)
    ui.say(f"{', '.join(ui.format_count(*size) for size in sizes)}.")
    evidence = found.evidence
    if n_verified := int(np.count_nonzero(checked.verified)):
        n_sample = int(np.count_nonzero(checked.at_random))
        sample = f"{n_sample:,} of them a random sample" if n_sample else "none of them at random"
        ui.say(f"Checked by a person: {ui.format_count(n_verified, 'tag')}, {sample}.")
    ui.say(describe_wrong(found))
    if not np.isnan(evidence.auc):
        ui.say(
            f"In {evidence.auc:.0%} of pairs of checked tags, the wrong one has the lower confidence (cross-validated)."
        )
    if not evidence.informative:
        ui.say(
            "The features do not predict the tags: check that each row has its own features, or use others."
        )
    for group in found.twins:
        ui.say(f"Only a person can tell these labels apart, which the same rows have: {format_names(group)}.")
    for pair in found.companions[:_MOST_PAIRS]:
        ui.say(
            f"{pair.label!r} comes with {pair.other!r} in {ui.format_count(pair.observed, 'row')}; the features explain "
            f"{pair.expected:,.0f}."
        )
    _show_drops(table, found, drop_below)
    _show_missing(found, keep_above)


def _show_drops(table: Table, found: Audit, drop_below: float) -> None:
    from skpml.likelihood import ENOUGH_CANDIDATES

    asked, labels = np.nonzero(found.actions == "ask")
    dropped = int(np.count_nonzero(found.actions == "drop"))
    are, stay = ("is", "stays") if len(asked) == 1 else ("are", "stay")
    decided = int(np.count_nonzero((found.actions == "drop") & (found.verified < 0)))
    by_person = f" ({decided:,} by your decisions)" if decided else ""
    ui.say(f"Dropped {dropped:,}{by_person}; {len(asked):,} {are} for a person to decide and {stay} for now.")
    if added := int(np.count_nonzero(found.verified[table.candidates == 0] > 0)):
        ui.say(f"Added {ui.format_count(added, 'tag')} that a person gave.")
    share = found.evidence.drops_wrong
    least = "" if np.isnan(share) else f" At least {int(100 * share)}% of them should be wrong."
    rests_on = {
        "verified": f"Automatic drops rest on the tags that a person checked.{least}",
        "random noise": f"Automatic drops rest on a test that found wrong tags to be random.{least}",
        "votes": "Automatic drops rest on the votes.",
        "none": "Nothing is dropped automatically: that needs random wrong tags, or more random checks.",
    }
    if found.evidence.fast:
        rests_on["none"] = "A first look drops nothing: run again without --fast."
    ui.say(rests_on[found.evidence.drops])
    show_emptied(table, found.clean_labels() > 0)
    rare = table.candidates.sum(axis=0) < ENOUGH_CANDIDATES
    withheld = rare[labels[found.confidences[asked, labels] < drop_below]].tolist()
    few = f"fewer than {ENOUGH_CANDIDATES} rows have such a tag"
    reasons = {True: few}
    if found.evidence.drops != "none":
        reasons[False] = "the data are too uninformative to drop such tags"
    for is_rare, why in reasons.items():
        if number := withheld.count(is_rare):
            looks = "looks" if number == 1 else "look"
            ui.say(f"Of those for a person, {number:,} {looks} wrong, but {why}.")


def show_emptied(table: Table, kept: Any) -> None:
    """Print how many rows have lost all tags."""
    emptied = int(np.count_nonzero(table.candidates.any(axis=1) & ~kept.any(axis=1)))
    if emptied:
        ui.say(f"{ui.format_count(emptied, 'row')} {'has' if emptied == 1 else 'have'} lost all tags.")


def show_next(found: Audit, report: Path | None) -> None:
    """Print what to do next, or that nothing is left to ask."""
    page = "write a page by --report PAGE.html" if report is None else f"open {report}"
    to_ask = int(np.count_nonzero(found.actions == "ask"))
    if found.batch or to_ask:
        number, verb = (len(found.batch), "check") if found.batch else (to_ask, "decide")
        tags = ui.format_count(number, "tag")
        ui.say(f"Next: {page}, {verb} {tags}, export, and run again with --decisions FILE --force.")
    elif (found.verified[found.actions != ""] != 0).all():
        ui.say("All tags are checked: nothing is left to ask.")
    else:
        ui.say(
            "No tag is left to ask about. To count wrong tags, check some at random: run again with --batch 100."
        )


def _show_missing(found: Audit, keep_above: float) -> None:
    """Print how many tags rows probably lack, if the probabilities are calibrated."""
    if found.missing.basis == "ranking":
        return
    if number := len(found.missing.cells(keep_above)):
        tags = "1 tag is" if number == 1 else f"{number:,} tags are"
        ui.say(f"{tags} probably missing; none is added, and --suggest OUT.csv lists them.")


def write_suggestions(path: Path, table: Table, found: Audit, keep_above: float) -> None:
    """Write the labels that rows may lack, the most likely first, and which of them could be added.

    Other models than that of votes take absent labels for wrong: without checked ones, their scores order them, but are
    no probabilities.
    """
    from skpml.tables import write_rows

    missing, rows = found.missing, []
    known = missing.basis != "ranking"
    n_added = len(missing.cells(keep_above)) if known else 0
    cells = missing.cells()[: max(_MOST_SUGGESTIONS, n_added)]
    for rank, (row, label) in enumerate(cells.tolist(), start=1):
        score = f"{missing.probabilities[row, label]:.4f}" if known else ""
        rows.append([rank, table.ids[row], row, table.label_names[label], score,
                     "probability" if known else "rank only", "add" if rank <= n_added else ""])  # fmt: skip
    write_rows(path, ["rank", "id", "row", "label", "probability", "meaning", "proposal"], rows)
