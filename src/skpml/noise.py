"""Generate candidate labels from true ones: every true label stays, false ones are added.

All generators take an n × c matrix of true labels (0/1; dense, scipy sparse or DataFrame), leave it unchanged, and return
a dense matrix of candidates. The same seed gives the same candidates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.linear_model import Ridge
from sklearn.model_selection import PredefinedSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array, check_random_state

from skpml._docstrings import fill_docstring
from skpml._validation import BoolMatrix, check_labels, is_count, is_number

RandomSource = int | np.random.RandomState | np.random.Generator | None
Candidates = NDArray[np.uint8]

__all__ = ["flip", "instance_dependent", "label_dependent", "top_up"]


@fill_docstring
def top_up(truth: Any, k: int, *, random_state: RandomSource = None) -> Candidates:
    r"""Fill each row up to ``k`` candidates with uniformly drawn false labels.

    The labels are drawn without replacement. A row with :math:`t_i` true labels gets :math:`\min(\max(t_i, k), c)`
    candidates: rows with ``k`` true labels or more stay clean. Most published experiments use this noise
    ("avg.#CLs = k").

    Parameters
    ----------
    %(truth)s
    k : int
        Number of candidates per row, at least 1.
    %(random_state_and_candidates)s

    Examples
    --------
    >>> from skpml.noise import top_up
    >>> top_up([[1, 0, 0, 0], [0, 1, 1, 1]], k=2, random_state=0).sum(axis=1).tolist()
    [2, 3]
    """
    labels = check_labels(truth, "truth")
    if not is_count(k):
        raise ValueError(f"k must be a positive integer, got {k!r}")
    draws = _random(random_state).random(labels.shape)
    # True labels sort to the front; the false ones follow in random order.
    order = np.argsort(np.where(labels, -1.0, draws), axis=1)
    n_candidates = np.maximum(labels.sum(axis=1, keepdims=True), k)
    candidates = np.zeros(labels.shape, dtype=np.uint8)
    np.put_along_axis(candidates, order, (np.arange(labels.shape[1]) < n_candidates).astype(np.uint8), axis=1)
    return candidates


@fill_docstring
def flip(truth: Any, rates: ArrayLike, *, random_state: RandomSource = None) -> Candidates:
    r"""Make each false label a candidate with the probability of its label.

    .. math:: P(s_{ij} = 1 \mid y_{ij} = 0) = \rho_j, \quad \text{independently}

    Parameters
    ----------
    %(truth)s
    rates : float or array-like of shape (n_labels,)
        Noise rates :math:`\rho_j` in [0, 1]; one number applies to all labels.
    %(random_state_and_candidates)s

    Examples
    --------
    >>> from skpml.noise import flip
    >>> flip([[1, 0, 0], [0, 1, 0]], [0.0, 0.0, 1.0]).tolist()
    [[1, 0, 1], [0, 1, 1]]
    """
    labels = check_labels(truth, "truth")
    probabilities = np.asarray(rates, dtype=np.float64)
    if probabilities.shape not in ((), (labels.shape[1],)):
        shape = probabilities.shape
        raise ValueError(f"rates must be one number or one per label ({labels.shape[1]}), got shape {shape}")
    wrong = np.flatnonzero(~((probabilities >= 0) & (probabilities <= 1)))
    if wrong.size:
        place, value = f" at label {wrong[0]}" if probabilities.ndim else "", probabilities.flat[wrong[0]]
        raise ValueError(f"rates must lie between 0 and 1; found {value.item()!r}{place}")
    return _add(labels, np.broadcast_to(probabilities, labels.shape), _random(random_state))


@fill_docstring
def label_dependent(
    truth: Any, mean_added: float, *, smoothing: float = 1.0, random_state: RandomSource = None
) -> Candidates:
    r"""Add false labels that often occur with the true ones, as "sea" with "lake".

    With :math:`n_{lj}` the number of rows that have both labels :math:`l` and :math:`j`, and :math:`\sigma`
    the smoothing, the weight of a false label :math:`j` in row :math:`i` is the mean over the row's true
    labels of how often :math:`j` accompanies them,

    .. math:: w_{ij} = \frac{1}{|Y_i|} \sum_{l \in Y_i} \frac{n_{lj} + \sigma}{n_{ll} + \sigma c},

    and for a row without true labels the plain frequency :math:`(n_{jj} + \sigma) / (n + \sigma c)`. Each
    false label is added independently with probability :math:`\min(1, \tau_i w_{ij})`, where :math:`\tau_i`
    makes the expected number in the row ``mean_added``, or all its false labels if there are fewer.

    Parameters
    ----------
    %(truth)s
    mean_added : float
        Expected number of false candidates per row, at least 0.
    smoothing : float, default=1.0
        Above 0, so that labels that never occur together remain possible. Larger values are closer to uniform noise.
    %(random_state_and_candidates)s

    Examples
    --------
    >>> from skpml.noise import label_dependent
    >>> label_dependent([[1, 1, 0], [1, 0, 0]], mean_added=2, random_state=0).tolist()
    [[1, 1, 1], [1, 1, 1]]
    """
    labels = check_labels(truth, "truth")
    _check_number(mean_added, "mean_added")
    _check_number(smoothing, "smoothing", bound="above")
    n_rows, n_labels = labels.shape
    present = labels.astype(np.float64)
    together = present.T @ present
    frequency = np.diag(together)
    accompanies = (together + smoothing) / (frequency[:, np.newaxis] + smoothing * n_labels)
    n_true = present.sum(axis=1, keepdims=True)
    weights = np.where(
        n_true > 0,
        present @ accompanies / np.maximum(n_true, 1),
        (frequency + smoothing) / (n_rows + smoothing * n_labels),
    )
    return _add(labels, _inclusion_probabilities(np.log(weights), ~labels, mean_added), _random(random_state))


@fill_docstring
def instance_dependent(
    X: Any,
    truth: Any,
    mean_added: float,
    *,
    sharpness: float = 1.0,
    n_folds: int = 5,
    random_state: RandomSource = None,
) -> Candidates:
    r"""Add false labels that the features make plausible to a weak model.

    A strongly regularized ridge regression is fitted to the true labels in cross-validation, so that each row is
    scored by a model that has not seen it. With :math:`z_{ij}` its scores, standardized per label, a false label has
    weight :math:`w_{ij} = e^{\kappa z_{ij}}`: one standard deviation more multiplies the weight by :math:`e^\kappa`,
    whether the label is rare or frequent. Each false label is added independently with probability
    :math:`\min(1, \tau_i w_{ij})`, where :math:`\tau_i` makes the expected number in the row ``mean_added``, or all
    its false labels if there are fewer.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
        Features of at least two rows; they are scaled internally.
    %(truth)s
    mean_added : float
        Expected number of false candidates per row, at least 0.
    sharpness : float, default=1.0
        :math:`\kappa`, at least 0. At 0 all false labels are equally likely; with larger values the most plausible
        ones are added more often.
    n_folds : int, default=5
        Number of folds of the cross-validation, at least 2; at most the number of rows are used.
    %(random_state_and_candidates)s

    Examples
    --------
    >>> import numpy as np
    >>> from skpml.noise import instance_dependent
    >>> X = np.arange(8.0).reshape(-1, 1)
    >>> truth = np.column_stack([X[:, 0] < 4, X[:, 0] >= 4]).astype(int)
    >>> instance_dependent(X, truth, mean_added=0.5, random_state=0).shape
    (8, 2)
    """
    labels = check_labels(truth, "truth")
    _check_number(mean_added, "mean_added")
    _check_number(sharpness, "sharpness")
    if not is_count(n_folds, 2):
        raise ValueError(f"n_folds must be an integer of at least 2, got {n_folds!r}")
    features = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X")
    if features.shape[0] != labels.shape[0]:
        raise ValueError(f"X has {features.shape[0]} rows, but truth has {labels.shape[0]}; they must agree")
    if labels.shape[0] < 2:
        raise ValueError("instance-dependent noise needs at least two rows: one to score, one to learn from")
    rng = _random(random_state)
    plausibility = _plausibility(features, labels, int(n_folds), rng)
    return _add(labels, _inclusion_probabilities(sharpness * plausibility, ~labels, mean_added), rng)


def _plausibility(
    features: Any, labels: BoolMatrix, n_folds: int, rng: np.random.RandomState | np.random.Generator
) -> NDArray[np.float64]:
    """Compute out-of-fold scores of the weak model, standardized per label."""
    n_rows = labels.shape[0]
    fold = rng.permutation(n_rows) % min(n_folds, n_rows)
    # With scaled features, a weight of n balances the data term: the model learns coarse structure only.
    weak = make_pipeline(StandardScaler(with_mean=not issparse(features)), Ridge(alpha=n_rows))
    scores = cross_val_predict(weak, features, labels.astype(np.float64), cv=PredefinedSplit(fold))
    return np.asarray(StandardScaler().fit_transform(scores.reshape(labels.shape)), dtype=np.float64)


def _inclusion_probabilities(
    log_weights: NDArray[np.float64], eligible: BoolMatrix, mean_added: float
) -> NDArray[np.float64]:
    """Compute min(1, τ w) on eligible cells; per row, τ makes the sum min(mean_added, number eligible)."""
    # In logarithms, because the weights of one row may exceed the range of a float. If the m heaviest labels are
    # certain, the others share the rest in proportion; take the first m for which no share exceeds 1.
    weights = np.where(eligible, log_weights, -np.inf)
    descending = np.sort(weights, axis=1)[:, ::-1]
    rest = np.logaddexp.accumulate(descending[:, ::-1], axis=1)[:, ::-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.log(np.maximum(mean_added - np.arange(weights.shape[1]), 0.0))
        n_certain = np.argmax(left + (descending - rest) <= 0, axis=1)[:, np.newaxis]
        shares = np.exp(
            np.minimum(left[n_certain] + (weights - np.take_along_axis(rest, n_certain, axis=1)), 0.0)
        )
    everything = eligible.sum(axis=1, keepdims=True) <= mean_added
    return np.where(everything, eligible.astype(np.float64), shares)


def _add(
    labels: BoolMatrix, probabilities: NDArray[np.float64], rng: np.random.RandomState | np.random.Generator
) -> Candidates:
    return (labels | (rng.random(labels.shape) < probabilities)).astype(np.uint8)


def _random(random_state: RandomSource) -> np.random.RandomState | np.random.Generator:
    if isinstance(random_state, np.random.Generator):
        return random_state
    generator: np.random.RandomState = check_random_state(random_state)
    return generator


def _check_number(value: Any, name: str, *, bound: str = "at least") -> None:
    if not is_number(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    if value < 0 or (bound == "above" and value == 0):
        raise ValueError(f"{name} must be {bound} 0, got {value!r}")
