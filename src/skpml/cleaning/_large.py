"""Audit of large tables: random rows as a whole, then the others in blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.utils import Bunch, gen_batches

from skpml._validation import check_finite, take_rows
from skpml.cleaning._evidence import SURE, conclude, decide, make_spectrum, promise
from skpml.cleaning._judging import (
    CERTAIN,
    Progress,
    WrongCounts,
    count_from_sample,
    count_without_noise,
)
from skpml.likelihood import ENOUGH_CANDIDATES, certify_drops, learn_from_verified
from skpml.linalg import rows_at_once
from skpml.tables import release_rows

# Tables of up to so many rows are audited as a whole.
MOST_AUDITED = 200_000
# Of larger ones, so many random rows are, and the others are judged in blocks of at most as many.
BLOCK_ROWS = 100_000
# Rows whose verified cells are learned from: time grows with the third power of their number.
_MOST_CHECKED = 2_000
# Share of the progress for the audited rows.
_FIRST_SHARE = 0.5
# Rows that are read at a time to check or to compare them.
_ROWS_AT_ONCE = 4096


def audit_in_blocks(
    judge: Callable[..., Bunch],
    X: Any,
    Y: NDArray[Any],
    *,
    verified: NDArray[np.int8],
    sample: NDArray[np.bool_],
    rule: dict[str, Any],
    drop_precision: float | None,
    random_state: int,
    progress: Progress | None,
) -> tuple[Bunch, Bunch]:
    """Return what :func:`conclude` starts from, and its result, for all rows of a large table.

    ``judge(X, Y, progress=...)`` judges some rows by models of others and returns the model of all of them. That model
    scores the other rows, which it has not seen; a copy of an audited row gets the held-out score of that row. Noise
    rates, calibration and thresholds are those of the audited rows. Each block learns from the same verified cells.
    """
    report = progress if progress is not None else lambda done, total, what: None
    _check_rows(X)
    random = np.random.default_rng(random_state)
    drawn = random.permutation(len(Y))[:BLOCK_ROWS]
    checked = random.permutation(np.flatnonzero(verified.any(axis=1)))
    # Whether drops are precise is known from the random sample.
    checked = checked[np.argsort(~sample[checked].any(axis=1), kind="stable")][:_MOST_CHECKED]
    some = np.union1d(drawn, checked)
    features = take_rows(X, some)
    release_rows(X)
    first = judge(
        features,
        Y[some],
        progress=lambda done, total, what: report(int(done * _FIRST_SHARE), total, what),
    )
    part = conclude(
        first,
        features,
        Y[some],
        verified=verified[some],
        sample=sample[some],
        rule=rule,
        drop_precision=drop_precision,
        random_state=random_state,
    )
    names = ("probabilities", "expected", "at_least_noise", "confidences")
    whole: dict[str, NDArray[Any]] = {name: np.zeros(Y.shape, dtype=np.float32) for name in names}
    judged: NDArray[Any] = np.zeros(Y.shape, dtype=np.float32) if verified.any() else whole["confidences"]
    most = np.full((len(Y), 1), part.most)

    def store(rows: NDArray[np.intp], scores: Bunch, of_rows: NDArray[Any], known: NDArray[Any]) -> None:
        for name in names[:3]:
            whole[name][rows] = scores[name]
        # In single precision, only what a person checked may be 0 or 1.
        sure = np.clip(known, CERTAIN, 1 - CERTAIN)
        whole["confidences"][rows] = np.where((Y[rows] > 0) & (verified[rows] == 0), sure, known)
        if judged is not whole["confidences"]:
            judged[rows] = of_rows

    store(some, first.found, part.judged, part.confidences)
    # Of wrong candidates by label, as if nothing was verified.
    n_wrong = _count_wrong(first.found.confidences, Y[some])
    places = np.searchsorted(some, checked)
    known = Bunch(
        rows=checked,
        Y=Y[checked],
        verified=verified[checked],
        sample=sample[checked],
        judged=first.found.confidences[places],
        probabilities=first.found.probabilities[places],
    )
    keys = hash_rows(features)
    order = np.argsort(keys, kind="stable")
    others = np.setdiff1d(np.arange(len(Y)), some, assume_unique=True)
    size = BLOCK_ROWS
    if not scipy.sparse.issparse(X):
        # Each block learns from the checked rows again, so blocks of wide rows are not too small either.
        size = int(np.clip(rows_at_once(8 * X.shape[1]), BLOCK_ROWS // 5, BLOCK_ROWS))
    blocks = np.array_split(others, -(-len(others) // size))
    for number, rows in enumerate(blocks):
        share = _FIRST_SHARE + (1 - _FIRST_SHARE) * number / len(blocks)
        report(round(100 * share), 100, "judging the other rows")
        features = take_rows(X, rows)
        release_rows(X)
        with config_context(transform_output="default"):
            raw = np.asarray(first.model.predict_proba(features))
        found = hash_rows(features)
        near = order[np.minimum(np.searchsorted(keys, found, sorter=order), len(order) - 1)]
        copies = keys[near] == found
        raw[copies] = first.scores[near[copies]]
        scores = first.found.calibration.apply(raw, Y[rows])
        n_wrong += _count_wrong(scores.held_out, Y[rows])
        of_rows = scores.held_out
        if len(checked):
            of_rows, most_here = _learn(X, Y, rows, scores, known, drop_precision, random_state)
            if part.evidence.drops == "verified":
                most[rows] = min(part.most, most_here)
        store(rows, scores, of_rows, np.where(verified[rows] != 0, verified[rows] > 0, of_rows))
    actions = decide(
        whole["confidences"],
        whole["at_least_noise"],
        Y > 0,
        verified,
        rule=rule,
        basis=part.evidence.drops,
        most=most,
        undecided=first.undecided,
    )
    if np.count_nonzero(sample) >= ENOUGH_CANDIDATES:
        wrong = count_from_sample(judged, Y > 0, verified, sample)
    elif first.label_free == "random noise":
        wrong = _extrapolate(part.wrong, n_wrong, Y, (Y[some] > 0).sum(axis=0), first.undecided)
    else:
        wrong = count_without_noise(whole["confidences"], Y > 0, verified, known=False)
    doubtful = whole["at_least_noise" if part.evidence.drops == "random noise" else "confidences"]
    evidence = replace(
        part.evidence,
        n_verified=int(np.count_nonzero(verified)),
        n_sample=int(sample.sum()),
        drops_wrong=promise(doubtful, actions, verified, part.evidence.drops, drop_precision),
    )
    first.found.probabilities, first.expected = whole["probabilities"], whole["expected"]
    return first, Bunch(
        confidences=whole["confidences"], judged=judged, actions=actions, wrong=wrong, evidence=evidence
    )


def hash_rows(X: Any) -> NDArray[np.uint64]:
    """Return a number for each row of a matrix, a CSR matrix or a data frame: equal for equal rows, else hardly ever.

    Each value, in double precision, is mixed with the number of its column; a 0 counts nothing, so that sparse matrices
    need not store it.
    """
    keys = np.random.default_rng(0).integers(np.iinfo(np.uint64).max, size=X.shape[1], dtype=np.uint64)
    of_zeros = _mix(keys)
    if scipy.sparse.issparse(X):
        values = X.copy()
        values.sum_duplicates()
        values.eliminate_zeros()
        bits = np.asarray(values.data, dtype=np.float64).view(np.uint64)
        terms = _mix(bits + keys[values.indices]) - of_zeros[values.indices]
        # Sums of unsigned integers wrap around, so that differences of them are right.
        total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms, dtype=np.uint64)])
        return np.asarray(total[values.indptr[1:]] - total[values.indptr[:-1]])
    found = np.empty(X.shape[0], dtype=np.uint64)
    values = np.asarray(X)
    for rows in gen_batches(X.shape[0], _ROWS_AT_ONCE):
        # Adding 0 turns −0 into 0.
        bits = (values[rows].astype(np.float64, order="C") + 0.0).view(np.uint64)
        found[rows] = (_mix(bits + keys) - of_zeros).sum(axis=1, dtype=np.uint64)
    return found


def _mix(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread every bit over all others, without a collision (the finalizer of SplitMix64)."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


def _check_rows(X: Any) -> None:
    """Raise for NaN and infinity before any work, with the row of the whole table."""
    if isinstance(X, np.ndarray) or scipy.sparse.issparse(X):
        for rows in gen_batches(X.shape[0], _ROWS_AT_ONCE):
            check_finite(X[rows], first_row=rows.start)
            release_rows(X)


def _learn(
    X: Any,
    Y: NDArray[Any],
    rows: NDArray[np.intp],
    scores: Bunch,
    known: Bunch,
    drop_precision: float | None,
    random_state: int,
) -> tuple[NDArray[Any], float]:
    """Return the confidences of a block of rows, learned from verified cells, and up to which drops are precise."""
    m = len(known.rows)
    learned = learn_from_verified(
        np.concatenate([known.Y, Y[rows]]),
        np.concatenate([known.verified, np.zeros((len(rows), Y.shape[1]), dtype=np.int8)]),
        np.concatenate([known.judged, scores.held_out]),
        np.concatenate([known.probabilities, scores.probabilities]),
        spectrum=make_spectrum(take_rows(X, np.concatenate([known.rows, rows])), random_state),
        random_state=random_state,
    )
    most = 1.0
    if drop_precision is not None and known.sample.any():
        sure, wrong = learned.judged[:m][known.sample], known.verified[known.sample] < 0
        most = certify_drops(sure, wrong, precision=drop_precision, level=SURE)
    return learned.confidences[m:], most


def _count_wrong(confidences: NDArray[Any], Y: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(np.sum((1 - confidences) * (Y > 0), axis=0, dtype=np.float64))


def _extrapolate(
    part: WrongCounts,
    n_wrong: NDArray[np.float64],
    Y: NDArray[Any],
    audited: NDArray[np.intp],
    undecided: NDArray[np.bool_],
) -> WrongCounts:
    """Return the counts of all rows from those of the audited rows, with ``audited`` candidates by label.

    Intervals are as wide as those of the audited rows, relative to the number of candidates.
    """
    count = (Y > 0).sum(axis=0)
    factor = count / np.maximum(audited, 1)
    low = np.clip(n_wrong - factor * (part.estimate - part.low), 0, count)
    high = np.clip(n_wrong + factor * (part.high - part.estimate), 0, count)
    total, least, most = part.total
    times, middle = float(count.sum() / max(audited.sum(), 1)), float(n_wrong.sum())
    # Nothing is known about labels that no audited row has.
    absent = audited == 0
    below = times * (total - least) + float(n_wrong[absent].sum())
    above = times * (most - total) + float((count - n_wrong)[absent].sum())
    return WrongCounts(
        estimate=n_wrong,
        low=np.where(undecided, 0.0, low),
        high=np.where(undecided, count, high),
        total=(middle, max(0.0, middle - below), min(float(count.sum()), middle + above)),
        basis=part.basis,
    )
