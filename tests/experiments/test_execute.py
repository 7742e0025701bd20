"""One run: the fold as one would do it by hand, and what becomes of everything that can go wrong."""

from __future__ import annotations

import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest
from bench_helpers import Small
from sklearn.model_selection import KFold

from skpml import get_method
from skpml._sharing import shared_work
from skpml.datasets import PartialDataset, content_checksum, load_dataset, write_npz
from skpml.experiments import Run, expand, load_suite
from skpml.experiments._evaluate import FoldData, common_threshold, plain
from skpml.experiments._execute import PeakMemory, execute
from skpml.experiments._metrics import RUN_METRICS
from skpml.metrics import average_precision, denoising_scores, evaluate, hamming_loss
from skpml.modal_alignment import RecoveredRidge
from skpml.model_selection import select_parameters
from skpml.reference import CandidateRidge


def run_of(**changes) -> Run:
    return Run(
        **{"configuration": "digits-6", "folds": 5, "fold": 3, "seed": 2, "method": "pml-ma", **changes}
    )


def done(run: Run, **places) -> dict:
    record = execute(run, FoldData(run, **places))
    assert record["status"] == "done", record["error"]
    return record


@pytest.mark.parametrize(("method", "trained_on"), [("pml-ma", "candidates"), ("ridge", "truth")])
def test_a_run_is_the_fold_done_by_hand(method: str, trained_on: str) -> None:
    parameters = {"gamma" if method == "ridge" else "ridge_weight": 3.0}
    record = done(run_of(method=method, trained_on=trained_on, parameters=parameters))
    data = load_dataset("digits-6", random_state=2)
    train, test = list(KFold(5, shuffle=True, random_state=2).split(data.X))[3]
    labels = data.truth if trained_on == "truth" else data.candidates
    model = get_method(method)(**parameters, random_state=2 * 5 + 3)
    X = data.X.astype(float)
    scores = model.fit(X[train], labels[train]).decision_function(X[test])
    # The midpoint between the lower quartile of all training scores and the mean of the surest quarter of candidates.
    known = model.decision_function(X[train])
    candidates = np.sort(known[labels[train] > 0])
    sure = candidates[candidates >= np.quantile(candidates, 0.75)].mean()
    cut = (np.quantile(known, 0.25) + sure) / 2
    common = {"hamming_loss_common": hamming_loss(data.truth[test], scores > cut)}
    assert record["metrics"] == {**evaluate(data.truth[test], scores, model.predict(X[test])), **common}
    assert list(record["metrics"]) == list(RUN_METRICS)
    assert record["n_iter"] == getattr(model, "n_iter_", None)
    assert record["converged"] == getattr(model, "converged_", None)
    assert record["provenance"]["data_checksum"] == content_checksum(data)
    assert record["history"] is record["chosen"] is record["tune_seconds"] is None


def test_the_common_threshold_does_not_depend_on_the_scale_of_the_scores() -> None:
    rng = np.random.default_rng(0)
    truth = rng.random((200, 5)) < 0.3
    candidates = truth | (rng.random(truth.shape) < 0.2)
    scores = truth + 0.1 * rng.normal(size=truth.shape)
    decisions = scores > common_threshold(scores, candidates)
    assert (decisions == truth).all()
    for factor, shift in ((1.0, -20.0), (1e-4, 3.0), (50.0, 0.0)):
        other = factor * scores + shift
        assert (decisions == (other > common_threshold(other, candidates))).all()


def test_the_common_threshold_of_equal_scores_is_above_them() -> None:
    assert common_threshold(np.full((4, 2), -3.0), np.eye(4, 2)) > -3


def test_a_tuned_ceiling_is_tuned_on_true_labels() -> None:
    tuning = {"selector": "label-free", "grid": {"gamma": [1e-3, 1e3]}, "inner_folds": 2, "search": "grid"}
    run = run_of(method="linear-ridge", trained_on="truth", tuning=tuning)
    data = load_dataset("digits-6", random_state=2)
    train = list(KFold(5, shuffle=True, random_state=2).split(data.X))[3][0]
    X, truth = data.X[train].astype(float), data.truth[train]
    found = select_parameters(
        get_method("linear-ridge")(random_state=13, on_empty="ignore"),
        tuning["grid"],
        X,
        truth,
        n_folds=2,
        random_state=13,
    )
    assert done(run)["chosen"] == found.parameters


def test_the_noise_follows_the_seed() -> None:
    first, second = done(run_of(seed=0)), done(run_of(seed=1))
    assert first["provenance"]["data_checksum"] != second["provenance"]["data_checksum"]


def test_the_noise_follows_the_configuration() -> None:
    """The kind of noise changes what is learned from the candidates, but not from the truth."""
    names = ("digits-6", "digits-6-label", "digits-6-instance")
    floors = [done(run_of(configuration=name, method="linear-ridge")) for name in names]
    ceilings = [done(run_of(configuration=n, method="linear-ridge", trained_on="truth")) for n in names]
    assert len({record["provenance"]["data_checksum"] for record in floors}) == 3
    assert len({record["metrics"]["average_precision"] for record in floors}) == 3
    assert ceilings[0]["metrics"] == ceilings[1]["metrics"] == ceilings[2]["metrics"]


def test_the_course_is_kept_where_it_is_asked_for() -> None:
    history = done(run_of(history=True))["history"]
    assert len(history["objective"]) > 1
    assert all(type(value) is float for value in history["objective"])


@pytest.mark.parametrize("recovery", ["low-rank-orthogonal", "low-rank-sparse", "frequency"])
def test_decompositions_are_also_judged_by_the_candidates_they_doubt(recovery: str) -> None:
    method = "skpml.modal_alignment:RecoveredRidge"
    run = run_of(method=method, kind="decomposition", parameters={"recovery": recovery})
    record, data = done(run), FoldData(run)
    train, test = data.rows
    model = RecoveredRidge(recovery=recovery, random_state=run.seed * run.folds + run.fold)
    model.fit(data.X[train], data.dataset.candidates[train])
    truth = data.dataset.truth
    scores = denoising_scores(data.dataset.candidates[train], truth[train], model.confidences_)
    assert {name: record["metrics"][name] for name in scores} == plain(scores)
    expected = average_precision(truth[test], model.decision_function(data.X[test]))
    assert record["metrics"]["average_precision"] == expected
    # A classification of the same method has no such scores.
    assert "auc" not in done(run_of(method=method, parameters={"recovery": recovery}))["metrics"]


def test_a_decomposition_does_not_judge_confidences_that_were_learned_from_the_truth() -> None:
    assert "auc" not in done(run_of(kind="decomposition", trained_on="truth"))["metrics"]


@pytest.mark.slow
def test_one_run_after_another_shares_and_gives_the_same() -> None:
    runs = [run_of(), run_of(method="ridge"), run_of(parameters={"ridge_weight": 7.0})]
    alone = [done(run) for run in runs]
    data = FoldData(runs[0])
    with shared_work() as work:
        together = [execute(run, data, work=work) for run in runs]
    assert work.reused >= 2
    for one, other in zip(alone, together, strict=True):
        assert one["metrics"] == other["metrics"]
        assert one["warnings"] == other["warnings"]


def test_time_that_sharing_saved_is_counted(monkeypatch) -> None:
    """A method does not look faster because another one computed its graph."""
    run = run_of(method="ridge")
    data = FoldData(run)
    with shared_work() as work:
        execute(run, data, work=work)
        entry = next(iter(work._results))
        result, _, size = work._results[entry]
        work._results[entry] = (result, 1000.0, size)
        record = execute(run, data, work=work)
    assert 1000 < record["fit_seconds"] < 1100
    assert record["predict_seconds"] < 100


@pytest.fixture
def tuned(monkeypatch):
    """What the selection of parameters was given; it picks the last value of each list."""
    given = {}

    def select_parameters(estimator, grid, X, candidates, **options):
        given.update(options, estimator=estimator, X=X, candidates=candidates)
        return types.SimpleNamespace(
            parameters={name: np.float64(values[-1]) for name, values in grid.items()}
        )

    module = types.ModuleType("skpml.model_selection")
    module.select_parameters = select_parameters
    monkeypatch.setitem(sys.modules, "skpml.model_selection", module)
    return given


@pytest.mark.parametrize("selector", ["label-free", "oracle"])
def test_tuning_sees_training_rows_and_true_labels_only_where_it_says_so(tuned, selector: str) -> None:
    tuning = {"selector": selector, "grid": {"gamma": [1.0, 5.0]}, "inner_folds": 4, "search": "halving"}
    record = done(run_of(method="ridge", tuning=tuning))
    data = load_dataset("digits-6", random_state=2)
    train, _ = list(KFold(5, shuffle=True, random_state=2).split(data.X))[3]
    np.testing.assert_array_equal(tuned["X"], data.X[train])
    np.testing.assert_array_equal(tuned["candidates"], data.candidates[train])
    if selector == "oracle":
        np.testing.assert_array_equal(tuned["truth"], data.truth[train])
    else:
        assert tuned["truth"] is None
    assert (tuned["selector"], tuned["n_folds"], tuned["search"]) == (selector, 4, "halving")
    assert record["chosen"] == {"gamma": 5.0}
    assert record["tune_seconds"] >= 0
    assert record["metrics"] == done(run_of(method="ridge", parameters={"gamma": 5.0}))["metrics"]


def test_what_goes_wrong_becomes_a_record() -> None:
    run = run_of(parameters={"low_rank_weight": -1.0})
    record = execute(run, FoldData(run))
    assert (record["status"], record["metrics"]) == ("failed", None)
    assert record["error"]["type"] == "ValueError"
    assert "low_rank_weight" in record["error"]["message"]
    assert record["error"]["traceback"].startswith("Traceback")
    assert record["provenance"]["data_checksum"] is not None


def test_ctrl_c_does_not_become_a_record(monkeypatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(CandidateRidge, "_fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        execute(run_of(method="ridge"), FoldData(run_of()))


def test_data_without_truth_or_features_are_refused(tmp_path: Path) -> None:
    full = load_dataset("digits-6")
    write_npz(PartialDataset(full.X, full.candidates), tmp_path / "untrue.npz")
    write_npz(PartialDataset(None, full.candidates, full.truth), tmp_path / "bare.npz")
    for name, words in (("untrue", "no true labels"), ("bare", "no features")):
        run = run_of(configuration=name)
        record = execute(run, FoldData(run, data_home=tmp_path))
        assert words in record["error"]["message"]
        assert record["provenance"]["data_checksum"] is None


def test_warnings_are_kept_and_those_of_loading_in_every_record(monkeypatch) -> None:
    """Which run of a fold comes first depends on what was killed when; the records must not."""

    def load_with_a_warning(*given, **options):
        warnings.warn("odd data", UserWarning, stacklevel=1)
        return load_dataset(*given, **options)

    monkeypatch.setattr(sys.modules["skpml.experiments._evaluate"], "load_dataset", load_with_a_warning)
    runs = [run_of(method="ridge", parameters={"gamma": value}) for value in (1.0, 2.0)]
    fold = FoldData(runs[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [execute(run, fold) for run in runs]
    assert [record["warnings"] for record in found] == [["UserWarning: odd data"]] * 2
    hasty = execute(run_of(parameters={"max_iter": 1, "tol": 0.0}), FoldData(run_of()))
    assert any("ConvergenceWarning" in message for message in hasty["warnings"])


def test_methods_of_ones_own_and_of_scikit_learn(tmp_path: Path) -> None:
    small = Small(tmp_path)
    extra = (
        '\n[[methods]]\nname = "sklearn.ensemble:RandomForestClassifier"\nparameters = { n_estimators = 5 }\n'
        '\n[[methods]]\nname = "own_methods:NoEstimator"\n'
    )
    plan = expand(load_suite(small.suite(count=1, folds=2, data=1, extra=extra)))
    own, forest, other = plan.runs[:3]
    folder = plan.suite.folder
    assert done(own, folder=folder)["metrics"]["average_precision"] > 0.5
    first, second = done(forest, folder=folder), done(forest, folder=folder)
    assert first["metrics"] == second["metrics"]
    assert list(first["metrics"]) == list(RUN_METRICS)
    assert "not an estimator" in execute(other, FoldData(other, folder=folder))["error"]["message"]


def test_what_is_not_finite_becomes_null() -> None:
    given = {
        "a": np.array([1.0, np.nan]),
        "b": np.int64(3),
        "c": float("inf"),
        "d": (np.bool_(True), "x", None),
    }
    assert plain(given) == {"a": [1.0, None], "b": 3, "c": None, "d": [True, "x", None]}


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux can reset the mark")
@pytest.mark.slow
def test_peak_memory_is_that_of_the_run() -> None:
    before = PeakMemory().megabytes()
    memory = PeakMemory()
    block = np.ones(25_000_000)  # 200 MB
    del block
    assert 150 < memory.megabytes() - before < 250
    assert "reset" in memory.source
    assert PeakMemory().megabytes() - before < 100
