"""Several views: what two halves of the features reach, and what a view of pure noise costs.

    python benchmarks/views.py                                             # four data sets, 3 folds: a quarter of an hour
    python benchmarks/views.py --configurations emotions-3 --folds 1

The paper's protocol (noise once per configuration, ten shuffled folds, of which the first few are done; test rows scored
against true labels). Halves are random halves of the columns; the noise view is standard normal, as wide as the
features. All weights are learned, from candidates alone. A whole run writes results/views.md. Needs the data sets
(SKPML_DATA).
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import numpy as np
from keeping import write_if_whole
from sklearn.model_selection import KFold

from skpml import PMLMA, CandidateLikelihood
from skpml.datasets import load_dataset
from skpml.features import RangeScaler, RBFAnchors
from skpml.graph import neighbor_similarity
from skpml.linalg import ridge_scores, spectrum_of
from skpml.metrics import average_precision
from skpml.views import ViewScaler

OUTPUT = Path(__file__).parents[1] / "results" / "views.md"
CONFIGURATIONS = ("emotions-3", "image-3", "scene-3", "yeast-7")
QUIET = {"on_empty": "ignore"}
METHODS = {
    "ridge": lambda fold: CandidateLikelihood(family="ridge", random_state=fold, **QUIET),
    "PMLMA": lambda fold: PMLMA(random_state=fold, **QUIET),
    "CandidateLikelihood": lambda fold: CandidateLikelihood(random_state=fold, **QUIET),
}
GAMMAS = 10.0 ** np.arange(-3, 1.1, 0.5)
FORMS = ("halves", "with_noise", "halves_with_noise")
BAR = 0.005


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--configurations", nargs="+", default=CONFIGURATIONS)
    parser.add_argument("--folds", type=int, default=3, help="only the first so many of the ten")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found: dict[tuple[str, str], list[dict]] = defaultdict(list)
    ways: dict[str, list[dict[str, float]]] = defaultdict(list)
    for name in options.configurations:
        for fold in range(options.folds):
            rows = Rows(name, fold)
            for method in METHODS:
                found[name, method].append(compare_forms(rows, method))
                print(name, fold, method, found[name, method][-1], flush=True)
            ways[name].append({**kernels(rows), **graphs(rows), **criteria(rows)})
            print(name, fold, ways[name][-1], flush=True)
    text = "\n\n".join([table(found, options.folds), comparison(ways)]) + "\n"
    print(text)
    write_if_whole(OUTPUT, text, parser, options, "configurations", "folds")


class Rows:
    """Training and test rows of a fold: whole, in halves, and with noise."""

    def __init__(self, name: str, fold: int) -> None:
        data = load_dataset(name)
        X = np.asarray(data.X.toarray() if hasattr(data.X, "toarray") else data.X, dtype=np.float64)
        self.fold = fold
        self.train, self.test = list(KFold(10, shuffle=True, random_state=0).split(X))[fold]
        self.candidates, self.truth = data.candidates[self.train], data.truth[self.test]
        random = np.random.default_rng(fold)
        order = random.permutation(X.shape[1])
        noise = random.normal(size=X.shape)
        self.whole = X
        self.halves = [X[:, part] for part in np.array_split(order, 2)]
        self.with_noise = [X, noise]
        self.halves_with_noise = [*self.halves, noise]

    def precision(self, model, views) -> float:
        """Average precision on test rows after a fit to training rows of a matrix or of several."""
        several = isinstance(views, list)
        train, test = (
            [view[part] for view in views] if several else views[part] for part in (self.train, self.test)
        )
        return average_precision(self.truth, model.fit(train, self.candidates).decision_function(test))


def compare_forms(rows: Rows, method: str) -> dict:
    """Average precision in each form, and the weights that were learned."""
    make = METHODS[method]
    found: dict = {"whole": rows.precision(make(rows.fold), rows.whole)}
    for form in FORMS:
        model = make(rows.fold)
        found[form] = rows.precision(model, getattr(rows, form))
        found[f"{form} weights"] = [round(weight, 3) for weight in model.view_weights_.values()]
    found["one matrix with noise"] = rows.precision(make(rows.fold), np.hstack(rows.with_noise))
    return found


def kernels(rows: Rows) -> dict[str, float]:
    """Ridge on halves of equal weight, by the product of their kernels or by the sum; γ by rows left out."""
    train, test, columns = weighted(rows.halves, rows, [1, 1])
    together = mapped(train, test, rows.fold)
    apart = [mapped(train[:, part], test[:, part], rows.fold) for part in columns]
    summed = tuple(np.hstack(side) for side in zip(*apart, strict=True))
    return {
        "product of kernels": precision_of_ridge(*together, rows),
        "sum of kernels": precision_of_ridge(*summed, rows),
    }


def weighted(views, rows: Rows, weights):
    """Training and test rows of views of given weights, and the columns of each view."""
    ends = np.cumsum([0, *(view.shape[1] for view in views)])
    columns = [np.arange(*pair) for pair in pairwise(ends)]
    X = np.hstack(views)
    scaler = ViewScaler(columns={str(place): part for place, part in enumerate(columns)}, weights=weights)
    train = scaler.fit(X[rows.train]).transform(X[rows.train])
    return train, scaler.transform(X[rows.test]), columns


def mapped(train, test, fold: int):
    features = RBFAnchors(random_state=fold)
    return features.fit_transform(train)[:, :-1], features.transform(test)[:, :-1]


def precision_of_ridge(train, test, rows: Rows) -> float:
    Y = rows.candidates.astype(np.float64)
    spectrum = spectrum_of(train)
    targets = np.broadcast_to(Y[:, None, :], (len(Y), len(GAMMAS), Y.shape[1]))
    coef, intercept, left_out = ridge_scores(spectrum, targets, GAMMAS)
    best = int(((left_out - targets) ** 2).mean(axis=(0, 2)).argmin())
    return average_precision(rows.truth, spectrum.project(test) @ coef[:, best] + intercept[best])


def criteria(rows: Rows) -> dict[str, float]:
    """By how many standard errors rows left out tell the features from features with a third of noise."""
    Y = rows.candidates.astype(np.float64)
    quality: dict[str, list] = {"squared error": [], "average precision": []}
    for weights in ([1, 0], [2, 1]):
        train, test, _ = weighted(rows.with_noise, rows, weights)
        spectrum = spectrum_of(mapped(train, test, rows.fold)[0])
        every = [ridge_scores(spectrum, Y[:, None, :], np.array([g]))[2][:, 0] for g in GAMMAS]
        errors = [-((left_out - Y) ** 2).sum(axis=1) for left_out in every]
        ranked = [precision_by_row(Y, left_out) for left_out in every]
        quality["squared error"].append(max(errors, key=np.mean))
        quality["average precision"].append(max(ranked, key=np.mean))
    found = {}
    for name, (without, with_noise) in quality.items():
        gap = without - with_noise
        found[f"noise seen by {name}"] = float(gap.mean() / gap.std() * len(gap) ** 0.5)
    return found


def precision_by_row(Y, scores):
    told = (Y.sum(axis=1) > 0) & (Y.sum(axis=1) < Y.shape[1])
    pairs = zip(Y[told, None, :], scores[told, None, :], strict=True)
    return np.array([average_precision(one, score) for one, score in pairs])


def graphs(rows: Rows) -> dict[str, float]:
    """PMLMA on halves of equal weight with alignment_weight=1: of both, or the mean of one each."""
    chosen = {"alignment_weight": 1.0, "view_weights": [1, 1], "random_state": rows.fold, **QUIET}
    each = sum(neighbor_similarity(RangeScaler().fit_transform(half[rows.train])) for half in rows.halves) / 2
    return {
        "graph of the product": rows.precision(PMLMA(**chosen), rows.halves),
        "mean of graphs": rows.precision(PMLMA(graph=each, **chosen), rows.halves),
    }


def table(found: dict[tuple[str, str], list[dict]], folds: int) -> str:
    titles = (
        "data", "method", "whole", "two halves", "weights", "whole and noise", "weight of noise", "halves and noise",
        "weight of noise", "noise in one matrix",
    )  # fmt: skip
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    worst = dict.fromkeys(FORMS, 1.0)
    for (name, method), results in found.items():
        mean = {
            form: float(np.mean([result[form] for result in results]))
            for form in ("whole", *FORMS, "one matrix with noise")
        }
        cells = [name, method, f"{mean['whole']:.3f}"]
        for form in FORMS:
            gap = mean[form] - mean["whole"]
            worst[form] = min(worst[form], gap)
            weights = [result[f"{form} weights"] for result in results]
            shown = (
                ["/".join(f"{w:.2f}" for w in each) for each in weights]
                if form == "halves"
                else [f"{each[-1]:.2f}" for each in weights]
            )
            cells += [f"{mean[form]:.3f} ({gap:+.4f})", ", ".join(shown)]
        cells.append(f"{mean['one matrix with noise']:.3f}")
        lines.append(f"| {' | '.join(cells)} |")
    verdict = "met" if min(worst.values()) >= -BAR else "missed"
    return "\n".join(
        [
            f"Average precision, mean of {folds} folds (difference from the whole); weights by fold.\n",
            *lines,
            "",
            f"At worst, against the whole as one matrix: two halves {worst['halves']:+.4f}, with a view of noise "
            f"{worst['with_noise']:+.4f}, halves with a view of noise {worst['halves_with_noise']:+.4f}; the bar of "
            f"{-BAR} is {verdict}.",
        ]
    )


def comparison(ways: dict[str, list[dict[str, float]]]) -> str:
    """What was decided by measurement: kernels, graphs, and the criterion for weights."""
    titles = list(next(iter(ways.values()))[0])
    lines = [f"| data | {' | '.join(titles)} |", "|---" * (len(titles) + 1) + "|"]
    means = {
        name: [float(np.mean([result[title] for result in results])) for title in titles]
        for name, results in ways.items()
    }
    means["mean"] = np.mean(list(means.values()), axis=0).tolist()
    for name, values in means.items():
        cells = [
            f"{value:.1f}" if "seen by" in title else f"{value:.4f}"
            for title, value in zip(titles, values, strict=True)
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    intro = (
        "Average precision of two halves of equal weight: ridge (γ by rows left out) and PMLMA with alignment_weight=1. "
        "And by how many standard errors rows left out tell the features from features with a third of noise."
    )
    return "\n".join([f"{intro}\n", *lines])


if __name__ == "__main__":
    main()
