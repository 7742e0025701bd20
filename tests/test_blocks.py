"""Rows in blocks give what one array gives, and no array of all mapped features."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context

from skpml import PMLMA, CandidateLikelihood
from skpml._blocks import (
    DeviceRows,
    LazyRows,
    ReadRows,
    StoredRows,
    bring_to_device,
    compute_in_batches,
    multiply_rows,
    transform_rows,
)
from skpml._ordering import row_order
from skpml._sharing import shared_work
from skpml.features import LinearMap, RangeScaler, RBFAnchors, fit_map
from skpml.graph import neighbor_similarity
from skpml.linalg import ridge_factor, rows_at_once
from skpml.modal_alignment._solver import Weights, solve
from skpml.reference import CandidateRidge

# MiB: about twenty rows of the data below at a time.
SMALL = 0.01


def rows(n=400, d=6, c=4, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(dtype)
    Y = (X @ rng.normal(size=(d, c)) + rng.normal(size=(n, c)) > 0).astype(dtype)
    Y[np.arange(n), rng.integers(0, c, n)] = 1
    return X, Y


def read(X):
    return ReadRows(X, lambda block: block * 1.0, X.shape[1])


def test_blocks_cover_all_rows_in_order():
    X, Y = rows()
    with config_context(working_memory=SMALL):
        seen = []
        made, (count, total) = read(X).visit(
            lambda block, labels: (
                (seen.append(len(block)) or block[:, :2] + labels[:, :2],),
                (len(block), block.sum(axis=0)),
            ),
            Y,
        )
    assert len(seen) > 3
    assert count == sum(seen) == 400
    assert_array_equal(made[0], X[:, :2] + Y[:, :2])
    assert_allclose(total, X.sum(axis=0))


def test_work_without_features_does_not_read_them():
    X, Y = rows()
    blocks = read(X)
    blocks._read = None
    with config_context(working_memory=SMALL):
        _, (gram,) = blocks.visit(lambda labels: ((), (labels.T @ labels,)), Y, features=False)
    assert_allclose(gram, Y.T @ Y)


def test_absent_arrays_stay_absent():
    X, Y = rows()
    found, _ = read(X).visit(
        lambda block, labels, nothing: ((labels,), ()) if nothing is None else None, Y, None
    )
    assert_array_equal(found[0], Y)


@pytest.mark.parametrize("weighted", [False, True])
def test_ridge_factor_of_blocks(weighted):
    X, Y = rows()
    w = np.linspace(0.5, 2, 400) if weighted else None
    expected = ridge_factor(X, weights=w, ridge=0.3)(X.T @ Y)
    with config_context(working_memory=SMALL):
        found = read(X).ridge_factor(weights=w, ridge=0.3)(X.T @ Y)
    assert_allclose(found, expected, rtol=1e-12)


def test_sums_of_single_precision_are_double():
    """Single sums over 200,000 equal rows would lose the small second feature."""
    X = np.full((200_000, 2), 1.0, dtype=np.float32)
    X[:, 1] = 1e-3
    with config_context(working_memory=1):
        found = read(X).ridge_factor(ridge=1.0)(np.eye(2, dtype=np.float32))
    exact = np.linalg.inv(X.T.astype(float) @ X.astype(float) + np.eye(2))
    assert found.dtype == np.float32
    assert_allclose(found, exact, rtol=1e-3)


@pytest.mark.parametrize("basis", ["identity", "orthogonal"])
@pytest.mark.parametrize("steps", ["derived", "released"])
@pytest.mark.parametrize("subspace_dim", [None, 2])
def test_solver_with_blocks_equals_the_solver_with_one_array(basis, steps, subspace_dim):
    X, Y = rows()
    S = neighbor_similarity(X)
    known = np.zeros_like(Y)
    known[3] = Y[3]
    options = dict(
        weights=Weights(low_rank_weight=2, alignment_weight=0.3, prototype_weight=0.05, ridge_weight=0.7),
        basis=basis, steps=steps, subspace_dim=subspace_dim, known_true=known, max_iter=8, tol=0,
    )  # fmt: skip
    for prototypes in ("mean", "least-squares"):
        whole = solve(X, Y, S, prototypes=prototypes, **options)
        with config_context(working_memory=SMALL):
            parts = solve(read(X), Y, S, prototypes=prototypes, **options)
        for name in ("coef", "scores", "pseudo_labels", "basis", "prototypes"):
            assert_allclose(getattr(parts, name), getattr(whole, name), atol=1e-9, err_msg=name)
        for name, values in whole.history.items():
            assert_allclose(parts.history[name], values, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("feature_map", ["rbf", "linear", RBFAnchors(n_anchors=20, random_state=1)])
def test_estimators_with_little_memory_are_the_same(feature_map, sparse):
    X, Y = rows()
    if sparse:
        X = scipy.sparse.csr_array(np.where(X > 0.5, X, 0))
    for estimator in (
        PMLMA(feature_map=feature_map, n_anchors=50, random_state=0),
        CandidateRidge(feature_map=feature_map, n_anchors=50, random_state=0),
    ):
        expected = estimator.fit(X, Y).decision_function(X[:50])
        with config_context(working_memory=SMALL):
            found = estimator.fit(X, Y).decision_function(X[:50])
        assert_allclose(found, expected, atol=1e-8)


def test_map_of_lazy_rows_is_the_map_of_the_rows():
    X, _ = rows()
    scaler = RangeScaler().fit(X)
    with config_context(working_memory=SMALL):
        lazy = transform_rows(X, scaler.transform)
        assert isinstance(lazy, LazyRows)
        blocks = fit_map(RBFAnchors(n_anchors=30, random_state=0), lazy, X.dtype)
        (mapped,), _ = blocks.visit(lambda block: ((block,), ()))
        (plain,), _ = fit_map(LinearMap(), lazy, X.dtype).visit(lambda block: ((block,), ()))
    assert_allclose(
        mapped, RBFAnchors(n_anchors=30, random_state=0).fit_transform(scaler.transform(X)), atol=1e-13
    )
    assert_array_equal(plain, scaler.transform(X))
    assert_array_equal(lazy[np.array([7, 3])], scaler.transform(X)[[7, 3]])


def test_rows_that_fit_are_stored():
    X, _ = rows()
    assert isinstance(transform_rows(X, np.abs), np.ndarray)
    assert isinstance(fit_map(RBFAnchors(), X, X.dtype), StoredRows)


def test_graph_of_lazy_rows_is_that_of_the_rows():
    X, _ = rows(n=1500)
    lazy = LazyRows(X, lambda block: 2 * block)
    for search in ("exact", "cells"):
        difference = neighbor_similarity(lazy, search=search) - neighbor_similarity(2 * X, search=search)
        assert abs(difference).max() < 1e-9


def test_products_in_blocks():
    X, _ = rows()
    with config_context(working_memory=SMALL):
        assert rows_at_once(8 * X.shape[1]) < len(X)
        found = multiply_rows(X, np.abs, np.ones((6, 2)))
    assert_allclose(found, np.abs(X) @ np.ones((6, 2)))


def trace_peak(work, *arguments, **options):
    """Return the largest memory in bytes while something is done with 8 MiB of working memory."""
    with config_context(working_memory=8):
        tracemalloc.start()
        try:
            work(*arguments, **options)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


@pytest.mark.slow
def test_memory_of_a_fit_does_not_grow_with_the_mapped_features():
    """20,000 rows × 1,000 anchors are 160 MB; a fit with 8 MiB of working memory needs a small part of it."""
    X, Y = rows(n=20_000, d=8, c=3)
    # The (1000, 1000) Gram matrix and its factor are 8 MB each, thin arrays 0.5 MB.
    assert trace_peak(PMLMA(n_anchors=1000, random_state=0, max_iter=2, tol=0).fit, X, Y) < 80e6


@pytest.mark.slow
def test_memory_of_candidate_likelihood_does_not_grow_with_the_mapped_features():
    """10,000 rows more have 40 MB of mapped features, and 1 MB in all arrays of the size of the labels."""
    options = dict(family="logistic", at_least_one=False, gamma=0.3, noise_rate=0.2, kernel_width=1.0)
    model = CandidateLikelihood(**options, n_anchors=500, random_state=0, on_empty="ignore")
    small, large = (trace_peak(model.fit, *rows(n=n, d=8, c=3)) for n in (10_000, 20_000))
    assert large - small < 5e6


@pytest.mark.slow
def test_memory_of_candidate_likelihood_is_a_few_times_that_of_the_labels():
    """10,000 rows more have 4 MB of labels in single precision; what is computed from them in batches has 8 MiB."""
    options = dict(family="logistic", at_least_one=False, gamma=0.3, noise_rate=0.2, kernel_width=1.0)
    model = CandidateLikelihood(**options, n_anchors=300, max_iter=2, random_state=0, on_empty="ignore")
    tables = (rows(n=n, d=8, c=100, dtype=np.float32) for n in (10_000, 20_000))
    small, large = (trace_peak(model.fit, X, Y.astype(np.uint8)) for X, Y in tables)
    assert large - small < 6 * 4e6


def test_batches_give_what_all_rows_give():
    _, Y = rows(dtype=np.float32)
    seen = []
    with config_context(working_memory=SMALL):
        found = compute_in_batches(lambda a, b: seen.append(len(a)) or np.exp(a[:, :4]) * b, Y, Y)
    assert len(seen) > 3
    assert found.dtype == np.float32
    assert_allclose(found, np.exp(Y) * Y, rtol=1e-6)


@pytest.mark.slow
def test_memory_of_the_search_in_cells_is_less_than_that_of_the_rows():
    """Lists of cells and neighbors: less than 1.2 KB for each row, of any width."""
    rng = np.random.default_rng(0)
    tables = (rng.normal(size=(n, 400)).astype(np.float32) for n in (10_000, 20_000))
    small, large = (trace_peak(neighbor_similarity, X, search="cells") for X in tables)
    assert large - small < 1200 * 10_000


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.mark.parametrize("memory", [1024, SMALL])
@pytest.mark.parametrize("feature_map", ["rbf", "linear"])
def test_pml_ma_with_torch_is_the_same(torch, feature_map, memory):
    X, Y = rows()
    options = dict(feature_map=feature_map, n_anchors=50, random_state=0)
    expected = PMLMA(**options).fit(X, Y)
    with config_context(working_memory=memory):
        found = PMLMA(**options, device="cpu").fit(X, Y)
        assert_allclose(found.decision_function(X[:50]), expected.decision_function(X[:50]), atol=1e-8)
    for name in ("coef_", "confidences_", "prototypes_", "basis_"):
        assert isinstance(getattr(found, name), np.ndarray)
        assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-8, err_msg=name)


def test_rows_on_a_device_are_the_rows(torch):
    X, Y = rows()
    found = bring_to_device(X, "cpu")
    assert isinstance(found, DeviceRows)
    assert bring_to_device(found, "cpu") is found
    some = np.array([5, 3, 3, 399])
    assert_array_equal(found[some], X[some])
    assert_array_equal(found[10:20], X[10:20])
    assert_array_equal(row_order(found), row_order(X))
    assert_array_equal(row_order(found, Y), row_order(X, Y))
    with config_context(working_memory=SMALL):
        assert bring_to_device(X, "cpu") is X


@pytest.mark.slow
@pytest.mark.parametrize("memory", [0.1, SMALL])
def test_candidate_likelihood_in_blocks_with_torch_is_the_same(torch, memory):
    """Scaled rows are on the device with 0.1 MiB, and read in each pass with less."""
    X, Y = rows()
    options = dict(n_anchors=50, gamma=0.3, noise_rate=0.2, random_state=0, on_empty="ignore")
    with config_context(working_memory=memory):
        expected = CandidateLikelihood(**options).fit(X, Y)
        found = CandidateLikelihood(**options, device="cpu").fit(X, Y)
    assert_allclose(found.decision_function(X), expected.decision_function(X), atol=1e-6)
    assert_allclose(found.confidences_, expected.confidences_, atol=1e-6)


def test_fits_on_a_device_share_the_graph(torch):
    X, Y = rows()
    with shared_work() as work:
        for _ in range(2):
            PMLMA(n_anchors=50, device="cpu", random_state=0).fit(X, Y)
    assert work.reused > 0


def test_sparse_rows_stay_sparse_when_a_model_of_a_device_predicts(torch):
    """500 × 20,000 rows are 80 MB if dense."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((500, 20_000), density=1e-3, rng=rng, format="csr")
    Y = rng.random((500, 3)) < 0.5
    options = dict(family="ridge", at_least_one=False, gamma=0.3, noise_rate=0.2, kernel_width=1.0)
    model = CandidateLikelihood(**options, n_anchors=20, device="cpu", random_state=0, on_empty="ignore")
    model.fit(X, Y)
    assert trace_peak(model.decision_function, X) < 40e6


def test_graph_with_torch_is_the_same(torch):
    X, _ = rows(n=1500)
    difference = neighbor_similarity(X, search="cells", device="cpu") - neighbor_similarity(X, search="cells")
    assert abs(difference).max() < 1e-9


def test_an_unknown_device_is_an_error():
    X, Y = rows(n=20)
    pytest.importorskip("torch", reason="PyTorch is not installed")
    with pytest.raises(ValueError, match="device must be None or a device of PyTorch"):
        PMLMA(device="abacus").fit(X, Y)
