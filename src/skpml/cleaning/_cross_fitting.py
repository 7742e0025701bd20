"""How far each candidate is believed by models that did not train on its row.

A model that has seen a row has seen its candidates, and believes them too much. So rows are cut into folds, each is
judged by a model of the other folds, and these judgements set the *level* of the confidences. A model of all rows still
orders candidates well: the *order* is that of both together.

Many rows are more than a model needs: it is fitted to a random part of them, and judges all. Rows of equal features are
in one fold, since a copy would tell the tags of the row that is judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skpml.candidate_likelihood import CandidateLikelihood
from skpml.likelihood import (
    apply_level,
    calibrate,
    estimate_noise,
    fit_calibration,
    fit_level,
    is_auto,
    posterior,
)
from skpml.model_selection import InnerFolds

Floats = NDArray[np.float64]
Progress = Callable[[int, int, str], None]

# Nothing is more certain than this, either way.
_CERTAIN = 1e-6
# More rows take time and memory, and hardly change a model.
MAX_ROWS = 40_000
# Up to this share of the rows, copies hardly sway a choice of settings.
_FEW_COPIES = 0.05


@dataclass(frozen=True, kw_only=True)
class CrossFitted:
    """What models say of rows that they were not fitted on, and of those that they were.

    Attributes
    ----------
    model : estimator
        Fitted on all rows, or on ``max_rows`` of them.
    probabilities : (n, c)
        Of each label to be true, by a model without the row, whatever its candidates.
    left_out : (n, c)
        Of each candidate to be true, by a model without the row; 0 elsewhere.
    confidences : (n, c)
        Of each candidate to be true: the level of ``left_out``, in the order that it and the model of all rows agree on.
        Where there is no model of all rows, ``left_out``.
    noise_rate : (c,)
        How often a false label is a candidate: the most likely rate, unless the model was given one.
    noise_range : (c,), (c,)
        The least and the largest rate that the candidates allow; see :mod:`skpml.likelihood._noise_evidence`.
    most_believed : (n, c)
        Like ``left_out``, under the least of these rates.
    folds : (n,)
    """

    model: Any
    probabilities: Floats
    left_out: Floats
    confidences: Floats
    noise_rate: Floats
    noise_range: tuple[Floats, Floats]
    most_believed: Floats
    folds: NDArray[np.intp]


def cross_fit(
    model: Any,
    X: Any,
    Y: NDArray[Any],
    *,
    n_folds: int = 5,
    max_rows: int = MAX_ROWS,
    random_state: int = 0,
    progress: Progress | None = None,
) -> CrossFitted:
    """Fit a model on all rows, and again without each fold.

    Parameters
    ----------
    model : estimator of this library
        Not changed. The settings that :class:`~skpml.CandidateLikelihood` chooses on all rows are kept in the folds.
    X : matrix of shape (n, d)
    Y : (n, c) of 0 and 1
    n_folds : int, default=5
    max_rows : int, default=40000
        Each model is fitted to so many rows at most.
    random_state : int, default=0
        Draws the folds, and the rows where they are more than ``max_rows``.
    progress : callable, optional
        Called as ``progress(done, total, what)``.
    """
    cut = InnerFolds(X, Y, n_folds=n_folds, random_state=random_state, copies_together=True)
    tell = progress if progress is not None else lambda done, total, what: None
    tell(0, n_folds + 1, "all rows")
    whole = _fitted_to_some(model, cut, max_rows)
    inner = clone(model)
    # A fold may lack a label, or all labels of its rows.
    if "on_empty" in inner.get_params():
        inner.set_params(on_empty="ignore")
    probabilities, folds = np.empty(Y.shape), np.empty(len(Y), dtype=np.intp)
    for fold, (train, held_out) in enumerate(cut.splits):
        tell(fold + 1, n_folds + 1, f"rows without fold {fold + 1} of {n_folds}")
        train = train[:max_rows]
        fit = whole.refit if isinstance(whole, CandidateLikelihood) else clone(inner).fit
        without = fit(cut.rows(train), Y[train])
        probabilities[held_out], folds[held_out] = without.predict_proba(cut.rows(held_out)), fold
    tell(n_folds + 1, n_folds + 1, "done")
    return _judged(whole, probabilities, Y, folds, cut.shuffled, believed=len(Y) <= max_rows)


def _settled(model: Any, rows: InnerFolds, max_rows: int) -> Any:
    """A model whose settings are chosen without copies of rows, which make learning by heart look good."""
    few_copies = len(rows.distinct) > (1 - _FEW_COPIES) * len(rows.candidates)
    if few_copies or not isinstance(model, CandidateLikelihood):
        return model
    once = rows.shuffled[np.isin(rows.shuffled, rows.distinct)][:max_rows]
    return clone(model).fit(rows.rows(once), rows.candidates[once])


def train(model: Any, X: Any, Y: NDArray[Any], *, max_rows: int, random_state: int) -> Any:
    """A clone of a model, fitted to all rows, or to ``max_rows`` of them, drawn at random."""
    rows = InnerFolds(X, Y, n_folds=2, random_state=random_state, copies_together=True)
    return _fitted_to_some(model, rows, max_rows)


def _fitted_to_some(model: Any, rows: InnerFolds, max_rows: int) -> Any:
    settled = _settled(model, rows, max_rows)
    fit = clone(model).fit if settled is model else settled.refit
    if len(rows.candidates) <= max_rows:
        return fit(rows.X, rows.candidates)
    some = rows.shuffled[:max_rows]
    return fit(rows.rows(some), rows.candidates[some])


def _judged(
    whole: Any,
    scores: Floats,
    Y: NDArray[Any],
    folds: NDArray[np.intp],
    order: NDArray[np.intp],
    *,
    believed: bool,
) -> CrossFitted:
    if isinstance(whole, CandidateLikelihood) and not is_auto(whole.noise_rate):
        # Who knows the noise gets probabilities at the level of the model.
        rates = low = high = np.asarray(whole.noise_rate_, dtype=np.float64)
        probabilities = scores
    else:
        noise = estimate_noise(scores, Y, by_frequency=True, order=order)
        rates, low, high = noise.rate, noise.low, noise.high
        probabilities = calibrate(scores, fit_calibration(scores, rates, Y))
    left_out = posterior(probabilities, rates, Y)
    of_all = getattr(whole, "confidences_", None) if believed else None
    confidences = left_out if of_all is None else _agreed(left_out, of_all, Y > 0)
    return CrossFitted(
        model=whole,
        probabilities=probabilities,
        left_out=left_out,
        confidences=confidences,
        noise_rate=rates,
        noise_range=(low, high),
        most_believed=posterior(calibrate(scores, fit_calibration(scores, low, Y)), low, Y),
        folds=folds,
    )


def _agreed(left_out: Floats, believed: NDArray[Any], candidate: NDArray[np.bool_]) -> Floats:
    """Confidences in the order of both, with the level of the first."""
    odds = [p / (1 - p) for p in (np.clip(each, _CERTAIN, 1 - _CERTAIN) for each in (left_out, believed))]
    both = np.sqrt(odds[0] * odds[1])
    both /= 1 + both
    return apply_level(both, fit_level(both[candidate], left_out[candidate]), candidate)
