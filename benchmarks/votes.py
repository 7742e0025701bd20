"""How well votes and features together find wrong candidates, and how well annotators are recovered.

    SKPML_CROWD=folder python benchmarks/votes.py        # writes results/votes.md

medical_relations.npz in the folder has features X, counts of votes of three annotators, and the truth: what at least
half of about twelve other annotators say. "Supervised" is no method: a logistic regression on votes, predicted shares
and labels that was trained on the truth of other rows, for what could be reached with these features. In the simulation
the truth and the features are real, the annotators are not.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold, cross_val_predict

from skpml._writing import replacing
from skpml.candidate_likelihood import VoteFit, fit_votes
from skpml.features import RangeScaler, RBFAnchors
from skpml.likelihood import VOTE_WIDTHS, fit_best_ridge, fit_vote_model
from skpml.likelihood._noise import bend
from skpml.likelihood._vote_counts import check_votes
from skpml.linalg import spectrum_of

OUTPUT = Path(__file__).parents[1] / "results" / "votes.md"
NAME = "medical_relations.npz"
Floats = NDArray[np.float64]
# Simulated annotators, and how many of them see a row.
ANNOTATORS, PER_ROW, SEEDS, ROWS = 20, 4, 5, 1000


def read() -> dict[str, NDArray[np.generic]]:
    folder = os.environ.get("SKPML_CROWD")
    if not folder or not (Path(folder) / NAME).is_file():
        sys.exit(f"Set the environment variable SKPML_CROWD to the folder that has {NAME}.")
    with np.load(Path(folder) / NAME) as data:
        return {name: data[name] for name in ("X", "votes", "Y_true", "Y_truth_beyond_candidates")}


def calibration_error(p: Floats, true: NDArray[np.bool_]) -> float:
    bins = np.minimum((10 * p).astype(int), 9)
    return float(
        sum((bins == k).mean() * abs(p[bins == k].mean() - true[bins == k].mean()) for k in np.unique(bins))
    )


def predict_shares(X: Floats, votes: Floats, m: int) -> Floats:
    scaled, anchors, spectra = RangeScaler().fit_transform(X), None, []
    for width in VOTE_WIDTHS:
        feature_map = RBFAnchors(width=width, anchors=anchors, random_state=0)
        spectra.append(spectrum_of(feature_map.fit_transform(scaled)[:, :-1]))
        anchors = feature_map.anchors_
    return np.asarray(fit_best_ridge(spectra, votes / m).held_out)


def supervise(shares: Floats, votes: Floats, true: NDArray[np.bool_]) -> Floats:
    rows, labels = np.nonzero(votes > 0)
    parts = [logit(bend(shares))[rows, labels, None], np.eye(4)[votes[rows, labels].astype(int)]]
    features = np.hstack([*parts, np.eye(votes.shape[1])[labels]])
    model, folds = LogisticRegression(max_iter=1000), GroupKFold(5)
    found = np.zeros(votes.shape)
    found[rows, labels] = cross_val_predict(
        model, features, true[rows, labels], groups=rows, cv=folds, method="predict_proba"
    )[:, 1]
    return found


def recover(X: Floats, true: NDArray[np.bool_], seed: int) -> list[float]:
    """Return the errors of recovered rates of simulated annotators, and the AUC of wrong candidates."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(X))[:ROWS]
    X, true = X[rows], true[rows]
    sensitivity, false_rate = rng.uniform(0.4, 0.95, ANNOTATORS), rng.uniform(0.01, 0.25, ANNOTATORS)
    seen = rng.permuted(np.tile(np.arange(ANNOTATORS) < PER_ROW, (ROWS, 1)), axis=1)
    rate = np.where(true[:, None, :], sensitivity[None, :, None], false_rate[None, :, None])
    votes = np.where(seen[:, :, None], rng.random(rate.shape) < rate, np.nan)
    found = fit_votes(X, votes)
    errors = []
    for cells, rates in ((true, found.annotator_sensitivity), (~true, found.annotator_false_rate)):
        assert rates is not None
        weights = seen.T.astype(float) @ cells
        estimated = (rates * weights).sum(axis=1) / weights.sum(axis=1)
        measured = np.array([np.nanmean(votes[:, who][cells]) for who in range(ANNOTATORS)])
        errors.append(np.abs(estimated - measured))
    candidate = np.nansum(votes, axis=1) > 0
    auc = roc_auc_score(true[candidate], found.confidences[candidate])
    share = roc_auc_score(true[candidate], np.nansum(votes, axis=1)[candidate])
    return [errors[0].mean(), errors[0].max(), errors[1].mean(), errors[1].max(), auc, share]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
    data = read()
    X, votes, true = data["X"].astype(float), data["votes"].astype(float), data["Y_true"] > 0
    shares = predict_shares(X, votes, 3)
    checked = check_votes(votes, 3)
    fits: dict[str, VoteFit] = {
        "**votes and features**": fit_vote_model(shares, checked),
        'the same, `truth="class"`': fit_vote_model(shares, checked, truth="class"),
        'the same, `spread=0`, `truth="class"` (Dawid and Skene with features)': fit_vote_model(
            shares, checked, truth="class", spread=0
        ),
        '`spread=0`, `truth="class"`, no features (Dawid and Skene)': fit_vote_model(
            np.full_like(shares, 0.5), checked, truth="class", spread=0
        ),
    }
    found = {
        "share of votes alone": votes / 3,
        "predicted share of votes alone (features)": np.clip(shares, 0, 1),
        "crude sum of both, halved": np.clip((votes / 3 + shares) / 2, 0, 1),
        **{name: fit.confidences for name, fit in fits.items()},
        "supervised: trained on the truth of other rows": supervise(shares, votes, true),
    }
    candidate = votes > 0
    lines = ["| confidences | AUC | calibration error | mean (true: {:.3f}) |", "|---|---|---|---|"]
    lines[0] = lines[0].format(true[candidate].mean())
    for name, p in found.items():
        auc = roc_auc_score(true[candidate], p[candidate])
        error = calibration_error(p[candidate], true[candidate])
        lines.append(f"| {name} | {auc:.3f} | {error:.3f} | {p[candidate].mean():.3f} |")
    fit = fits["**votes and features**"]
    lines += ["", "| votes of 3 | cells | true | mean confidence |", "|---|---|---|---|"]
    beyond = true | (data["Y_truth_beyond_candidates"] > 0)
    for count in range(4):
        cells = votes == count
        lines.append(
            f"| {count} | {cells.sum():,} | {beyond[cells].mean():.3f} | {fit.confidences[cells].mean():.3f} |"
        )
    print("\n".join(lines), flush=True)
    simulated = np.array([recover(X, beyond, seed) for seed in range(SEEDS)])
    lines += [
        "",
        "| simulated annotators | mean error | largest error |",
        "|---|---|---|",
        f"| rate of true labels t | {simulated[:, 0].mean():.3f} | {simulated[:, 1].max():.3f} |",
        f"| rate of false labels r | {simulated[:, 2].mean():.3f} | {simulated[:, 3].max():.3f} |",
        "",
        f"AUC of wrong candidates in the simulation: {simulated[:, 4].mean():.3f}; number of votes alone: "
        f"{simulated[:, 5].mean():.3f}.",
    ]
    print("\n".join(lines[-7:]))
    with replacing(OUTPUT, overwrite=True) as (temporary,):
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
