"""Each block update on its own: it minimises what it says, and its gradient is the objective's."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from reference_solver import objective

from skpml.graph import neighbor_similarity
from skpml.linalg import ridge_factor
from skpml.modal_alignment import _updates as updates

WEIGHTS = dict(lam=0.0, alpha=0.4, beta=0.2, gamma=0.6)


@pytest.fixture
def state():
    rng = np.random.default_rng(3)
    n, d, c, m = 25, 6, 4, 3
    X = rng.normal(size=(n, d))
    Y = (rng.random((n, c)) < 0.6).astype(float)
    S = neighbor_similarity(X).toarray()
    return dict(
        X=X,
        Y=Y,
        S=S,
        P1=rng.normal(size=(d, m)),
        P2=np.linalg.qr(rng.normal(size=(c, m)))[0],
        Q=np.linalg.qr(rng.normal(size=(c, c)))[0],
        V=rng.normal(size=(d, c)),
        R=rng.random((n, c)) * Y,
    )


def total(state, **changes):
    return sum(objective(**{**state, **changes}, **WEIGHTS).values())


def test_feature_projection_minimises_exactly(state):
    X, S, R, P2 = (state[name] for name in ("X", "S", "R", "P2"))
    solve_ridge = ridge_factor(X, weights=1 + 0.4 * S.sum(axis=1), ridge=0.6)
    smoothed = R @ P2 + 0.4 * S @ (R @ P2)
    P1 = solve_ridge(X.T @ smoothed)
    best = total(state, P1=P1)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-1, 1):
        assert total(state, P1=P1 + size * rng.normal(size=P1.shape)) > best


def test_basis_minimises_exactly(state):
    Q = updates.update_basis(state["Y"].T @ state["R"])
    assert_allclose(Q.T @ Q, np.eye(4), atol=1e-12)
    best = total(state, Q=Q)
    rng = np.random.default_rng(0)
    for _ in range(50):
        assert total(state, Q=np.linalg.qr(Q + 0.1 * rng.normal(size=Q.shape))[0]) >= best - 1e-9
    assert total(state, Q=np.eye(4)) >= best


def test_basis_of_a_singular_product_is_nearest_to_the_identity():
    """A label that nobody has leaves its direction free; the basis must leave it alone."""
    rng = np.random.default_rng(0)
    Y = (rng.random((30, 4)) < 0.5).astype(float)
    Y[:, 2] = 0
    Q = updates.update_basis(Y.T @ (Y * rng.random(Y.shape)))
    assert_allclose(Q[2], [0, 0, 1, 0], atol=1e-10)
    assert_allclose(Q[:, 2], [0, 0, 1, 0], atol=1e-10)


def test_basis_of_equal_matrices_is_the_identity():
    Y = (np.random.default_rng(0).random((30, 4)) < 0.5).astype(float)
    assert_allclose(updates.update_basis(Y.T @ Y), np.eye(4), atol=1e-12)


def test_least_squares_prototypes_minimise_exactly(state):
    X, R = state["X"], state["R"]
    V = updates.least_squares_prototypes(X.T @ (R.sum(axis=1)[:, None] * R), R.T @ R)
    best = total(state, V=V)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-1, 1):
        assert total(state, V=V + size * rng.normal(size=V.shape)) > best


def test_mean_prototypes_are_weighted_means(state):
    X, R = state["X"], state["R"]
    V = updates.mean_prototypes(X.T @ R, R.sum(axis=0))
    assert_allclose(V, np.stack([np.average(X, axis=0, weights=R[:, j]) for j in range(4)], axis=1))


def test_prototype_of_an_empty_label_is_zero(state):
    X, R = state["X"], state["R"].copy()
    R[:, 1] = 0
    assert_array_equal(updates.mean_prototypes(X.T @ R, R.sum(axis=0))[:, 1], 0)
    least_squares = updates.least_squares_prototypes(X.T @ (R.sum(axis=1)[:, None] * R), R.T @ R)
    assert_allclose(least_squares[:, 1], 0, atol=1e-12)
    assert np.isfinite(least_squares).all()


def test_label_projection_solves_its_equation_before_the_polar_factor(state):
    X, S, R, P1 = (state[name] for name in ("X", "S", "R", "P1"))
    w, G = 1 + 0.4 * S.sum(axis=1), X + 0.4 * S @ X
    P2 = updates.update_label_projection(R.T @ (w[:, None] * R), P1, R.T @ G @ P1, 0.6)
    assert_allclose(P2.T @ P2, np.eye(3), atol=1e-12)
    # Solve the vectorised equation and take the polar factor by the matrix square root.
    A, B, C = R.T @ (w[:, None] * R), 0.6 * P1.T @ P1, R.T @ G @ P1
    plain = np.linalg.solve(np.kron(A, np.eye(3)) + np.kron(np.eye(4), B), C.ravel()).reshape(4, 3)
    values, vectors = np.linalg.eigh(plain.T @ plain)
    assert_allclose(P2, plain @ vectors @ np.diag(values**-0.5) @ vectors.T, atol=1e-9)


def gradient(state):
    X, Y, S, P1, P2, Q, V, R = (state[name] for name in ("X", "Y", "S", "P1", "P2", "Q", "V", "R"))
    scores = X @ P1 @ P2.T
    return 2 * (
        updates.alignment_gradient(R, P2, scores + 0.4 * S @ scores, 1 + 0.4 * S.sum(axis=1))
        + updates.decomposition_gradient(R, Y, Q)
        + 0.2 * updates.prototype_gradient(R, V, X @ V, R.sum(axis=1))
    )


def smooth_part(state, R, row_sums):
    """J without the nuclear norm, D held at ``row_sums``."""
    terms = objective(**{**state, "R": R}, **WEIGHTS)
    fixed = 0.2 * np.linalg.norm(row_sums[:, None] * state["X"] - R @ state["V"].T) ** 2
    return sum(terms.values()) - terms["prototypes"] + fixed


def test_gradient_is_that_of_the_objective(state):
    R, row_sums, step = state["R"], state["R"].sum(axis=1), 1e-6
    numeric = np.zeros_like(R)
    for i, j in np.ndindex(*R.shape):
        bump = np.zeros_like(R)
        bump[i, j] = step
        up, down = smooth_part(state, R + bump, row_sums), smooth_part(state, R - bump, row_sums)
        numeric[i, j] = (up - down) / (2 * step)
    assert_allclose(gradient(state), numeric, rtol=1e-5, atol=1e-5)


def test_lipschitz_constant_bounds_the_gradient(state):
    P2, V = state["P2"], state["V"]
    largest = state["S"].sum(axis=1).max()
    L = updates.lipschitz_constant(P2 @ P2.T + np.eye(4) + 0.2 * V.T @ V, 0.4, largest)
    rng = np.random.default_rng(0)
    here = gradient(state)
    # D is held fixed: the row sums must not move between the two points.
    ratios = []
    for _ in range(200):
        step = rng.normal(size=here.shape)
        step -= step.mean(axis=1, keepdims=True)
        ratios.append(
            np.linalg.norm(gradient({**state, "R": state["R"] + step}) - here) / np.linalg.norm(step)
        )
    assert max(ratios) <= L
    assert max(ratios) > L / 10


def test_pseudo_label_step_is_the_proximal_map_then_the_box(state):
    R, Y = state["R"], state["Y"]
    grad, L, lam = gradient(state), 50.0, 30.0
    result = updates.update_pseudo_labels(R, grad, L, Y, lam)
    U, s, Vt = np.linalg.svd(R - grad / L, full_matrices=False)
    assert_allclose(result, np.clip(U @ np.diag(np.maximum(s - lam / L, 0)) @ Vt, 0, Y), atol=1e-12)
    assert (result <= Y).all()
    assert (result >= 0).all()
