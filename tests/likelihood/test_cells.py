"""What verified cells teach: the Gaussian process by slow implementations, shares and drops by their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import binom, binomtest, hypergeom, t
from sklearn.linear_model import Ridge

from skpml.likelihood import _cells, certify_drops, estimate_share, learn_from_verified
from skpml.likelihood._cells import (
    _LEVEL,
    _SHARED_ANSWERS,
    _CellModel,
    _grams,
    _is_better,
    _laplace,
    _Part,
    _predict,
    _Regression,
)
from skpml.linalg import spectrum_of


def bound_log_odds(p):
    """Log-odds up to those of 0.98; beyond, the distance grows by its logarithm."""
    t = logit(np.clip(p, 1e-6, 1 - 1e-6))
    most = logit(0.98)
    far = np.maximum(np.abs(t) - most, 0)
    return np.where(far > 0, np.sign(t) * (most + np.log(1 + far)), t)


def make_cells(n=40, c=4, m=9, seed=0):
    """Candidates, answers in m of them and in two other cells, confidences, probabilities and features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    probabilities = expit(X @ rng.normal(size=(3, c)) + 0.3 * rng.normal(size=(n, c)))
    truth = rng.random((n, c)) < probabilities
    Y = (truth | (rng.random((n, c)) < 0.4)).astype(np.uint8)
    confidences = Y * expit(logit(probabilities) + 0.5)
    verified = np.zeros(Y.shape, dtype=np.int8)
    cells = rng.permutation(np.flatnonzero(Y))[:m]
    verified.flat[cells] = np.where(truth.flat[cells], 1, -1)
    others = np.flatnonzero(Y == 0)
    verified.flat[others[0]], verified.flat[others[-1]] = 1, -1
    return Y, verified, confidences, probabilities, spectrum_of(X)


def fix_scales(monkeypatch, scale=None):
    def start(self, rows, labels, answers):
        # The weight of the regression is chosen with the scales, before any answer is seen.
        parts = self._parts(self._targets(rows, labels))
        return 1.0, np.array([part.start if scale is None else scale for part in parts])

    monkeypatch.setattr(_CellModel, "choose_scales", start)


def make_parts(n=7, c=3, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return [
        _Part(values=rng.normal(size=shape), by_label=by_label, start=1.0)
        for shape in ((1, 1, 1), (n, 1, d), (n, c, d))
        for by_label in (False, True)
    ]


def covary(part, one, other):
    """The covariance of two cells (row, label) by its definition."""
    at = np.broadcast_to(part.values, (7, 3, part.values.shape[2]))
    return float(at[one] @ at[other]) if one[1] == other[1] or not part.by_label else 0.0


class TestProcess:
    rows, labels = np.array([0, 2, 2, 6, 5]), np.array([1, 1, 0, 2, 0])

    @pytest.mark.parametrize("part", make_parts(), ids=lambda part: f"{part.values.shape}-{part.by_label}")
    def test_covariance_and_mean_are_those_of_explicit_kernels(self, part):
        seen = list(zip(self.rows, self.labels, strict=True))
        gram = [[covary(part, one, other) for other in seen] for one in seen]
        assert_allclose(_grams([part], self.rows, self.labels)[0], gram, atol=1e-12)
        alpha = np.array([0.3, -1.0, 0.2, 2.0, -0.7])
        slow = [[sum(a * covary(part, (i, j), at) for a, at in zip(alpha, seen, strict=True))
                 for j in range(3)] for i in range(7)]  # fmt: skip
        found = _predict(part, self.rows, self.labels, alpha, (7, 3))
        assert found.shape == (7, 3)
        assert_allclose(found, slow, atol=1e-12)

    @pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
    def test_laplace_finds_the_mode_and_the_evidence(self, scale):
        rng = np.random.default_rng(1)
        root = rng.normal(size=(6, 6))
        gram = scale * (root @ root.T / 6 + 0.1 * np.eye(6))
        offset, answers = rng.normal(size=6), np.array([1.0, 1, 0, 0, 1, 0])
        inverse = np.linalg.inv(gram)

        def loss(f):
            fit = np.logaddexp(0, -(2 * answers - 1) * (offset + f)).sum()
            return fit + f @ inverse @ f / 2

        mode = minimize(loss, np.zeros(6), method="Nelder-Mead", options={
            "xatol": 1e-9, "fatol": 1e-13, "maxiter": 20_000, "maxfev": 20_000, "adaptive": True}).x  # fmt: skip
        step = 1e-4
        moved = step * np.eye(6)
        hessian = np.array([[
            loss(mode + a + b) - loss(mode + a - b) - loss(mode - a + b) + loss(mode - a - b) for b in moved
        ] for a in moved]) / (4 * step**2)  # fmt: skip
        # The integral of the prior density times the likelihood, with a Gaussian of this curvature around its mode.
        evidence = -loss(mode) - np.linalg.slogdet(hessian)[1] / 2 - np.linalg.slogdet(gram)[1] / 2
        found, alpha = _laplace(gram, offset, answers)
        assert_allclose(gram @ alpha, mode, atol=2e-4)
        assert_allclose(found, evidence, atol=1e-4)

    def test_without_variance_the_evidence_is_the_likelihood(self):
        offset, answers = np.array([-1.0, 2.0, 0.5]), np.array([0.0, 1.0, 0.0])
        found, alpha = _laplace(np.zeros((3, 3)), offset, answers)
        assert_allclose(found, np.log([expit(1.0), expit(2.0), expit(-0.5)]).sum(), atol=1e-5)
        # Weights are the residuals at the mode.
        assert_allclose(alpha, answers - expit(offset), atol=1e-5)

    def test_answers_far_from_the_prior_do_not_diverge(self):
        gram = 400 * np.ones((8, 8))
        found, alpha = _laplace(gram, np.full(8, -6.0), np.ones(8))
        f = gram @ alpha
        assert_allclose(alpha, 1 - expit(f - 6), atol=1e-4)
        assert found < 0

    def test_weight_space_gives_the_same_fit(self):
        """Regression with one weight for each feature and label is the same model as the process."""
        Y, verified, confidences, probabilities, _ = make_cells(m=20)
        known = np.where(verified != 0, verified > 0, confidences).astype(float)
        model = _CellModel(Y, known, confidences, probabilities, None)
        rows, labels = np.nonzero((Y > 0) & (verified != 0))
        answers = (verified[rows, labels] > 0).astype(float)
        nothing = rows[:0], labels[:0]
        parts = model._parts(model._targets(*nothing))
        trust, scales = 0.4, np.linspace(0.3, 1.2, len(parts))
        n, c = Y.shape
        columns = [np.full((n, c), _LEVEL)]
        for part, scale in zip(parts, scales, strict=True):
            values = scale * np.broadcast_to(part.values, (n, c, part.values.shape[2]))
            for own in np.eye(c) if part.by_label else [np.ones(c)]:
                columns += list(np.moveaxis(values * own[:, None], 2, 0))
        design = np.stack(columns, axis=-1)
        offset = trust * bound_log_odds(confidences)
        seen, sign = design[rows, labels], 2 * answers - 1

        def loss(w):
            logits = offset[rows, labels] + seen @ w
            slope = seen.T @ (-sign * expit(-sign * logits)) + w
            return np.logaddexp(0, -sign * logits).sum() + w @ w / 2, slope

        w = minimize(loss, np.zeros(design.shape[2]), jac=True, options={"gtol": 1e-9}).x
        found = model.fit(rows, labels, answers, trust, scales, unseen=nothing)
        assert_allclose(found, expit(offset + design @ w), atol=1e-4)


class TestRegression:
    def test_scores_of_a_row_are_those_without_it(self):
        *_, spectrum = make_cells(n=25)
        targets = np.random.default_rng(0).random((25, 3))
        regression = _Regression(spectrum)
        found = regression.scores(targets)
        Z = spectrum.rows
        for i in range(25):
            others = np.arange(25) != i
            slow = Ridge(alpha=regression.gamma).fit(Z[others], targets[others]).predict(Z[[i]])
            assert_allclose(found[i], slow[0], atol=1e-9)

    def test_the_weight_has_the_least_error_without_the_row(self):
        *_, spectrum = make_cells(n=60)
        rng = np.random.default_rng(0)
        for targets in (rng.random((60, 3)), spectrum.rows[:, :1] + 0.01 * rng.normal(size=(60, 1))):
            regression = _Regression(spectrum)
            least = np.sum((regression.scores(targets) - targets) ** 2)
            for gamma in 10.0 ** np.arange(-3, 1.01, 0.5):
                other = _Regression(spectrum)
                assert np.sum((other._fit(targets, gamma) - targets) ** 2) >= least - 1e-9


class TestLearning:
    def test_nothing_changes_without_verified_candidates(self):
        Y, verified, confidences, probabilities, spectrum = make_cells()
        for checked in (np.zeros_like(verified), np.where(Y > 0, 0, verified)):
            found = learn_from_verified(Y, checked, confidences, probabilities, spectrum=spectrum)
            assert_array_equal(found.confidences, confidences)
            assert_array_equal(found.judged, confidences)
            assert_array_equal(found.targets, np.where(checked > 0, 1.0, confidences))

    @pytest.mark.parametrize("features", [True, False])
    @pytest.mark.parametrize("m", [1, 2, 9, 33])
    def test_answers_are_exact_where_they_were_given(self, m, features):
        Y, verified, confidences, probabilities, spectrum = make_cells(m=m)
        spectrum = spectrum if features else None
        found = learn_from_verified(Y, verified, confidences, probabilities, spectrum=spectrum)
        assert_array_equal(
            found.confidences[(Y > 0) & (verified != 0)], verified[(Y > 0) & (verified != 0)] > 0
        )
        assert_array_equal(found.targets[verified != 0], verified[verified != 0] > 0)
        for name in ("confidences", "judged"):
            assert_array_equal(found[name][Y == 0], 0)
        # What nobody checked is neither sure nor impossible, and the same everywhere.
        unknown = (Y > 0) & (verified == 0)
        assert ((found.confidences > 0) & (found.confidences < 1))[unknown].all()
        assert_array_equal(found.judged[unknown], found.confidences[unknown])
        assert_array_equal(found.targets[unknown], found.confidences[unknown])
        assert ((found.judged > 0) & (found.judged < 1))[Y > 0].all()

    @pytest.mark.parametrize("features", [True, False])
    def test_an_answer_does_not_reach_the_value_of_its_own_cell(self, monkeypatch, features):
        fix_scales(monkeypatch)
        Y, verified, confidences, probabilities, spectrum = make_cells(m=25)
        given = {"spectrum": spectrum if features else None}
        before = learn_from_verified(Y, verified, confidences, probabilities, **given)
        cells = np.argwhere((Y > 0) & (verified != 0))
        for row, label in cells[::6]:
            changed = verified.copy()
            changed[row, label] *= -1
            after = learn_from_verified(Y, changed, confidences, probabilities, **given)
            assert after.judged[row, label] == before.judged[row, label]
            # All cells outside its fold learn from it.
            moved = np.count_nonzero(after.judged != before.judged)
            assert moved >= np.count_nonzero(Y) - np.ceil(len(cells) / 10)
            toward = np.sign(after.confidences - before.confidences)[(Y > 0) & (verified == 0)]
            assert np.sign(toward.sum()) == changed[row, label]

    def test_cells_that_nobody_checked_get_the_mean_of_the_folds(self, monkeypatch):
        fix_scales(monkeypatch)
        Y, verified, confidences, probabilities, spectrum = make_cells(m=5)
        fits = []
        fit = _CellModel.fit
        monkeypatch.setattr(_CellModel, "fit", lambda *a, **k: fits.append(fit(*a, **k)) or fits[-1])
        found = learn_from_verified(Y, verified, confidences, probabilities, spectrum=spectrum)
        assert len(fits) == 5
        unknown = (Y > 0) & (verified == 0)
        assert_allclose(found.confidences[unknown], np.mean(fits, axis=0)[unknown], atol=1e-12)

    def test_scales_of_zero_leave_the_prior(self, monkeypatch):
        fix_scales(monkeypatch, scale=0.0)
        monkeypatch.setattr(_cells, "_LEVEL", 0.0)
        Y, verified, confidences, probabilities, spectrum = make_cells()
        found = learn_from_verified(Y, verified, confidences, probabilities, spectrum=spectrum)
        prior = np.where(Y > 0, expit(bound_log_odds(confidences)), 0.0)
        assert_allclose(found.judged, prior, atol=1e-12)

    @pytest.mark.parametrize("features", [True, False])
    @pytest.mark.parametrize("seed", [0, 3])
    def test_order_of_rows_and_labels_does_not_matter(self, features, seed):
        # With at most ten answers each is a fold of its own, in any order. The second case has equal scores in a row.
        Y, verified, confidences, probabilities, spectrum = make_cells(m=9, seed=seed)
        rng = np.random.default_rng(0)
        i, j = rng.permutation(Y.shape[0]), rng.permutation(Y.shape[1])
        X = spectrum.rows
        given = {"spectrum": spectrum if features else None}
        mixed = {"spectrum": spectrum_of(X[i]) if features else None}
        one = learn_from_verified(Y, verified, confidences, probabilities, **given)
        other = learn_from_verified(
            *(each[i][:, j] for each in (Y, verified, confidences, probabilities)), **mixed
        )
        for name in ("confidences", "judged", "targets"):
            assert_allclose(other[name], one[name][i][:, j], atol=1e-9)

    def test_the_seed_chooses_folds_only(self, monkeypatch):
        fix_scales(monkeypatch)
        Y, verified, confidences, probabilities, spectrum = make_cells(m=9)
        first, second = (learn_from_verified(Y, verified, confidences, probabilities, spectrum=spectrum,
                                             random_state=seed) for seed in (0, 1))  # fmt: skip
        assert_allclose(first.judged, second.judged, atol=1e-12)

    @pytest.mark.parametrize("answer", [-1, 1])
    def test_one_answer_explains_nothing(self, answer):
        Y, verified = np.ones((6, 2), dtype=np.uint8), np.zeros((6, 2), dtype=np.int8)
        verified[0, 0] = answer
        for p in np.linspace(0.001, 0.999, 99):
            same = np.full(Y.shape, p)
            found = learn_from_verified(Y, verified, same, same)
            assert not found.better
            assert_allclose(found.judged, expit(bound_log_odds(p)))

    def test_answers_must_gain_three_standard_errors(self):
        rng = np.random.default_rng(0)
        before = rng.uniform(0.1, 0.9, size=50)
        answers = (rng.random(50) < before).astype(float)
        decisions = set()
        for step in np.linspace(0, 2, 30):
            judged = expit(logit(before) + step * (answers - 0.5) + rng.normal(size=50))
            gain = np.where(answers > 0, np.log(judged / before), np.log((1 - judged) / (1 - before)))
            better = gain.mean() > 3 * gain.std(ddof=1) / np.sqrt(50)
            assert _is_better(judged, before, answers) == better
            decisions.add(bool(better))
        assert decisions == {False, True}

    def test_a_label_that_is_always_wrong_is_learned(self):
        """All confidences are the same; answers alone tell that candidates of the first label are wrong."""
        rng = np.random.default_rng(0)
        Y = np.ones((100, 3), dtype=np.uint8)
        verified = np.zeros(Y.shape, dtype=np.int8)
        verified[:20] = [-1, 1, 1]
        half = np.full(Y.shape, 0.5)
        found = learn_from_verified(Y, verified, half, half, spectrum=spectrum_of(rng.normal(size=(100, 2))))
        assert (found.confidences[20:, 0] < 0.2).all()
        assert (found.confidences[20:, 1:] > 0.8).all()
        assert (found.judged[:20, 0] < 0.3).all()
        assert found.better

    def choose(self, answers, confidences):
        """Choose scales for one label after another in rows without features."""
        Y = np.ones(answers.shape, dtype=np.uint8)
        model = _CellModel(Y, confidences, confidences, confidences, None)
        rows, labels = np.nonzero(Y)
        order = np.random.default_rng(0).permutation(len(rows))
        rows, labels = rows[order], labels[order]
        return model.choose_scales(rows, labels, answers[rows, labels].astype(float))

    def test_trust_is_that_of_answers(self):
        """Answers that follow confidences keep the trust in them, and answers by chance take it away."""
        rng = np.random.default_rng(0)
        confidences = rng.uniform(0.02, 0.98, size=(90, 3))
        followed, _ = self.choose(rng.random((90, 3)) < confidences, confidences)
        ignored, _ = self.choose(rng.random((90, 3)) < 0.5, confidences)
        none, _ = self.choose(np.zeros((90, 3))[:1] > 0, confidences[:1])
        assert 0 < ignored < 0.3 < none < 0.6 < followed <= 1

    def test_a_part_that_explains_answers_gets_a_large_scale(self):
        """The first part are the levels of labels."""
        rng = np.random.default_rng(0)
        half = np.full((60, 5), 0.5)
        chance = [[0.5], [0.02, 0.98, 0.02, 0.98, 0.02]]
        same, different = (self.choose(rng.random((60, 5)) < each, half)[1] for each in chance)
        assert same[0] < 0.3 < 1.0 < different[0]

    def test_scales_are_means_over_the_posterior(self, monkeypatch):
        """With equal evidence those of the prior; if one choice is surely true, that choice."""
        rng = np.random.default_rng(0)
        confidences, answers = rng.uniform(0.1, 0.9, size=(9, 2)), rng.random((9, 2)) < 0.5
        seen = []

        def laplace(gram, offset, answers):
            seen.append((gram, offset))
            return evidence[len(seen) - 1], None

        monkeypatch.setattr(_cells, "_laplace", laplace)
        evidence = np.zeros(1000)
        trust, scales = self.choose(answers, confidences)
        n = len(seen)
        trusts = [each[1][0] / seen[0][1][0] for each in seen]
        expected = np.exp(np.mean(np.log(trusts)))
        parts = np.array([0.5, 0.5, 0.35, 0.25, 1.0])
        assert_allclose(np.log2(scales / parts), 0, atol=0.4)
        for place in (3, n - 1):
            seen.clear()
            evidence = np.where(np.arange(1000) == place, 1e6, 0.0)
            one, _ = self.choose(answers, confidences)
            assert_allclose(one / trust, trusts[place] / expected)


def reach(n):
    """Standard errors from the middle to the end of a 90 % interval."""
    return _SHARED_ANSWERS * t.ppf(0.95, n - 2)


class TestShare:
    def make_sample(self, n=120, n_all=3000, seed=0, base=0.4):
        """Predictions of all, of a random sample, and whether it is wrong."""
        rng = np.random.default_rng(seed)
        everything = expit(rng.normal(logit(base), 1.5, size=n_all))
        wrong = rng.random(n_all) < everything
        cells = rng.permutation(n_all)[:n]
        return wrong, everything, cells

    def test_constant_predictions_leave_the_plain_mean(self):
        wrong = np.arange(80) < 30
        share, low, high = estimate_share(wrong, np.full(80, 0.2), np.full(1000, 0.2))
        # One degree of freedom for the mean and one for the slope.
        deviation = np.sqrt(80 * (3 / 8) * (5 / 8) / 78 / 80 * (1 - 80 / 1000))
        assert_allclose((share, low, high), 3 / 8 + reach(80) * deviation * np.array([0, -1, 1]))

    def test_perfect_predictions_leave_nothing_open(self):
        wrong, _, cells = self.make_sample()
        assert_allclose(
            estimate_share(wrong[cells], wrong[cells] * 1.0, wrong * 1.0), wrong.mean(), atol=1e-12
        )

    def test_predictions_of_the_wrong_sign_are_not_used(self):
        wrong, predicted, cells = self.make_sample()
        found = estimate_share(wrong[cells], 1 - predicted[cells], 1 - predicted)
        assert_allclose(found, estimate_share(wrong[cells], np.full(120, 0.5), np.full(3000, 0.5)))

    def test_a_shift_of_the_predictions_changes_nothing(self):
        wrong, predicted, cells = self.make_sample()
        found = estimate_share(wrong[cells], predicted[cells], predicted)
        assert_allclose(estimate_share(wrong[cells], predicted[cells] + 0.3, predicted + 0.3), found)
        # Order does not matter either.
        mixed = np.random.default_rng(1).permutation(120)
        assert_allclose(estimate_share(wrong[cells][mixed], predicted[cells][mixed], predicted[::-1]), found)

    def test_slope_is_that_of_least_squares(self):
        wrong, predicted, cells = self.make_sample()
        # Predictions that are too sure.
        predicted = expit(2 * logit(predicted))
        e, f = wrong[cells] * 1.0, predicted[cells]
        slope, _ = np.polyfit(f, e, 1)
        assert 0 < slope < 1
        share, low, high = estimate_share(wrong[cells], f, predicted)
        assert_allclose(share, e.mean() + slope * (predicted.mean() - f.mean()))
        residual = e - np.polyval(np.polyfit(f, e, 1), f)
        deviation = np.sqrt(residual @ residual / 118 / 120 * (1 - 120 / 3000))
        assert_allclose((low, high), share + reach(120) * deviation * np.array([-1, 1]))

    @pytest.mark.parametrize("level", [0.8, 0.95])
    @pytest.mark.parametrize(("n_wrong", "n"), [(0, 10), (3, 10), (10, 10), (20, 49), (7, 90), (85, 90)])
    def test_few_cells_or_answers_get_the_exact_interval(self, n_wrong, n, level):
        predicted = np.linspace(0, 1, n)
        # So many cells that the sample is hardly a part of them: the interval of Clopper and Pearson.
        everything = np.broadcast_to(0.5, 10**7)
        share, low, high = estimate_share(np.arange(n) < n_wrong, predicted, everything, level=level)
        expected = binomtest(n_wrong, n).proportion_ci(level, method="exact")
        assert_allclose((share, low, high), (n_wrong / n, *expected), atol=1e-5)

    @pytest.mark.parametrize(("n_all", "n"), [(60, 12), (40, 39), (9, 1)])
    def test_the_exact_interval_has_every_count_that_is_not_too_unlikely(self, n_all, n):
        level, everything = 0.9, np.full(n_all, 0.5)
        for n_wrong in range(n + 1):
            _, low, high = estimate_share(np.arange(n) < n_wrong, everything[:n], everything, level=level)
            counts = np.arange(n_all + 1)
            at_most = hypergeom.cdf(n_wrong, n_all, counts, n)
            at_least = hypergeom.sf(n_wrong - 1, n_all, counts, n)
            allowed = counts[np.minimum(at_most, at_least) >= 0.05 - 1e-9]
            assert_allclose((low * n_all, high * n_all), (allowed[0], allowed[-1]), atol=1e-9)

    @pytest.mark.parametrize("n_wrong", [0, 3, 20, 41, 60])
    def test_the_exact_interval_holds_at_least_as_often_as_promised(self, n_wrong):
        n_all, n, held = 60, 15, 0.0
        for found in range(n + 1):
            _, low, high = estimate_share(np.arange(n) < found, np.full(n, 0.5), np.full(n_all, 0.5))
            if low - 1e-9 <= n_wrong / n_all <= high + 1e-9:
                held += hypergeom.pmf(found, n_all, n_wrong, n)
        assert held >= 0.9

    @pytest.mark.parametrize("n", [30, 120])
    def test_a_sample_of_all_leaves_nothing_open(self, n):
        wrong, predicted, _ = self.make_sample(n_all=n, n=n)
        assert_allclose(estimate_share(wrong, predicted, predicted), wrong.mean(), atol=1e-12)

    def test_without_a_sample_everything_is_open(self):
        nothing = np.empty(0)
        found = estimate_share(nothing.astype(bool), nothing, np.array([0.2, 0.4]))
        assert_allclose(found, (0.3, 0, 1))

    def test_wider_at_a_higher_level_and_within_0_and_1(self):
        for n in (20, 120):
            wrong, predicted, cells = self.make_sample(n=n)
            widths = []
            for level in (0.5, 0.9, 0.999):
                share, low, high = estimate_share(wrong[cells], predicted[cells], predicted, level=level)
                assert 0 <= low <= share <= high <= 1
                widths.append(high - low)
            assert widths[0] < widths[1] < widths[2]

    @pytest.mark.parametrize(
        ("n", "n_all", "base"), [(30, 400, 0.3), (100, 400, 0.3), (100, 3000, 0.15), (300, 3000, 0.3)]
    )
    def test_intervals_hold_as_often_as_promised(self, n, n_all, base):
        n_draws, level = 600, 0.9
        wrong, predicted, _ = self.make_sample(n_all=n_all, base=base)
        rng = np.random.default_rng(1)
        plain, held, width = np.zeros(n_draws), 0, 0.0
        for draw in range(n_draws):
            cells = rng.permutation(n_all)[:n]
            _, low, high = estimate_share(wrong[cells], predicted[cells], predicted, level=level)
            held += low <= wrong.mean() <= high
            width += (high - low) / n_draws
            ends = binomtest(int(wrong[cells].sum()), n).proportion_ci(level, method="exact")
            plain[draw] = ends.high - ends.low
        # Three standard errors of the count; the normal approximation may cost one in a hundred.
        assert held / n_draws >= level - 0.01 - 3 * np.sqrt(level * (1 - level) / n_draws)
        assert width < plain.mean()


def certify_slowly(confidences, wrong, precision, level):
    """Sets by growing confidence, each with all cells of the same confidence, until one is not shown to be precise."""
    most = -1.0
    for limit in np.unique(confidences):
        among = wrong[confidences <= limit]
        if precision ** len(among) > 1 - level:
            continue
        # Probability of so many wrong ones or more, if the share of wrong ones were only the promised one.
        chance = sum(binom.pmf(k, len(among), precision) for k in range(among.sum(), len(among) + 1))
        if chance > 1 - level:
            break
        most = limit
    return most


class TestCertificates:
    @pytest.mark.parametrize("ties", [False, True])
    def test_by_definition(self, ties):
        rng = np.random.default_rng(0)
        some = []
        for _ in range(60):
            n, precision, level = (
                int(rng.integers(1, 120)),
                rng.choice([0.5, 0.7, 0.9]),
                rng.choice([0.8, 0.95]),
            )
            sure = rng.integers(1, 9, size=n) / 10 if ties else rng.random(n)
            wrong = rng.random(n) > sure**2
            found = certify_drops(sure, wrong, precision=precision, level=level)
            assert found == certify_slowly(sure, wrong, precision, level)
            some.append(found)
        assert min(some) == -1
        assert len(set(some)) > 5

    def test_29_wrong_cells_are_the_fewest_at_nine_in_ten(self):
        sure = np.linspace(0.1, 0.2, 29)
        assert certify_drops(sure[:28], np.ones(28, dtype=bool), precision=0.9) == -1
        assert certify_drops(sure, np.ones(29, dtype=bool), precision=0.9) == sure[-1]
        assert certify_drops(sure, np.arange(29) != 13, precision=0.9) == -1
        assert certify_drops(sure[:0], np.ones(0, dtype=bool), precision=0.9) == -1

    def test_order_does_not_matter(self):
        rng = np.random.default_rng(0)
        sure = rng.integers(1, 50, size=200) / 100
        wrong = rng.random(200) > sure**2
        found = certify_drops(sure, wrong, precision=0.9)
        assert found > 0
        mixed = rng.permutation(200)
        assert certify_drops(sure[mixed], wrong[mixed], precision=0.9) == found

    def test_the_more_is_promised_the_less_is_dropped(self):
        rng = np.random.default_rng(0)
        sure = rng.random(400)
        wrong = rng.random(400) > sure**3
        found = [certify_drops(sure, wrong, precision=p) for p in (0.5, 0.7, 0.9)]
        assert found[0] > found[1] > found[2]

    @pytest.mark.parametrize("case", ["flat", "line", "steps"])
    def test_the_promise_is_kept(self, case):
        """In at most 5 % of draws, fewer than the promised share of what is dropped is wrong."""
        n_draws, n, precision = 1000, 150, 0.9
        rng = np.random.default_rng(0)
        sure = rng.random(20_000)
        if case == "steps":
            sure = np.where(sure < 0.3, 0.1, 0.5)
        share = {
            "flat": 0.897 + 0 * sure,
            "line": 1 - 0.3 * sure**2,
            "steps": np.where(sure < 0.3, 1.0, 0.5),
        }[case]
        wrong = rng.random(len(sure)) < share
        broken = some = 0
        for _ in range(n_draws):
            cells = rng.integers(len(sure), size=n)
            most = certify_drops(sure[cells], wrong[cells], precision=precision)
            dropped = sure <= most
            some += dropped.any()
            broken += dropped.any() and wrong[dropped].mean() < precision
        assert broken / n_draws <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n_draws)
        assert some > (0.01 if case == "flat" else 0.5) * n_draws
