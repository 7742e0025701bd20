"""NLR: noisy labels are removed where a classifier of candidates and one of non-candidates agree on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from skpml._docstrings import fill_docstring
from skpml.base import MethodFacts
from skpml.baselines._common import (
    Array,
    History,
    MappedClassifier,
    Matrix,
    RelativeThreshold,
    append,
    leave_out_lowest,
    square,
)
from skpml.linalg import one_blas, ridge_factor


def solve(
    X: Matrix, C: Matrix, *, lam: float, beta: float = 100.0, gamma: float = 10.0, n_iter: int = 100
) -> Bunch:
    """Lower NLR's objective over W₁, W₂ and the binary noise N ≤ C in turns, from zero on.

    The steps in W₁ and W₂ need the rows only as XᵀX, Xᵀ1 and Xᵀ(C − N); the products XᵀXW follow from the equations that
    W solves. The step in N needs X(W₁ − W₂).
    """
    with one_blas(X):
        ridge, rows = gamma / (1 + beta), leave_out_lowest(X)
        solve_ridge = ridge_factor(X, ridge=ridge)
        ones = X.sum(axis=0)[:, None]
        is_candidate = C > 0
        n_cells, N = C.size, np.zeros_like(C)
        by_label = rows.T @ C
        W2 = gram_W2 = np.zeros_like(by_label)
        history: History = {}
        for _ in range(n_iter):
            right = (by_label + beta * (ones - gram_W2)) / (1 + beta)
            W1 = solve_ridge(right)
            gram_W1 = right - ridge * W1
            right = (ones - by_label + beta * (ones - gram_W1)) / (1 + beta)
            W2 = solve_ridge(right)
            gram_W2 = right - ridge * W2
            difference = rows @ (W1 - W2)
            last_N, N = N, (is_candidate & (0.5 * (1 - difference) > lam / 4)).astype(C.dtype)
            if not np.array_equal(N, last_N):
                by_label = rows.T @ (C - N)
            kept = float(C.sum() - N.sum())
            both, gram_both = W1 + W2, gram_W1 + gram_W2
            losses = {
                "candidates": float(np.vdot(W1, gram_W1 - 2 * by_label)) + kept,
                "non_candidates": float(np.vdot(W2, gram_W2 - 2 * (ones - by_label))) + n_cells - kept,
                "sum_to_one": beta * (float(np.vdot(both, gram_both - 2 * ones)) + n_cells),
                "coefficients": gamma * (square(W1) + square(W2)),
                "noise": (lam - 2) * float(N.sum()),
            }
            append(history, **losses, objective=sum(losses.values()))
        positive, negative = rows @ W1, rows @ W2
    return Bunch(
        coef=W1,
        complement_coef=W2,
        positive=positive,
        negative=negative,
        noise=N,
        history=history,
        converged=np.array_equal(N, last_N),
    )


@fill_docstring
@dataclass(kw_only=True, repr=False, eq=False)
class NLR(RelativeThreshold, MappedClassifier):
    """Noisy label removal (NLR).

    Fits one linear model W₁ to the candidates C and a second one, W₂, to the non-candidates, which should add up to one,
    and removes candidates as noise N where the second outweighs the first. Minimizes by alternating updates

        ‖XW₁ − (C − N)‖² + ‖XW₂ − (1 − C + N)‖² + β‖XW₁ + XW₂ − 1‖² + γ(‖W₁‖² + ‖W₂‖²) + λ‖N‖₁

    over W₁, W₂ and N (0 or 1, and 0 outside the candidates), where X are the mapped features. Only W₁ predicts.

    The steps, their order, the start from zero, the number of iterations and the weights are those of the authors'
    release, which has no stop rule. Two things differ: features are scaled, and there are other feature maps.

    Parameters
    ----------
    lam : float, default=2.0
        Weight λ of the noise: a candidate is removed where ½(1 − XW₁ + XW₂) is above λ/4, which is where its score is
        below about 1 − λ/4. The authors set it by hand (2.1 on birds, 1.7 on music_style); 2, the default, removes
        candidates with scores below about ½, and from 4 on hardly any is removed.
    beta : float, default=100.0
        Weight β of the sum to one.
    gamma : float, default=10.0
        Weight γ of the squared coefficients.
    %(linear_feature_map)s
    %(map_anchors)s
    %(relative_threshold)s
    n_iter : int, default=100
        Number of iterations. It is part of the method: see the notes.
    %(on_empty)s
    %(anchor_random_state)s

    Attributes
    ----------
    confidences_ : ndarray of shape (n_rows, n_labels)
        ½(1 + XW₁ − XW₂), clipped to [0, 1], and 0 outside the candidates.
    noise_ : ndarray of bool of shape (n_rows, n_labels)
        N: candidates that were removed.
    coef_, complement_coef_ : ndarrays of shape (n_mapped_features, n_labels)
        W₁ and W₂; scores are ``mapped @ coef_``.
    %(objective_history)s
    n_iter_ : int
        Number of iterations.
    converged_ : bool
        Whether the last iteration left N as it was.
    feature_map_ : Pipeline
        Scales and maps the features.
    %(fitted)s

    Notes
    -----
    For a given N the optimum is a ridge regression: W₁ − W₂ is that of 2(C − N) − 1 with weight γ, and W₁ + W₂ that of 1
    with weight γ/(1 + 2β). The method is therefore ridge regression that drops the candidates which it scores low, and
    is fitted again. Taking turns between W₁ and W₂ approaches that optimum slowly, by (1 − (β/(1 + β))²) of the way per
    iteration, which is 2 % with the published β: scores of candidates sink from 1 while the worst of them are removed,
    and after 100 iterations they have come about 87 % of the way. The published number of iterations is thus an early
    stop, and part of the method: each removal lowers scores and leads to more, and 1000 iterations remove all
    candidates of the emotions data.

    The step for N takes the minimum over real numbers for N and replaces what is above 0 by 1. It is the minimum over
    N in {0, 1} if λ − 2 stands for λ in the objective. ``history_`` counts the noise so; then no step raises the
    objective.

    With n rows, h mapped features and c labels, a fit takes O(nh² + h³) once, O(nhc + h²c) per iteration, and O(nh + h² +
    nc) memory. Everything is computed in double precision.

    %(reference_and_data)s
    >>> from skpml.baselines import NLR
    >>> model = NLR(lam=1.7).fit(X, candidates)
    >>> is_false = (candidates == 1) & (truth == 0)
    >>> bool(is_false[model.noise_].mean() > is_false[candidates == 1].mean())
    True
    """

    lam: float = 2.0
    beta: float = 100.0
    gamma: float = 10.0
    feature_map: Any = "linear"
    n_anchors: int | None = None
    threshold: float | str = "auto"
    n_iter: int = 100
    on_empty: str = "warn"
    random_state: Any = None

    _facts = MethodFacts(
        name="nlr",
        title="NLR",
        kind="baseline",
        summary="two classifiers, of candidates and of non-candidates, decide which candidates to remove",
        confidences=True,
        source="release",
        year=2024,
        reference="Noisy Label Removal for Partial Multi-Label Learning. KDD 2024.",
        comparison_threshold="relative",
    )

    def _fit(self, X: Any, Y: Array) -> Array:
        weights = {name: float(getattr(self, name)) for name in ("lam", "beta", "gamma")}
        solution = solve(self._map(X), Y.astype(np.float64, copy=False), n_iter=self.n_iter, **weights)
        self.coef_ = solution.coef.astype(X.dtype)
        self.complement_coef_ = solution.complement_coef.astype(X.dtype)
        self.noise_: Array = solution.noise > 0
        confidences = np.clip(0.5 * (1 + solution.positive - solution.negative), 0, 1)
        self.confidences_ = confidences.astype(X.dtype) * Y
        self._record(solution.history, converged=solution.converged)
        self._set_rule()
        return self._subtract_cut(solution.positive.astype(X.dtype, copy=False))

    def _scores(self, X: Any) -> Array:
        return self._subtract_cut(super()._scores(X))

    def _targets(self) -> Array:
        # Candidates that were not removed; the confidences are scores themselves.
        return (~self.noise_).astype(np.float64)
