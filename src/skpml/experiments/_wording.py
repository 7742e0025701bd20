"""Numbers and sentences for people: what a reader of a table must know."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from skpml.experiments._consistency import dataset_of
from skpml.experiments._metric_tables import PUBLISHED, Column, MetricTable
from skpml.experiments._ranking import Ranking
from skpml.experiments._results import Results, metric_title


def number(value: float, digits: int) -> str:
    """A number for people: a dash where there is none, a proper minus, never "-0.000"."""
    if not math.isfinite(value):
        return "∞" if value == math.inf else "–"
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def p_value(value: float) -> str:
    """A p-value for people."""
    return "< 0.0001" if value < 0.0001 else number(value, 4)


def table_notes(table: MetricTable, ranking: Ranking | None) -> list[str]:
    """What a reader must know of a table of results, in sentences."""
    notes = [
        "Mean ± sample standard deviation over folds and seeds.",
        f"{'Higher' if table.greater_is_better else 'Lower'} is better.",
        f"The best and the second best method of a row are marked, as printed to {table.digits} decimals; "
        "equal figures share a mark.",
        tuning_note(table.columns),
    ]
    aside = [
        f"{column.label} ({column.role})" for column in table.columns if column.role in ("floor", "ceiling")
    ]
    if aside:
        notes.append(f"Neither marked nor ranked: {', '.join(aside)}.")
    if any(column.role == "published" for column in table.columns):
        notes.append(f"Columns of published results were {PUBLISHED.replace(',', ' and')}.")
    entries = [entry for row in table.rows.values() for entry in row]
    if any(entry.state == "incomplete" for entry in entries):
        notes.append(
            "A fraction after a result tells how many of its runs are finished; such results are not ranked."
        )
    if ranking is not None:
        notes += ranking_notes(ranking)
    return notes


def tuning_note(columns: Iterable[Column]) -> str:
    """Which selector tuned what."""
    words = {
        "label-free": "tuned without true labels (label-free)",
        "oracle": "tuned with the true labels of inner folds (oracle)",
        "fixed": "parameters as the suite gives them (fixed)",
    }
    groups: dict[str, list[str]] = {}
    for column in columns:
        if column.tuning:
            groups.setdefault(column.tuning, []).append(column.label)
    parts = [f"{words.get(tuning, tuning)}: {', '.join(labels)}" for tuning, labels in groups.items()]
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}."


def ranking_notes(ranking: Ranking) -> list[str]:
    """Over what the ranks are, and what they leave out."""
    notes = []
    if ranking.average_ranks:
        notes.append(
            f"Average ranks over N = {ranking.n} configurations on which every ranked method has a whole result."
        )
    n_datasets = len({dataset_of(name) for name in ranking.configurations})
    if ranking.average_ranks and n_datasets < ranking.n:
        notes.append(
            f"The {ranking.n} configurations come from {n_datasets} data set{'s' if n_datasets > 1 else ''}. Tests take "
            "configurations for independent; those of one data set are not, so p-values promise more than there is."
        )
    if ranking.wilcoxon and ranking.n < 6:
        notes.append(
            f"With N = {ranking.n}, Wilcoxon's two-sided p cannot fall below {2 ** (1 - ranking.n):g}."
        )
    elif ranking.friedman and ranking.n <= 10:
        notes.append(
            "Friedman's and Nemenyi's tests are approximations, meant for more than 10 configurations."
        )
    if ranking.methods_left_out:
        listed = "; ".join(f"{name} ({why})" for name, why in ranking.methods_left_out.items())
        notes.append(f"Not ranked, for want of a whole result on any configuration: {listed}.")
    if ranking.left_out:
        names: dict[str, list[str]] = {}
        for name, why in ranking.left_out.items():
            names.setdefault(why, []).append(name)
        listed = "; ".join(f"{', '.join(alike)} ({why})" for why, alike in names.items())
        notes.append(f"Left out of the ranks: {listed}.")
    return notes


def joint_notes(rankings: Sequence[Ranking]) -> list[str]:
    """The notes of all rankings; what is the same for several metrics is said once."""
    return said_once({ranking.metric: ranking_notes(ranking) for ranking in rankings})


def said_once(notes_of: Mapping[str, Iterable[str]]) -> list[str]:
    """Notes of several metrics: what is the same for all is said once, what is not with the metrics it is about."""
    metrics_of: dict[str, list[str]] = {}
    # The first notes of all, then the second ones: what is about the same thing stands together.
    for notes in zip_longest(*notes_of.values()):
        for metric, note in zip(notes_of, notes, strict=True):
            if note is not None:
                metrics_of.setdefault(note, []).append(metric_title(metric))
    return [
        note if len(titles) == len(notes_of) else f"{', '.join(titles)}: {note}"
        for note, titles in metrics_of.items()
    ]


def comparison_notes(ranking: Ranking) -> list[str]:
    """What a reader must know of the diagram and of the comparisons with the control."""
    notes = []
    if ranking.nemenyi is not None:
        band = f" The shaded band reaches one critical difference to both sides of {ranking.control}."
        notes.append(
            "In the diagrams better methods stand on the left. A bar joins methods that Nemenyi's test does not tell "
            f"apart at the level 0.05.{band if ranking.control in ranking.average_ranks else ''}"
        )
    if count := len(ranking.wilcoxon):
        notes += [
            "Against the control: Wilcoxon's signed-rank test over configurations, two-sided; Holm's correction for "
            f"{count} comparison{'s' if count > 1 else ''}; bold below 0.05.",
            f"Effect size: rank-biserial correlation, 1 where {ranking.control} is better everywhere, −1 where it is "
            "worse.",
        ]
    return notes


def why_no_ranks(results: Results, ranking: Ranking) -> str:
    """Why a comparison has no ranks, in a sentence; nothing where it has, or where none are expected."""
    if ranking.average_ranks or results.suite.kind not in ("comparison", "ablation") or not results.cells:
        return ""
    methods = results.labels("method")
    if len(methods) < 2:
        only = f"{methods[0]} is the only method" if methods else "there is no method"
        reason = f"{only} to rank, and two at least are needed; floor and ceiling are not ranked"
    elif len(ranking.values) < 2:
        reason = "fewer than two methods have a whole result on any configuration"
    else:
        reason = "on no configuration do all ranked methods have a whole result"
    return f"There are no ranks: {reason}."
