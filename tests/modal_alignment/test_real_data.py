"""The published figures on real data, one seed: slow parts are left to benchmarks/reproduce.py."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from skpml import PMLMA
from skpml.datasets import load_dataset
from skpml.metrics import average_precision, hamming_loss, ranking_loss

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "weights", "published", "slack"),
    [
        ("emotions-3", (10, 0.1, 0.1, 1), (0.814, 0.156), 0.015),
        ("birds-3", (10, 1e-3, 1e-2, 0.1), (0.634, 0.171), 0.03),
        ("image-3", (10, 1e-2, 1e-2, 0.1), (0.795, 0.175), 0.015),
        ("scene-5", (10, 1e-2, 1e-2, 10), (0.813, 0.114), 0.015),
        ("yeast-7", (10, 1e-4, 1e-3, 10), (0.758, 0.171), 0.015),
    ],
)
def test_reaches_the_published_ranking(data_folder, name, weights, published, slack):
    precision, loss, _ = cross_validate(name, weights)
    assert precision >= published[0] - slack
    assert loss <= published[1] + slack


@pytest.mark.parametrize(
    ("name", "weights", "published", "slack"),
    [
        ("scene-5", (10, 1e-2, 1e-2, 10), 0.134, 0.01),
        ("emotions-4", (10, 0.1, 0.01, 10), 0.209, 0.01),
        ("emotions-5", (10, 0.1, 0.01, 10), 0.240, 0.01),
        ("yeast-9", (10, 1e-4, 1e-3, 10), 0.213, 0.01),
        ("image-4", (10, 1e-2, 1e-2, 0.1), 0.212, 0.04),
    ],
)
def test_automatic_threshold_reaches_the_published_hamming_loss(data_folder, name, weights, published, slack):
    assert cross_validate(name, weights)[2] <= published + slack


def cross_validate(name, weights):
    data = load_dataset(name, random_state=0)
    lam, alpha, beta, gamma = weights
    values = []
    for fold, (train, test) in enumerate(KFold(10, shuffle=True, random_state=0).split(data.X)):
        model = PMLMA(
            low_rank_weight=lam,
            alignment_weight=alpha,
            prototype_weight=beta,
            ridge_weight=gamma,
            random_state=fold,
            on_empty="ignore",
        )
        scores = model.fit(data.X[train], data.candidates[train]).decision_function(data.X[test])
        truth = data.truth[test]
        values.append(
            (
                average_precision(truth, scores),
                ranking_loss(truth, scores),
                hamming_loss(truth, scores > model.threshold_),
            )
        )
    return np.mean(values, axis=0)
