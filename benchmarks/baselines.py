"""Every method beside what is published for it, with the honest floor and ceiling.

    python benchmarks/baselines.py                                   # everything; skips what the CSV already holds
    python benchmarks/baselines.py --methods pml-ni particle         # some methods
    python benchmarks/baselines.py --configurations emotions-3       # some data
    python benchmarks/baselines.py --redo --methods pml-ni           # measure again
    python benchmarks/baselines.py --tables-only                     # tables from the CSV of earlier runs

The paper's protocol: noise once per configuration, before ten shuffled folds, everything learned from training rows, test
rows scored against true labels. Every method runs with its default parameters, on the same folds; nothing is tuned. Where
a method's authors name parameters for a data set, a second row shows them. Needs the data sets (SKPML_DATA).
Writes results/baselines.csv and results/baselines.md after every configuration of a method.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections import defaultdict
from pathlib import Path

import joblib
import numpy as np
from published import published_results
from reproduce import WEIGHTS
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from skpml import get_method, list_methods
from skpml._writing import replacing
from skpml.datasets import load_dataset
from skpml.metrics import evaluate
from skpml.reference import CandidateRidge

OUTPUT = Path(__file__).parents[1] / "results" / "baselines.csv"
CONFIGURATIONS = ["emotions-3", "birds-3", "scene-3", "yeast-7", "arts-5"]
METRICS = ("average_precision", "ranking_loss", "hamming_loss")
FIELDS = ("configuration", "method", "fold", *METRICS, "fit_seconds", "reference_seconds")
# Further below published than this, the documentation owes an explanation.
GAP = 0.03
# α, β, λ and the ratio of dimensions that PML-PLR's authors name; data sets they do not name run with the defaults.
PLR = {
    "emotions": dict(alpha=0.1, beta=0.01, lam=1.0, ratio=0.8),
    "birds": dict(alpha=0.1, beta=0.1, lam=0.1, ratio=0.9),
    "scene": dict(alpha=0.1, beta=0.1, lam=1.0, ratio=0.8),
    "yeast": dict(alpha=0.1, beta=0.01, lam=10.0, ratio=0.8),
}
CEILING = "ridge on true labels"
AUTHORS = ", authors' parameters"


def named_parameters(name: str, configuration: str) -> dict[str, float] | None:
    """What a method's authors name for the data set, or None."""
    dataset = configuration.split("-")[0]
    if name == "pml-plr":
        return PLR.get(dataset)
    if name == "pml-ma":
        found = WEIGHTS.get(configuration) or WEIGHTS.get(dataset)
        names = ("low_rank_weight", "alignment_weight", "prototype_weight", "ridge_weight")
        return dict(zip(names, found, strict=True)) if found else None
    return None


def rows_of_the_table() -> list[str]:
    # The variants of PML-MA are compared by the suite "variants".
    names = [name for name in list_methods(needs=None) if not name.startswith("pml-ma-")]
    return [CEILING, *names, *(name + AUTHORS for name in ("pml-ma", "pml-plr"))]


def learner(row: str, configuration: str, fold: int, **changes):
    """The estimator of a row of the table, or None where the row has nothing to say about the data."""
    shared = dict(random_state=fold, on_empty="ignore")
    if row == CEILING:
        return CandidateRidge(**shared)
    method = get_method(row.removesuffix(AUTHORS))
    parameters = named_parameters(method.name, configuration) if row.endswith(AUTHORS) else {}
    if parameters is None:
        return None
    model = method(**{"threshold": method.comparison_threshold, **parameters, **changes})
    return model.set_params(**{name: value for name, value in shared.items() if name in model.get_params()})


def run_fold(row: str, configuration: str, fold: int, **changes) -> dict | None:
    model = learner(row, configuration, fold, **changes)
    if model is None:
        return None
    dataset = load_dataset(configuration, random_state=0)
    train, test = list(KFold(10, shuffle=True, random_state=0).split(dataset.X))[fold]
    X = dataset.X.astype(np.float64)
    labels = dataset.truth if row == CEILING else dataset.candidates
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        seconds = timed_fit(model, X[train], labels[train])
        # In the same process, right after: machines are shared, only the ratio means something.
        other = timed_fit(learner("pml-ma", configuration, fold), X[train], dataset.candidates[train])
        scores = model.decision_function(X[test])
    values = evaluate(dataset.truth[test], scores, scores > model.threshold_)
    return (
        {"configuration": configuration, "method": row, "fold": fold}
        | {metric: round(values[metric], 6) for metric in METRICS}
        | {"fit_seconds": round(seconds, 4), "reference_seconds": round(other, 4)}
    )


def timed_fit(model, X, Y) -> float:
    start = time.perf_counter()
    model.fit(X, Y)
    return time.perf_counter() - start


def read() -> list[dict]:
    if not OUTPUT.exists():
        return []
    with open(OUTPUT, newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = (*METRICS, "fit_seconds", "reference_seconds")
    return [row | {name: float(row[name]) for name in numbers} | {"fold": int(row["fold"])} for row in rows]


def write(rows: list[dict]) -> None:
    places = {name: place for place, name in enumerate((*rows_of_the_table(), *CONFIGURATIONS))}
    rows.sort(key=lambda row: (places[row["method"]], places[row["configuration"]], row["fold"]))
    OUTPUT.parent.mkdir(exist_ok=True)
    with (
        replacing(OUTPUT, OUTPUT.with_suffix(".md"), overwrite=True) as (table, page),
        open(table, "w", newline="") as file,
    ):
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)
        page.write_text(markdown(rows), encoding="utf-8")


def by_cell(rows: list[dict]) -> dict[tuple[str, str], list[dict]]:
    cells = defaultdict(list)
    for row in rows:
        cells[row["method"], row["configuration"]].append(row)
    return cells


def markdown(rows: list[dict]) -> str:
    cells = by_cell(rows)
    printed = published_precision()
    # The paper has one column for PARTICLE and does not say which variant it is.
    printed |= {("particle-map", name): printed["particle", name] for name in CONFIGURATIONS}
    lines = [
        "**Average precision** (larger is better), mean over 10 folds, noise seed 0; in brackets what is published, not "
        f"measured here. Bold: more than {GAP} below published.",
        "",
        "| method | " + " | ".join(CONFIGURATIONS) + " |",
        "|---" * (1 + len(CONFIGURATIONS)) + "|",
    ]
    for name in rows_of_the_table():
        values = [
            comparison(cells.get((name, data)), printed.get((name.removesuffix(AUTHORS), data)))
            for data in CONFIGURATIONS
        ]
        lines.append(f"| {title(name)} | " + " | ".join(values) + " |")
    lines += ["", *other_table(cells, "ranking_loss", "Ranking loss"), ""]
    lines += [*other_table(cells, "hamming_loss", "Hamming loss, each method with its own threshold"), ""]
    lines += [
        "**Time of a fit**, as a multiple of the time of PML-MA with its default weights in the same process on the same "
        "fold (median over folds, one thread)",
        "",
        "| method | " + " | ".join(CONFIGURATIONS) + " |",
        "|---" * (1 + len(CONFIGURATIONS)) + "|",
    ]
    for name in rows_of_the_table():
        values = [ratio(cells.get((name, data))) for data in CONFIGURATIONS]
        lines.append(f"| {title(name)} | " + " | ".join(values) + " |")
    return "\n".join(lines) + "\n"


def published_precision() -> dict[tuple[str, str], float]:
    """(method, configuration) → average precision, as printed."""
    return {
        (result.method, result.configuration): result.mean
        for result in published_results()
        if result.metric == "average_precision"
    }


def title(row: str) -> str:
    if row == CEILING:
        return "*Ridge on true labels (ceiling)*"
    return get_method(row.removesuffix(AUTHORS)).title + (AUTHORS if row.endswith(AUTHORS) else "")


def comparison(folds: list[dict] | None, published: float | None) -> str:
    beside = "" if published is None else f" ({published:.3f})"
    if not folds:
        return "–" + beside
    mean = np.mean([row["average_precision"] for row in folds])
    short = published is not None and mean < published - GAP
    return (f"**{mean:.3f}**" if short else f"{mean:.3f}") + beside


def other_table(cells: dict, metric: str, heading: str) -> list[str]:
    lines = [
        f"**{heading}** (smaller is better)",
        "",
        "| method | " + " | ".join(CONFIGURATIONS) + " |",
        "|---" * (1 + len(CONFIGURATIONS)) + "|",
    ]
    for name in rows_of_the_table():
        found = [cells.get((name, data)) for data in CONFIGURATIONS]
        values = [f"{np.mean([row[metric] for row in folds]):.3f}" if folds else "–" for folds in found]
        lines.append(f"| {title(name)} | " + " | ".join(values) + " |")
    return lines


def ratio(folds: list[dict] | None) -> str:
    if not folds:
        return "–"
    return f"{np.median([row['fit_seconds'] / row['reference_seconds'] for row in folds]):.2g}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", nargs="+", default=rows_of_the_table(), metavar="NAME")
    parser.add_argument("--configurations", nargs="+", default=CONFIGURATIONS, choices=CONFIGURATIONS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--redo", action="store_true", help="measure again what the CSV already holds")
    parser.add_argument("--tables-only", action="store_true")
    options = parser.parse_args()
    if unknown := [name for name in options.methods if name not in rows_of_the_table()]:
        parser.error(f"no method {unknown[0]!r}; choose from {', '.join(rows_of_the_table())}")
    rows = read()
    if options.tables_only:
        write(rows)
        print(OUTPUT.with_suffix(".md").read_text(encoding="utf-8"))
        return
    wanted = [(name, data) for data in options.configurations for name in options.methods]
    have = set() if options.redo else set(by_cell(rows))
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        for name, data in wanted:
            if (name, data) in have:
                continue
            found = parallel(joblib.delayed(run_fold)(name, data, fold) for fold in range(10))
            fresh = [row for row in found if row is not None]
            if not fresh:
                continue
            # Read again: another run may have added to the file meanwhile.
            write([row for row in read() if (row["method"], row["configuration"]) != (name, data)] + fresh)
            mean = np.mean([row["average_precision"] for row in fresh])
            print(f"{data:12} {name:32} average precision {mean:.3f}  time {ratio(fresh)}", flush=True)
    print(OUTPUT.with_suffix(".md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
