"""The one front door: every method of the library is a :class:`BasePMLClassifier`."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from skpml._labels import EncodedLabels, encode_labels
from skpml._threshold import automatic_threshold, non_candidate_threshold
from skpml._validation import check_finite, check_occupied
from skpml.views._gathering import (
    Columns,
    FeatureNames,
    column_groups,
    is_views,
    named_views,
    stack_views,
    view_feature_names,
    views_in_fitted_order,
)

__all__ = ["BasePMLClassifier"]

_DTYPES = (np.float64, np.float32)
# Steepness of the map from scores to [0, 1]: a score at the level of clear negatives maps to 0.018, its mirror
# image above the threshold to 0.982.
_STEEPNESS = 8.0


class BasePMLClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Base of all partial multi-label classifiers.

    Validates the input, encodes the labels, calls :meth:`_fit`, and turns scores into decisions. A method implements

    * ``_fit(X, Y)``: learn from validated features and a 0/1 candidate matrix in the dtype of X; set
      ``confidences_`` (n×c, zero outside the candidates) where the method has them; return the scores of these rows
      where they are at hand, else None;
    * ``_scores(X)``: real-valued scores, n×c, larger for more plausible labels.

    and takes ``threshold``, ``empty_rows`` and ``empty_labels`` as parameters. ``threshold`` is a number or the name of a
    rule that needs no true label: ``"auto"`` (:func:`skpml._threshold.automatic_threshold`) or ``"non-candidates"``
    (:func:`skpml._threshold.non_candidate_threshold`). An iterative method reports its course through :meth:`_record`.

    A method that sets ``_scores_are_probabilities`` says that its scores are the probabilities of labels to be true, and
    :meth:`predict_proba` returns them as they are.

    A method that sets ``_takes_views`` also takes a list or dict of matrices, and ``views``, groups of columns of one
    matrix, as a parameter. It sees them as one matrix X, and finds in ``_view_columns`` the columns of each.

    A one-dimensional y (one class a row) is accepted as the degenerate case: each row's only candidate is its class, and
    ``predict`` returns the class with the highest score.
    """

    threshold: float | str
    empty_rows: str
    empty_labels: str

    _threshold_rules: tuple[str, ...] = ("auto", "non-candidates")
    _takes_views: bool = False
    _scores_are_probabilities: bool = False
    # Of views given as several matrices; None after a fit to one matrix.
    _view_features: FeatureNames | None
    _view_columns: Columns

    @abstractmethod
    def _fit(self, X: Any, Y: NDArray[Any]) -> NDArray[Any] | None: ...

    @abstractmethod
    def _scores(self, X: Any) -> NDArray[Any]: ...

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows and their candidate labels.

        Parameters
        ----------
        X : array, data frame or scipy sparse matrix of shape (n, d)
            Or several of them, with the same rows, as a list or as a dict by name, for methods that take views.
        y : (n, c) matrix of 0 and 1 (array, sparse, data frame), list of n label sets, or n classes
            The candidates of each row: every true label is among them.

        Returns
        -------
        self
        """
        self._check_threshold()
        labels = encode_labels(y)
        X = self._validate_features(X, reset=True)
        if X.shape[0] != labels.candidates.shape[0]:
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {X.shape[0]} rows, "
                f"y has {labels.candidates.shape[0]}."
            )
        if X.shape[0] < 2:
            raise ValueError(
                "X has 1 sample (n_samples = 1); at least two rows are needed to learn anything."
            )
        if labels.candidates.shape[1] < 1:
            raise ValueError("y has no labels; at least one is needed.")
        check_occupied(
            labels.candidates, labels.classes, empty_rows=self.empty_rows, empty_labels=self.empty_labels
        )
        Y = labels.candidates.astype(X.dtype)
        self.classes_ = labels.classes
        self._layout = labels.layout
        scores = self._fit(X, Y)
        if isinstance(self.threshold, str):
            self._estimate_threshold(self._scores(X) if scores is None else scores, labels.candidates)
        else:
            self.threshold_, self._probability_width = float(self.threshold), 1.0
        return self

    def _validate_features(self, X: Any, *, reset: bool) -> Any:
        if is_views(X):
            X = self._side_by_side(X, reset=reset)
        elif reset:
            self._view_features = None
        elif getattr(self, "_view_features", None) is not None:
            raise ValueError(
                f"{type(self).__name__} was fitted on {len(self._view_columns)} views, but X is one matrix; "
                "give the same views."
            )
        X = validate_data(self, X, accept_sparse="csr", dtype=_DTYPES, reset=reset, ensure_all_finite=False)
        check_finite(X, getattr(self, "feature_names_in_", None))
        if reset and self._takes_views and self._view_features is None:
            names = getattr(self, "feature_names_in_", None)
            self._view_columns = column_groups(getattr(self, "views", None), X.shape[1], names)
        return X

    def _side_by_side(self, X: Any, *, reset: bool) -> Any:
        """Views as one matrix; remembers their names, columns and features, or asks for the same ones."""
        kind, name = f"a {type(X).__name__} of {len(X)} views", type(self).__name__
        if not self._takes_views:
            raise ValueError(
                f"{name} takes one matrix of features, but X is {kind}: put them side by side, or use a method that "
                "takes several views."
            )
        if not reset:
            if self._view_features is None:
                raise ValueError(f"{name} was fitted on one matrix, but X is {kind}; put them side by side.")
            return stack_views(views_in_fitted_order(X, self._view_columns, self._view_features))[0]
        if getattr(self, "views", None) is not None:
            raise ValueError(f"views groups the columns of one matrix, but X is {kind}; leave views at None.")
        views = named_views(X)
        stacked, self._view_columns = stack_views(views)
        self._view_features = view_feature_names(views)
        return stacked

    def _check_threshold(self) -> None:
        given = self.threshold
        if isinstance(given, str) and given in self._threshold_rules:
            return
        if not isinstance(given, Real) or isinstance(given, bool) or not np.isfinite(given):
            rules = ", ".join(f'"{rule}"' for rule in self._threshold_rules)
            raise ValueError(f"threshold must be {rules} or a finite number, got {given!r}.")

    def _estimate_threshold(self, scores: NDArray[Any], candidates: NDArray[np.uint8]) -> None:
        """Set ``threshold_`` by the rule named in ``threshold``, and the width of the map to probabilities."""
        if self.threshold == "non-candidates":
            self.threshold_, negative_level = non_candidate_threshold(scores, candidates)
        else:
            self.threshold_, negative_level = automatic_threshold(scores, candidates, self._targets())
        # Wide enough that the training scores keep their order as floating-point numbers near 0 and 1.
        reach = float(np.abs(scores - self.threshold_).max())
        self._probability_width = max(2 * (self.threshold_ - negative_level), reach / 2, 1e-3)

    def _targets(self) -> NDArray[Any] | None:
        """What the scores were fitted to (n×c), for the automatic threshold; None is the candidates themselves."""
        return getattr(self, "confidences_", None)

    def _record(self, history: Mapping[str, Any], *, converged: bool) -> None:
        """Set ``history_``, ``n_iter_`` and ``converged_``; warn where ``max_iter`` was hit before convergence.

        Parameters
        ----------
        history : mapping of name to sequence
            A value for every iteration; all sequences have the same length.
        converged : bool
        """
        self.history_ = {name: np.asarray(values) for name, values in history.items()}
        self.n_iter_ = len(next(iter(self.history_.values())))
        self.converged_ = bool(converged)
        limit = getattr(self, "max_iter", None)
        if not converged and self.n_iter_ == limit:
            warnings.warn(
                f"{type(self).__name__} did not converge within max_iter={limit} iterations; "
                "increase max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _checked_scores(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        return self._scores(self._validate_features(X, reset=False))

    @property
    def _is_binary(self) -> bool:
        return self._layout == "classes" and len(self.classes_) == 2

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Scores of each label; larger is more plausible.

        Returns
        -------
        ndarray of shape (n, c)
            Or (n,) where y had one of two classes a row: the second class's score less the first's.
        """
        scores = self._checked_scores(X)
        return scores[:, 1] - scores[:, 0] if self._is_binary else scores

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Scores mapped to [0, 1], strictly increasing for each label; above ½ exactly where ``predict`` says yes.

        A logistic curve through the threshold t: ``1 / (1 + exp(−8 (f − t) / s))`` for the score f. With an estimated
        threshold, s is twice the distance from the level of clear negatives to t, or half the distance of the farthest
        training score, whichever is larger; with a threshold given as a number, s is 1. It orders and separates labels;
        it is not calibrated. Where y had one class a row, the softmax of 8 f: each row sums to 1. A method whose scores
        are probabilities of labels to be true returns these instead, but for one class a row.

        Returns
        -------
        ndarray of shape (n, c)
        """
        scores = self._checked_scores(X)
        if self._layout == "classes":
            return softmax(_STEEPNESS * scores, axis=1)
        if self._scores_are_probabilities:
            return scores
        centred = (scores - self.threshold_) / self._probability_width
        return expit(_STEEPNESS * centred).astype(scores.dtype, copy=False)

    def predict(self, X: Any) -> NDArray[Any]:
        """Decisions: a 0/1 matrix in the order of ``classes_``, or one class a row where y had that form."""
        scores = self._checked_scores(X)
        if self._layout == "classes":
            return self.classes_[scores.argmax(axis=1)]
        return (scores > self.threshold_).astype(np.int64)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows whose whole label set is predicted exactly (scikit-learn's ``accuracy_score``).

        Strict for many labels; :mod:`skpml.metrics` has the measures of the field.
        """
        predicted = self.predict(X)
        if self._layout == "classes":
            return float(accuracy_score(y, predicted, sample_weight=sample_weight))
        given = encode_labels(y)
        truth = self._in_fitted_order(given)
        check_consistent_length(predicted, truth)
        return float(accuracy_score(truth, predicted, sample_weight=sample_weight))

    def _in_fitted_order(self, labels: EncodedLabels) -> NDArray[Any]:
        """Columns of a label matrix in the order of ``classes_``: by name where there are names, else as they stand."""
        matrix, names = labels.candidates, labels.classes
        if not labels.named:
            if matrix.shape[1] != len(self.classes_):
                raise ValueError(
                    f"y has {matrix.shape[1]} labels, but the model was fitted on {len(self.classes_)}."
                )
            return matrix
        column = {name: index for index, name in enumerate(self.classes_.tolist())}
        unknown = [name for name in names.tolist() if name not in column]
        if unknown:
            raise ValueError(f"y has labels the model was not fitted on: {unknown[:5]}.")
        ordered = np.zeros((matrix.shape[0], len(self.classes_)), matrix.dtype)
        ordered[:, [column[name] for name in names.tolist()]] = matrix
        return ordered

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        return tags
