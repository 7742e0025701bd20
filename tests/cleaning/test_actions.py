"""Actions behave as an array of str."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from skpml.cleaning import Actions

NAMES = np.array(["", "keep", "drop", "ask"])


@pytest.fixture
def text():
    return NAMES[np.random.default_rng(0).integers(4, size=(30, 5))]


@pytest.fixture
def actions(text):
    made = Actions(text.shape)
    made[:] = text
    return made


def test_they_are_empty_at_first():
    assert_array_equal(Actions((3, 2)), np.full((3, 2), ""))


def test_they_compare_as_an_array_of_str(text, actions):
    for other in (*NAMES, "burn", text[::-1], text[0], text[:, [2]]):
        assert_array_equal(actions == other, text == other)
        assert_array_equal(actions != other, text != other)
    turned = actions.copy()
    turned[:] = text[::-1]
    assert_array_equal(turned == actions, text[::-1] == text)
    assert_array_equal(text == actions, np.full(text.shape, True))


def test_cells_are_taken_and_assigned_as_those_of_an_array(text, actions):
    mask, rows = text == "keep", np.array([4, 9, 9, 1])
    for cells in (slice(None), 3, (4, 2), (slice(2), 1), (rows, rows % 5), mask):
        assert_array_equal(actions[cells], text[cells])
    for cells, new in (
        (mask, "ask"),
        ((rows, 0), ["keep", "", "drop", "ask"]),
        ((2, 2), "drop"),
        (7, text[1]),
    ):
        actions[cells] = text[cells] = new
        assert_array_equal(np.asarray(actions), text)
    assert (actions.shape, len(actions)) == (text.shape, len(text))


def test_a_copy_is_another(text, actions):
    for other in (actions.copy(), pickle.loads(pickle.dumps(actions))):
        other[:] = "keep"
        assert_array_equal(other, np.full(text.shape, "keep"))
        assert_array_equal(actions, text)


def test_nothing_else_can_be_assigned(text, actions):
    with pytest.raises(ValueError, match="'keep', 'drop', 'ask' and '', got 'Drop'"):
        actions[0, 0] = "Drop"
    assert_array_equal(actions, text)
