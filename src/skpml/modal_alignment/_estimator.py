"""PML-MA as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse
from array_api_compat import array_namespace
from numpy.typing import NDArray

from skpml._blocks import LazyRows, RowBlocks, bring_to_device, multiply_rows, transform_rows
from skpml._dask_rows import DaskRows
from skpml._docstrings import fill_docstring
from skpml._validation import EncodedLabels, check_device, check_verified, encode_labels, has_device
from skpml.base import BasePMLClassifier, MethodFacts
from skpml.features import fit_map, map_rows, resolve_feature_map, transformer_on
from skpml.graph import check_similarity, neighbor_similarity
from skpml.linalg import to_device, to_numpy
from skpml.modal_alignment._row_work import Sums
from skpml.modal_alignment._solver import (
    WEIGHTS,
    Basis,
    Callback,
    Component,
    Steps,
    Weights,
    check_components,
    solve,
)
from skpml.modal_alignment._tuning import choose_weights, share_points
from skpml.modal_alignment._updates import Prototypes
from skpml.model_selection import Parameters, PointScores
from skpml.views import ViewScaler

# Below this, all confidences are taken to be 0.
_NO_CONFIDENCE = 1e-3


@fill_docstring
@dataclass(kw_only=True, repr=False, eq=False)
class PMLMA(BasePMLClassifier):
    """Partial multi-label learning by feature-label modal alignment (PML-MA).

    Decomposes the candidates Y into low-rank pseudo-labels R and noise, aligns R with the features in a common space,
    globally and between neighbors, pulls rows towards the prototypes of their labels, and obtains the classifier from the
    alignment [1]_. Minimizes, by alternating closed-form and proximal steps,

        ‖XP1 − RP2‖² + ‖Y − RQᵀ‖² + λ‖R‖* + α Σ_ij S_ij‖P1ᵀx_i − P2ᵀr_j‖² + β‖DX − RVᵀ‖² + γ‖P1P2ᵀ‖²

    over R (0 ≤ R ≤ Y), Q (orthogonal), P1, P2 (P2ᵀP2 = I) and V, with D = diag(R·1).

    Parameters
    ----------
    low_rank_weight : float, default=1.0
        Weight λ of the nuclear norm of the pseudo-labels, at least 0.
    alignment_weight : float, default=0.01
        Weight α of the alignment between neighbors, at least 0.
    prototype_weight : float, default=0.01
        Weight β of the distances to the prototypes, at least 0.
    ridge_weight : float, default=1.0
        Weight γ of the size of the classifier, at least 0.
    tune : bool, default=False
        Choose the four weights without true labels: of about forty points, the one that ranks the candidates of held-out
        rows best. The given weights are then used only if no row has both a candidate and a non-candidate.
    n_neighbors : int, default=5
        Number of neighbors of a row in the similarity graph.
    subspace_dim : int or None, default=None
        Dimension m of the common space; None is the smaller of the number of mapped features and of labels.
    %(feature_map)s
    %(map_anchors)s
    prototypes : {"mean", "least-squares"}, default="mean"
        Form of the prototypes V.
    basis : {"identity", "orthogonal"}, default="identity"
        Keep the label basis Q at the identity, or learn it as the paper does. The learned basis can drift and mix
        labels. It raised average precision on no data set that was measured, hence the default.
    steps : {"derived", "released"}, default="derived"
        Updates of the objective as the paper derives them, or those of the program that its authors released. The program
        pulls the pseudo-labels twice as much to the candidates, does not keep them between 0 and 1 before the end, makes
        shorter steps, and has another graph, in which each row is its own neighbor. It minimizes no stated objective.
    %(threshold)s
        The paper uses 0.5.
    %(max_iter)s
    tol : float, default=1e-3
        Stop when the relative change of the objective is at most this; 0 makes all ``max_iter`` iterations.
    graph : scipy sparse matrix of shape (n, n) or None, default=None
        Symmetric similarity of the training rows, instead of the neighbor graph.
    views : dict of str to list of columns, or None, default=None
        Groups of columns of X, by position or by name in a data frame, that are separate views; every column belongs to
        one. Not needed if X is a list or dict of matrices. See :mod:`skpml.views`.
    view_weights : "auto", dict of str to float, or sequence of float, default="auto"
        Weight of each view; "auto" learns it from the candidates.
    without : collection of {"decomposition", "alignment", "prototypes"}, default=()
        Terms of the objective to omit, for ablation.
    device : str or None, default=None
        None computes with NumPy; a name such as "cuda" with PyTorch on that device.
    %(on_empty)s
    callback : callable or None, default=None
        Called as ``callback(iteration, losses)`` after each iteration; a true return value stops the fit. Inner fits of
        ``tune=True`` do not call it.
    random_state : int, RandomState or None, default=None
        Draws the anchors if not all rows are anchors, and the inner folds of ``tune=True``. Nothing else is random.

    Attributes
    ----------
    confidences_ : ndarray of shape (n, c)
        R: confidence that a candidate is true, between 0 and 1, and 0 for non-candidates. Exactly 1 or 0 in verified
        cells.
    coef_ : ndarray of shape (n_mapped_features, c)
        Scores are ``mapped @ coef_``. See the notes.
    prototypes_ : ndarray of shape (n_mapped_features, c)
        V, of the confidences.
    basis_ : ndarray of shape (c, c)
        Q.
    feature_projection_, label_projection_ : ndarray
        P1 and P2; their product P1P2ᵀ is ``coef_``.
    weights_ : dict
        The four weights of the fit by name, given or chosen.
    selection_ : dict
        ``"tried"`` has one dict for every point of ``tune=True``, in the order of the search: its four weights,
        ``"precision"`` (mean over inner folds of the average precision of held-out rows against their candidates),
        ``"fold_precision"`` (of each fold) and ``"distance"`` (by how many standard errors its rows fall short of those
        of the best point).
    history_ : dict of ndarrays
        Each weighted loss term, the objective and ``‖Q − I‖`` after every iteration.
    %(iterations)s
    view_weights_ : dict of str to float
        Share of each view; the shares sum to 1. A single matrix is "view 0".
    scaler_ : ViewScaler
        Scales the features.
    feature_map_ : transformer
        Maps the scaled features.
    %(fitted)s

    Notes
    -----
    As in the paper, the last step of a fit is one in R: ``confidences_`` are one step ahead of ``coef_`` and ``basis_``,
    which were computed from the confidences before that step. With the default ``tol``, scores of a classifier fitted to
    the final confidences would differ by about 0.003.

    :func:`skpml.get_method` knows three variants. "pml-ma" has the defaults, which we recommend. "pml-ma-printed" follows
    the paper: ``basis="orthogonal"``, ``threshold=0.5``. "pml-ma-released" follows the authors' program:
    ``basis="orthogonal"``, ``steps="released"``, ``threshold=0.5``, ``tol=1e-4``. All three have the map "rbf" of the
    program, which the paper does not mention, and prototypes that are means, one of the two forms in the paper.

    With n rows, d mapped features and c labels, a fit takes O(nd² + d³) time, O(ndc + nc² + c³) more for each iteration,
    and O(nc + d²) memory, with blocks of mapped rows of up to scikit-learn's ``working_memory``.

    %(reference_and_data)s
    >>> from skpml import PMLMA
    >>> model = PMLMA().fit(X, candidates)
    >>> model.confidences_.shape
    (300, 5)
    """

    low_rank_weight: float = 1.0
    alignment_weight: float = 1e-2
    prototype_weight: float = 1e-2
    ridge_weight: float = 1.0
    tune: bool = False
    n_neighbors: int = 5
    subspace_dim: int | None = None
    feature_map: Any = "rbf"
    n_anchors: int | None = None
    prototypes: Prototypes = "mean"
    basis: Basis = "identity"
    steps: Steps = "derived"
    threshold: float | str = "auto"
    max_iter: int = 50
    tol: float = 1e-3
    graph: Any = None
    views: Any = None
    view_weights: Any = "auto"
    without: Collection[Component] = ()
    device: str | None = None
    on_empty: str = "warn"
    callback: Callback | None = None
    random_state: Any = None

    _facts = MethodFacts(
        name="pml-ma",
        title="PML-MA",
        kind="flagship",
        summary="low-rank labels aligned with features, globally and between neighbors",
        confidences=True,
        nonlinear=True,
        random=True,
        source="paper",
        year=2026,
        reference="Chen, Lv, Huang, Fang, Wen, Xu, Li. Feature-Label Modal Alignment for Robust Partial "
        "Multi-Label Learning.",
    )
    _variants = (
        replace(
            _facts,
            name="pml-ma-printed",
            title="PML-MA as printed",
            kind="baseline",
            summary="PML-MA with a learned label basis and the threshold 0.5, as in the paper",
            comparison_threshold=0.5,
            parameters={"basis": "orthogonal", "threshold": 0.5},
        ),
        replace(
            _facts,
            name="pml-ma-released",
            title="PML-MA as released",
            kind="baseline",
            summary="PML-MA as in the authors' program, which departs from the paper",
            source="release",
            comparison_threshold=0.5,
            parameters={"basis": "orthogonal", "steps": "released", "threshold": 0.5, "tol": 1e-4},
        ),
    )

    _takes_views = True
    _takes_dask = True

    def fit(self, X: Any, y: Any, *, verified: Any = None) -> Self:
        """Learn from rows, their candidate labels, and cells that a person checked.

        Parameters
        ----------
        X : array, data frame or scipy sparse matrix of shape (n, d)
            Or several of them, with the same rows, as a list or as a dict by name.
        y : (n, c) matrix of 0 and 1 (array, sparse, data frame), list of n label sets, or n classes
            The candidates of each row: every true label is among them, except for verified ones.
        verified : array, data frame or scipy sparse matrix of shape (n, c) or None, default=None
            1 where a person found the label true, −1 where false and 0 where unknown, also for cells that are not
            candidates; columns are in the order of ``classes_``. A label found false is no candidate, one found true is,
            and its confidence is 1 throughout the fit.

        Returns
        -------
        self : PMLMA
            The fitted estimator.
        """
        cells = None
        if verified is not None:
            y, cells = _apply_verified(y, verified)
        self._forget_batches()
        self._verified: NDArray[np.int8] | None = cells
        try:
            return self._fit_weighted(X, y, None)
        finally:
            del self._verified

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from one more batch of rows, for data that come as a stream.

        The first batch decides about everything but the classifier: the scaling of the features, the anchors, the weights
        of views and, with ``tune=True``, those of the terms. Of each batch, sums are kept, with its pseudo-labels as they
        are then. A later batch gets its own pseudo-labels, and a classifier and prototypes for all rows so far. So the
        confidences of earlier rows are not revised, neighbors are searched within a batch, and the result depends on the
        order of the batches; one batch of all rows is a :meth:`fit`. The threshold is the mean over all rows of those of
        the batches. ``confidences_`` and ``history_`` are those of the last batch.

        Parameters
        ----------
        X : array, data frame or scipy sparse matrix of shape (n, d)
            In the form and with the features of the first batch. The first batch should show the range of every feature
            and have enough rows for the anchors.
        y : (n, c) matrix of 0 and 1 (array, sparse, data frame), list of n label sets, or n classes
            The candidates of each row.
        classes : sequence or None, default=None
            All labels; needed in the first call if it does not have all of them, as with label sets.

        Returns
        -------
        self : PMLMA
            The fitted estimator.
        """
        if self.graph is not None:
            raise ValueError("graph is that of all rows; partial_fit searches for neighbors within a batch.")
        self._verified = None
        try:
            return self._fit_batch(X, y, classes)
        finally:
            del self._verified

    def _fit(self, X: Any, Y: NDArray[Any]) -> NDArray[Any]:
        in_batches: bool = getattr(self, "_in_batches", False)
        before: dict[str, NDArray[Any]] | None = getattr(self, "_sums", None)
        sums = None if before is None else Sums(**before)
        if sums is None:
            self._fit_scaling(X, Y)
        scaled = transform_rows(X, self.scaler_.transform)
        if isinstance(scaled, LazyRows):
            scaled = bring_to_device(scaled, self.device)
        similarity = self._similarity(scaled)
        if sums is None:
            mapped = self._fit_map(scaled, X.dtype)
        else:
            mapped = map_rows(self.feature_map_, scaled, X.dtype, self.device)
        # They may be on a device, whose memory the mapped rows and the iterations need.
        del scaled
        known = None if self._verified is None else (self._verified > 0).astype(Y.dtype)
        solution = solve(
            mapped,
            to_device(Y, self.device),
            similarity,
            weights=Weights(**self.weights_),
            known_true=None if known is None else to_device(known, self.device),
            subspace_dim=self.subspace_dim,
            prototypes=self.prototypes,
            basis=self.basis,
            steps=self.steps,
            without=self.without,
            max_iter=self.max_iter,
            tol=self.tol,
            callback=self.callback,
            keep_sums=in_batches,
            before=None if sums is None else self._as_rows(sums, X.dtype),
        )
        self.coef_ = to_numpy(solution.coef)
        self.feature_projection_ = to_numpy(solution.feature_projection)
        self.label_projection_ = to_numpy(solution.label_projection)
        self.confidences_ = to_numpy(solution.pseudo_labels)
        self.prototypes_ = to_numpy(solution.prototypes)
        self.basis_ = to_numpy(solution.basis)
        if solution.sums is not None:
            found = solution.sums.map(lambda value: to_numpy(value).astype(np.float64, copy=False))
            # Of plain arrays, which a model file can hold.
            self._sums: dict[str, NDArray[Any]] = vars(found if sums is None else sums + found)
        self._record(solution.history, converged=solution.converged)
        inferred = self.confidences_
        if self._verified is not None:
            inferred = inferred[(Y > 0) & (self._verified == 0)]
        if inferred.size and inferred.max() < _NO_CONFIDENCE:
            warnings.warn(
                f"All confidences are near 0: low_rank_weight={self.weights_['low_rank_weight']:g} is too large for "
                f"{X.shape[0]} rows. Use a smaller one.",
                UserWarning,
                stacklevel=self._level_of_caller(),
            )
        return to_numpy(solution.scores)

    def _fit_scaling(self, X: Any, Y: NDArray[Any]) -> None:
        """Find scales, weights of views and the weights of the terms."""
        self.scaler_ = ViewScaler(columns=self._view_columns, weights=self.view_weights).fit(X, Y)
        self.view_weights_ = self.scaler_.weights_
        if not self.scaler_.scale_.any():
            raise ValueError("Every feature of X is constant; there is nothing to learn from.")
        self.weights_ = {name: float(getattr(self, name)) for name in WEIGHTS}
        self.selection_: dict[str, Any] = {"tried": []}
        if self.tune and isinstance(X, DaskRows):
            raise ValueError(
                "tune=True needs X in memory: pass X.compute(), or choose the weights on some rows."
            )
        if self.tune:
            self.weights_, self.selection_ = choose_weights(self._with_known_views(), X, Y, self._verified)

    def _fit_map(self, scaled: Any, dtype: Any) -> RowBlocks:
        """Fit the feature map, and map the rows."""
        self.feature_map_ = resolve_feature_map(
            self.feature_map, n_anchors=self.n_anchors, random_state=self.random_state
        )
        mapped = fit_map(self.feature_map_, scaled, dtype, self.device)
        if not isinstance(self.feature_map, str):
            xp = array_namespace(mapped.like)
            _, (n_finite,) = mapped.visit(lambda block: ((), (xp.count_nonzero(xp.isfinite(block)),)))
            if int(n_finite) < mapped.shape[0] * mapped.shape[1]:
                raise ValueError(f"feature_map={self.feature_map!r} maps X to NaN or infinity.")
        return mapped

    def _as_rows(self, sums: Sums, dtype: Any) -> Sums:
        """Convert sums to the precision and device of rows; the Gram matrix stays double."""
        found = sums.map(lambda value: to_device(value.astype(dtype, copy=False), self.device))
        return replace(found, gram=to_device(sums.gram, self.device))

    def _with_known_views(self) -> PMLMA:
        """Return a model for the stacked matrix, with the views and view weights that were found."""
        if len(self._view_columns) == 1:
            return self
        columns = {name: places.tolist() for name, places in self._view_columns.items()}
        return type(self)(
            **{**self.get_params(deep=False), "views": columns, "view_weights": self.view_weights_}
        )

    def _scores_of_points(
        self, points: Sequence[Parameters], X: Any, Y: NDArray[Any], X_held_out: Any, verified: Any = None
    ) -> PointScores:
        """Score held-out rows at many parameters, sharing work; see :mod:`skpml.model_selection`."""
        return share_points(self, points, X, Y, X_held_out, verified)

    def _similarity(self, scaled: NDArray[Any] | LazyRows) -> Any:
        if self.graph is not None:
            return check_similarity(self.graph, scaled.shape[0])
        if self.weights_["alignment_weight"] == 0 or "alignment" in self.without:
            return None
        if hasattr(self, "_sums") and scaled.shape[0] <= self.n_neighbors:
            # The last batch of a stream may be any small.
            return None
        if self.steps == "released":
            graph = neighbor_similarity(
                scaled, n_neighbors=self.n_neighbors, scale="first", device=self.device
            )
            return graph + scipy.sparse.eye_array(scaled.shape[0], dtype=graph.dtype, format="csr")
        return neighbor_similarity(scaled, n_neighbors=self.n_neighbors, device=self.device)

    def _scores(self, X: Any) -> NDArray[Any]:
        # Without the device, predict with NumPy.
        device = self.device if has_device(self.device) else None
        transform = transformer_on(self.feature_map_, X.dtype, device)
        coef = to_device(self.coef_.astype(X.dtype, copy=False), device)
        return multiply_rows(X, lambda rows: transform(self.scaler_.transform(rows)), coef)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.without, str) or not isinstance(self.without, Collection):
            raise ValueError(f"without must be a list such as ['prototypes'], got {self.without!r}.")
        check_components(self.without)
        if self.device is not None:
            check_device(self.device)
        if not isinstance(self.tune, (bool, np.bool_)):
            raise ValueError(f"tune must be True or False, got {self.tune!r}.")


def _apply_verified(y: Any, verified: Any) -> tuple[EncodedLabels, NDArray[np.int8] | None]:
    """Return the candidates as verified cells leave them, and these cells; None if there are none."""
    labels = encode_labels(y)
    cells = check_verified(verified, labels.candidates.shape, names=labels.classes if labels.named else None)
    if cells is None or not cells.any():
        return labels, None
    candidates = np.where(cells != 0, cells > 0, labels.candidates).astype(np.uint8)
    return replace(labels, candidates=candidates), cells
