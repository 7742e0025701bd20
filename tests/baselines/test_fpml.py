import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from skpml.baselines.fpml import FPML, solve

WEIGHTS = dict(lam1=0.4, lam2=0.7, lam3=2.0, factor_weight=0.5)


def problem(n=30, d=6, c=5, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-1, 1, size=(n, d)), np.ones(n)])
    Y = (X @ rng.normal(size=(d + 1, c)) + 0.5 * rng.normal(size=(n, c)) > 0).astype(float)
    return X, Y


def objective(blocks, X, Y, lam1, lam2, lam3, factor_weight):
    """Value and gradient, written down term by term."""
    G, B, E, W = blocks
    labels, features, classifier = Y - G @ B, X - G @ E, X @ W - G @ B
    value = (
        (labels**2).sum()
        + lam1 * (features**2).sum()
        + lam2 * (classifier**2).sum()
        + lam3 * (W**2).sum()
        + factor_weight * sum((M**2).sum() for M in (G, B, E))
    )
    of_product = -2 * labels - 2 * lam2 * classifier
    gradient = (
        of_product @ B.T - 2 * lam1 * features @ E.T + 2 * factor_weight * G,
        G.T @ of_product + 2 * factor_weight * B,
        -2 * lam1 * G.T @ features + 2 * factor_weight * E,
        2 * lam2 * X.T @ classifier + 2 * lam3 * W,
    )
    return value, gradient


@pytest.mark.parametrize("rank", [5, 2])
def test_ends_at_a_minimum_that_a_general_optimiser_finds(rank):
    """From the same start, L-BFGS on the plain objective gets no lower, and not to other scores."""
    X, Y = problem()
    found = solve(X, Y, **WEIGHTS, rank=rank, max_iter=20000, tol=1e-13)
    left, values, right = np.linalg.svd(Y, full_matrices=False)
    roots = np.sqrt(values[:rank])
    G, B = left[:, :rank] * roots, roots[:, None] * right[:rank]
    start = (G, B, np.linalg.lstsq(G, X, rcond=None)[0], np.linalg.lstsq(X, G @ B, rcond=None)[0])
    ends = np.cumsum([M.size for M in start])[:-1]

    def flat(x):
        blocks = [part.reshape(M.shape) for part, M in zip(np.split(x, ends), start, strict=True)]
        value, gradient = objective(blocks, X, Y, **WEIGHTS)
        return value, np.concatenate([M.ravel() for M in gradient])

    result = minimize(
        flat,
        np.concatenate([M.ravel() for M in start]),
        jac=True,
        method="L-BFGS-B",
        options=dict(maxiter=20000, maxfun=40000, ftol=1e-15, gtol=1e-9),
    )
    assert_allclose(found.history["objective"][-1], result.fun, rtol=1e-8)
    W = result.x[ends[-1] :].reshape(found.coef.shape)
    assert_allclose(found.coef, W, atol=1e-4)


def test_first_iteration_by_hand():
    """From the best approximation of Y of rank 2, and the ridge regression on it."""
    X, Y = problem()
    left, values, right = np.linalg.svd(Y, full_matrices=False)
    G = left[:, :2] * np.sqrt(values[:2])
    ridge = X @ np.linalg.inv(0.7 * X.T @ X + 2.0 * np.eye(7)) @ (0.7 * X.T)
    target = Y + 0.7 * ridge @ (left[:, :2] * values[:2]) @ right[:2]
    B = np.linalg.inv(1.7 * G.T @ G + 0.5 * np.eye(2)) @ G.T @ target
    E = np.linalg.inv(0.4 * G.T @ G + 0.5 * np.eye(2)) @ (0.4 * G.T @ X)
    G = (target @ B.T + 0.4 * X @ E.T) @ np.linalg.inv(1.7 * B @ B.T + 0.4 * E @ E.T + 0.5 * np.eye(2))
    found = solve(X, Y, **WEIGHTS, rank=2, max_iter=1)
    assert_allclose(found.label_reconstruction, G @ B, atol=1e-10)


@pytest.mark.parametrize("rank", [1, 3, 5])
def test_the_objective_never_rises(rank):
    history = solve(*problem(), **WEIGHTS, rank=rank, tol=0, max_iter=60).history["objective"]
    assert (np.diff(history) <= 1e-10 * history[0]).all()


def test_classifier_is_ridge_on_the_reconstruction():
    X, Y = problem()
    found = solve(X, Y, **WEIGHTS, rank=3)
    ridge = np.linalg.solve(X.T @ X + 2.0 / 0.7 * np.eye(7), X.T @ found.label_reconstruction)
    assert_allclose(found.coef, ridge, atol=1e-10)


def test_reconstruction_has_the_rank_asked_for():
    found = solve(*problem(), lam1=0.4, lam2=0.7, lam3=2.0, factor_weight=1e-3, rank=2)
    assert np.linalg.matrix_rank(found.label_reconstruction, tol=1e-8) == 2


def test_without_features_it_is_the_shrunk_decomposition_of_the_labels():
    """λ1 = 0, a classifier that hardly counts: ‖Y − GB‖² + ω(‖G‖² + ‖B‖²) takes ω off the singular values of Y."""
    X, Y = problem()
    found = solve(X, Y, lam1=0.0, lam2=1e-9, lam3=1.0, factor_weight=1.2, rank=5, max_iter=20000, tol=1e-14)
    U, sigma, Vt = np.linalg.svd(Y, full_matrices=False)
    assert_allclose(found.label_reconstruction, (U * np.maximum(sigma - 1.2, 0)) @ Vt, atol=1e-4)


def test_labels_vanish_under_a_large_weight_of_the_factors():
    """Why ω stands apart from λ3: labels whose singular values are below it are not kept."""
    X, Y = problem()
    heavy = solve(X, Y, lam1=0.0, lam2=1.0, lam3=10.0, factor_weight=100.0, rank=5, max_iter=500, tol=1e-12)
    assert np.abs(heavy.label_reconstruction).max() < 1e-3


def test_estimator_gives_the_solution(partial_problem):
    X, candidates, _ = partial_problem
    model = FPML().fit(X, candidates)
    low, high = X.min(axis=0), X.max(axis=0)
    scaled = np.column_stack([2 * (X - low) / (high - low) - 1, np.ones(len(X))])
    found = solve(
        scaled, candidates.astype(float), lam1=6 / 11, lam2=1.0, lam3=10.0, factor_weight=1.0, rank=6
    )
    assert_allclose(model.decision_function(X), scaled @ found.coef, atol=1e-8)
    assert_allclose(model.confidences_, np.clip(found.label_reconstruction, 0, 1) * candidates, atol=1e-8)
    assert (model.rank_, model.threshold_) == (6, 0.5)


@pytest.mark.parametrize(("rank", "used"), [(2, 2), (40, 6), (None, 6)])
def test_rank(partial_problem, rank, used):
    X, candidates, _ = partial_problem
    assert FPML(rank=rank).fit(X, candidates).rank_ == used


def test_false_candidates_are_believed_less(partial_problem):
    X, candidates, truth = partial_problem
    confidences = FPML().fit(X, candidates).confidences_
    is_false = (candidates == 1) & (truth == 0)
    assert confidences[truth == 1].mean() > confidences[is_false].mean() + 0.05


def test_says_where_it_did_not_converge(partial_problem):
    X, candidates, _ = partial_problem
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        FPML(max_iter=1).fit(X, candidates)


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, -1) for name in ("lam1", "lam2", "lam3", "factor_weight", "tol", "max_iter", "rank")]
    + [("lam2", 0), ("lam3", 0), ("factor_weight", 0)],
)
def test_bad_parameters(partial_problem, name, value):
    X, candidates, _ = partial_problem
    with pytest.raises(ValueError, match=f"{name} must be"):
        FPML(**{name: value}).fit(X, candidates)
