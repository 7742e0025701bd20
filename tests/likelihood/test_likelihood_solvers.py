"""The solvers against slow oracles, limits and each other."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression, Ridge

from skpml.datasets import load_digits_attributes
from skpml.features import RangeScaler, RBFAnchors
from skpml.likelihood import log_likelihood, posterior
from skpml.likelihood._solvers import (
    _Objective,
    _Steps,
    label_covariance,
    solve_least_squares,
    solve_logistic,
)
from skpml.linalg import Spectrum, leverages, ridge_scores, spectrum_of


def problem(n=60, d=4, c=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    truth = (X @ rng.normal(size=(d, c)) + rng.logistic(size=(n, c)) > 0.5).astype(float)
    Y = np.maximum(truth, rng.random((n, c)) < 0.3)
    return X, truth, Y


RHO = np.array([[0.25, 0.3, 0.35], [0.1, 0.1, 0.1]])
GAMMA = np.array([0.175, 0.75])
B = np.array([[1.0, 0.4, -0.2], [0.4, 1.0, 0.1], [-0.2, 0.1, 1.0]])


def unit_rows(X):
    """Centred features as the spectrum scales them."""
    centred = X - X.mean(axis=0)
    return centred / np.sqrt((centred**2).sum(axis=1).mean())


def rows_with_candidates(Y):
    return Y.any(axis=1)[:, None, None]


class TestSpectrum:
    def test_the_gram_matrix_is_diagonal_and_nothing_is_lost(self):
        X, _, _ = problem()
        X = np.hstack([X, X[:, :1] + X[:, 1:2]])  # one column says nothing new
        spectrum = spectrum_of(X)
        assert spectrum.values.shape == (4,)
        assert (np.diff(spectrum.values) <= 0).all()
        assert_allclose(spectrum.rows.T @ spectrum.rows, np.diag(spectrum.values), atol=1e-10)
        centred = X - X.mean(axis=0)
        assert_allclose((spectrum.rows**2).sum(axis=1).mean(), 1)
        unit = centred / np.sqrt((centred**2).sum(axis=1).mean())
        assert_allclose(spectrum.rows @ spectrum.rows.T, unit @ unit.T, atol=1e-10)
        assert_allclose(spectrum.project(X[:5]), spectrum.rows[:5], atol=1e-12)


class TestLogistic:
    @pytest.mark.parametrize("one", [False, True])
    @pytest.mark.parametrize("covariance", [None, B])
    def test_finds_what_a_general_optimiser_finds(self, one, covariance):
        X, _, Y = problem()
        spectrum = spectrum_of(X)
        marked = rows_with_candidates(Y) if one else None
        found = solve_logistic(
            spectrum,
            Y,
            gamma=GAMMA,
            rho=RHO,
            one_true=marked,
            covariance=covariance,
            tol=1e-9,
            max_iter=5000,
        )
        precision = np.eye(3) if covariance is None else np.linalg.inv(covariance)
        for setting, (gamma, rho) in enumerate(zip(GAMMA, RHO, strict=True)):

            def objective(flat, gamma=gamma, rho=rho):
                W, b = flat[:-3].reshape(4, 3), flat[-3:]
                logits = spectrum.rows @ W + b
                rows = None if marked is None else marked[:, 0]
                return -log_likelihood(logits, rho, Y, rows).sum() + gamma / 2 * np.trace(W @ precision @ W.T)

            best = scipy.optimize.minimize(objective, np.zeros(15), method="BFGS", options={"gtol": 1e-7})
            assert found.converged[setting]
            assert found.history[setting][-1] == pytest.approx(-best.fun, rel=1e-8)
            assert_allclose(found.coef[:, setting], best.x[:-3].reshape(4, 3), atol=2e-4)
            assert_allclose(found.intercept[setting], best.x[-3:], atol=2e-4)
            assert found.history[setting][-1] == pytest.approx(
                -objective(np.append(found.coef[:, setting].ravel(), found.intercept[setting])), abs=1e-6
            )

    def test_without_noise_it_is_logistic_regression(self):
        X, truth, _ = problem()
        found = solve_logistic(
            spectrum_of(X), truth, gamma=np.array([2.0]), rho=np.full((1, 3), 1e-12), tol=1e-10, max_iter=5000
        )
        logits = spectrum_of(X).project(X) @ found.coef[:, 0] + found.intercept[0]
        for label in range(3):
            known = LogisticRegression(C=0.5, tol=1e-10, max_iter=1000).fit(unit_rows(X), truth[:, label])
            assert_allclose(logits[:, label], known.decision_function(unit_rows(X)), atol=1e-5)

    @pytest.mark.parametrize("one", [False, True])
    @pytest.mark.parametrize("covariance", [None, B])
    def test_no_step_lowers_the_likelihood_in_plain_steps(self, one, covariance):
        X, _, Y = problem(n=40, seed=1)
        found = solve_logistic(
            spectrum_of(X), Y, gamma=np.array([1e-4, 0.1]), rho=RHO, covariance=covariance, tol=0.0,
            one_true=rows_with_candidates(Y) if one else None, memory=0, max_iter=300,
        )  # fmt: skip
        for history in found.history:
            assert np.diff(history).min() >= -1e-9 * abs(history[0])
            assert history[-1] > history[0] + 1

    def test_a_plain_step_gains_what_the_bound_on_the_curvature_promises(self):
        """At least half the squared gradient, in variables scaled by the bound.

        Given one true label, two rare labels exclude each other: the eigenvalue of their covariance is ½. With a bound of
        ¼ a step goes twice as far and gains next to nothing.
        """
        rng = np.random.default_rng(0)
        X = np.repeat([[1.0], [-1.0]], 50, axis=0) + 0.1 * rng.normal(size=(100, 1))
        Y = np.hstack([X > 0, X < 0, np.zeros((100, 4))]).astype(float)
        objective = _Objective(
            spectrum_of(X), Y, np.array([1e-3]), np.full((1, 6), 1e-5), rows_with_candidates(Y), None
        )
        x = np.zeros((2, 1, 6))
        for _ in range(20):
            value, gradient, _ = objective.evaluate(x)
            x = x + gradient
            gain = objective.evaluate(x)[0] - value
            assert gain[0] >= 0.5 * np.sum(gradient**2) - 1e-9

    @pytest.mark.parametrize("covariance", [None, B])
    def test_scaling_by_the_curvature_changes_variables_and_nothing_else(self, covariance):
        X, _, Y = problem()
        objective = _Objective(spectrum_of(X), Y, GAMMA, RHO, None, covariance)
        x = 3 * np.random.default_rng(0).normal(size=(5, 2, 3))
        value, gradient, steepest = objective.evaluate(x)
        scaled, new_x, new_gradient = objective.scale_by_curvature(x, gradient)
        found = scaled.evaluate(new_x)
        for known, other in zip((value, new_gradient, steepest), found, strict=True):
            assert_allclose(other, known, rtol=1e-9)
        for one, other in zip(scaled.parameters(new_x), objective.parameters(x), strict=True):
            assert_allclose(one, other, rtol=1e-9)

    def test_scaled_variables_have_unit_curvature(self):
        # Without noise and covariance nothing is clipped or neglected but the off-diagonal.
        X, truth, _ = problem()
        objective = _Objective(spectrum_of(X), truth, GAMMA, np.full((2, 3), 1e-12), None, None)
        x = np.random.default_rng(0).normal(size=(5, 2, 3))
        scaled, x, _ = objective.scale_by_curvature(x, objective.evaluate(x)[1])
        for place in np.ndindex(5, 2, 3):
            step = np.zeros_like(x)
            step[place] = 1e-4
            change = scaled.evaluate(x - step)[1] - scaled.evaluate(x + step)[1]
            assert change[place] / 2e-4 == pytest.approx(1, rel=1e-3)

    @pytest.mark.parametrize("one", [False, True])
    def test_noise_and_rare_labels_take_few_steps_and_no_step_lowers_the_likelihood(self, one, monkeypatch):
        rng = np.random.default_rng(1)
        X = rng.normal(size=(400, 60)) * np.geomspace(10, 0.05, 60)
        scores = X @ rng.normal(size=(60, 6))
        truth = 2 * scores / scores.std(axis=0) + rng.logistic(size=(400, 6)) > 4
        Y = np.maximum(truth, rng.random((400, 6)) < 0.3).astype(float)
        options = {"gamma": np.array([0.01]), "rho": np.full((1, 6), 0.3), "tol": 1e-6}
        options["one_true"] = rows_with_candidates(Y) if one else None
        found = solve_logistic(spectrum_of(X), Y, **options)
        monkeypatch.setattr("skpml.likelihood._solvers._FIRST_SCALING", 10_000)
        unscaled = solve_logistic(spectrum_of(X), Y, **options)
        assert all(found.converged)
        for history, longer in zip(found.history, unscaled.history, strict=True):
            assert np.diff(history).min() >= -1e-12 * abs(history[0])
            assert len(history) < 0.75 * len(longer)

    def test_a_plain_step_that_overshoots_is_shortened(self):
        steps = _Steps(3, np.zeros((2, 2, 1)))
        gradient = np.ones((2, 2, 1))
        for times in range(3):
            assert_allclose(steps.direction(gradient)[:, :, 0], [[0.5**times, 1]] * 2)
            step = steps.direction(gradient)
            steps.update(step, 0.5 * step, np.array([False, True]))
            # The second setting goes on along its curvature: its next step is a plain one for this test.
            steps.scale[1] = 1.0
            steps.pairs = []

    @pytest.mark.parametrize("one", [False, True])
    def test_converged_means_that_the_gradient_is_small_and_probabilities_are_final(self, one):
        X, _, Y = problem(n=150, d=30, c=4, seed=2)
        marked = rows_with_candidates(Y) if one else None
        settings = {"gamma": np.array([0.01, 0.1]), "rho": np.full((2, 4), 0.25), "one_true": marked}
        spectrum = spectrum_of(X)
        found = solve_logistic(spectrum, Y, **settings, covariance=label_covariance(Y))
        exact = solve_logistic(
            spectrum, Y, **settings, covariance=label_covariance(Y), tol=1e-9, max_iter=20_000
        )
        assert all(found.converged)
        assert all(exact.converged)
        eta, final = (
            1 / (1 + np.exp(-np.einsum("nr,rsc->nsc", spectrum.rows, each.coef) - each.intercept))
            for each in (found, exact)
        )
        assert np.abs(eta - final).max() < 0.01
        cut = solve_logistic(spectrum, Y, **settings, covariance=label_covariance(Y), max_iter=5)
        assert cut.converged == [False, False]
        assert [len(history) for history in cut.history] == [5, 5]

    def test_earlier_steps_get_to_the_same_place_sooner(self):
        X, _, Y = problem()
        slow, fast = (
            solve_logistic(spectrum_of(X), Y, gamma=GAMMA, rho=RHO, memory=memory, tol=1e-7, max_iter=20000)
            for memory in (0, 5)
        )
        assert_allclose(fast.coef, slow.coef, atol=1e-3)
        assert sum(map(len, fast.history)) < 0.7 * sum(map(len, slow.history))

    def test_rows_without_candidates_are_not_promised_a_true_label(self):
        X, _, Y = problem()
        Y[:10] = 0
        found = solve_logistic(
            spectrum_of(X),
            Y,
            gamma=GAMMA,
            rho=RHO,
            one_true=rows_with_candidates(Y),
            tol=1e-10,
            max_iter=2000,
        )
        assert np.isfinite(found.coef).all()
        assert all(found.converged)

    def test_covariance_of_labels(self):
        rng = np.random.default_rng(0)
        R = rng.random((50, 3))
        assert_allclose(label_covariance(R), 0.7 * np.corrcoef(R.T) + 0.3 * np.eye(3), atol=1e-12)
        R[:, 1] = 0.5
        assert_allclose(label_covariance(R)[1], [0, 1, 0], atol=1e-12)


class TestLeastSquares:
    def test_held_out_scores_are_those_of_regressions_without_the_row(self):
        X, _, Y = problem(n=25)
        spectrum = spectrum_of(X)
        _, _, held_out = ridge_scores(spectrum, np.stack([Y, Y], axis=1), GAMMA)
        assert (leverages(spectrum, GAMMA) < 1).all()
        for setting, gamma in enumerate(GAMMA):
            for row in range(25):
                others = np.arange(25) != row
                # Ridge on centred features, the intercept free: the row taken out of a fit with that very centre.
                design = np.hstack([unit_rows(X), np.ones((25, 1))])
                penalty = np.diag([gamma] * 4 + [0.0])
                coef = np.linalg.solve(
                    design[others].T @ design[others] + penalty, design[others].T @ Y[others]
                )
                assert_allclose(held_out[row, setting], design[row] @ coef, atol=1e-10)

    def test_without_noise_it_is_ridge_regression(self):
        X, _, Y = problem()
        found = solve_least_squares(spectrum_of(X), Y, gamma=np.array([2.0]), rho=np.full((1, 3), 1e-15))
        known = Ridge(alpha=2.0).fit(unit_rows(X), Y)
        scores = spectrum_of(X).rows @ found.coef[:, 0] + found.intercept[0]
        assert_allclose(scores, known.predict(unit_rows(X)), atol=1e-8)

    @pytest.mark.parametrize("one", [False, True])
    def test_it_ends_where_regression_and_posterior_agree(self, one):
        X, _, Y = problem()
        spectrum = spectrum_of(X)
        marked = rows_with_candidates(Y) if one else None
        found = solve_least_squares(
            spectrum, Y, gamma=GAMMA, rho=RHO, one_true=marked, tol=1e-13, max_iter=5000
        )
        assert all(found.converged)
        r = posterior(found.held_out, RHO, Y[:, None])
        if one:
            some = 1 - np.prod(1 - r, axis=2, keepdims=True)
            r = np.where(some > 0, r / np.where(some > 0, some, 1), 0)
        assert_allclose(found.targets, r, atol=1e-9)
        assert (found.targets <= Y[:, None]).all()

    @pytest.mark.parametrize("one", [False, True])
    def test_it_does_not_swing_between_two_states(self, one):
        """With a narrow kernel and a small weight, undamped rounds swing forever: their changes stay near 1."""
        digits = load_digits_attributes(random_state=0).subset(range(150))
        kernel = RBFAnchors(width=0.5, random_state=0).fit_transform(RangeScaler().fit_transform(digits.X))
        Y = digits.candidates.astype(float)
        gamma, rho = np.array([1e-4, 1e-3, 1e-2]), np.full((3, Y.shape[1]), 0.3)
        marked = rows_with_candidates(Y) if one else None
        found = solve_least_squares(spectrum_of(kernel[:, :-1]), Y, gamma=gamma, rho=rho, one_true=marked)
        assert found.converged == [True, True, True]
        assert max(history[-1] for history in found.history) <= 1e-4

    def test_noise_is_taken_off(self):
        X, truth, Y = problem(n=2000, seed=3)
        found = solve_least_squares(spectrum_of(X), Y, gamma=np.array([0.3]), rho=np.full((1, 3), 0.3))
        mean = found.targets[:, 0].mean(axis=0)
        assert (np.abs(mean - truth.mean(axis=0)) < 0.5 * (Y - truth).mean(axis=0)).all()


def _solutions(spectrum, Y, gamma, rho, one):
    marked = rows_with_candidates(Y) if one else None
    logistic = solve_logistic(spectrum, Y, gamma=gamma, rho=rho, one_true=marked, covariance=B)
    squares = solve_least_squares(spectrum, Y, gamma=gamma, rho=rho, one_true=marked)
    return logistic, squares


@pytest.mark.parametrize("one", [False, True])
def test_many_settings_at_once_are_many_settings_one_by_one(one):
    X, _, Y = problem()
    spectrum = spectrum_of(X)
    gamma = np.array([0.025, 0.25, 2.5, 0.75])
    rho = np.vstack([RHO, RHO / 2])
    together = _solutions(spectrum, Y, gamma, rho, one)
    for setting in range(4):
        alone = _solutions(spectrum, Y, gamma[[setting]], rho[[setting]], one)
        for many, single in zip(together, alone, strict=True):
            assert_allclose(many.coef[:, setting], single.coef[:, 0], atol=1e-9)
            assert_allclose(many.intercept[setting], single.intercept[0], atol=1e-9)
            assert_allclose(many.history[setting], single.history[0], rtol=1e-9, atol=1e-12)
            assert many.converged[setting] == single.converged[0]


def test_order_of_rows_and_labels_does_not_matter():
    X, _, Y = problem()
    rng = np.random.default_rng(1)
    rows, labels = rng.permutation(60), rng.permutation(3)
    spectrum = spectrum_of(X)
    turned = Spectrum(
        rows=spectrum.rows[rows],
        values=spectrum.values,
        mean=spectrum.mean,
        directions=spectrum.directions,
    )
    for one in (False, True):
        marked = rows_with_candidates(Y) if one else None
        for solver in (solve_logistic, solve_least_squares):
            plain = solver(spectrum, Y, gamma=GAMMA, rho=RHO, one_true=marked)
            moved = solver(
                turned, Y[rows][:, labels], gamma=GAMMA, rho=RHO[:, labels],
                one_true=None if marked is None else marked[rows],
            )  # fmt: skip
            assert_allclose(moved.coef, plain.coef[:, :, labels], atol=1e-9)
            assert_allclose(moved.intercept, plain.intercept[:, labels], atol=1e-9)


@pytest.mark.parametrize("one", [False, True])
def test_pytorch_gives_the_same(one):
    torch = pytest.importorskip("torch")
    X, _, Y = problem()
    known = _solutions(spectrum_of(X), Y, GAMMA, RHO, one)
    marked = torch.asarray(rows_with_candidates(Y)) if one else None
    spectrum = spectrum_of(torch.asarray(X))
    arguments = {"gamma": torch.asarray(GAMMA), "rho": torch.asarray(RHO), "one_true": marked}
    found = (
        solve_logistic(spectrum, torch.asarray(Y), covariance=torch.asarray(B), **arguments),
        solve_least_squares(spectrum, torch.asarray(Y), **arguments),
    )
    for ours, other in zip(known, found, strict=True):
        product = spectrum_of(X).directions @ ours.coef.reshape(4, -1)
        assert_allclose(spectrum.directions.numpy() @ other.coef.numpy().reshape(4, -1), product, atol=1e-9)
        assert_allclose(other.intercept.numpy(), ours.intercept, atol=1e-9)
