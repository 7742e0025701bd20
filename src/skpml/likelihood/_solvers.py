"""Solvers of the likelihood, for many settings at a time.

Letters: Z (n×r) features in the eigenbasis of their Gram matrix, e (r) its eigenvalues; Y (n×c) candidates; W (r×c)
coefficients and b (c) intercepts; B (c×c) label covariance; η, ρ and r as in :mod:`skpml.likelihood._noise`. Settings
(γ, ρ) are on the middle axis, (n, s, c) and (r, s, c), so that a step is two large matrix products for all of them.

**Logistic**: the logits T = ZW + 1bᵀ are linear; penalized maximum likelihood by expectation–maximization with Böhning's
bound on the curvature, and scaled by the curvature itself later on.

**Least squares**: the probabilities S = ZW + 1bᵀ are linear; they are the ridge regression of targets R, and R is the
posterior under S. A row must not confirm itself: its posterior uses its score in the regression without the row, which
ridge regression gives at no cost (:func:`skpml.linalg.ridge_scores`).
"""

from __future__ import annotations

from copy import copy

from array_api_compat import array_namespace, device, is_numpy_namespace
from sklearn.utils import Bunch, gen_batches

from skpml.likelihood._noise import curvature, given_one, likelihood_and_slope, posterior
from skpml.linalg import Array, Eigenbasis, leverages, ridge_scores

# Largest eigenvalue of the covariance of independent labels, and of labels of which at least one is true.
_CURVATURE, _CURVATURE_GIVEN_ONE = 0.25, 0.5
# Iteration after which variables are scaled by the curvature there; then each time after twice as many.
_FIRST_SCALING = 20
# Bounds of the probability of a label in a row that nothing is known of.
_LEAST_PRIOR, _LARGEST_PRIOR = 1e-3, 0.99
# Linear scores are clipped to probabilities; nothing is certain.
_LEAST_PROBABILITY = 3e-3
# A least squares step that turns back is shortened by the first factor, others are lengthened by the second.
_SHORTEN, _LENGTHEN = 0.7, 1.1
# Cells whose work arrays fit in the cache; larger ones are slower to allocate than to compute.
_CELLS_AT_ONCE = 1 << 16


def solve_logistic(
    spectrum: Eigenbasis,
    Y: Array,
    *,
    gamma: Array,
    rho: Array,
    one_true: Array | None = None,
    covariance: Array | None = None,
    start: tuple[Array, Array] | None = None,
    memory: int = 10,
    max_iter: int = 1000,
    tol: float = 1e-5,
) -> Bunch:
    """Maximize ``Σ log P(Y | x) − (γ/2) tr(W B⁻¹ Wᵀ)`` for each of s settings.

    With R the posterior and κ the bound on the curvature (¼, and ½ given one true label), a plain step is

        W ← W + (Zᵀ(R − η) − γ W B⁻¹) ⊘ (κ e + γ/B)        b ← b + mean(R − η)/κ

    in the eigenbasis of B; it never lowers the objective. In variables scaled so that a plain step is the gradient, steps
    are those of L-BFGS; one that lowers the objective is undone, and a plain step is taken.

    The bound is far above the curvature where labels are rare or noise hides them. So after 20, 40, 80, ... iterations
    (and at once from a given start) the variables are scaled anew, by the diagonal of the curvature there. A plain step
    is then no longer sure to raise the objective; one that lowers it is undone too, and the next is half as long.

    ``gamma`` (s) is above 0, ``rho`` (s, c) between 0 and 1; ``one_true`` (n, 1, 1) marks rows that have a true label
    (None: no row is assumed to); ``covariance`` (c, c) is B (None: I); ``start`` are W (r, s, c) and b (s, c) to begin
    with (None: no row is told from another); L-BFGS uses ``memory`` earlier steps, and 0 takes plain steps only.
    A setting has converged when no entry of the gradient of its objective, divided by n, exceeds ``tol``.

    Returns ``coef`` (r, s, c), ``intercept`` (s, c), ``converged`` (s) and ``history``, for each setting the penalized
    log-likelihood before each step.
    """
    xp, n_settings = array_namespace(Y), gamma.shape[0]
    objective = _Objective(spectrum, Y, gamma, rho, one_true, covariance)
    x = xp.zeros((spectrum.values.shape[0] + 1, *rho.shape), dtype=Y.dtype, device=device(Y))
    if start is not None:
        x = objective.scale(*start)
    W, b = objective.parameters(x)
    history: list[list[float]] = [[] for _ in range(n_settings)]
    converged, active = [False] * n_settings, list(range(n_settings))
    value, gradient, steepest = objective.evaluate(x)
    steps = _Steps(memory, x)
    next_scaling = _FIRST_SCALING if start is None else 0
    for iteration in range(max_iter):
        kept = []
        for place, setting in enumerate(active):
            history[setting].append(float(value[place]))
            converged[setting] = float(steepest[place]) <= tol
            if not converged[setting] and iteration < max_iter - 1:
                kept.append(place)
        if len(kept) < len(active):
            found_W, found_b = objective.parameters(x)
            for place, setting in enumerate(active):
                W[:, setting, :], b[setting, :] = found_W[:, place, :], found_b[place, :]
            if not kept:
                break
            chosen = xp.asarray(kept, device=device(Y))
            active = [active[place] for place in kept]
            objective, steps = objective.take(chosen), steps.take(chosen)
            x, gradient = xp.take(x, chosen, axis=1), xp.take(gradient, chosen, axis=1)
            value, steepest = xp.take(value, chosen), xp.take(steepest, chosen)
        if memory and iteration == next_scaling:
            objective, x, gradient = objective.scale_by_curvature(x, gradient)
            steps = _Steps(memory, x)
            next_scaling = max(_FIRST_SCALING, 2 * iteration)
        step = steps.direction(gradient)
        new_value, new_gradient, new_steepest = objective.evaluate(x + step)
        # Rounding may lower the objective in a plain step at the maximum.
        rounding = xp.where(steps.plain, xp.finfo(Y.dtype).eps * xp.abs(value), 0.0)
        accepted = new_value >= value - rounding
        wide = accepted[:, None]
        steps.update(step, gradient - new_gradient, accepted)
        x, gradient = xp.where(wide, x + step, x), xp.where(wide, new_gradient, gradient)
        value, steepest = xp.where(accepted, new_value, value), xp.where(accepted, new_steepest, steepest)
    return Bunch(coef=W, intercept=b, history=history, converged=converged)


class _Objective:
    """The penalized log-likelihood in scaled variables (r+1, s, c); the last row is that of the intercepts."""

    def __init__(
        self,
        spectrum: Eigenbasis,
        Y: Array,
        gamma: Array,
        rho: Array,
        one_true: Array | None,
        B: Array | None,
    ) -> None:
        xp = array_namespace(Y)
        identity = xp.eye(Y.shape[1], dtype=Y.dtype, device=device(Y))
        self.basis, self.shrink, bound = rotate_penalty(identity if B is None else B, gamma, one_true)
        self.spectrum, self.labels, self.rho = spectrum, spectrum.to_rows(Y[:, None, :]), rho
        self.one_true = None if one_true is None else spectrum.to_rows(one_true)
        self.start = prior_logits(Y, rho)
        self.unit = 1 / xp.sqrt(bound * spectrum.values[:, None, None] + self.shrink)
        self.unit_b = xp.full_like(rho, (bound * Y.shape[0]) ** -0.5)

    def take(self, settings: Array) -> _Objective:
        """Return the objective of some settings."""
        xp, new = array_namespace(settings), copy(self)
        new.rho, new.start = xp.take(self.rho, settings, axis=0), xp.take(self.start, settings, axis=0)
        new.shrink, new.unit = xp.take(self.shrink, settings, axis=1), xp.take(self.unit, settings, axis=1)
        new.unit_b = xp.take(self.unit_b, settings, axis=0)
        return new

    def scale_by_curvature(self, x: Array, gradient: Array) -> tuple[_Objective, Array, Array]:
        """Return the objective in variables in which its curvature at x is about 1, and x and the gradient in them."""
        xp, new = array_namespace(x), copy(self)
        W, b = self.parameters(x)
        rho = self.rho
        of_scores, of_intercept = self.spectrum.sum_curvature(
            W,
            lambda scores, labels, one_true: _curvature_by_blocks(scores + b, rho, labels, one_true),
            self.labels,
            self.one_true,
        )
        new.unit = 1 / xp.sqrt(of_scores @ self.basis**2 + self.shrink)
        # A label that is certain everywhere has no curvature.
        new.unit_b = 1 / xp.sqrt(xp.clip(of_intercept, min=1.0))
        ratio = xp.concat([new.unit / self.unit, (new.unit_b / self.unit_b)[None, ...]])
        return new, x / ratio, gradient * ratio

    def parameters(self, x: Array) -> tuple[Array, Array]:
        """Return W and b."""
        return (x[:-1, ...] * self.unit) @ self.basis.T, self.start + x[-1, ...] * self.unit_b

    def scale(self, W: Array, b: Array) -> Array:
        """Return the variables of W and b."""
        rotated = (W @ self.basis) / self.unit
        return array_namespace(W).concat([rotated, ((b - self.start) / self.unit_b)[None, ...]])

    def evaluate(self, x: Array) -> tuple[Array, Array, Array]:
        """Return the value (s), the gradient, and the largest entry (s) of the unscaled gradient divided by n."""
        xp = array_namespace(x)
        W, b = self.parameters(x)
        # The function may be sent to where the rows are, and this object should not.
        rotated, rho = x[:-1, ...] * self.unit, self.rho

        def find_slope(
            scores: Array, labels: Array, one_true: Array | None
        ) -> tuple[Array, tuple[Array, Array]]:
            value, slope = _slope_by_blocks(scores + b, rho, labels, one_true)
            # In single precision, the rounding of a sum over rows would hide what late steps gain.
            return slope, (xp.sum(value, axis=0, dtype=xp.float64), xp.sum(slope, axis=0))

        slope_W, (value, slope_b) = self.spectrum.visit(W, find_slope, self.labels, self.one_true)
        penalty = xp.sum(self.shrink * rotated**2, axis=(0, 2), dtype=xp.float64)
        value, slope_b = value - 0.5 * penalty, slope_b[None, ...]
        slope_W = slope_W @ self.basis - self.shrink * rotated
        steepest = xp.max(xp.abs(xp.concat([slope_W, slope_b])), axis=(0, 2)) / self.spectrum.n_rows
        return value, xp.concat([slope_W * self.unit, slope_b * self.unit_b]), steepest


def rotate_penalty(B: Array, gamma: Array, one_true: Array | None) -> tuple[Array, Array, float]:
    """Return the eigenbasis of B, the weights γ/B (1, s, c) in it, and the bound κ on the curvature."""
    scale, basis = array_namespace(B).linalg.eigh(B)
    return basis, gamma[None, :, None] / scale, _CURVATURE if one_true is None else _CURVATURE_GIVEN_ONE


class _Steps:
    """Directions of L-BFGS for each of s settings, from the last accepted steps."""

    def __init__(self, memory: int, like: Array) -> None:
        xp, where, n_settings = array_namespace(like), device(like), like.shape[1]
        self.memory = memory
        self.pairs: list[tuple[Array, Array, Array]] = []
        self.scale = xp.ones(n_settings, dtype=like.dtype, device=where)
        # Settings without earlier steps, which take a plain one.
        self.plain = xp.ones(n_settings, dtype=xp.bool, device=where)

    def take(self, settings: Array) -> _Steps:
        """Return the directions of some settings."""
        xp, new = array_namespace(settings), copy(self)
        new.scale, new.plain = xp.take(self.scale, settings), xp.take(self.plain, settings)
        new.pairs = [
            (xp.take(s, settings, axis=1), xp.take(y, settings, axis=1), xp.take(weight, settings))
            for s, y, weight in self.pairs
        ]
        return new

    def direction(self, gradient: Array) -> Array:
        """Return the gradient times the inverse curvature that the last steps show."""
        q, alphas = gradient, []
        for s, y, weight in reversed(self.pairs):
            alphas.append(weight * _dot(s, q))
            q = q - alphas[-1][:, None] * y
        q = self.scale[:, None] * q
        for (s, y, weight), alpha in zip(self.pairs, reversed(alphas), strict=True):
            q = q + (alpha - weight * _dot(y, q))[:, None] * s
        return q

    def update(self, step: Array, change: Array, accepted: Array) -> None:
        """Note a step and the change of the gradient; forget all steps of a setting whose step was not accepted.

        Its next step is a plain one, half as long as the last if that was plain too.
        """
        xp = array_namespace(step)
        if not self.memory:
            return
        product, square = _dot(step, change), _dot(change, change)
        # Only steps along which the objective curves down keep the directions uphill.
        usable = accepted & (product > 1e-10 * square)
        weight = xp.where(usable, 1 / xp.where(usable, product, 1.0), 0.0)
        self.pairs = [(s, y, xp.where(accepted, old, 0.0)) for s, y, old in self.pairs]
        self.pairs = [*self.pairs, (step, change, weight)][-self.memory :]
        scale = xp.where(usable, product / xp.where(usable, square, 1.0), self.scale)
        self.scale = xp.where(accepted, scale, xp.where(self.plain, self.scale / 2, 1.0))
        self.plain = ~accepted | (self.plain & ~usable)


def solve_least_squares(
    spectrum: Eigenbasis,
    Y: Array,
    *,
    gamma: Array,
    rho: Array,
    one_true: Array | None = None,
    start: Array | None = None,
    max_iter: int = 1000,
    tol: float = 1e-5,
) -> Bunch:
    """Alternate ridge regression onto R and the posterior R under held-out scores, for each of s settings.

    R solves R = F(R). The Jacobian of F has real eigenvalues (without ``one_true``): it is a diagonal matrix times a
    symmetric one. Small γ makes eigenvalues below −1, and R ← F(R) then swings between two states. So a setting whose
    step turns back takes shorter steps, R ← R + θ (F(R) − R), which contract those directions.

    Parameters are those of :func:`solve_logistic`; ``start`` is R (n, s, c) to begin with.

    A setting has converged when no entry of F(R) − R exceeds ten times
    ``tol``: a target is the probability of one cell, where a gradient is a mean over rows. ``history`` is the largest of
    these entries before each step; ``targets`` is R, and ``held_out`` the probabilities of rows in the regression without
    them, both (n, s, c).
    """
    xp, tol, labels = array_namespace(Y), 10 * tol, Y[:, None, :]
    mean = xp.mean(Y, axis=0)
    prior = (mean - rho) / xp.where(mean > 0, mean * (1 - rho), 1.0)
    R = labels * xp.clip(prior, 0.05, 1.0) if start is None else xp.asarray(start, copy=True)
    n_settings = gamma.shape[0]
    history: list[list[float]] = [[] for _ in range(n_settings)]
    length = [1.0] * n_settings
    active, last = list(range(n_settings)), None
    h = leverages(spectrum, gamma)
    for _ in range(max_iter):
        chosen = xp.asarray(active, device=device(Y))
        old, noise = xp.take(R, chosen, axis=1), xp.take(rho, chosen, axis=0)
        weights, shares = xp.take(gamma, chosen, axis=0), xp.take(h, chosen, axis=1)
        new = _posterior_by_blocks(ridge_scores(spectrum, old, weights, shares)[2], noise, labels, one_true)
        change = new - old
        largest = xp.max(xp.abs(change), axis=(0, 2))
        agreement = None if last is None else xp.sum(change * last, axis=(0, 2))
        kept = []
        for place, setting in enumerate(active):
            if agreement is not None:
                length[setting] = adapt_length(length[setting], turned=float(agreement[place]) < 0)
            R[:, setting, :] = old[:, place, :] + length[setting] * change[:, place, :]
            history[setting].append(float(largest[place]))
            if history[setting][-1] > tol:
                kept.append(place)
        active = [active[place] for place in kept]
        if not active:
            break
        last = xp.take(change, xp.asarray(kept, device=device(Y)), axis=1)
    W, b, held_out = ridge_scores(spectrum, R, gamma, h)
    converged = [changes[-1] <= tol for changes in history]
    return Bunch(
        coef=W, intercept=b, history=history, converged=converged, targets=R, held_out=clip_linear(held_out)
    )


def targets_of(
    spectrum: Eigenbasis, Y: Array, W: Array, b: Array, *, rho: Array, one_true: Array | None
) -> Array:
    """Return the posterior (n, s, c) under linear scores ``Z W + b``, to start least squares from."""
    return _posterior_by_blocks(spectrum.multiply(W) + b, rho, Y[:, None, :], one_true)


def label_covariance(R: Array, *, share: float = 0.7) -> Array:
    """Return B: the correlation of the columns of R (n×c), shrunk towards I."""
    xp = array_namespace(R)
    centered = R - xp.mean(R, axis=0)
    spread = xp.sqrt(xp.sum(centered**2, axis=0))
    unit = centered / xp.where(spread > 0, spread, 1.0)
    identity = xp.eye(R.shape[1], dtype=R.dtype, device=device(R))
    # A label that never varies correlates with itself alone.
    correlation = (unit.T @ unit) * (1 - identity) + identity
    return share * correlation + (1 - share) * identity


def prior_logits(Y: Array, rho: Array) -> Array:
    """Return log η/(1 − η) of a row that nothing is known of: the share of candidates less the false ones."""
    xp = array_namespace(Y)
    rate = xp.clip((xp.mean(Y, axis=0) - rho) / (1 - rho), _LEAST_PRIOR, _LARGEST_PRIOR)
    return xp.log(rate / (1 - rate))


def _slope_by_blocks(logits: Array, rho: Array, labels: Array, one_true: Array | None) -> tuple[Array, Array]:
    """Return :func:`likelihood_and_slope`, which takes the place of the logits."""
    values = []
    for rows in _blocks(logits):
        marked = None if one_true is None else one_true[rows, ...]
        value, logits[rows, ...] = likelihood_and_slope(logits[rows, ...], rho, labels[rows, ...], marked)
        values.append(value)
    return array_namespace(logits).concat(values), logits


def _curvature_by_blocks(logits: Array, rho: Array, labels: Array, one_true: Array | None) -> Array:
    """Return :func:`curvature`, which takes the place of the logits."""
    for rows in _blocks(logits):
        marked = None if one_true is None else one_true[rows, ...]
        logits[rows, ...] = curvature(logits[rows, ...], rho, labels[rows, ...], marked)
    return logits


def _posterior_by_blocks(scores: Array, rho: Array, labels: Array, one_true: Array | None) -> Array:
    """Return the posterior under linear scores, which takes their place."""
    for rows in _blocks(scores):
        new = posterior(clip_linear(scores[rows, ...]), rho, labels[rows, ...])
        scores[rows, ...] = new if one_true is None else given_one(new, one_true[rows, ...])
    return scores


def _blocks(cells: Array) -> list[slice]:
    """Cut rows (n, s, c) into blocks for the cache of a processor; an accelerator gets all of them."""
    if not is_numpy_namespace(array_namespace(cells)):
        return [slice(0, cells.shape[0])]
    return list(gen_batches(cells.shape[0], max(1, _CELLS_AT_ONCE // (cells.shape[1] * cells.shape[2]))))


def _dot(a: Array, b: Array) -> Array:
    """Return the inner product for each setting, (s,)."""
    return array_namespace(a).sum(a * b, axis=(0, 2))


def adapt_length(length: float, *, turned: bool) -> float:
    """Return the length of the next step of least squares, as a share of the whole."""
    return min(1.0, length * (_SHORTEN if turned else _LENGTHEN))


def clip_linear(scores: Array) -> Array:
    """Take linear scores for probabilities, which are neither 0 nor 1."""
    return array_namespace(scores).clip(scores, _LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
