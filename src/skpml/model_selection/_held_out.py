"""Rows left out of a fit, and what they say of it: for whatever chooses without true labels."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from array_api_compat import array_namespace, device
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.model_selection import KFold
from sklearn.utils import check_array

from skpml._ordering import row_order
from skpml.linalg import Array
from skpml.metrics import average_precision
from skpml.views._gathering import is_views, named_views, stack_views, take_rows

Rows = NDArray[np.intp]

# Comparisons of labels within rows that are held at a time.
_PAIRS_AT_A_TIME = 2**24


class InnerFolds:
    """Rows and candidates of a training fold, cut once more.

    Folds and the nested parts of their training rows are drawn in the order of content: where a row stands does not
    decide where it goes. With ``copies_together``, rows of equal features are in the same fold: else a copy of a row that
    is held out tells a model its labels.

    Attributes
    ----------
    splits : list of (training rows, held-out rows)
        Training rows in a random order, of which any first part is a random part.
    shuffled : (n,)
        All rows, in such an order.
    distinct : (m,)
        Rows of which none is a copy of another, where copies are kept together; else all.
    """

    def __init__(
        self,
        X: Any,
        candidates: NDArray[Any],
        *,
        n_folds: int,
        random_state: int,
        copies_together: bool = False,
    ) -> None:
        several = is_views(X)
        together = stack_views(named_views(X))[0] if several else X
        numbers = check_array(together, accept_sparse="csr", ensure_all_finite=False)
        if numbers.shape[0] != candidates.shape[0]:
            raise ValueError(f"X has {numbers.shape[0]} rows, but candidates have {candidates.shape[0]}.")
        self.X = X if several or hasattr(X, "iloc") else numbers
        self.candidates = candidates
        # Rows that look alike differ by their candidates.
        dense = numbers.toarray() if scipy.sparse.issparse(numbers) else numbers
        order = row_order(np.column_stack([np.nan_to_num(dense), candidates]))
        random = np.random.default_rng(random_state)
        cut = KFold(n_folds, shuffle=True, random_state=random_state)
        groups = _copies(dense[order]) if copies_together else np.arange(len(order))
        if groups.max() + 1 < n_folds:
            groups = np.arange(len(order))
        self.distinct = order[np.unique(groups, return_index=True)[1]]
        self.splits = [
            (
                order[random.permutation(np.flatnonzero(~np.isin(groups, held_out)))],
                order[np.isin(groups, held_out)],
            )
            for _, held_out in cut.split(np.arange(groups.max() + 1))
        ]
        self.shuffled = order[random.permutation(len(order))]

    def rows(self, places: Rows) -> Any:
        return take_rows(self.X, places)


def _copies(X: NDArray[Any]) -> Rows:
    """A number for each row, the same for equal rows, in the order in which they first come."""
    _, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.intp)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.asarray(rank[group.ravel()])


def precision(labels: Any, scores: Any) -> float:
    """Average precision of scores. NaN where no row has labels to compare, without a warning: other folds tell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return average_precision(labels, scores)


def row_precision(scores: Array, Y: Array) -> Array:
    """Average precision of each row that has candidates and non-candidates; ties count against a label."""
    xp = array_namespace(scores)
    count = xp.sum(Y, axis=1)
    told = (count > 0) & (count < Y.shape[1])
    scores, Y, count = scores[told, :], Y[told, :], count[told]
    parts = []
    step = max(1, _PAIRS_AT_A_TIME // Y.shape[1] ** 2)
    for start in range(0, Y.shape[0], step):
        some, here = scores[start : start + step, :], Y[start : start + step, :]
        above = xp.astype(some[:, None, :] >= some[:, :, None], Y.dtype)
        hits = xp.sum(above * here[:, None, :], axis=2)
        parts.append(xp.sum(here * hits / xp.sum(above, axis=2), axis=1) / count[start : start + step])
    return xp.concat(parts) if parts else xp.zeros((0,), dtype=Y.dtype, device=device(Y))


def shortfall(best: Array, rows: Array) -> float:
    """By how many standard errors ``rows`` fall short of ``best`` in the mean, row by row; 0 where no row differs."""
    xp = array_namespace(best, rows)
    gap = best - rows
    error = float(xp.std(gap)) / gap.shape[0] ** 0.5 if gap.shape[0] else 0.0
    return float(xp.mean(gap)) / error if error > 0 else 0.0


def mean_of_folds(values: Sequence[float]) -> float:
    """Mean over the folds that can tell; −∞ where none can, and for what failed on one."""
    told = [value for value in values if not np.isnan(value)]
    return float(np.mean(told)) if told else -np.inf
