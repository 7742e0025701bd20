"""Embeddings of texts by a language model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from skpml._writing import require_packages
from skpml.embeddings._keeping import EmbeddingError, Progress, digest, embed_once

# Texts that a model gets at a time, between two reports of the progress.
_BLOCK = 512
# Files that make a model what it is.
_WEIGHTS = (".safetensors", ".bin", ".json")


@dataclass(kw_only=True, repr=False, eq=False)
class TextEmbedder(TransformerMixin, BaseEstimator):
    """Map texts to the vectors of a language model, each of length one.

    Parameters
    ----------
    model : str
        A folder with a model of sentence-transformers, or the name of one, which is downloaded once.
    batch_size : int, default=32
        Texts that the model gets at a time.

    See Also
    --------
    embed_texts : The same, with embeddings that are kept in a file.

    Notes
    -----
    Needs ``pip install "scikit-pml[embeddings]"``. Nothing is learned from the texts, so that rows never leak into each
    other. A model file of a pipeline holds the name of the language model and not its weights.

    Examples
    --------
    >>> from skpml.embeddings import TextEmbedder
    >>> TextEmbedder(model="all-MiniLM-L6-v2")
    TextEmbedder(model='all-MiniLM-L6-v2')
    """

    model: str
    batch_size: int = 32

    def fit(self, X: Any, y: Any = None) -> Self:
        """Load the model.

        Parameters
        ----------
        X : sequence of str, or array of shape (n, 1)
            Texts; they are not used.
        y : None
            Not used.

        Returns
        -------
        self : TextEmbedder
            The transformer.
        """
        _load_model(self.model)
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Embed texts.

        Parameters
        ----------
        X : sequence of str, or array of shape (n, 1)
            Texts.

        Returns
        -------
        ndarray of shape (n, d)
            A vector of length one for each text.
        """
        texts = [str(text) for text in np.asarray(X, dtype=object).reshape(-1)]
        return _embed(texts, self.model, self.batch_size, None).astype(np.float64)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.requires_fit = False
        return tags


def embed_texts(
    texts: Sequence[str],
    model: str,
    *,
    cache: str | Path | None = None,
    batch_size: int = 32,
    progress: Progress | None = None,
) -> NDArray[np.float64]:
    """Embed texts by a language model, and keep the embeddings in a file.

    Parameters
    ----------
    texts : sequence of str
        Texts; each that occurs several times is embedded once.
    model : str
        A folder with a model of sentence-transformers, or the name of one, which is downloaded once.
    cache : path-like, optional
        An ``.npz`` file of embeddings. Texts that are in it are not embedded again, if they were embedded by the same
        model; afterwards it has the embeddings of these texts and no others. It does not contain the texts.
    batch_size : int, default=32
        Texts that the model gets at a time.
    progress : callable, optional
        Called as ``progress(done, total, what)`` now and then.

    Returns
    -------
    ndarray of shape (n, d)
        A vector of length one for each text.

    Raises
    ------
    EmbeddingError
        If the model cannot be loaded.

    See Also
    --------
    TextEmbedder : A transformer for a pipeline.
    """

    def embed(places: list[int]) -> NDArray[np.float32]:
        return _embed([texts[place] for place in places], model, batch_size, progress)

    digests = [digest(text.encode("utf-8", "surrogatepass")) for text in texts]
    return embed_once(digests, embed, cache, _identify(model))


def _embed(texts: list[str], model: str, batch_size: int, progress: Progress | None) -> NDArray[np.float32]:
    """Embed texts, longest first, so that texts of a batch have about the same length."""
    loaded = _load_model(model)
    order = sorted(range(len(texts)), key=lambda k: -len(texts[k]))
    # Without texts, the empty one tells the number of columns.
    blocks = [] if texts else [loaded.encode([""])[:0]]
    for start in range(0, len(texts), _BLOCK):
        if progress is not None:
            progress(start, len(texts), "embedding texts")
        some = [texts[k] for k in order[start : start + _BLOCK]]
        blocks.append(
            loaded.encode(
                some,
                batch_size=batch_size,
                normalize_embeddings=True,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
        )
    if progress is not None:
        progress(len(texts), len(texts), "embedding texts")
    return np.concatenate(blocks).astype(np.float32)[np.argsort(np.array(order, dtype=np.intp))]


@lru_cache(maxsize=1)
def _load_model(model: str) -> Any:
    require_packages("embedding texts", "embeddings", "sentence_transformers")
    import_module("transformers.utils.logging").disable_progress_bar()
    if _is_path(model) and not Path(model).is_dir():
        raise EmbeddingError(
            f"the language model {model!r} is not a folder; give the folder that holds its files"
        )
    try:
        return import_module("sentence_transformers").SentenceTransformer(model)
    except Exception as error:
        reason = str(error).strip().split("\n")[0]
        raise EmbeddingError(
            f"the language model {model!r} cannot be loaded ({reason}); give the folder of a model of "
            "sentence-transformers, or the name of one and a connection to download it"
        ) from error


def _is_path(model: str) -> bool:
    """Whether a model is given as a folder: it is one, or can be nothing else."""
    return Path(model).exists() or model.startswith((".", "~", os.sep))


def _identify(model: str) -> str:
    """Return a text that changes if the model does: its name, or the files of its folder and their sizes."""
    folder = Path(model)
    if not folder.is_dir():
        return model
    sizes = {
        str(path.relative_to(folder)): path.stat().st_size
        for path in sorted(folder.rglob("*"))
        if path.suffix in _WEIGHTS
    }
    return f"{folder.resolve().name} {sizes}"
