"""Columns scaled so that every view makes up its share of the distance of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from skpml.features import RangeScaler
from skpml.views._weights import learn_view_weights, spreads

__all__ = ["ViewScaler"]

Columns = Mapping[str, NDArray[np.intp]]


class ViewScaler(RangeScaler):
    """Scale each feature to [−1, 1], then each view so that it makes up its share of the squared distance of rows.

    A view with spread s (half the mean squared distance of two rows) and weight w is multiplied by ``√(w S / s)``, with S
    the sum of the spreads of all views that have a weight. So the mean squared distance is what it is for these views
    side by side, and each view makes up w of it; with weights proportional to the spreads, columns stay as they are. A
    Gaussian kernel on the result is the product of the views' kernels, ``Π k_v^{w_v}``, each with a width of its own;
    so are the similarities of a neighbour graph.

    Parameters
    ----------
    columns : dict of view name to column positions or None, default=None
        None is one view; then this is :class:`~skpml.features.RangeScaler`.
    weights : "auto", dict of view name to number, or sequence of numbers, default="auto"
        "auto" learns them from the candidates, see :func:`learn_view_weights`.

    Attributes
    ----------
    weights_ : dict of view name to float
        At least 0, with the sum 1. A view in which all rows are alike has 0.
    kept_ : ndarray of int
        Columns of views that have a weight: what ``transform`` returns, so that other views leave no trace.
    scale_, offset_ : ndarray of shape (n_features,)
        The map is ``x * scale_ + offset_``.
    """

    def __init__(self, *, columns: Columns | None = None, weights: Any = "auto") -> None:
        self.columns = columns
        self.weights = weights

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn scales, and weights where they are not given.

        Parameters
        ----------
        X : array or scipy sparse matrix of shape (n, d)
        y : array of shape (n, c), optional
            Candidates, 0 or 1; needed to learn the weights of several views.
        """
        super().fit(X)
        columns = {"view 0": np.arange(len(self.scale_))} if self.columns is None else self.columns
        names = list(columns)
        given = given_weights(self.weights, names)
        if len(names) == 1:
            self.weights_ = {names[0]: 1.0}
            self.kept_ = np.arange(len(self.scale_))
            return self
        scaled = super().transform(X)
        views = [scaled[:, columns[name]] for name in names]
        spread = spreads(views)
        weights = _learnt(views, y) if given is None else _of_those_that_vary(given, spread)
        self.weights_ = dict(zip(names, weights.tolist(), strict=True))
        self.kept_ = np.sort(np.concatenate([columns[name] for name in names if self.weights_[name] > 0]))
        total = float(spread[weights > 0].sum())
        for name, weight, size in zip(names, weights, spread, strict=True):
            factor = (weight * total / size) ** 0.5 if size > 0 else 0.0
            self.scale_[columns[name]] *= factor
            self.offset_[columns[name]] *= factor
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        scaled = super().transform(X)
        # Laid out by rows, as without the other views: sums over columns round alike.
        return scaled if len(self.kept_) == scaled.shape[1] else np.take(scaled, self.kept_, axis=1)


def _learnt(views: Sequence[NDArray[Any]], y: Any) -> NDArray[np.float64]:
    if y is None:
        raise ValueError("The weights of several views are learnt from candidates: give y, or give weights.")
    return learn_view_weights(views, np.asarray(y))


def _of_those_that_vary(weights: NDArray[np.float64], spread: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights with the sum 1; none for a view in which all rows are alike."""
    weights = np.where(spread > 0, weights, 0)
    if not weights.any():
        raise ValueError("In every view that has a weight all rows are alike; give another one a weight.")
    return weights / weights.sum()


def given_weights(weights: Any, names: Sequence[str]) -> NDArray[np.float64] | None:
    """Weights in the order of the views; None where they are to be learnt."""
    if isinstance(weights, str) and weights == "auto":
        return None
    if isinstance(weights, Mapping):
        for name in names:
            if name not in weights:
                raise ValueError(f"view_weights lacks {name!r}; the views are {', '.join(map(repr, names))}.")
        for name in weights:
            if name not in names:
                raise ValueError(f"view_weights has {name!r}; the views are {', '.join(map(repr, names))}.")
        values = [weights[name] for name in names]
    elif isinstance(weights, str) or not hasattr(weights, "__len__"):
        raise ValueError(f'view_weights must be "auto", a dict or a list of numbers, got {weights!r}.')
    else:
        values = list(weights)
        if len(values) != len(names):
            raise ValueError(f"view_weights has {len(values)} numbers, but there are {len(names)} views.")
    for name, value in zip(names, values, strict=True):
        if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) < np.inf:
            raise ValueError(
                f"view_weights must be finite numbers of at least 0, got {value!r} for {name!r}."
            )
    if not any(values):
        raise ValueError("view_weights are all 0; at least one view must count.")
    return np.array(values, dtype=np.float64)
