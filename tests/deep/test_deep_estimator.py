"""DeepCandidateLikelihood: an estimator like all others, with networks inside."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from likelihood_data import blobs
from skpml.deep import DeepCandidateLikelihood
from skpml.io import ModelFileError, load_model, save_model
from skpml.likelihood import log_likelihood
from skpml.metrics import average_precision
from skpml.reference import CandidateRidge
from skpml.utils.estimator_checks import parametrize_with_pml_checks

torch = pytest.importorskip("torch", reason="networks need PyTorch")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")]

SMALL = {"hidden_layer_sizes": (32,), "dropout": 0.2, "learning_rate": 0.01, "random_state": 0}
QUICK = {**SMALL, "n_members": 1, "max_epochs": 20, "noise_rate": 0.1, "at_least_one": False}


@parametrize_with_checks([DeepCandidateLikelihood(**QUICK)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@parametrize_with_pml_checks([DeepCandidateLikelihood(**SMALL, n_members=2, max_epochs=40)])
def test_checks_of_the_library(estimator, check):
    check(estimator)


def quick(**given):
    return DeepCandidateLikelihood(**QUICK | {"on_empty": "ignore"} | given)


def linear(n_features, n_labels):
    return torch.nn.Linear(n_features, n_labels)


@pytest.fixture(scope="module")
def fitted():
    X, truth, candidates, chance = blobs()
    model = DeepCandidateLikelihood(**SMALL, n_members=3, on_empty="ignore").fit(X, candidates)
    return model, X, truth, candidates, chance


class TestProbabilities:
    def test_come_close_to_the_true_ones(self, fitted):
        model, X, _, candidates, chance = fitted
        found = model.predict_proba(X)
        believing = clone(model).set_params(noise_rate=0.0).fit(X, candidates).predict_proba(X)
        error = np.abs(found - chance).mean()
        assert error < 0.1
        assert error < 0.5 * np.abs(believing - chance).mean()
        assert_array_equal(model.predict(X), found > 0.5)
        assert_array_equal(model.decision_function(X), found)

    def test_noise_rate_comes_close_to_the_true_one(self, fitted):
        assert fitted[0].noise_rate_.shape == (5,)
        assert abs(fitted[0].noise_rate_.mean() - 0.3) < 0.1

    def test_confidences_tell_true_candidates_from_false_ones(self, fitted):
        model, _, truth, candidates, _ = fitted
        told = candidates == 1
        assert (model.confidences_[~told] == 0).all()
        assert roc_auc_score(truth[told], model.confidences_[told]) > 0.8
        assert abs(model.confidences_[told].mean() - truth[told].mean()) < 0.1

    def test_confidences_are_posteriors_by_hand(self):
        X, _, candidates, _ = blobs(n=80)
        model = quick(noise_rate=0.2).fit(X, candidates)
        eta = model.predict_proba(X)
        assert_allclose(model.confidences_, candidates * eta / (eta + (1 - eta) * 0.2), atol=1e-12)

    def test_without_noise_every_candidate_is_believed_and_nothing_lost_against_ridge(self):
        X, truth, _, _ = blobs(n=900, seed=2)
        model = quick(noise_rate=0.0, max_epochs=60).fit(X[:600], truth[:600])
        assert_array_equal(model.confidences_, truth[:600])
        ridge = CandidateRidge(random_state=0, on_empty="ignore").fit(X[:600], truth[:600])
        ours, floor = (
            average_precision(truth[600:], each.decision_function(X[600:])) for each in (model, ridge)
        )
        assert ours >= floor - 0.005

    def test_a_row_has_a_true_label_where_it_must(self):
        X, truth, _, _ = blobs(n=200, c=3)
        candidates = np.maximum(truth, np.eye(3, dtype=int)[np.arange(200) % 3])
        model = quick(at_least_one=True).fit(X, candidates)
        assert model.at_least_one_
        assert (model.predict_proba(X).sum(axis=1) >= 1 - 1e-9).all()
        assert (model.confidences_.sum(axis=1) >= 1 - 1e-9).all()
        assert (quick().fit(X, candidates).predict_proba(X).sum(axis=1) < 0.9).any()


class TestHistory:
    def test_is_of_the_likelihood_and_the_best_epoch_is_kept(self):
        X, _, candidates, _ = blobs(n=100)
        model = quick(max_epochs=300, patience=4, validation_fraction=0.99, dropout=0.0)
        model.fit(X, candidates)
        history = model.history_
        assert model.converged_
        assert model.n_iter_ == len(history["training"]) == len(history["held_out"])
        best = int(history["held_out"].argmax())
        assert model.n_iter_ == best + 5
        # 99 of 100 rows are held out: over all rows, the mean is theirs but for one.
        eta = model.predict_proba(X)
        over_all = log_likelihood(np.log(eta / (1 - eta)), 0.1, candidates)
        without_one = (over_all.sum() - over_all) / 99
        assert np.abs(without_one - history["held_out"][best]).min() < 1e-9

    def test_without_rows_held_out_all_epochs_are_run(self):
        X, _, candidates, _ = blobs(n=60)
        model = quick(validation_fraction=0, max_epochs=7).fit(X, candidates)
        assert model.n_iter_ == 7
        assert model.history_.keys() == {"training"}
        assert model.history_["training"][-1] > model.history_["training"][0]

    def test_says_so_where_it_was_cut_short(self):
        X, _, candidates, _ = blobs(n=60)
        with pytest.warns(ConvergenceWarning, match="max_epochs=2"):
            model = quick(max_epochs=2).fit(X, candidates)
        assert not model.converged_


class TestRandomness:
    def test_a_seed_gives_the_same_bits_and_another_does_not(self):
        X, _, candidates, _ = blobs(n=80)
        first, second, other = (
            quick(random_state=seed, n_members=2, noise_rate="auto", at_least_one="auto").fit(X, candidates)
            for seed in (4, 4, 5)
        )
        assert_array_equal(second.predict_proba(X), first.predict_proba(X))
        assert_array_equal(second.confidences_, first.confidences_)
        assert np.abs(other.predict_proba(X) - first.predict_proba(X)).max() > 1e-3

    def test_generators_of_the_caller_are_left_alone(self):
        X, _, candidates, _ = blobs(n=60)
        torch.manual_seed(1)
        np.random.seed(1)  # noqa: NPY002
        before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
        quick().fit(X, candidates).predict(X)
        assert torch.equal(torch.get_rng_state(), before)
        assert_array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002

    def test_the_state_of_the_caller_does_not_matter(self):
        X, _, candidates, _ = blobs(n=60)
        found = []
        for seed in (1, 2):
            torch.manual_seed(seed)
            found.append(quick().fit(X, candidates).predict_proba(X))
        assert_array_equal(*found)

    def test_rows_in_another_order_give_the_same_with_a_network_of_ones_own(self):
        X, _, candidates, _ = blobs(n=80)
        order = np.random.default_rng(0).permutation(80)
        ours = quick(network=linear).fit(X, candidates)
        theirs = quick(network=linear).fit(X[order], candidates[order])
        assert_allclose(theirs.predict_proba(X), ours.predict_proba(X), atol=1e-9)
        assert_allclose(theirs.confidences_, ours.confidences_[order], atol=1e-9)

    def test_members_are_averaged_and_differ(self):
        X, _, candidates, _ = blobs(n=80)
        several = quick(n_members=3).fit(X, candidates)
        assert len(several.states_) == 3
        # More members are members added.
        for name, value in quick().fit(X, candidates).states_[0].items():
            assert_array_equal(several.states_[0][name], value)
        together, each = several.predict_proba(X), []
        for state in several.states_:
            alone = copy.copy(several)
            alone.states_ = [state]
            each.append(alone.predict_proba(X))
        assert_allclose(np.mean(each, axis=0), together, atol=1e-12)
        assert np.abs(each[0] - each[1]).max() > 1e-3


class TestOwnNetwork:
    def test_sees_the_features_as_they_are(self):
        seen = []

        class Spy(torch.nn.Linear):
            def forward(self, X):
                seen.append(X.detach().clone())
                return super().forward(X)

        X, _, candidates, _ = blobs(n=60)
        X = (7 + 3 * X).astype(np.float32)
        model = quick(network=Spy, max_epochs=1).fit(X, candidates)
        assert {rows.dtype for rows in seen} == {torch.float32}
        rows = {tuple(row) for row in X.tolist()}
        assert all(tuple(row) in rows for batch in seen for row in batch.tolist())
        assert model.scaler_ is None
        assert model.network_ is Spy

    def test_other_state_than_weights_is_kept(self):
        def normalised(n_features, n_labels):
            return torch.nn.Sequential(
                torch.nn.BatchNorm1d(n_features), torch.nn.Linear(n_features, n_labels)
            )

        X, _, candidates, _ = blobs(n=200)
        model = quick(network=normalised).fit(5 + X, candidates)
        assert model.states_[0]["inner.0.running_mean"].mean() == pytest.approx(5, abs=0.2)
        # The training rows are scored alike during the fit and after it.
        eta = model.predict_proba(5 + X)
        assert_allclose(model.confidences_, candidates * eta / (eta + (1 - eta) * 0.1), atol=1e-12)

    def test_a_fitted_model_forgets_changed_parameters(self):
        X, _, candidates, _ = blobs(n=60)
        for model in (quick().fit(X, candidates), quick(network=linear).fit(X, candidates)):
            before = model.predict_proba(X)
            model.set_params(network=None, hidden_layer_sizes=(3, 3), dropout=2.0)
            assert_array_equal(model.predict_proba(X), before)

    @pytest.mark.parametrize(
        ("network", "error", "message"),
        [
            (lambda d, c: torch.nn.Linear(d, c + 1), ValueError, r"each of the 5 labels.*got \(2, 6\)"),
            (lambda d, c: "net", TypeError, r"network\(4, 5\), got 'net'"),
            (torch.nn.Linear(4, 5), TypeError, "one for each member, got a module"),
            ("resnet", TypeError, "network must be None or a function"),
        ],
    )
    def test_is_refused_where_it_is_none(self, network, error, message):
        X, _, candidates, _ = blobs(n=40)
        with pytest.raises(error, match=message):
            quick(network=network).fit(X, candidates)


class TestCopies:
    @pytest.mark.parametrize("network", [None, linear])
    def test_pickles_and_copies_predict_the_same(self, network):
        X, _, candidates, _ = blobs(n=60)
        model = quick(network=network).fit(X, candidates)
        for twin in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            assert_array_equal(twin.predict_proba(X), model.predict_proba(X))
        assert_array_equal(clone(model).fit(X, candidates).predict_proba(X), model.predict_proba(X))

    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    def test_model_files_give_the_same_bits(self, dtype, tmp_path):
        pytest.importorskip("skops", reason="model files need skops")
        X, _, candidates, _ = blobs(n=60)
        X = X.astype(dtype)
        model = quick(n_members=2).fit(X, candidates)
        assert all(type(value) is np.ndarray for state in model.states_ for value in state.values())
        save_model(model, tmp_path / "model.skpml")
        loaded = load_model(tmp_path / "model.skpml")
        assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        assert_array_equal(loaded.confidences_, model.confidences_)

    def test_no_model_file_holds_a_network_of_ones_own(self, tmp_path):
        pytest.importorskip("skops", reason="model files need skops")
        X, _, candidates, _ = blobs(n=60)
        model = quick(network=linear).fit(X, candidates)
        with pytest.raises(ModelFileError, match=r"its network is a function.*pickle can"):
            save_model(model, tmp_path / "model.skpml")
        # The fitted model still knows it.
        with pytest.raises(ModelFileError, match=r"not trusted: .*linear"):
            save_model(model.set_params(network=None), tmp_path / "model.skpml")
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_epochs": 0}, "max_epochs must be a whole number of at least 1, got 0"),
        ({"batch_size": 2.5}, "batch_size"),
        ({"patience": 0}, "patience"),
        ({"n_members": 0}, "n_members"),
        ({"weight_decay": -1.0}, "weight_decay"),
        ({"learning_rate": 0}, "learning_rate must be a number above 0"),
        ({"learning_rate": np.nan}, "learning_rate must be"),
        ({"dropout": 1.0}, "dropout must be a number from 0 to below 1"),
        ({"validation_fraction": 1.0}, "validation_fraction must be"),
        ({"hidden_layer_sizes": 64}, "hidden_layer_sizes must be .* such as"),
        ({"hidden_layer_sizes": (64, 0)}, "hidden_layer_sizes must be"),
        ({"hidden_layer_sizes": "ab"}, "hidden_layer_sizes must be"),
        ({"noise_rate": 1.0}, "noise_rate must be .* each of the 5 labels"),
        ({"at_least_one": "maybe"}, "at_least_one must be"),
        ({"at_least_one": "auto", "validation_fraction": 0}, "needs rows held out"),
        ({"device": "cudaa"}, "device must be None or a device of PyTorch"),
    ],
)
def test_wrong_parameters_are_named(parameters, message):
    X, _, candidates, _ = blobs(n=40)
    with pytest.raises(ValueError, match=message):
        quick(**parameters).fit(X, candidates)


def test_features_that_never_vary_are_refused():
    _, _, candidates, _ = blobs(n=40)
    with pytest.raises(ValueError, match="Every feature of X is constant"):
        quick().fit(np.ones((40, 3)), candidates)


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)


def test_pytorch_is_not_imported_before_a_fit():
    done = run(
        "import sys, skpml, skpml.deep; skpml.deep.DeepCandidateLikelihood(); assert 'torch' not in sys.modules"
    )
    assert done.returncode == 0, done.stderr


def test_a_fit_without_pytorch_says_what_to_install():
    done = run(
        "import sys\n"
        "class Nowhere:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'torch': raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Nowhere())\n"
        "import numpy as np; from skpml.deep import DeepCandidateLikelihood\n"
        "DeepCandidateLikelihood().fit(np.eye(4), np.eye(4, dtype=int))"
    )
    assert done.stderr.strip().endswith(
        "ImportError: skpml.deep needs PyTorch: pip install scikit-pml[torch]"
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_a_gpu_gives_nearly_the_same():
    X, _, candidates, _ = blobs(n=200)
    X = X.astype(np.float64)
    torch.cuda.manual_seed(5)
    before = torch.cuda.get_rng_state()
    # Without dropout nothing is drawn on the device.
    on_cpu, on_gpu = (quick(dropout=0.0, device=device).fit(X, candidates) for device in (None, "cuda"))
    assert_allclose(on_gpu.predict_proba(X), on_cpu.predict_proba(X), atol=1e-6)
    assert torch.equal(torch.cuda.get_rng_state(), before)


def test_a_model_that_came_from_another_device_says_so():
    X, _, candidates, _ = blobs(n=40)
    model = quick().fit(X, candidates).set_params(device="nowhere")
    with pytest.raises(ValueError, match=r"device must be None or a device of PyTorch"):
        model.predict_proba(X)
    model.set_params(device=None).predict_proba(X)
