"""Metrics of cleaning: were the wrong candidates found, and only those?"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from skpml._validation import check_labels
from skpml.metrics._checks import check_same_columns, check_same_shape, check_scores, undefined


def denoising_scores(
    candidates: Any,
    truth: Any,
    confidences: Any = None,
    *,
    threshold: float = 0.5,
    removed: Any = None,
) -> dict[str, float]:
    r"""Score the removal of false candidates, over the candidate cells only.

    With :math:`W` the wrong candidates (candidate, not true) and :math:`R` the removed ones,

    .. math::

        \text{precision} = \frac{|R \cap W|}{|R|}, \quad \text{recall} = \frac{|R \cap W|}{|W|}, \quad
        F_1 = \frac{2\,|R \cap W|}{|R| + |W|},

    and AUC is the chance that a wrong candidate has less confidence than a true one, both drawn at random (a
    tie counts half).

    Parameters
    ----------
    candidates : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels)
        Candidate labels, 0 or 1.
    truth : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels)
        True labels, 0 or 1; each must be a candidate.
    confidences : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels), optional
        Confidence that the candidate is true. Cells that are no candidates are not looked at and may be NaN.
    threshold : float, default=0.5
        A candidate is removed if its confidence is at most this: to stay, it needs more.
    removed : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels), optional
        Removed candidates, 0 or 1, instead of those below the threshold. Cells that are no candidates do not
        count.

    Returns
    -------
    dict of str to float
        ``precision``, ``recall``, ``f1`` and ``auc``. What has no value is NaN: precision if nothing was
        removed, recall if no candidate is wrong, F1 if both, AUC without confidences or (with a warning) if
        all candidates are of one kind.

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
    wrong = ~is_true[is_candidate]

    confidence = None
    if confidences is not None:
        confidence = check_scores(confidences, "confidences", candidates=is_candidate)[is_candidate]
    if removed is not None:
        mask = check_labels(removed, "removed")
        check_same_shape(is_candidate, mask, "removed", "candidates")
        gone = mask[is_candidate]
    else:
        gone = np.asarray(confidence) <= threshold

    n_found, n_gone, n_wrong = int((gone & wrong).sum()), int(gone.sum()), int(wrong.sum())
    if confidence is None:
        auc = float("nan")
    elif 0 < n_wrong < wrong.size:
        # "True" against its confidence has the same area as "wrong" against its opposite, and needs no
        # negation.
        auc = float(roc_auc_score(~wrong, confidence))
    else:
        auc = undefined("the AUC of denoising", "the candidates are all true or all wrong")
    return {
        "precision": n_found / n_gone if n_gone else float("nan"),
        "recall": n_found / n_wrong if n_wrong else float("nan"),
        "f1": 2 * n_found / (n_gone + n_wrong) if n_gone + n_wrong else float("nan"),
        "auc": auc,
    }
