"""A chain of classifiers, each of which sees the labels before its own."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import make_pipeline

from skpml._docstrings import fill_docstring
from skpml._ordering import label_order
from skpml.base import BasePMLClassifier, MethodFacts
from skpml.features import RangeScaler, as_dense, resolve_feature_map


@fill_docstring
@dataclass(repr=False, eq=False)
class CandidateChain(BasePMLClassifier):
    """Classifier chain on candidates taken for true labels.

    One classifier per label: each gets the mapped features and the labels before its own, which are the candidates in
    training and the decisions of the classifiers before it in prediction. Correlated labels can support each other, and
    so can false candidates: it is a reference point.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Learns one label from mapped features; any binary classifier of scikit-learn with ``predict_proba`` or
        ``decision_function``. None is ``RidgeClassifier()``: least squares, solved exactly.
    order : sequence of c whole numbers or None, default=None
        Columns of y from the first label of the chain to the last. None begins with the most frequent label; ties are
        broken by the content of the rows, so that the order of columns does not matter.
    %(feature_map)s
    %(map_anchors)s
    %(threshold)s
        0 is the cut of the classifiers.
    %(on_empty)s
    random_state : int, RandomState or None, default=None
        Draws the anchors if not all rows are anchors. A random `estimator` has its own.

    Attributes
    ----------
    chain_ : sklearn.multioutput.ClassifierChain or None
        Fitted to the labels in ``order_``; None if there are none.
    order_ : ndarray of int
        Columns in the order of the chain, without labels that all rows or no row has.
    feature_map_ : Pipeline
        Scales and maps the features.
    %(fitted)s

    Notes
    -----
    Scores are decision values, or probabilities minus ½ if the classifiers have them. Labels that are not in the chain
    score −1 or 1 (∓½ with probabilities).

    If rows were filled up to a fixed number of candidates, as is usual in experiments, a chain learns that number: after
    few positive decisions, the next labels must be candidates. Average precision is then far below that of the same
    classifiers without a chain (birds filled up to 3 candidates: 0.34 against 0.60), but not if the same share of false
    candidates is drawn independently.

    Fitting costs c fits of `estimator` on up to a + c features, for a mapped features: with ridge O(c n a²) in time and
    O(n a) in memory; a is at most 3000 by default. ``feature_map="linear"`` is much cheaper with many rows.

    %(reference_and_data)s
    >>> from skpml.reference import CandidateChain
    >>> model = CandidateChain().fit(X, candidates)
    >>> bool(model.order_[0] == candidates.sum(axis=0).argmax())
    True
    """

    estimator: Any = None
    _: KW_ONLY
    order: Any = None
    feature_map: Any = "rbf"
    n_anchors: int | None = None
    threshold: float | str = "auto"
    on_empty: str = "warn"
    random_state: Any = None

    _facts = MethodFacts(
        name="chain",
        title="Classifier chain on the candidates",
        kind="reference",
        summary="each label sees the decisions on the labels before it",
        nonlinear=True,
        random=True,
        source="paper",
        year=2011,
        reference="Read, Pfahringer, Holmes, Frank. Classifier chains for multi-label classification. "
        "Machine Learning 85:333–359, 2011.",
        comparison_threshold=0.0,
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.estimator is not None and not hasattr(self.estimator, "fit"):
            raise ValueError(f"estimator must be a classifier or None, got {self.estimator!r}.")

    def _fit(self, X: Any, Y: NDArray[Any]) -> None:
        estimator = RidgeClassifier() if self.estimator is None else clone(self.estimator)
        self._response = _score_method(estimator)
        self.feature_map_: Any = make_pipeline(
            RangeScaler(),
            resolve_feature_map(self.feature_map, n_anchors=self.n_anchors, random_state=self.random_state),
        )
        mapped = as_dense(self.feature_map_.fit_transform(X), X.dtype)
        order = self._chain_order(self.feature_map_[0].transform(X), Y)
        share = Y.mean(axis=0)
        self._constant: NDArray[Any] = np.where(share == 1, 1.0, -1.0)
        self.order_ = order[((share > 0) & (share < 1))[order]]
        self.chain_: Any = None
        if len(self.order_):
            self.chain_ = ClassifierChain(estimator).fit(mapped, Y[:, self.order_].astype(np.int64))

    def _chain_order(self, scaled: NDArray[Any], Y: NDArray[Any]) -> NDArray[np.intp]:
        if self.order is None:
            return label_order(scaled, Y)[::-1]
        order = np.asarray(self.order)
        if order.ndim != 1 or sorted(order.tolist()) != list(range(Y.shape[1])):
            raise ValueError(
                f"order must hold each of the columns 0 to {Y.shape[1] - 1} of y once, got {self.order!r}."
            )
        return order.astype(np.intp)

    def _scores(self, X: Any) -> NDArray[Any]:
        is_probability = self._response == "predict_proba"
        scores = np.tile(self._constant / 2 if is_probability else self._constant, (X.shape[0], 1))
        if self.chain_ is not None:
            mapped = as_dense(self.feature_map_.transform(X), X.dtype)
            scores[:, self.order_] = getattr(self.chain_, self._response)(mapped) - 0.5 * is_probability
        return scores.astype(X.dtype)


def _score_method(estimator: Any) -> str:
    for method in ("predict_proba", "decision_function"):
        if hasattr(estimator, method):
            return method
    raise ValueError(
        f"estimator must be a classifier with predict_proba or decision_function, got {estimator!r}."
    )
