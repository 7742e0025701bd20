"""Compare PML-MA with a floor and a ceiling.

The floor is ridge regression that treats every candidate as true. The ceiling is the same regression on the true labels.
A method for candidate labels is useful if it is clearly above the floor; the ceiling shows how much there is to gain. All
three use the same folds and the same feature map, and are scored against the true labels of held-out rows.
"""

import numpy as np
from sklearn.model_selection import KFold

from skpml import PMLMA
from skpml.datasets import load_digits_attributes
from skpml.metrics import METRICS, evaluate
from skpml.reference import CandidateRidge

SHOWN = ("hamming_loss", "ranking_loss", "one_error", "coverage", "average_precision")

data = load_digits_attributes(candidates=6, random_state=0)
methods = {
    "ridge on candidates": (CandidateRidge, data.candidates),
    "PML-MA": (PMLMA, data.candidates),
    "ridge on truth": (CandidateRidge, data.truth),
}

folds = list(KFold(5, shuffle=True, random_state=0).split(data.X))
results = {}
for name, (method, labels) in methods.items():
    values = []
    for train, test in folds:
        model = method(random_state=0).fit(data.X[train], labels[train])
        scores, decisions = model.decision_function(data.X[test]), model.predict(data.X[test])
        values.append(evaluate(data.truth[test], scores, decisions))
    results[name] = {metric: [fold[metric] for fold in values] for metric in SHOWN}

print(f"{data.name}: {data.statistics().noise_rate:.0%} of the candidates are false; mean ± std of 5 folds\n")
print(" " * 20, *(f"{name:>21s}" for name in methods))
for metric in SHOWN:
    arrow = "↑" if METRICS[metric].greater_is_better else "↓"
    cells = (
        f"{np.mean(folds[metric]):.4f} ± {np.std(folds[metric], ddof=1):.4f}" for folds in results.values()
    )
    print(f"{METRICS[metric].title:18s} {arrow}", *(f"{cell:>21s}" for cell in cells))
