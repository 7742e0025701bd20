"""Rows whose labels have known probabilities, for tests of methods that say how probable a label is."""

from __future__ import annotations

import numpy as np


def blobs(n=600, c=5, rate=0.3, seed=0):
    """Labels with known probabilities, clear negatives among them, and false candidates at a known rate."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    chance = 1 / (1 + np.exp(-(3 * X @ rng.normal(size=(4, c)) - 2)))
    truth = (rng.random((n, c)) < chance).astype(int)
    return X, truth, np.maximum(truth, (rng.random((n, c)) < rate).astype(int)), chance
