"""The shared grid gives at every point what a single fit gives."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skpml.graph import neighbor_similarity
from skpml.modal_alignment import _grid as grid
from skpml.modal_alignment._grid import solve_grid
from skpml.modal_alignment._solver import Weights, solve

VALUES = dict(
    low_rank_weight=[0.0, 0.1, 5.0],
    alignment_weight=[0.0, 0.3],
    prototype_weight=[0.0, 1e-2, 10.0],
    ridge_weight=[1e-3, 2.0],
)


def problem(n=60, d=9, c=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = (X @ rng.normal(size=(d, c)) + rng.normal(size=(n, c)) > 0.5).astype(float)
    Y[np.arange(n), rng.integers(0, c, n)] = 1
    return X, Y, neighbor_similarity(X)


def weights_of(values):
    return {Weights(**dict(zip(values, point, strict=True))) for point in product(*values.values())}


def assert_equals_single_fits(X, Y, S, values, atol, **stopping):
    points = {point.weights: point for point in solve_grid(X, Y, S, **values, **stopping)}
    assert set(points) == weights_of(values)
    for weights, point in points.items():
        single = solve(X, Y, S, weights=weights, **stopping)
        assert (point.n_iter, point.converged) == (single.n_iter, single.converged), weights
        assert_allclose(point.coef, single.coef, atol=atol, err_msg=str(weights))
        assert_allclose(point.pseudo_labels, single.pseudo_labels, atol=atol, err_msg=str(weights))
        assert_allclose(point.objective, single.history["objective"], rtol=atol, err_msg=str(weights))


@pytest.mark.slow
def test_equals_single_fits_with_tight_tolerance():
    assert_equals_single_fits(*problem(), VALUES, 1e-9, tol=1e-9, max_iter=200)


@pytest.mark.slow
def test_equals_single_fits_with_the_usual_stopping_rule():
    """Single precision for the steps: five digits, and the same number of iterations."""
    assert_equals_single_fits(*problem(), VALUES, 1e-5, tol=1e-3, max_iter=50)


@pytest.mark.parametrize("shape", [(400, 6, 5), (40, 60, 8)])
@pytest.mark.slow
def test_tall_and_wide_features(shape):
    """A map is multiplied by its thin factor where features are few, as a whole where they are many."""
    assert_equals_single_fits(*problem(*shape), VALUES, 1e-8, tol=1e-7, max_iter=30)


@pytest.mark.parametrize("many", [1, 1000])
def test_labels_one_by_one_and_all_together(monkeypatch, many):
    """A thin factor is multiplied by the rows of each label, or, for few points, by all rows at once."""
    monkeypatch.setattr(grid, "_MANY_POINTS", many)
    assert_equals_single_fits(*problem(400, 6, 5), VALUES, 1e-8, tol=1e-7, max_iter=30)


def test_both_ways_to_multiply_are_met():
    X, Y, _ = problem(400, 6, 5)
    assert not grid._SymmetricMap(X, grid._Shared(X, Y, np.float64), 36).is_whole
    X, Y, _ = problem(40, 60, 8)
    assert grid._SymmetricMap(X, grid._Shared(X, Y, np.float64), 36).is_whole


@pytest.mark.slow
def test_little_memory_changes_nothing(monkeypatch):
    """Points that do not fit into memory together walk in groups."""
    X, Y, S = problem()
    monkeypatch.setattr(grid, "_BYTES_TOGETHER", 3 * Y.size * 40)
    assert grid._Shared(X, Y, np.float64).room(2) == (1, 3)
    assert_equals_single_fits(X, Y, S, VALUES, 1e-9, tol=1e-9, max_iter=100)


@pytest.mark.slow
def test_labels_without_candidates_and_rows_without():
    X, Y, S = problem()
    Y[:, [0, 4]] = 0
    Y[:7] = 0
    assert_equals_single_fits(X, Y, S, VALUES, 1e-8, tol=1e-8, max_iter=60)


def test_more_labels_than_rows():
    rng = np.random.default_rng(3)
    X, Y = rng.normal(size=(12, 30)), (rng.random((12, 20)) < 0.4).astype(float)
    # The stop rule is coarser than the agreement, so that rounding does not decide about an iteration.
    assert_equals_single_fits(X, Y, neighbor_similarity(X), VALUES, 1e-7, tol=1e-5, max_iter=40)


def test_no_graph():
    X, Y, _ = problem()
    assert_equals_single_fits(X, Y, None, VALUES, 1e-9, tol=1e-9, max_iter=40)


def test_one_iteration():
    assert_equals_single_fits(*problem(), VALUES, 1e-9, tol=1e-9, max_iter=1)


def test_a_point_does_not_depend_on_its_company():
    X, Y, S = problem()
    alone = next(
        solve_grid(
            X,
            Y,
            S,
            low_rank_weight=[5.0],
            alignment_weight=[0.3],
            prototype_weight=[10.0],
            ridge_weight=[2.0],
        )
    )
    among = {point.weights: point for point in solve_grid(X, Y, S, **VALUES)}[alone.weights]
    assert alone.n_iter == among.n_iter
    assert_allclose(alone.coef, among.coef, atol=1e-5)


def test_row_order_does_not_matter():
    X, Y, _ = problem()
    order = np.random.default_rng(1).permutation(len(X))
    here = {p.weights: p for p in solve_grid(X, Y, neighbor_similarity(X), **VALUES, tol=1e-8)}
    there = {
        p.weights: p
        for p in solve_grid(X[order], Y[order], neighbor_similarity(X[order]), **VALUES, tol=1e-8)
    }
    for weights, point in here.items():
        assert_allclose(there[weights].coef, point.coef, atol=1e-8)
        assert_allclose(there[weights].pseudo_labels, point.pseudo_labels[order], atol=1e-8)


def test_what_it_does_not_cover_is_refused():
    X, Y, S = problem()
    with pytest.raises(ValueError, match="ridge_weight above 0, got 0"):
        next(
            solve_grid(
                X,
                Y,
                S,
                low_rank_weight=[1],
                alignment_weight=[1],
                prototype_weight=[1],
                ridge_weight=[1.0, 0.0],
            )
        )
    with pytest.raises(ValueError, match="d = 3 features and c = 5 labels"):
        next(
            solve_grid(
                X[:, :3],
                Y,
                S,
                low_rank_weight=[1],
                alignment_weight=[1],
                prototype_weight=[1],
                ridge_weight=[1.0],
            )
        )
