"""Weights that PML-MA chooses for itself: by rows left out, without a true label, and as a slow search would."""

import json
import warnings

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler

from skpml import PMLMA
from skpml.graph import neighbor_similarity
from skpml.metrics import average_precision
from skpml.modal_alignment import _tuning
from skpml.modal_alignment._solver import WEIGHTS
from skpml.modal_alignment._tuning import can_share
from skpml.model_selection import InnerFolds, select_parameters

# The shared grid computes in single precision where the stopping rule is coarse.
EXACT = {"tol": 1e-8, "max_iter": 30}


@pytest.fixture
def whole_search():
    """Asked for by tests of what the search finds; the others make do with a shorter one."""


@pytest.fixture(autouse=True)
def few_values(monkeypatch, request):
    if "whole_search" not in request.fixturenames:
        monkeypatch.setattr(_tuning, "_LAMS", (0.1, 1.0))
        monkeypatch.setattr(_tuning, "_ALPHAS", (0.01, 1.0))
        monkeypatch.setattr(_tuning, "_BETAS", (0.0, 0.1))
        monkeypatch.setattr(_tuning, "_GAMMAS", (0.01, 1.0, 100.0))


def weights_of(point):
    return {name: point[name] for name in WEIGHTS}


def slow_precision(model, point, X, candidates):
    """Average precision of each inner fold by a fit of its own, on the candidates."""
    found = []
    graph = model.graph
    for train, held_out in InnerFolds(X, candidates, n_folds=3, random_state=0).splits:
        changes = {"graph": None if graph is None else graph[train][:, train], **weights_of(point)}
        single = clone(model).set_params(**changes, tune=False, random_state=0, on_empty="ignore")
        single.fit(X[train], candidates[train])
        found.append(average_precision(candidates[held_out], single.decision_function(X[held_out])))
    return found


@pytest.mark.parametrize(
    ("settings", "shares"),
    [
        ({}, True),
        ({"feature_map": "linear", "n_neighbors": 3}, True),
        ({"graph": True}, True),
        ({"basis": "orthogonal"}, False),
        ({"subspace_dim": 3}, False),
        ({"prototypes": "least-squares"}, False),
        ({"feature_map": StandardScaler()}, False),
        ({"without": ("prototypes",)}, False),
    ],
)
@pytest.mark.slow
def test_every_point_is_judged_as_a_fit_of_its_own_would_be(partial_problem, settings, shares):
    X, candidates, _ = partial_problem
    if "graph" in settings:
        settings = {"graph": neighbor_similarity(X, n_neighbors=4)}
    model = PMLMA(tune=True, random_state=0, **EXACT, **settings)
    # Values, not lists of them.
    assert not can_share(clone(model).set_params(tune=False), [{"ridge_weight": [0.1, 1.0]}], n_labels=6)
    assert can_share(clone(model).set_params(tune=False), [{}], n_labels=6) is shares
    model.fit(X, candidates)
    tried = model.selection_["tried"]
    for point in tried[:: 1 if not settings else 5]:
        slow = slow_precision(model, point, X, candidates)
        assert point["fold_precision"] == pytest.approx(slow, abs=1e-12)
        assert point["precision"] == pytest.approx(np.mean(slow), abs=1e-12)
    assert weights_of(max(tried, key=lambda point: point["precision"])) == model.weights_


def test_the_choice_agrees_with_a_search_from_outside(partial_problem, monkeypatch):
    """The first round of the search is a grid; the rounds after it are left out."""
    X, candidates, _ = partial_problem
    monkeypatch.setattr(_tuning, "_ROUNDS", _tuning._ROUNDS[:1])
    model = PMLMA(tune=True, random_state=0, **EXACT).fit(X, candidates)
    grid = {"alignment_weight": [0.01, 1.0], "ridge_weight": [0.01, 1.0, 100.0]}
    found = select_parameters(
        PMLMA(prototype_weight=0.0, random_state=0, **EXACT), grid, X, candidates, random_state=0
    )
    assert {name: model.weights_[name] for name in grid} == found.parameters
    assert len(model.selection_["tried"]) == len(found.table) == 6
    for here, there in zip(model.selection_["tried"], found.table, strict=True):
        assert {name: here[name] for name in grid} == there["parameters"]
        assert here["fold_precision"] == pytest.approx(there["fold_scores"], abs=1e-12)


@pytest.mark.slow
def test_the_chosen_weights_given_by_hand_make_the_same_model(partial_problem):
    X, candidates, _ = partial_problem
    for settings in ({}, {"n_anchors": 30}, {"graph": neighbor_similarity(X)}):
        chosen = PMLMA(tune=True, random_state=1, **settings).fit(X, candidates)
        given = PMLMA(**chosen.weights_, random_state=1, **settings).fit(X, candidates)
        assert given.weights_ == chosen.weights_
        assert given.selection_ == {"tried": []}
        for name in ("coef_", "confidences_", "threshold_"):
            assert_array_equal(getattr(given, name), getattr(chosen, name))
        assert_array_equal(given.predict(X), chosen.predict(X))


@pytest.mark.usefixtures("whole_search")
def test_the_search_covers_all_weights_and_reports_them(partial_problem):
    X, candidates, _ = partial_problem
    model = PMLMA(tune=True, random_state=0).fit(X, candidates)
    tried = model.selection_["tried"]
    keys = [tuple(weights_of(point).values()) for point in tried]
    assert len(set(keys)) == len(keys) <= 45
    for column, (least, most) in enumerate(((0.1, 10), (0.01, 1), (0, 0.1), (1e-3, 1e3))):
        values = {key[column] for key in keys}
        assert min(values) <= least
        assert max(values) >= most
    best = max(tried, key=lambda point: point["precision"])
    assert weights_of(best) == model.weights_
    assert best["distance"] == 0
    assert all(point["distance"] >= 0 for point in tried if point["precision"] < best["precision"] - 1e-3)
    # Plain numbers, that can be written down.
    assert json.loads(json.dumps(model.selection_)) == model.selection_
    assert json.loads(json.dumps(model.weights_)) == model.weights_


@pytest.mark.usefixtures("whole_search")
@pytest.mark.slow
def test_weights_far_off_are_mended_and_what_was_given_does_not_matter():
    """Few clear rows: a γ of thousands drowns what can be learnt."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    truth = (np.sin(2 * X) + X[:, ::-1] > 0.3).astype(int)
    candidates = np.maximum(truth, rng.random(truth.shape) < 0.3)
    train, test = slice(0, 200), slice(200, None)
    quiet = {"random_state": 0, "on_empty": "ignore"}

    def precision(model):
        return average_precision(
            truth[test], model.fit(X[train], candidates[train]).decision_function(X[test])
        )

    chosen = PMLMA(tune=True, **quiet)
    far_off = {
        "ridge_weight": 1e3,
        "low_rank_weight": 10.0,
        "alignment_weight": 50.0,
        "prototype_weight": 7.0,
    }
    assert precision(chosen) > precision(PMLMA(**far_off, **quiet)) + 0.05
    assert chosen.weights_["ridge_weight"] < 10
    # Given as 0, α would do without the graph that the chosen α needs.
    other = PMLMA(tune=True, **far_off | {"alignment_weight": 0.0}, **quiet).fit(X[train], candidates[train])
    assert other.selection_ == chosen.selection_
    assert_array_equal(other.coef_, chosen.coef_)


@pytest.mark.usefixtures("whole_search")
def test_without_noise_nothing_is_lost_against_the_defaults():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 8))
    truth = (np.sin(X @ rng.normal(size=(8, 6)) / 2) > 0.2).astype(int)
    train, test = slice(0, 250), slice(250, None)
    quiet = {"random_state": 0, "on_empty": "ignore"}
    auto, plain = (
        average_precision(
            truth[test],
            PMLMA(tune=tune, **quiet).fit(X[train], truth[train]).decision_function(X[test]),
        )
        for tune in (True, False)
    )
    assert auto >= plain - 0.005


@pytest.mark.slow
def test_order_does_not_matter(partial_problem):
    X, candidates, _ = partial_problem
    rng = np.random.default_rng(5)
    rows, features, labels = rng.permutation(120), rng.permutation(10), rng.permutation(6)
    here = PMLMA(tune=True, n_anchors=30, random_state=0).fit(X, candidates)
    there = PMLMA(tune=True, n_anchors=30, random_state=0).fit(
        X[np.ix_(rows, features)], candidates[np.ix_(rows, labels)]
    )
    assert there.weights_ == here.weights_
    assert_allclose(there.decision_function(X[:, features]), here.decision_function(X)[:, labels], atol=1e-7)
    for one, two in zip(here.selection_["tried"], there.selection_["tried"], strict=True):
        assert two["fold_precision"] == pytest.approx(one["fold_precision"], abs=2e-3)


@pytest.mark.slow
def test_draws_follow_the_random_state(partial_problem):
    X, candidates, _ = partial_problem

    def tried(seed):
        return PMLMA(tune=True, random_state=seed).fit(X, candidates).selection_["tried"]

    assert tried(0) == tried(0)
    assert tried(0) != tried(1)
    assert tried(np.random.RandomState(4)) == tried(np.random.RandomState(4))
    assert tried(np.int64(0)) == tried(0)
    assert len(tried(None)) > 5


@pytest.mark.slow
def test_forms_of_features_and_candidates(partial_problem):
    X, candidates, _ = partial_problem
    dense = PMLMA(tune=True, random_state=0).fit(X, candidates)
    sparse = PMLMA(tune=True, random_state=0).fit(scipy.sparse.csc_array(X), candidates)
    sets = [{f"label {j}" for j in np.flatnonzero(row)} for row in candidates]
    named = PMLMA(tune=True, random_state=0).fit(X, sets)
    assert dense.weights_ == sparse.weights_ == named.weights_
    single = PMLMA(tune=True, random_state=0).fit(X.astype(np.float32), candidates)
    assert single.coef_.dtype == np.float32
    assert_allclose(single.decision_function(X.astype(np.float32)), dense.decision_function(X), atol=1e-2)


def test_rare_labels_and_empty_rows_stop_nothing(partial_problem):
    X, candidates, _ = partial_problem
    rare = np.zeros((len(X), 1), int)
    rare[7] = 1
    candidates = np.hstack([candidates, rare])
    candidates[:40] = 0
    candidates[7, 6] = 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = PMLMA(tune=True, random_state=0).fit(X, candidates)
    assert len(caught) == 1  # of the rows, once; none of the inner fits
    assert all(0 < value < 1 for point in model.selection_["tried"] for value in point["fold_precision"])
    with pytest.raises(ValueError, match="rows have no candidate label"):
        PMLMA(tune=True, on_empty="raise").fit(X, candidates)


@pytest.mark.slow
def test_more_labels_than_features(partial_problem):
    X, candidates, _ = partial_problem
    model = PMLMA(tune=True, feature_map="linear", random_state=0, **EXACT).fit(X[:, :3], candidates)
    point = model.selection_["tried"][-1]
    assert point["fold_precision"] == pytest.approx(
        slow_precision(model, point, X[:, :3], candidates), abs=1e-12
    )


@pytest.mark.parametrize(
    ("without", "fixed"),
    [
        (("prototypes",), {"prototype_weight": 0.0}),
        (("decomposition",), {"low_rank_weight": 1.0}),
        (("alignment", "prototypes"), {"alignment_weight": 0.01, "prototype_weight": 0.0}),
    ],
)
@pytest.mark.slow
def test_weights_of_parts_left_out_are_not_searched(partial_problem, without, fixed):
    X, candidates, _ = partial_problem
    model = PMLMA(tune=True, without=without, random_state=0).fit(X, candidates)
    for point in model.selection_["tried"]:
        assert {name: point[name] for name in fixed} == fixed
    assert len({point["ridge_weight"] for point in model.selection_["tried"]}) > 2


def test_inner_fits_are_out_of_sight(partial_problem):
    X, candidates, _ = partial_problem
    seen = []
    given = PMLMA(tune=True, random_state=0, callback=lambda iteration, _: seen.append(iteration))
    before = given.get_params()
    given.fit(X, candidates)
    assert seen == list(range(1, given.n_iter_ + 1))
    assert given.get_params() == before


def test_given_weights_are_reported(partial_problem):
    X, candidates, _ = partial_problem
    model = PMLMA(low_rank_weight=2, ridge_weight=0.5).fit(X, candidates)
    assert model.weights_ == {
        "low_rank_weight": 2.0,
        "alignment_weight": 0.01,
        "prototype_weight": 0.01,
        "ridge_weight": 0.5,
    }
    assert model.selection_ == {"tried": []}


@pytest.mark.parametrize("wrong", ["auto", None, 1, {"ridge_weight": 1.0}])
def test_other_values_are_refused(partial_problem, wrong):
    X, candidates, _ = partial_problem
    with pytest.raises(ValueError, match="tune must be True or False, got"):
        PMLMA(tune=wrong).fit(X, candidates)


@pytest.mark.parametrize(
    ("settings", "fewest"),
    [({}, 9), ({"n_neighbors": 2}, 5), ({"without": ("alignment",)}, 3), ({"n_neighbors": 1}, 3)],
)
def test_too_few_rows_are_refused(partial_problem, settings, fewest):
    X, candidates, _ = partial_problem
    model = PMLMA(tune=True, on_empty="ignore", random_state=0, **settings)
    few = fewest - 1
    with pytest.raises(ValueError, match=f"needs at least .* there, got . of {few};.* set the weights"):
        model.fit(X[:few], candidates[:few])
    assert len(model.fit(X[:fewest], candidates[:fewest]).selection_["tried"]) > 2


def test_where_nothing_can_be_compared_the_given_weights_serve(partial_problem):
    X, candidates, _ = partial_problem
    with pytest.warns(UserWarning, match="nothing to choose by"):
        model = PMLMA(tune=True, ridge_weight=0.3).fit(X, candidates[:, :1])
    assert model.weights_["ridge_weight"] == 0.3
    assert model.selection_ == {"tried": []}


def test_a_wrong_graph_is_refused_before_the_search(partial_problem):
    X, candidates, _ = partial_problem
    with pytest.raises(ValueError, match=r"graph has shape \(3, 3\), but X has 120 rows"):
        PMLMA(tune=True, graph=scipy.sparse.eye(3)).fit(X, candidates)


def test_a_saved_model_keeps_its_evidence(partial_problem, tmp_path):
    pytest.importorskip("skops", reason="model files need skops")
    from skpml.io import load_model, save_model

    X, candidates, _ = partial_problem
    model = PMLMA(tune=True, random_state=0).fit(X, candidates)
    save_model(model, tmp_path / "auto.skpml")
    again = load_model(tmp_path / "auto.skpml")
    assert again.weights_ == model.weights_
    assert again.selection_ == model.selection_
    assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.slow
def test_views_are_seen_while_weights_are_chosen(partial_problem):
    """Inner fits leave out a view that does not count, whatever form the views have."""
    X, candidates, _ = partial_problem
    noise = np.random.default_rng(0).normal(size=(len(X), 200))
    side_by_side = np.hstack([X, noise])
    auto = {"tune": True, "random_state": 0}
    share = {"telling": 1.0, "noise": 0.0}
    seen = PMLMA(view_weights=share, **auto).fit({"telling": X, "noise": noise}, candidates)
    groups = {"telling": list(range(10)), "noise": list(range(10, 210))}
    grouped = PMLMA(views=groups, view_weights=share, **auto).fit(side_by_side, candidates)
    assert grouped.selection_ == seen.selection_
    blind = PMLMA(**auto).fit(side_by_side, candidates)
    best = {name: max(point["precision"] for point in model.selection_["tried"]) for name, model in
            {"seen": seen, "blind": blind}.items()}  # fmt: skip
    assert best["seen"] > best["blind"] + 0.02
