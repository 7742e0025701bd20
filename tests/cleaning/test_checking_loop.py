"""The loop from Python: audit, check the batch, audit again with what was found."""

from __future__ import annotations

import numpy as np
import pytest

from skpml.cleaning import audit


def make_rows(n_rows: int = 240, n_labels: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, candidates and true labels."""
    rng = np.random.default_rng(0)
    truth = rng.random((n_rows, n_labels)) < 0.4
    truth[np.arange(n_rows), rng.integers(n_labels, size=n_rows)] = True
    X = truth @ rng.normal(size=(n_labels, 3)) + 0.3 * rng.normal(size=(n_rows, 3))
    return X, (truth | (rng.random(truth.shape) < 0.25)).astype(np.uint8), truth


@pytest.mark.slow
def test_batches_are_checked_and_audited_again() -> None:
    X, Y, truth = make_rows()
    verified, at_random = np.zeros(Y.shape, dtype=np.int8), np.zeros(Y.shape, dtype=bool)
    options = {"method": "ridge", "n_folds": 3, "batch_size": 60}
    widths = []
    for _ in range(3):
        found = audit(X, Y, verified=verified, at_random=at_random, **options)
        np.testing.assert_array_equal(found.verified, verified)
        # What was found is neither overruled nor asked again.
        assert (found.actions[(verified < 0)] == "drop").all()
        assert (found.actions[(verified > 0) & (Y > 0)] == "keep").all()
        asked = [(question.row, question.label) for question in found.batch]
        assert len(set(asked)) == len(asked) == 60
        assert not any(verified[cell] for cell in asked)
        assert not any(verified[doubt.row, doubt.label] for doubt in found.doubts)
        if at_random.any():
            assert found.wrong.basis == "sample"
            assert found.evidence.n_verified == np.count_nonzero(verified)
            assert found.evidence.n_sample == np.count_nonzero(at_random)
            widths.append(found.wrong.total[2] - found.wrong.total[1])
        for question in found.batch:
            verified[question.row, question.label] = 1 if truth[question.row, question.label] else -1
            at_random[question.row, question.label] = question.drawn > 0
    assert widths[1] <= widths[0]
