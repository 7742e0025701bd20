"""Partners: what is true instead where a label is wrong, only where that is more than chance."""

import numpy as np
import pytest
from scipy.stats import binom

from skpml.cleaning._judging import find_partners

NAMES = ("sea", "lake", "sky")


def confused(*, wrong=10):
    """100 rows: of 40 tagged "sea" the first are wrong, and show a lake, as 20 of the others do; "sky" is everywhere."""
    Y = np.zeros((100, 3), dtype=int)
    Y[:40, 0] = Y[:wrong, 1] = Y[40:60, 1] = Y[::2, 2] = 1
    confidences = Y.astype(float)
    confidences[:wrong, 0] = 0
    return Y, confidences


def test_the_label_that_is_true_instead():
    Y, confidences = confused()
    assert find_partners(confidences, Y, NAMES) == ("lake", None, None)
    order = np.random.default_rng(0).permutation(100)
    assert find_partners(
        confidences[order][:, [2, 0, 1]], Y[order][:, [2, 0, 1]], ("sky", "sea", "lake")
    ) == (
        None,
        "lake",
        None,
    )


def test_a_surplus_that_chance_would_give_is_none():
    """Lakes are on 0.3 of all rows, so n wrong ones show lakes by chance 0.3ⁿ: twice that is below 0.05 from n = 4."""
    for wrong, partner in ((1, None), (2, None), (3, None), (4, "lake"), (5, "lake")):
        Y, confidences = confused(wrong=wrong)
        Y[wrong:10, 1] = 0
        Y[60 : 70 - wrong, 1] = 1
        confidences[:, 1] = Y[:, 1]
        assert confidences[:, 1].mean() == pytest.approx(0.3)
        assert find_partners(confidences, Y, NAMES)[0] == partner, wrong


def test_without_wrong_candidates_there_is_no_partner():
    """A rare label beside the least of doubts is a surplus in the ratio, but of nothing."""
    Y = np.zeros((1000, 2), dtype=int)
    Y[:40, 0] = Y[0, 1] = 1
    confidences = Y.astype(float)
    confidences[0] = 0.99, 1e-4
    assert find_partners(confidences, Y, NAMES[:2]) == (None, None)
    assert find_partners(Y.astype(float), Y, NAMES[:2]) == (None, None)


def test_chance_is_the_binomial_tail():
    """Wrong ones of which 4 in 9 show a lake, where 2 to 4 in 10 rows do: a partner where the tail says so."""
    seen = set()
    for usual in range(10, 41):
        Y = np.zeros((100, 3), dtype=int)
        Y[:9, 0] = Y[5 : 5 + usual, 1] = 1
        confidences = Y.astype(float)
        confidences[:9, 0] = 0
        expected = "lake" if 2 * binom.sf(3, 9, usual / 100) < 0.05 else None
        assert find_partners(confidences, Y, NAMES)[0] == expected
        seen.add(expected)
    assert seen == {"lake", None}


def test_labels_without_relation_have_hardly_ever_a_partner():
    rng = np.random.default_rng(0)
    truth = rng.random((400, 40)) < 0.2
    Y = (truth | (rng.random(truth.shape) < 0.1)).astype(int)
    found = find_partners((truth & (Y > 0)).astype(float), Y, [str(label) for label in range(40)])
    assert sum(partner is not None for partner in found) <= 4
