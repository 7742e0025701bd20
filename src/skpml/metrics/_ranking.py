r"""Metrics of scores: does a row's ordering of the labels put the true ones first?

They are counted from two numbers per cell that do not depend on the order in which labels are stored: the *rank* of
label :math:`j` in row :math:`i`, and the number of *true labels ranked at or above* it,

.. math::

    r_{ij} = |\{l : f_{il} \ge f_{ij}\}|, \qquad a_{ij} = |\{l : y_{il} = 1, f_{il} \ge f_{ij}\}|.

Tied labels all take the worst rank of their group, as in scikit-learn.

A row is *degenerate* if none or all of its labels are true, because there is nothing to order. The convention decides:

``"pml"``
    the partial multi-label literature: degenerate rows are dropped; coverage is counted from zero and divided by the
    number of labels (degenerate rows are kept, with depth 0 for a row without labels).
``"sklearn"``
    scikit-learn: degenerate rows are kept and count as perfect; coverage is a number of labels.

If the "pml" convention leaves no row, the value is NaN and an ``UndefinedMetricWarning`` is issued.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from sklearn.metrics import roc_auc_score

from skpml._docstrings import fill_docstring
from skpml._ordering import rank_labels, row_average_precision, without_degenerate_rows
from skpml._validation import BoolMatrix, is_count
from skpml.metrics._checks import NumberMatrix, check_truth_and_scores, undefined

Convention = Literal["pml", "sklearn"]

_ALL_DEGENERATE = "every row has no label or all labels"


@fill_docstring
def ranking_loss(truth: Any, scores: Any, *, convention: Convention = "pml") -> float:
    r"""Compute the share of (true, false) label pairs in wrong order; ties are wrong.

    .. math::

        \frac{1}{|D|} \sum_{i \in D}
        \frac{|\{(j, l) : y_{ij} = 1, y_{il} = 0, f_{ij} \le f_{il}\}|}{|Y_i|\,(c - |Y_i|)}

    %(parameters_scores)s
    convention : {"pml", "sklearn"}, default="pml"
        The rows ``D``: all but the degenerate ones ("pml"), or all, with loss 0 for the degenerate ones ("sklearn",
        equal to :func:`sklearn.metrics.label_ranking_loss`).

    %(returns_loss_or_nan)s

    Examples
    --------
    >>> from skpml.metrics import ranking_loss
    >>> ranking_loss([[1, 0, 0], [1, 1, 1]], [[0.5, 0.7, 0.1], [0.2, 0.3, 0.1]])
    0.5
    """
    labels, numbers = _check(truth, scores, convention)
    n_rows, n_labels = labels.shape
    labels, numbers = without_degenerate_rows(labels, numbers)
    n_true = labels.sum(axis=1)
    wrong_pairs = [((rank - above) * true).sum(axis=1) for true, rank, above in rank_labels(labels, numbers)]
    per_row = np.concatenate([np.zeros(0), *wrong_pairs]) / (n_true * (n_labels - n_true))
    return _average(per_row, n_rows, "ranking loss", convention, if_degenerate=0.0)


@fill_docstring
def average_precision(truth: Any, scores: Any, *, convention: Convention = "pml") -> float:
    r"""Compute the mean precision at the ranks of the true labels of each row.

    .. math:: \frac{1}{|D|} \sum_{i \in D} \frac{1}{|Y_i|} \sum_{j : y_{ij} = 1} \frac{a_{ij}}{r_{ij}}

    A group of tied labels shares the worst rank of the group, so the order of the labels does not matter.

    %(parameters_scores)s
    convention : {"pml", "sklearn"}, default="pml"
        The rows ``D``: all but the degenerate ones ("pml"), or all, with precision 1 for the degenerate ones
        ("sklearn", equal to :func:`sklearn.metrics.label_ranking_average_precision_score`).

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
    per_row = row_average_precision(labels, numbers)
    return _average(per_row, len(labels), "average precision", convention, if_degenerate=1.0)


@fill_docstring
def one_error(truth: Any, scores: Any, *, convention: Convention = "pml") -> float:
    r"""Compute the share of rows whose top label is not true.

    .. math:: \frac{1}{|D|} \sum_{i \in D} [\, y_{ij} = 0 \text{ for all } j \in \arg\max_l f_{il} \,]

    If labels tie at the top, one true label among them is enough.

    %(parameters_scores)s
    convention : {"pml", "sklearn"}, default="pml"
        The rows ``D``: all but the degenerate ones ("pml"), or all ("sklearn"). scikit-learn has no one-error; by
        the definition, a row without labels is an error and a row with all labels is not.

    %(returns_loss_or_nan)s

    Examples
    --------
    >>> from skpml.metrics import one_error
    >>> one_error([[1, 0, 0], [0, 1, 1]], [[0.5, 0.7, 0.1], [0.4, 0.3, 0.4]])
    0.5
    """
    labels, numbers = _check(truth, scores, convention)
    if convention == "pml":
        labels, numbers = without_degenerate_rows(labels, numbers)
    missed = ~(labels & (numbers == numbers.max(axis=1, keepdims=True))).any(axis=1)
    return float(missed.mean()) if missed.size else undefined("one-error", _ALL_DEGENERATE)


@fill_docstring
def coverage(truth: Any, scores: Any, *, convention: Convention = "pml") -> float:
    r"""Compute how far down the ordering one must go to meet every true label.

    The depth of a row is the rank of its worst true label, counting all labels tied with it; 0 without true labels.

    .. math::

        \frac{1}{c} \left( \frac{1}{n} \sum_i \mathrm{depth}_i - 1 \right), \qquad
        \mathrm{depth}_i = \max_{j : y_{ij} = 1} r_{ij}

    %(parameters_scores)s
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


@fill_docstring
def precision_at_k(truth: Any, scores: Any, k: int) -> float:
    r"""Compute the share of true labels among the ``k`` best-scored ones of each row.

    Labels tied at the k-th place share the remaining places: each counts with the probability of being taken if the tie
    is broken at random. A row without true labels counts 0.

    %(parameters_scores)s
    k : int
        Number of labels per row, from 1 to ``n_labels``.

    %(returns_gain)s

    Examples
    --------
    >>> from skpml.metrics import precision_at_k
    >>> precision_at_k([[1, 0, 1, 0]], [[0.9, 0.5, 0.5, 0.1]], k=2)
    0.75
    """
    labels, numbers = check_truth_and_scores(truth, scores)
    n_labels = labels.shape[1]
    if not is_count(k) or k > n_labels:
        raise ValueError(f"k must be an integer from 1 to the number of labels, {n_labels}; got {k!r}")
    kth_best = np.partition(numbers, n_labels - k, axis=1)[:, n_labels - k, np.newaxis]
    above, tied = numbers > kth_best, numbers == kth_best
    chance = (k - above.sum(axis=1)) / tied.sum(axis=1)
    return float(((labels & above).sum(axis=1) + chance * (labels & tied).sum(axis=1)).mean() / k)


@fill_docstring
def macro_auc(truth: Any, scores: Any) -> float:
    """Compute the area under the ROC curve of each label, averaged over labels.

    Labels that all rows or no row have are left out: they have no curve.

    %(parameters_scores)s

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


def _check(truth: Any, scores: Any, convention: str) -> tuple[BoolMatrix, NumberMatrix]:
    if convention not in get_args(Convention):
        allowed = ", ".join(map(repr, get_args(Convention)))
        raise ValueError(f"convention must be one of {allowed}, got {convention!r}")
    return check_truth_and_scores(truth, scores)


def _average(
    per_row: NumberMatrix, n_rows: int, metric: str, convention: str, *, if_degenerate: float
) -> float:
    """Mean over the rows that are not degenerate, or over all rows in scikit-learn's convention."""
    if convention == "sklearn":
        return float((per_row.sum() + if_degenerate * (n_rows - len(per_row))) / n_rows)
    return float(per_row.mean()) if len(per_row) else undefined(metric, _ALL_DEGENERATE)
