"""Several networks on the same rows, each with its own held-out rows. Needs PyTorch: imported only by a fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.utils import Bunch

from skpml._ordering import row_average_precision
from skpml.deep._training import Factory, Labels, build, logits_of, own_randomness, to_state, train
from skpml.likelihood import estimate_noise, prior_logits, scale_odds, sigmoid
from skpml.linalg import to_numpy


@dataclass(frozen=True, kw_only=True)
class Trainer:
    """What all members share: the factory of networks, rows X (n, d), candidates Y (n, c) and the method's schedule."""

    factory: Factory
    X: torch.Tensor
    Y: torch.Tensor
    schedule: Any

    def member(self, held: NDArray[np.intp], seed: int, rates: torch.Tensor, *, one_true: bool) -> Bunch:
        """Build and train a network; all its randomness comes from the seed.

        Returns its weights by name, its course, its logits of all rows (n, c), and the rows that it held out.
        """
        labels = Labels(candidates=self.Y, rates=scale_odds(rates, 1.0), one_true=one_true)
        with own_randomness(seed, self.X.device):
            module = build(self.factory, prior_logits(self.Y, labels.rates), self.X)
            random = np.random.RandomState(seed)
            course = train(module, self.X, labels, held=held, schedule=self.schedule, random=random)
            logits = logits_of(module, self.X)
        rows = torch.as_tensor(held, device=self.X.device)
        return Bunch(state=to_state(module), course=course, logits=logits, held=rows)

    def noise_rate(self, held: NDArray[np.intp], seed: int, ridge: torch.Tensor) -> torch.Tensor:
        """Estimate the noise rate from held-out scores for candidates: of ridge regression or of a pilot network.

        The pilot is trained without noise, so that its probabilities are those of being a candidate. ``ridge`` (n, c) are
        leave-one-out scores of all rows; the pilot scores only the rows that it holds out, but may score them better.
        The estimate that leaves the narrower range is used. Without held-out rows there is no pilot.
        """
        found = [estimate_noise(to_numpy(ridge), to_numpy(self.Y), of_candidates=True)]
        if len(held):
            pilot = self.member(held, seed, torch.zeros_like(self.Y[0]), one_true=False)
            scores, Y = sigmoid(pilot.logits[pilot.held]), self.Y[pilot.held]
            found.append(estimate_noise(to_numpy(scores), to_numpy(Y), of_candidates=True))
        rates = min(found, key=lambda noise: float((logit(noise.high) - logit(noise.low)).mean())).usable()
        return torch.as_tensor(rates, dtype=self.Y.dtype, device=self.Y.device)

    def precision(self, member: Bunch) -> float:
        """Return the mean average precision of the held-out rows, their candidates taken for the truth; 0 without any."""
        rows = row_average_precision(self.Y[member.held], member.logits[member.held])
        return float(rows.mean()) if len(rows) else 0.0


def train_ensemble(
    trainer: Trainer,
    *,
    n_members: int,
    fraction: float,
    one_true: bool | None,
    rates: torch.Tensor | None,
    ridge: Callable[[], torch.Tensor],
    random: np.random.RandomState,
) -> Bunch:
    """Train the members; estimate the noise rates and choose ``one_true`` first if they are None.

    For the choice the first member is trained both ways, and the one that ranks the candidates of its held-out rows
    better is kept. ``fraction`` is the share of rows that a member holds out; ``ridge`` returns the scores for
    :meth:`Trainer.noise_rate`.
    """
    held = held_out(len(trainer.X), fraction, n_members, random)
    pilot_seed, *seeds = random.randint(np.iinfo(np.int32).max, size=n_members + 1).tolist()
    if rates is None:
        rates = trainer.noise_rate(held[0], pilot_seed, ridge())
    ways = (False, True) if one_true is None else (one_true,)
    first = [trainer.member(held[0], seeds[0], rates, one_true=way) for way in ways]
    best = max(range(len(ways)), key=lambda place: trainer.precision(first[place]))
    rest = [
        trainer.member(rows, seed, rates, one_true=ways[best])
        for rows, seed in zip(held[1:], seeds[1:], strict=True)
    ]
    return Bunch(members=[first[best], *rest], rates=rates, one_true=ways[best])


def held_out(
    n_rows: int, fraction: float, n_members: int, random: np.random.RandomState
) -> list[NDArray[np.intp]]:
    """Return the held-out rows of each member: no row is held out twice before every row was held out once."""
    size = min(max(round(fraction * n_rows), 1), n_rows - 1) if fraction > 0 else 0
    order = random.permutation(n_rows)
    return [order[(np.arange(size) + place * size) % n_rows] for place in range(n_members)]
