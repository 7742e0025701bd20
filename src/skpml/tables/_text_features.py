"""Features of texts: weighted words, reduced to a few hundred dense columns so that kernels and neighbours work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer, normalize

_MOST_WORDS = 50_000
# A component that training texts span less than this share of what they span of the widest one says next to nothing of
# them, but a new text can lie many times its span away, and models scale features by their span.
_LEAST_SPAN = 0.1
# A span below this is rounding error.
_NO_SPAN = 1e-9


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
    decomposition, and every row is scaled to length one. Components in which the texts hardly differ are left out.

    Parameters
    ----------
    texts : sequence of str
        One text a row.
    n_components : int, default=200
        Number of features, at most; there are never more than words, rows, or directions in which the texts differ.
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
    reduced = TruncatedSVD(min(n_components, *weights.shape), random_state=random_state)
    # Texts that are all alike have no variance of which a component could explain a share.
    with np.errstate(invalid="ignore"):
        reduced.fit(weights)
    _leave_out_narrow(reduced, weights)
    return Pipeline(
        [("counted", counted), ("weighted", weighted), ("reduced", reduced), ("scaled", Normalizer())]
    )


def _leave_out_narrow(reduced: TruncatedSVD, weights: Any) -> None:
    """Leave out the components in which texts hardly differ; one stays where there is no other."""
    spans = np.ptp(normalize(reduced.transform(weights)), axis=0)
    wide = spans >= max(_LEAST_SPAN * spans.max(), _NO_SPAN)
    wide[0] |= not wide.any()
    reduced.set_params(n_components=int(wide.sum()))
    for name in ("components_", "singular_values_", "explained_variance_", "explained_variance_ratio_"):
        setattr(reduced, name, getattr(reduced, name)[wide])


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
