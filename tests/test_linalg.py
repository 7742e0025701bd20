import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from skpml import linalg

matrices = arrays(
    np.float64,
    st.tuples(st.integers(1, 9), st.integers(1, 6)),
    elements=st.floats(-10, 10, allow_nan=False, width=32),
)


def svd_threshold(Z, tau):
    U, s, Vt = np.linalg.svd(Z, full_matrices=False)
    return U @ np.diag(np.maximum(s - tau, 0)) @ Vt


@given(matrices, st.floats(0.01, 5))
def test_singular_value_threshold_is_that_of_the_svd(Z, tau):
    assert_allclose(linalg.singular_value_threshold(Z, tau), svd_threshold(Z, tau), atol=1e-5)


def test_singular_value_threshold_is_the_proximal_map():
    rng = np.random.default_rng(0)
    Z, tau = rng.normal(size=(12, 5)), 0.8

    def value(R):
        return 0.5 * np.linalg.norm(R - Z) ** 2 + tau * np.linalg.svd(R, compute_uv=False).sum()

    best = linalg.singular_value_threshold(Z, tau)
    for size in (1e-3, 1e-1, 1):
        assert value(best + size * rng.normal(size=Z.shape)) > value(best)


def test_singular_value_threshold_limits():
    Z = np.random.default_rng(0).normal(size=(12, 5))
    assert_array_equal(linalg.singular_value_threshold(Z, 0), Z)
    assert_allclose(linalg.singular_value_threshold(Z, 1e6), 0, atol=1e-12)


@given(matrices)
def test_nuclear_norm(Z):
    assert linalg.nuclear_norm(Z) == pytest.approx(
        np.linalg.svd(Z, compute_uv=False).sum(), rel=1e-5, abs=1e-5
    )


def test_polar_factor_is_the_nearest_orthonormal_matrix():
    rng = np.random.default_rng(0)
    M = rng.normal(size=(7, 3))
    P = linalg.polar_factor(M)
    assert_allclose(P.T @ P, np.eye(3), atol=1e-12)
    assert_allclose(P, scipy.linalg.polar(M)[0], atol=1e-12)
    for _ in range(20):
        other = np.linalg.qr(P + 0.3 * rng.normal(size=M.shape))[0]
        assert np.linalg.norm(M - P) <= np.linalg.norm(M - other) + 1e-12


def spd(rng, size):
    M = rng.normal(size=(size, size))
    return M @ M.T


def test_symmetric_sylvester_agrees_with_scipy():
    rng = np.random.default_rng(0)
    A, B, C = spd(rng, 5), spd(rng, 3), rng.normal(size=(5, 3))
    P = linalg.symmetric_sylvester(A, B, C)
    assert_allclose(A @ P + P @ B, C, atol=1e-9)
    assert_allclose(P, scipy.linalg.solve_sylvester(A, B, C), atol=1e-9)


def test_singular_sylvester_gives_the_least_norm_solution():
    rng = np.random.default_rng(0)
    A = np.diag([2.0, 0.0, 0.0])
    B = np.diag([3.0, 0.0])
    C = rng.normal(size=(3, 2))
    P = linalg.symmetric_sylvester(A, B, C)
    operator = np.kron(A, np.eye(2)) + np.kron(np.eye(3), B)
    assert_allclose(P.ravel(), np.linalg.pinv(operator) @ C.ravel(), atol=1e-12)
    assert_array_equal(linalg.symmetric_sylvester(0 * A, 0 * B, C), 0)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [True, False])
def test_ridge_factor(order, dtype, weighted):
    rng = np.random.default_rng(0)
    X = np.asarray(rng.normal(size=(50, 6)), dtype=dtype, order=order)
    w = rng.random(50).astype(dtype) if weighted else None
    B = rng.normal(size=(6, 3)).astype(dtype)
    before = X.copy()
    P = linalg.ridge_factor(X, weights=w, ridge=0.5)(B)
    A = X.T @ ((1 if w is None else w[:, None]) * X) + 0.5 * np.eye(6)
    assert P.dtype == dtype
    assert_allclose(A @ P, B, atol=1e-10 if dtype == np.float64 else 1e-4)
    assert_array_equal(X, before)


def test_ridge_factor_in_blocks_of_rows():
    """More rows than one block holds: the blocks add up."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(9001, 3)), rng.random(9001)
    B = rng.normal(size=(3, 2))
    for layout in (X, np.asfortranarray(X)):
        P = linalg.ridge_factor(layout, weights=w, ridge=0.1)(B)
        assert_allclose(P, np.linalg.solve(X.T @ (w[:, None] * X) + 0.1 * np.eye(3), B), rtol=1e-10)


@pytest.mark.parametrize("scale", [1e-6, 1, 1e6])
def test_ridge_factor_of_a_singular_matrix_gives_the_least_norm_solution(scale):
    rng = np.random.default_rng(0)
    X = scale * rng.normal(size=(30, 3)) @ rng.normal(size=(3, 6))
    B = X.T @ rng.normal(size=(30, 2))
    assert_allclose(linalg.ridge_factor(X)(B), np.linalg.pinv(X.T @ X, rcond=1e-10) @ B, rtol=1e-5)


@pytest.mark.parametrize("order", ["C", "F"])
def test_tall_product(order):
    rng = np.random.default_rng(0)
    X = np.asarray(rng.normal(size=(20, 4)), order=order)
    M, N = rng.normal(size=(4, 3)), rng.normal(size=(20, 3))
    assert_allclose(linalg.tall_product(X, M), X @ M)
    assert_allclose(linalg.tall_product(X, N, transpose=True), X.T @ N)
    strided = np.repeat(X, 2, axis=1)[:, ::2]
    assert_allclose(linalg.tall_product(strided, M), X @ M)


@pytest.mark.parametrize("order", ["C", "F"])
def test_squared_row_norms(order):
    X = np.asarray(np.random.default_rng(0).normal(size=(20, 4)), order=order)
    assert_allclose(linalg.squared_row_norms(X), (X**2).sum(axis=1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_ridge_keeps_every_direction(dtype):
    """A ridge far below the largest eigenvalue still decides the directions that X does not reach."""
    X = np.zeros((4, 400), dtype)
    X[:, :2] = 1e3
    B = np.ones((400, 1), dtype)
    P = linalg.ridge_factor(X, ridge=1e-2)(B)
    assert_allclose(P[2:], 100, rtol=1e-4)


ONE_BLAS = """
import numpy as np
from threadpoolctl import threadpool_info
from skpml import linalg

def threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

before = threads()
assert max(before) > 1
try:
    with linalg.one_blas(np.ones(1)):
        inside = threads()
        raise KeyError
except KeyError:
    pass
assert threads() == before
assert len(before) == 1 or sorted(inside) == sorted([1] + before[1:])
first, second = linalg.one_blas(), linalg.one_blas()
first.__enter__()
second.__enter__()
first.__exit__(None, None, None)
assert threads() == inside
second.__exit__(None, None, None)
assert threads() == before
print(len(before), inside)
"""


def test_one_blas_gives_the_threads_back():
    """Also if two overlap. In a process of its own with two threads: the tests themselves run on one."""
    environment = {
        **os.environ,
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "2"),
    }
    result = subprocess.run(
        [sys.executable, "-c", ONE_BLAS],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr


def test_sparse_operator():
    rng = np.random.default_rng(0)
    S = scipy.sparse.csr_array(rng.random((10, 10)) * (rng.random((10, 10)) < 0.3))
    M = rng.normal(size=(10, 2))
    assert_allclose(linalg.sparse_operator(S, M)(M), S.toarray() @ M)
    assert linalg.sparse_operator(S, M.astype(np.float32))(M.astype(np.float32)).dtype == np.float32


def test_soft_threshold_is_the_proximal_map_of_absolute_values():
    Z = np.array([[-3.0, -0.5, 0.0, 0.5, 2.0]])
    assert_allclose(linalg.soft_threshold(Z, 1.0), [[-2, 0, 0, 0, 1]])
    assert_array_equal(linalg.soft_threshold(Z, 0.0), Z)


@given(matrices)
def test_projection_to_the_simplex_by_bisection(Z):
    """The slow way: max(z − t, 0) sums to 1 for exactly one t, found by halving."""
    expected = np.empty_like(Z)
    for row, z in enumerate(Z):
        low, high = z.min() - 1, z.max()
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if np.maximum(z - middle, 0).sum() > 1 else (low, middle)
        expected[row] = np.maximum(z - low, 0)
    found = linalg.project_to_simplex(Z)
    assert_allclose(found, expected, atol=1e-9)
    assert_allclose(found.sum(axis=1), 1, atol=1e-9)


def test_projection_to_the_simplex_leaves_it_alone():
    P = np.random.default_rng(0).dirichlet(np.ones(5), size=7)
    assert_allclose(linalg.project_to_simplex(P), P, atol=1e-12)


@pytest.mark.parametrize("shape", [(12, 5), (5, 12), (6, 6)])
@pytest.mark.parametrize("ridge", [1e-4, 1.0, 1e6])
def test_gram_spectrum_solves_for_any_ridge(shape, ridge):
    rng = np.random.default_rng(0)
    X, M = rng.normal(size=shape), rng.normal(size=(shape[1], 3))
    gram = linalg.GramSpectrum(X)
    expected = np.linalg.solve(X.T @ X + ridge * np.eye(shape[1]), M)
    assert_allclose(gram.solve(M, ridge), expected, rtol=1e-8, atol=1e-8 * np.abs(expected).max())
    assert_allclose(gram.squared_norm(M), np.linalg.norm(X @ M) ** 2)


def test_factor_of_a_known_gram_matrix():
    rng = np.random.default_rng(0)
    X, B = rng.normal(size=(9, 5)), rng.normal(size=(5, 2))
    lower = np.tril(X.T @ X)
    for layout in (lower, np.asfortranarray(lower)):
        assert_allclose(linalg.factor_gram(layout, 0.3)(B), linalg.ridge_factor(X, ridge=0.3)(B))
    assert_allclose(np.triu(lower, 1), 0)
