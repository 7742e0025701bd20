import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from skpml.baselines._particle_svm import _Primal, train_machine


def make_rows(n, d, *, seed=0):
    """Noisy classes; the last column is the constant."""
    rng = np.random.default_rng(seed)
    rows = np.hstack([rng.uniform(-1, 1, size=(n, d)), np.ones((n, 1))])
    return rows, rows[:, 0] + 0.5 * rng.normal(size=n) > 0.4


def objective(w, rows, is_first, C):
    """Value and gradient."""
    y = np.where(is_first, 1.0, -1.0)
    slack = np.maximum(0, 1 - y * (rows @ w))
    return w @ w / 2 + C * slack @ slack, w - 2 * C * (y * slack) @ rows


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(("n", "d"), [(300, 8), (60, 50), (40, 80), (5, 30)])
def test_optimum_is_that_of_scikit_learn(n, d, C):
    rows, is_first = make_rows(n, d)
    w = train_machine(rows, is_first, C=C)
    machine = LinearSVC(C=C, dual=False, tol=1e-8, max_iter=10_000).fit(rows[:, :-1], is_first)
    theirs = np.r_[machine.coef_[0], machine.intercept_]
    assert_allclose(w, theirs, atol=1e-5)
    assert objective(w, rows, is_first, C)[0] <= objective(theirs, rows, is_first, C)[0] * (1 + 1e-12)


@pytest.mark.parametrize("C", [1e-9, 1.0, 1e4])
@pytest.mark.parametrize(("n", "d"), [(200, 20), (20, 40)])
def test_gradient_vanishes(n, d, C):
    """The objective grows at least like ½‖w − optimum‖², so the gradient bounds the distance from the optimum."""
    rows, is_first = make_rows(n, d, seed=1)
    assert_allclose(objective(train_machine(rows, is_first, C=C), rows, is_first, C)[1], 0, atol=1e-7)


@pytest.mark.parametrize(("n", "d"), [(40, 5), (8, 20)])
def test_equal_rows_of_both_classes_cancel(n, d):
    rows, _ = make_rows(n, d)
    w = train_machine(np.vstack([rows, rows]), np.arange(2 * n) < n, C=10.0)
    assert_allclose(w, 0, atol=1e-12)


def test_rows_exactly_on_the_margin():
    """By hand: w = (1, 0) with C = ½ puts the last two rows on the margin; in and out of the sum is the same."""
    rows = np.array([[0.5, 1.0], [0.5, -1.0], [-0.5, 1.0], [-0.5, -1.0], [1.0, 0.0], [-1.0, 0.0]])
    # Derivative: 1 − 2C · 4 · ½ (1 − ½) = 0.
    w = train_machine(rows, np.array([1, 1, 0, 0, 1, 0], dtype=bool), C=0.5)
    assert_allclose(w, [1, 0], atol=1e-12)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("C", [1e-300, 1e12, 1e100])
@pytest.mark.parametrize(("n", "d"), [(60, 20), (10, 20)])
def test_extreme_weights_give_finite_models(n, d, C):
    rows, is_first = make_rows(n, d)
    # Equal rows make the matrix of inner products singular.
    assert np.isfinite(train_machine(np.repeat(rows, 2, axis=0), np.repeat(is_first, 2), C=C)).all()


def test_too_few_steps_are_reported(monkeypatch):
    monkeypatch.setattr("skpml.baselines._particle_svm._MAX_STEPS", 1)
    rows, is_first = make_rows(50, 5)
    with pytest.warns(ConvergenceWarning, match="C=1"):
        train_machine(rows, is_first, C=1.0)


@pytest.mark.parametrize("n_active", [3, 15, 60])
def test_step_minimizes_the_piece(n_active):
    """Whether there are fewer or more active rows than features."""
    rng = np.random.default_rng(0)
    rows, signs, v, C = rng.normal(size=(60, 20)), np.sign(rng.normal(size=60)), rng.normal(size=20), 3.0
    machine = _Primal(rows, signs)
    machine.factorize(np.arange(60) < n_active, C)
    part = rows[:n_active]
    minimum = np.linalg.solve(np.eye(20) + 2 * C * part.T @ part, 2 * C * part.T @ signs[:n_active])
    assert machine.few == (n_active < 20)
    assert_allclose(v + machine.step(v, 1 - signs * (rows @ v)), minimum, atol=1e-10)
