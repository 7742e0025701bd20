"""PML-ND with a scikit-learn face."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from skpml._validation import check_parameters
from skpml.base import BasePMLClassifier, MethodFacts
from skpml.baselines._pml_nd.disambiguation import credible_labels, innocence, propagate
from skpml.baselines._pml_nd.solver import Weights, solve
from skpml.features import RangeScaler
from skpml.graph import reconstruction_weights

__all__ = ["PMLND"]


class PMLND(BasePMLClassifier):
    """Disambiguation guided by negative labels and noise (PML-ND).

    In two stages. First, what is known for certain, the labels that are *not* candidates, tells how little each
    candidate looks like a negative; that is blended with what the rows that best reconstruct a row say of its
    candidates, over and over until it settles, and each candidate is called credible (T) or noise (N = Y − T).
    Second, one linear classifier W is fitted to the credible labels and another, Hn, to the noise, kept apart from
    each other:

        ‖XW − T‖² + ‖XHn − N‖² + λ‖Hn‖₁ + β‖W‖₂,₁ + (γ/2) Σ_k w_kᵀ diag(s_k) w_k + δ tr(R Wᵀ Hn)

    with R the cosine distances between credible and noise labels, and s_k the spread of each feature within the rows
    that have label k and those that lack it, less the distance of their means.

    Made from the authors' released code, not from the text of the paper. Three things differ from the release by
    default, because its form is ill-posed:

    * the step in W is the exact minimiser: the released one (``solver="multiplicative"``) multiplies by ratios that
      presume positive numbers, which they are not, and its objective jumps up and down by orders of magnitude;
    * s_k has the squares that the released sums lack (without them all but the negative part vanishes), and is cut
      off at 0; the step in Hn has the gradient of the objective above (the released form of both comes with
      ``solver="multiplicative"``);
    * features are scaled to [0, 1], in both stages, as the reconstruction by non-negative weights suggests, and the
      classifiers have an intercept; the release has neither.

    Two more repairs are offered but are not the default, ``damping="identity"`` and ``credible="share"``: see below.

    Parameters
    ----------
    beta, lam, gamma, delta : float, default=4, 0.25, 1/64, 1/64
        Weights β (few features in W), λ (few entries in Hn), γ (spread of the features within a label), δ (W and Hn
        apart), each at least 0. Worth choosing from 1/64, 1/4, 1 and 4 for the data at hand. Where δ outweighs the
        rest there is no minimum, and the fit ends at the limit of iterations, with a warning.
    eta : float, default=10
        Ridge of the least-squares fits from which W and Hn start.
    n_neighbors : int, default=10
        Rows from which a row is reconstructed; all others, where there are fewer.
    credible : float or "share", default=0.25
        Candidates with a higher confidence are credible, and in any case the most confident one of each row (where
        several tie, all of them: nothing tells them apart). The confidences of a row sum to 1, so that 0.25 leaves at
        most three credible labels a row, however many are true; "share" is 0.25 up to three candidates, and 0.75/m for
        rows of m > 3 candidates. Where rows have many true labels, "share" loses fewer of them.
    damping : {"ones", "identity"}, default="ones"
        What is added to XᵀX in the equation for the negative labels: half of a matrix of ones, as released, which leaves
        an indefinite, at times nearly singular equation; or half of the identity, with which it is a convex problem's.
    solver : {"exact", "multiplicative"}, default="exact"
        How the second stage is solved. "multiplicative" is as released; it may run away, with a warning, and then keeps
        the last finite classifier.
    threshold : float, "auto" or "non-candidates", default="auto"
        Scores above it are predicted; for the names see :mod:`skpml.base`. 0.5 is used in comparisons.
    max_iter : int, default=50
    tol : float, default=1e-3
        Stop where the objective changes relatively by less.
    on_empty : {"warn", "raise", "ignore"}, default="warn"
        What to do about rows without candidates (taken as having no label) and labels that are nobody's candidate.

    Attributes
    ----------
    confidences_ : ndarray of shape (n, c)
        Propagated confidences of the candidates; each row sums to 1 (0 for a row without candidates).
    credible_labels_ : ndarray of shape (n, c)
        T, of 0 and 1.
    coef_, intercept_ : ndarrays of shape (d, c) and (c,)
        W, for features scaled to [0, 1].
    noise_coef_ : ndarray of shape (d + 1, c)
        Hn, the last row for the constant.
    n_propagations_ : int
    threshold_ : float
    classes_ : ndarray of shape (c,)
    history_ : dict of ndarrays
        The objective after every iteration.
    n_iter_ : int
    converged_ : bool
    scaler_ : fitted transformer
    n_features_in_ : int
    feature_names_in_ : ndarray, where X had names

    Notes
    -----
    Nothing is drawn at random. The released code finds the credible labels once for all rows, test rows and their
    candidates included; here only the training rows are seen.

    Time: O(n²d) for the neighbours (never an n×n array), n small non-negative least-squares problems, O(d³) for each
    of a few iterations: one factorisation serves all labels, conjugate gradients the differences between them.
    Memory: O(nd + d² + n·n_neighbors).

    With much noise the noise model has little to say (δ is small), and the second stage is close to ridge regression on
    the credible labels.

    References
    ----------
    Zhong, Shang, Zhao, Zhang, Xu. Negative Label and Noise Information Guided Disambiguation for Partial Multi-Label
    Learning. IEEE Transactions on Multimedia 26, 9920–9935, 2024.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from skpml.baselines._pml_nd import PMLND
    >>> from skpml.noise import top_up
    >>> X, truth = make_multilabel_classification(300, allow_unlabeled=False, random_state=0)
    >>> model = PMLND().fit(X, top_up(truth, 4, random_state=0))
    >>> model.confidences_.sum(axis=1).round(6).min()
    np.float64(1.0)
    """

    _facts = MethodFacts(
        name="pml-nd",
        title="PML-ND",
        kind="baseline",
        summary="candidates split into true and noise labels, guided by negative labels, with a model for "
        "each",
        confidences=True,
        source="release",
        year=2024,
        reference="Zhong, Shang, Zhao, Zhang, Xu. Negative Label and Noise Information Guided "
        "Disambiguation for Partial Multi-Label Learning. IEEE TMM 26:9920–9935, 2024.",
        comparison_threshold=0.5,
    )

    def __init__(
        self,
        *,
        beta: float = 4.0,
        lam: float = 0.25,
        gamma: float = 2.0**-6,
        delta: float = 2.0**-6,
        eta: float = 10.0,
        n_neighbors: int = 10,
        credible: float | str = 0.25,
        damping: str = "ones",
        solver: str = "exact",
        threshold: float | str = "auto",
        max_iter: int = 50,
        tol: float = 1e-3,
        on_empty: str = "warn",
    ) -> None:
        self.beta = beta
        self.lam = lam
        self.gamma = gamma
        self.delta = delta
        self.eta = eta
        self.n_neighbors = n_neighbors
        self.credible = credible
        self.damping = damping
        self.solver = solver
        self.threshold = threshold
        self.max_iter = max_iter
        self.tol = tol
        self.on_empty = on_empty

    def _fit(self, X: Any, Y: NDArray[Any]) -> NDArray[Any]:
        self.scaler_ = RangeScaler().fit(X)
        # Double precision throughout: the reweighting of the rows of W spans more than single precision holds.
        features, Y = self._unit_range(X).astype(np.float64), Y.astype(np.float64)
        with_constant = np.hstack([features, np.ones((len(features), 1))])
        neighbours = reconstruction_weights(features, n_neighbors=self.n_neighbors)
        own = innocence(features, Y, damping=self.damping)  # type: ignore[arg-type]
        confidences, self.n_propagations_ = propagate(own, Y, neighbours)
        credible = credible_labels(confidences, Y, cut=self.credible)  # type: ignore[arg-type]
        solution = solve(
            with_constant,
            credible,
            Y - credible,
            weights=Weights(beta=self.beta, lam=self.lam, gamma=self.gamma, delta=self.delta, eta=self.eta),
            solver=self.solver,  # type: ignore[arg-type]
            max_iter=self.max_iter,
            tol=self.tol,
        )
        self.confidences_ = confidences.astype(X.dtype)
        self.credible_labels_ = credible.astype(X.dtype)
        self.coef_, self.intercept_ = solution.coef[:-1], solution.coef[-1]
        self.noise_coef_ = solution.noise_coef
        self._record(solution.history, converged=solution.converged)
        if solution.ran_away:
            warnings.warn(
                f"PMLND left the finite numbers after {self.n_iter_} iterations; the last finite classifier is kept. "
                "Use a smaller delta, or the exact solver.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return (with_constant @ solution.coef).astype(X.dtype)

    def _targets(self) -> NDArray[Any]:
        return self.credible_labels_

    def _unit_range(self, X: Any) -> NDArray[Any]:
        """Features in [0, 1] on the training rows; those that were constant there are 0."""
        scaler = self.scaler_
        return np.asarray((scaler.transform(X) + 1) / 2 * (scaler.scale_ > 0).astype(X.dtype))

    def _scores(self, X: Any) -> NDArray[Any]:
        return self._unit_range(X) @ self.coef_.astype(X.dtype) + self.intercept_.astype(X.dtype)

    def _check_parameters(self) -> None:
        check_parameters(
            self,
            weights=("beta", "lam", "gamma", "delta", "eta", "tol"),
            counts=("n_neighbors", "max_iter"),
            choices={"damping": ("identity", "ones"), "solver": ("exact", "multiplicative")},
        )
        if self.credible == "share":
            return
        if not isinstance(self.credible, Real) or isinstance(self.credible, bool) or not self.credible >= 0:
            raise ValueError(f'credible must be "share" or a number of at least 0, got {self.credible!r}.')
