"""Features of texts: weighted words, reduced to a few hundred dense columns so that kernels and neighbours work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

_MOST_WORDS = 50_000


class FewWordsError(ValueError):
    """Texts hold too few words to tell them apart."""


def text_column(texts: Sequence[str]) -> Any:
    """Texts as the table of one column that the transformer of `fit_text_features` takes."""
    column = np.empty((len(texts), 1), dtype=object)
    column[:, 0] = texts
    return column


def fit_text_features(texts: Sequence[str], *, n_components: int = 200, random_state: int = 0) -> Any:
    """Fit a transformer from texts to dense features.

    The 50,000 most frequent words are weighted by how rare they are (TF-IDF), reduced by a truncated singular value
    decomposition, and every row is scaled to length one.

    Parameters
    ----------
    texts : sequence of str
        One text a row.
    n_components : int, default=200
        Number of features, at most; there are never more than words or rows.
    random_state : int, default=0
        Seed of the decomposition.

    Returns
    -------
    sklearn.pipeline.Pipeline
        Fitted; it takes a table of one column of text, as of `text_column`, and can be the first step of a pipeline
        that ends in a model.

    Raises
    ------
    FewWordsError
        A ValueError, if the texts hold fewer than two different words.
    """
    if n_components < 1:
        raise ValueError(f"n_components must be at least 1, got {n_components}")
    # A dtype by its name, for model files hold no parameters that can be called, and types can be.
    words = CountVectorizer(max_features=_MOST_WORDS, dtype="float64")
    counted = ColumnTransformer([("words", words, 0)], sparse_threshold=1.0)
    weighted = TfidfTransformer(sublinear_tf=True)
    weights = weighted.fit_transform(_counts(counted, texts))
    reduced = TruncatedSVD(min(n_components, *weights.shape), random_state=random_state).fit(weights)
    return Pipeline(
        [("counted", counted), ("weighted", weighted), ("reduced", reduced), ("scaled", Normalizer())]
    )


def _counts(counted: ColumnTransformer, texts: Sequence[str]) -> Any:
    try:
        counts = counted.fit_transform(text_column(texts))
    except ValueError as error:
        if "empty vocabulary" not in str(error):
            raise
        counts = None
    if counts is None or counts.shape[1] < 2:
        raise FewWordsError("the texts hold fewer than two different words of two letters or more")
    return counts
