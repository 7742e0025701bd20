"""Words of a text that speak for a tag or against it.

The weight of a word is a log ratio, as in naive Bayes: how frequent it is in the other rows with the tag, against the
rows without it. Frequencies are sums of TF-IDF, each divided by what it would be if words and tags were independent. The
row in question is left out, so that its own tag does not make its words look typical. A word speaks for or against the
tag as much as its weight, times its TF-IDF in the text: a linear measure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_MOST_WORDS = 20_000
# Words that are named, for and against.
_MOST_NAMED = 4
# A word is named if it is at least twice as frequent on one side, ...
_LEAST_RATIO = float(np.log(2.0))
# ... after adding this much TF-IDF to each sum, about that of three to five rows: few rows are not enough.
_ADDED = 1.0


class TellingWords(NamedTuple):
    """Words of one text in lower case, those that say most first."""

    supporting: tuple[str, ...]
    opposing: tuple[str, ...]


def find_telling_words(
    texts: Sequence[str], Y: NDArray[Any], cells: Iterable[tuple[int, int]]
) -> list[TellingWords]:
    """Return the words of each cell's text that are more frequent in other rows with its label, and without it."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    cells = list(cells)
    vectorizer = TfidfVectorizer(max_features=_MOST_WORDS, sublinear_tf=True)
    try:
        weights = vectorizer.fit_transform(texts).tocsr()
    except ValueError:
        # No text has a word.
        return [TellingWords((), ())] * len(cells)
    names = vectorizer.get_feature_names_out()
    in_all = np.asarray(weights.sum(axis=0)).ravel()
    in_label = {
        label: np.asarray(weights[Y[:, label] > 0].sum(axis=0)).ravel()
        for label in sorted({label for _, label in cells})
    }
    found = []
    for row, label in cells:
        begin, end = weights.indptr[row : row + 2]
        words, own = weights.indices[begin:end], weights.data[begin:end]
        carried, total = in_label[label][words] - own, in_all[words] - own
        share = (in_label[label].sum() - own.sum()) / max(in_all.sum() - own.sum(), _ADDED)
        with_label, without = (
            np.log((seen + _ADDED) / (part * total + _ADDED))
            for seen, part in ((carried, share), (total - carried, 1 - share))
        )
        ratio = with_label - without
        found.append(TellingWords(*(_choose(names[words], own, side) for side in (ratio, -ratio))))
    return found


def _choose(words: NDArray[Any], weights: NDArray[np.float64], ratio: NDArray[np.float64]) -> tuple[str, ...]:
    """Return the words with a clear ratio that say most."""
    best = np.argsort(-weights * ratio, kind="stable")
    return tuple(str(words[place]) for place in best[ratio[best] > _LEAST_RATIO][:_MOST_NAMED])
