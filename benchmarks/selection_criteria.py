"""What rows left out should be judged by, without true labels: PML-MA's weights chosen by several criteria.

    python benchmarks/selection_criteria.py
    python benchmarks/selection_criteria.py --configurations emotions-3 birds-4

γ (in half decades) and α of PML-MA are chosen on three inner folds of a training fold, by how well held-out scores rank
the candidates: by average precision, as everywhere in the library, or by the mean over a row's candidates of a function
of their ranks. Such a mean is linear in the labels. So, with false candidates drawn evenly from the false labels, its
expectation is, row by row, a constant plus a positive multiple of the same mean over the true labels: noise blurs the
comparison and does not tilt it. Average precision is not linear. Printed is the average precision against true labels of
the test fold, under the paper's protocol, at the point that each criterion chooses. A run of all
configurations writes results/selection_criteria.md. Needs the data sets (SKPML_DATA).
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from keeping import write_if_whole
from sklearn.model_selection import KFold

from skpml import PMLMA
from skpml.datasets import load_dataset
from skpml.metrics import average_precision
from skpml.model_selection import InnerFolds, candidate_precision

OUTPUT = Path(__file__).parents[1] / "results" / "selection_criteria.md"
FOLDS = {
    "emotions-3": 10,
    "emotions-5": 10,
    "birds-4": 10,
    "image-3": 3,
    "scene-3": 3,
    "yeast-7": 3,
    "arts-5": 1,
}
POINTS = [
    {
        "low_rank_weight": 1.0,
        "alignment_weight": alpha,
        "prototype_weight": 0.0,
        "ridge_weight": 10.0 ** (half / 2),
    }
    for alpha in (0.01, 0.3)
    for half in range(-4, 5)
]


def mean_over_candidates(of_rank):
    """A criterion: the mean over a row's candidates of a function of their ranks."""

    def criterion(candidates, scores) -> float:
        rank = (scores[:, None, :] >= scores[:, :, None]).sum(axis=2)
        count = candidates.sum(axis=1)
        told = (count > 0) & (count < candidates.shape[1])
        return float(((of_rank(rank) * candidates).sum(axis=1)[told] / count[told]).mean())

    return criterion


CRITERIA = {
    "average precision": candidate_precision,
    "reciprocal rank": mean_over_candidates(lambda rank: 1 / rank),
    "discounted gain": mean_over_candidates(lambda rank: 1 / np.log2(1 + rank)),
    "rank": mean_over_candidates(lambda rank: -rank),
    "at the top": mean_over_candidates(lambda rank: rank == 1),
}


def one_fold(data, train, test, fold: int) -> dict[str, float]:
    """Average precision of the test fold by the criterion that chose, and that of the best point in hindsight."""
    X, Y = data.X[train], data.candidates[train]
    model = PMLMA(random_state=fold, on_empty="ignore")
    told = {name: np.zeros(len(POINTS)) for name in CRITERIA}
    for rows, left_out in InnerFolds(X, Y, n_folds=3, random_state=fold).splits:
        for place, scores in model._scores_of_points(POINTS, X[rows], Y[rows], X[left_out]):
            for name, criterion in CRITERIA.items():
                told[name][place] += criterion(Y[left_out], scores)
    reached = np.zeros(len(POINTS))
    for place, scores in model._scores_of_points(POINTS, X, Y, data.X[test]):
        reached[place] = average_precision(data.truth[test], scores)
    return {
        **{name: reached[values.argmax()] for name, values in told.items()},
        "in hindsight": reached.max(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--configurations", nargs="+", default=list(FOLDS), choices=list(FOLDS))
    options = parser.parse_args()
    titles = ("configuration", "folds", *CRITERIA, "in hindsight")
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for name in options.configurations:
        data = load_dataset(name)
        splits = list(KFold(10, shuffle=True, random_state=0).split(data.X))[: FOLDS[name]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of one iteration that did not converge
            found = [one_fold(data, train, test, fold) for fold, (train, test) in enumerate(splits)]
        means = [f"{np.mean([row[title] for row in found]):.4f}" for title in titles[2:]]
        lines.append(f"| {name} | {len(found)} | {' | '.join(means)} |")
        print(lines[-1], flush=True)
    write_if_whole(OUTPUT, "\n".join(lines) + "\n", parser, options, "configurations")


if __name__ == "__main__":
    main()
