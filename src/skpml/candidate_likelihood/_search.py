"""Choosing settings without a true label: rows left out of a fit, judged by their candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from skpml.likelihood._confidences import Curve
from skpml.likelihood._settings import Setting, fit_settings, is_auto, noise_anchor, pilot_covariance
from skpml.linalg import Array, spectrum_of, to_numpy
from skpml.model_selection._held_out import row_precision, shortfall

FAMILIES = ("ridge", "least-squares", "logistic")
# The ranking of candidates hardly tells rates of noise apart: a search must not run away with them.
_LEAST_NOISE, _MOST_NOISE = 0.6, 1.8


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """How well tried settings rank the candidates of rows that they were not fitted on.

    Attributes
    ----------
    settings : list of Setting
    precision : list of float
        Mean over rows of the average precision, the candidates taken for the truth.
    distance : list of float
        By how many standard errors the precision of each falls short of the best one's, row by row.
    """

    settings: list[Setting]
    precision: list[float]
    distance: list[float]

    def best(self, count: int, within: float = 1.0) -> list[Setting]:
        """The ``count`` best settings among those that the evidence does not tell from the best one."""
        order = sorted(range(len(self.settings)), key=lambda place: -self.precision[place])
        return [self.settings[place] for place in order[:count] if self.distance[place] <= within]


def earlier_choice(selection: Any) -> tuple[list[Setting], Curve, Curve] | None:
    """Members, calibration and level of the ``selection_`` of an earlier fit; None where everything is to be chosen."""
    if is_auto(selection):
        return None
    try:
        members = [Setting(**member) for member in selection["members"]]
        curves = [
            (float(slope), float(shift)) for slope, shift in (selection["calibration"], selection["level"])
        ]
        sound = all(
            member.family in FAMILIES and all(0 < value < np.inf for value in astuple(member)[2:])
            for member in members
        ) and all(0 < slope < np.inf and np.isfinite(shift) for slope, shift in curves)
    except (TypeError, KeyError, ValueError):
        members, curves, sound = [], [], False
    if not (members and sound):
        raise ValueError(f'selection must be "auto" or the selection_ of an earlier fit, got {selection!r}.')
    return members, curves[0], curves[1]


def coarse_settings(
    *,
    families: Sequence[str],
    one_true: Sequence[bool],
    widths: Sequence[float],
    gammas: Sequence[float],
    noises: Sequence[float],
) -> list[Setting]:
    """The grid that a search begins with; ridge regression knows neither noise nor a true label."""
    found = []
    for family in families:
        plain = family == "ridge"
        found += [
            Setting(family, one, width, gamma, noise)  # type: ignore[arg-type]
            for one in ((False,) if plain else one_true)
            for width in widths
            for gamma in gammas
            for noise in ((1.0,) if plain else noises)
        ]
    return found


def neighbours(setting: Setting, *, gammas: bool, noises: bool, ratio: float, step: float) -> list[Setting]:
    """Settings around one: γ up and down by a ratio, the noise by a step."""
    found = []
    if gammas:
        found += [replace(setting, gamma=setting.gamma * change) for change in (ratio, 1 / ratio)]
    if noises and setting.family != "ridge":
        near = (round(setting.noise + change, 6) for change in (step, -step))
        found += [replace(setting, noise=noise) for noise in near if _LEAST_NOISE <= noise <= _MOST_NOISE]
    return found


class Judge:
    """Fits settings on inner folds and keeps what the rows left out say of them.

    Parameters
    ----------
    mapped : mapping of width to (n, d)
        Mapped training features for each kernel width.
    Y : (n, c)
    folds : (n,) of int
        The inner fold of each row.
    keep : int
        Of so many settings, the best so far, the probabilities of rows left out are kept.
    rates : (c,), optional
        Known rates of false candidates; None takes them from the rows of each fold (:func:`noise_anchor`).
    batch : int
        Settings fitted together. What is kept of every setting is one number a row.
    **fitting
        For :func:`fit_settings`.
    """

    def __init__(
        self,
        mapped: Mapping[float, Array],
        Y: Array,
        folds: Array,
        *,
        keep: int = 0,
        rates: Array | None = None,
        batch: int = 8,
        **fitting: Any,
    ) -> None:
        xp = array_namespace(Y)
        self._mapped, self._folds, self._fitting = mapped, folds, fitting
        self._Y = xp.astype(Y, xp.float32)
        self._rates = None if rates is None else xp.astype(rates, xp.float32)
        self._rows: dict[Setting, Array] = {}
        self._keep, self._batch = keep, batch
        self._left_out: dict[Setting, Array] = {}
        self._prepared: dict[tuple[float, int], Any] = {}
        self._n_folds = int(array_namespace(folds).max(folds)) + 1

    def try_settings(self, settings: Sequence[Setting]) -> None:
        """Judge settings that have not been judged yet, at most ``batch`` in memory at a time."""
        new = sorted(setting for setting in set(settings) if setting not in self._rows)
        for _, alike in groupby(new, key=lambda setting: (setting.family, setting.one_true, setting.width)):
            waiting = list(alike)
            for start in range(0, len(waiting), self._batch):
                self._try(waiting[start : start + self._batch])

    def _try(self, settings: list[Setting]) -> None:
        """Judge some settings that are alike but for γ and the noise."""
        xp = array_namespace(self._Y)
        precision: dict[Setting, list[Array]] = {setting: [] for setting in settings}
        probabilities: dict[Setting, list[Array]] = {setting: [] for setting in settings}
        for fold in range(self._n_folds):
            held = self._folds == fold
            spectrum, left_out, anchor, covariance = self._prepare(settings[0].width, fold)
            for fit in fit_settings(
                spectrum, self._Y[~held, :], settings, anchor, covariance, batch=self._batch, **self._fitting
            ):
                probabilities[fit.setting].append(fit.probabilities(left_out))
                precision[fit.setting].append(row_precision(probabilities[fit.setting][-1], self._Y[held, :]))
        self._rows.update({setting: xp.concat(rows) for setting, rows in precision.items()})
        self._left_out.update({setting: xp.concat(rows) for setting, rows in probabilities.items()})
        best = self.evidence().best(self._keep, within=float("inf"))
        self._left_out = {setting: self._left_out[setting] for setting in best}

    def left_out(self, members: Sequence[Setting]) -> tuple[Array, Array]:
        """Mean probabilities of all rows, each left out, by settings among the best, and the candidates of the rows."""
        total = sum(self._left_out[member] for member in members)
        # Kept fold by fold.
        place = np.argsort(np.argsort(to_numpy(self._folds), kind="stable"), kind="stable")
        xp = array_namespace(self._Y)
        rows = xp.asarray(place, device=device(self._Y))
        return xp.take(total / len(members), rows, axis=0), self._Y

    def _prepare(self, width: float, fold: int) -> Any:
        if (width, fold) not in self._prepared:
            held = self._folds == fold
            # Single precision is enough to tell settings apart, and half the work; the basis needs all digits.
            single = array_namespace(self._Y).float32
            exact = spectrum_of(self._mapped[width][~held, :])
            left_out = exact.project(self._mapped[width][held, :])
            spectrum, left_out = exact.astype(single), array_namespace(left_out).astype(left_out, single)
            Y = self._Y[~held, :]
            anchor = noise_anchor(spectrum, Y) if self._rates is None else self._rates
            covariance = pilot_covariance(spectrum, Y, anchor)
            self._prepared[width, fold] = spectrum, left_out, anchor, covariance
        return self._prepared[width, fold]

    def anchor(self) -> Array:
        """The noise rates that the folds found, on average."""
        found = [to_numpy(anchor) for _, _, anchor, _ in self._prepared.values()]
        return np.mean(found, axis=0)

    def evidence(self) -> Evidence:
        """What is known so far."""
        xp = array_namespace(self._Y)
        settings = sorted(self._rows)
        # Where no row has candidates and non-candidates, nothing can be told.
        means = [float(xp.mean(self._rows[s])) if self._rows[s].shape[0] else 0.0 for s in settings]
        best = self._rows[settings[max(range(len(means)), key=means.__getitem__)]]
        distance = [shortfall(best, self._rows[setting]) for setting in settings]
        return Evidence(settings=settings, precision=means, distance=distance)


def search(
    judge: Judge,
    coarse: Sequence[Setting],
    *,
    free_gamma: bool = True,
    free_noise: bool = True,
    rounds: int = 2,
    leaders: int = 4,
) -> Evidence:
    """Judge a coarse grid, then the neighbours of the best settings, closer by every round."""
    judge.try_settings(coarse)
    ratio, step = 10**0.5, 0.2
    for _ in range(rounds):
        best = judge.evidence().best(leaders, within=float("inf"))
        around = [
            near
            for setting in best
            for near in neighbours(setting, gammas=free_gamma, noises=free_noise, ratio=ratio, step=step)
        ]
        judge.try_settings(around)
        ratio = ratio**0.5
    return judge.evidence()
