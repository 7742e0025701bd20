"""Tables of more rows than an audit takes at a time: the others are judged like the audited rows."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.metrics import roc_auc_score

from skpml.cleaning import audit
from skpml.cleaning._large import hash_rows

N, C, AUDITED = 2000, 4, 600
OPTIONS = {"random_state": 0, "batch_size": 10}


def made_up(noise="random"):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 5)).astype(np.float32)
    truth = X[:, :C] + 0.3 * rng.normal(size=(N, C)) > 0.5
    # Structured noise: wrong tags of rows of a kind that the last feature shows.
    where, rate = (True, 0.3) if noise == "random" else (X[:, 4:] > 0.7, 0.9)
    false = where & (rng.random((N, C)) < rate)
    return X, truth, (truth | false).astype(np.uint8)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("skpml.cleaning._audit.MOST_AUDITED", 1000)
    monkeypatch.setattr("skpml.cleaning._large.BLOCK_ROWS", AUDITED)


@pytest.fixture(scope="module")
def found():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skpml.cleaning._audit.MOST_AUDITED", 1000)
        patch.setattr("skpml.cleaning._large.BLOCK_ROWS", AUDITED)
        X, _, Y = made_up()
        return audit(X, Y, **OPTIONS)


def audited_rows():
    return np.sort(np.random.default_rng(0).permutation(N)[:AUDITED])


def test_audited_rows_are_those_of_an_audit_of_them_alone(found):
    X, _, Y = made_up()
    some = audited_rows()
    alone = audit(X[some], Y[some], **OPTIONS)
    assert_allclose(found.confidences[some], alone.confidences, atol=2e-6)
    assert_allclose(found.probabilities[some], alone.probabilities, atol=1e-6)
    assert (found.actions[some] == alone.actions).all()
    assert_allclose(found.noise_rate, alone.noise_rate)
    # The area under the curve is NaN without checked tags; the promise is about the drops of all rows.
    of_all = {"auc": 0.0, "drops_wrong": 0.0}
    assert replace(found.evidence, **of_all) == replace(alone.evidence, **of_all)


def test_other_rows_are_judged_as_well(found):
    _, truth, Y = made_up()
    others = np.setdiff1d(np.arange(N), audited_rows())
    candidate = Y > 0
    assert ((found.actions != "") == candidate).all()
    assert ((found.confidences > 0) == candidate).all()
    auc = {}
    for name, rows in (("audited", audited_rows()), ("others", others)):
        cells = candidate[rows]
        auc[name] = roc_auc_score(truth[rows][cells], found.confidences[rows][cells])
    assert auc["others"] == pytest.approx(auc["audited"], abs=0.02)
    dropped = found.actions[others] == "drop"
    assert dropped.any()
    assert (~truth[others])[dropped].mean() >= found.evidence.drops_wrong - 0.03
    kept = candidate & (found.actions != "drop")
    assert kept.any(axis=1)[candidate.any(axis=1)].all()


def test_a_row_gets_what_model_and_calibration_of_the_audited_rows_say(found):
    # Confidences of random noise rise with the probability, in one curve for all rows of a label.
    X, _, Y = made_up()
    others = np.setdiff1d(np.arange(N), audited_rows())
    scores = found.model.predict_proba(X[others])
    for label in range(C):
        rows = np.flatnonzero(Y[others, label])
        order = np.argsort(scores[rows, label])
        assert (np.diff(found.confidences[others][rows, label][order]) >= -1e-6).all()
        p, sure = found.probabilities[others][rows, label], found.confidences[others][rows, label]
        assert_allclose(sure, p / (p + (1 - p) * found.noise_rate[label]), atol=1e-5)


def test_counts_are_those_of_all_rows(found):
    _, truth, Y = made_up()
    wrong = ((Y > 0) & ~truth).sum(axis=0)
    assert (found.wrong.low <= wrong).all()
    assert (wrong <= found.wrong.high).all()
    estimate, low, high = found.wrong.total
    assert low <= wrong.sum() <= high
    assert estimate == pytest.approx((1 - found.confidences[Y > 0]).sum(), rel=1e-4)
    assert_allclose(found.wrong.estimate.sum(), estimate)


def test_what_a_person_checked_is_respected_and_learned_from():
    X, truth, Y = made_up("structured")
    verified = np.zeros(Y.shape, dtype=np.int8)
    candidates = np.argwhere(Y > 0)
    checked = candidates[np.random.default_rng(1).permutation(len(candidates))[:200]]
    verified[tuple(checked.T)] = np.where(truth[tuple(checked.T)], 1, -1)
    before, after = audit(X, Y, **OPTIONS), audit(X, Y, verified=verified, at_random=verified != 0, **OPTIONS)
    assert (after.confidences[verified > 0] == 1).all()
    assert (after.confidences[verified < 0] == 0).all()
    assert (after.actions[verified < 0] == "drop").all()
    assert (after.evidence.n_verified, after.evidence.n_sample) == (200, 200)
    others = np.setdiff1d(np.arange(N), audited_rows())
    cells = np.zeros(Y.shape, dtype=bool)
    cells[others] = (Y[others] > 0) & (verified[others] == 0)
    gain = roc_auc_score(truth[cells], after.confidences[cells]) - roc_auc_score(
        truth[cells], before.confidences[cells]
    )
    assert gain > 0.03
    assert after.wrong.basis == "sample"
    assert after.wrong.total[1] <= ((Y > 0) & ~truth).sum() <= after.wrong.total[2]


def test_labels_that_a_person_adds_are_no_candidates_and_not_counted(found):
    X, truth, Y = made_up()
    added = np.argwhere(Y == 0)[:300]
    verified = np.zeros(Y.shape, dtype=np.int8)
    verified[tuple(added.T)] = 1
    after = audit(X, Y, verified=verified, **OPTIONS)
    assert (after.confidences[verified > 0] == 1).all()
    wrong = ((Y > 0) & ~truth).sum()
    assert after.wrong.total[1] <= wrong <= after.wrong.total[2]
    assert after.wrong.total[0] == pytest.approx(found.wrong.total[0], rel=0.1)


def test_a_copy_of_an_audited_row_gets_its_held_out_score():
    # Without the copies, the labels of a row would be in the model that judges it.
    few, _, Y = (each[:150] for each in made_up())
    copy = np.tile(np.arange(150), 14)
    for X in (few[copy], scipy.sparse.csr_array(few[copy]), scipy.sparse.coo_array(few[copy])):
        found = audit(X, Y[copy], **OPTIONS)
        some = np.sort(np.random.default_rng(0).permutation(len(copy))[:AUDITED])
        others = np.setdiff1d(np.arange(len(copy)), some)
        first = {copy[row]: row for row in some}
        twins = np.array([first[copy[row]] for row in others if copy[row] in first])
        others = np.array([row for row in others if copy[row] in first])
        assert len(twins) > 1000
        assert_allclose(found.probabilities[others], found.probabilities[twins], atol=1e-6)


# Numbers whose last bits are 0 are like each other: flags, counts, and what was rounded.
@pytest.mark.parametrize("scale", [1, 1 / 8, 0.1, np.pi])
@pytest.mark.parametrize("values", [2, 3, 256])
def test_hashes_are_those_of_the_content(values, scale):
    rng = np.random.default_rng(0)
    # Some rows are there twice.
    X = rng.integers(values, size=(3000, 12))[rng.integers(3000, size=6000)] * scale
    keys = hash_rows(X)
    _, content = np.unique(X, axis=0, return_inverse=True)
    _, found = np.unique(keys, return_inverse=True)
    assert found.max() == content.max()
    assert len(np.unique(np.column_stack([content.ravel(), found.ravel()]), axis=0)) == content.max() + 1
    assert (hash_rows(scipy.sparse.csr_array(X)) == keys).all()
    assert (hash_rows(np.where(X == 0, -0.0, X)) == keys).all()
    assert (hash_rows(np.asfortranarray(X)) == keys).all()
    # Columns are not exchangeable.
    assert (hash_rows(X[:, ::-1]) != keys).mean() > 0.9


def test_rows_of_flags_are_not_taken_for_copies_of_each_other():
    rng = np.random.default_rng(0)
    X = (rng.random((N, 40)) < 0.5).astype(np.float64)
    truth = X @ rng.normal(size=(40, C)) > 0.5
    Y = (truth | (rng.random((N, C)) < 0.3)).astype(np.uint8)
    found = audit(X, Y, **OPTIONS)
    auc = {}
    for name, rows in (("audited", audited_rows()), ("others", np.setdiff1d(np.arange(N), audited_rows()))):
        cells = Y[rows] > 0
        auc[name] = roc_auc_score(truth[rows][cells], found.confidences[rows][cells])
    assert auc["others"] == pytest.approx(auc["audited"], abs=0.02)


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_array])
def test_a_missing_value_is_named_by_its_row_before_any_work(make):
    X, _, Y = made_up()
    X[1500, 2] = np.nan
    steps = []
    with pytest.raises(ValueError, match="NaN in row 1500, column 2"):
        audit(make(X), Y, progress=lambda *step: steps.append(step), **OPTIONS)
    assert not steps


def test_a_label_that_no_audited_row_has():
    X, _, Y = made_up()
    others = np.setdiff1d(np.arange(N), audited_rows())
    rare = np.zeros((N, 1), dtype=np.uint8)
    rare[others[:30]] = 1
    found = audit(X, np.hstack([Y, rare]), **OPTIONS)
    assert (found.actions[others[:30], C] != "drop").all()
    assert (found.wrong.low[C], found.wrong.high[C]) == (0, 30)
    assert found.wrong.total[2] - found.wrong.total[1] >= 30


def test_the_promise_is_that_of_all_drops():
    _, truth, Y = made_up()
    few, many = (audit(made_up()[0], Y, budget=budget, **OPTIONS) for budget in (0, 1500))
    for found in (few, many):
        drops = found.actions == "drop"
        assert (~truth)[drops].mean() >= found.evidence.drops_wrong - 0.03
    # Who asks about the most doubtful tags drops surer ones.
    assert many.evidence.drops_wrong > few.evidence.drops_wrong


def test_many_checked_rows_are_respected_and_some_learned_from(monkeypatch):
    monkeypatch.setattr("skpml.cleaning._large._MOST_CHECKED", 40)
    X, truth, Y = made_up("structured")
    rows = np.random.default_rng(1).permutation(N)[:300]
    verified = np.zeros(Y.shape, dtype=np.int8)
    verified[rows] = np.where(truth[rows], 1, -1)
    found = audit(X, Y, verified=verified, **OPTIONS)
    assert (found.confidences[verified > 0] == 1).all()
    assert (found.confidences[(verified < 0)] == 0).all()
    assert found.evidence.n_verified == 300 * C


def test_progress_ends_and_never_turns_back():
    X, _, Y = made_up()
    told = []
    audit(X, Y, progress=lambda done, total, what: told.append(done / total), **OPTIONS)
    assert told == sorted(told)
    assert told[-1] > 0.5
    assert told[-1] <= 1


def test_a_first_look_drops_nothing_and_a_budget_asks_for_as_many():
    X, _, Y = made_up()
    fast = audit(X, Y, fast=True, **OPTIONS)
    assert not (fast.actions == "drop").any()
    assert fast.evidence.fast
    asked = audit(X, Y, budget=25, **OPTIONS)
    # A row that would lose its last tag is asked about on top.
    emptied = (asked.actions == "ask").any(axis=1) & ~(asked.actions == "keep").any(axis=1)
    assert 25 <= (asked.actions == "ask").sum() <= 25 + emptied.sum()


def test_the_model_of_the_cleaned_tags_learns_from_some_rows(found):
    X, truth, _ = made_up()
    model = found.train_model(X, max_rows=500)
    assert len(model.confidences_) == 500
    assert roc_auc_score(truth, model.predict_proba(X)) > 0.95
