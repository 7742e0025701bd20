"""The base class of all methods: input checks, thresholds, decisions, probabilities.

The threshold needs no true label. With false candidates at rate ρ, scores fitted to candidates estimate ``η + (1 − η)ρ``
instead of the probability η that the label is true: clear negatives score near ρ, and a fixed cut at ½ predicts almost
every label when the noise is high. Methods that shrink their confidences lower the upper end as well. The rule "auto"
estimates both ends from the training scores and cuts half way, which is where η = ½:

* negative level: most cells of a label matrix are clear negatives, so it is the lower quartile of the scores;
* positive level: the mean confidence of the quarter of the candidates that score highest (1 without confidences).

Where the scores of a method are probabilities, "auto" is ½. The rule "non-candidates" of several published methods cuts
at the mean over rows of the highest score of a non-candidate, which is a certain negative.
"""

from __future__ import annotations

import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from inspect import get_annotations
from types import FrameType
from typing import Any, Literal, Self, get_args, get_origin

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from skpml._dask_rows import DaskRows, as_dask_array, drop_empty_partitions
from skpml._docstrings import fill_docstring
from skpml._validation import (
    Columns,
    EncodedLabels,
    FeatureNames,
    check_finite,
    check_occupied,
    check_parameters,
    check_weights,
    column_groups,
    encode_labels,
    is_dask,
    is_number,
    is_views,
    named_views,
    stack_views,
    view_feature_names,
    views_in_fitted_order,
)

__all__ = ["BasePMLClassifier", "MethodFacts", "check_parameters"]

Kind = Literal["flagship", "own", "baseline", "reference", "external"]
Source = Literal["release", "paper", "abstract"]

_DTYPES = (np.float64, np.float32)
# Steepness of the map from scores to [0, 1]: a score at the level of clear negatives maps to 0.018, its mirror
# image above the threshold to 0.982.
_STEEPNESS = 8.0
_NEGATIVE_QUANTILE = 0.25
# Share of the candidates, those with the highest scores, that the positive level is estimated from.
_SURE_SHARE = 0.25


@dataclass(frozen=True, kw_only=True)
class MethodFacts:
    """What a program needs to know about a method; each class has one as ``_facts``.

    Parameters
    ----------
    name : str
        For programs and the command line, such as ``"pml-ni"``.
    title : str
        For people.
    kind : {"flagship", "own", "baseline", "reference", "external"}
        "own" was made for this library and is not published elsewhere. A reference learner takes every candidate for
        true: the floor that a method has to beat. "external" is not part of this library.
    summary : str
        The idea, in half a line.
    inductive : bool
        Whether it scores rows that it was not fitted on.
    confidences : bool
        Whether it has a confidence for each candidate of a training row (``confidences_``).
    dense : bool
        Whether it makes a dense copy of sparse features. All methods accept sparse features.
    nonlinear : bool
        Whether its scores are a nonlinear function of the features. The threshold rule "relative" of P-LENFN and NLR,
        which shifts all labels of a row alike, does not count.
    random : bool
        Whether it draws at random, so that ``random_state`` matters.
    source : {"release", "paper", "abstract"} or None
        What the implementation follows: formulas of the authors' own release, those of the paper, or a reconstruction
        from the abstract. None for textbook learners and unpublished methods.
    needs : str or None
        Extra of the package that must be installed, such as "torch".
    year : int or None
        Of publication.
    reference : str
        Where it was published.
    comparison_threshold : float or str
        The ``threshold`` for comparisons of methods: the rule of its paper, or "auto".
    parameters : dict
        Parameters that make this variant of the class.
    """

    name: str = ""
    title: str = ""
    kind: Kind = "external"
    summary: str = ""
    inductive: bool = True
    confidences: bool = False
    dense: bool = True
    nonlinear: bool = False
    random: bool = False
    source: Source | None = None
    needs: str | None = None
    year: int | None = None
    reference: str = ""
    comparison_threshold: float | str = "auto"
    parameters: Mapping[str, Any] = field(default_factory=dict, repr=False, hash=False)


@fill_docstring
class BasePMLClassifier(ClassifierMixin, BaseEstimator, ABC):
    """Base of all partial multi-label classifiers.

    :meth:`fit` is final: it checks parameters and data, encodes the labels and calls ``_fit``. A method implements

    * ``_check_parameters()``: raise ValueError for bad parameters; called first, before the data are read. By default
      the fields of a dataclass are checked by their types;
    * ``_fit(X, Y)``: learn from validated features and a 0/1 candidate matrix in the dtype of X; set ``confidences_``
      (n×c, zero outside the candidates) if the method has them; return the scores of these rows if they are known, else
      None;
    * ``_scores(X)``: real-valued scores, n×c, larger for more plausible labels.

    Every method has the parameters ``threshold`` and ``on_empty``. An iterative method reports its history through
    ``_record``. Class attributes describe it:

    * ``_facts``: a :class:`MethodFacts`; ``_variants``: facts of other settings of the class that have their own name;
    * ``_scores_are_probabilities``: scores are probabilities that the label is true; :meth:`predict_proba` returns them;
    * ``_takes_views``: X may be a list or dict of matrices. The method then has the parameter ``views``, groups of
      columns of one matrix; it receives one matrix X, and ``_view_columns`` holds the columns of each view;
    * ``_takes_dask``: a fit to a dask array receives :class:`~skpml._dask_rows.DaskRows`, whose rows stay on the workers.
      Other methods receive an array in memory.

    A one-dimensional y (one class per row) is the degenerate case: the only candidate of a row is its class, and
    ``predict`` returns the class with the highest score.
    """

    threshold: float | str
    on_empty: str

    _facts: MethodFacts = MethodFacts()
    _variants: tuple[MethodFacts, ...] = ()
    _threshold_rules: tuple[str, ...] = ("auto", "non-candidates")
    _takes_views: bool = False
    _takes_dask: bool = False
    _scores_are_probabilities: bool = False

    def _check_parameters(self) -> None:
        """Raise ValueError for a bad parameter; the default checks the fields of a dataclass by their types.

        A ``float`` must be finite and at least 0, an ``int`` at least 1, and a ``Literal`` one of its values.
        """
        types: dict[str, Any] = {}
        for owner in reversed(type(self).__mro__):
            if "__dataclass_fields__" in vars(owner):
                types |= _resolve_annotations(owner)
        check_parameters(
            self,
            weights=[name for name, declared in types.items() if declared is float],
            counts=[name for name, declared in types.items() if declared is int],
            optional_counts=[name for name, declared in types.items() if declared == int | None],
            choices={name: get_args(kind) for name, kind in types.items() if get_origin(kind) is Literal},
        )

    @abstractmethod
    def _fit(self, X: Any, Y: NDArray[Any]) -> NDArray[Any] | None: ...

    @abstractmethod
    def _scores(self, X: Any) -> NDArray[Any]: ...

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows and their candidate labels.

        Methods implement ``_fit`` instead of overriding this one.

        Parameters
        ----------
        X : array, data frame or scipy sparse matrix of shape (n, d)
            Or several of them, with the same rows, as a list or as a dict by name, for methods that take views.
        y : (n, c) matrix of 0 and 1 (array, sparse, data frame), list of n label sets, or n classes
            The candidates of each row: every true label is among them.

        Returns
        -------
        self : estimator
            The fitted estimator.
        """
        return self._fit_weighted(X, y, None)

    def _fit_weighted(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Check everything, fit, and find the threshold; weights are for methods whose ``fit`` takes them."""
        self._check_threshold()
        self._check_parameters()
        labels = encode_labels(y.compute() if is_dask(y) else y)
        candidates = labels.candidates
        X = self._validate_features(X, reset=True)
        _check_lengths(X, labels)
        if isinstance(X, DaskRows) and sample_weight is not None:
            raise ValueError("sample_weight needs X in memory: pass X.compute() instead of a dask array.")
        if X.shape[0] < 2:
            raise ValueError("X has 1 sample (n_samples = 1); at least two rows are needed.")
        if candidates.shape[1] < 1:
            raise ValueError("y has no labels; at least one is needed.")
        self._weights: NDArray[np.float64] | None = None
        row_numbers = None
        if sample_weight is not None:
            # A row of weight 0 is as good as absent.
            weights = check_weights(sample_weight, X.shape[0])
            row_numbers = np.flatnonzero(weights)
            X, candidates, self._weights = X[row_numbers], candidates[row_numbers], weights[row_numbers]
        check_occupied(candidates, labels.classes, on_empty=self.on_empty, row_numbers=row_numbers)
        self.classes_ = labels.classes
        self._layout = labels.layout
        # Feature maps are transformers, which may be configured to return data frames.
        with config_context(transform_output="default"):
            scores = self._fit(X, candidates.astype(X.dtype))
            if isinstance(self.threshold, str):
                self._estimate_threshold(self._scores(X) if scores is None else scores, candidates)
            else:
                self.threshold_, self._probability_width = float(self.threshold), 1.0
        del self._weights
        return self

    def _fit_batch(self, X: Any, y: Any, classes: Any) -> Self:
        """Learn from one more batch of rows; the first one decides about features and labels.

        ``_in_batches`` tells ``_fit`` to set ``_sums``, over all rows so far.
        """
        if not hasattr(self, "_sums") and hasattr(self, "coef_"):
            warnings.warn(
                "partial_fit begins anew: it only continues its own models, and this one was fitted as a whole.",
                UserWarning,
                stacklevel=3,
            )
        self._in_batches = True
        try:
            return self._learn_batch(X, y, classes)
        finally:
            del self._in_batches

    def _forget_batches(self) -> None:
        for name in ("_sums", "_n_rows_seen"):
            self.__dict__.pop(name, None)

    def _learn_batch(self, X: Any, y: Any, classes: Any) -> Self:
        self._check_threshold()
        self._check_parameters()
        labels = encode_labels(y.compute() if is_dask(y) else y)
        seen: int = getattr(self, "_n_rows_seen", 0)
        X = self._validate_features(self._bring_rows(X), reset=not seen)
        _check_lengths(X, labels)
        named = None if classes is None else np.unique(np.asarray(classes))
        if not seen:
            self.classes_ = labels.classes if named is None or not labels.named else named
            self._layout = labels.layout
        if named is not None and not np.array_equal(named, np.unique(self.classes_)):
            raise ValueError(f"classes are {named[:5]}, but the labels of y are {self.classes_[:5]}.")
        if labels.layout != self._layout:
            raise ValueError(f"y are {labels.layout}, but those of the first batch were {self._layout}.")
        candidates = self._in_fitted_order(labels)
        check_occupied(candidates, self.classes_, on_empty=self.on_empty, rows_only=True)
        if not seen and self.on_empty != "ignore":
            self._warn_of_late_labels(candidates)
        self._weights = None
        with config_context(transform_output="default"):
            scores = self._fit(X, candidates.astype(X.dtype))
            if isinstance(self.threshold, str):
                before = (self.threshold_, self._probability_width) if seen else None
                self._estimate_threshold(self._scores(X) if scores is None else scores, candidates)
                if before is not None:
                    share = len(candidates) / (seen + len(candidates))
                    self.threshold_ += (1 - share) * (before[0] - self.threshold_)
                    self._probability_width += (1 - share) * (before[1] - self._probability_width)
            else:
                self.threshold_, self._probability_width = float(self.threshold), 1.0
        del self._weights
        self._n_rows_seen = seen + len(candidates)
        return self

    def _warn_of_late_labels(self, candidates: NDArray[np.uint8]) -> None:
        late = self.classes_[~candidates.any(axis=0)]
        if len(late):
            names = ", ".join(map(str, late[:5])) + (", …" if len(late) > 5 else "")
            warnings.warn(
                f"{len(late)} of {len(self.classes_)} labels are not a candidate of any row of the first batch ({names})."
                " Later batches can rank rows by such a label, but it will be predicted too rarely: begin with a batch "
                "in which every label occurs.",
                UserWarning,
                stacklevel=self._level_of_caller(),
            )

    def _validate_features(self, X: Any, *, reset: bool) -> Any:
        if is_dask(X):
            if self._takes_dask and reset:
                return self._validate_dask(X)
            X = self._bring_rows(X)
        if is_views(X):
            X = self._side_by_side(X, reset=reset)
        elif reset:
            # Of views given as several matrices.
            self._view_features: FeatureNames | None = None
        elif getattr(self, "_view_features", None) is not None:
            n_views = len(self._view_columns)
            raise ValueError(
                f"{type(self).__name__} was fitted on {n_views} views, but X is one matrix; give the same views."
            )
        X = validate_data(self, X, accept_sparse="csr", dtype=_DTYPES, reset=reset, ensure_all_finite=False)
        names = getattr(self, "feature_names_in_", None)
        check_finite(X, names)
        if reset and self._takes_views and self._view_features is None:
            self._view_columns: Columns = column_groups(getattr(self, "views", None), X.shape[1], names)
        return X

    def _bring_rows(self, X: Any) -> Any:
        """Return rows in memory, and warn if they were those of a dask array or data frame."""
        if not is_dask(X):
            return X
        warnings.warn(
            f"{type(self).__name__} brings all rows of X to this process. A fit of PMLMA, CandidateLikelihood or "
            "CandidateRidge keeps them on the workers of Dask, but no partial_fit does.",
            UserWarning,
            stacklevel=self._level_of_caller(),
        )
        return X.compute()

    def _validate_dask(self, X: Any) -> DaskRows:
        """Check the rows of a dask array or data frame where they are, for a fit."""
        if getattr(self, "views", None) is not None or getattr(self, "device", None) is not None:
            raise ValueError("views and device need X in memory: pass X.compute() instead of a dask array.")
        names, X = getattr(X, "columns", None), as_dask_array(X)
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array, got {X.ndim}D array instead.")
        if not isinstance(X._meta, np.ndarray):
            raise TypeError(
                f"A fit needs NumPy arrays as blocks of the dask array X, but they are {type(X._meta).__name__}: pass "
                "X.map_blocks(lambda block: block.toarray(), dtype=X.dtype) for sparse ones, or X.compute() if it fits "
                "in memory."
            )
        if X.dtype.kind not in "biuf":
            raise ValueError(f"X should hold numbers, but the type of its values is {X.dtype}.")
        X = drop_empty_partitions(X if X.dtype in _DTYPES else X.astype(np.float64))
        # One row of zeros with the columns of X sets what scikit-learn remembers of them.
        first = _add_names(np.zeros((1, X.shape[1]), X.dtype), names)
        validate_data(self, first, dtype=_DTYPES, reset=True)
        rows = DaskRows(X)
        if not np.isfinite(float(X.sum().compute())):
            for part in rows.slices_of_partitions():
                check_finite(rows[part], getattr(self, "feature_names_in_", None), first_row=part.start)
        if self._takes_views:
            self._view_features = None
            self._view_columns = column_groups(None, X.shape[1], None)
        return rows

    def _by_partition(self, method: str, X: Any) -> Any:
        """Apply a method to every partition of a dask array or data frame, lazily; the result is a dask array."""
        check_is_fitted(self)
        names, array = getattr(X, "columns", None), as_dask_array(X)

        first = _add_names(np.zeros((1, array.shape[1]), array.dtype), names)
        example = np.asarray(getattr(self, method)(first))

        def work(rows: Any) -> NDArray[Any]:
            # Blocks may be sparse matrices, which have no length.
            if not rows.shape[0]:
                return np.empty((0, *example.shape[1:]), example.dtype)
            return np.asarray(getattr(self, method)(_add_names(rows, names)))

        chunks = (array.chunks[0], *((length,) for length in example.shape[1:]))
        dropped = [1] if example.ndim == 1 else None
        return array.map_blocks(work, dtype=example.dtype, chunks=chunks, drop_axis=dropped)

    def _side_by_side(self, X: Any, *, reset: bool) -> Any:
        """Join views into one matrix; store their names, columns and features, or require the same ones."""
        kind, name = f"a {type(X).__name__} of {len(X)} views", type(self).__name__
        if not self._takes_views:
            raise ValueError(f"{name} takes one matrix of features, but X is {kind}: put them side by side.")
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
        named = isinstance(self.threshold, str) and self.threshold in self._threshold_rules
        if not named and not is_number(self.threshold):
            rules = ", ".join(f'"{rule}"' for rule in self._threshold_rules)
            raise ValueError(f"threshold must be {rules} or a finite number, got {self.threshold!r}.")

    def _estimate_threshold(self, scores: NDArray[Any], candidates: NDArray[np.uint8]) -> None:
        """Set ``threshold_`` by the rule named in ``threshold``, and the width of the map to probabilities."""
        if self.threshold == "auto" and self._scores_are_probabilities:
            self.threshold_, self._probability_width = 0.5, 1.0
            return
        if self.threshold == "non-candidates":
            self.threshold_, negative_level = non_candidate_threshold(scores, candidates, self._weights)
        else:
            targets = self._targets()
            self.threshold_, negative_level = automatic_threshold(scores, candidates, targets, self._weights)
        # Wide enough that the training scores keep their order as floating-point numbers near 0 and 1.
        reach = float(np.abs(scores - self.threshold_).max())
        self._probability_width = max(2 * (self.threshold_ - negative_level), reach / 2, 1e-3)

    def _targets(self) -> NDArray[Any] | None:
        """Return what the scores were fitted to (n×c), for the automatic threshold; None means the candidates."""
        return getattr(self, "confidences_", None)

    def _record(self, history: Mapping[str, Any], *, converged: bool) -> None:
        """Set ``history_``, ``n_iter_`` and ``converged_``; warn if ``max_iter`` was reached before convergence.

        ``history`` maps names to one value per iteration.
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
                stacklevel=self._level_of_caller(),
            )

    def _level_of_caller(self) -> int:
        """Return the ``stacklevel`` with which the calling method warns the caller of ``fit`` or ``partial_fit``.

        Methods call ``_record`` at different depths, so the outermost of them of this object is looked up.
        """
        level, found = 0, 1
        frame: FrameType | None = sys._getframe(1)
        while frame is not None:
            level += 1
            if frame.f_code.co_name in ("fit", "partial_fit") and frame.f_locals.get("self") is self:
                found = level + 1
            frame = frame.f_back
        return found

    def _checked_scores(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        with config_context(transform_output="default"):
            return self._scores(self._validate_features(X, reset=False))

    @property
    def _is_binary(self) -> bool:
        return self._layout == "classes" and len(self.classes_) == 2

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Compute the score of each label; larger is more plausible.

        %(new_rows)s

        Returns
        -------
        ndarray of shape (n, c)
            Or (n,) if y had one of two classes per row: the score of the second class minus that of the first.
        """
        if is_dask(X):
            return self._by_partition("decision_function", X)
        scores = self._checked_scores(X)
        if not self._is_binary:
            return scores
        # A function of what predict_proba returns, so that both give one order.
        scores = _normalize(scores) if self._scores_are_probabilities else scores
        return scores[:, 1] - scores[:, 0]

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Map scores to [0, 1], increasing for each label.

        Probabilities that labels are true are returned as they are, and ``predict`` returns 1 where they are above
        ``threshold_``; if y had one class per row, each row is divided by its sum. Other scores f go through a logistic
        curve at the threshold t, ``1 / (1 + exp(−8 (f − t) / s))``, which is above ½ exactly where ``predict`` returns 1:
        it orders and separates labels, but is not calibrated. With an estimated threshold, s is twice the distance from
        the level of clear negatives to t, or half the distance of the farthest training score, whichever is larger; with
        a threshold given as a number, s is 1. If y had one class per row, it is the softmax of 8 f.

        %(new_rows)s

        Returns
        -------
        ndarray of shape (n, c)
            Probabilities in the order of ``classes_``.
        """
        if is_dask(X):
            return self._by_partition("predict_proba", X)
        scores = self._checked_scores(X)
        classes = self._layout == "classes"
        if self._scores_are_probabilities:
            return _normalize(scores) if classes else scores
        if classes:
            return softmax(_STEEPNESS * scores, axis=1)
        centered = (scores - self.threshold_) / self._probability_width
        return expit(_STEEPNESS * centered).astype(scores.dtype, copy=False)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels: a 0/1 matrix in the order of ``classes_``, or classes if y had one class per row.

        %(new_rows)s

        Returns
        -------
        ndarray of shape (n, c) or (n,)
            1 where the score is above ``threshold_``.
        """
        if is_dask(X):
            return self._by_partition("predict", X)
        scores = self._checked_scores(X)
        if self._layout == "classes":
            return self.classes_[scores.argmax(axis=1)]
        return (scores > self.threshold_).astype(np.int64)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the share of rows whose whole label set is predicted exactly (``accuracy_score``).

        Strict if there are many labels; :mod:`skpml.metrics` has the usual measures.

        %(new_rows)s
        y : true labels, in one of the forms of :meth:`fit`
            Columns with names are matched by name.
        sample_weight : array of shape (n,) or None, default=None
            Weights of the rows.

        Returns
        -------
        float
            Between 0 and 1.
        """
        predicted = self.predict(X)
        if self._layout == "classes":
            return float(accuracy_score(y, predicted, sample_weight=sample_weight))
        truth = self._in_fitted_order(encode_labels(y))
        check_consistent_length(predicted, truth)
        return float(accuracy_score(truth, predicted, sample_weight=sample_weight))

    def _in_fitted_order(self, labels: EncodedLabels) -> NDArray[Any]:
        """Order the columns of a label matrix like ``classes_``: by name if there are names, else by position."""
        matrix, names = labels.candidates, labels.classes
        if not labels.named:
            if (n_labels := matrix.shape[1]) != len(self.classes_):
                raise ValueError(
                    f"y has {n_labels} labels, but the model was fitted on {len(self.classes_)}."
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


def _check_lengths(X: Any, labels: EncodedLabels) -> None:
    if X.shape[0] != len(labels.candidates):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {X.shape[0]} rows, "
            f"y has {len(labels.candidates)}."
        )


def _add_names(rows: NDArray[Any], names: Any) -> Any:
    """Return rows as a data frame with these column names; without names, as they are."""
    if names is None:
        return rows
    import pandas as pd

    return pd.DataFrame(rows, columns=names)


def _resolve_annotations(owner: type) -> dict[str, Any]:
    """Return the declared types of a class, without those that only a type checker can resolve."""
    types: dict[str, Any] = {}
    for name, declared in get_annotations(owner).items():
        if isinstance(declared, str):
            try:
                declared = eval(declared, vars(sys.modules[owner.__module__]), dict(vars(owner)))
            except (NameError, AttributeError):
                # Imported under TYPE_CHECKING.
                continue
        types[name] = declared
    return types


def _normalize(probabilities: NDArray[Any]) -> NDArray[Any]:
    """Divide each row by its sum; a row of zeros becomes uniform."""
    total = probabilities.sum(axis=1, keepdims=True)
    uniform = np.full_like(probabilities, 1 / probabilities.shape[1])
    return np.where(total > 0, probabilities / np.where(total > 0, total, 1), uniform)


def automatic_threshold(
    scores: NDArray[Any], candidates: NDArray[Any], confidences: Any = None, weights: Any = None
) -> tuple[float, float]:
    """Estimate the cut between negatives and positives, and the negative level, from training scores (n×c).

    ``confidences`` are what the scores were fitted to; None means the candidates. ``weights`` are those of the rows.
    """
    negative = _quantile(scores, _NEGATIVE_QUANTILE, weights)
    is_candidate = np.asarray(candidates) > 0
    positive = 1.0
    if confidences is not None and is_candidate.any():
        candidate_scores = scores[is_candidate]
        sure = candidate_scores >= np.quantile(candidate_scores, 1 - _SURE_SHARE)
        positive = float(confidences[is_candidate][sure].mean())
    if positive <= max(negative, 0.0):
        # All confidences are near 0: require as much as a sure candidate would have.
        positive = max(1.0, negative)
    return (negative + positive) / 2, negative


def non_candidate_threshold(
    scores: NDArray[Any], candidates: NDArray[Any], weights: Any = None
) -> tuple[float, float]:
    """Compute the mean over rows of the highest score of a non-candidate, and the negative level (n×c inputs).

    Rows whose labels are all candidates have no certain negative and are left out.
    """
    is_candidate = np.asarray(candidates) > 0
    has_negative = ~is_candidate.all(axis=1)
    if not has_negative.any():
        return automatic_threshold(scores, candidates, weights=weights)
    highest = np.where(is_candidate, -np.inf, scores)[has_negative].max(axis=1)
    shares = None if weights is None else weights[has_negative]
    return float(np.average(highest, weights=shares)), _quantile(scores, _NEGATIVE_QUANTILE, weights)


def _quantile(scores: NDArray[Any], share: float, weights: NDArray[Any] | None) -> float:
    """Compute a quantile of all cells; a row of weight 2 counts as two rows."""
    if weights is None:
        return float(np.quantile(scores, share))
    order = np.argsort(scores, axis=None)
    values, ends = scores.ravel()[order], np.cumsum(np.repeat(weights, scores.shape[1])[order])
    place = max(ends[-1] - 1, 0) * share
    low = np.floor(place)
    # Values at two places of the repeated sample; the tolerance is for sums that round.
    below, above = values[np.minimum(np.searchsorted(ends, [low + 1e-9, low + 1 + 1e-9]), len(values) - 1)]
    return float(below + (place - low) * (above - below))
