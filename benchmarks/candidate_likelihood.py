"""CandidateLikelihood, with nothing set, beside published PML-MA, label-free ridge, floor and ceiling.

    python benchmarks/candidate_likelihood.py                                  # 26 configurations, 10 folds: hours
    python benchmarks/candidate_likelihood.py --device cuda                    # the same with PyTorch on a GPU
    python benchmarks/candidate_likelihood.py --configurations emotions-3 --folds 2
    python benchmarks/candidate_likelihood.py --tables-only                    # from the CSV of earlier runs

The paper's protocol (noise once per configuration, ten shuffled folds, test rows scored against true labels). Floor and
ceiling are ridge regression on the candidates and on the true labels, with the weight that is best *in hindsight* for the
mean over folds: the ends of the noise gap. Label-free ridge is ``CandidateLikelihood(family="ridge")``. Finished folds
are kept in results/candidate_likelihood.csv and not done again; results/candidate_likelihood.md is written after each.
Needs the data sets (SKPML_DATA).
"""

from __future__ import annotations

import argparse
import csv
import time
from collections import defaultdict
from copy import copy
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from published import published_results
from sklearn.model_selection import KFold

from skpml import CandidateLikelihood
from skpml._writing import replacing
from skpml.datasets import load_dataset
from skpml.features import RangeScaler, RBFAnchors
from skpml.linalg import spectrum_of
from skpml.metrics import METRICS, average_precision, evaluate

RESULTS = Path(__file__).parents[1] / "results"
OUTPUT = RESULTS / "candidate_likelihood.csv"
NAMES = ("hamming_loss", "ranking_loss", "one_error", "coverage", "average_precision")
PRINTED = {
    (result.configuration, result.metric): result.mean
    for result in published_results()
    if result.method == "pml-ma"
}
SYNTHETIC = [name for name in dict.fromkeys(name for name, _ in PRINTED) if "-" in name]
REAL = "mirflickr_subset5000"
HINDSIGHT = [10.0 ** (power / 2) for power in range(-8, 3)]
ENDS = [(end, weight) for end in ("floor", "ceiling") for weight in HINDSIGHT]
BINS = [f"surplus {place}" for place in range(10)]
CONFIDENCE_BINS = [f"confidence surplus {place}" for place in range(10)]
MEASURED = (
    *NAMES, "cells", *BINS, "candidates", *CONFIDENCE_BINS, "noise_rate", "true_noise_rate", "ridge", "unordered",
    *(f"{end} {weight:.3g}" for end, weight in ENDS), "seconds",
)  # fmt: skip
QUIET = {"on_empty": "ignore"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--configurations", nargs="+", default=[*SYNTHETIC, REAL])
    parser.add_argument("--folds", type=int, default=10, help="only the first so many of the ten")
    parser.add_argument("--device", default=None, help="of PyTorch; without it NumPy computes")
    parser.add_argument("--jobs", type=int, default=1, help="folds at a time")
    parser.add_argument("--tables-only", action="store_true")
    parser.add_argument(
        "--ends",
        type=Path,
        help="CSV of an earlier run: floor and ceiling of its folds are not computed again",
    )
    options = parser.parse_args()
    rows = read(OUTPUT)
    earlier = {(row["configuration"], int(row["fold"])): row for row in read(options.ends or OUTPUT)}
    done = {(row["configuration"], int(row["fold"])) for row in rows}
    left = [
        (name, fold)
        for name in options.configurations
        for fold in range(options.folds)
        if (name, fold) not in done
    ]
    work = Parallel(options.jobs, return_as="generator_unordered")
    for row in work(
        delayed(one_fold)(*job, options.device, earlier.get(job))
        for job in (() if options.tables_only else left)
    ):
        rows.append(row)
        write(rows)
        print(
            *(row[key] for key in ("configuration", "fold", "average_precision", "ridge", "seconds")),
            flush=True,
        )
    tables(rows)


def one_fold(name: str, fold: int, device: str | None, earlier: dict | None) -> dict:
    """All figures of a test fold."""
    data = load_dataset(name)
    train, test = list(KFold(10, shuffle=True, random_state=0).split(data.X))[fold]
    X, Y, truth = data.X[train], data.candidates[train], data.truth[test]
    start = time.perf_counter()
    model = CandidateLikelihood(random_state=fold, device=device, **QUIET).fit(X, Y)
    seconds = time.perf_counter() - start
    chance = model.predict_proba(data.X[test])
    found = evaluate(truth, chance, chance > 0.5)
    ridge = CandidateLikelihood(family="ridge", random_state=fold, device=device, **QUIET).fit(X, Y)
    false = 1 - data.truth[train].astype(int)
    candidate = Y > 0
    return {
        "configuration": name,
        "fold": fold,
        **{metric: float(found[metric]) for metric in NAMES},
        "cells": float(chance.size),
        **dict(zip(BINS, surplus(chance, truth), strict=True)),
        "candidates": float(candidate.sum()),
        **dict(
            zip(
                CONFIDENCE_BINS,
                surplus(model.confidences_[candidate], data.truth[train][candidate]),
                strict=True,
            )
        ),
        "noise_rate": float(model.noise_rate_.mean()),
        "true_noise_rate": float((Y * false).sum() / false.sum()),
        "ridge": average_precision(truth, ridge.predict_proba(data.X[test])),
        "unordered": without_nested_order(model, data.X[test], truth),
        **(
            in_hindsight(data, train, test, fold)
            if earlier is None
            else {f"{end} {weight:.3g}": earlier[f"{end} {weight:.3g}"] for end, weight in ENDS}
        ),
        "seconds": seconds,
    }


def without_nested_order(model: CandidateLikelihood, X_test, truth) -> float:
    """Average precision if the order of labels that imply each other is not enforced."""
    unordered = copy(model)
    unordered.nested_labels_ = []
    return average_precision(truth, unordered.predict_proba(X_test))


def in_hindsight(data, train, test, fold: int) -> dict[str, float]:
    """Average precision of ridge regression on the candidates and on the true labels, for each weight."""
    scaler = RangeScaler().fit(data.X[train])
    features = RBFAnchors(random_state=fold)
    spectrum = spectrum_of(features.fit_transform(scaler.transform(data.X[train]))[:, :-1].astype(np.float64))
    Z = spectrum.project(features.transform(scaler.transform(data.X[test]))[:, :-1])
    labels = {"floor": data.candidates[train], "ceiling": data.truth[train]}
    pulled = {end: spectrum.rows.T @ (given - given.mean(axis=0)) for end, given in labels.items()}
    found = {}
    for end, weight in ENDS:
        scores = Z @ (pulled[end] / (spectrum.values + weight)[:, None]) + labels[end].mean(axis=0)
        found[f"{end} {weight:.3g}"] = average_precision(data.truth[test], scores)
    return found


def surplus(chance, truth) -> list[float]:
    """By how much the probabilities of a bin add up to more than its true labels; ten bins of equal width."""
    place = np.minimum((chance * len(BINS)).astype(int), len(BINS) - 1).ravel()
    return np.bincount(place, weights=(chance - truth).ravel(), minlength=len(BINS)).tolist()


def calibration_error(folds: list[dict], bins: list[str], cells: str) -> float:
    """Expected calibration error over the cells of all folds.

    A bin of one fold of a small data set holds a few dozen cells: its surplus is chance, and would be counted as error.
    """
    total = sum(abs(sum(row[bin_] for row in folds)) for bin_ in bins)
    return total / sum(row[cells] for row in folds)


def read(path: Path) -> list[dict]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [
            {key: value if key == "configuration" else float(value) for key, value in row.items()}
            for row in csv.DictReader(file)
        ]


def write(rows: list[dict]) -> None:
    order = [*SYNTHETIC, REAL]
    with replacing(OUTPUT, overwrite=True) as (temporary,), temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["configuration", "fold", *MEASURED])
        writer.writeheader()
        for row in sorted(rows, key=lambda row: (order.index(row["configuration"]), int(row["fold"]))):
            writer.writerow(
                {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()}
            )
    tables(rows)


def tables(rows: list[dict]) -> None:
    """What the docs show, and the counts by which the method is judged."""
    folds: dict[str, list[dict]] = defaultdict(list)
    for row in rows:
        folds[row["configuration"]].append(row)
    for some in folds.values():
        some.sort(key=lambda row: row["fold"])
    order = [name for name in [*SYNTHETIC, REAL] if name in folds]
    mean = {
        name: {key: float(np.mean([row[key] for row in folds[name]])) for key in MEASURED} for name in order
    }
    for name, figures in mean.items():
        figures["calibration_error"] = calibration_error(folds[name], BINS, "cells")
        figures["confidence_error"] = calibration_error(folds[name], CONFIDENCE_BINS, "candidates")
        for end in ("floor", "ceiling"):
            figures[end] = max(figures[f"{end} {weight:.3g}"] for weight in HINDSIGHT)
    titles = (
        "configuration", "folds", "floor", "label-free ridge", "CandidateLikelihood", "ceiling", "gap closed",
        "folds below ridge", "published PML-MA", "calibration error", "of confidences", "noise rate (true)",
    )  # fmt: skip
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    closed = {}
    for name in order:
        m = mean[name]
        closed[name] = (m["average_precision"] - m["floor"]) / (m["ceiling"] - m["floor"])
        known = PRINTED.get((name, "average_precision"))
        # The floor does not know of nested labels, which real noise has: its distance says nothing there.
        share = "–" if name == REAL else f"{closed[name]:.0%}"
        below = sum(row["average_precision"] < row["ridge"] for row in folds[name])
        lines.append(
            f"| {name} | {len(folds[name])} | {m['floor']:.3f} | {m['ridge']:.3f} | {m['average_precision']:.3f} | "
            f"{m['ceiling']:.3f} | {share} | {below} | {'–' if known is None else f'{known:.3f}'} | "
            f"{m['calibration_error']:.3f} | {m['confidence_error']:.3f} | "
            f"{m['noise_rate']:.2f} ({m['true_noise_rate']:.2f}) |"
        )
    made = [name for name in order if name != REAL]
    as_good = {
        metric: sum(_as_good(mean[name][metric], PRINTED[name, metric], metric) for name in made)
        for metric in NAMES
    }
    if made:
        lines += ["", summary(made, mean, closed, as_good)]
    if REAL in order:
        below = sum(row["average_precision"] < row["ridge"] for row in folds[REAL])
        lines += [
            "",
            f"{REAL}, with the noise of real annotation: {below} of {len(folds[REAL])} folds below label-free ridge; "
            f"without the order of nested labels {mean[REAL]['unordered']:.3f}.",
        ]
    with replacing(RESULTS / "candidate_likelihood.md", overwrite=True) as (temporary,):
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


def summary(
    made: list[str], mean: dict[str, dict[str, float]], closed: dict[str, float], as_good: dict
) -> str:
    shares = [closed[name] for name in made]
    worst = min(mean[name]["average_precision"] - mean[name]["ridge"] for name in made)
    level = sum(mean[name]["calibration_error"] <= 0.05 for name in made)
    rate = sum(abs(mean[name]["noise_rate"] - mean[name]["true_noise_rate"]) <= 0.1 for name in made)
    cells = ", ".join(f"{metric} {count}" for metric, count in as_good.items())
    return (
        f"Over {len(made)} configurations with made noise: {sum(as_good.values())} of {len(made) * len(NAMES)} cells as "
        f"good as published PML-MA or better ({cells}); gap closed {np.mean(shares):.0%} in the mean, "
        f"{np.median(shares):.0%} in the median; at worst {worst:+.4f} average precision against label-free ridge; "
        f"calibration error at most 0.05 on {level}, noise rate within 0.1 on {rate}."
    )


def _as_good(ours: float, published: float, metric: str) -> bool:
    ours = round(ours, 3)
    return ours >= published if METRICS[metric].greater_is_better else ours <= published


if __name__ == "__main__":
    main()
