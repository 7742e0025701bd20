"""A fit to a dask array is the fit to the same rows in memory, and its rows stay on the workers."""

import os
import re
import threading
import time
import warnings

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context, get_config

from skpml import PMLMA, CandidateLikelihood
from skpml._dask_rows import DaskRows
from skpml.baselines import PMLNI
from skpml.reference import CandidateRidge
from skpml.registry import get_method, list_methods

dask = pytest.importorskip("dask", reason="dask is not installed")
da = pytest.importorskip("dask.array")


def rows(n=300, d=6, c=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = (X @ rng.normal(size=(d, c)) + rng.normal(size=(n, c)) > 0).astype(np.uint8)
    Y[np.arange(n), rng.integers(0, c, n)] = 1
    return X, Y


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


MODELS = {
    "pml-ma": PMLMA(n_anchors=40, random_state=0),
    "linear": PMLMA(feature_map="linear", random_state=0),
    "printed": PMLMA(n_anchors=40, basis="orthogonal", subspace_dim=2, prototypes="least-squares", random_state=0),
    "released": PMLMA(n_anchors=40, basis="orthogonal", steps="released", random_state=0),
    "ridge": CandidateRidge(n_anchors=40, random_state=0),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("chunks", [(90, 6), (300, 6), (64, 4)])
def test_fit_on_threads_equals_the_local_fit(name, chunks):
    X, Y = rows()
    model = MODELS[name]
    expected = model.fit(X, Y).decision_function(X)
    confidences = getattr(model, "confidences_", None)
    model.fit(da.from_array(X, chunks=chunks), da.from_array(Y, chunks=(100, 4)))
    assert_allclose(model.decision_function(X), expected, atol=1e-8)
    if confidences is not None:
        assert_allclose(model.confidences_, confidences, atol=1e-8)


LIKELIHOODS = {
    "logistic": dict(family="logistic", gamma=0.1, kernel_width=1.0, at_least_one=True),
    "least-squares": dict(family="least-squares", gamma=0.1, kernel_width=1.0, at_least_one=False),
    "search": dict(n_members=2),
}


def fit_likelihood(X, Y, name, **options):
    """A fit in memory takes row blocks if the mapped rows do not fit; so does every one to a dask array."""
    model = CandidateLikelihood(n_anchors=40, random_state=0, **LIKELIHOODS[name], **options)
    with config_context(working_memory=0.1):
        return model.fit(X, Y)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_candidate_likelihood_on_threads_equals_the_local_fit(name):
    X, Y = rows(n=900)
    expected = fit_likelihood(X, Y, name)
    found = fit_likelihood(da.from_array(X, chunks=(170, 4)), da.from_array(Y, chunks=(400, 4)), name)
    assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=1e-6)
    assert_allclose(found.confidences_, expected.confidences_, atol=1e-6)
    assert found.selection_["members"] == expected.selection_["members"]


def test_candidate_likelihood_of_few_rows_is_that_of_the_same_rows_in_memory():
    X, Y = rows()
    lazy = da.from_array(X, chunks=(90, 6))
    model = CandidateLikelihood(effort="quick", random_state=0)
    expected = model.fit(X, Y).predict_proba(X)
    assert len(model.selection_["members"]) > 3
    found = model.fit(lazy, Y)
    assert_allclose(found.predict_proba(X), expected, atol=1e-9)
    with config_context(working_memory=0.5 * X.nbytes / 2**20):
        assert len(model.fit(lazy, Y).selection_["members"]) <= 3


@pytest.mark.slow
def test_candidate_likelihood_on_worker_processes_equals_the_local_fit(client):
    X, Y = rows(n=900)
    lazy = da.from_array(X, chunks=(170, 6))
    found = fit_likelihood(lazy, Y, "logistic")
    expected = fit_likelihood(X, Y, "logistic").predict_proba(X)
    assert_allclose(found.predict_proba(lazy).compute(), expected, atol=1e-6)


def test_candidate_likelihood_says_what_needs_memory():
    X, Y = rows()
    lazy = da.from_array(X, chunks=(100, 6))
    for model, options in (
        (CandidateLikelihood(feature_map="linear"), {}),
        (CandidateLikelihood(), {"verified": np.zeros_like(Y, dtype=int)}),
        (CandidateLikelihood(), {"n_annotators": 3}),
    ):
        with pytest.raises(ValueError, match=r"need X in memory: pass X.compute\(\)"):
            model.fit(lazy, Y, **options)


@pytest.mark.slow
def test_fit_on_worker_processes_equals_the_local_fit(client):
    X, Y = rows()
    model = PMLMA(n_anchors=40, random_state=0)
    expected = model.fit(X, Y).decision_function(X)
    found = model.fit(da.from_array(X, chunks=(70, 6)), Y).decision_function(da.from_array(X, chunks=(70, 6)))
    assert_allclose(found.compute(), expected, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("method", ["decision_function", "predict_proba", "predict"])
def test_predictions_are_lazy_and_in_order(method, dtype):
    X, Y = rows()
    X = (10 * X).astype(dtype)
    for model in (PMLMA(n_anchors=40, random_state=0), PMLNI()):
        model.fit(X, Y)
        lazy = getattr(model, method)(da.from_array(X, chunks=(90, 6)))
        assert isinstance(lazy, da.Array)
        assert lazy.chunks[0] == (90, 90, 90, 30)
        expected = getattr(model, method)(X)
        found = lazy.compute()
        assert lazy.dtype == found.dtype == expected.dtype
        assert_allclose(found, expected, atol=1e-4 if dtype == np.float32 else 1e-12)


def test_predicted_classes_are_one_dimensional():
    X, Y = rows()
    model = PMLMA(n_anchors=40, random_state=0).fit(X, Y.argmax(axis=1))
    lazy = model.predict(da.from_array(X, chunks=(90, 6)))
    assert lazy.shape == (300,)
    assert_array_equal(lazy.compute(), model.predict(X))


def test_data_frames_keep_their_names():
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    X, Y = rows()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    lazy = dd.from_pandas(frame, npartitions=3)
    model = PMLMA(n_anchors=40, random_state=0).fit(lazy, Y)
    assert model.feature_names_in_.tolist() == list("abcdef")
    expected = PMLMA(n_anchors=40, random_state=0).fit(frame, Y).decision_function(frame)
    assert_allclose(model.decision_function(lazy).compute(), expected, atol=1e-8)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("alignment_weight", [0.0, 0.01])
def test_few_rows_come_to_the_caller(alignment_weight, monkeypatch):
    """Pivots, anchors and the cells of the neighbor search come in parts; nothing reads all rows at once."""
    X, Y = rows(n=12_000)
    brought = []
    plain = DaskRows.__getitem__

    def bring(self, chosen):
        found = plain(self, chosen)
        brought.append(len(found))
        return found

    monkeypatch.setattr(DaskRows, "__getitem__", bring)
    lazy = da.from_array(X, chunks=(1000, 6))
    model = PMLMA(n_anchors=40, alignment_weight=alignment_weight, max_iter=5, random_state=0)
    with config_context(working_memory=1):
        model.fit(lazy, Y)
    # A row is needed about 95 times, 32 of them to look into cells; cells that are read together share rows.
    assert sum(brought) < 60 * 12_000
    assert max(brought) < 10_000
    assert len(brought) < 150
    if alignment_weight == 0:
        # The anchors alone.
        assert brought == [40]
    found = model.confidences_
    assert_allclose(found, model.fit(X, Y).confidences_, atol=1e-6)


def test_a_search_that_reads_the_rows_often_says_how_often(monkeypatch):
    X, Y = rows(12_000)
    lazy = da.from_array(X, chunks=(3000, 6))
    reads, take = [], DaskRows.__getitem__

    def count(self, numbers):
        reads.append(numbers)
        return take(self, numbers)

    monkeypatch.setattr(DaskRows, "__getitem__", count)
    model = PMLMA(n_anchors=20, tol=1, random_state=0)
    with config_context(working_memory=0.6), pytest.warns(UserWarning, match="Pass a graph") as caught:
        model.fit(lazy, Y)
    (announced,) = re.findall(r"about (\d+) times", str(caught[0].message))
    assert 0.7 * len(reads) < int(announced) < 1.4 * len(reads)
    with config_context(working_memory=64), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model.fit(lazy, Y)


def test_empty_partitions_are_passed_over():
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    X, Y = rows()
    X = X[np.argsort(X[:, 0])]
    frame = pd.DataFrame(X, columns=list("abcdef"))
    lazy = dd.from_pandas(frame, npartitions=4)
    lazy = lazy[lazy.a > X[149, 0]]
    model = PMLMA(n_anchors=40, random_state=0).fit(lazy, Y[150:])
    expected = PMLMA(n_anchors=40, random_state=0).fit(frame[150:], Y[150:]).predict(frame[150:])
    assert_array_equal(model.predict(lazy).compute(), expected)


def test_names_of_labels_and_features_of_data_frames_are_kept():
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    X, Y = rows()
    frame, labels = pd.DataFrame(X, columns=list("abcdef")), pd.DataFrame(Y, columns=list("wxyz"))
    for model in (PMLMA(n_anchors=40), PMLNI()):
        model.fit(dd.from_pandas(frame, npartitions=3), dd.from_pandas(labels, npartitions=2))
        assert model.classes_.tolist() == list("wxyz")
        assert model.feature_names_in_.tolist() == list("abcdef")


class CountedSum:
    """A sum that counts how many are in memory."""

    alive = most = 0
    lock = threading.Lock()

    def __init__(self, value):
        self.value = value
        with self.lock:
            CountedSum.alive += 1
            CountedSum.most = max(CountedSum.most, CountedSum.alive)

    def __del__(self):
        with self.lock:
            CountedSum.alive -= 1

    def __add__(self, other):
        return CountedSum(self.value + other.value)


@pytest.mark.parametrize("n_workers", [1, 4])
def test_few_partial_sums_are_in_memory_at_once(n_workers):
    """One for each level of the tree, and those that the workers make and add."""
    CountedSum.most = 0
    lazy = da.from_array(np.arange(256.0)[:, None], chunks=(1, 1))
    with dask.config.set(scheduler="threads", num_workers=n_workers):
        (squares,), (total,) = (
            DaskRows(lazy)
            .blocks(np.abs, 1)
            .visit(lambda block: ((block**2,), (CountedSum(float(block.sum())),)))
        )
        assert_array_equal(np.concatenate(dask.compute(*squares.parts))[:, 0], np.arange(256.0) ** 2)
    assert total.value == 255 * 256 / 2
    assert CountedSum.most <= np.log2(256) + 2 * n_workers


def test_the_memory_of_the_caller_holds_on_every_thread():
    seen = set()

    def work(block):
        seen.add(get_config()["working_memory"])
        return (), (len(block),)

    with config_context(working_memory=7), dask.config.set(scheduler="threads"):
        DaskRows(da.from_array(rows()[0], chunks=(90, 6))).blocks(np.abs, 6).visit(work)
    assert seen == {7}


def test_bad_input_is_named():
    X, Y = rows()
    bad = X.copy()
    bad[250, 3] = np.nan
    with pytest.raises(ValueError, match="NaN in row 250, column 3"):
        PMLMA().fit(da.from_array(bad, chunks=(90, 6)), Y)
    lazy = da.from_array(X, chunks=(90, 6))
    with pytest.raises(ValueError, match="X should hold numbers"):
        PMLMA().fit(lazy.astype(complex), Y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        PMLMA().fit(lazy, Y[:-1])
    with pytest.raises(ValueError, match="tune=True needs X in memory"):
        PMLMA(tune=True).fit(lazy, Y)
    with pytest.raises(ValueError, match="views and device need X in memory"):
        PMLMA(views={"a": [0, 1], "b": [2, 3, 4, 5]}).fit(lazy, Y)
    with pytest.raises(ValueError, match="sample_weight needs X in memory"):
        CandidateRidge().fit(lazy, Y, sample_weight=np.ones(300))


def read_slowly(block, folder):
    """Read a block; the first worker that reads one during the fit is killed."""
    time.sleep(0.01)
    mark = os.path.join(folder, "killed")
    if os.path.exists(os.path.join(folder, "armed")) and not os.path.exists(mark):
        open(mark, "w").close()
        os._exit(1)
    return block


@pytest.mark.slow
def test_a_killed_worker_is_survived(client, tmp_path):
    X, Y = rows()
    model = PMLMA(n_anchors=40, random_state=0, max_iter=5, tol=0, on_empty="ignore")
    expected = model.fit(X, Y).decision_function(X)
    lazy = da.from_array(X, chunks=(50, 6)).map_blocks(read_slowly, str(tmp_path), dtype=X.dtype)

    def arm(iteration, losses):
        if iteration == 2:
            (tmp_path / "armed").touch()

    model.set_params(callback=arm).fit(lazy, Y)
    assert (tmp_path / "killed").exists()
    assert_allclose(model.decision_function(X), expected, atol=1e-6)


def draw(block_info=None):
    """Draw the rows of a partition of the data that no worker can hold."""
    ((start, stop), (_, width)) = block_info[None]["array-location"]
    return np.random.default_rng(start).random((stop - start, width))


@pytest.mark.slow
def test_more_data_and_gram_matrices_than_the_workers_can_hold_are_fitted():
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    n, d, n_partitions, limit = 44_000, 1500, 44, 520e6
    X = da.map_blocks(draw, chunks=((n // n_partitions,) * n_partitions, (d,)), dtype=float)
    assert X.nbytes > limit
    assert n_partitions * d**2 * 8 > limit
    Y = np.random.default_rng(0).random((n, 2)) < 0.5
    Y[:, 0] |= ~Y.any(axis=1)
    model, first = CandidateRidge(feature_map="linear"), X[:1000].compute()
    # Nothing is written to disk, and a worker that exceeds its limit is killed for good.
    memory = {f"distributed.worker.memory.{name}": False for name in ("target", "spill", "pause")}
    with (
        dask.config.set({**memory, "distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, memory_limit=limit, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        found = model.fit(X, Y).decision_function(first)
    assert_allclose(found, model.fit(X.compute(), Y).decision_function(first), atol=1e-6)


def test_sparse_blocks_are_predicted_and_need_another_form_for_a_fit():
    X, Y = rows()
    X[X < 0] = 0
    lazy = da.from_array(X, chunks=(90, 6)).map_blocks(scipy.sparse.csr_array)
    with pytest.raises(TypeError, match=r"they are csr_array.*toarray\(\), dtype=X.dtype.*X.compute\(\)"):
        PMLMA().fit(lazy, Y)
    model = PMLMA(n_anchors=40, random_state=0).fit(X, Y)
    dense = lazy.map_blocks(lambda block: block.toarray(), dtype=lazy.dtype)
    again = PMLMA(n_anchors=40, random_state=0).fit(dense, Y)
    assert_allclose(again.decision_function(lazy).compute(), model.decision_function(X), atol=1e-8)


def test_a_warning_says_when_all_rows_are_brought():
    X, Y = rows()
    lazy = da.from_array(X, chunks=(90, 6))
    with pytest.warns(UserWarning, match="PMLNI brings all rows of X to this process") as caught:
        found = PMLNI().fit(lazy, Y)
    assert caught[0].filename == __file__
    assert_array_equal(found.predict(X), PMLNI().fit(X, Y).predict(X))
    for name in list_methods():
        model = get_method(name).estimator_class
        assert (f" {model.__name__}" in str(caught[0].message)) == model._takes_dask
    batches = PMLMA(n_anchors=40, random_state=0).partial_fit(X, Y)
    for model in (batches, PMLMA(n_anchors=40, random_state=0)):
        with pytest.warns(UserWarning, match="PMLMA brings all rows .* no partial_fit") as caught:
            model.partial_fit(lazy, Y)
        assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        CandidateRidge().fit(lazy, Y).predict(lazy)
