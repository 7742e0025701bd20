"""PML-PLR with a scikit-learn face."""

from __future__ import annotations

from math import ceil
from numbers import Real
from typing import Any

import scipy.sparse
from numpy.typing import NDArray

from skpml._validation import check_parameters
from skpml.base import BasePMLClassifier, MethodFacts
from skpml.baselines._pml_plr.solver import Weights, solve
from skpml.features import MAX_ANCHORS, RangeScaler, RBFAnchors
from skpml.graph import neighbor_similarity

__all__ = ["PMLPLR"]


class PMLPLR(BasePMLClassifier):
    """Partial multi-label learning by pseudo-label reconstruction (PML-PLR).

    Looks for pseudo-labels F that a kernel classifier can predict, that a rotation of the candidates Y reaches, and that
    agree with rows made up of one another: the candidates are compressed to codes H, and each row is rebuilt as a
    mixture C of the codes of rows near it. Minimises by alternating updates, with rows for instances (the paper has
    columns),

        ‖ΦW − F‖² + ‖QᵀY − F‖² + ‖Y − CHP‖² + Σ_ij G_ij C_ij + α‖Y − HP‖₁ + 2β tr(FᵀCLF) + λ‖W‖²

    over F (0 ≤ F ≤ Y), W, Q (orthogonal), P (orthonormal rows), H and C (rows on the simplex), where Φ are similarities
    to anchor rows, G squared distances between rows and L the Laplacian of a neighbour graph.

    Objective, feature map, graph, order of updates, parameters and stop rule are those of the authors' published code.
    Three of its updates are repaired here, as they do not follow from its objective: two signs (in the H and in the C
    step), and the F step, which as published divides by numbers of either sign and keeps F neither above 0 nor below Y.
    See the notes.

    Parameters
    ----------
    alpha, beta, lam : float, default=0.1
        Weights α (sparse residual), β (smoothness over the graph) and λ (size of the classifier), each at least 0. The
        authors choose β = 0.01 or 0.1 and λ between 0.01 and 10 for each data set.
    ratio : float, default=0.8
        Number of label directions (length of the codes) as a share of the number of labels, above 0 and at most 1. No
        more than the rank of Y are used.
    n_neighbors : int, default=5
        Neighbours of a row in the graph; all other rows, where there are fewer.
    n_anchors : int or None, default=None
        Anchors of the feature map; None is five for every feature, at most 3000. All rows, where there are fewer.
    threshold : float, "auto" or "non-candidates", default="auto"
        Scores above it are predicted; for the names see :mod:`skpml.base`. The release uses 0.5.
    max_iter : int, default=40
    tol : float, default=1e-4
        Stop, but not before the sixth iteration, where the objective falls relatively by less, or rises.
    on_empty : {"warn", "raise", "ignore"}, default="warn"
        What to do about rows without candidates (taken as having no label) and labels that are nobody's candidate.
    random_state : int, RandomState or None, default=None
        Draws the anchors, where not all rows are anchors. Nothing else is random: P and H start from the leading label
        directions instead of from random numbers.

    Attributes
    ----------
    confidences_ : ndarray of shape (n, c)
        F: how far each candidate of a training row is believed, between 0 and 1, and 0 outside the candidates.
    coef_ : ndarray of shape (n_mapped_features, c)
        W; scores are ``mapped @ coef_``.
    label_directions_ : ndarray of shape (m, c)
        P.
    threshold_ : float
    classes_ : ndarray of shape (c,)
        Label names.
    history_ : dict of ndarrays
        Each weighted loss term and the objective after every iteration.
    n_iter_ : int
    converged_ : bool
    scaler_, feature_map_ : fitted transformers
    n_features_in_ : int
    feature_names_in_ : ndarray, where X had names

    Notes
    -----
    With n rows, h mapped features, c labels and k conjugate-gradient steps (about ten), a fit takes O(nh² + h³) once and
    O(n²(d + kc)) an iteration, as every row may be made up of any other; the neighbour graph takes O(n²d) up to 10,000
    rows, and is searched in cells, which may miss a few neighbours, beyond. Memory is O(nh): the n×n matrices G, C and Q
    are never held, C being formed anew in blocks wherever a product needs it. ``history_["objective"]`` counts the
    smoothness once, not twice as in the objective above: so does the published stop rule.

    The objective is not convex, and not every update lowers it. It often rises after the second iteration, as in the
    authors' own runs, so the stop rule mostly fires at the sixth: six iterations are the method. More of them give
    another model.

    As published, the F step lets pseudo-labels leave [0, 1]. The smoothness term then has no lower bound, and where
    many rows are made up of the same few, F grows without end, as on the arts data. Here F is kept within its constraint,
    with the same fixed points inside it.

    Most of the ranking quality comes from the kernel map: compare with :class:`skpml.reference.CandidateRidge`.

    References
    ----------
    Chen, Li, Han, Li, Gao, Chan, Fang. Pseudo-Label Reconstruction for Partial Multi-Label
    Learning. IJCAI 2025, pp. 4896–4904.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from skpml.baselines import PMLPLR
    >>> from skpml.noise import top_up
    >>> X, truth = make_multilabel_classification(100, random_state=0, allow_unlabeled=False)
    >>> model = PMLPLR(random_state=0).fit(X, top_up(truth, 4, random_state=0))
    >>> model.confidences_.shape
    (100, 5)
    """

    _facts = MethodFacts(
        name="pml-plr",
        title="PML-PLR",
        kind="baseline",
        summary="pseudo-labels rebuilt from correlated rows",
        confidences=True,
        nonlinear=True,
        random=True,
        source="release",
        year=2025,
        reference="Chen, Li, Han, Li, Gao, Chan, Fang. Pseudo-Label Reconstruction for Partial Multi-Label "
        "Learning. IJCAI 2025, 4896–4904.",
        comparison_threshold=0.5,
    )

    def __init__(
        self,
        *,
        alpha: float = 0.1,
        beta: float = 0.1,
        lam: float = 0.1,
        ratio: float = 0.8,
        n_neighbors: int = 5,
        n_anchors: int | None = None,
        threshold: float | str = "auto",
        max_iter: int = 40,
        tol: float = 1e-4,
        on_empty: str = "warn",
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.lam = lam
        self.ratio = ratio
        self.n_neighbors = n_neighbors
        self.n_anchors = n_anchors
        self.threshold = threshold
        self.max_iter = max_iter
        self.tol = tol
        self.on_empty = on_empty
        self.random_state = random_state

    def _fit(self, X: Any, Y: NDArray[Any]) -> NDArray[Any]:
        self.scaler_ = RangeScaler().fit(X)
        scaled = self.scaler_.transform(X)
        n_anchors = self.n_anchors or min(5 * X.shape[1], MAX_ANCHORS)
        self.feature_map_ = RBFAnchors(n_anchors=n_anchors, random_state=self.random_state)
        solution = solve(
            self.feature_map_.fit_transform(scaled),
            scaled,
            Y,
            self._laplacian(scaled),
            weights=Weights(alpha=self.alpha, beta=self.beta, lam=self.lam),
            n_codes=ceil(self.ratio * Y.shape[1]),
            max_iter=self.max_iter,
            tol=self.tol,
        )
        self.coef_ = solution.coef
        self.confidences_ = solution.pseudo_labels.astype(X.dtype, copy=False)
        self.label_directions_ = solution.label_directions.astype(X.dtype, copy=False)
        self._record(solution.history, converged=solution.converged)
        return solution.scores

    def _laplacian(self, scaled: NDArray[Any]) -> scipy.sparse.csr_array:
        n_neighbors = min(self.n_neighbors, scaled.shape[0] - 1)
        similarity = neighbor_similarity(scaled, n_neighbors=n_neighbors, scale="first")
        return scipy.sparse.csr_array(scipy.sparse.diags_array(similarity.sum(axis=1)) - similarity)

    def _scores(self, X: Any) -> NDArray[Any]:
        return self.feature_map_.transform(self.scaler_.transform(X)) @ self.coef_.astype(X.dtype, copy=False)

    def _check_parameters(self) -> None:
        check_parameters(
            self,
            weights=("alpha", "beta", "lam", "tol"),
            counts=("n_neighbors", "max_iter"),
            optional_counts=("n_anchors",),
        )
        ratio = self.ratio
        if not isinstance(ratio, Real) or isinstance(ratio, bool) or not 0 < ratio <= 1:
            raise ValueError(f"ratio must be a number above 0 and at most 1, got {ratio!r}.")
