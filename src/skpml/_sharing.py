"""Work that several methods ask for, done once: neighbour graphs and feature maps of the same rows.

>>> import numpy as np
>>> from skpml.graph import neighbor_similarity
>>> from skpml._sharing import shared_work
>>> X = np.random.default_rng(0).normal(size=(50, 3))
>>> with shared_work() as work:
...     for _ in range(3):
...         graph = neighbor_similarity(X)
>>> work.computed, work.reused
(1, 2)
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

__all__ = ["SharedWork", "shared_work"]

# Of results kept; the oldest go first. Two feature maps of the largest benchmark fit many times.
_MAX_BYTES = 2**29


@dataclass
class SharedWork:
    """What was computed inside :func:`shared_work`, and what was saved.

    Attributes
    ----------
    computed, reused : int
        Number of results.
    saved_seconds : float
        Time that the reused results took when they were computed: adding it to the time of a fit gives what the fit
        would have taken alone.
    """

    max_bytes: int = _MAX_BYTES
    computed: int = 0
    reused: int = 0
    saved_seconds: float = 0.0
    _results: OrderedDict[str, tuple[Any, float, int]] = field(default_factory=OrderedDict, repr=False)

    def get(self, key: str, compute: Callable[[], Any]) -> Any:
        """The result of a key: a copy of its own for whoever asks, so that nobody can spoil another's."""
        if key in self._results:
            self._results.move_to_end(key)
            result, seconds, _ = self._results[key]
            self.reused += 1
            self.saved_seconds += seconds
            return _copy(result)
        start = time.perf_counter()
        result = compute()
        seconds = time.perf_counter() - start
        self.computed += 1
        size = _size(result)
        if size <= self.max_bytes:
            self._results[key] = (_copy(result), seconds, size)
            while sum(entry[2] for entry in self._results.values()) > self.max_bytes:
                self._results.popitem(last=False)
        return result


# A variable of the context, not of the module: threads of one process must not see each other's work.
_CURRENT: ContextVar[SharedWork | None] = ContextVar("skpml_shared_work", default=None)


@contextmanager
def shared_work(*, max_bytes: int = _MAX_BYTES) -> Iterator[SharedWork]:
    """Inside, equal work on equal rows is done once; results are exactly those computed outside.

    Concerns :func:`skpml.graph.neighbor_similarity`, :func:`skpml.graph.reconstruction_weights` and
    :meth:`skpml.features.RBFAnchors.fit_transform` with an integer seed. Results are known by a digest of the rows and
    by the parameters, and are handed out as copies. All is forgotten at the end.

    Parameters
    ----------
    max_bytes : int
        Results kept at most; the least recently used go first.
    """
    token = _CURRENT.set(work := SharedWork(max_bytes=max_bytes))
    try:
        yield work
    finally:
        _CURRENT.reset(token)


def sharing() -> bool:
    """Whether work is shared here."""
    return _CURRENT.get() is not None


def once(name: str, X: NDArray[Any], parameters: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
    """The result of ``compute()``, reused inside :func:`shared_work` where name, rows and parameters are the same."""
    work = _CURRENT.get()
    if work is None:
        return compute()
    # The layout counts too: sums over a column-wise array round differently.
    layout = (X.shape, X.dtype.str, X.flags.c_contiguous, X.flags.f_contiguous, X.strides)
    digest = hashlib.sha256(repr((name, parameters, layout)).encode())
    digest.update(X.tobytes(order="A"))
    return work.get(digest.hexdigest(), compute)


def _copy(result: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(_copy(part) for part in result)
    if isinstance(result, np.ndarray):
        return np.array(result, order="K")
    return result.copy() if scipy.sparse.issparse(result) else result


def _size(result: Any) -> int:
    if isinstance(result, tuple):
        return sum(_size(part) for part in result)
    if scipy.sparse.issparse(result):
        return int(result.data.nbytes + result.indices.nbytes + result.indptr.nbytes)
    return int(getattr(result, "nbytes", 64))
