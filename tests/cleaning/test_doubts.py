"""Doubts that are made when asked for are those of a list, and only the first are compared with similar rows."""

import numpy as np
import pytest

from skpml.cleaning import Doubt, Reason
from skpml.cleaning._batch import find_doubts

N, C = 60, 3


@pytest.fixture
def found(monkeypatch):
    monkeypatch.setattr("skpml.cleaning._batch.MAX_COMPARED", 8)
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(N, 2)), (rng.random((N, C)) < 0.5).astype(np.uint8)
    confidences, probabilities = rng.random((N, C)) * Y, rng.random((N, C))
    actions = np.where(Y > 0, np.where(confidences < 0.2, "drop", "ask"), "")
    doubts = find_doubts(
        X, Y, (Y > 0) & (confidences < 0.7), actions, probabilities=probabilities, confidences=confidences,
        n_neighbors=5, random_state=0,
    )  # fmt: skip
    return doubts, X, Y, confidences, probabilities, actions


def test_every_doubtful_cell_once_the_most_useful_first(found):
    doubts, _, Y, confidences, probabilities, actions = found
    cells = [(doubt.row, doubt.label) for doubt in doubts]
    assert len(cells) == len(doubts) == np.count_nonzero((Y > 0) & (confidences < 0.7))
    assert set(cells) == set(zip(*np.nonzero((Y > 0) & (confidences < 0.7)), strict=True))
    use = [min(doubt.confidence, 1 - doubt.confidence) for doubt in doubts]
    assert use == sorted(use, reverse=True)
    for doubt in doubts:
        cell = doubt.row, doubt.label
        assert (doubt.action, doubt.confidence) == (actions[cell], confidences[cell])
        assert doubt.reason.probability == probabilities[cell]
        assert doubt.reason.usual == pytest.approx(Y[:, doubt.label].mean())


def test_only_the_first_are_compared_with_similar_rows(found):
    doubts, X, Y, *_ = found
    assert [doubt.reason.neighbors for doubt in doubts] == [5] * 8 + [0] * (len(doubts) - 8)
    for doubt in doubts[:8]:
        near = np.argsort(((X - X[doubt.row]) ** 2 / np.ptp(X, axis=0) ** 2).sum(axis=1))[1:6]
        assert doubt.reason.carried == Y[near, doubt.label].sum()
    assert "similar rows" not in str(doubts[-1].reason)


def test_it_is_a_sequence(found):
    doubts = found[0]
    listed = list(doubts)
    assert doubts == listed
    assert doubts != listed[1:]
    assert doubts != [*listed[:-1], listed[0]]
    assert (doubts == "doubts") is False
    assert doubts[-1] == listed[-1]
    assert listed[5] in doubts
    assert list(doubts[3:12:2]) == listed[3:12:2]
    assert list(doubts[::-1]) == listed[::-1]
    assert list(doubts[5:][4:]) == listed[9:]
    assert isinstance(doubts[0], Doubt)
    assert isinstance(doubts[0].reason, Reason)
    assert str(len(listed)) in repr(doubts)
    with pytest.raises(IndexError):
        doubts[len(doubts)]


def test_some_are_selected_with_their_reasons(found):
    doubts = found[0]
    listed = list(doubts)
    mask = np.arange(len(doubts)) % 3 == 1
    assert list(doubts.select(mask)) == [doubt for doubt, chosen in zip(listed, mask, strict=True) if chosen]
    assert list(doubts.select(np.array([2, 7, 8, 20]))) == [listed[place] for place in (2, 7, 8, 20)]
    assert not doubts.select(np.zeros(len(doubts), dtype=bool))
