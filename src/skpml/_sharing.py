"""Share work between methods that are fitted to the same rows: neighbor graphs and feature maps are computed once.

Comparing methods on one fold repeats the same graph and feature map for each of them. An explicit argument would have to
pass through every method, so :func:`skpml.graph.neighbor_similarity` and the like ask :func:`once` instead. It does
nothing unless the caller, such as an experiment, has opened :func:`shared_work`; results are the same either way.

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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import scipy.sparse

# Of results kept; the oldest go first. Two feature maps of the largest benchmark fit many times.
_MAX_BYTES = 2**29


@dataclass
class SharedWork:
    """Hold the results of one :func:`shared_work`.

    ``saved_seconds`` is the time that reused results took when they were computed: added to the time of a fit, it gives
    what the fit would have taken alone.
    """

    max_bytes: int = _MAX_BYTES
    computed: int = 0
    reused: int = 0
    saved_seconds: float = 0.0
    _results: OrderedDict[str, tuple[Any, float, int]] = field(default_factory=OrderedDict, repr=False)

    def get(self, key: str, compute: Callable[[], Any]) -> Any:
        """Return a copy of the result of a key, computed on first use."""
        if key in self._results:
            self._results.move_to_end(key)
            result, seconds, _ = self._results[key]
            self.reused += 1
            self.saved_seconds += seconds
            return deepcopy(result)
        start = time.perf_counter()
        result = compute()
        seconds = time.perf_counter() - start
        self.computed += 1
        size = _size(result)
        if size <= self.max_bytes:
            self._results[key] = (deepcopy(result), seconds, size)
            while sum(entry[2] for entry in self._results.values()) > self.max_bytes:
                self._results.popitem(last=False)
        return result


# A variable of the context, not of the module: threads of one process must not see each other's work.
_CURRENT: ContextVar[SharedWork | None] = ContextVar("skpml_shared_work", default=None)


@contextmanager
def shared_work(*, max_bytes: int = _MAX_BYTES) -> Iterator[SharedWork]:
    """Compute equal work on equal rows once inside the block; results are exactly the same.

    Concerns :func:`skpml.graph.neighbor_similarity`, :func:`skpml.graph.reconstruction_weights` and
    :meth:`skpml.features.RBFAnchors.fit_transform` with an integer seed. Results are found by a digest of the rows and by
    the parameters, and returned as copies. At most ``max_bytes`` are kept, the most recently used.
    """
    token = _CURRENT.set(work := SharedWork(max_bytes=max_bytes))
    try:
        yield work
    finally:
        _CURRENT.reset(token)


def once(compute: Callable[..., Any], X: Any, *parameters: Any) -> Any:
    """Return ``compute(X, *parameters)``; inside :func:`shared_work` reuse it for equal rows and parameters."""
    work = _CURRENT.get()
    if work is None:
        return compute(X, *parameters)
    digest = hashlib.sha256(repr((compute.__qualname__, parameters, X.shape)).encode())
    for part in (X.data, X.indices, X.indptr) if scipy.sparse.issparse(X) else (X,):
        # The layout counts too: sums over a column-wise array round differently.
        layout = (part.dtype.str, part.flags.c_contiguous, part.flags.f_contiguous, part.strides)
        digest.update(repr(layout).encode() + part.tobytes(order="A"))
    return work.get(digest.hexdigest(), lambda: compute(X, *parameters))


def _size(result: Any) -> int:
    if isinstance(result, tuple | list):
        return sum(_size(part) for part in result)
    if isinstance(result, Mapping):
        return sum(_size(part) for part in result.values())
    if scipy.sparse.issparse(result):
        return int(result.data.nbytes + result.indices.nbytes + result.indptr.nbytes)
    return int(getattr(result, "nbytes", 64))
