from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

from skpml.baselines import _pml_plr
from skpml.baselines._pml_plr import (
    PMLPLR,
    Reconstruction,
    distance_loss,
    distance_product,
    gram_root,
    leading_directions,
    rotate_candidates,
    simplex_shift,
    solve,
    update_codes,
    update_directions,
    update_pseudo_labels,
    update_reconstruction,
)
from skpml.datasets import load_dataset
from skpml.graph import neighbor_similarity
from skpml.linalg import project_to_simplex
from skpml.metrics import average_precision, hamming_loss, ranking_loss

WEIGHTS = PMLPLR(alpha=5.0, beta=0.2, lam=0.7)


def ratio_for(n_codes, Y):
    return (n_codes - 0.5) / Y.shape[1]


def problem(n=40, d=6, c=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = (X @ rng.normal(size=(d, c)) + rng.normal(size=(n, c)) > 0.5).astype(float)
    Y[np.arange(n), rng.integers(0, c, n)] = 1
    A = neighbor_similarity(X, scale="first")
    return X, Y, scipy.sparse.csr_array(scipy.sparse.diags_array(A.sum(axis=1)) - A)


def dense(reconstruction):
    cells = np.zeros((len(reconstruction.loadings), len(reconstruction.codes)))
    for rows, columns, block in reconstruction.blocks():
        cells[rows, columns] = block
    return cells


def reference_fit(Phi, X, Y, L, *, alpha, beta, lam, P, H, n_iter):
    """The method as it is written down, instances as columns, every n×n matrix formed: slow and obvious."""
    mu = 1000.0
    n = Y.shape[1]
    G = ((X[:, None] - X) ** 2).sum(axis=2)
    F, E, C = Y, np.zeros_like(Y), np.eye(n)
    objectives = []
    for _ in range(n_iter):
        W = np.linalg.solve(Phi @ Phi.T + lam * np.eye(len(Phi)), Phi @ F.T)
        M, _, Nt = np.linalg.svd(Y.T @ F)
        YQ = Y @ M @ Nt
        U, _, Vt = np.linalg.svd(2 * Y @ C.T @ H.T + mu * (Y - E) @ H.T, full_matrices=False)
        P = Vt.T @ U.T
        H = (2 * P @ Y @ C.T + mu * P @ (Y - E)) @ np.linalg.inv(2 * C @ C.T + mu * np.eye(n))
        free = np.linalg.pinv(2 * H.T @ H, rcond=1e-10) @ (2 * H.T @ P @ Y - 2 * beta * L @ F.T @ F - G)
        C = project_to_simplex(free.T).T
        E = np.maximum(Y - P.T @ H - alpha / mu, 0)
        smooth, pull = beta * (F @ C.T @ L + F @ L @ C), W.T @ Phi + YQ
        above = np.maximum(pull, 0) + np.maximum(-smooth, 0)
        below = 2 * F + np.maximum(smooth, 0) + np.maximum(-pull, 0)
        F = np.where(Y > 0, np.minimum(F * above / np.where(below > 0, below, 1), 1), 0)
        objectives.append(
            ((W.T @ Phi - F) ** 2).sum()
            + ((YQ - F) ** 2).sum()
            + ((Y - P.T @ H @ C) ** 2).sum()
            + np.trace(G @ C.T)
            + alpha * np.abs(Y - P.T @ H).sum()
            + beta * np.trace(F @ L @ C @ F.T)
            + lam * (W**2).sum()
        )
    return {"W": W, "F": F, "P": P, "H": H, "C": C, "E": E, "objective": objectives}


@pytest.mark.parametrize("m", [5, 3])
@pytest.mark.parametrize("rows_a_block", [7, 1000])
def test_agrees_with_the_slow_reference(monkeypatch, m, rows_a_block):
    X, Y, L = problem()
    monkeypatch.setattr(_pml_plr, "_BLOCK_CELLS", 40 * rows_a_block)
    mapped = np.hstack([np.tanh(X), np.ones((40, 1))])
    fast = solve(mapped, X, Y, L, replace(WEIGHTS, ratio=ratio_for(m, Y), max_iter=5))
    ridge = np.linalg.solve(mapped.T @ mapped + 0.7 * np.eye(7), mapped.T @ Y)
    P = leading_directions(Y.T @ (Y + mapped @ ridge), m)
    slow = reference_fit(
        mapped.T, X, Y.T, L.toarray(), alpha=5.0, beta=0.2, lam=0.7, P=P, H=P @ Y.T, n_iter=5
    )
    assert_allclose(fast.coef, slow["W"], atol=1e-7)
    assert_allclose(fast.pseudo_labels, slow["F"].T, atol=1e-7)
    assert_allclose(fast.residuals, slow["E"].T, atol=1e-7)
    assert_allclose(fast.codes @ fast.label_directions, (slow["P"].T @ slow["H"]).T, atol=1e-7)
    assert_allclose(dense(fast.reconstruction), slow["C"].T, atol=1e-7)
    assert_allclose(fast.history["objective"], slow["objective"], rtol=1e-8)
    # What the reference exercises must be there: residuals, mixtures, pseudo-labels that moved.
    assert (fast.residuals > 0).any() == (m < 5)
    assert 0.01 < (dense(fast.reconstruction) > 0).mean() < 0.9
    assert np.abs(fast.pseudo_labels - Y).max() > 0.1


class TestRotation:
    @pytest.mark.parametrize("seed", range(3))
    def test_agrees_with_the_full_decomposition(self, seed):
        """Y rotated by the n×n polar factor of YFᵀ."""
        _, Y, _ = problem(seed=seed)
        F = Y * np.random.default_rng(seed).uniform(0.2, 1, Y.shape)
        M, _, Nt = np.linalg.svd(Y @ F.T)
        assert_allclose(rotate_candidates(F, gram_root(Y)[0]), (M @ Nt).T @ Y, atol=1e-8)

    def test_no_other_rotation_is_nearer(self):
        _, Y, _ = problem()
        rng = np.random.default_rng(1)
        F = Y * rng.uniform(0.2, 1, Y.shape)
        best = ((rotate_candidates(F, gram_root(Y)[0]) - F) ** 2).sum()
        for scale in (0.01, 0.1, 1):
            skew = scale * rng.normal(size=(40, 40))
            assert best < ((scipy.linalg.expm(skew - skew.T) @ Y - F) ** 2).sum()

    def test_keeps_the_gram_matrix(self):
        _, Y, _ = problem()
        F = Y * np.random.default_rng(1).uniform(0.2, 1, Y.shape)
        rotated = rotate_candidates(F, gram_root(Y)[0])
        assert_allclose(rotated.T @ rotated, Y.T @ Y, atol=1e-9)

    def test_candidates_themselves_stay(self):
        _, Y, _ = problem()
        assert_allclose(rotate_candidates(Y, gram_root(Y)[0]), Y, atol=1e-10)

    def test_labels_that_repeat_or_that_nobody_has(self):
        _, Y, _ = problem()
        singular = np.hstack([Y, Y[:, :1], np.zeros((40, 1))])
        root, rank = gram_root(singular)
        assert rank == 5
        assert_allclose(root @ root, singular.T @ singular, atol=1e-10)
        assert_allclose(rotate_candidates(singular, root), singular, atol=1e-7)


class TestReconstruction:
    @settings(max_examples=30)
    @given(seed=st.integers(0, 10**6), scale=st.sampled_from([1e-3, 0.1, 1.0, 1e4]), n=st.integers(1, 60))
    def test_shift_agrees_with_sorting(self, seed, scale, n):
        """From any start: from below, from above all values, and from the solution."""
        rng = np.random.default_rng(seed)
        Z = scale * rng.normal(size=(7, n))
        for start in (None, 2 * scale * rng.normal(size=7), Z.max(axis=1) + 1, simplex_shift(Z)):
            found = np.maximum(Z - simplex_shift(Z, start)[:, None], 0)
            assert_allclose(found, project_to_simplex(Z), atol=1e-13 * max(scale, 1) * n)

    def test_shift_of_equal_entries(self):
        assert_allclose(simplex_shift(np.full((1, 4), 3.0)), 2.75)

    @pytest.mark.parametrize("stored_cells", [0, 2**25])
    def test_rows_are_the_nearest_on_the_simplex(self, monkeypatch, stored_cells):
        monkeypatch.setattr(_pml_plr, "_BLOCK_CELLS", 100)
        monkeypatch.setattr(_pml_plr, "_CACHED_CELLS", 50)
        monkeypatch.setattr(_pml_plr, "_STORED_CELLS", stored_cells)
        rng = np.random.default_rng(0)
        loadings, codes = rng.normal(size=(25, 3)), rng.normal(size=(25, 3))
        C = Reconstruction.nearest(loadings, codes)
        assert (C.stored is None) == (stored_cells == 0)
        assert_allclose(dense(C), project_to_simplex(loadings @ codes.T), atol=1e-12)
        right, left = rng.normal(size=(25, 4)), rng.normal(size=(25, 2))
        forward, backward = C.products(right, left)
        assert_allclose(forward, dense(C) @ right, atol=1e-12)
        assert_allclose(backward, dense(C).T @ left, atol=1e-12)
        assert_allclose(C.forward(right), dense(C) @ right, atol=1e-12)
        assert_allclose(C.backward(left), dense(C).T @ left, atol=1e-12)
        assert_allclose(C.gram(right), dense(C).T @ dense(C) @ right, atol=1e-12)

    def test_stationary_point(self):
        """Before the projection: the gradient of all terms in C vanishes in the directions that H can reach."""
        X, Y, L = problem()
        rng = np.random.default_rng(1)
        P, H, F = (
            np.linalg.qr(rng.normal(size=(5, 3)))[0].T,
            rng.normal(size=(40, 3)),
            Y * rng.random(Y.shape),
        )
        found = update_reconstruction(X, Y, F, P, H, L, beta=0.3)
        raw = found.loadings @ found.codes.T
        G = ((X[:, None] - X) ** 2).sum(axis=2)

        def loss(C):
            return (
                ((Y - C @ H @ P) ** 2).sum() + (G * C).sum() + 2 * 0.3 * np.trace(F.T @ C @ L.toarray() @ F)
            )

        for _ in range(5):
            move = rng.normal(size=(40, 3)) @ H.T
            slope = (loss(raw + 1e-4 * move) - loss(raw - 1e-4 * move)) / 2e-4
            assert abs(slope) < 1e-5 * np.linalg.norm(move)

    def test_distances(self):
        X, _, _ = problem()
        rng = np.random.default_rng(0)
        V = rng.normal(size=(40, 3))
        G = ((X[:, None] - X) ** 2).sum(axis=2)
        assert_allclose(distance_product(X, V), G @ V, atol=1e-10)
        C = Reconstruction.nearest(rng.normal(size=(len(X), 3)), rng.normal(size=(len(X), 3)))
        for known in (None, G):
            assert_allclose(distance_loss(C, X, known), np.sum(dense(C) * G), rtol=1e-12)


@pytest.mark.parametrize("size", [0.0, 1.0])
def test_codes_solve_their_system(size):
    """Whatever the guess."""
    rng = np.random.default_rng(0)
    C = Reconstruction.nearest(rng.normal(size=(30, 3)), rng.normal(size=(30, 3)))
    candidates, target = rng.normal(size=(30, 4)), rng.normal(size=(30, 4))
    codes = update_codes(C, candidates, target, size * rng.normal(size=(30, 4)))
    weights = dense(C)
    right = 2 * weights.T @ candidates + 1000 * target
    assert_allclose(codes, np.linalg.solve(2 * weights.T @ weights + 1000 * np.eye(30), right), atol=1e-8)
    first = update_codes(None, candidates, target, size * rng.normal(size=(30, 4)))
    assert_allclose(first, (2 * candidates + 1000 * target) / 1002, atol=1e-12)


def test_label_directions_stay_near_the_old_ones_where_nothing_decides():
    """One direction is given; the others are the old ones, made orthogonal to it by the smallest move."""
    P = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 3)))[0].T
    B = np.zeros((5, 3))
    B[:, 0] = 1
    found = update_directions(B, P)
    assert_allclose(found @ found.T, np.eye(3), atol=1e-10)
    assert_allclose(found[0], np.full(5, 5**-0.5), atol=1e-6)
    rest = P[1:] - P[1:].mean(axis=1, keepdims=True)
    assert_allclose(found[1:], scipy.linalg.polar(rest)[0], atol=1e-6)


class TestPseudoLabels:
    def test_fixed_points_are_where_the_gradient_vanishes(self):
        rng = np.random.default_rng(0)
        F, Y = rng.uniform(0.1, 0.9, (8, 3)), np.ones((8, 3))
        smoothness = rng.normal(size=(8, 3))
        pull = 2 * F + smoothness
        assert (pull < 0).any()
        assert (smoothness < 0).any()
        assert_allclose(update_pseudo_labels(F, Y, pull, smoothness), F, atol=1e-12)

    def test_tame_entries_take_the_published_step(self):
        rng = np.random.default_rng(0)
        F, Y = rng.uniform(0.1, 0.9, (8, 3)), np.ones((8, 3))
        smoothness, pull = rng.uniform(0, 1, (8, 3)), rng.uniform(0, 1, (8, 3))
        assert_allclose(
            update_pseudo_labels(F, Y, pull, smoothness), F * pull / (2 * F + smoothness), rtol=1e-12
        )

    def test_stays_within_the_candidates(self):
        rng = np.random.default_rng(0)
        Y = (rng.random((50, 4)) < 0.5).astype(float)
        F = update_pseudo_labels(Y, Y, 5 * rng.normal(size=Y.shape), 5 * rng.normal(size=Y.shape))
        assert (F >= 0).all()
        assert (F <= Y).all()


@settings(max_examples=20)
@given(
    seed=st.integers(0, 10**6),
    alpha=st.sampled_from([0.0, 0.1, 100.0]),
    beta=st.sampled_from([0.0, 0.1, 10.0]),
    m=st.integers(1, 5),
    max_iter=st.integers(1, 8),
)
def test_invariants(seed, alpha, beta, m, max_iter):
    X, Y, L = problem(seed=seed)
    Y[0] = 0
    solution = solve(X, X, Y, L, PMLPLR(alpha=alpha, beta=beta, ratio=ratio_for(m, Y), max_iter=max_iter))
    P, C, F, E = (
        solution.label_directions,
        dense(solution.reconstruction),
        solution.pseudo_labels,
        solution.residuals,
    )
    assert_allclose(P @ P.T, np.eye(m), atol=1e-10)
    assert_allclose(C.sum(axis=1), 1, atol=1e-9)
    assert (C >= 0).all()
    assert (F[Y == 0] == 0).all()
    assert (F >= 0).all()
    assert (F <= 1).all()
    assert (E >= 0).all()
    assert all(np.isfinite(values).all() for values in solution.history.values())


def test_objective_is_the_sum_of_its_terms():
    X, Y, L = problem()
    history = solve(X, X, Y, L, replace(WEIGHTS, ratio=ratio_for(3, Y))).history
    terms = [values for name, values in history.items() if name != "objective"]
    assert len(terms) == 7
    assert_allclose(np.sum(terms, axis=0), history["objective"])


def test_first_classifier_is_ridge_on_the_candidates():
    X, Y, L = problem()
    first = solve(X, X, Y, L, replace(WEIGHTS, ratio=ratio_for(3, Y), max_iter=1))
    assert_allclose(first.coef, Ridge(alpha=0.7, fit_intercept=False).fit(X, Y).coef_.T, atol=1e-10)


def test_start_makes_little_difference(monkeypatch):
    """The authors start from random directions; ours are chosen, and lead to nearly the same place."""
    X, Y, L = problem(n=80)
    chosen = solve(X, X, Y, L, PMLPLR(ratio=ratio_for(4, Y)))
    turned = np.linalg.qr(np.random.default_rng(3).normal(size=(5, 4)))[0].T
    monkeypatch.setattr(_pml_plr, "leading_directions", lambda M, count: turned)
    drawn = solve(X, X, Y, L, PMLPLR(ratio=ratio_for(4, Y)))
    assert np.abs(chosen.scores - drawn.scores).max() < 0.1 * np.ptp(chosen.scores)
    assert np.corrcoef(chosen.scores.ravel(), drawn.scores.ravel())[0, 1] > 0.99


def test_stop_rule():
    """Not before the sixth iteration; then where the objective falls by less than tol, or rises."""
    X, Y, L = problem()
    J = solve(X, X, Y, L, replace(WEIGHTS, ratio=ratio_for(3, Y), tol=0, max_iter=60)).history["objective"]
    stops = [t for t in range(6, len(J) + 1) if J[t - 2] - J[t - 1] < 0]
    assert stops == [len(J)]
    at_once = solve(X, X, Y, L, replace(WEIGHTS, ratio=ratio_for(3, Y), tol=10))
    assert len(at_once.history["objective"]) == 6
    assert at_once.converged
    assert not solve(X, X, Y, L, replace(WEIGHTS, ratio=ratio_for(3, Y), tol=10, max_iter=5)).converged


class TestEstimator:
    def test_no_more_directions_than_asked_for_or_than_there_are(self):
        X, Y, _ = problem()
        assert PMLPLR(random_state=0, ratio=0.5).fit(X, Y).label_directions_.shape == (3, 5)
        assert PMLPLR(random_state=0).fit(X, Y).label_directions_.shape == (4, 5)
        repeated = np.repeat(Y[:, :2], 3, axis=1)
        with pytest.warns(UserWarning, match="no candidate"):
            model = PMLPLR(random_state=0).fit(X, repeated)
        assert model.label_directions_.shape == (2, 6)

    def test_default_number_of_anchors(self):
        X, Y, _ = problem()
        assert PMLPLR(random_state=0).fit(X, Y).feature_map_.anchors_.shape == (30, 6)
        assert PMLPLR(n_anchors=7, random_state=0).fit(X, Y).feature_map_.anchors_.shape == (7, 6)

    def test_drawn_anchors_do_not_depend_on_the_order_of_rows(self):
        X, Y, _ = problem()
        rows = np.random.default_rng(4).permutation(40)
        one = PMLPLR(n_anchors=9, random_state=0).fit(X, Y)
        two = PMLPLR(n_anchors=9, random_state=0).fit(X[rows], Y[rows])
        assert_allclose(two.decision_function(X), one.decision_function(X), atol=1e-8)
        assert_allclose(two.confidences_, one.confidences_[rows], atol=1e-8)

    def test_parameters_reach_the_solver(self, partial_problem):
        X, candidates, _ = partial_problem
        base = PMLPLR(random_state=0).fit(X, candidates).decision_function(X)
        for parameter in ({"alpha": 200.0}, {"beta": 1.0}, {"lam": 5.0}, {"ratio": 0.3}, {"n_neighbors": 2}):
            other = PMLPLR(random_state=0, **parameter).fit(X, candidates).decision_function(X)
            assert np.abs(other - base).max() > 1e-6, parameter

    def test_scores_of_training_rows(self, partial_problem):
        X, candidates, _ = partial_problem
        model = PMLPLR(random_state=0)
        assert_allclose(
            model._fit(X, candidates.astype(float)), model.fit(X, candidates).decision_function(X), atol=1e-10
        )

    def test_true_candidates_are_believed_more(self, partial_problem):
        X, candidates, truth = partial_problem
        confidences = PMLPLR(random_state=0).fit(X, candidates).confidences_
        false = (candidates == 1) & (truth == 0)
        assert confidences[truth == 1].mean() > confidences[false].mean() + 0.1

    def test_nobody_has_any_label(self):
        X, Y, _ = problem()
        model = PMLPLR(on_empty="ignore", random_state=0).fit(X, np.zeros_like(Y))
        assert_array_equal(model.decision_function(X), 0)

    @pytest.mark.parametrize("ratio", [0, -0.1, 1.1, "all", True])
    def test_bad_ratio(self, partial_problem, ratio):
        X, candidates, _ = partial_problem
        with pytest.raises(ValueError, match="ratio must be a number above 0 and at most 1"):
            PMLPLR(ratio=ratio).fit(X, candidates)

    @pytest.mark.parametrize("name", ["alpha", "beta", "lam", "tol"])
    def test_bad_weight(self, partial_problem, name):
        X, candidates, _ = partial_problem
        with pytest.raises(ValueError, match=f"{name} must be a finite number of at least 0"):
            PMLPLR(**{name: -1}).fit(X, candidates)


@pytest.mark.slow
def test_emotions(data_folder):
    """Five of ten folds with the authors' weights: quality in the range of their own run, six iterations."""
    data = load_dataset("emotions-3", random_state=0)
    values = []
    for fold, (train, test) in enumerate(KFold(10, shuffle=True, random_state=0).split(data.X)):
        if fold == 5:
            break
        model = PMLPLR(beta=0.01, lam=1.0, random_state=fold).fit(data.X[train], data.candidates[train])
        assert model.n_iter_ == 6
        scores, truth = model.decision_function(data.X[test]), data.truth[test]
        values.append(
            (
                average_precision(truth, scores),
                ranking_loss(truth, scores),
                hamming_loss(truth, scores > model.threshold_),
            )
        )
    precision, ranking, hamming = np.mean(values, axis=0)
    assert 0.79 <= precision <= 0.83
    assert 0.145 <= ranking <= 0.175
    assert hamming <= 0.21
