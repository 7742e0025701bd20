"""Raw pictures: where a network beats a kernel on the same candidate labels.

A picture shows one to three handwritten digits of 8×8 pixels at random positions on a canvas of 16×16. Its labels are
these digits; every other digit is a candidate with probability 0.3. Since the digits move, pixels are poor features for
similarities. A convolutional network learns its features together with the labels, by the same likelihood; with
noise_rate=0 it treats all candidates as true. The table shows the average precision on new pictures of other digits,
as the mean of three seeds, or of the number of seeds given on the command line.
"""

import sys

import numpy as np
from sklearn.datasets import load_digits
from torch import nn

from skpml import CandidateLikelihood
from skpml.deep import DeepCandidateLikelihood
from skpml.metrics import average_precision
from skpml.noise import flip
from skpml.reference import CandidateRidge

images, digits = load_digits(return_X_y=True)
N_SEEDS, CANVAS = int(sys.argv[1]) if len(sys.argv) > 1 else 3, 16


def pictures(rows, n, rng):
    X, truth = np.zeros((n, CANVAS, CANVAS), np.float32), np.zeros((n, 10), int)
    for canvas, labels in zip(X, truth, strict=True):
        for shown in rng.choice(rows, size=rng.integers(1, 4)):
            row, column = rng.integers(CANVAS - 7, size=2)
            place = canvas[row : row + 8, column : column + 8]
            np.maximum(place, images[shown].reshape(8, 8) / 16, out=place)
            labels[digits[shown]] = 1
    return X.reshape(n, -1), truth


def convolutional(n_features, n_labels):
    layers = [nn.Unflatten(1, (1, CANVAS, CANVAS)), nn.Conv2d(1, 16, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Conv2d(16, 32, 3, 1, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 1, 1), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(64, n_labels))


fixed = {"network": convolutional, "learning_rate": 5e-3, "patience": 6, "n_members": 1, "at_least_one": True}
learners = {"ridge": CandidateRidge(), "CandidateLikelihood": CandidateLikelihood(n_anchors=300)}
learners["network, noise_rate=0"] = DeepCandidateLikelihood(**fixed, noise_rate=0)
learners["network"] = DeepCandidateLikelihood(**fixed)
precision = np.zeros((len(learners), 2))
for seed in range(N_SEEDS):
    rng = np.random.default_rng(seed)
    train, test = np.split(rng.permutation(len(digits)), [1200])
    X, truth = pictures(train, 1000, rng)
    X_new, truth_new = pictures(test, 500, rng)
    for column, labels in enumerate((flip(truth, 0.3, random_state=seed), truth)):
        for row, model in enumerate(learners.values()):
            scores = model.set_params(random_state=seed).fit(X, labels).decision_function(X_new)
            precision[row, column] += average_precision(truth_new, scores) / N_SEEDS
print(f"{'trained on':24}{'candidates':>12}{'true labels':>12}")
for name, (on_candidates, on_truth) in zip(learners, precision, strict=True):
    print(f"{name:24}{on_candidates:12.3f}{on_truth:12.3f}")
