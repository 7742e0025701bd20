"""Four kinds of noise, and their effect on a learner.

Each generator of `skpml.noise` adds the same number of false candidates to the true labels of the digits, `flip` on
average. The table shows the share of false candidates, how well the confidences of PML-MA separate true from false
candidates (AUC), and how well its scores rank the labels of held-out rows. False labels drawn at random are easier to
detect than those that depend on labels or features.
"""

import numpy as np
from sklearn.model_selection import train_test_split

from skpml import PMLMA
from skpml.datasets import load_digits_attributes
from skpml.metrics import average_precision, denoising_scores
from skpml.noise import flip, instance_dependent, label_dependent, top_up

data = load_digits_attributes(candidates=0)
X, truth = data.X, data.truth
added = top_up(truth, 6, random_state=0).sum(axis=1).mean() - truth.sum(axis=1).mean()
rate = added / (truth.shape[1] - truth.sum(axis=1).mean())

generators = {
    "top_up": top_up(truth, 6, random_state=0),
    "flip": flip(truth, rate, random_state=0),
    "label_dependent": label_dependent(truth, 6, random_state=0),
    "instance_dependent": instance_dependent(X, truth, 6, random_state=0),
}

train, test = train_test_split(np.arange(len(X)), test_size=0.3, random_state=0)
print(f"{'generator':20s} {'false candidates':>17s} {'AUC of confidences':>19s} {'average precision':>18s}")
for name, candidates in generators.items():
    model = PMLMA(random_state=0).fit(X[train], candidates[train])
    auc = denoising_scores(candidates[train], truth[train], model.confidences_)["auc"]
    precision = average_precision(truth[test], model.decision_function(X[test]))
    noise = data.with_candidates(candidates).statistics().noise_rate
    print(f"{name:20s} {noise:17.1%} {auc:19.3f} {precision:18.3f}")
