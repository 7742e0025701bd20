"""CandidateLikelihood: the estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
import scipy.sparse
from array_api_compat import is_torch_array
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch, check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted

from skpml._blocks import bring_to_device, compute_in_batches, transform_rows
from skpml._dask_rows import DaskRows
from skpml._docstrings import fill_docstring
from skpml._ordering import row_order
from skpml._validation import check_device, check_parameters, check_verified, has_device
from skpml.base import BasePMLClassifier, MethodFacts
from skpml.candidate_likelihood._batches import Member, Sums, learn_rows, sum_rows
from skpml.candidate_likelihood._in_blocks import (
    MOST_MEMBERS,
    fit_members,
    map_in_blocks,
    probabilities_of,
)
from skpml.candidate_likelihood._search import (
    FAMILIES,
    SettingJudge,
    coarse_settings,
    search,
    search_quickly,
)
from skpml.features import RBFAnchors, as_dense, default_n_anchors, resolve_feature_map, transformer_on
from skpml.likelihood import (
    VOTE_WIDTHS,
    Fit,
    Setting,
    Votes,
    apply_level,
    calibrate,
    check_at_least_one,
    check_noise_rate,
    check_votes,
    estimate_noise,
    find_nested_labels,
    fit_best_ridge,
    fit_calibration,
    fit_level,
    fit_settings,
    fit_vote_model,
    held_out_ridge,
    is_auto,
    keep_nested_order,
    learn_from_verified,
    posterior,
    to_probability,
)
from skpml.linalg import Spectrum, fits_in_memory, one_blas, spectrum_of, to_device, to_numpy
from skpml.views import ViewScaler

# Grid that a search begins with; ridge regression is cheap and gets a finer one.
_GAMMAS, _RIDGE_GAMMAS = (0.01, 0.1, 1.0), tuple(10.0 ** (power / 2) for power in range(-6, 3))
_NOISES, _WIDTHS = (1.0, 1.4), (0.5, 1.0)
# A search uses at most this many anchors and rows: settings carry over, because features are scaled.
_SEARCH_ANCHORS, _SEARCH_ROWS = 700, 6000
# Settings are compared at a looser tolerance than that of the final fit: rankings settle long before probabilities do.
_SEARCH_TOL, _SEARCH_ITER = 3e-4, 40
# Of quick fits to many rows: rounds of the first fit that shows the label covariance, and with as many cells iterations.
_QUICK_PILOT, _MANY_CELLS, _QUICK_ITER = 10, 500_000, 30
# A quick search judges settings by at least so many rows, if there are as many.
_ENOUGH_ROWS = 1000
# Up to this many rows the products are so small that threads would wait for each other.
_FEW_ROWS = 1000
# Rows that are mapped to their similarities at a time, for memory.
_SCORED_ROWS = 20_000


def _compute_at_once(work: Callable[..., NDArray[Any]], *arrays: NDArray[Any]) -> NDArray[Any]:
    """Do what :func:`skpml._blocks.compute_in_batches` does with all rows at once."""
    return work(*arrays)


@fill_docstring
@dataclass(kw_only=True, repr=False, eq=False)
class CandidateLikelihood(BasePMLClassifier):
    """Estimate the probability that each label is true, from a likelihood of candidates.

    Every true label is a candidate; a label that is not true is a candidate with probability ρ, the noise rate. With η
    the probability that a label is true, learned from the features,

        P(candidate) = η + (1 − η) ρ        P(true | candidate) = η / (η + (1 − η) ρ).

    Either η is linear in the features (*least-squares*: ridge regression onto P(true | candidate), each row judged by the
    others) or its logit is (*logistic*: penalized maximum likelihood, with a covariance between labels), optionally given
    that each row has at least one true label. Family, smoothness, noise rate and kernel width are chosen by how well
    held-out rows rank their candidates; ridge regression on the candidates is among the choices. The probabilities of the
    best settings are averaged. No true labels are needed.

    Parameters
    ----------
    family : {"auto", "logistic", "least-squares", "ridge"}, default="auto"
        Kind of model; "ridge" takes every candidate for true.
    gamma : float or "auto", default="auto"
        Weight of the size of the coefficients, for features whose rows have a mean squared length of 1.
    noise_rate : float, array of shape (n_labels,) or "auto", default="auto"
        Noise rate ρ, from 0 to 0.985. "auto" estimates one rate for all labels by the profile likelihood of the
        candidates, with the scores of ridge regressions without the row.
    at_least_one : bool or "auto", default="auto"
        Whether every row with candidates has a true label.
    kernel_width : float or "auto", default="auto"
        Width of the Gaussian features, relative to that of :class:`~skpml.features.RBFAnchors`.
    n_members : int, default=10
        Largest number of settings that are averaged.
    n_folds : int, default=3
        Number of inner folds that settings are judged on.
    effort : {"full", "quick"}, default="full"
        With "quick", about a third as many settings are tried, one decision after the other; beyond a thousand rows they
        are judged by some of the folds; and all fits stop early, as those of a search do, without a warning.
    %(feature_map)s
        Only "rbf" has a width to choose.
    %(map_anchors)s
    views : dict of str to list of columns or None, default=None
        Groups of columns of X, by position or by name in a data frame, that are separate views; every column belongs to
        one. A list or dict of matrices as X has views without this. See :mod:`skpml.views`.
    view_weights : "auto", dict of str to float, or sequence of float, default="auto"
        Weight of each view; "auto" learns it from the candidates.
    threshold : float, "auto" or "non-candidates", default="auto"
        Labels with a probability above it are predicted; "auto" is 0.5.
    max_iter : int, default=1000
        Largest number of iterations of a fit. A warning is raised if a member does not converge. Over rows whose mapped
        features do not fit in memory, at most 30 are made (6 for least squares), from a fit to rows that fit.
    tol : float, default=1e-5
        A logistic fit stops when no entry of the gradient of its objective, divided by the number of rows, exceeds this
        value; a least-squares fit when no target differs from its posterior by more than ten times this value. Settings
        are compared at a looser tolerance.
    device : str or None, default=None
        None computes with NumPy; a name such as "cuda" with PyTorch on that device.
    %(on_empty)s
    random_state : int, RandomState or None, default=None
        Draws the anchors and the inner folds.

    Attributes
    ----------
    confidences_ : ndarray of shape (n_rows, n_labels)
        Probability that each candidate is true; 0 elsewhere.
    noise_rate_ : ndarray of shape (n_labels,)
        The given noise rates, or the estimate; the largest allowed rate if the candidates do not exclude that there is no
        noise. A member may assume up to 1.8 times the odds.
    noise_range_ : tuple of two ndarrays of shape (n_labels,)
        Least and largest noise rate that the candidates allow.
    sensitivity_ : ndarray of shape (n_labels,)
        Rate at which annotators say a true label; only if fitted to votes.
    false_rate_ : ndarray of shape (n_labels,)
        Rate at which annotators say a label that is not true; only if fitted to votes.
    selection_ : dict
        ``"members"``: the settings that are averaged; ``"tried"``: every setting that was judged, with ``"precision"``
        (mean average precision of held-out rows, the candidates taken for the truth) and ``"distance"`` (by how many
        standard errors it is worse than the best), empty if everything was fixed; ``"calibration"``; and ``"level"``, the
        map from confidences of training rows to held-out ones. A setting that was far behind on the first folds was not
        fitted on the others, and is compared with the best on these folds.
    calibration_ : tuple of float
        Slope and shift of the map of logits from the mean of the members to the probability.
    nested_labels_ : list of tuple of int
        Labels (inner, outer) by position: no row carries the inner one without the outer one, so it never gets the higher
        probability.
    coef_ : list of ndarrays of shape (n_mapped_features, n_labels)
        Coefficients of each member, on mapped features.
    intercept_ : ndarray of shape (n_members, n_labels)
        Intercepts of each member.
    history_ : dict of ndarrays
        The course of the slowest member: its penalized log-likelihood, or the largest change of a target.
    n_iter_ : int
        Number of iterations of the slowest member.
    converged_ : bool
        Whether all members converged; True with quick effort, which does not wait for it.
    view_weights_ : dict of str to float
        Share of each view, with the sum 1; one matrix is "view 0".
    scaler_ : transformer
        Scales the features.
    feature_maps_ : list of transformers
        One for each kernel width that a member uses.
    %(fitted)s

    Notes
    -----
    For n rows, a anchors, c labels, k tried settings and t steps of a fit, time is O(n a² + a³ + k t n a c), where the
    search uses at most 6000 rows and 700 anchors, and memory is O(n (a + 8 c)). Mapped features that do not fit into
    scikit-learn's ``working_memory`` are mapped again on each pass, at most three settings are averaged, and memory is
    O(n c + a²); not with votes, verified cells or another feature map. So are the rows of a dask array, on its
    workers.

    Examples
    --------
    %(example_data)s
    >>> from skpml import CandidateLikelihood
    >>> model = CandidateLikelihood(random_state=0).fit(X, candidates)
    >>> model.predict_proba(X).shape
    (300, 5)
    """

    family: str = "auto"
    gamma: float | str = "auto"
    noise_rate: Any = "auto"
    at_least_one: bool | str = "auto"
    kernel_width: float | str = "auto"
    n_members: int = 10
    n_folds: int = 3
    effort: str = "full"
    feature_map: Any = "rbf"
    n_anchors: int | None = None
    views: Any = None
    view_weights: Any = "auto"
    threshold: float | str = "auto"
    max_iter: int = 1000
    tol: float = 1e-5
    device: str | None = None
    on_empty: str = "warn"
    random_state: Any = None

    _facts = MethodFacts(
        name="candidate-likelihood",
        title="Candidate likelihood",
        kind="own",
        summary="a probability for every candidate from a model of the noise; tuned without true labels",
        confidences=True,
        dense=False,
        nonlinear=True,
        random=True,
    )

    # Rows up to which a search knows what models without them say.
    _most_held_out = _SEARCH_ROWS
    _takes_views = True
    _takes_dask = True
    _scores_are_probabilities = True

    def fit(self, X: Any, y: Any, *, n_annotators: Any = None, verified: Any = None) -> Self:
        """Learn from rows and their candidate labels, or the votes of several annotators.

        Parameters
        ----------
        X : array, data frame or scipy sparse matrix of shape (n, d)
            Or several of them, with the same rows, as a list or as a dict by name.
        y : (n, c) matrix of 0 and 1 (array, sparse, data frame), list of n label sets, or n classes
            The candidates of each row: every true label is among them. With ``n_annotators``, how many of them gave the
            row the label; an array of shape (n, annotators, c) has the votes of each annotator, NaN where the annotator
            did not see the row. Candidates are labels with votes then, and true is what most annotators would say; see
            :func:`~skpml.candidate_likelihood.fit_votes`.
        n_annotators : int, array of shape (n,) or None, default=None
            Number of annotators of each row, if y has their votes as counts.
        verified : {array-like, sparse matrix} of shape (n, c) or None, default=None
            What a person found: 1 where a label is true, -1 where it is not, 0 where nobody has looked. It is never
            overruled, and the other confidences learn from it. New rows are predicted from these confidences if the
            answers contradict random noise, and as without them otherwise.

        Returns
        -------
        self : CandidateLikelihood
            The fitted estimator.
        """
        votes = None
        if n_annotators is not None or getattr(y, "ndim", 0) == 3:
            votes = check_votes(y, n_annotators)
            y = y > 0 if hasattr(y, "columns") else votes.total > 0
        self._forget_batches()
        self._votes, self._verified = votes, verified
        try:
            return self._fit_weighted(X, y, None)
        finally:
            del self._votes, self._verified

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Learn from one more batch of rows, for data that come as a stream.

        The first batch is fitted as by :meth:`fit`. It decides about the scaling of the features, the anchors, the
        settings, the noise rates and the calibration, so it should look like the data to come. Each later batch updates
        coefficients and intercepts: what earlier rows say about them is kept as a quadratic form around the coefficients
        of that time, for ridge regression exactly. The confidences of earlier rows are not revised; ``confidences_`` and
        ``history_`` are those of the last batch.

        Parameters
        ----------
        X : array, data frame or scipy sparse matrix of shape (n, d)
            In the form and with the features of the first batch. The mapped features of a later batch must fit in memory.
        y : (n, c) matrix of 0 and 1 (array, sparse, data frame), list of n label sets, or n classes
            The candidates of each row.
        classes : sequence or None, default=None
            All labels; needed in the first call if it does not have all of them, as with label sets.

        Returns
        -------
        self : CandidateLikelihood
            The fitted estimator.
        """
        self._votes, self._verified = None, None
        try:
            return self._fit_batch(self._bring_rows(X), y, classes)
        finally:
            del self._votes, self._verified

    def _fit_held_out(
        self, X: Any, y: Any, folds: NDArray[np.intp], report: Callable[[float, str], None]
    ) -> NDArray[Any] | None:
        """Fit with given inner folds, and return what the models of the search say about rows that they did not see.

        ``folds`` are the numbers of the folds of the rows, from 0 on; ``report(share, what)`` gets the share of the
        work that is done. Returns probabilities (n×c), at the level of ``predict_proba``; None if the search did not fit
        the chosen settings without every row.
        """
        self._given_folds, self._report = folds, report
        try:
            self.fit(X, y)
            return self.__dict__.pop("_held_out", None)
        finally:
            del self._given_folds, self._report

    def _fit(self, X: Any, Y: NDArray[Any]) -> NDArray[Any]:
        with one_blas(Y) if X.shape[0] <= _FEW_ROWS else nullcontext():
            if not hasattr(self, "_in_batches"):
                return self._fit_rows(X, Y)
            if hasattr(self, "_sums"):
                return self._update(X, Y)
            scores = self._fit_rows(X, Y)
            self._keep_sums(X, Y, self._members())
            return scores

    def _update(self, X: Any, Y: NDArray[Any]) -> NDArray[Any]:
        """Update the members for rows that are not the first."""
        labels, mapped = Y.astype(np.float64), self._map_batch(X)
        limits = self._limits(len(Y)) if self.effort == "quick" else {}
        found = learn_rows(
            mapped,
            labels,
            self._members(),
            Sums(**self._sums),
            max_iter=limits.get("max_iter", self.max_iter),
            tol=limits.get("tol", self.tol),
        )
        self.coef_ = [member.theta[:-1] for member in found]
        self.intercept_ = np.array([member.theta[-1] for member in found])
        eta = self._probabilities(mapped)
        self.confidences_ = self._confidences(eta, labels, self.selection_["level"]).astype(X.dtype)
        self._keep_sums(X, Y, found)
        self._record_slowest(found)
        return eta.astype(X.dtype)

    def _members(self) -> list[Member]:
        """Return the members as they are now."""
        settings = [Setting(**member) for member in self.selection_["members"]]
        thetas = [
            np.vstack(each).astype(np.float64) for each in zip(self.coef_, self.intercept_, strict=True)
        ]
        fitted = zip(settings, self._member_maps, self._member_rates, thetas, strict=True)
        return [Member(setting=s, map_place=k, rates=rho, theta=theta) for s, k, rho, theta in fitted]

    def _keep_sums(self, X: Any, Y: NDArray[Any], members: list[Member]) -> None:
        """Add rows to the sums, a block at a time."""
        before: dict[str, Any] | None = getattr(self, "_sums", None)
        blocks = (
            (self._map_batch(X[rows]), Y[rows].astype(np.float64))
            for rows in gen_batches(X.shape[0], _SCORED_ROWS)
        )
        # Of plain arrays, which a model file can hold.
        self._sums: dict[str, Any] = vars(
            sum_rows(blocks, members, None if before is None else Sums(**before), self.confidences_)
        )

    def _map_batch(self, X: Any) -> list[NDArray[np.float64]]:
        """Return the mapped features of rows for each map, with a column of ones."""
        scaled = self.scaler_.transform(X).astype(np.float64, copy=False)
        ones, found = np.ones((X.shape[0], 1)), []
        for place, each in enumerate(self.feature_maps_):
            width = len(self.coef_[self._member_maps.index(place)])
            found.append(np.hstack([as_dense(each.transform(scaled), np.float64)[:, :width], ones]))
        return found

    def _fit_rows(self, X: Any, Y: NDArray[Any]) -> NDArray[Any]:
        chosen: Bunch | None = self.__dict__.pop("_chosen", None)
        rates = check_noise_rate(self.noise_rate, Y.shape[1])
        random = check_random_state(self.random_state)
        report = getattr(self, "_report", lambda share, what: None)
        report(0.0, "preparing the features")
        self.scaler_ = ViewScaler(
            columns=self._view_columns, weights=self.view_weights, keep_sparse=self._has_anchors
        ).fit(X, Y)
        self.view_weights_ = self.scaler_.weights_
        if not self.scaler_.scale_.any():
            raise ValueError("Every feature of X is constant; there is nothing to learn from.")
        verified = check_verified(self._verified, Y.shape, names=self.classes_)
        if self._needs_blocks(X, verified):
            return self._fit_in_blocks(X, Y, chosen, rates, random, report)
        if isinstance(X, DaskRows):
            # They are few, and more settings are averaged in memory.
            X = X[:]
        scaled = self.scaler_.transform(X).astype(np.float64, copy=False)
        labels = Y.astype(np.float64, copy=False)
        maps, mapped = self._map(scaled, random, self._widths(chosen))
        if self._votes is not None:
            return self._fit_votes(self._votes, maps, mapped, Y, verified)
        rows, folds = self._search_rows(scaled, labels, random)
        reduced = self._reduce(mapped, rows)
        report(0.05, "estimating the noise")
        self._set_noise_rate(rates, reduced, labels[rows])
        if chosen is None:
            chosen = self._choose(reduced, labels[rows], folds, known=rates is not None, report=report)
        report(0.85, "learning from all rows")
        self.calibration_ = chosen.calibration
        del reduced
        widths = [width for width in maps if any(member.width == width for member in chosen.members)]
        self.feature_maps_ = [maps[width] for width in widths]
        fits: dict[Setting, tuple[Fit, Spectrum]] = {}
        spectra: dict[float, Spectrum] = {}
        quick = self.effort == "quick"
        targets, noise = self._array(labels), self._array(self.noise_rate_)
        for width in widths:
            spectrum = spectra[width] = spectrum_of(self._array(mapped.pop(width)))
            members = [member for member in chosen.members if member.width == width]
            limits = self._limits(len(Y)) if quick else {"max_iter": self.max_iter, "tol": self.tol}
            # With few rows all directions cost little, and rounding must not decide.
            limits["leading"] = not quick and len(Y) > _FEW_ROWS
            found = fit_settings(spectrum, targets, members, noise, **limits)
            fits.update({fit.setting: (fit, spectrum) for fit in found})
        self._keep(chosen.members, widths, fits)
        each = [to_numpy(fits[member][0].probabilities(fits[member][1].rows)) for member in chosen.members]
        eta = self._finish(np.mean(each, axis=0), labels, rows, chosen, X.dtype)
        if hasattr(self, "_given_folds") and chosen.held_out is not None and len(rows) == len(labels):
            self._held_out = np.empty_like(chosen.held_out)
            self._held_out[rows] = keep_nested_order(chosen.held_out, self.nested_labels_)
        if verified is None or not verified.any():
            return eta.astype(X.dtype)
        learned = self._learn(verified, labels, eta, self.confidences_, spectra[widths[0]])
        if not learned.better:
            # The noise is as assumed, and the likelihood predicts new rows better than a regression.
            return eta.astype(X.dtype)
        used = {width: maps[width] for width in widths}
        return self._regress(learned.targets, used, spectra).astype(X.dtype)

    def _finish(
        self,
        mean: NDArray[Any],
        labels: NDArray[Any],
        rows: NDArray[np.intp],
        chosen: Bunch,
        dtype: Any,
        compute: Callable[..., NDArray[Any]] = _compute_at_once,
    ) -> NDArray[Any]:
        """Calibrate the mean of the members; set the confidences and what was chosen."""
        # Labels of different noise rates have no order that the rows could show.
        self.nested_labels_ = [
            (inner, outer)
            for inner, outer in find_nested_labels(labels)
            if self.noise_rate_[inner] == self.noise_rate_[outer]
        ]
        calibrated = compute(lambda rows: calibrate(rows, self.calibration_), mean)
        eta = keep_nested_order(calibrated, self.nested_labels_)
        if chosen.held_out is not None:
            # Confidences of training rows are brought to the level of held-out ones.
            candidate = labels[rows] > 0
            found, reference = (
                posterior(each, self.noise_rate_, labels[rows])[candidate]
                for each in (eta[rows], chosen.held_out)
            )
            chosen.level = fit_level(found, reference)
        self.confidences_ = self._confidences(eta, labels, chosen.level, compute).astype(dtype)
        self.selection_: dict[str, Any] = {
            "members": [asdict(member) for member in chosen.members],
            "tried": chosen.tried,
            "calibration": self.calibration_,
            "level": chosen.level,
        }
        return eta

    def _needs_blocks(self, X: Any, verified: NDArray[np.int8] | None) -> bool:
        """Whether the mapped features of one kernel width would not fit into scikit-learn's ``working_memory``.

        Nor the rows themselves, if they are not in memory yet.
        """
        special = self._votes is not None or verified is not None
        if isinstance(X, DaskRows):
            if special or not self._has_anchors:
                raise ValueError(
                    "votes, verified cells and another feature_map need X in memory: pass X.compute() instead of a "
                    "dask array."
                )
            if not fits_in_memory(X.shape, X.dtype):
                return True
        if special or not self._has_anchors or hasattr(self, "_given_folds"):
            return False
        n_anchors = self.n_anchors or default_n_anchors(X.shape[0])
        return not fits_in_memory((X.shape[0], min(n_anchors, X.shape[0])), np.float64)

    def _fit_in_blocks(
        self,
        X: Any,
        Y: NDArray[Any],
        chosen: Bunch | None,
        rates: NDArray[Any] | None,
        random: np.random.RandomState,
        report: Callable[[float, str], None],
    ) -> NDArray[Any]:
        """Fit to rows that are mapped again on each pass, in their own precision; settings are chosen as always."""
        scaled = bring_to_device(transform_rows(X, self.scaler_.transform), self.device)
        maps, mapped = map_in_blocks(
            scaled, self._widths(chosen), n_anchors=self.n_anchors, random_state=random, device=self.device
        )
        rows, folds = self._search_rows(scaled, Y, random)
        exact = {width: to_numpy(values.take(rows)).astype(np.float64) for width, values in mapped.items()}
        reduced, labels = self._reduce(exact, np.arange(len(rows))), Y[rows].astype(np.float64)
        report(0.05, "estimating the noise")
        self._set_noise_rate(rates, reduced, labels)
        if chosen is None:
            chosen = self._choose(reduced, labels, folds, known=rates is not None, report=report)
            chosen.members = chosen.members[:MOST_MEMBERS]
        report(0.5, "learning from all rows")
        self.calibration_ = chosen.calibration
        del reduced, exact
        widths = [width for width in maps if any(member.width == width for member in chosen.members)]
        self.feature_maps_ = [maps[width] for width in widths]
        fits: dict[Setting, tuple[Fit, Any]] = {}
        total = np.zeros(Y.shape, dtype=Y.dtype)
        limits: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "device": self.device}
        targets, noise = self._array(Y), self._array(self.noise_rate_)
        for width in widths:
            members = [member for member in chosen.members if member.width == width]
            for fit, spectrum in fit_members(mapped[width], targets, members, noise, random=random, **limits):
                fits[fit.setting] = fit, spectrum
                total += probabilities_of(fit, spectrum)
        self._keep(chosen.members, widths, fits)
        steps = [len(fit.history) for fit, _ in fits.values() if not fit.converged]
        if not self.converged_ and max(steps) < self.max_iter:
            warnings.warn(
                f"{type(self).__name__} had not converged after {max(steps)} passes over the rows, the most that it "
                "makes over rows whose mapped features do not fit in memory. A larger working_memory "
                "(sklearn.set_config) begins nearer to the solution.",
                ConvergenceWarning,
                stacklevel=self._level_of_caller(),
            )
        eta = self._finish(total / len(chosen.members), Y, rows, chosen, X.dtype, compute_in_batches)
        return eta.astype(X.dtype, copy=False)

    def _fit_votes(
        self,
        votes: Votes,
        maps: dict[float, Any],
        mapped: dict[float, NDArray[Any]],
        Y: NDArray[Any],
        verified: NDArray[np.int8] | None,
    ) -> NDArray[Any]:
        """Infer the confidences from votes, and regress them on the features for new rows."""
        spectra = {width: spectrum_of(self._array(values)) for width, values in mapped.items()}
        options = {} if is_auto(self.gamma) else {"weights": (float(self.gamma),)}
        ridge = fit_best_ridge(list(spectra.values()), votes.shares, **options)
        found = fit_vote_model(ridge.held_out, votes)
        self.confidences_ = np.where(Y > 0, found.confidences, 0.0).astype(Y.dtype)
        self.sensitivity_, self.false_rate_ = found.sensitivity, found.false_rate
        # A false label is a candidate if any annotator says it.
        missed = (1 - found.false_rate[None, :]) ** votes.n_seen[:, None]
        rates = np.asarray(1 - missed.mean(axis=0))
        self.noise_rate_: NDArray[Any] = rates
        self.noise_range_: tuple[NDArray[Any], NDArray[Any]] = (rates, rates)
        self.selection_ = {"tried": []}
        targets = found.confidences
        if verified is not None and verified.any():
            first = next(iter(spectra.values()))
            learned = self._learn(verified, Y, found.probabilities, self.confidences_, first)
            targets = np.where((Y > 0) | (verified != 0), learned.targets, targets)
        history = [found.log_likelihood] * found.n_iter
        return self._regress(targets, maps, spectra, history, found.converged).astype(Y.dtype)

    def _learn(
        self,
        verified: NDArray[np.int8],
        Y: NDArray[Any],
        probabilities: NDArray[Any],
        confidences: NDArray[Any],
        spectrum: Spectrum,
    ) -> Bunch:
        """Set the confidences that follow from verified cells; return what was learned."""
        rows = Spectrum(**{name: to_numpy(value) for name, value in vars(spectrum).items()})
        learned = learn_from_verified(Y, verified, confidences, probabilities, spectrum=rows)
        self.confidences_ = np.where(Y > 0, learned.confidences, verified > 0).astype(confidences.dtype)
        return learned

    def _regress(
        self,
        targets: NDArray[Any],
        maps: dict[float, Any],
        spectra: dict[float, Spectrum],
        history: Sequence[float] = (0.0,),
        converged: bool = True,
    ) -> NDArray[Any]:
        """Regress probabilities of all cells on the features, for new rows, and return those of the rows."""
        options = {} if is_auto(self.gamma) else {"weights": (float(self.gamma),)}
        ridge = fit_best_ridge(list(spectra.values()), targets, **options)
        width = list(maps)[ridge.place]
        rates = self.noise_rate_
        setting = Setting("least-squares", False, width, ridge.gamma, 1.0)
        link: dict[str, Any] = {"family": "least-squares", "one_true": False, "rates": rates}
        held_out = to_probability(ridge.held_out, **link)
        self.calibration_ = fit_level(held_out.ravel(), targets.ravel())
        fit = Fit(
            setting=setting,
            coef=ridge.coef,
            intercept=ridge.intercept,
            rates=self._array(rates),
            history=list(history),
            converged=converged,
        )
        self.feature_maps_, self.nested_labels_ = [maps[width]], []
        self._keep([setting], [width], {setting: (fit, spectra[width])})
        self.selection_ = {
            "members": [asdict(setting)],
            "tried": self.selection_["tried"],
            "calibration": self.calibration_,
            "level": (1.0, 0.0),
        }
        scores = to_numpy(fit.probabilities(spectra[width].rows))
        return calibrate(scores, self.calibration_)

    def refit(self, X: Any, y: Any) -> CandidateLikelihood:
        """Fit the chosen settings to other rows, without a search.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_features)
            Features.
        y : {array-like, sparse matrix, DataFrame} of shape (n_rows, n_labels) or list of label sets
            Candidate labels.

        Returns
        -------
        CandidateLikelihood
            A new model with the members, the calibration and the level of this one. Coefficients and, unless it was
            given, the noise rate are those of the new rows.
        """
        check_is_fitted(self)
        model = clone(self)
        members = [Setting(**member) for member in self.selection_["members"]]
        model._chosen = _make_choice(members, calibration=self.calibration_, level=self.selection_["level"])
        return model.fit(X, y)

    def _confidences(
        self,
        eta: NDArray[Any],
        Y: NDArray[Any],
        level: tuple[float, float],
        compute: Callable[..., NDArray[Any]] = _compute_at_once,
    ) -> NDArray[Any]:
        """Return the confidences that follow from η, at the level of held-out rows."""
        confidences = compute(
            lambda eta, Y: apply_level(posterior(eta, self.noise_rate_, Y), level, Y > 0), eta, Y
        )
        return keep_nested_order(confidences, self.nested_labels_)

    def _set_noise_rate(self, given: NDArray[Any] | None, reduced: dict[float, Any], Y: NDArray[Any]) -> None:
        """Set ``noise_rate_`` and ``noise_range_``, from the best ridge regression without the row if not given."""
        if given is not None:
            self.noise_rate_, self.noise_range_ = given, (given, given)
            return
        labels = self._array(Y)
        scores = [held_out_ridge(spectrum_of(values), labels) for values in reduced.values()]
        best = to_numpy(min(scores, key=lambda each: each[1])[0])
        found = estimate_noise(best, Y, of_candidates=True)
        self.noise_rate_, self.noise_range_ = found.usable(), (found.low, found.high)

    def _map(
        self, scaled: Any, random: np.random.RandomState, widths: tuple[float, ...]
    ) -> tuple[dict[float, Any], dict[float, NDArray[Any]]]:
        """Return feature maps and mapped rows for each kernel width; all share their anchors."""
        if not self._has_anchors:
            only = resolve_feature_map(self.feature_map, n_anchors=self.n_anchors, random_state=random)
            values = as_dense(only.fit_transform(scaled), np.float64)
            if not np.isfinite(values).all():
                raise ValueError(f"feature_map={self.feature_map!r} maps X to NaN or infinity.")
            return {1.0: only}, {1.0: values}
        maps, mapped, anchors = {}, {}, None
        for width in widths:
            maps[width] = RBFAnchors(
                n_anchors=self.n_anchors, anchors=anchors, width=width, random_state=random
            )
            # The last column is the constant; the spectrum centers its features.
            mapped[width] = maps[width].fit_transform(scaled)[:, :-1]
            anchors = maps[width].anchors_
        return maps, mapped

    def _widths(self, chosen: Bunch | None) -> tuple[float, ...]:
        """Return the kernel widths to fit or to choose from."""
        if chosen is not None:
            return tuple(dict.fromkeys(member.width for member in chosen.members))
        if not self._has_anchors:
            return (1.0,)
        if not is_auto(self.kernel_width):
            return (float(self.kernel_width),)
        return _WIDTHS if self._votes is None else VOTE_WIDTHS

    def _choose(
        self,
        reduced: dict[float, Any],
        Y: NDArray[Any],
        folds: NDArray[Any],
        *,
        known: bool,
        report: Callable[[float, str], None],
    ) -> Bunch:
        """Choose the settings to average, best first; ``known`` says that the noise rate was given."""
        free_gamma = is_auto(self.gamma)
        coarse: list[Setting] = []
        for family in FAMILIES if self.family == "auto" else (self.family,):
            gammas = (_RIDGE_GAMMAS if family == "ridge" else _GAMMAS) if free_gamma else (float(self.gamma),)
            coarse += coarse_settings(
                families=(family,),
                one_true=(False, True) if is_auto(self.at_least_one) else (bool(self.at_least_one),),
                widths=tuple(reduced),
                gammas=gammas,
                noises=(1.0,) if known else _NOISES,
            )
        if len(coarse) == 1:
            return _make_choice(coarse)
        if len(Y) < 2 * self.n_folds and not hasattr(self, "_given_folds"):
            raise ValueError(
                f"X has {len(Y)} rows, too few to choose by n_folds={self.n_folds} folds of at least two rows; "
                "fix family, gamma, at_least_one, kernel_width and noise_rate, and nothing has to be chosen."
            )
        quick = self.effort == "quick"
        judge = SettingJudge(
            reduced,
            self._array(Y),
            self._array(folds),
            keep=self.n_members,
            n_judged=_count_judged(folds) if quick else None,
            race=not quick,
            rates=self._array(self.noise_rate_),
            **self._limits(len(Y)),
        )
        find = search_quickly if quick else search

        def tell(step: int, steps: int) -> None:
            report(0.15 + 0.55 * step / steps, f"choosing settings, step {step + 1} of {steps}")

        evidence = find(judge, coarse, free_gamma=free_gamma, free_noise=not known, tell=tell)
        members = evidence.best(self.n_members, within=1.0)
        report(0.7, "judging rows by models of the others")
        judge.complete(members)
        held_out = to_numpy(judge.held_out(members)).astype(np.float64)
        curve = fit_calibration(held_out, self.noise_rate_, Y)
        columns = zip(evidence.points, evidence.precision, evidence.distance, strict=True)
        tried = [asdict(setting) | {"precision": p, "distance": d} for setting, p, d in columns]
        return _make_choice(members, calibration=curve, tried=tried, held_out=calibrate(held_out, curve))

    def _limits(self, n_rows: int) -> dict[str, Any]:
        """Return the limits of the fits of a search."""
        limits = {"max_iter": min(self.max_iter, _SEARCH_ITER), "tol": max(self.tol, _SEARCH_TOL)}
        if self.effort == "quick" and n_rows > _FEW_ROWS:
            limits["pilot_rounds"] = _QUICK_PILOT
            if n_rows * len(self.classes_) > _MANY_CELLS:
                limits["max_iter"] = min(self.max_iter, _QUICK_ITER)
        return limits

    def _search_rows(
        self, scaled: Any, labels: NDArray[Any], random: np.random.RandomState
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the rows that a search uses, and the inner fold of each."""
        # In the order of content, so that the position of a row does not decide which fold it is in.
        rows = row_order(scaled, labels)
        rows = rows[np.sort(random.permutation(len(labels))[:_SEARCH_ROWS])]
        if hasattr(self, "_given_folds"):
            return rows, np.unique(self._given_folds[rows], return_inverse=True)[1]
        return rows, random.permutation(len(rows)) % min(self.n_folds, len(rows))

    def _reduce(self, mapped: dict[float, NDArray[Any]], rows: NDArray[np.intp]) -> dict[float, Any]:
        """Return the mapped features of some rows, with at most ``_SEARCH_ANCHORS`` anchors, where it is computed."""
        found = {}
        for width, values in mapped.items():
            # Anchors are interchangeable, features are not.
            step = -(-values.shape[1] // _SEARCH_ANCHORS) if self._has_anchors else 1
            found[width] = self._array(values[rows][:, ::step])
        return found

    @property
    def _has_anchors(self) -> bool:
        return isinstance(self.feature_map, str) and self.feature_map == "rbf"

    def _array(self, values: NDArray[Any]) -> Any:
        """As an array of the library that computes."""
        if self.device is None:
            return values
        import torch

        return torch.as_tensor(np.ascontiguousarray(values), device=self.device)

    def _keep(
        self, members: list[Setting], widths: list[float], fits: dict[Setting, tuple[Fit, Spectrum]]
    ) -> None:
        """Set what prediction needs, and the course of the slowest fit."""
        self.coef_, intercepts, rates, self._member_maps, self._member_links = [], [], [], [], []
        for member in members:
            fit, spectrum = fits[member]
            coef = spectrum.directions @ fit.coef
            self.coef_.append(to_numpy(coef))
            intercepts.append(to_numpy(fit.intercept - spectrum.mean @ coef))
            rates.append(to_numpy(fit.rates))
            self._member_maps.append(widths.index(member.width))
            self._member_links.append((member.family, bool(member.one_true)))
        self.intercept_, self._member_rates = np.array(intercepts), np.array(rates)
        self._record_slowest([fits[member][0] for member in members])

    def _record_slowest(self, fits: Sequence[Fit | Member]) -> None:
        slowest = max(fits, key=lambda fit: len(fit.history))
        converged = self.effort == "quick" or all(fit.converged for fit in fits)
        self._record({"objective": slowest.history}, converged=converged)

    def _scores(self, X: Any) -> NDArray[Any]:
        # Without the device, and for sparse rows, which it would make dense, predict with NumPy.
        device = self.device if has_device(self.device) and not scipy.sparse.issparse(X) else None
        transforms = [transformer_on(each, np.float64, device) for each in self.feature_maps_]
        found = []
        for rows in gen_batches(X.shape[0], _SCORED_ROWS):
            scaled = self.scaler_.transform(X[rows]).astype(np.float64, copy=False)
            found.append(self._probabilities([transform(scaled) for transform in transforms]).astype(X.dtype))
        return np.concatenate(found)

    def _probabilities(self, mapped: list[Any]) -> NDArray[Any]:
        """Return η by the mean of the members, from the mapped features of rows for each map."""
        device = self.device if is_torch_array(mapped[0]) else None
        total = np.zeros((len(mapped[0]), len(self.classes_)))
        for place in range(len(self.coef_)):
            coef, intercept, rates = (
                to_device(np.asarray(values[place], dtype=np.float64), device)
                for values in (self.coef_, self.intercept_, self._member_rates)
            )
            features = mapped[self._member_maps[place]][:, : coef.shape[0]]
            family, one_true = self._member_links[place]
            scores = features @ coef + intercept
            total += to_numpy(to_probability(scores, family=family, one_true=one_true, rates=rates))
        eta = calibrate(total / len(self.coef_), self.calibration_)
        return keep_nested_order(eta, self.nested_labels_)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_parameters(self, choices={"family": ("auto", *FAMILIES), "effort": ("full", "quick")})
        for name in ("gamma", "kernel_width"):
            value = getattr(self, name)
            number = isinstance(value, Real) and not isinstance(value, bool)
            if not (is_auto(value) or (number and 0 < value < np.inf)):
                raise ValueError(f'{name} must be "auto" or a number above 0, got {value!r}.')
        check_at_least_one(self.at_least_one)
        if self.device is not None:
            check_device(self.device)
        if self.n_folds < 2:
            raise ValueError(f"n_folds must be at least 2, got {self.n_folds}.")


def _count_judged(folds: NDArray[np.intp]) -> int:
    """Return how many folds hold enough rows to judge settings, at least two."""
    reached = np.cumsum(np.bincount(folds)) >= _ENOUGH_ROWS
    return max(2, int(np.argmax(reached)) + 1) if reached.any() else len(reached)


def _make_choice(members: list[Setting], **known: Any) -> Bunch:
    """Return settings to average, the curves of their probabilities, and what a search found (calibrated held_out)."""
    identity = (1.0, 0.0)
    unknown: dict[str, Any] = {"calibration": identity, "level": identity, "tried": [], "held_out": None}
    return Bunch(members=members, **(unknown | known))
