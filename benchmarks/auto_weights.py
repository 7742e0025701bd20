"""PML-MA that chooses its own weights, beside its defaults, ridge, the published figures and the ceiling.

    python benchmarks/auto_weights.py                                        # about half an hour on one core
    python benchmarks/auto_weights.py --configurations emotions-3 --folds 2
    python benchmarks/auto_weights.py --tables-only                          # from the CSV of earlier runs

The paper's protocol (noise once per configuration, ten shuffled folds, test rows scored against true labels), on the
first folds. Label-free ridge is ``CandidateLikelihood(family="ridge")``; floor and ceiling are ridge regression on the
candidates and on the true labels, with the weight that is best in hindsight. ``PMLMA(tune=True)`` takes the point
that ranks the candidates of rows left out best; other rules choose among the points of the same search, and each choice
is fitted and scored too. The cost is processor seconds of the fit over those of a default fit, the median of three around
it. Finished folds are kept in results/auto_weights.csv and not done again; results/auto_weights.md is written after each.
Needs the data sets (SKPML_DATA).
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections import defaultdict
from math import log10
from pathlib import Path

import numpy as np
from published import published_results
from sklearn.model_selection import KFold

from candidate_likelihood import HINDSIGHT, QUIET, in_hindsight
from skpml import PMLMA, CandidateLikelihood
from skpml._writing import replacing
from skpml.datasets import load_dataset
from skpml.metrics import average_precision

RESULTS = Path(__file__).parents[1] / "results"
OUTPUT = RESULTS / "auto_weights.csv"
# Folds of each configuration; large data sets take minutes a fold.
FOLDS = {
    "emotions-3": 10,
    "emotions-5": 10,
    "birds-4": 10,
    "image-3": 5,
    "yeast-7": 5,
    "scene-3": 5,
    "arts-5": 1,
}
DEFAULTS = {"low_rank_weight": 1.0, "alignment_weight": 0.01, "prototype_weight": 0.01, "ridge_weight": 1.0}


def steps_from_defaults(point: dict) -> float:
    """Decades between a point and the defaults, over all weights; 0 counts as a decade below the smallest value."""
    return sum(abs(log10(max(point[name], 1e-4)) - log10(value)) for name, value in DEFAULTS.items())


# Other ways to choose among the points that fall short of the best by at most one standard error: the smallest key wins.
WITHIN_ONE_ERROR = {
    "nearest the defaults": steps_from_defaults,
    "fewest parts": lambda point: (
        point["prototype_weight"],
        point["alignment_weight"],
        point["low_rank_weight"],
        -point["ridge_weight"],
    ),
}
# The best among fewer points: what the later rounds of the search bring.
AMONG = {
    "without the last round": lambda point: all(
        is_decade(point[name]) for name in ("alignment_weight", "ridge_weight")
    ),
    "γ alone": lambda point: (
        is_decade(point["ridge_weight"])
        and (point["low_rank_weight"], point["alignment_weight"], point["prototype_weight"]) == (1, 0.01, 0)
    ),
}


def is_decade(value: float) -> bool:
    return round(log10(value), 6).is_integer()


def other_choices(tried: list[dict]) -> dict[str, dict[str, float]]:
    good = sorted((point for point in tried if point["distance"] <= 1), key=lambda point: -point["precision"])
    chosen = {name: min(good, key=key) for name, key in WITHIN_ONE_ERROR.items()}
    for name, seen in AMONG.items():
        chosen[name] = max(filter(seen, tried), key=lambda point: point["precision"])
    return {name: {weight: point[weight] for weight in DEFAULTS} for name, point in chosen.items()}


RULES = (*WITHIN_ONE_ERROR, *AMONG)
ENDS = [f"{end} {weight:.3g}" for end in ("floor", "ceiling") for weight in HINDSIGHT]
MEASURED = ("defaults", "auto", *RULES, "ridge", *ENDS, "points", "ratio", *DEFAULTS)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--configurations", nargs="+", default=list(FOLDS))
    parser.add_argument("--folds", type=int, help="the first so many of the ten, for all")
    parser.add_argument("--tables-only", action="store_true")
    options = parser.parse_args()
    rows = read()
    done = {(row["configuration"], int(row["fold"])) for row in rows}
    for name in () if options.tables_only else options.configurations:
        for fold in range(options.folds or FOLDS.get(name, 1)):
            if (name, fold) in done:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a fit that does not converge is part of the comparison
                rows.append({"configuration": name, "fold": fold, **one_fold(name, fold)})
            write(rows)
            shown = ("defaults", "auto", *RULES, "ridge", "ratio", *DEFAULTS)
            print(name, fold, {key: float(f"{rows[-1][key]:.3g}") for key in shown}, flush=True)
    tables(rows)


def one_fold(name: str, fold: int) -> dict[str, float]:
    """All figures of a test fold."""
    data = load_dataset(name)
    train, test = list(KFold(10, shuffle=True, random_state=0).split(data.X))[fold]
    X, Y, truth = data.X[train], data.candidates[train], data.truth[test]

    def scored(model) -> tuple[float, float]:
        start = time.process_time()
        model.fit(X, Y)
        seconds = time.process_time() - start
        return average_precision(truth, model.decision_function(data.X[test])), seconds

    plain = [scored(PMLMA(random_state=fold, **QUIET)) for _ in range(2)]
    chosen = PMLMA(tune=True, random_state=fold, **QUIET)
    precision, seconds = scored(chosen)
    plain.append(scored(PMLMA(random_state=fold, **QUIET)))
    tried = chosen.selection_["tried"]
    others = {
        rule: scored(PMLMA(random_state=fold, **weights, **QUIET))[0]
        for rule, weights in other_choices(tried).items()
    }
    return {
        "defaults": plain[0][0],
        "auto": precision,
        **others,
        "ridge": scored(CandidateLikelihood(family="ridge", random_state=fold, **QUIET))[0],
        **in_hindsight(data, train, test, fold),
        "points": float(len(tried)),
        "ratio": seconds / float(np.median([each[1] for each in plain])),
        **chosen.weights_,
    }


def read() -> list[dict]:
    if not OUTPUT.exists():
        return []
    with OUTPUT.open(newline="", encoding="utf-8") as file:
        return [
            {key: value if key == "configuration" else float(value) for key, value in row.items()}
            for row in csv.DictReader(file)
        ]


def write(rows: list[dict]) -> None:
    with (
        replacing(OUTPUT, overwrite=True) as (temporary,),
        temporary.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.DictWriter(file, ["configuration", "fold", *MEASURED])
        writer.writeheader()
        writer.writerows(
            {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()}
            for row in rows
        )
    tables(rows)


def tables(rows: list[dict]) -> None:
    """What the docs show."""
    folds: dict[str, list[dict]] = defaultdict(list)
    for row in rows:
        folds[row["configuration"]].append(row)
    mean = {
        name: {key: float(np.mean([row[key] for row in folds[name]])) for key in MEASURED}
        for name in sorted(folds, key=list(FOLDS).index)
    }
    printed = {
        result.configuration: result.mean
        for result in published_results()
        if (result.method, result.metric) == ("pml-ma", "average_precision")
    }
    lines = table(
        ("configuration", "folds", "PML-MA, defaults", "PML-MA, `tune=True`", "label-free ridge",
         "published PML-MA", "ridge on candidates, in hindsight", "ridge on truth, in hindsight", "cost in default fits"),
        [
            (name, str(len(folds[name])), *(f"{m[key]:.3f}" for key in ("defaults", "auto", "ridge")),
             f"{printed[name]:.3f}", *(f"{best_end(m, end):.3f}" for end in ("floor", "ceiling")), f"{m['ratio']:.0f}")
            for name, m in mean.items()
        ],
    )  # fmt: skip
    lines += ["", "The same searches, by the rule that chooses among their points:", ""]
    rules = ("auto", *RULES)
    lines += table(
        ("configuration", "best point", *RULES),
        [(name, *(f"{m[rule]:.3f}" for rule in rules)) for name, m in mean.items()]
        + [("mean", *(f"{np.mean([m[rule] for m in mean.values()]):.3f}" for rule in rules))],
    )
    with replacing(RESULTS / "auto_weights.md", overwrite=True) as (temporary,):
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def table(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return [
        f"| {' | '.join(titles)} |",
        "|---" * len(titles) + "|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]


def best_end(mean: dict[str, float], end: str) -> float:
    return max(mean[f"{end} {weight:.3g}"] for weight in HINDSIGHT)


if __name__ == "__main__":
    main()
