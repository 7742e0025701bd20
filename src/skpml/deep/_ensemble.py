"""Several networks on the same rows, each with rows of its own held out. Needs PyTorch: imported by a fit only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from skpml._ordering import row_average_precision
from skpml.deep._network import Factory, State, build, to_state
from skpml.deep._training import Course, Labels, Schedule, logits_of, own_randomness, train
from skpml.likelihood import estimate_noise, prior_logits, scale_odds, sigmoid
from skpml.linalg import to_numpy


@dataclass(frozen=True, kw_only=True)
class Member:
    """A trained network.

    Attributes
    ----------
    state : dict of ndarrays
        Its weights, by name.
    course : Course
    logits : (n, c)
        Of all rows.
    held : indices
        Of the rows that it was not trained on.
    """

    state: State
    course: Course
    logits: torch.Tensor
    held: torch.Tensor


@dataclass(frozen=True, kw_only=True)
class Ensemble:
    """Networks that are averaged.

    Attributes
    ----------
    members : list of Member
    rates : (c,)
        ρ.
    one_true : bool
        Whether each row with candidates is taken to have a true label.
    """

    members: list[Member]
    rates: torch.Tensor
    one_true: bool


@dataclass(frozen=True, kw_only=True)
class Trainer:
    """All that the members of an ensemble have in common.

    Attributes
    ----------
    factory : callable
        ``(n_features, n_labels) -> Module``.
    X : (n, d)
    Y : (n, c)
        Candidates, 0 and 1.
    schedule : Schedule
    """

    factory: Factory
    X: torch.Tensor
    Y: torch.Tensor
    schedule: Schedule

    def member(self, held: NDArray[np.intp], seed: int, rates: torch.Tensor, *, one_true: bool) -> Member:
        """Build and train a network; all that is random in it comes from the seed."""
        labels = Labels(candidates=self.Y, rates=scale_odds(rates, 1.0), one_true=one_true)
        with own_randomness(seed, self.X.device):
            module = build(self.factory, prior_logits(self.Y, labels.rates), self.X)
            random = np.random.RandomState(seed)
            course = train(module, self.X, labels, held=held, schedule=self.schedule, random=random)
            logits = logits_of(module, self.X)
        left_out = torch.as_tensor(held, device=self.X.device)
        return Member(state=to_state(module), course=course, logits=logits, held=left_out)

    def noise_rate(self, held: NDArray[np.intp], seed: int, ridge: torch.Tensor) -> torch.Tensor:
        """ρ by clear negatives, as a pilot or ridge regression tells them: whichever predicts candidates better.

        The pilot is a network trained without noise, so that its probabilities are those of being a candidate.

        Parameters
        ----------
        held : indices
            Without any, ridge regression is asked alone.
        seed : int
        ridge : (n, c)
            Chances of being a candidate by ridge regression without the row.
        """
        chances, candidates = ridge, self.Y
        if len(held):
            pilot = self.member(held, seed, torch.zeros_like(self.Y[0]), one_true=False)
            left_out, Y = sigmoid(pilot.logits[pilot.held]), self.Y[pilot.held]
            if ((left_out - Y) ** 2).mean() < ((ridge[pilot.held] - Y) ** 2).mean():
                chances, candidates = left_out, Y
        rates = estimate_noise(to_numpy(chances), to_numpy(candidates), of_candidates=True).usable()
        return torch.as_tensor(rates, dtype=self.Y.dtype, device=self.Y.device)

    def precision(self, member: Member) -> float:
        """Mean average precision of the rows held out, their candidates taken for the truth; 0 where none can be told."""
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
) -> Ensemble:
    """Train the members, and find out first what is not given.

    Parameters
    ----------
    trainer : Trainer
    n_members : int
    fraction : float
        Share of the rows that a member holds out.
    one_true : bool or None
        None: the first member is trained both ways, and the one that ranks the candidates of its rows held out better is
        kept.
    rates : (c,) or None
        None: by clear negatives.
    ridge : callable
        Gives the chances of being a candidate by ridge regression without the row (n×c), for rates that are not given.
    random : RandomState
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
    return Ensemble(members=[first[best], *rest], rates=rates, one_true=ways[best])


def held_out(
    n_rows: int, fraction: float, n_members: int, random: np.random.RandomState
) -> list[NDArray[np.intp]]:
    """Rows for each member to hold out: a share of them, none a second time before every row was held out once."""
    size = min(max(round(fraction * n_rows), 1), n_rows - 1) if fraction > 0 else 0
    order = random.permutation(n_rows)
    return [order[(np.arange(size) + place * size) % n_rows] for place in range(n_members)]
