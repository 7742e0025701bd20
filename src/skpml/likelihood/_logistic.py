"""Maximum penalised likelihood with linear logits: expectation–maximisation with Böhning's bound.

Letters: Z (n×r) features in the eigenbasis of their Gram matrix, e (r) its eigenvalues; Y (n×c) candidates; W (r×c)
coefficients and b (c) intercepts, logits T = ZW + 1bᵀ; B (c×c) label covariance; η, ρ and r as in
:mod:`skpml.likelihood._noise_model`. Several settings (γ, ρ) are solved together: they stand along the middle
axis, (n, s, c) and (r, s, c), so that a step is two large matrix products for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from array_api_compat import array_namespace, device

from skpml.likelihood._noise_model import given_one, log_likelihood, posterior, sigmoid
from skpml.linalg import Array, Spectrum

# Largest eigenvalue of the covariance of independent labels, and of labels of which at least one is true.
_CURVATURE, _CURVATURE_GIVEN_ONE = 0.25, 0.5
_LEAST_PRIOR = 1e-3


@dataclass(frozen=True, kw_only=True)
class LogisticSolution:
    """What a fit of s settings leaves behind.

    Attributes
    ----------
    coef : (r, s, c)
    intercept : (s, c)
    history : list of lists
        For each setting the penalised log-likelihood before each step.
    converged : list of bool
    """

    coef: Array
    intercept: Array
    history: list[list[float]]
    converged: list[bool]

    def logits(self, Z: Array) -> Array:
        """(n, s, c)."""
        return _product(Z, self.coef) + self.intercept


def solve_logistic(
    spectrum: Spectrum,
    Y: Array,
    *,
    gamma: Array,
    rho: Array,
    one_true: Array | None = None,
    covariance: Array | None = None,
    start: tuple[Array, Array] | None = None,
    momentum: bool = True,
    max_iter: int = 300,
    tol: float = 1e-6,
) -> LogisticSolution:
    """Maximise ``Σ log P(Y | x) − (γ/2) tr(W B⁻¹ Wᵀ)`` for each of s settings.

    With R the posterior and Λ = κe the bound on the curvature (κ = ¼, and ½ given one true label), a step is

        W ← W + (Zᵀ(R − η) − γ W B⁻¹) ⊘ (κ e + γ/B)        b ← b + mean(R − η)/κ

    in the eigenbasis of B. Without momentum no step lowers the objective. With it (Nesterov's), a setting whose objective
    falls starts its momentum anew.

    Parameters
    ----------
    spectrum : Spectrum
    Y : (n, c)
    gamma : (s,)
        γ, above 0.
    rho : (s, c)
        ρ, above 0 and below 1.
    one_true : bool (n, 1, 1), optional
        Rows that have a true label for sure; None: no row.
    covariance : (c, c), optional
        B; None is I.
    start : W (r, s, c) and b (s, c), optional
    momentum : bool
    max_iter, tol
        A setting is done where a step changes its objective by less than ``tol``, relative to it.
    """
    xp = array_namespace(Y)
    Z = spectrum.rows
    labels = Y[:, None, :]
    scale, basis = (None, None) if covariance is None else xp.linalg.eigh(covariance)
    shrink = gamma[None, :, None] / (1.0 if scale is None else scale)
    curvature = _CURVATURE if one_true is None else _CURVATURE_GIVEN_ONE
    step = 1 / (curvature * spectrum.values[:, None, None] + shrink)
    W, b = _start(Y, Z, rho) if start is None else start
    found_W, found_b = W * 1.0, b * 1.0
    history: list[list[float]] = [[] for _ in range(gamma.shape[0])]
    converged = [False] * gamma.shape[0]
    active = list(range(gamma.shape[0]))
    ahead_W, ahead_b, pace = W, b, [1.0] * gamma.shape[0]
    for iteration in range(max_iter):
        logits = _product(Z, ahead_W) + ahead_b
        turned = ahead_W if basis is None else ahead_W @ basis
        value = xp.sum(log_likelihood(logits, rho, labels, one_true), axis=0)
        value = value - 0.5 * xp.sum(shrink * turned**2, axis=(0, 2))
        eta = sigmoid(logits)
        target = posterior(eta, rho, labels)
        if one_true is not None:
            eta, target = given_one(eta, one_true), given_one(target, one_true)
        surprise = target - eta
        gradient = _product(Z.T, surprise)
        climb = ((gradient if basis is None else gradient @ basis) - shrink * turned) * step
        new_W = ahead_W + (climb if basis is None else climb @ basis.T)
        new_b = ahead_b + xp.mean(surprise, axis=0) / curvature
        ahead, kept = [], []
        for place, setting in enumerate(active):
            now = float(value[place])
            before = history[setting][-1] if history[setting] else None
            history[setting].append(now)
            if before is not None and abs(now - before) <= tol * abs(now):
                converged[setting] = True
                continue
            kept.append(place)
            if not momentum or (before is not None and now < before):
                pace[setting] = 1.0
            next_pace = (1 + (1 + 4 * pace[setting] ** 2) ** 0.5) / 2
            ahead.append((pace[setting] - 1) / next_pace if momentum else 0.0)
            pace[setting] = next_pace
        for place, setting in enumerate(active):
            if converged[setting] or iteration == max_iter - 1:
                found_W[:, setting, :], found_b[setting, :] = new_W[:, place, :], new_b[place, :]
        if not kept:
            break
        if len(kept) < len(active):
            chosen = xp.asarray(kept, device=device(Z))
            new_W, W = xp.take(new_W, chosen, axis=1), xp.take(W, chosen, axis=1)
            new_b, b = xp.take(new_b, chosen, axis=0), xp.take(b, chosen, axis=0)
            shrink, step = xp.take(shrink, chosen, axis=1), xp.take(step, chosen, axis=1)
            rho = xp.take(rho, chosen, axis=0)
            active = [active[place] for place in kept]
        share = xp.asarray(ahead, dtype=new_W.dtype, device=device(Z))[:, None]
        ahead_W, ahead_b = new_W + share * (new_W - W), new_b + share * (new_b - b)
        W, b = new_W, new_b
    return LogisticSolution(coef=found_W, intercept=found_b, history=history, converged=converged)


def label_covariance(R: Array, *, share: float = 0.7) -> Array:
    """B from posteriors (n×c): ``share`` of their correlation and the rest I. Labels that go together share strength."""
    xp = array_namespace(R)
    centred = R - xp.mean(R, axis=0)
    spread = xp.sqrt(xp.sum(centred**2, axis=0))
    unit = centred / xp.where(spread > 0, spread, 1.0)
    identity = xp.eye(R.shape[1], dtype=R.dtype, device=device(R))
    correlation = unit.T @ unit
    # A label that never varies goes with itself alone.
    correlation = correlation * (1 - identity) + identity
    return share * correlation + (1 - share) * identity


def _start(Y: Array, Z: Array, rho: Array) -> tuple[Array, Array]:
    """Every row alike: no coefficients, and logits of the average."""
    xp = array_namespace(Y)
    W = xp.zeros((Z.shape[1], *rho.shape), dtype=Z.dtype, device=device(Z))
    return W, prior_logits(Y, rho)


def prior_logits(Y: Array, rho: Array) -> Array:
    """log η/(1 − η) of a row that nothing is known of: what the candidates leave when the false ones are taken off."""
    xp = array_namespace(Y)
    rate = (xp.mean(Y, axis=0) - rho) / (1 - rho)
    rate = xp.where(rate < _LEAST_PRIOR, _LEAST_PRIOR, xp.where(rate > 0.99, 0.99, rate))
    return xp.log(rate / (1 - rate))


def _product(Z: Array, M: Array) -> Array:
    """``Z @ M`` for M of shape (k, s, c), as one matrix product."""
    return (Z @ M.reshape((M.shape[0], -1))).reshape((Z.shape[0], *M.shape[1:]))
