"""Which candidates are wrong? The audit, out-of-fold ridge scores, and cleanlab on these same scores.

    python benchmarks/cleaning.py
    python benchmarks/cleaning.py --data emotions-4 digits

For each data set the area under the ROC curve of "this candidate is wrong", precision and recall of the candidates that
the audit would drop by itself, those of the candidates in which cleanlab's multi-label ``find_label_issues`` sees an
issue (asked label by label), and the number of wrong candidates beside the audit's estimate. Data sets that stand in
results/cleaning.csv are not done again; results/cleaning.md is the table. Needs the data sets (SKPML_DATA) and cleanlab
(in the extra ``dev``), which gets the ridge scores as probabilities, cut to [0, 1].
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from skpml import CandidateLikelihood
from skpml._writing import replacing
from skpml.cleaning import audit
from skpml.cleaning._judging import cross_fit
from skpml.datasets import load_dataset

RESULTS = Path(__file__).parents[1] / "results"
TABLE = RESULTS / "cleaning.md"
DATA = ("emotions-4", "scene-3", "yeast-7", "birds-4", "image-3", "arts-7", "mirflickr_subset5000", "digits")
COLUMNS = {
    "data": "data", "candidates": "candidates", "wrong": "wrong", "estimated": "estimated (interval)", "audit": "audit",
    "ridge": "ridge", "cleanlab": "cleanlab", "precision": "precision of drops", "recall": "recall of drops",
    "issues_precision": "precision of cleanlab's issues", "issues_recall": "recall of cleanlab's issues",
}  # fmt: skip
QUIET = {"random_state": 0, "on_empty": "ignore"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=list(DATA))
    options = parser.parse_args()
    done = read()
    for name in options.data:
        if name not in done:
            done[name] = one_data_set(name)
            print(done[name], flush=True)
            write([done[each] for each in DATA if each in done])
    print(TABLE.read_text(encoding="utf-8"), end="")


def one_data_set(name: str) -> dict[str, str]:
    """A row of the table."""
    data = load_dataset(name, random_state=0)
    candidate = data.candidates > 0
    wrong = (candidate & (data.truth == 0))[candidate]
    found = audit(data.X, data.candidates, label_names=data.label_names)
    ridge = out_of_fold_ridge(data)
    dropped = (found.actions == "drop")[candidate]
    issues = cleanlab_issues(data.candidates, ridge)[candidate]
    estimate, low, high = found.wrong.total
    return {
        "data": name,
        "candidates": str(candidate.sum()),
        "wrong": str(wrong.sum()),
        "estimated": "unknown"
        if found.wrong.basis == "unknown"
        else f"{estimate:.0f} ({low:.0f}–{high:.0f})",
        "audit": f"{roc_auc_score(wrong, -found.confidences[candidate]):.3f}",
        "ridge": f"{roc_auc_score(wrong, -ridge[candidate]):.3f}",
        "cleanlab": f"{roc_auc_score(wrong, -cleanlab_quality(data.candidates, ridge)[candidate]):.3f}",
        "precision": f"{wrong[dropped].mean():.3f}" if dropped.any() else "–",
        "recall": f"{dropped[wrong].mean():.3f}",
        "issues_precision": f"{wrong[issues].mean():.3f}",
        "issues_recall": f"{issues[wrong].mean():.3f}",
    }


def out_of_fold_ridge(data) -> np.ndarray:
    """Scores by ridge regression on the candidates without the row, the weight chosen without true labels."""
    chosen = CandidateLikelihood(family="ridge", n_members=1, **QUIET).fit(data.X, data.candidates)
    (member,) = chosen.selection_["members"]
    ridge = CandidateLikelihood(
        family="ridge", gamma=member["gamma"], kernel_width=member["width"], noise_rate=0.0, at_least_one=False, **QUIET
    )  # fmt: skip
    return cross_fit(ridge, data.X, data.candidates)[1]


def cleanlab_quality(candidates: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """Cleanlab's quality of each label of each row, from the same chances to be a candidate."""
    from cleanlab.rank import get_label_quality_scores

    quality = np.empty(candidates.shape)
    for label in range(candidates.shape[1]):
        p = np.clip(chances[:, label], 1e-6, 1 - 1e-6)
        quality[:, label] = get_label_quality_scores(
            candidates[:, label].astype(int), np.column_stack([1 - p, p]), adjust_pred_probs=True
        )
    return quality


def cleanlab_issues(candidates: np.ndarray, chances: np.ndarray) -> np.ndarray:
    """Where cleanlab sees an issue, by its default rule, from the same chances."""
    from cleanlab.multilabel_classification.filter import find_multilabel_issues_per_class

    given = [np.flatnonzero(row).tolist() for row in candidates]
    return np.asarray(find_multilabel_issues_per_class(given, np.clip(chances, 1e-6, 1 - 1e-6), n_jobs=1))


def read() -> dict[str, dict[str, str]]:
    path = RESULTS / "cleaning.csv"
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {row["data"]: row for row in csv.DictReader(file)}


def write(rows: list[dict[str, str]]) -> None:
    lines = [f"| {' | '.join(COLUMNS.values())} |", "|---" * len(COLUMNS) + "|"]
    lines += [f"| {' | '.join(row[name] for name in COLUMNS)} |" for row in rows]
    with replacing(RESULTS / "cleaning.csv", TABLE, overwrite=True) as (table, page):
        with table.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(COLUMNS))
            writer.writeheader()
            writer.writerows(rows)
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
