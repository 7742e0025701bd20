import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import KFold

from skpml.baselines._pamb import (
    PAMB,
    count_columns,
    decode,
    draw_code,
    draw_columns,
    fit_columns,
    performance,
    sides,
)
from skpml.datasets import load_dataset
from skpml.metrics import average_precision, ranking_loss
from skpml.reference import CandidateRidge


def fit(X, Y, **parameters):
    return PAMB(random_state=0, on_empty="ignore", **parameters).fit(X, Y)


def random_candidates(n, c, count, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.random((n, c)).argsort(axis=1) < count).astype(float)


def test_all_distinct_columns_are_drawn_and_counted():
    columns = draw_columns(np.random.RandomState(0), 5, 3, 5000)
    assert ((columns != 0).sum(axis=0) == 3).all()
    assert (columns.min(axis=0) == -1).all()
    assert (columns.max(axis=0) == 1).all()
    distinct = {tuple(column) for column in columns.T}
    assert len(distinct) == count_columns(5, 3) == 10 * 3
    assert not any(tuple(-value for value in column) in distinct for column in distinct)


def test_sides_by_the_definition():
    Y, code = random_candidates(200, 6, 3), draw_columns(np.random.RandomState(1), 6, 4, 20)
    problems = sides(Y, code)
    for row, column in np.ndindex(problems.shape):
        signs = {int(code[label, column]) for label in np.flatnonzero(Y[row])} - {0}
        assert problems[row, column] == (signs.pop() if len(signs) == 1 else 0)


@pytest.mark.parametrize(("z_role", "zeros"), [("auto", 3), ("zero", 3), ("nonzero", 5)])
def test_kept_columns_are_large_enough(z_role, zeros):
    Y = random_candidates(300, 8, 3)
    code = draw_code(Y, np.random.RandomState(0), z=3, z_role=z_role, n_columns=60)
    assert code.shape == (8, 60)
    assert ((code == 0).sum(axis=0) == zeros).all()
    assert len({tuple(column * sign) for column in code.T for sign in (1, -1)}) == 120
    problems = sides(Y, code)
    assert min((problems > 0).sum(axis=0).min(), (problems < 0).sum(axis=0).min()) >= 5
    assert (problems != 0).mean(axis=0).min() >= 0.1


def test_a_smaller_share_of_rows_is_accepted_before_the_reading_of_z_changes():
    Y = random_candidates(400, 12, 5)
    # 10 non-zeros, four of them candidates as a rule: too few rows have these on one side.
    code = draw_code(Y, np.random.RandomState(0), z=2, n_columns=50, min_share=0.16)
    assert ((code == 0).sum(axis=0) == 2).all()
    assert 0.08 <= (sides(Y, code) != 0).mean(axis=0).min() < 0.16
    with_many = draw_code(random_candidates(400, 40, 12), np.random.RandomState(0), z=12, n_columns=50)
    assert ((with_many != 0).sum(axis=0) == 12).all()


def test_a_few_rows_are_enough_where_there_are_no_more():
    code = draw_code(np.eye(3), np.random.RandomState(0), z=1, n_columns=100)
    assert code.shape == (3, 3)
    assert draw_code(np.ones((9, 4)), np.random.RandomState(0), z=2, n_columns=100).shape == (4, 0)
    assert draw_code(np.ones((9, 1)), np.random.RandomState(0), z=0, n_columns=1).shape == (1, 0)


@pytest.mark.parametrize("features", [8, 90])
def test_columns_are_ridge_regressions(features):
    """More rows than features, and fewer."""
    rng = np.random.default_rng(0)
    Phi, problems = rng.normal(size=(120, features)), rng.integers(-1, 2, size=(120, 5)).astype(np.int8)
    coef = fit_columns(Phi, problems, lam=0.3)
    for column, problem in enumerate(problems.T):
        used = problem != 0
        expected = Ridge(alpha=0.3, fit_intercept=False).fit(Phi[used], problem[used])
        assert_allclose(coef[:, column], expected.coef_, atol=1e-8)


def test_performance_and_decoding_by_the_definition():
    rng = np.random.default_rng(0)
    Y, code = random_candidates(40, 5, 2), draw_columns(np.random.RandomState(0), 5, 3, 12)
    Y[:, 4] = 0
    G = rng.normal(size=(40, code.shape[1]))
    weights, scores = performance(G, Y, code), decode(G, code, performance(G, Y, code))
    for label in range(4):
        share = [
            np.mean(np.sign(G[Y[:, label] == 1, column]) == sign) if sign else 0
            for column, sign in enumerate(code[label])
        ]
        assert_allclose(weights[label], np.array(share) / np.sum(share))
        assert_allclose(scores[:, label], -np.log(np.exp(-code[label] * G) @ weights[label]))
    assert not weights[4].any()
    assert_allclose(weights[:4].sum(axis=1), 1)
    assert not weights[code == 0].any()


def test_negating_a_column_changes_nothing():
    rng = np.random.default_rng(0)
    Y, code = random_candidates(50, 5, 2), draw_columns(np.random.RandomState(0), 5, 4, 9)
    G = rng.normal(size=(50, code.shape[1]))
    flip = np.where(np.arange(code.shape[1]) % 2, -1, 1).astype(np.int8)
    assert_array_equal(sides(Y, code * flip), sides(Y, code) * flip)
    one = decode(G, code, performance(G, Y, code))
    assert_allclose(decode(G * flip, code * flip, performance(G * flip, Y, code * flip)), one)


def test_huge_margins_do_not_overflow():
    code = np.array([[1], [-1]], dtype=np.int8)
    assert_allclose(decode(np.array([[1e6]]), code, np.ones((2, 1))), [[20, -20]])


def test_one_candidate_a_row_is_single_label_ecoc():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 5
    X = rng.normal(size=(400, 4)) + 1.5 * rng.normal(size=(5, 4))[y]
    model = PAMB(z=0, feature_map="linear", random_state=0).fit(X[:300], y[:300])
    # Signs of five labels that differ up to negation, and not all equal.
    assert model.code_.shape == (5, 15)
    rest = RidgeClassifier().fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) > rest.score(X[300:], y[300:]) - 0.03


def test_scores_come_from_the_parts(partial_problem):
    X, Y, _ = partial_problem
    model = fit(X, Y, threshold="non-candidates")
    margins = model.feature_map_.transform(model.scaler_.transform(X)) @ model.coef_
    assert_allclose(model.decision_function(X), decode(margins, model.code_, model.performance_))
    assert_allclose(model.performance_, performance(margins, Y, model.code_))
    assert_array_equal(np.isin(model.code_, (-1, 0, 1)), True)
    assert model.feature_map_.anchors_.shape == (20, 10)
    highest = np.where(Y > 0, -np.inf, model.decision_function(X)).max(axis=1)
    assert model.threshold_ == pytest.approx(highest[~Y.all(axis=1)].mean())


def test_default_code_follows_the_candidates():
    rng = np.random.default_rng(0)
    model = fit(rng.normal(size=(200, 5)), random_candidates(200, 9, 3))
    assert model.code_.shape == (9, np.ceil(100 * np.log2(9)))
    assert ((model.code_ == 0).sum(axis=0) == 3).all()


def test_order_does_not_matter_although_anchors_and_code_are_drawn(partial_problem):
    X, Y, _ = partial_problem
    rng = np.random.default_rng(3)
    rows, features, labels = rng.permutation(len(X)), rng.permutation(X.shape[1]), rng.permutation(6)
    one = fit(X, Y, n_columns=20)
    other = fit(X[rows][:, features], Y[rows][:, labels], n_columns=20)
    assert_allclose(other.decision_function(X[:, features]), one.decision_function(X)[:, labels], atol=1e-9)
    seeds = [PAMB(n_columns=20, random_state=seed).fit(X, Y).decision_function(X) for seed in (1, 1, 2)]
    assert_array_equal(seeds[0], seeds[1])
    assert np.abs(seeds[0] - seeds[2]).max() > 1e-3


def test_a_label_that_every_row_has_gets_a_column_of_its_own(partial_problem):
    X, Y, _ = partial_problem
    Y = Y.copy()
    Y[:, 1] = 1
    Y[0], Y[1] = 1, [0, 1, 0, 0, 0, 0]
    model = fit(X, Y)
    own = model.code_[:, -1]
    assert_array_equal(own, [0, 1, 0, 0, 0, 0])
    assert not model.code_[1, :-1].any()
    assert np.median(model.decision_function(X)[:, 1]) > 0.8


@pytest.mark.parametrize("c", [1, 2, 3])
def test_few_labels(c):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    Y = (X[:, :c] > 0.3).astype(int)
    scores = fit(X, Y).decision_function(X)
    assert np.isfinite(scores).all()
    # What the codes tell apart is which labels a row has, not whether it has any, unless there is one label.
    difference = scores[:, 0] if c == 1 else scores[:, 0] - scores[:, 1]
    wanted = X[:, 0] if c == 1 else X[:, 0] - X[:, 1]
    assert np.corrcoef(difference, wanted)[0, 1] > 0.7


def test_odd_candidates(partial_problem):
    X, Y, _ = partial_problem
    Y = Y.copy()
    Y[0], Y[1], Y[:, 2] = 1, 0, 0
    model = fit(X, Y)
    scores = model.decision_function(X)
    assert np.isfinite(scores).all()
    assert_array_equal(scores[:, 2], scores.min())
    assert not model.predict(X)[:, 2].any()
    with pytest.warns(match="Every label is a candidate of every row"):
        assert np.isfinite(fit(X, np.ones_like(Y)).decision_function(X)).all()
    assert not fit(X, np.zeros_like(Y)).decision_function(X).any()


def test_clean_candidates_do_not_hurt():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(400, 6))
    truth = (X @ rng.normal(size=(6, 4)) + 0.3 * rng.normal(size=(400, 4)) > 0.7).astype(int)
    ridge = CandidateRidge(on_empty="ignore").fit(X[:300], truth[:300])
    ours, theirs = (
        average_precision(truth[300:], model.decision_function(X[300:]))
        for model in (fit(X[:300], truth[:300], n_anchors=60), ridge)
    )
    assert ours > theirs - 0.03


@pytest.mark.parametrize(
    "parameters", [{"z": -1}, {"z": 1.5}, {"z_role": "one"}, {"n_columns": 0}, {"lam": -1}, {"min_share": -1}]
)
def test_bad_parameters(partial_problem, parameters):
    X, Y, _ = partial_problem
    with pytest.raises(ValueError, match=f"{next(iter(parameters))} must"):
        PAMB(**parameters).fit(X, Y)


@pytest.mark.slow
def test_emotions(data_folder):
    """All ten folds: a fit takes a twentieth of a second. Published: 0.804 and 0.160."""
    data = load_dataset("emotions-3", random_state=0)
    values = []
    for fold, (train, test) in enumerate(KFold(10, shuffle=True, random_state=0).split(data.X)):
        model = PAMB(random_state=fold).fit(data.X[train], data.candidates[train])
        scores = model.decision_function(data.X[test])
        values.append((average_precision(data.truth[test], scores), ranking_loss(data.truth[test], scores)))
    precision, loss = np.mean(values, axis=0)
    assert precision >= 0.79
    assert loss <= 0.175
