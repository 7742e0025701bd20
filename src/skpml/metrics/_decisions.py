r"""Metrics of decisions: are the labels that were assigned the true ones?

Counted directly from the cells rather than through scikit-learn, which takes a single label column for a
two-class problem and then means something else by micro F1 and refuses the row-wise metrics. With two labels
or more, the values are scikit-learn's (there, pass the same ``zero_division``).

A ratio with nothing in it (0/0) takes the value ``zero_division``. Its default is 0 for the label-wise
metrics: a label that is never true and never assigned says nothing for the method; and 1 for the row-wise
ones: to assign nothing where nothing is true is right.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpml._validation import BoolMatrix
from skpml.metrics._checks import check_truth_and_decisions


def hamming_loss(truth: Any, decisions: Any) -> float:
    r"""Share of cells in which decision and truth differ.

    .. math:: \frac{1}{n c} \sum_{i, j} [\, h_{ij} \ne y_{ij} \,]

    Parameters
    ----------
    truth, decisions : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels)
        True and assigned labels, 0 or 1.

    Returns
    -------
    float
        Between 0 (best) and 1.

    Examples
    --------
    >>> from skpml.metrics import hamming_loss
    >>> hamming_loss([[1, 0], [0, 1]], [[1, 1], [0, 1]])
    0.25
    """
    labels, decided = check_truth_and_decisions(truth, decisions)
    return float((labels != decided).mean())


def subset_accuracy(truth: Any, decisions: Any) -> float:
    """Share of rows in which every label is decided rightly.

    Parameters
    ----------
    truth, decisions : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels)
        True and assigned labels, 0 or 1.

    Returns
    -------
    float
        Between 0 and 1 (best).

    Examples
    --------
    >>> from skpml.metrics import subset_accuracy
    >>> subset_accuracy([[1, 0], [0, 1]], [[1, 1], [0, 1]])
    0.5
    """
    labels, decided = check_truth_and_decisions(truth, decisions)
    return float((labels == decided).all(axis=1).mean())


def micro_f1(truth: Any, decisions: Any, *, zero_division: float = 0.0) -> float:
    r"""F1 of all cells taken together.

    .. math:: \frac{2 \sum_{ij} h_{ij} y_{ij}}{\sum_{ij} h_{ij} + \sum_{ij} y_{ij}}

    Parameters
    ----------
    truth, decisions : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels)
        True and assigned labels, 0 or 1.
    zero_division : float, default=0.0
        The value if no label is true and none is assigned anywhere.

    Returns
    -------
    float
        Between 0 and 1 (best).

    Examples
    --------
    >>> from skpml.metrics import micro_f1
    >>> micro_f1([[1, 0], [0, 1]], [[1, 1], [0, 0]])
    0.5
    """
    return float(_f1(*check_truth_and_decisions(truth, decisions), None, zero_division))


def macro_f1(truth: Any, decisions: Any, *, zero_division: float = 0.0) -> float:
    r"""F1 of each label over the rows, mean over labels.

    .. math:: \frac{1}{c} \sum_j \frac{2 \sum_i h_{ij} y_{ij}}{\sum_i h_{ij} + \sum_i y_{ij}}

    Parameters
    ----------
    truth, decisions : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels)
        True and assigned labels, 0 or 1.
    zero_division : float, default=0.0
        The value of a label that is never true and never assigned.

    Returns
    -------
    float
        Between 0 and 1 (best).

    Examples
    --------
    >>> from skpml.metrics import macro_f1
    >>> macro_f1([[1, 0], [0, 1]], [[1, 1], [0, 0]])
    0.5
    """
    return float(_f1(*check_truth_and_decisions(truth, decisions), 0, zero_division).mean())


def example_f1(truth: Any, decisions: Any, *, zero_division: float = 1.0) -> float:
    r"""F1 of each row over the labels, mean over rows.

    .. math:: \frac{1}{n} \sum_i \frac{2 \sum_j h_{ij} y_{ij}}{\sum_j h_{ij} + \sum_j y_{ij}}

    Parameters
    ----------
    truth, decisions : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels)
        True and assigned labels, 0 or 1.
    zero_division : float, default=1.0
        The value of a row without true and without assigned labels.

    Returns
    -------
    float
        Between 0 and 1 (best).

    Examples
    --------
    >>> from skpml.metrics import example_f1
    >>> example_f1([[1, 0], [0, 0]], [[1, 0], [0, 0]])
    1.0
    """
    return float(_f1(*check_truth_and_decisions(truth, decisions), 1, zero_division).mean())


def example_accuracy(truth: Any, decisions: Any, *, zero_division: float = 1.0) -> float:
    r"""Jaccard index of each row's true and assigned labels, mean over rows.

    .. math:: \frac{1}{n} \sum_i \frac{|Y_i \cap H_i|}{|Y_i \cup H_i|}

    Parameters
    ----------
    truth, decisions : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels)
        True and assigned labels, 0 or 1.
    zero_division : float, default=1.0
        The value of a row without true and without assigned labels.

    Returns
    -------
    float
        Between 0 and 1 (best).

    Examples
    --------
    >>> from skpml.metrics import example_accuracy
    >>> example_accuracy([[1, 0], [0, 1]], [[1, 1], [0, 1]])
    0.75
    """
    labels, decided = check_truth_and_decisions(truth, decisions)
    return float(_ratio((labels & decided).sum(axis=1), (labels | decided).sum(axis=1), zero_division).mean())


def _f1(
    labels: BoolMatrix, decided: BoolMatrix, axis: int | None, zero_division: float
) -> NDArray[np.float64]:
    return _ratio(
        2 * (labels & decided).sum(axis=axis), labels.sum(axis=axis) + decided.sum(axis=axis), zero_division
    )


def _ratio(over: NDArray[Any], under: NDArray[Any], zero_division: float) -> NDArray[np.float64]:
    over, under = np.asarray(over), np.asarray(under)
    return np.divide(over, under, out=np.full(under.shape, float(zero_division)), where=under > 0)
