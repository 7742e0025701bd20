"""What tests of data sets share."""

import numpy as np
import scipy.sparse as sp

from skpml.datasets import PartialDataset


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def assert_same_content(found, expected, *, feature_names=True):
    """X in value, both label matrices and the names are the same."""
    if expected.X is None:
        assert found.X is None
    else:
        np.testing.assert_array_equal(dense(found.X), dense(expected.X))
    np.testing.assert_array_equal(found.candidates, expected.candidates)
    if expected.truth is None:
        assert found.truth is None
    else:
        np.testing.assert_array_equal(found.truth, expected.truth)
    assert found.label_names == expected.label_names
    if feature_names:
        assert found.feature_names == expected.feature_names


def example(*, rows=7, features="dense", truth="partly", seed=0):
    """A small data set; features "dense", "sparse" or None; truth "partly" (noisy), "all" (no noise) or None."""
    rng = np.random.default_rng(seed)
    candidates = (rng.random((rows, 4)) < 0.6).astype(np.uint8)
    candidates[np.arange(rows), np.arange(rows) % 4] = 1
    kept = candidates * (rng.random(candidates.shape) < 0.6)
    X = rng.normal(size=(rows, 3)) * np.array([1.0, 1e-9, 1e12])
    if features == "sparse":
        X = sp.csr_array(np.where(rng.random(X.shape) < 0.5, X, 0.0))
    return PartialDataset(
        None if features is None else X,
        candidates,
        {"partly": kept, "all": candidates, None: None}[truth],
        ("sea", "blue sky", "it's, 100%", 'λ "x" {y}'),
        None if features is None else ("f 1", "f\\2", "'f3'"),
        "example",
        "made for tests",
    )
