"""Rows that come in batches."""

import numpy as np


def rows(n=200, d=6, c=4, seed=0):
    """Return features and candidates, of which some are wrong."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    truth = X @ rng.normal(size=(d, c)) + rng.normal(size=(n, c)) > 0.5
    candidates = (truth | (rng.random((n, c)) < 0.2)).astype(int)
    candidates[np.arange(n), rng.integers(0, c, n)] = 1
    return X, candidates


def fit_in_batches(model, X, y, sizes, **options):
    """Fit a model to batches of these sizes, one after the other."""
    start = 0
    for size in sizes:
        model.partial_fit(X[start : start + size], y[start : start + size], **options)
        start += size
    return model
