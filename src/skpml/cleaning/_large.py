"""Audit of more rows than fit into an audit as a whole: random ones first, then the others by what these have taught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.utils import Bunch, gen_batches

from skpml._validation import take_rows
from skpml.cleaning._concluding import conclude, decide, make_spectrum
from skpml.cleaning._judging import Floats, Progress, WrongCounts, count_from_sample, count_without_noise
from skpml.likelihood import ENOUGH_CANDIDATES, learn_from_verified

# Rows that are audited as a whole; beyond them, the others are judged in blocks of as many.
MOST_AUDITED = 200_000
BLOCK_ROWS = 100_000
# Rows with verified cells that teach about all others.
_MOST_TEACHERS = 10_000
_CERTAIN = 1e-6
# Of the progress, that of the first rows.
_FIRST_SHARE = 0.5


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

    ``judge(X, Y, progress=...)`` audits some rows by a model of them. No model has seen the other rows, so that their
    scores by the model of all these rows are held out; they get the noise rates, the calibration and the thresholds of
    the audited rows. Rows with verified cells are audited and teach about those of each block.
    """
    n, tell = len(Y), progress if progress is not None else lambda done, total, what: None
    random = np.random.default_rng(random_state)
    drawn = random.permutation(n)[:BLOCK_ROWS]
    checked = random.permutation(np.flatnonzero(verified.any(axis=1)))[:_MOST_TEACHERS]
    some = np.union1d(drawn, checked)
    features = take_rows(X, some)
    known: dict[str, Any] = {"verified": verified[some], "sample": sample[some]}
    first = judge(
        features, Y[some], progress=lambda done, total, what: tell(int(done * _FIRST_SHARE), total, what)
    )
    options: dict[str, Any] = {"rule": rule, "drop_precision": drop_precision, "random_state": random_state}
    part = conclude(first, features, Y[some], **known, **options)
    whole: dict[str, NDArray[Any]] = {
        name: np.zeros(Y.shape, dtype=np.float32) for name in ("probabilities", "confidences", "expected")
    }
    judged: NDArray[Any] = np.zeros(Y.shape, dtype=np.float32) if verified.any() else whole["confidences"]
    actions = np.full(Y.shape, "", dtype="<U4")

    def store(rows: NDArray[np.intp], scores: Bunch, found: Bunch) -> None:
        whole["probabilities"][rows], whole["expected"][rows] = scores.probabilities, scores.expected
        # In single precision, only what a person checked may be 0 or 1.
        sure = np.clip(found.confidences, _CERTAIN, 1 - _CERTAIN)
        unchecked = (Y[rows] > 0) & (verified[rows] == 0)
        whole["confidences"][rows] = np.where(unchecked, sure, found.confidences)
        if judged is not whole["confidences"]:
            judged[rows] = found.judged
        actions[rows] = found.actions

    store(some, Bunch(probabilities=first.found.probabilities, expected=first.expected), part)
    places = np.searchsorted(some, checked)
    teachers = Bunch(
        rows=checked,
        Y=Y[checked],
        verified=verified[checked],
        judged=first.found.confidences[places],
        probabilities=first.found.probabilities[places],
    )
    others = np.setdiff1d(np.arange(n), some, assume_unique=True)
    for batch in gen_batches(len(others), BLOCK_ROWS):
        share = _FIRST_SHARE + (1 - _FIRST_SHARE) * batch.start / len(others)
        tell(round(100 * share), 100, "judging the other rows")
        rows = others[batch]
        scores = first.found.calibration.apply(_predict(first.model, take_rows(X, rows)), Y[rows])
        scores.expected = scores.probabilities + (1 - scores.probabilities) * first.found.noise_rate
        found = _judge_block(X, Y, rows, verified[rows], scores, teachers, random_state)
        found.actions = decide(
            found.confidences,
            scores.at_least_noise,
            Y[rows] > 0,
            verified[rows],
            rule=rule if rule["budget"] is None else {**rule, "budget": 0},
            basis=part.evidence.drops,
            most=part.most,
            undecided=first.undecided,
        )
        store(rows, scores, found)
    if np.count_nonzero(sample) >= ENOUGH_CANDIDATES:
        part.wrong = count_from_sample(judged, Y > 0, verified, sample)
    elif first.label_free == "random noise":
        part.count = (Y[some] > 0).sum(axis=0)
        part.wrong = _extrapolate(part, Y, whole["confidences"], first.undecided)
    else:
        part.wrong = count_without_noise(whole["confidences"], Y > 0, verified, known=False)
    first.found.probabilities, first.expected = whole["probabilities"], whole["expected"]
    part.update(confidences=whole["confidences"], judged=judged, actions=actions)
    n_verified, n_sample = int(np.count_nonzero(verified)), int(sample.sum())
    part.evidence = replace(part.evidence, n_verified=n_verified, n_sample=n_sample)
    return first, part


def _predict(model: Any, X: Any) -> Floats:
    with config_context(transform_output="default"):
        return np.asarray(model.predict_proba(X))


def _judge_block(
    X: Any,
    Y: NDArray[Any],
    rows: NDArray[np.intp],
    verified: NDArray[np.int8],
    scores: Bunch,
    teachers: Bunch,
    random_state: int,
) -> Bunch:
    """Return the confidences of a block of rows, learned from verified cells of others if there are any."""
    judged = scores.held_out
    if m := len(teachers.rows):
        learned = learn_from_verified(
            np.concatenate([teachers.Y, Y[rows]]),
            np.concatenate([teachers.verified, np.zeros_like(verified)]),
            np.concatenate([teachers.judged, scores.held_out]),
            np.concatenate([teachers.probabilities, scores.probabilities]),
            spectrum=make_spectrum(take_rows(X, np.concatenate([teachers.rows, rows])), random_state),
            random_state=random_state,
        )
        judged = learned.confidences[m:]
    # Answers that teach nothing, because there are too many, are respected.
    return Bunch(judged=judged, confidences=np.where(verified != 0, verified > 0, judged))


def _extrapolate(
    part: Bunch, Y: NDArray[Any], confidences: NDArray[Any], undecided: NDArray[np.bool_]
) -> WrongCounts:
    """Return the counts of all rows, whose intervals are as wide as those of the audited rows, relative to the tags."""
    count = (Y > 0).sum(axis=0)
    estimate = count - confidences.sum(axis=0, dtype=np.float64)
    factor = count / np.maximum(part.count, 1)
    low = np.clip(estimate - factor * (part.wrong.estimate - part.wrong.low), 0, count)
    high = np.clip(estimate + factor * (part.wrong.high - part.wrong.estimate), 0, count)
    total, least, most = part.wrong.total
    times = count.sum() / max(part.count.sum(), 1)
    middle = float(estimate.sum())
    ends = (
        max(0.0, middle - times * (total - least)),
        min(float(count.sum()), middle + times * (most - total)),
    )
    return WrongCounts(
        estimate=estimate,
        low=np.where(undecided, 0.0, low),
        high=np.where(undecided, count, high),
        total=(middle, *ends),
        basis=part.wrong.basis,
    )
