"""Several views of the same rows: one kernel per view, combined with weights that need no true labels.

With d_v the distance of two rows in view v, divided by its root mean square over all pairs, and weights w that add up to
1, the views have one kernel together, the product of a Gaussian kernel for each:

    k(x, a) = Π_v exp(−½ w_v d_v(x, a)²).

A weight is the share of the squared distance that comes from a view. Weights are evaluated by ridge regression of the
candidates on k, by the squared error of each held-out row (leave-one-out). That is a proper score of the probability
that a label is a candidate. The features inform about it only through the true labels, as long as false candidates do
not depend on the features. It distinguishes weights far better than a ranking criterion does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import euclidean_distances

from skpml._docstrings import fill_docstring
from skpml._ordering import row_order
from skpml._validation import is_number
from skpml.features import RangeScaler
from skpml.linalg import ridge_scores, spectrum_of

__all__ = ["ViewScaler", "learn_view_weights"]

Floats = NDArray[np.float64]
Weights = tuple[float, ...]

_MAX_ROWS, _MAX_ANCHORS = 3000, 300
_GAMMAS = tuple(10.0 ** (power / 2) for power in range(-6, 3))
# A change of the weights must gain this many standard errors, row by row: views that matter alike keep their share.
# A view without a weight must gain more to get one: among many views of noise some look informative by chance.
_LEAST_GAIN, _LEAST_GAIN_OF_RETURN = 1.0, 2.0
_MAX_ROUNDS = 10
# Factors of a weight that are tried, and the share that a view without a weight gets back.
_FACTORS, _SHARE_OF_RETURN = (0.0, 1 / 3, 3.0), 0.1
_DIGITS = 9
# Times an equal share: views below it are dropped at the end, unless they are needed.
_SMALL_SHARE = 0.5
# Of the error: a smaller gain is rounding, as between two ways to weight a view and its copy.
_LEAST_SHARE = 1e-9


@fill_docstring
@dataclass(kw_only=True, repr=False, eq=False)
class ViewScaler(RangeScaler):
    """Scale each feature to [−1, 1], then each view to its share of the squared distance of rows.

    A view with spread s (half the mean squared distance of two rows) and weight w is multiplied by ``√(w S / s)``, with S
    the sum of the spreads of all views that have a weight. The mean squared distance is then that of these views side by
    side, and the share w of it comes from the view; with weights proportional to the spreads, columns do not change. A
    Gaussian kernel on the result is the product of the kernels of the views, ``Π k_v^{w_v}``, each with its own width;
    so are the similarities of a neighbor graph.

    Parameters
    ----------
    keep_sparse : bool, default=False
        As in :class:`~skpml.features.RangeScaler`, for one view; several views become dense.
    columns : dict of view name to column positions or None, default=None
        None means one view, and the result is that of :class:`~skpml.features.RangeScaler`.
    weights : "auto", dict of view name to number, or sequence of numbers, default="auto"
        "auto" learns them from the candidates, see :func:`learn_view_weights`.

    Attributes
    ----------
    weights_ : dict of view name to float
        At least 0, with the sum 1. A view in which all rows are equal has 0.
    kept_ : ndarray of int
        Columns of views with a weight above 0: what ``transform`` returns, so that other views have no effect.
    scale_ : ndarray of shape (n_features,)
        Factors; the map is ``x * scale_ + offset_``.
    offset_ : ndarray of shape (n_features,)
        Shifts.
    """

    columns: Mapping[str, NDArray[np.intp]] | None = None
    weights: Any = "auto"

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn scales, and weights if they are not given.

        Parameters
        ----------
        X : array or scipy sparse matrix of shape (n, d)
            Training rows.
        y : array of shape (n, c) or None, default=None
            Candidates, 0 or 1; needed to learn the weights of several views.

        Returns
        -------
        self : ViewScaler
            The fitted scaler.
        """
        columns = {"view 0": np.empty(0, np.intp)} if self.columns is None else self.columns
        names, one_view = list(columns), len(columns) == 1
        self._fit_range(X, keep_sparse=self.keep_sparse and one_view)
        self.kept_ = np.arange(len(self.scale_))
        weights = given_weights(self.weights, names)
        if one_view:
            self.weights_ = {names[0]: 1.0}
            return self
        scaled = super().transform(X)
        views = [scaled[:, columns[name]] for name in names]
        spread = spreads(views)
        if weights is None:
            if y is None:
                raise ValueError("Weights of several views are learned from candidates: pass y or weights.")
            weights = learn_view_weights(views, np.asarray(y))
        else:
            # A view in which all rows are equal has no weight.
            weights = np.where(spread > 0, weights, 0)
            if not weights.any():
                raise ValueError(
                    "All rows are equal in every view that has a weight; give another view a weight."
                )
            weights = weights / weights.sum()
        self.weights_ = dict(zip(names, weights.tolist(), strict=True))
        self.kept_ = np.sort(np.concatenate([columns[name] for name in names if self.weights_[name] > 0]))
        total = float(spread[weights > 0].sum())
        for name, weight, size in zip(names, weights, spread, strict=True):
            factor = (weight * total / size) ** 0.5 if size > 0 else 0.0
            self.scale_[columns[name]] *= factor
            self.offset_[columns[name]] *= factor
        return self

    def transform(self, X: Any) -> Any:
        """Scale rows, without the views that have weight 0.

        %(rows)s

        Returns
        -------
        ndarray or CSR array of shape (n, k)
            The columns listed in ``kept_``; a CSR array for sparse rows with ``keep_sparse``.
        """
        scaled = super().transform(X)
        # Contiguous rows, as without the other views, so that sums over columns are rounded in the same way.
        return scaled if len(self.kept_) == scaled.shape[1] else np.take(scaled, self.kept_, axis=1)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns that ``transform`` returns.

        %(names_out)s
        """
        return super().get_feature_names_out(input_features)[self.kept_]


def given_weights(weights: Any, names: Sequence[str]) -> NDArray[np.float64] | None:
    """Return weights in the order of the views; None if they are to be learned."""
    if isinstance(weights, str) and weights == "auto":
        return None
    if isinstance(weights, Mapping):
        for name in sorted(set(names) ^ set(weights), key=str):
            verb = "has" if name in weights else "lacks"
            raise ValueError(f"view_weights {verb} {name!r}; the views are {', '.join(map(repr, names))}.")
        weights = [weights[name] for name in names]
    elif isinstance(weights, str) or not hasattr(weights, "__len__"):
        raise ValueError(f'view_weights must be "auto", a dict or a list of numbers, got {weights!r}.')
    values = list(weights)
    if len(values) != len(names):
        raise ValueError(f"view_weights has {len(values)} numbers, but there are {len(names)} views.")
    for name, value in zip(names, values, strict=True):
        if not is_number(value, 0):
            raise ValueError(f"view_weights must be finite and at least 0, got {value!r} for {name!r}.")
    if not any(values):
        raise ValueError("view_weights are all 0; at least one view must count.")
    return np.array(values, dtype=np.float64)


def spreads(views: Sequence[NDArray[Any]]) -> Floats:
    """Compute half the mean squared distance of two rows of each view: the sum of the variances of its columns."""
    return np.array([float(view.var(axis=0, dtype=np.float64).sum()) for view in views])


def learn_view_weights(views: Sequence[NDArray[Any]], Y: NDArray[Any]) -> Floats:
    """Learn weights of views, at least 0 and with the sum 1, from the candidates.

    The search starts with all columns side by side (weights proportional to the spread of the views). It multiplies the
    weight of a view by 1/3, 3 or 0 as long as that improves the error by more than a standard error; if no such change
    does, it also tries equal weights and each view alone. So views keep the weights that they have side by side unless
    there is evidence against it. At the end, a view with less than half an equal share is dropped, unless that costs
    more than a standard error.

    At most 3000 rows and 300 anchors are used, spread evenly over the rows in the order of their content. Nothing is
    random, and the order of rows, columns and views does not matter.

    Parameters
    ----------
    views : sequence of arrays of shape (n, d_v)
        Columns on comparable scales.
    Y : array of shape (n, c)
        Candidates, 0 or 1.

    Returns
    -------
    ndarray of shape (len(views),)
        A view in which all rows are equal has weight 0.

    Examples
    --------
    >>> import numpy as np
    >>> from skpml.views import learn_view_weights
    >>> rng = np.random.default_rng(0)
    >>> informative, noise = rng.normal(size=(200, 3)), rng.normal(size=(200, 3))
    >>> learn_view_weights([informative, noise], (informative > 0.5).astype(int))
    array([1., 0.])
    """
    spread = spreads(views)
    varies = np.flatnonzero(spread > 0)
    weights = np.zeros(len(views))
    if len(varies) < 2:
        weights[varies if len(varies) else slice(None)] = 1.0
        return weights / weights.sum()
    judge = _Judge([views[view] for view in varies.tolist()], spread[varies], np.asarray(Y, dtype=np.float64))
    weights[varies] = _search(judge, spread[varies])
    return weights


def _search(judge: _Judge, spread: Floats) -> Weights:
    n_views = len(spread)
    others = [_shares(np.ones(n_views)), *(_shares(alone) for alone in np.eye(n_views))]
    best, small = _shares(spread), _SHARE_OF_RETURN / (1 - _SHARE_OF_RETURN)
    for _ in range(_MAX_ROUNDS):
        found = _change(judge, best)
        # A last resort: next to much noise, one view alone looks good, and the others are lost.
        if found == best:
            found = judge.better(best, others, _LEAST_GAIN)
        if found == best:
            returns = [_with(best, view, small) for view in np.flatnonzero(np.equal(best, 0)).tolist()]
            found = judge.better(best, returns, _LEAST_GAIN_OF_RETURN)
        if found == best:
            break
        best = found
    # Drop views of a small share, the smallest first, unless that clearly does harm.
    for view in np.argsort(best, kind="stable").tolist():
        if 0 < best[view] < _SMALL_SHARE / np.count_nonzero(best):
            dropped = _with(best, view, 0.0)
            if judge.better(dropped, [best], _LEAST_GAIN) == dropped:
                best = dropped
    return best


def _change(judge: _Judge, weights: Weights) -> Weights:
    """Find the best of: more, less or nothing of one view, and all such changes together that help alone."""
    helpful = []
    together = np.array(weights)
    for view, weight in enumerate(weights):
        # A view alone has no share to give or take.
        if not 0 < weight < 1:
            continue
        values = {_with(weights, view, factor * weight): factor * weight for factor in _FACTORS}
        found = judge.better(weights, list(values), _LEAST_GAIN)
        if found != weights:
            helpful.append(found)
            together[view] = values[found]
    if together.any():
        helpful.append(_shares(together))
    return judge.better(weights, helpful, _LEAST_GAIN)


def _with(weights: Weights, view: int, value: float) -> Weights:
    changed = np.array(weights)
    changed[view] = value
    return _shares(changed)


def _shares(weights: Floats) -> Weights:
    return tuple((weights / weights.sum()).tolist())


class _Judge:
    """Compare weights of the views by the squared errors of held-out rows."""

    def __init__(self, views: Sequence[NDArray[Any]], spread: Floats, Y: Floats) -> None:
        order = row_order(np.column_stack([*views, Y]))
        rows = order[_evenly(len(order), _MAX_ROWS)]
        anchors = _evenly(len(rows), _MAX_ANCHORS)
        self._distances = []
        for view, size in zip(views, spread, strict=True):
            # Centering keeps the distances, and the products they are computed from lose fewer digits.
            centered = view[rows] - view[rows].mean(axis=0, dtype=np.float64)
            squared = euclidean_distances(centered, centered[anchors], squared=True)
            self._distances.append(squared / (2 * size))
        self._Y = Y[rows]
        self._known: dict[Weights, Floats] = {}

    def better(self, weights: Weights, others: Sequence[Weights], least_gain: float) -> Weights:
        """Return the best of the others that gain that many standard errors, or the weights if none does."""
        best, least = weights, float("inf")
        for other in others:
            gain = self._errors(weights) - self._errors(other)
            needed = least_gain * float(gain.std()) / len(gain) ** 0.5
            mean = float(self._errors(other).mean())
            if float(gain.mean()) > needed + _LEAST_SHARE * mean and mean < least:
                best, least = other, mean
        return best

    def _errors(self, weights: Weights) -> Floats:
        # Two ways to the same weights differ by rounding.
        key = tuple(np.round(weights, _DIGITS).tolist())
        if key not in self._known:
            pairs = zip(weights, self._distances, strict=True)
            spectrum = spectrum_of(
                np.exp(-0.5 * sum(weight * distance for weight, distance in pairs if weight))
            )
            errors = []
            for gamma in _GAMMAS:
                held_out = ridge_scores(spectrum, self._Y[:, None, :], np.array([gamma]))[2][:, 0, :]
                errors.append(((held_out - self._Y) ** 2).sum(axis=1))
            self._known[key] = min(errors, key=np.mean)
        return self._known[key]


def _evenly(length: int, most: int) -> NDArray[np.intp]:
    """Return at most this many evenly spread positions."""
    return np.linspace(0, length - 1, min(length, most)).round().astype(np.intp)
