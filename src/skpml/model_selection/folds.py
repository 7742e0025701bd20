"""Inner folds that do not depend on the order of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.model_selection import KFold
from sklearn.utils import check_array

from skpml.ordering import row_order
from skpml.views.gathering import is_views, named_views, stack_views, take_rows

Rows = NDArray[np.intp]


class InnerFolds:
    """Rows and candidates of a training fold, cut once more.

    Folds and the nested parts of their training rows are drawn in the order of content: where a row stands does not
    decide where it goes.

    Attributes
    ----------
    splits : list of (training rows, held-out rows)
        Training rows in a random order, of which any first part is a random part.
    """

    def __init__(self, X: Any, candidates: NDArray[Any], *, n_folds: int, random_state: int) -> None:
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
        self.splits = [
            (order[random.permutation(train)], order[held_out]) for train, held_out in cut.split(order)
        ]

    def rows(self, places: Rows) -> Any:
        return take_rows(self.X, places)
