"""PML-MA in batches: rows of earlier batches enter through sums alone, with their pseudo-labels as they were."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose

from batches import fit_in_batches, rows
from skpml import PMLMA
from skpml.graph import neighbor_similarity
from skpml.modal_alignment._solver import Weights, solve

WEIGHTS = Weights(low_rank_weight=2.0, alignment_weight=0.3, prototype_weight=0.05, ridge_weight=0.7)


@pytest.mark.parametrize(
    "options", [{}, {"basis": "orthogonal", "prototypes": "least-squares"}, {"subspace_dim": 2}]
)
def test_one_batch_is_a_fit(options):
    X, Y = rows()
    whole, batch = (
        PMLMA(random_state=0, **options).fit(X, Y),
        PMLMA(random_state=0, **options).partial_fit(X, Y),
    )
    for name in ("coef_", "confidences_", "prototypes_", "basis_", "threshold_"):
        assert_allclose(getattr(batch, name), getattr(whole, name), atol=1e-9, err_msg=name)
    assert_allclose(batch.decision_function(X), whole.decision_function(X), atol=1e-9)


def test_what_does_not_depend_on_pseudo_labels_of_other_rows_is_as_if_fitted_at_once():
    """With the decomposition alone R = Y, and the classifier is the ridge regression of all rows."""
    X, Y = rows()
    options = dict(
        feature_map="linear", low_rank_weight=0, without=["alignment", "prototypes"], ridge_weight=3
    )
    model = fit_in_batches(PMLMA(**options), X, Y, (90, 60, 50))
    mapped = model.feature_map_.transform(model.scaler_.transform(X))
    expected = np.linalg.solve(mapped.T @ mapped + 3 * np.eye(mapped.shape[1]), mapped.T @ Y)
    assert_allclose(model.coef_, expected, atol=1e-8)


@pytest.mark.parametrize("m", [4, 2])
@pytest.mark.parametrize("prototypes", ["mean", "least-squares"])
@pytest.mark.parametrize("basis", ["identity", "orthogonal"])
def test_agrees_with_all_rows_in_dense_algebra(basis, prototypes, m):
    """The slow oracle holds all rows, and changes the pseudo-labels of the second batch alone."""
    X, Y = rows(n=70)
    Y = Y.astype(float)
    n, c, T = 40, 4, 5
    graphs = [neighbor_similarity(X[:n]), neighbor_similarity(X[n:])]
    options = dict(weights=WEIGHTS, basis=basis, prototypes=prototypes, subspace_dim=m, max_iter=T, tol=0)
    first = solve(X[:n], Y[:n], graphs[0], keep_sums=True, **options)
    second = solve(X[n:], Y[n:], graphs[1], before=first.sums, keep_sums=True, **options)

    S = scipy.sparse.block_diag(graphs).toarray()
    lam, alpha, beta, gamma = 2.0, 0.3, 0.05, 0.7
    G, w = X + alpha * S @ X, 1 + alpha * S.sum(axis=1)
    A = X.T @ (w[:, None] * X) + gamma * np.eye(X.shape[1])
    R = np.vstack([first.pseudo_labels, Y[n:]])
    P2 = np.eye(c)
    if m < c:
        P2 = np.linalg.eigh(R.T @ G @ np.linalg.solve(A, G.T @ R))[1][:, -m:]
    P1 = np.linalg.solve(A, G.T @ R @ P2)
    for _ in range(T):
        if m < c:
            values, U = np.linalg.eigh(R.T @ (w[:, None] * R))
            other, V2 = np.linalg.eigh(gamma * P1.T @ P1)
            inner = U.T @ (R.T @ G @ P1) @ V2 / (values[:, None] + other)
            left, _, right = np.linalg.svd(U @ inner @ V2.T, full_matrices=False)
            P2 = left @ right
        P1 = np.linalg.solve(A, G.T @ R @ P2)
        if prototypes == "mean":
            V = X.T @ R / R.sum(axis=0)
        else:
            V = X.T @ (R.sum(axis=1, keepdims=True) * R) @ np.linalg.pinv(R.T @ R)
        Q = np.eye(c)
        if basis == "orthogonal":
            left, _, right = np.linalg.svd(Y.T @ R)
            Q = left @ right
        r, rows_ = R[n:], X[n:]
        smoothed = rows_ @ P1 + alpha * S[n:, n:] @ rows_ @ P1
        gradient = w[n:, None] * (r @ P2 @ P2.T) - smoothed @ P2.T + r - Y[n:] @ Q
        gradient += beta * (r @ V.T @ V - r.sum(axis=1, keepdims=True) * (rows_ @ V))
        curvature = P2 @ P2.T + np.eye(c) + beta * V.T @ V
        L = 2 * (np.linalg.norm(curvature, 2) + alpha * S[n:, n:].sum(axis=1).max())
        stacked = np.vstack([R[:n], r - 2 * gradient / L])
        left, s, right = np.linalg.svd(stacked, full_matrices=False)
        stepped = (left * np.maximum(s - lam / L, 0)) @ right
        R = np.vstack([R[:n], np.clip(stepped[n:], 0, Y[n:])])
    assert_allclose(second.pseudo_labels, R[n:], atol=1e-9)
    assert_allclose(second.coef, P1 @ P2.T, atol=1e-9)
    assert_allclose(second.basis, Q, atol=1e-9)
    # The sums of both batches are those of all rows.
    total = first.sums + second.sums
    assert_allclose(np.tril(total.gram), np.tril(A - gamma * np.eye(X.shape[1])), atol=1e-9)
    assert_allclose(total.targets, G.T @ R, atol=1e-9)
    assert_allclose(total.label_gram, R.T @ R, atol=1e-9)
    assert_allclose(total.weighted_label_gram, R.T @ (w[:, None] * R), atol=1e-9)
    assert_allclose(total.overlap, Y.T @ R, atol=1e-9)


def test_batches_are_as_precise_in_single_precision():
    X, Y = rows()
    double = fit_in_batches(PMLMA(feature_map="linear"), X, Y, (100, 100))
    single = fit_in_batches(PMLMA(feature_map="linear"), X.astype(np.float32), Y, (100, 100))
    assert single.coef_.dtype == np.float32
    assert_allclose(single.coef_, double.coef_, atol=1e-4)


def test_a_first_batch_that_fails_can_be_tried_again():
    X, Y = rows()
    model = PMLMA(random_state=0)
    with pytest.raises(ValueError, match="at least 6 rows"):
        model.partial_fit(X[:4], Y[:4])
    assert_allclose(model.partial_fit(X, Y).coef_, PMLMA(random_state=0).fit(X, Y).coef_, atol=1e-9)


def test_a_graph_of_all_rows_is_an_error():
    X, Y = rows()
    with pytest.raises(ValueError, match="graph is that of all rows"):
        PMLMA(graph=scipy.sparse.eye_array(200)).partial_fit(X, Y)
