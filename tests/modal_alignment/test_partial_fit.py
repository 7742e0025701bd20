"""PML-MA in batches: rows of earlier batches enter through sums alone, with their pseudo-labels as they were."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skpml import PMLMA
from skpml.graph import neighbor_similarity
from skpml.io import load_model, save_model
from skpml.modal_alignment._solver import Weights, solve

WEIGHTS = Weights(low_rank_weight=2.0, alignment_weight=0.3, prototype_weight=0.05, ridge_weight=0.7)


def rows(n=200, d=6, c=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    truth = X @ rng.normal(size=(d, c)) + rng.normal(size=(n, c)) > 0.5
    candidates = (truth | (rng.random((n, c)) < 0.2)).astype(int)
    candidates[np.arange(n), rng.integers(0, c, n)] = 1
    return X, candidates


def fit_in_batches(model, X, y, sizes, **options):
    start = 0
    for size in sizes:
        model.partial_fit(X[start : start + size], y[start : start + size], **options)
        start += size
    return model


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


def test_more_batches_learn_more():
    X, Y = rows(n=2000)
    model = PMLMA(random_state=0, n_anchors=50).partial_fit(X[:100], Y[:100])
    held_out, truth = X[1500:], Y[1500:]
    begin = np.mean((model.decision_function(held_out) - truth) ** 2)
    for start in range(100, 1500, 100):
        model.partial_fit(X[start : start + 100], Y[start : start + 100])
    whole = PMLMA(random_state=0, n_anchors=50).fit(X[:1500], Y[:1500])
    end, best = (np.mean((each.decision_function(held_out) - truth) ** 2) for each in (model, whole))
    assert end < begin
    assert end < best + 0.2 * (begin - best)


def test_batches_are_as_precise_in_single_precision():
    X, Y = rows()
    double = fit_in_batches(PMLMA(feature_map="linear"), X, Y, (100, 100))
    single = fit_in_batches(PMLMA(feature_map="linear"), X.astype(np.float32), Y, (100, 100))
    assert single.coef_.dtype == np.float32
    assert_allclose(single.coef_, double.coef_, atol=1e-4)


def test_small_batches_after_the_first():
    """A batch may have fewer rows than neighbours, fewer than labels, or one."""
    X, Y = rows()
    model = fit_in_batches(PMLMA(random_state=0), X, Y, (150, 3, 1))
    assert model.confidences_.shape == (1, 4)
    assert np.isfinite(model.decision_function(X)).all()


def test_labels_are_matched_by_name():
    X, Y = rows()
    names = np.array(["d", "a", "c", "b"])
    sets = [set(names[row > 0].tolist()) for row in Y]
    model = PMLMA(random_state=0).partial_fit(X[:100], sets[:100], classes=["d", "c", "b", "a", "never"])
    model.partial_fit(X[100:], sets[100:])
    assert_array_equal(model.classes_, ["a", "b", "c", "d", "never"])
    frame = pd.DataFrame(Y, columns=names)
    by_frame = PMLMA(random_state=0).partial_fit(X[:100], frame[:100])
    by_frame.partial_fit(X[100:], frame[100:][["a", "b", "c", "d"]])
    order = [by_frame.classes_.tolist().index(name) for name in "abcd"]
    assert_allclose(model.coef_[:, :4], by_frame.coef_[:, order], atol=1e-9)


def test_single_classes():
    X, _ = rows()
    y = np.where(X[:, 0] > 0, "up", "down")
    model = PMLMA(random_state=0).partial_fit(X[:100], y[:100])
    model.partial_fit(X[100:][y[100:] == "up"], y[100:][y[100:] == "up"])
    assert model.score(X, y) > 0.8


def test_errors_leave_the_model_as_it_was():
    X, Y = rows()
    model = PMLMA(random_state=0, on_empty="raise").partial_fit(X[:100], Y[:100])
    before = model.decision_function(X)
    for bad_X, bad_Y, message in (
        (X[100:, :5], Y[100:], "X has 5 features"),
        (X[100:], Y[100:, :3], "y has 3 labels, but the model was fitted on 4"),
        (X[100:], np.zeros_like(Y[100:]), "rows have no candidate label"),
        (X[100:], [{"a"}] * 100, "not fitted on"),
        (X[100:], np.full(100, "a"), "y are classes, but those of the first batch were indicator"),
        (np.full_like(X[100:], np.nan), Y[100:], "NaN"),
        (X[100:], Y[100:90], "inconsistent numbers of samples"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(bad_X, bad_Y)
        assert_array_equal(model.decision_function(X), before)
    same = clone(model).partial_fit(X[:100], Y[:100]).partial_fit(X[100:], Y[100:])
    assert_allclose(model.partial_fit(X[100:], Y[100:]).coef_, same.coef_, atol=1e-12)


def test_a_first_batch_that_fails_can_be_tried_again():
    X, Y = rows()
    model = PMLMA(random_state=0)
    with pytest.raises(ValueError, match="at least 6 rows"):
        model.partial_fit(X[:4], Y[:4])
    assert_allclose(model.partial_fit(X, Y).coef_, PMLMA(random_state=0).fit(X, Y).coef_, atol=1e-9)


def test_it_does_not_continue_a_fit_and_fit_begins_anew():
    X, Y = rows()
    with pytest.raises(ValueError, match="fitted as a whole"):
        PMLMA(random_state=0).fit(X, Y).partial_fit(X, Y)
    model = PMLMA(random_state=0).partial_fit(X[:50], Y[:50]).fit(X, Y)
    assert_array_equal(model.coef_, PMLMA(random_state=0).fit(X, Y).coef_)
    with pytest.raises(ValueError, match="graph is that of all rows"):
        PMLMA(graph=scipy.sparse.eye_array(200)).partial_fit(X, Y)


def test_other_classes_are_an_error():
    X, Y = rows()
    model = PMLMA(random_state=0)
    with pytest.raises(ValueError, match="classes are"):
        model.partial_fit(X, Y, classes=[0, 1, 2, 3, 4])
    model.partial_fit(X, Y, classes=[3, 2, 1, 0])
    with pytest.raises(ValueError, match="classes are"):
        model.partial_fit(X, Y, classes=[0, 1, 2])


def test_a_model_file_continues(tmp_path):
    X, Y = rows()
    model = PMLMA(random_state=0).partial_fit(X[:100], Y[:100])
    save_model(model, tmp_path / "model.skpml")
    again = load_model(tmp_path / "model.skpml")
    assert_array_equal(again.partial_fit(X[100:], Y[100:]).coef_, model.partial_fit(X[100:], Y[100:]).coef_)


def test_warnings_name_the_line_of_the_caller():
    X, Y = rows()
    with pytest.warns(ConvergenceWarning) as caught:
        PMLMA(random_state=0, max_iter=1).partial_fit(X, Y)
    assert caught[0].filename == __file__
