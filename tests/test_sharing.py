"""Shared work: done once, and nobody can tell from the results."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import skpml.features
import skpml.graph
from skpml import get_method, list_methods
from skpml._sharing import shared_work
from skpml.features import RBFAnchors
from skpml.graph import neighbor_similarity, reconstruction_weights


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(80, 6))


def anchors(X, **parameters):
    return RBFAnchors(**{"n_anchors": 20, "random_state": 3, **parameters}).fit_transform(X)


WORK = {
    "graph": (lambda X: neighbor_similarity(X).toarray(), skpml.graph, "_neighbor_similarity"),
    "weights": (lambda X: reconstruction_weights(X).toarray(), skpml.graph, "_reconstruction_weights"),
    "anchors": (anchors, RBFAnchors, "_fit_rows"),
}


def counted(monkeypatch, owner, name):
    calls = []
    real = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *given: calls.append(name) or real(*given))
    return calls


@pytest.mark.parametrize("name", WORK)
def test_work_is_done_once_inside_and_every_time_outside(name, X, monkeypatch):
    function, owner, inner = WORK[name]
    calls = counted(monkeypatch, owner, inner)
    alone = [function(X), function(X)]
    assert len(calls) == 2
    with shared_work() as work:
        # The rows count, not the object that holds them.
        shared = [function(X), function(X.copy()), function(X)]
    assert len(calls) == 3
    assert (work.computed, work.reused) == (1, 2)
    assert work.saved_seconds > 0
    for result in shared:
        np.testing.assert_array_equal(result, alone[0])
        assert result.flags.f_contiguous == alone[0].flags.f_contiguous
    function(X)
    assert len(calls) == 4


@pytest.mark.parametrize(
    "other",
    [
        lambda X: neighbor_similarity(X, n_neighbors=6),
        lambda X: neighbor_similarity(X, scale="first"),
        lambda X: neighbor_similarity(X, search="cells"),
        lambda X: neighbor_similarity(np.nextafter(X, 9)),
        lambda X: neighbor_similarity(X.astype(np.float32)),
        lambda X: neighbor_similarity(X[::-1]),
        lambda X: neighbor_similarity(X.reshape(160, 3)),
        lambda X: reconstruction_weights(X, n_neighbors=5),
    ],
)
def test_other_rows_or_parameters_are_other_work(other, X):
    with shared_work() as work:
        neighbor_similarity(X)
        other(X)
    assert (work.computed, work.reused) == (2, 0)


def test_what_one_does_to_its_result_another_does_not_see(X):
    expected = {name: function(X) for name, (function, _, _) in WORK.items()}
    with shared_work():
        for _ in range(3):
            graph, mapped = neighbor_similarity(X), anchors(X)
            np.testing.assert_array_equal(graph.toarray(), expected["graph"])
            np.testing.assert_array_equal(mapped, expected["anchors"])
            graph.data[:] = 7
            graph.indices[:] = 0
            mapped[:] = 7
        model = RBFAnchors(n_anchors=20, random_state=3).fit(X)
        model.anchors_[:] = 0
        again = RBFAnchors(n_anchors=20, random_state=3).fit(X)
    np.testing.assert_array_equal(again.transform(X), expected["anchors"])


def test_draws_from_a_generator_are_never_shared(X):
    generator = np.random.RandomState(0)
    with shared_work() as work:
        first, second = anchors(X, random_state=generator), anchors(X, random_state=generator)
        anchors(X, random_state=None)
        anchors(X, anchors=X[:4])
    assert not np.array_equal(first, second)
    assert (work.computed, work.reused) == (0, 0)


def test_a_seed_of_another_kind_is_the_same_seed(X):
    with shared_work() as work:
        np.testing.assert_array_equal(anchors(X, random_state=3), anchors(X, random_state=np.int64(3)))
        anchors(X, random_state=4)
    assert (work.computed, work.reused) == (2, 1)


def test_memory_is_bounded_and_the_oldest_go_first(X):
    size = anchors(X).nbytes * 2
    with shared_work(max_bytes=size) as work:
        for seed in (0, 1, 0, 2, 0, 1):
            anchors(X, random_state=seed)
    # Room for one map, and for its anchors beside it: each new seed pushes the one before out.
    assert work.computed == 6 - work.reused
    assert work.reused < 3
    with shared_work(max_bytes=10) as work:
        anchors(X)
        anchors(X)
    assert (work.computed, work.reused) == (2, 0)


def test_a_fault_is_not_kept(X, monkeypatch):
    with shared_work() as work:
        with pytest.raises(ValueError, match="n_anchors"):
            anchors(X, n_anchors=0)
        with pytest.raises(ValueError, match="n_anchors"):
            anchors(X, n_anchors=0)
    assert (work.computed, work.reused) == (0, 0)


def test_threads_do_not_share(X):
    with shared_work() as work:
        thread = threading.Thread(target=neighbor_similarity, args=(X,))
        thread.start()
        thread.join()
        assert work.computed == 0


@pytest.mark.parametrize("name", list_methods(needs=None))
@pytest.mark.slow
def test_every_method_gives_the_same_scores_with_and_without(name, partial_problem):
    X, candidates, _ = partial_problem
    model = get_method(name)()
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    alone = model.fit(X, candidates).decision_function(X)
    with shared_work():
        model.fit(X, candidates)
        again = model.fit(X, candidates).decision_function(X)
    np.testing.assert_array_equal(alone, again)
