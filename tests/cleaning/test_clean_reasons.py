"""Reasons in words: a share before the tag is looked at must not be taken for the confidence, which counts the tag."""

import pytest

from skpml.cleaning._judging import Reason


def reason(**changes):
    return Reason(
        **{"carried": 1, "neighbors": 10, "usual": 0.123, "probability": 0.02, "better": (), **changes}
    )


@pytest.mark.parametrize(
    ("better", "end"),
    [
        ((), ""),
        (("lake",), "; lake fits better"),
        (("lake", "sky"), "; lake and sky fit better"),
    ],
)
def test_a_reason_in_words(better, end):
    assert str(reason(better=better)) == (
        f"1 of 10 similar rows have it (12% of all); the model expects it in 2% of similar rows{end}"
    )


@pytest.mark.parametrize(
    ("share", "words"),
    [(0.0, "0%"), (0.004, "<1%"), (0.006, "1%"), (0.994, "99%"), (0.997, ">99%"), (1.0, "100%")],
)
def test_a_share_that_is_not_quite_none_or_all_is_not_shown_as_such(share, words):
    text = str(reason(probability=share, usual=share))
    assert f"({words} of all)" in text
    assert f"expects it in {words} of similar rows" in text
