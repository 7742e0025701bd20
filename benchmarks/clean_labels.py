"""What a model of noise costs where there is no noise: the true labels given as candidates.

    python benchmarks/clean_labels.py

Average precision of CandidateLikelihood with nothing set, beside ridge regression whose weight is chosen in the same
way. Writes results/clean_labels.md if all folds are run. Needs the data sets (SKPML_DATA).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from keeping import write_if_whole
from sklearn.model_selection import KFold

from skpml import CandidateLikelihood
from skpml.datasets import load_dataset
from skpml.metrics import average_precision

OUTPUT = Path(__file__).parents[1] / "results" / "clean_labels.md"
DATA = ("emotions-3", "birds-3", "image-2", "scene-3", "yeast-7", "arts-5")
QUIET = {"on_empty": "ignore"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folds", type=int, default=5, help="the first so many of the ten")
    parser.add_argument("--device", default=None, help="of PyTorch; without it NumPy computes")
    options = parser.parse_args()
    lines = ["| data | folds | ridge | CandidateLikelihood | difference | noise rate |", "|---" * 6 + "|"]
    for name in DATA:
        data, found = load_dataset(name), []
        folds = list(KFold(10, shuffle=True, random_state=0).split(data.X))[: options.folds]
        for fold, (train, test) in enumerate(folds):
            row = []
            for family in ("ridge", "auto"):
                model = CandidateLikelihood(family=family, random_state=fold, device=options.device, **QUIET)
                model.fit(data.X[train], data.truth[train])
                row.append(average_precision(data.truth[test], model.predict_proba(data.X[test])))
            found.append([*row, row[1] - row[0], model.noise_rate_.mean()])
        ridge, ours, difference, rate = np.mean(found, axis=0)
        lines.append(
            f"| {name.split('-')[0]} | {len(folds)} | {ridge:.3f} | {ours:.3f} | {difference:+.4f} | {rate:.2f} |"
        )
        print(lines[-1], flush=True)
    write_if_whole(OUTPUT, "\n".join(lines) + "\n", parser, options, "folds")


if __name__ == "__main__":
    main()
