"""CandidateLikelihood: scikit-learn face of the likelihood for candidate labels."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state, gen_batches

from skpml._ordering import row_order
from skpml._validation import check_device, check_parameters
from skpml.base import BasePMLClassifier, MethodFacts
from skpml.candidate_likelihood._search import (
    FAMILIES,
    Evidence,
    SettingJudge,
    coarse_settings,
    earlier_choice,
    search,
)
from skpml.features import RBFAnchors, as_dense, resolve_feature_map
from skpml.likelihood._calibration import calibrated, calibration
from skpml.likelihood._confidences import Curve, level_curve, on_curve
from skpml.likelihood._nesting import keep_order, nested_labels
from skpml.likelihood._noise_model import posterior
from skpml.likelihood._settings import (
    Fit,
    Setting,
    check_at_least_one,
    fit_settings,
    is_auto,
    known_rates,
    noise_anchor,
    to_probability,
)
from skpml.linalg import Spectrum, one_blas, spectrum_of, to_numpy
from skpml.views import ViewScaler

__all__ = ["CandidateLikelihood"]

# What a search begins with where nothing is fixed; ridge regression is cheap and gets a finer grid.
_GAMMAS, _RIDGE_GAMMAS = (0.01, 0.1, 1.0), tuple(10.0 ** (power / 2) for power in range(-6, 3))
_NOISES, _WIDTHS = (1.0, 1.4), (0.5, 1.0)
# A search looks at no more anchors and rows than these: settings carry over, since features are scaled.
_SEARCH_ANCHORS, _SEARCH_ROWS = 700, 6000
# Up to so many rows the products are small: threads would spend their time waiting for each other.
_FEW_ROWS = 1000
# Rows that are mapped to their similarities at a time, for memory.
_SCORED_ROWS = 20_000


class CandidateLikelihood(BasePMLClassifier):
    """A probability for every candidate: the likelihood of candidate labels, with everything chosen without true labels.

    Every true label is a candidate; a false one becomes a candidate with probability ρ. With η the probability that a
    label is true, learnt from the features,

        P(candidate) = η + (1 − η) ρ        P(true | candidate) = η / (η + (1 − η) ρ).

    η is either linear in the features (*least-squares*: ridge regression onto P(true | candidate), each row judged by the
    others) or its logit is (*logistic*: penalised maximum likelihood, with a covariance between labels); optionally
    given that each row has at least one true label. Family, smoothness, noise rate and kernel width are chosen by how
    well rows left out of a fit rank their candidates, ridge regression on the candidates among the choices; the
    probabilities of the best few are averaged.

    Parameters
    ----------
    family : {"auto", "logistic", "least-squares", "ridge"}, default="auto"
        "ridge" takes every candidate for true.
    gamma : float or "auto", default="auto"
        Weight of the size of the coefficients, for features scaled to length 1 in the mean square.
    noise_rate : float, array of shape (c,) or "auto", default="auto"
        ρ, between 0 and 1.
    at_least_one : bool or "auto", default="auto"
        Whether every row with candidates has a true label.
    kernel_width : float or "auto", default="auto"
        Width of the Gaussian features, relative to that of :class:`~skpml.features.RBFAnchors`.
    selection : dict or "auto", default="auto"
        The ``selection_`` of an earlier fit, to fit the same settings to other rows without a search; family, gamma,
        at_least_one, kernel_width and n_members are not looked at then, and where `noise_rate` is given, the noise is
        that.
    keep_nested_order : bool, default=True
        Whether a label that never comes without another is kept below it in probability, see ``nested_labels_``.
    n_members : int, default=10
        Most settings that are averaged.
    n_folds : int, default=3
        Inner folds that settings are judged on.
    feature_map : {"rbf", "linear"} or transformer, default="rbf"
        As in :class:`skpml.PMLMA`. Only "rbf" has a width to choose.
    n_anchors : int or None, default=None
        As in :class:`skpml.PMLMA`.
    views : dict of name to list of columns or None, default=None
        Groups of columns of X, by position or by name in a data frame, that are views of their own; every column belongs
        to one. A list or dict of matrices as X has views without this. See :mod:`skpml.views`.
    view_weights : "auto", dict of name to number, or sequence of numbers, default="auto"
        How much each view counts; "auto" learns it from the candidates.
    threshold : float, "auto" or "non-candidates", default="auto"
        Probabilities above it are predicted; "auto" is 0.5.
    max_iter : int, default=200
        Most steps of a logistic fit.
    tol : float, default=1e-5
        Relative change of the likelihood at which a logistic fit stops.
    batch : int, default=8
        Settings fitted together: memory is that of so many times the scores.
    device : str or None, default=None
        None computes with NumPy; a name such as "cuda" with PyTorch on that device.
    on_empty : {"warn", "raise", "ignore"}, default="warn"
        What to do about rows without candidates (taken as having no label) and labels that are nobody's candidate.
    random_state : int, RandomState or None, default=None
        Draws the anchors and the inner folds.

    Attributes
    ----------
    confidences_ : ndarray of shape (n, c)
        Probability of each candidate to be true; 0 elsewhere.
    noise_rate_ : ndarray of shape (c,)
        How often a false label is a candidate: the given rates, or an estimate from rows that clearly lack a label. A
        member may assume up to 1.8 times the odds.
    selection_ : dict
        ``"members"``: the settings that are averaged; ``"tried"``: every setting that was judged, with ``"precision"``
        (mean average precision of rows left out, the candidates taken for the truth) and ``"distance"`` (by how many
        standard errors it falls short of the best), empty where everything was fixed; ``"calibration"``, and
        ``"level"``, the map of confidences of training rows to what they are when left out.
    calibration_ : tuple of float
        Slope and shift of the map from the mean of the members to the probability, on logits.
    nested_labels_ : list of pairs of int
        Labels (inner, outer) by position: no row has the inner one as a candidate without the outer one, so that it is
        never given the higher probability.
    coef_ : list of ndarrays of shape (n_mapped_features, c)
        Of each member, on mapped features.
    intercept_ : ndarray of shape (n_members, c)
    threshold_ : float
    classes_ : ndarray of shape (c,)
    history_ : dict of ndarrays
        The course of the best member's fit: its penalised log-likelihood, or the largest change of a probability.
    n_iter_ : int
    converged_ : bool
        Of all members.
    view_weights_ : dict of name to float
        Share of each view, with the sum 1; one matrix is "view 0".
    scaler_ : fitted transformer
    feature_maps_ : list of fitted transformers
        One for each kernel width that a member uses.
    n_features_in_ : int
    feature_names_in_ : ndarray, where X had names

    Notes
    -----
    For n rows, a anchors, c labels, k tried settings and t steps of a fit: time O(n a² + a³ + k t n a c), where the
    search counts at most 6000 rows and 700 anchors, memory O(n (a + c × batch)). Derivation, choices and measurements
    are on the page of the method.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from skpml import CandidateLikelihood
    >>> from skpml.noise import top_up
    >>> X, truth = make_multilabel_classification(300, random_state=0)
    >>> model = CandidateLikelihood(random_state=0).fit(X, top_up(truth, 4, random_state=0))
    >>> model.predict_proba(X).shape
    (300, 5)
    """

    _facts = MethodFacts(
        name="candidate-likelihood",
        title="Candidate likelihood",
        kind="own",
        summary="a probability for every candidate from a model of the noise; sets itself without true "
        "labels",
        confidences=True,
        nonlinear=True,
        random=True,
    )

    _takes_views = True
    _scores_are_probabilities = True

    def __init__(
        self,
        *,
        family: str = "auto",
        gamma: float | str = "auto",
        noise_rate: Any = "auto",
        at_least_one: bool | str = "auto",
        kernel_width: float | str = "auto",
        selection: dict[str, Any] | str = "auto",
        keep_nested_order: bool = True,
        n_members: int = 10,
        n_folds: int = 3,
        feature_map: Any = "rbf",
        n_anchors: int | None = None,
        views: Any = None,
        view_weights: Any = "auto",
        threshold: float | str = "auto",
        max_iter: int = 200,
        tol: float = 1e-5,
        batch: int = 8,
        device: str | None = None,
        on_empty: str = "warn",
        random_state: Any = None,
    ) -> None:
        self.family = family
        self.gamma = gamma
        self.noise_rate = noise_rate
        self.at_least_one = at_least_one
        self.kernel_width = kernel_width
        self.selection = selection
        self.keep_nested_order = keep_nested_order
        self.n_members = n_members
        self.n_folds = n_folds
        self.feature_map = feature_map
        self.n_anchors = n_anchors
        self.views = views
        self.view_weights = view_weights
        self.threshold = threshold
        self.max_iter = max_iter
        self.tol = tol
        self.batch = batch
        self.device = device
        self.on_empty = on_empty
        self.random_state = random_state

    def _fit(self, X: Any, Y: NDArray[Any]) -> NDArray[Any]:
        with one_blas(Y) if X.shape[0] <= _FEW_ROWS else nullcontext():
            return self._fit_rows(X, Y)

    def _fit_rows(self, X: Any, Y: NDArray[Any]) -> NDArray[Any]:
        rates = known_rates(self.noise_rate, Y.shape[1])
        random = check_random_state(self.random_state)
        self.scaler_ = ViewScaler(columns=self._view_columns, weights=self.view_weights).fit(X, Y)
        self.view_weights_ = self.scaler_.weights_
        if not self.scaler_.scale_.any():
            raise ValueError("Every feature of X is constant; there is nothing to learn from.")
        scaled = self.scaler_.transform(X).astype(np.float64, copy=False)
        labels = Y.astype(np.float64, copy=False)
        maps, mapped = self._map(scaled, random)
        search_rows, folds = self._search_rows(np.column_stack([scaled, labels]), random)
        members, left_out = self._choose(
            len(Y), tuple(mapped), rates, partial(self._judge, mapped, labels, search_rows, folds, rates)
        )
        widths = [width for width in maps if any(member.width == width for member in members)]
        self.feature_maps_ = [maps[width] for width in widths]
        fits: dict[Setting, tuple[Fit, Spectrum]] = {}
        anchors = []
        targets = self._array(labels)
        for width in widths:
            spectrum = spectrum_of(self._array(mapped.pop(width)))
            anchor = noise_anchor(spectrum, targets) if rates is None else self._array(rates)
            anchors.append(to_numpy(anchor))
            mine = [member for member in members if member.width == width]
            found = fit_settings(
                spectrum, targets, mine, anchor, batch=self.batch, max_iter=self.max_iter, tol=self.tol
            )
            fits.update({fit.setting: (fit, spectrum) for fit in found})
        self.noise_rate_ = np.mean(anchors, axis=0)
        self._keep(members, widths, fits)
        rows = [to_numpy(fits[member][0].probabilities(fits[member][1].rows)) for member in members]
        # Between labels of different noise, the rows say nothing of an order.
        self.nested_labels_ = [
            (inner, outer)
            for inner, outer in (nested_labels(labels) if self.keep_nested_order else [])
            if self.noise_rate_[inner] == self.noise_rate_[outer]
        ]
        eta = keep_order(calibrated(np.mean(rows, axis=0), *self.calibration_), self.nested_labels_)
        self.confidences_ = self._believed(eta, labels, search_rows, left_out).astype(X.dtype)
        return eta.astype(X.dtype)

    def _believed(
        self,
        eta: NDArray[Any],
        Y: NDArray[Any],
        rows: NDArray[np.intp],
        left_out: NDArray[Any] | None,
    ) -> NDArray[Any]:
        """Confidences, at the level of the rows that a search has left out; sets the curve to it in ``selection_``."""
        confidences = posterior(eta, self.noise_rate_, Y)
        if left_out is not None:
            candidate = Y[rows] > 0
            reference = posterior(left_out, self.noise_rate_, Y[rows])
            self.selection_["level"] = level_curve(confidences[rows][candidate], reference[candidate])
        return keep_order(on_curve(confidences, self.selection_["level"], Y > 0), self.nested_labels_)

    def _map(
        self, scaled: NDArray[Any], random: np.random.RandomState
    ) -> tuple[dict[float, Any], dict[float, NDArray[Any]]]:
        """Feature maps and mapped rows for every kernel width in question; all share their anchors."""
        if not self._has_anchors:
            only = resolve_feature_map(self.feature_map, n_anchors=self.n_anchors, random_state=random)
            values = as_dense(only.fit_transform(scaled), np.float64)
            if not np.isfinite(values).all():
                raise ValueError(f"feature_map={self.feature_map!r} maps X to NaN or infinity.")
            return {1.0: only}, {1.0: values}
        maps, mapped, anchors = {}, {}, None
        for width in self._widths():
            maps[width] = RBFAnchors(
                n_anchors=self.n_anchors, anchors=anchors, width=width, random_state=random
            )
            # The last column is the constant; the spectrum centres its features.
            mapped[width] = maps[width].fit_transform(scaled)[:, :-1]
            anchors = maps[width].anchors_
        return maps, mapped

    def _widths(self) -> tuple[float, ...]:
        """Kernel widths in question."""
        known = earlier_choice(self.selection)
        if known is not None:
            return tuple(dict.fromkeys(member.width for member in known[0]))
        return _WIDTHS if is_auto(self.kernel_width) else (float(self.kernel_width),)

    def _choose(
        self,
        n_rows: int,
        widths: tuple[float, ...],
        rates: NDArray[Any] | None,
        make_judge: Callable[[], SettingJudge],
    ) -> tuple[list[Setting], NDArray[Any] | None]:
        """The settings to average, best first; sets ``selection_`` and ``calibration_``.

        And the probabilities of the rows of the search, each left out, where there was one.
        """
        known = earlier_choice(self.selection)
        if known is not None:
            members, self.calibration_, level = known
            if rates is not None:
                members = list(dict.fromkeys(replace(member, noise=1.0) for member in members))
            if strange := {member.width for member in members} - set(widths):
                raise ValueError(
                    f"selection has the kernel width {min(strange)}, but feature_map={self.feature_map!r} has none."
                )
            self._keep_selection(members, level=level)
            return members, None
        free_gamma, free_noise = is_auto(self.gamma), rates is None
        families = FAMILIES if self.family == "auto" else (self.family,)
        one_true = (False, True) if is_auto(self.at_least_one) else (bool(self.at_least_one),)
        noises = _NOISES if free_noise else (1.0,)
        coarse: list[Setting] = []
        for family in families:
            gammas = (_RIDGE_GAMMAS if family == "ridge" else _GAMMAS) if free_gamma else (float(self.gamma),)
            coarse += coarse_settings(
                families=(family,), one_true=one_true, widths=widths, gammas=gammas, noises=noises
            )
        if len(coarse) == 1:
            self.calibration_ = (1.0, 0.0)
            self._keep_selection(coarse)
            return coarse, None
        if n_rows < 2 * self.n_folds:
            raise ValueError(
                f"X has {n_rows} rows, too few to choose by n_folds={self.n_folds} folds of at least two rows; "
                "fix family, gamma, at_least_one, kernel_width and noise_rate, and nothing has to be chosen."
            )
        judge = make_judge()
        evidence = search(judge, coarse, free_gamma=free_gamma, free_noise=free_noise)
        members = evidence.best(self.n_members, within=1.0)
        left_out, candidates = map(to_numpy, judge.held_out(members))
        noise = judge.anchor() if rates is None else rates
        self.calibration_ = calibration(left_out.astype(np.float64), noise, candidates)
        self._keep_selection(members, evidence)
        return members, calibrated(left_out, *self.calibration_)

    def _keep_selection(
        self, members: list[Setting], evidence: Evidence | None = None, level: Curve = (1.0, 0.0)
    ) -> None:
        self.selection_: dict[str, Any] = {
            "members": [asdict(member) for member in members],
            "tried": [] if evidence is None else _as_table(evidence),
            "calibration": self.calibration_,
            "level": level,
        }

    def _search_rows(
        self, content: NDArray[Any], random: np.random.RandomState
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Rows that a search looks at, and the inner fold of each."""
        # In the order of content: where a row stands must not decide which fold it is in.
        rows = row_order(content)
        rows = rows[np.sort(random.permutation(len(content))[:_SEARCH_ROWS])]
        return rows, random.permutation(len(rows)) % min(self.n_folds, len(rows))

    def _judge(
        self,
        mapped: dict[float, NDArray[Any]],
        labels: NDArray[Any],
        rows: NDArray[np.intp],
        folds: NDArray[np.intp],
        rates: NDArray[Any] | None,
    ) -> SettingJudge:
        few = {}
        for width, values in mapped.items():
            # Anchors stand for each other, features do not.
            step = -(-values.shape[1] // _SEARCH_ANCHORS) if self._has_anchors else 1
            few[width] = self._array(values[rows][:, ::step])
        return SettingJudge(
            few,
            self._array(labels[rows]),
            self._array(folds),
            keep=self.n_members,
            rates=None if rates is None else self._array(rates),
            batch=self.batch,
            max_iter=self.max_iter,
            tol=self.tol,
        )

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
        self,
        members: list[Setting],
        widths: list[float],
        fits: dict[Setting, tuple[Fit, Spectrum]],
    ) -> None:
        """Set what prediction needs, and the course of the best fit."""
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
        converged = all(fits[member][0].converged for member in members)
        self._record({"objective": fits[members[0]][0].history}, converged=converged)

    def _scores(self, X: Any) -> NDArray[Any]:
        blocks = gen_batches(X.shape[0], _SCORED_ROWS)
        return np.concatenate([self._block_scores(X[block]) for block in blocks])

    def _block_scores(self, X: Any) -> NDArray[Any]:
        scaled = self.scaler_.transform(X).astype(np.float64, copy=False)
        mapped = [as_dense(each.transform(scaled), np.float64) for each in self.feature_maps_]
        total = np.zeros((X.shape[0], len(self.classes_)))
        for place, coef in enumerate(self.coef_):
            features = mapped[self._member_maps[place]][:, : coef.shape[0]]
            family, one_true = self._member_links[place]
            total += to_probability(
                features @ coef + self.intercept_[place],
                family=family,
                one_true=one_true,
                rates=self._member_rates[place],
            )
        eta = calibrated(total / len(self.coef_), *self.calibration_)
        return keep_order(eta, self.nested_labels_).astype(X.dtype)

    def _check_parameters(self) -> None:
        check_parameters(
            self,
            weights=("tol",),
            counts=("n_members", "n_folds", "max_iter", "batch"),
            optional_counts=("n_anchors",),
            choices={"family": ("auto", *FAMILIES)},
        )
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


def _as_table(evidence: Evidence) -> list[dict[str, Any]]:
    columns = zip(evidence.points, evidence.precision, evidence.distance, strict=True)
    return [asdict(setting) | {"precision": p, "distance": d} for setting, p, d in columns]
