"""Embeddings that are kept in a file, so that only new items are embedded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from skpml._writing import replacing

Progress = Callable[[int, int | None, str], None]

# Bytes of the digest of a text or an image.
_DIGEST = 16


class EmbeddingError(ValueError):
    """Raised if a model cannot be loaded, or images cannot be read.

    Parameters
    ----------
    message : str
        What is wrong.
    faults : dict of int to str, optional
        What is wrong with images, by their position; an attribute of the error.
    """

    def __init__(self, message: str, faults: dict[int, str] | None = None) -> None:
        super().__init__(message)
        self.faults = faults or {}


def embed_once(
    digests: Sequence[bytes],
    embed: Callable[[list[int]], NDArray[np.float32]],
    cache: str | Path | None,
    model: str,
) -> NDArray[np.float64]:
    """Embed items by their places, each distinct one once and none that the cache has."""
    keys = np.array(digests, dtype=f"V{_DIGEST}")
    unique, first, place = np.unique(keys, return_index=True, return_inverse=True)
    path = None if cache is None else Path(cache)
    known = {} if path is None else _read_cache(path, model)
    missing = [k for k, digest in enumerate(unique) if digest.tobytes() not in known]
    if missing:
        found = embed([int(first[k]) for k in missing])
        known |= {unique[k].tobytes(): vector for k, vector in zip(missing, found, strict=True)}
    vectors = np.stack([known[digest.tobytes()] for digest in unique]) if len(unique) else np.empty((0, 0))
    if path is not None and missing:
        with replacing(path, overwrite=True) as (temporary,), temporary.open("wb") as file:
            np.savez(file, model=np.array(model), digests=unique, vectors=vectors)
    return np.asarray(vectors[place.reshape(-1)], dtype=np.float64)


def digest(content: bytes) -> bytes:
    """Return what identifies a content."""
    return blake2b(content, digest_size=_DIGEST).digest()


def _read_cache(path: Path, model: str) -> dict[bytes, NDArray[np.float32]]:
    """Return kept embeddings by the digest of their text; none if the file is of another model or cannot be read."""
    try:
        with np.load(path, allow_pickle=False) as content:
            if str(content["model"]) != model:
                return {}
            digests, vectors = content["digests"], content["vectors"]
    except (OSError, ValueError, KeyError, EOFError, BadZipFile):
        return {}
    if digests.dtype != f"V{_DIGEST}" or vectors.ndim != 2 or len(vectors) != len(digests):
        return {}
    if not np.isfinite(vectors).all():
        return {}
    return {digest.tobytes(): vector for digest, vector in zip(digests, vectors, strict=True)}
