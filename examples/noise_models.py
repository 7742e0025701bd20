"""Four ways in which labels can be wrong, and what each does to a learner.

The true labels of the digits are spoilt by each generator of `skpml.noise`, with about the same number of false
candidates. The table says how many of the candidates are false, how well PML-MA's confidences tell true from false ones
(AUC), and how well its scores rank the labels of rows it has not seen. False labels drawn at random are told apart more
easily than those that look right.
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
    "label_dependent": label_dependent(truth, added, random_state=0),
    "instance_dependent": instance_dependent(X, truth, added, random_state=0),
}

train, test = train_test_split(np.arange(len(X)), test_size=0.3, random_state=0)
print(f"{'generator':20s} {'false candidates':>17s} {'AUC of confidences':>19s} {'average precision':>18s}")
for name, candidates in generators.items():
    model = PMLMA(random_state=0).fit(X[train], candidates[train])
    auc = denoising_scores(candidates[train], truth[train], model.confidences_)["auc"]
    precision = average_precision(truth[test], model.decision_function(X[test]))
    noise = data.with_candidates(candidates).statistics().noise_rate
    print(f"{name:20s} {noise:17.1%} {auc:19.3f} {precision:18.3f}")
