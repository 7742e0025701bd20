"""How false candidates arise, and what a candidate is worth: the probabilities, and nothing of how they are learnt.

For row i and label j, η_ij is the probability that the label is true, and ρ_j the probability that a false label becomes
a candidate; true labels always are. Labels and false candidates are independent, given the row. Hence

    P(Y_ij = 1) = q_ij = η_ij + (1 − η_ij) ρ_j        P(Y_ij = 0) = (1 − η_ij)(1 − ρ_j)
    P(true | candidate) = η_ij / q_ij

Where every row has a true label, all of this is conditional on it: with P∅(p) = Π_j (1 − p_j), the probability that no
label is true is P∅(η) before the candidates are seen and P∅(r) after.

Arrays are of any namespace of the array API standard, labels along the last axis.
"""

from __future__ import annotations

from array_api_compat import array_namespace

from skpml.linalg import Array


def posterior(eta: Array, rho: Array, Y: Array) -> Array:
    """r: the probability of each label, given the candidates; 0 outside them."""
    xp = array_namespace(eta)
    likely = eta + (1 - eta) * rho
    # A label that can be neither true nor a false candidate is none at all.
    return xp.where((Y > 0) & (likely > 0), eta / xp.where(likely > 0, likely, 1.0), 0.0)


def given_one(probabilities: Array, rows: Array) -> Array:
    """Probabilities given that at least one label of the row is true, ``p_j / (1 − P∅(p))``, in the rows marked.

    Parameters
    ----------
    probabilities : (..., c)
    rows : bool, broadcasts to (..., 1)
        The rows that are conditioned. One without any candidate has no true label: leave it out.
    """
    xp = array_namespace(probabilities)
    some = _chance_of_one(probabilities)[..., None]
    conditional = xp.clip(probabilities / xp.where(some > 0, some, 1.0), 0.0, 1.0)
    return xp.where(rows & (some > 0), conditional, probabilities)


def log_likelihood(logits: Array, rho: Array, Y: Array, one_true: Array | None = None) -> Array:
    """Log-probability of the candidates of each row, summed over the labels.

    Parameters
    ----------
    logits : (..., c)
        log η/(1 − η).
    rho : broadcasts to (..., c)
        Above 0 and below 1.
    Y : 0 and 1, broadcasts to (..., c)
    one_true : bool, broadcasts to (..., 1), optional
        Rows that have a true label for sure.

    Returns
    -------
    (...)
    """
    xp = array_namespace(logits)
    eta = sigmoid(logits)
    likely = eta + (1 - eta) * rho
    log_none = xp.log1p(-rho) - softplus(logits)
    total = xp.sum(xp.where(Y > 0, xp.log(likely), log_none), axis=-1)
    if one_true is None:
        return total
    after, before = _chance_of_one(posterior(eta, rho, Y)), _chance_of_one(eta)
    marked = xp.broadcast_to(one_true[..., 0], total.shape) & (after > 0)
    gain = xp.log(xp.where(marked, after, 1.0)) - xp.log(xp.where(marked, before, 1.0))
    return total + gain


def sigmoid(logits: Array) -> Array:
    """``1 / (1 + exp(−t))`` without overflow."""
    xp = array_namespace(logits)
    small = xp.exp(-xp.abs(logits))
    return xp.where(logits >= 0, 1 / (1 + small), small / (1 + small))


def softplus(logits: Array) -> Array:
    """``log(1 + exp(t))`` without overflow: ``−log(1 − η)``."""
    xp = array_namespace(logits)
    return xp.where(logits > 0, logits, 0.0) + xp.log1p(xp.exp(-xp.abs(logits)))


def _chance_of_one(probabilities: Array) -> Array:
    """``1 − P∅(p)``, exact for small probabilities too."""
    xp = array_namespace(probabilities)
    # log(0) at a certain label is the right answer: none is impossible.
    certain = xp.any(probabilities >= 1, axis=-1)
    log_none = xp.sum(xp.log1p(-xp.where(probabilities < 1, probabilities, 0.0)), axis=-1)
    return xp.where(certain, 1.0, -xp.expm1(log_none))
