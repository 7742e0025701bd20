"""The ceiling: any multi-label learner, trained on true labels."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skpml._docstrings import fill_docstring
from skpml._validation import EncodedLabels, encode_labels, is_dask
from skpml.base import BasePMLClassifier
from skpml.reference._ridge import CandidateRidge

# What the scores are, best first, and where the estimator itself cuts them. Probabilities come before decision values
# because ranking compares labels with each other, and separate classifiers need not agree on the scale of the latter.
_CUTS = {"predict_proba": 0.5, "decision_function": 0.0, "predict": 0.5}


@fill_docstring
@dataclass(repr=False, eq=False)
class Oracle(BasePMLClassifier):
    """A ceiling: an estimator trained on true labels, as if no candidate were false.

    In a comparison it gets the candidates as other methods do, and trains the estimator inside on ``truth`` instead::

        Oracle(CandidateRidge()).fit(X, candidates, truth=truth)

    Without ``truth`` it trains on y, which then must hold true labels.

    Parameters
    ----------
    estimator : estimator or None, default=None
        A method of this library, or any multi-label classifier of scikit-learn. None is
        :class:`~skpml.reference.CandidateRidge`.
    threshold : float or "auto", default="auto"
        "auto" leaves decisions, and probabilities if it has them, to the estimator. With a number, scores above it are
        predicted, and probabilities are made from scores as for any method.
    on_empty : {"warn", "raise", "ignore"}, default="warn"
        What to do about rows without a true label and labels that no row truly has. The estimator's own parameter of
        this name is set to "ignore".

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    %(fitted)s

    Notes
    -----
    The scores are those of ``decision_function`` for methods of this library. For other estimators they are
    probabilities, or else decision values, or else the 0/1 predictions. Labels that all rows or no row truly has are
    passed to the estimator: scikit-learn's forests, neighbors and ``OneVsRestClassifier`` accept them, others may not.

    ``truth`` is split with the rows in cross-validation: ``cross_validate(Oracle(), X, y, params={"truth": truth})``,
    with :meth:`set_fit_request` if metadata routing is enabled. It then scores against y, the candidates: for scores
    against the truth, split and score by hand, or pass y = truth. Cost and memory are the estimator's. A model file can
    hold an oracle around a method of this library, but not around a forest.

    Examples
    --------
    %(example_data)s
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from skpml.reference import Oracle
    >>> ceiling = Oracle(RandomForestClassifier(random_state=0)).fit(X, candidates, truth=truth)
    >>> ceiling.decision_function(X).shape
    (300, 5)
    """

    estimator: Any = None
    _: KW_ONLY
    threshold: float | str = "auto"
    on_empty: str = "warn"

    _threshold_rules = ("auto",)

    def fit(self, X: Any, y: Any, truth: Any = None) -> Self:
        """Learn from rows and their true labels.

        Parameters
        ----------
        X : array or scipy sparse matrix of shape (n, d)
            Features.
        y : (n, c) matrix of 0 and 1, list of n label sets, or n classes
            The candidates of each row, or its true labels if `truth` is None.
        truth : like y, or None, default=None
            The true labels, each among the candidates of its row. Columns with names (data frame, label sets) are matched
            by name, others by position.

        Returns
        -------
        self : Oracle
            The fitted estimator.
        """
        return super().fit(X, y if truth is None else true_labels(truth, encode_labels(y)))

    def _check_parameters(self) -> None:
        if self.estimator is not None and not hasattr(self.estimator, "fit"):
            raise ValueError(f"estimator must be a classifier or None, got {self.estimator!r}.")

    def _fit(self, X: Any, Y: NDArray[Any]) -> NDArray[Any]:
        self.estimator_: Any = CandidateRidge() if self.estimator is None else clone(self.estimator)
        policies = {
            name: "ignore" for name in self.estimator_.get_params() if name.split("__")[-1] == "on_empty"
        }
        self.estimator_.set_params(**policies)
        targets = Y.astype(np.int64)
        # scikit-learn takes a single column for a mistake.
        self.estimator_.fit(X, targets if self._is_ours or Y.shape[1] > 1 else targets[:, 0])
        # Training scores are not used: the cut is the estimator's.
        return Y

    @property
    def _is_ours(self) -> bool:
        return isinstance(self.estimator_, BasePMLClassifier)

    def _estimate_threshold(self, scores: NDArray[Any], candidates: NDArray[np.uint8]) -> None:
        self.threshold_ = self.estimator_.threshold_ if self._is_ours else _CUTS[self._score_method]
        self._probability_width = 1.0

    def _scores(self, X: Any) -> NDArray[Any]:
        return self._call(self._score_method, X).astype(X.dtype, copy=False)

    @property
    def _score_method(self) -> str:
        if self._is_ours:
            return "decision_function"
        return next(method for method in _CUTS if hasattr(self.estimator_, method))

    def predict_proba(self, X: Any) -> NDArray[Any]:
        if self._has_own("predict_proba") and not is_dask(X):
            return self._call("predict_proba", self._validate_features(X, reset=False))
        return super().predict_proba(X)

    predict_proba.__doc__ = BasePMLClassifier.predict_proba.__doc__

    def predict(self, X: Any) -> NDArray[Any]:
        if self._has_own("predict") and not is_dask(X):
            return self._call("predict", self._validate_features(X, reset=False)).astype(np.int64)
        return super().predict(X)

    predict.__doc__ = BasePMLClassifier.predict.__doc__

    def _has_own(self, method: str) -> bool:
        check_is_fitted(self)
        return self.threshold == "auto" and self._layout == "indicator" and hasattr(self.estimator_, method)

    def _call(self, method: str, X: Any) -> NDArray[Any]:
        """Return what a method of the estimator returns, as an n×c matrix."""
        values = getattr(self.estimator_, method)(X)
        if method == "predict_proba" and not self._is_ours:
            values = _probabilities(values, self.estimator_.classes_, n_labels=len(self.classes_))
        return np.asarray(values).reshape(X.shape[0], len(self.classes_))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inside = CandidateRidge() if self.estimator is None else self.estimator
        tags.input_tags.sparse = get_tags(inside).input_tags.sparse
        return tags


def true_labels(truth: Any, candidates: EncodedLabels) -> EncodedLabels:
    """Order true labels like the columns of the candidates; raise if one is not a candidate of its row."""
    given = encode_labels(truth)
    names, n = candidates.classes.tolist(), len(candidates.candidates)
    if len(given.candidates) != n:
        raise ValueError(f"truth has {len(given.candidates)} rows, but y has {n}.")
    if not given.named and given.candidates.shape[1] != len(names):
        raise ValueError(f"truth has {given.candidates.shape[1]} labels, but y has {len(names)}.")
    column = {name: index for index, name in enumerate(names)}
    matrix = np.zeros_like(candidates.candidates)
    for index, name in enumerate(given.classes.tolist() if given.named else names):
        is_true = given.candidates[:, index]
        allowed = candidates.candidates[:, column[name]] if name in column else np.zeros_like(is_true)
        outside = np.flatnonzero(is_true > allowed)
        if len(outside):
            raise ValueError(
                f"truth says that row {outside[0]} has label {name!r}, but y does not have it among the candidates of "
                f"that row; every true label must be a candidate."
            )
        if name in column:
            matrix[:, column[name]] = is_true
    return replace(candidates, candidates=matrix)


def _probabilities(values: Any, classes: Any, *, n_labels: int) -> NDArray[Any]:
    """Return the probability of each label from any of scikit-learn's forms of ``predict_proba``.

    Several labels are a matrix with one column per label, or a list of matrices; these, and the matrix of a single
    label, have a column for 0 and one for 1, unless training had only one of the two.
    """
    if not isinstance(values, list):
        if n_labels > 1:
            return np.asarray(values)
        values, classes = [values], [classes]
    return np.column_stack(
        [
            label[:, 1] if len(seen) == 2 else np.full(len(label), float(seen[0]))
            for label, seen in zip(values, classes, strict=True)
        ]
    )
