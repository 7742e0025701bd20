"""Linear support vector machines with the squared hinge, by Newton's method.

``½‖w‖² + C Σ max(0, 1 − y(w·x))²`` is quadratic as long as the same rows have a positive slack ``1 − y(w·x)``: these rows
are *active*. A Newton step goes to the minimum of the current piece; an exact line search makes every step descend, so
that the minimum of the whole is reached after finitely many steps [1]_. PARTICLE trains hundreds of machines, many of
them on fewer rows than features; their steps are computed from inner products of rows.

References
----------
.. [1] Keerthi, DeCoste. A Modified Finite Newton Method for Fast Solution of Large Scale Linear SVMs. JMLR 6:341–361,
   2005.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.optimize import brentq
from sklearn.exceptions import ConvergenceWarning

from skpml.baselines._common import Matrix

Mask = NDArray[np.bool_]

# Steps converge quadratically, so the error after a step this small, in decision values, is a rounding error.
_TOLERANCE = 1e-10
_MAX_STEPS = 1000
# A larger C is approached from about this one, tenfold each time, with a few steps: fewer steps in total.
_EASY_C = 1.0
_STEPS_ON_THE_WAY = 5
# Least ridge, relative to the trace: rounding errors leave the matrix positive definite.
_LEAST_RIDGE = 1e-14


class _Problem(ABC):
    """One machine, with unknowns v that determine w."""

    def __init__(self, rows: Matrix, signs: Matrix, to_values: Matrix) -> None:
        self.rows, self.signs, self.to_values = rows, signs, to_values
        self.least_ridge = _LEAST_RIDGE * float(np.einsum("ij,ij->", rows, rows))

    @abstractmethod
    def factorize(self, active: Mask, C: float) -> None:
        """Prepare steps with these active rows."""

    @abstractmethod
    def step(self, v: Matrix, slack: Matrix) -> Matrix:
        """Compute the step from v to the minimum of the piece."""

    @abstractmethod
    def derivatives(self, v: Matrix, step: Matrix, change: Matrix) -> tuple[float, float]:
        """Compute the first and second derivative of ½‖w‖² along a step; `change` is that of the decision values."""

    @abstractmethod
    def weights(self, v: Matrix) -> Matrix:
        """Compute w."""


class _Primal(_Problem):
    """The unknowns are w; for more rows than features.

    Often the active rows soon are fewer than the features. Then ``(I + 2CXᵀX)⁻¹r = r − Xᵀ(XXᵀ + I/2C)⁻¹Xr`` takes less
    time, where X are the active rows.
    """

    def __init__(self, rows: Matrix, signs: Matrix) -> None:
        super().__init__(rows, signs, rows)
        self.active = self.in_gram = np.ones(len(rows), dtype=np.bool_)
        self.gram = rows.T @ rows

    def factorize(self, active: Mask, C: float) -> None:
        self.active, self.C = active, C
        self.ridge = max(1 / (2 * C), self.least_ridge)
        n, d = int(np.count_nonzero(active)), self.rows.shape[1]
        n_changed = int(np.count_nonzero(active != self.in_gram))
        self.few = n**2 * d + n**3 / 3 < min(n, n_changed) * d**2 + d**3 / 3
        if self.few:
            self.part = self.rows[active]
            self.factor = _factorize(self.part @ self.part.T, self.ridge)
        else:
            self._update_gram(active, n_changed < n)
            self.factor = _factorize(self.gram.copy(), self.ridge)

    def _update_gram(self, active: Mask, by_changes: bool) -> None:
        if by_changes:
            for changed, sign in ((active & ~self.in_gram, 1), (self.in_gram & ~active, -1)):
                if changed.any():
                    part = self.rows[changed]
                    self.gram += sign * (part.T @ part)
        else:
            part = self.rows[active]
            self.gram = part.T @ part
        self.in_gram = active

    def step(self, v: Matrix, slack: Matrix) -> Matrix:
        descent = np.where(self.active, self.signs * slack, 0) @ self.rows - v / (2 * self.C)
        if self.few:
            return (descent - _solve(self.factor, self.part @ descent) @ self.part) / self.ridge
        return _solve(self.factor, descent)

    def derivatives(self, v: Matrix, step: Matrix, change: Matrix) -> tuple[float, float]:
        return float(v @ step), float(step @ step)

    def weights(self, v: Matrix) -> Matrix:
        return v


class _Dual(_Problem):
    """The unknowns combine rows, ``w = Σ_i v_i x_i``; for more features than rows."""

    def __init__(self, rows: Matrix, signs: Matrix) -> None:
        super().__init__(rows, signs, rows @ rows.T)

    def factorize(self, active: Mask, C: float) -> None:
        self.index = np.flatnonzero(active)
        self.gram = self.to_values.take(self.index, axis=0).take(self.index, axis=1)
        self.ridge = 1 / (2 * C)
        self.factor = _factorize(self.gram.copy(), max(self.ridge, self.least_ridge))

    def step(self, v: Matrix, slack: Matrix) -> Matrix:
        # At the minimum, v_i = 2C y_i slack_i for active rows, and 0 for others.
        step, inside = -v, v[self.index]
        residual = self.signs[self.index] - self.gram @ inside - self.ridge * inside
        step[self.index] = _solve(self.factor, residual)
        return step

    def derivatives(self, v: Matrix, step: Matrix, change: Matrix) -> tuple[float, float]:
        return float(v @ change), float(step @ change)

    def weights(self, v: Matrix) -> Matrix:
        return v @ self.rows


def train_machine(rows: Matrix, is_first: Mask, *, C: float) -> Matrix:
    """Minimize ``½‖w‖² + C Σ max(0, 1 − y(w·x))²`` over w, where y is 1 for the first class and −1 for the other."""
    signs = np.where(is_first, 1.0, -1.0)
    n, d = rows.shape
    problem = (_Primal if n > d else _Dual)(rows, signs)
    v, values = np.zeros(problem.to_values.shape[1]), np.zeros(n)
    easier = C / 10.0 ** np.arange(max(0, np.ceil(np.log10(C / _EASY_C))), 0, -1)
    for weight in easier:
        v, values, _ = _minimize(problem, v, values, weight, _STEPS_ON_THE_WAY)
    v, _, converged = _minimize(problem, v, values, C, _MAX_STEPS)
    if not converged:
        warnings.warn(
            f"A support vector machine did not converge with C={C:g}; reduce C.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return problem.weights(v)


def _minimize(
    problem: _Problem, v: Matrix, values: Matrix, C: float, max_steps: int
) -> tuple[Matrix, Matrix, bool]:
    """Take Newton steps from v; return v, decision values, and whether the steps converged."""
    signs = problem.signs
    previous: Mask | None = None
    for _ in range(max_steps):
        slack = 1 - signs * values
        active = slack > 0
        if previous is None or not np.array_equal(active, previous):
            problem.factorize(active, C)
        previous = active
        step = problem.step(v, slack)
        change = problem.to_values @ (v + step) - values
        if np.abs(change).max() <= _TOLERANCE * max(1.0, np.abs(values).max()):
            return v + step, values + change, True
        share = _search_line(slack, signs * change, problem.derivatives(v, step, change), C)
        v, values = v + share * step, values + share * change
    return v, values, False


def _search_line(slack: Matrix, gain: Matrix, norm: tuple[float, float], C: float) -> float:
    """Find the share of a step, at most 1, that minimizes the objective.

    The step changes slacks by ``−gain``; ``norm`` has the derivatives of ½‖w‖².
    """

    def derive(share: float) -> float:
        return norm[0] + share * norm[1] - 2 * C * float(gain @ np.maximum(0, slack - share * gain))

    if derive(1.0) <= 0 or derive(0.0) >= 0:
        return 1.0
    return float(brentq(derive, 0.0, 1.0))


def _factorize(matrix: Matrix, ridge: float) -> Matrix:
    """Compute the Cholesky factor of a symmetric matrix plus a ridge; overwrites the matrix."""
    matrix.flat[:: len(matrix) + 1] += ridge
    # LAPACK reads columns: the transpose, which is the same matrix, saves a copy.
    factor: Matrix = scipy.linalg.cholesky(matrix.T, lower=True, overwrite_a=True, check_finite=False)
    return factor


def _solve(factor: Matrix, right: Matrix) -> Matrix:
    solution: Matrix = scipy.linalg.cho_solve((factor, True), right, check_finite=False)
    return solution
