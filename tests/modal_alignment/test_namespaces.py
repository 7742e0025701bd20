"""The solver gives the same answer on NumPy, on the strict array API and on PyTorch."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skpml.graph import neighbor_similarity
from skpml.modal_alignment import low_rank_orthogonal, low_rank_sparse
from skpml.modal_alignment._solver import Weights, solve


def strict():
    return pytest.importorskip("array_api_strict").asarray


def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed").asarray


def cuda():
    library = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not library.cuda.is_available():
        pytest.skip("no CUDA device")
    return partial(library.asarray, device="cuda")


def to_numpy(array):
    return np.asarray(array.cpu() if hasattr(array, "cpu") else array)


@pytest.fixture(params=[strict, torch, cuda], ids=["array-api-strict", "torch", "cuda"])
def asarray(request):
    return request.param()


def problem(dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    Y = (rng.random((60, 5)) < 0.5).astype(dtype)
    return X.astype(dtype), Y, neighbor_similarity(X)


@pytest.mark.parametrize("subspace_dim", [None, 3])
@pytest.mark.parametrize("prototypes", ["mean", "least-squares"])
@pytest.mark.parametrize("basis", ["identity", "orthogonal"])
def test_same_solution(asarray, subspace_dim, prototypes, basis):
    X, Y, S = problem()
    options = dict(
        weights=Weights(low_rank_weight=1, alignment_weight=0.1, prototype_weight=0.1, ridge_weight=1),
        subspace_dim=subspace_dim,
        prototypes=prototypes,
        basis=basis,
    )
    ours, theirs = solve(X, Y, S, **options), solve(asarray(X), asarray(Y), S, **options)
    assert type(theirs.coef) is type(asarray(X))
    assert theirs.n_iter == ours.n_iter
    for name in ("coef", "scores", "pseudo_labels", "basis", "prototypes"):
        assert_allclose(to_numpy(getattr(theirs, name)), getattr(ours, name), atol=1e-10, err_msg=name)
    for name, values in ours.history.items():
        assert_allclose(theirs.history[name], values, rtol=1e-8, atol=1e-8, err_msg=name)


def test_singular_features(asarray):
    X, Y, S = problem()
    X = np.hstack([X, X])
    weights = Weights(low_rank_weight=1, alignment_weight=0.1, prototype_weight=0, ridge_weight=0)
    ours, theirs = solve(X, Y, S, weights=weights), solve(asarray(X), asarray(Y), S, weights=weights)
    assert_allclose(to_numpy(theirs.scores), ours.scores, atol=1e-8)


def test_labels_known_to_be_true(asarray):
    X, Y, S = problem()
    known = Y * (np.random.default_rng(1).random(Y.shape) < 0.3)
    ours = solve(X, Y, S, weights=Weights(), known_true=known)
    theirs = solve(asarray(X), asarray(Y), S, weights=Weights(), known_true=asarray(known))
    assert_allclose(to_numpy(theirs.pseudo_labels), ours.pseudo_labels, atol=1e-10)
    assert (to_numpy(theirs.pseudo_labels)[known > 0] == 1).all()


def test_single_precision_stays(asarray):
    X, Y, S = problem(np.float32)
    solution = solve(asarray(X), asarray(Y), S, weights=Weights())
    for name in ("coef", "scores", "pseudo_labels", "basis", "prototypes"):
        assert getattr(solution, name).dtype == asarray(X).dtype, name


def test_decompositions(asarray):
    _, Y, _ = problem()
    ours, theirs = (
        low_rank_orthogonal(Y, low_rank_weight=3.0),
        low_rank_orthogonal(asarray(Y), low_rank_weight=3.0),
    )
    assert_allclose(to_numpy(theirs.pseudo_labels), ours.pseudo_labels, atol=1e-10)
    assert_allclose(to_numpy(low_rank_sparse(asarray(Y)).low_rank), low_rank_sparse(Y).low_rank, atol=1e-8)
