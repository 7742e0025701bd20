"""The eigenbasis of row blocks is that of the rows, and a fit in it is the fit in memory."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning

from skpml import CandidateLikelihood
from skpml._blocks import ReadRows
from skpml.candidate_likelihood import _in_blocks
from skpml.likelihood import BlockSpectrum, spectrum_of_blocks
from skpml.likelihood._solvers import solve_least_squares, solve_logistic, targets_of
from skpml.linalg import leverages, ridge_scores, spectrum_of

# MiB: some tens of rows at a time.
SMALL = 0.02


def problem(n=300, d=8, c=4, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, d)) * np.geomspace(3, 0.1, d) + 1).astype(dtype)
    truth = X @ rng.normal(size=(d, c)) > 1
    return X, (truth | (rng.random((n, c)) < 0.3)).astype(dtype)


@pytest.fixture(autouse=True)
def little_memory():
    with config_context(working_memory=SMALL):
        yield


def in_blocks(X):
    return spectrum_of_blocks(ReadRows(X, lambda rows: rows * 1.0, X.shape[1]))


def test_products_are_those_of_the_rows():
    X, Y = problem()
    rng = np.random.default_rng(1)
    expected, found = spectrum_of(X), in_blocks(X)
    assert isinstance(found, BlockSpectrum)
    assert_allclose(found.values, expected.values, rtol=1e-9)
    # Directions are known up to their sign.
    sign = np.sign((found.directions * expected.directions).sum(axis=0))
    W, T = rng.normal(size=(8, 2, 4)), rng.normal(size=(300, 2, 4))
    assert_allclose(found.multiply(W * sign[:, None, None]), expected.multiply(W), atol=1e-9)
    turned = expected.multiply_transposed(T) * sign[:, None, None]
    assert_allclose(found.multiply_transposed(T), turned, atol=1e-8)
    gamma = np.array([0.1, 2.0])
    assert_allclose(leverages(found, gamma), leverages(expected, gamma), rtol=1e-9)
    targets = np.broadcast_to(Y[:, None, :], (300, 2, 4))
    assert_allclose(
        ridge_scores(found, targets, gamma)[2], ridge_scores(expected, targets, gamma)[2], atol=1e-9
    )


def test_a_visit_is_both_products():
    X, Y = problem()
    found, W = in_blocks(X), np.random.default_rng(1).normal(size=(8, 2, 4))

    def work(scores, labels):
        return scores**2 * labels[:, None, :], (scores.sum(axis=0),)

    product, (total,) = found.visit(W, work, Y)
    scores = found.multiply(W)
    assert_allclose(total, scores.sum(axis=0), atol=1e-9)
    assert_allclose(product, found.multiply_transposed(scores**2 * Y[:, None, :]), atol=1e-8)


def test_curvature_is_a_sum_over_rows():
    # A sample of every eighth row is exact if eight rows are alike.
    X, Y = (np.repeat(each, 8, axis=0) for each in problem(n=200))
    W = np.random.default_rng(1).normal(size=(8, 2, 4))

    def work(scores, labels):
        return scores**2 * labels[:, None, :]

    for spectrum in (spectrum_of(X), spectrum_of_blocks(ReadRows(X, lambda rows: rows * 1.0, 8))):
        with config_context(working_memory=1):
            of_scores, of_intercept = spectrum.sum_curvature(W, work, Y)
        Z = spectrum.multiply(np.eye(8))
        D = work(np.einsum("ik,ksc->isc", Z, W), Y)
        assert_allclose(of_scores, np.einsum("ik,isc->ksc", Z**2, D), rtol=1e-9)
        assert_allclose(of_intercept, D.sum(axis=0), rtol=1e-9)


def test_coefficients_of_features_are_expressed():
    X, _ = problem()
    coef, intercept = np.random.default_rng(1).normal(size=(8, 3)), np.array([1.0, -2, 0])
    found = in_blocks(X)
    W, b = found.express(coef, intercept)
    assert_allclose(found.multiply(W) + b, X @ coef + intercept, atol=1e-9)


@pytest.mark.parametrize("one_true", [False, True])
@pytest.mark.parametrize("solve", [solve_logistic, solve_least_squares])
def test_solvers_in_blocks_and_in_memory_agree(solve, one_true):
    X, Y = problem()
    options = dict(
        gamma=np.array([0.5, 3.0]),
        rho=np.full((2, 4), 0.25),
        one_true=Y.any(axis=1)[:, None, None] if one_true else None,
        tol=1e-7,
    )
    expected, found = spectrum_of(X), in_blocks(X)
    whole, parts = solve(expected, Y, **options), solve(found, Y, **options)
    scores = expected.multiply(whole.coef) + whole.intercept
    assert_allclose(found.multiply(parts.coef) + parts.intercept, scores, atol=1e-4)
    # A logistic fit that starts at the solution ends there. Targets of least squares are those of other scores, of
    # the regressions without each row, so that it takes a few steps.
    start = (parts.coef, parts.intercept)
    if solve is solve_least_squares:
        start = targets_of(found, Y, *start, rho=options["rho"], one_true=options["one_true"])
    again = solve(found, Y, **options, start=start)
    if solve is solve_logistic:
        assert max(len(history) for history in again.history) <= 2
    for short, long in zip(again.history, parts.history, strict=True):
        assert len(short) < len(long)
    assert_allclose(again.coef, parts.coef, atol=1e-4)


FIXED = dict(gamma=0.3, noise_rate=0.2, kernel_width=1.0, n_anchors=40, random_state=0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("family", ["ridge", "least-squares", "logistic"])
def test_a_fit_with_little_memory_is_nearly_the_same(family, dtype):
    """The start and the label covariance are those of 1,000 of the 2,000 rows, and few steps are taken with all rows."""
    X, Y = problem(n=2000, dtype=dtype)
    model = CandidateLikelihood(family=family, at_least_one=False, on_empty="ignore", **FIXED)
    with config_context(working_memory=1024):
        expected = model.fit(X, Y).predict_proba(X)
        confidences = model.confidences_
    with config_context(working_memory=0.5):
        found = model.fit(X, Y)
        difference = abs(found.predict_proba(X) - expected)
    assert found.confidences_.dtype == dtype
    assert difference.mean() < 0.005
    assert difference.max() < 0.05
    assert abs(found.confidences_ - confidences).mean() < 0.005


@pytest.mark.parametrize("memory", [0.05, 0.001])
def test_a_fit_with_hardly_any_memory_is_nearly_the_same(memory):
    X, Y = problem(n=2000)
    model = CandidateLikelihood(family="logistic", at_least_one=False, on_empty="ignore", **FIXED)
    expected = model.fit(X, Y).predict_proba(X)
    with config_context(working_memory=memory):
        assert abs(model.fit(X, Y).predict_proba(X) - expected).max() < 0.05


def test_a_fit_that_ends_early_with_little_memory_says_so(monkeypatch):
    X, Y = problem(n=2000)
    model = CandidateLikelihood(family="logistic", at_least_one=False, on_empty="ignore", **FIXED)
    monkeypatch.setitem(_in_blocks._MOST_STEPS, "logistic", 2)
    with (
        config_context(working_memory=0.5),
        pytest.warns(ConvergenceWarning, match="after 2 passes") as caught,
    ):
        model.fit(X, Y)
    assert caught[0].filename == __file__
    assert not model.converged_
    monkeypatch.setitem(_in_blocks._MOST_STEPS, "logistic", 1000)
    with config_context(working_memory=0.5), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.fit(X, Y).converged_


def test_a_search_with_little_memory_keeps_few_members():
    X, Y = problem(n=2000)
    model = CandidateLikelihood(family="ridge", n_anchors=40, random_state=0, on_empty="ignore")
    with config_context(working_memory=1024):
        expected = model.fit(X, Y).predict_proba(X)
    with config_context(working_memory=0.5):
        found = model.fit(X, Y)
    assert 1 <= len(found.selection_["members"]) <= 3
    assert len(found.coef_) == len(found.selection_["members"])
    assert_allclose(found.confidences_[Y == 0], 0)
    assert abs(found.predict_proba(X) - expected).mean() < 0.02


@pytest.mark.parametrize(
    ("family", "one_true"),
    [("ridge", False), ("least-squares", False), ("logistic", False), ("logistic", True), ("auto", "auto")],
)
def test_with_torch_a_fit_with_little_memory_is_the_same(family, one_true, monkeypatch):
    """Fits that go on to the solution, since rounding changes where others stop."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.setattr("skpml.candidate_likelihood._in_blocks._TOL", 1e-7)
    steps = dict.fromkeys(("ridge", "least-squares", "logistic"), 1000)
    monkeypatch.setattr("skpml.candidate_likelihood._in_blocks._MOST_STEPS", steps)
    X, Y = problem(n=1200)
    options = dict(n_anchors=40, random_state=0) if family == "auto" else FIXED
    options = dict(options, family=family, at_least_one=one_true, tol=1e-7)
    with config_context(working_memory=0.3):
        models = [
            CandidateLikelihood(**options, device=device, on_empty="ignore") for device in (None, "cpu")
        ]
        expected, found = (model.fit(X, Y) for model in models)
    assert found.selection_["members"] == expected.selection_["members"]
    # The search takes small weights here, which leave more to the tolerance.
    atol = 1e-3 if family == "auto" else 1e-5
    assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=atol)
    assert_allclose(found.confidences_, expected.confidences_, atol=atol)
    for each in (found.confidences_, found.intercept_, *found.coef_):
        assert isinstance(each, np.ndarray)


def test_with_torch_single_precision_is_nearly_the_same():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    X, Y = problem(n=1200)
    with config_context(working_memory=0.3):
        models = [
            CandidateLikelihood(
                family="logistic", at_least_one=False, device="cpu", on_empty="ignore", **FIXED
            ).fit(X.astype(dtype), Y)
            for dtype in (np.float64, np.float32)
        ]
    assert models[1].confidences_.dtype == np.float32
    assert_allclose(models[1].predict_proba(X), models[0].predict_proba(X), atol=0.005)
