import warnings

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skpml import PMLMA
from skpml.metrics import average_precision
from skpml.reference import LIFT, MLKNN, CandidateChain, CandidateRidge, Oracle

OURS = [CandidateRidge(gamma=0.5), MLKNN(), LIFT(random_state=0), CandidateChain(), PMLMA(), Oracle(MLKNN())]
THEIRS = [
    KNeighborsClassifier(4),
    RandomForestClassifier(20, random_state=0),
    DecisionTreeClassifier(max_depth=3, random_state=0),
    MLPClassifier((5,), max_iter=30, random_state=0),
    OneVsRestClassifier(LogisticRegression()),
    OneVsRestClassifier(LinearSVC(dual=False)),
    RidgeClassifier(),
    MultiOutputClassifier(LogisticRegression()),
    MultiOutputClassifier(LinearSVC(dual=False)),
    ClassifierChain(LogisticRegression()),
    make_pipeline(StandardScaler(), CandidateRidge()),
    make_pipeline(StandardScaler(), KNeighborsClassifier()),
    GridSearchCV(DecisionTreeClassifier(random_state=0), {"max_depth": [2, 4]}, cv=3),
]


@pytest.mark.parametrize("estimator", OURS, ids=repr)
def test_is_the_method_fitted_to_the_truth(partial_problem, estimator):
    X, candidates, truth = partial_problem
    oracle = Oracle(estimator).fit(X[:90], candidates[:90], truth=truth[:90])
    told = clone(estimator).fit(X[:90], truth[:90])
    for method in ("decision_function", "predict", "predict_proba"):
        assert_array_equal(getattr(oracle, method)(X[90:]), getattr(told, method)(X[90:]))
    assert oracle.threshold_ == told.threshold_
    # So that the usual rule holds for it as for every method.
    assert_array_equal(oracle.predict(X), oracle.decision_function(X) > oracle.threshold_)


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
@pytest.mark.parametrize("estimator", THEIRS, ids=repr)
def test_takes_every_kind_of_multi_label_classifier(partial_problem, estimator):
    X, candidates, truth = partial_problem
    oracle = Oracle(estimator).fit(X[:90], candidates[:90], truth=truth[:90])
    told = clone(estimator).fit(X[:90], truth[:90])
    scores, decisions = oracle.decision_function(X[90:]), oracle.predict(X[90:])
    assert_array_equal(decisions, told.predict(X[90:]))
    assert scores.shape == decisions.shape == (30, 6)
    assert_array_equal(decisions, scores > oracle.threshold_)
    probabilities = oracle.predict_proba(X[90:])
    assert_array_equal(decisions, probabilities > 0.5)
    if hasattr(told, "predict_proba"):
        theirs = told.predict_proba(X[90:])
        if isinstance(theirs, list):
            theirs = np.column_stack([label[:, 1] for label in theirs])
        assert_array_equal(probabilities, theirs)
        assert_array_equal(scores, theirs)
    elif hasattr(told, "decision_function"):
        assert_array_equal(scores, told.decision_function(X[90:]))
    else:
        assert_array_equal(scores, decisions)


def test_without_truth_it_believes_y(partial_problem):
    X, _, truth = partial_problem
    assert_array_equal(
        Oracle().fit(X, truth).decision_function(X), CandidateRidge().fit(X, truth).decision_function(X)
    )


def test_is_the_ceiling(partial_problem):
    X, candidates, truth = partial_problem
    for estimator in (CandidateRidge(), MLKNN(), LIFT(random_state=0), CandidateChain()):
        floor = clone(estimator).fit(X[:90], candidates[:90]).decision_function(X[90:])
        ceiling = Oracle(estimator).fit(X[:90], candidates[:90], truth=truth[:90]).decision_function(X[90:])
        assert average_precision(truth[90:], ceiling) > average_precision(truth[90:], floor)


def test_the_estimator_given_stays_as_it_was(partial_problem):
    X, candidates, truth = partial_problem
    given = CandidateRidge(gamma=2.0)
    oracle = Oracle(given).fit(X, candidates, truth=truth)
    assert not hasattr(given, "coef_")
    assert given.on_empty == "warn"
    assert oracle.get_params()["estimator__gamma"] == 2.0
    assert oracle.estimator_.gamma == 2.0


class TestTruth:
    def test_outside_the_candidates(self, partial_problem):
        X, candidates, truth = partial_problem
        wrong = truth.copy()
        label = int(np.flatnonzero(candidates[7] == 0)[0])
        wrong[7, label] = 1
        with pytest.raises(ValueError, match=f"truth says that row 7 has label {label}, but y does not"):
            Oracle().fit(X, candidates, truth=wrong)

    def test_label_sets_may_lack_labels_and_come_with_names(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(6, 2))
        y = [{"cat", "dog"}, {"dog", "owl"}, {"cat"}, {"owl", "cat"}, {"dog"}, {"owl"}]
        truth = [{"dog"}, {"owl"}, {"cat"}, {"owl"}, {"dog"}, set()]
        oracle = Oracle(on_empty="ignore").fit(X, y, truth=truth)
        assert oracle.classes_.tolist() == ["cat", "dog", "owl"]
        plain = CandidateRidge(on_empty="ignore").fit(X, truth)
        assert_array_equal(oracle.decision_function(X), plain.decision_function(X))

        never_true = [row - {"owl"} for row in truth]
        with pytest.raises(ValueError, match=r"1 of 2 labels are not a candidate of any row \(owl\)"):
            Oracle(on_empty="raise").fit(X[2:4], y[2:4], truth=[{"cat"}, {"cat"}])
        oracle.set_params(on_empty="ignore").fit(X, y, truth=never_true)
        assert oracle.classes_.tolist() == ["cat", "dog", "owl"]
        assert_allclose(oracle.decision_function(X)[:, 2], 0, atol=1e-12)

        with pytest.raises(ValueError, match="row 2 has label 'cow', but y does not"):
            Oracle().fit(X, y, truth=[*truth[:2], {"cat", "cow"}, *truth[3:]])

    def test_columns_are_matched_by_name_where_they_have_names(self, partial_problem):
        pd = pytest.importorskip("pandas")
        X, candidates, truth = partial_problem
        y = pd.DataFrame(candidates, columns=list("abcdef"))
        turned = pd.DataFrame(truth, columns=list("abcdef"))[list("fbdace")].assign(unused=0)
        oracle = Oracle().fit(X, y, truth=turned)
        assert oracle.classes_.tolist() == list("abcdef")
        assert_allclose(oracle.decision_function(X), Oracle().fit(X, truth).decision_function(X), atol=1e-12)
        by_position = Oracle().fit(X, y, truth=truth)
        assert_array_equal(oracle.decision_function(X), by_position.decision_function(X))

    def test_sparse(self, partial_problem):
        X, candidates, truth = partial_problem
        oracle = Oracle().fit(
            scipy.sparse.csr_array(X), scipy.sparse.csr_array(candidates), truth=scipy.sparse.csc_array(truth)
        )
        assert_allclose(oracle.decision_function(X), Oracle().fit(X, truth).decision_function(X), atol=1e-8)

    def test_one_class_a_row(self):
        rng = np.random.default_rng(0)
        X, classes = rng.normal(size=(30, 2)), np.repeat(["a", "b", "c"], 10)
        oracle = Oracle(KNeighborsClassifier()).fit(X, classes, truth=classes)
        assert set(oracle.predict(X)) <= {"a", "b", "c"}
        assert_allclose(oracle.predict_proba(X).sum(axis=1), 1)
        candidates = np.ones((30, 3), int)
        candidates[0, 2] = 0
        as_columns = np.repeat([0, 1, 2], 10)
        with_classes = Oracle().fit(X, candidates, truth=as_columns)
        assert_array_equal(with_classes.predict(X), Oracle().fit(X, np.eye(3)[as_columns]).predict(X))

    @pytest.mark.parametrize(("rows", "labels", "message"), [
        (119, 6, "truth has 119 rows, but y has 120"),
        (120, 5, "truth has 5 labels, but y has 6"),
    ])  # fmt: skip
    def test_wrong_shape(self, partial_problem, rows, labels, message):
        X, candidates, truth = partial_problem
        with pytest.raises(ValueError, match=message):
            Oracle().fit(X, candidates, truth=truth[:rows, :labels])

    def test_is_not_changed(self, partial_problem):
        X, candidates, truth = partial_problem
        kept = [part.copy() for part in (X, candidates, truth)]
        Oracle().fit(X, candidates, truth=truth)
        for part, copy in zip((X, candidates, truth), kept, strict=True):
            assert_array_equal(part, copy)


class TestRouting:
    def test_truth_follows_the_folds(self, partial_problem):
        X, candidates, truth = partial_problem
        result = cross_validate(
            Oracle(), X, candidates, params={"truth": truth}, cv=3, return_estimator=True, error_score="raise"
        )
        expected = Oracle().fit(X[40:], candidates[40:], truth=truth[40:])
        assert_allclose(result["estimator"][0].decision_function(X), expected.decision_function(X))

    def test_with_metadata_routing(self, partial_problem):
        X, candidates, truth = partial_problem
        expected = Oracle().fit(StandardScaler().fit_transform(X), truth).decision_function(X)
        with config_context(enable_metadata_routing=True):
            pipeline = make_pipeline(StandardScaler(), Oracle().set_fit_request(truth=True))
            pipeline.fit(X, candidates, truth=truth)
        assert_allclose(pipeline[-1].decision_function(X), expected)

    def test_in_a_pipeline_without_it(self, partial_problem):
        X, candidates, truth = partial_problem
        pipeline = make_pipeline(StandardScaler(), Oracle()).fit(X, candidates, oracle__truth=truth)
        expected = Oracle().fit(StandardScaler().fit_transform(X), truth)
        assert_allclose(pipeline[-1].decision_function(X), expected.decision_function(X))


class TestLabelsWithoutContrast:
    """A label that no row truly has, or all rows have; a single label."""

    @pytest.mark.filterwarnings("ignore:Label .* is present")
    @pytest.mark.parametrize(
        "estimator",
        [
            KNeighborsClassifier(),
            RandomForestClassifier(5, random_state=0),
            OneVsRestClassifier(LogisticRegression()),
            CandidateRidge(),
            make_pipeline(StandardScaler(), CandidateRidge()),
        ],
        ids=repr,
    )
    def test_never_and_always(self, partial_problem, estimator):
        X, _, truth = partial_problem
        Y = truth.copy()
        Y[:, 2], Y[:, 3] = 0, 1
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            oracle = Oracle(estimator, on_empty="ignore").fit(X, np.ones_like(Y), truth=Y)
            scores = oracle.decision_function(X)
        assert_array_equal(oracle.predict(X)[:, 2:4], [[0, 1]] * 120)
        assert (scores.argmax(axis=1) != 2).all()
        assert np.isfinite(scores).all()

    @pytest.mark.parametrize("estimator", [*OURS[:4], *THEIRS[:7]], ids=repr)
    @pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
    def test_single_label(self, partial_problem, estimator):
        X, _, truth = partial_problem
        with warnings.catch_warnings():
            warnings.simplefilter("error", DataConversionWarning)
            oracle = Oracle(estimator, on_empty="ignore").fit(X, truth[:, [0]])
        scores, decisions = oracle.decision_function(X), oracle.predict(X)
        assert scores.shape == decisions.shape == oracle.predict_proba(X).shape == (120, 1)
        assert_array_equal(decisions, scores > oracle.threshold_)
        assert (decisions[:, 0] == truth[:, 0]).mean() > 0.6

    @pytest.mark.filterwarnings("ignore:Every label is a candidate", "ignore:Label not")
    @pytest.mark.parametrize(
        "estimator",
        [MLKNN(threshold=0.5), KNeighborsClassifier(), OneVsRestClassifier(LogisticRegression())],
        ids=repr,
    )
    def test_single_label_of_all_rows(self, partial_problem, estimator):
        X, _, _ = partial_problem
        oracle = Oracle(estimator).fit(X, np.ones((120, 1)))
        assert_array_equal(oracle.predict(X), 1)
        assert (oracle.decision_function(X) > oracle.threshold_).all()

    def test_policies_are_the_oracles(self, partial_problem):
        X, candidates, truth = partial_problem
        Y = truth.copy()
        Y[0], Y[:, 2] = 0, 0
        strict = PMLMA(on_empty="raise")
        for estimator in (strict, make_pipeline(StandardScaler(), strict)):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                oracle = Oracle(estimator, on_empty="ignore")
                oracle.fit(X, np.maximum(candidates, Y), truth=Y)
            with pytest.warns(UserWarning, match="not a candidate of any row"):
                Oracle(estimator).fit(X, candidates, truth=Y)
            with pytest.raises(ValueError, match="have no candidate label"):
                Oracle(estimator, on_empty="raise").fit(X, candidates, truth=Y)


def test_a_number_as_threshold_cuts_the_scores(partial_problem):
    X, candidates, truth = partial_problem
    oracle = Oracle(KNeighborsClassifier(), threshold=0.3).fit(X, candidates, truth=truth)
    scores = oracle.decision_function(X)
    assert_array_equal(oracle.predict(X), scores > 0.3)
    assert_array_equal(oracle.predict_proba(X) > 0.5, scores > 0.3)
    with pytest.raises(ValueError, match='threshold must be "auto" or a finite number'):
        Oracle(threshold="non-candidates").fit(X, candidates, truth=truth)


def test_decisions_are_the_estimators_even_against_its_scores(partial_problem):
    X, candidates, truth = partial_problem
    # Its probabilities are the shares of the labels, its decisions are fixed.
    stubborn = DummyClassifier(strategy="constant", constant=np.array([1, 0, 0, 0, 0, 1]))
    oracle = Oracle(stubborn).fit(X, candidates, truth=truth)
    assert_array_equal(oracle.predict(X), [[1, 0, 0, 0, 0, 1]] * 120)


def test_single_precision_and_sparse_features(partial_problem):
    X, candidates, truth = partial_problem
    for estimator in (None, KNeighborsClassifier(), OneVsRestClassifier(LogisticRegression())):
        oracle = Oracle(estimator).fit(X.astype(np.float32), candidates, truth=truth)
        assert oracle.decision_function(X.astype(np.float32)).dtype == np.float32
        sparse = Oracle(estimator).fit(scipy.sparse.csr_array(X), candidates, truth=truth)
        dense = Oracle(estimator).fit(X, candidates, truth=truth)
        assert_allclose(
            sparse.decision_function(scipy.sparse.csr_array(X)), dense.decision_function(X), atol=1e-4
        )


def test_tags_follow_the_estimator():
    assert Oracle().__sklearn_tags__().input_tags.sparse
    assert not Oracle(make_pipeline(StandardScaler(), DenseOnly())).__sklearn_tags__().input_tags.sparse


class DenseOnly(DecisionTreeClassifier):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


def test_not_fitted(partial_problem):
    X, _, _ = partial_problem
    for method in ("decision_function", "predict", "predict_proba"):
        with pytest.raises(NotFittedError):
            getattr(Oracle(), method)(X)
    fitted = Oracle(KNeighborsClassifier()).fit(X, np.eye(6, dtype=int)[np.arange(120) % 6])
    for method in ("decision_function", "predict", "predict_proba"):
        with pytest.raises(ValueError, match="X has 3 features, but Oracle is expecting 10"):
            getattr(fitted, method)(X[:, :3])
