"""Several views: one matrix in disguise, a product of kernels, and weights that noise does not get."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from skpml import PMLMA, CandidateLikelihood
from skpml import views as weights_module
from skpml._validation import is_views
from skpml.datasets import load_dataset
from skpml.features import RangeScaler, RBFAnchors
from skpml.metrics import average_precision
from skpml.model_selection import select_parameters
from skpml.reference import CandidateRidge
from skpml.views import ViewScaler, _Judge, learn_view_weights, spreads

# One setting: nothing but the weights of the views is left to choose, and a fit takes no time.
LIKELIHOOD = CandidateLikelihood(
    family="logistic", gamma=0.1, at_least_one=False, kernel_width=1.0, noise_rate=0.2, random_state=0
)
MODELS = [PMLMA(random_state=0), LIKELIHOOD]
ROUNDING = 1e-6


def problem(seed=0, n=160, widths=(4, 7), c=5):
    """Rows whose labels need both of two views, candidates with noise, and the same rows in new draws."""
    rng = np.random.default_rng(seed)
    views = [rng.normal(size=(2 * n, width)) for width in widths]
    logits = sum(view @ rng.normal(size=(view.shape[1], c)) for view in views) * 1.5
    truth = (logits > 1).astype(np.uint8)
    truth[~truth.any(axis=1), 0] = 1
    candidates = np.maximum(truth, rng.random(truth.shape) < 0.2).astype(np.uint8)
    return [view[:n] for view in views], candidates[:n], [view[n:] for view in views], truth[n:]


def fresh(model, **parameters):
    return type(model)(**{**model.get_params(), **parameters})


def scores(model, train, candidates, new, **parameters):
    return fresh(model, **parameters).fit(train, candidates).decision_function(new)


@parametrize_with_checks([ViewScaler()])
def test_scikit_learn_checks_of_the_scaler(estimator, check):
    check(estimator)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("wrap", [lambda X: [X], lambda X: {"only": X}, lambda X: (X,)])
def test_one_view_is_the_plain_matrix(model, wrap):
    train, candidates, new, _ = problem()
    expected = scores(model, train[1], candidates, new[1])
    assert_array_equal(scores(model, wrap(train[1]), candidates, wrap(new[1])), expected)


def test_a_nested_list_of_numbers_is_one_matrix():
    train, candidates, new, _ = problem()
    assert not is_views(train[0].tolist())
    assert not is_views(list(train[0]))
    assert not is_views(scipy.sparse.dok_matrix(train[0]))
    expected = scores(MODELS[0], train[0], candidates, new[0])
    assert_array_equal(scores(MODELS[0], train[0].tolist(), candidates, new[0].tolist()), expected)


@pytest.mark.parametrize("model", MODELS)
def test_views_may_come_in_any_order(model):
    train, candidates, new, _ = problem()
    first = fresh(model).fit(train, candidates)
    second = fresh(model).fit(train[::-1], candidates)
    assert_allclose(
        second.decision_function(new[::-1]), first.decision_function(new), atol=ROUNDING, rtol=ROUNDING
    )
    assert_allclose(list(second.view_weights_.values())[::-1], list(first.view_weights_.values()), atol=1e-9)


@pytest.mark.parametrize("model", MODELS)
def test_a_view_of_weight_zero_is_not_there(model):
    train, candidates, new, _ = problem(widths=(4, 7, 5))
    expected = scores(model, train[:2], candidates, new[:2], view_weights=[0.3, 0.7])
    found = scores(model, train, candidates, new, view_weights=[0.3, 0.7, 0])
    assert_array_equal(found, expected)
    alone = scores(model, train[1], candidates, new[1])
    assert_array_equal(scores(model, train, candidates, new, view_weights=[0, 2, 0]), alone)
    changed = scores(model, train, candidates, new, view_weights=[0.3, 0.5, 0.2])
    assert np.abs(changed - expected).max() > 1e-3


class TestScaler:
    def test_the_kernel_is_the_product_of_powers_of_the_views_kernels(self):
        train, _, _, _ = problem(widths=(4, 7, 3))
        weights = np.array([0.2, 0.5, 0.3])
        X = np.hstack(train)
        columns = {"a": np.arange(4), "b": np.arange(4, 11), "c": np.arange(11, 14)}
        scaled = ViewScaler(columns=columns, weights=weights).fit(X).transform(X)
        kernel = RBFAnchors(anchors=scaled)
        found = kernel.fit_transform(scaled)[:, :-1] + kernel.mean_
        expected = np.ones((len(X), len(X)))
        for weight, view in zip(weights, train, strict=True):
            rows = RangeScaler().fit_transform(view)
            each = RBFAnchors(anchors=rows)
            expected *= (each.fit_transform(rows)[:, :-1] + each.mean_) ** weight
        assert_allclose(found, expected, rtol=1e-9)

    def test_a_weight_is_the_share_of_the_squared_distance(self):
        train, _, _, _ = problem()
        X, columns = np.hstack(train), {"a": np.arange(4), "b": np.arange(4, 11)}
        scaled = ViewScaler(columns=columns, weights={"b": 3.0, "a": 1.0}).fit(X).transform(X)
        share = scaled[:, :4].var(axis=0).sum() / scaled.var(axis=0).sum()
        assert_allclose(share, 0.25)
        # On the whole, rows are as far apart as they were, and zero stays where it was.
        plain = RangeScaler().fit_transform(X)
        assert_allclose(scaled.var(axis=0).sum(), plain.var(axis=0).sum())
        assert_allclose(scaled[:, :4] / scaled[0, 0], plain[:, :4] / plain[0, 0])

    def test_weights_proportional_to_the_spread_change_nothing(self):
        train, _, _, _ = problem()
        X, columns = np.hstack(train), {"a": np.arange(4), "b": np.arange(4, 11)}
        plain = RangeScaler().fit(X)
        spread = spreads([plain.transform(X)[:, part] for part in columns.values()])
        found = ViewScaler(columns=columns, weights=spread).fit(X)
        assert_allclose(found.scale_, plain.scale_, rtol=1e-12)
        assert_allclose(found.offset_, plain.offset_, rtol=1e-12, atol=1e-15)

    def test_without_candidates_weights_must_be_given(self):
        with pytest.raises(ValueError, match="pass y or weights"):
            ViewScaler(columns={"a": [0], "b": [1]}).fit(np.random.default_rng(0).normal(size=(9, 2)))


def slow_errors(views, weights, Y, gamma):
    """Squared error of each row in a ridge regression without it, one regression a row."""
    n = len(Y)
    exponent = np.zeros((n, n))
    for view, weight in zip(views, weights, strict=True):
        for i in range(n):
            for j in range(n):
                squared = ((view[i] - view[j]) ** 2).sum()
                exponent[i, j] += weight * squared / (2 * view.var(axis=0).sum())
    kernel = np.exp(-exponent / 2)
    kernel -= kernel.mean(axis=0)
    kernel /= np.sqrt((kernel**2).sum() / n)
    found = np.empty(n)
    for i in range(n):
        kept = np.arange(n) != i
        design = np.column_stack([np.ones(n - 1), kernel[kept]])
        penalty = gamma * np.eye(n + 1)
        penalty[0, 0] = 0
        coef = np.linalg.solve(design.T @ design + penalty, design.T @ Y[kept])
        found[i] = ((np.r_[1, kernel[i]] @ coef - Y[i]) ** 2).sum()
    return found


class TestLearning:
    def test_errors_are_those_of_a_regression_for_each_row_left_out(self):
        views, candidates, _, _ = problem(n=25)
        judge = _Judge(views, spreads(views), candidates.astype(float))
        weights = (0.3, 0.7)
        every = [
            slow_errors(views, weights, candidates.astype(float), gamma) for gamma in weights_module._GAMMAS
        ]
        best = min(every, key=np.mean)
        assert_allclose(np.sort(judge._errors(weights)), np.sort(best), rtol=1e-6)

    @pytest.mark.parametrize("width", [4, 40])
    def test_noise_gets_no_weight(self, width):
        views, candidates, _, _ = problem()
        noise = np.random.default_rng(1).normal(size=(len(candidates), width))
        weights = learn_view_weights([*views, noise], candidates)
        assert_allclose(weights.sum(), 1)
        assert weights[2] == 0
        assert (weights[:2] > 0.1).all()

    def test_many_views_of_noise_get_no_weight(self):
        views, candidates, _, _ = problem()
        rng = np.random.default_rng(2)
        noise = [rng.normal(size=(len(candidates), 5)) for _ in range(6)]
        weights = learn_view_weights([*noise, *views], candidates)
        assert weights[:6].sum() < 0.05

    def test_a_small_telling_view_is_not_drowned_by_a_large_one(self):
        views, candidates, _, _ = problem(widths=(3, 0))
        rng = np.random.default_rng(3)
        # Hardly telling: the same features under much noise.
        faint = np.hstack([views[0] + 3 * rng.normal(size=views[0].shape) for _ in range(10)])
        weights = learn_view_weights([views[0], faint], candidates)
        plain = spreads([views[0], faint])
        assert weights[0] > 0.5 > plain[0] / plain.sum()

    def test_views_that_tell_alike_stay_side_by_side(self):
        views, candidates, _, _ = problem(n=400, widths=(8, 8))
        weights = learn_view_weights(views, candidates)
        assert ((weights > 0.2) & (weights < 0.8)).all()

    def test_nothing_depends_on_the_order_of_rows_columns_or_views(self, monkeypatch):
        # Few enough that rows and anchors are left out.
        monkeypatch.setattr(weights_module, "_MAX_ROWS", 120)
        monkeypatch.setattr(weights_module, "_MAX_ANCHORS", 50)
        views, candidates, _, _ = problem(n=200, widths=(4, 7, 20))
        views[2] = np.random.default_rng(4).normal(size=views[2].shape)
        expected = learn_view_weights(views, candidates)
        rng = np.random.default_rng(5)
        rows = rng.permutation(len(candidates))
        moved = [view[rows][:, rng.permutation(view.shape[1])] for view in views]
        assert_allclose(learn_view_weights(moved, candidates[rows]), expected, atol=1e-9)
        assert_allclose(learn_view_weights(moved[::-1], candidates[rows])[::-1], expected, atol=1e-9)

    def test_a_view_and_its_copy_are_the_view(self):
        views, candidates, _, _ = problem()
        judge = _Judge([views[0]] * 2, spreads([views[0]] * 2), candidates.astype(float))
        splits = [(share, 1 - share) for share in (0.0, 0.1, 0.3, 0.5, 1.0)]
        for split in splits:
            assert judge.better(split, splits, 0.0) == split

    def test_a_view_in_which_rows_are_alike_has_no_weight(self):
        views, candidates, _, _ = problem()
        flat = np.ones((len(candidates), 3))
        assert learn_view_weights([views[0], flat], candidates).tolist() == [1, 0]
        assert learn_view_weights([flat, *views], candidates)[0] == 0
        assert learn_view_weights([flat, flat], candidates).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("model", MODELS)
def test_noise_beside_the_features_costs_nothing_and_is_named(model):
    train, candidates, new, truth = problem()
    rng = np.random.default_rng(6)
    noise, noise_new = (rng.normal(size=(len(part[0]), 60)) for part in (train, new))
    whole, whole_new = np.hstack(train), np.hstack(new)
    fitted = fresh(model).fit({"features": whole, "noise": noise}, candidates)
    assert fitted.view_weights_ == {"features": 1.0, "noise": 0.0}
    found = fitted.decision_function({"noise": noise_new, "features": whole_new})
    alone = scores(model, whole, candidates, whole_new)
    assert_array_equal(found, alone)
    blurred = scores(model, np.hstack([whole, noise]), candidates, np.hstack([whole_new, noise_new]))
    assert average_precision(truth, found) > average_precision(truth, blurred) + 0.01


@pytest.mark.parametrize("model", MODELS)
def test_two_halves_reach_what_the_whole_gives(model):
    train, candidates, new, truth = problem(n=400, widths=(8, 8))
    fitted = fresh(model).fit(train, candidates)
    whole = scores(model, np.hstack(train), candidates, np.hstack(new))
    assert abs(sum(fitted.view_weights_.values()) - 1) < 1e-12
    found = average_precision(truth, fitted.decision_function(new))
    assert found >= average_precision(truth, whole) - 0.005


@pytest.mark.slow
def test_halves_and_noise_on_real_data(data_folder):
    data = load_dataset("emotions-3", data_home=data_folder)
    train, test = next(iter(KFold(10, shuffle=True, random_state=0).split(data.X)))
    rng = np.random.default_rng(0)
    X, order = np.asarray(data.X), rng.permutation(data.X.shape[1])
    forms = {
        "whole": [X],
        "halves": [X[:, part] for part in np.array_split(order, 2)],
        "noise": [X, rng.normal(size=X.shape)],
    }
    found = {}
    for form, views in forms.items():
        model = PMLMA(random_state=0).fit([view[train] for view in views], data.candidates[train])
        found[form] = average_precision(
            data.truth[test], model.decision_function([view[test] for view in views])
        )
    assert found["halves"] >= found["whole"] - 0.005
    assert found["noise"] >= found["whole"] - 0.005


class TestForms:
    """One model, whichever way the views are given."""

    @pytest.mark.parametrize("model", MODELS)
    def test_groups_of_columns(self, model):
        pd = pytest.importorskip("pandas")
        train, candidates, new, _ = problem()
        X, X_new = np.hstack(train), np.hstack(new)
        # Learnt weights would be those of the columns side by side, whatever the groups are.
        model = fresh(model, view_weights=[4, 1])
        expected = fresh(model).fit(train, candidates)
        by_place = fresh(model, views={"left": range(4), "right": np.arange(4, 11)}).fit(X, candidates)
        assert_allclose(by_place.decision_function(X_new), expected.decision_function(new), atol=ROUNDING)
        assert list(by_place.view_weights_) == ["left", "right"]
        # Named columns may stand in any order.
        names = [f"f{place}" for place in range(11)]
        order = np.random.default_rng(0).permutation(11)
        frame, frame_new = (pd.DataFrame(part, columns=names).iloc[:, order] for part in (X, X_new))
        by_name = fresh(model, views={"left": names[:4], "right": names[4:]}).fit(frame, candidates)
        assert_allclose(by_name.decision_function(frame_new), expected.decision_function(new), atol=ROUNDING)
        assert list(by_name.feature_names_in_) == [names[place] for place in order]

    def test_sparse_and_dense_views(self):
        train, candidates, new, _ = problem()
        train, new = ([view * (np.abs(view) > 0.5) for view in part] for part in (train, new))
        expected = scores(MODELS[0], train, candidates, new)
        for forms in (
            (scipy.sparse.csr_matrix, scipy.sparse.csc_array),
            (scipy.sparse.coo_array, np.asarray),
        ):
            given = [form(view) for form, view in zip(forms, train, strict=True)]
            model = fresh(MODELS[0]).fit(given, candidates)
            assert_allclose(model.decision_function(new), expected, atol=ROUNDING)
            sparse_new = [form(view) for form, view in zip(forms, new, strict=True)]
            assert_allclose(model.decision_function(sparse_new), expected, atol=ROUNDING)

    def test_single_precision_stays_so_where_all_views_have_it(self):
        train, candidates, new, _ = problem()
        single = [view.astype(np.float32) for view in train]
        found = scores(MODELS[0], single, candidates, [view.astype(np.float32) for view in new])
        assert found.dtype == np.float32
        assert_allclose(found, scores(MODELS[0], train, candidates, new), atol=1e-3)
        assert scores(MODELS[0], [single[0], train[1]], candidates, new).dtype == np.float64

    @pytest.mark.parametrize("model", MODELS)
    def test_every_prediction_takes_the_same_views(self, model):
        train, candidates, new, truth = problem()
        named = fresh(model).fit({"b": train[0], "a": train[1]}, candidates)
        listed = fresh(model).fit(train, candidates)
        turned = {"a": new[1], "b": new[0]}
        for use in ("decision_function", "predict_proba", "predict"):
            assert_allclose(getattr(named, use)(turned), getattr(listed, use)(new), atol=ROUNDING)
        assert named.score(turned, truth) == listed.score(new, truth)
        by_default_name = {"view 1": new[1], "view 0": new[0]}
        assert_array_equal(listed.decision_function(by_default_name), listed.decision_function(new))

    def test_given_weights(self):
        train, candidates, new, _ = problem()
        by_place = fresh(MODELS[0], view_weights=(1, 3)).fit(train, candidates)
        assert by_place.view_weights_ == {"view 0": 0.25, "view 1": 0.75}
        by_name = fresh(MODELS[0], view_weights={"b": 0.75, "a": 0.25}).fit(
            {"a": train[0], "b": train[1]}, candidates
        )
        assert_array_equal(
            by_name.decision_function({"a": new[0], "b": new[1]}), by_place.decision_function(new)
        )

    @pytest.mark.parametrize("grid", [{"ridge_weight": [0.1, 10.0]}, {"n_neighbors": [3, 7]}])
    @pytest.mark.slow
    def test_selection_of_parameters(self, grid):
        train, candidates, _, _ = problem()
        several = select_parameters(MODELS[0], grid, train, candidates)
        groups = fresh(MODELS[0], views={"left": range(4), "right": range(4, 11)})
        one = select_parameters(groups, grid, np.hstack(train), candidates)
        named = select_parameters(MODELS[0], grid, dict(zip("ab", train, strict=True)), candidates)
        for other in (one, named):
            assert_allclose(
                [row["fold_scores"] for row in other.table], [row["fold_scores"] for row in several.table]
            )

    @pytest.mark.parametrize("model", MODELS)
    def test_model_files(self, model, tmp_path):
        pytest.importorskip("skops.io")
        from skpml.io import load_model, save_model

        train, candidates, new, _ = problem()
        for views, train_as, new_as in (
            (None, {"a": train[0], "b": train[1]}, {"b": new[1], "a": new[0]}),
            ({"left": [*range(4)], "right": [*range(4, 11)]}, np.hstack(train), np.hstack(new)),
        ):
            fitted = fresh(model, views=views).fit(train_as, candidates)
            save_model(fitted, tmp_path / "model.skpml", overwrite=True)
            loaded = load_model(tmp_path / "model.skpml")
            assert_array_equal(loaded.decision_function(new_as), fitted.decision_function(new_as))
            assert loaded.view_weights_ == fitted.view_weights_

    def test_a_later_fit_to_one_matrix_forgets_the_views(self):
        train, candidates, new, _ = problem()
        model = fresh(MODELS[0]).fit(train, candidates).fit(train[0], candidates)
        assert_array_equal(model.decision_function(new[0]), scores(MODELS[0], train[0], candidates, new[0]))
        assert model.view_weights_ == {"view 0": 1.0}
        with pytest.raises(ValueError, match="fitted on one matrix, but X is a list of 2 views"):
            model.predict(new)


TRAIN, CANDIDATES, NEW, _ = problem()
A, B = TRAIN


class TestErrors:
    @pytest.mark.parametrize(
        ("X", "error", "message"),
        [
            ([A, B[:-1]], ValueError, "'view 0' has 160 and 'view 1' 159"),
            ([A[:-1], B[:-1]], ValueError, "X has 159 rows, y has 160"),
            ({}, ValueError, "empty dict"),
            ({1: A}, TypeError, "strings, got 1"),
            ([A, B[:, 0]], ValueError, "'view 1' of X should be a matrix"),
            ([A, None], ValueError, "'view 1' of X should be a matrix"),
            ({"a": A, "b": np.where(B[3, 2] == B, np.nan, B)}, ValueError, "'b' of X contains NaN in row 3, column 2"),
            ([A, B[:, :0]], ValueError, "'view 1' of X: Found array with 0 feature"),
            ([np.ones_like(A), np.ones_like(B)], ValueError, "Every feature of X is constant"),
        ],
    )  # fmt: skip
    def test_views(self, X, error, message):
        for model in MODELS:
            with pytest.raises(error, match=message):
                fresh(model).fit(X, CANDIDATES)

    @pytest.mark.parametrize(
        ("views", "error", "message"),
        [
            ([[0, 1]], ValueError, "views must be None or a dict"),
            ({}, ValueError, "views must be None or a dict"),
            ({1: [0, 1, 2, 3]}, TypeError, "strings, got 1"),
            ({"a": "0123"}, ValueError, "'a' must be a list of columns"),
            ({"a": []}, ValueError, "'a' must be a list of columns"),
            ({"a": [0, 1, 2]}, ValueError, "column 3 of X is in no view"),
            ({"a": [0, 1, 2, 3], "b": [3]}, ValueError, "column 3 is in 'a' and in 'b'"),
            ({"a": [0, 1, 2, 4]}, ValueError, "'a' has column 4, but X has columns 0 to 3"),
            ({"a": ["width"]}, ValueError, "'width', but X has no column names"),
            ({"a": [True]}, TypeError, "must be positions or names, got True"),
        ],
    )
    def test_groups(self, views, error, message):
        with pytest.raises(error, match=message):
            PMLMA(views=views).fit(A, CANDIDATES)

    def test_groups_of_an_unknown_name_and_of_several_matrices(self):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(A, columns=list("abcd"))
        with pytest.raises(ValueError, match="'e', but X has no column of that name"):
            PMLMA(views={"x": list("abce")}).fit(frame, CANDIDATES)
        with pytest.raises(ValueError, match=r"column 3 \('d'\) of X is in no view"):
            PMLMA(views={"x": list("abc")}).fit(frame, CANDIDATES)
        with pytest.raises(ValueError, match="leave views at None"):
            PMLMA(views={"x": [0]}).fit(TRAIN, CANDIDATES)

    @pytest.mark.parametrize(
        ("weights", "message"),
        [
            ("equal", '"auto", a dict or a list of numbers'),
            (1.0, '"auto", a dict or a list of numbers'),
            ([1.0], "1 numbers, but there are 2 views"),
            ([1, -1], "got -1 for 'view 1'"),
            ([1, np.nan], "got nan for 'view 1'"),
            ([1, "2"], "got '2' for 'view 1'"),
            ([0, 0], "all 0"),
            ({"view 0": 1}, "lacks 'view 1'; the views are 'view 0', 'view 1'"),
            ({"view 0": 1, "view 1": 1, "sound": 1}, "has 'sound'"),
        ],
    )
    def test_weights(self, weights, message):
        for model in MODELS:
            with pytest.raises(ValueError, match=message):
                fresh(model, view_weights=weights).fit(TRAIN, CANDIDATES)

    def test_all_weight_on_a_view_that_says_nothing(self):
        with pytest.raises(ValueError, match="All rows are equal"):
            PMLMA(view_weights=[0, 1]).fit([A, np.ones_like(B)], CANDIDATES)

    @pytest.mark.parametrize(
        ("X", "message"),
        [
            (np.hstack(NEW), "fitted on 2 views, but X is one matrix"),
            (NEW[:1], "X lacks 'view 1'"),
            ([*NEW, NEW[0]], "X has 'view 2', but the model was fitted on 'view 0', 'view 1'"),
            ({"view 0": NEW[0]}, "X lacks 'view 1'"),
            (NEW[::-1], "'view 0' of X has 7 features, but the model was fitted on 4"),
        ],
    )
    def test_prediction(self, X, message):
        model = PMLMA().fit(TRAIN, CANDIDATES)
        for use in (model.decision_function, model.predict_proba, model.predict):
            with pytest.raises(ValueError, match=message):
                use(X)

    def test_a_list_for_views_with_names(self):
        model = PMLMA().fit({"a": A, "b": B}, CANDIDATES)
        with pytest.raises(ValueError, match="give a dict with 'a', 'b'"):
            model.predict(NEW)

    def test_columns_of_a_data_frame_in_another_order(self):
        pd = pytest.importorskip("pandas")
        train, new = (pd.DataFrame(part[0], columns=list("abcd")) for part in (TRAIN, NEW))
        model = PMLMA().fit([train, B], CANDIDATES)
        model.predict([new, NEW[1]])
        with pytest.raises(
            ValueError, match="Column 1 of 'view 0' of X is 'c', but the model was fitted on 'b'"
        ):
            model.predict([new[list("acbd")], NEW[1]])

    def test_methods_that_take_one_matrix_say_so(self):
        with pytest.raises(
            ValueError, match="CandidateRidge takes one matrix of features, but X is a list of 2"
        ):
            CandidateRidge().fit(TRAIN, CANDIDATES)
