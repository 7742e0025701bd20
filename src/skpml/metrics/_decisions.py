"""Metrics of decisions: are the assigned labels the true ones, and the removed candidates the false ones?

They are counted from the cells instead of with scikit-learn, which reads a single label column as a two-class problem,
computes another micro F1 for it and refuses the row-wise metrics. With two labels or more, the values are those of
scikit-learn with the same ``zero_division``.

A ratio 0/0 takes the value ``zero_division``. Its default is 0 for the label-wise metrics, because a label that is never
true and never assigned is no evidence for the method, and 1 for the row-wise ones, because assigning nothing is correct
if nothing is true.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from skpml._docstrings import fill_docstring
from skpml._validation import BoolMatrix, check_labels
from skpml.metrics._checks import (
    check_same_columns,
    check_same_shape,
    check_scores,
    check_truth_and_decisions,
    undefined,
)


@fill_docstring
def hamming_loss(truth: Any, decisions: Any) -> float:
    r"""Compute the share of cells in which decision and truth differ.

    .. math:: \frac{1}{n c} \sum_{i, j} [\, h_{ij} \ne y_{ij} \,]

    %(decision_loss)s

    Examples
    --------
    >>> from skpml.metrics import hamming_loss
    >>> hamming_loss([[1, 0], [0, 1]], [[1, 1], [0, 1]])
    0.25
    """
    labels, decided = check_truth_and_decisions(truth, decisions)
    return float((labels != decided).mean())


@fill_docstring
def subset_accuracy(truth: Any, decisions: Any) -> float:
    """Compute the share of rows in which every label is decided correctly.

    %(decision_gain)s

    Examples
    --------
    >>> from skpml.metrics import subset_accuracy
    >>> subset_accuracy([[1, 0], [0, 1]], [[1, 1], [0, 1]])
    0.5
    """
    labels, decided = check_truth_and_decisions(truth, decisions)
    return float((labels == decided).all(axis=1).mean())


@fill_docstring
def micro_f1(truth: Any, decisions: Any, *, zero_division: float = 0.0) -> float:
    r"""Compute F1 over all cells together.

    .. math:: \frac{2 \sum_{ij} h_{ij} y_{ij}}{\sum_{ij} h_{ij} + \sum_{ij} y_{ij}}

    %(decision_gain_by_label)s

    Examples
    --------
    >>> from skpml.metrics import micro_f1
    >>> micro_f1([[1, 0], [0, 1]], [[1, 1], [0, 0]])
    0.5
    """
    return float(_f1(*check_truth_and_decisions(truth, decisions), None, zero_division))


@fill_docstring
def macro_f1(truth: Any, decisions: Any, *, zero_division: float = 0.0) -> float:
    r"""Compute F1 of each label over the rows, averaged over labels.

    .. math:: \frac{1}{c} \sum_j \frac{2 \sum_i h_{ij} y_{ij}}{\sum_i h_{ij} + \sum_i y_{ij}}

    %(decision_gain_by_label)s

    Examples
    --------
    >>> from skpml.metrics import macro_f1
    >>> macro_f1([[1, 0], [0, 1]], [[1, 1], [0, 0]])
    0.5
    """
    return float(_f1(*check_truth_and_decisions(truth, decisions), 0, zero_division).mean())


@fill_docstring
def example_f1(truth: Any, decisions: Any, *, zero_division: float = 1.0) -> float:
    r"""Compute F1 of each row over the labels, averaged over rows.

    .. math:: \frac{1}{n} \sum_i \frac{2 \sum_j h_{ij} y_{ij}}{\sum_j h_{ij} + \sum_j y_{ij}}

    %(decision_gain_by_row)s

    Examples
    --------
    >>> from skpml.metrics import example_f1
    >>> example_f1([[1, 0], [0, 0]], [[1, 0], [0, 0]])
    1.0
    """
    return float(_f1(*check_truth_and_decisions(truth, decisions), 1, zero_division).mean())


@fill_docstring
def example_accuracy(truth: Any, decisions: Any, *, zero_division: float = 1.0) -> float:
    r"""Compute the Jaccard index of true and assigned labels, averaged over rows.

    .. math:: \frac{1}{n} \sum_i \frac{|Y_i \cap H_i|}{|Y_i \cup H_i|}

    %(decision_gain_by_row)s

    Examples
    --------
    >>> from skpml.metrics import example_accuracy
    >>> example_accuracy([[1, 0], [0, 1]], [[1, 1], [0, 1]])
    0.75
    """
    labels, decided = check_truth_and_decisions(truth, decisions)
    return float(_ratio((labels & decided).sum(axis=1), (labels | decided).sum(axis=1), zero_division).mean())


@fill_docstring
def denoising_scores(
    candidates: Any, truth: Any, confidences: Any = None, *, threshold: float = 0.5, removed: Any = None
) -> dict[str, float]:
    r"""Score the removal of false candidates, over the candidate cells only.

    With :math:`W` the false candidates and :math:`R` the removed ones,

    .. math::

        \text{precision} = \frac{|R \cap W|}{|R|}, \quad \text{recall} = \frac{|R \cap W|}{|W|}, \quad
        F_1 = \frac{2\,|R \cap W|}{|R| + |W|},

    and AUC is the probability that a random false candidate has less confidence than a random true one (a tie counts
    half).

    Parameters
    ----------
    candidates : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels)
        Candidate labels, 0 or 1.
    %(truth)s
        Each must be a candidate.
    confidences : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels), optional
        Probability that the candidate is true. Other cells are ignored and may be NaN.
    threshold : float, default=0.5
        A candidate is removed if its confidence is at most this value.
    removed : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels), optional
        Removed candidates, 0 or 1, instead of those at or below the threshold. Other cells are ignored.

    Returns
    -------
    dict of str to float
        ``precision``, ``recall``, ``f1`` and ``auc``. Undefined values are NaN: precision if nothing was removed,
        recall if no candidate is false, F1 if both, AUC without confidences or (with a warning) if all candidates
        are true or all are false.

    Examples
    --------
    >>> from skpml.metrics import denoising_scores
    >>> denoising_scores([[1, 1, 1, 0]], [[1, 0, 0, 0]], [[0.9, 0.2, 0.7, 0.1]])
    {'precision': 1.0, 'recall': 0.5, 'f1': 0.6666666666666666, 'auc': 1.0}
    """
    if confidences is None and removed is None:
        raise ValueError("give confidences, removed or both: there is nothing to score")
    for name, other in (("truth", truth), ("confidences", confidences), ("removed", removed)):
        check_same_columns(candidates, other, name, "candidates")
    is_candidate, is_true = check_labels(candidates, "candidates"), check_labels(truth, "truth")
    check_same_shape(is_candidate, is_true, "truth", "candidates")
    if (is_true & ~is_candidate).any():
        row, column = np.argwhere(is_true & ~is_candidate)[0]
        raise ValueError(
            f"every true label must be a candidate; row {row}, column {column} is true but is not one"
        )
    false = ~is_true[is_candidate]
    confidence = None
    if confidences is not None:
        confidence = check_scores(confidences, "confidences", candidates=is_candidate)[is_candidate]
    if removed is not None:
        mask = check_labels(removed, "removed")
        check_same_shape(is_candidate, mask, "removed", "candidates")
        gone = mask[is_candidate]
    else:
        gone = np.asarray(confidence) <= threshold

    n_found, n_gone, n_false = int((gone & false).sum()), int(gone.sum()), int(false.sum())
    nan = float("nan")
    if confidence is None:
        auc = nan
    elif 0 < n_false < false.size:
        auc = float(roc_auc_score(~false, confidence))
    else:
        auc = undefined("the AUC of denoising", "the candidates are all true or all wrong")
    return {
        "precision": n_found / n_gone if n_gone else nan,
        "recall": n_found / n_false if n_false else nan,
        "f1": 2 * n_found / (n_gone + n_false) if n_gone + n_false else nan,
        "auc": auc,
    }


def _f1(
    labels: BoolMatrix, decided: BoolMatrix, axis: int | None, zero_division: float
) -> NDArray[np.float64]:
    return _ratio(
        2 * (labels & decided).sum(axis=axis), labels.sum(axis=axis) + decided.sum(axis=axis), zero_division
    )


def _ratio(over: NDArray[Any], under: NDArray[Any], zero_division: float) -> NDArray[np.float64]:
    over, under = np.asarray(over), np.asarray(under)
    return np.divide(over, under, out=np.full(under.shape, float(zero_division)), where=under > 0)
