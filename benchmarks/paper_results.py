"""The kept results of the paper suite beside what is published: how complete they are, and where they differ.

    skpml bench run paper --data FOLDER --jobs 2 --folder bench      # hours; continues where it stopped
    skpml bench export paper --data FOLDER --folder bench -o results/paper --with-runs --force \\
        --published benchmarks/published_results.csv
    python benchmarks/paper_results.py                               # writes results/paper/account.md

To complete the kept results, use their folder: ``skpml bench run paper --data FOLDER --folder results/paper``.
Differences below a hundredth are called equal: a new draw of the noise changes a result as much
(results/reproduction.md).
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from published import PATH

from skpml._writing import replacing
from skpml.experiments import (
    Results,
    Store,
    collect,
    expand,
    greater_is_better,
    load_suite,
    metric_title,
    read_published,
)

FOLDER = Path(__file__).parents[1] / "results" / "paper"
EQUAL = 0.01


def main() -> None:
    plan = expand(load_suite("paper"))
    results = collect(plan, Store(FOLDER).records())
    published = read_published(PATH)
    parts = [
        describe_extent(results),
        table_beside_published(results, published),
        table_of_differences(results, published),
        compare_with_floors(results),
    ]
    with replacing(FOLDER / "account.md", overwrite=True) as (temporary,):
        temporary.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def measured_means(results: Results, metric: str) -> pd.DataFrame:
    """Means of complete results: configurations × methods."""
    table = results.table(metric)
    return table.xs("mean", axis=1, level=1).where(table.xs("state", axis=1, level=1) == "done")


def published_means(published: pd.DataFrame, metric: str, names: list[str]) -> pd.DataFrame:
    """Published means: configurations × methods."""
    rows = published[published["metric"] == metric]
    return rows.pivot(index="configuration", columns="method", values="mean").reindex(names)


def describe_extent(results: Results) -> str:
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


def table_beside_published(results: Results, published: pd.DataFrame) -> str:
    """Measured average precision, with the published one in brackets."""
    metric = "average_precision"
    measured = measured_means(results, metric)
    printed = published_means(published, metric, list(measured.index))
    first, *others = results.labels()
    # Floors and ceiling are next to the control, which they are compared with.
    order = {"floor": 1, "ceiling": 2}
    labels = [first, *sorted(others, key=lambda label: order.get(results.role(label), 3))]
    lines = [
        f"**{metric_title(metric)}**, mean over 10 folds; in brackets what is published, not measured here.",
        "",
        "| configuration | " + " | ".join(labels) + " |",
        "|---|" + "---|" * len(labels),
    ]
    for name, row in measured.iterrows():
        if row.isna().all():
            continue
        cells = []
        for label in labels:
            text = "–" if pd.isna(row[label]) else f"{row[label]:.3f}"
            known = printed.loc[name, label] if label in printed else float("nan")
            cells.append(text if pd.isna(known) else f"{text} ({known:.3f})")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def table_of_differences(results: Results, published: pd.DataFrame) -> str:
    """Configurations on which each method is better than, equal to or worse than its published result."""
    metrics = results.suite.metrics
    titles = [metric_title(metric) for metric in metrics]
    lines = [
        "Configurations on which the measured result is better than the published one, equal (within 0.01) and worse:",
        "",
        f"| method | {' | '.join(titles)} | mean difference of average precision |",
        "|---|" + "---|" * (len(metrics) + 1),
    ]
    gains = {}
    for metric in metrics:
        measured = measured_means(results, metric)
        sign = 1 if greater_is_better(metric) else -1
        gains[metric] = sign * (measured - published_means(published, metric, list(measured.index)))
    for label in results.labels("method"):
        if label not in set(published["method"]):
            continue
        cells = [" / ".join(map(str, count_differences(gains[metric][label]))) for metric in metrics]
        mean = gains["average_precision"][label].mean()
        lines.append(f"| {label} | " + " | ".join(cells) + f" | {'–' if pd.isna(mean) else f'{mean:+.3f}'} |")
    return "\n".join(lines)


def compare_with_floors(results: Results) -> str:
    """The control against each floor, in average precision."""
    control, measured = results.suite.control, measured_means(results, "average_precision")
    sentences = []
    for floor in results.labels("floor"):
        gains = (measured[control] - measured[floor]).dropna()
        better, equal, worse = count_differences(gains)
        sentences.append(
            f"{metric_title('average_precision')} of {control} against {floor}: better on {better}, equal (within "
            f"{EQUAL}) on {equal}, worse on {worse} of {len(gains)} configurations."
        )
    return " ".join(sentences)


def count_differences(gains: pd.Series) -> tuple[int, int, int]:
    """Count positive, small and negative differences, as printed."""
    printed = [round(gain, 3) for gain in gains.dropna()]
    better, worse = sum(gain > EQUAL for gain in printed), sum(gain < -EQUAL for gain in printed)
    return better, len(printed) - better - worse, worse


if __name__ == "__main__":
    main()
