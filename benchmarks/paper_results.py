"""The kept results of the paper suite beside what is published: how far they go, and where they differ.

    skpml bench run paper --data FOLDER --jobs 2 --folder bench      # hours; goes on where it was
    skpml bench export paper --data FOLDER --folder bench -o results/paper --with-runs --with-published --force
    skpml bench report paper --data FOLDER --folder bench -o results/paper/report.html --with-published
    python benchmarks/paper_results.py                               # writes results/paper/account.md

To finish a part that was kept, use the folder itself: ``skpml bench run paper --data FOLDER --folder results/paper``.
Differences below a hundredth are called equal: the draw of the noise moves a result as much (results/reproduction.md).
"""

from __future__ import annotations

from pathlib import Path

from skpml._writing import replacing
from skpml.experiments import Store, load_suite
from skpml.experiments._metric_tables import MetricTable, metric_table
from skpml.experiments._results import Results, collect

FOLDER = Path(__file__).parents[1] / "results" / "paper"
EQUAL = 0.01


def main() -> None:
    suite = load_suite("paper")
    results = collect(suite, Store(FOLDER).records())
    tables = {metric: metric_table(results, metric, with_published=True) for metric in suite.metrics}
    parts = [
        extent(results),
        beside_published(tables["average_precision"]),
        better_or_worse(results, tables),
        against_floors(results, tables["average_precision"]),
    ]
    with replacing(FOLDER / "account.md", overwrite=True) as (temporary,):
        temporary.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def extent(results: Results) -> str:
    """What was run, and what was left."""
    labels = results.labels()
    cells = {place: cell.state for place, cell in results.cells.items()}
    done = sum(len(cell.records) for cell in results.cells.values())
    wanted = sum(cell.expected for cell in results.cells.values())
    failed = sum(len(cell.failures) for cell in results.cells.values())
    whole = [
        name for name in results.suite.configurations if all(cells[label, name] == "done" for label in labels)
    ]
    lines = [
        f"{done} of the {wanted} runs of the suite are kept; {failed} failed. Every method has all of its runs on "
        f"{len(whole)} of the {len(results.suite.configurations)} configurations."
    ]
    by_reason: dict[str, list[str]] = {}
    for name in results.suite.configurations:
        missing = [label for label in labels if cells[label, name] != "done"]
        if missing:
            reason = "nothing" if len(missing) == len(labels) else ", ".join(missing)
            by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        what = "Nothing was run on" if reason == "nothing" else f"Not whole for {reason}:"
        lines.append(f"{what} {', '.join(names)}.")
    return " ".join(lines)


def beside_published(table: MetricTable) -> str:
    """Measured figures, with the published ones in brackets."""
    # What the control is to be seen against stands next to it.
    beside = {"floor": 1, "ceiling": 2}
    measured = [column for column in table.columns if column.role != "published"]
    measured[1:] = sorted(measured[1:], key=lambda column: beside.get(column.role, 3))
    lines = [
        f"**{table.title}**, mean over 10 folds; in brackets what is published, not measured here.",
        "",
        "| configuration | " + " | ".join(column.label for column in measured) + " |",
        "|---|" + "---|" * len(measured),
    ]
    names = list(table.rows)
    columns = {
        column.label: (table.column(column.label), published_column(table, column.label))
        for column in measured
    }
    for place, name in enumerate(names):
        cells = []
        for ours, printed in columns.values():
            entry = ours[place]
            text = f"{entry.mean:.3f}" if entry.state == "done" else "–"
            known = printed[place] if printed else None
            cells.append(f"{text} ({known.mean:.3f})" if known is not None and known.shown else text)
        if any(cell[0] != "–" for cell in cells):
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def published_column(table: MetricTable, label: str) -> list | None:
    known = {column.label for column in table.columns if column.role == "published"}
    return table.column(label, "published") if label in known else None


def better_or_worse(results: Results, tables: dict[str, MetricTable]) -> str:
    """Configurations on which each method lies above, at or below its published result."""
    lines = [
        "Configurations on which the measured result is better than the published one, equal (within 0.01) and worse:",
        "",
        "| method | "
        + " | ".join(table.title for table in tables.values())
        + " | mean difference of average precision |",
        "|---|" + "---|" * (len(tables) + 1),
    ]
    for label in results.labels("method"):
        if published_column(tables["average_precision"], label) is None:
            continue
        cells = [" / ".join(map(str, counts(table, label))) for table in tables.values()]
        gains = differences(tables["average_precision"], label)
        mean = f"{sum(gains) / len(gains):+.3f}" if gains else "–"
        lines.append(f"| {label} | " + " | ".join(cells) + f" | {mean} |")
    return "\n".join(lines)


def against_floors(results: Results, table: MetricTable) -> str:
    """The control against each floor, in average precision."""
    control = results.suite.control
    assert control is not None
    sentences = []
    for floor in results.labels("floor"):
        pairs = zip(table.column(control), table.column(floor), strict=True)
        gains = [round(ours.mean - low.mean, 3) for ours, low in pairs if ours.state == low.state == "done"]
        better, worse = sum(gain > EQUAL for gain in gains), sum(gain < -EQUAL for gain in gains)
        sentences.append(
            f"{table.title} of {control} against {floor}: better on {better}, equal (within {EQUAL}) on "
            f"{len(gains) - better - worse}, worse on {worse} of {len(gains)} configurations."
        )
    return " ".join(sentences)


def differences(table: MetricTable, label: str) -> list[float]:
    """Measured less published, larger being better, where both are there."""
    sign = 1 if table.greater_is_better else -1
    printed = published_column(table, label) or []
    return [
        sign * (ours.mean - known.mean)
        for ours, known in zip(table.column(label), printed, strict=False)
        if ours.state == "done" and known.shown
    ]


def counts(table: MetricTable, label: str) -> tuple[int, int, int]:
    gains = [round(gain, 3) for gain in differences(table, label)]
    return sum(g > EQUAL for g in gains), sum(abs(g) <= EQUAL for g in gains), sum(g < -EQUAL for g in gains)


if __name__ == "__main__":
    main()
