import numpy as np
import pytest
from numpy.testing import assert_allclose

from skpml.baselines import NLR, PLENFN, PMLFP, Schirn, _common
from skpml.baselines._common import ShiftedRows, leave_out_lowest


def texts(n=90, d=40, c=5, seed=0):
    """Features of which one in twenty is not zero, and candidates."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.05)
    C = (X @ rng.normal(size=(d, c)) + 0.3 * rng.normal(size=(n, c)) > 0).astype(np.uint8)
    return X, C


def test_products_without_the_lowest_values():
    X, rng = texts()[0] - np.linspace(-1, 2, 40), np.random.default_rng(1)
    rows = leave_out_lowest(X)
    assert isinstance(rows, ShiftedRows)
    assert rows.rows.nnz < 0.1 * X.size
    assert rows.shape == X.shape
    assert rows.T.shape == X.T.shape
    W, T = rng.normal(size=(40, 3)), rng.normal(size=(90, 3))
    assert_allclose(rows @ W, X @ W, atol=1e-12)
    assert_allclose(rows.T @ T, X.T @ T, atol=1e-12)


def test_dense_features_are_unchanged():
    X = np.random.default_rng(0).random((20, 5))
    assert leave_out_lowest(X) is X


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model", [NLR(), PLENFN(random_state=0, max_iter=30), PMLFP(), Schirn()], ids=lambda m: type(m).__name__
)
def test_fits_to_texts_do_not_depend_on_the_products(model, monkeypatch):
    X, C = texts()
    found = model.fit(X, C).decision_function(X)
    history = model.history_
    monkeypatch.setattr(_common, "_SPARSE_SHARE", -1.0)
    assert_allclose(found, model.fit(X, C).decision_function(X), atol=1e-6)
    for name, values in model.history_.items():
        assert_allclose(history[name], values, rtol=1e-8, atol=1e-8)
