import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from reference_solver import fit as reference_fit
from reference_solver import similarity as reference_similarity

from skpml.graph import neighbor_similarity
from skpml.modal_alignment._solver import TERMS, Weights, solve


def problem(n=40, d=7, c=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = (X @ rng.normal(size=(d, c)) + rng.normal(size=(n, c)) > 0).astype(float)
    Y[np.arange(n), rng.integers(0, c, n)] = 1
    return X, Y, neighbor_similarity(X)


WEIGHTS = Weights(low_rank_weight=2.0, alignment_weight=0.3, prototype_weight=0.05, ridge_weight=0.7)


@pytest.mark.parametrize("prototypes", ["mean", "least-squares"])
@pytest.mark.parametrize("basis", ["orthogonal", "identity"])
@pytest.mark.parametrize("m", [5, 2])
def test_agrees_with_the_slow_reference(prototypes, basis, m):
    X, Y, S = problem()
    fast = solve(
        X, Y, S, weights=WEIGHTS, subspace_dim=m, prototypes=prototypes, basis=basis, max_iter=6, tol=0
    )
    dense = S.toarray()
    # The reference gets the same start: the label directions that the features predict best.
    w, G = 1 + 0.3 * dense.sum(axis=1), X + 0.3 * dense @ X
    explained = Y.T @ G @ np.linalg.solve(X.T @ (w[:, None] * X) + 0.7 * np.eye(7), G.T @ Y)
    start = np.eye(5) if m == 5 else np.linalg.eigh(explained)[1][:, -m:]
    slow = reference_fit(
        X,
        Y,
        dense,
        lam=2.0,
        alpha=0.3,
        beta=0.05,
        gamma=0.7,
        m=m,
        prototypes=prototypes,
        learn_basis=basis == "orthogonal",
        n_iter=6,
        P2=start,
    )
    assert_allclose(fast.coef, slow["P1"] @ slow["P2"].T, atol=1e-9)
    assert_allclose(fast.scores, X @ slow["P1"] @ slow["P2"].T, atol=1e-9)
    assert_allclose(fast.pseudo_labels, slow["R"], atol=1e-9)
    assert_allclose(fast.basis, slow["Q"], atol=1e-9)
    assert_allclose(fast.prototypes, slow["V"], atol=1e-9)
    for term in TERMS:
        assert_allclose(fast.history[term], [losses[term] for losses in slow["history"]], rtol=1e-9)
    assert_allclose(
        fast.history["objective"], [sum(losses.values()) for losses in slow["history"]], rtol=1e-9
    )


def test_neighbour_graph_of_the_reference_is_the_same():
    X, _, S = problem()
    assert_allclose(S.toarray(), reference_similarity(X, 5), atol=1e-12)


def test_full_dimension_makes_the_label_projection_irrelevant():
    """Fact 1: with m = c any orthogonal P2 gives the same classifier and pseudo-labels."""
    X, Y, S = problem()
    shortcut = solve(X, Y, S, weights=WEIGHTS, max_iter=4, tol=0)
    turned = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0]
    slow = reference_fit(
        X,
        Y,
        S.toarray(),
        lam=2.0,
        alpha=0.3,
        beta=0.05,
        gamma=0.7,
        m=5,
        prototypes="mean",
        learn_basis=False,
        n_iter=4,
        P2=turned,
    )
    assert_allclose(shortcut.coef, slow["P1"] @ slow["P2"].T, atol=1e-9)
    assert_allclose(shortcut.pseudo_labels, slow["R"], atol=1e-9)


def test_without_neighbours_and_prototypes_it_starts_as_ridge():
    """α = β = 0: the first classifier is ridge regression on the candidates."""
    X, Y, _ = problem()
    solution = solve(
        X,
        Y,
        None,
        weights=Weights(low_rank_weight=0, alignment_weight=0, prototype_weight=0, ridge_weight=0.7),
        max_iter=1,
    )
    assert_allclose(solution.coef, np.linalg.solve(X.T @ X + 0.7 * np.eye(7), X.T @ Y), atol=1e-12)


def test_large_low_rank_weight_empties_the_pseudo_labels():
    X, Y, S = problem()
    solution = solve(
        X,
        Y,
        S,
        weights=Weights(low_rank_weight=1e6, alignment_weight=0.1, prototype_weight=0.1, ridge_weight=1),
        max_iter=3,
    )
    assert_array_equal(solution.pseudo_labels, 0)
    assert np.isfinite(solution.coef).all()
    assert np.isfinite(solution.prototypes).all()


def test_large_classifier_weight_empties_the_classifier():
    X, Y, S = problem()
    solution = solve(
        X,
        Y,
        S,
        weights=Weights(low_rank_weight=0, alignment_weight=0.1, prototype_weight=0, ridge_weight=1e9),
        max_iter=3,
    )
    assert np.abs(solution.coef).max() < 1e-6


def test_zero_graph_is_no_graph():
    X, Y, _ = problem()
    empty = scipy.sparse.csr_array((40, 40))
    with_empty = solve(X, Y, empty, weights=WEIGHTS)
    without = solve(X, Y, None, weights=WEIGHTS)
    assert_allclose(with_empty.coef, without.coef, atol=1e-12)


def test_singular_features_without_ridge():
    """γ = 0 and repeated columns: the least-norm classifier, finite, giving each copy the same coefficients."""
    X, Y, S = problem()
    doubled = np.hstack([X, X])
    single = solve(
        X,
        Y,
        S,
        weights=Weights(low_rank_weight=1, alignment_weight=0.1, prototype_weight=0, ridge_weight=0),
        max_iter=5,
        tol=0,
    )
    double = solve(
        doubled,
        Y,
        S,
        weights=Weights(low_rank_weight=1, alignment_weight=0.1, prototype_weight=0, ridge_weight=0),
        max_iter=5,
        tol=0,
    )
    assert_allclose(double.scores, single.scores, atol=1e-8)
    assert_allclose(double.coef[:7], double.coef[7:], atol=1e-8)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    lam=st.sampled_from([0.0, 0.1, 3.0]),
    alpha=st.sampled_from([0.0, 0.01, 1.0]),
    beta=st.sampled_from([0.0, 0.01, 0.5]),
    m=st.integers(1, 5),
    basis=st.sampled_from(["orthogonal", "identity"]),
    prototypes=st.sampled_from(["mean", "least-squares"]),
)
def test_invariants(seed, lam, alpha, beta, m, basis, prototypes):
    X, Y, S = problem(seed=seed)
    solution = solve(
        X,
        Y,
        S,
        weights=Weights(low_rank_weight=lam, alignment_weight=alpha, prototype_weight=beta, ridge_weight=0.1),
        subspace_dim=m,
        basis=basis,
        prototypes=prototypes,
        max_iter=8,
    )
    R, Q, P2 = solution.pseudo_labels, solution.basis, solution.label_projection
    assert (R >= 0).all()
    assert (R <= Y).all()
    assert_allclose(Q.T @ Q, np.eye(5), atol=1e-10)
    assert_allclose(P2.T @ P2, np.eye(P2.shape[1]), atol=1e-10)
    assert_allclose(solution.feature_projection @ P2.T, solution.coef, atol=1e-12)
    assert all(np.isfinite(values).all() for values in solution.history.values())
    assert {len(values) for values in solution.history.values()} == {solution.n_iter}


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    alpha=st.sampled_from([0.0, 0.05, 2.0]),
    basis=st.sampled_from(["orthogonal", "identity"]),
)
def test_objective_never_rises_where_every_step_is_exact(seed, alpha, basis):
    """m = c, λ = 0, β = 0: each block is minimised exactly or by a projected gradient step, so J cannot rise."""
    X, Y, S = problem(seed=seed)
    history = solve(
        X,
        Y,
        S,
        weights=Weights(low_rank_weight=0, alignment_weight=alpha, prototype_weight=0, ridge_weight=0.1),
        basis=basis,
        max_iter=30,
        tol=0,
    ).history["objective"]
    assert np.diff(history).max() <= 1e-10 * history[0]


@pytest.mark.parametrize("basis", ["orthogonal", "identity"])
def test_objective_falls_on_a_usual_fit(basis):
    X, Y, S = problem(n=150)
    history = solve(X, Y, S, weights=WEIGHTS, basis=basis, max_iter=30, tol=0).history["objective"]
    assert np.diff(history).max() <= 1e-9 * history[0]


@pytest.mark.parametrize("basis", ["orthogonal", "identity"])
@pytest.mark.parametrize("prototypes", ["mean", "least-squares"])
@pytest.mark.parametrize("m", [5, 2])
def test_permutations_permute_the_solution(basis, prototypes, m):
    X, Y, S = problem(n=60)
    rng = np.random.default_rng(5)
    rows, features, labels = rng.permutation(60), rng.permutation(7), rng.permutation(5)
    options = dict(weights=WEIGHTS, subspace_dim=m, basis=basis, prototypes=prototypes, max_iter=10, tol=0)
    one = solve(X, Y, S, **options)
    two = solve(X[np.ix_(rows, features)], Y[np.ix_(rows, labels)], S[rows][:, rows], **options)
    assert_allclose(two.coef, one.coef[np.ix_(features, labels)], atol=1e-9)
    assert_allclose(two.pseudo_labels, one.pseudo_labels[np.ix_(rows, labels)], atol=1e-9)
    assert_allclose(two.prototypes, one.prototypes[np.ix_(features, labels)], atol=1e-9)
    assert_allclose(two.basis, one.basis[np.ix_(labels, labels)], atol=1e-9)
    assert_allclose(two.history["objective"], one.history["objective"], rtol=1e-10)


def test_rows_are_independent_given_small_sums():
    """Fact 4: without a graph, repeating every row k times with λ, γ scaled leaves the classifier and R unchanged."""
    X, Y, _ = problem(n=30)
    k = 3
    once = solve(
        X,
        Y,
        None,
        weights=Weights(low_rank_weight=0.9, alignment_weight=0, prototype_weight=0.2, ridge_weight=0.5),
        max_iter=6,
        tol=0,
    )
    # The nuclear norm of k stacked copies is √k times that of one; all sums over rows are k times larger.
    stacked = solve(
        np.tile(X, (k, 1)),
        np.tile(Y, (k, 1)),
        None,
        weights=Weights(
            low_rank_weight=0.9 * np.sqrt(k), alignment_weight=0, prototype_weight=0.2, ridge_weight=0.5 * k
        ),
        max_iter=6,
        tol=0,
    )
    assert_allclose(stacked.coef, once.coef, atol=1e-9)
    assert_allclose(stacked.pseudo_labels, np.tile(once.pseudo_labels, (k, 1)), atol=1e-9)


class TestAblation:
    def test_without_prototypes_is_zero_weight(self):
        X, Y, S = problem()
        left_out = solve(X, Y, S, weights=WEIGHTS, without=("prototypes",), max_iter=5, tol=0)
        zero = solve(
            X,
            Y,
            S,
            weights=Weights(low_rank_weight=2.0, alignment_weight=0.3, prototype_weight=0, ridge_weight=0.7),
            max_iter=5,
            tol=0,
        )
        assert_array_equal(left_out.coef, zero.coef)
        assert set(left_out.history["prototypes"]) == {0.0}

    def test_without_alignment_the_classifier_is_ridge_on_the_pseudo_labels(self):
        X, Y, S = problem()
        solution = solve(X, Y, S, weights=WEIGHTS, without=("alignment",), max_iter=5, tol=0)
        ridge = np.linalg.solve(X.T @ X + 0.7 * np.eye(7), X.T @ solution.pseudo_labels)
        assert_allclose(solution.coef, ridge, atol=1e-10)
        for term in ("global_alignment", "local_alignment", "classifier"):
            assert set(solution.history[term]) == {0.0}

    def test_without_decomposition_the_candidates_only_bound(self):
        X, Y, S = problem()
        solution = solve(X, Y, S, weights=WEIGHTS, without=("decomposition",), max_iter=5, tol=0)
        assert set(solution.history["decomposition"]) == {0.0}
        assert set(solution.history["low_rank"]) == {0.0}
        assert (solution.pseudo_labels <= Y).all()

    def test_without_everything_the_labels_stay(self):
        X, Y, S = problem()
        solution = solve(
            X, Y, S, weights=WEIGHTS, without=("decomposition", "alignment", "prototypes"), max_iter=3
        )
        assert_array_equal(solution.pseudo_labels, Y)

    def test_unknown_part(self):
        X, Y, S = problem()
        with pytest.raises(ValueError, match=r"unknown parts \['graph'\]"):
            solve(X, Y, S, weights=WEIGHTS, without=("graph",))


def test_stops_at_the_tolerance_and_says_so():
    X, Y, S = problem()
    loose = solve(X, Y, S, weights=WEIGHTS, tol=1e-1)
    tight = solve(X, Y, S, weights=WEIGHTS, tol=1e-8, max_iter=500)
    cut = solve(X, Y, S, weights=WEIGHTS, tol=0, max_iter=3)
    assert loose.converged
    assert tight.converged
    assert loose.n_iter < tight.n_iter
    assert not cut.converged
    assert cut.n_iter == 3
    J = tight.history["objective"]
    assert abs(J[-1] - J[-2]) <= 1e-8 * J[-2] < abs(J[-2] - J[-3])


def test_callback_sees_every_iteration_and_can_stop():
    X, Y, S = problem()
    seen = []

    def stop_at_three(iteration, losses):
        seen.append((iteration, losses["objective"]))
        return iteration == 3

    solution = solve(X, Y, S, weights=WEIGHTS, tol=0, callback=stop_at_three)
    assert [iteration for iteration, _ in seen] == [1, 2, 3]
    assert [value for _, value in seen] == solution.history["objective"]
    assert not solution.converged


def test_subspace_dimension_must_fit():
    X, Y, S = problem()
    with pytest.raises(ValueError, match=r"subspace_dim must lie between 1 and min\(d, c\) = 5, got 6"):
        solve(X, Y, S, weights=WEIGHTS, subspace_dim=6)


def test_inputs_are_left_alone():
    X, Y, S = problem()
    before = X.tobytes(), Y.tobytes(), S.data.tobytes()
    solve(X, Y, S, weights=WEIGHTS)
    assert (X.tobytes(), Y.tobytes(), S.data.tobytes()) == before
