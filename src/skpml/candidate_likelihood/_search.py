"""Choose settings of CandidateLikelihood without true labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from skpml.likelihood import Setting, fit_settings, pilot_covariance
from skpml.linalg import Array, spectrum_of, to_numpy
from skpml.model_selection import Evidence, Judge, PointScores

FAMILIES = ("ridge", "least-squares", "logistic")
# Rankings of candidates hardly depend on the noise rate: the search must not drift away with it.
_LEAST_NOISE, _MOST_NOISE = 0.6, 1.8
# Up to this many rows settings are compared in double precision.
_FEW_ROWS = 1000


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

    ``mapped`` has the mapped training features (n, d) for each kernel width, ``folds`` the inner fold of each row and
    ``rates`` the noise rates (c). The held-out probabilities of the ``keep`` best settings so far are kept; of others,
    one number per row. ``batch`` settings are fitted together; ``fitting`` is for :func:`fit_settings`.
    """

    def __init__(
        self,
        mapped: Mapping[float, Array],
        Y: Array,
        folds: Array,
        *,
        rates: Array,
        keep: int = 0,
        batch: int = 8,
        **fitting: Any,
    ) -> None:
        xp = array_namespace(Y)
        self._mapped, self._folds, self._batch, self._fitting = mapped, folds, batch, fitting
        # Single precision is half the work; with few rows, rounding must not decide between settings.
        dtype = xp.float32 if Y.shape[0] > _FEW_ROWS else xp.float64
        self._Y, self._rates = xp.astype(Y, dtype), xp.astype(rates, dtype)
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
        spectrum, held_out, covariance = self._prepare(settings[0].width, fold)
        for fit in fit_settings(
            spectrum, Y, settings, self._rates, covariance, batch=self._batch, **self._fitting
        ):
            yield settings.index(fit.setting), fit.probabilities(held_out)

    def _prepare(self, width: float, fold: int) -> Any:
        if (width, fold) not in self._prepared:
            held = self._folds == fold
            mapped, Y = self._mapped[width], self._Y[~held, :]
            # The basis needs double precision.
            exact = spectrum_of(mapped[~held, :])
            held_out = array_namespace(Y).astype(exact.project(mapped[held, :]), Y.dtype)
            spectrum = exact.astype(Y.dtype)
            self._prepared[width, fold] = spectrum, held_out, pilot_covariance(spectrum, Y, self._rates)
        return self._prepared[width, fold]

    def held_out(self, members: Sequence[Setting]) -> Array:
        """Return the mean held-out probabilities of all rows by kept settings."""
        xp = array_namespace(self._Y)
        # Scores are kept fold by fold.
        place = np.argsort(np.argsort(to_numpy(self._folds), kind="stable"), kind="stable")
        return xp.take(
            xp.concat(self.mean_scores(members)), xp.asarray(place, device=device(self._Y)), axis=0
        )


def search(judge: SettingJudge, coarse: Sequence[Setting], *, free_gamma: bool, free_noise: bool) -> Evidence:
    """Judge a coarse grid, then twice the neighbors of the best four settings, closer the second time."""
    judge.try_settings(coarse)
    for ratio in (10**0.5, (10**0.5) ** 0.5):
        judge.try_settings(
            [
                near
                for setting in judge.evidence().best(4)
                for near in neighbors(setting, gammas=free_gamma, noises=free_noise, ratio=ratio, step=0.2)
            ]
        )
    return judge.evidence()
