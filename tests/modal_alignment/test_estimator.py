import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from skpml import PMLMA
from skpml.features import RBFAnchors
from skpml.graph import neighbor_similarity
from skpml.metrics import average_precision, denoising_scores
from skpml.modal_alignment._solver import HISTORY


def test_a_user_who_sets_nothing_gets_a_good_result(partial_problem):
    X, candidates, truth = partial_problem
    model = PMLMA().fit(X[:90], candidates[:90])
    chance = average_precision(truth[90:], np.random.default_rng(0).random((30, 6)))
    assert average_precision(truth[90:], model.decision_function(X[90:])) > chance + 0.2
    assert denoising_scores(candidates[:90], truth[:90], model.confidences_)["auc"] > 0.6
    assert model.converged_


def test_attributes(partial_problem):
    X, candidates, _ = partial_problem
    model = PMLMA().fit(X, candidates)
    assert model.confidences_.shape == (120, 6)
    assert ((model.confidences_ >= 0) & (model.confidences_ <= candidates)).all()
    assert model.coef_.shape == model.prototypes_.shape == (121, 6)
    assert_allclose(model.feature_projection_ @ model.label_projection_.T, model.coef_)
    assert_array_equal(model.basis_, np.eye(6))
    assert model.history_.keys() == set(HISTORY)
    assert {len(values) for values in model.history_.values()} == {model.n_iter_}
    assert model.n_features_in_ == 10
    assert_array_equal(model.classes_, range(6))
    assert 0 < model.threshold_ < 1


def test_scores_are_the_mapped_features_times_the_coefficients(partial_problem):
    X, candidates, _ = partial_problem
    model = PMLMA().fit(X, candidates)
    mapped = model.feature_map_.transform(model.scaler_.transform(X))
    assert_allclose(model.decision_function(X), mapped @ model.coef_, atol=1e-12)


def test_probabilities_rise_with_scores_and_agree_with_decisions(partial_problem):
    X, candidates, _ = partial_problem
    for threshold in ("auto", 0.5, 0.3):
        model = PMLMA(threshold=threshold).fit(X, candidates)
        scores, probabilities = model.decision_function(X), model.predict_proba(X)
        assert ((probabilities >= 0) & (probabilities <= 1)).all()
        for label in range(6):
            order = np.argsort(scores[:, label])
            assert (np.diff(probabilities[order, label]) > 0).all()
        assert_array_equal(probabilities > 0.5, model.predict(X))
        assert_array_equal(scores > model.threshold_, model.predict(X))


@pytest.mark.parametrize("form", ["frame", "sparse", "sets", "list", "bool"])
def test_every_form_of_candidates_gives_the_same_model(partial_problem, form):
    X, candidates, _ = partial_problem
    names = np.array(["a", "b", "c", "d", "e", "f"])
    y = {
        "frame": pd.DataFrame(candidates, columns=names),
        "sparse": scipy.sparse.csc_matrix(candidates),
        "sets": [set(names[row.astype(bool)]) for row in candidates],
        "list": candidates.tolist(),
        "bool": candidates.astype(bool),
    }[form]
    model = PMLMA().fit(X, y)
    assert_array_equal(model.confidences_, PMLMA().fit(X, candidates).confidences_)
    assert_array_equal(model.classes_, names if form in ("frame", "sets") else range(6))
    assert model.score(X, y) == PMLMA().fit(X, candidates).score(X, candidates)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", [scipy.sparse.coo_array, scipy.sparse.coo_matrix])
def test_sparse_features_equal_dense_ones(partial_problem, layout, kind):
    X, candidates, _ = partial_problem
    X = np.where(X > 2, X, 0)
    dense = PMLMA().fit(X, candidates)
    sparse = PMLMA().fit(kind(X).asformat(layout), candidates)
    assert_allclose(sparse.confidences_, dense.confidences_, atol=1e-10)
    assert_allclose(
        sparse.decision_function(kind(X).asformat(layout)), dense.decision_function(X), atol=1e-10
    )


def test_single_precision_stays(partial_problem):
    X, candidates, _ = partial_problem
    model = PMLMA().fit(X.astype(np.float32), candidates)
    double = PMLMA().fit(X, candidates)
    for array in (model.confidences_, model.coef_, model.prototypes_, model.basis_):
        assert array.dtype == np.float32
    assert model.decision_function(X.astype(np.float32)).dtype == np.float32
    assert model.predict_proba(X.astype(np.float32)).dtype == np.float32
    assert_allclose(model.decision_function(X.astype(np.float32)), double.decision_function(X), atol=1e-3)


def test_single_precision_on_many_anchors():
    """Gram matrices of a thousand anchors are singular in single precision; the ridge must still decide."""
    from skpml.datasets import load_digits_attributes

    digits = load_digits_attributes()
    X, candidates = digits.X[:1000], digits.candidates[:1000]
    double, single = (
        PMLMA(n_anchors=1000, ridge_weight=0.1).fit(X.astype(dtype), candidates)
        for dtype in (np.float64, np.float32)
    )
    assert_allclose(single.confidences_, double.confidences_, atol=5e-3)
    assert_allclose(
        single.decision_function(X.astype(np.float32)), double.decision_function(X.astype(float)), atol=5e-3
    )


def test_data_frames_keep_feature_names(partial_problem):
    X, candidates, _ = partial_problem
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(10)])
    model = PMLMA().fit(frame, candidates)
    assert_array_equal(model.feature_names_in_, frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])


def permuted(rng, *sizes):
    return [rng.permutation(size) for size in sizes]


@pytest.mark.parametrize(
    "options", [{}, {"basis": "orthogonal"}, {"feature_map": "linear", "subspace_dim": 3}]
)
def test_permutations_permute_the_output(partial_problem, options):
    X, candidates, _ = partial_problem
    rows, features, labels = permuted(np.random.default_rng(0), 120, 10, 6)
    one = PMLMA(**options).fit(X, candidates)
    two = PMLMA(**options).fit(X[np.ix_(rows, features)], candidates[np.ix_(rows, labels)])
    assert_allclose(two.confidences_, one.confidences_[np.ix_(rows, labels)], atol=1e-8)
    assert_allclose(two.decision_function(X[:, features]), one.decision_function(X)[:, labels], atol=1e-8)
    assert two.threshold_ == pytest.approx(one.threshold_, abs=1e-8)
    assert two.n_iter_ == one.n_iter_


def test_permuting_rows_with_tied_neighbours():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(120, 8)).astype(float)
    candidates = (rng.random((120, 4)) < 0.5).astype(int)
    candidates[:, 0] = 1
    order = rng.permutation(120)
    one, two = (
        PMLMA(alignment_weight=1.0).fit(X, candidates),
        PMLMA(alignment_weight=1.0).fit(X[order], candidates[order]),
    )
    assert_allclose(two.confidences_, one.confidences_[order], atol=1e-8)


def test_permutations_with_the_same_anchors(partial_problem):
    X, candidates, _ = partial_problem
    rows, features, labels = permuted(np.random.default_rng(1), 120, 10, 6)
    scaled = PMLMA().fit(X, candidates).scaler_.transform(X)
    one = PMLMA(feature_map=RBFAnchors(anchors=scaled[:30])).fit(X, candidates)
    two = PMLMA(feature_map=RBFAnchors(anchors=scaled[:30, features])).fit(
        X[np.ix_(rows, features)], candidates[np.ix_(rows, labels)]
    )
    assert_allclose(two.confidences_, one.confidences_[np.ix_(rows, labels)], atol=1e-8)
    assert_allclose(two.decision_function(X[:, features]), one.decision_function(X)[:, labels], atol=1e-8)


def test_same_seed_same_bits(partial_problem):
    X, candidates, _ = partial_problem
    one, two = (PMLMA(n_anchors=40, random_state=7).fit(X, candidates) for _ in range(2))
    other = PMLMA(n_anchors=40, random_state=8).fit(X, candidates)
    assert one.confidences_.tobytes() == two.confidences_.tobytes()
    assert one.coef_.tobytes() == two.coef_.tobytes()
    assert one.coef_.tobytes() != other.coef_.tobytes()


def test_inputs_are_left_alone_byte_for_byte(partial_problem):
    X, candidates, _ = partial_problem
    before = X.tobytes(), candidates.tobytes()
    PMLMA().fit(X, candidates).predict(X)
    assert (X.tobytes(), candidates.tobytes()) == before


def test_clean_candidates_are_not_hurt(partial_problem):
    """Noise-free labels: no worse than ridge on the same features by more than rounding of the ranking."""
    from skpml.reference import CandidateRidge

    X, _, truth = partial_problem
    ours = average_precision(truth[80:], PMLMA().fit(X[:80], truth[:80]).decision_function(X[80:]))
    ridge = average_precision(truth[80:], CandidateRidge().fit(X[:80], truth[:80]).decision_function(X[80:]))
    assert ours > ridge - 0.02


def test_precomputed_graph(partial_problem):
    X, candidates, _ = partial_problem
    default = PMLMA(alignment_weight=0.1).fit(X, candidates)
    graph = neighbor_similarity(default.scaler_.transform(X))
    assert_array_equal(PMLMA(alignment_weight=0.1, graph=graph).fit(X, candidates).coef_, default.coef_)
    coo = scipy.sparse.coo_matrix(graph)
    assert_allclose(
        PMLMA(alignment_weight=0.1, graph=coo).fit(X, candidates).coef_, default.coef_, atol=1e-10
    )
    none = PMLMA(alignment_weight=0.0).fit(X, candidates)
    assert_allclose(
        PMLMA(alignment_weight=0.1, graph=0 * graph).fit(X, candidates).coef_, none.coef_, atol=1e-12
    )


@pytest.mark.parametrize(
    "feature_map", ["linear", Nystroem(n_components=20, random_state=0), StandardScaler()]
)
def test_feature_maps(partial_problem, feature_map):
    X, candidates, _ = partial_problem
    model = PMLMA(feature_map=feature_map).fit(X, candidates)
    assert np.isfinite(model.decision_function(X)).all()


def test_feature_map_with_sparse_output():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(60, 4)).astype(float)
    candidates = np.eye(3)[rng.integers(0, 3, 60)]
    model = PMLMA(feature_map=OneHotEncoder(handle_unknown="ignore")).fit(X, candidates)
    assert model.coef_.shape[1] == 3


def test_works_inside_scikit_learn(partial_problem):
    X, candidates, _ = partial_problem
    search = GridSearchCV(PMLMA(on_empty="ignore"), {"ridge_weight": [0.1, 1.0]}, cv=3).fit(X, candidates)
    assert search.best_params_["ridge_weight"] in (0.1, 1.0)
    scores = cross_val_predict(PMLMA(), X, candidates, cv=3, method="decision_function")
    assert scores.shape == (120, 6)
    piped = make_pipeline(StandardScaler(), PMLMA()).fit(X, candidates)
    assert piped.predict(X).shape == (120, 6)
    assert clone(PMLMA(low_rank_weight=3)).low_rank_weight == 3


def test_ablation_reaches_the_solver(partial_problem):
    X, candidates, _ = partial_problem
    model = PMLMA(without=["prototypes"]).fit(X, candidates)
    assert_array_equal(model.history_["prototypes"], 0)


def test_says_when_no_candidate_is_believed(partial_problem):
    X, candidates, _ = partial_problem
    with pytest.warns(UserWarning, match="low_rank_weight=1000 is too large for 120 rows"):
        PMLMA(low_rank_weight=1000).fit(X, candidates)


def test_keeps_no_scores_of_the_training_rows(partial_problem):
    X, candidates, _ = partial_problem
    for threshold in ("auto", 0.5):
        arrays = {
            name
            for name, value in vars(PMLMA(threshold=threshold).fit(X, candidates)).items()
            if getattr(value, "shape", ())[:1] == (120,)
        }
        assert arrays == {"confidences_"}


def test_callback_and_convergence_warning(partial_problem):
    X, candidates, _ = partial_problem
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PMLMA(callback=lambda iteration, losses: seen.append(iteration) or iteration == 2, tol=0).fit(
            X, candidates
        )
    assert seen == [1, 2]
    with pytest.warns(ConvergenceWarning, match="did not converge within max_iter=2"):
        PMLMA(max_iter=2, tol=0).fit(X, candidates)


def test_one_label_one_row_of_all_candidates_and_duplicated_rows(partial_problem):
    X, candidates, _ = partial_problem
    candidates[0] = 1
    assert PMLMA().fit(X, candidates[:, :1]).predict(X).shape == (120, 1)
    doubled = PMLMA().fit(np.vstack([X, X]), np.vstack([candidates, candidates]))
    assert np.isfinite(doubled.confidences_).all()
    assert_allclose(doubled.confidences_[:120], doubled.confidences_[120:], atol=1e-6)


def test_every_row_the_same_number_of_times():
    """Duplicates everywhere: σ of the graph is zero, and still nothing is NaN."""
    X = np.repeat(np.random.default_rng(0).normal(size=(5, 3)), 8, axis=0)
    candidates = np.repeat(np.eye(5)[:, :4], 8, axis=0)
    candidates[-8:, 0] = 1
    model = PMLMA(alignment_weight=1.0).fit(X, candidates)
    assert np.isfinite(model.coef_).all()


def test_a_constant_feature_changes_nothing(partial_problem):
    X, candidates, _ = partial_problem
    more = np.hstack([X, np.full((120, 1), 7.0)])
    one, two = PMLMA().fit(X, candidates), PMLMA().fit(more, candidates)
    assert_allclose(two.confidences_, one.confidences_, atol=1e-10)
    more[:, -1] = -3.0
    assert_allclose(two.decision_function(more), one.decision_function(X), atol=1e-10)


class TestBadInput:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"low_rank_weight": -1}, "low_rank_weight must be a finite number of at least 0, got -1"),
            ({"alignment_weight": np.nan}, "alignment_weight must be"),
            ({"prototype_weight": "0.1"}, "prototype_weight must be"),
            ({"ridge_weight": -0.5}, "ridge_weight must be"),
            ({"tol": -1}, "tol must be"),
            ({"n_neighbors": 0}, "n_neighbors must be a whole number"),
            ({"n_neighbors": 120}, "n_neighbors=120 needs at least 121 rows"),
            ({"max_iter": 0}, "max_iter must be"),
            ({"subspace_dim": 7}, "subspace_dim must lie between 1 and"),
            ({"n_anchors": 0}, "n_anchors must be"),
            ({"prototypes": "median"}, "prototypes must be one of"),
            ({"basis": "random"}, "basis must be one of"),
            ({"feature_map": "poly"}, "feature_map must be"),
            ({"threshold": "half"}, "threshold must be"),
            ({"threshold": np.inf}, "threshold must be"),
            ({"threshold": True}, "threshold must be"),
            ({"without": ["graph"]}, "unknown parts"),
            ({"without": "alignment"}, r"without must be a list such as \['prototypes'\], got 'alignment'"),
            ({"without": None}, "without must be a list"),
            ({"feature_map": FunctionTransformer(np.log)}, "maps X to NaN or infinity"),
            ({"graph": scipy.sparse.eye_array(3)}, "graph has shape"),
            ({"on_empty": "drop"}, "on_empty must be"),
        ],
    )
    def test_parameters(self, partial_problem, change, message):
        X, candidates, _ = partial_problem
        with pytest.raises(ValueError, match=message):
            PMLMA(**change).fit(X, candidates)

    @pytest.mark.parametrize("value", [np.nan, np.inf])
    def test_not_finite_features(self, partial_problem, value):
        X, candidates, _ = partial_problem
        X[17, 3] = value
        with pytest.raises(ValueError, match=r"row 17, column 3"):
            PMLMA().fit(X, candidates)
        with pytest.raises(ValueError, match=r"row 17, column 3"):
            PMLMA().fit(scipy.sparse.csr_array(X), candidates)
        X[17, 3] = 0
        model = PMLMA().fit(X, candidates)
        X[17, 3] = value
        with pytest.raises(ValueError, match=r"row 17, column 3"):
            model.predict(X)

    def test_not_finite_feature_at_the_start_of_a_sparse_row(self, partial_problem):
        X, candidates, _ = partial_problem
        X[17, 0] = np.nan
        with pytest.raises(ValueError, match=r"row 17, column 0"):
            PMLMA().fit(scipy.sparse.csr_array(X), candidates)

    def test_large_but_finite_features_are_accepted(self, partial_problem):
        """The sum of the features overflows, no feature does."""
        X, candidates, _ = partial_problem
        X[:, 0] = np.linspace(1e308, 1.7e308, 120)
        assert np.isfinite(PMLMA().fit(X, candidates).coef_).all()

    def test_not_finite_features_name_the_column(self, partial_problem):
        X, candidates, _ = partial_problem
        X[5, 1] = np.nan
        with pytest.raises(ValueError, match=r"row 5, column 1 \('f1'\)"):
            PMLMA().fit(pd.DataFrame(X, columns=[f"f{i}" for i in range(10)]), candidates)

    def test_rows_without_candidates(self, partial_problem):
        X, candidates, _ = partial_problem
        candidates[[4, 9]] = 0
        with pytest.warns(UserWarning, match=r"2 of 120 rows have no candidate label \(first: row 4\)"):
            model = PMLMA().fit(X, candidates)
        assert_array_equal(model.confidences_[[4, 9]], 0)
        with pytest.raises(ValueError, match=r"first: row 4"):
            PMLMA(on_empty="raise").fit(X, candidates)

    def test_a_label_nobody_has(self, partial_problem):
        X, candidates, _ = partial_problem
        candidates[:, 2] = 0
        with pytest.raises(ValueError, match=r"1 of 6 labels are not a candidate of any row \(2\)"):
            PMLMA(on_empty="raise").fit(X, candidates)
        with pytest.warns(UserWarning, match="not a candidate of any row"):
            model = PMLMA(basis="orthogonal", prototype_weight=0.1).fit(X, candidates)
        assert_array_equal(model.confidences_[:, 2], 0)
        assert_allclose(model.decision_function(X)[:, 2], 0, atol=1e-9)

    def test_too_few_rows(self, partial_problem):
        X, candidates, _ = partial_problem
        with pytest.raises(ValueError, match="1 sample"):
            PMLMA().fit(X[:1], candidates[:1])
        with pytest.raises(ValueError, match=r"n_neighbors=5 needs at least 6 rows, but X has n_samples = 4"):
            PMLMA(on_empty="ignore").fit(X[:4], candidates[:4])
        without_graph = PMLMA(alignment_weight=0, on_empty="ignore").fit(X[:4], candidates[:4])
        assert np.isfinite(without_graph.coef_).all()

    def test_all_features_constant(self):
        with pytest.raises(ValueError, match="Every feature of X is constant"):
            PMLMA().fit(np.ones((20, 3)), np.eye(2)[np.arange(20) % 2])

    def test_lengths_that_differ(self, partial_problem):
        X, candidates, _ = partial_problem
        with pytest.raises(ValueError, match=r"X has 120 rows, y has 119"):
            PMLMA().fit(X, candidates[:-1])

    def test_wrong_number_of_features(self, partial_problem):
        X, candidates, _ = partial_problem
        model = PMLMA().fit(X, candidates)
        with pytest.raises(ValueError, match=r"X has 9 features, but PMLMA is expecting 10 features"):
            model.predict(X[:, :9])

    def test_not_fitted(self, partial_problem):
        with pytest.raises(NotFittedError):
            PMLMA().predict(partial_problem[0])

    def test_score_with_other_labels(self, partial_problem):
        X, candidates, _ = partial_problem
        model = PMLMA().fit(X, pd.DataFrame(candidates, columns=list("abcdef")))
        with pytest.raises(ValueError, match=r"labels the model was not fitted on: \['z'\]"):
            model.score(X[:1], [{"z"}])
        with pytest.raises(ValueError, match="y has 5 labels, but the model was fitted on 6"):
            model.score(X, candidates[:, :5])
        shuffled = pd.DataFrame(candidates, columns=list("abcdef"))[list("fbdeca")]
        assert model.score(X, shuffled) == model.score(X, candidates)

    def test_score_matches_names_that_are_numbers(self, partial_problem):
        X, candidates, _ = partial_problem
        model = PMLMA().fit(X, pd.DataFrame(candidates, columns=[5, 4, 3, 2, 1, 0]))
        predicted = pd.DataFrame(model.predict(X), columns=[5, 4, 3, 2, 1, 0])
        assert model.score(X, predicted) == 1
        assert model.score(X, predicted[[0, 1, 2, 3, 4, 5]]) == 1
        sets = [set(np.flatnonzero(row)) for row in candidates]
        by_sets = PMLMA().fit(X, sets)
        assert by_sets.score(X[:1], [{0}]) in (0, 1)
        with pytest.raises(ValueError, match=r"not fitted on: \[6\]"):
            by_sets.score(X[:1], [{6}])


@pytest.mark.parametrize("prototype_weight", [0.0, 0.5])
def test_prototypes_are_those_of_the_confidences(partial_problem, prototype_weight):
    X, candidates, _ = partial_problem
    model = PMLMA(prototype_weight=prototype_weight, tol=1.0).fit(X, candidates)
    mapped = model.feature_map_.transform(model.scaler_.transform(X))
    means = mapped.T @ model.confidences_ / model.confidences_.sum(axis=0)
    assert_allclose(model.prototypes_, means, atol=1e-12)


def test_the_classifier_is_that_of_the_confidences_before_the_last_step(partial_problem):
    """As in the paper, whose iterations end with a step in the pseudo-labels."""
    X, candidates, _ = partial_problem
    one, two = (PMLMA(alignment_weight=0, max_iter=count, tol=0) for count in (3, 4))
    with pytest.warns(ConvergenceWarning):
        one.fit(X, candidates)
    with pytest.warns(ConvergenceWarning):
        two.fit(X, candidates)
    mapped = two.feature_map_.transform(two.scaler_.transform(X))
    gram = mapped.T @ mapped + np.eye(mapped.shape[1])
    assert_allclose(two.coef_, np.linalg.solve(gram, mapped.T @ one.confidences_), atol=1e-8)
