"""Choosing parameters: right on planted cases, blind to the truth, repeatable, clear about bad grids."""

import json
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skpml import PMLMA
from skpml.base import BasePMLClassifier
from skpml.graph import neighbor_similarity
from skpml.modal_alignment._tuning import can_share
from skpml.model_selection import InnerFolds, candidate_precision, select_parameters
from skpml.noise import top_up
from skpml.reference import CandidateRidge


class Planted(BasePMLClassifier):
    """Scores are the features and noise of the size ``blur``; the class notes the rows of each fit."""

    fits: ClassVar[list[int]] = []

    def __init__(self, *, blur=0.0, broken=False, threshold=0.5, on_empty="warn"):
        self.blur = blur
        self.broken = broken
        self.threshold = threshold
        self.on_empty = on_empty

    def _fit(self, X, Y):
        Planted.fits.append(len(X))
        if self.broken:
            raise RuntimeError("broken on purpose")

    def _scores(self, X):
        if self.blur == "nan":
            return np.full_like(X, np.nan)
        return X + self.blur * np.random.default_rng(0).normal(size=X.shape)


def planted(n=300, c=6, seed=0):
    rng = np.random.default_rng(seed)
    truth = (rng.random((n, c)) < 0.3).astype(int)
    truth[np.arange(n), rng.integers(0, c, n)] = 1
    return truth + 0.3 * rng.normal(size=(n, c)), top_up(truth, 4, random_state=seed), truth


class Untouchable:
    """Truth that must not be looked at."""

    def __getattribute__(self, name):
        raise AssertionError(f"the truth was touched: {name}")

    def __array__(self, *_args, **_kwargs):
        raise AssertionError("the truth was touched")

    def __len__(self):
        raise AssertionError("the truth was touched")


@pytest.mark.parametrize("search", ["grid", "halving"])
@pytest.mark.parametrize("blurs", [[0.0, 1.0], [1.0, 0.0], [5.0, 0.5]])
def test_finds_the_better_of_two_without_true_labels(blurs, search):
    X, candidates, _ = planted()
    found = select_parameters(
        Planted(), {"blur": blurs}, X, candidates, truth=Untouchable(), search=search, n_folds=3
    )
    assert found.parameters == {"blur": min(blurs)}
    assert (found.selector, found.search) == ("label-free", search)
    worse, better = sorted(row["mean_score"] for row in found.table)
    assert found.score == better > worse + 0.05
    assert found.n_fits == 6
    assert found.full_fits == 6


def test_table_has_every_point_in_order_and_is_plain():
    X, candidates, _ = planted()
    found = select_parameters(Planted(), {"blur": np.array([2.0, 0.5, 1.0])}, X, candidates, n_folds=4)
    assert [row["parameters"]["blur"] for row in found.table] == [2.0, 0.5, 1.0]
    for row in found.table:
        assert len(row["fold_scores"]) == 4
        assert row["mean_score"] == pytest.approx(np.mean(row["fold_scores"]))
        assert row["n_rows"] == 225
    assert json.loads(json.dumps(found.table)) == found.table


def test_a_real_method_is_not_fooled_by_its_training_rows():
    """A ridge of nearly 0 repeats the noise of its training rows; held-out rows show it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 5))
    truth = (X @ rng.normal(size=(5, 6)) > 0.3).astype(int)
    candidates = top_up(truth, 5, random_state=0)
    estimator = CandidateRidge(random_state=0, on_empty="ignore")
    strength = next(name for name in ("ridge", "gamma", "alpha") if name in estimator.get_params())
    found = select_parameters(estimator, {strength: [1e-9, 1.0]}, X, candidates)
    assert found.parameters == {strength: 1.0}


def test_ties_go_to_the_first():
    X, candidates, _ = planted()
    found = select_parameters(Planted(), {"threshold": [0.7, 0.5, 0.9]}, X, candidates)
    assert found.parameters == {"threshold": 0.7}


def test_oracle_uses_the_truth_and_needs_it():
    """Candidates turned against the truth: the two selectors must part."""
    X, _, truth = planted()
    misleading = 1 - truth
    misleading[:, 0] = 1
    grid = {"feature": [1, -1]}

    class Turned(Planted):
        def __init__(self, *, feature=1, threshold=0.5, on_empty="warn"):
            super().__init__(threshold=threshold, on_empty=on_empty)
            self.feature = feature

        def _fit(self, X, Y):
            return None

        def _scores(self, X):
            return self.feature * X

    free = select_parameters(Turned(), grid, X, misleading)
    oracle = select_parameters(Turned(), grid, X, misleading, selector="oracle", truth=truth)
    assert (free.parameters, oracle.parameters) == ({"feature": -1}, {"feature": 1})
    assert oracle.selector == "oracle"
    with pytest.raises(ValueError, match='selector="oracle" needs truth'):
        select_parameters(Turned(), grid, X, misleading, selector="oracle")
    with pytest.raises(ValueError, match=r"truth has shape \(5, 6\), but candidates have shape \(300, 6\)"):
        select_parameters(Turned(), grid, X, misleading, selector="oracle", truth=truth[:5])


@pytest.mark.parametrize("search", ["grid", "halving"])
def test_repeats_and_does_not_depend_on_row_order(partial_problem, search):
    X, candidates, _ = partial_problem
    grid = {"ridge_weight": [1e-3, 1.0, 100.0], "low_rank_weight": [0.1, 1.0]}
    first = select_parameters(PMLMA(n_anchors=20), grid, X, candidates, search=search)
    again = select_parameters(PMLMA(n_anchors=20), grid, X, candidates, search=search)
    assert first == again
    order = np.random.default_rng(5).permutation(len(X))
    moved = select_parameters(PMLMA(n_anchors=20), grid, X[order], candidates[order], search=search)
    assert moved.parameters == first.parameters
    for here, there in zip(first.table, moved.table, strict=True):
        assert there["fold_scores"] == pytest.approx(here["fold_scores"], abs=2e-3)


def test_estimator_and_data_are_left_alone(partial_problem):
    X, candidates, _ = partial_problem
    estimator = PMLMA()
    before, features, labels = estimator.get_params(), X.copy(), candidates.copy()
    select_parameters(estimator, {"ridge_weight": [0.1, 1.0]}, X, candidates)
    assert estimator.get_params() == before
    assert not hasattr(estimator, "coef_")
    assert (features == X).all()
    assert (labels == candidates).all()


@pytest.mark.parametrize(
    ("settings", "shares"),
    [
        ({}, True),
        ({"feature_map": "linear"}, True),
        ({"subspace_dim": 6}, True),
        ({"subspace_dim": 3}, False),
        ({"basis": "orthogonal"}, False),
        ({"prototypes": "least-squares"}, False),
        ({"without": ("prototypes",)}, False),
    ],
)
@pytest.mark.slow
def test_shared_grid_gives_what_single_fits_give(partial_problem, monkeypatch, settings, shares):
    X, candidates, _ = partial_problem
    grid = {"ridge_weight": [1e-2, 1.0], "low_rank_weight": [0.1, 5.0], "prototype_weight": [0.0, 1.0]}
    estimator = PMLMA(random_state=0, tol=1e-8, max_iter=30, **settings)
    points = [{"ridge_weight": 1.0}]
    assert can_share(estimator, points, n_labels=6) is shares
    together = select_parameters(estimator, grid, X, candidates)
    monkeypatch.setattr("skpml.modal_alignment._tuning.can_share", lambda *_args, **_kwargs: False)
    one_by_one = select_parameters(estimator, grid, X, candidates)
    assert together.parameters == one_by_one.parameters
    assert together.n_fits == one_by_one.n_fits == 24
    for here, there in zip(together.table, one_by_one.table, strict=True):
        assert here["parameters"] == there["parameters"]
        assert here["fold_scores"] == pytest.approx(there["fold_scores"], abs=1e-12)


def test_weights_that_the_shared_grid_does_not_cover_are_fitted_one_by_one(partial_problem):
    X, candidates, _ = partial_problem
    assert not can_share(PMLMA(), [{"ridge_weight": 0.0}], n_labels=6)
    assert not can_share(PMLMA(), [{"ridge_weight": 1.0, "n_neighbors": 3}], n_labels=6)
    assert not can_share(PMLMA(ridge_weight=0.0), [{"low_rank_weight": 1.0}], n_labels=6)
    found = select_parameters(PMLMA(), {"ridge_weight": [0.0, 1.0], "n_neighbors": [3, 5]}, X, candidates)
    assert len(found.table) == 4
    with pytest.raises(ValueError, match="ridge_weight"):
        select_parameters(PMLMA(), {"ridge_weight": [-1.0, 1.0]}, X, candidates)


def test_fewer_features_than_labels(partial_problem):
    X, candidates, _ = partial_problem
    found = select_parameters(PMLMA(feature_map="linear"), {"ridge_weight": [0.1, 1.0]}, X[:, :3], candidates)
    assert found.n_fits == 6


def test_halving_finds_the_winner_of_the_grid_with_less_work():
    X, candidates, _ = planted(900)
    grid = {"blur": [float(blur) for blur in np.random.default_rng(0).permutation(27)]}
    Planted.fits.clear()
    whole = select_parameters(Planted(), grid, X, candidates)
    assert Planted.fits == [600] * 81
    Planted.fits.clear()
    halved = select_parameters(Planted(), grid, X, candidates, search="halving")
    assert Planted.fits == [100] * 27 + [200] * 9 + [600] * 9
    assert halved.parameters == whole.parameters == {"blur": 0.0}
    # 27 points on 100 rows, 9 on 200, 3 on all 600 rows of each of three folds.
    assert (whole.n_fits, halved.n_fits) == (81, 27 + 9 + 9)
    assert halved.full_fits == pytest.approx(27 / 6 + 9 / 3 + 9)
    assert sorted(row["n_rows"] for row in halved.table) == [100] * 18 + [200] * 6 + [600] * 3


def test_the_rows_of_a_search_can_be_limited():
    X, candidates, _ = planted(900)
    grid = {"blur": [1.0, 0.0]}
    Planted.fits.clear()
    found = select_parameters(Planted(), grid, X, candidates, max_rows=100)
    assert Planted.fits == [66] * 6
    assert found.parameters == {"blur": 0.0}
    assert {row["n_rows"] for row in found.table} == {66}
    # Which rows are drawn does not depend on their order, and as many rows as there are change nothing.
    mixed = np.random.default_rng(1).permutation(900)
    again = select_parameters(Planted(), {"blur": [0.0]}, X[mixed], candidates[mixed], max_rows=100)
    assert again.score == pytest.approx(found.score, rel=1e-12)
    assert (
        select_parameters(Planted(), grid, X, candidates, max_rows=900).table
        == select_parameters(Planted(), grid, X, candidates).table
    )


def test_pipelines_sparse_features_and_label_sets():
    X, candidates, _ = planted(120)
    pipeline = make_pipeline(StandardScaler(with_mean=False), PMLMA())
    grid = {"pmlma__ridge_weight": [0.1, 1000.0]}
    dense = select_parameters(pipeline, grid, X, candidates)
    sparse = select_parameters(pipeline, grid, scipy.sparse.csr_array(X), scipy.sparse.csr_array(candidates))
    sets = [{f"label {j}" for j in np.flatnonzero(row)} for row in candidates]
    assert dense.parameters == sparse.parameters == select_parameters(pipeline, grid, X, sets).parameters


def test_data_frames_keep_their_names():
    pandas = pytest.importorskip("pandas")
    X, candidates, _ = planted(120)
    frame = pandas.DataFrame(X, columns=[f"feature {j}" for j in range(6)])
    assert (
        select_parameters(PMLMA(), {"ridge_weight": [0.1, 1.0]}, frame, candidates).table
        == select_parameters(PMLMA(), {"ridge_weight": [0.1, 1.0]}, X, candidates).table
    )


def test_a_label_that_only_one_row_has_stops_nothing(partial_problem):
    X, candidates, _ = partial_problem
    rare = np.zeros((len(X), 1), int)
    rare[7] = 1
    found = select_parameters(PMLMA(), {"ridge_weight": [0.1, 1.0]}, X, np.hstack([candidates, rare]))
    assert np.isfinite(found.score)


def test_scores_that_are_no_numbers_lose():
    X, candidates, _ = planted()
    assert select_parameters(Planted(), {"blur": ["nan", 9.0]}, X, candidates).parameters == {"blur": 9.0}
    with pytest.raises(ValueError, match="No point of the grid gives finite scores"):
        select_parameters(Planted(), {"blur": ["nan"]}, X, candidates)


def test_an_error_of_a_fit_names_the_point():
    X, candidates, _ = planted()
    with pytest.raises(RuntimeError, match="broken on purpose") as caught:
        select_parameters(Planted(), {"broken": [False, True]}, X, candidates)
    assert "{'broken': True}" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("grid", "error", "message"),
    [
        ([("ridge_weight", [1])], TypeError, "grid must be a dict"),
        (None, TypeError, "grid must be a dict"),
        ({}, ValueError, "grid is empty"),
        ({"ridge_wight": [1]}, ValueError, "no parameter 'ridge_wight'; did you mean 'ridge_weight'?"),
        ({"zzz": [1]}, ValueError, "PMLMA has no parameter 'zzz'; it has alignment_weight, basis"),
        ({"ridge_weight": []}, ValueError, "'ridge_weight' has no values"),
        ({"ridge_weight": 1.0}, TypeError, "the values of 'ridge_weight' must be a list, got 1.0"),
        ({"feature_map": "rbf"}, TypeError, "the values of 'feature_map' must be a list, got 'rbf'"),
    ],
)
def test_bad_grids_are_refused(partial_problem, grid, error, message):
    X, candidates, _ = partial_problem
    with pytest.raises(error) as caught:
        select_parameters(PMLMA(), grid, X, candidates)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"selector": "free"}, "selector must be one of 'label-free', 'oracle'"),
        ({"search": "random"}, "search must be one of 'grid', 'halving'"),
        ({"n_folds": 1}, "n_folds must be a whole number from 2 to half the 120 rows, got 1"),
        ({"n_folds": 2.5}, "n_folds must be a whole number"),
        ({"n_folds": 100}, "n_folds must be a whole number"),
        ({"max_rows": 5}, "max_rows must be None or a whole number from 6 on, two for each fold, got 5"),
        ({"max_rows": 50.0}, "max_rows must be None or a whole number"),
    ],
)
def test_bad_settings_are_refused(partial_problem, changes, message):
    X, candidates, _ = partial_problem
    with pytest.raises(ValueError, match="must be") as caught:
        select_parameters(PMLMA(), {"ridge_weight": [1.0]}, X, candidates, **changes)
    assert message in str(caught.value)


def test_bad_data_are_refused(partial_problem):
    X, candidates, _ = partial_problem
    with pytest.raises(ValueError, match="X has 100 rows, but candidates have 120"):
        select_parameters(PMLMA(), {"ridge_weight": [1.0]}, X[:100], candidates)
    with pytest.raises(ValueError, match="nothing to choose by"):
        select_parameters(PMLMA(), {"ridge_weight": [1.0]}, X, np.ones_like(candidates))
    with pytest.raises(ValueError, match=r"graph has shape \(3, 3\), but X has 120 rows"):
        select_parameters(PMLMA(graph=scipy.sparse.eye_array(3)), {"ridge_weight": [1.0]}, X, candidates)


def test_a_graph_is_cut_to_the_rows_of_a_fold(partial_problem):
    X, candidates, _ = partial_problem
    graph = neighbor_similarity(X, n_neighbors=4)
    model = PMLMA(graph=graph, alignment_weight=1.0, random_state=0)
    found = select_parameters(model, {"ridge_weight": [1.0]}, X, candidates)
    folds = InnerFolds(X, candidates, n_folds=3, random_state=0)
    for (train, held_out), value in zip(folds.splits, found.table[0]["fold_scores"], strict=True):
        single = clone(model).set_params(graph=graph[train][:, train]).fit(X[train], candidates[train])
        scores = single.decision_function(X[held_out])
        assert value == pytest.approx(candidate_precision(candidates[held_out], scores), abs=1e-4)


def test_a_method_may_share_work_between_points():
    """The hook is asked once for each fold; a class without it is fitted at each point."""
    X, candidates, _ = planted()
    asked = []

    class Sharing(Planted):
        def _scores_of_points(self, points, X, Y, X_held_out):
            asked.append((len(points), len(X), Y.shape, len(X_held_out)))
            for place in reversed(range(len(points))):
                yield place, clone(self).set_params(**points[place]).fit(X, Y).decision_function(X_held_out)

    grid = {"blur": [5.0, 0.0, 1.0]}
    shared, plain = (select_parameters(model, grid, X, candidates) for model in (Sharing(), Planted()))
    assert shared == plain
    assert asked == [(3, 200, (200, 6), 100)] * 3


def test_an_estimator_of_another_library_is_searched():
    X, candidates, _ = planted()
    model = OneVsRestClassifier(LogisticRegression())
    found = select_parameters(model, {"estimator__C": [1e-12, 1.0]}, X, candidates)
    assert found.parameters == {"estimator__C": 1.0}
