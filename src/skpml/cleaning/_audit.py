"""The audit: the confidence of each tag, which tags to check first, and how many of each label are wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils import Bunch

from skpml._validation import EncodedLabels, check_verified, encode_labels, is_number, is_views
from skpml.cleaning._batch import Doubts, Question, find_doubts, propose_batch, random_order
from skpml.cleaning._decisions import Decisions, decisions_from_frame, read_decisions
from skpml.cleaning._evidence import (
    Companion,
    Evidence,
    conclude,
    examine_noise,
    find_companions,
    find_informative,
    find_twins,
)
from skpml.cleaning._judging import (
    ASK,
    DROP,
    MAX_ROWS,
    Actions,
    Floats,
    Missing,
    Progress,
    WrongCounts,
    benefit,
    check_thresholds,
    cross_fit,
    find_missing,
    find_partners,
    is_count,
    judge,
    train,
)
from skpml.cleaning._large import MOST_AUDITED, audit_in_blocks
from skpml.cleaning._presenting import make_frame, make_html, plot, summarize
from skpml.likelihood import (
    ENOUGH_CANDIDATES,
    check_votes,
    fit_votes,
    is_auto,
)
from skpml.registry import get_method
from skpml.tables import Columns, Table

# What an audit sets of its usual method, to end within minutes; with more rows than these, also the following.
_QUICK = {"effort": "quick", "n_members": 3}
_LARGE = ((20_000, {"n_anchors": 1000, "n_members": 1}), (1_400, {"n_anchors": 700}))
# For a first look: ridge regression on the candidates.
_FAST = {"family": "ridge", "n_members": 1}
# Given probabilities are moved if the median of their log-odds is further from 0: a calibration reaches them then.
_FARTHEST_MEDIAN = 5.0
# Given log-odds are clipped this far beyond 0 and their median: a few far ones must not decide the calibration.
_FARTHEST = 12.0


@dataclass(frozen=True, kw_only=True, repr=False)
class Audit:
    """Result of :func:`audit`; ``repr`` is a summary, and notebooks show a table of the labels.

    Parameters
    ----------
    confidences : ndarray of shape (n_rows, n_labels)
        Probability that each candidate is true; 0 elsewhere; 0 or 1 where a person checked it. The level is that of
        models that were not trained on the row; up to ``max_rows`` rows, the order is theirs and that of the model of all
        rows together.
    probabilities : ndarray of shape (n_rows, n_labels)
        Probability that each label is true, by models that were not trained on the row, from the features alone.
    actions : Actions of shape (n_rows, n_labels)
        "keep", "drop" or "ask" for candidates, "" elsewhere; used like an array of str.
    doubts : Doubts
        Candidates that are not simply kept, the most useful to check first: a sequence of :class:`Doubt`.
    wrong : WrongCounts
        Estimated numbers of wrong candidates by label.
    batch : list of Question
        The next candidates to check: a random part first, then those where an answer helps most.
    verified : ndarray of int8, shape (n_rows, n_labels)
        What a person found: 1 right, -1 wrong, 0 not checked.
    evidence : Evidence
        What the counts and the automatic drops rest on.
    twins : list of tuple of str
        Groups of labels with nearly the same candidates: nothing but a person can tell which of them is right.
    companions : list of Companion
        Pairs of labels that come together more often than the features explain.
    missing : Missing
        Labels that rows may lack, and whether their probabilities are calibrated.
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
    index : pandas.Index or None
        Names of the rows, if the features or the labels were a data frame.
    """

    confidences: Floats
    probabilities: Floats
    actions: Actions
    doubts: Doubts
    wrong: WrongCounts
    batch: list[Question]
    verified: NDArray[np.int8]
    evidence: Evidence
    twins: list[tuple[str, ...]]
    companions: list[Companion]
    missing: Missing
    partners: tuple[str | None, ...]
    noise_rate: Floats
    noise_range: tuple[Floats, Floats]
    label_names: tuple[str, ...]
    method: Any
    model: Any
    random_state: int
    index: Any = None

    def __repr__(self) -> str:
        return "\n".join(summarize(self))

    def _repr_html_(self) -> str:
        return make_html(self)

    def to_frame(self) -> Any:
        """Return one row for each candidate.

        Returns
        -------
        pandas.DataFrame
            With the columns ``row`` (position, from 0), ``label``, ``confidence``, ``action``, ``verified`` (1 right, -1
            wrong, 0 not checked) and ``reason`` (empty if the candidate is not doubtful), in the order of the rows. Its
            index is that of the data frame that was audited, else the position of the row.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        return make_frame(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw how many candidates of each label are kept, asked about and dropped, and how many are wrong.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default=None
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib.axes.Axes
            A bar for each label, and the interval of its wrong candidates unless nothing is known about them. At most 20
            labels are drawn, those with the most doubtful candidates.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        return plot(self, ax)

    def apply(self, decisions: Any, *, ids: Sequence[Any] | None = None) -> NDArray[np.uint8]:
        """Remove the candidates that a person or the audit drops, and add labels; a person is never overruled.

        Parameters
        ----------
        decisions : path-like, DataFrame or Decisions
            The file that the review page exports, a data frame with the same columns, or what :func:`read_decisions`
            returned. A data frame needs the columns ``row``, ``label`` and ``decision``, which is ``keep``, ``drop``,
            ``add`` for a label that is not a candidate, or empty, so that it may be that of :meth:`to_frame` with a
            column added.
        ids : sequence of str or None, default=None
            Names of the rows, by which the decisions were made. They must match, so that no decision goes to another
            row. None takes the index of the data frame that was audited, else the position of the row.

        Returns
        -------
        ndarray of uint8, shape (n_rows, n_labels)
            The remaining labels: those that a person kept or added, here or in ``verified``, and all other candidates
            but for those that a person or the audit drops. Candidates to ask about stay until they are decided.

        Raises
        ------
        ValueError
            If the decisions are not about these rows and labels, or contradict ``verified``.

        See Also
        --------
        clean_labels : Remove the candidates that the audit drops.
        """
        table = self._as_table(ids)
        if isinstance(decisions, Decisions):
            decided = decisions
        elif hasattr(decisions, "columns"):
            decided = decisions_from_frame(decisions, table)
        else:
            decided = read_decisions(decisions, table)
        contrary = decided.verified(table) * self.verified < 0
        if contrary.any():
            row, label = np.argwhere(contrary)[0].tolist()
            raise ValueError(
                f"The decision about {self.label_names[label]!r} in row {row} contradicts verified "
                f"({np.count_nonzero(contrary)} in all); audit again with the right answer."
            )
        labels = self.clean_labels()
        # Accepted suggestions do not count as checked, but a check by a person does.
        rows, columns = decided.rows, decided.labels
        labels[rows, columns] = np.where(
            self.verified[rows, columns], self.verified[rows, columns] > 0, decided.keep
        )
        return labels

    def _as_table(self, ids: Sequence[Any] | None) -> Table:
        """Return the candidates with the names of their rows, as decisions refer to them."""
        n_rows = len(self.actions)
        given = self.index if ids is None else ids
        names = range(n_rows) if given is None else given
        if len(names) != n_rows:
            raise ValueError(f"ids has {len(names)} names for {n_rows} rows.")
        return Table(
            path=Path("the audited table"),
            X=None,
            candidates=(self.actions != "").astype(np.uint8),
            label_names=self.label_names,
            ids=tuple(map(str, names)),
            columns=Columns(id=None if given is None else "ids"),
        )

    def clean_labels(self) -> NDArray[np.uint8]:
        """Remove the candidates to drop; those to ask about stay.

        Returns
        -------
        ndarray of uint8, shape (n_rows, n_labels)
            The remaining candidates, and labels that are no candidates but were found right by a person.
        """
        candidates = (self.actions != "") & (self.actions != DROP)
        return (candidates | (self.verified > 0)).astype(np.uint8)

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
    votes: Any = None,
    n_annotators: Any = None,
    verified: Any = None,
    at_random: Any = False,
    method: Any = "candidate-likelihood",
    family: str = "auto",
    fast: bool = False,
    views: Mapping[str, Sequence[int]] | None = None,
    label_names: Sequence[str] | None = None,
    n_folds: int = 5,
    drop_below: float = 0.25,
    drop_precision: float | None = 0.9,
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
        Candidate labels; required without `votes`.
    probabilities : {array-like, DataFrame} of shape (n_rows, n_labels) or None, default=None
        Out-of-fold probabilities of any model: each row scored by a model that was not trained on it. Their level is
        calibrated by a shift and a factor of their log-odds. No tag of a label is dropped without a person if rows that
        carry the label do not have higher probabilities than others, beyond chance. The columns of a data frame are
        matched by name if the labels have names. No model is fitted then.
    votes : array-like of shape (n_rows, n_labels) or (n_rows, n_annotators, n_labels) or None, default=None
        Instead of Y, the votes of several annotators, as in :func:`~skpml.candidate_likelihood.fit_votes`. Labels with
        votes are the candidates; the probabilities of others tell which may be missing.
    n_annotators : int, array of shape (n_rows,) or None, default=None
        Number of annotators of each row, if votes are counts.
    verified : {array-like, sparse matrix} of shape (n_rows, n_labels) or None, default=None
        What a person found: 1 where a label is right, -1 where it is wrong, 0 where nobody has checked. It is never
        overruled, and the other confidences learn from it. Labels that are not candidates may be verified too.
    at_random : bool or array of bool of shape (n_rows, n_labels), default=False
        Which verified candidates are a random sample of all candidates. Only these tell how many are wrong, and whether
        drops are as precise as promised; candidates that were checked because they are doubtful do not.
    method : str or estimator, default="candidate-likelihood"
        Name of a method, or an unfitted estimator of this library.
    family : {"auto", "logistic", "least-squares", "ridge"}, default="auto"
        Kind of model of the method "candidate-likelihood", see :class:`~skpml.CandidateLikelihood`. Choose "logistic" if
        the features come from texts, as TF-IDF or as embeddings: "auto" may choose another family that orders the
        candidates of each row as well, but those of different rows worse.
    fast : bool, default=False
        Take a first look, two to five times faster: by ridge regression on the candidates instead of a model of the
        noise. It orders candidates a little worse, and nothing is dropped or counted on the assumption of random noise.
    views : dict of str to list of int or None, default=None
        Columns of X that belong together, by name, for methods that weight views; see
        :class:`~skpml.CandidateLikelihood`.
    label_names : sequence of str or None, default=None
        Names of the labels; None takes those of Y, or "0", "1" and so on.
    n_folds : int, default=5
        Number of folds; each is scored by a model of the others.
    drop_below : float, default=0.25
        See :func:`suggest_actions`. Without verified candidates, tags are dropped only if wrong ones look random (see
        :class:`Evidence`), and never if fewer than ten rows have the label, if they are more likely right than wrong
        under the least noise that the candidates allow, or if the row would lose its last tag.
    drop_precision : float or None, default=0.9
        With verified candidates drawn at random, drop only as many tags that at least this share of them is wrong, with
        probability 0.95. If the sample is too small to show or to refute that, tags are dropped as without it. None
        drops by confidence alone.
    keep_above : float, default=0.75
        See :func:`suggest_actions`.
    budget : int or None, default=None
        See :func:`suggest_actions`.
    batch_size : int, default=100
        Number of candidates to check next.
    n_neighbors : int, default=10
        Number of similar rows that a reason counts.
    max_rows : int, default=40000
        Fit each model to at most this many rows, drawn at random; all rows are judged. Of more than 200,000 rows,
        100,000 random ones are audited, and up to 2,000 with verified cells; the others are judged in blocks, by the
        model, the noise rates and the thresholds of these, in single precision. With `probabilities` or `votes`, all rows
        are audited at once.
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
        If Y and votes are missing, thresholds cross, shapes or names do not match, or a matrix has values that it cannot
        have.
    """
    check_thresholds(drop_below=drop_below, keep_above=keep_above, budget=budget)
    if drop_precision is not None and not (is_number(drop_precision) and 0 < drop_precision < 1):
        raise ValueError(f"drop_precision must be a number between 0 and 1, or None, got {drop_precision!r}.")
    if not is_count(n_neighbors) or n_neighbors < 1:
        raise ValueError(f"n_neighbors must be an integer of at least 1, got {n_neighbors!r}.")
    if Y is None and votes is None:
        raise ValueError("audit needs the candidate labels Y, got None.")
    if votes is None and n_annotators is not None:
        raise ValueError("n_annotators belongs to votes; without votes, leave it out.")
    if votes is not None and (Y is not None or probabilities is not None):
        raise ValueError("votes replace Y and probabilities; give only one of them.")
    index = _find_index(X, votes if Y is None else Y)
    if votes is not None:
        Y = votes > 0 if hasattr(votes, "columns") else check_votes(votes, n_annotators).total > 0
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
        for name, dtype in zip(getattr(X, "columns", ()), getattr(X, "dtypes", ()), strict=False):
            if getattr(dtype, "kind", "") in "mM":
                raise ValueError(
                    f"X must hold numbers, but its column {name!r} holds dates or times; convert or drop it."
                )
        if X.shape[0] != len(candidates):
            raise ValueError(f"X has {X.shape[0]} rows, but Y has {len(candidates)}.")
        if scipy.sparse.issparse(X):
            # Other sparse formats have no rows to take.
            X = X.tocsr()
    named = labels.named or label_names is not None
    checked = check_verified(verified, candidates.shape, names=names if named else None)
    if checked is None:
        checked = np.zeros(candidates.shape, dtype=np.int8)
    sample = _check_sample(at_random, checked) & (candidates > 0)
    model = _make_model(method, len(candidates), n_folds, random_state, family=family, fast=fast)
    if views is not None:
        model.set_params(views=views)
    known: dict[str, Any] = {
        "verified": checked,
        "sample": sample,
        "rule": {"drop_below": drop_below, "keep_above": keep_above, "budget": budget},
        "drop_precision": drop_precision,
        "random_state": random_state,
    }
    judge_rows = partial(
        judge_by_model, model, n_folds=n_folds, max_rows=max_rows, random_state=random_state, fast=fast
    )
    found: Bunch | None = None
    if votes is not None:
        first = _judge_votes(X, votes, n_annotators, candidates, random_state)
    elif probabilities is not None:
        given = _match_columns(probabilities, labels, names, label_names)
        scores = _bound_probabilities(_check_probabilities(given, candidates.shape))
        first = judge_scores(scores, candidates, random_state=random_state, by_label=True)
    elif len(candidates) > MOST_AUDITED:
        first, found = audit_in_blocks(judge_rows, X, candidates, progress=progress, **known)
    else:
        first = judge_rows(X, candidates, progress=progress)
    if found is None:
        found = conclude(first, X, candidates, **known)
    places = random_order(candidates, random_state)
    return Audit(
        confidences=found.confidences,
        probabilities=first.found.probabilities,
        actions=found.actions,
        doubts=find_doubts(
            X,
            candidates,
            ((found.actions == ASK) | (found.actions == DROP)) & (checked == 0),
            found.actions,
            probabilities=first.found.probabilities,
            confidences=found.confidences,
            n_neighbors=n_neighbors,
            random_state=random_state,
        ),
        wrong=found.wrong,
        batch=propose_batch(places, checked, benefit(found.confidences), size=batch_size),
        verified=checked,
        evidence=found.evidence,
        twins=find_twins(candidates, names),
        companions=find_companions(first.expected, candidates, names),
        missing=_find_missing(first.found.probabilities, candidates, checked, votes is not None),
        partners=find_partners(found.confidences, candidates, names),
        noise_rate=first.found.noise_rate,
        noise_range=first.found.noise_range,
        label_names=names,
        method=model,
        model=first.model,
        random_state=random_state,
        index=index,
    )


def judge_by_model(
    model: Any,
    X: Any,
    Y: NDArray[Any],
    *,
    n_folds: int,
    max_rows: int,
    random_state: int,
    fast: bool = False,
    progress: Progress | None = None,
) -> Bunch:
    """Judge candidates by models of other rows, see :func:`judge_scores`; a ``fast`` look assumes no random noise."""
    # Transformers inside models must return arrays.
    with config_context(transform_output="default"):
        sizes = {"n_folds": n_folds, "max_rows": max_rows, "random_state": random_state}
        whole, scores, order = cross_fit(model, X, Y, progress=progress, **sizes)
    known = not is_auto(getattr(whole, "noise_rate", "auto"))
    rates = getattr(whole, "noise_rate_", None) if known else None
    of_all = getattr(whole, "confidences_", None) if len(Y) <= max_rows else None
    first = judge_scores(
        scores, Y, rates=rates, of_all=of_all, order=order, model=whole, random_state=random_state
    )
    if fast:
        first.label_free, first.fast = "none", True
    return first


def judge_scores(
    scores: Floats,
    Y: NDArray[Any],
    *,
    random_state: int,
    rates: Floats | None = None,
    of_all: NDArray[Any] | None = None,
    order: NDArray[np.intp] | None = None,
    model: Any = None,
    by_label: bool = False,
) -> Bunch:
    """Judge candidates by held-out probabilities, as :func:`judge` does, and ask what these can tell.

    Returns what was ``found`` from which ``scores``; the ``expected`` probabilities of candidates; the ``noise`` as it
    looks; whether scores are ``informative``; which labels are ``undecided`` (if ``by_label``, also those about which
    scores are not informative); what drops can rest on without verified cells (``label_free``); and the ``model`` of all
    rows.
    """
    found = judge(scores, Y, rates=rates, of_all=of_all, order=order)
    noise = examine_noise(found, Y, random_state)
    informative = find_informative(scores, Y)
    undecided = Y.sum(axis=0) < ENOUGH_CANDIDATES
    # Who gives the noise rate says that noise is random.
    random = informative.any() and (noise.random_noise or rates is not None)
    return Bunch(
        found=found,
        expected=found.expected,
        scores=scores,
        noise=noise,
        informative=bool(informative.any()),
        undecided=undecided | ~informative if by_label else undecided,
        label_free="random noise" if random else "none",
        model=model,
    )


def _judge_votes(X: Any, votes: Any, n_annotators: Any, Y: NDArray[Any], random_state: int) -> Bunch:
    """Judge candidates by votes and features, and other labels too."""
    with config_context(transform_output="default"):
        fit = fit_votes(X, votes, n_annotators, random_state=random_state)
    sure = np.where(Y > 0, fit.confidences, 0.0)
    found = Bunch(
        probabilities=np.where(Y > 0, fit.probabilities, fit.confidences),
        confidences=sure,
        at_least_noise=sure,
        noise_rate=fit.false_rate,
        noise_range=(fit.false_rate, fit.false_rate),
    )
    noise = Bunch(random_noise=False, p_value=1.0, clear_share=0.0, rate_variation=0.0)
    # One vote of all annotators of a row makes a candidate.
    n_seen = check_votes(votes, n_annotators).n_seen[:, None]
    some_if_true, some_if_false = (1 - (1 - rate) ** n_seen for rate in (fit.sensitivity, fit.false_rate))
    return Bunch(
        found=found,
        expected=fit.probabilities * some_if_true + (1 - fit.probabilities) * some_if_false,
        noise=noise,
        informative=True,
        undecided=Y.sum(axis=0) < ENOUGH_CANDIDATES,
        label_free="votes",
        model=None,
    )


def _find_index(*given: Any) -> Any:
    """Return the index of the first data frame or series; lists have a method of this name."""
    indexes = (getattr(each, "index", None) for each in given)
    return next((index for index in indexes if index is not None and not callable(index)), None)


def _check_sample(at_random: Any, verified: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Return which verified cells are a random sample."""
    given = np.asarray(at_random)
    if given.dtype != np.bool_ or given.shape not in ((), verified.shape):
        raise ValueError(
            f"at_random must be a bool, or a matrix of them of the shape {verified.shape} of Y, got {at_random!r}."
        )
    unknown = np.argwhere((given & (verified == 0)) if given.ndim else np.zeros((0, 0)))
    if len(unknown):
        row, label = unknown[0].tolist()
        raise ValueError(
            f"at_random marks row {row}, label {label}, which is not verified ({len(unknown)} in all)."
        )
    return np.asarray(given & (verified != 0))


def _find_missing(probabilities: Floats, Y: NDArray[Any], verified: NDArray[np.int8], voted: bool) -> Missing:
    """Return labels that rows may lack; tags that a person added say little about how many others there are.

    They were found where somebody looked, so they calibrate probabilities only together with labels found absent.
    """
    candidate = Y > 0
    answers = (
        verified if (verified[~candidate] < 0).any() else np.where(candidate, verified, 0).astype(np.int8)
    )
    found = find_missing(probabilities, candidate, answers, "votes" if voted else "ranking")
    found.probabilities[verified != 0] = 0.0
    return found


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


def _make_model(
    method: Any, n_rows: int, n_folds: int, random_state: int, *, family: str = "auto", fast: bool = False
) -> Any:
    """Return an unfitted estimator that accepts empty rows and labels, which folds and cleaning may leave."""
    model = get_method(method)() if isinstance(method, str) else clone(method)
    parameters = model.get_params()
    if "on_empty" in parameters:
        model.set_params(on_empty="ignore")
    if "random_state" in parameters and parameters["random_state"] is None:
        model.set_params(random_state=random_state)
    if isinstance(method, str) and get_method(method).name == "candidate-likelihood":
        modest = next((modest for limit, modest in _LARGE if n_rows > limit), {})
        if fast and family not in ("auto", _FAST["family"]):
            raise ValueError(
                f"fast takes the family {_FAST['family']!r}, got family={family!r}; leave one of them out."
            )
        model.set_params(
            **{**_QUICK, "family": family, "n_folds": n_folds, **modest, **(_FAST if fast else {})}
        )
    elif fast or family != "auto":
        name = "fast" if fast else "family"
        raise ValueError(f"{name} belongs to the method 'candidate-likelihood', got method={method!r}.")
    return model
