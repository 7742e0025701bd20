"""The review page: doubtful tags to keep or drop, in one HTML file without a server or a network request."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from skpml._writing import inline_files, page_environment, replacing, require_packages, script_safe_json
from skpml.review._words import TellingWords, find_telling_words

if TYPE_CHECKING:
    from skpml.cleaning import Audit, Decisions, Doubt
    from skpml.tables import Table

# The modules of the page's script, each after those that it imports.
_SCRIPTS = tuple(
    f"review/{name}.js" for name in ("data", "decisions", "list", "task", "evidence", "additions", "page")
)

# A page with so many doubtful tags still opens, filters and sorts without a noticeable pause.
MAX_DOUBTS = 50_000
# Doubtful tags with similar rows and telling words, the most useful ones; so many more rows may be in the file.
_MAX_EXPLAINED = 5_000
# Kept tags on the page.
_MAX_KEPT = 10_000
# Texts of rows that have no doubtful tag are cut.
_EXCERPT = 300
# Examples of a label with the highest confidences, and as many with the lowest.
_MAX_EXAMPLES = 3


def render_review(
    table: Table,
    audit: Audit,
    *,
    decisions: Decisions | None = None,
    votes: Mapping[str, Any] | None = None,
    settings: Mapping[str, str] | None = None,
) -> str:
    """Render the review page of an audit as HTML.

    The page first asks about the batch of the audit, without the answer of the model. It then lists the other doubtful
    tags, the 5,000 most useful ones with similar rows and telling words. A third list has all tags, among them up to
    10,000 kept ones of all confidences. Text of the table is shown as text, never as HTML, and the same input gives the
    same bytes. If more than 50,000 tags are doubtful, the page leaves out those that the audit drops, and lists the most
    useful 50,000 of the others.

    Parameters
    ----------
    table : Table
        The rows that were audited. An image is shown if its path is relative to the page.
    audit : Audit
        Result of :func:`skpml.cleaning.audit` for the rows of the table.
    decisions : Decisions, optional
        Earlier decisions, which the page exports together with new ones and does not ask again. By default those that
        the audit was given, but without the places of a random sample.
    votes : mapping of str to object, optional
        The votes that the audit was given, which the page shows: ``votes``; ``n_annotators`` if they are counts; and
        ``annotator_names`` if these are known. What :func:`skpml.candidate_likelihood.count_votes` returns is one.
    settings : mapping of str to str, optional
        Names and values of settings, shown to the reader.

    Returns
    -------
    str
        The page; write it with ``encoding="utf-8"``.

    Raises
    ------
    ValueError
        If the audit or the votes belong to another table.
    ImportError
        If jinja2 is not installed.

    See Also
    --------
    write_review : Write the page to a file.
    """
    require_page_packages()
    check_same_table(table, audit)
    return _fill_template(_build_payload(table, audit, settings or {}, decisions, votes))


def write_review(
    table: Table,
    audit: Audit,
    path: str | Path,
    *,
    decisions: Decisions | None = None,
    votes: Mapping[str, Any] | None = None,
    settings: Mapping[str, str] | None = None,
    overwrite: bool = False,
) -> None:
    """Write the review page of an audit to a file.

    Parameters
    ----------
    table : Table
        The rows that were audited.
    audit : Audit
        Result of :func:`skpml.cleaning.audit` for the rows of the table.
    path : path-like
        HTML file to write.
    decisions : Decisions, optional
        Earlier decisions; see `render_review`.
    votes : mapping of str to object, optional
        The votes that the audit was given; see `render_review`.
    settings : mapping of str to str, optional
        Names and values of settings, shown to the reader.
    overwrite : bool, default=False
        Replace the file if it exists.

    See Also
    --------
    render_review : Return the page as a string.
    """
    page = render_review(table, audit, decisions=decisions, votes=votes, settings=settings)
    with replacing(Path(path), overwrite=overwrite) as (temporary,):
        temporary.write_text(page, encoding="utf-8", newline="\n")


def require_page_packages() -> None:
    """Raise an ImportError with advice if a package is missing that the page needs."""
    require_packages("the review page", "report", "jinja2", "markupsafe")


def check_same_table(table: Table, audit: Audit) -> None:
    """Raise a ValueError if the audit cannot be one of this table."""
    if audit.confidences.shape != table.candidates.shape:
        raise ValueError(
            f"the audit has shape {audit.confidences.shape} (rows, labels), but {table.path.name} has shape "
            f"{table.candidates.shape}; pass the audit of this table"
        )


def select_doubts(audit: Audit) -> Sequence[Doubt]:
    """Return all doubts, or the most useful undecided ones if there are too many for a page."""
    if len(audit.doubts) <= MAX_DOUBTS:
        return audit.doubts
    return list(islice((doubt for doubt in audit.doubts if doubt.action == "ask"), MAX_DOUBTS))


def _build_payload(
    table: Table,
    audit: Audit,
    settings: Mapping[str, str],
    decisions: Decisions | None = None,
    votes: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Collect what the page shows as values for JSON; `templates/README.md` describes them."""
    from skpml.cleaning import word_of

    decisions = _verified_decisions(table, audit) if decisions is None else decisions
    batch = {(question.row, question.label): question.drawn for question in audit.batch}
    known = {*batch, *zip(decisions.rows.tolist(), decisions.labels.tolist(), strict=True)}
    doubts = [doubt for doubt in select_doubts(audit) if (doubt.row, doubt.label) not in known]
    kept, n_kept = _select_kept(table, audit, known)
    cells = [*batch, *((doubt.row, doubt.label) for doubt in doubts), *kept]
    explained = doubts[:_MAX_EXPLAINED]
    whole = dict.fromkeys(row for row, _ in cells[: len(batch) + len(doubts)])
    cut = (row for row, _ in kept)
    similar = (
        row for doubt in explained for row in (*doubt.reason.similar_with, *doubt.reason.similar_without)
    )
    examples = _select_examples(table, audit, batch, dict.fromkeys(doubt.label for doubt in doubts))
    shown = (row for best, worst in examples.values() for row in (*best, *worst))
    rows = list(dict.fromkeys([*whole, *cut, *similar, *shown]))
    position = {row: place for place, row in enumerate(rows)}
    words: list[TellingWords] = []
    if table.texts is not None and explained:
        words = find_telling_words(
            table.texts, table.candidates, ((doubt.row, doubt.label) for doubt in explained)
        )
    counts = table.candidates.sum(axis=0)
    doubted = {doubt.label for doubt in doubts}
    wrong = np.array([audit.wrong.estimate, audit.wrong.low, audit.wrong.high])
    sample = decisions.random_sample(table, random_state=audit.random_state).cells
    found = decisions.verified(table)[sample]
    return {
        "title": table.path.name,
        "key": _storage_key(table, cells),
        "settings": [[name, str(value)] for name, value in settings.items()],
        "overview": {
            "rows": len(table.candidates),
            "labels": len(table.label_names),
            "candidates": int(counts.sum()),
            "basis": audit.wrong.basis,
            **_round_counts(audit.wrong.total),
        },
        "labels": [
            {
                "name": name,
                "candidates": int(counts[label]),
                **_round_counts(wrong[:, label]),
                "partner": audit.partners[label] if label in doubted else None,
            }
            for label, name in enumerate(table.label_names)
        ],
        "items": [
            {
                "id": table.ids[row],
                "row": row,
                "text": _excerpt(table, row, whole=row in whole),
                "image": None if table.images is None else table.images[row],
                "tags": np.flatnonzero(table.candidates[row]).tolist(),
            }
            for row in rows
        ],
        "cells": {
            "item": [position[row] for row, _ in cells],
            "label": [label for _, label in cells],
            "confidence": [
                _round_confidence(sure)
                for sure in (
                    *(audit.confidences[cell] for cell in batch),
                    *(doubt.confidence for doubt in doubts),
                    *(audit.confidences[cell] for cell in kept),
                )
            ],
            # Nothing that tells a person the answer to a question of the batch.
            "action": ["" for _ in batch] + [doubt.action for doubt in doubts] + ["keep" for _ in kept],
            "reason": ["" for _ in batch] + [str(doubt.reason) for doubt in doubts] + ["" for _ in kept],
        },
        # Of the first doubts.
        "evidence": {
            "with": [[position[row] for row in doubt.reason.similar_with] for doubt in explained],
            "without": [[position[row] for row in doubt.reason.similar_without] for doubt in explained],
            "supporting": [list(telling.supporting) for telling in words],
            "opposing": [list(telling.opposing) for telling in words],
        },
        # By label, for those that are doubted.
        "examples": [
            [
                [[position[row], _round_confidence(audit.confidences[row, label])] for row in some]
                for some in examples.get(label, ())
            ]
            for label in range(len(table.label_names))
        ],
        # None of the batch, whose answer they would suggest.
        "votes": None if votes is None else _build_votes(table, votes, cells[len(batch) :]),
        "kept": {"listed": len(kept), "all": n_kept},
        "batch": {
            "drawn": list(batch.values()),
            "tags": int(counts.sum()),
            "sample": len(found),
            "wrong": int(np.count_nonzero(found < 0)),
        },
        "earlier": {
            "id": [table.ids[row] for row in decisions.rows.tolist()],
            "row": decisions.rows.tolist(),
            "label": decisions.labels.tolist(),
            "decision": [
                word_of(table, row, label, keep=keep)
                for row, label, keep in zip(decisions.rows, decisions.labels, decisions.keep, strict=True)
            ],
            "confidence": [None if np.isnan(sure) else sure for sure in decisions.confidence.tolist()],
            "byModel": decisions.by_model.tolist(),
            "drawn": decisions.drawn.tolist(),
        },
    }


def _select_kept(
    table: Table, audit: Audit, known: set[tuple[int, int]]
) -> tuple[list[tuple[int, int]], int]:
    """Return kept cells that are not known, the lowest confidences first, and their number.

    If there are too many, every k-th one is returned, so that all confidences are there.
    """
    kept = (audit.actions == "keep") & (table.candidates > 0)
    for cell in known:
        kept[cell] = False
    cells = np.flatnonzero(kept)
    order = np.argsort(audit.confidences.flat[cells], kind="stable")
    some = np.linspace(0, len(cells) - 1, min(len(cells), _MAX_KEPT)).round().astype(int)
    rows, labels = np.unravel_index(cells[order[some]], kept.shape)
    return list(zip(rows.tolist(), labels.tolist(), strict=True)), len(cells)


def _select_examples(
    table: Table, audit: Audit, batch: Iterable[tuple[int, int]], labels: Iterable[int]
) -> dict[int, tuple[list[int], list[int]]]:
    """Return rows with each label of the highest and of the lowest confidence, but those that a person dropped.

    The batch is left out: an example of low confidence would tell the answer to its question.
    """
    usable = (table.candidates > 0) & (audit.verified >= 0)
    for row, label in batch:
        usable[row, label] = False
    found = {}
    for label in labels:
        rows = np.flatnonzero(usable[:, label])
        order = rows[np.argsort(-audit.confidences[rows, label], kind="stable")].tolist()
        number = min(_MAX_EXAMPLES, len(order) // 2)
        found[label] = order[:number], order[::-1][:number]
    return found


def _build_votes(table: Table, given: Mapping[str, Any], cells: Iterable[tuple[int, int]]) -> dict[str, Any]:
    """Return for each cell who gave the tag and who saw the row without giving it, or how many did."""
    votes = np.asarray(given["votes"], dtype=np.float64)
    n_rows, n_labels = table.candidates.shape
    if votes.ndim not in (2, 3) or (len(votes), votes.shape[-1]) != (n_rows, n_labels):
        raise ValueError(
            f"the votes have shape {votes.shape}, but {table.path.name} has {n_rows} rows and {n_labels} labels"
        )
    if votes.ndim == 2:
        n_seen = np.broadcast_to(given["n_annotators"], (n_rows,)).tolist()
        counts = [(int(votes[row, label]), int(n_seen[row])) for row, label in cells]
        return {
            "annotators": None,
            "yes": [yes for yes, _ in counts],
            "no": [seen - yes for yes, seen in counts],
        }
    names = given.get("annotator_names")
    names = (
        [f"annotator {number}" for number in range(votes.shape[1])]
        if names is None
        else list(map(str, names))
    )
    said = [votes[row, :, label] for row, label in cells]
    yes, no = ([np.flatnonzero(each == vote).tolist() for each in said] for vote in (1, 0))
    return {"annotators": names, "yes": yes, "no": no}


def _excerpt(table: Table, row: int, *, whole: bool) -> str | None:
    if table.texts is None:
        return None
    text = table.texts[row]
    return text if whole or len(text) <= _EXCERPT else f"{text[: _EXCERPT - 1]}…"


def _verified_decisions(table: Table, audit: Audit) -> Decisions:
    """Return what the audit was told about tags of the table, and about labels that a person added."""
    from skpml.cleaning import Decisions

    verified = audit.verified
    rows, labels = np.nonzero((verified > 0) | ((verified < 0) & (table.candidates > 0)))
    unknown = np.full(len(rows), np.nan)
    return Decisions(rows=rows, labels=labels, keep=verified[rows, labels] > 0, confidence=unknown)


def _fill_template(payload: Mapping[str, Any]) -> str:
    labels, cells, n_batch = payload["labels"], payload["cells"], len(payload["batch"]["drawn"])
    n_doubts = len(cells["item"]) - n_batch - payload["kept"]["listed"]
    doubts = Counter(cells["label"][n_batch : n_batch + n_doubts])
    earlier = payload["earlier"]
    n_checked = sum(
        word != "add" and not by_model
        for word, by_model in zip(earlier["decision"], earlier["byModel"], strict=True)
    )
    environment = page_environment("skpml.review")
    environment.filters["estimate"] = _format_estimate
    page = environment.get_template("review.html.j2").render(
        title=payload["title"],
        settings=payload["settings"],
        overview=payload["overview"],
        labels=[{"place": place, "doubts": doubts[place], **label} for place, label in enumerate(labels)],
        scale=100 / max(1, *(max(label["candidates"], label["high"]) for label in labels)),
        n_batch=n_batch,
        n_drawn=sum(drawn > 0 for drawn in payload["batch"]["drawn"]),
        n_doubts=n_doubts,
        all_checked=n_checked >= payload["overview"]["candidates"],
        kept=payload["kept"],
        data=script_safe_json(
            {name: values for name, values in payload.items() if name not in ("settings", "overview")}
            | {"labels": [label["name"] for label in labels]}
        ),
        **inline_files("skpml.review", style="review.css", scripts=_SCRIPTS),
    )
    # A file name may hold bytes that are not text.
    return page.encode("utf-8", "replace").decode()


def _format_estimate(count: float) -> str:
    return f"{count:,.0f}" if count >= 10 else f"{count:.1f}".removesuffix(".0")


def _round_confidence(sure: float) -> float:
    """Return a confidence with four digits; only one that a person gave is 0 or 1."""
    return float(sure) if sure in (0, 1) else min(max(round(float(sure), 4), 0.0001), 0.9999)


def _round_counts(counts: Any) -> dict[str, float]:
    return {
        name: round(float(count), 1) for name, count in zip(("wrong", "low", "high"), counts, strict=True)
    }


def _storage_key(table: Table, cells: list[tuple[int, int]]) -> str:
    """Return a digest of file and listed tags: the browser stores decisions under it."""
    content = hashlib.sha256()
    for part in (table.path.name, *table.ids, *table.label_names):
        # A file name may hold bytes that are not text.
        content.update(part.encode("utf-8", "surrogatepass"))
        content.update(b"\0")
    content.update(np.ascontiguousarray(table.candidates).tobytes())
    content.update(repr(cells).encode())
    return content.hexdigest()[:24]
