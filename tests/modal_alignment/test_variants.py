"""PML-MA as recommended, as printed and as released."""

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from reference_solver import fit_released

from skpml import PMLMA, get_method
from skpml.graph import neighbor_similarity
from skpml.modal_alignment import Weights, solve

NAMES = ("pml-ma", "pml-ma-printed", "pml-ma-released")
WEIGHTS = Weights(low_rank_weight=2.0, alignment_weight=0.3, prototype_weight=0.05, ridge_weight=0.7)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 7))
    Y = (X @ rng.normal(size=(7, 5)) + rng.normal(size=(40, 5)) > 0).astype(float)
    Y[np.arange(40), rng.integers(0, 5, 40)] = 1
    return X, Y, neighbor_similarity(X, scale="first") + scipy.sparse.eye_array(40)


@pytest.mark.parametrize("n_iter", [1, 2, 12])
def test_released_steps_agree_with_the_slow_reference(problem, n_iter):
    X, Y, S = problem
    fast = solve(X, Y, S, weights=WEIGHTS, basis="orthogonal", steps="released", max_iter=n_iter, tol=0)
    slow = fit_released(X, Y, S.toarray(), lam=2.0, alpha=0.3, beta=0.05, gamma=0.7, n_iter=n_iter)
    assert_allclose(fast.coef, slow["P1"], atol=1e-9)
    assert_allclose(fast.basis, slow["Q"], atol=1e-9)
    assert_allclose(fast.pseudo_labels, np.clip(slow["R"], 0, Y), atol=1e-9)
    # Otherwise the rule for the box would not be tested.
    assert n_iter < 12 or slow["R"].max() > 1


def test_released_steps_keep_the_basis_near_the_identity(problem):
    X, Y, S = problem
    printed, released = (
        solve(X, Y, S, weights=WEIGHTS, basis="orthogonal", steps=steps, max_iter=30, tol=0).history[
            "basis_drift"
        ][-1]
        for steps in ("derived", "released")
    )
    assert released < printed / 2


@pytest.mark.parametrize("name", NAMES)
def test_confidences_lie_between_zero_and_the_candidates(partial_problem, name):
    X, candidates, _ = partial_problem
    model = get_method(name)(low_rank_weight=0.1).fit(X, candidates)
    assert model.confidences_.min() >= 0
    assert (model.confidences_ <= candidates).all()


@pytest.mark.parametrize("name", NAMES)
def test_verified_cells_are_kept(partial_problem, name):
    X, candidates, truth = partial_problem
    cells = np.zeros_like(truth, dtype=int)
    cells[:50] = 2 * truth[:50] - 1
    found = get_method(name)().fit(X, candidates, verified=cells).confidences_[:50]
    assert_array_equal(found, truth[:50])


def test_a_released_graph_has_self_loops_only_if_it_is_built(partial_problem):
    X, candidates, _ = partial_problem
    options = dict(steps="released", alignment_weight=1.0, callback=lambda iteration, _: iteration == 3)
    built = PMLMA(**options).fit(X, candidates)
    graph = neighbor_similarity(built.scaler_.transform(X), scale="first")
    given = PMLMA(**options, graph=graph + scipy.sparse.eye_array(len(X))).fit(X, candidates)
    without_loops = PMLMA(**options, graph=graph).fit(X, candidates)
    assert_array_equal(given.coef_, built.coef_)
    assert np.abs(without_loops.coef_ - built.coef_).max() > 1e-6


def test_variants_have_the_settings_of_their_source():
    recommended, printed, released = (get_method(name)() for name in NAMES)
    assert (recommended.basis, recommended.steps, recommended.threshold) == ("identity", "derived", "auto")
    assert (printed.basis, printed.steps, printed.threshold) == ("orthogonal", "derived", 0.5)
    assert (released.basis, released.steps, released.threshold) == ("orthogonal", "released", 0.5)
    for name in NAMES[1:]:
        assert get_method(name).comparison_threshold == 0.5


def test_without_a_tolerance_all_iterations_are_made(problem):
    X, Y, _ = problem
    # Without weights the first step reaches a fixed point: the objective no longer changes.
    still = Weights(low_rank_weight=0.0, alignment_weight=0.0, prototype_weight=0.0, ridge_weight=1e12)
    solution = solve(X, Y, weights=still, max_iter=200, tol=0)
    assert len(set(solution.history["objective"][-20:])) == 1
    assert (solution.n_iter, solution.converged) == (200, False)
