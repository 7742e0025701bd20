"""DeepCandidateLikelihood beside CandidateLikelihood and ridge, on tabular data: does a network pay there?

    python benchmarks/deep.py                                       # five configurations, five folds: half an hour
    python benchmarks/deep.py --configurations arts-5 --folds 1
    python benchmarks/deep.py --tables-only                         # from the CSV of earlier runs

The paper's protocol (noise once per configuration, ten shuffled folds, test rows scored against true labels), every
method with nothing set; ridge is ``CandidateLikelihood(family="ridge")``, whose weight is chosen without true labels.
"Members apart" is the mean over the five networks, each by itself: what averaging them gains. Finished folds are kept in
results/deep.csv and not done again; results/deep.md is written after each. Needs the data sets (SKPML_DATA) and PyTorch.
"""

from __future__ import annotations

import argparse
import copy
import csv
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from skpml import CandidateLikelihood
from skpml._writing import replacing
from skpml.datasets import load_dataset
from skpml.deep import DeepCandidateLikelihood
from skpml.metrics import average_precision, hamming_loss

RESULTS = Path(__file__).parents[1] / "results"
# Half of the rows of birds have no true label.
CONFIGURATIONS = ("emotions-3", "image-3", "scene-3", "yeast-7", "birds-3")
METHODS = {"ridge": "ridge", "kernel": "CandidateLikelihood", "deep": "DeepCandidateLikelihood"}
MEASURED = (
    *(f"{name} {figure}" for name in METHODS for figure in ("precision", "hamming", "calibration")),
    "members apart",
    "truth precision",
    "true noise rate",
    "kernel noise rate",
    "deep noise rate",
)
QUIET = {"on_empty": "ignore"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--configurations", nargs="+", default=CONFIGURATIONS)
    parser.add_argument("--folds", type=int, default=5, help="only the first so many of the ten")
    parser.add_argument("--device", default=None, help="of PyTorch")
    parser.add_argument("--tables-only", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = read()
    done = {(row["configuration"], int(row["fold"])) for row in rows}
    # Fold by fold: whenever it is stopped, the configurations have had about equally many.
    for fold in () if options.tables_only else range(options.folds):
        for name in options.configurations:
            if (name, fold) not in done:
                rows.append({"configuration": name, "fold": fold, **one_fold(name, fold, options.device)})
                write(rows)
                print(name, fold, {key: round(rows[-1][key], 3) for key in MEASURED}, flush=True)
    write(rows)


def one_fold(name: str, fold: int, device: str | None) -> dict[str, float]:
    """All figures of a test fold."""
    data = load_dataset(name)
    train, test = list(KFold(10, shuffle=True, random_state=0).split(data.X))[fold]
    X, Y, truth = data.X[train], data.candidates[train], data.truth[test]
    models = {
        "ridge": CandidateLikelihood(family="ridge", random_state=fold, device=device, **QUIET),
        "kernel": CandidateLikelihood(random_state=fold, device=device, **QUIET),
        "deep": DeepCandidateLikelihood(random_state=fold, device=device, **QUIET),
    }
    found = {}
    for method, model in models.items():
        chance = model.fit(X, Y).predict_proba(data.X[test])
        found[f"{method} precision"] = average_precision(truth, chance)
        found[f"{method} hamming"] = hamming_loss(truth, chance > 0.5)
        found[f"{method} calibration"] = calibration_error(chance, truth)
    false = 1 - data.truth[train].astype(int)
    return found | {
        "members apart": members_apart(models["deep"], data.X[test], truth),
        "truth precision": ceiling(data, train, test, fold, device),
        "true noise rate": float((Y * false).sum() / false.sum()),
        "kernel noise rate": float(models["kernel"].noise_rate_.mean()),
        "deep noise rate": float(models["deep"].noise_rate_.mean()),
    }


def ceiling(data, train, test, fold: int, device: str | None) -> float:
    """Average precision of ridge regression on true labels, its weight chosen in the same way."""
    model = CandidateLikelihood(family="ridge", random_state=fold, device=device, **QUIET)
    scores = model.fit(data.X[train], data.truth[train]).predict_proba(data.X[test])
    return average_precision(data.truth[test], scores)


def members_apart(model: DeepCandidateLikelihood, X, truth) -> float:
    """Average precision of a network by itself, mean over the members."""
    values = []
    for state in model.states_:
        alone = copy.copy(model)
        alone.states_ = [state]
        values.append(average_precision(truth, alone.predict_proba(X)))
    return float(np.mean(values))


def calibration_error(chance, truth, n_bins: int = 10) -> float:
    """Expected calibration error over all cells: ten bins of equal width."""
    place = np.minimum((chance * n_bins).astype(int), n_bins - 1).ravel()
    surplus = np.bincount(place, weights=(chance - truth).ravel(), minlength=n_bins)
    return float(np.abs(surplus).sum() / chance.size)


def read() -> list[dict]:
    if not (RESULTS / "deep.csv").exists():
        return []
    with (RESULTS / "deep.csv").open(newline="") as file:
        return [
            {key: value if key == "configuration" else float(value) for key, value in row.items()}
            for row in csv.DictReader(file)
        ]


def write(rows: list[dict]) -> None:
    with (
        replacing(RESULTS / "deep.csv", overwrite=True) as (temporary,),
        temporary.open("w", newline="") as file,
    ):
        writer = csv.DictWriter(file, ["configuration", "fold", *MEASURED])
        writer.writeheader()
        writer.writerows(
            {key: f"{value:.6g}" if isinstance(value, float) else value for key, value in row.items()}
            for row in rows
        )
    with replacing(RESULTS / "deep.md", overwrite=True) as (temporary,):
        temporary.write_text(table(rows), encoding="utf-8")


def table(rows: list[dict]) -> str:
    """Means over folds, a line for each configuration."""
    folds: dict[str, list[dict]] = defaultdict(list)
    for row in rows:
        folds[row["configuration"]].append(row)
    lines = ["Average precision on test rows, against true labels; everything chosen without them.", ""]
    titles = (
        "configuration",
        "folds",
        *METHODS.values(),
        "members apart",
        "ridge on the truth",
        "folds won by the network",
    )
    lines += [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for name, some in folds.items():
        m = {key: float(np.mean([row[key] for row in some])) for key in MEASURED}
        won = sum(row["deep precision"] > row["kernel precision"] for row in some)
        figures = [m[f"{method} precision"] for method in METHODS] + [
            m["members apart"],
            m["truth precision"],
        ]
        lines.append(
            f"| {name} | {len(some)} | {' | '.join(f'{value:.3f}' for value in figures)} | {won} of {len(some)} |"
        )
    titles = (
        "configuration",
        *("Hamming loss: kernel", "network"),
        *("calibration error: kernel", "network"),
        *("noise rate: true", "kernel", "network"),
    )
    lines += ["", "The same two, `CandidateLikelihood` (kernel) and `DeepCandidateLikelihood` (network):", ""]
    lines += [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for name, some in folds.items():
        m = {key: float(np.mean([row[key] for row in some])) for key in MEASURED}
        lines.append(
            f"| {name} | {m['kernel hamming']:.3f} | {m['deep hamming']:.3f} | {m['kernel calibration']:.3f} | "
            f"{m['deep calibration']:.3f} | {m['true noise rate']:.2f} | {m['kernel noise rate']:.2f} | "
            f"{m['deep noise rate']:.2f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
