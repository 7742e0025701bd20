"""Choose settings of CandidateLikelihood without true labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from itertools import groupby
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from skpml.likelihood._confidences import Curve
from skpml.likelihood._settings import Setting, fit_settings, is_auto, noise_anchor, pilot_covariance
from skpml.linalg import Array, spectrum_of, to_numpy
from skpml.model_selection import Evidence, Judge, PointScores

FAMILIES = ("ridge", "least-squares", "logistic")
# Rankings of candidates hardly depend on the noise rate: the search must not drift away with it.
_LEAST_NOISE, _MOST_NOISE = 0.6, 1.8


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
    """List the settings that a search begins with; ridge regression has no noise rate and assumes no true label."""
    return [
        Setting(family, one, width, gamma, noise)  # type: ignore[arg-type]
        for family in families
        for one in ((False,) if family == "ridge" else one_true)
        for width in widths
        for gamma in gammas
        for noise in ((1.0,) if family == "ridge" else noises)
    ]


def neighbors(setting: Setting, *, gammas: bool, noises: bool, ratio: float, step: float) -> list[Setting]:
    """List the settings next to one: γ up and down by a ratio, the noise by a step."""
    found = []
    if gammas:
        found += [replace(setting, gamma=setting.gamma * change) for change in (ratio, 1 / ratio)]
    if noises and setting.family != "ridge":
        near = (round(setting.noise + change, 6) for change in (step, -step))
        found += [replace(setting, noise=noise) for noise in near if _LEAST_NOISE <= noise <= _MOST_NOISE]
    return found


class SettingJudge(Judge):
    """Judge settings by mapped features, on the device that these are on.

    Parameters
    ----------
    mapped : mapping of width to (n, d)
        Mapped training features for each kernel width.
    Y : (n, c)
    folds : (n,) of int
        The inner fold of each row.
    keep : int
        Keep the held-out probabilities of so many settings, the best so far.
    rates : (c,), optional
        Known noise rates; None estimates them from the rows of each fold (:func:`noise_anchor`).
    batch : int
        Number of settings that are fitted together. Of the others, one number per row is in memory.
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
        self._mapped, self._folds, self._batch, self._fitting = mapped, folds, batch, fitting
        self._Y = xp.astype(Y, xp.float32)
        self._rates = None if rates is None else xp.astype(rates, xp.float32)
        self._prepared: dict[tuple[float, int], Any] = {}
        n_folds = int(array_namespace(folds).max(folds)) + 1
        labels = [self._Y[folds == fold, :] for fold in range(n_folds)]
        super().__init__(self._score_settings, labels, keep=keep, pooled=True)

    def try_settings(self, settings: Sequence[Setting]) -> None:
        """Judge settings, at most ``batch`` of them in memory at a time."""
        new = sorted({setting for setting in settings if setting not in self._rows})
        for _, group in groupby(new, key=lambda setting: (setting.family, setting.one_true, setting.width)):
            alike = list(group)
            for start in range(0, len(alike), self._batch):
                self.try_points(alike[start : start + self._batch])

    def _score_settings(self, settings: Sequence[Setting], fold: int) -> PointScores:
        """Score held-out rows by settings that differ only in γ and the noise."""
        Y = self._Y[self._folds != fold, :]
        spectrum, held_out, anchor, covariance = self._prepare(settings[0].width, fold)
        for fit in fit_settings(
            spectrum, Y, settings, anchor, covariance, batch=self._batch, **self._fitting
        ):
            yield settings.index(fit.setting), fit.probabilities(held_out)

    def _prepare(self, width: float, fold: int) -> Any:
        if (width, fold) not in self._prepared:
            held = self._folds == fold
            # Single precision is enough to compare settings, and half the work; the basis needs double precision.
            single = array_namespace(self._Y).float32
            exact = spectrum_of(self._mapped[width][~held, :])
            held_out = exact.project(self._mapped[width][held, :])
            spectrum, held_out = exact.astype(single), array_namespace(held_out).astype(held_out, single)
            Y = self._Y[~held, :]
            anchor = noise_anchor(spectrum, Y) if self._rates is None else self._rates
            covariance = pilot_covariance(spectrum, Y, anchor)
            self._prepared[width, fold] = spectrum, held_out, anchor, covariance
        return self._prepared[width, fold]

    def anchor(self) -> Array:
        """Return the noise rates, averaged over folds and widths."""
        return np.mean([to_numpy(anchor) for _, _, anchor, _ in self._prepared.values()], axis=0)

    def held_out(self, members: Sequence[Setting]) -> tuple[Array, Array]:
        """Return the mean held-out probabilities of all rows by kept settings, and the candidates of the rows."""
        xp = array_namespace(self._Y)
        # Scores are kept fold by fold.
        place = np.argsort(np.argsort(to_numpy(self._folds), kind="stable"), kind="stable")
        rows = xp.asarray(place, device=device(self._Y))
        return xp.take(xp.concat(self.mean_scores(members)), rows, axis=0), self._Y


def search(
    judge: SettingJudge,
    coarse: Sequence[Setting],
    *,
    free_gamma: bool = True,
    free_noise: bool = True,
    rounds: int = 2,
    leaders: int = 4,
) -> Evidence:
    """Judge a coarse grid, then the neighbors of the best settings, closer in every round."""
    judge.try_settings(coarse)
    ratio, step = 10**0.5, 0.2
    for _ in range(rounds):
        judge.try_settings(
            [
                near
                for setting in judge.evidence().best(leaders)
                for near in neighbors(setting, gammas=free_gamma, noises=free_noise, ratio=ratio, step=step)
            ]
        )
        ratio = ratio**0.5
    return judge.evidence()
