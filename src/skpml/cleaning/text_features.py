"""Features of texts: weighted words, reduced to a few hundred dense columns so that kernels and neighbours work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

_MOST_WORDS = 50_000


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
    ValueError
        If no text holds a word.
    """
    if n_components < 1:
        raise ValueError(f"n_components must be at least 1, got {n_components}")
    # A dtype that is no type, for model files hold no parameters that could be called.
    words = TfidfVectorizer(sublinear_tf=True, max_features=_MOST_WORDS, dtype=np.dtype(np.float64))
    columns = ColumnTransformer([("words", words, 0)], sparse_threshold=1.0)
    weights = columns.fit_transform(text_column(texts))
    reduced = TruncatedSVD(min(n_components, *weights.shape), random_state=random_state).fit(weights)
    return Pipeline([("words", columns), ("reduced", reduced), ("scaled", Normalizer())])
