"""Training against the library's likelihood, its closed-form gradient and the solver of the linear case."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skpml.likelihood import (
    estimate_noise,
    given_one,
    log_likelihood,
    posterior,
    prior_logits,
    sigmoid,
)
from skpml.likelihood._solvers import solve_logistic
from skpml.linalg import spectrum_of

torch = pytest.importorskip("torch", reason="networks need PyTorch")

from skpml.deep import DeepCandidateLikelihood  # noqa: E402
from skpml.deep._ensemble import Trainer, held_out, train_ensemble  # noqa: E402
from skpml.deep._training import (  # noqa: E402  # noqa: E402
    Labels,
    Shifted,
    build,
    load_state,
    logits_of,
    own_randomness,
    perceptron,
    to_state,
    train,
)

RATES = np.array([0.25, 0.3, 0.35])
CPU = torch.device("cpu")


def problem(n=60, d=4, c=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    truth = (X @ rng.normal(size=(d, c)) + rng.logistic(size=(n, c)) > 0.5).astype(float)
    return X, truth, np.maximum(truth, rng.random((n, c)) < 0.3)


def labels_of(Y, *, one_true=False, rates=RATES):
    return Labels(candidates=torch.as_tensor(Y), rates=torch.as_tensor(rates), one_true=one_true)


def schedule(**given):
    settings = {"learning_rate": 1e-2, "weight_decay": 0.0, "batch_size": 16, "max_epochs": 30, "patience": 5}
    return DeepCandidateLikelihood(**settings | given)


def network(X, Y, *, hidden=(16,), dropout=0.0, seed=0):
    factory = lambda d, c: perceptron(d, c, hidden=hidden, dropout=dropout)  # noqa: E731
    with own_randomness(seed, CPU):
        return build(factory, prior_logits(torch.as_tensor(Y), torch.as_tensor(RATES)), torch.as_tensor(X))


def held_likelihood(module, X, Y, held):
    logits = logits_of(module, torch.as_tensor(X[held])).numpy()
    return log_likelihood(logits, RATES, Y[held]).mean()


class TestLikelihood:
    @pytest.mark.parametrize("one_true", [False, True])
    def test_is_that_of_the_library_and_so_is_its_gradient(self, one_true):
        _, _, Y = problem()
        Y[3] = 0
        values = np.random.default_rng(1).normal(scale=2, size=Y.shape)
        logits = torch.tensor(values, requires_grad=True)
        found = labels_of(Y, one_true=one_true).log_likelihood(logits)
        occupied = Y.any(axis=1, keepdims=True)
        expected = log_likelihood(values, RATES, Y, occupied if one_true else None)
        assert_allclose(found.detach().numpy(), expected, atol=1e-12)
        found.sum().backward()
        # What the candidates say less what the features say.
        marked = occupied & one_true
        eta = sigmoid(values)
        surprise = given_one(posterior(eta, RATES, Y), marked) - given_one(eta, marked)
        assert_allclose(logits.grad.numpy(), surprise, atol=1e-10)

    @pytest.mark.parametrize("one_true", [False, True])
    def test_gradients_stay_finite_at_the_ends(self, one_true):
        logits = torch.tensor([[60.0, -60.0, -60.0], [-60.0, -60.0, -60.0]], requires_grad=True)
        Y = torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
        rates = torch.full((3,), 1e-5)
        Labels(candidates=Y, rates=rates, one_true=one_true).log_likelihood(logits).sum().backward()
        assert torch.isfinite(logits.grad).all()


class TestTraining:
    @pytest.mark.parametrize("one_true", [False, True])
    @pytest.mark.slow
    def test_a_linear_network_reaches_the_optimum_of_the_solver(self, one_true):
        X, _, Y = problem()
        decay = 0.01
        spectrum = spectrum_of(X)
        # The spectrum scales features; in its basis the same penalty has another weight.
        squared_scale = len(X) / ((X - X.mean(axis=0)) ** 2).sum()
        known = solve_logistic(
            spectrum,
            Y,
            gamma=np.array([decay * len(X) * squared_scale]),
            rho=RATES[None, :],
            one_true=Y.any(axis=1)[:, None, None] if one_true else None,
            tol=1e-9,
            max_iter=5000,
        )
        module = network(X, Y, hidden=())
        for rate in (0.05, 0.005, 0.0005):
            train(
                module,
                torch.as_tensor(X),
                labels_of(Y, one_true=one_true),
                held=np.arange(0),
                schedule=schedule(weight_decay=decay, batch_size=60, max_epochs=400, learning_rate=rate),
                random=np.random.RandomState(0),
            )
        found = logits_of(module, torch.as_tensor(X)).numpy()
        assert_allclose(found, spectrum.rows @ known.coef[:, 0] + known.intercept[0], atol=1e-3)

    def test_keeps_the_weights_of_the_best_epoch(self):
        X, _, Y = problem()
        held = np.arange(0, 60, 4)
        module = network(X, Y, hidden=(64,))
        course = train(
            module,
            torch.as_tensor(X),
            labels_of(Y),
            held=held,
            schedule=schedule(max_epochs=300),
            random=np.random.RandomState(0),
        )
        assert course.converged
        assert len(course.training) == len(course.held_out) == course.best_epoch + 6
        best = max(course.held_out)
        assert course.held_out[course.best_epoch] == best
        assert course.held_out[-1] < best - 1e-3
        assert held_likelihood(module, X, Y, held) == pytest.approx(best, abs=1e-12)

    def test_rows_held_out_are_never_learnt_from(self):
        X, _, Y = problem()
        held = np.arange(0, 60, 4)
        other = Y.copy()
        other[held] = 1 - other[held]
        states = []
        for labels in (Y, other):
            # Whatever the rows held out say, the one epoch is kept.
            module = network(X, Y)
            train(
                module,
                torch.as_tensor(X),
                labels_of(labels),
                held=held,
                schedule=schedule(max_epochs=1),
                random=np.random.RandomState(0),
            )
            states.append(to_state(module))
        for name, value in states[0].items():
            assert_array_equal(states[1][name], value)

    def test_a_full_batch_does_not_depend_on_the_order_it_comes_in(self):
        X, _, Y = problem()
        found = []
        for seed in (0, 1):
            module = network(X, Y)
            train(
                module,
                torch.as_tensor(X),
                labels_of(Y),
                held=np.arange(0),
                schedule=schedule(batch_size=60, max_epochs=10),
                random=np.random.RandomState(seed),
            )
            found.append(logits_of(module, torch.as_tensor(X)).numpy())
        assert_allclose(found[0], found[1], atol=1e-9)

    def test_batches_are_few_and_even(self):
        X, _, Y = problem(n=31)
        for size in (1, 2, 5, 10, 15, 30, 31, 40):
            module, sizes = network(X, Y), []
            module.register_forward_pre_hook(lambda _, inputs, sizes=sizes: sizes.append(len(inputs[0])))
            train(
                module,
                torch.as_tensor(X),
                labels_of(Y),
                held=np.arange(0),
                schedule=schedule(batch_size=size, max_epochs=1),
                random=np.random.RandomState(0),
            )
            assert sum(sizes) == 31
            assert len(sizes) == -(-31 // size)
            assert max(sizes) <= size
            assert max(sizes) - min(sizes) <= 1

    def test_dropout_is_off_where_nothing_is_learnt(self):
        X, _, Y = problem()
        module = network(X, Y, dropout=0.5)
        module.train()
        first, second = (logits_of(module, torch.as_tensor(X)) for _ in range(2))
        assert torch.equal(first, second)


class TestNetwork:
    def test_a_network_of_zeros_says_what_holds_on_average(self):
        X, _, Y = problem()
        offset = prior_logits(torch.as_tensor(Y), torch.as_tensor(RATES))
        module = Shifted(perceptron(4, 3, hidden=(), dropout=0.0).double(), offset)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.zero_()
        eta = sigmoid(logits_of(module, torch.as_tensor(X)).numpy())
        assert_allclose((eta + (1 - eta) * RATES).mean(axis=0), Y.mean(axis=0))

    def test_a_state_is_a_copy_and_brings_the_network_back(self):
        X, _, Y = problem()
        module = network(X, Y)
        rows = torch.as_tensor(X)
        before, state = logits_of(module, rows), to_state(module)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(1.0)
        assert not torch.allclose(logits_of(module, rows), before)
        load_state(module, state)
        assert torch.equal(logits_of(module, rows), before)

    def test_randomness_is_lent_and_given_back(self):
        torch.manual_seed(3)
        expected = torch.rand(4)
        torch.manual_seed(3)
        with own_randomness(0, CPU):
            first = torch.rand(4)
        assert torch.equal(torch.rand(4), expected)
        with own_randomness(0, CPU):
            assert torch.equal(torch.rand(4), first)
        with own_randomness(1, CPU):
            assert not torch.equal(torch.rand(4), first)


class TestEnsemble:
    def trainer(self, X, Y, **given):
        return Trainer(
            factory=lambda d, c: perceptron(d, c, hidden=(16,), dropout=0.0),
            X=torch.as_tensor(X),
            Y=torch.as_tensor(Y),
            schedule=schedule(**given),
        )

    def test_every_row_is_held_out_before_any_is_again(self):
        folds = held_out(20, 0.25, 4, np.random.RandomState(0))
        assert [len(rows) for rows in folds] == [5, 5, 5, 5]
        assert_array_equal(np.sort(np.concatenate(folds)), np.arange(20))
        assert [len(rows) for rows in held_out(2, 0.01, 3, np.random.RandomState(0))] == [1, 1, 1]
        assert [len(rows) for rows in held_out(5, 0.99, 1, np.random.RandomState(0))] == [4]
        assert [len(rows) for rows in held_out(5, 0.0, 2, np.random.RandomState(0))] == [0, 0]

    def test_the_rate_comes_from_the_scores_that_leave_the_narrower_range(self):
        X, _, Y = problem(n=400)
        trainer = self.trainer(X, Y)
        held = np.arange(200)
        knowing = torch.as_tensor(Y)
        # Without any relation to the labels, scores only say that the noise rate is below the share of candidates.
        guessing = torch.as_tensor(np.random.default_rng(0).random(Y.shape))

        def estimate(scores, candidates):
            return estimate_noise(scores.numpy(), candidates.numpy(), of_candidates=True)

        pilot = trainer.member(held, 0, torch.zeros(3, dtype=torch.float64), one_true=False)
        of_pilot = estimate(sigmoid(pilot.logits[:200]), knowing[:200])
        of_guess = estimate(guessing, knowing)
        assert (of_pilot.high < of_guess.high).all()
        assert_allclose(trainer.noise_rate(held, 0, knowing), estimate(knowing, knowing).usable())
        assert_allclose(trainer.noise_rate(held, 0, guessing), of_pilot.usable())
        assert_allclose(trainer.noise_rate(held[:0], 0, guessing), of_guess.usable())

    def test_the_better_way_is_taken_and_a_given_one_obeyed(self):
        X, _, Y = problem(n=120)
        trainer = self.trainer(X, Y, max_epochs=5)
        given = {
            "n_members": 2,
            "fraction": 0.25,
            "rates": torch.as_tensor(RATES),
            "ridge": lambda: pytest.fail("the rates are known"),
        }
        both = {
            way: train_ensemble(trainer, **given, one_true=way, random=np.random.RandomState(0))
            for way in (False, True)
        }
        assert [ensemble.one_true for ensemble in both.values()] == [False, True]
        precision = {way: trainer.precision(ensemble.members[0]) for way, ensemble in both.items()}
        assert precision[False] != precision[True]
        chosen = train_ensemble(trainer, **given, one_true=None, random=np.random.RandomState(0))
        best = max(precision, key=precision.__getitem__)
        assert chosen.one_true == best
        for ours, theirs in zip(chosen.members, both[best].members, strict=True):
            assert torch.equal(ours.logits, theirs.logits)
