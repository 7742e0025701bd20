"""Choose settings of CandidateLikelihood without true labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

from skpml.likelihood import Setting, fit_settings, pilot_covariance
from skpml.linalg import Array, Spectrum, spectrum_of, to_numpy
from skpml.model_selection import Evidence, Judge, PointScores

# Told the number of a step that begins, from 0 on, and the number of steps.
Tell = Callable[[int, int], None]

FAMILIES = ("ridge", "least-squares", "logistic")
# Rankings of candidates hardly depend on the noise rate: the search must not drift away with it.
_LEAST_NOISE, _MOST_NOISE = 0.6, 1.8
# By which γ is moved up and down around the best ones, the second time more closely.
_RATIOS = (10**0.5, (10**0.5) ** 0.5)
# Settings that fall short of the best by more standard errors, on the rows so far, are not among the best of all rows.
_FAR_BEHIND = 3.0
# Times as many settings have their probabilities kept in the middle of a race as at its end.
_SPARE = 3
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
    one number per row. Only rows of the first ``n_judged`` folds (default: all) judge settings. With ``race``, settings
    that are much worse than the best on the first folds are not fitted on the others. ``batch`` settings are fitted
    together; ``fitting`` is for :func:`fit_settings`.
    """

    def __init__(
        self,
        mapped: Mapping[float, Array],
        Y: Array,
        folds: Array,
        *,
        rates: Array,
        keep: int = 0,
        n_judged: int | None = None,
        race: bool = False,
        batch: int = 8,
        **fitting: Any,
    ) -> None:
        xp = array_namespace(Y)
        self._mapped, self._folds, self._batch, self._fitting = mapped, folds, batch, fitting
        self._race = race
        # Single precision is half the work; with few rows, rounding must not decide between settings.
        dtype = xp.float32 if Y.shape[0] > _FEW_ROWS else xp.float64
        self._Y, self._rates = xp.astype(Y, dtype), xp.astype(rates, dtype)
        self._prepared: dict[tuple[float, int], tuple[Spectrum, Array]] = {}
        self._covariances: dict[tuple[float, int], Array] = {}
        self._n_folds = int(array_namespace(folds).max(folds)) + 1
        labels = [self._Y[folds == fold, :] for fold in range(n_judged or self._n_folds)]
        super().__init__(self._score_settings, labels, keep=keep, pooled=True)

    def try_settings(self, settings: Sequence[Setting]) -> None:
        """Judge settings, at most ``batch`` of them in memory at a time."""
        new = sorted({setting for setting in settings if setting not in self._rows})
        if self._race:
            self._race_settings(new)
        else:
            for some in self._batches(new):
                self.try_points(some)

    def _race_settings(self, settings: list[Setting]) -> None:
        """Judge settings fold by fold, without those that are far behind on the folds before."""
        for known in (self._rows, self._precision):
            known.update({setting: [] for setting in settings})
        for fold, labels in enumerate(self._labels):
            for some in self._batches(settings):
                if fold == 0:
                    self._scores.update({setting: [] for setting in some})
                for place, scores in self._score_settings(some, fold):
                    self._note(some[place], scores, labels)
                # To look for the best takes time, too.
                if len(self._scores) > _SPARE * self._keep:
                    self._drop_scores()
            self._drop_scores()
            evidence = self.evidence()
            distance = dict(zip(evidence.points, evidence.distance, strict=True))
            settings = [setting for setting in settings if distance[setting] <= _FAR_BEHIND]

    def complete(self, members: Sequence[Setting]) -> None:
        """Make sure that the held-out probabilities of settings are known, also if they were not among the best once."""
        missing = [member for member in members if len(self._scores.get(member, [])) < len(self._labels)]
        self._scores.update({member: [] for member in missing})
        for fold in range(len(self._labels)):
            for some in self._batches(sorted(missing)):
                for place, scores in self._score_settings(some, fold):
                    self._scores[some[place]].append(scores)

    def _batches(self, settings: Sequence[Setting]) -> Iterator[list[Setting]]:
        """Yield settings that differ only in γ and the noise, at most ``batch`` at a time."""
        for _, group in groupby(
            settings, key=lambda setting: (setting.family, setting.one_true, setting.width)
        ):
            alike = list(group)
            yield from (alike[start : start + self._batch] for start in range(0, len(alike), self._batch))

    def _score_settings(self, settings: Sequence[Setting], fold: int) -> PointScores:
        """Score held-out rows by settings that differ only in γ and the noise."""
        Y = self._Y[self._folds != fold, :]
        width = settings[0].width
        spectrum, held_out = self._prepare(width, fold)
        covariance = None
        if any(setting.family == "logistic" for setting in settings):
            if (width, fold) not in self._covariances:
                rounds = self._fitting.get("pilot_rounds", 60)
                self._covariances[width, fold] = pilot_covariance(spectrum, Y, self._rates, rounds)
            covariance = self._covariances[width, fold]
        for fit in fit_settings(
            spectrum, Y, settings, self._rates, covariance, batch=self._batch, **self._fitting
        ):
            yield settings.index(fit.setting), fit.probabilities(held_out)

    def _prepare(self, width: float, fold: int) -> tuple[Spectrum, Array]:
        """Return the spectrum of the training rows of a fold, and its held-out rows in the same basis."""
        if (width, fold) not in self._prepared:
            held = self._folds == fold
            mapped, Y = self._mapped[width], self._Y
            # The basis needs double precision.
            exact = spectrum_of(mapped[~held, :])
            held_out = array_namespace(Y).astype(exact.project(mapped[held, :]), Y.dtype)
            self._prepared[width, fold] = exact.astype(Y.dtype), held_out
        return self._prepared[width, fold]

    def held_out(self, members: Sequence[Setting]) -> Array:
        """Return the mean held-out probabilities of all rows by kept settings."""
        xp = array_namespace(self._Y)
        folds = self.mean_scores(members)
        for fold in range(len(folds), self._n_folds):
            # Settings were not judged by these rows.
            parts = [
                scores
                for width in dict.fromkeys(member.width for member in members)
                for _, scores in self._score_settings([each for each in members if each.width == width], fold)
            ]
            folds.append(sum(parts) / len(parts))
        # Scores are kept fold by fold.
        place = np.argsort(np.argsort(to_numpy(self._folds), kind="stable"), kind="stable")
        return xp.take(xp.concat(folds), xp.asarray(place, device=device(self._Y)), axis=0)


def search(
    judge: SettingJudge, coarse: Sequence[Setting], *, free_gamma: bool, free_noise: bool, tell: Tell
) -> Evidence:
    """Judge a coarse grid, then twice the neighbors of the best four settings, closer the second time."""
    tell(0, 3)
    judge.try_settings(coarse)
    for step, ratio in enumerate(_RATIOS, start=1):
        tell(step, 3)
        judge.try_settings(
            [
                near
                for setting in judge.evidence().best(4)
                for near in neighbors(setting, gammas=free_gamma, noises=free_noise, ratio=ratio, step=0.2)
            ]
        )
    return judge.evidence()


def search_quickly(
    judge: SettingJudge, coarse: Sequence[Setting], *, free_gamma: bool, free_noise: bool, tell: Tell
) -> Evidence:
    """Judge a third as many settings: one decision after the other, beginning with the cheap ones.

    Ridge regression, which needs no iterations, chooses the kernel width; then come the families with the first of their
    other settings, and at last those next to the best one: every setting of the grid that differs from it in one respect,
    and its neighbors.
    """
    tell(0, 4)
    cheap = [setting for setting in coarse if setting.family == "ridge"]
    judge.try_settings(cheap or [replace(coarse[0], width=width) for width in _values(coarse, "width")])
    width = judge.evidence().best()[0].width
    costly = [setting for setting in coarse if setting.family != "ridge"]
    usual = [(setting.one_true, setting.noise) for setting in costly][:1]
    tell(1, 4)
    judge.try_settings(
        [each for each in costly if each.width == width and (each.one_true, each.noise) in usual]
    )
    for step, ratio in enumerate(_RATIOS, start=2):
        tell(step, 4)
        best = judge.evidence().best()[0]
        near = neighbors(best, gammas=free_gamma, noises=free_noise, ratio=ratio, step=0.2)
        if best.family != "ridge":
            near += [
                replace(best, **{name: value})
                for name in ("width", "one_true", "noise")
                for value in _values(costly, name)
            ]
        judge.try_settings(near)
    return judge.evidence()


def _values(settings: Sequence[Setting], name: str) -> list[Any]:
    """Return the different values of a part of settings."""
    return list(dict.fromkeys(getattr(setting, name) for setting in settings))
