"""Reasons in words: the probability before the tag is looked at must not seem to contradict the confidence."""

import pytest

from skpml.cleaning import Reason


def reason(**changes):
    known = {"carried": 1, "neighbors": 10, "usual": 0.123, "probability": 0.02, "confidence": 0.51}
    return Reason(**{**known, **changes})


def test_a_reason_in_words():
    assert str(reason()) == (
        "1 of 10 similar rows has the tag; 12% of all rows have it. The features alone make the tag 2% likely; since the "
        "row has it, 51%."
    )
    assert str(reason(neighbors=0)) == "The features alone make the tag 2% likely; since the row has it, 51%."


def test_a_confidence_below_the_probability_does_not_come_from_the_tag():
    assert str(reason(neighbors=0, confidence=0.01)).endswith("with all evidence, 1%.")


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, "0%"), (0.004, "<1%"), (0.006, "1%"), (0.994, "99%"), (0.997, ">99%"), (1.0, "100%")],
)
def test_a_share_that_is_not_quite_none_or_all_is_not_shown_as_such(share, words):
    text = str(reason(probability=share, usual=share))
    assert f"; {words} of all rows have it" in text
    assert f"make the tag {words} likely" in text
