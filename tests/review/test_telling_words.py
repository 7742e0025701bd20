"""Words that speak for and against a tag: found in other rows, never in the row itself."""

import numpy as np

from skpml.review._words import find_telling_words

SEA = "boats and waves on the sea"
WOODS = "trees and moss in the woods"


def find(texts, tagged, row):
    Y = np.zeros((len(texts), 1), dtype=np.uint8)
    Y[tagged, 0] = 1
    return find_telling_words(texts, Y, [(row, 0)])[0]


def test_words_of_rows_with_and_without_the_tag():
    texts = [SEA] * 10 + [WOODS] * 10 + ["waves of moss and something new"]
    found = find(texts, [*range(10), 20], 20)
    assert found.supporting == ("waves",)
    assert found.opposing == ("moss",)


def test_the_row_itself_does_not_count():
    for n_moss, supporting in ((1, ()), (2, ("moss",))):
        texts = [SEA] * 5 + ["moss"] * n_moss + [WOODS.replace("moss", "stones")] * 20
        assert find(texts, range(5 + n_moss), 5).supporting == supporting


def test_words_that_few_rows_have_say_nothing():
    texts = [SEA] * 10 + [WOODS] * 10 + ["unique waves", "unique moss"]
    found = find(texts, [*range(10), 20], 20)
    assert "unique" not in (*found.supporting, *found.opposing)


def test_texts_without_words():
    assert find(["", "!", "a"], [0], 0) == ((), ())
    assert find([SEA, WOODS, ""], [2], 2) == ((), ())
