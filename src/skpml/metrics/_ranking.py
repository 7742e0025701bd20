r"""Metrics of scores: does a row's ordering of the labels put the true ones first?

Everything is counted from two numbers per label, neither of which depends on the order in which labels are
stored: the *rank* of label :math:`j` in row :math:`i`, and the number of *true labels ranked at or above* it,

.. math::

    r_{ij} = |\{l : f_{il} \ge f_{ij}\}|, \qquad a_{ij} = |\{l : y_{il} = 1, f_{il} \ge f_{ij}\}|.

Tied labels thus all take the worst rank of their group, as in scikit-learn.

A row is *degenerate* if none or all of its labels are true: there is nothing to order. The conventions differ
there:

``"pml"``
    of the partial multi-label literature: degenerate rows are dropped, coverage is counted from zero and
    divided by the number of labels (degenerate rows kept, depth 0 for a row without labels).
``"sklearn"``
    of scikit-learn: degenerate rows are kept and count as perfect, coverage is a bare number of labels.

If the "pml" convention leaves no row, the value is NaN and an ``UndefinedMetricWarning`` is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from skpml._validation import BoolMatrix
from skpml.metrics._checks import NumberMatrix, check_truth_and_scores, undefined

Convention = Literal["pml", "sklearn"]
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)

# Work arrays stay at a few tens of MB however many rows there are.
_CELLS_AT_ONCE = 1 << 20


def check_convention(convention: str) -> None:
    """Raise unless the convention is one of ``CONVENTIONS``."""
    if convention not in CONVENTIONS:
        raise ValueError(f"convention must be one of {', '.join(map(repr, CONVENTIONS))}, got {convention!r}")


def ranking_loss(truth: Any, scores: Any, *, convention: Convention = "pml") -> float:
    r"""Share of (true, false) label pairs that a row orders wrongly; ties are wrong.

    .. math::

        \frac{1}{|D|} \sum_{i \in D}
        \frac{|\{(j, l) : y_{ij} = 1, y_{il} = 0, f_{ij} \le f_{il}\}|}{|Y_i|\,(c - |Y_i|)}

    Parameters
    ----------
    truth : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels)
        True labels, 0 or 1.
    scores : array-like of shape (n_rows, n_labels)
        Finite scores; larger means more likely.
    convention : {"pml", "sklearn"}, default="pml"
        ``D``: all rows but the degenerate ones ("pml"), or all rows, of which the degenerate ones have loss 0
        ("sklearn", equal to :func:`sklearn.metrics.label_ranking_loss`).

    Returns
    -------
    float
        Between 0 (best) and 1. NaN, with a warning, if no row is left.

    Examples
    --------
    >>> from skpml.metrics import ranking_loss
    >>> ranking_loss([[1, 0, 0], [1, 1, 1]], [[0.5, 0.7, 0.1], [0.2, 0.3, 0.1]])
    0.5
    """
    labels, numbers = _check(truth, scores, convention)
    n_true = labels.sum(axis=1)
    wrong_pairs = np.concatenate(
        [((rank - above) * true).sum(axis=1) for true, rank, above in _ranked(labels, numbers)]
    )
    return _mean_over_rows(
        "ranking loss", wrong_pairs, n_true * (labels.shape[1] - n_true), convention, if_degenerate=0.0
    )


def average_precision(truth: Any, scores: Any, *, convention: Convention = "pml") -> float:
    r"""Mean over a row's true labels of the share of true labels among those ranked at or above.

    .. math:: \frac{1}{|D|} \sum_{i \in D} \frac{1}{|Y_i|} \sum_{j : y_{ij} = 1} \frac{a_{ij}}{r_{ij}}

    A group of tied labels shares the worst rank of the group, so the order of the labels does not matter.

    Parameters
    ----------
    truth : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels)
        True labels, 0 or 1.
    scores : array-like of shape (n_rows, n_labels)
        Finite scores; larger means more likely.
    convention : {"pml", "sklearn"}, default="pml"
        ``D``: all rows but the degenerate ones ("pml"), or all rows, of which the degenerate ones have
        precision 1 ("sklearn", equal to :func:`sklearn.metrics.label_ranking_average_precision_score`).

    Returns
    -------
    float
        Above 0, at most 1 (best). NaN, with a warning, if no row is left.

    Examples
    --------
    >>> from skpml.metrics import average_precision
    >>> average_precision([[1, 0, 0], [0, 1, 1]], [[0.5, 0.7, 0.1], [0.2, 0.3, 0.4]])
    0.75
    """
    labels, numbers = _check(truth, scores, convention)
    n_true = labels.sum(axis=1)
    precision = np.concatenate(
        [(above / rank * true).sum(axis=1) for true, rank, above in _ranked(labels, numbers)]
    )
    # A row whose labels are all true orders nothing either, though its precision could be computed.
    weight = np.where(n_true == labels.shape[1], 0, n_true)
    return _mean_over_rows("average precision", precision, weight, convention, if_degenerate=1.0)


def one_error(truth: Any, scores: Any, *, convention: Convention = "pml") -> float:
    r"""Share of rows whose top label is not true; if labels tie at the top, one true among them is a hit.

    .. math:: \frac{1}{|D|} \sum_{i \in D} [\, y_{ij} = 0 \text{ for all } j \in \arg\max_l f_{il} \,]

    Parameters
    ----------
    truth : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels)
        True labels, 0 or 1.
    scores : array-like of shape (n_rows, n_labels)
        Finite scores; larger means more likely.
    convention : {"pml", "sklearn"}, default="pml"
        ``D``: all rows but the degenerate ones ("pml"), or all rows ("sklearn"). scikit-learn has no
        one-error; kept rows simply follow the definition: a row without labels is an error, one with all
        labels a hit.

    Returns
    -------
    float
        Between 0 (best) and 1. NaN, with a warning, if no row is left.

    Examples
    --------
    >>> from skpml.metrics import one_error
    >>> one_error([[1, 0, 0], [0, 1, 1]], [[0.5, 0.7, 0.1], [0.4, 0.3, 0.4]])
    0.5
    """
    labels, numbers = _check(truth, scores, convention)
    missed = ~(labels & (numbers == numbers.max(axis=1, keepdims=True))).any(axis=1)
    if convention == "pml":
        missed = missed[labels.any(axis=1) & ~labels.all(axis=1)]
    return float(missed.mean()) if missed.size else undefined("one-error", _ALL_DEGENERATE)


def coverage(truth: Any, scores: Any, *, convention: Convention = "pml") -> float:
    r"""How far down the ordering one must go to meet every true label.

    The depth of a row is the rank of its worst true label, counting all labels tied with it; 0 without true
    labels.

    .. math::

        \frac{1}{c} \left( \frac{1}{n} \sum_i \mathrm{depth}_i - 1 \right), \qquad
        \mathrm{depth}_i = \max_{j : y_{ij} = 1} r_{ij}

    Parameters
    ----------
    truth : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels)
        True labels, 0 or 1.
    scores : array-like of shape (n_rows, n_labels)
        Finite scores; larger means more likely.
    convention : {"pml", "sklearn"}, default="pml"
        The value above ("pml"), or the mean depth itself ("sklearn", equal to
        :func:`sklearn.metrics.coverage_error`). Both keep all rows.

    Returns
    -------
    float
        Smaller is better. In the "pml" convention below 1, and as low as -1/c if no row has a label.

    Examples
    --------
    >>> from skpml.metrics import coverage
    >>> coverage([[1, 0, 0, 0], [0, 1, 1, 0]], [[0.5, 0.7, 0.1, 0.0], [0.9, 0.3, 0.4, 0.3]])
    0.5
    """
    labels, numbers = _check(truth, scores, convention)
    worst = np.min(numbers, axis=1, keepdims=True, where=labels, initial=numbers.max())
    mean_depth = ((numbers >= worst).sum(axis=1) * labels.any(axis=1)).mean()
    return float(mean_depth if convention == "sklearn" else (mean_depth - 1) / labels.shape[1])


def precision_at_k(truth: Any, scores: Any, k: int) -> float:
    r"""Share of true labels among the ``k`` best-scored ones, mean over all rows.

    Labels tied at the k-th place share the places left: each counts with the chance it would have if the tie
    were broken at random. A row without true labels counts 0.

    Parameters
    ----------
    truth : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels)
        True labels, 0 or 1.
    scores : array-like of shape (n_rows, n_labels)
        Finite scores; larger means more likely.
    k : int
        Number of labels looked at, from 1 to ``n_labels``.

    Returns
    -------
    float
        Between 0 and 1 (best).

    Examples
    --------
    >>> from skpml.metrics import precision_at_k
    >>> precision_at_k([[1, 0, 1, 0]], [[0.9, 0.5, 0.5, 0.1]], k=2)
    0.75
    """
    labels, numbers = check_truth_and_scores(truth, scores)
    n_labels = labels.shape[1]
    if not isinstance(k, Integral) or isinstance(k, bool) or not 1 <= k <= n_labels:
        raise ValueError(f"k must be an integer from 1 to the number of labels, {n_labels}; got {k!r}")
    kth_best = np.partition(numbers, n_labels - k, axis=1)[:, n_labels - k, np.newaxis]
    above, tied = numbers > kth_best, numbers == kth_best
    chance = (k - above.sum(axis=1)) / tied.sum(axis=1)
    return float(((labels & above).sum(axis=1) + chance * (labels & tied).sum(axis=1)).mean() / k)


def macro_auc(truth: Any, scores: Any) -> float:
    """Area under the ROC curve of each label over the rows, mean over labels.

    Labels that all rows or no row have are left out: they have no curve.

    Parameters
    ----------
    truth : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels)
        True labels, 0 or 1.
    scores : array-like of shape (n_rows, n_labels)
        Finite scores; larger means more likely.

    Returns
    -------
    float
        Between 0 and 1 (best). NaN, with a warning, if every label was left out.

    Examples
    --------
    >>> from skpml.metrics import macro_auc
    >>> macro_auc([[1, 0], [0, 0], [1, 0]], [[0.3, 0.1], [0.2, 0.5], [0.1, 0.4]])
    0.5
    """
    labels, numbers = check_truth_and_scores(truth, scores)
    usable = np.flatnonzero(labels.any(axis=0) & ~labels.all(axis=0))
    if not usable.size:
        return undefined("macro AUC", "no label has both rows that carry it and rows that do not")
    return float(np.mean([roc_auc_score(labels[:, j], numbers[:, j]) for j in usable]))


_ALL_DEGENERATE = "every row has no label or all labels"


def _check(truth: Any, scores: Any, convention: str) -> tuple[BoolMatrix, NumberMatrix]:
    check_convention(convention)
    return check_truth_and_scores(truth, scores)


def _ranked(
    labels: BoolMatrix, scores: NumberMatrix
) -> Iterator[tuple[BoolMatrix, NDArray[np.intp], NDArray[np.intp]]]:
    """Yield (y, r, a) of the module's formulas for blocks of rows, the labels of each row sorted by score."""
    n_rows, n_labels = labels.shape
    step = max(1, _CELLS_AT_ONCE // n_labels)
    for start in range(0, n_rows, step):
        block = scores[start : start + step]
        order = np.argsort(block, axis=1)
        ascending = np.take_along_axis(block, order, axis=1)
        true = np.take_along_axis(labels[start : start + step], order, axis=1)
        opens_group = np.ones(true.shape, dtype=np.bool_)
        opens_group[:, 1:] = ascending[:, 1:] != ascending[:, :-1]
        group_start = np.maximum.accumulate(np.where(opens_group, np.arange(n_labels), 0), axis=1)
        n_true_up_to = np.cumsum(true, axis=1)
        n_true_below: NDArray[np.intp] = np.take_along_axis(n_true_up_to - true, group_start, axis=1)
        yield true, n_labels - group_start, n_true_up_to[:, -1:] - n_true_below


def _mean_over_rows(
    metric: str, totals: NDArray[Any], weights: NDArray[Any], convention: str, *, if_degenerate: float
) -> float:
    """Mean of totals / weights; a weight of zero marks a degenerate row."""
    usable = weights > 0
    per_row = totals[usable] / weights[usable]
    if convention == "sklearn":
        return float((per_row.sum() + if_degenerate * (~usable).sum()) / len(usable))
    return float(per_row.mean()) if per_row.size else undefined(metric, _ALL_DEGENERATE)
