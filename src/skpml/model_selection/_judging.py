"""Choose without true labels: inner folds, and what held-out rows say about a fit.

Whatever is to be chosen is a *point*: the parameters of an estimator, or a setting inside one. A point is fitted to the
training rows of each inner fold and judged by how well it ranks the candidates of the held-out rows. A candidate may be
false, but a non-candidate certainly is, which is enough to compare points.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
import scipy.sparse
from array_api_compat import array_namespace
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import check_array

from skpml._ordering import row_average_precision, row_order
from skpml._validation import is_views, named_views, stack_views, take_rows
from skpml.linalg import Array

Selector = Literal["label-free", "oracle"]
Search = Literal["grid", "halving"]
Rows = NDArray[np.intp]
Split = tuple[Rows, Rows]
Parameters = Mapping[str, Any]
# The place of a point in the sequence that was asked for, and its scores of held-out rows (n_rows, n_labels).
PointScores = Iterator[tuple[int, Array]]


class InnerFolds:
    """Inner folds of training rows: ``splits`` are pairs of training rows and held-out rows.

    Folds depend on the content of the rows and not on their order in X. Training rows are in random order, so that any
    first part of them is a random sample; ``shuffled`` are all rows in such an order. With ``copies_together``, rows with
    equal features are in the same fold, since a copy of a held-out row among the training rows would give its labels
    away. ``numbers`` are the folds of the rows, from 0 on.
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
        dense = numbers.toarray() if scipy.sparse.issparse(numbers) else numbers
        # Rows with equal features are ordered by their candidates.
        order = row_order(np.column_stack([np.nan_to_num(dense), candidates]))
        random = np.random.default_rng(random_state)
        cut = KFold(n_folds, shuffle=True, random_state=random_state)
        groups = _group_copies(dense[order]) if copies_together else np.arange(len(order))
        if groups.max() + 1 < n_folds:
            groups = np.arange(len(order))
        self.splits: list[Split] = [
            (
                order[random.permutation(np.flatnonzero(~np.isin(groups, held_out)))],
                order[np.isin(groups, held_out)],
            )
            for _, held_out in cut.split(np.arange(groups.max() + 1))
        ]
        self.numbers = np.empty(len(order), dtype=np.intp)
        for number, (_, held_out) in enumerate(self.splits):
            self.numbers[held_out] = number
        self.shuffled = order[random.permutation(len(order))]

    def rows(self, places: Rows) -> Any:
        """Return these rows of X, in the form that X has."""
        return take_rows(self.X, places)


def _group_copies(X: NDArray[Any]) -> Rows:
    """Number the groups of equal rows in the order in which they first occur."""
    _, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
    return np.unique(first[group.ravel()], return_inverse=True)[1]


def shortfall(best: Array, rows: Array) -> float:
    """Return by how many standard errors the mean of ``rows`` falls short of that of ``best``, paired by row."""
    xp = array_namespace(best, rows)
    gap = best - rows
    error = float(xp.std(gap)) / gap.shape[0] ** 0.5 if gap.shape[0] else 0.0
    return float(xp.mean(gap)) / error if error > 0 else 0.0


def _mean(rows: Array) -> float:
    return float(array_namespace(rows).mean(rows)) if rows.shape[0] else 0.0


def mean_of_folds(values: Sequence[float]) -> float:
    """Return the mean of the values that are not NaN; −∞ if there are none, or if one is −∞."""
    defined = [value for value in values if not np.isnan(value)]
    return float(np.mean(defined)) if defined else -np.inf


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """How well points, sorted, rank the labels of held-out rows."""

    points: list[Any]
    # Mean average precision of the rows; −∞ for a point whose scores are not finite.
    precision: list[float]
    # The same for each fold; NaN for a fold in which no row has some but not all labels.
    fold_precision: list[list[float]]
    # By how many standard errors the rows of a point fall short of those of the best point.
    distance: list[float]

    def best(self, count: int = 1, within: float = np.inf) -> list[Any]:
        """Return the ``count`` best points, without those farther than ``within`` standard errors from the first."""
        order = sorted(range(len(self.points)), key=lambda place: -self.precision[place])
        return [self.points[place] for place in order[:count] if self.distance[place] <= within]


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Result of :func:`~skpml.model_selection.select_parameters`.

    Parameters
    ----------
    parameters : dict
        The best point of the grid, for ``estimator.set_params(**parameters)``.
    score : float
        Its mean over inner folds, larger is better: :func:`~skpml.model_selection.candidate_precision` for "label-free",
        average precision for "oracle".
    table : list of dict
        One for each point, in the order of the grid: ``"parameters"``, ``"mean_score"``, ``"fold_scores"``, and
        ``"n_rows"``, the number of training rows. With ``search="halving"``, points that were dropped have the scores of
        their last round.
    n_fits, full_fits : int and float
        Number of fits on inner folds, of any size, and the same with each fit counted by its share of the rows of a whole
        inner training fold.
    selector, search : str
        As given. "oracle" has used true labels.
    """

    parameters: dict[str, Any]
    score: float
    table: list[dict[str, Any]]
    n_fits: int
    full_fits: float
    selector: Selector
    search: Search


class Judge:
    """Score points on inner folds, and keep the evidence.

    Parameters
    ----------
    score_points : callable
        ``score_points(points, fold)`` fits points to the training rows of a fold and yields :data:`PointScores`.
    labels : sequence of arrays of 0.0 and 1.0
        Labels of the held-out rows of each fold: their candidates, or the truth in experiments.
    keep : int
        Keep the held-out scores of so many points, the best so far.
    pooled : bool
        Whether the precision of a point is the mean over all rows rather than the mean over folds.
    """

    def __init__(
        self,
        score_points: Callable[[Sequence[Any], int], PointScores],
        labels: Sequence[Array],
        *,
        keep: int = 0,
        pooled: bool = False,
    ) -> None:
        self._score_points, self._labels, self._keep, self._pooled = score_points, labels, keep, pooled
        self._rows: dict[Any, list[Array]] = {}
        self._precision: dict[Any, list[float]] = {}
        self._scores: dict[Any, list[Array]] = {}

    def try_points(self, points: Iterable[Any]) -> None:
        """Judge points that have not been judged yet. Points are hashable and have an order, which decides ties."""
        new = sorted({point for point in points if point not in self._rows})
        if not new:
            return
        for known in (self._rows, self._precision, self._scores):
            known.update({point: [] for point in new})
        for fold, labels in enumerate(self._labels):
            for place, scores in self._score_points(new, fold):
                self._note(new[place], scores, labels)
        self._drop_scores()

    def _drop_scores(self) -> None:
        """Forget the held-out scores of all points but the best."""
        best = self.evidence().best(self._keep)
        self._scores = {point: self._scores[point] for point in best if point in self._scores}

    def _note(self, point: Any, scores: Array, labels: Array) -> None:
        xp = array_namespace(scores)
        finite = bool(xp.all(xp.isfinite(scores)))
        rows = row_average_precision(labels, scores if finite else xp.zeros_like(scores))
        mean = float(xp.mean(rows)) if rows.shape[0] else np.nan
        self._rows[point].append(rows)
        self._precision[point].append(mean if finite else -np.inf)
        if self._keep and point in self._scores:
            self._scores[point].append(scores)

    def evidence(self) -> Evidence:
        """Return what is known so far.

        A point that was not judged on all folds is compared with the best of the others on the rows of its own folds.
        """
        points = sorted(point for point, parts in self._rows.items() if parts)
        rows = [array_namespace(*parts).concat(parts) for parts in (self._rows[point] for point in points)]
        folds = [self._precision[point] for point in points]
        if self._pooled:
            means = [_mean(each) for each in rows]
            precision = [
                -np.inf if -np.inf in fold else mean for fold, mean in zip(folds, means, strict=True)
            ]
        else:
            precision = [mean_of_folds(fold) for fold in folds]
        most = max(len(fold) for fold in folds)
        whole = [place for place, fold in enumerate(folds) if len(fold) == most]
        first = max(whole, key=precision.__getitem__)
        best = rows[first]
        for place, fold in enumerate(folds):
            if len(fold) < most:
                precision[place] += precision[first] - _mean(best[: rows[place].shape[0]])
        return Evidence(
            points=points,
            precision=precision,
            fold_precision=folds,
            distance=[shortfall(best[: each.shape[0]], each) for each in rows],
        )

    def mean_scores(self, points: Sequence[Any]) -> list[Array]:
        """Return the mean held-out scores of points for each fold; only the ``keep`` best points have them."""
        return [
            sum(parts) / len(points) for parts in zip(*(self._scores[point] for point in points), strict=True)
        ]


def judge_parameters(
    model: Any,
    points: Sequence[Parameters],
    X: Any,
    candidates: NDArray[Any],
    splits: Sequence[Split],
    *,
    target: NDArray[Any],
    random_state: int,
    fit_arguments: Mapping[str, NDArray[Any]] | None = None,
) -> Judge:
    """Make a judge whose points are the places of parameters in ``points``, a sequence that may grow.

    A method may offer ``_scores_of_points(points, X, Y, X_held_out)``, which yields :data:`PointScores` and shares work
    between points; all other estimators are fitted once for each point. Draws without a seed get ``random_state``,
    ``on_empty`` is "ignore" (a fold may lack a rare label), callbacks are not called, warnings are not shown, and a
    graph of all rows is cut to the rows of the fold. So are ``fit_arguments``, further arguments of ``fit`` (and of
    ``_scores_of_points``) with one row for each row of X.
    """
    model, graphs = _prepare_for_folds(model, candidates.shape[0], random_state)

    def score_points(places: Sequence[int], fold: int) -> PointScores:
        train, held_out = splits[fold]
        inner = clone(model).set_params(**{path: graph[train][:, train] for path, graph in graphs.items()})
        share = getattr(inner, "_scores_of_points", partial(fit_points, inner))
        with warnings.catch_warnings(action="ignore"):
            yield from share(
                [points[place] for place in places],
                take_rows(X, train),
                candidates[train],
                take_rows(X, held_out),
                **{name: values[train] for name, values in (fit_arguments or {}).items()},
            )

    return Judge(score_points, [target[held_out] for _, held_out in splits])


def fit_points(
    model: Any,
    points: Sequence[Parameters],
    X: Any,
    candidates: NDArray[Any],
    held_out: Any,
    **fit_arguments: Any,
) -> PointScores:
    """Score held-out rows by one fit for each point."""
    for place, point in enumerate(points):
        try:
            fitted = clone(model).set_params(**point).fit(X, candidates, **fit_arguments)
            score = getattr(fitted, "decision_function", None) or fitted.predict_proba
            yield place, np.asarray(score(held_out))
        except Exception as error:
            error.add_note(f"While fitting {dict(point)} to {candidates.shape[0]} rows of an inner fold.")
            raise


def _prepare_for_folds(model: Any, n_rows: int, random_state: int) -> tuple[Any, dict[str, Any]]:
    """Copy a model so that it can be fitted to a part of the rows; and its graphs by parameter name."""
    model = clone(model)
    changes: dict[str, Any] = {}
    graphs: dict[str, Any] = {}
    for path, value in model.get_params().items():
        name = path.rpartition("__")[2]
        if name == "on_empty":
            changes[path] = "ignore"
        elif name == "random_state" and value is None:
            changes[path] = random_state
        elif name == "callback":
            changes[path] = None
        elif name == "graph" and value is not None:
            # Only graphs need the neighbor search, which is slow to import.
            from skpml.graph import check_similarity

            changes[path], graphs[path] = None, check_similarity(value, n_rows)
    return model.set_params(**changes), graphs
