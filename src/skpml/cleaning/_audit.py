"""The audit: the confidence of each tag, which tags to check first, and how many of each label are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import rankdata
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils import Bunch

from skpml._validation import EncodedLabels, encode_labels, is_views
from skpml.cleaning._batch import Question, propose_batch, random_order
from skpml.cleaning._judging import (
    ASK,
    DROP,
    KEEP,
    MAX_ROWS,
    Floats,
    Progress,
    Reason,
    WrongCounts,
    benefit,
    check_thresholds,
    count_wrong,
    cross_fit,
    find_partners,
    find_reasons,
    is_count,
    judge,
    suggest_actions,
    train,
)
from skpml.likelihood import ENOUGH_CANDIDATES, is_auto
from skpml.registry import get_method

# With more rows than these, fits use fewer anchors and members, to end within minutes.
_LARGE = ((20_000, {"n_anchors": 1000, "n_members": 1}), (6_000, {"n_anchors": 1000, "n_members": 3}))
# Given probabilities are moved if the median of their log-odds is further from 0: a calibration reaches them then.
_FARTHEST_MEDIAN = 5.0
# Given log-odds are clipped this far beyond 0 and their median: a few far ones must not decide the calibration.
_FARTHEST = 12.0
# Standard errors by which given probabilities must put candidates before other rows: over all labels, and of each label.
_ERRORS_OF_ALL, _ERRORS_OF_EACH = 3.0, 2.0


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """A candidate that may be wrong.

    Parameters
    ----------
    row : int
        Row of the candidate.
    label : int
        Its label, by position.
    confidence : float
        Probability that it is true.
    action : {"drop", "ask"}
        What is suggested.
    reason : Reason
        Evidence; ``str(reason)`` is a sentence.
    """

    row: int
    label: int
    confidence: float
    action: str
    reason: Reason


@dataclass(frozen=True, kw_only=True)
class Audit:
    """Result of :func:`audit`.

    Parameters
    ----------
    confidences : ndarray of shape (n_rows, n_labels)
        Probability that each candidate is true; 0 elsewhere. The level is that of models that were not trained on the
        row; up to ``max_rows`` rows, the order is theirs and that of the model of all rows together.
    probabilities : ndarray of shape (n_rows, n_labels)
        Probability that each label is true, by models that were not trained on the row, from the features alone.
    actions : ndarray of str, shape (n_rows, n_labels)
        "keep", "drop" or "ask" for candidates, "" elsewhere.
    doubts : list of Doubt
        Candidates that are not simply kept, the most useful to check first.
    wrong : WrongCounts
        Estimated numbers of wrong candidates by label.
    batch : list of Question
        The next candidates to check: a random part first, then those where an answer helps most.
    partners : tuple of (str or None)
        For each label the one that is true more often than usual where the label is wrong; None if there is none.
    noise_rate : ndarray of shape (n_labels,)
        Estimated probability that a label which is not true is a candidate.
    noise_range : tuple of two ndarrays of shape (n_labels,)
        Least and largest noise rate that the candidates allow.
    label_names : tuple of str
        Names of the labels.
    method : estimator
        The unfitted estimator.
    model : estimator or None
        The estimator, fitted to all rows or to ``max_rows`` of them; None if the probabilities were given.
    random_state : int
        Seed of the audit.
    """

    confidences: Floats
    probabilities: Floats
    actions: NDArray[np.str_]
    doubts: list[Doubt]
    wrong: WrongCounts
    batch: list[Question]
    partners: tuple[str | None, ...]
    noise_rate: Floats
    noise_range: tuple[Floats, Floats]
    label_names: tuple[str, ...]
    method: Any
    model: Any
    random_state: int

    def clean_labels(self) -> NDArray[np.uint8]:
        """Remove the candidates to drop; those to ask about stay.

        Returns
        -------
        ndarray of uint8, shape (n_rows, n_labels)
            The remaining candidates.
        """
        return ((self.actions != "") & (self.actions != DROP)).astype(np.uint8)

    def train_model(self, X: Any, *, max_rows: int = MAX_ROWS) -> Any:
        """Train a model like that of the audit on the cleaned labels.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_features)
            The rows of the audit.
        max_rows : int, default=40000
            Train on at most this many rows, drawn at random.

        Returns
        -------
        estimator
            The fitted model.

        Raises
        ------
        ValueError
            If X is None.
        """
        if X is None:
            raise ValueError("train_model needs the features X of the rows, got None.")
        return train(self.method, X, self.clean_labels(), max_rows=max_rows, random_state=self.random_state)


def audit(
    X: Any = None,
    Y: Any = None,
    *,
    probabilities: Any = None,
    method: Any = "candidate-likelihood",
    label_names: Sequence[str] | None = None,
    n_folds: int = 5,
    drop_below: float = 0.25,
    keep_above: float = 0.75,
    budget: int | None = None,
    batch_size: int = 100,
    n_neighbors: int = 10,
    max_rows: int = MAX_ROWS,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Audit:
    """Estimate how likely each candidate label is true, and which ones to check.

    Parameters
    ----------
    X : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_features) or None, default=None
        Features. May be None if `probabilities` are given; reasons then do not count similar rows.
    Y : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels) or list of label sets
        Candidate labels; required.
    probabilities : {array-like, DataFrame} of shape (n_rows, n_labels) or None, default=None
        Out-of-fold probabilities of any model: each row scored by a model that was not trained on it. Their level is
        calibrated by a shift and a factor of their log-odds. No tag of a label is dropped without a person if rows that
        carry the label do not have higher probabilities than others, beyond chance. The columns of a data frame are
        matched by name if the labels have names. No model is fitted then.
    method : str or estimator, default="candidate-likelihood"
        Name of a method, or an unfitted estimator of this library.
    label_names : sequence of str or None, default=None
        Names of the labels; None takes those of Y, or "0", "1" and so on.
    n_folds : int, default=5
        Number of folds; each is scored by a model of the others.
    drop_below : float, default=0.25
        See :func:`suggest_actions`. Tags are never dropped without a person if fewer than ten rows have the label, or if
        they are more likely right than wrong under the least noise that the candidates allow.
    keep_above : float, default=0.75
        See :func:`suggest_actions`.
    budget : int or None, default=None
        See :func:`suggest_actions`.
    batch_size : int, default=100
        Number of candidates to check next.
    n_neighbors : int, default=10
        Number of similar rows that a reason counts.
    max_rows : int, default=40000
        Fit each model to at most this many rows, drawn at random; all rows are judged.
    random_state : int, default=0
        Seed of the folds, the drawn rows and, unless it has its own, of the method.
    progress : callable or None, default=None
        Called as ``progress(done, total, what)``.

    Returns
    -------
    Audit
        Confidences, actions, doubts and counts.

    Raises
    ------
    ValueError
        If Y is missing, thresholds cross, shapes or names do not match, or probabilities are not numbers from 0 to 1.
    """
    check_thresholds(drop_below=drop_below, keep_above=keep_above, budget=budget)
    if not is_count(n_neighbors) or n_neighbors < 1:
        raise ValueError(f"n_neighbors must be an integer of at least 1, got {n_neighbors!r}.")
    if Y is None:
        raise ValueError("audit needs the candidate labels Y, got None.")
    if is_views(X):
        raise ValueError("audit takes one matrix X; put the columns of the views side by side.")
    labels = encode_labels(Y)
    candidates = labels.candidates
    names = tuple(map(str, labels.classes)) if label_names is None else tuple(label_names)
    if len(names) != candidates.shape[1]:
        raise ValueError(f"label_names has {len(names)} names for {candidates.shape[1]} labels.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"The names of the labels must differ, but {twice!r} appears twice.")
    if X is None and probabilities is None:
        raise ValueError("audit needs features X or probabilities, got neither.")
    if X is not None:
        X = X if hasattr(X, "shape") else np.asarray(X)
        if X.shape[0] != len(candidates):
            raise ValueError(f"X has {X.shape[0]} rows, but Y has {len(candidates)}.")
    model = _make_model(method, len(candidates), random_state)
    whole: Any = None
    order = None
    undecided = candidates.sum(axis=0) < ENOUGH_CANDIDATES
    if probabilities is None:
        sizes = {"n_folds": n_folds, "max_rows": max_rows, "random_state": random_state}
        # Transformers inside models must return arrays.
        with config_context(transform_output="default"):
            whole, scores, order = cross_fit(model, X, candidates, progress=progress, **sizes)
    else:
        given = _match_columns(probabilities, labels, names, label_names)
        scores = _bound_probabilities(_check_probabilities(given, candidates.shape))
        undecided |= ~_find_informative(scores, candidates)
    known = not is_auto(getattr(whole, "noise_rate", "auto"))
    rates = getattr(whole, "noise_rate_", None) if known else None
    of_all = getattr(whole, "confidences_", None) if len(candidates) <= max_rows else None
    found = judge(scores, candidates, rates=rates, of_all=of_all, order=order)
    actions = np.full(candidates.shape, "", dtype="<U4")
    actions[candidates > 0] = suggest_actions(
        found.confidences[candidates > 0], drop_below=drop_below, keep_above=keep_above, budget=budget
    )
    actions[(actions == DROP) & ((found.at_least_noise > 0.5) | undecided)] = ASK if budget is None else KEEP
    options = {"n_neighbors": n_neighbors, "random_state": random_state}
    places = random_order(candidates, random_state)
    verified = np.zeros(candidates.shape, dtype=np.int8)
    return Audit(
        confidences=found.confidences,
        probabilities=found.probabilities,
        actions=actions,
        doubts=_find_doubts(X, candidates, actions, found, label_names=names, **options),
        wrong=count_wrong(found, candidates, unknown=undecided),
        batch=propose_batch(places, verified, benefit(found.confidences), size=batch_size),
        partners=find_partners(found.confidences, candidates, names),
        noise_rate=found.noise_rate,
        noise_range=found.noise_range,
        label_names=names,
        method=model,
        model=whole,
        random_state=random_state,
    )


def _find_doubts(
    X: Any, Y: NDArray[Any], actions: NDArray[np.str_], found: Bunch, **options: Any
) -> list[Doubt]:
    """Return the candidates that are not simply kept, the most useful to check first."""
    sure = found.confidences
    rows, columns = np.nonzero((actions == DROP) | (actions == ASK))
    order = np.argsort(-benefit(sure[rows, columns]), kind="stable")
    rows, columns = rows[order], columns[order]
    options |= {"probabilities": found.probabilities, "confidences": sure}
    cells = zip(rows.tolist(), columns.tolist(), find_reasons(X, Y, rows, columns, **options), strict=True)
    return [
        Doubt(row=i, label=j, confidence=float(sure[i, j]), action=str(actions[i, j]), reason=reason)
        for i, j, reason in cells
    ]


def _match_columns(
    given: Any, labels: EncodedLabels, names: tuple[str, ...], label_names: Sequence[str] | None
) -> Any:
    """Return a data frame of probabilities with its columns in the order of the labels, if these have names."""
    if not hasattr(given, "columns") or not (labels.named or label_names is not None):
        return given
    columns = [str(column) for column in given.columns]
    for known in (names, tuple(map(str, labels.classes))):
        if sorted(columns) == sorted(known):
            return given.iloc[:, [columns.index(name) for name in known]]
    unknown, missing = sorted(set(columns) - set(names)), sorted(set(names) - set(columns))
    raise ValueError(
        f"The columns of probabilities must be the labels: {unknown[:5]} are not labels, {missing[:5]} are missing."
    )


def _find_informative(scores: Floats, Y: NDArray[Any]) -> NDArray[np.bool_]:
    """Return for which labels the scores put rows that carry the label before others, more than by chance.

    Otherwise only the frequencies of labels are left to explain, which noise in proportion to them does, and all tags
    would look wrong. The statistic is that of the rank-sum test.
    """
    n, carried = len(Y), (Y > 0).sum(axis=0)
    surplus = np.sum(rankdata(scores, axis=0) * (Y > 0), axis=0) - carried * (n + 1) / 2
    variance = carried * (n - carried) * (n + 1) / 12
    enough = surplus.sum() > _ERRORS_OF_ALL * np.sqrt(variance.sum())
    return np.asarray(enough & (surplus > _ERRORS_OF_EACH * np.sqrt(variance)))


def _bound_probabilities(given: Floats) -> Floats:
    """Return given probabilities with log-odds within a range in which a calibration reaches every level.

    Zeros and ones get the nearest other probability, or that of one case among n + 2 if this is more extreme.
    """
    least = 1 / (len(given) + 2)
    low, high = given[given > 0], given[given < 1]
    low, high = low.min(initial=least), high.max(initial=1 - least)
    log_odds = np.asarray(logit(np.clip(given, low, high)))
    middle = float(np.median(log_odds))
    moved = float(np.clip(middle, -_FARTHEST_MEDIAN, _FARTHEST_MEDIAN))
    bounds = min(moved, 0.0) - _FARTHEST, max(moved, 0.0) + _FARTHEST
    return np.asarray(expit(np.clip(log_odds - middle + moved, *bounds)))


def _check_probabilities(given: Any, shape: tuple[int, ...]) -> Floats:
    try:
        found = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"probabilities must be numbers, got {type(given).__name__}.") from None
    if found.shape != shape:
        raise ValueError(f"probabilities must have the shape {shape} of Y, got {found.shape}.")
    wrong = np.argwhere(~((found >= 0) & (found <= 1)))
    if len(wrong):
        row, label = wrong[0].tolist()
        raise ValueError(
            f"probabilities must be from 0 to 1, got {found[row, label]} in row {row}, label {label} "
            f"({len(wrong)} in all)."
        )
    return found


def _make_model(method: Any, n_rows: int, random_state: int) -> Any:
    """Return an unfitted estimator that accepts empty rows and labels, which folds and cleaning may leave."""
    model = get_method(method)() if isinstance(method, str) else clone(method)
    parameters = model.get_params()
    if "on_empty" in parameters:
        model.set_params(on_empty="ignore")
    if "random_state" in parameters and parameters["random_state"] is None:
        model.set_params(random_state=random_state)
    if isinstance(method, str) and get_method(method).name == "candidate-likelihood":
        model.set_params(**next((modest for limit, modest in _LARGE if n_rows > limit), {}))
    return model
