"""Verified cells are fixed entries of R: exact, in every iteration, in single fits and in the grid."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from reference_solver import fit as reference_fit
from sklearn.base import clone
from sklearn.linear_model import Ridge

from skpml import PMLMA
from skpml.graph import neighbor_similarity
from skpml.metrics import average_precision
from skpml.modal_alignment import _tuning
from skpml.modal_alignment._grid import solve_grid
from skpml.modal_alignment._solver import WEIGHTS, Weights, solve
from skpml.model_selection import InnerFolds

SETTINGS = [
    {},
    {"basis": "orthogonal"},
    {"subspace_dim": 3},
    {"prototypes": "least-squares"},
    {"without": ("decomposition",)},
    {"without": ("alignment", "decomposition", "prototypes")},
    {"low_rank_weight": 100.0},
]
LEARNED = ("coef_", "confidences_", "prototypes_", "basis_", "threshold_")
QUIET = {"on_empty": "ignore"}


@pytest.fixture
def checked_problem(partial_problem):
    """Return features, candidates that lack some true labels, the truth, and verified cells of every kind."""
    X, candidates, truth = partial_problem
    rng = np.random.default_rng(1)
    candidates = np.where((truth == 1) & (rng.random(truth.shape) < 0.1), 0, candidates)
    verified = np.where(rng.random(truth.shape) < 0.2, 2 * truth - 1, 0)
    kinds = {(y, v) for y, v in zip(candidates.ravel(), verified.ravel(), strict=True)}
    assert kinds == {(y, v) for y in (0, 1) for v in (-1, 0, 1)}
    return X, candidates, truth, verified


@pytest.fixture
def few_points(monkeypatch):
    monkeypatch.setattr(_tuning, "_LAMS", (0.1, 1.0))
    monkeypatch.setattr(_tuning, "_ALPHAS", (0.01, 1.0))
    monkeypatch.setattr(_tuning, "_BETAS", (0.0, 0.1))
    monkeypatch.setattr(_tuning, "_GAMMAS", (0.01, 1.0, 100.0))


def correct(candidates, verified):
    return np.where(verified > 0, 1, np.where(verified < 0, 0, candidates))


def assert_same_model(one, two):
    for name in LEARNED:
        assert_array_equal(getattr(one, name), getattr(two, name))
    assert_array_equal(one.history_["objective"], two.history_["objective"])
    assert one.weights_ == two.weights_
    assert one.selection_ == two.selection_


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("max_iter", [1, 2, 50])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fixed_entries_are_exact_after_every_number_of_iterations(checked_problem, settings, max_iter, dtype):
    X, candidates, _, verified = checked_problem
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="All confidences are near 0")
        model = PMLMA(max_iter=max_iter, **QUIET, **settings).fit(
            X.astype(dtype), candidates, verified=verified
        )
    assert (model.confidences_[verified > 0] == 1).all()
    assert (model.confidences_[verified < 0] == 0).all()
    unknown = model.confidences_[verified == 0]
    assert ((unknown >= 0) & (unknown <= candidates[verified == 0])).all()
    assert not hasattr(model, "_verified")


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_nothing_verified_changes_no_bit(partial_problem, settings):
    X, candidates, _ = partial_problem
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="All confidences are near 0")
        plain, absent, zero, sparse = (
            PMLMA(**settings).fit(X, candidates, **known)
            for known in (
                {},
                {"verified": None},
                {"verified": np.zeros(candidates.shape)},
                {"verified": scipy.sparse.csr_array(candidates.shape)},
            )
        )
    for other in (absent, zero, sparse):
        assert_same_model(plain, other)


def test_found_false_is_as_good_as_no_candidate(checked_problem):
    X, candidates, _, verified = checked_problem
    verified = np.minimum(verified, 0)
    assert_same_model(
        PMLMA(**QUIET).fit(X, candidates, verified=verified),
        PMLMA(**QUIET).fit(X, correct(candidates, verified)),
    )


def test_found_true_is_more_than_a_candidate(checked_problem):
    X, candidates, _, verified = checked_problem
    corrected = correct(candidates, verified)
    plain = PMLMA(**QUIET).fit(X, corrected)
    known = PMLMA(**QUIET).fit(X, candidates, verified=verified)
    assert (plain.confidences_[verified > 0] < 1).any()
    # What is known spreads to other cells.
    unknown = (corrected == 1) & (verified == 0)
    assert np.abs(known.confidences_ - plain.confidences_)[unknown].max() > 1e-3


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("settings", [{}, {"basis": "orthogonal"}, {"low_rank_weight": 50.0}])
def test_all_cells_verified_is_ridge_regression_on_the_truth(partial_problem, alpha, settings):
    """Whatever the candidates: R is the truth, and P1 solves (Xᵀdiag(w)X + γI) P1 = Xᵀ(I + αS) R."""
    X, candidates, truth = partial_problem
    model = PMLMA(alignment_weight=alpha, ridge_weight=0.3, **settings)
    found = model.fit(X, candidates, verified=2 * truth - 1)
    assert_array_equal(found.confidences_, truth)
    scaled = found.scaler_.transform(X)
    mapped = found.feature_map_.transform(scaled)
    S = neighbor_similarity(scaled).toarray()
    w, target = 1 + alpha * S.sum(axis=1), truth + alpha * S @ truth
    if alpha == 0:
        expected = Ridge(alpha=0.3, fit_intercept=False, solver="svd").fit(mapped, truth).coef_.T
    else:
        expected = np.linalg.solve(
            mapped.T @ (w[:, None] * mapped) + 0.3 * np.eye(mapped.shape[1]), mapped.T @ target
        )
    assert_allclose(mapped @ found.coef_, mapped @ expected, atol=1e-8)
    other = clone(model).fit(X, 1 - candidates, verified=2 * truth - 1)
    assert_same_model(found, other)


@pytest.mark.parametrize("settings", [{}, {"basis": "orthogonal"}, {"subspace_dim": 3}])
def test_permutations_permute_the_output(checked_problem, settings):
    X, candidates, _, verified = checked_problem
    rng = np.random.default_rng(3)
    rows, labels = rng.permutation(len(X)), rng.permutation(candidates.shape[1])
    there = np.ix_(rows, labels)
    one = PMLMA(**QUIET, **settings).fit(X, candidates, verified=verified)
    two = PMLMA(**QUIET, **settings).fit(X[rows], candidates[there], verified=verified[there])
    assert_allclose(two.confidences_, one.confidences_[there], atol=1e-8)
    assert_allclose(two.decision_function(X), one.decision_function(X)[:, labels], atol=1e-8)
    assert two.threshold_ == pytest.approx(one.threshold_, abs=1e-8)


@pytest.mark.parametrize("form", ["csr_array", "coo_array", "csc_matrix", "lil_array"])
def test_sparse_equals_dense(checked_problem, form):
    X, candidates, _, verified = checked_problem
    assert_same_model(
        PMLMA(**QUIET).fit(X, candidates, verified=getattr(scipy.sparse, form)(verified)),
        PMLMA(**QUIET).fit(X, candidates, verified=verified),
    )


def test_columns_follow_the_order_of_the_classes(checked_problem):
    X, candidates, _, verified = checked_problem
    names = np.array(list("fbdace"))
    sets = [set(names[row > 0]) for row in candidates]
    order = np.argsort(names)
    frame = pd.DataFrame(verified, columns=names)
    plain = PMLMA(**QUIET).fit(X, candidates[:, order], verified=verified[:, order])
    found = PMLMA(**QUIET).fit(X, sets, verified=frame[sorted(names)])
    assert_array_equal(found.classes_, sorted(names))
    assert_array_equal(found.confidences_, plain.confidences_)
    with pytest.raises(ValueError, match="column 0 is 'f' and label 0 is 'a'"):
        PMLMA().fit(X, sets, verified=frame)


def test_bad_cells_are_named_and_leave_no_trace(checked_problem):
    X, candidates, _, verified = checked_problem
    model = PMLMA()
    wrong = verified.astype(float)
    wrong[3, 2] = np.nan
    with pytest.raises(ValueError, match="row 3, label 2 is nan"):
        model.fit(X, candidates, verified=wrong)
    with pytest.raises(ValueError, match=r"shape of the candidates, \(120, 6\)"):
        model.fit(X, candidates, verified=verified[1:])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X[1:], candidates, verified=verified)
    assert not hasattr(model, "_verified")


def test_inputs_are_left_alone(checked_problem):
    X, candidates, _, verified = checked_problem
    given = [X.copy(), candidates.astype(np.uint8), verified.astype(np.int8)]
    before = [array.tobytes() for array in given]
    PMLMA(**QUIET).fit(given[0], given[1], verified=given[2])
    assert [array.tobytes() for array in given] == before


def test_a_row_that_lost_its_last_candidate_is_reported(partial_problem):
    X, candidates, _ = partial_problem
    verified = np.zeros(candidates.shape)
    verified[7] = -1
    with pytest.warns(UserWarning, match="1 of 120 rows have no candidate label"):
        PMLMA().fit(X, candidates, verified=verified)


def test_confidences_near_zero_are_reported_although_some_are_known(checked_problem):
    X, candidates, truth, verified = checked_problem
    # One known label of one row cannot hold up the others.
    verified = np.zeros_like(verified)
    verified[0, truth[0].argmax()] = 1
    with pytest.warns(UserWarning, match="All confidences are near 0"):
        PMLMA(low_rank_weight=1e4, **QUIET).fit(X, candidates, verified=verified)


def solver_problem(n=60, d=9, c=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = (X @ rng.normal(size=(d, c)) + rng.normal(size=(n, c)) > 0.5).astype(float)
    return X, Y, neighbor_similarity(X), Y * (rng.random(Y.shape) < 0.3)


@pytest.mark.parametrize("prototypes", ["mean", "least-squares"])
@pytest.mark.parametrize("basis", ["orthogonal", "identity"])
def test_agrees_with_the_slow_reference(prototypes, basis):
    X, Y, S, known_true = solver_problem()
    weights = Weights(low_rank_weight=2.0, alignment_weight=0.3, prototype_weight=0.05, ridge_weight=0.7)
    options = {"prototypes": prototypes, "basis": basis, "max_iter": 6, "tol": 0}
    fast = solve(X, Y, S, weights=weights, known_true=known_true, **options)
    slow = reference_fit(
        X,
        Y,
        S.toarray(),
        lam=2.0,
        alpha=0.3,
        beta=0.05,
        gamma=0.7,
        m=5,
        prototypes=prototypes,
        learn_basis=basis == "orthogonal",
        n_iter=6,
        P2=np.eye(5),
        known_true=known_true,
    )
    assert_allclose(fast.coef, slow["P1"] @ slow["P2"].T, atol=1e-9)
    assert_allclose(fast.pseudo_labels, slow["R"], atol=1e-9)
    assert_allclose(
        fast.history["objective"], [sum(losses.values()) for losses in slow["history"]], rtol=1e-9
    )


@pytest.mark.parametrize("seed", range(5))
def test_objective_never_rises_where_every_step_is_exact(seed):
    """With λ = 0 and β = 0 the step in R is a projected gradient step on the smaller box."""
    X, Y, S, known_true = solver_problem(seed=seed)
    weights = Weights(low_rank_weight=0, alignment_weight=0.05, prototype_weight=0, ridge_weight=0.1)
    history = solve(X, Y, S, weights=weights, known_true=known_true, max_iter=30, tol=0).history["objective"]
    assert np.diff(history).max() <= 1e-10 * history[0]


@pytest.mark.parametrize(("shape", "tol", "atol"), [((60, 9, 5), 1e-9, 1e-9), ((40, 60, 8), 1e-3, 1e-5)])
def test_the_grid_equals_single_fits(shape, tol, atol):
    X, Y, S, known_true = solver_problem(*shape)
    values = dict(
        low_rank_weight=[0.0, 5.0],
        alignment_weight=[0.0, 0.3],
        prototype_weight=[0.0, 1e-2],
        ridge_weight=[1e-3, 2.0],
    )
    found = list(solve_grid(X, Y, S, known_true=known_true, tol=tol, **values))
    assert len(found) == 16
    for point in found:
        single = solve(X, Y, S, weights=point.weights, known_true=known_true, tol=tol)
        assert (point.pseudo_labels[known_true > 0] == 1).all()
        assert point.n_iter == single.n_iter
        assert_allclose(point.coef, single.coef, atol=atol)
        assert_allclose(point.pseudo_labels, single.pseudo_labels, atol=atol)
        assert_allclose(point.objective, single.history["objective"], rtol=atol)


@pytest.mark.usefixtures("few_points")
@pytest.mark.parametrize("settings", [{}, {"prototypes": "least-squares"}])
@pytest.mark.slow
def test_inner_folds_know_the_verified_cells_of_their_rows(checked_problem, settings):
    """With shared work and without: every point is judged as single fits with verified cells would be."""
    X, candidates, _, verified = checked_problem
    exact = {"tol": 1e-8, "max_iter": 30, "random_state": 0, **QUIET, **settings}
    with warnings.catch_warnings(action="ignore"):
        model = PMLMA(tune=True, **exact).fit(X, candidates, verified=verified)
        corrected = correct(candidates, verified)
        content = np.column_stack([corrected, verified])
        splits = InnerFolds(X, content, n_folds=3, random_state=0).splits
        for point in model.selection_["tried"][::4]:
            slow = []
            for train, held_out in splits:
                single = PMLMA(**exact, **{name: point[name] for name in WEIGHTS})
                single.fit(X[train], candidates[train], verified=verified[train])
                slow.append(average_precision(corrected[held_out], single.decision_function(X[held_out])))
            assert point["fold_precision"] == pytest.approx(slow, abs=1e-12)
    assert (model.confidences_[verified > 0] == 1).all()
    assert (model.confidences_[verified < 0] == 0).all()


@pytest.mark.usefixtures("few_points")
def test_tuning_takes_verified_cells(checked_problem):
    X, candidates, _, verified = checked_problem
    options = {"tune": True, "random_state": 0, **QUIET}
    model = PMLMA(**options).fit(X, candidates, verified=verified)
    assert (model.confidences_[verified > 0] == 1).all()
    assert (model.confidences_[verified < 0] == 0).all()
    given = PMLMA(**model.weights_, random_state=0, **QUIET).fit(X, candidates, verified=verified)
    assert_array_equal(given.confidences_, model.confidences_)
    assert_same_model(PMLMA(**options).fit(X, candidates, verified=scipy.sparse.csr_array(verified)), model)
    rows = np.random.default_rng(0).permutation(len(X))
    turned = PMLMA(**options).fit(X[rows], candidates[rows], verified=verified[rows])
    assert turned.weights_ == model.weights_
    assert_allclose(turned.confidences_, model.confidences_[rows], atol=1e-6)


@pytest.mark.usefixtures("few_points")
def test_tuning_with_nothing_verified_changes_no_bit(partial_problem):
    X, candidates, _ = partial_problem
    plain = PMLMA(tune=True, random_state=0).fit(X, candidates)
    zero = PMLMA(tune=True, random_state=0).fit(X, candidates, verified=np.zeros(candidates.shape))
    assert_same_model(plain, zero)
