"""The same noise model with linear probabilities: ridge regression onto the posterior, each row judged by the others.

Letters as in :mod:`skpml.likelihood._logistic`. The scores S = ZW + 1bᵀ are the ridge regression of R, and R is
the posterior under them. A row must not confirm itself: what enters its posterior is its score in the regression without
it, which ridge regression gives for free,

    s_loo = (s − hR)/(1 − h)        h_i = Σ_k Z_ik²/(e_k + γ) + 1/n.
"""

from __future__ import annotations

from dataclasses import dataclass

from array_api_compat import array_namespace, device

from skpml.likelihood._noise_model import given_one, posterior
from skpml.linalg import Array, Spectrum, leverages, ridge_scores

# Scores are taken for probabilities; nothing is certain.
_LEAST_PROBABILITY = 3e-3


@dataclass(frozen=True, kw_only=True)
class LeastSquaresSolution:
    """What a fit of s settings leaves behind.

    Attributes
    ----------
    coef : (r, s, c)
    intercept : (s, c)
    left_out : (n, s, c)
        Scores of each row in the regression without it, between 0 and 1.
    targets : (n, s, c)
        R.
    history : list of list of float
        For each setting the largest change of R in each round.
    converged : list of bool
    """

    coef: Array
    intercept: Array
    left_out: Array
    targets: Array
    history: list[list[float]]
    converged: list[bool]


def solve_least_squares(
    spectrum: Spectrum,
    Y: Array,
    *,
    gamma: Array,
    rho: Array,
    one_true: Array | None = None,
    max_iter: int = 60,
    tol: float = 1e-3,
) -> LeastSquaresSolution:
    """Alternate ridge regression onto R and the posterior R under the scores of rows left out.

    Parameters
    ----------
    spectrum : Spectrum
    Y : (n, c)
    gamma : (s,)
        Ridge weight, above 0.
    rho : (s, c)
        ρ, between 0 and 1.
    one_true : bool (n, 1, 1), optional
        Rows that have a true label for sure; None: no row.
    max_iter, tol
        A setting is done where no entry of R changes by ``tol`` or more.
    """
    xp = array_namespace(Y)
    labels = Y[:, None, :]
    mean = xp.mean(Y, axis=0)
    left = (mean - rho) / xp.where(mean > 0, mean * (1 - rho), 1.0)
    R = labels * xp.where(left < 0.05, 0.05, xp.where(left > 1, 1.0, left))
    n_settings = gamma.shape[0]
    history: list[list[float]] = [[] for _ in range(n_settings)]
    active = list(range(n_settings))
    h = leverages(spectrum, gamma)
    for _ in range(max_iter):
        chosen = xp.asarray(active, device=device(Y))
        old, noise = xp.take(R, chosen, axis=1), xp.take(rho, chosen, axis=0)
        weights, shares = xp.take(gamma, chosen, axis=0), xp.take(h, chosen, axis=1)
        left_out = ridge_scores(spectrum, old, weights, shares)[2]
        new = posterior(_as_probability(left_out), noise, labels)
        if one_true is not None:
            new = given_one(new, one_true)
        change = xp.max(xp.abs(new - old), axis=(0, 2))
        for place, setting in enumerate(active):
            R[:, setting, :] = new[:, place, :]
            history[setting].append(float(change[place]))
        active = [setting for setting in active if history[setting][-1] >= tol]
        if not active:
            break
    W, b, left_out = ridge_scores(spectrum, R, gamma, h)
    return LeastSquaresSolution(
        coef=W,
        intercept=b,
        left_out=_as_probability(left_out),
        targets=R,
        history=history,
        converged=[bool(changes) and changes[-1] < tol for changes in history],
    )


def _as_probability(scores: Array) -> Array:
    xp = array_namespace(scores)
    low, high = _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY
    return xp.where(scores < low, low, xp.where(scores > high, high, scores))
