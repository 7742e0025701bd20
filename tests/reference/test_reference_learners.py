"""What holds for every reference learner, whatever it does inside."""

import warnings

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from skpml import io
from skpml.reference import LIFT, MLKNN, CandidateChain, Oracle
from skpml.utils.estimator_checks import parametrize_with_pml_checks

LEARNERS = [MLKNN(), LIFT(random_state=0), CandidateChain(), Oracle(), Oracle(LIFT(random_state=0))]
every_learner = pytest.mark.parametrize("learner", LEARNERS, ids=repr)


@pytest.mark.filterwarnings("ignore:.*no candidate label", "ignore:Every label is a candidate")
@pytest.mark.parametrize("learner", [MLKNN(), LIFT(), CandidateChain(), Oracle()], ids=repr)
@pytest.mark.slow
def test_passes_every_check_of_scikit_learn(learner):
    results = check_estimator(learner, on_skip=None)
    assert {result["status"] for result in results} == {"passed"}
    assert not any(result["expected_to_fail"] for result in results)
    assert len(results) >= 55


@parametrize_with_pml_checks(LEARNERS)
def test_pml_checks(estimator, check):
    check(estimator)


@every_learner
@pytest.mark.parametrize("part", ["rows", "features", "labels"])
def test_order_does_not_matter(partial_problem, learner, part):
    X, Y, _ = partial_problem
    rng = np.random.default_rng(3)
    sizes = {"rows": 120, "features": 10, "labels": 6}
    order = {name: rng.permutation(size) if name == part else np.arange(size) for name, size in sizes.items()}
    one = clone(learner).fit(X, Y).decision_function(X)
    moved = clone(learner).fit(
        X[np.ix_(order["rows"], order["features"])], Y[np.ix_(order["rows"], order["labels"])]
    )
    two = moved.decision_function(X[:, order["features"]])
    assert_allclose(two, one[:, order["labels"]], atol=1e-8)


@every_learner
def test_same_bits_and_untouched_inputs(partial_problem, learner):
    X, Y, _ = partial_problem
    kept = X.copy(), Y.copy()
    one, two = (clone(learner).fit(X, Y).decision_function(X) for _ in range(2))
    assert_array_equal(one, two)
    assert_array_equal(X, kept[0])
    assert_array_equal(Y, kept[1])


@every_learner
def test_sparse_and_single_precision(partial_problem, learner):
    X, Y, _ = partial_problem
    X = np.where(np.abs(X) < 2, 0, X)
    dense = clone(learner).fit(X, Y).decision_function(X)
    sparse = clone(learner).fit(scipy.sparse.csr_array(X), Y).decision_function(scipy.sparse.csr_array(X))
    assert_allclose(sparse, dense, atol=1e-8)
    single = clone(learner).fit(X.astype(np.float32), Y).decision_function(X.astype(np.float32))
    assert single.dtype == np.float32
    assert_allclose(single, dense, atol=2e-3)


def odd_candidates():
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, size=(40, 4))
    Y[:, 1] |= ~Y.any(axis=1)
    full_row, empty_row, empty_label, single = Y.copy(), Y.copy(), Y.copy(), Y[:, :1]
    full_row[3], empty_row[5], empty_label[:, 2] = 1, 0, 0
    once = empty_label.copy()
    once[7, 2] = 1
    return {
        "a row with all labels": full_row,
        "a row without labels": empty_row,
        "a label of nobody": empty_label,
        "a label of one row": once,
        "a single label": single,
        "nothing told apart": np.ones((40, 4), int),
        "a single label of all rows": np.ones((40, 1), int),
    }


@every_learner
@pytest.mark.filterwarnings("ignore:Every label is a candidate")
@pytest.mark.parametrize("kind", odd_candidates())
def test_odd_candidates(learner, kind):
    Y = odd_candidates()[kind]
    X = np.random.default_rng(1).normal(size=(40, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = clone(learner).set_params(on_empty="ignore").fit(X, Y)
        scores, probabilities = model.decision_function(X), model.predict_proba(X)
    assert scores.shape == Y.shape
    assert np.isfinite(scores).all()
    assert ((probabilities > 0) & (probabilities < 1)).all()
    if kind == "a label of nobody":
        assert not model.predict(X)[:, 2].any()
        assert (scores.argmax(axis=1) != 2).all()


@every_learner
def test_probabilities_rise_with_the_scores(partial_problem, learner):
    X, Y, _ = partial_problem
    model = clone(learner).fit(X, Y)
    for scores, probabilities in zip(model.decision_function(X).T, model.predict_proba(X).T, strict=True):
        order = np.argsort(scores)
        apart = np.diff(scores[order]) > 1e-9
        assert (np.diff(probabilities[order])[apart] > 0).all()


@every_learner
def test_duplicate_and_constant_features(learner):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.integers(0, 2, size=(10, 3)).astype(float), 5, axis=0)
    Y = np.eye(3, dtype=int)[rng.integers(0, 3, 50)]
    assert np.isfinite(clone(learner).fit(X, Y).decision_function(X)).all()
    assert np.isfinite(clone(learner).fit(np.ones((50, 2)), Y).decision_function(np.ones((50, 2)))).all()


@every_learner
def test_holds_nothing_that_a_model_file_cannot(partial_problem, learner, tmp_path):
    pytest.importorskip("skops")
    X, Y, _ = partial_problem
    model = clone(learner).fit(X, Y)
    io.save_model(model, tmp_path / "model.skpml")
    again = io.load_model(tmp_path / "model.skpml")
    for method in ("decision_function", "predict", "predict_proba"):
        assert_array_equal(getattr(again, method)(X), getattr(model, method)(X))
