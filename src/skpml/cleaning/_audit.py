"""The audit: how far each tag is believed, which to look at first, and how many of each label are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skpml._validation import encode_labels, is_views
from skpml.cleaning._actions import ASK, DROP, KEEP, benefit, check_thresholds, suggest_actions
from skpml.cleaning._counting import WrongCounts, count_wrong
from skpml.cleaning._cross_fitting import MAX_ROWS, CrossFitted, Progress, cross_fit, train
from skpml.cleaning._partners import find_partners
from skpml.cleaning._reasons import Reason, find_reasons
from skpml.likelihood import ENOUGH_CANDIDATES
from skpml.registry import get_method

# With more rows than these a fit makes do with fewer anchors and members, to end within minutes.
_LARGE = ((20_000, {"n_anchors": 1000, "n_members": 1}), (6_000, {"n_anchors": 1000, "n_members": 3}))


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """A candidate that may be wrong.

    Attributes
    ----------
    row, label : int
    confidence : float
        Probability that it is true.
    action : {"keep", "drop", "ask"}
    reason : Reason
        ``str(reason)`` is a sentence.
    """

    row: int
    label: int
    confidence: float
    action: str
    reason: Reason


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What an audit has found.

    Attributes
    ----------
    confidences : (n, c)
        Probability of each candidate to be true; 0 elsewhere. The level is that of models that did not train on the row;
        up to ``max_rows`` rows, the order is theirs and that of the model of all rows together.
    actions : (n, c) of str
        "keep", "drop" or "ask" for candidates, "" elsewhere.
    doubts : list of Doubt
        Candidates that are not simply kept, the most useful to look at first.
    wrong : WrongCounts
        Estimated numbers of wrong candidates by label.
    partners : tuple of (str or None)
        For each label the one that, where it is wrong, is more often than usual true instead; None where that is not
        more than chance.
    noise_rate : (c,)
    noise_range : (c,), (c,)
        The least and the largest noise rate that the candidates allow.
    label_names : tuple of str
    method : estimator
        What the rows were judged by, not fitted.
    model : estimator
        The same, fitted on all candidates of all rows, or of ``max_rows`` of them.
    """

    confidences: NDArray[np.float64]
    actions: NDArray[np.str_]
    doubts: list[Doubt]
    wrong: WrongCounts
    partners: tuple[str | None, ...]
    noise_rate: NDArray[np.float64]
    noise_range: tuple[NDArray[np.float64], NDArray[np.float64]]
    label_names: tuple[str, ...]
    method: Any
    model: Any

    def cleaned(self) -> NDArray[np.uint8]:
        """The candidates without those to drop; what a person is asked about stays."""
        return ((self.actions != "") & (self.actions != DROP)).astype(np.uint8)

    def classifier(self, X: Any, *, max_rows: int = MAX_ROWS, random_state: int = 0) -> Any:
        """A model like that of the audit, trained on the cleaned labels.

        Parameters
        ----------
        X : matrix of shape (n, d)
            The rows of the audit.
        max_rows : int, default=40000
            It is fitted to so many rows at most, drawn at random.
        random_state : int, default=0
        """
        return train(self.method, X, self.cleaned(), max_rows=max_rows, random_state=random_state)


def audit(
    X: Any,
    Y: Any,
    *,
    method: Any = "candidate-likelihood",
    label_names: Sequence[str] | None = None,
    n_folds: int = 5,
    drop_below: float = 0.25,
    keep_above: float = 0.75,
    budget: int | None = None,
    n_neighbors: int = 10,
    max_rows: int = MAX_ROWS,
    random_state: int = 0,
    progress: Progress | None = None,
) -> Audit:
    """Say of each candidate label how likely it is true, and which are worth a look.

    Parameters
    ----------
    X : matrix of shape (n, d)
    Y : (n, c) matrix of 0 and 1, data frame, or list of n label sets
        The candidates.
    method : str or estimator, default="candidate-likelihood"
        By its name, or an unfitted estimator of this library.
    label_names : sequence of str, optional
        By default the names that Y brings, or "0", "1" and so on.
    n_folds : int, default=5
        Each fold is judged by a model of the others.
    drop_below, keep_above, budget
        See :func:`skpml.cleaning.suggest_actions`. Never dropped without a person are tags of labels that fewer than ten
        rows have, and tags that are more likely right than wrong under the least noise that the candidates allow: where
        features tell little, that is none.
    n_neighbors : int, default=10
        Similar rows that a reason counts.
    max_rows : int, default=40000
        Each model is fitted to so many rows at most, drawn at random; all rows are judged.
    random_state : int, default=0
    progress : callable, optional
        Called as ``progress(done, total, what)``.

    Returns
    -------
    Audit
    """
    check_thresholds(drop_below=drop_below, keep_above=keep_above, budget=budget)
    if is_views(X):
        raise ValueError("audit takes one matrix X; put the columns of the views beside each other.")
    X = X if hasattr(X, "shape") else np.asarray(X)
    labels = encode_labels(Y)
    candidates = labels.candidates
    names = tuple(map(str, labels.classes)) if label_names is None else tuple(label_names)
    if len(names) != candidates.shape[1]:
        raise ValueError(f"label_names has {len(names)} names for {candidates.shape[1]} labels.")
    model = _model(method, candidates.shape[0], random_state)
    found = cross_fit(
        model,
        X,
        candidates,
        n_folds=n_folds,
        max_rows=max_rows,
        random_state=random_state,
        progress=progress,
    )
    counts = candidates.sum(axis=0)
    rare = counts < ENOUGH_CANDIDATES
    chosen = suggest_actions(
        found.confidences[candidates > 0], drop_below=drop_below, keep_above=keep_above, budget=budget
    )
    actions = np.full(candidates.shape, "", dtype="<U4")
    actions[candidates > 0] = chosen
    actions[(actions == DROP) & ((found.most_believed > 0.5) | rare)] = ASK if budget is None else KEEP
    wrong = count_wrong(
        found.confidences, found.probabilities, found.noise_rate, found.noise_range, candidates
    )
    return Audit(
        confidences=found.confidences,
        actions=actions,
        doubts=_doubts(X, candidates, actions, found, names, n_neighbors, random_state),
        wrong=wrong.open_for(rare, counts),
        partners=find_partners(found.confidences, candidates, names),
        noise_rate=found.noise_rate,
        noise_range=found.noise_range,
        label_names=names,
        method=model,
        model=found.model,
    )


def _doubts(
    X: Any,
    candidates: NDArray[Any],
    actions: NDArray[np.str_],
    found: CrossFitted,
    names: tuple[str, ...],
    n_neighbors: int,
    random_state: int,
) -> list[Doubt]:
    """The candidates that are not simply kept, the most useful to look at first."""
    rows, columns = np.nonzero((actions == DROP) | (actions == ASK))
    order = np.argsort(-benefit(found.confidences[rows, columns]), kind="stable")
    rows, columns = rows[order], columns[order]
    reasons = find_reasons(
        X,
        candidates,
        rows,
        columns,
        probabilities=found.probabilities,
        confidences=found.confidences,
        label_names=names,
        n_neighbors=n_neighbors,
        random_state=random_state,
    )
    return [
        Doubt(
            row=row,
            label=label,
            confidence=float(found.confidences[row, label]),
            action=str(actions[row, label]),
            reason=reason,
        )
        for row, label, reason in zip(rows.tolist(), columns.tolist(), reasons, strict=True)
    ]


def _model(method: Any, n_rows: int, random_state: int) -> Any:
    if not isinstance(method, str):
        return method
    model = get_method(method)(on_empty="ignore")
    if "random_state" in model.get_params():
        model.set_params(random_state=random_state)
    if method == "candidate-likelihood":
        model.set_params(**next((modest for limit, modest in _LARGE if n_rows > limit), {}))
    return model
