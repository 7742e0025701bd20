"""Audits with verified cells: a person is never overruled, drops and counts rest on random samples of the candidates."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array, csr_matrix
from scipy.special import expit
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from skpml.cleaning import audit
from skpml.cleaning._judging import count_from_sample, count_without_noise
from skpml.datasets import load_digits_attributes
from skpml.likelihood import estimate_share


def make_rows(n=300, c=5, rate=0.3, seed=0):
    """Candidates, their truth, and held-out probabilities; noise is random."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(-2, 3, size=(n, c))
    truth = rng.random((n, c)) < expit(logits)
    Y = (truth | (rng.random((n, c)) < rate)).astype(np.uint8)
    return Y, truth, expit(logits)


def verify(Y, truth, m, seed=0, wrong=False):
    """Answers to m random candidates; if ``wrong``, the opposite of the truth."""
    cells = np.random.default_rng(seed).permutation(np.flatnonzero(Y))[:m]
    verified = np.zeros(Y.shape, dtype=np.int8)
    verified.flat[cells] = np.where(truth.flat[cells] != wrong, 1, -1)
    return verified


class TestActions:
    @pytest.mark.parametrize("at_random", [False, True])
    @pytest.mark.parametrize("budget", [None, 0, 20, 10_000])
    @pytest.mark.parametrize("wrong", [False, True])
    def test_a_person_is_never_overruled(self, budget, at_random, wrong):
        Y, truth, eta = make_rows()
        verified = verify(Y, truth, 150, wrong=wrong)
        verified[np.unravel_index(np.flatnonzero(Y == 0)[:40], Y.shape)] = np.tile([1, -1], 20)
        options = {"at_random": at_random, "budget": budget, "drop_precision": 0.8}
        found = audit(None, Y, probabilities=eta, verified=verified, **options)
        candidate = Y > 0
        assert_array_equal(found.confidences[verified != 0], verified[verified != 0] > 0)
        assert (found.actions[candidate & (verified > 0)] == "keep").all()
        assert (found.actions[candidate & (verified < 0)] == "drop").all()
        assert (found.actions[~candidate] == "").all()
        assert (found.actions[candidate] != "").all()
        assert not any(verified[doubt.row, doubt.label] for doubt in found.doubts)
        assert not any(verified[question.row, question.label] for question in found.batch)
        assert_array_equal(found.clean_labels()[verified > 0], 1)
        assert_array_equal(found.clean_labels()[verified < 0], 0)
        if not wrong:
            # The cases differ: some drops are automatic, and some are not.
            assert (found.evidence.drops == "verified") == at_random
            automatic = (found.actions == "drop") & (verified == 0)
            assert automatic.any() == (budget != 10_000)

    @pytest.mark.parametrize("budget", [None, 0])
    @pytest.mark.parametrize("given", ["nothing", "chosen", "sample"])
    def test_the_last_tag_of_a_row_is_asked_about(self, budget, given):
        Y, truth, eta = make_rows()
        verified = np.zeros(Y.shape, dtype=np.int8) if given == "nothing" else verify(Y, truth, 150)
        options = {"at_random": given == "sample", "drop_precision": 0.8, "budget": budget}
        found = audit(None, Y, probabilities=eta, verified=verified, **options)
        assert found.evidence.drops == ("verified" if given == "sample" else "random noise")
        emptied = ~found.clean_labels().any(axis=1) & Y.any(axis=1)
        # Only a person may empty a row.
        assert_array_equal(emptied, Y.any(axis=1) & ((verified < 0) == (Y > 0)).all(axis=1))
        last = ((found.actions == "ask").sum(axis=1) == 1) & ~(found.actions == "keep").any(axis=1)
        last &= ((found.actions == "drop") & (verified == 0)).any(axis=1)
        assert last.sum() > 10
        best = np.where((Y > 0) & (verified == 0), found.confidences, -1.0).argmax(axis=1)
        assert (found.actions[last, best[last]] == "ask").all()
        if given != "nothing":
            # In some of these rows a person found another tag wrong.
            assert (verified[last] < 0).any()

    def test_nothing_changes_without_verified_cells(self):
        Y, _, eta = make_rows()
        plain = audit(None, Y, probabilities=eta)
        empty = audit(None, Y, probabilities=eta, verified=np.zeros(Y.shape), at_random=True)
        assert_array_equal(plain.confidences, empty.confidences)
        assert_array_equal(plain.actions, empty.actions)
        assert plain.wrong.total == empty.wrong.total
        assert np.isnan(plain.evidence.auc)
        assert (plain.evidence.n_verified, plain.evidence.n_sample) == (0, 0)

    def test_verified_labels_outside_the_candidates_change_no_candidate(self):
        Y, _, eta = make_rows()
        verified = np.where(Y > 0, 0, np.where(np.arange(len(Y))[:, None] % 2, 1, -1))
        plain = audit(None, Y, probabilities=eta)
        found = audit(None, Y, probabilities=eta, verified=verified, at_random=True)
        assert_array_equal(found.confidences, np.where(Y > 0, plain.confidences, verified > 0))
        assert_array_equal(found.actions, plain.actions)
        assert found.wrong.total == plain.wrong.total
        assert found.evidence.n_sample == 0
        assert found.evidence.n_verified == np.count_nonzero(verified)

    def test_sparse_and_dense_are_the_same(self):
        Y, truth, eta = make_rows(n=120)
        verified = verify(Y, truth, 60)
        verified[Y == 0] = 1
        dense, *sparse = (
            audit(None, Y, probabilities=eta, verified=make(verified), at_random=True)
            for make in (np.asarray, csr_matrix, coo_array, lambda V: V.astype(float))
        )
        for other in sparse:
            assert_array_equal(other.confidences, dense.confidences)
            assert_array_equal(other.actions, dense.actions)
            assert_array_equal(other.verified, dense.verified)
            assert other.wrong.total == dense.wrong.total
            assert other.evidence == dense.evidence

    def test_features_are_learned_from(self):
        """The second feature decides which tags of the first label are wrong; candidates do not show it."""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(400, 3))
        Y = (X[:, [0, 0, 2]] > [-0.5, -0.7, 0]).astype(np.uint8)
        Y[:, 1] = 1 - Y[:, 1]
        truth = Y > 0
        truth[:, 0] &= X[:, 1] > 0
        verified = verify(Y, truth, 120)
        eta = np.clip(0.2 + 0.6 * Y + 0.1 * rng.normal(size=Y.shape), 0.01, 0.99)
        unknown = (Y > 0) & (verified == 0)
        area = [
            roc_auc_score(truth[unknown], found.confidences[unknown])
            for found in (
                audit(X, Y, probabilities=eta),
                audit(X, Y, probabilities=eta, verified=verified, at_random=True),
            )
        ]
        assert area[0] < 0.8
        assert area[1] > 0.9


class TestDrops:
    @pytest.mark.slow
    def test_drops_keep_their_promise(self):
        """Under noise that the label-free model cannot see, over draws of the sample."""
        Y, truth, _ = make_rows(n=400, seed=1)
        sure = expit(np.random.default_rng(0).normal(size=Y.shape) + 2.5 * truth - 1)
        broken = some = 0
        n_draws = 20
        for seed in range(n_draws):
            verified = verify(Y, truth, 150, seed=seed)
            found = audit(None, Y, probabilities=sure, verified=verified, at_random=True, drop_precision=0.8)
            dropped = (found.actions == "drop") & (verified == 0)
            if found.evidence.drops == "verified":
                some += 1
                broken += dropped.any() and truth[dropped].mean() > 0.2
        assert some > n_draws / 4
        # Binomial: more than four of twenty have a probability of .003 if the promise holds.
        assert broken <= 4

    def test_a_sample_that_shows_wrong_drops_stops_them(self):
        Y, truth, eta = make_rows()
        # All candidates are right, whatever the model says.
        verified = verify(Y, np.ones_like(truth), 120)
        assert audit(None, Y, probabilities=eta).evidence.drops == "random noise"
        found = audit(None, Y, probabilities=eta, verified=verified, at_random=True)
        assert found.evidence.drops != "verified"
        assert not (found.actions == "drop").any()

    def test_a_promise_that_the_sample_refutes_stops_drops(self):
        """Of tags with a confidence below .6, clearly fewer than 99 % are wrong."""
        Y, truth, eta = make_rows()
        verified = verify(Y, truth, 200)
        options = {"drop_below": 0.6, "drop_precision": 0.99}
        assert audit(None, Y, probabilities=eta, **options).evidence.drops == "random noise"
        found = audit(None, Y, probabilities=eta, verified=verified, at_random=True, **options)
        assert found.evidence.drops == "none"
        assert not ((found.actions == "drop") & (verified == 0)).any()

    def test_without_a_promise_confidences_decide(self):
        Y, truth, eta = make_rows()
        verified = verify(Y, truth, 60)
        found = audit(None, Y, probabilities=eta, verified=verified, at_random=True, drop_precision=None)
        assert found.evidence.drops == "verified"
        # Rows that keep a tag anyway.
        rest = (found.confidences >= 0.25).any(axis=1, keepdims=True) & (Y > 0) & (verified == 0)
        assert_array_equal((found.actions == "drop")[rest], (found.confidences < 0.25)[rest])

    @pytest.mark.slow
    def test_the_more_is_promised_the_less_is_dropped(self):
        Y, truth, eta = make_rows(n=600)
        verified = verify(Y, truth, 300)
        drops = [
            np.sum(audit(None, Y, probabilities=eta, verified=verified, at_random=True,
                         drop_below=0.6, drop_precision=p).actions == "drop")
            for p in (0.6, 0.9, 0.99)
        ]  # fmt: skip
        assert drops[0] > drops[1] > drops[2]

    @pytest.mark.slow
    def test_features_of_other_rows_drop_nothing(self):
        data = load_digits_attributes()
        rows = np.random.default_rng(0).permutation(len(data.X))
        for method, n in (("ridge", len(rows)), ("candidate-likelihood", 300)):
            options = {"method": method, "n_folds": 3}
            found = audit(data.X[rows][:n], data.candidates[:n], **options)
            assert not found.evidence.informative
            assert found.evidence.drops == "none"
            assert not (found.actions == "drop").any()
            right = audit(data.X[:n], data.candidates[:n], **options)
            assert right.evidence.informative


class TestSampleCounts:
    def make_judged(self, n=60, c=3, seed=0):
        rng = np.random.default_rng(seed)
        candidate = rng.random((n, c)) < 0.6
        judged = np.where(candidate, rng.random((n, c)), 0.0)
        return candidate, judged, candidate & (rng.random((n, c)) < judged)

    def test_the_total_is_the_share_times_the_number(self):
        candidate, judged, truth = self.make_judged(n=300)
        verified = verify(candidate, truth, 100)
        sample = verified != 0
        found = count_from_sample(judged, candidate, verified, sample)
        share = estimate_share(verified[sample] < 0, 1 - judged[sample], 1 - judged[candidate])
        assert_allclose(found.total, np.array(share) * candidate.sum())
        assert found.basis == "sample"
        for label in range(3):
            answers = verified[sample[:, label], label] < 0
            n = candidate[:, label].sum()
            ends = estimate_share(answers, np.full(len(answers), 0.5), np.full(n, 0.5))[1:]
            assert_allclose((found.low[label], found.high[label]), np.array(ends) * n)

    def test_a_sample_of_all_leaves_nothing_open(self):
        candidate, judged, truth = self.make_judged()
        verified = np.where(candidate, np.where(truth, 1, -1), 0)
        found = count_from_sample(judged, candidate, verified, candidate)
        wrong = (candidate & ~truth).sum(axis=0)
        assert_allclose(found.total, wrong.sum())
        for ends in (found.low, found.high, found.estimate):
            assert_allclose(ends, wrong)

    @pytest.mark.parametrize("answer", [1, -1])
    def test_intervals_are_within_what_is_known(self, answer):
        """Most candidates were checked, and only a small sample, with the other answer, at random."""
        candidate, judged, _ = self.make_judged()
        verified = np.where(candidate, answer, 0)
        cells = np.random.default_rng(0).permutation(np.flatnonzero(candidate))
        verified.flat[cells[:30]] = 0
        sample = np.zeros_like(candidate)
        sample.flat[cells[-12:]] = True
        verified[sample] = -answer
        # A label without any cell in the sample.
        sample[:, 2] = False
        found = count_from_sample(judged, candidate, verified, sample)
        surely = (candidate & (verified < 0)).sum(axis=0)
        at_most = (candidate & (verified <= 0)).sum(axis=0)
        assert (
            surely.sum() - 1e-9 <= found.total[1] <= found.total[0] <= found.total[2] <= at_most.sum() + 1e-9
        )
        for ends in (found.low, found.estimate, found.high):
            assert ((ends >= surely) & (ends <= at_most)).all()
        assert ((found.low <= found.estimate) & (found.estimate <= found.high)).all()

    def test_a_label_without_a_sample_is_open(self):
        candidate, judged, truth = self.make_judged()
        verified = verify(candidate, truth, 40)
        verified[:, 1] = 0
        found = count_from_sample(judged, candidate, verified, verified != 0)
        assert (found.low[1], found.high[1]) == (0, candidate[:, 1].sum())

    def test_intervals_hold_as_often_as_promised(self):
        candidate, judged, truth = self.make_judged(n=400)
        wrong = (candidate & ~truth).sum(axis=0)
        held, n_draws = np.zeros(4), 300
        for seed in range(n_draws):
            verified = verify(candidate, truth, 90, seed=seed)
            found = count_from_sample(judged, candidate, verified, verified != 0)
            held[:3] += (found.low <= wrong) & (wrong <= found.high)
            held[3] += found.total[1] <= wrong.sum() <= found.total[2]
        # Three standard errors, and one in a hundred for the normal approximation.
        assert (held / n_draws >= 0.89 - 3 * np.sqrt(0.9 * 0.1 / n_draws)).all()

    def test_audits_count_by_a_sample_of_ten_or_more(self):
        Y, truth, eta = make_rows()
        for m, basis in ((9, "random noise"), (10, "sample")):
            verified = verify(Y, truth, m)
            found = audit(None, Y, probabilities=eta, verified=verified, at_random=True)
            assert found.wrong.basis == basis
        # Chosen cells are not a sample.
        found = audit(None, Y, probabilities=eta, verified=verify(Y, truth, 100))
        assert found.wrong.basis == "random noise"
        assert found.evidence.n_sample == 0


class TestOtherCounts:
    candidate = np.array([[1, 1], [1, 1], [1, 0], [0, 1]], dtype=bool)
    confidences = np.array([[0.0, 1.0], [0.25, 0.5], [0.5, 0.9], [0.3, 0.2]])
    verified = np.array([[-1, 1], [0, 0], [0, 1], [-1, 0]], dtype=np.int8)

    def test_nothing_is_known_but_what_was_checked(self):
        found = count_without_noise(self.confidences, self.candidate, self.verified, known=False)
        assert_allclose(found.estimate, [1 + 0.75 + 0.5, 0.5 + 0.8])
        assert_array_equal(found.low, [1, 0])
        assert_array_equal(found.high, [3, 2])
        assert_allclose(found.total, (3.55, 1, 5))
        assert found.basis == "unknown"

    def test_known_confidences(self):
        candidate = np.ones((500, 2), dtype=bool)
        confidences = np.random.default_rng(0).random((500, 2))
        found = count_without_noise(confidences, candidate, np.zeros((500, 2), dtype=np.int8), known=True)
        estimate = (1 - confidences).sum(axis=0)
        chance = (confidences * (1 - confidences)).sum(axis=0)
        # A tenth of the estimate may be off, in all labels alike.
        half = norm.ppf(0.95) * np.sqrt(chance + (0.1 * estimate) ** 2)
        assert_allclose((found.estimate, found.low, found.high), (estimate, estimate - half, estimate + half))
        half = norm.ppf(0.95) * np.sqrt(chance.sum() + (0.1 * estimate.sum()) ** 2)
        assert_allclose(found.total, estimate.sum() + half * np.array([0, -1, 1]))
        assert found.basis == "votes"

    def test_known_confidences_and_checked_cells(self):
        found = count_without_noise(self.confidences, self.candidate, self.verified, known=True)
        assert (found.low >= [1, 0]).all()
        assert (found.high <= [3, 2]).all()
        assert found.total[1] >= 1
        assert found.total[2] <= 5


class TestArguments:
    Y, truth, eta = make_rows(n=40)

    def run(self, **changes):
        return audit(None, **{"Y": self.Y, "probabilities": self.eta} | changes)

    @pytest.mark.parametrize("at_random", [1, 0.5, "yes", None, np.ones((40, 4), dtype=bool), np.ones(40, dtype=bool),
                                           np.ones((40, 5), dtype=int)])  # fmt: skip
    def test_what_is_not_a_matrix_of_bool_is_refused(self, at_random):
        with pytest.raises(ValueError, match=r"at_random must be .* \(40, 5\)"):
            self.run(verified=verify(self.Y, self.truth, 20), at_random=at_random)

    def test_cells_at_random_must_be_verified(self):
        verified = verify(self.Y, self.truth, 20)
        at_random = verified != 0
        self.run(verified=verified, at_random=at_random.tolist())
        row, label = np.argwhere(verified == 0)[7]
        at_random[row, label] = True
        with pytest.raises(ValueError, match=rf"row {row}, label {label}, .*\(1 in all\)"):
            self.run(verified=verified, at_random=at_random)
        with pytest.raises(ValueError, match=r"\(20 in all\)"):
            self.run(at_random=verified != 0)

    @pytest.mark.parametrize("precision", [0, 1, -0.1, 1.5, True, "0.9", float("nan")])
    def test_precision_is_between_0_and_1(self, precision):
        with pytest.raises(ValueError, match="drop_precision"):
            self.run(drop_precision=precision)

    def test_votes_replace_candidates_and_probabilities(self):
        votes = self.Y * 2
        for given in ({"Y": self.Y}, {"probabilities": self.eta}):
            with pytest.raises(ValueError, match="votes replace Y and probabilities"):
                audit(np.ones((40, 2)), votes=votes, n_annotators=3, **given)
        with pytest.raises(ValueError, match="needs the candidate labels"):
            audit(np.ones((40, 2)))

    @pytest.mark.parametrize("wrong", [2, 0.5, np.nan])
    def test_answers_are_1_and_minus_1(self, wrong):
        verified = np.zeros(self.Y.shape)
        verified[3, 1] = wrong
        with pytest.raises(ValueError, match=r"verified .* row 3, label 1 "):
            self.run(verified=verified)
        with pytest.raises(ValueError, match="shape"):
            self.run(verified=verified[:, :2])


class TestVotes:
    def make_votes(self, n=300, c=4, m=5, seed=0):
        rng = np.random.default_rng(seed)
        truth = rng.random((n, c)) < 0.3
        X = np.column_stack([rng.normal(size=(n, 2)), truth + 0.5 * rng.normal(size=(n, c))])
        return X, truth, rng.binomial(m, np.where(truth, 0.6, 0.1))

    def test_votes_are_candidates_and_evidence(self):
        X, truth, votes = self.make_votes()
        verified = verify(votes, truth, 40, wrong=True)
        found = audit(X, votes=votes, n_annotators=5, verified=verified)
        assert_array_equal(found.actions != "", votes > 0)
        assert (found.wrong.basis, found.evidence.drops) == ("votes", "votes")
        assert_array_equal(found.actions[verified > 0], "keep")
        assert_array_equal(found.actions[verified < 0], "drop")
        unknown = (votes > 0) & (verified == 0)
        assert roc_auc_score(truth[votes == 0], found.probabilities[votes == 0]) > 0.7
        plain = audit(X, votes=votes, n_annotators=5)
        assert roc_auc_score(truth[unknown], plain.confidences[unknown]) > 0.9
        wrong = np.sum((votes > 0) & ~truth)
        assert plain.wrong.total[1] <= wrong <= plain.wrong.total[2]

    @pytest.mark.parametrize("named", [False, True])
    def test_only_labels_that_depend_on_each_other_are_companions(self, named):
        X, _, votes = self.make_votes()
        rng = np.random.default_rng(1)
        for planted in (False, True):
            votes = np.where(planted & (np.arange(4) == 3), votes[:, [0]], votes)
            # Single votes have the same counts; every second annotator of half of the rows saw nothing.
            single = (rng.random((300, 5, 4)).argsort(axis=1).argsort(axis=1) < votes[:, None]).astype(float)
            single[:150, ::2] = np.nan
            given = {"votes": single} if named else {"votes": votes, "n_annotators": 5}
            pairs = [(pair.label, pair.other) for pair in audit(X, **given).companions]
            assert pairs == ([("0", "3")] if planted else [])
