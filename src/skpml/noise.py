"""Generate candidate labels from true ones: every true label stays, false ones are added.

All generators take an n × c matrix of true labels (0/1; dense, scipy sparse or DataFrame), leave it unchanged, and return
a dense matrix of candidates. The same seed gives the same candidates. With the same truth and ``k``, `top_up`,
`label_dependent` and `instance_dependent` give a row the same number of candidates, and differ in which labels are false.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import logsumexp
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array, check_random_state

from skpml._docstrings import fill_docstring
from skpml._validation import BoolMatrix, check_labels, is_count, is_number

RandomSource = int | np.random.RandomState | np.random.Generator | None
RandomNumbers = np.random.RandomState | np.random.Generator
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
    %(n_candidates)s
    %(random_state_and_candidates)s

    Examples
    --------
    >>> from skpml.noise import top_up
    >>> top_up([[1, 0, 0, 0], [0, 1, 1, 1]], k=2, random_state=0).sum(axis=1).tolist()
    [2, 3]
    """
    labels = check_labels(truth, "truth")
    _check_k(k)
    return _fill_up(labels, k, _random(random_state).random(labels.shape))


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
    return (labels | (_random(random_state).random(labels.shape) < probabilities)).astype(np.uint8)


@fill_docstring
def label_dependent(
    truth: Any, k: int, *, concentration: float = 0.15, random_state: RandomSource = None
) -> Candidates:
    r"""Fill each row up to ``k`` candidates with the wrong companions of its true labels.

    Each label :math:`l` draws a distribution over the other labels, its wrong companions, once for all rows:

    .. math:: (p_{lj})_{j \ne l} \sim \mathrm{Dirichlet}(\alpha, \ldots, \alpha), \quad p_{ll} = 0.

    The weight of a false label :math:`j` in row :math:`i` is the mean over the true labels of the row,

    .. math:: w_{ij} = \frac{1}{|Y_i|} \sum_{l \in Y_i} p_{lj},

    and, in a row without true labels, the frequency of the label: the number of rows where it is true, plus one. False
    labels are drawn one after the other in proportion to these weights, without replacement. Each row has as many
    candidates as with `top_up`.

    Parameters
    ----------
    %(truth)s
    %(n_candidates)s
    concentration : float, default=0.15
        :math:`\alpha`, above 0. With a small value each label has few companions, always the same; with a large one
        the noise is nearly uniform.
    %(random_state_and_candidates)s

    See Also
    --------
    top_up : Draw the false labels uniformly.
    instance_dependent : Draw false labels that the features make plausible.

    Examples
    --------
    >>> from skpml.noise import label_dependent
    >>> label_dependent([[1, 0, 0, 0], [0, 1, 1, 1]], k=2, random_state=0).sum(axis=1).tolist()
    [2, 3]
    """
    labels = check_labels(truth, "truth")
    _check_k(k)
    _check_above_zero(concentration, "concentration")
    rng = _random(random_state)
    companions = _draw_companions(labels.shape[1], float(concentration), rng)
    log_weights = np.full(labels.shape, -np.inf)
    # In logarithms, because most weights of a small concentration are below the range of a float. The number of true
    # labels is left out: it is the same for all labels of a row.
    for label, row in enumerate(companions):
        rows = labels[:, label]
        log_weights[rows] = np.logaddexp(log_weights[rows], row)
    log_weights[~labels.any(axis=1)] = _log_frequencies(labels)
    return _draw(labels, k, log_weights, rng)


@fill_docstring
def instance_dependent(
    X: Any, truth: Any, k: int, *, share: float = 0.05, random_state: RandomSource = None
) -> Candidates:
    r"""Fill each row up to ``k`` candidates with labels that a weak model finds plausible.

    A ridge regression is fitted to the true labels of a random ``share`` of the rows and scores all cells. With
    :math:`z_{ij}` its scores, standardized per label, and :math:`n_j` the number of rows where the label is true, the
    weight of a false label is

    .. math:: w_{ij} = (n_j + 1) \, e^{z_{ij}}.

    False labels are drawn one after the other in proportion to these weights, without replacement. Each row has as many
    candidates as with `top_up`.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
        Features of at least two rows; they are scaled internally.
    %(truth)s
    %(n_candidates)s
    share : float, default=0.05
        Share of the rows that the model learns from, above 0 and at most 1; at least two rows. With more rows the
        model is better, and the false labels look more like true ones.
    %(random_state_and_candidates)s

    See Also
    --------
    top_up : Draw the false labels uniformly.
    label_dependent : Draw the wrong companions of the true labels.

    Examples
    --------
    >>> import numpy as np
    >>> from skpml.noise import instance_dependent
    >>> X = np.arange(8.0).reshape(-1, 1)
    >>> truth = np.column_stack([X[:, 0] < 4, X[:, 0] >= 4, X[:, 0] > 6]).astype(int)
    >>> instance_dependent(X, truth, k=2, random_state=0).sum(axis=1).tolist()
    [2, 2, 2, 2, 2, 2, 2, 2]
    """
    labels = check_labels(truth, "truth")
    _check_k(k)
    _check_above_zero(share, "share")
    if share > 1:
        raise ValueError(f"share must be at most 1, got {share!r}")
    features = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X")
    if features.shape[0] != labels.shape[0]:
        raise ValueError(f"X has {features.shape[0]} rows, but truth has {labels.shape[0]}; they must agree")
    if labels.shape[0] < 2:
        raise ValueError("instance-dependent noise needs at least two rows to learn from")
    rng = _random(random_state)
    plausibility = _score_plausibility(features, labels, float(share), rng)
    return _draw(labels, k, plausibility + _log_frequencies(labels), rng)


def _draw_companions(n_labels: int, concentration: float, rng: RandomNumbers) -> NDArray[np.float64]:
    """Draw the logarithms of one Dirichlet distribution per label, over the other labels.

    The diagonal has no meaning: a label is never its own wrong companion.
    """
    size = (n_labels, n_labels)
    # Gamma(α) is distributed as Gamma(α + 1) U^(1/α), whose logarithm stays finite.
    log_gamma = np.log(rng.standard_gamma(concentration + 1, size))
    log_gamma -= rng.standard_exponential(size) / concentration
    others = np.where(np.eye(n_labels, dtype=bool), -np.inf, log_gamma)
    return np.asarray(log_gamma - logsumexp(others, axis=1, keepdims=True), dtype=np.float64)


def _score_plausibility(
    features: Any, labels: BoolMatrix, share: float, rng: RandomNumbers
) -> NDArray[np.float64]:
    """Compute the scores of the weak model for all rows, standardized per label."""
    n_rows = labels.shape[0]
    rows = rng.permutation(n_rows)[: max(2, round(share * n_rows))]
    # With scaled features, a weight of n balances the data term: the model learns coarse structure only.
    weak = make_pipeline(StandardScaler(with_mean=not issparse(features)), Ridge(alpha=len(rows)))
    scores = weak.fit(features[rows], labels[rows].astype(np.float64)).predict(features)
    scores = scores.reshape(labels.shape).astype(np.float64)
    return np.asarray(StandardScaler().fit_transform(scores), dtype=np.float64)


def _log_frequencies(labels: BoolMatrix) -> NDArray[np.float64]:
    """Compute the logarithms of the label frequencies, plus one so that labels that are never true stay possible."""
    return np.asarray(np.log(labels.sum(axis=0) + 1.0), dtype=np.float64)


def _draw(labels: BoolMatrix, k: int, log_weights: NDArray[np.float64], rng: RandomNumbers) -> Candidates:
    """Fill up with labels drawn in proportion to the weights: the largest sums with Gumbel noise are such a draw."""
    return _fill_up(labels, k, -(log_weights + rng.gumbel(size=labels.shape)))


def _fill_up(labels: BoolMatrix, k: int, keys: NDArray[np.float64]) -> Candidates:
    """Fill each row up to `k` candidates with the false labels that have the smallest keys."""
    # True labels sort to the front.
    order = np.argsort(np.where(labels, -np.inf, keys), axis=1)
    n_candidates = np.maximum(labels.sum(axis=1, keepdims=True), k)
    candidates = np.zeros(labels.shape, dtype=np.uint8)
    np.put_along_axis(candidates, order, (np.arange(labels.shape[1]) < n_candidates).astype(np.uint8), axis=1)
    return candidates


def _random(random_state: RandomSource) -> RandomNumbers:
    if isinstance(random_state, np.random.Generator):
        return random_state
    generator: np.random.RandomState = check_random_state(random_state)
    return generator


def _check_k(k: Any) -> None:
    if not is_count(k):
        raise ValueError(f"k must be a positive integer, got {k!r}")


def _check_above_zero(value: Any, name: str) -> None:
    if not is_number(value):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    if value <= 0:
        raise ValueError(f"{name} must be above 0, got {value!r}")
