"""Probabilities of labels that rows may lack: limits, order and calibration."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from skpml.cleaning import audit
from skpml.cleaning._judging import find_missing


def simulate(n=2000, c=3, shift=3.0, factor=1.3, seed=0):
    """Scores, candidates and truth; the log-odds of absent labels are off by a shift and a factor."""
    rng = np.random.default_rng(seed)
    s = rng.normal(-4, 1, size=(n, c))
    true = rng.random((n, c)) < expit(shift + factor * s)
    return expit(s), rng.random((n, c)) < 0.2, true


def answer(true, candidate, count, seed=1):
    verified = np.zeros(true.shape, dtype=np.int8)
    cells = np.flatnonzero(~candidate)
    chosen = np.random.default_rng(seed).permutation(cells)[:count]
    verified.flat[chosen] = np.where(true.flat[chosen], 1, -1)
    return verified


@pytest.mark.parametrize("basis", ["ranking", "votes"])
def test_no_answers(basis):
    scores, candidate, true = simulate()
    found = find_missing(scores, candidate, answer(true, candidate, 0), basis)
    assert found.basis == basis
    assert_allclose(found.probabilities, np.where(candidate, 0, scores))


def test_answers_about_candidates_do_not_count():
    scores, candidate, true = simulate()
    verified = np.where(candidate, np.where(true, 1, -1), 0).astype(np.int8)
    found = find_missing(scores, candidate, verified, "ranking")
    assert found.basis == "ranking"
    assert_allclose(found.probabilities, np.where(candidate, 0, scores))


@pytest.mark.parametrize(
    ("count", "basis"), [(1, "ranking"), (9, "ranking"), (10, "verified"), (500, "verified")]
)
def test_order_stays(count, basis):
    scores, candidate, true = simulate()
    verified = answer(true, candidate, count)
    found = find_missing(scores, candidate, verified, "ranking")
    assert found.basis == basis
    opened = ~candidate & (verified == 0)
    assert_array_equal(found.probabilities > 0, opened)
    order = np.argsort(scores[opened])
    assert (np.diff(found.probabilities[opened][order]) > 0).all()
    cells = found.cells()
    assert len(cells) == opened.sum()
    assert (np.diff(found.probabilities[tuple(cells.T)]) <= 0).all()
    assert len(found.cells(0.3)) == (found.probabilities >= 0.3).sum()


def test_even_answers_against_the_order_do_not_turn_it():
    scores, candidate, _ = simulate()
    verified = answer(scores < np.median(scores), candidate, 1000)
    opened = ~candidate & (verified == 0)
    found = find_missing(scores, candidate, verified, "ranking").probabilities[opened]
    assert (np.diff(found[np.argsort(scores[opened])]) > 0).all()


def test_many_answers_calibrate():
    """Without a prior it is the logistic regression of a library; the level is that of the truth."""
    scores, candidate, true = simulate(n=5000)
    verified = answer(true, candidate, 4000)
    found = find_missing(scores, candidate, verified, "ranking").probabilities
    answered, opened = ~candidate & (verified != 0), ~candidate & (verified == 0)
    library = LogisticRegression(C=1e6).fit(logit(scores[answered])[:, None], verified[answered] > 0)
    expected = library.predict_proba(logit(scores[opened])[:, None])[:, 1]
    assert_allclose(found[opened], expected, atol=0.01)
    assert abs(found[opened].mean() - true[opened].mean()) < 0.02


def test_few_answers_change_little():
    """Five answers hardly move a level that votes have set, even if one of them is a surprise."""
    scores, candidate, true = simulate(shift=0.0, factor=1.0)
    change = [
        np.abs(
            find_missing(scores, candidate, answer(true, candidate, 5, seed), "votes").probabilities - scores
        )[~candidate].mean()
        for seed in range(10)
    ]
    assert np.mean(change) < 0.02


def test_audit_has_it():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    true = X[:, :3] > 0.3
    votes = rng.binomial(3, np.where(true, 0.6, 0.1))
    found = audit(X, votes=votes, n_annotators=3).missing
    assert found.basis == "votes"
    assert not found.probabilities[votes > 0].any()
    candidates = (votes > 0).astype(int)
    options = {"method": "ridge", "n_folds": 3}
    assert audit(X, candidates, **options).missing.basis == "ranking"
    verified = answer(true, candidates > 0, 100)
    checked = audit(X, candidates, verified=verified, **options).missing
    assert checked.basis == "verified"
    opened = (candidates == 0) & (verified == 0)
    assert abs(checked.probabilities[opened].mean() - true[opened].mean()) < 0.05


def test_columns_of_verified_cells_have_the_order_of_the_labels():
    pandas = pytest.importorskip("pandas")
    from skpml import CandidateLikelihood

    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 3)), pandas.DataFrame(rng.integers(0, 2, size=(40, 2)), columns=["a", "b"])
    turned = pandas.DataFrame(np.zeros((40, 2), int), columns=["b", "a"])
    with pytest.raises(ValueError, match="column 0 is 'b' and label 0 is 'a'"):
        audit(X, Y, verified=turned)
    with pytest.raises(ValueError, match="column 0 is 'b' and label 0 is 'a'"):
        audit(X, Y.to_numpy(), verified=turned, label_names=["a", "b"])
    with pytest.raises(ValueError, match="column 0 is 'b' and label 0 is 'a'"):
        CandidateLikelihood(on_empty="ignore").fit(X, Y, verified=turned)
