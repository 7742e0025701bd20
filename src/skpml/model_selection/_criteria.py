"""How good held-out scores are: judged by the candidates alone, or by the truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from skpml.model_selection._held_out import precision

Selector = Literal["label-free", "oracle"]
Criterion = Callable[[Any, Any], float]


def candidate_precision(candidates: Any, scores: Any) -> float:
    r"""Average precision of held-out scores, with the candidates in the place of the truth.

    What is certain is on one side only: a non-candidate is false, a candidate is true or false. That is enough to
    compare. Scores that put a true label above a false one it stood below gain, where the false label is a
    non-candidate, and lose nothing where it is a candidate: with false candidates that do not depend on the features,
    better scores have a better expectation. False candidates lower the values, and make them flatter and noisier, so
    values compare parameters on the same rows and say nothing by themselves.

    The scores must come from rows that were not trained on: on training rows, whoever believes every candidate wins.

    Parameters
    ----------
    candidates : {array-like, sparse matrix, DataFrame} of shape (n, c)
        0 or 1. Rows without candidates or without non-candidates compare nothing and are left out.
    scores : array-like of shape (n, c)
        Larger is more plausible. Tied labels take the worst rank of their group.

    Returns
    -------
    float
        Between 0 and 1; larger is better. NaN where no row compares anything.

    See Also
    --------
    skpml.metrics.average_precision

    Examples
    --------
    >>> from skpml.model_selection import candidate_precision
    >>> candidate_precision([[1, 1, 0, 0]], [[0.9, 0.2, 0.5, 0.1]])
    0.8333333333333333
    """
    return precision(candidates, scores)


# The same measure: by the candidates, which everybody has, and by the truth, which nobody has outside experiments.
CRITERIA: dict[Selector, Criterion] = {
    "label-free": candidate_precision,
    "oracle": precision,
}
