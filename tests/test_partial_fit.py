"""What learning in batches means for every method that has it: labels, order, errors and model files."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from batches import fit_in_batches, rows
from skpml import PMLMA, CandidateLikelihood
from skpml.io import load_model, save_model
from skpml.metrics import average_precision

MODELS = [
    PMLMA(random_state=0),
    CandidateLikelihood(
        family="logistic", gamma=0.1, kernel_width=1.0, at_least_one=False, random_state=0, n_anchors=60
    ),
]


@pytest.fixture(params=MODELS, ids=lambda model: type(model).__name__)
def model(request):
    return clone(request.param)


def test_more_batches_learn_more(model):
    X, Y = rows(n=2000)
    held_out = slice(1500, None)
    model.set_params(n_anchors=50).partial_fit(X[:100], Y[:100])
    begin = average_precision(Y[held_out], model.decision_function(X[held_out]))
    for start in range(100, 1500, 100):
        model.partial_fit(X[start : start + 100], Y[start : start + 100])
    whole = clone(model).fit(X[:1500], Y[:1500])
    end, best = (
        average_precision(Y[held_out], each.decision_function(X[held_out])) for each in (model, whole)
    )
    assert end > begin
    assert end > best - 0.2 * (best - begin)


def test_small_batches_after_the_first(model):
    """A batch may have fewer rows than neighbors, fewer than labels, or one."""
    X, Y = rows()
    fit_in_batches(model, X, Y, (150, 3, 1))
    assert model.confidences_.shape == (1, 4)
    assert np.isfinite(model.decision_function(X)).all()


def test_labels_are_matched_by_name(model):
    X, Y = rows()
    names = np.array(["d", "a", "c", "b"])
    sets = [set(names[row > 0].tolist()) for row in Y]
    by_frame = clone(model)
    model.partial_fit(X[:100], sets[:100], classes=["d", "c", "b", "a"]).partial_fit(X[100:], sets[100:])
    assert_array_equal(model.classes_, ["a", "b", "c", "d"])
    frame = pd.DataFrame(Y, columns=names)
    by_frame.partial_fit(X[:100], frame[:100]).partial_fit(X[100:], frame[100:][["a", "b", "c", "d"]])
    order = [by_frame.classes_.tolist().index(name) for name in "abcd"]
    assert_allclose(model.decision_function(X), by_frame.decision_function(X)[:, order], atol=1e-5)


def test_a_label_that_the_first_batch_lacks(model):
    X, Y = rows()
    names = np.array(["d", "a", "c", "b"])
    sets = [set(names[row > 0].tolist()) for row in Y]
    without_b = [labels - {"b"} or {"a"} for labels in sets[:100]]
    with pytest.warns(UserWarning, match=r"1 of 4 labels .* first batch \(b\)") as caught:
        model.partial_fit(X[:100], without_b, classes=["a", "b", "c", "d"])
    assert caught[0].filename == __file__
    before = model.decision_function(X)[:, 1].mean()
    model.partial_fit(X[100:], sets[100:])
    assert model.decision_function(X)[:, 1].mean() > before


def test_single_classes(model):
    X, _ = rows()
    y = np.where(X[:, 0] > 0, "up", "down")
    model.partial_fit(X[:100], y[:100])
    model.partial_fit(X[100:][y[100:] == "up"], y[100:][y[100:] == "up"])
    assert model.score(X, y) > 0.8


def test_errors_leave_the_model_as_it_was(model):
    X, Y = rows()
    model.set_params(on_empty="raise").partial_fit(X[:100], Y[:100])
    before = model.decision_function(X)
    for bad_X, bad_Y, message in (
        (X[100:, :5], Y[100:], "X has 5 features"),
        (X[100:], Y[100:, :3], "y has 3 labels, but the model was fitted on 4"),
        (X[100:], np.zeros_like(Y[100:]), "rows have no candidate label"),
        (X[100:], [{"a"}] * 100, "not fitted on"),
        (X[100:], np.full(100, "a"), "y are classes, but those of the first batch were indicator"),
        (np.full_like(X[100:], np.nan), Y[100:], "NaN"),
        (X[100:], Y[100:90], "inconsistent numbers of samples"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(bad_X, bad_Y)
        assert_array_equal(model.decision_function(X), before)
    same = clone(model).partial_fit(X[:100], Y[:100]).partial_fit(X[100:], Y[100:])
    assert_array_equal(model.partial_fit(X[100:], Y[100:]).decision_function(X), same.decision_function(X))


def test_a_fit_and_what_comes_after_a_fit_begin_anew(model):
    X, Y = rows()
    whole, fresh = clone(model).fit(X, Y), clone(model).partial_fit(X[:80], Y[:80])
    with pytest.warns(UserWarning, match="begins anew") as caught:
        again = clone(model).fit(X, Y).partial_fit(X[:80], Y[:80])
    assert caught[0].filename == __file__
    assert_array_equal(again.decision_function(X), fresh.decision_function(X))
    assert_array_equal(fresh.fit(X, Y).decision_function(X), whole.decision_function(X))


def test_other_classes_are_an_error(model):
    X, Y = rows()
    with pytest.raises(ValueError, match="classes are"):
        model.partial_fit(X, Y, classes=[0, 1, 2, 3, 4])
    model.partial_fit(X, Y, classes=[3, 2, 1, 0])
    with pytest.raises(ValueError, match="classes are"):
        model.partial_fit(X, Y, classes=[0, 1, 2])


def test_a_model_file_continues(model, tmp_path):
    X, Y = rows()
    model.partial_fit(X[:100], Y[:100])
    save_model(model, tmp_path / "model.skpml")
    again = load_model(tmp_path / "model.skpml")
    for each in (again, model):
        each.partial_fit(X[100:], Y[100:])
    assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_batches_may_be_dask_arrays(model):
    X, Y = rows()
    local = fit_in_batches(clone(model), X, Y, (120, 80))
    fit_in_batches(model, da.from_array(X, chunks=(40, 6)), Y, (120, 80))
    assert_allclose(model.decision_function(X), local.decision_function(X), atol=1e-9)


def test_warnings_name_the_line_of_the_caller(model):
    X, Y = rows()
    with pytest.warns(ConvergenceWarning) as caught:
        model.set_params(max_iter=1).partial_fit(X, Y)
    assert caught[0].filename == __file__
