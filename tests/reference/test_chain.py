import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.svm import LinearSVC

from skpml.metrics import average_precision
from skpml.reference import CandidateChain, CandidateRidge


def ridge_chain(features, Y, queries, order):
    """Ridge on −1 and 1 by its normal equations, label after label, decisions handed on."""
    seen, handed = features, queries
    scores = np.empty((len(queries), Y.shape[1]))
    for label in order:
        target = 2.0 * Y[:, label] - 1
        centred, middle = seen - seen.mean(axis=0), target.mean()
        w = np.linalg.solve(centred.T @ centred + np.eye(seen.shape[1]), centred.T @ (target - middle))
        scores[:, label] = (handed - seen.mean(axis=0)) @ w + middle
        seen = np.column_stack([seen, Y[:, label]])
        handed = np.column_stack([handed, scores[:, label] > 0])
    return scores


@pytest.mark.parametrize("order", [None, [3, 1, 0, 5, 4, 2]])
def test_is_a_chain_of_ridge_classifiers(partial_problem, order):
    X, candidates, _ = partial_problem
    model = CandidateChain(order=order, threshold=0.0).fit(X[:90], candidates[:90])
    mapped = model.feature_map_.transform(X)
    expected = ridge_chain(mapped[:90], candidates[:90], mapped[90:], model.order_)
    assert_allclose(model.decision_function(X[90:]), expected, atol=1e-8)
    assert_array_equal(model.predict(X[90:]), expected > 0)
    if order is not None:
        assert_array_equal(model.order_, order)


def test_agrees_with_scikit_learn_in_the_order_of_the_columns(partial_problem):
    X, candidates, _ = partial_problem
    model = CandidateChain(LogisticRegression(), order=range(6), feature_map="linear", threshold=0.0).fit(
        X, candidates
    )
    mapped = model.feature_map_.transform(X)
    theirs = ClassifierChain(LogisticRegression()).fit(mapped, candidates)
    assert_allclose(model.decision_function(X), theirs.predict_proba(mapped) - 0.5)
    assert_array_equal(model.predict(X), theirs.predict(mapped))


def test_one_label_is_no_chain(partial_problem):
    X, candidates, _ = partial_problem
    model = CandidateChain(on_empty="ignore").fit(X, candidates[:, [1]])
    mapped = model.feature_map_.transform(X)
    alone = RidgeClassifier().fit(mapped, candidates[:, 1])
    assert_allclose(model.decision_function(X)[:, 0], alone.decision_function(mapped), atol=1e-9)


def test_begins_with_the_most_frequent_label(partial_problem):
    X, candidates, _ = partial_problem
    frequency = candidates.sum(axis=0)[CandidateChain().fit(X, candidates).order_]
    assert (np.diff(frequency.astype(int)) <= 0).all()


def test_equally_frequent_labels_are_ordered_by_their_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    # Each label has 20 rows.
    Y = np.eye(3, dtype=int)[rng.permutation(np.repeat([0, 1, 2], 20))]
    labels = np.array([2, 0, 1])
    one, two = CandidateChain().fit(X, Y), CandidateChain().fit(X, Y[:, labels])
    assert_array_equal(labels[two.order_], one.order_)
    assert_allclose(two.decision_function(X), one.decision_function(X)[:, labels], atol=1e-10)


def test_decisions_are_handed_on():
    """A label that repeats the one before it follows that one's decision, against its own features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    first = X[:, 0] + 0.5 * rng.normal(size=200) > 0
    Y = np.column_stack([first, first])
    model = CandidateChain(order=[0, 1], feature_map="linear", threshold=0.0, on_empty="ignore").fit(X, Y)
    decisions = model.predict(X)
    assert_array_equal(decisions[:, 0], decisions[:, 1])
    assert np.abs(model.chain_.estimators_[1].coef_.ravel()[:3]).max() < 0.1


def test_labels_of_all_rows_or_none_are_left_out(partial_problem):
    X, candidates, _ = partial_problem
    Y = candidates.copy()
    Y[:, 1], Y[:, 4] = 0, 1
    rest = [0, 2, 3, 5]
    for estimator, extreme in ((None, 1.0), (LogisticRegression(), 0.5)):
        model = CandidateChain(estimator, on_empty="ignore").fit(X, Y)
        scores = model.decision_function(X)
        assert_array_equal(scores[:, 1], -extreme)
        assert_array_equal(scores[:, 4], extreme)
        assert sorted(model.order_.tolist()) == rest
        order = [rest.index(label) for label in model.order_]
        without = CandidateChain(estimator, on_empty="ignore", order=order).fit(X, Y[:, rest])
        assert_allclose(scores[:, rest], without.decision_function(X), atol=1e-10)


@pytest.mark.parametrize(
    ("estimator", "extent"), [(None, np.inf), (LogisticRegression(), 0.5), (LinearSVC(dual=False), np.inf)]
)
def test_zero_is_the_cut_of_every_classifier(partial_problem, estimator, extent):
    X, candidates, _ = partial_problem
    model = CandidateChain(estimator, threshold=0.0).fit(X, candidates)
    mapped = model.feature_map_.transform(X)
    decisions = np.empty((120, 6))
    decisions[:, model.order_] = model.chain_.predict(mapped)
    assert_array_equal(model.predict(X), decisions)
    assert np.abs(model.decision_function(X)).max() < extent


def test_the_estimator_given_stays_as_it_was(partial_problem):
    X, candidates, _ = partial_problem
    given = LogisticRegression(C=0.1)
    model = CandidateChain(given).fit(X, candidates)
    assert not hasattr(given, "coef_")
    assert model.chain_.estimators_[0].C == 0.1
    assert model.get_params()["estimator__C"] == 0.1


def test_true_labels_make_it_as_good_as_ridge(partial_problem):
    X, _, truth = partial_problem
    chain, ridge = (
        average_precision(truth[90:], learner.fit(X[:90], truth[:90]).decision_function(X[90:]))
        for learner in (CandidateChain(), CandidateRidge())
    )
    assert chain > ridge - 0.03


@pytest.mark.parametrize(
    "order", [[0, 1], [0, 0, 1, 2, 3, 4], "random", [[0, 1, 2, 3, 4, 5]], [1, 2, 3, 4, 5, 6]]
)
def test_bad_order(partial_problem, order):
    X, candidates, _ = partial_problem
    with pytest.raises(ValueError, match="order must hold each of the columns 0 to 5 of y once"):
        CandidateChain(order=order).fit(X, candidates)


def test_an_estimator_without_scores(partial_problem):
    X, candidates, _ = partial_problem
    with pytest.raises(
        ValueError, match="estimator must be a classifier with predict_proba or decision_function"
    ):
        CandidateChain(Ridge()).fit(X, candidates)
